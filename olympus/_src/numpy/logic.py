"""Logic of truth values, and operations on the bits of integers, elementwise."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.typing import Array, ArrayLike
from ..lax import bits
from ..lax.bits import (
    and_p,
    or_p,
    population_count,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    xor_p,
)
from ..lax.comparison import eq, ne
from .eager import eager_binary, eager_unary
from .promote import BOOL, array_args, binary, convert, promote, unary
from .ufuncs import absolute, as_number, kind_of, zero_of

__all__ = [
    "bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift", "bitwise_not",
    "bitwise_or", "bitwise_right_shift", "bitwise_xor", "invert", "left_shift", "logical_and",
    "logical_not", "logical_or", "logical_xor", "right_shift",
]


def as_bool(x: Any) -> Any:
    """An operand as booleans: whether elements are not zero."""
    return x if x.dtype == BOOL else ne(x, zero_of(x))


def _logical(prim: Any, name: str, x: Any, y: Any) -> Any:
    # An int has a truth value even if no dtype holds it.
    x, y = array_args(name, *[bool(v) if type(v) is int else v for v in (x, y)])
    return binary(prim, as_bool(x), as_bool(y))


@eager_binary
def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether both elements are not zero."""
    return _logical(and_p, "logical_and", x, y)


@eager_binary
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether either element is not zero."""
    return _logical(or_p, "logical_or", x, y)


@eager_binary
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether exactly one of the elements is not zero."""
    return _logical(xor_p, "logical_xor", x, y)


@eager_unary
def logical_not(x: ArrayLike, /) -> Array:
    """Whether elements are zero."""
    (x,) = array_args("logical_not", x)
    return bits.bitwise_not(x) if x.dtype == BOOL else eq(x, zero_of(x))


@eager_binary
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x & y` of integers or booleans."""
    return binary(and_p, x, y)


@eager_binary
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x | y` of integers or booleans."""
    return binary(or_p, x, y)


@eager_binary
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x ^ y` of integers or booleans."""
    return binary(xor_p, x, y)


@eager_unary
def invert(x: ArrayLike, /) -> Array:
    """`~x` of integers or booleans."""
    return unary(bits.bitwise_not, x)


@eager_unary(composite=True)
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of one bits of the absolute value: uint8[...]."""
    (x,) = array_args("bitwise_count", x)
    return convert(population_count(absolute(as_number(x))), np.dtype("uint8"))


def _shift_operands(name: str, x: Any, y: Any) -> list[Any]:
    return [as_number(z) for z in promote(name, x, y)]


@eager_binary
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x << y` of integers; 0 where `y` is at least the number of bits."""
    return shift_left(*_shift_operands("left_shift", x, y))


@eager_binary
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 >> x2` of integers: the sign is kept."""
    x, y = _shift_operands("right_shift", x1, x2)
    return (shift_right_logical if kind_of(x) == "u" else shift_right_arithmetic)(x, y)


# Other names -------------------------------------------------------------------------------------

bitwise_invert = bitwise_not = invert
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift
