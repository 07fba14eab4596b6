"""Equations for matrices: Sylvester's and Lyapunov's, by Schur decompositions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.docstrings import described_like
from ...base.typing import Array, ArrayLike
from ...base.util import real_number
from ...control_flow.while_loop import fori_loop
from ...core.trace import typeof
from ...custom.solves import custom_linear_solve
from ...jit.fused import fused
from ...lax.creation import full_like
from ...lax.linalg.core import adjoint, eye, matmul, matrix_transpose
from ...lax.linalg.eig import eig
from ...lax.linalg.solve import triangular_solve
from ...lax.linalg.spectra import left_divided
from ...lax.slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from ...matrix.schur import schur
from ...numpy import reductions
from ...numpy.arithmetic import abs as absolute
from ...numpy.manipulation import astype
from ...numpy.promote import broadcast_to
from ...numpy.selection import where
from ...types import dtypes
from ...types.shape import broadcast_shapes, definitely_equal, known_less
from .arguments import matrices, options, size_of, square


def triangular_columns(column: Callable[[Array, Array], tuple[Array, Array]], like: ArrayLike
                       ) -> Array:
    """A matrix column by column: `column(j, found)` -> a triangular system, and its right side.

    The systems are upper triangular; `found` holds the columns before j, else zeros. A diagonal
    element that is zero counts as one: where the right side is zero, too, so is the solution.
    """
    last = typeof(like).ndim - 1

    def step(j: Array, solved: Array) -> Array:
        matrix, right = column(j, solved)
        ones = eye(matrix)
        matrix = where((matrix == 0) & (ones == 1), ones, matrix)
        x = triangular_solve(matrix, right, left_side=True)
        return dynamic_update_slice_in_dim(solved, x, j, last)

    return fori_loop(0, typeof(like).shape[-1], step, full_like(like, 0))


def column_of(x: ArrayLike, j: ArrayLike) -> Array:
    """x[..., :, j:j+1]."""
    return dynamic_slice_in_dim(x, j, 1, typeof(x).ndim - 1)


def element_of(x: ArrayLike, j: ArrayLike) -> Array:
    """x[..., j, j] as [..., 1, 1]."""
    return dynamic_slice_in_dim(column_of(x, j), j, 1, typeof(x).ndim - 2)


def _by_schur(a: Array, b: Array, c: Array) -> tuple[Array, Array]:
    """x in a x + x b = c, and the least sum of an eigenvalue of each."""
    dtype = dtypes.to_complex_dtype(a.dtype)
    r, u = schur(astype(a, dtype))
    s, v = schur(astype(b, dtype))
    inner = matmul(adjoint(u), matmul(astype(c, dtype), v))

    def column(j: Array, solved: Array) -> tuple[Array, Array]:
        return (r + element_of(s, j) * eye(r),
                column_of(inner, j) - matmul(solved, column_of(s, j)))

    y = triangular_columns(column, inner)
    x = matmul(u, matmul(y, adjoint(v)))
    values = [t.diagonal(axis1=-2, axis2=-1) for t in (r, s)]
    return (x if typeof(a).dtype.kind == "c" else x.real), _least(*values)


def _by_eigenvectors(a: ArrayLike, b: ArrayLike, c: Array) -> tuple[Array, Array]:
    """The same for matrices with independent eigenvectors."""
    (w, v), (s, u) = [eig(x, compute_left_eigenvectors=False) for x in (a, b)]
    inner = matmul(left_divided(v, astype(c, v.dtype)), u)
    inner = inner / (w[..., :, None] + s[..., None, :])
    x = matmul(v, matrix_transpose(left_divided(
        matrix_transpose(u), matrix_transpose(inner))))
    return (x if typeof(a).dtype.kind == "c" else x.real), _least(w, s)


def _least(w: Array, s: Array) -> Array:
    sums = absolute(w[..., :, None] + s[..., None, :])
    return reductions.min(sums, (-2, -1), initial=np.inf)


def sylvester(a: Array, b: Array, c: Array, method: str = "schur",
              tol: float | None = None) -> Array:
    """x in a x + x b = c, differentiated as the solution of that equation."""
    solver = _by_schur if method == "schur" else _by_eigenvectors

    def solved(a: Array, b: Array, c: Array) -> Array:
        x, least = solver(a, b, c)
        if tol is None:
            return x
        return where((least > tol)[..., None, None], x, np.nan)

    return custom_linear_solve(
        lambda x: matmul(a, x) + matmul(x, b), c, lambda _, c: solved(a, b, c),
        lambda _, c: solved(matrix_transpose(a), matrix_transpose(b), c))


@fused(static=("method", "tol"))
def solve_sylvester(A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur",
                    tol: float = 1e-8) -> Array:
    """The solution X of Sylvester's equation A X + X B = C.

    Args:
      A: [..., m, m]; integers become floats.
      B: [..., n, n].
      C: [..., m, n]; leading axes broadcast.
      method: "schur": Bartels and Stewart, "Solution of the matrix equation AX + XB = C", 1972;
        "eigen": by eigenvectors, for matrices that have independent ones.
      tol: X is NaN where an eigenvalue of A and one of B add up to less than this.
    Returns: X[..., m, n].

    Raises ValueError for sizes that do not fit and another method.

    >>> a, b = onp.array([[1., 2.], [0., 3.]]), onp.eye(2)
    >>> print(onp.round(olympus.scipy.linalg.solve_sylvester(a, b, a + 1), 4))
    [[0.75 0.5 ]
     [0.25 1.  ]]
    """
    options("solve_sylvester", "method", method, ("schur", "eigen"))
    a, b = square("solve_sylvester", A, B)
    a, b, c = matrices("solve_sylvester", a, b, C)
    shape = (typeof(a).shape[-1], typeof(b).shape[-1])
    if not all(map(definitely_equal, typeof(c).shape[-2:], shape)):
        raise ValueError(f"solve_sylvester: {typeof(a)}, {typeof(b)} and {typeof(c)} given; C of "
                         f"trailing axes {list(shape)} is required.")
    batch = broadcast_shapes(*[typeof(x).shape[:-2] for x in (a, b, c)])
    a, b, c = [broadcast_to(x, (*batch, *typeof(x).shape[-2:])) for x in (a, b, c)]
    return sylvester(a, b, c, method, real_number(tol, "solve_sylvester: tol"))


@fused
def solve_continuous_lyapunov(a: ArrayLike, q: ArrayLike) -> Array:
    """The solution X of Lyapunov's equation a X + X aᴴ = q.

    Args:
      a: [..., n, n]; integers become floats.
      q: [..., n, n]; leading axes broadcast.
    Returns: X[..., n, n].

    Raises ValueError for sizes that do not fit.

    >>> a = onp.array([[1., 2.], [0., 3.]])
    >>> x = olympus.scipy.linalg.solve_continuous_lyapunov(a, onp.eye(2))
    >>> print(onp.allclose(a @ x + x @ a.T, onp.eye(2), atol=1e-6))
    True
    """
    a, q = _two_square_matrices("solve_continuous_lyapunov", a, q)
    return sylvester(a, adjoint(a), q)


solve_lyapunov = solve_continuous_lyapunov


def _two_square_matrices(name: str, a: ArrayLike, q: ArrayLike) -> list[Array]:
    """Two square matrices of one size and batch."""
    a, q = square(name, a, q)
    if not definitely_equal(typeof(a).shape[-1], typeof(q).shape[-1]):
        raise ValueError(f"{name}: {typeof(a)} and {typeof(q)} given; matrices of one size are "
                         "required.")
    batch = broadcast_shapes(typeof(a).shape[:-2], typeof(q).shape[:-2])
    return [broadcast_to(x, (*batch, *typeof(x).shape[-2:])) for x in (a, q)]


@fused(static=("method",))
@described_like(solve_continuous_lyapunov)
def solve_discrete_lyapunov(a: ArrayLike, q: ArrayLike, method: str | None = None) -> Array:
    """The solution X of the discrete Lyapunov equation a X aᴴ - X + q = 0.

    Args: method: "direct": one system of n² unknowns, the default for n < 10; "bilinear": by the
        continuous equation of (a - 1)(a + 1)⁻¹, which must exist.

    Raises ValueError for sizes that do not fit and another method.

    >>> print(olympus.scipy.linalg.solve_discrete_lyapunov(0.5 * onp.eye(2), 3 * onp.eye(2)))
    [[4. 0.]
     [0. 4.]]
    """
    options("solve_discrete_lyapunov", "method", method, (None, "direct", "bilinear"))
    a, q = _two_square_matrices("solve_discrete_lyapunov", a, q)
    n = size_of(a)
    one = eye(a)
    if method == "bilinear" or (method is None and not known_less(n, 10)):
        ah = adjoint(a)
        inverse = left_divided(ah + one, one)
        b = matmul(ah - one, inverse)
        c = 2 * matmul(matmul(left_divided(a + one, one), q), inverse)
        return sylvester(adjoint(b), b, -c)
    batch = typeof(a).shape[:-2]
    outer = a[..., :, None, :, None] * a.conj()[..., None, :, None, :]
    outer = outer.reshape((*batch, n * n, n * n))
    flat = q.reshape((*batch, n * n, 1))
    return left_divided(eye(outer) - outer, flat).reshape((*batch, n, n))
