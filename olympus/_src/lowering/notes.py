"""The notes of the pass of `fences.py`: how a program computes its values, and fences so far."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Set
from typing import Any

from ..base.typing import Params
from ..core.ir import Atom, ClosedOlympuspr, Literal, OlympusprEqn, Var
from ..core.primitive import Primitive
from .fence_plan import Fences
from .known_numbers import Inexact, Number, Reciprocals, repeated_number, size
from .made import (
    ALIKE, CONSTANT, CONSTANTS, FACTORS, FIXED, FOLDED, GIVEN, HARMFUL, KNOWN, MERGED, NARROWED,
    SCALED, SHIFTED, SIGNED, SPREAD, UNKNOWN, Made, is_term, number_of,
)

# The ways in which a program reads its arguments, as bits: as terms of sums, from which differences
# are taken, in `and` and `or`; or it returns them.
ADDED, SUBTRACTED, MASKED, RETURNED = 1, 2, 4, 8


class Notes:
    """The notes of one program. `made` has its variables with known facts."""

    def __init__(self, closed: ClosedOlympuspr, nested: bool) -> None:
        pr = closed.olympuspr
        self.pr, self.nested = pr, nested
        self.closed_over: dict[Atom, Any] = dict(zip(pr.constvars, closed.consts, strict=True))
        self.made: dict[Atom, Made] = dict.fromkeys(pr.constvars, KNOWN)
        if nested:
            self.made.update(dict.fromkeys(pr.invars, GIVEN))
        self.constants = bool(self.made)    # whether arrays may be constants
        self.moved: dict[Atom, Atom] = {}   # values of `made` -> the values with the same elements
        self.fences: list[Fences] = []
        self.fenced: set[Atom] = set()
        self.harmless: set[Atom] = set()    # those of `fenced` that accelerators need not fence
        self.negatives: set[Atom] = set()   # those of `fenced` that sums of elements read
        self.hidden: set[Atom] = set()      # scalars, where they are repeated
        self.constant_vars: dict[Var, Literal | None] = {}
        self.inexact, self.reciprocals = Inexact(), Reciprocals()
        self.held: set[Var] = set()
        self.conversions: set[Atom] = set()     # to integers of fewer bits
        self.rounded: set[Atom] = set()         # by conversions to floats of fewer bits
        self.widened: set[Atom] = set()         # by conversions from bfloat16
        self.reads = 0
        self.makers: dict[Atom, OlympusprEqn] | None = None     # where they are asked for
        self.nan: dict[Atom, bool] = {}
        self.given = frozenset(pr.invars if nested else ())
        self.made.update((v, (CONSTANTS, repeated_number(self.closed_over[v])))
                         for v in pr.constvars if self.inexact[v.aval])

    @functools.cached_property
    def orders(self) -> dict[Atom, OlympusprEqn]:
        """The results of all `x > y` and `x < y`."""
        return {eqn.outvars[0]: eqn for eqn in self.pr.eqns
                if getattr(eqn.primitive, "op", "") in ("GT", "LT")}

    @functools.cached_property
    def before_functions(self) -> Set[int]:
        """The ids of the equations before the last elementwise one of many instructions."""
        eqns = self.pr.eqns
        last = max([i for i, eqn in enumerate(eqns)
                    if eqn.primitive.elementwise and eqn.primitive.pace >= 1], default=0)
        return {id(eqn) for eqn in eqns[:last]}

    def maker(self, atom: Atom) -> OlympusprEqn | None:
        """The equation that computes a value, if one of this program does."""
        if self.makers is None:
            self.makers = {v: eqn for eqn in self.pr.eqns for v in eqn.outvars}
        return self.makers.get(atom)

    def read(self, way: int, *atoms: Atom) -> None:
        """Note that values are read in a way, if any is an argument, moved or repeated."""
        if self.given and way & ~self.reads and not self.given.isdisjoint(
                [self.moved.get(a, a) for a in atoms]):
            self.reads |= way

    def of(self, atom: Atom) -> Made:
        """How an operand was computed."""
        if type(atom) is Literal:
            return CONSTANTS, number_of(atom)
        return self.made.get(atom, UNKNOWN)

    def those(self, atoms: Iterable[Atom], kinds: int) -> list[Atom]:
        """The operands that have one of some facts."""
        get = self.made.get
        return [a for a in atoms if type(a) is not Literal and get(a, UNKNOWN)[0] & kinds]

    def joined(self, atoms: Iterable[Atom]) -> Made:
        """The facts about any operand, those of `ALIKE` only if they hold of all; and the number
        of those in `MERGED`, if it is the same for all.
        """
        every, some, of, get = ALIKE, 0, UNKNOWN, self.made.get
        for atom in atoms:
            if type(atom) is not Literal:
                made = get(atom, UNKNOWN)
                bits = made[0]
                every &= bits if atom.aval.shape else bits | SPREAD
                some |= bits
                if bits & MERGED:
                    of = made if of is UNKNOWN or of[1] == made[1] else GIVEN
        return some & ~(ALIKE | CONSTANT) | every, of[1]

    def note_same(self, eqn: OlympusprEqn, made: Made) -> None:
        """Note that the result of an equation is an operand, computed as `made`."""
        if made[0]:
            self.made[eqn.outvars[0]] = made

    def note(self, eqn: OlympusprEqn, kind: int = 0, bits: int | None = None) -> None:
        """Note the facts about the result of an elementwise operation, if there are any; `bits`
        are those of its operands, joined.
        """
        out = eqn.outvars[0]
        if bits is None:
            bits, _ = self.joined(eqn.invars)
        # An integer passes through an operation with a constant: a sum with 0, a product with 1.
        known = bits & (ALIKE if out.aval.shape else FIXED | FOLDED) | kind
        if bits & (SIGNED | NARROWED) and not self.inexact[out.aval]:
            known |= bits & SIGNED
            if len([a for a in eqn.invars if not self.of(a)[0] & FIXED]) < 2:
                known |= bits & NARROWED
        if known:
            self.made[out] = known, None

    def note_constant(self, eqn: OlympusprEqn, number: Number) -> None:
        bits = self.joined(eqn.invars)[0] & ALIKE | CONSTANT | FIXED
        self.made.update(dict.fromkeys(eqn.outvars, (bits, number)))

    def note_scaled(self, eqn: OlympusprEqn, made: Made, number: Number) -> None:
        """Note that the result is a value, computed as `made`, times a number; None is unknown."""
        if number == 1:
            self.note_same(eqn, made)
            return
        bits = made[0]
        known = self.joined(eqn.invars)[0] & ALIKE
        if bits & SCALED:
            number = None if made[1] is None or number is None else made[1] * number
        if number is None or size(number) == 1:
            known |= bits & MERGED
            number = None if bits & SHIFTED else number
        self.made[eqn.outvars[0]] = known | bits & FACTORS | SCALED, number

    def note_shifted(self, eqn: OlympusprEqn, made: Made, number: Number) -> None:
        """Note that the result is a value, computed as `made`, plus a number; None is unknown."""
        if number == 0:
            self.note_same(eqn, made)
            return
        bits = made[0]
        known = self.joined(eqn.invars)[0] & ALIKE
        if bits & SHIFTED:
            number = None if made[1] is None or number is None else made[1] + number
        if number is None:
            known |= bits & MERGED
        self.made[eqn.outvars[0]] = known | SHIFTED, number

    def entry(self, eqn: OlympusprEqn) -> Fences:
        """The fences of the equation at which the pass is, which are the last of the plan."""
        if not self.fences or self.fences[-1].eqn is not eqn:
            self.fences.append(Fences(eqn, [], [], eqn))
        return self.fences[-1]

    def fence(self, eqn: OlympusprEqn, *atoms: Atom) -> None:
        """Fence operands of an equation, so that nothing is known of them to it and later ones."""
        for atom in atoms:
            if type(atom) is not Literal and atom not in self.fenced:
                self.entry(eqn).whole.append(atom)
                self.fenced.add(atom)
                if bits := self.made.pop(atom, UNKNOWN)[0] & (FOLDED | NARROWED):
                    self.made[atom] = bits, None

    def fence_on_cpus(self, eqn: OlympusprEqn, *atoms: Atom, harmful: int = HARMFUL) -> None:
        """Fence operands, though merging might do no harm: accelerators, where a fence costs, have
        one only for an operand with a `harmful` kind.
        """
        self.harmless.update([a for a in atoms if type(a) is not Literal and a not in self.fenced
                              and not self.of(a)[0] & harmful and self.inexact[a.aval]])
        self.fence(eqn, *atoms)

    def lower_as(self, eqn: OlympusprEqn, primitive: Primitive, *operands: Atom,
                  params: Params | None = None) -> None:
        """Lower an operation in the place of an equation, unless its result is yet to be summed."""
        if is_term(eqn.outvars[0].aval):
            return
        entry = self.entry(eqn)
        self.fences[-1] = entry._replace(lowered=eqn.replace(
            primitive=primitive, invars=[*operands], params=params or {}))
