"""`olympus.numpy.linalg`: eigenvalues, singular values, and functions of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple, overload

import numpy as np

from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike
from ...base.util import also_named, real_number
from ...core.trace import typeof
from ...custom.jvp import custom_jvp
from ...jit.fused import fused
from ...lax import arithmetic
from ...lax.comparison import select
from ...lax.creation import full_like
from ...lax.linalg import cholesky as lax_cholesky, eig as lax_eig, eigh as lax_eigh, svd as lax_svd
from ...lax.linalg.core import adjoint, diagonal, eye, matmul
from ...lax.linalg.spectra import check_subset, left_divided, subset
from ...types import dtypes
from ...types.shape import definitely_equal, less, maximum, minimum
from .. import reductions
from ..arithmetic import divide, greater, multiply, not_equal
from ..creation import zeros
from ..elementary import isnan
from ..indexing import take_along_axis
from ..logic import logical_not, logical_or
from ..manipulation import astype, expand_dims, flip
from ..promote import array_args, broadcast_to, inexact, promote_dtypes
from ..selection import where
from ..sorting import argsort
from .norms import norm


class EigResult(NamedTuple):
    """The result of `eig`."""

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """The result of `eigh`."""

    eigenvalues: Array
    eigenvectors: Array


class SVDResult(NamedTuple):
    """The result of `svd`."""

    U: Array
    S: Array
    Vh: Array


def _matrices(name: str, x: ArrayLike) -> Array:
    """x as an inexact array of two axes at least."""
    a = inexact(array_args(name, x)[0])
    if typeof(a).ndim < 2:
        raise ValueError(f"{name}: {typeof(a)} given; a matrix, or a batch of them, is required.")
    return a


def _triangle(name: str, uplo: str | None) -> bool:
    """Whether the lower triangle is meant."""
    if uplo not in (None, "L", "U"):
        raise ValueError(f"{name}: UPLO {uplo!r} given; 'L' or 'U' is required.")
    return uplo != "U"


# Eigenvalues -------------------------------------------------------------------------------------

def eig(a: ArrayLike) -> EigResult:
    """Eigenvalues w and right eigenvectors v of general matrices: a v = v diag(w).

    Returns:
      (eigenvalues[..., n], eigenvectors[..., n, n]), complex whatever a's dtype, in no order.

    The eigenvectors have no derivative: see `olympus.lax.linalg.eig`, which can give one.

    >>> onp.linalg.eig(onp.array([[0., 1.], [-1., 0.]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    w, v = lax_eig.eig(_matrices("eig", a), compute_left_eigenvectors=False)
    return EigResult(w, v)


def eigvals(a: ArrayLike) -> Array:
    """The eigenvalues of general matrices.

    Returns: [..., n], complex whatever a's dtype (NumPy's are real where all are), in no order.

    Raises ValueError unless the matrices are square.

    >>> print(onp.linalg.eigvals(onp.array([[0., 1.], [-1., 0.]])))
    [0.+1.j 0.-1.j]
    """
    return lax_eig.eig(_matrices("eigvals", a), compute_left_eigenvectors=False,
                       compute_right_eigenvectors=False)[0]


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues w and eigenvectors v of symmetric or Hermitian matrices: a v = v diag(w).

    Args:
      UPLO: which triangle is read: "L" (unless given) or "U".
      symmetrize_input: decompose (a + aᴴ)/2 instead of reading one triangle.

    Returns:
      (eigenvalues[..., n], real and ascending, eigenvectors[..., n, n], orthonormal columns).

    >>> w, v = onp.linalg.eigh(onp.array([[2., 1.], [1., 2.]]))
    >>> print(onp.round(w, 4))
    [1. 3.]
    """
    lower = _triangle("eigh", UPLO)
    v, w = lax_eigh.eigh(_matrices("eigh", a), lower=lower, symmetrize_input=symmetrize_input)
    return EighResult(w, v)


def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """The eigenvalues of symmetric or Hermitian matrices.

    Args:
      UPLO: which triangle is read: "L" (unless given) or "U".
      symmetrize_input: take (a + aᴴ)/2 instead of reading one triangle.
    Returns: [..., n], real and ascending.

    >>> print(onp.round(onp.linalg.eigvalsh(onp.array([[2., 1.], [1., 2.]])), 4))
    [1. 3.]
    """
    lower = _triangle("eigvalsh", UPLO)
    return lax_eigh.eigh(_matrices("eigvalsh", a), lower=lower,
                         symmetrize_input=symmetrize_input)[1]


# Singular values ---------------------------------------------------------------------------------

@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: Literal[True] = True,
        hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> SVDResult: ...


@overload
def svd(a: ArrayLike, full_matrices: bool = True, *, compute_uv: Literal[False],
        hermitian: bool = False, subset_by_index: tuple[int, int] | None = None) -> Array: ...


@overload
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
        subset_by_index: tuple[int, int] | None = None) -> Array | SVDResult: ...


@fused(static=("full_matrices", "compute_uv", "hermitian", "subset_by_index"))
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False,
        subset_by_index: tuple[int, int] | None = None) -> Array | SVDResult:
    """Singular value decomposition a = U diag(S) Vh.

    Args:
      a: [..., m, n]; integers become floats. k = min(m, n).
      full_matrices: U[..., m, m] and Vh[..., n, n], else U[..., m, k] and Vh[..., k, n].
      compute_uv: return U and Vh, not only S.
      hermitian: a is symmetric or Hermitian: its eigenvalues are computed instead.
      subset_by_index: (start, end): only the singular values start to end-1; not with
        full_matrices unless that is all.
    Returns: (U, S[..., k], Vh), S real and descending; or S.

    >>> onp.linalg.svd(onp.array([[3., 0.], [0., 4.]])).S
    Array([4., 3.], dtype=float32)
    """
    x = _matrices("svd", a)
    if not hermitian:
        if not compute_uv:
            return lax_svd.svd(x, full_matrices=full_matrices, compute_uv=False,
                               subset_by_index=subset_by_index)
        return SVDResult(*lax_svd.svd(x, full_matrices=full_matrices,
                                      subset_by_index=subset_by_index))
    u, s, vh = _hermitian_svd(x)
    axis = typeof(s).ndim - 1
    bounds = check_subset("svd", subset_by_index, typeof(s).shape[-1])
    s = subset(s, bounds, axis)
    if not compute_uv:
        return s
    return SVDResult(subset(u, bounds, axis + 1), s, subset(vh, bounds, axis))


def _hermitian_svd(x: Array) -> tuple[Array, Array, Array]:
    """From a = v diag(w) vᴴ: singular values |w|, descending, and vectors v, v sign(w)."""
    v, w = lax_eigh.eigh(x)
    s = arithmetic.abs(w)
    order = flip(argsort(s, axis=-1), -1)
    at = order[..., None, :]
    u = take_along_axis(v, at, -1)
    sign = take_along_axis(arithmetic.sign(w), order, -1)[..., None, :]
    return u, take_along_axis(s, order, -1), adjoint(multiply(u, sign))


@fused
def svdvals(x: ArrayLike, /) -> Array:
    """The singular values of matrices.

    Args: x: [..., m, n]; integers become floats.
    Returns: [..., min(m, n)], real and descending.

    >>> print(onp.linalg.svdvals(onp.array([[3., 0.], [0., 4.]])))
    [4. 3.]
    """
    return lax_svd.svd(_matrices("svdvals", x), compute_uv=False)


# Pseudo-inverses ---------------------------------------------------------------------------------

def _pseudo(a: Array, cutoff: Array, hermitian: bool) -> tuple[Array, Array]:
    """The pseudo-inverse of a[..., m, n], and all singular values.

    Singular values up to cutoff[...] times the largest count as zero.
    """
    if hermitian:
        u, s, vh = _hermitian_svd(a)
    else:
        u, s, vh = lax_svd.svd(a, full_matrices=False)
    large = _large(s, cutoff)
    inverse = select(large, 1.0 / select(large, s, full_like(s, 1)), s * 0.0)
    return matmul(multiply(adjoint(vh), inverse[..., None, :]), adjoint(u)), s


def _large(s: Array, cutoff: Array) -> Array:
    """Which singular values count; none of a matrix of zeros."""
    return s > multiply(s[..., :1], cutoff[..., None])


_pseudo_inverse = custom_jvp(_pseudo, nondiff_argnums=(2,))


@_pseudo_inverse.defjvp
def _pseudo_inverse_jvp(hermitian: bool, primals: Sequence[Array], tangents: Sequence[Array]
                        ) -> tuple[tuple[Array, Array], tuple[Array, Array]]:
    """For matrices near a of the same rank: Golub and Pereyra, "The differentiation of
    pseudo-inverses and nonlinear least squares problems whose variables separate", 1973.

    It divides by no gaps between singular values, unlike the derivatives of `svd`.
    """
    (a, cutoff), (t, _) = primals, tangents
    p, s = _pseudo_inverse(a, cutoff, hermitian)
    ph, th = adjoint(p), adjoint(t)
    left, right = matmul(matmul(p, ph), th), matmul(th, matmul(ph, p))
    out = left - matmul(matmul(left, a), p) - matmul(p, matmul(t, p))
    out = out + (right - matmul(p, matmul(a, right)))
    u, _, vh = _hermitian_svd(a) if hermitian else lax_svd.svd(a, full_matrices=False)
    rates = diagonal(matmul(adjoint(u), matmul(t, adjoint(vh))))
    return (p, s), (out, arithmetic.real(rates) if rates.dtype.kind == "c" else rates)


@fused(static=("hermitian",))
def pinv(a: ArrayLike, rtol: ArrayLike | None = None, hermitian: bool = False, *,
         rcond: ArrayLike | None = None) -> Array:
    """The pseudo-inverse of Moore and Penrose.

    Args:
      a: [..., m, n]; integers become floats.
      rtol: singular values up to rtol times the largest count as zero: a number, or an array of
        shape [...]. 10 max(m, n) times the precision of the dtype, unless given.
      hermitian: a is symmetric or Hermitian: its eigenvalues are computed instead.
      rcond: another name of rtol.
    Returns: [..., n, m]. Its derivative is that along matrices of the same rank.

    Raises ValueError if both rtol and rcond are given.

    >>> print(onp.linalg.pinv(onp.array([[2., 0.], [0., 0.]])))
    [[0.5 0. ]
     [0.  0. ]]
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: rtol and rcond given; they are names of one argument; pass rtol.")
    x = _matrices("pinv", a)
    aval = typeof(x)
    if aval.size == 0:
        return zeros((*aval.shape[:-2], aval.shape[-1], aval.shape[-2]), aval.dtype)
    if hermitian:
        x = lax_cholesky.symmetrize(lax_eigh.eigh_p, x)
    cutoff = _relative("pinv", x, rtol if rcond is None else rcond, 10)
    return _pseudo_inverse(x, broadcast_to(cutoff, aval.shape[:-2]), bool(hermitian))[0]


def _relative(name: str, x: Array, tolerance: ArrayLike | None, factor: int) -> Array:
    """A tolerance relative to the largest singular value, as an array of the real dtype."""
    aval = typeof(x)
    dtype = dtypes.to_real_dtype(aval.dtype)
    if tolerance is None:
        tolerance = factor * maximum(*aval.shape[-2:]) * float(dtypes.finfo(dtype).eps)
    return astype(array_args(name, tolerance)[0], dtype)


def lstsq(a: ArrayLike, b: ArrayLike, rcond: float | None = None, *,
          numpy_resid: bool = False) -> tuple[Array, Array, Array, Array]:
    """The least-squares solution of a x = b: the x of least norm among the minimisers of |b - a x|.

    Args:
      a: [m, n]; integers become floats.
      b: [m] or [m, k].
      rcond: singular values up to rcond times the largest count as zero; max(m, n) times the
        precision of the dtype unless given, and that precision if negative.
      numpy_resid: return no residuals where NumPy returns none (a of rank below n, or m <= n).
        That depends on a's values, so it cannot be traced.
    Returns: (x[n] or [n, k]; residuals[1] or [k], the squared norms of b - a x; rank of a; singular
      values[min(m, n)] of a). The derivative is that along matrices a of the same rank.

    Raises TypeError for other ranks, ValueError if a and b have different numbers of rows.

    >>> x, *_ = onp.linalg.lstsq(onp.array([[1., 0.], [1., 1.], [1., 2.]]), onp.array([0., 1., 2.]))
    >>> print(onp.allclose(x, onp.array([0., 1.]), atol=1e-5))
    True
    """
    operands = array_args("lstsq", a, b)
    x, y = promote_dtypes("lstsq", *operands, inexact=True)
    if typeof(x).ndim != 2 or typeof(y).ndim not in (1, 2):
        raise TypeError(f"lstsq: {typeof(x)} and {typeof(y)} given; a matrix a, and a vector or "
                        "matrix b are required; use vmap for batches.")
    if not definitely_equal(typeof(x).shape[0], typeof(y).shape[0]):
        raise ValueError(f"lstsq: {typeof(x)} and {typeof(y)} given; equal numbers of rows are "
                         "required.")
    rcond = None if rcond is None else real_number(rcond, "lstsq: rcond")
    solution, residuals, rank, s = _least_squares(x, y, rcond)
    m, n = typeof(x).shape
    if numpy_resid and (not less(n, m) or less(int(rank), n)):
        residuals = zeros((0,), typeof(residuals).dtype)
    return solution, residuals, rank, s


@fused(static=("rcond",))
def _least_squares(a: Array, b: Array, rcond: float | None) -> tuple[Array, Array, Array, Array]:
    m, n = typeof(a).shape
    right = b if typeof(b).ndim == 2 else b[:, None]
    real = dtypes.to_real_dtype(typeof(a).dtype)
    if minimum(m, n) == 0:
        inverse, s = zeros((n, m), typeof(a).dtype), zeros((0,), real)
        rank = zeros((), dtypes.default_int())
    else:
        if rcond is not None and rcond < 0:
            rcond = float(dtypes.finfo(real).eps)
        cutoff = _relative("lstsq", a, rcond, 1)
        inverse, s = _pseudo_inverse(a, cutoff, False)
        rank = reductions.sum(_large(s, cutoff))
    x = matmul(inverse, right)
    size = arithmetic.abs(right - matmul(a, x))
    residuals = reductions.sum(size * size, 0)
    return (x if typeof(b).ndim == 2 else x[:, 0]), residuals, rank, s


@also_named(A="M")
@fused(static=("hermitian",))
def matrix_rank(M: ArrayLike, rtol: ArrayLike | None = None, *, hermitian: bool = False,
                tol: ArrayLike | None = None) -> Array:
    """The number of singular values that are not negligible.

    Args:
      M: [..., m, n]; of an array of fewer axes the rank is 1 unless all of it is zero, then 0.
        The name may be A, which is NumPy's.
      rtol: the negligible size, relative to the largest singular value; a number, or an array of
        shape [...]. max(m, n) times the precision of the dtype, unless given.
      hermitian: M is symmetric or Hermitian: its eigenvalues are computed instead.
      tol: the negligible size, absolute.
    Returns: Integers of shape [...].

    Raises ValueError if both rtol and tol are given.

    >>> print(onp.linalg.matrix_rank(onp.ones((3, 3))))
    1
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: rtol and tol given; a tolerance is relative or absolute; "
                         "pass one of them.")
    x = inexact(array_args("matrix_rank", M)[0])
    array_args("matrix_rank", *[limit for limit in (rtol, tol) if limit is not None])
    aval = typeof(x)
    if dtypes.scalar_kind(aval.dtype) not in "fc":
        raise TypeError(f"matrix_rank: {aval} given; numbers are required.")
    if aval.ndim < 2:
        return astype(reductions.any(not_equal(x, 0)), dtypes.default_int())
    if aval.size == 0:
        return zeros(aval.shape[:-2], dtypes.default_int())
    s = arithmetic.abs(lax_eigh.eigh(x)[1]) if hermitian else lax_svd.svd(x, compute_uv=False)
    if tol is None:
        limit = multiply(reductions.max(s, -1), _relative("matrix_rank", x, rtol, 1))
    else:
        (limit,) = array_args("matrix_rank", tol)
    return reductions.sum(greater(s, expand_dims(limit, -1)), -1)


@fused(static=("p",))
def cond(x: ArrayLike, p: int | float | str | None = None) -> Array:
    """The condition number: the norm of a matrix times the norm of its inverse.

    Args:
      x: [..., m, n], square unless p is None, 2 or -2; integers become floats.
      p: the order of the norm, as for `norm`; None is 2.
    Returns: [...]: infinite for singular matrices, NaN only where x holds a NaN.

    Raises ValueError for fewer axes, matrices that are not square, and unknown orders.

    >>> print(onp.linalg.cond(onp.array([[4., 0.], [0., 2.]])))
    2.0
    """
    a = _matrices("cond", x)
    m, n = typeof(a).shape[-2:]
    if definitely_equal(m, 0) or definitely_equal(n, 0):
        raise ValueError(f"cond: input array must not be empty; got {typeof(a)}; an empty matrix "
                         "has no condition number.")
    if p in (None, 2, -2):
        s = lax_svd.svd(a, compute_uv=False)
        largest, smallest = s[..., 0], s[..., -1]
        out = divide(smallest, largest) if p == -2 else divide(largest, smallest)
    elif not definitely_equal(m, n):
        raise ValueError(f"cond: {typeof(a)} with order {p!r} given; a square matrix is required; "
                         "use order 2 or -2 for others.")
    else:
        out = multiply(norm(a, p, (-2, -1)), norm(left_divided(a, eye(a)), p, (-2, -1)))
    known = logical_or(logical_not(isnan(out)), reductions.any(isnan(a), (-2, -1)))
    return where(known, out, np.inf)


complete_docstrings(globals(), {
    "a": "[..., n, n]; integers become floats.",
})
