"""The seam to jaxlib: arrays of every dtype, programs, the fast path, what is missing."""

import contextlib
import gc
import os
import subprocess
import sys
import threading
import warnings
import weakref
from pathlib import Path

import ml_dtypes
import numpy as np
import pytest

from olympus._src.base import config, lib, util
from olympus._src.base.lib import loading

NUMPY_DTYPES = [
    "bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
    "float16", "float32", "float64", "complex64", "complex128",
]
EXTENDED = [
    "bfloat16", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz", "float8_e4m3", "float8_e3m4",
    "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu", "int4", "uint4", "int2", "uint2",
]
DTYPES = [np.dtype(n) for n in NUMPY_DTYPES] + [np.dtype(getattr(ml_dtypes, n)) for n in EXTENDED]


@pytest.fixture(scope="module")
def client():
    return lib.make_cpu_client(4)


@pytest.fixture
def device(client):
    return client.devices()[0]


def aval_of(x):
    return lib.ShardAval(x.shape, x.dtype)


def put(x, device, **options):
    return lib.device_put(aval_of(x), x, device, **options)


def module(body, signature="%a: tensor<4xf32>", result="tensor<4xf32>"):
    return lib.mlir.parse(
        "module @jit_f attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} { "
        f"func.func public @main({signature}) -> ({result}) {{ {body} }} }}"
    )


def double():
    return module("%0 = stablehlo.add %a, %a : tensor<4xf32> return %0 : tensor<4xf32>")


def run(executable, *xs, out=None):
    device = executable.local_devices()[0]
    aval = aval_of(xs[0]) if out is None else out
    handler = lib.result_handler(aval, lib.single_device_sharding(device))
    return lib.to_numpy(lib.execute(executable, [put(x, device) for x in xs], [handler])[0])


def python(code, *flags):
    return subprocess.run(
        [sys.executable, *flags, "-c", code], capture_output=True, text=True, timeout=120
    )


def test_linear_algebra_leaves_most_of_scipy_where_it_is():
    done = python("""
import sys, olympus.numpy as onp
assert onp.linalg.solve(onp.eye(2) * 2, onp.ones(2))[0] == 0.5
assert not [name for name in sys.modules if name.startswith("scipy.linalg")]
import scipy.linalg, scipy.linalg.cython_blas, scipy.linalg.cython_lapack
print("dgemm" in scipy.linalg.cython_blas.__pyx_capi__, scipy.linalg.eigvalsh([[2.0]])[0],
      onp.linalg.eigvalsh(onp.eye(2) * 3)[0])""")
    assert done.stdout.split() == ["True", "2.0", "3.0"], done.stderr


# --- arrays -------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 3)], ids=str)
def test_every_dtype_goes_in_and_out(dtype, shape, device):
    x = np.asarray(np.arange(np.prod(shape, dtype=int)).reshape(shape) % 2).astype(dtype)
    y = lib.to_numpy(put(x, device))
    assert y.dtype == dtype
    assert y.shape == shape
    assert y.tobytes() == x.tobytes()
    assert not y.flags.writeable


def test_put_copies_unless_told_not_to(device):
    x = np.zeros(1 << 12, np.float32)
    array = put(x, device)
    x[:] = 1
    assert lib.to_numpy(array).sum() == 0
    y = np.zeros(1 << 12 | 16, np.float32)
    y = y[-y.ctypes.data % 64 // 4 :][: 1 << 12]  # aligned as XLA wants it
    assert lib.unsafe_buffer_pointer(put(y, device, copy=False)) == y.ctypes.data


@pytest.mark.parametrize("view", [lambda x: x.T, lambda x: x[::-1], lambda x: x[:, ::2]])
def test_put_takes_strided_arrays(view, device):
    x = view(np.arange(12.0).reshape(3, 4))
    np.testing.assert_array_equal(lib.to_numpy(put(x, device)), x)


def test_put_keeps_64_bits_whatever_the_option_says(device):
    assert not config.enable_x64.value
    assert lib.to_numpy(put(np.float64([1e-300]), device))[0] == 1e-300


def test_put_takes_arrays_and_committed_is_kept(client):
    first, second = client.devices()[:2]
    array = put(np.arange(3), first, committed=False)
    assert not array._committed
    moved = lib.device_put(array.aval, array, second)
    assert moved._committed
    assert moved._sharding is lib.single_device_sharding(second)
    np.testing.assert_array_equal(lib.to_numpy(moved), [0, 1, 2])


def test_reading_shares_memory(device):
    array = put(np.arange(1000.0), device)
    assert lib.to_numpy(array).ctypes.data == lib.unsafe_buffer_pointer(array)
    assert lib.to_numpy(array).ctypes.data == lib.to_numpy(array).ctypes.data


def test_the_value_outlives_the_array(device):
    value = lib.to_numpy(put(np.arange(1 << 16), device))
    gc.collect()
    assert value[-1] == (1 << 16) - 1


def test_deleted_array_is_refused(client):
    device, other = client.devices()[:2]
    array = put(np.arange(3), device)
    array.delete()
    with pytest.raises(RuntimeError, match="copy_to_device: Array has been deleted"):
        lib.copy_to_device(array, other)
    with pytest.raises(RuntimeError, match="to_numpy: Array has been deleted .*donate"):
        lib.to_numpy(array)
    read = put(np.arange(3), device)
    lib.to_numpy(read)
    read.delete()
    with pytest.raises(RuntimeError, match="to_numpy: Array has been deleted"):
        lib.to_numpy(read)


def test_copy_to_device_and_async_copy_to_host(client):
    first, second = client.devices()[:2]
    array = put(np.arange(3), first)
    moved = lib.copy_to_device(array, second)
    lib.copy_to_host_async(moved)
    lib.block_until_ready([array, moved])
    np.testing.assert_array_equal(lib.to_numpy(moved), [0, 1, 2])
    same, copied = lib.copy_to_device(array, first), lib.copy_to_device(array, first, copy=True)
    assert lib.unsafe_buffer_pointer(same) == lib.unsafe_buffer_pointer(array)
    assert lib.unsafe_buffer_pointer(copied) != lib.unsafe_buffer_pointer(array)


def test_one_sharding_per_device(client):
    first, second = client.devices()[:2]
    assert lib.single_device_sharding(first) is lib.single_device_sharding(first)
    assert lib.single_device_sharding(first) != lib.single_device_sharding(second)


SHARDINGS = {
    "rows": lambda: lib.HloSharding.iota_tile((4, 1)),
    "blocks": lambda: lib.HloSharding.iota_tile((2, 2)),
    "transposed": lambda: lib.HloSharding.iota_tile((2, 2), (2, 2), (1, 0)),
    "replicated": lambda: lib.HloSharding.replicate(),
}


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("layout", SHARDINGS)
def test_sharded_arrays_assemble_and_come_apart(layout, dtype, client):
    devices = client.devices()
    sharding = lib.GSPMDSharding(lib.DeviceList(tuple(devices)), SHARDINGS[layout]())
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    x = np.arange(32).reshape(8, 4).astype(dtype)
    slices = lib.shard_slices(sharding, x.shape)
    parts = [put(np.ascontiguousarray(x[s]), d) for s, d in zip(slices, devices, strict=True)]
    array = lib.make_array(aval_of(x), sharding, parts)
    np.testing.assert_array_equal(lib.to_numpy(array), x)
    assert not lib.to_numpy(array).flags.writeable
    lib.copy_to_host_async(array)
    for part, s in zip(lib.shards(array), slices, strict=True):
        assert part.aval.shape == x[s].shape
        np.testing.assert_array_equal(lib.to_numpy(part), x[s])
    assert sys.modules.get("jax") is None


def test_numpy_takes_a_capsule_and_gives_one(device):
    array = put(np.arange(6, dtype=np.float32).reshape(2, 3), device)
    back = lib.from_dlpack(lib.to_dlpack(array), device, lib.ShardAval)
    assert back.aval == lib.ShardAval((2, 3), np.dtype("float32"))
    assert lib.unsafe_buffer_pointer(back) == lib.unsafe_buffer_pointer(array)
    x = np.arange(5)
    np.testing.assert_array_equal(
        lib.to_numpy(lib.from_dlpack(x.__dlpack__(), device, lib.ShardAval)), x
    )


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint32", "complex64", "bfloat16"])
def test_capsules_carry_the_dtype(dtype, device):
    x = np.ones(3, getattr(ml_dtypes, dtype, dtype))
    capsule = lib.to_dlpack(put(x, device))
    assert lib.from_dlpack(capsule, device, lib.ShardAval).aval == aval_of(x)


# --- programs -----------------------------------------------------------------------------------


@pytest.mark.parametrize("form", [lambda m: m, lib.mlir.bytecode], ids=["module", "bytecode"])
def test_compile_and_execute(form, client, device):
    executable = lib.compile(client, form(double()), [device])
    assert isinstance(executable, lib.LoadedExecutable)
    np.testing.assert_array_equal(run(executable, np.arange(4, dtype=np.float32)), [0, 2, 4, 6])


def test_compile_on_another_device(client):
    executable = lib.compile(client, double(), [client.devices()[3]])
    assert run(executable, np.ones(4, np.float32)).tolist() == [2] * 4


def test_compiler_options(client, device):
    options = {"xla_cpu_enable_fast_math": False, "xla_llvm_disable_expensive_passes": True}
    lib.compile(client, double(), [device], options=options)
    with pytest.raises(ValueError, match="compile: got compiler option 'xla_no_such_flag'; .*flag"):
        lib.compile(client, double(), [device], options={**options, "xla_no_such_flag": 1})


def test_analyses(client, device):
    executable = lib.compile(client, double(), [device])
    assert lib.cost_analysis(executable)["flops"] == 4
    stats = lib.memory_stats(executable)
    assert (stats.argument_size_in_bytes, stats.output_size_in_bytes) == (16, 16)
    assert "ENTRY" in lib.hlo_text(executable)
    assert lib.hlo_cost_analysis(client, lib.mlir.hlo_module(double()))["flops"] == 4
    for metadata in (False, True):
        assert lib.mlir.hlo_module_text(double(), metadata).startswith("HloModule jit_f")


def test_an_executable_survives_as_bytes(client, device):
    blob = lib.serialize_executable(lib.compile(client, double(), [device]))
    again = lib.deserialize_executable(client, blob, [device])
    assert run(again, np.ones(4, np.float32)).tolist() == [2] * 4
    with pytest.raises(lib.XlaRuntimeError):
        lib.deserialize_executable(client, b"not one", [device])


def callback_module():
    return module(
        '"stablehlo.custom_call"(%a) '
        f'<{{call_target_name = "{lib.python_callback_target("cpu")}", api_version = 4 : i32, '
        "backend_config = {index = 0 : ui64}, has_side_effect = true}> : (tensor<4xf32>) -> () "
        "return %a : tensor<4xf32>"
    )


@pytest.mark.parametrize("form", [lambda m: m, lib.mlir.bytecode], ids=["module", "bytecode"])
def test_an_error_of_a_callback_is_raised_not_lost(form, client, device):
    def callback(x):
        raise ValueError("boom")

    executable = lib.compile(client, form(callback_module()), [device], host_callbacks=[callback])
    with pytest.raises(lib.XlaRuntimeError, match="boom"):
        run(executable, np.ones(4, np.float32))


def test_python_callback_and_its_token(client, device):
    seen = []
    call = callback_module()

    def callback(x):
        seen.append(np.array(x))
        return ()

    executable = lib.compile(client, call, [device], host_callbacks=[callback])
    x = np.arange(4, dtype=np.float32)
    handler = lib.result_handler(aval_of(x), lib.single_device_sharding(device))
    (out,), token = lib.execute_with_tokens(executable, [put(x, device)], [handler])
    token.block_until_ready()
    assert lib.to_numpy(out).tolist() == seen[0].tolist() == [0, 1, 2, 3]
    with pytest.raises(NotImplementedError, match="python_callback_target: got platform 'tpu'"):
        lib.python_callback_target("tpu")


@pytest.mark.parametrize("dtype, prefix", [("float32", "s"), ("complex128", "z")])
def test_lapack(dtype, prefix, client, device):
    target = lib.lapack_target("potrf", dtype)
    assert target == f"lapack_{prefix}potrf_ffi"
    ty = {"float32": "f32", "complex128": "complex<f64>"}[dtype]
    cholesky = module(
        f'%0:2 = "stablehlo.custom_call"(%a) <{{call_target_name = "{target}", '
        "api_version = 4 : i32, backend_config = {uplo = 76 : ui8}, "
        "operand_layouts = [dense<[0, 1]> : tensor<2xindex>], "
        "result_layouts = [dense<[0, 1]> : tensor<2xindex>, dense<> : tensor<0xindex>]}> : "
        f"(tensor<2x2x{ty}>) -> (tensor<2x2x{ty}>, tensor<i32>) return %0#0 : tensor<2x2x{ty}>",
        f"%a: tensor<2x2x{ty}>",
        f"tensor<2x2x{ty}>",
    )
    x = np.array([[4, 2], [2, 5]], dtype)
    got = run(lib.compile(client, cholesky, [device]), x)
    np.testing.assert_allclose(np.tril(got), [[2, 0], [1, 2]])


def test_lapack_refuses_what_it_has_not():
    with pytest.raises(TypeError, match="lapack_target: got kernel 'potrf' for int32; .*convert"):
        lib.lapack_target("potrf", np.int32)


def test_an_unknown_custom_call_is_an_error(client, device):
    call = module('%0 = stablehlo.custom_call @no_such(%a) : (tensor<4xf32>) -> tensor<4xf32> '
                  "return %0 : tensor<4xf32>")
    with pytest.raises(lib.XlaRuntimeError, match="no_such"):
        lib.compile(client, call, [device])


def test_fast_path_runs_without_python(client, device):
    registry = lib.PyTreeRegistry(
        enable_none=True, enable_tuple=True, enable_namedtuple=True, enable_list=True,
        enable_dict=True,
    )
    executable = lib.compile(client, double(), [device])
    sharding = lib.single_device_sharding(device)
    aval = lib.ShardAval((4,), np.dtype(np.float32))
    misses = []

    def cache_miss(x):
        misses.append(x)
        (out,) = lib.execute(executable, [x], [lib.result_handler(aval, sharding)])
        tree = registry.flatten(0)[1]
        fast = lib.fastpath(executable, tree, [sharding], [sharding], [aval], [True], [True],
                            [False])
        return out, fast, False

    fun = lib.pjit("f", lambda x: x, cache_miss, [], [], object(), registry, lambda *a: a)
    x = put(np.ones(4, np.float32), device)
    for _ in range(3):
        assert lib.to_numpy(fun(x)).tolist() == [2] * 4
    assert len(misses) == 1
    with config.enable_x64(True):  # a key of the C++ cache
        fun(x)
    assert len(misses) == 2
    with config.disable_jit():
        assert fun(x) is x


# --- mlir ---------------------------------------------------------------------------------------


def test_one_context_for_all_threads():
    made = []
    threads = [threading.Thread(target=lambda: made.append(lib.mlir.context())) for _ in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert all(c is lib.mlir.context() for c in made)


def test_chlo_is_legalised_and_the_artifact_travels(client, device):
    erf_inv = module(
        "%0 = chlo.erf_inv %a : tensor<4xf32> -> tensor<4xf32> return %0 : tensor<4xf32>"
    )
    assert "chlo" in str(erf_inv)
    lib.mlir.legalize_chlo(erf_inv)
    assert "chlo" not in str(erf_inv)
    artifact = lib.mlir.serialize_portable_artifact(erf_inv)
    back = lib.mlir.deserialize_portable_artifact(artifact)
    x = np.linspace(-0.5, 0.5, 4, dtype=np.float32)
    got, expected = (run(lib.compile(client, m, [device]), x) for m in (back, erf_inv))
    np.testing.assert_array_equal(got, expected)


def test_the_reference_interpreter_agrees(client, device):
    x = np.arange(4, dtype=np.float32)
    (expected,) = lib.mlir.eval_module(double(), [x])
    np.testing.assert_array_equal(run(lib.compile(client, double(), [device]), x), expected)


def test_malformed_text_is_an_error():
    with pytest.raises(Exception, match="custom op 'nonsense' is unknown"):
        lib.mlir.parse("nonsense")


# --- loading ------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["0.10.2", "0.11.2", "0.12.0", "0.12.0.1"])
def test_tested_versions_are_silent(version):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        loading.check_version(version)


@pytest.mark.parametrize("version", ["0.9.9", "0.10.1", "0.12.1", "0.12.1.dev20260101", "1.0"])
def test_other_versions_warn(version):
    with pytest.warns(RuntimeWarning, match=f"found jaxlib {version}; tested with .* to 0.12"):
        loading.check_version(version)


def test_no_jaxlib_names_the_install_command():
    done = python("import sys; sys.modules['jaxlib'] = None; import olympus._src.base.lib")
    assert done.returncode == 1
    assert 'ImportError: olympus: needs jaxlib' in done.stderr
    assert 'pip install "jaxlib>=0.10.2,<=0.12.0.1"' in done.stderr


def pool_threads():
    """The threads of XLA's pools that have a name, those within a computation."""
    found = set()
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):    # it has just ended
            if Path(f"/proc/self/task/{thread}/comm").read_text().strip() == "tf_XLAEigen":
                found.add(int(thread))
    return found


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no priorities of threads")
@pytest.mark.parametrize("told, cores, count, lower", [
    (None, 1, 8, 10), (None, 2, 8, 0), ("3", 1, 3, 0)], ids=["more", "as many", "told"])
def test_threads_of_devices_that_share_cores(told, cores, count, lower, monkeypatch):
    """Four per device, which give way where cores are fewer; the user's setting wins."""
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: range(cores))
    monkeypatch.delenv("NPROC", raising=False)
    monkeypatch.delenv("PJRT_NPROC", raising=False)
    if told:
        monkeypatch.setenv("PJRT_NPROC", told)
    before, environment = pool_threads(), dict(os.environ)
    client = lib.make_cpu_client(2)
    assert os.environ == environment
    made = pool_threads() - before
    assert (len(client.devices()), len(made)) == (2, count)
    own = os.getpriority(os.PRIO_PROCESS, 0)
    assert {os.getpriority(os.PRIO_PROCESS, t) for t in made} == {min(own + lower, 19)}


FAKE_JAX = """
import sys, types, warnings
warnings.simplefilter("always")
late = {late}
if not late: sys.modules["jax"] = types.ModuleType("jax")
from olympus._src.base import lib
if late: sys.modules["jax"] = types.ModuleType("jax")
lib.make_cpu_client(); lib.make_cpu_client()
"""


@pytest.mark.parametrize("late", [False, True])
def test_jax_in_the_process_warns_once(late):
    done = python(FAKE_JAX.format(late=late))
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("RuntimeWarning: olympus: jax is imported in the same process") == 1


def test_import_is_lean_and_quiet():
    done = python(
        "import sys; from olympus._src.base import lib, config; c = lib.make_cpu_client()\n"
        "print([m for m in sys.modules if m.startswith(('jaxlib.mlir', 'scipy', 'jax.'))])\n"
        "lib.mlir.context(); print('jaxlib.mlir.ir' in sys.modules, 'jax' in sys.modules)"
    )
    assert done.stdout.split("\n")[:2] == ["[]", "True False"]
    assert done.stderr == ""


def test_guard_hides_jax_and_leaves_no_trace():
    assert "jax" not in sys.modules
    with lib.no_jax(), lib.no_jax(), pytest.raises(ImportError):
        __import__("jax")
    assert "jax" not in sys.modules
    with pytest.raises(KeyError), lib.no_jax():
        raise KeyError
    assert "jax" not in sys.modules


def test_no_libtpu_says_what_to_install(monkeypatch, tmp_path):
    monkeypatch.setenv("TPU_LIBRARY_PATH", str(tmp_path / "libtpu.so"))
    with pytest.raises(RuntimeError, match=r"load_plugin: found no libtpu \(/.*pip install"):
        lib.plugins.make_plugin_client("tpu", {})


def test_no_gpu_plugin_says_what_to_install():
    if util.importlib.util.find_spec("jax_plugins") is not None:
        pytest.skip("a GPU plugin is installed")
    with pytest.raises(RuntimeError, match="load_plugin: found no CUDA plugin; .*pip install"):
        lib.plugins.make_plugin_client("cuda", {})


# --- util ---------------------------------------------------------------------------------------


def test_bit_keys():
    values = [1, 1.0, True, 0.0, -0.0, 1j, np.float32(1), np.int32(1), np.float32(-0.0), None]
    values += [complex(0.0, -0.0), 0j, np.bool_(True), ml_dtypes.bfloat16(1)]
    assert len({util.bit_key(v) for v in values}) == len(values)
    assert util.bit_key(float("nan")) == util.bit_key(float("nan"))
    assert util.bit_key(np.float32("nan")) == util.bit_key(np.float32("nan"))


def test_memo_is_bounded_and_cleared():
    memo = util.Memo(2)
    for k in "abc":
        memo[k] = k
    assert dict(memo) == {"b": "b", "c": "c"}
    calls = []

    @util.memoize(maxsize=2)
    def square(x):
        calls.append(x)
        return x * x

    assert [square(2), square(2), square(2.0)] == [4, 4, 4.0]
    assert calls == [2, 2.0]
    util.clear_all()
    assert not memo
    square(2)
    assert calls == [2, 2.0, 2]


def test_memos_do_not_outlive_their_owner():
    memo = util.Memo(1)
    memo[0] = 0
    assert memo in util._caches
    left = weakref.ref(memo)
    del memo
    gc.collect()
    assert left() is None


def test_cut_keeps_the_rest():
    assert util.cut([1, 2, 3], 0, 1) == [[], [1], [2, 3]]
    assert util.cut((1, 2), 2) == [[1, 2], []]


def test_lazy_imports_bind_modules_that_load_on_first_use():
    code = """
import sys
from olympus._src.base.util import lazy_imports
with lazy_imports(__name__):
    import colorsys
    from xml.dom import minidom as dom, pulldom
loaded = {"colorsys", "xml.dom.minidom", "xml.dom.pulldom"}
assert not loaded & set(sys.modules)
assert colorsys.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0) and dom.parseString("<a/>")
print(sorted(loaded & set(sys.modules)), pulldom.__name__)
import textwrap     # imports after it are those of Python
textwrap.dedent("")
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['colorsys', 'xml.dom.minidom'] xml.dom.pulldom\n"


def test_lazy_module_loads_on_first_use():
    module = util.lazy_module("colorsys")
    assert module.rgb_to_hsv(0, 0, 0) == (0.0, 0.0, 0)
    with pytest.raises(AttributeError, match="no_such"):
        module.no_such  # noqa: B018
