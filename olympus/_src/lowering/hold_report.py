"""The held values of a program by line of the source, and the operations saved."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..base.source import summarize
from ..core.ir import ClosedOlympuspr, Var


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
    """The values that a compiled program computes once, the ones that save most first.

    Attributes:
      name: the program's.
      lines: the source lines with held values, and what each saves.
      reason: why nothing is held, or why not more; empty where XLA computes nothing else again
        that is worth a copy.
    """

    name: str
    lines: tuple[HeldLine, ...]
    reason: str = ""

    def __str__(self) -> str:
        count, saves = (sum(column) for column in zip(*[(x.count, x.saves) for x in self.lines])
                        ) if self.lines else (0, 0)
        rows = [f"  {x.saves:8,}  {x.count:4} x {x.operation} -> {x.type}  {x.where}"
                for x in self.lines]
        reason = f"; {self.reason}" if self.reason else ""
        return "\n".join([f"{self.name}: {count} values are computed once, however many kernels "
                          f"read them, which saves {saves:,} operations or more{reason}", *rows])


def hold_report(name: str, found: Iterable[tuple[ClosedOlympuspr, Mapping[Var, int]]],
                reason: str, cut: Iterable[int]) -> HoldReport:
    """The report on programs and what each saves by its held values.

    `reason` says why nothing is held, `cut` gives the sizes of axes that several devices share.
    """
    lines: dict[tuple[str, str, str], list[int]] = {}
    for closed, saved in found:
        for eqn in closed.olympuspr.eqns:
            for v in eqn.outvars:
                if v in saved:
                    key = summarize(eqn.source), eqn.primitive.name, str(v.aval)
                    lines.setdefault(key, []).append(saved[v])
    rows = [HeldLine(*key, len(saves), sum(saves)) for key, saves in lines.items()]
    if cut and not reason:
        sizes = ", ".join([f"{n:,}" for n in sorted(cut)])
        reason = (f"devices share axes of {sizes} elements: what moves along axes of such sizes is "
                  "taken for an exchange between devices, which holds its operands anyway")
    return HoldReport(name, tuple(sorted(rows, key=lambda row: -row.saves)), reason)
