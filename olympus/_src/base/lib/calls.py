"""Custom calls: foreign functions, LAPACK and Python callbacks, by their names in StableHLO."""

import functools
import importlib
from typing import Any

import numpy as np

from olympus._src.base.lib.loading import _jax, xla_client

_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_CALLBACK = {"cpu": "python_cpu_callback", "gpu": "python_gpu_callback",
             "rocm": "python_gpu_callback"}


def register_custom_call(
    name: str, capsule: Any, platform: str = "cpu", api_version: int = 1
) -> None:
    """Make a function pointer (a PyCapsule) callable from programs as custom call `name`."""
    xla_client.register_custom_call_target(
        name, capsule, platform=platform, api_version=api_version
    )


@functools.cache
def lapack_names() -> frozenset[str]:
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
    if name not in lapack_names():
        raise TypeError(
            f"lapack_target: got kernel {kernel!r} for {dtype.name}; jaxlib has no such LAPACK "
            f"function; convert to one of {', '.join(_PREFIX)}."
        )
    return name


def python_callback_target(platform: str, partitioned: bool = False) -> str:
    """Return the custom-call name by which programs on `platform` call Python; `partitioned`: of
    many devices each calls it with its parts of the operands."""
    if platform not in _CALLBACK:
        raise NotImplementedError(
            f"python_callback_target: got platform {platform!r}; Python callbacks exist on "
            f"{', '.join(_CALLBACK)} only."
        )
    return f"xla_ffi_{'partitioned_' if partitioned else ''}{_CALLBACK[platform]}"
