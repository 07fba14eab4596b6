"""The LU factorisation with partial pivoting, and permutations from its row exchanges."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ...base.typing import Array, ArrayLike, DType, IrValue
from ...base.util import lazy_module
from ...core.primitive import Axis, Builder, Cotangent, Linear, Tangent, Zero
from ...core.trace import typeof
from ...types.avals import ShapedArray, make_aval
from ...types.shape import (
    broadcast_shapes, canonical_dim, definitely_equal, is_static, known_less, minimum, prod,
)
from ..arithmetic import neg, sub
from ..barriers import stop_gradient
from ..comparison import eq, select
from ..creation import broadcasted_iota
from ..families import add
from ..shape import broadcast_in_dim, check_element, reduce_sum, reshape, transpose, zeros_of
from ..slicing import concatenate, dynamic_index_in_dim
from ..sort import sort
from . import kernels
from .core import (
    INT32, MatrixOperation, Results, Shape, check_square, columns, eye, matmul, matrix_transpose,
    merged, rows, take_rows, total, tril, triu,
)
from .solve import triangular_solve


class Lu(MatrixOperation):
    """x[permutation] = L U: L, of unit diagonal, and U in one array; pivots are row exchanges."""

    multiple_results = True
    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.small_matrices"), 256
    transpose = None
    pace = 1.0

    def results(self, dtype: DType, shape: Shape) -> Results:
        return [(shape, dtype), ((minimum(*shape),), INT32), (shape[:1], INT32)]

    def emit(self, b: Builder, x: IrValue) -> list[IrValue]:
        n, (out, pivot, order) = self.batch(b), b.avals_out
        if b.platform == "tpu":
            return kernels.xla_call(b, "LuDecomposition", [x], b.avals_out, {
                "api_version": b.attr("2 : i32")})
        factors, pivots, info = kernels.reported(b, "getrf", [x], [out, pivot], n, {}, (0,))
        # A positive info says that U is singular: the factorisation is right all the same.
        (factors,) = kernels.nan_unless(b, "GE", info, n, [factors], [out])
        pivots = b.op("stablehlo.subtract", [pivots, b.full(pivot, 1)], None, pivot)
        return [factors, pivots, emit_permutation(b, pivots, pivot, order)]

    def emit_empty(self, b: Builder, x: IrValue) -> list[IrValue]:
        out, pivot, order = b.avals_out
        identity = b.traced(lambda: _column_numbers(order), [], [])
        return [b.full(out, 0), b.full(pivot, 0), *identity]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        """L stril(F) and triu(F) U, where F = L⁻¹ ẋ U⁻¹: de Hoog, Anderssen and Lukas,
        "Differentiation of matrix functionals using triangular factorization", 2011. What
        sticks out of the leading square follows from it by the product rule."""
        factors, pivots, order = self.bind(*primals)
        m, n = typeof(factors).shape[-2:]
        k = minimum(m, n)
        t = take_rows(tangents[0], order)
        square = rows(columns(factors, 0, k), 0, k)
        lower = add(tril(square, -1), eye(square))
        inner = _left(square, rows(t, 0, k))
        f = _right(square, columns(inner, 0, k))
        t_lower, t_upper = matmul(lower, tril(f, -1)), matmul(triu(f), triu(square))
        out = add(t_lower, t_upper)
        if not definitely_equal(k, m):
            below = sub(rows(t, k, None), matmul(rows(factors, k, None), t_upper))
            out = concatenate([out, _right(square, below)], typeof(t).ndim - 2)
        if not definitely_equal(k, n):
            right = sub(columns(inner, k, None), matmul(tril(f, -1), columns(
                rows(factors, 0, k), k, None)))
            out = concatenate([out, right], typeof(t).ndim - 1)
        return [factors, pivots, order], [out, *(Zero(typeof(x).to_tangent_aval())
                                                 for x in (pivots, order))]


def _left(factors: Array, x: Array) -> Array:
    """L⁻¹ x."""
    return triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True)


def _right(factors: Array, x: Array) -> Array:
    """x U⁻¹."""
    return triangular_solve(factors, x)


class LuSolve(MatrixOperation):
    """a⁻¹ b, or a⁻ᵀ b if `transpose_a`, by factors and permutation of the value of a.

    The factors have no part in derivatives, which are the derivatives of a⁻¹ b by a and b; so all
    are solutions with the same factors, and as accurate as the solution itself.
    """

    ranks = (2, 2, 1, 2)
    indices = (2,)
    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.small_matrices"), 256
    pace = 4.0

    def results(self, dtype: DType, a: Shape, factors: Shape, order: Shape, b: Shape, *,
                transpose_a: bool) -> Results:
        check_square("solve", a, "matrix a")
        if not definitely_equal(a[0], b[0]):
            raise ValueError(f"solve: a and b with trailing axes {list(a)} and {list(b)} given; b "
                             f"must have {a[0]} rows; transpose or reshape it.")
        return [(b, dtype)]

    def lower(self, b: Builder, *xs: IrValue, transpose_a: bool) -> IrValue:
        composed = _lu_solved_transpose if transpose_a else _lu_solved
        return b.traced(composed, xs[1:], b.avals_in[1:])[0]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, transpose_a: bool
            ) -> tuple[Array, Tangent]:
        a, factors, order, _ = primals
        ta, _, _, tb = tangents
        x = self.bind(*primals, transpose_a=transpose_a)
        right = None
        if type(ta) is not Zero:
            right = neg(matmul(matrix_transpose(ta) if transpose_a else ta, x))
        right = total(tb, right)
        if right is None:
            return x, Zero(typeof(x).to_tangent_aval())
        return x, self.bind(a, factors, order, right, transpose_a=transpose_a)

    def transpose(self, ct: Array, a: Array, factors: Array, order: Array, b: Linear, *,
                  transpose_a: bool) -> list[Cotangent]:
        return [None, None, None, self.bind(a, factors, order, ct, transpose_a=not transpose_a)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Any, list[int] | int]:
        if any(d is not None for d in dims[:3]):
            return super().vmap(axis, args, dims, **params)
        check_element(self, axis, args, dims, params)
        free = typeof(args[3]).ndim - 2
        flat, shape = merged(args[3], dims[3], free)
        return reshape(self.bind(*args[:3], flat, **params), shape), free


def _lu_solved(factors: Array, order: Array, b: Array) -> Array:
    return triangular_solve(factors, _left(factors, take_rows(b, order)), left_side=True)


def _lu_solved_transpose(factors: Array, order: Array, b: Array) -> Array:
    x = triangular_solve(factors, b, left_side=True, transpose_a=True)
    x = triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True,
                         transpose_a=True)
    _, back = sort([order, _column_numbers(typeof(order))])
    return take_rows(x, back)


class LuPivotsToPermutation(MatrixOperation):
    """The permutation that row exchanges i <-> pivots[i], one after another, result in."""

    ranks = (1,)
    accepts = frozenset((INT32,))
    jvp = transpose = None      # integers

    def results(self, dtype: DType, shape: Shape, *, permutation_size: int) -> Results:
        if known_less(permutation_size, shape[0]):
            raise ValueError(f"lu_pivots_to_permutation: {shape[0]} pivots and permutation_size "
                             f"{permutation_size} given; at least {shape[0]} is required.")
        return [((permutation_size,), INT32)]

    def emit(self, b: Builder, pivots: IrValue, *, permutation_size: int) -> list[IrValue]:
        return [emit_permutation(b, pivots, b.avals_in[0], b.avals_out[0])]

    def emit_empty(self, b: Builder, pivots: IrValue, *, permutation_size: int) -> list[IrValue]:
        return self.emit(b, pivots, permutation_size=permutation_size)


def emit_permutation(b: Builder, pivots: IrValue, pivot: ShapedArray, order: ShapedArray
                     ) -> IrValue:
    """Emit a loop over the exchanges, which all batch elements make at once, or a GPU's kernel."""
    if kernels.has(b, "lu_pivots") and is_static((*pivot.shape, *order.shape)) and 0 not in (
            pivot.shape):
        return kernels.call(b, "lu_pivots", [pivots], [order], order.ndim - 1)[0]
    (identity,) = b.traced(lambda: _column_numbers(order), [], [])
    index = make_aval((), INT32)

    def step(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        return b.traced(_exchange, [i, pivots, *values], [index, pivot, order])

    return b.counted_loop(pivot.shape[-1], [identity], step)[0]


def _column_numbers(aval: ShapedArray) -> Array:
    return broadcasted_iota(INT32, aval.shape, aval.ndim - 1)


def _exchange(i: Array, pivots: Array, order: Array) -> Array:
    """`order` with its elements i and pivots[i] exchanged."""
    aval = typeof(order)
    last = aval.ndim - 1
    batch, every = tuple(range(last)), tuple(range(aval.ndim))
    other = broadcast_in_dim(dynamic_index_in_dim(pivots, i, last), aval.shape, every)
    there = eq(_column_numbers(aval), other)
    here = eq(_column_numbers(aval), i)
    mine = broadcast_in_dim(dynamic_index_in_dim(order, i, last), aval.shape, every)
    exchanged = reduce_sum(select(there, order, zeros_of(aval)), (last,))
    return select(here, broadcast_in_dim(exchanged, aval.shape, batch),
                  select(there, mine, order))


lu_p = Lu("lu")
lu_solve_p = LuSolve("lu_solve")
lu_pivots_to_permutation_p = LuPivotsToPermutation("lu_pivots_to_permutation")


def lu(x: ArrayLike) -> list[Array]:
    """Factor matrices as x[permutation] = L U, exchanging rows for the largest pivot.

    Args: x: float[..., m, n] or complex.

    Returns:
      A list, of k = min(m, n):
      lu[..., m, n]: U on and above the diagonal; below it L, whose diagonal of ones is left out.
      pivots: int32[..., k]: at step i, rows i and pivots[i] were exchanged.
      permutation: int32[..., m].
      A singular matrix has zeros on U's diagonal; derivatives are not finite there.

    >>> for out in lax.linalg.lu(onp.array([[1., 2.], [4., 4.]])):
    ...     print(out)
    [[4.   4.  ]
     [0.25 1.  ]]
    [1 1]
    [1 0]
    """
    return list(lu_p.bind(x))


def lu_solve(a: ArrayLike, b: ArrayLike) -> Array:
    """x[..., n, m] in a[..., n, n] x = b[..., n, m]; either may have no leading axes.

    Infinite or NaN where a is singular. Linear in b: it can be transposed.
    """
    factors, _, order = lu_p.bind(stop_gradient(a))
    batch, other = typeof(a).shape[:-2], typeof(b).shape[:-2]
    if not batch and other:     # one matrix: the batch of b becomes columns
        n = typeof(b).ndim
        rows_first = transpose(b, (n - 2, *range(n - 2), n - 1))
        shape = typeof(rows_first).shape
        flat = reshape(rows_first, (shape[0], prod(shape[1:])))
        x = lu_solve_p.bind(a, factors, order, flat, transpose_a=False)
        return transpose(reshape(x, shape), (*range(1, n - 1), 0, n - 1))
    shape = broadcast_shapes(batch, other)
    xs = [broadcast_batch(x, shape, rank)
          for x, rank in ((a, 2), (factors, 2), (order, 1), (b, 2))]
    return lu_solve_p.bind(*xs, transpose_a=False)


def broadcast_batch(x: ArrayLike, batch: Shape, rank: int) -> Array:
    """x[..., *trailing] with leading axes broadcast to `batch`."""
    shape = typeof(x).shape
    first = len(shape) - rank
    start = len(batch) - first
    return broadcast_in_dim(x, (*batch, *shape[first:]), range(start, start + len(shape)))


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """The permutation of rows that the pivots of an LU factorisation stand for.

    Args:
      pivots: int32[..., k]: at step i, elements i and pivots[i] are exchanged.
      permutation_size: the number of rows, at least k.
    Returns: int32[..., permutation_size].

    >>> print(lax.linalg.lu_pivots_to_permutation(onp.array([2, 2]), 3))
    [2 0 1]
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=canonical_dim(
        permutation_size, "lu_pivots_to_permutation: permutation_size"))
