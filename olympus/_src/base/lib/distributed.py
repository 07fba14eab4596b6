"""PJRT's distributed runtime: the coordinator's service, each process's client, and gloo."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from olympus._src.base.lib.executables import XlaRuntimeError
from olympus._src.base.lib.loading import _jax
from olympus._src.base.util import lazy_imports

if TYPE_CHECKING:
    import socket
    import subprocess

with lazy_imports(__name__):
    import json
    import socket
    import subprocess

_GLOO = "olympus/gloo"      # where each process says in the job's store at which port gloo listens
_PROGRAM = Path(__file__).with_name("coordinator.py")


def prepare_service() -> subprocess.Popen[str]:
    """Start the coordinator's process (a Popen), which gets ready and waits for `start_service`."""
    # In a session of its own, Ctrl-C in a terminal does not reach it.
    return subprocess.Popen(
        [sys.executable, "-P", str(_PROGRAM)], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True, start_new_session=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))})


def start_service(process: Any, address: str, num_processes: int, *, heartbeat_timeout: int,
                  shutdown_timeout: int, pulses: Sequence[tuple[str, int]]) -> None:
    """Let the coordinator's process listen at `address` until all that have `pulses` have ended.

    Time-outs are in seconds. RuntimeError where it cannot.
    """
    asked = {"address": address, "count": num_processes, "pulses": pulses,
             "heartbeat_timeout": heartbeat_timeout, "shutdown_timeout": shutdown_timeout}
    answer = ""
    with contextlib.suppress(BrokenPipeError), process.stdin, process.stdout:
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
    why = json.loads(answer) if answer else "its process ended"
    if why is not None:
        raise XlaRuntimeError(f"distributed.initialize: the coordinator's service does not start "
                              f"at {address} ({why}); a free port of this host is required, and "
                              f"{sys.executable} must be able to import jaxlib.")


def connect(address: str, process_id: int, *, init_timeout: int, heartbeat_timeout: int,
            shutdown_timeout: int) -> Any:
    """Connect this process to the service and return its client.

    Where that fails, and where the coordinator's process is lost later, C++ ends this process: it
    has a callback for both, but cannot give Python the status that it calls it with.
    """
    client = _jax.get_distributed_runtime_client(
        address, process_id, init_timeout=init_timeout, heartbeat_timeout=heartbeat_timeout,
        shutdown_timeout=shutdown_timeout, use_compression=True)
    client.connect()
    return client


def disconnect_collectives(client: Any) -> None:
    """Close this process's gloo connections: who waits for it in a collective fails, too, then."""
    listening = {(host, int(port)) for host, port in (
        value.split() for _, value in client.key_value_dir_get(_GLOO))}
    for s in _tcp_sockets():
        with contextlib.suppress(OSError):      # no peer: it listens, or was closed
            if not listening.isdisjoint((s.getsockname()[:2], s.getpeername()[:2])):
                s.shutdown(socket.SHUT_RDWR)


def _tcp_sockets() -> Iterator[socket.socket]:
    """This process's sockets, in C++ and in Python, each as a Python object until the next one."""
    for number in map(int, os.listdir("/dev/fd") if os.path.isdir("/dev/fd") else ()):
        with contextlib.suppress(OSError):      # closed meanwhile, as the folder's is
            if not stat.S_ISSOCK(os.fstat(number).st_mode):
                continue
            with socket.socket(fileno=os.dup(number)) as tcp:
                if tcp.type == socket.SOCK_STREAM and tcp.family in (
                        socket.AF_INET, socket.AF_INET6):
                    yield tcp


def _listens(s: socket.socket) -> bool:
    return bool(s.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN))


def limit_collectives(seconds: int) -> None:
    """Let CPU collectives fail that wait for so long; XLA reads this when its first client is made.

    A number that the user gave in XLA_FLAGS stands behind it, and holds.
    """
    os.environ["XLA_FLAGS"] = (f"--xla_cpu_collective_timeout_seconds={seconds} "
                               f"{os.environ.get('XLA_FLAGS', '')}").rstrip()


def watch_preemption(client: object) -> Any:
    """Take SIGTERM for the notice of a preemption from now on, and return what tells of it."""
    manager = _jax.create_preemption_sync_manager()
    manager.initialize(client)
    return manager


def cpu_collectives(implementation: str, client: Any) -> object:
    """The transport between CPU devices of several processes: 'gloo' (TCP) or 'mpi'."""
    if implementation == "gloo":
        before = {s.getsockname() for s in _tcp_sockets() if _listens(s)}
        collectives = _jax.make_gloo_tcp_collectives(client)
        for s in _tcp_sockets():
            if _listens(s) and s.getsockname() not in before:
                host, port, *_ = s.getsockname()
                client.key_value_set(f"{_GLOO}/{host}/{port}", f"{host} {port}")
        return collectives
    collectives = _jax.make_mpi_collectives()
    collectives.Init()
    return collectives

