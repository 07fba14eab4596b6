"""What goes on for long, said while it does."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from collections.abc import Iterator


@contextlib.contextmanager
def step(name: str, quiet: bool = False) -> Iterator[None]:
    """Say on stderr how long something takes, on a terminal while it does.

    >>> with step("compiling", quiet=True):
    ...     pass
    """
    if quiet:
        yield
        return
    start, ended, screen = time.perf_counter(), threading.Event(), sys.stderr

    def tick() -> None:
        while not ended.wait(1.0):
            screen.write(f"\r{name} {time.perf_counter() - start:.0f} s")
            screen.flush()

    clock = threading.Thread(target=tick, daemon=True) if screen.isatty() else None
    if clock is not None:
        clock.start()
    try:
        yield
    finally:
        ended.set()
        if clock is not None:
            clock.join()
            screen.write("\r")
    screen.write(f"{name} {time.perf_counter() - start:.2f} s\n")
