"""Gamma and beta functions and their logarithms.

Γ up to 16 is a power series of 1/Γ at the nearest integer and the recurrence, above Stirling's
formula; the beta function a product of both corrections, so that large operands cost no digits.
"""

from __future__ import annotations

import functools
import math
from typing import Any, NamedTuple

import numpy as np

from ...base.docstrings import complete_docstrings, described_like
from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.arithmetic import complex as make_complex
from ...lax.creation import full_like
from ...lax.special.incomplete_beta import betaincc_p, regularized_incomplete_beta_p
from ...lax.special.incomplete_gamma import (
    RGAMMA, STIRLING, igamma_p, igammac_p, rgamma1p, stirling,
)
from ...lax.special.series import enough, is_short, least_normal, log1p_minus_near
from ...lax.special.zeta import scaled_zeta, short_sums, short_zeta_of, zeta_of_positive, zeta_p
from ...numpy.arithmetic import absolute, conjugate, imag, maximum, minimum, real
from ...numpy.elementary import copysign, exp, floor, log, rint
from ...numpy.joining import stack
from ...numpy.selection import where
from ...numpy.trigonometry import sin, tan
from ...types import dtypes
from .family import (
    Special, apply, by_format, chebyshev, even, flat, horner, inside, log1p, nowhere, operands,
    outside, whole,
)

_LARGE = 16.0
_HALF_LOG_TWICE_PI = 0.5 * math.log(2.0 * math.pi)
_ROOT_TWICE_PI = math.sqrt(2.0 * math.pi)

# The positive zero of digamma, in two parts, and digamma over the distance from it, on [1, 2]: a
# Chebyshev series, computed with mpmath in 50 digits.
_ZERO, _ZERO_REST = 1.4616321449683622, 9.549995429965697e-17
_PSI = (
    0.983570260441567, -0.2270640863346444, 0.03336889902393011, -0.005320077271596548,
    0.0008788656937820505, -0.00014773492650606044, 2.5060543468359146e-05,
    -4.2721034029993324e-06, 7.302769272465923e-07, -1.2502886813559594e-07,
    2.1425009322359472e-08, -3.673295918565179e-09, 6.299717236108931e-10, -1.080593028883266e-10,
    1.853735192053638e-11, -3.18023536582553e-12, 5.456147570322795e-13, -9.360993131036438e-14,
    1.606064636295075e-14, -2.7555431377438815e-15, 4.727736178601912e-16, -8.11148420346509e-17,
    1.391707769474154e-17)
# ψ(x) - ln x + 1/(2x) in 1/x² (DLMF 5.11.2).
_PSI_FAR = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760, -1 / 12)


# Pieces, of float64 arrays -----------------------------------------------------------------------

def sin_pi(x: Array) -> Array:
    """sin(πx), the argument reduced exactly."""
    nearest = rint(x)
    even = nearest - 2.0 * floor(0.5 * nearest) == 0.0
    part = sin(math.pi * (x - nearest))
    return where(even, part, -part)


def cos_pi(x: Array) -> Array:
    """cos(πx), 0 at every half of an odd number."""
    return sin_pi(0.5 - absolute(x - 2.0 * rint(0.5 * x)))


def gamma_above(x: Array, tol: float = 0.0) -> Array:
    """Γ(x) for x > 0."""
    big = x >= _LARGE
    low = outside(big, x, 1.0)
    high = minimum(inside(big, x, _LARGE), by_format(x, 172.0, 36.0))
    # For results of at most 32 bits a logarithm in float64 has enough digits.
    if tol > 1e-12 and not is_short(x):
        far = _ROOT_TWICE_PI * exp((high - 0.5) * log(high) - high + stirling(high))
    else:
        power = high ** (0.5 * high - 0.25)
        far = power * exp(-high) * power * (_ROOT_TWICE_PI * exp(stirling(high)))
    value = where(big, far, 1.0 / (low * rgamma1p(low)))
    return where(x < by_format(x, 171.7, 36.0), value, where(x == x, math.inf, x))


def _gamma(tol: float, x: Array) -> Array:
    positive = x > 0.0
    # Γ(x) = -π / (x sin(πx) Γ(-x))
    size = outside(positive | (x == 0.0) | whole(x), -x, 0.5)
    big = size > 170.0
    above = gamma_above(where(positive, x, outside(big, size, 0.5)), tol)
    # No product of two tiny numbers: size sin(π size) would underflow.
    below = -math.pi / sin_pi(size) / (size * above)
    below = where(big, 0.0 * below, below)      # beyond the range of Γ(-x)
    value = where(positive, above, where(whole(x), math.nan, below))
    return where(x == 0.0, copysign(math.inf, x), value)


def _rgamma(tol: float, x: Array) -> Array:
    """1 / Γ(x), entire: 0 at the poles of Γ."""
    pole = (x <= 0.0) & whole(x)
    small = absolute(x) < 0.5
    near = inside(small, x, 0.0)
    return where(small & (x >= 0.0), near * rgamma1p(maximum(near, 0.0)),
                 where(pole, 0.0, 1.0 / _gamma(tol, outside(pole, x, 1.0))))


def gammaln_above(x: Array) -> Array:
    """ln Γ(x) for x > 0, with its relative precision at the zeros 1 and 2."""
    big = x >= _LARGE
    low, high = outside(big, x, 3.0), inside(big, x, _LARGE)
    level = log(where(big, high, low * rgamma1p(low)))
    far = (high - 0.5) * level - high + (_HALF_LOG_TWICE_PI + stirling(high))
    far = where(high > by_format(x, 1e300, 1e30), high * (level - 1.0), far)
    far = where(high == math.inf, math.inf, far)
    # With 1/Γ(1+a) = 1 + a r(a), ln Γ(1+a) is -log1p(a r), and Γ(2+a) - 1 = a (1-r) / (1 + a r).
    first = low < 1.5
    a = low - where(first, 1.0, 2.0)
    around = (a >= -0.5) & (a <= 0.75)
    a = inside(around, a, 0.0)
    r = horner(a, RGAMMA[1:])
    change = a * where(first, r, (1.0 - r) / (1.0 + a * r))
    close = change + log1p_minus_near(change)
    return where(big, far, where(around, where(first, -close, close), -level))


def _gammaln_to_float32(x: Array) -> Array:
    """ln |Γ(x)| to 1e-10, relatively at 1 and 2: by two logarithms, Stirling's formula from 8 on.

    Γ(x) = Γ(x+8) / (x … (x+7)) below, and for x < 0 it is reflected; ln u takes both in.
    """
    size = absolute(x)
    large = size >= 8.0
    low, high = outside(large, size, 1.0), where(large, size, size + 8.0)
    u = low
    for k in range(1, 8):
        u = u * (low + float(k))
    inverse = 1.0 / high
    above = (high - 0.5) * log(high) - high + (_HALF_LOG_TWICE_PI + inverse * horner(
        inverse * inverse, (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188)))
    u = where(large, 1.0, u)
    turn = size - rint(size)
    sine = absolute(turn * horner(turn * turn, _SINE))
    above = where(size == math.inf, math.inf, above)
    below = x < 0.0
    value = where(below, -above, above)
    if is_short(x):     # in which the product of a small number and its sine is none
        value = value - log(where(below, sine / u / math.pi, u)) - log(where(below, size, 1.0))
    else:
        value = value - log(where(below, size * sine / (math.pi * u), u))
    # An integer below 0 has the sine 0, whose logarithm is -inf.
    first = x < 1.5
    a = x - where(first, 1.0, 2.0)
    around = absolute(a) <= 0.25
    close = inside(around, a, 0.0)
    near = close * horner(close, [where(first, c, d) for c, d in zip(*_AROUND, strict=True)])
    near = where(x == 1.0, 0.0, near)       # not -0
    return where(around, near, where(below & (size == math.inf), math.inf, value))


# ln Γ(1+a) / a and ln Γ(2+a) / a for |a| <= 1/4 and sin(πa) / a for |a| <= 1/2 in a², the minimax
# polynomials of degree 10 and 6, computed with mpmath.
_AROUND = ((
    -0.5772156649015329, 0.822467034416879, -0.40068563530436296, 0.27058049159620434,
    -0.2073852581201623, 0.1695853692150276, -0.14407595831299716, 0.12449291108010026,
    -0.11039449305373515, 0.11588162147367487, -0.10553636598705943), (
    0.42278433509846713, 0.3224670334243312, -0.06735230105329848, 0.020580808358078136,
    -0.0073855509965733875, 0.0028905165657228116, -0.0011927567829215285, 0.000509442289468599,
    -0.00022305012080276138, 0.00010306606436573445, -4.658775136019791e-05))
_SINE = (3.141592653589635, -5.167712779987959, 2.550164035906745, -0.5992644339357286,
         0.08214479467064854, -0.007364005472115722, 0.0004474920849077101)


def _gammaln(tol: float, x: Array) -> Array:
    if tol > 1e-12:     # of results of 32 bits at most
        return _gammaln_to_float32(x)
    positive = x > 0.0
    pole = (x <= 0.0) & whole(x)
    size = where(positive, x, outside(pole, -x, 0.5))
    above = gammaln_above(size)
    tiny = size < 1e-30     # where Γ(-x) is -Γ(x)
    mirrored = outside(positive | tiny, size, 0.5)
    below = where(tiny, above, log(math.pi / (mirrored * absolute(sin_pi(mirrored)))) - above)
    value = where(positive, above, where(pole, math.inf, where(x == x, below, x)))
    return where(x == 1.0, 0.0, value)


def _psi_above(x: Array) -> Array:
    """ψ(x) for x > 0."""
    large = 4.0 if is_short(x) else _LARGE
    big = x >= large
    low, high = outside(big, x, 1.5), inside(big, x, large)
    inverse = 1.0 / high
    far = log(high) - 0.5 * inverse + inverse * inverse * horner(inverse * inverse, _PSI_FAR)
    steps = maximum(floor(low) - 1.0, 0.0)
    place = low - steps                     # in [1, 2), or below
    total = x * 0.0
    for k in range(int(large) - 2, -1, -1):     # the small terms first
        total = total + where(k < steps, 1.0 / (place + k), 0.0)
    short = place < 1.0
    first = inside(short, place, 1.0)
    place = where(short, place + 1.0, place)
    slope = chebyshev(2.0 * place - 3.0, enough(x, _PSI, 1.0))
    near = (place - _ZERO) * slope - _ZERO_REST * slope
    # Just below 1, x + 1 has lost digits that 1/x has not.
    near = where(short, near - 1.0 / first, near + total)
    return where(big, far, near)


def _pi_cot_pi(t: Array) -> Array:
    """π cot(πt) for 0 < |t| <= 1/2; in float32 by two sines, without the reduction in `tan`."""
    if not is_short(t):
        return math.pi / tan(math.pi * t)
    size = absolute(t)
    of, rest = (x * horner(x * x, _SINE) for x in (size, 0.5 - size))
    return copysign(math.pi * rest / of, t)


def digamma_of(tol: float, x: Any) -> Array:
    positive = x > 0.0
    pole = (x <= 0.0) & whole(x)
    size = where(positive, x, outside(pole, -x, 0.5))
    value = _psi_above(size)
    # ψ(-x) = ψ(x) + 1/x + π cot(πx)
    turn = size - rint(size)
    below = value + 1.0 / size + _pi_cot_pi(where(positive, 0.25, turn))
    value = where(positive, value, where(pole, math.nan, below))
    return where(x == 0.0, -copysign(math.inf, x), value)


def gamma_sign(tol: float, x: Any) -> Array:
    odd = floor(x) - 2.0 * floor(0.5 * floor(x)) != 0.0
    value = where(x > 0.0, 1.0, where(odd, -1.0, 1.0))
    value = where((x < 0.0) & whole(x), math.nan, where(x == x, value, x))
    return where(x == 0.0, copysign(1.0, x), value)


def _log_gamma_rest(x: Array, inverse: Array) -> Array:
    """ln Γ(x) - (x - 1/2) ln x + x - ln √2π for x > 0; `inverse` is 1 / Γ(1+x) below 16."""
    big = x >= _LARGE
    low = outside(big, x, 1.0)
    below = low - (low + 0.5) * log(low) - log(inverse) - _HALF_LOG_TWICE_PI
    return where(big, stirling(inside(big, x, _LARGE)), below)


def _at_pole(a: Any, b: Any) -> tuple[Array, Array, Array, Array]:
    """Where a or b is a pole of Γ: (there, whether the limit is finite, operands of that).

    B(-n, b) for a whole b <= n is (-1)ᵇ B(1 + n - b, b), as SciPy takes it, else infinite.
    """
    first = (a <= 0.0) & whole(a)
    second = (b <= 0.0) & whole(b)
    p, q = where(first, a, b), where(first, b, a)
    finite = (first | second) & (q > 0.0) & whole(q) & (1.0 - p - q > 0.0)
    return first | second, finite, where(finite, 1.0 - p - q, a), where(finite, q, b)


class Gammas(NamedTuple):
    """Γ of several numbers: |x|, 1/Γ(1+|x|) below 16, Stirling's rest, ln |Γ(x)| and signs."""

    size: Any
    inverse: Any
    rest: Any
    logs: Any
    signs: Any


def gammas(*xs: ArrayLike) -> Gammas:
    """Γ of several arrays at once, since it is most of the compiled code; none may be a pole."""
    every = stack(xs)
    size = absolute(every)
    inverse = rgamma1p(minimum(size, _LARGE))
    rest = _log_gamma_rest(size, inverse)
    logs = (size - 0.5) * log(size) - size + _HALF_LOG_TWICE_PI + rest
    # Γ(-x) = -π / (x sin(πx) Γ(x))
    turn = where(whole(size), 1.0, sin_pi(size))
    # In float32 the product of a small number and its sine is none.
    turned_size = log(size) + log(absolute(turn) / math.pi) if is_short(size) else \
        log(size * absolute(turn) / math.pi)
    logs = where(every < 0.0, -turned_size - logs, logs)
    return Gammas(size, inverse, rest, logs, gamma_sign(0.0, every))


def turned(x: Array) -> Array:
    """x less the nearest even number: exact, and all that sin(πx) reads of it."""
    return x - 2.0 * rint(0.5 * x)


class PositiveBeta(NamedTuple):
    """B of positive numbers: the value where their sum is below 16, and the logarithm elsewhere."""

    near: Any
    close: Any
    log: Any

    def power(self, sign: Array) -> Array:
        """The value to the power 1 or -1."""
        return where(self.near, where(sign > 0.0, self.close, 1.0 / self.close),
                     exp(sign * self.log))

    def times(self, factor: Array, sign: Array) -> Array:
        """The power times a number, also where in float32 one of both is beyond its range."""
        if not is_short(factor):
            return factor * self.power(sign)
        half = exp(0.5 * sign * self.log)
        close = where(sign > 0.0, factor * self.close, factor / self.close)
        return where(self.near, close, factor * half * half)

    def logarithm(self) -> Array:
        return where(self.near, log(self.close), self.log)


def positive_beta(p: Array, q: Array) -> PositiveBeta:
    """B(p, q), without the cancellation of large terms."""
    g = gammas(p, q, p + q)
    x, y, z = g.size
    small, large = minimum(x, y), maximum(x, y)
    ratio = small / large
    most = where(ratio < 1e-17, small, large * log1p(ratio))
    above = small * (log(small) - log(z)) - most - 0.5 * (log(small) + log(large / z))
    above = above + (_HALF_LOG_TWICE_PI + (g.rest[0] + g.rest[1] - g.rest[2]))
    # XLA would make one quotient of two, by large * small, which may be 0.
    close = (z / large) * (1.0 / small) * (g.inverse[2] / g.inverse[0] / g.inverse[1])
    near = z < _LARGE
    return PositiveBeta(near, where(near, close, 1.0), above)


def beta_of(tol: float, a: ArrayLike, b: ArrayLike, log_of: bool = False) -> Array:
    """B(a, b), or the logarithm of its size.

    For the numbers below 0 among a, b and their sum, Γ is reflected; what comes out is B or 1/B of
    positive numbers times sines.
    """
    pole, finite, a, b = _at_pole(a, b)
    inner = (~pole | finite) & (absolute(a) < math.inf) & (absolute(b) < math.inf)
    a_, b_ = inside(inner, a, 1.0), inside(inner, b, 1.0)
    p, q = minimum(a_, b_), maximum(a_, b_)
    s = p + q
    one, both, over = p < 0.0, q < 0.0, s > 0.0
    turn = sin_pi(turned(turned(p) + turned(q)))
    first, second = (where(m, sin_pi(v), 1.0) for m, v in ((one, p), (both, q)))
    sign = where(~one | (~both & ~over), 1.0, -1.0)
    # In float32 two small divisors would underflow together: one divides at the end.
    last = where(one & ~both & over, q, 1.0) if is_short(s) else None
    by = q if last is None else 1.0
    factor = where(~one, 1.0, where(both, math.pi * turn / (first * second * (1.0 - s)), where(
        over, math.pi / (first * by), turn / first)))
    continued = positive_beta(where(one & (both | over), 1.0 - p, where(one, 1.0 - s, p)),
                              where(both, 1.0 - q, where(one & over, s, q)))
    if log_of:
        value = where(one, log(absolute(factor)), 0.0) + sign * continued.logarithm()
        value = value if last is None else value - log(last)
        end = -math.inf
    else:
        odd = finite & (b_ - 2.0 * floor(0.5 * b_) != 0.0)
        value = continued.times(factor, sign)
        value, end = (value if last is None else value / last) * where(odd, -1.0, 1.0), 0.0
    edge = where((a > 0.0) & (b > 0.0), end, where(pole & (a + b == a + b), math.inf, math.nan))
    return where(inner, value, edge)


# Primitives --------------------------------------------------------------------------------------

def _polygamma(tol: float, x: Array, order: int) -> Array:
    """ψ⁽ᵐ⁾ for m = order >= 1, for x < 0 by m derivatives of ψ(x) = ψ(-x) - 1/x - π cot(πx)."""
    below = x < 0.0
    size = absolute(x)
    safe = outside(size == 0.0, size, 1.0)
    above = zeta_of_positive(full_like(x, order + 1.0), safe)
    above = (-1.0) ** (order + 1) * math.factorial(order) * above
    # The derivatives of cot(πx) are πᵐ times polynomials in it: c' = -(1 + c²).
    turn = where(below & ~whole(x), x - rint(x), 0.25)
    cot = 1.0 / tan(math.pi * turn)
    poly = np.polynomial.Polynomial([0.0, 1.0])
    for _ in range(order):
        poly = -poly.deriv() * np.polynomial.Polynomial([1.0, 0.0, 1.0])
    last = -math.pi ** (order + 1) * horner(cot, poly.coef.tolist())
    pole = -(-1.0) ** order * math.factorial(order) / where(below, x, 1.0) ** (order + 1)
    value = where(below, (-1.0) ** order * above + pole + last, above)
    infinite = math.inf if order % 2 else math.nan
    return where((x <= 0.0) & whole(x), infinite, value)


def _polygamma_any(tol: float, n: Any, x: Array) -> Array:
    """(-1)ⁿ⁺¹ n! ζ(n+1, x), by logarithms where one of both over- or underflows."""
    legal = (n > 0.0) & whole(n)
    if is_short(x):
        value = _short_polygamma(inside(legal, n, 1.0), x)
        return where(n == 0.0, digamma_of(tol, x), where(legal, value, math.nan))
    order = inside(legal, n, 1.0)
    sums = zeta_p.bind(order + 1.0, x)
    far = ((sums == 0.0) | (order > 170.0)) & (x > 0.0) & (x < math.inf)
    order_, z = inside(far, order, 1.0), inside(far, x, 1.0)
    by_logs = exp(gammaln_above(order_ + 1.0) - (order_ + 1.0) * log(z))
    size = where(far, by_logs * scaled_zeta(order_ + 1.0, z), gamma_above(order + 1.0) * sums)
    size = where(x == math.inf, 0.0, size)
    value = where(even(order), -size, size)
    return where(n == 0.0, digamma_of(tol, x), where(legal, value, math.nan))


def _short_polygamma(n: Array, x: Array) -> Array:
    """(-1)ˢ Γ(s) ζ(s, x) with s = n + 1 >= 2 in float32, Γ(s) x⁻ˢ by Stirling's formula of Γ(s+3).

    The power is the square of half of it, which leaves the normal numbers only where the result
    does.
    """
    s, positive = n + 1.0, x > 0.0
    z = inside(positive & (x < math.inf), x, 1.0)
    w = s + 3.0
    root = (w / z * math.exp(-1.0)) ** (0.5 * s)
    inverse = 1.0 / w
    front = exp(inverse * horner(inverse * inverse, STIRLING[:4])) * (w ** -0.5)
    front = front * (_ROOT_TWICE_PI * math.exp(-3.0)) * (w / s) * (w / (s + 1.0)) * (w / (s + 2.0))
    below, first, scaled, near, far = short_sums(s, outside(x == math.inf, x, 1.0))
    pole = where(even(s) & whole(x), math.inf, math.nan)
    sums = where(below, short_zeta_of(s, first, scaled) + near - far, pole)
    sums = where(positive, scaled, sums)
    size = where(x == math.inf, 0.0, root * (front * sums) * root)
    # Subnormal numbers are 0, which XLA's sum gives no sign.
    size = where(absolute(x) < least_normal(x), math.inf, size)
    return where(even(n), -size, size)


polygamma_p = Special("polygamma", _polygamma_any, nowhere,
                      lambda t, y, n, x: t * polygamma_p.bind(n + 1.0, x))
polygamma_order_p = Special(
    "polygamma_order", _polygamma,
    lambda t, y, x, order: t * polygamma_order_p.bind(x, order=order + 1))
digamma_p = Special("digamma_exact", digamma_of,
                    lambda t, y, x: t * polygamma_order_p.bind(x, order=1))
gammaln_p = Special("gammaln", _gammaln, lambda t, y, x: t * digamma_p.bind(x))
gamma_p = Special("gamma", _gamma, lambda t, y, x: t * y * digamma_p.bind(x))
rgamma_p = Special("rgamma", _rgamma, lambda t, y, x: t * _rgamma_in(y, x))
loggamma_p = Special("loggamma", lambda tol, x: where(x < 0.0, math.nan, _gammaln(tol, x)),
                     lambda t, y, x: t * digamma_p.bind(x))
gammasgn_p = Special("gammasgn", gamma_sign, flat)
beta_p = Special("beta", beta_of, lambda t, y, a, b: t * y * _beta_slope(a, b),
                 lambda t, y, a, b: t * y * _beta_slope(b, a))
betaln_p = Special("betaln", functools.partial(beta_of, log_of=True),
                   lambda t, y, a, b: t * _beta_slope(a, b),
                   lambda t, y, a, b: t * _beta_slope(b, a))


def _rgamma_in(y: Array, x: Array) -> Array:
    """-ψ(x) / Γ(x), whose limit at the pole -n is (-1)ⁿ n!."""
    pole = (x <= 0.0) & whole(x)
    odd = x - 2.0 * floor(0.5 * x) != 0.0
    limit = gamma_p.bind(where(pole, 1.0 - x, 1.0))
    return where(pole, where(odd, -limit, limit), -y * digamma_p.bind(where(pole, 1.0, x)))


def _beta_slope(a: Array, b: Array) -> Array:
    return digamma_p.bind(a) - digamma_p.bind(a + b)


def _loggamma_complex(z: Array) -> Array:
    """ln Γ by Stirling's formula (DLMF 5.11.1) at z + 8, and by reflection for Re z < 1/2.

    ln sin(πz) = -iπz + iπ/2 - ln 2 + ln(1 - exp(2πiz)) for Im z >= 0 is the branch that makes the
    result continuous; below the real axis all is conjugate.
    """
    below = imag(z) < 0.0
    z = where(below, conjugate(z), z)
    left = real(z) < 0.5
    w = where(left, 1.0 - z, z)
    v = w + 8.0
    inverse = 1.0 / v
    value = (v - 0.5) * log(v) - v + _HALF_LOG_TWICE_PI
    value = value + inverse * horner(inverse * inverse, STIRLING)
    for k in range(8):
        value = value - log(w + float(k))
    turn = where(left, z, 0.25)
    turned = make_complex(real(turn) - rint(real(turn)), imag(turn))
    log_sine = log(1.0 - exp(2j * math.pi * turned)) - 1j * math.pi * turn
    reflected = math.log(2.0 * math.pi) - 0.5j * math.pi - log_sine - value
    value = where(left, reflected, value)
    pole = (imag(z) == 0.0) & (real(z) <= 0.0) & whole(real(z))
    value = where(pole, math.inf, value)
    return where(below, conjugate(value), value)


@fused
def gamma(x: ArrayLike) -> Array:
    """The gamma function, Γ(n + 1) = n!.

    Args: x: real or complex numbers; integers become floats.
    Returns: An array of the shape of x: ±inf at ±0, NaN at the negative integers and -inf.

    >>> print(special.gamma(5.0), f"{special.gamma(0.5):.5f}")
    24.0 1.77245
    """
    x, = operands("gamma", x)
    if not dtypes.is_complex(x.dtype):
        return gamma_p.bind(x)
    pole = (imag(x) == 0.0) & (real(x) <= 0.0) & whole(real(x))
    return where(pole, complex(math.nan, math.nan), exp(_loggamma_complex(where(pole, 1.0, x))))


@fused
def loggamma(x: ArrayLike) -> Array:
    """The logarithm of Γ, continued from x > 0 to the complex plane cut along x < 0.

    Args: x: real or complex numbers; integers become floats.
    Returns: An array of the shape of x: inf at 0, NaN of negative real numbers, whose logarithm is
      complex.

    >>> print(f"{special.loggamma(5.0):.4f} {special.loggamma(-1.5 + 0j):.4f}")
    3.1781 0.8600-6.2832j
    """
    x, = operands("loggamma", x)
    return _loggamma_complex(x) if dtypes.is_complex(x.dtype) else loggamma_p.bind(x)


@fused(inline=True)
def rgamma(z: ArrayLike) -> Array:
    """1 / Γ(z), which is 0 at the poles of Γ.

    Args: z: real numbers; integers become floats. SciPy takes complex ones, too.
    Returns: An array of the shape of z.

    >>> print(special.rgamma(-1.0), special.rgamma(3.0))
    0.0 0.5
    """
    return apply(rgamma_p, z)


@fused(inline=True)
def gammaln(x: ArrayLike) -> Array:
    """The logarithm of |Γ(x)|, with full relative precision at its zeros 1 and 2, too.

    Returns: An array of the shape of x: inf at 0 and the negative integers. `lax.lgamma` is XLA's.

    >>> print(f"{special.gammaln(5.0):.4f}", special.gammaln(1.0))
    3.1781 0.0
    """
    return apply(gammaln_p, x)


@fused(inline=True)
def gammasgn(x: ArrayLike) -> Array:
    """The sign of Γ(x).

    Returns: ±1 in an array of the shape of x; NaN at the negative integers, and the sign of a zero.

    >>> print(special.gammasgn(2.5), special.gammasgn(-0.5))
    1.0 -1.0
    """
    return apply(gammasgn_p, x)


@fused(inline=True)
def digamma(x: ArrayLike) -> Array:
    """ψ(x), the derivative of `gammaln(x)`, with full relative precision at its zero 1.46, too.

    Returns: An array of the shape of x: NaN at the negative integers, and -inf at 0.

    >>> print(f"{special.digamma(1.0):.5f}")       # minus Euler's constant
    -0.57722
    """
    return apply(digamma_p, x)


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """The n-th derivative of `digamma` at x.

    Args:
      n: whole numbers >= 0.
      x: real numbers of a shape that broadcasts; integers become floats.
    Returns: An array of the broadcast shape. The derivative in n is NaN. Where n is a Python int, x
      < 0 goes by the reflection formula; of an array n the digits fade there.

    >>> print(f"{special.polygamma(1, 1.0):.5f}")       # π²/6
    1.64493
    """
    if type(n) is int and n >= 0:
        return apply(polygamma_order_p, x, order=n) if n else digamma(x)
    return apply(polygamma_p, n, x)


@fused(inline=True)
def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """The beta function, Γ(a) Γ(b) / Γ(a + b).

    Returns: An array of the broadcast shape.

    >>> print(f"{special.beta(2.0, 3.0):.5f}")      # 1/12
    0.08333
    """
    return apply(beta_p, a, b)


@fused(inline=True)
@described_like(beta)
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """The logarithm of |B(a, b)|, without the cancellation of large logarithms of Γ.

    >>> print(f"{special.betaln(1e6, 2.0):.4f}")
    -27.6310
    """
    return apply(betaln_p, a, b)


@fused(inline=True)
def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised lower incomplete gamma function P(a, x) (DLMF 8.2.4); see `lax.igamma`.

    Returns: Probabilities of the broadcast shape; NaN of negative operands. Differentiable in both.

    >>> print(f"{special.gammainc(1.0, 2.0):.5f}")
    0.86466
    """
    return apply(igamma_p, a, x)


@fused(inline=True)
@described_like(gammainc)
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """The regularised upper incomplete gamma function Q(a, x) = 1 - P(a, x), small values too.

    >>> print(f"{special.gammaincc(1.0, 40.0):.5e}")
    4.24835e-18
    """
    return apply(igammac_p, a, x)


@fused(inline=True)
def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The regularised incomplete beta function I(a, b; x) (DLMF 8.17.2).

    Args:
      a, b: real numbers >= 0.
      x: real numbers in [0, 1]; shapes broadcast, integers become floats.
    Returns: Probabilities of the broadcast shape; NaN outside. Differentiable in all three.

    >>> print(special.betainc(2.0, 3.0, 0.5))
    0.6875
    """
    return apply(regularized_incomplete_beta_p, a, b, x)


@fused(inline=True)
@described_like(betainc)
def betaincc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """1 - I(a, b; x) = I(b, a; 1 - x), without cancellation.

    >>> print(f"{special.betaincc(2.0, 3.0, 0.999):.3e}")
    3.997e-09
    """
    return apply(betaincc_p, a, b, x)


complete_docstrings(globals(), {
    "x": "real numbers; integers become floats.",
    "a, b": "real numbers of shapes that broadcast; integers become floats.",
    "a, x": "real numbers >= 0 of shapes that broadcast; integers become floats.",
})
