"""Formulas of functions of float64, whose errors are below 1 ULP.

The last operation adds a small number to a large one, so that the errors of what came before are a
part of the result's last digit. Arguments are reduced, and polynomials begin, as in fdlibm (Sun
Microsystems, 1993; FreeBSD, msun); the coefficients interpolate at Chebyshev's nodes.
"""

from __future__ import annotations

import math

from ...base.typing import Array
from ...core.trace import typeof
from ..arithmetic import abs, div, is_finite, mul, neg, sub
from ..bits import (
    bitwise_and, bitwise_or, bitwise_xor, shift_left, shift_right_arithmetic, shift_right_logical,
)
from ..comparison import eq, ge, gt, lt, ne, select
from ..convert import in_dtype
from ..families import add
from ..shape import zeros_of
from ..transcendental import sqrt
from .elementary import (
    BIAS, FLOAT64, INT32, INT64, MANTISSA, Pair, added, as_int64, bits64, divided, halves, is_odd,
    joined, like, multiplied, nearest, of_bits64, polynomial, reciprocal, reciprocal_root, root,
    without,
)

_SIGN = -1 << 63
_TINY = 2.0 ** -1022


def _or_tiny(found: Array, x: Array) -> Array:
    """The result at x, which is x for subnormals: XLA:CPU takes them for 0."""
    return select(lt(abs(x), _TINY), x, found)


def signed(x: Array, sign: Array) -> Array:
    """A float64 with its sign changed where the highest bit of `sign` is 1."""
    return of_bits64(bitwise_xor(bits64(x), bitwise_and(sign, _SIGN)))


# Sine, cosine, tangent

# π / 2 in pieces of 24 bits, whose products with numbers below 2**29 are exact, and 53 more.
_PIECES = tuple(map(float.fromhex, (
    "0x1.921fb4p+0", "0x1.4442d0p-24", "0x1.846988p-48", "0x1.8cc516p-72",
    "0x1.01b839a25204ap-96")))
LARGEST_ANGLE = 2.0 ** 28
_SIN = (-0.16666666666666666, 0.008333333333330948, -0.00019841269836756774,
        2.7557316101617852e-06, -2.5051131650231316e-08, 1.5918115263038246e-10)
_COS = (0.041666666666666664, -0.0013888888888887398, 2.480158729876456e-05,
        -2.755731727114513e-07, 2.0876146146556195e-09, -1.1382623647332156e-11)


def _turned(x: Array, precise: bool = False) -> tuple[Pair, Pair, Array]:
    """Sine and cosine of |x| less the nearest multiple of a quarter turn, and which that is.

    With `precise`, the cosine is more precise than one number that is rounded.
    """
    w = abs(x)
    k = nearest(mul(w, 2 / math.pi))
    high, low = sub(w, mul(k, _PIECES[0])), None
    for piece in _PIECES[1:-1]:
        high, rest = added(high, neg(mul(k, piece)))
        low = rest if low is None else add(low, rest)
    assert low is not None
    r, low = joined(high, sub(low, mul(k, _PIECES[-1])))
    z = mul(r, r)
    sine = r, add(mul(mul(r, z), polynomial(z, _SIN)), sub(low, mul(mul(z, 0.5), low)))
    half = mul(z, 0.5)
    first, rest = joined(like(1.0, r), neg(half))
    if precise:
        rest = add(rest, mul(without(z, r, r), 0.5))
    cosine = first, add(rest, sub(mul(mul(z, z), polynomial(z, _COS)), mul(r, low)))
    return sine, cosine, in_dtype(k, INT32)


def _chosen(which: Array, first: Pair, second: Pair) -> Pair:
    return select(which, first[0], second[0]), select(which, first[1], second[1])


def _turns(k: Array) -> Array:
    """The second bit of k, as a sign."""
    return shift_left(in_dtype(k, INT64), 62)


def sin(x: Array) -> Array:
    """The sine, up to LARGEST_ANGLE."""
    s, c, k = _turned(x)
    found = add(*_chosen(is_odd(k), c, s))
    return _or_tiny(signed(found, bitwise_xor(bits64(x), _turns(k))), x)


def cos(x: Array) -> Array:
    """The cosine, up to LARGEST_ANGLE."""
    s, c, k = _turned(x)
    return signed(add(*_chosen(is_odd(k), s, c)), _turns(add(k, 1)))


def tan(x: Array) -> Array:
    """The tangent, up to LARGEST_ANGLE."""
    s, c, k = _turned(x, True)
    odd = is_odd(k)
    s, c = joined(*s), joined(*c)
    found = add(*divided(_chosen(odd, c, s), _chosen(odd, s, c)))
    sign = bitwise_xor(bits64(x), shift_left(in_dtype(k, INT64), 63))
    # What is left of the quotient of smaller numbers is made of subnormal ones.
    return select(lt(abs(x), 2.0 ** -30), x, signed(found, sign))


def is_large_angle(x: Array) -> Array:
    """Whether the sine and the others have too few digits of π."""
    return bitwise_and(is_finite(x), gt(abs(x), LARGEST_ANGLE))


# Inverse functions

_ATAN = (-0.3333333333333333, 0.19999999999999404, -0.14285714285565465, 0.11111111096527897,
         -0.0909090835038236, 0.0769228541971291, -0.06666239748843464, 0.05876924062568596,
         -0.05216532006174907, 0.04491655670634971, -0.033114228676340327, 0.01475938032956514)
# The angles 0, π / 4 and π / 2, and π less them, as pairs; ratios up to which the first are near.
_LIMITS = math.sqrt(2) - 1, math.sqrt(2) + 1
_ACUTE = ((0.0, 0.0), (0.7853981633974483, 3.061616997868383e-17),
          (1.5707963267948966, 6.123233995736766e-17))
_OBTUSE = ((3.141592653589793, 1.2246467991473532e-16),
           (2.356194490192345, 9.184850993605148e-17), (1.5707963267948966, 6.123233995736766e-17))


def _angle(y: Array, x: Array, negative: Array | None) -> Array:
    """The angle of x and y >= 0, not both 0, or of -x where that is wanted."""
    first, second = [lt(y, mul(x, limit)) for limit in _LIMITS]

    def chosen(a: Array, b: Array, c: Array) -> Array:
        return select(first, a, select(second, b, c))

    zero = like(0.0, x)
    (less, lost), (both, left) = added(y, neg(x)), added(y, x)
    up, lost = chosen(y, less, neg(x)), chosen(zero, lost, zero)
    down, left = chosen(x, both, y), chosen(zero, left, zero)
    base, rest = [chosen(*[like(v, x) for v in values]) for values in zip(*_ACUTE, strict=True)]
    if negative is not None:
        up, lost = [select(negative, neg(v), v) for v in (up, lost)]
        others = [chosen(*[like(v, x) for v in values]) for values in zip(*_OBTUSE, strict=True)]
        base, rest = [select(negative, v, w) for v, w in zip(others, (base, rest), strict=True)]
    t, error = joined(*divided((up, lost), (down, left)))
    # The error of smaller numbers would be made of subnormal ones.
    size = abs(up)
    precise = bitwise_and(gt(size, 2.0 ** -900), gt(size, mul(down, 2.0 ** -900)))
    t, error = select(precise, t, div(up, down)), select(precise, error, zero)
    z = mul(t, t)
    base, more = joined(base, t)
    return add(base, add(more, add(rest, add(error, mul(mul(t, z), polynomial(z, _ATAN))))))


def atan(x: Array) -> Array:
    """The arctangent."""
    w = abs(x)
    infinite = gt(w, _BEYOND)
    found = _angle(select(infinite, like(1.0, w), w),
                   select(infinite, zeros_of(typeof(w)), like(1.0, w)), None)
    return _or_tiny(signed(found, bits64(x)), x)


_BEYOND = 2.0 ** 60     # the arctangent is π / 2


def _scaled(w: Array, scale: Array) -> Array:
    """A positive number times a power of 2; times 2**200 if it is subnormal, from its bits."""
    one = like(2.0 ** -822, w)      # whose last digit is 2**-874
    digits = sub(of_bits64(bitwise_or(bits64(w), bits64(one))), one)
    return select(lt(w, _TINY), digits, mul(w, scale))


def atan2(y: Array, x: Array) -> Array:
    """The angle."""
    a, c = abs(y), abs(x)
    infinite = bitwise_or(eq(a, math.inf), eq(c, math.inf))
    one, zero = like(1.0, a), zeros_of(typeof(a))
    a, c = [select(infinite, select(eq(v, math.inf), one, zero), v) for v in (a, c)]
    # So that sums are finite, and the remainders of divisions do not vanish.
    largest = select(gt(a, c), a, c)
    scale = select(gt(largest, 2.0 ** 800), like(2.0 ** -200, a), like(2.0 ** 200, a))
    a, c = [_scaled(v, scale) for v in (a, c)]
    c = select(bitwise_and(eq(a, 0.0), eq(c, 0.0)), one, c)
    found = _angle(a, c, lt(bits64(x), 0))
    unordered = bitwise_or(ne(x, x), ne(y, y))
    return signed(select(unordered, like(math.nan, a), found), bits64(y))


_ASIN = (0.16666666666666669, 0.07499999999998425, 0.04464285714637338, 0.030381944137085167,
         0.022372173002007063, 0.017352391265880077, 0.013971235301502854, 0.011478952686959197,
         0.010324318308209832, 0.005450878110995215, 0.01741935815831295, -0.014881409674851225,
         0.028778442793491267)
_HALF_PI, _PI = _ACUTE[-1], _OBTUSE[0]


def _arc(w: Array) -> tuple[Array, Array, Array]:
    """The arcsine of w in [0, ½] as a pair; above, half the arccosine, and whether it is that."""
    large = gt(w, 0.5)
    z = select(large, mul(sub(1.0, w), 0.5), mul(w, w))
    s = sqrt(z)
    error = select(lt(z, _TINY), zeros_of(typeof(z)), div(without(z, s, s), add(s, s)))
    first = select(large, s, w)
    more = select(large, error, zeros_of(typeof(w)))
    return first, add(more, mul(mul(first, z), polynomial(z, _ASIN))), large


def asin(x: Array) -> Array:
    """The arcsine."""
    first, more, large = _arc(abs(x))
    far = add(*_from_pair(_HALF_PI, mul(first, -2.0), mul(more, -2.0)))
    return _or_tiny(signed(select(large, far, add(first, more)), bits64(x)), x)


def _from_pair(number: tuple[float, float], first: Array, more: Array) -> Pair:
    """A number of two parts, and the pair of a smaller one."""
    total, rest = added(like(number[0], first), first)
    return total, add(rest, add(more, number[1]))


def acos(x: Array) -> Array:
    """The arccosine."""
    first, more, large = _arc(abs(x))
    negative = lt(bits64(x), 0)
    # For small numbers a quarter turn less the arcsine.
    first, more = [signed(v, bits64(neg(x))) for v in (first, more)]
    near = add(*_from_pair(_HALF_PI, first, more))
    obtuse = add(*_from_pair(_PI, mul(first, -2.0), mul(more, -2.0)))
    acute = neg(mul(add(first, more), 2.0))
    return select(large, select(negative, obtuse, acute), near)


# Roots

_CBRT = (1.8753921264036364, -1.8827303775486912, 1.618045271398967, -0.7561385228756231,
         0.14543150262171067)
_THIRD = 715094163      # a third of the exponent's offset, in the high bits, and a summand


def cbrt(x: Array) -> Array:
    """A third of the exponent, a polynomial of its error, rounded, and one step of Newton's.

    A subnormal number, which XLA:CPU takes for 0, is read as a whole number.
    """
    w = abs(x)
    small = lt(bits64(w), 1 << MANTISSA)
    whole = sub(of_bits64(bitwise_or(bits64(w), bits64(like(2.0 ** 52, w)))), 2.0 ** 52)
    w = select(small, whole, w)
    high = in_dtype(shift_right_logical(bits64(w), 32), INT32)
    third = in_dtype(mul(in_dtype(high, FLOAT64), 1 / 3), INT32)
    t = of_bits64(shift_left(in_dtype(add(third, _THIRD), INT64), 32))
    t = mul(t, polynomial(mul(mul(t, t), div(t, w)), _CBRT))
    # Its square is exact.
    t = of_bits64(bitwise_and(add(bits64(t), 1 << 29), -1 << 30))
    r = div(w, mul(t, t))
    t = add(t, mul(t, div(sub(r, t), add(add(t, t), r))))
    t = mul(t, select(small, like(2.0 ** -358, w), like(1.0, w)))
    return select(bitwise_and(is_finite(w), gt(w, 0.0)), signed(t, bits64(x)), x)


def product_power(x: Array, *, exponent: float) -> Array:
    """x to the half of an integer; if that is odd, zeros and -inf have no sign (C23, F.10.4.5).

    The exponent of x is made even and set aside, so that nothing is too large or too small.
    """
    w, doubled = abs(x), int(2 * exponent)
    e = shift_right_logical(bits64(w), MANTISSA)
    even = bitwise_and(sub(e, BIAS), -2)
    m = of_bits64(sub(bits64(w), shift_left(even, MANTISSA)))     # in [1, 4)
    first, more = root(m) if exponent % 1 else (m, like(0.0, m))
    for _ in range(int(math.fabs(exponent)) - (exponent % 1 == 0)):
        high, low = multiplied(first, m)
        first, more = joined(high, add(low, mul(more, m)))
    if exponent < 0:
        first, more = divided((like(1.0, w), like(0.0, w)), (first, more))
    found = add(first, more)
    # Twice half of the power of 2, which alone may be too large.
    scale = mul(in_dtype(in_dtype(even, INT32), FLOAT64), doubled / 2)
    for part in (1, 0):
        now = nearest(mul(scale, 0.5)) if part else sub(scale, nearest(mul(scale, 0.5)))
        found = mul(found, _two_to(now))
    zero, infinite = like(0.0, w), like(math.inf, w)
    if exponent < 0:
        zero, infinite = infinite, zero
    found = select(lt(w, _TINY), zero, select(eq(w, math.inf), infinite, found))
    if exponent % 1 == 0:
        found = signed(found, bits64(x)) if exponent % 2 else found
        return select(ne(x, x), x, found)
    negative = bitwise_and(lt(bits64(x), 0), bitwise_and(is_finite(w), ge(w, _TINY)))
    return select(bitwise_or(negative, ne(x, x)), like(math.nan, w), found)


def _two_to(k: Array) -> Array:
    """2**k of a whole number, which is 0 below float64's and infinite above."""
    k = select(gt(k, 1024.0), like(1024.0, k), select(lt(k, -1023.0), like(-1023.0, k), k))
    return of_bits64(shift_left(add(as_int64(k), BIAS), MANTISSA))


# Exponentials and logarithms

_LN2 = float.fromhex("0x1.62e42fefa3p-1"), float.fromhex("0x1.3de6af278ece6p-42")
_EXP = (0.16666666666666666, 0.04166666666665129, 0.008333333333332771, 0.0013888888905936687,
        0.00019841269851286078, 2.480153627860802e-05, 2.755728478590603e-06,
        2.7613867903621104e-07, 2.509331934877037e-08)
_LARGEST_EXPONENT = 1100.0      # of 2, up to which it is computed


def _exponential(w: Array) -> tuple[Pair, Array]:
    """The exponential of w, within ±LARGEST, as a pair near 1, and the power of 2 it is to have."""
    k = nearest(mul(w, 1 / math.log(2)))
    high, low = sub(w, mul(k, _LN2[0])), mul(k, _LN2[1])
    r, low = joined(high, neg(low))
    first, rest = joined(like(1.0, r), r)
    square = mul(r, r)
    more = add(mul(square, 0.5), add(mul(mul(square, r), polynomial(r, _EXP)), low))
    return (first, add(rest, more)), k


_SINH = (0.16666666666666666, 0.00833333333333336, 0.00019841269841146795, 2.7557319433872123e-06,
         2.505194658020595e-08, 1.6116519535312102e-10)
_FEW = 0.5
_LARGEST = 710.8     # beyond, the functions are infinite


def sinh(x: Array) -> Array:
    """The hyperbolic sine: half the exponential of |x| less its inverse."""
    a = abs(x)
    w = select(gt(a, _LARGEST), like(_LARGEST, a), a)
    (first, more), k = _exponential(w)
    # By a quarter of the power of 2: the exponential itself may be too large.
    first, more = joined(first, more)
    scale = _two_to(sub(k, 2.0))
    inverse = mul(div(like(0.25, w), first), div(like(0.25, w), scale))
    total, rest = joined(mul(first, scale), neg(inverse))
    found = mul(add(total, add(rest, mul(more, scale))), 2.0)
    z = mul(a, a)
    small = add(a, mul(mul(a, z), polynomial(z, _SINH)))
    found = select(lt(a, _FEW), small, select(ne(x, x), x, found))
    return _or_tiny(signed(found, bits64(x)), x)


_EXP2 = (0.6931471805599453, 0.24022650695910097, 0.05550410866482159, 0.009618129107606866,
         0.001333355814641777, 0.00015403530441773246, 1.5252733828772158e-05,
         1.3215442565252578e-06, 1.017806299099239e-07, 7.072590482431258e-09,
         4.4548639774182233e-10)
_LN2_HIGH, _LN2_LOW = float.fromhex("0x1.62e42f8p-1"), float.fromhex(
    "0x1.be8e7bcd5e4f2p-27")


def exp2(x: Array) -> Array:
    """2 to the power x."""
    x_ = select(gt(x, _LARGEST_EXPONENT), like(_LARGEST_EXPONENT, x), select(
        lt(x, -_LARGEST_EXPONENT), like(-_LARGEST_EXPONENT, x), x))
    k = nearest(x_)
    f = sub(x_, k)
    high, low = halves(f)
    first, rest = mul(high, _LN2_HIGH), add(mul(low, _LN2_HIGH), mul(f, _LN2_LOW))
    total, error = joined(like(1.0, f), first)
    more = mul(mul(f, f), polynomial(f, _EXP2[1:]))
    found = add(total, add(error, add(rest, more)))
    half = nearest(mul(k, 0.5))
    return mul(mul(found, _two_to(half)), _two_to(sub(k, half)))


_LOG = (0.6666666666666666, 0.40000000000000885, 0.28571428570799784, 0.22222222392582106,
        0.18181795547515953, 0.15386244737852042, 0.13268638364051974, 0.1308803489814203)
_ROOT_BITS = 0x3FE6A09E         # the highest of √½


def _taken_apart(w: Array) -> tuple[Array, Array, Array, Array]:
    """k, f, half of its square and a rest: the logarithm of w is k log(2) + f - half + rest; w is
    normal, > 0."""
    bits = bits64(w)
    high = in_dtype(shift_right_logical(bits, 32), INT32)
    e = shift_right_arithmetic(sub(high, _ROOT_BITS), MANTISSA - 32)
    f = sub(of_bits64(sub(bits, shift_left(in_dtype(e, INT64), MANTISSA))), 1.0)
    s = div(f, add(f, 2.0))
    z = mul(s, s)
    half = mul(mul(f, f), 0.5)
    return in_dtype(e, FLOAT64), f, half, mul(s, add(half, mul(z, polynomial(z, _LOG))))


def _logarithm(w: Array, error: Array, doubled: Array | None = None) -> Array:
    """The logarithm of w (1 + error), w normal and > 0; of twice that where it is `doubled`."""
    k, f, _, rest = _taken_apart(w)
    if doubled is not None:
        k = add(k, in_dtype(doubled, FLOAT64))
    square, low = multiplied(f, f)
    first, lost = joined(mul(k, _LN2[0]), f)
    first, more = joined(first, mul(square, -0.5))
    rest = add(add(mul(k, _LN2[1]), error), sub(rest, mul(low, 0.5)))
    return add(first, add(more, add(lost, rest)))


def _at_ends(found: Array, x: Array, least: float) -> Array:
    """A logarithm where x is below the least number, infinite, or NaN."""
    found = select(lt(x, least), like(math.nan, x), found)
    return select(bitwise_or(eq(x, math.inf), ne(x, x)), x, found)


def log1p(x: Array) -> Array:
    """The natural logarithm of 1 + x."""
    ordinary = bitwise_and(gt(x, -1.0), lt(x, math.inf))
    v = select(ordinary, x, zeros_of(typeof(x)))
    total, rest = added(like(1.0, v), v)
    found = _logarithm(total, div(rest, total))
    found = select(lt(abs(x), 2.0 ** -54), x, found)
    return _at_ends(select(eq(x, -1.0), like(-math.inf, x), found), x, -1.0)


_FAR, _NEAR = 2.0 ** 28, 2.0 ** -28     # where inverse functions are log(2 x), or x itself


def _plus_root(v: Array, far: Array, other: float) -> Array:
    """The logarithm of v + √(v² + other), of twice v where it is far."""
    w = select(far, like(1.0, v), v)
    square, low = multiplied(w, w)
    total, rest = added(like(other, v), square)
    total, rest = added(total, add(rest, low))
    r = reciprocal_root(total, 4)
    s = mul(total, r)
    more = mul(mul(add(without(total, s, s), rest), 0.5), r)
    first, rest = added(w, s)
    error = mul(add(rest, more), reciprocal(first, 3))
    first, error = select(far, v, first), select(far, zeros_of(typeof(v)), error)
    return _logarithm(first, error, far)


def asinh(x: Array) -> Array:
    """The inverse hyperbolic sine."""
    a = abs(x)
    ordinary = lt(a, math.inf)
    v = select(ordinary, a, like(1.0, a))
    found = signed(_plus_root(v, gt(v, _FAR), 1.0), bits64(x))
    return select(bitwise_and(ordinary, ge(a, _NEAR)), found, x)


def acosh(x: Array) -> Array:
    """The inverse hyperbolic cosine."""
    ordinary = bitwise_and(gt(x, 1.0), lt(x, math.inf))
    v = select(ordinary, x, like(2.0, x))
    found = _plus_root(v, gt(v, _FAR), -1.0)
    return _at_ends(select(eq(x, 1.0), zeros_of(typeof(x)), found), x, 1.0)


def atanh(x: Array) -> Array:
    """The inverse hyperbolic tangent."""
    a = abs(x)
    v = select(lt(a, 1.0), a, zeros_of(typeof(a)))
    one = like(1.0, a)
    ratio, more = divided((add(v, v), like(0.0, a)), added(one, neg(v)))
    first, rest = added(one, ratio)
    error = mul(add(rest, more), reciprocal(first, 3))
    found = signed(mul(_logarithm(first, error), 0.5), bits64(x))
    found = select(lt(a, 1.0), found, div(x, sub(1.0, a)))
    found = select(gt(a, 1.0), like(math.nan, a), found)
    return select(lt(a, _NEAR), x, found)


def log_to(x: Array, *, base: int) -> Array:
    """The logarithm to 2 or 10, exact at their powers."""
    k, f, half, rest = _taken_apart(select(ge(x, _TINY), x, like(1.0, x)))
    (high, low), rest = halves(f), sub(half, rest)
    (c, more), (word, word_low) = _RECIPROCALS[base], _WORDS[base]
    low = sub(add(mul(low, c), mul(f, more)), mul(rest, c + more))
    first, lost = joined(mul(k, word), mul(high, c))
    found = add(first, add(lost, add(low, mul(k, word_low))))
    found = select(lt(abs(x), _TINY), like(-math.inf, x), found)
    return _at_ends(found, x, math.nextafter(-_TINY, 0))


# 1 / log(2) and 1 / log(10), and log(2) to these bases: factors of exact products, and rests.
_RECIPROCALS = {2: (1.4426950216293335, 1.9259629911266175e-08),
                10: (0.4342944771051407, 4.798111141615973e-09)}
_WORDS = {2: (1.0, 0.0), 10: (0.3010299956640665, -8.532344317057107e-14)}
