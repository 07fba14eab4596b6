"""The Cholesky factorisation and its rank-one update."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.trace import literal, typeof
from ...types.avals import make_aval
from .. import elementwise as ew
from .core import (
    INT32,
    MatrixOperation,
    Shape,
    adjoint,
    check_square,
    half,
    matmul,
    tril,
)
from .solve import triangular_solve

__all__ = ["cholesky", "cholesky_p"]


class Cholesky(MatrixOperation):
    """L in L Lᴴ = x, of which the lower triangle is read; the upper one of L is not set."""

    transpose = None

    def results(self, dtype: Any, shape: Shape) -> list[Any]:
        check_square("cholesky", shape)
        return [(shape, dtype)]

    def emit(self, b: Any, x: Any) -> list[Any]:
        n, (aval,) = self.batch(b), b.avals_out
        info = make_aval(aval.shape[:n], INT32)
        out, code = b.solver("potrf", [x], [aval, info], n, {"uplo": "L"}, (0,))
        return b.nan_unless(b.succeeded(code, info), [out], [aval])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """L half(L⁻¹ ẋ L⁻ᴴ): Murray, "Differentiation of the Cholesky decomposition", 2016."""
        factor = tril(self.bind(*primals))
        # Only the lower triangle is read: the tangent is the Hermitian matrix that it stands for.
        lower = half(tangents[0])
        tangent = ew.add(lower, adjoint(lower))
        inner = triangular_solve(factor, triangular_solve(factor, tangent, left_side=True,
                                                          lower=True),
                                 lower=True, transpose_a=True, conjugate_a=True)
        return factor, matmul(factor, half(inner))


cholesky_p = Cholesky("cholesky")


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular L with L Lᴴ = x and a positive diagonal.

    Args:
      x: float[..., n, n] or complex: symmetric, or Hermitian, and positive definite.
      symmetrize_input: factor (x + xᴴ)/2; else only the lower triangle of x is read.

    Returns:
      L[..., n, n]; its lower triangle is NaN for each matrix that is not positive definite.

    >>> import olympus.numpy as onp
    >>> from olympus import lax
    >>> print(lax.linalg.cholesky(onp.array([[4., 2.], [2., 5.]])))
    [[2. 0.]
     [1. 2.]]
    """
    if symmetrize_input:
        x = symmetrize(cholesky_p, x)
    return tril(cholesky_p.bind(x))


def symmetrize(prim: MatrixOperation, x: Any) -> Any:
    """(x + xᴴ)/2 of x[..., n, n]."""
    aval = typeof(x)
    prim.result_avals((aval,), {})      # refuses what the next line would not name
    return ew.mul(ew.add(x, adjoint(x)), literal(0.5, aval.dtype))
