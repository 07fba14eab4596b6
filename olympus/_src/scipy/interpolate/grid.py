"""Interpolation on a rectangular grid of any number of axes."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.source import api_boundary
from ...base.typing import Array, ArrayLike
from ...core.trace import typeof
from ...numpy.conditions import clip
from ...numpy.creation import asarray
from ...numpy.joining import stack
from ...numpy.manipulation import broadcast_arrays, expand_dims
from ...numpy.promote import inexact, promote_dtypes
from ...numpy.selection import where
from ...numpy.sorting import searchsorted
from ...types import dtypes
from ...types.shape import definitely_equal, less
from ...types.tree_registry import register_pytree_node_class

_INTERPOLATIONS = ("linear", "nearest")


@register_pytree_node_class
class RegularGridInterpolator:
    """A function with given values on a rectangular grid, interpolated in between.

    A pytree: it passes through `jit`, and has derivatives with respect to grid and values.

    Args:
      points: for each axis, the coordinates [n_i] of the grid, all ascending or all descending, two
        or more.
      values: [n_1, …, n_d, …]; trailing axes are kept.
      method: "linear" or "nearest" (half way, the lower).
      bounds_error: refused; a compiled function cannot raise.
      fill_value: the value beyond the grid; None: the outermost cell's rule goes on.

    >>> import olympus.numpy as onp
    >>> from olympus.scipy.interpolate import RegularGridInterpolator
    >>> x, y = onp.arange(3.), onp.arange(4.)
    >>> plane = RegularGridInterpolator((x, y), x[:, None] + 10 * y)
    >>> print(plane(onp.array([[0.5, 2.5], [1.0, 9.0]])))
    [25.5  nan]
    """

    def __init__(self, points: Sequence[ArrayLike], values: ArrayLike, method: str = "linear",
                 bounds_error: bool = False, fill_value: ArrayLike | None = np.nan) -> None:
        if bounds_error:
            raise NotImplementedError("RegularGridInterpolator: bounds_error given; fill_value= is "
                                      "required: a compiled function cannot raise.")
        self.method = _check_interpolation(method)
        self.grid = tuple(inexact(asarray(p)) for p in points)
        self.values = inexact(asarray(values))
        if len(self.grid) > self.values.ndim:
            raise ValueError(f"RegularGridInterpolator: {len(self.grid)} axes of points and values "
                             f"{typeof(self.values)} given; an axis of values for each is "
                             "required.")
        for i, p in enumerate(self.grid):
            if p.ndim != 1 or less(p.shape[0], 2) or not definitely_equal(
                    p.shape[0], self.values.shape[i]):
                raise ValueError(f"RegularGridInterpolator: points[{i}] {typeof(p)} given for "
                                 f"values {typeof(self.values)}; a vector of two or more, as many "
                                 "as the values' axis has, is required.")
        beyond = self.fill_value = None if fill_value is None else asarray(fill_value)
        if beyond is not None and not dtypes.can_cast(beyond.dtype, self.values.dtype, "same_kind"):
            raise ValueError(f"RegularGridInterpolator: fill_value {typeof(beyond)} given; a "
                             f"number that values {typeof(self.values)} can hold is required.")

    def tree_flatten(self) -> tuple[tuple, tuple]:
        """For pytrees: the arrays, and the method."""
        return (self.grid, self.values, self.fill_value), (self.method,)

    @classmethod
    def tree_unflatten(cls, aux: tuple, children: tuple) -> RegularGridInterpolator:
        """The interpolator of these arrays, of whatever type they are."""
        self = object.__new__(cls)
        self.grid, self.values, self.fill_value = children
        self.method, = aux
        return self

    @api_boundary
    def __call__(self, xi: ArrayLike | Sequence[ArrayLike], method: str | None = None) -> Array:
        """The values at places.

        Args:
          xi: [..., d], or a tuple of d arrays of coordinates, which are broadcast; for one axis
            also a vector.
          method: other than the interpolator's.

        Returns:
          [..., *trailing axes of the values].
        """
        method = self.method if method is None else _check_interpolation(method)
        d = len(self.grid)
        if isinstance(xi, tuple):
            xi = stack(broadcast_arrays(*(xi[0] if len(xi) == 1 and isinstance(xi[0], tuple)
                                          else xi)), -1)
        xi = inexact(asarray(xi))
        if xi.ndim == 1:
            xi = xi.reshape(-1, d)
        if not definitely_equal(xi.shape[-1], d):
            raise ValueError(f"RegularGridInterpolator: places {typeof(xi)} given for a grid of "
                             f"{d} axes; so many coordinates on the last axis are required.")
        cells = [self._cell(p, xi[..., i]) for i, p in enumerate(self.grid)]
        values = self._linear(cells) if method == "linear" else self.values[
            tuple(where(part <= 0.5, i, i + 1) for i, part, _ in cells)]
        if self.fill_value is None:
            return values
        outside = asarray(sum(out for *_, out in cells) > 0)
        return where(self._behind(outside), self.fill_value, values)

    def _behind(self, x: Any) -> Array:
        """With an axis for each trailing one of the values."""
        trailing = self.values.ndim - len(self.grid)
        return expand_dims(x, tuple(range(x.ndim, x.ndim + trailing)))

    def _cell(self, p: Array, x: ArrayLike) -> tuple[Array, Array, Array]:
        """The interval of a coordinate, the part of it that lies before, 1 if beyond the grid."""
        p, x = (asarray(v) for v in promote_dtypes("RegularGridInterpolator", p, x, inexact=True))
        sign = where(p[-1] < p[0], -1, 1).astype(p.dtype)
        i = clip(searchsorted(p * sign, x * sign, side="right") - 1, 0, p.shape[0] - 2)
        outside = (x * sign < p[0] * sign) | (x * sign > p[-1] * sign)
        return i, (x - p[i]) / (p[i + 1] - p[i]), (outside | (x != x)).astype("int32")

    def _linear(self, cells: list[tuple[Array, Array, Array]]) -> Any:
        total = None
        for corner in itertools.product((0, 1), repeat=len(cells)):
            weight = None
            for (_, part, _), side in zip(cells, corner, strict=True):
                factor = part if side else 1 - part
                weight = factor if weight is None else weight * factor
            at = tuple(i + side for (i, *_), side in zip(cells, corner, strict=True))
            value = self.values[at] * self._behind(weight)
            total = value if total is None else total + value
        return total


def _check_interpolation(method: str) -> str:
    if method not in _INTERPOLATIONS:
        raise ValueError(f"RegularGridInterpolator: method {method!r} given; 'linear' or 'nearest' "
                         "is required.")
    return method
