"""Functions along axes that normalize values, or names of classes: standardize and one_hot."""

from __future__ import annotations

from typing import Any

from ..base import source
from ..base.typing import Array, ArrayLike, Axis, DTypeLike
from ..jit.fused import fused
from ..lax.convert import in_dtype
from ..lax.creation import broadcasted_iota
from ..lax.shape import broadcast_in_dim
from ..lax.sharding import constrain
from ..lax.transcendental import rsqrt
from ..numpy import arithmetic as uf
from ..numpy.creation import asarray
from ..numpy.manipulation import astype
from ..numpy.promote import to_array, unary_inexact
from ..numpy.statistics import mean as average, var
from ..types import dtypes
from ..types.shape import canonical_axis, canonical_dim, entries
from ..types.sharding import ShardingLike


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

    Returns:
      An array of the shape of x; integers become floats. 16-bit floats are computed in float32.

    >>> print(nn.standardize(onp.array([1., 2., 3.]), epsilon=0.0).round(3))
    [-1.225  0.     1.225]
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm {algorithm!r} given; 'fast' or 'stable' is "
                         "required.")
    x, axis = unary_inexact(to_array, x), (None if axis is None else entries(axis))
    dtype = dtypes.result_type(x, epsilon, *(v for v in (mean, variance) if v is not None))
    x = in_dtype(x, dtypes.wide_dtype(x.dtype))
    has_mean = mean is not None
    if mean is None:
        mean = average(x, axis, keepdims=True, where=where)
    if variance is None and algorithm == "stable" and not has_mean:
        variance = var(x, axis, keepdims=True, where=where)
    elif variance is None:
        power = average(uf.square(x), axis, keepdims=True, where=where)
        variance = uf.subtract(power, uf.square(mean))
    out = uf.multiply(uf.subtract(x, mean), rsqrt(to_array(uf.add(variance, epsilon))))
    return in_dtype(out, dtype)


@fused(static=("num_classes", "dtype", "axis"))
def _one_hot(x: Array, *, num_classes: int, dtype: Any, axis: int) -> Array:
    x = to_array(x)
    shape = (*x.shape[:axis], num_classes, *x.shape[axis:])
    other_axes = [i for i in range(len(shape)) if i != axis]
    classes = broadcasted_iota(x.dtype if x.dtype != bool else dtypes.default_int(), shape, axis)
    x = x if x.dtype != bool else astype(x, classes.dtype)
    return astype(broadcast_in_dim(x, shape, other_axes) == classes, dtype)


def one_hot(x: ArrayLike, num_classes: int, *, dtype: DTypeLike | None = None, axis: int = -1,
            out_sharding: ShardingLike = None) -> Array:
    """Vectors of size num_classes that are 1 at the index x, and 0 elsewhere.

    Args:
      x: integers (others are deprecated); values outside of 0 … num_classes-1 give zeros only.
      num_classes: size of the new axis.
      dtype: the result's; None is the default float.
      axis: where the new axis goes in the result.
      out_sharding: None.
    Returns: An array of one axis more than x has.

    >>> print(olympus.nn.one_hot(onp.array([0, 2]), 3))
    [[1. 0. 0.]
     [0. 0. 1.]]
    """
    x = asarray(x)
    num_classes = canonical_dim(
        num_classes, "one_hot: in olympus.nn.one_hot argument `num_classes`")
    if not dtypes.is_integer(x.dtype):
        source.warn(f"olympus.nn.one_hot input should be integer-typed; got dtype={x.dtype}",
                    DeprecationWarning)
    dtype = dtypes.default_float() if dtype is None else dtypes.requested_dtype("one_hot", dtype)
    out = _one_hot(x, num_classes=num_classes, dtype=dtype,
                   axis=canonical_axis(axis, x.ndim + 1, "one_hot"))
    return constrain("one_hot", out, out_sharding)
