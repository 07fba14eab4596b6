"""The Dirichlet distribution."""

from __future__ import annotations

import math

from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.special.classical import lgamma
from ...numpy.conditions import where
from ...numpy.elementary import exp
from ...numpy.joining import concatenate
from ...numpy.promote import promote_dtypes, to_array
from ...numpy.reductions import all as all_of, sum as sum_of
from ...types import dtypes
from ...types.shape import definitely_equal
from ..special.entropy import xlogy


@fused
def logpdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Logarithm of the density of the Dirichlet distribution.

    The density is the product of x[i] ** (alpha[i]-1) up to a factor, on vectors of positive
    numbers of sum 1.

    Args:
      x: float[n, ...]: the components are along the first axis, as in SciPy; the last one may be
        left out. Integers become floats.
      alpha: float[n], > 0.
    Returns: Floats of the shape of x without its first axis: -inf where x is no vector of
      probabilities (SciPy raises), NaN for parameters that are not positive.

    >>> print(f'{dirichlet.logpdf(onp.array([0.2, 0.8]), onp.array([1.0, 2.0])):.3f}')
    0.470
    """
    x, alpha = (to_array(a) for a in promote_dtypes("dirichlet.logpdf", x, alpha, inexact=True))
    if alpha.ndim != 1 or not x.ndim:
        raise ValueError(f"dirichlet.logpdf: x of shape {x.shape} and alpha of {alpha.shape} given;"
                         " [n, ...] and [n] are required; use vmap for more parameters.")
    n = alpha.shape[0]
    if definitely_equal(x.shape[0] + 1, n):
        x = concatenate([x, 1.0 - sum_of(x, 0, keepdims=True)])
    if not definitely_equal(x.shape[0], n):
        raise ValueError(f"dirichlet.logpdf: x of shape {x.shape} and alpha of {alpha.shape} given;"
                         f" the first axis of x must be of length {n}, or one less.")
    slack = 10.0 * n * float(dtypes.finfo(x.dtype).eps)
    inside = all_of((x >= 0) & (x <= 1), 0) & (abs(sum_of(x, 0) - 1.0) <= slack)
    alpha = alpha.reshape(-1, *[1] * (x.ndim - 1))
    safe = where(inside, x, 1.0 / n)
    value = (sum_of(xlogy(alpha - 1.0, safe), 0) + lgamma(sum_of(alpha, 0))
             - sum_of(lgamma(alpha), 0))
    return where(all_of(alpha > 0, 0), where(inside, value, -math.inf), math.nan)


@fused
def pdf(x: ArrayLike, alpha: ArrayLike) -> Array:
    """Density of the Dirichlet distribution.

    The exponential of `logpdf`.

    Args:
      x: float[n, ...]: the components are along the first axis; the last one may be left out.
      alpha: float[n], > 0.
    Returns: Floats >= 0 of the shape of x without its first axis.

    >>> print(f'{dirichlet.pdf(onp.array([0.2, 0.8]), onp.array([1.0, 2.0])):.3f}')
    1.600
    """
    return exp(logpdf(x, alpha))
