"""Distribution functions under the names that SciPy has from Cephes, and Kolmogorov's.

Compositions of the incomplete gamma and beta functions and their inverses; Student's t has
functions of its own, since the argument of the beta function would lose digits.
"""

from __future__ import annotations

import math
from typing import Any

from ...base.docstrings import complete_docstrings, described_like
from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.special.incomplete_beta import (
    beta_density_p, beta_value, betainc_slope_p, betaincc_p, regularized_incomplete_beta_p,
)
from ...lax.special.incomplete_gamma import igamma_p, igammac_p
from ...lax.special.series import is_short, least_normal
from ...numpy.arithmetic import absolute, maximum, minimum
from ...numpy.elementary import exp, floor, sqrt
from ...numpy.selection import where
from .family import Special, apply, by_format, inside, operands, outside
from .gammas import beta_p
from .inverses import beta_logit, gammainccinv_p


@fused
def chdtr(v: ArrayLike, x: ArrayLike) -> Array:
    """The distribution function of χ² with v degrees of freedom.

    Returns: Probabilities of the broadcast shape.

    >>> print(f"{special.chdtr(2.0, 2.0):.5f}")
    0.63212
    """
    v, x = operands("chdtr", v, x)
    return igamma_p.bind(0.5 * v, 0.5 * x)


@fused
def chdtrc(v: ArrayLike, x: ArrayLike) -> Array:
    """The survival function of χ² with v degrees of freedom.

    Returns: Probabilities of the broadcast shape, small ones too.

    >>> print(f"{special.chdtrc(2.0, 2.0):.5f}")
    0.36788
    """
    v, x = operands("chdtrc", v, x)
    return igammac_p.bind(0.5 * v, 0.5 * x)


@fused
def chdtri(v: ArrayLike, p: ArrayLike) -> Array:
    """The x with chdtrc(v, x) = p.

    Args: v: degrees of freedom, real, > 0.
    Returns: An array of the broadcast shape. Differentiable in both.

    >>> print(f"{special.chdtri(1.0, 0.05):.4f}")
    3.8415
    """
    v, p = operands("chdtri", v, p)
    return 2.0 * gammainccinv_p.bind(0.5 * v, p)


@fused
def gdtr(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The distribution function of the gamma distribution of rate a and shape b.

    Returns: Probabilities of the broadcast shape.

    >>> print(f"{special.gdtr(1.0, 1.0, 1.0):.5f}")
    0.63212
    """
    a, b, x = operands("gdtr", a, b, x)
    return igamma_p.bind(b, a * x)


@fused
def gdtrc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """The survival function of the gamma distribution of rate a and shape b.

    Returns: Probabilities of the broadcast shape, small ones too.

    >>> print(f"{special.gdtrc(1.0, 1.0, 1.0):.5f}")
    0.36788
    """
    a, b, x = operands("gdtrc", a, b, x)
    return igammac_p.bind(b, a * x)


def _fdtr(tol: float, n: Any, d: ArrayLike, x: Array) -> Array:
    """I(n/2, d/2; w / (1+w)) of the odds w = n x / d."""
    w = n / d * where(x < 0.0, math.nan, x)
    share = _share(w)
    if is_short(w):     # where it is less, its power of n/2 is 1
        share = where((n < 1e-3) & (n > 0.0) & (x > 0.0), maximum(share, least_normal(w)), share)
    return beta_value(tol, 0.5 * n, 0.5 * d, share, 1.0 / (1.0 + w))


def _share(w: Array) -> Array:
    return where(w == math.inf, 1.0, w / (1.0 + w))


def _fisher_slopes(n: Any, d: ArrayLike, x: Array) -> tuple[Any, Any, Any]:
    """The derivatives of the distribution function in n, d and x."""
    a, b, w = 0.5 * n, 0.5 * d, n / d * x
    share = _share(w)
    in_w = beta_density_p.bind(a, b, share) / (1.0 + w) ** 2.0
    in_a, in_b = (betainc_slope_p.bind(a, b, share, m=i, n=1 - i) for i in (1, 0))
    return 0.5 * in_a + in_w * x / d, 0.5 * in_b - in_w * w / d, in_w * n / d


fdtr_p = Special("fdtr", _fdtr, *(
    lambda t, y, n, d, x, i=i: t * _fisher_slopes(n, d, x)[i] for i in range(3)))
fdtri_p = Special(
    "fdtri", lambda tol, n, d, p: d / n * exp(beta_logit(tol, 0.5 * n, 0.5 * d, p, 1.0 - p)),
    *(lambda t, x, n, d, p, i=i: _fisher_tangent(t, i, n, d, x) for i in range(2)),
    lambda t, x, n, d, p: t / _fisher_slopes(n, d, x)[2], pace=math.inf)


def _fisher_tangent(t: Array, i: int, n: object, d: Array, x: Array) -> Array:
    slopes = _fisher_slopes(n, d, x)
    return -t * slopes[i] / slopes[2]


@fused(inline=True)
def fdtr(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike) -> Array:
    """The distribution function of Fisher's F.

    Returns: Probabilities of the broadcast shape, NaN for x < 0.

    >>> print(f"{special.fdtr(2.0, 4.0, 1.0):.5f}")
    0.55556
    """
    return apply(fdtr_p, dfn, dfd, x)


@fused
def fdtrc(dfn: ArrayLike, dfd: ArrayLike, x: ArrayLike) -> Array:
    """The survival function of Fisher's F.

    Returns: Probabilities of the broadcast shape, small ones too; NaN for x < 0.

    >>> print(f"{special.fdtrc(2.0, 4.0, 1.0):.5f}")
    0.44444
    """
    dfn, dfd, x = operands("fdtrc", dfn, dfd, x)
    return fdtr_p.bind(dfd, dfn, where(x == 0.0, math.inf, 1.0 / x))


@fused(inline=True)
def fdtri(dfn: ArrayLike, dfd: ArrayLike, p: ArrayLike) -> Array:
    """The x with fdtr(dfn, dfd, x) = p.

    Args: p: probabilities, real; all shapes broadcast.
    Returns: An array of the broadcast shape. Differentiable in all three.

    >>> print(f"{special.fdtri(2.0, 4.0, 0.95):.4f}")
    6.9443
    """
    return apply(fdtri_p, dfn, dfd, p)


@fused
def pdtr(k: ArrayLike, m: ArrayLike) -> Array:
    """The distribution function of Poisson's distribution: at most k events, of the mean number m.

    Returns: Probabilities of the broadcast shape, NaN for k < 0.

    >>> print(f"{special.pdtr(1.0, 1.0):.5f}")
    0.73576
    """
    k, m = operands("pdtr", k, m)
    return igammac_p.bind(where(k < 0.0, math.nan, floor(k) + 1.0), m)


@fused
def pdtrc(k: ArrayLike, m: ArrayLike) -> Array:
    """The survival function of Poisson's distribution: more than k events, of the mean number m.

    Returns: Probabilities of the broadcast shape, small ones too; NaN for k < 0.

    >>> print(f"{special.pdtrc(1.0, 1.0):.5f}")
    0.26424
    """
    k, m = operands("pdtrc", k, m)
    return igamma_p.bind(where(k < 0.0, math.nan, floor(k) + 1.0), m)


@fused
def bdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The distribution function of the binomial distribution: at most k of n events.

    Args:
      k: real numbers, whose floor counts, 0 <= k <= n.
      p: probabilities of one event; all shapes broadcast.

    >>> print(special.bdtr(1.0, 2.0, 0.5))
    0.75
    """
    k, n, p = operands("bdtr", k, n, p)
    return _binomial(floor(k), floor(n), p, True)


@fused
@described_like(bdtr)
def bdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The survival function of the binomial distribution: more than k of n events.

    >>> print(special.bdtrc(1.0, 2.0, 0.5))
    0.25
    """
    k, n, p = operands("bdtrc", k, n, p)
    return _binomial(floor(k), floor(n), p, False)


def _binomial(k: Array, n: Array, p: Array, below: bool) -> Array:
    """P(at most k of n), or P(more than k of n)."""
    legal = (k >= 0.0) & (k <= n) & (p >= 0.0) & (p <= 1.0)
    inner = legal & (k < n)
    value = (betaincc_p if below else regularized_incomplete_beta_p).bind(
        inside(inner, k + 1.0, 1.0), inside(inner, n - k, 1.0), inside(inner, p, 0.5))
    return where(inner, value, where(legal, 1.0 if below else 0.0, math.nan))


@fused
def nbdtr(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The distribution function of the negative binomial distribution.

    Args:
      k: how many failures at most there are before the n-th success, >= 0.
      n: whole numbers > 0.
      p: probabilities of one success; all shapes broadcast.

    >>> print(special.nbdtr(1.0, 2.0, 0.5))
    0.5
    """
    k, n, p = operands("nbdtr", k, n, p)
    return regularized_incomplete_beta_p.bind(n, where(k < 0.0, math.nan, floor(k) + 1.0), p)


@fused
def nbdtrc(k: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """The survival function of the negative binomial distribution.

    Args:
      k: more failures than which there are before the n-th success, >= 0.
      n: whole numbers > 0.
      p: probabilities of one success; all shapes broadcast.

    >>> print(special.nbdtrc(1.0, 2.0, 0.5))
    0.5
    """
    k, n, p = operands("nbdtrc", k, n, p)
    return betaincc_p.bind(n, where(k < 0.0, math.nan, floor(k) + 1.0), p)


# Student's t -------------------------------------------------------------------------------------

_FAR = 1e150, 1e15      # whose square is a number, in float64 and float32


def _stdtr(tol: float, df: Array, t: Array) -> Array:
    """I(ν/2, 1/2; ν/(ν+t²)) / 2 for t < 0, or of 1/2 and ν/2 near 0."""
    legal = (df > 0.0) & (df < math.inf) & (absolute(t) < math.inf)
    nu, s = inside(legal, df, 1.0), inside(legal, t, 1.0)
    square = _square(s)
    near = square < 1.0
    x, y = nu / (nu + square), square / (nu + square)
    if is_short(x):     # where it is less, its power of ν/2 is 1
        x = maximum(x, least_normal(x))
    half = nu * 0.0 + 0.5
    part = 0.5 * beta_value(tol, where(near, half, 0.5 * nu), where(near, 0.5 * nu, half),
                            where(near, y, x), where(near, x, y))
    # Far out the power of -ν is all: t² would overflow.
    far = by_format(s, *_FAR)
    part = where(absolute(s) > far, part * (far / maximum(absolute(s), far)) ** nu, part)
    below = where(near, 0.5 - part, part)
    value = where(s < 0.0, below, where(near, 0.5 + part, 1.0 - part))
    edge = where((df > 0.0) & (absolute(t) == math.inf), where(t > 0.0, 1.0, 0.0), math.nan)
    return where(legal, value, edge)


def _square(x: Array) -> Array:
    """x², which does not overflow."""
    far = by_format(x, *_FAR)
    return where(absolute(x) < far, x, far) ** 2.0


def _t_density(df: Array, t: Array) -> Array:
    """(1 + t²/ν) to the -(ν+1)/2, over √ν B(1/2, ν/2)."""
    x = df / (df + t * t)
    size = apply(beta_p, 0.5, 0.5 * df) * sqrt(df)
    return x ** (0.5 * (df + 1.0)) / size


def _t_in_df(df: Array, t: Array) -> Array:
    """The derivative of the distribution function in ν, odd in t."""
    square = maximum(t * t, 1e-30)
    x = df / (df + square)
    half = 0.0 * x + 0.5
    slope = 0.5 * betainc_slope_p.bind(0.5 * df, half, x, m=1, n=0)
    slope = slope + beta_density_p.bind(0.5 * df, half, x) * square / (df + square) ** 2.0
    return 0.5 * slope * where(t < 0.0, 1.0, where(t > 0.0, -1.0, 0.0))


def _stdtrit(tol: float, df: Array, p: Array) -> Array:
    legal = (df > 0.0) & (df < math.inf) & (p > 0.0) & (p < 1.0)
    nu, p, p_ = inside(legal, df, 1.0), inside(legal, p, 0.25), p
    near = absolute(p - 0.5) < 0.25
    middle = absolute(2.0 * p - 1.0)
    tail = 2.0 * where(p < 0.5, p, 1.0 - p)
    half = nu * 0.0 + 0.5
    u = beta_logit(tol, where(near, half, 0.5 * nu), where(near, 0.5 * nu, half),
                   where(near, middle, tail), where(near, tail, 1.0 - tail))
    size = sqrt(nu) * exp(0.5 * where(near, u, -u))
    value = where(p < 0.5, -size, where(p == 0.5, 0.0, size))
    edge = where(p_ == 0.0, -math.inf, where(p_ == 1.0, math.inf, math.nan))
    return where(legal, value, where((df > 0.0) & (df < math.inf), edge, math.nan))


stdtr_p = Special("stdtr", _stdtr, lambda s, y, df, t: s * _t_in_df(df, t),
                  lambda s, y, df, t: s * _t_density(df, t))
stdtrit_p = Special("stdtrit", _stdtrit,
                    lambda s, t, df, p: -s * _t_in_df(df, t) / _t_density(df, t),
                    lambda s, t, df, p: s / _t_density(df, t), pace=math.inf)


@fused(inline=True)
def stdtr(df: ArrayLike, t: ArrayLike) -> Array:
    """The distribution function of Student's t.

    Args: t: real numbers of a shape that broadcasts.
    Returns: Probabilities of the broadcast shape, small ones too. Differentiable in both.

    >>> print(special.stdtr(1.0, 0.0), f"{special.stdtr(1.0, 1.0):.5f}")
    0.5 0.75000
    """
    return apply(stdtr_p, df, t)


@fused(inline=True)
def stdtrit(df: ArrayLike, p: ArrayLike) -> Array:
    """The quantile function of Student's t: the t with stdtr(df, t) = p.

    Returns:
      An array of the broadcast shape: -inf at 0, inf at 1, NaN outside. Differentiable in both.

    >>> print(f"{special.stdtrit(10.0, 0.975):.4f}")
    2.2281
    """
    return apply(stdtrit_p, df, p)


# Kolmogorov --------------------------------------------------------------------------------------

def _kolmogorov(tol: float, y: Array, order: int = 0) -> Array:
    """2 Σ (-1)ᵏ⁻¹ exp(-2k²y²), or for small y the theta function's other series."""
    near = y < 1.0
    small, large = inside(near & (y > 0.04), y, 0.5), outside(near, y, 1.0)
    far = small * 0.0
    for k in range(5, 0, -1):
        far = far + 2.0 * (-1.0) ** (k - 1) * exp(-2.0 * k * k * large * large)
    low = small * 0.0
    for k in range(4, 0, -1):
        low = low + exp(-((2 * k - 1) * math.pi) ** 2 / (8.0 * small * small))
    low = 1.0 - math.sqrt(2.0 * math.pi) / small * low
    return where(y != y, y, where(near, where(y > 0.04, low, 1.0), far))


def _kolmogorov_slope(y: Array) -> Array:
    near = y < 1.0
    small, large = inside(near & (y > 0.04), y, 0.5), outside(near, minimum(y, 100.0), 1.0)
    far = low = small * 0.0
    for k in range(5, 0, -1):
        far = far + 8.0 * (-1.0) ** k * k * k * large * exp(-2.0 * k * k * large * large)
    for k in range(4, 0, -1):
        c = ((2 * k - 1) * math.pi) ** 2 / 8.0
        w = 1.0 / (small * small)
        low = low + exp(-c * w) * w * (1.0 - 2.0 * c * w)
    return where(near, where(y > 0.04, math.sqrt(2.0 * math.pi) * low, 0.0), far)


kolmogorov_p = Special("kolmogorov", _kolmogorov, lambda t, p, y: t * _kolmogorov_slope(y))


@fused(inline=True)
def kolmogorov(y: ArrayLike) -> Array:
    """The survival function of Kolmogorov's distribution, the limit of √n times his statistic.

    Args: y: real numbers; integers become floats.
    Returns: Probabilities of the shape of y: 1 for y <= 0.

    >>> print(f"{special.kolmogorov(1.0):.5f}")
    0.27000
    """
    return apply(kolmogorov_p, y)


complete_docstrings(globals(), {
    "dfn, dfd": "degrees of freedom, real, > 0.",
    "v, x": "real numbers >= 0 of shapes that broadcast.",
    "p": "probabilities, real, of a shape that broadcasts.",
    "a, b, x": "real numbers >= 0 of shapes that broadcast.",
    "x": "real numbers >= 0; all shapes broadcast.",
    "k": "real numbers >= 0, of which the floor counts.",
    "m": "means, real, >= 0, of a shape that broadcasts.",
    "n": "whole numbers.",
    "df": "degrees of freedom, real, > 0.",
}, returns="Probabilities of the broadcast shape, NaN outside.")
