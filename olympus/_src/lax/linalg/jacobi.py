"""The singular value decomposition as a program of loops, for platforms without a kernel for it."""

from __future__ import annotations

from ...base.typing import Array, ArrayLike, IrValue
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import floor_div, less, mod, static_int
from .. import arithmetic
from ..arithmetic import conj, div, mul, neg, square, sub
from ..bits import bitwise_and
from ..comparison import eq, ge, gt, lt, select
from ..creation import broadcasted_iota, full_like
from ..families import add
from ..reduce import reduce_max
from ..shape import broadcast_in_dim, expand_dims, reduce_sum
from ..slicing import concatenate, pad
from ..sort import sort
from ..transcendental import sqrt
from .core import (
    INT32, adjoint, columns, diagonal, eye, matmul, real_dtype, rows, scaled, take_columns,
)
from .qr import qr
from .spectra import as_dtype

_SWEEPS = 30        # convergence is quadratic: fewer than ten are made


def emit_svd(b: Builder, x: IrValue, aval: ShapedArray, *, full_matrices: bool, compute_uv: bool
             ) -> list[IrValue]:
    """s, and u and vh if `compute_uv`, by one-sided Jacobi rotations of the triangle of x.

    Rotations V make the columns of W = Rᴴ orthogonal, where x = QR; then W V = U₁ S and
    x = (Q V) S U₁ᴴ: Drmač and Veselić, "New fast and accurate Jacobi SVD algorithm", 2008. All
    columns turn at once, in pairs: Brent and Luk, "The solution of singular-value and symmetric
    eigenvalue problems on multiprocessor arrays", 1985.
    """
    m, n = aval.shape[-2:]
    if less(m, n):
        (turned,) = b.traced(adjoint, [x], [aval])
        s, *vectors = emit_svd(b, turned, aval.update(shape=(*aval.shape[:-2], n, m)),
                               full_matrices=full_matrices, compute_uv=compute_uv)
        shapes = [(n, n if full_matrices else m), (m, m)]
        kinds = [aval.update(shape=(*aval.shape[:-2], *shape)) for shape in shapes]
        turned = [b.traced(adjoint, [v], [a])[0] for v, a in zip(vectors, kinds, strict=False)]
        return [s, *turned[::-1]]
    n = static_int(n, "svd", "columns")
    even, full = n + mod(n, 2), full_matrices and compute_uv
    q, w, v, unit = b.traced(lambda x: _prepared(x, even, full), [x], [aval])
    batch = aval.shape[:-2]
    square = aval.update(shape=(*batch, even, even))
    w, v = _rotated(b, w, v, square)
    return b.traced(lambda q, w, v, unit: _assembled(q, w, v, unit, n, compute_uv),
                    [q, w, v, unit], [
        aval.update(shape=(*batch, m, m if full else n)), square, square,
        make_aval((*batch, 1), real_dtype(aval.dtype))])


def _prepared(x: Array, size: int, full: bool) -> list[Array]:
    """Q, Rᴴ with a row and a column of zeros if its size is odd, the identity, and a unit in which
    Rᴴ is measured, whose elements' squares are representable then."""
    q, r, *_ = qr(x, full_matrices=full)
    n, last = typeof(x).shape[-1], typeof(x).ndim - 1
    w, more = adjoint(rows(r, 0, n)), (0, size - n, 0)
    unit = expand_dims(reduce_max(arithmetic.abs(w), (last - 1, last)), (-1,))
    unit = select(gt(unit, 0.0), unit, full_like(unit, 1))
    w = div(w, as_dtype(broadcast_in_dim(unit, typeof(w).shape, (*range(last - 1), last)), w))
    w = pad(w, literal(0, typeof(w).dtype), [(0, 0, 0)] * (last - 1) + [more] * 2)
    return [q, w, eye(w), unit]


def _rotated(b: Builder, w: IrValue, v: IrValue, aval: ShapedArray) -> list[IrValue]:
    """W V, whose columns are orthogonal to each other, and V: sweep after sweep over all pairs."""
    size = aval.shape[-1]
    index, off = make_aval((), INT32), make_aval((), real_dtype(aval.dtype))
    small = size * float(dtypes.finfo(aval.dtype).eps)

    def unfinished(count: IrValue, most: IrValue, *_: IrValue) -> IrValue:
        return b.traced(lambda count, most: bitwise_and(lt(count, _SWEEPS), gt(most, small)),
                        [count, most], [index, off])[0]

    def sweep(count: IrValue, _: IrValue, *values: IrValue) -> list[IrValue]:
        count = b.op("stablehlo.add", [count, b.scalar(1, INT32)], None, index)
        return [count, *b.counted_loop(
            size - 1, [b.full(off, 0), *values],
            lambda i, state: b.traced(_round, state, [off, aval, aval]))]

    start = [b.constant(0, index), b.full(off, 1), w, v]
    return b.while_loop(start, unfinished, sweep)[2:]


def _round(most: Array, w: Array, v: Array) -> list[Array]:
    """Make column i of w orthogonal to its partner i + n/2; then each gets another partner.

    `most` is the greatest cosine between partners so far, NaN left out.
    """
    half = floor_div(typeof(w).shape[-1], 2)
    a, c = columns(w, 0, half), columns(w, half, None)
    row = typeof(w).ndim - 2
    inner = reduce_sum(mul(conj(a) if typeof(a).dtype.kind == "c" else a, c), (row,))
    lengths = [reduce_sum(square(arithmetic.abs(x)), (row,)) for x in (a, c)]
    size = arithmetic.abs(inner)
    turned = gt(size, 0.0)
    safe = select(turned, size, full_like(size, 1))
    # The tangent of the smaller of the angles at which the columns are orthogonal.
    slope = div(sub(lengths[1], lengths[0]), mul(2.0, safe))
    tangent = div(1.0, add(arithmetic.abs(slope), sqrt(add(1.0, square(slope)))))
    tangent = select(ge(slope, 0.0), tangent, neg(tangent))
    tangent = select(turned, tangent, full_like(tangent, 0))
    cosine = div(1.0, sqrt(add(1.0, square(tangent))))
    sine = mul(tangent, cosine)
    phase = select(turned, div(inner, as_dtype(safe, inner)), full_like(inner, 1))
    scale = sqrt(mul(*lengths))
    angle = div(size, scale)
    angle = select(gt(angle, 0.0), angle, full_like(angle, 0))
    most = arithmetic.max(most, reduce_max(angle, tuple(range(typeof(angle).ndim))))
    return [most, *[_turned(x, cosine, sine, phase) for x in (w, v)]]


def _turned(x: Array, cosine: Array, sine: Array, phase: Array) -> Array:
    """x with each pair of columns turned, and the columns in the next round's order."""
    n, size = typeof(x).ndim, typeof(x).shape[-1]
    half, axes = floor_div(size, 2), (*range(n - 2), n - 1)
    back = conj(phase) if typeof(phase).dtype.kind == "c" else phase
    a, c = columns(x, 0, half), scaled(columns(x, half, None), back, axes)
    left, right = [scaled(y, as_dtype(cosine, x), axes) for y in (a, c)]
    shift = [scaled(y, as_dtype(sine, x), axes) for y in (c, a)]
    left, right = sub(left, shift[0]), add(right, shift[1])
    # The circle of a tournament: the first stays, the others move on by one place.
    if half == 1:
        return concatenate([left, right], n - 1)
    return concatenate([columns(left, 0, 1), columns(right, 0, 1), columns(left, 1, half - 1),
                        columns(right, 1, None), columns(left, half - 1, None)], n - 1)


def _assembled(q: Array, w: Array, v: Array, unit: ArrayLike, n: int, compute_uv: bool
               ) -> list[Array]:
    """s descending, u and vh, of Q, W V, V and W's unit; all NaN where a number is not finite."""
    aval = typeof(w)
    last, size = aval.ndim - 1, aval.shape[-1]
    s = sqrt(reduce_sum(square(arithmetic.abs(w)), (last - 1,)))
    if less(n, size):   # the column of zeros, which no rotation mixed with others, comes last
        added = gt(arithmetic.abs(rows(v, n, None)), 0.5)
        added = reduce_sum(as_dtype(added, s), (last - 1,))
        s = select(eq(added, 0.0), s, full_like(s, -1))
    order = broadcasted_iota(INT32, typeof(s).shape, last - 1)
    s, order = sort([neg(s), order], last - 1)
    s = columns(neg(s), 0, n)
    s = mul(s, broadcast_in_dim(unit, typeof(s).shape, range(last)))
    wrong = mul(expand_dims(reduce_sum(s, (last - 1,)), (-1,)), 0.0)     # 0 or NaN
    s = add(s, broadcast_in_dim(wrong, typeof(s).shape, range(last)))
    if not compute_uv:
        return [s]
    w, v = [rows(columns(take_columns(x, order), 0, n), 0, n) for x in (w, v)]
    # Columns of length 0 have no direction: a QR factorisation completes the others.
    first, r, *_ = qr(w, full_matrices=False)
    along = diagonal(r)
    length = arithmetic.abs(along)
    some = gt(length, 0.0)
    along = div(along, as_dtype(select(some, length, full_like(length, 1)), along))
    first = scaled(first, select(some, along, full_like(along, 1)), (*range(last - 1), last))
    u = matmul(columns(q, 0, n), v)
    if less(n, typeof(q).shape[-1]):
        u = concatenate([u, columns(q, n, None)], last)
    wrong = expand_dims(wrong, (-1,))
    u, first = [add(x, as_dtype(broadcast_in_dim(wrong, typeof(x).shape, range(last + 1)), x))
                for x in (u, first)]
    return [s, u, adjoint(first)]
