"""Python's collector of cycles, which rests while many objects are made that all stay."""

import contextlib
import gc
from collections.abc import Iterator

__all__ = ["collector_at_rest"]


@contextlib.contextmanager
def collector_at_rest() -> Iterator[None]:
    """Within it, cycles are not looked for; afterwards, whatever is raised, as before."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()
