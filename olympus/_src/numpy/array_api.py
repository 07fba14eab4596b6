"""The array API standard's names of the module: version, inspection, `from_dlpack`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..arrays.device import device_put
from ..base import lib
from ..base.source import api_boundary
from ..base.typing import Array, Device, DTypeLike
from ..core.trace import Tracer
from ..devices import devices
from ..devices.array import array_from_numpy, share_numpy
from ..devices.exchange import CPU, CUDA, PINNED, ROCM
from ..lax.sharding import resolve_sharding
from ..types import dtypes
from ..types.avals import make_aval
from ..types.sharding import DeviceLike

__array_api_version__ = "2024.12"
VERSIONS = ("2021.12", "2022.12", "2023.12", __array_api_version__)

_NAMES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
          "float32", "float64", "complex64", "complex128")


class ArrayNamespaceInfo:
    """The capabilities of `olympus.numpy`, in the array API standard's form."""

    def capabilities(self) -> dict[str, bool | int]:
        """Optional features. Both hold outside compiled programs, which need static shapes."""
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Where new arrays go."""
        return devices.default_device()

    def devices(self) -> list[Device]:
        """The devices that `device=` takes."""
        return devices.local_devices()

    def default_dtypes(self, *, device: DeviceLike = None) -> dict[str, np.dtype]:
        """The dtypes of results that no operand decides; 64 bits with x64 on."""
        return {"real floating": dtypes.default_float(),
                "complex floating": dtypes.to_complex_dtype(dtypes.default_float()),
                "integral": dtypes.default_int(), "indexing": dtypes.default_int()}

    def dtypes(self, *, device: DeviceLike = None, kind: str | tuple[str, ...] | None = None
               ) -> dict[str, np.dtype]:
        """The standard's dtypes by name, of one kind or of several; of 64 bits with x64 on only."""
        every = {name: np.dtype(name) for name in _NAMES}
        return {name: dtype for name, dtype in every.items()
                if dtypes.canonicalize_dtype(dtype) == dtype
                and (kind is None or dtypes.isdtype(dtype, kind))}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """The capabilities of this module: `capabilities`, `devices`, `dtypes` and defaults.

    >>> import olympus.numpy as onp
    >>> onp.__array_namespace_info__().default_dtypes()["integral"]
    dtype('int32')
    """
    return ArrayNamespaceInfo()


# DLPack ------------------------------------------------------------------------------------------

_EXCHANGED = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64",
              "float16", "bfloat16", "float32", "float64", "complex64", "complex128")


def is_supported_dtype(dtype: DTypeLike) -> bool:
    """Whether arrays of a dtype are exchanged through DLPack by other libraries too.

    Args:
      dtype: a dtype or its name.

    >>> is_supported_dtype("bfloat16"), is_supported_dtype("int4")
    (True, False)
    """
    if dtype is None:
        raise TypeError("is_supported_dtype: None given; a dtype is required.")
    return dtypes.as_dtype(dtype).name in _EXCHANGED


@api_boundary
def from_dlpack(x: object, /, *, device: DeviceLike = None, copy: bool | None = None) -> Array:
    """The array of another library that has `__dlpack__`, sharing its memory where possible.

    Shared is what lies row-major and aligned on the device and keeps its dtype; all else is
    copied. Whoever writes to shared memory afterwards changes this array too: pass `copy=True`
    unless nobody does.

    Args:
      x: an array with the methods `__dlpack__` and `__dlpack_device__`.
      device: where the result is to be, a device or a sharding of one; where `x` is if None.
      copy: True always copies, False never does.

    TypeError for objects without these methods and for kinds of devices that are neither CPU nor
    GPU, ValueError for copies that `copy=False` forbids, BufferError where `x` cannot be exported.

    >>> import numpy as np, olympus.numpy as onp
    >>> onp.from_dlpack(np.arange(3, dtype=np.float32))
    Array([0., 1., 2.], dtype=float32)
    """
    return dlpack_array(x, device, copy)


def dlpack_array(external_array: object, device: DeviceLike = None, copy: bool | None = None
                 ) -> Array:
    """An array that shares the memory of another library's, where that is possible.

    Args:
      external_array: an array with the methods `__dlpack__` and `__dlpack_device__`.
      device: where the result is; None is where the array is.
      copy: True always copies; False never does, ValueError where it must; None where it must.

    Returns:
      An array of the same shape and dtype.

    >>> import numpy as np
    >>> from olympus import dlpack
    >>> dlpack.from_dlpack(np.arange(3, dtype=np.int32))
    Array([0, 1, 2], dtype=int32)
    """
    x: Any = external_array
    target = _one_device(device)
    if isinstance(x, Tracer) or not hasattr(x, "__dlpack__") or not hasattr(
            x, "__dlpack_device__"):
        raise TypeError(f"from_dlpack: a value of type {type(x).__name__} given; an array with the "
                        "methods __dlpack__ and __dlpack_device__ is required.")
    if (negated := getattr(x, "is_neg", None)) is not None and negated():
        # PyTorch exports the memory as it is, up to 2.13 at least.
        raise BufferError(f"from_dlpack: a {type(x).__name__} with a pending sign given, whose "
                          "memory has the negative numbers; memory that has the numbers themselves "
                          "is required; pass x.resolve_neg().")
    if type(x) is lib.ArrayImpl:
        out = lib.copied(x) if copy else x
    else:
        kind, index = (int(i) for i in x.__dlpack_device__())
        if kind in (CPU, PINNED):
            out = _from_host(x, target, copy)
        elif kind in (CUDA, ROCM):
            out = _from_gpu(x, index, copy)
        else:
            raise TypeError(f"from_dlpack: an array on a device of DLPack's kind {kind} given; "
                            "CPUs and GPUs are possible; copy it to the host first.")
    if target is None or out.devices() == {target}:
        return device_put(out, device)
    if copy is False:
        raise ValueError(f"from_dlpack: device {target} and copy=False given for an array on "
                         f"{out.device}; that needs a copy; leave copy unset.")
    return device_put(out, device)


def _one_device(device: DeviceLike) -> Device | None:
    """The device that `device=` names; None if nothing is asked for."""
    if device is None or isinstance(device, lib.Device):
        return device
    among = resolve_sharding("from_dlpack", device).device_set
    if len(among) != 1:
        raise ValueError(f"from_dlpack: a sharding of {len(among)} devices given; one device is "
                         "required; put the result on more with olympus.device_put.")
    return next(iter(among))


def _from_host(x: Any, target: Device | None, copy: bool | None) -> Array:
    """An array in the host's memory, on a device of its own kind or where it is wanted."""
    where = target or devices.default_device()
    if where.platform != "cpu":
        where = devices.local_devices(backend="cpu")[0]
    try:
        value = np.from_dlpack(x)
    except (RuntimeError, BufferError):     # bfloat16 and its like; a refusal comes again below
        return _imported(_capsule(x), where, copy)
    if copy is False:
        return share_numpy("from_dlpack", value, where)
    return array_from_numpy(value, False, where, copy=bool(copy))


def _capsule(x: Any) -> object:
    try:
        return x.__dlpack__()
    except BufferError as error:
        raise BufferError(f"from_dlpack: a value of type {type(x).__name__} given that cannot be "
                          f"exported: {error}") from None


def _from_gpu(x: Any, index: int, copy: bool | None) -> Array:
    """An array in a GPU's memory, on the device with this number."""
    gpus = [d for d in devices.local_devices(None, "gpu") if d.local_hardware_id == index]
    if not gpus:
        raise ValueError(f"from_dlpack: an array on GPU {index} given; this process has no such "
                         "device.")
    stream = gpus[0].get_stream_for_external_ready_events()
    return _imported(x.__dlpack__(stream=stream), gpus[0], copy, stream)


def _imported(capsule: object, device: Device, copy: bool | None, stream: int | None = None
              ) -> Array:
    try:
        return lib.from_dlpack(capsule, device, make_aval, stream=stream, copy=copy)
    except BufferError as error:
        if copy is False:
            raise ValueError(str(error)) from None
        raise
