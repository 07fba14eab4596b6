"""Rules of operations on arrays, each compiled as one program.

A rule binds several small operations (tanh's binds five), which would be as many compiled calls
where they run at once. So a rule is staged once per primitive, params and types of its operands,
and its program is called from then on. Above a tape it is split in two: the known half is called,
and the equations of the unknown half are recorded.

    jvp, on arrays       primals, tangents  ──►  compiled  ──►  results, tangents
    jvp, above a tape    primals  ──►  compiled  ──►  results, residuals
                         residuals, tangents  ──►  equations on the tape  ──►  tangents
    vmap, on arrays      mapped operands  ──►  compiled  ──►  mapped results

In such a program XLA may fuse a product and a sum into one rounding, so results differ in the last
bits from single operations, as results of `jit` do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base import config, lib
from ..base.typing import Array, Params
from ..base.util import Memo, WithAux
from ..core.context import current_context
from ..core.ir import ClosedOlympuspr, Literal
from ..core.primitive import Axis, Primitive, Tangent, Zero, pair, spread_tangents
from ..core.staging import stage
from ..core.trace import Trace
from ..types.avals import Aval, ShapedArray
from .partial_eval import TapeTrace, TapeTracer, split_program

ArrayImpl = lib.ArrayImpl
Compiled = Callable[[list[Array]], list[Array]]     # an executable program

# By rule, primitive, Context, types and params; False for a rule that runs in Python each time.
_rules: Memo = Memo(4096)

# Options for finding mistakes: under them each operation is called by itself.
_STEPPING_OPTIONS = (config.debug_nans, config.debug_infs, config.debug_key_reuse,
                     config.jit_disabled, config.check_tracer_leaks)


def compiled(trace: Trace, name: str, closed: ClosedOlympuspr) -> Compiled:
    """A program as a function of a list of arrays; results that are operands are not copied."""
    index_of: dict[Any, int] = {v: ~i for i, v in enumerate(closed.invars)}
    computed: list[Any] = []
    for v in closed.outvars:
        if type(v) is not Literal and v not in index_of:
            index_of[v] = len(computed)
            computed.append(v)
    compute = trace.compiled(
        closed.replace(olympuspr=closed.olympuspr.replace(outvars=computed)), name)
    # Per result: i for the i-th computed value, ~i for operand i, or a literal.
    sources = [v if type(v) is Literal else index_of[v] for v in closed.outvars]
    if sources == list(range(len(computed))):
        return compute

    def call(args: list[Array]) -> list[Array]:
        values = compute(args) if computed else computed
        return [place if type(place) is Literal else values[place] if place >= 0 else args[~place]
                for place in sources]

    return call


class JVPRule:
    """The compiled jvp rule of a primitive for operands of certain types.

    On arrays, `first` takes primals and tangents. Above a tape, `first` takes the primals, and the
    equations of `later`, which takes residuals and tangents, are recorded.
    """

    __slots__ = ("first", "later", "residuals", "tangents")

    def __init__(self, first: Compiled, later: ClosedOlympuspr | None, residuals: Sequence[int],
                 tangents: Sequence[int | Zero]) -> None:
        self.first, self.later = first, later
        self.residuals = residuals      # indices into the results of `first`, then the primals
        # Per result a Zero, or the tangent's index into the results of `first`, then `later`.
        self.tangents = tangents

    def __call__(self, tape: Any, primals: list[Array], tangents: list[Array]
                 ) -> tuple[list[Array], Sequence[object]]:
        if self.later is None:
            outs = self.first(primals + tangents)
        else:
            outs = self.first(primals)
            sources = outs + primals
            outs = outs + tape.append(self.later, [sources[i] for i in self.residuals] + tangents)
        return outs, [outs[t] if type(t) is int else t for t in self.tangents]


def jvp_at_once(parent: Trace, prim: Primitive, primals: list[Array], tangents: list[Array | None],
                params: Params) -> Any:
    """The result of `prim.jvp` by one compiled call; None if the rule must run in Python.

    `tangents` has None for zero tangents.
    """
    tape = parent if type(parent) is TapeTrace else None
    trace: Any = parent if tape is None else tape.parent
    types = _operand_types(trace, prim, primals)
    if types is None:
        return None
    nonzero = []
    for t in tangents:
        if t is None:
            types.append(None)
            continue
        if not (type(t) is ArrayImpl if tape is None else
                type(t) is TapeTracer and t._trace is tape):
            return None
        types.append(t.aval)
        nonzero.append(t)
    # Rules may test whether two operands are the same object; the rule of `mul` does.
    repeats = None if len(primals) < 2 or len(set(map(id, primals))) == len(primals) else (
        _firsts(primals), _firsts(nonzero))
    key = ("jvp", prim, tape is None, current_context(), repeats, *types, *params.items())
    rule = _found(key, lambda: _jvp_rule(trace, tape is not None, prim, types, repeats, params))
    if rule is False:
        return None
    outs, out_tangents = rule(tape, primals, nonzero)
    return ((outs[:len(out_tangents)], out_tangents) if prim.multiple_results else
            (outs[0], out_tangents[0]))


def vmap_at_once(trace: Trace, prim: Primitive, axis: Axis, vals: list[Array],
                 dims: list[int | None], params: Params
                 ) -> tuple[list[Array], Sequence[int | None], list[ShapedArray]] | None:
    """The results of `prim.vmap` as lists, and the types of one element, by one compiled call.

    None if the rule must run in Python.
    """
    types = _operand_types(trace, prim, vals)
    if types is None or axis.mesh_axis is not None:
        return None
    key = ("vmap", prim, axis.size, current_context(), *types, *dims, *params.items())
    rule = _found(key, lambda: _vmap_rule(trace, prim, Axis(axis.size), types, dims, params))
    if rule is False:
        return None
    call, out_dims, elements = rule
    return call(vals), out_dims, elements


def _firsts(values: Sequence[object]) -> tuple[int, ...]:
    """Per value, the first index of the same object."""
    first_at: dict[int, int] = {}
    return tuple([first_at.setdefault(id(x), i) for i, x in enumerate(values)])


def _operand_types(trace: Trace, prim: Primitive, values: Sequence[object]) -> list[Any] | None:
    """The types of the operands; None if no compiled rule applies to them."""
    if not trace.evaluates or prim.effectful:
        return None
    types = []
    for x in values:
        if type(x) is not ArrayImpl and type(x) is not Literal:
            return None
        types.append(x.aval)
    return types


def _found(key: object, make: Callable[[], Any]) -> Any:
    """A rule from the table; False if it must run in Python."""
    try:
        rule = _rules.get(key)
    except TypeError:       # a param has no hash: the operation will raise
        return False
    if rule is None:
        # Built-in rules run under `jit`, too, and raise the same errors there.
        rule = _rules[key] = not any(option.value for option in _STEPPING_OPTIONS) and make()
    return rule


def _jvp_rule(trace: Trace, cut: bool, prim: Primitive, types: Sequence[Any], same: Any,
              params: Params) -> JVPRule | bool:
    if prim.jvp is None:
        return False
    n = len(types) // 2
    avals, t_avals = types[:n], [t for t in types[n:] if t is not None]

    def tangents_of(primals: Sequence[Array], nonzero: Sequence[Array]
                    ) -> tuple[list[Array], Sequence[Tangent]]:
        if same is not None:
            primals, nonzero = [[xs[i] for i in firsts]
                                for xs, firsts in zip((primals, nonzero), same, strict=True)]
        results = prim.jvp(list(primals), spread_tangents(
            avals, [t is not None for t in types[n:]], nonzero), **params)
        outs, tangents = pair(prim, "jvp", "tangents", results)
        if not prim.multiple_results:
            outs, tangents = [outs], [tangents]
        return [*outs, *[t for t in tangents if type(t) is not Zero]], tangents

    rule = WithAux(tangents_of)
    later, residuals = None, []
    if cut:
        # The tape is transposed soon, so large residuals are no harm.
        split = split_program(lambda _, tape, known, unknown: rule(known, unknown), avals, t_avals,
                              narrow=False)
        first, later, count = split.known, split.unknown, len(split.known.outvars)
        start = {"input": count, "computed": count - split.num_computed}
        residuals = [start[r.kind] + r.index for r in split.residuals]
        known, recorded = iter(range(count)), iter(range(count, count + len(later.outvars)))
        sources = [next(recorded if u else known) for u in split.unknown_out]
    else:
        first = stage(lambda *xs: rule(xs[:n], xs[n:]), [*avals, *t_avals])
        sources = list(range(len(first.outvars)))
    if first.effects or (later is not None and later.effects):
        return False
    nonzero = iter(sources[len(rule.aux):])
    return JVPRule(compiled(trace, prim.name, first), later, residuals,
                   [t if type(t) is Zero else next(nonzero) for t in rule.aux])


def _vmap_rule(trace: Trace, prim: Primitive, axis: Axis, types: Sequence[Aval],
               dims: Sequence[int | None], params: Params) -> object:
    if prim.vmap is None:
        return False

    def mapped(*xs: Array) -> tuple[list[Array], Sequence[int | None]]:
        outs, out_dims = pair(prim, "vmap", "mapped axes",
                              prim.vmap(axis, list(xs), list(dims), **params))
        return (list(outs), out_dims) if prim.multiple_results else ([outs], [out_dims])

    closed = stage(rule := WithAux(mapped), types)
    if closed.effects:
        return False
    elements = [aval if d is None else aval.without_axis(d)
                for aval, d in zip(closed.out_avals, rule.aux, strict=True)]
    return compiled(trace, prim.name, closed), rule.aux, elements
