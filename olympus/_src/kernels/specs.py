"""Descriptions of a kernel before its call: blocks, grids, memory, costs.

    BlockSpec(block_shape, index_map)     how an array is cut, and which block a step gets
    GridSpec(grid, in_specs, out_specs)   the steps, and the blocks of all arrays
    MemoryRef(aval, memory_space)         a scratch reference

An entry of a block shape is an int or `Blocked` (the index map counts blocks), `Element` (it counts
elements), None or `Squeezed` (one element, without an axis in the kernel), `BoundedSlice` (it
returns a slice of at most that size), or `Indirect` (it returns an array of indices).
"""

from __future__ import annotations

import dataclasses
import enum
from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from ..base import source
from ..base.source import Source
from ..base.typing import Array, DTypeLike, PyTree
from ..base.util import clipped
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.refs import RefAval, ref_aval
from ..types.shape import SymbolicDim, canonical_shape

INT32 = dtypes.as_dtype("int32")


# Memory ------------------------------------------------------------------------------------------

class Spaces:
    """The methods of memory spaces: called with a shape and a dtype, one makes a `MemoryRef`."""

    value: str

    def __call__(self, shape: Sequence[int], dtype: DTypeLike) -> MemoryRef | SemaphoreRef:
        if dtype is semaphore:
            return SemaphoreRef(shape)
        return MemoryRef(array_aval(shape, dtype), self)

    def from_type(self, type: ShapedArray) -> MemoryRef:
        """A `MemoryRef` in this space for an array of an aval's type."""
        return MemoryRef(type, self)

    def __str__(self) -> str:
        return self.value


class MemorySpace(Spaces, enum.Enum):
    """Where a kernel's reference is kept. In interpret mode all are the device's memory.

    Called with a shape and a dtype, a memory space makes a `MemoryRef`.

    Args:
      shape: the array's shape.
      dtype: its dtype, or a kind of semaphore.
    Returns: A `MemoryRef`, or a `SemaphoreRef`, in this memory.

    >>> from olympus.experimental import pallas as pl
    >>> pl.ANY((8, 128), onp.float32).shape
    (8, 128)
    """

    ANY = "any"             # wherever the compiler puts it
    DEFAULT = "default"     # the backend's choice for blocks
    ERROR = "error"         # errors of checks
    INDEX = "index"         # scalars that index maps read
    KEY = "key"             # random keys
    HOST = "host"           # the host's memory


def array_aval(shape: Sequence[int], dtype: DTypeLike) -> ShapedArray:
    """The aval of an array that a kernel asks for."""
    return make_aval(canonical_shape(shape), dtypes.requested_dtype("pallas", dtype, True))


@dataclasses.dataclass(frozen=True)
class MemoryRef:
    """The type of a kernel's scratch: of an array, in a memory space.

    >>> from olympus.experimental import pallas as pl
    >>> ref = pl.MemorySpace.ANY((4,), onp.int32)
    >>> ref.shape, ref.dtype
    ((4,), dtype('int32'))
    """

    inner_aval: ShapedArray
    memory_space: Any

    shape = property(lambda self: self.inner_aval.shape, doc="The array's shape.")
    dtype = property(lambda self: self.inner_aval.dtype, doc="The array's dtype.")

    def get_array_aval(self) -> ShapedArray:
        """The aval of the array."""
        return self.inner_aval

    def get_ref_aval(self) -> RefAval:
        """The aval of the reference."""
        return ref_aval(self.inner_aval)


#: The state of a kernel's random numbers, the words of a key; zeros before a seed.
GENERATOR = MemoryRef(make_aval((2,), dtypes.as_dtype("uint32")), MemorySpace.KEY)


class semaphore(dtypes.extended):
    """The dtype of semaphores, in types of scratch.

    >>> from olympus.experimental import pallas as pl
    >>> pl.ANY((2,), pl.semaphore).shape
    (2,)
    """


class SemaphoreRef:
    """The type of a scratch reference to semaphores: int32 counts that begin at 0."""

    __slots__ = ("shape",)
    dtype = INT32

    def __init__(self, shape: Sequence[int] = ()) -> None:
        self.shape = tuple(shape)

    def get_array_aval(self) -> ShapedArray:
        """The aval of the counts."""
        return make_aval(self.shape, INT32)

    def get_ref_aval(self) -> RefAval:
        """The aval of the reference."""
        return ref_aval(self.get_array_aval())


class SemaphoreType(enum.Enum):
    """The unit that counts: signals (`REGULAR`, `BARRIER`), or bytes of copies (`DMA`).

    A member is the type of one semaphore; called with a shape, it makes the type of an array.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.SemaphoreType.DMA((2,)).shape
    (2,)
    """

    REGULAR = "regular"
    DMA = "dma"
    BARRIER = "barrier"

    shape = ()
    dtype = INT32

    def __call__(self, shape: Sequence[int]) -> SemaphoreRef:
        return SemaphoreRef(shape)

    def get_array_aval(self) -> ShapedArray:
        """The aval of the count."""
        return make_aval((), INT32)

    def get_ref_aval(self) -> RefAval:
        """The aval of the reference."""
        return ref_aval(self.get_array_aval())


# Blocks ------------------------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class Blocked:
    """An axis cut into blocks of `block_size`; the index map counts blocks.

    >>> from olympus.experimental import pallas as pl
    >>> pl.Blocked(8)
    Blocked(8)
    """

    block_size: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.block_size})"


@dataclasses.dataclass(frozen=True)
class Element:
    """An axis along which a block has `block_size` elements; the index map counts elements.

    The array is padded by `padding` in front and behind, and the index map counts from there.

    >>> from olympus.experimental import pallas as pl
    >>> pl.Element(8, padding=(1, 1))
    Element(8, padding=(1, 1))
    """

    block_size: int
    padding: tuple[int, int] = (0, 0)

    def __repr__(self) -> str:
        more = f", padding={self.padding}" if tuple(self.padding) != (0, 0) else ""
        return f"Element({self.block_size}{more})"


@dataclasses.dataclass(frozen=True)
class Squeezed:
    """An axis along which a block has one element; the kernel's reference lacks the axis.

    >>> from olympus.experimental import pallas as pl
    >>> pl.squeezed
    Squeezed()
    """

    block_size = 1


@dataclasses.dataclass(frozen=True)
class BoundedSlice:
    """An axis along which a block has up to `block_size` elements; the index map returns a `pl.ds`.

    Elements of the reference behind the slice's size do not belong to the array: they read as NaN
    or the least integer, and writes to them are dropped.

    >>> from olympus.experimental import pallas as pl
    >>> pl.BoundedSlice(8)
    BoundedSlice(8)
    """

    block_size: int

    __repr__ = Blocked.__repr__


@dataclasses.dataclass(frozen=True)
class Indirect:
    """An axis along which a block has the elements at the indices that the index map returns.

    >>> from olympus.experimental import pallas as pl
    >>> pl.Indirect(8)
    Indirect(8)
    """

    block_size: int

    __repr__ = Blocked.__repr__


squeezed = Squeezed()
IndexMap: TypeAlias = Callable[..., Any]
BlockDim: TypeAlias = Element | Squeezed | Blocked | BoundedSlice | Indirect


class RevisitMode(enum.Enum):
    """Whether a pipeline may come back to an output's block; interpret mode always may.

    >>> from olympus.experimental import pallas as pl
    >>> pl.Buffered(2, revisit=pl.RevisitMode.ANY).revisit.value
    'any'
    """

    IMMEDIATE = "immediate"
    ANY = "any"


@dataclasses.dataclass(frozen=True)
class Buffered:
    """How many buffers a pipeline keeps for a block; interpret mode needs none.

    >>> from olympus.experimental import pallas as pl
    >>> pl.Buffered(2)
    Buffered(buffer_count=2, use_lookahead=False, revisit=None)
    """

    buffer_count: int
    use_lookahead: bool = False
    revisit: RevisitMode | None = None


@dataclasses.dataclass
class BlockSpec:
    """How an array is cut into blocks, and which of them the kernel gets at a place of the grid.

    Args:
      block_shape: for each axis of the array the block's size, an int or a `BlockDim`; None is one
        element without an axis in the kernel. Without a shape, the block is the whole array.
      index_map: from the grid's indices to one index for each axis, which counts blocks (other
        entries of the block shape count otherwise); zeros by default. Behind the indices it gets
        references to prefetched scalars.
      memory_space: where the block is kept.
      pipeline_mode: how a pipeline buffers it.

    >>> from olympus.experimental import pallas as pl
    >>> spec = pl.BlockSpec((8, 128), lambda i, j: (i, j))
    >>> spec.block_shape
    (8, 128)
    """

    block_shape: Sequence[BlockDim | int | None] | None = None
    index_map: IndexMap | None = None
    memory_space: Any = dataclasses.field(kw_only=True, default=None)
    pipeline_mode: Buffered | None = None

    def __post_init__(self) -> None:
        if callable(self.block_shape) or not (self.index_map is None or callable(self.index_map)):
            raise TypeError(f"BlockSpec: block_shape {clipped(self.block_shape)} and index_map "
                            f"{clipped(self.index_map)} given; a tuple, then a function of the "
                            "grid's indices, are required: BlockSpec((8, 128), lambda i: (i, 0)).")
        self.line: Source | None = source.user_frame(2)      # where it was made, for messages

    replace = dataclasses.replace


class NoBlockSpec:
    """Stands for the spec of a block that is the whole array."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NoBlockSpec"


no_block_spec = NoBlockSpec()


# Grids -------------------------------------------------------------------------------------------

Grid: TypeAlias = "int | Array | Sequence[int | Array | tuple[Hashable, int | Array]]"


class GridSpec:
    """The steps in which a kernel runs, and the blocks that it gets in each.

    Args:
      grid: the size of each axis of the grid, ints or scalar arrays; or pairs of a name and a size.
      in_specs: a `BlockSpec` for each input, as a tuple of pytrees like the arguments.
      out_specs: a `BlockSpec` for each output, a pytree like `out_shape`.
      scratch_shapes: references that last from step to step, a row or dict of `MemoryRef`s.

    >>> from olympus.experimental import pallas as pl
    >>> pl.GridSpec(grid=4).grid
    (4,)
    """

    num_scalar_prefetch = 0

    def __init__(self, grid: Grid = (), in_specs: PyTree = no_block_spec,
                 out_specs: PyTree = no_block_spec, scratch_shapes: PyTree = ()) -> None:
        if not (in_specs is no_block_spec or isinstance(in_specs, Sequence)):
            raise ValueError(f"pallas_call: `in_specs` must be a tuple or a list: {in_specs!r:.60} "
                             "given; write one BlockSpec for each argument.")
        self.grid, self.grid_names = _grid(grid)
        self.in_specs = tuple(in_specs) if isinstance(in_specs, list) else in_specs
        self.out_specs = tuple(out_specs) if isinstance(out_specs, list) else out_specs
        self.scratch_shapes = scratch_shapes

    def __repr__(self) -> str:
        return f"{type(self).__name__}(grid={self.grid})"


class PrefetchScalarGridSpec(GridSpec):
    """A `GridSpec` whose first arguments are scalars, or arrays of them, that index maps read.

    Args:
      num_scalar_prefetch: how many arguments these are. Index maps and the kernel get references to
        them: the index maps behind the grid's indices, the kernel before everything else.
      grid, in_specs, out_specs, scratch_shapes: as for `GridSpec`.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> def copy(rows, x, o):
    ...     o[...] = x[...]
    >>> spec = pltpu.PrefetchScalarGridSpec(
    ...     1, grid=2, in_specs=[pl.BlockSpec((1, 2), lambda i, rows: (rows[i], 0))],
    ...     out_specs=pl.BlockSpec((1, 2), lambda i, rows: (i, 0)))
    >>> take = pl.pallas_call(copy, olympus.ShapeDtypeStruct((2, 2), onp.float32), grid_spec=spec,
    ...                       interpret=True)
    >>> print(take(onp.array([2, 0]), onp.arange(6.).reshape(3, 2)))
    [[4. 5.]
     [0. 1.]]
    """

    def __init__(self, num_scalar_prefetch: int, grid: Grid = (), in_specs: PyTree = no_block_spec,
                 out_specs: PyTree = no_block_spec, scratch_shapes: PyTree = ()) -> None:
        super().__init__(grid, in_specs, out_specs, scratch_shapes)
        self.num_scalar_prefetch = num_scalar_prefetch


def _grid(grid: PyTree) -> tuple[tuple[int | Array, ...], tuple[Hashable, ...] | None]:
    """The sizes of a grid's axes, and their names."""
    names = None
    sizes = tuple(grid) if isinstance(grid, Sequence) else (grid,)
    if sizes and all(isinstance(g, tuple) for g in sizes):
        names, sizes = zip(*sizes, strict=True)
    for g in sizes:
        scalar = getattr(g, "shape", None) == () and dtypes.is_integer(g.dtype)
        if isinstance(g, bool) or not (isinstance(g, (int, np.integer, SymbolicDim)) or scalar):
            raise ValueError(f"pallas_call: Grid must be a tuple of integers or scalar arrays: "
                             f"{grid!r:.60} given; write one size for each axis.")
        if isinstance(g, (int, np.integer)) and g < 0:
            raise ValueError(f"pallas_call: the grid {grid!r:.60} given; sizes of at least 0 are "
                             "required.")
    return tuple([int(g) if isinstance(g, (int, np.integer)) else g for g in sizes]), names


# Costs and compilers -----------------------------------------------------------------------------

@dataclasses.dataclass(frozen=True)
class CostEstimate:
    """The cost of a kernel's call, for schedulers: ints.

    >>> from olympus.experimental import pallas as pl
    >>> pl.CostEstimate(flops=100, transcendentals=0, bytes_accessed=64).flops
    100
    """

    flops: int
    transcendentals: int
    bytes_accessed: int
    remote_bytes_transferred: int = 0

    def __post_init__(self) -> None:
        for name, value in dataclasses.asdict(self).items():
            if not isinstance(value, int):
                raise ValueError("CostEstimate: All fields in CostEstimate must be ints: "
                                 f"{name} is not an int: {type(value)}({value}); round it.")

    def to_json(self) -> bytes:
        """The estimate as XLA reads it."""
        parts = [f'"{k}": {v}' for k, v in dataclasses.asdict(self).items()]
        return ("{" + ", ".join(parts) + "}").encode()


@runtime_checkable
class CompilerParams(Protocol):
    """Options of a backend's compiler for a kernel: a dataclass of that backend's.

    >>> import dataclasses
    >>> from olympus.experimental import pallas as pl
    >>> @dataclasses.dataclass
    ... class Params:
    ...     num_warps: int = 4
    >>> isinstance(Params(), pl.CompilerParams)
    True
    """

    __dataclass_fields__: Any
