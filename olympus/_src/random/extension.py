"""Random generators of a user's own, and their parts."""

from __future__ import annotations

from collections.abc import Callable

from ..base.typing import Array, ArrayLike
from ..core.trace import typeof
from ..lax.creation import full
from ..lax.shape import reshape
from ..lax.slicing import concatenate, slice_in_dim
from ..types.avals import make_aval
from ..types.shape import canonical_shape, prod
from .ciphers import U32, threefry2x32_p
from .generators import Defined, Generator
from .keys import generator_of, seeded


def define_prng_impl(*, key_shape: tuple[int, ...], seed: Callable[[Array], Array],
                     split: Callable[[Array, tuple[int, ...]], Array],
                     random_bits: Callable[[Array, int, tuple[int, ...]], Array],
                     fold_in: Callable[[Array, Array], Array], name: str = "<unnamed>",
                     tag: str = "?") -> Generator:
    """A random generator, for `random.key(impl=)`, `wrap_key_data` and `key_dtype`.

    The functions act on a single key, uint32[*key_shape]; arrays of keys are mapped over.

    Args:
      key_shape: the shape of one key's words.
      seed: of an integer scalar, a key.
      split: of a key and a shape, new keys uint32[*shape, *key_shape].
      random_bits: of a key, a width (8, 16, 32 or 64) and a shape, unsigned integers of that width
        and shape.
      fold_in: of a key and a uint32 scalar, a key.
      name: for messages.
      tag: the dtype is printed as `key<tag>`.
    Returns: What `impl=` takes. Two of the same functions, name and tag are equal.

    A function that returns another shape or dtype is refused with TypeError when it is first used.

    >>> import math, olympus, olympus.numpy as onp
    >>> from olympus.extend import random as extend
    >>> def hashed(key, numbers):      # any mixing of 32 bits
    ...     x = (numbers + key[0]) * onp.uint32(0x9E3779B1)
    ...     return x ^ (x >> 15)
    >>> def indices(shape):
    ...     return onp.arange(math.prod(shape), dtype="uint32").reshape(shape)
    >>> toy = extend.define_prng_impl(
    ...     key_shape=(1,), name="toy", tag="toy",
    ...     seed=lambda number: number.astype("uint32")[None],
    ...     split=lambda key, shape: hashed(key, indices(shape))[..., None],
    ...     random_bits=lambda key, width, shape: hashed(key, indices(shape)).astype(
    ...         f"uint{width}"),
    ...     fold_in=lambda key, number: hashed(key, number)[None])
    >>> key = olympus.random.key(3, impl=toy)
    >>> key.dtype
    key<toy>
    >>> olympus.random.split(key, 4).shape
    (4,)
    """
    return Defined(canonical_shape(key_shape, "define_prng_impl"), seed, split, fold_in,
                   random_bits, name, tag)


def random_seed(seeds: ArrayLike, impl: Generator | str) -> Array:
    """Typed keys of integers, one each.

    Args:
      seeds: an integer or an array of integers, any shape.
      impl: a generator, or its name.
    Returns: Keys of that shape.

    >>> from olympus.extend import random as extend
    >>> extend.random_seed([1, 2, 3], extend.rbg_prng_impl).shape
    (3,)
    """
    return seeded("random_seed", seeds, generator_of("random_seed", impl), scalar=False)


def seed_with_impl(impl: Generator | str, seed: int | ArrayLike) -> Array:
    """Typed keys of integers, as `random_seed`, with the generator first.

    Args:
      impl: a generator, or its name.
      seed: an integer or an array of integers, any shape.
    Returns: Keys of that shape.

    >>> from olympus.extend import random as extend
    >>> extend.seed_with_impl(extend.threefry_prng_impl, 7)
    Array((), dtype=key<fry>) overlaying:
    [0 7]
    """
    return random_seed(seed, impl)


def threefry_2x32(keypair: ArrayLike | tuple[ArrayLike, ArrayLike], count: ArrayLike) -> Array:
    """Threefry-2x32 of an array of words, whose first half is paired with its second half.

    Args:
      keypair: uint32[2], or a pair of uint32 scalars.
      count: uint32, any shape; one of odd size is paired as if a zero followed.
    Returns: uint32 of the shape of `count`: a permutation of pairs of words.

    >>> import numpy as np
    >>> from olympus.extend import random as extend
    >>> extend.threefry_2x32(np.zeros(2, "uint32"), np.zeros(2, "uint32")).tolist()
    [1797259609, 2579123966]
    """
    if isinstance(keypair, (tuple, list)):
        keypair = concatenate([reshape(word, (1,)) for word in keypair], 0)
    key, aval = typeof(keypair), typeof(count)
    if key is not make_aval((2,), U32) or aval.dtype != U32:
        raise TypeError(f"threefry_2x32: key {key} and count {aval} given; two words uint32[2] and "
                        "a uint32 array are required; convert with astype.")
    shape = aval.shape
    size = prod(shape)
    flat = reshape(count, (size,))
    if size % 2:
        flat = concatenate([flat, full((1,), 0, U32)], 0)
    half = (size + 1) // 2
    words = threefry2x32_p.encrypt(keypair, [slice_in_dim(flat, 0, half),
                                             slice_in_dim(flat, half, 2 * half)])
    return reshape(slice_in_dim(concatenate(words, 0), 0, size), shape)
