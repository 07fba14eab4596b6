"""The job that this process belongs to: how many processes run the program, and which this is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import socket
    import threading

    from .rollcall import Member


class Job:
    """A process alone is a job of one; `distributed.initialize` fills this in."""

    def __init__(self) -> None:
        self.process_id, self.num_processes = 0, 1
        self.coordinator_address: str | None = None
        self.clients: dict[str, Any] = {}       # of XLA in this process, by platform
        self.client: Any = None         # of the distributed runtime; None before and after
        self.service: Any = None        # its coordinator's process; in process 0 only
        self.shutdown_timeout = 0
        self.preemption: Any = None
        self.partition_index: int | None = None
        self.members: Sequence[Member] = ()
        self.pulse: socket.socket | None = None
        self.failures: list[str] = []   # of programs on several processes, as they were explained
        self.left_waiting: list[threading.Thread] = []      # at barriers, until the client goes
        self.programs: dict[tuple[Any, ...], set[Any]] = {}     # that ran, by their devices


current = Job()
