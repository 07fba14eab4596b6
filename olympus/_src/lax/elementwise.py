"""Elementwise primitives: one family, then one line of facts per operation.

A line names the operation, its StableHLO op, the kinds of dtype it takes, and per operand the
tangent `(t, out, *operands) -> tangent of out`. Operands have one shape, or are rank-0 literals.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.primitive import Axis, Linear, Primitive, Zero
from ..core.trace import is_literal, literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from .shape import broadcast_axis, move_axis, zeros_of

__all__ = ["Comparison", "Elementwise", "binary", "elementwise", "unary"]

Partial = Callable[..., Any]
BOOL = dtypes.as_dtype(bool)

# Kinds of dtype, as `dtypes.scalar_kind` names them.
BOOLEAN, INTEGER, FLOATING, COMPLEX = "b", "iu", "f", "c"
INEXACT, NUMERIC, REAL, BITS = "fc", "iufc", "iuf", "biu"
ANY = "biufc"
_KIND_NAMES = {"b": "bool", "i": "signed integer", "u": "unsigned integer", "f": "floating",
               "c": "complex", "k": "key"}


def check_operands(name: str, avals: Sequence[ShapedArray], kinds: str) -> tuple[int, ...]:
    """The result's shape; TypeError unless dtypes agree, are accepted, and shapes fit."""
    dtype = avals[0].dtype
    shape: tuple[int, ...] = ()
    for i, aval in enumerate(avals):
        if dtypes.scalar_kind(aval.dtype) not in kinds:
            accepted = ", ".join(_KIND_NAMES[k] for k in kinds)
            raise TypeError(f"{name}: operand {i} is {aval}; dtypes accepted are {accepted}; "
                            "convert it with astype.")
        if aval.dtype != dtype:
            raise TypeError(f"{name}: operands are {', '.join(map(str, avals))}; one dtype is "
                            "required; convert with lax.convert_element_type, or use "
                            "olympus.numpy, which promotes.")
        if aval.shape != ():
            if shape not in ((), aval.shape):
                raise TypeError(f"{name}: operands are {', '.join(map(str, avals))}; equal shapes "
                                "are required; use lax.broadcast_in_dim, or olympus.numpy, which "
                                "broadcasts.")
            shape = aval.shape
    return shape


def map_elementwise(axis: Axis, args: Sequence[Any], dims: Sequence[int | None]
                    ) -> tuple[list[Any], int]:
    """Operands aligned on one mapped axis; literals stay as they are."""
    dim = next(d for d in dims if d is not None)
    return [x if d == dim or (d is None and is_literal(x)) else
            broadcast_axis(x, axis.size, dim) if d is None else move_axis(x, d, dim)
            for x, d in zip(args, dims)], dim


class Elementwise(Primitive):
    """Same-shape operands; one StableHLO op; the tangent is the sum of the partials."""

    def __init__(self, name: str, op: str, kinds: str, partials: Sequence[Partial] | None,
                 linear: tuple[int, ...] = (), result: Callable[[Any], Any] | None = None) -> None:
        super().__init__(name)
        self.op, self.kinds, self.partials = op, kinds, partials
        self.linear, self.result = linear, result

    def infer(self, *avals: ShapedArray, **params: Any) -> ShapedArray:
        shape = check_operands(self.name, avals, self.kinds)
        dtype = avals[0].dtype if self.result is None else self.result(avals[0].dtype)
        return make_aval(shape, dtype, all(a.weak_type for a in avals))

    def lower(self, b: Any, *xs: Any, **params: Any) -> Any:
        return b.op(self.op, b.expand(xs))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        out = self.bind(*primals, **params)
        if self.partials is None:
            return out, Zero(typeof(out).to_tangent_aval())
        total = None
        for partial, t in zip(self.partials, tangents):
            if type(t) is not Zero:
                term = partial(t, out, *primals, **params)
                total = term if total is None else add(total, term)
        return out, total

    def transpose(self, ct: Any, *args: Any, **params: Any) -> list[Any]:
        partials = self.partials or ()
        cts: list[Any] = [None] * len(args)
        for i, x in enumerate(args):
            if type(x) is not Linear:
                continue
            others = [a for j, a in enumerate(args) if j != i]
            together = self.linear == tuple(range(len(args))) and self.op in _JOINTLY_LINEAR
            if i not in self.linear or (any(type(a) is Linear for a in others) and not together):
                raise NotImplementedError(f"{self.name}: transposed in operand {i}, in which it is "
                                          "not linear; reverse mode needs a linear function.")
            cts[i] = partials[i](ct, None, *args, **params)
        return cts

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any
             ) -> tuple[Any, int]:
        args, dim = map_elementwise(axis, args, dims)
        return self.bind(*args, **params), dim


_JOINTLY_LINEAR = frozenset(("stablehlo.add", "stablehlo.subtract", "stablehlo.complex"))


class Comparison(Elementwise):
    """Elementwise comparison; the result is bool."""

    def lower(self, b: Any, *xs: Any, **params: Any) -> Any:
        kind = dtypes.scalar_kind(b.avals_in[0].dtype)
        compare = {"f": "FLOAT", "c": "FLOAT", "i": "SIGNED"}.get(kind, "UNSIGNED")
        return b.op("stablehlo.compare", b.expand(xs), {
            "comparison_direction": b.attr(f"#stablehlo<comparison_direction {self.op}>"),
            "compare_type": b.attr(f"#stablehlo<comparison_type {compare}>")})

    def infer(self, *avals: ShapedArray, **params: Any) -> ShapedArray:
        return make_aval(check_operands(self.name, avals, self.kinds), BOOL)


def elementwise(name: str, op: str, kinds: str, *partials: Partial, linear: tuple[int, ...] = (),
                result: Callable[[Any], Any] | None = None) -> Elementwise:
    """Declare an elementwise primitive; without partials its derivative is zero."""
    return Elementwise(name, op, kinds, partials or None, linear, result)


def comparison(name: str, direction: str, kinds: str = ANY) -> Comparison:
    """Declare a comparison."""
    return Comparison(name, direction, kinds, None)


def operand(x: Any, like: Any) -> Any:
    """A Python scalar as a literal of the other operand's dtype; anything else as it is."""
    if type(x) in (int, float, complex, bool):
        return literal(x, typeof(like).dtype, typeof(like).weak_type)
    return x


def binary(prim: Primitive, x: Any, y: Any) -> Any:
    """Bind a two-operand primitive; a Python scalar takes the other operand's dtype."""
    return prim.bind(operand(x, y), operand(y, x))


def unary(prim: Primitive, x: Any) -> Any:
    """Bind a one-operand primitive."""
    return prim.bind(x)


# Arithmetic -------------------------------------------------------------------------------------

neg_p = elementwise("neg", "stablehlo.negate", NUMERIC, lambda t, z, x: neg(t), linear=(0,))
add_p = elementwise("add", "stablehlo.add", NUMERIC,
                    lambda t, z, x, y: t, lambda t, z, x, y: t, linear=(0, 1))
sub_p = elementwise("sub", "stablehlo.subtract", NUMERIC,
                    lambda t, z, x, y: t, lambda t, z, x, y: neg(t), linear=(0, 1))
mul_p = elementwise("mul", "stablehlo.multiply", ANY,
                    lambda t, z, x, y: mul(t, y), lambda t, z, x, y: mul(x, t), linear=(0, 1))
div_p = elementwise("div", "stablehlo.divide", NUMERIC, lambda t, z, x, y: div(t, y),
                    lambda t, z, x, y: mul(neg(t), div(z, y)), linear=(0,))
sin_p = elementwise("sin", "stablehlo.sine", INEXACT, lambda t, y, x: mul(t, cos(x)))
cos_p = elementwise("cos", "stablehlo.cosine", INEXACT, lambda t, y, x: neg(mul(t, sin(x))))
exp_p = elementwise("exp", "stablehlo.exponential", INEXACT, lambda t, y, x: mul(t, y))
log_p = elementwise("log", "stablehlo.log", INEXACT, lambda t, y, x: div(t, x))
tanh_p = elementwise("tanh", "stablehlo.tanh", INEXACT,
                     lambda t, y, x: mul(t, sub(1.0, mul(y, y))))
gt_p = comparison("gt", "GT")
lt_p = comparison("lt", "LT")


def neg(x: Any) -> Any:
    return neg_p.bind(x)


def add(x: Any, y: Any) -> Any:
    return binary(add_p, x, y)


def sub(x: Any, y: Any) -> Any:
    return binary(sub_p, x, y)


def mul(x: Any, y: Any) -> Any:
    return binary(mul_p, x, y)


def div(x: Any, y: Any) -> Any:
    return binary(div_p, x, y)


def sin(x: Any) -> Any:
    return sin_p.bind(x)


def cos(x: Any) -> Any:
    return cos_p.bind(x)


def exp(x: Any) -> Any:
    return exp_p.bind(x)


def log(x: Any) -> Any:
    return log_p.bind(x)


def tanh(x: Any) -> Any:
    return tanh_p.bind(x)


def gt(x: Any, y: Any) -> Any:
    return binary(gt_p, x, y)


def lt(x: Any, y: Any) -> Any:
    return binary(lt_p, x, y)
