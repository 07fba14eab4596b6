"""The values that a function reads besides its arguments, found from its code and compared later.

A program keeps the values that Python had while the function was traced. A walk finds them by the
names in the function's code, and in the code of the user's functions that it calls: globals,
closure cells, defaults, attributes, and items of lists, dicts, sets and NumPy arrays. A later
comparison goes by identity; only where an object was replaced, values are compared.

Two callers ask. Guards (`Captures`) name the value that changed: an attribute counts as read if any
code that is reached reads an attribute of that name, and values that cannot be compared are
reported. Bodies (`watch`) must miss nothing: objects count with all their attributes, and a body
that reads a value that cannot be compared is not kept.
"""

from __future__ import annotations

import contextlib
import operator
import types
from collections.abc import Callable
from itertools import chain
from typing import Any, NamedTuple

from ..base.typing import PyTree
from .walks import ABSENT, Walk, walk

_call: Any = operator.call


class Change(NamedTuple):
    """A value that differs from the value at the time the function was traced."""

    where: str
    before: str
    now: str

    def __str__(self) -> str:
        return f"{self.where} was {self.before} and is now {self.now}"


class Captures:
    """The values that a function read besides its arguments, and the places to read them again."""

    def __init__(self, fun: Callable[..., PyTree]) -> None:
        self.fun = fun
        self._found = walk(fun, False)
        self._watch = Watch(self._found)

    @property
    def opaque(self) -> dict[str, str]:
        """The places of values that cannot be compared, with the reason."""
        return self._found.opaque

    def same(self) -> bool:
        """Whether every place still has the same object; no values are compared."""
        return self._watch.same()

    def changes(self) -> list[Change]:
        """The changes in value; without any, the new objects replace the old ones in the watch."""
        # By place and value: a list that was built anew with equal items is no change.
        new = Captures(self.fun)
        before, after = self._found.leaves, new._found.leaves
        changed = [Change(where, self._found.shown(where), new._found.shown(where))
                   for where in dict.fromkeys([*before, *after])
                   if where not in before or where not in after
                   or before[where].key != after[where].key]
        if not changed:
            self._found, self._watch = new._found, new._watch
        return changed


class Watch:
    """Compares everything that was read with its earlier state.

    `same` runs at each call, and has all its loops in one frame for that reason.
    """

    __slots__ = ("_attributes", "_containers", "_functions", "_items", "_names", "_namespaces",
                 "_objects", "_reads", "_values")

    def __init__(self, seen: Walk) -> None:
        self._names, self._attributes = tuple(seen.bound), tuple(seen.expected)
        self._functions, self._objects = tuple(seen.functions), tuple(seen.objects)
        #: (attributes of an object, their names): names are compared by value
        self._namespaces = tuple([(x, [*x]) for x in seen.namespaces])
        #: containers that must keep their items, in their order
        self._containers = (*seen.containers, *[x.values() for x in seen.namespaces])
        self._items = tuple(chain.from_iterable(self._containers))
        #: functions that must return equal bytes or shapes again
        self._reads, self._values = tuple(seen.reads), [read() for read in seen.reads]

    def same(self) -> bool:
        """Whether everything that was read is unchanged."""
        try:
            for names, key, value in self._names:
                if names.get(key, ABSENT) is not value:
                    return False
            for f, code, defaults, kwdefaults in self._functions:
                if f.__code__ is not code or f.__defaults__ is not defaults or (
                        f.__kwdefaults__ is not kwdefaults):
                    return False
            for x, cls, own in self._objects:
                if x.__class__ is not cls or x.__dict__ is not own:
                    return False
            for x, attribute, value in self._attributes:
                if getattr(x, attribute, ABSENT) is not value:
                    return False
            for names, keys in self._namespaces:
                if [*names] != keys:
                    return False
            if self._containers and not all(map(
                    operator.is_, chain.from_iterable(self._containers), self._items)):
                return False
            return not self._reads or [*map(_call, self._reads)] == self._values
        # The place no longer exists, another thread changes it now, or a class computes it.
        except Exception:
            return False


def watch(fun: types.FunctionType) -> Watch | None:
    """A `Watch` over the values that `fun` reads, but not over its own code and defaults.

    None if a value cannot be compared, or a user's class raises while it is read. The watch keeps
    no reference to the function.
    """
    with contextlib.suppress(Exception):
        return Watch(walk(fun, True))
    return None
