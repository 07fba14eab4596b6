"""Partitions without sorting: the elements of the ranks are counted, and one loop puts all others
before, between and behind them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...base.typing import Array, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.memory import Space
from ..arithmetic import mul
from ..bits import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_right_arithmetic
from ..comparison import gt, lt, ne
from ..convert import bitcast_convert_type_p, in_dtype
from ..creation import broadcasted_iota, full
from ..families import add
from ..indexing import take_along
from ..reduce import reduce_max_p, reduce_sum
from ..shape import Dims, broadcast_in_dim, reshape
from ..slicing import dynamic_update_slice, index_in_dim, pad, slice_in_dim
from ..sort import partition_p, rank_of, ranked_p, sort_p, top_k_p
from ..stack import stack
from .blocks import by_blocks
from .ranks import KEYS, LEAST_OF_ROWS, LEAST_ROW, MOST, counted, counted_below
from .reductions import BLOCK

FLOAT32, INT32, UINT32 = map(dtypes.as_dtype, ("float32", "int32", "uint32"))
# Found with tools/kernel_table.py: each further rank costs some 4 ns an element to count.
MOST_RANKS = 2
# XLA finds the largest of fewer elements as fast.
LEAST = 1 << 15
# For fewer elements, and keys that XLA has a heap for, blocks are as fast, and take 80 ms more to
# compile.
PART, LEAST_CUT, LEAST_HEAPED = 256, 512, 1 << 18
LEAST_LARGEST, MOST_HEAPS = 64, 32      # XLA has a heap for keys of up to 32 bits


def _are_few(b: Builder, *xs: IrValue, ranks: Dims) -> bool:
    aval = b.avals_in[0]
    return (LEAST_OF_ROWS <= aval.size <= MOST and aval.shape[-1] >= LEAST_ROW
            and 0 < len(ranks) <= MOST_RANKS and dtypes.itemsize_bits(aval.dtype) in KEYS
            and all(a.memory_space is Space.Device for a in b.avals_in))


def _by_ranks(b: Builder, *xs: IrValue, ranks: Dims) -> Sequence[IrValue]:
    n, size = b.avals_in[0].shape[-1], b.avals_in[0].size
    rows = make_aval((size // n, n), b.avals_in[0].dtype)
    flat = [make_aval((size,), a.dtype) for a in b.avals_in]
    x = b.op("stablehlo.reshape", [xs[0]], None, rows)
    pivots = rows.update(shape=(size // n, len(ranks)))
    (pivot,) = b.traced(functools.partial(_pivots, ranks), [x], [rows])
    alone, width = size == n, 2 * len(ranks) + 1
    parts = make_aval((size + (-n % BLOCK if alone else 0),), INT32)
    counters = make_aval((size // n * width,), INT32)
    pivot = b.hold(pivot, pivots)
    (part,) = b.traced(functools.partial(_parts, alone), [x, pivot], [rows, pivots])
    part = b.hold(part, parts)
    (start,) = [_starts_of_row(b, part, parts, counters)] if alone else b.traced(
        _starts, [x, pivot], [rows, pivots])
    vectors = [b.op("stablehlo.reshape", [x], None, a) for x, a in zip(xs, flat, strict=True)]
    outs = _put_all(b, vectors, flat, part, start, counters)
    return [b.op("stablehlo.reshape", [out], None, a)
            for out, a in zip(outs, b.avals_out, strict=True)]


def _put_all(b: Builder, xs: Sequence[IrValue], avals: Sequence[ShapedArray], part: IrValue,
             start: IrValue, counters: ShapedArray) -> list[IrValue]:
    """Each element at the next place of its part."""
    place, number = make_aval((1,), INT32), make_aval((), INT32)
    ones = [make_aval((1,), a.dtype) for a in avals]

    def body(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        start, *outs = values
        at = b.op("stablehlo.reshape", [_element(b, part, i, place)], None, number)
        # Otherwise XLA copies the counters at each step.
        here = b.hold(_element(b, start, at, place), place)
        row = [_element(b, x, i, one) for x, one in zip(xs, ones, strict=True)]
        return b.traced(functools.partial(_put, len(row)), [here, at, start, *row, *outs],
                        [place, number, counters, *ones, *avals])

    return b.counted_loop(avals[0].size, [start, *[b.full(a, 0) for a in avals]], body, 4)[1:]


def _put(count: int, here: Array, at: Array, start: Array, *values: Array) -> list[Array]:
    row, outs = values[:count], values[count:]
    return [dynamic_update_slice(start, add(here, 1), [at]),
            *[dynamic_update_slice(out, x, [reshape(here, ())])
              for out, x in zip(outs, row, strict=True)]]


def _element(b: Builder, x: IrValue, i: IrValue, aval: ShapedArray) -> IrValue:
    return b.op("stablehlo.dynamic_slice", [x, i], {"slice_sizes": b.i64s((1,))}, aval)


def _pivots(ranks: Dims, x: Array) -> Array:
    shape = (typeof(x).shape[0], len(ranks))
    at = stack([full(shape[:1], r, INT32) for r in ranks], 1)
    return ranked_p.bind(x, at)[0]


def _sides(x: Array, pivots: Array) -> list[tuple[Array, Array]]:
    """For each pivot, 1 where elements are less, and where they are greater."""
    shape, sides = typeof(x).shape, list[tuple[Array, Array]]()
    for j in range(typeof(pivots).shape[1]):
        pivot = broadcast_in_dim(index_in_dim(pivots, j, 1, False), shape, (0,))
        x_nan, pivot_nan = ne(x, x), ne(pivot, pivot)
        less = bitwise_or(lt(x, pivot), bitwise_and(pivot_nan, bitwise_not(x_nan)))
        above = bitwise_or(gt(x, pivot), bitwise_and(x_nan, bitwise_not(pivot_nan)))
        sides.append((in_dtype(less, INT32), in_dtype(above, INT32)))
    return sides


def _parts(alone: bool, x: Array, pivots: Array) -> Array:
    """The part of each element, counted through all rows; behind a row alone, of no element.

    The parts of a row are the elements less than the first pivot, equal to it, less than the
    next one, ….
    """
    (rows, n), width = typeof(x).shape, 2 * typeof(pivots).shape[1] + 1
    part = full((rows, n), 0, INT32)
    for less, above in _sides(x, pivots):
        part = add(part, add(above, 1 - less))
    if not alone:
        part = add(part, mul(broadcasted_iota(INT32, (rows, n), 0), width))
    part = reshape(part, (rows * n,))
    return pad(part, literal(width, INT32), [(0, -n % BLOCK, 0)]) if alone else part


def _starts(x: Array, pivots: Array) -> Array:
    """Where the parts of each row begin."""
    (rows, n), firsts = typeof(x).shape, [full((typeof(x).shape[0],), 0, INT32)]
    for less, above in _sides(x, pivots):
        firsts += [reduce_sum(less, (1,)), n - reduce_sum(above, (1,))]
    width = len(firsts)
    start = add(stack(firsts, 1), mul(broadcasted_iota(INT32, (rows, width), 0), n))
    return reshape(start, (rows * width,))


def _starts_of_row(b: Builder, part: IrValue, parts: ShapedArray, counters: ShapedArray) -> IrValue:
    """`_starts` of one row, by its parts: how many elements are in parts before each."""
    block, number = make_aval((BLOCK,), INT32), make_aval((), INT32)

    def count(k: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        first = b.constant(np.eye(1, BLOCK)[0], block)
        x = by_blocks(b, counted_below, first, block, [part], parts, [k], [number])
        return b.traced(lambda k, x, start: dynamic_update_slice(start, counted(x), [k]),
                        [k, x, *values], [number, block, counters])

    return b.counted_loop(counters.size, [b.full(counters, 0)], count)[0]


# The largest

def _has_heap(aval: ShapedArray) -> bool:
    return dtypes.itemsize_bits(aval.dtype) < 32 or aval.dtype == FLOAT32


def _are_many(b: Builder, x: IrValue, *, k: int, axis: int) -> bool:
    aval = b.avals_in[0]
    n, bits = aval.shape[axis], dtypes.itemsize_bits(aval.dtype)
    enough = k >= LEAST_LARGEST and k >= n // MOST_HEAPS if _has_heap(aval) else 0 < k <= n // 2
    return (enough and dtypes.scalar_kind(aval.dtype) != "b" and bits >= 16
            and LEAST <= aval.size <= MOST and n >= LEAST_ROW
            and aval.memory_space is Space.Device)


def _largest(b: Builder, x: IrValue, *, k: int, axis: int) -> Sequence[IrValue]:
    """The elements of ranks up to k in the opposite order, the first of equal ones, and sorted."""
    def fun(x: Array) -> Sequence[Array]:
        key = bitwise_not(rank_of(x))
        if dtypes.itemsize_bits(typeof(key).dtype) < 32:
            key = in_dtype(key, INT32)
        places = broadcasted_iota(INT32, typeof(x).shape, axis)
        parted = partition_p.bind(key, places, ranks=(k - 1,))
        first = [slice_in_dim(x, 0, k, 1, axis) for x in parted]
        order = sort_p.bind(*first, dimension=axis, is_stable=True, num_keys=1)[1]
        return [take_along(x, order, axis), order]

    return b.by_rule(fun, [x], b.avals_in)


def _are_very_few(b: Builder, x: IrValue, *, k: int, axis: int) -> bool:
    aval = b.avals_in[0]
    n, bits = aval.shape[axis], dtypes.itemsize_bits(aval.dtype)
    least = LEAST_HEAPED if _has_heap(aval) else LEAST
    return (0 < k <= n // PART and least <= aval.size <= MOST and n >= LEAST_CUT
            and dtypes.scalar_kind(aval.dtype) != "b" and 16 <= bits <= 32
            and aval.memory_space is Space.Device)


def _of_blocks(b: Builder, x: IrValue, *, k: int, axis: int) -> Sequence[IrValue]:
    """The k largest are in the k blocks with the largest maxima, the first ones of equal maxima:
    each of the others has k elements before its own."""
    aval = b.avals_in[0]
    n, rows = aval.shape[axis], aval.update(shape=(aval.size // aval.shape[axis], aval.shape[axis]))
    width = 1 << (int((n / k) ** 0.5).bit_length() - 1)
    count = -(-n // width)
    padded = make_aval((rows.shape[0], count * width), INT32)
    x = b.op("stablehlo.reshape", [x], None, rows)
    (rank,) = b.traced(functools.partial(_padded_rank, count * width - n), [x], [rows])
    rank = b.hold(rank, padded)
    best = make_aval((rows.shape[0], count), INT32)
    (maxima,) = b.traced(functools.partial(_maxima, width), [rank], [padded])
    blocks, chosen = _places_of_largest(b, b.hold(maxima, best), best, k)
    places, those = b.traced(functools.partial(_elements_of_blocks, width), [rank, blocks],
                             [padded, chosen])
    cut = make_aval((rows.shape[0], k * width), INT32)
    at, _ = _places_of_largest(b, b.hold(those, cut), cut, k)
    outs = b.traced(_chosen, [x, places, at], [rows, cut, chosen])
    return [b.op("stablehlo.reshape", [out], None, a)
            for out, a in zip(outs, b.avals_out, strict=True)]


def _padded_rank(more: int, x: Array) -> Array:
    """int32 in the order of the elements; behind the last one, elements that are not larger."""
    rank, least = rank_of(x), literal(-(1 << 31), INT32)
    if typeof(rank).dtype == UINT32:
        rank = bitcast_convert_type_p.bind(bitwise_xor(rank, 1 << 31), new_dtype=INT32)
    return pad(in_dtype(rank, INT32), least, [(0, 0, 0), (0, more, 0)])


def _maxima(width: int, rank: Array) -> Array:
    rows, size = typeof(rank).shape
    return reduce_max_p.bind(reshape(rank, (rows, size // width, width)), axes=(2,))


def _places_of_largest(b: Builder, rank: IrValue, aval: ShapedArray, k: int
                       ) -> tuple[IrValue, ShapedArray]:
    """The places by XLA's heap, which compares floats, NaN too, by their bits."""
    (x,) = b.traced(_float_of_rank, [rank], [aval])
    places = make_aval((aval.shape[0], k), INT32)
    outs = b.ops("chlo.top_k", [x], {"k": b.attr(f"{k} : i64")}, avals=[
        places.update(dtype=FLOAT32), places]).results
    return b.hold(outs[1], places), places


def _float_of_rank(rank: Array) -> Array:
    bits = bitwise_xor(rank, bitwise_and(shift_right_arithmetic(rank, 31), (1 << 31) - 1))
    return bitcast_convert_type_p.bind(bits, new_dtype=FLOAT32)


def _elements_of_blocks(width: int, rank: Array, blocks: Array) -> list[Array]:
    """The places of the elements of blocks, in order, and their ranks."""
    (blocks,) = sort_p.bind(blocks, dimension=1, is_stable=False, num_keys=1)
    rows, k = typeof(blocks).shape
    places = add(broadcast_in_dim(mul(blocks, width), (rows, k, width), (0, 1)),
                 broadcasted_iota(INT32, (rows, k, width), 2))
    places = reshape(places, (rows, k * width))
    return [places, take_along(rank, places, 1)]


def _chosen(x: Array, places: Array, at: Array) -> list[Array]:
    order = take_along(places, at, 1)
    return [take_along(x, order, 1), order]


_WHY = "a sort orders all elements"
KERNELS = {partition_p: (Kernel("parts by ranks", _WHY, _are_few, _by_ranks),),
           top_k_p: (Kernel("the largest of the blocks with the largest maxima",
                            "XLA compares each element with a heap, or sorts all", _are_very_few,
                            _of_blocks),
                     Kernel("the largest part, sorted", _WHY, _are_many, _largest),)}
