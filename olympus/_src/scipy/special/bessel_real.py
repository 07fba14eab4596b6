"""Bessel functions of real order.

Up to 2, K and Y are Temme's series (J. Comput. Phys. 19, 1975, 324, and 21, 1976, 343) for an order
of at most 1/2, and a recurrence upwards; beyond, K is the trapezoidal rule around the peak of its
integral (DLMF 10.32.9), which converges exponentially. I is its power series (DLMF 10.25.2), whose
terms are all positive, and far out its asymptotic one (10.40.1). J and Y between 2 and their
asymptotic series (10.17.3) are by Steed's two continued fractions (Barnett, Feng, Steed &
Goldfarb, Comput. Phys. Commun. 8, 1974, 377; DLMF 10.33).

In float32 I and K are their uniform expansions (DLMF 10.41.3) where ν² + x² >= 16². Their large
factors stay exponents to the end: a product of two may be a number where they are not.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...base.docstrings import complete_docstrings, described_like
from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.special.series import is_short, iterate
from ...numpy.arithmetic import absolute, maximum, minimum, sign
from ...numpy.creation import asarray
from ...numpy.elementary import copysign, exp, floor, log, sqrt
from ...numpy.promote import broadcast_to
from ...numpy.selection import where
from ...numpy.trigonometry import arcsinh, cos, cosh, sin, sinh
from .family import Special, apply, by_format, horner, inside, log_half, normal, outside
from .gammas import cos_pi, gammaln_above, sin_pi

# 1/Γ(1+μ) = even(μ²) - μ odd(μ²): its Taylor series (DLMF 5.7.1), computed with mpmath.
_ODD = (
    -0.5772156649015329, 0.04200263503409524, 0.04219773455554433, -0.0072189432466631,
    0.00021524167411495098, 2.013485478078824e-05, -1.133027231981696e-06, -6.116095104481416e-09,
    1.18127457048702e-09, -7.782263439905071e-12, -5.100370287454476e-13, 5.348122539423018e-15)
_EVEN = (
    1.0, -0.6558780715202539, 0.16653861138229148, -0.009621971527876973, -0.0011651675918590652,
    0.0001280502823881162, -1.2504934821426706e-06, -2.056338416977607e-07, 5.002007644469223e-09,
    1.0434267116911005e-10, -3.696805618642206e-12, -2.0583260535665066e-14)
_TERMS = 16             # of series in x²/4 <= 1
_ORDERS = 100_000       # orders, and steps
_VAST = 1e150           # squares of it are finite
_HUGE, _LOG_HUGE = 2.0 ** 300, 300.0 * math.log(2.0)
_UNIFORM = 16.0
_NOTHING = 1e-12        # in place of 0 in float32, where squares of its reciprocal are numbers
# Uₖ(p) / pᵏ in p² (DLMF 10.41(ii)).
_U = ((1 / 8, -5 / 24), (9 / 128, -77 / 192, 385 / 1152),
      (75 / 1024, -4563 / 5120, 17017 / 9216, -85085 / 82944),
      (3675 / 32768, -96833 / 40960, 144001 / 16384, -7436429 / 663552, 37182145 / 7962624),
      (59535 / 262144, -67608983 / 9175040, 250881631 / 5898240, -108313205 / 1179648,
       5391411025 / 63700992, -5391411025 / 191102976))


# I and K in float32 ------------------------------------------------------------------------------

def _uniform(nu: Array, x: Array) -> tuple[Array, Array, Array]:
    """Factors of exp(-x) I and of exp(x) K for ν² + x² >= 16², and the exponent of the first.

    Where the exponent of I is not below 0, the exponent of K is.
    """
    least, most = minimum(nu, x), maximum(nu, x)
    share = least / most
    size = most * sqrt(1.0 + share * share)
    inverse, square = 1.0 / size, (nu / size) ** 2.0
    terms = [horner(square, coefficients) for coefficients in _U]
    odd = inverse * (terms[0] + inverse * inverse * (terms[2] + inverse * inverse * terms[4]))
    even = 1.0 + inverse * inverse * (terms[1] + inverse * inverse * terms[3])
    level = nu * (nu / (size + x)) - nu * arcsinh(nu / x)
    root = sqrt(inverse)
    return (math.sqrt(0.5 / math.pi) * root * (even + odd),
            math.sqrt(0.5 * math.pi) * root * (even - odd), level)


def _grown(value: Array, level: Array) -> Array:
    """value exp(level), whose power may leave the format where the product does not."""
    half = exp(0.5 * level)
    return value * half * half


def _short_parts(nu: Array, x: Array, legal: Array) -> tuple[Array, Array, Array, Array]:
    """(factor, exponent) of exp(-x) I and of exp(x) K in float32, for ν >= 0 and 0 < x < ∞."""
    far = legal & ((nu >= _UNIFORM) | (x >= _UNIFORM) | (nu * nu + x * x >= _UNIFORM ** 2.0))
    of_i, of_k, level = _uniform(inside(far, nu, 0.0), inside(far, x, _UNIFORM))
    near = legal & ~far
    a, z = inside(near, nu, 0.0), inside(near, x, 1.0)

    def grow(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array]]:
        (term, total), (nu, x) = state, constants
        k = i + 1.0
        term = term * (0.25 * x * x / (k * (nu + k)))
        return term > 1e-9 * total, (term, total + term)

    one = 1.0 + 0.0 * z
    _, total = iterate(grow, near, (one, one), (a, z), _ORDERS)
    return (where(far, of_i, total), where(far, level, _log_least(a, z) - z),
            where(far, of_k, _kve_near(a, z, near)), where(far, -level, 0.0))


def _temme(mu: Array, x: Array) -> tuple[Array, Array, Array]:
    """f₀ and 2 p₀, 2 q₀ of Temme's series for K, for |μ| <= 1/2 and 0 < x <= 2."""
    squared = mu * mu
    odd, even = horner(squared, _ODD), horner(squared, _EVEN)
    level = log(2.0 / x)
    s = mu * level
    still, short = absolute(mu) < 1e-8, absolute(s) < 1e-8
    turn, run = outside(still, mu, 0.5), outside(short, s, 1.0)
    turn = where(still, 1.0, math.pi * turn / sin(math.pi * turn))
    run = where(short, 1.0, sinh(run) / run)
    power = exp(s)
    return (turn * (odd * cosh(s) + even * run * level), power / (even - mu * odd),
            1.0 / (power * (even + mu * odd)))


def _climb(sign: float, n: Array, mu: Array, x: Array, first: Array, second: Array, active: Array
           ) -> Array:
    """The value at μ + n of f(k+1) = 2k/x f(k) + sign f(k-1), from those at μ and μ + 1."""
    def body(i: Array, state: Sequence[Array], constants: Sequence[Array]) -> Any:
        (low, high), (n, mu, x) = state, constants
        k = i + 1.0
        above = 2.0 * (mu + k) / x * high + sign * low
        return (k + 1.0 < n) & (absolute(above) < math.inf), (high, above)

    high = iterate(body, active & (n > 1.0), (first, second), (n, mu, x), _ORDERS)[1]
    return where(n == 0.0, first, high)


def _trapezoid(i: Array, state: Sequence[Array], constants: Sequence[Array]
               ) -> tuple[Array, tuple[Array, ...]]:
    """Add the next value of exp(νt - x (cosh t - 1)); the first is 44 steps below the peak."""
    (total,), (nu, x, peak, step) = state, constants
    t = peak + (i - 44.0) * step
    return i < 77.0, (total + exp(nu * t - 2.0 * x * sinh(0.5 * t) ** 2),)


def _kve_near(order: Array, x: Array, legal: Array) -> Array:
    """exp(x) K by Temme's series or by the integral."""
    near = legal & (x <= 2.0)
    nu, z = inside(near, order, 0.25), inside(near, x, 1.0)
    n = floor(nu + 0.5)
    mu = nu - n
    f, p, q = _temme(mu, z)
    p, q = 0.5 * p, 0.5 * q
    c, first, second = 1.0, f, p
    for i in range(1, _TERMS):
        f = (i * f + p + q) / (i * i - mu * mu)
        c, p, q = c * (0.25 * z * z) / i, p / (i - mu), q / (i + mu)
        first, second = first + c * f, second + c * (p - i * f)
    small = exp(z) * _climb(1.0, n, mu, z, first, 2.0 / z * second, near)
    # ½ ∫ exp(νt - x (cosh t - 1)) dt, in steps of 0.3 widths of the peak at asinh(ν/x).
    vast = by_format(x, _VAST, 1e15)
    nu, z = inside(legal & ~near, order, 0.25), inside(legal & ~near, minimum(x, vast), 3.0)
    peak, step = arcsinh(nu / z), 0.3 / sqrt(sqrt(z * z + nu * nu))
    large, = iterate(_trapezoid, legal & ~near, (0.0 * z,), (nu, z, peak, step), 77)
    large = 0.5 * step * large * sqrt(vast / maximum(x, vast))     # √(π/2x) from there on
    return where(near, small, large)


def _kve(tol: float, v: Array, x: Array, scaled: bool = True) -> Array:
    """exp(x) K, or K."""
    order = absolute(v)
    legal = normal(x) & (x > 0.0) & (x < math.inf) & (order < _ORDERS)
    if is_short(x):
        z = inside(legal, x, 1.0)
        value, level = _short_parts(inside(legal, order, 0.0), z, legal)[2:]
        value = _grown(value, level if scaled else level - z)
    else:
        value = _kve_near(order, x, legal)
    edge = where((x >= 0.0) & ~normal(x), math.inf, where(x == math.inf, 0.0, math.nan))
    value = where(legal, value, edge + 0.0 * v)
    return value if scaled or is_short(x) else value * exp(where(x > 0.0, -x, 0.0))


def _log_least(nu: Array, x: Array) -> Array:
    """ln of (x/2)^ν / Γ(1+ν)."""
    return nu * log_half(x) - gammaln_above(nu + 1.0)


def _ive_above(nu: Array, x: Array, legal: Array) -> Array:
    """exp(-x) I for ν >= 0 and x > 0."""
    far = legal & (x > 30.0) & (x > 0.25 * nu * nu)

    def grow(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array, Array]]:
        (term, total, level), (nu, x) = state, constants
        k = i + 1.0
        term = term * (0.25 * x * x / (k * (nu + k)))
        total = total + term
        down = where(total > _HUGE, 1.0 / _HUGE, 1.0)
        level = where(total > _HUGE, level + _LOG_HUGE, level)
        return term > 1e-17 * total, (term * down, total * down, level)

    near = legal & ~far
    a, z = inside(near, nu, 0.0), inside(near, x, 1.0)
    one = 1.0 + 0.0 * z
    _, total, level = iterate(grow, near, (one, one, _log_least(a, z) - z), (a, z), _ORDERS)
    power, _ = _asymptotic(far, nu, x, -1.0)
    return where(far, power / sqrt(2.0 * math.pi * inside(far, x, 100.0)), total * exp(level))


def _asymptotic(far: Array, nu: Array, x: Array, sign: float) -> tuple[Array, Array]:
    """P and Q of DLMF 10.17.3 (sign 1); or their terms with alternating signs as one sum."""
    nu, x = inside(far, nu, 0.0), inside(far, x, 100.0)

    def added(i: Array, state: Sequence[Array], constants: Sequence[Array]
              ) -> tuple[Array, tuple[Array, Array, Array]]:
        (p, q, term), (nu, x) = state, constants
        k = 2.0 * i + 1.0
        odd = term * ((4.0 * nu * nu - k * k) / (8.0 * x * (i + 1.0)))
        # A term of P or of Q in turn: i is even for one of Q, and every other one is negative.
        turn = i - 4.0 * floor(0.25 * i)
        if sign < 0:
            p = p + where(turn * (turn - 2.0) == 0.0, -odd, odd)
        else:
            p = p + where(turn == 1.0, -odd, where(turn == 3.0, odd, 0.0))
            q = q + where(turn == 0.0, odd, where(turn == 2.0, -odd, 0.0))
        shrinks = (absolute(odd) < absolute(term)) | (k < 2.0 * nu)
        return shrinks & (absolute(odd) > by_format(x, 1e-18, 1e-9)), (p, q, odd)

    one = 1.0 + 0.0 * x
    p, q, _ = iterate(added, far, (one, 0.0 * one, one), (nu, x), 200)
    return p, q


def _jy_small(nu: Array, x: Array, near: Array) -> tuple[Array, Array]:
    """(J, Y) for x <= 2."""
    quarter = -0.25 * x * x
    term, total = 1.0, 1.0
    for k in range(1, _TERMS):
        term = term * (quarter / (k * (nu + k)))
        total = total + term
    n = floor(nu + 0.5)
    mu = nu - n
    f, p, q = (e / math.pi for e in _temme(mu, x))
    f = 2.0 * f
    still = absolute(mu) < 1e-8
    turn = outside(still, mu, 0.5)
    r = where(still, 0.5 * math.pi * math.pi * mu, 2.0 * sin(0.5 * math.pi * turn) ** 2 / turn)
    c, first, second = 1.0, f + r * q, p
    for i in range(1, _TERMS):
        f = (i * f + p + q) / (i * i - mu * mu)
        c, p, q = c * quarter / i, p / (i - mu), q / (i + mu)
        g = f + r * q
        first, second = first + c * g, second + c * (p - i * g)
    y = _climb(-1.0, n, mu, x, -first, -2.0 / x * second, near)
    return total * exp(_log_least(nu, x)), y


def _first_fraction(nu: Array, x: Array, active: Array) -> list[Array]:
    """J'/J and the sign of J, for x >= 2, by Lentz's method (DLMF 3.10(iii))."""
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array, Array, Array]]:
        (h, sign, c, d), (nu, x) = state, constants
        b = 2.0 * (nu + i + 1.0) / x
        c, d = b - 1.0 / c, b - d
        c, d = where(c == 0.0, least, c), 1.0 / where(d == 0.0, least, d)
        return (absolute(c * d - 1.0) > by_format(x, 1e-16, 1e-7),
                (h * (c * d), where(d < 0.0, -sign, sign), c, d))

    least = by_format(x, 1e-300, _NOTHING)
    start = where(nu == 0.0, least, nu / x)
    if is_short(x):
        start = maximum(start, least)       # whose reciprocal is a number
    return iterate(step, active, (start, 1.0 + 0.0 * x, start, 0.0 * x), (nu, x), _ORDERS)[:2]


def _second_fraction(mu: Array, x: Array, active: Array) -> tuple[Array, Array]:
    """p and q: the logarithmic derivative p + iq of J + iY, for x >= 2 and |μ| < x."""
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, ...]]:
        (fr, fi, cr, ci, dr, di), (mu, x) = state, constants
        a, br, bi = (i + 0.5) ** 2 - mu * mu, 2.0 * x, 2.0 * (i + 1.0)
        size = a / (cr * cr + ci * ci)
        cr, ci = br + size * cr, bi - size * ci
        dr, di = br + a * dr, bi + a * di
        size = dr * dr + di * di
        dr, di = dr / size, -di / size
        er, ei = cr * dr - ci * di, cr * di + ci * dr
        return (absolute(er - 1.0) + absolute(ei) > by_format(x, 1e-16, 1e-7),
                (fr * er - fi * ei, fr * ei + fi * er, cr, ci, dr, di))

    zero = 0.0 * x
    tiny = zero + by_format(x, 1e-100, _NOTHING)
    fr, fi = iterate(step, active, (tiny, zero, tiny, zero, zero, zero), (mu, x), 400)[:2]
    return -0.5 / x - fi / x, 1.0 + fr / x


def _jy_middle(nu: Array, x: Array, active: Array) -> tuple[Array, Array]:
    """(J, Y) for x >= 2: from ν to an order below x, and there by the Wronskian."""
    f, sign = _first_fraction(nu, x, active)
    n = floor(nu - x + 1.5)
    n = where(n > 0.0, n, 0.0)
    mu = nu - n

    def down(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array, Array]]:
        (j, slope, least), (nu, n, x) = state, constants
        k = nu - i
        below = k / x * j + slope
        slope = (k - 1.0) / x * below - j
        huge = by_format(x, _HUGE, 2.0 ** 60)
        scale = where(absolute(below) > huge, 1.0 / huge, 1.0)
        return i + 1.0 < n, (below * scale, slope * scale, least * scale)

    j, slope, least = iterate(down, active & (n > 0.0), (sign, f * sign, sign), (nu, n, x), _ORDERS)
    j_ = where(j == 0.0, by_format(x, 1e-300, _NOTHING), j)
    f = slope / j_
    p, q = _second_fraction(mu, x, active)
    ratio = (p - f) / q
    first = copysign(sqrt(2.0 / (math.pi * x) / ((p - f) * ratio + q)), j)
    second = ratio * first
    slope = first * (p * ratio + q)
    y = _climb(-1.0, n, mu, x, second, mu / x * second - slope, active)
    return first * (least / j_), y


def _jy(v: Array, x: Array) -> tuple[Array, Array]:
    """(J, Y) of an order of any sign for 0 < x < ∞."""
    nu = absolute(v)
    legal = (x > 0.0) & (x < math.inf) & (nu < _ORDERS)
    near, far = legal & (x <= 2.0), legal & (x > 25.0 + 0.125 * nu * nu)
    middle = legal & ~near & ~far
    j, y = _jy_small(inside(near, nu, 0.0), inside(near, x, 1.0), near)
    a, b = _jy_middle(inside(middle, nu, 0.0), inside(middle, x, 3.0), middle)
    p, q = _asymptotic(far, nu, x, 1.0)
    z, quarter = inside(far, x, 100.0), 0.5 * inside(far, nu, 0.0) + 0.25
    c, s, size = cos_pi(quarter), sin_pi(quarter), sqrt(2.0 / math.pi / z)
    of_cos, of_sin = cos(z), sin(z)
    cosine, sine = of_cos * c + of_sin * s, of_sin * c - of_cos * s
    j = where(near, j, where(middle, a, size * (p * cosine - q * sine)))
    y = where(near, y, where(middle, b, size * (p * sine + q * cosine)))
    # Orders below 0 (DLMF 10.4.6): an infinite Y times 0 is 0.
    c, s = cos_pi(v), sin_pi(nu)
    minus_j = c * j - where(s == 0.0, 0.0, s * y)
    minus_y = where(c == 0.0, 0.0, c * y) + s * j
    return where(v < 0.0, minus_j, j), where(v < 0.0, minus_y, y)


def _mirrored(v: Array, x: Array, value: Array, start: Array) -> Array:
    """`value` of |x| for x of any sign: whole orders are even or odd; `start` is that at 0."""
    whole = v == floor(v)
    value = where((x < 0.0) & (v != 2.0 * floor(0.5 * v)), -value, value)
    value = where((x < 0.0) & ~whole, math.nan, value)
    value = where(x == 0.0, where(v == 0.0, 1.0, where((v > 0.0) | whole, 0.0, start)), value)
    return where((v == v) & (x == x) & (absolute(v) < _ORDERS), value, math.nan)


def _jv(tol: float, v: Array, x: Array) -> Array:
    size = absolute(x)
    finite = (size > 0.0) & (size < math.inf)
    value = where(finite, _jy(v, inside(finite, size, 1.0))[0], 0.0)
    # (x/2)^v / Γ(1+v) at 0 has the sign of Γ, which changes at every whole order.
    return _mirrored(v, x, value, where(sin_pi(0.5 * floor(v)) == 0.0, -math.inf, math.inf))


def _yv(tol: float, v: Array, x: Array) -> Array:
    legal = normal(x) & (x > 0.0) & (x < math.inf) & (absolute(v) < _ORDERS)
    value = _jy(inside(legal, v, 0.0), inside(legal, x, 1.0))[1]
    # Γ(-v) cos(πv) at 0, or nothing where cos is (DLMF 10.7.4).
    at_zero = where(v < 0.0, -cos_pi(v), -1.0)
    edge = where((x >= 0.0) & ~normal(x),
                 where(at_zero == 0.0, 0.0, copysign(math.inf, at_zero)), math.nan)
    return where(legal, value, where((x == math.inf) & (v == v), 0.0, edge + 0.0 * v))


def _ive(tol: float, v: Array, x: Array, scaled: bool = True) -> Array:
    """exp(-|x|) I; in float32 also I, for finite x."""
    size, nu = absolute(x), absolute(v)
    legal = (size > 0.0) & (size < math.inf) & (nu < _ORDERS)
    a, z = inside(legal, nu, 0.0), inside(legal, size, 1.0)
    s = sin_pi(a)
    if is_short(x):
        value, level, of_k, level_k = _short_parts(a, z, legal)
        value = _grown(value, level if scaled else level + z)
        more = 2.0 / math.pi * s * _grown(of_k, level_k - (2.0 * z if scaled else z))
    else:
        value = _ive_above(a, z, legal)
        more = 2.0 / math.pi * s * exp(-2.0 * z) * _kve(tol, a, z)
    value = where((v < 0.0) & (s != 0.0), value + more, value)
    value = where(legal, value, 0.0)
    return _mirrored(v, x, value, where(sin_pi(0.5 * floor(v)) == 0.0, -math.inf, math.inf))


def _iv(tol: float, v: Array, x: Array) -> Array:
    size = absolute(x)
    if is_short(x):
        value = _ive(tol, v, x, scaled=False)
    else:
        part = exp(0.5 * minimum(size, 1400.0))     # in two factors: the product may be in range
        value = _ive(tol, v, x) * part * part
    infinite = (size == math.inf) & (v == v) & ((x > 0.0) | (v == floor(v)))
    return where(infinite, where((x < 0.0) & (v != 2.0 * floor(0.5 * v)), -math.inf, math.inf),
                 value)


def _kv(tol: float, v: Array, x: Array) -> Array:
    return _kve(tol, v, x, scaled=False)


# Derivatives in the order ------------------------------------------------------------------------

# Chebyshev's points in [-1, 1]; 17 interpolate exp(1.5 x) within 4e-17.
_POINTS = np.cos(math.pi * (np.arange(17) + 0.5) / 17)


def _weights(times: int) -> np.ndarray:
    """Weights of the values at the points in the derivative of their interpolant at 0."""
    polynomials = [np.polynomial.Chebyshev.basis(n) for n in range(len(_POINTS))]
    return sum(((2.0 if n else 1.0) / len(_POINTS) * p(_POINTS) * p.deriv(times)(0.0)
                for n, p in enumerate(polynomials)), np.zeros(len(_POINTS)))


def _in_order(fun: Callable[..., Array], tol: float, v: Array, x: Array, times: int) -> Array:
    """The derivative of `fun` in the order: its interpolant's, at orders next to v.

    In the order, `fun` grows or falls at most as exp(ν asinh((|ν|+1) / |x|)), and turns at most
    as exp(iπν).
    """
    size = absolute(x)
    inner = (size > 0.0) & (size < math.inf)
    radius = minimum(0.5, 1.5 / arcsinh((absolute(v) + 1.0) / inside(inner, size, 1.0)))
    points, weights = (asarray(a.reshape(-1, *[1] * v.ndim), v.dtype)
                       for a in (_POINTS, _weights(times)))
    orders = v + radius * points
    values = fun(tol, orders, broadcast_to(x, orders.shape))
    here = values[len(_POINTS) // 2]
    value = (weights * values).sum(0) / radius ** times
    return where(inner, value, where((v > 0.0) | (size > 0.0), 0.0 * here, math.nan))


# Primitives --------------------------------------------------------------------------------------

def _bessel(name: str, fun: Callable[..., Array], slope: Callable[..., Array]) -> Special:
    """The primitive of a function of (v, x), whose slope in x is `slope(function, value, v, x)`."""
    in_order = Special(
        f"{name}_in_order", partial(_in_order, fun),
        lambda t, y, v, x, times: t * in_order.bind(v, x, times=times + 1),
        lambda t, y, v, x, times: t * slope(partial(in_order.bind, times=times), y, v, x))
    prim = Special(name, fun, lambda t, y, v, x: t * in_order.bind(v, x, times=1),
                   lambda t, y, v, x: t * slope(prim.bind, y, v, x))
    return prim


def _mean(f: Callable[..., Array], v: Array, x: Array, sign: float = 1.0) -> Array:
    return 0.5 * (f(v - 1.0, x) + sign * f(v + 1.0, x))


jv_p = _bessel("jv", _jv, lambda f, y, v, x: _mean(f, v, x, -1.0))
yv_p = _bessel("yv", _yv, lambda f, y, v, x: _mean(f, v, x, -1.0))
iv_p = _bessel("iv", _iv, lambda f, y, v, x: _mean(f, v, x))
kv_p = _bessel("kv", _kv, lambda f, y, v, x: -_mean(f, v, x))
ive_p = _bessel("ive", _ive, lambda f, y, v, x: _mean(f, v, x) - sign(x) * y)
kve_p = _bessel("kve", _kve, lambda f, y, v, x: y - _mean(f, v, x))


# Public functions --------------------------------------------------------------------------------

@fused(inline=True)
def jv(v: ArrayLike, z: ArrayLike) -> Array:
    """The Bessel function of the first kind of real order.

    Returns: An array of the broadcast shape; NaN below 0 for orders that are not whole. Near its
      zeros the error is in proportion to the amplitude.

    >>> print(f"{special.jv(0.5, 2.0):.5f}")
    0.51302
    """
    return apply(jv_p, v, z)


@fused(inline=True)
def yv(v: ArrayLike, z: ArrayLike) -> Array:
    """The Bessel function of the second kind of real order.

    Returns: An array of the broadcast shape: infinite at 0, NaN below. Near its zeros the error is
      in proportion to the amplitude.

    >>> print(f"{special.yv(0.5, 2.0):.5f}")
    0.23479
    """
    return apply(yv_p, v, z)


@fused(inline=True)
def iv(v: ArrayLike, z: ArrayLike) -> Array:
    """The modified Bessel function of the first kind of real order.

    Returns: An array of the broadcast shape; NaN below 0 for orders that are not whole.

    >>> print(f"{special.iv(0.5, 2.0):.5f}")
    2.04624
    """
    return apply(iv_p, v, z)


@fused(inline=True)
@described_like(iv)
def ive(v: ArrayLike, z: ArrayLike) -> Array:
    """exp(-|z|) times `iv(v, z)`, which does not overflow.

    >>> print(f"{special.ive(0.5, 2.0):.5f}")
    0.27693
    """
    return apply(ive_p, v, z)


@fused(inline=True)
def kv(v: ArrayLike, z: ArrayLike) -> Array:
    """The modified Bessel function of the second kind of real order, as in Matérn kernels.

    Returns: An array of the broadcast shape: inf at 0, NaN below. Derivatives in the order, by
      interpolation, have 12 digits, the second ones 10.

    >>> print(f"{special.kv(0.5, 2.0):.5f}")
    0.11994
    """
    return apply(kv_p, v, z)


@fused(inline=True)
@described_like(kv)
def kve(v: ArrayLike, z: ArrayLike) -> Array:
    """exp(z) times `kv(v, z)`, which does not underflow.

    >>> print(f"{special.kve(0.5, 2.0):.5f}")
    0.88623
    """
    return apply(kve_p, v, z)


complete_docstrings(globals(), {
    "z": "real numbers of a shape that broadcasts; integers become floats.",
    "v": "orders, real numbers of size below 100000.",
})
