"""Samplers of numbers of successes in trials: binomial and multinomial numbers."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ..base.typing import Array, ArrayLike, DType, DTypeLike, PyTree, Shape
from ..control_flow.scan import scan
from ..control_flow.while_loop import while_loop
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax import arithmetic
from ..lax.arithmetic import ceil, floor
from ..lax.barriers import random_clone_p
from ..lax.comparison import clamp
from ..lax.convert import convert_element_type
from ..lax.creation import full, full_like
from ..lax.cumulative import cumsum
from ..lax.sharding import constrain
from ..lax.transcendental import log, log1p, sqrt
from ..numpy import promote
from ..numpy.conditions import where
from ..numpy.indexing import take
from ..numpy.manipulation import moveaxis
from ..types import dtypes
from ..types.shape import broadcast_shapes
from ..types.sharding import ShardingLike
from .arguments import Dims, any_of, draw_shape, float_dtype, parameter
from .continuous import subkeys, unit
from .keys import random_split_p, typed
from .sampler import typed_aval

_FEW = 10.0                         # successes expected, up to which waiting times are added
_STAND_INS = 1e4, 0.5, 0.01         # arguments where the other method is used, or none
# ln k! less Stirling's (k+1/2) ln(k+1) - (k+1) + ln(2 pi)/2, for k = 0 … 9: Hörmann's table.
_TAILS = (0.08106146679532726, 0.04134069595540929, 0.02767792568499834, 0.02079067210376509,
          0.01664469118982119, 0.01387612882307075, 0.01189670994589177, 0.01041126526197209,
          0.009255462182712733, 0.008330563433362871)


def _by_waiting(key: ArrayLike, n: Array, p: Array) -> Array:
    """Successes in n trials, whose distances are geometric: they are added until they exceed n.

    Devroye (1986), Non-Uniform Random Variate Generation, X.4.3, "second waiting time method".
    """
    aval = typeof(n)
    log_failure = log1p(-p)

    def draw(state: PyTree) -> tuple[Array, Array, Array]:
        count, trials, key = state
        sub_key, key = subkeys(key)
        count = where(trials <= n, count + 1.0, count)
        wait = ceil(log(unit(sub_key, aval.shape, aval.dtype)) / log_failure)
        return count, trials + wait, key

    start = (full_like(n, 0.0), full_like(n, 0.0), key)
    return while_loop(lambda state: any_of(state[1] <= n), draw, start)[0] - 1.0


def _tail(k: Array) -> Array:
    """The error of Stirling's formula for ln k!.

    From 9 on it stays constant, as in JAX, whose streams these are: the logarithm of a probability
    is wrong by 1e-3 at most.
    """
    table = np.asarray(_TAILS, typeof(k).dtype)
    return take(table, convert_element_type(clamp(0.0, k, 9.0), "int32"), mode="clip")


def _rejection_step(n: Array, p: Array) -> Callable[[Array, Array], tuple[Array, Array]]:
    """Hörmann's BTRS: (u, v) uniform, u in [-1/2, 1/2) -> a count and whether it is accepted."""
    q = 1.0 - p
    sigma = sqrt(n * p * q)
    b = 1.15 + 2.53 * sigma
    a = -0.0873 + 0.0248 * b + 0.01 * p
    c = n * p + 0.5
    v_squeeze = 0.92 - 4.2 / b
    alpha = (2.83 + 5.1 / b) * sigma
    odds = p / q
    mode = floor((n + 1.0) * p)
    above = n - mode + 1.0

    def step(u: Array, v: Array) -> tuple[Array, Array]:
        us = 0.5 - arithmetic.abs(u)
        k = floor((2.0 * a / us + b) * u + c)
        beside = n - k + 1.0
        log_v = log(v * alpha / (a / (us * us) + b))
        bound = (mode + 0.5) * log((mode + 1.0) / (odds * above))
        bound = bound + (n + 1.0) * log(above / beside)
        bound = bound + (k + 0.5) * log(odds * beside / (k + 1.0))
        bound = bound + _tail(mode) + _tail(n - mode)
        bound = bound - _tail(k) - _tail(n - k)
        at_once = (us >= 0.07) & (v <= v_squeeze)
        never = (k < 0.0) | (k > n)
        return k, at_once | (~never & (log_v <= bound))

    return step


def _by_rejection(key: Array, n: Array, p: Array) -> Array:
    """Successes where at least 10 are expected and p <= 1/2.

    Hörmann (1993), The generation of binomial random variates, J. Stat. Comput. Simul. 46, 101.
    """
    aval = typeof(n)
    step = _rejection_step(n, p)

    def draw(state: PyTree) -> tuple[Array, Array, Array]:
        out, accepted, key = state
        key, u_key, v_key = subkeys(key, 3)
        u = unit(u_key, aval.shape, aval.dtype) - 0.5
        k, accept = step(u, unit(v_key, aval.shape, aval.dtype))
        return where(accept, k, out), accepted | accept, key

    start = (full_like(n, -1.0), full(aval.shape, False), key)
    return while_loop(lambda state: any_of(~state[1]), draw, start)[0]


def binomial_of(key: ArrayLike, n: Array, p: Array) -> Array:
    """Binomial numbers of arrays n and p of one shape and float dtype. The key is typed.

    Fewer than half of the trials succeed, or else failures are counted. Each method runs where it
    is needed, and elsewhere with arguments that it ends soon with.
    """
    trials, nan, infinite = floor(n), full_like(n, np.nan), n == np.inf
    likely = p >= 0.5
    rarer = where(likely, 1.0 - p, p)
    no_trials, no_chance = ~(n >= 0.0), ~(rarer >= 0.0)
    some_n, some_p, stand_in = (full_like(n, x) for x in _STAND_INS)
    chance = where(no_chance, stand_in, rarer)
    few = no_trials | infinite | (n * chance <= _FEW)
    waited = _by_waiting(key, where(few & (n != np.inf), trials, 0.0), chance)
    # One of the two counts, so the key is used once.
    rejected = _by_rejection(random_clone_p.bind(key), where(few, some_n, trials),
                             where(few, some_p, chance))
    out = where(few, waited, rejected)
    out = where(likely, trials - out, out)
    out = where(infinite, where(p > 0.0, n, 0.0), out)
    return where(no_trials | no_chance, nan, out)


@fused(static=("shape", "dtype"))
def _binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, *, shape: Dims, dtype: DType) -> Array:
    real = typeof(p).dtype
    drawn = binomial_of(typed(key), parameter(n, real, shape), parameter(p, real, shape))
    return convert_element_type(drawn, dtype)


def binomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, shape: Shape | None = None,
             dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """The numbers of successes in `n` trials, each of success probability `p`.

    Waiting times between successes (Devroye 1986, X.4.3) are added where at most 10 successes, or
    failures, are expected; elsewhere Hörmann's rejection (BTRS, 1993). It has no derivatives.

    Args:
      key: a single key.
      n: numbers of trials, >= 0; an array that broadcasts to the shape. Fractions are cut off.
      p: in [0, 1]; an array that broadcasts to the shape. NaN is drawn for other n and p.
      shape: the result's shape; None is the parameters'.
      dtype: a float dtype; None is the default one. Trials are counted in the dtype of p: to 2**24
        in float32, to 2**11 in float16.
    Returns: An array of that shape and dtype, of whole numbers in [0, n] with mean n p.

    >>> x = random.binomial(random.key(0), 20, 0.25, (10000,))
    >>> print(x.dtype, x.mean().round(1))
    float32 5.0
    """
    typed_aval(key, "binomial")
    dtype, shape = float_dtype("binomial", dtype), draw_shape("binomial", shape, n, p)
    p, = promote.promote_dtypes("binomial", p, inexact=True)
    return constrain("binomial", _binomial(key, n, p, shape=shape, dtype=dtype), out_sharding)


@fused(static=("shape", "dtype", "unroll"))
def _multinomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, *, shape: Dims, dtype: DType,
                 unroll: int | bool) -> Array:
    """Each outcome's count is binomial, given the counts of the outcomes before it."""
    real = typeof(n).dtype
    p, n = parameter(p, real, shape), parameter(n, real, shape[:-1])
    last = len(shape) - 1
    rest = cumsum(p, last, reverse=True)
    share = p / where(rest == 0.0, 1.0, rest)
    keys = random_split_p.bind(typed(key), shape=(shape[-1],))

    def draw(left: Array, x: Array) -> tuple[Array, Array]:
        count = binomial_of(x[0], left, clamp(0.0, x[1], 1.0))
        return left - count, count

    counts = scan(draw, n, (keys, moveaxis(share, -1, 0)), unroll=unroll)[1]
    return convert_element_type(moveaxis(counts, 0, -1), dtype)


def multinomial(key: ArrayLike, n: ArrayLike, p: ArrayLike, *, shape: Shape | None = None,
                dtype: DTypeLike | None = None, unroll: int | bool = 1,
                out_sharding: ShardingLike = None) -> Array:
    """The numbers of `n` trials that end in each of k outcomes.

    Outcome by outcome: a `binomial` number out of the rest that the outcomes before it leave (Davis
    1993, Comput. Stat. Data Anal. 16, 205). It has no derivatives.

    Args:
      key: a single key.
      n: numbers of trials, >= 0; an array that broadcasts to the result's shape without its last
        axis.
      p: float[..., k], probabilities of the outcomes, or weights: they are divided by their sum.
      shape: the result's shape, whose last axis is k; None is `p`'s, with leading axes of `n`'s.
      dtype: the counts' dtype, of any kind of number; None is the default float.
      unroll: outcomes per step of the loop, see `lax.scan`.
    Returns: An array of that shape and dtype; its sums along the last axis are n.

    >>> import numpy as np
    >>> x = random.multinomial(random.key(0), 10, np.array([0.2, 0.3, 0.5]), shape=(4, 3))
    >>> print(x.sum(-1))
    [10. 10. 10. 10.]
    """
    typed_aval(key, "multinomial")
    n, p = promote.promote_dtypes("multinomial", n, p, inexact=True)
    own = typeof(p).shape
    if not own:
        raise ValueError(f"multinomial: p {typeof(p)} given; an array with an axis of "
                         "probabilities is required; pass a vector.")
    if shape is None:
        shape = (*broadcast_shapes(own[:-1], typeof(n).shape), own[-1])
    shape = draw_shape("multinomial", shape, p)
    draw_shape("multinomial", shape[:-1], n)
    dtype = dtypes.default_float() if dtype is None else dtypes.requested_dtype("multinomial",
                                                                                dtype)
    drawn = _multinomial(key, n, p, shape=shape, dtype=dtype, unroll=unroll)
    return constrain("multinomial", drawn, out_sharding)
