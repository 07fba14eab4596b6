"""Named axes of vmap: whether they are bound, their sizes and positions, and groups of those."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from ...base.typing import Array, AxisName
from ...core import tags
from ...core.context import MeshAxis
from ...core.primitive import Axis, Primitive
from ...core.trace import ctx, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import prod, sequence, static_int
from ..arithmetic import mul
from ..creation import full, iota
from ..families import add
from ..slicing import index_take

__all__ = ["Collective", "Exchange", "Groups", "Names", "axis_index", "axis_index_p", "axis_names",
           "axis_size", "check_groups", "group_tables", "positions", "sizes_of", "take_rows",
           "varying"]

Names = tuple[Any, ...]
Groups = tuple[tuple[int, ...], ...]


def axis_names(what: str, axis_name: Any) -> Names:
    """The names as a tuple; NameError unless each is bound, ValueError if one is repeated."""
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in names:
        if not isinstance(name, Hashable) or name not in ctx.axes:
            bound = ", ".join(map(repr, ctx.axes)) or "none"
            raise NameError(f"{what}: axis name {name!r} given; bound axis names are: {bound}; "
                            f"bind it with vmap(..., axis_name={name!r}).")
    if len(set(names)) < len(names):
        raise ValueError(f"{what}: axis names {names} given; different names are required.")
    return names


def sizes_of(names: Sequence[Any]) -> tuple[int, ...]:
    """The sizes of bound axes."""
    return tuple([ctx.axes[name] for name in names])


def varying(x: Any, names: Sequence[Any]) -> Any:
    """What a collective along these axes takes: `x`, varying along those of a mesh."""
    typeof(x)       # raises for what is no array, which is alike for all elements
    return tags.pvary(x, frozenset([n for n in names if type(ctx.axes[n]) is MeshAxis]))


def check_groups(what: str, groups: Any, names: Names, equal: bool = True) -> Groups | None:
    """The groups as tuples of ints, or None; ValueError unless they partition the positions.

    `equal`: they must be of one size besides.
    """
    if groups is None:
        return None
    size = prod(sizes_of(names))
    found = tuple([positions(what, group, "a group of axis_index_groups")
                   for group in sequence(groups, what, "axis_index_groups")])
    if sorted(i for group in found for i in group) != list(range(size)) or not all(found):
        raise ValueError(f"{what}: axis_index_groups {groups} given for {size} positions; groups "
                         f"that together hold each of 0 … {size - 1} once are required.")
    if equal and len(set(map(len, found))) > 1:
        raise ValueError(f"{what}: axis_index_groups {groups} given; groups of one size are "
                         "required.")
    return found


def positions(what: str, given: Any, noun: str) -> tuple[int, ...]:
    """Positions along the axes, in order; TypeError for what is no sequence of ints."""
    return tuple([static_int(i, what, noun) for i in sequence(given, what, noun)])


def group_tables(groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Per position, the number of its group, and its place in that."""
    which, place = np.zeros((2, sum(map(len, groups))), np.int32)
    for i, group in enumerate(groups):
        which[list(group)], place[list(group)] = i, np.arange(len(group))
    return which, place


def take_rows(x: Any, rows: Any) -> Any:
    """x[rows] along axis 0; `rows` is a vector."""
    return index_take(x, (rows,), (0,))


class Collective(Primitive, abstract=True):
    """Works along the named axes that its param `names` holds: by default, linear in its operand.

    It has no lowering: the trace that binds an axis replaces it, by `vmap_named`.
    """

    names = "axis_name"

    def lower(self, b: Any, *xs: Any, **params: Any) -> Any:
        names = params[self.names]
        raise NameError(f"{self.name}: axis {names!r} is not bound in this program; bind it with "
                        "vmap(..., axis_name=...).")

    def uses_axis(self, name: Any, params: dict[str, Any]) -> bool:
        return name in params[self.names]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), self.bind(*tangents, **params)


class Exchange(Collective, abstract=True):
    """x -> values like it, from other elements."""

    spread = staticmethod(tags.same)

    def infer(self, x: ShapedArray, **params: Any) -> ShapedArray:
        return x

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any
             ) -> Any:
        return self.bind(*args, **params), dims[0]


class AxisIndex(Collective):
    """The position along a named axis, int32. params: axis_name; `mesh` if it is a mesh's."""

    def infer(self, *, axis_name: Any, mesh: bool = False) -> ShapedArray:
        return make_aval((), dtypes.as_dtype("int32"), vma=frozenset([axis_name] * mesh))

    def uses_axis(self, name: Any, params: dict[str, Any]) -> bool:
        return name == params[self.names]

    def vmap_named(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
                   axis_name: Any) -> Any:
        return iota(np.int32, axis.size), 0

    jvp: Any = None
    transpose = None
    vmap = None


axis_index_p = AxisIndex("axis_index")


def axis_size(axis_name: AxisName) -> int:
    """The size of a named axis, or the product of the sizes of several.

    Args:
      axis_name: a bound axis name, or a sequence of them.

    Returns:
      A Python int, which shapes may depend on; `psum(1, axis_name)` is the same.

    >>> import olympus
    >>> mean = lambda x: olympus.lax.psum(x, "i") / olympus.lax.axis_size("i")
    >>> olympus.vmap(mean, axis_name="i")(olympus.numpy.array([1., 2., 6.]))
    Array([3., 3., 3.], dtype=float32)
    """
    return prod(sizes_of(axis_names("axis_size", axis_name)))


def axis_index(axis_name: AxisName) -> Array:
    """This element's position along a named axis.

    Args:
      axis_name: a bound axis name, such as `vmap` binds, or several; positions over several are
        row-major.

    Returns:
      int32[]: from 0 to the size of the axis less one.

    >>> import olympus
    >>> scale = lambda x: x * olympus.lax.axis_index("i")
    >>> olympus.vmap(scale, axis_name="i")(olympus.numpy.ones(3))
    Array([0., 1., 2.], dtype=float32)
    """
    index: Any = None
    for name in axis_names("axis_index", axis_name):
        mesh = {"mesh": True} if type(ctx.axes[name]) is MeshAxis else {}
        here = axis_index_p.bind(axis_name=name, **mesh)
        index = here if index is None else add(mul(index, ctx.axes[name]), here)
    return full((), 0, np.int32) if index is None else index
