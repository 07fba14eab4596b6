"""Window functions: weights that taper a finite signal towards both ends."""

from __future__ import annotations

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike
from ..jit.fused import fused
from ..lax import arithmetic, shape as lax_shape
from ..lax.arithmetic import div, mul, sub
from ..lax.special.classical import bessel_i0e
from ..lax.transcendental import exp
from ..types import dtypes
from ..types.shape import static_int
from .creation import asarray
from .promote import promote_dtypes


def _window_size(name: str, M: int) -> int:
    """The number of weights: none below 1."""
    size = max(0, static_int(M, name, "M"))
    if size >= 2**31:
        raise ValueError(f"{name}: M {M} given; a number below 2**31 is required.")
    return size


def _cosines(name: str, M: int, *weights: float) -> Array:
    """The sum of weights[j] cos(2 pi j n / (M - 1)), rounded once to the default float dtype."""
    size = _window_size(name, M)
    phase = 2 * np.pi * np.arange(size) / max(1, size - 1)
    values = sum(w * np.cos(j * phase) for j, w in enumerate(weights))
    return asarray(np.ones(size) if size == 1 else values, dtypes.default_float())


@api_boundary
def bartlett(M: int) -> Array:
    """The triangular window: weights that rise evenly from 0 to 1 and fall back to 0.

    >>> print(onp.bartlett(5))
    [0.  0.5 1.  0.5 0. ]
    """
    size = _window_size("bartlett", M)
    return asarray(np.bartlett(size), dtypes.default_float())


@api_boundary
def blackman(M: int) -> Array:
    """Blackman's window of three cosine terms: 0.42 - 0.5 cos(t) + 0.08 cos(2t), t in [0, 2 pi].

    >>> print(onp.blackman(5).round(2))
    [-0.    0.34  1.    0.34 -0.  ]
    """
    return _cosines("blackman", M, 0.42, -0.5, 0.08)


@api_boundary
def hamming(M: int) -> Array:
    """Hamming's window, a raised cosine that ends above 0: 0.54 - 0.46 cos(t), t in [0, 2 pi].

    >>> print(onp.hamming(3))
    [0.08 1.   0.08]
    """
    return _cosines("hamming", M, 0.54, -0.46)


@api_boundary
def hanning(M: int) -> Array:
    """The window of von Hann, a raised cosine that ends at 0: 0.5 - 0.5 cos(t), t in [0, 2 pi].

    >>> print(onp.hanning(5))
    [0.  0.5 1.  0.5 0. ]
    """
    return _cosines("hanning", M, 0.5, -0.5)


@fused(static=("M",))
def kaiser(M: int, beta: ArrayLike) -> Array:
    """Kaiser's window: I0(beta sqrt(1 - t**2)) / I0(beta), t in [-1, 1].

    Args: beta: a scalar, which may be traced: how narrow the window is; 0 is a rectangle.
    Returns: float32[M] (float64 with x64 on). Large `beta` do not overflow, as they do in NumPy.

    >>> print(onp.kaiser(5, 0.0))
    [1. 1. 1. 1. 1.]
    """
    size = _window_size("kaiser", M)
    beta, _ = promote_dtypes("kaiser", beta, dtypes.default_float().type(0))
    if beta.shape:
        raise ValueError(f"kaiser: beta {beta.aval} given; a scalar is required; map over it with "
                         "vmap.")
    t = np.linspace(-1.0, 1.0, size) if size > 1 else np.zeros(size)
    factors = asarray(np.sqrt(1 - t * t), beta.dtype)
    beta = arithmetic.abs(lax_shape.broadcast(beta, (size,)))
    inner = mul(beta, factors)
    return mul(div(bessel_i0e(inner), bessel_i0e(beta)), exp(sub(inner, beta)))


complete_docstrings(globals(), {
    "M": "the number of weights, a static int; below 1 the result has none.",
}, returns="float32[M] (float64 with x64 on).")
