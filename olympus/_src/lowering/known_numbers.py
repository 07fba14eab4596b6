"""Numbers of constants that lowering knows, in the arithmetic of their dtypes."""

from __future__ import annotations

import functools
import math
from typing import TypeAlias

import numpy as np

from ..base.typing import ArrayLike, DType
from ..types import dtypes
from ..types.avals import Aval
from ..types.shape import SymbolicDim

_SEARCHED = 1 << 16     # elements of a closed-over array; a larger one may have any

Number: TypeAlias = float | complex | None      # None: not known


@functools.cache
def _limits(dtype: DType) -> tuple[float, float]:
    """The least normal and the greatest number of a dtype."""
    info = dtypes.finfo(dtype)
    return float(info.smallest_normal), float(info.max)


def has_no_reciprocal(numbers: ArrayLike | SymbolicDim, dtype: DType) -> bool:
    """Whether the reciprocal of a finite number, or one of an array, is no normal number."""
    if not dtypes.is_inexact(dtype) or isinstance(numbers, SymbolicDim):    # sizes have
        return False
    least, most = _limits(dtype)
    if type(numbers) is float or type(numbers) is int:
        size = abs(numbers)
        return 0 < size < math.inf and not 1 / most <= size <= 1 / least
    sizes = np.abs(np.asarray(numbers, np.complex128 if dtypes.is_complex(dtype) else np.float64))
    sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
    return bool(((sizes > 1 / least) | (sizes < 1 / most)).any())


def has_reciprocals(divisors: ArrayLike, aval: Aval) -> bool:
    """Whether XLA may multiply by the reciprocals of an array, as all are normal numbers."""
    return np.size(divisors) <= _SEARCHED and not has_no_reciprocal(divisors, aval.dtype)


def is_nan(number: Number) -> bool:
    return number is not None and number != number


def is_infinite(number: Number) -> bool:
    return number is not None and np.isinf(number)


def rounded(number: complex, dtype: DType) -> complex:
    """A number as a dtype holds it."""
    with np.errstate(over="ignore"):
        return dtype.type(number).item()


def converted(number: Number, dtype: DType) -> Number:
    """A number in another dtype; None where no integer is near it, and platforms differ."""
    if number is None:
        return None
    if isinstance(number, complex) and not dtypes.is_complex(dtype):
        number = number.real
    if dtype == np.bool_:
        return float(number != 0)
    if dtypes.is_integer(dtype):
        info = dtypes.iinfo(dtype)
        real = number.real
        return float(math.trunc(real)) if info.min <= real <= info.max else None
    return rounded(number, dtype)


def repeated_number(array: ArrayLike) -> Number:
    """The number that each element of an array is, if it is one for all."""
    x = np.asarray(array).reshape(-1)
    if not x.size:
        return None
    first = x[0]
    if first != first:
        return math.nan if (x != x).all() else None
    bits = first.tobytes()
    if x.size > 1 and (x.size > _SEARCHED or x[-1].tobytes() != bits
                       or x.tobytes() != bits * x.size):
        return None
    return first.item()


def ratio(x: complex, y: complex) -> Number:
    """x / y, also by zero: NaN where both are, else infinite; None of complex numbers by zero."""
    if y:
        return x / y
    if isinstance(x, complex) or isinstance(y, complex):
        return None
    return math.nan if x == 0 or x != x else math.copysign(math.inf, x) * math.copysign(1, y)


def size(number: complex) -> float:
    """The absolute value; infinite where Python's `abs` of a complex number overflows."""
    return math.hypot(number.real, number.imag)


def is_safe(a: Number, b: Number, dtype: DType) -> bool:
    """Whether a product of constants is a normal number, or one of them is 0."""
    if a is None or b is None:
        return False
    if isinstance(a * b, complex) and (a * b).imag:     # the parts of a product cancel
        return False
    least, most = _limits(dtype)
    return least <= size(a * b) <= most or a == 0 or b == 0


def is_moderate(number: complex, dtype: DType) -> bool:
    """Whether a product with a number, or a quotient, is at most an eighth of the exponents away
    from overflow or underflow if the other factor is not.
    """
    most = _limits(dtype)[1] ** 0.125
    return 1 / most <= size(number) <= most


def is_joint(a: Number, b: Number, dtype: DType) -> bool:
    """Whether terms of one sign have an exact sum: others may have been there to round."""
    if a is None or b is None or isinstance(a, complex) or isinstance(b, complex):
        return False
    # The rounding error of a sum, in float64: Knuth (1997), Seminumerical Algorithms, 4.2.2,
    # theorem B.
    part = dtypes.to_real_dtype(dtype).type
    x, y = float(part(a)), float(part(b))
    s = x + y
    rest = (x - (s - (s - x))) + (y - (s - x))
    return x * y >= 0 and rest == 0 and abs(s) <= _limits(dtype)[1] and float(part(s)) == s


class Inexact(dict[Aval, bool]):
    """Whether an aval's dtype is floating or complex, by aval, whose hash is quicker."""

    def __missing__(self, aval: Aval) -> bool:
        inexact = self[aval] = dtypes.is_inexact(aval.dtype)
        return inexact


class Reciprocals(dict[tuple[float, Aval], bool]):
    """Whether XLA may multiply by the reciprocal of a number, by number and aval.

    A number without one is behind a fence already (`Emitter.scalar`).
    """

    def __missing__(self, key: tuple[float, Aval]) -> bool:
        has_one = self[key] = not has_no_reciprocal(key[0], key[1].dtype)
        return has_one
