"""The regularised incomplete beta function, by its continued fraction.

With y = 1 - x, s = a + b and D = xᵃ yᵇ / B(a, b), I is D over a continued fraction (DLMF 8.17.22,
its even part), which converges fast for x < (a+1) / (s+2); beyond, I(a, b; x) = 1 - I(b, a; y), or
the power series in x (DLMF 8.17.7) where b x <= 1 and so I may be small, or the series of I(b, a;
y) without its first term, 1, where b <= 1. D is a product of powers of ratios near 1, as Loader
(2000) computes the binomial distribution: large parameters cost no digits. Beyond 1e9, in float32
1e5, it is the uniform expansion (DLMF 8.18.9). What is known of y beside x costs no digits, either.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...base.typing import Array, ArrayLike
from ...core.trace import typeof
from ...types import dtypes
from ..arithmetic import abs, div, max, min, mul, neg, reciprocal, sub
from ..bits import bitwise_and, bitwise_not, bitwise_or, bitwise_xor
from ..comparison import eq, ge, gt, le, lt, select
from ..creation import full_like
from ..families import add, match_shapes, operand
from ..transcendental import exp, expm1, log, log1p, sqrt
from .classical import digamma, erfc, polygamma_above
from .incomplete_gamma import (
    RGAMMA, STIRLING, half_erfc, reduced_rgamma, rgamma1p, scaled_log_minus, stirling,
)
from .parameter_derivatives import bell, beta_order
from .series import (
    Computed, Loop, Step, enough, is_short, iterate_either, least_normal, log1p_minus,
    log1p_minus_near, polynomial_in,
)

_LARGE, _STEPS = 16.0, 100_000
# From where the uniform expansion is right to the last digits, by the bits that are computed in.
_UNIFORM = {64: 1e9, 32: 1e5}
_TWICE_PI = 2.0 * math.pi


def _correction(a: Array) -> Array:
    """ln Γ(a+1) - ln √(2πa) - a ln a + a for all a > 0."""
    big = ge(a, _LARGE)
    low = select(big, full_like(a, 1.0), a)
    below = sub(sub(low, mul(low, log(low))),
                add(log(rgamma1p(low)), mul(0.5, log(mul(_TWICE_PI, low)))))
    return select(big, stirling(max(a, full_like(a, _LARGE))), below)


def _power_ratio(a: Array, s: Array, x: Array, excess: Array) -> Array:
    """a (ln r - (r - 1)) with r = x s / a = 1 + excess / a."""
    if is_short(a):
        one = full_like(a, 1.0)     # s / a may overflow, x / a may be 0
        ratio = mul(div(x, min(a, one)), div(s, max(a, one)))
        return scaled_log_minus(a, ratio, excess)
    ratio, part = mul(x, div(s, a)), div(excess, a)
    near = mul(a, select(lt(ratio, 0.5), sub(log(ratio), part), log1p_minus(part)))
    return select(gt(ratio, 1e10), sub(mul(a, sub(add(log(x), log(s)), log(a))), excess), near)


def _exponent(a: Array, b: Array, x: Array, y: Array) -> tuple[Array, Array]:
    """ln (x / x₀)ᵃ (y / y₀)ᵇ, where x₀ = a / s, and (x - x₀) s."""
    s = add(a, b)
    excess = sub(mul(b, x), mul(a, y))
    return add(_power_ratio(a, s, x, excess), _power_ratio(b, s, y, neg(excess))), excess


def _front(a: Array, b: Array, exponent: Array) -> tuple[Array, ArrayLike, Array]:
    """xᵃ yᵇ / B(a, b): two factors, the second perhaps tiny, and the exponent of the third one."""
    s = add(a, b)
    if is_short(a):
        (of_a, in_a), (of_b, in_b), (of_both, in_both) = map(reduced_rgamma, (a, b, s))
        root = mul(mul(of_a, 1.0 / math.sqrt(_TWICE_PI)), div(of_b, of_both))
        rest = sub(add(in_a, in_b), in_both)
        return mul(root, div(max(a, b), s)), min(a, b), add(exponent, rest)
    root = sqrt(div(mul(max(a, b), div(min(a, b), s)), _TWICE_PI))
    rest = sub(sub(_correction(s), _correction(a)), _correction(b))
    return root, 1.0, add(exponent, rest)


def _product(a: Array, b: Array, exponent: Array) -> Array:
    root, low, whole = _front(a, b, exponent)
    return mul(mul(root, low), exp(whole))


def beta_product(a: Array, b: Array, x: Array, y: Array) -> Array:
    """xᵃ yᵇ / B(a, b) for 0 < x, y <= 1 and positive finite a, b."""
    return _product(a, b, _exponent(a, b, x, y)[0])


def _fraction_step(tol: float) -> Step:
    """Lentz's algorithm."""
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array, Array]]:
        (c, d, h), (a, b, x, excess) = state, constants        # excess = b x - a y
        m = add(i, 1.0)
        place = add(a, mul(2.0, m))
        even = div(mul(mul(m, sub(b, m)), x), sub(place, 1.0))
        front = mul(even, mul(mul(add(a, i), div(add(add(a, b), i), sub(place, 1.0))), x))
        own = sub(add(1.0, mul(m, sub(2.0, x))), excess)
        level = add(m, add(even, mul(div(add(a, m), add(place, 1.0)), own)))
        d = reciprocal(add(level, mul(front, d)))
        c = add(level, div(front, c))
        ratio = mul(c, d)
        return gt(abs(sub(ratio, 1.0)), tol), (c, d, mul(h, ratio))
    return step


def _fraction(tol: float, where: Array, a: Array, b: Array, x: Array, y: Array) -> Loop:
    """xᵃ yᵇ / B(a, b) over I: the even part of DLMF 8.17.22, whose terms know x and y."""
    excess = sub(mul(b, x), mul(a, y))
    # It is 0 where b x rounds to 1, and Lentz's algorithm divides by it.
    least = full_like(a, float(dtypes.finfo(typeof(a).dtype).eps))
    first = mul(div(a, add(a, 1.0)), max(sub(1.0, excess), least))
    first = select(where, first, full_like(a, 1.0))
    state = (first, full_like(a, 0.0), first)
    return Loop(_fraction_step(tol), where, state, (a, b, x, excess))


def _series_step(tol: float) -> Step:
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array]]:
        (term, total), (a, b, x) = state, constants
        n = add(i, 1.0)
        term = mul(term, mul(div(sub(n, b), n), x))
        part = div(mul(a, term), add(a, n))
        total = add(total, part)
        return gt(abs(part), mul(tol, abs(total))), (term, total)
    return step


def _short(p: Array) -> float:
    """From where Stirling's series has the digits that are computed in."""
    return 4.0 if is_short(p) else 10.0


def _stirling_change(p: Array, q: Array) -> Array:
    """stirling(p+q) - stirling(p), by divided differences of its polynomial in 1/p²."""
    u, w = reciprocal(add(p, q)), reciprocal(p)
    x, y = mul(u, u), mul(w, w)
    coefficients = enough(p, STIRLING, _short(p) ** -2)
    value = full_like(p, coefficients[-1])
    slope = full_like(p, 0.0)
    for c in coefficients[-2::-1]:
        slope = add(mul(slope, y), value)
        value = add(mul(value, x), c)
    return neg(mul(mul(q, mul(u, w)), add(value, mul(mul(w, add(u, w)), slope))))


def _rising(p: Array, q: Array) -> tuple[Array, Array]:
    """p or, if that is small, p + `_short(p)`, and Π (p+k+q) / (p+k) - 1 over those between."""
    least = _short(p)
    short = lt(p, least)
    low, product = select(short, p, full_like(p, 1.0)), full_like(p, 0.0)
    if is_short(p):
        # p (p+1) (p+2) (p+3) is u (u+2) with u = p² + 3 p.
        u, end = mul(low, add(low, 3.0)), add(low, q)
        v = mul(end, add(end, 3.0))
        rise = mul(div(q, u), add(add(low, end), 3.0))      # (v - u) / u
        product = mul(rise, div(add(add(u, v), 2.0), add(u, 2.0)))
    else:
        for k in range(int(least)):
            product = add(product, mul(div(q, add(low, float(k))), add(1.0, product)))
    return select(short, add(p, least), p), select(short, product, full_like(p, 0.0))


def _log_ratio(p: Array, q: Array) -> Array:
    """ln Γ(p+q) / Γ(p) for 0 < q <= 1, with all digits of the terms of order q."""
    high, product = _rising(p, q)
    share = div(q, high)
    value = sub(mul(q, log(add(high, q))), mul(0.5, log1p(share)))
    value = add(add(value, mul(high, log1p_minus(share))), _stirling_change(high, q))
    return sub(value, log1p(product))


def _near_one(p: Array, q: Array, v: Array, rest: Array) -> Array:
    """I(p, q; 1 - v) for q <= 1: 1 - e (1 + rest), rest = q Σ (1-p)ₙ vⁿ / (n! (q+n))."""
    rgamma = mul(q, polynomial_in(q, RGAMMA[1:], 1.0))      # 1 / Γ(1+q) - 1
    if is_short(p):
        high, product = _rising(p, q)
        share = div(q, high)
        minus = log1p_minus_near(share)
        value = add(mul(q, add(log(v), log(add(high, q)))), mul(sub(high, 0.5), minus))
        value = add(sub(value, mul(0.5, share)), _stirling_change(high, q))
        value = add(value, log1p(div(sub(rgamma, product), add(1.0, product))))
        less = expm1(value)
        return neg(add(less, mul(add(less, 1.0), rest)))
    exponent = add(mul(q, log(v)), log1p(rgamma))
    exponent = add(exponent, _log_ratio(p, q))
    return neg(add(expm1(exponent), mul(exp(exponent), rest)))


def _uniform(a: Array, b: Array, exponent: Array, excess: Array) -> Array:
    """½ erfc(-h / √2) + exp(-h²/2) (1/h - 1/w) / √(2π): the first term of DLMF 8.18.9.

    h²/2 is minus the exponent of the density, w about h: the distance from the mean over the
    deviation. Their difference is as 1/√a, terms left out as its third power.
    """
    low, high = min(a, b), max(a, b)
    deviation = sqrt(mul(high, div(low, add(a, b))))
    w = div(excess, deviation)
    root = sqrt(mul(-2.0, min(exponent, full_like(a, 0.0))))
    h = select(lt(w, 0.0), neg(root), root)
    # h² = w² (1 - 2 first w + second w²)
    of_a, of_b = div(deviation, a), div(deviation, b)
    first = mul(div(sub(of_a, of_b), 3.0), mul(add(of_a, of_b), deviation))
    second = mul(0.5, add(mul(of_a, mul(of_a, of_a)), mul(of_b, mul(of_b, of_b))))
    second = mul(second, deviation)
    close = lt(abs(w), 1.0)
    part = add(first, mul(w, sub(mul(1.5, mul(first, first)), mul(0.5, second))))
    far_h, far_w = (select(close, full_like(a, 1.0), v) for v in (h, w))
    part = select(close, part, sub(reciprocal(far_h), reciprocal(far_w)))
    part = div(mul(part, exp(exponent)), math.sqrt(_TWICE_PI))
    if is_short(a):
        return add(half_erfc(ge(w, 0.0), min(exponent, full_like(a, 0.0)))[0], part)
    return add(mul(0.5, erfc(mul(h, -math.sqrt(0.5)))), part)


def _inside(a: Array, b: ArrayLike, x: Array, y: Array) -> Array:
    """Whether 0 < x, y <= 1 and 0 < a, b < inf."""
    inside = bitwise_and(lt(max(a, b), math.inf), le(max(x, y), 1.0))
    return bitwise_and(inside, ge(min(min(a, b), min(x, y)), least_normal(x)))


def _at_edges(a: Array, b: ArrayLike, x: Array, y: Array) -> Array:
    """The limits where x is 0 or 1 and where one of a and b is 0 or infinite."""
    zero, one, nan = (full_like(x, v) for v in (0.0, 1.0, math.nan))
    least = least_normal(x)     # arithmetic takes less for 0, comparisons with 0 may not
    legal = bitwise_and(bitwise_and(ge(a, 0.0), ge(b, 0.0)), bitwise_and(ge(x, 0.0), ge(y, 0.0)))
    left = bitwise_or(lt(a, least), eq(b, math.inf))       # all of the weight is at 0
    right = bitwise_or(lt(b, least), eq(a, math.inf))      # ... at 1
    value = select(lt(x, least), zero, select(bitwise_or(left, lt(y, least)), one, zero))
    return select(bitwise_and(legal, bitwise_not(bitwise_and(left, right))), value, nan)


def _smaller_parameters(a: Array, b: Array, x: Array, y: Array) -> Sequence[Array]:
    """a, b, x and y of nearly the same distribution, and the factor of its density, in float32.

    From 2^120 on sums of parameters overflow and their inverses are 0. Where the other parameter is
    large, too, all of the weight is at one number; where it is not, the larger parameter times the
    smaller one of x and y has a gamma distribution.
    """
    one, scale = full_like(a, 1.0), full_like(a, 2.0 ** -12)
    large, less = ge(max(a, b), 2.0 ** 120), lt(a, b)
    both = bitwise_and(large, ge(min(a, b), 2.0 ** 72))
    for_large, for_small = select(large, scale, one), select(both, scale, one)
    near = select(less, x, y)
    moved = bitwise_and(bitwise_xor(large, both), lt(near, 2.0 ** -20))
    near = mul(near, 2.0 ** 12)
    x = select(moved, select(less, near, sub(1.0, near)), x)
    y = select(moved, select(less, sub(1.0, near), near), y)
    factor = select(both, full_like(a, 2.0 ** 6), select(moved, full_like(a, 2.0 ** 12), one))
    return (mul(a, select(less, for_small, for_large)), mul(b, select(less, for_large, for_small)),
            x, y, factor)


def beta_value(tol: float, a: Array, b: ArrayLike, x: Array, y: Array | None = None) -> Array:
    """I(a, b; x); y is 1 - x where that is known to more digits."""
    y = sub(1.0, x) if y is None else y
    inside = _inside(a, b, x, y)
    p, q, u, v = (select(inside, z, full_like(x, 0.5)) for z in (a, b, x, y))
    if is_short(x):
        p, q, u, v, _ = _smaller_parameters(p, q, u, v)
    uniform = ge(min(p, q), _UNIFORM[dtypes.finfo(typeof(x).dtype).bits])
    whole = add(add(p, q), 2.0)
    # Whether x is beyond (p+1) / (p+q+2), by the smaller of x and y.
    swap = select(lt(p, q), gt(mul(u, whole), add(p, 1.0)), lt(mul(v, whole), add(q, 1.0)))
    direct = bitwise_and(swap, bitwise_and(le(mul(q, u), 1.0), le(u, 0.9)))
    swap = bitwise_and(swap, bitwise_not(direct))
    close = bitwise_and(swap, le(q, 1.0))
    # Σ p (1-q)ₙ uⁿ / (n! (p+n)) = I p B / uᵖ, or that of I(q, p; v) without its first term
    half, one = full_like(x, 0.5), full_like(x, 1.0)
    by_series = bitwise_or(direct, close)
    k, l, m, n = (select(swap, i, j) for i, j in ((q, p), (p, q), (v, u), (u, v)))
    series = Loop(_series_step(tol), bitwise_and(by_series, inside),
                  (one, select(close, full_like(x, 0.0), one)), (k, l, m))
    go_on = bitwise_and(inside, bitwise_not(bitwise_or(uniform, by_series)))
    (_, total), fraction = iterate_either(series, _fraction(tol, go_on, k, l, m, n), _STEPS)
    power = mul(total, exp(neg(mul(q, log1p(neg(select(direct, u, half)))))))
    r, s, w = (select(close, z, half) for z in (p, q, v))
    near_one = _near_one(r, s, w, total)
    exponent, excess = _exponent(p, q, u, v)
    expanded, (root, low, power_of_e) = _uniform(p, q, exponent, excess), _front(p, q, exponent)
    factor = select(direct, div(power, p), reciprocal(fraction[2]))
    part = mul(mul(mul(root, exp(power_of_e)), factor), low)
    value = select(close, near_one, select(swap, sub(1.0, part), part))
    value = select(uniform, expanded, value)
    # The factor a of the density may underflow. The omitted terms have order a ln x.
    value = select(lt(a, least_normal(a) ** 0.7), reciprocal(add(div(a, b), 1.0)), value)
    return select(inside, value, _at_edges(a, b, x, y))


def _density(tol: float, a: Array, b: Array, x: Array) -> Array:
    """xᵃ⁻¹ (1-x)ᵇ⁻¹ / B(a, b); the limits at 0 and 1."""
    inside = _inside(a, b, x, sub(1.0, x))
    half = full_like(x, 0.5)
    p, q, u = (select(inside, v, half) for v in (a, b, x))
    v, factor = sub(1.0, u), None
    if is_short(x):
        p, q, u, v, factor = _smaller_parameters(p, q, u, v)
    # The power may underflow where the density does not: half of it for x, half for 1-x.
    root, low, whole = _front(p, q, _exponent(p, q, u, v)[0])
    half = exp(mul(0.5, whole))
    near_zero = half
    if is_short(x):     # it may be infinite over the least numbers
        scale = select(lt(u, 2.0 ** -100), full_like(x, 2.0 ** -8), full_like(x, 1.0))
        near_zero, low = mul(half, scale), div(low, scale)
    value = mul(mul(mul(root, div(near_zero, u)), div(half, v)), low)
    value = value if factor is None else mul(value, factor)
    zero, inf, nan = (full_like(x, c) for c in (0.0, math.inf, math.nan))
    edge = nan
    for end, own, other in ((0.0, a, b), (1.0, b, a)):
        limit = select(lt(own, 1.0), inf, select(eq(own, 1.0), other, zero))
        legal = bitwise_and(bitwise_and(gt(a, 0.0), gt(b, 0.0)), eq(x, end))
        edge = select(legal, limit, edge)
    return select(inside, value, edge)


def _slope(tol: float, a: Array, b: Array, x: Array, m: int, n: int) -> Array:
    """∂ᵐ⁺ⁿI/∂aᵐ∂bⁿ; 0 where I does not depend on both parameters."""
    inside = _inside(a, b, x, sub(1.0, x))
    p, q, u = (select(inside, v, full_like(x, 0.5)) for v in (a, b, x))
    front = div(beta_product(p, q, u, sub(1.0, u)), mul(p, q))
    edge = mul(0.0, _at_edges(a, b, x, sub(1.0, x)))
    for v in (a, b):
        edge = select(eq(v, 0.0), full_like(x, math.nan), edge)
    return select(inside, mul(front, beta_order(p, q, u, m, n)), edge)


def _slope_in_x(t: Array, y: Array, a: Array, b: Array, x: Array, m: int, n: int) -> Array:
    """The tangent in x by the density, whose logarithm `cumulant` differentiates."""
    density = beta_density_p.bind(a, b, x)
    shaped: Any = match_shapes((a, b, x))
    a, b, x = shaped
    s, none = add(a, b), eq(density, 0.0)
    x = select(none, full_like(x, 0.5), x)      # at an end: its logarithm may be infinite

    @functools.cache
    def cumulant(i: int, j: int) -> Array:
        if i + j == 1:
            own, place = (b, log1p(neg(x))) if j else (a, log(x))
            return add(place, sub(digamma(s), digamma(own)))
        total = polygamma_above(float(i + j - 1), s)
        return total if i and j else sub(total, polygamma_above(float(i + j - 1), b if j else a))

    slope = mul(density, bell(cumulant, m, n))
    return mul(t, select(none, full_like(density, 0.0), slope))


def _density_in_x(t: Array, p: Array, a: Array, b: Array, x: Array) -> Array:
    shaped: Any = match_shapes((a, b, x))
    a, b, x = shaped
    total = sub(add(a, b), 1.0)

    def part(own: Array, place: Array, below: Callable[[Array], Array]) -> Array:
        """p (own - 1) / place; at the end, place 0, the density of own - 1 has its limit."""
        one, above = full_like(own, 1.0), gt(own, 1.0)
        limit = mul(total, below(select(above, sub(own, 1.0), one)))
        limit = select(above, limit, full_like(limit, 0.0))
        at_end = bitwise_and(eq(place, 0.0), ge(own, 1.0))
        slope = mul(p, div(sub(own, 1.0), select(at_end, full_like(place, 1.0), place)))
        return select(at_end, limit, slope)

    return mul(t, sub(part(a, x, lambda a: beta_density_p.bind(a, b, x)),
                      part(b, sub(1.0, x), lambda b: beta_density_p.bind(a, b, x))))


def _density_in(t: Array, p: Array, own: Array, total: Array, x: Array,
                log_of: Callable[[Array], Array]) -> Array:
    none = eq(p, 0.0)       # as at an end, where the logarithm may be infinite
    log_x = log_of(select(none, full_like(x, 0.5), x))
    slope = mul(p, add(log_x, sub(digamma(total), digamma(own))))
    return mul(t, select(none, full_like(p, 0.0), slope))


beta_density_p = Computed("beta_density", _density, (
    lambda t, p, a, b, x: _density_in(t, p, a, add(a, b), x, log),
    lambda t, p, a, b, x: _density_in(t, p, b, add(a, b), x, lambda x: log1p(neg(x))),
    _density_in_x))
# ∂ᵐ⁺ⁿI/∂aᵐ∂bⁿ for m + n >= 1.
betainc_slope_p = Computed("betainc_slope", _slope, (
    lambda t, y, a, b, x, m, n: mul(t, betainc_slope_p.bind(a, b, x, m=m + 1, n=n)),
    lambda t, y, a, b, x, m, n: mul(t, betainc_slope_p.bind(a, b, x, m=m, n=n + 1)),
    _slope_in_x))
# I(b, a; 1 - x) without rounding 1 - x.
betaincc_p = Computed("betaincc", lambda tol, a, b, x: beta_value(tol, b, a, sub(1.0, x), x), (
    lambda t, y, a, b, x: neg(mul(t, betainc_slope_p.bind(a, b, x, m=1, n=0))),
    lambda t, y, a, b, x: neg(mul(t, betainc_slope_p.bind(a, b, x, m=0, n=1))),
    lambda t, y, a, b, x: neg(mul(t, beta_density_p.bind(a, b, x)))))
regularized_incomplete_beta_p = Computed("regularized_incomplete_beta", beta_value, (
    lambda t, y, a, b, x: mul(t, betainc_slope_p.bind(a, b, x, m=1, n=0)),
    lambda t, y, a, b, x: mul(t, betainc_slope_p.bind(a, b, x, m=0, n=1)),
    lambda t, y, a, b, x: mul(t, beta_density_p.bind(a, b, x))))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function I(a, b; x) (DLMF 8.17.2).

    Args:
      a, b: floats >= 0.
      x: floats in [0, 1], of the dtype and shape of `a` and `b`.
    Returns: Probabilities in [0, 1], of the operands' shape and dtype.

    NaN outside of these ranges, and where both a and b are 0 or infinite; with one of them 0 or
    infinite, the limit: all of the weight is at one end. The fraction takes O(√min(a, b)) steps
    near x = a / (a+b), up to 1e9. Differentiable in all three.

    >>> olympus.lax.betainc(2.0, 3.0, 0.5)
    Array(0.6875, dtype=float32, weak_type=True)
    """
    xs = [a, b, x]
    like = next((v for v in xs if type(v) not in (bool, int, float)), x)
    return regularized_incomplete_beta_p.bind(*match_shapes([operand(v, like) for v in xs]))
