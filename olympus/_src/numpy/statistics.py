"""Means, variances, order statistics and finite differences."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..core.trace import literal
from ..lax import elementwise as ew
from ..lax import shape as lax_shape
from ..lax import slicing
from ..lax.indexing import take_along
from ..lax.sharding import constrain
from ..lax.sort import sort
from ..transforms.fused import fused
from ..types import dtypes
from ..types.shape import broadcast_shapes, canonical_axes, canonical_axis
from ..types.shape import prod as size_of
from . import reductions
from .promote import (
    BOOL,
    array_args,
    broadcast_to,
    choose,
    convert,
    inexact,
    promote_dtypes,
    refuse_option,
)
from .reductions import Axes, expand, is_nan, mask_arg, reduce_sum, reduction_args
from .ufuncs import divide, multiply, not_equal, subtract

__all__ = [
    "average", "diff", "ediff1d", "gradient", "mean", "median", "nanmean", "nanmedian",
    "nanpercentile", "nanquantile", "nanstd", "nanvar", "percentile", "ptp", "quantile", "std",
    "trapezoid", "var",
]


def _float_dtype(name: str, x: Any, dtype: Any) -> Any:
    return (dtypes.to_inexact_dtype(x.dtype) if dtype is None
            else dtypes.requested_dtype(name, dtype))


def _count(x: Any, where: Any, axes: Axes, keepdims: bool, dtype: Any) -> Any:
    """The number of elements that a statistic is of, as a number or (with a mask) an array."""
    if where is None:
        return literal(size_of([x.shape[i] for i in axes]), dtype)
    mask = convert(broadcast_to(where, broadcast_shapes(x.shape, where.shape)), dtype)
    return expand(reduce_sum(mask, axes), axes, keepdims)


# Means and variances -----------------------------------------------------------------------------

@fused(static=("axes", "keepdims", "dtype"))
def _mean(x: Any, where: Any, *, axes: Axes, keepdims: bool, dtype: Any) -> Any:
    wide = reductions.wide_dtype(dtypes.to_inexact_dtype(dtype))
    if dtypes.is_complex(x.dtype) and not dtypes.is_complex(wide):
        x = ew.real(x)
    x = convert(x, wide)
    total = expand(reduce_sum(reductions.masked(x, where, literal(0, wide)), axes), axes, keepdims)
    return convert(ew.div(total, _count(x, where, axes, keepdims, wide)), dtype)


@fused(static=("axis", "dtype", "out", "keepdims"))
def mean(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False, *,
         where: Any = None) -> Any:
    """The mean over axes; NaN of no elements. Integers give float32; 16-bit floats keep theirs.

    >>> import olympus.numpy as jnp
    >>> jnp.mean(jnp.arange(4))
    Array(1.5, dtype=float32)
    """
    x, axes = reduction_args("mean", a, axis, out)
    return _mean(x, mask_arg("mean", where), axes=axes, keepdims=bool(keepdims),
                 dtype=_float_dtype("mean", x, dtype))


@fused(static=("axes", "keepdims", "dtype", "root"))
def _var(x: Any, where: Any, mean: Any, correction: Any, *, axes: Axes, keepdims: bool, dtype: Any,
         root: bool) -> Any:
    wide = reductions.wide_dtype(dtypes.to_inexact_dtype(
        dtypes.promote_types(dtypes.to_inexact_dtype(x.dtype), dtype)[0]))
    x = convert(x, wide)
    centre = (_mean(x, where, axes=axes, keepdims=True, dtype=wide) if mean is None
              else convert(mean, wide))
    gap = ew.sub(x, broadcast_to(centre, x.shape))
    square = (ew.add(ew.square(ew.real(gap)), ew.square(ew.imag(gap))) if dtypes.is_complex(wide)
              else ew.square(gap))
    total = reduce_sum(reductions.masked(square, where, literal(0, square.dtype)), axes)
    count = _count(x, where, axes, False, square.dtype)
    count = ew.sub(count, convert(array_args("var", correction)[0], square.dtype))
    count = ew.max(count, literal(0, square.dtype))
    found = ew.div(total, broadcast_to(count, total.shape))
    found = expand(ew.sqrt(found) if root else found, axes, keepdims)
    return convert(found, dtype)


def _spread(name: str, root: bool, a: Any, axis: Any, dtype: Any, out: None, ddof: Any,
            keepdims: bool, where: Any, mean: Any, correction: Any) -> Any:
    x, axes = reduction_args(name, a, axis, out)
    if correction is not None and ddof != 0:
        raise ValueError(f"{name}: both ddof {ddof} and correction {correction} given; they mean "
                         "the same; pass one.")
    dtype = (dtypes.to_real_dtype(dtypes.to_inexact_dtype(x.dtype)) if dtype is None
             else dtypes.requested_dtype(name, dtype))
    if dtypes.is_complex(dtype):
        raise ValueError(f"{name}: dtype {dtype} given; variances are real; pass a real dtype.")
    return _var(x, mask_arg(name, where), mean, ddof if correction is None else correction,
                axes=axes, keepdims=bool(keepdims), dtype=dtype, root=root)


@fused(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"))
def var(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
        keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: Any = None
        ) -> Any:
    """The variance over axes: the mean of |x - mean|**2, with n - ddof as the divisor.

    Args:
      mean: the mean, with the reduced axes kept, if it is known.
      correction: another name of `ddof`.
    """
    return _spread("var", False, a, axis, dtype, out, ddof, keepdims, where, mean, correction)


@fused(static=("axis", "dtype", "out", "ddof", "keepdims", "correction"))
def std(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
        keepdims: bool = False, *, where: Any = None, mean: Any = None, correction: Any = None
        ) -> Any:
    """The standard deviation over axes: the square root of `var`."""
    return _spread("std", True, a, axis, dtype, out, ddof, keepdims, where, mean, correction)


def _with_nan_mask(name: str, a: Any, where: Any) -> tuple[Any, Any]:
    """The operand, and a mask of what is not NaN and in `where`; None if there is no NaN."""
    (x,) = array_args(name, a)
    mask = mask_arg(name, where)
    if not dtypes.is_inexact(x.dtype):
        return x, mask
    present = ew.eq(x, x)
    if mask is None:
        return x, present
    shape = broadcast_shapes(x.shape, mask.shape)
    return x, ew.bitwise_and(broadcast_to(present, shape), broadcast_to(mask, shape))


@fused(static=("axis", "dtype", "out", "keepdims"))
def nanmean(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False,
            where: Any = None) -> Any:
    """The mean of what is not NaN; NaN where nothing is."""
    x, mask = _with_nan_mask("nanmean", a, where)
    return mean(x, axis, dtype, out, keepdims, where=mask)


@fused(static=("axis", "dtype", "out", "ddof", "keepdims"))
def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
           keepdims: bool = False, where: Any = None, mean: Any = None) -> Any:
    """The variance of what is not NaN."""
    x, mask = _with_nan_mask("nanvar", a, where)
    return var(x, axis, dtype, out, ddof, keepdims, where=mask, mean=mean)


@fused(static=("axis", "dtype", "out", "ddof", "keepdims"))
def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
           keepdims: bool = False, where: Any = None, mean: Any = None) -> Any:
    """The standard deviation of what is not NaN."""
    x, mask = _with_nan_mask("nanstd", a, where)
    return std(x, axis, dtype, out, ddof, keepdims, where=mask, mean=mean)


@fused(static=("axis", "returned", "keepdims"))
def average(a: Any, axis: Any = None, weights: Any = None, returned: bool = False,
            keepdims: bool = False) -> Any:
    """The mean with weights: of the shape of `a`, or a vector along one `axis`.

    With `returned`, the pair of it and the sum of the weights. Unlike NumPy, weights that add up
    to 0 give NaN or infinity.
    """
    x, axes = reduction_args("average", a, axis)
    if weights is None:
        found = mean(x, axis, keepdims=keepdims)
        total: Any = broadcast_to(literal(size_of([x.shape[i] for i in axes]), found.dtype),
                                  found.shape)
        return (found, total) if returned else found
    (w,) = array_args("average", weights)
    x, w = promote_dtypes("average", inexact(x), w)
    if w.shape != x.shape:
        if axis is None or len(axes) != 1 or w.shape != (x.shape[axes[0]],):
            raise ValueError(f"average: weights {w.aval} for {x.aval} with axis {axis} given; "
                             "weights of the same shape are required, or a vector along one axis.")
        w = lax_shape.broadcast_in_dim(w, x.shape, axes)
    total = reductions.sum(w, axis, keepdims=keepdims)
    found = divide(reductions.sum(multiply(x, w), axis, keepdims=keepdims), total)
    return (found, total) if returned else found


@fused(static=("axis", "out", "keepdims"))
def ptp(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """The largest minus the smallest element over axes."""
    refuse_option("ptp", out=out)
    return subtract(reductions.max(a, axis, keepdims=keepdims),
                    reductions.min(a, axis, keepdims=keepdims))


# Order statistics --------------------------------------------------------------------------------

METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


@fused(static=("axes", "keepdims", "method", "skip_nan"))
def _quantile(x: Any, q: Any, *, axes: Axes, keepdims: bool, method: str, skip_nan: bool) -> Any:
    """x[...], q[*qs] -> [*qs, ...]: sort, then interpolate between the two nearest ranks."""
    kept = [i for i in range(x.ndim) if i not in axes]
    shape = x.shape
    x = lax_shape.transpose(x, (*kept, *axes))
    x = lax_shape.reshape(x, (*[shape[i] for i in kept], size_of([shape[i] for i in axes])))
    n = x.shape[-1]
    missing = is_nan(x)
    x = sort(x, dimension=x.ndim - 1)
    batch = x.shape[:-1]
    present = reduce_sum(convert(ew.bitwise_not(missing), q.dtype), (x.ndim - 1,))
    count = present if skip_nan else broadcast_to(literal(n, q.dtype), batch)
    full = (*q.shape, *batch)
    count = ew.max(broadcast_to(count, full), literal(1, q.dtype))
    last = ew.sub(count, literal(1, q.dtype))
    place = ew.mul(lax_shape.broadcast_in_dim(q, full, tuple(range(q.ndim))), last)
    low = ew.max(ew.min(ew.floor(place), last), literal(0, q.dtype))
    high = ew.max(ew.min(ew.ceil(place), last), literal(0, q.dtype))
    weight = ew.sub(place, low)

    def pick(rank: Any) -> Any:
        ranks = lax_shape.reshape(convert(rank, dtypes.default_int()), (size_of(q.shape), *batch))
        ranks = lax_shape.move_axis(ranks, 0, len(batch))
        found = take_along(x, ranks, len(batch))
        return lax_shape.reshape(lax_shape.move_axis(found, len(batch), 0), full)

    below, above = pick(low), pick(high)
    found = _interpolated(below, above, convert(weight, x.dtype), method, convert(low, x.dtype))
    bad = (ew.eq(broadcast_to(present, full), literal(0, q.dtype)) if skip_nan else
           ew.lt(broadcast_to(present, full), literal(n, q.dtype)))
    found = choose(bad, literal(np.nan, found.dtype), found)
    return lax_shape.expand_dims(found, tuple([q.ndim + i for i in axes])) if keepdims else found


def _interpolated(below: Any, above: Any, weight: Any, method: str, rank: Any) -> Any:
    half = literal(0.5, weight.dtype)
    if method == "linear":
        gap = ew.sub(above, below)
        mixed = ew.add(below, ew.mul(gap, weight))
        return choose(ew.eq(below, above), below, mixed)    # no NaN between equal infinities
    if method == "lower":
        return below
    if method == "higher":
        return choose(ew.gt(weight, literal(0, weight.dtype)), above, below)
    if method == "midpoint":
        middle = ew.mul(ew.add(below, above), half)
        return choose(ew.gt(weight, literal(0, weight.dtype)), middle, below)
    odd = ew.ne(ew.rem(rank, literal(2, rank.dtype)), literal(0, rank.dtype))
    up = ew.bitwise_or(ew.gt(weight, half), ew.bitwise_and(ew.eq(weight, half), odd))
    return choose(up, above, below)


def _quantiles(name: str, a: Any, q: Any, axis: Any, out: None, overwrite_input: bool, method: str,
               keepdims: bool, weights: Any, skip_nan: bool, scale: float = 1.0) -> Any:
    refuse_option(name, out=out, weights=weights)
    if overwrite_input:
        raise ValueError(f"{name}: overwrite_input=True given; arrays are never overwritten.")
    if method not in METHODS:
        raise ValueError(f"{name}: method {method!r} given; one of {', '.join(METHODS)} is "
                         "required.")
    x, axes = reduction_args(name, a, axis)
    (q,) = array_args(name, q)
    if dtypes.is_complex(x.dtype):
        raise ValueError(f"{name}: {x.aval} given; real numbers are required, because complex "
                         "numbers have no order.")
    if size_of([x.shape[i] for i in axes]) == 0:
        raise ValueError(f"{name}: {x.aval} given; at least one element is required.")
    if len(q.shape) > 1 and name in ("median", "nanmedian"):
        raise ValueError(f"{name}: q {q.aval} given; a scalar is required.")
    dtype = dtypes.to_inexact_dtype(x.dtype)
    wide = reductions.wide_dtype(dtype)
    q = convert(q, wide)
    if scale != 1.0:
        q = ew.div(q, literal(scale, wide))
    x = convert(x, wide)
    x = lax_shape.reshape(broadcast_to(x, x.shape), (1,)) if not x.shape else x
    return convert(_quantile(x, q, axes=axes or (0,), keepdims=bool(keepdims) and bool(axes),
                             method=method, skip_nan=skip_nan), dtype)


@fused(static=("axis", "out", "overwrite_input", "method", "keepdims"), numbers=True)
def quantile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
             method: str = "linear", keepdims: bool = False, *, weights: Any = None) -> Any:
    """The values below which the fractions `q` of the elements lie: shape [*q.shape, ...].

    Args:
      method: linear, lower, higher, midpoint or nearest: what lies between two elements.

    NaN where an element is NaN. Raises ValueError for complex numbers and for no elements.
    """
    return _quantiles("quantile", a, q, axis, out, overwrite_input, method, keepdims, weights,
                      False)


@fused(static=("axis", "out", "overwrite_input", "method", "keepdims"), numbers=True)
def nanquantile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
                method: str = "linear", keepdims: bool = False, *, weights: Any = None) -> Any:
    """`quantile` of what is not NaN; NaN where nothing is."""
    return _quantiles("nanquantile", a, q, axis, out, overwrite_input, method, keepdims, weights,
                      True)


@fused(static=("axis", "out", "overwrite_input", "method", "keepdims"), numbers=True)
def percentile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
               method: str = "linear", keepdims: bool = False, *, weights: Any = None,
               out_sharding: None = None) -> Any:
    """`quantile` with `q` in percent."""
    out = _quantiles("percentile", a, q, axis, out, overwrite_input, method, keepdims, weights,
                     False, 100.0)
    return constrain("percentile", out, out_sharding)


@fused(static=("axis", "out", "overwrite_input", "method", "keepdims"), numbers=True)
def nanpercentile(a: Any, q: Any, axis: Any = None, out: None = None,
                  overwrite_input: bool = False, method: str = "linear", keepdims: bool = False, *,
                  weights: Any = None) -> Any:
    """`nanquantile` with `q` in percent."""
    return _quantiles("nanpercentile", a, q, axis, out, overwrite_input, method, keepdims, weights,
                      True, 100.0)


@fused(static=("axis", "out", "overwrite_input", "keepdims"))
def median(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
           keepdims: bool = False) -> Any:
    """The middle element over axes, or the mean of the middle two; NaN if any is NaN."""
    return _quantiles("median", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None,
                      False)


@fused(static=("axis", "out", "overwrite_input", "keepdims"))
def nanmedian(a: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
              keepdims: bool = False) -> Any:
    """The median of what is not NaN; NaN where nothing is."""
    return _quantiles("nanmedian", a, 0.5, axis, out, overwrite_input, "midpoint", keepdims, None,
                      True)


# Differences -------------------------------------------------------------------------------------

def _along(x: Any, axis: int, start: int | None, stop: int | None) -> Any:
    return slicing.slice_in_dim(x, start, stop, axis=axis)


def _end(x: Any, like: Any, axis: int) -> Any:
    """`prepend` or `append` as an array: a scalar is repeated along the other axes."""
    if x.shape:
        return x
    return broadcast_to(x, (*like.shape[:axis], 1, *like.shape[axis + 1:]))


@fused(static=("n", "axis"))
def diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    """`n` times the differences of neighbours along an axis; of booleans, whether they differ."""
    (x,) = array_args("diff", a)
    n = operator.index(n)
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
    for _ in range(n):
        size = x.shape[axis]
        after, before = _along(x, axis, min(1, size), None), _along(x, axis, 0, max(size - 1, 0))
        x = not_equal(after, before) if x.dtype == BOOL else subtract(after, before)
    return x


@fused
def ediff1d(ary: Any, to_end: Any = None, to_begin: Any = None) -> Any:
    """The differences of neighbours in row-major order, with elements put before and after."""
    (x,) = array_args("ediff1d", ary)
    found = diff(lax_shape.reshape(broadcast_to(x, x.shape), (size_of(x.shape),)))

    def flat(e: Any) -> Any:
        (e,) = array_args("ediff1d", e)
        e = convert(e, found.dtype)
        return lax_shape.reshape(broadcast_to(e, e.shape or (1,)), (size_of(e.shape),))

    parts = ([flat(to_begin)] if to_begin is not None else []) + [found]
    parts += [flat(to_end)] if to_end is not None else []
    return slicing.concatenate(parts, 0) if len(parts) > 1 else found


@fused(static=("axis", "edge_order"), numbers=True)
def gradient(f: Any, *varargs: Any, axis: Any = None, edge_order: int | None = None) -> Any:
    """Second-order central differences along axes, first-order ones at the ends.

    Args:
      varargs: the spacing: none, one number, or per axis a number or a vector of coordinates.

      edge_order: 1 (the default) or 2, of the differences at the ends.

    An array for one axis, a list of arrays for several.
    """
    order = 1 if edge_order is None else edge_order
    if order not in (1, 2):
        raise ValueError(f"gradient: edge_order {edge_order} given; 1 or 2 is required.")
    (x,) = array_args("gradient", f)
    x = inexact(x)
    axes = canonical_axes(axis, len(x.shape), "gradient")
    spacings: tuple[Any, ...] = varargs or (1.0,)
    if len(spacings) == 1:
        spacings = spacings * len(axes)
    if len(spacings) != len(axes):
        raise TypeError(f"gradient: {len(varargs)} spacings for {len(axes)} axes given; none, one, "
                        "or one per axis are required.")
    if any(x.shape[i] <= order for i in axes):
        raise ValueError(f"gradient: {x.aval} given; at least {order + 1} elements along each axis "
                         "are required.")
    found = [_gradient_along(x, h, i, order)
             for h, i in zip(array_args("gradient", *spacings), axes)]
    return found[0] if len(axes) == 1 else found


def _gradient_along(x: Any, h: Any, axis: int, order: int) -> Any:
    n = x.shape[axis]

    def cut(values: Any, start: int, stop: int) -> Any:
        return _along(values, axis, start, stop)

    steps = subtract(cut(x, 1, n), cut(x, 0, n - 1))
    if not h.shape:     # equal gaps: each is half of two neighbours
        slopes = divide(steps, h)
        left = right = literal(0.5, slopes.dtype)
    else:
        gaps = lax_shape.broadcast_in_dim(diff(inexact(h)), steps.shape, (axis,))
        slopes = divide(steps, gaps)
        both = ew.add(cut(gaps, 0, n - 2), cut(gaps, 1, n - 1))
        left, right = divide(cut(gaps, 0, n - 2), both), divide(cut(gaps, 1, n - 1), both)
    before, after = cut(slopes, 0, n - 2), cut(slopes, 1, n - 1)
    middle = ew.add(multiply(right, before), multiply(left, after))
    first, last = cut(slopes, 0, 1), cut(slopes, n - 2, n - 1)
    if order == 2:      # the parabola through three points, at its ends
        bend = subtract(after, before)
        first = subtract(first, cut(multiply(left, bend), 0, 1))
        last = ew.add(last, cut(multiply(right, bend), n - 3, n - 2))
    return slicing.concatenate([first, middle, last], axis)


@fused(static=("axis",))
def trapezoid(y: Any, x: Any = None, dx: Any = 1.0, axis: int = -1) -> Any:
    """The integral along an axis by the trapezoidal rule, with coordinates `x` or the step `dx`."""
    (y,) = array_args("trapezoid", y)
    y = inexact(y)
    axis = canonical_axis(axis, len(y.shape), "trapezoid")
    n = y.shape[axis]
    pairs = ew.add(_along(y, axis, 1, None), _along(y, axis, 0, max(n - 1, 0)))
    if x is None:
        total = multiply(reductions.sum(pairs, axis), dx)
    else:
        (x,) = array_args("trapezoid", x)
        gaps = diff(inexact(x), axis=-1 if len(x.shape) == 1 else axis)
        if len(x.shape) == 1:
            gaps = lax_shape.broadcast_in_dim(gaps, (*(1,) * axis, gaps.shape[0],
                                                     *(1,) * (y.ndim - axis - 1)), (axis,))
        total = reductions.sum(multiply(pairs, gaps), axis)
    return multiply(total, 0.5)
