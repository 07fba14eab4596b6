"""Logic of truth values, and operations on the bits of integers, elementwise."""

from __future__ import annotations

import numpy as np

from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike
from ..core.primitive import Primitive
from ..core.trace import literal
from ..lax import bits
from ..lax.bits import (
    and_p, or_p, population_count, shift_left, shift_right_arithmetic, shift_right_logical, xor_p,
)
from ..lax.comparison import eq
from .arithmetic import absolute, as_number, kind_of
from .eager import eager_binary, eager_unary
from .promote import BOOL, array_args, as_bool, binary, convert, promote, unary


def _logical(prim: Primitive, name: str, x: ArrayLike, y: ArrayLike) -> Array:
    # An int has a truth value even if no dtype holds it.
    x, y = array_args(name, *[bool(v) if type(v) is int else v for v in (x, y)])
    return binary(prim, as_bool(x), as_bool(y))


@eager_binary
def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether both elements are true, that is not 0; NaN is true.

    Args: x, y: arrays or numbers that broadcast, of any dtype. Both are evaluated, unlike by
        Python's `and`.

    >>> onp.logical_and(onp.array([0, 1, 2]), onp.array([1., 0., -1.]))
    Array([False, False,  True], dtype=bool)
    """
    return _logical(and_p, "logical_and", x, y)


@eager_binary
def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether at least one element is true, that is not 0; NaN is true.

    Args: x, y: arrays or numbers that broadcast, of any dtype.

    >>> onp.logical_or(onp.array([0, 0, 2]), onp.array([0., 1., 1.]))
    Array([False,  True,  True], dtype=bool)
    """
    return _logical(or_p, "logical_or", x, y)


@eager_binary
def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Whether exactly one of the elements is true, that is not 0; NaN is true.

    Args: x, y: arrays or numbers that broadcast, of any dtype.

    >>> onp.logical_xor(onp.array([0, 0, 2]), onp.array([0., 1., 1.]))
    Array([False,  True, False], dtype=bool)
    """
    return _logical(xor_p, "logical_xor", x, y)


@eager_unary
def logical_not(x: ArrayLike, /) -> Array:
    """Whether elements are false, that is 0.

    Args: x: array or number of any dtype and shape.
    Returns: bool of that shape; NaN is true, so its negation is False. For the bits of integers see
      `invert`.

    >>> onp.logical_not(onp.array([0., 0.5, onp.nan]))
    Array([ True, False, False], dtype=bool)
    """
    (x,) = array_args("logical_not", x)
    return bits.bitwise_not(x) if x.dtype == BOOL else eq(x, literal(0, x.dtype))


@eager_binary
def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x & y`: the bits that are 1 in both; of booleans, whether both are true.

    Returns: An array of the broadcast shape and promoted dtype.

    >>> onp.bitwise_and(onp.array([12, 10]), 6)
    Array([4, 2], dtype=int32)
    """
    return binary(and_p, x, y)


@eager_binary
@described_like(bitwise_and)
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x | y`: the bits that are 1 in either; of booleans, whether either is true.

    >>> onp.bitwise_or(onp.array([12, 10]), 6)
    Array([14, 14], dtype=int32)
    """
    return binary(or_p, x, y)


@eager_binary
@described_like(bitwise_and)
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x ^ y`: the bits that differ; of booleans, whether exactly one is true.

    >>> onp.bitwise_xor(onp.array([12, 10]), 6)
    Array([10, 12], dtype=int32)
    """
    return binary(xor_p, x, y)


@eager_unary
def invert(x: ArrayLike, /) -> Array:
    """`~x`: every bit flipped; of booleans, the negation.

    Args: x: array or number of integers or booleans, of any shape; floats are a TypeError.
    Returns: An array of the same dtype: `-x - 1` for signed integers, the largest number minus x
      for unsigned.

    >>> onp.invert(onp.array([5, -1])), onp.invert(onp.array([5], "uint8"))
    (Array([-6,  0], dtype=int32), Array([250], dtype=uint8))
    """
    return unary(bits.bitwise_not, x, "invert")


@eager_unary(composite=True)
def bitwise_count(x: ArrayLike, /) -> Array:
    """The number of one bits of the absolute value.

    Args: x: array or number of integers or booleans, of any shape.
    Returns: uint8 of that shape.

    >>> onp.bitwise_count(onp.array([-7, 255]))
    Array([3, 8], dtype=uint8)
    """
    (x,) = array_args("bitwise_count", x)
    return convert(population_count(absolute(as_number(x))), np.dtype("uint8"))


def _shift_operands(name: str, x: ArrayLike, y: ArrayLike) -> list[Array]:
    return [as_number(z) for z in promote(name, x, y)]


@eager_binary
def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x << y`: x times 2 to the power y; bits beyond the dtype are lost.

    Args: x, y: arrays or numbers that broadcast, of integers or booleans; booleans become int32.
    Returns: An array of the promoted dtype. 0 where y is negative or at least the number of bits:
      defined, where C leaves it to the processor.

    >>> onp.left_shift(onp.array([1, 3]), onp.array([4, 40]))
    Array([16,  0], dtype=int32)
    """
    return shift_left(*_shift_operands("left_shift", x, y))


@eager_binary
def right_shift(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 >> x2`: divided by 2 to the power x2, rounded towards minus infinity; the sign stays.

    Args: x1, x2: arrays or numbers that broadcast, of integers or booleans; booleans become int32.
    Returns: An array of the promoted dtype. Shifted by at least the number of bits it is 0, or -1
      for negative numbers.

    >>> onp.right_shift(onp.array([9, -9, -9]), onp.array([1, 1, 40]))
    Array([ 4, -5, -1], dtype=int32)
    """
    x, y = _shift_operands("right_shift", x1, x2)
    return (shift_right_logical if kind_of(x) == "u" else shift_right_arithmetic)(x, y)


# Other names -------------------------------------------------------------------------------------

bitwise_invert = bitwise_not = invert
bitwise_left_shift = left_shift
bitwise_right_shift = right_shift


complete_docstrings(globals(), {
    "x, y": "arrays or numbers that broadcast, of integers or booleans; floats are a TypeError.",
}, returns="bool of the broadcast shape.")
