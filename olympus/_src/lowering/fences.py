"""The values that XLA's algebraic simplifier may not look through, so that compiling keeps numbers.

XLA:CPU simplifies as if floats were real numbers and integers had no bounds
(`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): it takes `(a / b) / c` for
`a / (b * c)`, `x * 1e20 * 1e20` for `x * inf`, a quotient by a repeated scalar for a product with
its reciprocal, and the square of an integer for a number that is not negative. Each rewriting needs
two operations that follow each other; an `optimization_barrier` between them, a *fence*, stops it.
XLA:CPU drops barriers before it fuses, so the kernels stay as they were. XLA on accelerators has
the same rewritings, and fuses nothing across a barrier: a fence of floats is a choice there, which
is fused (`Emitter._behind_fence`), and only values of harmful kinds get one.

One pass over a program, before it is lowered, notes of each value how it was computed, where that
matters to what may read it, and finds the equations that may be the second of such a pair. It
fences an operand if the pair could turn a finite number into 0, infinity or NaN, or an integer into
another one. Primitives name their role in an algebra (`Primitive.algebra`). Functions and bodies of
loops become part of their callers, so an argument of a nested program may be any constant; its
results, and the operands of calls, are fenced as if the most harmful operation read them.

Left to XLA are rewritings that only keep finite what would overflow: `sqrt(x * x)` becomes
`abs(x)`, `log(exp(x))` becomes `x`.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence, Set
from typing import TYPE_CHECKING

from ..core.ir import Atom, ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, Var, derived
from ..types import dtypes
from . import merging
from .constants import hide, is_constant
from .fence_plan import Fences, Plan
from .glances import (
    ALONE, ANY, BROADCASTS, COMBINED, GLANCES, NEGATIVES, ONE, PAIR, POWERS, QUOTIENT_BY, QUOTIENTS,
    READ,
)
from .instead import GivenHidden, PlusZero, PlusZeroAfter
from .known_numbers import is_infinite, is_nan
from .made import (
    COMPUTED, CONSTANT, CONSTANTS, COPIES, DIVIDED, DIVISORS, FENCED, FIXED, FOLDED, GIVEN, HARMFUL,
    NARROWED, NEGATIVE, QUOTIENT, REAL, REPEATED, SCALED, SPREAD, SPREAD_CONSTANT, SPREADS, UNKNOWN,
    is_integer, is_term, is_zero, value_of,
)
from .nan_constants import may_be_nan, undefined
from .notes import ADDED, MASKED, RETURNED, SUBTRACTED, Notes

if TYPE_CHECKING:
    from .context import ModuleContext

_NOTHING = Plan((), (), frozenset(), {}, 0, (), ())


def plan_of(closed: ClosedOlympuspr, module: ModuleContext) -> Plan:
    """The plan of a program in a module, kept with the program."""
    if not module.fences:
        return _NOTHING
    nested = closed is not module.fenced_from
    return (_accelerators_plan if module.fences_by_choice else _plan)(closed, nested)


@derived
def _accelerators_plan(closed: ClosedOlympuspr, nested: bool) -> Plan:
    """The plan without fences of `harmless` values, and without what XLA:CPU alone needs: it
    multiplies by reciprocals of scalars, and LLVM takes exponentials of NaN for undefined. A sum of
    `negatives` has +0 added, and an array with a part replaced is fenced there alone: a loop that
    writes one row an iteration would pass through all of them each time.
    """
    plan = _plan(closed, nested)
    unfenced, hidden = plan.harmless | plan.negatives, plan.constants
    results = [v for v in plan.results if v not in unfenced]
    written = _writes(closed.olympuspr, results) if results else {}
    planned = {}
    for step in plan.fences:
        other = step.lowered
        if not isinstance(other.primitive, PlusZero) or not hidden.keys().isdisjoint(
                [x for x in other.invars if type(x) is not Literal]):
            other = step.eqn
        planned[id(step.eqn)] = Fences(
            step.eqn, [v for v in step.whole if v not in unfenced], [], other)
    fences = [*planned.values()]
    if plan.negatives or written:
        fences = _mended(closed.olympuspr, planned, plan.negatives, {*written.values()})
    return plan._replace(
        fences=fences, results=[v for v in results if v not in written], constants={})


def _writes(pr: Olympuspr, results: Sequence[Var]) -> dict[Var, OlympusprEqn]:
    """The arrays that are arguments with parts replaced, as far as `results` are or come from such:
    the equations that compute them."""
    made: dict[Var, OlympusprEqn] = {}
    replaced = {*pr.invars}
    for eqn in pr.eqns:
        if eqn.primitive.replaces and eqn.invars[0] in replaced:
            replaced.add(eqn.outvars[0])
            made[eqn.outvars[0]] = eqn
    found: dict[Var, OlympusprEqn] = {}
    for v in results:
        while v in made and v not in found:
            found[v] = made[v]
            v = made[v].invars[0]
    return found


def _mended(pr: Olympuspr, planned: dict[int, Fences], negatives: Set[Atom],
            writes: Set[OlympusprEqn]) -> list[Fences]:
    """The fences of a program: sums of elements of `negatives` have +0 added, what is written is
    fenced.
    """
    mended, fenced = [], {v for step in planned.values() for v in step.whole}
    for eqn in pr.eqns:
        prim, step = eqn.primitive, planned.get(id(eqn))
        if (prim.adds_up or prim.summed_axes(eqn.params) is not None) and (
                not negatives.isdisjoint([a for a in eqn.invars if type(a) is not Literal])
                and not is_term(eqn.outvars[0].aval)):
            step = (step or Fences(eqn, [], [], eqn))._replace(
                lowered=eqn.replace(primitive=PlusZeroAfter(prim)))
        elif eqn in writes:
            parts = [x for x in eqn.invars[1:] if type(x) is Var and x not in fenced and (
                dtypes.is_inexact(x.aval.dtype))]
            fenced.update(parts)
            step = step or Fences(eqn, [], [], eqn)
            step.whole.extend(parts)
        if step is not None:
            mended.append(step)
    return mended


@derived
def _plan(closed: ClosedOlympuspr, nested: bool) -> Plan:
    return _Pass(closed, nested).plan()


class _Pass(Notes):
    """The pass over a program."""

    def plan(self) -> Plan:     # noqa: C901, PLR0912 - hot: without calls for most equations
        """A glance decides on most equations, without calls; the steps are for the others."""
        made, get, steps, glances = self.made, self.made.get, _STEPS, GLANCES
        moved, inexact, others = self.moved, self.inexact, self._glance
        for eqn in self.pr.eqns:
            operands = eqn.invars
            glance, kind, neutral, alone, together, beside, passed = glances[prim := eqn.primitive]
            if glance == ANY:
                for x in operands:
                    if type(x) is Literal:
                        if x.raw != x.raw:
                            break
                    elif (p := get(x)) is not None and p[0] & alone:
                        break
                else:
                    if not operands:
                        made.update(dict.fromkeys(eqn.outvars, COMPUTED))
                    if not operands or type(operands[0]) is not Literal and (
                            type(operands[-1]) is not Literal or prim.algebra != "choice"):
                        continue
            elif glance == PAIR:
                x, y = operands
                aval = x.aval
                if type(x) is Literal or type(y) is Literal:
                    number, other = (y, x) if type(y) is Literal else (x, y)
                    if type(c := number.raw) in REAL and (     # type: ignore[union-attr]
                            c == c and c != neutral and (aval := other.aval).shape
                            and inexact[aval] and not (bits := get(other, UNKNOWN)[0]) & (
                                beside if c != -1 else ~SPREAD)):   # -1 passes on more
                        if kind:
                            made[eqn.outvars[0]] = bits & passed | kind, (
                                -c if number is y and prim.algebra == "difference" else c)
                        continue
                else:
                    p, q = get(x), get(y)
                    if p is None is q:
                        if x is not y or aval.shape and inexact[aval]:
                            if kind and aval is not y.aval and inexact[aval] and (
                                    aval.shape != y.aval.shape):
                                made[eqn.outvars[0]] = kind, None   # constants may be in a scalar
                            continue
                    elif aval is y.aval and aval.shape and inexact[aval]:
                        if p is None or q is None:
                            if not (p or q or UNKNOWN)[0] & alone:
                                continue
                        elif not ((p[0] | q[0]) & alone or p[0] & together and q[0] & together):
                            if p[0] & q[0] & SPREAD:
                                made[eqn.outvars[0]] = SPREADS
                            continue
            elif glance == BROADCASTS:
                x, out = operands[0], eqn.outvars[0]
                if type(x) is not Literal:
                    p = get(x)
                    if p is None:
                        made[out] = COPIES
                    else:
                        made[out] = p[0] | (SPREAD if p[0] & FOLDED else REPEATED | SPREAD), p[1]
                        moved[out] = moved.get(x, x)
                    continue
                if type(x.raw) in REAL or type(x.raw) is bool:
                    made[out] = SPREAD_CONSTANT, x.raw
                    continue
            elif glance == COMBINED:
                x, y = operands[0], operands[-1]
                if type(x) is not Literal and type(y) is not Literal and inexact[x.aval]:
                    p, q = get(x, UNKNOWN), get(y, UNKNOWN)
                    if p is UNKNOWN is q or not ((p[0] | q[0]) & alone or p[0] & q[0] & together
                                                 or x.aval.shape.count(1)) and (    # or no axis
                                prim.summed_axes(eqn.params) or eqn.params.get("axes")):
                        continue
            elif glance == ONE:
                x = operands[0]
                if type(x) is not Literal and inexact[x.aval] and (
                        not (bits := get(x, UNKNOWN)[0]) & alone):
                    if bits := bits & SPREAD | kind:
                        made[eqn.outvars[0]] = bits, None
                    continue
            elif glance and others(eqn, glance):
                continue
            steps[prim.algebra](self, eqn)
        return self._planned()

    def _glance(self, eqn: OlympusprEqn, glance: int) -> bool:
        """Whether a glance at a quotient, an extremum, a negative or a power was enough."""
        made, operands = self.made, eqn.invars
        x, y = operands[0], operands[-1]
        if glance == QUOTIENTS:
            aval = x.aval
            if type(y) is Literal:
                if type(number := y.raw) in REAL and number and aval.shape and (
                        self.inexact[aval] and number == number and number * number != 1
                        and self.reciprocals[number, aval]):
                    bits, p = 0, made.get(x)
                    if p is None or not (bits := p[0]) & QUOTIENT_BY.beside:
                        made[eqn.outvars[0]] = SCALED | bits & QUOTIENT_BY.passed, 1 / number
                        return True
            elif self.inexact[aval] and (aval is y.aval or aval.shape and y in self.hidden) and (
                    type(x) is not Literal or x.raw == x.raw):
                p, q = made.get(x), made.get(y)
                if (q is None or not q[0] & (DIVISORS | FOLDED)) and (
                        p is None or not p[0] & (CONSTANT | FOLDED | QUOTIENT)):
                    made[eqn.outvars[0]] = DIVIDED
                    return True
        elif glance == NEGATIVES:
            if type(x) is not Literal and x not in made:
                made[eqn.outvars[0]] = NEGATIVE
                return True
        elif glance == POWERS:
            if type(x) is not Literal and x not in made and self.inexact[x.aval]:
                if eqn.params["y"] < 0:
                    made[eqn.outvars[0]] = DIVIDED
                return True
        else:
            if type(x) is Literal:
                x, y = y, x
            if type(x) is not Literal and x not in made and x is not y:
                if type(y) is Literal:      # an infinite bound is none
                    return type(number := y.raw) in REAL and number - number == 0
                return y not in made
        return False

    def _planned(self) -> Plan:
        """The plan; of a function or body, whose results anything may read, also for callers."""
        if not self.nested:
            return Plan(self.fences, (), frozenset(self.held), self.constant_vars, 0, (), (),
                        self.harmless, self.negatives)
        results = self.pr.outvars
        narrowed = self.those(results, NARROWED)
        if self.reads & MASKED:    # the next iteration may read them
            self.held.update(narrowed)
        self.read(RETURNED, *results)
        behind = [*self.those(results, FENCED),
                  *(v for v in results if type(v) is not Literal and v in self.rounded)]
        self.harmless.update(
            [v for v in behind if not self.of(v)[0] & HARMFUL and v not in self.rounded])
        return Plan(self.fences, behind, frozenset(self.held),
                    self.constant_vars, self.reads, [value_of(self.of(v)) for v in results],
                    [v in narrowed for v in results], self.harmless, self.negatives)

    def _call(self, eqn: OlympusprEqn) -> None:
        """Calls, and operations that are several: their operands and results may be anything.

        Held in memory are the constants that they are given and that the compiler may not see
        there: NaN, infinities, and 0 where it may be a term; and integers that were narrowed.
        """
        prim, operands, outs = eqn.primitive, eqn.invars, eqn.outvars
        if is_constant(self, eqn):
            return
        self.fence_on_cpus(eqn, *self.those(operands, FENCED))
        self.constants = True
        plans = [_plan(body, True) for body in prim.bodies(eqn.params)
                 if type(body) is ClosedOlympuspr]
        once = len(plans) == 1 == prim.times(eqn.params)
        reads = functools.reduce(operator.or_, [plan.reads for plan in plans], 0)
        self.read(reads & ~RETURNED, *operands)
        constant = not [a for a in operands if not self.of(a)[0] & FOLDED]
        unchanged = [(a, self.of(a)) for a in prim.unchanged(eqn.params, operands)]
        given = [*[(a, self.of(a)) for a in prim.given(eqn.params, operands)], *unchanged]
        hidden = [a for a in operands if is_nan(value_of(self.of(a))) or (
            a in self.closed_over and may_be_nan(self, a))]
        hidden += [a for a, p in given if is_infinite(value_of(p))]
        computed = set()
        if True in [p[0] & FOLDED > 0 for _, p in given]:
            found, known = undefined(self, eqn, given), self.closed_over
            computed = {a for a in found if a not in known and value_of(self.of(a)) is None}
            hidden += [a for a in found if a not in computed]
        for sign, ways in (1, ADDED), (-1, SUBTRACTED):
            zeros = given if reads & (ways | RETURNED if once else ways) else unchanged
            hidden += [a for a, p in zeros if is_zero(p, sign) and self.inexact[a.aval]]
        hide(self, eqn, *hidden)
        if computed:
            entry = self.entry(eqn)
            self.fences[-1] = entry._replace(lowered=entry.lowered.replace(primitive=GivenHidden(
                prim, frozenset([i for i, a in enumerate(operands) if a in computed]))))
        if reads & (ADDED | SUBTRACTED):
            self.fence_on_cpus(eqn, *[a for a, p in given if p[0] & FOLDED and value_of(p) is None
                               and self.inexact[a.aval]])
        narrowed = self.those(operands, NARROWED)
        integers = [v for v in outs if is_integer(v.aval)]
        if narrowed and (integers or reads & MASKED):
            self.held.update(narrowed)
        self.made.update(dict.fromkeys(outs, COMPUTED if constant else GIVEN))
        if True in [True in plan.narrowed for plan in plans]:
            self.made.update(dict.fromkeys(integers, (FIXED | NARROWED, None)))
        elif once:
            self.made.update((v, (CONSTANTS, number)) for v, number in zip(
                outs, plans[0].numbers, strict=False) if number is not None)


_STEPS: dict[str, Callable[[_Pass, OlympusprEqn], None]] = {
    **dict.fromkeys(("", *READ, *ALONE), merging.other),
    "absolute": merging.absolute, "broadcast": merging.broadcast, "called": _Pass._call,
    "choice": merging.choice, "clamp": merging.clamp, "comparison": merging.comparison,
    "conversion": merging.conversion, "difference": merging.difference,
    "exclusive_or": merging.exclusive_or, "extremum": merging.extremum,
    "integer_power": merging.square, "mask": merging.mask, "move": merging.move,
    "negation": merging.negation, "part": merging.part, "power": merging.power,
    "product": merging.product, "quotient": merging.quotient, "square": merging.square,
    "sum": merging.addition}
