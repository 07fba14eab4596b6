"""The depth of loops, branches and calls in a module, which XLA's compiler bounds."""

from __future__ import annotations

from typing import Any

from ..base import source
from ..core.ir import OlympusprEqn

# XLA follows a nest by recursion and ends the process where the stack ends, in threads of its own:
# a larger stack of the thread that compiles changes nothing. Calls end it at 190 levels, `cond`
# and `while` between 190 and 300.
_DEEPEST = 128
# XLA writes the code of more levels, too, and cannot read it: 31 branches or calls, 45 loops.
LOADABLE = 30
_SHOWN = 3


class Nest:
    """The equations that the operations emitted now are within, the outermost first."""

    __slots__ = ("name", "eqns", "deepest")

    def __init__(self, name: str) -> None:
        self.name = name
        self.eqns: list[Any] = []
        #: The most levels there were so far, in the function that is being emitted.
        self.deepest = 0

    def enter(self, eqn: OlympusprEqn) -> None:
        """Enter a body of `eqn`; operations emitted from here on belong to it."""
        self.check(eqn, 0)
        self.eqns.append(eqn)
        self.deepest = max(self.deepest, len(self.eqns))

    def leave(self) -> None:
        """The body is emitted."""
        self.eqns.pop()

    def reach(self, eqn: OlympusprEqn, levels: int) -> None:
        """There are so many levels in what `eqn` calls."""
        level = len(self.eqns) + 1 + levels
        if level > self.deepest:    # else there was room for as many
            self.check(eqn, levels)
            self.deepest = level

    def check(self, eqn: OlympusprEqn, levels: int) -> None:
        """RecursionError if `eqn` has no place here, for a body with so many levels in it."""
        if len(self.eqns) + 1 + levels <= _DEEPEST:
            return
        lines = [f"{e.primitive.name} at {source.summarize(e.source)}"
                 for e in (*self.eqns[:_SHOWN], eqn)]
        raise RecursionError(
            f"compiling {self.name}: more than {_DEEPEST} loops, branches and calls within one "
            f"another given, which the compiler cannot follow; at most {_DEEPEST} are allowed; "
            "make one loop of equal levels (lax.scan over their parameters), or compile parts "
            f"separately. From the outside in: {'; '.join(lines[:-1])}; …; {lines[-1]}.")
