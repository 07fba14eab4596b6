"""Trigonometric and hyperbolic functions, their inverses, angles and their units; sinc and i0.

Integers and booleans become the default float first.
"""

from __future__ import annotations

import math
from typing import Any

from ..base.typing import Array, ArrayLike
from ..core.trace import literal
from ..custom.jvp import custom_jvp
from ..lax import arithmetic, transcendental
from ..lax.arithmetic import div, imag, mul, real, sub
from ..lax.comparison import eq, lt
from ..lax.families import add
from ..lax.special import classical as special
from ..lax.transcendental import atan2_p
from ..transforms.fused import fused
from ..types import dtypes
from .eager import eager_binary, eager_unary
from .elementary import filled, promote_real, scalar
from .promote import binary_inexact, broadcast_to, choose, promote_inexact, unary_inexact

__all__ = [
    "acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh", "arctan", "arctan2",
    "arctanh", "asin", "asinh", "atan", "atan2", "atanh", "cos", "cosh", "deg2rad", "degrees", "i0",
    "rad2deg", "radians", "sin", "sinc", "sinh", "tan", "tanh",
]


@eager_unary
def sin(x: ArrayLike, /) -> Array:
    """The sine of radians."""
    return unary_inexact(transcendental.sin, x)


@eager_unary
def cos(x: ArrayLike, /) -> Array:
    """The cosine of radians."""
    return unary_inexact(transcendental.cos, x)


@eager_unary
def tan(x: ArrayLike, /) -> Array:
    """The tangent of radians."""
    return unary_inexact(transcendental.tan, x)


@eager_unary
def arcsin(x: ArrayLike, /) -> Array:
    """The inverse of sin; NaN outside [-1, 1]."""
    return unary_inexact(transcendental.asin, x)


@eager_unary
def arccos(x: ArrayLike, /) -> Array:
    """The inverse of cos; NaN outside [-1, 1]."""
    return unary_inexact(transcendental.acos, x)


@eager_unary
def arctan(x: ArrayLike, /) -> Array:
    """The inverse of tan."""
    return unary_inexact(transcendental.atan, x)


@eager_binary
def arctan2(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """The angle of the point (x2, x1), in (-pi, pi]."""
    return binary_inexact(atan2_p, x1, x2)


@eager_unary
def sinh(x: ArrayLike, /) -> Array:
    """The hyperbolic sine."""
    return unary_inexact(transcendental.sinh, x)


@eager_unary
def cosh(x: ArrayLike, /) -> Array:
    """The hyperbolic cosine."""
    return unary_inexact(transcendental.cosh, x)


@eager_unary
def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent."""
    return unary_inexact(transcendental.tanh, x)


@eager_unary
def arcsinh(x: ArrayLike, /) -> Array:
    """The inverse of sinh."""
    return unary_inexact(transcendental.asinh, x)


@eager_unary
def arccosh(x: ArrayLike, /) -> Array:
    """The inverse of cosh; NaN below 1."""
    return unary_inexact(transcendental.acosh, x)


@eager_unary
def arctanh(x: ArrayLike, /) -> Array:
    """The inverse of tanh; NaN outside [-1, 1]."""
    return unary_inexact(transcendental.atanh, x)


@eager_unary
def deg2rad(x: ArrayLike, /) -> Array:
    """Degrees to radians."""
    (x,) = promote_real("deg2rad", x)
    return mul(x, scalar(math.pi / 180, x))


@eager_unary
def rad2deg(x: ArrayLike, /) -> Array:
    """Radians to degrees."""
    (x,) = promote_real("rad2deg", x)
    return mul(x, scalar(180 / math.pi, x))


@eager_unary
def radians(x: ArrayLike, /) -> Array:
    """Alias of `deg2rad`."""
    return deg2rad(x)


@eager_unary
def degrees(x: ArrayLike, /) -> Array:
    """Alias of `rad2deg`."""
    return rad2deg(x)


@fused
def sinc(x: ArrayLike, /) -> Array:
    """`sin(pi x) / (pi x)`, 1 at 0; near 0 by its series, so that derivatives exist."""
    (x,) = promote_inexact("sinc", x)
    return _sinc(mul(broadcast_to(x, x.shape), scalar(math.pi, x)))


@custom_jvp
def _sinc(p: Any) -> Any:
    """sin(p) / p."""
    near, far = _away_from_zero(p)
    square = mul(p, p)
    series = mul(square, scalar(-1 / 5040, p))
    for coefficient in (1 / 120, -1 / 6):
        series = mul(square, add(series, scalar(coefficient, p)))
    return choose(near, add(series, scalar(1, p)), div(transcendental.sin(far), far))


@_sinc.defjvp
def _sinc_jvp(primals: Any, tangents: Any) -> Any:
    (p,), (t,) = primals, tangents
    near, far = _away_from_zero(p)
    square = mul(p, p)
    series = mul(square, scalar(1 / 45360, p))
    for coefficient in (-1 / 840, 1 / 30):
        series = mul(square, add(series, scalar(coefficient, p)))
    series = mul(p, add(series, scalar(-1 / 3, p)))
    slope = div(sub(transcendental.cos(far), div(transcendental.sin(far), far)), far)
    return _sinc(p), mul(t, choose(near, series, slope))


def _away_from_zero(p: Any) -> tuple[Any, Any]:
    """Where a series is taken, and `p` with 1 in those places."""
    near = lt(arithmetic.abs(p), literal(0.03, dtypes.to_real_dtype(p.dtype)))
    return near, choose(near, filled(1, p), p)


@fused
def i0(x: ArrayLike) -> Array:
    """The modified Bessel function of the first kind and order 0, of real numbers."""
    (x,) = promote_real("i0", x)
    return _i0(broadcast_to(x, x.shape))


@custom_jvp
def _i0(x: Any) -> Any:
    return mul(transcendental.exp(arithmetic.abs(x)), special.bessel_i0e(x))


@_i0.defjvp
def _i0_jvp(primals: Any, tangents: Any) -> Any:
    return _i0(*primals), mul(tangents[0], _i1(*primals))


@custom_jvp
def _i1(x: Any) -> Any:
    """The one of order 1, the derivative of the one of order 0."""
    return mul(transcendental.exp(arithmetic.abs(x)), special.bessel_i1e(x))


@_i1.defjvp
def _i1_jvp(primals: Any, tangents: Any) -> Any:
    """i1' = i0 - i1 / x; at 0 it is 1/2."""
    (x,), (t,) = primals, tangents
    zero = eq(x, scalar(0, x))
    ratio = div(_i1(x), choose(zero, filled(1, x), x))
    return _i1(x), mul(t, sub(_i0(x), choose(zero, filled(0.5, x), ratio)))


@fused(static=("deg",))
def angle(z: ArrayLike, deg: bool = False) -> Array:
    """The argument of complex numbers, in radians (or degrees); 0 or pi of real numbers."""
    (x,) = promote_inexact("angle", z)
    if dtypes.is_complex(x.dtype):
        found = transcendental.atan2(imag(x), real(x))
    else:
        found = transcendental.atan2(filled(0, x), x)
    return mul(found, scalar(180 / math.pi, found)) if deg else found


# Other names -------------------------------------------------------------------------------------

acos = arccos
acosh = arccosh
asin = arcsin
asinh = arcsinh
atan = arctan
atan2 = arctan2
atanh = arctanh
