"""Collectives: operations along a named axis. Here: reductions, and one element for all.

The trace that binds an axis of vmap replaces a collective along it by array operations along the
mapped axis; along the axes of a mesh devices communicate. `moves` has those that move data.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any

import numpy as np

from ...base.typing import Array, ArrayLike, AxisIndexGroups, AxisName, IrValue, Params, PyTree, T
from ...core import reuse, tags
from ...core.context import MeshAxis
from ...core.ir import OlympusprEqn
from ...core.primitive import Axis, Builder, Cotangent, Linear, Tangent, Zero
from ...core.trace import ctx, literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray, make_aval, physical_aval
from ...types.mesh import AbstractMesh, Mesh, get_abstract_mesh
from ...types.shape import is_static, prod, static_int
from ...types.tree import tree_map
from ..arithmetic import div, mul
from ..comparison import eq
from ..convert import convert_element_type
from ..families import to_front
from ..reduce import reduce_max, reduce_min
from ..shape import expand_dims, reduce_sum, reshape
from ..slicing import concatenate, index_in_dim, slice_in_dim
from .axes import (
    Exchange, Groups, MeshOnly, Names, axis_index, axis_names, axis_size, check_groups, device_axes,
    group_tables, of_mesh, sizes_of, take_rows, typed, varying,
)
from .moves import adds_parts, gathered, lookup, sum_of_parts, where_rows
from .states import changed, state, unreduced

# Elements up to which two collectives of half the bytes start later than one of float32 ends.
FEW_TO_SEND = 1 << 18


class Reduction(Exchange, abstract=True):
    """psum, pmax, pmin: reduce over named axes; every element gets the result."""

    names = "axes"

    @staticmethod
    def ring(size: int, count: int) -> tuple[int, int]:
        """Once around to sum the parts, once to hand the sums on."""
        return 2 * (size * (count - 1) // count), 2 * count

    def __init__(self, name: str, reduce: Callable[[Array, Sequence[int]], Array], combiner: str
                 ) -> None:
        super().__init__(name)
        self.reduce, self.combiner = reduce, combiner

    def varying(self, vma: frozenset[Hashable], params: Params) -> frozenset[Hashable]:
        return vma if params.get("axis_index_groups") else vma - frozenset(params["axes"])

    def lower(self, b: Builder, x: IrValue, *, axes: Names, axis_index_groups: Groups | None = None
              ) -> IrValue:
        aval = b.avals_in[0]
        # XLA moves a sum over devices of a loop's total behind the loop: such a sum stays whole.
        around = b.module.nest.eqns
        if self.reduce is reduce_sum and is_static(aval.shape) and aval.size >= FEW_TO_SEND and (
                around and all(e.primitive.per_device or e.primitive.called for e in around)
                and adds_parts(b, aval, axes, axis_index_groups)):
            n = len(b.replica_groups(axes, axis_index_groups)[0])
            if aval.size % n == 0:
                return self._by_parts(b, x, n, axes, axis_index_groups)
        return b.all_reduce(self.combiner, x, aval, axes, axis_index_groups)

    def _by_parts(self, b: Builder, x: IrValue, n: int, names: Names, groups: Groups | None
                  ) -> IrValue:
        """Each device adds its part of an array, and hands it on, in 16 bits both times."""
        aval = b.avals_in[0]
        rows = aval.update(shape=(n, aval.size // n))
        part = sum_of_parts(b, b.op("stablehlo.reshape", [x], None, rows), rows, 0, names, groups)
        whole = b.op("stablehlo.all_gather", [part], {
            "all_gather_dim": b.attr("0 : i64"), "use_global_device_ids": b.attr("unit"),
            **b.group_attributes(names, groups)}, rows.update(shape=(aval.size,)))
        return b.op("stablehlo.reshape", [whole])

    def vmap_named(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
                   axes: Names, axis_index_groups: Groups | None = None, **params: Hashable
                   ) -> tuple[Array, int | None]:
        (x,), (d,) = args, dims
        if axis_index_groups is not None:
            results = reduced_groups(self, to_front(axis, x, d), axis_index_groups)
            return take_rows(results, group_tables(axis_index_groups)[0]), 0
        if d is not None:
            x = self.reduce(x, (d,))
        elif self.reduce is reduce_sum:
            x = mul(x, literal(axis.size, typeof(x).dtype))
        rest = tuple(a for a in axes if a != axis.name)
        return (summed(x, rest) if self.reduce is reduce_sum else
                self.bind(x, axes=rest, axis_index_groups=None)) if rest else x, None


class Sum(Reduction):
    """Each element's cotangent is a contribution to all elements'."""

    def transpose(self, ct: Array, x: Linear, **params: Hashable) -> list[Array | None]:
        return [self.bind(ct, **params)]


class InvariantSum(Reduction):
    """A sum along axes of a mesh. params: axes.

    Its type says that it is one value for all devices, and so is its cotangent.
    """

    def transpose(self, ct: Array, x: Linear, *, axes: Names) -> list[Cotangent]:
        return [tags.pvary(ct, frozenset(axes))]


class Extremum(Reduction):
    """Its tangent is the extreme element's; ties share equally."""

    linear = ()
    makes_nan = False

    def lower(self, b: Builder, x: IrValue, *, axes: Names, axis_index_groups: Groups | None
              ) -> IrValue:
        kind = dtypes.scalar_kind(b.avals_in[0].dtype)
        if kind == "f" and b.module.platform in ("cpu", None):
            return self._by_bits(b, x, axes, axis_index_groups)
        if kind != "c":
            return super().lower(b, x, axes=axes, axis_index_groups=axis_index_groups)
        # XLA reduces no complex numbers to the largest.
        with device_axes(axes, [b.manual_axes(axes).mesh.shape[name] for name in axes]):
            return b.inline(functools.partial(of_gathered, self), x, names=axes,
                            groups=axis_index_groups)

    def _by_bits(self, b: Builder, x: IrValue, axes: Names, groups: Groups | None) -> IrValue:
        """By integers in the order of the floats: XLA:CPU's collectives (0.12.0.1) drop NaN."""
        out = b.avals_in[0]
        dtype = dtypes.as_dtype("float64" if out.dtype.itemsize == 8 else "float32")
        bits = dtypes.itemsize_bits(dtype)
        values, keys = out.update(dtype=dtype), out.update(dtype=dtypes.as_dtype(f"int{bits}"))
        rest = b.full(keys, 2 ** (bits - 1) - 1)    # all bits but the sign

        def ordered(i: IrValue) -> IrValue:     # and back
            sign = b.op("stablehlo.shift_right_arithmetic", [i, b.full(keys, bits - 1)], None, keys)
            return b.op("stablehlo.xor", [i, b.op("stablehlo.and", [sign, rest], None, keys)],
                        None, keys)

        x = x if out.dtype == dtype else b.convert(x, values)
        missing = b.compare("NE", x, x, "FLOAT", values.update(dtype=dtypes.as_dtype(bool)))
        top = rest if self is pmax_p else b.full(keys, -2 ** (bits - 1))    # decoded, NaN
        key = b.op("stablehlo.select", [missing, top, ordered(
            b.op("stablehlo.bitcast_convert", [x], None, keys))], None, keys)
        key = b.all_reduce(self.combiner, key, keys, axes, groups)
        number = b.op("stablehlo.bitcast_convert", [ordered(key)], None, values)
        return number if out.dtype == dtype else b.convert(number, out)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Array], **params: Any
            ) -> tuple[Array, Tangent]:
        (x,), (t,) = primals, tangents
        out = self.bind(x, **params)
        winner = equal_to(x, out)
        count = summed(winner, **params)
        return out, summed(mul(div(winner, count), t), **params)

    transpose = None


def summed(x: Array, axes: Sequence[Hashable], axis_index_groups: Groups | None = None) -> Array:
    """The sum over named axes, of vmap or a mesh; each element's group's, if there are groups."""
    of_mesh = tuple([] if axis_index_groups else
                    [a for a in axes if type(ctx.axes.get(a)) is MeshAxis])
    rest = tuple([a for a in axes if a not in of_mesh])
    if rest:
        x = psum_p.bind(x, axes=rest, axis_index_groups=axis_index_groups)
    return psum_invariant_p.bind(tags.pvary(x, frozenset(of_mesh)), axes=of_mesh) if of_mesh else x


def reduced_groups(prim: Reduction, rows: Array, groups: Groups) -> Array:
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


def of_gathered(prim: Reduction, x: ArrayLike, names: Names, groups: Groups | None) -> Array:
    """A reduction as one over all elements' values; each takes its group's."""
    if groups is None:
        return prim.reduce(gathered(x, names), (0,))
    results = reduced_groups(prim, gathered(x, names), groups)
    return lookup(results, lookup(group_tables(groups)[0], axis_index(names)))


def equal_to(x: Array, y: Array) -> Array:
    """1 where equal, 0 elsewhere, in x's dtype."""
    return convert_element_type(eq(x, y), typeof(x).dtype)


class PBroadcast(Exchange):
    """Every element gets the value of one. params: axis_name (one, in a tuple), source."""

    makes_nan = False

    def lower(self, b: Builder, x: IrValue, *, axis_name: Names, source: int) -> IrValue:
        """The sum of its bits and the others' zeros: XLA broadcasts on some platforms only."""
        aval = physical_aval(b.avals_out[0])
        here = b.compare("EQ", b.position(axis_name[0]), b.scalar(source, np.dtype(np.int32)),
                         "SIGNED", make_aval((), dtypes.as_dtype(bool)))

        def sent(x: IrValue, aval: ShapedArray) -> IrValue:
            bits = aval
            if dtypes.is_floating(aval.dtype):
                bits = aval.update(dtype=dtypes.as_dtype(f"uint{dtypes.itemsize_bits(aval.dtype)}"))
                x = b.op("stablehlo.bitcast_convert", [x], None, bits)
            mine = b.op("stablehlo.select", [here, x, b.full(bits, 0)], None, bits)
            total = b.all_reduce("stablehlo.add", mine, bits, axis_name)
            return total if bits is aval else b.op("stablehlo.bitcast_convert", [total], None, aval)

        if not dtypes.is_complex(aval.dtype):
            return sent(x, aval)
        part = aval.update(dtype=dtypes.as_dtype(f"float{dtypes.itemsize_bits(aval.dtype) // 2}"))
        return b.op("stablehlo.complex", [
            sent(b.op(f"stablehlo.{which}", [x], None, part), part) for which in ("real", "imag")])

    def transpose(self, ct: Array, x: Linear, *, axis_name: Names, source: int
                  ) -> list[Array | None]:
        total = summed(ct, axis_name)
        here = eq(axis_index(axis_name), source)
        return [where_rows(here, total)]

    def vmap_named(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
                   axis_name: Names, source: int) -> tuple[Array, int | None]:
        (x,), (d,) = args, dims
        return (x if d is None else index_in_dim(x, source, d, False)), None


class PVary(MeshOnly, Exchange):
    """params: axes. The same value, of a type that varies along these axes of a mesh, too."""

    names = "axes"
    cells = staticmethod(reuse.same)
    makes_nan = False
    waits = False
    pace = 0.3

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> ShapedArray:
        return avals[0].update(vma=avals[0].vma | frozenset(params["axes"]))

    def lower(self, b: Builder, x: IrValue, *, axes: Names) -> IrValue:
        return x

    def transpose(self, ct: Array, x: Linear, *, axes: Names) -> list[Array | None]:
        """A value that all devices have alike gets the sum of their contributions."""
        # When a program runs again on values that vary already, this is no cast any more.
        alike = tuple([a for a in axes if a not in typeof(x).vma])
        ct = tags.pvary(ct, frozenset(alike))
        return [psum_invariant_p.bind(ct, axes=alike) if alike else ct]


class Cast(MeshOnly, Exchange):
    """params: axes, mesh."""

    names = "axes"
    cells = staticmethod(reuse.same)
    makes_nan = False
    waits = False

    def __init__(self, name: str, start: str, end: str) -> None:
        super().__init__(name)
        self.start, self.end = start, end

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> ShapedArray:
        return changed(avals[0], params["axes"], self.start, self.end, params["mesh"])

    def shown(self, eqn: OlympusprEqn) -> Params:
        return {"axes": eqn.params["axes"]}

    def lower(self, b: Builder, x: IrValue, **params: Hashable) -> IrValue:
        return x

    def transpose(self, ct: Array, x: Linear, *, axes: Names, mesh: AbstractMesh
                  ) -> Sequence[Cotangent]:
        if self is to_reduced_p:
            return [unreduced_sum_p.bind(ct, axes=axes, mesh=mesh)]
        back = to_unreduced_p if self is reduced_to_varying_p else reduced_to_varying_p
        return [back.bind(ct, axes=axes, mesh=mesh)]


class UnreducedSum(MeshOnly, Reduction):
    """psum of an unreduced value. params: axes, mesh."""

    ring = None  # pyright: ignore[reportAssignmentType]

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> ShapedArray:
        return changed(avals[0], params["axes"], "unreduced", "invarying", params["mesh"])

    def lower(self, b: Builder, x: IrValue, *, axes: Names, mesh: AbstractMesh) -> IrValue:
        return super().lower(b, x, axes=axes)

    def transpose(self, ct: Array, x: Linear, **params: Hashable) -> Sequence[Cotangent]:
        return [to_reduced_p.bind(ct, **params)]


pvary_p = PVary("pvary")
psum_p = Sum("psum", reduce_sum, "stablehlo.add")
psum_invariant_p = InvariantSum("psum_invariant", reduce_sum, "stablehlo.add")
pmax_p = Extremum("pmax", reduce_max, "stablehlo.maximum")
pmin_p = Extremum("pmin", reduce_min, "stablehlo.minimum")
pbroadcast_p = PBroadcast("pbroadcast")
to_reduced_p = Cast("preduced", "invarying", "reduced")
to_unreduced_p = Cast("vary_unreduced_cast", "varying", "unreduced")
reduced_to_varying_p = Cast("reduced_vary_cast", "reduced", "varying")
unreduced_sum_p = UnreducedSum("unreduced_psum", reduce_sum, "stablehlo.add")
CASTS = {(p.start, p.end): p for p in (to_reduced_p, to_unreduced_p, reduced_to_varying_p)}


def recast(x: T, axes: Collection[Hashable], start: str, end: str, mesh: Mesh | AbstractMesh) -> T:
    """`x` with axes in another state."""
    if not axes:
        return x
    return CASTS[start, end].bind(x, axes=tuple(sorted(axes, key=str)), mesh=mesh)


def fit(ct: Any, aval: ShapedArray) -> Any:
    """The cotangent of a value of this type.

    What devices contribute to a value that they have alike is summed, or left to be summed where
    the value is reduced.
    """
    if type(ct) is Zero or not isinstance(own := typeof(ct), ShapedArray):
        return ct
    alike = own.vma - aval.vma
    reduced = alike & aval.sums[1]
    if reduced:
        ct = recast(ct, reduced, "varying", "unreduced", aval.sharding.mesh)
    rest = tuple(sorted(alike - reduced, key=str))
    return psum_invariant_p.bind(ct, axes=rest) if rest else ct


tags.install_casts(pvary_p, recast)


def _reduction(prim: Reduction, x: T, axis_name: AxisName,
               axis_index_groups: Sequence[Sequence[int]] | None) -> T:
    names = axis_names(prim.name, axis_name)
    groups = check_groups(prim.name, axis_index_groups, names, equal=False)

    def reduce(leaf: Array) -> Array:
        if prim is psum_p and typeof(leaf).dtype == np.bool_:
            leaf = convert_element_type(leaf, np.int32)
        if groups is not None and len(names) > 1 and not of_mesh(names):
            return of_gathered(prim, leaf, names, groups)
        if prim is psum_p and typed(names) and unreduced(typeof(leaf), names, "psum"):
            return unreduced_sum_p.bind(leaf, axes=names, mesh=get_abstract_mesh())
        leaf = varying(leaf, names)
        return summed(leaf, names, groups) if prim is psum_p else (
            prim.bind(leaf, axes=names, axis_index_groups=groups))

    return tree_map(reduce, x) if names else x


def psum(x: T, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> T:
    """Sum over a named axis; every element gets the sum.

    Args:
      x: a pytree of arrays; booleans are counted, as int32. A Python number is multiplied by the
        axis size, so `psum(1, name)` is that size, an int.
      axis_name: a bound axis name, or several.
      axis_index_groups: lists of positions that partition the axis; sums are within each.
    Returns: A pytree like `x`; an int for a Python number and a static axis.

    >>> olympus.vmap(lambda x: x / olympus.lax.psum(x, "i"), axis_name="i")(onp.array([1., 3.]))
    Array([0.25, 0.75], dtype=float32)
    """
    if isinstance(x, (int, float, complex)):
        total: Any = x * _group_size("psum", axis_name, axis_index_groups)
        return total
    return _reduction(psum_p, x, axis_name, axis_index_groups)


def _group_size(what: str, axis_name: Hashable, axis_index_groups: Sequence[Sequence[int]] | None
                ) -> int | Array:
    """How many elements each reduces with: an int, or traced where groups differ in size."""
    names = axis_names(what, axis_name)
    groups = check_groups(what, axis_index_groups, names, equal=False)
    if groups is None:
        return axis_size(names)
    sizes = np.array(list(map(len, groups)), np.int32)
    if len(set(sizes.tolist())) == 1:
        return int(sizes[0])
    return lookup(sizes[group_tables(groups)[0]], axis_index(names))


def pmean(x: T, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> T:
    """The mean over a named axis; every element gets it.

    Args:
      x: a pytree of arrays; integers become floats.
      axis_name: a bound axis name, or several.
      axis_index_groups: lists of positions that partition the axis; means are within each.
    Returns: A pytree of floating or complex arrays of the shapes of `x`; a Python number for one,
      as for `psum`.

    >>> centre = lambda x: x - olympus.lax.pmean(x, "i")
    >>> olympus.vmap(centre, axis_name="i")(olympus.numpy.arange(3))
    Array([-1.,  0.,  1.], dtype=float32)
    """
    total = psum(x, axis_name, axis_index_groups=axis_index_groups)
    count = _group_size("pmean", axis_name, axis_index_groups)

    def mean(leaf: Any) -> PyTree:
        if isinstance(leaf, (int, float, complex)):
            return leaf / count
        leaf = to_inexact(leaf)
        return div(leaf, count if isinstance(count, int) else
                   convert_element_type(count, typeof(leaf).dtype))

    return tree_map(mean, total)


def pmax(x: T, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> T:
    """The maximum over a named axis; every element gets it.

    Args:
      x: a pytree of arrays; NaN where one is.
      axis_name: a bound axis name, or several.
      axis_index_groups: lists of positions that partition the axis; maxima are within each.
    Returns: A pytree like `x`; the derivative goes to the elements that are largest.

    >>> is_largest = lambda x: x == olympus.lax.pmax(x, "i")
    >>> olympus.vmap(is_largest, axis_name="i")(olympus.numpy.arange(3))
    Array([False, False,  True], dtype=bool)
    """
    return _reduction(pmax_p, x, axis_name, axis_index_groups)


def pmin(x: T, axis_name: AxisName, *, axis_index_groups: AxisIndexGroups = None) -> T:
    """The minimum over a named axis; every element gets it.

    Args:
      x: a pytree of arrays; NaN where one is.
      axis_name: a bound axis name, or several.
      axis_index_groups: lists of positions that partition the axis; minima are within each.
    Returns: A pytree like `x`; the derivative goes to the elements that are smallest.

    >>> above = lambda x: x - olympus.lax.pmin(x, "i")
    >>> olympus.vmap(above, axis_name="i")(olympus.numpy.array([3, 1, 2]))
    Array([2, 0, 1], dtype=int32)
    """
    return _reduction(pmin_p, x, axis_name, axis_index_groups)


def pbroadcast(x: T, axis_name: AxisName, source: int) -> T:
    """The value of element `source` of a named axis; every element gets it.

    Args:
      x: a pytree of arrays.
      axis_name: a bound axis name, or several; positions are then row-major.
      source: a position.
    Returns: A pytree like `x`.

    >>> olympus.vmap(lambda x: olympus.lax.pbroadcast(x, "i", 2), axis_name="i")(onp.arange(3))
    Array([2, 2, 2], dtype=int32)
    """
    names = axis_names("pbroadcast", axis_name)
    sizes, source = sizes_of(names), static_int(source, "pbroadcast", "source")
    if not 0 <= source < prod(sizes):
        raise ValueError(f"pbroadcast: source {source} given; a position in [0, {prod(sizes)}) is "
                         "required.")

    def broadcast(leaf: Array) -> Array:
        place = source
        for name, size in zip(reversed(names), reversed(sizes), strict=True):
            place, here = divmod(place, size) if len(names) > 1 else (0, place)
            leaf = pbroadcast_p.bind(varying(leaf, [name]), axis_name=(name,), source=here)
        return leaf

    return tree_map(broadcast, x)


def pcast(x: T, axis_name: AxisName, *, to: str) -> T:
    """Cast `x` to another kind along a named axis; its numbers stay.

    Args:
      x: a pytree of arrays.
      axis_name: a bound axis name, or several.
      to: "varying": as if each element had a value of its own, though all are equal; the cotangent
        is then summed over the axis. "reduced", of one value for all: the cotangent is a sum that
        is not taken yet (unreduced). "unreduced", of values that vary: they are terms of a sum that
        is not taken yet; `psum` and `psum_scatter` take it. Types of vmap's axes say nothing, and
        it is `x` there; "unreduced" is for meshes only.
    Returns: A pytree like `x`.

    Operations cast operands that vary along fewer axes of a mesh than others by themselves; a
    loop's carry may need it. ValueError for a value that is no such thing along the axes.

    >>> f = lambda x: olympus.lax.pcast(x, "i", to="varying") + 1
    >>> olympus.vmap(f, axis_name="i")(olympus.numpy.arange(2))
    Array([1, 2], dtype=int32)
    """
    names = axis_names("pcast", axis_name)
    if to not in ("varying", "reduced") and (to != "unreduced" or not of_mesh(names)):
        remedy = "sum with psum" if to == "unreduced" else "see its documentation"
        raise ValueError(f"pcast: to={to!r} given; 'varying' or 'reduced' is required, or "
                         f"'unreduced' for axes of a mesh; {remedy}.")
    known = frozenset([n for n in names if typed([n])])
    return tree_map(lambda leaf: cast_along(leaf, known, to), x) if known else x


def cast_along(x: T, axes: frozenset[Hashable], to: str) -> T:
    """`x` in another state along axes of the ambient mesh; ValueError if no cast leads there."""
    start = state(typeof(x), axes, "pcast")
    if (start, to) == ("invarying", "varying"):
        return tags.pvary(x, axes)
    if (start, to) not in CASTS:
        raise ValueError(f"pcast: {typeof(x)} given, which along {sorted(map(str, axes))} is "
                         f"{start}, to={to!r}; casts are invarying to varying or reduced, varying "
                         "to unreduced, and reduced to varying; sum with psum, or leave it.")
    return recast(x, axes, start, to, get_abstract_mesh())


def to_inexact(x: Array) -> Array:
    """`x` in a floating or complex dtype."""
    dtype = dtypes.to_inexact_dtype(typeof(x).dtype)
    return x if dtype == typeof(x).dtype else convert_element_type(x, dtype)
