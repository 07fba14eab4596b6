"""Factorisations of many small matrices and their solutions; XLA calls LAPACK for each.

They are written out over the entries, each an array over the matrices, which XLA:CPU vectorises.
Exchanges of rows are choices between rows, and what LAPACK reports is NaN here too.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence

from ...base.typing import Array, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.shape import prod
from ..arithmetic import abs, div, mul, sub
from ..bits import bitwise_and
from ..comparison import eq, gt, select
from ..creation import full
from ..linalg.cholesky import cholesky_p
from ..linalg.lu import lu_p, lu_solve_p
from ..linalg.solve import triangular_solve_p
from ..shape import reshape
from ..slicing import concatenate, slice
from ..transcendental import sqrt

INT32 = dtypes.as_dtype("int32")
Entries = list[list[Array]]     # by row and column, each an array over the matrices
# Found with tools/kernel_table.py: by rows of the matrix, how many matrices there must be: XLA
# compiles the formulas for longer. Right sides have no more columns than rows.
LEAST = {1: 256, 2: 256, 3: 1024, 4: 4096}


def _entries(x: Array) -> Entries:
    shape = typeof(x).shape
    n, m, count = shape[-2], shape[-1], prod(shape[:-2])
    x = reshape(x, (count, n, m))
    return [[reshape(slice(x, (0, i, j), (count, i + 1, j + 1)), (count,)) for j in range(m)]
            for i in range(n)]


def _vector(x: Array) -> list[Array]:
    shape = typeof(x).shape
    return _entries(reshape(x, (*shape[:-1], 1, shape[-1])))[0]


def _matrices(entries: Entries, batch: Sequence[int]) -> Array:
    """The matrices of these entries."""
    count = prod(batch)
    flat = concatenate([reshape(x, (count, 1)) for row in entries for x in row], 1)
    return reshape(flat, (*batch, len(entries), len(entries[0])))


def _of_size(b: Builder, size: int, columns: int = 1) -> bool:
    """Whether there are enough real matrices of so many rows, and not too many columns."""
    aval = b.avals_in[0]
    return size in LEAST and columns <= max(size, 1) and aval.dtype.kind == "f" and (
        dtypes.itemsize_bits(aval.dtype) >= 32) and aval.size >= size * size * LEAST[size]


def _is_small(b: Builder, x: IrValue) -> bool:
    n, m = b.avals_in[0].shape[-2:]
    return n == m and _of_size(b, n)


# LU, and solutions by it

def _lu(b: Builder, x: IrValue) -> list[IrValue]:
    # In memory: what reads the factors would factor anew.
    return [b.hold(out, aval) for out, aval in zip(b.by_rule(_eliminated, [x], b.avals_in),
                                                   b.avals_out, strict=True)]


def _eliminated(x: Array) -> list[Array]:
    """Gauss's elimination: at each step the row with the first largest pivot comes up."""
    batch, rows = typeof(x).shape[:-2], _entries(x)
    count, n = prod(batch), len(rows)
    order = [full((count,), i, INT32) for i in range(n)]
    pivots = []
    for c in range(n):
        best, at = abs(rows[c][c]), full((count,), c, INT32)
        for r in range(c + 1, n):
            size = abs(rows[r][c])
            better = gt(size, best)
            best, at = select(better, size, best), select(better, full((count,), r, INT32), at)
        pivots.append(at)
        here = {r: eq(at, r) for r in range(c + 1, n)}
        for lines in (rows, [[x] for x in order]):
            for j in range(len(lines[c])):
                top = found = lines[c][j]
                for r, there in here.items():
                    found = select(there, lines[r][j], found)
                    lines[r][j] = select(there, top, lines[r][j])
                lines[c][j] = found
            if lines is not rows:
                order = [line[0] for line in lines]
        pivot = rows[c][c]
        # A column of zeros stays: the factorisation is right all the same.
        safe = select(eq(pivot, literal(0, typeof(pivot).dtype)), full((count,), 1, pivot.dtype),
                      pivot)
        for r in range(c + 1, n):
            rows[r][c] = div(rows[r][c], safe)
            for j in range(c + 1, n):
                rows[r][j] = sub(rows[r][j], mul(rows[r][c], rows[c][j]))
    whole = [reshape(_matrices([entries], batch), (*batch, n)) for entries in (pivots, order)]
    return [_matrices(rows, batch), *whole]


def _is_small_solution(b: Builder, *xs: IrValue, transpose_a: bool) -> bool:
    n, m = b.avals_in[3].shape[-2:]
    return m > 0 and _of_size(b, n, m)


def _lu_solve(b: Builder, a: IrValue, factors: IrValue, order: IrValue, right: IrValue, *,
              transpose_a: bool) -> IrValue:
    fun = _solved_transposed if transpose_a else _solved
    return b.by_rule(fun, [factors, order, right], b.avals_in[1:])[0]


def _substituted(a: Entries, x: Entries, lower: bool, unit: bool) -> Entries:
    """The rows of y in a y = x, one after another, of a triangular a."""
    n, found = len(a), dict[int, list[Array]]()
    for i in range(n) if lower else reversed(range(n)):
        row = x[i]
        for k in range(i) if lower else range(n - 1, i, -1):
            row = [sub(v, mul(a[i][k], w)) for v, w in zip(row, found[k], strict=True)]
        found[i] = row if unit else [div(v, a[i][i]) for v in row]
    return [found[i] for i in range(n)]


def _solved(factors: Array, order: Array, right: Array) -> Array:
    a, places, rows = _entries(factors), _vector(order), _entries(right)
    moved = []
    for at in places:
        row = rows[0]
        for r in range(1, len(rows)):
            there = eq(at, r)
            row = [select(there, v, w) for v, w in zip(rows[r], row, strict=True)]
        moved.append(row)
    x = _substituted(a, _substituted(a, moved, True, True), False, False)
    return _matrices(x, typeof(right).shape[:-2])


def _solved_transposed(factors: Array, order: Array, right: Array) -> Array:
    a, places, rows = _transposed(_entries(factors)), _vector(order), _entries(right)
    x = _substituted(a, _substituted(a, rows, True, False), False, True)
    moved = []
    for i in range(len(rows)):      # row i is the one that came from there
        row = x[0]
        for r in range(1, len(rows)):
            there = eq(places[r], i)
            row = [select(there, v, w) for v, w in zip(x[r], row, strict=True)]
        moved.append(row)
    return _matrices(moved, typeof(right).shape[:-2])


def _transposed(x: Entries) -> Entries:
    return [list(column) for column in zip(*x, strict=True)]


def _is_small_triangle(b: Builder, *xs: IrValue, left_side: bool, **params: Hashable) -> bool:
    n, m = b.avals_in[1].shape[-2:]
    return min(n, m) > 0 and _of_size(b, *(n, m) if left_side else (m, n))


def _triangular_solve(b: Builder, a: IrValue, right: IrValue, **params: Hashable) -> IrValue:
    fun = functools.partial(_triangle_solved, **params)
    return b.by_rule(fun, [a, right], b.avals_in)[0]


def _triangle_solved(a: Array, right: Array, *, left_side: bool, lower: bool, transpose_a: bool,
                     unit_diagonal: bool, **params: Hashable) -> Array:
    given, x = _entries(a), _entries(right)
    if not left_side:       # x op(a) = b is op(a)ᵀ xᵀ = bᵀ
        x, transpose_a = _transposed(x), not transpose_a
    if transpose_a:
        given, lower = _transposed(given), not lower
    x = _substituted(given, x, lower, unit_diagonal)
    return _matrices(x if left_side else _transposed(x), typeof(right).shape[:-2])


# Cholesky's factorisation

def _cholesky(b: Builder, x: IrValue) -> IrValue:
    return b.by_rule(_lower_factor, [x], b.avals_in)[0]


def _lower_factor(x: Array) -> Array:
    """L by columns; NaN throughout where a number under a root is not positive."""
    batch, a = typeof(x).shape[:-2], _entries(x)
    count, n, dtype = prod(batch), len(a), typeof(x).dtype
    zeros, nan = [full((count,), v, dtype) for v in (0, float("nan"))]
    factor: Entries = [[zeros] * n for _ in range(n)]
    positive = None
    for j in range(n):
        under = a[j][j]
        for k in range(j):
            under = sub(under, mul(factor[j][k], factor[j][k]))
        more = gt(under, zeros)
        positive = more if positive is None else bitwise_and(positive, more)
        factor[j][j] = sqrt(under)
        for i in range(j + 1, n):
            rest = a[i][j]
            for k in range(j):
                rest = sub(rest, mul(factor[i][k], factor[j][k]))
            factor[i][j] = div(rest, factor[j][j])
    assert positive is not None
    return _matrices([[select(positive, v, nan) for v in row] for row in factor], batch)


_SLOW = "LAPACK is called for each matrix"
KERNELS = {
    lu_p: (Kernel("LU by entries", _SLOW, _is_small, _lu, 15.0),),
    lu_solve_p: (Kernel("solution by entries", _SLOW, _is_small_solution, _lu_solve),),
    triangular_solve_p: (Kernel("triangular solution by entries", _SLOW, _is_small_triangle,
                                _triangular_solve),),
    cholesky_p: (Kernel("Cholesky by entries", _SLOW, _is_small, _cholesky, 5.4),)}
