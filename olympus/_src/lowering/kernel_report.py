"""The operations of a program that are lowered by kernels, by line of the source."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from ..base.source import summarize
from ..core.kernels import Taken


class KernelLine(NamedTuple):
    """Equations of one line of the source that one kernel computes.

    Attributes:
      where: the line, with its text.
      operation: the primitive.
      type: the type of the first operand, `float32[3,100]`.
      kernel: the name of the formula.
      why: what XLA would do.
      count: how many equations there are.
      saves: the time that they take less than by XLA's form, in microseconds, by the number of
        elements and a measured table; 0 where that does not tell. Where XLA would
        fuse an operation with others, it may be more, or less.
    """

    where: str
    operation: str
    type: str
    kernel: str
    why: str
    count: int
    saves: int


class KernelReport(NamedTuple):
    """The kernels of a compiled program, in the order in which they run.

    Attributes:
      name: the program's.
      lines: the source lines with kernels.
      reason: why the program can have none; empty where it can.
    """

    name: str
    lines: tuple[KernelLine, ...]
    reason: str = ""

    def __str__(self) -> str:
        count, saves = [sum(column) for column in zip(*[(x.count, x.saves) for x in self.lines])
                        ] or (0, 0)
        reason = f"; {self.reason}" if self.reason else ""
        return "\n".join([
            f"{self.name}: kernels of Olympus compute {count} operations"
            f", which saves some {saves:,} us{reason}",
            *[f"  {x.saves:8,} us  {x.count:4} x {x.operation} of {x.type} by {x.kernel}: {x.why}"
              f"  {x.where}"
              for x in self.lines]])


def kernel_report(name: str, taken: Iterable[Taken], reason: str) -> KernelReport:
    """The report on a program with these kernels, and why it can have none."""
    savings: dict[tuple[str, str, str, str, str], list[float]] = {}
    for kernel, eqn, avals, _, source in taken:
        key = (summarize(source), eqn.primitive.name, str(avals[0]), kernel.name, kernel.why)
        size = max(a.size for a in (*avals, *[v.aval for v in eqn.outvars]))
        savings.setdefault(key, []).append(kernel.saves * size / 1000)
    return KernelReport(name, tuple([KernelLine(*key, len(saved), round(sum(saved)))
                                     for key, saved in savings.items()]), reason)
