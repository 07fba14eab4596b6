"""Custom calls: foreign functions, LAPACK and Python callbacks, by their names in StableHLO."""

import functools
import importlib
from typing import Any

import numpy as np

from olympus._src.base.lib.loading import _jax, xla_client

_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
# LAPACK names these kernels otherwise for complex numbers; cuSOLVER's have one name.
_COMPLEX = {
    "orgqr": "ungqr", "ormqr": "unmqr", "syevd": "heevd", "sytrd": "hetrd",
}  # fmt: skip
_CUSOLVER = frozenset(("geev", "geqrf", "getrf", "gesvd", "gesvdj", "gesvdp", "orgqr", "ormqr",
                       "potrf", "syevd", "syevj", "syrk", "sytrd"))  # fmt: skip
# Kernels of jaxlib's own, whose names say no dtype.
_OWN = {
    ("tridiagonal_solve_perturbed", "cpu"): "tridiagonal_solve_perturbed_ffi",
    ("tridiagonal_solve_perturbed", "gpu"): "cu_tridiagonal_solve_perturbed",
}
_CALLBACK = {
    "cpu": "xla_ffi_python_cpu_callback",
    "cuda": "xla_ffi_python_gpu_callback",
    "rocm": "xla_ffi_python_gpu_callback",
}


def register_custom_call(
    name: str, capsule: Any, platform: str = "cpu", api_version: int = 1
) -> None:
    """Make a function pointer (a PyCapsule) callable from programs as custom call `name`."""
    xla_client.register_custom_call_target(
        name, capsule, platform=platform, api_version=api_version
    )


@functools.cache
def _lapack_names() -> frozenset[str]:
    """Register and initialise LAPACK (this imports scipy, so not before it is needed)."""
    lapack = importlib.import_module("jaxlib.lapack")
    names: list[str] = []
    for name, capsule, api_version in lapack.registrations()["cpu"]:
        register_custom_call(name, capsule, "cpu", api_version)
        names.append(name)
    for name in lapack.batch_partitionable_targets():
        _jax.register_custom_call_as_batch_partitionable(name)
    lapack._lapack.initialize()
    return frozenset(names)


def lapack_target(kernel: str, dtype: Any) -> str:
    """Return the custom-call name of a LAPACK kernel ('potrf', 'syevd', 'heevd', …) for `dtype`."""
    dtype = np.dtype(dtype)
    name = f"lapack_{_PREFIX.get(dtype.name, '?')}{kernel}_ffi"
    if name not in _lapack_names():
        raise TypeError(
            f"lapack_target: got kernel {kernel!r} for {dtype.name}; jaxlib has no such LAPACK "
            f"function; convert to one of {', '.join(_PREFIX)}."
        )
    return name


def solver_target(kernel: str, dtype: Any, platform: str) -> str:
    """Return the custom-call name of a matrix kernel on a platform.

    `kernel` is LAPACK's name for real numbers ('orgqr', 'syevd') whatever the dtype; on a GPU the
    kernel of that name is cuSOLVER's, whose parameters may differ.
    """
    dtype = np.dtype(dtype)
    own = _OWN.get((kernel, platform))
    if own is not None:
        _lapack_names()
        return own
    if platform == "cpu":
        return lapack_target(_COMPLEX.get(kernel, kernel) if dtype.kind == "c" else kernel, dtype)
    if platform == "gpu" and kernel in _CUSOLVER:
        return f"cusolver_{kernel}_ffi"
    raise NotImplementedError(
        f"solver_target: got kernel {kernel!r} on platform {platform!r}; jaxlib has it on the CPU "
        "only; run this part there, under jit with backend='cpu' or on arrays put on a CPU device."
    )


def python_callback_target(platform: str) -> str:
    """Return the custom-call name by which programs on `platform` call Python."""
    if platform not in _CALLBACK:
        raise NotImplementedError(
            f"python_callback_target: got platform {platform!r}; Python callbacks exist on "
            f"{', '.join(_CALLBACK)} only."
        )
    return _CALLBACK[platform]
