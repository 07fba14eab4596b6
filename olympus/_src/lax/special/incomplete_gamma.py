"""Incomplete gamma functions, their derivatives, and the derivative of gamma samples.

With P and Q the regularised functions (DLMF 8.2.4), D = xᵃ e⁻ˣ / Γ(a+1) and μ = x/a - 1:

    series    x <= a                     P = D Σ xⁿ / ((a+1) ... (a+n))                  DLMF 8.11.4
    fraction  x > a                      Q = a D / (x+1-a - 1(1-a) / (x+3-a - ...))      DLMF 8.9.2
    small     a <= 1.1, x <= 1.1         Q = -expm1(t) - eᵗ a Σ (-x)ⁿ / ((a+n) n!)       DLMF 8.7.3
    uniform   a >= 16, |μ| <= 1/2        Q = erfc(η √(a/2)) / 2 + R(a, η)                DLMF 8.12.4

First derivatives in `a` differentiate the same formulas, term by term, so nothing cancels;
`parameter_derivatives` has the further ones.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...base.typing import Array, ArrayLike
from ...core.trace import typeof
from ...types import dtypes
from ..arithmetic import abs, div, floor, max, min, mul, neg, reciprocal, sub
from ..bits import bitwise_and, bitwise_not, bitwise_or
from ..comparison import eq, ge, gt, le, lt, select
from ..creation import full_like
from ..families import add, binary, match_shapes
from ..transcendental import exp, expm1, log, log1p, pow, sqrt
from .classical import digamma, erfc
from .parameter_derivatives import bell, gamma_order, log_gamma_cumulants
from .series import (
    Computed, Loop, Step, enough, is_short, iterate_either, least_normal, log1p_minus,
    log1p_minus_near, polynomial_in,
)

# η / μ as a power series in η, where η²/2 = μ - ln(1+μ): the coefficients d of Gil, Segura and
# Temme (2012), SIAM J. Sci. Comput. 34(6), A2965; exact rationals, rounded.
_TEMME = (
    1.0, -0.3333333333333333, 0.08333333333333333, -0.014814814814814815, 0.0011574074074074073,
    0.0003527336860670194, -0.0001787551440329218, 3.919263178522438e-05,
    -2.185448510679992e-06, -1.85406221071516e-06, 8.296711340953087e-07,
    -1.7665952736826078e-07, 6.707853543401498e-09, 1.0261809784240309e-08,
    -4.382036018453353e-09, 9.14769958223679e-10, -2.5514193994946248e-11,
    -5.830772132550426e-11, 2.4361948020667415e-11, -5.0276692801141755e-12,
    1.1004392031956135e-13, 3.371763262400985e-13, -1.392388722418162e-13,
    2.8534893807047445e-14, -5.139111834242572e-16, -1.9752288294349442e-15,
    8.099521156704561e-16, -1.6522531216398162e-16, 2.5305430097478883e-18)
# 1 / Γ(1+a) as a power series in a (DLMF 5.7.1), for |a| <= 1/2, or <= 1.1 with all terms.
RGAMMA = (
    1.0, 0.5772156649015329, -0.6558780715202539, -0.04200263503409524, 0.16653861138229148,
    -0.04219773455554433, -0.009621971527876973, 0.0072189432466631, -0.0011651675918590652,
    -0.00021524167411495098, 0.0001280502823881162, -2.013485478078824e-05,
    -1.2504934821426706e-06, 1.133027231981696e-06, -2.056338416977607e-07,
    6.116095104481416e-09, 5.002007644469223e-09, -1.18127457048702e-09, 1.0434267116911005e-10,
    7.782263439905071e-12, -3.696805618642206e-12, 5.100370287454476e-13)
# ln Γ*(a) = ln Γ(a+1) - ln √(2πa) - a ln a + a in 1/a, times a; in 1/a² (DLMF 5.11.1).
STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156)
# ln (exp(z²) erfc(z) / t) in t = 1 / (1 + z/2), by interpolation in Chebyshev's points with mpmath.
_ERFC = (-1.26551221, 1.000020943, 0.3741760882, 0.09577241224, -0.1800615123, 0.2567150674,
         -1.086955619, 1.423171945, -0.7684580855, 0.1463613845, 0.004769650984)
_TWICE_PI = 2.0 * math.pi
_LARGE, _SMALL, _STEPS = 16.0, 1.1, 3000


# Pieces ------------------------------------------------------------------------------------------

def rgamma1p(a: Array) -> Array:
    """1 / Γ(1+a) for 0 <= a <= 16: a power series at the nearest integer, and the recurrence."""
    nearest = floor(add(a, 0.5))
    rest = sub(a, nearest)
    product = full_like(a, 1.0)
    for k in range(1, 17):
        product = select(ge(nearest, float(k)), mul(product, add(rest, float(k))), product)
    return div(polynomial_in(rest, RGAMMA, 0.5, -0.5), product)


def stirling(a: Array) -> Array:
    """ln Γ*(a), the correction in Stirling's formula, for a >= 16."""
    return div(polynomial_in(reciprocal(mul(a, a)), STIRLING, _LARGE ** -2), a)


def _deviance(a: Array, x: Array) -> Array:
    """a (μ - ln(1+μ)) with μ = x/a - 1: the exponent of the gamma density at large a."""
    mu = div(sub(x, a), a)
    ratio = div(x, a)
    far = sub(mu, log(ratio))
    return mul(a, select(lt(ratio, 0.5), far, neg(log1p_minus(mu))))


def scaled_log_minus(a: Array, ratio: Array, excess: Array, log_scale: Array | None = None
                     ) -> Array:
    """a (ln r - (r - 1)) in float32, for r = ratio, or that over a scale; excess = a (r - 1)."""
    ratio = min(ratio, full_like(a, float(dtypes.finfo(typeof(a).dtype).max)))
    part = div(excess, a)       # a ratio over a scale may be near 1 where r is not
    far = bitwise_or(lt(part, -0.5), gt(part, 1.0))
    change = log(ratio) if log_scale is None else sub(log(ratio), log_scale)
    near = mul(a, log1p_minus_near(select(far, full_like(a, 0.0), part)))
    return select(far, sub(mul(a, change), excess), near)


def minus_deviance(a: Array, x: Array) -> Array:
    """a (ln(1+μ) - μ) with μ = x/a - 1, in float32 for all positive a and x."""
    tiny = lt(x, 2.0 ** -64)        # x/a may be no normal number
    scaled, log_scale = mul(x, 2.0 ** 64), full_like(a, 64 * math.log(2.0))
    return scaled_log_minus(a, div(select(tiny, scaled, x), a), sub(x, a),
                            select(tiny, log_scale, full_like(a, 0.0)))


def reduced_rgamma(a: Array) -> tuple[Array, Array]:
    """A factor of aᵃ e⁻ᵃ √(2π) / Γ(a+1), and the exponent of the other one, in float32 for a >= 0.

    Stirling's formula of Γ(a+5), without branches: (a/(a+5))ᵃ is a power of at most five units in
    the exponent, so that large a cost no digits. With w = a+5, (a+1) (a+4) = a w + 4 and
    (a+2) (a+3) = a w + 6.
    """
    inverse = reciprocal(add(a, 5.0))
    square, ratio = mul(inverse, inverse), mul(a, inverse)
    power = mul(a, log1p(div(5.0, max(a, full_like(a, 1e-30)))))
    correction = mul(polynomial_in(square, STIRLING, 1 / 25), inverse)
    product = mul(add(ratio, mul(4.0, square)), add(ratio, mul(6.0, square)))
    return mul(product, sqrt(inverse)), sub(sub(5.0, power), correction)


def half_erfc(negative: Array, exponent: Array) -> tuple[Array, Array]:
    """½ erfc(z) and ½ erfc(-z) in float32, where z² = -exponent and z < 0 where `negative` holds.

    erfc(z) = t exp(P(t) - z²) with t = 1 / (1 + z/2), for z >= 0.
    """
    t = reciprocal(add(1.0, mul(0.5, sqrt(neg(exponent)))))
    tail = mul(mul(0.5, t), exp(add(polynomial_in(t, _ERFC), exponent)))
    rest = sub(1.0, tail)
    return select(negative, rest, tail), select(negative, tail, rest)


def _short_power_density(whole: bool, a: Array, x: Array, exponent: Array) -> Array:
    """xᵃ e⁻ˣ / Γ(a+1), and without `whole` that over x, in float32, by `minus_deviance`."""
    factor, rest = reduced_rgamma(a)
    half = exp(mul(0.5, add(exponent, rest)))
    front = mul(half, mul(factor, 1.0 / math.sqrt(_TWICE_PI)))      # at most about 0.4
    if whole:
        return mul(front, half)
    at_zero = select(lt(a, 1.0), full_like(a, math.inf), select(
        eq(a, 1.0), full_like(a, 1.0), full_like(a, 0.0)))
    return select(ge(x, least_normal(x)), mul(half, div(front, x)), at_zero)


def power_density(k: Array, a: Array, x: Array, exponent: Array | None = None) -> Array:
    """xᵏ e⁻ˣ / Γ(a+1), where `k` is `a` itself or a-1, for 0 < a and 0 <= x, neither infinite.

    For a < 16 the square of the power of half the exponents, which neither overflows nor leaves
    the normal numbers before the result does. In float32 one formula for all a, which compiles in a
    third of the time.
    """
    if is_short(a):
        exponent = minus_deviance(a, x) if exponent is None else exponent
        return _short_power_density(k is a, a, x, exponent)
    big = ge(a, _LARGE)
    low, high = select(big, full_like(a, 1.0), a), select(big, a, full_like(a, _LARGE))
    short = min(x, full_like(x, 4e3))
    half = mul(pow(short, mul(0.5, select(big, full_like(a, 1.0), k))), exp(mul(-0.5, short)))
    below = mul(mul(half, rgamma1p(low)), half)
    root = mul(sqrt(mul(_TWICE_PI, high)), exp(stirling(high)))
    above = div(exp(neg(_deviance(high, x))), root)
    over_x = select(gt(x, 0.0), div(above, x), full_like(x, 0.0))
    return select(big, above if k is a else over_x, below)


class Where(NamedTuple):
    """The parts of the domain, as masks."""

    uniform: Any
    small: Any
    fraction: Any
    series: Any
    inner: Any


def regions(a: Array, x: Array) -> Where:
    """Which formula holds where; all false outside of 0 < a < inf, 0 < x < inf."""
    inner = bitwise_and(bitwise_and(gt(a, 0.0), gt(x, 0.0)),
                        bitwise_and(lt(a, math.inf), lt(x, math.inf)))
    uniform = bitwise_and(ge(a, _LARGE), le(abs(sub(x, a)), mul(0.5, a)))
    uniform = bitwise_and(uniform, inner)
    rest = bitwise_and(inner, bitwise_not(uniform))
    fraction = bitwise_and(rest, gt(x, max(a, full_like(a, _SMALL))))
    small = bitwise_and(rest, bitwise_and(le(a, _SMALL), le(x, _SMALL)))
    return Where(uniform, small, fraction, bitwise_and(rest, bitwise_not(fraction)), inner)


def _series_step(tol: float, slope: bool) -> Step:
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, ...]]:
        a, x = constants
        n = add(a, add(i, 1.0))
        term = mul(state[0], div(x, n))
        total = add(state[1], term)
        again = gt(term, mul(tol, total))
        if not slope:
            return again, (term, total)
        harmonic = add(state[2], reciprocal(n))
        part = mul(term, harmonic)
        d_total = sub(state[3], part)
        again = bitwise_or(again, gt(part, mul(-tol, d_total)))
        return again, (term, total, harmonic, d_total)
    return step


def _series(tol: float, where: Array, a: Array, x: Array, slope: bool) -> Loop:
    """Σ xⁿ / ((a+1) ... (a+n)) and, if wanted, its derivative in a."""
    one, zero = full_like(a, 1.0), full_like(a, 0.0)
    state = (one, one, zero, zero) if slope else (one, one)
    return Loop(_series_step(tol, slope), where, state, (a, x))


def _fraction_step(tol: float, slope: bool) -> Step:
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, ...]]:
        (c, d, h), (a, x) = state[:3], constants
        n = add(i, 1.0)
        factor, shift = mul(n, sub(a, n)), sub(add(x, add(mul(2.0, n), 1.0)), a)
        next_d = reciprocal(add(mul(factor, d), shift))
        next_c = add(shift, div(factor, c))
        ratio = mul(next_c, next_d)
        again = gt(abs(sub(ratio, 1.0)), tol)
        if not slope:
            return again, (next_c, next_d, mul(h, ratio))
        dc, dd, log_slope = state[3:]
        dd = neg(mul(mul(next_d, next_d), sub(add(mul(n, d), mul(factor, dd)), 1.0)))
        dc = sub(div(sub(n, mul(factor, div(dc, c))), c), 1.0)
        part = add(div(dc, next_c), div(dd, next_d))
        log_slope = add(log_slope, part)
        again = bitwise_or(again, gt(abs(part), mul(tol, abs(log_slope))))
        return again, (next_c, next_d, mul(h, ratio), dc, dd, log_slope)
    return step


def _fraction(tol: float, where: Array, a: Array, x: Array, slope: bool) -> Loop:
    """The continued fraction by Lentz's algorithm (1976), and its derivative in a.

    1 where `where` fails, and for the largest a, for which the factor before it is 0.
    """
    where = bitwise_and(where, lt(a, least_normal(a) ** -0.8))
    first = select(where, sub(add(x, 1.0), a), full_like(a, 1.0))
    # c = first + 0 / ..., d = 1 / first: the algorithm after its first step, with value 1 / first.
    d = reciprocal(first)
    state = (full_like(a, least_normal(a) ** -0.95), d, d)
    if slope:
        zero = full_like(a, 0.0)
        state = (*state, zero, mul(d, d), d)
    return Loop(_fraction_step(tol, slope), where, state, (a, x))


def _series_and_fraction(tol: float, by_series: Array, by_fraction: Array, a: Array, x: Array
                         ) -> tuple[Array, Array]:
    first, second = iterate_either(_series(tol, by_series, a, x, False),
                                   _fraction(tol, by_fraction, a, x, False), _STEPS)
    return first[1], second[2]


class Uniform(NamedTuple):
    """Temme's expansion: Q = half + scale * rest; dP/da = -scale * slope."""

    half_below: Any
    half_above: Any
    scale: Any
    rest: Any
    slope: Any


def _bernoulli_sums(a: Array, eta: Array) -> tuple[Array, Array, Array]:
    """Temme's S(a, η) and its derivatives in a and η, by the backward recurrence of its terms."""
    zero = full_like(a, 0.0)
    inverse = reciprocal(a)
    b = [zero, zero, zero]      # βₙ, βₙ₊₁, βₙ₊₂, and their derivatives in a
    db = [zero, zero, zero]
    total, slope, d_total = zero, zero, zero
    # η is in [-0.63, 0.43].
    coefficients = enough(eta, _TEMME, 0.63)
    for n in range(len(coefficients) - 2, -1, -1):
        factor = mul(inverse, n + 2.0)
        new = add(mul(factor, b[1]), coefficients[n + 1])
        d_new = mul(factor, sub(db[1], mul(b[1], inverse)))
        b, db = [new, *b[:2]], [d_new, *db[:2]]
        slope = add(mul(slope, eta), total)
        total, d_total = add(mul(total, eta), new), add(mul(d_total, eta), d_new)
    below = add(a, b[1])
    front = div(a, below)
    d_front = div(sub(b[1], mul(a, db[1])), mul(below, below))
    return (mul(front, total), add(mul(front, d_total), mul(d_front, total)), mul(front, slope))


def uniform(where: Array, a: ArrayLike, x: ArrayLike, exponent: Array | None = None) -> Uniform:
    """Temme's expansion where `where` holds; anything elsewhere. `exponent`: `minus_deviance`."""
    a = select(where, a, full_like(a, _LARGE))
    mu = select(where, div(sub(x, a), a), full_like(a, 0.0))
    minus = log1p_minus(mu) if exponent is None else select(
        where, div(exponent, a), full_like(a, 0.0))
    phi, log_ratio, centre = neg(minus), add(minus, mu), eq(mu, 0.0)
    root = sqrt(mul(2.0, phi))
    eta = select(lt(mu, 0.0), neg(root), root)
    z = mul(eta, sqrt(mul(0.5, a)))
    scale = div(exp(mul(a, minus)), mul(math.sqrt(_TWICE_PI), sqrt(a)))
    rest, in_a, in_eta = _bernoulli_sums(a, eta)
    divisor = select(centre, full_like(a, 1.0), eta)
    one = full_like(a, 1.0)
    if exponent is None:
        above, below = mul(0.5, erfc(z)), mul(0.5, erfc(neg(z)))
    else:
        above, below = half_erfc(lt(mu, 0.0), mul(a, minus))
    eta_slope = neg(div(select(centre, one, div(mu, divisor)), a))
    slope = add(add(select(centre, one, div(log_ratio, divisor)),
                    mul(rest, sub(log_ratio, div(0.5, a)))),
                add(in_a, mul(in_eta, eta_slope)))
    return Uniform(below, above, scale, rest, slope)


def _small_upper(where: Array, a: Array, x: Array) -> Array:
    """Q for a and x of at most 1.1."""
    half = full_like(a, 0.5)
    a, x = select(where, a, half), select(where, x, half)
    minus = mul(a, polynomial_in(a, RGAMMA[1:], _SMALL))
    t = add(mul(a, log(x)), log1p(minus))
    if is_short(x):     # a multiple of the least numbers may be 0
        t = select(lt(a, 2.0 ** -30), mul(a, add(log(x), RGAMMA[1])), t)
    total = full_like(a, 0.0)
    for n in range(12 if is_short(x) else 20, 0, -1):
        total = mul(add(total, reciprocal(add(a, float(n)))), mul(x, -1.0 / n))
    return neg(add(expm1(t), mul(exp(t), mul(a, total))))


def _at_edges(a: Array, x: Array, at_zero: float, beyond: float, nan_a: bool) -> Array:
    """The value where a or x is 0, infinite, negative or NaN.

    `at_zero` is that for x = 0 or a = inf, `beyond` that for a = 0 or x = inf; with `nan_a`, NaN
    for both such a.
    """
    zero_a, inf_a = eq(a, 0.0), eq(a, math.inf)
    zero_x, inf_x = eq(x, 0.0), eq(x, math.inf)
    legal = bitwise_and(ge(a, 0.0), ge(x, 0.0))
    both = bitwise_or(bitwise_and(zero_a, zero_x), bitwise_and(inf_a, inf_x))
    if nan_a:
        both = bitwise_or(zero_a, inf_a)
    value = select(bitwise_or(zero_a, inf_x), full_like(a, beyond), full_like(a, at_zero))
    return select(bitwise_and(legal, bitwise_not(both)), value, full_like(a, math.nan))


class _Sides(NamedTuple):
    """What both P and Q are made of, of operands inside of the domain."""

    at: Where
    a: Array
    x: Array
    uniform: Uniform
    series: Array       # P, where the series is taken
    fraction: Array     # Q, where the continued fraction is

    def lower(self) -> Array:
        at, u = self.at, self.uniform
        return select(at.uniform, sub(u.half_below, mul(u.scale, u.rest)),
                      select(at.fraction, sub(1.0, self.fraction), self.series))

    def upper(self) -> Array:
        at, u = self.at, self.uniform
        below = select(at.small, _small_upper(at.small, self.a, self.x), sub(1.0, self.series))
        return select(at.uniform, add(u.half_above, mul(u.scale, u.rest)),
                      select(at.fraction, self.fraction, below))


def _sides(tol: float, a: Array, x: Array, small: bool = True) -> _Sides:
    """`small`: whether the series is needed where Q has a form of its own."""
    at = regions(a, x)
    safe_a, safe_x = (select(at.inner, v, full_like(a, 1.0)) for v in (a, x))
    exponent = minus_deviance(safe_a, safe_x) if is_short(a) else None
    d = power_density(safe_a, safe_a, safe_x, exponent)
    u = uniform(at.uniform, safe_a, safe_x, exponent)
    by_series = at.series if small else bitwise_and(at.series, bitwise_not(at.small))
    total, fraction = _series_and_fraction(tol, by_series, at.fraction, safe_a, safe_x)
    return _Sides(at, safe_a, safe_x, u, mul(d, total), mul(mul(safe_a, d), fraction))


def gamma_lower(tol: float, a: Array, x: Array) -> Array:
    sides = _sides(tol, a, x)
    return select(sides.at.inner, sides.lower(), _at_edges(a, x, 0.0, 1.0, False))


def gamma_upper(tol: float, a: Array, x: Array) -> Array:
    sides = _sides(tol, a, x, small=False)
    return select(sides.at.inner, sides.upper(), _at_edges(a, x, 1.0, 0.0, False))


def gamma_side(tol: float, lower: Array, a: Array, x: Array) -> Array:
    """P where `lower`, elsewhere Q."""
    sides = _sides(tol, a, x)
    return select(sides.at.inner, select(lower, sides.lower(), sides.upper()), select(
        lower, _at_edges(a, x, 0.0, 1.0, False), _at_edges(a, x, 1.0, 0.0, False)))


def _scaled_slope(tol: float, at: Where, a: Array, x: Array) -> tuple[Array, Array]:
    """-dP/da over D outside of the uniform region, and over `scale` inside; the expansion there."""
    u = uniform(at.uniform, a, x)
    first, second = iterate_either(_series(tol, at.series, a, x, True),
                                   _fraction(tol, at.fraction, a, x, True), _STEPS)
    total, d_total, value, d_value = first[1], first[3], second[2], mul(second[2], second[5])
    distance = sub(log(x), digamma(add(a, 1.0)))
    by_series = neg(add(mul(distance, total), d_total))
    by_fraction = add(mul(add(mul(a, distance), 1.0), value), mul(a, d_value))
    return select(at.uniform, u.slope, select(at.fraction, by_fraction, by_series)), u.scale


def _grad_a(tol: float, a: Array, x: Array) -> Array:
    at = regions(a, x)
    safe_a, safe_x = (select(at.inner, v, full_like(a, 1.0)) for v in (a, x))
    slope, scale = _scaled_slope(tol, at, safe_a, safe_x)
    density = select(at.uniform, scale, power_density(safe_a, safe_a, safe_x))
    value = neg(mul(density, slope))
    edge = _at_edges(a, x, 0.0, 0.0, False)
    edge = select(eq(a, 0.0), full_like(a, math.nan), edge)
    # Far out, where the density is 0, the slope may overflow.
    return select(at.inner, select(eq(density, 0.0), neg(density), value), edge)


def _sample_slope(tol: float, a: Array, x: Array) -> Array:
    at = regions(a, x)
    safe_a, safe_x = (select(at.inner, v, full_like(a, 1.0)) for v in (a, x))
    slope, _ = _scaled_slope(tol, at, safe_a, safe_x)
    correction = exp(stirling(max(safe_a, full_like(a, _LARGE))))
    slope = select(at.uniform, mul(correction, slope), slope)
    # Neither quotient leaves the normal numbers where the result does not.
    both_small = lt(max(safe_a, safe_x), 1.0)
    value = select(both_small, mul(div(safe_x, safe_a), slope), mul(safe_x, div(slope, safe_a)))
    return select(at.inner, value, _at_edges(a, x, 0.0, math.inf, True))


def _later_slope(tol: float, a: Array, x: Array, order: int) -> Array:
    """∂ᵐP/∂aᵐ for m = order >= 2."""
    inner = regions(a, x).inner
    safe_a, safe_x = (select(inner, v, full_like(a, 1.0)) for v in (a, x))
    density = mul(safe_a, power_density(sub(safe_a, 1.0), safe_a, safe_x))
    edge = _at_edges(a, x, 0.0, 0.0, False)
    edge = select(eq(a, 0.0), full_like(a, math.nan), edge)
    value = mul(density, gamma_order(safe_a, safe_x, order))
    return select(inner, select(eq(density, 0.0), full_like(a, 0.0), value), edge)


def _later_ratio(tol: float, a: Array, x: Array, order: int) -> Array:
    """∂ᵐP/∂aᵐ over ∂P/∂x for m = order >= 2."""
    inner = regions(a, x).inner
    safe_a, safe_x = (select(inner, v, full_like(a, 1.0)) for v in (a, x))
    value = gamma_order(safe_a, safe_x, order)
    return select(inner, value, _at_edges(a, x, 0.0, math.inf, True))


def _density(tol: float, a: Array, x: Array) -> Array:
    legal = bitwise_and(bitwise_and(gt(a, 0.0), lt(a, math.inf)), ge(x, 0.0))
    inner = bitwise_and(legal, lt(x, math.inf))
    safe_a, safe_x = (select(inner, v, full_like(a, 1.0)) for v in (a, x))
    value = mul(safe_a, power_density(sub(safe_a, 1.0), safe_a, safe_x))
    return select(inner, value, select(legal, full_like(a, 0.0), full_like(a, math.nan)))


# Primitives --------------------------------------------------------------------------------------

def _density_in_a(t: Array, p: Array, a: ArrayLike, x: Array) -> Array:
    none = eq(p, 0.0)       # as at x = 0 for a > 1, where the logarithm is infinite
    shaped: Any = match_shapes((a, x))
    a, x = shaped
    slope = mul(p, sub(log(select(none, full_like(p, 1.0), x)), digamma(a)))
    return mul(t, select(none, full_like(p, 0.0), slope))


def _density_in_x(t: Array, p: Array, a: Array, x: Array) -> Array:
    shaped: Any = match_shapes((a, x))
    a, x = shaped
    one, above = full_like(a, 1.0), gt(a, 1.0)
    at_0 = bitwise_and(eq(x, 0.0), ge(a, 1.0))
    # (a - 1) xᵃ⁻² / Γ(a), whose limit for x = 0 is the limit of xᵃ⁻² / Γ(a - 1).
    below = gamma_density_p.bind(select(above, sub(a, 1.0), one), x)
    limit = sub(select(above, below, full_like(a, 0.0)), p)
    slope = mul(p, sub(div(sub(a, 1.0), select(at_0, one, x)), 1.0))
    return mul(t, select(at_0, limit, slope))


def _log_distance(a: ArrayLike, x: Array) -> Array:
    """ln x - ψ(a): the derivative in a of the density's logarithm."""
    return sub(log(x), digamma(a))


def _log_density_in_x(a: ArrayLike, x: Array) -> Array:
    return sub(div(sub(a, 1.0), x), 1.0)


def _density_order(a: Array, x: Array, order: int) -> ArrayLike:
    """∂ᵐ(density)/∂aᵐ over the density."""
    return bell(log_gamma_cumulants(_log_distance(a, x), a), order)


def _sample_slope_in_a(t: Array, g: Array, a: Array, x: Array) -> Array:
    second = gamma_slope_ratio_p.bind(a, x, order=2)
    return neg(mul(t, add(second, mul(g, _log_distance(a, x)))))


def _sample_slope_in_x(t: Array, g: Array, a: ArrayLike, x: Array) -> Array:
    return neg(mul(t, add(_log_distance(a, x), mul(g, _log_density_in_x(a, x)))))


def _later_slope_in_x(t: Array, y: Array, a: Array, x: Array, order: int) -> Array:
    return mul(t, mul(binary(gamma_density_p, a, x), _density_order(a, x, order)))


def _later_ratio_in_a(t: Array, y: Array, a: Array, x: Array, order: int) -> Array:
    after = gamma_slope_ratio_p.bind(a, x, order=order + 1)
    return mul(t, sub(after, mul(y, _log_distance(a, x))))


def _later_ratio_in_x(t: Array, y: Array, a: Array, x: Array, order: int) -> Array:
    return mul(t, sub(_density_order(a, x, order), mul(y, _log_density_in_x(a, x))))


# The density of the gamma distribution, xᵃ⁻¹ e⁻ˣ / Γ(a): the derivative of P in x.
gamma_density_p = Computed("gamma_density", _density, (_density_in_a, _density_in_x))
igamma_p = Computed("igamma", gamma_lower, (
    lambda t, p, a, x: mul(t, igamma_grad_a(a, x)),
    lambda t, p, a, x: mul(t, binary(gamma_density_p, a, x))))
igammac_p = Computed("igammac", gamma_upper, (
    lambda t, q, a, x: neg(mul(t, igamma_grad_a(a, x))),
    lambda t, q, a, x: neg(mul(t, binary(gamma_density_p, a, x)))))
igamma_grad_a_p = Computed("igamma_grad_a", _grad_a, (
    lambda t, g, a, x: mul(t, igamma_slope_p.bind(*match_shapes((a, x)), order=2)),
    lambda t, g, a, x: _density_in_a(t, binary(gamma_density_p, a, x), a, x)))
random_gamma_grad_p = Computed("random_gamma_grad", _sample_slope, (
    _sample_slope_in_a, _sample_slope_in_x))
# ∂ᵐP/∂aᵐ, and that over ∂P/∂x; m = order >= 2.
igamma_slope_p = Computed("igamma_slope", _later_slope, (
    lambda t, y, a, x, order: mul(t, igamma_slope_p.bind(a, x, order=order + 1)),
    _later_slope_in_x))
gamma_slope_ratio_p = Computed("gamma_slope_ratio", _later_ratio, (
    _later_ratio_in_a, _later_ratio_in_x))


def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised lower incomplete gamma function P(a, x) = γ(a, x) / Γ(a) (DLMF 8.2.4).

    Args: a, x: floats of one dtype and shape, not negative.
    Returns: Probabilities in [0, 1], of the operands' shape and dtype.

    P is 1 where a = 0 or x is infinite, 0 where x = 0 or a is infinite; NaN where both are 0 or
    infinite, and for negative or NaN operands. Differentiable in both.

    >>> olympus.lax.igamma(1.0, 2.0)
    Array(0.86466473, dtype=float32, weak_type=True)
    """
    return binary(igamma_p, a, x)


def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), small values too.

    Args: a, x: floats of one dtype and shape, not negative; see `igamma` for the edges.
    Returns: Probabilities in [0, 1], of that shape and dtype. Differentiable in both.

    >>> print(olympus.lax.igammac(1.0, 40.0), 1 - olympus.lax.igamma(1.0, 40.0))
    4.248354e-18 0.0
    """
    return binary(igammac_p, a, x)


def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """The derivative of `igamma(a, x)` in a; differentiable itself, in both operands.

    Args: a, x: floats of one dtype and shape, not negative.

    Returns:
      An array of that shape and dtype, never positive: 0 where x is 0 or infinite, NaN at a = 0.

    >>> olympus.lax.igamma_grad_a(1.0, 2.0)
    Array(-0.22082542, dtype=float32, weak_type=True)
    """
    return binary(igamma_grad_a_p, a, x)


def random_gamma_grad(*args: ArrayLike) -> Array:
    """The derivative in a of a sample x of the gamma distribution of shape a: -(dP/da) / (dP/dx).

    Args: *args: a and x, floating arrays or numbers.
    Returns: An array of the operands' shape and dtype, positive for x > 0.

    Implicit reparametrisation (Figurnov, Mohamed and Mnih 2018, arXiv:1805.08498). 0 at x = 0, inf
    at x = inf, NaN unless 0 < a < inf and x >= 0. Differentiable in both.

    >>> print(f"{olympus.lax.random_gamma_grad(1.0, 2.0):.4f}")
    1.6317
    """
    if len(args) != 2:
        raise TypeError(f"random_gamma_grad: {len(args)} arguments given; two are required, the "
                        "shape parameter a and the sample x.")
    return binary(random_gamma_grad_p, *args)
