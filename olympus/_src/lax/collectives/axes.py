"""Named axes, of vmap or a mesh: whether they are bound, sizes, positions, groups of those."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Iterator, Sequence
from typing import Any

import numpy as np

from ...base.typing import Array, ArrayLike, AxisIndexGroups, AxisName, IrValue, Params
from ...core import tags
from ...core.context import DeviceAxis, KnownAxis, MeshAxis
from ...core.ir import OlympusprEqn
from ...core.primitive import Axis, Builder, Primitive, linear_jvp
from ...core.trace import ctx, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval
from ...types.shape import prod, sequence, static_int
from ..arithmetic import mul
from ..creation import full, iota
from ..families import add
from ..shape import as_array
from ..slicing import index_take

Names = tuple[Hashable, ...]
Groups = tuple[tuple[int, ...], ...]


def axis_names(what: str, axis_name: AxisName) -> Names:
    """The names as a tuple; NameError unless each is bound, ValueError if one is repeated."""
    if isinstance(axis_name, (set, frozenset)):
        raise TypeError(f"{what}: axis_name {axis_name!r} given; it must be a tuple or a str (or "
                        "another name of one axis): the order of several counts.")
    names = tuple(axis_name) if isinstance(axis_name, (tuple, list)) else (axis_name,)
    for name in names:
        if not isinstance(name, Hashable) or name not in ctx.axes:
            bound = ", ".join(map(repr, ctx.axes)) or "none"
            raise NameError(f"{what}: Found an unbound axis name: {name}. To fix this, please call "
                            f"{what} under\n  `olympus.shard_map` over a mesh with such an axis, "
                            f"or under vmap or pmap with axis_name={name!r};\n"
                            f"  bound axis names are: {bound}.")
    if len(set(names)) < len(names):
        raise ValueError(f"{what}: axis names {names} given; different names are required.")
    return names


def sizes_of(names: Sequence[Hashable]) -> tuple[int, ...]:
    """The sizes of bound axes: plain ints, or symbolic ones of vmap."""
    sizes = [ctx.axes[name] for name in names]
    return tuple([int(size) if isinstance(size, int) else size for size in sizes])


def of_mesh(names: Sequence[Hashable]) -> bool:
    """Whether bound axes are all of a mesh: devices work together along several as along one."""
    return all(isinstance(ctx.axes[name], DeviceAxis) for name in names)


def typed(names: Sequence[Hashable]) -> bool:
    """Whether bound axes are all of a mesh that types know."""
    return all(type(ctx.axes[name]) is MeshAxis for name in names)


@contextlib.contextmanager
def device_axes(names: Names, sizes: Sequence[int]) -> Iterator[None]:
    """In a `with` block: the named axes are bound, for traces made while it is lowered."""
    outer = ctx.axes
    ctx.axes = {**outer, **dict(zip(names, map(DeviceAxis, sizes), strict=True))}
    try:
        yield
    finally:
        ctx.axes = outer


def varying(x: ArrayLike, names: Sequence[Hashable]) -> Array:
    """The operand of a collective along these axes: `x`, varying along the mesh's axes."""
    typeof(x)       # raises for other values than arrays, alike for all elements
    return tags.pvary(x, frozenset([n for n in names if type(ctx.axes[n]) is MeshAxis]))


def check_groups(what: str, groups: AxisIndexGroups, names: Names, equal: bool = True
                 ) -> Groups | None:
    """The groups as tuples of ints, or None; ValueError unless they partition the positions.

    `equal`: they must be of one size besides.
    """
    if groups is None:
        return None
    size = prod(sizes_of(names))
    checked = tuple([positions(what, group, "a group of axis_index_groups")
                     for group in sequence(groups, what, "axis_index_groups")])
    if sorted(i for group in checked for i in group) != list(range(size)) or not all(checked):
        raise ValueError(f"{what}: axis_index_groups must cover all indices exactly once: {groups} "
                         f"given for {size} positions; groups that together hold each of 0 … "
                         f"{size - 1} once are required.")
    if equal and len(set(map(len, checked))) > 1:
        raise ValueError(f"{what}: axis_index_groups {groups} given; groups of one size are "
                         "required.")
    return checked


def positions(what: str, numbers: Sequence[int], noun: str) -> tuple[int, ...]:
    """Positions along the axes, in order; TypeError for anything but a sequence of ints."""
    return tuple([static_int(i, what, noun) for i in sequence(numbers, what, noun)])


def group_tables(groups: Groups) -> tuple[np.ndarray, np.ndarray]:
    """Per position, the number of its group, and its place in that."""
    which, place = np.zeros((2, sum(map(len, groups))), np.int32)
    for i, group in enumerate(groups):
        which[list(group)], place[list(group)] = i, np.arange(len(group))
    return which, place


def take_rows(x: ArrayLike, rows: ArrayLike) -> Array:
    """x[rows] along axis 0; `rows` is a vector."""
    return index_take(x, (rows,), (0,))


class Collective(Primitive, abstract=True):
    """Works along the named axes that its param `names` holds: by default, linear in its operand.

    The trace that binds an axis of vmap replaces it, by `vmap_named`; those that remain in a
    lowered program work along manual axes of a mesh.
    """

    names = "axis_name"
    linear = (0,)
    # For `control.agreement`: whether elements wait for one another; whether in pairs; whether each
    # gets a part of its own.
    waits = True
    pairs = False
    parts = False

    def lower(self, b: Builder, *xs: IrValue, **params: Hashable) -> IrValue:
        names = params[self.names]
        raise NameError(f"{self.name}: axis {names!r} is not bound in this program; bind it with "
                        "vmap(..., axis_name=...).")

    def uses_axis(self, name: Hashable, params: Params) -> bool:
        return name in params[self.names]

    def meets(self, params: Params) -> frozenset[Hashable]:
        """The axes along which elements wait for one another; none where only groups do."""
        grouped = params.get("axis_index_groups") is not None
        return frozenset(() if grouped or not self.waits else params[self.names])

    def told(self, differs: frozenset[Hashable], params: Params) -> frozenset[Hashable]:
        """Along which axes the result may differ, by the same of the operand."""
        if params.get("axis_index_groups") is not None or not self.waits:
            return differs
        names = frozenset(params[self.names])
        return differs | names if self.parts else differs - names

    jvp = linear_jvp


class MeshOnly(Collective, abstract=True):
    """Its axes are a mesh's: none of them is an axis of vmap."""

    def uses_axis(self, name: Hashable, params: Params) -> bool:
        return False

    vmap_named = None


class Exchange(Collective, abstract=True):
    """x -> values like it, from other elements."""

    spread = staticmethod(tags.same)

    def infer(self, x: ShapedArray, **params: Hashable) -> ShapedArray:
        return x

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Array, int | None]:
        return self.bind(*args, **params), dims[0]


class AxisIndex(Collective):
    """The position along a named axis, int32. params: axis_name; `mesh` if it is a mesh's."""

    waits = False

    def infer(self, *, axis_name: Any, mesh: bool = False) -> ShapedArray:
        return make_aval((), dtypes.as_dtype("int32"), vma=frozenset([axis_name] * mesh))

    def uses_axis(self, name: Hashable, params: Params) -> bool:
        return name == params[self.names]

    def told(self, differs: frozenset[Hashable], params: Params) -> frozenset[Hashable]:
        return frozenset([params[self.names]])

    def vmap_named(self, axis: Axis, args: Sequence[object], dims: Sequence[int | None], *,
                   axis_name: Hashable) -> tuple[Array, int]:
        return iota(np.int32, axis.size), 0

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> ShapedArray:
        return self.infer(**params)     # it is what varies, and on each device of the mesh

    def lower(self, b: Builder, *, axis_name: Hashable, mesh: bool = False) -> IrValue:
        return b.position(axis_name)

    def shown(self, eqn: OlympusprEqn) -> Params:
        return {"axis_name": eqn.params["axis_name"]}

    jvp: Any = None
    transpose = None
    vmap = None


axis_index_p = AxisIndex("axis_index")


def axis_size(axis_name: AxisName) -> int:
    """The size of a named axis, or the product of the sizes of several.

    Args: axis_name: a bound axis name, or a sequence of them.
    Returns: A Python int, which shapes may depend on; `psum(1, axis_name)` is the same.

    >>> mean = lambda x: olympus.lax.psum(x, "i") / olympus.lax.axis_size("i")
    >>> olympus.vmap(mean, axis_name="i")(olympus.numpy.array([1., 2., 6.]))
    Array([3., 3., 3.], dtype=float32)
    """
    return prod(sizes_of(axis_names("axis_size", axis_name)))


def axis_index(axis_name: AxisName) -> Array:
    """This element's position along a named axis.

    Args: axis_name: a bound axis name, such as `vmap` binds, or several; positions over several are
        row-major.
    Returns: int32[]: from 0 to the size of the axis less one.

    >>> scale = lambda x: x * olympus.lax.axis_index("i")
    >>> olympus.vmap(scale, axis_name="i")(olympus.numpy.ones(3))
    Array([0., 1., 2.], dtype=float32)
    """
    index: Any = None
    for name in axis_names("axis_index", axis_name):
        axis: Any = ctx.axes[name]
        if type(axis) is KnownAxis:
            here = as_array(axis.index)
        else:
            mesh = {"mesh": True} if type(axis) is MeshAxis else {}
            here = axis_index_p.bind(axis_name=name, **mesh)
        index = here if index is None else add(mul(index, sizes_of([name])[0]), here)
    return full((), 0, np.int32) if index is None else index
