"""Logarithms times numbers, entropies, logits and power transforms: a few operations each.

They are computed in the operands' dtype. Their rules are exact at the edges (0 log 0 is 0) and
differentiable again.
"""

from __future__ import annotations

import math

from ...base.docstrings import complete_docstrings, described_like
from ...base.typing import Array, ArrayLike, Axis
from ...jit.fused import fused
from ...lax.families import INEXACT
from ...lax.special.series import is_short, log1p_minus
from ...lax.transcendental import logistic
from ...nn.activations import log_sigmoid, log_softmax as nn_log_softmax, softmax as nn_softmax
from ...numpy.arithmetic import absolute, maximum, minimum
from ...numpy.elementary import exp, expm1, log, log1p
from ...numpy.promote import unary_inexact
from ...numpy.selection import where
from ...numpy.trigonometry import arctanh
from ...types import dtypes
from .family import Special, apply, inside, outside

# Logarithms times numbers ------------------------------------------------------------------------


def _xlogy(tol: float, x: Array, y: Array) -> Array:
    none = (x == 0.0) & (y == y)
    return where(none, 0.0, x * log(outside(none, y, 1.0)))


def _xlog1py(tol: float, x: Array, y: Array) -> Array:
    none = (x == 0.0) & (y == y)
    return where(none, 0.0, x * log1p(outside(none, y, 0.0)))


def _ratio(x: Array, y: Array) -> Array:
    """x / y, which is 0 where both are 0."""
    return x / where((x == 0.0) & (y == 0.0), 1.0, y)


xlogy_p = Special("xlogy", _xlogy, lambda t, z, x, y: t * log(y),
                  lambda t, z, x, y: t * _ratio(x, y), kinds=INEXACT, wide="float32", pace=4.0)
xlog1py_p = Special("xlog1py", _xlog1py, lambda t, z, x, y: t * log1p(y),
                    lambda t, z, x, y: t * _ratio(x, 1.0 + y), kinds=INEXACT, wide="float32",
                    pace=4.0)


@fused(inline=True)
def xlogy(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(y), which is 0 where x is 0, whatever y is.

    Args: x, y: numbers of any dtype and shapes that broadcast; integers become floats.
    Returns: An array of the broadcast shape and promoted inexact dtype; NaN if y is NaN. The
      derivative in y is x / y, and 0 where both are 0.

    >>> print(special.xlogy(0.0, 0.0), special.xlogy(2.0, 1.0))
    0.0 0.0
    """
    return apply(xlogy_p, x, y)


@fused(inline=True)
def xlog1py(x: ArrayLike, y: ArrayLike) -> Array:
    """x log(1 + y), accurate for small y, and 0 where x is 0, whatever y is.

    Args: x, y: numbers of any dtype and shapes that broadcast; integers become floats.
    Returns: An array of the broadcast shape and promoted inexact dtype; NaN if y is NaN.

    >>> print(special.xlog1py(0.0, -1.0), special.xlog1py(1.0, 1e-10))
    0.0 1e-10
    """
    return apply(xlog1py_p, x, y)


# Entropies ---------------------------------------------------------------------------------------

def _entr(tol: float, x: Array) -> Array:
    value = -x * log(where(x > 0.0, x, 1.0))
    return where(x > 0.0, value, where(x < 0.0, -math.inf, where(x == 0.0, 0.0, x)))


def _compared(p: Array, q: Array) -> tuple[Array, ...]:
    """Where both are > 0, them there, where their ratio is near 1, and its distance from 1."""
    both = (p > 0.0) & (q > 0.0)
    x, y = inside(both, p, 1.0), inside(both, q, 1.0)
    ratio = x / y
    near = (ratio > 0.5) & (ratio < 2.0)
    return both, x, y, near, where(near, (x - y) / y, 0.0)


def _log_ratio(x: Array, y: Array) -> Array:
    """log(x / y), also where the ratio overflows, or underflows."""
    ratio = _ratio(x, y)
    plain = (ratio > 0.0) & (ratio < math.inf)
    return where(plain, log(inside(plain, ratio, 1.0)), log(x) - log(abs(y)))


def _rel_entr(tol: float, p: Array, q: Array) -> Array:
    both, x, y, near, part = _compared(p, q)
    value = x * where(near, log1p(part), _log_ratio(x, y))
    edge = where((p == 0.0) & (q >= 0.0), 0.0, math.inf)
    return where(both, value, where((p != p) | (q != q), math.nan, edge))


def _kl_div(tol: float, p: Array, q: Array) -> Array:
    both, x, y, near, part = _compared(p, q)
    close = x * log1p_minus(part) + (x - y) * part
    value = where(near, close, _rel_entr(tol, x, y) - x + y)
    edge = where((p == 0.0) & (q >= 0.0), q, math.inf)
    return where(both, value, where((p != p) | (q != q), math.nan, edge))


def _in_domain(p: Array, q: Array, slope: Array) -> Array:
    return where((p >= 0.0) & (q >= 0.0), slope, 0.0)


entr_p = Special("entr", _entr, lambda t, y, x: t * where(x < 0.0, 0.0, -log(x) - 1.0),
                 wide="float32", pace=4.0)
rel_entr_p = Special("rel_entr", _rel_entr,
                     lambda t, z, p, q: t * _in_domain(p, q, _log_ratio(p, q) + 1.0),
                     lambda t, z, p, q: t * _in_domain(p, q, -_ratio(p, q)), wide="float32")
kl_div_p = Special("kl_div", _kl_div,
                   lambda t, z, p, q: t * _in_domain(p, q, _log_ratio(p, q)),
                   lambda t, z, p, q: t * _in_domain(p, q, 1.0 - _ratio(p, q)), wide="float32")


@fused(inline=True)
def entr(x: ArrayLike) -> Array:
    """-x log(x), the entropy of one outcome: 0 at 0, -inf below.

    Args: x: real numbers; integers become floats.
    Returns: An array of the shape of x. The derivative at 0 is inf, and 0 below.

    >>> print(special.entr(onp.array([0., 0.5, -1.])))
    [0.        0.3465736      -inf]
    """
    return apply(entr_p, x)


@fused(inline=True)
def rel_entr(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q), a term of the relative entropy, without loss where p is near q.

    Args: p, q: real numbers of shapes that broadcast; integers become floats.
    Returns: An array of the broadcast shape: 0 where p = 0 and q >= 0, inf where either is
      negative, or q = 0 < p.

    >>> print(special.rel_entr(0.0, 1.0), special.rel_entr(1.0, 0.0))
    0.0 inf
    """
    return apply(rel_entr_p, p, q)


@fused(inline=True)
def kl_div(p: ArrayLike, q: ArrayLike) -> Array:
    """p log(p / q) - p + q: never negative, convex in both, without loss where p is near q.

    Args: p, q: real numbers of shapes that broadcast; integers become floats.
    Returns: An array of the broadcast shape: q where p = 0 and q >= 0, inf where either is
      negative, or q = 0 < p.

    >>> print(special.kl_div(0.0, 1.0), special.kl_div(2.0, 2.0))
    1.0 0.0
    """
    return apply(kl_div_p, p, q)


# Logits ------------------------------------------------------------------------------------------

def _logit(tol: float, x: Array) -> Array:
    if dtypes.is_complex(x.dtype):
        return log(x / (1.0 - x))
    near = absolute(x - 0.5) < 0.25
    close = 2.0 * arctanh(where(near, 2.0 * x - 1.0, 0.0))
    return where(near, close, log(x) - log1p(-x))


logit_p = Special("logit", _logit, lambda t, y, x: t / (x * (1.0 - x)), kinds=INEXACT,
                  wide="float32", pace=20.0)


@fused(inline=True)
def logit(x: ArrayLike) -> Array:
    """log(x / (1 - x)), the inverse of `expit`, without loss near 1/2.

    Args: x: numbers, real ones in [0, 1]; integers become floats.
    Returns: An array of the shape of x: -inf at 0, inf at 1, NaN outside.

    >>> print(special.logit(onp.array([0., 0.5, 1.])))
    [-inf   0.  inf]
    """
    return apply(logit_p, x)


@fused(inline=True)
def expit(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), the logistic function, without overflow.

    Args: x: numbers; integers become floats.
    Returns: An array of the shape of x.

    >>> print(special.expit(0.0), special.expit(-1000.0))
    0.5 0.0
    """
    return unary_inexact(logistic, x)


@fused(inline=True)
@described_like(expit)
def log_expit(x: ArrayLike) -> Array:
    """log(expit(x)), without loss where expit(x) rounds to 0 or 1.

    >>> print(special.log_expit(-1000.0))
    -1000.0
    """
    return log_sigmoid(x)


@fused(static=("axis",))
def softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """exp(x) / sum(exp(x)) along axes.

    Args:
      x: array; integers become floats.
      axis: axis or axes to normalise over; None is all.
    Returns: An array of the shape of x. `nn.softmax` is the same with another default.

    >>> print(special.softmax(onp.array([1., 1.])))
    [0.5 0.5]
    """
    return nn_softmax(x, axis=axis)


@fused(static=("axis",))
@described_like(softmax)
def log_softmax(x: ArrayLike, /, *, axis: Axis = None) -> Array:
    """log(softmax(x)), without loss where softmax is small.

    Returns: An array of the shape of x. `nn.log_softmax` is the same with another default.

    >>> print(special.log_softmax(onp.array([0., 200.])))
    [-200.    0.]
    """
    return nn_log_softmax(x, axis=axis)


# Power transforms --------------------------------------------------------------------------------

def _exprel(tol: float, x: Array, order: int = 0) -> Array:
    """∫ tᵏ exp(t x) dt over [0, 1] with k = `order`; `exprel` is the case 0.

    Its series Σ xⁿ / (n! (n+k+1)) near 0; the recurrence Eₖ = (eˣ - k Eₖ₋₁) / x elsewhere.
    """
    reach = 1.0 + order
    near = absolute(x) < reach
    small, large = inside(near, x, 0.0), outside(near, x, reach)
    terms, factor = [], 1.0
    for n in range(24 + 8 * order):
        terms.append(factor / (n + order + 1))
        factor /= n + 1
    series = x * 0.0
    for c in reversed(terms):
        series = series * small + c
    value, power = expm1(large) / large, exp(large)
    for k in range(1, order + 1):
        value = (power - k * value) / large
    value = where(large == -math.inf, 0.0, where(large == math.inf, math.inf, value))
    return where(near, series, value)


exprel_p = Special("exprel", _exprel,
                   lambda t, y, x, order=0: t * exprel_p.bind(x, order=order + 1))


@fused(inline=True)
def exprel(x: ArrayLike) -> Array:
    """(exp(x) - 1) / x, which is 1 at 0.

    Args: x: real numbers; integers become floats.
    Returns: An array of the shape of x.

    >>> print(special.exprel(0.0), special.exprel(-float("inf")))
    1.0 0.0
    """
    return apply(exprel_p, x)


def _boxcox(tol: float, x: Array, lmbda: Array) -> Array:
    return _of_logarithm(tol, log(x), lmbda)


def _boxcox1p(tol: float, x: Array, lmbda: Array) -> Array:
    return _of_logarithm(tol, log1p(x), lmbda)


def _of_logarithm(tol: float, y: Array, lmbda: Array) -> Array:
    """(exp(λ y) - 1) / λ."""
    part = lmbda * y
    none = (absolute(lmbda) < 1e-290) | (part == 0.0)
    value = expm1(part) / outside(none, lmbda, 1.0)
    return where(none | (lmbda == 0.0), y, value)


def _slope_in_lmbda(t: Array, y: Array, lmbda: Array) -> Array:
    """The slope of (exp(λ y) - 1) / λ in λ, where y may be -inf."""
    none = y == -math.inf
    finite = where(none, 0.0, y)
    edge = 1.0 / (lmbda * lmbda)
    return t * where(none, edge, finite * finite * exprel_p.bind(lmbda * finite, order=1))


def _power(x: Array, lmbda: Array) -> Array:
    """x to the λ - 1, of x >= 0."""
    return where(x < 0.0, math.nan, maximum(x, 0.0) ** (lmbda - 1.0))


boxcox_p = Special("boxcox", _boxcox, lambda t, z, x, a: t * _power(x, a),
                   lambda t, z, x, a: _slope_in_lmbda(t, log(x), a), wide="float32", pace=4.0)
boxcox1p_p = Special("boxcox1p", _boxcox1p, lambda t, z, x, a: t * _power(1.0 + x, a),
                     lambda t, z, x, a: _slope_in_lmbda(t, log1p(x), a), wide="float32", pace=4.0)


@fused(inline=True)
def boxcox(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The Box-Cox transform (x**λ - 1) / λ, which is log(x) at λ = 0.

    Args:
      x: real numbers >= 0, NaN below.
      lmbda: λ, real, of a shape that broadcasts.
    Returns: An array of the broadcast shape, accurate for all λ near 0, its derivatives too.

    >>> print(special.boxcox(3.0, 2.0), special.boxcox(1.0, 0.0))
    4.0 0.0
    """
    return apply(boxcox_p, x, lmbda)


@fused(inline=True)
def boxcox1p(x: ArrayLike, lmbda: ArrayLike) -> Array:
    """The Box-Cox transform of 1 + x, ((1+x)**λ - 1) / λ, accurate for small x.

    Args:
      x: real numbers >= -1, NaN below.
      lmbda: λ, real, of a shape that broadcasts.

    >>> print(special.boxcox1p(2.0, 2.0), special.boxcox1p(1e-12, 3.0))
    4.0 1e-12
    """
    return apply(boxcox1p_p, x, lmbda)


@fused
def inv_boxcox(y: ArrayLike, lmbda: ArrayLike) -> Array:
    """The inverse of `boxcox`: (λ y + 1)**(1/λ), or exp(y) at λ = 0.

    Args: y, lmbda: real numbers of shapes that broadcast.

    >>> print(special.inv_boxcox(4.0, 2.0), special.inv_boxcox(0.0, 0.0))
    3.0 1.0
    """
    return exp(apply(inverse_p, y, lmbda))


@fused
def inv_boxcox1p(y: ArrayLike, lmbda: ArrayLike) -> Array:
    """The inverse of `boxcox1p`: `inv_boxcox` minus 1, accurate for small y.

    Args: y, lmbda: real numbers of shapes that broadcast.

    >>> print(special.inv_boxcox1p(4.0, 2.0), special.inv_boxcox1p(1e-12, 0.0))
    2.0 1e-12
    """
    return expm1(apply(inverse_p, y, lmbda))


def _inverse(tol: float, y: Array, lmbda: Array, order: int = 0) -> Array:
    """∂ᵏ/∂λᵏ of log(1 + λ y) / λ: its series near 0, closed forms elsewhere."""
    part = lmbda * y
    if not order:
        none = (part == 0.0) | (lmbda == 0.0)
        level = log1p(part)
        if is_short(y):     # of a product beyond the range
            vast = part == math.inf
            level = where(vast & (absolute(y) < math.inf) & (absolute(lmbda) < math.inf),
                          log(absolute(inside(vast, y, 1.0)))
                          + log(absolute(inside(vast, lmbda, 1.0))), level)
        return where(none, y, level / outside(none, lmbda, 1.0))
    near = absolute(part) < 0.25
    small, z = inside(near, part, 0.0), outside(near, lmbda, 1.0)
    # y Σ (-λy)ⁿ / (n+1); of the k-th derivative in λ, n!/(n-k)! (-y)ᵏ (-λy)ⁿ⁻ᵏ.
    series = y * 0.0
    for n in range(order + 44, order - 1, -1):
        series = -small * series + math.perm(n, order) / (n + 1)
    power = (-y) ** order * y
    grown = log1p(where(near, 0.0, part)) / z
    w = y / (1.0 + where(near, 0.0, part))
    for k in range(1, order + 1):
        # λ f = log(1 + λy): λ f⁽ᵏ⁾ + k f⁽ᵏ⁻¹⁾ = (-1)ᵏ⁻¹ (k-1)! wᵏ.
        grown = ((-1.0) ** (k - 1) * math.factorial(k - 1) * w ** k - k * grown) / z
    return where(near, series * power, grown)


# log(1 + λ y) / λ, the logarithm of the inverse transform.
inverse_p = Special("inv_boxcox_log", _inverse,
                    lambda t, z, y, a, order=0: t * _inverse_in_y(y, a, order),
                    lambda t, z, y, a, order=0: t * inverse_p.bind(y, a, order=order + 1))


def _inverse_in_y(y: Array, lmbda: Array, order: int) -> Array:
    """∂ᵏ/∂λᵏ of 1 / (1 + λ y)."""
    return math.factorial(order) * (-y) ** order / (1.0 + lmbda * y) ** (order + 1)


# Losses ------------------------------------------------------------------------------------------

def _huber(tol: float, delta: Array, r: Array) -> Array:
    size = absolute(r)
    value = where(size <= delta, 0.5 * r * r, delta * (size - 0.5 * delta))
    return where(delta < 0.0, math.inf, value)


huber_p = Special("huber", _huber,
                  lambda t, z, d, r: t * maximum(absolute(r) - d, 0.0) * where(d < 0.0, 0.0, 1.0),
                  lambda t, z, d, r: t * where(d < 0.0, 0.0, minimum(maximum(r, -d), d)),
                  wide="float32", pace=4.0)


@fused(inline=True)
def huber(delta: ArrayLike, r: ArrayLike) -> Array:
    """The Huber loss: r² / 2 up to |r| = δ, and its tangent δ (|r| - δ/2) beyond.

    Args:
      delta: δ >= 0, real; the loss is inf for δ < 0.
      r: real residuals of a shape that broadcasts.

    >>> print(special.huber(1.0, 0.5), special.huber(1.0, 3.0))
    0.125 2.5
    """
    return apply(huber_p, delta, r)


def _pseudo_huber(tol: float, delta: Array, r: Array) -> Array:
    none = (delta == 0.0) | (r == 0.0)
    d, size = outside(none, delta, 1.0), absolute(outside(none, r, 1.0))
    # δ² (sqrt(1 + u²) - 1) = r u / (sqrt(1 + u²) + 1) δ, by the ratio that is at most 1.
    u = minimum(size, d) / maximum(size, d)
    root = (1.0 + u * u) ** 0.5
    value = where(size < d, size * (size / (root + 1.0)), size * (d / (root + u)))
    value = where(none, 0.0, value)
    return where(delta < 0.0, math.inf, value)


def _pseudo_in_delta(delta: Array, r: Array) -> Array:
    u = _ratio(r, delta)
    root = (1.0 + u * u) ** 0.5
    return delta * (2.0 * (u * u / (root + 1.0)) - u * u / root)


pseudo_huber_p = Special("pseudo_huber", _pseudo_huber,
                         lambda t, z, d, r: t * _pseudo_in_delta(d, r),
                         lambda t, z, d, r: t * r / (1.0 + _ratio(r, d) ** 2.0) ** 0.5,
                         wide="float32")


@fused(inline=True)
def pseudo_huber(delta: ArrayLike, r: ArrayLike) -> Array:
    """The smooth Huber loss δ² (sqrt(1 + (r/δ)²) - 1), without loss for small r.

    Args:
      delta: δ >= 0, real; the loss is inf for δ < 0, and 0 at 0.
      r: real residuals of a shape that broadcasts.

    >>> print(special.pseudo_huber(4.0, 3.0))
    4.0
    """
    return apply(pseudo_huber_p, delta, r)


complete_docstrings(globals(), {}, returns="An array of the broadcast shape.")
