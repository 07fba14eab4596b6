"""Layer and RMS normalisation of [batch, rows, n] along the last axis."""

from __future__ import annotations

from functools import partial

from ..base.docstrings import complete_docstrings
from ..base.typing import Array
from ..jit.jit import jit
from ..lax.transcendental import rsqrt
from ..numpy.arithmetic import maximum, square


@partial(jit, static_argnames=("eps",))
def layer_norm_reference(x: Array, weight: Array, bias: Array, *, eps: float = 1e-5) -> Array:
    """(x - mean) / sqrt(variance + eps) weight + bias along the last axis of [batch, rows, n].

    >>> from olympus.experimental.pallas.ops.gpu import layer_norm
    >>> x = onp.array([[[1., 3.]]])
    >>> print(layer_norm.layer_norm_reference(x, onp.ones(2), onp.zeros(2), eps=0.0))
    [[[-1.  1.]]]
    """
    mean = x.mean(-1, keepdims=True)
    variance = maximum(0.0, square(x).mean(-1, keepdims=True) - square(mean))
    return (x - mean) * rsqrt(variance + eps) * weight + bias


@partial(jit, static_argnames=("eps",))
def rms_norm_reference(x: Array, weight: Array, bias: Array, *, eps: float = 1e-5) -> Array:
    """x / sqrt(mean of squares + eps) weight + bias along the last axis of [batch, rows, n].

    >>> from olympus.experimental.pallas.ops.gpu import rms_norm
    >>> x = onp.array([[[3., 3.]]])
    >>> print(rms_norm.rms_norm_reference(x, onp.ones(2), onp.zeros(2), eps=0.0))
    [[[1. 1.]]]
    """
    return x * rsqrt(square(x).mean(-1, keepdims=True) + eps) * weight + bias


complete_docstrings(globals(), {
    "x": "numbers [..., n].",
    "weight, bias": "numbers [n].",
    "eps": "added under the root.",
}, returns="An array of the shape of x.")
