"""Structural primitives: operations that only move, repeat or sum elements.

The interpreters themselves call these, so nothing here imports another operation. All are linear
in one operand: the tangent moves as the primal does. On typed keys each acts on the physical array,
whose trailing axes it leaves alone (`Structural.lower`).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.config import allow_f16_reductions
from ..base.typing import Array, ArrayLike, IrValue, Params, Shape
from ..base.util import lazy_module
from ..core import reuse, tags
from ..core.ir import OlympusprEqn
from ..core.primitive import Axis, Builder, Linear, Primitive, Zero, linear_jvp
from ..core.trace import is_array, is_literal, literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, is_float0, make_aval
from ..types.memory import Space
from ..types.shape import (
    canonical_axes, canonical_shape, definitely_equal, front_axes, is_static, prod, sequence,
    static_int,
)
from ..types.sharding import ShardingLike
from .sharding import as_typed, constrain, move, settled

Dims = tuple[int, ...]


def shifted(axes: Sequence[int], dim: int = 0) -> Dims:
    """Axes of an array after a new axis is inserted at `dim`."""
    return tuple([a + (a >= dim) for a in axes])


def inserted(values: Sequence[ArrayLike | Sequence[int]], dim: int, value: ArrayLike | Sequence[int]
             ) -> tuple[Any, ...]:
    """A per-axis tuple after a new axis, whose entry is `value`, is inserted at `dim`."""
    return (*values[:dim], value, *values[dim:])


class Physical(Primitive, abstract=True):
    """Lowers operations on typed keys as operations on their physical arrays.

    physical(element, avals, **params)  -> params with the trailing axes of `element` appended
    emit(b, *xs, **params)              -> lower, on avals that are physical
    """

    emit: Any
    cells = staticmethod(reuse.chosen)

    def physical(self, element: Dims, avals: Sequence[ShapedArray], **params: Hashable) -> Params:
        return params

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> list[IrValue] | IrValue:
        dtype = b.avals_out[0].dtype
        if isinstance(dtype, dtypes.ExtendedDType):
            params = self.physical(dtype.physical_shape, b.avals_in, **params)
            b = b.physical()
        return self.emit(b, *xs, **params)


class Structural(Physical, abstract=True):
    """Linear operations on one operand that only move elements: the tangent moves likewise."""

    additive = single = True
    hands_on_nan = True
    makes_nan = False
    fusion = "moves"
    pace = 0.3

    jvp = linear_jvp


class BroadcastInDim(Structural):
    """Put operand axis i at result axis broadcast_dimensions[i]; repeat along the others."""

    algebra = "broadcast"
    spread = staticmethod(tags.broadcast)
    memory = staticmethod(tags.in_memory_of_first)
    cells = staticmethod(reuse.broadcast)
    fusion = "spreads"

    def shown(self, eqn: OlympusprEqn) -> Params:
        dims = eqn.params["broadcast_dimensions"]
        return {"broadcast_dimensions": dims} if dims else {}

    def infer(self, x: ShapedArray, *, shape: Dims, broadcast_dimensions: Dims,
              sharding: ShardingLike) -> ShapedArray:
        dims = broadcast_dimensions
        ok = (len(dims) == x.ndim and all(0 <= d < len(shape) for d in dims)
              and all(d < e for d, e in pairwise(dims)))
        if not ok or any(n not in (1, shape[d]) for n, d in zip(x.shape, dims, strict=True)):
            raise TypeError(f"broadcast_in_dim: operand {x}, shape {shape}, broadcast_dimensions "
                            f"{dims} given; one increasing result axis per operand axis is "
                            "required, each of size 1 or the result's size; reshape the operand, "
                            "or name other axes.")
        return make_aval(shape, x.dtype, x.weak_type)

    def physical(self, element: Dims, avals: Sequence[ShapedArray], *, shape: Dims,
                 broadcast_dimensions: Dims, sharding: ShardingLike) -> Params:
        more = tuple(range(len(shape), len(shape) + len(element)))
        return {"shape": (*shape, *element), "sharding": None,
                "broadcast_dimensions": (*broadcast_dimensions, *more)}

    def emit(self, b: Builder, x: IrValue, *, shape: Dims, broadcast_dimensions: Dims,
             sharding: ShardingLike) -> IrValue:
        return b.broadcast(x, b.avals_out[0], broadcast_dimensions)

    def transpose(self, ct: Array, x: Linear, *, shape: Dims, broadcast_dimensions: Dims,
                  sharding: ShardingLike) -> list[Array | None]:
        # An axis that is repeated once needs no sum.
        sizes: list[Any] = [1] * len(shape)
        for n, d in zip(x.aval.shape, broadcast_dimensions, strict=True):
            sizes[d] = n
        axes = tuple([d for d, n in enumerate(sizes) if not definitely_equal(n, shape[d])])
        if axes:
            ct = reduce_sum_p.bind(ct, axes=axes, out_sharding=None)
        return [reshape(ct, x.aval.shape)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, shape: Dims,
             broadcast_dimensions: Dims, sharding: ShardingLike) -> tuple[Array, int | None]:
        x = move_axis(args[0], dims[0], 0)
        return self.bind(x, shape=(axis.size, *shape), sharding=None,
                         broadcast_dimensions=(0, *shifted(broadcast_dimensions))), 0


class Transpose(Structural):
    """Permute axes: result axis i is operand axis permutation[i]."""

    algebra = "move"
    spread = staticmethod(tags.transpose)
    cells = staticmethod(reuse.transposed)
    pace = 1.0

    def infer(self, x: ShapedArray, *, permutation: Dims) -> ShapedArray:
        if sorted(permutation) != list(range(x.ndim)):
            raise TypeError(f"transpose: operand {x}, permutation {permutation} given; a "
                            f"permutation of range({x.ndim}) is required; name each axis once.")
        return make_aval(tuple([x.shape[p] for p in permutation]), x.dtype, x.weak_type)

    def physical(self, element: Dims, avals: Sequence[ShapedArray], *, permutation: Dims) -> Params:
        n = len(permutation)
        return {"permutation": (*permutation, *range(n, n + len(element)))}

    def emit(self, b: Builder, x: IrValue, *, permutation: Dims) -> IrValue:
        return b.op("stablehlo.transpose", [x], {"permutation": b.i64s(permutation)})

    def transpose(self, ct: Array, x: Linear, *, permutation: Dims) -> list[Array | None]:
        return [self.bind(ct, permutation=_inverse_permutation(permutation))]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, permutation: Dims
             ) -> tuple[Array, int | None]:
        dim = dims[0]
        return self.bind(args[0], permutation=(dim, *shifted(permutation, dim))), 0


class Reshape(Structural):
    """The same elements in row-major order under another shape."""

    algebra = "move"
    spread = staticmethod(tags.reshape)
    settled_by = "reshape(…, out_sharding=…)"
    cells = staticmethod(reuse.reshaped)
    refuses = "This reshape is not supported: "

    def infer(self, x: ShapedArray, *, new_sizes: Dims, dimensions: None, sharding: ShardingLike
              ) -> ShapedArray:
        if prod(new_sizes) != x.size:
            raise TypeError(f"reshape: {x} given, of {x.size} elements; the new shape {new_sizes} "
                            f"has {prod(new_sizes)}; the numbers must be equal; change a size.")
        return make_aval(new_sizes, x.dtype, x.weak_type)

    def emit(self, b: Builder, x: IrValue, **params: Hashable) -> IrValue:
        return b.op("stablehlo.reshape", [x])

    def transpose(self, ct: Array, x: Linear, **params: Hashable) -> list[Array | None]:
        return [self.bind(ct, new_sizes=x.aval.shape, dimensions=None, sharding=None)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, new_sizes: Dims,
             dimensions: None, sharding: ShardingLike) -> tuple[Array, int | None]:
        x = move_axis(args[0], dims[0], 0)
        return self.bind(x, new_sizes=(axis.size, *new_sizes), dimensions=None, sharding=None), 0


class Squeeze(Structural):
    """Drop axes of size 1."""

    algebra = "move"
    spread = staticmethod(tags.squeeze)
    cells = staticmethod(reuse.reshaped)

    def infer(self, x: ShapedArray, *, dimensions: Dims) -> ShapedArray:
        if not all(definitely_equal(x.shape[d], 1) for d in dimensions):
            raise ValueError(f"squeeze: operand {x}, axes {dimensions} given; cannot select an "
                             "axis to squeeze out which has size not equal to one; name axes of "
                             "size 1.")
        return make_aval(tuple([n for i, n in enumerate(x.shape) if i not in dimensions]), x.dtype,
                         x.weak_type)

    def emit(self, b: Builder, x: IrValue, *, dimensions: Dims) -> IrValue:
        return b.op("stablehlo.reshape", [x])

    def transpose(self, ct: Array, x: Linear, *, dimensions: Dims) -> list[Array | None]:
        return [reshape(ct, x.aval.shape)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, dimensions: Dims
             ) -> tuple[Array, int | None]:
        dim = dims[0]
        gone = shifted(dimensions, dim)
        return self.bind(args[0], dimensions=gone), dim - sum(d < dim for d in gone)


class Rev(Structural):
    """Reverse the order of elements along axes."""

    algebra = "move"
    spread = staticmethod(tags.as_first)
    cells = staticmethod(reuse.reversed_)
    along = "dimensions"

    def infer(self, x: ShapedArray, *, dimensions: Dims) -> ShapedArray:
        return x

    def emit(self, b: Builder, x: IrValue, *, dimensions: Dims) -> IrValue:
        return b.op("stablehlo.reverse", [x], {"dimensions": b.i64s(dimensions)})

    def transpose(self, ct: Array, x: Linear, *, dimensions: Dims) -> list[Array | None]:
        return [self.bind(ct, dimensions=dimensions)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, dimensions: Dims
             ) -> tuple[Array, int | None]:
        return self.bind(args[0], dimensions=shifted(dimensions, dims[0])), dims[0]


class Tile(Structural):
    """Repeat the whole array reps[i] times along axis i."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.tiles"), 64
    spread = staticmethod(tags.as_first)
    cells = staticmethod(reuse.tiled)
    fusion = ""

    def infer(self, x: ShapedArray, *, reps: Dims) -> ShapedArray:
        if len(reps) != x.ndim:
            raise TypeError(f"tile: operand {x}, reps {reps} given; one number of repeats per axis "
                            "is required; pass 1 for axes that stay.")
        return make_aval(tuple([n * r for n, r in zip(x.shape, reps, strict=True)]), x.dtype,
                         x.weak_type)

    def physical(self, element: Dims, avals: Sequence[ShapedArray], *, reps: Dims) -> Params:
        return {"reps": (*reps, *[1] * len(element))}

    def emit(self, b: Builder, x: IrValue, *, reps: Dims) -> IrValue:
        aval = b.avals_in[0]
        pairs = make_aval(interleaved(reps, aval.shape), aval.dtype)
        return b.op("stablehlo.reshape", [b.broadcast(x, pairs, range(1, 2 * aval.ndim, 2))])

    def transpose(self, ct: Array, x: Linear, *, reps: Dims) -> list[Array | None]:
        pairs = reshape(ct, interleaved(reps, x.aval.shape))
        return [reduce_sum(pairs, range(0, 2 * len(reps), 2))]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, reps: Dims
             ) -> tuple[Array, int | None]:
        return self.bind(args[0], reps=inserted(reps, dims[0], 1)), dims[0]


class ReduceSum(Structural):
    """Sum over axes. Here and not in `reduce`, as the transpose of broadcasting."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.reductions"), 2048
    spread = staticmethod(tags.reduce)
    makes_nan = adds_up = by_parts = True
    fusion = "reduces"
    along = "axes"

    def infer(self, x: ShapedArray, *, axes: Dims, out_sharding: ShardingLike) -> ShapedArray:
        if dtypes.scalar_kind(x.dtype) not in "iufc":
            raise TypeError(f"reduce_sum: operand {x} given; a numeric dtype is required; convert "
                            "it with astype.")
        return make_aval(tuple([n for i, n in enumerate(x.shape) if i not in axes]), x.dtype,
                         x.weak_type)

    def lower(self, b: Builder, x: IrValue, *, axes: Dims, out_sharding: ShardingLike) -> IrValue:
        # For numbers alone, as keys have no sums. XLA:CPU rounds each partial sum of 16-bit floats:
        # ones in bfloat16 would add up to 256.
        aval, out = b.avals_in[0], b.avals_out[0]
        wide = dtypes.wide_dtype(out.dtype)
        if wide == out.dtype:
            return b.reduce("stablehlo.add", x, 0, axes, out)
        x = b.convert(x, aval.update(dtype=wide))
        return b.convert(b.reduce("stablehlo.add", x, 0, axes, out.update(dtype=wide)), out)

    def transpose(self, ct: Array, x: Linear, *, axes: Dims, out_sharding: ShardingLike
                  ) -> list[Array | None]:
        other_axes = tuple(i for i in range(x.aval.ndim) if i not in axes)
        return [broadcast_in_dim(ct, x.aval.shape, other_axes)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, axes: Dims,
             out_sharding: ShardingLike) -> tuple[Array, int | None]:
        dim = dims[0]
        gone = shifted(axes, dim)
        return (self.bind(args[0], axes=gone, out_sharding=None),
                dim - sum(a < dim for a in gone))


broadcast_in_dim_p = BroadcastInDim("broadcast_in_dim")
transpose_p = Transpose("transpose")
reshape_p = Reshape("reshape")
squeeze_p = Squeeze("squeeze")
rev_p = Rev("rev")
tile_p = Tile("tile")
reduce_sum_p = ReduceSum("reduce_sum")


def _inverse_permutation(permutation: Sequence[int]) -> Dims:
    inverse = [0] * len(permutation)
    for i, p in enumerate(permutation):
        inverse[p] = i
    return tuple(inverse)


def interleaved(xs: Sequence[int], ys: Sequence[int]) -> Dims:
    return tuple([n for pair in zip(xs, ys, strict=True) for n in pair])


def broadcast(operand: ArrayLike, sizes: Sequence[int], *, out_sharding: ShardingLike = None
             ) -> Array:
    """Repeat an array along new leading axes of the given sizes.

    Args:
      operand: array of any dtype, shape [...].
      sizes: sizes of the new axes.
      out_sharding: where the result is; see `with_sharding_constraint`.
    Returns: An array of shape [*sizes, ...].

    >>> print(olympus.lax.broadcast(olympus.numpy.arange(2), (3,)))
    [[0 1]
     [0 1]
     [0 1]]
    """
    shape = typeof(operand).shape
    sizes = canonical_shape(sizes, "broadcast")
    dims = tuple(range(len(sizes), len(sizes) + len(shape)))
    return broadcast_in_dim(operand, (*sizes, *shape), dims, out_sharding=out_sharding)


def broadcast_in_dim(operand: ArrayLike, shape: Shape, broadcast_dimensions: Sequence[int], *,
                     out_sharding: ShardingLike = None) -> Array:
    """Broadcast to `shape`, operand axis i becoming result axis `broadcast_dimensions[i]`.

    Args:
      operand: array; each axis has size 1 or the size of its result axis.
      shape: the result's shape.
      broadcast_dimensions: per operand axis its result axis, each once; in any order, which
        permutes the operand's axes.
      out_sharding: where the result is; see `with_sharding_constraint`.
    Returns: An array of `shape` and the operand's dtype.

    Raises TypeError where the operand does not fit.

    >>> print(olympus.lax.broadcast_in_dim(olympus.numpy.arange(2), (2, 3), (0,)))
    [[0 0 0]
     [1 1 1]]
    """
    shape = canonical_shape(shape, "broadcast_in_dim")
    dims = tuple([
        d if type(d) is int else static_int(d, "broadcast_in_dim", "broadcast dimension")
        for d in sequence(broadcast_dimensions, "broadcast_in_dim", "broadcast_dimensions")])
    if any(d > e for d, e in pairwise(dims)) and len(dims) == typeof(operand).ndim:
        order = sorted(range(len(dims)), key=dims.__getitem__)
        operand, dims = transpose(operand, order), tuple(sorted(dims))
    if is_array(operand) and typeof(operand).shape == shape and dims == tuple(range(len(shape))):
        return constrain("broadcast_in_dim", operand, out_sharding)
    out = broadcast_in_dim_p.bind(operand, shape=shape, broadcast_dimensions=dims, sharding=None)
    return constrain("broadcast_in_dim", out, out_sharding)


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Prepend axes of size 1 until the array has `rank` axes.

    Args:
      x: array of at most that rank.
      rank: how many axes, at most 64.
    Returns: An array of shape (1, ..., 1, *x.shape); ValueError where x has more axes already.

    >>> olympus.lax.broadcast_to_rank(olympus.numpy.ones((2, 3)), 4).shape
    (1, 1, 2, 3)
    """
    ndim = typeof(x).ndim
    rank = static_int(rank, "broadcast_to_rank", "rank")
    if rank > 64:
        raise ValueError(f"broadcast_to_rank: rank {rank} given; at most 64 is possible.")
    if ndim > rank:
        raise ValueError(f"broadcast_to_rank: operand {typeof(x)}, rank {rank} given; at least "
                         f"{ndim} is required; squeeze the operand to lower its rank.")
    return expand_dims(x, range(rank - ndim))


def reshape(operand: ArrayLike, new_sizes: Shape, dimensions: Sequence[int] | None = None, *,
            out_sharding: ShardingLike = None) -> Array:
    """The same elements in row-major order under another shape.

    Args:
      operand: array of any shape.
      new_sizes: the result's shape, as many elements as the operand has; unlike
        `numpy.reshape` it takes no -1.
      dimensions: the order in which to read the operand's axes, slowest first.
      out_sharding: where the result is; see `with_sharding_constraint`.

    Raises TypeError if the numbers of elements differ.

    >>> print(olympus.lax.reshape(olympus.numpy.arange(6), (2, 3)))
    [[0 1 2]
     [3 4 5]]
    """
    shape = canonical_shape(new_sizes, "reshape")
    if dimensions is not None:
        operand = transpose(operand, canonical_axes(dimensions, typeof(operand).ndim, "reshape"))
    if is_array(operand) and typeof(operand).shape == shape:
        return constrain("reshape", operand, out_sharding)
    if out_sharding is None:
        return reshape_p.bind(operand, new_sizes=shape, dimensions=None, sharding=None)
    return settled("reshape", lambda x: reshape(x, shape), out_sharding, operand)


_INT = frozenset((int,))


def transpose(operand: ArrayLike, permutation: Sequence[int]) -> Array:
    """Permute axes: result axis i is operand axis `permutation[i]`.

    Args:
      operand: array.
      permutation: each of its axes once; unlike `numpy.transpose` negative ones are refused.
    Returns: An array of the operand's rank and dtype.

    Raises TypeError unless each axis is named once.

    >>> print(olympus.lax.transpose(olympus.numpy.arange(6).reshape(2, 3), (1, 0)))
    [[0 3]
     [1 4]
     [2 5]]
    """
    if type(permutation) is not tuple or not _INT.issuperset(map(type, permutation)):
        permutation = tuple([
            p if type(p) is int else static_int(p, "transpose", "axis")
            for p in sequence(permutation, "transpose", "permutation")])
    if is_array(operand) and permutation == tuple(range(typeof(operand).ndim)):
        return operand
    return transpose_p.bind(operand, permutation=permutation)


def squeeze(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Drop axes of size 1; negative axes count from the end.

    Args:
      array: array.
      dimensions: the axes to drop.
    Returns: An array with the same elements.

    Raises ValueError for an axis that is out of bounds, named twice or not of size 1.

    >>> olympus.lax.squeeze(olympus.numpy.ones((1, 3, 1)), (0, -1)).shape
    (3,)
    """
    dims = tuple(sorted(canonical_axes(dimensions, typeof(array).ndim, "squeeze")))
    return array if not dims and is_array(array) else squeeze_p.bind(array, dimensions=dims)


def expand_dims(array: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Insert axes of size 1 at the given axes of the result; negative ones count from its end.

    Args:
      array: array.
      dimensions: where the result has the new axes.
    Returns: An array with the same elements.

    >>> olympus.lax.expand_dims(olympus.numpy.ones((2, 3)), (0, -1)).shape
    (1, 2, 3, 1)
    """
    shape, dims = typeof(array).shape, sequence(dimensions, "expand_dims", "dimensions")
    if not dims and is_array(array):
        return array
    new = canonical_axes(dims, len(shape) + len(dims), "expand_dims")
    sizes = iter(shape)
    old = tuple([i for i in range(len(shape) + len(new)) if i not in new])
    result = tuple([1 if i in new else next(sizes) for i in range(len(shape) + len(new))])
    return broadcast_in_dim_p.bind(array, shape=result, broadcast_dimensions=old, sharding=None)


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Merge axes start_dimension … stop_dimension-1 into one.

    Args:
      operand: array.
      start_dimension: the first axis to merge; may be negative.
      stop_dimension: the axis after the last one to merge; may be negative; None is the end.
    Returns: An array with the same elements in row-major order.

    >>> print(olympus.lax.collapse(olympus.numpy.arange(8).reshape(2, 2, 2), 1, 3))
    [[0 1 2 3]
     [4 5 6 7]]
    """
    shape = typeof(operand).shape
    start, stop, _ = slice(*[
        None if d is None else static_int(d, "collapse", "dimension")
        for d in (start_dimension, stop_dimension)]).indices(len(shape))
    if not start < stop:
        raise ValueError(f"collapse: operand {typeof(operand)}, axes {start_dimension} to "
                         f"{stop_dimension} given; at least one axis is required; raise "
                         "stop_dimension.")
    return reshape(operand, (*shape[:start], prod(shape[start:stop]), *shape[stop:]))


def merge(x: ArrayLike, at: int) -> Array:
    """Axes `at` and `at + 1` as one."""
    shape = typeof(x).shape
    return reshape(x, (*shape[:at], prod(shape[at:at + 2]), *shape[at + 2:]))


def cut(x: ArrayLike, at: int, sizes: Sequence[int]) -> Array:
    """Axis `at` as several of these sizes."""
    shape = typeof(x).shape
    return reshape(x, (*shape[:at], *sizes, *shape[at + 1:]))


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """The array with the order of elements reversed along axes.

    Args:
      operand: array.
      dimensions: the axes; none leaves the array as it is.
    Returns: An array of the operand's shape and dtype. ValueError for an axis that is out of bounds
      or named twice.

    >>> print(lax.rev(onp.array([[1, 2], [3, 4]]), (1,)))
    [[2 1]
     [4 3]]
    """
    dims = front_axes(dimensions, typeof(operand).ndim, "rev")
    return operand if not dims and is_array(operand) else rev_p.bind(operand, dimensions=dims)


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat the whole array `reps[i]` times along axis i.

    Args:
      operand: array.
      reps: one int >= 0 per axis; unlike `numpy.tile`, neither more nor fewer.
    Returns: An array of the operand's dtype, of sizes operand.shape[i] * reps[i].

    >>> print(lax.tile(onp.array([[1, 2]]), (2, 2)))
    [[1 2 1 2]
     [1 2 1 2]]
    """
    reps = canonical_shape(sequence(reps, "tile", "reps"), "tile")
    if is_array(operand) and len(reps) == typeof(operand).ndim and all(r == 1 for r in reps):
        return operand
    return tile_p.bind(operand, reps=reps)


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike = None
              ) -> Array:
    """Sum over axes.

    Args:
      operand: array of a numeric dtype; the sum has the same dtype.
      axes: axes to sum over; the result lacks them.
      out_sharding: where the result is; see `with_sharding_constraint`.
    Returns: An array of the operand's dtype, 0 where there are no elements; integers wrap around.

    Raises TypeError for bool, ValueError for an axis out of bounds or named twice.

    >>> print(lax.reduce_sum(onp.array([[1, 2], [3, 4]]), (0,)))
    [4 6]
    """
    aval = typeof(operand)
    axes = front_axes(axes, aval.ndim, "reduce_sum")
    if not allow_f16_reductions.value and str(aval.dtype) in ("float16", "bfloat16") and axes:
        raise ValueError(f"reduce_sum: {aval} given, and the option olympus_allow_f16_reductions "
                         "is off; convert it to float32 before, or use numpy.sum.")
    if not axes and is_array(operand):
        return constrain("reduce_sum", operand, out_sharding)
    out = reduce_sum_p.bind(operand, axes=axes, out_sharding=None)
    return constrain("reduce_sum", out, out_sharding)


def broadcast_scalar(x: ArrayLike, shape: tuple[int, ...], space: Space) -> Array:
    """A scalar repeated, in the memory of its partner."""
    out = broadcast_in_dim_p.bind(x, shape=shape, broadcast_dimensions=(), sharding=None)
    return out if space is Space.Device else move(out, space)


def broadcast_axis(x: ArrayLike, size: int, dim: int) -> Array:
    """`x` repeated `size` times along a new axis at `dim`."""
    shape = typeof(x).shape
    other_axes = tuple(i for i in range(len(shape) + 1) if i != dim)
    return broadcast_in_dim_p.bind(x, shape=(*shape[:dim], size, *shape[dim:]), sharding=None,
                                   broadcast_dimensions=other_axes)


def move_axis(x: ArrayLike, src: Any, dst: int) -> Any:
    """`x` with axis `src` at `dst`, the others in order."""
    if src == dst:
        return x
    permutation = [i for i in range(typeof(x).ndim) if i != src]
    permutation.insert(dst, src)
    return transpose_p.bind(x, permutation=tuple(permutation))


def align(axis: Axis, args: Sequence[ArrayLike], dims: Sequence[int | None], dst: int | None = None
          ) -> tuple[list[Array], int]:
    """Every operand with the mapped axis at `dst` (else where the first mapped one has it)."""
    dim = next(d for d in dims if d is not None) if dst is None else dst
    return [broadcast_axis(x, axis.size, dim) if d is None else move_axis(x, d, dim)
            for x, d in zip(args, dims, strict=True)], dim


def check_element(prim: Primitive, axis: Axis, args: Sequence[ArrayLike],
                  dims: Sequence[int | None], params: Params) -> None:
    """Raise what `prim` raises for the operands of one element.

    A primitive that counts axes from the last takes the mapped axis for one that the element lacks.
    """
    avals = [typeof(x) if d is None else typeof(x).without_axis(d, axis.size)
             for x, d in zip(args, dims, strict=True)]
    prim.infer(*avals, **params)


def zeros_of(aval: ShapedArray) -> ArrayLike:
    """An array of zeros with this aval. NumPy has float0 arrays, if the size is a number: no device
    does. Types of users have zeros of their own.
    """
    if aval.is_high:
        high: Any = aval
        return high.vspace_zero()
    if is_float0(aval) and is_static(aval.shape):
        return np.zeros(aval.shape, aval.dtype)
    if is_float0(aval):
        return broadcast_in_dim_p.bind(np.zeros((), aval.dtype), shape=aval.shape,
                                       broadcast_dimensions=(), sharding=None)
    out = broadcast_in_dim_p.bind(literal(0, aval.dtype, aval.weak_type), shape=aval.shape,
                                  broadcast_dimensions=(), sharding=None)
    return as_typed(tags.pvary(out, aval.vma), aval) if aval.tagged else out


def as_array(x: Array) -> Array:
    """A number, or a program's constant, as an array; anything else as it is."""
    return broadcast_in_dim_p.bind(
        x, shape=(), broadcast_dimensions=(), sharding=None) if is_literal(x) else x


def instantiate(tangent: ArrayLike | Zero) -> Any:
    """The tangent or cotangent as an array: zeros are made if it is symbolic."""
    return zeros_of(tangent.aval) if type(tangent) is Zero else tangent
