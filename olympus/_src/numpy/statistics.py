"""Means, variances, order statistics and finite differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from ..base.config import compatible
from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike, Axis, DType, DTypeLike
from ..core.trace import literal
from ..jit.fused import fused
from ..lax import arithmetic, shape as lax_shape, slicing
from ..lax.arithmetic import RoundingMethod, div, imag, mul, real, rem, sub
from ..lax.bits import bitwise_and, bitwise_not, bitwise_or
from ..lax.comparison import eq, ge, gt, le, lt, ne
from ..lax.cumulative import cummax, cumsum
from ..lax.families import add
from ..lax.indexing import take_along
from ..lax.sharding import constrain
from ..lax.sort import ranked_p, sort
from ..lax.transcendental import sqrt
from ..types import dtypes
from ..types.shape import (
    broadcast_shapes, canonical_axes, canonical_axis, less, maximum, minimum, prod as size_of,
    static_int,
)
from . import reductions
from .arithmetic import divide, multiply, not_equal, subtract
from .options import mask_arg
from .promote import (
    BOOL, array_args, broadcast_to, choose, convert, inexact, inexact_dtypes, promote_dtypes,
    refuse_option, to_array,
)
from .reductions import Axes, expand, is_nan, reduce_sum, reduction_args


def _mean_dtype(name: str, x: Array, dtype: DTypeLike | None) -> DType:
    if dtype is None:
        return dtypes.to_inexact_dtype(x.dtype)
    dtype = reductions.dtype_for(name, x, dtype)
    if dtype == BOOL:
        raise TypeError(f"{name}: dtype bool given; a dtype of numbers is required.")
    return dtype


def _element_count(x: Array, where: Array | None, axes: Axes, keepdims: bool,
                   dtype: DType) -> Array:
    """The number of elements that a statistic counts, as a number or (with a mask) an array."""
    if where is None:
        return literal(size_of([x.shape[i] for i in axes]), dtype)
    mask = convert(broadcast_to(where, broadcast_shapes(x.shape, where.shape)), dtype)
    return expand(reduce_sum(mask, axes), axes, keepdims)


# Means and variances -----------------------------------------------------------------------------

@fused(static=("axes", "keepdims", "dtype"))
def _mean(x: Array, where: Array | None, *, axes: Axes, keepdims: bool, dtype: DType) -> Array:
    wide = dtypes.wide_dtype(dtypes.to_inexact_dtype(dtype))
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(wide):
        x = real(x)
    x = convert(x, wide)
    total = expand(reduce_sum(reductions.masked(x, where, literal(0, wide)), axes), axes, keepdims)
    return convert(div(total, _element_count(x, where, axes, keepdims, wide)), dtype)


@fused(static=("axis", "dtype", "out", "keepdims"))
def mean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
         keepdims: bool = False, *, where: ArrayLike | None = None) -> Array:
    """The arithmetic mean over axes; NaN of no elements.

    Args:
      a: array of numbers or booleans.
      dtype: dtype of the result; by default `a`'s, float32 for integers (float64 for 64-bit ones
        with x64). 16-bit floats are accumulated in float32.
    Returns: `a` without the reduced axes.

    >>> onp.mean(onp.arange(4))
    Array(1.5, dtype=float32)
    >>> print(onp.mean(onp.array([[1., 2.], [3., 5.]]), axis=0))
    [2.  3.5]
    """
    x, axes, keepdims = reduction_args("mean", a, axis, keepdims, out)
    return _mean(x, mask_arg("mean", where), axes=axes, keepdims=keepdims,
                 dtype=_mean_dtype("mean", x, dtype))


@fused(static=("axes", "keepdims", "dtype", "root", "few_are_nan"))
def _var(x: Array, where: Array | None, mean: ArrayLike | None, correction: ArrayLike, *,
         axes: Axes, keepdims: bool, dtype: DType, root: bool, few_are_nan: bool) -> Array:
    wide = dtypes.to_inexact_dtype(x.dtype)
    if dtype not in (wide, dtypes.to_real_dtype(wide)):
        wide = dtypes.to_inexact_dtype(dtypes.promote_types(wide, dtype)[0])
    wide = dtypes.wide_dtype(wide)
    x = convert(x, wide)
    centre = (_mean(x, where, axes=axes, keepdims=True, dtype=wide) if mean is None
              else convert(mean, wide))
    gap = sub(x, broadcast_to(centre, x.shape))
    # Twice: a square that is left out may be infinite, and derivatives multiply it by 0.
    gap = reductions.masked(gap, where, literal(0, wide))
    square = (add(arithmetic.square(real(gap)), arithmetic.square(imag(gap)))
              if dtypes.is_complex(wide) else arithmetic.square(gap))
    total = reduce_sum(reductions.masked(square, where, literal(0, square.dtype)), axes)
    count = _element_count(x, where, axes, False, square.dtype)
    count = sub(count, convert(array_args("var", correction)[0], square.dtype))
    zero = literal(0, square.dtype)
    count = (choose(gt(count, zero), count, literal(np.nan, count.dtype)) if few_are_nan
             else arithmetic.max(count, zero))
    variance = div(total, broadcast_to(count, total.shape))
    variance = expand(sqrt(variance) if root else variance, axes, keepdims)
    return convert(variance, dtype)


def _variance(name: str, root: bool, a: ArrayLike, axis: int | Sequence[int] | None,
              dtype: DTypeLike | None, out: None, ddof: int, keepdims: bool,
              where: ArrayLike | None, mean: ArrayLike | None, correction: ArrayLike | None
              ) -> Array:
    x, axes, keepdims = reduction_args(name, a, axis, keepdims, out)
    if correction is not None and ddof != 0:
        raise ValueError(f"{name}: both ddof {ddof} and correction {correction} given; they mean "
                         "the same; pass one.")
    if isinstance(ddof, (complex, np.complexfloating)):
        raise TypeError(f"{name}: ddof {ddof} given; a real number is required.")
    dtype = (dtypes.to_real_dtype(dtypes.to_inexact_dtype(x.dtype)) if dtype is None
             else dtypes.requested_dtype(name, dtype))
    if dtype == BOOL:
        raise ValueError(f"{name}: dtype {dtype} given; variances are real; pass a real dtype.")
    few_are_nan = name.startswith("nan") and dtypes.is_inexact(x.dtype)     # NumPy's rule
    return _var(x, mask_arg(name, where), mean, ddof if correction is None else correction,
                axes=axes, keepdims=keepdims, dtype=dtype, root=root, few_are_nan=few_are_nan)


@fused(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"))
def var(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: int = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: int | float | None = None) -> Array:
    """The variance over axes: the sum of |x - mean|**2 divided by n - ddof.

    Args:
      a: array of numbers or booleans; floats are computed in at least float32.
      dtype: a real dtype for the result; by default the float dtype of `mean`, real for complex
        `a`.
      ddof: subtracted from the number of elements: 0 for a population, 1 for a sample of it.
      mean: the mean, with the reduced axes kept, if it is known.
      correction: the array API standard's name of `ddof`.
    Returns: `a` without the reduced axes, real; NaN or infinite where n <= ddof.

    Raises ValueError for both `ddof` and `correction`, and for a dtype that is not real.

    >>> print(onp.var(onp.array([1., 2., 3., 4.])), onp.var(onp.array([1., 2., 3.]), ddof=1))
    1.25 1.0
    """
    return _variance("var", False, a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@fused(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"))
@described_like(var)
def std(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
        ddof: int = 0, keepdims: bool = False, *, where: ArrayLike | None = None,
        mean: ArrayLike | None = None, correction: int | float | None = None) -> Array:
    """The standard deviation over axes: the square root of `var`.

    Its gradient is not finite where all elements are equal.

    Args: axis, dtype, out, ddof, keepdims, where, mean, correction: as for `var`.

    >>> print(onp.std(onp.array([[1., 3.], [2., 6.]]), axis=1))
    [1. 2.]
    """
    return _variance("std", True, a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def _with_nan_mask(name: str, a: ArrayLike, where: ArrayLike | None) -> tuple[Array, Array | None]:
    """The operand, 0 for NaN, and a mask of elements in `where` that are not NaN; None for all."""
    (x,) = array_args(name, a)
    mask = mask_arg(name, where)
    if not dtypes.is_inexact(x.dtype):
        return x, mask
    present = eq(x, x)
    x = reductions.masked(x, present, literal(0, x.dtype))      # derivatives multiply by 0
    if mask is None:
        return x, present
    shape = broadcast_shapes(x.shape, mask.shape)
    return x, bitwise_and(broadcast_to(present, shape), broadcast_to(mask, shape))


@fused(static=("axis", "dtype", "out", "keepdims"))
def nanmean(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
            keepdims: bool = False, where: ArrayLike | None = None) -> Array:
    """The mean over axes of the elements that are not NaN.

    Args:
      a: array of numbers or booleans.
      dtype: dtype of the result, by default `mean`'s.
    Returns: `a` without the reduced axes; NaN (without NumPy's warning) where all are NaN.

    >>> print(onp.nanmean(onp.array([[1., onp.nan, 3.], [4., 5., 6.]]), axis=1))
    [2. 5.]
    """
    x, mask = _with_nan_mask("nanmean", a, where)
    return mean(x, axis, dtype, out, keepdims, where=mask)


@fused(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"))
def nanvar(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           ddof: int = 0, keepdims: bool = False, where: ArrayLike | None = None,
           mean: ArrayLike | None = None, *, correction: int | float | None = None) -> Array:
    """The variance over axes of the elements that are not NaN.

    Args:
      a: array of numbers or booleans.
      axis, dtype, out, ddof, keepdims, where, mean, correction: as for `var`.
    Returns: `a` without the reduced axes, real; NaN where no more than `ddof` elements are left.

    >>> print(onp.nanvar(onp.array([1., onp.nan, 3.])))
    1.0
    """
    x, mask = _with_nan_mask("nanvar", a, where)
    return _variance("nanvar", False, x, axis, dtype, out, ddof, keepdims, mask, mean, correction)


@fused(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"))
@described_like(nanvar)
def nanstd(a: ArrayLike, axis: Axis = None, dtype: DTypeLike | None = None, out: None = None,
           ddof: int = 0, keepdims: bool = False, where: ArrayLike | None = None,
           mean: ArrayLike | None = None, *, correction: int | float | None = None) -> Array:
    """The standard deviation over axes of the elements that are not NaN.

    >>> print(onp.nanstd(onp.array([1., onp.nan, 5.])))
    2.0
    """
    x, mask = _with_nan_mask("nanstd", a, where)
    return _variance("nanstd", True, x, axis, dtype, out, ddof, keepdims, mask, mean, correction)


def _spread_weights(name: str, w: Array, x: Array, axis: Axis, axes: Axes) -> Array:
    """Weights in the shape of `x`, from that shape or one size per reduced axis."""
    if w.shape == x.shape:
        return w
    if axis is None or w.shape != tuple([x.shape[i] for i in axes]):
        raise ValueError(f"{name}: weights {w.aval} for {x.aval} with axis {axis} given; weights "
                         "of the same shape, or of the sizes of the axes, are required.")
    w = lax_shape.transpose(w, sorted(range(len(axes)), key=axes.__getitem__))
    return lax_shape.broadcast_in_dim(w, x.shape, sorted(axes))


@overload
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None,
            returned: Literal[False] = False, keepdims: bool = False) -> Array: ...


@overload
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None, *,
            returned: Literal[True], keepdims: bool = False) -> tuple[Array, Array]: ...


@overload
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None,
            returned: bool = False, keepdims: bool = False) -> Array | tuple[Array, Array]: ...


@fused(static=("axis", "returned", "keepdims"))
def average(a: ArrayLike, axis: Axis = None, weights: ArrayLike | None = None,
            returned: bool = False, keepdims: bool = False) -> Array | tuple[Array, Array]:
    """The weighted mean over axes: the sum of weights * a, divided by the sum of the weights.

    Unlike NumPy, which raises, weights that add up to 0 give NaN or infinity.

    Args:
      a: array of numbers or booleans.
      weights: of the shape of `a`, or of the sizes of the axes in `axis`, in their order; equal
        weights if None.
      returned: whether to return the sum of the weights, too.
    Returns: `a` without the reduced axes, inexact; with `returned` the pair of it and the sum.

    Raises ValueError for weights of another shape.

    >>> print(onp.average(onp.array([1., 2., 6.]), weights=onp.array([1, 2, 1])))
    2.75
    """
    x, axes, keepdims = reduction_args("average", a, axis, keepdims)
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        count = literal(size_of([x.shape[i] for i in axes]), out.dtype)
        total: Any = to_array(broadcast_to(count, out.shape))
        return (out, total) if returned else out
    x, w = inexact_dtypes("average", x, *array_args("average", weights))
    dtype = x.dtype
    x, w = [convert(v, dtypes.wide_dtype(dtype)) for v in (x, w)]
    w = _spread_weights("average", w, x, axis, axes)
    total = reductions.sum(w, axis, keepdims=keepdims)
    out = convert(divide(reductions.sum(multiply(x, w), axis, keepdims=keepdims), total), dtype)
    return (out, convert(total, dtype)) if returned else out


@fused(static=("axis", "out", "keepdims"))
def ptp(a: ArrayLike, axis: Axis = None, out: None = None, keepdims: bool = False) -> Array:
    """The largest minus the smallest element over axes, in the dtype of `a`.

    Small integers may wrap around, as NumPy's do.

    Args: a: array of numbers.
    Returns: `a` without the reduced axes.

    Raises ValueError for no elements.

    >>> print(onp.ptp(onp.array([[1, 5], [7, 2]]), axis=1))
    [4 5]
    """
    refuse_option("ptp", out=out)
    a, = array_args("ptp", a)
    canonical_axes(axis, a.ndim, "ptp")
    return subtract(reductions.max(a, axis, keepdims=keepdims),
                    reductions.min(a, axis, keepdims=keepdims))


# Order statistics --------------------------------------------------------------------------------

# Where the quantile q of n ranks lies, counted from 0: (n + 1 - a - b) q + a - 1.
METHODS = {
    "linear": (1, 1), "lower": (1, 1), "higher": (1, 1), "midpoint": (1, 1), "nearest": (1, 1),
    "inverted_cdf": (0, 1), "averaged_inverted_cdf": (0, 1), "closest_observation": (-0.5, 1.5),
    "interpolated_inverted_cdf": (0, 1), "hazen": (0.5, 0.5), "weibull": (0, 0),
    "median_unbiased": (1 / 3, 1 / 3), "normal_unbiased": (3 / 8, 3 / 8),
}
# Methods that jump where a quantile passes a rank.
_STEP_METHODS = frozenset(("lower", "higher", "midpoint", "nearest", "inverted_cdf",
                           "averaged_inverted_cdf", "closest_observation"))


@fused(static=("axes", "keepdims", "method", "skip_nan"))
def _quantile(x: Array, q: Array, w: Array | None, *, axes: Axes, keepdims: bool, method: str,
              skip_nan: bool) -> Array:
    """x[...], q[*qs], w[...] or None -> [*qs, ...]: interpolate between elements of two ranks."""
    other_axes = [i for i in range(x.ndim) if i not in axes]
    batch = tuple([x.shape[i] for i in other_axes])
    n, last = size_of([x.shape[i] for i in axes]), len(batch)
    full = (*q.shape, *batch)
    if not size_of(full) or not n:
        out = to_array(broadcast_to(literal(np.nan, x.dtype), full))
    else:
        x = lax_shape.reshape(lax_shape.transpose(x, (*other_axes, *axes)), (*batch, n))
        if w is not None:
            w = lax_shape.reshape(lax_shape.transpose(w, (*other_axes, *axes)), (*batch, n))
        missing = is_nan(x)
        if w is not None and skip_nan:
            w = choose(missing, literal(0, w.dtype), w)
        present = reduce_sum(convert(bitwise_not(missing), q.dtype), (last,))
        wide_q = lax_shape.broadcast_in_dim(q, full, tuple(range(q.ndim)))
        if w is not None:
            x, w = sort((x, w), last)
            ranks = _by_element(_weighted_rank(w, wide_q, q.ndim), q.ndim)
            out = _by_quantile(take_along(x, ranks, last), full)
            weightless = eq(reduce_sum(w, (last,)), literal(0, w.dtype))
            out = choose(broadcast_to(weightless, full), literal(np.nan, x.dtype), out)
        else:
            count = present if skip_nan else broadcast_to(literal(n, q.dtype), batch)
            out = _between(x, wide_q, broadcast_to(count, full), method, q.ndim)
        bad = bitwise_or(_outside(wide_q), broadcast_to(
            eq(present, literal(0, q.dtype)) if skip_nan else
            lt(present, literal(n, q.dtype)), full))
        # A product, so that the derivative is NaN, too.
        out = mul(out, choose(bad, literal(np.nan, out.dtype), literal(1, out.dtype)))
    return lax_shape.expand_dims(out, tuple([q.ndim + i for i in axes])) if keepdims else out


def _outside(q: Array) -> Array:
    """Where a fraction is not in [0, 1]."""
    return bitwise_not(bitwise_and(ge(q, literal(0, q.dtype)),
                                   le(q, literal(1, q.dtype))))


def _by_element(rank: Array, lead: int) -> Array:
    """rank[*qs, ...] with `lead` axes in qs -> integers [..., k], for the k elements of qs."""
    ranks = convert(rank, dtypes.default_int())
    shape = rank.shape
    ranks = lax_shape.reshape(ranks, (size_of(shape[:lead]), *shape[lead:]))
    return lax_shape.move_axis(ranks, 0, ranks.ndim - 1)


def _by_quantile(quantiles: Array, shape: tuple[int, ...]) -> Array:
    """[..., k] -> [*qs, ...], the inverse."""
    return lax_shape.reshape(lax_shape.move_axis(quantiles, quantiles.ndim - 1, 0), shape)


def _weighted_rank(w: Array, q: Array, lead: int) -> Array:
    """The first rank at which the running sum of w[..., n] reaches the fraction q[*qs, ...]."""
    # The sum in blocks is rounded: it may fall, and move where a weight is 0.
    zero = literal(0, w.dtype)
    total = cummax(choose(gt(w, zero), cumsum(w, w.ndim - 1), literal(-1, w.dtype)), w.ndim - 1)
    shape = (*q.shape, w.shape[-1])
    inner = tuple(range(lead, len(shape)))
    goal = mul(lax_shape.broadcast_in_dim(q, shape, tuple(range(q.ndim))),
               lax_shape.broadcast_in_dim(
                   slicing.slice_in_dim(total, w.shape[-1] - 1, None, axis=w.ndim - 1),
                   shape, inner))
    total = lax_shape.broadcast_in_dim(total, shape, inner)
    # An element of no weight before all others is not reached by the fraction 0.
    short = lt(total, goal)
    rank = reduce_sum(convert(short, dtypes.default_int()), (len(shape) - 1,))
    return arithmetic.min(rank, broadcast_to(literal(w.shape[-1] - 1, rank.dtype), rank.shape))


def _between(x: Array, q: Array, count: Array, method: str, lead: int) -> Array:
    """The quantiles q[*qs, ...] of the first count[*qs, ...] elements of x[..., n], in order."""
    a, b = METHODS[method]
    zero, one, half = (literal(v, q.dtype) for v in (0, 1, 0.5))
    place = mul(q, add(count, literal(1 - a - b, q.dtype)))
    if method in _STEP_METHODS:    # 0.2 of 5 ranks is 1 rank, though 0.2 is rounded
        whole = arithmetic.round(place, RoundingMethod.TO_NEAREST_EVEN)
        error = mul(whole, literal(float(dtypes.finfo(q.dtype).eps), q.dtype))
        place = choose(le(arithmetic.abs(sub(place, whole)), error), whole, place)
    place = add(place, literal(a - 1, q.dtype))
    floor = arithmetic.floor(place)
    weight, last = sub(place, floor), sub(count, one)
    low, high = [arithmetic.max(arithmetic.min(rank, last), broadcast_to(zero, q.shape))
                 for rank in (floor, add(floor, one))]
    up = gt(weight, zero)
    if method in ("nearest", "closest_observation"):
        odd = ne(rem(floor, literal(2, q.dtype)), zero)
        tie, base = (half, odd) if method == "nearest" else (zero, bitwise_not(odd))
        up = bitwise_or(gt(weight, tie), bitwise_and(eq(weight, tie), base))
    below, after = [_by_quantile(v, q.shape) for v in ranked_p.bind(x, _by_element(low, lead))]
    above = choose(eq(high, low), below, after)     # `high` is `low` or the next rank
    if method == "lower":
        return below
    if method in ("higher", "nearest", "inverted_cdf", "closest_observation"):
        return choose(up, above, below)
    middle = mul(add(below, above), half)
    if method in ("midpoint", "averaged_inverted_cdf"):
        return choose(up, middle, below) if method == "midpoint" else choose(up, above, middle)
    mixed = add(below, mul(sub(above, below), weight))
    return choose(eq(below, above), below, mixed)    # no NaN between equal infinities


def _quantiles(name: str, a: ArrayLike, q: ArrayLike, axis: Axis, out: None, overwrite_input: bool,
               method: str, keepdims: bool, weights: ArrayLike | None, skip_nan: bool,
               scale: float = 1.0) -> Array:
    refuse_option(name, out=out)
    if overwrite_input:
        raise ValueError(f"{name}: overwrite_input=True given; arrays are never overwritten.")
    if not isinstance(method, str) or method not in METHODS:
        raise ValueError(f"{name}: method {method!r} given; one of {', '.join(METHODS)} is "
                         "required.")
    if weights is not None and method != "inverted_cdf":
        raise ValueError(f"{name}: weights with method {method!r} given; only 'inverted_cdf' takes "
                         "weights.")
    x, axes, keepdims = reduction_args(name, a, axis, keepdims)
    (q,) = array_args(name, q)
    if dtypes.is_complex(x.dtype) or dtypes.is_complex(q.dtype):
        raise ValueError(f"{name}: {x.aval} and q {q.aval} given; real numbers are required, "
                         "because complex numbers have no order.")
    dtype = dtypes.to_inexact_dtype(x.dtype)
    wide = dtypes.wide_dtype(dtype)
    q = convert(q, wide)
    if scale != 1.0:
        q = div(q, literal(scale, wide))
    if compatible.value:      # otherwise a quantile beyond the data is NaN
        q = arithmetic.max(literal(0, wide), arithmetic.min(q, literal(1, wide)))
    x = convert(x, wide)
    x, q = broadcast_to(x, x.shape), broadcast_to(q, q.shape)
    if weights is not None:
        (weights,) = array_args(name, weights)
        weights = _spread_weights(name, convert(weights, wide), x, axis, axes)
    return convert(_quantile(x, q, weights, axes=axes, keepdims=keepdims, method=method,
                             skip_nan=skip_nan), dtype)


@fused(static=("axis", "out", "overwrite_input", "method", "keepdims"))
def quantile(a: ArrayLike, q: ArrayLike, axis: int | tuple[int, ...] | None = None,
             out: None = None, overwrite_input: bool = False, method: str = "linear",
             keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The values below which the fractions `q` of the elements over axes lie.

    The gradient goes to the one or two that a quantile lies at.

    Args:
      method: where the quantile lies and what lies between two elements, by NumPy's names:
        linear, lower, higher, midpoint, nearest, inverted_cdf, averaged_inverted_cdf,
        closest_observation, interpolated_inverted_cdf, hazen, weibull, median_unbiased or
        normal_unbiased.
      weights: how often each element counts, with the method "inverted_cdf" alone: of the shape
        of `a`, or of the sizes of the axes in `axis`.
    Returns: The axes of `q`, then those left of `a`, in the float dtype of `a`. NaN where an
      element is NaN, of no elements, and where `q` is not in [0, 1] (NumPy raises).

    Raises ValueError for complex numbers and for weights with another method.

    >>> print(onp.quantile(onp.array([1., 2., 4., 8.]), onp.array([0.5, 0.75])))
    [3. 5.]
    """
    return _quantiles("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights,
                      False)


@fused(static=("axis", "out", "overwrite_input", "method", "keepdims"))
def nanquantile(a: ArrayLike, q: ArrayLike, axis: int | tuple[int, ...] | None = None,
                out: None = None, overwrite_input: bool = False, method: str = "linear",
                keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The values below which the fractions `q` of the elements that are not NaN lie.

    Args: axis, out, overwrite_input, method, keepdims, weights: as for `quantile`.

    Returns:
      The axes of `q`, then those left of `a`, in the float dtype of `a`; NaN where all are NaN.

    Raises ValueError for complex numbers and for weights with a method other than "inverted_cdf".

    >>> print(onp.nanquantile(onp.array([1., onp.nan, 2., 4.]), 0.5))
    2.0
    """
    return _quantiles("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights,
                      True)


@fused(static=("axis", "out", "overwrite_input", "method", "keepdims"))
def percentile(a: ArrayLike, q: ArrayLike, axis: int | tuple[int, ...] | None = None,
               out: None = None, overwrite_input: bool = False, method: str = "linear",
               keepdims: bool = False, *, weights: ArrayLike | None = None,
               out_sharding: None = None) -> Array:
    """The values below which `q` percent of the elements over axes lie.

    Args:
      q: array of percentages in [0, 100].
      axis, out, overwrite_input, method, keepdims, weights: as for `quantile`.

    Returns:
      The axes of `q`, then those left of `a`, in the float dtype of `a`; NaN as for `quantile`.

    Raises ValueError for complex numbers and for weights with a method other than "inverted_cdf".

    >>> print(onp.percentile(onp.array([1., 2., 4., 8.]), 50, method="lower"))
    2.0
    """
    result = _quantiles("percentile", a, q, axis, out, overwrite_input, method, keepdims, weights,
                        False, 100.0)
    return constrain("percentile", result, out_sharding)


@fused(static=("axis", "out", "overwrite_input", "method", "keepdims"))
@described_like(nanquantile)
def nanpercentile(a: ArrayLike, q: ArrayLike, axis: int | tuple[int, ...] | None = None,
                  out: None = None, overwrite_input: bool = False, method: str = "linear",
                  keepdims: bool = False, *, weights: ArrayLike | None = None) -> Array:
    """The values below which `q` percent of the elements that are not NaN lie.

    Args: q: array of percentages in [0, 100].

    >>> print(onp.nanpercentile(onp.array([1., onp.nan, 3.]), 50))
    2.0
    """
    return _quantiles("nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, weights,
                      True, 100.0)


@fused(static=("axis", "out", "overwrite_input", "keepdims"))
def median(a: ArrayLike, axis: int | tuple[int, ...] | None = None, out: None = None,
           overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """The middle element over axes, or the mean of the middle two; NaN if any is NaN.

    Returns: `a` without the reduced axes, in its float dtype; NaN of no elements.

    Raises ValueError for complex numbers.

    >>> print(onp.median(onp.array([[1, 9, 2], [4, 4, 8]]), axis=1))
    [2. 4.]
    """
    return _quantiles("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None,
                      False)


@fused(static=("axis", "out", "overwrite_input", "keepdims"))
def nanmedian(a: ArrayLike, axis: int | tuple[int, ...] | None = None, out: None = None,
              overwrite_input: bool = False, keepdims: bool = False) -> Array:
    """The median over axes of the elements that are not NaN.

    Returns: `a` without the reduced axes, in its float dtype; NaN where all are NaN.

    Raises ValueError for complex numbers.

    >>> print(onp.nanmedian(onp.array([1., onp.nan, 3., 8.])))
    3.0
    """
    return _quantiles("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None,
                      True)


# Differences -------------------------------------------------------------------------------------

def _slice_along(x: ArrayLike, axis: int, start: int | None, stop: int | None) -> Array:
    return slicing.slice_in_dim(x, start, stop, axis=axis)


def _end(x: Array, like: Array, axis: int) -> Array:
    """`prepend` or `append` as an array: a scalar is repeated along the other axes."""
    if x.shape:
        return x
    return broadcast_to(x, (*like.shape[:axis], 1, *like.shape[axis + 1:]))


@fused(static=("n", "axis"))
def diff(a: ArrayLike, n: int = 1, axis: int = -1, prepend: ArrayLike | None = None,
         append: ArrayLike | None = None) -> Array:
    """The differences of neighbours along an axis, taken `n` times.

    For booleans: whether neighbours differ. Unsigned integers wrap around.

    Args:
      a: array with at least one axis.
      n: how often; 0 returns `a`.
      axis: the axis, which becomes shorter by `n`.
      prepend, append: values put before and after `a` first: arrays, or scalars.
    Returns: An array of the dtype of `a` (promoted with the values put around it).

    Raises ValueError for scalars and for a negative `n`.

    >>> print(onp.diff(onp.array([1, 4, 9, 16])), onp.diff(onp.array([1, 4, 9, 16]), n=2))
    [3 5 7] [2 2]
    """
    (x,) = array_args("diff", a)
    n = static_int(n, "diff", "n")
    if n < 0:
        raise ValueError(f"diff: n {n} given; it is not negative.")
    if not x.shape:
        raise ValueError(f"diff: {x.aval} given; at least one axis is required.")
    axis = canonical_axis(axis, x.ndim, "diff")
    if n == 0:
        return x
    ends = array_args("diff", *[e for e in (prepend, append) if e is not None])
    parts = ([_end(ends[0], x, axis)] if prepend is not None else []) + [x]
    parts += [_end(ends[-1], x, axis)] if append is not None else []
    if len(parts) > 1:
        x = slicing.concatenate(promote_dtypes("diff", *parts), axis)
    for _ in range(min(n, x.shape[axis] + 1)):      # of nothing the difference is nothing
        before_axis = (slice(None),) * axis
        after, before = x[*before_axis, 1:], x[*before_axis, :-1]
        x = not_equal(after, before) if x.dtype == BOOL else subtract(after, before)
    return x


@fused
def ediff1d(ary: ArrayLike, to_end: ArrayLike | None = None,
            to_begin: ArrayLike | None = None) -> Array:
    """The differences of neighbours in row-major order, with elements put before and after.

    Args:
      ary: array of numbers, any shape.
      to_end, to_begin: arrays (flattened) put after and before the differences.
    Returns: A vector of the dtype of `ary`.

    Raises TypeError for booleans, and for elements that NumPy's rule "same_kind" does not cast to
    the array's dtype; the option `numpy_dtype_promotion` has no part in that.

    >>> print(onp.ediff1d(onp.array([1, 4, 9]), to_begin=0))
    [0 3 5]
    """
    (x,) = array_args("ediff1d", ary)
    if x.dtype == BOOL:
        raise TypeError(f"ediff1d: {x.aval} given; numbers are required, because booleans have no "
                        "differences; convert it with astype.")
    differences = diff(lax_shape.reshape(broadcast_to(x, x.shape), (size_of(x.shape),)))

    def flat(e: ArrayLike) -> Array:
        (e,) = array_args("ediff1d", e)
        if not dtypes.can_cast(e.dtype, x.dtype, "same_kind"):
            raise TypeError(f"ediff1d: {e.aval} given beside differences of dtype {x.dtype}; a "
                            "dtype of the same kind is required; convert one with astype.")
        e = convert(e, differences.dtype)
        return lax_shape.reshape(broadcast_to(e, e.shape or (1,)), (size_of(e.shape),))

    parts = ([flat(to_begin)] if to_begin is not None else []) + [differences]
    parts += [flat(to_end)] if to_end is not None else []
    return slicing.concatenate(parts, 0) if len(parts) > 1 else differences


@fused(static=("axis", "edge_order"))
def gradient(f: ArrayLike, *varargs: ArrayLike, axis: int | Sequence[int] | None = None,
             edge_order: int | None = None) -> Array | list[Array]:
    """Derivatives along axes by central differences, one-sided ones at the ends.

    Args:
      f: array; integers become floats.
      varargs: the spacing: none (1), one number, or per axis a number or a vector of coordinates,
        which need not be evenly spaced.
      axis: an axis or several; all if None.
      edge_order: 1 (the default) or 2: the order of the differences at the ends.
    Returns: An inexact array of the shape of `f` for one axis; a list with one for each of several
      (NumPy: a tuple).

    Raises ValueError for an axis of fewer than edge_order + 1 elements, TypeError for spacings that
    are not none, one or one per axis.

    >>> print(onp.gradient(onp.array([1., 4., 9., 16.]), 2.0))
    [1.5 2.  3.  3.5]
    """
    order = 1 if edge_order is None else edge_order
    if order not in (1, 2):
        raise ValueError(f"gradient: edge_order {edge_order} given; 1 or 2 is required.")
    x, *steps = inexact_dtypes("gradient", *array_args("gradient", f, *varargs))
    axes = canonical_axes(axis, len(x.shape), "gradient")
    spacings: list[Any] = steps or array_args("gradient", 1.0)
    if len(spacings) == 1:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"gradient: {len(varargs)} spacings for {len(axes)} axes given; none, one, "
                        "or one per axis are required.")
    if not all(less(order, x.shape[i]) for i in axes):
        raise ValueError(f"gradient: {x.aval} given; at least {order + 1} elements along each axis "
                         "are required.")
    slopes = [_gradient_along(x, h, i, order) for h, i in zip(spacings, axes)]
    return slopes[0] if len(axes) == 1 else slopes


def _gradient_along(x: Array, h: Array, axis: int, order: int) -> Array:
    n = x.shape[axis]

    def cut(values: Array, start: int, stop: int) -> Array:
        return _slice_along(values, axis, start, stop)

    steps = subtract(cut(x, 1, n), cut(x, 0, n - 1))
    if not h.shape:
        slopes = divide(steps, h)
        left = right = literal(0.5, slopes.dtype)
        middle = divide(subtract(cut(x, 2, n), cut(x, 0, n - 2)), multiply(h, 2))
    else:
        gaps = lax_shape.broadcast_in_dim(diff(h), steps.shape, (axis,))
        slopes = divide(steps, gaps)
        both = add(cut(gaps, 0, n - 2), cut(gaps, 1, n - 1))
        left, right = divide(cut(gaps, 0, n - 2), both), divide(cut(gaps, 1, n - 1), both)
        middle = add(multiply(right, cut(slopes, 0, n - 2)),
                     multiply(left, cut(slopes, 1, n - 1)))
    first, last = cut(slopes, 0, 1), cut(slopes, n - 2, n - 1)
    if order == 2:      # the parabola through three points, at its ends
        bend = subtract(cut(slopes, 1, n - 1), cut(slopes, 0, n - 2))
        first = subtract(first, cut(multiply(left, bend), 0, 1))
        last = add(last, cut(multiply(right, bend), n - 3, n - 2))
    return slicing.concatenate([first, middle, last], axis)


@fused(static=("axis",))
def trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0,
              axis: int = -1) -> Array:
    """The integral along an axis by the trapezoidal rule.

    Args:
      y: array of values; integers become floats.
      x: coordinates of the values: a vector, or an array of the shape of `y`.
      dx: the distance of neighbours, where `x` is None.
      axis: the axis.
    Returns: `y` without the axis; 0 of fewer than two values.

    >>> print(onp.trapezoid(onp.array([1., 2., 4.]), dx=0.5))
    2.25
    """
    if x is None:
        y = inexact(array_args("trapezoid", y)[0])
    else:
        y, x = inexact_dtypes("trapezoid", *array_args("trapezoid", y, x))
    at = canonical_axis(axis, len(y.shape), "trapezoid")
    n = y.shape[at]
    pairs = add(_slice_along(y, at, minimum(n, 1), None), _slice_along(y, at, 0, maximum(n - 1, 0)))
    if x is not None:
        dx = diff(x, axis=-1 if len(x.shape) == 1 else axis)
        if len(x.shape) == 1:
            dx = lax_shape.broadcast_in_dim(dx, (*(1,) * at, dx.shape[0],
                                                 *(1,) * (y.ndim - at - 1)), (at,))
    else:
        (dx,) = array_args("trapezoid", dx)
        if 0 < dx.ndim < y.ndim:        # its axes are the last ones
            dx = lax_shape.expand_dims(to_array(dx), range(y.ndim - dx.ndim))
    return multiply(reductions.sum(multiply(pairs, dx), axis), 0.5)


complete_docstrings(globals(), {
    "a": "array of real numbers.",
    "axis": "the axis, or a tuple of axes, to reduce; all of them if None.",
    "keepdims": "whether reduced axes stay, with size 1.",
    "where": "booleans that broadcast with `a`; only elements where they are True count.",
    "overwrite_input": "must be False.",
    "q": "array of fractions in [0, 1].",
})
