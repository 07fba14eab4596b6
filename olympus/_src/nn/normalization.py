"""Functions along axes: softmax and its kin, sums of exponentials, standardizing, one-hot rows.

Exponentials are taken after the maximum is subtracted, so that they never overflow; the maximum is
a constant to differentiation.
"""

from __future__ import annotations

import math
from typing import Any

from ..base import config
from ..base.typing import Array, ArrayLike, Axis
from ..core.trace import typeof
from ..custom.jvp import custom_jvp
from ..lax import arithmetic
from ..lax.barriers import stop_gradient
from ..lax.comparison import eq
from ..lax.creation import broadcasted_iota
from ..lax.shape import broadcast_in_dim, squeeze
from ..lax.sharding import constrain
from ..lax.transcendental import rsqrt
from ..numpy import elementary as el
from ..numpy import reductions
from ..numpy import ufuncs as uf
from ..numpy.creation import asarray
from ..numpy.manipulation import as_array, astype
from ..numpy.promote import promote_dtypes, unary_inexact
from ..numpy.selection import where as choose
from ..numpy.statistics import mean as average
from ..numpy.statistics import var
from ..transforms.fused import fused
from ..types import dtypes
from ..types.shape import canonical_axes, canonical_axis, entries, prod

__all__ = ["log1mexp", "log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax",
           "standardize"]


def _inexact(x: Any) -> Any:
    return unary_inexact(as_array, x)


def _largest(x: Any, axis: Any, where: Any) -> Any:
    """The maximum with the axes kept, a constant to differentiation; -inf of nothing."""
    initial = None if where is None and x.size else -math.inf
    return stop_gradient(reductions.max(x, axis, keepdims=True, initial=initial, where=where))


def _softmax(x: Any, axis: Any, where: Any) -> Any:
    top = _largest(x, axis, where)
    inside = x if where is None else choose(where, x, -math.inf)
    weights = el.exp(uf.subtract(inside, top))
    out = uf.divide(weights, reductions.sum(weights, axis, keepdims=True, where=where))
    return out if where is None else choose(where, out, 0.0)


def _static_axis(axis: Any) -> Any:
    return None if axis is None else entries(axis)


@fused(static=("axis",))
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) / sum(exp(x)) along axes.

    Args:
      x: array; integers become floats.
      axis: axis or axes to normalize over; None is all.
      where: bool, broadcasts to x; elements to include. The others give 0.

    >>> import olympus, olympus.numpy as onp
    >>> print(olympus.nn.softmax(onp.array([1., 1.])))
    [0.5 0.5]
    """
    x, axis = _inexact(x), _static_axis(axis)
    if not config.softmax_custom_jvp.value:
        return _softmax(x, axis, where)

    @custom_jvp
    def ruled(x: Any) -> Any:
        return _softmax(x, axis, where)

    @ruled.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        y = ruled(*primals)
        t = tangents[0]
        total = reductions.sum(uf.multiply(y, t), axis, keepdims=True, where=where)
        return y, uf.multiply(y, uf.subtract(t, total))

    return ruled(x)


@fused(static=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """log(softmax(x)) without loss where softmax is small; the arguments of `softmax`.

    Elements that `where` excludes give -inf.
    """
    x, axis = _inexact(x), _static_axis(axis)
    inside = x if where is None else choose(where, x, -math.inf)
    shifted = uf.subtract(inside, _largest(x, axis, where))
    total = reductions.sum(el.exp(shifted), axis, keepdims=True, where=where)
    out = uf.subtract(shifted, el.log(total))
    return out if where is None else choose(where, out, -math.inf)


@fused(static=("axis", "keepdims", "return_sign"))
def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False,
              where: ArrayLike | None = None) -> Array | tuple[Array, Array]:
    """log(sum(b * exp(a))) along axes.

    Args:
      a: array; integers become floats.
      axis: axis or axes; None is all.
      b: real weights that broadcast with a; None is 1.
      keepdims: whether reduced axes stay with size 1.
      return_sign: whether to return (log of the absolute value, sign) instead; without it, a
        negative sum gives NaN.
      where: bool, broadcasts to a; elements to include.

    >>> import olympus, olympus.numpy as onp
    >>> print(olympus.nn.logsumexp(onp.array([1000., 1000.])))
    1000.6932
    """
    a = _inexact(a)
    if b is not None:
        a, b = promote_dtypes("logsumexp", a, b, inexact=True)
        a = choose(uf.not_equal(b, 0), a, -math.inf)
    axes = canonical_axes(axis, a.ndim, "logsumexp")
    real = arithmetic.real(a) if dtypes.is_complex(a.dtype) else a
    top = _largest(real, axes, where)
    top = choose(el.isfinite(top), top, 0.0)
    terms = el.exp(uf.subtract(a, top))
    if b is not None:
        terms = uf.multiply(terms, b)
    total = reductions.sum(terms, axes, keepdims=keepdims, where=where)
    top = top if keepdims else squeeze(top, axes)
    if dtypes.is_complex(a.dtype):
        sign = uf.sign(total)
        size = uf.add(el.log(uf.absolute(total)), top)
        return (size, sign) if return_sign else uf.add(el.log(total), top)
    sign = uf.sign(total)
    size = uf.add(el.log(uf.absolute(total)), top)
    if return_sign:
        return size, sign
    return size if b is None else choose(uf.less(sign, 0), math.nan, size)


@fused(static=("axis", "keepdims"))
def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None,
               keepdims: bool = False) -> Array:
    """log(mean(exp(x))) along axes; `where` says which elements count."""
    x = _inexact(x)
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    if where is None:
        axes = canonical_axes(axis, x.ndim, "logmeanexp")
        return uf.subtract(total, math.log(prod(tuple(x.shape[i] for i in axes)) or math.nan))
    mask = broadcast_in_dim(where, x.shape, range(x.ndim - typeof(where).ndim, x.ndim))
    count = reductions.sum(mask, _static_axis(axis), keepdims=keepdims)
    return uf.subtract(total, el.log(astype(count, x.dtype)))


@fused
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)), accurate for small and large x > 0."""
    x = _inexact(x)
    small = uf.less(x, math.log(2))
    low = el.log(uf.negative(el.expm1(uf.negative(choose(small, x, 1.0)))))
    return choose(small, low, el.log1p(uf.negative(el.exp(uf.negative(choose(small, 1.0, x))))))


@fused(static=("axis", "algorithm"))
def standardize(x: ArrayLike, axis: Axis = -1, mean: ArrayLike | None = None,
                variance: ArrayLike | None = None, epsilon: ArrayLike = 1e-5,
                where: ArrayLike | None = None, *, algorithm: str = "fast") -> Array:
    """(x - mean) / sqrt(variance + epsilon) along axes.

    Args:
      x: array.
      axis: axis or axes of the statistics.
      mean, variance: the statistics, axes kept; None computes them from x.
      epsilon: added to the variance.
      where: bool, broadcasts to x; elements that count in the statistics.
      algorithm: "fast" computes the variance as mean(x^2) - mean^2, "stable" from x - mean.
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm {algorithm!r} given; 'fast' or 'stable' is "
                         "required.")
    x, axis = _inexact(x), _static_axis(axis)
    given = mean is not None
    if mean is None:
        mean = average(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable" and not given:
        variance = var(x, axis, keepdims=True, where=where)
    elif variance is None:
        power = average(uf.square(x), axis, keepdims=True, where=where)
        variance = uf.subtract(power, uf.square(mean))
    return uf.multiply(uf.subtract(x, mean), rsqrt(as_array(uf.add(variance, epsilon))))


@fused(static=("num_classes", "dtype", "axis"))
def _one_hot(x: Any, *, num_classes: int, dtype: Any, axis: int) -> Any:
    x = as_array(x)
    shape = (*x.shape[:axis], num_classes, *x.shape[axis:])
    kept = [i for i in range(len(shape)) if i != axis]
    places = broadcasted_iota(x.dtype if x.dtype != bool else dtypes.default_int(), shape, axis)
    x = x if x.dtype != bool else astype(x, places.dtype)
    return astype(eq(broadcast_in_dim(x, shape, kept), places), dtype)


def one_hot(x: Any, num_classes: int, *, dtype: Any | None = None, axis: int = -1,
            out_sharding: Any = None) -> Array:
    """A new axis of size num_classes that is 1 at the place x names, else 0.

    Args:
      x: array; values outside of 0 … num_classes-1 give zeros only.
      num_classes: size of the new axis.
      dtype: the result's; None is the default float.
      axis: where the new axis goes in the result.
      out_sharding: None.

    >>> import olympus, olympus.numpy as onp
    >>> print(olympus.nn.one_hot(onp.array([0, 2]), 3))
    [[1. 0. 0.]
     [0. 0. 1.]]
    """
    x = asarray(x)
    dtype = dtypes.default_float() if dtype is None else dtypes.requested_dtype("one_hot", dtype)
    out = _one_hot(x, num_classes=num_classes, dtype=dtype,
                   axis=canonical_axis(axis, x.ndim + 1, "one_hot"))
    return constrain("one_hot", out, out_sharding)
