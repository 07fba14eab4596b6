"""Arrays as sets: unique and its relatives, intersections, differences, membership.

How many elements a set has decides a shape. So these functions need concrete arrays, which NumPy
then counts, or `size`, which fixes the shape: missing elements are `fill_value`, by default the
smallest element; surplus elements are cut off.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike, DimSize
from ..core.trace import typeof
from ..jit.fused import fused, named
from ..lax import creation, cumulative, shape as lax_shape
from ..lax.sort import true_places_p
from ..types import dtypes
from ..types.shape import (
    bound_or, canonical_axis, canonical_dim, definitely_equal, known_less, less, minimum, prod,
    static_int,
)
from . import promote
from .indexing import concrete, need_size, take, write
from .joining import concatenate
from .manipulation import moveaxis, ravel, reshape
from .promote import array_args, to_array
from .selection import nonzero, where
from .sorting import argsort, searchsorted, sort, sort_by

_REMEDY = "pass size=..."


class UniqueAll(NamedTuple):
    """The result of `unique_all`."""

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCounts(NamedTuple):
    """The result of `unique_counts`."""

    values: Array
    counts: Array


class UniqueInverse(NamedTuple):
    """The result of `unique_inverse`."""

    values: Array
    inverse_indices: Array


@overload
def unique(ar: ArrayLike, return_index: Literal[False] = False,
           return_inverse: Literal[False] = False, return_counts: Literal[False] = False,
           axis: int | None = None, *, equal_nan: bool = True, size: int | None = None,
           fill_value: ArrayLike | None = None, sorted: bool = True) -> Array: ...


@overload
def unique(ar: ArrayLike, return_index: Literal[True], return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: ArrayLike | None = None,
           sorted: bool = True) -> tuple[Array, ...]: ...


@overload
def unique(ar: ArrayLike, return_index: bool = False, *, return_inverse: Literal[True],
           return_counts: bool = False, axis: int | None = None, equal_nan: bool = True,
           size: int | None = None, fill_value: ArrayLike | None = None,
           sorted: bool = True) -> tuple[Array, ...]: ...


@overload
def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False, *,
           return_counts: Literal[True], axis: int | None = None, equal_nan: bool = True,
           size: int | None = None, fill_value: ArrayLike | None = None,
           sorted: bool = True) -> tuple[Array, ...]: ...


@overload
def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: ArrayLike | None = None,
           sorted: bool = True) -> Array | tuple[Array, ...]: ...


@named
def unique(ar: ArrayLike, return_index: bool = False, return_inverse: bool = False,
           return_counts: bool = False, axis: int | None = None, *, equal_nan: bool = True,
           size: int | None = None, fill_value: ArrayLike | None = None,
           sorted: bool = True) -> Array | tuple[Array, ...]:
    """The distinct elements of the flattened array, or slices along an axis, in order.

    Args:
      ar: array.
      return_index: also return the place of the first occurrence of each.
      return_inverse: also return, for each element, the place of its value in the result.
      return_counts: also return how often each occurs.
      axis: compare whole slices along this axis.
      equal_nan: whether NaNs count as one value.
      size: how many to return; required where `ar` is traced.
      sorted: accepted; the result is always sorted.
    Returns: The values, a vector without `axis`; with any of the three `return_…` a tuple of them
      and the index vector, the inverse (of the shape of `ar` without `axis`) and the counts that
      were asked for, int32 (int64 with x64).

    Raises ConcretizationTypeError for a traced array without `size`.

    >>> print(onp.unique(onp.array([3, 1, 3])))
    [1 3]
    >>> print(onp.unique(onp.array([3, 1, 3]), size=4, fill_value=0))
    [1 3 0 0]
    """
    need_size("unique", size, ar=ar)
    ar = to_array(array_args("unique", ar)[0])
    shape, fill = ar.shape, ()
    if fill_value is not None:
        fill = (promote.convert(array_args("unique", fill_value)[0], ar.dtype),)
    if axis is None and not return_index and not return_inverse:
        return _unique_values(ravel(ar), fill, size, bool(equal_nan), return_counts)
    if axis is None:
        rows = reshape(ar, (prod(shape), 1))
    else:
        axis = canonical_axis(axis, len(shape), "unique")
        ar = moveaxis(ar, axis, 0)
        rows = reshape(ar, (ar.shape[0], prod(ar.shape[1:])))
    order, group = _groups(rows, equal_nan=bool(equal_nan))
    n = rows.shape[0]
    if size is None:
        size = int(concrete("unique", group, "the array", _REMEDY)[-1]) + 1 if n else 0
    size = _number_of_sets(size, n, ar, fill)
    first, inverse, counts, values = _members(rows, order, group, *fill, size=size)
    if axis is None:
        out = [ravel(values)]
        inverse = reshape(inverse, shape)
    else:
        out = [moveaxis(reshape(values, (size, *ar.shape[1:])), 0, axis)]
    out += [x for x, wanted in ((first, return_index), (inverse, return_inverse),
                                (counts, return_counts)) if wanted]
    return out[0] if len(out) == 1 else tuple(out)


def _number_of_sets(size: int, n: DimSize, ar: Array, fill: Sequence[Array]) -> int:
    """The size that was given, for n rows of an array."""
    size = canonical_dim(size, "unique: size")
    if size and not n and not fill:
        raise ValueError(f"unique: {typeof(ar)} with size={size} given; there is no element to "
                         "fill with; pass fill_value.")
    return size


def _unique_values(x: Array, fill: Sequence[Array], size: int | None, equal_nan: bool,
                   with_counts: bool) -> Array | tuple[Array, ...]:
    """`unique` of a vector where no places are wanted: its elements are sorted alone."""
    values, begins = _sets_of_sorted(x, equal_nan=equal_nan)
    if size is None:
        size = int(concrete("unique", begins, "the array", _REMEDY).sum())
    values, counts = _first_of_sets(values, begins, *fill, size=_number_of_sets(
        size, x.shape[0], x, fill))
    return (values, counts) if with_counts else values


def _differ(a: Array, b: Array, equal_nan: bool) -> Array:
    change = a != b
    if equal_nan and dtypes.is_inexact(a.dtype):
        change = change & ~((a != a) & (b != b))
    return change


@fused(static=("equal_nan",))
def _sets_of_sorted(x: Array, *, equal_nan: bool) -> tuple[Array, Array]:
    """A vector sorted, and whether each element is the first of its value."""
    x = sort(x)
    first = creation.full((minimum(x.shape[0], 1),), True, np.bool_)
    return x, concatenate([first, _differ(x[:-1], x[1:], equal_nan)])


@fused(static=("size",))
def _first_of_sets(x: Array, begins: Array, *fill: Array, size: int) -> tuple[Array, Array]:
    """(values, counts) of the first `size` sets of equal elements of a sorted vector."""
    n, dtype = x.shape[0], dtypes.default_int()
    if not n or not size:
        return (promote.broadcast_to(fill[0] if fill else creation.full((), 0, x.dtype), (size,)),
                creation.full((size,), 0, dtype))
    starts = true_places_p.bind(begins, size=size + 1, dtype=dtype)
    counts, starts = starts[1:] - starts[:-1], starts[:-1]
    used = counts > 0
    values = take(x, where(used, starts, 0), 0, mode="clip")
    return where(used, values, fill[0]) if fill else values, counts


@fused(static=("equal_nan",))
def _groups(rows: Array, *, equal_nan: bool) -> tuple[Array, Array]:
    """The places that sort rows [n, k], and for each of those the number of its set."""
    n, width = rows.shape
    indices = creation.iota(dtypes.default_int(), n)
    columns = [rows[:, k] for k in range(static_int(width, "sets", "number of columns"))]
    order = sort_by(columns, indices)[-1] if columns else indices
    differs: Any = creation.full((max(n - 1, 0),), False, np.bool_)
    for column in columns:
        column = take(column, order, 0, mode="clip")
        differs = differs | _differ(column[:-1], column[1:], equal_nan)
    steps = concatenate([creation.full((minimum(n, 1),), False, np.bool_), differs])
    return order, cumulative.cumsum(promote.convert(steps, dtypes.default_int()), 0)


@fused(static=("size",))
def _members(rows: Array, order: Array, group: Array, *fill: Array, size: int) -> tuple[Array, ...]:
    """(first places, inverse, counts, values) of the first `size` sets of equal rows."""
    n, width = rows.shape
    inverse = write("set", creation.full((n,), 0, group.dtype), order, group)
    counts = creation.full((size,), 0, group.dtype)
    if not n or not size:       # nothing to take, or nowhere to put it
        values = promote.broadcast_to(fill[0] if fill else creation.full((), 0, rows.dtype),
                                      (size, width))
        return counts, inverse, counts, values
    counts = write("add", counts, group, 1, mode="drop")
    used = counts > 0
    starts = cumulative.cumsum(counts, 0) - counts
    first = where(used, take(order, starts, 0, mode="clip"), order[0])
    values = take(rows, first, 0, mode="clip")
    if fill:
        values = where(lax_shape.broadcast_in_dim(used, values.shape, (0,)), values, fill[0])
    return first, inverse, counts, values


@named
def unique_all(x: ArrayLike, /, *, size: int | None = None,
               fill_value: ArrayLike | None = None) -> UniqueAll:
    """The distinct elements, their first indices, the inverse indices, and their counts.

    NaNs are all different, as the array API standard asks.

    Returns: A named tuple: sorted values, indices and counts, vectors, and inverse_indices of the
      shape of `x`.

    >>> found = onp.unique_all(onp.array([4, 2, 4]))
    >>> print(found.values, found.indices, found.inverse_indices, found.counts)
    [2 4] [1 0] [1 0 1] [1 2]
    """
    need_size("unique_all", size, x=x)
    return UniqueAll(*unique(x, True, True, True, equal_nan=False, size=size,
                             fill_value=fill_value))


@named
def unique_counts(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: ArrayLike | None = None) -> UniqueCounts:
    """The distinct elements and their counts; NaNs are all distinct.

    Args:
      fill_value: fills the result where there are fewer (with count 0); the smallest by default.
    Returns: A named tuple of two vectors: sorted values, counts.

    >>> found = onp.unique_counts(onp.array([4, 2, 4]))
    >>> print(found.values, found.counts)
    [2 4] [1 2]
    """
    need_size("unique_counts", size, x=x)
    return UniqueCounts(*unique(x, return_counts=True, equal_nan=False, size=size,
                                fill_value=fill_value))


@named
def unique_inverse(x: ArrayLike, /, *, size: int | None = None,
                   fill_value: ArrayLike | None = None) -> UniqueInverse:
    """The distinct elements, and the index of each element among them; NaNs are all distinct.

    Args: x: array; the values are the flattened array's.
    Returns: A named tuple: the vector of sorted values, and inverse_indices of the shape of `x`, so
      that values[inverse_indices] is `x`.

    >>> found = onp.unique_inverse(onp.array([4, 2, 4]))
    >>> print(found.values, found.inverse_indices)
    [2 4] [1 0 1]
    """
    need_size("unique_inverse", size, x=x)
    return UniqueInverse(*unique(x, return_inverse=True, equal_nan=False, size=size,
                                 fill_value=fill_value))


@named
def unique_values(x: ArrayLike, /, *, size: int | None = None,
                  fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements, sorted; NaNs are all distinct.

    Returns: A vector of the dtype of `x`.

    >>> print(onp.unique_values(onp.array([4, 2, 4])))
    [2 4]
    """
    need_size("unique_values", size, x=x)
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# Several sets ------------------------------------------------------------------------------------

def _vectors(name: str, *arrays: ArrayLike) -> list[Array]:
    return [ravel(to_array(x)) for x in promote.promote_dtypes(name, *arrays)]


@named
def union1d(ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements that are in either array, sorted.

    Args: size: how many to return; required where one is traced.
    Returns: A vector of the promoted dtype.

    >>> print(onp.union1d(onp.array([3, 1, 3]), onp.array([2, 1])))
    [1 2 3]
    """
    need_size("union1d", size, ar1=ar1, ar2=ar2)
    return unique(concatenate(_vectors("union1d", ar1, ar2)), size=size, fill_value=fill_value)


@named
def isin(element: ArrayLike, test_elements: ArrayLike, assume_unique: bool = False,
         invert: bool = False, *, method: str = "auto", kind: str | None = None) -> Array:
    """Whether each element is among the test elements. NaN is among none.

    Args:
      element: array.
      test_elements: array, flattened.
      assume_unique: has no effect.
      invert: whether to return the opposite.
      method: "auto", "compare_all", "binary_search" or "sort". "compare_all" compares all pairs,
        "auto" does where there are few; the others sort the test elements.
      kind: None, "sort" or "table", NumPy's; has no effect.
    Returns: bool of the shape of `element`.

    Raises ValueError for another method.

    >>> print(onp.isin(onp.array([[1, 2], [3, 4]]), onp.array([2, 3])))
    [[False  True]
     [ True False]]
    """
    if kind not in (None, "sort", "table"):
        raise ValueError(f"isin: kind {kind!r} given; None, 'sort' or 'table' is required.")
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"isin: method {method!r} given; 'auto', 'compare_all', 'binary_search' "
                         "or 'sort' is required.")
    element, tests = [to_array(x) for x in promote.promote_dtypes("isin", element, test_elements)]
    tests = ravel(tests)
    few = dtypes.is_complex(tests.dtype) or known_less(tests.shape[0], 33)
    by_pairs = method == "compare_all" or (method == "auto" and few)
    return _isin(element, tests, invert=bool(invert), by_pairs=by_pairs)


@fused(static=("invert", "by_pairs"))
def _isin(element: Array, tests: Array, *, invert: bool, by_pairs: bool) -> Array:
    n = tests.shape[0]
    if not n:
        return creation.full(element.shape, invert, np.bool_)
    if by_pairs:
        first = min(bound_or(n, 0), 8)
        among: Any = False
        for k in range(first):
            among = (element == tests[k]) | among
        if not definitely_equal(first, n):
            shape = (*element.shape, n - first)
            pairs = (lax_shape.broadcast_in_dim(element, shape, tuple(range(element.ndim)))
                     == promote.broadcast_to(tests[first:], shape))
            among = pairs.any(-1) | among
    else:
        tests = sort(tests)
        among = take(tests, searchsorted(tests, element), 0, mode="clip") == element
    return ~among if invert else among


def _set(x: Array) -> tuple[Array, Array]:
    """The different elements of a vector, sorted and filled up to its size, and which are real."""
    values, counts = unique(x, return_counts=True, size=x.shape[0])
    return values, counts > 0


def _selected(name: str, keep: Array, values: Array, size: int | None, fill_value: ArrayLike | None
              ) -> tuple[Array, Array]:
    """The values that are kept, and their places: the number of values where there are fewer.

    The default `fill_value` is the first of those found.
    """
    if size is None:
        size = int(concrete(name, keep, "the array", _REMEDY).sum())
    size, n = canonical_dim(size, f"{name}: size"), values.shape[0]
    indices = nonzero(keep, size=size, fill_value=n)[0]
    (fill,) = array_args(name, 0 if fill_value is None else fill_value)
    fill = promote.convert(fill, values.dtype)
    if not n or not size:
        return promote.broadcast_to(to_array(fill), (size,)), indices
    chosen = take(values, indices, 0, mode="clip")
    return where(less(indices, n), chosen, chosen[0] if fill_value is None else fill), indices


@named
def setdiff1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
              size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The distinct elements of the first array that are not in the second, sorted.

    Args:
      assume_unique: whether to leave the elements in the order, and as often, as the first array
        has them.
      size: how many to return; required where one is traced.
      fill_value: fills the result where there are fewer; 0 by default.
    Returns: A vector of the dtype of `ar1`.

    >>> print(onp.setdiff1d(onp.array([3, 1, 3, 2]), onp.array([2])))
    [1 3]
    """
    need_size("setdiff1d", size, ar1=ar1, ar2=ar2)
    values, real = ravel(to_array(array_args("setdiff1d", ar1)[0])), True
    if not assume_unique:
        values, real = _set(values)
    keep = isin(values, ar2, invert=True) & real
    return _selected("setdiff1d", keep, values, size, 0 if fill_value is None else fill_value)[0]


@overload
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False,
                return_indices: Literal[False] = False, *, size: int | None = None,
                fill_value: ArrayLike | None = None) -> Array: ...


@overload
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
                return_indices: Literal[True], size: int | None = None,
                fill_value: ArrayLike | None = None) -> tuple[Array, Array, Array]: ...


@overload
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False,
                return_indices: bool = False, *, size: int | None = None,
                fill_value: ArrayLike | None = None) -> Array | tuple[Array, Array, Array]: ...


@named
def intersect1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False,
                return_indices: bool = False, *, size: int | None = None,
                fill_value: ArrayLike | None = None) -> Array | tuple[Array, Array, Array]:
    """The distinct elements that are in both arrays, sorted. NaN is in no other array.

    Args:
      assume_unique: has no effect.
      return_indices: also return where each element is first in `ar1` and in `ar2`.
      size: how many to return; required where one is traced.
      fill_value: fills the result where there are fewer, the smallest by default; missing places
        are
        the sizes of the arrays.
    Returns: A vector of the promoted dtype; with `return_indices` a tuple of it and two vectors of
      integers.

    >>> print(onp.intersect1d(onp.array([3, 1, 3, 2]), onp.array([2, 3])))
    [2 3]
    """
    need_size("intersect1d", size, ar1=ar1, ar2=ar2)
    first, second = _vectors("intersect1d", ar1, ar2)
    n1, n2 = first.shape[0], second.shape[0]
    values, left, counts = unique(first, True, return_counts=True, size=n1)
    keep = isin(values, second) & (counts > 0)
    common, indices = _selected("intersect1d", keep, values, size, fill_value)
    if not return_indices:
        return common
    if not n1 or not n2:
        return common, indices, indices - n1 + n2
    order, here = argsort(second), less(indices, n1)
    spots = searchsorted(second, common, sorter=order)
    return (common, where(here, take(left, indices, 0, mode="clip"), n1),
            where(here, take(order, spots, 0, mode="clip"), n2))


@named
@described_like(union1d)
def setxor1d(ar1: ArrayLike, ar2: ArrayLike, assume_unique: bool = False, *,
             size: int | None = None, fill_value: ArrayLike | None = None) -> Array:
    """The elements that are in exactly one of the arrays, sorted; each array's NaN is such a one.

    Args: assume_unique: promise that no array holds an element twice.

    >>> print(onp.setxor1d(onp.array([3, 1, 2]), onp.array([2, 5])))
    [1 3 5]
    """
    need_size("setxor1d", size, ar1=ar1, ar2=ar2)
    arrays = _vectors("setxor1d", ar1, ar2)
    sets = [(x, creation.full(x.shape, True, np.bool_)) if assume_unique else _set(x)
            for x in arrays]
    values, real = [concatenate(parts) for parts in zip(*sets)]
    values, real = sort_by([~real, values], real)
    end = creation.full((minimum(1, real.shape[0]),), True, np.bool_)
    differs = (values[1:] != values[:-1]) | ~real[1:]
    keep = concatenate([end, differs]) & concatenate([differs, end]) & real
    return _selected("setxor1d", keep, values, size, fill_value)[0]


complete_docstrings(globals(), {
    "size": "how many to return; required where `x` is traced.",
    "fill_value": "what is returned where there are fewer; the smallest by default.",
    "x": "array; it is flattened.",
    "ar1, ar2": "arrays, which are flattened.",
})
