"""The CPU client, without `jax`; clients of plugins are in `plugins.py`."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

from olympus._src.base.lib.loading import _jax, warn_if_jax_loaded, xla_client
from olympus._src.base.util import lazy_imports

Client: Any = _jax.Client

with lazy_imports(__name__):
    from concurrent import futures

_DEVICE_COUNT = r"--xla_force_host_platform_device_count=(\d+)"


def make_cpu_client(num_devices: int | None = None, **options: object) -> object:
    """Start the CPU backend with `num_devices` devices (None: as XLA_FLAGS says, or one).

    `options` are for jaxlib's own function: whether it is `asynchronous`; of a job of several
    processes, `distributed_client`, `node_id`, `num_nodes`, `collectives` and time-outs.
    """
    warn_if_jax_loaded()
    # This also connects the queue of custom calls registered so far.
    make = functools.partial(xla_client.make_cpu_client, num_devices=num_devices, **options)
    if num_devices is None:
        counts = re.findall(_DEVICE_COUNT, os.environ.get("XLA_FLAGS", ""))
        num_devices = int(counts[-1]) if counts else 1
    # XLA reads these when it makes its pools, then.
    threads_given = "NPROC" in os.environ or "PJRT_NPROC" in os.environ
    if threads_given or num_devices == 1 or 4 * num_devices <= cores():
        return make()
    with _threads(4 * num_devices):
        return _in_the_background(make) if num_devices > cores() else make()


def cores() -> int:
    """The number of processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@functools.cache
def has_long_vectors() -> bool:
    """Whether the processor computes vectors of 512 bits at its usual speed.

    The first ones that had them (without AVX-512 VBMI2) lower their frequency.
    """
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
            return " avx512_vbmi2 " in file.read(8192)      # of the first processor
    except OSError:
        return False


@contextlib.contextmanager
def _threads(count: int) -> Iterator[None]:
    """Let the CPU client have threads for launches beside those that its devices compute on.

    A launch holds a thread of XLA's pool while 32 computations of its device are under way. With as
    many threads as devices, which is XLA's default on a machine with few cores, a collective then
    lacks a thread to compute on, and those launches wait for it: the process ends by XLA's
    time-out. With four per device, there is room for the launches of three threads of Python.
    """
    os.environ["PJRT_NPROC"] = str(count)
    try:
        yield
    finally:
        del os.environ["PJRT_NPROC"]


def _in_the_background(make: Callable[[], object]) -> object:
    """Call `make` so that the threads it starts give way to the one that launches.

    Threads of a pool look for work for a while before they sleep. Where they outnumber the cores,
    the thread that they have just finished a launch for waits until they do: a small program on 8
    devices took 210 us with 32 threads on 2 cores and 110 with 8, and takes 45 with this. All
    together they have the weight of one thread or so beside other processes.
    """
    if sys.platform != "linux":     # where alone threads have priorities of their own
        return make()
    made = futures.Future()

    def run() -> None:
        os.setpriority(os.PRIO_PROCESS, 0, os.getpriority(os.PRIO_PROCESS, 0) + 10)
        try:
            made.set_result(make())
        except BaseException as error:
            made.set_exception(error)

    # Priorities are inherited, and only root may take one back: hence a thread for this alone.
    threading.Thread(target=run, name="olympus-client", daemon=True).start()
    return made.result()
