"""Samplers of integers, signs, choices and orders."""

# Annotations are for callers; `sampler.py` describes the arguments of a sampler's body.
# pyright: reportArgumentType=false

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from ..control_flow.branches import cond
from ..control_flow.scan import scan
from ..core.ir import Literal
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax import arithmetic
from ..lax.arithmetic import floor, rem
from ..lax.comparison import gt
from ..lax.convert import convert_element_type
from ..lax.creation import broadcasted_iota, full, full_like, iota
from ..lax.cumulative import cummax, cumsum
from ..lax.reduce import argmax, reduce_and, reduce_or
from ..lax.shape import reshape
from ..lax.sharding import constrain
from ..lax.slicing import concatenate, index_in_dim, slice_in_dim
from ..lax.sort import placed_p, sort_key_val, top_k
from ..lax.transcendental import log
from ..numpy import promote
from ..numpy.conditions import where
from ..numpy.indexing import take, take_along_axis
from ..numpy.manipulation import moveaxis
from ..numpy.sorting import searchsorted
from ..types import dtypes
from ..types.avals import make_aval
from ..types.shape import (
    SymbolicDim, canonical_axis, canonical_shape, known_less, less, prod, sequence,
)
from ..types.sharding import ShardingLike
from .arguments import draw_shape, parameter
from .continuous import (
    gumbel_of, log_rest, positive_unit, precision_mode, rademacher_signs, subkeys, unit,
)
from .keys import random_bits_p, typed
from .sampler import at_least_32_bits, sampler, typed_aval

Dims = tuple[int, ...]
U32 = dtypes.as_dtype("uint32")


@fused(static=("shape", "mode"))
def _bernoulli(key: ArrayLike, p: ArrayLike, *, shape: Dims, mode: str) -> Array:
    dtype = at_least_32_bits(typeof(p).dtype)
    p = parameter(p, dtype, shape)
    if mode == "low":
        return unit(typed(key), shape, dtype) < p
    pair = unit(typed(key), (2, *shape), dtype)
    high, low = (index_in_dim(pair, i, 0, False) for i in (0, 1))
    return low * 2.0 ** -dtypes.finfo(dtype).nmant < p - high


def bernoulli(key: ArrayLike, p: ArrayLike = 0.5, shape: Shape | None = None, mode: str = "low", *,
              out_sharding: ShardingLike = None) -> Array:
    """Booleans that are True with probability `p`.

    Args:
      p: float; an array that broadcasts to the shape.
      shape: the result's shape; None is `p`'s.
      mode: "high" draws twice the bits, so that small p are met more exactly than 2^-23.
    Returns: A bool array. It has no derivative in `p`.

    >>> print(olympus.random.bernoulli(olympus.random.key(0), 0.3, (8,)))
    [False False False False False  True False False]
    """
    typed_aval(key, "bernoulli")
    p = promote.plain(promote.operand("bernoulli", p))
    if not dtypes.is_floating(typeof(p).dtype):
        raise TypeError(f"bernoulli: p {typeof(p)} given; a float dtype is required; convert it "
                        "with astype.")
    drawn = _bernoulli(key, p, shape=draw_shape("bernoulli", shape, p),
                       mode=precision_mode("bernoulli", mode, ("low", "high")))
    return drawn if out_sharding is None else constrain("bernoulli", drawn, out_sharding)


@fused(static=("shape", "dtype"))
def _rademacher(key: ArrayLike, *, shape: Dims, dtype: DType) -> Array:
    return rademacher_signs(typed(key), shape, dtype)


def rademacher(key: ArrayLike, shape: Shape = (), dtype: DTypeLike | None = None, *,
               out_sharding: ShardingLike = None) -> Array:
    """-1 or 1 with equal probability.

    Args:
      shape: the result's shape.
      dtype: a numeric dtype; None is the default int.

    >>> x = random.rademacher(random.key(0), (1000,), "int8")
    >>> print(x.min(), x.max(), x.dtype)
    -1 1 int8
    """
    typed_aval(key, "rademacher")
    dtype = dtypes.default_int() if dtype is None else dtypes.requested_dtype("rademacher", dtype)
    drawn = _rademacher(key, shape=canonical_shape(shape, "rademacher"), dtype=dtype)
    return drawn if out_sharding is None else constrain("rademacher", drawn, out_sharding)


# Integers ----------------------------------------------------------------------------------------

def _bound(name: str, x: ArrayLike, dtype: DType, beyond: int = 0) -> Array:
    """A bound as an integer: Python ints are limited to the dtype, so that none wraps.

    OverflowError for what neither the dtype nor the default int holds, `beyond` it at most.
    """
    if isinstance(x, (int, np.integer)) and not isinstance(x, bool):
        least, most = dtypes.integer_range(dtype)
        low, high = dtypes.integer_range(dtypes.default_int())
        low, high = min(least, low), max(most, high) + beyond
        if not low <= x <= high:
            raise OverflowError(f"{name}: a bound {x} given for dtype {dtypes.long_name(dtype)}; "
                                f"numbers in [{low}, {high}] are required.")
        return Literal(max(least, min(int(x), most)), make_aval((), dtype))
    x = promote.plain(promote.operand(name, x))
    if not dtypes.is_integer(typeof(x).dtype):
        x = promote.convert(x, dtypes.default_int())
    return x


def _limited(x: ArrayLike, dtype: DType, shape: Dims
             ) -> tuple[Array, None] | tuple[Array, Array | None]:
    """(integers limited to a dtype's range and converted, whether they were above it, or None)."""
    own = typeof(x).dtype
    x = parameter(x, own, shape)
    if own == dtype:
        return x, None
    limits, outer = dtypes.iinfo(dtype), dtypes.iinfo(own)
    above = None
    if int(outer.max) > int(limits.max):
        above = x > int(limits.max)
        x = arithmetic.min(x, full_like(x, int(limits.max)))
    if int(outer.min) < int(limits.min):
        x = arithmetic.max(x, full_like(x, int(limits.min)))
    return convert_element_type(x, dtype), above


@fused(static=("shape", "dtype", "beyond"))
def _randint(key: ArrayLike, minval: ArrayLike, maxval: ArrayLike, *, shape: Dims, dtype: DType,
             beyond: bool) -> Array:
    """Twice as many bits as needed, modulo the span: the bias is then below 2^-width.

    With a and b two draws, (a * 2^width + b) % span is computed in the width from remainders.
    Dtypes of 8 and 16 bits are computed in 32.
    """
    (low, _), (high, above) = _limited(minval, dtype, shape), _limited(maxval, dtype, shape)
    width = max(32, dtypes.itemsize_bits(dtype))
    unsigned = dtypes.as_dtype(f"uint{width}")
    a, b = (random_bits_p.bind(k, bit_width=width, shape=shape) for k in subkeys(typed(key)))
    span = convert_element_type(high, unsigned) - convert_element_type(low, unsigned)
    span = where(high <= low, 1, span)
    if beyond or above is not None:     # maxval is above the dtype; a span of 0 means 2^width
        wider = high > low if beyond or above is None else above & (high > low)
        span = where(wider, span + 1, span)
    factor = rem(full_like(span, 2 ** (width // 2)), span)
    factor = rem(factor * factor, span)
    offset = rem(rem(a, span) * factor + rem(b, span), span)
    return low + convert_element_type(offset, dtype)


def randint(key: ArrayLike, shape: Shape, minval: ArrayLike, maxval: ArrayLike,
            dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """Integers uniform in [minval, maxval).

    Args:
      shape: the result's shape.
      minval, maxval: integer bounds; arrays that broadcast to the shape. Bounds outside of the
        dtype's range are limited to it; where maxval is not above minval, the result is minval.
        OverflowError for Python ints that neither the dtype nor the default one holds.
      dtype: an integer dtype; None is the default one.

    >>> print(olympus.random.randint(olympus.random.key(0), (5,), 0, 10))
    [9 0 2 3 1]
    """
    typed_aval(key, "randint")
    dtype = dtypes.default_int() if dtype is None else dtypes.requested_dtype("randint", dtype)
    if not dtypes.is_integer(dtype):
        raise TypeError(f"randint: dtype {dtypes.long_name(dtype)} given; an integer dtype is "
                        "required; convert the result with astype.")
    shape = draw_shape("randint", shape, minval, maxval)
    beyond = isinstance(maxval, (int, np.integer)) and maxval > dtypes.integer_range(dtype)[1]
    drawn = _randint(key, _bound("randint", minval, dtype), _bound("randint", maxval, dtype, 1),
                     shape=shape, dtype=dtype, beyond=bool(beyond))
    return drawn if out_sharding is None else constrain("randint", drawn, out_sharding)


@sampler(counts=True)
def geometric(key: ArrayLike, p: ArrayLike, shape: Shape | None = None,
              dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None) -> Array:
    """The numbers of trials up to and including the first success, each of probability `p`.

    Args: p: in (0, 1]; an array that broadcasts to the shape.
    Returns: An array of that shape and dtype, of mean 1 / p.

    >>> x = random.geometric(random.key(0), 0.25, (10000,))
    >>> print(x.min(), x.mean().round(1))
    1 4.0
    """
    odds = promote.plain(promote.operand("geometric", p))
    real = at_least_32_bits(dtypes.to_inexact_dtype(typeof(odds).dtype))
    p = parameter(odds, real, shape)
    u = positive_unit(key, shape, real)
    count = floor(log(u) / log_rest(p))
    return convert_element_type(count + 1.0, dtype)


# Orders ------------------------------------------------------------------------------------------

# Up to these sizes 0, 1 and 2 rounds suffice: in 3 log(n) / log(2^32) equal words do not matter.
_ROUNDS = (1, 1625, 2642245)
# Draws of at most this part of the elements are not taken from a whole permutation.
_FEW = 64


def _shuffled(key: Array, x: Any, axis: int) -> Array:
    """Sort by random words, in as many rounds as the number of elements asks for."""
    size = prod(typeof(x).shape)
    for most in _ROUNDS:
        if known_less(size, most + 1):
            break
        key, sub = subkeys(key)
        words = random_bits_p.bind(sub, bit_width=32, shape=typeof(x).shape)
        shuffled = sort_key_val(words, x, axis)[1]
        # A symbolic size is an operand.
        x = shuffled if known_less(most, size) else where(gt(size, most), shuffled, x)
    return x


@fused(static=("axis",))
def _permuted(key: ArrayLike, x: ArrayLike, *, axis: int) -> Array:
    aval = typeof(x)
    if not dtypes.is_extended(aval.dtype):
        return _shuffled(typed(key), x, axis)
    order = broadcasted_iota(dtypes.default_int(), aval.shape, axis)   # random keys are not sorted
    return take_along_axis(x, _shuffled(typed(key), order, axis), axis)


@fused(static=("axis",))
def _taken(key: ArrayLike, x: ArrayLike, *, axis: int) -> Array:
    order = _shuffled(typed(key), iota(dtypes.default_int(), typeof(x).shape[axis]), 0)
    return take(x, order, axis=axis, mode="clip")


@fused(static=("n",))
def _order(key: ArrayLike, *, n: int) -> Array:
    return _shuffled(typed(key), iota(dtypes.default_int(), n), 0)


@fused(static=("n", "draws"))
def _first(key: ArrayLike, *, n: int, draws: int) -> Array:
    """The first of the permutation that `_shuffled` makes of 0 … n-1, found from its end."""
    def before(indices: Array, key: Array) -> tuple[Array, None]:
        words = random_bits_p.bind(key, bit_width=32, shape=(n,))
        return placed_p.bind(words, indices), None

    # By loops, whose bodies are compiled once.
    keys = scan(lambda key, _: tuple(subkeys(key)), typed(key), None,
                sum(n > most for most in _ROUNDS))[1]
    indices = scan(before, iota(dtypes.as_dtype("int32"), draws), keys, reverse=True)[0]
    return convert_element_type(indices, dtypes.default_int())


def permutation(key: ArrayLike, x: int | ArrayLike, axis: int = 0, independent: bool = False, *,
                out_sharding: ShardingLike = None) -> Array:
    """The slices of an array along an axis in random order.

    Args:
      x: an array; an integer n stands for 0 … n-1.
      independent: whether each vector along the axis has an order of its own.
    Returns: An array like `x`, of shape (n,) for an integer n.

    >>> sorted(olympus.random.permutation(olympus.random.key(0), 4).tolist())
    [0, 1, 2, 3]
    """
    typed_aval(key, "permutation")
    aval = typeof(x)
    axis = canonical_axis(axis, max(aval.ndim, 1), "permutation")
    if not aval.ndim:
        if not dtypes.is_integer(aval.dtype):
            raise TypeError(f"permutation: x {aval} given; an integer, or an array with an axis, "
                            "is required.")
        count: Any = x
        size: Any = count if isinstance(count, SymbolicDim) else int(count)
        drawn = _order(key, n=size)
        return drawn if out_sharding is None else constrain("permutation", drawn, out_sharding)
    if independent or aval.ndim == 1:
        drawn = _permuted(key, x, axis=axis)
        return drawn if out_sharding is None else constrain("permutation", drawn, out_sharding)
    drawn = _taken(key, x, axis=axis)
    return drawn if out_sharding is None else constrain("permutation", drawn, out_sharding)


# Choices -----------------------------------------------------------------------------------------

@fused(static=("shape", "axis", "mode"))
def _categorical(key: ArrayLike, logits: ArrayLike, *, shape: Dims, axis: int, mode: str) -> Array:
    """The largest of logits plus Gumbel noise."""
    aval = typeof(logits)
    prefix = shape[:len(shape) - aval.ndim + 1]
    inner = shape[len(prefix):]
    full_shape = (*prefix, *inner[:axis], aval.shape[axis], *inner[axis:])
    noise = gumbel_of(typed(key), full_shape, aval.dtype, mode)
    logits = parameter(logits, aval.dtype, full_shape)
    return argmax(noise + logits, len(prefix) + axis, dtypes.default_int())


@fused(static=("shape", "axis", "mode"))
def _categorical_distinct(key: ArrayLike, logits: ArrayLike, *, shape: Dims, axis: int, mode: str
                          ) -> Array:
    """The k largest of logits plus Gumbel noise."""
    aval = typeof(logits)
    noisy = logits + gumbel_of(typed(key), aval.shape, aval.dtype, mode)
    k = prod(shape[:len(shape) - aval.ndim + 1])
    indices = top_k(moveaxis(noisy, axis, -1), k)[1]
    return convert_element_type(reshape(moveaxis(indices, -1, 0), shape), dtypes.default_int())


def categorical(key: ArrayLike, logits: ArrayLike, axis: int = -1, shape: Shape | None = None,
                replace: bool = True, mode: str | None = None, *,
                out_sharding: ShardingLike = None) -> Array:
    """Indices along an axis with probabilities softmax(logits).

    Args:
      logits: float[...], unnormalised logarithms of probabilities along `axis`.
      shape: the result's shape, whose last axes are the logits' without `axis`; None is these.
      replace: whether an index may be drawn again along the leading axes of `shape`.
      mode: "high" or "highest" for Gumbel noise of high dynamic range, see `gumbel`.
    Returns: An int32 array (int64 with x64 on).

    >>> logits = onp.log(onp.array([0.2, 0.8, 0.0]))
    >>> print(random.categorical(random.key(0), logits, shape=(8,)))
    [1 1 1 1 1 1 0 0]
    """
    typed_aval(key, "categorical")
    logits = promote.plain(promote.inexact(promote.plain(promote.operand("categorical", logits))))
    logits = promote.convert(logits, at_least_32_bits(typeof(logits).dtype))
    own = typeof(logits).shape
    axis = canonical_axis(axis, len(own), "categorical")
    batch = (*own[:axis], *own[axis + 1:])
    shape = batch if shape is None else canonical_shape(shape, "categorical")
    lead = len(shape) - len(batch)
    if lead < 0 or any(n not in (1, m) for n, m in zip(batch, shape[lead:])):
        raise ValueError(f"categorical: shape {shape} given with logits {typeof(logits)}, axis "
                         f"{axis}; its last axes must be {batch}; append these.")
    mode = precision_mode("categorical", mode)
    if replace:
        drawn = _categorical(key, logits, shape=shape, axis=axis, mode=mode)
        return drawn if out_sharding is None else constrain("categorical", drawn, out_sharding)
    if less(own[axis], prod(shape[:lead])):
        raise ValueError(f"categorical: Number of samples without replacement, "
                         f"{prod(shape[:lead])}, above the {own[axis]} categories; draw "
                         "fewer, or pass replace=True.")
    drawn = _categorical_distinct(key, logits, shape=shape, axis=axis, mode=mode)
    return drawn if out_sharding is None else constrain("categorical", drawn, out_sharding)


@fused(static=("shape",))
def _weighted(key: ArrayLike, p: Array, *, shape: Dims) -> Array:
    """The place of uniform numbers in the running sum of the weights.

    That sum is rounded in blocks: it may fall, and move where a weight is 0. If it does, and a
    weight of 0 is drawn, all places are searched again, in its largest values so far at other
    weights.
    """
    total = cumsum(p, 0)
    u = 1.0 - unit(typed(key), shape, typeof(p).dtype)
    last = index_in_dim(total, -1, 0, False)
    r = parameter(last, typeof(p).dtype, shape) * u
    indices = searchsorted(total, r)
    legal = p > 0.0
    before = concatenate([full_like(total[:1], -np.inf), total[:-1]], 0)
    falls, moves = ~(total >= before), ~(total <= before)
    exact = reduce_and(legal | ~moves, (0,)) & (
        reduce_and(legal, (0,)) | ~reduce_or(falls, (0,)))

    def checked() -> Array:
        possible = take(p, indices, mode="clip") > 0.0
        return cond(reduce_and(possible, tuple(range(len(shape)))), lambda: indices, search_rising)

    def search_rising() -> Array:
        return searchsorted(cummax(where(legal, total, -np.inf), 0), r)

    # A reader of all places besides the result would compute them again: four times the time.
    return convert_element_type(cond(exact, lambda: indices, checked), dtypes.default_int())


@fused(static=("draws", "mode"))
def _weighted_distinct(key: ArrayLike, p: Array, *, draws: int, mode: str) -> Array:
    """The largest of log weights plus Gumbel noise."""
    aval = typeof(p)
    noisy = gumbel_of(typed(key), aval.shape, aval.dtype, mode) + log(p)
    return convert_element_type(top_k(noisy, draws)[1], dtypes.default_int())


def choice(key: ArrayLike, a: int | ArrayLike, shape: Shape = (), replace: bool = True,
           p: ArrayLike | None = None, axis: int = 0, mode: str | None = None, *,
           out_sharding: ShardingLike = None) -> Array:
    """Random slices of an array, with or without replacement.

    Args:
      a: an array, whose slices along `axis` are drawn; an integer n stands for 0 … n-1.
      shape: the shape that takes the place of the axis.
      replace: whether a slice may be drawn again.
      p: float[n], weights of the slices; None is equal weights.
      mode: see `gumbel`; used with weights and without replacement.
    Returns: An array of the dtype of `a`, its shape with `shape` in place of the axis.

    >>> print(olympus.random.choice(olympus.random.key(0), 10, (4,), replace=False))
    [0 1 8 5]
    """
    typed_aval(key, "choice")
    shape = canonical_shape(sequence(shape, "choice", "shape"), "choice")
    mode = precision_mode("choice", mode)
    count = a
    a = promote.plain(promote.operand("choice", a))
    own = typeof(a).shape
    axis = canonical_axis(axis, max(len(own), 1), "choice")
    if not own and not dtypes.is_integer(typeof(a).dtype):
        raise TypeError(f"choice: a {typeof(a)} given; an integer, or an array with an axis, is "
                        "required.")
    n: Any = own[axis] if own else count if isinstance(count, SymbolicDim) else int(
        getattr(a, "raw", a))
    draws = prod(shape)
    result = shape if not own else (*own[:axis], *shape, *own[axis + 1:])
    if draws == 0:
        drawn = full(result, 0, typeof(a).strong().dtype)
    else:
        _check_choice(n, draws, replace)
        if p is None and not replace and type(n) is int and n < 2 ** 31 and (
                draws <= n // _FEW):
            index = _first(key, n=n, draws=draws)
            drawn = take(a, index, axis=axis, mode="clip") if own else index
        elif p is None and not replace:
            order = permutation(key, a if own else n, axis)
            drawn = slice_in_dim(order, 0, draws, 1, axis)
        else:
            index = (randint(key, shape, 0, n) if p is None else
                     _weighted_places(key, _weights(p, n), shape, replace, mode))
            drawn = take(a, index, axis=axis, mode="clip") if own else index
    return constrain("choice", reshape(drawn, result), out_sharding)


def _weighted_places(key: ArrayLike, p: Array, shape: Dims, replace: bool, mode: str) -> Array:
    if replace:
        return _weighted(key, p, shape=shape)
    return reshape(_weighted_distinct(key, p, draws=prod(shape), mode=mode), shape)


def _check_choice(n: int, draws: int, replace: bool) -> None:
    if n <= 0:
        raise ValueError(f"choice: {n} elements given; at least one is required unless no samples "
                         "are taken.")
    if not replace and draws > n:
        raise ValueError(f"choice: {draws} draws without replacement from {n} elements;\n  no more "
                         "draws than elements are possible; pass replace=True.")


def _weights(p: ArrayLike, n: int) -> Array:
    p = promote.inexact(promote.plain(promote.operand("choice", p)))
    if typeof(p).shape != (n,):
        raise ValueError(f"choice: p {typeof(p)} given for {n} elements; a vector of as many "
                         "weights is required.")
    return promote.convert(p, at_least_32_bits(typeof(p).dtype))


complete_docstrings(globals(), {
    "key": "a single key.",
    "axis": "the axis.",
})
