"""Blocks: which part of an array a step of the grid gets, as a view.

A block that would leave the array lies in padding: arrays are padded to whole blocks with NaN, or
the least integer, and outputs are cut to their shape at the end.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from ..base import source
from ..base.typing import Array, ArrayLike, PyTree, Reference
from ..base.util import clipped, name_of, unwrapped
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, DebugInfo
from ..core.staging import stage
from ..core.trace import is_literal, literal, typeof
from ..interpreters.discharge import discharge
from ..lax.arithmetic import mul
from ..lax.comparison import lt, select
from ..lax.convert import convert_element_type
from ..lax.creation import broadcasted_iota, full
from ..lax.families import add
from ..lax.refs import View
from ..lax.shape import as_array, broadcast, expand_dims, squeeze
from ..lax.slicing import dynamic_slice, dynamic_update_slice, slice as lax_slice
from ..numpy.index_plan import Slice
from ..numpy.indexing import take, write
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.dtypes import DType
from ..types.refs import RefAval, ref_aval
from ..types.shape import SymbolicDim, definitely_equal, floor_div, known_less, maximum
from .grid import around, memory_is_zero
from .padding import pad_blocks_p
from .specs import (
    INT32, BlockDim, Blocked, BlockSpec, BoundedSlice, Element, IndexMap, Indirect, NoBlockSpec,
    Squeezed, squeezed,
)
from .steps import as_index

Unflatten: TypeAlias = Callable[[Sequence[Reference]], Sequence[PyTree]]
_DIMS = (Blocked, BoundedSlice, Element, Indirect, Squeezed)
_WITHOUT_NAN = frozenset(["float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn"])


def blank(shape: Sequence[int], dtype: DType) -> Array:
    """The number that fills unwritten memory: NaN, the least integer, False; or 0."""
    if memory_is_zero():
        return full(tuple(shape), 0, dtype)
    if dtypes.is_integer(dtype):
        return full(tuple(shape), dtypes.integer_range(dtype)[0], dtype)
    nan = dtypes.is_inexact(dtype) and dtypes.long_name(dtype) not in _WITHOUT_NAN
    return full(tuple(shape), np.nan if nan else 0, dtype)


class Block(View):
    """A block of an array that is padded to `padded`.

    Its operands are, for each axis, the block's start; for a `BoundedSlice` its size, too, and for
    an `Indirect` axis the indices in place of the start.
    """

    __slots__ = ("dims", "padded", "sizes")

    def __init__(self, dims: Sequence[BlockDim], padded: Sequence[int]) -> None:
        self.dims, self.padded = tuple(dims), tuple(padded)
        self.sizes = tuple([d.block_size for d in self.dims])

    def _key(self) -> tuple[object, ...]:
        return self.dims, self.padded

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the kernel's reference."""
        return tuple([n for n, d in zip(self.sizes, self.dims, strict=True)
                      if type(d) is not Squeezed])

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        return make_aval(self.shape, inner.dtype)

    def _window(self, ops: Sequence[ArrayLike]
                ) -> tuple[Sequence[Array], list[int], list[Array | None], list[Array | None]]:
        """Starts and sizes of the smallest window around the block; then, for each axis, how many
        elements of the window belong to the block, and their indices (None: all, in order)."""
        rest: Any = iter(ops)
        starts, sizes, bounds, indices = [], [], [], []
        for d, size, whole in zip(self.dims, self.sizes, self.padded, strict=True):
            op = next(rest)
            indirect = type(d) is Indirect
            starts.append(literal(0, INT32) if indirect or size == whole else op)
            sizes.append(whole if indirect else size)
            bounds.append(next(rest) if type(d) is BoundedSlice else None)
            indices.append(op if indirect else None)
        return starts, sizes, bounds, indices

    def _gone(self) -> list[int]:
        return [i for i, d in enumerate(self.dims) if type(d) is Squeezed]

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        starts, sizes, bounds, indices = self._window(ops)
        if tuple(sizes) != self.padded:
            x = dynamic_slice(x, starts, sizes, allow_negative_indices=False)
        for axis, index in enumerate(indices):
            if index is not None:
                x = take(x, index, axis)
        within = self._within(bounds)
        if within is not None:
            x = select(within, x, blank(self.sizes, typeof(x).dtype))
        gone = self._gone()
        return squeeze(x, gone) if gone else x

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        starts, sizes, bounds, indices = self._window(ops)
        gone = self._gone()
        v = as_array(expand_dims(v, gone) if gone else v)
        within = self._within(bounds)
        if within is not None:
            v = select(within, v, self.read_whole(x, ops))
        at = [axis for axis, index in enumerate(indices) if index is not None]
        if at:
            window = dynamic_slice(x, starts, sizes, allow_negative_indices=False)
            *outer, last = at
            if outer:
                raise NotImplementedError(
                    f"pallas_call: the block {self.dims} of an output given; at most one Indirect "
                    "axis is required; use pl.Blocked for the others.")
            v = write("set", window, (*[slice(None)] * last, indices[last]), v)
        if tuple(sizes) == self.padded:
            return v
        return dynamic_update_slice(x, v, starts, allow_negative_indices=False)

    def read_whole(self, x: Array, ops: Sequence[ArrayLike]) -> Array:
        """The elements that the block replaces, with all axes."""
        starts, sizes, _, _ = self._window(ops)
        return dynamic_slice(x, starts, sizes, allow_negative_indices=False)

    def _within(self, bounds: Sequence[Array | None]) -> Array | None:
        """Which elements are before the ends of bounded slices; None without bounded slices."""
        valid = None
        for axis, size in enumerate(bounds):
            if size is not None:
                here = lt(broadcasted_iota(INT32, self.sizes, axis), broadcast(size, self.sizes))
                valid = here if valid is None else valid & here
        return valid

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return self.write(x, add(self.read(x, *ops), v), *ops)

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        return f"[block {','.join(ops)}]"


class BlockMapping:
    """How one operand of a kernel is cut: its block, its padding, and its index map as a program.

    origin: the operand's name in messages, `args[0]`.
    """

    def __init__(self, spec: BlockSpec | NoBlockSpec, aval: ShapedArray, origin: str,
                 grid: Sequence[int | None], scalars: Sequence[RefAval],
                 unflatten: Unflatten) -> None:
        if not isinstance(spec, (BlockSpec, NoBlockSpec)):
            raise TypeError(f"pallas_call: {clipped(spec)} given for {origin}; a BlockSpec is "
                            "required; use pl.no_block_spec for the whole array.")
        self.aval, self.origin, self.whole = aval, origin, spec
        made = isinstance(spec, BlockSpec)
        shape = spec.block_shape if made else None
        self.line = spec.line if isinstance(spec, BlockSpec) else None
        self.memory_space = spec.memory_space if isinstance(spec, BlockSpec) else None
        if not isinstance(shape, (tuple, list, type(None))):
            raise TypeError(f"pallas_call: the block shape {clipped(shape)} given for {origin}; a "
                            f"tuple with an entry for each axis is required{self._made()}.")
        self.dims = tuple(map(self._dim, aval.shape if shape is None else shape))
        if len(self.dims) != aval.ndim:
            raise ValueError(
                f"pallas_call: the block shape {_shown(self.dims)} given for {origin}, {aval}:\n"
                f"  Block shape for {origin} (= {_shown(self.dims)}) must have the same number of "
                f"dimensions as the array shape {aval.shape};\n  write one entry for each axis, "
                f"None for an axis that the kernel does not have{self._made()}.")
        for d, n in zip(self.dims, aval.shape, strict=True):
            self._check_size(d.block_size, n)
        self.padding = [self._padding(d, n) for d, n in zip(self.dims, aval.shape, strict=True)]
        self.block = Block(self.dims, [lo + n + hi for (lo, hi), n in zip(
            self.padding, aval.shape, strict=True)])
        index_map = spec.index_map if made else None
        if index_map is None and any(type(d) is BoundedSlice for d in self.dims):
            raise ValueError(f"pallas_call: the block shape {_shown(self.dims)} given for {origin} "
                             "without an index map; one that returns pl.ds(start, size) for each "
                             f"pl.BoundedSlice is required{self._made()}.")
        self.program = None if index_map is None else self._stage(
            index_map, grid, scalars, unflatten)

    def _made(self) -> str:
        if self.line is None:
            return ""
        return f";\n  the BlockSpec was made at {source.summarize(self.line)}"

    def _dim(self, d: PyTree) -> BlockDim:
        if d is None:
            return squeezed
        if isinstance(d, SymbolicDim):
            return Blocked(d)
        if hasattr(d, "__index__") and not isinstance(d, bool):
            return Blocked(d.__index__())
        if not isinstance(d, _DIMS):
            raise ValueError(
                f"pallas_call: the block shape entry {clipped(d)} given for {self.origin}: "
                f"Unsupported block dimension type: {type(d)};\n  an int, None, pl.Squeezed, "
                f"pl.Blocked, pl.Element, pl.BoundedSlice or pl.Indirect is required{self._made()}."
            )
        return d

    def _check_size(self, size: object, n: int) -> None:
        """ValueError unless a block has elements along an axis of size n; 0 is one block of 0."""
        least = 0 if definitely_equal(n, 0) else 1
        if not isinstance(size, (int, SymbolicDim)) or known_less(size, least) or (
                known_less(2**31 - 1, size)):
            raise ValueError(f"pallas_call: the block size {size} given for {self.origin}; a "
                             f"positive int is required, less than 2**31{self._made()}.")

    @staticmethod
    def _padding(d: BlockDim, n: int) -> tuple[int, int]:
        """How much an axis is padded in front and behind, so that no block leaves the array."""
        if type(d) is BoundedSlice:
            return 0, d.block_size
        if type(d) is Indirect:
            return 0, 0
        lo, hi = d.padding if type(d) is Element else (0, 0)
        whole, size = lo + n + hi, d.block_size
        # In this form a symbolic size is known to be at least one block.
        return lo, hi if definitely_equal(whole, size) else (
            floor_div(whole + size - 1, size) * size - lo - n)

    def _stage(self, index_map: IndexMap, grid: Sequence[int | None], scalars: Sequence[RefAval],
               unflatten: Unflatten) -> ClosedOlympuspr:
        """The index map as a program from the grid's indices and the scalars to the operands of the
        block."""
        def run(*xs: Reference) -> list[Array]:
            ids, refs = xs[:len(grid)], xs[len(grid):]
            where = f"Index map function {name_of(index_map)} at {written_at(index_map)} for " \
                    f"{self.origin}"
            args = (*ids, *unflatten(refs))
            error = not_taken(index_map, args)
            if error is not None:
                more = f" and {len(args) - len(ids)} prefetched scalars" if refs else ""
                raise TypeError(f"pallas_call: {where} does not take its arguments ({error}):\n  "
                                f"{len(ids)} indices of the grid{more} are given;\n  write one "
                                f"parameter for each{self._made()}.")
            with around(ids, grid):
                starts = index_map(*args)
            starts = tuple(starts) if isinstance(starts, (tuple, list)) else (starts,)
            if len(starts) != len(self.dims):
                count = f"{len(starts)} ind{'ex' if len(starts) == 1 else 'ices'}"
                raise ValueError(
                    f"pallas_call: {count} given for {self.origin}, {self.aval}:\n"
                    f"  {where} must return {len(self.dims)} values to match block_shape="
                    f"{_shown(self.dims)}. Currently returning {len(starts)} values:\n  return one "
                    f"index for each axis{self._made()}.")
            ops: list[Any] = []
            for i, (x, d, n) in enumerate(zip(starts, self.dims, self.block.padded, strict=True)):
                ops += self._ops(where, i, x, d, n)
            return ops

        avals: list[Any] = [*[make_aval((), INT32)] * len(grid), *scalars]
        info = DebugInfo("pallas_call index_map", name_of(index_map))
        closed = stage(run, avals, info)
        self.op_avals = closed.out_avals
        return discharge(closed)

    def _ops(self, where: str, i: int, x: PyTree, d: BlockDim, padded: int) -> list[Array]:
        """The block's operands along an axis, from the index map's result for it."""
        if type(d) is BoundedSlice:
            if not isinstance(x, Slice):
                raise ValueError(f"pallas_call: {where}: index_map returned a value of type "
                                 f"{type(x)} at position {i} with block dimension {d} when it "
                                 "should be pl.Slice; return pl.ds(start, size).")
            return [_index(x.start), _index(x.size)]
        aval = typeof(x)
        wanted = (d.block_size,) if type(d) is Indirect else ()
        if aval.shape != wanted or not dtypes.is_integer(aval.dtype):
            what = f"an array of {d.block_size} integers" if wanted else "integer scalars"
            raise ValueError(f"pallas_call: {where} must return {what}. Output[{i}] has type "
                             f"{aval}; convert it with astype(int){self._made()}.")
        if type(d) is not Blocked:
            return [_index(x)]
        if is_literal(x) or isinstance(x, int):
            start = int(getattr(x, "raw", x)) * d.block_size
            if known_less(start, 0) or known_less(maximum(padded, 1) - 1, start):
                raise ValueError(
                    f"pallas_call: {where} returned the block {start // d.block_size} of axis {i} "
                    f"of {self.aval}; there are {-(-padded // d.block_size)} blocks of "
                    f"{d.block_size} elements; count blocks from 0, or use pl.Element{self._made()}"
                    ".")
            return [as_index(start)]
        size = d.block_size
        return [_index(x) if definitely_equal(size, 1) else mul(_index(x), as_index(size))]

    def ops(self, ids: Sequence[Array], scalars: Sequence[Array]) -> list[Array]:
        """The operands of the block for a place in the grid."""
        if self.program is None:
            return [literal(0, INT32)] * len(self.dims)
        return eval_closed(self.program, *ids, *scalars)[:len(self.op_avals)]

    @property
    def ref_aval(self) -> RefAval:
        """The type of the kernel's reference."""
        return ref_aval(self.aval.update(shape=self.block.shape))

    @property
    def _padded(self) -> bool:
        return any(p != (0, 0) for p in self.padding)

    def pad(self, x: Array) -> Array:
        """The array with its padding."""
        if not self._padded:
            return as_array(x)
        return pad_blocks_p.bind(x, blank((), self.aval.dtype), padding_config=tuple([
            (lo, hi, 0) for lo, hi in self.padding]))

    def cut(self, x: Array) -> Array:
        """A padded array without its padding."""
        if not self._padded:
            return x
        lows = [lo for lo, _ in self.padding]
        return lax_slice(x, lows, [lo + n for lo, n in zip(lows, self.aval.shape, strict=True)])

    def blank(self) -> Array:
        """An unwritten output, with its padding."""
        return blank(self.block.padded, self.aval.dtype)


def _index(x: Array | int) -> Array:
    if isinstance(x, (int, np.integer)):
        return literal(int(x), INT32)
    return x if typeof(x).dtype == INT32 else convert_element_type(x, INT32)


def _shown(dims: Sequence[BlockDim]) -> str:
    """A block shape as it was written."""
    texts = [str(d.block_size) if type(d) is Blocked else "None" if type(d) is Squeezed else repr(d)
             for d in dims]
    return f"({', '.join(texts)}{',' if len(texts) == 1 else ''})"


def not_taken(fun: Callable[..., object], args: Sequence[PyTree],
              named: Mapping[str, PyTree] = {}) -> str | None:
    """Python's error text if a function does not accept these arguments; None if it does."""
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):     # some callables have no signature
        return None
    try:
        signature.bind(*args, **named)
    except TypeError as error:
        return str(error)       # not the error: it would keep the callers' frames alive
    return None


def written_at(fun: Callable[..., object]) -> str:
    """`path/file.py:12`: where a function is written."""
    code = getattr(unwrapped(fun), "__code__", None)
    return source.written_at(code) if code else repr(fun)
