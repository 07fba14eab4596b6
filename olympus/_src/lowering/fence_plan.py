"""What `fences.py` plans for a program: the values that XLA may not look through, and where."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set
from typing import NamedTuple

from ..core.ir import Atom, Literal, Olympuspr, OlympusprEqn, Var
from .known_numbers import Number


class Fences(NamedTuple):
    """The operands that an equation and later ones read through a fence, the scalars whose
    repetitions alone are read so, the equation to lower in its place, an operand that waits, and
    for what (`in_place.py`)."""

    eqn: OlympusprEqn
    whole: list[Var]
    repeated: list[Var]
    lowered: OlympusprEqn
    late: Sequence[Var] = ()


class Plan(NamedTuple):
    """The fences of a program, in the order of its equations, the results that a caller reads
    through a fence, the values that are held in memory besides, and the constants that are hidden
    in memory, with literals in whose place they are. For callers: in which ways arguments are read;
    each result's number, if it is a constant, and whether it is a narrowed integer. `harmless` are
    the values that only CPUs, where fences are free, put behind one; so are `negatives`, sums of
    whose elements accelerators mend.
    """

    fences: Sequence[Fences]
    results: Sequence[Var]
    held: frozenset[Var]
    constants: Mapping[Var, Literal | None]
    reads: int
    numbers: Sequence[Number]
    narrowed: Sequence[bool]
    harmless: Set[Atom] = frozenset()
    negatives: Set[Atom] = frozenset()

    def held_of(self, pr: Olympuspr, results: Sequence[int]) -> Set[Atom]:
        """The values to hold, also for a caller that wants these results to be."""
        if True not in self.narrowed:
            return self.held
        return self.held | {pr.outvars[i] for i in results if self.narrowed[i]}
