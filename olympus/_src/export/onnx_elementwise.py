"""The values of a graph of ONNX that is being made, and its elementwise operations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from ..base.typing import IrOperation, IrValue
from .onnx_model import DTYPES, Graph
from .operations import NUMPY_OF, direction_of, element_of, name_of, shape_of

UNARY = {"abs": "Abs", "exponential": "Exp", "log": "Log", "sqrt": "Sqrt", "tanh": "Tanh",
         "sine": "Sin", "cosine": "Cos", "tan": "Tan", "floor": "Floor", "ceil": "Ceil",
         "round_nearest_even": "Round"}
BINARY = {"add": "Add", "subtract": "Sub", "multiply": "Mul", "divide": "Div", "maximum": "Max",
          "minimum": "Min", "power": "Pow"}
# For bools; integers have operations of their own.
_LOGICAL = {"and": "And", "or": "Or", "xor": "Xor", "add": "Or", "multiply": "And",
            "maximum": "Or", "minimum": "And"}
_BITWISE = {"and": "BitwiseAnd", "or": "BitwiseOr", "xor": "BitwiseXor"}
_COMPARISONS = {"EQ": "Equal", "LT": "Less", "LE": "LessOrEqual", "GT": "Greater",
                "GE": "GreaterOrEqual"}
FLOATS = ("f16", "f32", "f64")
# For these ONNX Runtime has no Where; wider ones hold their values, or their bits.
_NOT_CHOSEN = {"i16": "i32", "ui16": "i32", "ui64": "i64"}
# Sums, products and extrema of narrow types are taken in wider ones, since ONNX or ONNX Runtime has
# none of them. Cast back, they wrap around as narrow ones do.
WIDER = {"i1": "i32", "i8": "i32", "i16": "i32", "ui8": "i32", "ui16": "i32", "ui32": "i64"}
Functions: TypeAlias = Mapping[str, IrOperation]    # of a module, by name


def refuse(op: IrOperation, why: str) -> NotImplementedError:
    return NotImplementedError(f"to_onnx: {op.operation.name} {why}; ONNX has no counterpart for "
                               "it here; compute that part otherwise.")


class Elementwise:
    """A graph under construction: names of MLIR values, a method for each elementwise operation."""

    def __init__(self, graph: Graph, functions: Functions, outer: Elementwise | None = None
                 ) -> None:
        self.graph, self.functions = graph, functions
        # A subgraph can name values of the enclosing graph.
        self.env: dict[IrValue, str] = {} if outer is None else dict(outer.env)
        # Broadcasts without a node yet: a name that broadcasts to the value, and the shape.
        self.small: dict[IrValue, tuple[str, str]] = {} if outer is None else dict(outer.small)
        # Constants; of those that are broadcasts of a scalar, the scalar alone.
        self.arrays: dict[IrValue, np.ndarray] = {} if outer is None else dict(outer.arrays)

    # Values

    def add(self, operation: str, *inputs: str, **attributes: object) -> str:
        return self.graph.add(operation, inputs, **attributes)

    def of(self, x: IrValue) -> str:
        """The name of a value."""
        name_here = self.env.get(x)
        if name_here is None:
            name, shape = self.small[x]
            name_here = self.env[x] = self.add("Expand", name, shape)
        return name_here

    def near(self, x: IrValue) -> str:
        """The name of a value that broadcasts to this one."""
        return self.env[x] if x in self.env else self.small[x][0]

    def elementwise(self, operation: str, xs: Sequence[IrValue]) -> str:
        """An operation that broadcasts; one operand at least is whole."""
        if any(x in self.env for x in xs):
            return self.add(operation, *map(self.near, xs))
        return self.add(operation, self.of(xs[0]), *map(self.near, xs[1:]))

    def shape_of(self, x: IrValue) -> str:
        """The name of the shape of a static type."""
        return self.graph.ints(shape_of(x))

    def scalar(self, value: object, x: IrValue) -> str:
        """The name of a number of the element type of `x`."""
        return self.number(value, element_of(x))

    def number(self, value: object, element: str) -> str:
        constant = self.graph.constant(np.array(value, NUMPY_OF[element]))
        return self.cast(constant, "bf16") if element == "bf16" else constant

    def reshape(self, name: str, shape: Sequence[int]) -> str:
        return self.add("Reshape", name, self.graph.ints(shape), allowzero=1)

    def transpose(self, name: str, order: Sequence[int]) -> str:
        if list(order) == sorted(order):
            return name
        return self.add("Transpose", name, perm=list(order))

    def cast(self, name: str, element: str, now: str = "") -> str:
        """A value as another element type; itself if its type `now` is that."""
        return name if element == now else self.add("Cast", name, to=DTYPES[element])

    def wide(self, x: IrValue) -> str:
        """A value in the type that sums, products and extrema of it are taken in."""
        element = element_of(x)
        return self.cast(self.of(x), WIDER.get(element, element), element)

    def narrow(self, name: str, x: IrValue) -> str:
        """A result of that type, cast back to the element type of `x`."""
        element = element_of(x)
        return self.cast(name, element, WIDER.get(element, element))

    # Elementwise

    def unless(self, condition: str) -> str:
        """The opposite of a condition, not by Not: in a Where after that, ONNX Runtime exchanges
        the other operands, and the first of these loses the sign of zeros.
        """
        return self.add("Xor", condition, self.graph.constant(np.array(True)))

    def binary(self, op: IrOperation, name: str) -> str:
        operation = BINARY[name]
        if element_of(op.operands[0]) == "i1":
            operation = _LOGICAL[name]
        elif element_of(op.operands[0]) == "f64" and name == "add":
            # ONNX Runtime leaves out an Add of a number that is 0 in float32, as 1e-290 is. Sums it
            # keeps.
            operation = "Sum"
        return self.elementwise(operation, list(op.operands))

    def _bits(self, op: IrOperation) -> str:
        table = _LOGICAL if element_of(op.operands[0]) == "i1" else _BITWISE
        return self.elementwise(table[name_of(op)], list(op.operands))

    do_and = do_or = do_xor = _bits

    def do_not(self, op: IrOperation) -> str:
        x, = op.operands
        return self.unless(self.of(x)) if element_of(x) == "i1" else self.add("BitwiseNot",
                                                                              self.of(x))

    def do_negate(self, op: IrOperation) -> str:
        x, = op.operands
        if element_of(x)[0] == "u":
            return self.add("Sub", self.scalar(0, x), self.of(x))
        return self.add("Neg", self.of(x))

    def do_rsqrt(self, op: IrOperation) -> str:
        return self.add("Reciprocal", self.add("Sqrt", self.of(op.operands[0])))

    def do_cbrt(self, op: IrOperation) -> str:
        x, = op.operands
        root = self.add("Pow", self.add("Abs", self.of(x)), self.scalar(1 / 3, x))
        return self.add("Mul", self.signed(x), root)

    def do_sign(self, op: IrOperation) -> str:
        x, = op.operands
        return self.signed(x) if element_of(x) in FLOATS else self.add("Sign", self.of(x))

    def signed(self, x: IrValue) -> str:
        """The sign of floats; of zeros themselves, where ONNX Runtime gives 0."""
        element, zero = element_of(x), self.add("Equal", self.of(x), self.scalar(0, x))
        within = "f32" if element == "f16" else element     # its sign of a NaN in 16 bits is 0
        sign = self.cast(self.add("Sign", self.cast(self.of(x), within, element)), element, within)
        return self.add("Where", self.unless(zero), sign, self.of(x))

    def do_round_nearest_afz(self, op: IrOperation) -> str:
        x, = op.operands
        size = self.add("Abs", self.of(x))
        whole = self.add("Floor", size)
        up = self.add("GreaterOrEqual", self.add("Sub", size, whole), self.scalar(0.5, x))
        rounded = self.add("Add", whole, self.cast(up, element_of(x)))
        return self.add("Mul", self.signed(x), rounded)

    def do_exponential_minus_one(self, op: IrOperation) -> str:
        # Near 0, where u - 1 loses digits, u = exp(x): its error cancels in (u - 1) / log(u).
        x, = op.operands
        u, one = self.add("Exp", self.of(x)), self.scalar(1, x)
        far = self.add("Sub", u, one)
        near = self.add("Div", self.add("Mul", far, self.of(x)), self.add("Log", u))
        return self._near_zero(x, u, near, far)

    def do_log_plus_one(self, op: IrOperation) -> str:
        # Near 0, where u = 1 + x loses digits: the error cancels in log(u) / (u - 1).
        x, = op.operands
        one = self.scalar(1, x)
        u = self.add("Add", self.of(x), one)
        far = self.add("Log", u)
        near = self.add("Div", self.add("Mul", far, self.of(x)), self.add("Sub", u, one))
        return self._near_zero(x, u, near, far)

    def _near_zero(self, x: IrValue, u: str, near: str, far: str) -> str:
        """x where u is 1, `near` where x is below 0.5 else, then `far`; zeros keep their signs."""
        moved = self.unless(self.add("Equal", u, self.scalar(1, x)))
        near = self.add("Where", moved, near, self.of(x))
        large = self.add("GreaterOrEqual", self.add("Abs", self.of(x)), self.scalar(0.5, x))
        return self.add("Where", large, far, near)

    def do_is_finite(self, op: IrOperation) -> str:
        x, = op.operands
        return self.add("Less", self.add("Abs", self.of(x)), self.scalar(np.inf, x))

    def do_remainder(self, op: IrOperation) -> str:
        return self.graph.add("Mod", list(map(self.of, op.operands)), fmod=1)

    def do_atan2(self, op: IrOperation) -> str:
        # The angle of (|x|, |y|), then mirrored as the signs say. Magnitudes that are equal have
        # the slope 1, two infinities among them; two zeros have 0.
        y, x = op.operands
        height, width = self.add("Abs", self.of(y)), self.add("Abs", self.of(x))
        slope = self.add("Where", self.add("Equal", height, width), self.add("Sign", height),
                         self.add("Div", height, width))
        angle = self.add("Atan", slope)
        angle = self.add("Where", self._negative(x),
                         self.add("Sub", self.scalar(np.pi, x), angle), angle)
        # ONNX Runtime's Where gives 0 for -0, so the sign is a factor.
        sign = self.add("Where", self._negative(y), self.scalar(-1, y), self.scalar(1, y))
        return self.add("Mul", angle, sign)

    def _negative(self, x: IrValue) -> str:
        """Whether the sign bit is set: the reciprocal of -0 is below 0, too."""
        name, zero = self.of(x), self.scalar(0, x)
        return self.add("Or", self.add("Less", name, zero),
                        self.add("Less", self.add("Reciprocal", name), zero))

    def do_compare(self, op: IrOperation) -> str:
        direction, xs = direction_of(op), list(op.operands)
        kind = "compare_type"
        if kind in op.attributes and "TOTALORDER" in str(op.attributes[kind]):
            raise refuse(op, "by the total order")
        if direction == "NE":
            return self.unless(self.elementwise("Equal", xs))
        if element_of(xs[0]) == "i1" and direction != "EQ":
            return self.add(_COMPARISONS[direction], *[self.cast(self.of(x), "i32") for x in xs])
        return self.elementwise(_COMPARISONS[direction], xs)

    def do_select(self, op: IrOperation) -> str:
        condition, x, y = op.operands
        element = element_of(x)
        if element == "i1":
            chosen = self.elementwise("And", [condition, x])
            other = self.add("And", self.unless(self.near(condition)), self.near(y))
            return self.add("Or", chosen, other)
        if element in _NOT_CHOSEN:
            wide = _NOT_CHOSEN[element]
            out = self.add("Where", self.of(condition), self.cast(self.near(x), wide),
                           self.cast(self.near(y), wide))
            return self.cast(out, element)
        # ONNX Runtime's Where gives 0 for -0 if the condition holds.
        if element not in FLOATS or self._no_minus_zero(x):
            return self.elementwise("Where", list(op.operands))
        other = self.unless(self.near(condition))
        if self._no_minus_zero(y):
            whole = condition in self.env or y in self.env
            return self.add("Where", other, self.near(y), self.near(x) if whole else self.of(x))
        one = self.scalar(1, x)
        return self.add("Mul", self.add("Where", other, one, self.of(x)),
                        self.add("Where", self.near(condition), one, self.near(y)))

    def _no_minus_zero(self, x: IrValue) -> bool:
        """Whether a value is a constant without -0."""
        constant = self.arrays.get(x)
        return constant is not None and not np.any((constant == 0) & np.signbit(constant))

    def do_clamp(self, op: IrOperation) -> str:
        low, x, high = op.operands
        return self.add("Min", self.add("Max", self.of(x), self.near(low)), self.near(high))

    def do_convert(self, op: IrOperation) -> str:
        (x,), (out,) = op.operands, op.results
        return self.cast(self.of(x), element_of(out), element_of(x))

    def do_optimization_barrier(self, op: IrOperation) -> list[str]:
        return list(map(self.of, op.operands))
