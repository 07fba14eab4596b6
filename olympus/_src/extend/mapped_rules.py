"""Rules of vmap for a `HiPrim`: its own rules, mapped."""

from __future__ import annotations

from collections.abc import Callable
from itertools import compress

from ..base.typing import MappedAxis, PyTree, Value
from ..base.util import WithAux
from ..core.primitive import Axis, Zero
from ..core.trace import typeof
from ..interpreters.batching import batch_flat, to_axis
from ..lax.shape import reduce_sum
from ..types.avals import AbstractValue, ShapedArray
from ..types.tree import broadcast_prefix, tree_flatten
from ..types.tree_registry import PyTreeDef
from .types import HiPrim


def _is_none(x: object) -> bool:
    return x is None


def unmap_avals(axis_data: Axis, avals: PyTree, dims: PyTree) -> PyTree:
    """The types of mapped values, from the types of one element.

    Args:
      axis_data: the mapped axis, as `batch` gets it.
      avals: a pytree of types.
      dims: the mapped axis of each, or None.

    >>> from types import SimpleNamespace
    >>> from olympus.experimental import hiolympus
    >>> axis = SimpleNamespace(size=3, mesh_axis=None)
    >>> hiolympus.unmap_avals(axis, (olympus.typeof(1.0),) * 2, (0, None))
    (ShapedArray(float32[3], weak_type=True), ShapedArray(float32[], weak_type=True))
    """
    def mapped(aval: ShapedArray, dim: MappedAxis) -> AbstractValue:
        return aval if dim is None else aval.with_axis(dim, axis_data.size, axis_data.mesh_axis)

    leaves, tree = tree_flatten(avals)
    return tree.unflatten(map(mapped, leaves, tree.flatten_up_to(dims)))


def bdims_at_front(axis_data: Axis, args: PyTree, dims: PyTree) -> PyTree:
    """Arrays with their mapped axes in front; those without one are repeated along a new one.

    Args:
      axis_data: the mapped axis, as `batch` gets it.
      args: a pytree of arrays.
      dims: the mapped axis of each, or None.

    >>> from types import SimpleNamespace
    >>> from olympus.experimental import hiolympus
    >>> axis = SimpleNamespace(size=2, mesh_axis=None)
    >>> args = onp.ones((3, 2)), onp.ones(3)
    >>> [x.shape for x in hiolympus.bdims_at_front(axis, args, (1, None))]
    [(2, 3), (2, 3)]
    """
    leaves, tree = tree_flatten(args)
    return tree.unflatten([to_axis(x, d, 0, axis_data.size) for x, d in zip(
        leaves, tree.flatten_up_to(dims), strict=True)])


def vmap_rule(axis_data: Axis, f: Callable[..., PyTree], in_axes: PyTree, out_axes: PyTree, *,
              sum_match: bool = False) -> Callable[..., PyTree]:
    """`f` mapped along the axis that a `batch` rule was given; tangents may be `Zero`.

    Args:
      axis_data: the mapped axis, as `batch` gets it.
      f: a function of pytrees.
      in_axes: a tuple of the mapped axes of the arguments, each a prefix of the argument.
      out_axes: the result's.
      sum_match: add up a mapped result whose axis is None.
    Returns: A function of mapped arguments.

    >>> from types import SimpleNamespace
    >>> from olympus.experimental import hiolympus
    >>> axis = SimpleNamespace(size=3, name=None, mesh_axis=None)
    >>> print(hiolympus.vmap_rule(axis, lambda x, y: x * y, (0, None), 0)(onp.arange(3.0), 2.0))
    [0. 2. 4.]
    """
    axis = Axis(axis_data.size, axis_data.name, axis_data.mesh_axis)

    def zero(x: object) -> bool:
        return type(x) is Zero

    def mapped(*args: PyTree) -> PyTree:
        leaves, in_tree = tree_flatten(args, is_leaf=zero)
        dims = broadcast_prefix(in_axes, in_tree.unflatten(range(len(leaves))), is_leaf=_is_none)
        on = [not zero(x) for x in leaves]

        def flat(*elements: Value) -> tuple[list[Value], tuple[PyTree, PyTree]]:
            rest = iter(elements)
            out = f(*in_tree.unflatten([
                next(rest) if o else Zero(x.aval if d is None else x.aval.without_axis(
                    d, axis.size)) for x, d, o in zip(leaves, dims, on, strict=True)]))
            outs, out_tree = tree_flatten(out, is_leaf=zero)
            return [x for x in outs if not zero(x)], (outs, out_tree)

        with_aux = WithAux(flat)
        results, found_dims = batch_flat(with_aux, axis, list(compress(leaves, on)),
                                         list(compress(dims, on)))
        outs, out_tree = with_aux.aux
        wanted = broadcast_prefix(out_axes, out_tree.unflatten(range(len(outs))),
                                  is_leaf=_is_none)
        rest = iter(zip(results, found_dims, strict=True))
        return out_tree.unflatten([
            (Zero(unmap_avals(axis, x.aval, to)) if zero(x) else
             _placed(*next(rest), to, axis, sum_match))
            for x, to in zip(outs, wanted, strict=True)])

    return mapped


def _placed(x: Value, dim: MappedAxis, to: MappedAxis, axis: Axis, sum_match: bool) -> PyTree:
    """A result with its mapped axis where it is wanted."""
    if dim == to:
        return x
    if to is None:
        if sum_match and typeof(x).is_array:
            return reduce_sum(x, (dim,))
        raise ValueError(f"vmap_rule: a result of type {typeof(x)} is mapped along {dim}, and "
                         "out_axes is None, which is for results that all elements share; give "
                         "its axis, or sum_match=True to add it up.")
    return to_axis(x, dim, to, axis.size)


class VmapOf(HiPrim):
    """An operation mapped by `vmap`, with the operation's rules, mapped.

    Args:
      prim: the operation.
      axis_data: the mapped axis.
      in_dims, out_dim: the mapped axes of arguments and result.
    """

    prim: HiPrim
    axis_data: Axis
    in_dims: MappedAxis
    out_dim: MappedAxis

    def __init__(self, prim: HiPrim, axis_data: Axis, in_dims: PyTree, out_dim: PyTree) -> None:
        axis = Axis(axis_data.size, axis_data.name, axis_data.mesh_axis)
        self.in_avals = unmap_avals(axis, prim.in_avals, in_dims)
        self.out_aval = unmap_avals(axis, prim.out_aval, out_dim)
        self.effects = prim.effects
        self.params = {"prim": prim, "axis_data": axis, "in_dims": in_dims, "out_dim": out_dim}
        super().__init__()

    def _defines(self, rule: str) -> bool:
        return rule != "lin" and self.prim._defines(rule)

    def rule(self, name: str, in_axes: PyTree, out_axes: PyTree, **options: bool) -> PyTree:
        return vmap_rule(self.axis_data, getattr(self.prim, name), in_axes, out_axes, **options)

    def expand(self, *args: PyTree) -> PyTree:
        return self.rule("expand", self.in_dims, self.out_dim)(*args)

    def jvp(self, primals: PyTree, tangents: PyTree) -> PyTree:
        return self.rule("jvp", (self.in_dims, self.in_dims), (self.out_dim, self.out_dim))(
            primals, tangents)

    def vjp_fwd(self, nzs_in: PyTree, /, *args: PyTree) -> PyTree:
        # Where residuals are mapped is found by mapping: all of them are, in front.
        def forward(*args: PyTree) -> tuple[PyTree, PyTree]:
            returned = self.prim.vjp_fwd(nzs_in, *args)
            flags.extend(returned[2:])
            return returned[0], returned[1]

        flags: list[Value] = []
        out, res = vmap_rule(self.axis_data, forward, self.in_dims, (self.out_dim, 0))(*args)
        return out, res, *flags

    def vjp_bwd_retval(self, res: PyTree, outgrad: PyTree, /) -> PyTree:
        return self.rule("vjp_bwd_retval", (0, self.out_dim), self.in_dims, sum_match=True)(
            res, outgrad)

    def batch_dim_rule(self, axis_data: Axis, dims: tuple[PyTree, ...], /) -> PyTree:
        def within(d: MappedAxis, own: MappedAxis) -> PyTree:
            return d - (own < d) if type(d) is int and type(own) is int else d

        def around(d: MappedAxis, own: MappedAxis) -> PyTree:
            return d + (own <= d) if type(d) is int and type(own) is int else d

        inner = self.prim.batch_dim_rule(axis_data, self._dims(within, dims, self.in_dims,
                                                               self.in_tree))
        return self._dims(around, inner, self.out_dim, self.out_tree)

    def _dims(self, change: Callable[[MappedAxis, MappedAxis], MappedAxis], dims: PyTree,
              own: PyTree, tree: PyTreeDef) -> PyTree:
        return tree.unflatten(map(change, tree.flatten_up_to(dims), tree.flatten_up_to(own)))
