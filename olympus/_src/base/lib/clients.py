"""Backends: the CPU client, and the GPU client through NVIDIA's PJRT plugin without `jax`."""

import ctypes
import functools
import glob
import importlib
import importlib.util
import os
from pathlib import Path
from typing import Any

from olympus._src.base.lib.loading import (
    _jax,
    jaxlib_version,
    warn_if_jax_loaded,
    xla_client,
)

Client: Any = _jax.Client
# Libraries of the NVIDIA wheels that the plugin links by name, in the order they need each other.
_PRELOAD = (
    "libcudart.so", "libnvrtc.so", "libcublasLt.so", "libcublas.so", "libcupti.so",
    "libnvJitLink.so", "libcusparse.so", "libcusolver.so", "libcufft.so", "libnccl.so",
    "libnvshmem_host.so", "libcudnn.so",
)  # fmt: skip
_CUDA_VERSIONS = ("13", "12")


def make_cpu_client(num_devices: int | None = None) -> Any:
    """Start the CPU backend with `num_devices` devices (None: as XLA_FLAGS says, or one)."""
    warn_if_jax_loaded()
    # This also connects the queue of custom calls registered so far.
    return xla_client.make_cpu_client(asynchronous=True, num_devices=num_devices)


def _find_cuda_plugin() -> tuple[str, Path]:
    """Return the CUDA version and the plugin library of the installed wheels."""
    for version in _CUDA_VERSIONS:
        try:
            spec = importlib.util.find_spec(f"jax_plugins.xla_cuda{version}")
        except ModuleNotFoundError:
            spec = None
        if spec is None or spec.origin is None:
            continue
        library = Path(spec.origin).parent / "xla_cuda_plugin.so"
        if library.exists():
            return version, library
    raise RuntimeError(
        "make_gpu_client: found no CUDA plugin; a GPU needs the wheels jax-cuda13-pjrt and "
        "jax-cuda13-plugin of jaxlib's own version; install them with: "
        f'pip install "jax-cuda13-plugin[with-cuda]=={jaxlib_version}"'
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
    for module in ("gpu_solver", "gpu_linalg", "gpu_prng", "gpu_sparse", "gpu_rnn"):
        kernels = importlib.import_module(f"jaxlib.{module}").registrations().get("CUDA", [])
        for name, value, api_version in kernels:
            xla_client.register_custom_call_target(
                name, value, platform="CUDA", api_version=api_version
            )
    _jax.initialize_pjrt_plugin("cuda")


def make_gpu_client() -> Any:
    """Start the CUDA backend; RuntimeError where the plugin or a device is absent."""
    warn_if_jax_loaded()
    _load_cuda_plugin()
    options: dict[str, Any] = dict(xla_client.generate_pjrt_gpu_plugin_options())
    return xla_client.make_c_api_client("cuda", {**options, "node_id": 0, "num_nodes": 1})
