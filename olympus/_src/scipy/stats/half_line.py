"""Distributions on positive numbers: of waiting times, of sizes, of sums of squares."""

from __future__ import annotations

import math
from collections.abc import Callable

from ...base.typing import Array, ArrayLike
from ...numpy.arithmetic import minimum
from ...numpy.conditions import where
from ...numpy.constants import euler_gamma
from ...numpy.elementary import exp, expm1, log, sqrt
from ...numpy.trigonometry import arctan, arctan2, tan
from ...random import continuous as samplers, from_gamma, gamma as gamma_samplers
from ...types import dtypes
from ..special.distributions import fdtri
from ..special.entropy import xlogy
from ..special.gammas import betaln, digamma, gammainc, gammaincc, gammaln
from ..special.inverses import gammainccinv, gammaincinv
from ..special.normal import erf, erfc, erfinv, log_ndtr, ndtr, ndtri
from .distribution import ByLogCdf, ByLogSf, Continuous, formula, published
from .kernels import (
    beta_cdf, log1p_square, log_beta_cdf, log_beta_density, log_gamma_cdf, log_gamma_density,
    log_gamma_sf,
)

_LOG_2 = math.log(2.0)


class Expon(ByLogSf):
    name, title, low = "expon", "exponential distribution", 0.0
    about = "The density is exp(-x) for x >= 0."
    shown = "0.223 -1.500 0.777 -0.252 0.223 -1.500 0.288 1.386 1.000 1.000 1.000 1.000"
    drawn = "[2.95 3.84 0.4 ]"
    logpdf = formula(lambda x: -x)
    logsf = formula(lambda x: -x)
    quantile = formula(lambda log_p, log_q: -log_q)
    mean = formula(lambda: 1.0)
    var = formula(lambda: 1.0)
    entropy = formula(lambda: 1.0)
    draw = formula(lambda key, shape, dtype: samplers.exponential(key, shape, dtype))


class Gamma(Continuous):
    name, title, low = "gamma", "gamma distribution", 0.0
    about = """The density is x**(a-1) exp(-x) / Gamma(a) for x >= 0. Probabilities are incomplete
    gamma functions (DLMF 8.2)."""
    parameters, words, sample = ("a",), ("a: shape, > 0.",), (2.0,)
    shown = "0.335 -1.095 0.442 -0.816 0.558 -0.584 0.961 2.693 2.000 2.000 1.414 1.577"
    drawn = "[1.59 1.76 1.13]"
    logpdf = formula(lambda x, a: log_gamma_density(x, a))
    cdf = formula(lambda x, a: gammainc(a, x))
    sf = formula(lambda x, a: gammaincc(a, x))
    logcdf = formula(lambda x, a: log_gamma_cdf(x, a))
    logsf = formula(lambda x, a: log_gamma_sf(x, a))
    ppf = formula(lambda q, a: gammaincinv(a, q))
    isf = formula(lambda q, a: gammainccinv(a, q))
    mean = formula(lambda a: a)
    var = formula(lambda a: a)
    entropy = formula(lambda a: a + gammaln(a) + (1.0 - a) * digamma(a))
    draw = formula(lambda key, shape, dtype, a: gamma_samplers.gamma(key, a, shape, dtype))


_gamma = Gamma()


class Chi2(Continuous):
    name, title, low = "chi2", "chi-square distribution", 0.0
    about = """That of the sum of the squares of `df` standard normal numbers, which need not be a
    whole number: twice a gamma number of shape df / 2."""
    parameters, words, sample = ("df",), ("df: degrees of freedom, > 0.",), (3.0,)
    shown = "0.231 -1.466 0.318 -1.147 0.682 -0.382 1.213 4.108 3.000 6.000 2.449 2.054"
    drawn = "[2.21 2.49 1.46]"
    logpdf = formula(lambda x, df: log_gamma_density(0.5 * x, 0.5 * df) - _LOG_2)
    cdf = formula(lambda x, df: gammainc(0.5 * df, 0.5 * x))
    sf = formula(lambda x, df: gammaincc(0.5 * df, 0.5 * x))
    logcdf = formula(lambda x, df: log_gamma_cdf(0.5 * x, 0.5 * df))
    logsf = formula(lambda x, df: log_gamma_sf(0.5 * x, 0.5 * df))
    ppf = formula(lambda q, df: 2.0 * _gamma.ppf(q, 0.5 * df))
    isf = formula(lambda q, df: 2.0 * _gamma.isf(q, 0.5 * df))
    mean = formula(lambda df: df)
    var = formula(lambda df: 2.0 * df)
    entropy = formula(lambda df: _gamma.entropy(0.5 * df) + _LOG_2)
    draw = formula(lambda key, shape, dtype, df: from_gamma.chisquare(key, df, shape, dtype))


class Invgamma(Continuous):
    name, title, low = "invgamma", "inverse gamma distribution", 0.0
    about = "That of 1 / y for y of `gamma`: the density is x**(-a-1) exp(-1/x) / Gamma(a)."
    parameters, words, sample = ("a",), ("a: shape, > 0.",), (3.5,)
    shown = "0.025 -3.692 0.988 -0.013 0.012 -4.384 0.221 0.470 0.400 0.107 0.327 -0.263"
    drawn = "[0.33 0.3  0.42]"
    inner = formula(lambda a: 1.0)
    cdf = formula(lambda x, a: _of_inverse(gammaincc, x, a, 0.0))
    sf = formula(lambda x, a: _of_inverse(gammainc, x, a, 1.0))
    logcdf = formula(lambda x, a: _of_inverse(lambda a, y: log_gamma_sf(y, a), x, a, -math.inf))
    logsf = formula(lambda x, a: _of_inverse(lambda a, y: log_gamma_cdf(y, a), x, a, 0.0))
    ppf = formula(lambda q, a: 1.0 / _gamma.isf(q, a))
    isf = formula(lambda q, a: 1.0 / _gamma.ppf(q, a))
    mean = formula(lambda a: where(a > 1, 1.0 / where(a > 1, a - 1.0, 1.0), math.inf))
    entropy = formula(lambda a: a + gammaln(a) - (1.0 + a) * digamma(a))
    draw = formula(lambda key, shape, dtype, a: exp(-gamma_samplers.loggamma(key, a, shape, dtype)))

    def logpdf(self, x: Array, a: Array) -> Array:
        none = x == 0
        y = 1.0 / where(none, 1.0, x)
        return where(none, -math.inf, log_gamma_density(y, a) + 2.0 * log(y))

    def var(self, a: Array) -> ArrayLike:
        two = a > 2
        b = where(two, a, 4.0)
        return where(two, 1.0 / ((b - 1.0) ** 2 * (b - 2.0)), math.inf)


def _of_inverse(fun: Callable[..., Array], x: ArrayLike, a: ArrayLike, at_zero: float) -> Array:
    none = x == 0
    return where(none, at_zero, fun(a, 1.0 / where(none, 1.0, x)))


class F(Continuous):
    name, title, low = "f", "F distribution", 0.0
    about = """That of the ratio of two chi-square numbers, each over its degrees of freedom.
    Probabilities are incomplete beta functions (DLMF 8.17)."""
    parameters, sample = ("dfn", "dfd"), (3.0, 7.0)
    words = ("dfn, dfd: degrees of freedom of the numerator and the denominator, > 0.",)
    shown = "0.234 -1.453 0.704 -0.351 0.296 -1.218 0.411 1.717 1.400 3.484 1.867 1.298"
    drawn = "[2.45 0.16 0.16]"
    ppf = formula(lambda q, dfn, dfd: fdtri(dfn, dfd, q))
    isf = formula(lambda q, dfn, dfd: 1.0 / fdtri(dfd, dfn, q))
    draw = formula(lambda key, shape, dtype, dfn, dfd: from_gamma.f(key, dfn, dfd, shape, dtype))

    def _parts(self, x: Array, dfn: Array, dfd: Array) -> tuple[Array, Array, Array, Array]:
        r = minimum(x * (dfn / dfd), float(dtypes.finfo(x.dtype).max))
        return r / (1.0 + r), 1.0 / (1.0 + r), 0.5 * dfn, 0.5 * dfd

    def logpdf(self, x: Array, dfn: Array, dfd: Array) -> Array:
        y, z, a, b = self._parts(x, dfn, dfd)
        return log_beta_density(y, z, a, b) + 2.0 * log(z) + log(dfn / dfd)

    def cdf(self, x: Array, dfn: Array, dfd: Array) -> Array:
        return beta_cdf(*self._parts(x, dfn, dfd))

    def sf(self, x: Array, dfn: Array, dfd: Array) -> Array:
        return beta_cdf(*self._parts(x, dfn, dfd), above=True)

    def logcdf(self, x: Array, dfn: Array, dfd: Array) -> Array:
        y, z, a, b = self._parts(x, dfn, dfd)
        return log_beta_cdf(y, z, a, b)

    def logsf(self, x: Array, dfn: Array, dfd: Array) -> Array:
        y, z, a, b = self._parts(x, dfn, dfd)
        return log_beta_cdf(z, y, b, a)

    def mean(self, dfn: Array, dfd: Array) -> Array:
        two = dfd > 2
        b = where(two, dfd, 4.0)
        return where(two, b / (b - 2.0), math.inf)

    def var(self, dfn: Array, dfd: Array) -> ArrayLike:
        four = dfd > 4
        b = where(four, dfd, 6.0)
        return where(four, 2.0 * (b / (b - 2.0)) ** 2 * (dfn + b - 2.0) / (dfn * (b - 4.0)),
                     math.inf)

    def entropy(self, dfn: Array, dfd: Array) -> Array:
        a, b = 0.5 * dfn, 0.5 * dfd
        return (log(b) - log(a) + betaln(a, b) + (1.0 - a) * digamma(a) - (1.0 + b) * digamma(b)
                + (a + b) * digamma(a + b))


class Pareto(ByLogSf):
    name, title, low = "pareto", "Pareto distribution", 1.0
    about = "The density is b x**(-b-1) for x >= 1."
    parameters, words, sample = ("b",), ("b: exponent of the tail, > 0.",), (2.5,)
    shown = "0.605 -0.503 0.637 -0.451 0.363 -1.014 1.122 1.741 1.667 2.222 1.491 0.484"
    drawn = "[3.25 4.65 1.18]"
    logpdf = formula(lambda x, b: log(b) - (b + 1.0) * log(x))
    logsf = formula(lambda x, b: -b * log(x))
    quantile = formula(lambda log_p, log_q, b: exp(-log_q / b))
    entropy = formula(lambda b: 1.0 + 1.0 / b - log(b))

    def mean(self, b: Array) -> Array:
        one = b > 1
        c = where(one, b, 2.0)
        return where(one, c / (c - 1.0), math.inf)

    def var(self, b: Array) -> ArrayLike:
        two = b > 2
        c = where(two, b, 3.0)
        return where(two, c / ((c - 1.0) ** 2 * (c - 2.0)), math.inf)


class WeibullMin(ByLogSf):
    name, title, low = "weibull_min", "Weibull distribution of smallest values", 0.0
    about = "The `sf` is exp(-x**c) for x >= 0."
    parameters, words, sample = ("c",), ("c: shape, > 0.",), (1.7,)
    shown = "0.308 -1.178 0.864 -0.147 0.136 -1.992 0.481 1.212 0.892 0.292 0.540 0.707"
    drawn = "[1.89 2.21 0.59]"
    logpdf = formula(lambda x, c: log(c) + xlogy(c - 1.0, x) - _power_of_positive(x, c))
    logsf = formula(lambda x, c: -_power_of_positive(x, c))
    quantile = formula(lambda log_p, log_q, c: exp(log(-log_q) / c))
    mean = formula(lambda c: exp(gammaln(1.0 + 1.0 / c)))
    entropy = formula(lambda c: euler_gamma * (1.0 - 1.0 / c) - log(c) + 1.0)

    def var(self, c: Array) -> ArrayLike:
        first = 2.0 * gammaln(1.0 + 1.0 / c)
        return exp(first) * expm1(gammaln(1.0 + 2.0 / c) - first)


class WeibullMax(ByLogCdf):
    name, title, high = "weibull_max", "Weibull distribution of largest values", 0.0
    about = "The `cdf` is exp(-(-x)**c) for x <= 0: that of -y for y of `weibull_min`."
    parameters, words, sample, at = ("c",), ("c: shape, > 0.",), (1.7,), -0.5
    shown = "0.769 -0.262 0.735 -0.308 0.265 -1.328 -1.212 -0.481 -0.892 0.292 0.540 0.707"
    drawn = "[-0.18 -0.1  -1.06]"
    mirror = WeibullMin()

    def logpdf(self, x: Array, c: Array) -> Array:
        return self.mirror.logpdf(-x, c)

    def logcdf(self, x: Array, c: Array) -> Array:
        return self.mirror.logsf(-x, c)

    def quantile(self, log_p: Array, log_q: Array, c: Array) -> Array:
        return -self.mirror.quantile(log_q, log_p, c)

    def mean(self, c: Array) -> Array:
        return -self.mirror.mean(c)

    def var(self, c: Array) -> ArrayLike:
        return self.mirror.var(c)

    def entropy(self, c: Array) -> Array:
        return self.mirror.entropy(c)


def _power_of_positive(x: Array, c: Array) -> Array:
    """x ** c for x >= 0, whose derivative in c at 0 is 0."""
    none = x == 0
    return where(none, 0.0 * x, where(none, 1.0, x) ** c)


class Rayleigh(ByLogSf):
    name, title, low = "rayleigh", "Rayleigh distribution", 0.0
    about = "The density is x exp(-x**2 / 2) for x >= 0: of the length of two normal numbers."
    shown = "0.487 -0.720 0.675 -0.393 0.325 -1.125 0.759 1.665 1.253 0.429 0.655 0.942"
    drawn = "[2.43 2.77 0.9 ]"
    logpdf = formula(lambda x: log(x) - 0.5 * x * x)
    logsf = formula(lambda x: -0.5 * x * x)
    quantile = formula(lambda log_p, log_q: sqrt(-2.0 * log_q))
    mean = formula(lambda: math.sqrt(0.5 * math.pi))
    var = formula(lambda: 2.0 - 0.5 * math.pi)
    entropy = formula(lambda: 1.0 + 0.5 * euler_gamma - 0.5 * _LOG_2)


class Maxwell(Continuous):
    name, title, low = "maxwell", "Maxwell distribution", 0.0
    about = """The density is sqrt(2 / pi) x**2 exp(-x**2 / 2) for x >= 0: of the length of three
    normal numbers."""
    shown = "0.583 -0.540 0.478 -0.738 0.522 -0.650 1.101 2.027 1.596 0.454 0.673 0.996"
    drawn = "[2.63 0.99 0.96]"
    logpdf = formula(lambda x: 0.5 * math.log(2.0 / math.pi) + 2.0 * log(x) - 0.5 * x * x)
    cdf = formula(lambda x: gammainc(1.5, 0.5 * x * x))
    sf = formula(lambda x: gammaincc(1.5, 0.5 * x * x))
    logcdf = formula(lambda x: log_gamma_cdf(0.5 * x * x, 1.5 + 0.0 * x))
    logsf = formula(lambda x: log_gamma_sf(0.5 * x * x, 1.5 + 0.0 * x))
    ppf = formula(lambda q: sqrt(2.0 * _gamma.ppf(q, 1.5 + 0.0 * q)))
    isf = formula(lambda q: sqrt(2.0 * _gamma.isf(q, 1.5 + 0.0 * q)))
    mean = formula(lambda: math.sqrt(8.0 / math.pi))
    var = formula(lambda: 3.0 - 8.0 / math.pi)
    entropy = formula(lambda: euler_gamma + 0.5 * math.log(2.0 * math.pi) - 0.5)
    draw = formula(lambda key, shape, dtype: samplers.maxwell(key, shape, dtype))


class Halfnorm(ByLogSf):
    name, title, low = "halfnorm", "half-normal distribution", 0.0
    about = "That of abs(y) for y of `norm`."
    shown = "0.259 -1.351 0.866 -0.143 0.134 -2.013 0.319 1.150 0.798 0.363 0.603 0.726"
    drawn = "[1.62 2.03 0.43]"
    logpdf = formula(lambda x: 0.5 * math.log(2.0 / math.pi) - 0.5 * x * x)
    logsf = formula(lambda x: log_ndtr(-x) + _LOG_2)
    cdf = formula(lambda x: erf(x * math.sqrt(0.5)))
    ppf = formula(lambda q: math.sqrt(2.0) * erfinv(q))
    isf = formula(lambda q: -ndtri(0.5 * q))
    mean = formula(lambda: math.sqrt(2.0 / math.pi))
    var = formula(lambda: 1.0 - 2.0 / math.pi)
    entropy = formula(lambda: 0.5 * math.log(0.5 * math.pi) + 0.5)
    draw = formula(lambda key, shape, dtype: abs(samplers.normal(key, shape, dtype)))

    def logcdf(self, x: Array) -> Array:
        return Continuous.logcdf(self, x)


class Halfcauchy(Continuous):
    name, title, low = "halfcauchy", "half-Cauchy distribution", 0.0
    about = "That of abs(y) for y of `cauchy`: the density is 2 / (pi (1 + x**2)) for x >= 0."
    shown = "0.196 -1.630 0.626 -0.469 0.374 -0.983 0.414 2.414 inf inf inf 1.838"
    drawn = "[12.14 29.71  0.58]"
    logpdf = formula(lambda x: math.log(2.0 / math.pi) - log1p_square(x))
    cdf = formula(lambda x: arctan(x) * (2.0 / math.pi))
    sf = formula(lambda x: arctan2(1.0 + 0.0 * x, x) * (2.0 / math.pi))
    mean = formula(lambda: math.inf)
    var = formula(lambda: math.inf)
    entropy = formula(lambda: math.log(2.0 * math.pi))

    def ppf(self, q: Array) -> Array:
        high = q > 0.5
        inner = tan(0.5 * math.pi * where(high, 0.5, q))
        return where(high, 1.0 / tan(0.5 * math.pi * where(high, 1.0 - q, 0.5)), inner)

    def isf(self, q: Array) -> Array:
        high = q > 0.5
        inner = 1.0 / tan(0.5 * math.pi * where(high, 0.5, q))
        return where(high, tan(0.5 * math.pi * where(high, 1.0 - q, 0.5)), inner)


class Lognorm(Continuous):
    name, title, low = "lognorm", "log-normal distribution", 0.0
    about = "That of exp(s y) for y of `norm`."
    parameters, words, sample = ("s",), ("s: standard deviation of the logarithm, > 0.",), (0.8,)
    shown = "0.292 -1.230 0.694 -0.365 0.306 -1.184 0.583 1.715 1.377 1.700 1.304 1.196"
    drawn = "[3.66 5.05 0.71]"
    cdf = formula(lambda x, s: _of_log(ndtr, x, s, 0.0))
    sf = formula(lambda x, s: _of_log(lambda z: ndtr(-z), x, s, 1.0))
    logcdf = formula(lambda x, s: _of_log(log_ndtr, x, s, -math.inf))
    logsf = formula(lambda x, s: _of_log(lambda z: log_ndtr(-z), x, s, 0.0))
    ppf = formula(lambda q, s: exp(s * ndtri(q)))
    isf = formula(lambda q, s: exp(-s * ndtri(q)))
    mean = formula(lambda s: exp(0.5 * s * s))
    var = formula(lambda s: exp(s * s) * expm1(s * s))
    entropy = formula(lambda s: 0.5 + 0.5 * math.log(2.0 * math.pi) + log(s))
    draw = formula(lambda key, shape, dtype, s: samplers.lognormal(key, s, shape, dtype))

    def logpdf(self, x: Array, s: Array) -> Array:
        none = x == 0
        y = log(where(none, 1.0, x))
        value = -0.5 * (y / s) ** 2 - y - log(s) - 0.5 * math.log(2.0 * math.pi)
        return where(none, -math.inf, value)


def _of_log(fun: Callable[..., Array], x: ArrayLike, s: ArrayLike, at_zero: float) -> Array:
    none = x == 0
    return where(none, at_zero, fun(log(where(none, 1.0, x)) / s))


class Levy(Continuous):
    name, title, low = "levy", "Lévy distribution", 0.0
    about = "That of 1 / y**2 for y of `norm`: the density is x**(-3/2) exp(-1/(2x)) / sqrt(2 pi)."
    shown = "0.156 -1.860 0.414 -0.881 0.586 -0.535 0.756 9.849 inf inf inf 3.324"
    drawn = "[2.32120e+02 1.38718e+03 1.06000e+00]"
    ppf = formula(lambda q: ndtri(0.5 * q) ** -2.0)
    isf = formula(lambda q: 0.5 / erfinv(q) ** 2)
    mean = formula(lambda: math.inf)
    var = formula(lambda: math.inf)
    entropy = formula(lambda: 0.5 * (1.0 + 3.0 * euler_gamma + math.log(16.0 * math.pi)))

    def logpdf(self, x: Array) -> Array:
        none = x == 0
        z = where(none, 1.0, x)
        return where(none, -math.inf, -1.5 * log(z) - 0.5 / z - 0.5 * math.log(2.0 * math.pi))

    def cdf(self, x: Array) -> Array:
        none = x == 0
        return where(none, 0.0, erfc(sqrt(0.5 / where(none, 1.0, x))))

    def sf(self, x: Array) -> Array:
        none = x == 0
        return where(none, 1.0, erf(sqrt(0.5 / where(none, 1.0, x))))

    def logcdf(self, x: Array) -> Array:
        none = x == 0
        tail = log_ndtr(-sqrt(1.0 / where(none, 1.0, x)))
        return where(none, -math.inf, tail + _LOG_2)


chi2, expon, f, gamma = published(Chi2()), published(Expon()), published(F()), published(_gamma)
halfcauchy, halfnorm = published(Halfcauchy()), published(Halfnorm())
invgamma, levy, lognorm = published(Invgamma()), published(Levy()), published(Lognorm())
maxwell, pareto, rayleigh = published(Maxwell()), published(Pareto()), published(Rayleigh())
weibull_max, weibull_min = published(WeibullMax()), published(WeibullMin())
