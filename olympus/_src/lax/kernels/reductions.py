"""Sums along other axes than the last ones, which XLA:CPU (0.10.2, 0.12.0.1) reads column by
column, and counts.

Slices along the axis are added element by element, which XLA makes one loop of vectors.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence

from ...base.typing import Array, DType, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import prod
from ..bits import bitwise_and, bitwise_or
from ..comparison import eq, ne, select
from ..creation import full
from ..families import Combine, add
from ..reduce import (
    BOOL, Reduction, reduce_and_p, reduce_max_p, reduce_min_p, reduce_or_p, reduce_sum,
    reduce_xor_p,
)
from ..shape import reduce_sum_p, reshape, zeros_of
from ..slicing import concatenate, slice_in_dim
from .blocks import MOST, by_blocks

Dims = tuple[int, ...]
# Found with tools/kernel_table.py: fewer columns, or elements, XLA adds as fast.
LEAST_COLUMNS, LEAST_ELEMENTS = 2048, 32768
# With axes in front of the summed ones, more columns are needed.
LEAST_COLUMNS_BEHIND = 16384
# Numbers of a row that are added by slices, from so many rows on; columns that are added one after
# another, from so many numbers on.
SHORT_ROW, LEAST_ROWS = 12, 1024
FEW_COLUMNS, LEAST_ROW = 3, 64
# So many slices are added at once, and the sums of so many from then on.
WHOLE, PIECES = 64, 16
# Pieces of a count; sixteen streams are slow from 10⁷ elements on.
FEW, LEAST_COUNT = 8, 262144
# Booleans: elements, and of a row; columns XLA combines as fast.
LEAST_BOOLEANS, LEAST_RUN = 32768, 64
# So many are combined at a time, and so many of the results by XLA.
BLOCK, RUN = 256, 32

# What XLA fuses with a sum.
COMPUTED = frozenset(f"stablehlo.{name}" for name in (
    "add", "divide", "multiply", "negate", "select", "subtract"))
INT8 = dtypes.as_dtype("int8")


def tree(combine: Combine, terms: Sequence[Array]) -> Array:
    """Terms combined in pairs."""
    while len(terms) > 1:
        terms = [combine(*pair) if len(pair) == 2 else pair[0]
                 for pair in (terms[i:i + 2] for i in range(0, len(terms), 2))]
    return terms[0]


def run_of_axes(shape: Sequence[int], axes: Dims) -> tuple[int, int, int] | None:
    """The elements before, along and behind axes that follow each other."""
    start, stop = min(axes), max(axes) + 1
    if stop - start != len(axes):
        return None
    return prod(shape[:start]), prod(shape[start:stop]), prod(shape[stop:])


def _of_columns(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> bool:
    aval = b.avals_in[0]
    sizes = run_of_axes(aval.shape, axes) if axes else None
    if sizes is None or not _is_real(aval):
        return False
    before, n, behind = sizes
    return n > 1 and behind >= (LEAST_COLUMNS if before == 1 else LEAST_COLUMNS_BEHIND) and (
        before * n * behind >= LEAST_ELEMENTS)


def _add_columns(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> IrValue:
    aval = b.avals_in[0]
    before, n, behind = sizes = run_of_axes(aval.shape, axes) or (1, 1, 1)
    x = b.op("stablehlo.reshape", [x], None, make_aval(sizes, aval.dtype))
    if n > WHOLE:
        x, n = by_pieces(b, add, x, sizes, aval.dtype, WHOLE)
    (x,) = b.traced(_slices, [x], [make_aval((before, n, behind), aval.dtype)])
    return b.op("stablehlo.reshape", [x], None, b.avals_out[0])


def _slices(x: Array, axis: int = 1) -> Array:
    """The sum along an axis, slice by slice, from 0: a sum of -0.0 alone is 0.0."""
    found = tree(add, [slice_in_dim(x, i, i + 1, 1, axis) for i in range(typeof(x).shape[axis])])
    zeros = zeros_of(typeof(found))
    return select(eq(found, zeros), zeros, found)


def by_pieces(b: Builder, combine: Combine, x: IrValue, sizes: Dims, dtype: DType, last: int
              ) -> tuple[IrValue, int]:
    """The middle axis combined until no more than `last` elements of it are left, and how many.

    Each level is in memory before the next one reads it.
    """
    before, n, behind = sizes
    while n > last:
        q, aval = -(-n // PIECES), make_aval((before, n, behind), dtype)
        (x,) = b.traced(functools.partial(pieces, combine, q, 1), [x], [aval])
        x, n = b.hold(x, aval.update(shape=(before, q, behind))), q
    return x, n


def pieces(combine: Combine, q: int, axis: int, x: Array) -> Array:
    """An axis cut into pieces of q that are combined; the last one may be shorter."""
    n = typeof(x).shape[axis]
    found = tree(combine, [slice_in_dim(x, i, i + q, 1, axis) for i in range(0, n - q + 1, q)])
    rest = n % q
    if not rest:
        return found
    head = combine(slice_in_dim(found, 0, rest, 1, axis), slice_in_dim(x, n - rest, n, 1, axis))
    return concatenate([head, slice_in_dim(found, rest, q, 1, axis)], axis)


# Along a short last axis, or along the axes before one

def _of_short_rows(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> bool:
    aval = b.avals_in[0]
    last = tuple(range(aval.ndim - len(axes), aval.ndim))
    return tuple(sorted(axes)) == last and aval.dtype.kind == "f" and _is_real(aval) and (
        1 < _size(aval, axes) <= SHORT_ROW) and b.avals_out[0].size >= LEAST_ROWS


def _is_real(aval: ShapedArray) -> bool:
    """Whether sums are of one part, and of 32 bits or more, as XLA adds narrower floats in 32."""
    return dtypes.itemsize_bits(aval.dtype) >= 32 and not dtypes.is_complex(aval.dtype)


def _size(aval: ShapedArray, axes: Dims) -> int:
    return prod([aval.shape[i] for i in axes])


def _add_short_rows(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> IrValue:
    aval, out = b.avals_in[0], b.avals_out[0]
    rows = aval.update(shape=(*out.shape, _size(aval, axes)))
    if rows.shape != aval.shape:
        x = b.op("stablehlo.reshape", [x], None, rows)
    (x,) = b.traced(functools.partial(_slices, axis=len(out.shape)), [x], [rows])
    return b.op("stablehlo.reshape", [x], None, out)


def _of_few_columns(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> bool:
    aval = b.avals_in[0]
    return aval.ndim - 1 not in axes and aval.ndim - 2 in axes and _is_real(aval) and (
        1 < aval.shape[-1] <= FEW_COLUMNS) and _size(aval, axes) >= LEAST_ROW and (
        aval.size >= LEAST_ELEMENTS)


def _of_few_long(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> bool:
    """Whether there are long columns, few in a row."""
    aval = b.avals_in[0]
    return axes == (0,) and 1 < aval.shape[-1] <= FEW_COLUMNS and aval.ndim > 2 and (
        aval.shape[0] >= LEAST_ROW and _of_columns(b, x, axes=axes))


def _is_computed(b: Builder, x: IrValue, **params: Hashable) -> bool:
    """Whether the columns are computed, each of which may be computed alone."""
    return getattr(x.owner, "name", "") in COMPUTED


def _add_few_columns(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> IrValue:
    return b.by_rule(functools.partial(_column_sums, axes), [x], b.avals_in)[0]


def _column_sums(axes: Dims, x: Array) -> Array:
    shape = typeof(x).shape
    last, columns = len(shape) - 1, list[Array]()
    for i in range(shape[last]):
        column = reshape(slice_in_dim(x, i, i + 1, 1, last), shape[:last])
        found = reduce_sum(column, axes)
        columns.append(reshape(found, (*typeof(found).shape, 1)))
    return concatenate(columns, len(shape) - 1 - len(axes))


def _of_integers(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> bool:
    """Whether all of an array of integers is added."""
    aval = b.avals_in[0]
    return len(axes) == aval.ndim and aval.size >= LEAST_COUNT and (
        dtypes.scalar_kind(aval.dtype) in "iu")


def _was_narrower(b: Builder, x: IrValue, **params: Hashable) -> bool:
    """Whether the integers were narrower, or booleans."""
    # The owner of an argument is a block.
    operands: list[IrValue] = [*getattr(x.owner, "operands", ())]
    return getattr(x.owner, "name", "") == "stablehlo.convert" and _bits(operands[0]) < _bits(x)


def _bits(x: IrValue) -> int:
    return getattr(x.type.element_type, "width", 64)


def _count(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> IrValue:
    """All elements added in pieces, and the last piece's."""
    def fun(x: Array) -> Array:
        x = reshape(x, (1, typeof(x).size, 1))
        x = pieces(add, -(-typeof(x).size // FEW), 1, x)
        return reduce_sum(reshape(x, (typeof(x).size,)), (0,))

    return b.traced(fun, [x], b.avals_in)[0]


def _of_booleans(b: Builder, x: IrValue, *, axes: Dims) -> bool:
    aval = b.avals_in[0]
    sizes = run_of_axes(aval.shape, axes) if axes else None
    return sizes is not None and aval.dtype == BOOL and aval.size >= LEAST_BOOLEANS and (
        sizes[1] >= LEAST_RUN and sizes[2] == 1)


def _any_or_all(combine: Combine, reduction: Reduction, extremum: Reduction, b: Builder, x: IrValue,
                *, axes: Dims) -> IrValue:
    """Of all booleans block by block, and the few that are left one by one; of rows as the extremum
    of bytes, which XLA makes vectors of, also if it computes the booleans."""
    before, n, _ = run_of_axes(b.avals_in[0].shape, axes) or (1, 1, 1)
    flat, block = make_aval((n,), BOOL), make_aval((BLOCK,), BOOL)
    if before > 1 or n > MOST:
        return b.traced(functools.partial(_of_bytes, extremum, axes), [x], b.avals_in)[0]
    x = b.op("stablehlo.reshape", [x], None, flat)
    first = b.op("stablehlo.slice", [x], {
        "start_indices": b.i64s((0,)), "limit_indices": b.i64s((BLOCK,)),
        "strides": b.i64s((1,))}, block)
    x = by_blocks(b, combine, first, block, [x], flat)
    (x,) = b.traced(lambda x: reduction.bind(pieces(combine, RUN, 0, x), axes=(0,)), [x], [block])
    return b.op("stablehlo.reshape", [x], None, b.avals_out[0])


def _of_bytes(extremum: Reduction, axes: Dims, x: Array) -> Array:
    one, zero = [full(typeof(x).shape, k, INT8) for k in (1, 0)]
    return ne(extremum.bind(select(x, one, zero), axes=axes), 0)


_BYTES = "XLA makes no vectors of booleans"
_SLOW = "XLA reads one column after another"
KERNELS = {
    reduce_sum_p: (
        Kernel("sum of each column", "XLA makes no vectors along a short axis", _of_few_long,
               _add_few_columns, 0.6, suits=_is_computed),
        Kernel("sum of slices", _SLOW, _of_columns, _add_columns, 8.0),
        Kernel("sum of short rows by slices", "XLA makes no vectors along a short axis",
               _of_short_rows, _add_short_rows, 1.4),
        Kernel("sum of each column", "XLA makes no vectors along a short axis", _of_few_columns,
               _add_few_columns, 0.6),
        Kernel("count in pieces", "XLA makes no vectors of numbers that become wider", _of_integers,
               _count, suits=_was_narrower)),
    reduce_or_p: (Kernel("any in pieces", _BYTES, _of_booleans, functools.partial(
        _any_or_all, bitwise_or, reduce_or_p, reduce_max_p)),),
    reduce_and_p: (Kernel("all in pieces", _BYTES, _of_booleans, functools.partial(
        _any_or_all, bitwise_and, reduce_and_p, reduce_min_p)),),
    reduce_xor_p: ()}
