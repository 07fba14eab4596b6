"""The Schur decomposition x = z t zᴴ of general matrices, and its derivative.

t is upper triangular; of real matrices, block upper triangular with blocks of one or two rows. The
derivative solves triangular systems column by column, hence a loop, hence this layer.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

from ..base.typing import Array, ArrayLike, DType, IrValue
from ..control_flow.while_loop import fori_loop
from ..core.primitive import Builder, Tangent
from ..core.trace import typeof
from ..lax import arithmetic
from ..lax.arithmetic import div, mul, real, sign, sub
from ..lax.bits import bitwise_or
from ..lax.comparison import eq, gt, le, ne, select
from ..lax.convert import convert_element_type
from ..lax.creation import broadcasted_iota, full_like
from ..lax.families import add
from ..lax.linalg import kernels
from ..lax.linalg.core import (
    INT32, MatrixOperation, Results, Shape, adjoint, check_square, diagonal, eye, masked, matmul,
    matrix_transpose,
)
from ..lax.linalg.solve import triangular_solve
from ..lax.shape import broadcast_in_dim, reduce_sum
from ..lax.slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim, pad, slice_in_dim
from ..lax.transcendental import sqrt
from ..types import dtypes
from ..types.avals import make_aval
from .schur_order import Select, reordered


class Schur(MatrixOperation):
    """t and, if `compute_schur_vectors`, z, with x = z t zᴴ."""

    multiple_results = True
    transpose = None

    def results(self, dtype: DType, shape: Shape, *, compute_schur_vectors: bool, **params: Hashable
                ) -> Results:
        check_square("schur", shape)
        return [(shape, dtype)] * (1 + compute_schur_vectors)

    def emit(self, b: Builder, x: IrValue, *, compute_schur_vectors: bool, sort_eig_vals: bool,
             select_callable: Any) -> Sequence[IrValue]:
        n, (aval,), outs = self.batch(b), b.avals_in, list(b.avals_out)
        count = make_aval(aval.shape[:n], INT32)
        values = [aval.update(shape=aval.shape[:-1])] * (1 if aval.dtype.kind == "c" else 2)
        vectors = compute_schur_vectors or sort_eig_vals
        t, z, *_, info = kernels.reported(b, "gees", [x], [aval, aval, *values, count], n, {
            "mode": "V" if vectors else "N", "sort": "N"}, (0,))
        if sort_eig_vals:
            t, z = b.traced(lambda t, z: reordered(t, z, select_callable), [t, z], [aval, aval])
        return kernels.nan_unless(b, "EQ", info, n, [t, z][:len(outs)], outs)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *,
            compute_schur_vectors: bool, **params: Hashable
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        """ż = zΩ and ṫ = M + tΩ - Ωt, M = zᴴẋz, for the skew-Hermitian Ω that keeps t triangular.

        In a block of two rows of a real t, Ω further keeps the two diagonal elements equal, as
        LAPACK has them. It moves no phase of a complex vector.
        """
        t, z = self.bind(*primals, compute_schur_vectors=True, **params)
        inner = matmul(adjoint(z), matmul(tangents[0], z))
        if typeof(t).size == 0:
            turn = inner
        else:
            turn = (_turn if typeof(t).dtype.kind == "c" else _real_turn)(t, inner)
        change = _without_lower(t, _changed(t, inner, turn))
        outs, rates = [t, z], [change, matmul(z, turn)]
        kept = 1 + compute_schur_vectors
        return outs[:kept], rates[:kept]


def _changed(t: Array, inner: Array, turn: Array) -> Array:
    return add(inner, sub(matmul(t, turn), matmul(turn, t)))


def _offset(x: ArrayLike, k: int) -> Array:
    """bool[n, n]: the k-th diagonal."""
    shape = typeof(x).shape[-2:]
    return eq(add(broadcasted_iota(INT32, shape, 0), k), broadcasted_iota(INT32, shape, 1))


def _without_lower(t: ArrayLike, x: ArrayLike) -> Array:
    """x where t may be different from zero: its upper triangle and blocks."""
    shape = typeof(t).shape
    upper = le(broadcasted_iota(INT32, shape, len(shape) - 2),
               broadcasted_iota(INT32, shape, len(shape) - 1))
    if typeof(t).dtype.kind != "c":
        upper = bitwise_or(upper, ne(masked(t, _offset(t, -1)), 0.0))
    return select(upper, x, full_like(x, 0))


def _turn(t: Array, inner: Array) -> Array:
    """The skew-Hermitian Ω for a triangular t."""
    starts = full_like(t, False, bool, typeof(t).shape[:-1])
    lower = _below(t, inner, starts)
    return sub(lower, adjoint(lower))


def _below(t: ArrayLike, inner: Array, starts: ArrayLike) -> Array:
    """Ω below the blocks of t, where Ωt - tΩ is `inner`: column after column.

    Column j of the equation is (t_jj - t) Ω_j = inner_j - Σ Ω_k t_kj, of k < j, in rows below the
    block that column j is in; `starts`[..., n] says whether the first of two rows is j.
    """
    aval = typeof(t)
    last, shape = aval.ndim - 1, aval.shape
    row = broadcasted_iota(INT32, shape, last - 1)
    ones, ends = eye(t), convert_element_type(starts, INT32)
    ends = add(ends, broadcasted_iota(INT32, shape[:-1], last - 1))
    values = diagonal(t)

    def column(j: ArrayLike, below: ArrayLike) -> Array:
        j = convert_element_type(j, INT32)
        end = dynamic_slice_in_dim(ends, j, 1, last - 1)
        value = dynamic_slice_in_dim(values, j, 1, last - 1)
        active = gt(row, broadcast_in_dim(end, shape, tuple(range(last))))
        value = broadcast_in_dim(value, shape, tuple(range(last)))
        system = select(active, sub(mul(value, ones), t), ones)
        known = matmul(below, dynamic_slice_in_dim(t, j, 1, last))
        right = sub(dynamic_slice_in_dim(inner, j, 1, last), known)
        right = select(slice_in_dim(active, 0, 1, axis=last), right, full_like(right, 0))
        solved = triangular_solve(system, right, left_side=True)
        return dynamic_update_slice_in_dim(below, solved, j, last)

    return fori_loop(0, shape[-1], column, full_like(t, 0))


def _real_turn(t: Array, inner: Array) -> Array:
    """The skew-symmetric Ω for a block triangular t.

    A unitary w that makes the blocks triangular, and thereby t, reduces this to the triangular
    case; the rest is the rotation within each block.
    """
    last = typeof(t).ndim - 1
    above = reduce_sum(masked(t, _offset(t, 1)), (last,))            # t[i, i+1] at i
    under = reduce_sum(masked(t, _offset(t, -1)), (last - 1,))       # t[i+1, i] at i
    starts = ne(under, 0.0)
    w = _triangulating(t, above, under, starts)
    inside = matmul(adjoint(w), matmul(_complex(t), w))
    given = matmul(adjoint(w), matmul(_complex(inner), w))
    below = real(matmul(w, matmul(_below(inside, given, starts), adjoint(w))))
    turn = sub(below, matrix_transpose(below))
    # A rotation by ω within the block ((a, b), (c, a)) changes the difference of its diagonal
    # elements by 2ω(b + c).
    uneven = diagonal(_changed(t, inner, turn))
    uneven = sub(uneven, _shifted(uneven, -1))
    weights = select(starts, mul(add(above, under), -2.0), full_like(above, 1))
    angles = select(starts, div(uneven, weights), full_like(above, 0))
    lower = _placed(angles, t, -1)
    return add(turn, sub(lower, matrix_transpose(lower)))


def _complex(x: Array) -> Array:
    return convert_element_type(x, dtypes.to_complex_dtype(typeof(x).dtype))


def _triangulating(t: Array, above: Array, under: Array, starts: Array) -> Array:
    """The unitary matrix that is ((α, iβ), (iβ, α)) for the block ((a, b), (c, a)), bc < 0.

    Its first column is an eigenvector: α = sqrt(|b|), β = sign(b) sqrt(|c|), normalised.
    """
    one = full_like(above, 1)
    above, under = select(starts, above, one), select(starts, under, one)
    size = add(arithmetic.abs(above), arithmetic.abs(under))
    alpha = select(starts, sqrt(div(arithmetic.abs(above), size)), full_like(above, 0))
    beta = mul(sign(above), sqrt(div(arithmetic.abs(under), size)))
    beta = _placed(select(starts, beta, full_like(beta, 0)), t, -1)
    alpha = add(alpha, _shifted(alpha, 1))
    alpha = select(eq(alpha, 0.0), one, alpha)
    return arithmetic.complex(_placed(alpha, t, 0), add(beta, matrix_transpose(beta)))


def _shifted(x: Array, by: int) -> Array:
    """x[..., n] with its elements moved `by` places, zeros moving in."""
    config = [(0, 0, 0)] * (typeof(x).ndim - 1) + [(by, -by, 0)]
    return pad(x, full_like(x, 0, shape=()), config)


def _placed(x: Array, t: Array, k: int) -> Array:
    """A matrix like t with x[..., j] in column j of its k-th diagonal, else zeros."""
    last = typeof(t).ndim - 1
    wide = broadcast_in_dim(x, typeof(t).shape, (*range(last - 1), last))
    return masked(wide, _offset(t, k))


schur_p = Schur("schur")


def schur(x: ArrayLike, *, compute_schur_vectors: bool = True, sort_eig_vals: bool = False,
          select_callable: Select | None = None) -> list[Array]:
    """Schur decomposition x = z t zᴴ with a unitary z and an upper triangular t.

    Args:
      x: float[..., n, n] or complex.
      compute_schur_vectors: return z, too.
      sort_eig_vals: put the eigenvalues that `select_callable` is true for first on t's diagonal.
      select_callable: takes vectors of eigenvalues, for a real x their real and their imaginary
        parts, and returns as many truth values; elementwise. Either of a pair may be chosen.
    Returns: [t, z], or [t]. For a real x, z is orthogonal and t has blocks of two rows on its
      diagonal for pairs of complex eigenvalues, each block with equal diagonal elements. NaN for
      each matrix for which LAPACK did not converge, so also where x holds a NaN.

    Derivatives are infinite or NaN where eigenvalues agree. Raises ValueError for a sort without
    select_callable.

    >>> t, z = lax.linalg.schur(onp.array([[1., 2.], [0., 3.]]))
    >>> print(t)
    [[1. 2.]
     [0. 3.]]
    """
    if select_callable is not None and not callable(select_callable):
        raise TypeError(f"schur: select_callable {select_callable!r} given; a function is "
                        "required.")
    if sort_eig_vals and select_callable is None:
        raise ValueError("schur: sort_eig_vals=True given without select_callable; a function that "
                         "tells which eigenvalues come first is required.")
    return list(schur_p.bind(x, compute_schur_vectors=bool(compute_schur_vectors),
                             sort_eig_vals=bool(sort_eig_vals),
                             select_callable=select_callable if sort_eig_vals else None))
