"""What the processes of a job owe each other: to run the same programs, and to live.

XLA checks neither. Where one process runs another program, the others wait for ever or, worse, get
wrong numbers; where one has gone, the error says only that a connection was closed.
"""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, Any

from ..base.config import program_agreement_timeout_seconds
from ..base.errors import OlympusRuntimeError
from ..base.util import lazy_module
from .job import current

if TYPE_CHECKING:
    import hashlib

    from . import rollcall
else:       # with OpenSSL, sockets and JSON, which a process alone does not need
    hashlib = lazy_module("hashlib")
    rollcall = lazy_module("olympus._src.backend.rollcall")

__all__ = ["check_same_program", "explain_collective", "spans_processes"]


def spans_processes(devices: tuple[Any, ...]) -> bool:
    """Whether a program on these devices runs in several processes of the job."""
    return current.client is not None and any(
        d.process_index != current.process_id for d in devices)


def check_same_program(name: str, key: Any, devices: tuple[Any, ...]) -> bool:
    """Wait, before the first run of a program, until all processes have come to it; returns True.

    OlympusRuntimeError if they come to different programs, or one does not come in time: in both
    cases it names the process.
    """
    timeout = program_agreement_timeout_seconds.value
    processes = sorted({d.process_index for d in devices})
    if current.client is None or timeout == 0 or current.process_id not in processes:
        return True
    ids = [d.id for d in devices]
    digest = "host-calls" if key is None else key[0].hex()
    ran = current.programs.setdefault(tuple(ids), set())
    if (name, digest) in ran:
        return True
    ran.add((name, digest))
    group = hashlib.blake2b(repr(ids).encode(), digest_size=8).hexdigest()
    place = f"olympus/programs/{group}/{len(ran)}"
    what = (f"{name}: process {current.process_id} comes to it as program {len(ran)} on "
            f"{len(ids)} devices")
    remedy = ("all processes must run the same programs in the same order; look for what depends "
              "on the process (process_index, files, random numbers, the order of sets)")
    first = processes[0]
    if current.process_id == first:
        current.client.key_value_set(place, f"{digest} {name}")
    try:
        current.client.wait_at_barrier(place, timeout * 1000, processes)
    except OlympusRuntimeError as error:
        raise OlympusRuntimeError(
            f"{what}, {_absent(error)} not within {timeout} seconds; {remedy}, or raise "
            "program_agreement_timeout_seconds.") from None
    if current.process_id != first:
        theirs, _, their_name = current.client.blocking_key_value_get(place, 60_000).partition(" ")
        if theirs != digest:
            other = (f"{name}, too, but with other operations, shapes or constants"
                     if name == their_name else their_name)
            raise OlympusRuntimeError(f"{what}, {current.members[first]} to {other}; {remedy}.")
    return True


def _absent(error: Exception) -> str:
    """The processes that a barrier waited for in vain, as the coordinator's error lists them."""
    listed = re.search(r"timed out task names:\n((?:\d+\n?)+)|[Tt]ask:? (\d+)", str(error))
    if listed is None:
        return "others"
    found = [current.members[int(n)] for n in (listed[1] or listed[2]).split()]
    return ", ".join(f"{m}{' (which has ended)' * (_lives(m) is False)}" for m in found)


def _lives(member: rollcall.Member) -> bool | None:
    return rollcall.reachable(member, current.coordinator_address)


def explain_collective(error: Exception) -> Exception:
    """The error of a collective that failed, with the processes that have ended."""
    end, ended = time.monotonic() + 5.0, []
    while not ended and time.monotonic() < end:     # one that fails takes a moment to end
        ended = [m for m in current.members if _lives(m) is False]
        time.sleep(0.05)
    first = str(error).splitlines()[0]
    if not ended:
        return OlympusRuntimeError(
            f"a program on several processes failed ({first}), though all "
            f"{len(current.members)} of the job live; look at the logs of the others and at the "
            "network.")
    have = "has" if len(ended) == 1 else "have"
    return OlympusRuntimeError(
        f"a program on several processes failed ({first}): {', '.join(map(str, ended))} {have} "
        "ended; all processes are required; look at the log there, and start the job anew from "
        "what was saved.")
