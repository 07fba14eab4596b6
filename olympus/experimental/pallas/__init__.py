"""Kernels: functions of blocks of arrays, run for each place of a grid."""

from ..._src.base.util import publish as _publish
from ..._src.kernels.call import pallas_call, pallas_call_p
from ..._src.kernels.control import (
    align_to, cdiv, loop, next_power_of_2, strides_from_shape, when,
)
from ..._src.kernels.grid import num_programs, program_id
from ..._src.kernels.specs import (
    ANY, HOST, BlockDim, BlockSpec, Blocked, BoundedSlice, Buffered, CompilerParams, CostEstimate,
    Element, GridSpec, Indirect, MemoryRef, MemorySpace, RevisitMode, Squeezed, no_block_spec,
    squeezed,
)
from ..._src.types.slices import Slice, dslice

ds = dslice

__all__ = [
    "ANY", "HOST", "BlockDim", "BlockSpec", "Blocked", "BoundedSlice", "Buffered",
    "CompilerParams", "CostEstimate", "Element", "GridSpec", "Indirect", "MemoryRef",
    "MemorySpace", "RevisitMode", "Slice", "Squeezed", "align_to", "cdiv", "ds", "dslice", "loop",
    "next_power_of_2", "no_block_spec", "num_programs", "pallas_call", "pallas_call_p",
    "program_id", "squeezed", "strides_from_shape", "when",
]

_publish(__name__)
