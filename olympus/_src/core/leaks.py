"""The search for tracers that outlive their transformation, for `olympus_check_tracer_leaks`.

The garbage collector lists the tracers of an ended trace that are still alive. That is slow, so it
runs under the option only.
"""

from __future__ import annotations

import gc
import sys
import threading
import types
from collections.abc import Iterable
from itertools import islice
from typing import Any

from ..base import errors, source
from ..base.config import check_tracer_leaks
from ..base.typing import Params, T
from .facts import Facts
from .trace import Trace, Tracer, printed_name

_searching = threading.RLock()      # again by finalizers, which the search runs


def note_origins(trace: Trace) -> dict[int, str] | None:
    """The origins of a trace's values, by id, before it ends; None without the option."""
    if not check_tracer_leaks.value:
        return None
    # By id of the variable, or of the tracer if it has none. Notes are read for living tracers,
    # which keep their variables alive, so ids are unique.
    notes: dict[int, str] = dict(getattr(trace, "notes", ()))
    notes.update((id(tracer._bound), tracer._origin()) for tracer in getattr(trace, "inputs", ()))
    for eqn in getattr(trace, "eqns", ()):
        origin = f"made by {eqn.primitive} at {source.summarize(eqn.source)}"
        notes.update((id(var), origin) for var in eqn.outvars)
    return notes


def check_leaks(trace: Trace, notes: dict[int, str] | None) -> None:
    """Raise LeakError if a tracer of the ended trace is alive; callers must have dropped theirs."""
    if notes is None:
        return
    with _searching:    # or the list of one thread would hold the tracers of another
        # Twice: nothing is collected while another thread does so.
        leaked = _alive(trace) and _alive(trace)
    if not leaked:
        return
    ours: list[object] = [leaked]
    shown = [f"{x.aval} ({printed_name(x)}, {_noted(x, notes)}; held by {_holder(x, ours)})"
             for x in islice(leaked, 3)]
    others = f" and {len(leaked) - 3} more" if len(leaked) > 3 else ""
    raise errors.LeakError(
        f"check_tracer_leaks: Leaked trace: {', '.join(shown)}{others} outlived the "
        "transformation; a traced value may not be kept after the function returns; return it "
        "from the function instead of storing it in a global, an attribute or a closure.")


def _alive(trace: Trace) -> list[Tracer]:
    # First free objects that only cycles keep alive: they are no leaks.
    gc.collect()
    # Another thread's may be in the making, without a trace yet.
    return [x for x in gc.get_objects()
            if isinstance(x, Tracer) and getattr(x, "_trace", None) is trace]


def _noted(tracer: Tracer, notes: dict[int, str]) -> str:
    return notes.get(id(getattr(tracer, "_bound", None))) or notes.get(
        id(tracer)) or tracer._origin()


def _holder(x: object, ours: list[object], depth: int = 3) -> str:
    """The name of an object that keeps `x` alive; for a container, also of its own holder."""
    # No closure here may read `x`: the search would find its cell.
    referrers = gc.get_referrers(x)
    ours.append(referrers)      # the lists of this search are no holders
    for holder in referrers:
        if isinstance(holder, types.FrameType) or _among(holder, ours):
            continue
        if isinstance(holder, types.CellType):
            return _cell(holder)
        if isinstance(holder, dict):
            name = _key_of(holder.items(), x)
            owner = _key_of(((m, vars(m)) for m in list(sys.modules.values())
                             if isinstance(m, types.ModuleType)), holder)
            if owner is not None:
                return f"the global {name} of {owner.__name__}"
            owner = _key_of([(o, getattr(o, "__dict__", None)) for o in gc.get_referrers(holder)],
                            holder)
            if owner is not None:
                return f"the attribute {name} of a {type(owner).__name__}"
            place = f"item {name!r:.40} of a dict"
        elif isinstance(holder, (list, tuple)):
            place = f"item {_key_of(enumerate(holder), x)} of a {type(holder).__name__}"
        else:
            name = _key_of(getattr(holder, "__dict__", {}).items(), x)
            return (f"a {type(holder).__name__}" if name is None else
                    f"the attribute {name} of a {type(holder).__name__}")
        return f"{place}, {_holder(holder, ours, depth - 1)}" if depth > 1 else place
    return "a variable"


def _key_of(items: Iterable[tuple[T, object]], x: object) -> T | None:
    """The key of an object, compared by identity; None if it is no value of `items`."""
    for key, value in items:
        if value is x:
            return key
    return None


def _among(x: object, others: list[object]) -> bool:
    return _key_of(enumerate(others), x) is not None


def _cell(cell: types.CellType) -> str:
    """A closure's cell in words: its name and its function."""
    for cells in gc.get_referrers(cell):
        for fun in gc.get_referrers(cells) if isinstance(cells, tuple) else ():
            if isinstance(fun, types.FunctionType) and fun.__closure__ is cells:
                name = fun.__code__.co_freevars[[c is cell for c in cells].index(True)]
                return f"the closure cell {name} of {fun.__qualname__}"
    return "a closure"


class Noting(Trace):
    """Mixed into a trace that records no equations: it notes the origin of each value."""

    __slots__ = ()      # the class it is mixed into has `notes`

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.notes: dict[int, str] = {}

    def process(self, prim: Facts, args: tuple, params: Params) -> object:
        out = super().process(prim, args, params)
        origin = f"made by {prim} at {source.summarize(source.user_frame())}"
        self.notes.update((id(x), origin) for x in (out if prim.multiple_results else [out]))
        return out
