"""The logger, and the durations of a compilation's steps."""

from __future__ import annotations

import logging
import time

from . import monitoring
from .config import debug_log_modules, log_compiles, logging_level

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


class timed:
    """Context manager that tells how long its block took as a step of compiling `name`, unless it
    raises: the log, under `olympus_log_compiles`, as `log`; those who listen, as `event`.
    """

    __slots__ = ("event", "log", "name", "start")

    def __init__(self, name: str, *, log: str = "", event: str = "") -> None:
        self.name, self.log, self.event = name, log, event

    def __enter__(self) -> None:
        self.start = time.time()
        if self.event and monitoring.scalars.called:
            monitoring.record_scalar(self._path, self.start, fun_name=self.name)

    @property
    def _path(self) -> str:
        return f"/olympus/core/compile/{self.event}_duration"

    def __exit__(self, kind: type[BaseException] | None, *exc_info: object) -> None:
        if kind is not None:
            return
        if self.log and log_compiles.value:
            LOGGER.warning("Finished %s of jit(%s) in %.9f sec", self.log, self.name,
                           time.time() - self.start)
        if self.event and (monitoring.durations.called or monitoring.time_spans.called):
            end = time.time()
            monitoring.record_event_duration_secs(self._path, end - self.start, fun_name=self.name)
            monitoring.record_event_time_span(self._path, self.start, end, fun_name=self.name)
