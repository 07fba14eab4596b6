"""The LU factorisation with partial pivoting, and permutations from its row exchanges."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.primitive import Zero
from ...core.trace import typeof
from ...types.avals import ShapedArray, make_aval
from .. import elementwise as ew
from ..creation import broadcasted_iota
from ..shape import broadcast_in_dim, reduce_sum, zeros_of
from ..slicing import concatenate, dynamic_index_in_dim
from .core import (
    INT32,
    MatrixOperation,
    Shape,
    columns,
    eye,
    matmul,
    rows,
    take_rows,
    traced,
    tril,
    triu,
)
from .solve import triangular_solve

__all__ = ["lu", "lu_p", "lu_pivots_to_permutation", "lu_pivots_to_permutation_p"]


class Lu(MatrixOperation):
    """x[permutation] = L U: L, of unit diagonal, and U in one array; pivots are row exchanges."""

    multiple_results = True
    transpose = None

    def results(self, dtype: Any, shape: Shape) -> list[Any]:
        return [(shape, dtype), ((min(shape),), INT32), (shape[:1], INT32)]

    def emit(self, b: Any, x: Any) -> list[Any]:
        n, (out, pivot, order) = self.batch(b), b.avals_out
        info = make_aval(out.shape[:n], INT32)
        factors, pivots, code = b.solver("getrf", [x], [out, pivot, info], n, {}, (0,))
        # A positive code says that U is singular: the factorisation is right all the same.
        (factors,) = b.nan_unless(b.succeeded(code, info, "GE"), [factors], [out])
        pivots = b.op("stablehlo.subtract", [pivots, b.full(pivot, 1)], None, pivot)
        return [factors, pivots, emit_permutation(b, pivots, pivot, order)]

    def emit_empty(self, b: Any, x: Any) -> list[Any]:
        out, pivot, order = b.avals_out
        identity = traced(b, lambda: _places(order), [], [])
        return [b.full(out, 0), b.full(pivot, 0), *identity]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """L stril(F) and triu(F) U, where F = L⁻¹ ẋ U⁻¹: de Hoog, Anderssen and Lukas,
        "Differentiation of matrix functionals using triangular factorization", 2011. What
        sticks out of the leading square follows from it by the product rule."""
        factors, pivots, order = self.bind(*primals)
        m, n = typeof(factors).shape[-2:]
        k = min(m, n)
        t = take_rows(tangents[0], order)
        square = rows(columns(factors, 0, k), 0, k)
        lower = ew.add(tril(square, -1), eye(square))
        inner = _left(square, rows(t, 0, k))
        f = _right(square, columns(inner, 0, k))
        t_lower, t_upper = matmul(lower, tril(f, -1)), matmul(triu(f), triu(square))
        out = ew.add(t_lower, t_upper)
        if m > k:
            below = ew.sub(rows(t, k, None), matmul(rows(factors, k, None), t_upper))
            out = concatenate([out, _right(square, below)], typeof(t).ndim - 2)
        if n > k:
            right = ew.sub(columns(inner, k, None), matmul(tril(f, -1), columns(
                rows(factors, 0, k), k, None)))
            out = concatenate([out, right], typeof(t).ndim - 1)
        return [factors, pivots, order], [out, *(Zero(typeof(x).to_tangent_aval())
                                                 for x in (pivots, order))]


def _left(factors: Any, x: Any) -> Any:
    """L⁻¹ x."""
    return triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True)


def _right(factors: Any, x: Any) -> Any:
    """x U⁻¹."""
    return triangular_solve(factors, x)


class LuPivotsToPermutation(MatrixOperation):
    """The permutation that row exchanges i <-> pivots[i], one after another, result in."""

    ranks = (1,)
    accepts = frozenset((INT32,))
    jvp = transpose = None      # integers

    def results(self, dtype: Any, shape: Shape, *, permutation_size: int) -> list[Any]:
        if permutation_size < shape[0]:
            raise ValueError(f"lu_pivots_to_permutation: {shape[0]} pivots and permutation_size "
                             f"{permutation_size} given; at least {shape[0]} is required.")
        return [((permutation_size,), INT32)]

    def emit(self, b: Any, pivots: Any, *, permutation_size: int) -> list[Any]:
        return [emit_permutation(b, pivots, b.avals_in[0], b.avals_out[0])]

    def emit_empty(self, b: Any, pivots: Any, *, permutation_size: int) -> list[Any]:
        return self.emit(b, pivots, permutation_size=permutation_size)


def emit_permutation(b: Any, pivots: Any, pivot: ShapedArray, order: ShapedArray) -> Any:
    """Emit a loop over the exchanges, which all batch elements make at once."""
    (identity,) = traced(b, lambda: _places(order), [], [])
    index = make_aval((), INT32)

    def step(i: Any, values: Sequence[Any]) -> list[Any]:
        return traced(b, _exchange, [i, pivots, *values], [index, pivot, order])

    return b.counted_loop(pivot.shape[-1], [identity], step)[0]


def _places(aval: ShapedArray) -> Any:
    return broadcasted_iota(INT32, aval.shape, aval.ndim - 1)


def _exchange(i: Any, pivots: Any, order: Any) -> Any:
    """`order` with its elements i and pivots[i] exchanged."""
    aval = typeof(order)
    last = aval.ndim - 1
    batch, every = tuple(range(last)), tuple(range(aval.ndim))
    other = broadcast_in_dim(dynamic_index_in_dim(pivots, i, last), aval.shape, every)
    there = ew.eq(_places(aval), other)
    here = ew.eq(_places(aval), i)
    mine = broadcast_in_dim(dynamic_index_in_dim(order, i, last), aval.shape, every)
    found = reduce_sum(ew.select(there, order, zeros_of(aval)), (last,))
    return ew.select(here, broadcast_in_dim(found, aval.shape, batch),
                     ew.select(there, mine, order))


lu_p = Lu("lu")
lu_pivots_to_permutation_p = LuPivotsToPermutation("lu_pivots_to_permutation")


def lu(x: Any) -> tuple[Any, Any, Any]:
    """Factor matrices as x[permutation] = L U, exchanging rows for the largest pivot.

    Args:
      x: float[..., m, n] or complex.

    Returns:
      Of k = min(m, n):
      lu[..., m, n]: U on and above the diagonal; below it L, whose diagonal of ones is left out.
      pivots: int32[..., k]: at step i, rows i and pivots[i] were exchanged.
      permutation: int32[..., m].
      A singular matrix has zeros on U's diagonal; derivatives are not finite there.

    >>> import olympus.numpy as onp
    >>> from olympus import lax
    >>> for out in lax.linalg.lu(onp.array([[1., 2.], [4., 4.]])):
    ...     print(out)
    [[4.   4.  ]
     [0.25 1.  ]]
    [1 1]
    [1 0]
    """
    return tuple(lu_p.bind(x))


def lu_pivots_to_permutation(pivots: Any, permutation_size: int) -> Any:
    """The permutation of rows that the pivots of an LU factorisation stand for.

    Args:
      pivots: int32[..., k]: at step i, elements i and pivots[i] are exchanged.
      permutation_size: the number of rows, at least k.

    Returns:
      int32[..., permutation_size].

    >>> import olympus.numpy as onp
    >>> from olympus import lax
    >>> print(lax.linalg.lu_pivots_to_permutation(onp.array([2, 2]), 3))
    [2 0 1]
    """
    return lu_pivots_to_permutation_p.bind(pivots, permutation_size=int(permutation_size))
