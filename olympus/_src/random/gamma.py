"""Gamma numbers by the method of Marsaglia and Tsang, and their logarithms.

One primitive draws them, or their logarithms, with a key of its own per element; all elements run
in one loop until the last one is accepted, unless all keys of an array draw the first one's bits:
then one after the other.
"""

# Annotations are for callers; `sampler.py` describes the arguments of a sampler's body.
# pyright: reportArgumentType=false

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

from ..base.typing import Array, ArrayLike, DTypeLike, IrValue, Shape
from ..control_flow.branches import cond
from ..control_flow.map import map as map_
from ..control_flow.while_loop import while_loop
from ..core.primitive import Axis, Builder, Primitive, Tangent, Zero
from ..core.trace import typeof
from ..lax import arithmetic, transcendental
from ..lax.barriers import random_clone_p
from ..lax.creation import full_like
from ..lax.shape import align, reshape
from ..lax.slicing import index_in_dim
from ..lax.special import classical as special, incomplete_gamma
from ..lax.transcendental import exp, log, sqrt
from ..numpy.conditions import where
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import prod
from ..types.sharding import ShardingLike
from .arguments import any_of, parameter
from .continuous import exponential_of, standard_normal, unit
from .keys import random_split_p
from .sampler import METHODS, sampler

Dims = tuple[int, ...]
_SQUEEZE = 0.0331


def split_each(keys: ArrayLike, num: int) -> list[Array]:
    """`num` new keys of each key, as arrays of the shape of `keys`."""
    new = random_split_p.bind(keys, shape=(num,))
    axis = typeof(keys).ndim
    return [index_in_dim(new, i, axis, False) for i in range(num)]


def _positive(keys: Array, c: Array, active: Array) -> tuple[Array, Array]:
    """Normal x and v = 1 + c x, drawn again until v > 0 or the element is not active."""
    def again(state: tuple[Array, Array, Array]) -> Array:
        return any_of(active & (state[2] <= 0.0))

    def draw(state: Sequence[Array]) -> tuple[Array, Array, Array]:
        keys, x, v = state
        wanted = active & (v <= 0.0)
        next_keys, sub = split_each(keys, 2)
        new = standard_normal(sub, (), typeof(c).dtype)
        x = where(wanted, new, x)
        v = where(wanted, 1.0 + new * c, v)
        return where(wanted, next_keys, keys), x, v

    _, x, v = while_loop(again, draw, (keys, full_like(c, 0.0), full_like(c, -1.0)))
    return x, v


def _accepted(keys: Array, a: Array) -> tuple[Array, Array]:
    """d V for a >= 1, where V is Marsaglia and Tsang's cube and d = a - 1/3."""
    dtype = typeof(a).dtype
    d = a - 1 / 3
    c = (1 / 3) / sqrt(d)

    def again(state: Sequence[Array]) -> Array:
        return any_of(state[0])

    def draw(state: Sequence[Array]) -> tuple[Array, Array, Array]:
        active, keys, v3 = state
        next_keys, x_keys, u_keys = split_each(keys, 3)
        x, v = _positive(x_keys, c, active)
        x2, new = x * x, v * v * v
        u = unit(u_keys, (), dtype)
        outside = u >= 1.0 - _SQUEEZE * (x2 * x2)
        bound = x2 * 0.5 + d * (1.0 - new + log(new))
        v3 = where(active, new, v3)
        active = active & (outside & (log(u) >= bound))
        return active, where(active, next_keys, keys), v3

    start = (a == a, keys, full_like(a, 1.0))
    return d, while_loop(again, draw, start)[2]


def samples(keys: Array, a: Array, *, log_space: bool) -> Array:
    """One sample per key and element of `a`, of equal shapes.

    For a < 1, the number for a + 1 times u to the 1/a.
    """
    keys, boost_keys = split_each(keys, 2)
    above = a >= 1.0
    power, plain = 1.0 / a, full_like(a, 0.0 if log_space else 1.0)
    d, v = _accepted(keys, where(above, a, a + 1.0))
    if log_space:
        log_u = -exponential_of(boost_keys, (), typeof(a).dtype)
        plain_too = above | (log_u == 0.0)
        boost = where(plain_too, plain, log_u * power)
        return log(d) + log(v) + boost
    u = 1.0 - unit(boost_keys, (), typeof(a).dtype)
    return d * v * where(above, plain, transcendental.pow(u, power))


def _log_slope(a: Array, log_x: Array) -> Array:
    """The derivative in a of ln x: where x is tiny the derivative of (ln u + ln Γ(a+1)) / a."""
    tiny = log_x < math.log(float(dtypes.finfo(typeof(a).dtype).eps))
    x = exp(where(tiny, 0.0, log_x))
    near = (special.digamma(a + 1.0) - log_x) / a
    return where(tiny, near, incomplete_gamma.random_gamma_grad(a, x) / x)


class RandomGamma(Primitive):
    """Keys of shape k and a float[*k, *s] -> samples float[*k, *s], or their logarithms."""

    transpose = None

    def infer(self, keys: ShapedArray, a: ShapedArray, *, log_space: bool) -> ShapedArray:
        if not dtypes.is_key(keys.dtype) or a.shape[:keys.ndim] != keys.shape:
            raise TypeError(f"random_gamma: keys {keys} and a {a} given; typed keys are required, "
                            "with the leading axes of a; make them with random.key.")
        return make_aval(a.shape, a.dtype)

    def lower(self, b: Builder, keys: IrValue, a: IrValue, *, log_space: bool) -> IrValue:
        own: Any        # its dtype has a generator
        own, shape = b.avals_in[0], b.avals_in[1].shape
        run = functools.partial(samples, log_space=log_space)

        def draw(keys: Array, a: Array) -> Array:
            keys = random_split_p.bind(keys, shape=shape[own.ndim:])
            if own.dtype.impl.independent:
                return run(keys, a)
            flat = [reshape(x, (prod(shape),)) for x in (keys, a)]
            return reshape(map_(lambda pair: run(*pair), flat), shape)
        return own.dtype.impl.emit(b, draw, keys, a)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, log_space: bool
            ) -> tuple[Array, Tangent]:
        keys, a = primals
        out = self.bind(keys, a, log_space=log_space)
        if type(tangents[1]) is Zero:
            return out, Zero(typeof(out).to_tangent_aval())
        slope = _log_slope if log_space else incomplete_gamma.random_gamma_grad
        return out, tangents[1] * slope(a, out)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *, log_space: bool
             ) -> tuple[Array, int | None]:
        return self.bind(*align(axis, args, dims, 0)[0], log_space=log_space), 0


random_gamma_p = RandomGamma("random_gamma")


def gamma_of(key: Array, a: Array, log_space: bool = False, method: str = "exact") -> Array:
    """Samples, or their logarithms, of the shape of the array `a`. The key is typed."""
    if method == "exact":
        return random_gamma_p.bind(key, a, log_space=log_space)
    logs = approximate_logs(key, a)
    return logs if log_space else exp(logs)


def sizes(key: Array, a: Array, method: str) -> tuple[Array, Array]:
    """(drawn, logs): the samples are drawn * exp(logs). The key is typed.

    For numbers too small for the dtype `drawn` is 1, for others `logs` is 0. The former are drawn
    again, with the same key, if there are any.
    """
    if method == "approximate":
        logs = approximate_logs(key, a)
        return full_like(logs, 1.0), logs
    drawn = gamma_of(key, a)
    small = (drawn < float(dtypes.finfo(typeof(a).dtype).tiny)) | (drawn == 0.0)
    zero = full_like(drawn, 0.0)
    key = random_clone_p.bind(key)
    logs = cond(any_of(small), lambda: gamma_of(key, a, log_space=True), lambda: zero)
    logs = where(small, logs, zero)
    return where(small, 1.0, drawn), logs


def approximate_logs(key: ArrayLike, a: ArrayLike) -> Array:
    """Logarithms of numbers that nearly follow the law, without a loop. The key is typed.

    The cube root of a gamma number of a + 1 is nearly normal (Wilson and Hilferty 1931, PNAS 17,
    684), and times u ** (1 / a) it is one of a.
    """
    normal_key, uniform_key = split_each(key, 2)
    more, shape, dtype = a + 1.0, typeof(a).shape, typeof(a).dtype
    root = 1.0 - (1 / 9) / more + standard_normal(normal_key, shape, dtype) / (3.0 * sqrt(more))
    root = arithmetic.max(root, full_like(root, float(dtypes.finfo(dtype).tiny)))
    return log(more) + 3.0 * log(root) - exponential_of(uniform_key, shape, dtype) / a


@sampler(methods=METHODS)
def gamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None,
          *, method: str = "exact", out_sharding: ShardingLike = None) -> Array:
    """Gamma numbers, density x ** (a-1) * exp(-x) / Γ(a).

    Marsaglia and Tsang (2000), ACM Trans. Math. Softw. 26(3), 363; differentiable in `a` by
    implicit reparametrisation (see `lax.random_gamma_grad`).

    Args: a: the shape parameter, >= 0; an array that broadcasts to the shape.
    Returns: An array of that shape and dtype; of mean and variance `a`.

    >>> print(olympus.random.gamma(olympus.random.key(0), 3.0, (4,)).round(2))
    [2.57 2.78 1.97 5.41]
    """
    return gamma_of(key, parameter(a, dtype, shape), method=method)


@sampler(methods=METHODS)
def loggamma(key: ArrayLike, a: ArrayLike, shape: Shape | None = None,
             dtype: DTypeLike | None = None, *, method: str = "exact",
             out_sharding: ShardingLike = None) -> Array:
    """Logarithms of gamma numbers, finite where these underflow at small `a`.

    Args: a: the shape parameter, >= 0; an array that broadcasts to the shape.

    Returns:
      An array of that shape and dtype: the logarithms of what `gamma` draws with the same key.

    >>> random.gamma(random.key(1), 1e-3), random.loggamma(random.key(1), 1e-3).round()
    (Array(0., dtype=float32), Array(-1763., dtype=float32))
    """
    return gamma_of(key, parameter(a, dtype, shape), log_space=True, method=method)
