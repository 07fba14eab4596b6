"""Kummer's function of real operands: a power series of positive argument, or an asymptotic one."""

from __future__ import annotations

import math
from typing import Any

from ...base.typing import Array, ArrayLike
from ...lax.special.series import iterate
from ...numpy.elementary import exp, floor, log
from ...numpy.selection import where
from ...numpy.ufuncs import absolute
from ...transforms.fused import fused
from .family import Special, apply, inside, nowhere
from .gammas import gammas

__all__ = ["hyp1f1", "pole"]


def pole(x: Any) -> Any:
    return (x <= 0.0) & (x == floor(x))


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
    legal = fine & ~pole(b)
    p, q, z = inside(legal, a, 1.0), inside(legal, b, 1.0), inside(legal, x, 0.0)
    negative = z < 0.0
    size = absolute(z)
    c = where(negative, q - p, p)
    # Far out by Γ(b)/Γ(c) eˣ xᶜ⁻ᵇ Σ (b-c)ₖ (1-c)ₖ / (k! xᵏ) (DLMF 13.7.2), unless c is a pole.
    d = q - c
    far = (size > 50.0 + 4.0 * (absolute(d) + 1.0) * (absolute(c) + 2.0)) & ~pole(c)
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
                     nowhere, nowhere,
                     lambda t, y, a, b, x: t * (hyp1f1_p.bind(a + 1.0, b + 1.0, x)
                                                + a * hyp1f1_a_p.bind(a + 1.0, b + 1.0, x)) / b)
hyp1f1_b_p = Special("hyp1f1_b", lambda tol, a, b, x: _hyp1f1(tol, a, b, x, "b"),
                     nowhere, nowhere,
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
