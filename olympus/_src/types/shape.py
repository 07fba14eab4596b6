"""All shape arithmetic: the only place that turns dimensions into ints or multiplies them.

Shapes are tuples of ints, canonical since the public boundary. Everything above this module asks
it for products, quotients and comparisons, so that symbolic dimensions need one change, here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence, Set
from operator import index
from typing import Any

import numpy as np

from ..base.errors import ConcretizationTypeError
from ..base.util import memoize

__all__ = ["broadcast_shapes", "canonical_axes", "canonical_axis", "canonical_dim",
           "canonical_shape", "definitely_equal", "div", "entries", "front_axes", "front_axis",
           "is_static", "maximum", "prod", "static_int"]

Shape = tuple[int, ...]


def canonical_shape(shape: Any, what: str = "shape") -> Shape:
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


def entries(given: Any) -> tuple[Any, ...]:
    """Dimensions or axes as a tuple, given as one, as any sequence of them, or as an array.

    What has no order (sets, dicts) and text are one entry, which whoever reads it refuses.
    """
    if (not hasattr(given, "__iter__") or getattr(given, "ndim", 1) == 0
            or isinstance(given, (str, bytes, bytearray, Set, Mapping))):
        return (given,)
    return tuple(given)


def canonical_dim(d: Any, what: str = "shape") -> int:
    """One dimension as a non-negative int; errors as `canonical_shape`."""
    if type(d) is not int:
        d = static_int(d, what, "dimension")
    if d < 0:
        raise ValueError(f"{what}: dimension {d} given; dimensions are not negative.")
    return d


def static_int(d: Any, what: str, noun: str) -> int:
    """`operator.index`, with bool refused and errors that say what to do."""
    if isinstance(d, (bool, np.bool_)):
        raise TypeError(f"{what}: {noun} {d!r} given; an int is required; write {int(d)}.")
    try:
        return index(d)
    except Exception as err:
        if _is_traced(d):
            raise ConcretizationTypeError(_not_static(d, what, noun)) from err
        raise TypeError(_not_static(d, what, noun)) from (
            None if isinstance(err, TypeError) else err)


def _is_traced(d: Any) -> bool:
    # Tracers are known by their aval, concrete arrays too; both fail `index` only if traced or
    # not a scalar of integer type, and then the aval says which.
    return hasattr(d, "aval") and hasattr(d, "_trace")


def _not_static(d: Any, what: str, noun: str) -> str:
    if _is_traced(d):
        return (f"{what}: {noun} is a traced value {d.aval}; shapes must be static, known while "
                "the program is traced; mark the argument static (static_argnums, "
                "static_argnames), or compute it from x.shape.")
    shown = str(d.aval) if hasattr(d, "aval") else repr(d)
    return (f"{what}: {noun} {shown} of type {type(d).__name__} given; an int is required; "
            "convert it with int(...) if its value is whole.")


def canonical_axis(axis: Any, ndim: int, what: str = "axis") -> int:
    """An axis counted from the front: `-1 -> ndim - 1`.

    Raises TypeError for what is no int, ValueError for an axis outside `[-ndim, ndim)`.

    >>> canonical_axis(-1, 3)
    2
    """
    if type(axis) is not int:
        axis = static_int(axis, what, "axis")
    if not -ndim <= axis < ndim:
        raise ValueError(f"{what}: axis {axis} is out of bounds for array of dimension {ndim}; "
                         f"an int in [{-ndim}, {ndim}) is required.")
    return axis + ndim if axis < 0 else axis


def canonical_axes(axes: Any, ndim: int, what: str = "axis") -> tuple[int, ...]:
    """Axes counted from the front, in the given order; an int is one axis, None is all of them.

    Raises as `canonical_axis`, and ValueError where an axis is named twice.
    """
    if axes is None:
        return tuple(range(ndim))
    found = tuple([canonical_axis(axis, ndim, what) for axis in entries(axes)])
    if len(set(found)) != len(found):
        raise ValueError(f"{what}: axes {entries(axes)} of an array of dimension {ndim} given; "
                         "duplicate value in 'axis'; name each axis once.")
    return found


def front_axis(axis: Any, ndim: int, what: str = "axis") -> int:
    """An axis that is counted from the front: one of `[0, ndim)`, else as `canonical_axis`."""
    found = canonical_axis(axis, ndim, what)
    if found != axis:
        raise ValueError(f"{what}: axis {axis} of an array of dimension {ndim} given; an int in "
                         f"[0, {ndim}) is required; count it from the front: {found}.")
    return found


def front_axes(axes: Any, ndim: int, what: str = "axis") -> tuple[int, ...]:
    """Axes that are counted from the front, in the given order; errors as of `canonical_axes`."""
    found = canonical_axes(axes, ndim, what)
    if found != tuple(axes):
        for axis in axes:
            front_axis(axis, ndim, what)
    return found


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


def maximum(a: int, b: int) -> int:
    """The larger dimension."""
    return a if a >= b else b


def definitely_equal(a: Any, b: Any) -> bool:
    """Whether two dimensions, or two shapes, are equal for every value that they may have."""
    return a is b or a == b


def is_static(shape: Sequence[Any]) -> bool:
    """Whether every dimension is a plain int."""
    return all(type(d) is int for d in shape)


def broadcast_shapes(*shapes: Shape) -> Shape:
    """The shape that canonical shapes broadcast to by NumPy's rule (aligned at the right).

    Raises ValueError naming the shapes where two dimensions differ and neither is 1.

    >>> broadcast_shapes((2, 1), (3,), ())
    (2, 3)
    """
    if len(shapes) == 2 and shapes[0] == shapes[1]:
        return shapes[0]
    return _broadcast_shapes(shapes)


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
    given = ", ".join(map(str, shapes))
    return (f"Incompatible shapes for broadcasting: shapes {given} given; aligned at the right, "
            f"the sizes of each axis must be equal or 1, but axis {axis} has {sizes}; reshape an "
            "operand or insert an axis with x[..., None].")
