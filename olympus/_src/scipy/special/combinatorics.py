"""Factorials, binomial coefficients and Pochhammer's symbol of real numbers; Bernoulli and zeta."""

from __future__ import annotations

import fractions
import math

import numpy as np

from ...base.typing import Array, ArrayLike
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.special.series import is_short, log1p_minus
from ...lax.special.zeta import zeta_p
from ...numpy.arithmetic import absolute, maximum, minimum
from ...numpy.creation import asarray
from ...numpy.elementary import exp, expm1, log, rint
from ...numpy.reductions import sum as sum_along
from ...numpy.selection import where
from ...numpy.trigonometry import sin
from ...types import dtypes
from ...types.shape import static_int
from .family import Special, apply, even, inside, log1p, operands, outside, whole
from .gammas import digamma_p, gamma_p, gammaln_p, gammas, positive_beta, sin_pi, turned

_STEPS = 24     # of products that are multiplied out
# Borwein (2000), "An efficient algorithm for the Riemann zeta function", algorithm 2 with n = 24.
_ETA = (
    1.0, -0.999999999999999, 0.999999999999812, -0.9999999999855517, 0.9999999994080065,
    -0.9999999850335489, 0.9999997450236661, -0.9999968965547265, 0.999971877502541,
    -0.9998044297284367, 0.998931938694946, -0.995336218072075, 0.9834807623952175,
    -0.9519634894573569, 0.8840929599033391, -0.7655145634411474, 0.5976878813515132,
    -0.4062278518731426, 0.23178649168173823, -0.1067246914876162, 0.03778036573957456,
    -0.00959406764049133, 0.0015493525382159912, -0.00011918096447815317)


def _poch(tol: float, z: Array, m: Array) -> Array:
    """Γ(z+m) / Γ(z): a product for whole m, else by Γ of both."""
    counted = whole(m) & (absolute(m) <= _STEPS)
    first = where(m < 0.0, z + m, z)
    product = z * 0.0 + 1.0
    for k in range(_STEPS):
        product = product * where(counted & (k < absolute(m)), first + float(k), 1.0)
    product = where(m < 0.0, where(product == 0.0, math.inf, 1.0 / product), product)
    product = where(m == 0.0, 1.0, product)
    end = z + m
    low, high = (z <= 0.0) & whole(z), (end <= 0.0) & whole(end)
    # For two poles it is (-1)ᵐ Γ(1-z) / Γ(1-z-m).
    both = low & high & (absolute(z) < 2.0 ** 50)
    fit = ~counted & (both | ~low & ~high) & (absolute(z) < math.inf) & (absolute(m) < math.inf)
    p, q = (inside(fit, where(both, 1.0 - b, a), c) for a, b, c in ((z, end, 1.0), (end, z, 1.5)))
    g = gammas(p, q)
    close = (g.size[0] / g.size[1]) * (g.inverse[0] / g.inverse[1])
    positive = (p > 0.0) & (q > 0.0)
    near = positive & (p < 16.0) & (q < 16.0)
    change = g.logs[1] - g.logs[0]
    # Large numbers have nearly the same logarithms: m ln(z+m) + z (ln(1+r) - r) of r = m/z.
    vast = positive & fit & ~both & (p >= 16.0) & (q >= 16.0)
    start = inside(vast, z, 16.0)
    share = inside(vast, m, 1.0) / start
    change = where(vast, m * log(inside(vast, q, 17.0)) + start * log1p_minus(share)
                   - 0.5 * log1p(share) + (g.rest[1] - g.rest[0]), change)
    value = where(near, close, exp(change) * g.signs[0] * g.signs[1])
    value = where(both & ~even(m), -value, value)
    edge = where(high & ~low, math.inf, where(low & ~high, 0.0, math.nan))
    return where(counted, product, where(fit, value, edge))


poch_p = Special("poch", _poch,
                 lambda t, y, z, m: t * y * (digamma_p.bind(z + m) - digamma_p.bind(z)),
                 lambda t, y, z, m: t * y * digamma_p.bind(z + m))


def _continued(n: Array, k: Array, rest: Array) -> Array:
    """Γ(n+1) / (Γ(k+1) Γ(rest+1)) for rest = n - k, where none is a pole: by B of positive numbers.

    Γ of numbers below 0 is reflected. Sines read n and k, whose difference may be rounded.
    """
    of_k, of_n = turned(k), turned(n)
    of_rest, first = turned(of_n - of_k), k < rest
    top, low, high = n + 1.0, minimum(k, rest) + 1.0, maximum(k, rest) + 1.0
    one, both, over = low < 0.0, high < 0.0, top > 0.0
    s_low, s_high = (-sin_pi(where(first, *v)) for v in ((of_k, of_rest), (of_rest, of_k)))
    s_top = where(one & ~over, -sin_pi(of_n), 1.0)
    sign = where(both | (one & over), 1.0, -1.0)
    factor = where(~one, 1.0 / top, where(both, s_low * s_high / (math.pi * s_top), where(
        over, s_low / math.pi, s_low / (s_top * (1.0 - low)))))
    continued = positive_beta(where(both | (one & over), 1.0 - low, where(one, 1.0 - top, low)),
                              where(both, 1.0 - high, where(one & over, top, high)))
    return continued.times(factor, sign)


def _binom(tol: float, n: Array, k: Array) -> Array:
    """Γ(n+1) / (Γ(k+1) Γ(n-k+1)); the product n (n-1) ... / k! for small whole k."""
    other = where(whole(n) & (n >= 0.0) & (k > 0.5 * n), n - k, k)     # the smaller of two
    counted = whole(other) & (other >= 0.0) & (other <= _STEPS)
    product = n * 0.0 + 1.0
    for j in range(_STEPS):
        step = product * (n - (other - (j + 1.0))) / (j + 1.0) if not is_short(n) else \
            (product * 2.0 ** -40) * (n - (other - (j + 1.0))) / (j + 1.0) * 2.0 ** 40
        product = where(counted & (j < other), step, product)
    pole = whole(n) & (n < 0.0)
    counted = counted & ~pole & (absolute(n) < math.inf)
    rest = n - k
    # Where 1/Γ is 0; where Γ(n+1) is infinite there is no limit.
    exact = turned(turned(n) - turned(k))       # n - k may be rounded to a whole number
    zero = (whole(k) & (k < 0.0)) | (whole(exact) & (rest < 0.0))
    fit = ~counted & ~zero & ~pole & (absolute(n) < math.inf) & (absolute(k) < math.inf)
    value = _continued(*(inside(fit, v, 1.0) for v in (n, k, rest)))
    value = where(counted, product, where(fit, value, where(zero & ~pole & (n == n) & (
        absolute(k) < math.inf), 0.0, math.nan)))
    exact = whole(n) & whole(k) & (absolute(value) < 2.0 ** 50)
    return where(exact, rint(value), value)


binom_p = Special(
    "binom", _binom,
    lambda t, y, n, k: t * y * (digamma_p.bind(n + 1.0) - digamma_p.bind(n - k + 1.0)),
    lambda t, y, n, k: t * y * (digamma_p.bind(n - k + 1.0) - digamma_p.bind(k + 1.0)))


@fused(inline=True)
def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Pochhammer's symbol (z)ₘ = Γ(z + m) / Γ(z), the product z (z+1) ... (z+m-1) for whole m.

    Args: z, m: real numbers of shapes that broadcast; integers become floats.
    Returns: An array of the broadcast shape; whole m up to 24 are multiplied out, whatever z is.

    >>> print(special.poch(2.0, 3.0), special.poch(-2.0, 3.0))
    24.0 0.0
    """
    return apply(poch_p, z, m)


@fused(inline=True)
def binom(x: ArrayLike, y: ArrayLike) -> Array:
    """The binomial coefficient of real numbers, Γ(x+1) / (Γ(y+1) Γ(x-y+1)).

    Args: x, y: real numbers of shapes that broadcast; integers become floats.
    Returns: An array of the broadcast shape, exact for whole results below 2**50; NaN where x is a
      negative integer, a pole.

    >>> print(special.binom(5.0, 2.0), special.binom(2.5, 1.0))
    10.0 2.5
    """
    return apply(binom_p, x, y)


@fused(static=("repetition",))
def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """The number of ways to choose k of N things.

    Args:
      N, k: real numbers of shapes that broadcast; integers become floats.
      repetition: whether a thing may be chosen more than once.
    Returns: An array of floats, 0 where k > N (without repetition), or either is negative.

    >>> print(special.comb(5, 2), special.comb(5, 2, repetition=True))
    10.0 15.0
    """
    N, k = operands("comb", N, k)
    if repetition:
        none = (N + k == 0.0) & (k == 0.0)
        return where(none, 1.0, _choose(N + k - 1.0, k, (N >= 0.0) & (k >= 0.0)))
    return _choose(N, k, (k <= N) & (N >= 0.0) & (k >= 0.0))


def _choose(n: Array, k: Array, legal: Array) -> Array:
    value = apply(binom_p, inside(legal, n, 1.0), inside(legal, k, 1.0))
    return where(legal, value, 0.0)


@fused
def perm(N: ArrayLike, k: ArrayLike) -> Array:
    """The number of ways to arrange k of N things, N (N-1) ... (N-k+1).

    Args: N, k: real numbers of shapes that broadcast; integers become floats.
    Returns: An array of floats, 0 where k > N, or either is negative.

    >>> print(special.perm(5, 2))
    20.0
    """
    N, k = operands("perm", N, k)
    legal = (k <= N) & (N >= 0.0) & (k >= 0.0)
    value = apply(poch_p, inside(legal, N - k + 1.0, 1.0), inside(legal, k, 1.0))
    return where(legal, value, 0.0)


@fused(static=("exact",))
def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """n! = Γ(n + 1).

    Args:
      n: real numbers; integers become floats.
      exact: only False: no dtype holds 21!, and Python's `math.factorial` has all digits.
    Returns: An array of floats of the shape of n, 0 for n < 0.

    >>> print(special.factorial(5), special.factorial(-1))
    120.0 0.0
    """
    if exact:
        raise ValueError("factorial: exact=True given; False is required, since no integer dtype "
                         "holds 21!; use Python's math.factorial.")
    n, = operands("factorial", n)
    legal = n >= 0.0
    return where((n < 0.0), 0.0, gamma_p.bind(where(legal | (n != n), n + 1.0, 1.0)))


@fused(static=("d",))
def multigammaln(a: ArrayLike, d: ArrayLike) -> Array:
    """The logarithm of the multivariate gamma function of dimension d.

    Args:
      a: real numbers > (d - 1) / 2; integers become floats.
      d: a positive int.
    Returns: d (d-1)/4 ln π + Σ ln Γ(a - j/2) over j < d, an array of the shape of a.

    >>> print(f"{special.multigammaln(3.0, 2):.4f}")
    1.5502
    """
    d = static_int(d, "multigammaln", "d")
    if not 1 <= d < 2**31:
        raise ValueError(f"multigammaln: d {d} given; a positive int below 2**31 is required.")
    a, = operands("multigammaln", a)
    halves = np.arange(d) / 2.0
    shifted = asarray(a)[..., None] - asarray(halves, dtype=typeof(a).dtype)
    return sum_along(gammaln_p.bind(shifted), -1) + d * (d - 1) / 4.0 * math.log(math.pi)


_LAST_FINITE = 258      # of the Bernoulli numbers, as floats: even indices go on -, +, -


def bernoulli(n: int) -> Array:
    """The Bernoulli numbers B₀ ... Bₙ, with B₁ = -1/2.

    Args: n: the last index, an int >= 0.
    Returns: An array [n+1] of the default float, of exact fractions rounded; ±inf beyond its range.

    >>> print(special.bernoulli(2))
    [ 1.         -0.5         0.16666667]
    """
    n = static_int(n, "bernoulli", "n")
    if not 0 <= n < 2**31:
        raise ValueError(f"bernoulli: n {n} given; an int >= 0 and below 2**31 is required.")
    # Akiyama and Tanigawa's algorithm gives B₁ = +1/2.
    numbers, row = [], []
    for m in range(min(n, _LAST_FINITE) + 1):
        row.append(fractions.Fraction(1, m + 1))
        for j in range(m, 0, -1):
            row[j - 1] = j * (row[j - 1] - row[j])
        numbers.append(row[0])
    values = np.zeros(n + 1)
    values[:len(numbers)] = [float(b) for b in numbers]
    if n:
        values[1] = -0.5
    values[_LAST_FINITE + 2::4], values[_LAST_FINITE + 4::4] = -np.inf, np.inf
    return asarray(values, dtype=dtypes.default_float())


# Zeta --------------------------------------------------------------------------------------------

def _eta_sum(x: Array) -> Array:
    """(1 - 2¹⁻ˣ) ζ(x) for x >= -1/2: Borwein's alternating sum."""
    total = x * 0.0
    for k in range(len(_ETA) - 1, -1, -1):
        total = total + _ETA[k] * exp(-x * math.log(k + 1.0))
    return total


def _riemann_below(x: Array) -> Array:
    """ζ(x) for x < 1, differentiable as it stands."""
    left = x < -0.5
    right = outside(left, x, 0.5)
    near = _eta_sum(right) / -expm1((1.0 - right) * math.log(2.0))
    # ζ(x) = 2 (2π)ˣ⁻¹ sin(πx/2) Γ(1-x) ζ(1-x), where the sine is 0 at even x.
    low = maximum(inside(left, x, -1.5), -1e30)
    y = 1.0 - low
    size = exp(gammaln_p.bind(y) - y * math.log(2.0 * math.pi))
    turn = rint(0.5 * low)
    sine = sin(math.pi * (0.5 * low - turn)) * where(turn == 2.0 * rint(0.5 * turn), 1.0, -1.0)
    far = 2.0 * size * sine * apply(zeta_p, minimum(y, 100.0), 1.0)
    return where(left, where((sine == 0.0) & (size == math.inf), 0.0, far), near)


@fused
def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """The zeta function of Hurwitz, or with q = None Riemann's.

    Args:
      x: the exponents, real; integers become floats.
      q: real numbers of a shape that broadcasts; None is 1, and then x < 1 is legal, too.
    Returns: The sum of (q + n)**-x over n = 0, 1, ..., or its continuation; inf at x = 1.

    >>> print(f"{special.zeta(2.0, 1.0):.5f} {special.zeta(-1.0):.5f}")      # π²/6, -1/12
    1.64493 -0.08333
    """
    if q is not None:
        return apply(zeta_p, x, q)
    x, = operands("zeta", x)
    above = x >= 1.0
    high = inside(above, x, 2.0)
    high = apply(zeta_p, minimum(high, 100.0), 1.0)
    value = where(above, high, _riemann_below(outside(above, x, 0.5)))
    return where(x == -math.inf, math.nan, value)


@fused
def zetac(x: ArrayLike) -> Array:
    """ζ(x) - 1 of Riemann's zeta function, without cancellation for large x.

    Args: x: real numbers; integers become floats.
    Returns: An array of the shape of x.

    >>> print(f"{special.zetac(60.0):.5e}")
    8.67362e-19
    """
    x, = operands("zetac", x)
    above = x >= 1.0
    high = inside(above, x, 2.0)
    value = where(high > 1020.0, 0.0, apply(zeta_p, minimum(high, 1020.0), 2.0))
    return where(above, value, zeta(outside(above, x, 0.5)) - 1.0)
