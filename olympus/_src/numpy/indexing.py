"""Reading and writing at an index: plans (`index_plan`) carried out by slices, gather and scatter.

Called eagerly, each index pattern is one compiled program whose operands are the array, the ints
and the index arrays. While staging, ints are still ints, and become static slices.

Outside of the bounds is an IndexError where it can be known: for ints, and for index arrays that
the host can read. Where it cannot (traced indices, arrays on accelerators) and no `mode` is given,
reads take the nearest element and writes are dropped. A `mode` holds everywhere.
"""

from __future__ import annotations

import functools
import itertools
from typing import Any

import numpy as np

from ..base import errors, lib, source
from ..base.config import default_device, enable_x64
from ..base.typing import Array, ArrayLike, DTypeLike
from ..base.util import Memo, memoize
from ..core.ir import Literal
from ..core.templates import by_identity
from ..core.trace import Tracer, ctx, describe, literal, typeof
from ..devices.array import array_from_numpy
from ..interpreters.checks import looking
from ..jit.fused import fused, named
from ..lax import arithmetic, creation, indexing as lax_indexing, shape, slicing
from ..lax.arithmetic import div, mul, rem, sub
from ..lax.comparison import gt, lt, ne, select_n
from ..lax.convert import convert_element_type_p
from ..lax.families import add
from ..lax.indexing import GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers
from ..lax.scatter_product import scatter_mul
from ..lax.sharding import constrain, settled
from ..lax.sort import true_places_p
from ..runtime.eager import BASE, FAILURES, number_array
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import (
    SymbolicDim, broadcast_shapes, canonical_axis, canonical_dim, definitely_equal, exceeds,
    is_static, prod, static_int,
)
from ..types.sharding import DeviceLike, ShardingLike
from . import promote
from .creation import asarray, is_sequence
from .index_plan import Component, Plan, entries_of, halves, parse, refuse_empty
from .masks import Layout, Masked, masked_index

CLIP, FILL, PROMISE, ONE_HOT = GatherScatterMode
ArrayImpl = lib.ArrayImpl
_INT32, _INT64 = dtypes.as_dtype("int32"), dtypes.as_dtype("int64")


@by_identity
class How:
    """The options of a read or write; one object per combination, compared by identity."""

    __slots__ = ("mode", "unique", "is_sorted", "fill", "wrap", "op")

    def __init__(self, mode: GatherScatterMode, unique: bool, is_sorted: bool, fill: Any,
                 wrap: bool, op: str) -> None:
        self.mode, self.unique, self.is_sorted, self.fill = mode, unique, is_sorted, fill
        self.wrap, self.op = wrap, op


_hows: Memo = Memo(1024)


def _how(mode: GatherScatterMode, unique: bool, is_sorted: bool, fill: Any, wrap: bool,
         op: str) -> How:
    key = (mode, bool(unique), bool(is_sorted), type(fill), repr(fill), bool(wrap), op)
    known = _hows.get(key)
    if known is None:
        known = _hows[key] = How(mode, bool(unique), bool(is_sorted), fill, bool(wrap), op)
    return known


# Reading -----------------------------------------------------------------------------------------

def getitem(self: Array, index: Any) -> Array:  # noqa: PLR0912 - hot: a frame is a tenth of it
    """`x[index]`: NumPy's basic and advanced indexing.

    Traced integers outside of the bounds read the nearest element, and its derivative is that
    element's; `x.at[index].get(mode="fill")` reads a fill value instead. Raises IndexError for
    known integers outside of the bounds, and for too many; a TypeError that is one too for float
    indices; NonConcreteBooleanIndexError for traced masks.
    """
    if type(self) is not ArrayImpl and self.aval.mutable:
        return self.aval.methods["__getitem__"](self, index)
    shape = self.aval.shape
    if type(self) is ArrayImpl and ctx.trace is BASE:   # hot: without loops, as a rule
        kind, window = type(index), None
        try:
            if kind is int:
                window = _window(shape, enable_x64.value, default_device.value, index)
            elif kind is slice:
                start, stop, step = index.start, index.stop, index.step
                if type(start) in _BOUNDS and type(stop) in _BOUNDS and type(step) in _BOUNDS:
                    window = _window(shape, enable_x64.value, default_device.value, slice, start,
                                     stop, step)
            elif kind is tuple:
                parts: list[Any] = []
                for entry in index:
                    if type(entry) is int:
                        parts.append(entry)
                    elif type(entry) is slice and _BOUNDS.issuperset(map(
                            type, bounds := (entry.start, entry.stop, entry.step))):
                        parts += (slice, *bounds)
                    else:
                        break
                else:
                    window = _window(shape, enable_x64.value, default_device.value, *parts)
            if window:
                return _slice_at_once(self, *window)
        except (*FAILURES, IndexError):
            pass        # the call below makes it plain
    try:
        plan, operands, _ = parse(shape, index)
        if plan.empty is not None:
            refuse_empty(plan, shape)
        if plan.basic:
            return _slice(self, plan, True, *operands)
        return _gather(self, *operands, plan=plan, how=_READ)
    except (*FAILURES, IndexError) as error:
        source.filter_traceback(error)
        raise


_BOUNDS = frozenset((int, type(None)))


@memoize(16384)
def _window(shape: tuple[int, ...], x64: bool, device: DeviceLike, *parts: object
            ) -> tuple[Any, ...] | None:
    """The arguments of `_slice` for an index laid flat by `getitem`; None if a start is no int or
    is out of bounds.

    The starts are on the default device, at the default dtype, which the other arguments name.
    """
    rest, index = iter(parts), []
    for part in rest:
        index.append(slice(*itertools.islice(rest, 3)) if part is slice else part)
    plan, starts, outside = parse(shape, tuple(index), strict=False)
    if plan.empty is not None:
        refuse_empty(plan, shape)
    return None if plan.wide or outside else (plan, True, *map(number_array, starts))


_GET = "at[...].get"


def read(x: ArrayLike, index: object, *, mode: str | GatherScatterMode | None = None,
         fill_value: ArrayLike | None = None, unique_indices: bool = False,
         indices_are_sorted: bool = False, wrap_negative_indices: bool = True,
         out_sharding: ShardingLike = None) -> Array:
    """`x[index]` with the options of `x.at[index].get`; a fill value alone says mode "fill"."""
    x = promote.array_args("indexing", x)[0]
    strict = mode is None and fill_value is None
    mode = CLIP if strict else GatherScatterMode.from_any(mode)
    if fill_value is not None and np.ndim(fill_value):
        raise ValueError(f"{_GET}: fill_value of shape {np.shape(fill_value)} given; the "
                         "fill_value argument to indexed get() must be a scalar.")
    if mode is ONE_HOT:
        mode, fill_value = FILL, 0
    if mode is FILL and fill_value is not None:
        masked = _read_at_mask(x, index, fill_value, wrap_negative_indices)
        if masked is not None:
            return constrain(_GET, masked, out_sharding)
    plan, operands, outside = parse(typeof(x).shape, index, wrap_negative_indices,
                                    strict and wrap_negative_indices)
    if plan.empty is not None and mode is not FILL:
        refuse_empty(plan, typeof(x).shape)
    if mode is FILL and (outside or plan.empty is not None):
        # One integer that is outside decides for the whole result.
        fill = lax_indexing._default_fill(x.dtype) if fill_value is None else fill_value
        return constrain(_GET, creation.full(plan.out_shape, fill, x.dtype), out_sharding)
    if plan.basic and (mode is not FILL or not plan.scalars):
        return settled(_GET, lambda x, *operands: _slice(x, plan, wrap_negative_indices, *operands),
                       out_sharding, x, *operands)
    fill = None
    if mode is FILL and fill_value is not None:
        fill = np.asarray(fill_value)[()] if not np.isscalar(fill_value) else fill_value
    how = _how(mode, unique_indices, indices_are_sorted, fill, wrap_negative_indices, "get")
    return settled(_GET, functools.partial(_gather, plan=plan, how=how), out_sharding, x, *operands)


def _read_at_mask(x: Array, index: object, fill: ArrayLike, wrap: bool) -> Array | None:
    """The elements of whole axes, with `fill` outside of the mask; None without a mask."""
    entries = tuple([np.bool_(e) if type(e) is bool else e for e in entries_of(index)])
    masked = masked_index(typeof(x).shape, entries)
    if masked is None:
        return None
    region = x if masked.index == (Ellipsis,) else read(
        x, masked.index, mode=FILL, fill_value=fill, wrap_negative_indices=wrap)
    how = _how(FILL, False, False, np.asarray(fill)[()], wrap, "get")
    return _filled(region, masked.mask, layout=masked.layout, how=how)


@fused(static=("layout", "how"))
def _filled(region: Array, mask: ArrayLike, *, layout: Layout, how: How) -> Array:
    fill = creation.full(region.shape, how.fill, region.dtype)
    return select_n(layout.over(mask, region.shape), fill, region)


@fused(static=("plan", "wrap"), anew=True)
def _slice(x: Array, plan: Plan, wrap: bool, *operands: ArrayLike) -> Array:
    """A basic read: a window, then strides, then the result's shape."""
    # Hot while tracing: loops instead of comprehensions, primitives instead of functions.
    if plan.wide:
        operands = _join_halves(operands)
    old, sizes = x.aval.shape, plan.sizes
    # An axis of size 1 has but one element to read: a traced place is looked at by checks.
    looked_at = sizes == old and plan.scalars and looking()
    if sizes != old or not plan.unit or looked_at:
        starts, limits, static = [], [], True
        for o, size in plan.spans:
            start = 0 if o is None else operands[o]
            starts.append(start)
            if type(start) is int or isinstance(start, SymbolicDim):
                limits.append(start + size)
            else:
                static = False
        if static and plan.unit:
            x = slicing.slice_p.bind(x, start_indices=tuple(starts), limit_indices=tuple(limits),
                                     strides=None)
        elif static:
            x = slicing.slice(x, starts, limits, plan.strides)
        else:
            if sizes != old or looked_at:
                x = slicing.dynamic_slice(x, starts, sizes, allow_negative_indices=[
                    wrap and o in plan.scalars for o, _ in plan.spans])
            if not plan.unit:
                x = slicing.slice(x, [0] * len(sizes), sizes, plan.strides)
        if plan.flips:
            x = shape.rev(x, plan.flips)
        old = x.aval.shape
    if old == plan.out_shape:
        return x
    if plan.inserted is not None:
        return shape.broadcast_in_dim_p.bind(x, shape=plan.out_shape, sharding=None,
                                             broadcast_dimensions=plan.inserted)
    if plan.squeezed and len(old) - len(plan.squeezed) == len(plan.out_shape):
        return shape.squeeze_p.bind(x, dimensions=plan.squeezed)
    return shape.reshape(x, plan.out_shape)


_slice_at_once = _slice.compiled


@fused(static=("plan", "how"))
def _gather(x: Array, *operands: ArrayLike, plan: Plan, how: How) -> Array:
    """An advanced read."""
    if plan.wide:
        operands = _join_halves(operands)
    if not prod(plan.out_shape):
        return creation.full(plan.out_shape, 0, x.dtype)
    if plan.whole:
        x = shape.broadcast_in_dim(x, plan.packed, plan.offset_dims)
    else:
        numbers = GatherDimensionNumbers(plan.offset_dims, plan.collapsed, plan.index_map)
        x = lax_indexing.gather(
            x, _index_vectors(plan, operands, how.wrap), numbers, plan.slice_sizes,
            unique_indices=how.unique, indices_are_sorted=how.is_sorted, mode=how.mode,
            fill_value=how.fill)
    return x if plan.packed == plan.out_shape else shape.reshape(x, plan.out_shape)


def _join_halves(operands: tuple) -> tuple:
    """The operands of a wide plan in int64 where they came in halves; ints stay ints."""
    return tuple([o if type(o) is not tuple else
                  o[0] * 2**31 + o[1] if type(o[0]) is int else _int64(*o) for o in operands])


def _int64(high: ArrayLike, low: ArrayLike) -> Array:
    """`high * 2**31 + low`: constants and operands of 64 bits are narrowed unless x64 is on."""
    high, low = (_convert(x, _INT64) for x in (high, low))
    scale = shape.broadcast_in_dim(literal(2**31, _INT64), high.shape, ())
    return add(mul(high, scale), low)


def _convert(x: ArrayLike, dtype: DTypeLike) -> Array:
    return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=False, sharding=None)


def _index_vectors(plan: Plan, operands: tuple, wrap: bool) -> ArrayLike:
    """The integers int32[batch..., k] that gather and scatter take; int64 if the plan is wide."""
    values = [_component(c, operands, wrap) for c in plan.components]
    if not plan.wide and all(isinstance(v, (int, np.ndarray)) for v in values):
        return np.stack([np.broadcast_to(_with_batch_axes(v, c, plan.batch), plan.batch)
                         for v, c in zip(values, plan.components)], axis=-1).astype(np.int32)
    wide = plan.wide or any(typeof(v).dtype.itemsize == 8 for v in values
                            if not isinstance(v, int))
    dtype = _INT64 if wide else _INT32
    full = (*plan.batch, 1)
    parts = []
    for v, c in zip(values, plan.components):
        if isinstance(v, int):
            v = literal(v, dtype)
        elif isinstance(v, np.ndarray):
            v = _int64(*halves(v)) if plan.wide else np.asarray(v, dtype)
        elif typeof(v).dtype != dtype:
            v = promote.convert(v, dtype)
        parts.append(shape.broadcast_in_dim(v, full, c.dims))
    return parts[0] if len(parts) == 1 else slicing.concatenate(parts, len(plan.batch))


def _with_batch_axes(value: ArrayLike, component: Component, batch: tuple[int, ...]) -> np.ndarray:
    """A NumPy component with axes of size 1 for the batch axes that it lacks."""
    value = np.asarray(value)
    axes = [1] * len(batch)
    for d, n in zip(component.dims, value.shape):
        axes[d] = n
    return value.reshape(axes)


def _component(c: Component, operands: tuple, wrap: bool) -> ArrayLike:
    """One component: an int, a NumPy array, or a traced array; counted from the front."""
    value = 0 if c.operand is None else operands[c.operand]
    if c.array and (wrap or typeof(value).dtype.itemsize < 4):
        value = _from_front(value, c.size, wrap)
    if c.steps is not None:
        count, step = c.steps
        if not is_static(c.steps):
            positions = mul(creation.iota(_INT32, count), literal(step, _INT32))
            return add(positions, literal(value, _INT32))
        steps = np.arange(static_int(count, "indexing", "a strided slice's size")) * abs(step)
        steps = steps[::-1] if step < 0 else steps
        if type(value) is int:
            return steps + value
        if exceeds(c.size, 2**31 - 1):
            steps, start = _int64(*halves(steps)), _convert(value, _INT64)
        else:
            steps, start = steps.astype(np.int32), promote.convert(value, _INT32)
        return add(shape.broadcast_in_dim(start, steps.shape, ()), steps)
    return value


def _from_front(index: Any, size: int, wrap: bool = True) -> ArrayLike:
    """An index array with its negative entries counted from the end."""
    dtype = typeof(index).dtype
    if exceeds(size, 2**31 - 1):
        index = _int64(*halves(index)) if isinstance(index, np.ndarray) else _convert(index, _INT64)
    elif isinstance(index, np.ndarray):
        index = index.astype(np.int64) if dtype.itemsize < 8 else index
        known = is_static((size,))
        if known and dtypes.scalar_kind(dtype) == "i" and wrap:
            index = np.where(index < 0, index + size, index)
        index = np.clip(index, -1 if known else -2**31, 2**31 - 1).astype(np.int32)
        if known or not wrap or not (index < 0).any():
            return index
    elif dtypes.scalar_kind(dtype) == "u":
        if dtype.itemsize >= 4:     # what int32 cannot hold is outside, and must stay so
            most = 2**31 - 1
            over = gt(index, shape.broadcast_in_dim(np.array(most, dtype), index.shape, ()))
            index = select_n(over, index,
                             shape.broadcast_in_dim(np.array(most, dtype), index.shape, ()))
        return promote.convert(index, _INT32)
    elif dtype.itemsize < 4:
        index = promote.convert(index, _INT32)
    if not wrap or dtypes.scalar_kind(dtype) == "u":
        return index
    return select_n(lt(index, 0), index, add(index, size))


# Writing -----------------------------------------------------------------------------------------

_SCATTERS = {"set": lax_indexing.scatter, "add": lax_indexing.scatter_add,
             "subtract": lax_indexing.scatter_sub, "multiply": scatter_mul,
             "min": lax_indexing.scatter_min, "max": lax_indexing.scatter_max}
_ELEMENTWISE = {"set": lambda x, y: y, "add": add, "subtract": sub, "multiply": mul,
                "min": arithmetic.min, "max": arithmetic.max}
_ARITHMETIC = ("add", "subtract", "multiply")       # of numbers, not of bools


def write(op: str, x: ArrayLike, index: object, values: object, *,
          indices_are_sorted: bool = False, unique_indices: bool = False,
          mode: str | GatherScatterMode | None = None, out_sharding: ShardingLike = None,
          wrap_negative_indices: bool = True, method: str = "") -> Array:
    """A copy of `x` with `values` combined into `x[index]`: set, add, subtract, multiply, min, max.

    `method` is the called method's name, if not the operation's.

    Raises IndexError for integers known to be outside of the bounds unless `mode` is given,
    ValueError where the values do not broadcast to the shape of `x[index]`, TypeError where they
    are no array; warns where the dtype of `x` cannot hold theirs.
    """
    strict = mode is None
    mode = GatherScatterMode.from_any(mode)
    mode = FILL if mode is ONE_HOT else mode
    name = f"at[...].{method or op}"
    x = promote.plain(promote.operand(name, x))
    values = promote.operand(name, asarray(values) if is_sequence(values) else values, 1)
    if op in _ARITHMETIC and dtypes.is_bool(x.dtype):
        written = write(op, _as_number(name, x, values), index, values,
                        indices_are_sorted=indices_are_sorted, unique_indices=unique_indices,
                        mode=None if strict else mode, out_sharding=out_sharding,
                        wrap_negative_indices=wrap_negative_indices)
        return promote.convert(written, x.dtype)
    how = _how(mode, unique_indices, indices_are_sorted, None, wrap_negative_indices, op)
    masked = masked_index(x.shape, index)
    if masked is not None and masked.layout.takes(typeof(values).shape):
        written = constrain(name, _write_at_mask(name, x, masked, values, how, strict),
                            out_sharding)
        return written if not x.aval.weak_type else promote.convert(written, x.dtype, True)
    plan, operands, outside = parse(x.shape, index, wrap_negative_indices,
                                    strict and wrap_negative_indices)
    values = fit_values(name, x.aval, values, plan.out_shape)
    if outside and mode is FILL:
        return constrain(name, x, out_sharding)
    written = settled(name, functools.partial(_write, plan=plan, how=how), out_sharding, x, values,
                      *operands)
    return written if not x.aval.weak_type else promote.convert(written, x.dtype, True)


def _as_number(name: str, x: Array, values: object) -> Array:
    """Bools at the dtype of the numbers that are combined with them."""
    aval = typeof(values)
    if dtypes.is_bool(aval.dtype):
        raise TypeError(f"{name}: values {aval} given for an array {x.aval}; numbers are required; "
                        "at[...].max is or, at[...].min is and.")
    _warn_of_cast(name, aval, x.aval)
    return promote.convert(x, aval.dtype)


def _warn_of_cast(name: str, values: ShapedArray, to: ShapedArray) -> None:
    source.warn(f"{name}: scatter inputs have incompatible types: values {values} cannot be cast "
                f"to the array's {dtypes.long_name(to.dtype)} safely; cast them with astype.",
                FutureWarning)


def _write_at_mask(name: str, x: Array, masked: Masked, values: promote.Operand, how: How,
                   strict: bool) -> Array:
    plan, operands, outside = parse(x.shape, masked.index, how.wrap, strict)
    values = fit_values(name, x.aval, values, masked.layout.values_shape(plan.out_shape))
    if (outside and how.mode is FILL) or plan.empty is not None:
        return x
    return _choose(x, values, masked.mask, *operands, plan=plan, how=how, layout=masked.layout)


@fused(static=("plan", "how", "layout"))
def _choose(x: Array, values: Array, mask: ArrayLike, *operands: Array, plan: Plan,
            how: How, layout: Layout) -> Array:
    """The region with values combined into it where the mask holds, written back."""
    region = _slice(x, plan, how.wrap, *operands)
    new = _ELEMENTWISE[how.op](region, layout.spread(values, region.shape))
    new = select_n(layout.over(mask, region.shape), region, new)
    how = _how(how.mode, True, False, None, how.wrap, "set")
    return _write(x, new, *operands, plan=plan, how=how)


def fit_values(name: str, to: ShapedArray, values: promote.Operand, to_fit: tuple[int, ...]
               ) -> Array:
    """An operand at the dtype of `to`; its shape is checked, not changed."""
    aval = typeof(values)
    shape = aval.shape
    if shape and (len(shape) > len(to_fit)
                  or any(n not in (1, m) for n, m in zip(shape[::-1], to_fit[::-1]))):
        raise ValueError(f"{name}: values {aval} given for an index of shape {to_fit};\n  values "
                         "that broadcast to it are required;\n  reshape them.")
    if aval.dtype == to.dtype:
        return promote.plain(values)
    if dtypes.is_extended(to.dtype) or dtypes.is_extended(aval.dtype):
        raise TypeError(f"{name}: values {aval} given for an array {to}; equal dtypes are "
                        "required of keys.")
    if loses(to, aval):
        _warn_of_cast(name, aval, to)
    return promote.convert(values, to.dtype, to.weak_type)


def loses(to: ShapedArray, values: ShapedArray) -> bool:
    """Whether values of one type lose something at a dtype, which promotion then does not give."""
    return dtypes.promote_many(((to.dtype, to.weak_type), (values.dtype, values.weak_type))
                               )[0] != to.dtype


@fused(static=("plan", "how"))
def _write(x: Array, values: Array, *operands: ArrayLike, plan: Plan, how: How) -> Array:
    """A scatter, or a simpler operation that writes the same elements."""
    if plan.wide:
        operands = _join_halves(operands)
    if not prod(plan.out_shape) or plan.empty is not None:
        return x
    op = how.op
    if plan.whole:
        values = _at_shape(values, plan.out_shape, x.shape)
        return _ELEMENTWISE[op](x, values)
    if plan.basic and plan.unit and op == "set" and (not plan.scalars or how.mode is not FILL):
        starts = [0 if o is None else operands[o] for o, _ in plan.spans]
        values = _at_shape(values, plan.out_shape, tuple([size for _, size in plan.spans]))
        return slicing.dynamic_update_slice(x, values, starts, allow_negative_indices=[
            how.wrap and o in plan.scalars for o, _ in plan.spans])
    numbers = ScatterDimensionNumbers(plan.offset_dims, plan.collapsed, plan.index_map)
    unique = how.unique or (plan.basic and how.mode is FILL)
    return _SCATTERS[op](
        x, _index_vectors(plan, operands, how.wrap), _at_shape(values, plan.out_shape, plan.packed),
        numbers, indices_are_sorted=how.is_sorted, unique_indices=unique, mode=how.mode)


def _at_shape(values: Array, broadcast: tuple[int, ...], target: tuple[int, ...]) -> Array:
    """Values broadcast to one shape, then reshaped to another of the same size."""
    values = promote.broadcast_to(values, broadcast)
    return values if broadcast == target else shape.reshape(values, target)


_READ = _how(CLIP, False, False, None, True, "get")


# take, take_along_axis ---------------------------------------------------------------------------

@fused(static=("axis", "out", "mode", "unique_indices", "indices_are_sorted", "fill_value"),
        inline=True)
def take(a: ArrayLike, indices: ArrayLike, axis: int | None = None, out: None = None,
         mode: str | None = None, unique_indices: bool = False, indices_are_sorted: bool = False,
         fill_value: ArrayLike | None = None) -> Array:
    """Elements of an array along an axis, at integer indices of any shape.

    Args:
      a: array.
      indices: integers; negative ones count from the end, but with mode "clip" read the first.
      axis: the axis to index; the flattened array if None.
      out: must be None; arrays cannot be written to.
      mode: "fill" (the default: outside reads `fill_value`), "clip" or "wrap".
      unique_indices, indices_are_sorted: promises that can make it faster.
      fill_value: NaN, the lowest signed integer or the highest unsigned one by default.

    Returns:
      An array of the dtype of `a`, in which the axes of `indices` take the place of the axis.

    Raises TypeError for indices that are not integers, ValueError for an axis out of bounds and for
    NumPy's mode "raise".

    >>> print(onp.take(onp.array([5., 6., 7.]), onp.array([2, -1, 9])))
    [ 7.  7. nan]
    """
    promote.refuse_option("take", out=out)
    if mode == "raise":
        raise ValueError("take: mode 'raise' given; a program cannot raise for values; "
                                  "use 'fill', 'clip' or 'wrap'.")
    a, indices = promote.array_args("take", a, indices)
    if axis is None:
        a, axis = shape.reshape(a, (prod(a.shape),)), 0
    axis = canonical_axis(axis, len(a.shape), "take")
    if dtypes.scalar_kind(typeof(indices).dtype) not in "iu":
        raise TypeError(f"take: indices {typeof(indices)} given; an integer dtype is required; "
                        "convert them with astype.")
    if definitely_equal(a.shape[axis], 0) and prod(indices.shape) != 0:
        raise IndexError(f"take: {a.aval} given; cannot do a non-empty take from an empty axis; "
                         "give no indices, or elements.")
    negative_is_outside = mode == "clip"
    if mode == "wrap":
        indices, mode = _modulo(indices, a.shape[axis]), "clip"
    index = (slice(None),) * axis + (indices if indices.shape else _scalar_index(indices),)
    return read(a, index, mode=mode or "fill", fill_value=fill_value,
                unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
                wrap_negative_indices=not negative_is_outside)


def _scalar_index(index: ArrayLike) -> ArrayLike:
    """A rank-0 index: a Python int where its value is written in the program."""
    value = getattr(index, "raw", index)
    return int(value) if isinstance(value, (int, np.integer)) else index


def _modulo(indices: Array, n: int) -> Array | np.ndarray:
    if typeof(indices).dtype.itemsize < 4:      # n may not fit
        indices = promote.convert(indices, _INT32)
    if not isinstance(indices, Tracer) and not hasattr(indices, "aval"):
        return np.asarray(indices) % max(n, 1)
    if type(indices) is Literal:
        return np.asarray(indices.raw) % max(n, 1)
    if exceeds(n, int(dtypes.iinfo(typeof(indices).dtype).max)):
        indices = _convert(indices, _INT64 if exceeds(n, 2**31 - 1) else _INT32)
    size = shape.broadcast_in_dim(literal(max(n, 1), typeof(indices).dtype), indices.shape, ())
    rest = rem(indices, size)
    if dtypes.scalar_kind(typeof(indices).dtype) == "u":
        return rest
    return select_n(lt(rest, 0), rest, add(rest, size))


@fused(static=("axis", "mode", "fill_value", "wrap_negative_indices"))
def take_along_axis(arr: ArrayLike, indices: ArrayLike, axis: int | None = -1,
                    mode: str | GatherScatterMode | None = None,
                    fill_value: ArrayLike | None = None, *, wrap_negative_indices: bool = True
                   ) -> Array:
    """out[i, j, k] = arr[i, indices[i, j, k], k], here for axis 1 of three.

    Args:
      arr: array; its other axes broadcast against the other axes of `indices`.
      indices: integers of the same rank.
      axis: the axis to index; both arrays are flattened if None.
      mode: "fill" (the default), "clip" or "promise_in_bounds".
      fill_value: what "fill" reads outside, as in `take`.
      wrap_negative_indices: whether negative indices count from the end.
    Returns: An array of the dtype of `arr` with the size of `indices` along the axis.

    Raises TypeError for indices that are not integers, ValueError where ranks or sizes differ.

    >>> x = onp.array([[3, 1, 2], [6, 5, 4]])
    >>> print(onp.take_along_axis(x, onp.argsort(x, axis=1), axis=1))
    [[1 2 3]
     [4 5 6]]
    """
    arr, indices = promote.array_args("take_along_axis", arr, indices)
    if dtypes.scalar_kind(typeof(indices).dtype) not in "iu":
        raise TypeError(f"take_along_axis: indices {typeof(indices)} given; an integer dtype is "
                        "required; convert them with astype.")
    if axis is None:
        arr, axis = shape.reshape(arr, (prod(arr.shape),)), 0
        indices = shape.reshape(indices, (prod(indices.shape),))
    if len(arr.shape) != len(indices.shape):
        raise ValueError(f"take_along_axis: arr {typeof(arr)} and indices {typeof(indices)} "
                         "given; indices and arr must have the same number of dimensions; reshape "
                         "one of them.")
    axis = canonical_axis(axis, len(arr.shape), "take_along_axis")
    mode = FILL if mode is None else GatherScatterMode.from_any(mode)
    if mode is ONE_HOT:
        mode, fill_value = FILL, 0
    how = _how(mode, False, False, fill_value, wrap_negative_indices, "get")
    return _take_along(arr, indices, axis=axis, how=how)


@fused(static=("axis", "how"))
def _take_along(x: Array, indices: Array, *, axis: int, how: How) -> Array:
    size = x.shape[axis]
    common = broadcast_shapes((*x.shape[:axis], 1, *x.shape[axis + 1:]),
                              (*indices.shape[:axis], 1, *indices.shape[axis + 1:]))
    count = indices.shape[axis]
    x = promote.broadcast_to(x, (*common[:axis], size, *common[axis + 1:]))
    indices = promote.broadcast_to(indices, (*common[:axis], count, *common[axis + 1:]))
    if not prod(indices.shape):
        return creation.full(indices.shape, 0, x.dtype)
    if not size:
        raise IndexError(f"take_along_axis: indices of shape {indices.shape} given for an empty "
                         "axis; an axis with elements is required.")
    from_front = _from_front(indices, size, how.wrap)
    others = tuple([d for d in range(len(common)) if d != axis])
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return lax_indexing.gather(x, shape.expand_dims(from_front, (len(common),)), numbers,
                               (1,) * len(common), mode=how.mode, fill_value=how.fill)


@named
def put_along_axis(arr: ArrayLike, indices: ArrayLike, values: ArrayLike, axis: int | None,
                   inplace: bool = True, *, mode: str | None = None) -> Array:
    """A copy of `arr` with out[i, indices[i, j, k], k] = values[i, j, k], here for axis 1 of three.

    Args:
      arr: array.
      indices: integers of the same rank; of several that are equal one value stays.
      values: array that broadcasts with `indices`.
      axis: the axis to index; the flattened array if None.
      inplace: must be False: arrays cannot be changed.
      mode: what happens outside, "drop" or "clip".
    Returns: An array of the shape and dtype of `arr`.

    Raises ValueError for `inplace`, and where ranks differ.

    >>> x, places = onp.zeros((2, 3)), onp.array([[0], [2]])
    >>> print(onp.put_along_axis(x, places, 1.0, axis=1, inplace=False))
    [[1. 0. 0.]
     [0. 0. 1.]]
    """
    promote.refuse_inplace("put_along_axis", inplace)
    arr, indices, values = promote.array_args("put_along_axis", arr, indices, values)
    if axis is None:
        flat = put_along_axis(shape.reshape(arr, (prod(arr.shape),)), indices, values, 0, False,
                              mode=mode)
        return shape.reshape(flat, arr.shape)
    axis = canonical_axis(axis, len(arr.shape), "put_along_axis")
    if len(arr.shape) != len(indices.shape):
        raise ValueError(f"put_along_axis: arr {typeof(arr)} and indices {typeof(indices)} given; "
                         "indices and arr must have the same number of dimensions.")
    index: list[Any] = [
        np.arange(n).reshape([-1 if d == k else 1 for k in range(len(arr.shape))])
        if type(n) is int else creation.broadcasted_iota(
            _INT32, tuple([n if d == k else 1 for k in range(len(arr.shape))]), d)
        for d, n in enumerate(arr.shape)]
    index[axis] = indices
    return write("set", arr, tuple(index), values, mode=mode)


# nonzero -----------------------------------------------------------------------------------------

def concrete(name: str, x: ArrayLike, what: str, remedy: str) -> np.ndarray:
    """The values of an array that decide a result's shape; ConcretizationTypeError if unknown."""
    if isinstance(x, Tracer):
        value = x._known_value()
        if value is None:
            raise errors.ConcretizationTypeError(
                f"{name}: {what} is {describe(x)}; a concrete value is required, because it "
                f"decides the result's shape; {remedy}.")
        x = value
    return np.asarray(getattr(x, "raw", x))


def need_size(name: str, size: int | None, **arguments: object) -> None:
    """Raise ConcretizationTypeError for the first traced argument where no size is given.

    Functions that go on to others say so in their own name and their argument's.
    """
    if size is None:
        for argument, x in arguments.items():
            if isinstance(x, Tracer):
                concrete(name, x, argument, "pass size=...")


@named
def nonzero(a: ArrayLike, *, size: int | None = None,
            fill_value: None | ArrayLike | tuple[ArrayLike, ...] = None) -> tuple[Array, ...]:
    """The indices of the elements that are not zero, in row-major order.

    Args:
      a: array of rank at least 1.
      size: the number of places to return; required where `a` is traced.
      fill_value: the place named where there are fewer, 0 by default: a scalar, or one per axis.

    Returns:
      A tuple of vectors, one per axis, int32 (int64 with x64): `a[nonzero(a)]` are the elements.

    Raises ConcretizationTypeError for a traced array without `size`, ValueError for scalars.

    >>> rows, columns = onp.nonzero(onp.array([[7, 0], [0, 9]]))
    >>> print(rows, columns)
    [0 1] [0 1]
    """
    a = promote.array_args("nonzero", a)[0]
    if not a.shape:
        raise ValueError("nonzero: a scalar given; calling nonzero on 0d arrays is not allowed; "
                         "use atleast_1d(x).nonzero().")
    if size is None:
        value = concrete("nonzero", a, "a", "pass size=..., or use olympus.numpy.where "
                         "with three arguments")
        dtype = dtypes.default_int()
        return tuple([array_from_numpy(p.astype(dtype)) for p in np.nonzero(value)])
    fill = fill_value if isinstance(fill_value, (tuple, list)) else [fill_value] * len(a.shape)
    if len(fill) != len(a.shape):
        raise ValueError(f"nonzero: {len(fill)} fill values given for {typeof(a)}; one, or one per "
                         "axis, is required.")
    return tuple(_nonzero(a, *[0 if f is None else f for f in fill],
                          size=canonical_dim(size, "nonzero: size")))


@fused(static=("size",))
def _nonzero(a: Array, *fill: ArrayLike, size: int) -> list[Array]:
    total, dtype = prod(a.shape), dtypes.default_int()
    fills = [promote.convert(promote.array_args("nonzero", f)[0], dtype) for f in fill]
    if not total or not size:
        return [promote.broadcast_to(p, (size,)) for p in fills]
    mask = a if dtypes.is_bool(a.dtype) else ne(a, creation.full(a.shape, 0, a.dtype))
    flat = true_places_p.bind(shape.reshape(mask, (total,)), size=size, dtype=dtype)
    here = lt(flat, creation.full((size,), total, dtype))
    out = []
    for axis, place in enumerate(fills):
        stride, n = prod(a.shape[axis + 1:]), a.shape[axis]
        along_axis = flat if axis == len(fills) - 1 else div(flat, creation.full(
            (size,), stride, dtype))
        if axis:
            along_axis = rem(along_axis, creation.full((size,), n, dtype))
        out.append(select_n(here, promote.broadcast_to(place, (size,)), along_axis))
    return out
