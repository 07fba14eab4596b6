"""Samplers of continuous distributions: each is a function of uniform or normal numbers.

Those that take more than `sampler` settles check their arguments themselves; their program, of the
same name with an underscore, is compiled once per shape and dtype.
"""

# Annotations are for callers; `sampler.py` describes the arguments of a sampler's body.
# pyright: reportArgumentType=false

from __future__ import annotations

import math

import numpy as np

from ..base.config import high_dynamic_range_gumbel
from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax import arithmetic, transcendental
from ..lax.accuracy import AccuracyMode
from ..lax.arithmetic import nextafter, sign
from ..lax.barriers import stop_gradient
from ..lax.bits import clz, shift_left, shift_right_logical
from ..lax.comparison import clamp
from ..lax.convert import bitcast_convert_type, convert_element_type
from ..lax.creation import full_like
from ..lax.shape import reduce_sum
from ..lax.sharding import constrain
from ..lax.slicing import index_in_dim
from ..lax.special import classical as special
from ..lax.transcendental import exp, log1p, sqrt, tan
from ..numpy.conditions import where
from ..types import dtypes
from ..types.shape import canonical_shape
from ..types.sharding import ShardingLike
from .arguments import F32, draw_shape, float_dtype, parameter
from .keys import random_bits_p, random_split_p, typed, typed_scalar
from .sampler import at_least_32_bits, sampler, typed_aval

Dims = tuple[int, ...]
U32 = dtypes.as_dtype("uint32")
finfo = dtypes.finfo


def subkeys(key: Array, num: int = 2) -> list[Array]:
    """New keys of a typed key, one by one."""
    keys = random_split_p.bind(key, shape=(num,))
    return [index_in_dim(keys, i, 0, False) for i in range(num)]


def bits(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
         out_sharding: ShardingLike = None) -> Array:
    """Uniformly random bits.

    Args: dtype: an unsigned integer dtype; None is uint32, or uint64 with x64 on.
    Returns: An array of that shape and dtype, each bit 0 or 1 with equal probability.

    >>> print(olympus.random.bits(olympus.random.key(0), (4,), "uint8"))
    [167 146  40  53]
    """
    dtype = (dtypes.canonical_dtype("uint64") if dtype is None
             else dtypes.requested_dtype("bits", dtype))
    if dtypes.scalar_kind(dtype) != "u":
        raise ValueError(f"bits: dtype {dtypes.long_name(dtype)} given; an unsigned integer dtype "
                         "is required; convert the result with astype.")
    drawn = random_bits_p.bind(typed_scalar("bits", key), shape=canonical_shape(shape, "bits"),
                               bit_width=dtypes.itemsize_bits(dtype))
    return drawn if out_sharding is None else constrain("bits", drawn, out_sharding)


def unit(key: ArrayLike, shape: Dims, dtype: DType) -> Array:
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
    words = shift_right_logical(words, drawn - info.nmant) | one
    return bitcast_convert_type(words, dtype) - 1.0


def positive_unit(key: ArrayLike, shape: Dims, dtype: DType) -> Array:
    """`unit`, and in place of 0, which stands for a whole step of the grid, half a step."""
    u = unit(key, shape, dtype)
    return where(u == 0.0, full_like(u, 0.5 * float(finfo(dtype).eps)), u)


def between(key: Array, low: ArrayLike, high: ArrayLike, shape: Dims, dtype: DType) -> Array:
    """Floats in [low, high). The key is typed; the bounds are arrays or numbers."""
    low, high = parameter(low, dtype, shape), parameter(high, dtype, shape)
    return arithmetic.max(low, unit(key, shape, dtype) * (high - low) + low)


def log_rest(x: Array) -> Array:
    """log(1 - x) by XLA's own implementation: its last places are JAX's."""
    return log1p(-x, accuracy=AccuracyMode.DEFAULT)


@fused(static=("shape", "dtype"))
def _unit(key: ArrayLike, *, shape: Dims, dtype: DType) -> Array:
    return unit(typed(key), shape, dtype)


@fused(static=("shape", "dtype"))
def _between(key: ArrayLike, low: ArrayLike, high: ArrayLike, *, shape: Dims, dtype: DType
             ) -> Array:
    low, high = parameter(low, dtype, shape), parameter(high, dtype, shape)
    u, span = unit(typed(key), shape, dtype), high - low
    finite = arithmetic.abs(span) < math.inf
    near = u * where(finite, span, 0.0) + low
    far = u * high + (1.0 - u) * low      # whose distance the dtype does not hold
    return arithmetic.max(low, where(finite, near, far))


def uniform(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None,
            minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0, *, out_sharding: ShardingLike = None
           ) -> Array:
    """Floats uniform in [minval, maxval).

    Args: minval, maxval: bounds; arrays that broadcast to the shape.
    Returns: An array of that shape and dtype, with as many random bits as the dtype's mantissa has.

    >>> print(olympus.random.uniform(olympus.random.key(0), (3,)).round(2))
    [0.95 0.98 0.33]
    """
    typed_aval(key, "uniform")
    dtype = float_dtype("uniform", dtype)
    shape = draw_shape("uniform", shape, minval, maxval)
    if type(minval) is type(maxval) is float and (minval, maxval) == (0.0, 1.0):
        drawn = _unit(key, shape=shape, dtype=dtype)
        return drawn if out_sharding is None else constrain("uniform", drawn, out_sharding)
    drawn = _between(key, minval, maxval, shape=shape, dtype=dtype)
    return drawn if out_sharding is None else constrain("uniform", drawn, out_sharding)


def standard_normal(key: Array, shape: Dims, dtype: DType) -> Array:
    """Normal floats or complex numbers of variance 1. The key is typed."""
    if dtypes.is_complex(dtype):
        k1, k2 = subkeys(key)
        part = dtypes.to_real_dtype(dtype)
        z = arithmetic.complex(standard_normal(k1, shape, part), standard_normal(k2, shape, part))
        return z / math.sqrt(2)
    low = np.nextafter(np.array(-1, dtype), np.array(0, dtype), dtype=dtype)
    u = between(key, low, np.array(1, dtype), shape, dtype)
    return float(np.array(np.sqrt(2), dtype)) * special.erf_inv(u)


@fused(static=("shape", "dtype"))
def _normal(key: ArrayLike, *, shape: Dims, dtype: DType) -> Array:
    return standard_normal(typed(key), shape, dtype)


def normal(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
           out_sharding: ShardingLike = None) -> Array:
    """Normal numbers of mean 0 and variance 1, by the inverse of erf.

    Args: dtype: a float or complex dtype; None is the default float.
    Returns: An array of that shape and dtype; complex numbers have parts of variance 1/2.

    >>> print(olympus.random.normal(olympus.random.key(0), (2, 3)).round(2))
    [[ 1.62  2.03 -0.43]
     [-0.08  0.18 -0.97]]
    """
    typed_aval(key, "normal")
    drawn = _normal(key, shape=canonical_shape(shape, "normal"),
                    dtype=float_dtype("normal", dtype, "fc"))
    return drawn if out_sharding is None else constrain("normal", drawn, out_sharding)


# From where on, by the bits of the mantissa, an interval on one side of 0 is in the tail: erf has
# too few values there for the law.
_TAILS = {7: 1.5, 10: 2.0, 23: 3.75, 52: 6.0}


@fused(static=("shape", "dtype", "tails"))
def _truncated_normal(key: ArrayLike, lower: ArrayLike, upper: ArrayLike, *, shape: Dims,
                      dtype: DType, tails: bool) -> Array:
    """The inverse of the distribution function, kept inside of the open interval."""
    lower, upper = parameter(lower, dtype, shape), parameter(upper, dtype, shape)
    u, root = unit(typed(key), shape, dtype), float(np.array(np.sqrt(2), dtype))

    def central(lower: ArrayLike, upper: ArrayLike) -> Array:
        low, high = special.erf(lower / root), special.erf(upper / root)
        v = arithmetic.max(low, u * (high - low) + low)
        return root * special.erf_inv(v)

    if tails:
        begin = _tail_from(dtype)
        right, left = lower >= begin, upper <= -begin
        tail = right | left
        one = full_like(u, 1.0)
        near, far = where(right, lower, -upper), where(right, upper, -lower)
        near, far = where(tail, near, one), where(tail, far, 2.0)
        beyond = _of_tail(u, near, far)
        out = central(where(tail, -one, lower), where(tail, one, upper))
        out = where(tail, where(right, beyond, -beyond), out)
    else:
        out = central(lower, upper)
    # The limits bind where rounding would leave the interval: they have no derivative.
    first = nextafter(stop_gradient(lower), parameter(math.inf, dtype, shape))
    last = nextafter(stop_gradient(upper), parameter(-math.inf, dtype, shape))
    return clamp(first, out, last)


def _tail_from(dtype: DType) -> float:
    return _TAILS.get(finfo(dtype).nmant, 1.0)


def _above(x: Array) -> Array:
    """The normal probability above x over the density there, for x >= 1.5: Laplace's fraction."""
    value = x
    for k in range(12, 0, -1):
        value = x + float(k) / value
    return 1.0 / value


def _of_tail(u: Array, near: Array, far: Array) -> Array:
    """Normal numbers between two positive bounds: Newton's method on the logarithm of the tail."""
    dtype = typeof(u).dtype
    u, near, far = (convert_element_type(x, at_least_32_bits(dtype)) for x in (u, near, far))
    endless, first = far == math.inf, _above(near)
    last = where(endless, near + 1.0, far)
    most = transcendental.log(_above(last) / first) - 0.5 * (last - near) * (last + near)
    share = where(endless, -1.0, transcendental.expm1(most))
    level = log1p(u * share)        # of the probability above the result over that above near
    # Begin with the density alone, without the fraction's part.
    root = sqrt(near * near - 2.0 * level)
    moved = -2.0 * level / (root + near)
    for _ in range(4):
        here = _above(near + moved)
        lack = moved * (near + 0.5 * moved) - transcendental.log(here / first) + level
        moved = moved - lack * here
    return convert_element_type(near + moved, dtype)


def truncated_normal(key: ArrayLike, lower: ArrayLike, upper: ArrayLike, shape: Shape | None = None,
                     dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Standard normal numbers given that they lie in (lower, upper).

    Args:
      lower, upper: bounds; arrays that broadcast to the shape.
      shape: the result's shape; None is the bounds'.
    Returns: An array of that shape and dtype, differentiable in the bounds.

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
    return drawn if out_sharding is None else constrain("truncated_normal", drawn, out_sharding)


# Without parameters ------------------------------------------------------------------------------

def exponential_of(key: Array, shape: Dims, dtype: DType) -> Array:
    """Exponential numbers of mean 1. The key is typed."""
    return -log_rest(unit(key, shape, dtype))


@sampler()
def exponential(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
                out_sharding: ShardingLike = None) -> Array:
    """Exponential numbers of mean 1, density exp(-x) for x >= 0.

    Returns: An array of that shape and dtype; divide it by a rate for another mean.

    >>> x = random.exponential(random.key(0), (10000,))
    >>> print(x.mean().round(1), x.min() >= 0)
    1.0 True
    """
    return exponential_of(key, shape, dtype)


def gumbel_of(key: Array, shape: Dims, dtype: DType, mode: str) -> Array:
    """Gumbel numbers, -log(-log(u)). The key is typed.

    In mode "high" u counts from the end where numbers are large, and a second draw continues its
    bits there, so that the tail is not cut off.
    """
    info = finfo(dtype)
    if mode == "highest" and dtype == F32:
        return _gumbel_of_64_bits(key, shape)
    if mode == "low":
        u = between(key, np.array(info.tiny, dtype), np.array(1, dtype), shape, dtype)
        return -transcendental.log(-transcendental.log(u))
    pair = unit(key, (2, *shape), dtype)
    high, low = (index_in_dim(pair, i, 0, False) for i in (0, 1))
    fine = low * 2.0 ** -info.nmant + float(info.tiny)
    u = where(high >= 0.5, high, high + fine)
    return -transcendental.log(-log_rest(u))


def _gumbel_of_64_bits(key: Array, shape: Dims) -> Array:
    """Gumbel numbers from uniform u of 64 bits: the lesser of u and 1-u becomes a float,
    which keeps its first 24 bits.
    """
    pair = random_bits_p.bind(key, bit_width=32, shape=(2, *shape))
    high, low = (index_in_dim(pair, i, 0, False) for i in (0, 1))
    small = high < np.uint32(2**31)
    # 1 - u is the two's complement of both words.
    carry = convert_element_type(low == np.uint32(0), U32)
    high = where(small, high, ~high + carry)
    low = where(small, low, -low)
    # The first 24 bits from the first one on, which is 1 also where all 64 are 0.
    short = high == np.uint32(0)
    high, low = where(short, low, high), where(short, 0, low)
    lost = clz(high)
    first = shift_left(high, lost) | shift_right_logical(low, np.uint32(32) - lost)
    first = shift_right_logical(first, np.uint32(8)) | np.uint32(2**23)
    lost = lost + where(short, full_like(lost, 32), 0)
    power = shift_left(np.uint32(127 - 24) - lost, np.uint32(23))
    u = convert_element_type(first, F32) * bitcast_convert_type(power, F32)
    return -transcendental.log(-where(small, log_rest(u), transcendental.log(u)))


@fused(static=("shape", "dtype", "mode"))
def _gumbel(key: ArrayLike, *, shape: Dims, dtype: DType, mode: str) -> Array:
    return gumbel_of(typed(key), shape, dtype, mode)


def precision_mode(name: str, mode: str | None, modes: tuple = ("low", "high", "highest")) -> str:
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

    Args: mode: "high" draws twice the bits, for tails beyond 17 (float32); "low" and None do not.
        "highest" draws 64 bits for float32, and all count; it is "high" for other dtypes.
    Returns: An array of that shape and dtype. The place of the largest logit plus Gumbel noise is a
      draw from their softmax, as for `categorical`.

    >>> x = random.gumbel(random.key(0), (10000,))
    >>> print(x.mean().round(1))                    # Euler's constant, 0.577
    0.6
    """
    typed_aval(key, "gumbel")
    drawn = _gumbel(key, shape=canonical_shape(shape, "gumbel"), dtype=float_dtype("gumbel", dtype),
                    mode=precision_mode("gumbel", mode))
    return drawn if out_sharding is None else constrain("gumbel", drawn, out_sharding)


@sampler()
def laplace(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
            out_sharding: ShardingLike = None) -> Array:
    """Laplace numbers, density exp(-|x|) / 2: exponential ones of random sign.

    Returns: An array of that shape and dtype; of mean 0 and variance 2.

    >>> x = random.laplace(random.key(0), (10000,))
    >>> print(abs(x).mean().round(1))
    1.0
    """
    low = np.array(-1 + float(finfo(dtype).epsneg), dtype)
    u = between(key, low, np.array(1, dtype), shape, dtype)
    return sign(u) * log_rest(arithmetic.abs(u))


@sampler()
def logistic(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
             out_sharding: ShardingLike = None) -> Array:
    """Logistic numbers: log(u / (1 - u)) of uniform u, density the derivative of `nn.sigmoid`.

    Returns: An array of that shape and dtype; of mean 0 and variance π²/3.

    >>> x = random.logistic(random.key(0), (10000,))
    >>> print((x > 0).mean().round(1))
    0.5
    """
    low = np.array(finfo(dtype).tiny, dtype)
    u = between(key, low, np.array(1, dtype), shape, dtype)
    return transcendental.log(u) - log_rest(u)


@sampler()
def cauchy(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
           out_sharding: ShardingLike = None) -> Array:
    """Cauchy numbers, density 1 / (π (1 + x²)): they have no mean.

    >>> x = random.cauchy(random.key(0), (10000,))
    >>> print((abs(x) < 1).mean().round(2))         # half of the weight
    0.5
    """
    low = np.array(finfo(dtype).eps, dtype)
    u = between(key, low, np.array(1, dtype), shape, dtype)
    return tan(float(np.array(np.pi, dtype)) * (u - 0.5))


def maxwell_of(key: Array, shape: Dims, dtype: DType) -> Array:
    """Lengths of normal vectors in three dimensions. The key is typed."""
    x = standard_normal(key, (*shape, 3), dtype)
    wide = dtypes.as_dtype("float32") if dtypes.itemsize_bits(dtype) < 32 else dtype
    total = reduce_sum(convert_element_type(x * x, wide), (len(shape),))
    return sqrt(convert_element_type(total, dtype))


@sampler()
def maxwell(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
            out_sharding: ShardingLike = None) -> Array:
    """Maxwell numbers, density sqrt(2/π) x² exp(-x² / 2): lengths of normal vectors in space.

    Returns: An array of that shape and dtype; the mean of the squares is 3.

    >>> x = random.maxwell(random.key(0), (10000,))
    >>> print((x * x).mean().round(1))
    3.0
    """
    return maxwell_of(key, shape, dtype)


# With parameters ---------------------------------------------------------------------------------

def rademacher_signs(key: ArrayLike, shape: Dims, dtype: DType) -> Array:
    """-1 or 1 with equal probability. The key is typed."""
    heads = unit(key, shape, dtypes.default_float()) < 0.5
    return convert_element_type(heads, dtype) * 2 - 1


@fused(static=("shape", "dtype"))
def _double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, *, shape: Dims,
                          dtype: DType) -> Array:
    k1, k2 = subkeys(typed(key))
    size = rademacher_signs(k2, shape, dtype) * maxwell_of(k1, shape, dtype)
    return size * parameter(scale, dtype, shape) + parameter(loc, dtype, shape)


def double_sided_maxwell(key: ArrayLike, loc: ArrayLike, scale: ArrayLike, shape: Shape = (),
                         dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None
                         ) -> Array:
    """Maxwell numbers of random sign, times `scale`, plus `loc`.

    Args:
      loc, scale: where the density is 0, and its width; arrays that broadcast together.
      shape: the shape of draws for each of the parameters.
    Returns: An array of shape (*shape, *shape of the parameters).

    >>> print(random.double_sided_maxwell(random.key(0), onp.zeros(2), 1.0, (2,)).round(2))
    [[ 1.55  1.57]
     [-2.08  2.29]]
    """
    typed_aval(key, "double_sided_maxwell")
    shape = (*canonical_shape(shape, "double_sided_maxwell"),
             *draw_shape("double_sided_maxwell", None, loc, scale))
    drawn = _double_sided_maxwell(key, loc, scale, shape=shape,
                                  dtype=float_dtype("double_sided_maxwell", dtype))
    return drawn if out_sharding is None else constrain("double_sided_maxwell", drawn, out_sharding)


@sampler(wide=True)
def weibull_min(key: ArrayLike, scale: ArrayLike, concentration: ArrayLike, shape: Shape = (),
                dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Weibull numbers: scale * e ** (1 / concentration) for exponential e.

    Args: scale, concentration: > 0; arrays that broadcast to the shape.

    Returns:
      An array of that shape and dtype; at concentration 1 exponential numbers of mean `scale`.

    >>> x = random.weibull_min(random.key(0), 2.0, 1.0, (10000,))
    >>> print(x.mean().round(1))
    2.0
    """
    power = 1.0 / parameter(concentration, dtype, shape)
    e = exponential_of(key, shape, dtype)
    return transcendental.pow(e, power) * parameter(scale, dtype, shape)


@sampler(wide=True)
def pareto(key: ArrayLike, b: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None,
           *, out_sharding: ShardingLike = None) -> Array:
    """Pareto numbers, density b / xᵇ⁺¹ for x >= 1.

    Args: b: > 0; an array that broadcasts to the shape.
    Returns: An array of that shape and dtype; of mean b / (b - 1) where b > 1. NumPy's start at 0.

    >>> x = random.pareto(random.key(0), 3.0, (10000,))
    >>> print(x.min().round(1), x.mean().round(1))
    1.0 1.5
    """
    return exp(exponential_of(key, shape, dtype) / parameter(b, dtype, shape))


@sampler(wide=True)
def power(key: ArrayLike, a: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None,
          *, out_sharding: ShardingLike = None) -> Array:
    """Numbers in (0, 1] of density a x ** (a-1): uniform ones to the power 1/a.

    Args: a: > 0; an array that broadcasts to the shape.
    Returns: An array of that shape and dtype, differentiable in `a`; of mean a / (a + 1).

    >>> x = random.power(random.key(0), 4.0, (10000,))
    >>> print(x.mean().round(1))
    0.8
    """
    u = 1.0 - unit(key, shape, dtype)
    return transcendental.pow(u, 1.0 / parameter(a, dtype, shape))


@sampler(wide=True)
def rayleigh(key: ArrayLike, scale: ArrayLike, shape: Shape | None = None,
             dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Rayleigh numbers times `scale`: lengths of normal vectors in two dimensions.

    Args:
      scale: the standard deviation of the vectors' parts; an array that broadcasts to the shape.
    Returns: An array of that shape and dtype; the mean of the squares is 2 scale².

    >>> x = random.rayleigh(random.key(0), 2.0, (10000,))
    >>> print((x * x).mean().round())
    8.0
    """
    log = transcendental.log(positive_unit(key, shape, dtype))
    return sqrt(log * -2.0) * parameter(scale, dtype, shape)


@sampler(wide=True)
def lognormal(key: ArrayLike, sigma: ArrayLike = 1.0, shape: Shape | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """exp of normal numbers of mean 0 and standard deviation `sigma`.

    Args: sigma: > 0; an array that broadcasts to the shape.
    Returns: An array of that shape and dtype, positive; its median is 1, its mean exp(sigma² / 2).

    >>> x = random.lognormal(random.key(0), 0.5, (10000,))
    >>> print(x.mean().round(1))
    1.1
    """
    return exp(standard_normal(key, shape, dtype) * parameter(sigma, dtype, shape))


@sampler(wide=True)
def triangular(key: ArrayLike, left: ArrayLike, mode: ArrayLike, right: ArrayLike,
               shape: Shape | None = None, dtype: DTypeLike | None = None, *,
               out_sharding: ShardingLike = None) -> Array:
    """Numbers of triangular density over [left, right] with its peak at `mode`.

    Args: left, mode, right: in ascending order; arrays that broadcast to the shape.
    Returns: An array of that shape and dtype; of mean (left + mode + right) / 3.

    >>> x = random.triangular(random.key(0), 0.0, 1.0, 5.0, (10000,))
    >>> print(x.mean().round(1))
    2.0
    """
    left, mode, right = (parameter(p, dtype, shape) for p in (left, mode, right))
    u = unit(key, shape, dtype)
    width, rising, falling = right - left, mode - left, right - mode
    low = left + sqrt(u * width * rising)
    high = right - sqrt((1.0 - u) * width * falling)
    return where(u < rising / width, low, high)


@sampler(wide=True)
def wald(key: ArrayLike, mean: ArrayLike, shape: Shape | None = None,
         dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Wald (inverse Gaussian) numbers of the given mean and scale 1.

    Args: mean: > 0; an array that broadcasts to the shape.
    Returns: An array of that shape and dtype, positive; of variance mean³.

    >>> x = random.wald(random.key(0), 0.5, (10000,))
    >>> print(x.mean().round(1))
    0.5
    """
    # Michael, Schucany and Haas (1976): the smaller root, or its mirror, by a coin.
    k1, k2 = subkeys(key)
    mean = parameter(mean, dtype, shape)
    v, z = standard_normal(k1, shape, dtype), unit(k2, shape, dtype)
    y = v * v
    # Where mean y is large the roots' difference cancels: there the smaller is a quotient.
    w = mean * y
    large = w > 2.0 ** -5 / math.sqrt(finfo(dtype).eps)
    some = where(large, 1.0, mean)
    mean2 = some * some
    root = sqrt(4.0 * some * y + mean2 * (y * y))
    x = some + mean2 * y / 2.0 - some / 2.0 * root
    w = where(large, w, 1.0)
    ratio = 1.0 + 0.5 * w + sqrt(w * (1.0 + 0.25 * w))   # larger root : mean
    x = where(large, mean / ratio, x)
    larger = where(large, mean * ratio, mean2 / x)
    return where(z <= mean / (mean + x), x, larger)


complete_docstrings(globals(), {
    "key": "a single key.",
    "shape": "the result's shape.",
    "dtype": "a float dtype; None is the default one.",
})
