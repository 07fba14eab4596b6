"""Linear systems: by factors, by structure of the matrix; inverses and determinants."""

from __future__ import annotations

from typing import Any

from ...base.typing import Array, ArrayLike
from ...base.util import pair
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.linalg.cholesky import cholesky
from ...lax.linalg.core import adjoint, diagonal_part, matrix_transpose, take_rows, tril, triu
from ...lax.linalg.lu import lu_pivots_to_permutation
from ...lax.linalg.solve import triangular_solve
from ...numpy.linalg import systems
from ...numpy.promote import array_args, broadcast_to
from ...numpy.sorting import argsort
from ...types.shape import broadcast_shapes, definitely_equal
from .arguments import matrices, options, square

# The two sides -----------------------------------------------------------------------------------

def sides(name: str, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array, bool]:
    """a[..., n, n] and b[..., n, m] of one dtype and batch; whether b was a vector."""
    a, b = array_args(name, a, b)
    flat = len(b.shape) == 1
    a, b = matrices(name, a, b[:, None] if flat else b)
    rows, columns = typeof(a).shape[-2:]
    if not definitely_equal(rows, columns):
        raise ValueError(f"{name}: {typeof(a)} given; square matrices [..., n, n] are required.")
    if not definitely_equal(rows, typeof(b).shape[-2]):
        noun = "a vector" if flat else "matrices"
        raise ValueError(f"{name}: {typeof(a)} and {noun} {typeof(b)} given; a right side of "
                         f"{rows} rows is required.")
    batch = broadcast_shapes(typeof(a).shape[:-2], typeof(b).shape[:-2])
    left, right = [broadcast_to(x, (*batch, *typeof(x).shape[-2:])) for x in (a, b)]
    return left, right, flat


_TRANSPOSED: dict[Any, tuple[bool, bool]] = {      # transposed, conjugated
    0: (False, False), "N": (False, False), 1: (True, False), "T": (True, False), 2: (True, True),
    "C": (True, True)}


def _direction(name: str, trans: int | str) -> tuple[bool, bool]:
    return _TRANSPOSED[options(name, "trans", trans, tuple(_TRANSPOSED))]


# By factors --------------------------------------------------------------------------------------

@fused(static=("trans", "lower", "unit_diagonal", "overwrite_b", "debug", "check_finite"))
def solve_triangular(a: ArrayLike, b: ArrayLike, trans: int | str = 0, lower: bool = False,
                     unit_diagonal: bool = False, overwrite_b: bool = False,
                     debug: object = None, check_finite: bool = True) -> Array:
    """The solution x of a x = b with a triangular a.

    Args:
      a: [..., n, n], read in one triangle; integers become floats.
      b: a vector [n], or matrices [..., n, m]; leading axes broadcast.
      trans: 0 or "N": a x = b; 1 or "T": aᵀ x = b; 2 or "C": aᴴ x = b.
      lower: read the lower triangle, else the upper one.
      unit_diagonal: take the diagonal as ones, without reading it.
      overwrite_b, debug, check_finite: SciPy's, without effect.
    Returns: [..., n] for a vector, else [..., n, m]; infinite or NaN where a is singular.

    Raises ValueError for sizes that do not fit and another `trans`.

    >>> a = onp.array([[2., 0.], [1., 4.]])
    >>> print(olympus.scipy.linalg.solve_triangular(a, onp.array([2., 9.]), lower=True))
    [1. 2.]
    """
    transposed, conjugated = _direction("solve_triangular", trans)
    a, b, flat = sides("solve_triangular", a, b)
    x = triangular_solve(a, b, left_side=True, lower=lower, transpose_a=transposed,
                         conjugate_a=conjugated, unit_diagonal=unit_diagonal)
    return x[..., 0] if flat else x


def cho_solve(c_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False,
              check_finite: bool = True) -> Array:
    """The solution x of a x = b from a's Cholesky factor.

    Args:
      c_and_lower: what `cho_factor(a)` returned.
      b: a vector [n], or matrices [..., n, m].
      overwrite_b, check_finite: SciPy's, without effect.
    Returns: [..., n] for a vector, else [..., n, m].

    >>> factor = olympus.scipy.linalg.cho_factor(onp.array([[4., 2.], [2., 5.]]))
    >>> print(olympus.scipy.linalg.cho_solve(factor, onp.array([8., 12.])))
    [1. 2.]
    """
    c, lower = pair(c_and_lower, "cho_solve: c_and_lower")
    return _cho_solve(c, b, lower=bool(lower))


@fused(static=("lower",))
def _cho_solve(c: Array, b: ArrayLike, *, lower: bool) -> Array:
    c, b, flat = sides("cho_solve", c, b)
    x = by_cholesky(c, b, lower)
    return x[..., 0] if flat else x


def by_cholesky(c: Array, b: ArrayLike, lower: bool) -> Array:
    """x in L Lᴴ x = b, or Uᴴ U x = b."""
    first = triangular_solve(c, b, left_side=True, lower=lower, transpose_a=not lower,
                             conjugate_a=not lower)
    return triangular_solve(c, first, left_side=True, lower=lower, transpose_a=lower,
                            conjugate_a=lower)


def lu_solve(lu_and_piv: tuple[ArrayLike, ArrayLike], b: ArrayLike, trans: int = 0,
             overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The solution x of a x = b from a's LU factorisation.

    Args:
      lu_and_piv: what `lu_factor(a)` returned.
      b: a vector [n], or matrices [..., n, m].
      trans: 0: a x = b; 1: aᵀ x = b; 2: aᴴ x = b.
      overwrite_b, check_finite: SciPy's, without effect.
    Returns: [..., n] for a vector, else [..., n, m]; infinite or NaN where a is singular.

    >>> factors = olympus.scipy.linalg.lu_factor(onp.array([[2., 0.], [1., 4.]]))
    >>> print(olympus.scipy.linalg.lu_solve(factors, onp.array([2., 9.])))
    [1. 2.]
    """
    factors, pivots = pair(lu_and_piv, "lu_solve: lu_and_piv")
    return _lu_solve(factors, pivots, b, trans=trans)


@fused(static=("trans",))
def _lu_solve(factors: Array, pivots: Array, b: ArrayLike, *, trans: int) -> Array:
    transposed, conjugated = _direction("lu_solve", trans)
    factors, b, flat = sides("lu_solve", factors, b)
    order = lu_pivots_to_permutation(pivots, typeof(factors).shape[-1])
    order = broadcast_to(order, typeof(b).shape[:-1])

    def divided(x: ArrayLike, lower: bool) -> Array:
        return triangular_solve(factors, x, left_side=True, lower=lower, unit_diagonal=lower,
                                transpose_a=transposed, conjugate_a=conjugated)

    if transposed:
        x = take_rows(divided(divided(b, False), True), argsort(order, -1))
    else:
        x = divided(divided(take_rows(b, order), True), False)
    return x[..., 0] if flat else x


# By structure ------------------------------------------------------------------------------------

def mirrored(a: ArrayLike, lower: bool, hermitian: bool) -> Array:
    """The symmetric, or Hermitian, matrix with one triangle of a."""
    a = tril(a) if lower else triu(a)
    diagonal = diagonal_part(a)
    if hermitian:
        return a + adjoint(a) - diagonal.real
    return a + matrix_transpose(a) - diagonal


_ASSUMED = {"gen": "gen", "general": "gen", "sym": "sym", "symmetric": "sym", "her": "her",
            "hermitian": "her", "pos": "pos", "positive definite": "pos", "diagonal": "diagonal",
            "tridiagonal": "gen", "banded": "gen", "upper triangular": "upper",
            "lower triangular": "lower"}


@fused(static=("lower", "overwrite_a", "overwrite_b", "debug", "check_finite", "assume_a",
               "transposed"))
def solve(a: ArrayLike, b: ArrayLike, lower: bool = False, overwrite_a: bool = False,
          overwrite_b: bool = False, debug: bool = False, check_finite: bool = True,
          assume_a: str = "gen", transposed: bool = False) -> Array:
    """The solution x of a x = b.

    Args:
      a: [..., n, n]; integers become floats.
      b: a vector [n], or matrices [..., n, m]; leading axes broadcast.
      lower: of a symmetric, Hermitian or positive definite matrix, read the lower triangle only;
        else the upper one.
      overwrite_a, overwrite_b, debug, check_finite: SciPy's, without effect.
      assume_a: the structure of a: "gen" (anything), "sym", "her", "pos" (positive definite: a
        Cholesky factorisation, half the work), "diagonal", "upper triangular", "lower triangular",
        or any other of SciPy's names, which are solved as "gen".
      transposed: solve aᵀ x = b.
    Returns: [..., n] for a vector, else [..., n, m]; infinite or NaN where a is singular, or not
      positive definite though assumed so.

    Raises ValueError for sizes that do not fit and an unknown `assume_a`.

    >>> a = onp.array([[4., 2.], [2., 5.]])
    >>> print(olympus.scipy.linalg.solve(a, onp.array([8., 12.]), assume_a="pos"))
    [1. 2.]
    """
    kind = _ASSUMED[options("solve", "assume_a", assume_a, tuple(_ASSUMED))]
    a, b, flat = sides("solve", a, b)
    if kind in ("upper", "lower"):
        x = triangular_solve(a, b, left_side=True, lower=kind == "lower", transpose_a=transposed)
    elif kind == "diagonal":
        x = b / a.diagonal(axis1=-2, axis2=-1)[..., None]
    elif kind == "pos":
        c = cholesky(a if lower else adjoint(a), symmetrize_input=False)
        x = by_cholesky(c.conj() if transposed else c, b, True)
    else:
        if kind != "gen":
            a = mirrored(a, lower, kind == "her")
        x = systems.solve(matrix_transpose(a) if transposed else a, b)
    return x[..., 0] if flat else x


@fused(static=("overwrite_a", "check_finite"))
def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The inverse of matrices. To solve a system use `solve`, which is faster and more accurate.

    Args:
      a: [..., n, n]; integers become floats.
      overwrite_a, check_finite: SciPy's, without effect.
    Returns: [..., n, n]; infinite or NaN where a matrix is singular, for which SciPy raises.

    >>> print(olympus.scipy.linalg.inv(onp.array([[2., 0.], [0., 4.]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    return systems.inv(square("inv", a)[0])


@fused(static=("overwrite_a", "check_finite"))
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """The determinant of matrices; its derivative is right for singular ones, too.

    Args:
      a: [..., n, n]; integers become floats.
      overwrite_a, check_finite: SciPy's, without effect.
    Returns: [...].

    >>> print(olympus.scipy.linalg.det(onp.array([[1., 2.], [3., 4.]])))
    -2.0
    """
    return systems.det(square("det", a)[0])
