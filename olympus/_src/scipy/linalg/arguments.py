"""Checks of the arguments of `olympus.scipy.linalg`."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np

from ...base.typing import Array, ArrayLike, T
from ...base.util import real_number
from ...core.trace import typeof
from ...lax.creation import iota
from ...numpy.promote import array_args, convert, promote_dtypes, to_array
from ...types import dtypes
from ...types.shape import definitely_equal, is_static, sequence, static_int


def precise(x: Array) -> Array:
    """A floating array in a dtype that LAPACK has: narrow floats become float32."""
    dtype = typeof(x).dtype
    if dtypes.itemsize_bits(dtype) >= 32:
        return x
    return convert(x, dtypes.as_dtype("float32"))


def matrices(name: str, *xs: ArrayLike) -> list[Array]:
    """Stacks of matrices of one floating or complex dtype; ValueError for fewer than two axes."""
    arrays = [precise(to_array(x)) for x in promote_dtypes(name, *array_args(name, *xs),
                                                           inexact=True)]
    for x in arrays:
        if typeof(x).ndim < 2:
            raise ValueError(f"{name}: {typeof(x)} given; matrices [..., m, n] are required.")
    return arrays


def square(name: str, *xs: ArrayLike) -> list[Array]:
    """`matrices` that are square; ValueError for others."""
    arrays = matrices(name, *xs)
    for x in arrays:
        if not definitely_equal(*typeof(x).shape[-2:]):
            raise ValueError(f"{name}: {typeof(x)} given; square matrices [..., n, n] are "
                             "required.")
    return arrays


def number(name: str, x: ArrayLike) -> Array:
    """An array of numbers, of its own dtype and shape; TypeError for keys."""
    array = to_array(array_args(name, x)[0])
    if dtypes.is_extended(typeof(array).dtype):
        raise TypeError(f"{name}: {typeof(array)} given; numbers are required.")
    return array


def vector(name: str, x: ArrayLike) -> Array:
    """An array with at least one axis, scalars as vectors of one element; of its own dtype."""
    array = number(name, x)
    return array if typeof(array).ndim else array[None]


def counted(n: int) -> Any:
    """0 … n - 1 for a size n, which may be symbolic."""
    if not is_static((n,)):
        return iota(np.int32, n)
    if n >= 2**31:
        raise ValueError(f"scipy: size {n} given; a number below 2**31 is required.")
    return np.arange(n)


def places_of(x: ArrayLike, axis: int = -1) -> np.ndarray:
    """0 … n - 1 for an axis of size n, which may be symbolic."""
    return counted(typeof(x).shape[axis])


def size_of(x: ArrayLike, axis: int = -1) -> int:
    """The size of an axis, which may be symbolic."""
    return typeof(x).shape[axis]


def number_of(x: ArrayLike, axis: int = -1) -> int:
    """The size of an axis, which must be a number."""
    return static_int(size_of(x, axis), "scipy.linalg", "size")


def count_of(name: str, what: str, value: object, least: int = 0, most: int = 2**31 - 1) -> int:
    """An int of at least `least` that an axis may have as its size; ValueError for others."""
    count = static_int(value, name, what)
    if not least <= count <= most:
        raise ValueError(f"{name}: {what} {value!r} given; an int from {least} to {most} is "
                         "required.")
    return count


def options(name: str, what: str, option: T, allowed: Collection[object]) -> T:
    """One of the allowed values, numbers, text or None; ValueError for others."""
    if not isinstance(option, (str, int, float, type(None))) or option not in allowed:
        raise ValueError(f"{name}: {what} {option!r} given; one of "
                         f"{', '.join(map(repr, allowed))} is required.")
    return option


def bounds_of(name: str, what: str, bounds: object, cast: Callable[[object, str], T] = real_number
              ) -> tuple[T, T]:
    """A pair of numbers (lowest, highest); ValueError for anything but a pair."""
    pair = sequence(bounds, name, what)
    if len(pair) != 2:
        raise ValueError(f"{name}: {what} {bounds!r} given; a pair (lowest, highest) is required.")
    low, high = [cast(value, f"{name}: {what}") for value in pair]
    return low, high
