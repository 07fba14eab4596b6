"""Reductions of square matrices to Hessenberg and tridiagonal form by Householder reflectors.

LAPACK's results hold the reflectors themselves. Derivatives go through the algorithm: a loop over
columns that makes the same reflectors, differentiated as any program.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

from ..base.typing import Array, ArrayLike, DType, IrValue
from ..control_flow.while_loop import fori_loop
from ..core.evaluate import eval_closed
from ..core.primitive import Builder, Tangent
from ..core.staging import stage
from ..core.trace import typeof
from ..interpreters.jvp import jvp_program
from ..lax import arithmetic
from ..lax.arithmetic import conj, div, mul, neg, sub
from ..lax.bits import bitwise_and
from ..lax.comparison import eq, ge, gt, select
from ..lax.convert import convert_element_type
from ..lax.creation import broadcasted_iota, full_like
from ..lax.families import add
from ..lax.linalg import kernels
from ..lax.linalg.core import (
    INT32, MatrixOperation, Results, Shape, adjoint, check_square, diagonal, half, matmul,
    real_dtype, tril, triu,
)
from ..lax.linalg.spectra import as_dtype
from ..lax.shape import broadcast_in_dim, expand_dims, reduce_sum, rev
from ..lax.slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim, slice_in_dim
from ..lax.transcendental import sqrt
from ..types.shape import less


class Reduction(MatrixOperation, abstract=True):
    """A reduction with the tangents of `algorithm(x, **params)`."""

    multiple_results = True
    transpose = None
    algorithm: Callable[..., list[Any]]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        program = stage(lambda x: self.algorithm(x, **params), [typeof(primals[0])])
        moved, _ = jvp_program(program, [True], True)
        outs = self.bind(*primals, **params)
        return outs, eval_closed(moved, *primals, *tangents)[len(outs):]


class Hessenberg(Reduction):
    """h on and above the first subdiagonal, reflectors below; and their taus."""

    def results(self, dtype: DType, shape: Shape) -> Results:
        check_square("hessenberg", shape)
        return [(shape, dtype), ((max(shape[0] - 1, 0),), dtype)]

    def emit(self, b: Builder, x: IrValue) -> Sequence[IrValue]:
        n, outs = self.batch(b), list(b.avals_out)
        *factors, info = kernels.reported(b, "gehrd", [x], outs, n,
                                          {"low": 1, "high": outs[0].shape[-1]}, (0,))
        return kernels.nan_unless(b, "EQ", info, n, factors, outs)

    def algorithm(self, x: Array) -> Sequence[Array]:
        return _unblocked_reduction(x)


class Tridiagonal(Reduction):
    """The reflectors in one triangle, the diagonal, the one beside it, the taus."""

    def results(self, dtype: DType, shape: Shape, *, lower: bool) -> Results:
        check_square("tridiagonal", shape)
        size, less = shape[:1], (max(shape[0] - 1, 0),)
        real = real_dtype(dtype)
        return [(shape, dtype), (size, real), (less, real), (less, dtype)]

    def emit(self, b: Builder, x: IrValue, *, lower: bool) -> Sequence[IrValue]:
        n, outs = self.batch(b), list(b.avals_out)
        *factors, info = kernels.reported(
            b, "sytrd", [x], outs, n, kernels.triangle(b, lower), (0,))
        return kernels.nan_unless(b, "EQ", info, n, factors, outs)

    def algorithm(self, x: Array, *, lower: bool) -> list[Array]:
        """Reduce by the Hessenberg form of the Hermitian matrix; from the other end if upper."""
        last = typeof(x).ndim - 1
        if not lower:
            a, d, e, taus = self.algorithm(rev(x, (last - 1, last)), lower=True)
            return [rev(a, (last - 1, last)), *[rev(v, (last - 1,)) for v in (d, e, taus)]]
        read = half(x)
        a, taus = _unblocked_reduction(add(read, adjoint(read)))
        below = slice_in_dim(reduce_sum(_subdiagonal(a), (last - 1,)), 0, typeof(taus).shape[-1],
                             axis=last - 1)
        parts = [arithmetic.real(v) if typeof(v).dtype.kind == "c" else v
                 for v in (diagonal(a), below)]
        return [add(tril(a), triu(x, 1)), *parts, taus]


def _subdiagonal(a: Array) -> Array:
    return tril(triu(a, -1), -1)


def _unblocked_reduction(x: Array) -> list[Array]:
    """LAPACK's unblocked reduction gehd2: x[..., n, n] -> its packed form, taus[..., n-1]."""
    aval = typeof(x)
    n, last = aval.shape[-1], aval.ndim - 1
    if less(n, 2):
        return [x, full_like(x, 0, shape=(*aval.shape[:-2], 0))]
    row = broadcasted_iota(INT32, (*aval.shape[:-1], 1), last - 1)
    taus = full_like(x, 0, shape=(*aval.shape[:-2], n - 1, 1))

    def step(j: ArrayLike, state: tuple[Array, Array]) -> tuple[Array, Array]:
        a, taus = state
        j = convert_element_type(j, INT32)
        column = dynamic_slice_in_dim(a, j, 1, last)
        head, tail = eq(row, add(j, 1)), gt(row, add(j, 1))
        v, tau, beta = _reflector(column, head, tail)
        a = sub(a, matmul(matmul(a, mul(v, _scalar_like(tau, v))), adjoint(v)))
        # Columns up to j are done, and hold reflectors where their zeros are.
        ahead = gt(broadcasted_iota(INT32, (*aval.shape[:-2], 1, n), last), j)
        image = matmul(adjoint(v), a)
        image = select(ahead, image, full_like(image, 0))
        a = sub(a, matmul(mul(v, _scalar_like(_conj(tau), v)), image))
        # The column now is beta and zeros, in whose place v is kept.
        first = _scalar_like(beta, v)
        kept = select(tail, v, select(head, first, dynamic_slice_in_dim(a, j, 1, last)))
        return (dynamic_update_slice_in_dim(a, kept, j, last),
                dynamic_update_slice_in_dim(taus, tau, j, last - 1))

    a, taus = fori_loop(0, n - 1, step, (x, taus))
    return [a, reduce_sum(taus, (last,))]


def _conj(x: Array) -> Array:
    return conj(x) if typeof(x).dtype.kind == "c" else x


def _scalar_like(x: Array, like: Array) -> Array:
    """x[..., 1, 1] in the shape of `like`."""
    return broadcast_in_dim(x, typeof(like).shape, tuple(range(typeof(x).ndim)))


def _reflector(column: Array, head: Array, tail: Array) -> tuple[Array, Array, Array]:
    """v, tau and beta with (1 - tau v vᴴ)ᴴ of (head, tail) = (beta, 0): LAPACK's larfg."""
    zero = full_like(column, 0)
    axis = typeof(column).ndim - 2

    def total(x: Array) -> Array:
        return expand_dims(reduce_sum(x, (axis,)), (axis,))

    rest = select(tail, column, zero)
    alpha = total(select(head, column, zero))
    real, imag = ((arithmetic.real(alpha), arithmetic.imag(alpha))
                  if typeof(alpha).dtype.kind == "c" else (alpha, full_like(alpha, 0)))
    squares = total(_squares(rest))
    none = bitwise_and(eq(squares, 0.0), eq(imag, 0.0))
    squares = add(squares, add(mul(real, real), mul(imag, imag)))
    size = sqrt(select(none, full_like(squares, 1), squares))
    signed = select(ge(real, 0.0), neg(size), size)
    beta = select(none, real, signed)
    wide = as_dtype(signed, column)
    tau = select(none, full_like(alpha, 0), div(sub(wide, alpha), wide))
    scale = select(none, full_like(alpha, 1), sub(alpha, wide))
    v = select(head, full_like(column, 1), div(rest, _scalar_like(scale, rest)))
    return v, tau, as_dtype(beta, column)


def _squares(x: Array) -> Array:
    """|x|² elementwise."""
    if typeof(x).dtype.kind != "c":
        return mul(x, x)
    return add(*(mul(part, part) for part in (arithmetic.real(x), arithmetic.imag(x))))


hessenberg_p, tridiagonal_p = Hessenberg("hessenberg"), Tridiagonal("tridiagonal")


def hessenberg(a: ArrayLike) -> list[Array]:
    """Reduce a matrix to upper Hessenberg form: a = q h qᴴ with zeros below h's first subdiagonal.

    Args: a: float[..., n, n] or complex.
    Returns: [packed[..., n, n], taus[..., n-1]]: h is the part on and above the first subdiagonal
      of `packed`. The reflectors whose product is q (`householder_product`) start at row 1, and are
      below that. NaN where LAPACK refuses the matrix.

    The derivative is not defined where a column needs no reflector.

    >>> packed, taus = lax.linalg.hessenberg(onp.array([[1., 2.], [3., 4.]]))
    >>> print(packed, taus)
    [[1. 2.]
     [3. 4.]] [0.]
    """
    return list(hessenberg_p.bind(a))


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> list[Array]:
    """Reduce a symmetric or Hermitian matrix to real tridiagonal form t: a = q t qᴴ.

    Args:
      a: float[..., n, n] or complex; one triangle of it is read.
      lower: read the lower triangle, else the upper one.
    Returns: [packed[..., n, n], d[..., n], e[..., n-1], taus[..., n-1]]: d is t's diagonal, e the
      one beside it, both real. `packed` holds the reflectors whose product is q below the first
      subdiagonal (above the first superdiagonal, and taken from the last to the first, if not
      `lower`); its other triangle is a's. NaN where LAPACK refuses the matrix.

    The derivative is not defined where a column needs no reflector.

    >>> packed, d, e, taus = lax.linalg.tridiagonal(onp.array([[1., 2.], [2., 5.]]))
    >>> print(d, e)
    [1. 5.] [2.]
    """
    return list(tridiagonal_p.bind(a, lower=bool(lower)))
