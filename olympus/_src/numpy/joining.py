"""Arrays put together and taken apart: concatenate, stack, split, tile, repeat, insert, delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base import errors
from ..base.config import compatible
from ..base.docstrings import complete_docstrings, described_like
from ..base.source import api_boundary, warn
from ..base.spelling import array_method
from ..base.typing import Array, ArrayLike, DimSize, DTypeLike, PyTree, Shape
from ..core.trace import Tracer, describe, literal, typeof
from ..jit.fused import fused, named
from ..lax import creation, cumulative, shape as lax_shape, slicing
from ..lax.sharding import constrain, settled
from ..lax.sort import sort_key_val
from ..types import dtypes
from ..types.shape import (
    SymbolicDim, canonical_axis, canonical_dim, canonical_shape, definitely_equal, entries, extent,
    floor_div, is_static, known_less, less, maximum, minimum, mod, prod, sequence, slice_of,
    static_int,
)
from ..types.sharding import PartitionSpec, ShardingLike
from . import arithmetic, promote
from .creation import asarray, finite_lists
from .eager import eager_sequence
from .indexing import concrete, take, write
from .manipulation import (
    atleast_1d, atleast_2d, atleast_3d, broadcast_to, expand_dims, moveaxis, ravel, reshape,
)
from .promote import array_args, refuse_option, to_array


def _sequence(name: str, arrays: object) -> list[Array]:
    """The arrays of a list or tuple."""
    arrays = list(sequence(arrays, name, "arrays"))
    if not arrays:
        raise _no_arrays(name)
    return arrays


def _no_arrays(name: str) -> ValueError:
    return ValueError(f"{name}: no arrays given; Need at least one array to {name}; "
                      "pass a sequence that has one.")


def _scalars_given() -> ValueError:
    return ValueError("concatenate: a scalar, or the items of an array of rank 1, given; "
                      "Zero-dimensional arrays cannot be concatenated; write concatenate([x, y]) "
                      "to join x and y; use stack for scalars.")


def _is_one_array(arrays: object) -> bool:
    """Whether an array stands for its slices along axis 0."""
    return hasattr(arrays, "aval") or isinstance(arrays, np.ndarray)


def _stacked(name: str, arrays: object, dtype: DTypeLike | None, casting: str) -> Array:
    """An array that stands for its slices, at a dtype."""
    (x,) = _at_one_dtype(name, array_args(name, arrays), dtype, casting)
    if not x.shape:
        raise TypeError(f"{name}: {x.aval} given; a sequence of arrays is required.")
    if definitely_equal(x.shape[0], 0):
        raise _no_arrays(name)
    return x


def _slices_joined(name: str, arrays: object, of_shape: Callable[[Shape], Shape], axis: int,
                   dtype: DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """The slices of an array along axis 0 at shapes `of_shape(slice.shape)`, joined along `axis`.

    A program with an operation for each slice would compile for seconds.
    """
    x = _stacked(name, arrays, dtype, casting)
    shape = of_shape(x.shape[1:])
    axis = canonical_axis(axis, len(shape), name)
    x = moveaxis(reshape(x, (x.shape[0], *shape)), 0, axis)
    aval, out_sharding = typeof(x), None
    if aval.explicit and (spec := aval.sharding.spec)[axis] is None and spec[axis + 1] is not None:
        out_sharding = PartitionSpec(*spec[:axis], *spec[axis + 1:])
    return to_array(lax_shape.reshape(x, (
        *shape[:axis], x.shape[axis] * shape[axis], *shape[axis + 1:]), out_sharding=out_sharding))


def _at_one_dtype(name: str, arrays: Sequence[Array], dtype: DTypeLike | None,
                  casting: str = "same_kind") -> Sequence[Array]:
    """Arrays at one dtype: their promotion, or the given one, if `casting` allows it."""
    dtypes.check_casting(name, casting)
    if dtype is None and casting in ("same_kind", "unsafe"):
        return promote.promote_dtypes(name, *arrays)
    arrays = array_args(name, *arrays)
    to = dtypes.result_type(*arrays) if dtype is None else dtypes.requested_dtype(name, dtype)
    if casting == "same_kind" and compatible.value:     # JAX's functions have no such rule
        casting = "unsafe"
    for x in arrays:
        if not dtypes.can_cast(x.dtype, to, casting):
            raise TypeError(f"{name}: {typeof(x)} and dtype {dtypes.long_name(to)} given; "
                            f"conversion to it is not allowed by the rule {casting!r}; pass "
                            "casting='unsafe', or convert the arrays with astype.")
    return [promote.convert(x, to) for x in arrays]


@eager_sequence(along=lambda arrays, axis=0, *_, **__: axis or 0)
def concatenate(arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0,
                dtype: DTypeLike | None = None, *, out: None = None,
                casting: str = "same_kind") -> Array:
    """Join arrays along an existing axis.

    Args:
      arrays: a sequence of arrays that agree on all other axes, or an array: its slices along axis
        0.
      axis: the axis; None joins the flattened arrays.
    Returns: An array whose size along the axis is the sum of theirs.

    Raises ValueError for no arrays or scalars, TypeError where ranks or sizes differ.

    >>> print(onp.concatenate([onp.ones(2), onp.zeros(1)]))
    [1. 1. 0.]
    """
    refuse_option("concatenate", out=out)
    if _is_one_array(arrays):
        x = _stacked("concatenate", arrays, dtype, casting)
        if axis is None:
            return to_array(lax_shape.reshape(x, (prod(x.shape),)))
        if len(x.shape) == 1:
            raise _scalars_given()
        return _slices_joined("concatenate", x, lambda shape: shape, axis)
    arrays = _at_one_dtype("concatenate", _sequence("concatenate", arrays), dtype, casting)
    if axis is None:
        arrays, axis = [lax_shape.reshape(to_array(x), (prod(x.shape),)) for x in arrays], 0
    if not arrays[0].shape:
        raise _scalars_given()
    axis = canonical_axis(axis, len(arrays[0].shape), "concatenate")
    return to_array(slicing.concatenate(arrays, axis))


@eager_sequence(along=lambda arrays, *, axis=0, **_: axis or 0)
@described_like(concatenate)
def concat(arrays: Sequence[ArrayLike], /, *, axis: int | None = 0, out: None = None,
           dtype: DTypeLike | None = None, casting: str = "same_kind") -> Array:
    """Join arrays along an axis: `concatenate` under its name in the array API standard.

    Args: arrays: a sequence of arrays that agree on all other axes.

    >>> print(onp.concat([onp.ones((1, 2)), onp.zeros((1, 2))], axis=1))
    [[1. 1. 0. 0.]]
    """
    return concatenate(arrays, axis, dtype, out=out, casting=casting)


@eager_sequence(along=lambda arrays, axis=0, *_, **__: axis)
def stack(arrays: ArrayLike | Sequence[ArrayLike], axis: int = 0, out: None = None,
          dtype: DTypeLike | None = None, *, casting: str = "same_kind") -> Array:
    """Join arrays of one shape along a new axis.

    Args:
      arrays: a sequence of arrays, or an array: its slices along axis 0.
      axis: the place of the new axis in the result.
    Returns: An array with one axis more, whose size is the number of arrays.

    Raises ValueError where shapes differ.

    >>> print(onp.stack([onp.array([1, 2]), onp.array([3, 4])], axis=1))
    [[1 3]
     [2 4]]
    """
    refuse_option("stack", out=out)
    if _is_one_array(arrays):
        x = _stacked("stack", arrays, dtype, casting)
        return to_array(moveaxis(x, 0, canonical_axis(axis, len(x.shape), "stack")))
    arrays = _at_one_dtype("stack", _sequence("stack", arrays), dtype, casting)
    if any(x.shape != arrays[0].shape for x in arrays):
        shapes = ", ".join(str(typeof(x)) for x in arrays[:8])
        raise ValueError(f"stack: {shapes} given; All input arrays must have the same shape; "
                         "broadcast or pad them.")
    axis = canonical_axis(axis, len(arrays[0].shape) + 1, "stack")
    return slicing.concatenate([expand_dims(x, axis) for x in arrays], axis)


@api_boundary
def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """The slices along an axis, each without that axis: the inverse of `stack`.

    Args: x: array with at least one axis.
    Returns: A tuple of arrays, as many as the axis has elements.

    Raises ValueError for scalars.

    >>> [x.tolist() for x in onp.unstack(onp.array([[1, 2], [3, 4]]), axis=1)]
    [[1, 3], [2, 4]]
    """
    x = array_args("unstack", x)[0]
    if not x.shape:
        raise ValueError("unstack: a scalar given; an array with at least one axis is required.")
    return _unstack(x, axis=canonical_axis(axis, len(x.shape), "unstack"))


@fused(static=("axis",))
def _unstack(x: Array, *, axis: int) -> tuple[Array, ...]:
    count = static_int(x.shape[axis], "unstack", "size")
    return tuple([slicing.index_in_dim(x, i, axis, keepdims=False) for i in range(count)])


@eager_sequence(along=lambda *_, **__: 0)
def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None, *,
           casting: str = "same_kind") -> Array:
    """Join arrays along axis 0, vectors as rows.

    Returns: An array of at least two axes.

    >>> print(onp.vstack([onp.array([1, 2]), onp.array([[3, 4], [5, 6]])]))
    [[1 2]
     [3 4]
     [5 6]]
    """
    if _is_one_array(tup):
        return _slices_joined("vstack", tup, lambda shape: (*(1, 1)[len(shape):], *shape), 0,
                              dtype, casting)
    return concatenate([atleast_2d(x) for x in _sequence("vstack", tup)], 0, dtype,
                       casting=casting)


@eager_sequence(along=lambda arrays, *_, **__: min(max(arrays[0].ndim, 1) - 1, 1))
def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None, *,
           casting: str = "same_kind") -> Array:
    """Join arrays along axis 1, or along axis 0 if the first is a vector or scalar.

    Returns: An array of at least one axis.

    >>> print(onp.hstack([onp.array([[1], [2]]), onp.array([[3], [4]])]))
    [[1 3]
     [2 4]]
    """
    if _is_one_array(tup):
        rank = getattr(tup, "ndim", 0)
        return _slices_joined("hstack", tup, lambda shape: shape or (1,), int(rank > 2), dtype,
                              casting)
    arrays = [atleast_1d(x) for x in _sequence("hstack", tup)]
    return concatenate(arrays, 0 if len(arrays[0].shape) == 1 else 1, dtype, casting=casting)


@eager_sequence(along=lambda *_, **__: 2)
def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along axis 2, after `atleast_3d`.

    Returns: An array of at least three axes.

    >>> print(onp.dstack([onp.arange(2), onp.array([5, 6])]).tolist())
    [[[0, 5], [1, 6]]]
    """
    if _is_one_array(tup):
        return _slices_joined("dstack", tup, lambda shape: (
            shape if len(shape) > 2 else (*shape, 1) if len(shape) == 2 else
            (1, *(shape or (1,)), 1)), 2, dtype)
    return concatenate([atleast_3d(x) for x in _sequence("dstack", tup)], 2, dtype)


@eager_sequence(along=lambda _: 1)
def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Join arrays along axis 1, vectors as columns.

    Args: tup: a sequence of vectors and matrices, or an array: its slices along axis 0.
    Returns: An array of the promoted dtype and at least two axes.

    >>> print(onp.column_stack([onp.array([1, 2]), onp.array([3, 4])]))
    [[1 3]
     [2 4]]
    """
    if _is_one_array(tup):
        return _slices_joined("column_stack", tup, lambda shape: (
            shape if len(shape) > 1 else (prod(shape), 1)), 1)
    arrays = array_args("column_stack", *_sequence("column_stack", tup))
    columns = [x if len(x.shape) > 1 else reshape(x, (prod(x.shape), 1)) for x in arrays]
    return concatenate(columns, 1)


@fused(static=("axis",), inline=True)
def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Values joined to the end of an array. Each call copies both: do not grow arrays in loops.

    Args:
      arr: array.
      values: array that agrees with it on all other axes.
      axis: the axis; None flattens both.
    Returns: An array of the promoted dtype.

    Raises TypeError where ranks or sizes differ.

    >>> print(onp.append(onp.array([1, 2]), 3))
    [1 2 3]
    """
    return concatenate([arr, values], axis)


@eager_sequence(along=lambda _: -1)
def block(arrays: ArrayLike | list[PyTree]) -> Array:
    """An array from nested lists of blocks: the innermost lists are joined along the last axis.

    Args: arrays: lists of one depth of arrays and numbers; each depth of nesting is an axis more,
        counted from the last.
    Returns: An array of the promoted dtype.

    Raises TypeError for tuples, ValueError for empty lists and for lists of several depths.

    >>> print(onp.block([[onp.eye(1), onp.zeros((1, 2))], [onp.ones((1, 3))]]))
    [[1. 0. 0.]
     [1. 1. 1.]]
    """
    with finite_lists("block"):
        depth, rank = _block_depth(arrays)
    rank = max(rank, depth)

    def join(part: object, level: int) -> Array:
        if not isinstance(part, list):
            x = array_args("block", part)[0]
            return lax_shape.reshape(to_array(x), (1,) * (rank - len(x.shape)) + tuple(x.shape))
        if not part:
            raise ValueError("block: an empty list given; at least one block is required.")
        return concatenate([join(p, level + 1) for p in part], level - depth)

    return join(arrays, 0)


def _block_depth(arrays: PyTree) -> tuple[int, int]:
    if isinstance(arrays, tuple):
        raise TypeError("block: a tuple given; only nested lists are allowed; use a list.")
    if not isinstance(arrays, list):
        return 0, len(array_args("block", arrays)[0].shape)
    depths = [_block_depth(a) for a in arrays] or [(0, 0)]
    if len({d for d, _ in depths}) > 1:
        raise ValueError(f"block: depths {[d + 1 for d, _ in depths]} given; list depths are "
                         "mismatched; equal depths are required.")
    return depths[0][0] + 1, max(r for _, r in depths)


# Splitting ---------------------------------------------------------------------------------------

@api_boundary
def split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike,
          axis: int = 0) -> list[Array]:
    """Parts of an array along an axis.

    Args: indices_or_sections: the number of equal parts; or the places at which a new part begins,
        which must be concrete.

    Raises ValueError where a number of parts does not divide the axis's size.

    >>> [x.tolist() for x in onp.split(onp.arange(6), [1, 4])]
    [[0], [1, 2, 3], [4, 5]]
    """
    return _split_along("split", ary, indices_or_sections, axis)


@api_boundary
def array_split(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike,
                axis: int = 0) -> list[Array]:
    """Parts of an array along an axis, whose sizes may differ by one, the larger ones first.

    Args: indices_or_sections: the number of parts; or the places at which a new part begins.

    Raises ValueError for fewer than one part.

    >>> [x.tolist() for x in onp.array_split(onp.arange(5), 2)]
    [[0, 1, 2], [3, 4]]
    """
    return _split_along("array_split", ary, indices_or_sections, axis)


@api_boundary
def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Parts of an array along axis 0: see `split`.

    Raises ValueError where a number of parts does not divide the axis's size.

    >>> [x.shape for x in onp.vsplit(onp.ones((4, 3)), 2)]
    [(2, 3), (2, 3)]
    """
    return _split_along("vsplit", ary, indices_or_sections, 0, 2)


@api_boundary
def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Parts of an array along axis 1, of a vector along axis 0: see `split`.

    Raises ValueError where a number of parts does not divide the axis's size.

    >>> [x.shape for x in onp.hsplit(onp.ones((4, 3)), [1])]
    [(4, 1), (4, 2)]
    """
    (ary,) = array_args("hsplit", ary)
    return _split_along("hsplit", ary, indices_or_sections, 0 if len(ary.shape) == 1 else 1)


@api_boundary
def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Parts of an array along axis 2: see `split`.

    Args: ary: array of at least three axes.

    Raises ValueError where a number of parts does not divide the axis's size.

    >>> [x.shape for x in onp.dsplit(onp.ones((1, 2, 6)), 3)]
    [(1, 2, 2), (1, 2, 2), (1, 2, 2)]
    """
    return _split_along("dsplit", ary, indices_or_sections, 2, 3)


def _split_along(name: str, ary: ArrayLike, parts: object, axis: int,
                 least: int = 1) -> list[Array]:
    ary = array_args(name, ary)[0]
    if ary.ndim < least:
        raise ValueError(f"{name}: {ary.aval} given; at least {least} axes are required.")
    axis = canonical_axis(axis, len(ary.shape), name)
    n = ary.shape[axis]
    if isinstance(parts, Tracer):
        parts = concrete(name, parts, "indices_or_sections", "compute it with NumPy")
    if isinstance(parts, (list, tuple)) or getattr(parts, "ndim", 0):
        cuts = [extent(i, name, "indices_or_sections") for i in entries(parts)]
        ends = [maximum(0, minimum(n, i + n if known_less(i, 0) else i)) for i in cuts]
        starts, stops = [0, *ends], [*ends, n]
    else:
        if isinstance(parts, SymbolicDim):
            raise ValueError(f"{name}: {parts} sections given; jax.numpy.split with a symbolic "
                             "number of sections is not supported; give their number.")
        number = parts.item() if isinstance(parts, np.ndarray) else parts
        if isinstance(number, (float, np.floating)) and number.is_integer():    # as NumPy: 2.0
            number = int(number)
        count = static_int(number, name, "indices_or_sections")
        if count >= 2**31:
            raise ValueError(f"{name}: {count} sections given; fewer than 2**31 are required.")
        if count <= 0:
            raise ValueError(f"{name}: {count} sections given; number of sections must be larger "
                             "than 0.")
        rest = mod(n, count)
        if name != "array_split" and not definitely_equal(rest, 0):
            raise ValueError(f"{name}: {count} sections of an axis of size {n} given;\n  array "
                             f"split does not result in an equal division: rest is {rest};\n  use "
                             "array_split.")
        # The first n % count parts have one more than the others.
        cuts = [i * floor_div(n, count) + minimum(i, rest) for i in range(count + 1)]
        starts, stops = cuts[:-1], cuts[1:]
    return list(_pieces(ary, bounds=tuple(zip(starts, stops)), axis=axis))


@fused(static=("bounds", "axis"))
def _pieces(x: Array, *, bounds: tuple, axis: int) -> list[Array]:
    if all(type(a) is type(b) is int and a <= b for a, b in bounds):
        # One operation: the derivative joins the parts' own, which sums of padded ones would be.
        return slicing.split(x, [b - a for a, b in bounds], axis)
    return [slicing.slice_in_dim(x, a, maximum(a, b), axis=axis) for a, b in bounds]


# Repeating ---------------------------------------------------------------------------------------

@api_boundary
def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """Repeat the whole array along axes.

    Args:
      A: array.
      reps: how often along each axis, aligned at the right; more of them than axes add axes in
        front.
    Returns: An array of the dtype of `A`.

    >>> print(onp.tile(onp.array([1, 2]), (2, 2)))
    [[1 2 1 2]
     [1 2 1 2]]
    """
    A = array_args("tile", A)[0]
    counts = canonical_shape(reps, "tile: reps")
    rank = max(len(counts), len(A.shape))
    counts = (1,) * (rank - len(counts)) + counts
    A = lax_shape.reshape(to_array(A), (1,) * (rank - len(A.shape)) + tuple(A.shape))
    return lax_shape.tile(A, counts) if any(n != 1 for n in counts) else A


@named
def repeat(a: ArrayLike, repeats: ArrayLike, axis: int | None = None, *,
           total_repeat_length: int | None = None, out_sharding: ShardingLike = None) -> Array:
    """Repeat each element in place.

    Args:
      a: array.
      repeats: how often: an int, or an integer array with one number per element along the axis.
      axis: the axis; the flattened array if None.
      total_repeat_length: the result's size along the axis, required if `repeats` is traced. Where
        it is larger than the sum, the last element is repeated; where it is smaller, the result is
        cut off.
    Returns: An array of the dtype of `a`.

    Raises TypeError for repeats that are not integers, ValueError for negative ones and for another
    number of them, ConcretizationTypeError for traced ones without `total_repeat_length`.

    >>> print(onp.repeat(onp.array([7, 8, 9]), onp.array([2, 0, 1])))
    [7 7 9]
    """
    a = array_args("repeat", a)[0]
    if axis is None:
        a, axis = ravel(a), 0
    a = atleast_1d(a)
    axis = canonical_axis(axis, len(a.shape), "repeat")
    n = a.shape[axis]
    if isinstance(repeats, SymbolicDim):
        if total_repeat_length is not None:
            raise ValueError(
                f"repeat: repeats {repeats}, total_repeat_length {total_repeat_length} given; "
                "jnp.repeat with a non-constant `repeats` is supported only without "
                "total_repeat_length; leave it out.")
        return constrain("repeat", _repeat_equally(a, count=repeats, axis=axis), out_sharding)
    if isinstance(repeats, (list, tuple)):
        repeats = np.asarray(repeats, np.int32)
    if isinstance(repeats, Tracer) and repeats._known_value() is None:
        out = _repeat_traced(a, repeats, total_repeat_length, axis)
        return constrain("repeat", out, out_sharding)
    counts = np.asarray(repeats._known_value() if isinstance(repeats, Tracer) else repeats)
    if counts.dtype.kind not in "iub":
        raise TypeError(f"repeat: repeats of dtype {counts.dtype} given; integers are required.")
    if counts.ndim > 1 or (counts.ndim and counts.shape[0] not in (1, n)):
        raise ValueError(f"repeat: repeats of shape {counts.shape} given for an axis of size {n}; "
                         "a scalar or one number per element is required.")
    if not counts.ndim and total_repeat_length is None:
        count = int(counts)
        return settled("repeat", lambda a: _repeat_equally(a, count=count, axis=axis), out_sharding,
                       a)
    if (counts < 0).any():
        raise ValueError(f"repeat: repeats {counts} given; they are not negative.")
    indices = np.repeat(np.arange(n, dtype=np.int32), np.broadcast_to(counts, (n,)))
    if total_repeat_length is not None:
        fill = indices[-1] if indices.size else 0
        total = canonical_dim(total_repeat_length, "repeat")
        if total >= 2**31:
            raise ValueError(f"repeat: total_repeat_length {total} given; a number below 2**31 is "
                             "required.")
        short = max(0, total - indices.size)
        indices = np.concatenate([indices, np.full(short, fill, np.int32)])[:total]
    return settled("repeat", lambda a: take(a, indices, axis, mode="clip"), out_sharding, a)


@fused(static=("count", "axis"))
def _repeat_equally(a: Array, *, count: Any, axis: int) -> Array:
    if known_less(count, 0):
        raise ValueError(f"repeat: repeats {count} given; at least 0 is required.")
    wide = broadcast_to(expand_dims(a, axis + 1), (*a.shape[:axis + 1], count, *a.shape[axis + 1:]))
    return lax_shape.reshape(wide, (*a.shape[:axis], a.shape[axis] * count, *a.shape[axis + 1:]))


def _repeat_traced(a: Array, repeats: Tracer, total: int | None, axis: int) -> Array:
    if total is None:
        raise errors.ConcretizationTypeError(
            f"repeat: repeats is {describe(repeats)}; a concrete value is required, because it "
            "decides the result's shape; pass total_repeat_length, or compute repeats with NumPy.")
    return _repeat_to(a, broadcast_to(repeats, (a.shape[axis],)), total=int(total), axis=axis)


@fused(static=("total", "axis"))
def _repeat_to(a: Array, repeats: Array, *, total: int, axis: int) -> Array:
    """Steps of 1 are written where an element's repeats end; their running sum says which it is."""
    repeats = promote.convert(repeats, np.dtype(np.int32))
    ends = cumulative.cumsum(repeats, 0)
    inner = slicing.slice_in_dim(ends, 0, max(0, a.shape[axis] - 1), axis=0)
    steps = write("add", creation.full((total,), 0, np.int32), inner, 1, mode="drop")
    return take(a, cumulative.cumsum(steps, 0), axis, mode="clip")


# Inserting and deleting --------------------------------------------------------------------------

def _concrete_indices(name: str, obj: object, n: int) -> np.ndarray:
    """Concrete places along an axis of size n, from an int, slice, mask or integers."""
    if isinstance(obj, slice):
        start, step, size = slice_of(obj, n)
        return start + step * np.arange(static_int(size, name, "the size of a slice"))
    if (method := array_method(obj)) is not None:
        obj = method()
    if isinstance(obj, Tracer):
        obj = concrete(name, obj, "obj", "compute it with NumPy")
    indices = np.asarray(obj)
    if indices.size == 0:
        indices = indices.astype(int)
    if indices.dtype == bool:
        return np.flatnonzero(indices)
    if indices.dtype.kind not in "iu":
        raise TypeError(f"{name}: obj of dtype {indices.dtype} given; integers or a mask required.")
    return indices


@named
def delete(arr: ArrayLike, obj: ArrayLike | slice, axis: int | None = None, *,
           assume_unique_indices: bool = False) -> Array:
    """The array without the elements at some places along an axis.

    Args:
      arr: array.
      obj: an int, a slice, a mask or integers; concrete, because it decides the result's shape. A
        traced integer is possible, and traced integers with `assume_unique_indices`.
      axis: the axis; the flattened array if None.
      assume_unique_indices: promise that no place is named twice.
    Returns: An array of the dtype of `arr`.

    Raises IndexError for places out of bounds, ConcretizationTypeError for other traced ones.

    >>> print(onp.delete(onp.array([4, 5, 6, 7]), onp.array([0, -1])))
    [5 6]
    """
    arr = array_args("delete", arr)[0]
    if axis is None:
        arr, axis = lax_shape.reshape(arr, (prod(arr.shape),)), 0
    axis = canonical_axis(axis, len(arr.shape), "delete")
    n = arr.shape[axis]
    if isinstance(obj, Tracer) and obj._known_value() is None and (
            assume_unique_indices or not obj.shape):
        if definitely_equal(prod(obj.shape), 1) and is_static((n,)):
            return _without_run(arr, reshape(obj, ()), count=1, axis=axis)
        return _delete_traced(arr, ravel(obj), axis=axis)
    indices = _concrete_indices("delete", obj, n)
    if not is_static((n,)) and ((indices >= 0).all() or (indices < 0).all()):
        return _delete_traced(arr, np.unique(indices), axis=axis)
    if indices.size and (less(indices.min(), -n) or not less(indices.max(), n)):
        raise IndexError(f"delete: places {indices} given for an axis of size {n}; each must be in "
                         "bounds.")
    at = np.unique(np.where(indices < 0, indices + n, indices))
    if at.size and at[-1] - at[0] == at.size - 1:
        return _without_run(arr, asarray(at[0], np.int32), count=at.size, axis=axis)
    return take(arr, np.delete(np.arange(n, dtype=np.int32), at), axis, mode="clip")


@fused(static=("count", "axis"))
def _without_run(arr: Array, start: Array, *, count: int, axis: int) -> Array:
    """Without `count` elements from a place on; the last ones are missing if it is out of bounds.

    A choice of two slices, for which XLA makes vectors, and one program serves all places.
    """
    n = arr.shape[axis]
    start = _from_front(start, n)
    start = promote.choose(start < 0, literal(n, start.dtype), start)
    first, last = [slicing.slice_in_dim(arr, i, n - count + i, axis=axis) for i in (0, count)]
    places = creation.broadcasted_iota(np.int32, first.shape, axis)
    return promote.choose(places < start, first, last)


def _from_front(at: Array, n: DimSize) -> Array:
    """Places in int32, of which negative ones are counted from the end."""
    at = promote.convert(at, dtypes.as_dtype("int32"))
    return promote.choose(at < 0, at + n, at)


@fused(static=("axis",))
def _delete_traced(arr: Array, at: Array | np.ndarray, *, axis: int) -> Array:
    """Each place that remains moves behind the deleted ones before it."""
    n = arr.shape[axis]
    gone = write("set", creation.full((n,), 0, np.int32), at, 1, mode="drop")
    left = n - at.shape[0]
    behind = cumulative.cumsum(1 - gone, 0) - 1
    target = behind * (1 - gone) + gone * n
    indices = write("set", creation.full((left,), 0, np.int32), target,
                    creation.broadcasted_iota(np.int32, (n,), 0), mode="drop")
    return take(arr, indices, axis, mode="clip")


@named
@described_like(delete)
def insert(arr: ArrayLike, obj: ArrayLike | slice, values: ArrayLike,
           axis: int | None = None) -> Array:
    """Insert values before the given indices along an axis.

    Args:
      arr: array of n elements along the axis.
      obj: an int, a slice, a mask or integers in [-n, n]; they refer to the array before the
        insertion. Integers may be traced; those outside then count as the nearer end.
      values: array that broadcasts to the inserted part; converted to the dtype of `arr`.

    Raises IndexError for places out of bounds, ConcretizationTypeError for a traced mask.

    >>> print(onp.insert(onp.array([1, 2, 3]), 1, 9))
    [1 9 2 3]
    >>> print(onp.insert(onp.array([1, 2, 3]), onp.array([0, 2]), onp.array([8, 9])))
    [8 1 2 9 3]
    """
    arr, values = array_args("insert", arr, values)
    if axis is None:
        arr, axis = lax_shape.reshape(arr, (prod(arr.shape),)), 0
    axis = canonical_axis(axis, len(arr.shape), "insert")
    n = arr.shape[axis]
    traced = isinstance(obj, Tracer) and obj._known_value() is None and dtypes.is_integer(obj.dtype)
    at: Any = obj if traced else _concrete_indices("insert", obj, n)
    values = promote.convert(values, arr.dtype)
    count = prod(at.shape)
    if at.ndim > 1:
        raise ValueError(f"insert: obj of shape {at.shape} given; an integer or a vector of "
                         "them is required.")
    if definitely_equal(count, 1):
        # In NumPy all values go to one place, and a scalar's values have the axis first.
        lead = (1,) * (len(arr.shape) - len(values.shape))
        values = reshape(values, (*lead, *values.shape))
        values = values if at.ndim else moveaxis(values, 0, axis)
        count = values.shape[axis]
    values = broadcast_to(values, (*arr.shape[:axis], count, *arr.shape[axis + 1:]))
    single = definitely_equal(prod(at.shape), 1) and definitely_equal(count, 1)
    if single and traced:
        return _with_one(arr, reshape(at, ()), values, axis=axis)
    if traced or not is_static((n, count)):
        return _insert_traced(arr, broadcast_to(at.reshape(-1), (count,)), values, axis=axis)
    at = np.broadcast_to(at.reshape(-1), count)
    if at.size and (less(at.min(), -n) or less(n, at.max())):
        error = IndexError(f"insert: places {at} given for an axis of size {n}; each must be "
                           "in bounds.")
        if not compatible.value:
            raise error
        warn(f"{error} The nearer end is taken, as JAX does.")
        at = np.clip(at, -n, n)
    at = np.where(at < 0, at + n, at)
    if single:
        return _with_one(arr, asarray(at[0], np.int32), values, axis=axis)
    order = np.argsort(at, kind="stable")
    to = np.empty_like(at)
    to[order] = at[order] + np.arange(count)
    is_old = np.ones(n + count, bool)
    is_old[to] = False
    indices = np.empty(n + count, np.int32)
    indices[is_old] = np.arange(n)
    indices[to] = n + np.arange(count)
    return take(concatenate([arr, values], axis), indices, axis, mode="clip")


@fused(static=("axis",))
def _with_one(arr: Array, at: Array, values: Array, *, axis: int) -> Array:
    """With values of size 1 along the axis inserted; out of bounds they come at the nearer end."""
    n = arr.shape[axis]
    at = arithmetic.minimum(arithmetic.maximum(_from_front(at, n), 0), n)
    longer = concatenate([values, arr, values], axis)
    first, last = [slicing.slice_in_dim(longer, i, n + 1 + i, axis=axis) for i in (1, 0)]
    places = creation.broadcasted_iota(np.int32, first.shape, axis)
    others = promote.choose(places < at, first, last)
    return promote.choose(places == at, broadcast_to(values, first.shape), others)


@fused(static=("axis",))
def _insert_traced(arr: Array, at: Array, values: Array, *, axis: int) -> Array:
    """Insert at traced places; those outside of the array mean the nearer end."""
    n, count = arr.shape[axis], values.shape[axis]
    front = arithmetic.minimum(arithmetic.maximum(_from_front(at, n), 0), n)
    which = creation.iota(np.int32, count)
    before, order = sort_key_val(front, which)
    inserted = write("set", creation.full((n + count,), -1, np.int32), before + which, order)
    mine = inserted < 0
    rank = cumulative.cumsum(promote.convert(mine, dtypes.as_dtype("int32")), 0) - 1
    taken = promote.choose(mine, rank, n + inserted)
    return take(concatenate([arr, values], axis), taken, axis, mode="clip")


complete_docstrings(globals(), {
    "axis": "the axis.",
    "dtype": "of the result; the promotion of theirs by default.",
    "casting":
        "\"no\", \"equiv\", \"safe\", \"same_kind\" or \"unsafe\": NumPy's rules for the "
        "conversion\n"
        "to the dtype of the result.",
    "ary": "array.",
    "indices_or_sections":
        "the number of equal parts; or the places at which a new part begins.",
    "tup": "a sequence of arrays, or an array: its slices along axis 0.",
}, returns="A list of arrays.")
