"""Which operands the results of loops and branches are to XLA, after it has simplified the bodies.

Such a result is a second name of its operand's memory: a kernel that reads both, one in another
order, would overwrite elements of one before it reads the other's (docs/faults.md, V44). `apart`
gives a value memory of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import compress

from ..base.typing import IrValue, Params
from ..core.ir import ClosedOlympuspr, Literal, OlympusprEqn, Var, derived
from ..core.primitive import Builder, Higher
from ..types.avals import Aval

# Of `Facts.algebra`: functions whose results XLA never simplifies to an operand.
_COMPUTED = {"called", "comparison", "exponential", "logarithm", "logistic", "root", "sign"}
SEVERAL, KNOWN = "one of several", "known to XLA"
Origin = int | str | None       # the number of an input, or one of the two


@derived
def handed_through(closed: ClosedOlympuspr) -> list[int | None]:
    """The input that each result is, also through calls and branches: it is no second name of it,
    since `Cond` returns the operand itself.
    """
    number: dict[object, int | None] = {v: i for i, v in enumerate(closed.invars)}
    for eqn in closed.eqns:
        prim, params, ins = eqn.primitive, eqn.params, eqn.invars
        if prim.branches:
            bodies, ins = params["branches"], ins[1:]
        elif isinstance(prim, Higher) and prim.called:
            bodies = [prim.applied(params, ins)[0][1]]
        else:
            continue
        each = zip(*map(handed_through, bodies), strict=True)
        for v, through in zip(eqn.outvars, each, strict=True):
            if through[0] is not None and len({*through}) == 1:
                operand = ins[through[0]]
                number[v] = None if type(operand) is Literal else number.get(operand)
    return [None if type(v) is Literal else number.get(v) for v in closed.outvars]


@derived
def origins(closed: ClosedOlympuspr, num_known: int) -> list[Origin]:
    """The inputs that results may be after XLA has simplified the program; None for other results.

    The first inputs are known to XLA, if their loop reads constants.
    """
    origin: dict[Var, Origin] = dict.fromkeys(closed.olympuspr.constvars, KNOWN)
    origin.update((v, KNOWN if i < num_known else i) for i, v in enumerate(closed.invars))
    of = lambda v: KNOWN if type(v) is Literal else origin.get(v)
    for eqn in closed.eqns:
        origin.update(zip(eqn.outvars, _of_results(eqn, list(map(of, eqn.invars))), strict=True))
    return list(map(of, closed.outvars))


def _of_results(eqn: OlympusprEqn, ins: Sequence[Origin]) -> Sequence[Origin]:
    """The origins of an equation's results by its operands' origins."""
    prim, count = eqn.primitive, len(eqn.outvars)
    if prim.branches:
        return returned_by_all(eqn.params, ins[1:])
    if isinstance(prim, Higher) and prim.times(eqn.params) == 1:
        (_, body, xs), *others = prim.applied(eqn.params, ins)
        if not others and len(body.outvars) == count:
            return [xs[i] if type(i) is int else i for i in origins(body, 0)]
    unknown = [x for x in ins if x != KNOWN]
    if isinstance(prim, Higher):
        return [_joined([x for x in unknown if x is not None])] * count
    if not unknown and not eqn.effects:
        return [KNOWN] * count
    if prim.contracts or prim.algebra in _COMPUTED or (
            not prim.algebra and prim.fusion in ("costly", "fused", "long")):
        return [None] * count
    if prim.replaces:       # if it replaces all elements, the new ones
        return [next((x for x, v in zip(ins[1:], eqn.invars[1:], strict=True)
                      if v.aval.shape == eqn.outvars[0].aval.shape), None)]
    if prim.algebra == "choice":        # if the condition is known, of one case
        which, *cases = ins
        return [_joined([x for x in cases if x != KNOWN and (x is not None or which != KNOWN)])]
    if prim.linear == (0,):             # the other operands are indices, or known
        return [ins[0]] * count
    one = _joined(unknown)
    alone = len(unknown) == 1 or prim.fusion == "moves" or (
        one != SEVERAL and prim.algebra in ("extremum", "mask"))
    return [one if alone else None] * count


def _joined(found: Sequence[Origin]) -> Origin:
    """The origin of a value that may be any of some."""
    different = {*found}
    if len(different) < 2:
        return found[0] if found else None
    return SEVERAL if different.isdisjoint((None, KNOWN)) else None


def returned_by_all(params: Params, ins: Sequence[Origin]) -> list[Origin]:
    """The origins of a conditional's results; None where a branch computes a new value."""
    each = [[ins[i] if type(i) is int else i for i in origins(body, 0)]
            for body in params["branches"]]
    return list(map(_joined, zip(*each, strict=True)))


def exchanged(body: ClosedOlympuspr, first: int, last: int) -> list[bool]:
    """Flags of the carries, which are those inputs, to put apart before the loop.

    A run may return such a carry with equal bits, or in place of another one. Where runs return
    carries in turns, one of each cycle is flagged.
    """
    carries, found, through = body.invars[first:last], origins(body, first), handed_through(body)
    kinds = [(v.aval.size, v.aval.dtype) if v.aval.is_array else None for v in carries]
    alike = Counter(kinds)
    flags, source = [False] * len(carries), dict[int, int]()
    for i, x in enumerate(found[:len(carries)]):
        if through[i] == first + i:
            continue        # XLA takes it out of the loop
        if x == SEVERAL:
            flags[i] = alike[kinds[i]] > 1
        elif type(x) is int and first <= x < last and kinds[x - first] == kinds[i]:
            flags[i] = x == first + i
            source[i] = x - first
    while source:
        i, j = source.popitem()
        path = {i}
        while j in source:
            path.add(j)
            j = source.pop(j)
        flags[j] = flags[j] or j in path        # the path is a cycle
    return flags


def apart(b: Builder, xs: Sequence[IrValue], flags: Sequence[bool], avals: Sequence[Aval]
          ) -> list[IrValue]:
    """The flagged values in memory of their own, on CPUs."""
    if b.module.platform not in ("cpu", None):
        return list(xs)
    moved = iter(b.apart([*compress(xs, flags)], [*compress(avals, flags)]))
    return [next(moved) if flag else x for x, flag in zip(xs, flags, strict=True)]
