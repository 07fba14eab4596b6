"""Exchange of arrays with other libraries through DLPack capsules, without a copy."""

import ctypes
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from olympus._src.base.lib.arrays import rewrap, single_device_sharding
from olympus._src.base.lib.loading import _jax, no_jax


class _Tensor(ctypes.Structure):
    """The head of DLPack's `DLManagedTensor`: the tensor's description."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
    )


_KINDS = {0: "int", 1: "uint", 2: "float", 5: "complex"}
# DLPack's type codes whose format NumPy does not have.
_FOREIGN: dict[int, Any] = {
    4: ml_dtypes.bfloat16,
    6: np.bool_,
    7: ml_dtypes.float8_e3m4,
    8: ml_dtypes.float8_e4m3,
    9: ml_dtypes.float8_e4m3b11fnuz,
    10: ml_dtypes.float8_e4m3fn,
    11: ml_dtypes.float8_e4m3fnuz,
    12: ml_dtypes.float8_e5m2,
    13: ml_dtypes.float8_e5m2fnuz,
    14: ml_dtypes.float8_e8m0fnu,
}
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


def _describe(capsule: Any) -> tuple[tuple[int, ...], np.dtype[Any]]:
    """Return shape and dtype of the tensor in an unused, unversioned capsule."""
    tensor = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    shape = tuple(tensor.shape[i] for i in range(tensor.ndim))
    if tensor.code in _FOREIGN:
        return shape, np.dtype(_FOREIGN[tensor.code])
    if tensor.code not in _KINDS:
        raise TypeError(f"from_dlpack: got DLPack type code {tensor.code}; no dtype has this code.")
    return shape, np.dtype(f"{_KINDS[tensor.code]}{tensor.bits}")


def to_dlpack(array: Any, stream: int | None = None) -> Any:
    """Return a capsule of a single-device array; the consumer shares its memory."""
    return _jax.buffer_to_dlpack_managed_tensor(array, stream)


def from_dlpack(
    capsule: Any,
    device: Any,
    make_aval: Callable[[tuple[int, ...], np.dtype[Any]], Any],
    *,
    stream: int | None = None,
    copy: bool | None = None,
) -> Any:
    """Return an array on `device` that shares (or, on request, copies) the memory of a capsule.

    `make_aval(shape, dtype)` makes the aval of the result.
    """
    aval = make_aval(*_describe(capsule))
    with no_jax():
        array = _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream, copy)
        return rewrap(array, aval, single_device_sharding(device))
