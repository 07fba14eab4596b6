"""Roots, powers, exponentials, logarithms, trigonometric and hyperbolic functions, elementwise.

`accuracy` of those that have it is None, an `AccuracyMode` or a `Tolerance`; platforms with one
implementation ignore it.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Hashable
from typing import Unpack

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DType, IrValue
from ..base.util import lazy_module
from ..core.facts import GivenFacts
from ..core.ir import Literal
from ..core.primitive import Builder
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from . import arithmetic
from .accuracy import AccuracyLike, AccuracyMode
from .arithmetic import div, integer_pow, mul, neg, over_real, sign, square, sub
from .bits import bitwise_and, bitwise_or, shift_left, shift_right_arithmetic
from .comparison import eq, ge, gt, lt, select
from .complex_cases import (
    Mend, MendedElementwise, mend_acos, mend_acosh, mend_asinh, mend_atanh, mend_cos, mend_cosh,
    mend_exp, mend_expm1, mend_log, mend_sinh, mend_sqrt, mend_tanh, mended_pow, turned,
)
from .convert import bitcast_convert_type_p, convert_element_type_p, in_dtype
from .families import (
    FLOATING, INEXACT, Elementwise, Partial, add, binary, check_dtypes, elementwise, full_shape,
    match_shapes, operand, unary,
)
from .shape import zeros_of

_LN2 = math.log(2.0)
_POSITIVE = 0.0, math.inf       # domains: real functions are NaN beyond
_FINITE = -sys.float_info.max, sys.float_info.max
_KERNELS, _LEAST = lazy_module("olympus._src.lax.kernels.elementwise"), 1024

# Roots and powers --------------------------------------------------------------------------------

sqrt_p = MendedElementwise("sqrt", "stablehlo.sqrt", mend_sqrt,
                           lambda t, y, x, **_: mul(t, div(0.5, y)), domain=_POSITIVE,
                           fusion="costly")
rsqrt_p = elementwise("rsqrt", "stablehlo.rsqrt", INEXACT,
                      lambda t, y, x, **_: mul(t, mul(-0.5, div(y, x))),
                      algebra="root", domain=_POSITIVE, fusion="costly", pace=1.0)
# By dtype the digits of a significand behind the first one, and integers of as many bits.
_PARTS = {dtypes.as_dtype(name): (bits, dtypes.as_dtype(of)) for name, bits, of in (
    ("bfloat16", 7, "int16"), ("float32", 23, "int32"), ("float64", 52, "int64"))}


class Cbrt(Elementwise):
    """The real cube root.

    At subnormal numbers XLA:CPU (0.10.2, 0.12.0.1) computes others, some of the other sign. They
    are read as whole numbers.
    """

    def lower(self, b: Builder, x: IrValue, accuracy: AccuracyMode | None = None) -> IrValue:
        aval = b.avals_out[0]
        if b.platform != "cpu" or aval.dtype not in _PARTS or b.module.exported:
            return super().lower(b, x, accuracy=accuracy)
        x, scale = b.by_rule(self.enlarged, [x], [aval])
        out = b.op("stablehlo.cbrt", [x], None, aval)
        return b.op("stablehlo.multiply", [out, scale], None, aval)

    def enlarged(self, x: Array) -> list[Array]:
        """A number whose root is no subnormal number's, and the factor to the root of x."""
        dtype = typeof(x).dtype
        digits, of = _PARTS[dtype]
        unit = digits - math.frexp(float(dtypes.finfo(dtype).smallest_normal))[1] + 1
        power = -(-unit // 3)
        bits = bitcast_convert_type_p.bind(x, new_dtype=of)
        size = bitwise_and(bits, int(np.iinfo(of).max))
        small = lt(size, 1 << digits)
        large = mul(in_dtype(size, dtype), 2.0 ** (3 * power - unit))
        negative = lt(bits, 0)
        return [select(small, select(negative, neg(large), large), x),
                select(small, operand(2.0 ** -power, x), operand(1.0, x))]


cbrt_p = Cbrt("cbrt", "stablehlo.cbrt", FLOATING, [
    lambda t, y, x, **_: mul(t, mul(1 / 3, integer_pow(y, -2)))],
    fusion="costly", pace=20.0, kernels=_KERNELS, kernels_from=_LEAST)


class Pow(Elementwise):
    """x to the power y, which has the dtype of x or is an integer."""

    hands_on_nan = False    # x to the power 0 is 1
    algebra = "power"
    fusion = "costly"

    def infer(self, *avals: ShapedArray, **params: Hashable) -> ShapedArray:
        x, y = avals
        check_dtypes(self.name, (x,), INEXACT)
        if not dtypes.is_integer(y.dtype):
            check_dtypes(self.name, avals, INEXACT)
        return make_aval(full_shape(self.name, avals), x.dtype, x.weak_type and y.weak_type)

    def lower(self, b: Builder, *xs: IrValue) -> IrValue:
        x, y = b.expand(xs)
        if b.avals_in[1].dtype != b.avals_in[0].dtype:
            y = b.convert(y, b.avals_out[0])
        out, aval = b.op("stablehlo.power", [x, y]), b.avals_out[0]
        return b.by_rule(mended_pow, [x, y, out], [aval] * 3)[0] if dtypes.is_complex(
            aval.dtype) else out


def _pow_base(t: Array, z: Array, x: Array, y: ArrayLike) -> Array | None:
    """t · y xʸ⁻¹, which is 0 where y is 0, also at x = 0."""
    base = typeof(x)
    exponent = y if typeof(y).dtype == base.dtype else convert_element_type_p.bind(
        y, new_dtype=base.dtype, weak_type=base.weak_type, sharding=None)
    if type(y) is Literal:      # so that the power is known, too
        number = np.asarray(y.raw, base.dtype)
        if number == 0:
            return None
        lower = operand(number.dtype.type(number - 1), x)
    elif dtypes.is_integer(typeof(y).dtype):
        lower = select(eq(y, 0), y, sub(y, 1))
    else:       # the power stays xʸ⁻¹, whose derivative in y is asked for, too
        x = select(bitwise_and(eq(x, 0), eq(y, 0)), operand(1, x), x)
        lower = sub(y, 1)
    return mul(t, mul(exponent, pow(x, lower)))


def _pow_exponent(t: Array, z: Array, x: Array, y: Array) -> Array:
    """t · xʸ log x, which is 0 at x = 0."""
    return mul(t, mul(log(select(eq(x, 0), operand(1, x), x)), z))


pow_p = Pow("pow", "stablehlo.power", INEXACT, [_pow_base, _pow_exponent], pace=4.0,
            kernels=_KERNELS, kernels_from=_LEAST)


def sqrt(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """The square root; NaN of negative floats.

    Args: x: floats or complex numbers, any shape; complex roots have a real part >= 0.
    Returns: An array of the shape and dtype of x. The derivative at 0 is infinite.

    >>> print(lax.sqrt(onp.array([4., -1.])), lax.sqrt(-4 + 0j))
    [ 2. nan] 2j
    """
    return unary(sqrt_p, x, accuracy)


def rsqrt(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """1 / sqrt(x): inf at 0, NaN of negative floats.

    Returns: An array of the shape and dtype of x. The derivative is -rsqrt(x) / 2x.

    >>> print(lax.rsqrt(onp.array([4., 0., -1.])))
    [0.5 inf nan]
    """
    return unary(rsqrt_p, x, accuracy)


def cbrt(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """The real cube root of each element, negative where x is.

    Args: x: floats, any shape; not complex.
    Returns: An array of the shape and dtype of x. The derivative at 0 is infinite.

    >>> print(lax.cbrt(onp.array([27., -8.])))
    [ 3. -2.]
    """
    return unary(cbrt_p, x, accuracy)


def pow(x: ArrayLike, y: ArrayLike) -> Array:
    """xʸ; x is floating or complex, y of the same dtype or an integer. 0⁰ = 1.

    NaN for negative floats to non-integral powers.

    Args: y: the exponent, of the same shape or one of them of rank 0. The derivative in a floating
        y at x = 0 is 0.
    Returns: An array of that shape, of the dtype of x.

    >>> olympus.grad(olympus.lax.pow)(0., 2)
    Array(0., dtype=float32, weak_type=True)
    """
    x = operand(x, y)
    y = y if type(y) is int else operand(y, x)
    if typeof(x).shape != typeof(y).shape:
        x, y = match_shapes((x, y))
    return pow_p.bind(x, y)


# Exponentials and logarithms ---------------------------------------------------------------------

class Exp2(Elementwise):
    """2 to the power x, exact for integers; a wanted accuracy is as for `exponential`."""

    algebra = "power"
    fusion = "costly"
    def lower(self, b: Builder, x: IrValue, accuracy: AccuracyMode | None = None) -> IrValue:
        aval = b.avals_out[0]
        if accuracy is None and not dtypes.is_complex(aval.dtype):
            return b.op("stablehlo.power", [b.full(aval, 2), x])
        return b.inline(lambda x: exp(over_real(x, 1 / _LN2), accuracy=accuracy), x)


class LogTo(Elementwise):
    """The logarithm to a base, exact at its powers.

    Args:
      base: the base.
      partial: the derivative.
      words: per dtype, log(2) to the base as a number whose products with exponents are exact, and
        the rest.
    """

    def __init__(self, base: int, partial: Partial, words: dict[str, tuple[float, float]],
                 **facts: Unpack[GivenFacts]) -> None:
        self.log = math.log(base)
        self.words = {dtypes.as_dtype(name): parts for name, parts in words.items()}
        super().__init__(f"log{base}", f"log{base}", INEXACT, [partial], **facts)

    algebra = "logarithm"
    def lower(self, b: Builder, x: IrValue, accuracy: AccuracyMode | None = None) -> IrValue:
        aval = b.avals_out[0]
        if accuracy is None and not dtypes.is_complex(aval.dtype) and not b.module.exported:
            return b.inline(self.by_exponent, x)
        # Engines that read exports do not all take floats apart.
        return b.inline(lambda x: over_real(log(x, accuracy=accuracy), self.log), x)

    def by_exponent(self, x: Array) -> Array:
        """log x = e log 2 + log m with x = m 2**e and √½ <= m < √2, after fdlibm's e_log10.c.

        Powers of the base have no error in `e log 2`, and so little in the rest that the sum is
        rounded to the integer. Zeros, subnormals, negative numbers, infinities and NaN are m.
        """
        aval = typeof(x)
        dtype = dtypes.wide_dtype(aval.dtype)
        limits, integer = dtypes.finfo(dtype), dtypes.as_dtype(f"int{dtype.itemsize * 8}")
        mantissa = limits.nmant

        def bits(value: float) -> int:
            return int(np.array(value, dtype).view(integer))

        i = bitcast_convert_type_p.bind(in_dtype(x, dtype), new_dtype=integer)
        e = shift_right_arithmetic(sub(i, bits(math.sqrt(0.5))), mantissa)
        normal = bitwise_and(ge(i, bits(float(limits.tiny))), lt(i, bits(math.inf)))
        e = select(normal, e, zeros_of(typeof(e)))
        m = bitcast_convert_type_p.bind(sub(i, shift_left(e, mantissa)), new_dtype=dtype)
        high, low = self.words[dtype]
        power, rest = in_dtype(e, dtype), mul(log(m), 1 / self.log)
        return in_dtype(add(mul(power, high), add(mul(power, low), rest)), aval.dtype)


class Log1p(MendedElementwise):
    """log(1 + x), and functions of it; XLA's on CPU errs by 126 ULP in float64."""

    algebra = "called"
    def __init__(self, name: str, op: str, mend: Mend, double: Callable[[Array], Array],
                 *partials: Partial, **facts: Unpack[GivenFacts]) -> None:
        super().__init__(name, op, mend, *partials, **facts)
        self.double = double

    def lower(self, b: Builder, x: IrValue, accuracy: AccuracyMode | None = None) -> IrValue:
        if b.platform == "cpu" and accuracy is None and b.avals_out[0].dtype == np.float64:
            return b.inline(self.double, x)
        return super().lower(b, x, accuracy=accuracy)


def _log1p(x: Array) -> Array:
    """Kahan's log(u) x / (u - 1) with u = 1 + x rounded: both quotients err alike.

    Goldberg (1991), What every computer scientist should know about floating-point arithmetic, ACM
    Computing Surveys 23, 5, theorem 4. XLA would take (1 + x) - 1 for x but for the maximum.
    """
    u = add(x, 1.0)
    d = sub(arithmetic.max(u, 0.0), 1.0)
    whole = bitwise_or(eq(d, 0.0), eq(x, math.inf))     # where x is the result
    return select(whole, x, mul(log(u), div(x, d)))


def _atanh(x: Array) -> Array:
    """sign(x) log1p(2|x| / (1 - |x|)) / 2."""
    y = arithmetic.abs(x)
    return mul(mul(0.5, sign(x)), _log1p(div(mul(2.0, y), sub(1.0, y))))


exp_p = MendedElementwise("exp", "stablehlo.exponential", mend_exp, lambda t, y, x, **_: mul(t, y),
                          algebra="exponential", fusion="costly", pace=1.0)
exp2_p = Exp2("exp2", "exp2", INEXACT, [lambda t, y, x, **_: mul(t, mul(_LN2, y))],
              pace=1.0, kernels=_KERNELS, kernels_from=_LEAST)
expm1_p = MendedElementwise("expm1", "stablehlo.exponential_minus_one", mend_expm1,
                            lambda t, y, x, **_: mul(t, add(y, 1.0)), fusion="costly", pace=1.0)
log_p = MendedElementwise("log", "stablehlo.log", mend_log, lambda t, y, x, **_: div(t, x),
                          algebra="logarithm", domain=_POSITIVE, fusion="costly", pace=1.0)
log2_p = LogTo(2, lambda t, y, x, **_: div(t, mul(_LN2, x)),
               {"float32": (1.0, 0.0), "float64": (1.0, 0.0)}, domain=_POSITIVE, fusion="costly",
               pace=4.0, kernels=_KERNELS, kernels_from=_LEAST)
log10_p = LogTo(10, lambda t, y, x, **_: over_real(div(t, x), math.log(10)),
                {"float32": (0.301025390625, 4.605038981195214e-06),
                 "float64": (0.3010299956640665, -8.532344317057107e-14)},
                domain=_POSITIVE, pace=4.0, kernels=_KERNELS, kernels_from=_LEAST)
log1p_p = Log1p("log1p", "stablehlo.log_plus_one", mend_log, _log1p,
                lambda t, y, x, **_: div(t, add(x, 1.0)), domain=(-1.0, math.inf), fusion="costly",
                pace=1.0, kernels=_KERNELS, kernels_from=_LEAST)
logistic_p = elementwise("logistic", "stablehlo.logistic", INEXACT,
                         lambda t, y, x, **_: mul(t, mul(y, sub(1.0, y))),
                         algebra="logistic", fusion="costly", pace=1.0)


def exp(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """eˣ of each element.

    Returns:
      An array of the shape and dtype of x: inf on overflow, 0 of -inf. It is its own derivative.

    >>> print(lax.exp(onp.array([0., 1., 100.])))
    [1.        2.7182817       inf]
    """
    return unary(exp_p, x, accuracy)


def exp2(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """2ˣ of each element; exact for whole x.

    Args:
      accuracy: an `AccuracyMode` or a `Tolerance`, then of the exponential that it is computed by.
    Returns: An array of the shape and dtype of x. The derivative is log(2) 2ˣ.

    >>> print(lax.exp2(onp.array([3., 0.5, -1.])))
    [8.        1.4142135 0.5      ]
    """
    return unary(exp2_p, x, accuracy)


def expm1(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """eˣ - 1, which keeps its digits near 0, where eˣ rounds to 1.

    Returns: An array of the shape and dtype of x; `log1p` is the inverse.

    >>> print(lax.expm1(1e-10), lax.exp(1e-10) - 1)
    1e-10 0.0
    """
    return unary(expm1_p, x, accuracy)


def log(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """The natural logarithm; -inf of 0, NaN of negative floats.

    Args: x: floats or complex numbers, any shape; of complex ones the principal value is taken,
        whose imaginary part is in [-π, π].
    Returns: An array of the shape and dtype of x. The derivative is 1 / x.

    >>> print(lax.log(onp.array([1., 0., -1.])), lax.log(-1 + 0j))
    [  0. -inf  nan] 3.1415927j
    """
    return unary(log_p, x, accuracy)


def log2(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """The logarithm to base 2; -inf of 0, NaN of negative floats.

    Args:
      accuracy: an `AccuracyMode` or a `Tolerance`, then of the logarithm that it is computed by.
    Returns: An array of the shape and dtype of x. The derivative is 1 / (x log 2).

    >>> print(lax.log2(onp.array([8., 0.5, 0.])))
    [  3.  -1. -inf]
    """
    return unary(log2_p, x, accuracy)


def log10(x: ArrayLike) -> Array:
    """The logarithm to base 10; -inf of 0, NaN of negative floats."""
    return unary(log10_p, x)


def log1p(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """log(1 + x), which keeps its digits near 0, where 1 + x rounds to 1.

    Args: x: floats or complex numbers, any shape; -inf at -1, NaN of floats below.
    Returns: An array of the shape and dtype of x; `expm1` is the inverse.

    >>> print(lax.log1p(1e-10), lax.log(1 + 1e-10))
    1e-10 0.0
    """
    return unary(log1p_p, x, accuracy)


def logistic(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """The sigmoid 1 / (1 + e⁻ˣ), without overflow at either end.

    Returns: An array of the shape and dtype of x, in [0, 1] of floats. The derivative is y (1 - y).

    >>> print(lax.logistic(onp.array([0., -200., 200.])))
    [0.5 0.  1. ]
    """
    return unary(logistic_p, x, accuracy)


# Trigonometric and hyperbolic functions ----------------------------------------------------------

def _rsqrt_product(x: Array, a: float, b: float) -> Array:
    """1 / (sqrt(a + x) sqrt(b + x)) on the principal branches."""
    return mul(rsqrt(add(x, a)), rsqrt(add(x, b)))


def _asin_slope(x: Array) -> Array:
    """1 / (sqrt(1 - x) sqrt(1 + x)): no cancellation near 1, right on the branch cuts."""
    if dtypes.is_complex(typeof(x).dtype):      # 1 - x has the imaginary part 0 on both sides
        return mul(rsqrt(neg(sub(x, 1.0))), rsqrt(sub(x, -1.0)))
    return mul(rsqrt(sub(1.0, x)), rsqrt(add(1.0, x)))


sin_p = MendedElementwise("sin", "stablehlo.sine", turned(mend_sinh),
                          lambda t, y, x, **_: mul(t, cos(x)), domain=_FINITE, pace=4.0,
                          kernels=_KERNELS, kernels_from=_LEAST)
cos_p = MendedElementwise("cos", "stablehlo.cosine", mend_cos,
                          lambda t, y, x, **_: neg(mul(t, sin(x))), domain=_FINITE, pace=4.0,
                          kernels=_KERNELS, kernels_from=_LEAST)
tan_p = MendedElementwise("tan", "stablehlo.tan", turned(mend_tanh),
                          lambda t, y, x, **_: mul(t, add(1.0, square(y))), domain=_FINITE,
                          emitters_agree=False, pace=4.0, kernels=_KERNELS, kernels_from=_LEAST)
asin_p = MendedElementwise("asin", "chlo.asin", turned(mend_asinh),
                           lambda t, y, x: mul(t, _asin_slope(x)), domain=(-1.0, 1.0), pace=20.0,
                           kernels=_KERNELS, kernels_from=_LEAST)
acos_p = MendedElementwise("acos", "chlo.acos", mend_acos,
                           lambda t, y, x: neg(mul(t, _asin_slope(x))), domain=(-1.0, 1.0),
                           fusion="costly", pace=20.0, kernels=_KERNELS, kernels_from=_LEAST)
atan_p = MendedElementwise("atan", "chlo.atan", turned(mend_atanh),
                           lambda t, y, x: div(t, add(1.0, square(x))), fusion="costly",
                           pace=4.0, kernels=_KERNELS, kernels_from=_LEAST)


class Atan2(Elementwise):
    """The angle of the point (y, x).

    XLA:CPU (0.10.2, 0.12.0.1) takes subnormal numbers for zeros, whose angle is another one, or
    NaN. So points with one are enlarged, by their bits. The origin becomes (y, ±1): MLIR folds
    the angle of zeros that it computes of equal integers to NaN (openxla/xla#44705).
    """

    scalars = True

    def lower(self, b: Builder, *xs: IrValue) -> IrValue:
        xs, aval = tuple(b.expand(xs)), b.avals_out[0]
        if b.platform != "cpu" or b.module.exported or dtypes.is_complex(aval.dtype):
            return b.op("stablehlo.atan2", xs)
        wide = aval if aval.dtype in _PARTS else aval.update(dtype=dtypes.wide_dtype(aval.dtype))
        points = b.by_rule(self.enlarged, [b.convert(x, wide) for x in xs], [wide] * 2)
        return b.convert(b.op("stablehlo.atan2", points, None, wide), aval)

    def enlarged(self, y: Array, x: Array) -> list[Array]:
        """The operands, times a power of 2 by which no number is subnormal, if one is.

        They are never two zeros. Beside a large number the power is the least one; a number that it
        would make infinite stays as it is, as the quotient is 0 anyway.
        """
        dtype = typeof(x).dtype
        digits, of = _PARTS[dtype]
        most = math.frexp(float(dtypes.finfo(dtype).max))[1] - 1
        power, least_power, normal = most - 1 + digits, digits + 1, 1 << digits
        bits = [bitcast_convert_type_p.bind(v, new_dtype=of) for v in (y, x)]
        sizes = [bitwise_and(v, int(np.iinfo(of).max)) for v in bits]
        subnormal = lt(arithmetic.min(*sizes), normal)
        larger = arithmetic.max(*sizes)
        small = lt(larger, 2 * most - power << digits)
        added = add(mul(in_dtype(small, of), power - least_power << digits), least_power << digits)
        results = []
        for v, i, size in zip((y, x), bits, sizes, strict=True):
            # An integer as a number is the subnormal number of its bits times 2**power.
            digits_of = arithmetic.sub(bitcast_convert_type_p.bind(
                in_dtype(size, dtype), new_dtype=of), arithmetic.sub(power << digits, added))
            large = select(lt(size, normal), arithmetic.max(digits_of, 0),
                           select(lt(size, arithmetic.sub(2 * most << digits, added)),
                                  add(size, added), size))
            sign_of = bitwise_and(i, int(np.iinfo(of).min))
            if v is x:
                large = select(eq(larger, 0), operand(most << digits, large), large)
            results.append(select(subnormal, bitcast_convert_type_p.bind(
                bitwise_or(large, sign_of), new_dtype=dtype), v))
        return results


def _powers_that_square(dtype: DType) -> tuple[int, int]:
    """low, high: x² + y² is in range, to the last digit, if the larger is in 2**low … 2**high."""
    limits = dtypes.finfo(dtype)
    half = math.frexp(float(limits.max))[1] // 2
    return limits.nmant // 2 + 2 - half, half - 2


def _angle_slope(t: Array, opposite: Array, x: Array, y: Array) -> Array:
    """t · opposite / (x² + y²); operands whose squares are out of range are scaled before."""
    if dtypes.is_complex(typeof(x).dtype):
        return mul(t, div(opposite, add(square(x), square(y))))
    size = arithmetic.max(arithmetic.abs(x), arithmetic.abs(y))
    low, high = _powers_that_square(typeof(x).dtype)
    scale = select(lt(size, 2.0 ** low), operand(2.0 ** (high - low), size), operand(1.0, size))
    scale = select(gt(size, 2.0 ** high), operand(2.0 ** (-high - 4), size), scale)
    squares = add(square(mul(x, scale)), square(mul(y, scale)))
    return mul(t, mul(div(mul(opposite, scale), squares), scale))


def _asinh_slope(t: Array, y: Array, x: Array) -> Array:
    """t / sqrt(x² + 1), which is t / abs(x) where the square would be out of range."""
    slope = rsqrt(add(square(x), 1.0))
    if dtypes.is_complex(typeof(x).dtype):
        return mul(t, slope)
    size = arithmetic.abs(x)
    large = gt(size, 2.0 ** _powers_that_square(typeof(x).dtype)[1])
    return mul(t, select(large, div(1.0, select(large, size, operand(1.0, size))), slope))


atan2_p = Atan2("atan2", "stablehlo.atan2", INEXACT, [
    lambda t, z, x, y: _angle_slope(t, y, x, y),
    lambda t, z, x, y: _angle_slope(t, neg(x), x, y)],
    fusion="costly", pace=20.0, kernels=_KERNELS, kernels_from=_LEAST,
    numpy_name="arctan2")
sinh_p = MendedElementwise("sinh", "chlo.sinh", mend_sinh, lambda t, y, x: mul(t, cosh(x)),
                           pace=4.0, kernels=_KERNELS, kernels_from=_LEAST)
cosh_p = MendedElementwise("cosh", "chlo.cosh", mend_cosh, lambda t, y, x: mul(t, sinh(x)),
                           pace=4.0)
tanh_p = MendedElementwise("tanh", "stablehlo.tanh", mend_tanh,
                           lambda t, y, x, **_: mul(t, mul(add(1.0, y), sub(1.0, y))),
                           fusion="costly", pace=1.0)
asinh_p = MendedElementwise("asinh", "chlo.asinh", mend_asinh,
                            _asinh_slope, pace=4.0, kernels=_KERNELS, kernels_from=16384)
acosh_p = MendedElementwise("acosh", "chlo.acosh", mend_acosh,
                            lambda t, y, x: mul(t, _rsqrt_product(x, -1.0, 1.0)),
                            domain=(1.0, math.inf), pace=4.0, kernels=_KERNELS,
                            kernels_from=_LEAST)
atanh_p = Log1p("atanh", "chlo.atanh", mend_atanh, _atanh,
                lambda t, y, x: div(t, mul(sub(1.0, x), add(1.0, x))), domain=(-1.0, 1.0), pace=4.0,
                kernels=_KERNELS, kernels_from=_LEAST)


def sin(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """The sine of each element, in radians.

    Args: x: floats or complex numbers, any shape; infinite floats give NaN.
    Returns: An array of the shape and dtype of x. The derivative is cos x.

    >>> print(lax.sin(onp.array([0., 0.5, float("inf")])))
    [0.         0.47942555        nan]
    """
    return unary(sin_p, x, accuracy)


def cos(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """The cosine of each element, in radians.

    Args: x: floats or complex numbers, any shape; infinite floats give NaN.
    Returns: An array of the shape and dtype of x. The derivative is -sin x.

    >>> print(olympus.grad(olympus.lax.cos)(0.5), -olympus.lax.sin(0.5))
    -0.47942555 -0.47942555
    """
    return unary(cos_p, x, accuracy)


def tan(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """The tangent of each element, in radians.

    Args: x: floats or complex numbers, any shape; infinite floats give NaN.
    Returns: An array of the shape and dtype of x. The derivative is 1 + tan² x.

    >>> print(lax.tan(onp.array([0., 0.5])))
    [0.        0.5463025]
    """
    return unary(tan_p, x, accuracy)


def asin(x: ArrayLike) -> Array:
    """The angle in [-π/2, π/2] whose sine is x; NaN of floats outside [-1, 1].

    Returns:
      Radians, in the shape and dtype of x. The derivative is 1 / sqrt(1 - x²), infinite at ±1.

    >>> print(lax.asin(onp.array([0., 1., 2.])))
    [0.        1.5707964       nan]
    """
    return asin_p.bind(x)


def acos(x: ArrayLike) -> Array:
    """The angle in [0, π] whose cosine is x; NaN of floats outside [-1, 1].

    Args:
      x: floats or complex numbers, any shape; complex ones outside of [-1, 1] have a value, too.
    Returns: Radians, in the shape and dtype of x. The derivative is -1 / sqrt(1 - x²).

    >>> print(lax.acos(onp.array([1., 0., -1.])))
    [0.        1.5707964 3.1415927]
    """
    return acos_p.bind(x)


def atan(x: ArrayLike) -> Array:
    """The angle in [-π/2, π/2] whose tangent is x; `atan2` knows the quadrant, too.

    Args: x: floats or complex numbers, any shape; infinite floats have ±π/2.
    Returns: Radians, in the shape and dtype of x. The derivative is 1 / (1 + x²).

    >>> print(lax.atan(onp.array([1., -float("inf")])))
    [ 0.7853981 -1.5707964]
    """
    return atan_p.bind(x)


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """The angle of the point with abscissa y and ordinate x, in [-π, π]: atan of x / y.

    Args: x, y: floats or complex numbers of one dtype and shape; the ordinate comes first.
    Returns: Radians, of that shape and dtype. The signs of zeros count: atan2(-0., -1.) is -π.

    >>> olympus.lax.atan2(1., -1.)
    Array(2.3561945, dtype=float32, weak_type=True)
    """
    return binary(atan2_p, x, y)


def sinh(x: ArrayLike) -> Array:
    """The hyperbolic sine (eˣ - e⁻ˣ) / 2, exact near 0; infinite where it overflows.

    Returns: An array of the shape and dtype of x. The derivative is cosh x.

    >>> print(lax.sinh(onp.array([0., 1., -100.])))
    [0.        1.1752012      -inf]
    """
    return sinh_p.bind(x)


def cosh(x: ArrayLike) -> Array:
    """The hyperbolic cosine (eˣ + e⁻ˣ) / 2; infinite where that overflows.

    Returns: An array of the shape and dtype of x; at least 1 of floats. The derivative is sinh x.

    >>> print(lax.cosh(onp.array([0., 1., 100.])))
    [1.        1.5430806       inf]
    """
    return cosh_p.bind(x)


def tanh(x: ArrayLike, *, accuracy: AccuracyLike = None) -> Array:
    """The hyperbolic tangent (eˣ - e⁻ˣ) / (eˣ + e⁻ˣ), from -1 to 1.

    Returns: An array of the shape and dtype of x. The derivative is (1 + y)(1 - y) of the value y.

    >>> print(lax.tanh(onp.array([0., 0.5, 50.])))
    [0.         0.46211717 1.        ]
    """
    return unary(tanh_p, x, accuracy)


def asinh(x: ArrayLike) -> Array:
    """The number whose hyperbolic sine is x: log(x + sqrt(x² + 1)), also for large and for tiny x.

    Returns: An array of the shape and dtype of x.

    >>> print(lax.asinh(onp.array([0., 1., -1e30])))
    [  0.           0.88137364 -69.7707    ]
    """
    return asinh_p.bind(x)


def acosh(x: ArrayLike) -> Array:
    """The number >= 0 whose hyperbolic cosine is x; NaN of floats below 1.

    Returns: An array of the shape and dtype of x; complex results have a real part >= 0. The
      derivative is 1 / sqrt(x² - 1), computed from its two factors, so that it is exact near 1.

    >>> print(lax.acosh(onp.array([1., 2., 0.5])))
    [0.       1.316958      nan]
    """
    return acosh_p.bind(x)


def atanh(x: ArrayLike) -> Array:
    """The number whose hyperbolic tangent is x: ±inf at ±1, NaN of floats outside [-1, 1].

    Returns: An array of the shape and dtype of x. The derivative is 1 / (1 - x²).

    >>> print(lax.atanh(onp.array([0.5, 1., 2.])))
    [0.54930615        inf        nan]
    """
    return atanh_p.bind(x)


complete_docstrings(globals(), {
    "x": "floats or complex numbers, any shape.",
    "accuracy":
        "an `AccuracyMode` or a `Tolerance` for backends with several implementations.",
})
