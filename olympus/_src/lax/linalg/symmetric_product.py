"""A matrix times its own transpose, added to another matrix: BLAS's syrk."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from ...base.typing import Array, ArrayLike, DType, IrValue
from ...base.util import real_number
from ...core.primitive import Builder, Primitive, Tangent, Zero
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.shape import definitely_equal
from ..arithmetic import mul
from ..families import add
from .core import (
    MatrixOperation, Results, Shape, check_square, matmul, matrix_transpose, total, tril,
)


class SymmetricProduct(MatrixOperation):
    """alpha a aᵀ + beta c."""

    ranks = (2, 2)
    accepts = frozenset(map(dtypes.as_dtype, ("float16", "bfloat16", "float32", "float64")))
    pace, work = 0.3, Primitive.work

    def results(self, dtype: DType, a: Shape, c: Shape, **params: Hashable) -> Results:
        check_square("symmetric_product", c, "c_matrix")
        if not definitely_equal(a[0], c[0]):
            raise ValueError(
                f"symmetric_product: a_matrix and c_matrix with trailing axes {list(a)} and "
                f"{list(c)} given; as many rows of one as of the other are required.")
        return [(c, dtype)]

    def emit(self, b: Builder, *xs: IrValue, **params: Hashable) -> list[IrValue]:
        return [b.inline(_scaled_gram_matrix, *xs, **params)]

    emit_empty = emit

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, alpha: float, beta: float
            ) -> tuple[Array, Tangent]:
        """alpha (ȧ aᵀ + a ȧᵀ) + beta ċ."""
        (a, c), (ta, tc) = primals, tangents
        tangent = None
        if type(ta) is not Zero:
            change = matmul(ta, matrix_transpose(a))
            tangent = _scalar_multiple(alpha, add(change, matrix_transpose(change)))
        if beta != 0 and type(tc) is not Zero:
            tangent = total(tangent, _scalar_multiple(beta, tc))
        out = self.bind(a, c, alpha=alpha, beta=beta)
        return out, Zero(typeof(out)) if tangent is None else tangent

    transpose = None


def _scalar_multiple(factor: float, x: Array) -> Array:
    return mul(literal(factor, typeof(x).dtype), x)


def _scaled_gram_matrix(a: Array, c: Array, *, alpha: float, beta: float) -> Array:
    out = _scalar_multiple(alpha, matmul(a, matrix_transpose(a)))
    return out if beta == 0 else add(out, _scalar_multiple(beta, c))


symmetric_product_p = SymmetricProduct("symmetric_product")


def symmetric_product(a_matrix: ArrayLike, c_matrix: ArrayLike, *, alpha: float = 1.0,
                      beta: float = 0.0, symmetrize_output: bool = False) -> Array:
    """alpha a aᵀ + beta c.

    Args:
      a_matrix: float[..., n, k].
      c_matrix: of the same dtype, [..., n, n]; not read if beta is 0.
      alpha, beta: Python numbers.
      symmetrize_output: repeat the lower triangle above the diagonal. Without, only the lower
        triangle should be used: a platform may leave the upper one unset.
    Returns: An array like c_matrix.

    >>> print(lax.linalg.symmetric_product(onp.array([[1.], [2.]]), onp.eye(2), beta=10.0))
    [[11.  2.]
     [ 2. 14.]]
    """
    out = symmetric_product_p.bind(
        a_matrix, c_matrix,
        alpha=real_number(alpha, "symmetric_product: alpha"),
        beta=real_number(beta, "symmetric_product: beta"))
    if not symmetrize_output:
        return out
    return add(tril(out), matrix_transpose(tril(out, -1)))
