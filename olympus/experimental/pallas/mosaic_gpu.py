"""Kernels for GPUs by Mosaic: parameters. What only a GPU has says so."""

import typing as _typing

from ..._src.base.util import publish as _publish
from ..._src.kernels.cores import kernel
from ..._src.kernels.device_only import device_only as _device_only
from ..._src.kernels.mosaic_gpu import CompilerParams, MemorySpace
from ..._src.kernels.semaphores import semaphore_signal, semaphore_wait
from ..._src.kernels.specs import BlockSpec, SemaphoreType
from ..._src.lax.creation import broadcasted_iota

GMEM, SMEM = MemorySpace.GMEM, MemorySpace.SMEM
TMEM, REGS = MemorySpace.TMEM, MemorySpace.REGS

__all__ = [
    "GMEM", "SMEM", "TMEM", "REGS",
    "BlockSpec", "CompilerParams", "MemorySpace", "SemaphoreType", "broadcasted_iota", "kernel",
    "semaphore_signal", "semaphore_wait",
]

if not _typing.TYPE_CHECKING:      # names that need the device, made when they are first named
    __getattr__, __dir__ = _device_only(__name__)
_publish(__name__)
