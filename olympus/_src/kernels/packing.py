"""Numbers of few bits in words, random rounding, and axes that are split and joined.

On a TPU each is an instruction or a layout; here they are formulas.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DTypeLike
from ..core.trace import typeof
from ..lax.convert import bitcast_convert_type
from ..numpy.creation import asarray
from ..numpy.elementary import floor, isfinite
from ..numpy.selection import where
from ..types import dtypes
from ..types.dtypes import DType
from ..types.shape import definitely_equal, floor_div, mod, prod

_F32 = dtypes.as_dtype("float32")


@api_boundary
def stochastic_round(x: ArrayLike, random_bits: ArrayLike, *, target_dtype: DTypeLike) -> Array:
    """Numbers rounded up or down, each with the probability that makes it right on average.

    Args:
      x: float32 array.
      random_bits: uint32 array with its shape; the upper 24 bits count.
      target_dtype: a float dtype of fewer bits.
    Returns: An array of the target dtype. Infinities, NaN and what overflows are as after `astype`.

    >>> x = onp.full(1000, 1.001, onp.float32)
    >>> bits = olympus.random.bits(olympus.random.key(0), (1000,), onp.uint32)
    >>> y = pltpu.stochastic_round(x, bits, target_dtype=onp.bfloat16)
    >>> print(sorted(set(y.tolist())), y.astype(onp.float32).mean().round(3))
    [1.0, 1.0078125] 1.001
    """
    aval, bits, target = typeof(x), typeof(random_bits), dtypes.as_dtype(target_dtype)
    if aval.dtype != _F32 or not dtypes.is_inexact(target) or target.itemsize > 2:
        raise ValueError(f"stochastic_round: {aval} to {target} given; float32, and a float dtype "
                         "of at most 16 bits, are required.")
    if bits.shape != aval.shape or bits.dtype != np.uint32:
        raise ValueError(f"stochastic_round: random_bits {bits} given for {aval}; uint32 of its "
                         "shape is required.")
    info, x = dtypes.finfo(target), asarray(x)
    # x is a whole number of steps and a part of one, both exact; the part is a probability.
    exponent = (bitcast_convert_type(x, np.int32) >> 23 & 255) - 127
    least = where(exponent < info.minexp, info.minexp, exponent) - info.nmant
    half, rest = least >> 1, least - (least >> 1)       # a step may be smaller than float32 has
    steps = abs(x) * _power_of_two(-half) * _power_of_two(-rest)
    below = floor(steps)
    up = (asarray(random_bits) >> 8).astype(_F32) * 2.**-24 < steps - below
    rounded = (below + up) * _power_of_two(half) * _power_of_two(rest)
    return where(isfinite(x), where(x < 0, -rounded, rounded), x).astype(target)


def _power_of_two(n: Array) -> Array:
    return bitcast_convert_type(n + 127 << 23, _F32)


def _per_word(name: str, word: DType, packed: DType) -> int:
    """How many packed numbers a word has."""
    size, small = dtypes.itemsize_bits(word), dtypes.itemsize_bits(packed)
    whole = dtypes.is_integer(word) and dtypes.is_integer(packed)
    if not whole and not (word == _F32 and packed == dtypes.bfloat16) or size % small:
        raise ValueError(f"{name}: {word} and packed_dtype {packed} given; float32 and bfloat16, "
                         "or integers whose bits divide those of the words, are required.")
    return size // small


@api_boundary
def pack_elementwise(xs: Sequence[ArrayLike], *, packed_dtype: DTypeLike) -> Array:
    """Arrays packed, element by element, into words of as many bits as theirs.

    Args:
      xs: as many arrays of one shape and dtype as narrower numbers fit into theirs. The first is
        in the lowest bits. Upper bits of integers are cut off.
      packed_dtype: bfloat16 for float32, or an integer dtype of fewer bits for integers.
    Returns: An array of unsigned integers.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> low, high = onp.array([1, -1], onp.int16), onp.array([2, 3], onp.int16)
    >>> print(pltpu.pack_elementwise([low, high], packed_dtype=onp.int8))
    [ 513 1023]
    """
    name, avals = "pack_elementwise", list(map(typeof, xs))
    packed = dtypes.as_dtype(packed_dtype)
    if not avals or any(a.shape != avals[0].shape or a.dtype != avals[0].dtype for a in avals):
        raise ValueError(f"{name}: {', '.join(map(str, avals)) or 'no arrays'} given; arrays of "
                         "one shape and one dtype are required.")
    count, bits = _per_word(name, avals[0].dtype, packed), dtypes.itemsize_bits(packed)
    if len(avals) != count:
        raise ValueError(f"{name}: {len(avals)} arrays {avals[0]} given; {count} are required, as "
                         f"many as {packed} fit into one.")
    word = np.dtype(f"uint{bits * count}")
    whole = None
    for i, x in enumerate(xs):
        if packed == dtypes.bfloat16:
            narrow = bitcast_convert_type(asarray(x).astype(packed), np.uint16).astype(word)
        else:
            narrow = asarray(x).astype(word) & ((1 << bits) - 1)
        whole = narrow if whole is None else whole | narrow << bits * i
    assert whole is not None
    return whole


@api_boundary
def unpack_elementwise(x: ArrayLike, *, index: int, packed_dtype: DTypeLike,
                       unpacked_dtype: DTypeLike) -> Array:
    """One of the arrays that `pack_elementwise` packed.

    Args:
      x: array of integers.
      index: which of the packed arrays, from 0.
      packed_dtype: the dtype of the packed numbers.
      unpacked_dtype: the dtype of the result, with as many bits as those of x.
    Returns: An array like x.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> words = onp.array([513, 1023], onp.uint16)
    >>> print(pltpu.unpack_elementwise(words, index=0, packed_dtype=onp.int8,
    ...                                unpacked_dtype=onp.int16))
    [ 1 -1]
    """
    name, aval = "unpack_elementwise", typeof(x)
    packed, to = dtypes.as_dtype(packed_dtype), dtypes.as_dtype(unpacked_dtype)
    if not dtypes.is_integer(aval.dtype) or (
            dtypes.itemsize_bits(aval.dtype) != dtypes.itemsize_bits(to)):
        raise ValueError(f"{name}: {aval} and unpacked_dtype {to} given; integers with as many "
                         "bits as the unpacked dtype are required.")
    count, bits = _per_word(name, to, packed), dtypes.itemsize_bits(packed)
    if not 0 <= index < count:
        raise ValueError(f"{name}: index {index} given; {packed} in {to} has {count} places, "
                         "counted from 0.")
    word = asarray(x).astype(np.dtype(f"uint{bits * count}")) >> bits * index
    if packed == dtypes.bfloat16:
        return bitcast_convert_type(word.astype(np.uint16), packed).astype(to)
    if dtypes.integer_range(packed)[0] == 0:
        return (word & ((1 << bits) - 1)).astype(to)
    top = bits * (count - 1)        # the sign is the highest bit there
    return ((word << top).astype(np.dtype(f"int{bits * count}")) >> top).astype(to)


@api_boundary
def einshape(equation: str, x: ArrayLike, assert_is_tile_preserving: bool = False, **sizes: int
             ) -> Array:
    """Axes split, moved and joined, as an equation says.

    Args:
      equation: a letter for each axis; letters in parentheses are axes that are one: "a(bc)->(ba)c"
        splits the second, then joins its first part to the first.
      x: array.
      assert_is_tile_preserving: has no effect in interpret mode.
      **sizes: of letters in parentheses; one of each pair may be left out.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.einshape("a(bc)->(ba)c", onp.zeros((10, 20)), b=4).shape
    (40, 5)
    """
    aval, sides = typeof(x), equation.replace(" ", "").split("->")
    groups = [re.findall(r"\((\w*)\)|(\w)", side) for side in sides]
    left, right = [["".join(group) for group in side] for side in (*groups, [], [])[:2]]
    letters = "".join(left)
    if (len(sides) != 2 or len(left) != aval.ndim or len({*letters}) < len(letters)
            or sorted(letters) != sorted("".join(right))):
        raise ValueError(f"einshape: the equation {equation!r} given for {aval}; one letter or "
                         "group for each axis on the left, and the same letters, each once, on "
                         "the right, are required.")
    known: dict[str, int] = {}
    for group, n in zip(left, aval.shape, strict=True):
        missing = [a for a in group if a not in sizes]
        rest = prod([sizes[a] for a in group if a in sizes])
        if len(missing) > 1 or (mod(n, rest) if missing else not definitely_equal(n, rest)):
            raise ValueError(f"einshape: the axis ({group}) of {n} elements, with sizes {sizes}, "
                             f"given in {equation!r}; sizes of all but one letter, whose product "
                             "divides it, are required.")
        known.update({a: floor_div(n, rest) for a in missing}, **{
            a: sizes[a] for a in group if a in sizes})
    split = asarray(x).reshape([known[a] for a in letters])
    moved = split.transpose([letters.index(a) for a in "".join(right)])
    return moved.reshape([prod([known[a] for a in group]) for group in right])


@api_boundary
def trace_value(label: str, value: ArrayLike) -> None:
    """Show a number in a profile of a TPU; in interpret mode there is none.

    Args:
      label: the number's name.
      value: an int32 or float32 scalar.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.trace_value("rows", 3)
    """
