"""Arithmetic, signs, rounding and the parts of complex numbers, elementwise."""

from __future__ import annotations

import enum
import math
import operator
from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ..base.docstrings import described_like
from ..base.typing import Array, ArrayLike, DType, DTypeLike, IrValue, Params
from ..base.util import lazy_module, member
from ..core.ir import Literal
from ..core.primitive import Builder, Linear, Tangent
from ..core.trace import literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray
from .bits import bitwise_and, bitwise_or, bitwise_xor
from .comparison import eq, ge, gt, lt, ne, select
from .convert import bitcast_convert_type_p, convert_element_type
from .creation import full_like
from .families import (
    ANY, BOOL, COMPLEX, FLOATING, INEXACT, NUMERIC, REAL, Combine, Elementwise, add, add_p, binary,
    check_dtypes, elementwise, operand,
)
from .shape import zeros_of

# Sums and products -------------------------------------------------------------------------------

class Product(Elementwise):
    """x * y; the tangent of x * x is one product, twice."""

    algebra = "product"

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Array, Tangent]:
        (x, y), (t, s) = primals, tangents
        if x is not y or t is not s:
            return super().jvp(primals, tangents)
        half = self.bind(t, x)
        return self.bind(x, x), add_p.bind(half, half)


class Quotient(Elementwise):
    """x / y; of integers by zero -1: all bits are set.

    LLVM (jaxlib 0.10.2) divides by zero itself, and so ends the process, where it finds while
    compiling that both integers are numbers. So none is divided by zero.
    """

    scalars = single = True
    divides = True
    algebra = "quotient"
    fusion = "costly"
    pace = 1.0

    def lower(self, b: Builder, x: IrValue, y: IrValue) -> IrValue:
        aval, divisor = b.avals_out[0], b.eqn.invars[1]
        number = divisor.raw if type(divisor) is Literal else None
        # XLA would multiply by the constant's reciprocal, which gives zeros other signs.
        parts = dtypes.is_complex(aval.dtype)
        hidden = parts and number is not None and b.module.fences
        x, y = b.expand([x, b.fence(y) if hidden else y])
        info = dtypes.iinfo(aval.dtype) if dtypes.is_integer(aval.dtype) else None
        if info is None or isinstance(number, int) and number:
            out = b.op(self.op, [x, y])
        else:
            zero, one = b.full(aval, 0), b.full(aval, 1)
            by_zero = b.compare("EQ", y, zero, "SIGNED" if info.min else "UNSIGNED",
                                aval.update(dtype=dtypes.as_dtype(bool)))
            out = b.op(self.op, [x, b.op("stablehlo.select", [by_zero, one, y])])
            out = b.op("stablehlo.select", [by_zero, self.by_zero(b, x), out])
        if info is not None or parts:
            b.emitted = None    # no recipe: it depends on whether the divisor is a number
        return out

    def by_zero(self, b: Builder, x: IrValue) -> IrValue:
        """The result for integers where the divisor is 0."""
        aval, info = b.avals_out[0], dtypes.iinfo(b.avals_out[0].dtype)
        return b.full(aval, -1 if info.min else info.max)


class Remainder(Quotient):
    """The remainder of x / y with the sign of x; of integers by zero x."""

    algebra = "comparison"
    pace = 20.0

    def by_zero(self, b: Builder, x: IrValue) -> IrValue:
        return x


class Negation(Elementwise):
    """-x; of 16 bits stored on GPUs: a kernel of NVIDIA's would take -(-32768) for 32768 in what
    reads it (jaxlib 0.11.2).
    """

    algebra = "negation"

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        out = b.op(self.op, [x])
        dtype = b.avals_out[0].dtype
        if dtypes.is_integer(dtype) and dtype.itemsize == 2 and b.platform not in ("cpu", "tpu"):
            return b.ops("stablehlo.optimization_barrier", [out]).results[0]
        return out


neg_p = Negation("neg", "stablehlo.negate", NUMERIC, [lambda t, z, x: neg_p.bind(t)], (0,),
                 makes_nan=False)
# A tangent has the type of its operand, so nothing needs promotion.
sub_p = elementwise("sub", "stablehlo.subtract", NUMERIC,
                    lambda t, z, x, y: t, lambda t, z, x, y: neg_p.bind(t), linear=(0, 1),
                    additive=True, algebra="difference", numpy_name="subtract")
mul_p = Product("mul", "stablehlo.multiply", NUMERIC,
                [lambda t, z, x, y: mul_p.bind(t, y), lambda t, z, x, y: mul_p.bind(x, t)], (0, 1),
                numpy_name="multiply")
div_p = Quotient("div", "stablehlo.divide", NUMERIC, [
    lambda t, z, x, y: div_p.bind(t, y), lambda t, z, x, y: mul(t, div(neg(z), y))], (0,),
                 kernels_from=4096, kernels=lazy_module("olympus._src.lax.kernels.integers"),
                 numpy_name="divide")
rem_p = Remainder("rem", "stablehlo.remainder", REAL, [
    lambda t, z, x, y: t, lambda t, z, x, y: neg(mul(t, round_to_zero(div(x, y))))],
    emitters_agree=False, pace=20.0, kernels_from=4096,
    kernels=lazy_module("olympus._src.lax.kernels.elementwise"))


def neg(x: ArrayLike) -> Array:
    """-x of each element; of unsigned integers modulo their range.

    Args: x: numbers (not bool), any shape.
    Returns: An array of the shape and dtype of x. The sign of zeros flips too, unlike in 0 - x.

    >>> print(lax.neg(onp.array([1., 0.])), lax.neg(onp.uint8(1)))
    [-1. -0.] 255
    """
    return neg_p.bind(x)


def sub(x: ArrayLike, y: ArrayLike) -> Array:
    """x - y elementwise, without promotion: dtypes and shapes have to agree.

    Args: x, y: numeric arrays (not bool) of one dtype and shape; rank 0 and axes of size 1 are
        broadcast, a Python number takes the other's dtype.
    Returns: An array of that dtype and shape; integers wrap around.

    >>> print(lax.sub(onp.array([1, 3], "uint8"), 2))
    [255   1]
    """
    return binary(sub_p, x, y)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """x * y elementwise, without promotion: dtypes and shapes have to agree.

    Args:
      x, y: numeric arrays (not bool) of one dtype and shape; rank 0 and axes of size 1 are
        broadcast, a Python number takes the other's dtype.
      out_dtype: convert both to it first, so that the product is not rounded or wrapped between.
    Returns: An array of that shape, of `out_dtype` or the operands' dtype; integers wrap around.

    >>> x = onp.array([100, 3], "int8")
    >>> print(lax.mul(x, x), lax.mul(x, x, out_dtype="int32"))
    [16  9] [10000     9]
    """
    if out_dtype is not None:
        dtype = dtypes.requested_dtype("mul", out_dtype)
        x, y = convert_element_type(x, dtype), convert_element_type(y, dtype)
    return binary(mul_p, x, y)


def div(x: ArrayLike, y: ArrayLike) -> Array:
    """x / y elementwise, without promotion; of integers rounded towards zero.

    Args:

      x, y: numeric arrays (not bool) of one dtype and shape; rank 0 and axes of size 1 are
        broadcast, a Python number takes the other's dtype.

    Returns: An array of that dtype, also of integers: unlike `numpy.divide` it does not make them
      floats. Integers over 0 are -1 (all bits set); floats follow IEEE 754: ±inf, or NaN of 0 / 0.

    >>> print(lax.div(onp.array([7, -7]), 2), lax.div(7., 2.))
    [ 3 -3] 3.5
    """
    return binary(div_p, x, y)


def rem(x: ArrayLike, y: ArrayLike) -> Array:
    """The remainder of x / y rounded towards zero; it has the sign of x. Integers x rem 0 are x.

    Args: x, y: real numbers of one dtype and shape; rank 0 and axes of size 1 are broadcast.
    Returns: An array of that dtype and shape; NaN of floats where y is 0. `olympus.numpy.remainder`
      has the sign of y, as Python's %.

    >>> olympus.lax.rem(-7, 3)
    Array(-1, dtype=int32, weak_type=True)
    """
    return binary(rem_p, x, y)


class Square(Elementwise):
    """x * x."""

    algebra = "square"
    def lower(self, b: Builder, x: IrValue) -> IrValue:
        return b.op("stablehlo.multiply", [x, x])


class OneMinusSquare(Elementwise):
    """(1 - x)(1 + x): exact near 1, where 1 - x * x cancels."""

    algebra = "called"
    pace = 200.0
    def lower(self, b: Builder, x: IrValue) -> IrValue:
        return b.inline(lambda x: mul(sub(1, x), add(1, x)), x)


class IntegerPow(Elementwise):
    """x to a Python int, by repeated squaring."""

    algebra = "integer_power"
    pace = 1.0

    def hands_on(self, params: Params) -> bool:
        return params["y"] != 0     # to the power 0 all is 1

    def infer(self, x: ShapedArray, *, y: int) -> ShapedArray:
        if y < 0 and dtypes.is_integer(x.dtype):
            raise TypeError(f"integer_pow: {x} to the power {y} given;\n  Integers cannot be "
                            "raised to negative powers; convert the operand to a floating dtype.")
        return super().infer(x)

    def lower(self, b: Builder, x: IrValue, *, y: int) -> IrValue:
        aval = b.avals_out[0]
        if y == 0:
            return b.full(aval, 1)
        result: Any = None
        power, rest = x, operator.abs(y)
        while rest:
            if rest & 1:
                result = power if result is None else b.op("stablehlo.multiply", [result, power])
            rest >>= 1
            power = b.op("stablehlo.multiply", [power, power]) if rest else power
        return b.op("stablehlo.divide", [b.full(aval, 1), result]) if y < 0 else result


def _integer_pow_partial(t: Array, z: Array, x: Array, *, y: int) -> Array | None:
    """t · y xʸ⁻¹, without a power where that is constant."""
    if y in (0, 1):
        return None if y == 0 else t
    return mul(t, mul(y, x if y == 2 else integer_pow(x, y - 1)))


square_p = Square("square", "square", NUMERIC, [lambda t, z, x: mul(t, mul(2, x))])
one_minus_square_p = OneMinusSquare("one_minus_square", "one_minus_square", INEXACT,
                                    [lambda t, z, x: mul(t, mul(-2, x))])
integer_pow_p = IntegerPow("integer_pow", "integer_pow", NUMERIC, [_integer_pow_partial])


def square(x: ArrayLike) -> Array:
    """x * x of each element; of complex numbers z², not |z|².

    Args: x: numbers (not bool), any shape; integers wrap around.
    Returns: An array of the shape and dtype of x. The derivative is 2x.

    >>> print(lax.square(onp.array([3, -2])), lax.square(2j))
    [9 4] (-4+0j)
    """
    return square_p.bind(x)


def one_minus_square(x: ArrayLike) -> Array:
    """1 - x² as (1 - x)(1 + x), which does not cancel near |x| = 1.

    Args: x: floats or complex numbers, any shape.
    Returns: An array of the shape and dtype of x. The derivative is -2x.

    >>> x = onp.float32(1 - 2 ** -20)
    >>> print(lax.one_minus_square(x), 1 - x * x)
    1.9073477e-06 1.9073486e-06
    """
    return one_minus_square_p.bind(x)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """xʸ for a Python int y; 0⁰ = 1. Raises TypeError for a negative y of integers.

    Args:
      x: numbers (not bool), any shape; floating or complex for a negative y.
      y: the exponent, static: powers are multiplied out, about 2 log₂ y products.
    Returns: An array of the shape and dtype of x; integers wrap around.

    >>> olympus.grad(lambda x: olympus.lax.integer_pow(x, 3))(2.0)
    Array(12., dtype=float32, weak_type=True)
    """
    try:
        return integer_pow_p.bind(x, y=operator.index(y))
    except TypeError:
        if hasattr(y, "__index__") and not hasattr(y, "shape"):
            raise
        raise TypeError(f"integer_pow: exponent {y!r} given; a Python int is required; use "
                        "lax.pow for other exponents.") from None


def reciprocal(x: ArrayLike) -> Array:
    """1 / x of each element; ±inf of floats ±0.

    Args: x: floats or complex numbers, any shape; integers are refused.
    Returns: An array of the shape and dtype of x. The derivative is -1 / x².

    >>> print(lax.reciprocal(onp.array([4., -0.])))
    [0.25 -inf]
    """
    return integer_pow(x, -1)


# Order -------------------------------------------------------------------------------------------

class Extremum(Elementwise):
    """The larger or smaller operand; NaN if one is. Complex numbers are ordered by (re, im)."""

    before: Combine
    scalars = single = True
    makes_nan = False
    algebra = "extremum"

    def __init__(self, name: str, op: str, before: Combine, numpy_name: str) -> None:
        super().__init__(name, op, ANY, [lambda t, z, x, y: self._share(t, z, x, y),
                                         lambda t, z, x, y: self._share(t, z, y, x)],
                         numpy_name=numpy_name)
        self.before = before

    def lower(self, b: Builder, *xs: IrValue) -> IrValue:
        if b.avals_in[0].dtype.kind == "c":
            return b.inline(self.complex_choice, *xs)
        return b.op(self.op, b.expand(xs))

    def complex_choice(self, x: Array, y: Array) -> Array:
        """The operand that comes first by real, then imaginary part, or is the first NaN."""
        xr, yr = real(x), real(y)
        first = bitwise_or(self.before(xr, yr),
                           bitwise_and(eq(xr, yr), self.before(imag(x), imag(y))))
        return select(bitwise_or(ne(x, x), bitwise_and(eq(y, y), first)), x, y)


    def _share(self, t: Array, z: Array, x: Array, y: Array) -> Array | None:
        """t where x is the result z, half of it where y is so too, else 0; NaN where z is NaN."""
        dtype = typeof(z).dtype
        if not dtypes.is_inexact(dtype):
            return None
        one, half, nan = (operand(value, z) for value in (1.0, 0.5, float("nan")))
        # Operands are compared with one another, and not with z: XLA may compute them twice, and
        # an operand that is rounded otherwise then is neither.
        left_out, equal = (ne(x, z), eq(y, z)) if dtypes.is_complex(dtype) else (
            self.before(y, x), eq(x, y))
        weight = select(ne(z, z), nan, select(equal, half, one))
        # Tangents left out are not multiplied by 0: they may be infinite.
        return select(bitwise_and(left_out, eq(z, z)), zeros_of(typeof(t)), mul(t, weight))


max_p = Extremum("max", "stablehlo.maximum", gt, "maximum")
min_p = Extremum("min", "stablehlo.minimum", lt, "minimum")


def max(x: ArrayLike, y: ArrayLike) -> Array:
    """The larger of x and y, NaN if one is; equal operands share the derivative by halves.

    Complex numbers are compared by real part, then by imaginary part; of booleans it is `or`.

    Args: x, y: arrays of one dtype and shape; rank 0 and axes of size 1 are broadcast.
    Returns: An array of that dtype and shape.

    >>> print(lax.max(onp.array([1., 5., float("nan")]), 3.))
    [ 3.  5. nan]
    """
    return binary(max_p, x, y)


@described_like(max)
def min(x: ArrayLike, y: ArrayLike) -> Array:
    """The smaller of x and y, NaN if one is; equal operands share the derivative by halves.

    Complex numbers are compared by real part, then by imaginary part; of booleans it is `and`.

    >>> print(lax.min(onp.array([1., 5., float("nan")]), 3.))
    [ 1.  3. nan]
    """
    return binary(min_p, x, y)


class NextAfter(Elementwise):
    """The neighbour of x1 in the direction of x2; it has no derivative."""

    jvp = None  # pyright: ignore[reportAssignmentType]
    transpose = None  # pyright: ignore[reportAssignmentType]

    def lower(self, b: Builder, x: IrValue, y: IrValue) -> IrValue:
        if b.avals_out[0].dtype in _FLUSHED and not b.module.exported:
            return b.inline(_next_bits, x, y)
        return super().lower(b, x, y)


_FLUSHED = [*map(dtypes.as_dtype, ("bfloat16", "float32", "float64"))]


def _next_bits(x: Array, y: Array) -> Array:
    """`nextafter` by the bits: XLA:CPU compares subnormal numbers as zeros."""
    dtype = typeof(x).dtype
    bits = dtypes.itemsize_bits(dtype)
    integer, rest = dtypes.as_dtype(f"int{bits}"), 2 ** (bits - 1) - 1
    infinity = int(np.array(math.inf, dtype).view(integer))
    i, j = [bitcast_convert_type_p.bind(v, new_dtype=integer) for v in (x, y)]
    p, q = bitwise_and(i, rest), bitwise_and(j, rest)       # sizes
    inward = bitwise_or(lt(bitwise_xor(i, j), 0), gt(p, q))
    near = select(inward, sub(i, 1), add(i, 1))
    least = bitwise_or(bitwise_and(j, -2 ** (bits - 1)), 1)
    near = select(eq(p, 0), least, near)
    equal = bitwise_or(eq(i, j), eq(bitwise_or(p, q), 0))
    near = select(equal, j, near)
    missing = bitwise_or(gt(p, infinity), gt(q, infinity))
    nan = int(np.array(math.nan, dtype).view(integer))
    return bitcast_convert_type_p.bind(select(missing, full_like(near, nan), near),
                                       new_dtype=dtype)


nextafter_p = NextAfter("nextafter", "chlo.next_after", FLOATING, None, arity=2, pace=4.0)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """The float next to x1 in the direction of x2; x2 where they are equal.

    Args: x1, x2: floats of one dtype and shape.
    Returns: An array of that dtype and shape, NaN where one is; a step of one unit in the last
      place. It has no derivative.

    >>> olympus.lax.nextafter(1., 2.) - 1, olympus.lax.nextafter(0., 1.) > 0
    (Array(1.1920929e-07, dtype=float32, weak_type=True), Array(False, dtype=bool, weak_type=True))
    """
    return binary(nextafter_p, x1, x2)


# Signs and rounding ------------------------------------------------------------------------------

class Sign(Elementwise):
    """-1, 0 or 1; of complex numbers z / |z|."""

    makes_nan = False
    algebra = "sign"

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        if dtypes.scalar_kind(b.avals_in[0].dtype) == "u":
            return b.op("stablehlo.minimum", [x, b.full(b.avals_in[0], 1)])
        return b.op("stablehlo.sign", [x])


def _sign_partial(t: Array, z: Array, x: Array) -> Array | None:
    """Zero for real x; for complex x the part of t across x, over |x| (0 at 0)."""
    if not dtypes.is_complex(typeof(x).dtype):
        return None
    size = abs(x)
    along = mul(conj(z), t)
    across = mul(z, complex(zeros_of(typeof(size)), imag(along)))
    nonzero = select(eq(size, 0.0), literal(1.0, typeof(size).dtype), size)
    return div(across, complex(nonzero, zeros_of(typeof(size))))


def _abs_partial(t: Array, z: Array, x: Array) -> Array | None:
    """t with the sign of x: + at 0, NaN of NaN; for complex x the part of t along x, 0 at 0."""
    if dtypes.is_complex(typeof(x).dtype):
        return real(mul(t, conj(sign(x))))
    if not dtypes.is_floating(typeof(x).dtype):
        return None
    return mul(t, select(ge(x, 0), operand(1.0, x), sign(x)))


class Abs(Elementwise):
    """For complex numbers the modulus: infinite if a part is, though the other be NaN."""

    makes_nan = False
    algebra = "absolute"

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        out = super().lower(b, x)
        if not dtypes.is_complex(b.avals_in[0].dtype):
            return out
        return b.by_rule(_infinite_if_part_is, [x, out], [b.avals_in[0], b.avals_out[0]])[0]


def _infinite_if_part_is(z: Array, size: Array) -> Array:
    infinite = [eq(abs(part), math.inf) for part in (real(z), imag(z))]
    return select(bitwise_or(*infinite), operand(math.inf, size), size)


class Round(Elementwise):
    """To the nearest integer; halves as `rounding_method` says."""

    makes_nan = False

    def lower(self, b: Builder, x: IrValue, *, rounding_method: RoundingMethod) -> IrValue:
        how = "even" if rounding_method is RoundingMethod.TO_NEAREST_EVEN else "afz"
        return b.op(f"stablehlo.round_nearest_{how}", [x])


class RoundingMethod(enum.IntEnum):
    """The rounding of halves: AWAY_FROM_ZERO (2.5 to 3) or TO_NEAREST_EVEN (2.5 to 2).

    >>> from olympus import lax, numpy as onp
    >>> print(lax.round(onp.array([0.5, 1.5]), lax.RoundingMethod.TO_NEAREST_EVEN))
    [0. 2.]
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


abs_p = Abs("abs", "stablehlo.abs", "ifc", [_abs_partial], result=dtypes.to_real_dtype)
sign_p = Sign("sign", "stablehlo.sign", NUMERIC, [_sign_partial])
floor_p = elementwise("floor", "stablehlo.floor", FLOATING, makes_nan=False)
ceil_p = elementwise("ceil", "stablehlo.ceil", FLOATING, makes_nan=False)
round_p = Round("round", "round", FLOATING, None)
is_finite_p = elementwise("is_finite", "stablehlo.is_finite", FLOATING, result=lambda dtype: BOOL)


def abs(x: ArrayLike) -> Array:
    """The magnitude |x| of each element, real also where x is complex.

    The derivative at 0 is 1, of complex numbers the part of the tangent along x (0 at 0).

    Args: x: signed integers, floats or complex numbers, any shape. |-128| of int8 wraps to -128.
    Returns: An array of the shape of x; of its dtype, or of its parts' where x is complex.

    >>> lax.abs(onp.array([3 - 4j, -2]))
    Array([5., 2.], dtype=float32)
    """
    return abs_p.bind(x)


def sign(x: ArrayLike) -> Array:
    """-1, 0 or 1 by the sign of x; z / |z| of complex numbers.

    Args: x: numbers (not bool), any shape.

    Returns:
      An array of the shape and dtype of x: 0 of 0, NaN of NaN. The derivative of real x is 0.

    >>> print(lax.sign(onp.array([-2., 0., 5.])), lax.sign(3 + 4j))
    [-1.  0.  1.] (0.6+0.8j)
    """
    return sign_p.bind(x)


def floor(x: ArrayLike) -> Array:
    """The largest whole number not above x, still as a float.

    Args: x: floats, any shape; integers and complex numbers are refused.

    Returns:
      An array of the shape and dtype of x; infinite and NaN elements stay. The derivative is 0.

    >>> print(lax.floor(onp.array([1.8, -0.5])))
    [ 1. -1.]
    """
    return floor_p.bind(x)


def ceil(x: ArrayLike) -> Array:
    """The smallest whole number not below x, still as a float.

    Args: x: floats, any shape; integers and complex numbers are refused.
    Returns: An array of the shape and dtype of x; -0.5 gives -0. The derivative is 0.

    >>> print(lax.ceil(onp.array([1.2, -0.5])))
    [ 2. -0.]
    """
    return ceil_p.bind(x)


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """The nearest integer, as a float; `rounding_method` says where halves go.

    Args:
      x: floats, any shape.
      rounding_method: AWAY_FROM_ZERO (2.5 to 3) or TO_NEAREST_EVEN (2.5 to 2, as NumPy's).
    Returns: An array of the shape and dtype of x. The derivative is 0.

    >>> olympus.lax.round(2.5, olympus.lax.RoundingMethod.TO_NEAREST_EVEN)
    Array(2., dtype=float32, weak_type=True)
    """
    method = member(RoundingMethod, rounding_method, "round: rounding_method")
    return round_p.bind(x, rounding_method=method)


def is_finite(x: ArrayLike) -> Array:
    """False where x is infinite or NaN, else True.

    Args: x: floats, any shape.
    Returns: A bool array of the shape of x; all True for dtypes without infinities and NaN.

    >>> print(lax.is_finite(onp.array([1., float("inf"), float("nan")])))
    [ True False False]
    """
    return is_finite_p.bind(x)


def round_to_zero(x: Array) -> Array:
    """Floats without their fraction."""
    return mul(sign(x), floor(abs(x)))


# Complex numbers ---------------------------------------------------------------------------------

class Conj(Elementwise):
    """The complex conjugate; a real operand becomes complex."""

    makes_nan = False
    algebra = "part"

    def lower(self, b: Builder, x: IrValue, *, input_dtype: DType) -> IrValue:
        return b.inline(_conj, x)


def _conj(x: Array) -> Array:
    if dtypes.is_complex(typeof(x).dtype):
        return complex(real(x), neg(imag(x)))
    return complex(x, zeros_of(typeof(x)))


def _conj_transpose(ct: Array, z: Array, x: Linear, *, input_dtype: DType) -> Array:
    ct = conj(ct)
    return ct if dtypes.is_complex(input_dtype) else real(ct)


class Complex(Elementwise):
    """A complex number from its parts, which are float32 or float64."""

    makes_nan = False
    algebra = "part"
    additive = True

    def infer(self, *avals: ShapedArray, **params: Hashable) -> ShapedArray:
        check_dtypes(self.name, avals, FLOATING)
        if dtypes.itemsize_bits(avals[0].dtype) < 32:
            raise TypeError(f"complex: operands are {', '.join(map(str, avals))}; float32 or "
                            "float64 is required; convert them with astype.")
        return super().infer(*avals)


# Cotangents of complex values pair with tangents as Re(ct · t): hence the signs of the transposes.
real_p = elementwise("real", "stablehlo.real", COMPLEX, lambda t, z, x: real(t), linear=(0,),
                     result=dtypes.to_real_dtype,
                     transposes=[lambda ct, z, x: complex(ct, zeros_of(typeof(ct)))],
                     algebra="part", makes_nan=False)
imag_p = elementwise("imag", "stablehlo.imag", COMPLEX, lambda t, z, x: imag(t), linear=(0,),
                     result=dtypes.to_real_dtype,
                     transposes=[lambda ct, z, x: complex(zeros_of(typeof(ct)), neg(ct))],
                     algebra="part", makes_nan=False)
complex_p = Complex(
    "complex", "stablehlo.complex", FLOATING,
    [lambda t, z, x, y: complex(t, zeros_of(typeof(t))),
     lambda t, z, x, y: complex(zeros_of(typeof(t)), t)], (0, 1), dtypes.to_complex_dtype,
    [lambda ct, z, x, y: real(ct), lambda ct, z, x, y: neg(imag(ct))])
conj_p = Conj("conj", "conj", INEXACT, [lambda t, z, x, **params: conj(t)], (0,),
              dtypes.to_complex_dtype, [_conj_transpose])


def real(x: ArrayLike) -> Array:
    """The real part of complex numbers.

    Args: x: complex numbers, any shape; `olympus.numpy.real` takes real ones too.
    Returns: An array of the shape of x, float32 or float64.

    >>> print(lax.real(onp.array([1 + 2j, 3])))
    [1. 3.]
    """
    return real_p.bind(x)


def imag(x: ArrayLike) -> Array:
    """The imaginary part of complex numbers.

    Args: x: complex numbers, any shape; `olympus.numpy.imag` takes real ones too.
    Returns: An array of the shape of x, float32 or float64.

    >>> print(lax.imag(onp.array([1 + 2j, 3])))
    [2. 0.]
    """
    return imag_p.bind(x)


def complex(x: ArrayLike, y: ArrayLike) -> Array:
    """x + iy of float32 or float64 parts.

    Args:
      x, y: real and imaginary part: float32 or float64 arrays of one dtype and shape, or a scalar.
    Returns: An array of that shape, complex64 or complex128. Differentiable in both.

    >>> olympus.lax.complex(1., 2.)
    Array(1.+2.j, dtype=complex64, weak_type=True)
    """
    return binary(complex_p, x, y)


def over_real(x: ArrayLike, y: float) -> Array:
    """x / y, of complex numbers by their parts: an infinite one leaves the other as it is."""
    if dtypes.is_complex(typeof(x).dtype):
        return complex(div(real(x), y), div(imag(x), y))
    return div(x, y)


def conj(x: ArrayLike) -> Array:
    """The complex conjugate re - i im; floats become complex with an imaginary part of 0.

    Args: x: float32, float64 or complex numbers, any shape.

    Returns:
      An array of the shape of x, complex64 or complex128. `olympus.numpy.conj` keeps floats real.

    >>> print(lax.conj(onp.array([1 + 2j, 3])))
    [1.-2.j 3.-0.j]
    """
    return conj_p.bind(x, input_dtype=typeof(x).dtype)
