"""Checks of the indices of an operation: those that reach outside of the indexed array."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ..base.typing import Array, DTypeLike, Params
from ..core.ir import Literal
from ..core.primitive import Primitive
from ..core.trace import literal, typeof
from ..lax.bits import bitwise_or
from ..lax.comparison import gt, lt, select
from ..lax.creation import full, iota
from ..lax.reduce import reduce_min, reduce_or
from ..lax.shape import broadcast_in_dim, reshape
from ..lax.slicing import dynamic_index_in_dim
from ..types import dtypes
from ..types.shape import definitely_equal, exceeds

INT32 = dtypes.as_dtype("int32")
Found = tuple[Any, list[Any], tuple[Sequence[int], tuple[int, ...], tuple[int, ...]]]


def outside(prim: Primitive, args: Sequence[Array], params: Params, places: bool
            ) -> Iterator[Found]:
    """For each operand of indices: whether any index is outside, details, and the layout.

    The details are [the first such index, its flat position among all components], or [] if that is
    unknown or `places` is false. The layout is (the axis of each component, the shape of the
    indexed array, the shape of the indices).
    """
    indexed = prim.indexed([*map(typeof, args)], params)
    if indexed is None:
        return
    first, axes, window = indexed
    if axes is None:
        yield from _by_axis(args[0], args[first:], window)
    else:
        yield from _in_rows(args[0], args[first], axes, window, places)


def _by_axis(operand: Array, starts: Sequence[Array], window: Sequence[int]) -> Iterator[Found]:
    shape = typeof(operand).shape
    for axis, (start, size) in enumerate(zip(starts, window, strict=True)):
        if type(start) is not Literal:
            last_start = _last(shape[axis], size, typeof(start).dtype)
            dtype = typeof(start).dtype
            failed = bitwise_or(lt(start, literal(0, dtype)), gt(start, literal(last_start, dtype)))
            yield failed, [start, literal(0, INT32)], ((axis,), shape, ())


def _in_rows(operand: Array, indices: Array, axes: Sequence[int], window: Sequence[int],
             places: bool) -> Iterator[Found]:
    """`outside` for one array of indices, whose last axis counts the components."""
    shape, aval = typeof(operand).shape, typeof(indices)
    if not axes or definitely_equal(aval.size, 0):
        return
    bounds = [_last(shape[a], window[a], aval.dtype) for a in axes]
    last_starts = (full(aval.shape, bounds[0], aval.dtype) if len(bounds) == 1 else
                   broadcast_in_dim(np.array(bounds, aval.dtype), aval.shape, (aval.ndim - 1,)))
    wrong = bitwise_or(lt(indices, full(aval.shape, 0, aval.dtype)), gt(indices, last_starts))
    failed, place = first_place(wrong, places)
    values = []
    if place is not None:
        index = dynamic_index_in_dim(reshape(indices, (aval.size,)), place, 0, False)
        values = [index, place]
    yield failed, values, (axes, shape, aval.shape[:-1])


def first_place(wrong: Array, asked: bool) -> tuple[Array, Array | None]:
    """Whether any element is true, and the flat index of the first one.

    The index is None if it is not `asked` for, and for rank 0, symbolic sizes, and arrays that
    their types shard over devices.
    """
    aval = typeof(wrong)
    shape, size = aval.shape, aval.size
    if not shape:
        return wrong, None
    if not asked or type(size) is not int or size >= 2 ** 31 or aval.explicit:
        return reduce_or(wrong, range(len(shape))), None
    numbers = reshape(iota(INT32, size), shape)
    place = reduce_min(select(wrong, numbers, full(shape, size, INT32)), range(len(shape)))
    return lt(place, literal(size, INT32)), place


def _last(size: int, window: int, dtype: DTypeLike) -> int:
    """The last start at which a window is inside, or the largest number of the dtype."""
    limit = int(dtypes.iinfo(dtype).max)
    return limit if exceeds(size - window, limit) else size - window
