"""`olympus.numpy.linalg`: linear systems, determinants, triangular factors and matrix products."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, overload

from ...autodiff.derivatives import jvp
from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike, DType
from ...control_flow.branches import cond
from ...control_flow.platform import platform_dependent
from ...core.trace import typeof
from ...custom.jvp import custom_jvp
from ...jit.fused import fused
from ...lax import arithmetic, transcendental
from ...lax.arithmetic import imag, is_finite, mul, sub
from ...lax.barriers import stop_gradient
from ...lax.comparison import select
from ...lax.convert import convert_element_type, in_dtype
from ...lax.creation import broadcasted_iota, full_like
from ...lax.families import add
from ...lax.linalg import cholesky as lax_cholesky, qr as lax_qr
from ...lax.linalg.core import (
    adjoint, columns, diagonal, eye, matmul, matrix_transpose, rows, scaled,
)
from ...lax.linalg.lu import lu, lu_solve
from ...lax.linalg.svd import svd
from ...lax.precision import PrecisionLike
from ...lax.reduce import reduce_and, reduce_max, reduce_min, reduce_prod
from ...lax.shape import broadcast_in_dim, expand_dims, reduce_sum, reshape, squeeze, transpose
from ...lax.slicing import index_in_dim
from ...types import dtypes
from ...types.shape import (
    canonical_axes, definitely_equal, is_static, known_less, prod, sequence, static_int,
)
from .. import products
from ..promote import array_args, check_ranks, convert, inexact, promote_dtypes, refuse_option


class QRResult(NamedTuple):
    """The result of `qr`."""

    Q: Array
    R: Array


class SlogdetResult(NamedTuple):
    """The result of `slogdet`."""

    sign: Array
    logabsdet: Array


def _square(name: str, x: ArrayLike) -> Array:
    """x as an inexact array of square matrices."""
    a = inexact(array_args(name, x)[0])
    shape = a.shape
    if len(shape) < 2 or not definitely_equal(shape[-1], shape[-2]):
        raise ValueError(f"{name}: {typeof(a)} given; square matrices [..., n, n] are required; "
                         "use pinv or lstsq for others.")
    return a


# Systems -----------------------------------------------------------------------------------------

@fused(asking=True)
def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """The solution x of a x = b, by LU factorisation with partial pivoting.

    Args: b: a vector [n], or matrices [..., n, m]; leading axes broadcast.
    Returns: [..., n] for a vector, else [..., n, m]; infinite or NaN where `a` is singular.

    Raises ValueError unless `a` is square and b has n rows.

    >>> print(onp.linalg.solve(onp.array([[2., 0.], [1., 4.]]), onp.array([2., 9.])))
    [1. 2.]
    """
    a, b = promote_dtypes("solve", *array_args("solve", a, b), inexact=True)
    a = _square("solve", a)
    vector = len(b.shape) == 1
    if not b.shape or not definitely_equal(b.shape[0 if vector else -2], a.shape[-1]):
        raise ValueError(f"solve: {typeof(a)} and {typeof(b)} given; a vector of {a.shape[-1]} "
                         f"numbers, or matrices [..., {a.shape[-1]}, m], are required on the "
                         "right; for a batch of vectors write solve(a, b[..., None])[..., 0].")
    check_ranks("solve", (typeof(a), typeof(b)), (2, 1 if vector else 2))
    x = lu_solve(a, expand_dims(b, (1,)) if vector else b)
    return squeeze(x, (-1,)) if vector else x


@fused
def inv(a: ArrayLike) -> Array:
    """The inverse of matrices. To solve a system use `solve`, which is faster and more accurate.

    Returns: [..., n, n]; infinite or NaN where a matrix is singular, for which NumPy raises.

    Raises ValueError unless the matrices are square.

    >>> print(onp.linalg.inv(onp.array([[2., 0.], [0., 4.]])))
    [[0.5  0.  ]
     [0.   0.25]]
    """
    a = _square("inv", a)
    return lu_solve(a, eye(a))


@fused(static=("axes",))
def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """The x for which tensordot(a, x, x.ndim) is b.

    Args:
      a: [*b.shape, *x.shape], with as many elements in b.shape as in x.shape; integers become
        floats.
      b: array of any shape.
      axes: axes of `a` to move to the end first.
    Returns: x, of the promoted dtype; infinite or NaN where there is no single one.

    Raises ValueError for shapes that do not fit.

    >>> a = 2 * onp.eye(4).reshape(2, 2, 4)
    >>> print(onp.linalg.tensorsolve(a, onp.array([[2., 4.], [6., 8.]])))
    [1. 2. 3. 4.]
    """
    a, b = promote_dtypes("tensorsolve", *array_args("tensorsolve", a, b), inexact=True)
    n, shape = len(b.shape), a.shape
    if axes is not None:
        last = canonical_axes(axes, len(shape), "tensorsolve")
        a = transpose(a, (*(i for i in range(len(shape)) if i not in last), *last))
    rest = a.shape[n:]
    if a.shape[:n] != b.shape and prod(a.shape[:n]) != prod(b.shape) or prod(rest) != prod(b.shape):
        raise ValueError(f"tensorsolve: {typeof(a)} and {typeof(b)} given; the first {n} axes of a "
                         "must equal b's axes, and the others must have as many elements.")
    size = prod(rest)
    return reshape(lu_solve(reshape(a, (size, size)), reshape(b, (size, 1))), rest)


@fused(static=("ind",))
def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """The inverse of tensordot(a, ·) over the last axes, as an array.

    Args:
      a: array whose first `ind` axes have as many elements as the others; integers become floats.
      ind: the number of axes of `a` that index the equations, at least 1.

    Returns:
      [*a.shape[ind:], *a.shape[:ind]]: tensordot(tensorinv(a, ind), b, ind) is `tensorsolve`(a, b).

    Raises ValueError for an `ind` that is not positive and for numbers of elements that differ.

    >>> onp.linalg.tensorinv(onp.eye(6).reshape(2, 3, 6), ind=2).shape
    (6, 2, 3)
    """
    a, ind = inexact(array_args("tensorinv", a)[0]), static_int(ind, "tensorinv", "ind")
    if ind <= 0:
        raise ValueError(f"tensorinv: ind {ind} given; a positive int is required.")
    left, right = a.shape[:ind], a.shape[ind:]
    if prod(left) != prod(right):
        raise ValueError(f"tensorinv: {typeof(a)}, ind {ind} given; the first {ind} axes must have "
                         "as many elements as the others.")
    square = reshape(a, (prod(left), prod(right)))
    return reshape(lu_solve(square, eye(square)), (*right, *left))


# Determinants ------------------------------------------------------------------------------------

@fused
def det(a: ArrayLike) -> Array:
    """The determinant of matrices.

    Up to 3 by 3 it is expanded, so that small whole numbers stay exact; larger ones are factored by
    LU.
    Its derivative is the matrix of cofactors, of singular matrices too.

    Returns: [...], 1 for n = 0.

    Raises ValueError unless the matrices are square.

    >>> print(onp.linalg.det(onp.array([[1., 2.], [3., 4.]])))
    -2.0
    """
    a = _square("det", a)
    n = a.shape[-1]
    if definitely_equal(n, 0):
        return full_like(a, 1, shape=a.shape[:-2])
    if known_less(n, 4) and is_static((n,)):
        return _small_det(a, static_int(n, "det", "size"))
    return convert(_det(convert(a, dtypes.wide_dtype(a.dtype))), a.dtype)


_DOUBLE = frozenset(map(dtypes.as_dtype, ("float64", "complex128")))


def _small_det(a: Array, n: int) -> Array:
    """The determinant of up to three rows: as a polynomial, in float64 of narrower numbers; not on
    accelerators, which are slow in it, or have none."""
    def careful(a: Array) -> Array:
        return in_dtype(_careful_det(in_dtype(a, dtypes.wide_dtype(a.dtype))), a.dtype)

    def exact(a: Array) -> Array:
        wide = dtypes.as_dtype("complex128" if dtypes.is_complex(a.dtype) else "float64")
        return in_dtype(_polynomial_det(in_dtype(a, wide)), a.dtype)

    if n == 1:
        return _polynomial_det(a)
    if a.dtype in _DOUBLE:
        return _careful_det(a)
    return platform_dependent(a, cpu=exact, default=careful)


def _polynomial_det(a: Array) -> Array:
    return _minor(a, _all_columns(a))


def _all_columns(a: Array) -> tuple[int, ...]:
    return tuple(range(static_int(a.shape[-1], "det", "size")))


@custom_jvp
def _careful_det(a: Array) -> Array:
    """The polynomial unless its terms cancel, or overflow; then the product of pivots."""
    all_of, last = _all_columns(a), len(a.shape) - 1
    plain = _polynomial_det(a)
    terms = _minor(arithmetic.abs(a), all_of, add)
    entries = [[index_in_dim(index_in_dim(a, i, last - 1, False), j, last - 1, False)
                for j in all_of] for i in all_of]
    return select(arithmetic.abs(plain) > 1e-3 * terms, plain, _eliminated(entries))


@_careful_det.defjvp
def _careful_det_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
    return _careful_det(*primals), jvp(_polynomial_det, primals, tangents)[1]


def _eliminated(rows: list[list[Array]]) -> Array:
    """The product of pivots by partial pivoting, entry by entry."""
    top, *others = rows
    if not others:
        return top[0]
    below = []
    for row in others:      # an exchange changes the sign, so one row of the two does, too
        larger = arithmetic.abs(row[0]) > arithmetic.abs(top[0])
        row, top = ([select(larger, -y, x) for x, y in zip(row, top, strict=True)],
                    [select(larger, x, y) for x, y in zip(row, top, strict=True)])
        below.append(row)
    pivot = select(top[0] == 0.0, full_like(top[0], 1), top[0])
    return top[0] * _eliminated([[x - row[0] / pivot * y for x, y in zip(row[1:], top[1:],
                                                                          strict=True)]
                                 for row in below])


def _minor(a: Array, left: tuple[int, ...], odd: Callable[..., Array] = sub) -> Any:
    """The determinant of the last len(left) rows at these columns, along the first of the rows.

    With `add` for what combines the odd terms, it is the permanent.
    """
    ndim = len(a.shape)
    row = index_in_dim(a, a.shape[-1] - len(left), ndim - 2, keepdims=False)
    total = None
    for i, column in enumerate(left):
        term = index_in_dim(row, column, ndim - 2, keepdims=False)
        if len(left) > 1:
            term = mul(term, _minor(a, (*left[:i], *left[i + 1:]), odd))
        total = term if total is None else (odd if i % 2 else add)(total, term)
    return total


def _parity(pivots: Array, dtype: DType) -> Array:
    """-1 for an odd number of row exchanges, else 1."""
    last = len(pivots.shape) - 1
    indices = broadcasted_iota(pivots.dtype, pivots.shape, last)
    swaps = convert_element_type(pivots != indices, pivots.dtype)
    odd = reduce_sum(swaps, (last,)) & 1
    return convert_element_type(1 - 2 * odd, dtype)


@custom_jvp
def _det(a: Array) -> Array:
    return _pivot_product(a)


def _pivot_product(a: Array) -> Array:
    """The determinant; its own derivative divides by the pivots."""
    factors, pivots, _ = lu(a)
    return _parity(pivots, a.dtype) * reduce_prod(diagonal(factors), (len(a.shape) - 2,))


@_det.defjvp
def _det_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
    """Jacobi's formula, det(a) trace(a⁻¹ ȧ), unless a is nearly singular."""
    (a,), (t,) = primals, tangents
    last = len(a.shape) - 2
    pivots = arithmetic.abs(diagonal(lu(stop_gradient(a))[0]))
    limit = float(dtypes.finfo(a.dtype).eps) * a.shape[-1]
    regular = reduce_min(pivots, (last,)) > reduce_max(pivots, (last,)) * limit
    regular = reduce_and(regular, tuple(range(last)))

    def by_solving(a: Array, t: Array) -> Array:
        # For matrices near 1: det(a) overflows before its derivatives do.
        size = reduce_max(arithmetic.abs(stop_gradient(a)), (last, last + 1))
        e = transcendental.log2(size)
        e = arithmetic.floor(select(is_finite(e), e, full_like(e, 0)))
        unit = scaled(a, convert(transcendental.exp2(-e), a.dtype), range(last))
        slope = _det(unit) * reduce_sum(diagonal(lu_solve(unit, t)), (last,))
        half = arithmetic.floor(e * ((a.shape[-1] - 1) / 2))
        for part in (half, e * (a.shape[-1] - 1) - half):
            slope = slope * convert(transcendental.exp2(part), a.dtype)
        return slope

    def by_values(a: Array, t: Array) -> Array:
        return jvp(_singular_det, (a,), (t,))[1] if is_static(a.shape) else _det_along(a, t)

    return _det(a), cond(regular, by_solving, by_values, a, t)


def _det_along(a: Array, t: Array) -> Array:
    """The derivative of det at a, of unknown size, along t: Σ_i (uᴴ t v)_ii Π_{j≠i} s_j."""
    u, s, vh = svd(a, full_matrices=False)
    moved = diagonal(matmul(matmul(adjoint(u), t), adjoint(vh)))
    each = broadcast_in_dim(s, a.shape, (*range(len(a.shape) - 2), len(a.shape) - 1))
    others = reduce_prod(select(eye(each) == 1, full_like(each, 1), each), (len(a.shape) - 1,))
    total = reduce_sum(moved * convert_element_type(others, a.dtype), (len(a.shape) - 2,))
    return _pivot_product(matmul(u, vh)) * total


def _singular_det(a: Array) -> Array:
    """The determinant of matrices of rank n - 3 or more, with derivatives of every order.

    With the singular vectors u, v of a as constants, det(a) = det(u vᴴ) det(uᴴ a v), for all a, and
    uᴴ a v is diagonal but for derivatives, its smallest elements last. Eliminate all but the last
    three rows, whose determinant is a polynomial. For lower ranks, all derivatives up to the third
    are zero: eliminated elements that are too small to divide by are raised to rounding errors.
    """
    u, s, vh = svd(stop_gradient(a), full_matrices=False)
    n, last = a.shape[-1], len(a.shape) - 2
    turned = matmul(matmul(adjoint(u), a), adjoint(vh))
    top, bottom = rows(turned, 0, n - 3), rows(turned, n - 3, None)
    eps = float(dtypes.finfo(a.dtype).eps)
    largest = columns(s, 0, 1)
    floor = select(largest == 0.0, full_like(largest, 1), largest) * eps
    leading = columns(s, 0, n - 3)
    floor = broadcast_in_dim(floor, leading.shape, range(last + 1))
    raised = convert_element_type(select(leading < floor, floor, full_like(floor, 0)), a.dtype)
    square = columns(top, 0, n - 3)
    square = square + scaled(eye(square), raised, range(last + 1))
    rest = columns(bottom, n - 3, None) - matmul(columns(bottom, 0, n - 3),
                                                 lu_solve(square, columns(top, n - 3, None)))
    value = _pivot_product(square) * _minor(rest, (0, 1, 2))
    return _pivot_product(matmul(u, vh)) * value


@fused(static=("method",))
def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Sign and logarithm of the absolute value of determinants, without overflow.

    Args:
      a: [..., n, n].
      method: "lu" (unless given), or "qr" for real matrices.

    Returns:
      sign[...]: 1, -1, 0, or a complex number of modulus 1; logabsdet[...]: -inf where it is 0.

    >>> print(onp.linalg.slogdet(-1e-30 * onp.eye(3))[0])
    -1.0
    """
    a = _square("slogdet", a)
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method {method!r} given; 'lu' or 'qr' is required.")
    result = (_slogdet_qr if method == "qr" else _slogdet)(convert(a, dtypes.wide_dtype(a.dtype)))
    real = dtypes.to_real_dtype(a.dtype)
    return SlogdetResult(convert(result.sign, a.dtype), convert(result.logabsdet, real))


@custom_jvp
def _slogdet(a: Array) -> SlogdetResult:
    factors, pivots, _ = lu(a)
    return _signed_log(diagonal(factors), _parity(pivots, a.dtype))


@_slogdet.defjvp
def _slogdet_jvp(primals: Sequence[Array], tangents: Sequence[Array]
                 ) -> tuple[SlogdetResult, SlogdetResult]:
    """The tangent of log det(a) is trace(a⁻¹ ȧ); its imaginary part turns the sign."""
    (a,), (t,) = primals, tangents
    sign, log = _slogdet(a)
    trace = reduce_sum(diagonal(lu_solve(a, t)), (len(a.shape) - 2,))
    if not dtypes.is_complex(a.dtype):
        return SlogdetResult(sign, log), SlogdetResult(full_like(sign, 0), trace)
    turn = arithmetic.complex(full_like(log, 0), imag(trace))
    return SlogdetResult(sign, log), SlogdetResult(sign * turn, arithmetic.real(trace))


def _signed_log(diagonal: Array, parity: Array) -> SlogdetResult:
    last = (len(diagonal.shape) - 1,)
    sign = parity * reduce_prod(arithmetic.sign(diagonal), last)
    return SlogdetResult(sign, reduce_sum(transcendental.log(arithmetic.abs(diagonal)), last))


def _slogdet_qr(a: Array) -> SlogdetResult:
    """From R, and the number of reflections in Q; each has determinant -1."""
    if dtypes.is_complex(a.dtype):
        raise ValueError(f"slogdet: {typeof(a)} and method 'qr' given; a real dtype is required; "
                         "use method 'lu'.")
    factors, taus = lax_qr.geqrf(a)
    zero = full_like(taus, 0)
    flips = reduce_prod(select(taus == zero, full_like(taus, 1), full_like(taus, -1)),
                        (len(taus.shape) - 1,))
    return _signed_log(diagonal(factors), flips)


# Factors -----------------------------------------------------------------------------------------

@fused(static=("upper", "symmetrize_input"))
def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """The triangular L with L Lᴴ = a, or Lᴴ if `upper`.

    Args:
      a: [..., n, n], symmetric (Hermitian) and positive definite; integers become floats.
      upper: return the upper triangular factor.
      symmetrize_input: factor (a + aᴴ)/2; else only the lower triangle is read.
    Returns: [..., n, n]; NaN where a matrix is not positive definite, for which NumPy raises.

    Raises ValueError unless the matrices are square.

    >>> print(onp.linalg.cholesky(onp.array([[4., 2.], [2., 5.]])))
    [[2. 0.]
     [1. 2.]]
    """
    a = _square("cholesky", a)
    factor = lax_cholesky.cholesky(a, symmetrize_input=symmetrize_input)
    return adjoint(factor) if upper else factor


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "full", "complete", "raw"] = "reduced"
       ) -> QRResult: ...


@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...


@overload
def qr(a: ArrayLike, mode: str) -> Array | QRResult: ...


@fused(static=("mode",))
def qr(a: ArrayLike, mode: str = "reduced") -> Array | QRResult:
    """Factor a = Q R: orthonormal columns and an upper triangle.

    Args:
      a: [..., m, n]; integers become floats. k = min(m, n).
      mode: "reduced" (or "full"): Q[..., m, k] and R[..., k, n]. "complete": Q[..., m, m] and
        R[..., m, n]. "r": R[..., k, n] alone. "raw": LAPACK's reflectors, transposed, and taus.
    Returns: A named tuple (Q, R), or R. The diagonal of R may be negative.

    Raises ValueError for rank below 2 and for another mode.

    >>> q, r = onp.linalg.qr(onp.array([[3., 5.], [4., 10.]]))
    >>> print((q @ r).round(4), onp.abs(r).round(4))
    [[ 3.  5.]
     [ 4. 10.]] [[ 5. 11.]
     [ 0.  2.]]
    """
    a = inexact(array_args("qr", a)[0])
    if len(a.shape) < 2:
        raise ValueError(f"qr: {typeof(a)} given; at least two axes are required.")
    if mode == "raw":
        reflectors, taus = lax_qr.geqrf(a)
        return QRResult(matrix_transpose(reflectors), taus)
    if mode not in ("reduced", "full", "complete", "r"):
        raise ValueError(f"qr: mode {mode!r} given; 'reduced', 'complete', 'r' or 'raw' is "
                         "required.")
    q, r = lax_qr.qr(a, full_matrices=mode == "complete")
    return r if mode == "r" else QRResult(q, r)


# Products ----------------------------------------------------------------------------------------

@fused(static=("n",))
def matrix_power(a: ArrayLike, n: int) -> Array:
    """The n-th power of square matrices, in O(log n) products; of their inverse for n < 0.

    Args:
      a: [..., k, k]; integers stay integers for n >= 0, and wrap around.
      n: an int; 0 gives the unit matrix.
    Returns: [..., k, k].

    Raises TypeError for matrices that are not square and for an `n` that is no int.

    >>> print(onp.linalg.matrix_power(onp.array([[1, 1], [0, 1]]), 5))
    [[1 5]
     [0 1]]
    """
    try:
        n = operator.index(n)
    except TypeError:
        raise TypeError(f"matrix_power: exponent {n!r} given; an int is required; for fractional "
                        "powers diagonalise with eigh.") from None
    (a,) = array_args("matrix_power", a)
    shape = a.shape
    if len(shape) < 2 or not definitely_equal(shape[-1], shape[-2]):
        raise TypeError(f"matrix_power: {typeof(a)} given; square matrices [..., k, k] are "
                        "required.")
    if n < 0:
        a, n = inv(a), -n
    if n == 0:
        return eye(a)
    power: Any = None     # the highest bit of n is set
    while True:
        if n & 1:
            power = a if power is None else products.matmul(power, a)
        n >>= 1
        if not n:
            return power
        a = products.matmul(a, a)


@fused(static=("precision",))
def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None, out: None = None
              ) -> Array:
    """The product of two or more matrices, in the order of fewest multiplications.

    Args:
      arrays: matrices; the first and the last may be vectors.
      precision: of the products on accelerators; see `lax.Precision`.
    Returns: A matrix of the promoted dtype, without the axes that a vector lacks.

    Raises ValueError for fewer than two arrays, other ranks, and sizes that do not fit.

    >>> print(onp.linalg.multi_dot([onp.ones((2, 9)), onp.ones((9, 1)), onp.arange(3.)[None]]))
    [[ 0.  9. 18.]
     [ 0.  9. 18.]]
    """
    refuse_option("multi_dot", out=out)
    xs = array_args("multi_dot", *sequence(arrays, "multi_dot", "arrays"))
    head = f"multi_dot: {', '.join(str(typeof(x)) for x in xs) or 'nothing'} given; "
    if len(xs) < 2:
        raise ValueError(f"{head}at least two arrays are required.")
    ends = (xs[0], xs[-1])
    if any(len(x.shape) != 2 for x in xs[1:-1]) or any(len(x.shape) not in (1, 2) for x in ends):
        raise ValueError(f"{head}matrices are required; the first and last may be vectors.")
    for x, y in zip(xs, xs[1:]):
        if not definitely_equal(x.shape[-1], y.shape[0]):
            raise ValueError(f"{head}the columns of each must be as many as the rows of the next.")
    first = [1, xs[0].shape[0]] if len(xs[0].shape) == 1 else list(xs[0].shape)
    sizes = [*first, *(x.shape[-1] if len(x.shape) == 2 else 1 for x in xs[1:])]
    return _chain(xs, _split_points(sizes), 0, len(xs) - 1, precision)


def _chain(xs: Sequence[Array], splits: dict[tuple[int, int], int], i: int, j: int,
           precision: PrecisionLike) -> Array:
    if i == j:
        return xs[i]
    k = splits[i, j]
    return products.dot(_chain(xs, splits, i, k, precision),
                        _chain(xs, splits, k + 1, j, precision), precision=precision)


def _split_points(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Where to split each run i … j of the chain; Cormen et al., "Introduction to Algorithms",
    §14.2. Matrix i is sizes[i] by sizes[i + 1]."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    splits = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            for k in range(i, j):
                total = cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1]
                if k == i or known_less(total, cost[i, j]):
                    cost[i, j], splits[i, j] = total, k
    return splits


complete_docstrings(globals(), {
    "a": "[..., n, n]; integers become floats.",
})
