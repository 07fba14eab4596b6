"""Elementwise primitives: one family, then one line of facts per operation.

A line names the operation, its StableHLO op, the kinds of dtype it takes, and per operand the
tangent `(t, out, *operands) -> tangent of out`. Operands have one shape, or are rank-0 literals.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core.primitive import Axis, Linear, Primitive, Zero
from ..core.trace import is_literal, literal, operand, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from .convert import convert_element_type_p
from .select import select, select_n, spread, where
from .shape import broadcast_axis, broadcast_in_dim, move_axis, zeros_of

__all__ = [
    "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "bitwise_and",
    "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "ceil", "clamp", "clz", "complex", "conj",
    "cos", "cosh", "div", "eq", "exp", "exp2", "expm1", "floor", "ge", "gt", "imag", "integer_pow",
    "is_finite", "le", "log", "log1p", "log2", "logistic", "lt", "max", "min", "mul", "ne", "neg",
    "nextafter", "population_count", "pow", "real", "reciprocal", "rem", "round", "rsqrt", "select", "select_n", "shift_left", "shift_right_arithmetic", "shift_right_logical", "sign", "sin",
    "sinh", "sqrt", "square", "sub", "tan", "tanh", "RoundingMethod",
]

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
        aligned, dim = map_elementwise(axis, args, dims)
        return self.bind(*aligned, **params), dim


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


def binary(prim: Primitive, x: Any, y: Any) -> Any:
    """Bind a two-operand primitive; a Python scalar takes the other operand's dtype."""
    return prim.bind(operand(x, y), operand(y, x))


def unary(prim: Primitive, x: Any) -> Any:
    """Bind a one-operand primitive."""
    return prim.bind(x)


# The table of facts ------------------------------------------------------------------------------
# Tangents are written with the public functions below; a Python scalar takes the dtype of the other
# operand. `y` or `z` is the result.


def _real_dtype(dtype: Any) -> Any:
    return dtypes.to_real_dtype(dtype)


def _complex_dtype(dtype: Any) -> Any:
    return dtypes.to_complex_dtype(dtype)


def _bool_dtype(dtype: Any) -> Any:
    return BOOL


neg_p = elementwise("neg", "stablehlo.negate", NUMERIC, lambda t, z, x: neg(t), linear=(0,))
add_p = elementwise("add", "stablehlo.add", NUMERIC,
                    lambda t, z, x, y: t, lambda t, z, x, y: t, linear=(0, 1))
sub_p = elementwise("sub", "stablehlo.subtract", NUMERIC,
                    lambda t, z, x, y: t, lambda t, z, x, y: neg(t), linear=(0, 1))
mul_p = elementwise("mul", "stablehlo.multiply", ANY,
                    lambda t, z, x, y: mul(t, y), lambda t, z, x, y: mul(x, t), linear=(0, 1))
div_p = elementwise("div", "stablehlo.divide", NUMERIC, lambda t, z, x, y: div(t, y),
                    lambda t, z, x, y: mul(neg(t), div(z, y)), linear=(0,))
rem_p = elementwise("rem", "stablehlo.remainder", REAL, lambda t, z, x, y: t,
                    lambda t, z, x, y: mul(neg(t), _trunc(div(x, y))))
max_p = elementwise("max", "stablehlo.maximum", ANY,
                    lambda t, z, x, y: mul(t, _share(x, y, z)),
                    lambda t, z, x, y: mul(t, _share(y, x, z)))
min_p = elementwise("min", "stablehlo.minimum", ANY,
                    lambda t, z, x, y: mul(t, _share(x, y, z)),
                    lambda t, z, x, y: mul(t, _share(y, x, z)))
square_p = elementwise("square", "chlo.square", NUMERIC, lambda t, y, x: mul(t, mul(2.0, x)))
sqrt_p = elementwise("sqrt", "stablehlo.sqrt", INEXACT, lambda t, y, x: div(t, mul(2.0, y)))
rsqrt_p = elementwise("rsqrt", "stablehlo.rsqrt", INEXACT,
                      lambda t, y, x: mul(t, mul(-0.5, div(y, x))))
cbrt_p = elementwise("cbrt", "stablehlo.cbrt", FLOATING,
                     lambda t, y, x: mul(t, div(y, mul(3.0, x))))
exp_p = elementwise("exp", "stablehlo.exponential", INEXACT, lambda t, y, x: mul(t, y))
expm1_p = elementwise("expm1", "stablehlo.exponential_minus_one", INEXACT,
                      lambda t, y, x: mul(t, add(y, 1.0)))
log_p = elementwise("log", "stablehlo.log", INEXACT, lambda t, y, x: div(t, x))
log1p_p = elementwise("log1p", "stablehlo.log_plus_one", INEXACT,
                      lambda t, y, x: div(t, add(x, 1.0)))
logistic_p = elementwise("logistic", "stablehlo.logistic", INEXACT,
                         lambda t, y, x: mul(t, mul(y, sub(1.0, y))))
sin_p = elementwise("sin", "stablehlo.sine", INEXACT, lambda t, y, x: mul(t, cos(x)))
cos_p = elementwise("cos", "stablehlo.cosine", INEXACT, lambda t, y, x: neg(mul(t, sin(x))))
tan_p = elementwise("tan", "stablehlo.tan", INEXACT, lambda t, y, x: mul(t, add(1.0, mul(y, y))))
asin_p = elementwise("asin", "chlo.asin", INEXACT,
                     lambda t, y, x: mul(t, rsqrt(sub(1.0, mul(x, x)))))
acos_p = elementwise("acos", "chlo.acos", INEXACT,
                     lambda t, y, x: mul(t, neg(rsqrt(sub(1.0, mul(x, x))))))
atan_p = elementwise("atan", "chlo.atan", INEXACT, lambda t, y, x: div(t, add(1.0, mul(x, x))))
atan2_p = elementwise("atan2", "stablehlo.atan2", INEXACT,
                      lambda t, z, x, y: mul(t, div(y, add(mul(x, x), mul(y, y)))),
                      lambda t, z, x, y: mul(t, div(neg(x), add(mul(x, x), mul(y, y)))))
sinh_p = elementwise("sinh", "chlo.sinh", INEXACT, lambda t, y, x: mul(t, cosh(x)))
cosh_p = elementwise("cosh", "chlo.cosh", INEXACT, lambda t, y, x: mul(t, sinh(x)))
tanh_p = elementwise("tanh", "stablehlo.tanh", INEXACT,
                     lambda t, y, x: mul(t, mul(add(1.0, y), sub(1.0, y))))
asinh_p = elementwise("asinh", "chlo.asinh", INEXACT,
                      lambda t, y, x: mul(t, rsqrt(add(mul(x, x), 1.0))))
acosh_p = elementwise("acosh", "chlo.acosh", INEXACT,
                      lambda t, y, x: mul(t, mul(rsqrt(sub(x, 1.0)), rsqrt(add(x, 1.0)))))
atanh_p = elementwise("atanh", "chlo.atanh", INEXACT,
                      lambda t, y, x: div(t, mul(sub(1.0, x), add(1.0, x))))
sign_p = elementwise("sign", "stablehlo.sign", NUMERIC)
floor_p = elementwise("floor", "stablehlo.floor", FLOATING)
ceil_p = elementwise("ceil", "stablehlo.ceil", FLOATING)
is_finite_p = elementwise("is_finite", "stablehlo.is_finite", FLOATING, result=_bool_dtype)
nextafter_p = elementwise("nextafter", "chlo.next_after", FLOATING)
real_p = elementwise("real", "stablehlo.real", COMPLEX,
                     lambda t, y, x: real(t), linear=(0,), result=_real_dtype)
imag_p = elementwise("imag", "stablehlo.imag", COMPLEX,
                     lambda t, y, x: imag(t), linear=(0,), result=_real_dtype)
complex_p = elementwise("complex", "stablehlo.complex", FLOATING,
                        lambda t, z, x, y: complex(t, _zeros(t)),
                        lambda t, z, x, y: complex(_zeros(t), t),
                        linear=(0, 1), result=_complex_dtype)
not_p = elementwise("not", "stablehlo.not", BITS)
and_p = elementwise("and", "stablehlo.and", BITS)
or_p = elementwise("or", "stablehlo.or", BITS)
xor_p = elementwise("xor", "stablehlo.xor", BITS)
shift_left_p = elementwise("shift_left", "stablehlo.shift_left", INTEGER)
shift_right_logical_p = elementwise("shift_right_logical", "stablehlo.shift_right_logical", INTEGER)
shift_right_arithmetic_p = elementwise("shift_right_arithmetic",
                                       "stablehlo.shift_right_arithmetic", INTEGER)
population_count_p = elementwise("population_count", "stablehlo.popcnt", INTEGER)
clz_p = elementwise("clz", "stablehlo.count_leading_zeros", INTEGER)
eq_p = comparison("eq", "EQ")
ne_p = comparison("ne", "NE")
ge_p = comparison("ge", "GE", "biuf")
gt_p = comparison("gt", "GT", "biuf")
le_p = comparison("le", "LE", "biuf")
lt_p = comparison("lt", "LT", "biuf")


class _Exp2(Elementwise):
    """2 ** x as exp(x log 2): StableHLO has no operation of its own."""

    def lower(self, b: Any, x: Any) -> Any:
        scale = b.full(b.avals_in[0], math.log(2.0))
        return b.op("stablehlo.exponential", [b.op("stablehlo.multiply", [x, scale])])


class _Log2(Elementwise):
    """log(x) / log 2: StableHLO has no operation of its own."""

    def lower(self, b: Any, x: Any) -> Any:
        scale = b.full(b.avals_in[0], math.log(2.0))
        return b.op("stablehlo.divide", [b.op("stablehlo.log", [x]), scale])


exp2_p = _Exp2("exp2", "", INEXACT, [lambda t, y, x: mul(math.log(2.0), mul(t, y))])
log2_p = _Log2("log2", "", INEXACT, [lambda t, y, x: div(t, mul(math.log(2.0), x))])


class Abs(Elementwise):
    """Magnitude; of complex numbers, a real one."""

    def infer(self, x: ShapedArray) -> ShapedArray:
        aval = super().infer(x)
        return aval.update(dtype=dtypes.to_real_dtype(x.dtype)) if dtypes.is_complex(x.dtype) \
            else aval

    def lower(self, b: Any, x: Any) -> Any:
        if dtypes.scalar_kind(b.avals_in[0].dtype) == "u":
            return x
        return b.op("stablehlo.abs", [x])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x,), (t,) = primals, tangents
        y = self.bind(x)
        if not dtypes.is_complex(typeof(x).dtype):
            return y, mul(t, sign(x))
        direction = conj(sign(x))       # sign of a complex number is x / |x|, 0 at 0
        return y, real(mul(t, direction))


class Conj(Elementwise):
    """Complex conjugate; of a real number, the complex number with that real part."""

    def infer(self, x: ShapedArray, *, input_dtype: Any) -> ShapedArray:
        aval = super().infer(x)
        return aval.update(dtype=dtypes.to_complex_dtype(x.dtype))

    def lower(self, b: Any, x: Any, *, input_dtype: Any) -> Any:
        aval = b.avals_in[0]
        if not dtypes.is_complex(aval.dtype):
            return b.op("stablehlo.complex", [x, b.full(aval, 0)])
        part = aval.update(dtype=dtypes.to_real_dtype(aval.dtype))
        imaginary = b.op("stablehlo.negate", [b.op("stablehlo.imag", [x], None, part)], None, part)
        return b.op("stablehlo.complex", [b.op("stablehlo.real", [x], None, part), imaginary])

    def transpose(self, ct: Any, x: Any, *, input_dtype: Any) -> list[Any]:
        out = conj(ct)
        return [out if dtypes.is_complex(x.aval.dtype) else real(out)]


class IntegerPow(Elementwise):
    """x ** y for a Python int y."""

    def infer(self, x: ShapedArray, *, y: int) -> ShapedArray:
        if y < 0 and dtypes.is_integer(x.dtype):
            raise TypeError(f"integer_pow: {x} to the power {y} given; integers have no negative "
                            "powers; convert the base to a floating dtype.")
        return super().infer(x)

    def lower(self, b: Any, x: Any, *, y: int) -> Any:
        """Repeated squaring."""
        aval = b.avals_in[0]
        result, power, n = None, x, (y if y >= 0 else -y)
        while n:
            if n & 1:
                result = power if result is None else b.op("stablehlo.multiply", [result, power])
            n >>= 1
            if n:
                power = b.op("stablehlo.multiply", [power, power])
        if result is None:
            return b.full(aval, 1)
        return b.op("stablehlo.divide", [b.full(aval, 1), result]) if y < 0 else result

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, y: int) -> Any:
        (x,), (t,) = primals, tangents
        out = self.bind(x, y=y)
        if y == 0:
            return out, Zero(typeof(out).to_tangent_aval())
        return out, mul(t, mul(float(y), integer_pow(x, y - 1)))


class Pow(Primitive):
    """x ** y; y has x's dtype, or is an integer."""

    def infer(self, x: ShapedArray, y: ShapedArray) -> ShapedArray:
        if dtypes.is_integer(y.dtype) and dtypes.is_inexact(x.dtype):
            shape = check_operands("pow", [x, y.update(dtype=x.dtype)], INEXACT)
        else:
            shape = check_operands("pow", [x, y], INEXACT)
        return make_aval(shape, x.dtype, x.weak_type and y.weak_type)

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        x, y = b.expand([x, y])
        out = b.avals_out[0]
        if b.avals_in[1].dtype != out.dtype:
            y = b.convert(y, out)
        return b.op("stablehlo.power", [x, y])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        (x, y), (tx, ty) = primals, tangents
        z, total = self.bind(x, y), None
        if type(tx) is not Zero:
            # d/dx is y x^(y-1), and 0 where y is 0, whatever x is.
            dtype = typeof(x).dtype
            y_ = y if typeof(y).dtype == dtype else _convert(y, dtype)
            zero = eq(y_, 0.0)
            slope = mul(y_, self.bind(x, where(zero, 1.0, sub(y_, 1.0))))
            total = mul(tx, where(zero, 0.0, slope))
        if type(ty) is not Zero:
            # d/dy is log(x) x^y; its limit at x = 0 is 0 for y > 0.
            safe = where(eq(x, 0.0), 1.0, x)
            log_x = where(eq(x, 0.0), 0.0, log(safe))
            term = mul(ty, mul(log_x, z))
            total = term if total is None else add(total, term)
        return z, total

    transpose = None

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        aligned, dim = map_elementwise(axis, args, dims)
        return self.bind(*aligned), dim


class RoundingMethod(enum.IntEnum):
    """How `round` treats halves."""

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


class Round(Elementwise):
    """Round to an integer value."""

    def lower(self, b: Any, x: Any, *, rounding_method: RoundingMethod) -> Any:
        even = rounding_method is RoundingMethod.TO_NEAREST_EVEN
        return b.op(f"stablehlo.round_nearest_{'even' if even else 'afz'}", [x])


class Clamp(Primitive):
    """Limit x to [low, high]; bounds are rank 0 or of x's shape."""

    def infer(self, low: ShapedArray, x: ShapedArray, high: ShapedArray) -> ShapedArray:
        for name, bound in (("min", low), ("max", high)):
            if bound.shape not in ((), x.shape):
                raise TypeError(f"clamp: {name} is {bound}, the operand {x}; a scalar or the "
                                "operand's shape is required.")
            if bound.dtype != x.dtype:
                raise TypeError(f"clamp: {name} is {bound}, the operand {x}; equal dtypes are "
                                "required; convert it.")
        return x.update(weak_type=low.weak_type and x.weak_type and high.weak_type)

    def lower(self, b: Any, low: Any, x: Any, high: Any) -> Any:
        return b.op("stablehlo.clamp", [low, x, high])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        low, x, high = primals
        out, shape, total = self.bind(*primals), typeof(x).shape, None
        low, high = spread(low, shape), spread(high, shape)
        inside = bitwise_and(gt(x, low), lt(x, high))
        masks = (ge(low, x), inside, ge(x, high))
        masks = (bitwise_and(masks[0], lt(low, high)), masks[1], masks[2])
        for t, mask in zip(tangents, masks):
            if type(t) is not Zero:
                term = where(mask, spread(t, shape), 0.0)
                total = term if total is None else add(total, term)
        return out, total

    transpose = None

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        (low, x, high), (dl, dx, dh) = args, dims
        if dl is None and dh is None and not (typeof(low).shape or typeof(high).shape):
            return self.bind(low, x, high), dx
        shape = typeof(x).shape if dx is None else tuple(
            n for i, n in enumerate(typeof(x).shape) if i != dx)
        full = []
        for v, d in zip((low, x, high), (dl, dx, dh)):
            v = broadcast_axis(v, axis.size, 0) if d is None else move_axis(v, d, 0)
            missing = len(shape) + 1 - typeof(v).ndim
            if missing:
                v = broadcast_in_dim(v, (axis.size, *shape), (0,))
            full.append(v)
        return self.bind(*full), 0


abs_p = Abs("abs", "stablehlo.abs", NUMERIC, None)
conj_p = Conj("conj", "", INEXACT, (lambda t, y, x, input_dtype: conj(t),), linear=(0,))
integer_pow_p = IntegerPow("integer_pow", "", NUMERIC, None)
pow_p = Pow("pow")
round_p = Round("round", "", FLOATING, None)
clamp_p = Clamp("clamp")


# What the rules need ------------------------------------------------------------------------------

def _zeros(like: Any) -> Any:
    return zeros_of(typeof(like))


def _convert(x: Any, dtype: Any) -> Any:
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False, sharding=None)


def _trunc(x: Any) -> Any:
    """Toward zero."""
    return mul(sign(x), floor(abs(x)))


def _share(x: Any, y: Any, z: Any) -> Any:
    """The part of an extreme's derivative that belongs to x: 1, 1/2 in a tie, else 0."""
    mine = where(eq(x, z), 1.0, spread(literal(0.0, typeof(z).dtype), typeof(z).shape))
    tie = where(eq(x, y), 0.5, spread(literal(1.0, typeof(z).dtype), typeof(z).shape))
    return mul(mine, tie)


# Public functions ---------------------------------------------------------------------------------
# Operands of two-operand functions have one shape and dtype, or one is a Python scalar.


def neg(x: Any) -> Any:
    """-x."""
    return neg_p.bind(x)


def sign(x: Any) -> Any:
    """Sign: -1, 0 or 1; of a complex number x / |x|; NaN of NaN."""
    return sign_p.bind(x)


def floor(x: Any) -> Any:
    """Largest integer value not above x."""
    return floor_p.bind(x)


def ceil(x: Any) -> Any:
    """Smallest integer value not below x."""
    return ceil_p.bind(x)


def is_finite(x: Any) -> Any:
    """Whether x is neither infinite nor NaN: bool."""
    return is_finite_p.bind(x)


def square(x: Any) -> Any:
    """x * x."""
    return square_p.bind(x)


def sqrt(x: Any, accuracy: Any = None) -> Any:
    """Square root; NaN of negative numbers."""
    return sqrt_p.bind(x)


def rsqrt(x: Any, accuracy: Any = None) -> Any:
    """1 / sqrt(x)."""
    return rsqrt_p.bind(x)


def cbrt(x: Any, accuracy: Any = None) -> Any:
    """Real cube root."""
    return cbrt_p.bind(x)


def exp(x: Any, accuracy: Any = None) -> Any:
    """e to the power x."""
    return exp_p.bind(x)


def exp2(x: Any, accuracy: Any = None) -> Any:
    """2 to the power x."""
    return exp2_p.bind(x)


def expm1(x: Any, accuracy: Any = None) -> Any:
    """exp(x) - 1, exact near 0."""
    return expm1_p.bind(x)


def log(x: Any, accuracy: Any = None) -> Any:
    """Natural logarithm; -inf at 0, NaN below."""
    return log_p.bind(x)


def log1p(x: Any, accuracy: Any = None) -> Any:
    """log(1 + x), exact near 0."""
    return log1p_p.bind(x)


def log2(x: Any, accuracy: Any = None) -> Any:
    """Logarithm to base 2."""
    return log2_p.bind(x)


def logistic(x: Any, accuracy: Any = None) -> Any:
    """1 / (1 + exp(-x))."""
    return logistic_p.bind(x)


def sin(x: Any, accuracy: Any = None) -> Any:
    """Sine of x in radians."""
    return sin_p.bind(x)


def cos(x: Any, accuracy: Any = None) -> Any:
    """Cosine of x in radians."""
    return cos_p.bind(x)


def tan(x: Any, accuracy: Any = None) -> Any:
    """Tangent of x in radians."""
    return tan_p.bind(x)


def asin(x: Any, accuracy: Any = None) -> Any:
    """Inverse sine, in radians; NaN outside [-1, 1]."""
    return asin_p.bind(x)


def acos(x: Any, accuracy: Any = None) -> Any:
    """Inverse cosine, in radians; NaN outside [-1, 1]."""
    return acos_p.bind(x)


def atan(x: Any, accuracy: Any = None) -> Any:
    """Inverse tangent, in radians."""
    return atan_p.bind(x)


def sinh(x: Any) -> Any:
    """Hyperbolic sine."""
    return sinh_p.bind(x)


def cosh(x: Any) -> Any:
    """Hyperbolic cosine."""
    return cosh_p.bind(x)


def tanh(x: Any, accuracy: Any = None) -> Any:
    """Hyperbolic tangent."""
    return tanh_p.bind(x)


def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine."""
    return asinh_p.bind(x)


def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine; NaN below 1."""
    return acosh_p.bind(x)


def atanh(x: Any) -> Any:
    """Inverse hyperbolic tangent; NaN outside [-1, 1]."""
    return atanh_p.bind(x)


def real(x: Any) -> Any:
    """Real part of a complex number."""
    return real_p.bind(x)


def imag(x: Any) -> Any:
    """Imaginary part of a complex number."""
    return imag_p.bind(x)


def bitwise_not(x: Any) -> Any:
    """Bitwise complement; of bool, logical not."""
    return not_p.bind(x)


def population_count(x: Any) -> Any:
    """Number of one bits."""
    return population_count_p.bind(x)


def clz(x: Any) -> Any:
    """Number of leading zero bits."""
    return clz_p.bind(x)


def abs(x: Any) -> Any:
    """Magnitude; of a complex number, a real one."""
    return abs_p.bind(x)


def add(x: Any, y: Any) -> Any:
    """x + y; integers wrap around."""
    return binary(add_p, x, y)


def sub(x: Any, y: Any) -> Any:
    """x - y; integers wrap around."""
    return binary(sub_p, x, y)


def mul(x: Any, y: Any) -> Any:
    """x * y; integers wrap around."""
    return binary(mul_p, x, y)


def div(x: Any, y: Any) -> Any:
    """x / y; of integers the quotient rounded toward zero."""
    return binary(div_p, x, y)


def rem(x: Any, y: Any) -> Any:
    """Remainder of x / y with the sign of x."""
    return binary(rem_p, x, y)


def max(x: Any, y: Any) -> Any:
    """The larger of x and y; NaN if either is."""
    return binary(max_p, x, y)


def min(x: Any, y: Any) -> Any:
    """The smaller of x and y; NaN if either is."""
    return binary(min_p, x, y)


def atan2(x: Any, y: Any) -> Any:
    """Angle of the point (y, x) in (-pi, pi]."""
    return binary(atan2_p, x, y)


def nextafter(x: Any, y: Any) -> Any:
    """The next representable number after x in the direction of y."""
    return binary(nextafter_p, x, y)


def bitwise_and(x: Any, y: Any) -> Any:
    """Bitwise and; of bools, logical and."""
    return binary(and_p, x, y)


def bitwise_or(x: Any, y: Any) -> Any:
    """Bitwise or; of bools, logical or."""
    return binary(or_p, x, y)


def bitwise_xor(x: Any, y: Any) -> Any:
    """Bitwise exclusive or."""
    return binary(xor_p, x, y)


def shift_left(x: Any, y: Any) -> Any:
    """x * 2**y by shifting bits; 0 for shifts past the width."""
    return binary(shift_left_p, x, y)


def shift_right_logical(x: Any, y: Any) -> Any:
    """Bits shifted right, zeros shifted in."""
    return binary(shift_right_logical_p, x, y)


def shift_right_arithmetic(x: Any, y: Any) -> Any:
    """Bits shifted right, the sign shifted in."""
    return binary(shift_right_arithmetic_p, x, y)


def eq(x: Any, y: Any) -> Any:
    """x == y."""
    return binary(eq_p, x, y)


def ne(x: Any, y: Any) -> Any:
    """x != y."""
    return binary(ne_p, x, y)


def ge(x: Any, y: Any) -> Any:
    """x >= y."""
    return binary(ge_p, x, y)


def gt(x: Any, y: Any) -> Any:
    """x > y."""
    return binary(gt_p, x, y)


def le(x: Any, y: Any) -> Any:
    """x <= y."""
    return binary(le_p, x, y)


def lt(x: Any, y: Any) -> Any:
    """x < y."""
    return binary(lt_p, x, y)


def complex(x: Any, y: Any) -> Any:
    """The complex number x + iy."""
    return binary(complex_p, x, y)


def conj(x: Any) -> Any:
    """Complex conjugate; a real operand becomes complex."""
    return conj_p.bind(x, input_dtype=typeof(x).dtype)


def reciprocal(x: Any) -> Any:
    """1 / x."""
    return integer_pow(x, -1)


def integer_pow(x: Any, y: int) -> Any:
    """x to the power of a Python int."""
    return integer_pow_p.bind(x, y=y)


def pow(x: Any, y: Any) -> Any:
    """x to the power y, elementwise; a Python int y gives `integer_pow`.

    The derivative with respect to x is 0 where y is 0; that with respect to y is 0 where x is 0.
    """
    return integer_pow(x, y) if type(y) is int else binary(pow_p, x, y)


def round(x: Any, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Any:
    """The nearest integer value; halves away from zero, or to even."""
    return round_p.bind(x, rounding_method=rounding_method)


def clamp(min: Any, x: Any, max: Any) -> Any:
    """x limited to [min, max]; the bounds are scalars or of x's shape."""
    return clamp_p.bind(operand(min, x), x, operand(max, x))
