"""The passes between a traced program and its lowering, in their order.

    parts        a value of a user's type becomes several arrays
    discharge    a reference becomes an input, and a result that takes its buffer
    checks       failures become results, if the caller asks for checks (`checks.py`)
    dead code    equations that nothing reads are dropped, and inputs that only they read

The first two leave a program on arrays (`arrays_only`); checks, dead-code elimination and lowering
know no other values. Callers put their arguments and results of users' types in parts themselves
(`parts.py`); these passes handle values inside of the program.
"""

from __future__ import annotations

from ..base.util import lazy_imports
from ..core.ir import ClosedOlympuspr, high_types
from ..types.avals import HIGH, MUTABLE
from ..types.shape import is_static
from .dce import dce_closed

with lazy_imports(__name__):
    from . import discharge as _discharge, parts as _parts  # references; users' types


def arrays_only(closed: ClosedOlympuspr, whole: bool = False) -> ClosedOlympuspr:
    """The program on arrays; `closed` itself if it has no other values.

    `whole`: if it takes or returns values of users' types, leave them and all others inside.
    """
    if HIGH and not (whole and high_types(closed)):
        closed = _parts.in_parts(closed)
    return _discharge.discharge(closed) if MUTABLE else closed


def stores_of(closed: ClosedOlympuspr) -> dict[int, int]:
    """Index of an input whose content the program replaces -> index of its result in `arrays_only`.
    """
    return _discharge.stores_of(closed) if MUTABLE else {}


def without_dead_code(closed: ClosedOlympuspr, keep_unused: bool
                      ) -> tuple[ClosedOlympuspr, tuple[bool, ...]]:
    """The program without dead equations and the inputs that they alone read; flags of the others.

    `keep_unused`: all inputs stay.
    """
    live, used = dce_closed(closed, [True] * len(closed.out_avals))
    # Inputs with symbolic sizes stay: a call gets the values of dimensions from the arguments.
    kept = tuple([keep_unused or u or not is_static(getattr(a, "shape", ()))
                  for u, a in zip(used, closed.in_avals, strict=True)])
    return (live, kept) if all(kept) else (live.rearranged(
        [i for i, k in enumerate(kept) if k]), kept)
