"""The Cholesky factorisation and its rank-one update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...base.typing import Array, ArrayLike, DType, IrValue
from ...base.util import lazy_module
from ...core.primitive import Builder, Tangent, Zero
from ...core.trace import typeof
from ...types import dtypes
from ...types.avals import make_aval
from ...types.shape import definitely_equal
from ..arithmetic import div, mul, square, sub
from ..comparison import eq, select
from ..creation import full_like
from ..families import add
from ..shape import broadcast_in_dim, expand_dims
from ..slicing import dynamic_index_in_dim, dynamic_update_index_in_dim
from ..transcendental import sqrt
from . import kernels
from .core import (
    INT32, MatrixOperation, Results, Shape, adjoint, check_square, half, matmul, matrix_transpose,
    total, tril, triu,
)
from .solve import triangular_solve

REAL = frozenset(dtypes.as_dtype(d) for d in ("float32", "float64"))


class Cholesky(MatrixOperation):
    """L in L Lᴴ = x, read from the lower triangle of x; the upper one of L is not set."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.small_matrices"), 256
    transpose = None
    pace = 1.0

    def results(self, dtype: DType, shape: Shape) -> Results:
        check_square("cholesky", shape)
        return [(shape, dtype)]

    def emit(self, b: Builder, x: IrValue) -> Sequence[IrValue]:
        n, (aval,) = self.batch(b), b.avals_out
        if not kernels.has(b, "potrf"):     # XLA's own gives NaN too
            return [b.op("stablehlo.cholesky", [x], {"lower": b.attr("true")})]
        out, info = kernels.reported(b, "potrf", [x], [aval], n, kernels.triangle(b, True),
                                     (0,))
        return kernels.nan_unless(b, "EQ", info, n, [out], [aval])

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Tangent]:
        """L half(L⁻¹ ẋ L⁻ᴴ): Murray, "Differentiation of the Cholesky decomposition", 2016."""
        factor = tril(self.bind(*primals))
        # Only the lower triangle is read: the tangent is the Hermitian matrix that it stands for.
        lower = half(tangents[0])
        tangent = add(lower, adjoint(lower))
        inner = triangular_solve(factor, triangular_solve(factor, tangent, left_side=True,
                                                          lower=True),
                                 lower=True, transpose_a=True, conjugate_a=True)
        return factor, matmul(factor, half(inner))


class CholeskyUpdate(MatrixOperation):
    """R' in R'ᵀ R' = Rᵀ R + w wᵀ, by plane rotations that take w into R row by row."""

    ranks = (2, 1)
    accepts = REAL
    transpose = None

    def results(self, dtype: DType, r: Shape, w: Shape) -> Results:
        check_square("cholesky_update", r, "r_matrix")
        if not definitely_equal(r[0], w[0]):
            raise ValueError(f"cholesky_update: r_matrix with trailing axes {list(r)} and w_vector "
                             f"with {w[0]} elements given; {r[0]} elements are required.")
        return [(r, dtype)]

    def emit(self, b: Builder, r: IrValue, w: IrValue) -> Sequence[IrValue]:
        avals = [make_aval((), INT32), *b.avals_in]
        out, _ = b.counted_loop(avals[1].shape[-1], [r, w],
                                lambda i, values: b.traced(_rotate, [i, *values], avals))
        return b.traced(triu, [out], avals[1:2])   # rounding leaves specks below the diagonal

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Tangent]:
        """The tangent of the Cholesky factor of Rᵀ R + w wᵀ, whose upper factor is R'."""
        out = self.bind(*primals)
        (r, w), (tr, tw) = primals, tangents
        change: Any = None
        if type(tr) is not Zero:
            change = matmul(matrix_transpose(triu(r)), triu(tr))
        if type(tw) is not Zero:
            change = total(change, matmul(expand_dims(w, (-1,)), expand_dims(tw, (-2,))))
        change = add(change, matrix_transpose(change))
        inner = triangular_solve(out, triangular_solve(out, change, left_side=True,
                                                       transpose_a=True))
        return out, matmul(matrix_transpose(half(inner)), out)


def _rotate(i: Array, r: Array, w: Array) -> list[Array]:
    """Turn row i of r and w in their plane so that w[i] becomes zero."""
    n = typeof(w).ndim
    row = dynamic_index_in_dim(r, i, n - 1, False)
    a, b = dynamic_index_in_dim(row, i, n - 1), dynamic_index_in_dim(w, i, n - 1)
    length = sqrt(add(square(a), square(b)))
    still = eq(length, 0.0)
    safe = select(still, full_like(length, 1), length)
    cosine = select(still, full_like(length, 1), div(a, safe))
    c, s = (broadcast_in_dim(x, typeof(w).shape, range(n)) for x in (cosine, div(b, safe)))
    turned = add(mul(c, row), mul(s, w))
    rest = sub(mul(c, w), mul(s, row))
    return [dynamic_update_index_in_dim(r, turned, i, n - 1), rest]


cholesky_p = Cholesky("cholesky")
cholesky_update_p = CholeskyUpdate("cholesky_update")


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """The lower triangular L with L Lᴴ = x and a positive diagonal.

    Args:
      x: float[..., n, n] or complex: symmetric, or Hermitian, and positive definite.
      symmetrize_input: factor (x + xᴴ)/2; else only the lower triangle of x is read.
    Returns: L[..., n, n]; its lower triangle is NaN for each matrix that is not positive definite.

    >>> print(lax.linalg.cholesky(onp.array([[4., 2.], [2., 5.]])))
    [[2. 0.]
     [1. 2.]]
    """
    if symmetrize_input:
        x = symmetrize(cholesky_p, x)
    return tril(cholesky_p.bind(x))


def symmetrize(prim: MatrixOperation, x: ArrayLike) -> Array:
    """(x + xᴴ)/2 of x[..., n, n]."""
    prim.result_avals((typeof(x),), {})      # refuses inputs that the next line would not name
    return mul(add(x, adjoint(x)), 0.5)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """The upper triangular Cholesky factor of Rᵀ R + w wᵀ, in O(n²) operations.

    Args:
      r_matrix: R, float[..., n, n] upper triangular.
      w_vector: [..., n], of its dtype.
    Returns: The factor, [..., n, n].

    >>> print(lax.linalg.cholesky_update(3. * onp.eye(2), onp.array([4., 0.])))
    [[5. 0.]
     [0. 3.]]
    """
    return cholesky_update_p.bind(r_matrix, w_vector)
