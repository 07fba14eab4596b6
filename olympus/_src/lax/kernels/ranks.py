"""Elements of given ranks, found without sorting: bit by bit, by counting the smaller elements.

Each bit of a key takes one pass over the keys, which XLA:CPU (0.10.2, 0.12.0.1) makes vectors of:
some 0.1 ns an element, where a sort by digits takes 20 ns.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from ...base.typing import Array, DType, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.memory import Space
from ...types.shape import prod
from ..arithmetic import sub
from ..bits import bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_left
from ..comparison import eq, ge, gt, le, lt, select
from ..convert import bitcast_convert_type_p, in_dtype
from ..creation import full, full_like
from ..families import add
from ..reduce import largest, reduce_min_p, reduce_sum, smallest
from ..shape import broadcast_in_dim, reshape, transpose
from ..slicing import index_in_dim, pad
from ..sort import ranked_p
from ..stack import stack
from .blocks import by_blocks
from .reductions import BLOCK, FEW, RUN, pieces

INT32 = dtypes.as_dtype("int32")
# Found with tools/kernel_table.py: fewer elements, of one row or of several, shorter rows, or more
# ranks cost as much as sorting.
LEAST, LEAST_OF_ROWS, LEAST_ROW, MOST_RANKS = 1 << 13, 1 << 14, 64, 6
MOST = 2 ** 31 - 1
KEYS = (32, 64)     # bits


def _are_few(b: Builder, x: IrValue, ranks: IrValue) -> bool:
    aval, wanted = b.avals_in
    least = LEAST if aval.size == aval.shape[-1] else LEAST_OF_ROWS
    return (aval.size >= least and LEAST_ROW <= aval.shape[-1] <= MOST
            and 0 < wanted.shape[-1] <= MOST_RANKS and dtypes.itemsize_bits(aval.dtype) in KEYS
            and all(a.memory_space is Space.Device for a in b.avals_in))


def _by_bits(b: Builder, x: IrValue, ranks: IrValue) -> Sequence[IrValue]:
    aval, wanted = b.avals_in
    rows, n, k = prod(aval.shape[:-1]), aval.shape[-1], wanted.shape[-1]
    bits, more = dtypes.itemsize_bits(aval.dtype), -n % (BLOCK if rows == 1 else FEW)
    whole, at = make_aval((rows, n), aval.dtype), make_aval((k, rows), INT32)
    keys = make_aval((1, n + more) if rows == 1 else (n + more, rows),
                     dtypes.as_dtype(f"uint{bits}"))
    pivot, counts, number = (make_aval((rows,), keys.dtype), make_aval((rows,), INT32),
                             make_aval((), INT32))
    x = b.op("stablehlo.reshape", [x], None, whole)
    (x,) = b.traced(functools.partial(_keys, more), [x], [whole])
    x = b.hold(x, keys)
    ranks = b.convert(ranks, wanted.update(dtype=INT32))
    ranks = b.op("stablehlo.reshape", [ranks], None, make_aval((rows, k), INT32))
    ranks = b.op("stablehlo.transpose", [ranks], {"permutation": b.i64s((1, 0))}, at)

    def body(i: IrValue, values: Sequence[IrValue], x: IrValue, ranks: IrValue) -> list[IrValue]:
        chosen = list[IrValue]()
        for j in range(k):
            low = values[2 * j]
            (tried,) = b.traced(functools.partial(_tried, bits), [i, low], [number, pivot])
            count = _count(b, x, keys, tried, pivot)
            chosen += b.traced(functools.partial(_chosen, bits, j), [i, count, ranks, tried, low], [
                number, counts, at, pivot, pivot])
        return chosen

    def search(x: IrValue, ranks: IrValue) -> list[IrValue]:
        first = [b.full(pivot, 0), b.full(counts, 0)] * k
        state = b.counted_loop(bits + 1, first, lambda i, values: body(i, values, x, ranks))
        lows, after = [b.hold(low, pivot) for low in state[::2]], list[IrValue]()
        for j, (low, count) in enumerate(zip(lows, state[1::2], strict=True)):
            above = _least_above(b, x, keys, low, pivot)
            after += b.traced(functools.partial(_after, j, n), [above, count, ranks, low], [
                pivot, counts, at, pivot])
        elements = functools.partial(_elements, aval.dtype)
        return [b.traced(elements, each, [pivot] * k)[0] for each in (lows, after)]

    # XLA would share the sums of rows among threads.
    outs = b.one_kernel([x, ranks], search) if rows == 1 else search(x, ranks)
    return [b.op("stablehlo.reshape", [out], None, a)
            for out, a in zip(outs, b.avals_out, strict=True)]


def _count(b: Builder, x: IrValue, aval: ShapedArray, p: IrValue, pivot: ShapedArray) -> IrValue:
    """int32[rows]: how many elements of each row of the keys x are less than p[rows].

    Slices are added, and are in memory before their sums are added.
    """
    if aval.shape[0] == 1:      # one row
        block = make_aval((BLOCK,), INT32)
        x = by_blocks(b, counted_below, b.constant(np.eye(1, BLOCK)[0], block), block, [x], aval,
                      [p], [pivot])
        return b.traced(counted, [x], [block])[0]
    (x,) = b.traced(_slices, [x, p], [aval, pivot])
    parts = make_aval((aval.shape[0] // FEW, aval.shape[1]), INT32)
    x = b.hold(x, parts)
    return b.traced(lambda x: reduce_sum(x, (0,)), [x], [parts])[0]


def counted_below(counts: Array, x: Array, p: Array) -> Array:
    """Counts, and one more where an element is less than p, of one element or a scalar."""
    p = broadcast_in_dim(p, typeof(x).shape, tuple(range(typeof(p).ndim)))
    return add(counts, in_dtype(lt(x, p), INT32))


def counted(x: Array) -> Array:
    """int32[1]: the sum of counts, which began with 1."""
    return sub(reshape(reduce_sum(pieces(add, RUN, 0, x), (0,)), (1,)), 1)


def _slices(x: Array, p: Array) -> Array:
    shape = typeof(x).shape
    less = lt(x, broadcast_in_dim(p, shape, (1,)))
    return pieces(add, shape[0] // FEW, 0, in_dtype(less, INT32))


def _tried(bits: int, i: Array, low: Array) -> Array:
    """The keys with their i-th bit from above; after the last bit, the keys plus 1."""
    dtype, shape = typeof(low).dtype, typeof(low).shape
    bit = shift_left(literal(1, dtype), in_dtype(largest(sub(bits - 1, i), literal(0, INT32)),
                                                   dtype))
    return add(low, broadcast_in_dim(bit, shape, ()))


def _chosen(bits: int, j: int, i: Array, count: Array, ranks: Array, tried: Array, low: Array
            ) -> list[Array]:
    """The keys, with the bit where no more elements are less than the rank says, and the counts."""
    more = bitwise_and(le(count, index_in_dim(ranks, j, 0, False)), broadcast_in_dim(
        lt(i, bits), typeof(count).shape, ()))
    return [select(more, tried, low), count]


def _least_above(b: Builder, x: IrValue, aval: ShapedArray, low: IrValue, pivot: ShapedArray
                 ) -> IrValue:
    """The least of each row of the keys that is greater than low[rows]; or the largest key."""
    if aval.shape[0] == 1:      # one row
        block = make_aval((BLOCK,), aval.dtype)
        x = by_blocks(b, _less_above, b.full(block, int(dtypes.iinfo(aval.dtype).max)), block, [x],
                      aval, [low], [pivot])
        return b.traced(lambda x: reshape(reduce_min_p.bind(pieces(smallest, RUN, 0, x), axes=(0,)),
                                          (1,)), [x], [block])[0]
    return b.traced(lambda x, low: reduce_min_p.bind(_where_above(x, low, 1), axes=(0,)), [x, low],
                    [aval, pivot])[0]


def _less_above(least: Array, x: Array, low: Array) -> Array:
    return smallest(least, _where_above(x, low, 0))


def _where_above(x: Array, low: Array, axis: int) -> Array:
    shape, dtype = typeof(x).shape, typeof(x).dtype
    most = full(shape, int(dtypes.iinfo(dtype).max), dtype)
    return select(gt(x, broadcast_in_dim(low, shape, (axis,))), x, most)


def _after(j: int, n: int, above: Array, count: Array, ranks: Array, low: Array) -> Array:
    """The keys of the next ranks, or of the last one; `count` elements are not greater than low,
    or 0 if that is the largest key."""
    rank = smallest(add(index_in_dim(ranks, j, 0, False), 1), full_like(count, n - 1))
    return select(gt(count, rank), low, above)


def _keys(more: int, x: Array) -> Array:
    """x[rows, n] -> [n + more, rows], or [1, n + more] of one row: unsigned integers in the order
    of the elements, -0.0 before 0.0, NaN last; behind them the largest."""
    dtype = typeof(x).dtype
    kind, bits = dtypes.scalar_kind(dtype), dtypes.itemsize_bits(dtype)
    unsigned, sign = dtypes.as_dtype(f"uint{bits}"), 1 << (bits - 1)
    key = bitcast_convert_type_p.bind(x, new_dtype=unsigned)
    if kind == "i":
        key = bitwise_xor(key, sign)
    if kind == "f":
        key = select(lt(key, sign), bitwise_or(key, sign), bitwise_not(key))
        key = select(eq(x, x), key, full_like(key, 2 * sign - 1))
    key = pad(key, literal(2 * sign - 1, unsigned), [(0, 0, 0), (0, more, 0)])
    return key if typeof(x).shape[0] == 1 else transpose(key, (1, 0))


def _elements(dtype: DType, *keys: Array) -> Array:
    """k keys[rows] -> the elements [rows, k]."""
    kind, sign = dtypes.scalar_kind(dtype), 1 << (dtypes.itemsize_bits(dtype) - 1)
    key = stack(keys, 1)
    if kind == "i":
        key = bitwise_xor(key, sign)
    if kind == "f":
        key = select(ge(key, sign), bitwise_xor(key, sign), bitwise_not(key))
    return bitcast_convert_type_p.bind(key, new_dtype=dtype)


KERNELS = {ranked_p: (Kernel("ranks by counting", "a sort orders all elements", _are_few,
                             _by_bits),)}
