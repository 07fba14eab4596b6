"""Initial values of weights: functions of (key, shape, dtype), and functions that make those."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike, DTypeLike, Shape
from ..lax import arithmetic
from ..lax.sharding import constrain
from ..lax.transcendental import cos, log1p, sin, sqrt
from ..numpy import arithmetic as uf, creation
from ..numpy.manipulation import moveaxis, reshape
from ..random import continuous as samplers
from ..random.keys import split
from ..random.multivariate import orthogonal as matrices
from ..types import dtypes
from ..types.shape import canonical_axis, canonical_shape, floor_div, less, prod
from ..types.sharding import ShardingLike

# Standard deviations of a normal law cut off at ±2, and of a complex one cut off at radius 2.
_CUT, _COMPLEX_CUT = 0.87962566103423978, 0.9619618280082136


class Initializer(Protocol):
    """A function that makes initial weights: `init(key, shape, dtype=..., out_sharding=None)`.

    An initializer is any function of that signature, such as `zeros`; initialisers of random
    numbers are made by functions here, such as `normal`.

    >>> import olympus
    >>> from olympus.nn import initializers
    >>> init = initializers.normal(stddev=0.1)
    >>> print(init(olympus.random.key(0), (2, 3), "float32").round(2))
    [[ 0.16  0.2  -0.04]
     [-0.01  0.02 -0.1 ]]
    """

    def __call__(self, key: Array, shape: Shape, dtype: DTypeLike | None = None,
                 out_sharding: ShardingLike = None) -> Any:
        """An array of the shape and dtype."""
        raise NotImplementedError


def zeros(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None,
          out_sharding: ShardingLike = None) -> Array:
    """Zeros; the key is not used.

    Args:
      key: ignored.
      shape: the result's shape.
      dtype: its dtype; None is the default float.
    Returns: An array of that shape and dtype.

    >>> olympus.nn.initializers.zeros(olympus.random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    return creation.zeros(shape, dtype, out_sharding=out_sharding)


@described_like(zeros)
def ones(key: ArrayLike, shape: Shape, dtype: DTypeLike | None = None,
         out_sharding: ShardingLike = None) -> Array:
    """Ones; the key is not used.

    >>> print(initializers.ones(olympus.random.key(0), (2,), "int32"))
    [1 1]
    """
    return creation.ones(shape, dtype, out_sharding=out_sharding)


def _initializer(make: Callable[..., Any], default: Any) -> Initializer:
    """`make(key, shape, dtype)` with its default dtype and the sharding refused."""
    if default is not None:
        dtypes.requested_dtype("initializer", default)     # warns or refuses where it is asked

    def init(key: Array, shape: Shape, dtype: Any = default, out_sharding: ShardingLike = None
             ) -> Any:
        dtype = (dtypes.default_float() if dtype is None
                 else dtypes.canonical_dtype(dtype) if dtype is default
                 else dtypes.requested_dtype("initializer", dtype))
        drawn = make(key, canonical_shape(shape, "initializer"), dtype)
        return constrain("initializer", drawn, out_sharding)
    return init


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of arrays equal to `value`.

    Args: value: a number, or an array that broadcasts to the shapes.
    Returns: An `Initializer`, which ignores its key.

    >>> print(initializers.constant(0.5)(olympus.random.key(0), (3,)))
    [0.5 0.5 0.5]
    """
    return _initializer(lambda key, shape, dtype: creation.full(shape, value, dtype), dtype)


def _times_factor(sample: Any, factor: object) -> Array:
    return uf.multiply(sample, creation.asarray(factor, sample.dtype))


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of numbers uniform in [0, scale).

    Args: scale: the upper end; for numbers of both signs see `variance_scaling`.

    >>> w = initializers.uniform(3.0)(olympus.random.key(0), (100, 100))
    >>> print(w.mean().round(1))
    1.5
    """
    return _initializer(lambda key, shape, dtype: _times_factor(
        samplers.uniform(key, shape, dtype), scale), dtype)


def normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of normal numbers of mean 0.

    Args:
      stddev: the standard deviation.
      dtype: the dtype, floating or complex, unless the call names one; None is the default float.

    >>> w = initializers.normal(2.0)(olympus.random.key(0), (100, 100))
    >>> print(w.std().round(1))
    2.0
    """
    return _initializer(lambda key, shape, dtype: _times_factor(
        samplers.normal(key, shape, dtype), stddev), dtype)


def truncated_normal(stddev: ArrayLike = 1e-2, dtype: DTypeLike | None = None,
                     lower: ArrayLike = -2.0, upper: ArrayLike = 2.0) -> Initializer:
    """An initializer of truncated normal numbers, times a factor.

    Args:
      stddev: the factor; the standard deviation of the rest is less: 0.88 of it at ±2.
      lower, upper: where the standard normal law is cut off.

    >>> w = initializers.truncated_normal(1.0)(olympus.random.key(0), (100, 100))
    >>> print(w.std().round(2), abs(w).max() <= 2)
    0.89 True
    """
    return _initializer(lambda key, shape, dtype: _times_factor(
        samplers.truncated_normal(key, lower, upper, shape, dtype), stddev), dtype)


def _canonical_axes(axes: Any, ndim: int) -> list[int]:
    axes = axes if isinstance(axes, Sequence) else (axes,)
    if any(not -ndim <= a < ndim for a in axes):
        raise ValueError(f"variance_scaling: axes {tuple(axes)} and {ndim} dimensions given; axes "
                         "of the array are required; pass a shape with more axes, or name others.")
    return [a % ndim for a in axes]


def _fans(shape: Sequence[int], in_axis: object, out_axis: object, batch_axis: object
          ) -> tuple[float, float]:
    """Numbers of inputs of an output and of outputs of an input."""
    if len(shape) <= 1 and in_axis == -2:
        raise ValueError("variance_scaling: Can't compute input and output sizes of a "
                         f"{len(shape)}-dimensional weights tensor\n  with default in_axis. Must "
                         "be at least 2D or specify in_axis explicitly; or use normal or uniform.")
    size = {name: prod(tuple(shape[a] for a in _canonical_axes(axes, len(shape))))
            for name, axes in (("in", in_axis), ("out", out_axis), ("batch", batch_axis))}
    field = prod(shape) / (size["in"] * size["out"] * size["batch"] or 1)
    return size["in"] * field, size["out"] * field


def _disc(key: Array, shape: Shape, dtype: DTypeLike, radius: Callable[[Any], Any]) -> Array:
    """Complex numbers of random direction whose sizes are `radius` of uniform numbers."""
    real = dtypes.to_real_dtype(dtype)
    keys = split(key)
    size = radius(samplers.uniform(keys[0], shape, real))
    angle = samplers.uniform(keys[1], shape, real) * (2 * math.pi)
    return arithmetic.complex(size * cos(angle), size * sin(angle))


def _cut_radius(u: Array) -> Array:
    return sqrt(-log1p(-(u * (1 - math.exp(-4.0)))))


def _draw(distribution: str, key: Array, shape: Shape, dtype: DTypeLike) -> tuple[Array, float]:
    """(numbers, their standard deviation)."""
    complex_ = dtypes.is_complex(dtype)
    if distribution == "normal":
        return samplers.normal(key, shape, dtype), 1.0
    if distribution == "uniform":
        if complex_:
            return _disc(key, shape, dtype, sqrt), math.sqrt(0.5)
        return samplers.uniform(key, shape, dtype, -1.0), math.sqrt(1 / 3)
    if complex_:
        return _disc(key, shape, dtype, _cut_radius), _COMPLEX_CUT
    return samplers.truncated_normal(key, -2.0, 2.0, shape, dtype), _CUT


_MODES: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda i, o: i, "fan_out": lambda i, o: o, "fan_avg": lambda i, o: (i + o) / 2,
    "fan_geo_avg": lambda i, o: math.sqrt(i * o)}


def variance_scaling(scale: float | Array, mode: str, distribution: str,
                     in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
                     batch_axis: int | Sequence[int] = (),
                     dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of variance scale / n, with n the number of inputs or outputs of a weight.

    Args:
      scale: the factor.
      mode: the count that n stands for: "fan_in", "fan_out", "fan_avg" or "fan_geo_avg".
      distribution: "normal", "uniform", or "truncated_normal" (cut off at two standard deviations).
      in_axis, out_axis, batch_axis: axis or axes of inputs, outputs and independent weights; all
        others are a receptive field, which counts in inputs and outputs.
      dtype: the default dtype.
    Returns: An `Initializer` of arrays of at least two axes, or one if `in_axis` names it.

    Raises ValueError for another mode or distribution, and for shapes without the axes.

    >>> init = initializers.variance_scaling(1.0, "fan_out", "normal")
    >>> w = init(olympus.random.key(0), (300, 100))
    >>> print((w.var() * 100).round(1))
    1.0
    """
    if not isinstance(mode, str) or mode not in _MODES:
        raise ValueError(f"variance_scaling: mode {mode!r} given; one of "
                         f"{', '.join(map(repr, _MODES))} is required.")
    if distribution not in ("normal", "uniform", "truncated_normal"):
        raise ValueError(f"variance_scaling: distribution {distribution!r} given; 'normal', "
                         "'uniform' or 'truncated_normal' is required.")

    def make(key: Array, shape: Shape, dtype: DTypeLike) -> Any:
        n = _MODES[mode](*_fans(shape, in_axis, out_axis, batch_axis))
        sample, deviation = _draw(distribution, key, shape, dtype)
        return _times_factor(sample, math.sqrt(scale / max(n, 1)) / deviation)

    return _initializer(make, dtype)


def glorot_uniform(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
                   batch_axis: int | Sequence[int] = (),
                   dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of uniform numbers of variance 1 / fan_avg (Glorot and Bengio 2010).

    >>> w = initializers.glorot_uniform()(olympus.random.key(0), (300, 100))
    >>> print((abs(w).max() ** 2 * (300 + 100) / 2).round(1))        # 3 times the variance
    3.0
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
                  batch_axis: int | Sequence[int] = (),
                  dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of truncated normal numbers of variance 1 / fan_avg (Glorot and Bengio 2010).

    >>> w = initializers.glorot_normal()(olympus.random.key(0), (300, 100))
    >>> print((w.var() * (300 + 100) / 2).round(1))
    1.0
    """
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis,
                            dtype)


def lecun_uniform(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
                  batch_axis: int | Sequence[int] = (),
                  dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of uniform numbers of variance 1 / fan_in (LeCun et al. 1998).

    >>> kernel = initializers.lecun_uniform()(olympus.random.key(0), (3, 3, 16, 64))    # HWIO
    >>> print((kernel.var() * 3 * 3 * 16).round(1))
    1.0
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
                 batch_axis: int | Sequence[int] = (),
                 dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of truncated normal numbers of variance 1 / fan_in (LeCun et al. 1998).

    >>> w = initializers.lecun_normal()(olympus.random.key(0), (300, 100))
    >>> print((w.var() * 300).round(1))
    1.0
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis,
                            dtype)


def he_uniform(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
               batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of uniform numbers of variance 2 / fan_in, for relu (He et al. 2015).

    >>> w = initializers.he_uniform()(olympus.random.key(0), (300, 100))
    >>> print((w.var() * 300).round(1))
    2.0
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
              batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of truncated normal numbers of variance 2 / fan_in, for relu (He et al. 2015).

    >>> w = initializers.he_normal()(olympus.random.key(0), (300, 100))
    >>> print((w.var() * 300).round(1))
    2.0
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis,
                            dtype)


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
               ) -> Initializer:
    """An initializer of matrices with orthonormal rows or columns, uniform among those.

    Saxe et al., "Exact solutions to the nonlinear dynamics of learning in deep linear neural
    networks" (2014).

    Args:
      scale: a factor.
      column_axis: the axis of outputs; all others together are the inputs.
      dtype: the dtype, floating or complex, unless the call names one; None is the default float.
    Returns: An `Initializer` of arrays of at least two axes: their products with themselves, over
      the longer side, are scale² times the identity.

    >>> w = initializers.orthogonal()(olympus.random.key(0), (20, 3))
    >>> print(onp.allclose(w.T @ w, onp.eye(3), atol=1e-5))
    True
    """
    def make(key: Array, shape: Any, dtype: DTypeLike) -> Any:
        if len(shape) < 2:
            raise ValueError(f"orthogonal: shape {shape} given; at least two axes are required.")
        axis = canonical_axis(column_axis, len(shape), "orthogonal")
        others = shape[:axis] + shape[axis + 1:]
        matrix = matrices(key, prod(others), (), dtype, shape[axis])
        return _times_factor(moveaxis(reshape(matrix, (*others, shape[axis])), -1, axis), scale)

    return _initializer(make, dtype)


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1,
                     dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of convolutions that are orthogonal at the kernel's middle, and 0 elsewhere.

    Xiao et al., "Dynamical isometry and a mean field theory of CNNs" (2018).

    Args:
      scale: a factor.
      column_axis: the axis of outputs of the orthogonal matrix.
      dtype: the dtype, floating or complex, unless the call names one; None is the default float.
    Returns: An `Initializer` of kernels of one to three spatial axes, then inputs, then as many
      outputs or more. ValueError for others.

    >>> w = initializers.delta_orthogonal()(olympus.random.key(0), (3, 3, 2, 4))
    >>> print(onp.allclose(w[1, 1] @ w[1, 1].T, onp.eye(2), atol=1e-5), w[0].any())
    True False
    """
    def make(key: Array, shape: Shape, dtype: DTypeLike) -> Any:
        if not 3 <= len(shape) <= 5 or less(shape[-1], shape[-2]):
            raise ValueError(f"delta_orthogonal: shape {shape} given; three to five axes are "
                             "required, the last of them at least as long as the one before.")
        matrix = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        middle = tuple([floor_div(n - 1, 2) for n in shape[:-2]])
        return creation.zeros(shape, dtype).at[middle].set(matrix)

    return _initializer(make, dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


complete_docstrings(globals(), {
    "dtype": "the dtype unless the call names one; None is the default float.",
    "in_axis, out_axis, batch_axis": "which axes are which; see `variance_scaling`.",
}, returns="An `Initializer` of arrays of at least two axes.")
