"""Python's collector of cycles, which rests while many objects are made that all stay."""

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_at_rest() -> Iterator[None]:
    """Within it, cycles are not looked for; afterwards, whatever is raised, as before.

    What was made counts as old: else the next two collections would go through all of it.
    """
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if not gc.get_freeze_count():   # objects that the user froze stay frozen
            gc.freeze()
            gc.unfreeze()               # everything is in the oldest generation now, unvisited
        if collecting:
            gc.enable()
