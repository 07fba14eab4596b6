"""Sorting of many short rows side by side, by a network of comparisons.

A network compares the same pairs of places whatever the elements are. So a comparison is one of
vectors, with an element of each row, where XLA:CPU (0.10.2, 0.12.0.1) sorts row by row and
mispredicts a branch for about every second comparison.
"""

from __future__ import annotations

import numpy as np

from ...base.typing import IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.memory import Space
from ...types.shape import prod

INT32 = dtypes.as_dtype("int32")
# Found with tools/kernel_table.py: longer rows, and fewer of them, XLA sorts as fast. Twice as many
# elements of short rows repay what compiling takes more.
MOST, LEAST_ROWS, LEAST, SHORT = 2048, 64, 8192, 32
# Bytes of a vector with an element of each row, and of all elements that are sorted at a time.
VECTOR, BLOCK = 2048, 1 << 20


def _are_many(b: Builder, *xs: IrValue, dimension: int, is_stable: bool, num_keys: int) -> bool:
    """Whether equal elements are alike, and there are many rows of them."""
    aval = b.avals_in[0]
    return (len(xs) == 1 and dtypes.scalar_kind(aval.dtype) in "iu" and are_many(aval, dimension)
            and dtypes.itemsize_bits(aval.dtype) >= 8 and aval.memory_space is Space.Device)


def are_many(aval: ShapedArray, dimension: int) -> bool:
    """Whether there are enough rows, none of them long."""
    n = aval.shape[dimension]
    return 1 < n <= MOST and aval.size >= max(LEAST if n >= SHORT else 2 * LEAST, n * LEAST_ROWS)


def _by_network(b: Builder, x: IrValue, *, dimension: int, is_stable: bool, num_keys: int
                ) -> list[IrValue]:
    aval = b.avals_in[0]
    shape, dtype = aval.shape, aval.dtype
    before, n, behind = prod(shape[:dimension]), shape[dimension], prod(shape[dimension + 1:])
    rows, width = make_aval((n, before * behind), dtype), _width(n, before * behind, dtype.itemsize)
    block, vector = make_aval((n, width), dtype), make_aval((1, width), dtype)
    x = b.op("stablehlo.reshape", [x], None, make_aval((before, n, behind), dtype))
    turn = {"permutation": b.i64s((1, 0, 2))}
    x = b.op("stablehlo.transpose", [x], turn, make_aval((n, before, behind), dtype))
    x = b.op("stablehlo.reshape", [x], None, rows)
    pairs = network(n)
    table = b.constant(pairs, make_aval(pairs.shape, INT32))
    zero, number, one = b.scalar(0, INT32), make_aval((), INT32), make_aval((1,), INT32)
    sizes = {"slice_sizes": b.i64s((1, width))}

    def compare(i: IrValue, values: list[IrValue]) -> list[IrValue]:
        (found,) = values
        pair = b.op("stablehlo.dynamic_slice", [table, i], {"slice_sizes": b.i64s((1,))}, one)
        pair = b.op("stablehlo.reshape", [pair], None, number)
        first = b.op("stablehlo.and", [pair, b.scalar(0xffff, INT32)], None, number)
        second = b.op("stablehlo.shift_right_logical", [pair, b.scalar(16, INT32)], None, number)
        # Both are read before one is replaced, or XLA copies the block at each step.
        p, q = b.kept([b.op("stablehlo.dynamic_slice", [found, at, zero], sizes, vector)
                       for at in (first, second)])
        low, high = [b.op(f"stablehlo.{name}", [p, q], None, vector)
                     for name in ("minimum", "maximum")]
        found = b.op("stablehlo.dynamic_update_slice", [found, low, first, zero], None, block)
        return [b.op("stablehlo.dynamic_update_slice", [found, high, second, zero], None, block)]

    def sort(i: IrValue, values: list[IrValue]) -> list[IrValue]:
        # The last block begins where it ends with the rows.
        start = b.op("stablehlo.multiply", [i, b.scalar(width, INT32)], None, number)
        found = b.op("stablehlo.dynamic_slice", [x, zero, start], {
            "slice_sizes": b.i64s((n, width))}, block)
        (found,) = b.counted_loop(len(pairs), [found], compare)
        return [b.op("stablehlo.dynamic_update_slice", [*values, found, zero, start], None, rows)]

    (x,) = b.counted_loop(-(-rows.shape[1] // width), [b.full(rows, 0)], sort)
    x = b.op("stablehlo.reshape", [x], None, make_aval((n, before, behind), dtype))
    x = b.op("stablehlo.transpose", [x], turn, make_aval((before, n, behind), dtype))
    return [b.op("stablehlo.reshape", [x], None, aval)]


def _width(n: int, rows: int, itemsize: int) -> int:
    """How many rows are sorted side by side."""
    return min(rows, (VECTOR if n * VECTOR <= BLOCK else VECTOR // 2) // itemsize)


def network(n: int) -> np.ndarray:
    """int32[…]: the pairs of places that Batcher's merge exchange (1968; Knuth, volume 3, 5.2.2,
    algorithm M) compares among n places: first + 65536 * second."""
    top = 1 << (n - 1).bit_length() - 1
    found, p = list[np.ndarray](), top
    while p:
        q, r, away = top, 0, p
        while True:
            first = np.arange(n - away, dtype=np.int32)
            first = first[(first & p) == r]
            found.append(first + ((first + away) << 16))
            if q == p:
                break
            away, q, r = q - p, q // 2, p
        p //= 2
    return np.concatenate(found).astype(np.int32)


KERNEL = Kernel("sort of rows side by side", "XLA sorts row by row, and mispredicts branches",
                _are_many, _by_network)
