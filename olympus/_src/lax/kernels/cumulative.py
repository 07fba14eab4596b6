"""Cumulative operations as a loop with running values, a vector or eight numbers a step.

XLA:CPU computes windows of 16, a number at a time. In the loops here, long axes have running values
of blocks of some 256 elements, of 256 such blocks, and of all before them. So errors grow as
blocks' do, and sums of numbers that are not negative never fall.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence

import numpy as np

from ...base.typing import Array, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import prod
from ..bits import bitwise_and, bitwise_xor, shift_right_arithmetic
from ..comparison import eq, ne, select
from ..convert import bitcast_convert_type_p
from ..creation import full
from ..cumulative import cumlogsumexp_p, cummax_p, cummin_p, cumprod_p, cumsum_p
from ..families import Combine, add
from ..shape import broadcast_in_dim
from ..slicing import concatenate, dynamic_index_in_dim, dynamic_update_index_in_dim, slice_in_dim

INT32 = dtypes.as_dtype("int32")
# Found with tools/kernel_table.py: shorter axes XLA unrolls.
LEAST_AXIS, LEAST_ELEMENTS = 16, 512
# With narrow rows in many matrices, a step would read as many lines of memory as there are
# matrices.
NARROW, MANY = 16, 4096
# Elements. With 1,024, columns take half the time; errors of sums along 2,048 numbers are then some
# 6 times, of logarithms of sums 13 times XLA's form's, in place of 1.5 and 3 times.
BLOCK = 256
CHUNK = 8       # numbers a step


def _sizes(b: Builder, axis: int) -> tuple[int, int, int]:
    shape = b.avals_in[0].shape
    return prod(shape[:axis]), shape[axis], prod(shape[axis + 1:])


def _is_long(b: Builder, x: IrValue, *, axis: int, reverse: bool) -> bool:
    aval, (before, n, behind) = b.avals_in[0], _sizes(b, axis)
    return n >= LEAST_AXIS and aval.size >= LEAST_ELEMENTS and (
        dtypes.itemsize_bits(aval.dtype) >= 8) and (
        behind == 1 or behind >= NARROW or before * -(-n // BLOCK) <= MANY)


def _loop(b: Builder, x: IrValue, *, axis: int, reverse: bool) -> IrValue:
    aval, out, sizes = b.avals_in[0], b.avals_out[0], _sizes(b, axis)
    dtype = dtypes.wide_dtype(aval.dtype)
    blocks = make_aval(sizes, dtype)
    if dtype != aval.dtype:
        x = b.convert(x, aval.update(dtype=dtype))
    x = b.op("stablehlo.reshape", [x], None, blocks)
    one_level = not b.eqn.primitive.rounds or dtype.kind in "iu"
    if sizes[2] > 1:
        x = _along_columns(b, x, blocks, reverse, one_level)
    elif one_level and dtype.kind == "f":
        x = _extrema(b, x, blocks, reverse)
    else:
        x = _along_rows(b, x, blocks, reverse, one_level)
    x = b.op("stablehlo.reshape", [x], None, out.update(dtype=dtype))
    return b.convert(x, out) if dtype != out.dtype else x


def _resized(b: Builder, x: IrValue, aval: ShapedArray, n: int, reverse: bool
             ) -> tuple[IrValue, ShapedArray]:
    """The middle axis with n elements: identities follow the last one, or what follows goes."""
    more = n - aval.shape[1]
    if not more:
        return x, aval
    none, ends = b.i64s((0, 0, 0)), (b.i64s((0, more, 0)), b.i64s((0, 0, 0)))
    low, high = ends if reverse else ends[::-1]
    wider = aval.update(shape=(aval.shape[0], n, aval.shape[2]))
    start = b.scalar(b.eqn.primitive.identity(aval.dtype), aval.dtype)
    return b.op("stablehlo.pad", [x, start], {
        "edge_padding_low": low, "edge_padding_high": high, "interior_padding": none}, wider), wider


# Along the last axis: one loop over the numbers of all rows

def _along_rows(b: Builder, x: IrValue, aval: ShapedArray, reverse: bool, one_level: bool
                ) -> IrValue:
    dtype, (before, size, _) = aval.dtype, aval.shape
    x, wide = _resized(b, x, aval, -(-size // CHUNK) * CHUNK, reverse)
    rows = wide.shape[1] // CHUNK
    count = before * rows
    chunks, number = make_aval((count, CHUNK), dtype), make_aval((), INT32)
    x = b.op("stablehlo.reshape", [x], None, chunks)
    levels = 1 if one_level else 1 + sum(size > 2 * limit for limit in (BLOCK, BLOCK * BLOCK))
    prim, carry = b.eqn.primitive, make_aval((1,), dtype)
    start = prim.identity(dtype)
    step = functools.partial(_step, prim.combine, start, rows if before > 1 else 0, reverse,
                             one_level)

    def body(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        place, *running, results = values
        at = b.reverse_index(i, count) if reverse else i
        place, y, *running = b.traced(step, [place, b.slice_at(x, at), *running], [
            number, make_aval((CHUNK,), dtype), *[carry] * levels])
        return [place, *running, b.update_at(results, at, y)]

    first = [b.scalar(0, INT32), *[b.full(carry, start)] * levels, b.full(chunks, 0)]
    results = b.counted_loop(count, first, body)[-1]
    results = b.op("stablehlo.reshape", [results], None, wide)
    return _resized(b, results, wide, size, reverse)[0]


def _extrema(b: Builder, x: IrValue, aval: ShapedArray, reverse: bool) -> IrValue:
    """By integers in the order of floats, which are compared in one operation."""
    limits = np.iinfo(f"int{8 * aval.dtype.itemsize}")
    integers = aval.update(dtype=dtypes.as_dtype(limits.dtype))
    nan = limits.max if b.eqn.primitive is cummax_p else limits.min

    def as_integers(bits: Array) -> Array:
        """Of the bits of floats; and the bits, of these integers."""
        sign = shift_right_arithmetic(bits, limits.bits - 1)
        return bitwise_xor(bits, bitwise_and(sign, limits.max))

    def ordered(x: Array) -> Array:
        bits = bitcast_convert_type_p.bind(x, new_dtype=integers.dtype)
        return select(ne(x, x), full(aval.shape, nan, integers.dtype), as_integers(bits))

    (x,) = b.traced(ordered, [x], [aval])
    (x,) = b.traced(as_integers, [_along_rows(b, x, integers, reverse, True)], [integers])
    return b.op("stablehlo.bitcast_convert", [x], None, aval)


def _step(combine: Combine, identity: float, rows: int, reverse: bool, one_level: bool,
          place: Array, x: Array, *operands: Array) -> list[Array]:
    """The place of the next chunk among the `rows` of a row, prefixes, and running values."""
    aval, running, order = typeof(operands[0]), list(operands), -1 if reverse else 1
    empty = full(aval.shape, identity, aval.dtype)
    numbers = [slice_in_dim(x, k, k + 1) for k in range(CHUNK)][::order]
    if one_level:       # each number waits for the one before, which is short for integers
        prefixes = list(itertools.accumulate([running[0], *numbers], combine))[1:]
        running, chunk = prefixes[-1:], concatenate(prefixes[::order], 0)
    else:               # the prefixes of a chunk do not wait for the chunks before
        prefixes = list(itertools.accumulate(numbers, combine))
        chunk = concatenate(prefixes[::order], 0)
        # Sums level by level, else some would fall.
        for value in running[::-1] if combine is add else [functools.reduce(combine, running)]:
            chunk = combine(broadcast_in_dim(value, (CHUNK,), (0,)), chunk)
        running[-1] = combine(running[-1], prefixes[-1])
    length = BLOCK // CHUNK
    for level in range(len(running) - 1, 0, -1):        # a full block goes to the level above
        end = eq(bitwise_and(place, length - 1), length - 1)
        above = combine(running[level - 1], running[level])
        running[level - 1] = select(end, above, running[level - 1])
        running[level] = select(end, empty, running[level])
        length *= BLOCK
    place = add(place, 1)
    if rows:
        end = eq(place, rows)
        running = [select(end, empty, v) for v in running]
        place = select(end, literal(0, INT32), place)
    return [place, chunk, *running]


# Along another axis: a loop along it, of vectors

def _along_columns(b: Builder, x: IrValue, aval: ShapedArray, reverse: bool, one_level: bool
                   ) -> IrValue:
    """Blocks of the axis side by side, and then what comes before each block."""
    dtype, (before, size, behind) = aval.dtype, aval.shape
    blocks = 1 if one_level or size <= 2 * BLOCK else -(-size // BLOCK)
    length = -(-size // blocks)
    x, wide = _resized(b, x, aval, blocks * length, reverse)
    cut = make_aval((before * blocks, length, behind), dtype)
    x = b.op("stablehlo.reshape", [x], None, cut)
    prim, carry, number = b.eqn.primitive, make_aval((cut.shape[0], behind), dtype), make_aval(
        (), INT32)
    step = functools.partial(_row_step, prim.combine)

    def body(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        at = b.reverse_index(i, length) if reverse else i
        return b.traced(step, [at, x, *values], [number, cut, carry, cut])

    start = b.full(carry, prim.identity(dtype))
    last, results = b.counted_loop(length, [start, b.full(cut, 0)], body)
    if blocks > 1:
        totals = make_aval((before, blocks, behind), dtype)
        last = b.op("stablehlo.reshape", [last], None, totals)
        last = _along_columns(b, last, totals, reverse, True)
        fun = functools.partial(_after, prim.combine, prim.identity(dtype), reverse)
        (results,) = b.traced(fun, [last, b.op("stablehlo.reshape", [results], None, make_aval(
            (before, blocks, length, behind), dtype))], [totals, make_aval(
                (before, blocks, length, behind), dtype)])
    results = b.op("stablehlo.reshape", [results], None, wide)
    return _resized(b, results, wide, size, reverse)[0]


def _row_step(combine: Combine, i: Array, x: Array, running: Array, rows: Array) -> list[Array]:
    running = combine(running, dynamic_index_in_dim(x, i, 1, False))
    return [running, dynamic_update_index_in_dim(rows, running, i, 1)]


def _after(combine: Combine, identity: float, reverse: bool, totals: Array, within: Array) -> Array:
    """The prefixes of blocks after those before them."""
    aval = typeof(totals)
    start = full((aval.shape[0], 1, aval.shape[2]), identity, aval.dtype)
    blocks = aval.shape[1]
    parts = ([slice_in_dim(totals, 1, blocks, 1, 1), start] if reverse else
             [start, slice_in_dim(totals, 0, blocks - 1, 1, 1)])
    earlier = broadcast_in_dim(concatenate(parts, 1), typeof(within).shape, (0, 1, 3))
    return combine(earlier, within)


_KERNEL = Kernel("one loop", "XLA computes windows, a number at a time", _is_long, _loop,
                 4.7)
KERNELS = dict.fromkeys((cumsum_p, cumprod_p, cummax_p, cummin_p, cumlogsumexp_p), (_KERNEL,))
