"""Shape, order, joining, choosing, sorting, sets, padding: each row with NumPy as the oracle."""

import numpy as np
import pytest
from properties import compiled

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.base import lib
from olympus.errors import ConcretizationTypeError

M = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
V = np.array([3, 1, 2, 1, 0, 3], np.int32)

# (name, function of the module `o` and an array), run eagerly and under jit
ROWS = [
    ("reshape", lambda o, x: o.reshape(x, (2, -1))),
    ("reshapeF", lambda o, x: o.reshape(x, (2, 6), order="F")),
    ("ravel", lambda o, x: o.ravel(x)),
    ("ravelF", lambda o, x: o.ravel(x, order="F")),
    ("transpose", lambda o, x: o.transpose(x)),
    ("mT", lambda o, x: o.matrix_transpose(x)),
    ("swap", lambda o, x: o.swapaxes(x, 0, -1)),
    ("move", lambda o, x: o.moveaxis(x, 0, 1)),
    ("rollaxis", lambda o, x: o.rollaxis(x, 1)),
    ("exp", lambda o, x: o.expand_dims(x, (0, 2))),
    ("sq", lambda o, x: o.squeeze(x[None], 0)),
    ("bt", lambda o, x: o.broadcast_to(x, (2, 3, 4))),
    ("ba", lambda o, x: o.broadcast_arrays(x, x[:1], np.float32(2))),
    ("cat", lambda o, x: o.concatenate([x, x[:1]], 0)),
    ("catN", lambda o, x: o.concatenate([x, x[:1]], None)),
    ("stack", lambda o, x: o.stack([x, x], -1)),
    ("hs", lambda o, x: o.hstack([x, x])),
    ("vs", lambda o, x: o.vstack([x, x[0]])),
    ("ds", lambda o, x: o.dstack([x, x])),
    ("cs", lambda o, x: o.column_stack([x[:, 0], x])),
    ("split", lambda o, x: o.split(x, 2, 1)),
    ("split2", lambda o, x: o.split(x, [1, 3], 1)),
    ("asplit", lambda o, x: o.array_split(x, 2, 0)),
    ("hsplit", lambda o, x: o.hsplit(x, 2)),
    ("vsplit", lambda o, x: o.vsplit(x, 3)),
    ("tile", lambda o, x: o.tile(x, (2, 1, 3))),
    ("rep", lambda o, x: o.repeat(x, 2, 1)),
    ("rep2", lambda o, x: o.repeat(x, np.array([1, 0, 2]), 0)),
    ("repN", lambda o, x: o.repeat(x, 3)),
    ("flip", lambda o, x: o.flip(x)),
    ("lr", lambda o, x: o.fliplr(x)),
    ("ud", lambda o, x: o.flipud(x)),
    ("roll", lambda o, x: o.roll(x, 2)),
    ("roll2", lambda o, x: o.roll(x, (1, -5), (0, 1))),
    ("rot0", lambda o, x: o.rot90(x, 1)),
    ("rot2", lambda o, x: o.rot90(x, 2)),
    ("rot3", lambda o, x: o.rot90(x, 3)),
    ("append", lambda o, x: o.append(x, x[:1], 0)),
    ("a1", lambda o, x: o.atleast_1d(np.float32(3))),
    ("a2", lambda o, x: o.atleast_2d(x[0])),
    ("a3", lambda o, x: o.atleast_3d(x)),
    ("a3b", lambda o, x: o.atleast_3d(x[0])),
    ("unstack", lambda o, x: o.unstack(x, axis=1)),
    ("resize", lambda o, x: o.resize(x, (5, 5))),
    ("block", lambda o, x: o.block([[x, x], [x, x]])),
    ("delete", lambda o, x: o.delete(x, [0, 2], 1)),
    ("delete1", lambda o, x: o.delete(x, 1, 0)),
    ("insert", lambda o, x: o.insert(x, 1, 5., axis=1)),
    ("insert2", lambda o, x: o.insert(x, [1, 3], x[:, :2], axis=1)),
    ("insert3", lambda o, x: o.insert(x, 1, x[0], axis=0)),
    ("insert4", lambda o, x: o.insert(x, 2, x[:, 0], axis=1)),
    ("insertN", lambda o, x: o.insert(x, np.array([1, 1]), np.array([7., 8.], np.float32))),
    ("take", lambda o, x: o.take(x, np.array([0, 2]), 1)),
    ("takew", lambda o, x: o.take(x, np.array([0, 7, -9]), mode="wrap")),
    ("takec", lambda o, x: o.take(x, np.array([0, 70]), mode="clip")),
    ("take0", lambda o, x: o.take(x, 1, 0)),
    ("sort", lambda o, x: o.sort(x, 0)),
    ("sortN", lambda o, x: o.sort(x, None)),
    ("argsort", lambda o, x: o.argsort(x)),
    ("taa", lambda o, x: o.take_along_axis(x, o.argsort(x, axis=0), axis=0)),
    ("where", lambda o, x: o.where(x > 0, x, 0)),
    ("select", lambda o, x: o.select([x > 1, x > 0], [x, -x], 9.)),
    ("lexsort", lambda o, x: o.lexsort((x[0] > 0, x[1]))),
    ("ss", lambda o, x: o.searchsorted(o.sort(x[0]), x)),
    ("ssr", lambda o, x: o.searchsorted(o.sort(x[0]), x, side="right")),
    ("dig", lambda o, x: o.digitize(x, np.array([-1., 0, 1], np.float32))),
    ("digd", lambda o, x: o.digitize(x, np.array([1., 0, -1], np.float32), right=True)),
    ("isin", lambda o, x: o.isin(x, x[0])),
    ("unravel", lambda o, x: o.unravel_index(np.array([3, 7]), (3, 4))),
    ("rmi",
     lambda o, x: o.ravel_multi_index((np.array([1, 2]), np.array([3, 0])), (3, 4), mode="wrap")),
    ("argp", lambda o, x: o.partition(x, 2, axis=1)[:, 2]),
    ("choose", lambda o, x: o.choose(np.array([0, 1, 1, 0]), x[:2], mode="clip")),
    ("put", lambda o, x: o.astype(x, np.int32) ),
    ("aoa", lambda o, x: o.apply_along_axis(lambda r:r*2, 1, x)),
]
# the same, where values decide shapes: not under jit
CONCRETE = [
    ("nonzero", lambda o, v: o.nonzero(v)), ("argwhere", lambda o, v: o.argwhere(v)),
    ("flatnonzero", lambda o, v: o.flatnonzero(v)), ("bincount", lambda o, v: o.bincount(v)),
    ("unique", lambda o, v: o.unique(v)), ("unique all", lambda o, v: o.unique(v, True, 1, 1)),
    ("unique rows", lambda o, v: o.unique(v.reshape(3, 2), axis=0, return_inverse=True)),
    ("union1d", lambda o, v: o.union1d(v, np.array([7, 1]))),
    ("setdiff1d", lambda o, v: o.setdiff1d(v, np.array([1]))),
    ("intersect1d", lambda o, v: o.intersect1d(v, np.array([1, 3]), return_indices=True)),
    ("setxor1d", lambda o, v: o.setxor1d(v, np.array([1, 9]))),
    ("compress", lambda o, v: o.compress(np.array([1, 0, 1], bool), v)),
    ("extract", lambda o, v: o.extract(v > 1, v)),
]
PAD = [
    ("constant", {"constant_values": ((1, 2), (3, 4))}), ("constant", {}), ("edge", {}),
    ("reflect", {}), ("symmetric", {}), ("wrap", {}), ("linear_ramp", {"end_values": 5}),
    ("reflect", {"reflect_type": "odd"}), ("maximum", {}), ("minimum", {"stat_length": 2}),
    ("mean", {}), ("median", {}),
]


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16", "int32", "bool"])
def test_an_integer_ramp_of_padding_misses_no_integer(dtype):
    values = np.array([[0, 4, 7], [100, 1, 50]]).astype(dtype)
    for width in (1, 3, 7, 49):
        for end in (0, 9, 98):
            expected = np.pad(values, width, mode="linear_ramp", end_values=end)
            found = onp.pad(values, width, mode="linear_ramp", end_values=end)
            np.testing.assert_array_equal(found, expected, strict=True)
    first, last = -2**31, 2**31 - 1     # farther apart than int32 can say
    found = onp.pad(np.array([last], np.int32), (3, 0), mode="linear_ramp", end_values=first)
    assert found.tolist() == [first + (last - first) * k // 3 for k in range(3)] + [last]


def assert_same(found, expected):
    """Structure, shapes and values."""
    if isinstance(expected, (list, tuple)):
        assert len(found) == len(expected)
        for f, e in zip(found, expected):
            assert_same(f, e)
        return
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("fun", [r[1] for r in ROWS], ids=[r[0] for r in ROWS])
def test_as_numpy(fun):
    expected = fun(np, M)
    assert_same(fun(onp, onp.asarray(M)), expected)
    assert_same(olympus.jit(lambda x: fun(onp, x))(M), expected)


@pytest.mark.parametrize("fun", [r[1] for r in CONCRETE], ids=[r[0] for r in CONCRETE])
def test_concrete_as_numpy(fun):
    assert_same(fun(onp, onp.asarray(V)), fun(np, V))


@pytest.mark.parametrize("mode, options", PAD, ids=repr)
def test_pad(mode, options):
    width = ((2, 3), (1, 5))
    assert_same(onp.pad(onp.asarray(M), width, mode, **options), np.pad(M, width, mode, **options))


def test_size_under_jit():
    v = onp.asarray(V)
    nonzero = olympus.jit(lambda v: onp.nonzero(v, size=7, fill_value=9)[0])(v)
    np.testing.assert_array_equal(nonzero, [0, 1, 2, 3, 5, 9, 9])
    unique = olympus.jit(lambda v: onp.unique(v, size=5, fill_value=-1))(v)
    np.testing.assert_array_equal(unique, [0, 1, 2, 3, -1])
    union = olympus.jit(lambda v: onp.union1d(v, v, size=5, fill_value=-1))(v)
    np.testing.assert_array_equal(union, [0, 1, 2, 3, -1])
    rest = olympus.jit(lambda v: onp.setdiff1d(v, np.array([1]), size=4))(v)
    np.testing.assert_array_equal(rest, [0, 2, 3, 0])
    repeated = olympus.jit(lambda v: onp.repeat(v, v, total_repeat_length=10))(v)
    np.testing.assert_array_equal(repeated, np.repeat(V, V))
    rolled = olympus.jit(lambda v, s: onp.roll(v, s))(v, 2)
    np.testing.assert_array_equal(rolled, np.roll(V, 2))


@pytest.mark.parametrize("fun", [
    onp.nonzero, onp.unique, onp.bincount, lambda v: onp.repeat(v, v),
    lambda v: onp.compress(v, v)])
def test_values_that_decide_shapes(fun):
    with pytest.raises(ConcretizationTypeError, match="concrete value is required"):
        olympus.jit(fun)(V)


def test_vectorize():
    dot = onp.vectorize(lambda a, b: (a * b).sum(), signature="(n),(n)->()")
    np.testing.assert_allclose(dot(M[:, None], M), M @ M.T, rtol=1e-5)
    np.testing.assert_allclose(onp.vectorize(lambda a, b: a + b)(M[:, :1], M[0]), M[:, :1] + M[0])
    scaled = onp.vectorize(lambda a, k: a * len(k), excluded={1})
    np.testing.assert_allclose(scaled(M, "abc"), M * 3)
    with pytest.raises(ValueError, match="inconsistent size"):
        dot(M, M[0, :2])


def test_a_class_of_arrays_is_a_result_by_its_own_shape():
    class Ket:
        def __init__(self, data):
            self.data = data

        @property
        def shape(self):
            return self.data.shape[-1:]

    olympus.tree_util.register_pytree_node(Ket, lambda k: ((k.data,), None), lambda _, c: Ket(*c))
    found = onp.vectorize(lambda x: Ket(x[:2]), signature="(n)->(m)")(M)
    np.testing.assert_array_equal(found.data, M[:, :2])
    with pytest.raises(ValueError, match="the result Ket given for the axes"):
        onp.vectorize(lambda x: Ket(x), signature="(n)->()")(M)


def test_none_in_a_signature():
    """As argument or result it stands for no axes; elsewhere ValueError, not TypeError of avals."""
    first = onp.vectorize(lambda x, y: x if y is None else y, signature="(n),()->(n)")
    np.testing.assert_array_equal(first(M, None), M)
    ends, total = onp.vectorize(lambda x: (None, x.sum()), signature="(n)->(),()")(M)
    assert ends is None
    np.testing.assert_allclose(total, M.sum(1), rtol=1e-6)
    with pytest.raises(ValueError, match=r"argument 0 is None, for the axes \('n',\)"):
        onp.vectorize(lambda x: x, signature="(n)->(n)")(None)
    with pytest.raises(ValueError, match="the result None given for the axes"):
        onp.vectorize(lambda x: None, signature="(n)->(n)")(M)


def test_gradients():
    x = onp.asarray(M)
    for fun in (lambda x: onp.roll(x, 1).T, lambda x: onp.repeat(x, 2, 1),
                lambda x: onp.sort(x, 1), lambda x: onp.pad(x, 1, "reflect"),
                lambda x: onp.concatenate([x, x * 2]), lambda x: onp.take(x, V[:3] % 3, 0)):
        weights = np.linspace(1, 2, fun(x).size).reshape(fun(x).shape).astype(np.float32)
        step = np.random.default_rng(1).normal(size=M.shape).astype(np.float32)
        grad = np.asarray(olympus.grad(lambda x: (fun(x) * weights).sum())(x))
        eps = 1e-2
        ahead, behind = [float((fun(x + s * eps * step) * weights).sum()) for s in (1, -1)]
        assert abs((grad * step).sum() - (ahead - behind) / (2 * eps)) < 2e-2


ERRORS = [
    (lambda: onp.reshape(onp.ones(4), (3, -1)), TypeError, "cannot reshape"),
    (lambda: onp.reshape(onp.ones(4), (-1, -1)), TypeError, "only specify one unknown"),
    (lambda: onp.concatenate([]), ValueError, "Need at least one array"),
    (lambda: onp.concatenate([onp.float32(1), onp.float32(2)]), ValueError, "Zero-dimensional"),
    (lambda: onp.stack([onp.ones(2), onp.ones(3)]), ValueError, "same shape"),
    (lambda: onp.squeeze(onp.ones(3), 0), ValueError, "not equal to one"),
    (lambda: onp.split(onp.ones(5), 2), ValueError, "equal division"),
    (lambda: onp.broadcast_to(onp.ones(3), (2,)), ValueError, "ncompatible"),
    (lambda: onp.swapaxes(onp.ones(3), 0, 1), ValueError, "out of bounds"),
    (lambda: onp.pad(onp.ones(3), -1), ValueError, "negative"),
    (lambda: onp.pad(onp.ones(3), 1, "nothing"), ValueError, "mode"),
    (lambda: onp.searchsorted(onp.ones((2, 2)), 1), ValueError, "1-dimensional"),
    (lambda: onp.take(onp.ones(3), onp.ones(2)), TypeError, "integer dtype"),
    (lambda: onp.choose(onp.array([3]), [onp.ones(1)]), ValueError, "invalid entry"),
]


@pytest.mark.parametrize("call, error, message", ERRORS, ids=[e[2] for e in ERRORS])
def test_errors(call, error, message):
    with pytest.raises(error, match=message):
        call()


# Many arrays


JOINS = {
    "concatenate": (lambda o, xs: o.concatenate(xs), (2, 3)),
    "concatenate-axis": (lambda o, xs: o.concatenate(xs, axis=1), (2, 3)),
    "concatenate-flat": (lambda o, xs: o.concatenate(xs, None), (2, 3)),
    "concatenate-dtype": (lambda o, xs: o.concatenate(xs, dtype="int16"), (2,)),
    "concat": (lambda o, xs: o.concat(xs, axis=-1), (2, 3)),
    "stack": (lambda o, xs: o.stack(xs), (2, 3)),
    "stack-last": (lambda o, xs: o.stack(xs, -1), (2, 3)),
    "stack-scalars": (lambda o, xs: o.stack(xs), ()),
    "vstack": (lambda o, xs: o.vstack(xs), (3,)),
    "hstack": (lambda o, xs: o.hstack(xs), (2, 3)),
    "hstack-vectors": (lambda o, xs: o.hstack(xs), (3,)),
    "hstack-scalars": (lambda o, xs: o.hstack(xs), ()),
    "dstack": (lambda o, xs: o.dstack(xs), (2, 3)),
    "column_stack": (lambda o, xs: o.column_stack(xs), (3,)),
    "block": (lambda o, xs: o.block(list(xs)), (2, 3)),
    "array": (lambda o, xs: o.array(xs), (2, 3)),
    "array-scalars": (lambda o, xs: o.array(xs), ()),
    "array-dtype": (lambda o, xs: o.array(xs, "int16"), (3,)),
    "array-nested": (lambda o, xs: o.array([xs, xs]), (3,)),
}


@pytest.mark.parametrize(("case", "kinds"), [
    *((case, "i") for case in JOINS), *((case, "if") for case in JOINS if "dtype" not in case)])
def test_many_arrays_are_joined_as_numpy_does_by_programs_of_few_operands(
        case, kinds, monkeypatch):
    """Regression: XLA compiled a program of all operands, in seconds for 2,000 of them."""
    join, shape = JOINS[case]
    first = np.arange(6)[:int(np.prod(shape))].reshape(shape)
    made = [first.astype(kinds[i % len(kinds)] + "4") + i for i in range(150)]
    operands, compile_ = [], lib.compile

    def counted(client, module, *args, **kwargs):
        operands.extend(len(op.operands) for function in module.body.operations
                        for op in function.regions[0].blocks[0].operations)
        return compile_(client, module, *args, **kwargs)

    monkeypatch.setattr(lib, "compile", counted)
    got = join(onp, list(map(onp.asarray, made)))
    expected = join(np, made)
    assert got.dtype == {"i8": "i4", "f8": "f4"}.get(expected.dtype.str[1:], expected.dtype)
    assert not got.weak_type
    np.testing.assert_array_equal(got, expected)
    assert all(n <= 64 for n in operands)


def test_many_arrays_keep_what_they_are():
    weak = [onp.asarray(float(i)) for i in range(100)]
    assert weak[0].weak_type and onp.stack(weak).weak_type and not onp.array(weak).weak_type
    assert lax.concatenate([x.reshape(1) for x in weak], 0).weak_type
    device = olympus.devices()[0]
    there = [olympus.device_put(x, device) for x in weak]
    assert onp.stack(there).committed and onp.array(there).committed
    assert not onp.stack(weak).committed and not onp.array(weak).committed
    keys = list(olympus.random.split(olympus.random.key(0), 70))
    data = np.stack([olympus.random.key_data(k) for k in keys])
    np.testing.assert_array_equal(olympus.random.key_data(onp.stack(keys)), data)
    np.testing.assert_array_equal(olympus.random.key_data(onp.array(keys)), data)
    weak[70].delete()
    for join in (onp.stack, onp.array, lambda xs: lax.stack(xs)):
        with pytest.raises(RuntimeError, match="deleted"):
            join(weak)
    with pytest.raises((TypeError, ValueError), match=r"shape|sizes"):
        onp.concatenate([onp.ones((1, 2))] * 80 + [onp.ones((1, 3))])


def test_derivatives_of_many_arrays_joined():
    xs = [onp.asarray(float(i)) for i in range(70)]
    for join in (onp.stack, onp.array, lambda ys: onp.concatenate([y[None] for y in ys])):
        found = olympus.grad(lambda ys, join=join: (join(ys) * onp.arange(70.0)).sum())(xs)
        assert list(map(float, found)) == list(range(70))
        mapped = olympus.vmap(lambda y, join=join: join([y, *xs]))(onp.arange(3.0))
        np.testing.assert_array_equal(mapped[:, 0], np.arange(3.0))
        np.testing.assert_array_equal(mapped[:, 1:], np.tile(np.arange(70.0), (3, 1)))


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [
    (70000, 70000), (2**20, 2**20, 3), (3, 2**40), (2**40, 3), (65536, 32768), (2**16, 2**16, 2)])
def test_unravel_index_of_a_shape_with_more_elements_than_the_indices_count(shape, order):
    end = np.prod(shape, dtype=np.int64)
    for dtype in (np.int32, np.uint32):
        places = np.array([7, 0, 2**31 - 2, min(np.iinfo(dtype).max, end - 1)], dtype)
        found = onp.unravel_index(places, shape, order=order)
        assert {a.dtype for a in found} == {np.dtype(dtype)}
        np.testing.assert_array_equal(found, np.unravel_index(places, shape, order=order))
    if max(shape) < 2**31:      # negative places count from the end
        found = onp.unravel_index(np.array([-1, -2**31]), shape, order=order)
        np.testing.assert_array_equal(found, np.unravel_index(end + [-1, -2**31], shape, order))


@pytest.mark.parametrize("side", ["left", "right"])
def test_searchsorted_at_sizes_around_powers_of_two(side):
    rng = np.random.default_rng(0)
    for n in (1, 3, 4, 7, 8):
        a = np.sort(rng.integers(0, 9, n).astype("f4"))
        a[n - n // 3:] = np.nan
        v = np.array([-1, 0, 3, 4.5, 8, 9, np.inf, np.nan], "f4")
        np.testing.assert_array_equal(
            onp.searchsorted(a, v, side=side), np.searchsorted(a, v, side=side), err_msg=str(n))


def test_a_search_with_two_readers_is_one_loop():
    """XLA:CPU made an array of each step: interp took three times as long."""
    def search(a, v):
        i = onp.searchsorted(a, v)
        return i, i * 2

    lines = olympus.jit(search).lower(onp.arange(9.0), onp.ones(5)).as_text().splitlines()
    (held,) = [line for line in lines if "call @held" in line]
    assert 'inlineable = "false"' in held
    np.testing.assert_array_equal(olympus.vmap(search, (None, 0))(
        onp.arange(9.0), onp.array([[2.5], [8.5]]))[1], [[6], [18]])


def test_derivatives_of_parts_are_joined():
    """They were padded with zeros and added, which took a sixth of the time of an LSTM's step."""
    def f(x):
        a, b, c = onp.split(x, [1, 3], 1)
        return (a * b[:, :1]).sum() - (c * c).sum()

    program = olympus.make_olympuspr(olympus.grad(lambda x: f(x)))(M)
    names = [eqn.primitive.name for eqn in program.olympuspr.eqns]
    assert "concatenate" in names and names.count("pad") <= 1
    expected = np.concatenate([M[:, 1:2], M[:, :1], np.zeros((3, 1)), -2 * M[:, 3:]], 1)
    np.testing.assert_allclose(olympus.grad(f)(M), expected, rtol=1e-6)


def test_elements_of_all_places_inserted_and_deleted() -> None:
    """Beyond the ends, traced places insert at the nearer one, and delete none."""
    x, n = np.arange(12.0, dtype=np.float32).reshape(3, 4), 4
    at = np.arange(-n, n + 1)
    values = np.array([[7.0], [8.0], [9.0]], np.float32)
    put, gone = compiled(olympus.vmap(lambda i: (
        onp.insert(x, i, onp.asarray(values[:, 0]), 1), onp.delete(x, i, 1))))(np.r_[at, 9, -9])
    for i, k in enumerate(at):
        np.testing.assert_array_equal(put[i], np.insert(x, k, values[:, 0], 1))
        np.testing.assert_array_equal(gone[i], np.delete(x, k, 1) if k < n else x[:, :-1])
    np.testing.assert_array_equal(put[-2:], [np.c_[x, values], np.c_[values, x]])
    np.testing.assert_array_equal(gone[-2:], [x[:, :-1]] * 2)
    runs = slice(1, 3), slice(3, 0, -1), np.array([2, 1, 2]), slice(0, 4)
    left = compiled(lambda x: [onp.delete(x, run, 1) for run in runs])(x)
    for y, run in zip(left, runs):
        np.testing.assert_array_equal(y, np.delete(x, run, 1))


@pytest.mark.parametrize("shape", [(3,), (4, 2), (2, 3, 4), (2, 0, 3), (3, 2, 1, 2), (2, 3, 2, 2)])
def test_an_array_is_joined_by_no_operation_for_each_slice(shape: tuple[int, ...],
                                                           rng: np.random.Generator) -> None:
    x, rank = rng.standard_normal(shape).astype(np.float32), len(shape)
    calls = [(name, ()) for name in ("vstack", "hstack", "dstack", "column_stack")]
    calls += [("stack", (axis,)) for axis in range(-rank, rank)]
    calls += [("concatenate", (axis,)) for axis in range(1 - rank, rank - 1)]
    calls += [("concatenate", (None,))] if rank > 1 else []
    every = lambda x: [getattr(onp, name)(x, *axis) for name, axis in calls]
    for (name, axis), found in zip(calls, compiled(every)(x), strict=True):
        wanted = getattr(np, name)([*x], *axis)
        np.testing.assert_array_equal(found, wanted, f"{name}{axis}")
    assert len(olympus.make_olympuspr(every)(x).eqns) <= 4 * len(calls)
    with pytest.raises(ValueError, match="Zero-dimensional arrays cannot be concatenated"):
        onp.concatenate(onp.ones(3))
    for name in ("concatenate", "stack", "vstack", "hstack", "dstack", "column_stack"):
        with pytest.raises(ValueError, match=f"{name}: no arrays given"):
            getattr(onp, name)(x[:0])
