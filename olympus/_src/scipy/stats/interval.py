"""Distributions on an interval."""

from __future__ import annotations

import math
from typing import Any

from ...base.typing import Array, ArrayLike
from ...nn.activations import log1mexp
from ...numpy.conditions import where
from ...numpy.elementary import exp, expm1, log, log1p, sqrt
from ...numpy.trigonometry import arctan2, cos, sin
from ...random import continuous as samplers, from_gamma
from ..special.gammas import betainc, betaln, digamma
from ..special.inverses import betainccinv, betaincinv
from ..special.normal import log_ndtr, ndtr
from .distribution import Continuous, formula, published
from .kernels import beta_cdf, log_beta_cdf, log_beta_density


class Uniform(Continuous):
    name, title, low, high = "uniform", "uniform distribution", 0.0, 1.0
    about = "The density is 1 from `loc` to `loc + scale`, both included, times 1 / scale."
    at = 0.25
    shown = "1.000 0.000 0.250 -1.386 0.750 -0.288 0.250 0.750 0.500 0.083 0.289 0.000"
    drawn = "[0.95 0.98 0.33]"
    logpdf = formula(lambda x: 0.0 * x)
    cdf = formula(lambda x: x)
    ppf = formula(lambda q: q)
    isf = formula(lambda q: 1.0 - q)
    mean = formula(lambda: 0.5)
    var = formula(lambda: 1.0 / 12.0)
    entropy = formula(lambda: 0.0)
    draw = formula(lambda key, shape, dtype: samplers.uniform(key, shape, dtype))


class Beta(Continuous):
    name, title, low, high = "beta", "beta distribution", 0.0, 1.0
    about = """The density is x**(a-1) (1-x)**(b-1) up to a factor. Probabilities are incomplete
    beta functions (DLMF 8.17)."""
    parameters, words, sample, at = ("a", "b"), ("a, b: shapes, > 0.",), (2.0, 3.0), 0.25
    shown = "1.688 0.523 0.262 -1.340 0.738 -0.303 0.243 0.544 0.400 0.040 0.200 -0.235"
    drawn = "[0.24 0.49 0.68]"
    logpdf = formula(lambda x, a, b: log_beta_density(x, 1.0 - x, a, b))
    cdf = formula(lambda x, a, b: betainc(a, b, x))
    sf = formula(lambda x, a, b: beta_cdf(x, 1.0 - x, a, b, above=True))
    logcdf = formula(lambda x, a, b: log_beta_cdf(x, 1.0 - x, a, b))
    logsf = formula(lambda x, a, b: log_beta_cdf(1.0 - x, x, b, a))
    ppf = formula(lambda q, a, b: betaincinv(a, b, q))
    isf = formula(lambda q, a, b: betainccinv(a, b, q))
    mean = formula(lambda a, b: a / (a + b))
    var = formula(lambda a, b: a / (a + b) * (b / (a + b)) / (a + b + 1.0))
    draw = formula(lambda key, shape, dtype, a, b: from_gamma.beta(key, a, b, shape, dtype))

    def entropy(self, a: Array, b: Array) -> Array:
        return (betaln(a, b) - (a - 1.0) * digamma(a) - (b - 1.0) * digamma(b)
                + (a + b - 2.0) * digamma(a + b))


class Truncnorm(Continuous):
    name, title = "truncnorm", "normal distribution cut off at two ends"
    about = """That of y between `a` and `b` for y of `norm`; before `loc` and `scale` are applied,
    so that the ends are loc + scale * a and loc + scale * b."""
    parameters, sample, at = ("a", "b"), (-1.0, 2.0), 0.25
    words = ("a, b: ends of the support, a < b; they may be infinite.",)
    shown = "0.472 -0.750 0.538 -0.621 0.462 -0.771 -0.350 0.747 0.230 0.520 0.721 1.005"
    drawn = "[ 1.51  1.75 -0.17]"
    support = formula(lambda a, b: (a, b))
    legal = formula(lambda a, b: a < b)
    logpdf = formula(lambda x, a, b: -0.5 * x * x - 0.5 * math.log(2.0 * math.pi) - _log_mass(a, b))
    logcdf = formula(lambda x, a, b: _log_mass(a, x) - _log_mass(a, b))
    logsf = formula(lambda x, a, b: _log_mass(x, b) - _log_mass(a, b))
    draw = formula(
        lambda key, shape, dtype, a, b: samplers.truncated_normal(key, a, b, shape, dtype))

    def inner(self, a: Array, b: Array) -> Array:
        low = where(a == -math.inf, where(b == math.inf, 0.0, b - 1.0), a)
        return where(b == math.inf, low, where(a == -math.inf, low, 0.5 * (low + b)))

    def cdf(self, x: Array, a: Array, b: Array) -> Array:
        return exp(self.logcdf(x, a, b))

    def sf(self, x: Array, a: Array, b: Array) -> Array:
        return exp(self.logsf(x, a, b))

    def _ends(self, a: Array, b: Array) -> tuple[Any, Any, Any]:
        """Densities at the ends, and these times the ends, summed with opposite signs."""
        p, q = (exp(self.logpdf(z, a, b)) for z in (a, b))
        return p, q, (where(p == 0, 0.0, where(p == 0, 0.0, a) * p)
                      - where(q == 0, 0.0, where(q == 0, 0.0, b) * q))

    def mean(self, a: Array, b: Array) -> Array:
        p, q, _ = self._ends(a, b)
        return p - q

    def var(self, a: Array, b: Array) -> ArrayLike:
        p, q, first = self._ends(a, b)
        return 1.0 + first - (p - q) ** 2

    def entropy(self, a: Array, b: Array) -> Array:
        return (0.5 * math.log(2.0 * math.pi) + 0.5 + _log_mass(a, b)
                + 0.5 * self._ends(a, b)[2])


def _log_mass(a: Array, b: Array) -> Array:
    """The logarithm of the probability of a normal number between a and b, in the tails too."""
    right = a > 0
    a, b = where(right, -b, a), where(right, -a, b)     # the same by symmetry, not on the right
    tail = b <= 0
    high = log_ndtr(where(tail, b, -1.0))
    apart = high - log_ndtr(where(tail, a, -2.0))
    far = high + where(apart > 0, log1mexp(where(apart > 0, apart, 1.0)), -math.inf)
    low, top = where(tail, -1.0, a), where(tail, 1.0, b)
    return where(tail, far, log1p(-ndtr(low) - ndtr(-top)))


class Triang(Continuous):
    name, title, low, high = "triang", "triangular distribution", 0.0, 1.0
    about = "The density rises linearly from 0 at 0 to 2 at c, and falls to 0 at 1."
    parameters, words, sample, at = ("c",), ("c: mode, from 0 to 1.",), (0.4,), 0.25
    shown = "1.250 0.223 0.156 -1.856 0.844 -0.170 0.316 0.613 0.467 0.042 0.205 -0.193"
    drawn = "[0.82 0.89 0.36]"
    legal = formula(lambda c: (c >= 0) & (c <= 1))
    mean = formula(lambda c: (1.0 + c) / 3.0)
    var = formula(lambda c: (1.0 - c + c * c) / 18.0)
    entropy = formula(lambda c: 0.5 - math.log(2.0) + 0.0 * c)

    def pdf(self, x: Array, c: Array) -> Array:
        left = x < c
        return 2.0 * where(left, x / where(left, c, 1.0),
                           where(c < 1, (1.0 - x) / where(c < 1, 1.0 - c, 1.0), x))

    def logpdf(self, x: Array, c: Array) -> Array:
        return log(self.pdf(x, c))

    def cdf(self, x: Array, c: Array) -> Array:
        """Sums of terms that are not negative: no digits are lost next to 0."""
        left, right = x < c, where(c < 1, 1.0 - c, 1.0)
        return where(left, x * x / where(left, c, 1.0),
                     where(c < 1, c + (x - c) * (2.0 - c - x) / right, x * x))

    def sf(self, x: Array, c: Array) -> Array:
        return self.cdf(1.0 - x, 1.0 - c)

    def ppf(self, q: Array, c: Array) -> Array:
        left = q < c
        root = sqrt(where(left, 1.0, (1.0 - c) * (1.0 - q)))
        return where(left, sqrt(where(left, c * q, 1.0)), (c + q - c * q) / (1.0 + root))

    def isf(self, q: Array, c: Array) -> Array:
        return 1.0 - self.ppf(q, 1.0 - c)


class Loguniform(Continuous):
    name, title = "loguniform", "log-uniform distribution"
    about = "The density is 1 / (x log(b/a)) from a to b: the logarithm is uniform."
    parameters, words, sample = ("a", "b"), ("a, b: ends of the support, 0 < a < b.",), (1.0, 5.0)
    shown = "0.414 -0.881 0.252 -1.379 0.748 -0.290 1.495 3.344 2.485 1.279 1.131 1.281"
    drawn = "[4.6  4.83 1.71]"
    support = formula(lambda a, b: (a, b))
    inner = formula(lambda a, b: a)
    legal = formula(lambda a, b: (a > 0) & (b > a))
    logpdf = formula(lambda x, a, b: -log(x) - log(log(b / a)))
    pdf = formula(lambda x, a, b: 1.0 / (x * log(b / a)))
    cdf = formula(lambda x, a, b: log(x / a) / log(b / a))
    sf = formula(lambda x, a, b: log(b / x) / log(b / a))
    ppf = formula(lambda q, a, b: a * exp(q * log(b / a)))
    isf = formula(lambda q, a, b: b * exp(-q * log(b / a)))
    mean = formula(lambda a, b: (b - a) / log(b / a))
    entropy = formula(lambda a, b: 0.5 * (log(a) + log(b)) + log(log(b / a)))

    def var(self, a: Array, b: Array) -> ArrayLike:
        width = log(b / a)
        return a * a * (0.5 * expm1(2.0 * width) - expm1(width) ** 2 / width) / width


class Wrapcauchy(Continuous):
    name, title, low, high = "wrapcauchy", "wrapped Cauchy distribution", 0.0, 2.0 * math.pi
    about = "The density is (1 - c**2) / (2 pi (1 + c**2 - 2 c cos(x))) from 0 to 2 pi."
    parameters, words, sample = ("c",), ("c: concentration, between 0 and 1.",), (0.4,)
    shown = "0.121 -2.111 0.363 -1.014 0.637 -0.451 0.810 5.473 3.142 1.664"
    drawn = "[6.14 6.23 1.27]"
    legal = formula(lambda c: (c > 0) & (c < 1))
    mean = formula(lambda c: math.pi + 0.0 * c)
    entropy = formula(lambda c: math.log(2.0 * math.pi) + log1p(-c * c))

    def logpdf(self, x: Array, c: Array) -> Array:
        # 1 + c² - 2c cos x = (1-c)² + 4c sin²(x/2): no cancellation near the mode.
        spread = (1.0 - c) ** 2 + 4.0 * c * sin(0.5 * x) ** 2
        return log1p(-c * c) - math.log(2.0 * math.pi) - log(spread)

    def _nearer(self, x: Array, c: Array) -> Array:
        """The probability from x to the nearer end of the support."""
        return _angle(0.5 * where(x > math.pi, 2.0 * math.pi - x, x), (1.0 + c) / (1.0 - c))

    def cdf(self, x: Array, c: Array) -> Array:
        tail = self._nearer(x, c)
        return where(x > math.pi, 1.0 - tail, tail)

    def sf(self, x: Array, c: Array) -> Array:
        tail = self._nearer(x, c)
        return where(x > math.pi, tail, 1.0 - tail)

    def ppf(self, q: Array, c: Array) -> Array:
        high = q > 0.5
        apart = 2.0 * math.pi * _angle(math.pi * where(high, 1.0 - q, q), (1.0 - c) / (1.0 + c))
        return where(high, 2.0 * math.pi - apart, apart)

    def isf(self, q: Array, c: Array) -> Array:
        return self.ppf(1.0 - q, c)


def _angle(half: Any, stretch: Any) -> Array:
    """arctan(stretch tan(half)) / pi for an angle from 0 to pi / 2."""
    return arctan2(stretch * sin(half), cos(half)) / math.pi


beta, loguniform, triang = published(Beta()), published(Loguniform()), published(Triang())
truncnorm, uniform = published(Truncnorm()), published(Uniform())
wrapcauchy = published(Wrapcauchy())
