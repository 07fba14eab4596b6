"""Samplers of Poisson numbers, and of negative binomial ones: Poisson numbers of a gamma rate."""

# Annotations are for callers; `sampler.py` describes the arguments of a sampler's body.
# pyright: reportArgumentType=false

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from ..control_flow.while_loop import while_loop
from ..core.trace import typeof
from ..lax import arithmetic
from ..lax.arithmetic import floor
from ..lax.barriers import random_clone_p
from ..lax.convert import convert_element_type
from ..lax.creation import full, full_like
from ..lax.special import classical as special
from ..lax.transcendental import log, log1p, sqrt
from ..numpy.conditions import where
from ..types import dtypes
from ..types.sharding import ShardingLike
from .arguments import F32, any_of, parameter
from .continuous import subkeys, unit
from .gamma import gamma_of
from .sampler import sampler

_FEW, _STAND_IN = 10.0, 1e5
# From this rate on float32 holds neither counts nor the logarithms of their probabilities well.
_MANY = 2048.0


def _knuth(key: Array, rate: Array, dtype: DType, limit: int) -> Array:
    """Uniform numbers are multiplied until the product is below exp(-rate): Knuth's algorithm."""
    shape = typeof(rate).shape
    bound = -rate

    def go_on(state: Sequence[Array]) -> Array:
        i, _, _, log_product = state
        return any_of(log_product > bound) & (i < limit)

    def draw(state: Sequence[Array]) -> tuple[Array, ...]:
        i, count, key, log_product = state
        key, sub = subkeys(key)
        count = where(log_product > bound, count + 1, count)
        log_u = log(unit(sub, shape, F32))
        return i + 1, count, key, log_product + log_u

    start = (full((), 0, "int32"), full(shape, 0, dtype), key, full(shape, 0.0, F32))
    return while_loop(go_on, draw, start)[1] - 1


def _log_probability(rate: Array, excess: Array) -> Array:
    """The log-probability of the count rate + excess for large rates, without cancellation."""
    x = excess / rate
    near = arithmetic.abs(x) < 0.1
    small, far = where(near, x, 0.0), where(near, 0.2, x)
    series = full_like(x, 1 / 56)       # of ((1 + x) log(1 + x) - x) / x²
    for n in range(6, 0, -1):
        series = 1 / (n * (n + 1)) - small * series
    deviance = where(near, small * small * series, (1.0 + far) * log1p(far) - far)
    count = rate + excess
    return -(rate * deviance + (0.5 * log(2 * np.pi * count) + (1 / 12) / count))


def _rejection_step(rate: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
    """Hörmann's PTRS: (u, v) uniform, u in [-1/2, 1/2) -> a count and whether it is accepted.

    For a large rate the count is the excess over the whole part of the rate.
    """
    log_rate, many = log(rate), rate >= _MANY
    part = rate - floor(rate)
    b = 0.931 + 2.53 * sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse_alpha = 1.1239 + 1.1328 / (b - 3.4)
    v_squeeze = 0.9277 - 3.6224 / (b - 2.0)

    def step(u: Array, v: Array) -> tuple[Array, Array]:
        us = 0.5 - arithmetic.abs(u)
        beside = (2.0 * a / us + b) * u
        k = floor(beside + where(many, part, rate) + 0.43)
        s = log(v * inverse_alpha / (a / (us * us) + b))
        t = -rate + k * log_rate - special.lgamma(k + 1.0)
        t = where(many, _log_probability(rate, k - part), t)
        at_once = (us >= 0.07) & (v <= v_squeeze)
        least = where(many, -rate, 0.0)
        never = (k < least) | ((us < 0.013) & (v > us))
        return k, at_once | (~never & (s <= t))

    return step


def _rejected(key: Array, rate: Array, dtype: DType, limit: int) -> Array:
    """Poisson numbers of rates of at least 10: Hörmann (1993), Insur. Math. Econ. 12, 39."""
    shape = typeof(rate).shape
    step = _rejection_step(rate)

    def go_on(state: Sequence[Array]) -> Array:
        i, _, accepted, _ = state
        return any_of(~accepted) & (i < limit)

    def draw(state: Sequence[Array]) -> tuple[Array, ...]:
        i, out, accepted, key = state
        key, u_key, v_key = subkeys(key, 3)
        u = unit(u_key, shape, typeof(rate).dtype) - 0.5
        k, accept = step(u, unit(v_key, shape, typeof(rate).dtype))
        return i + 1, where(accept, k, out), accepted | accept, key

    start = (full((), 0, "int32"), full_like(rate, -1.0), full(shape, False), key)
    k, many = while_loop(go_on, draw, start)[1], rate >= _MANY
    return where(many, _integer_sums(floor(rate), k, dtype), convert_element_type(k, dtype))


def _integer_sums(base: Array, excess: Array, dtype: DType) -> Array:
    """Sums of whole float32 numbers as integers, exact; the largest one for counts above it."""
    wide = dtype if dtypes.itemsize_bits(dtype) >= 32 else dtypes.as_dtype("int32")
    excess_wide = convert_element_type(convert_element_type(excess, "int32"), wide)
    total = convert_element_type(base, wide) + excess_wide
    most = int(dtypes.iinfo(dtype).max)
    above = base + excess >= float(most)
    return convert_element_type(where(above, full_like(total, most), total), dtype)


def poisson_of(key: Array, lam: Array, dtype: DType) -> Array:
    """Poisson numbers of an array of rates in float32. The key is typed."""
    limit = int(dtypes.iinfo(dtype).max)
    few = (lam != lam) | (lam < _FEW)
    small = _knuth(key, where(few, lam, 0.0), dtype, min(limit, 2**31 - 1))
    # One of the two counts, so the key is used once.
    large = _rejected(random_clone_p.bind(key), where(few, full_like(lam, _STAND_IN), lam), dtype,
                      min(limit, 2**31 - 1))
    zero = full_like(small, 0)
    return where(lam == 0.0, zero, where(few, small, large))


@sampler(counts=True, methods=("exact",))
def poisson(key: ArrayLike, lam: ArrayLike, shape: Shape | None = None,
            dtype: DTypeLike | None = None, *, method: str = "exact",
            out_sharding: ShardingLike = None) -> Array:
    """Poisson numbers 0, 1 … of probability lam**k exp(-lam) / k!.

    Args:
      key: a single key (threefry2x32).
      lam: rates >= 0; an array that broadcasts to the shape. -1 is drawn for NaN.
    Returns: An array of that shape and dtype; of mean and variance `lam`.

    >>> print(olympus.random.poisson(olympus.random.key(0), 4.0, (6,)))
    [0 1 5 5 2 2]
    """
    return poisson_of(key, parameter(lam, F32, shape), dtype)


@sampler(counts=True)
def negative_binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None,
                      dtype: DTypeLike | None = None, *,
                      out_sharding: ShardingLike = None) -> Array:
    """The numbers of failures before the n-th success, each trial of success probability `p`.

    Poisson numbers of the rate (1-p) / p times a `gamma` number of parameter n (Devroye 1986,
    X.4.7), in float32. It has no derivatives.

    Args:
      n: > 0, whole or not; an array that broadcasts to the shape.
      p: in (0, 1]; an array that broadcasts to the shape. -1 is drawn for other n and p.
    Returns: An array of that shape and dtype, of mean n (1-p) / p.

    >>> x = random.negative_binomial(random.key(0), 4, 0.5, (10000,))
    >>> print(x.mean().round(1))
    4.0
    """
    # Poisson numbers of a gamma rate.
    n, p = parameter(n, F32, shape), parameter(p, F32, shape)
    gamma_key, poisson_key = subkeys(key)
    possible = (n > 0.0) & ((p > 0.0) & (p <= 1.0))
    size = where(possible, n, 1.0)
    rate = gamma_of(gamma_key, size) * ((1.0 - p) / p)
    return poisson_of(poisson_key, where(possible, rate, np.nan), dtype)
