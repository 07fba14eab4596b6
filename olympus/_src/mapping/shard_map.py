"""`shard_map`: a function written for one device of a mesh, run by all devices on their parts."""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Any, NoReturn, overload

from ..base.source import filter_traceback
from ..base.typing import ArrayLike, P, PyTree, R
from ..base.util import lazy_imports, name_of, quoted, wraps
from ..control.bodies import Derived, check_aliases, flatten, stage_body
from ..control.manual_trace import ManualTrace
from ..control.shard_map import Manual, ShardMap, shard_map_p
from ..core.context import ctx
from ..core.trace import enter, leave, typeof
from ..interpreters.batching import BatchTracer
from ..interpreters.jvp import JVPTracer
from ..jit.arguments import check_callable, leaf_name, structure_path
from ..types.avals import MUTABLE, Aval, ShapedArray
from ..types.mesh import AbstractMesh, AxisType, Mesh, current_mesh, get_abstract_mesh
from ..types.shape import mod
from ..types.sharding import (
    Entry, NamedSharding, PartitionSpec, axes_of, entry_of, named_axes, told_axes,
)
from ..types.tree import flatten_axes, keystr, tree_flatten, tree_leaves_with_path, tree_map
from ..types.tree_registry import PyTreeDef

with lazy_imports(__name__):       # where there are references
    from ..core import cells as _cells


class _Infer:
    """The default of `in_specs`: arguments are cut as their types say."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "olympus.sharding.Infer"

    def __reduce__(self) -> str:
        return "Infer"      # by name: `is Infer` has to hold of an unpickled one


Infer = _Infer()


@overload
def shard_map(f: Callable[P, R], /, *, out_specs: PyTree, in_specs: PyTree = Infer,
              mesh: Mesh | AbstractMesh | None = None,
              axis_names: Collection[Hashable] = frozenset(), check_vma: bool = True
              ) -> Callable[P, R]: ...


@overload
def shard_map(f: None = None, /, *, out_specs: PyTree, in_specs: PyTree = Infer,
              mesh: Mesh | AbstractMesh | None = None,
              axis_names: Collection[Hashable] = frozenset(), check_vma: bool = True
              ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def shard_map(f: Callable[..., PyTree] | None = None, /, *, out_specs: PyTree,
              in_specs: PyTree = Infer, mesh: Mesh | AbstractMesh | None = None,
              axis_names: Collection[Hashable] = frozenset(), check_vma: bool = True
              ) -> Callable[..., PyTree]:
    """Turn `f`, the program of one device of a mesh, into a function of whole arrays.

    Args:
      f: a function of positional pytrees of arrays. It takes each device's part, and returns that
        device's part of the results; devices communicate by collectives (`lax.psum`, ...) along the
        axes of the mesh. Without it, a decorator is returned.
      out_specs: how the parts are joined: a `PartitionSpec`, or a pytree of those that is a prefix
        of the structure of the results. Along mesh axes that a specification does not name, all
        devices must have the same part, and one of them is taken.
      in_specs: how arguments are cut: a `PartitionSpec`, or a pytree of those that is a prefix of
        the tuple of arguments. Devices along axes that are not named get the same part. None stands
        for an argument that is not an array. The default takes the cuts from the arguments' types,
        along explicit axes.
      mesh: the devices; the ambient mesh (`olympus.set_mesh`) by default.
      axis_names: a set of those axes along which `f` is a program of one device; XLA, or types,
        say how values are cut along the others. All axes of the mesh by default.
      check_vma: whether types say along which axes a value varies. Only then results are checked
        to be the same along axes that `out_specs` does not name, and derivatives add up over
        devices no more than they must.
    Returns: A function of the same positional arguments, or a decorator.

    ValueError for axes that the mesh has not, for arrays with fewer axes than their specification
    or that cannot be cut evenly, and for results that may vary along an axis that their
    specification does not name; TypeError for anything but a specification.

    >>> from olympus.sharding import PartitionSpec as P
    >>> mesh = olympus.make_mesh((1,), ("x",))
    >>> @olympus.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P())
    ... def total(part):
    ...     return olympus.lax.psum(part.sum(), "x")
    >>> print(total(onp.arange(8.0)))
    28.0
    """
    if f is None:
        return functools.partial(shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh,
                                 axis_names=axis_names, check_vma=check_vma)
    return mapped_by(shard_map_p, "shard_map", f, mesh, in_specs, out_specs, axis_names, check_vma)


@overload
def smap(f: Callable[P, R], /, *, in_axes: PyTree = Infer, out_axes: PyTree, axis_name: Hashable
         ) -> Callable[P, R]: ...


@overload
def smap(f: None = None, /, *, in_axes: PyTree = Infer, out_axes: PyTree, axis_name: Hashable
         ) -> Callable[[Callable[P, R]], Callable[P, R]]: ...


def smap(f: Callable[..., PyTree] | None = None, /, *, in_axes: PyTree = Infer, out_axes: PyTree,
         axis_name: Hashable) -> Callable[..., PyTree]:
    """`shard_map` along one axis of the ambient mesh, with array axes in place of specifications.

    Args:
      f: a function of positional pytrees of arrays; without it, a decorator is returned.
      in_axes: per positional argument the axis that is cut, or None for one that all devices get
        whole; one int serves all. By default as the types of the arguments say it.
      out_axes: the axis along which the parts of results are put together, or None for one that is
        the same on all devices; or a pytree of those that is a prefix of the results' structure.
      axis_name: the axis of the mesh.
    Returns: A function of the same positional arguments, or a decorator.

    >>> with olympus.set_mesh(olympus.make_mesh((1,), ("x",))):
    ...     x = olympus.reshard(onp.arange(3), olympus.P("x"))
    ...     print(olympus.smap(lambda x: x * 2, in_axes=0, out_axes=0, axis_name="x")(x))
    [0 2 4]
    """
    if f is None:
        return functools.partial(smap, in_axes=in_axes, out_axes=out_axes, axis_name=axis_name)
    if isinstance(axis_name, (list, tuple)):
        raise TypeError(f"smap: axis_name {axis_name} given; a str or another hashable name of one "
                        "axis is required; nest smap for several.")
    if not (in_axes is None or in_axes is Infer or isinstance(in_axes, (int, tuple))):
        raise TypeError(f"smap: in_axes {in_axes!r} given; an int, None, or a tuple of entries for "
                        "the positional arguments is required.")
    for what, axes in (("in_axes", in_axes), ("out_axes", out_axes)):
        # None is a node without leaves: all leaves have to be ints.
        if axes is not Infer and not all(isinstance(i, int) for i in tree_flatten(axes)[0]):
            raise TypeError(f"smap: {what} {axes!r} given; an int, None, or a container with those "
                            "as leaves is required.")

    def spec(axis: int | None) -> PartitionSpec:
        return PartitionSpec() if axis is None else PartitionSpec(*[None] * axis, axis_name)

    def specs(axes: object) -> object:
        return axes if axes is Infer else tree_map(spec, axes, is_leaf=lambda x: x is None)

    return mapped_by(shard_map_p, "smap", f, None, specs(in_axes), specs(out_axes), {axis_name},
                     True)


def mapped_by(prim: ShardMap, what: str, fun: Callable[..., PyTree], mesh: object,
              in_specs: object, out_specs: object, axis_names: object, check: bool
              ) -> Callable[..., PyTree]:
    """The function of whole arrays for all of these, by one of the primitives."""
    check_callable(what, fun)
    # Taken as a pytree, a list would be a prefix of no tuple of arguments.
    if isinstance(in_specs, list):
        in_specs = tuple(in_specs)

    # The mesh is the one at the call, not at the definition: `set_mesh` may come in between.
    @wraps(fun)
    def mapped(*args: PyTree) -> object:
        try:
            manual = _manual_axes(what, mesh, axis_names, check, _mapped_axes(args))
            return _Application(prim, what, fun, manual, args, in_specs, out_specs).run()
        except Exception as error:
            filter_traceback(error)
            raise

    return mapped


def _mapped_axes(args: tuple) -> set[Hashable]:
    """The explicit axes of a mesh along which vmaps around map over arguments."""
    axes: set[Any] = set()
    x: Any
    for x in tree_flatten(args)[0]:
        # Tracers are nested as transformations are; each vmap's tracer knows its own axis.
        while type(x) in (BatchTracer, JVPTracer):
            outer = x._val if type(x) is BatchTracer else x._primal
            if type(x) is BatchTracer and typeof(outer).explicit:
                axes.update(axes_of(typeof(outer).sharding.spec[x._dim]))
            x = outer
    return axes


def _manual_axes(what: str, mesh: object, axis_names: object, check: bool, mapped: set[Hashable]
                 ) -> Manual:
    """The mesh of a call, and its axes that become manual: not the axes of enclosing vmaps."""
    around = get_abstract_mesh()
    if mesh is None:
        mesh = around if not around.empty else current_mesh() or around
        if mesh.empty:
            raise ValueError(f"{what}: mesh=None given. The context mesh cannot be empty then; "
                             "give a mesh, or call it within olympus.set_mesh(mesh).")
    elif not isinstance(mesh, (Mesh, AbstractMesh)):
        raise TypeError(f"{what}: mesh {mesh!r} of type {type(mesh).__name__} given; a Mesh or an "
                        "AbstractMesh is required; see olympus.make_mesh.")
    elif mesh.empty:
        raise ValueError(f"{what} requires a non-empty mesh; {mesh} given; see "
                         "olympus.make_mesh.")
    elif not around.empty and mesh.abstract_mesh != around:
        raise ValueError(f"{what}: the context mesh {around} should match the mesh passed to "
                         f"shard_map, {mesh}; leave mesh= out to use the first.")
    if not isinstance(axis_names, (set, frozenset)):
        raise TypeError(f"{what}: axis_names {axis_names!r} of type {type(axis_names).__name__} "
                        "given; a set is required; write {'x'}.")
    # An axis is manual once: the axes of an enclosing shard_map are taken, and along an enclosing
    # vmap's each device has its own examples already.
    free = frozenset(mesh.axis_names) - set(mesh.manual_axes) - mapped
    names = frozenset(axis_names) or free
    if not names <= free:
        raise ValueError(f"olympus.{what} requires axis_names={quoted(names)} to be a subset of "
                         f"the axes that are not taken yet, {quoted(free) or 'none'}; the mesh is "
                         f"{mesh}; name others, or make them axes of the mesh.")
    if not names:
        raise ValueError(f"{what}: all axes of {mesh} are manual already; a mesh with others is "
                         "required; call the function itself.")
    return Manual(mesh, names, check)


def is_high_spec(spec: object) -> bool:
    """Whether a specification describes a value of a user's type: a `HiPspec`."""
    return hasattr(type(spec), "to_lo")


class _Application:
    """A mapped function and its arguments, as messages name them."""

    def __init__(self, prim: ShardMap, what: str, fun: Callable[..., PyTree], manual: Manual,
                 args: tuple, in_specs: PyTree, out_specs: PyTree) -> None:
        self.prim, self.what, self.fun, self.manual, self.args = prim, what, fun, manual, args
        self.in_specs, self.out_specs = in_specs, out_specs

    def run(self) -> PyTree:
        manual, args = self.manual, self.args
        # Specifications before arguments: their faults are faults of every call.
        self._check_specs("in_specs", self.in_specs)
        self._check_specs("out_specs", self.out_specs)
        leaves, tree = tree_flatten(args)
        specs: list[Any] = ([Infer] * len(leaves) if self.in_specs is Infer else
                 flatten_axes(f"{self.what} in_specs", tree, self.in_specs))
        # An argument whose specification is None is no operand: the function gets it as it is.
        has_spec = [s is not None for s in specs]
        arrays, avals, _ = flatten(self.what, [x for x, g in zip(leaves, has_spec) if g])
        if self.in_specs is Infer:
            specs = [self._inferred(a) for a in avals]
        mapped = [i for i, g in enumerate(has_spec) if g]
        ins = tuple([s for s in specs if s is not None])
        for i, spec, aval in zip(mapped, ins, avals, strict=True):
            self._check_argument(i, spec, aval)
        check_aliases(self.what, self.fun, (), leaves, tree)
        whole = any(a.mutable or a.is_high for a in avals) or any(
            map(is_high_spec, tree_flatten(self.out_specs)[0]))
        if not whole and self._sees_values():
            return self._run_eagerly(leaves, tree, has_spec, arrays, ins)
        # Within the manual mesh: types of parts name no manual axes, and bare specifications in the
        # body name the axes that are left.
        with manual.within():
            body = stage_body(*self._body(leaves, tree, has_spec),
                              [manual.part(a, s) for a, s in zip(avals, ins, strict=True)])
        check_aliases(self.what, self.fun, body.consts, leaves, tree)
        outs = self._result_specs(body.out_tree, body.out_avals)
        # Values that the function closes over are operands in front, whole on each device.
        for x in body.consts:
            manual.check_closed_over(typeof(x))
        out = self.prim.bind(
            *body.consts, *arrays, olympuspr=body.program, mesh=manual.mesh,
            in_specs=(*[PartitionSpec()] * len(body.consts), *ins), out_specs=outs,
            newly_manual_axes=manual.names, check_vma=manual.check)
        return body.out_tree.unflatten(out)

    def _run_eagerly(self, leaves: Sequence[object], tree: PyTreeDef, has_spec: Sequence[bool],
                     arrays: Sequence[ArrayLike], ins: Sequence[PartitionSpec]) -> object:
        """Outside of jit the function runs in Python, so that users see values, in grad too."""
        trace = ManualTrace(ctx.trace, self.manual, self._mesh_of(arrays), self.prim.parts_differ)
        outer = enter(trace)
        try:
            with self.manual.within():
                parts = iter(trace.parts_of(arrays, ins))
                out = self.fun(*tree.unflatten([next(parts) if g else x for x, g in zip(
                    leaves, has_spec, strict=True)]))
                outs, out_tree = tree_flatten(out)
                for x in outs if MUTABLE else ():
                    if type(getattr(x, "aval", None)) in MUTABLE:
                        raise _cells.returned_reference(self.what, name_of(self.fun), x)
                specs = self._result_specs(out_tree, [
                    self.manual.part(typeof(x), PartitionSpec()) for x in outs])
                return out_tree.unflatten(trace.run(lambda *xs: xs, outs, specs, "whole"))
        finally:
            leave(outer)
            trace.alive = False     # a part that the function kept means nothing outside

    def _sees_values(self) -> bool:
        """Whether the function may run in Python: nothing around it is recorded."""
        trace = ctx.trace
        if trace.recorded:
            return False
        # grad and vmap around are no hindrance, they see each operation; but devices have to be
        # known, and another eager shard_map has split its values among them already.
        while (parent := trace.parent) is not None:
            if type(trace) is ManualTrace or (      # whose function is one operation then
                    type(self.manual.mesh) is not Mesh and current_mesh() is None):
                return False
            trace = parent
        return True

    def _mesh_of(self, arrays: Sequence[ArrayLike]) -> Mesh:
        """The devices of an eager call."""
        mesh = self.manual.mesh
        if isinstance(mesh, Mesh):
            return mesh
        around = current_mesh()
        meshes: list[Any] = [around] if around is not None else []
        for x in arrays:
            if type(sharding := getattr(x, "sharding", None)) is NamedSharding:
                if sharding.mesh.shape_tuple != mesh.shape_tuple:
                    raise ValueError(
                        f"{self.what}: Mesh shape of the input {typeof(x)}, "
                        f"{sharding.mesh.shape_tuple}, does not match the mesh shape passed to "
                        f"shard_map, {mesh.shape_tuple}; use olympus.device_put on the argument.")
                meshes.append(sharding.mesh)
        if not meshes:
            raise ValueError(
                f"{self.what}: mesh {mesh} names no devices, and no argument does; Please pass "
                "`olympus.Array`s with a `NamedSharding` as input to `shard_map` when passing "
                "`AbstractMesh` to the mesh argument.")
        return meshes[-1]

    def _body(self, leaves: Sequence[object], tree: PyTreeDef, has_spec: Sequence[bool]
              ) -> tuple[Derived, PyTreeDef]:
        """The function of the arrays alone whose results vary as `out_specs` says."""
        fun, out_specs, what = self.fun, self.out_specs, self.what

        def cast(out: PyTree) -> PyTree:
            outs, out_tree = tree_flatten(out)
            specs = flatten_axes(f"{what} out_specs", out_tree, out_specs)
            return out_tree.unflatten([
                self.manual.cast(x, s) if isinstance(s, PartitionSpec) else x
                for x, s in zip(outs, specs, strict=True)])

        def body(*xs: object) -> PyTree:
            out = fun(*xs)
            return cast(out) if self.manual.check else out

        # The body reads the function and the specifications, which are the key, and the manual
        # axes, which are part of the Context. Arguments that are part of it may have no hash.
        if all(has_spec):
            specs, structure = tree_flatten(out_specs, lambda x: x is None)
            return Derived(body, fun, (*specs, structure), what), tree

        def of_arrays(*xs: object) -> object:     # arguments without a specification are part of it
            rest = iter(xs)
            return body(*tree.unflatten([next(rest) if g else x
                                         for x, g in zip(leaves, has_spec, strict=True)]))

        return Derived(of_arrays, fun, None, what), tree_flatten(tuple(range(sum(has_spec))))[1]

    # Checks

    def _check_specs(self, which: str, specs: object) -> None:
        """TypeError for anything but a specification, ValueError for axes that are not manual."""
        manual = self.manual
        # Types of arguments say how they are cut along explicit axes, and nothing of others.
        if specs is Infer:
            kinds = dict(zip(manual.mesh.axis_names, manual.mesh.axis_types, strict=True))
            auto = [n for n in manual.ordered(manual.names) if kinds[n] is not AxisType.Explicit]
            if auto:
                name = "in_axes" if self.what == "smap" else which
                raise TypeError(
                    f"{self.what}: {name} was not specified, and the axes {quoted(auto)} are of "
                    "type Auto; it must be given unless all axes are Explicit.")
            return
        leaves = tree_leaves_with_path(specs)
        wrong = [f"{which}{keystr(path)} is {s!r} of type {type(s).__name__}" for path, s in leaves
                 if not isinstance(s, PartitionSpec) and not is_high_spec(s)]
        leaves = [(path, s) for path, s in leaves if isinstance(s, PartitionSpec)]
        if wrong:
            raise TypeError(f"{self.what}: {which} argument must be a pytree of PartitionSpec "
                            f"instances, but {'; '.join(wrong)}; write P(...) for each.")
        wrong = [f"{which}{keystr(path)} refers to {name!r}" for path, s in leaves
                 for entry in s for name in axes_of(entry) if name not in manual.names]
        if wrong:
            raise ValueError(f"{self.what}: {which} argument must refer to axes that are manual "
                             f"({quoted(manual.names)}), but {'; '.join(wrong)}; the mesh is "
                             f"{manual.mesh}; check the specification, or axis_names.")
        for path, s in leaves:
            self._check_entries(f"{which}{keystr(path)}", s)

    def _check_entries(self, which: str, spec: PartitionSpec) -> None:
        names = [name for entry in spec for name in axes_of(entry)]
        twice = [name for name in names if names.count(name) > 1]
        if twice or PartitionSpec.UNCONSTRAINED in spec.partitions:
            raise ValueError(f"{self.what}: {which} is {spec}; each axis of the mesh at most once, "
                             "and no UNCONSTRAINED entry, is required.")
        sums = spec.unreduced | spec.reduced
        if sums and self.manual.names != frozenset(self.manual.mesh.axis_names):
            raise NotImplementedError(
                f"{self.what}: {which} is {spec}; unreduced/reduced can only be passed to "
                f"{which.partition('[')[0]} when shard_map is in full manual mode; leave out "
                "axis_names.")
        if not sums <= set(self.manual.mesh.abstract_mesh.explicit_axes):
            raise ValueError(
                f"{self.what}: unreduced and reduced in {which}, {spec}, can only be used when the "
                "mesh passed to shard_map contains axis names all of type `Explicit`; the mesh is "
                f"{self.manual.mesh}.")

    def _inferred(self, aval: ShapedArray) -> PartitionSpec:
        """The specification that an argument's type says."""
        names, (unreduced, reduced) = self.manual.names, aval.sums
        return PartitionSpec(*[entry_of([n for n in axes_of(e) if n in names])
                               for e in (aval.sharding.spec if aval.explicit else ())],
                             unreduced=unreduced, reduced=reduced)

    def _applied(self) -> str:
        return f"{self.what} applied to the function {name_of(self.fun)!r}"

    def _argument(self, index: int) -> str:
        return f"argument {leaf_name(self.fun, range(len(self.args)), self.args, index)}"

    def _check_argument(self, index: int, spec: PartitionSpec, aval: ShapedArray) -> None:
        """ValueError unless an array can be cut by its specification."""
        manual = self.manual
        if self._is_high(spec, aval, lambda: f"{self._applied()}: its {self._argument(index)}",
                         "in_specs"):
            return
        if len(spec) > aval.ndim:
            remedy = ("consider using an in_specs entry of `P()` for a scalar" if not aval.ndim
                      else "shorten the specification")
            raise ValueError(
                f"{self._applied()}: its {self._argument(index)} is {aval}, which has rank "
                f"{aval.ndim}, and the entry of in_specs for it is {spec}, which has length "
                f"{len(spec)}; no more entries than axes are required; {remedy}.")
        # Axes behind the last entry are whole.
        for i, (n, entry) in enumerate(zip(aval.shape, spec, strict=False)):
            count = manual.count(entry)
            if mod(n, count):
                raise ValueError(
                    f"{self._applied()}: its {self._argument(index)} is {aval}, and the entry of "
                    f"in_specs for it, {spec}, cuts axis {i} of size {n} along {entry!r} into "
                    f"{count} parts; sizes that are evenly divisible are required; the mesh is "
                    f"{manual.mesh}; pad the array, or choose other axes.")
        axes, said = told_axes(manual.mesh.abstract_mesh), self._inferred(aval)
        typed = aval.explicit and not manual.names.isdisjoint(axes)
        if (spec.unreduced, spec.reduced) != aval.sums or typed and (
                _entries_on_axes(said, axes, aval.ndim) != _entries_on_axes(spec, axes, aval.ndim)):
            raise ValueError(
                f"{self._applied()}: the entry of in_specs passed to shard_map, {spec}, does not "
                f"match the specs of the input, {said}, of its {self._argument(index)}, {aval}; "
                "leave in_specs out, or use olympus.reshard on the argument.")

    def _result_specs(self, tree: PyTreeDef, avals: Sequence[ShapedArray]
                      ) -> tuple[PartitionSpec, ...]:
        """The specification of each result; ValueError unless the parts fit together so."""
        manual, fun = self.manual, name_of(self.fun)
        specs = tuple(flatten_axes(f"{self.what} out_specs", tree, self.out_specs))
        high = [self._is_high(spec, aval, lambda i=i: (
            f"{self._applied()}: its result{structure_path(tree, i)}"), "out_specs")
                for i, (spec, aval) in enumerate(zip(specs, avals, strict=True))]
        for i, (spec, aval) in enumerate(zip(specs, avals, strict=True)):
            if high[i]:
                continue
            if not isinstance(spec, PartitionSpec):
                raise TypeError(f"{self.what}: out_specs argument must be a pytree of "
                                f"PartitionSpec instances, but it has {spec!r} for "
                                f"result{structure_path(tree, i)} of {fun}; write P() there.")
            if len(spec) > aval.ndim:
                remedy = ("add a (singleton) axis to a scalar that varies, so that the devices' "
                          "values can be concatenated" if not aval.ndim else "shorten it")
                raise ValueError(
                    f"{self._applied()}: its result{structure_path(tree, i)} is {aval}, which has "
                    f"rank {aval.ndim}, and the entry of out_specs for it is {spec}, which has "
                    f"length {len(spec)}; no more entries than axes are required; {remedy}.")
        if manual.check:
            # A token has no `vma` and no `sums`: it says nothing of devices.
            for i, (spec, aval) in enumerate(zip(specs, avals, strict=True)):
                if high[i]:
                    continue
                if more := manual.ordered(getattr(aval, "vma", frozenset()) - named_axes(spec)):
                    self._refuse_varying(structure_path(tree, i), spec, aval, more)
                for kind, have, want in zip(("unreduced", "reduced"), getattr(aval, "sums", ()), (
                        spec.unreduced, spec.reduced), strict=False):
                    if have != want:
                        raise ValueError(
                            f"{self._applied()}: its result{structure_path(tree, i)} is {aval}, "
                            f"and the entry of out_specs for it is {spec}; out_specs passed to "
                            f"shard_map should be equal to the {kind} present on the result, "
                            f"{quoted(have) or 'none'}; name these axes, or take the sum with "
                            "lax.psum or lax.psum_scatter.")
        return specs

    def _is_high(self, spec: Any, aval: Aval, what: Callable[[], str], which: str) -> bool:
        """Whether a value has a user's type, and is sharded as its specification says."""
        if aval.is_high != is_high_spec(spec):
            kind = "HiPspec" if aval.is_high else "PartitionSpec"
            raise TypeError(f"{what()} is {aval}, and the entry of {which} for it is {spec!r:.60}; "
                            f"a {kind} is required.")
        if aval.is_high and self.manual.check:
            high: Any = aval
            own: Any = high if which == "out_specs" else self.manual.part(high, spec)
            for part, its in zip(own.lo_ty(), spec.to_lo(), strict=True):
                named = named_axes(its)
                if not named <= part.vma and which == "in_specs":
                    raise NotImplementedError(
                        f"{what()} is {aval}, of a user's type, whose `shard` does not say along "
                        f"which axes of a mesh parts vary ({part} for {its}); let it ask types of "
                        "arrays for it, or pass check_vma=False.")
                if more := self.manual.ordered(part.vma - named):
                    raise ValueError(
                        f"{what()} is {aval}, with a part {part}, and the entry of out_specs for "
                        f"that is {its}; it varies along {quoted(more)}, too; name these axes.")
        return aval.is_high

    def _refuse_varying(self, path: str, spec: PartitionSpec, aval: ShapedArray,
                        more: Sequence[object]) -> NoReturn:
        axes = [",".join(map(str, self.manual.ordered(names)))
                for names in (named_axes(spec), more, aval.vma)]
        raise ValueError(
            f"{self._applied()}: out_specs require replication which can't be statically inferred: "
            f"for its result{path}, {aval}, the entry of out_specs is {spec} which implies that "
            f"the output value is only varying across mesh axes {{{axes[0]}}} and not "
            f"{{{axes[1]}}}, but it was inferred to be possibly varying over {{{axes[2]}}}; the "
            f"mesh is {self.manual.mesh}; name the axes in out_specs, sum over them (lax.psum), "
            "or, if the values are meant to be the same on all devices, pass check_vma=False.")


def _entries_on_axes(spec: PartitionSpec, axes: Sequence[object], ndim: int) -> list[Entry]:
    """The entries of a specification of `ndim` axes, as far as they name these mesh axes."""
    entries = (*spec, *[None] * (ndim - len(spec)))
    return [entry_of([n for n in axes_of(e) if n in axes]) for e in entries]
