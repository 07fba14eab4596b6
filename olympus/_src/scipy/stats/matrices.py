"""Solves with triangular matrices, as densities of normal vectors need them."""

from __future__ import annotations

from typing import Any

from ...base.typing import Array
from ...lax.linalg.solve import triangular_solve
from ...numpy.manipulation import broadcast_to, expand_dims, squeeze
from ...types.shape import broadcast_shapes


def solve_lower(lower: Any, x: Any) -> Array:
    """L⁻¹ x for each vector along the last axis of x, float[..., n], and L, float[..., n, n]."""
    if lower.ndim == 2:     # one factor: one solve with as many right-hand sides as vectors
        columns = x.reshape(-1, x.shape[-1]).T
        return triangular_solve(lower, columns, left_side=True, lower=True).T.reshape(x.shape)
    batch = broadcast_shapes(lower.shape[:-2], x.shape[:-1])
    lower = broadcast_to(lower, (*batch, *lower.shape[-2:]))
    x = expand_dims(broadcast_to(x, (*batch, x.shape[-1])), -1)
    return squeeze(triangular_solve(lower, x, left_side=True, lower=True), -1)
