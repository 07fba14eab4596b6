"""Staging: run a Python function on tracers and record an olympuspr.

Equations and variables are made while tracing, so closing a trace needs no pass. Values of outer
traces and arrays become constants, one for each object.
"""

from __future__ import annotations

import gc
import operator
from collections.abc import Callable, Sequence
from sys import getrefcount
from typing import Any

from ..base import source
from ..base.config import auto_pcast
from ..base.depth import GIVEN, make_room
from ..base.source import Source
from ..base.typing import Array, ArrayLike, Params
from ..types.avals import HIGH, Aval, ShapedArray
from .context import ROOT, outermost
from .effects import Effect
from .ir import (
    NO_DEBUG_INFO, NO_EFFECTS, Atom, ClosedOlympuspr, DebugInfo, Literal, Olympuspr, OlympusprEqn,
    Var, effects_of_equations, variables,
)
from .leaks import check_leaks, note_origins
from .primitive import Primitive
from .tags import VaryingError, ZeroNeededError, vary_alike
from .trace import (
    DEPENDS, REFERENCES, SCALAR_TYPES, Trace, Tracer, check_usable, ctx, enter, leave, typeof,
)

_user_frame = source.user_frame
new: Any = object.__new__
_UNLEAKED = 2           # references to an ended trace: `stage`'s own, and `getrefcount`'s argument
ASK: Any = object()     # as a source: find the user's line


class JitTracer(Tracer):
    """A value of the program being recorded.

    >>> import olympus
    >>> from olympus.interpreters.partial_eval import DynamicOlympusprTracer
    >>> _ = olympus.jit(lambda x: print(isinstance(x, DynamicOlympusprTracer)) or x)(1.0)
    True
    """

    __slots__ = ("_bound", "_name")

    def __init__(self, trace: StagingTrace, bound: Var) -> None:
        self._trace = trace
        self.aval = bound.aval
        self._bound = bound      # its name in the program

    def _origin(self) -> str:
        name = getattr(self, "_name", None)
        if name is not None:
            return f"the argument {name} of {self._trace.debug_info.func_name}"
        for eqn in reversed(self._trace.eqns):
            if self._bound in eqn.outvars:
                return made_by(eqn)
        if (origin := self._trace.leaked.get(id(self._bound))) is not None:
            return made_at(*origin)
        return f"traced in {self._trace.debug_info.func_name}"

    def _unknown_because(self) -> str:
        given, needed, made = self._trace.inputs, {self._bound}, []
        for eqn in reversed(self._trace.eqns):
            if not needed.isdisjoint(eqn.outvars):
                made.append(eqn)
                needed.update(variables(eqn.invars))
        traced = source.traced_function(stage.__code__, self._trace)
        # Inputs of bodies have no names yet: take the parameters' names, if each is one array.
        own = traced[0].co_varnames if traced and traced[0].co_argcount == len(given) else ()
        inputs = [tracer._name or (own[i] if own else "") for i, tracer in enumerate(given)
                  if tracer._bound in needed]
        if all(inputs) and inputs:
            *first, last = inputs
            names = f"{', '.join(first)}{',' * (len(first) > 1)} and {last}" if first else last
            s = "s" if first else ""
            return f"{DEPENDS}{s} of the argument{s} {names}. "
        if inputs or not made:
            return ""
        by_line: dict[str, dict[str, None]] = {}     # line -> its distinct operations
        for eqn in reversed(made):
            by_line.setdefault(source.summarize(eqn.source), {})[str(eqn.primitive)] = None
            if len(by_line) > 5:
                break
        shown = [f"  {', '.join(names)} at {place}" for place, names in [*by_line.items()][:5]]
        if len(by_line) > len(shown):
            shown.append("Additional originating lines are not shown.")
        return "\n".join(["This value became a tracer due to operations on these lines:", *shown,
                          ""])

    def _may_be_static(self) -> bool:
        traced = source.traced_function(stage.__code__, self._trace)
        return traced is not None and traced[1] in ("jit", "make_olympuspr", "checkpoint")

    def _setting(self) -> str:
        traced = source.traced_function(stage.__code__, self._trace)
        return "" if traced is None else (
            f"met while tracing the function {self._trace.debug_info.func_name} at "
            f"{source.written_at(traced[0])} for {traced[1]}")


def made_by(eqn: OlympusprEqn) -> str:
    """The origin of an equation's results, for messages."""
    return made_at(eqn.primitive, eqn.source)


def made_at(primitive: Primitive, line: Source | None) -> str:
    return f"made by {primitive} at {source.summarize(line)}"


class StagingTrace(Trace):
    """Records equations; evaluates nothing."""

    __slots__ = ("eqns", "inputs", "consts", "debug_info", "source", "effectful", "height",
                 "leaked")
    made: type[JitTracer] = JitTracer      # the class of its tracers

    def __init__(self, debug_info: DebugInfo = NO_DEBUG_INFO) -> None:
        super().__init__()
        self.recorded = True
        self.eqns: list[OlympusprEqn] = []
        self.inputs: list[JitTracer] = []
        # By id of the value; the entry keeps the value alive, so that ids stay unique.
        self.consts: dict[int, tuple[Any, Var]] = {}
        self.debug_info = debug_info
        # The source of everything that is recorded now, if it is known beforehand.
        self.source: Any = None
        # effectful: whether any equation has effects. height: the greatest height of a body.
        self.effectful, self.height = False, 0
        # If a tracer outlived the trace: id of a variable -> the primitive and line that made it.
        self.leaked: dict[int, tuple[Primitive, Any]] = {}

    def new_input(self, aval: Any, name: str | None = None) -> JitTracer:
        """A tracer for the next input of the program."""
        tracer = self.made(self, Var(aval))
        tracer._name = name
        self.inputs.append(tracer)
        return tracer

    def process(self, prim: Primitive, args: Sequence[Any], params: Params,
                line: Source | None = ASK) -> Any:
        # The hot path. The comparison of `_trace` takes 30 ns an operand; `lift` is for the rest.
        made, types, ins, lifted = self.made, [], [], False
        for a in args:
            kind = type(a)
            if kind is made and a._trace is self:
                types.append(a.aval)
                ins.append(a._bound)
            elif kind is Literal:
                types.append(a.aval)
                ins.append(a)
            else:
                types.append(self.lift(a))
                ins.append(a)
                lifted = True
        avals = tuple(types)
        try:
            result = prim.result_avals(avals, params)
        except (VaryingError, ZeroNeededError) as error:     # operands vary, or are unreduced
            if not auto_pcast.value:
                raise
            return self._vary(prim, args, params, line, error)
        if lifted:      # only now, so that a refused operation leaves no constant
            ins = [v if type(v) is Var else self.atom(v) for v in ins]
        effects = NO_EFFECTS
        if prim.effectful:
            effects = prim.effects(avals, params)
            if effects:
                self.note_effects(effects, args)
        if line is ASK:
            line = self.source or _user_frame(2)
        if prim.multiple_results:
            if prim.recorded_as is not None:
                return prim.recorded_as(self, args, params)
            for body in prim.bodies(params):
                height = (body.olympuspr if type(body) is ClosedOlympuspr else body).height
                if height > self.height:
                    self.height = height
            outs = [Var(aval) for aval in result]
            self.eqns.append(OlympusprEqn(prim, ins, outs, params, effects, line, ctx.scope))
            return [made(self, v) for v in outs]
        # What the three `__init__` do, without their frames.
        var, eqn, out = new(Var), new(OlympusprEqn), new(made)
        var.aval = out.aval = result
        eqn.primitive, eqn.params, eqn.effects = prim, params, effects
        eqn.source, eqn.ctx = line, ctx.scope
        eqn.invars, eqn.outvars = ins, [var]
        self.eqns.append(eqn)
        out._trace, out._bound = self, var
        return out

    def _vary(self, prim: Primitive, args: Sequence[ArrayLike], params: Params,
              line: Source | None, error: Exception) -> Any:
        """`process` with operands cast to vary along the same mesh axes."""
        outer, ctx.trace = ctx.trace, self      # `ctx.trace` may be the parent of this tape
        before = list(map(typeof, args))
        try:
            args = vary_alike(args)
        finally:
            ctx.trace = outer
        if all(map(operator.is_, before, map(typeof, args))):
            raise error
        return StagingTrace.process(self, prim, args, params, line)

    def note_effects(self, effects: frozenset[Effect], args: Sequence[ArrayLike]) -> None:
        """Note the effects of the next equation."""
        self.effectful = True

    def process_custom(self, prim: Any, fun: Callable[..., Sequence[ArrayLike]], rules: object,
                       args: tuple[ArrayLike, ...], params: Params) -> list[Array]:
        return prim.stage(fun, rules, args, params)

    def lift(self, x: ArrayLike) -> ShapedArray:
        """The aval of a value from outside."""
        if isinstance(x, Tracer):
            check_usable(x)
        return typeof(x)

    def atom(self, x: Any) -> Atom:
        """The variable or literal that stands for `x`; a value from outside becomes a constant."""
        kind = type(x)
        if kind is self.made and x._trace is self:
            return x._bound
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

    def close(self, outs: Sequence[ArrayLike], result_paths: tuple[str, ...] = ()
              ) -> ClosedOlympuspr:
        """End the trace: the program that returns `outs`."""
        outvars = [self.atom(x) for x in outs]
        info = self.debug_info
        if result_paths:
            info = info._replace(result_paths=result_paths)
        constvars = [var for _, var in self.consts.values()]
        inputs = [t._bound for t in self.inputs]
        effects = (effects_of_equations([*constvars, *inputs], self.eqns) if self.effectful
                   else NO_EFFECTS)
        if self.height >= GIVEN:
            make_room(self.height + 1)
        pr = Olympuspr(constvars, inputs, outvars, self.eqns, effects, info, self.height + 1)
        return ClosedOlympuspr(pr, [value for value, _ in self.consts.values()])

    def relocate(self, start: int, line: Source | None) -> None:
        """Give another line to the equations from `start` on."""
        for eqn in self.eqns[start:]:
            eqn.source = line

    def end(self) -> None:
        """Drop the equations, so that a leaked tracer keeps nothing alive."""
        self.alive = False
        self.eqns, self.inputs, self.consts = [], [], {}

    def note_leaks(self, eqns: Sequence[OlympusprEqn]) -> None:
        """Remember the lines of the equations for messages about the tracers that leaked."""
        self.leaked = {id(var): (eqn.primitive, eqn.source) for eqn in eqns for var in eqn.outvars}


def recorder(trace: Trace) -> StagingTrace | None:
    """The trace in which the operations of `trace` end as equations; None if they are evaluated."""
    while trace.parent is not None:
        trace = trace.parent
    return trace if isinstance(trace, StagingTrace) else None


def stage(fun: Callable[..., Sequence[ArrayLike]], in_avals: Sequence[Aval],
          debug_info: DebugInfo = NO_DEBUG_INFO, kind: type[StagingTrace] = StagingTrace
          ) -> ClosedOlympuspr:
    """The program of `fun`, a function of flat arguments that returns a flat list of values."""
    trace = kind(debug_info)
    names = debug_info.arg_names
    inputs = [trace.new_input(aval, names[i] if i < len(names) else None)
              for i, aval in enumerate(in_avals)]
    # A trace makes many objects that all live until it closes: a collection meanwhile finds nothing
    # and costs a quarter of the time.
    collecting = gc.isenabled()
    outer = enter(trace)
    try:
        # Names are relative to the program, which may be called in many scopes.
        ctx.scope = outermost.value or ROOT
        if collecting:
            gc.disable()
        outs = fun(*inputs)
        # Before `end`, which drops the equations.
        closed = trace.close(outs)
        notes = note_origins(trace)
    finally:
        try:
            leave(outer)
        finally:    # even if an interrupt comes out of `leave`
            if collecting:
                gc.enable()
            trace.end()
    # References of this frame are no leaks: drop them before counting.
    inputs = outs = []
    if getrefcount(trace) > _UNLEAKED:
        trace.note_leaks(closed.olympuspr.eqns)
    if notes is not None:
        check_leaks(trace, notes)
    return closed


def closure_convert(closed: ClosedOlympuspr) -> tuple[ClosedOlympuspr, list[Any]]:
    """Turn constants that must be passed into leading inputs; return the program and their values.

    Programs that a primitive carries may have arrays as constants, but no value that
    `must_be_passed`.
    """
    flags = list(map(must_be_passed, closed.consts))
    if True not in flags:
        return closed, []
    pr = closed.olympuspr
    # In the order of the constants: callers bind [*values, *arguments].
    passed = [v for v, h in zip(pr.constvars, flags, strict=True) if h]
    kept = [(v, c) for v, c, h in zip(pr.constvars, closed.consts, flags, strict=True) if not h]
    new = pr.replace(constvars=[v for v, _ in kept], invars=[*passed, *pr.invars])
    return (ClosedOlympuspr(new, [c for _, c in kept]),
            [c for c, h in zip(closed.consts, flags, strict=True) if h])


def must_be_passed(value: object) -> bool:
    """Whether `value` may not be a constant of a kept program, because it belongs to a live trace,
    or is a reference: each application of the program passes it.
    """
    if isinstance(value, Tracer) or type(value) in REFERENCES:
        return True
    # An object of a user's type may have traced values as its parts.
    return bool(HIGH) and typeof(value).is_high


def passing(value: Any) -> bool:
    """Whether a value, or a part of it, belongs to a live trace and ends with it."""
    if isinstance(value, Tracer):
        return True
    if type(value) in REFERENCES:
        return value._trace is not None
    if not HIGH:
        return False
    aval = typeof(value)
    return aval.is_high and any(map(passing, aval.lower_val(value)))


def all_consts_as_inputs(closed: ClosedOlympuspr) -> tuple[ClosedOlympuspr, list[ArrayLike]]:
    """Turn every constant into a leading input; return the program and the constants."""
    pr = closed.olympuspr
    if not closed.consts:
        return closed, []
    return (ClosedOlympuspr(pr.replace(constvars=[], invars=[*pr.constvars, *pr.invars])),
            closed.consts)
