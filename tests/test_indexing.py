"""x[index] and x.at[index]: NumPy is the oracle, eagerly, under jit, vmap and grad."""

import re
import warnings

import numpy as np
import pytest
from hypothesis import given, reject, settings, strategies as st

import olympus
import olympus.numpy as onp
from olympus import errors, lax
from olympus.errors import NonConcreteBooleanIndexError

X = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
I, J = np.array([0, 2, 1]), np.array([1, -1, 3])

INDICES = [
    0, -1, (0, 1), slice(1, 3), (slice(None, None, 2), slice(None, None, -1)), (),
    (slice(None), -2, slice(4, 1, -2)), (None, 0), (..., 1), (..., None, 2), slice(0, 0),
    I, (I, J), (slice(None), I), (I, slice(None), J), (0, slice(None), I), (slice(1, 3), I, 0),
    (slice(None), I, slice(None, None, 2)), (I[:, None], J), (slice(None, None, -1), I),
    X[:, :, 0] > 20, (X[:, 0, 0] > 10, 0), True, False, (I, None, J), I[:0],
    (None, I, slice(1, 4), None), (slice(None), slice(1, 3), J), np.int64(2),
    (True, I, slice(1, 2)), (np.array(1), slice(None), np.array(2)),
    [0, 2], [[0, 1], [2, 0]], [True, False, True], [], range(2), (slice(None), [0, 2]), ([0, 1], 0),
    (..., [1, -1]), (slice(None), (0, 1)), (slice(None), [True, False, True, True]), ([], 0),
    ([0, 1], [[1], [2]]), (..., [[True] * 5] * 4), (slice(None), ()), np.zeros((0, 4), bool),
    (slice(None), np.zeros((4, 0), bool)), (None, [np.int8(1), 0], ..., np.array(2)),
]
UPDATES = {"set": None, "add": np.add, "multiply": np.multiply, "min": np.minimum,
           "max": np.maximum, "subtract": np.subtract, "divide": np.divide}


@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_read(index):
    np.testing.assert_array_equal(onp.asarray(X)[index], X[index])
    np.testing.assert_array_equal(olympus.jit(lambda x: x[index])(X), X[index])


@pytest.mark.parametrize("op", UPDATES)
@pytest.mark.parametrize("index", INDICES, ids=repr)
def test_write(index, op):
    values = np.linspace(0.5, 2, X[index].size, dtype=np.float32).reshape(X[index].shape)
    expected = X.copy()
    if op == "set":
        expected[index] = values
    else:
        UPDATES[op].at(expected, index, values)
    np.testing.assert_allclose(getattr(onp.asarray(X).at[index], op)(values), expected, rtol=1e-5)


WINDOWS = [lambda ds: ds(1, 2), lambda ds: (..., ds(2, 2, 2)), lambda ds: (0, ds(1, 3), None),
           lambda ds: (ds(-2, 1), slice(None), I), lambda ds: (I, ds(1, 2, 2), J),
           lambda ds: (X[:, 0, 0] > 10, ds(0, 0)), lambda ds: (ds(-3, 3), ds(1, 2), ds(2, 3))]


@pytest.mark.parametrize("index", WINDOWS, ids=range(len(WINDOWS)))
def test_windows_are_slices_of_static_size(index):
    """Starts as ints, traced and mapped; negative ones count from the end."""
    starts = []

    def as_slice(start, size, stride=1):
        starts.append(start)
        start += 3 if start < 0 else 0      # only the first axis is given any
        return slice(start, start + (size - 1) * stride + 1 if size else start, stride)

    plain = index(as_slice)
    x = onp.asarray(X)
    values = np.arange(X[plain].size, dtype=np.float32).reshape(X[plain].shape)
    added = X.copy()
    np.add.at(added, plain, values)

    def at(starts):
        left = iter(starts)
        return index(lambda _, size, stride=1: olympus.ds(next(left), size, stride))

    for apply in (lambda f: f(starts), lambda f: olympus.jit(f)(starts),
                  lambda f: olympus.vmap(f)([onp.array([s]) for s in starts])[0]):
        np.testing.assert_array_equal(apply(lambda s: x[at(s)]), X[plain])
        np.testing.assert_array_equal(apply(lambda s: x.at[at(s)].add(values)), added)
    gradient = olympus.jit(olympus.grad(lambda x, s: (x[at(s)] * values).sum()))(x, starts)
    np.testing.assert_array_equal(gradient, added - X)


def test_windows_outside():
    x = onp.arange(5)
    read = olympus.jit(lambda x, i: x[olympus.ds(i, 2)])
    write = olympus.jit(lambda x, i: x.at[olympus.ds(i, 2)].set(9))
    for i in (4, 7, -7):
        np.testing.assert_array_equal(read(x, i), [3, 4] if i > 0 else [0, 1])
        np.testing.assert_array_equal(write(x, i), x)
        with pytest.raises(IndexError, match="out of bounds for axis 0 with size 5"):
            x[olympus.ds(i, 2)]
        np.testing.assert_array_equal(x.at[olympus.ds(i, 2)].set(9, mode="drop"), x)
    for index, message in ((olympus.ds(0, 6), "at most 5 elements"), (olympus.ds(1., 2), "start"),
                           (olympus.ds(0, onp.int32(2)), "the size of a ds")):
        with pytest.raises(IndexError, match=message):
            x[index]


KINDS = ["int", "slice", "array", "list", "mask", "grid", "empty", "all", "scalar"]
BASIC = ["int", "slice", "all", "scalar"]


@st.composite
def indexed(draw, masked=False):
    """A shape and an index that NumPy accepts for it; of one mask and basic ones if `masked`."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    batch = draw(st.sampled_from([(), (1,), (3,), (2, 1), (2, 3)]))
    count = draw(st.integers(0, len(shape)))
    index, dots, axis = [], draw(st.integers(-1, count)), 0
    grid = draw(st.integers(0, max(0, count - 1))) if masked else None
    for place in range(count):
        if place == dots:       # the axes behind it are the last ones
            index.append(...)
            axis = max(axis, len(shape) - (count - place))
        if axis >= len(shape):
            break
        n = shape[axis]
        kind = "grid" if place == grid else draw(st.sampled_from(BASIC if masked else KINDS))
        if n == 0 and kind in ("int", "array", "list", "scalar"):
            kind = "all"
        axis += 1
        if kind == "int":
            index.append(draw(st.integers(-n, n - 1)))
        elif kind == "scalar":
            index.append(np.array(draw(st.integers(-n, n - 1)),
                                  draw(st.sampled_from([np.int8, np.int64]))))
        elif kind == "empty":
            index.append(draw(st.sampled_from([[], (), np.zeros(0, np.int8)])))
        elif kind == "mask":
            mask = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            index.append(mask if mask and draw(st.booleans()) else np.array(mask, bool))
        elif kind == "grid":
            sizes = shape[axis - 1:axis + 1] if dots < place and axis < len(shape) else (n,)
            axis += len(sizes) - 1
            flat = draw(st.lists(st.booleans(), min_size=int(np.prod(sizes)),
                                 max_size=int(np.prod(sizes))))
            index.append(np.array(flat, bool).reshape(sizes))
        elif kind == "slice":
            bound = st.none() | st.integers(-n - 1, n + 1)
            step = draw(st.sampled_from([None, 1, 2, 3, -1, -2, -5]))
            index.append(slice(draw(bound), draw(bound), step))
        elif kind in ("array", "list"):
            size = int(np.prod(batch))
            flat = draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size))
            places = np.array(flat, draw(st.sampled_from([np.int8, np.int32]))).reshape(batch)
            index.append(places if kind == "array" else places.tolist())
        else:
            index.append(slice(None))
        extra = draw(st.integers(0, 11))
        if extra == 0 or (extra == 1 and not masked):
            index.append([None, draw(st.booleans())][extra])
    if dots == count or (dots == -1 and draw(st.booleans())):
        index.append(...)
    try:
        np.empty(shape)[tuple(index)]
    except IndexError:      # arrays that do not broadcast
        reject()
    return shape, tuple(index)


RUN = {"eager": lambda f: f, "jit": olympus.jit,
       "vmap": lambda f: lambda x: olympus.vmap(f)(x[None])[0]}


@settings(max_examples=60, deadline=None)
@given(indexed(), st.sampled_from(list(UPDATES)), st.sampled_from(list(RUN)), st.data())
def test_random_indices(case, op, how, data):
    shape, index = case
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    run, read = RUN[how], x[index]
    np.testing.assert_array_equal(run(lambda x: x[index])(onp.asarray(x)), read)
    keep = [n if data.draw(st.booleans()) else 1 for n in read.shape]
    values = np.float32(1.5) + np.arange(np.prod(keep), dtype=np.float32).reshape(keep)
    values = values.reshape(keep[data.draw(st.integers(0, len(keep))):]) if op != "divide" and (
        values.size == 1) else values
    if op == "set":     # places may repeat
        values = (values[..., :1] if values.ndim else values) * 0 + 7
    expected, slope = x.copy(), np.zeros_like(x)
    if op == "set":
        expected[index] = values
    else:
        UPDATES[op].at(expected, index, values)
    found = run(lambda x: getattr(x.at[index], op)(values))(onp.asarray(x))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    if how == "eager":
        np.add.at(slope, index, 1)
        np.testing.assert_array_equal(olympus.grad(lambda x: x[index].sum())(x), slope)


@settings(max_examples=40, deadline=None)
@given(indexed(masked=True), st.sampled_from(["apply", *UPDATES]),
       st.sampled_from(["jit", "vmap"]), st.data())
def test_random_traced_masks(case, op, how, data):
    """Where an index has one mask, beside ints and slices, it may be traced in writes."""
    shape, index = case
    masks = [i for i, e in enumerate(index) if isinstance(e, np.ndarray) and e.dtype == bool]
    if not masks:
        return
    place, x = masks[0], np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    read = x[index]
    keep = [n if data.draw(st.booleans()) else 1 for n in read.shape]
    values = np.float32(1.5) + np.arange(np.prod(keep), dtype=np.float32).reshape(keep)
    expected = x.copy()
    if op == "apply":
        expected[index] = read * 3
    elif op == "set":
        expected[index] = values
    else:
        UPDATES[op].at(expected, index, values)

    def write(x, mask):
        at = x.at[(*index[:place], mask, *index[place + 1:])]
        return at.apply(lambda v: v * 3) if op == "apply" else getattr(at, op)(values)

    run = olympus.jit(write) if how == "jit" else lambda x, mask: olympus.vmap(write)(
        x[None], mask[None])[0]
    try:
        found = run(onp.asarray(x), index[place])
    except NonConcreteBooleanIndexError:
        # The values count the true elements: only then.
        assert op != "apply" and any(n != 1 for n in keep)
        return
    np.testing.assert_allclose(found, expected, rtol=1e-5)


MASKED = {
    "whole": lambda x, m: x.at[m].set(0), "column": lambda x, m: x.at[m[:, 0], 1].add(2.5),
    "rows": lambda x, m: x.at[:, m[0]].multiply(onp.arange(1., 4)[:, None]),
    "one row": lambda x, m: x.at[m[:, 1]].set(onp.arange(4.)),
    "scalar": lambda x, m: x.at[m[0, 0]].min(1), "traced int": lambda x, m: x.at[
        m[:, 2].astype(int).sum(), m[0]].set(-1), "power": lambda x, m: x.at[m].power(2),
    "strided": lambda x, m: x.at[::-1, m[0]].set(onp.arange(3.)[:, None]),
    "divided": lambda x, m: x.at[None, m].divide(4),
    "outside": lambda x, m: x.at[7, m[0]].set(1, mode="drop"),
}


@pytest.mark.parametrize("name", MASKED)
def test_a_traced_mask_writes_as_a_concrete_one(name):
    x, mask = np.linspace(1, 2, 12, dtype="f4").reshape(3, 4), np.arange(12).reshape(3, 4) % 3 > 0
    write = MASKED[name]
    expected = write(onp.asarray(x), mask)
    np.testing.assert_allclose(olympus.jit(write)(x, mask), expected, rtol=1e-6)
    weights = np.linspace(-1, 1, 12, dtype="f4").reshape(3, 4)
    slope = olympus.grad(lambda x, m: (write(x, m) * weights).sum())
    np.testing.assert_allclose(olympus.jit(slope)(x, mask), slope(x, mask), rtol=1e-6)
    twice = olympus.vmap(write)(np.stack([x, x]), np.stack([mask, ~mask]))
    np.testing.assert_allclose(twice, [expected, write(onp.asarray(x), ~mask)], rtol=1e-6)


FILLED = {
    "whole": (lambda x, m: x.at[m].get(fill_value=-1), lambda x, m: np.where(m, x, -1)),
    "rows": (lambda x, m: x.at[m[:, 1]].get(fill_value=-1, mode="fill"),
             lambda x, m: np.where(m[:, 1:2], x, -1)),
    "behind a slice": (lambda x, m: x.at[::-1, m[0], None].get(fill_value=-1),
                       lambda x, m: np.where(m[0], x[::-1], -1)[..., None]),
    "beside an integer": (lambda x, m: x.at[1, m[0]].get(fill_value=-1),
                          lambda x, m: np.where(m[0], x[1], -1)),
    "beside one outside": (lambda x, m: x.at[7, m[0]].get(fill_value=-1),
                           lambda x, m: np.full(4, -1)),
    "a traced integer": (lambda x, m: x.at[m[:, 2].astype(int).sum(), m[0]].get(fill_value=-1),
                         lambda x, m: np.where(m[0], x[m[:, 2].sum()], -1)),
    "a scalar": (lambda x, m: x.at[m[0, 0]].get(fill_value=-1),
                 lambda x, m: np.where(m[0, 0], x, -1)),
    "a list": (lambda x, m: x.at[[True, False, True]].get(fill_value=-1),
               lambda x, m: np.where(np.array([[True], [False], [True]]), x, -1)),
    "a bool": (lambda x, m: x.at[False].get(fill_value=-1), lambda x, m: np.full_like(x, -1)),
}


@pytest.mark.parametrize("name", FILLED)
def test_a_masked_read_with_a_fill_value_has_the_shape_of_the_mask(name):
    x, mask = np.linspace(1, 2, 12, dtype="f4").reshape(3, 4), np.arange(12).reshape(3, 4) % 3 > 0
    read, expected = FILLED[name][0], FILLED[name][1](x, mask)
    for found in (read(onp.asarray(x), mask), read(onp.asarray(x), onp.asarray(mask)),
                  olympus.jit(read)(x, mask), olympus.vmap(read)(x[None], mask[None])[0]):
        assert found.shape == expected.shape and found.dtype == np.float32
        np.testing.assert_array_equal(found, expected)
    weights = np.linspace(1, 2, expected.size, dtype="f4").reshape(expected.shape)
    chosen = FILLED[name][1](np.arange(12).reshape(3, 4), mask)
    slope = np.zeros(13, "f4")      # the last one is the fill value's
    np.add.at(slope, chosen, weights)
    for run in (lambda f: f, olympus.jit):
        found = run(olympus.grad(lambda x: (read(x, mask) * weights).sum()))(x)
        np.testing.assert_allclose(found, slope[:12].reshape(3, 4), rtol=1e-6)


def test_a_masked_read_of_integers_converts_the_fill_value():
    read = onp.arange(3).at[onp.array([True, False, True])]
    assert read.get(fill_value=7.9).tolist() == [0, 7, 2]


def test_a_function_is_applied_to_chosen_elements_only():
    x = onp.array([-1., 0., 1., np.e])
    logs = lambda x: x.at[x > 0].apply(onp.log)
    for run in (lambda f: f, olympus.jit):
        np.testing.assert_allclose(run(logs)(x), [-1, 0, 0, 1], rtol=1e-6)
        slope = run(olympus.grad(lambda x: logs(x).sum()))(x)
        np.testing.assert_allclose(slope, [1, 1, 1, 1 / np.e], rtol=1e-6)


@pytest.mark.parametrize("index", [0, slice(0, 3, 2), (I, J), (slice(None), I), (I, 1)], ids=repr)
def test_gradient_of_read_is_add(index):
    weights = np.linspace(1, 2, X[index].size, dtype=np.float32).reshape(X[index].shape)
    expected = np.zeros_like(X)
    np.add.at(expected, index, weights)
    grad = olympus.grad(lambda x: (x[index] * weights).sum())(onp.asarray(X))
    np.testing.assert_allclose(grad, expected)
    jitted = olympus.jit(olympus.grad(lambda x: (x[index] * weights).sum()))(X)
    np.testing.assert_allclose(jitted, expected)


def test_vmap_over_indices_and_operand():
    x, i = onp.asarray(X), onp.asarray(J)
    np.testing.assert_array_equal(olympus.vmap(lambda k: x[:, k])(i), X[:, J].swapaxes(0, 1))
    np.testing.assert_array_equal(olympus.vmap(lambda a, k: a[k])(x, i), X[np.arange(3), J])
    out = olympus.vmap(lambda a, k: a.at[k].set(0))(x, i)
    expected = X.copy()
    expected[np.arange(3), J] = 0
    np.testing.assert_array_equal(out, expected)


def test_outside():
    x, places = onp.arange(5.0) + 1, onp.array([10, -10, -1])
    for wrap in (lambda f: f, olympus.jit):
        read = wrap(lambda x, i: x.at[i].get(mode="clip"))
        assert float(read(x, 10)) == 5 and float(read(x, -10)) == 1
        np.testing.assert_array_equal(read(x, places), [5, 1, 5])
        fill = wrap(lambda x, i: x.at[i].get(fill_value=7))      # a fill value alone says "fill"
        assert float(fill(x, 10)) == 7
        np.testing.assert_array_equal(fill(x, places), [7, 7, 5])
        np.testing.assert_array_equal(wrap(lambda x, i: x.at[i].set(3, mode="clip"))(x, 10),
                                      [1, 2, 3, 4, 3])
        np.testing.assert_array_equal(wrap(lambda x, i: x.at[i].add(3, mode="drop"))(x, places),
                                      [1, 2, 3, 4, 8])
    assert np.isnan(x.at[10].get(mode="fill"))
    assert onp.zeros((0, 2)).at[0].get(mode="fill", fill_value=3).tolist() == [3, 3]


def test_what_is_traced_and_outside_reads_the_nearest_element_and_drops_writes():
    x = onp.arange(5.0) + 1
    np.testing.assert_array_equal(olympus.jit(lambda x, i: x[i])(x, 10), 5)
    np.testing.assert_array_equal(olympus.jit(lambda x, i: x[i])(x, np.array([10, -10])), [5, 1])
    np.testing.assert_array_equal(olympus.jit(lambda x, i: x.at[i].set(0))(x, 10), x)
    for i in (10, np.array([10, 4])):       # the derivative goes to the element that was read
        slope = olympus.jit(olympus.grad(lambda x, i: x[i].sum()))(x, i)
        np.testing.assert_array_equal(slope, [0, 0, 0, 0, np.size(i)])


OUTSIDE = {
    "int": 5, "negative": -6, "numpy int": np.int8(5), "huge": 2**70, "list": [0, 5],
    "huge in a list": [2**70], "array": np.array([1, -6]), "device array": [[0], [9]],
    "beyond int32": np.array([2**32 + 1]), "uint64": np.array([2**63], np.uint64),
    "many": np.arange(-3, 70), "with a slice": (5, slice(0, 0)), "second": (0, [-4]),
    "int beside no elements": (5, np.zeros(0, int)), "mixed": ([0, 1], slice(None), [1]),
}


@pytest.mark.parametrize("name", OUTSIDE)
def test_what_is_known_to_be_outside_is_an_index_error(name):
    index, host = OUTSIDE[name], np.zeros((5, 3))
    host = host[..., None] if name == "mixed" else host
    with pytest.raises(IndexError) as wanted:
        host[index]
    says = re.search(r"is out of bounds for .*|integer", str(wanted.value))[0]
    index = onp.asarray(index) if name == "device array" else index
    x = onp.asarray(host)
    for call in (lambda x: x[index], lambda x: x.at[index].set(1.0),
                 lambda x: x.at[index].get()):
        for run in (call, olympus.jit(call), olympus.grad(lambda x: call(x).sum())):
            with pytest.raises(IndexError, match=says):
                run(x)
        with pytest.raises(IndexError, match=says):
            olympus.vmap(call)(x[None])
    assert x.at[index].get(mode="clip").shape == x.at[index].get(mode="fill").shape
    np.testing.assert_array_equal(x.at[5].set(1, mode="drop"), x)


@pytest.mark.parametrize("index", [-1, np.array([-1, -5])], ids=["int", "array"])
def test_negative_indices_that_do_not_wrap_are_outside_by_the_mode(index):
    x = onp.arange(5.0) + 1
    for wrap in (lambda f: f, olympus.jit):
        at = wrap(lambda x, how: x.at[index].set(7, wrap_negative_indices=False, mode=how),
                  **({"static_argnums": 1} if wrap is olympus.jit else {}))
        np.testing.assert_array_equal(at(x, None), x)
        np.testing.assert_array_equal(at(x, "clip"), [7, 2, 3, 4, 5])
        np.testing.assert_array_equal(wrap(
            lambda x: x.at[index].get(wrap_negative_indices=False))(x), np.ones(np.shape(index)))


@pytest.mark.parametrize("read", [lambda x: x[0, 0], lambda x: olympus.jit(lambda i: x[0, i])(0)],
                         ids=["concrete", "traced"])
def test_an_element_of_an_empty_axis_is_an_index_error(read):
    with pytest.raises(IndexError, match="index is out of bounds for axis 1 with size 0"):
        read(onp.ones((2, 0)))


def test_index_arrays_that_name_no_element_are_not_outside():
    host = np.zeros((3, 4))
    for index in (([7], np.zeros(0, int)), ([7], False), ([9], np.zeros(4, bool))):
        assert onp.asarray(host)[index].shape == host[index].shape
        assert onp.asarray(host).at[index].set(1).sum() == 0


def test_lists_hold_traced_values():
    x = onp.asarray(X)
    np.testing.assert_array_equal(olympus.jit(lambda i: x[[i, 0], 1])(2), X[[2, 0], 1])
    np.testing.assert_array_equal(olympus.vmap(lambda i: x[0, [i, 1]])(I),
                                  [X[0, [i, 1]] for i in I])
    written = X.copy()
    written[0, 1] = [1, 2, 3, 4, 7]
    np.testing.assert_array_equal(
        olympus.jit(lambda v: x.at[0, 1].set([1, 2, 3, 4, v]))(7), written)
    slope = olympus.grad(lambda v: x.at[0, 0, :2].set((v, 2 * v)).sum())(1.)
    np.testing.assert_array_equal(slope, 3)
    np.testing.assert_array_equal(onp.zeros(3).at[:].add(range(3)), [0, 1, 2])


def test_an_array_without_elements_is_written():
    for index in (np.array([0, 2]), slice(None, None, 2), onp.array(1), np.zeros(0, bool)):
        for op in UPDATES:
            write = lambda x: getattr(x.at[index], op)(1, mode="drop")
            assert write(onp.zeros((0, 2))).shape == (0, 2)
            assert olympus.jit(write)(onp.zeros((0, 2))).size == 0
    for index in (0, (slice(None), 0), np.array([0]), [0]):
        with pytest.raises(IndexError, match="empty axis"):
            onp.zeros((0, 0))[index]
    with pytest.raises(IndexError, match="empty axis"):
        onp.zeros(0).at[0].set(1)


def test_new_axes_are_one_broadcast():
    for index in (None, (slice(None), None), (..., None), (None, ..., None)):
        program = olympus.make_olympuspr(lambda x: x[index])(X)
        assert [e.primitive.name for e in program.eqns] == ["broadcast_in_dim"]


@pytest.mark.parametrize(("dtype", "value"), [
    ("uint32", 2**32 - 1), ("uint32", 0x85a308d3), ("float32", 2**31), ("float16", 2**15),
    ("bfloat16", 2**100), ("complex64", 2**40)])
def test_a_python_int_is_read_at_the_dtype_it_is_for(dtype, value):
    expected = np.asarray(value if dtype == "uint32" else float(value)).astype(onp.dtype(dtype))
    found = [onp.zeros(2, dtype).at[0].set(value)[0], onp.full((), value, dtype),
             onp.full_like(onp.zeros((), dtype), value), onp.array(value, dtype),
             onp.where(True, value, onp.zeros((), dtype)),
             olympus.lax.convert_element_type(value, dtype)]
    for x in found:
        assert x.dtype == expected.dtype and x == expected
    with pytest.raises(OverflowError):
        onp.zeros(2, "int32").at[0].set(2**31)


def test_repeated_indices():
    x, twice = onp.arange(5.0) + 1, onp.array([0, 1, 1])
    np.testing.assert_array_equal(x.at[twice].power(2), [1, 16, 3, 4, 5])
    np.testing.assert_array_equal(x.at[twice].divide(2), [.5, .5, 3, 4, 5])
    np.testing.assert_array_equal(x.at[twice].apply(lambda v: v * 3), [3, 18, 3, 4, 5])


ERRORS = [
    ([0.5, 1], TypeError, "integer or boolean"), (["a"], TypeError, "text"), ([0, None], ValueError,
    "None"), ([[0], [1, 2]], ValueError, "inhomogeneous"), (1.0, TypeError, "integer or boolean"),
    ("a", TypeError, "string"), (b"a", TypeError, "bytes"), (1j, TypeError, "integer"),
    ((1, 2), IndexError, "Too many indices"), ({}, TypeError, "dict"), ([0.], TypeError, "int"),
    (slice(None, None, 0), ValueError, "zero"), (([0, 1], [0, 1, 2]), IndexError, "mismatch"),
    (np.ones((5, 2), bool), IndexError, "did not match"),
    ((True, np.ones(3, bool)), IndexError, "bool"),
    (np.array([True, False]), IndexError, "boolean index did not match"),
    ((..., ...), IndexError, "single ellipsis"), (slice(1.0, 2), TypeError, "integers or None"),
]


@pytest.mark.parametrize("index, error, message", ERRORS, ids=repr)
def test_errors(index, error, message):
    host = np.zeros((5, 3)) if message in ("mismatch", "did not match") else np.arange(5.0)
    with pytest.raises(Exception) as numpys:
        host[index]
    for call in (lambda x: x[index], lambda x: x.at[index].set(0), olympus.jit(lambda x: x[index])):
        with pytest.raises(error, match=message) as raised:
            call(onp.asarray(host))
        assert isinstance(raised.value, type(numpys.value))


def test_traced_errors():
    x = onp.arange(5.0)
    for read in (lambda x: x[x > 2], lambda x: x.at[x > 2].set(onp.ones(2)),
                 lambda x: x.at[x > 2].get(mode="fill"), lambda x: x[x[0] > 2],
                 lambda x: x[None].at[[0], x > 1].set(1)):
        with pytest.raises(NonConcreteBooleanIndexError, match=r"must be concrete.*where.*size="):
            olympus.jit(read)(x)
    with pytest.raises(IndexError, match="static"):
        olympus.jit(lambda x, i: x[i:i + 2])(x, 1)
    with pytest.raises(TypeError, match=r"x\.at\[index\]\.set"):
        x[0] = 1
    with pytest.raises(ValueError, match="broadcast"):
        x.at[:2].set(onp.ones(3))
    with pytest.warns(FutureWarning, match="incompatible types"):
        onp.arange(3).at[0].set(1.5)


def test_updates_lower_to_updates():
    x = onp.zeros((8, 4))
    text = olympus.jit(lambda x: x.at[2:4].set(1.0)).lower(x).as_text()
    assert "dynamic_update_slice" in text and "scatter" not in text
    text = olympus.jit(lambda x, i: x.at[i].add(1.0)).lower(x, I).as_text()
    assert text.count('"stablehlo.scatter"') == 1


LONG = 2**31 + 5
WIDE = {
    "int": (lambda x: x[LONG - 2], lambda x: x.at[LONG - 2].set(1)),
    "list": (lambda x: x[[LONG - 2, -1]], lambda x: x.at[[LONG - 2, -1]].add(1)),
    "array": (lambda x: x[np.array([LONG - 2])], lambda x: x.at[np.array([LONG - 2])].mul(2)),
    "slice": (lambda x: x[LONG - 2:], lambda x: x.at[LONG - 2:].min(1)),
    "step": (lambda x: x[::-2**30], lambda x: x.at[::2**30].set(1)),
    "traced": (lambda x: x[onp.arange(2)], lambda x: x.at[onp.uint8(1)].max(1)),
    "window": (lambda x: lax.dynamic_slice_in_dim(x, LONG - 2, 2),
               lambda x: lax.dynamic_update_slice_in_dim(x, x[:2], LONG - 2, 0)),
}


@pytest.mark.parametrize("name", WIDE)
def test_axes_beyond_int32(name):
    """Lowered only: an array would take 2 GB. The starts are those that the program names."""
    like = olympus.ShapeDtypeStruct((LONG,), "float16")
    read, write = WIDE[name]
    for f in (read, write, olympus.grad(lambda x: read(x).sum().astype("float32"))):
        text = olympus.jit(f).lower(like).as_text()
        assert "-2147483" not in text       # no index has wrapped around
        assert "tensor<i32>" not in text or name in ("int", "slice", "step", "traced")


@pytest.mark.parametrize("pair", [("int32", "int8"), ("int8", "uint8"), ("uint32", "int8")])
def test_indices_of_several_dtypes_do_not_promote(pair):
    i, j = (onp.array(1, d) for d in pair)
    x, k = onp.asarray(X), onp.array([0, 2], pair[1])
    with olympus.numpy_dtype_promotion("strict"):
        for run in (lambda f: f, olympus.jit):
            np.testing.assert_array_equal(run(lambda i, j: x[i, j])(i, j), X[1, 1])
            np.testing.assert_array_equal(run(lambda i, k: x[i[None], k])(i, k), X[[1], [0, 2]])
            np.testing.assert_array_equal(run(lambda i, j: x.at[i, j].set(0.))(i, j)[1, 1], 0)
            found = run(lambda i, j: lax.dynamic_slice(x, (i, j, i), (1, 2, 1)))(i, j)
            np.testing.assert_array_equal(found, X[1:2, 1:3, 1:2])


def test_wide_indices_outside_of_a_small_axis_do_not_wrap_around():
    x, far = onp.arange(5.), np.array([2**32 + 1, -2**32 - 4, 2**31, 1])
    np.testing.assert_array_equal(x.at[far].get(mode="clip"), [4, 0, 4, 1])
    np.testing.assert_array_equal(x.at[far].get(mode="fill", fill_value=7), [7, 7, 7, 1])
    np.testing.assert_array_equal(x.at[far].add(1, mode="drop"), [0, 2, 2, 3, 4])
    np.testing.assert_array_equal(onp.take(onp.arange(300), onp.array([-5], "int8"), mode="wrap"),
                                  [295])


SIZED = {
    "nonzero": lambda x: onp.nonzero(x), "argwhere": lambda a: onp.argwhere(a),
    "flatnonzero": lambda a: onp.flatnonzero(a), "where": lambda condition: onp.where(condition),
    "unique": lambda ar: onp.unique(ar), "unique_all": lambda x: onp.unique_all(x),
    "unique_counts": lambda x: onp.unique_counts(x), "bincount": lambda x: onp.bincount(x),
    "unique_inverse": lambda x: onp.unique_inverse(x),
    "unique_values": lambda x: onp.unique_values(x), "union1d": lambda ar1: onp.union1d(ar1, I),
    "intersect1d": lambda ar2: onp.intersect1d(I, ar2), "setdiff1d": lambda ar1: onp.setdiff1d(
        ar1, I), "setxor1d": lambda ar1: onp.setxor1d(ar1, I),
    "extract": lambda condition: onp.extract(condition, I),
    "compress": lambda condition: onp.compress(condition, I),
    "delete": lambda obj: onp.delete(J, obj),
    "repeat": lambda repeats: onp.repeat(I, repeats),
}


@pytest.mark.parametrize("name", SIZED)
def test_a_shape_that_traced_values_decide_is_refused_by_name(name):
    call = SIZED[name]
    argument = call.__code__.co_varnames[0]
    says = {"bincount": "length=", "delete": "NumPy",
            "repeat": "total_repeat_length"}.get(name, "size=")
    with pytest.raises(errors.ConcretizationTypeError) as raised:
        olympus.jit(call)(I)
    text = str(raised.value)
    assert text.startswith(f"{name}: ") and says in text and "decides the result's shape" in text
    assert f"the argument {argument} of" in text


@pytest.mark.parametrize("index", [[0], [0, 1, 1], np.array([True, False, True]), slice(None)])
@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "divide", "power"])
@pytest.mark.parametrize("value", [2, 0.5, np.float32(-1), [1.0]])
def test_numbers_combine_with_bools(index, op, value):
    """As with 0 and 1; results are bools again, unless divided or raised."""
    x = np.array([True, False, True])
    want = x.astype(float)
    with np.errstate(all="ignore"):
        getattr(np, op).at(want, index, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        got = getattr(onp.asarray(x).at[index], op)(value)
    np.testing.assert_allclose(got, want if op in ("divide", "power") else want != 0)


def test_bools_have_no_sum():
    x = onp.array([True, False])
    for op in ("add", "subtract", "multiply"):
        with pytest.raises(TypeError, match=rf"at\[...\].{op}: values bool.*numbers are required"):
            getattr(x.at[0], op)(True)
    with pytest.warns(FutureWarning, match="incompatible types"):
        x.at[0].add(1)


@pytest.mark.parametrize("write", ["add", "set", "max", "multiply"])
def test_writes_mapped_over_nothing_have_gradients(write):
    def total(u):
        x, i = onp.zeros((0, 3)), onp.zeros((0, 2), int)
        return olympus.vmap(lambda x, i, u: getattr(x.at[i], write)(u, unique_indices=True))(
            x, i, u).sum()
    assert olympus.grad(total)(onp.zeros((0, 2))).shape == (0, 2)
