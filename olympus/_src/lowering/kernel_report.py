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
    """

    where: str
    operation: str
    type: str
    kernel: str
    why: str
    count: int


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
        count = sum(line.count for line in self.lines)
        reason = f"; {self.reason}" if self.reason else ""
        return "\n".join([
            f"{self.name}: kernels of Olympus compute {count} operations{reason}",
            *[f"  {x.count:4} x {x.operation} of {x.type} by {x.kernel}: {x.why}  {x.where}"
              for x in self.lines]])


def kernel_report(name: str, taken: Iterable[Taken], reason: str) -> KernelReport:
    """The report on a program with these kernels, and why it can have none."""
    found: dict[tuple[str, str, str, str, str], int] = {}
    for kernel, eqn, avals, _, source in taken:
        key = (summarize(source), eqn.primitive.name, str(avals[0]), kernel.name, kernel.why)
        found[key] = found.get(key, 0) + 1
    return KernelReport(name, tuple([KernelLine(*key, count) for key, count in found.items()]),
                        reason)
