"""Backends: the CPU client, and clients of GPUs and TPUs through PJRT plugins, without `jax`."""

from __future__ import annotations

import contextlib
import ctypes
import functools
import importlib
import importlib.util
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from olympus._src.base.lib.calls import connect_plugin
from olympus._src.base.lib.loading import _jax, jaxlib_version, warn_if_jax_loaded, xla_client
from olympus._src.base.util import lazy_module

if TYPE_CHECKING:
    from olympus._src.base.array_type import Device

Client: Any = _jax.Client
PluginOptions = Mapping[str, str | int | list[int] | float | bool]
_futures: Any = lazy_module("concurrent.futures")
_glob: Any = lazy_module("glob")
_metadata: Any = lazy_module("importlib.metadata")
# Libraries of the NVIDIA wheels that the plugin links by name, in the order they need each other.
_PRELOAD = (
    "libcudart.so", "libnvrtc.so", "libcublasLt.so", "libcublas.so", "libcupti.so",
    "libnvJitLink.so", "libcusparse.so", "libcusolver.so", "libcufft.so", "libnccl.so",
    "libnvshmem_host.so", "libcudnn.so",
)
_CUDA_VERSIONS = ("13", "12")
_DEVICE_COUNT = r"--xla_force_host_platform_device_count=(\d+)"


def make_cpu_client(num_devices: int | None = None, **options: object) -> object:
    """Start the CPU backend with `num_devices` devices (None: as XLA_FLAGS says, or one).

    `options` are for jaxlib's own function: whether it is `asynchronous`; of a job of several
    processes, `distributed_client`, `node_id`, `num_nodes`, `collectives` and time-outs.
    """
    warn_if_jax_loaded()
    # This also connects the queue of custom calls registered so far.
    make = functools.partial(xla_client.make_cpu_client, num_devices=num_devices, **options)
    if num_devices is None:
        counts = re.findall(_DEVICE_COUNT, os.environ.get("XLA_FLAGS", ""))
        num_devices = int(counts[-1]) if counts else 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    # XLA reads these when it makes its pools, then.
    told = "NPROC" in os.environ or "PJRT_NPROC" in os.environ
    if told or num_devices == 1 or 4 * num_devices <= (cores or 1):
        return make()
    with _threads(4 * num_devices):
        return _in_the_background(make) if num_devices > (cores or 1) else make()


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let the CPU client have threads for launches beside those that its devices compute on.

    A launch holds a thread of XLA's pool while 32 computations of its device are under way. With as
    many threads as devices, which is XLA's default on a machine with few cores, a collective then
    lacks a thread to compute on, and those launches wait for it: the process ends by XLA's
    time-out. With four per device, there is room for the launches of three threads of Python.
    """
    os.environ["PJRT_NPROC"] = str(count)
    try:
        yield
    finally:
        del os.environ["PJRT_NPROC"]


def _in_the_background(make: Callable[[], object]) -> object:
    """Call `make` so that the threads it starts give way to the one that launches.

    Threads of a pool look for work for a while before they sleep. Where they outnumber the cores,
    the thread that they have just finished a launch for waits until they do: a small program on 8
    devices took 210 us with 32 threads on 2 cores and 110 with 8, and takes 45 with this. All
    together they have the weight of one thread or so beside other processes.
    """
    if sys.platform != "linux":     # where alone threads have priorities of their own
        return make()
    made = _futures.Future()

    def run() -> None:
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + 10)
        try:
            made.set_result(make())
        except BaseException as error:
            made.set_exception(error)

    # Priorities are inherited, and only root may take one back: hence a thread for this alone.
    threading.Thread(target=run, name="olympus-client", daemon=True).start()
    return made.result()


def topology(platform: str, name: str, options: dict[str, object]) -> list[Device] | None:
    """Return the devices of a topology, to compile for only; None where no plugin is loaded."""
    plugins = {"gpu": "cuda"}
    if not _jax.pjrt_plugin_loaded(plugins.get(platform, platform)):
        return None
    found = _jax.get_default_c_api_topology(plugins.get(platform, platform), name, options)
    return found._make_compile_only_devices()


def _find_cuda_plugin() -> tuple[str, Path]:
    """Return the CUDA version and the plugin library of the installed wheels."""
    remedy = f'pip install "jax-cuda13-plugin[with-cuda]=={jaxlib_version}"'
    for version in _CUDA_VERSIONS:
        try:
            spec = importlib.util.find_spec(f"jax_plugins.xla_cuda{version}")
        except ModuleNotFoundError:
            spec = None
        if spec is None or spec.origin is None:
            continue
        library = Path(spec.origin).parent / "xla_cuda_plugin.so"
        if not library.exists():
            continue
        for wheel in ("pjrt", "plugin"):
            name = f"jax-cuda{version}-{wheel}"
            try:
                found = _metadata.version(name)
            except _metadata.PackageNotFoundError:
                found = "none"
            if found != jaxlib_version:
                raise RuntimeError(
                    f"make_gpu_client: found {name} {found} beside jaxlib {jaxlib_version}; one "
                    f"version is required; install it with: {remedy}"
                )
        return version, library
    raise RuntimeError(
        "make_gpu_client: found no CUDA plugin; a GPU needs the wheels jax-cuda13-pjrt and "
        f"jax-cuda13-plugin of jaxlib's own version; install them with: {remedy}"
    )


def _preload_nvidia_libraries() -> None:
    """Load the NVIDIA wheels' libraries, so that the plugin finds them without LD_LIBRARY_PATH."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec is not None else []
    for name in _PRELOAD:
        for path in sorted(p for root in roots for p in _glob.glob(f"{root}/*/lib/{name}*")):
            try:
                ctypes.cdll.LoadLibrary(path)
            except OSError:
                continue  # The system's own copy may serve; if none does, the plugin says which.
            break


@functools.cache
def _load_cuda_plugin() -> None:
    """Load the plugin once per process and give it jaxlib's custom calls."""
    version, library = _find_cuda_plugin()
    _preload_nvidia_libraries()
    api = _jax.load_pjrt_plugin("cuda", os.fspath(library), c_api=None)
    extension = importlib.import_module(f"jax_cuda{version}_plugin.cuda_plugin_extension")
    xla_client.register_custom_type_handler(
        "CUDA", functools.partial(extension.register_custom_type, api)
    )
    xla_client.register_custom_call_handler(
        "CUDA", functools.partial(extension.register_custom_call_target, api)
    )
    for name, value in extension.ffi_types().items():
        xla_client.register_custom_type(name, value, platform="CUDA")
    for name, value in extension.ffi_handlers().items():
        xla_client.register_custom_call_target(name, value, platform="CUDA", api_version=1)
    for module in ("gpu_solver", "gpu_linalg", "gpu_prng", "gpu_sparse"):
        kernels = importlib.import_module(f"jaxlib.{module}").registrations().get("CUDA", [])
        for name, value, api_version in kernels:
            xla_client.register_custom_call_target(
                name, value, platform="CUDA", api_version=api_version
            )
    importlib.import_module("jaxlib.gpu_rnn")  # registers its own
    connect_plugin(api)
    _jax.initialize_pjrt_plugin("cuda")
    importlib.import_module("jaxlib._profiler").register_plugin_profiler(api)


def make_gpu_client(options: PluginOptions, distributed_client: object = None) -> object:
    """Start the CUDA backend; RuntimeError where the plugin or a device is absent.

    `options` are the plugin's; those about memory come from the environment (XLA_PYTHON_CLIENT_…).
    """
    warn_if_jax_loaded()
    _load_cuda_plugin()
    memory = xla_client.generate_pjrt_gpu_plugin_options()
    return xla_client.make_c_api_client("cuda", {**memory, **options}, distributed_client)


@functools.cache
def _load_tpu_plugin() -> None:
    """Load libtpu's plugin once per process. No TPU has run this."""
    path = os.environ.get("TPU_LIBRARY_PATH")
    if path is None:
        spec = importlib.util.find_spec("libtpu")
        if spec is not None and spec.origin is not None:
            path = os.fspath(Path(spec.origin).parent / "libtpu.so")
    if path is None or not os.path.exists(path):
        raise RuntimeError(
            f"make_tpu_client: found no libtpu ({path or 'not installed'}); a TPU needs it; "
            "install it with: pip install libtpu, or name the file by TPU_LIBRARY_PATH."
        )
    _jax.load_pjrt_plugin("tpu", path, c_api=None)
    _jax.initialize_pjrt_plugin("tpu")


def make_tpu_client(options: PluginOptions, distributed_client: object = None) -> object:
    """Start the TPU backend through libtpu; RuntimeError where that or a device is absent.

    Written after the plugins' interface; no TPU has run it.
    """
    warn_if_jax_loaded()
    _load_tpu_plugin()
    return xla_client.make_c_api_client("tpu", {**options}, distributed_client)
