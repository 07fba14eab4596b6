"""Special functions: error functions, gamma functions, Bessel functions."""

from __future__ import annotations

import math
from typing import Any

from .arithmetic import mul, neg, square
from .families import FLOATING, add, binary, elementwise
from .transcendental import exp

__all__ = ["digamma", "erf", "erf_inv", "erfc", "lgamma", "polygamma"]

_TWO_OVER_SQRT_PI = 2.0 / math.sqrt(math.pi)

erf_p = elementwise("erf", "chlo.erf", FLOATING,
                    lambda t, y, x: mul(t, mul(_TWO_OVER_SQRT_PI, exp(neg(square(x))))))
erfc_p = elementwise("erfc", "chlo.erfc", FLOATING,
                     lambda t, y, x: mul(t, mul(-_TWO_OVER_SQRT_PI, exp(neg(square(x))))))
erf_inv_p = elementwise("erf_inv", "chlo.erf_inv", FLOATING,
                        lambda t, y, x: mul(t, mul(1.0 / _TWO_OVER_SQRT_PI, exp(square(y)))))
lgamma_p = elementwise("lgamma", "chlo.lgamma", FLOATING, lambda t, y, x: mul(t, digamma(x)))
digamma_p = elementwise("digamma", "chlo.digamma", FLOATING,
                        lambda t, y, x: mul(t, polygamma(1.0, x)))
polygamma_p = elementwise("polygamma", "chlo.polygamma", FLOATING,
                          lambda t, z, m, x: mul(t, math.nan),
                          lambda t, z, m, x: mul(t, polygamma(add(m, 1.0), x)))


def erf(x: Any) -> Any:
    """Error function, 2/sqrt(pi) times the integral of exp(-t^2) from 0 to x."""
    return erf_p.bind(x)


def erfc(x: Any) -> Any:
    """1 - erf(x), exact for large x."""
    return erfc_p.bind(x)


def erf_inv(x: Any) -> Any:
    """Inverse of erf; infinite at -1 and 1, NaN outside."""
    return erf_inv_p.bind(x)


def lgamma(x: Any) -> Any:
    """Logarithm of the absolute value of the gamma function."""
    return lgamma_p.bind(x)


def digamma(x: Any) -> Any:
    """Derivative of lgamma."""
    return digamma_p.bind(x)


def polygamma(m: Any, x: Any) -> Any:
    """The m-th derivative of digamma at x; m is a non-negative integer value of x's dtype."""
    return binary(polygamma_p, m, x)
