"""x[index] and x.at[index]: NumPy is the oracle, eagerly, under jit, vmap and grad."""

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

import olympus
import olympus.numpy as onp
from olympus import lax
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


@st.composite
def indexed(draw):
    """A shape and an index that NumPy accepts for it."""
    shape = tuple(draw(st.lists(st.integers(0, 4), min_size=1, max_size=4)))
    batch = draw(st.sampled_from([(), (1,), (3,), (2, 1), (2, 3)]))
    index = []
    for n in shape[:draw(st.integers(0, len(shape)))]:
        kind = draw(st.sampled_from(["int", "slice", "array", "list", "mask", "empty", "all"]))
        if n == 0 and kind in ("int", "array", "list"):
            kind = "all"
        if kind == "int":
            index.append(draw(st.integers(-n, n - 1)))
        elif kind == "empty":
            index.append(draw(st.sampled_from([[], (), np.zeros(0, np.int8)])))
        elif kind == "mask":
            mask = draw(st.lists(st.booleans(), min_size=n, max_size=n))
            index.append(mask if mask and draw(st.booleans()) else np.array(mask, bool))
        elif kind == "slice":
            bound = st.none() | st.integers(-n - 1, n + 1)
            step = draw(st.sampled_from([None, 1, 2, -1, -2]))
            index.append(slice(draw(bound), draw(bound), step))
        elif kind in ("array", "list"):
            size = int(np.prod(batch))
            flat = draw(st.lists(st.integers(-n, n - 1), min_size=size, max_size=size))
            places = np.array(flat, draw(st.sampled_from([np.int8, np.int32]))).reshape(batch)
            index.append(places if kind == "array" else places.tolist())
        else:
            index.append(slice(None))
        if draw(st.integers(0, 5)) == 0:
            index.append(None)
    if draw(st.booleans()):
        index.append(...)
    try:
        np.empty(shape)[tuple(index)]
    except IndexError:      # arrays that do not broadcast
        reject()
    return shape, tuple(index)


@settings(max_examples=60, deadline=None)
@given(indexed(), st.sampled_from(["add", "multiply", "min", "max"]),
       st.sampled_from(["eager", "jit", "vmap"]))
def test_random_indices(case, op, how):
    shape, index = case
    x = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
    run = {"eager": lambda f: f, "jit": olympus.jit,
           "vmap": lambda f: lambda x: olympus.vmap(f)(x[None])[0]}[how]
    np.testing.assert_array_equal(run(lambda x: x[index])(onp.asarray(x)), x[index])
    expected, slope = x.copy(), np.zeros_like(x)
    UPDATES[op].at(expected, index, 1.5)
    found = run(lambda x: getattr(x.at[index], op)(1.5))(onp.asarray(x))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    if how == "eager":
        np.add.at(slope, index, 1)
        np.testing.assert_array_equal(olympus.grad(lambda x: x[index].sum())(x), slope)


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
    x = onp.arange(5.0) + 1
    assert float(x[10]) == 5 and float(x[-10]) == 1
    np.testing.assert_array_equal(x[onp.array([10, -10, -1])], [5, 1, 5])
    assert float(x.at[10].get(mode="fill", fill_value=7)) == 7
    np.testing.assert_array_equal(x.at[onp.array([1, 9])].get(mode="fill"), [2, np.nan])
    np.testing.assert_array_equal(x.at[10].set(3), [1, 2, 3, 4, 5])
    np.testing.assert_array_equal(x.at[10].set(3, mode="clip"), [1, 2, 3, 4, 3])
    np.testing.assert_array_equal(x.at[onp.array([-6, 2])].set(9), [1, 2, 9, 4, 5])
    np.testing.assert_array_equal(olympus.jit(lambda x, i: x[i])(x, 10), 5)
    np.testing.assert_array_equal(olympus.jit(lambda x, i: x.at[i].set(0))(x, 10), x)


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
            assert getattr(onp.zeros((0, 2)).at[index], op)(1).shape == (0, 2)
            assert olympus.jit(lambda x: getattr(x.at[index], op)(1))(onp.zeros((0, 2))).size == 0
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
    ("a", TypeError, "string"), ((1, 2), IndexError, "Too many indices"),
    (np.array([True, False]), IndexError, "boolean index did not match"),
    ((..., ...), IndexError, "single ellipsis"), (slice(1.0, 2), TypeError, "integers or None"),
]


@pytest.mark.parametrize("index, error, message", ERRORS, ids=repr)
def test_errors(index, error, message):
    with pytest.raises(error, match=message):
        onp.arange(5.0)[index]


def test_traced_errors():
    x = onp.arange(5.0)
    with pytest.raises(NonConcreteBooleanIndexError, match="must be concrete"):
        olympus.jit(lambda x: x[x > 2])(x)
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
    np.testing.assert_array_equal(x[far], [4, 0, 4, 1])
    np.testing.assert_array_equal(x.at[far].get(mode="fill", fill_value=7), [7, 7, 7, 1])
    np.testing.assert_array_equal(x.at[far].add(1), [0, 2, 2, 3, 4])
    np.testing.assert_array_equal(onp.take(onp.arange(300), onp.array([-5], "int8"), mode="wrap"),
                                  [295])
