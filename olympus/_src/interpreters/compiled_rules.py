"""Rules of operations on arrays, each compiled as one program.

A rule binds several small operations: that of tanh five. Above a trace that evaluates, they would be
as many compiled calls. Here a rule is staged once per primitive, params and types of its operands,
and called from then on; above a tape it is cut in two, and the tape records the second half.

    above arrays    primals, tangents  ──►  compiled  ──►  results, tangents
    above a tape    primals  ──►  compiled  ──►  results, residuals
                    residuals, tangents  ──►  equations on the tape  ──►  tangents
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..base import config, lib
from ..base.util import Memo
from ..core.context import current_context
from ..core.ir import ClosedOlympuspr, Literal
from ..core.primitive import Axis, Primitive, Zero, pair, spread_tangents
from ..core.staging import stage
from ..core.trace import Trace
from .partial_eval import TapeTrace, TapeTracer, split_program

__all__ = ["Compiled", "jvp_at_once", "vmap_at_once"]

ArrayImpl = lib.ArrayImpl

# By primitive, context, types and params: a rule of forward mode, or False where it has to run in
# Python each time.
_rules: Memo = Memo(4096)

# Options under which each operation is looked at by itself.
_BY_STEPS = (config.debug_nans, config.debug_infs, config.debug_key_reuse, config.jit_disabled,
             config.check_tracer_leaks)


class Compiled:
    """A program as a function of a list of arrays; what is an operand already is not computed."""

    __slots__ = ("trace", "name", "call", "places")

    def __init__(self, trace: Any, name: str, closed: ClosedOlympuspr) -> None:
        places: dict[Any, int] = {v: ~i for i, v in enumerate(closed.invars)}
        made: list[Any] = []
        for v in closed.outvars:
            if type(v) is not Literal and v not in places:
                places[v] = len(made)
                made.append(v)
        self.trace, self.name = trace, name
        self.call = trace.compiled(
            closed.replace(olympuspr=closed.olympuspr.replace(outvars=made)), name)
        # Per result: a number of the compiled program, ~i for operand i, or a number itself. None
        # if the compiled program has just these results.
        found = [v if type(v) is Literal else places[v] for v in closed.outvars]
        self.places = None if found == list(range(len(made))) else found

    def __call__(self, args: list[Any]) -> list[Any]:
        found = self.trace.run(self.call, args, self.name)
        return found if self.places is None else [
            place if type(place) is Literal else found[place] if place >= 0 else args[~place]
            for place in self.places]


class JVPRule:
    """The rule `jvp` of a primitive for certain types, as a compiled call.

        above arrays:  first(primals, tangents)
        above a tape:  first(primals), then `later` of some of its results, some primals, and the
                       tangents, on the tape
    """

    __slots__ = ("first", "later", "residuals", "tangents")

    def __init__(self, first: Compiled, later: ClosedOlympuspr | None, residuals: Sequence[int],
                 tangents: Sequence[Any]) -> None:
        self.first, self.later = first, later
        self.residuals = residuals      # places in what `first` returns, and behind it the primals
        # Per result of the primitive, its tangent's place in what `first` and `later` return, or
        # Zero.
        self.tangents = tangents

    def __call__(self, tape: Any, primals: list[Any], given: list[Any]) -> Any:
        if self.later is None:
            found = self.first(primals + given)
        else:
            found = self.first(primals)
            every = found + primals
            found = found + tape.append(self.later, [every[i] for i in self.residuals] + given)
        return found, [found[t] if type(t) is int else t for t in self.tangents]


def jvp_at_once(parent: Trace, prim: Primitive, primals: list[Any], tangents: list[Any],
                params: dict[str, Any]) -> Any:
    """What `prim.jvp` returns, by one compiled call; None where the rule has to run in Python.

    `tangents` has None for those that are zero.
    """
    tape = parent if type(parent) is TapeTrace else None
    trace: Any = parent if tape is None else tape.parent
    if not trace.evaluates or prim.effectful:
        return None
    types = []
    for x in primals:
        if type(x) is not ArrayImpl and type(x) is not Literal:
            return None
        types.append(x.aval)
    given = []
    for t in tangents:
        if t is None:
            types.append(None)
            continue
        if not (type(t) is ArrayImpl if tape is None else
                type(t) is TapeTracer and t._trace is tape):
            return None
        types.append(t.aval)
        given.append(t)
    key = ("jvp", prim, tape is None, current_context(), *types, *params.items())
    rule = _rules.get(key)
    if rule is None:
        rule = _rules[key] = _jvp_rule(trace, tape is not None, prim, types, params)
    if rule is False:
        return None
    found, out_tangents = rule(tape, primals, given)
    return ((found[:len(out_tangents)], out_tangents) if prim.multiple_results else
            (found[0], out_tangents[0]))


def _jvp_rule(trace: Any, cut: bool, prim: Primitive, types: Sequence[Any], params: dict[str, Any]
              ) -> JVPRule | bool:
    """The rule, staged; False where it has to run in Python."""
    if prim.jvp is None or any(option.value for option in _BY_STEPS):
        return False
    n = len(types) // 2
    avals, given = types[:n], [t for t in types[n:] if t is not None]
    tangents: Sequence[Any] = ()

    def rule(primals: Sequence[Any], nonzero: Sequence[Any]) -> list[Any]:
        nonlocal tangents
        found = prim.jvp(list(primals), spread_tangents(
            avals, [t is not None for t in types[n:]], nonzero), **params)
        outs, tangents = pair(prim, "jvp", "tangents", found)
        if not prim.multiple_results:
            outs, tangents = [outs], [tangents]
        return [*outs, *[t for t in tangents if type(t) is not Zero]]

    try:
        if not cut:
            first = stage(lambda *xs: rule(xs[:n], xs[n:]), [*avals, *given])
            places = iter(range(len(tangents), len(first.outvars)))
            return _ready(trace, prim, first, None, (), tangents, places)
        split = split_program(lambda _, tape, known, unknown: rule(known, unknown), avals, given)
    except Exception:       # which the rule raises again where it runs in Python
        return False
    count, first = len(tangents), split.known
    end = len(first.outvars) - split.num_computed
    computed, known = iter(range(end, len(first.outvars))), iter(range(count, end))
    recorded = iter(range(len(first.outvars), len(first.outvars) + sum(split.unknown_out)))
    residuals = [next(computed) if r is None else len(first.outvars) + r for r in split.residuals]
    return _ready(trace, prim, first, split.unknown, residuals, tangents, iter(
        [next(recorded if u else known) for u in split.unknown_out[count:]]))


def _ready(trace: Any, prim: Primitive, first: ClosedOlympuspr, later: ClosedOlympuspr | None,
           residuals: Sequence[int], tangents: Sequence[Any], places: Iterator[int]
           ) -> JVPRule | bool:
    if first.effects or (later is not None and later.effects):
        return False
    return JVPRule(Compiled(trace, prim.name, first), later, residuals,
                   [t if type(t) is Zero else next(places) for t in tangents])


def vmap_at_once(trace: Any, prim: Primitive, axis: Axis, vals: list[Any],
                 dims: list[int | None], params: dict[str, Any]) -> Any:
    """What `prim.vmap` returns, by one compiled call; None where the rule has to run in Python."""
    if not trace.evaluates or prim.effectful or axis.mesh_axis is not None:
        return None
    types = []
    for x in vals:
        if type(x) is not ArrayImpl and type(x) is not Literal:
            return None
        types.append(x.aval)
    key = ("vmap", prim, axis.size, current_context(), *types, *dims, *params.items())
    rule = _rules.get(key)
    if rule is None:
        rule = _rules[key] = _vmap_rule(trace, prim, Axis(axis.size), types, dims, params)
    if rule is False:
        return None
    outs = rule[0](vals)
    return (outs if prim.multiple_results else outs[0]), rule[1]


def _vmap_rule(trace: Any, prim: Primitive, axis: Axis, types: Sequence[Any],
               dims: Sequence[int | None], params: dict[str, Any]) -> Any:
    if any(option.value for option in _BY_STEPS):
        return False
    out_dims: Any = None

    def rule(*xs: Any) -> list[Any]:
        nonlocal out_dims
        outs, out_dims = pair(prim, "vmap", "mapped axes",
                              prim.vmap(axis, list(xs), list(dims), **params))
        return list(outs) if prim.multiple_results else [outs]

    try:
        closed = stage(rule, types)
    except Exception:       # which the rule raises again where it runs in Python
        return False
    return False if closed.effects else (Compiled(trace, prim.name, closed), out_dims)
