"""Exponential, sine and cosine integrals, the dilogarithm, Fresnel integrals and Owen's T."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike
from ...jit.fused import fused
from ...lax.arithmetic import complex as make_complex
from ...lax.special.classical import erf_p
from ...lax.special.series import enough, iterate
from ...numpy.arithmetic import absolute, imag, maximum, minimum, real
from ...numpy.elementary import copysign, exp, floor, log, rint
from ...numpy.selection import where
from ...numpy.trigonometry import cos, sin
from .family import (
    Special, apply, by_format, chebyshev, horner, inside, log1p, normal, nowhere, operands, outside,
)
from .normal import faddeeva, gauss_p, ndtr_of

_EULER = 0.5772156649015329

# Chebyshev series, computed with mpmath in 60 digits: of x eˣ E₁(x) in 2/x - 1 for x >= 1, and of
# x f(x), x² g(x), the auxiliary functions of Si and Ci, in 32/x² - 1 for x >= 4.
_E1 = (
    0.7578721561413121, -0.1918875669402129, 0.037503304706453154, -0.009073540733687109,
    0.0025109816813965137, -0.0007643039043788794, 0.0002501026789593003, -8.669419097931401e-05,
    3.150983798262769e-05, -1.1919588615357988e-05, 4.666575097353859e-06, -1.8826083586040076e-06,
    7.798901624642762e-07, -3.308169566943937e-07, 1.433523207555501e-07, -6.333299181697296e-08,
    2.8479866059305073e-08, -1.3016841314670075e-08, 6.039392259013065e-09, -2.841379448794564e-09,
    1.354249037874098e-09, -6.53331208953033e-10, 3.1879103015956296e-10, -1.5722547392196145e-10,
    7.832842550623005e-11, -3.939638051509224e-11, 1.999476984815269e-11, -1.0235322898596869e-11,
    5.282390232929146e-12, -2.7474944650783747e-12, 1.4396847091877607e-12, -7.597675416231471e-13,
    4.0368807233390073e-13, -2.1589442150428546e-13, 1.161861105339262e-13, -6.290409624599639e-14,
    3.4254460817578356e-14, -1.8757576273288448e-14, 1.0326931822651124e-14,
    -5.7150466109976734e-15, 3.1786726133645304e-15, -1.776550126964968e-15, 9.975781158830934e-16,
    -5.627169742448609e-16, 3.188203943768876e-16, -1.8140851181878138e-16, 1.0365020830181908e-16,
    -5.946095209722796e-17, 3.4244707270783355e-17, -1.9797397804772925e-17, 1.148764909383629e-17,
    -6.6899061709832295e-18, 3.90961556861842e-18, -2.2926323006092682e-18)
_F = (
    0.9547633884032938, -0.0410699867196166, 0.003510547451979443, -0.0005172175488768527,
    0.00010328193778536401, -2.5139407613382352e-05, 7.046299766746879e-06,
    -2.1974483848031207e-06, 7.455004638205959e-07, -2.708631114149491e-07, 1.0420323162393677e-07,
    -4.208421591372028e-08, 1.7724757498225048e-08, -7.74422777800052e-09, 3.4951406359013262e-09,
    -1.6237582824385952e-09, 7.742528363926332e-10, -3.7799091899163987e-10, 1.88541422775123e-10,
    -9.59125670597109e-11, 4.9682959803373714e-11, -2.6170247508461882e-11, 1.400080254948077e-11,
    -7.599391900206698e-12, 4.180924280099731e-12, -2.3295031985936935e-12, 1.3134666656043205e-12,
    -7.489259710374079e-13, 4.315689215268907e-13, -2.5119135630243786e-13, 1.4759641639782231e-13,
    -8.750963270367256e-14, 5.2330394701783303e-14, -3.1549641691234885e-14,
    1.9169672439089176e-14, -1.1734494182345753e-14, 7.234422466801717e-15,
    -4.4905890311452805e-15, 2.80570286491166e-15, -1.7640298805457906e-15, 1.1158102887422731e-15,
    -7.098978514742196e-16, 4.541814874226015e-16, -2.921484730907416e-16, 1.8890180722312e-16,
    -1.22757852656589e-16, 8.016224055355533e-17, -5.2593070718893205e-17, 3.4662489829162607e-17,
    -2.294570424055919e-17, 1.5254377505604557e-17, -1.0183171718475888e-17, 6.825176723095741e-18,
    -4.5923643965297465e-18, 3.1017167951164402e-18, -2.1026418381885848e-18)
_G = (
    0.8841994524524334, -0.10005788518210433, 0.012620432620807134, -0.0023462168947058176,
    0.000551332382934603, -0.00015195038861323185, 4.7073797699758375e-05, -1.5961270265510487e-05,
    5.8179485492273865e-06, -2.2508864416686086e-06, 9.156512743606252e-07, -3.888480555539212e-07,
    1.714194880024692e-07, -7.809375500314394e-08, 3.6631597833534293e-08, -1.76384904168849e-08,
    8.696178410539918e-09, -4.380464863692864e-09, 2.2502675038852276e-09, -1.17700015758502e-09,
    6.259545254121298e-10, -3.380666786792554e-10, 1.8521945455693237e-10, -1.0284402466040088e-10,
    5.782395348462655e-11, -3.2895679509169266e-11, 1.8922183673288763e-11,
    -1.0998473138757614e-11, 6.456164584320829e-12, -3.8253566334729825e-12,
    2.2867448208993345e-12, -1.378548984443801e-12, 8.377430096752221e-13, -5.13005936010425e-13,
    3.164520038833378e-13, -1.965752958319582e-13, 1.229297959716684e-13, -7.737004483125144e-14,
    4.899641763627011e-14, -3.1212402159901825e-14, 1.9996945592576056e-14, -1.288196182613628e-14,
    8.342496390148016e-15, -5.43030982806008e-15, 3.552150102422998e-15, -2.3346618539982614e-15,
    1.5415388473778021e-15, -1.0223939472457753e-15, 6.810112372786318e-16, -4.555169648158996e-16,
    3.0592438194460904e-16, -2.0626740255538654e-16, 1.3960608196876852e-16,
    -9.483921232066082e-17, 6.466008103056292e-17, -4.42390892745732e-17, 3.037082585633042e-17,
    -2.091935075334539e-17, 1.4455841426474066e-17, -1.0020886174478473e-17)


# Exponential integrals ---------------------------------------------------------------------------

def _exp1(tol: float, x: Array) -> Array:
    """E₁: its power series (DLMF 6.6.2) up to 1, x eˣ E₁(x) by a Chebyshev series in 1/x beyond."""
    legal = x > 0.0
    near = legal & (x <= 1.0)
    small, large = inside(near, x, 0.5), inside(legal & ~near, x, 2.0)
    terms = [-(-1.0) ** k / (k * math.factorial(k)) for k in range(1, 19)]
    series = small * horner(small, terms) - log(small) - _EULER
    inverse = 1.0 / large
    far = exp(-large) * inverse * chebyshev(2.0 * inverse - 1.0, _E1)
    return where(legal, where(near, series, far), where(x == 0.0, math.inf, math.nan))


_ROOT, _ROOT_REST = 0.3725074107813666, 1.3140183414386028e-17      # of Ei, in two parts


def _expi(tol: float, x: Array) -> Array:
    """Ei: -E₁(-x) below 0, the power series (DLMF 6.6.1) up to 40, the asymptotic one beyond."""
    negative = x < 0.0
    below = -_exp1(tol, outside(~negative, -x, 1.0))
    middle = (x > 0.0) & (x < 40.0)

    def step(i: Array, state: Sequence[Array], constants: Sequence[Array]
             ) -> tuple[Array, tuple[Array, Array]]:
        (term, total), (u,) = state, constants
        k = i + 2.0
        term = term * (u / k)
        part = term / k
        return part > tol * 0.25 * total, (term, total + part)

    u = inside(middle, x, 1.0)
    _, total = iterate(step, middle, (u, u), (u,), 200)
    value = (log(u) + _EULER) + total
    # Near the zero: the logarithm's and the sum's differences from there.
    close = absolute(u - _ROOT) < 0.1
    d = inside(close, u - _ROOT, 0.0)
    around = log1p(d / _ROOT) + d * _slope_of_sum(d) - _ROOT_REST * 3.896215733907167
    value = where(close, around, value)
    far = inside(x >= 40.0, x, 50.0)
    inverse = 1.0 / far
    factorials = enough(x, [float(math.factorial(k)) for k in range(36)], 1 / 40)
    high = inverse * horner(inverse, factorials)
    half = exp(0.5 * far)
    high = where(far < 1000.0, half * high * half, math.inf)
    value = where(negative, below, where(middle, value, high))
    return where(x == 0.0, -math.inf, where(x == x, value, x))


def _slope_of_sum(d: Array) -> Array:
    """(S(r+d) - S(r)) / d of S(x) = Σ xᵏ / (k k!) at the zero r: Taylor's series of S."""
    r = _ROOT
    rates = [math.fsum(math.comb(k, n) * r ** (k - n) / (k * math.factorial(k))
                       for k in range(n, n + 24)) for n in range(1, 16)]
    return horner(d, rates)


def _expn(tol: float, n: Array, x: Array) -> Array:
    """Eₙ of whole n: Lentz's continued fraction (DLMF 8.19.17), up to 1 the series (8.19.8)."""
    legal = normal(x) & (x > 0.0) & (n >= 1.0) & (x < math.inf) & (n < 1e9)
    near = legal & (x <= 1.0)
    far = legal & ~near
    v, m = inside(far, x, 2.0), inside(far, n, 1.0)

    def fraction(i: Array, state: Sequence[Array], constants: Sequence[Array]
                 ) -> tuple[Array, tuple[Array, Array, Array, Array]]:
        (b, c, d, h), (order, _) = state, constants
        k = i + 1.0
        a = -k * (order - 1.0 + k)
        b = b + 2.0
        d = 1.0 / (a * d + b)
        c = b + a / c
        ratio = c * d
        return absolute(ratio - 1.0) > 4.0 * tol, (b, c, d, h * ratio)

    first = 1.0 / (v + m)
    huge = v * 0.0 + by_format(v, 1e300, 1e30)
    high = exp(-v) * iterate(fraction, far, (v + m, huge, first, first), (m, v), 400)[3]
    u, k = inside(near, x, 0.5), inside(near, n, 1.0)

    def series(i: Array, state: Sequence[Array], constants: Sequence[Array]
               ) -> tuple[Array, tuple[Array, Array]]:
        (term, total), (order, z) = state, constants
        j = i + 1.0
        term = term * (-z / j)
        skip = j == order - 1.0
        part = where(skip, 0.0, -term / where(skip, 1.0, j - order + 1.0))
        return (absolute(part) > tol * absolute(total)) | (j < order) & (j < 30.0), (
            term, total + part)

    # The term of n - 1 has the logarithm: (-x)ⁿ⁻¹ / (n-1)! (ψ(n) - ln x).
    start = where(k == 1.0, 0.0, 1.0 / where(k == 1.0, 1.0, k - 1.0))
    _, low = iterate(series, near, (u * 0.0 + 1.0, start), (k, u), 60)
    power, psi = u * 0.0 + 1.0, u * 0.0 - _EULER
    for j in range(1, 25):
        power = where(j < k, power * (-u / j), power)
        psi = where(j < k, psi + 1.0 / j, psi)
    power = where(k > 25.0, 0.0, power)
    low = low + power * (psi - log(u))
    value = where(near, low, high)
    some = (x > 0.0) & normal(x)
    safe = where(some, x, 1.0)
    zeroth = where(some, exp(-safe) / safe, math.inf)
    at_zero = where(n > 1.0, 1.0 / where(n > 1.0, n - 1.0, 1.0), math.inf)
    value = where(legal, value, where((x >= 0.0) & ~normal(x), at_zero, where(
        x == math.inf, 0.0, math.nan)))
    value = where((n == 0.0) & (x >= 0.0), zeroth, value)
    return where((n < 0.0) | (x < 0.0) | (n != floor(n)), math.nan, value)


def _expn_slope(t: Array, y: Array, n: Array, x: Array) -> Array:
    """-Eₙ₋₁, and for n = 0 the derivative of e⁻ˣ / x."""
    zeroth = -exp(-x) * (x + 1.0) / (x * x)
    return t * where(n == 0.0, zeroth, -expn_p.bind(maximum(n - 1.0, 0.0), x))


exp1_p = Special("exp1", _exp1, lambda t, y, x: -t * exp(-x) / x)
expi_p = Special("expi", _expi, lambda t, y, x: t * exp(x) / x)
expn_p = Special("expn", _expn, nowhere, _expn_slope)


@fused(inline=True)
def exp1(x: ArrayLike) -> Array:
    """The exponential integral E₁(x), the integral of exp(-t) / t from x to infinity.

    Returns: An array of the shape of x: inf at 0, NaN below.

    >>> print(f"{special.exp1(1.0):.5f}")
    0.21938
    """
    return apply(exp1_p, x)


@fused(inline=True)
def expi(x: ArrayLike) -> Array:
    """The exponential integral Ei(x), the principal value of the integral of exp(t) / t up to x.

    Returns: An array of the shape of x, -E₁(-x) for x < 0: -inf at 0.

    >>> print(f"{special.expi(1.0):.5f}")
    1.89512
    """
    return apply(expi_p, x)


@fused(inline=True)
def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """The exponential integral Eₙ(x), xⁿ⁻¹ times the integral of exp(-t) / tⁿ from x to infinity.

    Args:
      n: whole numbers >= 0.
      x: real numbers >= 0 of a shape that broadcasts; integers become floats.
    Returns: An array of the broadcast shape, NaN outside. The derivative in n is NaN.

    >>> print(f"{special.expn(2, 1.0):.5f}")
    0.14850
    """
    return apply(expn_p, n, x)


# Sine and cosine integrals -----------------------------------------------------------------------

def _sine_parts(x: Array) -> tuple[Array, Array, Array]:
    """(f, g, x) of x >= 4 (DLMF 6.2.17, 6.2.18), by Chebyshev series in 16/x²."""
    inverse = 4.0 / x
    u = 2.0 * inverse * inverse - 1.0
    return chebyshev(u, _F) / x, chebyshev(u, _G) / x / x, x


def _si(tol: float, x: Array) -> Array:
    size = absolute(x)
    near = size <= 4.0
    small = inside(near, size, 1.0)
    terms = [(-1.0) ** k / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(20)]
    f, g, large = _sine_parts(outside(near | (size == math.inf), size, 5.0))
    far = 0.5 * math.pi - f * cos(large) - g * sin(large)
    value = where(near, small * horner(small * small, terms), far)
    return copysign(where(size == math.inf, 0.5 * math.pi, value), x)


def _ci(tol: float, x: Array) -> Array:
    x = where(x == -math.inf, math.nan, absolute(x))
    legal = x > 0.0
    near = legal & (x <= 4.0)
    small = inside(near, x, 1.0)
    terms = [(-1.0) ** k / (2 * k * math.factorial(2 * k)) for k in range(1, 21)]
    square = small * small
    f, g, large = _sine_parts(inside(legal & ~near & (x < math.inf), x, 5.0))
    value = where(near, square * horner(square, terms) + (log(small) + _EULER),
                  f * sin(large) - g * cos(large))
    value = where(x == math.inf, 0.0, value)
    return where(legal, value, where(x == 0.0, -math.inf, math.nan))


def _sinc(tol: float, x: Array) -> Array:
    safe = where(x == 0.0, 1.0, x)
    return where(x == 0.0, 1.0, sin(safe) / safe)


def _cosc(tol: float, x: Array) -> Array:
    """(cos x - sin(x)/x) / x, the derivative of sin(x) / x."""
    near = absolute(x) < 0.5
    u = inside(near, x, 0.0)
    safe = outside(near, x, 1.0)
    terms = [(-1.0) ** k * 2 * k / math.factorial(2 * k + 1) for k in range(1, 10)]
    return where(near, u * horner(u * u, terms), (cos(safe) - sin(safe) / safe) / safe)


def _cosc_slope(x: Array, y: Array) -> Array:
    """The second derivative of sin(x)/x: -sin(x)/x - 2 y/x."""
    none = x == 0.0
    return where(none, -1.0 / 3.0, -sinc_p.bind(x) - 2.0 * y / where(none, 1.0, x))


cosc_p = Special("sinc_slope", _cosc, lambda t, y, x: t * _cosc_slope(x, y))
sinc_p = Special("sinc_plain", _sinc, lambda t, y, x: t * cosc_p.bind(x))
si_p = Special("si", _si, lambda t, y, x: t * sinc_p.bind(x))
ci_p = Special("ci", _ci, lambda t, y, x: t * cos(x) / x)


@fused
def sici(x: ArrayLike) -> tuple[Array, Array]:
    """The sine and cosine integrals (DLMF 6.2.9, 6.2.11).

    Returns:
      (Si(x), Ci(x)), arrays of the shape of x; Ci, even as SciPy has it, is -inf
      at 0.

    >>> si, ci = special.sici(1.0)
    >>> print(f"{si:.5f} {ci:.5f}")
    0.94608 0.33740
    """
    x, = operands("sici", x)
    return si_p.bind(x), ci_p.bind(x)


def _shi(tol: float, x: Array) -> Array:
    size = absolute(x)
    near = size < 2.0
    small, large = inside(near, size, 1.0), outside(near, size, 3.0)
    terms = [1.0 / ((2 * k + 1) * math.factorial(2 * k + 1)) for k in range(14)]
    far = 0.5 * (_expi(tol, large) + _exp1(tol, large))
    return copysign(where(near, small * horner(small * small, terms), far), x)


def _chi(tol: float, x: Array) -> Array:
    x = absolute(x)
    legal = x > 0.0
    near = legal & (x < 2.0)
    small, large = inside(near, x, 1.0), inside(legal & ~near, x, 3.0)
    terms = [1.0 / (2 * k * math.factorial(2 * k)) for k in range(1, 15)]
    square = small * small
    far = 0.5 * (_expi(tol, large) - _exp1(tol, large))
    value = where(near, square * horner(square, terms) + (log(small) + _EULER), far)
    return where(legal, value, where(x == 0.0, -math.inf, math.nan))


def _exp_difference(x: Array, sign: float) -> Array:
    """(eˣ + sign e⁻ˣ) / 2x."""
    none = x == 0.0
    safe = where(none, 1.0, x)
    return where(none, 1.0 if sign < 0 else math.inf, 0.5 * (exp(safe) + sign * exp(-safe)) / safe)


shi_p = Special("shi", _shi, lambda t, y, x: t * _exp_difference(x, -1.0))
chi_p = Special("chi", _chi, lambda t, y, x: t * _exp_difference(x, 1.0))


@fused
def shichi(x: ArrayLike) -> tuple[Array, Array]:
    """The hyperbolic sine and cosine integrals (DLMF 6.2.15, 6.2.16).

    Args: x: real numbers; integers become floats.

    Returns:
      (Shi(x), Chi(x)), arrays of the shape of x; Chi, even as SciPy has it,
      is -inf at 0.

    >>> shi, chi = special.shichi(1.0)
    >>> print(f"{shi:.5f} {chi:.5f}")
    1.05725 0.83787
    """
    x, = operands("shichi", x)
    return shi_p.bind(x), chi_p.bind(x)


# The dilogarithm ---------------------------------------------------------------------------------

# B₂ₖ / (2k+1)!: Li₂(z) = u - u²/4 + Σ B₂ₖ u²ᵏ⁺¹ / (2k+1)! with u = -ln(1-z).
_DEBYE = (
    1 / 36, -1 / 3600, 1 / 211680, -1 / 10886400, 1 / 526901760, -691 / 16999766784000,
    1 / 1120863744000, -3617 / 181400588328960000, 43867 / 97072790126247936000,
    -174611 / 16860010916664115200000, 77683 / 324325202310473932800000)


def _spence(tol: float, x: Array) -> Array:
    """Li₂(1-x): the series on [1/2, 2], reflections (DLMF 25.12.4, 25.12.6) elsewhere."""
    legal = (x >= 0.0) & (x < math.inf)
    v = inside(legal, x, 1.0)
    low, high = v < 0.5, v > 2.0
    small, large = inside(low, v, 0.0), inside(high, v - 1.0, 2.0)
    u = where(high, log1p(1.0 / large), where(low, -log1p(-small), -log1p(v - 1.0)))
    u = where(high, -u, u)
    series = u * (1.0 - 0.25 * u + u * u * horner(u * u, _DEBYE))
    sixth = math.pi ** 2 / 6.0
    below = sixth - log(where(small == 0.0, 1.0, small)) * log1p(-small) - series
    level = log(large)
    above = -0.5 * level * level - sixth - series
    value = where(low, below, where(high, above, series))
    return where(legal, value, where(x == math.inf, -math.inf, math.nan))


def _spence_slope(tol: float, x: Array) -> Array:
    """ln(x) / (1 - x), which is -1 at 1."""
    one = x == 1.0
    return where(one, -1.0, log1p(x - 1.0) / where(one, 1.0, 1.0 - x))


def _spence_second(x: Array, y: Array) -> Array:
    near = absolute(x - 1.0) < 0.05
    d = inside(near, x - 1.0, 0.0)
    series = horner(d, [(-1.0) ** k * (k + 1.0) / (k + 2.0) for k in range(14)])
    safe = where(near, 2.0, x)
    return where(near, series, (1.0 / safe + y) / (1.0 - safe))


spence_slope_p = Special("spence_slope", _spence_slope,
                         lambda t, y, x: t * _spence_second(x, y))
spence_p = Special("spence", _spence, lambda t, y, x: t * spence_slope_p.bind(x))


@fused(inline=True)
def spence(x: ArrayLike) -> Array:
    """Spence's function, the integral of ln(t) / (1 - t) from 1 to x: the dilogarithm of 1 - x.

    Args: x: real numbers >= 0; integers become floats. SciPy takes complex ones, too.
    Returns: An array of the shape of x, NaN for x < 0.

    >>> print(f"{special.spence(0.0):.5f}")     # π²/6
    1.64493
    """
    return apply(spence_p, x)


# Fresnel integrals -------------------------------------------------------------------------------

def _fresnel(x: Array, sine: bool) -> Array:
    """C + iS = (1+i)/2 (1 - exp(iπx²/2) w((1+i) √π x/2)) (DLMF 7.5.8), or power series near 0."""
    size = absolute(x)
    near = size < 1.5
    small = inside(near, size, 0.0)
    quarter = (0.5 * math.pi * small * small) ** 2.0
    if sine:
        terms = [(-1.0) ** k / ((4 * k + 3) * math.factorial(2 * k + 1)) for k in range(14)]
        series = 0.5 * math.pi * small ** 3.0 * horner(quarter, terms)
    else:
        terms = [(-1.0) ** k / ((4 * k + 1) * math.factorial(2 * k)) for k in range(14)]
        series = small * horner(quarter, terms)
    vast = size > 1e15
    large = outside(near | vast, size, 2.0)
    half = 0.5 * math.sqrt(math.pi) * large
    w = faddeeva(make_complex(half, half))
    turn = _half_turns_squared(large)
    c, s = cos(turn), sin(turn)
    p, q = 1.0 - (c * real(w) - s * imag(w)), -(s * real(w) + c * imag(w))
    far = 0.5 * (p + q) if sine else 0.5 * (p - q)
    value = where(near, series, where(vast, 0.5, far))
    return where(x == x, copysign(value, x), x)


def _half_turns_squared(x: Array) -> Array:
    """πx²/2 but for whole turns: x² modulo 4, of x = n + r, since n² is 0 or 1 and 2nr exact."""
    n = rint(x)
    r = x - n
    odd = n - 2.0 * floor(0.5 * n)
    cross = 2.0 * n * r
    return 0.5 * math.pi * (odd + (cross - 4.0 * floor(0.25 * cross)) + r * r)


def _fresnel_phase(x: Array, sine: bool) -> Array:
    """sin or cos of πx²/2."""
    turn = _half_turns_squared(x)
    return sin(turn) if sine else cos(turn)


fresnel_s_p = Special("fresnel_s", lambda tol, x: _fresnel(x, True),
                      lambda t, y, x: t * sine_of_square_p.bind(x))
fresnel_c_p = Special("fresnel_c", lambda tol, x: _fresnel(x, False),
                      lambda t, y, x: t * cosine_of_square_p.bind(x))
sine_of_square_p = Special("sine_of_square", lambda tol, x: _fresnel_phase(x, True),
                           lambda t, y, x: t * math.pi * x * cosine_of_square_p.bind(x))
cosine_of_square_p = Special("cosine_of_square", lambda tol, x: _fresnel_phase(x, False),
                             lambda t, y, x: t * -math.pi * x * sine_of_square_p.bind(x))


@fused
def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """The Fresnel integrals of sin(πt²/2) and cos(πt²/2) from 0 to x.

    Returns: (S(x), C(x)), arrays of the shape of x; both tend to ±1/2.

    >>> s, c = special.fresnel(1.0)
    >>> print(f"{s:.5f} {c:.5f}")
    0.43826 0.77989
    """
    x, = operands("fresnel", x)
    return fresnel_s_p.bind(x), fresnel_c_p.bind(x)


# Owen's T ----------------------------------------------------------------------------------------

_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(32)


def _owens_t(tol: float, h: Array, a: Array) -> Array:
    """Gauss-Legendre quadrature (DLMF 3.5.19) up to |a| = 1; T(ah, 1/a) beyond (DLMF 7.20(iii)).

    For large h the integrand is a Gaussian of width 1/h, integrated over 9 widths.
    """
    h, size = absolute(h), absolute(a)
    above = size > 1.0
    product = where((size == math.inf) & (h == 0.0), math.nan, h * size)
    limit = where(above, 1.0 / where(above, size, 1.0), size)
    height = where(above, where(product == product, product, 0.0), h)
    clipped = minimum(height, 60.0)
    reach = minimum(limit, 9.0 / maximum(clipped, 1.0))
    total = h * 0.0
    for node, weight in zip(_NODES.tolist(), _WEIGHTS.tolist(), strict=True):
        x = reach * (0.5 * node + 0.5)
        total = total + weight * exp(-0.5 * (clipped * x) * (clipped * x)) / (1.0 + x * x)
    value = reach * total * (0.25 / math.pi) * exp(-0.5 * clipped * clipped)
    value = where(height > 60.0, 0.0, value)
    p, q = ndtr_of(-h), ndtr_of(where(product == product, -product, 0.0))
    beyond = 0.5 * (p + q) - p * q - value
    beyond = where(size == math.inf, 0.5 * p, beyond)
    value = where(above, beyond, value)
    return where((h != h) | (a != a), math.nan, where(a < 0.0, -value, value))


_SLOPE = -0.5 / math.sqrt(2.0 * math.pi)


def _owens_in_h(t: Array, y: Array, h: Array, a: Array) -> Array:
    return t * (_SLOPE * gauss_p.bind(h, factor=-0.5) * erf_p.bind(a * h * math.sqrt(0.5)))


def _owens_in_a(t: Array, y: Array, h: Array, a: Array) -> Array:
    square = 1.0 + a * a
    return t * (0.5 / math.pi) * exp(-0.5 * h * h * square) / square


owens_t_p = Special("owens_t", _owens_t, _owens_in_h, _owens_in_a)


@fused(inline=True)
def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Owen's T: the probability of X > h and 0 < Y < aX of two standard normal variables.

    Args: h, a: real numbers of shapes that broadcast; integers become floats.
    Returns: An array of the broadcast shape, even in h and odd in a. Differentiable in both.

    >>> print(f"{special.owens_t(1.0, 0.5):.5f}")
    0.04306
    """
    return apply(owens_t_p, h, a)


complete_docstrings(globals(), {
    "x": "real numbers; integers become floats. SciPy takes complex ones, too.",
})
