"""Custom calls: foreign functions, LAPACK and Python callbacks, by their names in StableHLO."""

import contextlib
import ctypes
import functools
import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Iterator, Mapping
from typing import Any

import jaxlib
import numpy as np

from olympus._src.base.lib.loading import _jax, xla_client

_KERNELS = ("scipy.linalg.cython_blas", "scipy.linalg.cython_lapack")
_PREFIX = {"float32": "s", "float64": "d", "complex64": "c", "complex128": "z"}
_CALLBACK = {"cpu": "python_cpu_callback", "gpu": "python_gpu_callback",
             "rocm": "python_gpu_callback"}
_PLATFORMS = {"cpu": "Host", "gpu": "CUDA", "rocm": "ROCM", "tpu": "tpu"}  # XLA's names
_NAMED_OTHERWISE = {"host": "cpu", "cuda": "gpu"}
TYPED, UNTYPED = 1, 0  # the versions of the API that targets are registered for

Handlers = Mapping[str, int]  # addresses, by stage
# What this process has registered: name -> platform -> API version -> handlers.
_registered: dict[str, dict[str, dict[int, Handlers]]] = {}
_partitionable: list[str] = []
_plugins: list[object] = []  # C APIs, which have tables of their own
_kept: dict[int, object] = {}  # the objects of capsules, by address

Buffer: Any = _jax.ffi.Buffer
ExecutionContext: Any = _jax.ffi.ExecutionContext
ExecutionStage: Any = _jax.ffi.ExecutionStage


def include_dir() -> str:
    """Return the folder of XLA's headers for foreign functions, which jaxlib brings along."""
    return os.path.join(next(iter(jaxlib.__path__)), "include")


def pycapsule(pointer: object) -> object:
    """Return a PyCapsule of a function of `ctypes`, or of an address; its objects are kept."""
    target: Any = pointer
    address = target if isinstance(target, int) else ctypes.cast(target, ctypes.c_void_p).value
    make: Any = ctypes.pythonapi.PyCapsule_New
    make.restype, make.argtypes = ctypes.py_object, (ctypes.c_void_p, ctypes.c_char_p,
                                                     ctypes.c_void_p)
    capsule = make(address, None, None)
    _kept[address or 0] = pointer
    return capsule


def capsule_address(capsule: object) -> int:
    """Return where a PyCapsule points to."""
    name: Any = ctypes.pythonapi.PyCapsule_GetName
    name.restype, name.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    pointer: Any = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    return pointer(capsule, name(capsule))


def memory_rights(capsule: object) -> str | None:
    """Return the rights of the memory that a PyCapsule points to, as Linux writes them: "r-xp".

    "" if it is no memory of the process, None where the system has no list of them.
    """
    address = capsule_address(capsule)
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                span, rights, *_ = line.split(" ", 2)
                first, _, end = span.partition("-")
                if int(first, 16) <= address < int(end, 16):
                    return rights
    except OSError:
        return None
    return ""


def call_platform(name: str) -> str | None:
    """Return "cpu", "gpu", "rocm" or "tpu" for any of a platform's names; None for no platform."""
    lower = name.lower()
    platform_name = _NAMED_OTHERWISE.get(lower, lower)
    return platform_name if platform_name in _PLATFORMS else None


def registered_calls(name: str) -> Mapping[str, Mapping[int, Handlers]]:
    """Return the handlers of a target that this process registered, by platform and version."""
    return _registered.get(name, {})


def registered_names() -> list[str]:
    """Return the names of all targets that this process registered."""
    return list(_registered)


def has_custom_call(name: str) -> bool:
    """Whether XLA itself, or jaxlib's LAPACK, has a target on the CPU."""
    if name in _jax.custom_call_targets(_PLATFORMS["cpu"]):
        return True
    return name.startswith(("lapack_", "tridiagonal_")) and name in lapack_names()


def register_custom_call(name: str, handler: object, platform: str = "cpu",
                         api_version: int = TYPED, **options: object) -> None:
    """Make a function (a PyCapsule), or one for each stage, callable as custom call `name`.

    `options` are for jaxlib's own function. XLA ends the process where another function of the
    untyped API has the name already: `registered_calls` knows.
    """
    _register_at_once()
    register: Any = xla_client.register_custom_call_target
    register(name, handler, platform=_PLATFORMS[platform], api_version=api_version, **options)
    stages = handler if isinstance(handler, dict) else {"execute": handler}
    _registered.setdefault(name, {}).setdefault(platform, {})[api_version] = {
        stage: capsule_address(capsule) for stage, capsule in stages.items()}


def register_custom_type(name: str, capsules: Mapping[str, object], platform: str = "cpu") -> None:
    """Give XLA a type of a user's: PyCapsules of its id and of its functions."""
    _register_at_once()
    xla_client.register_custom_type(name, dict(capsules), platform=_PLATFORMS[platform])


@functools.cache
def _register_at_once() -> None:
    """Let XLA register for the CPU at once, and refuse at once.

    Until there is a client jaxlib keeps the registrations. It would then hand targets on before the
    types that they need, and the next caller that needs the client would get the error.
    """
    xla_client.register_custom_type_handler("cpu", _jax.register_custom_type)
    xla_client.register_custom_call_handler("cpu", _jax.register_custom_call_target)


def register_batch_partitionable(name: str) -> None:
    """Let XLA cut calls of a target along their first axes, as many as the call says."""
    _partitionable.append(name)
    _jax.register_custom_call_as_batch_partitionable(name)
    for api in _plugins:
        _jax.register_custom_call_as_batch_partitionable(name, api)


def connect_plugin(api: object) -> None:
    """Tell a plugin, too, which targets are batch partitionable."""
    _plugins.append(api)
    for name in _partitionable:
        _jax.register_custom_call_as_batch_partitionable(name, api)


def is_batch_partitionable(name: str) -> bool:
    """Whether XLA may cut calls of a target along their first axes."""
    return name in _partitionable


@functools.cache
def lapack_names() -> frozenset[str]:
    """Register and initialise LAPACK (this loads some of scipy, so not before it is needed)."""
    lapack = importlib.import_module("jaxlib.lapack")
    names: list[str] = []
    for name, capsule, api_version in lapack.registrations()["cpu"]:
        register_custom_call(name, capsule, "cpu", api_version)
        names.append(name)
    for name in lapack.batch_partitionable_targets():
        register_batch_partitionable(name)
    with _kernels_alone():
        lapack._lapack.initialize()
    return frozenset(names)


def initialize_hybrid_kernels() -> None:
    """Give LAPACK to jaxlib's kernels of GPUs that compute on the host, before any of them runs."""
    with _kernels_alone():
        importlib.import_module("jaxlib.gpu_solver").initialize_hybrid_kernels()


@contextlib.contextmanager
def _kernels_alone() -> Iterator[None]:
    """Two modules of `scipy.linalg`, which is all that C++ reads of it, without the package, whose
    import takes longer than most first calls.

    They are taken away afterwards, so that a later import finds them with their package.
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


def python_callback_target(platform: str, partitioned: bool = False) -> str:
    """Return the custom-call name by which programs on `platform` call Python; `partitioned`: of
    many devices each calls it with its parts of the operands."""
    if platform not in _CALLBACK:
        raise NotImplementedError(
            f"python_callback_target: got platform {platform!r}; Python callbacks exist on "
            f"{', '.join(_CALLBACK)} only."
        )
    return f"xla_ffi_{'partitioned_' if partitioned else ''}{_CALLBACK[platform]}"


def buffer_callback_target(platform: str, replayed: bool = False) -> str | None:
    """Return the custom call by which programs on `platform` hand buffers to Python, or None.

    `replayed`: a GPU records once the work that the function starts, and repeats that.
    """
    if platform not in _CALLBACK:
        return None
    again = "_cmd_buffer" if replayed and platform != "cpu" else ""
    return f"xla_buffer_{_CALLBACK[platform]}{again}"
