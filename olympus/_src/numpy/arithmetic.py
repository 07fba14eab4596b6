"""Arithmetic and comparison, elementwise as NumPy's functions of the same names.

Each is one lax operation after promotion (`promote.binary`), or a few where NumPy's rule for signs,
booleans or complex numbers differs from the machine's.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..base.docstrings import complete_docstrings, described_like
from ..base.lib import ArrayImpl, is_readable
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, SupportsDType
from ..core.ir import Literal
from ..core.primitive import Primitive
from ..core.trace import literal
from ..jit.fused import begin_with, fused
from ..lax import arithmetic, bits, families, transcendental
from ..lax.arithmetic import (
    RoundingMethod, div, div_p, integer_pow, is_finite, max_p, min_p, mul, mul_p, neg, rem, sub,
    sub_p,
)
from ..lax.barriers import stop_gradient
from ..lax.bits import and_p, or_p, shift_right_logical
from ..lax.comparison import eq, eq_p, ge_p, gt_p, le_p, lt, lt_p, ne, ne_p
from ..lax.families import add_p
from ..runtime.eager import FAILURES
from ..types import dtypes
from ..types.shape import broadcast_shapes
from .eager import as_ufunc, eager_binary, eager_named, eager_unary
from .options import with_options
from .promote import (
    BOOL, array_args, binary, binary_inexact, broadcast_to, choose, convert, promote,
    promote_inexact, to_array, unary,
)


def kind_of(x: SupportsDType) -> str:
    """The kind of an operand's dtype, as `dtypes.scalar_kind` names it."""
    return dtypes.scalar_kind(x.dtype)


class _Lexicographic:
    """Complex numbers compared by real part, then by imaginary part."""

    __slots__ = ("prim",)

    def __init__(self, prim: Primitive) -> None:
        self.prim = prim

    def bind(self, x: Array, y: Array) -> Array:
        xr, yr = arithmetic.real(x), arithmetic.real(y)
        return bits.bitwise_or(
            bits.bitwise_and(eq(xr, yr), self.prim.bind(arithmetic.imag(x), arithmetic.imag(y))),
            bits.bitwise_and(ne(xr, yr), self.prim.bind(xr, yr)))


_ADD_BOOL, _MUL_BOOL = ("b", or_p), ("b", and_p)
_LT, _LE = ("c", _Lexicographic(lt_p)), ("c", _Lexicographic(le_p))
_GT, _GE = ("c", _Lexicographic(gt_p)), ("c", _Lexicographic(ge_p))


# Arithmetic --------------------------------------------------------------------------------------

@eager_binary
def add(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x + y`, element by element; of booleans, whether either is true.

    Returns: An array of the broadcast shape and the promoted dtype; integers wrap around at its
      limits. Where NumPy widens to float64 beside an int32, the float's own width stays here.

    >>> onp.add(onp.arange(3), onp.float16(1.5))
    Array([1.5, 2.5, 3.5], dtype=float16)
    >>> onp.add(onp.array([100], "int8"), 100)
    Array([-56], dtype=int8)
    """
    return binary(add_p, x, y, _ADD_BOOL)


@eager_binary
def subtract(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x - y`, element by element.

    Args: x, y: arrays or numbers that broadcast. Two booleans are a TypeError, as in NumPy: use
        `logical_xor`.
    Returns: An array of the broadcast shape and the promoted dtype; integers, unsigned ones too,
      wrap around.

    >>> onp.subtract(onp.array([[1], [5]]), onp.array([1, 2]))
    Array([[ 0, -1],
           [ 4,  3]], dtype=int32)
    """
    return binary(sub_p, x, y)


@eager_binary
def multiply(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x * y`, element by element; of booleans, whether both are true.

    Returns: An array of the broadcast shape and the promoted dtype; integers wrap around. 0 times
      infinity is NaN.

    >>> onp.multiply(onp.array([1., 2.]), onp.array([[3.], [4.]]))
    Array([[3., 6.],
           [4., 8.]], dtype=float32)
    """
    return binary(mul_p, x, y, _MUL_BOOL)


@eager_binary
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 / x2`, element by element, never rounded to integers.

    Args: x1, x2: arrays or numbers that broadcast, of any dtype.
    Returns: Floating or complex numbers of the broadcast shape; integers and booleans become the
      default float (float32, where NumPy has float64). By 0 the quotient is infinite, or NaN for 0
      / 0; no warning is given.

    >>> onp.divide(onp.array([1, -1, 0]), 0)
    Array([ inf, -inf,  nan], dtype=float32)
    """
    return binary_inexact(div_p, x1, x2)


def _refuse_complex(name: str, x: Array) -> None:
    if kind_of(x) == "c":
        raise TypeError(f"{name}: operands of dtype {x.dtype} given; real numbers are required, "
                        "because complex numbers have no order; use real and imag.")


def as_number(x: Array) -> Array:
    """Booleans as int32."""
    return convert(x, np.dtype("int32")) if x.dtype == BOOL else x


def zero_of(x: Array) -> Literal:
    return literal(0, x.dtype, x.aval.weak_type)


@eager_binary(composite=True)
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 // x2`: the quotient rounded towards minus infinity.

    By 0 it is 0 for integers, infinite or NaN for floats. Where an operand is infinite it is the
    quotient itself, as the array API standard has it; NumPy has NaN and -1 there, as `divmod` has.

    Returns: An array of the promoted dtype: integers stay integers, booleans become int32. The
      derivative is 0.

    >>> onp.floor_divide(onp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    x, y = promote("floor_divide", x1, x2)
    _refuse_complex("floor_divide", x)
    x, y = as_number(x), as_number(y)
    kind = kind_of(x)
    if kind == "f":
        quotient, plain = _float_divmod(x, y)[0], div(x, y)
        unbounded = bits.bitwise_not(bits.bitwise_and(is_finite(x), is_finite(y)))
        return choose(broadcast_to(unbounded, plain.shape), plain, quotient)
    quotient = div(x, _nonzero_divisor(y))
    none = broadcast_to(eq(y, zero_of(y)), quotient.shape)
    if kind == "i":
        differ = bits.bitwise_and(ne(arithmetic.sign(x), arithmetic.sign(y)),
                                  ne(rem(x, _nonzero_divisor(y)), zero_of(x)))
        quotient = sub(quotient, convert(differ, x.dtype, x.aval.weak_type))
    return choose(none, zero_of(x), quotient)


def _float_divmod(x: Array, y: Array) -> tuple[Array, Array]:
    """Quotient rounded down, and the remainder with the sign of `y`: CPython's float divmod.

    The quotient by zero is as in `x / y`: infinite, or NaN; if 0 it has the sign of `x / y`.
    """
    rest, plain = rem(x, y), div(x, y)
    quotient = div(sub(x, rest), y)
    adjust = bits.bitwise_and(ne(rest, zero_of(x)), ne(arithmetic.sign(y), arithmetic.sign(rest)))
    one = convert(adjust, x.dtype, x.aval.weak_type and y.aval.weak_type)
    quotient = arithmetic.round(sub(quotient, one), RoundingMethod.TO_NEAREST_EVEN)
    signed = choose(eq(quotient, zero_of(x)), mul(plain, zero_of(x)), quotient)
    by_zero = broadcast_to(eq(y, zero_of(y)), quotient.shape)
    return choose(by_zero, plain, signed), _signed_rest(rest, y)


def _signed_rest(rest: Array, y: Array) -> Array:
    """The truncated remainder moved to the sign of `y`, a zero's sign too."""
    zero = zero_of(rest)
    none, below = eq(rest, zero), lt(y, zero)
    adjust = bits.bitwise_and(bits.bitwise_not(none), ne(lt(rest, zero), below))
    moved = families.add(rest, y)
    shape = moved.shape
    rest = broadcast_to(rest, shape)
    remainder = choose(broadcast_to(adjust, shape), moved, rest)
    if kind_of(rest) != "f":
        return remainder
    # Zero with the sign of y; its derivative is the remainder's.
    sign = choose(broadcast_to(below, shape), literal(-0.0, rest.dtype, rest.aval.weak_type), zero)
    return choose(broadcast_to(none, shape), sub(sign, sub(stop_gradient(rest), rest)), remainder)


def _nonzero_divisor(y: Array) -> Array:
    """Integer divisors with 0 replaced by 1, so that x % 0 is 0."""
    if isinstance(y, Literal):
        return y if y.raw != 0 else literal(1, y.dtype, y.aval.weak_type)
    one = broadcast_to(literal(1, y.dtype, y.aval.weak_type), y.shape)
    return choose(eq(y, zero_of(y)), one, y)


@eager_binary(composite=True)
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of `floor_divide`: `x1 % x2`, with the sign of `x2`.

    Returns: An array of the promoted dtype. By 0 it is NaN for floats, 0 for integers. A remainder
      0 has the sign of `x2` too. The derivative by `x1` is 1 everywhere.

    >>> onp.remainder(onp.array([7, -7]), onp.array([-3, 3]))
    Array([-2,  2], dtype=int32)
    """
    x, y = promote("remainder", x1, x2)
    _refuse_complex("remainder", x)
    x, y = as_number(x), as_number(y)
    if dtypes.is_integer(x.dtype):
        y = _nonzero_divisor(y)
    rest = rem(x, y)
    return rest if kind_of(x) == "u" else _signed_rest(rest, y)


@eager_binary(composite=True)
def fmod(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The remainder of division rounded towards zero, as in C: with the sign of `x1`.

    Returns: An array of the promoted dtype; by 0 NaN for floats, 0 for integers.

    >>> onp.fmod(onp.array([7, -7]), 3), onp.remainder(onp.array([7, -7]), 3)
    (Array([ 1, -1], dtype=int32), Array([1, 2], dtype=int32))
    """
    x, y = promote("fmod", x1, x2)
    _refuse_complex("fmod", x)
    x, y = as_number(x), as_number(y)
    return rem(x, _nonzero_divisor(y) if dtypes.is_integer(x.dtype) else y)


@eager_binary(composite=True)
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The pair `(x1 // x2, x1 % x2)`, in one pass for floats.

    Returns: Two arrays of the promoted dtype, as for `floor_divide` and `remainder`; for infinite
      floats the quotient is NumPy's.

    >>> onp.divmod(onp.array([7, -7]), 3)
    (Array([ 2, -3], dtype=int32), Array([1, 2], dtype=int32))
    """
    x, y = promote("divmod", x1, x2)
    if kind_of(x) == "f":
        return _float_divmod(x, y)
    return floor_divide(x, y), remainder(x, y)


def _known_integer(x: Any) -> int | None:
    """The value of an integer array of rank 0 that costs nothing to read."""
    if not isinstance(x, (np.integer, np.ndarray, ArrayImpl)) or x.ndim or not dtypes.is_integer(
            x.dtype):
        return None
    if isinstance(x, ArrayImpl) and not (is_readable(x) and x.platform() == "cpu"):
        return None
    return operator.index(x)


def _power_of_operands(x1: ArrayLike, x2: Any) -> Array:
    kind = type(x2)
    exponent = x2 if kind is int else _known_integer(x2)
    if exponent is not None:
        (x,) = array_args("power", x1)
        if kind is not int:
            own = literal(exponent, x2.dtype, getattr(x2, "weak_type", False))
            x = promote("power", x, own)[0]
            x = convert(x, x.dtype, x.aval.weak_type and own.aval.weak_type)
        if x.dtype != BOOL:
            if dtypes.is_integer(x.dtype) and exponent < 0:
                raise TypeError(f"power: {x.aval} to the power {exponent} given; integers cannot "
                                "be raised to negative powers; convert the base to float.")
            return integer_pow(x, exponent)
    x, y = promote("power", x1, x2)
    if not dtypes.is_inexact(x.dtype):
        return _integer_power(as_number(x), as_number(y))
    return transcendental.pow(x, y)


@fused(static=("exponent",), inline=True)
def _known_exponent(x: ArrayLike, *, exponent: float) -> Array:
    return _power_of_operands(x, exponent)


# Eagerly, powers by such halves are of programs that know them: products and roots.
_HALVES = frozenset(np.arange(-7.5, 8, 0.5).tolist())


_any_exponent = eager_binary(_power_of_operands)


@as_ufunc
def power(x1: ArrayLike, x2: ArrayLike, /, *rest: object, **options: object) -> Array:
    """`x1 ** x2`: each base to the power of its exponent.

    A Python int as exponent becomes that many multiplications, so it is exact for integers and has
    derivatives at 0. Anything to the power 0 is 1, NaN too. Negative floats to a fractional power
    are NaN; make them complex first.

    Args:
      x1: bases.
      x2: exponents that broadcast with the bases. A negative Python int with an integer base is a
        TypeError; in integer arrays, whose values a shape must not depend on, negative exponents
        give unspecified numbers, where NumPy raises.
    Returns: An array of the promoted dtype; integers wrap around, booleans become int32.

    >>> onp.power(onp.arange(4), 2)
    Array([0, 1, 4, 9], dtype=int32)
    >>> onp.power(2., onp.array([-1, 0.5]))
    Array([0.5      , 1.4142135], dtype=float32)
    """
    try:
        if rest or options:
            return with_options(power, (x1, x2, *rest), options)
        if type(x2) is int or type(x2) is float and x2 in _HALVES:
            return _known_exponent(x1, exponent=x2)
        return _any_exponent(x1, x2)
    except FAILURES as error:
        begin_with(power, error)
        raise


power.while_tracing = _power_of_operands


@fused
def _integer_power(x: Array, y: Array) -> Array:
    """Repeated squaring over the bits of the exponent; unspecified for negative exponents."""
    shape = broadcast_shapes(x.shape, y.shape)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    one = literal(1, x.dtype)
    x, power = convert(x, x.dtype), broadcast_to(one, shape)
    width = dtypes.itemsize_bits(x.dtype) - (kind_of(x) == "i")
    for bit in range(width):
        power = choose(eq(bits.bitwise_and(y, one), one), mul(power, x), power)
        if bit + 1 < width:
            x, y = mul(x, x), shift_right_logical(y, one)
    return power


@eager_binary
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x ** y` in floating or complex numbers, so that integers take negative exponents.

    Returns: An array of the promoted inexact dtype: float32 for integers, where NumPy has at least
      float64.

    >>> onp.float_power(onp.arange(3), -1)
    Array([inf, 1. , 0.5], dtype=float32)
    """
    return transcendental.pow(*promote_inexact("float_power", x, y))


@eager_unary
def square(x: ArrayLike, /) -> Array:
    """`x * x`.

    Returns: An array of that shape and dtype; integers wrap around, booleans become int32. For the
      squared size of complex numbers multiply by `conjugate`.

    >>> onp.square(onp.array([1 + 2j, 3]))
    Array([-3.+4.j,  9.+0.j], dtype=complex64)
    """
    (x,) = array_args("square", x)
    if dtypes.is_inexact(x.dtype):
        return arithmetic.square(x)
    x = as_number(x)
    return mul(x, x)


@eager_unary
def reciprocal(x: ArrayLike, /) -> Array:
    """`1 / x`; infinite, with the sign of the zero, at ±0.

    Returns: Floating or complex numbers of that shape. NumPy divides integers as integers, which
      gives 0 for most; here they become the default float.

    >>> onp.reciprocal(onp.array([2, 0]))
    Array([0.5, inf], dtype=float32)
    """
    (x,) = promote_inexact("reciprocal", x)
    return div(literal(1, x.dtype, x.aval.weak_type), x)


@eager_unary
def negative(x: ArrayLike, /) -> Array:
    """`-x`.

    Args: x: array or number of any shape. Booleans are a TypeError, as in NumPy: use `logical_not`.
    Returns: An array of the same dtype; unsigned integers wrap around, and so does the smallest
      signed one.

    >>> onp.negative(onp.array([1., 0.])), onp.negative(onp.array([1], "uint8"))
    (Array([-1., -0.], dtype=float32), Array([255], dtype=uint8))
    """
    return unary(neg, x, "negative")


@as_ufunc
def positive(x: ArrayLike, /, *rest: object, **options: object) -> Array:
    """`+x`: the operand, as an array.

    Args: x: array or number of any dtype and shape; NumPy refuses booleans.
    Returns: The same array: immutable as it is, it is not copied.

    >>> onp.positive(onp.array([-1, 2]))
    Array([-1,  2], dtype=int32)
    """
    try:
        if rest or options:
            return with_options(positive, (x, *rest), options)
        return to_array(array_args("positive", x)[0])
    except FAILURES as error:
        begin_with(positive, error)
        raise


@eager_unary
def absolute(x: ArrayLike, /) -> Array:
    """The distance from 0: of complex numbers `sqrt(re**2 + im**2)`, without overflow.

    Returns: An array of the same dtype, of complex numbers their real one; booleans and unsigned
      integers as they are. The smallest signed integer is its own. The derivative at 0 is 1 for
      real numbers, 0 for complex ones.

    >>> onp.absolute(onp.array([3 + 4j, -1]))
    Array([5., 1.], dtype=float32)
    """
    (x,) = array_args("absolute", x)
    return to_array(x) if kind_of(x) in ("b", "u") else arithmetic.abs(x)


@eager_unary
def fabs(x: ArrayLike, /) -> Array:
    """The absolute value of real numbers, always in floating point.

    Args: x: array or number of any shape; complex ones are a TypeError, see `absolute`.
    Returns: Floats of that shape; integers become the default float.

    >>> onp.fabs(onp.array([-1, 2]))
    Array([1., 2.], dtype=float32)
    """
    (x,) = promote_inexact("fabs", x)
    _refuse_complex("fabs", x)
    return arithmetic.abs(x)


@eager_unary
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1; of complex numbers the direction, `x / abs(x)`, and 0 at 0.

    Args: x: array or number of any numeric dtype and shape.
    Returns: An array of the same dtype; NaN of NaN, 0 of -0. The derivative is 0 everywhere.

    >>> onp.sign(onp.array([-2., -0., onp.nan])), onp.sign(onp.array([3 + 4j]))
    (Array([-1.,  0., nan], dtype=float32), Array([0.6+0.8j], dtype=complex64))
    """
    (x,) = array_args("sign", x)
    signs = arithmetic.sign(x)      # -0.0 of -0.0
    return choose(eq(x, zero_of(x)), zero_of(x), signs) if kind_of(x) in "fc" else signs


@eager_binary
def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The larger of two elements; NaN if either is, see `fmax`.

    Args: x, y: arrays or numbers that broadcast, of any dtype; complex ones are compared by real
        part, then by imaginary part.
    Returns: An array of the broadcast shape and promoted dtype. Where both are equal, each gets
      half of the derivative.

    >>> onp.maximum(onp.array([1., onp.nan, 3.]), 2.)
    Array([ 2., nan,  3.], dtype=float32)
    """
    return binary(max_p, x, y)


@eager_binary
@described_like(maximum)
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The smaller of two elements; NaN if either is, see `fmin`.

    >>> onp.minimum(onp.array([1., onp.nan, 3.]), 2.)
    Array([ 1., nan,  2.], dtype=float32)
    """
    return binary(min_p, x, y)


def _of_known(name: str, larger: Primitive, order: tuple[str, _Lexicographic], x1: ArrayLike,
              x2: ArrayLike) -> Array:
    """The first operand unless the second one is larger, or the first one NaN."""
    x, y = promote(name, x1, x2)
    shape = broadcast_shapes(x.shape, y.shape)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    second = binary(larger, y, x, order)
    if dtypes.is_inexact(x.dtype):
        second = bits.bitwise_or(second, ne(x, x))
    return choose(second, y, x)


@eager_named
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The larger of two elements; where one is NaN, the other one.

    Args: x1, x2: arrays or numbers that broadcast, of any dtype; complex ones as for `maximum`.
    Returns: An array of the broadcast shape and promoted dtype; NaN only where both are. Where both
      are equal, `x1` gets the derivative.

    >>> onp.fmax(onp.array([1., onp.nan]), onp.array([onp.nan, 3.]))
    Array([1., 3.], dtype=float32)
    """
    return _of_known("fmax", gt_p, _GT, x1, x2)


@eager_named
@described_like(fmax)
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of two elements; where one is NaN, the other one.

    Args: x1, x2: arrays or numbers that broadcast, of any dtype; complex ones as for `minimum`.

    >>> onp.fmin(onp.array([1., onp.nan, 5.]), 3.)
    Array([1., 3., 3.], dtype=float32)
    """
    return _of_known("fmin", lt_p, _LT, x1, x2)


# Comparison --------------------------------------------------------------------------------------

@eager_binary(wraps=False)
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x == y`, element by element.

    Args: x, y: arrays or numbers that broadcast; they are compared in the promoted dtype, except
        that a Python int that it does not hold is equal to nothing.
    Returns: bool of the broadcast shape. NaN equals nothing, itself included; 0 equals -0.

    >>> onp.equal(onp.array([0., onp.nan]), onp.array([-0., onp.nan]))
    Array([ True, False], dtype=bool)
    """
    return binary(eq_p, x, y)


@eager_binary(wraps=False)
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x != y`, element by element: where `equal` is false.

    Args: x, y: arrays or numbers that broadcast, compared as by `equal`.
    Returns: bool of the broadcast shape; true for NaN, which `x != x` finds.

    >>> onp.not_equal(onp.arange(3), onp.array([[0], [2]]))
    Array([[False,  True,  True],
           [ True,  True, False]], dtype=bool)
    """
    return binary(ne_p, x, y)


@eager_binary(wraps=False)
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x < y`, element by element.

    Args: x, y: arrays or numbers that broadcast. Complex ones are compared by real part, then by
        imaginary part. Python ints count with their own value, though the other dtype may not hold
        it.

    >>> onp.less(onp.arange(3), 1), onp.less(onp.array([5], "uint8"), -1)
    (Array([ True, False, False], dtype=bool), Array([False], dtype=bool))
    """
    return binary(lt_p, x, y, _LT)


@eager_binary(wraps=False)
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x <= y`, element by element.

    Args: x, y: arrays or numbers that broadcast, compared as by `less`.

    >>> onp.less_equal(onp.array([1., 2., onp.nan]), 1.)
    Array([ True, False, False], dtype=bool)
    """
    return binary(le_p, x, y, _LE)


@eager_binary(wraps=False)
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x > y`, element by element.

    Args: x, y: arrays or numbers that broadcast, compared as by `less`.

    >>> onp.greater(onp.array([1 + 2j, 1 + 3j]), 1 + 2j)
    Array([False,  True], dtype=bool)
    """
    return binary(gt_p, x, y, _GT)


@eager_binary(wraps=False)
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x >= y`, element by element.

    Args: x, y: arrays or numbers that broadcast, compared as by `less`.

    >>> onp.greater_equal(onp.arange(3), 1)
    Array([False,  True,  True], dtype=bool)
    """
    return binary(ge_p, x, y, _GE)


# Complex parts -----------------------------------------------------------------------------------

@eager_unary
def _real(x: Array) -> Array:
    return arithmetic.real(x)


@api_boundary
def real(val: ArrayLike, /) -> Array:
    """The real part of complex numbers; real numbers as they are.

    Returns: An array of the real dtype: float32 of complex64. It is a value, not a view to assign
      to as in NumPy: use `lax.complex` to make a new one.

    >>> onp.real(onp.array([1 + 2j, 3j]))
    Array([1., 0.], dtype=float32)
    """
    x = val if type(val) is ArrayImpl else array_args("real", val)[0]
    return _real(x) if kind_of(x) == "c" else to_array(x)


@fused
def imag(val: ArrayLike, /) -> Array:
    """The imaginary part of complex numbers; 0 of real numbers.

    Returns: An array of the real dtype: float32 of complex64, the same one of real numbers.

    >>> onp.imag(onp.array([1 + 2j, 3])), onp.imag(onp.array([1, 2]))
    (Array([2., 0.], dtype=float32), Array([0, 0], dtype=int32))
    """
    (x,) = array_args("imag", val)
    if kind_of(x) == "c":
        return arithmetic.imag(x)
    return to_array(broadcast_to(zero_of(x), x.shape))


@eager_unary
def _conjugate(x: Array) -> Array:
    return arithmetic.conj(x)


@as_ufunc
def conjugate(x: ArrayLike, /, *rest: object, **options: object) -> Array:
    """The complex conjugate: the imaginary part with the other sign; real numbers as they are.

    Returns: An array of the same dtype.

    >>> onp.conjugate(onp.array([1 + 2j, 3]))
    Array([1.-2.j, 3.-0.j], dtype=complex64)
    """
    try:
        if rest or options:
            return with_options(conjugate, (x, *rest), options)
        x = x if type(x) is ArrayImpl else array_args("conjugate", x)[0]
        return _conjugate(x) if kind_of(x) == "c" else to_array(x)
    except FAILURES as error:
        begin_with(conjugate, error)
        raise


# Other names -------------------------------------------------------------------------------------

abs = absolute
conj = conjugate
mod = remainder
pow = power
true_divide = divide


complete_docstrings(globals(), {
    "x, y": "arrays or numbers that broadcast, of any dtype.",
    "x": "array or number of any dtype and shape.",
    "x1, x2":
        "arrays or numbers that broadcast, of real dtypes; complex ones are a TypeError.",
    "val": "array or number of any dtype and shape.",
}, returns="bool of the broadcast shape; false where either is NaN.")
