"""Random numbers of kernels: a state that lasts from step to step of one call.

A TPU draws them in hardware. Here the state is a key of threefry2x32, which each draw splits; so
kernels have other numbers than on a TPU, and the same ones in each run.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DTypeLike
from ..base.util import clipped
from ..core.trace import typeof
from ..lax.convert import bitcast_convert_type
from ..numpy.refs import get, set
from ..random.continuous import bits, normal, uniform
from ..random.discrete import bernoulli
from ..random.keys import fold_in, key, key_data, split, wrap_key_data
from ..types import dtypes
from .grid import generator_here
from .specs import INT32

_THREEFRY = "threefry2x32"


def _next(name: str) -> Array:
    """A key that no other draw has."""
    state = generator_here(name)
    kept, now = split(wrap_key_data(get(state), impl=_THREEFRY))
    set(state, ..., key_data(kept))
    return now


@api_boundary
def prng_seed(*seeds: ArrayLike) -> None:
    """Seed the random numbers of a kernel, from here on.

    Args:
      *seeds: integer scalars, all of which count. The place in the grid as one of them gives each
        step numbers of its own.

    Raises ValueError outside of a kernel. Without a seed, a call of a kernel begins with one state.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
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
    found = key(0, impl=_THREEFRY)
    for seed in seeds:
        aval = typeof(seed)
        if aval.shape or not dtypes.is_integer(aval.dtype):
            raise TypeError(f"prng_seed: {clipped(seed)} of type {aval} given; integer scalars are "
                            "required.")
        found = fold_in(found, seed)
    set(state, ..., key_data(found))


@api_boundary
def prng_random_bits(shape: Sequence[int]) -> Array:
    """Random bits of a kernel, as integers.

    Args:
      shape: ints.

    Returns:
      An int32 array.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
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

    Returns:
      An array.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
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

    Returns:
      An array.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
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

    Returns:
      An array.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
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

    Returns:
      A boolean array.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> def share(o):
    ...     o[...] = pltpu.stateful_bernoulli(.25, (1000,)).mean()
    >>> out = olympus.ShapeDtypeStruct((), onp.float32)
    >>> print(bool(abs(pl.pallas_call(share, out, interpret=True)() - .25) < .06))
    True
    """
    return bernoulli(_next("stateful_bernoulli"), p, None if shape is None else tuple(shape))
