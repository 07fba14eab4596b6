"""What Olympus says of its work: the logger, and how long the steps of a compilation take."""

from __future__ import annotations

import contextlib
import logging
import time
from collections.abc import Iterator

from . import monitoring
from .config import debug_log_modules, log_compiles, logging_level

__all__ = ["LOGGER", "recorded", "timed"]

LOGGER = logging.getLogger("olympus")
_on_stderr = logging.StreamHandler()
_loud: list[logging.Logger] = []    # whose records go there


def _write_all(names: str) -> None:
    """Let the loggers of these names, and no others, write everything to stderr."""
    while _loud:
        logger = _loud.pop()
        logger.removeHandler(_on_stderr)
        logger.setLevel(logging.NOTSET)
    for name in filter(None, names.split(",")):
        logger = logging.getLogger(name.strip())
        logger.addHandler(_on_stderr)
        logger.setLevel(logging.DEBUG)
        _loud.append(logger)


logging_level.tell(LOGGER.setLevel)
debug_log_modules.tell(_write_all)


@contextlib.contextmanager
def timed(step: str, name: str) -> Iterator[None]:
    """Log how long the block took as a step of compiling `name`, under `olympus_log_compiles`."""
    start = time.perf_counter()
    yield
    if log_compiles.value:
        LOGGER.warning("Finished %s of jit(%s) in %.9f sec", step, name,
                       time.perf_counter() - start)


@contextlib.contextmanager
def recorded(step: str, name: str) -> Iterator[None]:
    """Tell those who listen when the block began, and how long it took, as a step of compiling."""
    event, start = f"/olympus/core/compile/{step}_duration", time.time()
    monitoring.record_scalar(event, start, fun_name=name)
    yield
    end = time.time()
    monitoring.record_event_duration_secs(event, end - start, fun_name=name)
    monitoring.record_event_time_span(event, start, end, fun_name=name)
