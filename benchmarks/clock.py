"""Time, on the wall and of the processor."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import NamedTuple


class Time(NamedTuple):
    """Seconds: of a clock on the wall, and of all threads of the process."""

    wall: float
    cpu: float

    def __truediv__(self, count: int) -> Time:
        return Time(self.wall / count, self.cpu / count)


def stopwatch() -> Callable[[], Time]:
    """A function that gives the time since now."""
    wall, cpu = time.perf_counter(), time.process_time()
    return lambda: Time(time.perf_counter() - wall, time.process_time() - cpu)
