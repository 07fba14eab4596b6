"""Summaries of samples: moments, means of other kinds, scores, entropy of weights.

All take an axis (None for all elements) and `nan_policy`, "propagate" or "omit", where SciPy's do.
Sums are over the elements that count, so that leaving out NaN is one more mask.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...base.docstrings import complete_docstrings, described_like
from ...base.typing import Array, ArrayLike, DTypeLike
from ...base.util import pair
from ...jit.fused import fused
from ...numpy.conditions import where
from ...numpy.creation import asarray, ones_like
from ...numpy.elementary import exp, isnan, log, sqrt
from ...numpy.promote import array_args, inexact, promote_dtypes, to_array
from ...numpy.reductions import max as max_of, min as min_of, sum as sum_of
from ...numpy.statistics import median, nanmedian, nanquantile, quantile
from ...random.arguments import refuse_complex
from ...types import dtypes
from ..special.entropy import entr, rel_entr
from .ranks import check_policy


class Sample(NamedTuple):
    """Floats, the axis, and weights: 0 for elements left out, 1 for all others."""

    x: Any
    axis: int | None
    weight: Any
    keep: bool = False

    def sum(self, y: Array) -> Array:
        return sum_of(where(self.weight > 0, y * self.weight, 0.0), self.axis, keepdims=self.keep)

    def count(self) -> Array:
        return sum_of(self.weight, self.axis, keepdims=self.keep)

    def mean(self) -> Array:
        return self.sum(self.x) / self.count()

    def central(self, *orders: int) -> list[Array]:
        """Central moments: means of powers of the distance from the mean."""
        wide = self._replace(keep=True)
        apart = self.x - wide.mean()
        return [self.sum(apart ** n) / self.count() for n in orders]


def number(name: str, x: ArrayLike | None) -> Any:
    """A parameter that is a number, traced or not; TypeError for anything else."""
    return x if type(x) in (int, float) else to_array(promote_dtypes(name, x, 0)[0])


def sample(name: str, a: ArrayLike, axis: int | None, policy: str, weights: ArrayLike | None = None
           ) -> Sample:
    """The argument of a summary, checked and promoted; flat if the axis is None."""
    check_policy(name, policy)
    refuse_complex(name, a)
    arrays = [a] if weights is None else [a, weights]
    x, *rest = (to_array(v) for v in promote_dtypes(name, *arrays, inexact=True))
    weight = rest[0] + 0.0 * x if rest else ones_like(x)
    if policy == "omit":
        lost = isnan(x)
        x, weight = where(lost, 0.0, x), where(lost, 0.0, weight)
    return Sample(x, axis, weight)


@fused(static=("order", "axis", "nan_policy"))
def moment(a: ArrayLike, order: int = 1, axis: int | None = 0, nan_policy: str = "propagate", *,
           center: ArrayLike | None = None) -> Array:
    """The mean of a power of the distance from the mean.

    Args:
      order: the power, an integer >= 0. (SciPy also takes several.)
      center: from where distances are; None is the mean.
    Returns: Floats of the shape of a without the axis.

    >>> print(scipy.stats.moment(onp.array([1.0, 2.0, 3.0, 6.0]), 3))
    4.5
    """
    s, order = sample("moment", a, axis, nan_policy), number("moment", order)
    if center is None:
        return s.central(order)[0]
    return s.sum((s.x - number("moment", center)) ** order) / s.count()


@fused(static=("axis", "bias", "nan_policy"))
def skew(a: ArrayLike, axis: int | None = 0, bias: bool = True, nan_policy: str = "propagate"
         ) -> Array:
    """The skewness of a sample: its third central moment over the 3/2 power of the second.

    Returns: Floats of the shape of a without the axis; NaN where all numbers are equal.

    >>> print(f'{scipy.stats.skew(onp.array([1.0, 2.0, 3.0, 6.0])):.3f}')
    0.687
    """
    s = sample("skew", a, axis, nan_policy)
    second, third = s.central(2, 3)
    value = where(second > 0, third / where(second > 0, second, 1.0) ** 1.5, math.nan)
    if bias:
        return value
    n = s.count()
    return where(n > 2, value * sqrt(n * (n - 1.0)) / where(n > 2, n - 2.0, 1.0), value)


@fused(static=("axis", "fisher", "bias", "nan_policy"))
@described_like(skew)
def kurtosis(a: ArrayLike, axis: int | None = 0, fisher: bool = True, bias: bool = True,
             nan_policy: str = "propagate") -> Array:
    """The kurtosis of a sample: its fourth central moment over the square of the second.

    Args: fisher: whether 3 is subtracted, so that it is 0 for the normal distribution.

    >>> print(f'{scipy.stats.kurtosis(onp.array([1.0, 2.0, 3.0, 6.0])):.3f}')
    -1.000
    """
    s = sample("kurtosis", a, axis, nan_policy)
    second, fourth = s.central(2, 4)
    value = where(second > 0, fourth / where(second > 0, second, 1.0) ** 2, math.nan)
    if not bias:
        n = s.count()
        corrected = ((n * n - 1.0) * value - 3.0 * (n - 1.0) ** 2) / where(
            n > 3, (n - 2.0) * (n - 3.0), 1.0) + 3.0
        value = where(n > 3, corrected, value)
    return value - 3.0 if fisher else value


@fused(static=("axis", "ddof", "nan_policy"))
def zscore(a: ArrayLike, axis: int | None = 0, ddof: int = 0, nan_policy: str = "propagate"
           ) -> Array:
    """The distance of each number from the mean, in standard deviations.

    Args: nan_policy: "propagate", or "omit": NaN does not count, and its score is NaN.
    Returns: Floats of the shape of a; NaN where all numbers are equal.

    >>> print(scipy.stats.zscore(onp.array([1.0, 3.0, 5.0])).round(3))
    [-1.225  0.     1.225]
    """
    s = sample("zscore", a, axis, nan_policy)._replace(keep=True)
    apart = s.x - s.mean()
    width = sqrt(s.sum(apart * apart) / (s.count() - number("zscore", ddof)))
    return where((s.weight > 0) & (width > 0), apart / where(width > 0, width, 1.0), math.nan)


@fused(static=("axis", "nan_policy", "ddof"))
@described_like(moment)
def variation(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate", ddof: int = 0
              ) -> Array:
    """The coefficient of variation: the standard deviation over the mean.

    >>> print(f'{scipy.stats.variation(onp.array([1.0, 3.0, 5.0])):.3f}')
    0.544
    """
    s = sample("variation", a, axis, nan_policy)
    n = s.count()
    return sqrt(s.central(2)[0] * n / (n - number("variation", ddof))) / s.mean()


@fused(static=("axis", "dtype", "nan_policy"))
def gmean(a: ArrayLike, axis: int | None = 0, dtype: DTypeLike | None = None,
          weights: ArrayLike | None = None, nan_policy: str = "propagate") -> Array:
    """The geometric mean: exp of the mean of logarithms.

    Args: a: numbers >= 0, any shape; integers become floats.
    Returns: Floats of the shape of a without the axis; NaN for negative numbers.

    >>> print(scipy.stats.gmean(onp.array([1.0, 4.0])).round(4))
    2.0
    """
    s = sample("gmean", a if dtype is None else asarray(a, dtype), axis, nan_policy, weights)
    counted = s.weight > 0
    return exp(s.sum(log(where(counted, s.x, 1.0))) / s.count())


@fused(static=("axis", "dtype", "nan_policy"))
@described_like(gmean)
def hmean(a: ArrayLike, axis: int | None = 0, dtype: DTypeLike | None = None, *,
          weights: ArrayLike | None = None, nan_policy: str = "propagate") -> Array:
    """The harmonic mean: one over the mean of reciprocals.

    Returns:
      Floats of the shape of a without the axis: 0 if one of the numbers is, NaN for negative ones.

    >>> print(scipy.stats.hmean(onp.array([1.0, 3.0])))
    1.5
    """
    s = sample("hmean", a if dtype is None else asarray(a, dtype), axis, nan_policy, weights)
    counted = s.weight > 0
    x = where(counted, s.x, 1.0)
    return s.count() / s.sum(where(x < 0, math.nan, 1.0 / where(x < 0, 1.0, x)))


@fused(static=("axis",))
def entropy(pk: ArrayLike, qk: ArrayLike | None = None, base: ArrayLike | None = None,
            axis: int | None = 0) -> Array:
    """The entropy of weights, or their divergence from others (Kullback and Leibler).

    Args:
      pk: numbers >= 0, weights: they are scaled to sum 1.
      qk: others, that broadcast with them; None is for the entropy -sum(p log(p)), otherwise the
        result is sum(p log(p/q)).
      base: of the logarithm; None is e.
    Returns: Floats of the shape of the arguments without the axis.

    >>> print(scipy.stats.entropy(onp.array([1, 1, 2]), base=2.0))
    1.5
    """
    refuse_complex("entropy", pk)
    arrays = [pk] if qk is None else [pk, qk]
    shares = []
    for x in promote_dtypes("entropy", *arrays, inexact=True):
        x = to_array(x)
        shares.append(x / sum_of(x, axis, keepdims=True))
    value = sum_of(entr(*shares) if qk is None else rel_entr(*shares), axis)
    return value if base is None else value / log(base)


@fused(static=("axis", "nan_policy", "interpolation", "keepdims", "rng"))
def iqr(x: ArrayLike, axis: int | None = None, rng: tuple[float, float] = (25, 75),
        scale: ArrayLike = 1.0, nan_policy: str = "propagate", interpolation: str = "linear",
        keepdims: bool = False) -> Array:
    """The distance between two percentiles, the quartiles.

    Args:
      rng: the two percentiles, from 0 to 100.
      scale: the divisor of the result. (SciPy's "normal" is 1.3489795.)
      interpolation: between numbers, as `method` of `olympus.numpy.quantile`.
      keepdims: whether the axis stays, with one element.
    Returns: Floats of the shape of x without the axis.

    >>> print(scipy.stats.iqr(onp.arange(9.0)))
    4.0
    """
    check_policy("iqr", nan_policy)
    fun = nanquantile if nan_policy == "omit" else quantile
    low, high = (fun(inexact(to_array(array_args("iqr", x)[0])), q / 100.0, axis,
                     method=interpolation, keepdims=keepdims)
                 for q in (number("iqr", q) for q in pair(rng, "iqr: rng")))
    return (high - low) / number("iqr", scale)


@fused(static=("axis", "nan_policy"))
@described_like(iqr)
def median_abs_deviation(x: ArrayLike, axis: int | None = 0, *, scale: ArrayLike = 1.0,
                         nan_policy: str = "propagate") -> Array:
    """The median of the distances from the median.

    Args: scale: the divisor of the result. (SciPy's "normal" is 0.67448975.)

    >>> print(scipy.stats.median_abs_deviation(onp.array([1.0, 2.0, 4.0, 9.0, 10.0])))
    3.0
    """
    check_policy("median_abs_deviation", nan_policy)
    fun = nanmedian if nan_policy == "omit" else median
    x = inexact(to_array(array_args("median_abs_deviation", x)[0]))
    return fun(abs(x - fun(x, axis, keepdims=True)), axis) / number(
        "median_abs_deviation", scale)


class DescribeResult(NamedTuple):
    """The result of `describe`."""

    nobs: Array
    minmax: tuple[Array, Array]
    mean: Array
    variance: Array
    skewness: Array
    kurtosis: Array


@fused(static=("axis", "ddof", "bias", "nan_policy"))
def describe(a: ArrayLike, axis: int | None = 0, ddof: int = 1, bias: bool = True,
             nan_policy: str = "propagate") -> DescribeResult:
    """Count, extrema, mean, variance, skewness and kurtosis of a sample.

    Args:
      ddof: subtracted from the count for the variance.
      bias: False corrects skewness and kurtosis for the size of the sample.
    Returns: DescribeResult(nobs, minmax, mean, variance, skewness, kurtosis): arrays of the shape
      of a without the axis; `nobs` is an integer and `minmax` a pair.

    >>> found = scipy.stats.describe(onp.array([1.0, 2.0, 6.0]))
    >>> print(found.nobs, found.mean, found.variance)
    3 3.0 7.0
    """
    s = sample("describe", a, axis, nan_policy)
    n, counted = s.count(), s.weight > 0
    ends = (min_of(where(counted, s.x, math.inf), axis), max_of(where(counted, s.x, -math.inf),
                                                                axis))
    variance = s.central(2)[0] * n / (n - number("describe", ddof))
    return DescribeResult(n.astype(dtypes.default_int()), ends, s.mean(),
                          variance, skew(a, axis, bias, nan_policy),
                          kurtosis(a, axis, True, bias, nan_policy))


complete_docstrings(globals(), {
    "axis": "along which; None is of all elements.",
    "nan_policy": '"propagate", or "omit" to leave NaN out.',
    "a": "real numbers, any shape; integers become floats.",
    "bias": "False corrects for the size of the sample.",
    "ddof": "what is subtracted from the count for the standard deviation.",
    "dtype": "that the numbers are converted to first; None leaves them.",
    "weights": "numbers >= 0 that broadcast with a; None are equal ones.",
    "x": "real numbers, any shape; integers become floats.",
})
