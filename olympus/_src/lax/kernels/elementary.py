"""What the formulas of elementwise functions share: polynomials, and sums of two numbers.

A pair is a float64 and a smaller one that is added to it. LLVM makes one operation of a product and
a sum, which rounds once. So where the error of a product is wanted, its factors have 26 bits, and
the product is exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...base.typing import Array
from ...core.trace import typeof
from ...types import dtypes
from ..arithmetic import RoundingMethod, abs, div, mul, neg, round, sub
from ..barriers import optimization_barrier_p
from ..bits import bitwise_and, shift_right_logical
from ..comparison import eq, lt, select
from ..convert import bitcast_convert_type_p, in_dtype
from ..creation import full
from ..families import add
from ..transcendental import sqrt

FLOAT32, FLOAT64, INT32, INT64 = map(dtypes.as_dtype, ("float32", "float64", "int32", "int64"))
MANTISSA, BIAS = 52, 1023       # of float64
_HIGH = -1 << 27                # the bits of a float64 that are its highest 26 digits
Pair = tuple[Array, Array]


def polynomial(z: Array, coefficients: Sequence[float]) -> Array:
    """Horner's scheme; the coefficient of the highest power is the last one."""
    found = mul(z, coefficients[-1])
    for c in coefficients[-2:0:-1]:
        found = mul(add(found, c), z)
    return add(found, coefficients[0])


def like(value: float, x: Array) -> Array:
    """An array of a number, of the shape and dtype of x."""
    return full(typeof(x).shape, value, typeof(x).dtype)


def nearest(x: Array) -> Array:
    """The nearest whole number."""
    return round(x, RoundingMethod.TO_NEAREST_EVEN)


def is_odd(k: Array) -> Array:
    """Whether integers are odd."""
    return eq(bitwise_and(k, 1), 1)


def bits64(x: Array) -> Array:
    """The bits of a float64."""
    return bitcast_convert_type_p.bind(x, new_dtype=INT64)


def of_bits64(x: Array) -> Array:
    """The float64 of these bits."""
    return bitcast_convert_type_p.bind(x, new_dtype=FLOAT64)


def as_int64(k: Array) -> Array:
    """Small whole float64 numbers; by way of int32, for which there are vectors of conversions."""
    return in_dtype(in_dtype(k, INT32), INT64)


def halves(x: Array) -> Pair:
    """The first 26 digits of float64 numbers, and the others: products of them are exact."""
    high = of_bits64(bitwise_and(bits64(x), _HIGH))
    return high, sub(x, high)


def added(x: Array, y: Array) -> Pair:
    """x + y as a pair."""
    total = _sum(x, y)
    rest = sub(total, x)
    return total, add(sub(x, sub(total, rest)), sub(y, rest))


def joined(x: Array, y: Array) -> Pair:
    """x + y as a pair, of |x| >= |y| or 0."""
    total = _sum(x, y)
    return total, sub(y, sub(total, x))


def _sum(x: Array, y: Array) -> Array:
    """x + y, hidden from XLA, which takes (x + 1) - 1 for x."""
    (total,) = optimization_barrier_p.bind(add(x, y))
    return total


def multiplied(x: Array, y: Array) -> Pair:
    """x y as a pair; its second number is up to 2**-25 of the first."""
    (a, b), (c, d) = halves(x), halves(y)
    return mul(a, c), add(add(mul(a, d), mul(b, c)), mul(b, d))


def without(x: Array, y: Array, z: Array) -> Array:
    """x - y z, which is near 0."""
    high, low = multiplied(y, z)
    return sub(sub(x, high), low)


# Less the bits of a number, those of its reciprocal, within 5.1 %.
_RECIPROCAL = 0x7FDE623822FC16E6


def reciprocal(x: Array, steps: int) -> Array:
    """1 / x of positive normal numbers by Newton's steps; three give 35 digits, four all but one.

    XLA:CPU computes a quotient that is read twice in a loop of its own, and its operands in both.
    """
    r = of_bits64(sub(_RECIPROCAL, bits64(x)))
    for _ in range(steps):
        r = mul(r, sub(2.0, mul(x, r)))
    return r


# This constant less half of a number's bits: the bits of 1 / sqrt(x), within 3.5 %.
_RECIPROCAL_ROOT = 0x5FE6EB50C7B537A9


def reciprocal_root(x: Array, steps: int) -> Array:
    """1 / √x of positive normal numbers by Newton's steps; four give all digits but one."""
    r = of_bits64(sub(_RECIPROCAL_ROOT, shift_right_logical(bits64(x), 1)))
    half = mul(x, 0.5)
    for _ in range(steps):
        r = mul(r, sub(1.5, mul(half, mul(r, r))))
    return r


def divided(x: Pair, y: Pair) -> Pair:
    """x / y as a pair, of y from 2**-1000 to 2**1000: its second number is below 2**-34 of it."""
    r = reciprocal(abs(y[0]), 3)
    r = select(lt(y[0], 0.0), neg(r), r)
    q = mul(x[0], r)
    rest = sub(add(without(x[0], q, y[0]), x[1]), mul(q, y[1]))
    return q, mul(rest, r)


def root(x: Array) -> Pair:
    """√x as a pair."""
    s = sqrt(x)
    return s, div(without(x, s, s), add(s, s))
