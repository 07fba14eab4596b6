"""Collectives: operations along a named axis of vmap. Here: reductions, and one element for all.

A collective has no rule of its own for plain evaluation: the trace that binds the axis (vmap's)
sees it and replaces it by array operations along the mapped axis. `moves` has those that
move data.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...base.typing import AxisIndexGroups, AxisName, PyTree, T
from ...core import reuse, tags
from ...core.context import MeshAxis
from ...core.primitive import Axis, not_linear
from ...core.trace import ctx, typeof
from ...types import dtypes
from ...types.shape import prod, static_int
from ...types.tree import tree_map
from ..arithmetic import div, mul
from ..comparison import eq
from ..convert import convert_element_type
from ..families import to_front
from ..reduce import reduce_max, reduce_min
from ..shape import expand_dims, reduce_sum, reshape
from ..slicing import concatenate, index_in_dim, slice_in_dim
from .axes import (
    Exchange,
    Groups,
    Names,
    axis_index,
    axis_names,
    axis_size,
    check_groups,
    group_tables,
    sizes_of,
    take_rows,
    varying,
)
from .moves import gathered, lookup, where_rows

__all__ = ["pbroadcast", "pbroadcast_p", "pcast", "pmax", "pmax_p", "pmean", "pmin", "pmin_p",
           "psum", "psum_p", "pvary_p"]


class Reduction(Exchange):
    """psum, pmax, pmin: reduce over named axes; every element gets the result."""

    names = "axes"

    def __init__(self, name: str, reduce: Callable[..., Any]) -> None:
        super().__init__(name)
        self.reduce = reduce
        if name != "psum":
            self.transpose = None

    def varying(self, vma: frozenset[Any], params: dict[str, Any]) -> frozenset[Any]:
        return vma if params["axis_index_groups"] else vma - frozenset(params["axes"])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        if self is psum_p:
            return super().jvp(primals, tangents, **params)
        out = self.bind(*primals, **params)
        # The tangent of the extreme element; ties share equally.
        (x,), (t,) = primals, tangents
        winner = equal_to(x, out)
        count = psum_p.bind(winner, **params)
        return out, psum_p.bind(mul(div(winner, count), t), **params)

    def transpose(self, ct: Any, x: Any, **params: Any) -> list[Any]:
        if self is not psum_p:
            raise not_linear(self.name, "its operand")
        # Along axes of a mesh the type of the sum says that it is one value for all elements, and
        # so is its cotangent. Along those of vmap each element's cotangent is a contribution.
        if params["axis_index_groups"] is None:
            of_mesh = typeof(x).vma & frozenset(params["axes"])
            ct = tags.pvary(ct, of_mesh)
            params["axes"] = tuple([a for a in params["axes"] if a not in of_mesh])
        return [self.bind(ct, **params) if params["axes"] else ct]

    def vmap_named(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
                   axes: Names, axis_index_groups: Groups | None) -> Any:
        (x,), (d,) = args, dims
        if axis_index_groups is not None:
            results = reduced_groups(self, to_front(axis, x, d), axis_index_groups)
            return take_rows(results, group_tables(axis_index_groups)[0]), 0
        if d is not None:
            x = self.reduce(x, (d,))
        elif self is psum_p:
            x = mul(x, axis.size)
        rest = tuple(a for a in axes if a != axis.name)
        return (self.bind(x, axes=rest, axis_index_groups=None) if rest else x), None


def reduced_groups(prim: Reduction, rows: Any, groups: Groups) -> Any:
    """The reduction of each group of rows: [number of groups, ...]. Groups may differ in size."""
    rows = take_rows(rows, np.concatenate([np.array(g, np.int32) for g in groups]))
    sizes = list(map(len, groups))
    if len(set(sizes)) == 1:
        shape = typeof(rows).shape[1:]
        return prim.reduce(reshape(rows, (len(groups), sizes[0], *shape)), (1,))
    starts = np.cumsum([0, *sizes[:-1]]).tolist()
    parts = [prim.reduce(slice_in_dim(rows, start, start + size), (0,))
             for start, size in zip(starts, sizes, strict=True)]
    return concatenate([expand_dims(part, (0,)) for part in parts], 0)


def equal_to(x: Any, y: Any) -> Any:
    """1 where equal, 0 elsewhere, in x's dtype."""
    return convert_element_type(eq(x, y), typeof(x).dtype)


class PBroadcast(Exchange):
    """Every element gets the value of one. params: axis_name (one, in a tuple), source."""

    def transpose(self, ct: Any, x: Any, *, axis_name: Names, source: int) -> list[Any]:
        total = psum_p.bind(ct, axes=axis_name, axis_index_groups=None)
        here = eq(axis_index(axis_name), source)
        return [where_rows(here, total)]

    def vmap_named(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
                   axis_name: Names, source: int) -> Any:
        (x,), (d,) = args, dims
        return (x if d is None else index_in_dim(x, source, d, False)), None


class PVary(Exchange):
    """params: axes. The same value, of a type that varies along these axes of a mesh, too."""

    names = "axes"
    cells = staticmethod(reuse.same)

    def inferred(self, avals: Sequence[Any], params: dict[str, Any]) -> Any:
        return avals[0].update(vma=avals[0].vma | frozenset(params["axes"]))

    def lower(self, b: Any, x: Any, *, axes: Names) -> Any:
        return x

    def uses_axis(self, name: Any, params: dict[str, Any]) -> bool:
        return False        # of vmap, that is

    def transpose(self, ct: Any, x: Any, *, axes: Names) -> list[Any]:
        """A value that all devices have alike gets the sum of what they contribute."""
        # Of a program that is run again on values that vary already, it is a cast no more.
        alike = tuple([a for a in axes if a not in typeof(x).vma])
        ct = tags.pvary(ct, frozenset(alike))
        return [psum_p.bind(ct, axes=alike, axis_index_groups=None) if alike else ct]


pvary_p = PVary("pvary")
tags.install_pvary(pvary_p)
psum_p = Reduction("psum", reduce_sum)
pmax_p = Reduction("pmax", reduce_max)
pmin_p = Reduction("pmin", reduce_min)
pbroadcast_p = PBroadcast("pbroadcast")


def _reduction(prim: Reduction, x: Any, axis_name: Any, axis_index_groups: Any) -> Any:
    names = axis_names(prim.name, axis_name)
    groups = check_groups(prim.name, axis_index_groups, names, equal=False)

    def reduce(leaf: Any) -> Any:
        if prim is psum_p and typeof(leaf).dtype == np.bool_:
            leaf = convert_element_type(leaf, np.int32)
        if groups is None or len(names) < 2:
            leaf = varying(leaf, names)
            return prim.bind(leaf, axes=names, axis_index_groups=groups)
        # Groups of positions along several axes: reduce all of them, and take ours.
        results = reduced_groups(prim, gathered(leaf, names), groups)
        return lookup(results, lookup(group_tables(groups)[0], axis_index(names)))

    return tree_map(reduce, x) if names else x


def psum(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """Sum over a named axis; every element gets the sum.

    Args:
      x: a pytree of arrays; booleans are counted, as int32. A Python number is multiplied by the
        axis size, so `psum(1, name)` is that size, an int.
      axis_name: a bound axis name, or several.
      axis_index_groups: lists of positions that partition the axis; sums are within each.

    Returns:
      A pytree like `x`; an int for a Python number and a static axis.

    >>> import olympus, olympus.numpy as onp
    >>> olympus.vmap(lambda x: x / olympus.lax.psum(x, "i"), axis_name="i")(onp.array([1., 3.]))
    Array([0.25, 0.75], dtype=float32)
    """
    if isinstance(x, (int, float, complex)):
        return x * _count("psum", axis_name, axis_index_groups)
    return _reduction(psum_p, x, axis_name, axis_index_groups)


def _count(what: str, axis_name: Any, axis_index_groups: Any) -> Any:
    """How many elements each reduces with: an int, or traced where groups differ in size."""
    names = axis_names(what, axis_name)
    groups = check_groups(what, axis_index_groups, names, equal=False)
    if groups is None:
        return axis_size(names)
    sizes = np.array(list(map(len, groups)), np.int32)
    if len(set(sizes.tolist())) == 1:
        return int(sizes[0])
    return lookup(sizes[group_tables(groups)[0]], axis_index(names))


def pmean(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None
         ) -> PyTree:
    """The mean over a named axis; every element gets it.

    Args:
      x: a pytree of arrays; integers become floats.
      axis_name: a bound axis name, or several.
      axis_index_groups: lists of positions that partition the axis; means are within each.

    Returns:
      A pytree of floating or complex arrays of the shapes of `x`.

    >>> import olympus
    >>> centre = lambda x: x - olympus.lax.pmean(x, "i")
    >>> olympus.vmap(centre, axis_name="i")(olympus.numpy.arange(3))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    count = _count("pmean", axis_name, axis_index_groups)

    def mean(leaf: Any) -> Any:
        leaf = to_inexact(leaf)
        return div(leaf, count if isinstance(count, int) else
                   convert_element_type(count, typeof(leaf).dtype))

    return tree_map(mean, total)


def pmax(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """The maximum over a named axis; every element gets it.

    Args:
      x: a pytree of arrays; NaN where one is.
      axis_name: a bound axis name, or several.
      axis_index_groups: lists of positions that partition the axis; maxima are within each.

    Returns:
      A pytree like `x`; the derivative goes to the elements that are largest.

    >>> import olympus
    >>> is_largest = lambda x: x == olympus.lax.pmax(x, "i")
    >>> olympus.vmap(is_largest, axis_name="i")(olympus.numpy.arange(3))
    Array([False, False,  True], dtype=bool)
    """
    return _reduction(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: PyTree, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> PyTree:
    """The minimum over a named axis; every element gets it.

    Args:
      x: a pytree of arrays; NaN where one is.
      axis_name: a bound axis name, or several.
      axis_index_groups: lists of positions that partition the axis; minima are within each.

    Returns:
      A pytree like `x`; the derivative goes to the elements that are smallest.

    >>> import olympus
    >>> above = lambda x: x - olympus.lax.pmin(x, "i")
    >>> olympus.vmap(above, axis_name="i")(olympus.numpy.array([3, 1, 2]))
    Array([2, 0, 1], dtype=int32)
    """
    return _reduction(pmin_p, x, axis_name, axis_index_groups)


def pbroadcast(x: PyTree, axis_name: AxisName, source: int) -> PyTree:
    """The value of element `source` of a named axis; every element gets it.

    Args:
      x: a pytree of arrays.
      axis_name: a bound axis name, or several; positions are then row-major.
      source: a position.

    Returns:
      A pytree like `x`.

    >>> import olympus, olympus.numpy as onp
    >>> olympus.vmap(lambda x: olympus.lax.pbroadcast(x, "i", 2), axis_name="i")(onp.arange(3))
    Array([2, 2, 2], dtype=int32)
    """
    names = axis_names("pbroadcast", axis_name)
    sizes, source = sizes_of(names), static_int(source, "pbroadcast", "source")
    if not 0 <= source < prod(sizes):
        raise ValueError(f"pbroadcast: source {source} given; a position in [0, {prod(sizes)}) is "
                         "required.")
    places = np.unravel_index(source, sizes) if names else ()

    def broadcast(leaf: Any) -> Any:
        for name, place in zip(names, places, strict=True):
            leaf = pbroadcast_p.bind(varying(leaf, [name]), axis_name=(name,), source=int(place))
        return leaf

    return tree_map(broadcast, x)


def pcast(x: T, axis_name: AxisName, *, to: str) -> T:
    """`x` as a value of another kind along a named axis; the numbers stay.

    Args:
      x: a pytree of arrays.
      axis_name: a bound axis name, or several.
      to: "varying": as if each element had a value of its own, though all are equal; the cotangent
        is then summed over the axis. An axis of vmap takes "reduced", too, which is the same there.

    Returns:
      A pytree like `x`.

    Operations cast operands that vary along fewer axes of a mesh than others by themselves; what a
    loop carries may need it. ValueError for "unreduced", which are parts of a sum, and for a value
    that varies along an axis of a mesh already.

    >>> import olympus
    >>> f = lambda x: olympus.lax.pcast(x, "i", to="varying") + 1
    >>> olympus.vmap(f, axis_name="i")(olympus.numpy.arange(2))
    Array([1, 2], dtype=int32)
    """
    names = axis_names("pcast", axis_name)
    of_mesh = frozenset([n for n in names if type(ctx.axes[n]) is MeshAxis])
    if to != "varying" and (to != "reduced" or of_mesh):
        remedy = "sum with psum" if to == "unreduced" else "see its documentation"
        raise ValueError(f"pcast: to={to!r} given; 'varying' is required, or 'reduced' for an axis "
                         f"of vmap; {remedy}.")

    def cast(leaf: Any) -> Any:
        if typeof(leaf).vma & of_mesh:
            raise ValueError(f"pcast: x {typeof(leaf)}, axes {names} given; a value that does not "
                             "vary along them is required; leave out the axes of its type.")
        return tags.pvary(leaf, of_mesh)

    return tree_map(cast, x)


def to_inexact(x: Any) -> Any:
    """`x` in a floating or complex dtype."""
    dtype = dtypes.to_inexact_dtype(typeof(x).dtype)
    return x if dtype == typeof(x).dtype else convert_element_type(x, dtype)
