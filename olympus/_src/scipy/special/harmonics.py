"""Spherical harmonics and associated Legendre functions, by the recurrence of the normalised ones.

From the diagonal P̄ₘᵐ upwards in degree (Holmes and Featherstone 2002, J. Geodesy 76, 279), which
is stable and does not overflow.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...base.typing import Array, ArrayLike, DTypeLike
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.arithmetic import complex as make_complex
from ...lax.special.series import iterate
from ...numpy.arithmetic import absolute, maximum, minimum
from ...numpy.creation import asarray
from ...numpy.elementary import floor, sqrt
from ...numpy.promote import array_args, convert
from ...numpy.selection import where
from ...numpy.trigonometry import arccos, cos, sin
from ...types import dtypes
from ...types.shape import static_int
from .family import Special, apply, flat, inside, operands


def _legendre(tol: float, n: Array, m: Array, theta: Array) -> Array:
    """P̄ₙᵐ(cos θ) with the Condon-Shortley phase; 0 for |m| > n."""
    order = absolute(m)
    legal = (n >= order) & (n == floor(n)) & (order == floor(order)) & (n < 1e5)
    degree, k = inside(legal, n, 0.0), inside(legal, order, 0.0)
    x, y = cos(theta), sin(theta)
    start = x * 0.0 + 0.5 / math.sqrt(math.pi)

    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array]]:
        (low, high), (degree, order, x, y) = state, constants
        d = i + 1.0
        diagonal = -sqrt((2.0 * d + 1.0) / (2.0 * d)) * y * high
        above = d > order
        square = where(above, d * d - order * order, 1.0)
        before = where(above, (d - 1.0) * (d - 1.0) - order * order, 0.0)
        a = sqrt((4.0 * d * d - 1.0) / square)
        b = sqrt(before / maximum(4.0 * (d - 1.0) * (d - 1.0) - 1.0, 1.0))
        upwards = a * (x * high - b * low)
        return d < degree, (where(above, high, 0.0), where(above, upwards, diagonal))

    value = iterate(step, legal & (degree > 0.0), (start * 0.0, start), (degree, k, x, y),
                    100_000)[1]
    odd = order - 2.0 * floor(0.5 * order) != 0.0
    value = where(odd & (m < 0.0), -value, value)
    return where(legal, value, where((n >= 0.0) & (n < order), 0.0, math.nan))


def _legendre_slope(t: Array, y: Array, n: Array, m: Array, theta: Array) -> Array:
    """The tangent from the neighbouring orders, which divides nothing by sin θ."""
    above = (n - m) * (n + m + 1.0)
    below = (n + m) * (n - m + 1.0)
    return t * 0.5 * (sqrt(maximum(above, 0.0)) * legendre_p.bind(n, m + 1.0, theta)
                      - sqrt(maximum(below, 0.0)) * legendre_p.bind(n, m - 1.0, theta))


legendre_p = Special("sph_legendre", _legendre, flat, flat, _legendre_slope)


@fused(static=("diff_n", "n_max"))
def sph_harm_y(n: ArrayLike, m: ArrayLike, theta: ArrayLike, phi: ArrayLike,
               diff_n: int | None = None, n_max: int | None = None) -> Array:
    """The spherical harmonic of degree n and order m.

    Args:
      n: degrees, whole numbers >= 0.
      m: orders, whole numbers; the value is 0 for |m| > n.
      theta: polar angles, real.
      phi: azimuths, real; all shapes broadcast.
      diff_n: only None: derivatives come from `olympus.jacfwd`.
      n_max: what larger degrees are reduced to; None: nothing.
    Returns: A complex array of the broadcast shape, orthonormal on the sphere, with the
      Condon-Shortley phase.

    >>> print(f"{special.sph_harm_y(2, 1, 0.5, 0.3):.4f}")
    -0.3105-0.0961j
    """
    if diff_n is not None:
        raise ValueError(f"sph_harm_y: diff_n {diff_n} given; None is required; take derivatives "
                         "with olympus.jacfwd.")
    n, m, theta, phi = array_args("sph_harm_y", n, m, theta, phi)
    if n_max is not None:
        n = minimum(n, static_int(n_max, "sph_harm_y", "n_max"))
    theta, phi = operands("sph_harm_y", theta, phi)
    n, m = (convert(x, theta.dtype) if dtypes.is_integer(x.dtype) else x for x in (n, m))
    n, m, theta, phi = operands("sph_harm_y", n, m, theta, phi)
    size, angle = legendre_p.bind(n, m, theta), m * phi
    wide = dtypes.itemsize_bits(typeof(size).dtype) < 32
    size, angle = (asarray(v, dtype="float32") if wide else v for v in (size, angle))
    return make_complex(size * cos(angle), size * sin(angle))


def _grid(name: str, m: int, n: int, z: ArrayLike) -> tuple[int, Array, Array]:
    """The largest degree, the points, and the normalised values [order, degree, point]."""
    m, n = static_int(m, name, "m"), static_int(n, name, "n")
    if m != n or m < 0:
        raise ValueError(f"{name}: m {m} and n {n} given; equal ints >= 0 are required; call it "
                         "with the larger of both.")
    z, = operands(name, z, inexact=False)
    aval = typeof(z)
    if not dtypes.is_floating(aval.dtype) or dtypes.itemsize_bits(aval.dtype) < 32:
        raise TypeError(f"{name}: z {aval} given; float32 or float64 is required; convert it.")
    if aval.ndim != 1:
        raise ValueError(f"{name}: z {aval} given; a vector of points is required; flatten it.")
    every = np.arange(n + 1.0)
    degrees = asarray(every[:, None], dtype=aval.dtype)
    orders = asarray(every[:, None, None], dtype=aval.dtype)
    return n, z, apply(legendre_p, degrees, orders, arccos(z))


def _norms(n: int, dtype: DTypeLike) -> Array:
    """The factors [order, degree, 1] of the normalised functions over the plain ones."""
    table = np.zeros((n + 1, n + 1, 1))
    for m in range(n + 1):
        for degree in range(m, n + 1):
            ratio = math.lgamma(degree - m + 1) - math.lgamma(degree + m + 1)
            table[m, degree] = math.sqrt((2 * degree + 1) / (4 * math.pi)) * math.exp(0.5 * ratio)
    return asarray(np.where(table > 0.0, table, 1.0), dtype=dtype)


@fused(static=("m", "n", "is_normalized"))
def lpmn_values(m: int, n: int, z: ArrayLike, is_normalized: bool) -> Array:
    """The associated Legendre functions of all orders and degrees up to n.

    Args:
      m, n: the largest order and degree, equal ints.
      z: [k] points in [-1, 1], float32 or float64.
      is_normalized: whether they belong to orthonormal spherical harmonics.
    Returns: An array [m+1, n+1, k] of the dtype of z, 0 where the order is above the degree.

    >>> print(f"{special.lpmn_values(1, 1, onp.array([0.5]), False)[1, 1, 0]:.4f}")
    -0.8660
    """
    n, z, values = _grid("lpmn_values", m, n, z)
    return values if is_normalized else values / _norms(n, typeof(z).dtype)


@fused(static=("m", "n"))
def lpmn(m: int, n: int, z: ArrayLike) -> tuple[Array, Array]:
    """The associated Legendre functions of all orders and degrees up to n, and their derivatives.

    Args:
      m, n: the largest order and degree, equal ints.
      z: [k] points in (-1, 1), float32 or float64.
    Returns: (values, derivatives in z), two arrays [m+1, n+1, k] of the dtype of z, which are 0
      where the order is above the degree.

    >>> print(f"{special.lpmn(1, 1, onp.array([0.5]))[1][0, 1, 0]:.4f}")
    1.0000
    """
    values = lpmn_values(m, n, z, False)
    dtype = typeof(values).dtype
    every = np.arange(n + 1.0)
    degree, order = (asarray(v, dtype=dtype) for v in (every[:, None], every[:, None, None]))
    # (1 - z²) P' = (l + m) Pₗ₋₁ - l z Pₗ
    before = where(degree == 0.0, 0.0, values[:, np.maximum(np.arange(n + 1) - 1, 0)])
    slopes = ((degree + order) * before - degree * z * values) / ((1.0 - z) * (1.0 + z))
    return values, slopes
