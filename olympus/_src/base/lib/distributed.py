"""PJRT's distributed runtime: the coordinator's service, each process's client, and gloo."""

import ctypes
from typing import Any

from olympus._src.base.lib.loading import _jax


def start_service(address: str, num_processes: int, *, heartbeat_timeout: int,
                  shutdown_timeout: int, recoverable: bool) -> Any:
    """Start the coordinator's service, which listens at `address`; time-outs are in seconds."""
    return _jax.get_distributed_runtime_service(
        address, num_processes, heartbeat_timeout=heartbeat_timeout,
        shutdown_timeout=shutdown_timeout, recoverable=recoverable)


def connect(address: str, process_id: int, *, init_timeout: int, heartbeat_timeout: int,
            shutdown_timeout: int) -> Any:
    """Connect this process to the service and return its client.

    Where that fails, and where another process is lost later, C++ ends this process: it has a
    callback for both, but cannot give Python the status that it calls it with.
    """
    client = _jax.get_distributed_runtime_client(
        address, process_id, init_timeout=init_timeout, heartbeat_timeout=heartbeat_timeout,
        shutdown_timeout=shutdown_timeout, use_compression=True)
    client.connect()
    return client


def watch_preemption(client: Any) -> Any:
    """Take SIGTERM for the notice of a preemption from now on, and return what tells of it."""
    manager = _jax.create_preemption_sync_manager()
    manager.initialize(client)
    return manager


def cpu_collectives(implementation: str, client: Any) -> Any:
    """What CPU devices of several processes communicate by: 'gloo' (TCP) or 'mpi'."""
    if implementation == "gloo":
        return _jax.make_gloo_tcp_collectives(client)
    found = _jax.make_mpi_collectives()
    found.Init()
    return found


def keep_for_ever(*ends: Any) -> None:
    """Let the process end without the farewell of a client or service, which waits for others."""
    for end in ends:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(end))
