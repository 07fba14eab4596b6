"""Checks that a job's processes run the same programs and are alive.

XLA checks neither. If one process runs a different program, the others wait for ever or, worse, get
wrong numbers. If one has ended, XLA's error says only that a connection was closed.
"""

from __future__ import annotations

import contextlib
import re
import threading
import time
from collections.abc import Hashable, Sequence
from typing import TypeAlias

from ..base import lib
from ..base.config import enable_recoverability, program_agreement_timeout_seconds
from ..base.errors import OlympusRuntimeError
from ..base.typing import Device
from ..base.util import lazy_imports
from .state import current

with lazy_imports(__name__):       # with OpenSSL, sockets, JSON: a process alone needs none
    import hashlib
    from concurrent import futures

    from . import rollcall

LEFT = "olympus/left"       # the key under which a process tells the job's store that it has left

_MOMENT = 5.0       # seconds within which all processes see that a program on them failed
_START_ANEW = ("all processes are required; look at the log there, and start the job anew from "
               "what was saved")
# An executable's name: the digest of its module and of its compile options.
ModuleKey: TypeAlias = tuple[bytes, *tuple[Hashable, ...]]


def spans_processes(devices: Sequence[Device]) -> bool:
    """Whether a program on these devices runs in several processes of the job."""
    return current.client is not None and any(
        d.process_index != current.process_id for d in devices)


def watch_others() -> rollcall.Watch:
    """The other processes of the job, to see when they end."""
    others = [m for m in current.members if m.process_id != current.process_id]
    return rollcall.Watch(others, current.coordinator_address)


def check_same_program(name: str, key: ModuleKey | None, devices: Sequence[Device]) -> bool:
    """Wait, before the first run of a program, until all processes have come to it; returns True.

    OlympusRuntimeError if they come to different programs, or one ends or does not come in time: in
    each case it names the process.
    """
    timeout = program_agreement_timeout_seconds.value
    processes = sorted({d.process_index for d in devices})
    if current.client is None or current.process_id not in processes:
        return True
    if known := _known_failure():
        raise known
    if timeout == 0:
        return True
    ids = [d.id for d in devices]
    # Programs that call Python have no digest that two processes share: that each comes to one, and
    # to the same number of programs before it, is all that is compared.
    digest = "host-calls" if key is None else key[0].hex()
    ran = current.programs.setdefault(tuple(ids), set())
    if (name, digest) in ran:
        return True
    # Each process numbers the programs on these devices for itself: as long as all agree, a program
    # has the same number everywhere.
    ran.add((name, digest))
    group = hashlib.blake2b(repr(ids).encode(), digest_size=8).hexdigest()
    place = f"olympus/programs/{group}/{len(ran)}"
    what = (f"{name}: process {current.process_id} comes to it as program {len(ran)} on "
            f"{len(ids)} devices")
    remedy = ("all processes must run the same programs in the same order; look for what depends "
              "on the process (process_index, files, random numbers, the order of sets)")
    first = processes[0]
    if current.process_id == first:     # before the barrier, so that the others can read it after
        current.client.key_value_set(place, f"{digest} {name}")
    try:
        ended = _meet(place, timeout, processes)
    except OlympusRuntimeError as error:
        raise OlympusRuntimeError(
            f"{what}, {_absent(error)} not within {timeout} seconds; {remedy}, or raise "
            "program_agreement_timeout_seconds.") from None
    if ended:
        raise _failure(f"{what}, but {_have_ended(ended)}; {_START_ANEW}.")
    if current.process_id != first:
        theirs, _, their_name = current.client.blocking_key_value_get(place, 60_000).partition(" ")
        if theirs != digest:
            other = (f"{name}, too, but with other operations, shapes or constants"
                     if name == their_name else their_name)
            raise OlympusRuntimeError(f"{what}, {current.members[first]} to {other}; {remedy}.")
    return True


def _meet(place: str, timeout: int, processes: Sequence[int]) -> list[rollcall.Member]:
    """Wait at a barrier until all of these processes are there, or some of them have ended.

    The barrier itself does not see that they have: a thread waits there.
    """
    client, met = current.client, futures.Future()

    def wait() -> None:
        try:
            met.set_result(client.wait_at_barrier(place, timeout * 1000, processes))
        except OlympusRuntimeError as error:
            met.set_exception(error)

    thread = threading.Thread(target=wait, name="olympus-barrier", daemon=True)
    thread.start()
    # Usually all come within a second; watching takes a connection to each of them.
    with contextlib.suppress(TimeoutError):
        met.result(1.0)
        return []
    with watch_others() as watch:
        while not met.done():
            ended = [m for m in watch.look(0.1) if m.process_id in processes]
            # A process that has met the others may end before this one looks.
            if ended and not met.done():
                # A barrier cannot be left: `shutdown` joins the thread once the client has gone.
                current.left_waiting.append(thread)
                return ended
    met.result()
    return []


def _absent(error: Exception) -> str:
    """The processes that a barrier waited for in vain, as the coordinator's error lists them."""
    listed = re.search(r"timed out task names:\n((?:\d+\n?)+)|[Tt]ask:? (\d+)", str(error))
    if listed is None:
        return "others"
    return ", ".join(str(current.members[int(n)]) for n in (listed[1] or listed[2]).split())


def _have_ended(members: Sequence[rollcall.Member]) -> str:
    return f"{', '.join(map(str, members))} {'has' if len(members) == 1 else 'have'} ended"


def _known_failure() -> RuntimeError | None:
    """The error of all programs on several processes once one has failed."""
    if current.failures and not enable_recoverability.value:
        return OlympusRuntimeError(current.failures[0])
    return None


def _failure(text: str) -> RuntimeError:
    current.failures.append(text)
    return OlympusRuntimeError(text)


def explain_collective(error: Exception) -> Exception:
    """The error for a failed collective: it names the process that has ended or took no part."""
    if current.client is None:      # it has left the job
        return error
    if known := _known_failure():
        return known
    first = str(error).splitlines()[0]
    why = _why(first)
    lib.disconnect_collectives(current.client)      # others may wait for this process
    return _failure(f"a program on several processes failed: {why}. ({first})")


def _why(error: str) -> str:
    """Which process made a collective fail.

    Each process leaves a sign when one failed there: the seconds that it waited, then its finding.
    A process that ended without a sign failed first; one that lives without a sign takes no part.
    """
    # By the number of failures before, so that signs of an earlier one are not read again.
    client, place = current.client, f"olympus/failed/{len(current.failures)}"
    sign = f"{place}/{current.process_id}"
    waited = re.search(r"imed out waiting (\d+)ms", error)
    client.key_value_set(sign, str(int(waited[1]) // 1000 if waited else 0),
                         allow_overwrite=True)
    answers, ended = {}, []
    with watch_others() as watch:
        end = time.monotonic() + _MOMENT
        while not ended and len(answers) < len(current.members) and time.monotonic() < end:
            gone = list(watch.look(0.05))   # before the signs are read: one who left a sign left it
            answers = {int(key.rpartition("/")[2]): text
                       for key, text in client.key_value_dir_get(place)}
            if reason := next((t for t in answers.values() if not t.isdigit()), None):
                return reason
            left = {key.rpartition("/")[2] for key, _ in client.key_value_dir_get(LEFT)}
            ended = [m for m in current.members if m.process_id not in answers and (
                m in gone or str(m.process_id) in left)]
        silent = [m for m in current.members if m.process_id not in answers]
        # All answers are numbers here: a text, another process's reason, was returned above.
        seconds = max(map(int, answers.values()))
        if ended:
            reason = f"{_have_ended(ended)}; {_START_ANEW}"
        elif silent and seconds:
            reason = _took_no_part(silent, watch.unanswered, seconds)
        else:
            reason = (f"all {len(current.members)} of the job live; look at the logs of the others "
                      "and at the network")
    client.key_value_set(sign, reason, allow_overwrite=True)
    return reason


def _took_no_part(silent: Sequence[rollcall.Member], unanswered: Sequence[rollcall.Member],
                  seconds: int) -> str:
    """The text of the error: one or more of these processes did not come to a program."""
    names = ", ".join(f"{m}{' (whose host does not answer)' * (m in unanswered)}" for m in silent)
    who = f"{names} has" if len(silent) == 1 else f"of {names} one or more have"
    return (f"{who} not ended, but not come to it within {seconds} seconds; all processes are "
            "required to run the same programs; look at the log there for an early end or an error "
            "that was caught, end all and start the job anew; where it works for longer between "
            "two programs, raise olympus_cpu_collectives_timeout_seconds")
