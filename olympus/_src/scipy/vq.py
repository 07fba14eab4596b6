"""Vector quantisation."""

from __future__ import annotations

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike
from ..core.trace import typeof
from ..jit.fused import unasked
from ..numpy.creation import asarray
from ..numpy.elementary import sqrt
from ..numpy.indexing import take_along_axis
from ..numpy.promote import promote_dtypes
from ..numpy.reductions import argmin


@api_boundary
@unasked
def vq(obs: ArrayLike, code_book: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """The nearest code of each observation, and the distance to it.

    Args:
      obs: [m, n], or [m] for numbers.
      code_book: [k, n], or [k].
      check_finite: for SciPy's signature; NaNs give a distance of NaN.
    Returns: (code [m], an int; distance [m], Euclidean).

    >>> from olympus.scipy.cluster.vq import vq
    >>> code, distance = vq(onp.array([[0., 1.], [5., 5.]]), onp.array([[0., 0.], [5., 4.]]))
    >>> print(code, distance)
    [0 1] [1. 1.]
    """
    x, codes = (asarray(v) for v in promote_dtypes("vq", obs, code_book, inexact=True))
    if x.ndim != codes.ndim or x.ndim not in (1, 2) or x.shape[1:] != codes.shape[1:]:
        raise ValueError(f"vq: obs {typeof(x)} and code_book {typeof(codes)} given; two "
                         "vectors, or two matrices of as many columns, are required.")
    if x.ndim == 1:
        x, codes = x[:, None], codes[:, None]
    squares = ((x[:, None] - codes) ** 2).sum(-1)
    nearest = argmin(squares, -1)
    return nearest, sqrt(take_along_axis(squares, nearest[:, None], -1)[:, 0])
