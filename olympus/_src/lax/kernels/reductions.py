"""Sums along other axes than the last ones, which XLA:CPU (0.10.2, 0.12.0.1) reads column by
column, and counts.

Slices along the axis are added element by element, which XLA makes one loop of vectors.
"""

from __future__ import annotations

import builtins
import functools
from collections.abc import Hashable, Sequence

from ...base.typing import Array, DType, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import prod
from ..arithmetic import mul
from ..bits import bitwise_and, bitwise_or
from ..comparison import eq, ne, select
from ..creation import broadcasted_iota, full
from ..families import Combine, add
from ..reduce import (
    BOOL, Reduction, argmax_p, argmin_p, reduce_and_p, reduce_max_p, reduce_min_p, reduce_or_p,
    reduce_sum, reduce_xor_p, smallest,
)
from ..shape import broadcast_in_dim, reduce_sum_p, reshape, zeros_of
from ..slicing import concatenate, dynamic_slice, pad, slice_in_dim

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
BLOCK, RUN, MOST = 256, 32, 2 ** 31 - 1
# For arrays searched for an extremum: elements, and the size of the axis, which may be short in
# front of others, but not as the last one, least of all of integers.
LEAST_SEARCHED, LEAST_AXIS = 16384, 8
LEAST_LAST = {"f": 17, "i": 64, "u": 64}
# For vectors cut into blocks: elements, and a block's.
LEAST_CUT, CUT = 16384, 256

# What XLA fuses with a sum.
COMPUTED = frozenset(f"stablehlo.{name}" for name in (
    "add", "divide", "multiply", "negate", "select", "subtract"))
INT32 = dtypes.as_dtype("int32")


def tree(combine: Combine, terms: Sequence[Array]) -> Array:
    """Terms combined in pairs."""
    while len(terms) > 1:
        terms = [combine(*pair) if len(pair) == 2 else pair[0]
                 for pair in (terms[i:i + 2] for i in range(0, len(terms), 2))]
    return terms[0]


def _run(shape: Sequence[int], axes: Dims) -> tuple[int, int, int] | None:
    """The elements before, along and behind axes that follow each other."""
    start, stop = min(axes), max(axes) + 1
    if stop - start != len(axes):
        return None
    return prod(shape[:start]), prod(shape[start:stop]), prod(shape[stop:])


def _of_columns(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> bool:
    aval = b.avals_in[0]
    sizes = _run(aval.shape, axes) if axes else None
    if sizes is None or not _is_real(aval):
        return False
    before, n, behind = sizes
    return n > 1 and behind >= (LEAST_COLUMNS if before == 1 else LEAST_COLUMNS_BEHIND) and (
        before * n * behind >= LEAST_ELEMENTS)


def _add_columns(b: Builder, x: IrValue, *, axes: Dims, **params: Hashable) -> IrValue:
    aval = b.avals_in[0]
    before, n, behind = sizes = _run(aval.shape, axes) or (1, 1, 1)
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
    sizes = _run(aval.shape, axes) if axes else None
    return sizes is not None and aval.dtype == BOOL and aval.size >= LEAST_BOOLEANS and (
        sizes[1] >= LEAST_RUN and sizes[2] == 1)


def _any_or_all(combine: Combine, reduction: Reduction, b: Builder, x: IrValue, *, axes: Dims
                ) -> IrValue:
    """In pieces of bytes, level by level, and the few that are left one by one."""
    before, n, _ = sizes = _run(b.avals_in[0].shape, axes) or (1, 1, 1)
    x = b.op("stablehlo.reshape", [x], None, make_aval(sizes, BOOL))
    if before == 1 and n <= MOST:
        x, n = _by_blocks(b, combine, x, n), RUN
        (x,) = b.traced(functools.partial(pieces, combine, RUN, 1), [x], [
            make_aval((1, BLOCK, 1), BOOL)])
    else:
        x, n = by_pieces(b, combine, x, sizes, BOOL, RUN)
    (x,) = b.traced(lambda x: reduction.bind(x, axes=(1,)), [x], [make_aval((before, n, 1), BOOL)])
    return b.op("stablehlo.reshape", [x], None, b.avals_out[0])


def _by_blocks(b: Builder, combine: Combine, x: IrValue, n: int) -> IrValue:
    """Blocks of a vector [1, n, 1] combined one after another, the last one with some elements of
    the one before: in a loop, which XLA compiles as one function."""
    block, number = make_aval((1, BLOCK, 1), BOOL), make_aval((), INT32)
    zero, sizes = b.scalar(0, INT32), {"slice_sizes": b.i64s(block.shape)}

    def step(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        start = b.op("stablehlo.multiply", [i, b.scalar(BLOCK, INT32)], None, number)
        here = b.op("stablehlo.dynamic_slice", [x, zero, start, zero], sizes, block)
        return b.traced(combine, [*values, here], [block, block])

    first = b.op("stablehlo.dynamic_slice", [x, zero, zero, zero], sizes, block)
    return b.counted_loop(-(-n // BLOCK), [first], step)[0]


# Places of extrema

def _is_searched(b: Builder, x: IrValue, *, axes: Dims, index_dtype: DType) -> bool:
    aval = b.avals_in[0]
    kind, last = dtypes.scalar_kind(aval.dtype), prod(aval.shape[axes[0] + 1:]) == 1
    least = LEAST_LAST.get(kind, LEAST_AXIS) if last else LEAST_AXIS
    return aval.size >= LEAST_SEARCHED and aval.shape[axes[0]] >= least and (
        dtypes.itemsize_bits(aval.dtype) >= 8)


def _place(extremum: Reduction, b: Builder, x: IrValue, *, axes: Dims, index_dtype: DType
           ) -> IrValue:
    """The extremum first, then the least index where it is, or where a NaN is."""
    aval, out = b.avals_in[0], b.avals_out[0]
    best = out.update(dtype=aval.dtype)
    (found,) = b.by_rule(lambda x: extremum.bind(x, axes=axes), [x], [aval])
    found = b.hold(found, best) if best.shape else found
    before, n, behind = sizes = _run(aval.shape, axes) or (1, 1, 1)
    x = b.op("stablehlo.reshape", [x], None, make_aval(sizes, aval.dtype))
    found = b.op("stablehlo.reshape", [found], None, make_aval((before, behind), aval.dtype))
    q = -(-n // FEW)
    (at,) = b.traced(functools.partial(_places, q), [x, found], [
        make_aval(sizes, aval.dtype), make_aval((before, behind), aval.dtype)])
    if q > 1:
        left = make_aval((before, q, behind), INT32)
        at, q = by_pieces(b, smallest, b.hold(at, left), left.shape, INT32, WHOLE)
    (at,) = b.traced(lambda x: reduce_min_p.bind(x, axes=(1,)), [at],
                     [make_aval((before, q, behind), INT32)])
    at = b.op("stablehlo.reshape", [at], None, out.update(dtype=INT32))
    return at if index_dtype == INT32 else b.convert(at, out)


def _places(q: int, x: Array, found: Array) -> Array:
    """For each of q groups of elements, the least index at which one is `found` or NaN; else the
    last index."""
    n = typeof(x).shape[1]
    terms = []
    for start in range(0, n, q):
        stop = builtins.min(start + q, n)
        part = slice_in_dim(x, start, stop, 1, 1)
        shape = typeof(part).shape
        here = eq(part, broadcast_in_dim(found, shape, (0, 2)))
        if dtypes.scalar_kind(typeof(x).dtype) == "f":
            here = bitwise_or(here, ne(part, part))
        place = add(broadcasted_iota(INT32, shape, 1), start)
        term = select(here, place, full(shape, n - 1, INT32))
        if stop - start < q:
            # An element that stands for none, behind all.
            term = pad(term, literal(n - 1, INT32), [(0, 0, 0), (0, q - stop + start, 0),
                                                     (0, 0, 0)])
        terms.append(term)
    return tree(smallest, terms)


def _is_vector(b: Builder, x: IrValue, *, axes: Dims, index_dtype: DType) -> bool:
    aval = b.avals_in[0]
    return aval.size == aval.shape[axes[0]] >= LEAST_CUT and dtypes.itemsize_bits(aval.dtype) >= 8


def _place_in_block(extremum: Reduction, b: Builder, x: IrValue, *, axes: Dims, index_dtype: DType
                    ) -> IrValue:
    """The extrema of blocks; the first block with the extremum or a NaN is searched.

    The last block overlaps the one before it.
    """
    prim, out, dtype = b.eqn.primitive, b.avals_out[0], b.avals_in[0].dtype
    n = b.avals_in[0].size
    flat, extrema = make_aval((n,), dtype), make_aval((n // CUT + 1,), dtype)
    x = b.op("stablehlo.reshape", [x], None, flat)

    def best(x: Array) -> Array:
        blocks = reshape(slice_in_dim(x, 0, n // CUT * CUT), (n // CUT, CUT))
        last = reshape(slice_in_dim(x, n - CUT, n), (1, CUT))
        return concatenate([extremum.bind(part, axes=(1,)) for part in (blocks, last)], 0)

    def place(x: Array, found: Array) -> Array:
        block = prim.bind(found, axes=(0,), index_dtype=INT32)
        start = smallest(mul(block, CUT), literal(n - CUT, INT32))
        here = dynamic_slice(x, [start], (CUT,))
        return add(start, prim.bind(here, axes=(0,), index_dtype=INT32))

    (found,) = b.traced(best, [x], [flat])
    (at,) = b.traced(place, [x, b.hold(found, extrema)], [flat, extrema])
    at = b.op("stablehlo.reshape", [at], None, out.update(dtype=INT32))
    return at if index_dtype == INT32 else b.convert(at, out)


def _searches(what: str, extremum: Reduction) -> tuple[Kernel, ...]:
    why = "XLA makes no vectors of pairs"
    return (Kernel(f"{what} of blocks, then its place", why, _is_vector,
                   functools.partial(_place_in_block, extremum), 5.2),
            Kernel(f"{what}, then its place", why, _is_searched,
                   functools.partial(_place, extremum), 5.1))


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
        _any_or_all, bitwise_or, reduce_or_p)),),
    reduce_and_p: (Kernel("all in pieces", _BYTES, _of_booleans, functools.partial(
        _any_or_all, bitwise_and, reduce_and_p)),),
    reduce_xor_p: (),
    argmax_p: _searches("maximum", reduce_max_p),
    argmin_p: _searches("minimum", reduce_min_p)}
