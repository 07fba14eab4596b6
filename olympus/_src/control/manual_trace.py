"""`shard_map` outside of jit: the function runs in Python, operation by operation, on all devices.

So it can be debugged: values print as the devices' parts, and Python can read a value that is the
same on all devices. A value is an array of all parts, sharded along a new leading axis:

    type inside   float32[2,4]{V:x}          on a mesh x: 4, y: 2
    val           float32[4,2,4]  P('x')     devices along y have the same parts

Within `grad` or `vmap` that array is their tracer: each operation is a `shard_map` of its own,
which they differentiate or map.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from ..base import config
from ..base.errors import ConcretizationTypeError
from ..base.typing import Array, ArrayLike, Params, R, T
from ..base.util import Memo, WithAux, bit_key
from ..core.context import ThreadState, current_context
from ..core.ir import ClosedOlympuspr, high_types, numbers
from ..core.primitive import Primitive
from ..core.staging import closure_convert, stage
from ..core.trace import Trace, Tracer, check_usable, ctx, enter, leave, typeof
from ..lax.collectives.axes import Collective
from ..lax.shape import expand_dims, squeeze
from ..runtime.nans import debugging
from ..types.avals import ShapedArray
from ..types.mesh import Mesh, current_mesh
from ..types.sharding import DeviceLike, PartitionSpec, named_axes
from .agreement import NOWHERE, differing
from .shard_map import Manual, among, cut_by_vmap, shard_map_of_any_p

_programs: Memo = Memo(1024)    # of single operations, for all devices


def _kept(prim: Primitive, params: Params) -> tuple[Hashable, Memo]:
    """The key of an operation's program, and the table that has it, as in `EvalTrace`."""
    bodies = () if prim.programs == () else prim.bodies(params)
    items = tuple(params.items())
    return (("manual", prim, bit_key(items) if prim.open else items),
            bodies[0].cache if bodies else _programs)


class ManualTracer(Tracer):
    """The devices' parts of a value.

    >>> import olympus
    >>> from olympus.sharding import PartitionSpec as P
    >>> mesh = olympus.make_mesh((1,), ("x",), (olympus.sharding.AxisType.Auto,))
    >>> @olympus.shard_map(mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    ... def f(x):
    ...     print(x)
    ...     return x
    >>> _ = f(olympus.numpy.arange(2))
    On cpu:0 at mesh coordinates (x,) = (0,):
    [0 1]
    <BLANKLINE>
    """

    __slots__ = ("_val", "_differs")

    def __init__(self, trace: ManualTrace, aval: ShapedArray, val: Array, differs: frozenset[str]
                 ) -> None:
        super().__init__(trace, aval)
        self._val, self._differs = val, differs     # see `agreement.differing`

    def _known_value(self) -> ArrayLike | None:
        trace: ManualTrace = self._trace
        if not trace.manual.check or self.aval.vma or self.aval.sums[0]:
            return None
        part = trace.outside(lambda: self._val[0])
        return part._known_value() if isinstance(part, Tracer) else part

    def _differentiated(self) -> bool:
        return isinstance(self._val, Tracer) and self._val._differentiated()

    def _origin(self) -> str:
        return f"one part of a value, on each device of {self._trace.manual.mesh}"

    def __repr__(self) -> str:
        trace: ManualTrace = self._trace
        names, mesh = trace.manual.mesh.axis_names, trace.mesh
        axes = "".join([f"{name}, " for name in names]).rstrip()
        own = trace.axes_of(self.aval)
        sizes = [mesh.shape[n] for n in own]

        def shown(where: Sequence[int], device: DeviceLike) -> str:
            place = [where[names.index(n)] for n in own]
            part = self._val[int(np.ravel_multi_index(place, sizes)) if own else 0]
            return f"On {device} at mesh coordinates ({axes}) = {where}:\n{part}\n"

        # Reading the parts is no operation of the function: it belongs to the outer trace.
        return trace.outside(lambda: "\n".join([
            shown(where, device) for where, device in np.ndenumerate(mesh.devices)]))

    __str__ = __repr__


class ManualTrace(Trace):
    """Runs each operation on all devices of a mesh."""

    __slots__ = ("manual", "mesh", "free", "parts_differ", "among")
    parent: Trace

    def __init__(self, parent: Trace, manual: Manual, mesh: Mesh, parts_differ: bool) -> None:
        super().__init__(parent)
        self.manual, self.mesh, self.parts_differ = manual, mesh, parts_differ
        self.free = cut_by_vmap(parent)
        # Under vmap or grad nothing is refused yet: vmap may turn branches into selections.
        self.among = among(mesh, mesh.devices.flat[0].platform == "cpu") if (
            parent is ThreadState.trace) else None

    def axes_of(self, aval: ShapedArray) -> list[str]:
        """The mesh axes that shard the leading axis of an array of all parts."""
        manual = self.manual
        return manual.ordered(getattr(aval, "vma", ()) if manual.check else
                              manual.names - self.free)

    def spec_of(self, aval: ShapedArray) -> PartitionSpec:
        return self.manual.residual_spec(aval, self.free)

    def process(self, prim: Primitive, args: tuple, params: Params) -> object:
        is_ours = [type(a) is ManualTracer and a._trace is self for a in args]
        # Without operands of this trace and without collectives, all devices get the same result.
        if not any(is_ours) and prim.programs == () and not prim.effectful and not isinstance(
                prim, Collective):
            return self.outside(self.parent.process, prim, args, params)
        if prim.in_parts is not None and self.parent is ThreadState.trace and (
                prim.programs == () or any(map(high_types, prim.bodies(params)))):
            return prim.in_parts(numbers(args), params)     # users' values, whose arrays are parts
        outs = self.run(lambda *xs: prim.bind(*xs, **params) if prim.multiple_results else
                        [prim.bind(*xs, **params)], args, None, *_kept(prim, params))
        return outs if prim.multiple_results else outs[0]

    def process_custom(self, prim: Primitive, fun: Callable, rules: object, args: tuple,
                       params: Params) -> object:
        if self.parent is ThreadState.trace:
            return fun(*args)
        # Outer transformations use the function's own rules.
        return self.run(lambda *xs: ctx.trace.process_custom(prim, fun, rules, xs, params), args)

    def outside(self, fun: Callable[..., R], *args: object) -> R:
        """The result of a function that runs under the outer trace."""
        outer, ctx.trace = ctx.trace, self.parent
        try:
            return fun(*args)
        finally:
            ctx.trace = outer

    def run(self, fun: Callable[..., Sequence[Array]], args: Sequence[Any],
            specs: Sequence[PartitionSpec] | None = None, key: Hashable = None,
            programs: Memo = _programs) -> list[Array]:
        """The results of a flat function of parts, which all devices run.

        Args:
          specs: the specs of results that are assembled to arrays; None: results stay parts.
          key: identifies the function, whose program is kept in `programs`; None: it is not kept.
        """
        manual = self.manual
        ours = [type(a) is ManualTracer and a._trace is self for a in args]
        for a, own in zip(args, ours, strict=True):
            if not own:
                if isinstance(a, Tracer):
                    check_usable(a)
                manual.check_closed_over(typeof(a))
        avals = [a.aval if own else manual.part(typeof(a), PartitionSpec())
                 for a, own in zip(args, ours, strict=True)]
        part_avals = [a.with_axis(0, 1) if own else a for a, own in zip(avals, ours, strict=True)]

        def program(*xs: Array) -> tuple[list[Array], list[ShapedArray]]:
            outs = fun(*[squeeze(x, (0,)) if own else x
                         for x, own in zip(xs, ours, strict=True)])
            return ([expand_dims(x, (0,)) for x in outs] if specs is None else
                    list(map(manual.cast, outs, specs))), list(map(typeof, outs))

        with_aux = WithAux(program)
        closed, out_avals = self._staged(
            key and (key, specs and tuple(specs), *ours), programs, part_avals,
            lambda: (stage(with_aux, part_avals), with_aux.aux))
        # Rules may close over references, which all devices have unsharded.
        closed, more = closure_convert(closed)
        differs = [NOWHERE] * len(out_avals) if self.among is None else differing(
            closed, [*[NOWHERE] * len(more), *[
                a._differs if own else NOWHERE for a, own in zip(args, ours, strict=True)]],
            self.among)
        ins = [PartitionSpec()] * len(more) + [
            self.spec_of(a) if own else PartitionSpec() for a, own in zip(avals, ours, strict=True)]
        results = self.outside(self._apply, closed, [*more, *[
            a._val if own else a for a, own in zip(args, ours, strict=True)]], ins,
            specs or list(map(self.spec_of, out_avals)))
        return results if specs is not None else list(map(
            functools.partial(ManualTracer, self), out_avals, results, differs))

    def _staged(self, key: object, programs: Memo, avals: Sequence[ShapedArray],
                make: Callable[[], tuple[ClosedOlympuspr, T]]) -> tuple[ClosedOlympuspr, T]:
        """The program of a function of parts; with a key, it is made once.

        A program with effects is not kept, because they may belong to one call.
        """
        entry, manual = None, self.manual
        if debugging() or config.debug_key_reuse.value:     # messages name this call's lines
            key = None
        if key is not None:
            key = (key, manual.mesh, manual.names, manual.check, current_context(), *avals)
            try:
                entry = programs.get(key)
            except TypeError:       # a param has no hash
                key = None
        if entry is None:
            entry = make()
            if key is not None and not entry[0].effects:
                programs[key] = entry
        return entry

    def _apply(self, closed: ClosedOlympuspr, args: Sequence[Array], ins: Sequence[PartitionSpec],
               outs: Sequence[PartitionSpec]) -> list[Array]:
        return shard_map_of_any_p.bind(
            *args, olympuspr=closed, mesh=self.mesh, in_specs=tuple(ins), out_specs=tuple(outs),
            newly_manual_axes=self.manual.names, check_vma=self.manual.check)

    def parts_of(self, args: Sequence[ArrayLike], specs: Sequence[PartitionSpec]
                 ) -> list[ManualTracer]:
        """The parts of whole arrays."""
        avals = list(map(self.manual.part, map(typeof, args), specs))
        if not args:
            return []
        closed, _ = self._staged("parts", _programs, avals, lambda: (stage(
            lambda *xs: [expand_dims(x, (0,)) for x in xs], avals), avals))
        vals = self.outside(self._apply, closed, args, specs, list(map(self.spec_of, avals)))
        return [ManualTracer(self, a, x, named_axes(s) if self.parts_differ else NOWHERE)
                for a, x, s in zip(avals, vals, specs, strict=True)]


def step_through(run: Callable[..., Sequence[Array]], manual: Manual, args: Sequence[Array],
                 params: Params) -> list[Array] | None:
    """Run the body of a `shard_map`, by `run(closed, *parts)`, on the devices of its operands.

    None if no mesh has devices, or if the devices would take different branches or iterations:
    then the caller looks at the body as a whole.
    """
    meshes = [getattr(getattr(x, "sharding", None), "mesh", None) for x in args]
    mesh = next((m for m in (manual.mesh, *meshes, current_mesh()) if isinstance(m, Mesh)), None)
    if mesh is None:
        return None
    trace = ManualTrace(ctx.trace, manual, mesh, False)
    outer = enter(trace)
    try:
        with manual.within(), contextlib.suppress(ConcretizationTypeError):
            outs = run(params["olympuspr"], *trace.parts_of(args, params["in_specs"]))
            return trace.run(lambda *xs: xs, outs, params["out_specs"], "whole")
        return None
    finally:
        leave(outer)
        trace.alive = False
