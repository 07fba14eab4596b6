"""Staging: run a Python function on tracers and record an olympuspr.

While tracing, an equation is one tuple in a list; variables and equation objects are made in one
linear pass when the trace closes. Values of outer traces and arrays become constants, lifted once
by identity.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Sequence
from typing import Any

from ..base import source
from ..base.depth import GIVEN, make_room
from ..types.avals import ShapedArray
from .context import ROOT
from .effects import of_equations
from .ir import (
    NO_DEBUG_INFO,
    NO_EFFECTS,
    ClosedOlympuspr,
    DebugInfo,
    Literal,
    Olympuspr,
    OlympusprEqn,
    Var,
)
from .leaks import check_leaks, note_origins
from .primitive import Primitive
from .tags import VaryingError, vary_alike
from .trace import SCALAR_TYPES, Trace, Tracer, check_usable, ctx, enter, leave, typeof

__all__ = ["StagingTrace", "StagingTracer", "stage"]

_user_frame = source.user_frame


class StagingTracer(Tracer):
    """A value of the program being recorded."""

    __slots__ = ("bound", "name", "record")

    def __init__(self, trace: StagingTrace, aval: Any) -> None:
        self._trace = trace
        self.aval = aval
        self.bound: Any = None    # a Var, once the trace closes

    def origin(self) -> str:
        name = getattr(self, "name", None)
        if name is not None:
            return f"the argument {name} of {self._trace.debug_info.func_name}"
        for record in reversed(self._trace.records):
            outs = record[2]
            if outs is self or (type(outs) is list and any(o is self for o in outs)):
                return f"made by {record[0]} at {source.summarize(record[5])}"
        return f"traced in {self._trace.debug_info.func_name}"


class StagingTrace(Trace):
    """Records what is bound; evaluates nothing."""

    __slots__ = ("records", "inputs", "consts", "debug_info")

    def __init__(self, debug_info: DebugInfo = NO_DEBUG_INFO) -> None:
        super().__init__()
        # (primitive, operands, result or list of results, params, effects, source, scope). Others
        # count on the places: `relocate`, `origin`, `note_origins`, the tape.
        self.records: list[tuple] = []
        self.inputs: list[StagingTracer] = []
        # By id of the value, which the entry holds, so that no other value gets that id.
        self.consts: dict[int, tuple[Any, Var]] = {}
        self.debug_info = debug_info

    def new_input(self, aval: Any, name: str | None = None) -> StagingTracer:
        """A tracer for the next input of the program."""
        tracer = StagingTracer(self, aval)
        tracer.name = name
        tracer.bound = Var(aval)
        self.inputs.append(tracer)
        return tracer

    def process(self, prim: Primitive, args: tuple, params: dict[str, Any]) -> Any:
        # Hot path. The comparison of `_trace` costs 30 ns an operand; lifting is out of line.
        avals = tuple([a.aval if type(a) is StagingTracer and a._trace is self else self.lift(a)
                       for a in args])
        try:
            result = prim.result_avals(avals, params)
        except VaryingError:    # only where some operand varies
            args, avals = vary_alike(args)
            result = prim.result_avals(avals, params)
        effects = prim.effects(avals, params) if prim.effectful else NO_EFFECTS
        if prim.multiple_results:
            out: Any = [StagingTracer(self, aval) for aval in result]
        else:
            out = StagingTracer(self, result)
        self.records.append((prim, args, out, params, effects, _user_frame(), ctx.eqn))
        return out

    def process_custom(self, prim: Any, fun: Callable, rules: Any, args: tuple,
                       params: dict[str, Any]) -> Any:
        return prim.stage(fun, rules, args, params)

    def lift(self, x: Any) -> Any:
        """The aval of a value from outside, which becomes a constant of the program."""
        if isinstance(x, Tracer):
            check_usable(x)
        return typeof(x)

    def atom(self, x: Any) -> Any:
        """The variable or literal that stands for `x` in the closed program."""
        # `isinstance`, because a tape's own tracers, of a subclass, come by here, too.
        kind = type(x)
        if isinstance(x, StagingTracer) and x._trace is self:
            return x.bound
        if kind is Literal:
            return x
        if kind in SCALAR_TYPES:
            return Literal(x, typeof(x))
        entry = self.consts.get(id(x))
        if entry is None:
            aval = typeof(x)
            if isinstance(aval, ShapedArray) and aval.ndim == 0 and not hasattr(x, "aval"):
                return Literal(x, aval)     # a NumPy scalar
            entry = self.consts[id(x)] = (x, Var(aval))
        return entry[1]

    def close(self, outs: Sequence[Any], result_paths: tuple[str, ...] = ()) -> ClosedOlympuspr:
        """End the trace: one pass turns records into equations."""
        # Hot: once per equation. Own tracers are read in place, the rest goes through `atom`.
        atom, eqns, effectful, height = self.atom, [], False, 0
        # In the order of recording: operands of ours are inputs, or were bound by earlier records.
        for prim, args, out, params, effects, where, eqn_ctx in self.records:
            if type(out) is list:
                variables = []
                for tracer in out:
                    tracer.bound = Var(tracer.aval)
                    variables.append(tracer.bound)
                for body in prim.bodies(params):
                    height = max(height, _height(body))
            else:
                out.bound = Var(out.aval)
                variables = [out.bound]
            ins = [a.bound if type(a) is StagingTracer and a._trace is self else atom(a)
                   for a in args]
            eqns.append(OlympusprEqn(prim, ins, variables, params, effects, where, eqn_ctx))
            if effects:
                effectful = True
        outvars = [atom(x) for x in outs]
        info = self.debug_info
        if result_paths:
            info = DebugInfo(info.func_name, info.arg_names, result_paths)
        constvars = [var for _, var in self.consts.values()]
        inputs = [t.bound for t in self.inputs]
        all_effects = of_equations([*constvars, *inputs], eqns) if effectful else NO_EFFECTS
        if height >= GIVEN:
            make_room(height + 1)
        pr = Olympuspr(constvars, inputs, outvars, eqns, all_effects, info, height + 1)
        return ClosedOlympuspr(pr, [value for value, _ in self.consts.values()])

    def relocate(self, start: int, where: Any) -> None:
        """Say that the records from `start` on come from the source `where`."""
        self.records[start:] = [(*record[:5], where, record[6]) for record in self.records[start:]]

    def end(self) -> None:
        """Drop the records, so that a leaked tracer keeps nothing alive."""
        self.alive = False
        self.records, self.inputs, self.consts = [], [], {}


def is_recorded(trace: Any) -> bool:
    """Whether what the trace does ends in a program; else it ends in values."""
    while (parent := getattr(trace, "parent", None)) is not None:
        trace = parent
    return isinstance(trace, StagingTrace)


def _height(program: Any) -> int:
    """How deep an open or closed program nests."""
    return (program.olympuspr if type(program) is ClosedOlympuspr else program).height


def stage(fun: Callable[..., Sequence[Any]], in_avals: Sequence[Any],
          debug_info: DebugInfo = NO_DEBUG_INFO) -> ClosedOlympuspr:
    """Record `fun`, a function of flat arguments that returns a flat list of values."""
    trace = StagingTrace(debug_info)
    names = debug_info.arg_names
    inputs = [trace.new_input(aval, names[i] if i < len(names) else None)
              for i, aval in enumerate(in_avals)]
    # A trace makes many objects that all live until it closes: collecting cycles meanwhile finds
    # nothing and costs a quarter of the time.
    collecting = gc.isenabled()
    outer, scope = enter(trace), ctx.eqn
    try:
        ctx.eqn = ROOT      # names are relative to the program, which may be called in many scopes
        if collecting:
            gc.disable()
        outs = fun(*inputs)
        # Closing and noting need the records, which `end` drops.
        closed = trace.close(outs)
        notes = note_origins(trace)
    finally:
        leave(outer)
        ctx.eqn = scope
        trace.end()
        if collecting:
            gc.enable()
    # What this frame holds of the trace is no leak: let go of it before looking.
    if notes is not None:
        inputs = outs = []
        check_leaks(trace, notes)
    return closed


def closure_convert(closed: ClosedOlympuspr) -> tuple[ClosedOlympuspr, list[Tracer]]:
    """Turn constants that are tracers into leading inputs; return the program and those tracers.

    Programs that a primitive carries may hold arrays but never values of a live trace.
    """
    tracers = [c for c in closed.consts if isinstance(c, Tracer)]
    if not tracers:
        return closed, []
    pr = closed.olympuspr
    # In the order of the constants: whoever binds the program passes [*tracers, *arguments].
    moved = [v for v, c in zip(pr.constvars, closed.consts, strict=True) if isinstance(c, Tracer)]
    kept = [(v, c) for v, c in zip(pr.constvars, closed.consts, strict=True)
            if not isinstance(c, Tracer)]
    new = pr.replace(constvars=[v for v, _ in kept], invars=[*moved, *pr.invars])
    return ClosedOlympuspr(new, [c for _, c in kept]), tracers


def all_consts_as_inputs(closed: ClosedOlympuspr) -> tuple[ClosedOlympuspr, list[Any]]:
    """Turn every constant into a leading input; return the program and the values."""
    pr = closed.olympuspr
    if not closed.consts:
        return closed, []
    return (ClosedOlympuspr(pr.replace(constvars=[], invars=[*pr.constvars, *pr.invars])),
            closed.consts)
