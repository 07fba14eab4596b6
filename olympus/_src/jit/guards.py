"""Purity guards: `jit(guards=…)` reports that a value read by a traced function has changed.

`core/captures.py` finds the values and compares them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..base import source
from ..base.errors import StaleValueError, StaleValueWarning
from ..base.typing import PyTree
from ..base.util import Memo
from ..core.captures import Captures, Change

_SHOWN = 3                  # the most changes that a message lists


def check_mode(guards: object) -> None:
    """ValueError for a value of `jit(guards=…)` that makes no sense."""
    if guards not in (None, "off", "warn", "error", "retrace"):
        raise ValueError(f"jit: guards={guards!r} given; 'off', 'warn', 'error', 'retrace', or None"
                         " for what olympus_jit_guards says, is required.")


class Guard:
    """The captures of a jitted function, and the changes that were warned of."""

    def __init__(self, fun: Callable[..., PyTree], name: str) -> None:
        self.fun, self.name = fun, name
        self.captures: Memo = Memo(1)       # of the programs that there are
        self._warned: set[Any] = set()      # changes and places

    def note_captures(self) -> None:
        """Note the captures read, when the first program has been traced."""
        if self.captures:
            return
        captures = self.captures[None] = Captures(self.fun)
        for where, why in captures.opaque.items():
            if where not in self._warned:
                self._warned.add(where)
                source.warn(
                    f"jit: the guards of {self.name} cannot compare {where}: {why}.\n  That another"
                    " object takes its place is seen, what happens within it is not.\n  Pass it as "
                    "an argument, or read a tuple of numbers in its place.", StaleValueWarning)

    def changed(self, mode: str) -> bool:
        """Whether to trace anew for a changed capture; other modes report it."""
        found = self.captures.get(None)
        if found is None or found.same():
            return False
        changes = found.changes()
        if mode == "error" and changes:
            raise StaleValueError(self._text(changes))
        if mode == "warn" and not self._warned.issuperset(changes):
            self._warned.update(changes)
            source.warn(self._text(changes), StaleValueWarning)
        return mode == "retrace" and bool(changes)

    def _text(self, changes: Sequence[Change]) -> str:
        more = f"\n  and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        return "".join([f"jit: {self.name} reads what has changed since it was traced.",
                        *[f"\n  {c}." for c in changes[:_SHOWN]], more,
                        "\n  Its program has the old value. Pass it as an argument; or let"
                        '\n  jit(guards="retrace") trace again for each change.'])
