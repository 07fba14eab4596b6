"""Samplers of draws without replacement: hypergeometric numbers and vectors."""

# Annotations are for callers; `sampler.py` describes the arguments of a sampler's body.
# pyright: reportArgumentType=false

from __future__ import annotations

import math
from collections.abc import Callable

from ..base.typing import Array, ArrayLike, DType, DTypeLike, PyTree, Shape
from ..control_flow.scan import scan
from ..control_flow.while_loop import while_loop
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax import arithmetic
from ..lax.arithmetic import floor, is_finite
from ..lax.convert import convert_element_type
from ..lax.creation import full_like
from ..lax.cumulative import cumsum
from ..lax.reduce import reduce_min
from ..lax.shape import reduce_sum
from ..lax.sharding import constrain
from ..lax.transcendental import log, log1p, sqrt
from ..numpy.conditions import where
from ..numpy.manipulation import moveaxis
from ..types import dtypes
from ..types.shape import broadcast_shapes, canonical_shape
from ..types.sharding import ShardingLike
from .arguments import Dims, any_of, draw_shape, integer_dtype, parameter, shape_of
from .continuous import subkeys, unit
from .keys import random_split_p, typed
from .sampler import sampler, typed_aval

# The table mountain hat's width is _SLOPE sqrt(variance + 1/2) + _WIDTH.
_SLOPE, _WIDTH = 2 * math.sqrt(2 / math.e), 3 - 2 * math.sqrt(3 / math.e)


def _tail(x: Array) -> Array:
    """The error of Stirling's formula for ln (x-1)!."""
    square = x * x
    inner = 1 / 360 - (1 / 1260 - 1 / 1680 / square) / square
    series = (1 / 12 - inner / square) / x
    return where(x <= 1.0, full_like(x, 1 - math.log(2 * math.pi) / 2), series)


def _log_ratio(k: Array, m: Array) -> Array:
    """ln(k! / m!) less (k-m) (ln(m+1) - 1), by Stirling's formula without its large terms."""
    a, b = k + 1.0, m + 1.0
    near = (k + 0.5) * log1p((k - m) / b)
    return near + (_tail(a) - _tail(b))


def _step(good: Array, bad: Array, drawn: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
    """(u, v) uniform in (0, 1] -> a number of good ones and whether it is accepted.

    Stadlober (1990), The ratio of uniforms approach for generating discrete random variates, J.
    Comput. Appl. Math. 31, 181. His hat dominates for every urn.
    """
    total = arithmetic.max(good + bad, full_like(good, 1.0))
    share = good / total
    mean = drawn * share
    shrinking = (total - drawn) / arithmetic.max(total - 1.0, full_like(good, 1.0))
    variance = mean * (bad / total) * shrinking
    width = _SLOPE * sqrt(variance + 0.5) + _WIDTH
    mode = floor((drawn + 1.0) * ((good + 1.0) / (total + 2.0)))
    least = arithmetic.max(drawn - bad, full_like(good, 0.0))
    most = arithmetic.min(drawn, good)
    mode = arithmetic.min(arithmetic.max(mode, least), most)
    slope = log((mode + 1.0) / (drawn - mode + 1.0)
                * ((bad - drawn + mode + 1.0) / (good - mode + 1.0)))

    def step(u: Array, v: Array) -> tuple[Array, Array]:
        k = floor(mean + 0.5 + width * (v - 0.5) / u)
        inside = (k >= least) & (k <= most)
        k = where(inside, k, mode)
        others = bad - drawn        # bad ones that are left, less k
        ratio = (_log_ratio(k, mode) + _log_ratio(others + k, others + mode)
                 + (_log_ratio(good - k, good - mode) + _log_ratio(drawn - k, drawn - mode)))
        ratio = ratio + (k - mode) * slope
        return k, inside & (2.0 * log(u) <= -ratio)

    return step


def hypergeometric_of(key: Array, good: Array, bad: Array, drawn: Array) -> Array:
    """Good ones among those drawn: whole numbers as floats of one shape. The key is typed."""
    aval = typeof(good)
    step = _step(good, bad, drawn)

    def draw(state: PyTree) -> tuple[Array, Array, Array]:
        out, accepted, key = state
        key, u_key, v_key = subkeys(key, 3)
        u, v = (1.0 - unit(k, aval.shape, aval.dtype) for k in (u_key, v_key))
        k, accept = step(u, v)
        new = accept & ~accepted
        return where(new, k, out), accepted | accept, key

    # Draws that cannot be made are accepted as they are; an infinite urn's share is no number.
    total = good + bad
    possible = (good >= 0.0) & (bad >= 0.0) & is_finite(total) & ((drawn >= 0.0) & (drawn <= total))
    start = (full_like(good, -1.0), ~possible, key)
    return while_loop(lambda state: any_of(~state[1]), draw, start)[0]


@sampler(counts=True)
def hypergeometric(key: ArrayLike, ngood: ArrayLike, nbad: ArrayLike, nsample: ArrayLike,
                   shape: Shape | None = None, dtype: DTypeLike | None = None, *,
                   out_sharding: ShardingLike = None) -> Array:
    """The numbers of good items among `nsample` drawn from an urn without replacement.

    Stadlober's ratio of uniforms (1990), whatever the urn's size. It has no derivatives.

    Args:
      ngood, nbad: numbers of good and bad ones in the urn, >= 0; arrays that broadcast to the
        shape. The default float counts them: float32 to 2**24.
      nsample: numbers drawn, >= 0 and at most ngood + nbad; likewise. -1 is drawn for others.
    Returns: An array of that shape and dtype, of mean nsample ngood / (ngood + nbad).

    >>> x = random.hypergeometric(random.key(0), 6, 18, 8, (10000,))
    >>> print(x.mean().round(1), x.max() <= 6)
    2.0 True
    """
    real = dtypes.default_float()
    urn = (floor(parameter(x, real, shape)) for x in (ngood, nbad, nsample))
    return convert_element_type(hypergeometric_of(key, *urn), dtype)


@fused(static=("shape", "dtype"))
def _multivariate_hypergeometric(key: ArrayLike, colors: ArrayLike, drawn: ArrayLike, *,
                                 shape: Dims, dtype: DType) -> Array:
    """Each colour's number is hypergeometric, given the numbers of the colours before it."""
    real, last = dtypes.default_float(), len(shape) - 1
    colors = floor(parameter(colors, real, shape))
    drawn = floor(parameter(drawn, real, shape[:-1]))
    possible = ((drawn >= 0.0) & (drawn <= reduce_sum(colors, (last,)))
                & (reduce_min(colors, (last,)) >= 0.0))
    drawn = where(possible, drawn, -1.0)
    rest = cumsum(colors, last, reverse=True) - colors
    keys = random_split_p.bind(typed(key), shape=(shape[-1],))

    def draw(left: Array, x: Array) -> tuple[Array, Array]:
        count = hypergeometric_of(x[0], x[1], x[2], left)
        return where(possible, left - count, left), count

    urn = (keys, moveaxis(colors, -1, 0), moveaxis(rest, -1, 0))
    return convert_element_type(moveaxis(scan(draw, drawn, urn)[1], 0, -1), dtype)


def multivariate_hypergeometric(key: ArrayLike, colors: ArrayLike, nsample: ArrayLike,
                                shape: Shape | None = None, dtype: DTypeLike | None = None, *,
                                out_sharding: ShardingLike = None) -> Array:
    """The numbers of each colour among `nsample` drawn from an urn without replacement.

    Colour by colour: a `hypergeometric` number out of the rest that the colours before it leave. It
    has no derivatives.

    Args:
      key: a single key.
      colors: numbers[..., k] of each colour in the urn, >= 0.
      nsample: numbers drawn, >= 0 and at most the sum of `colors`; an array that broadcasts to the
        shape. -1 is drawn for others.
      shape: the result's shape without its last axis, k; None is the parameters'.
      dtype: an integer dtype; None is the default one.
    Returns: An array of shape (*shape, k), whose sums along the last axis are nsample.

    >>> x = random.multivariate_hypergeometric(random.key(0), onp.array([9, 6, 5]), 8, (4,))
    >>> print(x.sum(-1))
    [8 8 8 8]
    """
    name = "multivariate_hypergeometric"
    typed_aval(key, name)
    own = shape_of(colors)
    if not own or not own[-1]:
        raise ValueError(f"{name}: colors of shape {own} given; an array whose last axis has a "
                         "number for each colour is required.")
    batch = (broadcast_shapes(own[:-1], shape_of(nsample)) if shape is None
             else canonical_shape(shape, name))
    draw_shape(name, batch, nsample)
    drawn = _multivariate_hypergeometric(key, colors, nsample, dtype=integer_dtype(name, dtype),
                                         shape=draw_shape(name, (*batch, own[-1]), colors))
    return constrain(name, drawn, out_sharding)
