"""Hypergeometric functions of real operands: power series, after what makes them short.

Kummer's transformation makes the argument of ₁F₁ positive, Pfaff's that of ₂F₁, which near 1 is a
sum of two series in 1 - x.
"""

from __future__ import annotations

import math
from typing import Any

from ...base.typing import Array, ArrayLike
from ...lax.special.series import iterate
from ...numpy.elementary import exp, floor, log, rint
from ...numpy.selection import where
from ...numpy.ufuncs import absolute
from ...transforms.fused import fused
from .family import Special, apply, inside
from .gammas import gammas

__all__ = ["hyp1f1", "hyp2f1"]

_STEPS = 400_000


def _pole(x: Any) -> Any:
    return (x <= 0.0) & (x == floor(x))


def _nowhere(t: Any, y: Any, *xs: Any, **params: Any) -> Any:
    """The tangent of an operand in which no derivative is known: NaN."""
    return t * math.nan


# Kummer's function -------------------------------------------------------------------------------

def _kummer_step(tol: float) -> Any:
    """Σ (a)ₖ xᵏ / ((b)ₖ k!), and its derivatives in a and b."""
    def step(i: Any, state: Any, constants: Any) -> Any:
        (term, total, in_a, in_b, by_a, by_b), (a, b, x) = state, constants
        k = i + 1.0
        p, q = a + i, b + i
        # d/da of (a)ₖ = (a)ₖ₋₁ (a+k-1), of which the factor may be 0.
        in_a = (in_a * p + term) * (x / (q * k))
        in_b = (in_b - term / q) * (p * x / (q * k))
        term = term * (p * x / (q * k))
        total = total + term
        by_a, by_b = by_a + in_a, by_b + in_b
        again = (absolute(term) > tol * absolute(total)) | (
            absolute(in_a) > tol * absolute(by_a)) | (absolute(in_b) > tol * absolute(by_b))
        return again | ((p < 0.0) & (term != 0.0)), (term, total, in_a, in_b, by_a, by_b)
    return step


def _kummer(tol: float, where_to: Any, a: Any, b: Any, x: Any) -> Any:
    """(value, d/da, d/db) of the series for x >= 0 of at most some hundreds."""
    one, zero = a * 0.0 + 1.0, a * 0.0
    state = (one, one, zero, zero, zero, zero)
    out = iterate(_kummer_step(tol), where_to, state, (a, b, x), 3000)
    return out[1], out[4], out[5]


def _hyp1f1(tol: float, a: Any, b: Any, x: Any, slope: str = "") -> Any:
    """The value, or its derivative in a or b."""
    fine = (x == x) & (a == a) & (b == b) & (absolute(x) < math.inf)
    legal = fine & ~_pole(b)
    p, q, z = inside(legal, a, 1.0), inside(legal, b, 1.0), inside(legal, x, 0.0)
    negative = z < 0.0
    size = absolute(z)
    c = where(negative, q - p, p)
    # Far out by Γ(b)/Γ(c) eˣ xᶜ⁻ᵇ Σ (b-c)ₖ (1-c)ₖ / (k! xᵏ) (DLMF 13.7.2), unless c is a pole.
    d = q - c
    far = (size > 50.0 + 4.0 * (absolute(d) + 1.0) * (absolute(c) + 2.0)) & ~_pole(c)
    if slope:
        far = far & False
    near = legal & ~far & (size < 700.0)
    value, in_a, in_b = _kummer(tol, near, c, q, inside(near, size, 0.0))
    power = exp(inside(near & negative, z, 0.0))
    if slope == "a":
        value = where(negative, -in_a, in_a)
    elif slope == "b":
        value = where(negative, in_a + in_b, in_b)
    value = power * value
    if not slope:
        w = inside(far & legal, size, 1e3)

        def asymptotic(i: Any, state: Any, constants: Any) -> Any:
            (term, total), (d, e, w) = state, constants
            following = term * ((d + i) * (e + i) / ((i + 1.0) * w))
            again = (absolute(following) < absolute(term)) & (
                absolute(following) > tol * absolute(total))
            return again, (following, total + following)

        first = where(far & legal, d, 0.0)
        total = iterate(asymptotic, far & legal, (w * 0.0 + 1.0, w * 0.0 + 1.0),
                        (first, 1.0 - c, w), 100)[1]
        g = gammas(where(far, q, 1.0), where(far, c, 1.0))
        level = g.logs[0] - g.logs[1] + (c - q) * log(w) + where(negative, 0.0, w)
        value = where(far, exp(level) * g.signs[0] * g.signs[1] * total, value)
    value = where(far | (size < 700.0), value, math.nan)
    value = where(legal, value, where(fine, math.inf, math.nan))
    if slope:
        return value
    return where((a == 0.0) & fine, 1.0, value)


hyp1f1_a_p = Special("hyp1f1_a", lambda tol, a, b, x: _hyp1f1(tol, a, b, x, "a"),
                     _nowhere, _nowhere,
                     lambda t, y, a, b, x: t * (hyp1f1_p.bind(a + 1.0, b + 1.0, x)
                                                + a * hyp1f1_a_p.bind(a + 1.0, b + 1.0, x)) / b)
hyp1f1_b_p = Special("hyp1f1_b", lambda tol, a, b, x: _hyp1f1(tol, a, b, x, "b"),
                     _nowhere, _nowhere,
                     lambda t, y, a, b, x: t * a / b * (hyp1f1_b_p.bind(a + 1.0, b + 1.0, x)
                                                        - hyp1f1_p.bind(a + 1.0, b + 1.0, x) / b))
hyp1f1_p = Special("hyp1f1", _hyp1f1,
                   lambda t, y, a, b, x: t * hyp1f1_a_p.bind(a, b, x),
                   lambda t, y, a, b, x: t * hyp1f1_b_p.bind(a, b, x),
                   lambda t, y, a, b, x: t * a / b * hyp1f1_p.bind(a + 1.0, b + 1.0, x))


@fused(inline=True)
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's function, the sum of (a)ₖ xᵏ / ((b)ₖ k!) (DLMF 13.2.2).

    Kummer's transformation for x < 0, the power series, and an asymptotic one far out.

    Args:
      a, b, x: real numbers of shapes that broadcast; integers become floats.

    Returns:
      An array of the broadcast shape: inf where b is 0 or a negative integer, 1 where a is 0. Terms
      of both signs (a, or b - a for x < 0, below 0) cancel: digits are lost where |x| is large.
      Differentiable in x to every order, in a and b once, for |x| < 700.

    >>> from olympus.scipy import special
    >>> print(f"{special.hyp1f1(1.0, 1.0, 1.0):.5f}")       # e
    2.71828
    """
    return apply(hyp1f1_p, a, b, x)


# Gauss's function --------------------------------------------------------------------------------

def _gauss_step(tol: float) -> Any:
    def step(i: Any, state: Any, constants: Any) -> Any:
        (term, total), (a, b, c, x) = state, constants
        term = term * ((a + i) * (b + i) / ((c + i) * (i + 1.0)) * x)
        total = total + term
        turned = (a + i < 0.0) | (b + i < 0.0) | (c + i < 0.0)
        return (absolute(term) > tol * absolute(total)) | (turned & (term != 0.0)), (term, total)
    return step


def _gauss(tol: float, where_to: Any, a: Any, b: Any, c: Any, x: Any) -> Any:
    one = x * 0.0 + 1.0
    return iterate(_gauss_step(tol * 0.25), where_to, (one, one), (a, b, c, x), _STEPS)[1]


def _hyp2f1(tol: float, a: Any, b: Any, c: Any, x: Any) -> Any:
    fine = (a == a) & (b == b) & (c == c) & (x == x) & (x > -math.inf)
    finite = (_pole(a) & (a > -1e4)) | (_pole(b) & (b > -1e4))
    legal = fine & ((x < 1.0) | finite) & ~_pole(c) & (x < math.inf)
    one = fine & (x == 1.0) & ~finite & ~_pole(c)
    p, q, r, z = (inside(legal, v, s) for v, s in ((a, 1.0), (b, 1.0), (c, 1.0), (x, 0.0)))
    # F(a, b; c; x) = (1-x)⁻ᵃ F(a, c-b; c; x/(x-1)), for the smaller of a and b as a.
    swap = absolute(p) > absolute(q)
    p, q = where(swap, q, p), where(swap, p, q)
    turned = (z < -0.5) & ~(finite & (z > -2.0))
    base = 1.0 - inside(turned, z, 0.0)
    factor = where(turned, exp(-p * log(base)), 1.0)
    q = where(turned, r - q, q)
    u = where(turned, z / (z - 1.0), z)
    rest = where(turned, 1.0 / base, 1.0 - z)       # 1 - u
    polynomial = _pole(p) | _pole(q)
    # Near 1 (DLMF 15.8.4), unless s = c - a - b is nearly whole.
    s = r - p - q
    polynomial = polynomial | _pole(r - p) | _pole(r - q)
    close = (u > 0.9) & (absolute(s - rint(s)) > 1e-3) & ~polynomial
    near = legal & ~close
    value = _gauss(tol, near, p, q, r, inside(near, u, 0.0))
    at = close & legal
    k, l, m = inside(at, p, 0.5), inside(at, q, 0.25), inside(at, r, 1.0)
    w, t = inside(at, rest, 0.5), inside(at, s, 0.25)
    first = _gauss(tol, at, k, l, 1.0 - t, w)
    second = _gauss(tol, at, m - k, m - l, 1.0 + t, w)
    g = gammas(m, t, m - k, m - l, -t, k, l)
    one_part = exp(g.logs[0] + g.logs[1] - g.logs[2] - g.logs[3])
    one_part = one_part * (g.signs[0] * g.signs[1] * g.signs[2] * g.signs[3])
    other = exp(g.logs[0] + g.logs[4] - g.logs[5] - g.logs[6] + t * log(w))
    other = other * (g.signs[0] * g.signs[4] * g.signs[5] * g.signs[6])
    value = factor * where(close, one_part * first + other * second, value)
    # Where the series would take more steps than there are.
    value = where(near & (rest < 1e-4) & ~polynomial, math.nan, value)
    at_one = _at_one(one, a, b, c)
    value = where(legal, value, where(one, at_one, where(fine & _pole(c), math.inf, math.nan)))
    return where(fine & ((x == 0.0) | (a == 0.0) | (b == 0.0)) & ~_pole(c), 1.0, value)


def _at_one(one: Any, a: Any, b: Any, c: Any) -> Any:
    """Γ(c) Γ(c-a-b) / (Γ(c-a) Γ(c-b)) where c > a + b (DLMF 15.4.20), else infinite."""
    s = c - a - b
    gone = _pole(c - a) | _pole(c - b)
    fit = one & (s > 0.0) & ~gone
    g = gammas(*(inside(fit, v, 1.0) for v in (c, s, c - a, c - b)))
    value = exp(g.logs[0] + g.logs[1] - g.logs[2] - g.logs[3])
    value = value * (g.signs[0] * g.signs[1] * g.signs[2] * g.signs[3])
    return where(fit, value, where(s > 0.0, 0.0, math.inf))


hyp2f1_p = Special("hyp2f1", _hyp2f1, _nowhere, _nowhere, _nowhere,
                   lambda t, y, a, b, c, x: t * (a * b / c) * hyp2f1_p.bind(
                       a + 1.0, b + 1.0, c + 1.0, x))


@fused(inline=True)
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function, the sum of (a)ₖ (b)ₖ xᵏ / ((c)ₖ k!) (DLMF 15.2.1).

    Pfaff's transformation for x < -1/2, the power series, and for x near 1 two series in 1 - x.

    Args:
      a, b, c: real numbers.
      x: real numbers <= 1, or any where a or b is 0 or a negative integer; all shapes broadcast.

    Returns:
      An array of the broadcast shape: inf where c is 0 or a negative integer, NaN for x > 1, and
      within 1e-4 of 1 where c - a - b is within 1e-3 of a whole number. Large parameters of
      different signs lose digits. Differentiable in x; in the parameters the
      derivative is NaN.

    >>> from olympus.scipy import special
    >>> print(f"{special.hyp2f1(1.0, 1.0, 2.0, 0.5):.5f}")      # 2 ln 2
    1.38629
    """
    return apply(hyp2f1_p, a, b, c, x)
