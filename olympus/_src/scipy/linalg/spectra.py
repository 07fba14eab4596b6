"""Eigenvalues of symmetric, Hermitian and tridiagonal matrices, and of pairs of matrices."""

from __future__ import annotations

from typing import Any

from ...base.typing import Array, ArrayLike
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.linalg import cholesky as lax_cholesky, eigh as lax_eigh
from ...lax.linalg.core import adjoint, matmul, tril
from ...lax.linalg.solve import triangular_solve
from ...numpy.creation import zeros
from ...numpy.promote import array_args, promote_dtypes, to_array
from ...types.shape import definitely_equal, maximum, static_int
from .arguments import bounds_of, options, places_of, precise, size_of, square


def eigh(a: ArrayLike, b: ArrayLike | None = None, lower: bool = True, eigvals_only: bool = False,
         overwrite_a: bool = False, overwrite_b: bool = False, turbo: bool = True,
         eigvals: tuple[int, int] | None = None, type: int = 1, check_finite: bool = True) -> Any:
    """Eigenvalues w and eigenvectors v of symmetric or Hermitian matrices: a v = v diag(w).

    Args:
      a: [..., n, n], read in one triangle; integers become floats.
      b: [..., n, n], positive definite, the other matrix of a generalised problem: a v = b v
        diag(w). It is reduced to an ordinary one by b's Cholesky factor.
      lower: read the lower triangles, else the upper ones.
      eigvals_only: return w alone.
      overwrite_a, overwrite_b, turbo, check_finite: SciPy's, without effect.
      eigvals: (first, last): return only these of the ascending eigenvalues, both included.
      type: of the generalised problem: 1: a v = b v w; 2: a b v = v w; 3: b a v = v w.
    Returns: (w[..., k], real and ascending; v[..., n, k], orthonormal columns, or for a generalised
      problem vᴴ b v = 1 for types 1 and 2, vᴴ b⁻¹ v = 1 for type 3), or w.

    Raises ValueError for matrices that are not square, another type and indices out of range.

    >>> w, v = olympus.scipy.linalg.eigh(onp.array([[2., 1.], [1., 2.]]))
    >>> print(onp.round(w, 4))
    [1. 3.]
    """
    options("eigh", "type", type, (1, 2, 3))
    subset = None
    if eigvals is not None:
        first, last = bounds_of("eigh", "eigvals", eigvals,
                                lambda value, what: static_int(value, what, "index"))
        subset = (first, last + 1)
    pairs = _eigh(a, b, lower=bool(lower), type=type, subset=subset)
    return pairs[0] if eigvals_only else pairs


def eigvalsh(a: ArrayLike, b: ArrayLike | None = None, *, lower: bool = True,
             overwrite_a: bool = False, overwrite_b: bool = False, type: int = 1,
             check_finite: bool = True) -> Array:
    """The eigenvalues of symmetric or Hermitian matrices: `eigh` without the vectors.

    Args:
      a, b: as for `eigh`.
      lower: read the lower triangles, else the upper ones.
      overwrite_a, overwrite_b, check_finite: SciPy's, without effect.
      type: of the generalised problem, as for `eigh`.
    Returns: [..., n], real and ascending.

    >>> print(onp.round(olympus.scipy.linalg.eigvalsh(onp.array([[2., 1.], [1., 2.]])), 4))
    [1. 3.]
    """
    return eigh(a, b, lower, True, type=type)


@fused(static=("lower", "type", "subset"))
def _eigh(a: ArrayLike, b: ArrayLike | None, *, lower: bool, type: int,
          subset: tuple[int, int] | None) -> tuple[Array, Array]:
    if b is None:
        (x,) = square("eigh", a)
        v, w = lax_eigh.eigh(x, lower=lower, symmetrize_input=False, subset_by_index=subset)
        return w, v
    x, y = square("eigh", a, b)
    if not definitely_equal(typeof(x).shape[-1], typeof(y).shape[-1]):
        raise ValueError(f"eigh: {typeof(x)} and {typeof(y)} given; matrices of one size are "
                         "required.")
    if not lower:
        x, y = adjoint(x), adjoint(y)
    c = lax_cholesky.cholesky(y, symmetrize_input=False)
    x = tril(x) + adjoint(tril(x, -1))

    def divided(z: Array, adjoined: bool) -> Array:
        return triangular_solve(c, z, left_side=True, lower=True, transpose_a=adjoined,
                                conjugate_a=adjoined)

    if type == 1:
        inner = divided(adjoint(divided(x, False)), False)
    else:
        inner = matmul(adjoint(c), matmul(x, c))
    v, w = lax_eigh.eigh(inner, subset_by_index=subset)
    return w, matmul(c, v) if type == 3 else divided(v, True)


def eigh_tridiagonal(d: ArrayLike, e: ArrayLike, *, eigvals_only: bool = False,
                     select: str = "a", select_range: tuple[float, float] | None = None,
                     tol: float | None = None, key: object = None) -> Any:
    """Eigenvalues and eigenvectors of a symmetric or Hermitian tridiagonal matrix.

    It is decomposed as a dense matrix, by LAPACK: all eigenvalues are computed whatever is
    selected.

    Args:
      d: [n], the diagonal, real.
      e: [n - 1], the diagonal above; the one below is its conjugate.
      eigvals_only: return the eigenvalues alone.
      select: "a": all; "i": eigenvalues of indices `select_range`, both included; "v": those in the
        half-open interval (lowest, highest], whose number depends on values: not under jit.
        select_range: the pair that "i" and "v" need.
      tol, key: of other algorithms; without effect.
    Returns: (w[k], real and ascending; v[n, k], orthonormal columns), or w.

    Raises ValueError for sizes that do not fit, an unknown `select`, and a range that is missing.

    >>> w = olympus.scipy.linalg.eigh_tridiagonal(onp.array([2., 2.]), onp.array([1.]),
    ...                                           eigvals_only=True)
    >>> print(onp.round(w, 4))
    [1. 3.]
    """
    kinds = {"a": "a", "all": "a", 0: "a", "v": "v", "value": "v", 1: "v", "i": "i", "index": "i",
            2: "i"}
    kind = kinds[options("eigh_tridiagonal", "select", select, kinds)]
    if kind != "a" and select_range is None:
        raise ValueError(f"eigh_tridiagonal: select {select!r} given without select_range; a pair "
                         "is required.")
    subset = None
    if kind == "i":
        first, last = bounds_of("eigh_tridiagonal", "select_range", select_range,
                                lambda value, what: static_int(value, what, "index"))
        subset = (first, last + 1)
    w, v = _tridiagonal(d, e, subset=subset)
    if kind == "v":
        low, high = bounds_of("eigh_tridiagonal", "select_range", select_range)
        inside = (w > low) & (w <= high)
        w, v = w[inside], v[:, inside]
    return w if eigvals_only else (w, v)


def eigvalsh_tridiagonal(d: ArrayLike, e: ArrayLike, select: str = "a",
                         select_range: tuple[float, float] | None = None,
                         check_finite: bool = True, tol: float = 0.0, lapack_driver: str = "auto"
                         ) -> Array:
    """The eigenvalues of a symmetric or Hermitian tridiagonal matrix: see `eigh_tridiagonal`.

    Args:
      d: [n], the diagonal, real.
      e: [n - 1], the diagonal above.
      select, select_range: which eigenvalues, as for `eigh_tridiagonal`.
      check_finite, tol, lapack_driver: SciPy's, without effect.
    Returns: [k], real and ascending.

    >>> w = olympus.scipy.linalg.eigvalsh_tridiagonal(onp.array([2., 2.]), onp.array([1.]))
    >>> print(onp.round(w, 4))
    [1. 3.]
    """
    return eigh_tridiagonal(d, e, eigvals_only=True, select=select, select_range=select_range)


@fused(static=("subset",))
def _tridiagonal(d: ArrayLike, e: ArrayLike, *, subset: tuple[int, int] | None
                 ) -> tuple[Array, Array]:
    name = "eigh_tridiagonal"
    d, e = [precise(to_array(x)) for x in promote_dtypes(name, *array_args(name, d, e),
                                                         inexact=True)]
    if typeof(d).ndim != 1 or typeof(e).ndim != 1 or (
            not definitely_equal(size_of(e), maximum(size_of(d) - 1, 0))):
        raise ValueError(f"{name}: {typeof(d)} and {typeof(e)} given; a diagonal of n numbers and "
                         "one of n - 1 beside it are required; map over batches with vmap.")
    n = size_of(d)
    rows = places_of(d)
    x = zeros((n, n), d.dtype).at[rows, rows].set(d.real)
    x = x.at[rows[1:], rows[:-1]].set(e.conj())
    v, w = lax_eigh.eigh(x, symmetrize_input=False, subset_by_index=subset)
    return w, v
