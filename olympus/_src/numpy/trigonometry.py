"""Trigonometric and hyperbolic functions, their inverses, angles and their units; sinc and i0.

Integers and booleans become the default float first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike
from ..core.trace import literal
from ..custom.jvp import custom_jvp
from ..jit.fused import fused
from ..lax import arithmetic, transcendental
from ..lax.arithmetic import div, imag, mul, real, sub
from ..lax.comparison import eq, lt
from ..lax.families import add
from ..lax.special import classical as special
from ..lax.transcendental import atan2_p
from ..types import dtypes
from .eager import eager_binary, eager_unary
from .elementary import filled, promote_real, scalar
from .promote import binary_inexact, broadcast_to, choose, convert, promote_inexact, unary_inexact


@eager_unary
def sin(x: ArrayLike, /) -> Array:
    """The sine of angles in radians.

    Returns: Floating or complex numbers of that shape; integers become the default float. NaN of
      infinities. Large angles are reduced exactly, so they keep their digits.

    >>> onp.sin(onp.array([0., onp.pi / 6, onp.pi / 2]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    return unary_inexact(transcendental.sin, x)


@eager_unary
def cos(x: ArrayLike, /) -> Array:
    """The cosine of angles in radians.

    Returns: Floating or complex numbers of that shape; integers become the default float. NaN of
      infinities.

    >>> onp.cos(onp.array([0., onp.pi]))
    Array([ 1., -1.], dtype=float32)
    """
    return unary_inexact(transcendental.cos, x)


@eager_unary
def tan(x: ArrayLike, /) -> Array:
    """The tangent of angles in radians: sine over cosine.

    Returns: Floating or complex numbers of that shape; integers become the default float. Large,
      not infinite, next to the poles, since no float is pi / 2 exactly.

    >>> onp.tan(onp.array([0., onp.pi / 4]))
    Array([0., 1.], dtype=float32)
    """
    return unary_inexact(transcendental.tan, x)


@eager_unary
def arcsin(x: ArrayLike, /) -> Array:
    """The angle in [-pi/2, pi/2] whose sine is x.

    Returns: Radians, floating or complex, of that shape. NaN outside [-1, 1]; complex numbers have
      an arcsine everywhere. The derivative at ±1 is infinite.

    >>> onp.arcsin(onp.array([0., 1., 2.]))
    Array([0.       , 1.5707964,       nan], dtype=float32)
    """
    return unary_inexact(transcendental.asin, x, "arcsin")


@eager_unary
def arccos(x: ArrayLike, /) -> Array:
    """The angle in [0, pi] whose cosine is x.

    Returns: Radians, floating or complex, of that shape. NaN outside [-1, 1]; complex numbers have
      an arccosine everywhere. The derivative at ±1 is infinite.

    >>> onp.arccos(onp.array([1., 0., -1.]))
    Array([0.       , 1.5707964, 3.1415927], dtype=float32)
    """
    return unary_inexact(transcendental.acos, x, "arccos")


@eager_unary
def arctan(x: ArrayLike, /) -> Array:
    """The angle in [-pi/2, pi/2] whose tangent is x; ±pi/2 of infinities.

    Returns: Radians, floating or complex, of that shape. For the angle of a point see `arctan2`.

    >>> onp.arctan(onp.array([0., 1., onp.inf]))
    Array([0.       , 0.7853981, 1.5707964], dtype=float32)
    """
    return unary_inexact(transcendental.atan, x, "arctan")


@eager_binary
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point with ordinate x1 and abscissa x2, from the positive axis, in [-pi,
    pi].

    Args:
      x1: ordinates, which come first, since the tangent is x1 / x2.
      x2: abscissas that broadcast with them.
    Returns: Radians in the promoted inexact dtype. The sign of a zero counts: on the negative axis
      the angle is pi above and -pi below. At (0, 0) it is 0 or ±pi, and its derivative NaN.

    >>> y, x = onp.array([1., 0., -0.]), onp.array([1., -1., -1.])
    >>> print(onp.arctan2(y, x) / onp.pi)
    [ 0.25  1.   -1.  ]
    """
    return binary_inexact(atan2_p, x1, x2)


@eager_unary
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine, (e**x - e**-x) / 2, without loss of digits near 0.

    Returns:
      Floating or complex numbers of that shape; integers become the default float. -0 stays -0.

    >>> onp.sinh(onp.array([0., 1., 1e-8]))
    Array([0.0000000e+00, 1.1752012e+00, 9.9999999e-09], dtype=float32)
    """
    return unary_inexact(transcendental.sinh, x)


@eager_unary
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine, (e**x + e**-x) / 2.

    Returns: Floating or complex numbers of that shape; integers become the default float. It
      overflows only where the result does.

    >>> onp.cosh(onp.array([0., -1., 1.]))
    Array([1.       , 1.5430806, 1.5430806], dtype=float32)
    """
    return unary_inexact(transcendental.cosh, x)


@eager_unary
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent, sinh over cosh: from -1 to 1, and close to x near 0.

    Returns: Floating or complex numbers of that shape; integers become the default float. ±1 of
      infinities.

    >>> onp.tanh(onp.array([0., 1., onp.inf]))
    Array([0.       , 0.7615942, 1.       ], dtype=float32)
    """
    return unary_inexact(transcendental.tanh, x)


@eager_unary
def arcsinh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic sine is x: `log(x + sqrt(x**2 + 1))`, without overflow.

    Returns: Floating or complex numbers of that shape; integers become the default float.

    >>> print(onp.arcsinh(onp.sinh(onp.array([0., 1., -3.]))))
    [ 0.  1. -3.]
    """
    return unary_inexact(transcendental.asinh, x, "arcsinh")


@eager_unary
def arccosh(x: ArrayLike, /) -> Array:
    """The number >= 0 whose hyperbolic cosine is x.

    Returns: Floating or complex numbers of that shape; integers become the default float. NaN of
      real numbers below 1; the derivative at 1 is infinite.

    >>> onp.arccosh(onp.array([1., 2., 0.5]))
    Array([0.      , 1.316958,      nan], dtype=float32)
    """
    return unary_inexact(transcendental.acosh, x, "arccosh")


@eager_unary
def arctanh(x: ArrayLike, /) -> Array:
    """The number whose hyperbolic tangent is x.

    Returns: Floating or complex numbers of that shape; integers become the default float. Infinite
      at ±1, NaN of real numbers beyond.

    >>> onp.arctanh(onp.array([0., 1., 2.]))
    Array([ 0., inf, nan], dtype=float32)
    """
    return unary_inexact(transcendental.atanh, x, "arctanh")


@eager_unary
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees as radians: times pi / 180.

    Args: x: array or number of any shape, of real dtypes; complex ones are a TypeError.
    Returns: Floats of that shape; integers become the default float.

    >>> onp.deg2rad(onp.array([0, 90, 180]))
    Array([0.       , 1.5707964, 3.1415927], dtype=float32)
    """
    (x,) = promote_real("deg2rad", x)
    return mul(x, scalar(math.pi / 180, x))


@eager_unary
@described_like(deg2rad)
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians as degrees: times 180 / pi.

    >>> onp.rad2deg(onp.array([0., onp.pi]))
    Array([  0., 180.], dtype=float32)
    """
    (x,) = promote_real("rad2deg", x)
    return mul(x, scalar(180 / math.pi, x))


@eager_unary
def radians(x: ArrayLike, /) -> Array:
    """Degrees as radians: another name of `deg2rad`.

    Args: x: array or number of any shape, of real dtypes.
    Returns: Floats of that shape.

    >>> onp.radians(onp.array([180.]))
    Array([3.1415927], dtype=float32)
    """
    return deg2rad(x)


@eager_unary
@described_like(radians)
def degrees(x: ArrayLike, /) -> Array:
    """Radians as degrees: another name of `rad2deg`.

    >>> onp.degrees(onp.array([onp.pi]))
    Array([180.], dtype=float32)
    """
    return rad2deg(x)


@fused
def sinc(x: ArrayLike, /) -> Array:
    """`sin(pi x) / (pi x)`, and 1 at 0: the ideal low-pass filter.

    Returns: Floating or complex numbers of that shape; integers become the default float. Near 0 it
      is summed from its series, so that derivatives of every order exist there.

    >>> onp.sinc(onp.array([0., 0.25, 0.5]))
    Array([1.        , 0.9003163 , 0.63661975], dtype=float32)
    """
    (x,) = promote_inexact("sinc", x)
    return _sinc(mul(broadcast_to(x, x.shape), scalar(math.pi, x)))


@custom_jvp
def _sinc(p: Array) -> Array:
    """sin(p) / p."""
    near, far = _away_from_zero(p)
    square = mul(p, p)
    series = mul(square, scalar(-1 / 5040, p))
    for coefficient in (1 / 120, -1 / 6):
        series = mul(square, add(series, scalar(coefficient, p)))
    return choose(near, add(series, scalar(1, p)), div(transcendental.sin(far), far))


@_sinc.defjvp
def _sinc_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
    (p,), (t,) = primals, tangents
    near, far = _away_from_zero(p)
    square = mul(p, p)
    series = mul(square, scalar(1 / 45360, p))
    for coefficient in (-1 / 840, 1 / 30):
        series = mul(square, add(series, scalar(coefficient, p)))
    series = mul(p, add(series, scalar(-1 / 3, p)))
    slope = div(sub(transcendental.cos(far), div(transcendental.sin(far), far)), far)
    return _sinc(p), mul(t, choose(near, series, slope))


def _away_from_zero(p: Array) -> tuple[Array, Array]:
    """Where a series is taken, and `p` with 1 in those places."""
    near = lt(arithmetic.abs(p), literal(0.03, dtypes.to_real_dtype(p.dtype)))
    return near, choose(near, filled(1, p), p)


@fused
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0; its derivative has order 1.

    Args: x: array or number of any shape, of real dtypes; complex ones are a TypeError.

    Returns:
      Floats of that shape; integers become the default float. It is even, 1 at 0, and grows as exp.

    >>> onp.i0(onp.array([0., 1., -1.]))
    Array([1.       , 1.2660658, 1.2660658], dtype=float32)
    """
    (x,) = promote_real("i0", x)
    return _i0(broadcast_to(x, x.shape))


def _unscaled(x: Array, y: Array) -> Array:
    """y exp(abs(x)), in two factors: the product may be in range where exp(abs(x)) is not."""
    half = transcendental.exp(mul(arithmetic.abs(x), scalar(0.5, x)))
    return mul(mul(half, y), half)


@custom_jvp
def _i0(x: Array) -> Array:
    return _unscaled(x, special.bessel_i0e(x))


@_i0.defjvp
def _i0_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
    return _i0(*primals), mul(tangents[0], bessel_i1(*primals))


@custom_jvp
def bessel_i1(x: Array) -> Array:
    """The one of order 1, the derivative of the one of order 0."""
    return _unscaled(x, special.bessel_i1e(x))


@bessel_i1.defjvp
def _bessel_i1_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
    """i1' = i0 - i1 / x, of the scaled ones, as both may overflow; at 0 it is 1/2."""
    (x,), (t,) = primals, tangents
    zero = eq(x, scalar(0, x))
    ratio = div(special.bessel_i1e(x), choose(zero, filled(1, x), x))
    slope = sub(special.bessel_i0e(x), choose(zero, filled(0.5, x), ratio))
    return bessel_i1(x), mul(t, _unscaled(x, slope))


@fused(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The argument of complex numbers: their angle from the positive real axis, in [-pi, pi].

    Args:
      z: array or number of any dtype and shape; real numbers have the angles 0 and pi.
      deg: degrees rather than radians; a bool, known when tracing.
    Returns: Floats of that shape; NaN of NaN.

    >>> onp.angle(onp.array([1j, -1, 1]), deg=True)
    Array([ 90., 180.,   0.], dtype=float32)
    """
    (x,) = promote_inexact("angle", z)
    if dtypes.is_complex(x.dtype):
        radians = transcendental.atan2(imag(x), real(x))
    else:
        x = convert(x, x.dtype)     # angles of weak numbers are strong, as JAX's
        radians = transcendental.atan2(filled(0, x), x)
    return mul(radians, scalar(180 / math.pi, radians)) if deg else radians


# Other names -------------------------------------------------------------------------------------

acos = arccos
acosh = arccosh
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh


complete_docstrings(globals(), {
    "x": "array or number of any dtype and shape.",
})
