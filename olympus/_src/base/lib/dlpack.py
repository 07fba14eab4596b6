"""Exchange of arrays with other libraries through DLPack capsules, without a copy."""

import ctypes
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from olympus._src.base.lib.arrays import (
    Array, AvalLike, Device, check_alive, copied, device_put, rewrap, single_device_sharding,
)
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
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


_TYPE_CODES = {0: "int", 1: "uint", 2: "float", 5: "complex"}
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
_CPU = 1            # DLPack's number of the host's memory
_get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
_get_pointer.restype = ctypes.c_void_p
_get_pointer.argtypes = (ctypes.py_object, ctypes.c_char_p)


def _dtype(tensor: _Tensor) -> np.dtype:
    if tensor.code in _FOREIGN:
        return np.dtype(_FOREIGN[tensor.code])
    if tensor.code not in _TYPE_CODES:
        raise TypeError(f"from_dlpack: got DLPack type code {tensor.code}; no dtype has this code.")
    return np.dtype(f"{_TYPE_CODES[tensor.code]}{tensor.bits}")


def _is_row_major(shape: tuple[int, ...], strides: tuple[int, ...]) -> bool:
    """Whether elements lie one after the other, the last index moving fastest."""
    expected = 1
    for size, stride in zip(reversed(shape), reversed(strides), strict=True):
        if size != 1 and stride != expected:
            return 0 in shape
        expected *= size
    return True


def _gathered(tensor: _Tensor, shape: tuple[int, ...], strides: tuple[int, ...],
              dtype: np.dtype) -> np.ndarray:
    """Return a row-major copy of a tensor in the host's memory."""
    low = sum(min(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    high = sum(max(0, (n - 1) * s) for n, s in zip(shape, strides, strict=True))
    size = dtype.itemsize
    start = tensor.data + tensor.byte_offset + low * size
    memory = (ctypes.c_ubyte * ((high - low + 1) * size)).from_address(start)
    steps = [s * size for s in strides]
    return np.ndarray(shape, dtype, memoryview(memory), -low * size, steps).copy()


def to_dlpack(array: Array, stream: int | None = None) -> object:
    """Return a capsule of a single-device array; the consumer shares its memory."""
    check_alive("to_dlpack", array)
    try:
        return _jax.buffer_to_dlpack_managed_tensor(array, stream)
    except _jax.JaxRuntimeError as error:
        raise BufferError(f"__dlpack__: {array.aval.dtype} given; {error}.") from None


def from_dlpack(
    capsule: object,
    device: Device,
    make_aval: Callable[[tuple[int, ...], np.dtype], AvalLike],
    *,
    stream: int | None = None,
    copy: bool | None = None,
) -> Array:
    """Return an array on `device` that shares the memory of an unused, unversioned capsule.

    `make_aval(shape, dtype)` makes the aval of the result. Data that is not row-major is copied,
    since programs would read it as if it were; BufferError if `copy` is False then, and for strides
    that no transposition explains, of data that the host cannot see.
    """
    tensor = _Tensor.from_address(_get_pointer(capsule, b"dltensor"))
    shape, dtype = tuple(tensor.shape[: tensor.ndim]), _dtype(tensor)
    aval = make_aval(shape, dtype)
    strides = tuple(tensor.strides[: tensor.ndim]) if tensor.strides else None
    in_order = strides is None or _is_row_major(shape, strides)
    if not in_order and copy is False:
        raise BufferError(f"from_dlpack: an array of shape {shape} and strides {strides} and "
                          "copy=False given; row-major data is required; leave copy unset.")
    if strides is not None and not in_order and tensor.device_type == _CPU:
        return device_put(aval, _gathered(tensor, shape, strides, dtype), device, copy=False)
    try:
        with no_jax():
            array = _jax.dlpack_managed_tensor_to_buffer(capsule, device, stream, copy)
            array = rewrap(array, aval, single_device_sharding(device))
    except _jax.JaxRuntimeError as error:
        raise BufferError(f"from_dlpack: an array of shape {shape} and strides {strides} given; "
                          f"{error}; make it contiguous.") from None
    return array if in_order else copied(array)
