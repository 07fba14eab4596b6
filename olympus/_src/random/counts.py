"""Samplers of counts without a bound, by inversion or by rejection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.typing import Array, ArrayLike, DTypeLike, PyTree, Shape
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax import arithmetic
from ..lax.arithmetic import div, floor, mul, neg
from ..lax.barriers import random_clone_p
from ..lax.bits import bitwise_and, bitwise_not, bitwise_or
from ..lax.comparison import eq, ge, gt, le, lt, ne, select
from ..lax.convert import convert_element_type
from ..lax.creation import full, full_like
from ..lax.families import add
from ..lax.sharding import constrain
from ..lax.special import classical as special
from ..lax.transcendental import exp, expm1, log, log1p, sqrt
from ..loops.while_loop import while_loop
from ..types import dtypes
from ..types.sharding import ShardingLike
from .arguments import Dims, any_of, draw_shape, integer_dtype, parameter
from .continuous import subkeys, typed_aval, unit
from .gamma import check_method, gamma_of
from .keys import typed

__all__ = ["logseries", "negative_binomial", "poisson", "poisson_of", "zipf"]

F32 = np.dtype("float32")
_FEW, _STAND_IN = 10.0, 1e5
# From this rate on float32 holds neither counts nor the logarithms of their probabilities well.
_MANY = 2048.0


def _knuth(key: ArrayLike, rate: Array, dtype: DTypeLike, limit: int) -> Array:
    """Uniform numbers are multiplied until the product is below exp(-rate): Knuth's algorithm."""
    shape = typeof(rate).shape
    bound = neg(rate)

    def go_on(state: PyTree) -> Array:
        i, _, _, log_product = state
        return bitwise_and(any_of(gt(log_product, bound)), lt(i, limit))

    def draw(state: PyTree) -> tuple[Array, Array, Array, Array]:
        i, count, key, log_product = state
        key, sub = subkeys(key)
        count = select(gt(log_product, bound), add(count, 1), count)
        log_u = log(unit(sub, shape, F32))
        return add(i, 1), count, key, add(log_product, log_u)

    start = (full((), 0, "int32"), full(shape, 0, dtype), key, full(shape, 0.0, F32))
    return arithmetic.sub(while_loop(go_on, draw, start)[1], 1)


def _log_probability(rate: Array, excess: Array) -> Array:
    """The logarithm of the probability of the count rate + excess, for large rates: no large
    numbers are subtracted from each other.
    """
    x = div(excess, rate)
    near = lt(arithmetic.abs(x), 0.1)
    small, far = select(near, x, full_like(x, 0.0)), select(near, full_like(x, 0.2), x)
    series = full_like(x, 1 / 56)       # of ((1 + x) log(1 + x) - x) / x²
    for n in range(6, 0, -1):
        series = arithmetic.sub(1 / (n * (n + 1)), mul(small, series))
    deviance = select(near, mul(mul(small, small), series),
                      arithmetic.sub(mul(add(1.0, far), log1p(far)), far))
    count = add(rate, excess)
    return neg(add(mul(rate, deviance), add(mul(0.5, log(mul(2 * np.pi, count))),
                                            div(1 / 12, count))))


def _rejection_step(rate: Array) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Hörmann's PTRS: (u, v) uniform, u in [-1/2, 1/2) -> a count and whether it is accepted.

    Of a large rate the count is that above the whole part of the rate.
    """
    log_rate, many = log(rate), ge(rate, _MANY)
    part = arithmetic.sub(rate, floor(rate))
    b = add(0.931, mul(2.53, sqrt(rate)))
    a = add(-0.059, mul(0.02483, b))
    inverse_alpha = add(1.1239, div(1.1328, arithmetic.sub(b, 3.4)))
    v_squeeze = arithmetic.sub(0.9277, div(3.6224, arithmetic.sub(b, 2.0)))

    def step(u: Array, v: Array) -> tuple[Array, Array]:
        us = arithmetic.sub(0.5, arithmetic.abs(u))
        beside = mul(add(div(mul(2.0, a), us), b), u)
        k = floor(add(add(beside, select(many, part, rate)), 0.43))
        s = log(div(mul(v, inverse_alpha), add(div(a, mul(us, us)), b)))
        t = arithmetic.sub(add(neg(rate), mul(k, log_rate)), special.lgamma(add(k, 1.0)))
        t = select(many, _log_probability(rate, arithmetic.sub(k, part)), t)
        at_once = bitwise_and(ge(us, 0.07), le(v, v_squeeze))
        least = select(many, neg(rate), full_like(rate, 0.0))
        never = bitwise_or(lt(k, least), bitwise_and(lt(us, 0.013), gt(v, us)))
        return k, bitwise_or(at_once, bitwise_and(bitwise_not(never), le(s, t)))

    return step


def _rejected(key: Array, rate: Array, dtype: DTypeLike, limit: int) -> Array:
    """Poisson numbers of rates of at least 10: Hörmann (1993), Insur. Math. Econ. 12, 39."""
    shape = typeof(rate).shape
    step = _rejection_step(rate)

    def go_on(state: PyTree) -> Array:
        i, _, accepted, _ = state
        return bitwise_and(any_of(bitwise_not(accepted)), lt(i, limit))

    def draw(state: PyTree) -> tuple[Array, Array, Array, Array]:
        i, out, accepted, key = state
        key, u_key, v_key = subkeys(key, 3)
        u = arithmetic.sub(unit(u_key, shape, typeof(rate).dtype), 0.5)
        k, accept = step(u, unit(v_key, shape, typeof(rate).dtype))
        return add(i, 1), select(accept, k, out), bitwise_or(accepted, accept), key

    start = (full((), 0, "int32"), full_like(rate, -1.0), full(shape, False), key)
    k, many = while_loop(go_on, draw, start)[1], ge(rate, _MANY)
    return select(many, _whole(floor(rate), k, dtype), convert_element_type(k, dtype))


def _whole(base: ArrayLike, excess: ArrayLike, dtype: DTypeLike) -> Array:
    """Sums of whole float32 numbers as integers, exact; the largest one for what is above it."""
    wide = dtype if dtypes.itemsize_bits(dtype) >= 32 else dtypes.as_dtype("int32")
    found = add(convert_element_type(base, wide),
                convert_element_type(convert_element_type(excess, "int32"), wide))
    most = int(dtypes.iinfo(dtype).max)
    above = ge(add(base, excess), float(most))
    return convert_element_type(select(above, full_like(found, most), found), dtype)


def poisson_of(key: ArrayLike, lam: ArrayLike, dtype: DTypeLike) -> Array:
    """Poisson numbers of an array of rates in float32. The key is typed."""
    limit = int(dtypes.iinfo(dtype).max)
    few = bitwise_or(ne(lam, lam), lt(lam, _FEW))
    small = _knuth(key, select(few, lam, full_like(lam, 0.0)), dtype, min(limit, 2**31 - 1))
    # One of the two counts, so the key is used once.
    large = _rejected(random_clone_p.bind(key), select(few, full_like(lam, _STAND_IN), lam), dtype,
                      min(limit, 2**31 - 1))
    zero = full_like(small, 0)
    return select(eq(lam, 0.0), zero, select(few, small, large))


@fused(static=("shape", "dtype"))
def _poisson(key: ArrayLike, lam: ArrayLike, *, shape: Dims, dtype: Any) -> Any:
    return poisson_of(typed(key), parameter(lam, F32, shape), dtype)


def poisson(key: ArrayLike, lam: ArrayLike, shape: Shape | None = None,
            dtype: DTypeLike | None = None, *, method: str = "exact",
            out_sharding: ShardingLike = None) -> Array:
    """Poisson numbers.

    Args:
      key: a single key (threefry2x32).
      lam: rates >= 0; an array that broadcasts to the shape. -1 is drawn for NaN.
      shape: the result's shape; None is that of `lam`.
      dtype: an integer dtype; None is the default one.
      method: "exact".
      out_sharding: where the result is; see `lax.with_sharding_constraint`.

    Returns:
      An array of that shape and dtype; of mean and variance `lam`.

    >>> import olympus
    >>> olympus.random.poisson(olympus.random.key(0), 4.0, (3,)).shape
    (3,)
    """
    check_method("poisson", method)
    typed_aval(key, "poisson")
    dtype = integer_dtype("poisson", dtype)
    drawn = _poisson(key, lam, shape=draw_shape("poisson", shape, lam), dtype=dtype)
    return constrain("poisson", drawn, out_sharding)


@fused(static=("shape", "dtype"))
def _negative_binomial(key: ArrayLike, n: Any, p: ArrayLike, *, shape: Dims, dtype: DTypeLike
                       ) -> Any:
    """Poisson numbers of a gamma rate."""
    n, p = parameter(n, F32, shape), parameter(p, F32, shape)
    gamma_key, poisson_key = subkeys(typed(key))
    possible = bitwise_and(gt(n, 0.0), bitwise_and(gt(p, 0.0), le(p, 1.0)))
    size = select(possible, n, full_like(n, 1.0))
    rate = mul(gamma_of(gamma_key, size), div(arithmetic.sub(1.0, p), p))
    return poisson_of(poisson_key, select(possible, rate, full_like(n, np.nan)), dtype)


def negative_binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None,
                      dtype: DTypeLike | None = None) -> Array:
    """Numbers of failures before the n-th success, each trial of success probability `p`.

    Poisson numbers of the rate (1-p) / p times a `gamma` number of parameter n (Devroye 1986,
    X.4.7), in float32. It has no derivatives.

    Args:
      key: a single key.
      n: > 0, whole or not; an array that broadcasts to the shape.
      p: in (0, 1]; an array that broadcasts to the shape. -1 is drawn for other n and p.
      shape: the result's shape; None is that of the parameters.
      dtype: an integer dtype; None is the default one.

    Returns:
      An array of that shape and dtype, of mean n (1-p) / p.

    >>> from olympus import random
    >>> x = random.negative_binomial(random.key(0), 4, 0.5, (10000,))
    >>> print(x.mean().round(1))
    4.0
    """
    typed_aval(key, "negative_binomial")
    return _negative_binomial(key, n, p, shape=draw_shape("negative_binomial", shape, n, p),
                              dtype=integer_dtype("negative_binomial", dtype))


@fused(static=("shape", "dtype"))
def _logseries(key: ArrayLike, p: ArrayLike, *, shape: Dims, dtype: DTypeLike) -> Any:
    given = dtypes.default_float()
    p = parameter(p, given, shape)
    u, v = (arithmetic.sub(1.0, unit(k, shape, given)) for k in subkeys(typed(key)))
    q = neg(expm1(mul(log1p(neg(p)), u)))
    one, two = full_like(p, 1.0), full_like(p, 2.0)
    many = floor(add(1.0, div(log(v), log(q))))
    out = select(le(v, mul(q, q)), many, select(le(v, q), two, one))
    out = select(bitwise_or(ge(v, p), eq(p, 0.0)), one, out)
    out = _limited(select(bitwise_and(ge(p, 0.0), lt(p, 1.0)), out, neg(one)), dtype)
    return convert_element_type(out, dtype)


def _limited(x: Array, dtype: DTypeLike) -> Array:
    """Floats at most the largest one that an integer dtype holds."""
    return arithmetic.min(x, full_like(x, _largest(dtype, typeof(x).dtype)))


def _largest(dtype: DTypeLike, real: Any) -> float:
    """The largest number of a float dtype that an integer dtype holds."""
    top = int(dtypes.iinfo(dtype).max)
    found = np.array(top, real)
    return float(found if int(found) <= top else np.nextafter(found, np.array(0, real)))


def logseries(key: ArrayLike, p: ArrayLike, shape: Shape | None = None,
              dtype: DTypeLike | None = None) -> Array:
    """Numbers 1, 2 … of probability -p**k / (k ln(1-p)): the logarithmic series.

    Kemp (1981), Efficient generation of logarithmically distributed pseudo-random variables, Appl.
    Stat. 30, 249: geometric numbers of a random parameter. It has no derivatives.

    Args:
      key: a single key.
      p: in [0, 1); an array that broadcasts to the shape. -1 is drawn for others.
      shape: the result's shape; None is that of `p`.
      dtype: an integer dtype; None is the default one. Numbers above its largest are that.

    Returns:
      An array of that shape and dtype, of mean -p / ((1-p) ln(1-p)).

    >>> from olympus import random
    >>> x = random.logseries(random.key(0), 0.6, (10000,))
    >>> print(x.min(), x.mean().round(1))
    1 1.6
    """
    typed_aval(key, "logseries")
    return _logseries(key, p, shape=draw_shape("logseries", shape, p),
                      dtype=integer_dtype("logseries", dtype))


@fused(static=("shape", "dtype"))
def _zipf(key: ArrayLike, a: ArrayLike, *, shape: Dims, dtype: DTypeLike) -> Any:
    """Floors of Pareto numbers below the largest one, accepted by the ratio of the two laws."""
    given = dtypes.default_float()
    power = arithmetic.sub(parameter(a, given, shape), 1.0)
    possible = gt(power, 0.0)
    power = select(possible, power, full_like(power, 1.0))
    least = exp(mul(neg(power), float(np.log(_largest(dtype, given)))))
    scale = expm1(mul(neg(power), float(np.log(2.0))))

    def draw(state: PyTree) -> tuple[Array, Array, Array]:
        out, accepted, key = state
        key, u_key, v_key = subkeys(key, 3)
        u, v = (arithmetic.sub(1.0, unit(k, shape, given)) for k in (u_key, v_key))
        u = add(least, mul(u, arithmetic.sub(1.0, least)))
        k = floor(exp(div(neg(log(u)), power)))
        share = div(expm1(mul(neg(power), log1p(div(1.0, k)))), scale)
        accept = bitwise_and(le(mul(mul(v, k), share), 1.0), bitwise_not(accepted))
        return select(accept, k, out), bitwise_or(accepted, accept), key

    start = (full_like(power, -1.0), bitwise_not(possible), typed(key))
    out = while_loop(lambda state: any_of(bitwise_not(state[1])), draw, start)[0]
    return convert_element_type(_limited(out, dtype), dtype)


def zipf(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None
        ) -> Array:
    """Numbers 1, 2 … of probability proportional to k**-a: Zipf's law.

    Devroye (1986), Non-Uniform Random Variate Generation, X.6.1: rejection from floors of Pareto
    numbers. It has no derivatives.

    Args:
      key: a single key.
      a: > 1; an array that broadcasts to the shape. -1 is drawn for others.
      shape: the result's shape; None is that of `a`.
      dtype: an integer dtype; None is the default one. The law is that of the numbers that it
        holds; above 2**24 they are multiples as float32 has them, or float64 with x64 on.

    Returns:
      An array of that shape and dtype.

    >>> from olympus import random
    >>> x = random.zipf(random.key(0), 3.0, (10000,))
    >>> print((x == 1).mean().round(2))             # 1 / zeta(3) = 0.832
    0.83
    """
    typed_aval(key, "zipf")
    return _zipf(key, a, shape=draw_shape("zipf", shape, a), dtype=integer_dtype("zipf", dtype))
