"""All shape arithmetic: the only place that turns dimensions into ints or multiplies them.

Shapes are tuples of ints or of symbolic dimensions (`SymbolicDim`), canonical since the public
boundary. Everything above this module asks it for products, quotients and comparisons, and
`static_int` for a number, which refuses a symbolic dimension. Ints take the short way.
"""

from __future__ import annotations

import contextlib
import math
import operator
from collections.abc import Mapping, Sequence, Set
from typing import Any

import numpy as np
from numpy.exceptions import AxisError

from ..base.errors import ConcretizationTypeError, InconclusiveDimensionOperation, said
from ..base.messages import in_lines
from ..base.typing import DimSize, DimToCheckers
from ..base.util import memoize

Shape = tuple[int, ...]
_INT = frozenset((int,))


class SymbolicDim(DimToCheckers):
    """The base of all symbolic dimensions, which are not numbers yet.

    Such a class has `+`, `-`, `*`, `//`, `%` and `divmod` with ints and its like, `==` and `hash`
    by meaning, comparisons that raise InconclusiveDimensionOperation where its bounds do not
    decide them, and no `__index__` that succeeds. A result that is constant is an int. It is true
    in a condition: an array of unknown size is not known to be empty.
    """

    __slots__ = ()

    def __lt__(self, other: object) -> bool:
        """Whether this is smaller, whatever the values; raises where that depends on them."""
        raise NotImplementedError

    # Called on the class, too, where `self` is an int and the other a dimension.
    def maximum(self: DimSize, other: DimSize) -> DimSize:
        """The larger of this and an int or another dimension, decided or not."""
        raise NotImplementedError

    def minimum(self: DimSize, other: DimSize) -> DimSize:
        """The smaller of this and an int or another dimension, decided or not."""
        raise NotImplementedError


def canonical_shape(shape: object, what: str = "shape") -> Shape:
    """A shape as a tuple of ints, from an int or a sequence of ints of Python or NumPy.

    Raises TypeError for floats, bools, tracers and nested sequences, ValueError for a negative
    dimension.

    >>> canonical_shape(3), canonical_shape([2, np.int64(4)])
    ((3,), (2, 4))
    """
    if type(shape) is tuple:
        for d in shape:
            if type(d) is not int or d < 0:
                break
        else:
            return shape
    return tuple([canonical_dim(d, what) for d in entries(shape)])


def entries(dims: Any) -> tuple[Any, ...]:
    """Dimensions or axes as a tuple, given as one, as any sequence of them, or as an array.

    A container without an order (set, dict) and text are one entry, which the reader refuses.
    """
    if type(dims) is tuple or type(dims) is list:
        return tuple(dims)
    if (not hasattr(dims, "__iter__") or getattr(dims, "ndim", 1) == 0
            or isinstance(dims, (str, bytes, bytearray, Set, Mapping))):
        return (dims,)
    return tuple(dims)


def sequence(values: Any, what: str, noun: str) -> tuple[Any, ...]:
    """The entries of a list, tuple or other iterable, in order; TypeError for anything else.

    Text is none here, nor are containers without order: sets and mappings.
    """
    if type(values) in (tuple, list):
        return tuple(values)     # the tests of abstract classes below cost a microsecond
    try:
        if not isinstance(values, (str, bytes, bytearray, Set, Mapping)):
            return tuple(values)
        raise TypeError
    except TypeError:
        aval = getattr(values, "aval", None)
        shown = repr(values) if aval is None else str(aval)
        raise TypeError(f"{what}: {noun} {shown} of type {type(values).__name__} given; a sequence "
                        "is required; write (x,) for one entry.") from None


def canonical_dim(d: object, what: str = "shape") -> DimSize:
    """One dimension as a non-negative int, or symbolic; errors as `canonical_shape`."""
    if type(d) is not int:
        d = extent(d, what, "dimension")
    if d < 0:
        raise ValueError(f"{what}: dimension {d} given; dimensions are not negative; "
                         "pass a size of 0 or more.")
    return d


def extent(d: object, what: str, noun: str) -> DimSize:
    """A length or a place along an axis, of either sign: an int, or symbolic."""
    return d if type(d) is int or isinstance(d, SymbolicDim) else static_int(d, what, noun)


def static_int(d: Any, what: str, noun: str) -> int:
    """`operator.index`, with bool refused and errors that say what to do."""
    if isinstance(d, (bool, np.bool_)):
        raise TypeError(f"{what}: {noun} {d!r} given; an int is required; write {int(d)}.")
    if isinstance(d, SymbolicDim):
        raise InconclusiveDimensionOperation(
            f"{what}: {noun} {d} is symbolic; an int is required, because the program depends on "
            "its value; give this size as a number.")
    try:
        return operator.index(d)
    except Exception as err:
        if _is_unknown(d):
            raise ConcretizationTypeError(_not_static(d, what, noun)) from err
        raise TypeError(_not_static(d, what, noun)) from (
            None if isinstance(err, TypeError) else err)


def _is_unknown(d: Any) -> bool:
    # Tracers are known by their aval, concrete arrays too; both fail `index` only if their value
    # is unknown or no scalar of integer type, and then the aval says which.
    return hasattr(d, "aval") and hasattr(d, "_trace") and d._known_value() is None


def _not_static(d: Any, what: str, noun: str) -> str:
    if _is_unknown(d):
        setting = d._setting()
        remedy = ("mark the argument static (static_argnums, static_argnames), or "
                  if d._may_be_static() else "")
        return (f"{what}: {noun} is a traced value {d.aval}{setting and f' ({setting})'}. "
                f"{d._unknown_because()}Shapes must be 1D sequences of concrete values of integer "
                f"type, known while the program is traced; {remedy}compute it from x.shape.")
    shown = str(d.aval) if hasattr(d, "aval") else repr(d)
    shapes = ("Shapes must be 1D sequences of concrete values of integer type;\n  "
              if noun == "dimension" else "")
    return (f"{what}: {noun} {shown} of type {type(d).__name__} given;\n"
            f"  an int is required; {shapes}convert it with int(...) if its value is whole.")


def canonical_axis(axis: object, ndim: int, what: str = "axis") -> int:
    """An axis counted from the front: `-1 -> ndim - 1`.

    Raises TypeError for anything but an int, NumPy's AxisError, which is a ValueError and an
    IndexError, for an axis outside `[-ndim, ndim)`.

    >>> canonical_axis(-1, 3)
    2
    """
    if type(axis) is not int:
        axis = static_int(axis, what, "axis")
    if not -ndim <= axis < ndim:
        raise AxisError(in_lines(
            f"{what}: axis {axis} is out of bounds for array of dimension {ndim}; "
            f"an int in [{-ndim}, {ndim}) is required."))
    return axis + ndim if axis < 0 else axis


def canonical_axes(axes: object, ndim: int, what: str = "axis") -> tuple[int, ...]:
    """Axes counted from the front, in the given order; an int is one axis, None is all of them.

    Raises as `canonical_axis`, and ValueError where an axis is named twice.
    """
    if axes is None:
        return tuple(range(ndim))
    positive = tuple([axis if type(axis) is int and 0 <= axis < ndim else
                      canonical_axis(axis, ndim, what) for axis in entries(axes)])
    if len(set(positive)) != len(positive):
        raise ValueError(f"{what}: axes {entries(axes)} of an array of dimension {ndim} given; "
                         "duplicate value in 'axis';\n  name each axis once.")
    return positive


def front_axis(axis: object, ndim: int, what: str = "axis") -> int:
    """An axis that is counted from the front: one of `[0, ndim)`, else as `canonical_axis`."""
    front = canonical_axis(axis, ndim, what)
    if front != axis:
        raise ValueError(f"{what}: Invalid axis {axis} for operand of dimension {ndim}; an int in "
                         f"[0, {ndim}) is required; count it from the front: {front}.")
    return front


def front_axes(axes: object, ndim: int, what: str = "axis") -> tuple[int, ...]:
    """Axes that are counted from the front, in the given order; errors as for `canonical_axes`."""
    counted = sequence(axes, what, "axes")
    front = canonical_axes(counted, ndim, what)
    if front != counted:
        for axis in counted:
            front_axis(axis, ndim, what)
    return front


prod = math.prod
"""The product of dimensions; 1 for none. The builtin itself, as it is on hot paths."""


def div(a: int, b: int) -> int:
    """`a / b` where `b` must divide `a`: ValueError otherwise; 0 / 0 is 0.

    >>> div(12, 4)
    3
    """
    if b == 0 and a == 0:
        return 0
    if b == 0 or a % b:
        raise ValueError(f"shape arithmetic: {a} / {b} given; the second must divide the first.")
    return a // b


def maximum(a: DimSize, b: DimSize) -> DimSize:
    """The larger dimension."""
    if isinstance(a, SymbolicDim):
        return a.maximum(b)
    if isinstance(b, SymbolicDim):
        return type(b).maximum(a, b)     # in this order, in which it prints
    return a if a >= b else b


def minimum(a: DimSize, b: DimSize) -> DimSize:
    """The smaller dimension."""
    if isinstance(a, SymbolicDim):
        return a.minimum(b)
    if isinstance(b, SymbolicDim):
        return type(b).minimum(a, b)     # in this order, in which it prints
    return a if a <= b else b


# Operators of dimensions, by names that a search finds. They are C's own: a call takes no frame.
less = operator.lt          # raises InconclusiveDimensionOperation where it holds for some values
floor_div = operator.floordiv
mod = operator.mod
definitely_equal = operator.eq      # of two dimensions or shapes: for all values they may have


def known_less(a: DimSize, b: DimSize) -> bool:
    """Whether a dimension is smaller than another for all values that they may have."""
    try:
        return a < b
    except InconclusiveDimensionOperation:
        return False


def exceeds(d: DimSize, limit: int) -> bool:
    """Whether a dimension is more than a dtype can count; one that is unknown is taken to fit."""
    return type(d) is int and d > limit


def largest(shape: Sequence[DimSize]) -> int:
    """The largest known dimension, 0 for none: a dtype must count up to it."""
    return max([d for d in shape if type(d) is int], default=0)


def bound_or(d: DimSize, size: int) -> int:
    """A dimension; `size` in its place if it is symbolic and only what costs less depends on it."""
    return d if type(d) is int else size


def bit_length(d: DimSize) -> int:
    """How often a range of this size can be halved; one that is unknown is taken to fit int32."""
    return d.bit_length() if type(d) is int else 31


def strided_size(start: DimSize, stop: DimSize, step: DimSize) -> DimSize:
    """How many numbers lie from `start` up to, not including, `stop`: `len(range(...))`.

    >>> strided_size(1, 8, 3), strided_size(5, -1, -2), strided_size(3, 1, 1)
    (3, 3, 0)
    """
    if type(start) is type(stop) is type(step) is int:
        with contextlib.suppress(OverflowError):    # of sizes that no index counts
            return len(range(start, stop, step))
    room = stop - start if step > 0 else start - stop
    if type(step) is int and step in (1, -1):
        return maximum(room, 0)
    return maximum((room - 1) // (step if step > 0 else -step) + 1, 0)


def slice_of(entry: slice, n: DimSize) -> tuple[DimSize, int, DimSize]:
    """The first index, the step and the size of `x[entry]` along an axis of size `n`.

    What `entry.indices(n)` gives, and quicker, where all are ints.

    Raises TypeError for bounds that are no ints, ValueError for a step of 0.

    >>> slice_of(slice(None, None, -2), 4)
    (3, -2, 2)
    """
    step = 1 if entry.step is None else extent(entry.step, "indexing", "the step of a slice")
    if definitely_equal(step, 0):
        raise ValueError("indexing: a slice of step 0 given; another step is required.")
    forward = is_positive(step, "indexing: in a slice with non-constant elements the step")
    ends: tuple[Any, Any] = (0, n) if forward else (n - 1, -1)
    start, stop = ends
    if entry.start is not None:
        start = _slice_bound(entry.start, n, forward, "start")
    if entry.stop is not None:
        stop = _slice_bound(entry.stop, n, forward, "stop")
    if entry.stop is None and isinstance(start, SymbolicDim) and definitely_equal(step, 1) and (
            entry.start is not None and not known_less(entry.start, 0)):
        return start, 1, maximum(0, n - entry.start)    # as of x[:n - start]; not n - min(start, n)
    gap, room = (step, stop - start) if forward else (-step, start - stop)
    if gap.__class__ is int and gap == 1:
        return start, step, maximum(0, room)
    return start, step, maximum(0, room + gap - 1) // gap


def is_positive(step: DimSize, what: str) -> bool:
    """Whether a step is positive and not negative, which must be known."""
    try:
        return step > 0
    except InconclusiveDimensionOperation as error:
        raise InconclusiveDimensionOperation(
            f"{what} ({step}) must be resolved statically if it is > 0 or < 0.\n"
            f"{said(error)}") from None


def _slice_bound(bound: Any, n: DimSize, forward: bool, which: str) -> DimSize:
    """A bound of a slice counted from the front, in `[0, n]`, or `[-1, n - 1]` for steps back."""
    place: Any = bound if isinstance(bound, SymbolicDim) else operator.index(bound)
    try:
        front = place >= 0
    except InconclusiveDimensionOperation as error:
        raise InconclusiveDimensionOperation(
            f"indexing: in a slice with non-constant elements the {which} ({bound}) must be "
            f"resolved statically if it is >= 0.\n{said(error)}") from None
    if front:
        return minimum(n if forward else n - 1, place)
    return maximum(0 if forward else -1, n + place)


def is_static(shape: Sequence[object]) -> bool:
    """Whether every dimension is a plain int."""
    return _INT.issuperset(map(type, shape))


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that canonical shapes broadcast to by NumPy's rule (aligned at the right).

    Args: *shapes: sequences of ints, or ints for one-element shapes.

    Raises ValueError naming the shapes where two dimensions differ and neither is 1.

    >>> broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    """
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return shapes[0]
    try:
        return _broadcast_shapes(shapes)
    except TypeError:
        pass        # some are not canonical
    return _broadcast_shapes(tuple([canonical_shape(s, "broadcast_shapes") for s in shapes]))


@memoize(4096)
def _broadcast_shapes(shapes: tuple[Shape, ...]) -> Shape:
    rank = max(map(len, shapes), default=0)
    padded = [(1,) * (rank - len(s)) + s for s in shapes]
    result = []
    for dims in zip(*padded, strict=True):
        sizes = {d for d in dims if d != 1}
        if len(sizes) > 1:
            raise ValueError(_mismatch(shapes, len(result) - rank))
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def _mismatch(shapes: tuple[Shape, ...], axis: int) -> str:
    sizes = " and ".join(str(s[axis]) for s in shapes if len(s) >= -axis and s[axis] != 1)
    shown = ", ".join(map(str, shapes))
    return (f"Incompatible shapes for broadcasting: shapes {shown} given; aligned at the right, "
            f"the sizes of each axis must be equal or 1, but axis {axis} has {sizes}; reshape an "
            "operand or insert an axis with x[..., None].")
