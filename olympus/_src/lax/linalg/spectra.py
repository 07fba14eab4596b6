"""Gaps between eigenvalues, for the derivatives of spectral decompositions.

The derivative of a basis of eigenvectors divides by the gaps between eigenvalues: where two agree,
their eigenvectors are not determined and the derivative is infinite or NaN. The derivatives of the
eigenvalues and singular values themselves divide by nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...base.typing import Array, ArrayLike
from ...core.trace import typeof
from ...types.shape import sequence, static_int
from ..arithmetic import div
from ..comparison import select
from ..convert import convert_element_type
from ..creation import full_like
from ..shape import broadcast_in_dim
from ..slicing import slice_in_dim
from .core import on_diagonal, take_rows
from .lu import lu
from .solve import triangular_solve


def as_dtype(x: ArrayLike, like: ArrayLike) -> Array:
    """x in the dtype of `like`."""
    return convert_element_type(x, typeof(like).dtype)


def pairs(op: Callable[[Array, Array], Array], w: ArrayLike) -> Array:
    """w[..., n] -> [..., n, n]: op(w_j, w_i) at row i and column j."""
    *batch, n = range(typeof(w).ndim)
    shape = (*typeof(w).shape, typeof(w).shape[-1])
    return op(broadcast_in_dim(w, shape, (*batch, n + 1)), broadcast_in_dim(w, shape, (*batch, n)))


def off_diagonal_inverse(x: ArrayLike) -> Array:
    """1/x[..., n, n] beside the diagonal and 0 on it; its derivative on the diagonal is 0 too."""
    aval = typeof(x)
    skip = broadcast_in_dim(on_diagonal(x), aval.shape, (aval.ndim - 2, aval.ndim - 1))
    inverse = div(1.0, select(skip, full_like(x, 1), x))
    return select(skip, full_like(x, 0), inverse)


def left_divided(v: ArrayLike, x: Array) -> Array:
    """v⁻¹ x, by the LU factorisation of v[..., n, n]."""
    factors, _, order = lu(v)
    x = triangular_solve(factors, take_rows(x, order), left_side=True, lower=True,
                         unit_diagonal=True)
    return triangular_solve(factors, x, left_side=True)


def check_subset(name: str, subset_by_index: Sequence[int] | None, n: int
                 ) -> tuple[int, int] | None:
    """(start, end) as ints, None if that is all n. Raises ValueError if it is no such range."""
    if subset_by_index is None:
        return None
    bounds = tuple([static_int(i, name, "subset_by_index")
                    for i in sequence(subset_by_index, name, "subset_by_index")])
    if len(bounds) != 2:
        raise ValueError(f"{name}: subset_by_index {bounds} given; (start, end) is required.")
    start, end = bounds
    if not 0 <= start < end <= n:
        raise ValueError(f"{name}: subset_by_index {bounds} given; 0 <= start < end"
                         f" <= {n} is required: a half-open range of the values in their order.")
    return None if (start, end) == (0, n) else (start, end)


def subset(x: Array, bounds: tuple[int, int] | None, axis: int) -> Array:
    """x from `start` to `end` along an axis."""
    return x if bounds is None else slice_in_dim(x, *bounds, axis=axis)
