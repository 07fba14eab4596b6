"""Error functions of all kinds and the normal distribution.

All stand on `_erfcx` of x >= 0, exp(x²) erfc(x), and on `_square_exp`, exp(±x²) as if x² were not
rounded. The first, like Dawson's integral and the Faddeeva function w, is the trapezoidal rule with
the contribution of the integrand's pole (Al Azah and Chandler-Wilde 2021, SIAM J. Numer. Anal.
59(5), 2346): of step h, at the points hk or h(k + 1/2), 14 terms give 1e-18.
"""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.arithmetic import complex as make_complex
from ...lax.barriers import stop_gradient
from ...lax.families import COMPLEX
from ...lax.special.classical import erf_p
from ...lax.special.series import is_short, log1p_minus_near
from ...numpy.arithmetic import absolute, imag, maximum, real, sign
from ...numpy.elementary import copysign, exp, expm1, floor, log, rint, sqrt
from ...numpy.manipulation import astype
from ...numpy.selection import where
from ...numpy.trigonometry import cos, sin, tan
from ...types import dtypes
from .family import Special, apply, by_format, horner, inside, normal, operands, outside

_TERMS = 14
_STEP = math.sqrt(math.pi / _TERMS)
_MIDPOINTS = _STEP * (np.arange(_TERMS) + 0.5)
_POINTS = _STEP * np.arange(1, _TERMS + 1)
_POLE = math.pi / _STEP     # above that the contribution of the pole is left out
_ROOT_PI, _ROOT_TWO, _ROOT_HALF = math.sqrt(math.pi), math.sqrt(2.0), math.sqrt(0.5)
_TO_ERF = 2.0 / _ROOT_PI


# Pieces ------------------------------------------------------------------------------------------

def _square_exp(x: Array, factor: float) -> Array:
    """exp(factor x²), where x² is the sum of two parts, the large one exact."""
    x = where(absolute(x) < 50.0, x, 50.0 * sign(x))
    high = floor(x * 16.0) / 16.0
    power = exp(factor * high * high)
    # Not the product of two exponentials, which XLA takes for the exponential of the sum.
    return where(power == math.inf, power, power + power * expm1(factor * (x - high) * (x + high)))


def _erfcx(x: Array, slope: bool = False) -> Array:
    """exp(x²) erfc(x) for x >= 0, or its derivative, 2x times that less 2/√π.

    2/√π is the same sum of h exp(-t²) over the points t, so that nothing cancels.
    """
    square = x * x
    total = x * 0.0
    for t in _MIDPOINTS[::-1].tolist():
        weight = math.exp(-t * t) * (t * t if slope else 1.0)
        total = total + weight / (square + t * t)
    near = x < _POLE
    small = inside(near, x, 0.0)
    pole = where(near, 2.0 * exp(small * small) / (1.0 + exp(2.0 * _POLE * small)), 0.0)
    if slope:
        return 2.0 * small * pole - (4.0 * _STEP / math.pi) * total
    value = (2.0 * _STEP / math.pi) * x * total + pole
    return where(x > by_format(x, 1e150, 1e8), 1.0 / (_ROOT_PI * x), value)


def _short_erf(x: Array) -> Array:
    """erf(x) for |x| <= 1/2. XLA's own, of float64, is a call of the C library for each number."""
    return x * horner(x * x, _ERF)


# 2/√π Σ (-1)ᵏ x²ᵏ⁺¹ / (k! (2k+1))  (DLMF 7.6.1)
_ERF = [_TO_ERF * (-1.0) ** k / (math.factorial(k) * (2 * k + 1)) for k in range(13)]


def _erfc(x: Array) -> Array:
    size = absolute(x)
    near = size < 0.5
    far = _square_exp(size, -1.0) * _erfcx(size)
    return where(near, 1.0 - _short_erf(inside(near, x, 0.0)), where(x < 0.0, 2.0 - far, far))


def _erfcx_anywhere(tol: float, x: Array) -> Array:
    value = _erfcx(absolute(x))
    # Below -26.7 it is above the largest double.
    return where(x < 0.0, 2.0 * _square_exp(x, 1.0) - value, value)


def _dawsn(tol: float, x: Array, slope: bool = False) -> Array:
    """Im w √π/2 on the real line, by the rule whose points are farther from x; or its derivative.

    That is 1 - 2x times the value, where 1 is the same sum of h exp(-t²) over the points t.
    """
    size = absolute(x)
    near = size < 1.0
    small, large = inside(near, size, 0.0), outside(near | (size == math.inf), size, 1.0)
    square = large * large
    series = horner(small * small, _DAWSON)
    place = large / _STEP
    middle = absolute(place - floor(place) - 0.5) < 0.25       # x is near a midpoint
    total = x * 0.0
    for k in range(_TERMS - 1, -1, -1):
        a, b = float(_MIDPOINTS[k]), float(_POINTS[k])
        point = where(middle, b, a)
        weights = [math.exp(-t * t) * (t * t if slope else 1.0) for t in (b, a)]
        total = total + where(middle, *weights) / ((large - point) * (large + point))
    # The pole's part is tan(πx/h) at midpoints, -cot at the others, which is tan(πx/h - π/2).
    turn = math.pi * where(middle, place - floor(place) - 0.5, place - rint(place))
    pole = 0.5 * _ROOT_PI * exp(-square) * tan(turn)
    if slope:
        value = -2.0 * (_STEP / _ROOT_PI * total + large * pole)
        series = 1.0 - 2.0 * small * small * series
        limit = -0.5 / square
    else:
        total = 2.0 * large * total + where(middle, 1.0 / large, 0.0)
        value = 0.5 * _STEP / _ROOT_PI * total + pole
        series, limit = small * series, 0.5 / large
    value = where(size > 1e8, limit, value)
    value = where(near, series, where(size == math.inf, -0.0 if slope else 0.0, value))
    return value if slope else copysign(value, x)


# Σ (-2)ᵏ x²ᵏ⁺¹ / (2k+1)!!  (DLMF 7.6.3)
_DAWSON = [(-2.0) ** k / math.prod(range(1, 2 * k + 2, 2)) for k in range(25)]


def faddeeva(z: ArrayLike) -> Array:
    """w(z) for Im z >= 0."""
    x, y = real(z), imag(z)
    size = absolute(x)
    place = size / _STEP
    place = place - floor(place)
    above = y >= maximum(size, _POLE)
    middle = ~above & (absolute(place - 0.5) <= 0.25)
    square = z * z
    far = absolute(x) + y > 1e8
    square = where(far, 1.0, square)
    total = z * 0.0
    for k in range(_TERMS - 1, -1, -1):
        a, b = float(_MIDPOINTS[k]), float(_POINTS[k])
        total = total + where(middle, math.exp(-b * b), math.exp(-a * a)) / (
            square - where(middle, b * b, a * a))
    safe = where(far | (z == 0.0), 1.0, z)
    value = (2j * _STEP / math.pi) * safe * total + where(
        middle, 1j * _STEP / math.pi, 0.0) / safe
    # 2 exp(-z²) / (1 ± exp(-2πiz/h)); the exponential is large where it does not matter.
    with_pole = ~above & (y < _POLE)
    zx, zy = where(with_pole, x, 1.0), where(with_pole, y, 1.0)
    turn = 2.0 * _POLE * (zx - _STEP * rint(zx / _STEP))
    grown = exp(2.0 * _POLE * zy)
    pole = make_complex(cos(turn) * grown, -sin(turn) * grown)
    power = exp((zy - zx) * (zy + zx))
    angle = -2.0 * zx * zy
    gauss = make_complex(power * cos(angle), power * sin(angle))
    value = value + where(with_pole, 2.0 * gauss / (1.0 + where(middle, -pole, pole)), 0.0)
    value = where(z == 0.0, 1.0, value)
    # On the real axis the real part is exp(-x²).
    value = where(y == 0.0, make_complex(_square_exp(x, -1.0), imag(value)), value)
    # i / (√π z), which is 0 at infinity.
    half_x, half_y = 0.5 * where(far, x, 1.0), 0.5 * where(far, y, 1.0)
    top = maximum(absolute(half_x), absolute(half_y))
    top = where(top == math.inf, by_format(top, 1e300, 1e30), top)
    u, v = half_x / top, half_y / top
    norm = (0.5 / _ROOT_PI) / top / (u * u + v * v)
    limit = where((absolute(x) == math.inf) | (y == math.inf), 0.0,
                  make_complex(v * norm, u * norm))
    return where(far, limit, value)


def _wofz(tol: float, z: Array) -> Array:
    x, y = real(z), imag(z)
    below = y < 0.0
    upper = faddeeva(make_complex(where(below, -x, x), absolute(y)))
    # w(z) = 2 exp(-z²) - w(-z)
    bx, by = where(below, x, 0.0), where(below, y, 0.0)
    power, angle = exp((by - bx) * (by + bx)), -2.0 * bx * by
    lower = make_complex(2.0 * power * cos(angle), 2.0 * power * sin(angle)) - upper
    return where(below, lower, upper)


# Primitives --------------------------------------------------------------------------------------

def _gauss(x: Array, factor: float, scale: float) -> Array:
    return gauss_p.bind(x, factor=factor) * scale


# exp(factor x²)
gauss_p = Special("gauss", lambda tol, x, factor: _square_exp(x, factor),
                  lambda t, y, x, factor: t * (2.0 * factor) * x * y)
erfc_p = Special("erfc_exact", lambda tol, x: _erfc(x),
                 lambda t, y, x: t * _gauss(x, -1.0, -_TO_ERF))
erfcx_p = Special("erfcx", _erfcx_anywhere, lambda t, y, x: t * erfcx_slope_p.bind(x))
dawsn_p = Special("dawsn", _dawsn, lambda t, y, x: t * dawsn_slope_p.bind(x))
wofz_p = Special("wofz", _wofz, lambda t, w, z: t * (2j / _ROOT_PI - 2.0 * z * w), kinds=COMPLEX)


def _erfcx_slope(tol: float, x: Array) -> Array:
    """2x erfcx(x) - 2/√π."""
    below = where(x < 0.0, x, 0.0)
    return where(x < 0.0, 2.0 * below * _erfcx_anywhere(tol, below) - _TO_ERF,
                 _erfcx(absolute(x), slope=True))


erfcx_slope_p = Special("erfcx_slope", _erfcx_slope,
                        lambda t, y, x: t * 2.0 * (erfcx_p.bind(x) + x * y))
dawsn_slope_p = Special("dawsn_slope", functools.partial(_dawsn, slope=True),
                        lambda t, y, x: t * -2.0 * (dawsn_p.bind(x) + x * y))


def _erfi(tol: float, x: Array) -> Array:
    size = absolute(x)
    if is_short(x):     # whose product may be a number where the power is none
        half = _square_exp(x, 0.5)
        grown = half * (half * _dawsn(tol, x) * _TO_ERF)
    else:
        grown = _square_exp(x, 1.0) * _dawsn(tol, x) * _TO_ERF
    return where((size < 27.0) | (x != x), grown, math.inf * sign(x))


erfi_p = Special("erfi", _erfi, lambda t, y, x: t * _gauss(x, 1.0, _TO_ERF))


def _inverse(tol: float, near: Array, y: Array, level: Array, scale: float) -> Array:
    """`scale` times the x with erf(x) = y where `near`, |y| <= 1/2, or with ln erfc(x) = -level.

    x/y less √π/2, over y², and x/√level less 1 are rational functions of y² and of √level up to
    2.5, 7 and 27.4; or one up to 9.5 for float32. They were fitted by weighted least squares in 40
    digits, to 6e-17 of x and 2e-10.
    """
    small, r = inside(near, y, 0.0), sqrt(outside(near, level, 1.0))
    square, middle, high = small * small, r < 2.5, r > 7.0
    center, tails = (_NEAR, _TAILS) if tol < _NARROW else (_BRIEF_NEAR, _BRIEF_TAILS)
    above, below, *others = [
        horner(r - start, table) for start, *tables in tails for table in tables]
    if others:
        above = where(middle, above, where(high, others[2], others[0]))
        below = where(middle, below, where(high, others[3], others[1]))
    # One quotient, of the parts that are chosen: a division takes as long as a polynomial.
    rest = where(near, square * horner(square, center[0]), above) / where(
        near, horner(square, center[1]), below)
    return where(near, small, r) * (where(near, scale / _TO_ERF, scale) + scale * rest)


_NARROW = 1e-12     # tolerances above are those of float32 and narrower formats
_BRIEF_NEAR = ((0.23201368367613, -0.16853083298884, 0.0067025446517679),
               (1.0, -1.2761582176671, 0.35738598215842))
_BRIEF_TAILS = ((1.0, (-0.36328386278492, -0.56752550009078, -0.35607805918865, -0.083973648016098,
                       -0.0052023359398071, -2.0672037151758e-05, 1.4058286834047e-07),
                 (1.0, 2.5016992267763, 2.7213763456987, 1.5496308305501, 0.46017460086163,
                  0.059283332316762, 0.0022026438339126)),)
_NEAR = ((0.23201366653465436, -0.45701224624194375, 0.2840714532792048, -0.05620203795218672,
          0.0008761693203804694, 4.468962794785906e-05),
         (1.0, -2.5195430522634816, 2.2365173873326647, -0.811898051501983, 0.09827313253014619))
_TAILS = ((1.0, (-0.36328386278038344, -0.8964803221303335, -0.9701898315992753,
                 -0.5511289672210931, -0.16281262724450815, -0.01968005852995042,
                 -0.00026547091697595694, 7.696679726569476e-06, -1.8616852468780235e-07),
           (1.0, 3.407202761652186, 5.262533667856698, 4.671395201066446, 2.5376424452658326,
            0.8288542019337467, 0.14673494172453783, 0.010189316473486974)),
          (2.5, (-0.12298163127523482, -0.13077263064630468, -0.052227447927459064,
                 -0.009263625813976177, -0.0006841701348131611, -1.6190380966746396e-05,
                 -2.7956702781034788e-08, 1.1170643486435367e-10),
           (1.0, 1.6161660243168807, 1.0818710053484424, 0.38134902976129026, 0.07442770222917393,
            0.007725329236192249, 0.000372257127365473, 5.901019478735458e-06)),
          (7.0, (-0.025870794064923246, -0.006898030223446744, -0.000613139723613202,
                 -2.1068770700609386e-05, -2.3472130392792043e-07, -1.9657985188781787e-10,
                 5.569474851957324e-13, -1.3178317123771198e-15),
           (1.0, 0.49705412206912747, 0.09668874107135794, 0.009246582092255214,
            0.00044690838603264317, 9.980418798129342e-06, 7.62570544373668e-08)))


def _erfcinv(tol: float, q: Array) -> Array:
    near = absolute(q - 1.0) <= 0.5
    legal = (q > 0.0) & (q < 2.0)
    tail = inside(legal & ~near, where(q > 1.0, 2.0 - q, q), 0.5)       # exact for q > 1
    x = _inverse(tol, near, 1.0 - q, -log(tail), 1.0)
    x = where(~near & (q > 1.0), -x, x)
    return where(legal, x, where(q == 0.0, math.inf, where(q == 2.0, -math.inf, math.nan)))


def _erfinv(tol: float, y: Array) -> Array:
    size = absolute(y)
    near, legal = size <= 0.5, size < 1.0
    x = _inverse(tol, near, y, -log(inside(legal & ~near, 1.0 - size, 0.5)), 1.0)
    x = where(near, x, copysign(where(legal, x, where(size == 1.0, math.inf, math.nan)), y))
    return where(y == 0.0, y, x)


erfcinv_p = Special("erfcinv", _erfcinv, lambda t, x, q: t * _gauss(x, 1.0, -0.5 * _ROOT_PI))
erfinv_p = Special("erfinv", _erfinv, lambda t, x, y: t * _gauss(x, 1.0, 0.5 * _ROOT_PI))


# The normal distribution -------------------------------------------------------------------------

_DENSITY = 1.0 / math.sqrt(2.0 * math.pi)


def ndtr_of(x: Any) -> Array:
    size = absolute(x)
    tail = 0.5 * _square_exp(size, -0.5) * _erfcx(size / _ROOT_TWO)
    near = 0.5 + 0.5 * _short_erf(inside(size < 0.6, x, 0.0) / _ROOT_TWO)
    return where(size < 0.6, near, where(x < 0.0, tail, 1.0 - tail))


def _log_ndtr(tol: float, x: Array) -> Array:
    size = absolute(x)
    scaled = 0.5 * _erfcx(size / _ROOT_TWO)
    missing = -scaled * _square_exp(size, -0.5)     # ndtr(|x|) - 1
    return where(x < 0.0, log(scaled) - 0.5 * size * size,
                 missing + log1p_minus_near(missing))


def _mills(tol: float, x: Array) -> Array:
    """The density over the distribution function, exp(-x²/2) / (√2π Φ(x))."""
    size = absolute(x)
    scaled, power = 0.5 * _erfcx(size / _ROOT_TWO), _square_exp(size, -0.5)
    return _DENSITY * where(x < 0.0, 1.0, power) / where(x < 0.0, scaled, 1.0 - scaled * power)


ndtr_p = Special("ndtr", lambda tol, x: ndtr_of(x), lambda t, y, x: t * _gauss(x, -0.5, _DENSITY))
mills_p = Special("mills", _mills, lambda t, y, x: t * -y * (x + y))
log_ndtr_p = Special("log_ndtr", _log_ndtr, lambda t, y, x: t * mills_p.bind(x))


def _ndtri(tol: float, p: Array) -> Array:
    gap = p - 0.5
    near, legal = absolute(gap) <= 0.25, (p > 0.0) & (p < 1.0)
    tail = inside(legal & ~near, where(gap < 0.0, p, 1.0 - p), 0.25)
    x = _inverse(tol, near, 2.0 * gap, -log(2.0 * tail), _ROOT_TWO)
    x = where(legal, x, where((p == 0.0) | (p == 1.0), math.inf, math.nan))
    return where(near, x, copysign(x, gap))


def _ndtri_exp(tol: float, y: Array) -> Array:
    """Where exp(y) is near 1/2 its distance to it is computed, in the tails the logarithm of both.

    Far out x² is the root of X + ln(√π X) / 2 - ln Σ (-1)ᵏ (2k-1)!! / (2X)ᵏ = level, by Newton's
    method (DLMF 7.12.1).
    """
    low, high = y < math.log(0.25), y > math.log(0.75)
    near = ~low & ~high
    first = by_format(y, math.log(2.0), float(np.float32(math.log(2.0))))
    second = (math.log(2.0) - first) + 2.3190468138462996e-17
    half = 0.5 * expm1((inside(near, y, -first) + first) + second)
    level = -where(low, y + math.log(2.0), log(-2.0 * expm1(inside(high & (y <= 0.0), y, -0.1))))
    far = level > (740.0 if tol < _NARROW else 85.0)
    value = _inverse(tol, near, 2.0 * half, outside(far, level, 1.0), _ROOT_TWO)
    square = goal = inside(far, level, 740.0)
    for _ in range(2):
        series = horner(1.0 / square, _ERFC)
        rest = 0.5 * log(square * (0.25 * math.pi) / (series * series)) + (square - goal)
        square = square - (rest + math.log(2.0)) / (1.0 + (0.5 - 0.5 / square) / square)
    value = where(far, _ROOT_TWO * sqrt(square), value)
    value = where(level == math.inf, math.inf, where(y <= 0.0, value, math.nan))
    return where(low, -value, value)


_ERFC = [(-0.5) ** k * math.prod(range(1, 2 * k, 2)) for k in range(6)]


ndtri_p = Special("ndtri", _ndtri, lambda t, x, p: t * _gauss(x, 0.5, 1.0 / _DENSITY))
ndtri_exp_p = Special("ndtri_exp", _ndtri_exp, lambda t, x, y: t / mills_p.bind(x), pace=math.inf)


# Public functions --------------------------------------------------------------------------------

@fused(inline=True)
def erf(x: ArrayLike) -> Array:
    """The error function, 2/sqrt(π) times the integral of exp(-t²) from 0 to x.

    Returns: An array of the shape of x, in [-1, 1].

    >>> print(special.erf(0.0), special.erf(float("inf")))
    0.0 1.0
    """
    return apply(erf_p, x)


@fused(inline=True)
def erfc(x: ArrayLike) -> Array:
    """1 - erf(x), which keeps its digits where erf(x) rounds to 1.

    Returns: An array of the shape of x, in [0, 2], of full relative precision: `lax.erfc` is XLA's,
      which loses some digits far out.

    >>> print(f"{special.erfc(5.0):.4e}", 1 - special.erf(5.0))
    1.5375e-12 0.0
    """
    return apply(erfc_p, x)


@fused(inline=True)
def erfinv(x: ArrayLike) -> Array:
    """The number whose error function is x.

    Args: x: real numbers in [-1, 1].
    Returns: An array of the shape of x: ±inf at ±1, NaN outside.

    >>> print(special.erfinv(special.erf(0.5)), special.erfinv(1.0))
    0.5 inf
    """
    return apply(erfinv_p, x)


@fused(inline=True)
def erfcinv(y: ArrayLike) -> Array:
    """The number x with erfc(x) = y, also for the smallest y.

    Args: y: real numbers in [0, 2].
    Returns: An array of the shape of y: inf at 0, -inf at 2, NaN outside.

    >>> print(special.erfcinv(1.0), f"{special.erfcinv(1e-30):.4f}")
    0.0 8.1486
    """
    return apply(erfcinv_p, y)


@fused(inline=True)
def erfcx(x: ArrayLike) -> Array:
    """exp(x²) erfc(x), which neither overflows nor underflows for x > 0; about 1 / (x sqrt(π)).

    Args: x: real or complex numbers; integers become floats.
    Returns: An array of the shape and inexact dtype of x.

    >>> print(f"{special.erfcx(0.0):.4f} {special.erfcx(1000.0):.4e}")
    1.0000 5.6419e-04
    """
    z, = operands("erfcx", x)
    if dtypes.is_complex(z.dtype):
        return wofz_p.bind(make_complex(-imag(z), real(z)))
    return erfcx_p.bind(z)


@fused(inline=True)
def erfi(z: ArrayLike) -> Array:
    """The imaginary error function, -i erf(ix): 2/sqrt(π) times the integral of exp(t²).

    Args: z: real numbers; integers become floats. SciPy takes complex ones, too.
    Returns: An array of the shape of z.

    >>> print(f"{special.erfi(1.0):.5f}")
    1.65043
    """
    return apply(erfi_p, z)


@fused(inline=True)
def dawsn(x: ArrayLike) -> Array:
    """Dawson's integral: exp(-x²) times the integral of exp(t²) from 0 to x.

    Returns: An array of the shape of x, about x near 0 and 1 / (2x) far out.

    >>> print(f"{special.dawsn(1.0):.5f}")
    0.53808
    """
    return apply(dawsn_p, x)


@fused(inline=True)
def wofz(z: ArrayLike) -> Array:
    """The Faddeeva function, exp(-z²) erfc(-iz).

    Args: z: real or complex numbers.
    Returns: A complex array of the shape of z: complex64 of floats of up to 32 bits.

    >>> special.wofz(0.0)
    Array(1.+0.j, dtype=complex64)
    """
    z, = operands("wofz", z)
    if not dtypes.is_complex(z.dtype):
        z = astype(z, np.promote_types(z.dtype, np.complex64)
                   if dtypes.itemsize_bits(z.dtype) >= 32 else np.complex64)
    return wofz_p.bind(z)


@fused
def voigt_profile(x: ArrayLike, sigma: ArrayLike, gamma: ArrayLike) -> Array:
    """The Voigt profile: the density of the sum of a normal and a Cauchy variable.

    Args:
      x: real numbers.
      sigma: standard deviations of the normal part, >= 0.
      gamma: half widths at half maximum of the Cauchy part, >= 0.
    Returns: An array of the broadcast shape: Re w((x + i gamma) / (sqrt(2) sigma)) / (sqrt(2π)
      sigma); the density of the one part where the other is 0, inf at x = 0 where both are.

    >>> print(f"{special.voigt_profile(2.0, 1.0, 1.0):.5f}")
    0.09072
    """
    x, sigma, gamma = operands("voigt_profile", x, sigma, gamma)
    size = stop_gradient(maximum(absolute(x), absolute(gamma)))
    # A peak narrower than a digit of the rest is none, and its quotients may overflow.
    wide = normal(sigma) & (sigma > 1e-9 * size)
    s = inside(wide, sigma, 1.0)
    u, v = inside(wide, x, 1.0) / (_ROOT_TWO * s), inside(wide, gamma, 1.0) / (_ROOT_TWO * s)
    voigt = real(wofz(make_complex(u, v))) * (_DENSITY / s)
    scale = 1.0 / inside(normal(size) & (size < math.inf), size, 1.0)
    a, b = x * scale, gamma * scale     # XLA would make one quotient of two
    some = a * a + b * b > 0.0
    cauchy = b * scale * (1.0 / (math.pi * inside(some, a * a + b * b, 1.0)))
    point = where(some, cauchy, math.inf)
    legal = (x == x) & (sigma >= 0.0) & (gamma == gamma)
    return where(legal, where(wide, voigt, point), math.nan)


@fused(inline=True)
def ndtr(x: ArrayLike) -> Array:
    """The distribution function of the standard normal distribution.

    Returns:
      Probabilities of the shape of x, of full relative precision down to the smallest floats.

    >>> print(special.ndtr(0.0), f"{special.ndtr(-10.0):.5e}")
    0.5 7.61985e-24
    """
    return apply(ndtr_p, x)


@fused(static=("series_order",), inline=True)
def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """The logarithm of `ndtr(x)`, accurate also where that underflows or rounds to 1.

    Args: series_order: an int >= 0, for JAX's sake: the value here has full precision anyway.
    Returns: An array of the shape of x. The derivative, the inverse Mills ratio, is accurate, too.

    >>> print(f"{special.log_ndtr(-100.0):.3f} {special.log_ndtr(10.0):.3e}")
    -5005.524 -7.620e-24
    """
    if not isinstance(series_order, int):
        raise TypeError(f"log_ndtr: series_order {series_order!r} given; an int is required.")
    if series_order < 0:
        raise ValueError(f"log_ndtr: series_order {series_order} given; an int >= 0 is required.")
    return apply(log_ndtr_p, x)


@fused(inline=True)
def ndtri(p: ArrayLike) -> Array:
    """The quantile function of the standard normal distribution, the inverse of `ndtr`.

    Args: p: probabilities, real.
    Returns: An array of the shape of p: -inf at 0, inf at 1, NaN outside.

    >>> print(special.ndtri(0.5), f"{special.ndtri(0.975):.4f}")
    0.0 1.9600
    """
    return apply(ndtri_p, p)


@fused(inline=True)
def ndtri_exp(y: ArrayLike) -> Array:
    """The inverse of `log_ndtr`: the quantile of the probability exp(y), which may underflow.

    Args: y: real numbers <= 0, the logarithms of probabilities.
    Returns: An array of the shape of y: inf at 0, NaN above.

    >>> print(f"{special.ndtri_exp(-1000.0):.4f}")
    -44.6157
    """
    return apply(ndtri_exp_p, y)


complete_docstrings(globals(), {
    "x": "real numbers; integers become floats.",
})
