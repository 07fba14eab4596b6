"""Systems with matrices that are constant along, or zero beyond, some diagonals."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ...base.docstrings import described_like
from ...base.typing import Array, ArrayLike, PyTree
from ...base.util import pair
from ...control_flow.branches import cond
from ...control_flow.scan import scan
from ...core.trace import typeof
from ...custom.solves import custom_linear_solve
from ...jit.fused import fused
from ...mapping.vmap import vmap
from ...numpy.arithmetic import abs as absolute, less
from ...numpy.conditions import clip
from ...numpy.creation import asarray, zeros, zeros_like
from ...numpy.elementary import sqrt
from ...numpy.joining import concatenate
from ...numpy.linalg import systems
from ...numpy.manipulation import flip, moveaxis
from ...numpy.promote import array_args, broadcast_to
from ...numpy.reductions import argmax
from ...numpy.selection import where
from ...types import dtypes
from ...types.shape import broadcast_shapes, definitely_equal, is_static, known_less, static_int
from .arguments import counted, matrices, number_of, places_of, size_of
from .special_matrices import toeplitz
from .systems import sides

# Arguments ---------------------------------------------------------------------------------------

def _sides(name: str, ab: ArrayLike, b: ArrayLike) -> tuple[Array, Array, bool]:
    """Diagonals ab[..., k, n] and b[..., n, m] of one dtype and batch; whether b was a vector."""
    ab, b = array_args(name, ab, b)
    flat = len(b.shape) == 1
    ab, b = matrices(name, ab, b[:, None] if flat else b)
    if not definitely_equal(size_of(ab), size_of(b, -2)):
        raise ValueError(f"{name}: diagonals {typeof(ab)} and right side {typeof(b)} given; as "
                         "many rows of b as columns of the diagonals are required.")
    batch = broadcast_shapes(typeof(ab).shape[:-2], typeof(b).shape[:-2])
    left, right = [broadcast_to(x, (*batch, *typeof(x).shape[-2:])) for x in (ab, b)]
    return left, right, flat


def _over_stacks(fun: Callable[..., Array], *xs: Array) -> Array:
    """A function of matrices for stacks of them."""
    for _ in range(typeof(xs[0]).ndim - 2):
        fun = vmap(fun)
    return fun(*xs)


def _gathered(ab: Array, rows: Array | np.ndarray, columns: Array | np.ndarray) -> Array:
    """ab[rows, columns], 0 for places beyond ab."""
    height, width = number_of(ab, -2), size_of(ab)
    shape = broadcast_shapes(rows.shape, columns.shape)
    if height == 0 or definitely_equal(width, 0):
        return zeros(shape, ab.dtype)
    if is_static((width,)) and is_static(shape):    # places that are numbers
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        rows, columns = np.clip(rows, 0, height - 1), np.clip(columns, 0, width - 1)
    else:
        rows, columns = asarray(rows), asarray(columns)
        inside = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        rows, columns = clip(rows, 0, height - 1), clip(columns, 0, width - 1)
    return where(inside, ab[rows, columns], 0)


def _lowered(ab: Array) -> Array:
    """The lower diagonals of a Hermitian matrix from its upper ones."""
    u = number_of(ab, -2) - 1
    below, column = np.arange(u + 1)[:, None], places_of(ab)
    return _gathered(ab, u - below + 0 * column, column + below).conj()


def _raised(ab: Array) -> Array:
    """The upper diagonals of a Hermitian matrix from its lower ones."""
    u = number_of(ab, -2) - 1
    above, column = u - np.arange(u + 1)[:, None], places_of(ab)
    return _gathered(ab, above + 0 * column, column - above).conj()


def _zero_beyond(ab: Array) -> Array:
    """Lower diagonals with zeros below the last row."""
    row, column = np.arange(number_of(ab, -2))[:, None], places_of(ab)
    return where(row + column < size_of(ab), ab, 0)


# By elimination ----------------------------------------------------------------------------------

def _backwards(rows: Array, y: Array) -> Array:
    """x in U x = y, of an upper triangular U as rows[n, w + 1], each from its diagonal on."""
    width = number_of(rows) - 1

    def step(known: Array, line: Sequence[Array]) -> tuple[Array, Array]:
        row, right = line
        x = (right - row[1:] @ known) / row[0]
        return concatenate([x[None], known], 0)[:width], x

    return scan(step, zeros((width, size_of(y)), y.dtype), (rows, y), reverse=True)[1]


def _forwards(columns: Array, y: Array) -> Array:
    """x in L x = y, of a lower triangular L by its diagonals[w + 1, n]."""
    below, row = np.arange(number_of(columns, -2)), places_of(columns)[:, None]
    rows = _gathered(columns, below + 0 * row, row - below)
    return flip(_backwards(flip(rows, 0), flip(y, 0)), 0)


def _solve_bands(ab: Array, b: Array, lower: int, upper: int) -> Array:
    """Gauss's elimination in a window of lower + 1 rows, the pivot the largest of its column."""
    n, width = size_of(ab), lower + upper + 1
    row, place = counted(n + lower + 1)[:, None], np.arange(width)
    column = row - lower + place
    entries = _gathered(ab, upper + row - column, column)
    entries = where(row < n, entries, 0)
    right = concatenate([b, zeros((lower + 1, size_of(b)), b.dtype)], 0)
    first = np.arange(lower + 1)[:, None]
    window = _gathered(ab, upper + first - place, place + 0 * first)
    window = where(less(first, n), window, 0)

    def step(state: Array, entering: Array) -> tuple[Array, Array]:
        rows = state
        pivot = argmax(absolute(rows[:, 0]))
        chosen, top = rows[pivot], rows[0]
        rest = rows.at[pivot].set(top)[1:]
        rest = rest - rest[:, :1] / chosen[0] * chosen
        shifted = concatenate([rest[:, 1:width], zeros((lower, 1), rest.dtype), rest[:, width:]],
                              1)
        return concatenate([shifted, entering[None]], 0), chosen

    start = concatenate([window, right[:lower + 1]], 1)
    entering = concatenate([entries[lower + 1:], right[lower + 1:]], 1)
    _, out = scan(step, start, entering)
    return _backwards(out[:, :width], out[:, width:])


@fused(static=("l_and_u", "overwrite_ab", "overwrite_b", "check_finite"))
def solve_banded(l_and_u: tuple[int, int], ab: ArrayLike, b: ArrayLike, overwrite_ab: bool = False,
                 overwrite_b: bool = False, check_finite: bool = True) -> Array:
    """The solution x of a x = b with a matrix a of few diagonals, by elimination with pivots.

    Golub and Van Loan, "Matrix computations", 4.3. The work is n l (l + u).

    Args:
      l_and_u: the numbers of diagonals below and above the main one.
      ab: [..., l + u + 1, n], the diagonals: ab[u + i - j, j] = a[i, j]; integers become floats.
      b: a vector [n], or matrices [..., n, m]; leading axes broadcast.
      overwrite_ab, overwrite_b, check_finite: SciPy's, without effect.
    Returns: [..., n] for a vector, else [..., n, m]; infinite or NaN where a is singular.

    Raises ValueError for sizes that do not fit.

    >>> ab = onp.array([[0., 1., 1.], [2., 2., 2.], [1., 1., 0.]])
    >>> print(olympus.scipy.linalg.solve_banded((1, 1), ab, onp.array([4., 8., 8.])).round(4))
    [1. 2. 3.]
    """
    lower, upper = [static_int(k, "solve_banded", "l_and_u")
                    for k in pair(l_and_u, "solve_banded: l_and_u")]
    ab, b, flat = _sides("solve_banded", ab, b)
    if min(lower, upper) < 0 or number_of(ab, -2) != lower + upper + 1:
        raise ValueError(f"solve_banded: l_and_u {(lower, upper)} and {typeof(ab)} given; l + u + "
                         "1 diagonals are required.")
    x = _over_stacks(lambda ab, b: _solve_bands(ab, b, lower, upper), ab, b)
    return x[..., 0] if flat else x


# Positive definite -------------------------------------------------------------------------------

def _factored(ab: Array) -> Array:
    """The diagonals[w + 1, n] of the lower Cholesky factor from the matrix's."""
    ab, width = _zero_beyond(ab), number_of(ab, -2)
    offsets = np.arange(width)
    # A window of `width` rows gains with each step the row below, up to its diagonal.
    column = places_of(ab)[:, None] + 1 + offsets
    entering = _gathered(ab, width - 1 - offsets + 0 * column, column)
    row = offsets[:, None]
    window = _gathered(ab, row - offsets, offsets + 0 * row)

    def step(window: Array, entering: Array) -> tuple[Array, Array]:
        column = window[:, 0] / sqrt(window[0, 0].real).astype(window.dtype)
        rest = window - column[:, None] * column.conj()
        rest = concatenate([rest[1:, 1:], zeros((width - 1, 1), rest.dtype)], 1)
        return concatenate([rest, entering[None]], 0), column

    return moveaxis(scan(step, window, entering)[1], 0, 1)


@fused(static=("overwrite_ab", "lower", "check_finite"))
def cholesky_banded(ab: ArrayLike, overwrite_ab: bool = False, lower: bool = False,
                    check_finite: bool = True) -> Array:
    """The Cholesky factor of a positive definite matrix of few diagonals, by diagonals too.

    Args:
      ab: [..., u + 1, n]: the upper diagonals, ab[u + i - j, j] = a[i, j], or if `lower` those
        below, ab[i - j, j] = a[i, j]; integers become floats.
      overwrite_ab, check_finite: SciPy's, without effect.
      lower: whether ab, and the factor, are lower.
    Returns: The diagonals of U in Uᴴ U = a, or if `lower` of L in L Lᴴ = a, zeros where there is no
      element; NaN where a is not positive definite, for which SciPy raises.

    Raises ValueError for fewer than two axes.

    >>> print(olympus.scipy.linalg.cholesky_banded(onp.array([[0., 2., 2.], [4., 5., 10.]])))
    [[0. 1. 1.]
     [2. 2. 3.]]
    """
    (ab,) = matrices("cholesky_banded", ab)
    return _over_stacks(_factored if lower else lambda ab: _raised(_factored(_lowered(ab))), ab)


def _by_factor(columns: Array, b: Array) -> Array:
    """x in L Lᴴ x = b, of L's diagonals."""
    columns = _zero_beyond(columns)
    return _backwards(moveaxis(columns, 0, 1).conj(), _forwards(columns, b))


@described_like(solve_banded)
def cho_solve_banded(cb_and_lower: tuple[ArrayLike, bool], b: ArrayLike, overwrite_b: bool = False,
                     check_finite: bool = True) -> Array:
    """The solution x of a x = b from the Cholesky factor of a matrix of few diagonals.

    Args:
      cb_and_lower: (what `cholesky_banded` returned, whether it is lower).
      overwrite_b, check_finite: SciPy's, without effect.
    Returns: [..., n] for a vector, else [..., n, m].

    >>> factor = onp.array([[0., 1., 1.], [2., 2., 3.]])
    >>> print(olympus.scipy.linalg.cho_solve_banded((factor, False), onp.array([8., 18., 34.])))
    [1. 2. 3.]
    """
    cb, lower = pair(cb_and_lower, "cho_solve_banded: cb_and_lower")
    return _cho_solve_banded(cb, b, lower=bool(lower))


@fused(static=("lower",))
def _cho_solve_banded(cb: ArrayLike, b: ArrayLike, *, lower: bool) -> Array:
    cb, b, flat = _sides("cho_solve_banded", cb, b)
    x = _over_stacks(lambda cb, b: _by_factor(cb if lower else _lowered(cb), b), cb, b)
    return x[..., 0] if flat else x


@fused(static=("overwrite_ab", "overwrite_b", "lower", "check_finite"))
@described_like(solve_banded)
def solveh_banded(ab: ArrayLike, b: ArrayLike, overwrite_ab: bool = False,
                  overwrite_b: bool = False, lower: bool = False, check_finite: bool = True
                  ) -> Array:
    """The solution x of a x = b with a positive definite matrix a of few diagonals.

    Args:
      ab: [..., u + 1, n]: its upper diagonals, or if `lower` those below, as for `cholesky_banded`.
      lower: whether ab holds the lower diagonals.
    Returns: [..., n] for a vector, else [..., n, m]; NaN where a is not positive definite.

    >>> ab = onp.array([[0., 2., 2.], [4., 5., 10.]])
    >>> print(olympus.scipy.linalg.solveh_banded(ab, onp.array([8., 18., 34.])))
    [1. 2. 3.]
    """
    ab, b, flat = _sides("solveh_banded", ab, b)
    x = _over_stacks(lambda ab, b: _by_factor(_factored(ab if lower else _lowered(ab)), b), ab, b)
    return x[..., 0] if flat else x


# Toeplitz ----------------------------------------------------------------------------------------

@described_like(solve_banded)
def solve_toeplitz(c_or_cr: ArrayLike | tuple[ArrayLike, ArrayLike], b: ArrayLike,
                   check_finite: bool = True) -> Array:
    """The solution x of a x = b with a matrix that is constant along each diagonal.

    From 256 rows on by Levinson's recursion, in O(n²) (Golub and Van Loan, Matrix Computations,
    §4.7), and by the LU factors of the whole matrix for fewer, and where the recursion has failed
    because a leading submatrix is nearly singular, for which SciPy raises. Under vmap large
    systems are solved both ways.

    Args:
      c_or_cr: the first column c[..., n], with its conjugate as the first row, or a tuple (c, r) of
        column and row.
      check_finite: SciPy's, without effect.
    Returns: [..., n] for a vector, else [..., n, m]; infinite or NaN where the matrix is singular.

    >>> print(olympus.scipy.linalg.solve_toeplitz(onp.array([2., 1.]), onp.array([4., 5.])))
    [1. 2.]
    """
    c, r = c_or_cr if isinstance(c_or_cr, tuple) else (c_or_cr, None)
    a, b, flat = sides("solve_toeplitz", toeplitz(c, r), b)
    large = known_less(_SMALL, typeof(a).shape[-1])
    x = _over_stacks(_large_toeplitz, a, b) if large else systems.solve(a, b)
    return x[..., 0] if flat else x


_SMALL = 255        # up to here LU factors are as fast, and compiled sooner


def _large_toeplitz(a: Array, b: Array) -> Array:
    """One system, with derivatives of the equation."""
    return custom_linear_solve(lambda x: a @ x, b, lambda product, b: _levinson(a, b),
                               lambda product, b: _levinson(a.T, b))


def _levinson(a: Array, b: Array) -> Array:
    """x[n, m] by Levinson's recursion, by LU factors where its residual is too large.

    After k rows `first` and `last` solve the leading system of size k for the first and the last
    unit vector, and x solves it for b; all are zero beyond.
    """
    zero = zeros((1,), a.dtype)

    def step(state: PyTree, rows: tuple[Array, Array]) -> tuple[PyTree, None]:
        first, last, x = state
        row, right = rows
        last = concatenate([zero, last[:-1]])
        below, above = row @ first, a[0] @ last
        scale = 1 / (1 - below * above)
        first, last = scale * (first - below * last), scale * (last - above * first)
        return (first, last, x + last[:, None] * (right - row @ x)), None

    unit = concatenate([1 / a[0, :1], zeros_like(a[0, 1:])])
    (_, _, x), _ = scan(step, (unit, unit, unit[:, None] * b[0]), (a[1:], b[1:]))
    size = absolute(a).sum(-1).max() * absolute(x).max()
    allowed = 10 * number_of(a) * dtypes.finfo(a.dtype).eps * size
    return cond((absolute(b - a @ x) <= allowed).all(), lambda: x, lambda: systems.solve(a, b))
