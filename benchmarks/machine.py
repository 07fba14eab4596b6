"""What the figures were measured on: the label of every table."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Mapping


def processor() -> str:
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            names = [line.partition(":")[2].strip() for line in file if "model name" in line]
    except OSError:
        names = []
    return names[0] if names else platform.processor() or platform.machine()


def cores() -> int:
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def load() -> float:
    """How many processes wanted to run in the last five minutes; the benchmark is one of them."""
    return os.getloadavg()[1] if hasattr(os, "getloadavg") else float("nan")


def label(versions: Mapping[str, str], loads: tuple[float, float], clock: str) -> str:
    """One paragraph: when, where, beside what."""
    names = ", ".join(f"{name} {version}" for name, version in versions.items())
    times = "CPU time of all threads" if clock == "cpu" else "wall time"
    return (f"*{time.strftime('%d %B %Y')}: {processor()}, {cores()} of {os.cpu_count()} cores, "
            f"load {loads[0]:.1f} at the start and {loads[1]:.1f} at the end; "
            f"Python {platform.python_version()}, {names}; {times}.*")
