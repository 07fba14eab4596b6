"""Functions of floats for which XLA:CPU calls the C library per element.

Of float32 and of narrower floats, they are polynomials in float64 here, which XLA makes vectors of,
rounded once: so they err by 0.5 ULP of float32 and some thousandths. The coefficients interpolate
at Chebyshev's nodes, with relative errors below 2**-33. The formulas of float64 are in
`float64.py`.
"""

from __future__ import annotations

import builtins
import functools
import math
from collections.abc import Callable, Hashable, Sequence

import numpy as np

from ...base import config
from ...base.typing import Array, IrValue
from ...core.ir import Literal
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ..arithmetic import abs, div, is_finite, mul, neg, rem_p, round_to_zero, sub
from ..bits import (
    bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_left, shift_right_arithmetic,
    shift_right_logical,
)
from ..comparison import eq, ge, gt, lt, ne, select
from ..convert import bitcast_convert_type_p, in_dtype
from ..families import add
from ..reduce import reduce_or
from ..shape import zeros_of
from ..special.classical import erf_inv_p, lgamma_p
from ..transcendental import (
    acos_p, acosh_p, asin_p, asinh_p, atan2_p, atan_p, atanh_p, cbrt_p, cos_p, exp2_p, log1p_p,
    log2_p, log10_p, pow_p, sin_p, sinh_p, sqrt, tan_p,
)
from . import float64
from .blocks import MOST, by_blocks
from .elementary import (
    BIAS, FLOAT32, FLOAT64, INT32, INT64, MANTISSA, bits64, is_odd, like, nearest, of_bits64,
    polynomial,
)

# Found with tools/kernel_table.py: of fewer elements, the C library's functions are as fast; those
# that take it 3 ns, where the processor foresees their branches, and powers, from more on.
LEAST, LEAST_DOUBLE, LEAST_QUICK, LEAST_POWERS = 1024, 4096, 16384, 65536
WIDTH = 32      # elements that are looked at together


def _is_narrow(least: int, b: Builder, *xs: IrValue, accuracy: Hashable = None, **params: Hashable
               ) -> bool:
    """Whether a result of floats has enough elements and float64 has twice their digits."""
    out = b.avals_out[0]
    return least <= out.size <= MOST and accuracy is None and (
        dtypes.scalar_kind(out.dtype) == "f" and 16 <= dtypes.itemsize_bits(out.dtype) <= 32)


def _is_double(least: int, b: Builder, *xs: IrValue, accuracy: Hashable = None, **params: Hashable
               ) -> bool:
    """Whether a result of float64 has enough elements."""
    out = b.avals_out[0]
    return least <= out.size <= MOST and accuracy is None and out.dtype == FLOAT64


def _by_formula(formula: Callable[..., Array], b: Builder, *xs: IrValue, **params: Hashable
                ) -> IrValue:
    given, wide = _widened(b, xs)
    return _as_wanted(b, _traced(b, formula, given, wide), wide)


def _traced(b: Builder, formula: Callable[..., Array], given: Sequence[IrValue], wide: ShapedArray
            ) -> IrValue:
    with config.enable_x64(True):       # else some functions take float64 for float32
        return b.by_rule(formula, given, [wide] * len(given))[0]


def _widened(b: Builder, xs: Sequence[IrValue]) -> tuple[list[IrValue], ShapedArray]:
    """The operands in float32, or in float64 as they are, and in the shape of the result."""
    out = b.avals_out[0]
    wide = out if out.dtype == FLOAT64 else out.update(dtype=FLOAT32)
    xs = b.expand(xs) if len(xs) > 1 else xs
    return [x if out.dtype == wide.dtype else b.convert(x, wide) for x in xs], wide


def _as_wanted(b: Builder, found: IrValue, wide: ShapedArray) -> IrValue:
    out = b.avals_out[0]
    return found if out.dtype == wide.dtype else b.convert(found, out)


def _wide(x: Array) -> Array:
    return in_dtype(x, FLOAT64)


def _rounded(x: Array) -> Array:
    return in_dtype(x, FLOAT32)


def _bits(x: Array) -> Array:
    return bitcast_convert_type_p.bind(x, new_dtype=INT32)


def _size(x: Array) -> Array:
    """|x| in float64, also of subnormals, which XLA:CPU converts to 0."""
    bits = bitwise_and(_bits(x), ~_SIGN)
    return select(lt(bits, _NORMAL), mul(_wide(bits), _LEAST_SUBNORMAL), _wide(abs(x)))


_SIGN, _NORMAL, _LEAST_SUBNORMAL = -1 << 31, 1 << 23, 2.0 ** -149
_HALF_PI = math.pi / 2


def _or_tiny(found: Array, x: Array) -> Array:
    """The result at x, which is x for subnormals: XLA:CPU converts them to 0."""
    return select(lt(abs(x), _TINY), x, found)


_TINY = float(np.finfo(np.float32).tiny)


def _signed(x: Array, sign: Array) -> Array:
    """A float32 with its sign changed where the highest bit of `sign` is 1."""
    return bitcast_convert_type_p.bind(bitwise_xor(_bits(x), bitwise_and(sign, _SIGN)),
                                       new_dtype=FLOAT32)


# Sine, cosine, tangent

# 2 / π in pieces of 29 bits, whose products with float32 numbers are exact; 53 bits after three.
_PIECES = tuple(map(float.fromhex, (
    "0x1.45f306dp-1", "0x1.9391054p-30", "0x1.4fe13abp-59", "0x1.d1f534dp-88", "0x1.b81b6c5p-117",
    "0x1.5993c4p-148")))
_LAST = tuple(map(float.fromhex, (
    "0x1.d1f534ddc0db6p-88", "0x1.b81b6c52b3279p-117", "0x1.5993c439041fep-148",
    "0x1.c820ff28b1d5fp-175")))
# From these numbers on, products with the pieces before are multiples of 4.
_STARTS = (2.0 ** 54, 2.0 ** 83, 2.0 ** 112)
_SIN = (1.0, -0.16666666666663885, 0.008333333331078323, -0.00019841266916110632,
        2.7555990664728965e-06, -2.4805611712122078e-08)
_COS = (1.0, -0.49999999999963873, 0.041666666637384386, -0.0013888885090262895,
        2.4799861846361443e-05, -2.7237108576244566e-07)


def _turned(x: Array) -> tuple[Array, Array, Array]:
    """Sine and cosine of |x| less the nearest multiple of a quarter turn, and which that is.

    Payne and Hanek (1983), Radian reduction for trigonometric functions: the digits of 2 / π that
    make whole turns are left out.
    """
    w = _wide(abs(x))
    later = [ge(w, start) for start in _STARTS]
    products = []
    for words in (*[_PIECES[i:i + len(_LAST)] for i in range(3)], _LAST):
        word = like(words[0], w)
        for above, value in zip(later, words[1:], strict=True):
            word = select(above, like(value, w), word)
        products.append(mul(w, word))
    first, second = [sub(v, mul(nearest(mul(v, 0.25)), 4.0)) for v in products[:2]]
    k = nearest(add(first, second))
    rest = functools.reduce(add, [sub(first, k), second, *products[2:]])
    r = mul(rest, _HALF_PI)
    z = mul(r, r)
    return mul(r, polynomial(z, _SIN)), polynomial(z, _COS), in_dtype(k, INT32)


def _sin(x: Array) -> Array:
    s, c, k = _turned(x)
    found = _rounded(select(is_odd(k), c, s))
    return _or_tiny(_signed(found, bitwise_xor(_bits(x), shift_left(k, 30))), x)


def _cos(x: Array) -> Array:
    s, c, k = _turned(x)
    return _signed(_rounded(select(is_odd(k), s, c)), shift_left(add(k, 1), 30))


def _tan(x: Array) -> Array:
    s, c, k = _turned(x)
    odd = is_odd(k)
    found = div(select(odd, c, s), select(odd, s, c))
    return _or_tiny(_signed(_rounded(found), bitwise_xor(_bits(x), shift_left(k, 31))), x)


# Inverse functions

_ATAN = (0.9999999999292967, -0.3333333129088999, 0.1999990110217155, -0.14283813255743144,
         0.1109192296368298, -0.08974171958362588, 0.07228278345373912, -0.05395668057131507,
         0.03382621895272417, -0.015828322749105783, 0.004732484193404601, -0.0006633954571074873)
_ASIN = (1.0, 0.16666666665495086, 0.07500000598829049, 0.044642358484883155, 0.03039763413058142,
         0.022132443623419724, 0.019306260869405265, 0.005443185102648374, 0.029305239705442607)


def _small_atan(v: Array) -> Array:
    return mul(v, polynomial(mul(v, v), _ATAN))


def _atan(x: Array) -> Array:
    w = _wide(abs(x))
    large = gt(w, 1.0)
    found = _small_atan(div(select(large, like(1.0, w), w), select(large, w, like(1.0, w))))
    found = select(large, sub(_HALF_PI, found), found)
    return _or_tiny(_signed(_rounded(found), _bits(x)), x)


def _atan2(y: Array, x: Array) -> Array:
    a, c = _size(y), _size(x)
    steep = gt(a, c)
    high, low = select(steep, a, c), select(steep, c, a)
    # 0 over 0 is taken for 0 and infinity over infinity for 1.
    ratio = div(low, select(eq(high, 0.0), like(1.0, high), high))
    ratio = select(bitwise_and(eq(low, high), gt(low, 0.0)), like(1.0, low), ratio)
    found = _small_atan(ratio)
    found = select(steep, sub(_HALF_PI, found), found)
    found = select(lt(_bits(x), 0), sub(math.pi, found), found)
    return _signed(_rounded(found), _bits(y))


def _arc(w: Array) -> tuple[Array, Array]:
    """The arcsine of w in [0, ½]; above, half the arccosine, and whether it is that."""
    large = gt(w, 0.5)
    z = select(large, mul(sub(1.0, w), 0.5), mul(w, w))
    return mul(select(large, sqrt(z), w), polynomial(z, _ASIN)), large


def _asin(x: Array) -> Array:
    found, large = _arc(_wide(abs(x)))
    found = select(large, sub(_HALF_PI, mul(found, 2.0)), found)
    return _or_tiny(_signed(_rounded(found), _bits(x)), x)


def _acos(x: Array) -> Array:
    w = _wide(x)
    found, large = _arc(abs(w))
    negative = lt(w, 0.0)
    far = select(negative, sub(math.pi, mul(found, 2.0)), mul(found, 2.0))
    near = select(negative, add(_HALF_PI, found), sub(_HALF_PI, found))
    return _rounded(select(large, far, near))


# Others

def _cbrt(x: Array) -> Array:
    """Two steps of Halley's method from a third of the exponent, as in fdlibm's s_cbrt.c."""
    w = _size(x)
    high = shift_right_logical(bits64(w), 32)
    high = add(in_dtype(mul(_wide(in_dtype(high, INT32)), 1 / 3), INT32), 715094163)
    t = of_bits64(shift_left(in_dtype(high, INT64), 32))
    for _ in range(2):
        cube = mul(mul(t, t), t)
        t = mul(t, div(add(cube, mul(w, 2.0)), add(mul(cube, 2.0), w)))
    ordinary = bitwise_and(is_finite(w), gt(w, 0.0))
    return select(ordinary, _signed(_rounded(t), _bits(x)), x)


# 2**f, |f| <= ½, and log2((1 + s) / (1 - s)) / s by s².
_EXP2 = (0.9999999999595618, 0.6931471805568324, 0.24022651213498092, 0.055504109063258665,
         0.009618025613318034, 0.0013333478473685416, 0.00015469729214118296,
         1.5303700711365693e-05)
_LOG2 = (2.885390081777927, 0.9617966939243345, 0.5770780172463286, 0.4121984020482752,
         0.32061638813224547, 0.2614442493522915, 0.2429160853987535)
_MOST = 256.0       # powers of 2 beyond are infinite, or 0, in float32


def _power_of_2(w: Array) -> Array:
    w = select(gt(w, _MOST), like(_MOST, w), select(lt(w, -_MOST), like(-_MOST, w), w))
    k = nearest(w)
    # By way of int32: there are no vectors of conversions of int64.
    bits = shift_left(in_dtype(add(in_dtype(k, INT32), BIAS), INT64), MANTISSA)
    return mul(polynomial(sub(w, k), _EXP2), of_bits64(bits))


def _exp2(x: Array) -> Array:
    return _rounded(_power_of_2(_wide(x)))


# Below, the series; so that no digits are lost in the difference.
_FEW = 2.0 ** -4
_SINH = (1.0, 1 / 6, 1 / 120, 1 / 5040)


def _sinh(x: Array) -> Array:
    w = _wide(abs(x))
    e = _power_of_2(mul(w, 1 / math.log(2)))
    found = mul(sub(e, div(1.0, e)), 0.5)
    small = mul(w, polynomial(mul(w, w), _SINH))
    return _or_tiny(_signed(_rounded(select(lt(w, _FEW), small, found)), _bits(x)), x)


def _log2(w: Array) -> Array:
    """The logarithm of a positive number: the exponent, and a series for a mantissa near 1."""
    bits = bits64(w)
    high = in_dtype(shift_right_logical(bits, 32), INT32)
    e = shift_right_arithmetic(sub(high, _ROOT_BITS), MANTISSA - 32)
    m = sub(bits, shift_left(in_dtype(e, INT64), MANTISSA))
    m = of_bits64(m)
    s = div(sub(m, 1.0), add(m, 1.0))
    return add(_wide(e), mul(s, polynomial(mul(s, s), _LOG2)))


_ROOT_BITS = int(np.float64(math.sqrt(0.5)).view(np.int64)) >> 32


def _are_alike(fits: Callable[..., bool], least: int, b: Builder, *xs: IrValue) -> bool:
    return fits(least, b) and b.avals_in[1].dtype == b.avals_in[0].dtype


def _is_power(b: Builder, *xs: IrValue) -> bool:
    """Whether the exponent is not one of those for which XLA multiplies or takes a root."""
    exponent = b.eqn.invars[1]
    return not (type(exponent) is Literal and float(exponent.raw) % 0.5 == 0)


def _pow(x: Array, y: Array) -> Array:
    w, v = _size(x), _size(y)
    v = select(lt(_bits(y), 0), neg(v), v)
    log = select(eq(w, 0.0), like(-math.inf, w), select(is_finite(w), _log2(w), w))
    one = bitwise_or(eq(w, 1.0), eq(v, 0.0))
    found = _power_of_2(select(one, like(0.0, w), mul(v, log)))
    whole = eq(v, nearest(v))
    ordinary = bitwise_and(is_finite(w), gt(w, 0.0))
    no_power = bitwise_and(bitwise_and(lt(_bits(x), 0), ordinary), bitwise_not(whole))
    half = mul(v, 0.5)
    odd = bitwise_and(whole, ne(half, nearest(half)))
    found = select(no_power, like(math.nan, w), found)
    return _signed(_rounded(found), select(odd, _bits(x), zeros_of(typeof(_bits(x)))))


# With more products the error of all is no longer far below float32's.
_MOST_HALVES = 8


def _is_half(b: Builder, *xs: IrValue) -> bool:
    """Whether the exponent is -½ or another half of an odd number, but not ½, which XLA knows."""
    base, exponent = b.eqn.invars
    if type(exponent) is not Literal or type(base) is Literal:
        return False
    value = float(exponent.raw)
    return builtins.abs(value) < _MOST_HALVES and value % 1 == 0.5 and value != 0.5


def _half_power(formula: Callable[..., Array], b: Builder, *xs: IrValue) -> IrValue:
    exponent = b.eqn.invars[1]
    assert type(exponent) is Literal
    given, wide = _widened(b, xs)
    fun = functools.partial(formula, exponent=float(exponent.raw))
    with config.enable_x64(True):
        (found,) = b.traced(fun, given[:1], [wide])
    if float(exponent.raw) < 0:
        # For several readers XLA would keep the quotient in float64, or compute it for each.
        found = b.hold(found, wide)
    return _as_wanted(b, found, wide)


def _power(x: Array, *, exponent: float) -> Array:
    """Zeros and -inf have no sign (C23, F.10.4.5)."""
    w = _size(x)
    ordinary = bitwise_and(is_finite(w), gt(w, 0.0))
    w = select(bitwise_and(lt(_bits(x), 0), ordinary), like(math.nan, w), w)
    found = sqrt(w)
    for _ in range(int(builtins.abs(exponent))):
        found = mul(found, w)
    return _rounded(div(1.0, found) if exponent < 0 else found)


# So large quotients, and products of them and float32 numbers, are exact in float64.
LARGEST_QUOTIENT = 2.0 ** 28


def _rem(x: Array, y: Array) -> Array:
    v, w = _wide(abs(x)), _wide(abs(y))
    r = sub(v, mul(round_to_zero(div(v, w)), w))
    # The quotient may have been rounded up, to an integer.
    r = select(lt(r, 0.0), add(r, w), r)
    r = select(bitwise_and(is_finite(v), eq(w, math.inf)), v, r)
    return _signed(_rounded(r), _bits(x))


def _has_large_quotient(x: Array, y: Array) -> Array:
    v = abs(x)
    return bitwise_and(ge(v, mul(abs(y), LARGEST_QUOTIENT)), bitwise_and(
        is_finite(x), bitwise_and(gt(v, 0.0), gt(abs(y), 0.0))))


def _where_none(formula: Callable[..., Array], exception: Callable[..., Array], b: Builder,
                *xs: IrValue, **params: Hashable) -> IrValue:
    """The formula, but the rule of the primitive for all elements where one is an exception."""
    given, wide = _widened(b, xs)
    which = _any(b, exception, given, wide)

    def usual() -> list[IrValue]:
        return [_as_wanted(b, _traced(b, formula, given, wide), wide)]

    def other() -> list[IrValue]:
        return [b.eqn.primitive.lower(b, *xs, **params)]

    return b.case(which, [usual, other], [b.type(b.avals_out[0])])[0]


def _any(b: Builder, exception: Callable[..., Array], xs: Sequence[IrValue], aval: ShapedArray
         ) -> IrValue:
    """1 if an element is an exception, else 0."""
    found = make_aval((WIDTH,), INT32)

    def look(*xs: IrValue) -> list[IrValue]:
        x = by_blocks(b, lambda found, *xs: bitwise_or(found, in_dtype(exception(*xs), INT32)),
                      b.constant(2 * np.arange(WIDTH), found), found, xs, aval)
        return b.traced(lambda x: bitwise_and(reduce_or(x, (0,)), 1), [x], [found])

    return b.one_kernel(xs, look)[0]


# Vectors of odd size

# Found with tools/kernel_table.py: from so many elements on, by function. Some are computed one by
# one only where XLA shares the elements among threads. By the formulas above, functions of 16 bits
# gain, and some of float64.
LEAST_ODD, LEAST_SHARED, LEAST_DOUBLES, NEVER = 16384, 65536, 1 << 19, MOST + 1
TIMES = 64      # the longer vector can be shared by more threads than two, too


def _is_odd_vector(half: int, single: int, double: int, b: Builder, *xs: IrValue,
                   **params: Hashable) -> bool:
    out = b.avals_out[0]
    least = {2: half, 4: single, 8: double}.get(out.dtype.itemsize, NEVER)
    return (least <= out.size <= MOST and out.size % 2 == 1 and out.size in out.shape
            and dtypes.scalar_kind(out.dtype) == "f")


def _of_even_size(b: Builder, *xs: IrValue, **params: Hashable) -> IrValue:
    """The primitive of vectors with some more elements, which are in memory on both sides."""
    out, prim = b.avals_out[0], b.eqn.primitive
    size = out.size + -out.size % TIMES
    given = [out.update(dtype=a.dtype) for a in b.avals_in]
    longer = [make_aval((size,), a.dtype) for a in given]
    more, zero = b.i64s((size - out.size,)), b.i64s((0,))

    def padded(x: IrValue, aval: ShapedArray, wide: ShapedArray) -> IrValue:
        x = b.op("stablehlo.reshape", [x], None, make_aval((aval.size,), aval.dtype))
        return b.hold(b.op("stablehlo.pad", [x, b.scalar(0.5, aval.dtype)], {
            "edge_padding_low": zero, "edge_padding_high": more, "interior_padding": zero}, wide),
            wide)

    wide = list(map(padded, b.expand(xs) if len(xs) > 1 else xs, given, longer))
    (x,) = b.traced(lambda *xs: prim.bind(*xs, **params), wide, longer)
    x = b.op("stablehlo.slice", [b.hold(x, make_aval((size,), out.dtype))], {
        "start_indices": zero, "limit_indices": b.i64s((out.size,)), "strides": b.i64s((1,))},
        make_aval((out.size,), out.dtype))
    return b.op("stablehlo.reshape", [x], None, out)


def _narrow(name: str, saves: float, formula: Callable[..., Array], least: int = LEAST) -> Kernel:
    return Kernel(name, _SLOW, functools.partial(_is_narrow, least),
                  functools.partial(_by_formula, formula), saves)


def _double(saves: float, formula: Callable[..., Array], least: int = LEAST_DOUBLE,
            exception: Callable[..., Array] | None = None) -> Kernel:
    emit = functools.partial(_by_formula, formula) if exception is None else functools.partial(
        _where_none, formula, exception)
    return Kernel("polynomial with a rest", _SLOW, functools.partial(_is_double, least), emit,
                  saves)


def _odd(saves: float, half: int = NEVER, single: int = NEVER, double: int = NEVER) -> Kernel:
    """By the size of floats, from how many elements on."""
    return Kernel("a vector of even size", "XLA computes odd ones element by element",
                  functools.partial(_is_odd_vector, half, single, double), _of_even_size, saves)


_SLOW = "XLA calls the C library for each element"
_POLYNOMIAL = "polynomial in float64"
_ODD_16 = _odd(5.0, half=LEAST_SHARED)
_ODD_16_64 = _odd(3.5, half=LEAST_SHARED, double=LEAST_DOUBLES)
KERNELS = {
    asinh_p: (_odd(12.5, single=LEAST_ODD, double=LEAST_SHARED),),
    acosh_p: (_odd(9.5, single=LEAST_SHARED),), atanh_p: (_odd(9.5, single=LEAST_SHARED),),
    erf_inv_p: (_odd(10.2, single=LEAST_ODD, double=LEAST_ODD),),
    lgamma_p: (_odd(22.5, single=LEAST_ODD),),
    sin_p: (_ODD_16, _narrow(_POLYNOMIAL, 6.6, _sin, LEAST_QUICK),
            _double(9.2, float64.sin, LEAST_QUICK, float64.is_large_angle)),
    cos_p: (_ODD_16, _narrow(_POLYNOMIAL, 6.6, _cos, LEAST_QUICK),
            _double(12.0, float64.cos, LEAST_QUICK, float64.is_large_angle)),
    tan_p: (_ODD_16, _narrow(_POLYNOMIAL, 12.7, _tan),
            _double(12.5, float64.tan, LEAST_QUICK, float64.is_large_angle)),
    asin_p: (_ODD_16_64, _narrow(_POLYNOMIAL, 14.5, _asin), _double(12.2, float64.asin)),
    acos_p: (_ODD_16, _narrow(_POLYNOMIAL, 20, _acos), _double(16.0, float64.acos)),
    atan_p: (_ODD_16, _narrow(_POLYNOMIAL, 10.7, _atan), _double(5.3, float64.atan)),
    atan2_p: (_ODD_16, _narrow(_POLYNOMIAL, 23.9, _atan2), _double(15.0, float64.atan2)),
    cbrt_p: (_ODD_16_64, _narrow("Halley's method in float64", 12.7, _cbrt),
             _double(12.3, float64.cbrt)),
    pow_p: (Kernel("root and products in float64", _SLOW,
                   functools.partial(_are_alike, _is_narrow, LEAST),
                   functools.partial(_half_power, _power), 3.8, suits=_is_half),
            Kernel(_POLYNOMIAL, _SLOW, functools.partial(_are_alike, _is_narrow, LEAST_POWERS),
                   functools.partial(_by_formula, _pow), 1.9, suits=_is_power),
            Kernel("root and products with a rest", _SLOW,
                   functools.partial(_are_alike, _is_double, LEAST_DOUBLE),
                   functools.partial(_half_power, float64.half_power), 7.6, suits=_is_half)),
    exp2_p: (_ODD_16, _narrow(_POLYNOMIAL, 1.2, _exp2, LEAST_QUICK),
             _double(1.8, float64.exp2, LEAST_QUICK)),
    sinh_p: (_ODD_16, _narrow(_POLYNOMIAL, 0.8, _sinh, LEAST_QUICK),
             _double(3.0, float64.sinh, LEAST_QUICK)),
    log1p_p: (_odd(2.4, double=LEAST_DOUBLES), _double(2.0, float64.log1p, LEAST_QUICK)),
    log2_p: (_ODD_16_64, _double(4.0, functools.partial(float64.log_to, base=2), LEAST_QUICK)),
    log10_p: (_ODD_16_64, _double(4.2, functools.partial(float64.log_to, base=10), LEAST_QUICK)),
    rem_p: (Kernel("quotient in float64", _SLOW, functools.partial(_is_narrow, LEAST_POWERS),
                   functools.partial(_where_none, _rem, _has_large_quotient), 12.9),)}
