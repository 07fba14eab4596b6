"""Samplers of draws without replacement: hypergeometric numbers and vectors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ..base.typing import Array, ArrayLike, DTypeLike, PyTree, Shape
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax import arithmetic
from ..lax.arithmetic import div, floor, is_finite, mul, neg, sub
from ..lax.bits import bitwise_and, bitwise_not, bitwise_or
from ..lax.comparison import ge, le, select
from ..lax.convert import convert_element_type
from ..lax.creation import full_like
from ..lax.cumulative import cumsum
from ..lax.families import add
from ..lax.reduce import reduce_min
from ..lax.shape import reduce_sum
from ..lax.transcendental import log, log1p, sqrt
from ..loops.scan import scan
from ..loops.while_loop import while_loop
from ..numpy.manipulation import moveaxis
from ..types import dtypes
from ..types.shape import broadcast_shapes, canonical_shape
from .arguments import Dims, any_of, draw_shape, integer_dtype, parameter, shape_of
from .continuous import subkeys, typed_aval, unit
from .keys import random_split_p, typed

__all__ = ["hypergeometric", "multivariate_hypergeometric"]

# The table mountain hat's width is _SLOPE sqrt(variance + 1/2) + _WIDTH.
_SLOPE, _WIDTH = 2 * math.sqrt(2 / math.e), 3 - 2 * math.sqrt(3 / math.e)


def _tail(x: Array) -> Array:
    """What Stirling's formula lacks of ln (x-1)!."""
    square = mul(x, x)
    inner = sub(1 / 360, div(sub(1 / 1260, div(1 / 1680, square)), square))
    series = div(sub(1 / 12, div(inner, square)), x)
    return select(le(x, 1.0), full_like(x, 1 - math.log(2 * math.pi) / 2), series)


def _log_ratio(k: Array, m: Any) -> Array:
    """ln(k! / m!) less (k-m) (ln(m+1) - 1), by Stirling's formula without its large terms."""
    a, b = add(k, 1.0), add(m, 1.0)
    near = mul(add(k, 0.5), log1p(div(sub(k, m), b)))
    return add(near, sub(_tail(a), _tail(b)))


def _step(good: Array, bad: Array, drawn: Array) -> Callable[[Any, Any], tuple[Any, Any]]:
    """(u, v) uniform in (0, 1] -> a number of good ones and whether it is accepted.

    Stadlober (1990), The ratio of uniforms approach for generating discrete random variates, J.
    Comput. Appl. Math. 31, 181. His hat dominates for every urn.
    """
    total = arithmetic.max(add(good, bad), full_like(good, 1.0))
    share = div(good, total)
    mean = mul(drawn, share)
    spread = div(sub(total, drawn), arithmetic.max(sub(total, 1.0), full_like(good, 1.0)))
    variance = mul(mul(mean, div(bad, total)), spread)
    width = add(mul(_SLOPE, sqrt(add(variance, 0.5))), _WIDTH)
    mode = floor(mul(add(drawn, 1.0), div(add(good, 1.0), add(total, 2.0))))
    least = arithmetic.max(sub(drawn, bad), full_like(good, 0.0))
    most = arithmetic.min(drawn, good)
    mode = arithmetic.min(arithmetic.max(mode, least), most)
    slope = log(mul(div(add(mode, 1.0), add(sub(drawn, mode), 1.0)),
                    div(add(add(sub(bad, drawn), mode), 1.0), add(sub(good, mode), 1.0))))

    def step(u: Array, v: Array) -> tuple[Array, Array]:
        k = floor(add(add(mean, 0.5), div(mul(width, sub(v, 0.5)), u)))
        inside = bitwise_and(ge(k, least), le(k, most))
        k = select(inside, k, mode)
        others = sub(bad, drawn)        # bad ones that are left, less k
        ratio = add(add(_log_ratio(k, mode), _log_ratio(add(others, k), add(others, mode))),
                    add(_log_ratio(sub(good, k), sub(good, mode)),
                        _log_ratio(sub(drawn, k), sub(drawn, mode))))
        ratio = add(ratio, mul(sub(k, mode), slope))
        return k, bitwise_and(inside, le(mul(2.0, log(u)), neg(ratio)))

    return step


def hypergeometric_of(key: Array, good: Array, bad: Array, drawn: Array) -> Array:
    """Good ones among those drawn: whole numbers as floats of one shape. The key is typed."""
    aval = typeof(good)
    step = _step(good, bad, drawn)

    def draw(state: PyTree) -> tuple[Array, Array, Array]:
        out, accepted, key = state
        key, u_key, v_key = subkeys(key, 3)
        u, v = (sub(1.0, unit(k, aval.shape, aval.dtype)) for k in (u_key, v_key))
        k, accept = step(u, v)
        new = bitwise_and(accept, bitwise_not(accepted))
        return select(new, k, out), bitwise_or(accepted, accept), key

    # What cannot be drawn is accepted as it is; the share of an infinite urn is no number.
    total = add(good, bad)
    possible = bitwise_and(bitwise_and(bitwise_and(ge(good, 0.0), ge(bad, 0.0)), is_finite(total)),
                           bitwise_and(ge(drawn, 0.0), le(drawn, total)))
    start = (full_like(good, -1.0), bitwise_not(possible), key)
    return while_loop(lambda state: any_of(bitwise_not(state[1])), draw, start)[0]


@fused(static=("shape", "dtype"))
def _hypergeometric(key: ArrayLike, good: ArrayLike, bad: ArrayLike, drawn: ArrayLike, *,
                    shape: Dims, dtype: DTypeLike) -> Any:
    given = dtypes.default_float()
    urn = (floor(parameter(x, given, shape)) for x in (good, bad, drawn))
    return convert_element_type(hypergeometric_of(typed(key), *urn), dtype)


def hypergeometric(key: ArrayLike, ngood: ArrayLike, nbad: ArrayLike, nsample: ArrayLike,
                   shape: Shape | None = None, dtype: DTypeLike | None = None) -> Array:
    """Numbers of good ones among `nsample` drawn from an urn without putting them back.

    Stadlober's ratio of uniforms (1990), whatever the urn's size. It has no derivatives.

    Args:
      key: a single key.
      ngood, nbad: numbers of good and bad ones in the urn, >= 0; arrays that broadcast to the
        shape. The default float counts them: float32 to 2**24.
      nsample: numbers drawn, >= 0 and at most ngood + nbad; likewise. -1 is drawn for others.
      shape: the result's shape; None is that of the parameters.
      dtype: an integer dtype; None is the default one.

    Returns:
      An array of that shape and dtype, of mean nsample ngood / (ngood + nbad).

    >>> from olympus import random
    >>> x = random.hypergeometric(random.key(0), 6, 18, 8, (10000,))
    >>> print(x.mean().round(1), x.max() <= 6)
    2.0 True
    """
    typed_aval(key, "hypergeometric")
    return _hypergeometric(key, ngood, nbad, nsample, dtype=integer_dtype("hypergeometric", dtype),
                           shape=draw_shape("hypergeometric", shape, ngood, nbad, nsample))


@fused(static=("shape", "dtype"))
def _multivariate_hypergeometric(key: ArrayLike, colors: object, drawn: ArrayLike, *, shape: Dims,
                                 dtype: DTypeLike) -> Any:
    """Each colour's number is hypergeometric, given those of the colours before it."""
    given, last = dtypes.default_float(), len(shape) - 1
    colors = floor(parameter(colors, given, shape))
    drawn = floor(parameter(drawn, given, shape[:-1]))
    possible = bitwise_and(bitwise_and(ge(drawn, 0.0), le(drawn, reduce_sum(colors, (last,)))),
                           ge(reduce_min(colors, (last,)), 0.0))
    drawn = select(possible, drawn, full_like(drawn, -1.0))
    rest = sub(cumsum(colors, last, reverse=True), colors)
    keys = random_split_p.bind(typed(key), shape=(shape[-1],))

    def draw(left: Array, x: Array) -> tuple[Array, Array]:
        count = hypergeometric_of(x[0], x[1], x[2], left)
        return select(possible, sub(left, count), left), count

    urn = (keys, moveaxis(colors, -1, 0), moveaxis(rest, -1, 0))
    return convert_element_type(moveaxis(scan(draw, drawn, urn)[1], 0, -1), dtype)


def multivariate_hypergeometric(key: ArrayLike, colors: ArrayLike, nsample: ArrayLike,
                                shape: Shape | None = None, dtype: DTypeLike | None = None
                               ) -> Array:
    """Numbers of each colour among `nsample` drawn from an urn without putting them back.

    Colour by colour: a `hypergeometric` number of what the colours before it leave. It has no
    derivatives.

    Args:
      key: a single key.
      colors: numbers[..., k] of each colour in the urn, >= 0.
      nsample: numbers drawn, >= 0 and at most the sum of `colors`; an array that broadcasts to the
        shape. -1 is drawn for others.
      shape: the result's shape without its last axis, k; None is that of the parameters.
      dtype: an integer dtype; None is the default one.

    Returns:
      An array of shape (*shape, k), whose sums along the last axis are nsample.

    >>> import olympus.numpy as onp
    >>> from olympus import random
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
    return _multivariate_hypergeometric(key, colors, nsample, dtype=integer_dtype(name, dtype),
                                        shape=draw_shape(name, (*batch, own[-1]), colors))
