"""`olympus.numpy.linalg`: what needs no factorisation: norms, products, traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.typing import Array, ArrayLike, DTypeLike
from ...lax import shape as lax_shape
from ...lax.arithmetic import imag, real, square
from ...lax.families import add
from ...lax.linalg.svd import svd
from ...lax.precision import PrecisionLike
from ...lax.slicing import index_in_dim
from ...lax.transcendental import sqrt
from ...transforms.fused import fused
from ...types import dtypes
from ...types.shape import canonical_axes, canonical_axis, definitely_equal
from ...types.sharding import ShardingLike
from .. import products, reductions
from ..promote import array_args, inexact
from ..ufuncs import absolute, divide, not_equal, power

__all__ = ["cross", "diagonal", "matmul", "matrix_norm", "matrix_transpose", "norm", "outer",
           "tensordot", "trace", "vecdot", "vector_norm"]


@fused(static=("ord", "axis", "keepdims"))
def norm(x: ArrayLike, ord: int | str | None = None, axis: None | tuple[int, ...] | int = None,
         keepdims: bool = False) -> Array:
    """The norm of vectors or matrices.

    Args:
      ord: vectors: a number, inf or -inf (2 unless given). Matrices: "fro" (unless given), "nuc"
        (the sum of the singular values), 2, -2 (the largest, the smallest), 1, -1, inf or -inf.
      axis: an axis for vectors, a pair for matrices; None takes a vector or matrix as it is, and
        without `ord` all elements of any array.

    Raises ValueError for other ranks and orders.

    >>> import olympus.numpy as jnp
    >>> jnp.linalg.norm(jnp.array([3., 4.]))
    Array(5., dtype=float32)
    """
    (a,) = array_args("norm", x)
    a = inexact(a)
    ndim = len(a.shape)
    if axis is None and ord is None:
        return _power_norm(a, 2, tuple(range(ndim)), keepdims)
    axes = canonical_axes(axis, ndim, "norm")
    if len(axes) == 1:
        return _vector(a, 2 if ord is None else ord, axes, keepdims)
    if len(axes) == 2:
        return _matrix(a, "fro" if ord is None else ord, axes, keepdims)
    raise ValueError(f"norm: {a.aval} with axis {axis} given; an axis or a pair of axes is "
                     "required.")


def _power_norm(x: Any, p: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """(sum |x|**p) ** (1/p)."""
    if isinstance(p, (int, float)) and p == 2:
        squares = (add(square(real(x)), square(imag(x)))
                   if dtypes.is_complex(x.dtype) else square(x))
        return sqrt(reductions.sum(squares, axes, keepdims=keepdims))
    total = reductions.sum(power(absolute(x), p), axes, keepdims=keepdims)
    return power(total, divide(1.0, p))


def _vector(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    if isinstance(ord, str):
        raise ValueError(f"norm: order {ord!r} for a vector given; a number is required.")
    if isinstance(ord, (complex, np.complexfloating)):
        raise TypeError(f"norm: order {ord} for a vector given; a real number is required.")
    if isinstance(ord, (int, float)):
        if ord == np.inf:
            return _extreme(x, absolute(x), axes, True, keepdims)
        if ord == -np.inf:
            return _extreme(x, absolute(x), axes, False, keepdims)
        if ord == 0:
            dtype = dtypes.to_real_dtype(x.dtype)
            return reductions.sum(not_equal(x, 0), axes, dtype, keepdims=keepdims)
        if ord == 1:
            return reductions.sum(absolute(x), axes, keepdims=keepdims)
    return _power_norm(x, ord, axes, keepdims)


def _extreme(x: Any, sizes: Any, axes: tuple[int, ...], largest: bool, keepdims: bool) -> Any:
    """The largest of numbers that are not negative, 0 of none; or the smallest, of `x` or of it."""
    empty = any(definitely_equal(sizes.shape[i], 0) for i in axes)
    if empty and not largest:
        raise ValueError(f"norm: {x.aval} given; the smallest of no elements is asked for; at "
                         "least one element is required.")
    if not largest:
        return reductions.min(sizes, axes, keepdims=keepdims)
    return reductions.max(sizes, axes, keepdims=keepdims, initial=0 if empty else None)


def _matrix(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    rows, columns = axes
    if ord in ("fro", "f"):
        return _power_norm(x, 2, axes, keepdims)
    if ord in (2, -2, "nuc"):
        return _spectral(x, ord, axes, keepdims)
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError(f"norm: order {ord!r} for a matrix given; 'fro', 'nuc', 1, -1, 2, -2, inf "
                         "or -inf is required.")
    summed, compared = (rows, columns) if ord in (1, -1) else (columns, rows)
    sums = reductions.sum(absolute(x), summed, keepdims=True)
    found = _extreme(x, sums, (compared,), ord > 0, True)
    return found if keepdims else lax_shape.squeeze(found, axes)


def _spectral(x: Any, ord: Any, axes: tuple[int, ...], keepdims: bool) -> Any:
    """A norm of the singular values, which are not negative and descend; 0 if there are none."""
    kept = tuple([d for d in range(len(x.shape)) if d not in axes])
    s = svd(lax_shape.transpose(x, (*kept, *axes)), compute_uv=False)
    last = len(kept)
    if ord == "nuc":
        found = lax_shape.reduce_sum(s, (last,))
    elif definitely_equal(s.shape[last], 0):
        found = _extreme(x, s, (last,), ord == 2, False)
    else:
        found = index_in_dim(s, 0 if ord == 2 else -1, last, keepdims=False)
    return lax_shape.expand_dims(found, sorted(axes)) if keepdims else found


@fused(static=("axis", "keepdims", "ord"))
def vector_norm(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None,
                keepdims: bool = False, ord: int | str = 2) -> Array:
    """The norm of vectors along one axis, or of all elements over several (all if None)."""
    (a,) = array_args("vector_norm", x)
    a = inexact(a)
    return _vector(a, ord, canonical_axes(axis, len(a.shape), "vector_norm"), keepdims)


@fused(static=("keepdims", "ord"))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | int = "fro") -> Array:
    """The norm of matrices x[..., n, m]: `ord` as in `norm`.

    >>> import olympus.numpy as jnp
    >>> print(jnp.linalg.matrix_norm(jnp.ones((2, 8))))
    4.0
    """
    (a,) = array_args("matrix_norm", x)
    n = len(a.shape)
    if n < 2:
        raise ValueError(f"matrix_norm: {a.aval} given; at least two axes are required.")
    return _matrix(inexact(a), "fro" if ord is None else ord, (n - 2, n - 1), keepdims)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """x[..., n, m] -> [..., m, n]."""
    (a,) = array_args("matrix_transpose", x)
    n = len(a.shape)
    if n < 2:
        raise ValueError(f"matrix_transpose: {a.aval} given; at least two axes are required.")
    return lax_shape.transpose(a, (*range(n - 2), n - 1, n - 2))


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """x[..., n, m] -> [..., k]: a diagonal of the last two axes."""
    return products.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """x[..., n, m] -> [...]: the sum of a diagonal of the last two axes."""
    return products.trace(x, offset, -2, -1, dtype)


def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """`olympus.numpy.matmul`."""
    return products.matmul(x1, x2, precision=precision,
                           preferred_element_type=preferred_element_type)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """x1[n], x2[m] -> [n, m]: all products. Raises ValueError for other ranks."""
    x, y = array_args("outer", x1, x2)
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise ValueError(f"outer: {x.aval} and {y.aval} given; vectors are required.")
    return products.outer(x, y)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of 3 numbers along an axis."""
    x, y = array_args("cross", x1, x2)
    for z in (x, y):
        canonical_axis(axis, len(z.shape), "cross")
    if not (definitely_equal(x.shape[axis], 3) and definitely_equal(y.shape[axis], 3)):
        raise ValueError(f"cross: {x.aval} and {y.aval} given; vectors of 3 numbers are required.")
    return products.cross(x, y, axis=axis)


def tensordot(x1: ArrayLike, x2: ArrayLike, /, *,
              axes: int | tuple[Sequence[int], Sequence[int]] = 2, precision: PrecisionLike = None,
              preferred_element_type: DTypeLike | None = None, out_sharding: ShardingLike = None
             ) -> Array:
    """`olympus.numpy.tensordot`."""
    return products.tensordot(x1, x2, axes, precision=precision,
                              preferred_element_type=preferred_element_type,
                              out_sharding=out_sharding)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """`olympus.numpy.vecdot`."""
    return products.vecdot(x1, x2, axis=axis, precision=precision,
                           preferred_element_type=preferred_element_type)
