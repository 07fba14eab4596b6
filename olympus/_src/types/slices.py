"""Slices of static size at computed starts, as indices of arrays and references."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

from ..base.source import api_boundary
from ..base.typing import ArrayLike
from ..base.util import ByKey, clipped
from .tree_registry import register_pytree_node

Static = tuple[tuple[bool, ArrayLike | None], ...]      # for each part whether it is static


class Slice(ByKey):
    """`size` elements from `start` on, `stride` apart: an index, made by `ds`.

    The start may be a traced integer. The size may be, too, where an index map returns it for a
    `BoundedSlice`.

    >>> from olympus.experimental import pallas as pl
    >>> pl.Slice(2, 4)
    Slice(2, 4)
    """

    __slots__ = ("start", "size", "stride")

    def __init__(self, start: ArrayLike, size: ArrayLike, stride: int = 1) -> None:
        start, size = [operator.index(x) if isinstance(x, np.integer) else x for x in (start, size)]
        if not isinstance(stride, int) or stride < 1:
            raise ValueError(f"ds: stride {clipped(stride)} given: `stride` must be >= 1; an int "
                             "is required.")
        if isinstance(size, int) and size < 0:
            raise ValueError(f"ds: size {size} given: `size` must be >= 0.")
        self.start: Any = start
        self.size: Any = size
        self.stride: Any = stride

    def _key(self) -> tuple[object, ...]:
        return self.start, self.size, self.stride

    def __repr__(self) -> str:
        more = f", {self.stride}" if self.stride != 1 else ""
        return f"Slice({self.start}, {self.size}{more})"

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the start is no int."""
        return not isinstance(self.start, int)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether the size is no int."""
        return not isinstance(self.size, int)

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """The elements of a Python slice of an axis of `size`; ValueError for a negative step."""
        start, stop, step = slc.indices(size)
        if step < 1:
            raise ValueError(f"Slice.from_slice: {slc} given; a positive step is required.")
        return cls(start, max(-(-(stop - start) // step), 0), step)


def _parts(x: Slice) -> tuple[tuple[ArrayLike, ...], Static]:
    """The traced parts of a slice, and the static ones."""
    static = [(isinstance(v, int), v if isinstance(v, int) else None) for v in (x.start, x.size)]
    leaves = [v for v in (x.start, x.size) if not isinstance(v, int)]
    return tuple(leaves), (*static, (True, x.stride))


def _of_parts(aux: Static, leaves: Iterable[ArrayLike]) -> Slice:
    given: Any = iter(leaves)
    out = object.__new__(Slice)
    out.start, out.size, out.stride = [v if known else next(given) for known, v in aux]
    return out


register_pytree_node(Slice, _parts, _of_parts)


@api_boundary
def dslice(start: ArrayLike | None, size: ArrayLike | None = None, stride: int | None = None
           ) -> slice | Slice:
    """An index of an array or reference: `size` elements from `start` on.

    Args:
      start: the first element, an int or a traced integer; without a size, the number of elements
        from 0 on, and None is all of them. A negative one counts from the end of an array.
      size: how many elements, an int.
      stride: the distance between two elements, an int.

    Returns:
      A `Slice`; a Python slice if all elements are meant.

    A traced window that would reach outside is moved inside, as by `dynamic_slice`, and
    `x.at[ds(i, n)].set(y)` writes nothing then. Raises IndexError for a known window of an array
    that reaches outside, ValueError for a negative size and for a stride that is not positive.

    >>> x = onp.arange(6)
    >>> print(x[olympus.ds(2, 3)], olympus.jit(lambda x, i: x[olympus.ds(i, 2)])(x, 3))
    [2 3 4] [3 4]
    >>> print(olympus.new_ref(x)[olympus.ds(0, 2, 3)])
    [0 3]
    """
    if start is None:
        return slice(None, None, stride)
    if size is None:
        if not isinstance(start, int):
            raise TypeError(f"ds: {clipped(start)} given as the number of elements; an int is "
                            "required; give a start and a size.")
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)
