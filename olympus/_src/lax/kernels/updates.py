"""Updates of a part of an array that are computed from other parts of it: stencils.

XLA:CPU (0.10.2, 0.12.0.1) fuses what computes the update into the operation that writes it. Where
that reads the array elsewhere than it writes, the array is copied, and read and written element by
element, so the update is put in memory first.

If a reshape reads the result, or made the array, XLA:CPU does not see that both are one array, and
leaves out the copy: the update reads overwritten elements (openxla/xla#49176). `conflict` finds
these updates, of any size. A barrier behind the result keeps readers' reshapes from it, at no cost.
"""

from __future__ import annotations

import enum
import itertools
import operator
import re
from collections.abc import Hashable, Sequence

import numpy as np

from ...base.lib import mlir
from ...base.typing import IrOperation, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import is_static, prod
from ..indexing import (
    ScatterDimensionNumbers, scatter_add_p, scatter_max_p, scatter_min_p, scatter_p, scatter_sub_p,
)
from ..scatter_product import scatter_mul_p
from ..slicing import dynamic_update_slice_p
from .rows import are_rows, by_rows

# Found with tools/kernel_table.py: of fewer elements, or a smaller part, a copy takes as long.
LEAST, PART = 512, 2
_BOOL = dtypes.as_dtype(bool)
# Operations that are looked at, backwards from the update: for speed, and for a conflict.
MOST, FEW = 400, 100
# What XLA fuses: operations that move elements, and those that do not. Others have their results in
# memory, and before them nothing is looked for.
MOVES = frozenset(f"stablehlo.{name}" for name in (
    "broadcast_in_dim", "concatenate", "dynamic_slice", "pad", "reshape", "reverse", "slice",
    "transpose"))
STAYS = frozenset(f"stablehlo.{name}" for name in (
    "abs", "add", "and", "atan2", "bitcast_convert", "cbrt", "ceil", "clamp", "compare", "complex",
    "convert", "cosine", "divide", "exponential", "exponential_minus_one", "floor", "imag",
    "is_finite", "log", "log_plus_one", "logistic", "maximum", "minimum", "multiply", "negate",
    "not", "optimization_barrier", "or", "power", "real", "remainder", "round_nearest_afz",
    "round_nearest_even", "rsqrt", "select", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sine", "sqrt", "subtract", "tan", "tanh", "xor"))
# Operations that leave their results in memory.
STORED = frozenset(f"stablehlo.{name}" for name in (
    "all_gather", "all_reduce", "all_to_all", "case", "cholesky", "collective_broadcast",
    "collective_permute", "convolution", "custom_call", "fft", "if", "infeed", "reduce_scatter",
    "rng_bit_generator", "scatter", "select_and_scatter", "sort", "triangular_solve", "while"))
# Operations whose results may be their operand's memory.
RESHAPES = frozenset(f"stablehlo.{name}" for name in (
    "bitcast_convert", "broadcast_in_dim", "optimization_barrier", "reshape", "transpose"))
# Operations that XLA replaces by others of more or fewer axes, and reshapes.
RESHAPED = frozenset(("stablehlo.dot_general", "stablehlo.gather"))


class Conflict(enum.Enum):
    """How an update may come to read overwritten elements, and what prevents that."""

    NONE = enum.auto()
    BY_READERS = enum.auto()    # a barrier behind the result
    BY_SOURCES = enum.auto()    # the update in memory


def apart(b: Builder, x: IrValue, update: IrValue, starts: Sequence[IrValue] = ()
          ) -> tuple[IrValue, Conflict]:
    """An update to write into `x`, in memory where that prevents a conflict; and the one left."""
    left = conflict(b, x, update, starts)
    if left is Conflict.BY_SOURCES and b.module.keeps_calls:
        return b.kept([update])[0], Conflict.NONE
    return update, left


def stored(b: Builder, x: IrValue, conflict: bool = False) -> IrValue:
    """An array that several devices replace in part, kept apart from the parts that are read of it.

    XLA's partitioner reads a part of a part of a padded array, and adds up their starts (jaxlib
    0.10.2). In a scatter with a conflict, updates are computed first then (0.12.0.1).
    """
    if b.module.places.sharing == 1 or b.module.platform not in (None, "cpu") or (
            not conflict and getattr(x.owner, "name", "") != "stablehlo.pad") or (
            isinstance(x.owner, mlir.ir.Block) or b.module.places.is_unreduced(b.avals_in[0])):
        return x
    return b.ops("stablehlo.optimization_barrier", [x], None, [x.type]).results[0]


def prepared(b: Builder, xs: Sequence[IrValue], indices: IrValue, updates: Sequence[IrValue],
             index: ShapedArray, update: ShapedArray, dn: ScatterDimensionNumbers
             ) -> tuple[list[IrValue], IrValue, list[IrValue], ShapedArray, bool]:
    """Operands, indices, updates and the indices' type of a scatter, and whether a barrier must
    follow the results.

    XLA's partitioner (jaxlib 0.10.2, 0.12.0.1) fills up the last device's indices with 0, and
    combines element 0 with what is in memory behind the updates. So places outside of the operand
    are put behind the others, by which all parts are equal. On accelerators, where arrays are
    large, no axis of an array is taken for shared along several axes of a mesh.
    """
    behind, updates = False, [*updates]
    for x, j in itertools.product(xs, range(len(xs))):
        updates[j], left = apart(b, x, updates[j])
        behind = behind or left is not Conflict.NONE
    if prod(index.shape[:-1]) == 1:     # XLA makes a slice and its update of it
        xs = [stored(b, x, behind) for x in xs]
    places = b.module.places
    sharing = places.sharing if b.module.platform in (None, "cpu") else places.sharing_an_axis
    whole = {*dn.scatter_indices_batching_dims, index.ndim - 1}
    more = [0 if a in whole or n < 2 else -n % sharing for a, n in enumerate(index.shape)
            ] if is_static(index.shape) else []
    if any(more) and not (update.tagged and places.is_unreduced(update)):
        sizes = iter(more)
        added = [0 if a in dn.update_window_dims else next(sizes) for a in range(update.ndim)]
        outside = b.scalar(int(dtypes.iinfo(index.dtype).max), index.dtype)
        indices, index = _extended(b, indices, outside, index, more)
        zero = b.scalar(0, update.dtype)
        updates = [_extended(b, x, zero, update, added)[0] for x in updates]
    return [*xs], indices, updates, index, behind


def _extended(b: Builder, x: IrValue, value: IrValue, aval: ShapedArray, more: Sequence[int]
              ) -> tuple[IrValue, ShapedArray]:
    none = b.i64s([0] * len(more))
    aval = make_aval(tuple(map(operator.add, aval.shape, more)), aval.dtype)
    return b.op("stablehlo.pad", [x, value], {
        "edge_padding_low": none, "edge_padding_high": b.i64s(more), "interior_padding": none},
        aval), aval


def write(b: Builder, x: IrValue, update: IrValue, starts: Sequence[IrValue]) -> IrValue:
    """stablehlo.dynamic_update_slice, which XLA:CPU may do in place."""
    name = "stablehlo.dynamic_update_slice"
    update, left = apart(b, x, update, starts)
    if left is Conflict.BY_SOURCES:
        # No call keeps the update apart; so a choice is written, which is another array.
        flags = b.avals_out[0].update(dtype=_BOOL)
        placed = b.op(name, [b.full(b.avals_out[0], 0), update, *starts])
        mask = b.op(name, [b.full(flags, False), b.full(b.avals_in[1].update(dtype=_BOOL), True),
                           *starts], None, flags)
        return b.op("stablehlo.select", [mask, placed, x])
    out = b.op(name, [stored(b, x), update, *starts])
    return out if left is Conflict.NONE else (
        b.ops("stablehlo.optimization_barrier", [out]).results[0])


def conflict(b: Builder, x: IrValue, update: IrValue, starts: Sequence[IrValue]) -> Conflict:
    """Whether an update reads the array that it may replace in place, elsewhere than it writes."""
    if _is_safe(b, update):
        return Conflict.NONE
    sources, written = _sources(b, x), _written(b, starts, ())
    if any(not mlir.ir.RankedTensorType(v.type).rank for v, _ in sources):
        return Conflict.NONE        # one number, repeated
    # XLA merges equal operations; two of one name and type may be equal.
    alike = {_kind(v.owner, v) for v, _ in sources}
    seen = set[Hashable]()
    pending: list[tuple[IrValue, bool, tuple[IrOperation, ...]]] = [(update, False, ())]
    while pending:
        value, moved, calls = key = pending.pop()
        if not calls and value == x:
            if moved:
                return Conflict.BY_SOURCES if _is_reshaped(b, x) else Conflict.BY_READERS
            continue
        op = value.owner
        if (value, calls) in sources or len(seen) > FEW or moved and _kind(op, value) in alike:
            return Conflict.BY_SOURCES if (value, calls) in sources or _is_reshaped(b, x) else (
                Conflict.BY_READERS)
        if key in seen:
            continue
        seen.add(key)
        if isinstance(op, mlir.ir.Block):
            if calls:
                number = mlir.ir.BlockArgument(value).arg_number
                pending.append((calls[-1].operands[number], moved, calls[:-1]))
            elif _is_callee(b, op):     # the caller may compute it from `x`
                return Conflict.BY_SOURCES
        elif (name := op.name) in STAYS:
            pending += [(v, moved, calls) for v in op.operands]
        elif name == "func.call":
            if "mhlo.frontend_attributes" not in op.attributes:
                pending += [(v, moved, (*calls, op)) for v in _returned(b, op, value)]
        elif name not in STORED and not (
                name == "stablehlo.dot_general" and _is_product_of_matrices(op)):
            here = not calls and name == "stablehlo.slice" and (
                op.operands[0] == x and _starts(op) == written)
            pending += [(v, moved or not here, calls) for v in op.operands]
    return Conflict.NONE


def _is_safe(b: Builder, update: IrValue) -> bool:
    """Whether XLA cannot compute an update from the array that it replaces, or may not be kept from
    it: Shardy would sum the terms of unreduced values before a barrier or a choice.
    """
    out, op = b.avals_out[0], update.owner
    return b.module.platform not in (None, "cpu") or (
        out.tagged and b.module.places.is_unreduced(out)) or (
        isinstance(op, mlir.ir.Block) and not _is_callee(b, op))


def _is_product_of_matrices(op: IrOperation) -> bool:
    """Whether XLA does not turn a dot into a fused product or sum."""
    axes = {name: {int(n) for n in given.split(",") if n} for name, given in re.findall(
        r"(\w+) = \[([\d, ]*)\]", str(op.attributes["dot_dimension_numbers"]))}
    for x, side in zip(op.operands, ("lhs", "rhs"), strict=True):
        summed = axes.get(f"{side}_contracting_dimensions", set[int]())
        inner = summed | axes.get(f"{side}_batching_dimensions", set[int]())
        sizes = mlir.ir.RankedTensorType(x.type).shape
        if not any(n > 1 for d, n in enumerate(sizes) if d not in inner) or not any(
                sizes[d] > 1 for d in summed):
            return False
    return True


def _kind(op: IrOperation | mlir.ir.Block, value: IrValue) -> Hashable:
    return value if isinstance(op, mlir.ir.Block) else (op.name, value.type)


def _sources(b: Builder, x: IrValue) -> set[tuple[IrValue, tuple[IrOperation, ...]]]:
    """The values whose memory a value may be, with the calls within which they are."""
    calls: tuple[IrOperation, ...] = ()
    sources: set[tuple[IrValue, tuple[IrOperation, ...]]] = {(x, calls)}
    while len(sources) < FEW:
        op = x.owner
        if isinstance(op, mlir.ir.Block):
            if not calls:
                break
            x, calls = calls[-1].operands[mlir.ir.BlockArgument(x).arg_number], calls[:-1]
        elif op.name in RESHAPES:
            x = op.operands[mlir.ir.OpResult(x).result_number]
        elif op.name == "func.call" and "mhlo.frontend_attributes" not in op.attributes:
            (x,), calls = _returned(b, op, x), (*calls, op)
        else:
            break
        sources.add((x, calls))
    return sources


def _is_reshaped(b: Builder, x: IrValue) -> bool:
    """Whether XLA may take a value for a reshaped one, also by moving the reshape of an operand."""
    seen = set[Hashable]()
    pending: list[tuple[IrValue, tuple[IrOperation, ...]]] = [(x, ())]
    while pending:
        value, calls = key = pending.pop()
        if key in seen:
            continue
        seen.add(key)
        op = value.owner
        if len(seen) > FEW:
            return True
        if isinstance(op, mlir.ir.Block):
            if calls:
                number = mlir.ir.BlockArgument(value).arg_number
                pending.append((calls[-1].operands[number], calls[:-1]))
            elif _is_callee(b, op):
                return True
        elif op.name in RESHAPED or op.name in RESHAPES and (
                mlir.ir.RankedTensorType(op.operands[0].type).rank) or (
                1 in mlir.ir.RankedTensorType(value.type).shape):   # which XLA may leave out
            return True
        elif op.name == "func.call" and "mhlo.frontend_attributes" not in op.attributes:
            pending += [(v, (*calls, op)) for v in _returned(b, op, value)]
        elif op.name not in STORED:
            pending += [(v, calls) for v in op.operands]
    return False


def _is_callee(b: Builder, block: mlir.ir.Block) -> bool:
    """Whether a block is the body of a function that others call."""
    op = block.owner.operation
    return op.name == "func.func" and mlir.ir.StringAttr(op.attributes["sym_name"]).value != "main"


def _is_large(b: Builder, *xs: IrValue) -> bool:
    return _is_part(b, 1)


def _is_stencil(b: Builder, x: IrValue, update: IrValue, *starts: IrValue) -> bool:
    return _reads_elsewhere(b, x, update, starts)


def _is_one_window(b: Builder, *xs: IrValue, **params: Hashable) -> bool:
    return b.avals_in[1].ndim == 1 and _is_part(b, 2)


def _is_scattered_stencil(b: Builder, x: IrValue, indices: IrValue, updates: IrValue, *,
                          dimension_numbers: ScatterDimensionNumbers, **params: Hashable) -> bool:
    return _reads_elsewhere(b, x, updates, [indices],
                            dimension_numbers.scatter_dims_to_operand_dims)


def _is_part(b: Builder, update: int) -> bool:
    size = b.avals_in[update].size
    return size >= LEAST and size * PART >= b.avals_in[0].size


def _reads_elsewhere(b: Builder, x: IrValue, update: IrValue, starts: Sequence[IrValue],
                     axes: Sequence[int] = ()) -> bool:
    """Whether an operation fused with the update reads `x` elsewhere than the update goes."""
    if next(iter(x.uses), None) is None:
        return False        # nothing reads it yet
    written = _written(b, starts, axes)
    # A value, whether its elements are moved, and the calls within which it is computed.
    pending: list[tuple[IrValue, bool, tuple[IrOperation, ...]]] = [(update, False, ())]
    seen = set[Hashable]()
    while pending and len(seen) < MOST:
        value, moved, calls = pending.pop()
        if not calls and value == x:
            if moved:
                return True
            continue
        key = (value, moved, calls)
        if key in seen:
            continue
        seen.add(key)
        op = value.owner
        if isinstance(op, mlir.ir.Block):       # an argument, perhaps of a function
            if calls:
                number = mlir.ir.BlockArgument(value).arg_number
                pending.append((calls[-1].operands[number], moved, calls[:-1]))
            continue
        name = op.name
        if name == "func.call" and "mhlo.frontend_attributes" not in op.attributes:
            pending += [(v, moved, (*calls, op)) for v in _returned(b, op, value)]
        elif name in STAYS:
            pending += [(v, moved, calls) for v in op.operands]
        elif name in MOVES:
            here = not calls and name == "stablehlo.slice" and op.operands[0] == x and (
                _starts(op) == written)
            pending += [(v, moved or not here, calls) for v in op.operands]
    return False


def _returned(b: Builder, call: IrOperation, value: IrValue) -> list[IrValue]:
    """The value within the function that is called."""
    table = mlir.ir.SymbolTable(b.module.module.operation)
    block = table[mlir.ir.FlatSymbolRefAttr(call.attributes["callee"]).value].regions[0].blocks[0]
    return [block.operations[len(block.operations) - 1].operands[
        mlir.ir.OpResult(value).result_number]]


def _written(b: Builder, starts: Sequence[IrValue], axes: Sequence[int]) -> list[int] | None:
    """Where the update goes, if that is constant."""
    numbers = list[int]()
    for start in starts:
        op = start.owner
        if isinstance(op, mlir.ir.Block) or op.name != "stablehlo.constant":
            return None
        numbers += np.asarray(op.attributes["value"]).ravel().tolist()
    if not axes:
        return numbers
    found = [0] * b.avals_in[0].ndim
    for axis, number in zip(axes, numbers, strict=True):
        found[axis] = number
    return found


def _starts(op: IrOperation) -> list[int]:
    return list(mlir.ir.DenseI64ArrayAttr(op.attributes["start_indices"]))


def _update(b: Builder, x: IrValue, update: IrValue, *starts: IrValue) -> IrValue:
    return b.eqn.primitive.lower(b, x, b.hold(update, b.avals_in[1]), *starts)


def _scatter(b: Builder, x: IrValue, indices: IrValue, updates: IrValue, **params: Hashable
             ) -> IrValue:
    return b.eqn.primitive.lower(b, x, indices, b.hold(updates, b.avals_in[2]), **params)


_NAME = "update in memory"
_WHY = "XLA fuses an update with what reads its target elsewhere"
_STENCIL = Kernel(_NAME, _WHY, _is_one_window, _scatter, 0.8, _is_scattered_stencil)
_ROWS = Kernel("rows in order", "16-bit sums in float32 convert the whole table", are_rows, by_rows,
               0.3)
KERNELS = {
    dynamic_update_slice_p: (Kernel(_NAME, _WHY, _is_large, _update, 0.8, _is_stencil),),
    **dict.fromkeys((scatter_p, scatter_min_p, scatter_max_p, scatter_mul_p), (_STENCIL,)),
    **dict.fromkeys((scatter_add_p, scatter_sub_p), (_STENCIL, _ROWS))}
