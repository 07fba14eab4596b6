"""The words of kernels for TPUs, which are interpreted."""

from ..._src.base.util import publish as _publish
from ..._src.kernels.semaphores import make_async_copy
from ..._src.kernels.specs import PrefetchScalarGridSpec, SemaphoreType
from ..._src.kernels.tpu import (
    CompilerParams, GridDimensionSemantics, InterpretParams, MemorySpace, SideEffectType,
    async_copy, force_tpu_interpret_mode, load, roll, store, sync_copy, touch,
)

VMEM, SMEM, CMEM, HBM = MemorySpace.VMEM, MemorySpace.SMEM, MemorySpace.CMEM, MemorySpace.HBM
VMEM_SHARED, SEMAPHORE = MemorySpace.VMEM_SHARED, MemorySpace.SEMAPHORE
PARALLEL, ARBITRARY = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.ARBITRARY
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL

__all__ = [
    "CompilerParams", "GridDimensionSemantics", "InterpretParams", "MemorySpace",
    "PrefetchScalarGridSpec", "SemaphoreType", "SideEffectType", "async_copy",
    "force_tpu_interpret_mode", "load", "make_async_copy", "roll", "store", "sync_copy", "touch",
]

_publish(__name__)
