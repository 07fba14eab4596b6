"""Derivatives of any order of the incomplete gamma and beta functions in their parameters.

Both functions are integrals of a density up to x. Under the integral, a derivative in a parameter
is the density times the complete Bell polynomial of its logarithm's derivatives: one in ln t. With
v = |ln(t/x)|, for beta of the odds, what remains is exp(-E(v)) of a convex E with E(0) = 0: the
side of x without the peak is integrated, by Gauss-Legendre quadrature (DLMF 3.5.19) up to E = 44,
which gives 13 digits. One step of the recurrence in a parameter (DLMF 8.8.5, 8.17.20) keeps the
integral away from its singularity at parameters of 0.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.typing import Array, ArrayLike
from ...core.trace import typeof
from ..arithmetic import abs, div, max, mul, neg, reciprocal, sub
from ..bits import bitwise_and
from ..comparison import eq, ge, gt, lt, select
from ..creation import full_like
from ..families import add
from ..shape import broadcast_in_dim, reduce_sum
from ..transcendental import exp, expm1, log, log1p, sqrt
from .classical import digamma, polygamma_above
from .series import iterate, log1p_minus, polynomial_in
from .zeta import zeta_sum_p

_REACH = 44.0       # exp(-44) is below the last digit
_NEWTON_STEPS = 12
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(48)
# ψ(z+1) - ln z in 1/z² (DLMF 5.11.2), without 1/(2z).
_DIGAMMA = (-1 / 12, 1 / 120, -1 / 252, 1 / 240, -1 / 132, 691 / 32760)
_LARGE = 16.0

Cumulants = Callable[[int, int], Any]
Wide = Callable[[ArrayLike], Array]     # repeats an array for each node of a quadrature


def bell(cumulant: Cumulants, m: int, n: int = 0) -> ArrayLike:
    """∂ᵐ/∂aᵐ ∂ⁿ/∂bⁿ of exp(h), over exp(h); `cumulant(i, j)` is that derivative of h."""
    @functools.cache
    def value(m: int, n: int) -> ArrayLike:
        if not m and not n:
            return 1.0
        # From e'ʰ = h' e'ʰ, by Leibniz: in a if there is a derivative in a, otherwise in b.
        low_m, low_n = (m - 1, n) if m else (m, n - 1)
        terms = []
        for i in range(low_m + 1):
            for j in range(low_n + 1):
                part = cumulant(i + (m > 0), j + (m == 0))
                rest = value(low_m - i, low_n - j)
                term = part if isinstance(rest, float) else mul(part, rest)
                terms.append(mul(term, float(math.comb(low_m, i) * math.comb(low_n, j))))
        return functools.reduce(add, terms)

    return value(m, n)


def log_gamma_cumulants(first: ArrayLike, a: ArrayLike) -> Cumulants:
    """Those of the gamma density: `first`, and the derivatives of -ln Γ(a) from the second on."""
    return functools.cache(lambda i, j: first if i == 1 else neg(polygamma_above(float(i - 1), a)))


def _polygamma(order: int, x: Array) -> Array:
    """`polygamma` of a constant order >= 1 for x > 0 (DLMF 25.11.12): less to compile."""
    terms = zeta_sum_p.bind(full_like(x, order + 1.0), x)
    return mul(terms, (-1.0) ** (order + 1) * math.factorial(order))


# Quadrature --------------------------------------------------------------------------------------

def _integral(curvature: ArrayLike, exponent: Callable[..., tuple[Array, Array]],
              constants: tuple[ArrayLike, ...],
              integrand: Callable[[Array, Wide], Array]) -> Array:
    """∫ over v >= 0.

    Args:
      curvature: of the exponent E at 0, >= 0.
      exponent: (v, *constants) -> E(v), E'(v), for v of the parameters' shape.
      constants: of E; the first is its slope at 0, >= 0, and not 0 where the curvature is.
      integrand: (v, wide) -> value; `wide` repeats an array to the shape of v, [*shape, nodes].
    """
    def newton(i: Array, state: Sequence[Array], constants: Sequence[Array]
               ) -> tuple[Array, tuple[Array, ...]]:
        value, rate = exponent(state[0], *constants)
        step = div(sub(value, _REACH), rate)
        return gt(abs(step), mul(0.01, state[0])), (sub(state[0], step),)

    # On a convex function the steps come down to the root from above, after the first.
    slope = constants[0]
    root = sqrt(add(mul(slope, slope), mul(2.0 * _REACH, curvature)))
    end = div(2.0 * _REACH, add(slope, root))
    end, = iterate(newton, eq(end, end), (end,), constants, _NEWTON_STEPS)
    shape = (*typeof(end).shape, len(_NODES))

    def wide(x: ArrayLike) -> Array:
        return broadcast_in_dim(x, shape, range(len(shape) - 1))

    def along(values: np.ndarray) -> Array:
        return broadcast_in_dim(values.astype(typeof(end).dtype), shape, (len(shape) - 1,))

    v = mul(wide(end), along(0.5 * (_NODES + 1.0)))
    total = reduce_sum(mul(integrand(v, wide), along(0.5 * _WEIGHTS)), (len(shape) - 1,))
    return mul(end, total)


def _expm1_minus(x: Array) -> Array:
    """eˣ - 1 - x, without cancellation near 0."""
    near = lt(abs(x), 0.25)
    inside = select(near, x, full_like(x, 0.0))
    series = polynomial_in(inside, [1.0 / math.factorial(k) for k in range(2, 14)], 0.25, -0.25)
    return select(near, mul(mul(inside, inside), series), sub(expm1(x), x))


def _log_rest(z: Array) -> Array:
    """ψ(z+1) - ln z, for z >= 16."""
    inverse = reciprocal(z)
    square = mul(inverse, inverse)
    return add(mul(0.5, inverse), mul(square, polynomial_in(square, _DIGAMMA, _LARGE ** -2)))


# Gamma -------------------------------------------------------------------------------------------

def _log_over_mean(a: ArrayLike, x: ArrayLike) -> Array:
    """ln x - ψ(a+1), without cancellation where both are large."""
    ratio = div(x, a)
    near = bitwise_and(ge(a, _LARGE), bitwise_and(gt(ratio, 0.5), lt(ratio, 2.0)))
    big = select(near, a, full_like(a, _LARGE))
    excess = select(near, div(sub(x, a), a), full_like(a, 0.0))
    return select(near, sub(log1p(excess), _log_rest(big)), sub(log(x), digamma(add(a, 1.0))))


def gamma_order(a: ArrayLike, x: ArrayLike, order: int) -> Array:
    """∂ᵐP/∂aᵐ over the density ∂P/∂x, for m = order >= 1 and finite a, x > 0.

    With D = xᵃ e⁻ˣ / Γ(a+1), up to x = a+1: ∂ᵐD + ∂ᵐP(a+1, x); beyond: -∂ᵐQ.
    """
    above = gt(x, add(a, 1.0))
    log_x = _log_over_mean(a, x)
    slope = select(above, sub(x, a), sub(add(a, 1.0), x))
    sign = select(above, full_like(a, 1.0), full_like(a, -1.0))
    later = functools.cache(lambda i, j: neg(_polygamma(i - 1, add(a, 1.0))))

    def exponent(v: Array, slope: Array, x: Array, sign: Array) -> tuple[Array, Array]:
        signed = mul(sign, v)
        return (add(mul(slope, v), mul(x, _expm1_minus(signed))),
                add(slope, mul(x, mul(sign, expm1(signed)))))

    def integrand(v: Array, wide: Wide) -> Array:
        signed = mul(wide(sign), v)
        size = exp(neg(add(mul(wide(slope), v), mul(wide(x), _expm1_minus(signed)))))
        first = add(wide(log_x), signed)
        repeated = functools.cache(lambda i, j: first if i == 1 else wide(later(i, j)))
        whole, before = bell(repeated, order), bell(repeated, order - 1)
        # The density below belongs to a+1; above it is a D, whose derivative has two terms.
        beyond = neg(add(mul(wide(a), whole), mul(before, float(order))))
        return mul(size, select(wide(above), beyond, whole))

    integral = _integral(x, exponent, (slope, x, sign), integrand)
    edge = bell(lambda i, j: log_x if i == 1 else later(i, j), order)
    total = select(above, integral, add(edge, mul(x, integral)))
    return mul(div(x, a), total)


# Beta --------------------------------------------------------------------------------------------

def _first_beta_cumulant(a: ArrayLike, x: ArrayLike, s: Array, excess: Array, log_x: Array
                         ) -> Array:
    """ln x + ψ(s+1) - ψ(a+1); excess = s x - a."""
    part = div(excess, a)
    near = bitwise_and(ge(a, _LARGE), lt(abs(part), 0.5))
    big, whole = (select(near, v, full_like(a, _LARGE)) for v in (a, s))
    small = select(near, part, full_like(a, 0.0))
    close = add(log1p(small), sub(_log_rest(whole), _log_rest(big)))
    return select(near, close, add(log_x, sub(digamma(add(s, 1.0)), digamma(add(a, 1.0)))))


def beta_order(a: ArrayLike, b: ArrayLike, x: ArrayLike, m: int, n: int) -> Array:
    """a b B(a, b) / (xᵃ (1-x)ᵇ) times ∂ᵐ⁺ⁿI/∂aᵐ∂bⁿ, m + n >= 1; 0 < x < 1, finite a, b > 0.

    With p, q, u, w = a, b, x, 1-x, exchanged where x is above about the mean:
    I(p, q; u) = uᵖ w^q / (p B(p, q)) + I(p+1, q; u).
    """
    s, y = add(a, b), sub(1.0, x)
    swap = gt(x, div(add(a, 1.0), add(s, 2.0)))
    p, q = select(swap, b, a), select(swap, a, b)
    u, w = select(swap, y, x), select(swap, x, y)
    excess = sub(mul(b, x), mul(a, y))
    log_x, log_y = log(x), log1p(neg(x))
    first_a = _first_beta_cumulant(a, x, s, excess, log_x)
    first_b = _first_beta_cumulant(b, y, s, neg(excess), log_y)
    slope = max(sub(mul(add(p, 1.0), w), mul(q, u)), full_like(a, 0.0))
    whole = add(s, 1.0)

    def tilt(v: Array, u: Array, w: Array) -> tuple[Array, Array]:
        """-ln((1-t) / w), where t has odds e⁻ᵛ u / w, and that plus u v, accurate near 0."""
        upper = gt(u, 0.5)
        own, signed = select(upper, w, u), select(upper, v, neg(v))
        z = mul(own, expm1(signed))
        near = lt(abs(z), 0.5)
        inside = select(near, z, full_like(z, 0.0))
        # ln(1+z) - z, and z less the linear part of it in v
        bent = add(log1p_minus(inside), mul(own, _expm1_minus(signed)))
        rest = select(near, bent, sub(log1p(z), mul(own, signed)))
        return sub(rest, mul(u, v)), rest

    def exponent(v: Array, slope: Array, whole: Array, u: Array, w: Array) -> tuple[Array, Array]:
        odds = mul(u, exp(neg(v)))
        rate = mul(mul(whole, u), sub(1.0, div(exp(neg(v)), add(w, odds))))
        return add(mul(slope, v), mul(whole, tilt(v, u, w)[1])), add(slope, rate)

    @functools.cache
    def later(i: int, j: int) -> Array:
        """The cumulants from the second on."""
        total = _polygamma(i + j - 1, add(s, 1.0))
        if i and j:
            return total
        return sub(total, _polygamma(i + j - 1, add(b if j else a, 1.0)))

    def scaled(cumulant: Cumulants, p_is_b: Array, q: Array) -> Array:
        """The derivative of q exp(h) over exp(h), where q is a or b."""
        value = mul(q, bell(cumulant, m, n))
        in_a = mul(full_like(q, float(m)), bell(cumulant, m - 1, n)) if m else full_like(q, 0.0)
        in_b = mul(full_like(q, float(n)), bell(cumulant, m, n - 1)) if n else full_like(q, 0.0)
        return add(value, select(p_is_b, in_a, in_b))

    def integrand(v: Array, wide: Wide) -> Array:
        bent, rest = tilt(v, wide(u), wide(w))
        size = exp(neg(add(mul(wide(slope), v), mul(wide(whole), rest))))
        swapped = wide(swap)
        logs = neg(add(v, bent)), neg(bent)     # ln(t / u), ln((1-t) / w)
        firsts = (add(wide(first_a), select(swapped, logs[1], logs[0])),
                  add(wide(first_b), select(swapped, logs[0], logs[1])))
        repeated = functools.cache(
            lambda i, j: firsts[j] if i + j == 1 else wide(later(i, j)))
        return mul(size, scaled(repeated, swapped, wide(q)))

    def at_edge(i: int, j: int) -> Array:
        """Cumulants with Γ(s) instead of Γ(s+1)."""
        k = i + j
        lowered = div((-1.0) ** k * math.factorial(k - 1), _power(s, k))
        return add((first_b if j else first_a) if k == 1 else later(i, j), lowered)

    integral = _integral(mul(whole, mul(u, w)), exponent, (slope, whole, u, w), integrand)
    total = add(scaled(functools.cache(at_edge), swap, q), mul(mul(u, s), integral))
    return select(swap, neg(total), total)


def _power(x: Array, k: int) -> Array:
    return functools.reduce(mul, [x] * k)
