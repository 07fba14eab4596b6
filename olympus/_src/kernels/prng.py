"""Random numbers of kernels: a state that lasts from step to step of one call.

A TPU draws them in hardware. Here the state is a key of threefry2x32, which each draw splits; so
kernels have other numbers than on a TPU, and the same ones in each run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DTypeLike
from ..base.util import clipped
from ..core.trace import typeof
from ..lax.convert import bitcast_convert_type
from ..mapping.vmap import vmap
from ..numpy.grids import arange
from ..numpy.refs import get, set
from ..random.continuous import bits, normal, uniform
from ..random.discrete import bernoulli
from ..random.keys import fold_in, key, key_data, split, typed, wrap_key_data
from ..types import dtypes
from ..types.shape import floor_div, mod
from .grid import generator_here, program_id
from .specs import INT32

_THREEFRY = "threefry2x32"


def _next(name: str) -> Array:
    """A key that no other draw has."""
    state = generator_here(name)
    following, now = split(wrap_key_data(get(state), impl=_THREEFRY))
    set(state, ..., key_data(following))
    return now


@api_boundary
def prng_seed(*seeds: ArrayLike) -> None:
    """Seed the random numbers of a kernel, from here on.

    Args: *seeds: integer scalars, all of which count. The place in the grid as one of them gives
        each step numbers of its own.

    Raises ValueError outside of a kernel. Without a seed, a call of a kernel begins with one state.

    >>> def kernel(o):
    ...     pltpu.prng_seed(7, pl.program_id(0))
    ...     o[...] = pltpu.prng_random_bits((2,))
    >>> out = olympus.ShapeDtypeStruct((4,), onp.int32)
    >>> draw = pl.pallas_call(kernel, out, grid=2, interpret=True,
    ...                       out_specs=pl.BlockSpec((2,), lambda i: (i,)))
    >>> print(len(set(draw().tolist())), bool((draw() == draw()).all()))
    4 True
    """
    state = generator_here("prng_seed")
    if not seeds:
        raise TypeError("prng_seed: no seeds given; at least one integer is required.")
    folded = key(0, impl=_THREEFRY)
    for seed in seeds:
        aval = typeof(seed)
        if aval.shape or not dtypes.is_integer(aval.dtype):
            raise TypeError(f"prng_seed: {clipped(seed)} of type {aval} given; integer scalars are "
                            "required.")
        folded = fold_in(folded, seed)
    set(state, ..., key_data(folded))


@api_boundary
def prng_random_bits(shape: Sequence[int]) -> Array:
    """Random bits of a kernel, as integers.

    Args: shape: ints.

    >>> def heads(o):
    ...     o[...] = (pltpu.prng_random_bits((1000,)) < 0).sum()
    >>> out = olympus.ShapeDtypeStruct((), onp.int32)
    >>> print(bool(abs(pl.pallas_call(heads, out, interpret=True)() - 500) < 60))
    True
    """
    drawn = bits(_next("prng_random_bits"), tuple(shape), "uint32")
    return bitcast_convert_type(drawn, INT32)


@api_boundary
def stateful_bits(shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """`random.bits` of a kernel's own state.

    Args:
      shape: ints.
      dtype: an unsigned integer dtype; None is uint32, or uint64 with x64 on.

    >>> def kernel(o):
    ...     o[...] = pltpu.stateful_bits((8,), onp.uint8)
    >>> out = olympus.ShapeDtypeStruct((8,), onp.uint8)
    >>> len(set(pl.pallas_call(kernel, out, interpret=True)().tolist())) > 4
    True
    """
    return bits(_next("stateful_bits"), tuple(shape), dtype)


@api_boundary
def stateful_uniform(shape: Sequence[int] = (), dtype: DTypeLike | None = None,
                     minval: ArrayLike = 0.0, maxval: ArrayLike = 1.0) -> Array:
    """`random.uniform` of a kernel's own state: floats in [minval, maxval).

    Args:
      shape: ints.
      dtype: a float dtype; None is the default float.
      minval, maxval: bounds; arrays that broadcast to the shape.

    >>> def mean(o):
    ...     o[...] = pltpu.stateful_uniform((1000,), onp.float32, -1., 1.).mean()
    >>> out = olympus.ShapeDtypeStruct((), onp.float32)
    >>> print(bool(abs(pl.pallas_call(mean, out, interpret=True)()) < .1))
    True
    """
    return uniform(_next("stateful_uniform"), tuple(shape), dtype, minval, maxval)


@api_boundary
def stateful_normal(shape: Sequence[int] = (), dtype: DTypeLike | None = None) -> Array:
    """`random.normal` of a kernel's own state: mean 0, variance 1.

    Args:
      shape: ints.
      dtype: a float dtype; None is the default float.

    >>> def variance(o):
    ...     o[...] = pltpu.stateful_normal((1000,), onp.float32).var()
    >>> out = olympus.ShapeDtypeStruct((), onp.float32)
    >>> print(bool(abs(pl.pallas_call(variance, out, interpret=True)() - 1) < .2))
    True
    """
    return normal(_next("stateful_normal"), tuple(shape), dtype)


@api_boundary
def stateful_bernoulli(p: ArrayLike = 0.5, shape: Sequence[int] | None = None) -> Array:
    """`random.bernoulli` of a kernel's own state: True with probability p.

    Args:
      p: float; an array that broadcasts to the shape.
      shape: ints; None is the shape of p.

    >>> def share(o):
    ...     o[...] = pltpu.stateful_bernoulli(.25, (1000,)).mean()
    >>> out = olympus.ShapeDtypeStruct((), onp.float32)
    >>> print(bool(abs(pl.pallas_call(share, out, interpret=True)() - .25) < .06))
    True
    """
    return bernoulli(_next("stateful_bernoulli"), p, None if shape is None else tuple(shape))


@api_boundary
def to_pallas_key(key: ArrayLike) -> Array:
    """Keys of any generator as keys for kernels: of threefry, made by their bits.

    Args: key: a key, or an array of keys.
    Returns: Typed keys. In a kernel functions of `olympus.random` take them; pass them with
      `BlockSpec(memory_space=pltpu.SMEM)`.

    >>> def kernel(key, o):
    ...     o[...] = olympus.random.uniform(olympus.random.fold_in(key[...], 1), o.shape)
    >>> key = pltpu.to_pallas_key(olympus.random.key(0, impl="rbg"))
    >>> out = olympus.ShapeDtypeStruct((2,), onp.float32)
    >>> print(pl.pallas_call(kernel, out, interpret=True)(key).shape)
    (2,)
    """
    keys = typed(key)
    draw = _bits_of_key
    for _ in keys.shape:
        draw = vmap(draw)
    return wrap_key_data(draw(keys), impl=_THREEFRY)


def _bits_of_key(key: Array) -> Array:
    return bits(key, (2,), "uint32")


@api_boundary
def sample_block(sampler_fn: Callable[..., Array], global_key: ArrayLike,
                 block_size: Sequence[int], tile_size: Sequence[int], total_size: Sequence[int],
                 block_index: Sequence[ArrayLike] | None = None, **kwargs: object) -> Array:
    """Random numbers of a block of an array that are the same for all sizes of blocks.

    The array is cut into tiles, which are drawn with keys of their own: the key with the tile's
    number, row-major, folded in.

    Args:
      sampler_fn: a function of a key and `shape`, such as `random.uniform`.
      global_key: the key of the whole array.
      block_size: the block's shape.
      tile_size: the tiles' shape, which divides that of all blocks.
      total_size: the array's shape.
      block_index: the block's place, counted in blocks; None is the place in the kernel's grid.
      **kwargs: for the sampler.
    Returns: An array of shape `block_size`.

    >>> draw = lambda block, index: pltpu.sample_block(
    ...     olympus.random.uniform, olympus.random.key(0), block, (2, 2), (4, 8), index)
    >>> bool((draw((4, 8), (0, 0))[2:, 4:] == draw((2, 4), (1, 1))).all())
    True
    """
    n = len(block_size)
    if len(tile_size) != n or len(total_size) != n or any(map(mod, block_size, tile_size)):
        raise ValueError(f"sample_block: block_size {tuple(block_size)}, tile_size "
                         f"{tuple(tile_size)} and total_size {tuple(total_size)} given; one length "
                         "for all, and tiles that divide the block, are required.")
    place = [program_id(axis) for axis in range(n)] if block_index is None else block_index
    tiles = [floor_div(b, t) for b, t in zip(block_size, tile_size, strict=True)]
    number: Any = 0
    for axis, (at, count) in enumerate(zip(place, tiles, strict=True)):
        along = at * count + arange(count).reshape(-1, *[1] * (n - axis - 1))
        number = number * -floor_div(-total_size[axis], tile_size[axis]) + along
    keys = vmap(fold_in, (None, 0))(typed(global_key), number.ravel())
    drawn = vmap(lambda key: sampler_fn(key, shape=tuple(tile_size), **kwargs))(keys)
    pairs = [axis for k in range(n) for axis in (k, n + k)]
    return drawn.reshape(*tiles, *tile_size).transpose(pairs).reshape(tuple(block_size))
