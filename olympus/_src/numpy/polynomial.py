"""Polynomials as arrays of coefficients, highest power first."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DimSize, DType
from ..base.util import lazy_imports, real_number
from ..control_flow.scan import scan
from ..jit.fused import fused, named
from ..lax import arithmetic, shape as lax_shape, slicing
from ..lax.arithmetic import neg
from ..lax.comparison import eq, ne
from ..lax.creation import full, iota
from ..lax.cumulative import cumsum
from ..lax.reduce import reduce_prod
from ..lax.transcendental import sqrt
from ..types import dtypes
from ..types.shape import (
    bound_or, broadcast_shapes, definitely_equal, is_static, known_less, less, maximum, minimum,
    static_int,
)
from .arithmetic import add, divide, multiply, subtract
from .conditions import where
from .correlation import convolve
from .creation import asarray
from .diagonals import eye, vander
from .indexing import concrete, take
from .products import matmul
from .promote import array_args, broadcast_to, convert, inexact, promote_dtypes, to_array
from .reductions import reduce_sum
from .sorting import argsort

with lazy_imports(__name__):       # with all matrix factorisations, which few programs need
    from .linalg import decompositions, systems


def _coefficients(name: str, *ps: ArrayLike, to_inexact: bool = False) -> list[Array]:
    """Coefficients of one dtype as vectors; scalars are constants."""
    coefficients = [to_array(p) for p in promote_dtypes(name, *ps, inexact=to_inexact)]
    for p in coefficients:
        if p.ndim > 1:
            raise ValueError(f"{name}: {p.aval} given; a vector of coefficients is required.")
    return [p if p.shape else lax_shape.expand_dims(p, (0,)) for p in coefficients]


@fused(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """The values of a polynomial, by Horner's rule.

    Args:
      p: coefficients `[n, ...]`, highest power first; trailing axes broadcast against `x`.
      x: where to evaluate.
      unroll: how many steps of the loop to write out.
    Returns: The values, of the broadcast shape and the promoted dtype.

    >>> onp.polyval(onp.array([1., 0., 2.]), 3.)
    Array(11., dtype=float32)
    """
    p, x = promote_dtypes("polyval", p, x)
    if p.ndim == 0:
        raise ValueError(f"polyval: coefficients {p.aval} given; rank 1 or more is required; wrap "
                         "a constant as onp.array([c]).")
    shape = broadcast_shapes(p.shape[1:], x.shape)
    start = full(shape, 0, p.dtype)
    value, _ = scan(lambda y, c: (add(multiply(y, x), c), None), start, p,
                    unroll=minimum(static_int(unroll, "polyval", "unroll"),
                                   maximum(bound_or(p.shape[0], 1), 1)))
    return value


# Sums and products -------------------------------------------------------------------------------

def _lengthened(p: Array, size: int) -> Array:
    """Zeros in front, for the powers that a shorter polynomial has not got."""
    return slicing.pad(p, full((), 0, p.dtype), [(size - p.shape[0], 0, 0)])


def _aligned(name: str, a1: ArrayLike, a2: ArrayLike) -> list[Array]:
    ps = _coefficients(name, a1, a2)
    size = maximum(ps[0].shape[0], ps[1].shape[0])
    return [_lengthened(p, size) for p in ps]


@fused
def polyadd(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The sum of two polynomials.

    Returns: Coefficients [max(n, m)], of the dtype of both promoted. Leading zeros stay.

    >>> print(onp.polyadd(onp.array([1, 2]), onp.array([9, 5, 4])))
    [9 6 6]
    """
    return add(*_aligned("polyadd", a1, a2))


@fused
def polysub(a1: ArrayLike, a2: ArrayLike) -> Array:
    """The difference of two polynomials.

    Returns: Coefficients [max(n, m)], of the dtype of both promoted. Leading zeros stay.

    >>> print(onp.polysub(onp.array([1, 2]), onp.array([9, 5, 4])))
    [-9 -4 -2]
    """
    return subtract(*_aligned("polysub", a1, a2))


def _trimmed(name: str, p: Array, tolerance: float = 0.0) -> Array:
    """Coefficients without leading ones that are zero, the last aside; they must not be traced."""
    value = concrete(name, p, "a polynomial", "leave trim_leading_zeros out")
    nonzero = np.flatnonzero(~(np.abs(value) <= tolerance))     # NaN stays
    return p[int(nonzero[0]) if nonzero.size else value.size - 1:] if value.size else p


@named
def polymul(a1: ArrayLike, a2: ArrayLike, *, trim_leading_zeros: bool = False) -> Array:
    """The product of two polynomials.

    Args: trim_leading_zeros: whether to drop leading zeros of both first, as NumPy does. That
        decides the result's shape, so it cannot be traced.
    Returns: Coefficients [n + m - 1], of the dtype of both promoted.

    >>> print(onp.polymul(onp.array([1, 2]), onp.array([1, 0, 3])))
    [1 2 3 6]
    """
    p, q = _coefficients("polymul", a1, a2)
    if trim_leading_zeros:
        p, q = _trimmed("polymul", p), _trimmed("polymul", q)
    p, q = [full((1,), 0, x.dtype) if not x.shape[0] else x for x in (p, q)]
    return convolve(p, q)


@named
def polydiv(u: ArrayLike, v: ArrayLike, *, trim_leading_zeros: bool = False) -> tuple[Array, Array]:
    """The quotient and the remainder of two polynomials.

    Args:
      u: coefficients [n] of the dividend, highest power first.
      v: coefficients [m] of the divisor; its first one is not zero.
      trim_leading_zeros: whether to drop leading zeros of the remainder, as NumPy does, and
        coefficients as small as rounding errors. That decides its shape, so it cannot be traced.
    Returns: (quotient float[max(n - m + 1, 1)], remainder float[n]).

    Raises ValueError for no coefficients.

    >>> for part in onp.polydiv(onp.array([3., 5., 2.]), onp.array([2., 1.])):
    ...     print(part)
    [1.5  1.75]
    [0.   0.   0.25]
    """
    quotient, rest = _polydiv(u, v)
    if trim_leading_zeros:
        rest = _trimmed("polydiv", rest, float(dtypes.finfo(rest.dtype).eps) ** 0.5)
    return quotient, rest


@fused
def _polydiv(u: ArrayLike, v: ArrayLike) -> tuple[Array, Array]:
    u, v = _coefficients("polydiv", u, v, to_inexact=True)
    n, m = u.shape[0], v.shape[0]
    if not n or not m:
        raise ValueError(f"polydiv: {u.aval} and {v.aval} given; at least one coefficient of each "
                         "is required.")
    if known_less(n, m):
        return full((1,), 0, u.dtype), u
    u = _lengthened(u, maximum(n, m))

    def step(window: Array, coming: Array) -> tuple[Array, tuple[Array, Array]]:
        factor = divide(slicing.index_in_dim(window, 0, keepdims=False),
                        slicing.index_in_dim(v, 0, keepdims=False))
        window = subtract(window, multiply(factor, v))
        shifted = slicing.concatenate([window[1:], lax_shape.expand_dims(coming, (0,))], 0)
        return shifted, (factor, window[0])

    # The window is the part above the divisor's coefficients; one number enters per step.
    entering = slicing.concatenate([u[m:], full((1,), 0, u.dtype)], 0)
    window, (quotient, left) = scan(step, u[:m], entering)
    rest = slicing.concatenate([left, window[:m - 1]], 0)
    return quotient, rest[rest.shape[0] - n:]


# Derivatives and integrals -----------------------------------------------------------------------

def _derivative_order(name: str, m: int) -> int:
    m = static_int(m, name, "m")
    if not 0 <= m < 2**31:
        raise ValueError(f"{name}: m {m} given; a number in [0, 2**31) is required.")
    return m


@fused(static=("m",))
def polyder(p: ArrayLike, m: int = 1) -> Array:
    """The m-th derivative of a polynomial.

    Returns: Coefficients [max(n - m, 0)]; small integers become default ones.

    >>> print(onp.polyder(onp.array([1, 1, 1, 1])))
    [3 2 1]
    """
    (p,) = _coefficients("polyder", p)
    m = _derivative_order("polyder", m)
    n = p.shape[0]
    if not m:
        return p
    if not dtypes.is_inexact(p.dtype):     # as NumPy, whose factors are default integers
        p = convert(p, dtypes.promote_types(p.dtype, dtypes.default_int())[0])
    if known_less(n, m + 1):
        return p[:0]
    # x**k becomes k (k-1) … (k-m+1) x**(k-m); integers wrap as they would step by step.
    size = maximum(n - m, 0)
    return multiply(p[:size], _falling(n - 1, size, m, p.dtype))


def _falling(first: DimSize, size: DimSize, m: int, dtype: DType) -> Array:
    """k (k-1) … (k-m+1) for so many k from `first` down."""
    if is_static((first, size)):
        return asarray(_at_dtype([math.perm(first - i, m) for i in range(size)], dtype))
    factors = add(lax_shape.expand_dims(iota(np.int32, size), (1,)), iota(np.int32, m))
    return reduce_prod(convert(subtract(first, factors), dtype), (1,))


def _at_dtype(values: Sequence[int], dtype: DType) -> np.ndarray:
    """Python ints of any size at a dtype: modulo its range, or rounded."""
    if dtypes.is_integer(dtype):
        bits = dtypes.itemsize_bits(dtype)
        return np.array([v % 2**bits for v in values], np.uint64).astype(dtype)
    return dtypes.converted(np.array([float(v) for v in values]), dtype)


@fused(static=("m",))
def polyint(p: ArrayLike, m: int = 1, k: int | ArrayLike | None = None) -> Array:
    """The m-th integral of a polynomial.

    Args:
      p: coefficients [n], highest power first; integers become floats.
      k: the constants of integration, zero unless given: one for all, or [m], in the order in
        which they enter.
    Returns: float[n + m].

    >>> print(onp.polyint(onp.array([6., 2.]), k=5))
    [3. 2. 5.]
    """
    m = _derivative_order("polyint", m)
    arrays = [p] if k is None else [p, k]
    p, *rest = _coefficients("polyint", *arrays, to_inexact=m > 0)
    given_constants = rest[0].shape[0] if rest else 1
    several = not definitely_equal(given_constants, 1)
    if several and less(given_constants, m):
        raise ValueError(f"polyint: k {rest[0].aval} given for {m} integrals; one constant, or one "
                         "for each, is required.")
    if not m:
        return p
    n = p.shape[0]
    constants = (full((m,), 0, p.dtype) if not rest else rest[0][:m] if several
                 else broadcast_to(rest[0], (m,)))
    later = [math.factorial(m - 1 - i) for i in range(m)]
    return slicing.concatenate([divide(p, _falling(n - 1 + m, n, m, p.dtype)),
                                divide(constants, asarray(_at_dtype(later, p.dtype)))], 0)


# Zeros -------------------------------------------------------------------------------------------

@fused
def poly(seq_of_zeros: ArrayLike) -> Array:
    """The polynomial with the given zeros and leading coefficient 1.

    Args: seq_of_zeros: [n], or [n, n]: a matrix, whose characteristic polynomial it is.
    Returns: Coefficients [n + 1], highest power first; complex zeros have complex coefficients,
      also where the zeros come in conjugate pairs (NumPy looks at the values).

    >>> print(onp.poly(onp.array([1., 2.])))
    [ 1. -3.  2.]
    """
    (values,) = array_args("poly", seq_of_zeros)
    zeros = to_array(inexact(values))
    real = not dtypes.is_complex(zeros.dtype)
    if zeros.ndim == 2 and zeros.shape[0] and definitely_equal(*zeros.shape):
        zeros = decompositions.eigvals(zeros)
    elif zeros.ndim > 1:
        raise ValueError(f"poly: {zeros.aval} given; a vector of zeros or a square matrix is "
                         "required.")
    elif not zeros.ndim:
        zeros = lax_shape.expand_dims(zeros, (0,))
    n, nothing = zeros.shape[0], full((1,), 0, zeros.dtype)
    if not n:
        return full((), 1, zeros.dtype)

    def step(p: Array, zero: Array) -> tuple[Array, None]:     # times (x - zero)
        return subtract(p, multiply(zero, slicing.concatenate([nothing, p[:-1]], 0))), None

    start = slicing.concatenate([full((1,), 1, zeros.dtype), full((n,), 0, zeros.dtype)], 0)
    p, _ = scan(step, start, zeros)
    return arithmetic.real(p) if real and dtypes.is_complex(p.dtype) else p


@named
def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """The zeros of a polynomial, as eigenvalues of its companion matrix.

    Args: strip_zeros: whether to drop leading and trailing zeros first, which decides the result's
        shape, so that `p` must not be traced. Without it the n - 1 results are the zeros, then NaN
        for as many as there are leading zeros.
    Returns: complex64 (complex128 of 64-bit numbers), also where all zeros are real (NumPy looks at
      the values).

    Raises ValueError for other ranks.

    >>> print(onp.sort(onp.roots(onp.array([1., -3., 2.])).real).round(4))
    [1. 2.]
    """
    (p,) = _coefficients("roots", p, to_inexact=True)
    if not strip_zeros:
        return _all_roots(p)
    nonzero = np.flatnonzero(concrete("roots", p, "the polynomial", "pass strip_zeros=False"))
    kind = dtypes.to_complex_dtype(p.dtype)
    if not nonzero.size:
        return full((0,), 0, kind)
    nonzero_roots = _companion_roots(p[nonzero[0]:nonzero[-1] + 1])
    return slicing.concatenate([nonzero_roots, full((p.shape[0] - 1 - nonzero[-1],), 0, kind)], 0)


@fused
def _companion_roots(p: Array) -> Array:
    """The eigenvalues of the matrix whose characteristic polynomial is p / p[0]."""
    n = p.shape[0]
    if less(n, 2):
        return full((0,), 0, dtypes.to_complex_dtype(p.dtype))
    first = divide(neg(p[1:]), p[0])
    companion = slicing.concatenate([first[None], eye(n - 2, n - 1, dtype=p.dtype)], 0)
    return decompositions.eigvals(companion)


@fused
def _all_roots(p: Array) -> Array:
    """The zeros; NaN for those that are missing because leading coefficients are zero.

    Those coefficients are moved behind the others, which makes as many zeros at 0 more.
    """
    n, dtype = p.shape[0], dtypes.default_int()
    if less(n, 2):
        return _companion_roots(p)
    leading = reduce_sum(convert(eq(_seen(p), full((n,), 0, dtype)), dtype), (0,))
    indices = iota(dtype, n)
    moved = take(p, indices + leading, mode="wrap")
    others = subtract(n, leading)
    values = _companion_roots(where(others == 0, full((n,), 1, p.dtype), moved))
    by_size = argsort(arithmetic.abs(values), descending=True)
    return where(indices[:-1] < others - 1, take(values, by_size, mode="clip"), np.nan)


def _seen(p: Array) -> Array:
    """How many coefficients up to each place are not zero."""
    return cumsum(convert(ne(p, full(p.shape, 0, p.dtype)), dtypes.default_int()), 0)


# Fits --------------------------------------------------------------------------------------------

@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None,
            full: Literal[False] = False, w: ArrayLike | None = None, cov: Literal[False] = False
            ) -> Array: ...


@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, *,
            full: Literal[True], w: ArrayLike | None = None, cov: bool | str = False
            ) -> tuple[Array, ...]: ...


@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: ArrayLike | None = None, *, cov: Literal[True, "unscaled"]
            ) -> tuple[Array, ...]: ...


@overload
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: ArrayLike | None = None, cov: bool | str = False
            ) -> Array | tuple[Array, ...]: ...


@named
def polyfit(x: ArrayLike, y: ArrayLike, deg: int, rcond: float | None = None, full: bool = False,
            w: ArrayLike | None = None, cov: bool | str = False) -> Array | tuple[Array, ...]:
    """The polynomial of a given degree with the least sum of squared distances from points.

    Args:
      x: [m], where the points lie; integers become floats.
      y: [m], their values, or [m, k], whose columns are fitted one by one.
      deg: the degree, a static int, not negative.
      rcond: singular values up to rcond times the largest count as zero; m times the precision of
        the dtype unless given.
      full: return the solver's diagnostics too.
      w: [m], weights of the residuals, applied before they are squared.
      cov: return the covariances of the coefficients too, scaled by the residuals; not scaled if
        "unscaled".

    Returns:
      Coefficients float[deg + 1] or [deg + 1, k], highest power first. With `full`: (those,
      residuals, rank, singular values, rcond). With `cov`: (those, covariances
      [deg + 1, deg + 1] or [deg + 1, deg + 1, k], 1 for k if unscaled). There is no warning where
      the rank is below deg + 1, since it may be traced; `full` tells it.

    Raises TypeError for other ranks, sizes that differ and no points, ValueError for a negative
    degree, and for `cov` of fewer points than it takes to scale it.

    >>> x = onp.array([0., 1., 2., 3.])
    >>> print(onp.allclose(onp.polyfit(x, 3 * x + 1, 1), onp.array([3., 1.]), atol=1e-5))
    True
    """
    order = static_int(deg, "polyfit", "deg") + 1
    if order < 1:
        raise ValueError(f"polyfit: deg {deg} given; it is not negative.")
    if not isinstance(cov, (bool, np.bool_)) and cov != "unscaled":
        raise ValueError(f"polyfit: cov {cov!r} given; a bool or 'unscaled' is required.")
    arrays = [x, y] if w is None else [x, y, w]
    x, y, *rest = [to_array(a) for a in promote_dtypes("polyfit", *arrays, inexact=True)]
    if x.ndim != 1 or y.ndim not in (1, 2) or not definitely_equal(x.shape[0], y.shape[0]):
        raise TypeError(f"polyfit: x {x.aval} and y {y.aval} given; a vector x, and a vector or "
                        "matrix y of as many rows, are required.")
    if not x.shape[0]:
        raise TypeError(f"polyfit: x {x.aval} given; at least one point is required.")
    if rest and (rest[0].ndim != 1 or not definitely_equal(rest[0].shape[0], x.shape[0])):
        raise TypeError(f"polyfit: w {rest[0].aval} given; a vector of as many elements as x is "
                        "required.")
    if cov and cov != "unscaled" and not full and not less(order, x.shape[0]):
        raise ValueError(f"polyfit: {x.shape[0]} points for degree {deg} given; more than "
                         f"{order} are required to scale the covariances; pass cov='unscaled'.")
    # Points that are real stay so beside complex values, and with them the covariances.
    own = array_args("polyfit", arrays[0], *arrays[2:])
    if dtypes.is_complex(y.dtype):
        x, *rest = [v if dtypes.is_complex(g.dtype) else arithmetic.real(v)
                    for v, g in zip([x, *rest], own)]
    if rcond is not None:
        rcond = real_number(rcond, "polyfit: rcond")
    elif is_static(x.shape):    # of a symbolic size lstsq computes it
        rcond = x.shape[0] * float(dtypes.finfo(x.dtype).eps)
    coefficients, residuals, rank, s, covariance = _polyfit(x, y, *rest, order=order, rcond=rcond,
                                                            with_covariance=bool(cov) and not full)
    if full:
        eps = float(dtypes.finfo(x.dtype).eps)
        return coefficients, residuals, rank, s, asarray(
            x.shape[0] * eps if rcond is None else rcond, s.dtype)
    if not cov:
        return coefficients
    if y.ndim == 2:
        covariance = covariance[:, :, None]
    if cov != "unscaled":
        factor = divide(residuals, x.shape[0] - order)
        covariance = multiply(covariance, factor[0] if y.ndim == 1 else factor[None, None])
    return coefficients, covariance


@fused(static=("order", "rcond", "with_covariance"))
def _polyfit(x: Array, y: Array, w: Array | None = None, *, order: int, rcond: float | None,
             with_covariance: bool) -> tuple[Any, ...]:
    """(coefficients; residuals, rank and singular values; unscaled covariances or None)."""
    powers, right = vander(x, order), y
    if w is not None:
        powers = multiply(powers, w[:, None])
        right = multiply(right, w[:, None] if y.ndim == 2 else w)
    # Columns of one length: powers of large x would hide the others from the cutoff.
    sizes = arithmetic.abs(powers)
    scale = sqrt(reduce_sum(multiply(sizes, sizes), (0,)))
    powers = divide(powers, scale[None])
    coefficients, residuals, rank, s = decompositions.lstsq(powers, right, rcond)
    coefficients = divide(coefficients, scale[:, None] if y.ndim == 2 else scale)
    if not with_covariance:
        return coefficients, residuals, rank, s, None
    products = matmul(lax_shape.transpose(powers, (1, 0)), powers)
    inverse = systems.inv(products)
    return coefficients, residuals, rank, s, divide(divide(inverse, scale[:, None]), scale[None])


complete_docstrings(globals(), {
    "a1, a2": "coefficients [n] and [m], highest power first; a scalar is a constant.",
    "p": "coefficients [n], highest power first.",
    "m": "a static int, not negative.",
})
