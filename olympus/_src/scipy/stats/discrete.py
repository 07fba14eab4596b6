"""Distributions on integers."""

from __future__ import annotations

import math
from typing import Any

from ...base.typing import Array, ArrayLike, DType, Shape
from ...control_flow.while_loop import fori_loop
from ...numpy.arithmetic import maximum, minimum
from ...numpy.conditions import where
from ...numpy.elementary import ceil, exp, expm1, floor, log, log1p
from ...random import discrete, from_gamma, poisson as of_poisson
from ...random.binomial import binomial
from ...random.continuous import subkeys
from ...random.hypergeometric import hypergeometric
from ...random.keys import typed
from ..special.entropy import xlog1py, xlogy
from ..special.gammas import betainc, betaln, gammainc, gammaincc
from .distribution import Discrete, Summed, formula, published
from .kernels import log_beta_cdf, log_beta_density, log_gamma_cdf, log_gamma_density, log_gamma_sf


def _is_probability(p: Array) -> Array:
    return (p >= 0) & (p <= 1)


class Bernoulli(Discrete):
    name, title, low, high = "bernoulli", "Bernoulli distribution", 0.0, 1.0
    about = "1 has probability p, 0 has 1 - p."
    parameters, words, sample, at = ("p",), ("p: probability of 1.",), (0.3,), 1
    shown = "0.300 -1.204 1.000 0.000 0.000 -inf 0.000 1.000 0.300 0.210 0.458 0.611"
    drawn = "[0 0 0]"
    legal = formula(lambda p: _is_probability(p))
    logpmf = formula(lambda k, p: xlogy(k, p) + xlog1py(1.0 - k, -p))
    pmf = formula(lambda k, p: where(k == 1, p, 1.0 - p))
    cdf = formula(lambda k, p: 1.0 - p)
    sf = formula(lambda k, p: p)
    ppf = formula(lambda q, p: where(q <= 1.0 - p, 0.0, 1.0))
    isf = formula(lambda q, p: where(q >= p, 0.0, 1.0))
    mean = formula(lambda p: p)
    var = formula(lambda p: p * (1.0 - p))
    entropy = formula(lambda p: -xlogy(p, p) - xlog1py(1.0 - p, -p))
    draw = formula(lambda key, shape, dtype, p: discrete.bernoulli(key, p, shape))


class Binom(Discrete):
    name, title = "binom", "binomial distribution"
    about = """That of the number of successes of n trials, each of probability p. Probabilities of
    intervals are incomplete beta functions (DLMF 8.17.5)."""
    parameters, sample, at = ("n", "p"), (10.0, 0.3), 4
    words = ("n: number of trials, an integer >= 0.", "p: probability of success.")
    shown = "0.200 -1.609 0.850 -0.163 0.150 -1.895 2.000 4.000 3.000 2.100 1.449 1.779"
    drawn = "[2 2 1]"
    support = formula(lambda n, p: (0.0, n))
    inner = formula(lambda n, p: 0.0)
    legal = formula(lambda n, p: (n >= 0) & (n == floor(n)) & _is_probability(p))
    logpmf = formula(lambda k, n, p: log_beta_density(p, 1.0 - p, k + 1.0, n - k + 1.0) - log1p(n))
    cdf = formula(lambda k, n, p: betainc(n - k, k + 1.0, 1.0 - p))
    sf = formula(lambda k, n, p: betainc(k + 1.0, n - k, p))
    logcdf = formula(lambda k, n, p: log_beta_cdf(1.0 - p, p, n - k, k + 1.0))
    logsf = formula(lambda k, n, p: log_beta_cdf(p, 1.0 - p, k + 1.0, n - k))
    mean = formula(lambda n, p: n * p)
    var = formula(lambda n, p: n * p * (1.0 - p))
    draw = formula(lambda key, shape, dtype, n, p: binomial(key, n, p, shape, dtype))


class Betabinom(Summed):
    name, title = "betabinom", "beta-binomial distribution"
    about = "That of `binom` with a p of its own for each number, of `beta` with a and b."
    parameters, sample, at = ("n", "a", "b"), (10.0, 2.0, 3.0), 4
    words = ("n: number of trials, an integer >= 0.", "a, b: shapes, > 0.")
    shown = "0.140 -1.967 0.594 -0.520 0.406 -0.902 2.000 6.000 4.000 6.000 2.449 2.258"
    drawn = "[7 1 0]"
    support = formula(lambda n, a, b: (0.0, n))
    inner = formula(lambda n, a, b: 0.0)
    legal = formula(lambda n, a, b: (n >= 0) & (n == floor(n)) & (a > 0) & (b > 0))
    mean = formula(lambda n, a, b: n * (a / (a + b)))

    def logpmf(self, k: Array, n: Array, a: Array, b: Array) -> Array:
        return (betaln(k + a, n - k + b) - betaln(a, b) - betaln(k + 1.0, n - k + 1.0) - log1p(n))

    def draw(self, key: Array, shape: Shape, dtype: DType, n: Array, a: Array, b: Array
             ) -> Array:
        first, second = subkeys(typed(key))
        return binomial(second, n, from_gamma.beta(first, a, b, shape, dtype), shape, dtype)

    def var(self, n: Array, a: Array, b: Array) -> ArrayLike:
        s = a + b
        return n * (a / s) * (b / s) * ((s + n) / (s + 1.0))


class Geom(Discrete):
    name, title, low = "geom", "geometric distribution", 1.0
    about = "That of the number of trials up to the first success: p (1-p)**(k-1) for k >= 1."
    parameters, words, sample, at = ("p",), ("p: probability of success, > 0.",), (0.3,), 2
    shown = "0.210 -1.561 0.510 -0.673 0.490 -0.713 1.000 4.000 3.333 7.778 2.789 2.036"
    drawn = "[1 1 4]"
    legal = formula(lambda p: (p > 0) & (p <= 1))
    logpmf = formula(lambda k, p: xlog1py(k - 1.0, -p) + log(p))
    logsf = formula(lambda k, p: k * log1p(-p))
    mean = formula(lambda p: 1.0 / p)
    var = formula(lambda p: (1.0 - p) / (p * p))
    entropy = formula(lambda p: -(xlog1py(1.0 - p, -p) + xlogy(p, p)) / p)
    draw = formula(lambda key, shape, dtype, p: discrete.geometric(key, p, shape))

    def sf(self, k: Array, p: Array) -> Array:
        return exp(self.logsf(k, p))

    def cdf(self, k: Array, p: Array) -> Array:
        return -expm1(self.logsf(k, p))

    def ppf(self, q: Array, p: Array) -> Array:
        return self._first(log1p(-q) / log1p(-p), lambda k: self.cdf(k, p) >= q)

    def isf(self, q: Array, p: Array) -> Array:
        return self._first(log(q) / log1p(-p), lambda k: self.sf(k, p) <= q)

    def _first(self, near: Array, reached: Any) -> Array:
        """The first number that reaches a probability, which rounding may put one beside `near`."""
        k = maximum(ceil(near), 1.0)
        k = where((k > 1.0) & reached(k - 1.0), k - 1.0, k)
        return where(reached(k), k, k + 1.0)


class Nbinom(Discrete):
    name, title = "nbinom", "negative binomial distribution"
    about = """That of the number of failures before the n-th success. Probabilities of intervals
    are incomplete beta functions (DLMF 8.17)."""
    parameters, sample, at = ("n", "p"), (4.0, 0.4), 5
    words = ("n: number of successes, > 0; it need not be an integer.",
             "p: probability of success, > 0.")
    shown = "0.111 -2.194 0.517 -0.659 0.483 -0.729 3.000 8.000 6.000 15.000 3.873 2.672"
    drawn = "[13 16  4]"
    legal = formula(lambda n, p: (n > 0) & (p > 0) & (p <= 1))
    logpmf = formula(lambda k, n, p: log_beta_density(p, 1.0 - p, n, k + 1.0) + log(p) - log(n + k))
    cdf = formula(lambda k, n, p: betainc(n, k + 1.0, p))
    sf = formula(lambda k, n, p: betainc(k + 1.0, n, 1.0 - p))
    logcdf = formula(lambda k, n, p: log_beta_cdf(p, 1.0 - p, n, k + 1.0))
    logsf = formula(lambda k, n, p: log_beta_cdf(1.0 - p, p, k + 1.0, n))
    mean = formula(lambda n, p: n * (1.0 - p) / p)
    var = formula(lambda n, p: n * (1.0 - p) / (p * p))


class Poisson(Discrete):
    name, title = "poisson", "Poisson distribution"
    about = """The probability of k is mu**k exp(-mu) / k!. Probabilities of intervals are
    incomplete gamma functions (DLMF 8.4.10)."""
    parameters, words, sample, at = ("mu",), ("mu: mean, >= 0.",), (3.5,), 4
    shown = "0.189 -1.667 0.725 -0.321 0.275 -1.293 2.000 5.000 3.500 3.500 1.871 2.015"
    drawn = "[0 0 5]"
    legal = formula(lambda mu: mu >= 0)
    logpmf = formula(lambda k, mu: log_gamma_density(mu, k + 1.0))
    cdf = formula(lambda k, mu: gammaincc(k + 1.0, mu))
    sf = formula(lambda k, mu: gammainc(k + 1.0, mu))
    logcdf = formula(lambda k, mu: log_gamma_sf(mu, k + 1.0))
    logsf = formula(lambda k, mu: log_gamma_cdf(mu, k + 1.0))
    mean = formula(lambda mu: mu)
    var = formula(lambda mu: mu)
    draw = formula(lambda key, shape, dtype, mu: of_poisson.poisson(key, mu, shape))

    def entropy(self, mu: Array) -> Array:
        large = mu > _FAR
        low, high = where(large, 1.0, mu), where(large, mu, 2.0 * _FAR)

        def added(k: Array, state: tuple) -> tuple:
            total, p, log_factorial = state
            p, log_factorial = p * (low / k), log_factorial + log(k)
            return total + p * log_factorial, p, log_factorial

        def step(i: Any, state: tuple) -> tuple:
            return added(i.astype(mu.dtype) + 1.0, state)

        total = fori_loop(0, 170, step, (0.0 * low, exp(-low), 0.0 * low))[0]
        near = low - xlogy(low, low) + total
        u = 1.0 / high
        series = u * (-1 / 12 + u * (-1 / 24 + u * (-19 / 360 + u * (-9 / 80 + u * (
            -863 / 2520 + u * (-1375 / 1008 + u * (-33953 / 5040)))))))
        return where(large, 0.5 * (1.0 + math.log(2.0 * math.pi) + log(high)) + series, near)


_FAR = 60.0     # from where on the series for the entropy is accurate


class Hypergeom(Summed):
    name, title = "hypergeom", "hypergeometric distribution"
    about = "That of the number of marked among N drawn of M, of which n are marked, none put back."
    parameters, sample, at = ("M", "n", "N"), (20.0, 7.0, 12.0), 4
    words = ("M: how many there are.", "n: how many of them are marked.", "N: how many are drawn.")
    shown = "0.358 -1.028 0.608 -0.497 0.392 -0.937 3.000 5.000 4.200 1.149 1.072 1.487"
    drawn = "[3 3 5]"
    support = formula(lambda M, n, N: (maximum(N + n - M, 0.0), minimum(n, N)))
    inner = formula(lambda M, n, N: minimum(n, N))
    mean = formula(lambda M, n, N: N * (n / M))
    draw = formula(lambda key, shape, dtype, M, n, N: hypergeometric(key, n, M - n, N, shape))

    def legal(self, M: Array, n: Array, N: Array) -> Array:
        whole = (floor(M) == M) & (n == floor(n)) & (floor(N) == N)
        return whole & (M > 0) & (n >= 0) & (N >= 0) & (n <= M) & (N <= M)

    def logpmf(self, k: Array, M: Array, n: Array, N: Array) -> Array:
        rest = M - n
        return (_log_choose(n, k) + _log_choose(rest, N - k)) - _log_choose(M, N)

    def var(self, M: Array, n: Array, N: Array) -> ArrayLike:
        share = n / M
        return N * share * (1.0 - share) * ((M - N) / maximum(M - 1.0, 1.0))


def _log_choose(n: Any, k: ArrayLike) -> Array:
    """log of the number of ways to choose k of n."""
    return -betaln(k + 1.0, n - k + 1.0) - log1p(n)


class Randint(Discrete):
    name, title = "randint", "uniform distribution of integers"
    about = "Each integer from `low` up to, but not, `high` has the same probability."
    parameters, sample, at = ("low", "high"), (2.0, 8.0), 4
    words = ("low, high: integers, low < high.",)
    shown = "0.167 -1.792 0.500 -0.693 0.500 -0.693 3.000 6.000 4.500 2.917 1.708 1.792"
    drawn = "[3 2 4]"
    support = formula(lambda low, high: (low, high - 1.0))
    inner = formula(lambda low, high: low)
    legal = formula(lambda low, high: (low < high) & (low == floor(low)) & (high == floor(high)))
    logpmf = formula(lambda k, low, high: -log(high - low) + 0.0 * k)
    cdf = formula(lambda k, low, high: (k - low + 1.0) / (high - low))
    sf = formula(lambda k, low, high: (high - 1.0 - k) / (high - low))
    mean = formula(lambda low, high: 0.5 * (low + high - 1.0))
    entropy = formula(lambda low, high: log(high - low))

    def var(self, low: Array, high: Array) -> ArrayLike:
        width = high - low
        return (width - 1.0) * (width + 1.0) / 12.0

    def draw(self, key: Array, shape: Shape, dtype: DType, low: Array, high: Array) -> Array:
        return discrete.randint(key, shape, low.astype(int), high.astype(int))


bernoulli, betabinom, binom = published(Bernoulli()), published(Betabinom()), published(Binom())
geom, hypergeom, nbinom = published(Geom()), published(Hypergeom()), published(Nbinom())
poisson, randint = published(Poisson()), published(Randint())
