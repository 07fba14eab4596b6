"""Partial evaluation: run the known part, record the rest.

`TapeTrace` is a staging trace with a parent. An operation on known values runs at once in the
parent; an operation on an unknown is recorded. Linearisation is forward mode above such a tape,
with tangents unknown: primal values stay concrete (so Python `if` works), equations on tangents are
recorded, and `transpose` walks them backwards.

      user's function  ──►  JVPTrace  ──primal ops──►  parent of the tape (evaluate, stage, …)
                               └───────tangent ops──►  tape
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from itertools import compress
from typing import Any, NamedTuple

from ..base.config import debug_infs, debug_nans
from ..base.typing import Array, ArrayLike, Params, T
from ..core.context import ROOT
from ..core.effects import Effect, input_effects
from ..core.evaluate import eval_closed
from ..core.ir import (
    ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, Var, derived, read, variables,
)
from ..core.primitive import Higher, Primitive
from ..core.staging import ASK, JitTracer, StagingTrace, recorder
from ..core.trace import Trace, ctx, enter, leave, typeof
from ..lax.shape import broadcast_in_dim_p
from ..types.avals import Aval
from .dce import dce_closed


class TapeTracer(JitTracer):
    """An unknown value, usually a tangent.

    >>> import olympus
    >>> from olympus.extend.linear_util import wrap_init
    >>> from olympus.interpreters.partial_eval import PartialVal, trace_to_olympuspr_nounits
    >>> fun = wrap_init(lambda x: print(type(x).__name__) or [x])
    >>> _ = trace_to_olympuspr_nounits(fun, [PartialVal.unknown(olympus.typeof(1.0))])
    TapeTracer
    """

    __slots__ = ()
    shown, _known = "TapeTracer", False


class TapeTrace(StagingTrace):
    """Records operations on unknowns; passes the others on to `parent`.

    Recorded operations run after all operations that are passed on. So once an operation is
    recorded that reads or changes an input (`InputEffect`), later operations on that input are
    recorded, too.
    """

    __slots__ = ("touched", "scope", "root", "reverse")
    made = TapeTracer

    def __init__(self, parent: Trace) -> None:
        super().__init__()
        self.parent, self.recorded = parent, parent.recorded
        self.watched = parent.watched or debug_nans.value or debug_infs.value
        self.scope = ctx.scope
        self.root = recorder(parent) if parent.recorded else None      # it knows the lines
        self.reverse = True     # whether its equations will be transposed (nearly always)
        # The inputs that recorded operations read or change, by id; the entry keeps them alive.
        self.touched: dict[int, Any] = {}

    def close(self, outs: Sequence[ArrayLike], result_paths: tuple[str, ...] = ()
              ) -> ClosedOlympuspr:
        """End the trace; the program's scopes are relative to the scope in which it began."""
        n = len(self.scope.names)
        if n:
            for eqn in self.eqns:
                eqn.ctx = ROOT.extend(*eqn.ctx.names[n:])
        return super().close(outs, result_paths)

    def owns(self, x: ArrayLike) -> bool:
        return type(x) is TapeTracer and x._trace is self

    def process(self, prim: Primitive, args: tuple, params: Params) -> object:
        # All values but this tape's tracers are known: arrays, numbers, tracers of the parent and
        # of traces below it. An operation that `must_wait` is recorded all the same.
        parent = self.parent
        for a in args:
            if type(a) is TapeTracer and a._trace is self:
                break
        else:
            if not self.touched or not self.must_wait(prim, args, params):
                ctx.trace = parent
                try:
                    return parent.process(prim, args, params)
                finally:
                    ctx.trace = self
        if prim.partial_eval is None:
            line = self.root.source if self.root else self.source
            return StagingTrace.process(self, prim, args, params,
                                        line or (ASK if self.watched else None))
        # The rule of a primitive with bodies runs in the parent, where it binds the known half; it
        # puts the unknown half on the tape by `record`.
        unknown = list(map(self.owns, args))
        for i in self.must_wait(prim, args, params):
            unknown[i] = True
        ctx.trace = parent
        try:
            return prim.partial_eval(self, args, unknown, **params)
        finally:
            ctx.trace = self

    def process_custom(self, prim: Primitive, fun: Callable, rules: object, args: tuple,
                       params: Params) -> list[Array]:
        if any(map(self.owns, args)):
            return prim.on_tape(self, fun, rules, args, params)
        ctx.trace = self.parent
        try:
            return self.parent.process_custom(prim, fun, rules, args, params)
        finally:
            ctx.trace = self

    def must_wait(self, prim: Primitive, args: Sequence[ArrayLike], params: Params) -> list[int]:
        """The indices of operands whose effects come after recorded ones."""
        if not self.touched or not prim.effectful:
            return []
        effects = prim.effects(tuple(map(typeof, args)), params)
        return [e.index for e in input_effects(effects) if id(args[e.index]) in self.touched]

    def record(self, prim: Primitive, args: Sequence[ArrayLike], params: Params) -> Any:
        """Append one equation whose outputs are all unknown."""
        # Known operands become constants of the tape's program. Each object is one residual,
        # however many equations read it.
        line = self.root.source if self.root else self.source
        return super().process(prim, args, params, line or (ASK if self.watched else None))

    def append(self, closed: ClosedOlympuspr, args: Sequence[Array]) -> list[TapeTracer]:
        """Record the equations of a program without effects unchanged; return its results.

        The operands must have the program's input types, so no type is inferred.
        """
        pr, atom = closed.olympuspr, self.atom
        env: dict[Any, Any] = dict(zip(pr.invars, map(atom, args), strict=True))
        if closed.consts:
            env.update(zip(pr.constvars, map(atom, closed.consts), strict=True))
        self.height = max(self.height, pr.height - 1)
        for eqn in pr.eqns:
            outs = [Var(v.aval) for v in eqn.outvars]
            self.eqns.append(OlympusprEqn(eqn.primitive, read(eqn.invars, env), outs, eqn.params,
                                          eqn.effects, None, ctx.scope))
            env.update(zip(eqn.outvars, outs, strict=True))
        return [TapeTracer(self, v) for v in read(pr.outvars, env)]

    def note_effects(self, effects: frozenset[Effect], args: Sequence[Array]) -> None:
        super().note_effects(effects, args)
        self.touched.update([(id(args[e.index]), args[e.index]) for e in input_effects(effects)])


class Residual(NamedTuple):
    """The origin of a value that the unknown half takes from the known half.

    kind: "input", a known input; "computed", a value that the known half returns for this purpose.
      Loops have further kinds.
    index: its index among the values of its kind.
    """

    kind: str
    index: int


class Split:
    """A program split into a known and an unknown half.

    known:    known inputs -> known outputs, then computed residuals
    unknown:  residuals, then unknown inputs -> unknown outputs
    """

    # known inputs ───┬──►  known  ──────────► known outputs
    #                 │       │ computed
    #                 ▼       ▼
    #                 residuals
    #                     │
    #                     ▼
    # unknown inputs ──►  unknown  ──────────► unknown outputs
    #
    # The known half needs nothing of the unknown one: it runs first, and alone if only its outputs
    # are wanted. It does not return residuals that are its inputs.
    __slots__ = ("known", "unknown", "unknown_out", "residuals")

    def __init__(self, known: ClosedOlympuspr, unknown: ClosedOlympuspr,
                 unknown_out: tuple[bool, ...], residuals: tuple[Residual, ...]) -> None:
        self.known, self.unknown = known, unknown
        self.unknown_out, self.residuals = unknown_out, residuals

    def touched(self, unknown_in: Sequence[bool]) -> list[int]:
        """The known inputs that the unknown half reads or changes.

        In a loop that comes before the known half of the next iteration, so all operations on such
        an input must be in one half.
        """
        inputs = [i for i, u in enumerate(unknown_in) if not u]
        lead = len(self.unknown.consts)
        indices = [e.index - lead for e in input_effects(self.unknown.effects)]
        residuals = [self.residuals[i] for i in indices if 0 <= i < len(self.residuals)]
        return [inputs[r.index] for r in residuals if r.kind == "input"]

    @property
    def num_computed(self) -> int:
        return len([r for r in self.residuals if r.kind == "computed"])

    def residual_values(self, known_args: Sequence[T], computed: Sequence[T]) -> list[T]:
        """The residuals, in the order of the inputs of `unknown`."""
        by_kind = {"input": known_args, "computed": computed}
        return [by_kind[r.kind][r.index] for r in self.residuals]


def split_program(fun: Callable[[StagingTrace, TapeTrace, list, list], Sequence[Array]],
                  known_avals: Sequence[Aval], unknown_avals: Sequence[Aval],
                  instantiate: Sequence[bool] | bool = False, narrow: bool = True) -> Split:
    """Stage `fun(staging, tape, known inputs, unknown inputs)` under a tape above a staging trace.

    Args:
      fun: returns a flat list of outputs; it runs with the tape as current trace.
      known_avals, unknown_avals: avals of the two groups of inputs.
      instantiate: per output, whether it counts as unknown even if it is known.
      narrow: whether the operand of a broadcast is the residual in its place.
    """
    staging = StagingTrace()
    tape = TapeTrace(staging)
    known_in = [staging.new_input(a) for a in known_avals]
    unknown_in = [tape.new_input(a) for a in unknown_avals]
    outer = enter(tape)
    try:
        ctx.scope = tape.scope = ROOT
        outs = fun(staging, tape, known_in, unknown_in)
        if isinstance(instantiate, bool):
            instantiate = (instantiate,) * len(outs)
        unknown_out = tuple(force or tape.owns(o)
                            for o, force in zip(outs, instantiate, strict=True))
        unknown = tape.close([o for o, u in zip(outs, unknown_out, strict=True) if u])
        # Before the residuals are listed, so that values which only dead equations read are none.
        unknown = dce_closed(unknown, [True] * len(unknown.olympuspr.outvars))[0]
        ctx.trace = staging
        # A constant of the unknown half is a residual if the known half made it. Arrays, and
        # tracers of traces below both, stay constants.
        constants, made = [], []
        for var, value in zip(unknown.olympuspr.constvars, unknown.consts, strict=True):
            from_known = isinstance(value, JitTracer) and value._trace is staging
            (made if from_known else constants).append((var, value))
        residuals, computed = _residuals([id(value) for _, value in made], map(id, known_in))
        computed = [made[i][1] for i in computed]
        known_outs = [o for o, u in zip(outs, unknown_out, strict=True) if not u]
        known = staging.close([*known_outs, *computed])
        pr = unknown.olympuspr.replace(
            constvars=[v for v, _ in constants],
            invars=[*(v for v, _ in made), *unknown.olympuspr.invars])
        split = Split(known, ClosedOlympuspr(pr, [c for _, c in constants]), unknown_out, residuals)
        return _narrow(split) if narrow else split
    finally:
        leave(outer)
        tape.end()
        staging.end()


def _residuals(values: Iterable[Hashable], inputs: Iterable[Hashable]
               ) -> tuple[tuple[Residual, ...], list[int]]:
    """The residual for each value, given the program's inputs, and indices of the computed ones."""
    positions = {x: i for i, x in enumerate(inputs)}
    residuals, computed = [], []
    for i, x in enumerate(values):
        if x in positions:
            residuals.append(Residual("input", positions[x]))
        else:
            residuals.append(Residual("computed", len(computed)))
            computed.append(i)
    return tuple(residuals), computed


def _narrow(split: Split) -> Split:
    """The split in which the unknown half repeats broadcasts, and takes their operands instead."""
    # A broadcast is large and cheap to make. It would take memory as a residual, above all of a
    # loop; its operand takes little.
    #
    #     known: a ─► broadcast ─► r (residual)       becomes     known: a (residual)
    #     unknown: f r                                            unknown: broadcast a ─► f
    pr, later = split.known.olympuspr, split.unknown.olympuspr
    first = len(pr.outvars) - split.num_computed
    broadcasts = {v: eqn for eqn in pr.eqns if eqn.primitive is broadcast_in_dim_p
                  for v in eqn.outvars}
    if broadcasts.keys().isdisjoint(pr.outvars[first:]):
        return split
    # The new residuals: the known half's variable -> the unknown half's variable.
    new_inputs: dict[Any, Any] = {}
    repeated: list[OlympusprEqn] = []

    values = split.residual_values(pr.invars, pr.outvars[first:])
    # First the residuals that stay, so that a broadcast of one needs no residual more.
    # (`later.invars` goes on with the unknown inputs, hence not strict.)
    for v, name in zip(values, later.invars, strict=False):
        if v not in broadcasts:
            new_inputs[v] = name
    for v, name in zip(values, later.invars, strict=False):
        chain = []
        while v in broadcasts:
            chain.append(broadcasts[v])
            v = broadcasts[v].invars[0]
        # `v` is now the first operand of the whole chain of broadcasts.
        x = v if type(v) is Literal else new_inputs.setdefault(v, Var(v.aval)) if chain else None
        for eqn in reversed(chain):
            out = name if eqn is chain[0] else Var(eqn.outvars[0].aval)
            repeated.append(OlympusprEqn(eqn.primitive, [x], [out], eqn.params, eqn.effects,
                                         eqn.source, eqn.ctx))
            x = out
    residuals, computed = _residuals(new_inputs, pr.invars)
    outs = [*pr.outvars[:first], *map([*new_inputs].__getitem__, computed)]
    known, _ = dce_closed(split.known.replace(olympuspr=pr.replace(outvars=outs)),
                          (True,) * len(outs))
    later = later.replace(invars=[*new_inputs.values(), *later.invars[len(split.residuals):]],
                          eqns=[*repeated, *later.eqns])
    return Split(known, split.unknown.replace(olympuspr=later), split.unknown_out, residuals)


def partial_eval_program(closed: ClosedOlympuspr, unknown_in: Sequence[bool],
                         instantiate: Sequence[bool] | bool = False) -> Split:
    """Split a program by flags of its unknown inputs; cached on the program."""
    if not isinstance(instantiate, bool):
        instantiate = tuple(instantiate)
    return _split(closed, tuple(unknown_in), instantiate)


@derived
def _split(closed: ClosedOlympuspr, unknown_in: tuple[bool, ...],
           instantiate: tuple[bool, ...] | bool) -> Split:
    def body(staging: StagingTrace, tape: TapeTrace, known: list, unknown: list) -> list[Array]:
        known_it, unknown_it = iter(known), iter(unknown)
        return eval_closed(closed, *[next(unknown_it if u else known_it) for u in unknown_in])

    avals = list(zip(closed.in_avals, unknown_in, strict=True))
    return split_program(body, [a for a, u in avals if not u], [a for a, u in avals if u],
                         instantiate)


# Dependence --------------------------------------------------------------------------------------

def reached(pr: Olympuspr, flags: Sequence[bool]) -> set[Var]:
    """The variables of a program that depend on any flagged input."""
    reached_vars: set[Any] = set(compress(pr.invars, flags))
    for eqn in pr.eqns:
        prim = eqn.primitive
        if reached_vars.isdisjoint(variables(eqn.invars)):
            continue
        if isinstance(prim, Higher):
            ins = [type(v) is not Literal and v in reached_vars for v in eqn.invars]
            reached_vars.update(compress(eqn.outvars, prim.depends(ins, eqn)))
        else:
            reached_vars.update(eqn.outvars)
    return reached_vars


def depends(closed: ClosedOlympuspr, flags: Sequence[bool]) -> tuple[bool, ...]:
    """Flags of the outputs that depend on any flagged input; cached on the program."""
    return _depends(closed, tuple(flags))


@derived
def _depends(closed: ClosedOlympuspr, flags: tuple[bool, ...]) -> tuple[bool, ...]:
    reached_vars = reached(closed.olympuspr, flags)
    return tuple([type(v) is not Literal and v in reached_vars for v in closed.outvars])


def record_unknown(fun: Callable[..., Sequence[Array]], args: Sequence[Any],
                   unknown: Sequence[bool], instantiate: Sequence[bool] | bool = False
                   ) -> tuple[ClosedOlympuspr, list[Array], list[bool]]:
    """Run a flat function's operations on known values, and record the rest.

    Args:
      fun: returns a flat list.
      args: values of known arguments, types of unknown ones.
      unknown: per argument, whether it is unknown.
      instantiate: per result, whether the program returns it even if it is known.

    Returns:
      The program from unknown arguments to unknown results; all results; flags of the unknown ones.
    """
    tape = TapeTrace(ctx.trace)
    tracers = [tape.new_input(x) if u else x for x, u in zip(args, unknown, strict=True)]
    outer = enter(tape)
    try:
        outs = list(fun(*tracers))
        if isinstance(instantiate, bool):
            instantiate = (instantiate,) * len(outs)
        unknown_out = [force or tape.owns(x) for x, force in zip(outs, instantiate, strict=True)]
        closed = tape.close(list(compress(outs, unknown_out)))
    finally:
        leave(outer)
        tape.end()
    return dce_closed(closed, [True] * len(closed.outvars))[0], outs, unknown_out
