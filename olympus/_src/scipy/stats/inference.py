"""Correlation, regression of a line, and t tests: estimates with probabilities of larger ones."""

from __future__ import annotations

from typing import NamedTuple

from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...numpy.arithmetic import maximum, minimum
from ...numpy.conditions import where
from ...numpy.elementary import sqrt
from ...numpy.promote import promote_dtypes, to_array
from ...numpy.reductions import sum as sum_of
from ...random.arguments import refuse_complex
from ...types.shape import definitely_equal
from ..special.gammas import betainc
from .moments import Sample, number, sample
from .ranks import rankdata

_ALTERNATIVES = ("two-sided", "less", "greater")


class SignificanceResult(NamedTuple):
    """A statistic, and the probability of one as far out where there is no effect."""

    statistic: Array
    pvalue: Array


class LinregressResult(NamedTuple):
    """A line through points, the correlation, its probability, the standard error of the slope."""

    slope: Array
    intercept: Array
    rvalue: Array
    pvalue: Array
    stderr: Array


def _p_value(name: str, t: Array, df: ArrayLike, alternative: str, outside: Array | None = None
             ) -> Array:
    """The probability of a t number as far out; `outside` is df / (df + t²), where it is known."""
    if alternative not in _ALTERNATIVES:
        raise ValueError(f"{name}: alternative={alternative!r} given; one of "
                         f"{', '.join(_ALTERNATIVES)} is required.")
    both = betainc(0.5 * df, 0.5, 1.0 / (1.0 + t * t / df) if outside is None else outside)
    if alternative == "two-sided":
        return both
    tail = (t < 0) if alternative == "less" else (t > 0)
    return where(tail, 0.5 * both, 1.0 - 0.5 * both)


def _two_samples(name: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Two real vectors of one length."""
    refuse_complex(name, x)
    refuse_complex(name, y)
    x, y = (to_array(v) for v in promote_dtypes(name, x, y, inexact=True))
    if x.ndim != 1 or y.ndim != 1 or not definitely_equal(x.shape[0], y.shape[0]):
        raise ValueError(f"{name}: x of shape {x.shape} and y of {y.shape} given; two vectors of "
                         "one length are required; use vmap for several.")
    return x, y


def _centred(x: Array) -> Array:
    return x - sum_of(x, keepdims=True) / x.shape[0]


def _correlation(name: str, x: Array, y: Array, alternative: str) -> SignificanceResult:
    a, b = _centred(x), _centred(y)
    a, b = a / sqrt(sum_of(a * a)), b / sqrt(sum_of(b * b))
    # The nearer of 1 - r and 1 + r as a square, as it would cancel for strong correlations.
    r = maximum(minimum(sum_of(a * b), 1.0), -1.0)
    near = 0.5 * where(r > 0, sum_of((a - b) ** 2), sum_of((a + b) ** 2))
    outside = near * (2.0 - near)
    return SignificanceResult(r, _p_value(name, r, x.shape[0] - 2.0, alternative, outside))


@fused(static=("alternative",))
def pearsonr(x: ArrayLike, y: ArrayLike, *, alternative: str = "two-sided") -> SignificanceResult:
    """The correlation coefficient of two samples.

    Returns: SignificanceResult(statistic, pvalue): the coefficient, from -1 to 1, and the
      probability of one as far out for independent normal numbers.

    >>> x, y = onp.array([1.0, 2.0, 3.0, 4.0]), onp.array([2.0, 1.0, 4.0, 5.0])
    >>> r, p = scipy.stats.pearsonr(x, y)
    >>> print(f'{r:.3f} {p:.3f}')
    0.849 0.151
    """
    return _correlation("pearsonr", *_two_samples("pearsonr", x, y), alternative)


@fused(static=("alternative",))
def spearmanr(a: ArrayLike, b: ArrayLike, *, alternative: str = "two-sided"
              ) -> SignificanceResult:
    """The rank correlation of two samples: the correlation coefficient of their ranks.

    Args: a, b: real numbers[n]. (SciPy also takes matrices.)
    Returns: SignificanceResult(statistic, pvalue): the coefficient, from -1 to 1, and the
      probability of one as far out for independent numbers, by the t distribution.

    >>> x, y = onp.array([1.0, 2.0, 3.0, 9.0]), onp.array([2.0, 1.0, 4.0, 5.0])
    >>> r, p = scipy.stats.spearmanr(x, y)
    >>> print(f'{r:.3f} {p:.3f}')
    0.800 0.200
    """
    x, y = (rankdata(v).astype(v.dtype) for v in _two_samples("spearmanr", a, b))
    return _correlation("spearmanr", x, y, alternative)


@fused(static=("alternative",))
def linregress(x: ArrayLike, y: ArrayLike, alternative: str = "two-sided") -> LinregressResult:
    """The line through points with the least sum of squares.

    Returns: LinregressResult(slope, intercept, rvalue, pvalue, stderr): rvalue is the correlation
      coefficient, pvalue the probability of a slope as far from 0 if there is none, and stderr the
      standard error of the slope. (SciPy's also has the intercept's.)

    >>> x, y = onp.array([1.0, 2.0, 3.0, 4.0]), onp.array([2.0, 1.0, 4.0, 5.0])
    >>> line = scipy.stats.linregress(x, y)
    >>> print(f'{line.slope:.2f} {line.rvalue:.3f} {line.stderr:.3f}')
    1.20 0.849 0.529
    """
    x, y = _two_samples("linregress", x, y)
    correlation = _correlation("linregress", x, y, alternative)
    a, b = _centred(x), _centred(y)
    width = sum_of(a * a)
    slope = sum_of(a * b) / width
    rest = b - slope * a
    n = x.shape[0]
    error = sqrt(sum_of(rest * rest) / (n - 2.0) / width)
    return LinregressResult(slope, (sum_of(y) - slope * sum_of(x)) / n, *correlation, error)


def _unbiased(s: Sample) -> tuple[Array, Array, Array]:
    n = s.count()
    return s.mean(), s.central(2)[0] * n / (n - 1.0), n


@fused(static=("axis", "nan_policy", "alternative"))
def ttest_1samp(a: ArrayLike, popmean: ArrayLike, axis: int | None = 0,
                nan_policy: str = "propagate", alternative: str = "two-sided"
                ) -> SignificanceResult:
    """The t test of whether a sample has a given mean.

    Args:
      a: real numbers, any shape; integers become floats.
      popmean: the mean, a number or an array that broadcasts with the result.
    Returns: SignificanceResult(statistic, pvalue), of the shape of a without the axis.

    >>> t, p = scipy.stats.ttest_1samp(onp.array([1.0, 2.0, 3.0, 5.0]), 1.5)
    >>> print(f'{t:.3f} {p:.3f}')
    1.464 0.239
    """
    mean, var, n = _unbiased(sample("ttest_1samp", a, axis, nan_policy))
    t = (mean - number("ttest_1samp", popmean)) / sqrt(var / n)
    return SignificanceResult(t, _p_value("ttest_1samp", t, n - 1.0, alternative))


@fused(static=("axis", "nan_policy", "alternative"))
def ttest_rel(a: ArrayLike, b: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
              alternative: str = "two-sided") -> SignificanceResult:
    """The t test of whether pairs have equal means: the test of their differences.

    Args:
      a, b: real numbers of one shape; integers become floats.
      nan_policy: "propagate", or "omit" to leave pairs with NaN out.
    Returns: SignificanceResult(statistic, pvalue), of the shape of the arguments without the axis.

    >>> t, p = scipy.stats.ttest_rel(onp.array([1.0, 2.0, 4.0]), onp.array([2.0, 4.0, 5.0]))
    >>> print(f'{t:.3f} {p:.3f}')
    -4.000 0.057
    """
    for v in (a, b):
        refuse_complex("ttest_rel", v)
    x, y = (to_array(v) for v in promote_dtypes("ttest_rel", a, b, inexact=True))
    return ttest_1samp(x - y, 0.0, axis, nan_policy, alternative)


@fused(static=("axis", "equal_var", "nan_policy", "alternative"))
def ttest_ind(a: ArrayLike, b: ArrayLike, *, axis: int | None = 0, equal_var: bool = True,
              nan_policy: str = "propagate", alternative: str = "two-sided"
              ) -> SignificanceResult:
    """The t test of whether two independent samples have equal means.

    Args:
      a, b: real numbers of one shape but for the axis; integers become floats.
      equal_var: whether the variances are taken to be equal; if not, this is Welch's test.
    Returns: SignificanceResult(statistic, pvalue), of the shape of the arguments without the axis.

    >>> t, p = scipy.stats.ttest_ind(onp.array([1.0, 2.0, 4.0]), onp.array([3.0, 5.0, 6.0]))
    >>> print(f'{t:.3f} {p:.3f}')
    -1.871 0.135
    """
    (m1, v1, n1), (m2, v2, n2) = (
        _unbiased(sample("ttest_ind", x, axis, nan_policy)) for x in (a, b))
    if equal_var:
        df = n1 + n2 - 2.0
        square = ((n1 - 1.0) * v1 + (n2 - 1.0) * v2) / df * (1.0 / n1 + 1.0 / n2)
    else:
        e1, e2 = v1 / n1, v2 / n2
        square = e1 + e2
        df = square * square / (e1 * e1 / (n1 - 1.0) + e2 * e2 / (n2 - 1.0))
    t = (m1 - m2) / sqrt(square)
    return SignificanceResult(t, _p_value("ttest_ind", t, df, alternative))


complete_docstrings(globals(), {
    "alternative": 'of which side the probability is: "two-sided", "less", "greater".',
    "axis": "along which samples are; None is of all elements.",
    "x, y": "real numbers[n], integers become floats.",
    "nan_policy": '"propagate", or "omit" to leave NaN out.',
})
