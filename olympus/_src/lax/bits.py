"""Operations on the bits of integers (and on booleans), elementwise."""

from __future__ import annotations

from typing import Any

from ..base.typing import Array, ArrayLike
from ..types import dtypes
from .families import BITS, INTEGER, Elementwise, binary, elementwise

__all__ = ["and_p", "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "clz", "clz_p",
           "not_p", "or_p", "population_count", "population_count_p", "shift_left",
           "shift_left_p", "shift_right_arithmetic", "shift_right_arithmetic_p",
           "shift_right_logical", "shift_right_logical_p", "xor_p"]

and_p = elementwise("and", "stablehlo.and", BITS)
or_p = elementwise("or", "stablehlo.or", BITS)
xor_p = elementwise("xor", "stablehlo.xor", BITS)
not_p = elementwise("not", "stablehlo.not", BITS)
shift_left_p = elementwise("shift_left", "stablehlo.shift_left", INTEGER)
shift_right_logical_p = elementwise("shift_right_logical", "stablehlo.shift_right_logical", INTEGER)
shift_right_arithmetic_p = elementwise("shift_right_arithmetic",
                                       "stablehlo.shift_right_arithmetic", INTEGER)
population_count_p = elementwise("population_count", "stablehlo.popcnt", INTEGER)


class CountLeadingZeros(Elementwise):
    """Of unsigned integers: XLA folds those of negative constants to negative numbers."""

    def lower(self, b: Any, *xs: Any, accuracy: Any = None) -> Any:
        (aval,) = b.avals_in
        unsigned = aval.update(dtype=dtypes.as_dtype(f"uint{dtypes.itemsize_bits(aval.dtype)}"))
        x = b.op("stablehlo.bitcast_convert", xs, None, unsigned)
        return b.op("stablehlo.bitcast_convert", [b.op(self.op, [x], None, unsigned)])


clz_p = CountLeadingZeros("clz", "stablehlo.count_leading_zeros", INTEGER, None)


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """x & y, of integers or booleans of one dtype and shape."""
    return binary(and_p, x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """x | y, of integers or booleans of one dtype and shape."""
    return binary(or_p, x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """x ^ y, of integers or booleans of one dtype and shape."""
    return binary(xor_p, x, y)


def bitwise_not(x: ArrayLike) -> Array:
    """~x, of integers or booleans."""
    return not_p.bind(x)


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x << y, of integers; 0 where y is negative or not less than the number of bits."""
    return binary(shift_left_p, x, y)


def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y with zeros shifted in; 0 where y is negative or not less than the number of bits."""
    return binary(shift_right_logical_p, x, y)


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y with copies of the sign bit shifted in."""
    return binary(shift_right_arithmetic_p, x, y)


def population_count(x: ArrayLike) -> Array:
    """The number of bits set in each integer.

    >>> import olympus
    >>> olympus.lax.population_count(olympus.numpy.array([0, 7, -1]))
    Array([ 0,  3, 32], dtype=int32)
    """
    return population_count_p.bind(x)


def clz(x: ArrayLike) -> Array:
    """The number of leading zero bits of each integer."""
    return clz_p.bind(x)
