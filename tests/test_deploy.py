"""Exports for other engines, run by these where they are installed (pip install 'olympus[deploy]').
"""

import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import export

BIN = Path(sys.executable).parent
RUN = shutil.which("iree-run-module", path=str(BIN)) or shutil.which("iree-run-module")
iree = pytest.mark.skipif(RUN is None, reason="IREE is not installed")
X = np.linspace(-2, 2, 80, dtype=np.float32).reshape(2, 40)
W = np.random.default_rng(0).normal(size=(40, 30)).astype(np.float32)


def predict(x, unused):
    return {"p": olympus.nn.softmax(onp.tanh(x @ W)), "n": onp.argmax(x @ W, -1)}


def run_iree(folder, path, name, args, outs, *flags):
    """What a function of a compiled module returns, by IREE's own program."""
    for i, x in enumerate(args):
        np.save(folder / f"in{i}.npy", x)
    names = [folder / f"out{i}.npy" for i in range(outs)]
    subprocess.run(
        [RUN, f"--module={path}", "--device=local-task", f"--function={name}", *flags,
         *(f"--input=@{folder / f'in{i}.npy'}" for i in range(len(args))),
         *(f"--output=@{out}" for out in names)], check=True, capture_output=True, timeout=60)
    return [np.load(out) for out in names]


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
    n, p = run_iree(tmp_path, path, "predict", [X], 2, *flags)
    logits = np.tanh(X.astype(np.float64) @ W)
    e = np.exp(logits - logits.max(-1, keepdims=True))
    np.testing.assert_allclose(p, e / e.sum(-1, keepdims=True), rtol=1e-4)
    np.testing.assert_array_equal(n, (X @ W).argmax(-1))
    clipped, = run_iree(tmp_path, path, "clipped", [X], 1, *flags)
    np.testing.assert_array_equal(clipped, X.clip(0, 1))
    if parameters:
        assert W.tobytes() in weights.read_bytes() and W.tobytes() not in path.read_bytes()


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
        found, = run_iree(tmp_path, path, "main", [x], 1)
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
    found, = run_iree(tmp_path, path, "main", [x], 1)
    np.testing.assert_allclose(found, x**2 + 1e-9, rtol=1e-15)


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


def run_onnx(path, *args):
    """What a model returns, by ONNX Runtime, once ONNX's own checker has passed it."""
    onnx, runtime = pytest.importorskip("onnx"), pytest.importorskip("onnxruntime")
    onnx.checker.check_model(str(path), full_check=True)
    options = runtime.SessionOptions()
    options.log_severity_level = 3
    session = runtime.InferenceSession(path, options)
    return session.run(None, dict(zip([i.name for i in session.get_inputs()], args, strict=True)))


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


@pytest.mark.parametrize("fun, shapes", [
    (images, [(2, 8, 8, 3), (3, 3, 3, 4)]), (loops, [(2, 7)]),
    (lambda x, y: onp.einsum("bij,bkj->bik", x, y), [(2, 3, 4), (2, 5, 4)]),
    (lambda x: (onp.expm1(x), onp.arctan2(x, x - 1), x.any(), onp.cumsum(x), x[::-1]), [(6,)]),
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


def test_what_onnx_has_not_is_listed(tmp_path):
    def f(x):
        return onp.fft.rfft(x), onp.linalg.cholesky(x)

    exported = export.export(olympus.jit(f))(np.eye(4, dtype=np.float32))
    with pytest.raises(NotImplementedError, match=r"custom call .lapack_spotrf_ffi.*stablehlo.fft"):
        export.to_onnx(exported, tmp_path / "f.onnx")
    both = export.export(olympus.jit(onp.sin), platforms=("cpu", "cuda"))(X)
    with pytest.raises(ValueError, match="for 1 devices and the platforms cpu, cuda"):
        export.to_onnx(both, tmp_path / "x.onnx")
