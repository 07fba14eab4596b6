"""Kernels: functions of blocks of arrays, run for each place of a grid."""

import typing as _typing

from ..._src.base.util import publish as _publish
from ..._src.base.util import submodules as _submodules
from ..._src.extend.state import run_state
from ..._src.kernels.call import pallas_call, pallas_call_p
from ..._src.kernels.control import (
    align_to, cdiv, loop, next_power_of_2, strides_from_shape, when,
)
from ..._src.kernels.cores import core_map, kernel
from ..._src.kernels.debugging import (
    debug_check, debug_checks_enabled, debug_print, dot, enable_debug_checks,
    enable_poison_buffers, estimate_cost, lower_as_mlir, multiple_of, pallas_export_experimental,
    reciprocal,
)
from ..._src.kernels.grid import num_programs, program_id
from ..._src.kernels.scoped import (
    broadcast_to, empty, empty_like, empty_ref_like, get_global, run_scoped, select_ref,
    with_scoped,
)
from ..._src.kernels.semaphores import (
    DeviceIdType, delay, semaphore_read, semaphore_signal, semaphore_wait,
)
from ..._src.kernels.specs import (
    BlockDim, BlockSpec, Blocked, BoundedSlice, Buffered, CompilerParams, CostEstimate,
    Element, GridSpec, Indirect, MemoryRef, MemorySpace, RevisitMode, Squeezed, no_block_spec,
    semaphore, squeezed,
)
from ..._src.numpy.index_plan import Slice, dslice

ANY, HOST = MemorySpace.ANY, MemorySpace.HOST
ds = dslice

__all__ = [
    "BlockDim", "BlockSpec", "Blocked", "BoundedSlice", "Buffered",
    "CompilerParams", "CostEstimate", "DeviceIdType", "Element", "GridSpec", "Indirect",
    "MemoryRef", "MemorySpace", "RevisitMode", "Slice", "Squeezed", "align_to", "broadcast_to",
    "cdiv", "core_map", "debug_check", "debug_checks_enabled", "debug_print", "delay", "dot",
    "ds", "dslice", "empty", "empty_like", "empty_ref_like", "enable_debug_checks",
    "enable_poison_buffers", "estimate_cost", "get_global", "kernel", "loop", "lower_as_mlir",
    "multiple_of", "next_power_of_2", "no_block_spec", "num_programs", "pallas_call",
    "pallas_call_p", "pallas_export_experimental", "program_id", "reciprocal", "run_scoped",
    "run_state", "select_ref", "semaphore", "semaphore_read", "semaphore_signal",
    "semaphore_wait", "squeezed", "strides_from_shape", "when", "with_scoped",
]

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when it is first named
    from . import mosaic_gpu as mosaic_gpu
    from . import ops as ops
    from . import tpu as tpu
    from . import triton as triton
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
