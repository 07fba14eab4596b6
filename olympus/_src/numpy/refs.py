"""References as users have them: made, indexed, and read and written at an index.

An index becomes a view (`lax/refs.py`): static entries are part of it, integers and arrays that are
traced are its operands. On a reference that is at hand no view is made: its content is indexed.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NoReturn

import numpy as np

from ..base import lib, source
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, DTypeLike, Reference
from ..base.util import Memo, clipped
from ..core.cells import Ref, at_hand, check_value, is_ref
from ..core.staging import stage
from ..core.trace import FOREIGN_AVALS, ThreadState, Tracer, ctx, describe, typeof
from ..lax.convert import bitcast_convert_type
from ..lax.refs import (
    WHOLE, View, Viewed, Window, addupdate_p, empty_ref_p, free_ref_p, freeze_p, get_p, new_ref_p,
    swap_p,
)
from ..lax.shape import as_array
from ..lax.sharding import move
from ..runtime.eager import FAILURES, argument_array
from ..types import dtypes
from ..types.avals import HIGH, ShapedArray
from ..types.memory import Space
from ..types.refs import RefAval
from ..types.shape import SymbolicDim
from ..types.tree_paths import GetAttrKey
from ..types.tree_registry import register_pytree_with_keys
from . import promote
from .creation import asarray, is_sequence
from .index_plan import Slice, consumed, entries_of, parse
from .indexing import fit_values, getitem, loses, write
from .manipulation import reshape, transpose

# Views of indices --------------------------------------------------------------------------------

class _Operand:
    """Stands in an index for an entry that is an operand of the view."""

    __slots__ = ()


_OPERAND = _Operand()


class At(View):
    """The elements at a NumPy index of a content with `rank` axes.

    One object per pattern of static entries, as far as is kept.
    """

    __slots__ = ("index", "rank")

    def __init__(self, index: tuple[Reference, ...], rank: int) -> None:
        self.index, self.rank = index, rank

    def _key(self) -> tuple[object, ...]:
        return (id(self),)      # it equals itself only

    def filled(self, ops: Sequence[Reference]) -> tuple[Reference, ...]:
        """The index with its operands."""
        rest = iter(ops)
        return tuple([next(rest) if i is _OPERAND else i for i in self.index])

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        return stage(lambda x, *its: [self.read(x, *its)], [inner, *ops]).out_avals[0]

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        return getitem(x, self.filled(ops))

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return write("set", x, self.filled(ops), v)

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return write("add", x, self.filled(ops), v)

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        rest, texts = iter(ops), []
        others = [":"] * (self.rank - sum(map(consumed, self.index)))
        index = self.index if any(e is Ellipsis for e in self.index) else (*self.index, Ellipsis)
        for entry in index:
            if entry is Ellipsis:
                texts += others
            elif entry is _OPERAND:
                texts.append(next(rest))
            else:
                texts.append(_slice_text(entry) if type(entry) is slice else str(entry))
        return f"[{','.join(texts)}]"


def _slice_text(entry: slice) -> str:
    start, stop, step = [("" if x is None else str(x))
                         for x in (entry.start, entry.stop, entry.step)]
    return f"{start}:{stop}" + (f":{step}" if step not in ("", "1") else "")


class Reshaped(View):
    """All elements in another shape."""

    __slots__ = ("shape",)

    def __init__(self, shape: tuple[int, ...]) -> None:
        self.shape = shape

    def _key(self) -> tuple[Reference, ...]:
        return (self.shape,)

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        return inner.update(shape=self.shape)

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        return reshape(x, self.shape)

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return reshape(v, typeof(x).shape)

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return WHOLE.add(x, self.write(x, v))

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        return f".reshape({','.join(map(str, self.shape))})"


class Permuted(View):
    """The axes in another order."""

    __slots__ = ("axes",)

    def __init__(self, axes: tuple[int, ...]) -> None:
        self.axes = axes

    def _key(self) -> tuple[Reference, ...]:
        return (self.axes,)

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        return inner.update(shape=tuple([inner.shape[i] for i in self.axes]))

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        return transpose(x, self.axes)

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return transpose(v, tuple(np.argsort(self.axes).tolist()))

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return WHOLE.add(x, self.write(x, v))

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        return f".transpose({','.join(map(str, self.axes))})"


class Bits(View):
    """The bits of each element as another dtype of as many bits."""

    __slots__ = ("dtype",)

    def __init__(self, dtype: np.dtype) -> None:
        self.dtype = dtype

    def _key(self) -> tuple[Reference, ...]:
        return (self.dtype,)

    def aval(self, inner: ShapedArray, *ops: ShapedArray) -> ShapedArray:
        return inner.update(dtype=self.dtype)

    def read(self, x: Array, *ops: ArrayLike) -> Array:
        return bitcast_convert_type(x, self.dtype)

    def write(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return bitcast_convert_type(v, typeof(x).dtype)

    def add(self, x: Array, v: Array, *ops: ArrayLike) -> Array:
        return self.write(x, WHOLE.add(self.read(x), v))

    def shown(self, inner: ShapedArray, ops: Sequence[str]) -> str:
        return f".bitcast({dtypes.short_name(self.dtype)})"


_views: Memo = Memo(4096)
_STATIC = frozenset((int, slice, type(None), type(Ellipsis)))
_BOUNDS = frozenset((int, type(None)))
_INT32 = dtypes.as_dtype("int32")


def _view(shape: tuple[int, ...], index: object) -> tuple[View, list[Reference]]:
    """The view of an index of a content of that shape, and its operands.

    Raises what indexing an array so would.
    """
    if index is Ellipsis or (type(index) is tuple and not index):
        return WHOLE, []
    entries = entries_of(index)
    if _has_windows(entries):
        return _windowed(shape, entries)
    key: list[Any] = [shape]
    ops: list[Any] = []
    for entry in entries:
        kind = type(entry)
        if kind is slice:
            if not _BOUNDS.issuperset(map(type, (entry.start, entry.stop, entry.step))):
                break
            key += (slice, entry.start, entry.stop, entry.step)
        elif kind in _STATIC:
            key += (kind, entry)
        elif isinstance(entry, Tracer) and typeof(entry).dtype.kind in "iu":
            key.append(_OPERAND)
            ops.append(entry)
        else:
            break
    else:
        entries_key = tuple(key)
        view = _views.get(entries_key)
        if view is None:
            view = _views[entries_key] = _checked(shape, entries, ops)
        return view, ops
    return _general(shape, entries)


def _checked(shape: tuple[int, ...], entries: tuple[object, ...], ops: Sequence[Array]) -> View:
    plan, _, _ = parse(shape, entries)
    if not ops and plan.whole and plan.out_shape == shape:
        return WHOLE
    # The index as JAX prints it: bounds that say nothing are left out.
    return At(tuple([_OPERAND if isinstance(e, Tracer) else _plain_slice(e, n)
                     for e, n in zip(entries, _sizes(shape, entries), strict=True)]), len(shape))


def _sizes(shape: tuple[int, ...], entries: Sequence[Reference]) -> list[int | None]:
    """For each entry the size of the axis that it indexes; None for one that takes none."""
    taken = sum(e is not None and e is not Ellipsis for e in entries)
    sizes, axis = [], 0
    for e in entries:
        if e is None or e is Ellipsis:
            sizes.append(None)
            axis += len(shape) - taken if e is Ellipsis else 0
        else:
            sizes.append(shape[axis])
            axis += 1
    return sizes


def _has_windows(index: object) -> bool:
    """Whether an index has a `pl.ds`."""
    return type(index) is Slice or (type(index) is tuple and Slice in map(type, index))


def _windowed(shape: tuple[int, ...], entries: tuple[Reference, ...]
              ) -> tuple[View, list[Reference]]:
    """The view of an index with `pl.ds`: the other entries' view of a window of the content."""
    taken = sum(map(consumed, entries))
    starts: list[Any] = [0] * len(shape)
    sizes, within, axis = list(shape), [], 0
    for entry in entries:
        if type(entry) is Slice:
            if isinstance(entry.start, int) and entry.start < 0:
                raise ValueError(f"ds: start {entry.start} given for a reference: `start` must be "
                                 ">= 0; count from the front.")
            if axis < len(shape):       # for an axis too many, the view of the rest raises
                starts[axis] = entry.start
                sizes[axis] = (entry.size - 1) * entry.stride + 1 if entry.size else 0
            entry = slice(None, None, None if entry.stride == 1 else entry.stride)
        within.append(entry)
        axis += len(shape) - taken if entry is Ellipsis else consumed(entry)
    rest, ops = _view(tuple(sizes), tuple(within))
    window = Window({"slice_sizes": tuple(sizes)})
    starts = [promote.convert(x, _INT32) if isinstance(x, Tracer) else np.int32(x) for x in starts]
    if rest is WHOLE:
        return window, starts
    return Viewed((window, rest), (len(starts), len(ops))), [*starts, *ops]


def _plain_slice(entry: Reference, size: Reference) -> Reference:
    if type(entry) is not slice or type(size) is not int:
        return entry
    start, stop, step = entry.indices(size)
    if step < 0:
        return entry
    return slice(start or None, None if stop == size else stop, None if step == 1 else step)


def _general(shape: tuple[int, ...], entries: tuple[Reference, ...]) -> tuple[View, list[Array]]:
    """The view of an index with arrays or masks: masks are the places where they are true."""
    parse(shape, entries)       # which raises for anything but an index
    index, ops = [], []
    for entry in entries:
        if type(entry) in _STATIC or isinstance(entry, SymbolicDim):
            index.append(entry)
            continue
        if isinstance(entry, (bool, np.bool_)):
            entry = np.asarray(entry)
        if not hasattr(entry, "dtype"):     # an int of another kind, or a slice of them
            index.append(entry if type(entry) is slice else int(entry))
        elif dtypes.is_bool(entry.dtype):
            if isinstance(entry, Tracer):
                entry = entry._known_value()    # `parse` refuses one that has none
            mask = np.asarray(entry)
            if not mask.ndim:
                index.append(bool(mask))
                continue
            for coordinates in np.nonzero(mask):
                index.append(_OPERAND)
                ops.append(coordinates.astype(np.int32))
        else:
            index.append(_OPERAND)
            ops.append(entry)
    key = (shape, *[(type(e), str(e)) for e in index])
    view = _views.get(key)
    if view is None:
        view = _views[key] = At(tuple(index), len(shape))
    return view, ops


# Reading and writing -----------------------------------------------------------------------------

class RefPart:
    """A part of a reference, `ref.at[index]`, which is read and written as one.

    A pytree: its leaves are the reference and the entries of the index that are arrays.

    >>> import olympus
    >>> ref = olympus.new_ref(olympus.numpy.zeros((2, 3)))
    >>> ref.at[1].at[0][...] = 7.
    >>> print(ref.at[1][...])
    [7. 0. 0.]
    """

    # `whole` is the shape of the content that the view is a view of.
    __slots__ = ("ref", "view", "ops", "whole")
    __hash__ = object.__hash__

    def __init__(self, ref: Reference, view: View, ops: Sequence[Reference],
                 whole: tuple[int, ...] | None = None) -> None:
        self.ref, self.view, self.ops = ref, view, tuple(ops)
        self.whole = ref.aval.shape if whole is None else whole

    @property
    def _part(self) -> ShapedArray:
        self.check_whole()
        return _part_aval(self.ref, self.view, self.ops)

    def check_whole(self) -> None:
        """TypeError where a transformation gives its function a slice of the reference."""
        if is_ref(self.ref) and self.ref.aval.shape != self.whole:
            content = self.ref.aval.inner
            raise TypeError(
                f"ref.at: a part given of a reference to {content.update(shape=self.whole)}, in a "
                f"function that gets a slice of it,\n  {self.ref.aval}; vmap, rows of scan and "
                "shard_map cut references, and no parts of them;\n  pass the reference and the "
                "index, and write ref.at[index] inside.")

    shape = property(lambda self: self._part.shape, doc="The part's shape.")
    dtype = property(lambda self: self._part.dtype, doc="The part's dtype.")
    ndim = property(lambda self: self._part.ndim, doc="The part's number of axes.")
    size = property(lambda self: self._part.size, doc="The part's number of elements.")

    def within(self, view: View, ops: Sequence[Reference] = ()) -> RefPart:
        """The part of this part."""
        if view is WHOLE:
            return self
        if self.view is WHOLE:
            return RefPart(self.ref, view, ops, self.whole)
        return RefPart(self.ref, Viewed((self.view, view), (len(self.ops), len(ops))),
                       (*self.ops, *ops), self.whole)

    @api_boundary
    def reshape(self, *shape: Reference) -> RefPart:
        """The elements of the part in another shape."""
        shape = shape[0] if len(shape) == 1 and not isinstance(shape[0], int) else shape
        aval = stage(lambda x: [reshape(x, shape)], [self._part]).out_avals[0]
        return self.within(Reshaped(aval.shape))

    @api_boundary
    def transpose(self, *axes: Reference) -> RefPart:
        """The part with its axes in another order, reversed if none are given."""
        axes = axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes
        return self.within(Permuted(tuple(axes) or tuple(range(self.ndim))[::-1]))

    T = property(transpose, doc="The part with its axes in reverse order.")

    @api_boundary
    def bitcast(self, dtype: DTypeLike) -> RefPart:
        """The bits of the part's elements as another dtype of the same width."""
        to = dtypes.requested_dtype("bitcast", dtype)
        if dtypes.itemsize_bits(to) != dtypes.itemsize_bits(self.dtype):
            raise ValueError(f"bitcast: {to} given for a part of {self.ref.aval}; a dtype of as "
                             "many bits is required; use reshape and astype on what is read.")
        return self.within(Bits(to))

    def __repr__(self) -> str:
        return f"RefPart({self.ref.aval}, {self._part})"


register_pytree_with_keys(
    RefPart,
    lambda part: (((GetAttrKey("ref"), part.ref), *[
        (GetAttrKey(f"ops[{i}]"), x) for i, x in enumerate(part.ops)]), (part.view, part.whole)),
    lambda aux, leaves: RefPart((found := tuple(leaves))[0], aux[0], found[1:], aux[1]),
    lambda part: ((part.ref, *part.ops), (part.view, part.whole)))


def _part_aval(ref: Reference, view: View, ops: Sequence[Reference]) -> ShapedArray:
    """The type of a part: memoised by the types."""
    return get_p.result_avals((ref.aval, *map(typeof, ops)), {"view": view})


def _view_of(name: str, ref: Reference, index: object
             ) -> tuple[Reference, View, Sequence[Reference]]:
    """The reference, the view and its operands of an index of a reference, or of a part of one."""
    if type(ref) is RefPart:
        part = ref.within(*_view(ref.shape, index))     # which checks it
        return part.ref, part.view, part.ops
    if not is_ref(ref):
        raise TypeError(f"{name}: {_described(ref)} given; a reference is required, which new_ref "
                        "makes.")
    if ref.aval.inner.is_high:
        return ref, _whole_view(name, ref.aval, index), []
    return ref, *_view(ref.aval.shape, index)


def _is_high(x: object) -> bool:
    """Whether this is a value of a user's type."""
    return bool(HIGH) and (isinstance(x, Tracer) or type(x) in FOREIGN_AVALS) and typeof(x).is_high


def _whole_view(name: str, aval: RefAval, index: object) -> View:
    """The view of the whole, which is all that a value of a user's type has."""
    if index is Ellipsis or (type(index) is tuple and not index):
        return WHOLE
    raise TypeError(f"{name}: the index {clipped(index)} given for a reference {aval}; a value of "
                    "a user's type is read and written whole: ref[...]; define an operation for "
                    "its parts.")


def _view_inside(name: str, ref: Reference, index: object
                 ) -> tuple[Reference, View, Sequence[Reference]]:
    """`_view_of` an index that is read or written as it is; ValueError if it is out of bounds."""
    ref, view, ops = _view_of(name, ref, index)
    view.check_inside(ref.aval.inner, *ops)
    return ref, view, ops


def _described(x: object) -> str:
    if isinstance(x, Tracer):
        return describe(x)
    return str(getattr(x, "aval", f"{clipped(x)} of type {type(x).__name__}"))


def _check_levels(name: str, ref: Ref, index: object) -> None:
    """An index of a reference that is at hand must be of its trace, or from around it."""
    for entry in index if type(index) is tuple else (index,):
        if isinstance(entry, Tracer):
            check_value(name, ref, entry)


def _of_dtype(name: str, x: Reference, to: ShapedArray) -> Reference:
    """A value, checked to lose nothing at a content's dtype: a place keeps its own."""
    x = promote.operand(name, asarray(x) if is_sequence(x) else x, 1)
    aval = typeof(x)
    if aval.dtype != to.dtype and not dtypes.is_extended(to.dtype) and not dtypes.is_extended(
            aval.dtype) and loses(to, aval):
        raise ValueError(f"{name}: {aval} given for a reference to {to.dtype}, which cannot be "
                         "cast safely; a value of the reference's dtype is required; cast it with "
                         "astype.")
    return x


_NUMBERS = frozenset((bool, int, float))
_numbers: Memo = Memo(4096)


def _fitted(name: str, x: Reference, part: ShapedArray) -> Reference:
    """A value as it is written to a part: broadcast, and converted where `.at[].set` converts."""
    aval = getattr(x, "aval", None)
    if aval is part:
        return x
    if part.is_high:
        if not _is_high(x) or typeof(x) != part:
            raise TypeError(f"{name}: {_described(x)} given for a reference to {part}; a value of "
                            "this type is required.")
        return x
    # In a program a number stays a literal.
    if type(x) in _NUMBERS and not part.shape and not dtypes.is_extended(part.dtype):
        key = type(x), x, part
        number = _numbers.get(key) if x else None    # 0.0 and -0.0 are equal
        if number is None:
            number = _numbers[key] = promote.convert(_of_dtype(name, x, part), part.dtype)
        return number
    x = _of_dtype(name, x, part)
    x = promote.plain(fit_values(name, part, x, part.shape))
    x = promote.convert(x, part.dtype) if typeof(x).weak_type else x
    return move(promote.broadcast_to(as_array(x), part.shape), part.memory_space)


def _masked(index: object) -> bool:
    """Whether a mask in an index is traced: where it is true, no view can say."""
    return any(isinstance(e, Tracer) and e._known_value() is None and dtypes.is_bool(
        typeof(e).dtype) for e in (index if type(index) is tuple else (index,)))


def _getitem(ref: Reference, index: object) -> Array:
    """`ref[index]`: the elements that an array with the reference's content has there."""
    try:
        if type(ref) is Ref and at_hand(ref):
            if index is Ellipsis:
                return ref._content()
            if ref.aval.inner.is_high:
                _whole_view("ref[...]", ref.aval, index)
                return ref._content()
            if not _has_windows(index):
                with ref._held():
                    content = ref._value
                    part = getitem(content, index)
                    if part is content:
                        ref._lent = True
                return part
        ref, view, ops = _view_inside("ref[...]", ref, index)
        return get_p.bind(ref, *ops, view=view)
    except (*FAILURES, IndexError) as error:
        source.filter_traceback(error)
        raise


def _setitem(ref: Reference, index: object, x: Reference) -> None:
    """`ref[index] = x`: as `.at[index].set(x)` of an array, in place."""
    try:
        _write("set", "ref[...] = x", ref, index, x)
    except (*FAILURES, IndexError) as error:
        source.filter_traceback(error)
        raise


def _write(op: str, name: str, ref: Reference, index: object, x: Reference) -> None:
    if type(ref) is Ref and at_hand(ref) and not _has_windows(index):
        check_value(name, ref, x)
        with ref._held():
            content = ref._value
            inner = ref.aval.inner
            if inner.is_high:
                view = _whole_view(name, ref.aval, index)
                x = _fitted(name, x, inner)
                new = x if op == "set" else view.add(content, x)
            elif index is Ellipsis and op == "set":
                new = as_array(_fitted(name, x, inner))
                if ref._trace is None:
                    new = argument_array(new)
            else:
                _check_levels(name, ref, index)
                if getattr(x, "dtype", None) != inner.dtype:
                    x = _of_dtype(name, x, inner)
                new = write(op, content, index, x)
            ref._put(new, new is x)
        return
    if isinstance(index, (Tracer, tuple)) and _masked(index):
        whole = _getitem(ref, Ellipsis)
        _write("set", name, ref, Ellipsis, write(op, whole, index, x))
        return
    ref, view, ops = _view_inside(name, ref, index)
    v = _fitted(name, x, _part_aval(ref, view, ops))
    if op == "add":
        addupdate_p.bind(ref, v, *ops, view=view)
    else:
        swap_p.bind(ref, v, *ops, view=view)


# Functions ---------------------------------------------------------------------------------------

@api_boundary
def new_ref(init_val: ArrayLike, *, memory_space: Space | None = None,
            kind: Hashable = None, pin: bool = False) -> Reference:
    """A reference: a mutable array, with a copy of `init_val` as its first content.

    Args:
      init_val: array, number, or value of a user's type, which is read and written whole.
      memory_space: the memory of the device that the content is kept in, an `olympus.memory.Space`;
        None is where `init_val` is.
      kind: a name for the reference in programs, without a meaning of its own.
      pin: whether compilers of kernels must keep the content in that memory; nothing else heeds it.
    Returns: A `Ref` of the shape and dtype of `init_val`.

    Raises TypeError for anything but an array or a value of a user's type.

    >>> ref = olympus.new_ref(onp.zeros(3))
    >>> def add_one(i):
    ...     ref[i] += 1
    >>> olympus.jit(add_one)(2)
    >>> print(ref[...])
    [0. 0. 1.]
    """
    if is_ref(init_val) or type(init_val) is RefPart:
        raise TypeError(f"new_ref: a reference {_described(init_val)} given; an array is required; "
                        "pass ref[...], its content.")
    x: Any = init_val
    if not _is_high(x):
        x = as_array(promote.plain(promote.operand("new_ref", x)))
        if ctx.trace is ThreadState.trace:
            x = argument_array(x)
            x = x.copy() if x is init_val else x
    return new_ref_p.bind(x, memory_space=_space(memory_space), kind=kind, pin=bool(pin))


@api_boundary
def empty_ref(ty: Reference, memory_space: Space | None = None, pin: bool = False) -> Reference:
    """A reference whose content is not given: zeros until it is written.

    Args:
      ty: a `ShapeDtypeStruct`, an aval, or a type of the user's, whose parts are zeros.
      memory_space: the memory of the device that the content is kept in.
      pin: as for `new_ref`.
    Returns: A `Ref` of that shape and dtype.

    >>> ref = olympus.empty_ref(olympus.ShapeDtypeStruct((2,), "float32"))
    >>> ref[...] = 3.
    >>> ref
    Ref([3., 3.], dtype=float32)
    """
    aval = getattr(ty, "aval", ty)
    if not (isinstance(aval, ShapedArray) or getattr(aval, "is_high", False)):
        raise TypeError(f"empty_ref: {ty!r} given; a ShapeDtypeStruct is required; say a shape and "
                        "a dtype.")
    return empty_ref_p.bind(ty=aval, memory_space=_space(memory_space), pin=bool(pin))


def _space(space: Reference) -> Space | None:
    return space if space is None or isinstance(space, Space) else Space.of(space)


@api_boundary
def freeze(ref: Reference) -> Array:
    """End a reference, and return its content.

    Args: ref: a reference.
    Returns: An array. What is done to the reference afterwards is a ValueError.

    >>> ref = olympus.new_ref(onp.zeros(2))
    >>> ref[0] = 1.
    >>> print(olympus.freeze(ref))
    [1. 0.]
    """
    return freeze_p.bind(_whole("freeze", ref))


@api_boundary
def free_ref(ref: Reference) -> None:
    """End a reference, and let go of its content.

    Args: ref: a reference. What is done to it afterwards is a ValueError.

    >>> ref = olympus.new_ref(onp.zeros(1000))
    >>> olympus.free_ref(ref)
    """
    free_ref_p.bind(_whole("free_ref", ref))


def _whole(name: str, ref: Reference) -> Reference:
    if not is_ref(ref):
        raise TypeError(f"{name}: {_described(ref)} given; a reference is required, which new_ref "
                        "makes.")
    return ref


@api_boundary
def get(ref: Reference, idx: object = None) -> Array:
    """`ref[idx]`, and `ref[...]` without an index.

    Args:
      ref: a reference, or a part of one (`ref.at[…]`).
      idx: an index as arrays take it; None is all.

    >>> print(olympus.ref.get(olympus.new_ref(onp.arange(4)), slice(1, 3)))
    [1 2]
    """
    return _getitem(ref, Ellipsis if idx is None else idx)


@api_boundary
def set(ref: Reference, idx: object, value: Reference) -> None:
    """`ref[idx] = value`, as `.at[idx].set(value)` writes: values are broadcast and converted.

    Args:
      ref: a reference, or a part of one (`ref.at[…]`).
      idx: an index as arrays take it; None is all.
      value: array or number that broadcasts to the part.

    >>> ref = olympus.new_ref(onp.zeros(3))
    >>> olympus.ref.set(ref, slice(0, 2), 5.)
    >>> print(ref[...])
    [5. 5. 0.]
    """
    _write("set", "ref.set", ref, Ellipsis if idx is None else idx, value)


@api_boundary
def swap(ref: Reference, idx: object, value: Reference, _function_name: str = "ref.swap") -> Array:
    """Write `value` to `ref[idx]`, and return the old elements.

    Args:
      ref: a reference, or a part of one (`ref.at[…]`).
      idx: an index as arrays take it; None is all.
      value: array or number that broadcasts to the part.
    Returns: An array.

    >>> ref = olympus.new_ref(onp.arange(3))
    >>> print(olympus.ref.swap(ref, 1, 7), ref[...])
    1 [0 7 2]
    """
    ref, view, ops = _view_inside(_function_name, ref, Ellipsis if idx is None else idx)
    v = _fitted(_function_name, value, _part_aval(ref, view, ops))
    if type(ref) is Ref and ref._trace is None and not ref.aval.inner.is_high and at_hand(ref):
        v = argument_array(v)
    return swap_p.bind(ref, v, *ops, view=view)


@api_boundary
def addupdate(ref: Reference, idx: object, x: Reference) -> None:
    """`ref[idx] += x`, where repeated indices add repeatedly.

    Args:
      ref: a reference, or a part of one (`ref.at[…]`).
      idx: an index as arrays take it; None is all.
      x: array or number that broadcasts to the part.

    >>> ref = olympus.new_ref(onp.zeros(3))
    >>> olympus.ref.addupdate(ref, onp.array([0, 0, 2]), 1.)
    >>> print(ref[...])
    [2. 0. 1.]
    """
    _write("add", "ref.addupdate", ref, Ellipsis if idx is None else idx, x)


# Methods -----------------------------------------------------------------------------------------

class _Places:
    """`ref.at`: index it to say which part."""

    __slots__ = ("of",)

    def __init__(self, of: Reference) -> None:
        self.of = of

    @api_boundary
    def __getitem__(self, index: object) -> RefPart:
        return RefPart(*_view_of("ref.at", self.of, index))

    @api_boundary
    def __setitem__(self, index: object, value: object) -> None:
        raise TypeError("ref.at: `ref.at[index] = x` given; write `ref[index] = x`.")


def _refused(name: str, what: str, error: type[Exception] = TypeError) -> Reference:
    def method(self: Reference, *args: object, **kwargs: object) -> Reference:
        noun = f"reference {self.aval}" if is_ref(self) else f"part of a reference {self}"
        raise error(f"{name}: a {noun} given; {what}.")

    return api_boundary(method)


def _attribute(self: Ref, name: str) -> NoReturn:
    """AttributeError for attributes of arrays that references lack."""
    if name[0] != "_" and hasattr(lib.ArrayImpl, name):
        raise AttributeError(f"{name}: a reference {self.aval} given; an array is required; write "
                             f"ref[...].{name}.", name=name, obj=self)
    raise AttributeError(f"'Ref' object has no attribute {name!r}", name=name, obj=self)


def _repr(self: Ref) -> str:
    if self._ended is not None:
        return f"Ref({self.aval.inner}, ended)"
    text = repr(self._value)
    return f"Ref{text[len('Array'):]}" if text.startswith("Array(") else f"Ref({text})"


def _copy(self: Ref, memo: object = None) -> Ref:
    """Another reference with the same content."""
    return new_ref(self._content())


def _of_content(name: str, doc: str) -> property:
    return property(lambda self: getattr(self._value, name), doc=doc)


_SIGNS = {"add": "+", "sub": "-", "mul": "*", "truediv": "/", "floordiv": "//", "mod": "%",
          "pow": "**", "matmul": "@", "and": "&", "or": "|", "xor": "^", "lshift": "<<",
          "rshift": ">>"}
_ORDERS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
#: What references have, traced ones by their aval.
METHODS: dict[str, Any] = {
    "__getitem__": _getitem, "__setitem__": _setitem,
    "at": property(_Places, doc="`ref.at[index]`: a part of the reference, to read and write."),
    "get": lambda self, idx=None: get(self, idx),
    "set": lambda self, value, idx=None: set(self, idx, value),
    "swap": lambda self, value, idx=None: swap(self, idx, value),
    "addupdate": lambda self, x, idx=None: addupdate(self, idx, x),
}
#: What parts have as their own methods: other ways to see the whole.
_VIEWS: dict[str, Any] = {
    "reshape": lambda self, *shape: RefPart(self, WHOLE, ()).reshape(*shape),
    "transpose": lambda self, *axes: RefPart(self, WHOLE, ()).transpose(*axes),
    "bitcast": lambda self, dtype: RefPart(self, WHOLE, ()).bitcast(dtype),
    "T": property(lambda self: RefPart(self, WHOLE, ()).T,
                  doc="The reference with its axes in reverse order, to read and write."),
}
#: What arrays do, and neither references nor parts of them.
_REFUSED: dict[str, Any] = {
    "__iter__": _refused("iter()", "an array is required; iterate over ref[...], its content"),
    "__array__": _refused("numpy.asarray", "an array is required; pass ref[...], its content"),
    "__contains__": _refused("in", "an array is required; look in ref[...], its content"),
    **{f"__{name}__": _refused(f"{name}()", "an array is required; pass ref[...], its content")
       for name in ("bool", "int", "float", "complex")},
    **{f"__{name}__": _refused(f"{sign}ref", f"an array is required; write {sign}ref[...]")
       for name, sign in {"neg": "-", "pos": "+", "invert": "~"}.items()},
    **{f"__{name}__": _refused(f"ref {sign} x", f"an array is required; write ref[...] {sign} x")
       for name, sign in {**_SIGNS, **_ORDERS}.items()},
    **{f"__r{name}__": _refused(f"x {sign} ref", f"an array is required; write x {sign} ref[...]")
       for name, sign in _SIGNS.items()},
    **{f"__i{name}__": _refused(f"ref {sign}= x", f"write ref[...] {sign}= x")
       for name, sign in _SIGNS.items()},
}
_OF_REF: dict[str, Any] = {
    "shape": property(lambda self: self.aval.shape, doc="The content's shape."),
    "dtype": property(lambda self: self.aval.dtype, doc="The content's dtype."),
    "ndim": property(lambda self: self.aval.ndim, doc="The content's number of axes."),
    "size": property(lambda self: self.aval.size, doc="The content's number of elements."),
    "sharding": _of_content("sharding", "Where the content is."),
    "committed": _of_content("committed", "Whether the content must stay where it is."),
    "format": _of_content("format", "Layout and sharding of the content."),
    "unsafe_buffer_pointer": lambda self: self._value.unsafe_buffer_pointer(),
    "__len__": lambda self: len(self.aval), "__repr__": _repr, "__getattr__": _attribute,
    "__copy__": _copy, "__deepcopy__": _copy,
    "__reduce_ex__": _refused(
        "pickle", "an array is required; pickle ref[...], its content, and make a reference of it"),
}

for _name, _method in {**METHODS, **_VIEWS, **_REFUSED, **_OF_REF}.items():
    setattr(Ref, _name, _method)
for _name, _method in {**METHODS, **_REFUSED}.items():
    setattr(RefPart, _name, _method)
RefAval.methods = {**METHODS, **_VIEWS}
