"""Distributions on all numbers."""

from __future__ import annotations

import math

import numpy as np

from ...base.typing import Array, ArrayLike, DType
from ...lax.barriers import stop_gradient
from ...lax.special.classical import bessel_i0e, bessel_i1e
from ...nn.activations import log_sigmoid
from ...numpy.arithmetic import minimum
from ...numpy.conditions import where
from ...numpy.constants import euler_gamma
from ...numpy.elementary import exp, log, log1p, rint, sqrt
from ...numpy.trigonometry import arcsin, arctan2, sin, tan
from ...random import continuous as samplers, from_gamma, gamma as from_gamma_samples
from ...random.continuous import subkeys
from ...random.keys import typed
from ...random.vonmises import vonmises as vonmises_samples
from ...types import dtypes
from ..special.gammas import betainc, betaln, digamma, gammaincc, gammaln
from ..special.normal import log_ndtr, ndtr, ndtri
from .distribution import ByLogCdf, ByLogSf, Continuous, Mirrored, formula, published
from .kernels import beta_cdf, log1p_square, log_beta_cdf, log_gamma_sf, log_of, stirling_error
from .quantiles import with_density

_LOG_ROOT_TWICE_PI = 0.5 * math.log(2.0 * math.pi)


class Norm(Mirrored):
    name, title = "norm", "normal distribution"
    about = """The density is exp(-x**2 / 2) / sqrt(2 pi); `loc` is the mean, `scale` the standard
    deviation."""
    shown = "0.130 -2.044 0.933 -0.069 0.067 -2.706 -0.674 0.674 0.000 1.000 1.000 1.419"
    drawn = "[ 1.62  2.03 -0.43]"
    logpdf = formula(lambda x: -0.5 * x * x - _LOG_ROOT_TWICE_PI)
    cdf = formula(lambda x: ndtr(x))
    logcdf = formula(lambda x: log_ndtr(x))
    ppf = formula(lambda q: ndtri(q))
    var = formula(lambda: 1.0)
    entropy = formula(lambda: _LOG_ROOT_TWICE_PI + 0.5)
    draw = formula(lambda key, shape, dtype: samplers.normal(key, shape, dtype))


class Cauchy(Mirrored):
    name, title = "cauchy", "Cauchy distribution"
    about = "The density is 1 / (pi (1 + x**2)); it has neither mean nor variance."
    shown = "0.098 -2.323 0.813 -0.207 0.187 -1.676 -1.000 1.000 nan nan nan 2.531"
    drawn = "[ 6.03 14.84 -0.58]"
    logpdf = formula(lambda x: -math.log(math.pi) - log1p_square(x))
    mean = formula(lambda: math.nan)
    var = formula(lambda: math.nan)
    entropy = formula(lambda: math.log(4.0 * math.pi))
    draw = formula(lambda key, shape, dtype: samplers.cauchy(key, shape, dtype))

    def cdf(self, x: Array) -> Array:
        return arctan2(1.0 + 0.0 * x, -x) / math.pi     # the angle, accurate in both tails

    def ppf(self, q: Array) -> Array:
        low, high = q < 0.25, q > 0.75
        inner = tan(math.pi * (where(low | high, 0.5, q) - 0.5))
        outer = 1.0 / tan(math.pi * where(low, q, where(high, 1.0 - q, 0.25)))
        return where(low, -outer, where(high, outer, inner))

    def isf(self, q: Array) -> Array:
        return -self.ppf(q)


class Laplace(Mirrored):
    name, title = "laplace", "Laplace distribution"
    about = "The density is exp(-abs(x)) / 2."
    shown = "0.112 -2.193 0.888 -0.118 0.112 -2.193 -0.693 0.693 0.000 2.000 1.414 1.693"
    drawn = "[-2.26 -3.15  0.41]"
    logpdf = formula(lambda x: -abs(x) - math.log(2.0))
    var = formula(lambda: 2.0)
    entropy = formula(lambda: math.log(2.0) + 1.0)
    draw = formula(lambda key, shape, dtype: samplers.laplace(key, shape, dtype))

    def cdf(self, x: Array) -> Array:
        tail = 0.5 * exp(-abs(x))
        return where(x > 0, 1.0 - tail, tail)

    def logcdf(self, x: Array) -> Array:
        up = x > 0
        return where(up, log1p(-0.5 * exp(-where(up, x, 1.0))), where(up, -1.0, x) - math.log(2.0))

    def quantile(self, log_p: Array, log_q: Array) -> Array:
        up = log_p > log_q
        return where(up, -log_q - math.log(2.0), log_p + math.log(2.0))

    def isf(self, q: Array) -> Array:
        return Continuous.isf(self, q)


class Logistic(Mirrored):
    name, title = "logistic", "logistic distribution"
    about = "The `cdf` is 1 / (1 + exp(-x))."
    first = {"ppf": "x", "isf": "x"}
    shown = "0.149 -1.903 0.818 -0.201 0.182 -1.701 -1.099 1.099 0.000 3.290 1.814 2.000"
    drawn = "[ 2.9   3.82 -0.7 ]"
    cdf = formula(lambda x: exp(log_sigmoid(x)))
    logcdf = formula(lambda x: log_sigmoid(x))
    quantile = formula(lambda log_p, log_q: log_p - log_q)
    var = formula(lambda: math.pi ** 2 / 3.0)
    entropy = formula(lambda: 2.0)
    draw = formula(lambda key, shape, dtype: samplers.logistic(key, shape, dtype))

    def logpdf(self, x: Array) -> Array:
        x = abs(x)
        return -x - 2.0 * log1p(exp(-x))


class GumbelR(ByLogCdf):
    name, title = "gumbel_r", "Gumbel distribution of largest values"
    about = "The `cdf` is exp(-exp(-x))."
    first = {"ppf": "p"}
    shown = "0.179 -1.723 0.800 -0.223 0.200 -1.609 -0.327 1.246 0.577 1.645 1.283 1.577"
    drawn = "[ 2.92  3.83 -0.1 ]"
    logpdf = formula(lambda x: -x - exp(-x))
    logcdf = formula(lambda x: -exp(-x))
    quantile = formula(lambda log_p, log_q: -log(-log_p))
    mean = formula(lambda: euler_gamma)
    var = formula(lambda: math.pi ** 2 / 6.0)
    entropy = formula(lambda: euler_gamma + 1.0)
    draw = formula(lambda key, shape, dtype: samplers.gumbel(key, shape, dtype))

    def logsf(self, x: Array) -> Array:
        far = x > 40.0      # where 1 - exp(-u) is u, which underflows later than its logarithm
        return where(far, -x, super().logsf(where(far, 1.0, x)))


class GumbelL(ByLogSf):
    name, title = "gumbel_l", "Gumbel distribution of smallest values"
    about = "The `sf` is exp(-exp(x)): that of -y for y of `gumbel_r`."
    first = {"ppf": "p"}
    shown = "0.051 -2.982 0.989 -0.011 0.011 -4.482 -1.246 0.327 -0.577 1.645 1.283 1.577"
    drawn = "[-2.92 -3.83  0.1 ]"
    logpdf = formula(lambda x: x - exp(x))
    logsf = formula(lambda x: -exp(x))
    quantile = formula(lambda log_p, log_q: log(-log_q))
    mean = formula(lambda: -euler_gamma)
    var = formula(lambda: math.pi ** 2 / 6.0)
    entropy = formula(lambda: euler_gamma + 1.0)
    draw = formula(lambda key, shape, dtype: -samplers.gumbel(key, shape, dtype))

    def logcdf(self, x: Array) -> Array:
        far = x < -40.0
        return where(far, x, super().logcdf(where(far, 1.0, x)))


class T(Mirrored):
    name, title = "t", "Student t distribution"
    about = """The density is (1 + x**2 / df) ** (-(df+1)/2) up to a factor. Probabilities are
    incomplete beta functions (DLMF 8.17), quantiles are found by Newton's method in a bracket."""
    parameters, words, sample = ("df",), ("df: degrees of freedom, > 0.",), (3.0,)
    shown = "0.120 -2.120 0.885 -0.122 0.115 -2.160 -0.765 0.765 0.000 3.000 1.732 1.773"
    drawn = "[ 0.69 -3.24 -1.67]"
    mean = formula(lambda df: where(df > 1, 0.0, math.nan))
    draw = formula(lambda key, shape, dtype, df: from_gamma.t(key, df, shape, dtype))

    def logpdf(self, x: Array, df: Array) -> Array:
        df = minimum(df, 1e30)      # whose density is the normal one
        half = 0.5 * df
        # ln Γ(h + 1/2) - ln Γ(h) - ln(h) / 2 by Stirling's formula, where nothing cancels.
        front = stirling_error(half + 0.5) - stirling_error(half) + half * log1p(0.5 / half) - 0.5
        return front - _LOG_ROOT_TWICE_PI - (half + 0.5) * log1p_square(x / sqrt(df))

    def _cdf(self, x: Array, df: Array) -> Array:
        square = x * x
        tail = 0.5 * beta_cdf(df / (df + square), square / (df + square), 0.5 * df, 0.5)
        return where(x > 0, 1.0 - tail, tail)

    def _smooth_cdf(self, x: Array, df: Array) -> Array:
        """The same, differentiable at 0 too, but less accurate for large df."""
        root = sqrt(x * x + df)
        y = df / (2.0 * root * (root + abs(x)))
        return betainc(0.5 * df, 0.5 * df, where(x > 0, 1.0 - y, y))

    def cdf(self, x: Array, df: Array) -> Array:
        return with_density(self._cdf, self.pdf, self._smooth_cdf, x, minimum(df, 1e30))

    def logcdf(self, x: Array, df: Array) -> Array:
        low = x < -1.0
        z = where(low, x, -1.0)
        ratio = (z / df) * z
        tail = log_beta_cdf(1.0 / (1.0 + ratio), ratio / (1.0 + ratio), 0.5 * df, 0.5 + 0.0 * df)
        above = x > 0.0
        lower = self.cdf(where(low, 0.0, where(above, -x, x)), df)
        value, other = where(above, 1.0 - lower, lower), where(above, lower, 1.0 - lower)
        return where(low, tail - math.log(2.0), log_of(value, other))

    def var(self, df: Array) -> ArrayLike:
        two = df > 2
        return where(two, 1.0 / (1.0 - 2.0 / where(two, df, 4.0)),
                     where(df > 1, math.inf, math.nan))

    def entropy(self, df: Array) -> Array:
        half = 0.5 * df
        return ((half + 0.5) * (digamma(half + 0.5) - digamma(half)) + 0.5 * log(df)
                + betaln(half, 0.5 + 0.0 * df))


class Gennorm(Mirrored):
    name, title = "gennorm", "generalised normal distribution"
    about = """The density is exp(-abs(x)**beta) up to a factor: `laplace` for beta = 1, a normal
    distribution for 2. Probabilities are incomplete gamma functions."""
    parameters, words, sample = ("beta",), ("beta: exponent, > 0.",), (1.3,)
    shown = "0.099 -2.308 0.938 -0.064 0.062 -2.784 -0.562 0.562 0.000 0.976 0.988 1.383"
    drawn = "[-0.77  0.    0.22]"
    logpdf = formula(
        lambda x, beta: log(0.5 * beta) - gammaln(1.0 / beta) - _power_of_absolute(x, beta))
    var = formula(lambda beta: exp(gammaln(3.0 / beta) - gammaln(1.0 / beta)))
    entropy = formula(lambda beta: 1.0 / beta - log(0.5 * beta) + gammaln(1.0 / beta))

    def _cdf(self, x: Array, beta: Array) -> Array:
        tail = 0.5 * gammaincc(1.0 / beta, _power_of_absolute(x, beta))
        return where(x > 0, 1.0 - tail, tail)

    def _away_from_0(self, x: Array, beta: Array) -> Array:
        return where(x == 0, 0.5, self._cdf(where(x == 0, 1.0, x), beta))

    def cdf(self, x: Array, beta: Array) -> Array:
        return with_density(self._cdf, self.pdf, self._away_from_0, x, beta)

    def logcdf(self, x: Array, beta: Array) -> Array:
        low = x < -1.0
        power = _power_of_absolute(where(low, x, -1.0), beta)
        tail = log_gamma_sf(power, 1.0 / beta) - math.log(2.0)
        inner = where(low, 0.0, x)
        return where(low, tail, log_of(self.cdf(inner, beta), self.cdf(-inner, beta)))

    def draw(self, key: Array, shape: tuple[int, ...], dtype: DType, beta: Array) -> Array:
        signs, sizes = subkeys(typed(key))
        size = exp(from_gamma_samples.loggamma(sizes, 1.0 / beta, shape, dtype) / beta)
        return samplers.rademacher_signs(signs, shape, dtype) * size


class Vonmises(Mirrored):
    name, title = "vonmises", "von Mises distribution"
    about = """The density is exp(kappa cos(x)) / (2 pi I0(kappa)), periodic in x; the probability
    of at most x grows by 1 with each period, quantiles are between -pi and pi. The upper tail is
    integrated up to where it has fallen by exp(-40), by Gauss's and Legendre's rule."""
    parameters, words, sample = ("kappa",), ("kappa: concentration, >= 0.",), (2.0,)
    shown = "0.080 -2.520 0.957 -0.044 0.043 -3.150 -0.530 0.530 0.000 1.266"
    drawn = "[-0.76  0.63 -0.38]"
    legal = formula(lambda kappa: kappa >= 0)
    bounds = formula(lambda kappa: (-math.pi, 0.0))
    draw = formula(lambda key, shape, dtype, kappa: vonmises_samples(key, 0.0, kappa, shape, dtype))

    def logpdf(self, x: Array, kappa: Array) -> Array:
        # cos(x) - 1 without cancellation, so that large concentrations are as accurate.
        return (-2.0 * kappa * sin(0.5 * x) ** 2 - math.log(2.0 * math.pi)
                - log(bessel_i0e(_above_zero(kappa))))

    def cdf(self, x: Array, kappa: Array) -> Array:
        turns = rint(x / (2.0 * math.pi))
        angle = x - 2.0 * math.pi * turns
        tail = self._tail(abs(angle), kappa)
        return turns + where(angle < 0.0, tail, 1.0 - tail)

    def logcdf(self, x: Array, kappa: Array) -> Array:
        return log_of(self.cdf(x, kappa), self.sf(x, kappa))

    def _tail(self, x: Array, kappa: Array) -> Array:
        """The probability of more than x, for 0 <= x <= pi."""
        fallen = sin(0.5 * x) ** 2 + 20.0 / kappa
        width = stop_gradient(2.0 * arcsin(sqrt(minimum(fallen, 1.0)))) - x
        nodes, weights = np.polynomial.legendre.leggauss(40)
        at = x[..., None] + width[..., None] * (0.5 + 0.5 * nodes).astype(x.dtype)
        density = self.pdf(at, kappa[..., None])
        return width * (density * (0.5 * weights).astype(x.dtype)).sum(-1)

    def entropy(self, kappa: Array) -> Array:
        i0 = bessel_i0e(_above_zero(kappa))
        return math.log(2.0 * math.pi) + log(i0) + kappa * (1.0 - bessel_i1e(kappa) / i0)


def _above_zero(x: Array) -> Array:
    """`x` >= 0, on the side of 0 where the slope of exp(-abs(x)) is -1."""
    return x + float(dtypes.finfo(x.dtype).tiny)


def _power_of_absolute(x: Array, beta: Array) -> Array:
    """abs(x) ** beta, whose derivatives at 0 are 0."""
    none = x == 0
    return where(none, 0.0, exp(beta * log(abs(where(none, 1.0, x)))))


cauchy, gennorm, gumbel_l = published(Cauchy()), published(Gennorm()), published(GumbelL())
gumbel_r, laplace, logistic = published(GumbelR()), published(Laplace()), published(Logistic())
norm, t, vonmises = published(Norm()), published(T()), published(Vonmises())
