"""The regularised incomplete beta function, by its continued fraction.

With y = 1 - x, s = a + b and D = xᵃ yᵇ / (a B(a, b)), I = D / (1 + d₁ / (1 + d₂ / (1 + ...)))
(DLMF 8.17.22), which converges fast for x < (a+1) / (s+2); beyond, I(a, b; x) = 1 - I(b, a; y), or
the power series in x (DLMF 8.17.7) where b x <= 1 and so I may be small. D is a product of powers
of ratios near 1, as Loader (2000) computes the binomial distribution: large parameters cost no
digits.
"""

from __future__ import annotations

import functools
import math
from typing import Any

from ...base.typing import Array, ArrayLike
from ..arithmetic import abs, div, max, mul, neg, reciprocal, sub
from ..bits import bitwise_and, bitwise_not, bitwise_or
from ..comparison import eq, ge, gt, le, lt, select
from ..creation import full_like
from ..families import add, match_shapes, operand
from ..transcendental import exp, log, log1p, sqrt
from .classical import digamma, polygamma
from .incomplete_gamma import rgamma1p, stirling
from .parameter_derivatives import bell, beta_order
from .series import Computed, iterate, log1p_minus

__all__ = ["betainc", "regularized_incomplete_beta_p"]

_LARGE, _STEPS = 16.0, 20000
_TWICE_PI = 2.0 * math.pi


def _correction(a: Any) -> Any:
    """ln Γ(a+1) - ln √(2πa) - a ln a + a for all a > 0."""
    big = ge(a, _LARGE)
    low = select(big, full_like(a, 1.0), a)
    below = sub(sub(low, mul(low, log(low))),
                add(log(rgamma1p(low)), mul(0.5, log(mul(_TWICE_PI, low)))))
    return select(big, stirling(max(a, full_like(a, _LARGE))), below)


def _power_ratio(a: Any, excess: Any, ratio: Any) -> Any:
    """a (ln r - (r - 1)) with r = `ratio` = 1 + excess / a."""
    part = div(excess, a)
    return mul(a, select(lt(ratio, 0.5), sub(log(ratio), part), log1p_minus(part)))


def beta_product(a: Any, b: Any, x: Any, y: Any) -> Any:
    """xᵃ yᵇ / B(a, b) for 0 < x, y < 1 and positive finite a, b."""
    s = add(a, b)
    excess = sub(mul(b, x), mul(a, y))
    exponent = add(_power_ratio(a, excess, mul(x, div(s, a))),
                   _power_ratio(b, neg(excess), mul(y, div(s, b))))
    rest = sub(sub(_correction(s), _correction(a)), _correction(b))
    return mul(sqrt(div(mul(a, div(b, s)), _TWICE_PI)), exp(add(exponent, rest)))


def _fraction_step(tol: float) -> Any:
    """Two steps of Lentz's algorithm, for d₂ₘ and d₂ₘ₊₁."""
    def step(i: Any, state: Any, constants: Any) -> Any:
        (c, d, h), (a, b, x) = state, constants
        m = add(i, 1.0)
        twice = add(a, mul(2.0, m))
        even = div(div(mul(mul(m, sub(b, m)), x), sub(twice, 1.0)), twice)
        odd = neg(mul(div(add(a, m), twice), mul(div(add(add(a, b), m), add(twice, 1.0)), x)))
        d = reciprocal(add(1.0, mul(even, d)))
        c = add(1.0, div(even, c))
        h = mul(h, mul(c, d))
        d = reciprocal(add(1.0, mul(odd, d)))
        c = add(1.0, div(odd, c))
        ratio = mul(c, d)
        return gt(abs(sub(ratio, 1.0)), tol), (c, d, mul(h, ratio))
    return step


def _fraction(tol: float, where: Any, a: Any, b: Any, x: Any) -> Any:
    first = neg(mul(div(add(a, b), add(a, 1.0)), x))
    d = reciprocal(add(1.0, first))
    one = full_like(a, 1.0)
    return iterate(_fraction_step(tol), where, (one, d, d), (a, b, x), _STEPS)[2]


def _series_step(tol: float) -> Any:
    def step(i: Any, state: Any, constants: Any) -> Any:
        (term, total), (a, b, x) = state, constants
        n = add(i, 1.0)
        term = mul(term, mul(div(sub(n, b), n), x))
        part = div(mul(a, term), add(a, n))
        total = add(total, part)
        return gt(abs(part), mul(tol, abs(total))), (term, total)
    return step


def _series(tol: float, where: Any, a: Any, b: Any, x: Any) -> Any:
    """I / xᵃ times a B(a, b)."""
    one = full_like(a, 1.0)
    return iterate(_series_step(tol), where, (one, one), (a, b, x), _STEPS)[1]


def _inside(a: Any, b: Any, x: Any) -> Any:
    """Whether 0 < x < 1 and 0 < a, b < inf."""
    inside = bitwise_and(gt(x, 0.0), lt(x, 1.0))
    for v in (a, b):
        inside = bitwise_and(inside, bitwise_and(gt(v, 0.0), lt(v, math.inf)))
    return inside


def _at_edges(a: Any, b: Any, x: Any) -> Any:
    """The limits where x is 0 or 1 and where one of a and b is 0 or infinite."""
    zero, one, nan = (full_like(x, v) for v in (0.0, 1.0, math.nan))
    legal = bitwise_and(bitwise_and(ge(a, 0.0), ge(b, 0.0)), bitwise_and(ge(x, 0.0), le(x, 1.0)))
    left = bitwise_or(eq(a, 0.0), eq(b, math.inf))      # all of the weight is at 0
    right = bitwise_or(eq(b, 0.0), eq(a, math.inf))     # ... at 1
    value = select(eq(x, 0.0), zero, select(bitwise_or(left, eq(x, 1.0)), one, zero))
    return select(bitwise_and(legal, bitwise_not(bitwise_and(left, right))), value, nan)


def beta_value(tol: float, a: Any, b: Any, x: Any, y: Any = None) -> Any:
    """I(a, b; x); y is 1 - x where that is known to more digits."""
    inside = _inside(a, b, x)
    half = full_like(x, 0.5)
    p, q, u = (select(inside, v, half) for v in (a, b, x))
    swap = gt(u, div(add(p, 1.0), add(add(p, q), 2.0)))
    v = sub(1.0, u) if y is None else select(inside, y, half)
    direct = bitwise_and(swap, bitwise_and(le(mul(q, u), 1.0), le(u, 0.9)))
    swap = bitwise_and(swap, bitwise_not(direct))
    power = mul(_series(tol, bitwise_and(direct, inside), p, q, u), exp(neg(mul(q, log1p(neg(u))))))
    p, q = select(swap, q, p), select(swap, p, q)
    u, v = select(swap, v, u), select(swap, u, v)
    go_on = bitwise_and(inside, bitwise_not(direct))
    factor = select(direct, power, _fraction(tol, go_on, p, q, u))
    part = mul(div(beta_product(p, q, u, v), p), factor)
    return select(inside, select(swap, sub(1.0, part), part), _at_edges(a, b, x))


def _density(tol: float, a: Any, b: Any, x: Any) -> Any:
    """xᵃ⁻¹ (1-x)ᵇ⁻¹ / B(a, b); the limits at 0 and 1."""
    inside = _inside(a, b, x)
    half = full_like(x, 0.5)
    p, q, u = (select(inside, v, half) for v in (a, b, x))
    v = sub(1.0, u)
    value = div(beta_product(p, q, u, v), mul(u, v))
    zero, inf, nan = (full_like(x, c) for c in (0.0, math.inf, math.nan))
    edge = nan
    for end, own, other in ((0.0, a, b), (1.0, b, a)):
        limit = select(lt(own, 1.0), inf, select(eq(own, 1.0), other, zero))
        legal = bitwise_and(bitwise_and(gt(a, 0.0), gt(b, 0.0)), eq(x, end))
        edge = select(legal, limit, edge)
    return select(inside, value, edge)


def _slope(tol: float, a: Any, b: Any, x: Any, m: int, n: int) -> Any:
    """∂ᵐ⁺ⁿI/∂aᵐ∂bⁿ; 0 where I does not depend on both parameters."""
    inside = _inside(a, b, x)
    p, q, u = (select(inside, v, full_like(x, 0.5)) for v in (a, b, x))
    front = div(beta_product(p, q, u, sub(1.0, u)), mul(p, q))
    edge = mul(0.0, _at_edges(a, b, x))
    for v in (a, b):
        edge = select(eq(v, 0.0), full_like(x, math.nan), edge)
    return select(inside, mul(front, beta_order(p, q, u, m, n)), edge)


def _slope_in_x(t: Any, y: Any, a: Any, b: Any, x: Any, m: int, n: int) -> Any:
    """By the derivative of the density, of which `cumulant` has those of the logarithm."""
    s = add(a, b)

    @functools.cache
    def cumulant(i: int, j: int) -> Any:
        if i + j == 1:
            own, place = (b, log1p(neg(x))) if j else (a, log(x))
            return add(place, sub(digamma(s), digamma(own)))
        total = polygamma(float(i + j - 1), s)
        return total if i and j else sub(total, polygamma(float(i + j - 1), b if j else a))

    return mul(t, mul(beta_density_p.bind(a, b, x), bell(cumulant, m, n)))


def _density_in_x(t: Any, p: Any, a: Any, b: Any, x: Any) -> Any:
    slope = sub(div(sub(a, 1.0), x), div(sub(b, 1.0), sub(1.0, x)))
    return mul(t, mul(p, slope))


def _density_in(t: Any, p: Any, own: Any, total: Any, log_x: Any) -> Any:
    return mul(t, mul(p, add(log_x, sub(digamma(total), digamma(own)))))


beta_density_p = Computed("beta_density", _density, (
    lambda t, p, a, b, x: _density_in(t, p, a, add(a, b), log(x)),
    lambda t, p, a, b, x: _density_in(t, p, b, add(a, b), log1p(neg(x))),
    _density_in_x))
# ∂ᵐ⁺ⁿI/∂aᵐ∂bⁿ for m + n >= 1.
betainc_slope_p = Computed("betainc_slope", _slope, (
    lambda t, y, a, b, x, m, n: mul(t, betainc_slope_p.bind(a, b, x, m=m + 1, n=n)),
    lambda t, y, a, b, x, m, n: mul(t, betainc_slope_p.bind(a, b, x, m=m, n=n + 1)),
    _slope_in_x))
regularized_incomplete_beta_p = Computed("regularized_incomplete_beta", beta_value, (
    lambda t, y, a, b, x: mul(t, betainc_slope_p.bind(a, b, x, m=1, n=0)),
    lambda t, y, a, b, x: mul(t, betainc_slope_p.bind(a, b, x, m=0, n=1)),
    lambda t, y, a, b, x: mul(t, beta_density_p.bind(a, b, x))))


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function I(a, b; x) (DLMF 8.17.2).

    Args:
      a, b: floats >= 0.
      x: floats in [0, 1], of the dtype and shape of `a` and `b`.

    Returns:
      Probabilities in [0, 1], of the operands' shape and dtype.

    NaN outside of these ranges, and where both a and b are 0 or infinite; with one of them 0 or
    infinite, the limit: all of the weight is at one end. The fraction takes O(√max(a, b)) steps
    near x = a / (a+b). Differentiable in all three.

    >>> import olympus
    >>> olympus.lax.betainc(2.0, 3.0, 0.5)
    Array(0.6875, dtype=float32, weak_type=True)
    """
    xs = [a, b, x]
    like = next((v for v in xs if type(v) not in (bool, int, float)), x)
    return regularized_incomplete_beta_p.bind(*match_shapes([operand(v, like) for v in xs]))
