"""Effects: what an equation does besides computing. Objects in `eqn.effects`, compared by identity
of class and printed by name; programs of effectful calls leave tokens here until they have run.
"""

from __future__ import annotations

import threading
from typing import Any

from ..base import lib

__all__ = ["DebugEffect", "Effect", "IOEffect", "OrderedDebugEffect", "OrderedIOEffect",
           "add_pending", "debug_effect", "effects_barrier", "io_effect", "ordered_debug_effect",
           "ordered_io_effect", "wait_for_ordered"]


class Effect:
    """Base of effects; an ordered one happens in program order."""

    __slots__ = ()
    ordered = False
    per_element = False     # whether under vmap each element has it for itself
    name = "Effect"

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class DebugEffect(Effect):
    """A debugging callback runs."""

    __slots__ = ()
    per_element = True
    name = "Debug"


class OrderedDebugEffect(DebugEffect):
    """A debugging callback runs, after those before it."""

    __slots__ = ()
    ordered = True
    name = "OrderedDebug"


class IOEffect(Effect):
    """A callback with side effects runs."""

    __slots__ = ()
    per_element = True
    name = "IO"


class OrderedIOEffect(IOEffect):
    """A callback with side effects runs, after those before it."""

    __slots__ = ()
    ordered = True
    name = "OrderedIO"


debug_effect, ordered_debug_effect = DebugEffect(), OrderedDebugEffect()
io_effect, ordered_io_effect = IOEffect(), OrderedIOEffect()

_pending: list[Any] = []
_last_ordered: list[Any] = []   # at most one token
_lock = threading.Lock()
_MAX_PENDING = 64


def wait_for_ordered() -> None:
    """Wait until the ordered effects of all started programs have happened."""
    with _lock:
        tokens, _last_ordered[:] = list(_last_ordered), []
    lib.wait_for(tokens)


def add_pending(token: Any, ordered: bool) -> None:
    """Remember a started program's token, for `effects_barrier` and the next ordered program."""
    with _lock:
        if ordered:
            _last_ordered[:] = [token]
        _pending.append(token)
        old = _pending[:-_MAX_PENDING]
        del _pending[:-_MAX_PENDING]
    lib.wait_for(old)


def effects_barrier() -> None:
    """Wait until the side effects of all started programs have happened."""
    with _lock:
        tokens, _pending[:], _last_ordered[:] = list(_pending), [], []
    lib.wait_for(tokens)
