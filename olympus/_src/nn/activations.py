"""Activation functions, elementwise or along axes, each one compiled program when called eagerly.

Where a formula has no derivative or a bad one (relu at 0, elu far out), the function has a rule or
guards the branch that is not taken.
"""

from __future__ import annotations

import math
from typing import Any

from ..base import config
from ..base.typing import Array, ArrayLike, Axis
from ..core.trace import typeof
from ..custom.jvp import custom_jvp
from ..lax import arithmetic
from ..lax.barriers import stop_gradient
from ..lax.shape import broadcast_in_dim, squeeze
from ..lax.slicing import split
from ..lax.special import classical as special
from ..lax.transcendental import logistic
from ..numpy import elementary as el
from ..numpy import reductions
from ..numpy import trigonometry as trig
from ..numpy import ufuncs as uf
from ..numpy.creation import zeros_like
from ..numpy.logic import logical_and
from ..numpy.manipulation import astype
from ..numpy.promote import array_args, promote_dtypes, to_array, unary_inexact
from ..numpy.selection import where as choose
from ..transforms.fused import fused
from ..types import dtypes
from ..types.shape import canonical_axes, canonical_axis, entries, floor_div, mod, prod

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "leaky_relu", "log1mexp", "log_sigmoid", "log_softmax", "logmeanexp", "logsumexp",
    "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign", "softmax", "softplus",
    "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh",
]

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@fused
def identity(x: ArrayLike) -> Array:
    """The argument, as an array."""
    return x


@custom_jvp
def _relu(x: Any) -> Any:
    return uf.maximum(x, 0)


_relu.defjvps(lambda t, y, x: choose(uf.greater(x, 0), t, zeros_like(t)))


@fused
def relu(x: ArrayLike) -> Array:
    """max(x, 0); its derivative at 0 is 0.

    >>> import olympus, olympus.numpy as onp
    >>> print(olympus.nn.relu(onp.array([-1., 0., 2.])))
    [0. 0. 2.]
    """
    return _relu(to_array(x))


@custom_jvp
def _relu6(x: Any) -> Any:
    return uf.minimum(uf.maximum(x, 0), 6.0)


_relu6.defjvps(lambda t, y, x: choose(logical_and(uf.greater(x, 0), uf.less(x, 6)), t,
                                      zeros_like(t)))


@fused
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6); its derivative at 0 and 6 is 0."""
    return _relu6(to_array(x))


@fused
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x))."""
    return unary_inexact(logistic, x)


@fused
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), without overflow."""
    return el.logaddexp(x, 0.0)


@fused
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)) = -softplus(-x)."""
    return uf.negative(softplus(uf.negative(x)))


@fused
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, (x + 1)^2 / 4 up to 1, then x."""
    middle = uf.divide(uf.square(uf.add(x, 1.0)), 4)
    return choose(uf.less_equal(x, -1.0), 0.0, choose(uf.greater_equal(x, 1.0), x, middle))


@fused
def sparse_sigmoid(x: ArrayLike) -> Array:
    """The derivative of sparse_plus: 0 up to -1, (x + 1) / 2 up to 1, then 1."""
    return uf.multiply(0.5, uf.minimum(uf.maximum(uf.add(x, 1.0), 0.0), 2.0))


@fused
def soft_sign(x: ArrayLike) -> Array:
    """x / (|x| + 1)."""
    return uf.divide(x, uf.add(uf.absolute(x), 1))


@fused
def silu(x: ArrayLike) -> Array:
    """x sigmoid(x), also called swish."""
    return uf.multiply(x, sigmoid(x))


swish = silu


@fused
def mish(x: ArrayLike) -> Array:
    """x tanh(softplus(x))."""
    return uf.multiply(x, trig.tanh(softplus(x)))


def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent."""
    return trig.tanh(x)


@fused
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where positive, else alpha (exp(x) - 1)."""
    positive = uf.greater(x, 0)
    guarded = choose(positive, 0.0, x)
    return choose(positive, x, uf.multiply(alpha, el.expm1(guarded)))


@fused
def selu(x: ArrayLike) -> Array:
    """scale * elu(x, alpha) with the constants that keep mean 0 and variance 1.

    Klambauer et al., "Self-normalizing neural networks" (2017).
    """
    return uf.multiply(SELU_SCALE, elu(x, SELU_ALPHA))


@fused
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1): elu with a continuous derivative."""
    low = uf.multiply(alpha, el.expm1(uf.divide(uf.minimum(x, 0.0), alpha)))
    return uf.add(uf.maximum(x, 0.0), low)


@fused
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x where x >= 0, else negative_slope * x."""
    return choose(uf.greater_equal(x, 0), x, uf.multiply(negative_slope, x))


@fused
def hard_tanh(x: ArrayLike) -> Array:
    """x limited to [-1, 1]."""
    return choose(uf.greater(x, 1), 1, choose(uf.less(x, -1), -1, x))


@fused
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6."""
    return uf.divide(relu6(uf.add(x, 3.0)), 6.0)


@fused
def hard_silu(x: ArrayLike) -> Array:
    """x hard_sigmoid(x), also called hard swish."""
    return uf.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


@fused
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x^2 + b)) / 2."""
    return uf.divide(uf.add(x, el.sqrt(uf.add(uf.square(x), b))), 2)


@fused(static=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the distribution function of the standard normal law.

    Args:
      x: array; integers become floats.
      approximate: by tanh (Hendrycks and Gimpel 2016) instead of erfc.
    """
    x = _inexact(x)
    if not approximate:
        tail = special.erfc(uf.multiply(uf.negative(x), math.sqrt(0.5)))
        return uf.multiply(uf.multiply(0.5, x), tail)
    cube = uf.multiply(uf.square(x), x)
    inner = uf.multiply(math.sqrt(2 / math.pi), uf.add(x, uf.multiply(0.044715, cube)))
    return uf.multiply(x, uf.multiply(0.5, uf.add(1.0, trig.tanh(inner))))


@fused(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second half.

    Raises ValueError where the axis has an odd size.
    """
    x = to_array(array_args("glu", x)[0])
    axis = canonical_axis(axis, x.ndim, "glu")
    size = x.shape[axis]
    if mod(size, 2):
        raise ValueError(f"glu: operand {x.aval}, axis {axis} given; an axis of even size is "
                         "required; pad it, or name another.")
    half = floor_div(size, 2)
    first, second = split(x, (half, half), axis)
    return uf.multiply(first, sigmoid(second))


# Along axes --------------------------------------------------------------------------------------
# Exponentials are taken after the maximum is subtracted, so that they never overflow; the maximum
# is a constant to differentiation.

def _inexact(x: Any) -> Any:
    return unary_inexact(to_array, x)


def _largest(x: Any, axis: Any, where: Any) -> Any:
    """The maximum with the axes kept, a constant to differentiation; -inf of nothing."""
    initial = None if where is None and x.size else -math.inf
    return stop_gradient(reductions.max(x, axis, keepdims=True, initial=initial, where=where))


def _softmax(x: Any, axis: Any, where: Any) -> Any:
    top = _largest(x, axis, where)
    inside = x if where is None else choose(where, x, -math.inf)
    weights = el.exp(uf.subtract(inside, top))
    out = uf.divide(weights, reductions.sum(weights, axis, keepdims=True, where=where))
    return out if where is None else choose(where, out, 0.0)


def _static_axis(axis: Any) -> Any:
    return None if axis is None else entries(axis)


@fused(static=("axis",))
def softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """exp(x) / sum(exp(x)) along axes.

    Args:
      x: array; integers become floats.
      axis: axis or axes to normalize over; None is all.
      where: bool, broadcasts to x; elements to include. The others give 0.

    >>> import olympus, olympus.numpy as onp
    >>> print(olympus.nn.softmax(onp.array([1., 1.])))
    [0.5 0.5]
    """
    x, axis = _inexact(x), _static_axis(axis)
    if not config.softmax_custom_jvp.value:
        return _softmax(x, axis, where)

    @custom_jvp
    def ruled(x: Any) -> Any:
        return _softmax(x, axis, where)

    @ruled.defjvp
    def rule(primals: Any, tangents: Any) -> Any:
        y = ruled(*primals)
        t = tangents[0]
        total = reductions.sum(uf.multiply(y, t), axis, keepdims=True, where=where)
        return y, uf.multiply(y, uf.subtract(t, total))

    return ruled(x)


@fused(static=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """log(softmax(x)) without loss where softmax is small; the arguments of `softmax`.

    Elements that `where` excludes give -inf.
    """
    x, axis = _inexact(x), _static_axis(axis)
    inside = x if where is None else choose(where, x, -math.inf)
    shifted = uf.subtract(inside, _largest(x, axis, where))
    total = reductions.sum(el.exp(shifted), axis, keepdims=True, where=where)
    out = uf.subtract(shifted, el.log(total))
    return out if where is None else choose(where, out, -math.inf)


@fused(static=("axis", "keepdims", "return_sign"))
def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: bool = False,
              where: ArrayLike | None = None) -> Array | tuple[Array, Array]:
    """log(sum(b * exp(a))) along axes.

    Args:
      a: array; integers become floats.
      axis: axis or axes; None is all.
      b: real weights that broadcast with a; None is 1.
      keepdims: whether reduced axes stay with size 1.
      return_sign: whether to return (log of the absolute value, sign) instead; without it, a
        negative sum gives NaN.
      where: bool, broadcasts to a; elements to include.

    >>> import olympus, olympus.numpy as onp
    >>> print(olympus.nn.logsumexp(onp.array([1000., 1000.])))
    1000.6932
    """
    a = _inexact(a)
    if b is not None:
        a, b = promote_dtypes("logsumexp", a, b, inexact=True)
        a = choose(uf.not_equal(b, 0), a, -math.inf)
    axes = canonical_axes(axis, a.ndim, "logsumexp")
    real = arithmetic.real(a) if dtypes.is_complex(a.dtype) else a
    top = _largest(real, axes, where)
    top = choose(el.isfinite(top), top, 0.0)
    terms = el.exp(uf.subtract(a, top))
    if b is not None:
        terms = uf.multiply(terms, b)
    total = reductions.sum(terms, axes, keepdims=keepdims, where=where)
    top = top if keepdims else squeeze(top, axes)
    if dtypes.is_complex(a.dtype) and not return_sign:
        return uf.add(el.log(total), top)
    sign = uf.sign(total)
    size = uf.add(el.log(uf.absolute(total)), top)
    if return_sign:
        return size, sign
    return size if b is None else choose(uf.less(sign, 0), math.nan, size)


@fused(static=("axis", "keepdims"))
def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None,
               keepdims: bool = False) -> Array:
    """log(mean(exp(x))) along axes; `where` says which elements count."""
    x = _inexact(x)
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    if where is None:
        axes = canonical_axes(axis, x.ndim, "logmeanexp")
        return uf.subtract(total, math.log(prod(tuple(x.shape[i] for i in axes)) or math.nan))
    mask = broadcast_in_dim(where, x.shape, range(x.ndim - typeof(where).ndim, x.ndim))
    count = reductions.sum(mask, _static_axis(axis), keepdims=keepdims)
    return uf.subtract(total, el.log(astype(count, x.dtype)))


@fused
def log1mexp(x: ArrayLike) -> Array:
    """log(1 - exp(-x)), accurate for small and large x > 0."""
    x = _inexact(x)
    small = uf.less(x, math.log(2))
    low = el.log(uf.negative(el.expm1(uf.negative(choose(small, x, 1.0)))))
    return choose(small, low, el.log1p(uf.negative(el.exp(uf.negative(choose(small, 1.0, x))))))
