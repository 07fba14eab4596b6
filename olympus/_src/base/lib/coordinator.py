"""The program of the coordinator's process, in which PJRT's service of a job runs.

Process 0 of the job starts it, by its path: it imports nothing of Olympus. C++ ends every process
that is connected to a service when that goes (`client.h` of PJRT's distributed runtime: LOG(FATAL),
SIGABRT); alone, it outlives process 0, and each of the job can end as it likes. It ends when the
last of them has, which it sees from their pulses (`job.rollcall`).
"""
# jaxlib has no stubs of its extension modules.
# pyright: reportAttributeAccessIssue=false

import contextlib
import json
import os
import selectors
import socket
import sys
from collections.abc import Iterable
from typing import Any

from jaxlib import _jax

_PROBES = 3     # without an answer, after which a host is taken for dead


def _keep_alive(connection: socket.socket, seconds: int) -> None:
    """Let the system close a connection when its other host has not answered for so long."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", seconds), ("TCP_KEEPINTVL", seconds // _PROBES),
                        ("TCP_KEEPCNT", _PROBES)):
        if hasattr(socket, name):       # Linux has all three
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), max(value, 1))


def _wait_for_ends(pulses: Iterable[tuple[str, int]], silence: int) -> None:
    """Wait until the processes that have these pulses have ended."""
    with selectors.DefaultSelector() as living:
        for address in pulses:
            with contextlib.suppress(OSError):
                connection = socket.create_connection(address, 5.0)
                _keep_alive(connection, silence)
                living.register(connection, selectors.EVENT_READ)
        while living.get_map():
            for key, _ in living.select():
                living.unregister(key.fileobj)


def _start_service(address: str, count: int, heartbeat_timeout: int, shutdown_timeout: int) -> Any:
    # Recoverable: it does not end the others when one is lost, nor wait for all when one leaves.
    return _jax.get_distributed_runtime_service(
        address, count, heartbeat_timeout=heartbeat_timeout, shutdown_timeout=shutdown_timeout,
        recoverable=True)


def main() -> None:
    """Start the service that one line of JSON asks for, say so, and wait for the job's end."""
    line = sys.stdin.readline()
    if not line:    # process 0 has ended, or has no use for it
        return
    asked = json.loads(line)
    pulses = asked.pop("pulses")
    try:
        _service = _start_service(**asked)      # kept: it would stop where nothing refers to it
    except RuntimeError as error:
        print(json.dumps(str(error)), flush=True)
        return
    print(json.dumps(None), flush=True)
    _wait_for_ends(map(tuple, pulses), asked["heartbeat_timeout"])
    # The service ends with its process. Its own end (jaxlib 0.10.2: `shutdown`, or the destructor)
    # is now and then a segmentation fault: a thread of gRPC's still asks for the next request.
    os._exit(0)


if __name__ == "__main__":
    main()
