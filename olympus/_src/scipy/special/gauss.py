"""Gauss's function of real operands: power series, after what makes them short.

Pfaff's transformation makes the argument positive. Near 1 the function is a sum of two series in
1 - x, or, where those cancel each other, Taylor's series of the differential equation lead towards
1, each half of the way that is left. Terms of a series that cancel are added up again with twice
the digits (Dekker, "A floating-point technique for extending the available precision", 1971); where
those are too few, Taylor's series lead there, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.special.series import is_short, iterate
from ...numpy.arithmetic import absolute, maximum, minimum
from ...numpy.elementary import exp, floor, log, log1p, rint, sqrt
from ...numpy.joining import stack
from ...numpy.selection import where
from .family import Special, apply, by_format, even, inside, nowhere, whole
from .gammas import digamma_of, gamma_sign, gammas
from .hypergeometric import exact_over, exact_sum, exact_times, pole

_STEPS = 400_000


# The power series --------------------------------------------------------------------------------

def _again(tol: float, i: Array, term: Array, total: Array, a: Array, b: Array, c: Array, x: Array
           ) -> Array:
    p, q, r = a + i, b + i, c + i
    # Beyond c + i < 0 terms grow once more; for small a or b they grow before they fall.
    turned = (p < 0.0) | (q < 0.0) | (r < 0.0) | (absolute(p * q * x) > r * (i + 1.0))
    turned = turned | (absolute((p + 1.0) * (q + 1.0) * x) > absolute((r + 1.0) * (i + 2.0)))
    return (absolute(term) > tol * absolute(total)) | (turned & (term != 0.0))


def _series(tol: float) -> Any:
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array, Array]]:
        (term, total, most), (a, b, c, x) = state, constants
        below = where(c + i == 0.0, 1.0, c + i)      # the sum has ended there
        term = term * ((a + i) * (b + i) / (below * (i + 1.0)) * x)
        total = total + term
        return _again(tol, i, term, total, a, b, c, x), (term, total, maximum(most, absolute(term)))
    return step


def _exact_series(tol: float) -> Any:
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array, Array, Array]]:
        (term, rest, total, left), (a, b, c, x) = state, constants
        above = exact_times(exact_sum(a, i), exact_sum(b, i))
        above = exact_times(above, (x, 0.0))
        low = exact_sum(c, i)
        low = where(low[0] + low[1] == 0.0, 1.0, low[0]), low[1]
        below = exact_times(low, (i + 1.0, 0.0))
        term, rest = exact_over(exact_times((term, rest), above), below)
        total, error = exact_sum(total, term)
        total, left = exact_sum(total, error + left + rest)
        return _again(tol, i, term, total, a, b, c, x), (term, rest, total, left)
    return step


def _gauss(tol: float, active: Array, a: Array, b: Array, c: Array, x: Array
           ) -> tuple[Array, Array]:
    """(value, whether digits of it are lost)."""
    one, zero = x * 0.0 + 1.0, x * 0.0
    last, total, most = iterate(_series(tol * 0.25), active, (one, one, one), (a, b, c, x), _STEPS)
    # Terms that grow once more behind -c, to about the power of this base, may be 0 before.
    gone = (last == 0.0) & (c < 0.0) & ~pole(a) & ~pole(b)
    gone = gone & ((1.0 - c) * log(inside(gone & (x > 0.0), x / (1.0 - x), 1e-30)) > -40.0)
    most = where(gone, math.inf, most)
    cancels = active & (most > 2.0 * absolute(total))
    state = (one, zero, one, zero)
    exact = iterate(_exact_series(tol * 0.25), cancels, state, (a, b, c, x), _STEPS)
    value = where(cancels, exact[2], total)
    # The largest term has 104 bits, or 46.
    return value, active & ~(most <= tol * by_format(x, 2.0 ** 100, 2.0 ** 44) * absolute(value))


def _slope_series(tol: float) -> Any:
    """The series and its derivative along (da, db, dc)."""
    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array, Array, Array]]:
        (term, total, moved, by), (a, b, c, x, da, db, dc) = state, constants
        p, q, r = a + i, b + i, c + i
        scale = x / (r * (i + 1.0))
        # A factor may be 0: its derivative is not.
        moved = (moved * (p * q) + term * (da * q + db * p - dc * (p * q) / r)) * scale
        term = term * (p * q * scale)
        total, by = total + term, by + moved
        turned = (p < 0.0) | (q < 0.0) | (r < 0.0)
        left = (absolute(moved) > tol * absolute(by)) | (absolute(term) > tol * absolute(total))
        return left | (turned & ((moved != 0.0) | (term != 0.0))), (term, total, moved, by)
    return step


def _gauss_slope(tol: float, active: Array, abc: Sequence[Array], x: Array,
                 direction: Sequence[Array]) -> tuple[Array, Array]:
    one, zero = x * 0.0 + 1.0, x * 0.0
    out = iterate(_slope_series(tol * 0.25), active, (one, one, zero, zero),
                  (*abc, x, *direction), _STEPS)
    return out[1], out[3]


# Taylor's series of the differential equation ----------------------------------------------------

_LONG = 30.0        # parameters below minus that make terms that twice the digits may not hold


class _Road(NamedTuple):
    """Where the solution is led: to `end`, 1 - `rest`; s is c - a - b."""

    a: Any
    b: Any
    c: Any
    s: Any
    end: Any
    rest: Any

    def step(self, x: Array, d: Array) -> tuple[Array, Array]:
        """(the step from x = 1 - d, whether it is the last).

        At most half of the way to 0 and to 1, where the series converge, and a few radians, within
        which its terms do not cancel.
        """
        left = where(self.end <= 0.5, self.end - x, d - self.rest)
        rate = sqrt(absolute(self.a * self.b) / (x * d)) + absolute(self.c) / x
        rate = rate + absolute(1.0 - self.s) / d
        most = minimum(0.5 * minimum(x, d), 3.0 / rate)
        return minimum(left, most), left <= most

    def drift(self, x: Array, d: Array) -> Array:
        """c - (a+b+1) x, without cancellation near 1."""
        rise = self.a + self.b + 1.0
        return where(x < 0.5, self.c - rise * x, self.s - 1.0 + rise * d)


def _taylor_step(tol: float) -> Any:
    """Coefficients of the solution at x times powers of h, and their derivatives.

    The equation is x (1-x) y″ + (c - (a+b+1) x) y′ - a b y = 0, where x (1-x) is, in the distance
    δ from x, x d + (d - x) δ - δ².
    """
    def step(_: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, ...]]:
        x, d, n, u, v, y, slope, du, dv, dy, dslope = state
        da, db, ds = constants[:3]
        road = _Road(*constants[3:])
        h, last = road.step(x, d)
        p, q, k = road.a + n, road.b + n, n + 1.0
        scale = h / (x * d * (k * (k + 1.0)))
        drift = k * ((x - d) * n - road.drift(x, d))
        w = (drift * v + p * q * h * u) * scale
        dw = (drift * dv + p * q * h * du - k * (ds + (da + db) * d) * v
              + (da * q + db * p) * h * u) * scale
        y, slope, dy, dslope = y + w, slope + (k + 1.0) * w, dy + dw, dslope + (k + 1.0) * dw

        def small(new: Array, old: Array, total: Array, rise: Array) -> Array:
            least = tol * minimum(absolute(total), absolute(rise))
            return (k + 1.0) * (absolute(new) + absolute(old)) <= least

        done = (small(w, v, y, slope) & small(dw, dv, dy, dslope)) | (k > 500.0)
        on, off = where(last, road.end, x + h), where(last, road.rest, d - h)
        grown = where(done & ~last, road.step(on, off)[0] / h, 0.0)
        first, dfirst = grown * slope, grown * dslope
        state = (where(done, on, x), where(done, off, d), where(done, 0.0, k), where(done, y, v),
                 where(done, first, w), where(done, y + first, y), where(done, first, slope),
                 where(done, dy, dv), where(done, dfirst, dw), where(done, dy + dfirst, dy),
                 where(done, dfirst, dslope))
        return ~(done & last) & (absolute(y) < math.inf), state
    return step


def _led(tol: float, active: Array, road: _Road, direction: Sequence[Array]
         ) -> tuple[Array, Array]:
    """The function at the end of a road and its derivative along (da, db, dc), by Taylor steps.

    The first step starts where the power series does not cancel; NaN where the steps are too few.
    """
    a, b, c = road[:3]
    da, db, dc = direction
    start = 2.0 * (1.0 + absolute(c)) / ((1.0 + absolute(a)) * (4.0 + absolute(b)))
    x = minimum(minimum(where(c > 0.0, start, 0.5), road.end), 0.5)
    both = [stack((v, v + 1.0)) for v in (a, b, c)]
    (y, above), (dy, dabove) = _gauss_slope(tol, stack((active, active)), both, stack((x, x)),
                                            [stack((v, v)) for v in direction])
    slope = a * b / c * above
    dslope = ((da * b + db * a) / c - a * b * dc / (c * c)) * above + a * b / c * dabove
    h, _ = road.step(x, 1.0 - x)
    u, v, du, dv = y, h * slope, dy, h * dslope
    out = iterate(_taylor_step(tol), active,
                  (x, 1.0 - x, x * 0.0, u, v, u + v, v, du, dv, du + dv, dv),
                  (da, db, dc - da - db, *road), _STEPS)
    arrived = ((out[0] == road.end) & (out[1] == road.rest)) | (absolute(out[5]) == math.inf)
    # The last step has no length: its sum is the value.
    return where(arrived, out[5], math.nan), where(arrived, out[9], math.nan)


# The function ------------------------------------------------------------------------------------

def early(a: Any, b: Any, c: Any) -> Array:
    """Whether the sum ends before its terms have the pole c as a divisor."""
    return pole(c) & ((pole(a) & (a >= c)) | (pole(b) & (b >= c)))


def _reduced(a: Any, b: Any, c: ArrayLike, x: Any, slope: bool = False) -> tuple:
    """Masks and operands of the series, u and 1 - u; slopes of a polynomial are no polynomials."""
    fine = (a == a) & (b == b) & (c == c) & (x == x) & (x > -math.inf)
    finite = (pole(a) & (a > -1e4)) | (pole(b) & (b > -1e4))
    fit = ~pole(c) | early(a, b, c)
    legal = fine & ((x < 1.0) | finite) & fit & (x < math.inf)
    one = fine & (x == 1.0) & ~finite & fit
    p, q, r, z = (inside(legal, v, s) for v, s in ((a, 1.0), (b, 1.0), (c, 1.0), (x, 0.0)))
    # F(a, b; c; x) = (1-x)⁻ᵃ F(a, c-b; c; x/(x-1)), for the smaller of a and b as a; of a pole c
    # for the one that ends the sum.
    swap = where(pole(r) & (pole(p) != pole(q)), pole(q), absolute(p) > absolute(q))
    p, q = where(swap, q, p), where(swap, p, q)
    # Where terms cancel, those in u are led.
    long = (maximum(absolute(p), absolute(q)) > _LONG) & (r > 0.0) & (z < 0.0)
    turned = long | ((z < -0.5) & (slope | ~(finite & (z > -2.0))))
    if is_short(z):     # with twice the digits, too, fewer terms may cancel
        turned = turned | ((z < -0.1) & (maximum(absolute(p), absolute(q)) > 3.0) & ~finite)
    base = 1.0 - inside(turned, z, 0.0)
    q = where(turned, r - q, q)
    u = where(turned, z / (z - 1.0), z)
    rest = where(turned, 1.0 / base, 1.0 - z)       # 1 - u
    return fine, legal, one, turned, swap, p, q, r, u, rest, base, pole(p) | pole(q)


def _flipped(p: Array, q: Array, r: Array, s: Array, u: Array) -> Array:
    """Whether a polynomial is computed in 1 - u (DLMF 15.8.7): beyond the middle of its zeros.

    There it is the rest of solutions that grow.
    """
    middle = 0.5 + 0.5 * ((r - 1.0) ** 2 - s ** 2) / (p - q) ** 2
    long = whole(minimum(p, q)) & (minimum(p, q) < -_LONG) & (maximum(p, q) > 0.0)
    return long & (r > 0.0) & (s < 1.0) & (u > maximum(middle, 0.0))


def hyp2f1_of(tol: float, a: ArrayLike, b: ArrayLike, c: ArrayLike, x: Any) -> Array:
    fine, legal, one, turned, _, p, q, r, u, rest, base, polynomial = _reduced(a, b, c, x)
    s = r - p - q
    flipped = _flipped(p, q, r, s, u) & legal & (rest > 0.0)
    degree = inside(flipped, -minimum(p, q), 0.0)
    r, s, u, rest = (where(flipped, v, w) for v, w in (
        (1.0 - s, r), (1.0 - r, s), (rest, u), (u, rest)))
    # Near 1 (DLMF 15.8.4), unless s = c - a - b is nearly whole or terms cancel.
    ends = polynomial | pole(r - p) | pole(r - q)
    cancels = (absolute(s - rint(s)) < 0.05) | ((minimum(p, q) < -_LONG) & (maximum(p, q) > 0.0))
    inner = (u > 0.0) & (rest > 0.0) & legal
    led = (u > 0.9) & cancels & ~ends & inner
    close = (u > 0.9) & ~cancels & ~ends
    near = legal & ~close & ~led
    value, lost = _gauss(tol, near, p, q, r, inside(near, u, 0.0))
    led = led | (lost & inner)
    road = _Road(*(inside(led, v, w) for v, w in zip((p, q, r, s, u, rest),
                                                     (1.0, 1.0, 2.0, 0.0, 0.5, 0.5), strict=True)))
    none = p * 0.0
    # For c < 0 another solution grows out of the rounding errors of the start.
    held = (r > 0.0) | ~(lost | (minimum(p, q) < -_LONG))
    still = where(held, _led(tol, led, road, (none, none, none))[0], math.nan)
    value = where(led, still, where(lost, math.nan, value))
    at = close & legal
    k, l, m = inside(at, p, 0.5), inside(at, q, 0.25), inside(at, r, 1.0)
    w, t = inside(at, rest, 0.5), inside(at, s, 0.25)
    first, _ = _gauss(tol, at, k, l, 1.0 - t, w)
    second, _ = _gauss(tol, at, m - k, m - l, 1.0 + t, w)
    low, high = inside(flipped, r, 1.0), inside(flipped, 1.0 - s, 1.0)
    g = gammas(m, t, m - k, m - l, -t, k, l, low + degree, low, high + degree, high)
    one_part = exp(g.logs[0] + g.logs[1] - g.logs[2] - g.logs[3])
    one_part = one_part * (g.signs[0] * g.signs[1] * g.signs[2] * g.signs[3])
    other = exp(g.logs[0] + g.logs[4] - g.logs[5] - g.logs[6] + t * log(w))
    other = other * (g.signs[0] * g.signs[4] * g.signs[5] * g.signs[6])
    value = where(close, one_part * first + other * second, value)
    ratio = exp((g.logs[7] - g.logs[8]) - (g.logs[9] - g.logs[10]))
    value = where(flipped, value * where(even(degree), ratio, -ratio), value)
    half = where(turned, exp(-0.5 * p * log(base)), 1.0)      # of a power that may leave the range
    value = half * value * half
    at_one = _at_one(one, a, b, c)
    # (1-x)**-a of a parameter that is c, also beyond 1 if that power is real.
    e = where(b == c, a, b)
    power = legal & (x < 1.0) & ((a == c) | (b == c)) & ~pole(c)
    value = where(power, exp(-inside(power, e, 0.0) * log1p(-inside(power, x, 0.0))), value)
    beyond = fine & (x > 1.0) & ~legal & ((a == c) | (b == c)) & ~pole(c) & (e == rint(e))
    size = exp(-inside(beyond, e, 0.0) * log(inside(beyond, x, 2.0) - 1.0))
    odd = e - 2.0 * floor(0.5 * e) != 0.0
    value = where(beyond, where(odd, -size, size), value)
    # Beyond 1 the function is complex, unless it is a polynomial: SciPy's infinity.
    beside = pole(c) | ((x > 1.0) & ~pole(a) & ~pole(b))
    edge = where(one, at_one, where(fine & beside, math.inf, math.nan))
    value = where(legal | beyond, value, edge)
    return where(fine & ((x == 0.0) | (a == 0.0) | (b == 0.0)) & ~pole(c), 1.0, value)


def _at_one(one: Any, a: Any, b: Any, c: Any) -> Any:
    """Γ(c) Γ(c-a-b) / (Γ(c-a) Γ(c-b)) where c > a + b (DLMF 15.4.20), else infinite."""
    s = c - a - b
    gone = pole(c - a) | pole(c - b)
    fit = one & (s > 0.0) & ~gone
    g = gammas(*(inside(fit, v, 1.0) for v in (c, s, c - a, c - b)))
    value = exp(g.logs[0] + g.logs[1] - g.logs[2] - g.logs[3])
    value = value * (g.signs[0] * g.signs[1] * g.signs[2] * g.signs[3])
    sign = gamma_sign(0.0, a) * gamma_sign(0.0, b) * g.signs[0]
    return where(fit, value, where(s > 0.0, 0.0, sign * math.inf))


def _hyp2f1_slope(tol: float, a: Array, b: Array, c: Array, x: Array, operand: str = "a") -> Array:
    """The derivative in a, b or c; NaN for x > 1, and at 1 where it is infinite or at a pole."""
    fine, legal, _, turned, swap, p, q, r, u, rest, base, _ = _reduced(a, b, c, x, slope=True)
    one, zero = p * 0.0 + 1.0, p * 0.0
    dp, dq, dr = (one if operand == name else zero for name in "abc")
    dp, dq = where(swap, dq, dp), where(swap, dp, dq)
    dq = where(turned, dr - dq, dq)
    far = legal & (rest < 0.5) & (rest > 0.0)
    near = legal & (u < 1.0) & ~far
    value, slope = _gauss_slope(tol, near, (p, q, r), inside(near, u, 0.0), (dp, dq, dr))
    road = _Road(p, q, r, r - p - q, inside(far, u, 0.5), inside(far, rest, 0.5))
    led = _led(tol, far, road, (dp, dq, dr))
    value, slope = where(far, led[0], value), where(far, led[1], slope)
    level = log(base)
    slope = where(turned, exp(-p * level), 1.0) * (slope - where(turned, dp * level, 0.0) * value)
    # The logarithmic derivative of Γ(c) Γ(s) / (Γ(c-a) Γ(c-b)), where none of them has a pole.
    at_one = fine & (x == 1.0) & (c > a + b) & ~pole(c) & ~pole(c - a) & ~pole(c - b)
    all_, rest, left, right = (digamma_of(tol, inside(at_one, v, 1.0))
                                for v in (c, c - a - b, c - a, c - b))
    rise = {"a": left - rest, "b": right - rest, "c": all_ + rest - left - right}[operand]
    return where(near | far, slope, where(at_one, rise * _at_one(at_one, a, b, c), math.nan))


def _in_x(t: Array, y: Array, a: Any, b: ArrayLike, c: ArrayLike, x: Array, operand: str) -> Array:
    """The derivative in x of one in a parameter: d/da (a b/c F(a+1, b+1; c+1; x))."""
    value = hyp2f1_p.bind(a + 1.0, b + 1.0, c + 1.0, x)
    slope = hyp2f1_slope_p.bind(a + 1.0, b + 1.0, c + 1.0, x, operand=operand)
    part = {"a": b / c, "b": a / c, "c": -a * b / (c * c)}[operand]
    return t * (part * value + a * b / c * slope)


hyp2f1_slope_p = Special("hyp2f1_slope", _hyp2f1_slope, nowhere, nowhere, nowhere, _in_x,
                         pace=math.inf)


def _in_parameter(operand: str) -> Any:
    return lambda t, y, a, b, c, x: t * hyp2f1_slope_p.bind(a, b, c, x, operand=operand)


hyp2f1_p = Special("hyp2f1", hyp2f1_of, *map(_in_parameter, "abc"),
                   lambda t, y, a, b, c, x: t * (a * b / c) * hyp2f1_p.bind(
                       a + 1.0, b + 1.0, c + 1.0, x), pace=math.inf)


@fused(inline=True)
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Gauss's hypergeometric function, the sum of (a)ₖ (b)ₖ xᵏ / ((c)ₖ k!) (DLMF 15.2.1).

    Pfaff's transformation for x < -1/2, the power series, and for x near 1 two series in 1 - x, or
    where c - a - b is nearly whole or terms cancel, Taylor's series of the differential equation.

    Args:
      a, b, c: real numbers.
      x: real numbers <= 1, or any where a or b is 0 or a negative integer, or one of them is c and
        the other an integer; all shapes broadcast.
    Returns: An array of the broadcast shape: inf where c is 0 or a negative integer and, as in
      SciPy, for other x > 1, where the function is complex; NaN of other c < 0 where terms cancel.
      Differentiable in x to every order, in the parameters once: for x < 1, and at x == 1 where c >
      a + b and neither c - a nor c - b is 0 or a negative integer; no numbers elsewhere.

    >>> print(f"{special.hyp2f1(1.0, 1.0, 2.0, 0.5):.5f}")      # 2 ln 2
    1.38629
    """
    return apply(hyp2f1_p, a, b, c, x)
