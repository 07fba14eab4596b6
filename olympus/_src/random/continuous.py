"""Samplers of continuous distributions: each is a function of uniform or normal numbers.

Each public function checks its arguments; its program, of the same name with an underscore, is
compiled once per shape and dtype, and runs inline where a caller is traced.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.config import high_dynamic_range_gumbel
from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax import arithmetic, transcendental
from ..lax.accuracy import AccuracyMode
from ..lax.arithmetic import div, mul, neg, nextafter, sign, sub
from ..lax.barriers import stop_gradient
from ..lax.bits import bitwise_not, bitwise_or, clz, shift_left, shift_right_logical
from ..lax.comparison import clamp, eq, ge, gt, le, lt, select
from ..lax.convert import bitcast_convert_type, convert_element_type
from ..lax.creation import full_like
from ..lax.families import add
from ..lax.shape import reduce_sum
from ..lax.sharding import constrain
from ..lax.slicing import index_in_dim
from ..lax.special import classical as special
from ..lax.transcendental import exp, log1p, sqrt, tan
from ..types import dtypes
from ..types.shape import canonical_shape
from ..types.sharding import ShardingLike
from .arguments import draw_shape, float_dtype, parameter
from .keys import random_bits_p, random_split_p, typed, typed_scalar

__all__ = [
    "at_least_32_bits", "bits", "cauchy", "double_sided_maxwell", "drawn_with", "exponential",
    "gumbel", "laplace", "log_rest", "logistic", "lognormal", "maxwell", "narrowed", "normal",
    "pareto", "positive_unit", "power", "rademacher_signs", "rayleigh", "triangular",
    "truncated_normal", "uniform", "unit", "wald", "weibull_min",
]

Dims = tuple[int, ...]
F32, U32 = dtypes.as_dtype("float32"), dtypes.as_dtype("uint32")
finfo = dtypes.finfo


def subkeys(key: Array, num: int = 2) -> list[Array]:
    """New keys of a typed key, one by one."""
    keys = random_split_p.bind(key, shape=(num,))
    return [index_in_dim(keys, i, 0, False) for i in range(num)]


def bits(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
         out_sharding: ShardingLike = None) -> Array:
    """Uniformly random bits.

    Args:
      dtype: an unsigned integer dtype; None is uint32, or uint64 with x64 on.

    Returns:
      An array of that shape and dtype, each bit 0 or 1 with equal probability.

    >>> import olympus
    >>> olympus.random.bits(olympus.random.key(0), (2,), "uint8").dtype
    dtype('uint8')
    """
    dtype = (dtypes.canonical_dtype("uint64") if dtype is None
             else dtypes.requested_dtype("bits", dtype))
    if dtypes.scalar_kind(dtype) != "u":
        raise ValueError(f"bits: dtype {dtypes.long_name(dtype)} given; an unsigned integer dtype "
                         "is required; convert the result with astype.")
    drawn = random_bits_p.bind(typed_scalar("bits", key), shape=canonical_shape(shape, "bits"),
                               bit_width=dtypes.itemsize_bits(dtype))
    return constrain("bits", drawn, out_sharding)


def unit(key: ArrayLike, shape: Dims, dtype: DTypeLike) -> Array:
    """Floats in [0, 1) from random mantissas: 1.m - 1. The key is typed."""
    info = finfo(dtype)
    width = dtypes.itemsize_bits(dtype)
    if width not in (8, 16, 32, 64):
        raise TypeError(f"uniform: dtype {dtypes.long_name(dtype)} given; a float dtype of 8, 16, "
                        "32 or 64 bits is required; convert the result with astype.")
    drawn = 8 if info.nmant < 8 else width
    unsigned = dtypes.as_dtype(f"uint{width}")
    words = random_bits_p.bind(key, bit_width=drawn, shape=shape)
    if drawn != width:
        words = convert_element_type(words, unsigned)
    one = int(np.array(1.0, dtype).view(unsigned))
    words = bitwise_or(shift_right_logical(words, drawn - info.nmant), one)
    return sub(bitcast_convert_type(words, dtype), 1.0)


def positive_unit(key: ArrayLike, shape: Dims, dtype: DTypeLike) -> Array:
    """`unit`, and in place of 0, which stands for a whole step of the grid, half a step."""
    u = unit(key, shape, dtype)
    return select(eq(u, 0.0), full_like(u, 0.5 * float(finfo(dtype).eps)), u)


def at_least_32_bits(dtype: Any) -> Any:
    """The dtype to draw in: in fewer bits the law of most parameters is lost to rounding."""
    return F32 if dtypes.itemsize_bits(dtype) < 32 else dtype


def narrowed(drawn: ArrayLike, dtype: Any) -> Any:
    """What was drawn in 32 bits at least, in the dtype that was asked for."""
    return drawn if at_least_32_bits(dtype) == dtype else convert_element_type(drawn, dtype)


def between(key: Array, low: ArrayLike, high: ArrayLike, shape: Dims, dtype: DTypeLike) -> Array:
    """Floats in [low, high). The key is typed; the bounds are arrays or numbers."""
    low, high = parameter(low, dtype, shape), parameter(high, dtype, shape)
    return arithmetic.max(low, add(mul(unit(key, shape, dtype), sub(high, low)), low))


def log_rest(x: ArrayLike) -> Array:
    """log(1 - x) by XLA's own implementation: its last places are those of JAX's draws."""
    return log1p(neg(x), accuracy=AccuracyMode.DEFAULT)


@fused(static=("shape", "dtype"))
def _unit(key: ArrayLike, *, shape: Dims, dtype: Any) -> Array:
    return unit(typed(key), shape, dtype)


@fused(static=("shape", "dtype"))
def _between(key: ArrayLike, low: ArrayLike, high: ArrayLike, *, shape: Dims, dtype: Any) -> Array:
    low, high = parameter(low, dtype, shape), parameter(high, dtype, shape)
    u, span = unit(typed(key), shape, dtype), sub(high, low)
    finite = lt(arithmetic.abs(span), math.inf)
    near = add(mul(u, select(finite, span, full_like(span, 0.0))), low)
    far = add(mul(u, high), mul(sub(1.0, u), low))      # whose distance the dtype does not hold
    return arithmetic.max(low, select(finite, near, far))


def uniform(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None,
            minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0, *, out_sharding: ShardingLike = None
           ) -> Array:
    """Floats uniform in [minval, maxval).

    Args:
      minval, maxval: bounds; arrays that broadcast to the shape.

    Returns:
      An array of that shape and dtype, with as many random bits as the dtype's mantissa has.

    >>> import olympus
    >>> olympus.random.uniform(olympus.random.key(0), (3,)).shape
    (3,)
    """
    typed_aval(key, "uniform")
    dtype = float_dtype("uniform", dtype)
    shape = draw_shape("uniform", shape, minval, maxval)
    if type(minval) is type(maxval) is float and (minval, maxval) == (0.0, 1.0):
        drawn = _unit(key, shape=shape, dtype=dtype)
        return constrain("uniform", drawn, out_sharding)
    drawn = _between(key, minval, maxval, shape=shape, dtype=dtype)
    return constrain("uniform", drawn, out_sharding)


def typed_aval(key: ArrayLike, name: str) -> None:
    """Raise unless `key` is a single key, typed or raw."""
    dtype, ndim = getattr(key, "dtype", None), getattr(key, "ndim", 2)
    if dtype is None or dtypes.is_extended(dtype) == bool(ndim) or ndim > 1:
        typed_scalar(name, key)


def standard_normal(key: Array, shape: Dims, dtype: DTypeLike) -> Array:
    """Normal floats or complex numbers of variance 1. The key is typed."""
    if dtypes.is_complex(dtype):
        k1, k2 = subkeys(key)
        part = dtypes.to_real_dtype(dtype)
        z = arithmetic.complex(standard_normal(k1, shape, part), standard_normal(k2, shape, part))
        return div(z, math.sqrt(2))
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)
    u = between(key, low, np.array(1, dtype), shape, dtype)
    return mul(float(np.array(np.sqrt(2), dtype)), special.erf_inv(u))


@fused(static=("shape", "dtype"))
def _normal(key: ArrayLike, *, shape: Dims, dtype: DType) -> Array:
    return standard_normal(typed(key), shape, dtype)


def normal(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
           out_sharding: ShardingLike = None) -> Array:
    """Normal numbers of mean 0 and variance 1, by the inverse of erf.

    Args:
      dtype: a float or complex dtype; None is the default float.

    Returns:
      An array of that shape and dtype; complex numbers have parts of variance 1/2.

    >>> import olympus
    >>> olympus.random.normal(olympus.random.key(0), (2, 3)).shape
    (2, 3)
    """
    typed_aval(key, "normal")
    drawn = _normal(key, shape=canonical_shape(shape, "normal"),
                    dtype=float_dtype("normal", dtype, "fc"))
    return constrain("normal", drawn, out_sharding)


# From where on, by the bits of the mantissa, an interval on one side of 0 is in the tail: erf has
# too few values there for the law.
_TAILS = {7: 1.5, 10: 2.0, 23: 3.75, 52: 6.0}


@fused(static=("shape", "dtype", "tails"))
def _truncated_normal(key: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, shape: Dims,
                      dtype: Any, tails: bool) -> Any:
    """The inverse of the distribution function, kept inside of the open interval."""
    lower, upper = parameter(lower, dtype, shape), parameter(upper, dtype, shape)
    u, root = unit(typed(key), shape, dtype), float(np.array(np.sqrt(2), dtype))

    def central(lower: ArrayLike, upper: ArrayLike) -> Array:
        low, high = special.erf(div(lower, root)), special.erf(div(upper, root))
        v = arithmetic.max(low, add(mul(u, sub(high, low)), low))
        return mul(root, special.erf_inv(v))

    if tails:
        begin = _tail_from(dtype)
        right, left = ge(lower, begin), le(upper, -begin)
        tail = bitwise_or(right, left)
        one = full_like(u, 1.0)
        near, far = select(right, lower, neg(upper)), select(right, upper, neg(lower))
        near, far = select(tail, near, one), select(tail, far, full_like(u, 2.0))
        beyond = _of_tail(u, near, far)
        out = central(select(tail, neg(one), lower), select(tail, one, upper))
        out = select(tail, select(right, beyond, neg(beyond)), out)
    else:
        out = central(lower, upper)
    # The limits bind where rounding would leave the interval: they have no derivative.
    first = nextafter(stop_gradient(lower), parameter(math.inf, dtype, shape))
    last = nextafter(stop_gradient(upper), parameter(-math.inf, dtype, shape))
    return clamp(first, out, last)


def _tail_from(dtype: Any) -> float:
    return _TAILS.get(finfo(dtype).nmant, 1.0)


def _above(x: Array) -> Array:
    """The normal probability above x over the density there, for x >= 1.5: Laplace's fraction."""
    value = x
    for k in range(12, 0, -1):
        value = add(x, div(float(k), value))
    return div(1.0, value)


def _of_tail(u: Array, near: Array, far: Array) -> Array:
    """Normal numbers between two positive bounds: Newton's method on the logarithm of the tail."""
    dtype = typeof(u).dtype
    u, near, far = (convert_element_type(x, at_least_32_bits(dtype)) for x in (u, near, far))
    endless, first = eq(far, math.inf), _above(near)
    last = select(endless, add(near, 1.0), far)
    most = sub(transcendental.log(div(_above(last), first)),
               mul(mul(0.5, sub(last, near)), add(last, near)))
    share = select(endless, full_like(u, -1.0), transcendental.expm1(most))
    level = log1p(mul(u, share))        # of the probability above the result over that above near
    # The density alone, without what the fraction changes, is where to begin.
    root = sqrt(sub(mul(near, near), mul(2.0, level)))
    moved = div(mul(-2.0, level), add(root, near))
    for _ in range(4):
        here = _above(add(near, moved))
        lack = add(sub(mul(moved, add(near, mul(0.5, moved))),
                       transcendental.log(div(here, first))), level)
        moved = sub(moved, mul(lack, here))
    return convert_element_type(add(near, moved), dtype)


def truncated_normal(key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Shape | None = None,
                     dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Standard normal numbers given that they lie in (lower, upper).

    Args:
      lower, upper: bounds; arrays that broadcast to the shape.
      shape: the result's shape; None is that of the bounds.

    Returns:
      An array of that shape and dtype, differentiable in the bounds.

    >>> x = random.truncated_normal(random.key(0), -1.0, 2.0, (10000,))
    >>> print(x.min().round(1), x.max().round(1))
    -1.0 2.0
    """
    typed_aval(key, "truncated_normal")
    dtype = float_dtype("truncated_normal", dtype)
    begin, known = _tail_from(dtype), type(lower) in (int, float) and type(upper) in (int, float)
    tails = not (known and lower < begin and upper > -begin)  # type: ignore[operator]
    drawn = _truncated_normal(key, lower, upper, dtype=dtype, tails=tails,
                              shape=draw_shape("truncated_normal", shape, lower, upper))
    return constrain("truncated_normal", drawn, out_sharding)


# Without parameters ------------------------------------------------------------------------------

def _draw(name: str, program: Any, key: ArrayLike, shape: Sequence[int | None], dtype: Any,
          out_sharding: ShardingLike) -> Array:
    typed_aval(key, name)
    drawn = program(key, shape=canonical_shape(shape, name), dtype=float_dtype(name, dtype))
    return constrain(name, drawn, out_sharding)


def exponential_of(key: Array, shape: Dims, dtype: DTypeLike) -> Array:
    """Exponential numbers of mean 1. The key is typed."""
    return neg(log_rest(unit(key, shape, dtype)))


@fused(static=("shape", "dtype"))
def _exponential(key: Array, *, shape: Dims, dtype: DType) -> Array:
    return exponential_of(typed(key), shape, dtype)


def exponential(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
                out_sharding: ShardingLike = None) -> Array:
    """Exponential numbers of mean 1, density exp(-x) for x >= 0.

    Returns:
      An array of that shape and dtype; divide it by a rate for another mean.

    >>> x = random.exponential(random.key(0), (10000,))
    >>> print(x.mean().round(1), x.min() >= 0)
    1.0 True
    """
    return _draw("exponential", _exponential, key, shape, dtype, out_sharding)


def gumbel_of(key: Array, shape: Dims, dtype: DTypeLike, mode: str) -> Array:
    """Gumbel numbers, -log(-log(u)). The key is typed.

    In mode "high" u counts from the end where numbers are large, and a second draw continues its
    bits there, so that the tail is not cut off.
    """
    info = finfo(dtype)
    if mode == "highest" and dtype == F32:
        return _gumbel_of_64_bits(key, shape)
    if mode == "low":
        u = between(key, np.array(info.tiny, dtype), np.array(1, dtype), shape, dtype)
        return neg(transcendental.log(neg(transcendental.log(u))))
    pair = unit(key, (2, *shape), dtype)
    high, low = (index_in_dim(pair, i, 0, False) for i in (0, 1))
    fine = add(mul(low, 2.0 ** -info.nmant), float(info.tiny))
    u = select(ge(high, 0.5), high, add(high, fine))
    return neg(transcendental.log(neg(log_rest(u))))


def _gumbel_of_64_bits(key: Array, shape: Dims) -> Array:
    """Of uniform numbers u of 64 bits. Whichever of u and 1-u is less than 1/2 becomes a float,
    which keeps its first 24 bits.
    """
    pair = random_bits_p.bind(key, bit_width=32, shape=(2, *shape))
    high, low = (index_in_dim(pair, i, 0, False) for i in (0, 1))
    small = lt(high, np.uint32(2**31))
    # 1 - u is the two's complement of both words.
    carry = convert_element_type(eq(low, np.uint32(0)), U32)
    high = select(small, high, add(bitwise_not(high), carry))
    low = select(small, low, neg(low))
    # The first 24 bits from the first one on, which is 1 also where all 64 are 0.
    short = eq(high, np.uint32(0))
    high, low = select(short, low, high), select(short, full_like(low, 0), low)
    lost = clz(high)
    first = bitwise_or(shift_left(high, lost), shift_right_logical(low, sub(np.uint32(32), lost)))
    first = bitwise_or(shift_right_logical(first, np.uint32(8)), np.uint32(2**23))
    lost = add(lost, select(short, full_like(lost, 32), full_like(lost, 0)))
    power = shift_left(sub(np.uint32(127 - 24), lost), np.uint32(23))
    u = mul(convert_element_type(first, F32), bitcast_convert_type(power, F32))
    return neg(transcendental.log(neg(select(small, log_rest(u), transcendental.log(u)))))


@fused(static=("shape", "dtype", "mode"))
def _gumbel(key: ArrayLike, *, shape: Dims, dtype: DTypeLike, mode: str) -> Any:
    return gumbel_of(typed(key), shape, dtype, mode)


def precision_mode(name: str, mode: Any, modes: tuple = ("low", "high", "highest")) -> str:
    """One of the modes; for None as the option says, "low" if it is not set. ValueError for others.
    """
    if mode is None and "highest" in modes and high_dynamic_range_gumbel.value:
        return "high"
    if mode is not None and mode not in modes:
        raise ValueError(f"{name}: mode {mode!r} given; {' or '.join(map(repr, modes))} is "
                         "required.")
    return mode or "low"


def gumbel(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None,
           mode: str | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Gumbel numbers, density exp(-x - exp(-x)).

    Args:
      mode: "high" draws twice the bits, for tails beyond 17 (float32); "low" and None do not.
        "highest" draws 64 bits for float32, all of which count; it is "high" for other dtypes.

    Returns:
      An array of that shape and dtype. The place of the largest logit plus Gumbel noise is a draw
      from their softmax, as of `categorical`.

    >>> x = random.gumbel(random.key(0), (10000,))
    >>> print(x.mean().round(1))                    # Euler's constant, 0.577
    0.6
    """
    typed_aval(key, "gumbel")
    drawn = _gumbel(key, shape=canonical_shape(shape, "gumbel"), dtype=float_dtype("gumbel", dtype),
                    mode=precision_mode("gumbel", mode))
    return constrain("gumbel", drawn, out_sharding)


@fused(static=("shape", "dtype"))
def _laplace(key: Array, *, shape: Dims, dtype: DTypeLike) -> Any:
    low = np.array(-1 + float(finfo(dtype).epsneg), dtype)
    u = between(typed(key), low, np.array(1, dtype), shape, dtype)
    return mul(sign(u), log_rest(arithmetic.abs(u)))


def laplace(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
            out_sharding: ShardingLike = None) -> Array:
    """Laplace numbers, density exp(-|x|) / 2: exponential ones of random sign.

    Returns:
      An array of that shape and dtype; of mean 0 and variance 2.

    >>> x = random.laplace(random.key(0), (10000,))
    >>> print(abs(x).mean().round(1))
    1.0
    """
    return _draw("laplace", _laplace, key, shape, dtype, out_sharding)


@fused(static=("shape", "dtype"))
def _logistic(key: Array, *, shape: Dims, dtype: DTypeLike) -> Any:
    low = np.array(finfo(dtype).tiny, dtype)
    u = between(typed(key), low, np.array(1, dtype), shape, dtype)
    return sub(transcendental.log(u), log_rest(u))


def logistic(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
             out_sharding: ShardingLike = None) -> Array:
    """Logistic numbers: log(u / (1 - u)) of uniform u, density that of `nn.sigmoid`'s derivative.

    Returns:
      An array of that shape and dtype; of mean 0 and variance π²/3.

    >>> x = random.logistic(random.key(0), (10000,))
    >>> print((x > 0).mean().round(1))
    0.5
    """
    return _draw("logistic", _logistic, key, shape, dtype, out_sharding)


@fused(static=("shape", "dtype"))
def _cauchy(key: Array, *, shape: Dims, dtype: DTypeLike) -> Any:
    low = np.array(finfo(dtype).eps, dtype)
    u = between(typed(key), low, np.array(1, dtype), shape, dtype)
    return tan(mul(float(np.array(np.pi, dtype)), sub(u, 0.5)))


def cauchy(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
           out_sharding: ShardingLike = None) -> Array:
    """Cauchy numbers, density 1 / (π (1 + x²)): they have no mean.

    Returns:
      An array of that shape and dtype.

    >>> x = random.cauchy(random.key(0), (10000,))
    >>> print((abs(x) < 1).mean().round(2))         # half of the weight
    0.5
    """
    return _draw("cauchy", _cauchy, key, shape, dtype, out_sharding)


def maxwell_of(key: Array, shape: Dims, dtype: DTypeLike) -> Array:
    """Lengths of normal vectors in three dimensions. The key is typed."""
    x = standard_normal(key, (*shape, 3), dtype)
    wide = dtypes.as_dtype("float32") if dtypes.itemsize_bits(dtype) < 32 else dtype
    total = reduce_sum(convert_element_type(mul(x, x), wide), (len(shape),))
    return sqrt(convert_element_type(total, dtype))


@fused(static=("shape", "dtype"))
def _maxwell(key: Array, *, shape: Dims, dtype: DTypeLike) -> Any:
    return maxwell_of(typed(key), shape, dtype)


def maxwell(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
            out_sharding: ShardingLike = None) -> Array:
    """Maxwell numbers, density sqrt(2/π) x² exp(-x² / 2): lengths of normal vectors in space.

    Returns:
      An array of that shape and dtype; the mean of the squares is 3.

    >>> x = random.maxwell(random.key(0), (10000,))
    >>> print((x * x).mean().round(1))
    3.0
    """
    return _draw("maxwell", _maxwell, key, shape, dtype, out_sharding)


# With parameters ---------------------------------------------------------------------------------

def rademacher_signs(key: ArrayLike, shape: Dims, dtype: DTypeLike) -> Array:
    """-1 or 1 with equal probability. The key is typed."""
    heads = lt(unit(key, shape, dtypes.default_float()), 0.5)
    return sub(mul(convert_element_type(heads, dtype), 2), 1)


@fused(static=("shape", "dtype"))
def _double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, *, shape: Dims,
                          dtype: DTypeLike) -> Any:
    k1, k2 = subkeys(typed(key))
    size = mul(rademacher_signs(k2, shape, dtype), maxwell_of(k1, shape, dtype))
    return add(mul(size, parameter(scale, dtype, shape)), parameter(loc, dtype, shape))


def double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (),
                         dtype: DTypeLike | None = None) -> Array:
    """Maxwell numbers of random sign, times `scale`, plus `loc`.

    Args:
      loc, scale: where the density is 0, and its width; arrays that broadcast together.
      shape: the shape of draws for each of the parameters.

    Returns:
      An array of shape (*shape, *shape of the parameters).

    >>> import olympus.numpy as onp
    >>> from olympus import random
    >>> random.double_sided_maxwell(random.key(0), onp.zeros(2), 1.0, (5,)).shape
    (5, 2)
    """
    typed_aval(key, "double_sided_maxwell")
    shape = (*canonical_shape(shape, "double_sided_maxwell"),
             *draw_shape("double_sided_maxwell", None, loc, scale))
    return _double_sided_maxwell(key, loc, scale, shape=shape,
                                 dtype=float_dtype("double_sided_maxwell", dtype))


@fused(static=("shape", "dtype"))
def _weibull_min(key: Array, scale: ArrayLike, concentration: ArrayLike, *, shape: Dims,
                 dtype: DType) -> Array:
    power = div(1.0, parameter(concentration, dtype, shape))
    e = exponential_of(typed(key), shape, dtype)
    return mul(transcendental.pow(e, power), parameter(scale, dtype, shape))


def weibull_min(key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape = (),
                dtype: DTypeLike | None = None) -> Array:
    """Weibull numbers: scale * e ** (1 / concentration) for exponential e.

    Args:
      scale, concentration: > 0; arrays that broadcast to the shape.

    Returns:
      An array of that shape and dtype; at concentration 1 exponential numbers of mean `scale`.

    >>> x = random.weibull_min(random.key(0), 2.0, 1.0, (10000,))
    >>> print(x.mean().round(1))
    2.0
    """
    return drawn_with("weibull_min", _weibull_min, key, (scale, concentration), shape, dtype, None)


def drawn_with(name: str, program: Any, key: ArrayLike, params: tuple, shape: Any, dtype: Any,
               out_sharding: ShardingLike) -> Array:
    """A program's draws after checks of the key, the parameters, the shape and the dtype.

    They are computed in float32 at least.
    """
    typed_aval(key, name)
    dtype = float_dtype(name, dtype)
    drawn = program(key, *params, shape=draw_shape(name, shape, *params),
                    dtype=at_least_32_bits(dtype))
    return constrain(name, narrowed(drawn, dtype), out_sharding)


@fused(static=("shape", "dtype"))
def _pareto(key: Array, b: ArrayLike, *, shape: Dims, dtype: DType) -> Array:
    return exp(div(exponential_of(typed(key), shape, dtype), parameter(b, dtype, shape)))


def pareto(key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None,
           *, out_sharding: ShardingLike = None) -> Array:
    """Pareto numbers, density b / xᵇ⁺¹ for x >= 1.

    Args:
      b: > 0; an array that broadcasts to the shape.
      shape: the result's shape; None is that of `b`.

    Returns:
      An array of that shape and dtype; of mean b / (b - 1) where b > 1. NumPy's start at 0.

    >>> x = random.pareto(random.key(0), 3.0, (10000,))
    >>> print(x.min().round(1), x.mean().round(1))
    1.0 1.5
    """
    return drawn_with("pareto", _pareto, key, (b,), shape, dtype, out_sharding)


@fused(static=("shape", "dtype"))
def _power(key: Array, a: ArrayLike, *, shape: Dims, dtype: DType) -> Array:
    u = sub(1.0, unit(typed(key), shape, dtype))
    return transcendental.pow(u, div(1.0, parameter(a, dtype, shape)))


def power(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None,
          *, out_sharding: ShardingLike = None) -> Array:
    """Numbers in (0, 1] of density a x ** (a-1): uniform ones to the power 1/a.

    Args:
      a: > 0; an array that broadcasts to the shape.
      shape: the result's shape; None is that of `a`.

    Returns:
      An array of that shape and dtype, differentiable in `a`; of mean a / (a + 1).

    >>> x = random.power(random.key(0), 4.0, (10000,))
    >>> print(x.mean().round(1))
    0.8
    """
    return drawn_with("power", _power, key, (a,), shape, dtype, out_sharding)


@fused(static=("shape", "dtype"))
def _rayleigh(key: Array, scale: ArrayLike, *, shape: Dims, dtype: DType) -> Array:
    log = transcendental.log(positive_unit(typed(key), shape, dtype))
    return mul(sqrt(mul(log, -2.0)), parameter(scale, dtype, shape))


def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Shape | None = None,
             dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Rayleigh numbers times `scale`: lengths of normal vectors in two dimensions.

    Args:
      scale: the standard deviation of the vectors' parts; an array that broadcasts to the shape.
      shape: the result's shape; None is that of `scale`.

    Returns:
      An array of that shape and dtype; the mean of the squares is 2 scale².

    >>> x = random.rayleigh(random.key(0), 2.0, (10000,))
    >>> print((x * x).mean().round())
    8.0
    """
    return drawn_with("rayleigh", _rayleigh, key, (scale,), shape, dtype, out_sharding)


@fused(static=("shape", "dtype"))
def _lognormal(key: Array, sigma: Array, *, shape: Dims, dtype: DTypeLike) -> Any:
    return exp(mul(standard_normal(typed(key), shape, dtype),
                   parameter(sigma, dtype, shape)))


def lognormal(key: ArrayLike, sigma: ArrayLike = 1.0, shape: Shape | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """exp of normal numbers of mean 0 and standard deviation `sigma`.

    Args:
      sigma: > 0; an array that broadcasts to the shape.
      shape: the result's shape; None is that of `sigma`.

    Returns:
      An array of that shape and dtype, positive; its median is 1, its mean exp(sigma² / 2).

    >>> x = random.lognormal(random.key(0), 0.5, (10000,))
    >>> print(x.mean().round(1))
    1.1
    """
    return drawn_with("lognormal", _lognormal, key, (sigma,), shape, dtype, out_sharding)


@fused(static=("shape", "dtype"))
def _triangular(key: Array, left: ArrayLike, mode: ArrayLike, right: ArrayLike, *, shape: Dims,
                dtype: DType) -> Array:
    left, mode, right = (parameter(p, dtype, shape) for p in (left, mode, right))
    u = unit(typed(key), shape, dtype)
    width, rising, falling = sub(right, left), sub(mode, left), sub(right, mode)
    low = add(left, sqrt(mul(mul(u, width), rising)))
    high = sub(right, sqrt(mul(mul(sub(1.0, u), width), falling)))
    return select(lt(u, div(rising, width)), low, high)


def triangular(key: ArrayLike, left: ArrayLike, mode: ArrayLike, right: ArrayLike,
               shape: Shape | None = None, dtype: DTypeLike | None = None, *,
               out_sharding: ShardingLike = None) -> Array:
    """Numbers of triangular density over [left, right] with its peak at `mode`.

    Args:
      left, mode, right: in ascending order; arrays that broadcast to the shape.
      shape: the result's shape; None is that of the parameters.

    Returns:
      An array of that shape and dtype; of mean (left + mode + right) / 3.

    >>> x = random.triangular(random.key(0), 0.0, 1.0, 5.0, (10000,))
    >>> print(x.mean().round(1))
    2.0
    """
    return drawn_with("triangular", _triangular, key, (left, mode, right), shape, dtype,
                      out_sharding)


@fused(static=("shape", "dtype"))
def _wald(key: Array, mean: Array, *, shape: Dims, dtype: DTypeLike) -> Any:
    """Michael, Schucany and Haas (1976): the smaller root, or its mirror, by a coin."""
    k1, k2 = subkeys(typed(key))
    mean = parameter(mean, dtype, shape)
    v, z = standard_normal(k1, shape, dtype), unit(k2, shape, dtype)
    y = mul(v, v)
    # Where mean y is large the roots' difference cancels: there the smaller is a quotient.
    w = mul(mean, y)
    large = gt(w, 2.0 ** -5 / math.sqrt(finfo(dtype).eps))
    some = select(large, full_like(mean, 1.0), mean)
    mean2 = mul(some, some)
    root = sqrt(add(mul(mul(4.0, some), y), mul(mean2, mul(y, y))))
    x = sub(add(some, div(mul(mean2, y), 2.0)), mul(div(some, 2.0), root))
    w = select(large, w, full_like(w, 1.0))
    ratio = add(add(1.0, mul(0.5, w)), sqrt(mul(w, add(1.0, mul(0.25, w)))))   # larger root : mean
    x = select(large, div(mean, ratio), x)
    larger = select(large, mul(mean, ratio), div(mean2, x))
    return select(le(z, div(mean, add(mean, x))), x, larger)


def wald(key: ArrayLike, mean: ArrayLike, shape: Shape | None = None,
         dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Wald (inverse Gaussian) numbers of the given mean and scale 1.

    Args:
      mean: > 0; an array that broadcasts to the shape.
      shape: the result's shape; None is that of `mean`.

    Returns:
      An array of that shape and dtype, positive; of variance mean³.

    >>> x = random.wald(random.key(0), 0.5, (10000,))
    >>> print(x.mean().round(1))
    0.5
    """
    return drawn_with("wald", _wald, key, (mean,), shape, dtype, out_sharding)


complete_docstrings(globals(), {
    "key": "a single key.",
    "shape": "the result's shape.",
    "dtype": "a float dtype; None is the default one.",
    "out_sharding": "where the result is; see `lax.with_sharding_constraint`.",
}, example="from olympus import random")
