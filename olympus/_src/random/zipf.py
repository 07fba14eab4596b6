"""Samplers of Zipf's law and of the logarithmic series: numbers 1, 2 … with heavy tails."""

# Annotations are for callers; `sampler.py` describes the arguments of a sampler's body.
# pyright: reportArgumentType=false

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from ..control_flow.while_loop import while_loop
from ..core.trace import typeof
from ..lax import arithmetic
from ..lax.arithmetic import floor
from ..lax.convert import convert_element_type
from ..lax.creation import full_like
from ..lax.transcendental import exp, expm1, log, log1p
from ..numpy.conditions import where
from ..types import dtypes
from ..types.sharding import ShardingLike
from .arguments import any_of, parameter
from .continuous import subkeys, unit
from .sampler import sampler


def _limited(x: Array, dtype: DType) -> Array:
    """Floats at most the largest one that an integer dtype holds."""
    return arithmetic.min(x, full_like(x, _largest(dtype, typeof(x).dtype)))


def _largest(dtype: DType, real: DType) -> float:
    """The largest number of a float dtype that an integer dtype holds."""
    top = int(dtypes.iinfo(dtype).max)
    largest = np.array(top, real)
    return float(largest if int(largest) <= top else np.nextafter(largest, np.array(0, real)))


@sampler(counts=True)
def logseries(key: ArrayLike, p: ArrayLike, shape: Shape | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Numbers 1, 2 … of probability -p**k / (k ln(1-p)): the logarithmic series.

    Kemp (1981), Efficient generation of logarithmically distributed pseudo-random variables, Appl.
    Stat. 30, 249: geometric numbers of a random parameter. It has no derivatives.

    Args:
      p: in [0, 1); an array that broadcasts to the shape. -1 is drawn for others.
      dtype: an integer dtype; None is the default one. Numbers above its largest are that.
    Returns: An array of that shape and dtype, of mean -p / ((1-p) ln(1-p)).

    >>> x = random.logseries(random.key(0), 0.6, (10000,))
    >>> print(x.min(), x.mean().round(1))
    1 1.6
    """
    real = dtypes.default_float()
    p = parameter(p, real, shape)
    u, v = (1.0 - unit(k, shape, real) for k in subkeys(key))
    q = -expm1(log1p(-p) * u)
    one, two = full_like(p, 1.0), full_like(p, 2.0)
    many = floor(1.0 + log(v) / log(q))
    out = where(v <= q * q, many, where(v <= q, two, one))
    out = where((v >= p) | (p == 0.0), one, out)
    out = _limited(where((p >= 0.0) & (p < 1.0), out, -one), dtype)
    return convert_element_type(out, dtype)


@sampler(counts=True)
def zipf(key: ArrayLike, a: ArrayLike, shape: Shape | None = None,
         dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Numbers 1, 2 … of probability proportional to k**-a: Zipf's law.

    Devroye (1986), Non-Uniform Random Variate Generation, X.6.1: rejection from floors of Pareto
    numbers. It has no derivatives.

    Args:
      a: > 1; an array that broadcasts to the shape. -1 is drawn for others.
      dtype: an integer dtype; None is the default one. The law covers the numbers that it holds;
        above 2**24 they are multiples as float32 has them, or float64 with x64 on.

    >>> x = random.zipf(random.key(0), 3.0, (10000,))
    >>> print((x == 1).mean().round(2))             # 1 / zeta(3) = 0.832
    0.83
    """
    # Floors of Pareto numbers below the largest one, accepted by the ratio of the two laws.
    real = dtypes.default_float()
    power = parameter(a, real, shape) - 1.0
    possible = power > 0.0
    power = where(possible, power, 1.0)
    least = exp(-power * float(np.log(_largest(dtype, real))))
    scale = expm1(-power * float(np.log(2.0)))

    def draw(state: Sequence[Array]) -> tuple[Array, ...]:
        out, accepted, key = state
        key, u_key, v_key = subkeys(key, 3)
        u, v = (1.0 - unit(k, shape, real) for k in (u_key, v_key))
        u = least + u * (1.0 - least)
        k = floor(exp(-log(u) / power))
        share = expm1(-power * log1p(1.0 / k)) / scale
        accept = (v * k * share <= 1.0) & ~accepted
        return where(accept, k, out), accepted | accept, key

    start = (full_like(power, -1.0), ~possible, key)
    out = while_loop(lambda state: any_of(~state[1]), draw, start)[0]
    return convert_element_type(_limited(out, dtype), dtype)
