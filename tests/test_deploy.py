"""Exports for other engines, run by these where they are installed (pip install 'olympus[deploy]').
"""

import importlib.util
import sys

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
