"""Arrays as sets: unique and its relatives, intersections, differences, membership.

How many elements a set has decides a shape. So these functions need concrete arrays, which NumPy
then counts, or `size`, which fixes the shape: what is missing is `fill_value`, by default the
smallest element; what is too much is cut off.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..lax import creation, cumulative
from ..lax import sort as lax_sort
from ..transforms.fused import fused
from ..types import dtypes
from ..types.shape import canonical_axis, definitely_equal, prod
from . import promote
from .indexing import concrete, take, write
from .joining import concatenate
from .manipulation import as_array, moveaxis, ravel, reshape
from .promote import array_args
from .selection import nonzero, where
from .sorting import searchsorted, sort

__all__ = [
    "intersect1d", "isin", "setdiff1d", "setxor1d", "union1d", "unique", "unique_all",
    "unique_counts", "unique_inverse", "unique_values",
]

_INT32 = dtypes.as_dtype("int32")
_REMEDY = "pass size=..."


class UniqueAll(NamedTuple):
    """What `unique_all` returns."""

    values: Any
    indices: Any
    inverse_indices: Any
    counts: Any


class UniqueCounts(NamedTuple):
    """What `unique_counts` returns."""

    values: Any
    counts: Any


class UniqueInverse(NamedTuple):
    """What `unique_inverse` returns."""

    values: Any
    inverse_indices: Any


def unique(ar: Any, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: Any = None, sorted: bool = True) -> Any:
    """The different elements (of the flattened array), or slices along an axis, in order.

    Args:
      ar: array.
      return_index: also return the place of the first occurrence of each.
      return_inverse: also return, for each element, the place of its value in the result.
      return_counts: also return how often each occurs.
      axis: compare whole slices along this axis.
      equal_nan: whether NaNs count as one value.
      size: how many to return; required where `ar` is traced.
      fill_value: what is returned where there are fewer; the smallest by default.
      sorted: accepted; the result is always sorted.

    Raises ConcretizationTypeError for a traced array without `size`.

    >>> import olympus.numpy as onp
    >>> print(onp.unique(onp.array([3, 1, 3])))
    [1 3]
    """
    ar = as_array(array_args("unique", ar)[0])
    shape = ar.shape
    if axis is None:
        rows = reshape(ar, (prod(shape), 1))
    else:
        axis = canonical_axis(axis, len(shape), "unique")
        ar = moveaxis(ar, axis, 0)
        rows = reshape(ar, (ar.shape[0], prod(ar.shape[1:])))
    if size is None:
        size = _count(concrete("unique", rows, "the array", _REMEDY), equal_nan)
    fill = () if fill_value is None else (promote.convert(
        array_args("unique", fill_value)[0], ar.dtype),)
    first, inverse, counts, values = _unique(rows, *fill, size=int(size), equal_nan=equal_nan)
    if axis is None:
        out = [ravel(values)]
        inverse = reshape(inverse, shape)
    else:
        out = [moveaxis(reshape(values, (size, *ar.shape[1:])), 0, axis)]
    out += [x for x, wanted in ((first, return_index), (inverse, return_inverse),
                                (counts, return_counts)) if wanted]
    return out[0] if len(out) == 1 else tuple(out)


def _count(rows: np.ndarray, equal_nan: bool) -> int:
    """How many different rows there are."""
    if definitely_equal(rows.shape[1], 1):
        return int(np.unique(rows[:, 0], equal_nan=equal_nan).size)
    return len(np.unique(rows, axis=0, equal_nan=equal_nan)) if rows.size else min(1, len(rows))


@fused(static=("size", "equal_nan"))
def _unique(rows: Any, *fill: Any, size: int, equal_nan: bool) -> tuple[Any, ...]:
    """(first places, inverse, counts, values) of rows [n, k]: sorted, then marked at changes."""
    n, width = rows.shape
    if not n:
        filler = fill[0] if fill else creation.full((), 0, rows.dtype)
        return (creation.full((size,), 0, _INT32), creation.full((0,), 0, _INT32),
                creation.full((size,), 0, _INT32), promote.broadcast_to(filler, (size, width)))
    columns = [rows[:, k] for k in range(width)]
    places = creation.iota(_INT32, n)
    *columns, order = lax_sort.sort((*columns, places), 0, True, max(width, 1) if width else 1)
    differs: Any = creation.full((n - 1,), False, np.bool_)
    for column in columns:
        a, b = column[:-1], column[1:]
        change = a != b
        if equal_nan and dtypes.is_inexact(rows.dtype):
            change = change & ~((a != a) & (b != b))
        differs = differs | change
    steps = concatenate([creation.full((1,), 0, _INT32), promote.convert(differs, _INT32)])
    group = cumulative.cumsum(steps, 0)
    inverse = write("set", creation.full((n,), 0, _INT32), order, group)
    counts = write("add", creation.full((size,), 0, _INT32), group, 1)
    first = write("min", creation.full((size,), n, _INT32), group, order)
    used = counts > 0
    first = where(used, first, first[0]) if size else first
    values = take(rows, first, 0, mode="clip")
    if fill:
        values = where(used[:, None], values, fill[0])
    return first, inverse, counts, values


def unique_all(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueAll:
    """The different elements with first places, inverse and counts; NaNs are all different."""
    return UniqueAll(*unique(x, True, True, True, equal_nan=False, size=size,
                             fill_value=fill_value))


def unique_counts(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueCounts:
    """The different elements, and how often each occurs; NaNs are all different."""
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False, size=size,
                                fill_value=fill_value))


def unique_inverse(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> UniqueInverse:
    """The different elements, and where each element of `x` is among them."""
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False, size=size,
                                 fill_value=fill_value))


def unique_values(x: Any, /, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The different elements; NaNs are all different."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# Several sets ------------------------------------------------------------------------------------

def _vectors(name: str, *arrays: Any) -> list[Any]:
    return [ravel(as_array(x)) for x in promote.promote_dtypes(name, *arrays)]


def union1d(ar1: Any, ar2: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The elements that are in either array, sorted."""
    return unique(concatenate(_vectors("union1d", ar1, ar2)), size=size, fill_value=fill_value)


def isin(element: Any, test_elements: Any, assume_unique: bool = False, invert: bool = False, *,
         method: str = "auto") -> Any:
    """Whether each element is among the test elements: bool[...] of the first's shape.

    `assume_unique` has no effect. `method` is "auto", "compare_all", "binary_search" or "sort";
    the first compares all pairs where there are few. Raises ValueError for another.
    """
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"isin: method {method!r} given; 'auto', 'compare_all', 'binary_search' "
                         "or 'sort' is required.")
    element, tests = [as_array(x) for x in promote.promote_dtypes("isin", element, test_elements)]
    tests = ravel(tests)
    few = tests.shape[0] <= 32 or dtypes.is_complex(tests.dtype)
    pairs = method == "compare_all" or (method == "auto" and few)
    return _isin(element, tests, invert=bool(invert), pairs=pairs)


@fused(static=("invert", "pairs"))
def _isin(element: Any, tests: Any, *, invert: bool, pairs: bool) -> Any:
    n = tests.shape[0]
    if not n:
        return creation.full(element.shape, invert, np.bool_)
    if pairs:
        found: Any = element == tests[0]
        for k in range(1, min(n, 8)):
            found = found | (element == tests[k])
        if n > 8:
            found = found | (element[..., None] == tests[8:]).any(-1)
    else:
        tests = sort(tests)
        found = take(tests, searchsorted(tests, element), 0, mode="clip") == element
    return ~found if invert else found


def setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None,
              fill_value: Any = None) -> Any:
    """The different elements of the first array that are not in the second, sorted.

    With `assume_unique` they are not sorted, but in the first array's order.
    """
    first = ravel(as_array(array_args("setdiff1d", ar1)[0]))
    keep = isin(first, ar2, invert=True)
    if size is None:
        places = np.flatnonzero(concrete("setdiff1d", keep, "the array", _REMEDY))
        found = take(first, places.astype(np.int32), 0, mode="clip")
        return found if assume_unique else unique(found)
    fill = 0 if fill_value is None else fill_value
    if not assume_unique:
        # Kept elements sort first; among those, each value once.
        order = lax_sort.sort((promote.convert(~keep, _INT32), first), 0, True, 2)
        kept, first = order[0] == 0, order[1]
        fresh = concatenate([creation.full((min(1, first.shape[0]),), True, np.bool_),
                             first[1:] != first[:-1]])
        keep = kept & fresh
    n = first.shape[0]
    places = nonzero(keep, size=size, fill_value=n)[0]
    return take(first, places, 0, mode="fill", fill_value=fill)


def intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False, *,
                size: int | None = None, fill_value: Any = None) -> Any:
    """The elements that are in both arrays, sorted; and where each is in them, if asked for.

    With `size`, missing values are `fill_value` (by default the smallest), missing places the
    sizes of the arrays.
    """
    first, second = _vectors("intersect1d", ar1, ar2)
    n1, n2 = first.shape[0], second.shape[0]
    if size is None:
        a = concrete("intersect1d", first, "the first array", _REMEDY)
        b = concrete("intersect1d", second, "the second array", _REMEDY)
        found, *where_in = np.intersect1d(a, b, assume_unique, return_indices=True)
        out = [as_array(x) for x in (found, *[w.astype(np.int32) for w in where_in])]
        return tuple(out) if return_indices else out[0]
    values, i1, _, counts = _unique_padded(first)
    inside = isin(values, second) & (counts > 0)
    places = nonzero(inside, size=size, fill_value=n1)[0]
    here = places < n1
    found = take(values, places, 0, mode="clip") if n1 else creation.full((size,), 0, first.dtype)
    smallest = found[0] if fill_value is None and size else fill_value
    found = where(here, found, 0 if smallest is None else smallest)
    if not return_indices:
        return found
    left = where(here, take(i1, places, 0, mode="clip") if n1 else 0, n1)
    values2, i2, _, counts2 = _unique_padded(second)
    spot = searchsorted(values2[:n2] if n2 else values2, found) if n2 else places
    real = where(counts2 > 0, values2, values2) if n2 else values2
    match = (real[None, :] == found[:, None]) & (counts2 > 0)[None, :] if n2 else None
    right = spot if match is None else take(i2, match.argmax(1), 0, mode="clip")
    return found, left, where(here, right, n2)


def _unique_padded(x: Any) -> tuple[Any, Any, Any, Any]:
    return unique(x, True, True, True, size=x.shape[0])


def setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False, *, size: int | None = None,
             fill_value: Any = None) -> Any:
    """The elements that are in exactly one of the arrays, sorted."""
    first, second = _vectors("setxor1d", ar1, ar2)
    both = concatenate([first, second])
    alone = concatenate([isin(first, second, invert=True), isin(second, first, invert=True)])
    if size is None:
        places = np.flatnonzero(concrete("setxor1d", alone, "the array", _REMEDY))
        return unique(take(both, places.astype(np.int32), 0, mode="clip"))
    marks, values = lax_sort.sort((promote.convert(~alone, _INT32), both), 0, True, 2)
    n = both.shape[0]
    fresh = concatenate([creation.full((min(1, n),), True, np.bool_), values[1:] != values[:-1]])
    keep = (marks == 0) & fresh
    places = nonzero(keep, size=size, fill_value=n)[0]
    found = take(values, places, 0, mode="clip") if n else creation.full((size,), 0, both.dtype)
    rest = values[0] if fill_value is None and n else 0 if fill_value is None else fill_value
    return where(places < n, found, rest)
