"""The roll call of a distributed job, before its runtime starts: who is there, and do they agree?

The runtime's own service ends processes that fail to connect; here each gets an error that it can
catch, which names the processes that are missing, duplicated, or disagree about the job. Process 0
listens at the coordinator's port until all have reported; then its service takes the port over.
"""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import socket
import time
from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple

from ..base import lib
from ..base.errors import OlympusRuntimeError

_WHAT = "distributed.initialize"
_GREETING = 5.0     # seconds that a process which has connected has to say who it is
_WATCHERS = 4096    # connections that wait at a pulse; none of them is accepted


class Member(NamedTuple):
    """A process as it describes itself; `address` is where the coordinator sees it."""

    process_id: int
    num_processes: int
    host: str
    pid: int
    pulse: int      # a port that is open as long as the process lives
    versions: str
    address: str = ""

    def __str__(self) -> str:
        return f"process {self.process_id} ({self.host}, pid {self.pid})"


def open_pulse() -> socket.socket:
    """A socket that the system keeps open as long as this process lives; nobody reads it.

    Who watches the process connects to it, and stays in its backlog until it goes.
    """
    try:
        return socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True,
                                    backlog=_WATCHERS)
    except (OSError, ValueError):       # a system without IPv6
        return socket.create_server(("", 0), backlog=_WATCHERS)


def introduce(process_id: int, num_processes: int, pulse: socket.socket, versions: str) -> Member:
    """The description of this process."""
    return Member(process_id, num_processes, socket.gethostname(), os.getpid(),
                  pulse.getsockname()[1], f"{versions} with jaxlib {lib.jaxlib_version}")


def split_address(address: str) -> tuple[str, int]:
    """The host and the port of `host:port`."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        raise ValueError(f"{_WHAT}: coordinator_address {address!r} given; host:port is required, "
                         "such as '10.0.0.1:1234'.")
    return host.strip("[]"), int(port)      # IPv6 is in brackets, since it has colons itself


def _listen(address: str) -> socket.socket:
    host, port = split_address(address)
    try:
        if host in ("", "::"):
            with contextlib.suppress(ValueError):       # of a system without IPv6
                return socket.create_server(("::", port), family=socket.AF_INET6,
                                            dualstack_ipv6=True, backlog=1024)
            host = ""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        return socket.create_server((host, port), family=family, backlog=1024)
    except OSError as error:
        raise OlympusRuntimeError(
            f"{_WHAT}: process 0 cannot listen at {address} ({error.strerror}); a free port of "
            "this host is required; end what uses it, or choose another port.") from None


def _receive_line(connection: socket.socket) -> object:
    """One line of JSON; None if something else comes, or nothing."""
    with contextlib.suppress(OSError, ValueError), connection.makefile("rb") as lines:
        return json.loads(lines.readline(1 << 24))      # a stranger may send without end
    return None


def _say(connection: socket.socket, value: object) -> None:
    with contextlib.suppress(OSError):
        connection.sendall(json.dumps(value).encode() + b"\n")


def _objection(new: Member, mine: Member, known: dict[int, Member]) -> str | None:
    """Why a job cannot be run with this process, if it cannot."""
    if new.num_processes != mine.num_processes:
        return (f"{new} says num_processes={new.num_processes}, {mine} says "
                f"{mine.num_processes}; one number is required; start all with the same one.")
    if new.process_id in known:
        return (f"{new} and {known[new.process_id]} have the same process_id; each process needs "
                "its own.")
    if new.versions != mine.versions:
        return (f"{new} runs {new.versions}, {mine} runs {mine.versions}; one version is required; "
                "install it on all hosts.")
    return None


def gather(bind_address: str, mine: Member, timeout: float
           ) -> tuple[list[Member], list[socket.socket]]:
    """Wait in process 0 until all others have reported; returns all and their open connections.

    OlympusRuntimeError, told to all that have come, where one does not fit or some do not come.
    """
    end, known, open_ = time.monotonic() + timeout, {0: mine}, []
    objection: str | None = None
    with _listen(bind_address) as listener:
        while objection is None and len(known) < mine.num_processes:
            try:
                listener.settimeout(max(end - time.monotonic(), 0.001))
                connection, where = listener.accept()
            except TimeoutError:
                objection = (
                    f"{missing(mine.num_processes, known)} did not report to process 0 within "
                    f"{timeout:.0f} seconds; {len(known)} of {mine.num_processes} are there; look "
                    "at the logs of those that are not, or raise initialization_timeout.")
                break
            # Connections are read one by one: a stranger that says nothing must not hold up the
            # others.
            connection.settimeout(_GREETING)
            greeting = _receive_line(connection)
            # All but `address`, which is seen from here.
            if not isinstance(greeting, list) or len(greeting) != len(Member._fields) - 1:
                connection.close()      # no process of ours: what scans ports, say
                continue
            new = Member(*greeting, address=where[0])
            open_.append(connection)        # at which the other one waits for the answer
            objection = _objection(new, mine, known)
            known[new.process_id] = new
    if objection is not None:
        for connection in open_:
            _say(connection, objection)
            connection.close()
        raise OlympusRuntimeError(f"{_WHAT}: {objection}")
    return [known[i] for i in range(mine.num_processes)], open_


def missing(count: int, known: Container[int]) -> str:
    """In words: the processes of a job that are not among those known.

    >>> missing(8, [0, 1, 5])
    'processes 2, 3, 4, 6, 7'
    """
    absent = [str(i) for i in range(count) if i not in known]
    more = f" and {len(absent) - 16} more" if len(absent) > 16 else ""
    return f"process{'es' * (len(absent) > 1)} {', '.join(absent[:16])}{more}"


def announce(members: Sequence[Member], connections: Sequence[socket.socket]) -> None:
    """Tell the waiting processes that all are there and the coordinator's service runs."""
    for connection in connections:
        _say(connection, members)
        connection.close()


def report(address: str, mine: Member, timeout: float) -> list[Member]:
    """Report to process 0 and wait until all have; returns them.

    OlympusRuntimeError where it is not there in time, or reports a fault.
    """
    host, port = split_address(address)
    end = time.monotonic() + timeout
    heard, why = None, "no time was given"
    while heard is None and time.monotonic() < end:
        try:
            with socket.create_connection((host, port), max(end - time.monotonic(), 0.001)) as c:
                _say(c, mine[:-1])
                # Process 0 may have begun to wait later, and it knows who is missing.
                c.settimeout(max(end - time.monotonic(), 0) + _GREETING)
                heard = _receive_line(c)
                why = "it closed the connection, or is no coordinator that waits"
        except OSError as error:
            why = str(error)
        if heard is None:       # processes start in any order
            time.sleep(0.05)
    if isinstance(heard, list):
        return [Member(*m) for m in heard]
    if heard is not None:
        raise OlympusRuntimeError(f"{_WHAT}: {heard}")
    raise OlympusRuntimeError(
        f"{_WHAT}: process {mine.process_id} of {mine.num_processes} got no answer from the "
        f"coordinator, process 0, at {address} within {timeout:.0f} seconds ({why}); start process "
        "0 there, look at its log, or give its address.")


def pulse_address(member: Member, coordinator: str | None) -> tuple[str, int]:
    """Where a process of the job has its pulse; the coordinator has not seen its own address."""
    return member.address or split_address(coordinator or ":0")[0], member.pulse


def reachable(member: Member, coordinator: str | None, timeout: float = 2.0) -> bool | None:
    """Whether a process of the job lives; None where its host does not answer."""
    with Watch([member], coordinator, timeout) as watch:
        return False if watch.ended else None if watch.unanswered else True


class Watch:
    """Processes of the job, as connections to their pulses: they close when a process ends.

    Args:
      members, coordinator: whom to watch, and the coordinator's address.
      timeout: how many seconds their hosts have to answer, all together.

    Attributes:
      ended, unanswered: which have ended, as far as they were looked at, and whose hosts do not
        answer.
    """

    def __init__(self, members: Iterable[Member], coordinator: str | None, timeout: float = 2.0
                 ) -> None:
        self._living: Any = selectors.DefaultSelector()
        self.ended: list[Member] = []
        self.unanswered: list[Member] = []
        end = time.monotonic() + timeout
        for member in members:
            try:
                connection = socket.create_connection(
                    pulse_address(member, coordinator), max(end - time.monotonic(), 0.05))
                self._living.register(connection, selectors.EVENT_READ, member)
            except ConnectionRefusedError:      # the host answers, and nobody listens
                self.ended.append(member)
            except OSError:     # which says nothing of the process
                self.unanswered.append(member)

    def look(self, timeout: float) -> list[Member]:
        """Wait for a process to end, and return those that have."""
        # Nobody sends anything here: readable means that the connection has ended.
        for key, _ in self._living.select(timeout):
            self._living.unregister(key.fileobj).fileobj.close()
            self.ended.append(key.data)
        return self.ended

    def wait(self, timeout: float) -> bool:
        """Wait until all have ended; whether they have, as far as their hosts answer."""
        end = time.monotonic() + timeout
        while self._living.get_map() and (left := end - time.monotonic()) > 0:
            self.look(left)
        return not self._living.get_map()

    def __enter__(self) -> Watch:
        return self

    def __exit__(self, *_: object) -> None:
        for key in list(self._living.get_map().values()):
            key.fileobj.close()
        self._living.close()
