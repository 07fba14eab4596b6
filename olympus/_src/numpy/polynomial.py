"""Polynomials as arrays of coefficients, highest power first."""

from __future__ import annotations

from ..base.typing import Array, ArrayLike
from ..lax.creation import full
from ..loops.scan import scan
from ..transforms.fused import fused
from ..types.shape import broadcast_shapes, maximum, minimum, static_int
from .promote import promote_dtypes
from .ufuncs import add, multiply

__all__ = ["polyval"]


@fused(static=("unroll",))
def polyval(p: ArrayLike, x: ArrayLike, *, unroll: int = 16) -> Array:
    """Value of a polynomial by Horner's rule.

    Args:
      p: coefficients `[n, ...]`, highest power first; trailing axes broadcast against `x`.
      x: where to evaluate.
      unroll: how many steps of the loop to write out.

    >>> import olympus.numpy as onp
    >>> onp.polyval(onp.array([1., 0., 2.]), 3.)
    Array(11., dtype=float32)
    """
    p, x = promote_dtypes("polyval", p, x)
    if p.ndim == 0:
        raise ValueError(f"polyval: coefficients {p.aval} given; rank 1 or more is required; wrap "
                         "a constant as onp.array([c]).")
    shape = broadcast_shapes(p.shape[1:], x.shape)
    start = full(shape, 0, p.dtype)
    value, _ = scan(lambda y, c: (add(multiply(y, x), c), None), start, p,
                    unroll=minimum(static_int(unroll, "polyval", "unroll"),
                                   maximum(p.shape[0], 1)))
    return value
