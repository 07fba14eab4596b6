"""Python's collector of cycles, which rests while many objects are made."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Within it, cycles are not looked for; afterwards, also after an error, as before."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


@contextlib.contextmanager
def collector_at_rest() -> Iterator[None]:
    """`collector_paused` while objects are made that all stay.

    They count as old: else the next two collections would go through all of them.
    """
    with collector_paused():
        try:
            yield
        finally:
            if not gc.get_freeze_count():   # objects that the user froze stay frozen
                gc.freeze()
                gc.unfreeze()               # everything is in the oldest generation now, unvisited
