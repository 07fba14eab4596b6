"""Gamma and beta densities and probabilities as logarithms, which many distributions are made of.

For large parameters the logarithm of a density is a small difference of large numbers. It is split
as by Loader, "Fast and accurate computation of binomial probabilities" (2000): the exponent as a
deviance, which vanishes at the mode, and what Stirling's formula leaves. Where a probability
underflows, its logarithm is the logarithm of a density plus the logarithm of the series DLMF
8.11.4 and 8.17.22 or the continued fraction DLMF 8.9.2; so far out a few terms are enough.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from ...base.typing import Array, ArrayLike
from ...lax.special.classical import lgamma
from ...lax.special.incomplete_beta import beta_density_p, beta_value, betainc_slope_p
from ...lax.special.incomplete_gamma import stirling
from ...lax.special.series import log1p_minus
from ...numpy.conditions import where
from ...numpy.elementary import log, log1p
from ...types import dtypes
from ..special.entropy import xlogy
from ..special.family import Special, apply
from ..special.gammas import betainc, betaln, gammainc, gammaincc

_LARGE, _TERMS = 16.0, 24
_HALF_LOG_TWICE_PI = 0.5 * math.log(2.0 * math.pi)


def stirling_error(a: Array) -> Array:
    """ln Γ(a+1) - ln √(2πa) - a ln a + a for a > 0."""
    big = a >= _LARGE
    low = where(big, 1.0, a)
    below = lgamma(low + 1.0) - (low + 0.5) * log(low) + low - _HALF_LOG_TWICE_PI
    return where(big, stirling(where(big, a, _LARGE)), below)


def _deviance(a: Array, x: Array) -> Array:
    """a ln(a/x) - (a - x) >= 0, for positive a and x."""
    r = (x - a) / a
    far = abs(r) > 0.5
    return a * where(far, r - log(x / a), -log1p_minus(where(far, 0.0, r)))


def log_gamma_density(x: Array, a: Array) -> Array:
    """log of xᵃ⁻¹ e⁻ˣ / Γ(a) for x >= 0 and a > 0."""
    big = (a >= _LARGE) & (x > 0.0)
    low = where(big, 1.0, a)
    plain = xlogy(low - 1.0, where(big, 1.0, x)) - x - lgamma(low)
    a, z = where(big, a, _LARGE), where(big, x, _LARGE)
    split = 0.5 * log(a) - log(z) - _HALF_LOG_TWICE_PI - stirling_error(a) - _deviance(a, z)
    return where(big, split, plain)


def log_beta_density(x: Array, y: Array, a: Array, b: Array) -> Array:
    """log of xᵃ⁻¹ yᵇ⁻¹ / B(a, b) for x + y = 1, both >= 0, and positive a and b."""
    big = ((a >= _LARGE) | (b >= _LARGE)) & (x > 0.0) & (y > 0.0)
    p, q = where(big, 1.0, a), where(big, 1.0, b)
    plain = xlogy(p - 1.0, where(big, 1.0, x)) + xlogy(q - 1.0, where(big, 1.0, y)) - betaln(p, q)
    x, y = where(big, x, 0.5), where(big, y, 0.5)
    s = a + b
    excess = b * x - a * y
    split = (0.5 * log(a) + 0.5 * log(b / s) - _HALF_LOG_TWICE_PI - log(x) - log(y)
             + stirling_error(s) - stirling_error(a) - stirling_error(b)
             + _power_ratio(a, excess, x * (s / a)) + _power_ratio(b, -excess, y * (s / b)))
    return where(big, split, plain)


def _power_ratio(a: Array, excess: Array, ratio: Array) -> Array:
    """a (ln r - (r - 1)) with r = `ratio` = 1 + excess / a."""
    part = excess / a
    far = (ratio < 0.5) | (part > 1.0)
    return a * where(far, log(ratio) - part, log1p_minus(where(far, 0.0, part)))


def log1p_square(x: ArrayLike) -> Array:
    """log(1 + x**2), also where the square overflows."""
    large = abs(x) > 1e6
    outer = where(large, abs(x), 1e6)
    return where(large, 2.0 * log(outer), log1p(where(large, 0.0, x) ** 2))


# Probabilities -----------------------------------------------------------------------------------

_TINY = {16: 1e-3, 32: 1e-30, 64: 1e-290}


def log_of(value: Array, other: Array, tail: Callable[[], Array] | None = None) -> Array:
    """The logarithm of a probability, given 1 minus it; `tail()` where the value underflows."""
    near = value > 0.5
    high = log1p(-where(near, other, 0.5))
    if tail is None:
        return where(near, high, log(where(near, 0.5, value)))
    lost = value < _TINY[dtypes.itemsize_bits(value.dtype)]
    return where(near, high, where(lost, tail(), log(where(near | lost, 0.5, value))))


def _growth(ratio: Callable[[float], Array]) -> Array:
    """1 + r(0) + r(0) r(1) + ..., the rest as if of a geometric series."""
    last = ratio(float(_TERMS))
    total = 1.0 + last / (1.0 - last)
    for n in range(_TERMS - 1, -1, -1):
        total = 1.0 + ratio(float(n)) * total
    return total


def log_gamma_cdf(x: Array, a: Array) -> Array:
    """log P(a, x) for x > 0."""
    value = gammainc(a, x)

    def tail() -> Array:
        lost = (value < 0.01) & (x > 0.0)
        z = where(lost, x, 0.5 * a)
        series = _growth(lambda n: z / (a + (n + 1.0)))
        return where(x > 0.0, log_gamma_density(z, a) + log(z / a) + log(series), -math.inf)

    return log_of(value, gammaincc(a, x), tail)


def log_gamma_sf(x: Array, a: Array) -> Array:
    """log Q(a, x) for x >= 0."""
    value = gammaincc(a, x)

    def tail() -> Array:
        z = where(value < 0.01, x, a + 1.0)
        fraction = z + (2.0 * _TERMS + 1.0) - a
        for n in range(_TERMS, 0, -1):
            fraction = z + (2.0 * n - 1.0) - a - n * (n - a) / fraction
        return log_gamma_density(z, a) + log(z / fraction)

    return log_of(value, gammainc(a, x), tail)


def _in_parameter(m: int) -> Callable[..., Array]:
    """The tangent in a (m = 1) or b, by the smaller of x and y."""
    def tangent(t: Array, value: Array, a: Array, b: Array, x: Array, y: Array) -> Array:
        near = x <= y
        low = betainc_slope_p.bind(a, b, where(near, x, 0.5), m=m, n=1 - m)
        high = betainc_slope_p.bind(b, a, where(near, 0.5, y), m=1 - m, n=m)
        return t * where(near, low, -high)
    return tangent


# I(a, b; x) for x + y = 1, all whose digits small values of it, of x and of y have.
_beta_cdf_p = Special(
    "beta_cdf", beta_value, _in_parameter(1), _in_parameter(0),
    lambda t, value, a, b, x, y: t * where(
        x <= y, beta_density_p.bind(a, b, where(x <= y, x, 0.5)), 0.0),
    lambda t, value, a, b, x, y: -t * where(
        x <= y, 0.0, beta_density_p.bind(b, a, where(x <= y, 0.5, y))))


def beta_cdf(x: Array, y: Array, a: Array, b: ArrayLike, above: bool = False) -> Array:
    """I(a, b; x) for x + y = 1, or 1 less it if `above`."""
    return apply(_beta_cdf_p, *((b, a, y, x) if above else (a, b, x, y)))


def log_beta_cdf(x: Array, y: Array, a: Array, b: Array) -> Array:
    """log I(a, b; x) for x + y = 1."""
    value = betainc(a, b, x)

    def tail() -> Array:
        lost = (value < 0.01) & (x > 0.0)
        z, w = where(lost, x, 0.5), where(lost, y, 0.5)
        series = _growth(lambda n: z * ((a + b + n) / (a + (n + 1.0))))
        return where(x > 0.0, log_beta_density(z, w, a, b) + log(z * w / a) + log(series),
                     -math.inf)

    return log_of(value, betainc(b, a, y), tail)
