"""Rows of 16-bit floats added to a table in the order of its rows.

The plain form adds in float32, so it converts the whole table there and back. Here a sum is float32
from the first update of its row to the last. Updates of one row keep their order, so that both
forms have the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence

from ...base.typing import Array, DType, IrValue
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.memory import Space
from ...types.shape import Shape, prod
from ..arithmetic import mul, sub
from ..bits import bitwise_and
from ..comparison import clamp, eq, ge, select
from ..convert import bitcast_convert_type_p, in_dtype
from ..creation import broadcasted_iota, full, iota
from ..families import add
from ..indexing import CLIP, FEW, GatherScatterMode, ScatterDimensionNumbers
from ..reduce import smallest
from ..shape import broadcast_in_dim, reshape
from ..slicing import dynamic_slice, dynamic_update_slice, index_in_dim
from ..sort import sort_p

BFLOAT16, FLOAT32, INT32, UINT16 = map(dtypes.as_dtype, ("bfloat16", "float32", "int32", "uint16"))
# Found with tools/kernel_table.py: of fewer elements, converting takes less than 0.1 ms, and 40 ms
# less to compile. With fewer elements of the table and of a row for each update, the order takes
# longer.
LEAST, LEAST_EACH = 1 << 18, 128
# bfloat16, which goes through uint16 and is copied twice more: elements of the table for each
# update.
LEAST_BFLOAT16 = 1024


def _axes_of_rows(x: ShapedArray, indices: ShapedArray, updates: ShapedArray,
                  dn: ScatterDimensionNumbers) -> int:
    """How many leading axes of the table count its rows, if updates are whole rows; else 0."""
    count, batch = x.ndim - len(dn.update_window_dims), indices.ndim - 1
    whole = (sorted((*dn.inserted_window_dims, *dn.operand_batching_dims)) == [*range(count)]
             and [*dn.update_window_dims] == [*range(batch, updates.ndim)]
             and updates.shape[batch:] == x.shape[count:])
    return count if whole else 0


def are_rows(b: Builder, *xs: IrValue, dimension_numbers: ScatterDimensionNumbers,
             unique_indices: bool, **params: Hashable) -> bool:
    table, index, update = b.avals_in
    axes = _axes_of_rows(table, index, update, dimension_numbers)
    count = prod(index.shape[:-1])
    if unique_indices or not axes or count <= FEW or (
            dtypes.itemsize_bits(table.dtype) != 16 or dtypes.scalar_kind(table.dtype) != "f"):
        return False
    each = table.size // count
    long = (each >= LEAST_BFLOAT16 if table.dtype == BFLOAT16 else
            each + prod(table.shape[axes:]) >= LEAST_EACH)
    return (long and table.size + update.size >= LEAST and table.size < 2 ** 31
            and all(a.memory_space is Space.Device for a in b.avals_in)
            and not b.module.places.is_unreduced(table))


def by_rows(b: Builder, x: IrValue, indices: IrValue, updates: IrValue, *,
            dimension_numbers: ScatterDimensionNumbers, mode: GatherScatterMode, **params: Hashable
            ) -> IrValue:
    table, index, update = b.avals_in
    axes = _axes_of_rows(table, index, update, dimension_numbers)
    count = prod(index.shape[:-1])
    # XLA would convert all bfloat16 of a loop there and back at each step.
    held = UINT16 if table.dtype == BFLOAT16 else table.dtype
    rows, changes = [make_aval((prod(x.shape[:n]), prod(table.shape[axes:])), held)
                     for x, n in ((table, axes), (update, index.ndim - 1))]
    order, number, total = [make_aval(shape, dtype) for shape, dtype in (
        ((count,), INT32), ((), INT32), ((1, rows.shape[1]), FLOAT32))]
    places = [b.hold(v, order) for v in b.traced(functools.partial(
        _in_order, table.shape[:axes], dimension_numbers, mode), [indices], [index])]
    add_one = functools.partial(_with_next, table.dtype, b.eqn.primitive.sign)

    def recast(x: IrValue, aval: ShapedArray, dtype: DType) -> IrValue:
        return x if held == table.dtype else b.op(
            "stablehlo.bitcast_convert", [x], None, aval.update(dtype=dtype))

    x, updates = [b.op("stablehlo.reshape", [recast(v, aval, held)], None, flat) for v, aval, flat
                  in ((x, table, rows), (updates, update, changes))]
    out = b.counted_loop(count, [x, b.full(total, 0), b.scalar(-1, INT32)], lambda k, values: (
        b.traced(add_one, [k, *values, *places, updates],
                 [number, rows, total, number, order, order, changes])))[0]
    return b.op("stablehlo.reshape", [recast(out, rows, table.dtype)], None, table)


def _in_order(sizes: Shape, dn: ScatterDimensionNumbers, mode: GatherScatterMode, indices: Array
              ) -> Sequence[Array]:
    """The rows of the updates in order, and the update of each; rows outside are last."""
    shape, dtype = tuple(typeof(indices).shape[:-1]), typeof(indices).dtype
    row, inside = full(shape, 0, INT32), full(shape, True, dtypes.as_dtype(bool))
    for axis, size in enumerate(sizes):
        if axis in dn.operand_batching_dims:
            at = dn.scatter_indices_batching_dims[dn.operand_batching_dims.index(axis)]
            component = broadcasted_iota(INT32, shape, at)
        else:
            k = dn.scatter_dims_to_operand_dims.index(axis)
            component = index_in_dim(indices, k, len(shape), False)
            last = min(size - 1, int(dtypes.iinfo(dtype).max))
            moved = clamp(literal(0, dtype), component, literal(last, dtype))
            if mode is not CLIP:
                inside = bitwise_and(inside, eq(component, moved))
            component = in_dtype(moved, INT32)
        row = add(mul(row, size), component)
    row = select(inside, row, full(shape, prod(sizes), INT32))
    count = prod(shape)
    return sort_p.bind(reshape(row, (count,)), iota(INT32, count), dimension=0, is_stable=True,
                       num_keys=1)


def _with_next(dtype: DType, sign: int, k: Array, x: Array, total: Array, last: Array,
               places: Array, numbers: Array, updates: Array) -> list[Array]:
    """The table with one more update, the sum of its row, and that row."""
    (rows, width), zero = typeof(x).shape, literal(0, INT32)

    def wide(x: Array, row: Array) -> Array:
        x = dynamic_slice(x, [row, zero], (1, width))
        return in_dtype(bitcast_convert_type_p.bind(x, new_dtype=dtype), FLOAT32)

    place, number = [reshape(dynamic_slice(v, [k], (1,)), ()) for v in (places, numbers)]
    row = smallest(place, literal(rows - 1, INT32))
    old, new = wide(x, row), wide(updates, number)
    old = select(broadcast_in_dim(eq(row, last), (1, width), ()), total, old)
    total = add(old, new) if sign == 1 else sub(old, new)
    total = select(broadcast_in_dim(ge(place, rows), (1, width), ()), old, total)
    words = bitcast_convert_type_p.bind(in_dtype(total, dtype), new_dtype=typeof(x).dtype)
    return [dynamic_update_slice(x, words, [row, zero]), total, row]
