"""The words of kernels for TPUs, which are interpreted."""

import typing as _typing

from ..._src.base.util import publish as _publish
from ..._src.kernels.buffers import BufferedRef, BufferType, emit_pipeline_with_allocations
from ..._src.kernels.call import LoweringException
from ..._src.kernels.chips import ChipVersion, TpuInfo, get_tpu_info, get_tpu_info_for_chip
from ..._src.kernels.debugging import reciprocal
from ..._src.kernels.device_only import device_only as _device_only
from ..._src.kernels.packing import (
    einshape, pack_elementwise, stochastic_round, trace_value, unpack_elementwise,
)
from ..._src.kernels.pipeline import emit_pipeline
from ..._src.kernels.prng import (
    prng_random_bits, prng_seed, sample_block, stateful_bernoulli, stateful_bits, stateful_normal,
    stateful_uniform, to_pallas_key,
)
from ..._src.kernels.scoped import get_barrier_semaphore
from ..._src.kernels.semaphores import (
    DeviceIdType, async_remote_copy, delay, make_async_copy, make_async_remote_copy, semaphore_read,
    semaphore_signal, semaphore_wait,
)
from ..._src.kernels.specs import (
    MemorySpace as _MemorySpace, PrefetchScalarGridSpec, SemaphoreType, semaphore,
)
from ..._src.kernels.tpu import (
    CompilerParams, CoreType, GridDimensionSemantics, InterpretParams, MemorySpace, SideEffectType,
    TensorCoreMesh, Tiling, async_copy, bitcast, create_tensorcore_mesh, dma_semaphore,
    force_tpu_interpret_mode, is_tpu_device, load, reset_tpu_interpret_mode_state, roll,
    run_on_first_core, set_tpu_interpret_mode, store, sync_copy, touch,
    with_memory_space_constraint,
)

VMEM, SMEM, CMEM, HBM = MemorySpace.VMEM, MemorySpace.SMEM, MemorySpace.CMEM, MemorySpace.HBM
VMEM_SHARED, SEMAPHORE = MemorySpace.VMEM_SHARED, MemorySpace.SEMAPHORE
PARALLEL, ARBITRARY = GridDimensionSemantics.PARALLEL, GridDimensionSemantics.ARBITRARY
CORE_PARALLEL = GridDimensionSemantics.CORE_PARALLEL
SUBCORE_PARALLEL = GridDimensionSemantics.SUBCORE_PARALLEL

BufferedRefBase = BufferedRef

ANY, HOST = _MemorySpace.ANY, _MemorySpace.HOST

__all__ = [
    "ANY", "ARBITRARY", "BufferType", "BufferedRef", "BufferedRefBase", "CMEM", "CORE_PARALLEL",
    "ChipVersion", "CompilerParams", "CoreType", "DeviceIdType", "GridDimensionSemantics", "HBM",
    "HOST", "InterpretParams", "LoweringException", "MemorySpace", "PARALLEL",
    "PrefetchScalarGridSpec", "SEMAPHORE", "SMEM", "SUBCORE_PARALLEL", "SemaphoreType",
    "SideEffectType", "TensorCoreMesh", "Tiling", "TpuInfo", "VMEM", "VMEM_SHARED", "async_copy",
    "async_remote_copy", "bitcast", "create_tensorcore_mesh", "delay", "dma_semaphore", "einshape",
    "emit_pipeline", "emit_pipeline_with_allocations", "force_tpu_interpret_mode",
    "get_barrier_semaphore", "get_tpu_info", "get_tpu_info_for_chip", "is_tpu_device", "load",
    "make_async_copy", "make_async_remote_copy", "pack_elementwise", "prng_random_bits",
    "prng_seed", "reciprocal", "reset_tpu_interpret_mode_state", "roll", "run_on_first_core",
    "sample_block", "semaphore", "semaphore_read", "semaphore_signal", "semaphore_wait",
    "set_tpu_interpret_mode", "stateful_bernoulli", "stateful_bits", "stateful_normal",
    "stateful_uniform", "stochastic_round", "store", "sync_copy", "to_pallas_key", "touch",
    "trace_value", "unpack_elementwise", "with_memory_space_constraint",
]

if not _typing.TYPE_CHECKING:      # names that need the device, made when they are first named
    __getattr__, __dir__ = _device_only(__name__)
_publish(__name__)
