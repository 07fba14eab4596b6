"""Every family of functions on a GPU beside the CPU: a smoke suite of at most ten minutes.

It runs where a GPU and the plugin are, by `pytest tests/gpu -m ""`, and is "not run" elsewhere. To
try the suite itself without one, a second CPU device stands in:

    OLYMPUS_GPU_STAND_IN=1 OLYMPUS_NUM_CPU_DEVICES=2 pytest tests/gpu -m ""
"""

import importlib.util
import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import ops
import pytest
from properties import cast, of_kind, same

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus.sharding import AxisType, NamedSharding, PartitionSpec

STAND_IN = "OLYMPUS_GPU_STAND_IN" in os.environ
if not STAND_IN and importlib.util.find_spec("jax_plugins") is None:
    pytest.skip("not run: no CUDA plugin is installed here", allow_module_level=True)

CPU = olympus.devices("cpu")[0]
try:
    GPU = olympus.devices("cpu")[1] if STAND_IN else olympus.devices("gpu")[0]
except RuntimeError as error:
    pytest.skip(f"not run: {error}", allow_module_level=True)

MINUTES = 9.5
STARTED = time.monotonic()
# GPUs multiply with fewer bits by default.
PRECISION = olympus.default_matmul_precision("highest")
# Their rows name the mesh or the platform.
OWN_DEVICES = {"lax.with_sharding_constraint", "lax.reshard", "call_exported",
               "platform_dependent"}
CPU_ALONE = "(?s)kernel (gees|gehrd) on platform gpu given.* run this part on the CPU"
FAMILIES = [(table, op) for table, rows in ops.tables().items()
            for op in {op.name.split("-")[0]: op for op in reversed(rows)
                       if isinstance(op, ops.Op) and op.name not in OWN_DEVICES}.values()][::2]


@pytest.fixture(autouse=True)
def in_time():
    if time.monotonic() - STARTED > 60 * MINUTES:
        pytest.skip("not run: ten minutes are over")


def on_both(fun, *args):
    """What a compiled function returns on the GPU, and what on the CPU."""
    found = []
    for device in (GPU, CPU):
        with olympus.default_device(device), PRECISION:
            out = olympus.jit(fun)(*args)
            for x in olympus.tree.leaves(out):
                assert x.devices() == {device}
            found.append(olympus.device_get(out))
    return found


def loose(op):
    return max(20 * op.tol, 1e-4)


@pytest.mark.parametrize("n", [1, 7, 64])
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_linear_algebra(n, dtype):
    rng = np.random.default_rng(n)
    a = rng.normal(size=(2, n, n)) + (1j * rng.normal(size=(2, n, n)) if "c" in dtype else 0)
    with olympus.enable_x64(), olympus.default_device(GPU), PRECISION:
        a = onp.asarray(a, dtype)
        herm = a @ a.mT.conj() + n * onp.eye(n, dtype=dtype)
        tol = 1e-10 if dtype in ("float64", "complex128") else 2e-4
        parts = onp.linalg.cholesky(herm)
        same(parts @ parts.mT.conj(), herm, tol * n, tol * n)
        q, r = onp.linalg.qr(a)
        same(q @ r, a, tol * n, tol * n)
        u, s, vh = onp.linalg.svd(a)
        same((u * s[..., None, :]) @ vh, a, tol * n, tol * n)
        w, v = onp.linalg.eigh(herm)
        same((v * w[..., None, :]) @ v.mT.conj(), herm, tol * n, tol * n)
        same(herm @ onp.linalg.solve(herm, a), a, tol * n, tol * n)
        lu, _, order = lax.linalg.lu(a)
        lower = onp.tril(lu, -1) + onp.eye(n, dtype=dtype)
        same(lower @ onp.triu(lu), onp.take_along_axis(a, order[..., None], -2), tol * n, tol * n)


@pytest.mark.parametrize("impl", ["threefry2x32", "philox4x32", "rbg", "unsafe_rbg"])
def test_random(impl):
    def draw(seed):
        key = olympus.random.key(seed, impl=impl)
        bits = olympus.random.bits(key, (1000,))
        return bits if "rbg" not in impl else bits[:0], olympus.random.normal(key, (1000,))

    (bits, normal), (expected, normal_cpu) = on_both(draw, 3)
    assert np.array_equal(bits, expected)       # rbg's bits are the platform's own
    if "rbg" not in impl:
        same(normal, normal_cpu, 1e-5)
    assert abs(normal.mean()) < 0.2 and abs(normal.std() - 1) < 0.2


def test_control_flow():
    def f(x):
        y = lax.while_loop(lambda v: v[0] < 10, lambda v: (v[0] + 1, v[1] * 1.1), (0, x))[1]
        y = lax.cond(x[0] > 0, onp.sin, onp.cos, y)
        y, ys = lax.scan(lambda c, i: (c + i, c * i), y, onp.arange(5.0))
        return lax.fori_loop(0, 3, lambda i, v: v * 0.5, y), ys, lax.map(onp.tanh, x)

    x = np.linspace(-1, 2, 6, dtype=np.float32)
    same(*on_both(f, x), 1e-5)
    same(*on_both(olympus.grad(lambda x: lax.scan(
        lambda c, i: (onp.sin(c + i), None), x, onp.arange(5.0))[0].sum()), x), 1e-5)


def test_collectives_of_one_device():
    mesh = olympus.sharding.Mesh([GPU], "x", AxisType.Auto)
    x = olympus.device_put(np.arange(8.0), NamedSharding(mesh, PartitionSpec("x")))

    def f(x):
        return (lax.psum(x, "x"), lax.pmax(x, "x"), lax.all_gather(x, "x", tiled=True),
                lax.ppermute(x, "x", [(0, 0)]), lax.psum_scatter(x, "x", tiled=True),
                lax.all_to_all(x, "x", 0, 0, tiled=True))

    spec = PartitionSpec("x")
    for y in olympus.jit(olympus.shard_map(f, mesh=mesh, in_specs=spec, out_specs=spec,
                                           check_vma=False))(x):
        assert y.devices() == {GPU} and np.array_equal(y, np.arange(8.0))


def test_arrays_go_to_and_fro():
    x = np.arange(12, dtype=np.float32).reshape(3, 4)
    there = olympus.device_put(x, GPU)
    back = olympus.device_put(there, CPU)
    assert there.devices() == {GPU} and back.devices() == {CPU} and np.array_equal(back, x)
    donated = olympus.jit(lambda x: x + 1, donate_argnums=0)(there)
    assert there.is_deleted() and np.array_equal(donated, x + 1)
    kinds = {m.kind for m in GPU.addressable_memories()}
    if "pinned_host" in kinds:
        where = olympus.sharding.SingleDeviceSharding(GPU, memory_kind="pinned_host")
        assert np.array_equal(olympus.device_put(x, where), x)


def test_calls_of_the_host(capfd):
    def f(x):
        olympus.debug.print("x is {}", x.sum())
        struct = olympus.ShapeDtypeStruct(x.shape, x.dtype)
        return olympus.pure_callback(lambda x: np.asarray(x) * 2, struct, x)

    same(*on_both(f, np.ones(3, np.float32)), 0)
    olympus.effects_barrier()
    assert capfd.readouterr().out == "x is 3.0\n" * 2


@pytest.mark.skipif(STAND_IN, reason="not run: no GPU")
@pytest.mark.parametrize("variables", [
    {"XLA_PYTHON_CLIENT_PREALLOCATE": "false"}, {"XLA_CLIENT_MEM_FRACTION": "0.1"},
    {"XLA_PYTHON_CLIENT_ALLOCATOR": "platform"}, {"OLYMPUS_CUDA_VISIBLE_DEVICES": "0"}])
def test_options_of_memory(variables):
    code = "import olympus; d = olympus.devices('gpu'); print(len(d), (d[0].memory_stats() or {}))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True,
        env={**os.environ, **variables, "PYTHONPATH": str(Path(olympus.__file__).parent.parent)})
    assert done.stdout[0].isdigit()
    if "XLA_CLIENT_MEM_FRACTION" in variables:
        stats = eval(done.stdout.partition(" ")[2])
        assert 0 < stats["bytes_limit"] < 0.2 * GPU.memory_stats()["bytes_limit"] / 0.75


@pytest.mark.parametrize(("table", "op"), FAMILIES, ids=[f"{t}-{op.name}" for t, op in FAMILIES])
def test_values(table, op):
    kind = op.dtypes[0]
    with olympus.enable_x64(kind in "dz"):
        try:
            gpu, cpu = on_both(op.fun, *cast(op, kind))
        except NotImplementedError as error:
            assert re.search(CPU_ALONE, str(error)), error
            return
    same(gpu, cpu, loose(op))


GRADS = [(t, op) for t, op in FAMILIES if op.grad and op.dtypes[0] == "f"][::8]


@pytest.mark.parametrize(("table", "op"), GRADS, ids=[f"{t}-{op.name}" for t, op in GRADS])
def test_gradients(table, op):
    args = [of_kind(a, "f", i) if getattr(a, "dtype", None) == np.float64 else a
            for i, a in enumerate(op.args)]
    places = [i for i, a in enumerate(op.args) if getattr(a, "dtype", None) == np.float64]

    def total(*args):
        return sum(onp.sum(onp.abs(x) ** 2) for x in olympus.tree.leaves(op.fun(*args))
                   if onp.issubdtype(x.dtype, onp.inexact))

    gpu, cpu = on_both(olympus.grad(total, places), *args)
    same(gpu, cpu, 20 * loose(op))
