"""Reductions and windows beyond their rows: edges, dtypes, ties, NaN, errors by message."""

import itertools

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import export, grad, jit, jvp, lax, vmap
from olympus._src.control import reduce as _reduce

X = np.array([[3.0, 1.0, 2.0], [0.5, 4.0, -1.0]], np.float32)
POINTS = lax.ScatterDimensionNumbers((), (0,), (0,))


def sums(x, window, strides, pads):
    """Windowed sums in loops, pads negative or not."""
    shape = [(n + lo + hi - w) // s + 1 for n, (lo, hi), w, s in zip(
        x.shape, pads, window, strides, strict=True)]
    out = np.zeros([max(n, 0) for n in shape], x.dtype)
    for at in np.ndindex(*out.shape):
        for offset in itertools.product(*map(range, window)):
            spot = [a * s + o - lo for a, s, o, (lo, _) in zip(at, strides, offset, pads,
                                                               strict=True)]
            if all(0 <= p < n for p, n in zip(spot, x.shape, strict=True)):
                out[at] += x[tuple(spot)]
    return out


@pytest.mark.parametrize("pads", [((0, 0), (0, 0)), ((2, 1), (0, 3)), ((-1, 0), (0, -1)),
                                  ((-2, 4), (1, 1)), ((-1, -1), (0, 0)), ((-3, 9), (0, 0))])
@pytest.mark.parametrize("window", [(1, 1), (2, 2)])
def test_padding_of_every_sign(window, pads):
    x = np.arange(20, dtype=np.float32).reshape(4, 5)
    expected = sums(x, window, (1, 2), pads)
    np.testing.assert_array_equal(
        lax.reduce_window(x, 0.0, lax.add, window, (1, 2), pads), expected)
    sizes = lax.reduce_window_shape_tuple(x.shape, window, (1, 2), pads)
    assert sizes == expected.shape
    ct = np.random.default_rng(0).integers(-5, 5, expected.shape).astype(np.float32)
    back, = olympus.vjp(lambda x: lax.reduce_window(x, 0.0, lax.add, window, (1, 2), pads), x)[1](
        onp.asarray(ct))
    assert np.sum(np.asarray(back) * x) == np.sum(expected * ct)


def test_an_unknown_size_of_windows_is_0() -> None:
    assert lax.reduce_window_shape_tuple((-1, 8), (1, 2), (1, 2), ((0, 0), (1, 0))) == (0, 4)
    assert lax.reduce_window_shape_tuple((-1, 8), (1, 2), (1, 2), "VALID") == (0, 4)


@pytest.mark.parametrize("shape", [(0,), (3,)])
def test_no_elements(shape):
    x = np.ones(shape, np.float32)
    for fold, init in ((lax.add, 0.0), (lax.max, -np.inf), (lambda a, b: a + b + a * b, 0.0)):
        out = lax.reduce_window(x, init, fold, (4,), padding=[(2, 2)])
        assert out.shape == (shape[0] + 1,)
        assert lax.reduce_window(x, init, fold, (4,)).shape == (0,)
        assert grad(lambda x, f=fold, i=init: lax.reduce_window(x, i, f, (4,)).sum())(x).shape == (
            shape)
        np.testing.assert_array_equal(lax.reduce(x[:0], init, fold, (0,)), np.float32(init))
    assert lax.reduce_window(np.float32(2), 0.0, lax.add, ()) == 2


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "float16", "bfloat16",
                                   "float8_e4m3fn", "float32", "complex64"])
def test_dtypes(dtype):
    x = onp.asarray([1, 0, 1, 1]).astype(dtype)
    zero = np.zeros((), x.dtype)
    if dtype != "bool":
        added = lax.reduce_window(x, zero, lax.add, (2,))
        assert added.dtype == x.dtype
        np.testing.assert_array_equal(np.asarray(added).astype(complex), [1, 1, 2])
        assert lax.reduce(x, zero, lax.add, (0,)) == 3
    else:
        np.testing.assert_array_equal(lax.reduce_window(x, False, lax.bitwise_or, (2,)),
                                      [True, True, True])
        assert not lax.reduce(x, True, lax.bitwise_and, (0,))
    top = lax.reduce_window(x, zero, lax.max, (2,))
    assert top.dtype == x.dtype
    np.testing.assert_array_equal(np.asarray(top).astype(complex), [1, 1, 1])


def test_a_known_monoid_is_its_own_primitive():
    def names(f):
        return [e.primitive.name for e in olympus.make_olympuspr(f)(X).eqns]

    assert names(lambda x: lax.reduce(x, 0.0, lambda a, b: b + a, (0,))) == ["reduce_sum"]
    assert names(lambda x: lax.reduce(x, -np.inf, onp.maximum, (0,))) == ["reduce_max"]
    assert names(lambda x: lax.reduce(x, 0.0, lambda a, b: a + a, (0,))) == ["reduce"]
    assert names(lambda x: lax.reduce(x, 0.0, lambda a, b: a - b, (0,))) == ["reduce"]
    assert names(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 2))) == ["reduce_window_sum"]
    assert names(lambda x: lax.reduce_window(x, 0.0, lax.sub, (1, 2))) == ["reduce_window"]


def test_the_derivative_goes_to_the_first_of_equals_and_to_nan():
    def peak(x):
        return lax.reduce_window(x, -np.inf, lax.max, (3,), padding="SAME").sum()

    np.testing.assert_array_equal(grad(peak)(np.float32([2, 2, 2])), [2, 1, 0])
    np.testing.assert_array_equal(grad(peak)(np.float32([1, np.nan, 3])), [0, 3, 0])
    np.testing.assert_array_equal(grad(peak)(np.full(3, -np.inf, np.float32)), [2, 1, 0])
    tangent = jvp(lambda x: lax.reduce_window(x, -np.inf, lax.max, (1,), padding=[(1, 0)]),
                  (np.float32([5.0]),), (np.float32([7.0]),))[1]
    np.testing.assert_array_equal(tangent, [0, 7])


def test_second_derivatives():
    def f(x):
        return (lax.reduce_window(x, -np.inf, lax.max, (2, 2)) ** 3).sum()

    def g(x):
        return (grad(f)(x) * X).sum()

    peaks = np.zeros_like(X)
    peaks[0, 0] = 0
    peaks[1, 1] = 2     # the peak of both windows
    np.testing.assert_allclose(grad(g)(X), peaks * 6 * X * X)


def test_mapped_initial_values():
    inits = np.float32([0.0, 0.5])
    x = np.stack([X, X + 1])

    def fold(a, b):
        return a + b + a * b

    for f in (lambda x, i: lax.reduce(x, i, fold, (0,)),
              lambda x, i: lax.reduce_window(x, i, fold, (2, 2), padding="SAME")):
        out = jit(vmap(f))(x, inits)
        for k in (0, 1):
            np.testing.assert_allclose(out[k], f(x[k], inits[k]), rtol=1e-6)
    np.testing.assert_allclose(
        vmap(lambda i: lax.reduce(X, i, lax.add, (0, 1)))(inits), X.sum() + inits)
    programs = [olympus.make_olympuspr(f)(0.0, 0.0) for f in (lax.ge, lax.add)]

    def scatter(init):
        return lax.select_and_scatter_p.bind(
            X, np.float32([[10, 20]]), init, select_olympuspr=programs[0],
            scatter_olympuspr=programs[1], window_dimensions=(2, 2), window_strides=(1, 1),
            padding=((0, 0), (0, 0)))

    np.testing.assert_array_equal(vmap(scatter)(inits), [[[0, 0, 0], [0, 30, 0]],
                                                         [[0.5, 0.5, 0.5], [0.5, 30.5, 0.5]]])


def test_trees_of_operands():
    out = lax.reduce({"a": X, "b": X}, {"a": 0.0, "b": -np.inf},
                     lambda p, q: {"a": p["a"] + q["a"], "b": lax.max(p["b"], q["b"])}, (1,))
    np.testing.assert_allclose(out["a"], X.sum(1))
    np.testing.assert_array_equal(out["b"], X.max(1))
    low, high = lax.reduce_window((X, X), (np.inf, -np.inf), lambda p, q: (
        lax.min(p[0], q[0]), lax.max(p[1], q[1])), (2, 3))
    assert (low.item(), high.item()) == (-1, 4)


LARGER = {      # the larger of two numbers, by operations that no kernel of scalars has
    "loop": lambda a, b: lax.fori_loop(0, 2, lambda _, c: lax.max(c, b), a),
    "sort": lambda a, b: onp.sort(onp.stack([a, b]))[1],
    "index": lambda a, b: onp.stack([a, b])[onp.argmax(onp.stack([a, b]))],
    "called": jit(lambda a, b: lax.cond(
        a > b, lambda: a, lambda: lax.while_loop(lambda c: c < b, lambda c: c + 1, b))),
}


@pytest.mark.parametrize("name", LARGER)
def test_a_computation_with_other_operations_than_scalar_ones_gets_no_kernel(name):
    """Regression: XLA:CPU of jaxlib 0.10.2 did not survive it. It is traced here alone."""
    assert not _reduce._has_scalars_alone(olympus.make_olympuspr(LARGER[name])(0.0, 1.0))
    assert _reduce._has_scalars_alone(olympus.make_olympuspr(lax.max)(0.0, 1.0))


def test_a_computation_without_a_kernel_combines_the_same_elements(monkeypatch):
    monkeypatch.setattr(_reduce, "_has_scalars_alone", lambda program: False)
    larger = lambda a, b: lax.max(a, b) + 0
    np.testing.assert_array_equal(vmap(lambda x: lax.reduce(x, -np.inf, larger, (0,)))(X), X.max(1))
    np.testing.assert_array_equal(lax.reduce_window(X, -np.inf, larger, (2, 1))[0], X.max(0))
    doubled = lambda v: larger(v, 2 * v)
    np.testing.assert_array_equal(lax.scatter_apply(X[1], onp.array([[0], [2]]), doubled, POINTS,
                                                    update_shape=(2,)), [1, 4, -1])


@pytest.mark.parametrize("reduced", [
    lambda f: lax.reduce(X, np.float32(2), f, (1,)),
    lambda f: lax.reduce_window(X, np.float32(2), f, (1, 3))])
def test_a_jitted_monoid_takes_any_initial_value(reduced):
    """Regression: the call of the scalar program was applied to the whole result."""
    np.testing.assert_array_equal(reduced(jit(lambda a, b: lax.max(a, b))), reduced(lax.max))
    np.testing.assert_array_equal(reduced(jit(lambda a, b: lax.add(a, b))), reduced(lax.add))


def test_reductions_explain_themselves():
    with pytest.raises(TypeError, match=r"reduce: the computation must return the scalar types"):
        lax.reduce(X, 0.0, lambda a, b: a > b, (0,))
    with pytest.raises(TypeError, match="output must have the same tree structure"):
        lax.reduce(X, 0.0, lambda a, b: (a, b), (0,))
    with pytest.raises(TypeError, match="closes over a traced value"):
        jit(lambda x, y: lax.reduce(x, 0.0, lambda a, b: a + b * y, (0,)))(X, 2.0)
    with pytest.raises(TypeError, match=r"equal shapes are required"):
        lax.reduce((X, X[0]), (0.0, 0.0), lambda a, b: a, (0,))
    with pytest.raises(TypeError, match="to be scalars of the operands' dtypes"):
        lax.reduce(X, np.zeros(2, np.float32), lax.add, (0,))
    with pytest.raises(TypeError, match="to be scalars of the operands' dtypes"):
        lax.reduce(np.arange(3), 0.5, lax.add, (0,))
    with pytest.raises(ValueError, match="out of bounds"):
        lax.reduce(X, 0.0, lax.add, (2,))
    with pytest.raises(ValueError, match="duplicate"):
        lax.reduce(X, 0.0, lax.add, (0, 0))
    with pytest.raises(TypeError, match="no operands given"):
        lax.reduce((), (), lambda a, b: a, (0,))
    rows = olympus.ShapeDtypeStruct((*export.symbolic_shape("b"), 3), "float32")
    with pytest.raises(NotImplementedError, match=r"reduce: a computation with a loop, a sort"):
        export.export(jit(lambda x: lax.reduce(x, -np.inf, LARGER["sort"], (1,))))(rows)
    with pytest.raises(TypeError, match="reduce: 'x' of type str given; a NamedSharding"):
        lax.reduce(X, 0.0, lax.add, (0,), out_sharding="x")


@pytest.mark.parametrize(("change", "error", "message"), [
    ({"window_dimensions": (2,)}, TypeError, r"window_dimensions \(2,\) given for an operand"),
    ({"window_dimensions": (0, 1)}, ValueError, "positive entries"),
    ({"window_strides": (0, 1)}, ValueError, "positive entries"),
    ({"padding": "MIDDLE"}, ValueError, "padding 'MIDDLE' given"),
    ({"padding": 3}, TypeError, "pairs of ints"),
    ({"padding": [(0, 0)]}, TypeError, "one pair per axis"),
    ({"base_dilation": (1, -1)}, ValueError, "positive|negative"),
])
def test_windows_explain_themselves(change, error, message):
    arguments = {"window_dimensions": (1, 1), **change}
    with pytest.raises(error, match=message):
        lax.reduce_window(X, 0.0, lax.add, **arguments)
    with pytest.raises(TypeError, match="a name is required"):
        lax.padtype_to_pads((3,), (2,), (1,), ((0, 1),))


def test_scatter_apply():
    x = np.float32([1, 2, 3, 4])
    places = np.array([[3], [0], [9], [3]], np.int32)

    def apply(x, places, **options):
        return lax.scatter_apply(x, places, lambda v: v * v, POINTS, update_shape=(4,), **options)

    np.testing.assert_array_equal(apply(x, places), [1, 2, 3, 256])
    np.testing.assert_array_equal(apply(x, places, mode="clip"), [1, 2, 3, 65536])
    np.testing.assert_array_equal(grad(lambda x: apply(x, places).sum())(x), [2, 1, 1, 4 * 4**3])
    np.testing.assert_array_equal(
        grad(lambda x: apply(x, places[:2].repeat(2, 0)[::2].repeat(2, 0)).sum())(x),
        [4, 1, 1, 4 * 4**3])
    out = vmap(apply, (None, 0))(x, np.stack([places, places[::-1] * 0 + 1]))
    np.testing.assert_array_equal(out, [[1, 2, 3, 256], [1, 2.0**16, 3, 4]])
    z = np.complex64([1 + 2j, 3j])
    tangent = jvp(lambda z: lax.scatter_apply(z, places[1:2], lambda v: lax.conj(v) * v, POINTS,
                                              update_shape=(1,)), (z,), (z * 1j,))[1]
    np.testing.assert_allclose(tangent, [0, -3], atol=1e-6)
    with pytest.raises(TypeError, match="updates"):
        lax.scatter_apply(x, places, lambda v: v, POINTS, update_shape=(3,))


def test_one_hot_reads_zero_and_drops():
    rows = lax.GatherDimensionNumbers((1,), (0,), (0,))
    places = np.array([[1], [5]], np.int32)
    np.testing.assert_array_equal(lax.gather(X, places, rows, (1, 3), mode="one_hot"),
                                  [X[1], 0 * X[1]])
    np.testing.assert_array_equal(
        grad(lambda x: lax.gather(x, places, rows, (1, 3), mode="one_hot").sum())(X),
        [[0] * 3, [1] * 3])
    x = onp.asarray(X)
    np.testing.assert_array_equal(x.at[np.array([1, 7])].get(mode="one_hot"), [X[1], 0 * X[1]])
    np.testing.assert_array_equal(x.at[7].get(mode="one_hot"), 0 * X[1])
    np.testing.assert_array_equal(x.at[7].set(3, mode="one_hot"), X)
    assert lax.GatherScatterMode.from_any("one_hot") is lax.GatherScatterMode.ONE_HOT


@pytest.mark.parametrize(("size", "rank", "k", "recall", "whole", "kept"), [
    (3000, 1, 10, 0.95, -1, 2048), (300, 2, 2, 0.95, -1, 256), (129, 2, 1, 0.5, 517, 128),
    (129, 2, 5, 0.99, 517, 129), (255, 2, 2, 0.95, 10**6, 256), (1000, 2, 20, 0.95, 2000, 256),
    (5000, 1, 50, 0.99, -1, 5000), (100000, 1, 50, 0.99, -1, 7168), (90, 1, 3, 0.9, -1, 90)])
def test_sizes_of_approximate_searches(size, rank, k, recall, whole, kept):
    """Values of jaxlib's approx_top_k_reduction_output_size."""
    x = np.zeros((2,) * (rank - 1) + (size,), np.float32)
    out = jit(lambda x: lax.approx_max_k(x, k, -1, recall, whole, False)[1]).eval_shape(x)
    assert out.shape[-1] == kept


def test_best_k():
    x = np.float32([1, np.nan, 3, -np.inf])
    assert lax.approx_max_k(x, 2)[1].tolist() == [1, 2]
    assert lax.approx_min_k(x, 4)[1].tolist() == [3, 0, 2, 1]
    np.testing.assert_array_equal(grad(lambda x: lax.approx_min_k(x, 2)[0].sum())(x), [1, 0, 0, 1])
    mapped = vmap(lambda x: lax.approx_max_k(x, 3, aggregate_to_topk=False)[0], 1)
    assert mapped(np.zeros((3000, 2), np.float32)).shape == (2, 2048)
    for arguments, message in (({"k": 0}, "1 <= k"), ({"k": 5}, "1 <= k"),
                               ({"k": 1, "recall_target": 0.0}, "recall_target"),
                               ({"k": 1, "reduction_input_size_override": 2}, "override"),
                               ({"k": 1, "reduction_dimension": 1}, "out of bounds")):
        with pytest.raises(ValueError, match=message):
            lax.approx_max_k(x, **arguments)
    with pytest.raises(TypeError, match="floating"):
        lax.approx_max_k(np.arange(3), 1)


def test_stacking_and_facts():
    assert lax.unstack(np.zeros((0, 2))) == ()
    assert lax.stack([1.0, 2.0]).tolist() == [1, 2]
    assert vmap(lambda x, y: lax.stack([x, y], -1), (0, None))(X, X[0]).shape == (2, 3, 2)
    np.testing.assert_array_equal(vmap(lambda x: lax.unstack(x)[1], 1)(X), X[1])
    with pytest.raises(ValueError, match="no operands"):
        lax.stack([])
    with pytest.raises(TypeError, match="one shape and one dtype"):
        lax.stack([X, X[0]])
    with pytest.raises(TypeError, match="one shape and one dtype"):
        lax.stack([X, X.astype(np.int32)])
    with pytest.raises(ValueError, match="out of bounds"):
        lax.unstack(np.float32(1))
    assert lax.shape_as_value(()).shape == (0,)
    assert lax.dtype(True) == np.dtype("bool")
    with pytest.raises(ValueError, match="broadcast_like"):
        lax.broadcast_like(X, np.zeros(3))
    with pytest.raises(ValueError, match="broadcast_like"):
        lax.broadcast_like(X, np.zeros((2, 4)))


def test_a_sink_keeps_what_nothing_reads():
    def f(x):
        lax.dce_sink(x * 2)
        return x

    assert "mul" in str(olympus.make_olympuspr(jit(f))(1.0))
    assert (f(1.0), jit(f)(1.0), jit(grad(f))(2.0)) == (1, 1, 1)
    assert jit(vmap(f))(np.ones(3, np.float32)).shape == (3,)
