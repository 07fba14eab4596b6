"""Block ciphers of 32-bit words, as ordinary integer operations: Threefry and Philox.

A cipher maps a key and a counter, a few words each, to as many words as the counter has, after
Salmon et al., "Parallel random numbers: as easy as 1, 2, 3" (SC11): Threefry with 20 rounds,
Philox with 10. In the name `threefry4x32` the 4 is the number of counter words.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Unpack

from ..base.typing import Array, ArrayLike, IrValue
from ..core import tags
from ..core.facts import GivenFacts
from ..core.primitive import Axis, Builder, Primitive
from ..core.trace import typeof
from ..lax.arithmetic import mul
from ..lax.bits import bitwise_or, bitwise_xor, shift_left, shift_right_logical
from ..lax.convert import convert_element_type, convert_element_type_p
from ..lax.families import add, map_elementwise
from ..lax.shape import broadcast_in_dim, squeeze
from ..lax.slicing import slice_in_dim
from ..types import dtypes
from ..types.avals import ShapedArray

U32, U64 = dtypes.as_dtype("uint32"), dtypes.as_dtype("uint64")
Rounds = Callable[[Sequence[Any], Sequence[Any]], list[Any]]


class Cipher(Primitive):
    """(key words …, counter words …) -> as many words as the counter's; all of one shape."""

    multiple_results = True
    jvp = transpose = None      # integers have no derivative
    spread = staticmethod(tags.elementwise)

    def __init__(self, name: str, key_words: int, words: int, rounds: Rounds,
                 **facts: Unpack[GivenFacts]) -> None:
        super().__init__(name, **facts)
        self.key_words, self.words, self.rounds = key_words, words, rounds

    def infer(self, *avals: ShapedArray) -> list[ShapedArray]:
        n = self.key_words + self.words
        if len(avals) != n or any(a.dtype != U32 or a.shape != avals[-1].shape for a in avals):
            shown = ", ".join(map(str, avals))
            raise TypeError(f"{self.name}: operands {shown} given; {n} uint32 arrays of one shape "
                            "are required; convert and broadcast them.")
        return list(avals[self.key_words:])

    def lower(self, b: Builder, *xs: IrValue) -> list[IrValue]:
        n = self.key_words
        return b.inline(lambda *ys: self.rounds(ys[:n], ys[n:]), *xs)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None]
             ) -> tuple[list[Array], list[int | None]]:
        args, dim = map_elementwise(axis, args, dims)
        return self.bind(*args), [dim] * self.words

    def encrypt(self, data: ArrayLike, counter: Sequence[Array]) -> list[Array]:
        """Words [*k, *s] of counter words uint32[*s], each under each key uint32[*k, key_words]."""
        keys, counts = typeof(data).shape[:-1], typeof(counter[0]).shape
        shape = (*keys, *counts)
        front, back = range(len(keys)), range(len(keys), len(shape))
        return self.bind(*(broadcast_in_dim(word, shape, front) for word in self.split(data)),
                         *(broadcast_in_dim(word, shape, back) for word in counter))

    def split(self, data: ArrayLike) -> list[Array]:
        """The words uint32[*k] of keys uint32[*k, key_words]."""
        return [squeeze(slice_in_dim(data, i, i + 1, 1, -1), (-1,)) for i in range(self.key_words)]


# Threefry ----------------------------------------------------------------------------------------

_ROTATIONS = {2: ((13,), (15,), (26,), (6,), (17,), (29,), (16,), (24,)),
              4: ((10, 26), (11, 21), (13, 27), (23, 5), (6, 20), (17, 11), (25, 10), (18, 20))}
_PAIRS = {2: (((0, 1),),) * 2, 4: (((0, 1), (2, 3)), ((0, 3), (2, 1)))}  # of even and odd rounds
_PARITY = 0x1BD11BDA    # keeps the last word of the schedule from being zero for equal key words


def _threefry(key: Sequence[Array], counter: Sequence[Array]) -> list[Array]:
    """20 rounds of adding, rotating and xor; after each four of them key words are added."""
    n = len(key)
    last = key[0]
    for word in (*key[1:], _PARITY):
        last = bitwise_xor(last, word)
    schedule = (*key, last)
    xs = [add(x, word) for x, word in zip(counter, key, strict=True)]
    for i in range(20):
        for (a, b), r in zip(_PAIRS[n][i % 2], _ROTATIONS[n][i % 8], strict=True):
            xs[a] = add(xs[a], xs[b])
            rotated = bitwise_or(shift_left(xs[b], r), shift_right_logical(xs[b], 32 - r))
            xs[b] = bitwise_xor(xs[a], rotated)
        if i % 4 == 3:
            block = i // 4 + 1
            words = [schedule[(block + j) % (n + 1)] for j in range(n)]
            xs = [add(x, word) for x, word in zip(xs, words, strict=True)]
            # The word is often a scalar: TPUs would add the number to it in a kernel of its own.
            xs[-1] = add(xs[-1], block)
    return xs


threefry2x32_p = Cipher("threefry2x32", 2, 2, _threefry, fusion="long", pace=4.0)
threefry4x32_p = Cipher("threefry4x32", 4, 4, _threefry)


# Philox ------------------------------------------------------------------------------------------

_FACTORS = {1: (0xD256D193,), 2: (0xD2511F53, 0xCD9E8D57)}      # by the number of key words
_WEYL = (0x9E3779B9, 0xBB67AE85)    # the addend of the key words after each round


def widen(x: ArrayLike) -> Array:
    """Words as uint64, whether x64 is on or off."""
    return convert_element_type_p.bind(x, new_dtype=U64, weak_type=False, sharding=None)


def _wide_product(x: ArrayLike, factor: int) -> tuple[Array, Array]:
    """The high and the low word of a product of words."""
    wide = mul(widen(x), factor)
    return convert_element_type(shift_right_logical(wide, 32), U32), mul(x, factor)


def _philox(key: Sequence[Array], counter: Sequence[Array]) -> list[Array]:
    """10 rounds of multiplying and xor."""
    n, xs = len(key), list(counter)
    for i in range(10):
        products = [_wide_product(x, f) for x, f in zip(xs[::2], _FACTORS[n], strict=True)]
        mixed = []
        for j in range(n):      # the pairs of words change places
            high, low = products[n - 1 - j]
            word = add(key[j], i * _WEYL[j] % 2**32) if i else key[j]
            mixed += [bitwise_xor(bitwise_xor(high, xs[2 * j + 1]), word), low]
        xs = mixed
    return xs


philox2x32_p = Cipher("philox2x32", 1, 2, _philox)
philox4x32_p = Cipher("philox4x32", 2, 4, _philox)
