"""Complete elliptic integrals, by the arithmetic-geometric mean (DLMF 19.8)."""

from __future__ import annotations

import math

from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.creation import full_like
from ...numpy.arithmetic import absolute
from ...numpy.elementary import log, sqrt
from ...numpy.selection import where
from .family import Special, apply, inside, normal, outside
from .gauss import hyp2f1_p

_STEPS = 9      # for ratios above 1e-8: the relative gap is squared by each of the last


def _mean(b: Array) -> tuple[Array, Array]:
    """The mean of 1 and b, and Σ 2ⁿ⁻² (aₙ - bₙ)²."""
    a, total, weight = b * 0.0 + 1.0, b * 0.0, 0.25
    for _ in range(_STEPS):
        gap = a - b
        total = total + weight * gap * gap
        a, b = 0.5 * (a + b), sqrt(a * b)
        weight *= 2.0
    return a, total


def _ellipkm1(tol: float, p: Array) -> Array:
    """K of m = 1 - p; of p > 1 by 1/p: K(1-p) = K(1-1/p) / √p (DLMF 19.7.2)."""
    legal = normal(p) & (p > 0.0) & (p < math.inf)
    above = p > 1.0
    w = inside(legal, where(above, 1.0 / where(above, p, 1.0), p), 0.5)
    tiny = w < 1e-8         # K = ln(16/w) / 2 and a term more (DLMF 19.12.1)
    half = 0.5 * (math.log(16.0) - log(w))
    near = half + 0.25 * w * (half - 1.0)
    far = 0.5 * math.pi / _mean(sqrt(outside(tiny, w, 0.5)))[0]
    value = where(tiny, near, far) * where(above, sqrt(w), 1.0)
    edge = where(p == math.inf, 0.0, math.nan)
    return where(legal, value, where((p >= 0.0) & ~normal(p), math.inf, edge))


def _ellipe(tol: float, m: Array) -> Array:
    """E = K (1 - m/2 - Σ 2ⁿ⁻² (aₙ - bₙ)²) (DLMF 19.8.6); of m < 0 √(1-m) E(m / (m-1))."""
    legal = (m < 1.0) & (m > -math.inf)
    v = inside(legal, m, 0.0)
    q = where(v < 0.0, 1.0 / (1.0 - v), 1.0 - v)        # 1 - m, after that
    tiny = q < 1e-14
    mean, total = _mean(sqrt(outside(tiny, q, 0.5)))
    value = 0.5 * math.pi / mean * (0.5 * (1.0 + outside(tiny, q, 0.5)) - total)
    # Next to 1: 1 + q (ln(16/q) - 1) / 4 (DLMF 19.12.2).
    value = where(tiny, 1.0 + 0.25 * q * (math.log(16.0) - log(q) - 1.0), value)
    value = value * where(v < 0.0, sqrt(1.0 - v), 1.0)
    edge = where(m == 1.0, 1.0, where(m == -math.inf, math.inf, math.nan))
    return where(legal, value, edge)


def _series(m: Array, a: float, b: float, c: float) -> Array:
    return hyp2f1_p.bind(*(full_like(m, v) for v in (a, b, c)), m)


def _k_slope(m: Array, k: Array) -> Array:
    """(E / (1-m) - K) / (2m), near 0 π/8 F(3/2, 3/2; 2; m)."""
    near = absolute(m) < 0.5
    safe = where(near, 0.5, m)
    far = (ellipe_p.bind(safe) / (1.0 - safe) - k) / (2.0 * safe)
    return where(near, math.pi / 8.0 * _series(inside(near, m, 0.0), 1.5, 1.5, 2.0), far)


def _e_slope(m: Array, e: Array) -> Array:
    """(E - K) / (2m), near 0 -π/8 F(1/2, 3/2; 2; m)."""
    near = absolute(m) < 0.5
    safe = where(near, 0.5, m)
    far = (e - ellipkm1_p.bind(1.0 - safe)) / (2.0 * safe)
    return where(near, -math.pi / 8.0 * _series(inside(near, m, 0.0), 0.5, 1.5, 2.0), far)


ellipe_p = Special("ellipe", _ellipe, lambda t, e, m: t * _e_slope(m, e))
ellipk_p = Special("ellipk", lambda tol, m: _ellipkm1(tol, 1.0 - m),
                   lambda t, k, m: t * _k_slope(m, k))
ellipkm1_p = Special("ellipkm1", _ellipkm1, lambda t, k, p: -t * _k_slope(1.0 - p, k))


@fused(inline=True)
def ellipk(m: ArrayLike) -> Array:
    """The complete elliptic integral of the first kind, K(m), of the parameter m = k².

    Args: m: real numbers <= 1; integers become floats.
    Returns: An array of the shape of m: inf at 1, NaN above. Near 1 `ellipkm1` keeps more digits.

    >>> print(f"{special.ellipk(0.5):.4f}")
    1.8541
    """
    return apply(ellipk_p, m)


@fused(inline=True)
def ellipkm1(p: ArrayLike) -> Array:
    """K(1 - p), the complete elliptic integral of the first kind around m = 1.

    Args: p: real numbers >= 0; integers become floats.
    Returns: An array of the shape of p: inf at 0, NaN below.

    >>> print(f"{special.ellipkm1(1e-20):.4f}")
    24.4121
    """
    return apply(ellipkm1_p, p)


@fused(inline=True)
def ellipe(m: ArrayLike) -> Array:
    """The complete elliptic integral of the second kind, E(m), of the parameter m = k².

    Args: m: real numbers <= 1; integers become floats.
    Returns: An array of the shape of m: 1 at 1, NaN above.

    >>> print(f"{special.ellipe(0.5):.4f}")
    1.3506
    """
    return apply(ellipe_p, m)
