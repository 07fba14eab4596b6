"""The order of reads and writes of parts of one array, so that XLA:CPU does not copy the array.

    old = x[i]              reads the array before the write
    y   = x.at[i].set(new)  takes the memory of `x`
    s   = s + old

XLA fuses `old` into each of its readers, and does not know that the kernel of `s` could run before
the kernel of `y`: so it copies `x`, in a loop once per iteration. Here `old` is held: one kernel
reads it, and the result passes through the call of an identity (`holds.py`). If `new` does not
depend on `old`, an operand of the write passes through such a call together with `old`, so that the
write waits for it.

A write is moved behind later reads of `x`, if nothing in between reads its result. Nothing is done
if the results of a read are only for the write, whose kernel includes them, or for one other
kernel, for which the write waits anyway; if `x` is also returned; or if the results are not far
smaller than `x`. Sets are bits of a fixed size; if two values get one bit, a copy may stay.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..core.ir import (
    Atom, ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, Var, derived, variables,
)
from ..core.primitive import Primitive
from ..types.avals import ShapedArray, physical_aval
from ..types.shape import prod
from .fence_plan import Fences

#: An array must have this many times the bytes that a read returns,
RATIO = 4
#: and at least so many bytes.
LEAST_BYTES = 1024
_SIZE = 256


class Order(NamedTuple):
    """The equations in the order of lowering, the values to hold, and by the index of a write: the
    operand that waits, then the values for which it waits.
    """

    eqns: Sequence[OlympusprEqn]
    held: frozenset[Var]
    late: dict[int, Sequence[Var]]

    def steps(self, fences: Sequence[Fences]) -> Sequence[Fences]:
        """The fences of the program, with the operands that wait."""
        if not self.late:
            return fences
        given, steps = {id(step.eqn): step for step in fences}, []
        for n, eqn in enumerate(self.eqns):
            step = given.get(id(eqn))
            if n in self.late:
                step = (step or Fences(eqn, [], [], eqn))._replace(late=self.late[n])
            if step is not None:
                steps.append(step)
        return steps


@derived
def replaced(closed: ClosedOlympuspr) -> frozenset[Var]:
    """The inputs of a program that an equation replaces in part."""
    pr = closed.olympuspr
    writing = {prim for prim in pr.primitives if _may_replace(prim)}
    if not writing:
        return frozenset()
    return frozenset(pr.invars) & {
        v for eqn in pr.eqns if eqn.primitive in writing for v in _taken(eqn)}


def _may_replace(prim: Primitive) -> bool:
    return prim.replaces or prim.programs != ()


def _taken(eqn: OlympusprEqn) -> list[Var]:
    """The operands that an equation replaces in part, itself or in a body."""
    prim = eqn.primitive
    if prim.replaces:
        return variables(eqn.invars[:1])
    if prim.programs == ():
        return []
    return variables([
        x for _, body, its in prim.applied(eqn.params, eqn.invars)
        if (inside := replaced(body))
        for x, v in zip(its, body.olympuspr.invars, strict=True) if v in inside])


@derived
def order_of(closed: ClosedOlympuspr, fenced: frozenset[int]) -> Order | None:
    """The order of a program's equations, or None if nothing needs one; kept with the program.

    Equations whose ids are in `fenced` are not moved.
    """
    pr = closed.olympuspr
    writes, reads = _touched(pr, pr.eqns)
    if not reads:
        return None
    eqns = _writes_last(pr, writes, reads, fenced)
    if eqns is not pr.eqns:
        writes, reads = _touched(pr, eqns)
    return _Order(pr, eqns, writes, reads).order()


def _touched(pr: Olympuspr, eqns: Sequence[OlympusprEqn]
             ) -> tuple[dict[Var, int], dict[Var, list[int]]]:
    """Array -> index of the equation that replaces a part of it; array -> indices of readers."""
    writes: dict[Var, int] = {}
    writing = {prim for prim in pr.primitives if _may_replace(prim)}
    for n in [n for n, eqn in enumerate(eqns) if eqn.primitive in writing]:
        for v in {*_taken(eqns[n])}:
            # An array that is replaced twice is copied in any case.
            writes[v] = n if v not in writes else -1
    for v in {*variables(pr.outvars), *pr.constvars} & writes.keys():
        writes[v] = -1
    writes = {v: n for v, n in writes.items() if n >= 0 and _bytes(v.aval) >= LEAST_BYTES}
    reads: dict[Var, list[int]] = {}
    if writes:
        for n, eqn in enumerate(eqns):
            for v in eqn.invars:        # hot
                if type(v) is not Literal and v in writes and n != writes[v]:
                    places = reads.setdefault(v, [])
                    if n not in places[-1:]:
                        places.append(n)
    return writes, reads


def _writes_last(pr: Olympuspr, writes: dict[Var, int], reads: dict[Var, list[int]],
                 fenced: frozenset[int]) -> Sequence[OlympusprEqn]:
    """The equations, with writes moved behind later reads of the array, where possible."""
    late = {n: reads[v][-1] for v, n in writes.items() if v in reads and reads[v][-1] > n}
    if not late:
        return pr.eqns
    first: dict[Var, int] = {}      # the number of the first equation that reads a value
    for n, eqn in enumerate(pr.eqns):
        for v in variables(eqn.invars):
            first.setdefault(v, n)
    all_writes, places = {*writes.values()}, dict[int, tuple[int, int]]()
    for v, n in writes.items():
        eqn = pr.eqns[n]
        if n in late and not eqn.effects and id(eqn) not in fenced and (
                all_writes.isdisjoint(reads[v])) and all(
                first.get(x, len(pr.eqns)) > late[n] for x in eqn.outvars):
            places[n] = late[n], 1 + n
    if not places:
        return pr.eqns
    return [pr.eqns[n] for n in sorted(range(len(pr.eqns)), key=lambda n: places.get(n, (n, 0)))]


class _Order:
    """The search for values to hold and operands that wait, in programs that read before writes."""

    def __init__(self, pr: Olympuspr, eqns: Sequence[OlympusprEqn], writes: dict[Var, int],
                 reads: dict[Var, list[int]]) -> None:
        self.eqns, self.writes, self.reads = eqns, writes, reads
        self.of_writes = {*writes.values()}
        self.ends, self.alone = self._ends(pr.outvars)

    def order(self) -> Order | None:
        """The order, if there is anything to do."""
        held, late = set[Var](), dict[int, Sequence[Var]]()
        wanted = {v: these for v in self.reads if (these := self._read_of(v))}
        bits = {r: 1 << k % _SIZE for k, r in enumerate(
            [r for these in wanted.values() for r in these])}
        needs = self._needs(bits)
        for v, these in wanted.items():
            n = self.writes[v]
            others = {r: kept for r, kept in these.items() if not bits[r] & needs[n]}
            if others:
                operands = [x for x in variables(self.eqns[n].invars) if x is not v
                            and x.aval.is_array and not x.aval.tagged]
                if not operands or n in late:
                    continue
                late[n] = [min(operands, key=lambda x: _bytes(x.aval)), *others]
            held.update([r for r, kept in these.items() if not kept and (
                r in others or not self.alone[r] and self.ends[r] != n)])
        return Order(self.eqns, frozenset(held), late) if held or late else None

    def _read_of(self, v: Var) -> dict[Var, bool]:
        """Results of equations that read an array before its write -> whether XLA stores them."""
        n, most, elementwise = self.writes[v], _bytes(v.aval) // RATIO, dict[Var, bool]()
        for m in self.reads[v]:
            eqn = self.eqns[m]
            results = [x for x in eqn.outvars if x in self.ends]
            if m > n or eqn.effects or any(
                    not x.aval.is_array or x.aval.tagged for x in results) or (
                    sum(map(_bytes, [x.aval for x in results])) > most):
                return {}
            elementwise.update(dict.fromkeys(results, eqn.primitive.fusion == ""))
        return elementwise

    def _ends(self, outvars: Sequence[Atom]) -> tuple[dict[Var, int], dict[Var, bool]]:
        """Value -> the only write that needs it, or -1; value -> whether only one kernel reads it.

        XLA does not repeat expensive operations, and fuses only elementwise ones.
        """
        ends_of = dict.fromkeys(variables(outvars), -1)
        alone = dict.fromkeys(ends_of, False)
        for n in range(len(self.eqns) - 1, -1, -1):
            eqn = self.eqns[n]
            ends = {ends_of[x] for x in eqn.outvars if x in ends_of}
            if not ends and not eqn.effects:    # dead code
                continue
            end = n if n in self.of_writes else ends.pop() if len(ends) == 1 else -1
            in_one = eqn.primitive.fusion in ("", "costly") or (
                len(eqn.outvars) == 1 and alone.get(eqn.outvars[0], False))
            for x in {*variables(eqn.invars)}:
                alone[x] = in_one and x not in ends_of
                ends_of[x] = end if ends_of.get(x, end) == end else -1
        return ends_of, alone

    def _needs(self, made: Mapping[Var, int]) -> dict[int, int]:
        """For each write, the bits of the values in `made` on which it depends."""
        made, needs = dict(made), dict[int, int]()
        for n, eqn in enumerate(self.eqns):
            of = 0
            for x in eqn.invars:
                if type(x) is not Literal:
                    of |= made.get(x, 0)
            if n in self.of_writes:
                needs[n] = of
            if of:
                for x in eqn.outvars:
                    made[x] = made.get(x, 0) | of
        return needs


def _bytes(aval: ShapedArray) -> int:
    if not aval.is_array:
        return 0
    aval = physical_aval(aval)
    return prod(aval.shape) * aval.dtype.itemsize
