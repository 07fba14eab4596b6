"""Order: sort, argsort, partition, top_k, and searches in sorted arrays."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DType, DTypeLike
from ..control_flow.while_loop import fori_loop
from ..core.trace import literal, typeof
from ..jit.fused import fused, named
from ..lax import creation, shape as lax_shape, sort as lax_sort
from ..lax.arithmetic import imag, real
from ..lax.barriers import held_p
from ..lax.bits import bitwise_or, shift_right_logical
from ..lax.comparison import le, lt, ne, select
from ..lax.families import add
from ..lax.indexing import PROMISE, GatherDimensionNumbers, gather_p
from ..lax.reduce import highest
from ..lax.sharding import constrain
from ..types import dtypes
from ..types.shape import (
    bit_length, canonical_axis, canonical_dim, entries, is_static, known_less, static_int,
)
from ..types.sharding import ShardingLike
from . import promote
from .conditions import where
from .indexing import concrete, take, take_along_axis, write
from .manipulation import flip, ravel
from .promote import array_args, refuse_option, to_array


def sort_by(keys: Sequence[Array], *carried: Array, axis: int = 0, stable: bool = True
            ) -> tuple[Array, ...]:
    """The last key and the carried operands, in the order in which the keys ascend."""
    compared = [part for key in keys for part in (*_nan_parts(key), key)]
    outs = lax_sort.sort((*compared, *carried), axis, is_stable=stable, num_keys=len(compared))
    return outs[len(compared) - 1:]


def _nan_parts(key: Array) -> tuple[Array, ...]:
    """The keys to compare before complex numbers, so that those with a NaN come last.

    The order is R + Rj, R + NaNj, NaN + Rj, NaN + NaNj; lax compares the real parts first.
    """
    if not dtypes.is_complex(key.dtype):
        return ()
    parts = real(key), imag(key)
    return tuple([ne(part, part) for part in parts])


def _sortable(name: str, a: ArrayLike, axis: int | None, kind: str | None, order: object,
              stable: bool) -> tuple[Array, int, bool]:
    """The array, its canonical axis and whether equal elements keep their order."""
    refuse_option(name, order=order)
    if kind is not None and kind not in ("stable", "quicksort", "mergesort", "heapsort"):
        raise ValueError(f"{name}: kind {kind!r} given; None or 'stable' is required.")
    a = to_array(array_args(name, a)[0])
    if axis is None:
        a, axis = ravel(a), 0
    return a, canonical_axis(axis, len(a.shape), name), stable or kind in ("stable", "mergesort")


@fused(static=("axis", "kind", "order", "stable", "descending"), inline=True)
def sort(a: ArrayLike, axis: int | None = -1, *, kind: str | None = None, order: None = None,
         stable: bool = True, descending: bool = False) -> Array:
    """The elements in ascending order along an axis.

    NaN comes last; complex numbers are ordered by real, then imaginary part, those with a NaN last.
    The gradient moves with the elements.

    Args:
      axis: the axis; None sorts the flattened array.
      kind: None, "stable", "mergesort", "quicksort" or "heapsort"; it changes nothing.
      stable: whether equal elements keep their order, which no plain array shows.
      descending: whether to reverse the result; NaN then comes first.
    Returns: An array of the shape and dtype of `a`.

    >>> print(onp.sort(onp.array([3, 1, 2]), descending=True))
    [3 2 1]
    """
    a, axis, stable = _sortable("sort", a, axis, kind, order, stable)
    out = sort_by([a], axis=axis, stable=stable)[0]
    return flip(out, axis) if descending else out


@fused(static=("axis", "kind", "order", "stable", "descending", "dtype"))
def argsort(a: ArrayLike, axis: int | None = -1, *, kind: str | None = None, order: None = None,
            stable: bool = True, descending: bool = False, dtype: DTypeLike | None = None) -> Array:
    """The indices that sort an array along an axis: `take_along_axis(a, argsort(a), -1)` is sorted.

    NaN comes last. Equal elements keep their order, also in descending order.

    Args:
      kind: None, "stable", "mergesort", "quicksort" or "heapsort".
      stable: whether equal elements must keep their order.
      descending: whether the largest element comes first.
      dtype: an integer dtype for the result; int32 (int64 with x64) by default.
    Returns: Integers of the shape of `a`.

    Raises TypeError for a dtype that is not of integers.

    >>> print(onp.argsort(onp.array([3, 1, 2])))
    [1 2 0]
    """
    a, axis, stable = _sortable("argsort", a, axis, kind, order, stable)
    dtype = (dtypes.default_int() if dtype is None
             else dtypes.requested_dtype("argsort", dtype))
    if not dtypes.is_integer(dtype):
        raise TypeError(f"argsort: dtype {dtypes.long_name(dtype)} given; an integer dtype is "
                        "required.")
    return _argsort(a, axis=axis, stable=stable, descending=descending, dtype=dtype)


@fused(static=("axis", "stable", "descending", "dtype"))
def _argsort(a: Array, *, axis: int, stable: bool, descending: bool, dtype: DType) -> Array:
    indices = creation.broadcasted_iota(dtype, a.shape, axis)
    if descending:      # sorting backwards and flipping keeps the order of equal elements
        a, indices = lax_shape.rev(a, (axis,)), lax_shape.rev(indices, (axis,))
    _, out = sort_by([a], indices, axis=axis, stable=stable)
    return lax_shape.rev(out, (axis,)) if descending else out


@api_boundary
def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1, *, batch_size: int | None = 16
           ) -> Array:
    """The indices that sort by several keys; the last decides first.

    Args:
      keys: a sequence of arrays of one shape, or an array, whose rows they are.
      axis: the axis of the keys to sort along.
      batch_size: how many keys one sort compares; more of them are sorted in several passes. None
        is all.
    Returns: int32 (int64 with x64) of the shape of a key.

    Raises TypeError for no keys, ValueError for keys of several shapes.

    >>> first, second = onp.array([1, 0, 0]), onp.array([5, 9, 2])
    >>> print(onp.lexsort((second, first)))
    [2 1 0]
    """
    keys = [to_array(k) for k in array_args("lexsort", *entries(keys))]
    if not keys:
        raise TypeError("lexsort: no keys given; need sequence of keys with len > 0 in lexsort.")
    if any(k.shape != keys[0].shape for k in keys):
        raise ValueError("lexsort: keys of several shapes given; all keys need to be the same "
                         "shape.")
    if not keys[0].shape:
        return creation.full((), 0, dtypes.default_int())
    axis = canonical_axis(axis, len(keys[0].shape), "lexsort")
    indices = creation.broadcasted_iota(dtypes.default_int(), keys[0].shape, axis)
    size = len(keys) if batch_size is None else static_int(batch_size, "lexsort", "batch_size")
    # From the least significant batch on: each sort is stable, so it keeps the order before it.
    for first in range(0, len(keys), size):
        batch = keys[first:first + size][::-1]
        if first:
            batch = [take_along_axis(k, indices, axis) for k in batch]
        indices = sort_by(batch, indices, axis=axis)[-1]
    return indices


@named
def sort_complex(a: ArrayLike) -> Array:
    """The elements sorted along the last axis by real, then imaginary part, as complex numbers.

    Args: a: array of numbers with at least one axis.
    Returns: complex64 (complex128 from 64-bit numbers) of the shape of `a`.

    >>> print(onp.sort_complex(onp.array([2 + 1j, 1 + 5j, 1 + 3j])))
    [1.+3.j 1.+5.j 2.+1.j]
    """
    a = array_args("sort_complex", a)[0]
    return promote.convert(sort(a), dtypes.to_complex_dtype(a.dtype))   # real ones sort faster


@api_boundary
def partition(a: ArrayLike, kth: int | Sequence[int], axis: int | None = -1,
              kind: str = "introselect", order: None = None) -> Array:
    """The array with the k-th smallest element at place k, none larger before, none smaller after.

    The order within both parts is not specified.

    Args: axis: the axis; None partitions the flattened array.
    Returns: An array of the shape and dtype of `a`.

    Raises ValueError for a `kth` out of bounds.

    >>> print(onp.partition(onp.array([7, 1, 5, 3]), 1)[:2])
    [1 3]
    """
    return _partition(*_parted("partition", a, kth, axis, kind, order))[0]


@api_boundary
def argpartition(a: ArrayLike, kth: int | Sequence[int], axis: int | None = -1,
                 kind: str = "introselect", order: None = None) -> Array:
    """The indices that partition an array: see `partition`.

    Returns: int32 (int64 with x64) of the shape of `a`.

    Raises ValueError for a `kth` out of bounds.

    >>> print(onp.argpartition(onp.array([7, 1, 5, 3]), 1)[:2])
    [1 3]
    """
    a, axis, ranks = _parted("argpartition", a, kth, axis, kind, order)
    indices = creation.broadcasted_iota(dtypes.default_int(), a.shape, axis)
    return _partition(a, axis, ranks, indices)[1]


def _partition(a: Array, axis: int, ranks: tuple[int, ...], *carried: Array) -> Sequence[Array]:
    if not ranks or dtypes.is_complex(a.dtype):
        return sort_by([a], *carried, axis=axis)
    return _by_ranks(a, *carried, axis=axis, ranks=ranks)


@fused(static=("axis", "ranks"))
def _by_ranks(*xs: Array, axis: int, ranks: tuple[int, ...]) -> list[Array]:
    last = xs[0].ndim - 1
    outs = lax_sort.partition_p.bind(*[lax_shape.move_axis(x, axis, last) for x in xs],
                                     ranks=ranks)
    return [lax_shape.move_axis(out, last, axis) for out in outs]


def _parted(name: str, a: ArrayLike, kth: int | Sequence[int], axis: int | None, kind: str,
            order: None) -> tuple[Array, int, tuple[int, ...]]:
    """The array, its axis, and the ranks, ascending: none where the axis is empty or symbolic."""
    if kind != "introselect":
        raise ValueError(f"{name}: kind {kind!r} given; 'introselect' is required.")
    refuse_option(name, order=order)
    a, axis, _ = _sortable(name, a, axis, None, None, True)
    n = a.shape[axis]
    if not is_static((n,)) or not n:
        return a, axis, ()
    several = kth if isinstance(kth, Sequence) else (kth,)
    return a, axis, tuple(sorted({canonical_axis(k, n, f"{name}: kth") for k in several}))


@api_boundary
def top_k(a: ArrayLike, k: int, /, *, axis: int = -1, mode: str = "largest",
          sorted: bool = True) -> tuple[Array, Array]:
    """The k largest (or smallest) elements along an axis, and their places.

    NaN counts as largest. Among equal elements the first comes first. NumPy has no such function.

    Args:
      a: array of numbers, [..., n] for the last axis.
      k: how many, at most n.
      axis: the axis.
      mode: "largest" or "smallest".
      sorted: accepted; the result is always sorted, the most extreme first.
    Returns: (values [..., k] of the dtype of `a`, places int32[..., k], int64 with x64).

    Raises ValueError for another mode and for k above n.

    >>> values, places = onp.top_k(onp.array([3., 9., 5.]), 2)
    >>> print(values, places)
    [9. 5.] [1 2]
    """
    if mode not in ("largest", "smallest"):
        raise ValueError(f"top_k: mode {mode!r} given; 'largest' or 'smallest' is required.")
    a = to_array(array_args("top_k", a)[0])
    axis = canonical_axis(axis, len(a.shape), "top_k")
    k = canonical_dim(k, "top_k")
    largest = mode == "largest"
    if largest and not dtypes.is_complex(a.dtype):
        values, indices = lax_sort.top_k(a, k, axis=axis)
        return values, promote.convert(indices, dtypes.default_int())
    if known_less(a.shape[axis], k):
        raise ValueError(f"top_k: k {k} given; at most {a.shape[axis]}, the size of axis {axis}, "
                         "is required.")
    first = tuple([slice(None)] * axis + [slice(0, k)])
    indices = argsort(a, axis, descending=largest)[first]
    return take_along_axis(a, indices, axis), indices


# Searching ---------------------------------------------------------------------------------------

_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


@fused(static=("side", "method"))
def searchsorted(a: ArrayLike, v: ArrayLike, side: str = "left", sorter: ArrayLike | None = None, *,
                 method: str = "scan") -> Array:
    """The indices at which values belong in a sorted vector.

    Args:
      a: a sorted vector of n elements; NaN last.
      v: the values.
      side: "left": a[i-1] < v <= a[i]; "right": a[i-1] <= v < a[i].
      sorter: places that sort `a`, if it is not sorted.
      method: "compare_all" compares each pair; "scan", "scan_unrolled" and "sort" halve the range,
        in ceil(log2(n + 1)) steps.
    Returns: int32 (int64 with x64) in [0, n], of the shape of `v`.

    Raises ValueError for another side or method, or where `a` is no vector.

    >>> print(onp.searchsorted(onp.array([1., 2., 4.]), onp.array([0., 2., 9.])))
    [0 1 3]
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side {side!r} given; 'left' or 'right' is required.")
    if method not in _METHODS:
        raise ValueError(f"searchsorted: method {method!r} given; one of {_METHODS} is required.")
    a, v = [to_array(x) for x in promote.promote_dtypes("searchsorted", a, v)]
    if len(a.shape) != 1:
        raise ValueError(f"searchsorted: a {typeof(a)} given; a should be 1-dimensional.")
    if sorter is not None:
        sorter = to_array(array_args("searchsorted", sorter)[0])
        if sorter.shape != a.shape or dtypes.scalar_kind(sorter.dtype) not in "iu":
            raise ValueError(f"searchsorted: sorter {typeof(sorter)} given for a {typeof(a)}; one "
                             "integer per element is required; pass argsort(a).")
        a = take(a, sorter, 0, mode="clip")
    return _search(a, v, side=side, compare_all=method == "compare_all")


@fused(static=("side", "compare_all"))
def _search(a: Array, v: Array, *, side: str, compare_all: bool) -> Array:
    n, dtype = a.shape[0], dtypes.default_int()
    if not n:
        return creation.full(v.shape, 0, dtype)
    if compare_all:
        shape = (n, *v.shape)
        before = _before(lax_shape.broadcast_in_dim(a, shape, (0,)),
                         lax_shape.broadcast_in_dim(v, shape, tuple(range(1, len(shape)))), side)
        return lax_shape.reduce_sum(promote.convert(before, dtype), (0,))

    before = _comparison(v, side)
    axis, numbers = len(v.shape), GatherDimensionNumbers((), (0,), (0,))

    def reads(place: Array) -> Array:
        """Whether the elements at these places are before `v`."""
        # The places have no column of their own: XLA:CPU would compute them anew for each reader,
        # in code that doubles with each step (11 s for 100,000 integers).
        return before(gather_p.bind(
            a, lax_shape.expand_dims(place, (axis,)), dimension_numbers=numbers, slice_sizes=(1,),
            mode=PROMISE, unique_indices=False, indices_are_sorted=False, fill_value=None))

    if not is_static((n,)):     # so many steps that they are not written out
        def halved(k: Array, last: Array) -> Array:
            size = shift_right_logical(np.int32(1 << bit_length(n) - 1), k)
            inside = size <= n - 1 - last
            beyond = reads(add(last, where(inside, size, 0).astype(dtype)))
            return where(inside & beyond, add(last, size), last)

        last = fori_loop(0, bit_length(n), halved, creation.full(v.shape, -1, dtype))
        return add(last, literal(1, dtype))
    # After a first step of any length the place is less than `size` elements on, a power of
    # two, whose halves need no second end (Knuth, The Art of Computer Programming 3, 6.2.1).
    size = 1 << n.bit_length() - 1
    first = creation.full(v.shape, size - 1, dtype)
    last = select(reads(first), literal(n - size, dtype), literal(-1, dtype))
    while size := size // 2:
        beyond = reads(add(last, literal(size, dtype)))
        last = add(last, select(beyond, literal(size, dtype), literal(0, dtype)))
    found = add(last, literal(1, dtype))
    # For two readers XLA:CPU would make a kernel of each step, in three times the time.
    return held_p.bind(found) if v.shape else found


def _comparison(v: Array, side: str) -> Callable[[Array], Array]:
    """Whether elements of the sorted vector lie before the place of `v`, in the order of `sort`."""
    if not dtypes.is_inexact(v.dtype):
        compare = lt if side == "left" else le
        return lambda x: compare(x, v)
    if dtypes.is_complex(v.dtype):
        return lambda x: _before(x, v, side)
    nan = ne(v, v)
    if side == "right":
        return lambda x: bitwise_or(le(x, v), nan)
    # Numbers are before NaN, and before a number those that are less.
    limit = select(nan, creation.full_like(v, highest(v.dtype)), creation.full_like(v, np.nan))
    return lambda x: bitwise_or(lt(x, v), le(x, limit))


def _before(x: Array, v: Array, side: str) -> Array:
    """Whether elements of the sorted vector lie before the place of `v`, in the order of `sort`."""
    less = (x < v) if side == "left" else (x <= v)
    if not dtypes.is_inexact(x.dtype):
        return less
    if not dtypes.is_complex(x.dtype):
        v_nan = v != v
        return less | (v_nan & (x == x) if side == "left" else v_nan)
    pairs = [*zip(_nan_parts(x), _nan_parts(v)), (x.real, v.real), (x.imag, v.imag)]
    before = creation.full(x.shape, side == "right", np.bool_)
    for p, q in reversed(pairs):    # NaN parts are ordered by the flags before them
        before = (p < q) | ((p == q) | ((p != p) & (q != q))) & before
    return before


@fused(static=("right", "method"))
def digitize(x: ArrayLike, bins: ArrayLike, right: bool = False, *,
             method: str | None = None) -> Array:
    """The bin that each value is in: i where bins[i-1] <= x < bins[i], for ascending bins.

    Bins may descend too: then bins[i-1] > x >= bins[i].

    Args:
      x: array of values; NaN is behind the last bin.
      bins: a vector of n edges; it may be traced.
      right: whether a value on an edge belongs below it: bins[i-1] < x <= bins[i] for ascending
        bins, bins[i-1] >= x > bins[i] for descending ones.
      method: as for `searchsorted`.
    Returns: int32 (int64 with x64) in [0, n], of the shape of `x`.

    Raises ValueError unless the bins are a vector. That they are in order is not checked.

    >>> print(onp.digitize(onp.array([-1., 0.5, 1.]), onp.array([0., 1.])))
    [0 1 2]
    """
    bins = to_array(array_args("digitize", bins)[0])
    x = to_array(array_args("digitize", x)[0])
    if len(bins.shape) != 1:
        raise ValueError(f"digitize: bins {typeof(bins)} given; bins must be a 1-dimensional "
                         "array.")
    n = bins.shape[0]
    if not n:
        return creation.full(x.shape, 0, dtypes.default_int())
    side, method = "left" if right else "right", method or "scan"
    # The places of descending bins are the ascending ones', counted from the other end.
    descend = bins[n - 1] < bins[0]
    bins_before = searchsorted(where(descend, flip(bins), bins), x, side, method=method)
    return where(descend, n - bins_before, bins_before)


@named
def bincount(x: ArrayLike, weights: ArrayLike | None = None, minlength: int = 0, *,
             length: int | None = None, out_sharding: ShardingLike = None) -> Array:
    """The numbers of 0s, 1s, 2s … in a vector, or the sums of their weights.

    Args:
      x: a vector of integers; negative ones count as 0, where NumPy raises.
      weights: a vector of the same size, whose elements are summed; None counts.
      minlength: the least size of the result.
      length: its size, required where `x` is traced; numbers beyond are dropped.
      out_sharding: how the result is cut over devices; see `lax.with_sharding_constraint`.
    Returns: A vector of max(x) + 1 elements unless `length` or `minlength` says otherwise: int32
      (int64 with x64), or of the dtype of the weights (in NumPy float64).

    Raises TypeError for `x` not of integers, ConcretizationTypeError where it is traced without
    `length`.

    >>> print(onp.bincount(onp.array([1, 1, 3])))
    [0 2 0 1]
    """
    x = to_array(array_args("bincount", x)[0])
    if dtypes.scalar_kind(x.dtype) not in "iub":
        raise TypeError(f"bincount: {typeof(x)} given; x argument to bincount must have an integer "
                        "type; convert it with astype.")
    if len(x.shape) != 1:
        raise ValueError(f"bincount: {typeof(x)} given; only 1-dimensional input is supported.")
    if length is None:
        value = concrete("bincount", x, "x", "pass length=...")
        length = max(int(value.max()), 0) + 1 if value.size else 0
    length = max(canonical_dim(minlength, "bincount: minlength"),
                 canonical_dim(length, "bincount: length"))
    x = promote.convert(x, dtypes.default_int()) if dtypes.is_bool(x.dtype) else x
    x = where(x < 0, 0, x)
    if weights is None:
        out = write("add", creation.full((length,), 0, dtypes.default_int()), x, 1, mode="drop")
        return constrain("bincount", out, out_sharding)
    weights = to_array(array_args("bincount", weights)[0])
    if weights.shape != x.shape:
        raise ValueError(f"bincount: x {typeof(x)} and weights {typeof(weights)} given; shape of "
                         "weights must match shape of input.")
    out = write("add", creation.full((length,), 0, weights.dtype), x, weights, mode="drop")
    return constrain("bincount", out, out_sharding)


complete_docstrings(globals(), {
    "a": "array of numbers or booleans.",
    "axis": "the axis; None takes the flattened array.",
    "kind": "must be \"introselect\", NumPy's only one.",
    "order": "must be None: arrays have no fields.",
    "kth": "an int or several, each in [-n, n).",
})
