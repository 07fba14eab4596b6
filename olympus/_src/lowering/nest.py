"""The depth of loops, branches and calls in a module, which XLA's compiler bounds."""

from __future__ import annotations

from typing import Any

from ..base import source
from ..core.ir import OlympusprEqn

# XLA recurses into a nest, in threads of its own, and a stack overflow ends the process: the stack
# of the compiling thread does not matter. Calls overflow at 190 levels, `cond` and `while` between
# 190 and 300.
_DEEPEST = 128
# XLA cannot load the code of deeper nests, which it does write: 31 branches or calls, 45 loops.
LOADABLE = 30
_SHOWN = 3


class Nest:
    """The equations around the operations that are emitted now, the outermost first."""

    __slots__ = ("name", "eqns", "deepest")

    def __init__(self, name: str) -> None:
        self.name = name
        self.eqns: list[Any] = []
        #: The greatest number of levels so far, in the function that is emitted now.
        self.deepest = 0

    def enter(self, eqn: OlympusprEqn) -> None:
        """Enter a body of `eqn`, to which the next operations belong."""
        self.check(eqn, 0)
        self.eqns.append(eqn)
        self.deepest = max(self.deepest, len(self.eqns))

    def leave(self) -> None:
        """Leave the body that was entered last."""
        self.eqns.pop()

    def reach(self, eqn: OlympusprEqn, levels: int) -> None:
        """Note that `eqn` calls a function with so many levels."""
        level = len(self.eqns) + 1 + levels
        if level > self.deepest:    # so many levels were not checked yet
            self.check(eqn, levels)
            self.deepest = level

    def check(self, eqn: OlympusprEqn, levels: int) -> None:
        """RecursionError if a body of `eqn` with so many levels would be too deep here."""
        if len(self.eqns) + 1 + levels <= _DEEPEST:
            return
        lines = [f"{e.primitive.name} at {source.summarize(e.source)}"
                 for e in (*self.eqns[:_SHOWN], eqn)]
        raise RecursionError(
            f"compiling {self.name}: more than {_DEEPEST} loops, branches and calls within one "
            f"another given, which the compiler cannot follow; at most {_DEEPEST} are allowed; "
            "make one loop of equal levels (lax.scan over their parameters), or compile parts "
            f"separately. From the outside in: {'; '.join(lines[:-1])}; …; {lines[-1]}.")
