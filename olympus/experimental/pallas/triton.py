"""Kernels for GPUs by Triton: parameters, masked loads and stores, atomic operations."""

import typing as _typing

from ..._src.base.util import publish as _publish
from ..._src.kernels.debugging import dot
from ..._src.kernels.device_only import device_only as _device_only
from ..._src.kernels.triton import (
    CompilerParams, approx_tanh, atomic_add, atomic_and, atomic_cas, atomic_max, atomic_min,
    atomic_or, atomic_xchg, atomic_xor, debug_barrier, load, max_contiguous, store,
)

__all__ = [
    "CompilerParams", "approx_tanh", "atomic_add", "atomic_and", "atomic_cas", "atomic_max",
    "atomic_min", "atomic_or", "atomic_xchg", "atomic_xor", "debug_barrier", "dot", "load",
    "max_contiguous", "store",
]

if not _typing.TYPE_CHECKING:      # names that need the device, made when they are first named
    __getattr__, __dir__ = _device_only(__name__)
_publish(__name__)
