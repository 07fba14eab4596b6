"""Threefry-2x32: random bits from a key and a counter, with ordinary integer operations.

A block cipher of 20 rounds maps (key, counter), two pairs of 32-bit words, to a pair of words:
Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11). Element i of a result takes the
counter i, so that it depends on nothing but the key and its own index; with the option
`threefry_partitionable` off the older scheme is used, in which the counters are cut in halves.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import config
from ..core import tags
from ..core.primitive import Axis, Primitive
from ..core.trace import typeof
from ..lax.arithmetic import mul
from ..lax.bits import bitwise_or, bitwise_xor, shift_left, shift_right_logical
from ..lax.convert import convert_element_type
from ..lax.creation import full, iota_p
from ..lax.families import add, map_elementwise
from ..lax.shape import broadcast_in_dim, expand_dims, reshape, squeeze
from ..lax.slicing import concatenate, slice_in_dim
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import prod

__all__ = ["fold_in", "random_bits", "seed", "split", "threefry2x32", "threefry2x32_p"]

U32, U64 = dtypes.as_dtype("uint32"), dtypes.as_dtype("uint64")
Dims = tuple[int, ...]
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA     # keeps the third key word from being zero for equal first two


class Threefry(Primitive):
    """(key word 1, key word 2, counter 1, counter 2) -> two words; all of one shape."""

    multiple_results = True
    jvp = transpose = None      # integers have no derivative
    spread = staticmethod(tags.elementwise)

    def infer(self, *avals: ShapedArray) -> list[ShapedArray]:
        if len(avals) != 4 or any(a.dtype != U32 or a.shape != avals[2].shape for a in avals):
            given = ", ".join(map(str, avals))
            raise TypeError(f"threefry2x32: operands {given} given; four uint32 arrays of one "
                            "shape are required; convert and broadcast them.")
        return [avals[2], avals[3]]

    def lower(self, b: Any, *xs: Any) -> list[Any]:
        return b.inline(_rounds, *xs)

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None]) -> Any:
        args, dim = map_elementwise(axis, args, dims)
        return self.bind(*args), [dim, dim]


threefry2x32_p = Threefry("threefry2x32")


def _rounds(k1: Any, k2: Any, x: Any, y: Any) -> list[Any]:
    """The 20 rounds; after each four of them the next two key words are added."""
    words = (k1, k2, bitwise_xor(bitwise_xor(k1, k2), PARITY))
    x, y = add(x, k1), add(y, k2)
    for i in range(5):
        for r in ROTATIONS[i % 2]:
            x = add(x, y)
            rotated = bitwise_or(shift_left(y, r), shift_right_logical(y, 32 - r))
            y = bitwise_xor(x, rotated)
        x = add(x, words[(i + 1) % 3])
        y = add(y, add(words[(i + 2) % 3], i + 1))
    return [x, y]


def threefry2x32(data: Any, x: Any, y: Any) -> list[Any]:
    """Cipher of counters under each key.

    Args:
      data: uint32[*k, 2] key words.
      x, y: uint32[*s] words of the counters.

    Returns:
      Two arrays uint32[*k, *s].
    """
    keys, counts = typeof(data).shape[:-1], typeof(x).shape
    shape = (*keys, *counts)
    front, back = range(len(keys)), range(len(keys), len(shape))
    k1, k2 = [broadcast_in_dim(squeeze(slice_in_dim(data, i, i + 1, 1, -1), (-1,)), shape, front)
              for i in (0, 1)]
    return threefry2x32_p.bind(k1, k2, broadcast_in_dim(x, shape, back),
                               broadcast_in_dim(y, shape, back))


def _stacked(x: Any, y: Any) -> Any:
    return concatenate([expand_dims(x, (-1,)), expand_dims(y, (-1,))], typeof(x).ndim)


def _iota(n: int, dtype: Any = U32) -> Any:
    return iota_p.bind(dtype=dtype, shape=(n,), dimension=0, sharding=None)


def _counters(shape: Dims) -> tuple[Any, Any]:
    """The index of each element in row-major order, as its high and low words."""
    size = prod(shape)
    if size <= 2**32:
        return full(shape, 0, U32), reshape(_iota(size), shape)
    index = reshape(_iota(size, U64), shape)
    return (convert_element_type(shift_right_logical(index, 32), U32),
            convert_element_type(index, U32))


# What a key type needs ---------------------------------------------------------------------------

def seed(x: Any) -> Any:
    """uint32[..., 2] key words of integers [...]: the high and the low word, two's complement."""
    aval = typeof(x)
    low = convert_element_type(x, U32)
    if dtypes.scalar_kind(aval.dtype) != "b" and dtypes.itemsize_bits(aval.dtype) == 64:
        high = convert_element_type(shift_right_logical(x, 32), U32)
    else:
        high = full(aval.shape, 0, U32)
    return _stacked(high, low)


def split(data: Any, *, shape: Dims) -> Any:
    """Key words uint32[*k, *shape, 2] of new keys from uint32[*k, 2]."""
    if config.threefry_partitionable.value:
        return _stacked(*threefry2x32(data, *_counters(shape)))
    keys = typeof(data).shape[:-1]
    return reshape(_halved(data, 2 * prod(shape)), (*keys, *shape, 2))


def fold_in(data: Any, number: Any) -> Any:
    """Key words of new keys; `data` is uint32[*k, 2], `number` uint32[*k]."""
    words = [squeeze(slice_in_dim(data, i, i + 1, 1, -1), (-1,)) for i in (0, 1)]
    zero = full(typeof(number).shape, 0, U32)
    return _stacked(*threefry2x32_p.bind(*words, zero, number))


def random_bits(data: Any, *, bit_width: int, shape: Dims) -> Any:
    """uint{bit_width}[*k, *shape] of random bits from key words uint32[*k, 2]."""
    dtype = dtypes.as_dtype(f"uint{bit_width}")
    keys = typeof(data).shape[:-1]
    if not config.threefry_partitionable.value:
        return reshape(_halved_bits(data, bit_width, prod(shape)), (*keys, *shape))
    x, y = threefry2x32(data, *_counters(shape))
    if bit_width == 64:
        return _joined(x, y)
    return convert_element_type(bitwise_xor(x, y), dtype)


def _joined(high: Any, low: Any) -> Any:
    high, low = (convert_element_type(x, U64) for x in (high, low))
    return bitwise_or(shift_left(high, 32), low)


def _halved(data: Any, n: int) -> Any:
    """uint32[*k, n]: the older scheme, counters 0 … n-1 whose halves are the two words."""
    counts = _iota(n)
    if n % 2:
        counts = concatenate([counts, full((1,), 0, U32)], 0)
    half = (n + 1) // 2
    pair = threefry2x32(data, slice_in_dim(counts, 0, half), slice_in_dim(counts, half, 2 * half))
    axis = typeof(data).ndim - 1
    return slice_in_dim(concatenate(pair, axis), 0, n, 1, axis)


def _halved_bits(data: Any, bit_width: int, size: int) -> Any:
    """uint{bit_width}[*k, size] by the older scheme."""
    words = _halved(data, -(-bit_width * size // 32))
    axis = typeof(words).ndim - 1
    if bit_width == 64:
        return _joined(slice_in_dim(words, 0, size, 1, axis),
                       slice_in_dim(words, size, 2 * size, 1, axis))
    if bit_width == 32:
        return words
    n = 32 // bit_width
    shape = (*typeof(words).shape, n)
    shifts = broadcast_in_dim(mul(_iota(n), bit_width), shape, (axis + 1,))
    parts = shift_right_logical(broadcast_in_dim(words, shape, range(axis + 1)), shifts)
    parts = convert_element_type(parts, dtypes.as_dtype(f"uint{bit_width}"))
    flat = reshape(parts, (*shape[:-2], shape[-2] * n))
    return slice_in_dim(flat, 0, size, 1, axis)
