"""Softmax, layer and RMS normalisation along the last axis, by kernels of rows and plainly."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, Reference
from ..jit.jit import jit
from ..kernels.call import pallas_call
from ..kernels.specs import BlockSpec
from ..lax.transcendental import rsqrt
from ..numpy.arithmetic import maximum, square
from ..numpy.elementary import exp
from ..types.shape import floor_div, prod

_F32 = np.float32


def _by_rows(f: Callable[..., Array], name: str, interpret: bool, x: Array, *vectors: Array
             ) -> Array:
    """`f` of float32 rows [m, n] of x and of vectors [n], by a kernel of up to 128 rows."""
    n, rows = x.shape[-1], prod(x.shape[:-1])
    block = math.gcd(rows, 128)     # whole blocks: padding is NaN, and would be in derivatives

    def kernel(*refs: Reference) -> None:
        *ins, out = refs
        out[...] = f(*[ref[...].astype(_F32) for ref in ins]).astype(out.dtype)

    spec = BlockSpec((block, n), lambda i: (i, 0))
    flat = x.reshape(rows, n)
    return pallas_call(kernel, flat.aval.strong(), grid=floor_div(rows, block) if block else 0,
                       in_specs=[spec, *[BlockSpec()] * len(vectors)], out_specs=spec,
                       interpret=interpret, name=name)(flat, *vectors).reshape(x.shape)


@partial(jit, static_argnames=("axis", "num_warps", "interpret", "debug"))
def softmax(x: Array, *, axis: int = -1, num_warps: int = 4, interpret: bool = False,
            debug: bool = False) -> Array:
    """exp(x) / sum of exp(x) along the last axis, by a kernel of rows.

    Args:
      axis: the last axis.
      debug: has no effect.

    Raises:
      NotImplementedError: another axis.

    >>> from olympus.experimental.pallas.ops.gpu.softmax import softmax
    >>> print(softmax(onp.zeros((1, 4)), interpret=True))
    [[0.25 0.25 0.25 0.25]]
    """
    if axis not in (-1, x.ndim - 1):
        raise NotImplementedError(f"softmax: axis {axis} of {x.aval} given; the last one is "
                                  "required; move it there, or use nn.softmax.")

    def rows(x: Array) -> Array:
        e = exp(x - x.max(-1, keepdims=True))
        return e / e.sum(-1, keepdims=True)

    return _by_rows(rows, "softmax", interpret, x)


_STATIC = "num_warps", "num_stages", "eps", "backward_pass_impl", "interpret"


@partial(jit, static_argnames=_STATIC)
def layer_norm(x: Array, weight: Array, bias: Array, num_warps: int | None = None,
               num_stages: int | None = 3, eps: float = 1e-5, backward_pass_impl: str = "triton",
               interpret: bool = False) -> Array:
    """(x - mean) / sqrt(variance + eps) weight + bias along the last axis, by a kernel of rows.

    >>> from olympus.experimental.pallas.ops.gpu.layer_norm import layer_norm
    >>> x = onp.array([[[1., 3.]]])
    >>> print(layer_norm(x, onp.ones(2), onp.zeros(2), eps=0.0, interpret=True))
    [[[-1.  1.]]]
    """
    def rows(x: Array, weight: Array, bias: Array) -> Array:
        x = x - x.mean(-1, keepdims=True)
        return x * rsqrt(square(x).mean(-1, keepdims=True) + eps) * weight + bias

    return _by_rows(rows, "layer_norm", interpret, x, weight, bias)


@partial(jit, static_argnames=_STATIC)
def rms_norm(x: Array, weight: Array, bias: Array, num_warps: int | None = None,
             num_stages: int | None = 3, eps: float = 1e-5, backward_pass_impl: str = "triton",
             interpret: bool = False) -> Array:
    """x / sqrt(mean of squares + eps) weight + bias along the last axis, by a kernel of rows.

    >>> from olympus.experimental.pallas.ops.gpu.rms_norm import rms_norm
    >>> x = onp.array([[[3., 3.]]])
    >>> print(rms_norm(x, onp.ones(2), onp.zeros(2), eps=0.0, interpret=True))
    [[[1. 1.]]]
    """
    def rows(x: Array, weight: Array, bias: Array) -> Array:
        return x * rsqrt(square(x).mean(-1, keepdims=True) + eps) * weight + bias

    return _by_rows(rows, "rms_norm", interpret, x, weight, bias)


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
    "interpret": "run the kernel as a compiled loop; nothing else can be done with it here.",
    "num_warps": "has no effect in interpret mode.",
    "num_stages": "has no effect in interpret mode.",
    "backward_pass_impl": "has no effect: derivatives are the kernel's own.",
}, returns="An array of the shape of x.")
