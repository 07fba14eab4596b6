"""Search for tracers that outlive their transformation, for `olympus_check_tracer_leaks`.

A leak is found by asking the garbage collector which tracers of an ended trace are still alive;
that is slow, so nothing of this runs unless the option is on.
"""

from __future__ import annotations

import gc
from typing import Any

from ..base import errors, source
from ..base.config import check_tracer_leaks
from .trace import Trace, Tracer, printed_name

__all__ = ["check_leaks", "note_origins"]


def note_origins(trace: Any) -> dict[int, str] | None:
    """What is known of the trace's tracers, before it forgets; None if the option is off."""
    if not check_tracer_leaks.value:
        return None
    # By id of the variable, which is sound: notes are read of tracers that are still alive, each
    # with its variable.
    notes = {id(tracer._bound): tracer._origin() for tracer in getattr(trace, "inputs", ())}
    for eqn in getattr(trace, "eqns", ()):
        origin = f"made by {eqn.primitive} at {source.summarize(eqn.source)}"
        notes.update((id(var), origin) for var in eqn.outvars)
    return notes


def check_leaks(trace: Trace, notes: dict[int, str] | None) -> None:
    """Raise LeakError if a tracer of the ended trace is alive; callers hold none themselves."""
    if notes is None:
        return
    # First what is only kept by cycles: that is no leak of the user's.
    gc.collect()
    leaked = [x for x in gc.get_objects() if isinstance(x, Tracer) and x._trace is trace]
    if not leaked:
        return
    shown = [f"{x.aval} ({printed_name(x)}, {_noted(x, notes)}; "
             f"held by {_holder(x, leaked)})" for x in leaked[:3]]
    more = f" and {len(leaked) - 3} more" if len(leaked) > 3 else ""
    raise errors.LeakError(
        f"check_tracer_leaks: Leaked trace: {', '.join(shown)}{more} outlived the "
        "transformation; a traced value may not be kept after the function returns; return it "
        "from the function instead of storing it in a global, an attribute or a closure.")


def _noted(tracer: Any, notes: dict[int, str]) -> str:
    return notes.get(id(getattr(tracer, "_bound", None))) or tracer._origin()


def _holder(tracer: Any, leaked: list[Any]) -> str:
    """What kind of object keeps the tracer alive."""
    # Our own list refers to every leaked tracer, and frames of ours to this one.
    for holder in gc.get_referrers(tracer):
        if holder is not leaked and type(holder).__name__ != "frame":
            return f"a {type(holder).__name__}"
    return "a variable"
