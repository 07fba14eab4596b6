"""Factorisations: Cholesky, LU, QR, singular values, polar, Schur and Hessenberg."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike
from ...base.util import real_number
from ...control_flow.while_loop import fori_loop
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.creation import iota
from ...lax.linalg import cholesky as lax_cholesky, lu as lax_lu, qr as lax_qr, svd as lax_svd
from ...lax.linalg.core import adjoint, eye, matmul, tril, triu
from ...lax.slicing import dynamic_slice, dynamic_slice_in_dim, dynamic_update_slice_in_dim
from ...matrix import hessenberg as reduction, schur as lax_schur
from ...matrix.polar import qdwh
from ...numpy import manipulation
from ...numpy.arithmetic import abs as absolute
from ...numpy.elementary import sqrt
from ...numpy.joining import stack
from ...numpy.padding import pad
from ...numpy.selection import where
from ...numpy.vectorize import vectorize
from ...types import dtypes
from ...types.shape import definitely_equal, known_less, less, minimum, static_int
from .arguments import matrices, options, places_of, size_of, square

# Cholesky ----------------------------------------------------------------------------------------

@fused(static=("lower", "overwrite_a", "check_finite"))
def cholesky(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
             check_finite: bool = True) -> Array:
    """The triangular factor of a positive definite matrix: a = Uᴴ U, or L Lᴴ.

    Args:
      a: [..., n, n], symmetric or Hermitian; one triangle is read. Integers become floats.
      lower: read the lower triangle and return L; else read the upper one and return U.
    Returns: [..., n, n]; NaN where a matrix is not positive definite, for which SciPy raises.

    Raises ValueError unless the matrices are square.

    >>> print(olympus.scipy.linalg.cholesky(onp.array([[4., 2.], [2., 5.]])))
    [[2. 1.]
     [0. 2.]]
    """
    (x,) = square("cholesky", a)
    factor = lax_cholesky.cholesky(x if lower else adjoint(x), symmetrize_input=False)
    return factor if lower else adjoint(factor)


def cho_factor(a: ArrayLike, lower: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> tuple[Array, bool]:
    """`cholesky`, in the form that `cho_solve` takes.

    Args:
      a: [..., n, n], symmetric or Hermitian and positive definite; one triangle is read.
      lower: which triangle.
    Returns: (the factor, lower). The other triangle is zero, where SciPy leaves a's.

    >>> print(olympus.scipy.linalg.cho_factor(onp.array([[4., 2.], [2., 5.]]))[0])
    [[2. 1.]
     [0. 2.]]
    """
    return cholesky(a, lower), lower


# LU ----------------------------------------------------------------------------------------------

@fused(static=("overwrite_a", "check_finite"))
def lu_factor(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
              ) -> tuple[Array, Array]:
    """The LU factorisation with partial pivoting, in the form that `lu_solve` takes.

    Args: a: [..., m, n]; integers become floats.
    Returns: (lu[..., m, n], U on and above the diagonal and L, without its ones, below; pivots
      int32[..., min(m, n)], at step i rows i and pivots[i] were exchanged).

    >>> lu, pivots = olympus.scipy.linalg.lu_factor(onp.array([[1., 2.], [4., 4.]]))
    >>> print(lu, pivots)
    [[4.   4.  ]
     [0.25 1.  ]] [1 1]
    """
    (x,) = matrices("lu_factor", a)
    factors, pivots, _ = lax_lu.lu(x)
    return factors, pivots


@fused(static=("permute_l", "overwrite_a", "check_finite", "p_indices"))
def lu(a: ArrayLike, permute_l: bool = False, overwrite_a: bool = False,
       check_finite: bool = True, p_indices: bool = False) -> tuple[Array, ...]:
    """The LU factorisation with partial pivoting: a = P L U.

    Args:
      permute_l: return (P L, U).
      p_indices: return P as int32[..., m]: a = L[P] U.
    Returns: (P[..., m, m], a permutation; L[..., m, k], lower triangular with ones on its diagonal;
      U[..., k, n], upper triangular).

    >>> p, l, u = olympus.scipy.linalg.lu(onp.array([[1., 2.], [4., 4.]]))
    >>> print(p @ l @ u)
    [[1. 2.]
     [4. 4.]]
    """
    (x,) = matrices("lu", a)
    factors, _, order = lax_lu.lu(x)
    m, n = typeof(x).shape[-2:]
    k = minimum(m, n)
    left = factors[..., :k]
    left = tril(left, -1) + eye(left)
    upper = triu(factors[..., :k, :])
    # Row order[i] of a is row i of L U.
    rows = iota(np.int32, m)
    back = order[..., None, :] == rows[:, None]
    if permute_l:
        return matmul(manipulation.astype(back, x.dtype), left), upper
    if p_indices:
        return (back * rows).sum(-1), left, upper
    return manipulation.astype(back, dtypes.to_real_dtype(x.dtype)), left, upper


# QR ----------------------------------------------------------------------------------------------

@fused(static=("overwrite_a", "lwork", "mode", "pivoting", "check_finite"))
def qr(a: ArrayLike, overwrite_a: bool = False, lwork: int | None = None, mode: str = "full",
       pivoting: bool = False, check_finite: bool = True) -> tuple[Any, ...]:
    """The factorisation a = Q R with orthonormal columns of Q and an upper triangular R.

    Args:
      overwrite_a, lwork, check_finite: SciPy's, without effect.
      mode: "full": Q[..., m, m] and R[..., m, n]; "economic": Q[..., m, k] and R[..., k, n]; "r":
        R[..., m, n] alone; "raw": ((LAPACK's reflectors[..., m, n], taus[..., k]), R[..., k, n]).
      pivoting: exchange columns so that R's diagonal descends: a[:, P] = Q R.
    Returns: (Q, R), (R,) or the raw form, and P: int32[..., n] behind them if `pivoting`.

    Raises ValueError for another mode, and for "raw" with pivoting.

    >>> q, r = olympus.scipy.linalg.qr(onp.ones((3, 2)), mode="economic")
    >>> print(onp.round(q @ r, 3)[0])
    [1. 1.]
    """
    (x,) = matrices("qr", a)
    options("qr", "mode", mode, ("full", "r", "economic", "raw"))
    if mode == "raw":
        if pivoting:
            raise ValueError("qr: mode 'raw' and pivoting given; one of them is possible; use mode "
                             "'economic'.")
        raw = lax_qr.geqrf(x)
        k = minimum(*typeof(x).shape[-2:])
        return raw, triu(raw[0][..., :k, :])
    factors = lax_qr.qr(x, pivoting=pivoting, full_matrices=mode != "economic")
    return tuple(factors[1:]) if mode == "r" else tuple(factors)


@fused(static=("mode", "pivoting", "conjugate", "overwrite_a", "overwrite_c"))
def qr_multiply(a: ArrayLike, c: ArrayLike, mode: str = "right", pivoting: bool = False,
                conjugate: bool = False, overwrite_a: bool = False, overwrite_c: bool = False
                ) -> tuple[Array, ...]:
    """The product of a matrix with the Q of another's QR factorisation.

    Args:
      a: [..., m, n], to be factored; k = min(m, n).
      c: what to multiply, a matrix, or a vector as a row or column: [..., p, m] for "right", [...,
        k, p] for "left".
      mode: "right": c Q; "left": Q c.
      pivoting: exchange columns as `qr` does.
      conjugate: multiply by the conjugate of Q.
      overwrite_a, overwrite_c: SciPy's, without effect.
    Returns: (c Q[..., p, k] or Q c[..., m, p], R[..., k, n]), and P if `pivoting`.

    Raises ValueError for another mode and sizes that do not fit.

    >>> product, r = olympus.scipy.linalg.qr_multiply(onp.eye(2), onp.array([[1., 2.]]))
    >>> print(abs(product))
    [[1. 2.]]
    """
    options("qr_multiply", "mode", mode, ("left", "right"))
    flat = typeof(c).ndim == 1
    x, y = matrices("qr_multiply", a, manipulation.expand_dims(c, 1 if mode == "left" else 0)
                    if flat else c)
    q, *rest = lax_qr.qr(x, pivoting=pivoting, full_matrices=False)
    q = q.conj() if conjugate else q
    inner = typeof(y).shape[-1 if mode == "right" else -2]
    wanted = typeof(q).shape[-2 if mode == "right" else -1]
    if not definitely_equal(inner, wanted):
        raise ValueError(f"qr_multiply: {typeof(x)} and c {typeof(y)} given, mode {mode!r}; c must "
                         f"have {wanted} {'columns' if mode == 'right' else 'rows'}, but it has "
                         f"{inner}.")
    product = y @ q if mode == "right" else q @ y
    return (product.squeeze(-1 if mode == "left" else -2) if flat else product), *rest


# Singular values ---------------------------------------------------------------------------------

@fused(static=("full_matrices", "compute_uv", "overwrite_a", "check_finite", "lapack_driver"))
def svd(a: ArrayLike, full_matrices: bool = True, compute_uv: bool = True,
        overwrite_a: bool = False, check_finite: bool = True, lapack_driver: str = "gesdd") -> Any:
    """The singular value decomposition a = U diag(s) Vh.

    Args:
      full_matrices: U[..., m, m] and Vh[..., n, n], else U[..., m, k] and Vh[..., k, n].
      compute_uv: return U and Vh, not only s.
      lapack_driver: "gesdd" (divide and conquer) or "gesvd" (QR iteration), where LAPACK computes.
    Returns: (U, s[..., k], Vh), s real and descending; or s.

    Raises ValueError for another driver.

    >>> print(olympus.scipy.linalg.svd(onp.array([[3., 0.], [0., 4.]]), compute_uv=False))
    [4. 3.]
    """
    (x,) = matrices("svd", a)
    options("svd", "lapack_driver", lapack_driver, ("gesdd", "gesvd"))
    # LAPACK's gesdd unless another is asked for: the default algorithm has kernels on every device.
    algorithm = lax_svd.SvdAlgorithm.QR if lapack_driver == "gesvd" else None
    out = lax_svd.svd(x, full_matrices=full_matrices, compute_uv=compute_uv, algorithm=algorithm)
    return tuple(out) if compute_uv else out


# Polar -------------------------------------------------------------------------------------------

@fused(static=("side", "method", "eps", "max_iterations"))
def polar(a: ArrayLike, side: str = "right", *, method: str = "qdwh", eps: float | None = None,
          max_iterations: int | None = None) -> tuple[Array, Array]:
    """The polar decomposition a = u p, or a = p u.

    Args:
      a: [..., m, n]; integers become floats.
      side: "right": a = u p with p[..., n, n]; "left": a = p u with p[..., m, m].
      method: "qdwh", an iteration that `olympus.lax.linalg.qdwh` describes, or "svd".
      eps, max_iterations: the precision and the bound of "qdwh".
    Returns: (u[..., m, n], with orthonormal columns, or rows if m < n; p, Hermitian and positive
      semidefinite).

    Raises ValueError for another side or method.

    >>> u, p = olympus.scipy.linalg.polar(onp.array([[0., -2.], [1., 0.]]))
    >>> print(onp.round(onp.diagonal(p), 4))
    [1. 2.]
    """
    (x,) = matrices("polar", a)
    options("polar", "side", side, ("right", "left"))
    options("polar", "method", method, ("qdwh", "svd"))
    m, n = typeof(x).shape[-2:]
    if method == "svd":
        left, s, right = lax_svd.svd(x, full_matrices=False)
        u = matmul(left, right)
        p = (matmul(adjoint(right) * s[..., None, :], right) if side == "right" else
             matmul(left * s[..., None, :], adjoint(left)))
        return u, p
    steps = max_iterations if max_iterations is None else static_int(
        max_iterations, "polar", "max_iterations")
    eps = eps if eps is None else real_number(eps, "polar: eps")
    wide = less(m, n)
    core = vectorize(lambda x: qdwh(x, eps=eps, max_iterations=steps)[:2],
                     signature="(m,n)->(m,n),(n,n)")
    u, p = core(adjoint(x) if wide else x)
    if wide:
        u = adjoint(u)
    if wide == (side == "left"):     # qdwh has found the factor of this side
        return u, p
    p = matmul(adjoint(u), x) if side == "right" else matmul(x, adjoint(u))
    return u, (p + adjoint(p)) / 2


# Schur and Hessenberg ----------------------------------------------------------------------------

@fused(static=("output",))
def schur(a: ArrayLike, output: str = "real") -> list[Array]:
    """The Schur decomposition a = Z T Zᴴ with a unitary Z and a triangular T.

    Args:
      a: [..., n, n]; integers become floats.
      output: "real": of a real matrix T is real, with blocks of two rows for pairs of complex
        eigenvalues; "complex": T is complex and triangular.
    Returns: [T, Z], [..., n, n] each. Derivatives are infinite or NaN where eigenvalues agree.

    Raises ValueError for another output.

    >>> t, z = olympus.scipy.linalg.schur(onp.array([[1., 2.], [0., 3.]]))
    >>> print(t)
    [[1. 2.]
     [0. 3.]]
    """
    (x,) = square("schur", a)
    options("schur", "output", output, ("real", "complex", "r", "c"))
    if output in ("complex", "c"):
        x = manipulation.astype(x, dtypes.to_complex_dtype(x.dtype))
    return lax_schur.schur(x)


@fused(static=("check_finite",))
def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Convert a real Schur form to the complex one; Z T Zᴴ stays the same.

    Args:
      T: [..., n, n], real and block upper triangular with blocks of at most two rows.
      Z: [..., n, n], orthogonal.
      check_finite: SciPy's, without effect.
    Returns: (T, Z), complex, T upper triangular.

    >>> t, z = olympus.scipy.linalg.schur(onp.array([[0., -1.], [1., 0.]]))
    >>> print(onp.round(onp.diagonal(olympus.scipy.linalg.rsf2csf(t, z)[0]), 3))
    [0.+1.j 0.-1.j]
    """
    t, z = square("rsf2csf", T, Z)
    if not definitely_equal(typeof(t).shape[-1], typeof(z).shape[-1]):
        raise ValueError(f"rsf2csf: T {typeof(t)} and Z {typeof(z)} given; matrices of one size "
                         "are required.")
    dtype = dtypes.to_complex_dtype(t.dtype)
    t, z = [manipulation.astype(x, dtype) for x in (t, z)]
    n = typeof(t).shape[-1]
    if known_less(n, 2):
        return t, z
    if known_less(1, n):
        return _triangular(t, z)
    # One row and column of zeros more: a symbolic size may be 1.
    t, z = [pad(x, [(0, 0)] * (typeof(x).ndim - 2) + [(0, 1)] * 2) for x in (t, z)]
    t, z = _triangular(t, z)
    return t[..., :n, :n], z[..., :n, :n]


@partial(vectorize, signature="(n,n),(n,n)->(n,n),(n,n)")
def _triangular(t: Array, z: Array) -> tuple[Array, Array]:
    """A rotation for each element below the diagonal, from the last one on, as SciPy has them."""
    n, indices = typeof(t).shape[0], places_of(t)
    least = dtypes.finfo(t.dtype).eps

    def rotate(i: Array, state: tuple[Array, Array]) -> tuple[Array, Array]:
        t, z = state
        m = n - 1 - i       # of the block's second row
        (a, b), (c, d) = dynamic_slice(t, (m - 1, m - 1), (2, 2))
        coupled = absolute(c) > least * (absolute(a) + absolute(d))
        half = (a - d) / 2
        square = half * half + b * c
        root = where(square == 0, 0, sqrt(where(square == 0, 1, square)))
        # The block's eigenvalue that is farther from d, less d; its eigenvector is (shift, c).
        shift = half + where((half.conj() * root).real < 0, -root, root)
        size = sqrt(where(coupled, absolute(shift) ** 2 + absolute(c) ** 2, 1))
        cos, sin = where(coupled, shift / size, 1), where(coupled, c / size, 0)
        basis = stack([stack([cos, -sin.conj()]), stack([sin, cos.conj()])])
        rows = dynamic_slice_in_dim(t, m - 1, 2, 0)
        rows = where(indices >= m - 1, matmul(adjoint(basis), rows), rows)
        t = dynamic_update_slice_in_dim(t, rows, m - 1, 0)
        columns, turned = [matmul(dynamic_slice_in_dim(x, m - 1, 2, 1), basis) for x in (t, z)]
        columns = where(indices[:, None] <= m, columns, dynamic_slice_in_dim(t, m - 1, 2, 1))
        columns = columns.at[m, 0].set(0)
        return (dynamic_update_slice_in_dim(t, columns, m - 1, 1),
                dynamic_update_slice_in_dim(z, turned, m - 1, 1))

    return fori_loop(0, n - 1, rotate, (t, z))


@fused(static=("calc_q", "overwrite_a", "check_finite"))
def hessenberg(a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False,
               check_finite: bool = True) -> Any:
    """The Hessenberg form of a matrix: a = Q H Qᴴ with zeros below H's first subdiagonal.

    Args:
      a: [..., n, n]; integers become floats.
      calc_q: return Q, too.
    Returns: H[..., n, n], or (H, Q).

    >>> print(olympus.scipy.linalg.hessenberg(onp.array([[1., 2.], [3., 4.]])))
    [[1. 2.]
     [3. 4.]]
    """
    (x,) = square("hessenberg", a)
    packed, taus = reduction.hessenberg(x)
    h = triu(packed, -1)
    if not calc_q:
        return h
    if known_less(size_of(x), 2):
        return h, eye(x)
    inner = lax_qr.householder_product(packed[..., 1:, :-1], taus)
    return h, eye(x).at[..., 1:, 1:].set(inner)


complete_docstrings(globals(), {
    "overwrite_a, check_finite": "SciPy's, without effect.",
    "a": "[..., m, n]; integers become floats. k = min(m, n).",
})
