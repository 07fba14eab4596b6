"""Shape, order and dtype of arrays: reshape, transpose, broadcast, flip, roll, astype."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, overload

import numpy as np

from ..arrays.device import device_put
from ..base import errors, lib
from ..base.docstrings import complete_docstrings, described_like
from ..base.source import api_boundary, filter_traceback
from ..base.spelling import array_method
from ..base.typing import Array, ArrayLike, DTypeLike, Shape
from ..core.trace import typeof
from ..jit.fused import begin_with, fused, named
from ..lax import shape as lax_shape, slicing
from ..lax.creation import broadcasted_iota
from ..lax.sharding import constrain, settled
from ..runtime.eager import FAILURES
from ..types import dtypes
from ..types.shape import (
    broadcast_shapes as _broadcast_shapes, canonical_axes, canonical_axis, canonical_dim,
    canonical_shape, definitely_equal, entries, exceeds, floor_div, is_static, mod, prod,
    static_int,
)
from ..types.sharding import DeviceLike, ShardingLike
from . import promote
from .indexing import take
from .promote import array_args, operand, plain, to_array

# Shape -------------------------------------------------------------------------------------------

@fused(static=("shape", "order", "copy", "out_sharding"), inline=True)
def reshape(a: ArrayLike, shape: int | Shape, order: str = "C", *, copy: bool | None = None,
            out_sharding: ShardingLike = None) -> Array:
    """The same elements in another shape.

    Args:
      shape: an int or ints; one may be -1, the remaining size.
      copy: accepted; no result shares memory that could be written to.
    Returns: An array of that shape and the dtype of `a`.

    Raises TypeError where the sizes do not fit.

    >>> print(onp.reshape(onp.arange(6), (2, -1)))
    [[0 1 2]
     [3 4 5]]
    >>> print(onp.reshape(onp.arange(6), (2, 3), order="F"))
    [[0 2 4]
     [1 3 5]]
    """
    a = array_args("reshape", a)[0]
    new = _new_shape(a, shape)
    if order not in ("C", "F", "A"):
        raise ValueError(f"reshape: order {order!r} given; 'C', 'F' or 'A' is required; 'K' has no "
                         "meaning for arrays without strides.")
    if order == "F":
        reverse = tuple(range(len(new)))[::-1]
        return settled("reshape", lambda a: lax_shape.transpose(
            lax_shape.reshape(transpose(a), new[::-1]), reverse), out_sharding, a)
    return lax_shape.reshape(a, new, out_sharding=out_sharding)


def _new_shape(a: Array, shape: int | Sequence[int]) -> tuple[int, ...]:
    sizes = canonical_sizes(shape)
    unknown = [i for i, n in enumerate(sizes) if n == -1]
    if len(unknown) > 1:
        raise TypeError(f"reshape: shape {sizes} given; can only specify one unknown axis size "
                        "with a -1 value; name the others.")
    total, known = prod(a.shape), prod([n for n in sizes if n != -1])
    if unknown and known and mod(total, known) == 0:
        sizes = tuple([floor_div(total, known) if n == -1 else n for n in sizes])
    elif unknown and not is_static((total, known)):
        if mod(total, -known) != 0:     # constraints may say it of the one or the other
            raise errors.InconclusiveDimensionOperation(
                f"reshape: Cannot divide evenly the sizes of shapes {tuple(a.shape)} and {sizes}; "
                f"{known} must divide {total} whatever the sizes are; add the constraint "
                f"'mod({total}, {known}) == 0', or change a size.")
        sizes = tuple([-floor_div(total, -known) if n == -1 else n for n in sizes])
    elif unknown or known != total or any(n < 0 for n in sizes):
        raise TypeError(f"reshape: cannot reshape {typeof(a)} (size {total}) into shape {sizes}; "
                        "the sizes must have the same product; use -1 for one that follows.")
    return sizes


def canonical_sizes(shape: int | Sequence[int]) -> tuple[int, ...]:
    """A shape whose entries may be -1, as a tuple of ints."""
    return tuple([-1 if isinstance(n, (int, np.integer)) and n == -1 else
                  canonical_dim(n, "reshape") for n in entries(shape)])


@fused(static=("order", "out_sharding"), inline=True)
def ravel(a: ArrayLike, order: str = "C", *, out_sharding: ShardingLike = None) -> Array:
    """The elements as a vector.

    Returns: A vector of the dtype of `a`.

    Raises ValueError for order "K": arrays have no strides.

    >>> print(onp.ravel(onp.array([[1, 2], [3, 4]]), order="F"))
    [1 3 2 4]
    """
    if order == "K":
        raise ValueError("ravel: order 'K' given; arrays have no strides here; use 'C' or "
                                  "'F'.")
    a = array_args("ravel", a)[0]
    return reshape(a, (prod(a.shape),), order, out_sharding=out_sharding)


@fused(static=("axis",), inline=True)
def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Insert axes of size 1.

    Args: axis: an int or several: the places of the new axes in the result.

    Raises ValueError for places out of bounds or named twice.

    >>> onp.expand_dims(onp.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    a = array_args("expand_dims", a)[0]
    axes = entries(axis)
    return lax_shape.expand_dims(a, canonical_axes(axes, len(a.shape) + len(axes), "expand_dims"))


@api_boundary
def squeeze(a: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """Remove axes of size 1.

    Args: axis: the axes to remove, all of size 1; None removes each that is. Name them where a size
        may happen to be 1.

    Raises ValueError for larger axes.

    >>> print(onp.squeeze(onp.arange(3).reshape(1, 3, 1)))
    [0 1 2]
    """
    a = plain(operand("squeeze", a))
    if axis is None:
        if not is_static(a.shape):
            raise ValueError(f"squeeze: {typeof(a)} given; jnp.squeeze with axis=None is not "
                             "supported with shape polymorphism; name the axes.")
        axes = tuple([i for i, n in enumerate(a.shape) if definitely_equal(n, 1)])
    else:
        axes = canonical_axes(axis, len(a.shape), "squeeze")
        if not all(definitely_equal(a.shape[i], 1) for i in axes):
            raise ValueError(f"squeeze: axes {axes} of {typeof(a)} given;\n  cannot select an axis "
                             "to squeeze out which has size not equal to one, got\n  "
                             f"shape={tuple(a.shape)} and dimensions={axes}; name axes of size 1.")
    return lax_shape.squeeze(a, axes) if axes else to_array(a)


@overload
def atleast_1d(ary: ArrayLike, /) -> Array: ...


@overload
def atleast_1d(ary: ArrayLike, other: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...


@api_boundary
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays with at least 1 axis: scalars become [1].

    Args: arys: arrays or numbers.
    Returns: The array, or a list of them if several are given (NumPy: a tuple).

    Raises TypeError for lists and tuples.

    >>> onp.atleast_1d(onp.float32(2.0))
    Array([2.], dtype=float32)
    """
    return _at_least("atleast_1d", arys, lambda n: (0,) if n == 0 else ())


@overload
def atleast_2d(ary: ArrayLike, /) -> Array: ...


@overload
def atleast_2d(ary: ArrayLike, other: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...


@fused(inline=True)
@described_like(atleast_1d)
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays with at least 2 axes: vectors become rows [1, n].

    >>> print(onp.atleast_2d(onp.arange(3)))
    [[0 1 2]]
    """
    return _at_least("atleast_2d", arys, lambda n: (0, 1)[:2 - n] if n < 2 else ())


@overload
def atleast_3d(ary: ArrayLike, /) -> Array: ...


@overload
def atleast_3d(ary: ArrayLike, other: ArrayLike, /, *arys: ArrayLike) -> list[Array]: ...


@fused(inline=True)
@described_like(atleast_1d)
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Arrays with at least 3 axes: [n] becomes [1, n, 1], [m, n] becomes [m, n, 1].

    >>> print(onp.atleast_3d(onp.arange(3)).tolist())
    [[[0], [1], [2]]]
    """
    return _at_least("atleast_3d", arys, lambda n: ((0, 1, 2), (0, 2), (2,))[n] if n < 3 else ())


def _at_least(name: str, arys: tuple, axes_for: Callable[[int], Sequence[int]]) -> Any:
    if len(arys) == 1 and isinstance(arys[0], (list, tuple)):
        raise TypeError(f"{name}: a {type(arys[0]).__name__} given; an array is required; convert "
                        "it with olympus.numpy.asarray.")
    out = []
    for x in array_args(name, *arys):
        axes = axes_for(len(x.shape))
        out.append(lax_shape.broadcast_in_dim(x, (1,) * len(axes), ()) if not x.shape and axes
                   else lax_shape.expand_dims(x, axes) if axes else to_array(x))
    return out[0] if len(arys) == 1 else out


# Axes --------------------------------------------------------------------------------------------

def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Permute the axes.

    Args: axes: each axis once: axis i of the result is `axes[i]` of `a`; None reverses them.

    Raises ValueError for axes out of bounds, missing or named twice.

    >>> print(onp.transpose(onp.arange(6).reshape(2, 3)))
    [[0 3]
     [1 4]
     [2 5]]
    """
    try:
        a = plain(operand("transpose", a))
        ndim = len(a.shape)
        if axes is None:
            order = tuple(range(ndim))[::-1]
        else:
            order = canonical_axes(entries(axes), ndim, "transpose")
            if len(order) != ndim:
                raise ValueError(f"transpose: axes {order} of {typeof(a)} given; axes don't "
                                 "match array; each axis once is required.")
        if order == tuple(range(ndim)):
            return to_array(a)
        return lax_shape.transpose_p.bind(a, permutation=order)
    except (*FAILURES, IndexError) as error:
        filter_traceback(error)
        raise


@named
def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """Permute the axes: `transpose` under its name in the array API standard.

    Args: axes: each axis once: axis i of the result is `axes[i]` of `a`.

    Raises ValueError for axes out of bounds, missing or named twice.

    >>> print(onp.permute_dims(onp.arange(6).reshape(2, 3), (1, 0)))
    [[0 3]
     [1 4]
     [2 5]]
    """
    return transpose(a, axes)


@api_boundary
def matrix_transpose(x: ArrayLike, /) -> Array:
    """Exchange the last two axes, without conjugation.

    Args: x: array [..., m, n].
    Returns: An array [..., n, m].

    Raises ValueError for rank below 2.

    >>> print(onp.matrix_transpose(onp.array([[1, 2], [3, 4]])))
    [[1 3]
     [2 4]]
    """
    x = array_args("matrix_transpose", x)[0]
    if len(x.shape) < 2:
        raise ValueError(f"matrix_transpose: {typeof(x)} given; at least 2 axes are required; use "
                         "x[:, None] for a column.")
    return swapaxes(x, -1, -2)


@fused(static=("axis1", "axis2"), inline=True)
def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchange two axes.

    Args: axis1, axis2: ints; negative ones count from the end.

    Raises ValueError for axes out of bounds.

    >>> print(onp.swapaxes(onp.arange(6).reshape(2, 3), 0, -1))
    [[0 3]
     [1 4]
     [2 5]]
    """
    a = array_args("swapaxes", a)[0]
    order = list(range(len(a.shape)))
    i = canonical_axis(axis1, len(order), "swapaxes")
    j = canonical_axis(axis2, len(order), "swapaxes")
    order[i], order[j] = j, i
    return a if i == j else lax_shape.transpose(a, tuple(order))


@fused(static=("source", "destination"), inline=True)
def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Move axes to new positions; the others keep their order.

    Args:
      source: an axis or several.
      destination: where each is in the result, as many.

    Raises ValueError for axes out of bounds or named twice, and for other numbers of them.

    >>> print(onp.moveaxis(onp.arange(4).reshape(2, 2, 1), 0, -1).tolist())
    [[[0, 2]], [[1, 3]]]
    """
    a = array_args("moveaxis", a)[0]
    ndim = len(a.shape)
    src = canonical_axes(source, ndim, "moveaxis")
    dst = canonical_axes(destination, ndim, "moveaxis")
    if len(src) != len(dst):
        raise ValueError(f"moveaxis: {len(src)} source and {len(dst)} destination axes given; as "
                         "many of each are required.")
    order = [i for i in range(ndim) if i not in src]
    for d, s in sorted(zip(dst, src)):
        order.insert(d, s)
    return a if order == list(range(ndim)) else lax_shape.transpose(a, tuple(order))


@named
def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move an axis before another one; `moveaxis` is clearer.

    Args:
      a: array of n axes.
      axis: the axis.
      start: the axis that it is put before, in [-n, n]; n puts it last.

    Raises ValueError for another `start`.

    >>> onp.rollaxis(onp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    (a,) = array_args("rollaxis", a)
    ndim = len(a.shape)
    axis, start = canonical_axis(axis, ndim, "rollaxis"), static_int(start, "rollaxis", "start")
    if not -ndim <= start <= ndim:
        raise ValueError(f"rollaxis: start {start} given; an int in [{-ndim}, {ndim}] is required.")
    start = start + ndim if start < 0 else start
    return moveaxis(a, axis, start - (axis < start))


# Broadcasting ------------------------------------------------------------------------------------

@fused(static=("shape", "subok", "out_sharding"), inline=True)
def broadcast_to(array: ArrayLike, shape: int | Shape, subok: bool = False, *,
                 out_sharding: ShardingLike = None) -> Array:
    """The array repeated along new axes in front and along axes of size 1.

    Args:
      array: array or number.
      shape: an int or ints, the shape of the result.

    Returns:
      An array of that shape. It is no view; under jit the repetition is usually never stored.

    Raises ValueError where it does not fit.

    >>> print(onp.broadcast_to(onp.array([1, 2]), (2, 2)))
    [[1 2]
     [1 2]]
    """
    array = array_args("broadcast_to", array)[0]
    new = canonical_shape(shape, "broadcast_to")
    old = tuple(array.shape)
    if len(old) > len(new) or any(n not in (1, m) for n, m in zip(old[::-1], new[::-1])):
        raise ValueError(f"broadcast_to: {typeof(array)} and shape {new} given; incompatible "
                         "shapes for broadcasting; aligned at the right, each size must be equal "
                         "or 1;\n  insert an axis with x[..., None], or repeat with tile.")
    out = to_array(array) if old == new else promote.broadcast_to(array, new)
    return constrain("broadcast_to", out, out_sharding)


@api_boundary
def broadcast_arrays(*args: ArrayLike, subok: bool = False) -> list[Array]:
    """The arrays, each broadcast to their common shape; dtypes stay.

    Args: args: arrays or numbers.
    Returns: A list of arrays (NumPy: a tuple).

    Raises ValueError where the shapes do not broadcast.

    >>> [x.shape for x in onp.broadcast_arrays(onp.ones(3), onp.ones((2, 1)))]
    [(2, 3), (2, 3)]
    """
    args = tuple(array_args("broadcast_arrays", *args))
    if not args:
        return []
    shape = promote.result_shape("broadcast_arrays", [typeof(x) for x in args])
    return [broadcast_to(x, shape) for x in args]


def broadcast_shapes(*shapes: int | Shape) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    Args: shapes: shapes, each an int or ints.

    Raises ValueError if they do not broadcast.

    >>> onp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    return _broadcast_shapes(*[canonical_shape(s, "broadcast_shapes") for s in shapes])


@api_boundary
def resize(a: ArrayLike, new_shape: Shape) -> Array:
    """The elements in another shape, repeated from the start if it is larger, or cut off.

    Args: new_shape: an int or ints.
    Returns: An array of that shape; zeros if `a` has no elements.

    >>> print(onp.resize(onp.array([1, 2, 3]), (2, 4)))
    [[1 2 3 1]
     [2 3 1 2]]
    """
    a = array_args("resize", a)[0]
    new = canonical_shape(new_shape, "resize")
    size, total = prod(new), prod(a.shape)
    if exceeds(size, 2**63 - 1):
        raise ValueError(f"resize: new_shape {new} given; fewer than 2**63 elements are required.")
    flat = lax_shape.reshape(a, (total,))
    if size and not total:
        return lax_shape.broadcast_in_dim(np.zeros((), a.dtype), new, ())
    if not is_static((size, total)):
        indices = broadcasted_iota(dtypes.default_int(), (size,), 0)
        return lax_shape.reshape(take(flat, indices % total, mode="clip"), new)
    if size > total:
        flat = slicing.concatenate([flat] * -(-size // total), 0)
    return lax_shape.reshape(slicing.slice(flat, (0,), (size,)), new)


# Order -------------------------------------------------------------------------------------------

@fused(static=("axis",), inline=True)
def flip(m: ArrayLike, axis: int | Sequence[int] | None = None) -> Array:
    """The elements in reverse order along axes.

    Args:
      m: array.
      axis: an axis or several; all if None.
    Returns: An array of the shape of `m`.

    >>> print(onp.flip(onp.array([[1, 2], [3, 4]]), axis=1))
    [[2 1]
     [4 3]]
    """
    m = array_args("flip", m)[0]
    return lax_shape.rev(m, canonical_axes(axis, len(m.shape), "flip"))


@api_boundary
def fliplr(m: ArrayLike) -> Array:
    """The elements in reverse order along axis 1: columns from right to left.

    Returns: An array of the shape of `m`.

    Raises ValueError for rank below 2.

    >>> print(onp.fliplr(onp.array([[1, 2], [3, 4]])))
    [[2 1]
     [4 3]]
    """
    _require_rank("fliplr", m, 2)
    return flip(m, 1)


@api_boundary
def flipud(m: ArrayLike) -> Array:
    """The elements in reverse order along axis 0: rows from bottom to top.

    Args: m: array of at least one axis.
    Returns: An array of the shape of `m`.

    Raises ValueError for rank 0.

    >>> print(onp.flipud(onp.array([[1, 2], [3, 4]])))
    [[3 4]
     [1 2]]
    """
    _require_rank("flipud", m, 1)
    return flip(m, 0)


def _require_rank(name: str, m: ArrayLike, rank: int) -> None:
    aval = operand(name, m).aval
    if aval.ndim < rank:
        raise ValueError(f"{name}: {aval} given; at least {rank} axes are required.")


@fused(static=("k", "axes"))
def rot90(m: ArrayLike, k: int = 1, axes: Sequence[int] = (0, 1)) -> Array:
    """Rotate an array by quarter turns in the plane of two axes, from the first to the second.

    Args:
      k: how many quarters; negative ones turn back.
      axes: the two axes.
    Returns: An array of the same elements, whose two axes are exchanged for an odd k.

    Raises ValueError unless two axes are given.

    >>> print(onp.rot90(onp.array([[1, 2], [3, 4]])))
    [[2 4]
     [1 3]]
    """
    m = array_args("rot90", m)[0]
    plane = canonical_axes(axes, len(m.shape), "rot90")
    if len(plane) != 2:
        raise ValueError(f"rot90: axes {plane} given; two axes are required.")
    (i, j), k = plane, static_int(k, "rot90", "k") % 4
    if k == 0:
        return m
    if k == 2:
        return flip(m, (i, j))
    return flip(swapaxes(m, i, j), i) if k == 1 else swapaxes(flip(m, i), i, j)


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int],
         axis: int | Sequence[int] | None = None) -> Array:
    """Move elements along an axis; those that leave one end enter at the other.

    Args:
      shift: by how much: ints, or integer arrays (then they may be traced).
      axis: one axis or as many as shifts; a single shift is for all; the flattened array if None.
    Returns: An array of the shape of `a`.

    Raises TypeError for shifts that are not integers, ValueError where the numbers of shifts and
    axes
    do not fit.

    >>> print(onp.roll(onp.arange(5), 2))
    [3 4 0 1 2]
    """
    try:
        return (_roll_by if type(shift) is int else _roll)(a, shift, axis)
    except (*FAILURES, IndexError) as error:
        filter_traceback(error)
        raise


def _roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: int | Sequence[int] | None
          ) -> Array:
    a = array_args("roll", a)[0]
    if axis is None:
        flat = _roll(lax_shape.reshape(a, (prod(a.shape),)), shift, 0)
        return lax_shape.reshape(flat, a.shape)
    axes = [canonical_axis(d, len(a.shape), "roll") for d in entries(axis)]
    a, shifts = to_array(a), _shifts(shift)
    for one, other in ((shifts, axes), (axes, shifts)):
        if len(one) == 1:       # one shift along several axes, several along one
            one *= len(other)
    if len(shifts) != len(axes):
        raise ValueError(f"roll: {len(shifts)} shifts given for {len(axes)} axes; one shift, or "
                         "one per axis, is required.")
    for s, d in zip(shifts, axes, strict=True):
        n = a.shape[d]
        if not n:
            continue
        if isinstance(s, int):
            a = _roll_static(a, mod(s, n), d)
        else:
            a = _roll_traced(a, s, axis=d)
    return to_array(a)


_roll_by = fused(_roll, static=("shift", "axis"))


def _shifts(shift: Any) -> list[int | Array]:
    if (method := array_method(shift)) is not None:
        shift = method()
    several = isinstance(shift, (tuple, list))
    avals = [operand("roll", s, 1).aval for s in (shift if several else (shift,))]
    for aval in avals:
        if dtypes.scalar_kind(aval.dtype) not in "iub" or aval.ndim > (0 if several else 1):
            raise TypeError(f"roll: shift {aval} given; an integer, or a vector or sequence of "
                            "integers, is required.")
    if several:
        shifts = list(shift)
    else:
        if isinstance(shift, (int, np.ndarray, np.generic)):
            shifts = np.atleast_1d(shift).tolist()
        elif avals[0].ndim:
            count = static_int(avals[0].shape[0], "roll", "number of shifts")
            shifts = [shift[i] for i in range(count)]
        else:
            shifts = [shift]
    return [int(s) if isinstance(s, (int, np.integer)) else s for s in shifts]


def _roll_static(a: Array, s: int, axis: int) -> Array:
    if not s:
        return a
    cut = a.shape[axis] - s
    return slicing.concatenate([slicing.slice_in_dim(a, cut, None, axis=axis),
                                slicing.slice_in_dim(a, 0, cut, axis=axis)], axis)


@fused(static=("axis",))
def _roll_traced(a: Array, s: Array, *, axis: int) -> Array:
    n = a.shape[axis]
    indices = broadcasted_iota(np.int32, (n,), 0)
    indices = mod(indices - promote.convert(s, indices.dtype), n)
    return take(a, indices, axis, mode="clip")


# Dtype -------------------------------------------------------------------------------------------

def astype(x: ArrayLike, dtype: DTypeLike | None, /, *, copy: bool = False,
           device: DeviceLike = None) -> Array:
    """Convert the elements to another dtype.

    Floats become integers by cutting off towards zero; numbers outside go to the nearest limit, NaN
    to 0. Complex to real drops the imaginary part, with a warning.

    Args:
      x: array.
      dtype: anything that names a dtype; None is the default float dtype.
      copy: whether the result must have memory of its own, so that donating one spares the other.
    Returns: An array of the shape of `x`. A 64-bit dtype becomes one of 32 bits, with a warning,
      without x64.

    Raises TypeError for anything but a dtype.

    >>> onp.astype(onp.array([1.7, -1.7]), onp.int32)
    Array([ 1, -1], dtype=int32)
    """
    try:
        x = array_args("astype", x)[0]
        to = dtypes.default_float() if dtype is None else dtypes.requested_dtype("astype", dtype)
        if dtypes.is_complex(x.dtype) and dtypes.is_bool(to):
            x = x != 0
        elif dtypes.is_complex(x.dtype) and not dtypes.is_complex(to):
            promote.warn_complex("astype", typeof(x), to)
        out = to_array(promote.convert(x, to))
    except FAILURES as error:
        begin_with(astype, error)
        raise
    if copy and out is x and type(x) is lib.ArrayImpl:
        out = lib.copied(x)
    return out if device is None else device_put(out, device)


complete_docstrings(globals(), {
    "a": "array.",
    "order": '"C" (last axis fastest) or "F" (first axis fastest); "A" is "C".',
    "m": "array of at least two axes.",
}, returns="An array of the same elements.")
