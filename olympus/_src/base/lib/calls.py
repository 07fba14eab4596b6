"""Custom calls: foreign functions, LAPACK and Python callbacks, by their names in StableHLO."""

import contextlib
import functools
import importlib
import importlib.machinery
import importlib.util
import sys
from collections.abc import Iterator

import numpy as np

from olympus._src.base.lib.loading import _jax, xla_client

_KERNELS = ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")
_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_CALLBACK = {"cpu": "python_cpu_callback", "gpu": "python_gpu_callback",
             "rocm": "python_gpu_callback"}


def register_custom_call(name: str, capsule: object, platform: str = "cpu", api_version: int = 1
                         ) -> None:
    """Make a function pointer (a PyCapsule) callable from programs as custom call `name`."""
    xla_client.register_custom_call_target(
        name, capsule, platform=platform, api_version=api_version
    )


@functools.cache
def lapack_names() -> frozenset[str]:
    """Register and initialise LAPACK (this loads some of scipy, so not before it is needed)."""
    lapack = importlib.import_module("jaxlib.lapack")
    names: list[str] = []
    for name, capsule, api_version in lapack.registrations()["cpu"]:
        register_custom_call(name, capsule, "cpu", api_version)
        names.append(name)
    for name in lapack.batch_partitionable_targets():
        _jax.register_custom_call_as_batch_partitionable(name)
    with _kernels_alone():
        lapack._lapack.initialize()
    return frozenset(names)


@contextlib.contextmanager
def _kernels_alone() -> Iterator[None]:
    """Two modules of `scipy.linalg`, which is all that C++ reads of it, without the package, whose
    import takes longer than most first calls.

    They are taken away afterwards, so that whoever imports them finds them with their package.
    """
    scipy, loaded = importlib.util.find_spec("scipy"), []
    folders = scipy and scipy.submodule_search_locations or ()
    for name in _KERNELS:
        spec = importlib.machinery.PathFinder.find_spec(name, [f"{f}/linalg" for f in folders])
        if spec and spec.loader and name not in sys.modules:
            sys.modules[name] = importlib.util.module_from_spec(spec)
            loaded.append(name)
            spec.loader.exec_module(sys.modules[name])
    try:
        yield
    finally:
        for name in loaded:
            del sys.modules[name]


def lapack_target(kernel: str, dtype: np.dtype | type | str) -> str:
    """Return the custom-call name of a LAPACK kernel ('potrf', 'syevd', 'heevd', …) for `dtype`."""
    dtype = np.dtype(dtype)
    name = f"lapack_{_PREFIX.get(dtype.name, '?')}{kernel}_ffi"
    if name not in lapack_names():
        raise TypeError(
            f"lapack_target: got kernel {kernel!r} for {dtype.name}; jaxlib has no such LAPACK "
            f"function; convert to one of {', '.join(_PREFIX)}."
        )
    return name


@functools.cache
def sparse_product_target() -> str:
    """Register jaxlib's product of a matrix by rows and dense columns; its custom-call name.

    Its operands are data, pointers, columns and the dense array, in this order. It believes its
    indices: pointers must ascend from 0 to at most the size of data, and columns be in the array.
    """
    for name, capsule, api_version in importlib.import_module("jaxlib.cpu_sparse").registrations()[
            "cpu"]:
        register_custom_call(name, capsule, "cpu", api_version)
    return "cpu_csr_sparse_dense_ffi"


def python_callback_target(platform: str, partitioned: bool = False) -> str:
    """Return the custom-call name by which programs on `platform` call Python; `partitioned`: of
    many devices each calls it with its parts of the operands."""
    if platform not in _CALLBACK:
        raise NotImplementedError(
            f"python_callback_target: got platform {platform!r}; Python callbacks exist on "
            f"{', '.join(_CALLBACK)} only."
        )
    return f"xla_ffi_{'partitioned_' if partitioned else ''}{_CALLBACK[platform]}"
