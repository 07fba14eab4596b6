"""Incomplete elliptic integrals and Jacobi's functions.

Symmetric integrals are computed by duplication (Carlson, "Numerical computation of real or complex
elliptic integrals", Numer. Algorithms 10, 1995, 13; DLMF 19.36(i)): each step brings the arguments
together by a factor of four, and the rest is a series in their differences. The steps are
differentiated, which converge as the values do. Jacobi's functions are by Landen's transformation
(DLMF 22.20(ii)).
"""

from __future__ import annotations

import math

from ...base.docstrings import described_like
from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.barriers import stop_gradient
from ...numpy.arithmetic import absolute, maximum, minimum
from ...numpy.elementary import rint, sqrt
from ...numpy.selection import where
from ...numpy.trigonometry import arcsin, arctan, cos, cosh, sin, tanh
from .elliptic import ellipe, ellipk
from .family import inside, normal, operands

_STEPS = 14     # of duplication: arguments that differ by 1e-30 of each other come together
_LANDEN = 9     # means of 1 and 1e-8 have then met


def _roots(x: Array, y: Array, z: Array) -> tuple[Array, Array]:
    """√x √y + √y √z + √z √x, and √z; with no derivative by an argument that is 0."""
    a, b, c = (where(v > 0.0, sqrt(where(v > 0.0, v, 1.0)), 0.0) for v in (x, y, z))
    return a * b + b * c + c * a, c


def _rf(x: Array, y: Array, z: Array) -> Array:
    for _ in range(_STEPS):
        step, _ = _roots(x, y, z)
        x, y, z = 0.25 * (x + step), 0.25 * (y + step), 0.25 * (z + step)
    mean = (x + y + z) / 3.0
    x, y = 1.0 - x / mean, 1.0 - y / mean
    z = -(x + y)
    e2, e3 = x * y - z * z, x * y * z
    series = 1.0 - e2 / 10.0 + e3 / 14.0 + e2 * e2 / 24.0 - 3.0 * e2 * e3 / 44.0
    return series / sqrt(mean)


def _rd(x: Array, y: Array, z: Array) -> Array:
    total, power = 0.0, 1.0
    for _ in range(_STEPS):
        step, root = _roots(x, y, z)
        total = total + power / (root * (z + step))
        x, y, z = 0.25 * (x + step), 0.25 * (y + step), 0.25 * (z + step)
        power = 0.25 * power
    mean = (x + y + 3.0 * z) / 5.0
    x, y = 1.0 - x / mean, 1.0 - y / mean
    z = -(x + y) / 3.0
    xy, zz = x * y, z * z
    e2, e3 = xy - 6.0 * zz, (3.0 * xy - 8.0 * zz) * z
    e4, e5 = 3.0 * (xy - zz) * zz, xy * zz * z
    series = (1.0 - 3.0 * e2 / 14.0 + e3 / 6.0 + 9.0 * e2 * e2 / 88.0 - 3.0 * e4 / 22.0
              - 9.0 * e2 * e3 / 52.0 + 3.0 * e5 / 26.0)
    return power * series / (mean * sqrt(mean)) + 3.0 * total


def _incomplete(name: str, phi: ArrayLike, m: ArrayLike) -> tuple[Array, ...]:
    """m, whole half turns in φ, where there is an integral, the value elsewhere, and of the rest of
    φ sin, cos², 1 - m sin².
    """
    phi, m = operands(name, phi, m)
    turns = stop_gradient(rint(phi / math.pi))
    rest = phi - turns * math.pi
    s, c = sin(rest), cos(rest)
    endless = absolute(phi) == math.inf
    edge = where(endless & (m <= 1.0), phi, math.nan)       # periods without an end
    legal = (m * s * s <= 1.0) & ((turns == 0.0) | (m <= 1.0)) & ~endless
    m = inside(legal, m, 0.0)
    return m, inside(legal, turns, 0.0), legal, edge, s, c * c, (1.0 - m) * s * s + c * c


# Public functions --------------------------------------------------------------------------------

@fused(inline=True)
def elliprf(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's symmetric integral R_F: half the integral of 1 / sqrt((t+x) (t+y) (t+z)) from 0 on.

    Args: x, y, z: real numbers >= 0, shapes that broadcast; integers become floats.

    Returns:
      An array of the broadcast shape: inf where two of them are 0, NaN where one is negative.

    >>> print(f"{special.elliprf(1.0, 2.0, 3.0):.5f}")
    0.72695
    """
    x, y, z = operands("elliprf", x, y, z)
    least, most = minimum(minimum(x, y), z), maximum(maximum(x, y), z)
    second = maximum(minimum(x, y), minimum(maximum(x, y), z))
    legal = (least >= 0.0) & normal(second) & (most < math.inf)
    value = _rf(*(inside(legal, v, 1.0) for v in (x, y, z)))
    edge = where(most == math.inf, 0.0, math.inf)
    return where(legal, value, where(least >= 0.0, edge, math.nan))


@fused(inline=True)
def elliprc(x: ArrayLike, y: ArrayLike) -> Array:
    """Carlson's R_C(x, y) = R_F(x, y, y); of y < 0 Cauchy's principal value (DLMF 19.2.20).

    Args:
      x: real numbers >= 0; integers become floats.
      y: real numbers other than 0, of a shape that broadcasts.
    Returns: An array of the broadcast shape; NaN for y = 0, where the sides differ, and for x < 0.

    >>> print(f"{special.elliprc(0.0, 0.25):.5f}")
    3.14159
    """
    x, y = operands("elliprc", x, y)
    legal = (x >= 0.0) & normal(y) & (x < math.inf) & (absolute(y) < math.inf)
    a, b = inside(legal, x, 1.0), inside(legal, y, 1.0)
    below = b < 0.0
    value = _rf(where(below, a - b, a), absolute(b), absolute(b))
    # The quotient of a and a - b may be subnormal.
    root = sqrt(where(below, a, 1.0)) / sqrt(where(below, a - b, 1.0))
    value = where(below, root, 1.0) * value
    return where(legal, value, where((x >= 0.0) & normal(y), 0.0, math.nan))


@fused(inline=True)
def elliprd(x: ArrayLike, y: ArrayLike, z: ArrayLike) -> Array:
    """Carlson's R_D: 3/2 times the integral of (t+x)**-1/2 (t+y)**-1/2 (t+z)**-3/2 from 0 on.

    Args:
      x, y: real numbers >= 0, at most one of them 0; integers become floats.
      z: real numbers > 0; all shapes broadcast.
    Returns: An array of the broadcast shape: inf where x + y or z is 0, NaN where one is negative.

    >>> print(f"{special.elliprd(1.0, 2.0, 3.0):.5f}")
    0.29046
    """
    x, y, z = operands("elliprd", x, y, z)
    least, most = minimum(minimum(x, y), z), maximum(maximum(x, y), z)
    legal = (least >= 0.0) & normal(maximum(x, y)) & normal(z) & (most < math.inf)
    value = _rd(*(inside(legal, v, 1.0) for v in (x, y, z)))
    edge = where(most == math.inf, 0.0, math.inf)
    return where(legal, value, where(least >= 0.0, edge, math.nan))


@fused(inline=True)
def ellipkinc(phi: ArrayLike, m: ArrayLike) -> Array:
    """The incomplete elliptic integral of the first kind, ∫ dt / sqrt(1 - m sin(t)**2).

    Args:
      phi: upper ends of the integral from 0, in radians, real; integers become floats.
      m: parameters, m = k², of a shape that broadcasts.
    Returns: An array of the broadcast shape; NaN where the integrand is not real up to phi (SciPy's
      is for every m > 1).

    >>> print(f"{special.ellipkinc(1.0, 0.5):.5f}")
    1.08322
    """
    m, turns, legal, edge, s, c2, delta2 = _incomplete("ellipkinc", phi, m)
    value = s * _rf(c2, inside((delta2 > 0.0) | (c2 > 0.0), delta2, 1.0), 1.0 + 0.0 * s)
    whole = where(turns == 0.0, 0.0, 2.0 * turns * ellipk(where(turns == 0.0, 0.0, m)))
    return where(legal, value + whole, edge)


@fused(inline=True)
@described_like(ellipkinc)
def ellipeinc(phi: ArrayLike, m: ArrayLike) -> Array:
    """The incomplete elliptic integral of the second kind, ∫ sqrt(1 - m sin(t)**2) dt.

    >>> print(f"{special.ellipeinc(1.0, 0.5):.5f}")
    0.92733
    """
    m, turns, legal, edge, s, c2, delta2 = _incomplete("ellipeinc", phi, m)
    one = 1.0 + 0.0 * s
    value = s * (_rf(c2, delta2, one) - m * s * s / 3.0 * _rd(c2, delta2, one))
    whole = where(turns == 0.0, 0.0, 2.0 * turns * ellipe(where(turns == 0.0, 0.0, m)))
    return where(legal, value + whole, edge)


@fused(inline=True)
def ellipj(u: ArrayLike, m: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Jacobi's elliptic functions of the argument u and the parameter m = k².

    Args:
      u: real numbers; integers become floats.
      m: parameters from 0 to 1, of a shape that broadcasts.
    Returns: (sn, cn, dn, ph), arrays of the broadcast shape: ph is the amplitude: u is `ellipkinc`
      of it. NaN for other parameters.

    >>> print(*(f"{y:.5f}" for y in special.ellipj(1.0, 0.5)))
    0.80300 0.59598 0.82316 0.93232
    """
    u, m = operands("ellipj", u, m)
    one = m == 1.0
    p = inside((m >= 0.0) & (m < 1.0), m, 0.5)
    a, b, ratios = 1.0 + 0.0 * p, sqrt(1.0 - p), []
    for _ in range(_LANDEN):
        a, b, c = 0.5 * (a + b), sqrt(a * b), 0.5 * (a - b)
        ratios.append(c / a)
    phase = 2.0 ** _LANDEN * a * u
    for ratio in reversed(ratios):
        phase = 0.5 * (phase + arcsin(ratio * sin(phase)))
    phase = where(one, 2.0 * arctan(tanh(0.5 * u)), phase)
    sn, cn = where(one, tanh(u), sin(phase)), where(one, 1.0 / cosh(u), cos(phase))
    dn = where(one, cn, sqrt(1.0 - p + p * cn * cn))
    legal = (m >= 0.0) & (m <= 1.0)
    sn, cn, dn, phase = (where(legal, v, math.nan) for v in (sn, cn, dn, phase))
    return sn, cn, dn, phase
