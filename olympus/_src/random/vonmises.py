"""A sampler of directions in the plane."""

# Annotations are for callers; `sampler.py` describes the arguments of a sampler's body.
# pyright: reportArgumentType=false

from __future__ import annotations

import math

import numpy as np

from ..base.typing import Array, ArrayLike, DTypeLike, PyTree, Shape
from ..control_flow.while_loop import while_loop
from ..core.trace import typeof
from ..custom.jvp import custom_jvp
from ..lax.barriers import stop_gradient
from ..lax.creation import full_like
from ..lax.special import classical as special
from ..lax.transcendental import atan, exp, log, sin, sqrt, tan
from ..numpy.arithmetic import mod
from ..numpy.conditions import where
from ..types import dtypes
from ..types.sharding import ShardingLike
from .arguments import any_of, parameter
from .continuous import subkeys, unit
from .sampler import sampler

_NODES = 32


def _half_square(x: Array) -> Array:
    """1 - cos(x), without cancellation."""
    half = sin(x * 0.5)
    return 2.0 * (half * half)


def _lack(kappa: Array) -> Array:
    """1 - I1(kappa) / I0(kappa): one less the mean of the cosine."""
    far = 1e3 if dtypes.itemsize_bits(typeof(kappa).dtype) > 32 else 30.0
    is_far = kappa > far
    near = where(is_far, 1.0, kappa)
    i0 = special.bessel_i0e(near)
    large = where(is_far, kappa, full_like(kappa, far))
    x = 1.0 / large
    series = 0.5 * x * (1.0 + x * (0.25 + x * (0.25 + 25 / 64 * x)))
    return where(is_far, series, (i0 - special.bessel_i1e(near)) / i0)


def _slope(x: Array, kappa: Array) -> Array:
    """The derivative in kappa of the quantile at x, an angle from the mean.

    Minus the derivative of the distribution function over the density: the integral from 0 to x of
    (mean of cos - cos(t)) exp(kappa (cos(t) - cos(x))), by Gauss's quadrature.
    """
    lack, whole, total = _lack(kappa), _half_square(x), full_like(x, 0.0)
    for node, weight in zip(*np.polynomial.legendre.leggauss(_NODES), strict=True):
        part = _half_square(x * float(0.5 + 0.5 * node))
        grown = exp(kappa * (whole - part))
        total = total + float(0.5 * weight) * (part - lack) * grown
    return x * total


@custom_jvp
def _sloped(x: Array, kappa: Array) -> Array:
    """x, a function of kappa as a quantile is."""
    return x


_sloped.defjvps(lambda t, y, x, kappa: t, lambda t, y, x, kappa: t * _slope(x, kappa))


def _angles(key: Array, kappa: Array) -> Array:
    """Angles of density exp(kappa cos(x)), by rejection from a wrapped Cauchy law.

    The law of 2 atan(c tan(pi v / 2)), v uniform in (-1, 1), with y = kappa (s - cos(x)) in terms
    of Best and Fisher's s: then the acceptance is y exp(1 - y), and nothing cancels at large kappa.
    """
    aval = typeof(kappa)
    root = sqrt(1.0 + 4.0 * (kappa * kappa))
    least = 0.5 + 0.5 / (root + 2.0 * kappa)      # kappa (s - 1)
    c = sqrt(least / (least + 2.0 * kappa))

    def draw(state: PyTree) -> tuple[Array, Array, Array]:
        out, accepted, key = state
        key, u_key, v_key = subkeys(key, 3)
        u = 1.0 - unit(u_key, aval.shape, aval.dtype)
        v = unit(v_key, aval.shape, aval.dtype) - 0.5
        x = 2.0 * atan(c * tan(math.pi * v))
        y = least + kappa * _half_square(x)
        accept = (log(u) <= 1.0 - y + log(y)) & ~accepted
        return where(accept, x, out), accepted | accept, key

    possible = (kappa >= 0.0) & (kappa < math.inf)
    start = (full_like(kappa, math.nan), ~possible, key)
    return while_loop(lambda state: any_of(~state[1]), draw, start)[0]


@sampler(wide=True)
def vonmises(key: ArrayLike, mu: ArrayLike, kappa: ArrayLike, shape: Shape | None = None,
             dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Angles in [-π, π] of density exp(kappa cos(x - mu)), up to a factor: von Mises' law.

    Best and Fisher (1979), Efficient simulation of the von Mises distribution, Appl. Stat. 28, 152.

    Args:
      mu: the mean direction; an array that broadcasts to the shape.
      kappa: the concentration, finite and >= 0: 0 is uniform; likewise. NaN is drawn for others.
    Returns: An array of that shape and dtype, differentiable in `mu`, and in `kappa` by implicit
      reparametrisation (Figurnov, Mohamed and Mnih 2018).

    >>> x = random.vonmises(random.key(0), 1.0, 4.0, (10000,))
    >>> print(x.mean().round(1))
    1.0
    """
    mu, kappa = parameter(mu, dtype, shape), parameter(kappa, dtype, shape)
    x = _sloped(_angles(key, stop_gradient(kappa)), kappa)
    return mod(x + mu + math.pi, 2 * math.pi) - math.pi
