"""Inverses of the incomplete gamma and beta functions, and Lambert's W.

In the logarithm (or logit) of x both functions are logarithmically concave, as their densities are
(Prékopa 1973): Newton's method on the logarithm of the smaller of both tails never passes the root
from the side of small probabilities, and so converges from anywhere. Derivatives are implicit.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...base.docstrings import described_like
from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.arithmetic import complex as make_complex
from ...lax.families import COMPLEX
from ...lax.special.incomplete_beta import beta_density_p, beta_product, beta_value, betainc_slope_p
from ...lax.special.incomplete_gamma import (
    gamma_density_p, gamma_side, power_density, random_gamma_grad_p,
)
from ...lax.special.series import is_short, iterate, least_normal
from ...numpy.arithmetic import absolute, imag, maximum, minimum, real
from ...numpy.elementary import exp, log, sqrt
from ...numpy.manipulation import astype
from ...numpy.selection import where
from ...types import dtypes
from ...types.shape import static_int
from .family import Special, apply, by_format, inside, log1p, operands
from .gammas import gammaln_above, positive_beta

_STEPS = 60
_LEAST = 1e-305


def rough_quantile(p: ArrayLike) -> Array:
    """About the normal distribution's for p <= 1/2 (Abramowitz and Stegun 26.2.22)."""
    t = sqrt(-2.0 * log(p))
    return (2.30753 + 0.27061 * t) / (1.0 + 0.99229 * t + 0.04481 * t * t) - t


def _newton(value: Array, slope: Array, p: Array, sign: ArrayLike, u: Array, old: Array,
            rate: Array, spread: Array) -> tuple[Array, Array]:
    """(whether to go on, the next u): ln value = ln p, where ln value rises with sign u.

    `rate` is about how fast it does far out, where in float32 `slope` may be 0. In units of the
    deviation, 1/√`spread`, what a step leaves is about the square of the step.
    """
    least = by_format(value, _LEAST, least_normal(value))
    safe = maximum(value, least)
    gap = sign * log(safe / p)
    # In float32 `safe / least` times the least probabilities would underflow.
    short = is_short(value)
    step = gap * where(slope > least, safe / maximum(slope, least), 1.0 / (1.0 + rate)) if short \
        else gap * safe / maximum(slope, least)
    # Towards the smaller probabilities a step may be too long.
    step = sign * minimum(sign * step, 2.0)
    # Where `value` underflows, go on by less than the step that may have led there, so that the
    # iteration does not repeat itself.
    lost = value < least
    # In float32 that place may be next to the least numbers: go half of the way back.
    back = where(sign * (old - u) > 0.0, 0.5 * (u + old), u + 0.25 * sign) if short \
        else u + 0.25 * sign
    moved = where(lost, back, u - step)
    moves = step * step * sqrt(1.0 + spread) > by_format(u, 1e-17, 1e-9) * (1.0 + absolute(u))
    return lost | moves & (moved != old), moved


def gamma_inverse(tol: float, a: Array, p: Array, q: Array) -> Array:
    """The x with P(a, x) = p = 1 - q, from the smaller of p and q."""
    legal = (a > 0.0) & (a < math.inf) & (p > 0.0) & (q > 0.0)
    edge = where((a >= 0.0) & (p >= 0.0) & (q >= 0.0), where(
        (p == 0.0) | (a == 0.0), 0.0, where(q == 0.0, math.inf, math.nan)), math.nan)
    lower = p <= q
    a, target = inside(legal, a, 1.0), inside(legal, minimum(p, q), 0.5)
    z = where(lower, 1.0, -1.0) * rough_quantile(target)
    # Wilson and Hilferty's cube; below it x**a >= p Γ(a+1), which is a bound.
    cube = 1.0 - 1.0 / (9.0 * a) + z / (3.0 * sqrt(a))
    bound = (log(inside(legal & lower, p, 0.5)) + gammaln_above(a + 1.0)) / a
    normal = log(a) + 3.0 * log(maximum(cube, 1e-3))
    far = log(maximum(-log(target) + (a - 1.0) * log(maximum(-log(target), 1.0)), 0.1))
    u = where((a >= 1.0) & (cube > 0.2), normal, where(lower, bound, far))
    u = where(lower, maximum(u, bound), u)

    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array]]:
        (u, old), (a, target, lower) = state, constants
        x = exp(u)
        again, moved = _newton(gamma_side(tol, lower, a, x), a * power_density(a, a, x), target,
                               where(lower, 1.0, -1.0), u, old, absolute(x - a), a)
        return again, (moved, u)

    u = where(lower, maximum(u, by_format(a, -745.0, -86.0)), minimum(u, by_format(a, 700.0, 88.0)))
    before = u + (where(lower, -1.0, 1.0) if is_short(u) else 1.0)
    found = iterate(step, legal, (u, before), (a, target, lower), _STEPS)[0]
    # Where x is too small for the function, it is the power.
    x = exp(where(lower & (bound < by_format(a, -650.0, -80.0)), bound, found))
    # The deviation is √a. For large a Newton's steps are all rounding: a rough quantile is enough.
    rough = a * cube * cube * cube if is_short(a) else a + z * sqrt(a)
    return where(legal, where(a > by_format(a, 1e22, 1e6), rough, x), edge)


def beta_logit(tol: float, a: Any, b: Any, p: Any, q: Any) -> Array:
    """The logit ln(x / (1-x)) of the x with I(a, b; x) = p = 1 - q."""
    legal = (a > 0.0) & (a < math.inf) & (b > 0.0) & (b < math.inf) & (p > 0.0) & (q > 0.0)
    swap = p > q
    k, l = inside(legal, where(swap, b, a), 1.0), inside(legal, where(swap, a, b), 1.0)
    target = inside(legal, minimum(p, q), 0.5)
    z = rough_quantile(target)
    # The logit's variance is about 1/a + 1/b; for small a the power x**a / (a B) is better.
    normal = log(k / l) + z * sqrt(1.0 / k + 1.0 / l)
    level = log(target) + log(k) if is_short(k) else log(target * k)
    power = (level + positive_beta(k, l).logarithm()) / k
    low = minimum(power, -0.1)
    bound = where(power < -0.1, low - log1p(-exp(low)), 0.0)
    # Far out Newton's steps down from the normal one would be too many.
    u = where((k >= 1.0) & ((target > 1e-12) | (k > 100.0)), maximum(normal, bound), bound)
    # For small l and y = c / k the function is about l exp(-c).
    end = log(k / maximum(log(l / target), 1.0))
    u = where((l < 1.0) & (k > 100.0), maximum(u, end), u)

    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array]]:
        (u, old), (k, l, target) = state, constants
        x = 1.0 / (1.0 + exp(-u))
        y = 1.0 / (1.0 + exp(u))
        fit = (x > 0.0) & (y > 0.0)
        x, y = where(fit, x, 0.5), where(fit, y, 0.5)
        value, slope = beta_value(tol, k, l, x, y), beta_product(k, l, x, y)
        again, moved = _newton(value, slope, target, 1.0, u, old, absolute(k * y - l * x),
                               minimum(k, l))
        return again & fit, (where(fit, moved, u), u)

    u = maximum(u, by_format(u, -690.0, -86.0))
    # For large k and l Newton's steps are all rounding: the normal logit is enough.
    active = legal & (minimum(k, l) < 1e8) if is_short(u) else legal
    u = iterate(step, active, (u, u + by_format(u, 1.0, -1.0)), (k, l, target), _STEPS)[0]
    # Where x is too small for the function, it is the power.
    u = where(power < by_format(u, -650.0, -80.0), power, u)
    edge = where((a > 0.0) & (b > 0.0) & (p == 0.0), -math.inf,
                 where((a > 0.0) & (b > 0.0) & (q == 0.0), math.inf, math.nan))
    # All the weight is at 0 where b is infinite, at 1 where a is.
    inner = (a > 0.0) & (b > 0.0) & (p > 0.0) & (q > 0.0)
    edge = where(inner & (a < math.inf) & (b == math.inf), -math.inf,
                 where(inner & (a == math.inf) & (b < math.inf), math.inf, edge))
    return where(legal, where(swap, -u, u), edge)


def _beta_inverse(tol: float, a: Array, b: Array, p: Array, q: Array) -> Array:
    return 1.0 / (1.0 + exp(-beta_logit(tol, a, b, p, q)))


gammaincinv_p = Special(
    "gammaincinv", lambda tol, a, p: gamma_inverse(tol, a, p, 1.0 - p),
    lambda t, x, a, p: t * random_gamma_grad_p.bind(a, x),
    lambda t, x, a, p: t / gamma_density_p.bind(a, x), pace=math.inf)
gammainccinv_p = Special(
    "gammainccinv", lambda tol, a, q: gamma_inverse(tol, a, 1.0 - q, q),
    lambda t, x, a, q: t * random_gamma_grad_p.bind(a, x),
    lambda t, x, a, q: -t / gamma_density_p.bind(a, x), pace=math.inf)


def _beta_rules(sign: float) -> tuple[Any, ...]:
    def parameter(m: int, n: int) -> Any:
        return lambda t, x, a, b, p: -t * (
            betainc_slope_p.bind(a, b, x, m=m, n=n) / beta_density_p.bind(a, b, x))

    return (parameter(1, 0), parameter(0, 1),
            lambda t, x, a, b, p: sign * t / beta_density_p.bind(a, b, x))


betaincinv_p = Special("betaincinv", lambda tol, a, b, p: _beta_inverse(tol, a, b, p, 1.0 - p),
                       *_beta_rules(1.0), pace=math.inf)
betainccinv_p = Special("betainccinv", lambda tol, a, b, q: _beta_inverse(tol, a, b, 1.0 - q, q),
                        *_beta_rules(-1.0), pace=math.inf)


@fused(inline=True)
def gammaincinv(a: ArrayLike, y: ArrayLike) -> Array:
    """The x with gammainc(a, x) = y: the quantile function of the gamma distribution.

    Args:
      a: shape parameters, real, > 0.
      y: probabilities, real, of a shape that broadcasts.
    Returns: An array of the broadcast shape: 0 at 0, inf at 1, NaN outside. Differentiable in both.

    >>> print(f"{special.gammaincinv(2.0, 0.5):.5f}")
    1.67835
    """
    return apply(gammaincinv_p, a, y)


@fused(inline=True)
@described_like(gammaincinv)
def gammainccinv(a: ArrayLike, y: ArrayLike) -> Array:
    """The x with gammaincc(a, x) = y, also for the smallest y.

    Returns: An array of the broadcast shape: inf at 0, 0 at 1, NaN outside. Differentiable in both.

    >>> print(f"{special.gammainccinv(1.0, 1e-30):.4f}")
    69.0776
    """
    return apply(gammainccinv_p, a, y)


@fused(inline=True)
def betaincinv(a: ArrayLike, b: ArrayLike, y: ArrayLike) -> Array:
    """The x with betainc(a, b, x) = y: the quantile function of the beta distribution.

    Args:
      a, b: real parameters > 0.
      y: probabilities, real; all shapes broadcast.
    Returns: An array of the broadcast shape, NaN outside. Differentiable in all three.

    >>> print(f"{special.betaincinv(2.0, 3.0, 0.6875):.4f}")
    0.5000
    """
    return apply(betaincinv_p, a, b, y)


@fused(inline=True)
@described_like(betaincinv)
def betainccinv(a: ArrayLike, b: ArrayLike, y: ArrayLike) -> Array:
    """The x with betaincc(a, b, x) = y.

    >>> print(f"{special.betainccinv(2.0, 3.0, 0.3125):.4f}")
    0.5000
    """
    return apply(betainccinv_p, a, b, y)


# Lambert's W -------------------------------------------------------------------------------------

def _lambertw(tol: float, z: Array, k: int) -> Array:
    """Halley's method (Corless et al. 1996, Adv. Comput. Math. 5, 329, 5.9) from the asymptotic
    form, or around the branch point from the series in p = √(2(ez + 1)).
    """
    fine = (real(z) == real(z)) & (imag(z) == imag(z)) & (absolute(z) < math.inf) & (z != 0.0)
    z = where(fine, z, 1.0)
    level = log(z) + 2j * math.pi * k
    far = level - log(where(level == 0.0, 1.0, level))
    start = far
    p = sqrt(2.0 * (math.e * z + 1.0))
    size = absolute(z + 1.0 / math.e)
    if k == 0:
        small = z * (1.0 + 1.9 * z) / (1.0 + z * (2.9 + 0.95 * z))
        near = -1.0 + p * (1.0 + p * (-1.0 / 3.0 + p * (11.0 / 72.0)))
        across = absolute(imag(z))
        middle = (real(z) > -2.5 * across - 0.2) & (real(z) < 1.5) & (across < 1.0)
        start = where(size < 0.35, near, where(middle & (real(z) > -1.0), small, start))
    elif k in (-1, 1):
        side = imag(z) >= 0.0 if k == -1 else imag(z) < 0.0
        near = -1.0 - p * (1.0 + p * (1.0 / 3.0 + p * (11.0 / 72.0)))
        start = where((size < 0.3) & side, near, start)

    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, ...]]:
        (w,), (z,) = state, constants
        # w - z e⁻ʷ, which neither overflows where eʷ does.
        rest = w - z * exp(-w)
        one = w + 1.0
        safe = where(one == 0.0, 1e-30, one)
        d = rest / (safe - 0.5 * (w + 2.0) * rest / safe)
        # What a step leaves is about its cube.
        return absolute(d) > by_format(w, 1e-6, 1e-3) * minimum(
            absolute(w), absolute(one)), (w - d,)

    w, = iterate(step, fine, (start,), (z,), 40)
    return where(fine, w, 0.0)


lambertw_p = Special("lambertw", _lambertw,
                     lambda t, w, z, k: t / (exp(w) * (1.0 + w)), kinds=COMPLEX)


@fused(static=("k", "tol"))
def lambertw(z: ArrayLike, k: int = 0, tol: float = 1e-8) -> Array:
    """Lambert's W: the w with w exp(w) = z, on the branch k.

    Args:
      z: real or complex numbers.
      k: the branch; 0 is real for z >= -1/e, -1 for -1/e <= z < 0.
      tol: for SciPy's sake: results have full precision, but for a few digits next to -1/e.
    Returns: A complex array of the shape of z.

    >>> print(f"{special.lambertw(1.0).real:.5f}")
    0.56714
    """
    k = static_int(k, "lambertw", "k")
    z, = operands("lambertw", z)
    if not dtypes.is_complex(z.dtype):
        z = astype(z, "complex128" if dtypes.itemsize_bits(z.dtype) > 32 else "complex64")
    value = lambertw_p.bind(where(z == 0.0, 1.0, z), k=k)
    at_zero = z if k == 0 else -math.inf
    value = where(z == 0.0, at_zero, value)
    lost = (real(z) != real(z)) | (imag(z) != imag(z))
    infinite = ~lost & (absolute(z) == math.inf)
    grown = make_complex(absolute(z), imag(log(z)) + 2.0 * math.pi * k)
    return where(lost, z, where(infinite, grown, value))
