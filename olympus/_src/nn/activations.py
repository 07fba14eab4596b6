"""Activation functions: elementwise, each one compiled program when called eagerly.

Where a formula has no derivative or a bad one (relu at 0, elu far out), the function has a rule or
guards the branch that is not taken.
"""

from __future__ import annotations

import math
from typing import Any

from ..base.typing import Array, ArrayLike
from ..custom.jvp import custom_jvp
from ..lax.slicing import split
from ..lax.special import classical as special
from ..lax.transcendental import logistic
from ..numpy import elementary as el
from ..numpy import ufuncs as uf
from ..numpy.creation import zeros_like
from ..numpy.manipulation import as_array
from ..numpy.promote import array_args, unary_inexact
from ..numpy.selection import where
from ..transforms.fused import fused
from ..types.shape import canonical_axis, floor_div, mod

__all__ = [
    "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh",
    "identity", "leaky_relu", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu",
    "soft_sign", "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish", "tanh",
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


_relu.defjvps(lambda t, y, x: where(uf.greater(x, 0), t, zeros_like(t)))


@fused
def relu(x: ArrayLike) -> Array:
    """max(x, 0); its derivative at 0 is 0.

    >>> import olympus, olympus.numpy as onp
    >>> print(olympus.nn.relu(onp.array([-1., 0., 2.])))
    [0. 0. 2.]
    """
    return _relu(as_array(x))


@custom_jvp
def _relu6(x: Any) -> Any:
    return uf.minimum(uf.maximum(x, 0), 6.0)


_relu6.defjvps(lambda t, y, x: where(uf.logical_and(uf.greater(x, 0), uf.less(x, 6)), t,
                                     zeros_like(t)))


@fused
def relu6(x: ArrayLike) -> Array:
    """min(max(x, 0), 6); its derivative at 0 and 6 is 0."""
    return _relu6(as_array(x))


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
    return where(uf.less_equal(x, -1.0), 0.0, where(uf.greater_equal(x, 1.0), x, middle))


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
    return uf.multiply(x, el.tanh(softplus(x)))


def tanh(x: ArrayLike, /) -> Array:
    """Hyperbolic tangent."""
    return el.tanh(x)


@fused
def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """x where positive, else alpha (exp(x) - 1)."""
    positive = uf.greater(x, 0)
    guarded = where(positive, 0.0, x)
    return where(positive, x, uf.multiply(alpha, el.expm1(guarded)))


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
    return where(uf.greater_equal(x, 0), x, uf.multiply(negative_slope, x))


@fused
def hard_tanh(x: ArrayLike) -> Array:
    """x limited to [-1, 1]."""
    return where(uf.greater(x, 1), 1, where(uf.less(x, -1), -1, x))


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
    x = unary_inexact(as_array, x)
    if not approximate:
        tail = special.erfc(uf.multiply(uf.negative(x), math.sqrt(0.5)))
        return uf.multiply(uf.multiply(0.5, x), tail)
    cube = uf.multiply(uf.square(x), x)
    inner = uf.multiply(math.sqrt(2 / math.pi), uf.add(x, uf.multiply(0.044715, cube)))
    return uf.multiply(x, uf.multiply(0.5, uf.add(1.0, el.tanh(inner))))


@fused(static=("axis",))
def glu(x: ArrayLike, axis: int = -1) -> Array:
    """The first half along an axis times the sigmoid of the second half.

    Raises ValueError where the axis has an odd size.
    """
    x = as_array(array_args("glu", x)[0])
    axis = canonical_axis(axis, x.ndim, "glu")
    size = x.shape[axis]
    if mod(size, 2):
        raise ValueError(f"glu: operand {x.aval}, axis {axis} given; an axis of even size is "
                         "required; pad it, or name another.")
    half = floor_div(size, 2)
    first, second = split(x, (half, half), axis)
    return uf.multiply(first, sigmoid(second))
