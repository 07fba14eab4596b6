"""Pieces of arrays: slices at static and computed places, padding, concatenation, splitting."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from ..base.docstrings import complete_docstrings, described_like
from ..base.errors import InconclusiveDimensionOperation
from ..base.typing import Array, ArrayLike, DType, IrValue, Params, Shape
from ..base.util import lazy_module
from ..core import reuse, tags
from ..core.facts import Indexed, Shapes
from ..core.ir import Atom, Literal
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, Tangent, linear_jvp
from ..core.trace import is_array, is_literal, literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import (
    DimSize, SymbolicDim, canonical_axes, canonical_axis, canonical_shape, definitely_equal, extent,
    front_axis, is_static, known_less, largest, less, prod, sequence, static_int, strided_size,
)
from . import families
from .arithmetic import rem
from .comparison import lt, select_n
from .convert import convert_element_type_p
from .families import add
from .indexing import (
    CLIP, GatherDimensionNumbers, ScatterDimensionNumbers, gather, gather_p, scatter_p,
)
from .shape import (
    Dims, Physical, Structural, align, broadcast_axis, broadcast_in_dim, inserted, instantiate,
    reduce_sum, reshape, squeeze, zeros_of,
)

PaddingConfig = tuple[tuple[int, int, int], ...]


# Static slices ----------------------------------------------------------------------------------


def _resized_axes(shapes: Sequence[Dims]) -> list[int]:
    """The axes that a slice cuts, for shapes of operands and a result."""
    return [a for a, (n, m) in enumerate(zip(shapes[0], shapes[-1], strict=True)) if n != m]


class Slice(Structural):
    """operand[start:limit:stride, …]."""

    spread = staticmethod(tags.as_first)
    settled_by = "x.at[…].get(out_sharding=…)"
    cells = staticmethod(reuse.sliced)
    hands_on_nan = False
    resizes = True
    refuses = "there is no slicing on sharded dims that leaves parts of other sizes: "

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        return self.pace * prod(outs[0])

    def moved_axes(self, params: Params, shapes: Sequence[Dims]) -> Sequence[int]:
        return _resized_axes(shapes)

    def infer(self, x: ShapedArray, *, start_indices: Dims, limit_indices: Dims,
              strides: Dims | None) -> ShapedArray:
        steps = (1,) * x.ndim if strides is None else strides
        if not len(start_indices) == len(limit_indices) == len(steps) == x.ndim:
            raise TypeError(f"slice: operand {x}, start_indices {start_indices}, limit_indices "
                            f"{limit_indices}, strides {strides} given; one entry per axis is "
                            "required.")
        sizes = []
        for n, start, limit, step in zip(x.shape, start_indices, limit_indices, steps, strict=True):
            if limit is n and step == 1 and start.__class__ is int and start == 0:
                sizes.append(n)
                continue
            try:
                wrong = not 0 <= start <= limit or less(n, limit) or step < 1
            except InconclusiveDimensionOperation:
                wrong = False       # refinement looks again, at the sizes that are given
            if wrong:
                raise TypeError(f"slice: operand {x}, start_indices {start_indices}, limit_indices "
                                f"{limit_indices}, strides {strides} given; 0 <= start <= limit <= "
                                "size and stride >= 1 are required on each axis.")
            sizes.append(strided_size(start, limit, step))
        return make_aval(tuple(sizes), x.dtype, x.weak_type)

    def physical(self, element: Dims, avals: Sequence[ShapedArray], *, start_indices: Dims,
                 limit_indices: Dims, strides: Dims | None) -> Params:
        return {"start_indices": (*start_indices, *[0] * len(element)),
                "limit_indices": (*limit_indices, *element),
                "strides": strides and (*strides, *[1] * len(element))}

    def emit(self, b: Builder, x: IrValue, *, start_indices: Dims, limit_indices: Dims,
             strides: Dims | None) -> IrValue:
        return b.op("stablehlo.slice", [x], {
            "start_indices": b.i64s(start_indices), "limit_indices": b.i64s(limit_indices),
            "strides": b.i64s(strides or (1,) * len(start_indices))})

    def transpose(self, ct: Array, x: Linear, *, start_indices: Dims, limit_indices: Dims,
                  strides: Dims | None) -> list[Array | None]:
        shape, sizes = x.aval.shape, typeof(ct).shape
        steps = strides or (1,) * len(shape)
        config = tuple([
            (start, n - start - (m - 1) * step - 1 if m else n - start, step - 1)
            for n, m, start, step in zip(shape, sizes, start_indices, steps, strict=True)])
        return [pad_p.bind(ct, literal(0, x.aval.dtype), padding_config=config)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *, start_indices: Dims,
             limit_indices: Dims, strides: Dims | None) -> tuple[Array, int | None]:
        dim = dims[0]
        return self.bind(args[0], start_indices=inserted(start_indices, dim, 0),
                         limit_indices=inserted(limit_indices, dim, axis.size),
                         strides=strides and inserted(strides, dim, 1)), dim


slice_p = Slice("slice")


def slice(operand: ArrayLike, start_indices: Sequence[int], limit_indices: Sequence[int],
          strides: Sequence[int] | None = None) -> Array:
    """operand[start:limit:stride] on each axis, with static bounds.

    Args:
      start_indices: per axis the first index, from 0.
      limit_indices: per axis the index before which to stop, at most the axis's size.
      strides: per axis the step, positive; None is 1 everywhere.

    Raises TypeError for bounds outside of the array (unlike Python's slices).

    >>> print(olympus.lax.slice(olympus.numpy.arange(6), (1,), (6,), (2,)))
    [1 3 5]
    """
    starts = canonical_shape(sequence(start_indices, "slice", "start_indices"), "slice")
    limits = canonical_shape(sequence(limit_indices, "slice", "limit_indices"), "slice")
    steps = None if strides is None else canonical_shape(
        sequence(strides, "slice", "strides"), "slice")
    if (is_array(operand) and not any(starts) and limits == typeof(operand).shape
            and (steps is None or all(s == 1 for s in steps))):
        return operand
    return slice_p.bind(operand, start_indices=starts, limit_indices=limits, strides=steps)


def slice_in_dim(operand: ArrayLike, start_index: int | None, limit_index: int | None,
                 stride: int = 1, axis: int = 0) -> Array:
    """operand[start:limit:stride] on one axis; negative bounds count from its end, None is open.

    Args:
      start_index, limit_index: the first index, and the one before which to stop.
      stride: the step, positive.

    >>> print(olympus.lax.slice_in_dim(olympus.numpy.arange(5), 1, -1))
    [1 2 3]
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape), "slice_in_dim")
    n = shape[axis]
    start, limit = [default if i is None else extent(i, "slice_in_dim", "index")
                    for i, default in ((start_index, 0), (limit_index, n))]
    start, limit = start + n if start < 0 else start, limit + n if limit < 0 else limit
    starts, limits, steps = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis], limits[axis], steps[axis] = start, limit, stride
    return slice(operand, starts, limits, steps)


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """operand[index] on one axis, with a static index.

    Args: index: a Python int; a negative one counts from the end.
    Returns: An array of the operand's dtype. IndexError for an index out of bounds.

    >>> x = onp.array([[1, 2], [3, 4]])
    >>> print(lax.index_in_dim(x, 1, axis=1, keepdims=False))
    [2 4]
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape), "index_in_dim")
    n = shape[axis]
    index = extent(index, "index_in_dim", "index")
    if known_less(index, -n) or known_less(n - 1, index):
        raise IndexError(f"index_in_dim: index {index} is out of bounds for axis {axis} with size "
                         f"{n}; an int in [{-n}, {n}) is required.")
    index = index + n if index < 0 else index
    out = slice_in_dim(operand, index, index + 1, 1, axis)
    return out if keepdims else squeeze(out, (axis,))


# Padding ----------------------------------------------------------------------------------------


class Pad(Primitive):
    """Put padding before, after and between elements; negative amounts cut off."""

    additive = single = True
    spread = staticmethod(tags.as_first)
    fusion = "moves"
    resizes = True
    pace = 0.3
    refuses = "there is no padding on sharded dims that leaves parts of other sizes: "

    def moved_axes(self, params: Params, shapes: Sequence[Dims]) -> Sequence[int]:
        return [a for a, config in enumerate(params["padding_config"]) if any(config)]

    def infer(self, x: ShapedArray, value: ShapedArray, *, padding_config: PaddingConfig
              ) -> ShapedArray:
        if x.dtype != value.dtype or dtypes.is_extended(x.dtype):
            raise TypeError(f"pad: operand {x}, padding_value {value} given; a scalar of the "
                            "operand's numeric dtype is required; convert it with astype.")
        if value.ndim:
            raise ValueError(f"pad: operand {x}, padding_value {value} given; a scalar is "
                             "required.")
        if len(padding_config) != x.ndim:
            raise ValueError(f"pad: operand {x}, padding_config {padding_config} given; one (low, "
                            "high, interior) per axis is required.")
        shape = tuple([lo + hi + (n + (n - 1) * mid if n else 0)
                       for n, (lo, hi, mid) in zip(x.shape, padding_config, strict=True)])
        if any(mid < 0 for _, _, mid in padding_config) or any(less(n, 0) for n in shape):
            raise ValueError(f"pad: operand {x}, padding_config {padding_config} given, result "
                             f"{shape}; interior padding and sizes that are not negative are "
                             "required.")
        return make_aval(shape, x.dtype, x.weak_type and value.weak_type)

    def lower(self, b: Builder, x: IrValue, value: IrValue, *, padding_config: PaddingConfig
              ) -> IrValue:
        low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
        out = b.avals_out[0]
        if not is_static((*low, *high, *out.shape)) or not any(less(n, 0) for n in (*low, *high)):
            return _emit_pad(b, x, value, low, high, interior, out)
        if any(less(max(n - 1, 0) * (mid + 1), -min(lo, hi)) for n, (lo, hi, mid) in zip(
                b.avals_in[0].shape, padding_config, strict=True)):
            # All elements are padding: XLA's partitioner (jaxlib 0.10.2) needs it in this form.
            return b.broadcast(value, out, ())
        # jaxlib 0.10.2 adds the cut-off elements to the padding of a window that follows.
        starts, ends = ([-n if less(n, 0) else 0 for n in edge] for edge in (low, high))
        low, high = ([0 if less(n, 0) else n for n in edge] for edge in (low, high))
        if any((*low, *high, *interior)):
            shape = [n + i + j for n, i, j in zip(out.shape, starts, ends, strict=True)]
            x = _emit_pad(b, x, value, low, high, interior, out.update(shape=tuple(shape)))
        return b.op("stablehlo.slice", [x], {
            "start_indices": b.i64s(starts), "strides": b.i64s([1] * len(starts)),
            "limit_indices": b.i64s([i + n for i, n in zip(starts, out.shape, strict=True)])})

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *,
            padding_config: PaddingConfig) -> tuple[Array, Tangent]:
        return (self.bind(*primals, padding_config=padding_config),
                self.bind(*map(instantiate, tangents), padding_config=padding_config))

    def transpose(self, ct: Array, x: Linear, value: Array | Linear, *,
                  padding_config: PaddingConfig) -> list[Cotangent]:
        x_ct = v_ct = None
        if type(x) is Linear:
            back = tuple([(-lo, -hi, 0) for lo, hi, _ in padding_config])
            x_ct = self.bind(ct, literal(0, x.aval.dtype), padding_config=back)
            steps = tuple([mid + 1 for _, _, mid in padding_config])
            x_ct = slice(x_ct, (0,) * x.aval.ndim, typeof(x_ct).shape, steps)
        if type(value) is Linear:
            aval = x.aval if type(x) is Linear else typeof(x)
            mask = self._padded(aval.shape, padding_config)
            only = select_n(mask, zeros_of(typeof(ct)), ct)
            v_ct = reduce_sum(only, range(typeof(ct).ndim))
        return [x_ct, v_ct]

    def _padded(self, shape: Dims, config: PaddingConfig) -> Array:
        """Mask of the elements that are padding."""
        inside = zeros_of(make_aval(shape, dtypes.as_dtype(bool)))
        return self.bind(inside, literal(True, dtypes.as_dtype(bool)), padding_config=config)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *,
             padding_config: PaddingConfig) -> tuple[Array, int | None]:
        (x, value), (dx, dv) = args, dims
        if dv is None:
            config = inserted(padding_config, dx, (0, 0, 0))
            return self.bind(x, value, padding_config=config), dx
        # A value per mapped element: pad with anything, then choose where it is padding.
        (x,), _ = align(axis, (x,), (dx,), 0)
        config = ((0, 0, 0), *padding_config)
        mask = self._padded(typeof(x).shape, config)
        out = self.bind(x, literal(0, typeof(x).dtype), padding_config=config)
        return select_n(mask, out, broadcast_in_dim(value, typeof(out).shape, (0,))), 0


def _emit_pad(b: Builder, x: IrValue, value: IrValue, low: Sequence[int], high: Sequence[int],
              interior: Sequence[int], out: ShapedArray) -> IrValue:
    return b.op("stablehlo.pad", [x, value], {
        "edge_padding_low": b.i64s(low), "edge_padding_high": b.i64s(high),
        "interior_padding": b.i64s(interior)}, out)


pad_p = Pad("pad")


def pad(operand: ArrayLike, padding_value: ArrayLike,
        padding_config: Sequence[tuple[int, int, int]]) -> Array:
    """Put padding before, after and between elements.

    Args:
      padding_value: scalar of the operand's dtype.
      padding_config: per axis (low, high, interior): how many values to put before the first
        element, after the last, and between neighbours; negative low and high cut elements off.

    Raises TypeError where dtypes differ, ValueError where ranks do and for a negative interior or
    size.

    >>> print(olympus.lax.pad(olympus.numpy.arange(3), 9, [(1, -1, 1)]))
    [9 0 9 1 9]
    """
    config = tuple([tuple([extent(p, "pad", "padding") for p in _triple(axis)])
                    for axis in sequence(padding_config, "pad", "padding_config")])
    return pad_p.bind(operand, families.operand(padding_value, operand), padding_config=config)


def _triple(axis: Sequence[int]) -> tuple[int, ...]:
    numbers = sequence(axis, "pad", "an entry of padding_config")
    if len(numbers) != 3:
        raise ValueError(f"pad: {axis!r} given as an entry of padding_config; (low, high, "
                         "interior) is required.")
    return numbers


# Joining and splitting --------------------------------------------------------------------------


_TWO_BITS = (dtypes.as_dtype("int2"), dtypes.as_dtype("uint2"))


class Concatenate(Physical):
    """Operands one after another along an axis."""

    additive = single = True
    spread = staticmethod(tags.concatenate)
    cells = staticmethod(reuse.concatenated)
    hands_on_nan = True
    makes_nan = False
    fusion = "moves"
    resizes = True
    along = "dimension"
    pace = 0.3
    refuses = "All operands should have the same sharding: "

    def infer(self, first: ShapedArray, *others: ShapedArray, dimension: int) -> ShapedArray:
        avals = (first, *others)
        shown = ", ".join(map(str, avals))
        if not 0 <= dimension < first.ndim:
            raise ValueError(f"concatenate: operands {shown}, dimension {dimension} given; an axis "
                             "of the operands is required.")
        if any(a.dtype != first.dtype for a in avals):
            raise TypeError(f"concatenate: operands {shown} given; one dtype is required; convert "
                            "them with astype.")
        rest = inserted_out(first.shape, dimension)
        if any(a.ndim != first.ndim or inserted_out(a.shape, dimension) != rest for a in avals):
            raise TypeError(f"concatenate: operands {shown}, dimension {dimension} given; equal "
                            "sizes are required on the other axes; pad or reshape one.")
        size = sum(a.shape[dimension] for a in avals)
        shape = (*first.shape[:dimension], size, *first.shape[dimension + 1:])
        return make_aval(shape, first.dtype, all(a.weak_type for a in avals))

    def emit(self, b: Builder, *xs: IrValue, dimension: int) -> IrValue:
        dtype = b.avals_out[0].dtype
        if b.platform == "cpu" and dtype in _TWO_BITS:
            raise TypeError(f"concatenate: operands of dtype {dtype} given on a CPU; 4 bits or "
                            "more are required, since XLA's CPU compiler aborts on 2; convert "
                            "with astype.")
        return b.op("stablehlo.concatenate", xs, {"dimension": b.attr(f"{dimension} : i64")})

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, dimension: int
            ) -> tuple[Array, Tangent]:
        return (self.bind(*primals, dimension=dimension),
                self.bind(*map(instantiate, tangents), dimension=dimension))

    def transpose(self, ct: Array, *xs: Array | Linear, dimension: int) -> list[Cotangent]:
        cts, start = [], 0
        for x in xs:
            linear = type(x) is Linear
            stop = start + (x.aval if linear else typeof(x)).shape[dimension]
            cts.append(slice_in_dim(ct, start, stop, 1, dimension) if linear else None)
            start = stop
        return cts

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *, dimension: int
             ) -> tuple[Array, int | None]:
        xs, dim = align(axis, args, dims)
        return self.bind(*xs, dimension=dimension + (dimension >= dim)), dim

    def by_groups(self, groups: Sequence[Sequence[Array]], *, dimension: int) -> Array:
        return self.bind(*[self.bind(*xs, dimension=dimension) for xs in groups],
                         dimension=dimension)


def inserted_out(shape: Dims, axis: int) -> Dims:
    """The shape without one axis."""
    return (*shape[:axis], *shape[axis + 1:])


class Split(Physical):
    """Consecutive pieces of the given sizes along an axis."""

    additive = True
    spread = staticmethod(tags.as_first)
    multiple_results = True
    makes_nan = False
    fusion = "splits"
    resizes = True
    along = "axis"
    pace = 0.3
    refuses = "there is no split on sharded dims that leaves parts of other sizes: "

    def infer(self, x: ShapedArray, *, sizes: Dims, axis: int) -> list[ShapedArray]:
        if not definitely_equal(sum(sizes), x.shape[axis]):
            raise ValueError(f"split: operand {x}, sizes {sizes} along axis {axis} given; sizes "
                             f"that sum to {x.shape[axis]} are required.")
        return [make_aval((*x.shape[:axis], n, *x.shape[axis + 1:]), x.dtype, x.weak_type)
                for n in sizes]

    def emit(self, b: Builder, x: IrValue, *, sizes: Dims, axis: int) -> list[IrValue]:
        shape, outs, at = b.avals_in[0].shape, [], 0
        for n, aval in zip(sizes, b.avals_out, strict=True):
            starts, limits = [0] * len(shape), list(shape)
            starts[axis], limits[axis] = at, at + n
            at += n
            outs.append(b.op("stablehlo.slice", [x], {
                "start_indices": b.i64s(starts), "limit_indices": b.i64s(limits),
                "strides": b.i64s((1,) * len(shape))}, aval))
        return outs

    jvp = linear_jvp

    def transpose(self, cts: Sequence[Array], x: Linear, *, sizes: Dims, axis: int
                  ) -> list[Array | None]:
        return [concatenate_p.bind(*map(instantiate, cts), dimension=axis)]

    def vmap(self, axis_: Axis, args: Sequence[Array], dims: Sequence[int], *, sizes: Dims,
             axis: int) -> tuple[list[Array], list[int | None]]:
        dim = dims[0]
        return self.bind(args[0], sizes=sizes, axis=axis + (axis >= dim)), [dim] * len(sizes)


concatenate_p = Concatenate("concatenate")
split_p = Split("split")


def concatenate(operands: Sequence[ArrayLike], dimension: int) -> Array:
    """Join arrays along an existing axis.

    Args:
      operands: arrays of one dtype, equal in size on every other axis; at least one.
      dimension: the axis to join.
    Returns: An array of their dtype; its size along `dimension` is the sum of theirs.

    Raises ValueError for no operands or an axis out of bounds, TypeError where they do not fit.

    >>> print(lax.concatenate([onp.array([1, 2]), onp.array([3])], 0))
    [1 2 3]
    """
    operands = sequence(operands, "concatenate", "operands")
    if not operands:
        raise ValueError("concatenate: no operands given; at least one array is required.")
    if len(operands) == 1 and is_array(operands[0]):
        return operands[0]
    axis = front_axis(dimension, typeof(operands[0]).ndim, "concatenate")
    return concatenate_p.bind(*operands, dimension=axis)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cut an array into consecutive pieces of the given sizes along an axis.

    Args: sizes: the pieces' sizes along the axis, in order; 0 is allowed.

    Raises ValueError unless the sizes sum to the axis's size.

    >>> [x.shape for x in olympus.lax.split(olympus.numpy.arange(5), (2, 3))]
    [(2,), (3,)]
    """
    return split_p.bind(operand, sizes=canonical_shape(sequence(sizes, "split", "sizes"), "split"),
                        axis=canonical_axis(axis, typeof(operand).ndim, "split"))


# Slices at computed places ----------------------------------------------------------------------


class DynamicSlice(Physical):
    """A window of static size at computed starts, moved inside of the operand if need be."""

    additive = True
    spread = staticmethod(tags.as_first)
    settled_by = "x.at[…].get(out_sharding=…)"
    makes_nan = False
    fusion = "moves"
    resizes = True
    pace = 0.3

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        return self.pace * prod(outs[0])

    def indexed(self, avals: Sequence[ShapedArray], params: Params) -> Indexed:
        return Indexed(1, None, params["slice_sizes"])

    def moved_axes(self, params: Params, shapes: Sequence[Dims]) -> Sequence[int]:
        return _resized_axes(shapes)

    def infer(self, x: ShapedArray, *starts: ShapedArray, slice_sizes: Dims) -> ShapedArray:
        _check_starts("dynamic_slice", x, starts)
        if len(slice_sizes) != x.ndim or any(
                less(n, s) for s, n in zip(slice_sizes, x.shape, strict=True)):
            raise TypeError(f"dynamic_slice: operand {x}, slice_sizes {slice_sizes} given; one "
                            "size per axis, at most the axis's, is required; pass "
                            "smaller ones, or pad the operand.")
        return make_aval(slice_sizes, x.dtype, x.weak_type)

    def physical(self, element: Dims, avals: Sequence[ShapedArray], *, slice_sizes: Dims) -> Params:
        return {"slice_sizes": (*slice_sizes, *element)}

    def emit(self, b: Builder, x: IrValue, *starts: IrValue, slice_sizes: Dims) -> IrValue:
        # XLA (jaxlib 0.10.2) adds up the starts of a slice and of one that it reads before it moves
        # them inside.
        inside = [_moved_inside(b, start, aval, n, size) for start, aval, n, size in zip(
            starts, b.eqn.invars[1:], b.avals_in[0].shape, slice_sizes, strict=False)]
        return b.op("stablehlo.dynamic_slice", [x, *_padded_starts(b, inside, len(slice_sizes), 1)],
                    {"slice_sizes": b.i64s(slice_sizes)})

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, slice_sizes: Dims
            ) -> tuple[Array, Tangent]:
        x, *starts = primals
        return (self.bind(x, *starts, slice_sizes=slice_sizes),
                self.bind(tangents[0], *starts, slice_sizes=slice_sizes))

    def transpose(self, ct: Array, x: Linear, *starts: Array, slice_sizes: Dims) -> list[Cotangent]:
        return [dynamic_update_slice_p.bind(zeros_of(x.aval.to_cotangent_aval()), ct, *starts),
                *[None] * len(starts)]

    def grown(self, x: Array, ct: Array, *starts: Array, slice_sizes: Dims) -> Array:
        """`x` with values added where the operation reads."""
        old = self.bind(x, *starts, slice_sizes=slice_sizes)
        return dynamic_update_slice_p.bind(x, add(old, ct), *starts)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int], *,
             slice_sizes: Dims) -> tuple[Array, int | None]:
        (x, *starts), (dx, *ds) = args, dims
        if all(d is None for d in ds):
            out = self.bind(x, *inserted(starts, dx, _zero_like(starts)),
                            slice_sizes=inserted(slice_sizes, dx, axis.size))
            return out, dx
        every = tuple(range(len(starts)))
        return gather_p.vmap(
            axis, (x, _stack_starts(axis, starts, ds)), (dx, 0), slice_sizes=slice_sizes,
            dimension_numbers=GatherDimensionNumbers(every, (), every), unique_indices=True,
            indices_are_sorted=True, mode=CLIP, fill_value=None)


class DynamicUpdateSlice(Physical):
    """The operand with a window at computed starts replaced."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.updates"), 512
    additive = replaces = True
    spread = staticmethod(tags.update_slice)
    memory = staticmethod(tags.in_memory_of_first)
    settled_by = "x.at[…].set(…, out_sharding=…)"
    makes_nan = False
    pace = 0.3

    def indexed(self, avals: Sequence[ShapedArray], params: Params) -> Indexed:
        return Indexed(2, None, avals[1].shape)

    def infer(self, x: ShapedArray, update: ShapedArray, *starts: ShapedArray) -> ShapedArray:
        _check_starts("dynamic_update_slice", x, starts)
        if (update.ndim != x.ndim or update.dtype != x.dtype
                or any(less(n, s) for s, n in zip(update.shape, x.shape, strict=True))):
            raise TypeError(f"dynamic_update_slice: operand {x}, update {update} given; an update "
                            "of the operand's dtype and rank, not larger on any axis, is required.")
        return x.update(weak_type=False)

    def emit(self, b: Builder, x: IrValue, update: IrValue, *starts: IrValue) -> IrValue:
        if b.module.places.sharing > 1:     # XLA's partitioner does not move starts inside
            starts = tuple(map(functools.partial(_moved_inside, b), starts, b.eqn.invars[2:],
                               b.avals_in[0].shape, b.avals_in[1].shape))
        padded = _padded_starts(b, starts, b.avals_in[0].ndim, 2)
        return self.kernels.write(b, x, update, padded)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Tangent]:
        x, update, *starts = primals
        return (self.bind(x, update, *starts),
                self.bind(instantiate(tangents[0]), instantiate(tangents[1]), *starts))

    def transpose(self, ct: Array, x: Array | Linear, update: Linear, *starts: ArrayLike
                  ) -> Sequence[Cotangent]:
        aval = update.aval if type(update) is Linear else typeof(update)
        zeros = zeros_of(aval.to_cotangent_aval()) if type(x) is Linear else None
        return [
            None if zeros is None else self.bind(ct, zeros, *starts),
            dynamic_slice_p.bind(ct, *starts, slice_sizes=aval.shape)
            if type(update) is Linear else None, *[None] * len(starts)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None]
             ) -> tuple[Array, int | None]:
        (x, update, *starts), (dx, du, *ds) = args, dims
        # A window as large as the axis starts at 0. XLA:CPU (jaxlib 0.10.2) would write a whole
        # array over itself after a write in place.
        sizes = [typeof(v).shape if d is None else inserted_out(typeof(v).shape, d)
                 for v, d in ((x, dx), (update, du))]
        ds = [None if definitely_equal(n, m) else d for d, n, m in zip(ds, *sizes, strict=True)]
        starts = [s if d is not None or not typeof(s).ndim else _zero_like(starts)
                  for s, d in zip(starts, ds, strict=True)]
        if all(d is None for d in ds):
            (x, update), _ = align(axis, (x, update), (dx, du), 0)
            return self.bind(x, update, _zero_like(starts), *starts), 0
        every = tuple(range(len(starts)))
        return scatter_p.vmap(
            axis, (x, _stack_starts(axis, starts, ds), update), (dx, 0, du),
            dimension_numbers=ScatterDimensionNumbers(every, (), every), indices_are_sorted=True,
            unique_indices=True, mode=CLIP, update_olympuspr=None, update_consts=())


dynamic_slice_p = DynamicSlice("dynamic_slice")
dynamic_update_slice_p = DynamicUpdateSlice("dynamic_update_slice")


def _check_starts(name: str, x: ShapedArray, starts: Sequence[ShapedArray]) -> None:
    if len(starts) != x.ndim:
        raise TypeError(f"{name}: operand {x}, {len(starts)} start indices given; one per axis is "
                        "required.")
    if any(s.ndim or dtypes.scalar_kind(s.dtype) not in "iu" or s.dtype != starts[0].dtype
           for s in starts):
        raise TypeError(f"{name}: start indices {', '.join(map(str, starts))} given; integer "
                        "scalars of one dtype are required; convert them with astype.")


def _moved_inside(b: Builder, start: IrValue, atom: Atom, n: DimSize, size: DimSize) -> IrValue:
    """A start such that a window of `size` elements is within an axis of `n`."""
    dtype = b.avals_in[-1].dtype
    if not is_static((n, size)):
        return start
    last = min(n - size, int(dtypes.iinfo(dtype).max))
    if type(atom) is Literal:
        return b.scalar(min(max(int(atom.raw), 0), last), dtype)
    if last == 0:
        return b.scalar(0, dtype)
    return b.op("stablehlo.clamp", [b.scalar(0, dtype), start, b.scalar(last, dtype)], None,
                make_aval((), dtype))


def _padded_starts(b: Builder, starts: Sequence[IrValue], ndim: int, first: int) -> list[IrValue]:
    """The starts, and zeros for the trailing axes of typed keys."""
    more = ndim - len(starts)
    return [*starts, *[b.scalar(0, b.avals_in[first].dtype) if starts else
                       b.scalar(0, dtypes.as_dtype("int32"))] * more]


def _zero_like(starts: Sequence[ArrayLike]) -> Array:
    return literal(0, typeof(starts[0]).dtype if starts else dtypes.as_dtype("int32"))


def _stack_starts(axis: Axis, starts: Sequence[Array], dims: Sequence[int | None]) -> Array:
    """The starts of all mapped elements: integers[axis.size, len(starts)]."""
    columns = [reshape(broadcast_axis(s, axis.size, 0) if d is None else s, (axis.size, 1))
               for s, d in zip(starts, dims, strict=True)]
    return concatenate(columns, 1)


def _start_indices(name: str, operand: ArrayLike, indices: Any, negative: bool | Sequence[bool]
                   ) -> list[Array]:
    """Start indices as scalars of one integer dtype, negative ones counted from the end."""
    shape = typeof(operand).shape
    if not isinstance(indices, (list, tuple)):
        aval = typeof(indices)
        if aval.ndim != 1:
            raise TypeError(f"{name}: start_indices {aval} given; a sequence of scalars or a "
                            "vector is required.")
        count = static_int(aval.shape[0], name, "number of start indices")
        indices = [squeeze(slice_in_dim(indices, i, i + 1), (0,)) for i in range(count)]
    if len(indices) != len(shape):
        raise TypeError(f"{name}: operand {typeof(operand)}, {len(indices)} start indices given; "
                        "one per axis is required.")
    negatives = ([negative] * len(shape) if isinstance(negative, bool)
                 else sequence(negative, name, "allow_negative_indices"))
    if len(negatives) != len(shape):
        raise ValueError(f"{name}: allow_negative_indices {negative!r} given for {len(shape)} "
                         "axes; a bool, or one per axis, is required.")
    traced = [typeof(i).dtype for i in indices if type(i) is not int]
    dtype = dtypes.as_dtype("int32")
    if len(set(traced)) == 1:
        dtype = traced[0]
    elif any(d.itemsize == 8 or d.name == "uint32" for d in traced):    # in strict promotion too
        dtype = dtypes.as_dtype("int64")
    if any(dtypes.scalar_kind(d) not in "iu" for d in traced):
        raise TypeError(f"{name}: start indices {', '.join(str(typeof(i)) for i in indices)} "
                        "given; integers are required; convert them with astype.")
    size = largest(shape)
    if dtypes.iinfo(dtype).max < size:      # whatever x64 says: the program is wrong with less
        dtype = dtypes.as_dtype("int64" if size > dtypes.iinfo("int32").max else "int32")
    return [_start_index(i, n, dtype, wrap) for i, n,
            wrap in zip(indices, shape, negatives, strict=True)]


def _start_index(index: ArrayLike, size: int, dtype: DType, wrap: bool) -> Any:
    if is_literal(index):
        number: Any = getattr(index, "raw", index)
        limits = dtypes.iinfo(dtype)
        value: Any = number if isinstance(number, SymbolicDim) else int(number)
        at: Any = value + size if wrap and known_less(value, 0) else value
        if isinstance(at, SymbolicDim):
            return literal(at, dtype)
        # A window outside is moved inside, so one that the dtype cannot place may be nearer.
        return literal(max(int(limits.min), min(at, int(limits.max))), dtype)
    if typeof(index).dtype != dtype:
        index = convert_element_type_p.bind(index, new_dtype=dtype, weak_type=False, sharding=None)
    if not wrap or dtypes.scalar_kind(dtype) == "u":
        return index
    return select_n(lt(index, literal(0, dtype)), index,
                    add(index, literal(size, dtype)))


def dynamic_slice(operand: ArrayLike, start_indices: ArrayLike | Sequence[ArrayLike],
                  slice_sizes: Shape, *,
                  allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """A window of static size at computed starts.

    Args:
      start_indices: one integer scalar per axis, each of any integer dtype, or a vector of them.
      slice_sizes: the window's size along each axis.
    Returns: An array of shape `slice_sizes` and the operand's dtype.

    A window that would reach outside of the array is moved inside. Raises TypeError where numbers,
    sizes or dtypes do not fit.

    >>> print(olympus.lax.dynamic_slice(olympus.numpy.arange(5), (3,), (3,)))
    [2 3 4]
    """
    starts = _start_indices("dynamic_slice", operand, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts,
                                slice_sizes=canonical_shape(slice_sizes, "dynamic_slice"))


def _starts_along(ndim: int, axis: int, index: ArrayLike) -> list[ArrayLike]:
    starts: list[Any] = [0] * ndim
    starts[axis] = index
    return starts


def dynamic_slice_in_dim(operand: ArrayLike, start_index: ArrayLike, slice_size: int, axis: int = 0,
                         *, allow_negative_indices: bool = True) -> Array:
    """operand[start : start + size] on one axis, at a computed start.

    Args:
      start_index: integer scalar, may be traced; moved so that the window is inside of the array.
      slice_size: the window's size, static.
      allow_negative_indices: whether a negative start counts from the end.
    Returns: An array of the operand's dtype, with `slice_size` entries along the axis.

    >>> x = onp.arange(6)
    >>> print(lax.dynamic_slice_in_dim(x, 4, 3), lax.dynamic_slice_in_dim(x, -4, 2))
    [3 4 5] [2 3]
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape), "dynamic_slice_in_dim")
    sizes = (*shape[:axis], slice_size, *shape[axis + 1:])
    return dynamic_slice(operand, _starts_along(len(shape), axis, start_index), sizes,
                         allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(operand: ArrayLike, index: ArrayLike, axis: int = 0, keepdims: bool = True,
                         *, allow_negative_indices: bool = True) -> Array:
    """operand[index] on one axis, at a computed index.

    Args: allow_negative_indices: whether a negative index counts from the end.
    Returns: An array of the operand's dtype, with its other axes.

    >>> x = onp.array([[1, 2], [3, 4], [5, 6]])
    >>> print(lax.dynamic_index_in_dim(x, -1), lax.dynamic_index_in_dim(x, 9, keepdims=False))
    [[5 6]] [5 6]
    """
    out = dynamic_slice_in_dim(operand, index, 1, axis,
                               allow_negative_indices=allow_negative_indices)
    return out if keepdims else squeeze(out, (axis,))


def dynamic_update_slice(operand: ArrayLike, update: ArrayLike,
                         start_indices: ArrayLike | Sequence[ArrayLike], *,
                         allow_negative_indices: bool | Sequence[bool] = True) -> Array:
    """The operand with a window at computed starts replaced by `update`.

    Args:
      update: array of the operand's dtype and rank, on no axis larger.
      start_indices: one integer scalar per axis, or a vector of them.
    Returns: An array of the operand's shape and dtype.

    A window that would reach outside of the array is moved inside. Raises TypeError where numbers,
    sizes or dtypes do not fit.

    >>> print(olympus.lax.dynamic_update_slice(onp.zeros(4), onp.ones(2), (1,)))
    [0. 1. 1. 0.]
    """
    starts = _start_indices("dynamic_update_slice", operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def dynamic_update_slice_in_dim(operand: ArrayLike, update: ArrayLike, start_index: ArrayLike,
                                axis: int, *, allow_negative_indices: bool = True) -> Array:
    """The operand with a window along one axis, at a computed start, replaced.

    Args:
      operand: array; it is not changed.
      update: array of its dtype and rank; along other axes it starts at 0.
      start_index: integer scalar, may be traced; moved so that the window is inside of the array.
      allow_negative_indices: whether a negative start counts from the end.
    Returns: An array of the operand's shape and dtype.

    >>> print(lax.dynamic_update_slice_in_dim(onp.zeros(5), onp.ones(2), 9, 0))
    [0. 0. 0. 1. 1.]
    """
    ndim = typeof(operand).ndim
    axis = canonical_axis(axis, ndim, "dynamic_update_slice_in_dim")
    return dynamic_update_slice(operand, update, _starts_along(ndim, axis, start_index),
                                allow_negative_indices=allow_negative_indices)


@described_like(dynamic_update_slice_in_dim)
def dynamic_update_index_in_dim(operand: ArrayLike, update: ArrayLike, index: ArrayLike, axis: int,
                                *, allow_negative_indices: bool = True) -> Array:
    """The operand with one entry along an axis, at a computed index, replaced.

    Args:
      update: array of its dtype and other axes; the axis itself has size 1 or is absent.
      allow_negative_indices: whether a negative index counts from the end.

    >>> print(lax.dynamic_update_index_in_dim(onp.zeros((2, 3)), onp.ones(3), 1, 0))
    [[0. 0. 0.]
     [1. 1. 1.]]
    """
    shape = typeof(operand).shape
    axis = canonical_axis(axis, len(shape), "dynamic_update_index_in_dim")
    part = typeof(update).shape
    if len(part) != len(shape):
        update = reshape(update, (*part[:axis], 1, *part[axis:]))
    return dynamic_update_slice_in_dim(operand, update, index, axis,
                                       allow_negative_indices=allow_negative_indices)


def index_take(src: ArrayLike, idxs: Sequence[ArrayLike], axes: Sequence[int]) -> Array:
    """Rows of `src` at one vector of indices per named axis; indices wrap around.

    Args:
      src: array.
      idxs: integer vectors of one length n, one per axis.
      axes: the axes that they index.
    Returns: An array of shape [n, remaining axes of src ...].

    >>> x = onp.array([[1, 2], [3, 4]])
    >>> print(lax.index_take(x, (onp.array([0, 1, -1]), onp.array([1, 0, 0])), (0, 1)))
    [2 3 3]
    """
    shape = typeof(src).shape
    axes = canonical_axes(sequence(axes, "index_take", "axes"), len(shape), "index_take")
    idxs = sequence(idxs, "index_take", "idxs")
    if any(typeof(i).ndim != 1 for i in idxs):
        raise TypeError(f"index_take: idxs {', '.join(str(typeof(i)) for i in idxs)} given; "
                        "vectors of integers are required.")
    if len(idxs) != len(axes):
        raise TypeError(f"index_take: {len(idxs)} index vectors, axes {axes} given; one vector per "
                        "axis is required.")
    indices = concatenate([reshape(_wrapped(i, shape[a]), (typeof(i).shape[0], 1))
                           for i, a in zip(idxs, axes, strict=True)], 1)
    numbers = GatherDimensionNumbers(tuple(range(1, 1 + len(shape) - len(axes))),
                                     tuple(sorted(axes)), axes)
    sizes = tuple([1 if d in axes else n for d, n in enumerate(shape)])
    return gather(src, indices, numbers, sizes)


def _wrapped(index: ArrayLike, size: int) -> Array:
    """The index modulo the size, as Python's % has it."""
    dtype = typeof(index).dtype
    rest = rem(index, literal(size, dtype))
    return select_n(lt(rest, literal(0, dtype)), rest, add(rest, literal(size, dtype)))


complete_docstrings(globals(), {
    "operand": "array.",
    "axis": "the axis.",
    "index": "integer scalar, may be traced; it is clamped into range.",
    "keepdims": "whether the axis stays, of size 1.",
    "allow_negative_indices": "whether negative starts count from the end, for all or per axis.",
}, returns="An array of the operand's rank and dtype.")
