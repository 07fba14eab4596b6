"""Exponentials, logarithms, roots, rounding and the parts of floating-point numbers.

Integers and booleans become float32 first, except under the rounding functions.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike, DType
from ..core.trace import literal
from ..custom.jvp import custom_jvp
from ..custom.rules import SymbolicZero
from ..jit.fused import fused, named
from ..lax import arithmetic, transcendental
from ..lax.arithmetic import RoundingMethod, div, imag, is_finite, mul, neg, real, rem, sub
from ..lax.barriers import optimization_barrier
from ..lax.bits import (
    bitwise_and, bitwise_not, bitwise_or, shift_left, shift_right_arithmetic, shift_right_logical,
)
from ..lax.comparison import clamp, eq, ge, gt, lt, ne
from ..lax.convert import bitcast_convert_type
from ..lax.families import add
from ..lax.transcendental import logistic
from ..types import dtypes
from ..types.shape import broadcast_shapes, static_int
from .eager import eager_binary, eager_named, eager_unary
from .promote import (
    BOOL, array_args, broadcast_to, check_ranks, choose, convert, promote_inexact, refuse_option,
    to_array, unary_inexact,
)


def scalar(value: ArrayLike, like: Array) -> Array:
    """A constant of the dtype and weak type of another operand."""
    return literal(value, like.dtype, like.aval.weak_type)


def filled(value: float, like: Array) -> Array:
    """A constant of the shape, dtype and weak type of another operand."""
    return broadcast_to(scalar(value, like), like.shape)


def promote_real(name: str, *xs: ArrayLike) -> Sequence[Array]:
    """Operands promoted to a floating dtype; complex ones are refused."""
    operands = promote_inexact(name, *xs)
    if dtypes.is_complex(operands[0].dtype):
        raise TypeError(f"{name}: operands of dtype {operands[0].dtype} given; real numbers are "
                        "required; use real and imag.")
    return operands


# Exponentials and logarithms ---------------------------------------------------------------------

@eager_unary
def exp(x: ArrayLike, /) -> Array:
    """e to the power x.

    Returns: Floating or complex numbers of that shape; integers become the default float. Beyond
      the dtype (88.7 in float32) it is infinite, far below 0 it is 0. For complex numbers `exp(re)
      * (cos(im) + i sin(im))`.

    >>> onp.exp(onp.array([-onp.inf, 0., 1., 100.]))
    Array([0.       , 1.       , 2.7182817,       inf], dtype=float32)
    """
    return unary_inexact(transcendental.exp, x)


@eager_unary
def exp2(x: ArrayLike, /) -> Array:
    """2 to the power x, exact for whole x that the dtype reaches.

    Returns: Floating or complex numbers of that shape; integers become the default float. See
      `ldexp` for a multiple of a power of 2.

    >>> onp.exp2(onp.array([-1, 0, 10]))
    Array([5.000e-01, 1.000e+00, 1.024e+03], dtype=float32)
    """
    return unary_inexact(transcendental.exp2, x)


@eager_unary
def expm1(x: ArrayLike, /) -> Array:
    """`exp(x) - 1` without the loss of digits that subtracting costs near 0.

    Returns:
      Floating or complex numbers of that shape; integers become the default float. -0 stays -0.

    >>> x = onp.array([1e-8])
    >>> onp.expm1(x), onp.exp(x) - 1
    (Array([1.e-08], dtype=float32), Array([0.], dtype=float32))
    """
    return unary_inexact(transcendental.expm1, x)


@eager_unary
def log(x: ArrayLike, /) -> Array:
    """The natural logarithm.

    Returns:
      Floating or complex numbers of that shape; integers become the default float. -inf of ±0, NaN
      of negative real numbers; complex ones have the branch with imaginary parts in [-pi, pi].

    >>> onp.log(onp.array([1., 0., -1.])), onp.log(onp.array([-1 + 0j]))
    (Array([  0., -inf,  nan], dtype=float32), Array([0.+3.1415927j], dtype=complex64))
    """
    return unary_inexact(transcendental.log, x)


@eager_unary
def log1p(x: ArrayLike, /) -> Array:
    """`log(1 + x)` without the loss of digits that adding costs near 0.

    Returns: Floating or complex numbers of that shape; integers become the default float. -inf of
      -1, NaN of real numbers below.

    >>> onp.log1p(onp.array([1e-8, -1.]))
    Array([1.e-08,   -inf], dtype=float32)
    """
    return unary_inexact(transcendental.log1p, x)


@eager_unary
def log2(x: ArrayLike, /) -> Array:
    """The logarithm to base 2, exact at powers of 2.

    Returns: Floating or complex numbers of that shape; integers become the default float. Where
      `log` is infinite or NaN, so is this. For the exponent of a float see `frexp`.

    >>> onp.log2(onp.array([1, 2, 1024, 0]))
    Array([  0.,   1.,  10., -inf], dtype=float32)
    """
    return unary_inexact(transcendental.log2, x)


@eager_unary
def log10(x: ArrayLike, /) -> Array:
    """The logarithm to base 10, exact at powers of 10.

    Returns: Floating or complex numbers of that shape; integers become the default float. Where
      `log` is infinite or NaN, so is this.

    >>> print(onp.log10(onp.array([1, 1000, 0])))
    [  0.   3. -inf]
    """
    return unary_inexact(transcendental.log10, x)


@fused(static=("name", "base"))
def _log_sum(x: ArrayLike, y: ArrayLike, *, name: str, base: float) -> Array:
    """log_b(b**x + b**y), without overflow."""
    x, y = promote_inexact(name, x, y)
    shape = broadcast_shapes(x.shape, y.shape)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    return (_log_sum_plainly if dtypes.is_complex(x.dtype) else _log_sum_real)(base, x, y)


def _log_sum_plainly(base: float, x: Array, y: Array) -> Array:
    """The difference is made 0 where it is NaN: infinities give no NaN, in derivatives neither."""
    larger = ge(real(x), real(y)) if dtypes.is_complex(x.dtype) else ge(x, y)
    high, low = choose(larger, x, y), choose(larger, y, x)
    gap, undefined = _gap(low, high)
    grown = transcendental.log1p(transcendental.exp(mul(gap, scalar(math.log(base), gap))))
    out = choose(undefined, add(high, low),
                 add(high, div(grown, scalar(math.log(base), gap))))
    return _principal(out, 2 * math.pi / math.log(base)) if dtypes.is_complex(x.dtype) else out


def _principal(z: Array, period: float) -> Array:
    """Complex numbers with imaginary parts at most half a period from 0."""
    part = imag(z)
    turns = _nearest_even(div(part, scalar(period, part)))
    turns = choose(is_finite(turns), turns, filled(0, turns))
    return arithmetic.complex(real(z), sub(part, mul(turns, scalar(period, part))))


def _gap(x: Array, y: Array) -> tuple[Array, Array]:
    """x - y, 0 where that is NaN, and where it is."""
    gap = sub(x, y)
    undefined = ne(gap, gap)
    return choose(undefined, filled(0, gap), gap), undefined


_log_sum_real = custom_jvp(_log_sum_plainly, nondiff_argnums=(0,))


def _log_sum_jvp(base: float, primals: Sequence[Array], tangents: Sequence[Array | SymbolicZero]
                 ) -> tuple[Array, Array | None]:
    """One residual per operand: its weight, the logistic function of the difference."""
    gap, undefined = _gap(*primals)
    both = add(*primals)     # NaN, or infinite, where the difference is not defined
    limit = choose(ne(both, both), both, filled(1, both))
    slope, total = math.log(base), None
    for t, sign in zip(tangents, (slope, -slope), strict=True):
        if not isinstance(t, SymbolicZero):
            weight = logistic(mul(gap, scalar(sign, gap)))
            term = mul(t, choose(undefined, limit, weight))
            total = term if total is None else add(total, term)
    return _log_sum_real(base, *primals), total


_log_sum_real.defjvp(_log_sum_jvp, symbolic_zeros=True)


@eager_binary(composite=True)
def logaddexp(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`log(exp(x) + exp(y))` without overflow: sums of probabilities that are kept as logarithms.

    Args: x, y: arrays or numbers that broadcast, of any dtype; unlike in NumPy complex ones too.
    Returns: An array of the broadcast shape and promoted inexact dtype; -inf, which is a
      probability 0, of two -inf. The derivatives are the weights of the two, which add up to 1; of
      two equal infinities each is 1.

    >>> onp.logaddexp(onp.array([1000., -onp.inf]), onp.array([1000., 0.]))
    Array([1000.6932,    0.    ], dtype=float32)
    """
    return _log_sum(x, y, name="logaddexp", base=math.e)


@eager_binary(composite=True)
def logaddexp2(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`log2(2**x + 2**y)` without overflow.

    Args: x, y: arrays or numbers that broadcast, of any dtype.
    Returns: An array of the broadcast shape and promoted inexact dtype; see `logaddexp`.

    >>> onp.logaddexp2(onp.array([3., 500.]), onp.array([3., 500.]))
    Array([  4., 501.], dtype=float32)
    """
    return _log_sum(x, y, name="logaddexp2", base=2.0)


# Roots and distances -----------------------------------------------------------------------------

@eager_unary
def sqrt(x: ArrayLike, /) -> Array:
    """The square root that is not negative; of complex numbers the one with a real part of at least
    0.

    Returns: Floating or complex numbers of that shape; integers become the default float. NaN of
      negative real numbers, -0 of -0. The derivative at 0 is infinite.

    >>> onp.sqrt(onp.array([4., -1.])), onp.sqrt(onp.array([-1 + 0j]))
    (Array([ 2., nan], dtype=float32), Array([0.+1.j], dtype=complex64))
    """
    return unary_inexact(transcendental.sqrt, x)


@eager_unary
def cbrt(x: ArrayLike, /) -> Array:
    """The cube root of real numbers, negative ones too.

    Args: x: array or number of any shape, of real dtypes.

    Returns:
      Floats of that shape; integers become the default float. The derivative at 0 is infinite.

    >>> onp.cbrt(onp.array([-8., 27.]))
    Array([-2.,  3.], dtype=float32)
    """
    return unary_inexact(transcendental.cbrt, x)


@eager_binary(composite=True)
def hypot(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The length of the vector (x1, x2): `sqrt(x1**2 + x2**2)`, where the squares must not
    overflow.

    Returns: Floats of the broadcast shape, infinite where either is, even beside NaN. The
      derivatives are the cosines of the angles with the axes; at (0, 0) each is 1/2.

    >>> onp.hypot(onp.array([3., 3e30]), onp.array([4., 4e30]))
    Array([5.e+00, 5.e+30], dtype=float32)
    """
    x, y = promote_real("hypot", x1, x2)
    shape = broadcast_shapes(x.shape, y.shape)
    return _hypot(broadcast_to(x, shape), broadcast_to(y, shape))


@custom_jvp
def _hypot(x: Array, y: Array) -> Array:
    infinite = bitwise_or(isinf(x), isinf(y))
    x, y = arithmetic.abs(x), arithmetic.abs(y)
    high, low = arithmetic.max(x, y), arithmetic.min(x, y)
    ratio = div(low, choose(eq(high, scalar(0, high)), filled(1, high), high))
    length = mul(high, transcendental.sqrt(add(mul(ratio, ratio), scalar(1, high))))
    return choose(infinite, filled(np.inf, length), length)


@_hypot.defjvp
def _hypot_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array | None]:
    """The cosines of the angles with the axes; at 0 equal shares, at infinity the limits."""
    length, total = _hypot(*primals), None
    for x, y, t in zip(primals, primals[::-1], tangents, strict=True):
        share = choose(eq(length, scalar(0, length)), filled(0.5, x), div(x, length))
        alone = bitwise_and(isinf(x), is_finite(y))
        term = mul(t, choose(alone, arithmetic.sign(x), share))
        total = term if total is None else add(total, term)
    return length, total


# Rounding ----------------------------------------------------------------------------------------

def _rounding(op: Callable[[Array], Array], name: str, x: ArrayLike) -> Array:
    (x,) = array_args(name, x)
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"{name}: an operand of dtype {x.dtype} given; real numbers are required.")
    return op(x) if dtypes.is_floating(x.dtype) else to_array(x)


@eager_unary
def floor(x: ArrayLike, /) -> Array:
    """The largest integer that is not above x.

    Args: x: array or number of any shape, of real dtypes; complex ones are a TypeError.
    Returns: An array of the same dtype: floats stay floats, and integers are as they are. The
      derivative is 0 everywhere.

    >>> onp.floor(onp.array([1.7, -1.2]))
    Array([ 1., -2.], dtype=float32)
    """
    return _rounding(arithmetic.floor, "floor", x)


@eager_unary
def ceil(x: ArrayLike, /) -> Array:
    """The smallest integer that is not below x.

    Args: x: array or number of any shape, of real dtypes; complex ones are a TypeError.
    Returns: An array of the same dtype: floats stay floats, and integers are unchanged. Numbers
      between -1 and 0 give -0. The derivative is 0 everywhere.

    >>> onp.ceil(onp.array([1.2, -1.7, -0.5]))
    Array([ 2., -1., -0.], dtype=float32)
    """
    return _rounding(arithmetic.ceil, "ceil", x)


@eager_named
@described_like(floor)
def trunc(x: ArrayLike) -> Array:
    """The integer next to x in the direction of 0: x without its fraction.

    >>> onp.trunc(onp.array([1.7, -1.7]))
    Array([ 1., -1.], dtype=float32)
    """
    return _rounding(_towards_zero, "trunc", x)


def _towards_zero(x: Array) -> Array:
    x = broadcast_to(x, x.shape)
    return choose(lt(x, scalar(0, x)), arithmetic.ceil(x), arithmetic.floor(x))


def _nearest_even(x: Array) -> Array:
    return arithmetic.round(x, RoundingMethod.TO_NEAREST_EVEN)


@eager_unary
def rint(x: ArrayLike, /) -> Array:
    """The nearest integer; halves go to the even one.

    Args: x: array or number of any shape; of complex numbers both parts are rounded.
    Returns: Floating or complex numbers of that shape; integers become the default float, unlike by
      `round`. The derivative is 0 everywhere.

    >>> onp.rint(onp.array([0.5, 1.5, -2.5]))
    Array([ 0.,  2., -2.], dtype=float32)
    """
    (x,) = array_args("rint", x)
    if not dtypes.is_inexact(x.dtype):
        return to_array(convert(x, dtypes.to_inexact_dtype(x.dtype)))
    if dtypes.is_complex(x.dtype):
        return arithmetic.complex(_nearest_even(real(x)), _nearest_even(imag(x)))
    return _nearest_even(x)


@fused(static=("decimals", "out"))
def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round numbers to decimal places; halves go to the even last digit.

    Args:
      a: array or number of any shape; of complex numbers both parts are rounded. Booleans are a
        TypeError.
      decimals: an int, known when tracing: places right of the point, or left of it if negative.
    Returns: An array of the same dtype. Floats are scaled by the power of 10, rounded and scaled
      back, so the last bit may differ from the decimal literal's. Integers are rounded exactly.

    >>> onp.round(onp.array([0.5, 1.5, 2.25]), 1), onp.round(onp.array([1249, 1250]), -2)
    (Array([0.5, 1.5, 2.2], dtype=float32), Array([1200, 1200], dtype=int32))
    """
    refuse_option("round", out=out)
    decimals = static_int(decimals, "round", "decimals")
    (x,) = array_args("round", a)
    if x.dtype == BOOL:
        raise TypeError(f"round: {x.aval} given; numbers are required; convert it with astype.")
    if dtypes.is_integer(x.dtype):
        return to_array(x) if decimals >= 0 else _round_integer(x, 10 ** -decimals)
    if dtypes.is_complex(x.dtype):
        return arithmetic.complex(round(real(x), decimals), round(imag(x), decimals))
    if decimals == 0:
        return _nearest_even(x)
    wide, magnitude = _as_float32(x), max(decimals, -decimals)
    if decimals > 0 and 10.0 ** min(decimals, 308) > float(dtypes.finfo(wide.dtype).max):
        return to_array(x)      # it has no such digits
    if magnitude > 308:
        raise ValueError(f"round: decimals {decimals} given; at least -308 is required.")
    factor = scalar(10.0 ** magnitude, wide)
    # XLA makes a division by a number that it knows a product with the rounded reciprocal.
    divisor = clamp(factor, wide, factor)
    scaled = mul(wide, factor) if decimals > 0 else div(wide, divisor)
    there = _nearest_even(scaled)
    return convert(div(there, divisor) if decimals > 0 else mul(there, factor), x.dtype,
                   x.aval.weak_type)


def _round_integer(x: Array, unit: int) -> Array:
    """Integers rounded to multiples of `unit`, halves to even multiples."""
    if unit > dtypes.iinfo(x.dtype).max:
        return to_array(filled(0, x))
    u, zero, one = scalar(unit, x), scalar(0, x), scalar(1, x)
    rest = rem(x, u)
    down = sub(x, rest)
    size = rest if dtypes.scalar_kind(x.dtype) == "u" else arithmetic.abs(rest)
    other = sub(u, size)
    odd = ne(bitwise_and(div(down, u), one), zero)
    away = bitwise_or(gt(size, other), bitwise_and(eq(size, other), odd))
    step = mul(u, arithmetic.sign(rest))
    return add(down, mul(step, convert(away, x.dtype, x.aval.weak_type)))


@named
def around(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Another name of `round`, with the same arguments.

    Args:
      a: array or number of any shape.
      decimals: places right of the point, or left of it if negative.
    Returns: An array of the same dtype.

    >>> onp.around(onp.array([1.25, 1.35]), 1)
    Array([1.2, 1.4], dtype=float32)
    """
    return round(a, decimals, out)


# Parts and kinds of floating-point numbers -------------------------------------------------------

def any_part(name: str, x: ArrayLike, real_test: Callable[[Array], Array]) -> Array:
    """A test of floating-point numbers; of either part of complex ones; False of integers."""
    (x,) = array_args(name, x)
    if dtypes.is_complex(x.dtype):
        return bitwise_or(real_test(real(x)), real_test(imag(x)))
    if dtypes.is_floating(x.dtype):
        return real_test(x)
    return to_array(broadcast_to(literal(False, BOOL), x.shape))


@eager_unary
def isnan(x: ArrayLike, /) -> Array:
    """Whether elements are NaN, which `x == nan` does not tell.

    Returns: bool of that shape; of complex numbers true if either part is NaN, of integers False.

    >>> onp.isnan(onp.array([onp.nan, 1., onp.inf]))
    Array([ True, False, False], dtype=bool)
    """
    return any_part("isnan", x, lambda x: ne(x, x))


@eager_unary
def isinf(x: ArrayLike, /) -> Array:
    """Whether elements are infinite, of either sign.

    Returns:
      bool of that shape; of complex numbers true if either part is infinite, of integers False.

    >>> onp.isinf(onp.array([onp.inf, -onp.inf, onp.nan, 1.]))
    Array([ True,  True, False, False], dtype=bool)
    """
    return any_part("isinf", x, lambda x: eq(arithmetic.abs(x), scalar(np.inf, x)))


@eager_unary
def isfinite(x: ArrayLike, /) -> Array:
    """Whether elements are neither infinite nor NaN.

    Returns: bool of that shape; of complex numbers true if both parts are finite, of integers True.

    >>> onp.isfinite(onp.array([1., onp.inf, onp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    (x,) = array_args("isfinite", x)
    if dtypes.is_complex(x.dtype):
        return bitwise_and(is_finite(real(x)), is_finite(imag(x)))
    if dtypes.is_floating(x.dtype):
        return is_finite(x)
    return to_array(broadcast_to(literal(True, BOOL), x.shape))


def _signed_of(dtype: DType) -> np.dtype:
    return np.dtype(f"int{dtypes.itemsize_bits(dtype)}")


@eager_unary
def signbit(x: ArrayLike, /) -> Array:
    """Whether the sign bit is set; `x < 0` does not see it in -0 and negative NaN.

    Args: x: array or number of any shape, of real dtypes; complex ones are a TypeError.
    Returns: bool of that shape.

    >>> onp.signbit(onp.array([-0., 0., -1.]))
    Array([ True, False,  True], dtype=bool)
    """
    (x,) = array_args("signbit", x)
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"signbit: an operand of dtype {x.dtype} given; real numbers are required.")
    if dtypes.is_floating(x.dtype):
        bits = bitcast_convert_type(x, _signed_of(x.dtype))
        return lt(bits, literal(0, bits.dtype))
    if dtypes.scalar_kind(x.dtype) == "i":
        return lt(x, literal(0, x.dtype))
    return to_array(broadcast_to(literal(False, BOOL), x.shape))


@eager_binary(composite=True)
def copysign(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The size of x1 with the sign of x2, also of -0.

    Returns: Floats of the broadcast shape and promoted dtype; integers become the default float.
      The derivative by x1 is 1 or -1, that by x2 is 0.

    >>> onp.copysign(onp.array([1., -2.]), onp.array([-0., 0.]))
    Array([-1.,  2.], dtype=float32)
    """
    x, y = promote_real("copysign", x1, x2)
    shape = broadcast_shapes(x.shape, y.shape)
    # The result is made of x alone, but it is weak only if both operands are.
    x = convert(x, x.dtype, x.aval.weak_type and y.aval.weak_type)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    return choose(ne(signbit(x), signbit(y)), neg(x), x)


@eager_binary
def nextafter(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The next number that the dtype has after x in the direction of y.

    Args: x, y: arrays or numbers that broadcast, of real dtypes; complex ones are a TypeError.
    Returns: Floats of the broadcast shape and promoted dtype; where both are equal y, where either
      is NaN NaN.

    >>> print(onp.nextafter(1., onp.array([0., 1., 2.])) - 1)
    [-5.9604645e-08  0.0000000e+00  1.1920929e-07]
    """
    return arithmetic.nextafter(*promote_real("nextafter", x, y))


@eager_unary(composite=True)
def spacing(x: ArrayLike, /) -> Array:
    """The distance from x to the next number away from zero, with the sign of x.

    Made of bits, because processors may take subnormal numbers for 0.

    Args: x: array or number of any shape, of real dtypes; complex ones are a TypeError.
    Returns: Floats of that shape; the machine epsilon of 1, the smallest subnormal of 0, NaN of
      infinities.

    >>> onp.spacing(onp.array([1., 1e10, -1.]))
    Array([ 1.1920929e-07,  1.0240000e+03, -1.1920929e-07], dtype=float32)
    """
    (x,) = promote_real("spacing", x)
    x, integer = broadcast_to(x, x.shape), _signed_of(x.dtype)
    info, one, zero = dtypes.finfo(x.dtype), literal(1, integer), literal(0, integer)
    mantissa = literal(int(info.nmant), integer)
    bits = bitcast_convert_type(x, integer)
    size = bitwise_and(bits, literal(int(dtypes.iinfo(integer).max), integer))
    exponent = shift_right_logical(size, mantissa)
    lower = sub(exponent, mantissa)      # the distance's logarithm, if it is a normal number
    step = choose(gt(lower, zero), shift_left(arithmetic.max(lower, zero), mantissa),
                  shift_left(one, arithmetic.max(sub(exponent, one), zero)))
    negative = bitwise_and(lt(bits, zero), ne(size, zero))
    sign = choose(negative, literal(int(dtypes.iinfo(integer).min), integer), zero)
    gap = bitcast_convert_type(bitwise_or(step, sign), x.dtype)
    gap = choose(eq(arithmetic.abs(x), scalar(float(info.max), x)),
                 copysign(filled(np.inf, x), x), gap)
    gap = choose(is_finite(x), gap, filled(np.nan, x))
    return convert(gap, x.dtype)


@eager_binary(composite=True)
def heaviside(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The step function: 0 below zero, 1 above it, x2 where x1 is 0.

    Args:
      x1: where the step is taken.
      x2: its values at 0, often 0, 1/2 or 1; real numbers that broadcast with `x1`.

    Returns:
      Floats of the broadcast shape and promoted dtype; NaN of NaN. The derivative by x1 is 0.

    >>> onp.heaviside(onp.array([-1., 0., 2., onp.nan]), 0.5)
    Array([0. , 0.5, 1. , nan], dtype=float32)
    """
    x, h = promote_real("heaviside", x1, x2)
    shape = broadcast_shapes(x.shape, h.shape)
    x, h = broadcast_to(x, shape), broadcast_to(h, shape)
    step = convert(gt(x, scalar(0, x)), x.dtype, x.aval.weak_type)
    out = choose(eq(x, scalar(0, x)), h, step)
    return choose(ne(x, x), filled(np.nan, x), out)


def _as_float32(x: Array) -> Array:
    """16-bit and smaller floats as float32, in which their scaling by powers is exact."""
    return convert(x, np.dtype("float32")) if dtypes.itemsize_bits(x.dtype) < 32 else x


def _layout(x: Array) -> tuple[np.dtype, int, int]:
    """(integer dtype, mantissa bits, exponent bias) of a float32 or float64 operand."""
    if dtypes.itemsize_bits(x.dtype) == 32:
        return np.dtype("int32"), 23, 127
    return np.dtype("int64"), 52, 1023


def _power_of_two(e: Array, x: Array) -> Array:
    """2**e in the dtype of `x`, for integers -bias < e <= bias: the bits of the exponent."""
    integer, mantissa, bias = _layout(x)
    bits = shift_left(add(e, literal(bias, integer)), literal(mantissa, integer))
    return bitcast_convert_type(bits, x.dtype)


@eager_named
def ldexp(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 * 2**x2`, by the exponents' bits, so that nothing rounds or overflows on the way.

    Args:
      x1: real numbers; complex ones are a TypeError.
      x2: integers of any size that broadcast with `x1`; floats are a ValueError.
    Returns: Floats of the broadcast shape and of the dtype of `x1`; what `frexp` took apart.

    >>> onp.ldexp(onp.array([1., 0.75]), onp.array([3, -1]))
    Array([8.   , 0.375], dtype=float32)
    """
    (e,) = array_args("ldexp", x2)
    if not dtypes.is_integer(e.dtype) and e.dtype != BOOL:
        raise ValueError(f"ldexp: x2 of dtype {e.dtype} given; integers are required.")
    (x,) = promote_real("ldexp", x1)
    check_ranks("ldexp", (x.aval, e.aval))
    dtype, wide = x.dtype, _as_float32(x)
    integer, _, bias = _layout(wide)
    e = convert(e, integer) if e.dtype == BOOL else e
    # More than three steps only repeat zeros or infinities; a wider dtype must not wrap.
    limits, most = dtypes.iinfo(e.dtype), 3 * (bias - 1)
    if limits.max > most:
        e = arithmetic.min(e, broadcast_to(literal(most, e.dtype), e.shape))
    if limits.min < -most:
        e = arithmetic.max(e, broadcast_to(literal(-most, e.dtype), e.shape))
    e = convert(e, integer)
    shape = broadcast_shapes(wide.shape, e.shape)
    wide, e = broadcast_to(wide, shape), broadcast_to(e, shape)
    low, high = (literal(s * (bias - 1), integer) for s in (-1, 1))
    for _ in range(3):      # from the largest number to the smallest subnormal takes three
        part = arithmetic.max(arithmetic.min(e, high), low)
        # With a static x2, XLA would join the powers to one that overflows.
        wide, e = mul(optimization_barrier(wide), _power_of_two(part, wide)), sub(e, part)
    return convert(wide, dtype)


@eager_unary(composite=True)
def frexp(x: ArrayLike, /) -> tuple[Array, Array]:
    """Floats taken apart: the pair (m, e) with `x = m * 2**e` and 0.5 <= |m| < 1.

    Args: x: array or number of any shape, of real dtypes; complex ones are a TypeError.
    Returns: The mantissas, floats of that shape, and the exponents, int32. Zeros, infinities and
      NaN are their own mantissa, with exponent 0. The derivative of the mantissa is `2**-e`.

    >>> onp.frexp(onp.array([8., -0.3, 0.]))
    (Array([ 0.5, -0.6,  0. ], dtype=float32), Array([ 4, -1,  0], dtype=int32))
    """
    (x,) = promote_real("frexp", x)
    wide = broadcast_to(_as_float32(x), x.shape)
    integer, mantissa, bias = _layout(wide)
    size = bitwise_and(bitcast_convert_type(wide, integer),
                       literal(int(dtypes.iinfo(integer).max), integer))
    # Subnormals, which arithmetic may take for 0, are integers times the smallest one.
    tiny = lt(size, literal(1 << mantissa, integer))
    normal = choose(tiny, copysign(convert(size, wide.dtype), wide), wide)
    field = bitwise_and(shift_right_logical(bitcast_convert_type(normal, integer),
                                            literal(mantissa, integer)),
                        literal(2 * bias + 1, integer))
    shift = mul(convert(tiny, integer), literal(mantissa + bias - 1, integer))
    power = sub(field, literal(bias - 1, integer))
    e = sub(power, shift)
    # Divided by 2**power, by halves that both exist: unlike the bits, it has a derivative.
    part = shift_right_arithmetic(power, literal(1, integer))
    m = mul(mul(normal, _power_of_two(neg(part), wide)),
            _power_of_two(sub(part, power), wide))
    plain = bitwise_or(eq(size, literal(0, integer)), bitwise_not(is_finite(wide)))
    m = choose(plain, wide, m)
    e = choose(plain, broadcast_to(literal(0, integer), e.shape), e)
    return convert(m, x.dtype), convert(e, np.dtype("int32"))


@eager_unary(composite=True)
def modf(x: ArrayLike, /) -> tuple[Array, Array]:
    """The pair (fraction, whole part), both with the sign of x.

    Args: x: array or number of any shape, of real dtypes; complex ones are a TypeError.
    Returns: Two arrays of floats of that shape; of infinities the fraction is 0.

    >>> onp.modf(onp.array([1.5, -1.5, onp.inf]))
    (Array([ 0.5, -0.5,  0. ], dtype=float32), Array([ 1., -1., inf], dtype=float32))
    """
    (x,) = promote_real("modf", x)
    x = broadcast_to(x, x.shape)
    whole = _towards_zero(x)
    # -(whole - x) is -0.0 where x - whole is 0.0.
    rest = choose(signbit(x), neg(sub(whole, x)), sub(x, whole))
    return choose(isinf(x), copysign(filled(0, x), x), rest), whole


complete_docstrings(globals(), {
    "x": "array or number of any dtype and shape.",
    "x1, x2": "arrays or numbers that broadcast, of real dtypes; complex ones are a TypeError.",
})
