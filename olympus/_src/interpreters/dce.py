"""Dead-code elimination: drop equations whose outputs nothing reads, in one backward pass."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any

from ..core.ir import ClosedOlympuspr, DropVar, Literal, Olympuspr, OlympusprEqn, derived, variables


def dce_program(pr: Olympuspr, used_out: Sequence[bool],
                keep_inputs: bool = True) -> tuple[Olympuspr, list[bool], list[bool]]:
    """The program without dead equations, and flags of the constvars and invars that it reads.

    Args:
      pr: an open program.
      used_out: per output, whether it is wanted; the others are dropped.
      keep_inputs: whether unread invars stay in the signature.
    """
    outvars = [v for v, used in zip(pr.outvars, used_out, strict=True) if used]
    live: set[Any] = set(variables(outvars))
    kept, add = [], live.add
    # Backwards: all readers of an equation's results come before it, so `live` is final for them.
    # An effect that `keeps` counts as a reader.
    for eqn in reversed(pr.eqns):
        results = eqn.outvars
        if len(results) != 1 or results[0] not in live:     # usually one result, which is live
            used = [v in live for v in results]
            if True not in used and not (eqn.effects and any(e.keeps for e in eqn.effects)):
                continue
            if False in used:
                eqn = _trimmed(eqn, used)
        kept.append(eqn)
        # The trimmed equation's operands: one with bodies may read fewer than before.
        for v in eqn.invars:
            if type(v) is not Literal:
                add(v)
    kept.reverse()
    used_consts = [v in live for v in pr.constvars]
    used_in = [v in live for v in pr.invars]
    constvars = [v for v, used in zip(pr.constvars, used_consts, strict=True) if used]
    invars = [v for v, used in zip(pr.invars, used_in, strict=True) if used or keep_inputs]
    new = pr.replace(constvars=constvars, invars=invars, outvars=outvars, eqns=kept)
    if pr.cache.get("has 64 bits") is False:    # nor has a part of it
        new.cache["has 64 bits"] = False
    return new, used_consts, used_in


def _trimmed(eqn: OlympusprEqn, used: Sequence[bool]) -> OlympusprEqn:
    """An equation without the parts that only its unused results need."""
    if eqn.primitive.dce is None:
        return eqn.replace(outvars=[v if u else DropVar(v.aval)
                                    for v, u in zip(eqn.outvars, used, strict=True)])
    eqn = eqn.primitive.dce(used, eqn)
    if eqn.effects:     # its programs and operands may have become fewer
        avals = [v.aval for v in eqn.invars]
        eqn = eqn.replace(effects=eqn.primitive.effects(avals, eqn.params))
    return eqn


def dce_closed(closed: ClosedOlympuspr, used_out: Sequence[bool],
               keep_inputs: bool = True) -> tuple[ClosedOlympuspr, list[bool]]:
    """`dce_program` of a closed program; constants that are no longer read are dropped."""
    program, used_in = _dropped(closed, tuple(used_out), keep_inputs)
    return closed if program is None else program, used_in


@derived
def _dropped(closed: ClosedOlympuspr, used_out: tuple[bool, ...], keep_inputs: bool
             ) -> tuple[ClosedOlympuspr | None, list[bool]]:
    whole = closed.olympuspr
    pr, used_consts, used_in = dce_program(whole, used_out, keep_inputs)
    same = len(pr.eqns) == len(whole.eqns) and all(map(operator.is_, pr.eqns, whole.eqns))
    if same and all(used_out) and len(pr.invars) == len(used_in):
        # Nothing was dropped. None stands for the program itself: in its own cache it would be a
        # reference cycle.
        return None, used_in
    consts = [c for c, used in zip(closed.consts, used_consts, strict=True) if used]
    return ClosedOlympuspr(pr, consts), used_in
