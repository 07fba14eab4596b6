"""Samplers of normal vectors of a given covariance, and of orthogonal matrices."""

from __future__ import annotations

from ..base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax.arithmetic import sign
from ..lax.convert import convert_element_type
from ..lax.linalg.cholesky import cholesky
from ..lax.linalg.eigh import eigh
from ..lax.linalg.qr import qr
from ..lax.linalg.svd import svd
from ..lax.reduce import reduce_max
from ..lax.shape import broadcast_in_dim
from ..lax.sharding import constrain
from ..lax.transcendental import sqrt
from ..numpy import promote
from ..numpy.conditions import where
from ..numpy.einsum import einsum
from ..numpy.linalg.norms import diagonal
from ..numpy.manipulation import swapaxes
from ..types import dtypes
from ..types.shape import broadcast_shapes, canonical_shape, less, static_int
from ..types.sharding import ShardingLike
from .arguments import Dims, float_dtype, parameter, refuse_complex, shape_of
from .continuous import standard_normal
from .keys import typed
from .sampler import at_least_32_bits, typed_aval

F32 = dtypes.as_dtype("float32")
METHODS = ("cholesky", "eigh", "svd")


def _column_axes(matrix: object) -> tuple[int, ...]:
    """The axes of a matrix that a number for each of its columns has."""
    ndim = typeof(matrix).ndim
    return *range(ndim - 2), ndim - 1


def _times_roots(vectors: Array, squares: Array) -> Array:
    """The columns of a matrix times the roots of numbers, which rounding may have made negative."""
    shape = typeof(vectors).shape
    outer = tuple(range(len(shape) - 2))
    largest = reduce_max(squares, (len(shape) - 2,))
    slack = largest * (-shape[-1] * float(dtypes.finfo(typeof(squares).dtype).eps))
    slack = broadcast_in_dim(slack, typeof(squares).shape, outer)
    rounded = (squares < 0.0) & (squares >= slack)
    roots = sqrt(where(rounded, 0.0, squares))
    return vectors * broadcast_in_dim(roots, shape, _column_axes(vectors))


def _factor(cov: Array, method: str) -> Array:
    """A matrix F with F Fᵀ = cov."""
    if method == "cholesky":
        return cholesky(cov)
    if method == "eigh":
        return _times_roots(*eigh(cov))
    left, values, _ = svd(cov)
    return left * broadcast_in_dim(sqrt(values), typeof(left).shape, _column_axes(left))


@fused(static=("shape", "dtype", "method"))
def _multivariate_normal(key: ArrayLike, mean: ArrayLike, cov: ArrayLike, *, shape: Dims,
                         dtype: DType, method: str) -> Array:
    # Without a dimension there is nothing to factor, nor a largest eigenvalue.
    if not shape[-1]:
        return parameter(mean, dtype, shape)
    real = at_least_32_bits(typeof(mean).dtype)
    factor = _factor(parameter(cov, real, shape_of(cov)), method)
    z = standard_normal(typed(key), shape, dtype)
    moved = einsum("...ij,...j->...i", factor, z)
    out = parameter(mean, typeof(moved).dtype, shape) + moved
    return convert_element_type(out, dtype)


def multivariate_normal(key: ArrayLike, mean: ArrayLike, cov: ArrayLike, shape: Shape | None = None,
                        dtype: DTypeLike | None = None, method: str = "cholesky", *,
                        out_sharding: ShardingLike = None) -> Array:
    """Normal vectors of a mean and a covariance: mean + F z, with F Fᵀ = cov and z standard normal.

    Args:
      key: a single key.
      mean: float[..., n].
      cov: float[..., n, n], symmetric and positive definite; semidefinite for other methods than
        "cholesky". Vectors are NaN where it is not, but for "svd".
      shape: the result's shape without its last axis, which the leading axes of mean and cov
        broadcast to; None is their broadcast shape.
      dtype: a float dtype; None is the promoted dtype of mean and cov.
      method: how F is found: "cholesky" is the fastest; "eigh" or "svd".
      out_sharding: where the result is; see `lax.with_sharding_constraint`.
    Returns: An array of shape (*shape, n), differentiable in mean and cov.

    >>> import numpy as np
    >>> x = random.multivariate_normal(random.key(0), np.zeros(2), np.array([[4, 1], [1, 4]]),
    ...                                (10000,))
    >>> print(x.shape, (x[:, 0] * x[:, 1]).mean().round(1))
    (10000, 2) 1.0
    """
    name = "multivariate_normal"
    typed_aval(key, name)
    if method not in METHODS:
        raise ValueError(f"{name}: method {method!r} given; 'cholesky', 'eigh' or 'svd' is "
                         "required.")
    mean, cov = promote.promote_dtypes(name, mean, cov, inexact=True)
    refuse_complex(name, mean)
    refuse_complex(name, cov)
    own, square = typeof(mean).shape, typeof(cov).shape
    if not own or square[-2:] != (own[-1], own[-1]):
        raise ValueError(f"{name}: mean {typeof(mean)} and cov {typeof(cov)} given; shapes (..., n)"
                         " and (..., n, n) are required.")
    batch = broadcast_shapes(own[:-1], square[:-2])
    if shape is not None:
        dims = canonical_shape(shape, name)
        if broadcast_shapes(dims, batch) != dims:
            raise ValueError(f"{name}: shape {dims} given with mean {typeof(mean)} and cov "
                             f"{typeof(cov)}; their leading axes must broadcast to it; pass a "
                             "shape whose last axes are theirs.")
        batch = dims
    drawn = typeof(mean).dtype if dtype is None else float_dtype(name, dtype)
    out = _multivariate_normal(key, mean, cov, shape=(*batch, own[-1]), dtype=drawn,
                               method=method)
    return constrain(name, out, out_sharding)


@fused(static=("shape", "n", "m", "dtype"))
def _orthogonal(key: ArrayLike, *, shape: Dims, n: int, m: int, dtype: DType) -> Array:
    """Columns of normal numbers made orthonormal, with signs as if R's diagonal were positive."""
    tall = (*shape, n, m) if not less(n, m) else (*shape, m, n)
    drawn = at_least_32_bits(dtype)
    q, r = qr(standard_normal(typed(key), tall, drawn), full_matrices=False)
    signs = broadcast_in_dim(sign(diagonal(r)), typeof(q).shape,
                             (*range(len(shape)), len(shape) + 1))
    q = q * signs
    return convert_element_type(swapaxes(q, -1, -2) if less(n, m) else q, dtype)


def orthogonal(key: ArrayLike, n: int, shape: Shape = (), dtype: DTypeLike | None = None,
               m: int | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Matrices uniform among the orthogonal ones, or among the unitary ones if complex.

    The Q of normal matrices' QR factorisation whose R has a positive diagonal: Mezzadri (2007),
    Notices AMS 54(5), 592.

    Args:
      key: a single key.
      n: the number of rows.
      shape: the result's shape without its last two axes.
      dtype: a float or complex dtype; None is the default float.
      m: the number of columns; None is n. With m < n the columns are orthonormal, with m > n the
        rows.
      out_sharding: where the result is; see `lax.with_sharding_constraint`.
    Returns: An array of shape (*shape, n, m).

    >>> q = random.orthogonal(random.key(0), 3)
    >>> print(abs((q @ q.T).round(3)))
    [[1. 0. 0.]
     [0. 1. 0.]
     [0. 0. 1.]]
    """
    typed_aval(key, "orthogonal")
    n = static_int(n, "orthogonal", "n")
    m = n if m is None else static_int(m, "orthogonal", "m")
    if n < 0 or m < 0:
        raise ValueError(f"orthogonal: n {n!r} and m {m!r} given; numbers of rows and columns that "
                         "are not negative are required.")
    drawn = _orthogonal(key, shape=canonical_shape(shape, "orthogonal"), n=n, m=m,
                        dtype=float_dtype("orthogonal", dtype, "fc"))
    return constrain("orthogonal", drawn, out_sharding)
