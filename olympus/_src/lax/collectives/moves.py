"""Collectives that move data between elements of named axes: gather, scatter, exchange, permute.

Each primitive works on one axis of its operand with the size of the named axes (or of the groups),
so `tiled` is a reshape around it. Positions along several names are row-major. Under
vmap, the value that an element sends becomes a transposition of the mapped axis with that one:

    all_gather       out[k] = x of element k              transpose: reduce_scatter
    reduce_scatter   out = Σ_k x[here] of element k       transpose: all_gather
    all_to_all       out[k] = x[here] of element k        transpose: itself
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ...base.typing import Array, ArrayLike, AxisIndexGroups, AxisName, IrValue, Params, T
from ...core.primitive import Axis, Builder, Cotangent, Linear
from ...core.trace import literal, typeof
from ...types.avals import ShapedArray
from ...types.mesh import AbstractMesh, get_abstract_mesh
from ...types.shape import (
    canonical_axis, definitely_equal, floor_div, is_static, mod, prod, sequence,
)
from ...types.tree import tree_map
from ...types.tree_registry import register_pytree_node
from ..arithmetic import mul
from ..comparison import eq, ge, select_n
from ..creation import full, iota
from ..families import to_front
from ..shape import broadcast_axis, broadcast_in_dim, cut, merge, move_axis, reduce_sum, transpose
from ..slicing import dynamic_index_in_dim
from .axes import (
    Collective, Exchange, Groups, MeshOnly, Names, axis_index, axis_names, check_groups,
    group_tables, of_mesh, positions, sizes_of, take_rows, typed, varying,
)
from .states import changed, unreduced

Dims = Sequence[int | None]

# Platforms where the parts of a 16-bit sum are sent to the devices that add them, and to how many.
PARTS_ON, NEAR = frozenset(("gpu", "rocm")), 8


# Axes --------------------------------------------------------------------------------------------

def swap(x: Array, i: int, j: int) -> Array:
    """Exchange two axes."""
    order = list(range(typeof(x).ndim))
    order[i], order[j] = order[j], order[i]
    return transpose(x, order)


def grouped(x: Array, groups: Groups) -> Array:
    """Rows [n, ...] as [number of groups, members, ...]."""
    order = np.array(groups, np.int32)
    return cut(take_rows(x, order.reshape(-1)), 0, order.shape)


def ungrouped(x: Array, groups: Groups) -> Array:
    """The inverse of `grouped`."""
    return take_rows(merge(x, 0), np.argsort(np.array(groups).reshape(-1)).astype(np.int32))


class Move(Collective, abstract=True):
    """params: axis_name (a tuple), axis_sizes, axis_index_groups, and `dimension`, an axis.

    Groups go with one name, or with axes of a mesh only.
    """

    @staticmethod
    def unit(aval: ShapedArray, dimension: int) -> ShapedArray:
        """An aval whose axis `dimension` has one entry."""
        return aval.update(shape=(*aval.shape[:dimension], 1, *aval.shape[dimension + 1:]))

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Dims, *, dimension: int,
             **params: Hashable) -> tuple[Array, int | None]:
        x = move_axis(args[0], dims[0], 0)
        return self.bind(x, dimension=dimension + 1, **params), 0

    def check(self, x: ShapedArray, dimension: int, size: int) -> None:
        """ValueError unless the axis has one entry per position."""
        if not definitely_equal(x.shape[dimension], size):
            raise ValueError(f"{self.name}: operand {x}, axis {dimension} given; {size} elements "
                             "on it, one per position, are required; use tiled=True for a "
                             "multiple of them.")


def _group_size(axis_sizes: Sequence[int], groups: Groups | None) -> int:
    return prod(axis_sizes) if groups is None else len(groups[0])


def _sizes_around(axis: Axis, names: Names,
                  sizes: Sequence[int]) -> tuple[tuple[int, int, int], dict]:
    """Sizes (before, of, after) the axis among the names, and the params of the other names."""
    p = names.index(axis.name)
    rest = {"axis_name": (*names[:p], *names[p + 1:]), "axis_sizes": (*sizes[:p], *sizes[p + 1:]),
            "axis_index_groups": None}
    return (prod(sizes[:p]), sizes[p], prod(sizes[p + 1:])), rest


class AllGather(Move):
    """x[...] -> [..., n at `dimension`, ...]."""

    makes_nan = False

    @staticmethod
    def ring(size: int, count: int) -> tuple[int, int]:
        """Each part once around."""
        return size * (count - 1), count

    def infer(self, x: ShapedArray, *, axis_sizes: tuple[int, ...],
              axis_index_groups: Groups | None, dimension: int, **params: Hashable) -> ShapedArray:
        n = _group_size(axis_sizes, axis_index_groups)
        return x.update(shape=(*x.shape[:dimension], n, *x.shape[dimension:]))

    def lower(self, b: Builder, x: IrValue, *, axis_name: Names, axis_index_groups: Groups | None,
              dimension: int, **params: Hashable) -> IrValue:
        x = b.op("stablehlo.reshape", [x], None, self.unit(b.avals_out[0], dimension))
        return b.op("stablehlo.all_gather", [x], {
            "all_gather_dim": b.attr(f"{dimension} : i64"), "use_global_device_ids": b.attr("unit"),
            **b.group_attributes(axis_name, axis_index_groups)})

    def transpose(self, ct: Array, x: Linear, **params: Hashable) -> list[Array | None]:
        return [reduce_scatter_p.bind(ct, **params)]

    def vmap_named(self, axis: Axis, args: Sequence[Array], dims: Dims, *, axis_name: Names,
                   axis_sizes: tuple[int, ...], axis_index_groups: Groups | None, dimension: int
                   ) -> tuple[Array, int | None]:
        (x,), (d,) = args, dims
        if axis_index_groups is not None:
            if d is None:
                return broadcast_axis(x, len(axis_index_groups[0]), dimension), None
            all_groups = grouped(move_axis(x, d, 0), axis_index_groups)
            mine = take_rows(all_groups, group_tables(axis_index_groups)[0])
            return move_axis(mine, 1, dimension + 1), 0
        x = to_front(axis, x, d)
        if len(axis_name) > 1:
            (before, n, after), rest = _sizes_around(axis, axis_name, axis_sizes)
            x = self.bind(x, dimension=0, **rest)               # [before after, n, ...]
            x = swap(cut(x, 0, (before, after)), 1, 2)          # [before, n, after, ...]
            x = merge(merge(x, 0), 0)
        return move_axis(x, 0, dimension), None


class AllGatherInvariant(MeshOnly, AllGather):
    """`all_gather` whose result is one value for all elements: so is its cotangent; each element
    takes its part of it. Along axes of a mesh, without groups.
    """

    def varying(self, vma: frozenset[Hashable], params: Params) -> frozenset[Hashable]:
        return vma - frozenset(params["axis_name"])

    def transpose(self, ct: Array, x: Linear, *, axis_name: Names, dimension: int,
                  **params: Hashable) -> Sequence[Cotangent]:
        return [dynamic_index_in_dim(ct, axis_index(axis_name), dimension, False)]


def adds_parts(b: Builder, aval: ShapedArray, names: Names, groups: Groups | None) -> bool:
    """Whether `sum_of_parts` adds an array over devices: 16-bit floats over GPUs.

    On a TPU's ring, parts would go through all links on their way to their owners.
    """
    if b.module.platform not in PARTS_ON or aval.dtype.itemsize != 2 or (
            b.sum_aval(aval) is aval or not b.manual_axes(names).all_manual):
        return False
    counts = {len(group) for group in b.replica_groups(names, groups)}
    count = counts.pop()
    return not counts and (1 < count <= NEAR or count % NEAR == 0)


def sum_of_parts(b: Builder, x: IrValue, aval: ShapedArray, at: int, names: Names,
                 groups: Groups | None) -> IrValue:
    """The sum over devices of each one's entry for us along the axis `at`, rounded once.

    Sums that travel must be float32 for that. Here parts travel unchanged, in 16 bits, to one of
    the nearest eight, which adds them. Only those few sums travel farther.
    """
    wide = b.sum_aval(aval)
    n = len(b.replica_groups(names, groups)[0])
    near = min(n, NEAR)
    members = groups or [range(n)]
    before, after = aval.shape[:at], aval.shape[at + 1:]
    cut_aval = aval.update(shape=(*before, n // near, near, *after))
    where = b.attr(f"{at + 1} : i64")
    parts = b.op("stablehlo.all_to_all", [b.op("stablehlo.reshape", [x], None, cut_aval)], {
        "split_dimension": where, "concat_dimension": where,
        "split_count": b.attr(f"{near} : i64"), **b.group_attributes(names, [
            tuple(group[i:i + near]) for group in members for i in range(0, n, near)])}, cut_aval)
    sums = wide.update(shape=(*before, n // near, *after))
    total = b.reduce("stablehlo.add", b.convert(parts, cut_aval.update(dtype=wide.dtype)), -0.0,
                     [at + 1], sums)
    if n > near:
        sums = wide.update(shape=(*before, 1, *after))
        total = _reduce_scatter(b, total, sums, at, names, [
            tuple(group[i::near]) for group in members for i in range(near)])
    rounded = b.convert(total, sums.update(dtype=aval.dtype))
    return b.op("stablehlo.reshape", [rounded], None, aval.update(shape=(*before, *after)))


def _reduce_scatter(b: Builder, x: IrValue, aval: ShapedArray, dimension: int, names: Names,
                    groups: AxisIndexGroups) -> IrValue:
    """stablehlo.reduce_scatter to an aval."""
    scalar = aval.update(shape=())
    op = b.ops("stablehlo.reduce_scatter", [x], {
        "scatter_dimension": b.attr(f"{dimension} : i64"),
        "use_global_device_ids": b.attr("unit"), **b.group_attributes(names, groups)},
        [b.type(aval)], regions=1)
    b.region(op, 0, [b.type(scalar)] * 2,
             lambda p, q: [b.op("stablehlo.add", [p, q], None, scalar)])
    return op.result


class ReduceScatter(Move):
    """x[..., n at `dimension`, ...] -> [...]: the sum over elements of the part that is for us."""

    parts = True

    @staticmethod
    def ring(size: int, count: int) -> tuple[int, int]:
        """All but the part of each device's own once around."""
        return size * (count - 1) // count, count

    def infer(self, x: ShapedArray, *, axis_sizes: tuple[int, ...],
              axis_index_groups: Groups | None, dimension: int, **params: Hashable) -> ShapedArray:
        self.check(x, dimension, _group_size(axis_sizes, axis_index_groups))
        return x.update(shape=(*x.shape[:dimension], *x.shape[dimension + 1:]))

    def lower(self, b: Builder, x: IrValue, *, axis_name: Names, axis_index_groups: Groups | None,
              dimension: int, **params: Hashable) -> IrValue:
        given = b.avals_in[0]
        if adds_parts(b, given, axis_name, axis_index_groups):
            return sum_of_parts(b, x, given, dimension, axis_name, axis_index_groups)
        out, shape = self.unit(given, dimension), given.shape
        n, rows = (*shape[dimension:], 0)[:2]
        if is_static(shape) and rows:
            # TPUs scatter an axis of their tiles in equal parts faster than one of one entry each.
            shape = (*shape[:dimension], n * rows, *shape[dimension + 2:])
            x = b.op("stablehlo.reshape", [x], None, given.update(shape=shape))
            out = b.avals_out[0]
        aval = b.sum_aval(out)
        if aval is not out:
            x = b.convert(x, aval.update(shape=shape))
        part = _reduce_scatter(b, x, aval, dimension, axis_name, axis_index_groups)
        part = part if aval is out else b.convert(part, out)
        return part if out is b.avals_out[0] else b.op("stablehlo.reshape", [part])

    def transpose(self, ct: Array, x: Linear, **params: Hashable) -> list[Array | None]:
        return [all_gather_p.bind(ct, **params)]

    def vmap_named(self, axis: Axis, args: Sequence[Array], dims: Dims, *, axis_name: Names,
                   axis_sizes: tuple[int, ...], axis_index_groups: Groups | None, dimension: int
                   ) -> tuple[Array, int]:
        (x,), (d,) = args, dims
        if axis_index_groups is not None:
            sums = reduce_sum(grouped(to_front(axis, x, d), axis_index_groups), (1,))
            return ungrouped(move_axis(sums, dimension + 1, 1), axis_index_groups), 0
        total = mul(x, literal(axis.size, typeof(x).dtype)) if d is None else reduce_sum(x, (d,))
        if len(axis_name) == 1:
            return total, dimension
        (before, n, after), rest = _sizes_around(axis, axis_name, axis_sizes)
        total = move_axis(cut(total, dimension, (before, n, after)), dimension + 1, 0)
        return self.bind(merge(total, dimension + 1), dimension=dimension + 1, **rest), 0


class AllGatherReduced(MeshOnly, AllGather):
    """params: all_gather's without groups, and mesh."""

    ring = None  # pyright: ignore[reportAssignmentType]

    def infer(self, x: ShapedArray, *, mesh: AbstractMesh, **params: Any) -> ShapedArray:
        return super().infer(x, **params)

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> ShapedArray:
        return changed(super().inferred(avals, params), params["axis_name"], "varying", "reduced",
                       params["mesh"])

    def transpose(self, ct: Array, x: Linear, **params: Hashable) -> Sequence[Cotangent]:
        return [unreduced_reduce_scatter_p.bind(ct, **params)]


class UnreducedReduceScatter(MeshOnly, ReduceScatter):
    """params: reduce_scatter's without groups, and mesh."""

    ring = None  # pyright: ignore[reportAssignmentType]

    def infer(self, x: ShapedArray, *, mesh: AbstractMesh, **params: Any) -> ShapedArray:
        return super().infer(x, **params)

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> ShapedArray:
        return changed(super().inferred(avals, params), params["axis_name"], "unreduced",
                       "varying", params["mesh"])

    def transpose(self, ct: Array, x: Linear, **params: Hashable) -> Sequence[Cotangent]:
        return [all_gather_reduced_p.bind(ct, **params)]


class AllToAll(Move):
    """x[..., n at `dimension`, ...] -> the same shape: entry k goes to element k, from which our
    entry k comes.
    """

    makes_nan = False
    parts = True

    @staticmethod
    def ring(size: int, count: int) -> tuple[int, int]:
        """Each part the shorter way: count / 4 steps on average, count / 2 for the farthest."""
        return size * count // 4, count // 2

    def infer(self, x: ShapedArray, *, axis_sizes: tuple[int, ...],
              axis_index_groups: Groups | None, dimension: int, **params: Hashable) -> ShapedArray:
        self.check(x, dimension, _group_size(axis_sizes, axis_index_groups))
        return x

    def lower(self, b: Builder, x: IrValue, *, axis_name: Names, axis_sizes: tuple[int, ...],
              axis_index_groups: Groups | None, dimension: int) -> IrValue:
        at, count = b.attr(f"{dimension} : i64"), _group_size(axis_sizes, axis_index_groups)
        return b.op("stablehlo.all_to_all", [x], {
            "split_dimension": at, "concat_dimension": at, "split_count": b.attr(f"{count} : i64"),
            **b.group_attributes(axis_name, axis_index_groups)})

    def transpose(self, ct: Array, x: Linear, **params: Hashable) -> list[Array | None]:
        return [self.bind(ct, **params)]

    def vmap_named(self, axis: Axis, args: Sequence[Array], dims: Dims, *, axis_name: Names,
                   axis_sizes: tuple[int, ...], axis_index_groups: Groups | None, dimension: int
                   ) -> tuple[Array, int]:
        x, at = to_front(axis, args[0], dims[0]), dimension + 1
        if axis_index_groups is not None:
            x = swap(grouped(x, axis_index_groups), 1, at + 1)
            return ungrouped(x, axis_index_groups), 0
        if len(axis_name) == 1:
            return swap(x, 0, at), 0
        (before, n, after), rest = _sizes_around(axis, axis_name, axis_sizes)
        x = swap(cut(x, at, (before, n, after)), 0, at + 1)     # [to, ..., before, from, after, …]
        x = merge(move_axis(x, at + 1, 1), at + 1)              # [to, from, ..., before after, …]
        x = self.bind(x, dimension=at + 1, **rest)
        x = move_axis(cut(x, at + 1, (before, after)), 1, at + 1)
        return merge(merge(x, at), at), 0


class PPermute(Exchange):
    """x -> x of the element that sends to us, or zeros.

    params: perm; axis_name, a tuple of one, or of axes of a mesh.
    """

    makes_nan = False
    pairs = True

    @staticmethod
    def ring(size: int, count: int) -> tuple[int, int]:
        """One step."""
        return size, 1

    def lower(self, b: Builder, x: IrValue, *, axis_name: Names, perm: tuple[tuple[int, int], ...]
              ) -> IrValue:
        if not perm:
            return b.full(b.avals_out[0], 0)
        return b.op("stablehlo.collective_permute", [x], b.permutation_attributes(axis_name, perm))

    def meets(self, params: Params) -> frozenset[Hashable]:
        return super().meets(params) if params["perm"] else frozenset()

    def told(self, differs: frozenset[Hashable], params: Params) -> frozenset[Hashable]:
        senders, receivers = map(set, zip(*params["perm"], strict=True)) if params["perm"] else (
            set(), set())
        # Those that receive nothing get zeros.
        return differs if senders == receivers else differs | frozenset(params["axis_name"])

    def transpose(self, ct: Array, x: Linear, *, axis_name: Names, perm: Sequence[Sequence[int]]
                  ) -> list[Array | None]:
        back = tuple([(dst, src) for src, dst in perm])
        return [self.bind(ct, axis_name=axis_name, perm=back)]

    def vmap_named(self, axis: Axis, args: Sequence[ArrayLike], dims: Dims, *, axis_name: Names,
                   perm: tuple[tuple[int, int], ...]) -> tuple[Array, int]:
        source, reached = _sources(axis.size, perm)
        rows = take_rows(to_front(axis, args[0], dims[0]), source)
        everyone = isinstance(reached, np.ndarray) and reached.all()
        return rows if everyone else where_rows(reached, rows), 0


def _sources(size: int, perm: Sequence[tuple[int, int]]
             ) -> tuple[Array | np.ndarray, Array | np.ndarray]:
    """Per position, where its value comes from, and whether it comes from anywhere."""
    if not is_static((size,)):
        source, numbers = full((size,), -1, np.int32), iota(np.int32, size)
        for src, dst in perm:
            source = select_n(eq(numbers, dst), source, full((size,), src, np.int32))
        return source, ge(source, 0)
    table = np.full(size, -1, np.int32)
    for src, dst in perm:
        table[dst] = src
    return np.maximum(table, 0), table >= 0


def where_rows(mask: ArrayLike, x: Array) -> Array:
    """`x` with zeros for the rows (axes of `mask`) where the mask does not hold."""
    aval = typeof(x)
    wide = broadcast_in_dim(mask, aval.shape, range(typeof(mask).ndim))
    return select_n(wide, broadcast_in_dim(literal(0, aval.dtype), aval.shape, ()), x)


all_gather_p = AllGather("all_gather")
all_gather_invariant_p = AllGatherInvariant("all_gather_invariant")
reduce_scatter_p = ReduceScatter("reduce_scatter")
all_gather_reduced_p = AllGatherReduced("all_gather_reduced")
unreduced_reduce_scatter_p = UnreducedReduceScatter("unreduced_reduce_scatter")
all_to_all_p = AllToAll("all_to_all")
ppermute_p = PPermute("ppermute")


# Several names with groups: everything is gathered, and the group's part is taken -----------------

def gathered(x: ArrayLike, names: Names) -> Array:
    """[n, ...]: `x` of each element, positions row-major over the names."""
    return all_gather_p.bind(varying(x, names), axis_name=names, axis_sizes=sizes_of(names),
                             axis_index_groups=None, dimension=0)


def lookup(table: ArrayLike, index: ArrayLike) -> Array:
    """table[index] at a computed scalar."""
    return dynamic_index_in_dim(table, index, 0, False)


def _of_my_group(x: ArrayLike, names: Names, groups: Groups) -> tuple[Array, Array]:
    """`x` of the members of our group, [members, ...], and our place among them."""
    which, place = group_tables(groups)
    index = axis_index(names)
    members = lookup(np.array(groups, np.int32)[which], index)
    return take_rows(gathered(x, names), members), lookup(place, index)


def _bind(prim: Move, x: ArrayLike, names: Names, groups: Groups | None, dimension: int) -> Array:
    """Bind a primitive; several names with groups are spelled out."""
    if not isinstance(prim, AllGather):     # vmap's trace asks no `infer` before it applies a rule
        prim.check(typeof(x), dimension, _group_size(sizes_of(names), groups))
    if groups is None or len(names) == 1 or of_mesh(names):
        summed = prim is unreduced_reduce_scatter_p
        more = {"mesh": get_abstract_mesh()} if summed or prim is all_gather_reduced_p else {}
        return prim.bind(x if summed else varying(x, names), axis_name=names, dimension=dimension,
                         axis_sizes=sizes_of(names), axis_index_groups=groups, **more)
    rows, place = _of_my_group(x, names, groups)
    if isinstance(prim, AllGather):
        return move_axis(rows, 0, dimension)
    rows = dynamic_index_in_dim(rows, place, dimension + 1, False)
    return reduce_sum(rows, (0,)) if prim is reduce_scatter_p else move_axis(rows, 0, dimension)


# Functions ---------------------------------------------------------------------------------------

def _map_leaves(what: str, x: T, axis_name: Hashable, groups: Sequence[Sequence[int]] | None,
                fun: Callable[[Array, Names, Groups | None], Array]) -> T:
    """`fun(leaf, names, groups)` for each leaf; no names leave the leaves as they are."""
    names = axis_names(what, axis_name)
    groups_by_position = check_groups(what, groups, names)
    return tree_map(lambda leaf: fun(leaf, names, groups_by_position), x) if names else x


def all_gather(x: T, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None,
               axis: int = 0, tiled: bool = False, to: str = "varying") -> T:
    """The values of all elements of a named axis; every element gets them.

    Args:
      x: a pytree of arrays.
      axis_name: a bound axis name, or several; positions are then row-major.
      axis_index_groups: lists of positions of one size that partition the axis; values are
        gathered within each. Default: one group.
      axis: where the new axis is in the result.
      tiled: join the values along the existing `axis` instead.
      to: the type of the result along axes of a mesh; vmap's have none. "varying": each element has
        a value of its own, whose cotangents are summed. "invarying": the elements have one value
        together, and one cotangent. "reduced": one value, and each a term of its cotangent, which
        is unreduced. The last two are without groups.

    Returns:
      A pytree like `x`, its arrays with an axis more, or `axis` as many times as long if `tiled`.

    >>> olympus.vmap(lambda x: olympus.lax.all_gather(x, "i"), axis_name="i")(onp.arange(2))
    Array([[0, 1],
           [0, 1]], dtype=int32)
    """
    if to not in ("varying", "reduced", "invarying"):
        raise ValueError(f"all_gather: to={to!r} given; 'varying', 'reduced' or 'invarying' is "
                         "required.")

    def gather(leaf: Array, names: Names, groups: Groups | None) -> Array:
        ndim = typeof(leaf).ndim
        at = canonical_axis(axis, ndim if tiled else ndim + 1, "all_gather")
        prim = all_gather_p
        if to != "varying" and of_mesh(names):
            if groups is not None:
                raise ValueError(f"all_gather: to={to!r}, axis_index_groups={groups} given for "
                                 f"axes {names} of a mesh; to='varying', or no groups, is "
                                 "required.")
            prim = all_gather_invariant_p if to == "invarying" else (
                all_gather_reduced_p if typed(names) else all_gather_p)
        out = _bind(prim, leaf, names, groups, at)
        return merge(out, at) if tiled else out

    return _map_leaves("all_gather", x, axis_name, axis_index_groups, gather)


def psum_scatter(x: T, axis_name: AxisName, *, scatter_dimension: int = 0,
                 axis_index_groups: AxisIndexGroups = None, tiled: bool = False) -> T:
    """The sum over a named axis, each element getting its part: `psum`, then a slice.

    Args:
      x: a pytree of arrays.
      axis_name, axis_index_groups: as for `all_gather`.
      scatter_dimension: the axis that is shared out; it has one entry per position and goes away.
      tiled: the axis has a multiple of that many entries, and each element keeps its share.
    Returns: A pytree of arrays without `scatter_dimension`, or with 1 / size of it if `tiled`.

    >>> olympus.vmap(lambda x: olympus.lax.psum_scatter(x, "i"), axis_name="i")(onp.eye(2))
    Array([1., 1.], dtype=float32)
    """
    def scatter(leaf: Array, names: Names, groups: Groups | None) -> Array:
        at = canonical_axis(scatter_dimension, typeof(leaf).ndim, "psum_scatter")
        if tiled:
            leaf = _shares("psum_scatter", leaf, at, names, groups)
        prim = reduce_scatter_p
        if typed(names) and unreduced(typeof(leaf), names, "psum_scatter"):
            prim = unreduced_reduce_scatter_p
        return _bind(prim, leaf, names, groups, at)

    return _map_leaves("psum_scatter", x, axis_name, axis_index_groups, scatter)


class Future:
    """A collective that was started; a pytree, so that it may leave a function."""

    __slots__ = ("_result",)

    def __init__(self, result: Array) -> None:
        self._result = result

    def done(self) -> Array:
        """Its result."""
        return self._result


register_pytree_node(Future, lambda future: ((future._result,), None),
                     lambda _, children: Future(*children))


def psum_scatter_start(*args: Any, **kwargs: Any) -> Future:
    """Start a `psum_scatter`; `.done()` of the value returned gives the result.

    Work that is written between the two may overlap with it. Along axes of vmap there is no
    communication to wait for, and XLA orders operations by their operands.

    Args: *args, **kwargs: as for `psum_scatter`.
    Returns: A `Future`; its method `done` gives the sum.

    >>> f = lambda x: olympus.lax.psum_scatter_start(x, "i").done()
    >>> olympus.vmap(f, axis_name="i")(onp.eye(2))
    Array([1., 1.], dtype=float32)
    """
    return Future(psum_scatter(*args, **kwargs))


def _shares(what: str, x: ArrayLike, at: int, names: Names, groups: Groups | None) -> Array:
    """The axis as (positions, share of each)."""
    aval, n = typeof(x), _group_size(sizes_of(names), groups)
    if mod(aval.shape[at], n):
        raise ValueError(f"{what}: operand {aval}, axis {at} given; a multiple of {n} elements on "
                         "it is required.")
    return cut(x, at, (n, floor_div(aval.shape[at], n) if n else 0))


def all_to_all(x: T, axis_name: AxisName, split_axis: int, concat_axis: int, *,
               axis_index_groups: AxisIndexGroups = None, tiled: bool = False) -> T:
    """Each element sends part k of its array to element k, and stacks the parts that it gets.

    Args:
      x: a pytree of arrays.
      axis_name, axis_index_groups: as for `all_gather`.
      split_axis: the axis that is shared out; it has one entry per position and goes away.
      concat_axis: where the new axis, of the parts by sender, is in the result.
      tiled: split `split_axis` into equal parts and join the parts along the existing
        `concat_axis` instead; the rank stays.

    Returns:
      A pytree of arrays of the rank of `x` (the part from element k at index k of `concat_axis`).

    >>> swap = olympus.vmap(lambda x: olympus.lax.all_to_all(x, "i", 0, 0), axis_name="i")
    >>> swap(onp.arange(4).reshape(2, 2))
    Array([[0, 2],
           [1, 3]], dtype=int32)
    """
    def exchange(leaf: Array, names: Names, groups: Groups | None) -> Array:
        ndim = typeof(leaf).ndim
        split = canonical_axis(split_axis, ndim, "all_to_all")
        concat = canonical_axis(concat_axis, ndim, "all_to_all")
        if not tiled:
            return move_axis(_bind(all_to_all_p, leaf, names, groups, split), split, concat)
        out = _bind(all_to_all_p, _shares("all_to_all", leaf, split, names, groups), names, groups,
                    split)
        # [..., senders, share, ...]: the senders go in front of the axis that they are joined on.
        return merge(move_axis(out, split, concat), concat)

    return _map_leaves("all_to_all", x, axis_name, axis_index_groups, exchange)


def pswapaxes(x: T, axis_name: AxisName, axis: int, *,
              axis_index_groups: AxisIndexGroups = None) -> T:
    """Exchange a named axis with an axis of the array, of the same size.

    Args:
      x: a pytree of arrays.
      axis_name, axis_index_groups: as for `all_gather`.
      axis: the axis of the array.

    Returns:
      A pytree of arrays of the shapes of `x`: element i has at index k what element k had at i.

    >>> transpose = olympus.vmap(lambda x: olympus.lax.pswapaxes(x, "i", 0), axis_name="i")
    >>> transpose(olympus.numpy.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def ppermute(x: T, axis_name: AxisName, perm: Sequence[tuple[int, int]]) -> T:
    """Send values along a named axis, each from a source to a destination.

    Args:
      x: a pytree of arrays.
      axis_name: a bound axis name, or several; positions are then row-major.
      perm: pairs (source, destination) of positions, neither repeated. An element that is no
        destination gets zeros.
    Returns: A pytree like `x`. Linear: the cotangent is sent back.

    >>> right = [(0, 1), (1, 2)]
    >>> olympus.vmap(lambda x: olympus.lax.ppermute(x, "i", right), axis_name="i")(onp.arange(1, 4))
    Array([0, 1, 2], dtype=int32)
    """
    names = axis_names("ppermute", axis_name)
    pairs = _permutation_pairs(perm, prod(sizes_of(names)))
    if names and (len(names) == 1 or of_mesh(names)):
        return tree_map(lambda leaf: ppermute_p.bind(varying(leaf, names), axis_name=names,
                                                     perm=pairs), x)
    if not names:
        return x
    source, reached = _sources(prod(sizes_of(names)), pairs)
    index = axis_index(names)

    def permute(leaf: Array) -> Array:
        row = dynamic_index_in_dim(gathered(leaf, names), lookup(source, index), 0, False)
        return where_rows(lookup(reached, index), row)

    return tree_map(permute, x)


def _permutation_pairs(perm: Sequence[Sequence[int]], size: int) -> tuple[tuple[int, int], ...]:
    pairs = []
    for entry in sequence(perm, "ppermute", "perm"):
        if len(pair := positions("ppermute", entry, "an entry of perm")) != 2:
            raise ValueError(f"ppermute: perm {perm} given; pairs (source, destination) are "
                             "required.")
        pairs.append((pair[0], pair[1]))
    for what, members in (("sources", [src for src, _ in pairs]),
                          ("destinations", [dst for _, dst in pairs])):
        if len(set(members)) < len(members) or not all(0 <= i < size for i in members):
            raise ValueError("ppermute: sources and destinations must be unique and of the axis: "
                             f"perm {perm} given; different {what} in [0, {size}) are required.")
    return tuple(pairs)


def pshuffle(x: T, axis_name: AxisName, perm: Sequence[int]) -> T:
    """Values permuted along a named axis: element i gets the value of element perm[i].

    Args:
      x: a pytree of arrays.
      axis_name: a bound axis name, or several; positions are then row-major.
      perm: each position once.
    Returns: A pytree like `x`.

    >>> swap = olympus.vmap(lambda x: olympus.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")
    >>> swap(onp.arange(3))
    Array([2, 0, 1], dtype=int32)
    """
    size = prod(sizes_of(axis_names("pshuffle", axis_name)))
    sources = positions("pshuffle", perm, "perm")
    if sorted(sources) != list(range(size)):
        raise ValueError(f"pshuffle: `perm` does not represent a permutation: {perm}; each "
                         f"position in [0, {size}) once is required.")
    return ppermute(x, axis_name, [(src, dst) for dst, src in enumerate(sources)])
