"""Names for kernels on TPUs: memory spaces, options, copies; they run in interpret mode here."""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence

from ..base.config import config, pallas_interpret
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DTypeLike, PyTree, Reference
from ..devices.devices import default_backend
from ..lax.collectives.axes import axis_index
from ..lax.convert import bitcast_convert_type
from ..numpy.manipulation import roll as numpy_roll
from ..types.dtypes import itemsize_bits
from ..types.shape import floor_div, mod
from . import masked
from .control import when
from .semaphores import AsyncCopy, make_async_copy
from .specs import SemaphoreRef, SemaphoreType, Spaces


class MemorySpace(Spaces, enum.Enum):
    """The memories of a TPU. In interpret mode all are the device's.

    Args:
      shape: the array's shape.
      dtype: its dtype, or a kind of semaphore.
    Returns: A `MemoryRef`, or a `SemaphoreRef`, in this memory.

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


class CoreType(enum.Enum):
    """The kind of core that runs a kernel.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.CoreType.TC.value
    'tc'
    """

    TC = "tc"
    SC_SCALAR_SUBCORE = "sc_scalar_subcore"
    SC_VECTOR_SUBCORE = "sc_vector_subcore"


class SideEffectType(enum.Enum):
    """Whether a kernel does more than compute its outputs.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.SideEffectType.PURE.value
    'pure'
    """

    PURE = "pure"
    DATAFLOW_SIDE_EFFECTING = "dataflow_side_effecting"
    SIDE_EFFECTING = "side_effecting"


class Tiling(enum.Enum):
    """How a TPU lays out the memory of a pipeline's blocks; interpret mode ignores it.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.Tiling.COMPACT.name
    'COMPACT'
    """

    COMPACT = 1
    SPARSE_CORE = 2


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
    """`interpret=` of kernels for TPUs, which run as with `interpret=True`, on one core.

    Attributes:
      uninitialized_memory: what memory holds before it is written: "nan", or the least integer, or
        "zero".
      random_seed: the steps along axes of the grid that `dimension_semantics` call parallel run in
        an order that the seed draws, so that a kernel that depends on their order shows.
      grid_point_recorder: called with the place in the grid, and the core, before each step.
      num_cores_or_threads: how many cores share the first axes of the grid that
        `dimension_semantics` call parallel. Each has scratch and copies of inputs of its own; they
        run one after the other.
      out_of_bounds_reads: "raise" or "uninitialized" is checked; what leaves a reference is moved
        inside, and `jit(checks={"index"})` finds it.
      dma_execution_mode: "on_wait" or "eager" is checked; a copy is done where it starts.
      buffer_bounds: "logical" or "padded" is checked; it is "logical".
      detect_races, skip_floating_point_ops: True gives a warning: nothing here does it. Waits
        without a signal, and copies without a wait, fail under `jit(checks={"user"})`.
      vector_clock_size, logging_mode, allow_hbm_allocation_in_run_scoped: for JAX's simulator;
        no effect here.

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

    def __post_init__(self) -> None:
        for name, choices in (("out_of_bounds_reads", ("raise", "uninitialized")),
                              ("uninitialized_memory", ("nan", "zero")),
                              ("dma_execution_mode", ("on_wait", "eager")),
                              ("buffer_bounds", ("logical", "padded"))):
            if getattr(self, name) not in choices:
                raise ValueError(f"InterpretParams: {name}={getattr(self, name)!r} given; one of "
                                 f"{', '.join(map(repr, choices))} is required.")
        for name in "num_cores_or_threads", "vector_clock_size":
            count = getattr(self, name)
            if count is not None and count < 1:
                raise ValueError(f"InterpretParams: {name}={count} given; at least 1 is required.")
        for name in "detect_races", "skip_floating_point_ops":
            if getattr(self, name):
                more = (" jit(checks={'user'}) finds waits that nothing ends, and copies that "
                        "nobody waits for." if name == "detect_races" else "")
                warnings.warn(f"InterpretParams: {name}=True has no effect: steps and copies run "
                              f"one after the other here.{more}", stacklevel=3)


@contextlib.contextmanager
def force_tpu_interpret_mode(params: InterpretParams | None = None) -> Iterator[None]:
    """A context in which all kernels are interpreted.

    Args: params: as for `interpret=`.

    >>> def one(o):
    ...     o[...] = 1.
    >>> with pltpu.force_tpu_interpret_mode():
    ...     print(pl.pallas_call(one, olympus.ShapeDtypeStruct((), onp.float32))())
    1.0
    """
    with pallas_interpret(True if params is None else params):
        yield


def set_tpu_interpret_mode(params: object = None) -> None:
    """Interpret all kernels from now on, by the option `olympus_pallas_interpret`.

    Args: params: an `InterpretParams`; None is True.

    >>> pltpu.set_tpu_interpret_mode()
    >>> olympus.config.update("olympus_pallas_interpret", False)
    """
    config.update("olympus_pallas_interpret", True if params is None else params)


def reset_tpu_interpret_mode_state() -> None:
    """Forget the state of interpreted kernels; they have none.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.reset_tpu_interpret_mode_state()
    """


def is_tpu_device() -> bool:
    """Whether the default device is a TPU.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.is_tpu_device()
    False
    """
    return default_backend() == "tpu"


class TensorCoreMesh:
    """The cores of a TPU, a mesh for `pl.core_map` and `pl.kernel`; here they run one by one.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.TensorCoreMesh("core", num_cores=2).shape
    {'core': 2}
    """

    def __init__(self, axis_name: str, num_cores: int = 1) -> None:
        self.axis_name, self.num_cores = axis_name, num_cores

    @property
    def shape(self) -> dict[str, int]:
        """The number of cores by the axis's name."""
        return {self.axis_name: self.num_cores}


def create_tensorcore_mesh(axis_name: str, devices: PyTree = None, num_cores: int | None = None
                           ) -> TensorCoreMesh:
    """A mesh of the cores of a TPU; of one core if their number is left out.

    Args:
      axis_name: the name of the axis of cores.
      devices: has no effect in interpret mode.
      num_cores: the number of cores; None is one.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.create_tensorcore_mesh("core").shape
    {'core': 1}
    """
    return TensorCoreMesh(axis_name, 1 if num_cores is None else num_cores)


# Operations --------------------------------------------------------------------------------------

@api_boundary
def async_copy(src_ref: Reference, dst_ref: Reference, sem: Reference, *, priority: int = 0
               ) -> AsyncCopy:
    """Start a copy between references.

    Args:
      src_ref, dst_ref: references, or parts, with one shape and dtype.
      sem: a reference to a semaphore of kind `DMA`.
      priority: which of several copies comes first.
    Returns: The copy, with `wait()`.

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

    Args: src_ref, dst_ref: references, or parts, with one shape and dtype.

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

    >>> print(pltpu.load(olympus.new_ref(onp.arange(3)).at[1:]))
    [1 2]
    """
    return masked.load(ref, mask=mask)


@api_boundary
def store(ref: Reference, val: ArrayLike, *, mask: ArrayLike | None = None) -> None:
    """Write to a reference, or to a part, where a mask is true.

    Args:
      ref: a reference, or a part of one.
      val: array or number that broadcasts to it.
      mask: bools that broadcast to it.

    >>> ref = olympus.new_ref(onp.arange(3))
    >>> pltpu.store(ref, 7, mask=onp.array([True, False, True]))
    >>> print(ref[...])
    [7 1 7]
    """
    masked.store(ref, None, val, mask=mask)


@api_boundary
def roll(x: Array, shift: ArrayLike, axis: int) -> Array:
    """The elements of an array moved along an axis; the last ones come first.

    Args:
      x: array.
      shift: by how many places, which may be traced.
      axis: an int.
    Returns: An array like `x`.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> print(pltpu.roll(onp.arange(4), 1, 0))
    [3 0 1 2]
    """
    return numpy_roll(x, shift, axis)


def touch(ref: PyTree) -> None:
    """Keep a reference alive up to here, for compilers.

    Args: ref: a reference.

    >>> pltpu.touch(olympus.new_ref(1))
    """


def run_on_first_core(core_axis_name: str) -> Callable[[Callable[[], None]], None]:
    """Decorator: run a function at once, on the first core of an axis of the mesh only.

    Args: core_axis_name: the name of the axis.

    >>> def f(x, o):
    ...     @pltpu.run_on_first_core("core")
    ...     def _():
    ...         o[...] = x[...] + 1
    >>> mesh = pltpu.create_tensorcore_mesh("core")
    >>> out = olympus.ShapeDtypeStruct((2,), onp.float32)
    >>> print(pl.kernel(f, out, mesh=mesh, interpret=True)(onp.ones(2)))
    [2. 2.]
    """
    return when(axis_index(core_axis_name) == 0)


def dma_semaphore() -> SemaphoreRef:
    """The type of one semaphore of kind `DMA`.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.dma_semaphore().shape
    ()
    """
    return SemaphoreType.DMA(())


def bitcast(x: Array, ty: DTypeLike) -> Array:
    """The bits of an array as another dtype; narrower and wider ones change the rows (axis -2).

    Args: ty: a dtype.
    Returns: An array of dtype `ty` with the bits of x.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.bitcast(onp.ones((8, 4), onp.int32), onp.int16).shape
    (16, 4)
    """
    old, new = itemsize_bits(x.dtype), itemsize_bits(ty)
    if old == new:
        return bitcast_convert_type(x, ty)
    *lead, rows, columns = x.shape
    if old > new:
        parts = bitcast_convert_type(x, ty)
        return parts.swapaxes(-1, -2).reshape(*lead, -1, columns)
    if mod(rows * old, new):
        raise ValueError(f"bitcast: {x.aval} to {ty} given; rows whose bits make whole elements "
                         "are required.")
    parts = x.reshape(*lead, -1, floor_div(new, old), columns)
    return bitcast_convert_type(parts.swapaxes(-1, -2), ty)


def with_memory_space_constraint(x: Array, memory_space: object) -> Array:
    """An array that the compiler keeps in a memory space; in interpret mode the array itself.

    Args: memory_space: a member of `MemorySpace`.
    Returns: x.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> print(pltpu.with_memory_space_constraint(onp.ones(2), pltpu.VMEM))
    [1. 1.]
    """
    return x
