"""The words of kernels for TPUs: memory spaces, options, copies; interpreted as all kernels are."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
from collections.abc import Iterator, Mapping, Sequence

from ..base.config import pallas_interpret
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree, Reference
from ..numpy.manipulation import roll as numpy_roll
from .masked import load as load_at
from .masked import store as store_at
from .semaphores import AsyncCopy, make_async_copy
from .specs import Spaces


class MemorySpace(Spaces, enum.Enum):
    """The memories of a TPU. In interpret mode all are the device's.

    Args:
      shape: the array's shape.
      dtype: its dtype, or a kind of semaphore.

    Returns:
      A `MemoryRef`, or a `SemaphoreRef`, in this memory.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.VMEM((8, 128), onp.float32).shape
    (8, 128)
    """

    VMEM = "vmem"
    VMEM_SHARED = "vmem_shared"
    SMEM = "smem"
    CMEM = "cmem"
    SEMAPHORE = "semaphore_mem"
    HBM = "hbm"


class GridDimensionSemantics(enum.Enum):
    """Whether steps along an axis of the grid may run at once; interpret mode runs them in turn.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.PARALLEL.value
    'parallel'
    """

    PARALLEL = "parallel"
    CORE_PARALLEL = "core_parallel"
    SUBCORE_PARALLEL = "subcore_parallel"
    ARBITRARY = "arbitrary"


class SideEffectType(enum.Enum):
    """Whether a kernel does more than compute its outputs.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.SideEffectType.PURE.value
    'pure'
    """

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


@dataclasses.dataclass(frozen=True)
class CompilerParams:
    """Options of the TPU's compiler of kernels; interpret mode ignores them.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.CompilerParams(dimension_semantics=("parallel",)).dimension_semantics
    ('parallel',)
    """

    dimension_semantics: Sequence[str | GridDimensionSemantics] | None = None
    allow_input_fusion: Sequence[bool] | None = None
    vmem_limit_bytes: int | None = None
    collective_id: int | None = None
    has_side_effects: bool | SideEffectType = False
    flags: Mapping[str, object] | None = None
    internal_scratch_in_bytes: int | None = None
    serialization_format: int = 1
    disable_bounds_checks: bool = False
    disable_semaphore_checks: bool = False
    skip_device_barrier: bool = False
    allow_collective_id_without_custom_barrier: bool = False
    shape_invariant_numerics: bool = True
    use_tc_tiling_on_sc: bool | None = None
    needs_layout_passes: bool = True
    fuse_transposed_lhs_in_matmul: bool = False


@dataclasses.dataclass(frozen=True, kw_only=True)
class InterpretParams:
    """`interpret=` of kernels for TPUs. All run as with `interpret=True`, on one core.

    JAX's simulator of a TPU reads the fields: it finds races and runs copies late. Here nothing
    does.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> def one(o):
    ...     o[...] = 1.
    >>> out = olympus.ShapeDtypeStruct((), onp.float32)
    >>> print(pl.pallas_call(one, out, interpret=pltpu.InterpretParams())())
    1.0
    """

    detect_races: bool = False
    out_of_bounds_reads: str = "raise"
    skip_floating_point_ops: bool = False
    uninitialized_memory: str = "nan"
    num_cores_or_threads: int = 1
    vector_clock_size: int | None = None
    logging_mode: object = None
    dma_execution_mode: str = "on_wait"
    random_seed: int | None = None
    grid_point_recorder: object = None
    allow_hbm_allocation_in_run_scoped: bool = False
    buffer_bounds: str = "logical"


@contextlib.contextmanager
def force_tpu_interpret_mode(params: InterpretParams | None = None) -> Iterator[None]:
    """A context in which all kernels are interpreted.

    Args:
      params: as for `interpret=`.

    Returns:
      A context manager.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> def one(o):
    ...     o[...] = 1.
    >>> with pltpu.force_tpu_interpret_mode():
    ...     print(pl.pallas_call(one, olympus.ShapeDtypeStruct((), onp.float32))())
    1.0
    """
    with pallas_interpret(True):
        yield


@api_boundary
def async_copy(src_ref: Reference, dst_ref: Reference, sem: Reference, *, priority: int = 0
               ) -> AsyncCopy:
    """Start a copy between references.

    Args:
      src_ref, dst_ref: references, or parts, with one shape and dtype.
      sem: a reference to a semaphore of kind `DMA`.
      priority: which of several copies comes first.

    Returns:
      The copy, with `wait()`.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> @pl.with_scoped(pltpu.VMEM((2,), onp.float32), pltpu.SemaphoreType.DMA)
    ... def copied(x, to, sem):
    ...     pltpu.async_copy(x, to, sem).wait()
    ...     return to[...]
    >>> print(copied(olympus.new_ref(onp.ones(2))))
    [1. 1.]
    """
    copy = make_async_copy(src_ref, dst_ref, sem)
    copy.start(priority)
    return copy


@api_boundary
def sync_copy(src_ref: Reference, dst_ref: Reference) -> None:
    """Copy from one reference to another.

    Args:
      src_ref, dst_ref: references, or parts, with one shape and dtype.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> x, y = olympus.new_ref(onp.ones(2)), olympus.new_ref(onp.zeros(2))
    >>> pltpu.sync_copy(x, y)
    >>> print(y[...])
    [1. 1.]
    """
    AsyncCopy(src_ref, dst_ref, None).start()


@api_boundary
def load(ref: Reference, *, mask: ArrayLike | None = None) -> Array:
    """The content of a reference, or of a part; unspecified where a mask is false.

    Args:
      ref: a reference, or a part of one.
      mask: bools that broadcast to it.

    Returns:
      An array.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> print(pltpu.load(olympus.new_ref(onp.arange(3)).at[1:]))
    [1 2]
    """
    return load_at(ref, mask=mask)


@api_boundary
def store(ref: Reference, val: ArrayLike, *, mask: ArrayLike | None = None) -> None:
    """Write to a reference, or to a part, where a mask is true.

    Args:
      ref: a reference, or a part of one.
      val: array or number that broadcasts to it.
      mask: bools that broadcast to it.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> ref = olympus.new_ref(onp.arange(3))
    >>> pltpu.store(ref, 7, mask=onp.array([True, False, True]))
    >>> print(ref[...])
    [7 1 7]
    """
    store_at(ref, None, val, mask=mask)


@api_boundary
def roll(x: Array, shift: ArrayLike, axis: int) -> Array:
    """The elements of an array moved along an axis; the last ones come first.

    Args:
      x: array.
      shift: by how many places, which may be traced.
      axis: an int.

    Returns:
      An array like `x`.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> print(pltpu.roll(onp.arange(4), 1, 0))
    [3 0 1 2]
    """
    return numpy_roll(x, shift, axis)


def touch(ref: PyTree) -> None:
    """Keep a reference alive up to here, for compilers.

    Args:
      ref: a reference.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.touch(olympus.new_ref(1))
    """
