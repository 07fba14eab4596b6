"""Linear systems with triangular and tridiagonal matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...core.primitive import Axis, Zero
from ...core.trace import typeof
from ...types import dtypes
from ...types.shape import definitely_equal, prod
from .. import elementwise as ew
from ..shape import expand_dims, move_axis, reshape, squeeze
from .core import (
    LAPACK,
    MatrixOperation,
    Shape,
    check_square,
    matmul,
    matrix_transpose,
    total,
    traced,
    tril,
    triu,
)

__all__ = ["triangular_solve", "triangular_solve_p"]

HALVES = frozenset(dtypes.as_dtype(d) for d in ("float16", "bfloat16"))


class TriangularSolve(MatrixOperation):
    """x in op(a) x = b, or x op(a) = b: one triangle of a is read; op conjugates and transposes."""

    ranks = (2, 2)
    accepts = LAPACK | HALVES

    def results(self, dtype: Any, a: Shape, b: Shape, *, left_side: bool, **params: Any
                ) -> list[Any]:
        check_square("triangular_solve", a, "matrix a")
        if not definitely_equal(b[0 if left_side else 1], a[0]):
            raise ValueError(
                f"triangular_solve: a and b with trailing axes {list(a)} and {list(b)} given, "
                f"left_side={left_side}; b must have {a[0]} {'rows' if left_side else 'columns'}; "
                f"{'transpose b' if left_side else 'pass left_side=True'} if that is meant.")
        return [(b, dtype)]

    def emit(self, b: Any, x: Any, y: Any, *, left_side: bool, lower: bool, transpose_a: bool,
             conjugate_a: bool, unit_diagonal: bool) -> list[Any]:
        (aval, out), conjugate_only = b.avals_in, conjugate_a and not transpose_a
        if conjugate_only and aval.dtype.kind == "c":
            # No kernel conjugates without transposing.
            (x,) = traced(b, ew.conj, [x], [aval])
        if b.platform == "cpu" and aval.dtype in LAPACK:
            how = ("C" if conjugate_a else "T") if transpose_a else "N"
            return b.solver("trsm", [x, y], [out], self.batch(b), {
                "side": "L" if left_side else "R", "uplo": "L" if lower else "U", "trans_x": how,
                "diag": "U" if unit_diagonal else "N"}, (None, 0))
        how = ("ADJOINT" if conjugate_a else "TRANSPOSE") if transpose_a else "NO_TRANSPOSE"
        flags = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
        return [b.op("stablehlo.triangular_solve", [x, y], {
            "transpose_a": b.attr(f"#stablehlo<transpose {how}>"),
            **{k: b.attr("true" if v else "false") for k, v in flags.items()}})]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        """op(a)⁻¹ (ḃ - op(ȧ) x): Giles, "Matrix derivative results", 2008, §2.3."""
        (a, b), (ta, tb) = primals, tangents
        x = self.bind(a, b, **params)
        right = None
        if type(ta) is not Zero:
            triangle = tril if params["lower"] else triu
            ta = triangle(ta, (-1 if params["lower"] else 1) if params["unit_diagonal"] else 0)
            if params["transpose_a"]:
                ta = matrix_transpose(ta)
            if params["conjugate_a"] and typeof(ta).dtype.kind == "c":
                ta = ew.conj(ta)
            right = ew.neg(matmul(ta, x) if params["left_side"] else matmul(x, ta))
        return x, self.bind(a, total(tb, right), **params)

    def transpose(self, ct: Any, a: Any, b: Any, *, transpose_a: bool, **params: Any) -> list[Any]:
        return [None, self.bind(a, ct, transpose_a=not transpose_a, **params)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[Any], **params: Any) -> Any:
        (a, b), (da, db) = args, dims
        if da is not None:
            return super().vmap(axis, args, dims, **params)
        # One matrix for all right-hand sides: they become columns (rows) of one.
        free = typeof(b).ndim - 2 if params["left_side"] else typeof(b).ndim - 3
        b = move_axis(b, db, free)
        shape = typeof(b).shape
        flat = reshape(b, (*shape[:free], prod(shape[free:free + 2]), *shape[free + 2:]))
        return reshape(self.bind(a, flat, **params), shape), free


triangular_solve_p = TriangularSolve("triangular_solve")


def triangular_solve(a: Any, b: Any, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Any:
    """Solve x op(a) = b, or op(a) x = b if `left_side`, for x.

    Args:
      a: float[..., n, n] or complex; only one triangle of it is read.
      b: [..., m, n], [..., n, m] if `left_side`, or vectors [..., n]; of a's dtype.
      lower: read the lower triangle of a, else the upper one.
      transpose_a, conjugate_a: op(a) is a transposed, conjugated.
      unit_diagonal: take the diagonal of a as ones, without reading it.

    Returns:
      An array like b; infinite or NaN where the matrix is singular.

    >>> import olympus.numpy as onp
    >>> from olympus import lax
    >>> a = onp.array([[2., 0.], [1., 4.]])
    >>> print(lax.linalg.triangular_solve(a, onp.array([2., 9.]), left_side=True, lower=True))
    [1. 2.]
    """
    vector = typeof(b).ndim + 1 == typeof(a).ndim
    if vector:
        b = expand_dims(b, (-1,) if left_side else (-2,))
    out = triangular_solve_p.bind(a, b, left_side=bool(left_side), lower=bool(lower),
                                  transpose_a=bool(transpose_a), conjugate_a=bool(conjugate_a),
                                  unit_diagonal=bool(unit_diagonal))
    return squeeze(out, (-1,) if left_side else (-2,)) if vector else out
