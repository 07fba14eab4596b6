"""The primitive of `shard_map`: one device's program, which all devices of a mesh run on parts.

`in_specs` shard the operands along the axes that become manual, and `out_specs` assemble results
from the devices' parts. Inside, types have the shapes of parts. With `check_vma` they also have the
axes along which a value varies (`vma`; the axes of its spec at first) or is unreduced or reduced
(`sums`).

Every rule transforms the body within the axes of the mesh (`within`). Tangents, cotangents and
residuals have the specs of the values that they belong to.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Sequence
from itertools import compress
from typing import Any, cast

import numpy as np

from ..base.typing import Array, ArrayLike, IrValue, Params, R, T, Value
from ..base.util import ByKey, lazy_imports, memoize, merged, quoted
from ..core import tags
from ..core.context import DeviceAxis, MeshAxis
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, OlympusprEqn, derived
from ..core.primitive import Axis, Builder, Cotangent, Tangent, Transposed, Zero, program_uses_axis
from ..core.reuse import Cells, Use
from ..core.staging import stage
from ..core.trace import Trace, ctx, literal, typeof
from ..interpreters.batching import BatchTrace, batch_program
from ..interpreters.checks import Checks
from ..interpreters.partial_eval import Split, TapeTrace
from ..lax.arithmetic import div
from ..lax.collectives.axes import axis_index
from ..lax.collectives.reductions import cast_along, pmin, psum, psum_p
from ..lax.comparison import eq, ne, select
from ..lax.convert import bitcast_convert_type
from ..lax.creation import full
from ..lax.shape import broadcast_in_dim, expand_dims, reshape, squeeze
from ..lax.slicing import concatenate
from ..types.avals import Aval, ShapedArray, has_tangent
from ..types.mesh import AbstractMesh, AxisType, Mesh, use_abstract_mesh
from ..types.shape import floor_div, prod
from ..types.sharding import NamedSharding, PartitionSpec, axes_of, entry_of, named_axes
from . import agreement
from .agreement import NOWHERE, Among
from .call import Call, Picked, bound_in

with lazy_imports(__name__):
    from ..interpreters import parts as _parts  # for values of users' types
    from ..types import refs as _refs  # where there are references
    from . import manual_trace as _manual_trace  # imports this module

Specs = tuple[PartitionSpec, ...]
NO_SUMS: tuple[frozenset[str], frozenset[str]] = (frozenset(), frozenset())


@memoize()
def _inner(mesh: Mesh | AbstractMesh, names: frozenset[str]) -> AbstractMesh:
    return mesh.abstract_mesh.update_axis_types(dict.fromkeys(names, AxisType.Manual))


class Manual(ByKey):
    """The axes `names` of a mesh that become manual, and whether types track them (`check`)."""

    __slots__ = ("mesh", "names", "check", "inner")

    def __init__(self, mesh: Mesh | AbstractMesh, names: frozenset[str], check: bool) -> None:
        self.mesh, self.names, self.check = mesh, names, check
        self.inner = _inner(mesh, names)

    def _key(self) -> tuple[Hashable, ...]:
        return self.mesh, self.names, self.check

    @contextlib.contextmanager
    def within(self) -> Iterator[None]:
        """A context in which the body is traced: the axes have names, the mesh is ambient."""
        outer, kind = ctx.axes, MeshAxis if self.check else DeviceAxis
        ctx.axes = {**outer, **{n: kind(self.mesh.shape[n]) for n in self.ordered(self.names)}}
        try:
            with use_abstract_mesh(self.inner):
                yield
        finally:
            ctx.axes = outer

    def ordered(self, names: Container[object]) -> list[str]:
        """The manual axes among `names`, in the order of the mesh."""
        return [n for n in self.mesh.axis_names if n in names and n in self.names]

    def count(self, entry: object) -> int:
        """The number of parts that an entry of a spec, or a tuple of axes, makes."""
        return prod([self.mesh.shape[n] for n in axes_of(entry)])

    def part(self, aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        """The type of a device's part."""
        if aval.mutable:
            return cast(ShapedArray, _refs.ref_aval(self.part(_refs.inner(aval), spec)))
        if aval.is_high:        # a closed-over value has a PartitionSpec: each device has all of it
            return aval if isinstance(spec, PartitionSpec) else aval.shard(
                self.mesh, self.names, self.check, spec)
        if not isinstance(aval, ShapedArray):
            return aval
        shape = list(aval.shape)
        for i, entry in enumerate(spec):
            shape[i] = floor_div(shape[i], self.count(entry))
        sharding = None
        unreduced, reduced = aval.sums if self.check else NO_SUMS
        if unreduced or reduced or not self.inner.are_all_axes_manual:
            explicit = self.inner.explicit_axes if aval.explicit else ()
            sharding = NamedSharding(self.inner, PartitionSpec(*[
                entry_of([n for n in axes_of(e) if n in explicit]) for e in aval.sharding.spec],
                unreduced=unreduced, reduced=reduced))
        vma = aval.vma | named_axes(spec) if self.check else aval.vma
        return aval.update(shape=tuple(shape), sharding=sharding, vma=vma)

    def whole(self, aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
        """The type of a value assembled from parts."""
        if aval.is_high:
            return aval if isinstance(spec, PartitionSpec) else aval.unshard(
                self.mesh, self.check, spec)
        if not isinstance(aval, ShapedArray):
            return aval
        shape, sharding = list(aval.shape), None
        for i, entry in enumerate(spec):
            shape[i] = shape[i] * self.count(entry)
        mesh = self.mesh.abstract_mesh
        if mesh.explicit_axes:
            inner_partitions = aval.sharding.spec if aval.explicit else [None] * aval.ndim
            partitions = [*spec, *[None] * (aval.ndim - len(spec))]
            sharding = NamedSharding(mesh, PartitionSpec(*[
                entry_of((*axes_of(a), *axes_of(b)))
                for a, b in zip(partitions, inner_partitions, strict=True)],
                unreduced=spec.unreduced, reduced=spec.reduced))
        return aval.update(shape=tuple(shape), sharding=sharding, vma=aval.vma - self.names)

    def check_closed_over(self, aval: ShapedArray) -> None:
        """NotImplementedError if a closed-over value is sharded along the manual axes."""
        if getattr(aval, "explicit", False) and self.names & named_axes(aval.sharding.spec).union(
                *aval.sums):
            raise NotImplementedError(
                f"shard_map: the function closes over {aval}. Closing over inputs to shard_map "
                "where the input is sharded on `Explicit` axes is not implemented; make it an "
                "argument, or use olympus.reshard before.")

    def residual_spec(self, aval: Aval, free: frozenset[str]) -> PartitionSpec:
        """The spec of a residual passed between bodies: parts are joined along a new leading axis.

        The axes `free` are left out: they shard the axis that an outer vmap adds.
        """
        if aval.is_high:
            type_: Any = aval
            return type_.nospec(self.mesh, self.check, tuple(self.ordered(self.names)))
        names = self.ordered(getattr(aval, "vma", ()) if self.check else self.names - free)
        unreduced, reduced = getattr(aval, "sums", NO_SUMS) if self.check else NO_SUMS
        return PartitionSpec(*[tuple(names)] * bool(names), unreduced=unreduced, reduced=reduced)

    def cast(self, x: Array, spec: PartitionSpec) -> Array:
        """`x` cast to vary, and to be unreduced, along the axes of a spec."""
        if not self.check or not isinstance(spec, PartitionSpec):
            return x
        x, aval = tags.pvary(x, named_axes(spec)), typeof(x)
        terms = spec.unreduced & getattr(aval, "vma", frozenset())
        return cast_along(x, terms, "unreduced") if terms else x

    def blocks(self, x: np.ndarray, spec: PartitionSpec) -> list[np.ndarray]:
        """The parts of an array."""
        parts = [x]
        for axis, entry in enumerate(spec):
            parts = [p for b in parts for p in np.split(b, self.count(entry), axis)]
        return parts

    def others(self, spec: PartitionSpec, free: frozenset[str]) -> tuple[str, ...]:
        """The manual axes that a spec does not name, without `free`."""
        if not isinstance(spec, PartitionSpec):
            named = frozenset().union(*map(named_axes, spec.to_lo()))
            if more := self.ordered(self.names - named - free):
                raise NotImplementedError(
                    f"shard_map: a cotangent of a user's type given, spread as {spec}, which names "
                    f"not {quoted(more)}: terms of devices along these would have to be summed; "
                    "let the type's cotangents be arrays.")
            return ()
        return tuple(self.ordered(self.names - named_axes(spec) - spec.unreduced - free))


def cut_by_vmap(trace: Trace | None) -> frozenset[str]:
    """The mesh axes that shard the axes of outer vmaps."""
    axes: frozenset[str] = frozenset()
    while trace is not None:
        if isinstance(trace, BatchTrace):
            axes |= set(axes_of(trace.axis.mesh_axis))
        trace = trace.parent
    return axes


def manual_of(params: Params) -> Manual:
    return Manual(params["mesh"], params["newly_manual_axes"], params["check_vma"])


def varying_as(manual: Manual, closed: ClosedOlympuspr, specs: Sequence[PartitionSpec]
               ) -> ClosedOlympuspr:
    """The program with outputs cast to vary along the axes of their specs."""
    if not manual.check or all(a.is_high or named_axes(s) <= getattr(a, "vma", named_axes(s))
                               for s, a in zip(specs, closed.out_avals, strict=True)):
        return closed
    return _cast(closed, manual, tuple(specs))


@derived
def _cast(closed: ClosedOlympuspr, manual: Manual, specs: Specs) -> ClosedOlympuspr:
    return stage(lambda *xs: [manual.cast(x, s) for x, s in zip(
        eval_closed(closed, *xs), specs, strict=True)], closed.in_avals)


class ShardMap(Call):
    """params: olympuspr, mesh, in_specs, out_specs, newly_manual_axes, check_vma."""

    parts_differ = True     # whether devices are assumed to have different parts of an operand
    called = False
    fusion = ""
    adds: Any = None     # none: cotangents of unsharded values are summed over devices
    looked_into = False
    per_device = True

    def times(self, params: Params) -> None:
        return None

    def infer(self, *avals: ShapedArray, olympuspr: ClosedOlympuspr, out_specs: Specs,
              **params: Hashable) -> list[ShapedArray]:
        return list(map(manual_of(params).whole, olympuspr.out_avals, out_specs))

    def seen(self, params: Params, avals: Sequence[ShapedArray]) -> list[ShapedArray]:
        return list(map(manual_of(params).part, avals, params["in_specs"]))

    def derived(self, params: Params, make: Callable[..., R],
                *args: bool | Sequence[bool | None]) -> R:
        with manual_of(params).within():
            return make(params["olympuspr"], *args)

    def with_program(self, params: Params, body: ClosedOlympuspr, ins: Picked, outs: Picked,
                 transposed: bool = False) -> Params:
        manual, of = manual_of(params), _of_cotangents if transposed else _of_tangents
        specs = [s for own in (params["in_specs"], params["out_specs"]) for s in (own, of(own))]
        in_specs, out_specs = tuple(ins(*specs)), tuple(outs(*specs))
        with manual.within():
            body = varying_as(manual, body, out_specs)
            if transposed and not manual.check:
                body = _summed(body, manual, out_specs, cut_by_vmap(ctx.trace))
        return {**params, "olympuspr": body, "in_specs": in_specs, "out_specs": out_specs}

    def in_parts(self, args: Sequence[Value], params: Params) -> list[Value]:
        body, outs = params["olympuspr"], self.infer(*map(typeof, args), **params)
        with manual_of(params).within():
            program = _parts.in_parts(body)
        results = self.bind(*_parts.parts_of(args), **{
            **params, "olympuspr": program,
            "in_specs": _of_parts(params["in_specs"], body.in_avals),
            "out_specs": _of_parts(params["out_specs"], body.out_avals)})
        return _parts.raised(outs, results)

    # An unsharded reference must stay the same on all devices.
    def with_contents(self, params: Params, body: ClosedOlympuspr, new: Sequence[bool]) -> Params:
        manual, specs = manual_of(params), [*compress(params["in_specs"], new)]
        count = len(body.outvars) - len(specs)
        for spec, aval in zip(specs, body.out_avals[count:], strict=True):
            if manual.check and (more := aval.vma - named_axes(spec)):
                raise ValueError(
                    f"shard_map: a value that varies along {quoted(more)} is written to a "
                    f"reference {aval}, which is cut by {spec}: each device would write another "
                    "content; pass the reference as an argument that in_specs cuts along these "
                    "axes, or reduce the value with lax.psum.")
        return super().with_contents(params, body, new)

    def checked(self, checks: Checks, args: Sequence[Array], params: Params) -> list[Array] | None:
        manual = manual_of(params)
        names = tuple(manual.ordered(manual.names))
        with manual.within():
            body = checks.body(params["olympuspr"])
            if body is None:
                return None
            program = _by_device(body.program, names)
        whole = PartitionSpec()
        outs = self.bind(*args, **{**params, "olympuspr": program,
                                   "out_specs": (whole, whole, *params["out_specs"])})
        return checks.took(outs, [
            site.within("device {} of the mesh", body.width) for site in body.sites])

    def uses_axis(self, name: Hashable, params: Params) -> bool:
        # A mesh axis hides a vmap axis of its name.
        return name not in params["newly_manual_axes"] and (
            program_uses_axis(params["olympuspr"], name))

    def cells(self, use: Use, cells: Sequence[Cells], eqn: OlympusprEqn) -> list[Cells]:
        manual = manual_of(eqn.params)
        parts = [None if c is None else manual.blocks(c, s)
                 for c, s in zip(cells, eqn.params["in_specs"], strict=True)]
        outs = use.call(eqn.params["olympuspr"], [None if p is None else p[0] for p in parts])
        # All devices use keys at the same positions of their parts.
        for first, *others in filter(None, parts):
            used = np.array([c.used is not None for c in first.flat], bool).reshape(first.shape)
            for block in others:
                use.consume(block[used])
        return [None if named_axes(s) else c
                for c, s in zip(outs, eqn.params["out_specs"], strict=True)]

    def step_through(self, run: Callable[..., list[Array]], *args: Array, **params: Hashable
                     ) -> None:
        _manual_trace.step_through(run, manual_of(params), args, params)

    def specs_out(self, params: Params) -> Sequence[Any]:
        return params["out_specs"]

    def lower(self, b: Builder, *args: IrValue, olympuspr: ClosedOlympuspr,
              mesh: Mesh | AbstractMesh, in_specs: Specs, out_specs: Specs,
              newly_manual_axes: frozenset[str], check_vma: bool) -> list[IrValue]:
        mesh = b.module.places.mesh_of(mesh)
        names = [n for n in mesh.axis_names if n in newly_manual_axes]
        differs = [named_axes(s) if self.parts_differ else NOWHERE for s in in_specs]
        agreement.check(olympuspr, differs, among(mesh, b.module.platform in ("cpu", None)))
        ordered = sorted({str(e) for e in olympuspr.effects if e.ordered})
        if ordered and not b.module.places.manual_over(mesh, names).all_manual:
            # XLA ends the process where a token enters an operation that it still partitions.
            raise NotImplementedError(
                f"shard_map: the function has effects that keep their order "
                f"({', '.join(ordered)}), and of the axes of {mesh} only {tuple(names)} are "
                "manual; all axes are required to be; leave out axis_names, or use ordered=False.")
        parts, results = map(b.type, olympuspr.in_avals), map(b.type, b.avals_out)
        outs = b.manual_computation(
            mesh, names, args, in_specs, out_specs, list(parts), list(results),
            lambda *xs: b.call_inline(olympuspr, xs))
        if b.module.places.manual is None and mesh.are_all_axes_auto and len(names) == len(
                mesh.axis_names):       # otherwise types or XLA decide the results' shardings
            b.module.constrained.update({x: NamedSharding(mesh, spec)
                                         for x, spec in zip(outs, out_specs, strict=True)})
        return outs

    def apply_split(self, tape: TapeTrace, split: Split, known: Sequence[ArrayLike],
                    unknown: Sequence[Array], params: Params, pick: Picked) -> list[Array]:
        # Residuals leave the known half's body and enter the unknown half's. Their parts are joined
        # along the leading axis, which is added to scalars.
        #
        #     known    parts ──► residuals of each device  ── P(axes) ──►  parts    unknown
        manual = manual_of(params)
        specs = [s for own in (params["in_specs"], params["out_specs"])
                 for s in (own, _of_tangents(own))]
        known_specs, unknown_specs, out_specs = map(tuple, pick(*specs))
        kinds = split.unknown_out
        known_out = tuple(compress(out_specs, [not u for u in kinds]))
        unknown_out = tuple(compress(out_specs, kinds))
        first, n, free = split.known, len(known_out), cut_by_vmap(tape)
        # A residual that is a result, too, is not returned twice: it has the result's spec.
        variables = first.olympuspr.outvars
        result_of = [next((j for j in range(n) if variables[j] is v), None) for v in variables[n:]]
        own = [t is None for t in result_of]
        first = first.rearranged(outputs=[*range(n), *compress(range(n, len(variables)), own)])
        avals = first.out_avals[n:]
        own_specs = tuple([manual.residual_spec(a, free) for a in avals])
        scalar = tuple([a.is_array and not a.shape and len(s) > 0
                        for a, s in zip(avals, own_specs, strict=True)])
        with manual.within():
            first = varying_as(manual, _with_axes(first, scalar), (*known_out, *own_specs))
        outs = bound_in(tape.parent, self, known, {
            **params, "olympuspr": first, "in_specs": known_specs,
            "out_specs": (*known_out, *own_specs)})
        unknown_results: list[Any] = []
        if any(kinds):
            def taken(values: Sequence[T], results: Sequence[T], mine: Sequence[T]) -> list[T]:
                rest = iter(mine)
                return split.residual_values(values, [next(rest) if t is None else results[t]
                                                      for t in result_of])

            plain = [False] * max(n, len(known))
            with manual.within():
                later = _without_axes(split.unknown, tuple(taken(plain, plain, scalar)))
                later = varying_as(manual, later, unknown_out)
            unknown_results = tape.record(self, [*taken(known, outs, outs[n:]), *unknown], {
                **params, "olympuspr": later, "out_specs": unknown_out,
                "in_specs": (*taken(known_specs, known_out, own_specs), *unknown_specs)})
        return merged(kinds, unknown_results, outs)

    def transpose(self, cts: Sequence[Tangent], *args: Transposed, **params: Any
                  ) -> list[Cotangent]:
        manual, free = manual_of(params), cut_by_vmap(ctx.trace)
        if not manual.check:    # devices share the cotangent of an unsharded result equally
            cts = [ct if type(ct) is Zero else
                   _divided(ct, manual.count(manual.others(s, free | s.reduced)))
                   for ct, s in zip(cts, _of_cotangents(params["out_specs"]), strict=True)]
        return super().transpose(cts, *args, **params)

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             olympuspr: ClosedOlympuspr, in_specs: Specs, out_specs: Specs, **params: Hashable
             ) -> tuple[Sequence[Array], Sequence[int | None]]:
        manual = manual_of(params)
        mesh_axes = manual.ordered(axes_of(axis.mesh_axis))
        # Inside, a mesh axis hides a vmap axis of its name.
        inner = Axis(axis.size, None if axis.name in manual.names else axis.name, axis.mesh_axis)
        if mesh_axes:   # they shard the mapped axis
            if any(named_axes(s) & set(mesh_axes) for s in (*in_specs, *out_specs)):
                raise ValueError(
                    f"vmap spmd_axis_name cannot appear in shard_map in_specs or out_specs: "
                    f"{axis.mesh_axis!r} given, and {in_specs} and {out_specs}; the axis cuts the "
                    "mapped axis already; name other axes there.")
            inner.size = floor_div(axis.size, manual.count(tuple(mesh_axes)))

        def batched(specs: Sequence[PartitionSpec], where: Sequence[int | None]) -> Specs:
            return tuple([s if d is None else _inserted(s, d, entry_of(mesh_axes))
                          for s, d in zip(specs, where, strict=True)])

        ins = batched(in_specs, dims)
        avals = list(map(manual.part, map(typeof, args), ins))
        with manual.within():
            body, out_dims = batch_program(olympuspr, inner, dims, avals=avals)
            specs = batched(out_specs, out_dims)
            body = varying_as(manual, body, specs)
        return self.bind(*args, olympuspr=body, in_specs=ins, out_specs=specs,
                         **params), out_dims


def among(mesh: Mesh | AbstractMesh, together: bool) -> Among:
    """The axes along which a mesh has several devices."""
    return Among(frozenset([n for n in mesh.axis_names if mesh.shape[n] > 1]), together)


class ShardMapOfAny(ShardMap):
    """A `shard_map` whose specs do not tell whether parts differ: a single operation, run eagerly,
    and `pmap`, whose arrays have an axis of copies."""

    parts_differ = False


shard_map_p = ShardMap("shard_map")
shard_map_of_any_p = ShardMapOfAny("shard_map")


@derived
def _by_device(checked: ClosedOlympuspr, names: tuple[Hashable, ...]) -> ClosedOlympuspr:
    """A checked body that returns the code and words of the first device that failed."""
    return stage(lambda *xs: _first_of_devices(names, eval_closed(checked, *xs)),
                 checked.in_avals)


def _first_of_devices(names: tuple[Hashable, ...], outs: Sequence[Array]) -> list[Array]:
    """The results of a checked body, with the first device's failure on all devices."""
    code, words, *rest = outs
    device, zero = axis_index(names), literal(0, code.dtype)
    count = full((), np.iinfo(np.int32).max, device.dtype)
    first = pmin(select(ne(code, zero), device, count), names)
    is_first = eq(device, first)
    words = concatenate([words, bitcast_convert_type(reshape(device, (1,)), words.dtype)], 0)
    return [psum(select(is_first, code, zero), names),
            psum(select(broadcast_in_dim(is_first, words.shape, ()), words,
                        full(words.shape, 0, words.dtype)), names), *rest]


def _inserted(spec: PartitionSpec, axis: int, entry: object) -> PartitionSpec:
    """The spec of arrays with one axis more."""
    if len(spec) <= axis and entry is None:
        return spec
    entries = [*spec, *[None] * (axis - len(spec))]
    return spec.update(partitions=[*entries[:axis], entry, *entries[axis:]])


def _of_cotangents(specs: Iterable[PartitionSpec]) -> Specs:
    return tuple([s.of_cotangent() for s in specs])


def _of_tangents(specs: Iterable[PartitionSpec]) -> Specs:
    """The specs of tangents: the primals'; users' types give their own."""
    return tuple([s if isinstance(s, PartitionSpec) else s.to_tangent_spec() for s in specs])


def _of_parts(specs: Iterable[PartitionSpec], avals: Sequence[Aval]) -> Specs:
    """The specs of the parts of values of users' types."""
    part_specs: list[PartitionSpec] = []
    for spec, n in zip(specs, _parts.counts(avals), strict=True):
        part_specs += [spec] * n if isinstance(spec, PartitionSpec) else spec.to_lo()
    return tuple(part_specs)


def _with_axes(closed: ClosedOlympuspr, scalar: tuple[bool, ...]) -> ClosedOlympuspr:
    """The program with an axis added to its last outputs, where flagged."""
    if not any(scalar):
        return closed
    return _expanded(closed, (*(False,) * (len(closed.out_avals) - len(scalar)), *scalar))


@derived
def _expanded(closed: ClosedOlympuspr, flags: tuple[bool, ...]) -> ClosedOlympuspr:
    return stage(lambda *xs: [expand_dims(x, (0,)) if flag else x for x, flag in zip(
        eval_closed(closed, *xs), flags, strict=True)], closed.in_avals)


def _without_axes(closed: ClosedOlympuspr, scalar: tuple[bool, ...]) -> ClosedOlympuspr:
    """The program with an axis added to its first inputs, where flagged."""
    if not any(scalar):
        return closed
    return _squeezed(closed, (*scalar, *(False,) * (len(closed.in_avals) - len(scalar))))


@derived
def _squeezed(closed: ClosedOlympuspr, flags: tuple[bool, ...]) -> ClosedOlympuspr:
    return stage(
        lambda *xs: eval_closed(closed, *[squeeze(x, (0,)) if flag else x
                                          for x, flag in zip(xs, flags, strict=True)]),
        [a.with_axis(0, 1) if flag else a for a, flag in zip(closed.in_avals, flags, strict=True)])


@derived
def _summed(closed: ClosedOlympuspr, manual: Manual, specs: Specs, free: frozenset[str]
            ) -> ClosedOlympuspr:
    """The program whose outputs, cotangents, are summed along the axes that their specs leave out.

    Each device had a term there, and has the full cotangent then.
    """
    axes = [manual.others(s, free) for s in specs]

    def summed(x: Array, names: tuple[Hashable, ...], spec: PartitionSpec) -> Array:
        if not names:
            return x
        total = psum_p.bind(x, axes=names, axis_index_groups=None)
        return _divided(total, manual.count(tuple(spec.reduced.intersection(names))))

    return stage(lambda *xs: list(map(summed, eval_closed(closed, *xs), axes, specs)),
                 closed.in_avals)


def _divided(ct: Array, count: int) -> Array:
    return div(ct, count) if count > 1 and has_tangent(typeof(ct)) else ct
