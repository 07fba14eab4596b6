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
from ..arithmetic import abs, div, floor, is_finite, mul, neg, rem_p, sub
from ..bits import (
    bitwise_and, bitwise_not, bitwise_or, bitwise_xor, shift_left, shift_right_logical,
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
from . import float64, integers
from .blocks import MOST, by_blocks
from .elementary import (
    BIAS, FLOAT32, FLOAT64, INT32, MANTISSA, bits64, like, nearest, of_bits64, polynomial,
)

# Found with tools/kernel_table.py: of fewer elements, the C library's functions are as fast; those
# that take it 3 ns, where the processor foresees their branches, and powers, from more on.
LEAST, LEAST_DOUBLE, LEAST_QUICK, LEAST_POWERS = 1024, 4096, 16384, 65536
LEAST_LOOKED = 1 << 18  # to look at all elements first takes 50 ms to compile
WIDTH = 512     # elements that are looked at together


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
# Added to a whole number of fewer than 2**50: its lowest bits are the integer's.
_WHOLE = 1.5 * 2.0 ** 52


def _or_tiny(found: Array, x: Array) -> Array:
    """The result at x, which is x for subnormals: XLA:CPU converts them to 0."""
    return select(lt(abs(x), _TINY), x, found)


_TINY = float(np.finfo(np.float32).tiny)


def _signed(x: Array, sign: Array) -> Array:
    """A float32 with its sign changed where the highest bit of `sign` is 1."""
    return bitcast_convert_type_p.bind(bitwise_xor(_bits(x), bitwise_and(sign, _SIGN)),
                                       new_dtype=FLOAT32)


# Sine, cosine, tangent: each by the angle less a multiple of a half turn or of a quarter turn

# π: products of the first two pieces with 24 bits are exact.
_PI = tuple(map(float.fromhex, ("0x1.921fb54p+1", "0x1.10b4611p-29", "0x1.4c4c6628b80dcp-58")))
LARGEST_ANGLE = 2.0 ** 24
# 2 / π in pieces of 29 bits, whose products with float32 numbers are exact; 53 bits after two.
_PIECES = tuple(map(float.fromhex, (
    "0x1.45f306dp-1", "0x1.9391054p-30", "0x1.4fe13abp-59", "0x1.d1f534dp-88", "0x1.b81b6c5p-117")))
_LAST = tuple(map(float.fromhex, (
    "0x1.4fe13abe8fa9ap-59", "0x1.d1f534ddc0db6p-88", "0x1.b81b6c52b3279p-117",
    "0x1.5993c439041fep-148")))
# From these numbers on, products with the pieces before are multiples of 4.
_STARTS = (2.0 ** 54, 2.0 ** 83, 2.0 ** 112)
_SIN = (0.9999999999829089, -0.16666666616790812, 0.008333330973271878, -0.00019840861058037127,
        2.752526349541792e-06, -2.3889104032675583e-08)
_SHORT_SIN = (0.9999999999956709, -0.16666666631577168, 0.008333328781097757,
              -0.00019839201800436314, 2.717341870116158e-06)
_SHORT_COS = (0.9999999999524657, -0.49999999614703977, 0.04166661667759459,
              -0.001388661754772064, 2.4379789395383755e-05)


def _any_angle(x: Array, quarters: float, shift: float) -> tuple[Array, Array]:
    """x less k + shift times some quarter turns, and k, a whole number, or that less some turns.

    Payne and Hanek (1983), Radian reduction for trigonometric functions: the digits of 2 / π that
    make whole turns are left out.
    """
    w = _wide(x)
    later = [ge(abs(w), start) for start in _STARTS]
    products = []
    for words in (_PIECES[:4], _PIECES[1:], _LAST):
        word = like(words[0], w)
        for above, value in zip(later, words[1:], strict=True):
            word = select(above, like(value, w), word)
        products.append(mul(w, word))
    first, second = [sub(v, mul(nearest(mul(v, 0.25)), 4.0)) for v in products[:2]]
    turns = mul(add(first, second), 1 / quarters)
    k = nearest(sub(turns, shift) if shift else turns)
    moved = add(k, shift) if shift else k
    rest = add(add(sub(first, mul(moved, quarters)), second), products[2])
    return mul(rest, _HALF_PI), k


def _small_angle(x: Array, quarters: float, shift: float) -> tuple[Array, Array]:
    """The same of angles up to `LARGEST_ANGLE`."""
    w = _wide(x)
    turns = mul(w, 2 / (quarters * math.pi))
    k = nearest(sub(turns, shift) if shift else turns)
    moved = add(k, shift) if shift else k
    for piece in _PI:
        w = sub(w, mul(moved, piece * quarters / 2))
    return w, k


def _is_large_angle(x: Array) -> Array:
    return bitwise_and(is_finite(x), gt(abs(x), LARGEST_ANGLE))


def _odd_sign(k: Array) -> Array:
    """Of whole numbers, the bits of -0 where they are odd, else 0."""
    return shift_left(bits64(add(k, _WHOLE)), 63)


def _sin(x: Array, reduced: Callable[..., tuple[Array, Array]] = _any_angle) -> Array:
    r, k = reduced(x, 2, 0)
    found = mul(r, polynomial(mul(r, r), _SIN))
    return _or_tiny(_rounded(float64.signed(found, _odd_sign(k))), x)


def _cos(x: Array, reduced: Callable[..., tuple[Array, Array]] = _any_angle) -> Array:
    r, k = reduced(x, 2, 0.5)
    found = mul(r, polynomial(mul(r, r), _SIN))
    return _rounded(float64.signed(found, bitwise_not(_odd_sign(k))))


def _tan(x: Array, reduced: Callable[..., tuple[Array, Array]] = _any_angle) -> Array:
    r, k = reduced(x, 1, 0)
    z, odd = mul(r, r), lt(_odd_sign(k), 0)
    s, c = mul(r, polynomial(z, _SHORT_SIN)), polynomial(z, _SHORT_COS)
    return _or_tiny(_rounded(div(select(odd, neg(c), s), select(odd, s, c))), x)


# Inverse functions

_ATAN = (0.9999999995535376, -0.33333322488911593, 0.19999558100363982, -0.14278576024807985,
         0.1105077127584966, -0.08785043282362845, 0.06685281517877424, -0.04392841073326746,
         0.021912945865448393, -0.007030669470424213, 0.001057607438057242)
_ASIN = (0.9999999999863537, 0.16666667364186447, 0.07499941908754719, 0.04466113930866896,
         0.03010250689966149, 0.024650862660604088, 0.0074010072390753795, 0.0347484248080839)


def _small_atan(v: Array) -> Array:
    return mul(v, polynomial(mul(v, v), _ATAN))


def _atan(x: Array) -> Array:
    w = _wide(x)
    large = gt(abs(w), 1.0)
    # XLA:CPU computes a quotient that is read twice in a loop of its own.
    found = _small_atan(select(large, div(-1.0, w), w))
    right = float64.signed(like(_HALF_PI, w), bits64(w))
    return _or_tiny(_rounded(select(large, add(right, found), found)), x)


def _atan2(y: Array, x: Array) -> Array:
    a, c = _size(y), _size(x)
    steep = gt(a, c)
    high, low = select(steep, a, c), select(steep, c, a)
    # 0 over 0 is taken for 0 and infinity over infinity for 1.
    ratio = select(eq(low, high), select(gt(low, 0.0), like(1.0, low), like(0.0, low)),
                   div(low, high))
    found = _small_atan(ratio)
    found = select(steep, sub(_HALF_PI, found), found)
    found = select(lt(_bits(x), 0), sub(math.pi, found), found)
    return _signed(_rounded(found), _bits(y))


def _arc(w: Array) -> tuple[Array, Array]:
    """The arcsine of w up to ½; above, the arccosine of |w|, and whether it is that."""
    large = gt(abs(w), 0.5)
    z = select(large, sub(0.5, mul(abs(w), 0.5)), mul(w, w))
    return mul(select(large, sqrt(mul(z, 4.0)), w), polynomial(z, _ASIN)), large


def _asin(x: Array) -> Array:
    found, large = _arc(_wide(abs(x)))
    found = select(large, sub(_HALF_PI, found), found)
    return _or_tiny(_signed(_rounded(found), _bits(x)), x)


def _acos(x: Array) -> Array:
    w = _wide(x)
    found, large = _arc(w)
    negative = lt(w, 0.0)
    start = select(large, select(negative, like(math.pi, w), like(0.0, w)), like(_HALF_PI, w))
    acute = bitwise_and(large, bitwise_not(negative))
    return _rounded(add(start, select(acute, found, neg(found))))


# Others

# (1 - h)**(-2/3) for |h| up to 0.1025. Less a third of the bits of a number, those of the cube root
# of its reciprocal, within 3.5 %; here of the highest 32 bits of a float64, of a float32's bits.
_CBRT = (0.9999999999646463, 0.6666666666326176, 0.555555663203273, 0.49382726416860034,
         0.4526237513600992, 0.42244731308337885, 0.4067811856995519, 0.3874934408611346)
_ROOT_BITS = 1117011465.0


def _cbrt(x: Array) -> Array:
    """|x| y², corrected by 1 - |x| y³, where y is about the cube root of 1 / |x|."""
    tiny = lt(abs(x), _TINY)        # times 2**150: XLA:CPU converts subnormals to 0
    size = bitwise_and(_bits(x), ~_SIGN)
    v = select(tiny, mul(in_dtype(size, FLOAT32), 2.0), abs(x))
    w, y = _wide(v), sub(_WHOLE + _ROOT_BITS, mul(_wide(_bits(v)), 1 / 24))
    y = of_bits64(shift_left(bits64(y), 32))
    y2 = mul(y, y)
    found = mul(mul(w, y2), polynomial(sub(1.0, mul(mul(w, y), y2)), _CBRT))
    found = _rounded(select(tiny, mul(found, 2.0 ** -50), found))
    ordinary = bitwise_and(is_finite(x), gt(size, 0))
    return select(ordinary, _signed(found, _bits(x)), x)


# 2**f, |f| <= ½, and log2(1 + t) / t.
_EXP2 = (0.9999999999595618, 0.6931471805568324, 0.24022651213498092, 0.055504109063258665,
         0.009618025613318034, 0.0013333478473685416, 0.00015469729214118296,
         1.5303700711365693e-05)
_LOG2 = (1.4426950408708794, -0.7213475209631551, 0.4808983601762459, -0.3606736553159396,
         0.28853739437873954, -0.24045433696411997, 0.20617283226751987, -0.1802710257711494,
         0.15878356832510718, -0.14349039375280997, 0.14495052999815844, -0.14144788210587383,
         0.07553790398013405)
_MOST = 256.0       # powers of 2 beyond are infinite, or 0, in float32


def _whole_part(w: Array) -> tuple[Array, Array]:
    """The nearest whole number, up to `_MOST`, and the rest."""
    w = select(gt(w, _MOST), like(_MOST, w), select(lt(w, -_MOST), like(-_MOST, w), w))
    k = nearest(w)
    return k, sub(w, k)


def _scale(k: Array) -> Array:
    """2**k of whole numbers."""
    return of_bits64(shift_left(bits64(add(k, _WHOLE + BIAS)), MANTISSA))


def _power_of_2(w: Array) -> Array:
    k, f = _whole_part(w)
    return mul(polynomial(f, _EXP2), _scale(k))


def _exp2(x: Array) -> Array:
    return _rounded(_power_of_2(_wide(x)))


def _sinh(x: Array) -> Array:
    """By the even and the odd part of 2**f, so that no digits are lost near 0."""
    k, f = _whole_part(mul(_wide(x), 1 / math.log(2)))
    z, up, down = mul(f, f), _scale(sub(k, 1.0)), _scale(sub(-1.0, k))
    found = add(mul(polynomial(z, _EXP2[::2]), sub(up, down)),
                mul(mul(f, polynomial(z, _EXP2[1::2])), add(up, down)))
    return _or_tiny(_rounded(found), x)


def _log2(w: Array) -> Array:
    """The logarithm of a positive number: the exponent, and a series for a mantissa near 1."""
    bits = bits64(w)
    e = shift_right_logical(sub(bits, _ROOT_HALF - (_MORE << MANTISSA)), MANTISSA)
    m = of_bits64(sub(bits, shift_left(sub(e, _MORE), MANTISSA)))
    t = sub(m, 1.0)
    k = sub(of_bits64(add(e, _BITS_2_52)), 2.0 ** 52 + _MORE)
    return add(k, mul(t, polynomial(t, _LOG2)))


# Below, two terms of a series are as good as these logarithms.
_SMALL = 2.0 ** -10


def _log(w: Array) -> Array:
    """The natural logarithm of numbers from 1 to infinity."""
    return select(eq(w, math.inf), w, mul(_log2(w), math.log(2)))


def _odd_function(x: Array, w: Array, large: Array, cubic: float) -> Array:
    """An odd function of x, of size w: `large`, or near 0 w + cubic w³."""
    small = mul(w, add(1.0, mul(mul(w, w), cubic)))
    found = _rounded(select(lt(w, _SMALL), small, large))
    return select(ne(x, x), x, _or_tiny(_signed(found, _bits(x)), x))


def _asinh(x: Array) -> Array:
    w = _wide(abs(x))
    return _odd_function(x, w, _log(add(w, sqrt(add(mul(w, w), 1.0)))), -1 / 6)


def _acosh(x: Array) -> Array:
    w = _wide(x)
    found = _log(add(w, sqrt(mul(sub(w, 1.0), add(w, 1.0)))))
    return _rounded(select(ge(w, 1.0), found, like(math.nan, w)))


def _atanh(x: Array) -> Array:
    w = _wide(abs(x))
    found = mul(_log(div(add(1.0, w), sub(1.0, w))), 0.5)
    return _odd_function(x, w, select(gt(w, 1.0), like(math.nan, w), found), 1 / 3)


_ROOT_HALF, _BITS_2_52 = np.array([math.sqrt(0.5), 2.0 ** 52]).view(np.int64).tolist()
_MORE = 1024


def _are_alike(fits: Callable[..., bool], least: int, b: Builder, *xs: IrValue) -> bool:
    return fits(least, b) and b.avals_in[1].dtype == b.avals_in[0].dtype


def _is_power(b: Builder, *xs: IrValue) -> bool:
    """Whether the exponent is not one of those for which XLA multiplies or takes a root."""
    exponent = b.eqn.invars[1]
    return not (type(exponent) is Literal and float(exponent.raw) in _KNOWN_TO_XLA)


_KNOWN_TO_XLA = {-1.0, 0.0, 0.5, 1.0, 2.0, 3.0}


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
_MOST_PRODUCTS = 8


def _is_product(b: Builder, *xs: IrValue) -> bool:
    """Whether the exponent is such a small half of an integer."""
    base, exponent = b.eqn.invars
    if type(exponent) is not Literal or type(base) is Literal:
        return False
    value = float(exponent.raw)
    return builtins.abs(value) < _MOST_PRODUCTS and value % 0.5 == 0 and _is_power(b)


def _by_products(formula: Callable[..., Array], b: Builder, *xs: IrValue) -> IrValue:
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
    """If the exponent is no whole number, zeros and -inf have no sign (C23, F.10.4.5)."""
    w, count = _size(x), int(builtins.abs(exponent))
    found = w
    if exponent % 1:
        ordinary = bitwise_and(is_finite(w), gt(w, 0.0))
        w = select(bitwise_and(lt(_bits(x), 0), ordinary), like(math.nan, w), w)
        found, count = sqrt(w), count + 1
    for _ in range(count - 1):
        found = mul(found, w)
    found = _rounded(div(1.0, found) if exponent < 0 else found)
    return _signed(found, _bits(x)) if exponent % 2 == 1 else found


# So large quotients, and products of them and float32 numbers, are exact in float64.
LARGEST_QUOTIENT = 2.0 ** 28


def _rem(x: Array, y: Array) -> Array:
    v, w = _wide(abs(x)), _wide(abs(y))
    r = sub(v, mul(floor(div(v, w)), w))     # towards 0, in one loop
    # The quotient may have been rounded up, to an integer.
    r = select(lt(r, 0.0), add(r, w), r)
    r = select(bitwise_and(is_finite(v), eq(w, math.inf)), v, r)
    return _signed(_rounded(r), _bits(x))


def _has_large_quotient(x: Array, y: Array) -> Array:
    v = abs(x)
    return bitwise_and(ge(v, mul(abs(y), LARGEST_QUOTIENT)), bitwise_and(
        is_finite(x), bitwise_and(gt(v, 0.0), gt(abs(y), 0.0))))


def _where_none(formula: Callable[..., Array], exception: Callable[..., Array],
                general: Callable[..., Array] | None, b: Builder, *xs: IrValue, **params: Hashable
                ) -> IrValue:
    """The formula, but where an element is an exception, a general one for all of them: None is the
    rule of the primitive.
    """
    given, wide = _widened(b, xs)
    which = _any(b, exception, given, wide)

    def by(formula: Callable[..., Array] | None) -> list[IrValue]:
        return [b.eqn.primitive.lower(b, *xs, **params) if formula is None else
                _as_wanted(b, _traced(b, formula, given, wide), wide)]

    branches = [functools.partial(by, formula), functools.partial(by, general)]
    return b.case(which, branches, [b.type(b.avals_out[0])])[0]


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


def _angle(saves: float, formula: Callable[..., Array]) -> Kernel:
    small = lambda x: formula(x, _small_angle)
    return Kernel(_POLYNOMIAL, _SLOW, functools.partial(_is_narrow, LEAST_LOOKED),
                  functools.partial(_where_none, small, _is_large_angle, formula), saves)


def _narrow(name: str, saves: float, formula: Callable[..., Array], least: int = LEAST) -> Kernel:
    return Kernel(name, _SLOW, functools.partial(_is_narrow, least),
                  functools.partial(_by_formula, formula), saves)


def _double(saves: float, formula: Callable[..., Array], least: int = LEAST_DOUBLE,
            exception: Callable[..., Array] | None = None) -> Kernel:
    emit = functools.partial(_by_formula, formula) if exception is None else functools.partial(
        _where_none, formula, exception, None)
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
    asinh_p: (_odd(12.5, half=LEAST_SHARED, double=LEAST_SHARED),
              _narrow(_POLYNOMIAL, 1.3, _asinh, LEAST_QUICK),
              _double(5.0, float64.asinh, LEAST_QUICK)),
    acosh_p: (_ODD_16_64, _narrow(_POLYNOMIAL, 1.0, _acosh, LEAST_QUICK),
              _double(3.0, float64.acosh, LEAST_QUICK)),
    atanh_p: (_ODD_16_64, _narrow(_POLYNOMIAL, 1.0, _atanh, LEAST_QUICK),
              _double(3.0, float64.atanh, LEAST_QUICK)),
    erf_inv_p: (_odd(10.2, single=LEAST_ODD, double=LEAST_ODD),),
    lgamma_p: (_odd(22.5, single=LEAST_ODD),),
    sin_p: (_ODD_16, _angle(7.1, _sin), _narrow(_POLYNOMIAL, 6.8, _sin, LEAST_QUICK),
            _double(9.2, float64.sin, LEAST_QUICK, float64.is_large_angle)),
    cos_p: (_ODD_16, _angle(7.1, _cos), _narrow(_POLYNOMIAL, 6.8, _cos, LEAST_QUICK),
            _double(12.0, float64.cos, LEAST_QUICK, float64.is_large_angle)),
    tan_p: (_ODD_16, _angle(13.1, _tan), _narrow(_POLYNOMIAL, 12.7, _tan),
            _double(12.5, float64.tan, LEAST_QUICK, float64.is_large_angle)),
    asin_p: (_ODD_16_64, _narrow(_POLYNOMIAL, 14.5, _asin), _double(12.2, float64.asin)),
    acos_p: (_ODD_16, _narrow(_POLYNOMIAL, 20, _acos), _double(16.0, float64.acos)),
    atan_p: (_ODD_16, _narrow(_POLYNOMIAL, 10.7, _atan), _double(5.3, float64.atan)),
    atan2_p: (_ODD_16, _narrow(_POLYNOMIAL, 23.9, _atan2), _double(15.0, float64.atan2)),
    cbrt_p: (_ODD_16_64, _narrow("Halley's method in float64", 12.7, _cbrt),
             _double(12.3, float64.cbrt)),
    pow_p: (Kernel("products in float64", _SLOW,
                   functools.partial(_are_alike, _is_narrow, LEAST),
                   functools.partial(_by_products, _power), 3.8, suits=_is_product),
            Kernel(_POLYNOMIAL, _SLOW, functools.partial(_are_alike, _is_narrow, LEAST_POWERS),
                   functools.partial(_by_formula, _pow), 1.9, suits=_is_power),
            Kernel("products with a rest", _SLOW,
                   functools.partial(_are_alike, _is_double, LEAST_DOUBLE),
                   functools.partial(_by_products, float64.product_power), 7.6, suits=_is_product)),
    exp2_p: (_ODD_16, _narrow(_POLYNOMIAL, 1.2, _exp2, LEAST_QUICK),
             _double(1.8, float64.exp2, LEAST_QUICK)),
    sinh_p: (_ODD_16, _narrow(_POLYNOMIAL, 0.8, _sinh, LEAST_QUICK),
             _double(3.0, float64.sinh, LEAST_QUICK)),
    log1p_p: (_odd(2.4, double=LEAST_DOUBLES), _double(2.0, float64.log1p, LEAST_QUICK)),
    log2_p: (_ODD_16_64, _double(4.0, functools.partial(float64.log_to, base=2), LEAST_QUICK)),
    log10_p: (_ODD_16_64, _double(4.2, functools.partial(float64.log_to, base=10), LEAST_QUICK)),
    rem_p: (Kernel("quotient in float64", _SLOW, functools.partial(_is_narrow, LEAST_POWERS),
                   functools.partial(_where_none, _rem, _has_large_quotient, None), 12.9),
            integers.REMAINDER)}
