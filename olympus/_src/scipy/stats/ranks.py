"""Statistics of samples by order: the most frequent value, ranks; standard errors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.creation import broadcasted_iota
from ...lax.cumulative import cummax, cummin, cumsum
from ...numpy.conditions import where
from ...numpy.creation import full, ones_like
from ...numpy.elementary import isnan, sqrt
from ...numpy.indexing import take_along_axis
from ...numpy.joining import concatenate
from ...numpy.manipulation import astype, expand_dims, moveaxis, ravel, squeeze
from ...numpy.promote import array_args, flag, inexact, to_array
from ...numpy.reductions import any as any_of, argmax, sum as sum_of
from ...numpy.sorting import argsort, sort
from ...numpy.statistics import nanstd, std
from ...random.arguments import refuse_complex
from ...types import dtypes
from ...types.shape import canonical_axis, definitely_equal

_TIE_METHODS = ("average", "min", "max", "dense", "ordinal")


class ModeResult(NamedTuple):
    """The most frequent values and how often they came."""

    mode: Array
    count: Array


def check_policy(name: str, policy: str) -> None:
    """ValueError for a treatment of NaN that a compiled program cannot have."""
    if policy not in ("propagate", "omit"):
        raise ValueError(f"{name}: nan_policy={policy!r} given; 'propagate' or 'omit' is required: "
                         "a compiled program cannot raise; use debug_nans to find NaN.")


def along(name: str, a: Array, axis: int | None) -> tuple[Array, int]:
    """A real array, flattened if `axis` is None, and the axis as a number >= 0."""
    refuse_complex(name, a)
    x = to_array(array_args(name, a)[0])
    x = ravel(x) if axis is None or not x.ndim else x
    return x, canonical_axis(axis or 0, x.ndim)


def _changes(x: Array) -> Array:
    """Where along the last axis a sorted array has a new value; all NaN are one value."""
    later, before = x[..., 1:], x[..., :-1]
    new = (later != before) & ~((later != later) & (before != before))
    return concatenate([ones_like(x[..., :1], bool), new], -1)


def _last_indices(x: Array) -> Array:
    return broadcasted_iota(dtypes.default_int(), x.shape, x.ndim - 1)


@fused(static=("axis", "nan_policy", "keepdims"))
def _mode(a: Array, *, axis: int | None, nan_policy: str, keepdims: bool) -> ModeResult:
    x, place = along("mode", a, axis)
    if definitely_equal(x.shape[place], 0):
        shape = tuple(n for i, n in enumerate(x.shape) if i != place)
        value, count = full(shape, math.nan), full(shape, 0.0)
    else:
        x = sort(moveaxis(x, place, -1))
        at = _last_indices(x)
        start = cummax(where(_changes(x), at, 0), x.ndim - 1)
        length = at - start + 1
        if nan_policy == "omit" and dtypes.is_floating(x.dtype):
            length = where(isnan(x), 0, length)
        best = expand_dims(argmax(length, -1), -1)
        value, count = (squeeze(take_along_axis(v, best, -1), -1) for v in (x, length))
    if keepdims:
        rank = max(a.ndim, 1) if axis is None else 1
        axes = tuple(range(rank)) if axis is None else place
        return ModeResult(expand_dims(value, axes), expand_dims(count, axes))
    return ModeResult(value, count)


def mode(a: ArrayLike, axis: int | None = 0, nan_policy: str = "propagate",
         keepdims: bool = False) -> ModeResult:
    """The most frequent value along an axis, the smallest one if there are several.

    Args:
      a: real numbers or booleans, any shape.
      axis: the axis; None takes all elements together.
      nan_policy: "propagate" takes NaN for a value like others, "omit" leaves it out. (SciPy's
        "raise" is refused: a compiled program cannot raise. JAX has "propagate" only.)
      keepdims: whether the axis stays, with one element.
    Returns: ModeResult(mode, count): the values, of the dtype of a, and how often they came,
      integers; without elements NaN and 0.0.

    >>> value, count = scipy.stats.mode(onp.array([4, 2, 1, 2, 4, 4]))
    >>> int(value), int(count)
    (4, 3)
    """
    check_policy("mode", nan_policy)
    return _mode(to_array(array_args("mode", a)[0]), axis=axis, nan_policy=nan_policy,
                 keepdims=flag("mode", "keepdims", keepdims))


@fused(static=("method", "axis", "nan_policy"))
def _ranks(a: Array, *, method: str, axis: int | None, nan_policy: str) -> Array:
    x, place = along("rankdata", a, axis)
    dtype = dtypes.default_float()
    if definitely_equal(x.shape[place], 0):
        return astype(x, dtype)
    x = moveaxis(x, place, -1)
    order = argsort(x)
    ordered = take_along_axis(x, order, -1)
    at, new, last = _last_indices(x), _changes(ordered), x.ndim - 1
    if method == "ordinal":
        rank = at + 1
    elif method == "dense":
        rank = cumsum(astype(new, at.dtype), last)
    else:
        end = concatenate([new[..., 1:], ones_like(new[..., :1])], -1)
        first = cummax(where(new, at, 0), last) + 1
        final = cummin(where(end, at, at[..., -1:]), last, reverse=True) + 1
        rank = first if method == "min" else final if method == "max" else 0.5 * (
            astype(first, dtype) + astype(final, dtype))
    rank = astype(take_along_axis(rank, argsort(order), -1), dtype)
    if dtypes.is_floating(x.dtype):
        lost = isnan(x)
        lost = lost if nan_policy == "omit" else any_of(lost, -1, keepdims=True)
        rank = where(lost, math.nan, rank)
    return moveaxis(rank, -1, place)


def rankdata(a: ArrayLike, method: str = "average", *, axis: int | None = None,
             nan_policy: str = "propagate") -> Array:
    """Ranks along an axis, from 1 for the smallest number.

    Args:
      a: real numbers, any shape.
      method: the rank of equal numbers: "average", "min" or "max" of the places that they take
        together; "dense", one more than the next smaller number's; "ordinal", their places
        in the order of the array.
      axis: along which; None ranks all elements, and the result is flat.
      nan_policy: "propagate", all ranks beside a NaN are NaN; "omit", only its own.
    Returns: Floats of the default dtype, as in JAX (SciPy's are integers for some methods), of the
      shape of a.

    >>> print(scipy.stats.rankdata(onp.array([10, 30, 20, 30])))
    [1.  3.5 2.  3.5]
    """
    if method not in _TIE_METHODS:
        raise ValueError(f"rankdata: method={method!r} given; one of {', '.join(_TIE_METHODS)} is "
                         "required.")
    check_policy("rankdata", nan_policy)
    return _ranks(to_array(array_args("rankdata", a)[0]), method=method, axis=axis,
                  nan_policy=nan_policy)


@fused(static=("axis", "ddof", "nan_policy", "keepdims"))
def _sem(a: Array, *, axis: int | None, ddof: int, nan_policy: str, keepdims: bool) -> Any:
    refuse_complex("sem", a)
    x = inexact(a)
    x = ravel(x) if not x.ndim else x
    omit = nan_policy == "omit"
    count = sum_of(where(isnan(x), 0.0 if omit else 1.0, ones_like(x)), axis, keepdims=keepdims)
    return (nanstd if omit else std)(x, axis, ddof=ddof, keepdims=keepdims) / sqrt(count)


def sem(a: ArrayLike, axis: int | None = 0, ddof: int = 1, nan_policy: str = "propagate", *,
        keepdims: bool = False) -> Array:
    """The standard error of the mean: the standard deviation over the root of the count.

    Args:
      a: real numbers, any shape; integers become floats.
      axis: the axis; None takes all elements together.
      ddof: subtracted from the count for the standard deviation.
      nan_policy: "propagate", or "omit" to leave NaN out.
      keepdims: whether the axis stays, with one element.
    Returns: Floats of the shape of a without the axis; NaN for no more than `ddof` numbers.

    >>> print(f'{scipy.stats.sem(onp.array([1.0, 2.0, 5.0])):.3f}')
    1.202
    """
    check_policy("sem", nan_policy)
    return _sem(to_array(array_args("sem", a)[0]), axis=axis, ddof=ddof, nan_policy=nan_policy,
                keepdims=keepdims)
