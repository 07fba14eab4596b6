"""`olympus.numpy.linalg`: what needs no factorisation: norms, products, traces."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike, DTypeLike
from ...jit.fused import fused
from ...lax import shape as lax_shape
from ...lax.arithmetic import imag, real, square
from ...lax.convert import in_dtype
from ...lax.families import add
from ...lax.linalg.svd import svd
from ...lax.precision import PrecisionLike
from ...lax.slicing import index_in_dim
from ...lax.transcendental import sqrt
from ...types import dtypes
from ...types.shape import canonical_axes, canonical_axis, definitely_equal
from ...types.sharding import ShardingLike
from .. import products, reductions
from ..arithmetic import absolute, divide, not_equal, power
from ..promote import array_args, flag, inexact


@fused(static=("ord", "axis", "keepdims"))
def norm(x: ArrayLike, ord: float | str | None = None, axis: None | tuple[int, ...] | int = None,
         keepdims: bool = False) -> Array:
    """The norm of vectors or matrices.

    The gradient of the default is not finite at zero.

    Args:
      x: array; integers become floats.
      ord: vectors: a number p, for (sum |x|**p)**(1/p), inf or -inf; 0 counts nonzero elements (2
        unless given). Matrices: "fro" (unless given), "nuc" (the sum of the singular values), 2, -2
        (the largest, the smallest), 1, -1 (the largest, the smallest column sum), inf or -inf (row
        sum).
      axis: an axis for vectors, a pair for matrices; None takes a vector or matrix as it is, and
        without `ord` all elements of any array.
    Returns: Real: `x` without the axes.

    Raises ValueError for other ranks and orders.

    >>> onp.linalg.norm(onp.array([3., 4.]))
    Array(5., dtype=float32)
    >>> print(onp.linalg.norm(onp.array([[3., 4.], [0., 5.]]), axis=1))
    [5. 5.]
    """
    (a,) = array_args("norm", x)
    a, keepdims = inexact(a), flag("norm", "keepdims", keepdims)
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


def _power_norm(x: Array, p: ArrayLike, axes: tuple[int, ...], keepdims: bool) -> Array:
    """(sum |x|**p) ** (1/p), of 16 bits in float32: the squares of 256 and more have no float16."""
    dtype = dtypes.to_real_dtype(x.dtype)
    x = in_dtype(x, dtypes.wide_dtype(x.dtype))
    if isinstance(p, (int, float)) and p == 2:
        squares = (add(square(real(x)), square(imag(x)))
                   if dtypes.is_complex(x.dtype) else square(x))
        return in_dtype(sqrt(reductions.sum(squares, axes, keepdims=keepdims)), dtype)
    total = reductions.sum(power(absolute(x), p), axes, keepdims=keepdims)
    return in_dtype(power(total, divide(1.0, p)), dtype)


def _vector(x: Array, ord: ArrayLike | str, axes: tuple[int, ...], keepdims: bool) -> Array:
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


def _extreme(x: Array, sizes: Array, axes: tuple[int, ...], largest: bool, keepdims: bool) -> Array:
    """The largest of numbers that are not negative, 0 of none; or the smallest, of `x` or of it."""
    empty = any(definitely_equal(sizes.shape[i], 0) for i in axes)
    if empty and not largest:
        raise ValueError(f"norm: {x.aval} given; the smallest of no elements is asked for; at "
                         "least one element is required.")
    if not largest:
        return reductions.min(sizes, axes, keepdims=keepdims)
    return reductions.max(sizes, axes, keepdims=keepdims, initial=0 if empty else None)


def _matrix(x: Array, ord: float | str, axes: tuple[int, ...], keepdims: bool) -> Array:
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
    norm = _extreme(x, sums, (compared,), ord > 0, True)
    return norm if keepdims else lax_shape.squeeze(norm, axes)


def _spectral(x: Array, ord: object, axes: tuple[int, ...], keepdims: bool) -> Array:
    """A norm of the singular values, which are not negative and descend; 0 if there are none."""
    other_axes = tuple([d for d in range(len(x.shape)) if d not in axes])
    s = svd(lax_shape.transpose(x, (*other_axes, *axes)), compute_uv=False)
    last = len(other_axes)
    if ord == "nuc":
        norm = lax_shape.reduce_sum(s, (last,))
    elif definitely_equal(s.shape[last], 0):
        norm = _extreme(x, s, (last,), ord == 2, False)
    else:
        norm = index_in_dim(s, 0 if ord == 2 else -1, last, keepdims=False)
    return lax_shape.expand_dims(norm, sorted(axes)) if keepdims else norm


@fused(static=("axis", "keepdims", "ord"))
def vector_norm(x: ArrayLike, /, *, axis: int | tuple[int, ...] | None = None,
                keepdims: bool = False, ord: int | str = 2) -> Array:
    """The norm of vectors along an axis, or of all elements over several.

    Args:
      x: array; integers become floats.
      axis: the axis, or a tuple of axes, which count as one; all of them if None.
      ord: a number p, for (sum |x|**p)**(1/p), inf or -inf; 0 counts nonzero elements.
    Returns: Real: `x` without the axes.

    >>> print(onp.linalg.vector_norm(onp.array([[3., 4.], [1., -2.]]), axis=1, ord=1))
    [7. 3.]
    """
    (a,) = array_args("vector_norm", x)
    a, keepdims = inexact(a), flag("vector_norm", "keepdims", keepdims)
    axes = canonical_axes(axis, len(a.shape), "vector_norm")
    return _vector(a, 2 if ord is None else ord, axes, keepdims)


@fused(static=("keepdims", "ord"))
def matrix_norm(x: ArrayLike, /, *, keepdims: bool = False, ord: str | int = "fro") -> Array:
    """The norm of matrices in the last two axes.

    Args:
      x: [..., n, m]; integers become floats.
      ord: "fro", "nuc", 1, -1, 2, -2, inf or -inf: as in `norm`.
    Returns: Real [...].

    Raises ValueError for rank below 2 and for other orders.

    >>> print(onp.linalg.matrix_norm(onp.ones((2, 8))))
    4.0
    """
    (a,) = array_args("matrix_norm", x)
    n, keepdims = len(a.shape), flag("matrix_norm", "keepdims", keepdims)
    if n < 2:
        raise ValueError(f"matrix_norm: {a.aval} given; at least two axes are required.")
    return _matrix(inexact(a), "fro" if ord is None else ord, (n - 2, n - 1), keepdims)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """A diagonal of matrices in the last two axes (`olympus.numpy.diagonal` takes the first ones).

    Args:
      x: array [..., n, m].
      offset: which diagonal: 0 is the main one, positive ones lie above it.
    Returns: An array [..., k].

    Raises ValueError for rank below 2.

    >>> print(onp.linalg.diagonal(onp.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])))
    [[1 4]
     [5 8]]
    """
    return products.diagonal(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """The sum of a diagonal of matrices in the last two axes.

    Args:
      x: array [..., n, m].
      offset: which diagonal: 0 is the main one, positive ones lie above it.
      dtype: of the result; by default as for `sum`: small integers become int32 or uint32.
    Returns: An array [...].

    Raises ValueError for rank below 2.

    >>> print(onp.linalg.trace(onp.array([[[1, 2], [3, 4]], [[5, 6], [7, 8]]])))
    [ 5 13]
    """
    return products.trace(x, offset, -2, -1, dtype)


def matmul(x1: ArrayLike, x2: ArrayLike, /, *, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The matrix product x1 @ x2; leading axes broadcast: `olympus.numpy.matmul`.

    Args:
      x1: array [..., n, k] or [k].
      x2: array [..., k, m] or [k].
    Returns: An array [..., n, m] of the promoted dtype.

    Raises ValueError for scalars, TypeError for sizes that do not fit.

    >>> print(onp.linalg.matmul(onp.array([[1, 2]]), onp.array([[3], [4]])))
    [[11]]
    """
    return products.matmul(x1, x2, precision=precision,
                           preferred_element_type=preferred_element_type)


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """All products of an element of `x1` and one of `x2`, vectors both.

    Args:
      x1: array [n].
      x2: array [m].
    Returns: [n, m] of the promoted dtype.

    Raises ValueError for other ranks, which `olympus.numpy.outer` flattens.

    >>> print(onp.linalg.outer(onp.array([1, 2]), onp.array([3, 4, 5])))
    [[ 3  4  5]
     [ 6  8 10]]
    """
    x, y = array_args("outer", x1, x2)
    if len(x.shape) != 1 or len(y.shape) != 1:
        raise ValueError(f"outer: {x.aval} and {y.aval} given; vectors are required.")
    return products.outer(x, y)


def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """The cross product of vectors of 3 numbers along an axis; the others broadcast.

    Args:
      x1, x2: arrays with 3 elements along the axis.
      axis: the axis.
    Returns: An array of the promoted dtype.

    Raises ValueError for other sizes, also for vectors of 2, which `olympus.numpy.cross` takes.

    >>> print(onp.linalg.cross(onp.array([0, 1, 0]), onp.array([0, 0, 1])))
    [1 0 0]
    """
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
    """The sum of products over pairs of axes: `olympus.numpy.tensordot`.

    Args:
      x1, x2: arrays.
      axes: a number n: the last n axes of `x1` with the first n of `x2`; or a pair of lists of
        axes.
    Returns: An array with the axes left of `x1`, then those left of `x2`, of the promoted dtype.

    Raises TypeError for sizes and for numbers of axes that do not fit.

    >>> print(onp.linalg.tensordot(onp.arange(4).reshape(2, 2), onp.eye(2)))
    3.0
    """
    return products.tensordot(x1, x2, axes, precision=precision,
                              preferred_element_type=preferred_element_type,
                              out_sharding=out_sharding)


def vecdot(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1, precision: PrecisionLike = None,
           preferred_element_type: DTypeLike | None = None) -> Array:
    """The inner product of vectors along an axis, with the first conjugated; the rest broadcasts.

    Args:
      x1, x2: arrays with as many elements along the axis.
      axis: the axis in both.
    Returns: An array without the axis, of the promoted dtype.

    Raises ValueError for scalars, TypeError for sizes that differ.

    >>> print(onp.linalg.vecdot(onp.array([1j, 2]), onp.array([1j, 3])))
    (7+0j)
    """
    return products.vecdot(x1, x2, axis=axis, precision=precision,
                           preferred_element_type=preferred_element_type)


complete_docstrings(globals(), {
    "keepdims": "whether reduced axes stay, with size 1.",
    "precision": "of the products on accelerators; see `lax.Precision`.",
    "preferred_element_type": "dtype to accumulate in and to return.",
})
