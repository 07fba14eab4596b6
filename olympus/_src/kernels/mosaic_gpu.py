"""The words of kernels for GPUs by Mosaic: memory spaces and options."""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Sequence

from .specs import Spaces


class MemorySpace(Spaces, enum.Enum):
    """Memories of a GPU. In interpret mode all are the device's memory.

    Args:
      shape: the array's shape.
      dtype: its dtype, or a kind of semaphore.
    Returns: A `MemoryRef`, or a `SemaphoreRef`, in this memory.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental.pallas import mosaic_gpu as plgpu
    >>> plgpu.SMEM((8, 128), onp.float32).shape
    (8, 128)
    """

    GMEM = "gmem"
    SMEM = "smem"
    TMEM = "tmem"
    REGS = "regs"


@dataclasses.dataclass(frozen=True, kw_only=True)
class CompilerParams:
    """Options of the compiler for GPUs, Mosaic; they have no effect in interpret mode.

    >>> from olympus.experimental.pallas import mosaic_gpu as plgpu
    >>> plgpu.CompilerParams(max_concurrent_steps=2).max_concurrent_steps
    2
    """

    approx_math: bool = False
    dimension_semantics: Sequence[str] | None = None
    max_concurrent_steps: int = 1
    unsafe_no_auto_barriers: bool = False
    reduction_scratch_bytes: int = 2048
    profile_space: int = 0
    profile_dir: str = ""
    profile_trace_scope: object = None
    lowering_semantics: object = None
