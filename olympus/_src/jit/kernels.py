"""The equations of a function that are compiled by formulas of Olympus's own."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..base import config
from ..base.source import summarize
from ..base.typing import PyTree
from .jit import jit


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


def kernels(fun: Callable[..., PyTree], /, *args: PyTree, **kwargs: PyTree) -> KernelReport:
    """The operations that `jit` compiles by kernels of Olympus, by line of the source.

    On one CPU, XLA does these slowly; `olympus_kernels="off"` leaves them to it. Nothing is
    compiled or run.

    Args:
      fun: a function; a jitted one is taken with its own options.
      *args, **kwargs: arguments for it: arrays, or anything with shape and dtype.

    Returns:
      A report: `lines`, each with `where`, `operation`, `type`, `kernel`, `why` and `count`, and
      `reason`, why there can be none; `print` shows it.

    >>> report = olympus.debug.kernels(lambda x: onp.argmax(x) + 1, onp.ones(20_000))
    >>> [(line.operation, line.type, line.kernel) for line in report.lines]
    [('argmax', 'float32[20000]', 'maximum of blocks, then its place')]
    """
    with config.kernels("auto"):        # whatever the option says: the caller asks for it
        context = (getattr(fun, "lower", None) or jit(fun).lower)(*args, **kwargs)._context
    found: dict[tuple[str, str, str, str, str], int] = {}
    for kernel, eqn, avals, _, source in context.taken:
        key = (summarize(source), eqn.primitive.name, str(avals[0]), kernel.name, kernel.why)
        found[key] = found.get(key, 0) + 1
    reason = "" if context.takes_kernels else "the program is not for one CPU alone"
    return KernelReport(f"jit({context.name})", tuple([
        KernelLine(*key, count) for key, count in found.items()]), reason)
