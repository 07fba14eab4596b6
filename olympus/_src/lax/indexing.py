"""gather and scatter: windows read from, or combined into, an array at computed places.

    gather    out[batch…, offset…] = operand[start(batch…) + offset…]
    scatter   operand[start(batch…) + offset…] ⊕= updates[batch…, offset…]

`start(batch…)` is a vector along the last axis of the indices, whose component k is a place on
operand axis `start_index_map[k]`. vmap pairs an axis of the operand with one of the indices
("batching dims"), so that mapped indexing stays one operation and its cost linear.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike, DType, IrValue, Params, Shape
from ..base.util import lazy_imports, memoize
from ..core import tags
from ..core.facts import Indexed, Shapes
from ..core.ir import ClosedOlympuspr, Olympuspr
from ..core.primitive import Axis, Builder, Cotangent, Linear, Tangent, Zero
from ..core.staging import stage
from ..core.trace import literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.mesh import NO_MESH, use_abstract_mesh
from ..types.shape import (
    canonical_shape, definitely_equal, exceeds, is_static, known_less, largest, prod,
)
from . import arithmetic
from .arithmetic import div, neg, sub
from .comparison import eq, ne, select_n
from .creation import fill_literal, iota
from .families import add
from .shape import (
    Dims, Physical, align, broadcast_in_dim, expand_dims, instantiate, move_axis, reshape, shifted,
    zeros_of,
)


class GatherDimensionNumbers(NamedTuple):
    """The corresponding axes of a gather's operand, indices and result.

    Attributes:
      offset_dims: axes of the result that run through a window; the others are batch axes.
      collapsed_slice_dims: operand axes whose window has size 1 and is dropped from the result.
      start_index_map: per component of an index vector, the operand axis that it is a place on.
      operand_batching_dims: operand axes paired with axes of the indices.
      start_indices_batching_dims: the axes of the indices that those are paired with.

    >>> from olympus import lax, numpy as onp
    >>> x, places = onp.array([10, 20, 30]), onp.array([[2], [0]])
    >>> print(lax.gather(x, places, lax.GatherDimensionNumbers((), (0,), (0,)), (1,)))
    [30 10]
    """

    offset_dims: Dims
    collapsed_slice_dims: Dims
    start_index_map: Dims
    operand_batching_dims: Dims = ()
    start_indices_batching_dims: Dims = ()


class ScatterDimensionNumbers(NamedTuple):
    """The corresponding axes of a scatter's operand, indices and updates.

    Attributes:
      update_window_dims: axes of the updates that run through a window; the others are batch axes.
      inserted_window_dims: operand axes whose window has size 1 and is absent from the updates.
      scatter_dims_to_operand_dims: per component of an index vector, the operand axis it is on.
      operand_batching_dims: operand axes paired with axes of the indices.
      scatter_indices_batching_dims: the axes of the indices that those are paired with.

    >>> from olympus import lax, numpy as onp
    >>> points = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> print(lax.scatter(onp.zeros(3), onp.array([[1]]), onp.array([5.]), points))
    [0. 5. 0.]
    """

    update_window_dims: Dims
    inserted_window_dims: Dims
    scatter_dims_to_operand_dims: Dims
    operand_batching_dims: Dims = ()
    scatter_indices_batching_dims: Dims = ()


class GatherScatterMode(enum.Enum):
    """The treatment of windows that reach outside of the operand.

    CLIP moves the window inside. FILL_OR_DROP reads a fill value, and drops writes.
    PROMISE_IN_BOUNDS: the caller promises that it does not happen; the result is undefined if so.
    ONE_HOT reads 0, as the product with rows of zeros and a one would, and drops writes.

    >>> from olympus import lax, numpy as onp
    >>> x, places = onp.array([10, 20, 30]), onp.array([[9]])
    >>> points = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> print(lax.gather(x, places, points, (1,), mode=lax.GatherScatterMode.CLIP))
    [30]
    """

    CLIP = 1
    FILL_OR_DROP = 2
    PROMISE_IN_BOUNDS = 3
    ONE_HOT = 4

    __repr__ = enum.Enum.__str__
    __hash__ = object.__hash__      # in C: modes are in the keys of eager calls

    @staticmethod
    def from_any(mode: GatherScatterMode | str | None) -> GatherScatterMode:
        """A mode from itself, None, or "clip", "fill", "drop", "promise_in_bounds", "one_hot"."""
        if isinstance(mode, GatherScatterMode):
            return mode
        try:
            return _MODES[mode]
        except (KeyError, TypeError):
            raise ValueError(f"gather/scatter: mode {mode!r} given;\n  'clip', 'fill', 'drop', "
                             "'promise_in_bounds' or 'one_hot' is required.") from None


_MODES = {"clip": GatherScatterMode.CLIP, "fill": GatherScatterMode.FILL_OR_DROP,
          "drop": GatherScatterMode.FILL_OR_DROP, None: GatherScatterMode.FILL_OR_DROP,
          "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS,
          "one_hot": GatherScatterMode.ONE_HOT}
CLIP, FILL, PROMISE, ONE_HOT = GatherScatterMode
# How many numbers of 16 bits may be added to an element each by itself, where the array is large.
FEW = 16

with lazy_imports(__name__):
    from .kernels import updates as _updates

BOOL, _I32, _U32 = map(dtypes.as_dtype, ("bool", "int32", "uint32"))


def _fields(**dims: Dims) -> str:
    return ", ".join(f"{name} = {list(axes)}" for name, axes in dims.items())


def _last_inside(shape: Dims, window: Sequence[int], axes: Dims, dtype: DType) -> Dims:
    """Per index component the largest start whose window is inside, or the dtype's maximum."""
    limit = int(dtypes.iinfo(dtype).max)
    return tuple([limit if exceeds(n, limit) else n
                  for n in (shape[a] - window[a] for a in axes)])


def _per_component(b: Builder, values: Dims, index: ShapedArray) -> IrValue:
    """Emit one number per index component, repeated to the shape of the indices."""
    return b.broadcast(b.vector(values, index.dtype), index, (index.ndim - 1,))


# Gather -----------------------------------------------------------------------------------------


def _as_signed(b: Builder, indices: IrValue, dn: GatherDimensionNumbers, slice_sizes: Dims
               ) -> IrValue:
    """The starts as signed integers: XLA takes unsigned constants for signed ones."""
    shape, index = b.avals_in[0].shape, b.avals_in[1]
    if dtypes.scalar_kind(index.dtype) != "u":
        return indices
    if dtypes.iinfo(index.dtype).bits >= 32:
        last = _last_inside(shape, slice_sizes, dn.start_index_map, index.dtype)
        indices = b.op("stablehlo.minimum", [indices, _per_component(b, last, index)], None, index)
    wide = exceeds(largest(shape), int(dtypes.iinfo(_I32).max))
    return b.convert(indices, index.update(dtype=dtypes.as_dtype("int64") if wide else _I32))


class Gather(Physical):
    """Windows of `slice_sizes` read at `indices`."""

    spread = staticmethod(tags.gather)
    settled_by = "x.at[…].get(out_sharding=…)"
    makes_nan = False
    pace = 4.0

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        """The work for each window and each copied element; other elements are not read."""
        return self.pace * prod(ins[1][:-1]) + 0.25 * prod(outs[0])

    def indexed(self, avals: Sequence[ShapedArray], params: Params) -> Indexed:
        return Indexed(1, params["dimension_numbers"].start_index_map, params["slice_sizes"])

    def infer(self, x: ShapedArray, indices: ShapedArray, *,
              dimension_numbers: GatherDimensionNumbers, slice_sizes: Dims, unique_indices: bool,
              indices_are_sorted: bool, mode: GatherScatterMode, fill_value: ArrayLike | None
              ) -> ShapedArray:
        dn = dimension_numbers
        if not isinstance(dn, GatherDimensionNumbers):
            raise TypeError(f"gather: dimension_numbers {dn!r} given; GatherDimensionNumbers are "
                            "required.")
        rank = max(indices.ndim - 1, 0) + len(dn.offset_dims)
        _check_axes("gather", "offset_dims", dn.offset_dims, None)
        for i, d in enumerate(dn.offset_dims):
            if not 0 <= d < rank:
                raise TypeError(f"gather: Offset dimension {i} in gather op is out of bounds: "
                                f"offset_dims {dn.offset_dims} given; axes of the result, in "
                                f"[0, {rank}), are required.")
        _check_indices("gather", x, indices, dn._asdict())
        if len(slice_sizes) != x.ndim:
            raise TypeError(f"gather: operand {x}, slice_sizes {slice_sizes} given; Gather op must "
                            "have one slice size for every input dimension.")
        dropped = (*dn.collapsed_slice_dims, *dn.operand_batching_dims)
        window = [s for d, s in enumerate(slice_sizes) if d not in dropped]
        if len(dn.offset_dims) != len(window):
            raise TypeError("gather: All components of the offset index in a gather op must either "
                            "be a offset dimension or explicitly collapsed/batching: offset_dims "
                            f"{dn.offset_dims} given for {len(window)} window axes that remain.")
        for d, (s, n) in enumerate(zip(slice_sizes, x.shape, strict=True)):
            if s < 0 or known_less(n, s):
                raise TypeError(f"gather: operand {x}, slice_sizes {slice_sizes} given; Slice size "
                                f"at index {d} in gather op is out of range, must be within "
                                f"[0, {n}].")
        for what, dims, bound in (("collapse slice dims", dn.collapsed_slice_dims, "1"),
                                  ("have operand batching dims", dn.operand_batching_dims, "0/1")):
            for i, d in enumerate(dims):
                if slice_sizes[d] > 1:
                    raise TypeError(f"gather: slice_sizes {slice_sizes} given; Gather op can only "
                                    f"{what} with bound {bound}, but bound is {slice_sizes[d]} for "
                                    f"index {d} at position {i}.")
        return make_aval(_weave(indices.shape[:-1], window, dn.offset_dims), x.dtype, x.weak_type)

    def physical(self, element: Dims, avals: Sequence[ShapedArray], *,
                 dimension_numbers: GatherDimensionNumbers, slice_sizes: Dims, **params: Hashable
                 ) -> Params:
        dn = dimension_numbers
        ndim = avals[1].ndim - 1 + len(dn.offset_dims)
        offset = (*dn.offset_dims, *range(ndim, ndim + len(element)))
        return {"dimension_numbers": dn._replace(offset_dims=offset),
                "slice_sizes": (*slice_sizes, *element), **params}

    def emit(self, b: Builder, x: IrValue, indices: IrValue, *,
             dimension_numbers: GatherDimensionNumbers, slice_sizes: Dims, unique_indices: bool,
             indices_are_sorted: bool, mode: GatherScatterMode, fill_value: ArrayLike | None
             ) -> IrValue:
        dn = dimension_numbers
        fields = _fields(
            offset_dims=dn.offset_dims, collapsed_slice_dims=dn.collapsed_slice_dims,
            operand_batching_dims=dn.operand_batching_dims,
            start_indices_batching_dims=dn.start_indices_batching_dims,
            start_index_map=dn.start_index_map)
        last = b.avals_in[1].ndim - 1
        starts = _as_signed(b, indices, dn, slice_sizes)
        out = b.op("stablehlo.gather", [x, starts], {       # it clips starts by itself
            "dimension_numbers": b.attr(f"#stablehlo.gather<{fields}, index_vector_dim = {last}>"),
            "slice_sizes": b.i64s(slice_sizes),
            "indices_are_sorted": b.attr("true" if indices_are_sorted else "false")})
        if mode is ONE_HOT:
            fill_value = 0
        elif mode is not FILL:
            return out
        return _fill_outside(b, out, indices, b.avals_in[0], dn, slice_sizes, fill_value)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *,
            fill_value: ArrayLike | None, **params: Hashable) -> tuple[Array, Tangent]:
        x, indices = primals
        zero = 0 if params["mode"] is FILL else None
        return (self.bind(x, indices, fill_value=fill_value, **params),
                self.bind(tangents[0], indices, fill_value=zero, **params))

    def transpose(self, ct: Array, x: Linear, indices: ArrayLike, *, fill_value: int | None,
                  dimension_numbers: GatherDimensionNumbers, slice_sizes: Dims,
                  unique_indices: bool, indices_are_sorted: bool, mode: GatherScatterMode
                  ) -> list[Array | None]:
        zeros = zeros_of(x.aval.to_cotangent_aval())
        return [self.grown(zeros, ct, indices, dimension_numbers=dimension_numbers, mode=mode,
                           unique_indices=unique_indices,
                           indices_are_sorted=indices_are_sorted), None]

    def grown(self, x: ArrayLike, ct: Array, indices: ArrayLike, *,
              dimension_numbers: GatherDimensionNumbers, unique_indices: bool,
              indices_are_sorted: bool, mode: GatherScatterMode, **params: Hashable) -> Array:
        """`x` with values added where the operation reads."""
        dn = dimension_numbers
        numbers = ScatterDimensionNumbers(
            dn.offset_dims, dn.collapsed_slice_dims, dn.start_index_map, dn.operand_batching_dims,
            dn.start_indices_batching_dims)
        return bind_scatter(scatter_add_p, x, indices, ct, numbers, indices_are_sorted,
                            unique_indices, mode)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             dimension_numbers: GatherDimensionNumbers, slice_sizes: Dims, unique_indices: bool,
             indices_are_sorted: bool, **params: Hashable) -> tuple[Array, int]:
        (x, indices), (dx, di), dn = args, dims, dimension_numbers
        x = x if dx is None else move_axis(x, dx, 0)
        indices = indices if di is None else move_axis(indices, di, 0)
        offset = shifted(dn.offset_dims)
        if di is None:
            numbers = GatherDimensionNumbers(
                (0, *offset), shifted(dn.collapsed_slice_dims), shifted(dn.start_index_map),
                shifted(dn.operand_batching_dims), dn.start_indices_batching_dims)
            sizes = (axis.size, *slice_sizes)
        elif dx is None:
            numbers = dn._replace(offset_dims=offset, start_indices_batching_dims=shifted(
                dn.start_indices_batching_dims))
            # Mapped elements may read the same place, in any order.
            sizes, unique_indices, indices_are_sorted = slice_sizes, False, False
        else:
            numbers = GatherDimensionNumbers(
                offset, shifted(dn.collapsed_slice_dims), shifted(dn.start_index_map),
                (0, *shifted(dn.operand_batching_dims)),
                (0, *shifted(dn.start_indices_batching_dims)))
            sizes = (min(1, axis.size), *slice_sizes)
        return self.bind(x, indices, dimension_numbers=numbers, slice_sizes=sizes,
                         unique_indices=unique_indices, indices_are_sorted=indices_are_sorted,
                         **params), 0


def _weave(batch: Sequence[int], window: Sequence[int], offset_dims: Dims) -> Dims:
    """The result's shape: window sizes at offset_dims, batch sizes at the other axes in order."""
    sizes, offsets = iter(batch), dict(zip(offset_dims, window, strict=True))
    return tuple([offsets[d] if d in offsets else next(sizes)
                  for d in range(len(batch) + len(window))])


def _check_axes(name: str, label: str, dims: Dims, ndim: int | None, ordered: bool = True) -> None:
    """TypeError unless these are distinct axes of an array of rank `ndim`, in order if asked."""
    op = f"{label} in {'gather' if name == 'gather' else 'scatter'} op must"
    if ordered and list(dims) != sorted(dims):
        raise TypeError(f"{name}: {op} be sorted; {dims} given.")
    if len(set(dims)) != len(dims):
        raise TypeError(f"{name}: {op} not repeat; {dims} given.")
    if ndim is not None and any(not 0 <= d < ndim for d in dims):
        mapping = " mapping" if label.startswith("scatter_dims") else ""
        where = "" if label == "start_index_map" else f" set in {op.split()[2]} op"
        raise TypeError(f"{name}: Invalid {label}{mapping or where}; valid range is [0, {ndim}); "
                        f"{dims} given.")


def _check_indices(name: str, x: ShapedArray, indices: ShapedArray, numbers: dict[str, Dims]
                   ) -> None:
    """TypeError unless the indices are integers whose last axis has one entry per mapped axis, and
    the numbers name axes of the operand and of the indices.
    """
    op = "gather" if name == "gather" else "scatter"
    if dtypes.scalar_kind(indices.dtype) not in "iu":
        raise TypeError(f"{name}: indices {indices} given; an integer dtype is required; convert "
                        "them with astype.")
    _, dropped, mapped, batching, index_batching = numbers
    for label in (dropped, batching):
        _check_axes(name, label, numbers[label], x.ndim)
    for label in (dropped, mapped):
        if set(numbers[label]) & set(numbers[batching]):
            raise TypeError(f"{name}: {label} and {batching} in {op} op must be disjoint; "
                            f"{numbers[label]} and {numbers[batching]} given.")
    batch = numbers[index_batching]
    _check_axes(name, index_batching, batch, indices.ndim, False)
    if indices.ndim - 1 in batch:
        raise TypeError(f"{name}: {op.title()} op cannot have the index vector dimension as a "
                        f"batching dimension; {index_batching} {batch} of {indices} given.")
    if len(batch) != len(numbers[batching]):
        raise TypeError(f"{name}: {op.title()} op requires equal numbers of {batching} and "
                        f"{index_batching}; {numbers[batching]} and {batch} given.")
    if [x.shape[d] for d in numbers[batching]] != [indices.shape[d] for d in batch]:
        raise TypeError(f"{name}: {op.title()} op requires operand batching dimensions and indices "
                        f"batching dimensions to have the same shape; {numbers[batching]} of {x} "
                        f"and {batch} of {indices} given.")
    count = len(numbers[mapped])
    if indices.ndim == 0 or not definitely_equal(indices.shape[-1], count):
        size = indices.shape[-1] if indices.ndim else "missing"
        raise TypeError(f"{name}: {op.title()} op has {count} elements in {mapped} and the bound "
                        f"of dimension index_vector_dim={max(indices.ndim - 1, 0)} of indices is "
                        f"{size}. These two numbers must be equal: {numbers[mapped]} and indices "
                        f"{indices} given; a last axis of size {count} is required.")
    _check_axes(name, mapped, numbers[mapped], x.ndim, False)


def _default_fill(dtype: DType) -> float:
    """NaN, the lowest signed integer, the highest unsigned one, or True; for keys, of words."""
    dtype = dtype.physical_dtype if dtypes.is_extended(dtype) else dtype
    kind = dtypes.scalar_kind(dtype)
    if kind in "iu":
        info = dtypes.iinfo(dtype)
        return int(info.min if kind == "i" else info.max)
    return True if kind == "b" else float("nan")


def _fill_outside(b: Builder, out: IrValue, indices: IrValue, x: ShapedArray,
                  dn: GatherDimensionNumbers, slice_sizes: Dims, fill_value: ArrayLike | None
                  ) -> IrValue:
    """Emit: `out` where the window is inside of the operand, else the fill value."""
    index, result = b.avals_in[1], b.avals_out[0]
    signed = dtypes.scalar_kind(index.dtype) == "i"
    kind, flags = "SIGNED" if signed else "UNSIGNED", index.update(dtype=BOOL)
    last = _last_inside(x.shape, slice_sizes, dn.start_index_map, index.dtype)
    inside = b.compare("LE", indices, _per_component(b, last, index), kind, flags)
    if signed:
        low = b.compare("GE", indices, b.full(index, 0), kind, flags)
        inside = b.op("stablehlo.and", [inside, low], None, flags)
    flag, batch = make_aval((), BOOL), make_aval(index.shape[:-1], BOOL)
    op = b.ops("stablehlo.reduce", [inside, b.scalar(True, BOOL)],
               {"dimensions": b.i64s((index.ndim - 1,))}, [b.type(batch)], regions=1)
    b.region(op, 0, [b.type(flag)] * 2, lambda p, q: [b.op("stablehlo.and", [p, q], None, flag)])
    batch_dims = [d for d in range(result.ndim) if d not in dn.offset_dims]
    mask = b.broadcast(op.result, result.update(dtype=BOOL), batch_dims)
    value: Any = (_default_fill(x.dtype) if fill_value is None else
                  getattr(fill_value, "raw", fill_value))
    return b.op("stablehlo.select", [mask, out, b.full(result, value)])


gather_p = Gather("gather")


def gather(operand: ArrayLike, start_indices: ArrayLike, dimension_numbers: GatherDimensionNumbers,
           slice_sizes: Shape, *, unique_indices: bool = False, indices_are_sorted: bool = False,
           mode: str | GatherScatterMode | None = None, fill_value: ArrayLike | None = None
          ) -> Array:
    """Read windows of an array at computed places.

    Args:
      operand: the array to read, of any dtype.
      start_indices: integers, shape [batch..., k]: each vector along the last axis is a place.
      dimension_numbers: how the axes of operand, indices and result belong together.
      slice_sizes: the window's size along each operand axis.
      unique_indices: a promise that no element is read twice (used by the derivative).
      indices_are_sorted: a promise that the places ascend.
      mode: "clip", "fill", "one_hot" or "promise_in_bounds" (`GatherScatterMode`); None is the
        last, or "fill" if a fill value is given.
      fill_value: what "fill" reads outside of the operand; None is NaN, the lowest signed
        integer, the highest unsigned one, or True.
    Returns: An array of the operand's dtype: batch axes of the indices, and at `offset_dims` the
      axes of windows that are not collapsed.

    The derivative follows the value: with "clip", it is by the element that a place outside of the
    operand is moved to; with "fill" and, where the promise is broken, "promise_in_bounds", none.

    Raises TypeError where ranks, sizes or dtypes do not fit together.

    >>> x = onp.array([[1, 2, 3], [4, 5, 6]])
    >>> columns = lax.GatherDimensionNumbers((1,), (1,), (1,))
    >>> print(lax.gather(x, onp.array([[2], [0]]), columns, slice_sizes=(2, 1)))
    [[3 6]
     [1 4]]
    """
    if mode is None:
        mode = PROMISE if fill_value is None else FILL
    mode = GatherScatterMode.from_any(mode)
    if fill_value is not None:
        fill_value = (fill_literal("gather", fill_value, typeof(operand).dtype)
                      if mode is FILL else None)
    return gather_p.bind(operand, start_indices, dimension_numbers=dimension_numbers,
                         slice_sizes=canonical_shape(slice_sizes, "gather"),
                         unique_indices=bool(unique_indices),
                         indices_are_sorted=bool(indices_are_sorted), mode=mode,
                         fill_value=fill_value)


def take_along(x: ArrayLike, indices: ArrayLike, axis: int) -> Array:
    """out[..., j, ...] = x[..., indices[..., j, ...], ...] along `axis`; indices in bounds."""
    ndim = typeof(x).ndim
    others = tuple([d for d in range(ndim) if d != axis])
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    return gather_p.bind(x, expand_dims(indices, (ndim,)), dimension_numbers=numbers,
                         slice_sizes=(1,) * ndim, unique_indices=False, indices_are_sorted=False,
                         mode=PROMISE, fill_value=None)


# Scatter ----------------------------------------------------------------------------------------


class Scatter(Physical):
    """Windows of `updates` written at `indices`: the last written stays. Base of the others."""

    kernels, kernels_from = _updates, 512
    spread = staticmethod(tags.scatter)
    memory = staticmethod(tags.in_memory_of_first)
    settled_by = "x.at[…].set(…, out_sharding=…)"
    programs = ("update_olympuspr",)
    makes_nan = False
    replaces = True
    pace = 4.0

    def indexed(self, avals: Sequence[ShapedArray], params: Params) -> Indexed:
        numbers = params["dimension_numbers"]
        sizes = iter([avals[2].shape[a] for a in numbers.update_window_dims])
        flat = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
        return Indexed(1, numbers.scatter_dims_to_operand_dims,
                       [1 if a in flat else next(sizes) for a in range(avals[0].ndim)])

    def __init__(self, name: str, combine: Any = None) -> None:
        super().__init__(name)
        self.combine = combine

    def infer(self, x: ShapedArray, indices: ShapedArray, updates: ShapedArray, *,
              dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool,
              unique_indices: bool, mode: GatherScatterMode,
              update_olympuspr: Olympuspr | None, update_consts: tuple) -> ShapedArray:
        dn = dimension_numbers
        if not isinstance(dn, ScatterDimensionNumbers):
            raise TypeError(f"{self.name}: dimension_numbers {dn!r} given; ScatterDimensionNumbers "
                            "are required.")
        rank = max(indices.ndim - 1, 0) + len(dn.update_window_dims)
        if updates.ndim != rank:
            raise TypeError(f"{self.name}: Updates tensor must be of rank {rank}; got "
                            f"{updates.ndim}: indices {indices}, updates {updates}, "
                            f"update_window_dims {dn.update_window_dims} given.")
        _check_axes(self.name, "update_window_dims", dn.update_window_dims, updates.ndim)
        _check_indices(self.name, x, indices, dn._asdict())
        if updates.dtype != x.dtype:
            raise TypeError(f"{self.name}: operand {x}, updates {updates} given; one dtype is "
                            "required; convert the updates with astype.")
        window = _window_sizes(x.ndim, updates, dn)
        # Each index has its own element of a batching axis, if there are any.
        if window is None or any(known_less(n, s) for d, (s, n) in enumerate(zip(
                window, x.shape, strict=True)) if d not in dn.operand_batching_dims):
            size = sum(map(len, (dn.update_window_dims, dn.inserted_window_dims,
                                 dn.operand_batching_dims)))
            need = ("Bounds of the window dimensions of updates must not exceed the bounds of the "
                    "corresponding dimensions of operand" if size == x.ndim else
                    f"Scatter op has window of size {size}; doesn't match operand of rank {x.ndim}")
            raise TypeError(f"{self.name}: operand {x}, updates {updates}, update_window_dims "
                            f"{dn.update_window_dims} given; {need}. Per operand axis that is "
                            "neither inserted nor batching one window axis, not larger, is "
                            "required.")
        batch = tuple([n for d, n in enumerate(updates.shape) if d not in dn.update_window_dims])
        if batch != indices.shape[:-1]:
            raise TypeError(f"{self.name}: indices {indices}, updates {updates} given; Bounds "
                            "of the scatter dimensions of updates must be the same as the bounds "
                            f"of the corresponding dimensions of indices, {indices.shape[:-1]}; "
                            "broadcast the updates.")
        return x

    def physical(self, element: Dims, avals: Sequence[ShapedArray], *,
                 dimension_numbers: ScatterDimensionNumbers, **params: Hashable) -> Params:
        dn, ndim = dimension_numbers, avals[2].ndim
        window = (*dn.update_window_dims, *range(ndim, ndim + len(element)))
        return {"dimension_numbers": dn._replace(update_window_dims=window), **params}

    def emit(self, b: Builder, x: IrValue, indices: IrValue, updates: IrValue, *,
             dimension_numbers: ScatterDimensionNumbers, indices_are_sorted: bool,
             unique_indices: bool, mode: GatherScatterMode, update_olympuspr: Olympuspr | None,
             update_consts: tuple) -> IrValue:
        def combine(old: IrValue, new: IrValue) -> list[IrValue]:
            if update_olympuspr is None:
                return [new]
            return b.call_inline(ClosedOlympuspr(update_olympuspr), [old, new])

        return emit_scatter(b, [x], indices, [updates], b.avals_in, combine, dimension_numbers,
                            indices_are_sorted, unique_indices, mode)[0]

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], *, unique_indices: bool,
            **params: Hashable) -> tuple[Array, Tangent]:
        (x, indices, updates), (tx, _, tu) = primals, tangents
        params["unique_indices"] = unique_indices
        if unique_indices or type(tu) is Zero:
            return (self.bind(x, indices, updates, **params),
                    self.bind(instantiate(tx), indices, instantiate(tu), **params))
        # Several windows may hit one element. Which write stays is the backend's choice, so number
        # the updates, see which number stays where, and add up only those.
        wins, touched = _winners(x, indices, updates, params)
        dtype = typeof(x).dtype             # x + -0.0 is x, even for x = -0.0
        hole = literal(complex(-0.0, -0.0) if dtypes.is_complex(dtype) else -0.0, dtype)

        def chosen(base: ArrayLike, new: ArrayLike) -> Array:
            return scatter_add_p.bind(where(touched, hole, base), indices,
                                      where(wins, new, hole), **add_params(base, params))

        return chosen(x, updates), chosen(instantiate(tx), instantiate(tu))

    def transpose(self, ct: Array, x: Linear, indices: ArrayLike, updates: Linear, *,
                  unique_indices: bool, **params: Hashable) -> Sequence[Cotangent]:
        params["unique_indices"] = unique_indices
        x_ct = u_ct = None
        if type(x) is Linear:
            new = updates.aval if type(updates) is Linear else typeof(updates)
            x_ct = self.bind(ct, indices, zeros_of(new.to_cotangent_aval()), **params)
        if type(updates) is Linear:
            u_ct = read_back(ct, indices, updates.aval, params)
            if not unique_indices:
                wins, _ = _winners(ct, indices, u_ct, params)
                u_ct = where(wins, u_ct, literal(0, updates.aval.dtype))
        return [x_ct, None, u_ct]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             dimension_numbers: ScatterDimensionNumbers, **params: Hashable
             ) -> tuple[Array, int | None]:
        (x, indices, updates), (dx, di, du), dn = args, dims, dimension_numbers
        (x, updates), _ = align(axis, (x, updates), (dx, du), 0)
        indices = indices if di is None else move_axis(indices, di, 0)
        numbers = mapped_scatter(dn, di is not None)
        return self.bind(x, indices, updates, dimension_numbers=numbers, **params), 0


def mapped_scatter(dn: ScatterDimensionNumbers, indices_mapped: bool) -> ScatterDimensionNumbers:
    """The numbers after operand and updates, and maybe the indices, get a mapped axis 0."""
    window, inserted = shifted(dn.update_window_dims), shifted(dn.inserted_window_dims)
    named, batching = shifted(dn.scatter_dims_to_operand_dims), shifted(dn.operand_batching_dims)
    if not indices_mapped:
        return ScatterDimensionNumbers((0, *window), inserted, named, batching,
                                       dn.scatter_indices_batching_dims)
    return ScatterDimensionNumbers(window, inserted, named, (0, *batching),
                                   (0, *shifted(dn.scatter_indices_batching_dims)))


def emit_scatter(b: Builder, xs: Sequence[IrValue], indices: IrValue, updates: Sequence[IrValue],
                 avals: Sequence[ShapedArray], combine: Callable[..., Sequence[IrValue]],
                 dn: ScatterDimensionNumbers,
                 indices_are_sorted: bool, unique_indices: bool, mode: GatherScatterMode
                 ) -> list[IrValue]:
    """Emit stablehlo.scatter into several arrays of one shape.

    Args:
      b: the builder.
      xs, indices, updates: MLIR values.
      avals: of an operand, the indices and an update.
      combine: (old..., new...) -> MLIR values, on rank-0 values.
      dn, indices_are_sorted, unique_indices, mode: as for `scatter`.
    """
    operand, index, update = avals
    if dtypes.iinfo(index.dtype).max < largest(operand.shape):
        # XLA compares with the axis's size in the dtype of the indices.
        index = index.update(dtype=_I32)
        indices = b.convert(indices, index)
    if mode is CLIP:
        window: Any = _window_sizes(operand.ndim, update, dn)
        last = _last_inside(operand.shape, window, dn.scatter_dims_to_operand_dims, index.dtype)
        indices = b.op("stablehlo.clamp", [b.full(index, 0), indices,
                                           _per_component(b, last, index)], None, index)
    xs, indices, updates, index, behind = _updates.prepared(
        b, xs, indices, updates, index, update, dn)
    fields = _fields(
        update_window_dims=dn.update_window_dims, inserted_window_dims=dn.inserted_window_dims,
        input_batching_dims=dn.operand_batching_dims,
        scatter_indices_batching_dims=dn.scatter_indices_batching_dims,
        scatter_dims_to_operand_dims=dn.scatter_dims_to_operand_dims)
    op = b.ops("stablehlo.scatter", [*xs, indices, *updates], {
        "scatter_dimension_numbers": b.attr(
            f"#stablehlo.scatter<{fields}, index_vector_dim = {index.ndim - 1}>"),
        "indices_are_sorted": b.attr("true" if indices_are_sorted else "false"),
        "unique_indices": b.attr("true" if unique_indices else "false")},
        [x.type for x in xs], regions=1)
    b.region(op, 0, [b.type(make_aval((), operand.dtype))] * (2 * len(xs)), combine)
    return list(op.results if not behind else b.ops(
        "stablehlo.optimization_barrier", op.results, None, [x.type for x in xs]).results)


class ScatterAdd(Scatter):
    """Windows added to the operand: linear in operand and updates."""

    additive = True
    sign = 1
    combiner = "stablehlo.add"
    makes_nan = True

    def emit(self, b: Builder, x: IrValue, indices: IrValue, updates: IrValue, *,
             dimension_numbers: ScatterDimensionNumbers, unique_indices: bool, **params: Any
             ) -> IrValue:
        narrow, index, update = b.avals_in
        wide = narrow.update(dtype=dtypes.wide_dtype(narrow.dtype))
        if wide is narrow or unique_indices or _adds_few(*b.avals_in):
            return super().emit(b, x, indices, updates, dimension_numbers=dimension_numbers,
                                unique_indices=unique_indices, **params)
        # Each sum would be rounded, as in `reduce_sum`. TPUs' scatter reads more where it adds to
        # numbers, and XLA would move the sum with them into the scatter. Zeros are a broadcast.
        apart = b.platform == "tpu" and (
            getattr(x.owner, "name", "") != "stablehlo.broadcast_in_dim"
            and not (narrow.tagged and b.module.places.is_unreduced(narrow)))
        avals = wide, index, update.update(dtype=wide.dtype)
        name, scalar = self.combiner, make_aval((), wide.dtype)
        (sums,) = emit_scatter(
            b, [b.full(wide, -0.0) if apart else b.convert(x, wide)], indices,
            [b.convert(updates, avals[2])], avals,
            lambda p, q: [b.op(name, [p, q], None, scalar)], dimension_numbers,
            params["indices_are_sorted"], unique_indices, params["mode"])
        if apart:
            sums = b.op("stablehlo.optimization_barrier", [sums], None, wide)
            sums = b.op("stablehlo.add", [b.convert(x, wide), sums], None, wide)
        return b.convert(sums, narrow)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Array, Tangent]:
        (x, indices, updates), (tx, _, tu) = primals, tangents
        out = self.bind(x, indices, updates, **params)
        if type(tu) is Zero:
            return out, tx
        return out, self.bind(instantiate(tx), indices, tu, **params)

    def transpose(self, ct: Array, x: Array | Linear, indices: ArrayLike, updates: Linear,
                  **params: Hashable) -> list[Cotangent]:
        u_ct = None
        if type(updates) is Linear:
            u_ct = read_back(ct, indices, updates.aval, params)
            u_ct = u_ct if self.sign == 1 else neg(u_ct)
        return [ct if type(x) is Linear else None, None, u_ct]


def _adds_few(x: ShapedArray, indices: ShapedArray, updates: ShapedArray) -> bool:
    """Whether so few numbers are added to so many that converting these would be a waste."""
    count = prod(indices.shape[:-1])
    return (is_static((*x.shape, count)) and count <= FEW and x.size > FEW * updates.size)


class ScatterSub(ScatterAdd):
    """Windows subtracted from the operand."""

    sign = -1
    combiner = "stablehlo.subtract"


class ScatterExtremum(Scatter):
    """The smaller or larger of operand and windows; ties share the tangent equally."""

    transpose: Any = None

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Hashable
            ) -> tuple[Array, Tangent]:
        (x, indices, updates), (tx, _, tu) = primals, tangents
        out = self.bind(x, indices, updates, **params)
        adding, dtype = add_params(x, params), typeof(x).dtype
        one, zero = literal(1, dtype), literal(0, dtype)
        at_base = eq(x, out)
        at_update = eq(updates, read_back(out, indices, typeof(updates), params))
        # How many of operand and updates attain the extremum; NaN equals nothing: at least 1.
        ones = where(at_update, broadcast_in_dim(one, typeof(updates).shape, ()), zero)
        base = where(at_base, broadcast_in_dim(one, typeof(x).shape, ()), zero)
        count = scatter_add_p.bind(base, indices, ones, **adding)
        total = scatter_add_p.bind(where(at_base, instantiate(tx), zero), indices,
                                   where(at_update, instantiate(tu), zero), **adding)
        return out, div(total, arithmetic.max(count, one))


scatter_p = Scatter("scatter")
scatter_add_p = ScatterAdd("scatter-add", add)
scatter_sub_p = ScatterSub("scatter-sub", sub)
scatter_min_p = ScatterExtremum("scatter-min", lambda x, y: arithmetic.min(x, y))
scatter_max_p = ScatterExtremum("scatter-max", lambda x, y: arithmetic.max(x, y))


def where(mask: Array, x: ArrayLike, y: ArrayLike) -> Array:
    """x where the mask is set, else y; either may be a literal."""
    shape = typeof(mask).shape
    x, y = [broadcast_in_dim(v, shape, ()) if typeof(v).ndim == 0 else v for v in (x, y)]
    return select_n(mask, y, x)


def _window_sizes(ndim: int, updates: ShapedArray, dn: ScatterDimensionNumbers) -> Dims | None:
    """The window's size along each operand axis; None if the axes do not match."""
    dropped = {*dn.inserted_window_dims, *dn.operand_batching_dims}
    if (len(dn.update_window_dims) + len(dropped) != ndim or not dropped <= set(range(ndim))
            or any(not 0 <= d < updates.ndim for d in dn.update_window_dims)):
        return None
    sizes = iter([updates.shape[d] for d in dn.update_window_dims])
    return tuple([1 if d in dropped else next(sizes) for d in range(ndim)])


@memoize(256)
def _update_body(prim: Scatter, dtype: DType) -> Olympuspr | None:
    """The scalar program (old, new) -> element; None keeps the new."""
    if prim.combine is None:
        return None
    scalar = make_aval((), dtype)
    with use_abstract_mesh(NO_MESH):    # it is kept for others
        return stage(lambda x, y: [prim.combine(x, y)], [scalar, scalar]).olympuspr


def bind_scatter(prim: Scatter, x: ArrayLike, indices: ArrayLike, updates: ArrayLike,
                 numbers: ScatterDimensionNumbers, indices_are_sorted: bool, unique_indices: bool,
                 mode: GatherScatterMode | str | None) -> Array:
    """Bind the public function's arguments."""
    return prim.bind(
        x, indices, updates, dimension_numbers=numbers, indices_are_sorted=bool(indices_are_sorted),
        unique_indices=bool(unique_indices), mode=GatherScatterMode.from_any(mode),
        update_olympuspr=_update_body(prim, typeof(x).dtype), update_consts=())


def add_params(x: ArrayLike, params: Params) -> Params:
    """A scatter's params, for scatter_add on operands of x's dtype."""
    return {**params, "update_olympuspr": _update_body(scatter_add_p, typeof(x).dtype)}


def _winners(x: ArrayLike, indices: ArrayLike, updates: ArrayLike, params: Params
             ) -> tuple[Array, Array]:
    """Masks: which elements of the updates stay in the result, and which of `x` they replace."""
    shape = typeof(updates).shape
    numbers = add(reshape(iota(_U32, prod(shape)), shape), literal(1, _U32))
    params = {**params, "update_olympuspr": None}
    written = scatter_p.bind(zeros_of(make_aval(typeof(x).shape, _U32)), indices, numbers, **params)
    wins = eq(numbers, read_back(written, indices, typeof(updates), params))
    return wins, ne(written, literal(0, _U32))


def read_back(x: ArrayLike, indices: ArrayLike, updates: ShapedArray, params: Params) -> Array:
    """Gather from `x` the windows that a scatter with these params writes; 0 where it drops one."""
    dn, mode = params["dimension_numbers"], params["mode"]
    numbers = GatherDimensionNumbers(
        dn.update_window_dims, dn.inserted_window_dims, dn.scatter_dims_to_operand_dims,
        dn.operand_batching_dims, dn.scatter_indices_batching_dims)
    shape = typeof(x).shape
    window: Any = _window_sizes(len(shape), updates, dn)
    # A batching axis may be empty, and has windows of size 0 then.
    window = tuple([0 if d in dn.operand_batching_dims and definitely_equal(n, 0) else size
                    for d, (size, n) in enumerate(zip(window, shape, strict=True))])
    return gather_p.bind(
        x, indices, dimension_numbers=numbers, unique_indices=params["unique_indices"],
        slice_sizes=window, mode=mode,
        indices_are_sorted=params["indices_are_sorted"], fill_value=0 if mode is FILL else None)


def scatter(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
            dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
            unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with windows replaced; one of several writes to an element stays.

    Args:
      operand: the array to write into; it is not changed.
      updates: what to write, of the operand's dtype.
      dimension_numbers: how the axes of operand, indices and updates belong together.
      indices_are_sorted: a promise that the places ascend.
      unique_indices: a promise that no element is written twice.
      mode: "drop" (also None) leaves out windows that are not inside of the operand, "clip" moves
        them inside, "promise_in_bounds" promises that there are none.

    Raises TypeError where ranks, sizes or dtypes do not fit together.

    >>> rows = lax.ScatterDimensionNumbers((1,), (0,), (0,))
    >>> print(lax.scatter(onp.zeros((3, 2)), onp.array([[2], [0]]), onp.ones((2, 2)), rows))
    [[1. 1.]
     [0. 0.]
     [1. 1.]]
    """
    return bind_scatter(scatter_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def scatter_add(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with windows added to it at computed places; places may repeat.

    Args:
      operand: numbers; the array is not changed.
      updates: what to add, of the operand's dtype.
    Returns: An array of the operand's shape and dtype. Linear in operand and updates.

    >>> points = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> print(lax.scatter_add(onp.zeros(3), onp.array([[0], [2], [2]]), onp.ones(3), points))
    [1. 0. 2.]
    """
    return bind_scatter(scatter_add_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


@described_like(scatter_add)
def scatter_sub(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with windows subtracted from it at computed places; places may repeat.

    Args: updates: what to subtract, of the operand's dtype.

    >>> points = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> print(lax.scatter_sub(onp.zeros(3), onp.array([[0], [2], [2]]), onp.ones(3), points))
    [-1.  0. -2.]
    """
    return bind_scatter(scatter_sub_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def scatter_min(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with elements replaced by smaller ones of windows; NaN where one is.

    Args:
      operand: array; it is not changed.
      updates: what to compare with, of the operand's dtype.

    >>> points = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> print(lax.scatter_min(onp.array([1, 5]), onp.array([[0], [1]]), onp.array([3, 3]), points))
    [1 3]
    """
    return bind_scatter(scatter_min_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


@described_like(scatter_min)
def scatter_max(operand: ArrayLike, scatter_indices: ArrayLike, updates: ArrayLike,
                dimension_numbers: ScatterDimensionNumbers, *, indices_are_sorted: bool = False,
                unique_indices: bool = False, mode: str | GatherScatterMode | None = None) -> Array:
    """The operand with elements replaced by larger ones of windows; NaN where one is.

    >>> points = lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> print(lax.scatter_max(onp.array([1, 5]), onp.array([[0], [1]]), onp.array([3, 3]), points))
    [3 5]
    """
    return bind_scatter(scatter_max_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


complete_docstrings(globals(), {
    "scatter_indices": "integers, shape [batch..., k]: each vector along the last axis is a place.",
    "dimension_numbers, indices_are_sorted, unique_indices, mode": "as for `scatter`.",
}, returns="An array of the operand's shape and dtype.")
