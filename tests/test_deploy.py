"""Exports for other engines, run by these where they are installed (pip install 'olympus[deploy]').
"""

import importlib.util
import sys

import edges
import engines
import numpy as np
import pytest
from engines import run_iree

import olympus
import olympus.numpy as onp
from olympus import export
from olympus._src.export import onnx_model

iree = pytest.mark.skipif(engines.IREE is None, reason="IREE is not installed")
onnx = pytest.mark.skipif(importlib.util.find_spec("onnx") is None, reason="onnx is not installed")
X = np.linspace(-2, 2, 80, dtype=np.float32).reshape(2, 40)
W = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)


def predict(x, unused):
    return {"p": olympus.nn.softmax(onp.tanh(x @ W)), "n": onp.argmax(x @ W, -1)}


@iree
@pytest.mark.slow
@pytest.mark.parametrize("parameters", [False, True])
def test_iree_runs_functions_of_one_file(tmp_path, parameters):
    exports = {"predict": export.export(olympus.jit(predict))(X, 1.0),
               "clipped": export.export(olympus.jit(lambda x: onp.clip(x, 0, 1)))(X)}
    path, weights = tmp_path / "two.vmfb", tmp_path / "two.safetensors"
    types = export.to_iree(exports, path, parameters=weights if parameters else None)
    assert types == {"predict": "(float32[2,40]) -> (int32[2], float32[2,30])",
                     "clipped": "(float32[2,40]) -> (float32[2,40])"}
    flags = [f"--parameters=model={weights}"] if parameters else []
    n, p = run_iree(path, "predict", [X], 2, *flags)
    logits = np.tanh(X.astype(np.float64) @ W)
    e = np.exp(logits - logits.max(-1, keepdims=True))
    np.testing.assert_allclose(p, e / e.sum(-1, keepdims=True), rtol=1e-4)
    np.testing.assert_array_equal(n, (X @ W).argmax(-1))
    clipped, = run_iree(path, "clipped", [X], 1, *flags)
    np.testing.assert_array_equal(clipped, X.clip(0, 1))
    if parameters:
        assert W.tobytes() in weights.read_bytes() and W.tobytes() not in path.read_bytes()


def run_onnx(path, *args):
    """What a model returns, by ONNX Runtime, once ONNX's own checker has passed it."""
    engines.check_onnx(path)
    pytest.importorskip("onnxruntime")
    return engines.run_onnx(path, *args)


def symbolic(x):
    return olympus.nn.softmax(onp.tanh(x @ W)).at[:, 1].mul(2), onp.arange(x.shape[0])


def softmax_of(x):
    """What `symbolic` gives, by NumPy."""
    e = np.exp(np.tanh(x.astype(np.float64) @ W))
    e /= e.sum(-1, keepdims=True)
    e[:, 1] *= 2
    return e


@iree
@pytest.mark.slow
def test_iree_keeps_sizes_open(tmp_path):
    spec = olympus.ShapeDtypeStruct(export.symbolic_shape("b, 40"), "float32")
    path = tmp_path / "s.vmfb"
    fun = olympus.jit(lambda x: olympus.nn.softmax(onp.tanh(x @ W)))
    assert export.to_iree(export.export(fun)(spec), path) == {
        "main": "(float32[b,40]) -> (float32[b,30])"}
    for x in (X, X[:1]):
        found, = run_iree(path, "main", [x], 1)
        want = softmax_of(x)
        want[:, 1] /= 2
        np.testing.assert_allclose(found, want, rtol=1e-4)


@iree
@pytest.mark.slow
def test_iree_computes_doubles_in_double(tmp_path):
    x, path = np.array([1 / 3, 2.0]), tmp_path / "d.vmfb"
    with olympus.enable_x64(True):
        exported = export.export(olympus.jit(lambda x: x**2 + 1e-9))(x)
    assert export.to_iree(exported, path) == {"main": "(float64[2]) -> (float64[2])"}
    found, = run_iree(path, "main", [x], 1)
    np.testing.assert_allclose(found, x**2 + 1e-9, rtol=1e-15)


@iree
@pytest.mark.slow
def test_indices_outside_of_an_array_do_not_end_iree(tmp_path):
    x, i = np.arange(12, dtype=np.float32).reshape(4, 3), np.array([0, 3, 9, -7, 10**8], np.int32)
    dims = olympus.lax.GatherDimensionNumbers((1,), (0,), (0,))

    def f(x, i):
        return (olympus.lax.gather(x, i[:, None], dims, (1, 3), mode="clip"), x.at[i].add(1),
                x.at[i, i].set(5), x.at[i.astype(onp.int8)].get(mode="fill", fill_value=7))

    path = tmp_path / "f.vmfb"
    export.to_iree(export.export(olympus.jit(f))(x, i), path)
    taken, added, put, filled = run_iree(path, "main", [x, i], 4)
    np.testing.assert_array_equal(taken, x[[0, 3, 3, 0, 3]])
    np.testing.assert_array_equal(added, x + np.array([[1], [0], [0], [1]]))
    want = x.copy()
    want[0, 0] = 5
    np.testing.assert_array_equal(put, want)
    np.testing.assert_array_equal(filled[[0, 1, 2, 3]], [x[0], x[3], [7] * 3, [7] * 3])


@onnx
def test_onnx_keeps_sizes_open(tmp_path):
    spec = olympus.ShapeDtypeStruct(export.symbolic_shape("b, 40"), "float32")
    types = export.to_onnx(export.export(olympus.jit(symbolic))(spec), tmp_path / "s.onnx")
    assert types == {"in0": "float32[b,40]", "out0": "float32[b,30]", "out1": "int32[b]"}
    for x in (X, X[:1]):
        found, count = run_onnx(tmp_path / "s.onnx", x)
        np.testing.assert_allclose(found, softmax_of(x), rtol=1e-4)
        np.testing.assert_array_equal(count, np.arange(len(x)))


def test_what_iree_has_not_is_refused_by_name(tmp_path):
    x = np.eye(3, dtype=np.float32)
    found = export.export(olympus.jit(onp.linalg.cholesky))(x)
    both = export.export(olympus.jit(onp.sin), platforms=("cpu", "cuda"))(x)
    with pytest.raises(NotImplementedError, match="custom calls lapack_spotrf_ffi"):
        export.to_iree(found, tmp_path / "x.vmfb", compiler=sys.executable)
    with pytest.raises(ValueError, match="for 1 devices and the platforms cpu, cuda"):
        export.to_iree(both, tmp_path / "x.vmfb", compiler=sys.executable)
    with pytest.raises(ValueError, match="target 'abacus' given"):
        export.to_iree(found, tmp_path / "x.vmfb", target="abacus")
    with pytest.raises(FileNotFoundError, match="no-such-compiler not found"):
        export.to_iree(both, tmp_path / "x.vmfb", compiler="no-such-compiler")
    with pytest.raises(RuntimeError, match="iree-compile refused main"):
        export.to_iree(export.export(onp.sin)(x), tmp_path / "x.vmfb", compiler=sys.executable)


def images(x, k):
    """Convolution, pooling, a dense layer and softmax; the likeliest class, and sorted scores."""
    y = olympus.lax.conv_general_dilated(x, k, (1, 1), "SAME",
                                         dimension_numbers=("NHWC", "HWIO", "NHWC"))
    y = olympus.lax.reduce_window(olympus.nn.gelu(y), -onp.inf, olympus.lax.max, (1, 2, 2, 1),
                                  (1, 2, 2, 1), "VALID")
    scores = olympus.nn.softmax(y.reshape(2, -1) @ onp.ones((64, 5)) * onp.arange(5))
    return onp.argmax(scores, -1), onp.sort(scores, -1), scores[:, onp.array([2, 0])]


def loops(x):
    """A loop, a branch, a scan, and updates in place."""
    n, y = olympus.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, x))
    z = olympus.lax.cond(y.sum() > 0, lambda: y, lambda: -y)
    s, ys = olympus.lax.scan(lambda c, v: (c + v, c * v), 0.0, z[0])
    return n, z.at[:, 1].add(s), ys, olympus.lax.dynamic_slice(z, (1, n), (1, 4))


@onnx
@pytest.mark.parametrize("fun, shapes", [
    (images, [(2, 8, 8, 3), (3, 3, 3, 4)]), (loops, [(2, 7)]),
    (lambda x, y: onp.einsum("bij,bkj->bik", x, y), [(2, 3, 4), (2, 5, 4)]),
    (lambda x: (onp.expm1(x), x.any(), onp.cumsum(x), x[::-1]), [(6,)]),
    # Its recurrence begins with 1e-290, which ONNX Runtime's optimiser takes for 0.
    (lambda x: olympus.scipy.special.jn(3, x), [(6,)]),
])
def test_onnx_runtime_computes_what_olympus_does(tmp_path, fun, shapes):
    args = [np.random.default_rng(i).normal(size=shape).astype(np.float32)
            for i, shape in enumerate(shapes)]
    types = export.to_onnx(export.export(olympus.jit(fun))(*args), tmp_path / "f.onnx")
    want = olympus.tree.leaves(fun(*args))
    assert len(types) == len(args) + len(want)
    for found, x in zip(run_onnx(tmp_path / "f.onnx", *args), want, strict=True):
        assert found.dtype == x.dtype
        np.testing.assert_allclose(found, x, rtol=1e-5, atol=1e-5)


E = edges.EDGES.astype(np.float32)
X1, Y1 = (g.astype(np.float32).ravel() for g in np.meshgrid(edges.FEW, edges.FEW))
KEYS = np.array([1, 0, 1, 0, 2, 0, 1, 0, np.nan, 1], np.float32)
GAPS = np.array([[1, np.nan, 3, 0], [-np.inf] * 4, [2, 5, np.nan, 7], [1, 2, 2, 1]], np.float32)
INTS = np.array([2**31 - 1, 5, 7, -3, 2**30, 12345], np.int32)
BY = np.array([0, -1, 1, 3, -2, 0], np.int32)
COMPLEX = np.array([1e30 + 1e30j, 1 + 2j, 3e-30 + 1j, 2j, np.inf, 1], np.complex64)
BELOW = np.array([1e30 - 1e30j, 0j, 1e-30 + 1e-30j, 2, 1 + 1j, np.inf], np.complex64)
HALVES = np.array([1.5, np.nan, -np.inf, -0.0], onp.bfloat16)
MANY = np.full(10**6, 0.1, np.float32)


def wrapped(x):
    """Integers of any size as int32."""
    return np.array((np.array(x, object) + 2**31) % 2**32 - 2**31).astype(np.int32)


def within(dtype):
    """Floats as integers of a dtype: the ends beyond them, 0 for NaN."""
    ends = np.iinfo(dtype)
    return lambda x: np.array([0 if np.isnan(v) else int(min(max(v, ends.min), ends.max))
                               for v in x.astype(np.float64)], dtype)


def running(x, pick):
    return pick.accumulate(x, 1)


def largest(x, k):
    """The first of equal numbers come first."""
    order = sorted(range(x.size), key=lambda i: -int(x[i]))[:k]
    return x[order], np.array(order, np.int32)


def quotient(x, y):
    """By whole numbers; by 0 it is -1 in XLA."""
    return np.array([-1 if b == 0 else int(a / b) for a, b in zip(x.tolist(), y.tolist())],
                    np.int32)


def rest(x, y):
    return np.array([a if b == 0 else a - b * int(a / b) for a, b in zip(x.tolist(), y.tolist())],
                    np.int32)


# What engines computed otherwise before to_iree and to_onnx wrote it out (docs/export.md); beside
# each program NumPy's in float64. The first word of a name says whose fault it was.
EDGE_ROWS = [
    ("iree: sorts are stable", lambda x: (onp.argsort(x), onp.argsort(-x)),
     lambda x: (np.argsort(x, kind="stable"), np.argsort(-x, kind="stable")), (KEYS,)),
    ("iree: the largest, among them NaN", lambda x: olympus.lax.top_k(x, 3),
     lambda x: (np.array([np.nan, 2, 1], np.float32), np.array([8, 4, 0], np.int32)), (KEYS,)),
    ("iree: the largest of integers", lambda x, y, z: [olympus.lax.top_k(v, 3) for v in (x, y, z)],
     lambda *given: [v for x in given for v in largest(x, 3)],
     (np.array([5, -3, 5, 2**31 - 1, -7, 0, 0], np.int32), np.array([5, 3, 255, 0, 3], np.uint8),
      np.array([7, 2**32 - 1, 7, 9], np.uint32))),
    ("iree: integers without a sign in reverse", lambda x, y: (x[::-1], onp.maximum(y, y[::-1])),
     lambda x, y: (x[::-1], np.maximum(y, y[::-1])),
     (np.array([5, 3, 255, 0], np.uint8), np.array([[7, 2**32 - 1], [9, 0]], np.uint32))),
    ("iree: powers", lambda x, y: x**y, lambda x, y: np.power(x.astype(float), y), (X1, Y1)),
    ("iree: angles", onp.arctan2, lambda y, x: np.arctan2(y.astype(float), x), (X1, Y1)),
    ("iree: waves of large numbers", lambda x: (onp.sin(x), onp.cos(x), onp.tan(x)),
     lambda x: (np.sin(x), np.cos(x), np.tan(x)), (E,)),
    ("iree: roots", onp.cbrt, np.cbrt, (E,)),
    ("both: numbers out of range", lambda x: [olympus.lax.convert_element_type(x, d) for d in (
        np.int8, np.uint8, np.int16, np.uint16, np.int32, np.uint32)],
     lambda x: [within(d)(x) for d in (np.int8, np.uint8, np.int16, np.uint16, np.int32,
                                       np.uint32)], (E,)),
    ("both: long sums", lambda x: (x.mean(), x.reshape(1000, 1000).sum(0)),
     lambda x: (x.mean(dtype=float), x.reshape(1000, 1000).sum(0, dtype=float)), (MANY,)),
    ("onnx: logarithms of sigmoid", lambda x: onp.log(olympus.nn.sigmoid(x)),
     lambda x: -np.log1p(np.exp(-x)), (np.array([-80, -20, -17, 0, 30], np.float32),)),
    ("onnx: sums and products wrap", lambda x: (x.sum(), x.reshape(2, 3).sum((0, 1)), x.prod(),
                                              x.reshape(2, 3).prod(0)),
     lambda x: (wrapped(sum(x.tolist())), wrapped(sum(x.tolist())),
                wrapped(np.prod(x.astype(object))),
                wrapped(x.reshape(2, 3).astype(object).prod(0))), (INTS,)),
    ("onnx: quotients", lambda x, y: (olympus.lax.div(x, y), olympus.lax.rem(x, y)),
     lambda x, y: (quotient(x, y), rest(x, y)), (INTS, BY)),
    ("onnx: extrema over windows", lambda x: (olympus.lax.cummax(x, 1), olympus.lax.cummin(x, 1)),
     lambda x: (running(x, np.maximum), running(x, np.minimum)), (GAPS,)),
    ("onnx: NaN among numbers", lambda x: (x.max(1), x.min(1), onp.argmax(x, 1), onp.argmin(x, 1),
                                           onp.ptp(x, 1)),
     lambda x: (x.max(1), x.min(1), x.argmax(1), x.argmin(1), np.ptp(x, 1)), (GAPS,)),
    ("onnx: extrema put in places", lambda x: (x.at[onp.array([0, 3, 3])].max(x[:3]),
                                               x.at[onp.array([0, 3, 3])].min(x[:3])),
     lambda x: tuple(np.concatenate([x[:3], pick.reduce(x[1:], 0)[None]])
                     for pick in (np.maximum, np.minimum)), (GAPS,)),
    ("onnx: NaN of 16 bits, and what is put in places", lambda x: (
        onp.sign(x), x[:4].at[onp.array([0, 3, 3])].max(x[4:7]),
        x[:4].at[onp.array([0, 3, 3])].add(x[4:7])),
     lambda x: (np.sign(x), np.array([2, np.nan, 1, np.inf]), np.array([3, np.nan, 1, np.nan])),
     (np.array([1, np.nan, 1, -np.inf, 2, np.inf, 0.5], np.float16),)),
    ("onnx: zeros keep their signs", lambda x: (
        onp.sign(x), onp.expm1(x), onp.log1p(abs(x)), olympus.lax.round(x), onp.trunc(x),
        onp.where(x < 1, x, 2 * x), onp.where(x < 1, x, 7), onp.where(~(x < 1), 7, x)),
     lambda x: (np.sign(x), np.expm1(x), np.log1p(abs(x)),
                np.copysign(np.floor(abs(x) + 0.5), x), np.trunc(x), np.where(x < 1, x, 2 * x),
                np.where(x < 1, x, 7), np.where(x < 1, x, 7)), (E,)),
]
ONLY_IREE = [
    ("iree: ranks of several keys", lambda x: onp.lexsort((x, onp.round(x / 2))),
     lambda x: np.lexsort((x, np.round(x / 2))), (KEYS[:8],)),
    ("iree: complex quotients and sizes", lambda x, y: (x / y, abs(x)),
     lambda x, y: (np.array([1j, complex(np.inf, np.inf), 0.5e30 + 0.5e30j, 1j,
                             complex(np.inf, -np.inf), 0]),
                   np.abs(x.astype(np.complex128))), (COMPLEX, BELOW)),
]


def check_edges(rows, results):
    """Compare the results of rows with their oracles: NaN, infinities, numbers, signs of zeros."""
    for name, _, oracle, args in rows:
        with np.errstate(all="ignore"):
            wanted = olympus.tree.leaves(oracle(*[
                x.astype(np.float64) if x.dtype == np.float32 else x for x in args]))
        for i, x in enumerate(wanted):
            found = next(results)
            tiny = np.abs(x) < np.finfo(np.float32).tiny if x.dtype.kind == "f" else False
            x = np.where(tiny, np.copysign(0, x), x) if np.any(tiny) else x
            with np.errstate(over="ignore"):
                want = np.asarray(x).astype(found.dtype)
            wrong = edges.difference(found, want, True)
            assert not wrong, (name, i, wrong, found, x)


@onnx
def test_onnx_runtime_computes_the_edges_of_formats(tmp_path):
    pytest.importorskip("onnxruntime")
    for row in EDGE_ROWS:
        export.to_onnx(export.export(olympus.jit(row[1]))(*row[3]), tmp_path / "e.onnx")
        check_edges([row], iter(run_onnx(tmp_path / "e.onnx", *row[3])))


@iree
@pytest.mark.slow
def test_iree_computes_the_edges_of_formats(tmp_path):
    rows = EDGE_ROWS + ONLY_IREE

    def every(*args):
        return [fun(*x) for (_, fun, _, _), x in zip(rows, args, strict=True)]

    exported = export.export(olympus.jit(every))(*[row[3] for row in rows])
    export.to_iree(exported, tmp_path / "e.vmfb")
    given = [x for row in rows for x in row[3]]
    check_edges(rows, iter(run_iree(tmp_path / "e.vmfb", "main", given, len(exported.out_avals))))


@onnx
def test_the_quotients_that_onnx_computes_have_harmless_divisors(tmp_path):
    # The least integer by -1 ends the process of ONNX Runtime 1.32, and by 0 it is an error. So the
    # model is asked what it divides by, and never has -1 and 0.
    path, proto = tmp_path / "q.onnx", pytest.importorskip("onnx")
    export.to_onnx(export.export(olympus.jit(olympus.lax.div))(INTS, BY), path)
    model = proto.load(path)
    divisor, = [node.input[1] for node in model.graph.node if node.op_type == "Div"]
    model.graph.output.append(proto.helper.make_tensor_value_info(divisor, 6, [len(BY)]))
    proto.save(model, path)
    _, found = run_onnx(path, INTS, BY)
    np.testing.assert_array_equal(found, [1, 1, 1, 3, -2, 1])


@onnx
def test_onnx_has_the_angle_of_every_quadrant_zero_and_infinity(tmp_path):
    ends = np.array([-np.inf, -2, -1, -0.0, 0.0, 1e-30, 0.5, 3, np.inf, np.nan], np.float32)
    y, x = map(np.ravel, np.meshgrid(ends, ends))
    export.to_onnx(export.export(olympus.jit(onp.arctan2))(y, x), tmp_path / "a.onnx")
    found, = run_onnx(tmp_path / "a.onnx", y, x)
    want = np.arctan2(y.astype(np.float64), x)
    np.testing.assert_allclose(found, want, rtol=1e-6)
    known = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(found[known]), np.signbit(want[known]))


@onnx
def test_onnx_takes_sums_and_extrema_of_narrow_integers_and_bools(tmp_path):
    x = np.array([[200, 100, 3], [7, 255, 9]], np.uint8)
    y = np.array([[1, 0], [0, 0], [1, 1]], bool)

    def f(x, y):
        return (x.sum(1, dtype=x.dtype), x.max(0), onp.argmax(x, 1),
                onp.cumsum(x, 1, dtype=x.dtype), olympus.lax.cummax(x, 1), -x, x @ x.T,
                (x > 8) @ y, onp.sort(x, 1))

    export.to_onnx(export.export(olympus.jit(f))(x, y), tmp_path / "f.onnx")
    want = (x.sum(1, dtype=x.dtype), x.max(0), x.argmax(1), x.cumsum(1, dtype=x.dtype),
            np.maximum.accumulate(x, 1), -x, x @ x.T, (x > 8) @ y, np.sort(x, 1))
    for found, wanted in zip(run_onnx(tmp_path / "f.onnx", x, y), want, strict=True):
        np.testing.assert_array_equal(found, wanted)


@onnx
def test_large_constants_of_onnx_go_to_a_file_beside_the_model(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    outer, inner = rng.normal(size=(2, 130, 130)).astype(np.float32)

    def f(x):       # one constant of the program, one of a loop's body
        return olympus.lax.fori_loop(0, 2, lambda _, y: onp.tanh(y @ inner), x @ outer)

    x = rng.normal(size=(3, 130)).astype(np.float32)
    exported = export.export(olympus.jit(f))(x)
    path, data = tmp_path / "f.onnx", tmp_path / "f.onnx.data"
    export.to_onnx(exported, path)
    assert not data.exists()
    whole, = run_onnx(path, x)
    monkeypatch.setattr(onnx_model, "INLINE_BYTES", outer.nbytes)
    export.to_onnx(exported, path)
    assert path.stat().st_size < 10_000
    assert all(w.tobytes() in data.read_bytes() for w in (outer, inner))
    found, = run_onnx(path, x)
    np.testing.assert_array_equal(found, whole)
    np.testing.assert_allclose(found, np.tanh(np.tanh(x @ outer @ inner) @ inner), rtol=1e-3)


@onnx
def test_onnx_has_constants_of_bfloat16_and_refuses_narrower_types_by_name(tmp_path):
    def f(x):
        return x + onp.asarray(HALVES).astype(onp.float32)

    export.to_onnx(export.export(olympus.jit(f))(HALVES.astype(np.float32)), tmp_path / "f.onnx")
    found, = run_onnx(tmp_path / "f.onnx", np.zeros(4, np.float32))
    np.testing.assert_array_equal(found, HALVES.astype(np.float32))
    for dtype, name in ((onp.float8_e4m3fn, "f8E4M3FN"), (onp.int4, "i4")):
        narrow = export.export(olympus.jit(lambda x: x.astype(onp.float32)))(onp.ones(3, dtype))
        with pytest.raises(NotImplementedError, match=f"an argument of {name}"):
            export.to_onnx(narrow, tmp_path / "f.onnx")


def test_what_iree_cannot_sort_is_refused(tmp_path):
    spec = olympus.ShapeDtypeStruct(export.symbolic_shape("b"), "float32")
    with pytest.raises(NotImplementedError, match="sort along an axis of unknown size"):
        export.to_iree(export.export(olympus.jit(onp.sort))(spec), tmp_path / "x.vmfb",
                       compiler=sys.executable)


def test_onnx_is_asked_for_where_it_is_missing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"pip install 'olympus\[onnx\]'"):
        export.to_onnx(export.export(olympus.jit(onp.sin))(X), tmp_path / "x.onnx")


def test_what_onnx_has_not_is_listed(tmp_path):
    def f(x):
        return onp.fft.rfft(x), onp.linalg.cholesky(x)

    exported = export.export(olympus.jit(f))(np.eye(4, dtype=np.float32))
    with pytest.raises(NotImplementedError, match=r"custom call .lapack_spotrf_ffi.*stablehlo.fft"):
        export.to_onnx(exported, tmp_path / "f.onnx")
    both = export.export(olympus.jit(onp.sin), platforms=("cpu", "cuda"))(X)
    with pytest.raises(ValueError, match="for 1 devices and the platforms cpu, cuda"):
        export.to_onnx(both, tmp_path / "x.onnx")
