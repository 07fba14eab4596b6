"""The QR factorisation, and products of Householder reflectors, which it is made of.

A reflector is H = I - τ v vᴴ. Reflectors are kept as LAPACK keeps them: column i of `a`, below the
diagonal, is vᵢ, whose element i is 1. Their product is H₁ … Hₖ = I - V T Vᴴ with T upper
triangular (Schreiber and Van Loan, "A storage-efficient WY representation for products of
Householder transformations", 1989), T⁻¹ = diag(τ)⁻¹ + striu(Vᴴ V): every derivative here is one
of that formula.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, Literal, overload

from ...base.typing import Array, ArrayLike, DType, IrValue
from ...core.primitive import Builder, Cotangent, Linear, Tangent, Transposed, Zero, not_linear
from ...core.trace import literal, typeof
from ...types.shape import definitely_equal, known_less, less, minimum
from .. import arithmetic
from ..arithmetic import neg, real, sub
from ..convert import convert_element_type
from ..creation import broadcasted_iota
from ..families import add
from ..shape import broadcast_in_dim, instantiate, zeros_of
from ..slicing import concatenate, pad
from . import kernels
from .core import (
    INT32, MatrixOperation, Results, Shape, adjoint, columns, diagonal, diagonal_part, eye, matmul,
    rows, take_columns, tril, triu,
)
from .solve import triangular_solve

# Reflectors --------------------------------------------------------------------------------------

class Reflectors:
    """V[..., m, k] and T[..., k, k] of reflectors a[..., m, n], taus[..., k], and tangents."""

    def __init__(self, a: Array, taus: Array) -> None:
        self.k = typeof(taus).shape[-1]
        self.v = self._vectors(a)
        self.v = add(self.v, eye(self.v))
        self.taus = self._square(taus)
        self.gram = triu(matmul(adjoint(self.v), self.v), 1)
        # T = (I + D G)⁻¹ D also where a τ is zero.
        self.system = matmul(self.taus, self.gram)
        self.t = self._solve(self.taus)

    def _vectors(self, a: ArrayLike) -> Array:
        return tril(columns(a, 0, self.k), -1)

    def _square(self, taus: ArrayLike) -> Array:
        """The diagonal matrix."""
        aval = typeof(taus)
        n = aval.ndim
        wide = broadcast_in_dim(taus, (*aval.shape, self.k), tuple(range(n)))
        return diagonal_part(wide)

    def _solve(self, x: Array) -> Array:
        return triangular_solve(self.system, x, left_side=True, unit_diagonal=True)

    def tangents(self, ta: Tangent, ttaus: Tangent) -> tuple[Array, Array]:
        """The tangents of V and of T, from the tangents of `a` and `taus`."""
        tv, td = self._vectors(instantiate(ta)), self._square(instantiate(ttaus))
        cross = matmul(adjoint(tv), self.v)
        tg = triu(add(cross, adjoint(cross)), 1)
        change = add(matmul(td, self.gram), matmul(self.taus, tg))
        return tv, self._solve(sub(td, matmul(change, self.t)))


class HouseholderProduct(MatrixOperation):
    """The first n columns of H₁ … Hₖ."""

    ranks = (2, 1)
    transpose = None
    pace = 1.0

    def results(self, dtype: DType, a: Shape, taus: Shape) -> Results:
        if known_less(a[0], a[1]) or known_less(a[1], taus[0]):
            raise ValueError(f"householder_product: {taus[0]} taus and a with trailing axes "
                             f"{list(a)} given; taus <= columns <= rows is required; pad or cut.")
        return [(a, dtype)]

    def emit(self, b: Builder, a: IrValue, taus: IrValue) -> Sequence[IrValue]:
        return kernels.call(b, "orgqr", [a, taus], b.avals_out, self.batch(b), {}, (0,))

    def emit_empty(self, b: Builder, a: IrValue, taus: IrValue) -> list[IrValue]:
        return b.traced(eye, [a], b.avals_in[:1])

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent]) -> tuple[Array, Tangent]:
        known = Reflectors(*primals)
        tv, tt = known.tangents(*tangents)
        n = typeof(primals[0]).shape[-1]
        top, t_top = adjoint(rows(known.v, 0, n)), adjoint(rows(tv, 0, n))
        inner = add(matmul(tt, top), matmul(known.t, t_top))
        t = add(matmul(tv, matmul(known.t, top)), matmul(known.v, inner))
        return self.bind(*primals), neg(t)


class Ormqr(MatrixOperation):
    """Q c, or c Q unless `left`, with Q = H₁ … Hₖ, or Qᴴ if `transpose`."""

    ranks = (2, 1, 2)

    def results(self, dtype: DType, a: Shape, taus: Shape, c: Shape, *, left: bool, transpose: bool
                ) -> Results:
        if known_less(minimum(*a), taus[0]):
            raise ValueError(f"ormqr: {taus[0]} taus and a with trailing axes {list(a)} given; at "
                             f"most {minimum(*a)} taus are required.")
        if not definitely_equal(a[0], c[0 if left else 1]):
            raise ValueError(
                f"ormqr: a and c with trailing axes {list(a)} and {list(c)} given, left={left}; c "
                f"must have {a[0]} {'rows' if left else 'columns'}, as many as a has rows.")
        return [(c, dtype)]

    def emit(self, b: Builder, a: IrValue, taus: IrValue, c: IrValue, *, left: bool, transpose: bool
             ) -> Sequence[IrValue]:
        if not kernels.has(b, "ormqr"):
            return b.traced(lambda *xs: product(*xs, left=left, transpose=transpose), [a, taus, c],
                            b.avals_in)
        k = b.avals_in[1].shape[-1]
        cut = b.avals_in[0].update(shape=(*b.avals_in[0].shape[:-1], k))
        if cut is not b.avals_in[0]:
            (a,) = b.traced(lambda x: columns(x, 0, k), [a], b.avals_in[:1])
        return kernels.call(b, "ormqr", [a, taus, c], b.avals_out, self.batch(b),
                            {"left": left, "transpose": transpose}, (None, None, 0))

    def emit_empty(self, b: Builder, a: IrValue, taus: IrValue, c: IrValue, **params: Hashable
                   ) -> list[IrValue]:
        return [c]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, left: bool,
            transpose: bool) -> tuple[Array, Tangent]:
        a, taus, c = primals
        ta, ttaus, tc = tangents
        out = self.bind(a, taus, c, left=left, transpose=transpose)
        t: Any = None
        if type(tc) is not Zero:
            t = self.bind(a, taus, tc, left=left, transpose=transpose)
        if type(ta) is not Zero or type(ttaus) is not Zero:
            known = Reflectors(a, taus)
            tv, tt = known.tangents(ta, ttaus)
            v, inner = known.v, known.t
            if transpose:
                tt, inner = adjoint(tt), adjoint(inner)
            change = _product_change(v, inner, tv, tt, c, left)
            t = neg(change) if t is None else sub(t, change)
        return out, t

    def transpose(self, ct: Array, a: Transposed, taus: Transposed, c: Linear, *, left: bool,
                  transpose: bool) -> list[Cotangent]:
        if type(a) is Linear or type(taus) is Linear:
            raise not_linear("ormqr", "its reflectors")
        conj = arithmetic.conj if typeof(ct).dtype.kind == "c" else lambda x: x
        return [None, None, conj(self.bind(a, taus, conj(ct), left=left, transpose=not transpose))]


def product(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool, transpose: bool) -> Array:
    """`ormqr` with the matrix Q, made of the reflectors."""
    q = columns(a, 0, typeof(taus).shape[-1])
    q = householder_product(_padded_columns(q, typeof(a).shape[-2]), taus)
    q = adjoint(q) if transpose else q
    return matmul(q, c) if left else matmul(c, q)


def _product_change(v: Array, inner: Array, tv: Array, tt: Array, c: Array, left: bool) -> Array:
    """The tangent of V T Vᴴ c, or of c V T Vᴴ, for constant c."""
    if left:
        seen, t_seen = matmul(adjoint(v), c), matmul(adjoint(tv), c)
        return add(matmul(tv, matmul(inner, seen)),
                   matmul(v, add(matmul(tt, seen), matmul(inner, t_seen))))
    seen, t_seen = matmul(c, v), matmul(c, tv)
    return add(matmul(add(matmul(t_seen, inner), matmul(seen, tt)), adjoint(v)),
               matmul(matmul(seen, inner), adjoint(tv)))


# Factorisations ----------------------------------------------------------------------------------

class Geqrf(MatrixOperation):
    """R, with the reflectors whose product is Q below it, and their taus."""

    multiple_results = True
    transpose = None
    pace = 1.0

    def results(self, dtype: DType, shape: Shape) -> Results:
        return [(shape, dtype), ((minimum(*shape),), dtype)]

    def emit(self, b: Builder, x: IrValue) -> Sequence[IrValue]:
        return kernels.call(b, "geqrf", [x], b.avals_out, self.batch(b), {}, (0,))

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]
            ) -> tuple[list[Array], list[Array]]:
        """From the tangent of Q's first columns: their difference from the identity's is V W, W
        upper triangular with the taus on its diagonal, an LU factorisation (Ballard et
        al., "Reconstructing Householder vectors from tall-skinny QR", 2014)."""
        a, taus = self.bind(*primals)
        m, n = typeof(a).shape[-2:]
        k = minimum(m, n)
        q = householder_product(columns(a, 0, k), taus)
        tq, tr = _thin_tangents(q, triu(rows(a, 0, k)), tangents[0])
        square = rows(columns(a, 0, k), 0, k)
        w = triu(_unit_lower(square, sub(eye(square), rows(q, 0, k))))
        solvable = w
        # V's last column is the identity's, whatever its tau.
        if definitely_equal(m, k) and less(0, k):
            solvable = concatenate([columns(w, 0, k - 1), columns(eye(w), k - 1, None)],
                                   typeof(w).ndim - 1)
        f = _unit_lower(square, neg(rows(tq, 0, k)))
        change = tril(triangular_solve(solvable, f), -1)
        tw = sub(f, matmul(change, w))
        tv = matmul(add(tril(square, -1), eye(square)), change)
        if not definitely_equal(k, m):
            below = neg(add(rows(tq, k, None), matmul(rows(a, k, None), tw)))
            tv = concatenate([tv, triangular_solve(w, below)], typeof(a).ndim - 2)
        if not definitely_equal(k, n):
            tv = concatenate([tv, zeros_of(typeof(columns(a, k, None)))], typeof(a).ndim - 1)
        if not definitely_equal(k, m):
            tr = concatenate([tr, zeros_of(typeof(rows(a, k, None)))], typeof(a).ndim - 2)
        return [a, taus], [add(tril(tv, -1), tr), diagonal(tw)]


def _unit_lower(factors: Array, x: Array) -> Array:
    return triangular_solve(factors, x, left_side=True, lower=True, unit_diagonal=True)


def _thin_tangents(q: Array, r: Array, t: Array) -> tuple[Array, Array]:
    """Tangents of Q[..., m, k] and R[..., k, n], k = min(m, n), from their product's.

    Walter and Lehmann, "Algorithmic differentiation of linear algebra functions with application
    in optimum experimental design", 2010, §3.1; R's diagonal stays real.
    """
    k, n = typeof(r).shape[-2:]
    square = columns(r, 0, k)
    change = triangular_solve(square, columns(t, 0, k))         # ẋ R⁻¹
    inside = matmul(adjoint(q), change)
    lower = tril(inside, -1)
    turn = sub(lower, adjoint(lower))
    if typeof(q).dtype.kind == "c":
        diagonal = diagonal_part(inside)
        turn = add(turn, sub(diagonal, _real(diagonal)))
    growth = sub(inside, turn)
    tq = sub(change, matmul(q, growth))
    tr = triu(matmul(growth, square))
    if not definitely_equal(k, n):
        rest = sub(columns(t, k, None), matmul(tq, columns(r, k, None)))
        tr = concatenate([tr, matmul(adjoint(q), rest)], typeof(r).ndim - 1)
    return tq, tr


def _real(x: Array) -> Array:
    """A complex array with its imaginary part removed."""
    return convert_element_type(real(x), typeof(x).dtype)


class Geqp3(MatrixOperation):
    """`geqrf` with the largest remaining column next, and the places the columns came from."""

    multiple_results = True
    jvp = transpose = None      # `qr` is differentiated instead

    def results(self, dtype: DType, shape: Shape, *, use_magma: bool | None = None) -> Results:
        return [(shape, dtype), (shape[1:], INT32), ((minimum(*shape),), dtype)]

    def emit(self, b: Builder, x: IrValue, *, use_magma: bool | None = None) -> list[IrValue]:
        order = b.avals_out[1]
        free = b.full(order, 0)     # any column may go anywhere
        a, permutation, taus = kernels.call(
            b, "geqp3", [x, free], b.avals_out, self.batch(b),
            {} if b.platform == "cpu" else kernels.magma(use_magma), (0, 1))
        return [a, b.op("stablehlo.subtract", [permutation, b.full(order, 1)], None, order), taus]

    def emit_empty(self, b: Builder, x: IrValue, *, use_magma: bool | None = None
                   ) -> list[IrValue]:
        out, order, taus = b.avals_out
        permutation = b.traced(lambda: broadcasted_iota(INT32, order.shape, order.ndim - 1), [], [])
        return [b.full(out, 0), *permutation, b.full(taus, 0)]


class Qr(MatrixOperation):
    """Q and R, and the order of columns if `pivoting`."""

    multiple_results = True
    transpose = None
    pace = 4.0

    def results(self, dtype: DType, shape: Shape, *, pivoting: bool, full_matrices: bool,
                use_magma: bool | None) -> Results:
        m, n = shape
        k = m if full_matrices else minimum(m, n)
        factors = [((m, k), dtype), ((k, n), dtype)]
        return [*factors, ((n,), INT32)] if pivoting else factors

    def lower(self, b: Builder, x: IrValue, **params: Any) -> list[IrValue]:
        return b.by_rule(lambda x: _composed(x, **params), [x], b.avals_in)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Sequence[Array], Sequence[Tangent]]:
        q, r, *order = self.bind(*primals, **params)
        (x,), (t,) = primals, tangents
        if order:
            x, t = take_columns(x, order[0]), take_columns(t, order[0])
        m, n = typeof(x).shape[-2:]
        if params["full_matrices"] and less(n, m):
            # Q's last columns are the reflectors applied to them.
            (a, taus), (ta, ttaus) = geqrf_p.jvp([x], [t])
            a, ta, tr = _padded_columns(a, m), _padded_columns(ta, m), triu(ta)
            _, tq = householder_product_p.jvp([a, taus], [ta, ttaus])
        else:
            tq, tr = _thin_tangents(q, r, t)
        return [q, r, *order], [tq, tr, *(Zero(typeof(p).to_tangent_aval()) for p in order)]


def _padded_columns(x: Array, size: int) -> Array:
    """x[..., m, n] with columns of zeros up to `size` columns."""
    aval = typeof(x)
    more = [(0, 0, 0)] * (aval.ndim - 1) + [(0, size - aval.shape[-1], 0)]
    return pad(x, literal(0, aval.dtype), more)


def _composed(x: Array, *, pivoting: bool, full_matrices: bool, use_magma: bool | None
              ) -> list[Array]:
    """Q and R from LAPACK's parts."""
    m, n = typeof(x).shape[-2:]
    if pivoting:
        a, order, taus = geqp3_p.bind(x, use_magma=use_magma)
    else:
        (a, taus), order = geqrf_p.bind(x), None
    k = minimum(m, n)
    r = triu(a if full_matrices else rows(a, 0, k))
    reflectors = columns(a, 0, k)
    if full_matrices and not definitely_equal(k, m):
        reflectors = _padded_columns(a, m)
    q = householder_product(reflectors, taus)
    return [q, r] if order is None else [q, r, order]


householder_product_p = HouseholderProduct("householder_product")
ormqr_p = Ormqr("ormqr")
geqrf_p, geqp3_p = Geqrf("geqrf"), Geqp3("geqp3")
qr_p = Qr("qr")


def geqrf(x: ArrayLike) -> tuple[Array, Array]:
    """LAPACK's raw QR factorisation of x[..., m, n]: (a[..., m, n], taus[..., min(m, n)]).

    R is the upper triangle of `a`; the reflectors whose product is Q are below it.
    """
    return tuple(geqrf_p.bind(x))


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """The first n columns of a product of k Householder reflectors I - τ v vᴴ.

    Args:
      a: float[..., m, n] or complex, m >= n: vᵢ has zeros above element i, there 1, and is column
        i of `a` below.
      taus: [..., k], k <= n; of a's dtype.
    Returns: An array like `a`.

    >>> print(lax.linalg.householder_product(onp.array([[9.], [1.]]), onp.array([1.])))
    [[ 0.]
     [-1.]]
    """
    return householder_product_p.bind(a, taus)


def ormqr(a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True,
          transpose: bool = False) -> Array:
    """Multiply by the orthogonal (unitary) matrix Q = H₁ … Hₖ without making it.

    Args:
      a, taus: reflectors as `householder_product` takes them; Q is [..., m, m].
      c: [..., m, p], or [..., p, m] unless `left`; of a's dtype.
      left: Q c, else c Q.
      transpose: multiply by Qᴴ instead (Qᵀ of real numbers).
    Returns: An array of the shape and dtype of c.

    >>> print(lax.linalg.ormqr(onp.array([[9.], [1.]]), onp.array([1.]), onp.eye(2)))
    [[ 0. -1.]
     [-1.  0.]]
    """
    return ormqr_p.bind(a, taus, c, left=bool(left), transpose=bool(transpose))


@overload
def qr(x: ArrayLike, *, pivoting: Literal[False] = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[Array, Array]: ...


@overload
def qr(x: ArrayLike, *, pivoting: Literal[True], full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[Array, Array, Array]: ...


@overload
def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[Array, Array] | tuple[Array, Array, Array]: ...


def qr(x: ArrayLike, *, pivoting: bool = False, full_matrices: bool = True,
       use_magma: bool | None = None) -> tuple[Array, Array] | tuple[Array, Array, Array]:
    """Factor x = Q R with orthonormal columns of Q and upper triangular R.

    Args:
      x: float[..., m, n] or complex.
      pivoting: choose the order of columns so that R's diagonal descends: x[:, order] = Q R.
      full_matrices: Q[..., m, m] and R[..., m, n]; else Q[..., m, k] and R[..., k, n] with k =
        min(m, n).
      use_magma: which library pivots on a GPU; without effect elsewhere.

    Returns:
      (Q, R), or (Q, R, order: int32[..., n]) if `pivoting`. R's diagonal is real, of either sign.
      Derivatives need linearly independent leading columns; derivatives of a full Q, m > n, further
      that no column has zeros only below the diagonal, where LAPACK's sign of the column jumps.

    >>> q, r = lax.linalg.qr(onp.array([[3., 1.], [4., 2.]]))
    >>> print(onp.round(q @ r, 4))
    [[3. 1.]
     [4. 2.]]
    """
    return tuple(qr_p.bind(x, pivoting=bool(pivoting), full_matrices=bool(full_matrices),
                           use_magma=None if use_magma is None else bool(use_magma)))
