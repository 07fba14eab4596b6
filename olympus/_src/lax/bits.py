"""Operations on the bits of integers (and on booleans), elementwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike, IrValue
from ..core.primitive import Builder
from ..types import dtypes
from .families import BITS, INTEGER, Elementwise, binary, elementwise

if TYPE_CHECKING:
    from .accuracy import AccuracyLike

and_p = elementwise("and", "stablehlo.and", BITS, arity=2, algebra="mask", numpy_name="bitwise_and")
or_p = elementwise("or", "stablehlo.or", BITS, arity=2, algebra="mask", numpy_name="bitwise_or")
xor_p = elementwise("xor", "stablehlo.xor", BITS, arity=2, algebra="exclusive_or",
                    numpy_name="bitwise_xor")
not_p = elementwise("not", "stablehlo.not", BITS)
shift_left_p = elementwise("shift_left", "stablehlo.shift_left", INTEGER, arity=2,
                           algebra="comparison")
shift_right_logical_p = elementwise("shift_right_logical", "stablehlo.shift_right_logical", INTEGER,
                                    arity=2, algebra="comparison")
shift_right_arithmetic_p = elementwise("shift_right_arithmetic",
                                       "stablehlo.shift_right_arithmetic", INTEGER, arity=2,
                                       algebra="comparison")


class OfUnsigned(Elementwise):
    """A count of bits, which XLA does not find right of negative numbers, as unsigned ones.

    It folds leading zeros of negative constants to negative numbers, and widens int4 by the sign.
    """

    def lower(self, b: Builder, *xs: IrValue, accuracy: AccuracyLike = None) -> IrValue:
        (aval,) = b.avals_in
        if dtypes.scalar_kind(aval.dtype) == "u":
            return b.op(self.op, xs)
        unsigned = aval.update(dtype=dtypes.as_dtype(f"uint{dtypes.itemsize_bits(aval.dtype)}"))
        x = b.op("stablehlo.bitcast_convert", xs, None, unsigned)
        return b.op("stablehlo.bitcast_convert", [b.op(self.op, [x], None, unsigned)])


clz_p = OfUnsigned("clz", "stablehlo.count_leading_zeros", INTEGER, None, pace=4.0)
population_count_p = OfUnsigned("population_count", "stablehlo.popcnt", INTEGER, None, pace=4.0)


def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """x & y on the bits of integers, `and` of booleans.

    >>> lax.bitwise_and(onp.array([12, 10], "uint8"), 6)
    Array([4, 2], dtype=uint8)
    """
    return binary(and_p, x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """x | y on the bits of integers, `or` of booleans.

    >>> print(lax.bitwise_or(onp.array([1, 4]), 2))
    [3 6]
    """
    return binary(or_p, x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """x ^ y: the bits that are set in one of the integers only; `!=` of booleans.

    >>> print(lax.bitwise_xor(onp.array([12, 10]), 6))
    [10 12]
    """
    return binary(xor_p, x, y)


def bitwise_not(x: ArrayLike) -> Array:
    """All bits of x flipped: ~x = -x - 1 of signed integers, `not` of booleans.

    Args: x: integers or booleans, any shape.
    Returns: An array of the shape and dtype of x.

    >>> print(lax.bitwise_not(onp.array([0, 5])), lax.bitwise_not(True))
    [-1 -6] False
    """
    return not_p.bind(x)


def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """x << y: each integer moved y bits up, zeros coming in.

    Args: x, y: integers of one dtype and shape; rank 0 and axes of size 1 are broadcast.

    Returns:
      An array of that dtype and shape; 0 where y is negative or not less than the number of bits.

    >>> print(lax.shift_left(onp.array([1, 3], "uint8"), onp.array([3, 7], "uint8")))
    [  8 128]
    """
    return binary(shift_left_p, x, y)


@described_like(shift_left)
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y with zeros coming in: the bits are read as an unsigned integer.

    >>> print(lax.shift_right_logical(onp.array([-8, 8], "int8"), onp.array([1, 1], "int8")))
    [124   4]
    """
    return binary(shift_right_logical_p, x, y)


def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """x >> y with copies of the sign bit coming in: floor(x / 2ʸ) of signed integers.

    Args: x, y: integers of one dtype and shape; rank 0 and axes of size 1 are broadcast.
    Returns: An array of that dtype and shape; where y is negative or not less than the number of
      bits, every bit is the sign's: 0 or -1.

    >>> print(lax.shift_right_arithmetic(onp.array([-8, 8, -8]), onp.array([1, 1, 40])))
    [-4  4 -1]
    """
    return binary(shift_right_arithmetic_p, x, y)


def population_count(x: ArrayLike) -> Array:
    """The number of bits set in each integer.

    Args: x: integers, any shape; negative ones in two's complement.
    Returns: An array of the shape and dtype of x.

    >>> olympus.lax.population_count(olympus.numpy.array([0, 7, -1]))
    Array([ 0,  3, 32], dtype=int32)
    """
    return population_count_p.bind(x)


def clz(x: ArrayLike) -> Array:
    """The number of leading zero bits of each integer; the dtype's width for 0.

    Args: x: integers, any shape; negative ones begin with a 1 bit, so their count is 0.
    Returns: An array of the shape and dtype of x.

    >>> print(lax.clz(onp.array([1, 255, -1], "int32")))
    [31 24  0]
    """
    return clz_p.bind(x)


complete_docstrings(globals(), {
    "x, y": "integers or booleans of one dtype and shape; rank 0 and axes of size 1 are broadcast.",
}, returns="An array of that dtype and shape; it has no derivative.")
