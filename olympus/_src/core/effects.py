"""Effects: actions of an equation besides computing its results.

An effect is an object in `eqn.effects`, compared by class and printed by name. Started programs
with effects leave tokens here until they have run.
"""

from __future__ import annotations

import threading
from typing import Any, TypeAlias

from ..base import lib


class Effect:
    """Base of effects; an ordered one happens in program order.

    >>> import olympus
    >>> def f(x):
    ...     olympus.debug.print("{}", x)
    ...     return x
    >>> [isinstance(e, olympus.core.Effect) for e in olympus.make_olympuspr(f)(1.0).effects]
    [True]
    """

    __slots__ = ()
    ordered = False
    per_element = False     # whether under vmap each element has the effect
    keeps = True    # whether dead-code elimination keeps equations with the effect
    compiled = True     # whether a compiled program has the effect
    name = "Effect"

    def __repr__(self) -> str:
        return self.name

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class InputEffect(Effect):
    """Reads or changes one input. Effects on one input keep their order.

    `index` counts the operands of the equation; in a program's effects it counts the constvars and
    then the invars.
    """

    __slots__ = ("kind", "index")
    KINDS = ("read", "write", "add")

    def __init__(self, kind: str, index: int) -> None:
        if kind not in self.KINDS:
            raise ValueError(f"{type(self).__name__}: kind {kind!r} given; one of "
                             f"{', '.join(self.KINDS)} is required.")
        self.kind, self.index = kind, index

    @property
    def keeps(self) -> bool:
        return self.kind != "read"

    def at(self, index: int) -> InputEffect:
        """The same effect on another input."""
        return type(self)(self.kind, index)

    def __repr__(self) -> str:
        return f"{self.kind.capitalize()}<{self.index}>"

    def __eq__(self, other: Any) -> bool:
        return type(self) is type(other) and (self.kind, self.index) == (other.kind, other.index)

    def __hash__(self) -> int:
        return hash((type(self), self.kind, self.index))


def input_effects(effects: frozenset[Effect]) -> list[InputEffect]:
    """The effects that name an input."""
    return [e for e in effects if isinstance(e, InputEffect)]


class DebugEffect(Effect):
    """The effect of a debugging callback.

    >>> import olympus
    >>> program = olympus.make_olympuspr(lambda x: olympus.debug.print("x is {}", x))(1.0)
    >>> program.effects == {DebugEffect()}
    True
    """

    __slots__ = ()
    per_element = True
    name = "Debug"


class OrderedDebugEffect(DebugEffect):
    """The effect of an ordered debugging callback, which runs after all earlier ordered ones.

    >>> import olympus
    >>> program = olympus.make_olympuspr(
    ...     lambda x: olympus.debug.print("x is {}", x, ordered=True))(1.0)
    >>> program.effects == {OrderedDebugEffect()}
    True
    """

    __slots__ = ()
    ordered = True
    name = "OrderedDebug"


class IOEffect(Effect):
    """The effect of a callback with side effects."""

    __slots__ = ()
    per_element = True
    name = "IO"


class OrderedIOEffect(IOEffect):
    """The effect of an ordered callback with side effects."""

    __slots__ = ()
    ordered = True
    name = "OrderedIO"


Token: TypeAlias = Any          # jaxlib's token of a started program

debug_effect, ordered_debug_effect = DebugEffect(), OrderedDebugEffect()
io_effect, ordered_io_effect = IOEffect(), OrderedIOEffect()

# Tokens of started programs, oldest first. One token is enough for ordered effects: a program that
# has any starts only when all earlier ones have happened. Tokens are taken out under the lock and
# waited for outside it, because a program may call back into Python, which starts other programs.
_pending: list[Token] = []
_last_ordered: list[Token] = []   # usually at most one token
_lock = threading.Lock()
_MAX_PENDING = 64


def wait_for_ordered() -> None:
    """Wait until the ordered effects of all started programs have happened."""
    with _lock:
        tokens, _last_ordered[:] = list(_last_ordered), []
    _wait_for(tokens, _last_ordered)


def _wait_for(tokens: list[Token], again: list[Token]) -> None:
    """Wait for tokens; if Ctrl-C ends the wait, put them back into the list `again`."""
    try:
        lib.wait_for(tokens)
    except KeyboardInterrupt:
        with _lock:
            again[:0] = tokens
        raise


def add_pending(token: Token, ordered: bool) -> None:
    """Remember a started program's token, for `effects_barrier` and the next ordered program."""
    with _lock:
        if ordered:
            _last_ordered[:] = [token]
        _pending.append(token)
        overdue = _pending[:-_MAX_PENDING]
        del _pending[:-_MAX_PENDING]
    _wait_for(overdue, _pending)


def effects_barrier() -> None:
    """Wait until the side effects of all started programs, such as `debug.print`, have happened.

    >>> olympus.debug.print("x is {}", 2); olympus.effects_barrier()
    x is 2
    """
    with _lock:
        tokens, ordered = list(_pending), list(_last_ordered)
        _pending[:], _last_ordered[:] = [], []
    try:
        lib.wait_for(tokens)
    except KeyboardInterrupt:
        with _lock:
            _pending[:0], _last_ordered[:0] = tokens, ordered
        raise
    except Exception:
        lib.wait_for_hosts()
        raise
    lib.wait_for_hosts()
