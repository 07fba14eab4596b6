"""The multivariate normal distribution."""

from __future__ import annotations

import math
from typing import Any

from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...numpy.conditions import where
from ...numpy.elementary import exp, log, sqrt
from ...numpy.linalg.decompositions import eigh
from ...numpy.linalg.systems import cholesky
from ...numpy.manipulation import expand_dims, squeeze
from ...numpy.products import diagonal, matmul
from ...numpy.promote import promote_dtypes, to_array
from ...numpy.reductions import max as max_of, sum as sum_of
from ...random.arguments import refuse_complex
from ...types import dtypes
from ...types.shape import definitely_equal
from .matrices import solve_lower

_LOG_TWICE_PI = math.log(2.0 * math.pi)


@fused(static=("allow_singular",))
def logpdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike, allow_singular: bool | None = None
           ) -> Array:
    """Logarithm of the density of the multivariate normal distribution.

    By the Cholesky factor of the covariance matrix. SciPy's arguments; JAX does not take
    `allow_singular`.

    Args:
      x: float[..., n], vectors; integers become floats.
      mean: float[..., n], or a number for all of them.
      cov: float[..., n, n], covariance matrices, whose lower triangle counts; or a number: the
        variance of each component.
      allow_singular: whether the matrix may have less than full rank: then the density is that on
        the subspace where there is one, and 0 elsewhere, by the eigenvalues. Otherwise the result
        for such a matrix is NaN.
    Returns: Floats of the shape of x without its last axis, broadcast with the others; of the shape
      of x where `mean` is a number.

    >>> cov = onp.array([[2.0, 0.5], [0.5, 1.0]])
    >>> print(f'{multivariate_normal.logpdf(onp.array([1.0, 0.0]), onp.zeros(2), cov):.3f}')
    -2.403
    """
    name = "multivariate_normal.logpdf"
    for a in (x, mean, cov):
        refuse_complex(name, a)
    x, mean, cov = (to_array(a) for a in promote_dtypes(name, x, mean, cov, inexact=True))
    apart = x - mean
    if not mean.shape and not cov.shape:
        return -0.5 * (apart * apart / cov + log(cov) + _LOG_TWICE_PI)
    n = apart.shape[-1]
    if not cov.shape:
        return -0.5 * sum_of(apart * apart / cov + log(cov) + _LOG_TWICE_PI, -1)
    if cov.ndim < 2 or not definitely_equal(cov.shape[-1], n) or not definitely_equal(
            cov.shape[-2], n):
        raise ValueError(f"{name}: x of shape {x.shape}, mean of {mean.shape} and cov of "
                         f"{cov.shape} given; cov must be a number or [..., {n}, {n}]; pass "
                         "onp.diag(variances) for independent components.")
    if allow_singular:
        return _of_low_rank(apart, cov)
    lower = cholesky(cov)
    z = solve_lower(lower, apart)
    return -0.5 * sum_of(z * z, -1) - 0.5 * n * _LOG_TWICE_PI - sum_of(
        log(diagonal(lower, axis1=-2, axis2=-1)), -1)


def _of_low_rank(apart: Any, cov: Array) -> Array:
    """The density by the eigenvalues that are not 0 but for rounding, by SciPy's tolerance."""
    values, vectors = eigh(cov)
    info = dtypes.finfo(cov.dtype)
    eps = float(info.eps) * (1e6 if dtypes.itemsize_bits(cov.dtype) == 64 else 1e3)
    most = expand_dims(max_of(abs(values), -1), -1)
    in_span = values > eps * most
    z = squeeze(matmul(expand_dims(apart, -2), vectors), -2)
    safe = where(in_span, values, 1.0)
    inside = sum_of(where(in_span, 0.0, z * z), -1) < sqrt(eps) ** 2 * sum_of(most, -1)
    value = -0.5 * sum_of(where(in_span, z * z / safe + log(safe) + _LOG_TWICE_PI, 0.0), -1)
    return where(inside, value, -math.inf)


@fused
def pdf(x: ArrayLike, mean: ArrayLike, cov: ArrayLike) -> Array:
    """Density of the multivariate normal distribution.

    The exponential of `logpdf`, which describes the shapes.

    Args:
      x: float[..., n], vectors; integers become floats.
      mean: float[..., n], or a number for all of them.
      cov: float[..., n, n], covariance matrices; or a number.
    Returns: Floats >= 0 of the shape of x without its last axis, broadcast with the others.

    >>> print(f'{multivariate_normal.pdf(onp.zeros(2), onp.zeros(2), onp.eye(2)):.4f}')
    0.1592
    """
    return exp(logpdf(x, mean, cov))
