"""Generators: ways to make keys of integers, keys of keys, and random bits of keys.

    Generator the functions of a kind of key; its methods take arrays of keys, words last
    Counter         encrypts counters: element i of a result depends on the key and on i only
    Threefry        the same, with the older scheme, which cuts the counters in halves, as an option
    XLA, UnsafeXLA  bits by the compiler's own generator
    Defined         functions of a user's, on one key each
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..base import config
from ..base.typing import Array, ArrayLike, DType, DTypeLike, IrValue
from ..core.primitive import Builder
from ..core.trace import typeof
from ..lax.arithmetic import mul
from ..lax.bits import bitwise_or, bitwise_xor, shift_left, shift_right_logical
from ..lax.convert import convert_element_type
from ..lax.creation import full, iota_p
from ..lax.rng import RandomAlgorithm, rng_bit_generator_p
from ..lax.shape import broadcast_in_dim, expand_dims, reshape
from ..lax.slicing import concatenate, index_in_dim, slice_in_dim
from ..mapping.vmap import vmap
from ..types import dtypes
from ..types.avals import make_aval
from ..types.shape import exceeds, prod
from .ciphers import (
    U32, U64, Cipher, philox2x32_p, philox4x32_p, threefry2x32_p, threefry4x32_p, widen,
)

Dims = tuple[int, ...]


class Generator:
    """A kind of keys: words uint32[*key_shape] each, a name, and a tag that their dtype prints.

    seed(integers [*k]) and fold_in(data, numbers) -> data [*k, *key_shape]; split(data, shape) ->
    [*k, *shape, *key_shape]; random_bits(data, bit_width, shape) -> uint{bit_width}[*k, *shape].
    The numbers are uint32, with as many axes as there are keys; axes of size 1 are spread.
    """

    name: str
    tag: str
    key_shape: Dims
    is_value = True         # see `core.identity`
    independent = True      # whether an array of keys draws each key's own bits
    seed: Callable[[Any], Any]
    split: Callable[[Any, Dims], Any]
    fold_in: Callable[[Any, Any], Any]
    random_bits: Callable[[Any, int, Dims], Any]

    def __init__(self, name: str, tag: str, key_shape: Dims) -> None:
        self.name, self.tag, self.key_shape = name, tag, key_shape

    def __repr__(self) -> str:
        return self.tag

    def emit(self, b: Builder, fun: Callable[..., Array], *xs: IrValue) -> IrValue:
        """An equation of such keys, by `fun`."""
        return b.inline(fun, *xs)


def _stacked(words: Sequence[Array]) -> Array:
    """Words [*s] as the last axis of one array."""
    return concatenate([expand_dims(x, (-1,)) for x in words], typeof(words[0]).ndim)


def _iota(n: int, dtype: DTypeLike = U32) -> Array:
    return iota_p.bind(dtype=dtype, shape=(n,), dimension=0, sharding=None)


def _counters(shape: Dims) -> Sequence[Array]:
    """The index of each element in row-major order, as its high and low words."""
    size = prod(shape)
    if not exceeds(size, 2**32):
        return [full(shape, 0, U32), reshape(_iota(size), shape)]
    index = reshape(_iota(size, U64), shape)
    return [convert_element_type(shift_right_logical(index, 32), U32),
            convert_element_type(index, U32)]


def _high_and_low_words(x: ArrayLike) -> Sequence[Array]:
    """The high and the low word of integers, in two's complement; narrow ones have no high word."""
    aval = typeof(x)
    low = convert_element_type(x, U32)
    if dtypes.scalar_kind(aval.dtype) != "b" and dtypes.itemsize_bits(aval.dtype) == 64:
        return [convert_element_type(shift_right_logical(x, 32), U32), low]
    return [full(aval.shape, 0, U32), low]


def _joined(high: Array, low: Array) -> Array:
    return bitwise_or(shift_left(widen(high), 32), widen(low))


def _xor(words: Sequence[Array]) -> Array:
    return functools.reduce(bitwise_xor, words)


class Counter(Generator):
    """Encrypts counters. `ends` are the words that the high and the low half of 64 bits come
    from.
    """

    def __init__(self, cipher: Cipher, tag: str, ends: tuple[slice, slice]) -> None:
        super().__init__(cipher.name, tag, (cipher.key_words,))
        self.cipher, self.ends = cipher, ends

    def _filled(self, words: Sequence[ArrayLike]) -> Sequence[Array]:
        zero = full(typeof(words[0]).shape, 0, U32)
        return [zero] * (self.cipher.words - len(words))

    def seed(self, x: ArrayLike) -> Array:
        """The seed is the key of a cipher of zero if it fits, else the counter under key zero."""
        words, n = _high_and_low_words(x), self.cipher.key_words
        zero = full(typeof(x).shape, 0, U32)
        first = words if n == 4 else [*[zero] * n, *words]
        made = self.cipher.bind(*first, *[zero] * (n + self.cipher.words - len(first)))
        return _stacked(made[:n])

    def split(self, data: Array, shape: Dims) -> Array:
        """Ciphers of the new keys' indices, which are the counter's last words."""
        index = _counters(shape)
        return _stacked(self.cipher.encrypt(data, [*self._filled(index), *index])[
            :self.cipher.key_words])

    def fold_in(self, data: Array, number: Array) -> Array:
        """Ciphers of the numbers, each under its key."""
        shape = typeof(data).shape[:-1]
        number = broadcast_in_dim(number, shape, range(len(shape)))
        words = self.cipher.bind(*self.cipher.split(data), *self._filled([number]), number)
        return _stacked(words[:self.cipher.key_words])

    def random_bits(self, data: Array, bit_width: int, shape: Dims) -> Array:
        """All words of a cipher in one, by xor. The indices are the counter's first words."""
        index = _counters(shape)
        words = self.cipher.encrypt(data, [*index, *self._filled(index)])
        if bit_width == 64:
            return _joined(*(_xor(words[end]) for end in self.ends))
        return convert_element_type(_xor(words), dtypes.as_dtype(f"uint{bit_width}"))


class Threefry(Counter):
    """Threefry-2x32, whose keys are seeds as they are."""

    def seed(self, x: Array) -> Array:
        """The high and the low word."""
        return _stacked(_high_and_low_words(x))

    def split(self, data: Array, shape: Dims) -> Array:
        """Split as a `Counter` does, or by the older scheme."""
        if config.threefry_partitionable.value:
            return super().split(data, shape)
        keys = typeof(data).shape[:-1]
        return reshape(self._halved(data, 2 * prod(shape)), (*keys, *shape, 2))

    def random_bits(self, data: Array, bit_width: int, shape: Dims) -> Array:
        """Split as a `Counter` does, or by the older scheme."""
        if config.threefry_partitionable.value:
            return super().random_bits(data, bit_width, shape)
        keys = typeof(data).shape[:-1]
        return reshape(self._halved_bits(data, bit_width, prod(shape)), (*keys, *shape))

    def _halved(self, data: ArrayLike, n: int) -> Array:
        """uint32[*k, n]: the older scheme, counters 0 … n-1 whose halves are the two words."""
        counts = _iota(n)
        if n % 2:
            counts = concatenate([counts, full((1,), 0, U32)], 0)
        half = (n + 1) // 2
        pair = self.cipher.encrypt(data, [slice_in_dim(counts, 0, half),
                                          slice_in_dim(counts, half, 2 * half)])
        axis = typeof(data).ndim - 1
        return slice_in_dim(concatenate(pair, axis), 0, n, 1, axis)

    def _halved_bits(self, data: Array, bit_width: int, size: int) -> Array:
        """uint{bit_width}[*k, size] by the older scheme."""
        words = self._halved(data, -(-bit_width * size // 32))
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


_FIRST_TWO = (slice(0, 1), slice(1, 2))
THREEFRY = Threefry(threefry2x32_p, "fry", _FIRST_TWO)


def _generated(data: Array, bit_width: int, shape: Dims) -> Array:
    """The compiler's bits of shape [*k, *shape], all of them from the first of the keys [*k]."""
    keys = typeof(data).shape[:-1]
    dtype = dtypes.as_dtype(f"uint{bit_width}")
    if 0 in keys:
        return full((*keys, *shape), 0, dtype)
    for _ in keys:
        data = index_in_dim(data, 0, 0, False)
    return rng_bit_generator_p.bind(data, shape=(*keys, *shape), dtype=dtype, out_sharding=None,
                                    algorithm=RandomAlgorithm.RNG_DEFAULT)[1]


class XLA(Generator):
    """Keys of two Threefry keys; bits by XLA, for an array of keys from the first of them."""

    independent = False

    def seed(self, x: Array) -> Array:
        """Threefry's key, twice."""
        half = THREEFRY.seed(x)
        return concatenate([half, half], typeof(half).ndim - 1)

    def split(self, data: Array, shape: Dims) -> Array:
        """Both Threefry keys split."""
        parts = [THREEFRY.split(half, shape) for half in _threefry_halves(data)]
        return concatenate(parts, typeof(parts[0]).ndim - 1)

    def fold_in(self, data: Array, number: Array) -> Array:
        """The number folded into both Threefry keys."""
        parts = [THREEFRY.fold_in(half, number) for half in _threefry_halves(data)]
        return concatenate(parts, typeof(parts[0]).ndim - 1)

    def random_bits(self, data: Array, bit_width: int, shape: Dims) -> Array:
        """The compiler's bits."""
        return _generated(data, bit_width, shape)


def _threefry_halves(data: Array) -> list[Array]:
    return [slice_in_dim(data, i, i + 2, 1, -1) for i in (0, 2)]


class UnsafeXLA(XLA):
    """Derives keys by XLA, too: every tenth group of four words is a key."""

    def split(self, data: Array, shape: Dims) -> Array:
        """Keys from the bits of the first key."""
        keys = typeof(data).shape[:-1]
        words = _generated(data, 32, (10 * prod(shape), 4))
        return reshape(slice_in_dim(words, 0, None, 10, len(keys)), (*keys, *shape, 4))

    def fold_in(self, data: Array, number: Array) -> Array:
        """The keys, each changed by bits that the first number is the seed of."""
        ndim = typeof(number).ndim
        changes = index_in_dim(_generated(self.seed(number), 32, (10, 4)), -1, ndim, False)
        return bitwise_xor(data, broadcast_in_dim(changes, typeof(data).shape, range(ndim + 1)))


class Defined(Generator):
    """Functions of a user's, on single seeds and keys; equal if all of it is."""

    def __init__(self, key_shape: Dims, seed: Callable[..., Array], split: Callable[..., Array],
                 fold_in: Callable[..., Array], random_bits: Callable[..., Array], name: str,
                 tag: str) -> None:
        super().__init__(name, tag, key_shape)
        self._fields = key_shape, seed, split, fold_in, random_bits, name, tag
        self._seed, self._split, self._fold_in, self._random_bits = self._fields[1:5]

    def __eq__(self, other: object) -> bool:
        return type(other) is Defined and self._fields == other._fields

    def __hash__(self) -> int:
        return hash(self._fields)

    def __reduce__(self) -> tuple:
        return Defined, self._fields

    def emit(self, b: Builder, fun: Callable[..., Array], *xs: IrValue) -> IrValue:
        """Recorded anew: a user's function may change, and its program is not kept."""
        return b.traced(fun, xs, b.avals_in)[0]

    def _each(self, name: str, fun: Callable[..., Array], shape: Dims, dtype: DType, *args: object
              ) -> Array:
        """The function of each of the operands, mapped over as many axes as the last one has left.

        TypeError unless each result has the shape and dtype.
        """
        def checked(*args: object) -> Array:
            out = fun(*args)
            drawn = typeof(out)
            if drawn.shape != shape or drawn.dtype != dtype:
                raise TypeError(f"{name} of the random implementation {self.name!r}: {drawn} "
                                f"returned; {make_aval(shape, dtype)} is required; convert and "
                                "reshape it.")
            return out

        run = checked
        for _ in range(typeof(args[0]).ndim - (0 if name == "seed" else len(self.key_shape))):
            run = vmap(run)
        return run(*args)

    def seed(self, x: Array) -> Array:
        """The user's `seed` of each integer."""
        return self._each("seed", self._seed, self.key_shape, U32, x)

    def split(self, data: Array, shape: Dims) -> Array:
        """The user's `split` of each key."""
        return self._each("split", lambda key: self._split(key, shape), (*shape, *self.key_shape),
                          U32, data)

    def fold_in(self, data: Array, number: Array) -> Array:
        """The user's `fold_in` of each key and number."""
        ndim = typeof(number).ndim
        number = broadcast_in_dim(number, typeof(data).shape[:ndim], range(ndim))
        return self._each("fold_in", self._fold_in, self.key_shape, U32, data, number)

    def random_bits(self, data: Array, bit_width: int, shape: Dims) -> Array:
        """The user's `random_bits` of each key."""
        return self._each("random_bits", lambda key: self._random_bits(key, bit_width, shape),
                          shape, dtypes.as_dtype(f"uint{bit_width}"), data)


RBG, UNSAFE_RBG = XLA("rbg", "rbg", (4,)), UnsafeXLA("unsafe_rbg", "urbg", (4,))
# By the names that `impl=` takes.
GENERATORS: dict[str, Generator] = {generator.name: generator for generator in (
    THREEFRY, RBG, UNSAFE_RBG,
    Counter(threefry4x32_p, "fry4", (slice(0, None, 2), slice(1, None, 2))),
    Counter(philox2x32_p, "phx2", _FIRST_TWO), Counter(philox4x32_p, "phx4", _FIRST_TWO))}
