"""Linear systems with triangular and tridiagonal matrices."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ...base.typing import Array, ArrayLike, DType, IrValue
from ...base.util import lazy_module
from ...core.primitive import Axis, Builder, Cotangent, Linear, Tangent, Zero
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import definitely_equal, known_less
from .. import arithmetic
from ..arithmetic import conj, div, mul, neg, sub
from ..comparison import eq, gt, select
from ..creation import full_like
from ..families import add
from ..reduce import reduce_or
from ..shape import broadcast_in_dim, check_element, expand_dims, reshape, squeeze, zeros_of
from ..slicing import dynamic_index_in_dim, dynamic_update_index_in_dim, pad, slice_in_dim
from . import kernels
from .core import (
    LAPACK, MatrixOperation, Results, Shape, check_square, matmul, matrix_transpose, merged, scaled,
    total, tril, triu,
)

HALVES = frozenset(dtypes.as_dtype(d) for d in ("float16", "bfloat16"))


class TriangularSolve(MatrixOperation):
    """x in op(a) x = b, or x op(a) = b: one triangle of a is read; op conjugates and transposes."""

    ranks = (2, 2)
    accepts = LAPACK | HALVES
    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.small_matrices"), 256
    pace = 1.0

    def results(self, dtype: DType, a: Shape, b: Shape, *, left_side: bool, **params: Hashable
                ) -> Results:
        check_square("triangular_solve", a, "matrix a")
        if not definitely_equal(b[0 if left_side else 1], a[0]):
            raise ValueError(
                f"triangular_solve: a and b with trailing axes {list(a)} and {list(b)} given, "
                f"left_side={left_side}; b must have {a[0]} {'rows' if left_side else 'columns'}; "
                f"{'transpose b' if left_side else 'pass left_side=True'} if that is meant.")
        return [(b, dtype)]

    def emit(self, b: Builder, x: IrValue, y: IrValue, *, left_side: bool, lower: bool,
             transpose_a: bool, conjugate_a: bool, unit_diagonal: bool) -> Sequence[IrValue]:
        (aval, out), conjugate_only = b.avals_in, conjugate_a and not transpose_a
        if conjugate_only and aval.dtype.kind == "c":
            # No kernel conjugates without transposing.
            (x,) = b.traced(conj, [x], [aval])
        if kernels.has(b, "trsm") and aval.dtype in LAPACK:
            how = ("C" if conjugate_a else "T") if transpose_a else "N"
            return kernels.call(b, "trsm", [x, y], [out], self.batch(b), {
                "side": "L" if left_side else "R", "uplo": "L" if lower else "U", "trans_x": how,
                "diag": "U" if unit_diagonal else "N"}, (None, 0))
        how = ("ADJOINT" if conjugate_a else "TRANSPOSE") if transpose_a else "NO_TRANSPOSE"
        flags = {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
        return [b.op("stablehlo.triangular_solve", [x, y], {
            "transpose_a": b.attr(f"#stablehlo<transpose {how}>"),
            **{k: b.attr("true" if v else "false") for k, v in flags.items()}})]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Array, Tangent]:
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
                ta = conj(ta)
            right = neg(matmul(ta, x) if params["left_side"] else matmul(x, ta))
        return x, self.bind(a, total(tb, right), **params)

    def transpose(self, ct: Array, a: Array, b: Linear, *, transpose_a: bool, **params: Hashable
                  ) -> list[Cotangent]:
        return [None, self.bind(a, ct, transpose_a=not transpose_a, **params)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Any, list[int] | int]:
        (a, b), (da, db) = args, dims
        if da is not None:
            return super().vmap(axis, args, dims, **params)
        check_element(self, axis, args, dims, params)
        # One matrix for all right-hand sides: they become columns (rows) of one.
        free = typeof(b).ndim - 2 if params["left_side"] else typeof(b).ndim - 3
        flat, shape = merged(b, db, free)
        return reshape(self.bind(a, flat, **params), shape), free


triangular_solve_p = TriangularSolve("triangular_solve")


def triangular_solve(a: ArrayLike, b: ArrayLike, *, left_side: bool = False, lower: bool = False,
                     transpose_a: bool = False, conjugate_a: bool = False,
                     unit_diagonal: bool = False) -> Array:
    """Solve x op(a) = b, or op(a) x = b if `left_side`, for x.

    Args:
      a: float[..., n, n] or complex; only one triangle of it is read.
      b: [..., m, n], [..., n, m] if `left_side`, or vectors [..., n]; of a's dtype.
      lower: read the lower triangle of a, else the upper one.
      transpose_a, conjugate_a: op(a) is a transposed, conjugated.
      unit_diagonal: take the diagonal of a as ones, without reading it.
    Returns: An array like b; infinite or NaN where the matrix is singular.

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


class TridiagonalSolve(MatrixOperation):
    """x in a x = b, a with the diagonals dl[1:], d and du[:-1]; each diagonal has n elements."""

    ranks = (1, 1, 1, 2)

    def results(self, dtype: DType, dl: Shape, d: Shape, du: Shape, b: Shape, *,
                perturb_singular: bool) -> Results:
        if not all(definitely_equal(s[0], d[0]) for s in (dl, du, b)):
            raise ValueError(
                f"tridiagonal_solve: diagonals with {dl[0]}, {d[0]} and {du[0]} elements and b "
                f"with trailing axes {list(b)} given; three diagonals of n elements (dl[0] and "
                "du[-1] are not read) and n rows of b are required; pad the outer diagonals.")
        return [(b, dtype)]

    def emit(self, b: Builder, dl: IrValue, d: IrValue, du: IrValue, y: IrValue, *,
             perturb_singular: bool) -> Sequence[IrValue]:
        n, xs, (out,) = self.batch(b), [dl, d, du, y], b.avals_out
        if perturb_singular:
            return kernels.call(b, "tridiagonal_solve_perturbed", xs, [out], n)
        size = out.shape[-2]
        if not kernels.has(b, "gtsv") or (b.platform != "cpu" and not known_less(2, size)):
            return emit_elimination(b, xs)
        if b.platform != "cpu":     # cuSPARSE reports nothing
            return kernels.call(b, "gtsv", xs, [out], n, {}, (None, None, None, 0))
        *_, solution, info = kernels.reported(b, "gtsv", xs, [*b.avals_in[:3], out], n, {},
                                              (0, 1, 2, 3))
        return kernels.nan_unless(b, "EQ", info, n, [solution], [out])

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Array, Tangent]:
        """a⁻¹ (ḃ - ȧ x)."""
        x = self.bind(*primals, **params)
        *outer, tb = tangents
        change = total(*(None if type(t) is Zero else _diagonal_product(t, x, place)
                         for t, place in zip(outer, (-1, 0, 1), strict=True)))
        right = total(tb, None if change is None else neg(change))
        return x, self.bind(*primals[:3], right, **params)

    def transpose(self, ct: Array, dl: Array, d: Array, du: Array, b: Linear, **params: Hashable
                  ) -> list[Cotangent]:
        return [None, None, None,
                self.bind(_shifted_with_zeros(du, 1), d, _shifted_with_zeros(dl, -1), ct, **params)]


def emit_elimination(b: Builder, xs: Sequence[IrValue]) -> list[IrValue]:
    """`tridiagonal_solve` by elimination with partial pivoting, as LAPACK does it: two loops."""
    diagonals, right = b.avals_in[:3], b.avals_in[3]
    size, n = right.shape[-2], right.ndim
    index = make_aval((), dtypes.as_dtype("int32"))
    entry = diagonals[1].update(shape=(*diagonals[1].shape[:-1], 1))
    row = right.update(shape=(*right.shape[:-2], 1, right.shape[-1]))
    known = [*diagonals, right]

    def run(step: Callable[..., Sequence[Array]], length: int, start: Sequence[IrValue],
            state: Sequence[ShapedArray], operands: Sequence[IrValue]) -> list[IrValue]:
        return b.counted_loop(length, start, lambda i, values: b.traced(
            step, [i, *values, *operands], [index, *state, *known]))

    xs = b.traced(_ending, list(xs), known)
    start = b.traced(lambda dl, d, du, y: [
        slice_in_dim(d, 0, 1, axis=n - 2), slice_in_dim(du, 0, 1, axis=n - 2),
        slice_in_dim(y, 0, 1, axis=n - 2), d, du, zeros_of(typeof(d)), y], xs, known)
    state = [entry, entry, row, *[diagonals[1]] * 3, right]
    last, _, rest, *upper = run(_elimination_step, size - 1, start, state, xs)
    upper = b.traced(lambda last, rest, d, u, v, y: [
        dynamic_update_index_in_dim(d, last, size - 1, n - 2), u, v,
        dynamic_update_index_in_dim(y, rest, size - 1, n - 2)],
        [last, rest, *upper], [entry, row, *[diagonals[1]] * 3, right])
    start = b.traced(lambda y: [zeros_of(row), zeros_of(row), y], upper[3:], [right])
    known = [*[diagonals[1]] * 3, right]
    solution = run(lambda i, *values: _substituted(sub(size - 1, i), *values), size, start,
                   [row, row, right], upper)[2]
    return b.traced(_unless_singular, [upper[0], solution], [diagonals[1], right])


def _ending(dl: Array, d: Array, du: Array, y: Array) -> list[Array]:
    """The operands with a zero in place of du's last element, which is not to be read."""
    return [dl, d, pad(slice_in_dim(du, 0, typeof(du).shape[-1] - 1, axis=typeof(du).ndim - 1),
                       literal(0, typeof(du).dtype),
                       [(0, 0, 0)] * (typeof(du).ndim - 1) + [(0, 1, 0)]), y]


def _elimination_step(i: Array, p: Array, q: Array, y: Array, d: Array, u: Array, v: Array,
                      ys: Array, lower: Array, middle: Array, upper: Array,
                      right: Array) -> list[Array]:
    """One step: of the remaining row (p, q, 0) and the next one, the row with the larger pivot
    eliminates the other; it is row i of the triangle with the diagonals d, u and v.
    """
    last, following = typeof(p).ndim - 1, add(i, 1)
    row = (p, q, full_like(p, 0))
    other = tuple(dynamic_index_in_dim(x, following, last) for x in (lower, middle, upper))
    z = dynamic_index_in_dim(right, following, last)
    swap = gt(arithmetic.abs(other[0]), arithmetic.abs(p))
    wide = broadcast_in_dim(swap, typeof(y).shape, range(last + 1))
    pivot = [select(swap, a, c) for a, c in zip(other, row, strict=True)]
    rest = [select(swap, c, a) for a, c in zip(other, row, strict=True)]
    taken, remaining = select(wide, z, y), select(wide, y, z)
    factor = div(rest[0], pivot[0])
    p, q = [sub(a, mul(factor, c)) for a, c in zip(rest[1:], pivot[1:], strict=True)]
    y = sub(remaining, scaled(taken, factor, range(last + 1)))
    updated = [dynamic_update_index_in_dim(x, a, i, last)
               for x, a in zip((d, u, v, ys), (*pivot, taken), strict=True)]
    return [p, q, y, *updated]


def _substituted(i: Array, first: Array, second: Array, out: Array, d: Array, u: Array, v: Array,
                 ys: Array) -> list[Array]:
    """Row i of the solution, after the two below it; they are given again for the next one."""
    last = typeof(d).ndim - 1
    axes = range(last + 1)
    pivot, *beside = [dynamic_index_in_dim(x, i, last) for x in (d, u, v)]
    y = dynamic_index_in_dim(ys, i, last)
    for x, factor in zip((first, second), beside, strict=True):
        y = sub(y, scaled(x, factor, axes))
    y = div(y, broadcast_in_dim(pivot, typeof(y).shape, axes))
    return [y, first, dynamic_update_index_in_dim(out, y, i, last)]


def _unless_singular(d: Array, x: Array) -> Array:
    """x, or NaN where a pivot is zero."""
    last = typeof(d).ndim - 1
    singular = reduce_or(eq(d, 0), (last,))
    nan = full_like(x, complex("nan+nanj") if typeof(x).dtype.kind == "c" else float("nan"))
    return select(broadcast_in_dim(singular, typeof(x).shape, range(last)), nan, x)


def _shifted_with_zeros(x: Array, by: int) -> Array:
    """A vector's elements moved along its last axis, zeros following."""
    aval = typeof(x)
    none = [(0, 0, 0)] * (aval.ndim - 1)
    return pad(x, literal(0, aval.dtype), [*none, (by, -by, 0)])


def _diagonal_product(diagonal: ArrayLike, x: Array, place: int) -> Array:
    """The matrix with only one diagonal (-1 the lower, 1 the upper) times x."""
    aval = typeof(x)
    moved = x
    if place:
        by = [(0, 0, 0)] * (aval.ndim - 2) + [(-place, place, 0), (0, 0, 0)]
        moved = pad(x, literal(0, aval.dtype), by)
    return scaled(moved, diagonal, range(aval.ndim - 1))


tridiagonal_solve_p = TridiagonalSolve("tridiagonal_solve")


def tridiagonal_solve(dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *,
                      perturb_singular: bool = False) -> Array:
    """Solve a x = b for x, where only three diagonals of the matrix a are not zero.

    Args:
      dl: float[..., n] or complex: the diagonal below the main one; dl[..., 0] is not read.
      d: [..., n]: the main diagonal.
      du: [..., n]: the diagonal above; du[..., n-1] is not read.
      b: [..., n, m]; all have one dtype.
      perturb_singular: replace pivots that are nearly zero by small numbers, so that a singular
        matrix gives large but finite results, as inverse iteration wants them.
    Returns: An array like b; NaN for each matrix found to be singular.

    >>> one = onp.ones(3)
    >>> print(lax.linalg.tridiagonal_solve(one, 2 * one, one, onp.array([[3.], [4.], [3.]]))[:, 0])
    [1. 1. 1.]
    """
    return tridiagonal_solve_p.bind(dl, d, du, b, perturb_singular=bool(perturb_singular))
