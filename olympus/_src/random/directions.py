"""A sampler of directions in the plane."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base.typing import Array, ArrayLike, DTypeLike, PyTree, Shape
from ..core.trace import typeof
from ..custom.jvp import custom_jvp
from ..jit.fused import fused
from ..lax.arithmetic import div, mul, sub
from ..lax.barriers import stop_gradient
from ..lax.bits import bitwise_and, bitwise_not, bitwise_or
from ..lax.comparison import ge, gt, le, lt, select
from ..lax.creation import full_like
from ..lax.families import add
from ..lax.special import classical as special
from ..lax.transcendental import atan, exp, log, sin, sqrt, tan
from ..loops.while_loop import while_loop
from ..numpy.ufuncs import mod
from ..types import dtypes
from ..types.sharding import ShardingLike
from .arguments import Dims, any_of, parameter
from .continuous import drawn_with, subkeys, unit
from .keys import typed

__all__ = ["vonmises"]

_NODES = 32


def _half_square(x: Array) -> Array:
    """1 - cos(x), without cancellation."""
    half = sin(mul(x, 0.5))
    return mul(2.0, mul(half, half))


def _lack(kappa: Array) -> Array:
    """1 - I1(kappa) / I0(kappa): one less the mean of the cosine."""
    far = 1e3 if dtypes.itemsize_bits(typeof(kappa).dtype) > 32 else 30.0
    is_far = gt(kappa, far)
    near = select(is_far, full_like(kappa, 1.0), kappa)
    i0 = special.bessel_i0e(near)
    large = select(is_far, kappa, full_like(kappa, far))
    x = div(1.0, large)
    series = mul(mul(0.5, x), add(1.0, mul(x, add(0.25, mul(x, add(0.25, mul(25 / 64, x)))))))
    return select(is_far, series, div(sub(i0, special.bessel_i1e(near)), i0))


def _slope(x: Array, kappa: Array) -> Array:
    """The derivative in kappa of the quantile at x, an angle from the mean.

    Minus the derivative of the distribution function over the density: the integral from 0 to x of
    (mean of cos - cos(t)) exp(kappa (cos(t) - cos(x))), by Gauss's quadrature.
    """
    lack, whole, total = _lack(kappa), _half_square(x), full_like(x, 0.0)
    for node, weight in zip(*np.polynomial.legendre.leggauss(_NODES), strict=True):
        part = _half_square(mul(x, float(0.5 + 0.5 * node)))
        grown = exp(mul(kappa, sub(whole, part)))
        total = add(total, mul(mul(float(0.5 * weight), sub(part, lack)), grown))
    return mul(x, total)


@custom_jvp
def _moved(x: Array, kappa: Array) -> Any:
    """x, a function of kappa as a quantile is."""
    return x


_moved.defjvps(lambda t, y, x, kappa: t, lambda t, y, x, kappa: mul(t, _slope(x, kappa)))


def _angles(key: Array, kappa: Array) -> Array:
    """Angles of density exp(kappa cos(x)), by rejection from a wrapped Cauchy law.

    The law of 2 atan(c tan(pi v / 2)), v uniform in (-1, 1), with y = kappa (s - cos(x)) in terms
    of Best and Fisher's s: then the acceptance is y exp(1 - y), and nothing cancels at large kappa.
    """
    aval = typeof(kappa)
    root = sqrt(add(1.0, mul(4.0, mul(kappa, kappa))))
    least = add(0.5, div(0.5, add(root, mul(2.0, kappa))))      # kappa (s - 1)
    c = sqrt(div(least, add(least, mul(2.0, kappa))))

    def draw(state: PyTree) -> tuple[Array, Array, Array]:
        out, accepted, key = state
        key, u_key, v_key = subkeys(key, 3)
        u = sub(1.0, unit(u_key, aval.shape, aval.dtype))
        v = sub(unit(v_key, aval.shape, aval.dtype), 0.5)
        x = mul(2.0, atan(mul(c, tan(mul(math.pi, v)))))
        y = add(least, mul(kappa, _half_square(x)))
        accept = bitwise_and(le(log(u), add(sub(1.0, y), log(y))), bitwise_not(accepted))
        return select(accept, x, out), bitwise_or(accepted, accept), key

    possible = bitwise_and(ge(kappa, 0.0), lt(kappa, math.inf))
    start = (full_like(kappa, math.nan), bitwise_not(possible), key)
    return while_loop(lambda state: any_of(bitwise_not(state[1])), draw, start)[0]


@fused(static=("shape", "dtype"))
def _vonmises(key: Array, mu: Array, kappa: Array, *, shape: Dims, dtype: DTypeLike) -> Any:
    mu, kappa = parameter(mu, dtype, shape), parameter(kappa, dtype, shape)
    x = _moved(_angles(typed(key), stop_gradient(kappa)), kappa)
    return sub(mod(add(add(x, mu), math.pi), 2 * math.pi), math.pi)


def vonmises(key: ArrayLike, mu: ArrayLike, kappa: ArrayLike, shape: Shape | None = None,
             dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Angles in [-π, π] of density exp(kappa cos(x - mu)), up to a factor: von Mises' law.

    Best and Fisher (1979), Efficient simulation of the von Mises distribution, Appl. Stat. 28, 152.

    Args:
      key: a single key.
      mu: the mean direction; an array that broadcasts to the shape.
      kappa: the concentration, finite and >= 0: 0 is uniform; likewise. NaN is drawn for others.
      shape: the result's shape; None is that of the parameters.
      dtype: a float dtype; None is the default one.
      out_sharding: where the result is; see `lax.with_sharding_constraint`.

    Returns:
      An array of that shape and dtype, differentiable in `mu`, and in `kappa` by implicit
      reparametrisation (Figurnov, Mohamed and Mnih 2018).

    >>> from olympus import random
    >>> x = random.vonmises(random.key(0), 1.0, 4.0, (10000,))
    >>> print(x.mean().round(1))
    1.0
    """
    return drawn_with("vonmises", _vonmises, key, (mu, kappa), shape, dtype, out_sharding)
