"""Orthogonal polynomials of whole degree, by their recurrences (DLMF 18.9(i)).

Their derivatives are polynomials of the same families (DLMF 18.9(iii)).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from ...base.typing import Array, ArrayLike
from ...lax.creation import full_like
from ...lax.special.series import iterate
from ...numpy.elementary import copysign, floor
from ...numpy.selection import where
from ...numpy.ufuncs import absolute, maximum
from ...transforms.fused import fused
from .family import Special, apply, inside, nowhere

__all__ = ["eval_chebyt", "eval_chebyu", "eval_gegenbauer", "eval_genlaguerre", "eval_hermite",
           "eval_hermitenorm", "eval_laguerre", "eval_legendre"]


_LARGE = 1e250


def _upwards(n: Any, x: Any, parameter: Any, second: Any,
             step: Callable[[Any, Any, Any, Any, Any], Any]) -> Any:
    """The value of degree n: 1, `second`, then step(k, x, parameter, value k-1, value k)."""
    legal = (n == floor(n)) & (n >= 0.0) & (n < 1e6)
    degree = inside(legal, n, 0.0)
    first = where(x == x, 1.0, x)

    def body(i: Any, state: Any, constants: Any) -> Any:
        (low, high, shifts), (degree, x, parameter) = state, constants
        k = i + 1.0
        low, high = high, step(k, x, parameter, low, high)
        # One that is out of range may have a later one that is not; of the infinite the sign stays.
        large, endless = absolute(high) > _LARGE, absolute(high) == math.inf
        high = where(endless, copysign(1e308, high), high)
        low, high = (where(large, v / _LARGE, v) for v in (low, high))
        shifts = shifts + where(endless, 2.0, where(large, 1.0, 0.0))
        return k + 1.0 < degree, (low, high, shifts)

    none = 0.0 * degree
    _, high, shifts = iterate(body, legal & (degree > 1.0), (first, second, none),
                              (degree, x, parameter), 1_000_000)
    high = where(shifts > 0.0, high * _LARGE, high)
    high = where((shifts > 1.0) & (high != 0.0), high * math.inf, high)
    return where(legal, where(degree == 0.0, first, high), math.nan)


def _chebyt(tol: float, n: Any, x: Any) -> Any:
    return _upwards(absolute(n), x, x, x, lambda k, x, _, low, high: 2.0 * x * high - low)


def _hermite(tol: float, n: Any, x: Any) -> Any:
    return _upwards(n, x, x, 2.0 * x, lambda k, x, _, low, high: 2.0 * (x * high - k * low))


def _hermitenorm(tol: float, n: Any, x: Any) -> Any:
    return _upwards(n, x, x, x, lambda k, x, _, low, high: x * high - k * low)


def _gegenbauer(tol: float, n: Any, a: Any, x: Any) -> Any:
    return _upwards(n, x, a, 2.0 * a * x, lambda k, x, a, low, high: (
        2.0 * (k + a) * x * high - (2.0 * a + (k - 1.0)) * low) / (k + 1.0))


def _genlaguerre(tol: float, n: Any, a: Any, x: Any) -> Any:
    return _upwards(n, x, a, 1.0 + a - x, lambda k, x, a, low, high: (
        (2.0 * k + 1.0 + a - x) * high - (k + a) * low) / (k + 1.0))


def _slope(t: Any, n: Any, below: Callable[[Any], Any]) -> Any:
    """t times `below` of the degree n - 1, where there is one, else 0."""
    return t * where(n > 0.0, below(maximum(n - 1.0, 0.0)), 0.0)


hermite_p = Special("eval_hermite", _hermite, nowhere, lambda t, y, n, x: _slope(
    t, n, lambda m: 2.0 * n * hermite_p.bind(m, x)))
hermitenorm_p = Special("eval_hermitenorm", _hermitenorm, nowhere, lambda t, y, n, x: _slope(
    t, n, lambda m: n * hermitenorm_p.bind(m, x)))
gegenbauer_p = Special(
    "eval_gegenbauer", _gegenbauer, nowhere, nowhere, lambda t, y, n, a, x: _slope(
        t, n, lambda m: 2.0 * a * gegenbauer_p.bind(m, a + 1.0, x)))
genlaguerre_p = Special(
    "eval_genlaguerre", _genlaguerre, nowhere, nowhere, lambda t, y, n, a, x: _slope(
        t, n, lambda m: -genlaguerre_p.bind(m, a + 1.0, x)))
chebyt_p = Special("eval_chebyt", _chebyt, nowhere, lambda t, y, n, x: _slope(
    t, absolute(n), lambda m: absolute(n) * gegenbauer_p.bind(m, full_like(x, 1.0), x)))


@fused(inline=True)
def eval_legendre(n: ArrayLike, x: ArrayLike) -> Array:
    """The Legendre polynomial Pₙ(x).

    Args:
      n: degrees, whole numbers >= 0.
      x: real numbers; all shapes broadcast, integers become floats.

    Returns:
      An array of the broadcast shape, NaN for other degrees. Differentiable in x.

    >>> from olympus.scipy import special
    >>> print(f"{special.eval_legendre(3, 0.5):.4f}")
    -0.4375
    """
    return apply(gegenbauer_p, n, 0.5, x)


@fused(inline=True)
def eval_chebyt(n: ArrayLike, x: ArrayLike) -> Array:
    """The Chebyshev polynomial of the first kind, Tₙ(x).

    Args:
      n: degrees, whole numbers; Tₙ of n < 0 is that of -n.
      x: real numbers; all shapes broadcast, integers become floats.

    Returns:
      An array of the broadcast shape, NaN for degrees that are not whole. Differentiable in x.

    >>> from olympus.scipy import special
    >>> print(f"{special.eval_chebyt(3, 0.5):.4f}")
    -1.0000
    """
    return apply(chebyt_p, n, x)


@fused(inline=True)
def eval_chebyu(n: ArrayLike, x: ArrayLike) -> Array:
    """The Chebyshev polynomial of the second kind, Uₙ(x).

    Args:
      n: degrees, whole numbers >= 0.
      x: real numbers; all shapes broadcast, integers become floats.

    Returns:
      An array of the broadcast shape, NaN for other degrees. Differentiable in x.

    >>> from olympus.scipy import special
    >>> print(f"{special.eval_chebyu(3, 0.5):.4f}")
    -1.0000
    """
    return apply(gegenbauer_p, n, 1.0, x)


@fused(inline=True)
def eval_gegenbauer(n: ArrayLike, alpha: ArrayLike, x: ArrayLike) -> Array:
    """The Gegenbauer polynomial of degree n and parameter alpha.

    Args:
      n: degrees, whole numbers >= 0.
      alpha: the family's parameter, real.
      x: real numbers; all shapes broadcast, integers become floats.

    Returns:
      An array of the broadcast shape, NaN for other degrees. Differentiable in x.

    >>> from olympus.scipy import special
    >>> print(f"{special.eval_gegenbauer(2, 1.5, 0.5):.4f}")
    0.3750
    """
    return apply(gegenbauer_p, n, alpha, x)


@fused(inline=True)
def eval_hermite(n: ArrayLike, x: ArrayLike) -> Array:
    """The Hermite polynomial of the physicists, Hₙ(x).

    Args:
      n: degrees, whole numbers >= 0.
      x: real numbers; all shapes broadcast, integers become floats.

    Returns:
      An array of the broadcast shape, NaN for other degrees. Differentiable in x.

    >>> from olympus.scipy import special
    >>> print(f"{special.eval_hermite(3, 0.5):.4f}")
    -5.0000
    """
    return apply(hermite_p, n, x)


@fused(inline=True)
def eval_hermitenorm(n: ArrayLike, x: ArrayLike) -> Array:
    """The Hermite polynomial of probability, Heₙ(x).

    Args:
      n: degrees, whole numbers >= 0.
      x: real numbers; all shapes broadcast, integers become floats.

    Returns:
      An array of the broadcast shape, NaN for other degrees. Differentiable in x.

    >>> from olympus.scipy import special
    >>> print(f"{special.eval_hermitenorm(3, 0.5):.4f}")
    -1.3750
    """
    return apply(hermitenorm_p, n, x)


@fused(inline=True)
def eval_laguerre(n: ArrayLike, x: ArrayLike) -> Array:
    """The Laguerre polynomial Lₙ(x).

    Args:
      n: degrees, whole numbers >= 0.
      x: real numbers; all shapes broadcast, integers become floats.

    Returns:
      An array of the broadcast shape, NaN for other degrees. Differentiable in x.

    >>> from olympus.scipy import special
    >>> print(f"{special.eval_laguerre(3, 0.5):.4f}")
    -0.1458
    """
    return apply(genlaguerre_p, n, 0.0, x)


@fused(inline=True)
def eval_genlaguerre(n: ArrayLike, alpha: ArrayLike, x: ArrayLike) -> Array:
    """The generalised Laguerre polynomial of degree n and parameter alpha.

    Args:
      n: degrees, whole numbers >= 0.
      alpha: the family's parameter, real.
      x: real numbers; all shapes broadcast, integers become floats.

    Returns:
      An array of the broadcast shape, NaN for other degrees. Differentiable in x.

    >>> from olympus.scipy import special
    >>> print(f"{special.eval_genlaguerre(2, 1.5, 0.5):.4f}")
    2.7500
    """
    return apply(genlaguerre_p, n, alpha, x)
