"""Orthogonal polynomials, by their recurrences (DLMF 18.9(i)).

Their derivatives are polynomials of the same families (DLMF 18.9(iii)). Degrees that are not whole
continue them by hypergeometric functions (DLMF 18.5(iii)), which are ten times as long to compile:
degrees of an integer dtype have primitives without them.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

from ...base.docstrings import complete_docstrings, described_like
from ...base.typing import Array, ArrayLike
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.creation import full_like
from ...lax.special.series import is_short, iterate
from ...numpy.arithmetic import absolute, maximum
from ...numpy.elementary import copysign, sqrt
from ...numpy.promote import promote
from ...numpy.selection import where
from ...numpy.trigonometry import arccos, arccosh, cos, cosh, sin, sinh
from ...types import dtypes
from .family import Special, apply, by_format, inside, nowhere, outside, whole
from .gammas import beta_of
from .gauss import hyp2f1_of
from .hypergeometric import hyp1f1_of

_LARGE = 1e250, 2.0 ** 64       # in float64 and float32


def _upwards(n: Array, x: Array, parameter: Array, second: Array,
             step: Callable[[Any, Any, Any, Any, Any], Any]) -> Array:
    """The value of degree n: 1, `second`, then step(k, x, parameter, value k-1, value k)."""
    legal = whole(n) & (n >= 0.0) & (n < 1e6)
    degree = inside(legal, n, 0.0)
    first = where(x == x, 1.0, x)
    much, most = by_format(x, *_LARGE), by_format(x, 1e308, 3e38)

    def body(i: Array, state: Sequence[Array], constants: Sequence[Array]) -> Any:
        (low, high, shifts), (degree, x, parameter) = state, constants
        k = i + 1.0
        low, high = high, step(k, x, parameter, low, high)
        # A value out of range may precede one within it. Infinite values keep their sign.
        large, endless = absolute(high) > much, absolute(high) == math.inf
        high = where(endless, copysign(most, high), high)
        low, high = (where(large, v / much, v) for v in (low, high))
        shifts = shifts + where(endless, 2.0, where(large, 1.0, 0.0))
        return k + 1.0 < degree, (low, high, shifts)

    none = 0.0 * degree
    _, high, shifts = iterate(body, legal & (degree > 1.0), (first, second, none),
                              (degree, x, parameter), 1_000_000)
    high = where(shifts > 0.0, high * much, high)
    if is_short(high):      # of which one may be small
        high, shifts = where(shifts > 1.0, high * much, high), shifts - 1.0
    high = where((shifts > 1.0) & (high != 0.0), high * math.inf, high)
    return where(legal, where(degree == 0.0, first, high), math.nan)


def _chebyt(tol: float, n: Array, x: Array) -> Array:
    return _upwards(absolute(n), x, x, x, lambda k, x, _, low, high: 2.0 * x * high - low)


def _hermite(tol: float, n: Array, x: Array) -> Array:
    return _upwards(n, x, x, 2.0 * x, lambda k, x, _, low, high: 2.0 * (x * high - k * low))


def _hermitenorm(tol: float, n: Array, x: Array) -> Array:
    return _upwards(n, x, x, x, lambda k, x, _, low, high: x * high - k * low)


def _gegenbauer(tol: float, n: Array, a: Array, x: Array) -> Array:
    value = _upwards(n, x, a, 2.0 * a * x, lambda k, x, a, low, high: (
        2.0 * (k + a) * x * high - (2.0 * a + (k - 1.0)) * low) / (k + 1.0))
    return where(whole(n) & (n < 0.0), 0.0, value)


def _legendre(tol: float, n: Array, x: Array) -> Array:
    """P₋ₙ = Pₙ₋₁."""
    return _gegenbauer(tol, where(n < 0.0, -1.0 - n, n), 0.0 * x + 0.5, x)


def _genlaguerre(tol: float, n: Array, a: Array, x: Array) -> Array:
    value = _upwards(n, x, a, 1.0 + a - x, lambda k, x, a, low, high: (
        (2.0 * k + 1.0 + a - x) * high - (k + a) * low) / (k + 1.0))
    return where(whole(n) & (n < 0.0), 0.0, value)


def _real(polynomial: Callable[..., Any], continued: Callable[..., Any]) -> Callable[..., Any]:
    """The function of all real degrees: `continued` where they are not whole."""
    def of_real(tol: float, n: Any, *xs: Array) -> Array:
        between = ~whole(n) & (absolute(n) < math.inf)
        value = continued(tol, between, inside(between, n, 0.5), *xs)
        return where(between, value, polynomial(tol, outside(between, n, 0.0), *xs))
    return of_real


def _coefficient(tol: float, n: Any, a: ArrayLike) -> Array:
    """Γ(n+a) / (Γ(n+1) Γ(a))."""
    return 1.0 / ((n + a) * beta_of(tol, n + 1.0, a))


def _ultraspherical(tol: float, between: object, n: Any, a: ArrayLike, x: Array) -> Array:
    """The Gegenbauer function over its value at 1."""
    value = hyp2f1_of(tol, -n, n + 2.0 * a, a + 0.5, 0.5 * (1.0 - inside(between, x, 0.0)))
    return where(x < -1.0, math.nan, value)


def _gegenbauer_between(tol: float, between: object, n: object, a: Array, x: Array) -> Array:
    return _coefficient(tol, n, 2.0 * a) * _ultraspherical(tol, between, n, a, x)


def _legendre_between(tol: float, between: object, n: Any, x: Array) -> Array:
    return _ultraspherical(tol, between, where(n < 0.0, -1.0 - n, n), 0.0 * x + 0.5, x)


def _genlaguerre_between(tol: float, between: object, n: Any, a: Array, x: Array) -> Array:
    value = hyp1f1_of(tol, -n, a + 1.0, inside(between, x, 0.0))
    return _coefficient(tol, n, a + 1.0) * value


def _chebyt_between(tol: float, between: object, n: Any, x: Array) -> Array:
    beyond = x > 1.0
    return where(beyond, cosh(n * arccosh(inside(beyond, x, 1.0))),
                 cos(n * arccos(outside(beyond, x, 0.0))))


def _chebyu(tol: float, n: Array, x: Array) -> Array:
    """U₋ₙ = -Uₙ₋₂."""
    value = _gegenbauer(tol, where(n < 0.0, maximum(-2.0 - n, 0.0), n), 0.0 * x + 1.0, x)
    return where(n == -1.0, 0.0, where(n < 0.0, -value, value))


def _chebyu_between(tol: float, between: object, n: Any, x: Array) -> Array:
    """sin((n+1) θ) / sin θ for x = cos θ."""
    beyond, m = x > 1.0, n + 1.0
    size = sqrt(absolute((1.0 - x) * (1.0 + x)))
    above = where(beyond, sinh(m * arccosh(inside(beyond, x, 1.0))),
                  sin(m * arccos(outside(beyond, x, 0.0))))
    return where(x == 1.0, m, above / size)


def _slope(t: Array, n: Array, below: Callable[[Any], Any]) -> Array:
    """t times `below` of the degree n - 1, or 0 of the degree 0."""
    return t * where(n == 0.0, 0.0, below(where(n == 0.0, 0.0, n - 1.0)))


def _pair(name: str, polynomial: Callable[..., Any], continued: Callable[..., Any],
          *partials: Callable[..., Any]) -> tuple[Special, Special]:
    """Primitives of whole and of real degrees; `partials` have the primitive's index first."""
    whole, real = [
        Special(name + suffix, fun, nowhere, *(functools.partial(p, i) for p in partials))
        for i, (suffix, fun) in enumerate((
            ("", polynomial), ("_real", _real(polynomial, continued))))]
    return whole, real


hermite_p = Special("eval_hermite", _hermite, nowhere, lambda t, y, n, x: _slope(
    t, n, lambda m: 2.0 * n * hermite_p.bind(m, x)))
hermitenorm_p = Special("eval_hermitenorm", _hermitenorm, nowhere, lambda t, y, n, x: _slope(
    t, n, lambda m: n * hermitenorm_p.bind(m, x)))
gegenbauers = _pair(
    "eval_gegenbauer", _gegenbauer, _gegenbauer_between, lambda i, t, y, n, a, x: nowhere(t, y),
    lambda i, t, y, n, a, x: _slope(t, n, lambda m: 2.0 * a * gegenbauers[i].bind(m, a + 1.0, x)))
legendres = _pair("eval_legendre", _legendre, _legendre_between, lambda i, t, y, n, x: _slope(
    t, where(n < 0.0, -1.0 - n, n), lambda m: gegenbauers[i].bind(m, full_like(x, 1.5), x)))
genlaguerres = _pair(
    "eval_genlaguerre", _genlaguerre, _genlaguerre_between, lambda i, t, y, n, a, x: nowhere(t, y),
    lambda i, t, y, n, a, x: _slope(t, n, lambda m: -genlaguerres[i].bind(m, a + 1.0, x)))
chebyus = _pair("eval_chebyu", _chebyu, _chebyu_between, lambda i, t, y, n, x: _slope(
    t, n, lambda m: 2.0 * gegenbauers[i].bind(m, full_like(x, 2.0), x)))
chebyts = _pair("eval_chebyt", _chebyt, _chebyt_between, lambda i, t, y, n, x: _slope(
    t, n, lambda m: n * chebyus[i].bind(m, x)))


def _of_degree(pair: tuple[Special, Special], n: ArrayLike, *xs: ArrayLike) -> Array:
    """The primitive for the dtype of n, of promoted operands."""
    promoted = promote(pair[0].name, n, *xs, inexact=True)
    return pair[dtypes.is_inexact(typeof(n).dtype)].bind(*promoted)


@fused(inline=True)
def eval_legendre(n: ArrayLike, x: ArrayLike) -> Array:
    """The Legendre polynomial Pₙ(x), or Legendre's function of a degree that is not whole.

    Args: n: degrees, real numbers; Pₙ of n < 0 is P₋₁₋ₙ.

    >>> print(f"{special.eval_legendre(3, 0.5):.4f}")
    -0.4375
    """
    return _of_degree(legendres, n, x)


@fused(inline=True)
def eval_chebyt(n: ArrayLike, x: ArrayLike) -> Array:
    """The Chebyshev polynomial of the first kind, Tₙ(x): cos(n θ) for x = cos θ.

    Args: n: degrees, real numbers; Tₙ of n < 0 is T₋ₙ.

    >>> print(f"{special.eval_chebyt(3, 0.5):.4f}")
    -1.0000
    """
    return _of_degree(chebyts, n, x)


@fused(inline=True)
def eval_chebyu(n: ArrayLike, x: ArrayLike) -> Array:
    """The Chebyshev polynomial of the second kind, Uₙ(x): sin((n+1) θ) / sin θ for x = cos θ.

    Args: n: degrees, real numbers; Uₙ of n < 0 is -Uₘ of m = -2 - n.

    >>> print(f"{special.eval_chebyu(3, 0.5):.4f}")
    -1.0000
    """
    return _of_degree(chebyus, n, x)


@fused(inline=True)
def eval_gegenbauer(n: ArrayLike, alpha: ArrayLike, x: ArrayLike) -> Array:
    """The Gegenbauer polynomial of degree n and parameter alpha, or Gegenbauer's function.

    >>> print(f"{special.eval_gegenbauer(2, 1.5, 0.5):.4f}")
    0.3750
    """
    return _of_degree(gegenbauers, n, alpha, x)


@fused(inline=True)
def eval_hermite(n: ArrayLike, x: ArrayLike) -> Array:
    """The Hermite polynomial of the physicists, Hₙ(x).

    Args: n: degrees, whole numbers >= 0.
    Returns: An array of the broadcast shape, NaN for other degrees. Differentiable in x.

    >>> print(f"{special.eval_hermite(3, 0.5):.4f}")
    -5.0000
    """
    return apply(hermite_p, n, x)


@fused(inline=True)
@described_like(eval_hermite)
def eval_hermitenorm(n: ArrayLike, x: ArrayLike) -> Array:
    """The Hermite polynomial of probability, Heₙ(x).

    >>> print(f"{special.eval_hermitenorm(3, 0.5):.4f}")
    -1.3750
    """
    return apply(hermitenorm_p, n, x)


@fused(inline=True)
def eval_laguerre(n: ArrayLike, x: ArrayLike) -> Array:
    """The Laguerre polynomial Lₙ(x), or Laguerre's function of a degree that is not whole.

    Returns: An array of the broadcast shape. Differentiable in x.

    >>> print(f"{special.eval_laguerre(3, 0.5):.4f}")
    -0.1458
    """
    return _of_degree(genlaguerres, n, 0.0, x)


@fused(inline=True)
def eval_genlaguerre(n: ArrayLike, alpha: ArrayLike, x: ArrayLike) -> Array:
    """The generalised Laguerre polynomial of degree n and parameter alpha, or that function.

    Returns: An array of the broadcast shape. Differentiable in x.

    >>> print(f"{special.eval_genlaguerre(2, 1.5, 0.5):.4f}")
    2.7500
    """
    return _of_degree(genlaguerres, n, alpha, x)


complete_docstrings(globals(), {
    "x": "real numbers; all shapes broadcast, integers become floats.",
    "n": "degrees, real numbers: 0 for negative whole ones.",
    "alpha": "the family's parameter, real.",
}, returns=(
    "An array of the broadcast shape, NaN for x < -1 and a degree that is not whole.\n"
    "Differentiable in x."))
