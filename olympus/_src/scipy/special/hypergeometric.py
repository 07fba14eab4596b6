"""Kummer's function of real operands: a power series of positive argument, or an asymptotic one.

Where the terms of the power series cancel, Taylor's series of the differential equation lead from
near 0 to x, since the function is its solution that grows; polynomials are not, and have a
recurrence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.convert import bitcast_convert_type
from ...lax.special.series import is_short, iterate
from ...numpy.arithmetic import absolute, maximum, minimum
from ...numpy.elementary import exp, floor, log, sqrt
from ...numpy.joining import stack
from ...numpy.selection import where
from .family import Special, apply, by_format, inside, nowhere
from .gammas import gammas

# Twice the digits: sums of a number and its rounding error ---------------------------------------

def exact_sum(x: Array, y: Array) -> tuple[Array, Array]:
    s = x + y
    t = s - x
    return s, (x - (s - t)) + (y - t)


def _halves(x: Array) -> tuple[Array, Array]:
    # The bits of a float's upper half have exact products.
    bits, low = (np.int64, 27) if x.dtype == np.float64 else (np.int32, 12)
    high = bitcast_convert_type(bitcast_convert_type(x, bits) & bits(-1 << low), x.dtype)
    return high, x - high


def product(x: Array, y: Array) -> tuple[Array, Array]:
    p, (a, b), (c, d) = x * y, _halves(x), _halves(y)
    return p, ((a * c - p) + a * d + b * c) + b * d


def exact_times(x: Sequence[Array], y: tuple[Array, ArrayLike]) -> tuple[Array, Array]:
    p, e = product(x[0], y[0])
    return exact_sum(p, e + (x[0] * y[1] + x[1] * y[0]))


def exact_over(x: Sequence[Array], y: Sequence[Array]) -> tuple[Array, Array]:
    q = x[0] / y[0]
    p, e = product(q, y[0])
    return exact_sum(q, ((x[0] - p) - e + x[1] - q * y[1]) / y[0])


# Kummer's function -------------------------------------------------------------------------------

def pole(x: Any) -> Any:
    return (x <= 0.0) & (x == floor(x))


def _kummer_step(tol: float) -> Any:
    """Σ (a)ₖ xᵏ / ((b)ₖ k!), and its derivatives in a and b."""
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, ...]]:
        (term, total, in_a, in_b, by_a, by_b), (a, b, x) = state, constants
        k = i + 1.0
        p, q = a + i, b + i
        # d/da of (a)ₖ = (a)ₖ₋₁ (a+k-1), whose factor may be 0.
        in_a = (in_a * p + term) * (x / (q * k))
        in_b = (in_b - term / q) * (p * x / (q * k))
        term = term * (p * x / (q * k))
        total = total + term
        by_a, by_b = by_a + in_a, by_b + in_b
        again = (absolute(term) > tol * absolute(total)) | (
            absolute(in_a) > tol * absolute(by_a)) | (absolute(in_b) > tol * absolute(by_b))
        return again | ((p < 0.0) & (term != 0.0)), (term, total, in_a, in_b, by_a, by_b)
    return step


def _kummer(tol: float, active: Array, a: Array, b: Array, x: Array
            ) -> tuple[Array, Array, Array]:
    """(value, d/da, d/db) of the series for x >= 0 of at most some hundreds."""
    one, zero = a * 0.0 + 1.0, a * 0.0
    state = (one, one, zero, zero, zero, zero)
    out = iterate(_kummer_step(tol), active, state, (a, b, x), 3000)
    return out[1], out[4], out[5]


def _value_step(tol: float) -> Any:
    """Σ (a)ₖ xᵏ / ((b)ₖ k!), and the largest term."""
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array, Array]]:
        (term, total, most), (a, b, x) = state, constants
        p = a + i
        term = term * (p * x / ((b + i) * (i + 1.0)))
        total = total + term
        # Terms of a small a grow before they fall.
        q, k = b + i, i + 1.0
        grows = (p < 0.0) | (q < 0.0) | (absolute((p + 1.0) * x) > absolute((q + 1.0) * (k + 1.0)))
        again = (absolute(term) > tol * absolute(total)) | (grows & (term != 0.0))
        return again, (term, total, maximum(most, absolute(term)))
    return step


def _series(tol: float, active: Array, a: Array, b: Array, x: Array) -> tuple[Array, Array]:
    """(value, the largest term) of the series for x >= 0."""
    one = x * 0.0 + 1.0
    _, value, most = iterate(_value_step(tol), active, (one, one, one), (a, b, x), 3000)
    return value, most


def _exact_series(tol: float, active: Array, a: Array, b: Array, x: Array) -> Array:
    """The series with twice the digits."""
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array, Array, Array]]:
        (term, rest, total, left), (a, b, x) = state, constants
        above = exact_times(exact_sum(a, i), (x, 0.0))
        below = exact_times(exact_sum(b, i), (i + 1.0, 0.0))
        term, rest = exact_over(exact_times((term, rest), above), below)
        total, error = exact_sum(total, term)
        total, left = exact_sum(total, error + left + rest)
        p, q, k = a + i, b + i, i + 1.0
        grows = (p < 0.0) | (q < 0.0) | (absolute((p + 1.0) * x) > absolute((q + 1.0) * (k + 1.0)))
        return (absolute(term) > tol * absolute(total)) | (grows & (term != 0.0)), (
            term, rest, total, left)

    one, zero = x * 0.0 + 1.0, x * 0.0
    return iterate(step, active, (one, zero, one, zero), (a, b, x), 3000)[2]


def _stride(a: Array, b: Array, x: Array, end: Array) -> tuple[Array, Array]:
    """(the step of Taylor's series from x towards `end`, whether it is the last)."""
    rate = sqrt(absolute(0.5 * b - a) / x + 0.25) + absolute(b) / x
    most = minimum(0.5 * x, 3.0 / rate)
    return minimum(end - x, most), end - x <= most


def _taylor_step(tol: float) -> Any:
    """Coefficients at x, times powers of h, of w for x w″ + b w′ + (b/2 - a - x/4) w = 0.

    That is e to the -x/2 times Kummer's function, which keeps its size where it oscillates.
    """
    def step(_: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, ...]]:
        (x, n, t, u, v, y, slope), (a, b, end) = state, constants
        h, last = _stride(a, b, x, end)
        k = n + 1.0
        w = (0.25 * h * t - (0.5 * b - a - 0.25 * x) * u) * h - k * (n + b) * v
        w = w * (h / (x * k * (k + 1.0)))
        y, slope = y + w, slope + (k + 1.0) * w
        least = tol * minimum(absolute(y), absolute(slope))
        done = ((k + 1.0) * (absolute(w) + absolute(v) + absolute(u)) <= least) | (k > 500.0)
        on = where(last, end, x + h)
        first = where(done & ~last, _stride(a, b, on, end)[0] / h, 0.0) * slope
        state = (where(done, on, x), where(done, 0.0, k), where(done, 0.0, u), where(done, y, v),
                 where(done, first, w), where(done, y + first, y), where(done, first, slope))
        return ~(done & last) & (absolute(y) < math.inf), state
    return step


def _led(tol: float, active: Array, a: Array, b: Array, x: Array) -> Array:
    """e to the -x/2 times the function at x > 0, from where its power series does not cancel.

    NaN where the way is too long.
    """
    start = minimum(2.0 * (1.0 + absolute(b)) / (4.0 + absolute(a)), x)
    value, above = _series(tol, stack((active, active)), stack((a, a + 1.0)),
                           stack((b, b + 1.0)), stack((start, start)))[0]
    fall = exp(-0.5 * start)
    y, slope = fall * value, fall * (a / b * above - 0.5 * value)
    first = _stride(a, b, start, x)[0] * slope
    zero = start * 0.0
    out = iterate(_taylor_step(tol), active, (start, zero, zero, y, first, y + first, first),
                  (a, b, x), 200_000)
    return where((out[0] == x) | (absolute(out[5]) == math.inf), out[5], math.nan)


def _split(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> tuple:
    """Masks and operands of Kummer's transformation: where x < 0, M(a, b, x) = eˣ M(b-a, b, -x)."""
    fine = (x == x) & (a == a) & (b == b) & (absolute(x) < math.inf)
    legal = fine & ~pole(b)
    p, q, z = inside(legal, a, 1.0), inside(legal, b, 1.0), inside(legal, x, 0.0)
    negative = z < 0.0
    return fine, legal, negative, where(negative, q - p, p), q, absolute(z)


def _polynomial(active: Array, a: Array, b: Array, x: Array) -> Array:
    """The function of a = -n by the recurrence of Laguerre's polynomials (DLMF 18.9.1)."""
    def step(k: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array]]:
        (low, high), (a, b, x) = state, constants
        n = k + 1.0
        return n + 1.0 < -a, (high, ((2.0 * n + b - x) * high - n * low) / (b + n))

    one = x * 0.0 + 1.0
    return iterate(step, active, (one, 1.0 - x / b), (a, b, x), 1_000_000)[1]


def hyp1f1_of(tol: float, a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    fine, legal, negative, c, q, size = _split(a, b, x)
    # Far out by Γ(b)/Γ(c) eˣ xᶜ⁻ᵇ Σ (b-c)ₖ (1-c)ₖ / (k! xᵏ) (DLMF 13.7.2), unless c is a pole.
    d = q - c
    far = legal & (size > 50.0 + 4.0 * (absolute(d) + 1.0) * (absolute(c) + 2.0)) & ~pole(c)
    near = legal & ~far & (size < by_format(size, 700.0, 80.0))
    value, most = _series(tol, near, c, q, inside(near, size, 0.0))
    if is_short(size):      # which has no digits to lose
        cancels = near & (q < 0.0) & (most > 2.0 * absolute(value))
        value = where(cancels, _exact_series(0.25 * tol, cancels, c, q, inside(near, size, 0.0)),
                      value)
    lost = ~(most <= where(q < 0.0, by_format(size, 1e8, 2.0 ** 22), 64.0) * absolute(value))
    if is_short(size):
        lost = lost | (negative & (absolute(value) == math.inf))
    led = legal & ~far & (~near | lost) & (q > 0.0)
    long = led & pole(c) & (c < -1.0)
    led = led & ~long
    # Its square root, because e to the size / 2 leaves float32's range where the product does not.
    root = exp(inside(led, where(negative, -0.25, 0.25) * size, 0.0))
    whole = exp(where(near & negative, -size, 0.0))
    still = _led(tol, led, *(inside(led, v, 1.0) for v in (c, q, size)))
    # For b < 0 the solution would grow out of the rounding errors of the start.
    still = where(negative & (absolute(still) == math.inf), math.nan, still)
    value = where(led, root * (root * still), where(near & ~lost, whole * value, math.nan))
    ended = _polynomial(long, *(inside(long, v, w) for v, w in ((c, -2.0), (q, 1.0), (size, 0.0))))
    value = where(long, where(negative, exp(-size) * ended, ended), value)
    w = inside(far, size, 1e3)

    def asymptotic(i: Array, state: Sequence[Array], constants: Sequence[Array]
                   ) -> tuple[Array, tuple[Array, Array]]:
        (term, total), (d, e, w) = state, constants
        following = term * ((d + i) * (e + i) / ((i + 1.0) * w))
        again = (absolute(following) < absolute(term)) & (
            absolute(following) > tol * absolute(total))
        return again, (following, total + following)

    first = where(far, d, 0.0)
    total = iterate(asymptotic, far, (w * 0.0 + 1.0, w * 0.0 + 1.0), (first, 1.0 - c, w), 100)[1]
    g = gammas(where(far, q, 1.0), where(far, c, 1.0))
    level = g.logs[0] - g.logs[1] + (c - q) * log(w) + where(negative, 0.0, w)
    value = where(far, exp(level) * g.signs[0] * g.signs[1] * total, value)
    value = where(legal, value, where(fine, math.inf, math.nan))
    return where((a == 0.0) & fine, 1.0, value)


def _hyp1f1_slope(tol: float, a: Array, b: Array, x: Array, operand: str) -> Array:
    """The derivative in a or b, for |x| < 700."""
    fine, legal, negative, c, q, size = _split(a, b, x)
    near = legal & (size < by_format(size, 700.0, 80.0))
    _, in_a, in_b = _kummer(tol, near, c, q, inside(near, size, 0.0))
    power = exp(where(near & negative, -size, 0.0))
    value = where(negative, -in_a, in_a) if operand == "a" else where(negative, in_a + in_b, in_b)
    value = where(size < by_format(size, 700.0, 80.0), power * value, math.nan)
    return where(legal, value, where(fine, math.inf, math.nan))


hyp1f1_a_p = Special("hyp1f1_a", lambda tol, a, b, x: _hyp1f1_slope(tol, a, b, x, "a"),
                     nowhere, nowhere,
                     lambda t, y, a, b, x: t * (hyp1f1_p.bind(a + 1.0, b + 1.0, x)
                                                + a * hyp1f1_a_p.bind(a + 1.0, b + 1.0, x)) / b)
hyp1f1_b_p = Special("hyp1f1_b", lambda tol, a, b, x: _hyp1f1_slope(tol, a, b, x, "b"),
                     nowhere, nowhere,
                     lambda t, y, a, b, x: t * a / b * (hyp1f1_b_p.bind(a + 1.0, b + 1.0, x)
                                                        - hyp1f1_p.bind(a + 1.0, b + 1.0, x) / b))
hyp1f1_p = Special("hyp1f1", hyp1f1_of,
                   lambda t, y, a, b, x: t * hyp1f1_a_p.bind(a, b, x),
                   lambda t, y, a, b, x: t * hyp1f1_b_p.bind(a, b, x),
                   lambda t, y, a, b, x: t * a / b * hyp1f1_p.bind(a + 1.0, b + 1.0, x))


@fused(inline=True)
def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Kummer's function, the sum of (a)ₖ xᵏ / ((b)ₖ k!) (DLMF 13.2.2).

    Kummer's transformation for x < 0, the power series, an asymptotic one far out, and where terms
    cancel, Taylor's series of the differential equation or the recurrence of polynomials.

    Args: a, b, x: real numbers of shapes that broadcast; integers become floats.
    Returns: An array of the broadcast shape: inf where b is 0 or a negative integer, 1 where a is
      0, NaN of other b < 0 where terms cancel. Differentiable in x to every order, in a and b once,
      for |x| < 700.

    >>> print(f"{special.hyp1f1(1.0, 1.0, 1.0):.5f}")       # e
    2.71828
    """
    return apply(hyp1f1_p, a, b, x)
