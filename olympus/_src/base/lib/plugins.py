"""PJRT plugins: libraries of devices that jaxlib itself does not know. Without `jax`.

A plugin has a name, a library that is loaded once, clients of the devices that are here, and
topologies: devices that are not here, for which programs compile.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import importlib.util
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from olympus._src.base.lib.calls import (
    connect_plugin, initialize_hybrid_kernels, register_batch_partitionable,
)
from olympus._src.base.lib.loading import _jax, jaxlib_version, warn_if_jax_loaded, xla_client
from olympus._src.base.util import lazy_imports

if TYPE_CHECKING:
    from olympus._src.base.array_type import Device

PluginOptions = Mapping[str, str | int | list[int] | float | bool]

with lazy_imports(__name__):
    import glob
    from importlib import metadata

# Libraries of the NVIDIA wheels that the plugin links by name, in the order they need each other.
_PRELOAD = (
    "libcudart.so", "libnvrtc.so", "libcublasLt.so", "libcublas.so", "libcupti.so",
    "libnvJitLink.so", "libcusparse.so", "libcusolver.so", "libcufft.so", "libnccl.so",
    "libnvshmem_host.so", "libcudnn.so",
)
_CUDA_VERSIONS = ("13", "12")
_ENTRY_POINT = b"GetPjrtApi"    # the function that a plugin's library exports
# libtpu's answers to its own questions about the slice, on a machine without one; and that several
# processes may compile, which share no device.
_NO_SLICE = {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost",
             "TPU_ACCELERATOR_TYPE": "v5litepod-4", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}
# By plugin: a machine with its devices has one of these files. PCI devices also have numbers.
_NODES = {"cuda": ("/dev/nvidia[0-9]*", "/dev/nvidiactl", "/dev/dxg"), "tpu": ("/dev/accel[0-9]*",)}
_GOOGLE, _TPUS = "0x1ae0", ("0x0027", "0x0056", "0x005e", "0x0062", "0x0063", "0x006f", "0x0076")


def add_plugin(name: str, library: str | os.PathLike[str] | None, c_api: object = None) -> None:
    """Let the plugin in a library, or of a C API, be loaded by a name when it is first needed."""
    path = None if library is None else os.fspath(library)
    _loaders[name] = functools.cache(functools.partial(_load_library, name, path, c_api))


def load_plugin(name: str) -> None:
    """Load a plugin once per process; RuntimeError, in words, where it cannot be."""
    loader = _loaders.get(name)
    if loader is None:
        raise RuntimeError(f"load_plugin: no PJRT plugin is called {name!r}; the ones that are: "
                           f"{', '.join(_loaders)}; register the path of its library.")
    loader()


def make_plugin_client(name: str, options: PluginOptions, distributed_client: object = None
                       ) -> object:
    """Start the backend of a plugin; RuntimeError where the plugin or a device is absent.

    `options` are the plugin's; CUDA's about memory come from the environment (XLA_PYTHON_CLIENT_…).
    """
    warn_if_jax_loaded()
    load_plugin(name)
    if name == "cuda":
        initialize_hybrid_kernels()
        options = {**xla_client.generate_pjrt_gpu_plugin_options(), **options}
    return xla_client.make_c_api_client(name, {**options}, distributed_client)


def topology(plugin: str, name: str, options: Mapping[str, object]) -> list[Device]:
    """Return the devices of a topology, to compile for only.

    RuntimeError where the plugin is absent, or does not know the topology.
    """
    load_plugin(plugin)
    description = _jax.get_default_c_api_topology(plugin, name, dict(options))
    return description._make_compile_only_devices()


def installed(plugin: str) -> bool:
    """Whether the wheels of "cuda" or "tpu" are found; they are not loaded."""
    names = [f"jax_cuda{v}_plugin" for v in _CUDA_VERSIONS] if plugin == "cuda" else ["libtpu"]
    return any(importlib.util.find_spec(name) for name in names)


def attached(plugin: str) -> bool:
    """Whether this machine seems to have a device of "cuda" or "tpu"; nothing is started."""
    if any(glob.glob(pattern) for pattern in _NODES[plugin]):
        return True
    return plugin == "tpu" and any(
        Path(path).read_text().strip() == _GOOGLE and
        Path(path).with_name("device").read_text().strip() in _TPUS
        for path in glob.glob("/sys/bus/pci/devices/*/vendor"))


def exports_plugin(library: Path) -> bool:
    """Whether a file is the library of a plugin."""
    with open(library, "rb") as file:
        while block := file.read(1 << 24):
            if _ENTRY_POINT in block:
                return True
    return False


def _load_library(name: str, library: str | None, c_api: object = None) -> None:
    """Load a plugin; RuntimeError, in words, for a file that is none."""
    if library is not None and not os.path.isfile(library):
        raise RuntimeError(f"load_plugin: {library} is given as the library of {name!r}, and is no "
                           "file; name the library of a PJRT plugin.")
    try:
        api = _jax.load_pjrt_plugin(name, library, c_api=c_api)
        _jax.initialize_pjrt_plugin(name)
    except _jax.JaxRuntimeError as error:
        raise RuntimeError(
            f"load_plugin: {library or name} is no PJRT plugin that jaxlib {jaxlib_version} can "
            f"use ({str(error).splitlines()[0]}); a plugin of the same PJRT version is required; "
            "install one that was made for this jaxlib.") from None
    connect_plugin(api)


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
                installed = metadata.version(name)
            except metadata.PackageNotFoundError:
                installed = "none"
            if installed != jaxlib_version:
                raise RuntimeError(
                    f"load_plugin: found {name} {installed} beside jaxlib {jaxlib_version}; one "
                    f"version is required; install it with: {remedy}"
                )
        return version, library
    raise RuntimeError(
        "load_plugin: found no CUDA plugin; running on GPUs needs the wheels jax-cuda13-pjrt and "
        f"jax-cuda13-plugin of jaxlib's own version; install them with: {remedy} (to compile only, "
        "without [with-cuda])"
    )


def _preload_nvidia_libraries() -> None:
    """Load the NVIDIA wheels' libraries, so that the plugin finds them without LD_LIBRARY_PATH."""
    spec = importlib.util.find_spec("nvidia")
    roots = list(spec.submodule_search_locations or ()) if spec is not None else []
    for name in _PRELOAD:
        for path in sorted(p for root in roots for p in glob.glob(f"{root}/*/lib/{name}*")):
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
        library = importlib.import_module(f"jaxlib.{module}")
        for name in getattr(library, "batch_partitionable_targets", list)():
            register_batch_partitionable(name)
        for name, value, api_version in library.registrations().get("CUDA", []):
            xla_client.register_custom_call_target(
                name, value, platform="CUDA", api_version=api_version
            )
    importlib.import_module("jaxlib.gpu_rnn")  # registers its own
    connect_plugin(api)
    _jax.initialize_pjrt_plugin("cuda")
    importlib.import_module("jaxlib._profiler").register_plugin_profiler(api)


@functools.cache
def _load_tpu_plugin() -> None:
    """Load libtpu's plugin once per process."""
    path = os.environ.get("TPU_LIBRARY_PATH")
    if path is None:
        spec = importlib.util.find_spec("libtpu")
        if spec is not None and spec.origin is not None:
            path = os.fspath(Path(spec.origin).parent / "libtpu.so")
    if path is None or not os.path.exists(path):
        raise RuntimeError(
            f"load_plugin: found no libtpu ({path or 'not installed'}); running on "
            "TPUs and compiling for them needs it; install it with: pip install libtpu, or name "
            "the file by TPU_LIBRARY_PATH."
        )
    if not attached("tpu"):
        for variable, value in _NO_SLICE.items():
            os.environ.setdefault(variable, value)
    _load_library("tpu", path)


_loaders: dict[str, Callable[[], None]] = {"cuda": _load_cuda_plugin, "tpu": _load_tpu_plugin}
