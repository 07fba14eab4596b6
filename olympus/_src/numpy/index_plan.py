"""The meaning of `x[index]`: a plan of Python ints, memoised per shape and pattern.

A pattern is the index without its values: integers and starts of slices are operands of the plan,
so `x[3]` and `x[4]`, `x[3:7]` and `x[4:8]` share it, and with it one compiled program each. A plan
says how one gather or scatter does the work; `basic` plans (no arrays) need only a slice.

    x[2:5, None, i, :, j]      i, j: int32[3]     x: [5, 6, 7, 8]
     |     |     |  |  |
     |     |     +--|--+-- components of the index vectors, one batch axis of size 3, placed first
     |     |        +----- window axis (whole)     because i and j are not neighbours
     |     +-------------- axis of size 1 in the result
     +-------------------- window axis of size 3, its start a component
"""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ..base import errors, lib, source
from ..base.config import compatible
from ..base.source import api_boundary
from ..base.spelling import array_method
from ..base.typing import Array, ArrayLike
from ..base.util import ByKey, Memo, clipped
from ..core.templates import by_identity
from ..core.trace import Tracer, describe, typeof
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import (
    SymbolicDim, broadcast_shapes, exceeds, known_less, maximum, minimum, prod, slice_of,
)
from ..types.tree_registry import register_pytree_node
from .creation import from_sequence

Shape = tuple[int, ...]


# Windows -----------------------------------------------------------------------------------------

Static = tuple[tuple[bool, ArrayLike | None], ...]      # for each part whether it is static


class Slice(ByKey):
    """`size` elements from `start` on, `stride` apart: an index, made by `ds`.

    The start may be a traced integer. The size may be, too, where an index map returns it for a
    `BoundedSlice`.

    >>> from olympus.experimental import pallas as pl
    >>> pl.Slice(2, 4)
    Slice(2, 4)
    """

    __slots__ = ("start", "size", "stride")

    def __init__(self, start: ArrayLike, size: ArrayLike, stride: int = 1) -> None:
        start, size = [operator.index(x) if isinstance(x, np.integer) else x for x in (start, size)]
        if not isinstance(stride, int) or stride < 1:
            raise ValueError(f"ds: stride {clipped(stride)} given: `stride` must be >= 1; an int "
                             "is required.")
        if isinstance(size, int) and size < 0:
            raise ValueError(f"ds: size {size} given: `size` must be >= 0.")
        self.start: Any = start
        self.size: Any = size
        self.stride: Any = stride

    def _key(self) -> tuple[object, ...]:
        return self.start, self.size, self.stride

    def __repr__(self) -> str:
        more = f", {self.stride}" if self.stride != 1 else ""
        return f"Slice({self.start}, {self.size}{more})"

    @property
    def is_dynamic_start(self) -> bool:
        """Whether the start is no int."""
        return not isinstance(self.start, int)

    @property
    def is_dynamic_size(self) -> bool:
        """Whether the size is no int."""
        return not isinstance(self.size, int)

    @classmethod
    def from_slice(cls, slc: slice, size: int) -> Slice:
        """The elements of a Python slice of an axis of `size`; ValueError for a negative step."""
        start, stop, step = slc.indices(size)
        if step < 1:
            raise ValueError(f"Slice.from_slice: {slc} given; a positive step is required.")
        return cls(start, max(-(-(stop - start) // step), 0), step)


def _split_slice(x: Slice) -> tuple[tuple[ArrayLike, ...], Static]:
    """The traced parts of a slice, and the static ones."""
    static = [(isinstance(v, int), v if isinstance(v, int) else None) for v in (x.start, x.size)]
    leaves = [v for v in (x.start, x.size) if not isinstance(v, int)]
    return tuple(leaves), (*static, (True, x.stride))


def _of_parts(aux: Static, leaves: Iterable[ArrayLike]) -> Slice:
    rest: Any = iter(leaves)
    out = object.__new__(Slice)
    out.start, out.size, out.stride = [v if known else next(rest) for known, v in aux]
    return out


register_pytree_node(Slice, _split_slice, _of_parts)


@api_boundary
def dslice(start: ArrayLike | None, size: ArrayLike | None = None, stride: int | None = None
           ) -> slice | Slice:
    """An index of an array or reference: `size` elements from `start` on.

    Args:
      start: the first element, an int or a traced integer; without a size, the number of elements
        from 0 on, and None is all of them. A negative one counts from the end of an array.
      size: how many elements, an int.
      stride: the distance between two elements, an int.
    Returns: A `Slice`; a Python slice if all elements are meant.

    A traced window that would reach outside is moved inside, as by `dynamic_slice`, and
    `x.at[ds(i, n)].set(y)` writes nothing then. Raises IndexError for a known window of an array
    that reaches outside, ValueError for a negative size and for a stride that is not positive.

    >>> x = onp.arange(6)
    >>> print(x[olympus.ds(2, 3)], olympus.jit(lambda x, i: x[olympus.ds(i, 2)])(x, 3))
    [2 3 4] [3 4]
    >>> print(olympus.new_ref(x)[olympus.ds(0, 2, 3)])
    [0 3]
    """
    if start is None:
        return slice(None, None, stride)
    if size is None:
        if not isinstance(start, int):
            raise TypeError(f"ds: {clipped(start)} given as the number of elements; an int is "
                            "required; give a start and a size.")
        start, size = 0, start
    return Slice(start, size, 1 if stride is None else stride)


# Plans -------------------------------------------------------------------------------------------

class Component(NamedTuple):
    """Where one entry of the index vectors comes from: an operand, laid out along batch axes.

    Attributes:
      operand: its place among the plan's operands, or None for a start that is 0.
      size: of the operand axis that it indexes.
      dims: the batch axes that its own axes are.
      steps: for a slice with a step, its size and the step, along `dims`.
      array: whether it is an array of the user's, or the start of a `ds`: its negative entries
        count from the end.
    """

    operand: int | None
    size: int
    dims: Shape
    steps: tuple[int, int] | None
    array: bool


@by_identity
class Plan:
    """How to read or write at an index pattern. Compared by identity, as there is one of each.

    Attributes:
      out_shape: the shape of `x[index]`.
      basic: whether there are only integers, integer scalars and slices.
      spans, sizes: (basic) per axis the operand of its start or None, and the window's size.
      strides, flips: (basic) per axis the step, and the axes that run backwards.
      unit: (basic) whether every step is 1.
      scalars: (basic) the operands that are scalar arrays, not ints; starts of `ds` too.
      batch, components, offset_dims, collapsed, index_map, slice_sizes, packed: of the gather;
        `packed` is `out_shape` without the axes that None made.
      inserted: where only None changes the shape, the result's axes that are the operand's.
      picks: whether the index arrays name any element: if not, none of them is outside.
      empty: an axis without elements that is asked for some, or None.
      wide: whether an indexed axis has more elements than int32 can count.
    """

    __slots__ = ("out_shape", "basic", "spans", "sizes", "strides", "flips", "unit", "scalars",
                 "batch", "components", "offset_dims", "collapsed", "index_map", "slice_sizes",
                 "packed", "whole", "squeezed", "inserted", "picks", "empty",
                 "wide")

    def __init__(self, shape: Shape, tokens: tuple) -> None:
        axes, items = [], []
        operand = 0
        adv = [i for i, t in enumerate(tokens) if t[0] in "IAB"]
        true_adv = any(t[0] == "B" or (t[0] == "A" and t[1]) for t in tokens)
        split = true_adv and adv[-1] - adv[0] >= len(adv)
        placed = not true_adv
        if split:
            items.append("adv")
            placed = True
        for token in tokens:
            kind = token[0]
            if kind == "E":     # an ellipsis without axes separates index arrays all the same
                continue
            if kind in "IAB":
                if not placed:
                    items.append("adv")
                    placed = True
            else:
                items.append("new" if kind == "N" else len(axes))
            if kind in "FSWIA":
                axes.append((token, None if kind == "F" else operand))
            if kind in "SWIA":
                operand += 1
        # The window of a symbolic slice with a step does not tell the number of elements.
        self.basic = not true_adv and all(
            t[0] != "S" or type(t[1]) is type(t[2]) is int or t[2] in (1, -1) for t in tokens)
        self._basic(shape, axes)
        self._general(shape, axes, items, tokens)

    def _basic(self, shape: Shape, axes: list) -> None:
        spans, strides, flips, scalars = [], [], [], []
        for axis, (token, operand) in enumerate(axes):
            kind, size, step = token[0], shape[axis], 1
            if kind in "SW":
                step = abs(token[2]) if type(token[2]) is int else token[2]
                size = (token[1] - 1) * step + 1 if token[1] else 0
                if known_less(token[2], 0):
                    flips.append(axis)
            elif kind != "F":
                size = 1
            if kind in "WA":
                scalars.append(operand)
            spans.append((operand, size))
            strides.append(step)
        self.spans, self.strides, self.flips = tuple(spans), tuple(strides), tuple(flips)
        self.sizes = tuple([size for _, size in spans])
        self.unit = all(s == 1 for s in strides) and not flips
        self.scalars = tuple(scalars)
        self.squeezed = tuple([a for a, (t, _) in enumerate(axes) if t[0] in "IA"])

    def _general(self, shape: Shape, axes: list, items: list, tokens: tuple) -> None:
        adv_shape = _common_shape([t[1] for t in tokens if t[0] in "AB"])
        batch, packed, out, offset, first_dim = [], [], [], [], {}
        for item in items:
            if item == "new":
                out.append(1)
                continue
            if item == "adv":
                first_dim["adv"] = len(batch)
                sizes = adv_shape
                batch += adv_shape
            else:
                token = axes[item][0]
                size = shape[item] if token[0] == "F" else token[1]
                sizes = (size,)
                if token[0] in "SW" and token[2] != 1:
                    first_dim[item] = len(batch)
                    batch.append(size)
                else:
                    offset.append(len(packed))
            packed += sizes
            out += sizes
        components, collapsed, index_map, slice_sizes = [], [], [], []
        for axis, (token, operand) in enumerate(axes):
            kind = token[0]
            if kind == "F":
                slice_sizes.append(shape[axis])
                continue
            dims, steps, size = (), None, 1
            if kind == "A":
                last = first_dim.get("adv", 0) + len(adv_shape)
                dims = tuple(range(last - len(token[1]), last))
            elif kind in "SW" and axis in first_dim:
                dims = (first_dim[axis],)
                steps = (token[1], token[2])
            elif kind in "SW":
                size = token[1]
            if kind not in "SW" or axis in first_dim:
                collapsed.append(axis)
            slice_sizes.append(size)
            components.append(Component(operand, shape[axis], dims, steps, kind in "WA"))
            index_map.append(axis)
        self.out_shape, self.packed, self.batch = tuple(out), tuple(packed), tuple(batch)
        self.offset_dims, self.collapsed = tuple(offset), tuple(collapsed)
        self.index_map, self.slice_sizes = tuple(index_map), tuple(slice_sizes)
        self.components = tuple(components)
        self.whole = not components
        self.inserted = (tuple([d for d, item in enumerate(items) if item != "new"])
                         if "new" in items and "adv" not in items and not self.squeezed else None)
        self.wide = any(exceeds(c.size, 2**31 - 1) for c in components)
        self.picks = bool(prod(adv_shape))
        self.empty = next((a for a in self.collapsed if self.picks and not shape[a]
                           and axes[a][0][0] in "IA"), None)


def _common_shape(shapes: list[Shape]) -> Shape:
    """The shape that index arrays broadcast to."""
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise errors.IndexValueError(
            f"indexing: index arrays of shapes {', '.join(map(str, shapes))} given; shape "
            "mismatch: indexing arrays could not be broadcast together; Incompatible shapes for "
            "broadcasting; reshape one, or insert an axis with i[:, None].") from None


def refuse_empty(plan: Plan, shape: Shape) -> NoReturn:
    """Raise the IndexError for elements of an axis that has none."""
    raise IndexError(f"indexing: an element of axis {plan.empty} of an array of shape {shape} is "
                     f"asked for; index is out of bounds for axis {plan.empty} with size 0; an "
                     "empty axis has no elements.")


_plans: Memo = Memo(16384)
_SEQUENCES = frozenset((list, tuple, range))
_ARRAYS = frozenset((lib.ArrayImpl, np.ndarray))


def parse(shape: Shape, index: object, wrap: bool = True, strict: bool = True
          ) -> tuple[Plan, list[Any], bool]:
    """The plan and operands of an index of an array of the given shape, and whether some integer
    is out of bounds (and was clamped: if `strict`, that only happens under `olympus_compatible`).

    Raises TypeError (and IndexError) for floats and strings; IndexError for too many or misfitting
    indices, for slices with traced bounds and, if `strict`, for integers and index arrays that are
    out of bounds where that is known; NonConcreteBooleanIndexError for traced masks.
    """
    entries = entries_of(index)
    tokens: list[tuple] = []
    operands: list[Any] = []
    axis, outside, ellipses = 0, None, 0
    for entry in entries:
        kind = type(entry)
        if kind is int:
            if axis < len(shape) and (entry < 0 or not known_less(entry, shape[axis])):
                start, entry = entry, _index_within(entry, shape[axis], wrap)
                if entry is None:
                    entry = maximum(0, minimum(start, shape[axis] - 1))
                    outside = outside or (start, axis, True)
            tokens.append(("I",))
            operands.append(entry)
            axis += 1
        elif kind is slice:
            if axis < len(shape):
                _add_slice(entry, shape[axis], tokens, operands)
            axis += 1
        elif entry is None:
            tokens.append(("N",))
        elif entry is Ellipsis:
            ellipses += 1
            rest = max(0, len(shape) - sum(map(consumed, entries)))
            tokens += [("F",)] * rest or [("E",)]
            axis += rest
        else:
            axis, bad = _add_other(entry, shape, axis, wrap, strict, tokens, operands)
            outside = outside or bad
    if axis > len(shape) or ellipses > 1:
        _refuse_count(shape, entries, ellipses)
    tokens += [("F",)] * (len(shape) - axis)
    key = (shape, tuple(tokens))
    plan = _plans.get(key)
    if plan is None:
        plan = _plans[key] = Plan(*key)
    if outside is not None and strict and (plan.picks or outside[2]):
        error = _outside(shape, wrap, *outside[:2])
        if not compatible.value:
            raise error
        source.warn(f"{error} The nearest element is read, and a write is dropped, as JAX does.")
    if plan.wide:
        operands = [halves(o) if type(o) is int or isinstance(o, np.ndarray) else o
                    for o in operands]
    return plan, operands, outside is not None and outside[2]


def entries_of(index: object) -> tuple[Any, ...]:
    """The entries of an index, with lists and tuples inside as arrays."""
    entries = index if isinstance(index, tuple) else (index,)
    if _SEQUENCES.isdisjoint(map(type, entries)):
        return entries
    return tuple([_from_sequence(e) if type(e) in _SEQUENCES else e for e in entries])


def halves(index: int | np.ndarray) -> tuple[ArrayLike, ArrayLike]:
    """An int or NumPy's integers as the int32 pair (high, low), `high * 2**31 + low`.

    Constants and operands of 64 bits are narrowed unless x64 is on.
    """
    if type(index) is int:
        return divmod(index, 2**31)
    high, low = np.divmod(index, np.int64(2**31))
    return high.astype(np.int32), low.astype(np.int32)


def _index_within(i: int, n: int, wrap: bool) -> int | None:
    """A static integer index counted from the front, or None if it is outside.

    Along an axis of a symbolic size, one that may be outside is clamped.
    """
    if i < 0 and wrap:
        i += n
    if known_less(i, 0) or known_less(n - 1, i):
        return None
    return maximum(0, minimum(i, n - 1))


def _outside(shape: Shape, wrap: bool, value: int, axis: int) -> IndexError:
    n = shape[axis]
    index, need = (f"index {value}", f"integers from {-n if wrap else 0} to {n - 1} are required"
                   ) if n else ("index", "an empty axis has no elements")
    return IndexError(
        f"indexing: index {value} of an array of shape {shape} given;\n  {index} is out of bounds "
        f"for axis {axis} with size {n}; {need};\n  say what holds outside with x.at[index] and "
        "mode='clip', 'fill' or 'drop'.")


def _extent(index: object) -> tuple[int, int] | None:
    """The smallest and largest of an index array, where reading them costs next to nothing.

    None for one that is traced, has no elements, or lives on an accelerator: its values would have
    to be waited for. What was found of an array stays on it: arrays do not change.
    """
    if type(index) is lib.ArrayImpl:
        try:
            return index._extent
        except AttributeError:
            pass
        try:        # `is_fully_addressable` takes longer than all of this
            extent = _extent_of(np.asarray(index)) if index.platform() == "cpu" else None
        except RuntimeError:    # other processes have a part of it, or it was deleted
            return None
        index._extent = extent
        return extent
    if isinstance(index, Tracer):
        value = index._known_value()
        return None if value is None else _extent(value)
    return _extent_of(index) if isinstance(index, np.ndarray) else None


def _extent_of(value: np.ndarray) -> tuple[int, int] | None:
    if value.size > 64:
        return int(value.min()), int(value.max())
    numbers = value.ravel().tolist()        # NumPy's reductions take ten times as long
    return (int(min(numbers)), int(max(numbers))) if numbers else None


def _add_slice(entry: slice, n: int, tokens: list, operands: list) -> None:
    if entry.start is None and entry.stop is None and entry.step is None:
        tokens.append(("F",))
        return
    for part in (entry.start, entry.stop, entry.step):
        if isinstance(part, Tracer) and part._known_value() is None:
            raise IndexError(
                f"indexing: a slice bound is {describe(part)}; slice entries must be static "
                "integers, because they decide the result's shape; use "
                "olympus.lax.dynamic_slice (static size), or olympus.numpy.where.")
    try:
        if (type(n) is not int or isinstance(entry.start, SymbolicDim)
                or isinstance(entry.stop, SymbolicDim) or isinstance(entry.step, SymbolicDim)):
            start, step, size = slice_of(entry, n)
        else:       # hot
            start, stop, step = entry.indices(n)
            size = len(range(start, stop, step))
    except TypeError:
        raise TypeError(f"indexing: {entry} given; integers or None are required; convert the "
                        "bounds with int(...).") from None
    if size == n and step == 1:
        tokens.append(("F",))
        return
    tokens.append(("S", size, 1 if size == 1 or not size else step))
    if type(step) is int and (type(size) is int or step == -1):     # from the front on
        start = start if step > 0 else start + (size - 1) * step
    operands.append(start if size else 0)


def _add_window(entry: Slice, shape: Shape, axis: int, wrap: bool, tokens: list, operands: list
                ) -> tuple[int, int, bool] | None:
    """A `ds`: a slice where its start is an int, a window at a traced start otherwise.

    Returns as `_add_other` does the element known to be outside, or None.
    """
    n, size, step = shape[axis], entry.size, entry.stride
    if entry.is_dynamic_size:
        described = getattr(size, "aval", size)
        raise IndexError(f"indexing: {described} given as the size of a ds; an int is required, "
                         "because it decides the result's shape.")
    span = (size - 1) * step + 1 if size else 0
    if exceeds(span, n):
        raise IndexError(f"indexing: {entry} given for axis {axis} of an array of shape {shape}; "
                         f"at most {n} elements can be asked for; take fewer.")
    start, outside = entry.start, None
    if not entry.is_dynamic_start:
        start += n if start < 0 and wrap else 0
        if known_less(start, 0) or known_less(n - span, start):
            outside = entry.start if start < 0 else start + span - 1, axis, True
            start = maximum(0, minimum(start, n - span))
        _add_slice(slice(start, start + span, step), n, tokens, operands)
        return outside
    aval = _index_aval(start)
    if aval.shape or dtypes.scalar_kind(aval.dtype) not in "iu":
        raise errors.IndexTypeError(f"indexing: {aval} given as the start of a ds; an integer "
                                    "scalar is required.")
    tokens.append(("W", size, 1 if size == 1 or not size else step))
    operands.append(start)
    return None


def consumed(entry: Any) -> int:
    """How many axes an entry of an index takes."""
    if entry is None or entry is Ellipsis or isinstance(entry, (bool, np.bool_)):
        return 0
    dtype = getattr(entry, "dtype", None)
    return entry.ndim if dtype is not None and dtype == np.bool_ else 1


def _add_other(entry: Any, shape: Shape, axis: int, wrap: bool, strict: bool, tokens: list,
               operands: list) -> tuple[int, tuple[int, int, bool] | None]:
    """Arrays, masks, NumPy scalars, `ds`; refuses the rest.

    Returns the next axis, the indices known to be outside with their axis, and whether also if the
    index arrays together name no element; or None.
    """
    if type(entry) is Slice:
        return axis + 1, (_add_window(entry, shape, axis, wrap, tokens, operands)
                          if axis < len(shape) else None)
    if type(entry) not in _ARRAYS and (method := array_method(entry)) is not None:
        entry = method()
    if isinstance(entry, (bool, np.bool_)):
        tokens.append(("B", (int(entry),)))
        return axis, None
    aval = _index_aval(entry)
    kind = dtypes.scalar_kind(aval.dtype)
    if kind == "b":
        return _add_mask(entry, shape, axis, tokens, operands), None
    if kind not in "iu":
        raise errors.IndexTypeError(f"indexing: an index {aval} given; Indexer must have integer "
                                    "or boolean type; convert it with astype(int).")
    outside = None
    if isinstance(entry, (int, np.integer)) or not hasattr(entry, "shape"):
        value = int(entry)
        if axis < len(shape):
            inside = _index_within(value, shape[axis], wrap)
            if inside is None:
                outside = value, axis, True
                inside = maximum(0, minimum(value, shape[axis] - 1))
            value = inside
        tokens.append(("I",))
        operands.append(value)
        return axis + 1, outside
    if axis < len(shape) and type(shape[axis]) is int:
        on_host = isinstance(entry, np.ndarray)
        extent = _extent(entry) if strict or on_host else None
        if extent is not None:
            least, most = -shape[axis] if wrap else 0, shape[axis] - 1
            if extent[0] < least or extent[1] > most:
                outside = (extent[0] if extent[0] < least else extent[1]), axis, False
                if on_host and entry.dtype != aval.dtype:       # narrowing must not wrap around
                    entry = np.clip(entry, least - 1 if kind == "i" else 0, most + 1)
    if isinstance(entry, np.ndarray) and (
            axis >= len(shape) or not exceeds(shape[axis], 2**31 - 2)):
        entry = entry.astype(aval.dtype, copy=False)
    tokens.append(("A", aval.shape))
    operands.append(entry)
    return axis + 1, outside


def _from_sequence(entry: object) -> Array | np.ndarray:
    """A list or tuple inside an index is an index array; an empty one has integers."""
    try:
        array = from_sequence("indexing", entry)
    except OverflowError:       # ints beyond the default dtype
        array = np.clip(np.asarray(entry, object), -2**63, 2**63 - 1).astype(np.int64)
    except TypeError as error:
        raise errors.IndexTypeError(str(error)) from None
    except ValueError as error:
        raise errors.IndexValueError(str(error)) from None
    return array if array.size else np.zeros(array.shape, np.int32)


def _index_aval(entry: Any) -> ShapedArray:
    if isinstance(entry, str):
        raise errors.IndexTypeError(
            f"indexing: the string {entry!r} given; integers, slices, arrays, None or ... are "
            "required; index a dict or tuple of arrays by name instead.")
    try:
        if isinstance(aval := typeof(entry), ShapedArray):
            return aval
    except TypeError:
        pass
    try:
        return typeof(operator.index(entry))
    except TypeError:
        raise errors.IndexTypeError(
            f"indexing: an index of type {type(entry).__name__} given; integers, slices, arrays, "
            "None or ... are required.") from None


def _add_mask(entry: ArrayLike, shape: Shape, axis: int, tokens: list, operands: list) -> int:
    """A boolean array: the integer arrays of the places where it is true."""
    if isinstance(entry, Tracer):
        value = entry._known_value()
        if value is None:
            raise errors.NonConcreteBooleanIndexError(
                f"indexing: a mask that is {describe(entry)} given; array boolean indices must be "
                "concrete, because the number of true elements decides the result's shape; use "
                "x.at[mask].get(fill_value=fill), which has the mask's shape, as olympus.numpy."
                "where(mask, x, fill) has, the argument where=mask of a reduction, or "
                "x[nonzero(mask, size=...)]; x.at[mask].set(y) takes such a mask if y is a scalar "
                "or broadcasts along the masked axes.")
        entry = value
    mask = np.asarray(entry)
    if not mask.ndim:
        tokens.append(("B", (int(mask),)))
        return axis
    stop = check_mask(mask.shape, shape, axis)
    for indices in np.nonzero(mask):
        tokens.append(("A", indices.shape))
        operands.append(indices.astype(np.int32 if mask.size < 2**31 else np.int64))
    return stop


def check_mask(mask: Shape, shape: Shape, axis: int) -> int:
    """The axis behind those that a mask indexes; IndexError where its sizes are not theirs."""
    stop = axis + len(mask)
    if stop <= len(shape) and any(m not in (0, n)
                                  for m, n in zip(mask, shape[axis:stop], strict=True)):
        raise IndexError(
            f"indexing: a mask bool{list(mask)} given for axes of sizes {list(shape[axis:stop])} "
            f"at index {axis}; boolean index did not match shape of indexed array; equal sizes "
            "are required;\n  make the mask of the array itself, as in x[x > 0].")
    return stop


def _refuse_count(shape: Shape, entries: tuple, ellipses: int) -> None:
    if ellipses > 1:
        raise IndexError("indexing: several ellipses (...) given; an index can only have a single "
                         "ellipsis; write the slices out.")
    count = sum(map(consumed, entries))
    raise IndexError(f"indexing: Too many indices: array is {len(shape)}-dimensional, but {count} "
                     f"were indexed; at most {len(shape)} are required;\n  drop some of them.")
