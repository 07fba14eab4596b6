"""The multinomial distribution."""

from __future__ import annotations

import math

from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.special.classical import lgamma
from ...numpy.conditions import where
from ...numpy.elementary import exp, floor
from ...numpy.promote import promote_dtypes, to_array
from ...numpy.reductions import all as all_of, sum as sum_of
from ..special.entropy import xlogy


@fused
def logpmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Logarithm of the probability of counts under the multinomial distribution.

    The probability is n! times the product of p[i] ** x[i] / x[i]!.

    Args:
      x: integers[..., k], or floats that are whole: how often each outcome came.
      n: integers[...], the number of trials.
      p: float[..., k], the probabilities of the outcomes, of sum 1. SciPy corrects the last one so
        that they are; here they are taken as they are.
    Returns: Floats <= 0 of the shape that the arguments broadcast to, without the last axis: -inf
      where the sum of x is not n or a count is no integer >= 0, NaN for negative probabilities.

    >>> print(f'{multinomial.logpmf(onp.array([1, 2]), 3, onp.array([0.25, 0.75])):.3f}')
    -0.863
    """
    x, n, p = (to_array(a) for a in promote_dtypes("multinomial.logpmf", x, n, p, inexact=True))
    inside = all_of((x >= 0) & (x == floor(x)), -1) & (sum_of(x, -1) == n)
    safe = where(x >= 0, x, 0.0)
    value = lgamma(n + 1.0) + sum_of(xlogy(safe, p) - lgamma(safe + 1.0), -1)
    return where(all_of(p >= 0, -1), where(inside, value, -math.inf), math.nan)


@fused
def pmf(x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
    """Probability of counts under the multinomial distribution.

    The exponential of `logpmf`.

    Args:
      x: integers[..., k]: how often each outcome came.
      n: integers[...], the number of trials.
      p: float[..., k], the probabilities of the outcomes, of sum 1.
    Returns: Probabilities of the shape that the arguments broadcast to, without the last axis.

    >>> print(f'{multinomial.pmf(onp.array([1, 2]), 3, onp.array([0.25, 0.75])):.3f}')
    0.422
    """
    return exp(logpmf(x, n, p))
