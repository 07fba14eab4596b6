"""Joining and leaving a job of several processes: `olympus.distributed`."""

from __future__ import annotations

import atexit
import contextlib
import operator
import os
import subprocess
import sys
import time
from collections.abc import Sequence

from ...version import __version__
from ..base import config, lib, source
from ..base.errors import OlympusRuntimeError
from ..base.logs import LOGGER
from . import rollcall
from .agreement import LEFT, explain_collective, watch_others
from .clusters import detect
from .state import current

_WHAT = "distributed.initialize"
_MOMENT = 5     # seconds that a process which ends gives the others to end, too


def initialize(coordinator_address: str | None = None, num_processes: int | None = None,
               process_id: int | None = None, local_device_ids: int | Sequence[int] | None = None,
               cluster_detection_method: str | None = None, initialization_timeout: int = 300,
               heartbeat_timeout_seconds: int = 100, shutdown_timeout_seconds: int = 300,
               coordinator_bind_address: str | None = None, slice_index: int | None = None,
               partition_index: int | None = None) -> None:
    """Join the job: from then on, `olympus.devices()` are all its processes' devices.

    To be called once in each process, before anything else of Olympus is used that needs devices.
    What is not given is taken from the environment: OLYMPUS_COORDINATOR_ADDRESS,
    OLYMPUS_NUM_PROCESSES, OLYMPUS_PROCESS_ID, OLYMPUS_LOCAL_DEVICE_IDS,
    OLYMPUS_COORDINATOR_BIND_ADDRESS and OLYMPUS_PARTITION_INDEX, or what Open MPI, Slurm, a cloud
    TPU or Kubernetes says (then OLYMPUS_COORDINATOR_PORT chooses the port).

    Args:
      coordinator_address: `host:port` of process 0, which listens there; any free port.
      num_processes: how many processes there are.
      process_id: which of them this is, from 0.
      local_device_ids: the numbers of the GPUs that this process uses; all if None. Under Slurm and
        MPI, the one with the process's number on its host.
      cluster_detection_method: the one environment to ask: 'ompi', 'slurm', 'mpi4py' (asked only
        if it is named), 'gketpu', 'gcetpu', 'k8s'; 'deactivate' asks none.
      initialization_timeout: how many seconds to wait for the others.
      heartbeat_timeout_seconds: after how many without a sign a process or its host is taken for
        dead: `multihost_utils.live_devices` tells, and the runtime ends it should it go on.
      shutdown_timeout_seconds: how many seconds process 0, when it ends, waits for the others to
        end; the others wait for five at most.
      coordinator_bind_address: where process 0 listens; all its addresses, at that port, if None.
      slice_index: an older name of `partition_index`.
      partition_index: the part of a cluster of fast links that this process is in; in all
        processes or in none.

    RuntimeError when called twice or too late, and, after `initialization_timeout`, where
    processes are missing or do not agree: it names them. ValueError and TypeError for arguments
    that are missing or make no sense.

    >>> olympus.distributed.initialize("localhost:1234", 2, 0)     # doctest: +SKIP
    """
    if current.client is not None:
        raise RuntimeError(f"{_WHAT}: called again; it should only be called once in a process.")
    if current.clients:
        raise RuntimeError(f"{_WHAT}: called after a backend was started; it must be called before "
                           "any computation and before olympus.devices(), device_put and the like.")
    if slice_index is not None:
        source.warn(f"{_WHAT}: slice_index given; it is called partition_index now.",
                    DeprecationWarning)
        partition_index = slice_index if partition_index is None else partition_index

    env = os.environ.get
    coordinator_address = coordinator_address or env("OLYMPUS_COORDINATOR_ADDRESS")
    num_processes = _whole_number("num_processes", num_processes, "OLYMPUS_NUM_PROCESSES")
    process_id = _whole_number("process_id", process_id, "OLYMPUS_PROCESS_ID")
    partition_index = _whole_number("partition_index", partition_index, "OLYMPUS_PARTITION_INDEX")
    if isinstance(local_device_ids, int):
        local_device_ids = [local_device_ids]
    listed = env("OLYMPUS_LOCAL_DEVICE_IDS")
    if local_device_ids is None and listed:
        local_device_ids = [int(number) for number in listed.split(",")]
    settings = coordinator_address, num_processes, process_id, local_device_ids
    if cluster_detection_method != "deactivate" and None in settings:
        settings = detect(cluster_detection_method, *settings, initialization_timeout)
    address, count, process, local = settings
    if address is None or count is None or process is None:
        missing = [name for name, value in zip(
            ("coordinator_address", "num_processes", "process_id"), settings, strict=False)
            if value is None]
        raise ValueError(
            f"{_WHAT}: no {' and no '.join(missing)} given, and the environment does not say; "
            "coordinator_address, num_processes and process_id should be defined; pass them, or "
            "start the processes by `python -m olympus.distributed launch`, Slurm or MPI.")
    if not 0 <= process < count:
        raise ValueError(f"{_WHAT}: process_id {process} and num_processes {count} given; "
                         "0 <= process_id < num_processes is required.")
    if local:
        config.config.update("olympus_cuda_visible_devices", ",".join(map(str, local)))
    proxies = [name for name in os.environ if "_proxy" in name.lower()]
    if config.check_proxy_envs.value and proxies:
        LOGGER.warning("%s: the environment has the proxies %s; where they do not let processes "
                       "reach each other, unset them.", _WHAT, " ".join(proxies))

    bind = (coordinator_bind_address or env("OLYMPUS_COORDINATOR_BIND_ADDRESS")
            or "[::]:" + str(rollcall.split_address(address)[1]))
    _join(address, bind, count, process, initialization_timeout, heartbeat_timeout_seconds,
          shutdown_timeout_seconds)
    current.partition_index = partition_index


def _whole_number(name: str, given: int | None, variable: str) -> int | None:
    """An argument that is a whole number, or the environment's value in its place."""
    if given is None:
        text = os.environ.get(variable)
        if not text:
            return None
        if not text.isdigit():
            raise ValueError(f"{_WHAT}: {variable}={text!r} given; a whole number is required.")
        return int(text)
    if isinstance(given, bool) or not hasattr(given, "__index__"):
        raise TypeError(f"{_WHAT}: {name} {given!r} of type {type(given).__name__} given; a "
                        "nonnegative int is required.")
    return operator.index(given)


def _join(address: str, bind: str, count: int, process: int, timeout: int, heartbeat: int,
          shutdown_timeout: int) -> None:
    end = time.monotonic() + timeout
    pulse = rollcall.open_pulse()
    # First, so that its interpreter gets ready while the roll call waits.
    service = lib.prepare_service() if process == 0 else None
    try:
        mine = rollcall.introduce(process, count, pulse, f"olympus {__version__}")
        if service is not None:
            members, waiting = rollcall.gather(bind, mine, timeout)
            lib.start_service(service, bind, count, heartbeat_timeout=heartbeat,
                              shutdown_timeout=shutdown_timeout,
                              pulses=[rollcall.pulse_address(m, "localhost:0") for m in members])
            rollcall.announce(members, waiting)
        else:
            members = rollcall.report(address, mine, timeout)
    except BaseException:
        pulse.close()
        if service is not None:
            with service:       # closes its pipes and waits
                service.kill()
        raise
    # C++ ends a process that fails to connect: it gets five seconds, however late it is.
    left = max(round(end - time.monotonic()), 5)
    current.client = lib.connect(address, process, init_timeout=left, heartbeat_timeout=heartbeat,
                                 shutdown_timeout=shutdown_timeout)
    current.service, current.members, current.pulse = service, members, pulse
    current.process_id, current.num_processes = process, count
    current.coordinator_address, current.shutdown_timeout = address, shutdown_timeout
    if config.enable_preemption_service.value:
        current.preemption = lib.watch_preemption(current.client)
    if config.cpu_collectives_timeout_seconds.value > 0:
        lib.limit_collectives(config.cpu_collectives_timeout_seconds.value)
    lib.set_explain_collective(explain_collective)
    if hasattr(os, "register_at_fork"):     # not on Windows
        os.register_at_fork(after_in_child=pulse.close)     # which may outlive this process
    atexit.register(_leave)


def is_initialized() -> bool:
    """Whether this process has joined a job by `initialize`.

    >>> olympus.distributed.is_initialized()
    False
    """
    return current.client is not None


def shutdown() -> None:
    """Leave the job when the others do, or after five seconds.

    Process 0 waits for `shutdown_timeout_seconds` until they have left: the coordinator's process,
    which they need, ends with it where it is the main program of a container. None waits after one
    was lost. It is done when a process ends; it does nothing where there is no job.

    >>> olympus.distributed.shutdown()
    """
    _leave_job(wait=not current.failures)


def _leave_job(wait: bool) -> None:
    if current.preemption is not None:      # it uses the client
        current.preemption.shutdown()
    if current.client is not None:
        if not (wait and _all_leave()):
            current.client.key_value_set(f"{LEFT}/{current.process_id}", "")
            lib.disconnect_collectives(current.client)
        current.client.shutdown()
        for thread in current.left_waiting:     # C++ ends a process whose thread ends after Python
            thread.join(_MOMENT)
    if current.service is not None:
        _part_from_service(current.service, wait)
    if current.pulse is not None:       # the sign that it has left
        current.pulse.close()
    current.preemption = current.client = current.service = current.pulse = None


def _all_leave() -> bool:
    """Whether the others end, too, within a moment: their last messages may be on their way."""
    with watch_others() as watch:
        if watch.ended:
            return False
    moment = min(_MOMENT, current.shutdown_timeout) * 1000
    try:
        current.client.wait_at_barrier("olympus/leave", moment)
    except OlympusRuntimeError:     # they have more to do, without this one
        return False
    return True


def _part_from_service(service: subprocess.Popen[str], wait: bool) -> None:
    """Leave the coordinator's process, which ends with the last of the job."""
    with watch_others() as watch:
        last = watch.wait(current.shutdown_timeout if wait else 0)
    assert current.pulse is not None
    current.pulse.close()
    if last:
        with contextlib.suppress(subprocess.TimeoutExpired):    # then its port is free
            service.wait(_MOMENT)


def _leave() -> None:
    """Leave the job at exit; a process that failed does not wait for those that wait for it."""
    interactive = hasattr(sys, "ps1")       # where an earlier error has ended nothing
    if interactive or getattr(sys, "last_value", None) is None:
        shutdown()
    else:
        _leave_job(wait=False)
