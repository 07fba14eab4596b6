"""Elements chosen by conditions or places: choose, compress, extract, place, put, argwhere.

How many elements a condition selects decides a shape. So such functions need a concrete array, or
`size`, which fixes the shape: missing elements are filled in, surplus ones cut off.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ..base import lib
from ..base.docstrings import complete_docstrings
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DimSize, DTypeLike, Shape
from ..control.bodies import check_callable
from ..core.trace import ctx, typeof
from ..jit.fused import begin_with, fused, named
from ..lax import creation, cumulative
from ..runtime.eager import BASE, FAILURES, number_array
from ..types import dtypes
from ..types.shape import (
    canonical_axes, canonical_axis, canonical_dim, canonical_shape, definitely_equal, exceeds, less,
    maximum, minimum, mod, prod, sequence, slice_of,
)
from . import promote
from .arithmetic import sign
from .conditions import where as choose_elements
from .creation import asarray
from .indexing import concrete, need_size, nonzero, take, write
from .joining import stack
from .manipulation import broadcast_arrays, broadcast_to, ravel, reshape
from .promote import array_args, as_bool, refuse_inplace, refuse_option, to_array

ArrayImpl = lib.ArrayImpl
_INT32 = dtypes.as_dtype("int32")


@overload
def where(condition: ArrayLike, /, *, size: int | None = None,
          fill_value: ArrayLike | None = None) -> tuple[Array, ...]: ...


@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...


def where(condition: ArrayLike, x: ArrayLike | None = None, y: ArrayLike | None = None, /, *,
          size: int | None = None, fill_value: ArrayLike | None = None
          ) -> Array | tuple[Array, ...]:
    """Elements of `x` where the condition holds, of `y` elsewhere.

    Both are computed everywhere: a gradient can be NaN where the branch that is not taken is
    infinite, so make its argument safe first.

    Args:
      condition: array; nonzero elements hold.
      x, y: arrays or numbers that broadcast with it and each other. Without both this is
        `nonzero(condition)`.
      size, fill_value: of `nonzero`, where the condition is given alone.
    Returns: An array of the promoted dtype of `x` and `y`; or a tuple of vectors of places.

    Raises ValueError where only one of `x` and `y` is given.

    >>> print(onp.where(onp.arange(4) < 2, 1.0, 0.0))
    [1. 1. 0. 0.]
    """
    if ctx.trace is BASE and type(condition) is ArrayImpl and size is None and fill_value is None:
        kind, other = type(x), type(y)
        if kind is float or kind is int:
            x, kind = number_array(x), ArrayImpl
        if other is float or other is int:
            y, other = number_array(y), ArrayImpl
        if kind is ArrayImpl and other is ArrayImpl:
            try:
                return choose_elements.compiled(condition, x, y)
            except FAILURES:    # which the call below makes plain
                pass
    try:
        if x is None and y is None:
            need_size("where", size, condition=condition)
            return nonzero(condition, size=size, fill_value=fill_value)
        if x is None or y is None:
            raise ValueError("where: one of x and y given; either both or neither of the x and y "
                             "arguments should be provided.")
        if size is not None or fill_value is not None:
            raise ValueError("where: size or fill_value given with x and y; they belong to the "
                             "form with one argument; leave them out.")
        return choose_elements(condition, x, y)
    except FAILURES as error:
        begin_with(where, error)
        raise


@api_boundary
def choose(a: ArrayLike, choices: ArrayLike | Sequence[ArrayLike], out: None = None,
           mode: str = "raise") -> Array:
    """Choose each element from one of several arrays, by an integer at its place.

    Args:
      a: integers, broadcast with the choices.
      choices: a sequence of arrays (or an array, along its first axis).
      mode: "wrap" or "clip" for integers outside; "raise" needs a concrete `a`.
    Returns: An array of the promoted dtype of the choices.

    Raises ValueError for integers outside with "raise", and for no choices.

    >>> print(onp.choose(onp.array([0, 1, 0]), [onp.array([1, 2, 3]), onp.array([10, 20, 30])]))
    [ 1 20  3]
    """
    refuse_option("choose", out=out)
    a = array_args("choose", a)[0]
    if dtypes.scalar_kind(typeof(a).dtype) not in "iu":
        raise ValueError(f"choose: indices {typeof(a)} given; integers are required.")
    a = _wide(a)
    choices = sequence(choices, "choose", "choices")
    if not choices:
        raise ValueError("choose: no choices given; at least one array is required.")
    arrays = promote.promote_dtypes("choose", *choices)
    n = len(arrays)
    a, *arrays = broadcast_arrays(a, *arrays)
    if mode == "raise":
        value = concrete("choose", a, "a", "use mode='clip' or 'wrap'")
        if value.size and not (value.min() >= 0 and value.max() < n):
            raise ValueError(f"choose: an entry outside of [0, {n}) given; invalid entry in choice "
                             "array; use mode='clip' or 'wrap'.")
    elif mode == "wrap":
        a = a % n
    elif mode != "clip":
        raise ValueError(f"choose: mode {mode!r} given; 'raise', 'wrap' or 'clip' is required.")
    a = promote.convert(a.clip(0, n - 1), _INT32)
    grid = [creation.broadcasted_iota(_INT32, a.shape, d) for d in range(len(a.shape))]
    return stack(arrays)[(a, *grid)]


# Conditions --------------------------------------------------------------------------------------

@named
def flatnonzero(a: ArrayLike, *, size: int | None = None,
                fill_value: None | ArrayLike | tuple[ArrayLike, ...] = None) -> Array:
    """The indices of the elements that are not zero in the flattened array.

    Args:
      size: the number of places to return; required where `a` is traced.
      fill_value: the place named where there are fewer; 0 by default.
    Returns: A vector, int32 (int64 with x64).

    Raises ConcretizationTypeError for a traced array without `size`.

    >>> print(onp.flatnonzero(onp.array([[7, 0], [0, 9]])))
    [0 3]
    """
    need_size("flatnonzero", size, a=a)
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


@named
def argwhere(a: ArrayLike, *, size: int | None = None,
             fill_value: ArrayLike | None = None) -> Array:
    """The indices of the elements that are not zero, one row for each.

    Args:
      size: the number of rows to return; required where `a` is traced.
      fill_value: the place named where there are fewer; 0 by default.
    Returns: [n, ndim], int32 (int64 with x64), in row-major order.

    Raises ConcretizationTypeError for a traced array without `size`.

    >>> print(onp.argwhere(onp.array([[7, 0], [0, 9]])))
    [[0 0]
     [1 1]]
    """
    need_size("argwhere", size, a=a)
    a = array_args("argwhere", a)[0]
    if not a.shape:
        count = len(nonzero(ravel(a), size=size, fill_value=fill_value)[0])
        return creation.full((count, 0), 0, dtypes.default_int())
    return stack(nonzero(a, size=size, fill_value=fill_value), axis=1)


@api_boundary
def compress(condition: ArrayLike, a: ArrayLike, axis: int | None = None, *,
             size: int | None = None, fill_value: ArrayLike = 0, out: None = None) -> Array:
    """The elements along an axis where the condition holds.

    Args:
      condition: a vector; where it ends before the axis, it does not hold.
      axis: the axis; the flattened array if None.
      size: how many elements to return, at most the axis's size; required where the condition is
        traced.
      fill_value: fills the result where there are fewer.
    Returns: An array of the dtype of `a`.

    Raises ConcretizationTypeError for a traced condition without `size`, ValueError where the
    condition holds beyond the end.

    >>> print(onp.compress(onp.array([True, False, True]), onp.array([5, 6, 7])))
    [5 7]
    """
    refuse_option("compress", out=out)
    if isinstance(condition, (list, tuple)):
        condition = np.asarray(condition, bool)
    condition, a = array_args("compress", condition, a)
    if len(condition.shape) != 1:
        raise ValueError(f"compress: condition {typeof(condition)} given; a vector is required.")
    if axis is None:
        a, axis = ravel(a), 0
    axis = canonical_axis(axis, len(a.shape), "compress")
    n = a.shape[axis]
    if less(n, condition.shape[0]):
        extra, condition = condition[n:], condition[:n]
        if size is None and concrete("compress", extra, "condition", "pass size=...").any():
            raise ValueError("compress: the condition holds beyond the axis's end; a condition "
                             "that is at most as long as the axis is required.")
    if size is None:
        indices = np.flatnonzero(concrete("compress", condition, "condition", "pass size=..."))
        return take(a, indices.astype(np.int32), axis, mode="clip")
    size = canonical_dim(size, "compress: size")
    if less(n, size):
        raise ValueError(f"compress: size {size} given for an axis of {n} elements; at most as "
                         "many are required; pad the result.")
    indices = flatnonzero(condition, size=size, fill_value=n)
    return take(a, indices, axis, mode="fill", fill_value=fill_value)


@named
def extract(condition: ArrayLike, arr: ArrayLike, *, size: int | None = None,
            fill_value: ArrayLike = 0) -> Array:
    """The elements where the condition holds, as a vector.

    Args:
      condition: array, flattened.
      arr: array of as many elements, flattened.
      size: how many elements to return; required where the condition is traced.
      fill_value: fills the result where there are fewer.
    Returns: A vector of the dtype of `arr`.

    Raises ConcretizationTypeError for a traced condition without `size`.

    >>> x = onp.array([[1, 5], [6, 2]])
    >>> print(onp.extract(x > 3, x))
    [5 6]
    """
    need_size("extract", size, condition=condition)
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


@named
def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """A copy of `arr` whose k-th element under the mask is `vals[k % len(vals)]`.

    Args:
      arr: array; places count in row-major order.
      mask: a condition of as many elements; it may be traced.
      vals: array of at least one element, flattened.
    Returns: An array of the shape and dtype of `arr`.

    Raises ValueError for `inplace`, other sizes and no values.

    >>> x = onp.arange(5)
    >>> print(onp.place(x, x > 1, onp.array([70, 80]), inplace=False))
    [ 0  1 70 80 70]
    """
    refuse_inplace("place", inplace)
    arr, mask, vals = array_args("place", arr, mask, vals)
    if prod(arr.shape) != prod(mask.shape):
        raise ValueError(f"place: arr {typeof(arr)} and mask {typeof(mask)} given; equal sizes are "
                         "required.")
    flat, vals = as_bool(ravel(mask)), ravel(vals)
    if not prod(mask.shape):
        return arr
    if not vals.shape[0]:
        raise ValueError("place: no values given; vals must be non-empty.")
    ranks = cumulative.cumsum(promote.convert(flat, _INT32), 0) - 1
    chosen = take(vals, mod(ranks, vals.shape[0]), 0, mode="clip")
    out = where(flat, promote.convert(chosen, arr.dtype), ravel(arr))
    return reshape(out, arr.shape)


@named
def put(a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *,
        inplace: bool = True) -> Array:
    """A copy of `a` with values at places of the flattened array.

    Args:
      ind: integers, flattened.
      v: array, flattened and repeated as needed; converted to the dtype of `a`.
      mode: "clip", "wrap" or None: places known to be outside are an IndexError, traced ones are
        dropped.

    Raises ValueError for `inplace` and for another mode.

    >>> print(onp.put(onp.zeros(4), onp.array([0, 2]), 1.0, inplace=False))
    [1. 0. 1. 0.]
    """
    refuse_inplace("put", inplace)
    a, ind, v = array_args("put", a, ind, v)
    ind, v, total = _wide(ravel(ind)), ravel(v), prod(a.shape)
    if not ind.shape[0] or not v.shape[0]:
        return a
    v = take(v, mod(np.arange(ind.shape[0]), v.shape[0]), 0, mode="clip")
    if mode == "wrap":
        ind = ind % total
    elif mode == "clip":
        ind = ind.clip(0, total - 1)
    elif mode is not None:
        raise ValueError(f"put: mode {mode!r} given; None, 'clip' or 'wrap' is required.")
    return reshape(write("set", ravel(a), ind, v), a.shape)


@named
def copyto(dst: ArrayLike, src: ArrayLike, casting: str = "same_kind", where: ArrayLike = True, *,
           inplace: bool = True) -> Array:
    """A copy of `dst` with `src` where the condition holds.

    Args:
      dst: an array.
      src: values that broadcast to its shape.
      casting: which conversions of dtypes are allowed, as for `can_cast`.
      where: a condition that broadcasts to the shape of `dst`.
    Returns: An array of the shape and dtype of `dst`.

    Raises TypeError for dtypes that `casting` does not allow.

    >>> print(onp.copyto(onp.zeros(3), 7, where=onp.arange(3) > 0, inplace=False))
    [0. 7. 7.]
    """
    refuse_inplace("copyto", inplace)
    dtypes.check_casting("copyto", casting)
    if isinstance(src, (list, tuple)):
        src = asarray(src)
    dst, src, mask = array_args("copyto", dst, src, where)
    weak = typeof(src).weak_type
    fits = (casting == "unsafe" or dtypes.promote_types(dst.dtype, src.dtype, False, True)[0]
            == dst.dtype if weak else dtypes.can_cast(src.dtype, dst.dtype, casting))
    if not fits:
        raise TypeError(f"copyto: values {typeof(src)} given for {typeof(dst)}; a dtype that "
                        f"casting {casting!r} allows is required; convert them with astype.")
    values = broadcast_to(promote.convert(src, dst.dtype), dst.shape)
    return choose_elements(broadcast_to(as_bool(mask), dst.shape), values, dst)


@api_boundary
def putmask(a: ArrayLike, mask: ArrayLike, values: ArrayLike, *, inplace: bool = True) -> Array:
    """A copy of `a` whose i-th element is `values[i % len(values)]` where the mask holds.

    `place` counts the places under the mask instead.

    Args:
      a: an array; places count in row-major order.
      mask: a condition of its shape.
      values: the values to write, converted to the dtype of `a`; none change nothing.

    >>> x = onp.arange(4)
    >>> print(onp.putmask(x, x > 1, onp.array([10, 20]), inplace=False))
    [ 0  1 10 20]
    """
    refuse_inplace("putmask", inplace)
    a, mask, values = array_args("putmask", a, mask, values)
    if mask.shape != a.shape:
        raise ValueError(f"putmask: {typeof(a)} and mask {typeof(mask)} given; equal shapes are "
                         "required.")
    if promote.promote_dtypes("putmask", a, values)[0].dtype != a.dtype:
        raise TypeError(f"putmask: values {typeof(values)} given for {typeof(a)}; a dtype that it "
                        "holds is required; convert them with astype.")
    values = ravel(values)
    if not values.shape[0]:
        return to_array(a)
    chosen = take(values, mod(_count_up(prod(a.shape)), values.shape[0]), 0, mode="clip")
    chosen = reshape(promote.convert(chosen, a.dtype), a.shape)
    return choose_elements(as_bool(mask), chosen, a)


@named
def fill_diagonal(a: ArrayLike, val: ArrayLike, wrap: bool = False, *,
                  inplace: bool = True) -> Array:
    """A copy of `a` with values on its main diagonal, where all indices are equal.

    Args:
      a: [n, m], or an array of more axes, all of one size.
      val: a scalar, or values that follow each other along the diagonal, repeated as needed; no
        values change nothing.
      wrap: whether the diagonal of a matrix with more rows than columns begins anew below.

    Raises ValueError for fewer than two axes, and for sizes that differ among more.

    >>> print(onp.fill_diagonal(onp.zeros((2, 3), int), onp.array([4, 5]), inplace=False))
    [[4 0 0]
     [0 5 0]]
    """
    refuse_inplace("fill_diagonal", inplace)
    return _fill_diagonal(a, val, wrap=bool(wrap))


def _count_up(count: DimSize) -> Array | np.ndarray:
    """0, 1 … count-1: constants where the number is known."""
    return np.arange(count) if type(count) is int else creation.iota(_INT32, count)


@fused(static=("wrap",))
def _fill_diagonal(a: ArrayLike, val: ArrayLike, *, wrap: bool) -> Array:
    a, val = [to_array(x) for x in array_args("fill_diagonal", a, val)]
    ndim = len(a.shape)
    if ndim < 2 or (ndim > 2 and not all(definitely_equal(n, a.shape[0]) for n in a.shape)):
        raise ValueError(f"fill_diagonal: {typeof(a)} given; a matrix, or an array of more axes, "
                         "all of one size, is required.")
    val = ravel(val)
    total = prod(a.shape)
    step = sum(prod(a.shape[i:]) for i in range(1, ndim)) + 1
    end = total if wrap or ndim > 2 else minimum(total, prod((a.shape[1], a.shape[1])))
    count = slice_of(slice(0, end, step), total)[2]
    if definitely_equal(count, 0) or not val.shape[0]:
        return a
    values = val if definitely_equal(val.shape[0], 1) else take(
        val, mod(_count_up(count), val.shape[0]), 0, mode="clip")
    return reshape(write("set", ravel(a), slice(0, end, step), values), a.shape)


@named
def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: int | Sequence[int] | None = None
               ) -> Array:
    """The array without its leading and trailing zeros.

    Args:
      filt: an array, which must not be traced: its values decide the result's shape.
      trim: "f" cuts at the front, "b" at the back, "fb" at both.
      axis: the axis or axes to cut along; all unless given.
    Returns: An array of the dtype of `filt`.

    Raises ValueError for another `trim`.

    >>> print(onp.trim_zeros(onp.array([0, 0, 1, 0, 3, 0])))
    [1 0 3]
    """
    if not isinstance(trim, str) or trim.lower() not in ("fb", "bf", "f", "b"):
        raise ValueError(f"trim_zeros: trim {trim!r} given; 'f', 'b' or 'fb' is required.")
    x = to_array(array_args("trim_zeros", filt)[0])
    value = concrete("trim_zeros", x, "the array", "use olympus.numpy.where")
    axes = canonical_axes(axis, value.ndim, "trim_zeros")
    nonzero = np.argwhere(value)
    index = [slice(None)] * value.ndim
    for i in axes:
        first, last = (nonzero[:, i].min(), nonzero[:, i].max() + 1) if len(nonzero) else (
            value.shape[i], 0)
        index[i] = slice(int(first) if "f" in trim.lower() else None,
                         int(last) if "b" in trim.lower() else None)
    return x[tuple(index)]


# Places ------------------------------------------------------------------------------------------

def _wide(indices: Array) -> Array:
    """Integers as default ones if theirs are narrower: sizes and flat places fit those."""
    dtype = dtypes.default_int()
    narrow = dtypes.itemsize_bits(indices.dtype) < dtypes.itemsize_bits(dtype)
    return to_array(promote.convert(indices, dtype) if narrow else indices)


@named
def unravel_index(indices: ArrayLike, shape: Shape, order: str = "C") -> tuple[Array, ...]:
    """Convert indices of the flattened array to indices per axis.

    Args:
      indices: integers of any shape; negative ones count from the end. Those outside are brought
        inside (NumPy raises).
      shape: the array's shape. Its elements may be more than the dtype of the indices counts; a
        place on an axis is the largest of that dtype if it would be larger.
      order: "C" (last axis fastest) or "F".
    Returns: A tuple of integer arrays of the shape of `indices`, one per axis.

    Raises TypeError for indices that are not integers.

    >>> rows, columns = onp.unravel_index(onp.array([1, 5]), (2, 3))
    >>> print(rows, columns)
    [0 1] [1 2]
    """
    indices = to_array(array_args("unravel_index", indices)[0])
    if dtypes.scalar_kind(indices.dtype) not in "iu":
        raise TypeError(f"unravel_index: indices {typeof(indices)} given; an integer dtype is "
                        "required.")
    indices, sizes = _wide(indices), canonical_shape(shape, "unravel_index")
    if order not in ("C", "F"):
        raise ValueError(f"unravel_index: order {order!r} given; 'C' or 'F' is required.")
    total, most = prod(sizes), int(dtypes.iinfo(indices.dtype).max)
    if not exceeds(total, most):    # else no index is too large
        indices = where(indices < 0, indices + total, indices).clip(0, maximum(0, total - 1))
    indices_of: list[Array] = []
    # Digits, the fastest first. A negative index has digits that count from the end.
    for n in reversed(sizes) if order == "C" else sizes:
        if exceeds(n, most):
            indices_of.append(where(indices < 0, most, indices))
            indices = sign(indices).clip(max=0)
        else:
            indices_of.append(indices % maximum(1, n))
            indices = indices // maximum(1, n)
    return tuple(indices_of[::-1] if order == "C" else indices_of)


@named
def mask_indices(n: int, mask_func: Callable[[Array, int], Array], k: int = 0, *,
                 size: int | None = None) -> tuple[Array, Array]:
    """The indices that a function such as `triu` leaves in an n by n matrix of ones.

    Args:
      n: the size of the matrix.
      mask_func: called with the matrix and `k`; where its result is not zero is a place.
      k: its second argument.
      size: how many places to return, required where the result of `mask_func` is traced.
    Returns: (rows, columns), two vectors of integers.

    >>> rows, columns = onp.mask_indices(3, onp.triu, 1)
    >>> print(rows, columns)
    [0 0 1] [1 2 2]
    """
    n = canonical_dim(n, "mask_indices: n")
    if exceeds(n, 2**15):
        raise ValueError(f"mask_indices: n {n} given; at most {2**15} is possible.")
    check_callable("mask_indices", mask_func=mask_func)
    mask = mask_func(creation.full((n, n), 1, dtypes.default_int()), k)
    return nonzero(mask, size=size)  # type: ignore[return-value]


@api_boundary
def ravel_multi_index(multi_index: Sequence[ArrayLike], dims: Sequence[int], mode: str = "raise",
                      order: str = "C", dtype: DTypeLike | None = None) -> Array:
    """Convert indices per axis to indices of the flattened array: the inverse of `unravel_index`.

    Args:
      multi_index: a sequence of integer arrays that broadcast, one per axis.
      dims: the array's shape.
      mode: "wrap" or "clip" for places outside; "raise" needs concrete places.
      order: "C" (last axis fastest) or "F".
      dtype: of the result; the places' dtype, but at least default integers, if not given.
    Returns: Integers of the broadcast shape.

    Raises ValueError for places outside with "raise" and for other numbers of index arrays,
    TypeError
    for indices that are not integers.

    >>> print(onp.ravel_multi_index((onp.array([0, 1]), onp.array([1, 2])), (2, 3)))
    [1 5]
    """
    dims = canonical_shape(dims, "ravel_multi_index")
    multi_index = sequence(multi_index, "ravel_multi_index", "multi_index")
    if len(multi_index) != len(dims):
        raise ValueError(f"ravel_multi_index: {len(multi_index)} index arrays given for {dims}; "
                         "one per axis is required.")
    if mode not in ("raise", "wrap", "clip"):
        raise ValueError(f"ravel_multi_index: mode {mode!r} given; 'raise', 'wrap' or 'clip' is "
                         "required.")
    if order not in ("C", "F"):
        raise ValueError(f"ravel_multi_index: order {order!r} given; 'C' or 'F' is required.")
    parts = [to_array(p) for p in array_args("ravel_multi_index", *multi_index)]
    out: Any = 0
    for axis in range(len(dims)) if order == "C" else range(len(dims) - 1, -1, -1):
        part, n = parts[axis], dims[axis]
        if dtypes.scalar_kind(part.dtype) not in "iu":
            raise TypeError(f"ravel_multi_index: indices {typeof(part)} given; an integer dtype is "
                            "required.")
        if mode == "raise":
            value = concrete("ravel_multi_index", part, "an index array",
                             "use mode='wrap' or 'clip'")
            if value.size and not (value.min() >= 0 and value.max() < n):
                raise ValueError(f"ravel_multi_index: an index outside of [0, {n}) given; invalid "
                                 "entry in coordinates array; use mode='wrap' or 'clip'.")
        part = _wide(part)
        if prod(dims) > int(dtypes.iinfo(part.dtype).max) + 1:
            raise ValueError(f"ravel_multi_index: dims {dims} given for indices of dtype "
                             f"{part.dtype}, which cannot count as many elements; enable x64.")
        part = part % n if mode == "wrap" else part.clip(0, n - 1)
        out = part + out * n
    return (out if dtype is None
            else promote.convert(out, dtypes.requested_dtype("ravel_multi_index", dtype)))


complete_docstrings(globals(), {
    "inplace": "must be False, because arrays cannot be changed.",
    "a": "array.",
}, returns="An array of the shape and dtype of `a`.")
