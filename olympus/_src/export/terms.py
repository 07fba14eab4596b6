"""Formulas of StableHLO: values with Python's operators, at the present insertion point."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ..base.lib import mlir
from ..base.typing import IrType, IrValue
from ..lowering.attributes import constant_attr, i64s
from .operations import NUMPY_OF, element_of, shape_of

Number: TypeAlias = int | float


class Term:
    """A value; numbers beside it become constants of its type."""

    __slots__ = ("value",)
    __hash__ = None     # type: ignore[assignment]

    def __init__(self, value: IrValue) -> None:
        self.value = value

    @property
    def element(self) -> str:
        return element_of(self.value)

    def like(self, other: Term | Number) -> Term:
        """A number as a constant of this type and shape, known or not."""
        if isinstance(other, Term):
            return other
        hlo, ir, shape = mlir.hlo, mlir.ir, shape_of(self.value)
        kind = ir.RankedTensorType(self.value.type)
        scalar = _scalar_constant(other, self.element)
        if not shape:
            return Term(scalar)
        if -1 not in shape:
            return Term(hlo.broadcast_in_dim(kind, scalar, i64s([])))
        return Term(hlo.dynamic_broadcast_in_dim(kind, scalar, sizes_of(self.value), i64s([])))

    def to(self, element: str) -> Term:
        """This as another element type, by StableHLO's name."""
        if element == self.element:
            return self
        return Term(mlir.hlo.convert(typed(self.value, element), self.value))

    def _two(self, name: str, other: Term | Number, swap: bool = False) -> Term:
        sides = (self.like(other), self) if swap else (self, self.like(other))
        return Term(getattr(mlir.hlo, name)(*[x.value for x in sides]))

    def compare(self, direction: str, other: Term | Number) -> Term:
        return Term(mlir.hlo.compare(self.value, self.like(other).value,
                                     mlir.hlo.ComparisonDirectionAttr.get(direction)))

    def __add__(self, y: Term | Number) -> Term: return self._two("add", y)
    def __sub__(self, y: Term | Number) -> Term: return self._two("subtract", y)
    def __mul__(self, y: Term | Number) -> Term: return self._two("multiply", y)
    def __truediv__(self, y: Term | Number) -> Term: return self._two("divide", y)
    def __mod__(self, y: Term | Number) -> Term: return self._two("remainder", y)
    def __pow__(self, y: Term | Number) -> Term: return self._two("power", y)
    def __and__(self, y: Term | Number) -> Term: return self._two("and_", y)
    def __or__(self, y: Term | Number) -> Term: return self._two("or_", y)
    def __xor__(self, y: Term | Number) -> Term: return self._two("xor", y)
    def __lshift__(self, y: Term | Number) -> Term: return self._two("shift_left", y)
    def __rshift__(self, y: Term | Number) -> Term: return self._two("shift_right_logical", y)
    def __radd__(self, y: Number) -> Term: return self._two("add", y, True)
    def __rsub__(self, y: Number) -> Term: return self._two("subtract", y, True)
    def __rmul__(self, y: Number) -> Term: return self._two("multiply", y, True)
    def __rtruediv__(self, y: Number) -> Term: return self._two("divide", y, True)
    def __neg__(self) -> Term: return unary("negate", self)
    def __abs__(self) -> Term: return unary("abs", self)
    def __invert__(self) -> Term: return unary("not_", self)
    def __lt__(self, y: Term | Number) -> Term: return self.compare("LT", y)
    def __le__(self, y: Term | Number) -> Term: return self.compare("LE", y)
    def __gt__(self, y: Term | Number) -> Term: return self.compare("GT", y)
    def __ge__(self, y: Term | Number) -> Term: return self.compare("GE", y)

    def equal(self, y: Term | Number) -> Term:
        return self.compare("EQ", y)

    def differs(self, y: Term | Number) -> Term:
        return self.compare("NE", y)


def unary(name: str, x: Term) -> Term:
    """StableHLO's operation of one operand, which keeps the type."""
    made: Callable[[IrValue], IrValue] = getattr(mlir.hlo, name)
    return Term(made(x.value))


def select(*choices: Term | Number | tuple[Term, Term | Number]) -> Term:
    """The value of the first pair (condition, value) whose condition holds, else the last value.

    At least one of the values is no number.
    """
    *pairs, last = choices
    values = [last, *(value for _, value in pairs)]     # type: ignore[misc]
    like = next(x for x in values if isinstance(x, Term))
    chosen = like.like(last)     # type: ignore[arg-type]
    for condition, value in reversed(pairs):    # type: ignore[misc]
        chosen = Term(mlir.hlo.select(condition.value, like.like(value).value, chosen.value))
    return chosen


def bits(x: Term) -> Term:
    """The bits of a float as a signed integer."""
    element = f"i{x.element.strip('bf')}"
    return Term(mlir.hlo.bitcast_convert(typed(x.value, element), x.value))


def places(x: IrValue, axis: int) -> IrValue:
    """The index along an axis at each element of `x`."""
    hlo, ir, shape = mlir.hlo, mlir.ir, shape_of(x)
    kind = typed(x, "i32")
    if -1 not in shape:
        return hlo.iota(kind, axis)
    row = hlo.iota(ir.RankedTensorType.get((shape[axis],), ir.IntegerType.get_signless(32)), 0)
    return hlo.dynamic_broadcast_in_dim(kind, row, sizes_of(x), i64s([axis]))


def sizes_of(x: IrValue) -> IrValue:
    """The shape of a value, as a vector."""
    hlo, ir = mlir.hlo, mlir.ir
    one = ir.RankedTensorType.get((1,), ir.IntegerType.get_signless(32))
    return hlo.concatenate([hlo.reshape(one, hlo.get_dimension_size(x, i))
                            for i in range(len(shape_of(x)))], 0)


def negative(x: Term) -> Term:
    """Whether the sign bit of a float is set."""
    # In some programs IREE computes doubles as floats, whose bits are others.
    return (x < 0) | (1 / x < 0) if x.element == "f64" else bits(x) < 0


def _scalar_constant(value: Number, element: str) -> IrValue:
    constant = mlir.hlo.constant(constant_attr(np.array(value, NUMPY_OF[element])))
    if element == "bf16":       # NumPy has none
        constant = mlir.hlo.convert(typed(constant, element), constant)
    return constant


def typed(x: IrValue, element: str) -> IrType:
    """The type of a value with another element type."""
    ir, shape = mlir.ir, mlir.ir.RankedTensorType(x.type).shape
    return ir.RankedTensorType.get(shape, ir.Type.parse(element, x.type.context))
