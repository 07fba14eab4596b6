"""Indices outside of an array, made legal in the module: IREE would access memory outside.

StableHLO moves the slices that a gather takes into the array, and drops the windows that a scatter
would write partly or wholly outside of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.lib import mlir
from ..base.typing import IrModule, IrOperation, IrValue
from ..lowering.attributes import constant_attr, i64s, module_context
from ..lowering.linking import operations
from .operations import NUMPY_OF, element_of, ints_of, shape_of


def guard_indices(module: IrModule) -> None:
    """Clamp the indices of gathers, and send illegal ones of scatters to a margin that is cut off.

    Operations along axes of unknown size stay as they are, and so do operations with an unknown
    number of index vectors of several components.
    """
    with module_context():
        for op in list(operations(module)):
            if op.name == "stablehlo.gather":
                _guard_gather(op)
            elif op.name == "stablehlo.scatter":
                _guard_scatter(op)


def _guard_gather(op: IrOperation) -> None:
    numbers = mlir.hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
    axes, sizes = list(numbers.start_index_map), ints_of(op, "slice_sizes")
    shape = shape_of(op.operands[0])
    last = [shape[i] - sizes[i] for i in axes]
    if -1 in (shape[i] for i in axes) or _fit(op.operands[1], numbers.index_vector_dim, last):
        return
    with op.location, mlir.ir.InsertionPoint(op):
        op.operands[1] = _clamp(_as_wide(op.operands[1]), numbers.index_vector_dim, [0] * len(axes),
                                last)


def _guard_scatter(op: IrOperation) -> None:
    numbers = mlir.hlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
    axes, count = list(numbers.scattered_dims_to_operand_dims), len(op.results)
    shape = shape_of(op.operands[0])
    # The width of an update along each axis of the operand: 1 where the update lacks the axis.
    windowed = [i for i in range(len(shape))
                if i not in (*numbers.inserted_window_dims, *numbers.input_batching_dims)]
    update = shape_of(op.operands[count + 1])
    width = dict(zip(windowed, (update[i] for i in numbers.update_window_dims), strict=True))
    margin = [width.get(i, 1) if i in axes else 0 for i in range(len(shape))]
    last = [shape[i] - margin[i] for i in axes]
    if -1 in (*shape, *margin) or _fit(op.operands[count], numbers.index_vector_dim, last):
        return
    hlo, none = mlir.hlo, i64s([0] * len(shape))
    with op.location, mlir.ir.InsertionPoint(op):
        where = _as_wide(op.operands[count])
        inside = _clamp(where, numbers.index_vector_dim, [0] * len(axes), last)
        ends = [shape[i] for i in axes]
        outside = _clamp(where, numbers.index_vector_dim, ends, ends)
        legal = hlo.compare(where, inside, hlo.ComparisonDirectionAttr.get("EQ"))
        op.operands[count] = hlo.select(legal, where, outside)
        for i in range(count):
            kind = mlir.ir.RankedTensorType(op.operands[i].type).element_type
            zero = hlo.convert(mlir.ir.RankedTensorType.get((), kind),
                               hlo.constant(constant_attr(np.array(False))))
            op.operands[i] = hlo.pad(op.operands[i], zero, none, i64s(margin), none)
            op.results[i].set_type(op.operands[i].type)
    with op.location, mlir.ir.InsertionPoint.after(op):
        for result in op.results:
            cut = hlo.slice(result, none, i64s(shape), i64s([1] * len(shape)))
            result.replace_all_uses_except(cut, cut.owner.operation)


def _fit(indices: IrValue, axis: int, last: Sequence[int]) -> bool:
    """Whether indices are constants between 0 and `last`, or cannot be guarded."""
    shape, owner = shape_of(indices), indices.owner
    if isinstance(owner, mlir.ir.Block) or owner.name != "stablehlo.constant":
        return -1 in shape and len(last) > 1
    starts = np.array(mlir.ir.DenseElementsAttr(owner.attributes["value"]))
    return bool(np.all((starts >= 0) & (starts <= _on_axis(axis, last, shape))))


def _on_axis(axis: int, values: Sequence[int], shape: Sequence[int]) -> np.ndarray:
    """A number for each component of index vectors, which lie along an axis."""
    return np.array(values).reshape([n if i == axis else 1 for i, n in enumerate(shape)])


def _as_wide(indices: IrValue) -> IrValue:
    """Indices in a dtype that can hold every size."""
    if int(element_of(indices).lstrip("ui")) >= 32:
        return indices
    kind = mlir.ir.RankedTensorType.get(mlir.ir.RankedTensorType(indices.type).shape,
                                        mlir.ir.IntegerType.get_signless(32))
    return mlir.hlo.convert(kind, indices)


def _clamp(indices: IrValue, axis: int, low: Sequence[int], high: Sequence[int]) -> IrValue:
    """Index vectors, each component clamped between two numbers."""
    shape = shape_of(indices)
    bounds = [np.array(values[0]) if len(values) == 1 else
              np.broadcast_to(_on_axis(axis, values, shape), shape) for values in (low, high)]
    least, most = (mlir.hlo.constant(constant_attr(x.astype(NUMPY_OF[element_of(indices)])))
                   for x in bounds)
    return mlir.hlo.clamp(least, indices, most)
