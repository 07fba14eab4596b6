"""Ranges and null spaces: pseudo-inverses, least squares, bases and angles between subspaces."""

from __future__ import annotations

from typing import Any

from ...base.docstrings import described_like
from ...base.typing import Array, ArrayLike
from ...base.util import real_number
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.barriers import stop_gradient
from ...lax.linalg.core import adjoint, matmul
from ...lax.linalg.svd import svd
from ...numpy import reductions
from ...numpy.creation import asarray
from ...numpy.linalg import decompositions
from ...numpy.promote import array_args, promote_dtypes, to_array
from ...numpy.selection import where
from ...numpy.trigonometry import arctan2
from ...types import dtypes
from ...types.shape import definitely_equal
from .arguments import matrices, number, places_of, size_of, square
from .systems import mirrored

# Pseudo-inverses ---------------------------------------------------------------------------------

def _precision(a: ArrayLike) -> float:
    return float(dtypes.finfo(typeof(a).dtype).eps)


def _cutoff(a: Array, rtol: ArrayLike | None) -> ArrayLike:
    """Up to which part of the largest one singular values count as zero."""
    return max(typeof(a).shape[-2:]) * _precision(a) if rtol is None else rtol


def _pseudo_inverse(a: Array, atol: ArrayLike | None, rtol: ArrayLike | None, return_rank: bool,
                    hermitian: bool) -> Array | tuple[Array, Array]:
    """The pseudo-inverse by `olympus.numpy.linalg.pinv`, whose tolerance is relative."""
    cutoff = _cutoff(a, rtol)
    if atol is None and not return_rank:
        return decompositions.pinv(a, cutoff, hermitian)
    values = decompositions.svdvals(stop_gradient(a))
    if atol is not None:
        least = number("pinvh" if hermitian else "pinv", atol)
        cutoff = cutoff + least / reductions.max(values, -1, initial=0)
    inverse = decompositions.pinv(a, cutoff, hermitian)
    if not return_rank:
        return inverse
    largest = reductions.max(values, -1, keepdims=True, initial=0)
    large = values > asarray(cutoff, values.dtype)[..., None] * largest
    return inverse, reductions.sum(large, -1)


@fused(static=("return_rank", "check_finite"))
def pinv(a: ArrayLike, *, atol: ArrayLike | None = None, rtol: ArrayLike | None = None,
         return_rank: bool = False, check_finite: bool = True) -> Any:
    """The pseudo-inverse of Moore and Penrose.

    Args:
      a: [..., m, n]; integers become floats.
      atol, rtol: singular values up to atol + rtol times the largest count as zero: numbers, or
        arrays of shape [...]; 0 and max(m, n) times the precision of the dtype unless given.
      return_rank: return the rank, too.
      check_finite: SciPy's, without effect.
    Returns: [..., n, m], or (that, the ranks[...]). The derivative is that along matrices of the
      same rank.

    >>> print(olympus.scipy.linalg.pinv(onp.array([[2., 0.], [0., 0.]])))
    [[0.5 0. ]
     [0.  0. ]]
    """
    return _pseudo_inverse(matrices("pinv", a)[0], atol, rtol, return_rank, False)


@fused(static=("lower", "return_rank", "check_finite"))
def pinvh(a: ArrayLike, atol: ArrayLike | None = None, rtol: ArrayLike | None = None,
          lower: bool = True, return_rank: bool = False, check_finite: bool = True) -> Any:
    """The pseudo-inverse of a symmetric or Hermitian matrix, from its eigenvalues.

    Args:
      a: [..., n, n], read in one triangle; integers become floats.
      atol, rtol: eigenvalues up to atol + rtol times the largest, in magnitude, count as zero; 0
        and n times the precision of the dtype unless given.
      lower: read the lower triangle, else the upper one.
      return_rank: return the rank, too.
      check_finite: SciPy's, without effect.
    Returns: [..., n, n], or (that, the ranks[...]).

    >>> print(olympus.scipy.linalg.pinvh(onp.array([[2., 9.], [0., 0.]])))
    [[0.5 0. ]
     [0.  0. ]]
    """
    (a,) = square("pinvh", a)
    return _pseudo_inverse(mirrored(a, lower, True), atol, rtol, return_rank, True)


def lstsq(a: ArrayLike, b: ArrayLike, cond: float | None = None, overwrite_a: bool = False,
          overwrite_b: bool = False, check_finite: bool = True, lapack_driver: str | None = None
          ) -> tuple[Array, Array, Array, Array]:
    """The least-squares solution of a x = b: the x of least norm among the minimisers of |b - a x|.

    Args:
      a: [m, n]; integers become floats.
      b: [m] or [m, k].
      cond: singular values up to cond times the largest count as zero; the precision of the dtype
        unless given.
      overwrite_a, overwrite_b, check_finite, lapack_driver: SciPy's, without effect.
    Returns: (x[n] or [n, k]; residues[] or [k], the squared norms of b - a x; rank of a; singular
      values[min(m, n)] of a). SciPy has no residues where the rank is below n or m is not above it;
      here they are always there, so that shapes depend on no values.

    Raises TypeError for other ranks, ValueError if a and b have different numbers of rows.

    >>> a = onp.array([[1., 0.], [1., 1.], [1., 2.]])
    >>> x, residues, rank, _ = olympus.scipy.linalg.lstsq(a, onp.array([0., 1., 5.]))
    >>> print(x.round(4), residues.round(4), rank)
    [-0.5  2.5] 1.5 2
    """
    x, y = promote_dtypes("lstsq", *array_args("lstsq", a, b), inexact=True)
    least = _precision(x) if cond is None else cond
    solution, residues, rank, values = decompositions.lstsq(x, y, least)
    return solution, residues if typeof(y).ndim > 1 else residues[0], rank, values


# Bases -------------------------------------------------------------------------------------------

def _basis(name: str, a: ArrayLike, rcond: object, null: bool) -> tuple[Array, Array]:
    """The matrix, and an orthonormal basis of its range, or null space, that has no derivative."""
    (a,) = matrices(name, a)
    if typeof(a).ndim != 2:
        raise ValueError(f"{name}: {typeof(a)} given; one matrix is required, as ranks differ "
                         "within a batch.")
    u, values, vh = svd(stop_gradient(a), full_matrices=null)
    least = max(typeof(a).shape) * _precision(a) if rcond is None else real_number(
        rcond, f"{name}: rcond")
    largest = reductions.max(values, initial=0)
    rank = int(reductions.sum(values > least * largest))
    return a, adjoint(vh[rank:]) if null else u[:, :rank]


def null_space(A: ArrayLike, rcond: float | None = None, *, overwrite_a: bool = False,
               check_finite: bool = True, lapack_driver: str = "gesdd") -> Array:
    """An orthonormal basis of the vectors that a matrix maps to zero.

    The basis moves as little as possible in derivatives: at right angles to the null space.

    Args:
      A: [m, n]; integers become floats.
      rcond: singular values up to rcond times the largest count as zero; max(m, n) times the
        precision of the dtype unless given.
      overwrite_a, check_finite, lapack_driver: SciPy's, without effect.
    Returns: [n, n - rank]: as the rank depends on values, it does not run under jit.

    >>> print(abs(olympus.scipy.linalg.null_space(onp.array([[1., 1.]]))).round(3))
    [[0.707]
     [0.707]]
    """
    a, basis = _basis("null_space", A, rcond, True)
    return basis - matmul(_inverse_on_range(a, rcond), matmul(a, basis))


@described_like(null_space)
def orth(A: ArrayLike, rcond: float | None = None) -> Array:
    """An orthonormal basis of the range of a matrix.

    The basis moves as little as possible in derivatives: at right angles to the range.

    Returns: [m, rank]: as the rank depends on values, it does not run under jit.

    >>> print(abs(olympus.scipy.linalg.orth(onp.array([[3., 3.], [4., 4.]]))).round(3))
    [[0.6]
     [0.8]]
    """
    a, basis = _basis("orth", A, rcond, False)
    return matmul(a, matmul(_inverse_on_range(a, rcond), basis))


def _inverse_on_range(a: Array, rcond: float | None) -> Array:
    return decompositions.pinv(a, _cutoff(a, rcond), False)


def subspace_angles(A: ArrayLike, B: ArrayLike) -> Array:
    """The principal angles between the ranges of two matrices, the largest first.

    Knyazev and Argentati, "Principal angles between subspaces in an A-based scalar product", 2002:
    sines and cosines are both computed, so that small angles keep their digits.

    Args: A, B: [n, p] and [n, q]; integers become floats.
    Returns: [min(p, q)], or fewer where columns depend on others: in radians, from 0 to π/2. Ranks
      depend on values, so it does not run under jit.

    Raises ValueError for different numbers of rows.

    >>> a, b = onp.array([[1.], [0.]]), onp.array([[1.], [1.]])
    >>> print(olympus.scipy.linalg.subspace_angles(a, b).round(4))
    [0.7854]
    """
    a, b = matrices("subspace_angles", A, B)
    if not definitely_equal(typeof(a).shape[-2], typeof(b).shape[-2]):
        raise ValueError(f"subspace_angles: {typeof(a)} and {typeof(b)} given; equal numbers of "
                         "rows are required.")
    p, q = orth(a), orth(b)
    if size_of(p) < size_of(q):
        p, q = q, p
    products = matmul(adjoint(p), q)
    sines = decompositions.svdvals(q - matmul(p, products))
    cosines = decompositions.svdvals(products)
    count = size_of(q)
    return arctan2(sines[:count], cosines[:count][::-1])


# Elements ----------------------------------------------------------------------------------------

@fused
def khatri_rao(a: ArrayLike, b: ArrayLike) -> Array:
    """The Kronecker products of corresponding columns of two matrices.

    Args: a, b: [..., n, k] and [..., m, k] of any dtypes; leading axes broadcast.
    Returns: [..., n * m, k] of the promoted dtype.

    Raises ValueError for fewer than two axes and different numbers of columns.

    >>> print(olympus.scipy.linalg.khatri_rao(onp.array([[1, 2], [3, 4]]), onp.array([[1, 10]])))
    [[ 1 20]
     [ 3 40]]
    """
    x, y = [to_array(z) for z in promote_dtypes("khatri_rao", *array_args("khatri_rao", a, b))]
    if min(typeof(x).ndim, typeof(y).ndim) < 2 or not definitely_equal(
            typeof(x).shape[-1], typeof(y).shape[-1]):
        raise ValueError(f"khatri_rao: {typeof(x)} and {typeof(y)} given; matrices of as many "
                         "columns are required.")
    out = x[..., :, None, :] * y[..., None, :, :]
    shape = typeof(out).shape
    return out.reshape((*shape[:-3], size_of(x, -2) * size_of(y, -2), shape[-1]))


@fused
def bandwidth(a: ArrayLike) -> tuple[Array, Array]:
    """The numbers of diagonals below and above the main one that are not zero.

    Args: a: [..., m, n].
    Returns: (lower[...], upper[...]), arrays of integers: 0 for a diagonal matrix.

    Raises ValueError for fewer than two axes.

    >>> lower, upper = olympus.scipy.linalg.bandwidth(onp.array([[1, 2, 3], [4, 5, 0], [0, 0, 6]]))
    >>> print(lower, upper)
    1 2
    """
    x = to_array(array_args("bandwidth", a)[0])
    if typeof(x).ndim < 2:
        raise ValueError(f"bandwidth: {typeof(x)} given; matrices [..., m, n] are required.")
    below = places_of(x, -2)[:, None] - places_of(x)
    far = [where(x != 0, asarray(steps, dtypes.default_int()), 0) for steps in (below, -below)]
    lower, upper = [reductions.max(steps, (-2, -1), initial=0) for steps in far]
    return lower, upper
