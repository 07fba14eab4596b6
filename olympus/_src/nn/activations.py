"""Activation functions, elementwise or along axes, each one compiled program when called eagerly.

Where a formula has no derivative or a bad one (relu at 0, elu far out), the function has a rule or
guards the branch that is not taken.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

from ..base import config
from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, Axis
from ..core.trace import typeof
from ..custom.jvp import custom_jvp
from ..jit.fused import fused
from ..lax import arithmetic
from ..lax.barriers import stop_gradient
from ..lax.shape import broadcast_in_dim, expand_dims, squeeze
from ..lax.slicing import split
from ..lax.special import classical as special
from ..lax.transcendental import logistic
from ..numpy import arithmetic as uf, elementary as el, reductions, trigonometry as trig
from ..numpy.creation import zeros_like
from ..numpy.logic import logical_and
from ..numpy.manipulation import astype
from ..numpy.promote import array_args, promote_dtypes, to_array, unary_inexact
from ..numpy.selection import where as choose
from ..types import dtypes
from ..types.shape import canonical_axes, canonical_axis, entries, floor_div, mod, prod

SELU_ALPHA = 1.6732632423543772848170429916717
SELU_SCALE = 1.0507009873554804934193349852946


@fused
def identity(x: ArrayLike) -> Array:
    """The argument itself, as an array: the activation of a layer that has none.

    Args: x: array or number.
    Returns: An array of the shape and dtype of x.

    >>> nn.identity(2.0)
    Array(2., dtype=float32, weak_type=True)
    """
    return to_array(x)


@custom_jvp
def _relu(x: Array) -> Array:
    return uf.maximum(x, 0)


_relu.defjvps(lambda t, y, x: choose(uf.greater(x, 0), t, zeros_like(t)))


@fused
def relu(x: ArrayLike) -> Array:
    """max(x, 0); its derivative at 0 is 0.

    Args: x: numbers, any shape.
    Returns: An array of the shape and dtype of x.

    >>> print(olympus.nn.relu(onp.array([-1., 0., 2.])))
    [0. 0. 2.]
    """
    return _relu(to_array(x))


@custom_jvp
def _relu6(x: Array) -> Array:
    return uf.minimum(uf.maximum(x, 0), 6.0)


_relu6.defjvps(lambda t, y, x: choose(logical_and(uf.greater(x, 0), uf.less(x, 6)), t,
                                      zeros_like(t)))


@fused
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6); its derivative at 0 and 6 is 0.

    >>> print(nn.relu6(onp.array([-1., 3., 8.])))
    [0. 3. 6.]
    """
    return _relu6(to_array(x))


@fused
def sigmoid(x: ArrayLike) -> Array:
    """1 / (1 + exp(-x)), from 0 to 1, without overflow.

    Returns: An array of the shape of x. `lax.logistic` is the same of floats.

    >>> print(nn.sigmoid(onp.array([-200., 0., 1.])))
    [0.        0.5       0.7310586]
    """
    return unary_inexact(logistic, x)


@fused
def softplus(x: ArrayLike) -> Array:
    """log(1 + exp(x)), a smooth relu, without overflow.

    Returns: An array of the shape of x. The derivative is sigmoid(x).

    >>> print(nn.softplus(onp.array([-1., 0., 200.])))
    [  0.3132617   0.6931472 200.       ]
    """
    return el.logaddexp(x, 0.0)


@fused
def log_sigmoid(x: ArrayLike) -> Array:
    """log(sigmoid(x)) = -softplus(-x), finite where the sigmoid underflows.

    Args: x: numbers (not bool), any shape; integers become floats.
    Returns: An array of the shape of x, never positive.

    >>> print(nn.log_sigmoid(onp.array([-200., 0., 200.])))
    [-200.          -0.6931472   -0.       ]
    """
    return uf.negative(softplus(uf.negative(x)))


@fused
def sparse_plus(x: ArrayLike) -> Array:
    """0 up to -1, (x + 1)² / 4 up to 1, then x: a softplus that is exactly 0.

    Returns: An array of the shape of x. The derivative is sparse_sigmoid(x).

    >>> print(nn.sparse_plus(onp.array([-2., 0., 3.])))
    [0.   0.25 3.  ]
    """
    between = choose(uf.less(uf.absolute(x), 1.0), x, 0.0)      # no other square can be infinite
    middle = uf.divide(uf.square(uf.add(between, 1.0)), 4)
    return choose(uf.less_equal(x, -1.0), 0.0, choose(uf.greater_equal(x, 1.0), x, middle))


@fused
def sparse_sigmoid(x: ArrayLike) -> Array:
    """0 up to -1, (x + 1) / 2 up to 1, then 1: the derivative of `sparse_plus`.

    >>> print(nn.sparse_sigmoid(onp.array([-2., 0.5, 3.])))
    [0.   0.75 1.  ]
    """
    return uf.multiply(0.5, uf.minimum(uf.maximum(uf.add(x, 1.0), 0.0), 2.0))


@fused
def soft_sign(x: ArrayLike) -> Array:
    """x / (|x| + 1): from -1 to 1 like tanh, but more slowly.

    >>> print(nn.soft_sign(onp.array([-1., 0., 3.])))
    [-0.5   0.    0.75]
    """
    return uf.divide(x, uf.add(uf.absolute(x), 1))


@fused
def silu(x: ArrayLike) -> Array:
    """x sigmoid(x), also called swish.

    Returns: An array of the shape of x; its minimum is -0.28, at -1.28.

    >>> print(nn.silu(onp.array([-1., 0., 10.])))
    [-0.26894143  0.          9.999546  ]
    """
    return uf.multiply(x, sigmoid(x))


swish = silu


@fused
def mish(x: ArrayLike) -> Array:
    """x tanh(softplus(x)): smooth like `silu`, and below 0 for negative x.

    Returns: An array of the shape of x. Misra, "Mish: a self regularized non-monotonic activation
      function" (2019).

    >>> print(nn.mish(onp.array([-1., 0., 10.])))
    [-0.30340144  0.         10.        ]
    """
    return uf.multiply(x, trig.tanh(softplus(x)))


def tanh(x: ArrayLike, /) -> Array:
    """The hyperbolic tangent, from -1 to 1.

    >>> print(nn.tanh(onp.array([-100., 0., 0.5])))
    [-1.          0.          0.46211717]
    """
    return trig.tanh(x)


@fused
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where positive, else alpha (exp(x) - 1).

    Args: alpha: minus the limit at -∞; the derivative jumps at 0 unless it is 1.
    Returns: An array of the shape of x. Clevert et al., "Fast and accurate deep network learning by
      exponential linear units (ELUs)" (2016).

    >>> print(nn.elu(onp.array([-100., 0., 3.])))
    [-1.  0.  3.]
    """
    positive = uf.greater(x, 0)
    guarded = choose(positive, 0.0, x)
    return choose(positive, x, uf.multiply(alpha, el.expm1(guarded)))


@fused
def selu(x: ArrayLike) -> Array:
    """scale * elu(x, alpha) with the constants that keep mean 0 and variance 1.

    Returns:
      An array of the shape of x. Klambauer et al., "Self-normalizing neural networks" (2017).

    >>> print(nn.selu(onp.array([-1., 0., 1.])))
    [-1.1113307  0.         1.050701 ]
    """
    return uf.multiply(SELU_SCALE, elu(x, SELU_ALPHA))


@fused
def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """max(x, 0) + alpha (exp(min(x, 0) / alpha) - 1): elu with a continuous derivative.

    Args: alpha: minus the limit at -∞.
    Returns: An array of the shape of x. Barron, "Continuously differentiable exponential linear
      units" (2017).

    >>> print(nn.celu(onp.array([-2., 0., 3.]), alpha=2.0))
    [-1.2642411  0.         3.       ]
    """
    low = uf.multiply(alpha, el.expm1(uf.divide(uf.minimum(x, 0.0), alpha)))
    return uf.add(uf.maximum(x, 0.0), low)


@fused
def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """x where x >= 0, else negative_slope * x.

    Args: negative_slope: the slope below 0, a number or an array that broadcasts with x.
    Returns: An array of the shape of x. The derivative at 0 is 1.

    >>> print(nn.leaky_relu(onp.array([-1., 2.]), 0.25))
    [-0.25  2.  ]
    """
    return choose(uf.greater_equal(x, 0), x, uf.multiply(negative_slope, x))


@fused
def hard_tanh(x: ArrayLike) -> Array:
    """x limited to [-1, 1].

    Args: x: numbers, any shape.
    Returns: An array of the shape and dtype of x. The derivative is 1 in [-1, 1] and 0 outside.

    >>> print(nn.hard_tanh(onp.array([-2., 0.5, 2.])))
    [-1.   0.5  1. ]
    """
    return choose(uf.greater(x, 1), 1, choose(uf.less(x, -1), -1, x))


@fused
def hard_sigmoid(x: ArrayLike) -> Array:
    """relu6(x + 3) / 6, a sigmoid in three straight pieces: 0 up to -3, 1 from 3 on.

    >>> print(nn.hard_sigmoid(onp.array([-4., 0., 1.5])))
    [0.   0.5  0.75]
    """
    return uf.divide(relu6(uf.add(x, 3.0)), 6.0)


@fused
def hard_silu(x: ArrayLike) -> Array:
    """x hard_sigmoid(x), also called hard swish: `silu` without an exponential.

    Returns: An array of the shape of x. Howard et al., "Searching for MobileNetV3" (2019).

    >>> print(nn.hard_silu(onp.array([-4., 1., 4.])))
    [-0.         0.6666667  4.       ]
    """
    return uf.multiply(x, hard_sigmoid(x))


hard_swish = hard_silu


@fused
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """(x + sqrt(x² + b)) / 2: a smooth relu without an exponential.

    Args: b: >= 0, how smooth: relu at 0.

    Returns:
      An array of the shape of x. Barron, "Squareplus: a softplus-like algebraic rectifier" (2021).

    >>> print(nn.squareplus(onp.array([-1., 0., 1.])), nn.squareplus(-1., 0.))
    [0.618034 1.       1.618034] 0.0
    """
    # Computed from x / size and b / size²: squares do not overflow, the sum does not cancel.
    negative = uf.less(x, 0.0)
    length = choose(negative, uf.negative(x), x)
    size = stop_gradient(uf.maximum(length, 1.0))
    root = el.sqrt(uf.add(uf.square(uf.divide(x, size)), uf.divide(uf.divide(b, size), size)))
    total = uf.add(uf.multiply(root, size), length)
    return uf.divide(choose(negative, uf.divide(b, total), total), 2)


@fused(static=("approximate",))
def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """x times the distribution function of the standard normal law.

    Args:
      x: array; integers become floats.
      approximate: by tanh (Hendrycks and Gimpel 2016) instead of erfc.

    >>> x = onp.array([-1., 0., 1.])
    >>> print(nn.gelu(x), nn.gelu(x, approximate=False))
    [-0.15880796  0.          0.841192  ] [-0.15865527  0.          0.8413447 ]
    """
    x = _inexact(x)
    if not approximate:
        tail = special.erfc(uf.multiply(uf.negative(x), math.sqrt(0.5)))
        return uf.multiply(uf.multiply(0.5, x), tail)
    return _gelu_by_tanh(x)


@custom_jvp
def _gelu_by_tanh(x: Array) -> Array:
    return uf.multiply(x, uf.multiply(0.5, uf.add(1.0, _gelu_tanh(x))))


def _gelu_tanh(x: Array) -> Array:
    cube = uf.multiply(uf.square(x), x)
    inner = uf.multiply(math.sqrt(2 / math.pi), uf.add(x, uf.multiply(0.044715, cube)))
    return trig.tanh(inner)


def _gelu_slope(t: Array, y: Array, x: Array) -> Array:
    """One residual, the slope. From |x| = 10 on tanh is ±1; squares of larger numbers overflow."""
    near = uf.minimum(uf.maximum(x, -10.0), 10.0)
    tanh = _gelu_tanh(near)
    growth = uf.multiply(math.sqrt(2 / math.pi),
                         uf.add(1.0, uf.multiply(3 * 0.044715, uf.square(near))))
    steep = uf.multiply(uf.multiply(near, growth),
                        uf.multiply(uf.add(1.0, tanh), uf.subtract(1.0, tanh)))
    return uf.multiply(t, uf.multiply(0.5, uf.add(uf.add(1.0, tanh), steep)))


_gelu_by_tanh.defjvps(_gelu_slope)


@fused(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second half.

    Args:
      x: array; integers become floats.
      axis: the axis, of even size (ValueError otherwise).
    Returns: An array with half as many entries along the axis. Dauphin et al., "Language modeling
      with gated convolutional networks" (2017).

    >>> print(nn.glu(onp.array([1., 2., 0., 100.])))
    [0.5 2. ]
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
# is a constant to differentiation. What is subtracted from rows is negated before: so a gradient
# negates the sum of a row, not its elements.

def _inexact(x: ArrayLike) -> Array:
    return unary_inexact(to_array, x)


def _largest(x: Array, axis: Any, where: Any) -> Array:
    """The maximum with the axes kept, a constant to differentiation; -inf of nothing."""
    initial = None if where is None and x.size else -math.inf
    return stop_gradient(reductions.max(x, axis, keepdims=True, initial=initial, where=where))


def _softmax(x: Array, axis: Any, where: Any) -> Array:
    top = _largest(x, axis, where)
    inside = x if where is None else choose(where, x, -math.inf)
    weights = el.exp(uf.subtract(inside, top))
    total = reductions.sum(weights, axis, keepdims=True, where=where)
    out = uf.multiply(weights, uf.reciprocal(total))    # of 1 or more: cheaper than a quotient
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
    Returns: An array of the shape of x, whose elements add up to 1 along the axes.

    >>> print(olympus.nn.softmax(onp.array([1., 1.])))
    [0.5 0.5]
    """
    x, axis = _inexact(x), _static_axis(axis)
    if not config.softmax_custom_jvp.value:
        return _softmax(x, axis, where)

    @custom_jvp
    def ruled(x: Array) -> Any:
        return _softmax(x, axis, where)

    @ruled.defjvp
    def rule(primals: Sequence[Array], tangents: Sequence[Array]) -> Any:
        y = ruled(*primals)
        t = tangents[0]
        total = reductions.sum(uf.multiply(y, t), axis, keepdims=True, where=where)
        return y, uf.multiply(y, uf.add(t, uf.negative(total)))

    return ruled(x)


@fused(static=("axis",))
def log_softmax(x: ArrayLike, axis: Axis = -1, where: ArrayLike | None = None) -> Array:
    """log(softmax(x)), without loss where softmax is small.

    Args:
      x: array; integers become floats.
      axis: axis or axes to normalize over; None is all.
      where: bool, broadcasts to x; elements to include. The others give -inf.
    Returns: An array of the shape of x, whose exponentials add up to 1 along the axes.

    >>> print(nn.log_softmax(onp.array([0., 200.])))
    [-200.    0.]
    """
    x, axis = _inexact(x), _static_axis(axis)
    inside = x if where is None else choose(where, x, -math.inf)
    shifted = uf.subtract(inside, _largest(x, axis, where))
    total = reductions.sum(el.exp(shifted), axis, keepdims=True, where=where)
    out = uf.add(shifted, uf.negative(el.log(total)))
    return out if where is None else choose(where, out, -math.inf)


@overload
def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              return_sign: Literal[False] = False, where: ArrayLike | None = None) -> Array: ...


@overload
def logsumexp(a: ArrayLike, axis: Axis = None, b: ArrayLike | None = None, keepdims: bool = False,
              *, return_sign: Literal[True], where: ArrayLike | None = None
              ) -> tuple[Array, Array]: ...


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
    Returns: An array without the axes, or a pair of them: -inf, and sign 0, where the sum is 0.
      Where all of `a` is -inf, logarithms of probabilities that are 0, the derivatives are 0.

    >>> print(olympus.nn.logsumexp(onp.array([1000., 1000.])))
    1000.6932
    >>> print(olympus.grad(olympus.nn.logsumexp)(onp.full(2, -onp.inf)))
    [0. 0.]
    """
    a = _inexact(a)
    if b is not None:
        a, b = promote_dtypes("logsumexp", a, b, inexact=True)
        a = choose(uf.not_equal(b, 0), a, -math.inf)
    if where is not None:       # exp of elements left out has no slope, not even at infinity
        a = choose(where, a, -math.inf)
    axes = canonical_axes(axis, a.ndim, "logsumexp")
    real = arithmetic.real(a) if dtypes.is_complex(a.dtype) else a
    top = _largest(real, axes, where)
    # Chosen without the axes, or TPUs copy it.
    top = top if keepdims else squeeze(top, axes)
    impossible = uf.equal(top, -math.inf)
    top = choose(el.isfinite(top), top, 0.0)
    terms = el.exp(uf.subtract(a, top if keepdims else expand_dims(top, axes)))
    if b is not None:
        terms = uf.multiply(terms, b)
    total = reductions.sum(terms, axes, keepdims=keepdims, where=where)
    # The slope of log(0) is infinite: multiplied by exp(-inf) it would be NaN.
    impossible = logical_and(impossible, uf.equal(total, 0))
    total, top = choose(impossible, 1.0, total), choose(impossible, -math.inf, top)
    if dtypes.is_complex(a.dtype) and not return_sign:
        return uf.add(el.log(total), top)
    sign = choose(impossible, 0.0, uf.sign(total))
    size = uf.add(el.log(uf.absolute(total)), top)
    if return_sign:
        return size, sign
    return size if b is None else choose(uf.less(sign, 0), math.nan, size)


@fused(static=("axis", "keepdims"))
def logmeanexp(x: ArrayLike, axis: Axis = None, where: ArrayLike | None = None,
               keepdims: bool = False) -> Array:
    """log(mean(exp(x))) along axes, without overflow.

    Args:
      x: array; integers become floats.
      axis: axis or axes; None is all.
      where: bool, broadcasts to x; elements that count.
      keepdims: whether reduced axes stay with size 1.
    Returns: An array without the axes; NaN where there are no elements.

    >>> print(nn.logmeanexp(onp.array([[1000., 1000.], [0., -float("inf")]]), axis=1))
    [ 1.000000e+03 -6.931472e-01]
    """
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
    """log(1 - exp(-x)), accurate for small and large x > 0.

    Returns: An array of the shape of x: -inf at 0, NaN below.

    >>> print(nn.log1mexp(onp.array([1e-10, 1., 50.])))
    [-2.3025850e+01 -4.5867515e-01 -1.9287499e-22]
    """
    x = _inexact(x)
    small = uf.less(x, math.log(2))
    low = el.log(uf.negative(el.expm1(uf.negative(choose(small, x, 1.0)))))
    return choose(small, low, el.log1p(uf.negative(el.exp(uf.negative(choose(small, 1.0, x))))))


complete_docstrings(globals(), {
    "x": "numbers, any shape; integers become floats.",
}, returns="An array of the shape of x.")
