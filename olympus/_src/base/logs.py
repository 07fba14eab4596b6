"""What Olympus says of its work: the logger, and how long the steps of a compilation take."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator

from .config import log_compiles

__all__ = ["LOGGER", "timed"]

LOGGER = logging.getLogger("olympus")


@contextlib.contextmanager
def timed(step: str, name: str) -> Iterator[None]:
    """Log how long the block took as a step of compiling `name`, under `olympus_log_compiles`."""
    start = time.perf_counter()
    yield
    if log_compiles.value:
        LOGGER.warning("Finished %s of jit(%s) in %.9f sec", step, name,
                       time.perf_counter() - start)
