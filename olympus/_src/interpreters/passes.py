"""The passes between a traced program and its lowering, in their order.

    discharge    a reference is an input, and a result that takes its buffer
    checks       what may fail is a result: by whoever asks for it (`checks.py`)
    dead code    equations that nothing reads are dropped, and inputs that only they read

The first ones leave a program of arrays only (`arrays_only`), which is all that checks, dead code
and lowering know. Passes for other kinds of values go in front.
"""

from __future__ import annotations

from ..core.ir import ClosedOlympuspr
from ..types.shape import is_static
from .dce import dce_closed

__all__ = ["arrays_only", "without_dead_code"]


def arrays_only(closed: ClosedOlympuspr) -> ClosedOlympuspr:
    """The program on arrays; itself if it knows no other values."""
    return closed


def without_dead_code(closed: ClosedOlympuspr, keep_unused: bool
                      ) -> tuple[ClosedOlympuspr, tuple[bool, ...]]:
    """The program of arrays with the inputs that it reads, and which those are.

    `keep_unused`: all inputs stay.
    """
    found, used = dce_closed(closed, [True] * len(closed.out_avals))
    # The values of dimension variables are read off the arguments.
    kept = tuple([keep_unused or u or not is_static(getattr(a, "shape", ()))
                  for u, a in zip(used, closed.in_avals, strict=True)])
    return (found, kept) if all(kept) else (found.rearranged(
        [i for i, k in enumerate(kept) if k]), kept)
