"""Arithmetic and comparison, elementwise as NumPy's functions of the same names.

Each is one lax operation after promotion (`promote.binary`), or a few where NumPy's rule for signs,
booleans or complex numbers differs from the machine's.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from ..base.lib import ArrayImpl
from ..base.typing import Array, ArrayLike
from ..core.ir import Literal
from ..core.trace import literal
from ..lax import arithmetic, bits, families, transcendental
from ..lax.arithmetic import (
    RoundingMethod,
    div,
    div_p,
    integer_pow,
    is_finite,
    max_p,
    min_p,
    mul,
    mul_p,
    neg,
    rem,
    sub,
    sub_p,
)
from ..lax.barriers import stop_gradient
from ..lax.bits import (
    and_p,
    or_p,
    shift_right_logical,
)
from ..lax.comparison import eq, eq_p, ge_p, gt_p, le_p, lt, lt_p, ne, ne_p
from ..lax.families import add_p
from ..transforms.fused import fused
from ..types import dtypes
from ..types.shape import broadcast_shapes
from .eager import eager_binary, eager_named, eager_unary
from .options import with_options
from .promote import (
    BOOL,
    array_args,
    binary,
    binary_inexact,
    broadcast_to,
    choose,
    convert,
    promote,
    promote_inexact,
    to_array,
    unary,
)

__all__ = [
    "abs", "absolute", "add", "conj", "conjugate", "divide", "divmod", "equal", "fabs",
    "float_power", "floor_divide", "fmax", "fmin", "fmod", "greater", "greater_equal", "imag",
    "less", "less_equal", "maximum", "minimum", "mod", "multiply", "negative", "not_equal",
    "positive", "pow", "power", "real", "reciprocal", "remainder", "sign", "square", "subtract",
    "true_divide",
]


def kind_of(x: Any) -> str:
    """The kind of an operand's dtype, as `dtypes.scalar_kind` names it."""
    return dtypes.scalar_kind(x.dtype)


class _Lexicographic:
    """Complex numbers compared by real part, then by imaginary part."""

    __slots__ = ("prim",)

    def __init__(self, prim: Any) -> None:
        self.prim = prim

    def bind(self, x: Any, y: Any) -> Any:
        xr, yr = arithmetic.real(x), arithmetic.real(y)
        return bits.bitwise_or(
            bits.bitwise_and(eq(xr, yr), self.prim.bind(arithmetic.imag(x), arithmetic.imag(y))),
            bits.bitwise_and(ne(xr, yr), self.prim.bind(xr, yr)))


class _LexicographicExtremum(_Lexicographic):
    """The larger or smaller of two complex numbers; NaN if the first or both are NaN."""

    __slots__ = ()

    def bind(self, x: Any, y: Any) -> Any:
        shape = broadcast_shapes(x.shape, y.shape)
        x, y = broadcast_to(x, shape), broadcast_to(y, shape)
        first = bits.bitwise_or(super().bind(x, y), ne(x, x))
        return choose(first, x, y)


_ADD_BOOL, _MUL_BOOL = ("b", or_p), ("b", and_p)
_LT, _LE = ("c", _Lexicographic(lt_p)), ("c", _Lexicographic(le_p))
_GT, _GE = ("c", _Lexicographic(gt_p)), ("c", _Lexicographic(ge_p))
_MAX = ("c", _LexicographicExtremum(gt_p))
_MIN = ("c", _LexicographicExtremum(lt_p))


# Arithmetic --------------------------------------------------------------------------------------

@eager_binary
def add(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x + y`, broadcast; on booleans, or.

    >>> import olympus.numpy as jnp
    >>> jnp.add(jnp.arange(3), 1.5)
    Array([1.5, 2.5, 3.5], dtype=float32, weak_type=True)
    """
    return binary(add_p, x, y, _ADD_BOOL)


@eager_binary
def subtract(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x - y`, broadcast; booleans are refused, as in NumPy."""
    return binary(sub_p, x, y)


@eager_binary
def multiply(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x * y`, broadcast; on booleans, and."""
    return binary(mul_p, x, y, _MUL_BOOL)


@eager_binary
def divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 / x2` as floating or complex numbers; integers become float32.

    >>> import olympus.numpy as jnp
    >>> jnp.divide(jnp.arange(3), 2)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return binary_inexact(div_p, x1, x2)


def _refuse_complex(name: str, x: Any) -> None:
    if kind_of(x) == "c":
        raise TypeError(f"{name}: operands of dtype {x.dtype} given; real numbers are required, "
                        "because complex numbers have no order; use real and imag.")


def as_number(x: Any) -> Any:
    """Booleans as int32."""
    return convert(x, np.dtype("int32")) if x.dtype == BOOL else x


def zero_of(x: Any) -> Literal:
    return literal(0, x.dtype)


@eager_binary(composite=True)
def floor_divide(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 // x2`, rounded towards minus infinity; integers stay integers.

    By 0 it is 0 for integers, infinite or NaN for floats. Where an operand is infinite it is the
    quotient itself, as the array API standard has it; NumPy has NaN and -1 there, as `divmod` has.
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


def _float_divmod(x: Any, y: Any) -> tuple[Any, Any]:
    """Quotient rounded down, and the remainder with the sign of `y`: CPython's float divmod.

    The quotient by zero is that of `x / y`: infinite, or NaN; if 0 it has the sign of `x / y`.
    """
    rest, plain = rem(x, y), div(x, y)
    quotient = div(sub(x, rest), y)
    adjust = bits.bitwise_and(ne(rest, zero_of(x)), ne(arithmetic.sign(y), arithmetic.sign(rest)))
    one = convert(adjust, x.dtype, x.aval.weak_type and y.aval.weak_type)
    quotient = arithmetic.round(sub(quotient, one), RoundingMethod.TO_NEAREST_EVEN)
    signed = choose(eq(quotient, zero_of(x)), mul(plain, zero_of(x)), quotient)
    by_zero = broadcast_to(eq(y, zero_of(y)), quotient.shape)
    return choose(by_zero, plain, signed), _signed_rest(rest, y)


def _signed_rest(rest: Any, y: Any) -> Any:
    """The truncated remainder moved to the sign of `y`, that of a remainder 0 too."""
    zero = zero_of(rest)
    none, below = eq(rest, zero), lt(y, zero)
    adjust = bits.bitwise_and(bits.bitwise_not(none), ne(lt(rest, zero), below))
    moved = families.add(rest, y)
    shape = moved.shape
    rest = broadcast_to(rest, shape)
    found = choose(broadcast_to(adjust, shape), moved, rest)
    if kind_of(rest) != "f":
        return found
    # 0 of the sign of y, with the derivative of the remainder: s - 0 is s.
    sign = choose(broadcast_to(below, shape), literal(-0.0, rest.dtype, rest.aval.weak_type), zero)
    return choose(broadcast_to(none, shape), sub(sign, sub(stop_gradient(rest), rest)), found)


def _nonzero_divisor(y: Any) -> Any:
    """Integer divisors with 0 replaced by 1, so that x % 0 is 0."""
    if isinstance(y, Literal):
        return y if y.val != 0 else literal(1, y.dtype)
    one = broadcast_to(literal(1, y.dtype, y.aval.weak_type), y.shape)
    return choose(eq(y, zero_of(y)), one, y)


@eager_binary(composite=True)
def remainder(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """`x1 % x2` with the sign of `x2`; 0 for a zero integer divisor.

    >>> import olympus.numpy as jnp
    >>> jnp.remainder(jnp.array([-3, 3]), 2)
    Array([1, 1], dtype=int32)
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
    """The remainder of division rounded towards zero; it has the sign of `x1`."""
    x, y = promote("fmod", x1, x2)
    _refuse_complex("fmod", x)
    x, y = as_number(x), as_number(y)
    return rem(x, _nonzero_divisor(y) if dtypes.is_integer(x.dtype) else y)


@eager_binary(composite=True)
def divmod(x1: ArrayLike, x2: ArrayLike, /) -> tuple[Array, Array]:
    """The pair `(x1 // x2, x1 % x2)`."""
    x, y = promote("divmod", x1, x2)
    if kind_of(x) == "f":
        return _float_divmod(x, y)
    return floor_divide(x, y), remainder(x, y)


def _power(x1: Any, x2: Any) -> Any:
    if isinstance(x2, (int, np.integer)) and not isinstance(x2, (bool, np.bool_)):
        (x,) = array_args("power", x1)
        exponent = operator.index(x2)
        if x.dtype != BOOL and type(x2) is int:
            if dtypes.is_integer(x.dtype) and exponent < 0:
                raise TypeError(f"power: {x.aval} to the power {exponent} given; integers cannot "
                                "be raised to negative powers; convert the base to float.")
            return integer_pow(x, exponent)
    x, y = promote("power", x1, x2)
    if not dtypes.is_inexact(x.dtype):
        return _integer_power(as_number(x), as_number(y))
    return transcendental.pow(x, y)


@fused(static=("exponent",), inline=True)
def _integer_exponent(x: Any, *, exponent: int) -> Any:
    return _power(x, exponent)


_any_exponent = eager_binary(_power)


def power(x1: ArrayLike, x2: ArrayLike, /, *rest: Any, **options: Any) -> Array:
    """`x1 ** x2`, broadcast; a Python int exponent multiplies, exactly.

    Raises TypeError for an integer base with a negative Python int exponent.

    >>> import olympus.numpy as jnp
    >>> jnp.power(jnp.arange(4), 2)
    Array([0, 1, 4, 9], dtype=int32)
    """
    if rest or options:
        return with_options(power, (x1, x2, *rest), options)
    return _integer_exponent(x1, exponent=x2) if type(x2) is int else _any_exponent(x1, x2)


power.while_tracing = _power


@fused
def _integer_power(x: Any, y: Any) -> Any:
    """Repeated squaring over the bits of the exponent; unspecified for negative exponents."""
    shape = broadcast_shapes(x.shape, y.shape)
    x, y = broadcast_to(x, shape), broadcast_to(y, shape)
    one = literal(1, x.dtype)
    weak = x.aval.weak_type and y.aval.weak_type
    x, found = convert(x, x.dtype, weak), broadcast_to(literal(1, x.dtype, weak), shape)
    width = dtypes.itemsize_bits(x.dtype) - (kind_of(x) == "i")
    for bit in range(width):
        found = choose(eq(bits.bitwise_and(y, one), one), mul(found, x), found)
        if bit + 1 < width:
            x, y = mul(x, x), shift_right_logical(y, one)
    return found


@eager_binary
def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x ** y` as floating or complex numbers."""
    return transcendental.pow(*promote_inexact("float_power", x, y))


@eager_unary
def square(x: ArrayLike, /) -> Array:
    """`x * x`."""
    (x,) = array_args("square", x)
    if dtypes.is_inexact(x.dtype):
        return arithmetic.square(x)
    x = as_number(x)
    return mul(x, x)


@eager_unary
def reciprocal(x: ArrayLike, /) -> Array:
    """`1 / x`; unlike in NumPy, of integers as float32."""
    (x,) = promote_inexact("reciprocal", x)
    return div(literal(1, x.dtype, x.aval.weak_type), x)


@eager_unary
def negative(x: ArrayLike, /) -> Array:
    """`-x`; booleans are refused, use `logical_not`."""
    return unary(neg, x)


def positive(x: ArrayLike, /, *rest: Any, **options: Any) -> Array:
    """`+x`: the operand itself."""
    if rest or options:
        return with_options(positive, (x, *rest), options)
    return to_array(array_args("positive", x)[0])


@eager_unary
def absolute(x: ArrayLike, /) -> Array:
    """The absolute value: of complex numbers real, of booleans and unsigned integers themselves."""
    (x,) = array_args("absolute", x)
    return to_array(x) if kind_of(x) in ("b", "u") else arithmetic.abs(x)


@eager_unary
def fabs(x: ArrayLike, /) -> Array:
    """The absolute value of real numbers, as floating point."""
    (x,) = promote_inexact("fabs", x)
    _refuse_complex("fabs", x)
    return arithmetic.abs(x)


@eager_unary
def sign(x: ArrayLike, /) -> Array:
    """-1, 0 or 1; of complex numbers `x / abs(x)`, 0 at 0; NaN of NaN."""
    (x,) = array_args("sign", x)
    found = arithmetic.sign(x)      # -0.0 of -0.0
    return choose(eq(x, zero_of(x)), zero_of(x), found) if kind_of(x) in "fc" else found


@eager_binary
def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The larger of two elements; NaN if either is."""
    return binary(max_p, x, y, _MAX)


@eager_binary
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """The smaller of two elements; NaN if either is."""
    return binary(min_p, x, y, _MIN)


def _of_known(name: str, larger: Any, order: Any, x1: Any, x2: Any) -> Any:
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
    """The larger of two elements; the other one if one is NaN.

    >>> import olympus.numpy as onp
    >>> onp.fmax(onp.array([1., onp.nan]), onp.array([onp.nan, 3.]))
    Array([1., 3.], dtype=float32)
    """
    return _of_known("fmax", gt_p, _GT, x1, x2)


@eager_named
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The smaller of two elements; the other one if one is NaN."""
    return _of_known("fmin", lt_p, _LT, x1, x2)


# Comparison --------------------------------------------------------------------------------------

@eager_binary(wraps=False)
def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x == y`, broadcast: bool[...]."""
    return binary(eq_p, x, y)


@eager_binary(wraps=False)
def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x != y`, broadcast: bool[...]."""
    return binary(ne_p, x, y)


@eager_binary(wraps=False)
def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x < y`, broadcast; complex numbers in lexicographic order."""
    return binary(lt_p, x, y, _LT)


@eager_binary(wraps=False)
def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x <= y`, broadcast; complex numbers in lexicographic order."""
    return binary(le_p, x, y, _LE)


@eager_binary(wraps=False)
def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x > y`, broadcast; complex numbers in lexicographic order."""
    return binary(gt_p, x, y, _GT)


@eager_binary(wraps=False)
def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """`x >= y`, broadcast; complex numbers in lexicographic order."""
    return binary(ge_p, x, y, _GE)


# Complex parts -----------------------------------------------------------------------------------

@eager_unary
def _real(x: Any) -> Any:
    return arithmetic.real(x)


def real(val: ArrayLike, /) -> Array:
    """The real part; of real numbers themselves."""
    x = val if type(val) is ArrayImpl else array_args("real", val)[0]
    return _real(x) if kind_of(x) == "c" else to_array(x)


@fused
def imag(val: ArrayLike, /) -> Array:
    """The imaginary part; 0 of real numbers."""
    (x,) = array_args("imag", val)
    if kind_of(x) == "c":
        return arithmetic.imag(x)
    return to_array(broadcast_to(literal(0, x.dtype), x.shape))


@eager_unary
def _conjugate(x: Any) -> Any:
    return arithmetic.conj(x)


def conjugate(x: ArrayLike, /, *rest: Any, **options: Any) -> Array:
    """The complex conjugate; real numbers themselves."""
    if rest or options:
        return with_options(conjugate, (x, *rest), options)
    x = x if type(x) is ArrayImpl else array_args("conjugate", x)[0]
    return _conjugate(x) if kind_of(x) == "c" else to_array(x)


# Other names -------------------------------------------------------------------------------------

abs = absolute
conj = conjugate
mod = remainder
pow = power
true_divide = divide
