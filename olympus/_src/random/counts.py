"""Samplers of counts without a bound: Poisson numbers, by inversion or by rejection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.typing import Array, ArrayLike, DTypeLike, Shape
from ..core.trace import typeof
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
from ..lax.transcendental import log, sqrt
from ..loops.while_loop import while_loop
from ..transforms.fused import fused
from ..types import dtypes
from ..types.sharding import ShardingLike
from .arguments import Dims, any_of, draw_shape, parameter
from .continuous import subkeys, typed_aval, unit
from .gamma import check_method
from .keys import typed

__all__ = ["poisson"]

F32 = np.dtype("float32")
_FEW, _STAND_IN = 10.0, 1e5


def _knuth(key: Any, rate: Any, dtype: Any, limit: int) -> Any:
    """Uniform numbers are multiplied until the product is below exp(-rate): Knuth's algorithm."""
    shape = typeof(rate).shape
    bound = neg(rate)

    def go_on(state: Any) -> Any:
        i, _, _, log_product = state
        return bitwise_and(any_of(gt(log_product, bound)), lt(i, limit))

    def draw(state: Any) -> Any:
        i, count, key, log_product = state
        key, sub = subkeys(key)
        count = select(gt(log_product, bound), add(count, 1), count)
        log_u = log(unit(sub, shape, F32))
        return add(i, 1), count, key, add(log_product, log_u)

    start = (full((), 0, "int32"), full(shape, 0, dtype), key, full(shape, 0.0, F32))
    return arithmetic.sub(while_loop(go_on, draw, start)[1], 1)


def _rejection_step(rate: Any) -> Callable[[Any, Any], tuple[Any, Any]]:
    """Hörmann's PTRS: (u, v) uniform, u in [-1/2, 1/2) -> a count and whether it is accepted."""
    log_rate = log(rate)
    b = add(0.931, mul(2.53, sqrt(rate)))
    a = add(-0.059, mul(0.02483, b))
    inverse_alpha = add(1.1239, div(1.1328, arithmetic.sub(b, 3.4)))
    v_squeeze = arithmetic.sub(0.9277, div(3.6224, arithmetic.sub(b, 2.0)))

    def step(u: Any, v: Any) -> tuple[Any, Any]:
        us = arithmetic.sub(0.5, arithmetic.abs(u))
        k = floor(add(add(mul(add(div(mul(2.0, a), us), b), u), rate), 0.43))
        s = log(div(mul(v, inverse_alpha), add(div(a, mul(us, us)), b)))
        t = arithmetic.sub(add(neg(rate), mul(k, log_rate)), special.lgamma(add(k, 1.0)))
        at_once = bitwise_and(ge(us, 0.07), le(v, v_squeeze))
        never = bitwise_or(lt(k, 0.0), bitwise_and(lt(us, 0.013), gt(v, us)))
        return k, bitwise_or(at_once, bitwise_and(bitwise_not(never), le(s, t)))

    return step


def _rejected(key: Any, rate: Any, dtype: Any, limit: int) -> Any:
    """Poisson numbers of rates of at least 10: Hörmann (1993), Insur. Math. Econ. 12, 39."""
    shape = typeof(rate).shape
    step = _rejection_step(rate)

    def go_on(state: Any) -> Any:
        i, _, accepted, _ = state
        return bitwise_and(any_of(bitwise_not(accepted)), lt(i, limit))

    def draw(state: Any) -> Any:
        i, out, accepted, key = state
        key, u_key, v_key = subkeys(key, 3)
        u = arithmetic.sub(unit(u_key, shape, typeof(rate).dtype), 0.5)
        k, accept = step(u, unit(v_key, shape, typeof(rate).dtype))
        return add(i, 1), select(accept, k, out), bitwise_or(accepted, accept), key

    start = (full((), 0, "int32"), full_like(rate, -1.0), full(shape, False), key)
    return convert_element_type(while_loop(go_on, draw, start)[1], dtype)


@fused(static=("shape", "dtype"))
def _poisson(key: Any, lam: Any, *, shape: Dims, dtype: Any) -> Any:
    key, lam = typed(key), parameter(lam, F32, shape)
    limit = int(dtypes.iinfo(dtype).max)
    few = bitwise_or(ne(lam, lam), lt(lam, _FEW))
    small = _knuth(key, select(few, lam, full_like(lam, 0.0)), dtype, min(limit, 2**31 - 1))
    # One of the two counts, so the key is used once.
    large = _rejected(random_clone_p.bind(key), select(few, full_like(lam, _STAND_IN), lam), dtype,
                      min(limit, 2**31 - 1))
    zero = full_like(small, 0)
    return select(eq(lam, 0.0), zero, select(few, small, large))


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
    dtype = dtypes.default_int() if dtype is None else dtypes.requested_dtype("poisson", dtype)
    if not dtypes.is_integer(dtype):
        raise ValueError(f"poisson: dtype {dtypes.long_name(dtype)} given; an integer dtype is "
                         "required; convert the result with astype.")
    drawn = _poisson(key, lam, shape=draw_shape("poisson", shape, lam), dtype=dtype)
    return constrain("poisson", drawn, out_sharding)
