"""Programs that call the host, or have other effects, run by C++ with Python around each call.

C++ alone would hold no function of the host while a program runs, leave no token of its effects,
and raise a ValueError with XLA's text for an exception of the user's function.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any
from weakref import WeakKeyDictionary

from ..base import lib
from ..base.typing import Array, PyTree
from ..core.effects import Effect, add_pending, wait_for_ordered
from ..devices.array import stored
from ..types.tree_registry import dispatch_registry


class Watched:
    """Calls of a C++ object, some of whose programs call the host or have effects."""

    # XLA holds the keys, where the garbage collector does not look: a function there that leads
    # back to its own program would never be freed. The collector sees the values' owner.
    __slots__ = ("functions", "effects", "ordered")

    def __init__(self) -> None:
        self.functions: WeakKeyDictionary[lib.WeakCall, lib.HostFunction] = WeakKeyDictionary()
        self.effects = self.ordered = False     # the union over programs

    def add(self, calls: Sequence[lib.WeakCall], functions: Sequence[lib.HostFunction],
            effects: Collection[Effect]) -> None:
        """Let C++ run a program that has these effects, and for which XLA has these calls."""
        self.functions.update(zip(calls, functions, strict=True))
        self.effects |= bool(effects)
        self.ordered |= any(e.ordered for e in effects)

    def __call__(self, call: Callable[..., PyTree], args: Sequence[PyTree],
                 kwargs: dict[str, PyTree]) -> PyTree:
        """`call(*args, **kwargs)`, for the C++ object `call`."""
        if self.ordered:        # programs may overlap on a device, ordered effects must not
            wait_for_ordered()
        try:
            result = call(*args, **kwargs)
        except (ValueError, lib.XlaRuntimeError) as error:
            by_host = lib.raised_by_host(error)
            if by_host is error:
                raise
            raise by_host from None
        # XLA runs it in this thread, unless operands or the thread's last program are unfinished.
        left = lib.unready(map(stored, dispatch_registry.flatten(result)[0]))
        if left:
            token = _Results(left)
            lib.keep_while_running(token, self)
            if self.effects:
                add_pending(token, self.ordered)
        return result


class _Results:
    """The results of a started program as its token."""

    __slots__ = ("arrays", "client")

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.arrays = arrays
        self.client: Any = next(iter(arrays[0].devices())).client

    def block_until_ready(self) -> None:
        given_up = any(x.is_deleted() for x in self.arrays)
        # A donated result belongs to another program, which ends after this one.
        lib.block_until_ready(lib.unready(self.client.live_arrays()) if given_up else self.arrays)
