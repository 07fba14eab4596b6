"""The passes between a traced program and its lowering, in their order.

    parts        a value of a user's type is several arrays
    discharge    a reference is an input, and a result that takes its buffer
    checks       what may fail is a result: by whoever asks for it (`checks.py`)
    dead code    equations that nothing reads are dropped, and inputs that only they read

The first ones leave a program of arrays only (`arrays_only`), which is all that checks, dead code
and lowering know. Programs that take or return values of users' types are lowered in parts by
whoever calls them (`parts.py`); here these are inside.
"""

from __future__ import annotations

from typing import Any

from ..base.util import lazy_module
from ..core.ir import ClosedOlympuspr, high_types
from ..types.avals import HIGH, MUTABLE
from ..types.shape import is_static
from .dce import dce_closed

_discharge: Any = lazy_module("olympus._src.interpreters.discharge")    # where there are references
_parts: Any = lazy_module("olympus._src.interpreters.parts")            # for users' types


def arrays_only(closed: ClosedOlympuspr, whole: bool = False) -> ClosedOlympuspr:
    """The program on arrays; itself if it knows no other values.

    `whole`: values of users' types that it takes or returns stay, and so do those inside.
    """
    if HIGH and not (whole and high_types(closed)):
        closed = _parts.in_parts(closed)
    return _discharge.discharge(closed) if MUTABLE else closed


def stores_of(closed: ClosedOlympuspr) -> dict[int, int]:
    """For each input whose content the program replaces, the index of its result in `arrays_only`.
    """
    return _discharge.stores_of(closed) if MUTABLE else {}


def without_dead_code(closed: ClosedOlympuspr, keep_unused: bool
                      ) -> tuple[ClosedOlympuspr, tuple[bool, ...]]:
    """The program of arrays with the inputs that it reads, and which those are.

    `keep_unused`: all inputs stay.
    """
    live, used = dce_closed(closed, [True] * len(closed.out_avals))
    # The values of dimension variables are read off the arguments.
    kept = tuple([keep_unused or u or not is_static(getattr(a, "shape", ()))
                  for u, a in zip(used, closed.in_avals, strict=True)])
    return (live, kept) if all(kept) else (live.rearranged(
        [i for i, k in enumerate(kept) if k]), kept)
