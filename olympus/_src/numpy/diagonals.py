"""Triangles and diagonals of matrices, and the matrices that they make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

import numpy as np

from ..base.docstrings import complete_docstrings, described_like
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DimSize, DType, DTypeLike, DuckTypedArray
from ..core.trace import Tracer, literal
from ..jit.fused import fused, named
from ..lax import creation as lax_creation, shape as lax_shape, slicing
from ..lax.arithmetic import integer_pow, mul, sub
from ..lax.bits import bitwise_and
from ..lax.comparison import clamp, eq, ge, ne, select
from ..lax.families import add
from ..types import dtypes
from ..types.shape import (
    canonical_dim, canonical_shape, exceeds, extent, is_static, maximum, minimum, prod, static_int,
)
from ..types.sharding import DeviceLike
from .arithmetic import power
from .creation import asarray, aval_like, check_layout, full, placed
from .indexing import nonzero
from .promote import array_args, broadcast_to, choose, convert, to_array


def _rows_and_columns(name: str, shape: tuple[int, ...], k: ArrayLike) -> tuple[Array, Array]:
    """int32[n, m], twice: row + k, and column; they are equal on diagonal `k`.

    A diagonal outside of the matrix is moved next to it, so that no sum is beyond int32.
    """
    low, high = [n if type(n) is int else 2**30 for n in shape]
    rows = lax_creation.broadcasted_iota("int32", shape, 0)
    columns = lax_creation.broadcasted_iota("int32", shape, 1)
    if _is_traced(k):
        if k.shape or not dtypes.is_integer(k.dtype):
            raise TypeError(f"{name}: k {k.aval} given; an integer is required.")
        ends = [literal(n, k.dtype) if dtypes.fits(n, k.dtype) else k for n in (-low, high)]
        moved = convert(clamp(ends[0], k, ends[1]), rows.dtype)
        return add(rows, broadcast_to(moved, rows.shape)), columns
    k = extent(k, name, "k")
    k = max(-low, min(k, high)) if type(k) is int else k
    return add(rows, literal(k, rows.dtype)), columns


def _is_traced(k: object) -> TypeGuard[Tracer]:
    return isinstance(k, Tracer) and k._known_value() is None


def _band(name: str, shape: tuple[int, ...], k: ArrayLike, dtype: DType,
          condition: Callable[[Array, Array], Array]) -> Array:
    return convert(condition(*_rows_and_columns(name, shape, k)), dtype)


_known_band = fused(_band, static=("name", "shape", "k", "dtype", "condition"))


@api_boundary
def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, order: str = "C",
        *, device: DeviceLike = None, like: ArrayLike | None = None) -> Array:
    """A matrix with ones on a diagonal and zeros elsewhere.

    Args: order: None, "K", "C" or "A", since programs see no memory order.
    Returns: [N, M].

    >>> print(onp.eye(2, 3, k=1))
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    check_layout("eye", order, like)
    dtype = dtypes.requested_dtype("eye", float if dtype is None else dtype)
    n, m = [_one_dim(d) for d in (N, N if M is None else M)]
    band = _band if _is_traced(k) else _known_band
    return placed("eye", band("eye", (n, m), k, dtype, eq), device, None)


def _one_dim(size: int) -> int:
    """A number of rows or columns, as an int or the one entry of a shape."""
    shape = canonical_shape(size, "eye")
    if len(shape) != 1:
        raise TypeError(f"eye: N or M {size} given; an int is required.")
    return shape[0]


@named
def identity(n: int, dtype: DTypeLike | None = None, *, like: ArrayLike | None = None) -> Array:
    """The unit matrix.

    Args: n: number of rows and columns.
    Returns: [n, n].

    >>> print(onp.identity(2))
    [[1. 0.]
     [0. 1.]]
    """
    return eye(n, dtype=dtype, like=like)


@api_boundary
def tri(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None, *,
        like: ArrayLike | None = None) -> Array:
    """A matrix with ones on a diagonal and below, zeros above.

    Returns: [N, M].

    >>> print(onp.tri(2, 3))
    [[1. 0. 0.]
     [1. 1. 0.]]
    """
    check_layout("tri", None, like)
    return (_band if _is_traced(k) else _known_band)(
        "tri", canonical_shape((N, N if M is None else M), "tri"), k,
        dtypes.requested_dtype("tri", float if dtype is None else dtype), ge)


def _triangle(name: str, m: ArrayLike, k: int, lower: bool) -> Array:
    (x,) = array_args(name, m)
    if len(x.shape) < 2:
        raise ValueError(f"{name}: {x.aval} given; at least two axes are required.")
    k = extent(k, name, "k")
    mask = broadcast_to(ge(*_rows_and_columns(name, x.shape[-2:], k if lower else k - 1)), x.shape)
    zero = full(x.shape, 0, x.dtype)
    return choose(mask, x, zero) if lower else choose(mask, zero, x)


@fused(static=("k",))
def tril(m: ArrayLike, k: int = 0) -> Array:
    """The lower triangles of matrices: zeros above a diagonal.

    Args: k: the last diagonal that is kept: 0 is the main one, positive ones lie above it.
    Returns: An array of the shape and dtype of `m`.

    Raises ValueError for rank below 2 (NumPy takes a vector as the rows of a matrix).

    >>> print(onp.tril(onp.array([[1, 2], [3, 4]])))
    [[1 0]
     [3 4]]
    """
    return _triangle("tril", m, k, True)


@fused(static=("k",))
@described_like(tril)
def triu(m: ArrayLike, k: int = 0) -> Array:
    """The upper triangles of matrices: zeros below a diagonal.

    Args: k: the first diagonal that is kept: 0 is the main one, positive ones lie above it.

    >>> print(onp.triu(onp.array([[1, 2], [3, 4]])))
    [[1 2]
     [0 4]]
    """
    return _triangle("triu", m, k, False)


def _index_pair(pair: Sequence[np.ndarray]) -> tuple[Array, Array]:
    rows, columns = pair
    return asarray(rows), asarray(columns)


def _diagonal_sizes(name: str, n: int, k: int, m: int | None) -> tuple[int, int, int | None]:
    """Rows, diagonal and columns as ints. ValueError for more elements than an array can have."""
    sizes = (canonical_dim(n, name), static_int(k, name, "k"),
             None if m is None else canonical_dim(m, name))
    if any(abs(i or 0) >= 2**31 for i in sizes if is_static((i or 0,))):
        raise ValueError(f"{name}: n {n}, k {k}, m {m} given; numbers below 2**31 are required.")
    return sizes


def _count_above(n: DimSize, m: DimSize, k: int) -> DimSize:
    """How many elements an n by m matrix has on its diagonal number k and above."""
    if k < 0:
        return n * m - _count_above(m, n, 1 - k)
    rows = maximum(minimum(n, m - k), 0)
    return rows * (m - k) - rows * (rows - 1) // 2


@api_boundary
def tril_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix, in row-major order.

    Args:
      k: the last diagonal of the triangle.
      m: number of columns; as many unless given. All are static ints.

    >>> rows, columns = onp.tril_indices(2)
    >>> print(rows, columns)
    [0 1 1] [0 0 1]
    """
    n, k, m = _diagonal_sizes("tril_indices", n, k, m)
    if not is_static((n, m or 0)):
        m = n if m is None else m
        rows, columns = nonzero(tri(n, m, k),
                                size=maximum(n * m - _count_above(n, m, k + 1), 0))
        return rows, columns
    return _index_pair(np.tril_indices(n, k, m))


@api_boundary
def triu_indices(n: int, k: int = 0, m: int | None = None) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix, in row-major order.

    Args:
      k: the first diagonal of the triangle.
      m: number of columns; as many unless given. All are static ints.

    >>> rows, columns = onp.triu_indices(3, k=1)
    >>> print(rows, columns)
    [0 0 1] [1 2 2]
    """
    n, k, m = _diagonal_sizes("triu_indices", n, k, m)
    if not is_static((n, m or 0)):
        m = n if m is None else m
        rows, columns = nonzero(1 - tri(n, m, k - 1), size=maximum(_count_above(n, m, k), 0))
        return rows, columns
    return _index_pair(np.triu_indices(n, k, m))


def _matrix_shape(name: str, arr: object) -> tuple[int, int]:
    shape = aval_like(name, arr).shape
    if len(shape) != 2:
        raise ValueError(f"{name}: an array of shape {shape} given; a matrix is required.")
    return shape


@named
def tril_indices_from(arr: ArrayLike | DuckTypedArray, k: int = 0) -> tuple[Array, Array]:
    """The indices of the lower triangle of a matrix with the shape of another.

    Args: k: the last diagonal of the triangle.

    Raises ValueError for other ranks.

    >>> x = onp.array([[1, 2], [3, 4]])
    >>> print(x[onp.tril_indices_from(x)])
    [1 3 4]
    """
    n, m = _matrix_shape("tril_indices_from", arr)
    return tril_indices(n, k, m)


@named
def triu_indices_from(arr: ArrayLike | DuckTypedArray, k: int = 0) -> tuple[Array, Array]:
    """The indices of the upper triangle of a matrix with the shape of another.

    Args: k: the first diagonal of the triangle.

    Raises ValueError for other ranks.

    >>> x = onp.array([[1, 2], [3, 4]])
    >>> print(x[onp.triu_indices_from(x)])
    [1 2 4]
    """
    n, m = _matrix_shape("triu_indices_from", arr)
    return triu_indices(n, k, m)


@api_boundary
def diag_indices(n: int, ndim: int = 2) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array whose axes have one size.

    Args:
      n: the size of the axes.
      ndim: the number of axes.
    Returns: A tuple of `ndim` vectors 0 … n-1, int32 (int64 with x64).

    >>> print(onp.zeros((2, 2)).at[onp.diag_indices(2)].set(1.0))
    [[1. 0.]
     [0. 1.]]
    """
    n, ndim = canonical_dim(n, "diag_indices"), canonical_dim(ndim, "diag_indices")
    if ndim > 64:
        raise ValueError(f"diag_indices: ndim {ndim} given; at most 64 is possible.")
    return (lax_creation.iota(dtypes.default_int(), n),) * ndim


@api_boundary
def diag_indices_from(arr: ArrayLike) -> tuple[Array, ...]:
    """The indices of the main diagonal of an array.

    Args: arr: array of at least two axes, all of one size; its values are not read.
    Returns: A tuple of vectors, one per axis, int32 (int64 with x64).

    Raises ValueError for other shapes.

    >>> x = onp.array([[1, 2], [3, 4]])
    >>> print(x[onp.diag_indices_from(x)])
    [1 4]
    """
    shape = aval_like("diag_indices_from", arr).shape
    if len(shape) < 2 or len(set(shape)) != 1:
        raise ValueError(f"diag_indices_from: shape {shape} given; at least two axes, of one size, "
                         "are required.")
    return diag_indices(shape[0], len(shape))


@fused(static=("k",))
def diag(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with a vector on a diagonal, or the diagonal of a matrix.

    Args:
      v: vector or matrix.
      k: which diagonal: 0 is the main one, positive ones lie above it.
    Returns: [n + |k|, n + |k|] for a vector [n], a vector for a matrix; of the dtype of `v`.

    Raises ValueError for other ranks.

    >>> print(onp.diag(onp.array([1, 2])))
    [[1 0]
     [0 2]]
    >>> print(onp.diag(onp.array([[1, 2], [3, 4]])))
    [1 4]
    """
    (x,) = array_args("diag", v)
    if len(x.shape) == 2:
        return diagonal_of(x, static_int(k, "diag", "k"), 0, 1)
    if len(x.shape) != 1:
        raise ValueError(f"diag: {x.aval} given; a vector or a matrix is required.")
    k = static_int(k, "diag", "k")
    n = x.shape[0] + abs(k)
    padded = slicing.pad(x, literal(0, x.dtype), [(max(0, -k), max(0, k), 0)])
    rows = lax_shape.broadcast_in_dim(padded, (n, n), (0,))
    return choose(eq(*_rows_and_columns("diag", (n, n), k)), rows, full((n, n), 0, x.dtype))


@fused(static=("k",))
def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """The matrix with all elements of an array, in row-major order, on a diagonal.

    Args:
      v: array of n elements.
      k: which diagonal: 0 is the main one, positive ones lie above it.
    Returns: [n + |k|, n + |k|] of the dtype of `v`.

    >>> print(onp.diagflat(onp.array([[1], [2]])))
    [[1 0]
     [0 2]]
    """
    (x,) = array_args("diagflat", v)
    return diag(lax_shape.reshape(to_array(x), (prod(x.shape),)), k)


def diagonal_of(x: Array, offset: int, axis1: int, axis2: int) -> Array:
    """Diagonal `offset` over two axes, as the last axis: one slice of the flattened pair.

    In row-major order the elements of a diagonal lie `columns + 1` apart.
    """
    axes = [i for i in range(x.ndim) if i not in (axis1, axis2)]
    x = lax_shape.transpose(x, (*axes, axis1, axis2))
    n, m = x.shape[-2:]
    top, left = max(0, -offset), max(0, offset)
    size = maximum(0, minimum(n - top, m - left))
    batch = x.shape[:-2]
    if size == 0:
        return full((*batch, 0), 0, x.dtype)
    x = slicing.slice(x, (0,) * len(batch) + (top, left), (*batch, top + size, left + size))
    flat = lax_shape.reshape(x, (*batch, size * size))
    return slicing.slice_in_dim(flat, 0, size * size, size + 1, len(batch))


@fused(static=("N", "increasing",))
def vander(x: ArrayLike, N: int | None = None, increasing: bool = False) -> Array:
    """The matrix of Vandermonde: the powers of each element as a row.

    Args:
      x: vector [n].
      N: number of powers; n unless given.
      increasing: whether the powers are 0 … N-1 instead of N-1 … 0.
    Returns: [n, N] of the dtype of `x`.

    Raises ValueError for other ranks.

    >>> print(onp.vander(onp.array([1, 2, 3])))
    [[1 1 1]
     [4 2 1]
     [9 3 1]]
    """
    (x,) = array_args("vander", x)
    if len(x.shape) != 1:
        raise ValueError(f"vander: {x.aval} given; a vector is required.")
    columns = x.shape[0] if N is None else extent(N, "vander", "N")
    if columns < 0 or exceeds(columns, 2**31 - 1):
        raise ValueError(f"vander: N {columns} given; a number in [0, 2**31) is required.")
    if not is_static((columns,)):
        exponents = lax_creation.iota(x.dtype if dtypes.is_integer(x.dtype) else np.int32, columns)
        return power(lax_shape.expand_dims(x, (1,)),
                     exponents if increasing else lax_shape.rev(exponents, (0,)))
    if not columns:
        return full((x.shape[0], 0), 0, x.dtype)
    if not dtypes.is_complex(x.dtype):
        return _by_squares(x, columns=columns, increasing=bool(increasing))
    # A complex product with 1 would change infinities.
    powers = range(columns) if increasing else range(columns - 1, -1, -1)
    return slicing.concatenate([lax_shape.expand_dims(integer_pow(x, p), (1,))
                                for p in powers], 1)


@fused(static=("columns", "increasing"))
def _by_squares(x: Array, *, columns: int, increasing: bool) -> Array:
    """All powers as one product, of squares of squares: each is what `integer_pow` computes."""
    shape = x.shape[0], columns
    powers = lax_creation.broadcasted_iota("int32", shape, 1)
    powers = powers if increasing else sub(literal(columns - 1, powers.dtype), powers)
    product = one = full(shape, 1, x.dtype)
    for k in range((columns - 1).bit_length()):
        has = ne(bitwise_and(powers, 1 << k), 0)
        factor = select(has, lax_shape.broadcast_in_dim(x, shape, (0,)), one)
        product = mul(product, factor) if k else factor
        x = mul(x, x)
    return product


complete_docstrings(globals(), {
    "dtype": "of the result; float32 (float64 with x64) by default.",
    "N": "number of rows.",
    "M": "number of columns; as many unless given.",
    "k": "which diagonal: 0 is the main one, positive ones lie above it; it may be traced.",
    "n": "number of rows.",
    "m": "array [..., n, m].",
    "arr": "matrix, or what has a shape and a dtype; its values are not read.",
}, returns="(rows, columns), two vectors of int32 (int64 with x64).")
