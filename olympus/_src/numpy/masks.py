"""Writes at a mask as a choice between old and new elements: no shape depends on the mask's values.

    x.at[:, mask, 0].set(y)     x: [5, 6, 7, 8]   mask: bool[6, 7]   y: [5, 1] or [5] ...
           |
           +--  x[:, :, :, 0] is the region, [5, 6, 7]; y without the axis that counts true elements
                gets the mask's two axes, of size 1, in its place

That works for traced masks, and spares concrete ones a program for each number of true elements.
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeGuard

import numpy as np

from ..base.typing import Array, ArrayLike
from ..base.util import memoize
from ..core.templates import by_identity
from ..lax import shape
from .index_plan import check_mask
from .promote import BOOL, array_args, broadcast_to

Shape = tuple[int, ...]


@by_identity
class Layout:
    """Where a mask's axes lie in a region, the array indexed with whole axes in the mask's place.

    One object per layout, compared by identity: calls of compiled functions take it as static.

    Attributes:
      place: the axis of the region where the mask's axes begin.
      axes: how many axes the mask has.
      counted: the axis that counts the true elements in the result of NumPy's `x[index]`.
      rank: of that result.
      empty: whether the mask has no elements, so that nothing is chosen.
    """

    __slots__ = ("place", "axes", "counted", "rank", "empty")

    def __init__(self, place: int, axes: int, counted: int, rank: int, empty: bool) -> None:
        self.place, self.axes, self.counted, self.rank = place, axes, counted, rank
        self.empty = empty

    def takes(self, values: Shape) -> bool:
        """Whether values of that shape broadcast along the axis that counts the true elements."""
        axis = self.counted - self.rank + len(values)
        return len(values) <= self.rank and (axis < 0 or values[axis] == 1)

    def values_shape(self, region: Shape) -> Shape:
        """The shape that values broadcast to: the region's, with one axis of 1 for the mask's."""
        rest = (*region[:self.place], *region[self.place + self.axes:])
        return (*rest[:self.counted], 1, *rest[self.counted:])

    def spread(self, values: Array, region: tuple[int, ...]) -> Array:
        """Values for each element of the region."""
        full = (*[1] * (self.rank - len(values.shape)), *values.shape)
        rest = (*full[:self.counted], *full[self.counted + 1:])
        return broadcast_to(shape.reshape(
            values, (*rest[:self.place], *[1] * self.axes, *rest[self.place:])), region)

    def over(self, mask: ArrayLike | None, region: tuple[int, ...]) -> Array | np.ndarray:
        """The mask for each element of the region."""
        if self.empty:
            return np.zeros(region, np.bool_)
        mask = array_args("indexing", mask)[0]
        after = len(region) - self.place - self.axes
        return broadcast_to(shape.reshape(mask, (*mask.shape, *[1] * after)), region)


@memoize(1024)
def _layout(place: int, axes: int, counted: int, rank: int, empty: bool) -> Layout:
    return Layout(place, axes, counted, rank, empty)


class Masked(NamedTuple):
    """An index with one mask, beside integers, slices, None and Ellipsis only.

    Attributes:
      index: the same index with whole axes in place of the mask.
      mask: bool array.
      layout: where its axes lie.
    """

    index: tuple[Any, ...]
    mask: Any
    layout: Layout


def masked_index(of: Shape, index: object) -> Masked | None:
    """The index of an array of that shape as one mask and whole axes; None for all other indices.

    Raises IndexError for a mask whose sizes differ from its axes'.
    """
    if type(index) is not tuple:
        if not _is_mask(index) or index.ndim > len(of):
            return None     # hot
        check_mask(index.shape, of, 0)
        layout = _layout(0, index.ndim, 0, len(of) - index.ndim + 1,
                         index.shape != of[:index.ndim])
        return Masked((Ellipsis,), index, layout)
    entries = index
    masks = [i for i, e in enumerate(entries) if _is_mask(e)]
    if not masks:
        return None     # hot
    if len(masks) != 1 or sum(e is Ellipsis for e in entries) > 1:
        return None
    if not all(i == masks[0] or _is_basic(e) for i, e in enumerate(entries)):
        return None
    at, mask = masks[0], entries[masks[0]]
    axes = [_axis_count(e) for e in entries]
    rest = len(of) - sum(axes)
    if rest < 0:
        return None     # `parse` refuses it
    before = entries[:at]
    start = sum(axes[:at]) + (rest if any(e is Ellipsis for e in before) else 0)
    check_mask(mask.shape, of, start)
    integers = [i for i, e in enumerate(entries) if _is_integer(e)]
    place = start - sum(i < at for i in integers) + sum(e is None for e in before)
    rank = len(of) - len(integers) - mask.ndim + 1 + sum(e is None for e in entries)
    apart = max([at, *integers]) - min([at, *integers]) > len(integers)
    layout = _layout(place, mask.ndim, 0 if apart else place, rank,
                     mask.shape != of[start:start + mask.ndim])
    return Masked((*before, *[slice(None)] * mask.ndim, *entries[at + 1:]), mask, layout)


def _is_mask(entry: object) -> TypeGuard[Array]:
    return getattr(entry, "dtype", None) == BOOL and hasattr(entry, "shape")


def _is_integer(entry: object) -> bool:
    return not (entry is None or entry is Ellipsis or isinstance(entry, slice) or _is_mask(entry))


def _is_basic(entry: object) -> bool:
    """Whether an entry other than the mask names no more than one place of one axis, or a slice."""
    if entry is None or entry is Ellipsis or isinstance(entry, slice):
        return True
    return not isinstance(entry, (bool, np.bool_, list, tuple, range)) and (
        getattr(entry, "shape", ()) == ())


def _axis_count(entry: object) -> int:
    if entry is None or entry is Ellipsis:
        return 0
    return entry.ndim if _is_mask(entry) else 1
