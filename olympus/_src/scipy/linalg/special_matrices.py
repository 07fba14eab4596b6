"""Matrices with names: made of a vector's elements, or of a size alone."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike, DTypeLike
from ...core.trace import typeof
from ...jit.fused import fused
from ...numpy.arithmetic import abs as absolute
from ...numpy.creation import asarray, zeros
from ...numpy.diagonals import eye
from ...numpy.joining import concatenate
from ...numpy.manipulation import broadcast_to, flip
from ...numpy.promote import array_args, inexact, promote_dtypes, to_array
from ...numpy.selection import where
from ...types import dtypes
from ...types.shape import broadcast_shapes, definitely_equal, extent, maximum, minimum, static_int
from .arguments import count_of, counted, number, options, places_of, size_of, vector

# From elements
# -------------------------------------------------------------------------------------

def block_diag(*arrs: ArrayLike) -> Array:
    """The matrix with the given matrices along its diagonal, zeros elsewhere.

    Args: *arrs: scalars, vectors (rows) and matrices.
    Returns: A matrix of the promoted dtype; float[1, 0] of none.

    Raises ValueError for arrays of three or more axes.

    >>> print(olympus.scipy.linalg.block_diag(onp.array([[1, 2], [3, 4]]), 5))
    [[1 2 0]
     [3 4 0]
     [0 0 5]]
    """
    if not arrs:
        return zeros((1, 0))
    blocks = [to_array(x) for x in promote_dtypes("block_diag", *array_args("block_diag", *arrs))]
    for x in blocks:
        if typeof(x).ndim > 2:
            raise ValueError(f"block_diag: {typeof(x)} given; at most two axes are possible; map "
                             "over the others with vmap.")
    blocks = [x.reshape((1, -1)) if typeof(x).ndim < 2 else x for x in blocks]
    width = sum(typeof(x).shape[1] for x in blocks)
    rows, start = [], 0
    for x in blocks:
        height, size = typeof(x).shape
        parts = [zeros((height, start), x.dtype), x, zeros((height, width - start - size), x.dtype)]
        rows.append(concatenate(parts, 1))
        start = start + size
    return concatenate(rows, 0)


@fused
def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix that is constant along each diagonal.

    Args:
      c: [..., m]: its first column; a scalar counts as one element.
      r: [..., n]: its first row, whose first element is not read; the conjugate of c unless given.
    Returns: [..., m, n] of the promoted dtype; leading axes broadcast.

    >>> print(olympus.scipy.linalg.toeplitz(onp.array([1, 2, 3]), onp.array([1, 4, 5])))
    [[1 4 5]
     [2 1 4]
     [3 2 1]]
    """
    column, row = _first_column_and_row("toeplitz", c, r)
    if r is None:
        row = row.conj()
    values = concatenate([flip(column, -1), row[..., 1:]], -1)
    return values[..., places_of(column)[::-1, None] + places_of(row)]


def _first_column_and_row(name: str, c: ArrayLike, r: ArrayLike | None) -> list[Array]:
    """Two vectors, or stacks of vectors of one batch; r is c if None."""
    xs = [vector(name, c)] * 2 if r is None else [vector(name, x) for x in (c, r)]
    xs = [to_array(x) for x in promote_dtypes(name, *xs)]
    batch = broadcast_shapes(*[typeof(x).shape[:-1] for x in xs])
    return [broadcast_to(x, (*batch, typeof(x).shape[-1])) for x in xs]


@fused
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """The matrix that is constant along each antidiagonal.

    Args:
      c: [..., m]: its first column.
      r: [..., n]: its last row, whose first element is not read; zeros unless given, n = m.
    Returns: [..., m, n] of the promoted dtype; leading axes broadcast.

    >>> print(olympus.scipy.linalg.hankel(onp.array([1, 2, 3]), onp.array([3, 7, 8])))
    [[1 2 3]
     [2 3 7]
     [3 7 8]]
    """
    column, row = _first_column_and_row("hankel", c, r)
    if r is None:
        row = row * 0
    values = concatenate([column, row[..., 1:]], -1)
    return values[..., places_of(column)[:, None] + places_of(row)]


@fused
def circulant(c: ArrayLike) -> Array:
    """The matrix whose columns are the given one, each rotated by one more place.

    Args: c: [..., n]: its first column.
    Returns: [..., n, n] of its dtype.

    >>> print(olympus.scipy.linalg.circulant(onp.array([1, 2, 3])))
    [[1 3 2]
     [2 1 3]
     [3 2 1]]
    """
    x = vector("circulant", c)
    indices = places_of(x)
    return x[..., (indices[:, None] - indices) % maximum(typeof(x).shape[-1], 1)]


@fused
def companion(a: ArrayLike) -> Array:
    """The matrix whose eigenvalues are the roots of a polynomial.

    Returns: [..., n, n]: the first row is -a[1:] / a[0], the first subdiagonal ones.

    Raises ValueError for less than two coefficients.

    >>> print(olympus.scipy.linalg.companion(onp.array([1., -3., 2.])))
    [[ 3. -2.]
     [ 1.  0.]]
    """
    x = _monic("companion", a, 2)
    n = size_of(x)
    rest = broadcast_to(eye(n - 1, n, dtype=x.dtype), (*typeof(x).shape[:-1], n - 1, n))
    return concatenate([-x[..., None, :], rest], -2)


def _monic(name: str, a: ArrayLike, least: int) -> Array:
    """a[1:] / a[0] of a polynomial with at least so many coefficients."""
    x = inexact(vector(name, a))
    if size_of(x) < least:
        raise ValueError(f"{name}: {typeof(x)} given; at least {least} coefficient"
                         f"{'s' * (least > 1)} are required.")
    return x[..., 1:] / x[..., :1]


@fused
def fiedler_companion(a: ArrayLike) -> Array:
    """A companion matrix with five diagonals (Fiedler, "A note on companion matrices", 2003).

    Returns: [..., n, n], whose eigenvalues are the polynomial's roots.

    Raises ValueError for no coefficients.

    >>> print(olympus.scipy.linalg.fiedler_companion(onp.array([1., -6., 11., -6.])))
    [[  6. -11.   1.]
     [  1.   0.   0.]
     [  0.   6.   0.]]
    """
    x = -_monic("fiedler_companion", a, 1)
    if definitely_equal(size_of(x), 0):
        return zeros((*typeof(x).shape[:-1], 0, 0), x.dtype)
    row, column = places_of(x)[:, None], places_of(x)
    odd, even = column % 2 == 1, row % 2 == 0
    # The odd coefficients stand beside the diagonal, the even ones below: of all else, ones.
    known = ((row + column == 0) | (odd & (row == column - 1))
             | (even & (row > 0) & (column == row - 1)))
    one = (even & (column == row + 2)) | (odd & (row == column + 2)) | ((row == 1) & (column == 0))
    place = row * (row > column) + column * (row <= column)
    return x[..., place] * known.astype(x.dtype) + one.astype(x.dtype)


@fused
def fiedler(a: ArrayLike) -> Array:
    """The distances of numbers: a symmetric matrix with one positive eigenvalue.

    Args: a: [..., n].
    Returns: [..., n, n]: |a[i] - a[j]|, of its dtype (real if it is complex).

    >>> print(olympus.scipy.linalg.fiedler(onp.array([1, 4, 12])))
    [[ 0  3 11]
     [ 3  0  8]
     [11  8  0]]
    """
    x = vector("fiedler", a)
    return absolute(x[..., :, None] - x[..., None, :])


@fused
def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Leslie's matrix, which advances a population, by age, one step.

    Args:
      f: [..., n], n > 1: the birth rates.
      s: [..., n - 1]: the rates of survival.
    Returns: [..., n, n] of the promoted dtype: f is the first row, s the first subdiagonal.

    Raises ValueError unless s has an element, and is one shorter than f.

    >>> print(olympus.scipy.linalg.leslie(onp.array([0, 2, 1]), onp.array([5, 7])))
    [[0 2 1]
     [5 0 0]
     [0 7 0]]
    """
    rates, survival = _first_column_and_row("leslie", f, s)
    n = size_of(rates)
    if definitely_equal(n, 1) or not definitely_equal(size_of(survival), n - 1):
        raise ValueError(f"leslie: {typeof(rates)} and {typeof(survival)} given; two or "
                         "more birth rates, and one rate of survival less, are required.")
    below = where(eye(n - 1, n, dtype=bool), survival[..., :, None], 0)
    return concatenate([rates[..., None, :], below], -2)


@fused(static=("n", "mode"))
def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """The matrix A for which A @ v is `convolve(a, v, mode)`.

    Args:
      a: [..., m], m > 0.
      n: the size of v.
      mode: "full", "same" or "valid", as for `olympus.numpy.convolve`.
    Returns: [..., k, n], of as many rows as the convolution has elements.

    Raises ValueError for a number, no elements, n < 1 and other modes.

    >>> print(olympus.scipy.linalg.convolution_matrix(onp.array([1, 2]), 3))
    [[1 0 0]
     [2 1 0]
     [0 2 1]
     [0 0 2]]
    """
    x, n = number("convolution_matrix", a), extent(n, "convolution_matrix", "n")
    if not typeof(x).ndim:
        raise ValueError(f"convolution_matrix: {typeof(x)} given; an array of at least one axis is "
                         "required.")
    options("convolution_matrix", "mode", mode, ("full", "same", "valid"))
    m = size_of(x)
    if n < 1 or definitely_equal(m, 0):
        raise ValueError(f"convolution_matrix: {typeof(x)} and n {n} given; at least one element "
                         "and n >= 1 are required.")
    rows = {"full": m + n - 1, "same": maximum(m, n),
            "valid": maximum(m, n) - minimum(m, n) + 1}[mode]
    # "same" and "valid" are the middle; of an odd number of rows to drop, "same" drops the last.
    first = (m + n - 1 - rows) // 2
    place = first + counted(rows)[:, None] - counted(n)
    inside = (place >= 0) & (place < m)
    return x[..., place * inside] * inside.astype(x.dtype)


# From a size
# ---------------------------------------------------------------------------------------

def _matrix_size(name: str, n: int, least: int = 0) -> int:
    return count_of(name, "n", n, least, 2**15)


def _exact_matrix(rows: Sequence[Sequence[float]], n: int) -> Array:
    """Exact numbers, rounded once to the default float dtype."""
    return asarray(np.array(rows, np.float64).reshape(n, n), dtypes.default_float())


def hilbert(n: int) -> Array:
    """Hilbert's matrix, 1 / (i + j + 1): the best known of badly conditioned matrices.

    Returns: float[n, n].

    >>> print(olympus.scipy.linalg.hilbert(2))
    [[1.         0.5       ]
     [0.5        0.33333334]]
    """
    n = _matrix_size("hilbert", n)
    return _exact_matrix([[1 / (i + j + 1) for j in range(n)] for i in range(n)], n)


def invhilbert(n: int) -> Array:
    """The inverse of Hilbert's matrix, whose elements are whole numbers.

    Returns: float[n, n], each element the nearest to the exact one. (SciPy's `exact` is left out:
      no dtype of integers holds those from n = 15 on.)

    >>> print(olympus.scipy.linalg.invhilbert(2))
    [[ 4. -6.]
     [-6. 12.]]
    """
    n = _matrix_size("invhilbert", n)
    return _exact_matrix([[(-1) ** (i + j) * (i + j + 1) * math.comb(n + i, n - j - 1)
                           * math.comb(n + j, n - i - 1) * math.comb(i + j, i) ** 2
                           for j in range(n)] for i in range(n)], n)


_PASCALS = ("symmetric", "lower", "upper")


def pascal(n: int, kind: str | None = None) -> Array:
    """Pascal's triangle as a matrix of binomial coefficients.

    Args:
      kind: "symmetric" (unless given): comb(i + j, i); "lower": comb(i, j); "upper": its transpose.
    Returns: float[n, n], each element the nearest to the exact one.

    >>> print(olympus.scipy.linalg.pascal(3))
    [[1. 1. 1.]
     [1. 2. 3.]
     [1. 3. 6.]]
    """
    n, kind = _matrix_size("pascal", n), options("pascal", "kind", kind or "symmetric", _PASCALS)
    comb = {"symmetric": lambda i, j: math.comb(i + j, i), "lower": math.comb,
            "upper": lambda i, j: math.comb(j, i)}[kind]
    return _exact_matrix([[comb(i, j) for j in range(n)] for i in range(n)], n)


def invpascal(n: int, kind: str | None = None) -> Array:
    """The inverse of `pascal`, whose elements are whole numbers too.

    Args: kind: "symmetric" (unless given), "lower" or "upper".
    Returns: float[n, n], each element the nearest to the exact one.

    >>> print(olympus.scipy.linalg.invpascal(3, "lower"))
    [[ 1.  0.  0.]
     [-1.  1.  0.]
     [ 1. -2.  1.]]
    """
    n, kind = _matrix_size("invpascal", n), options("invpascal", "kind", kind or "symmetric",
                                                    _PASCALS)

    def lower(i: int, j: int) -> int:
        return (-1) ** (i + j) * math.comb(i, j)

    entry = {"lower": lower, "upper": lambda i, j: lower(j, i),
             "symmetric": lambda i, j: sum(lower(k, i) * lower(k, j) for k in range(n))}[kind]
    return _exact_matrix([[entry(i, j) for j in range(n)] for i in range(n)], n)


def helmert(n: int, full: bool = False) -> Array:
    """Helmert's orthogonal matrix, whose rows contrast an element with the mean of those before.

    Args:
      n: its order, at least 1.
      full: whether the first row, of equal elements, is there.
    Returns: float[n - 1, n], or float[n, n] if `full`; the rows are orthonormal.

    Raises ValueError for n < 1.

    >>> print(olympus.scipy.linalg.helmert(2))
    [[ 0.70710677 -0.70710677]]
    """
    n = _matrix_size("helmert", n, 1)
    rows = np.tril(np.ones((n, n)), -1) - np.diag(np.arange(n))
    rows[0] = 1
    count = np.arange(n)
    lengths = np.sqrt(np.where(count, count * (count + 1), n))
    return asarray((rows / lengths[:, None])[0 if full else 1:], dtypes.default_float())


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Sylvester's matrix of orthogonal rows of ones and minus ones.

    Args:
      n: its order, a power of 2.
      dtype: of the result.
    Returns: [n, n] of the dtype.

    Raises ValueError for an order that is no power of 2.

    >>> print(olympus.scipy.linalg.hadamard(4))
    [[ 1  1  1  1]
     [ 1 -1  1 -1]
     [ 1  1 -1 -1]
     [ 1 -1 -1  1]]
    """
    n = static_int(n, "hadamard", "n")
    if n < 1 or n & (n - 1):
        raise ValueError(f"hadamard: n {n} given; a power of 2 is required.")
    rows = np.ones((1, 1), np.int8)
    while len(rows) < n:
        rows = np.block([[rows, rows], [rows, -rows]])
    return asarray(rows, dtype)


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """The matrix of the discrete Fourier transform: exp(-2πi j k / n).

    Args:
      scale: None, "sqrtn" (divided by √n: unitary) or "n" (divided by n).
      dtype: of the result; the default complex one unless given.
    Returns: complex[n, n]: dft(n) @ x is fft(x).

    Raises ValueError for another scale.

    >>> print(olympus.scipy.linalg.dft(2).real)
    [[ 1.  1.]
     [ 1. -1.]]
    """
    n = _matrix_size("dft", n)
    options("dft", "scale", scale, (None, "sqrtn", "n"))
    turns = np.outer(np.arange(n), np.arange(n)) % max(n, 1)
    values = np.exp(-2j * np.pi * turns / max(n, 1))
    values = values / {None: 1, "sqrtn": math.sqrt(n or 1), "n": n or 1}[scale]
    complex_dtype = dtypes.to_complex_dtype(dtypes.default_float())
    return asarray(values, complex_dtype if dtype is None else dtypes.requested_dtype("dft", dtype))


complete_docstrings(globals(), {
    "n": "its order.",
    "a":
        "[..., n + 1]: coefficients, that of the highest power first and not zero; "
        "integers become\n"
        "floats.",
})
