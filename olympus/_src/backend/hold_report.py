"""What is held of a program, by line of the source, and what that saves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..base.source import summarize
from ..core.ir import ClosedOlympuspr, Var

__all__ = ["HeldLine", "HoldReport", "hold_report"]


class HeldLine(NamedTuple):
    """Values of one line of the source that are computed once.

    Attributes:
      where: the line, with its text.
      operation: the primitive whose results they are.
      type: their type, `float32[3,100]`.
      count: how many there are.
      saves: the operations that kernels would compute again for them; where there are many they
        are not counted to the end, so that this is the least.
    """

    where: str
    operation: str
    type: str
    count: int
    saves: int


class HoldReport(NamedTuple):
    """The values that a compiled program computes once, the ones that save most first."""

    name: str
    lines: tuple[HeldLine, ...]

    def __str__(self) -> str:
        count, saves = (sum(column) for column in zip(*[(x.count, x.saves) for x in self.lines])
                        ) if self.lines else (0, 0)
        rows = [f"  {x.saves:8,}  {x.count:4} x {x.operation} -> {x.type}  {x.where}"
                for x in self.lines]
        return "\n".join([f"{self.name}: {count} values are computed once, however many kernels "
                          f"read them, which saves {saves:,} operations or more", *rows])


def hold_report(name: str, found: Iterable[tuple[ClosedOlympuspr, Mapping[Var, int]]]
                ) -> HoldReport:
    """The report on programs and what each saves by its held values."""
    lines: dict[tuple[str, str, str], list[int]] = {}
    for closed, saved in found:
        for eqn in closed.olympuspr.eqns:
            for v in eqn.outvars:
                if v in saved:
                    key = summarize(eqn.source), eqn.primitive.name, str(v.aval)
                    lines.setdefault(key, []).append(saved[v])
    rows = [HeldLine(*key, len(saves), sum(saves)) for key, saves in lines.items()]
    return HoldReport(name, tuple(sorted(rows, key=lambda row: -row.saves)))
