"""Calls of C++ that take long: Ctrl-C ends the wait for them, and the process outlives them.

Python runs signal handlers in the main thread only, and not while that is in C++. So a helper waits
in its place, which costs 30 to 60 us; not where Python has no handler for Ctrl-C, as in a job that
a shell has put into the background. And a thread that comes back from C++ after Python has ended
ends the process by a signal. So the process waits for such calls, and threads that begin new ones
stop.
"""

import atexit
import logging
import os
import queue
import sys
import threading
import time
from _signal import SIGINT, getsignal  # pyright: ignore  # `signal`'s makes an enum: 3 us
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

T = TypeVar("T")
LOGGER = logging.getLogger("olympus")
#: The threads in C++, by a token of each call: the helpers, and daemons of users.
_inside: set[object] = set()
_parked: set[int] = set()       # the threads that are stopped, since the process ends
_ending: list[bool] = []
#: What makes all calls come to `check_ending`.
at_end: list[Callable[[], object]] = []
_SECONDS = 0.5          # for daemon threads to come to `check_ending`, at the end of the process
_LIBRARY = str(Path(threading.__file__).parent)     # Python's: threads rest there without harm


class _Helper:
    """A thread that makes calls of C++ for the main thread."""

    def __init__(self) -> None:
        self.calls: queue.SimpleQueue[Callable[[], object] | None] = queue.SimpleQueue()
        self.ended = threading.Lock()
        self.ended.acquire()
        self.results: list[object] = []
        self.failures: list[BaseException] = []
        threading.Thread(target=self.work, name="olympus-wait", daemon=True).start()

    def work(self) -> None:
        while (call := self.calls.get()) is not None:
            _inside.add(self)
            try:
                self.results.append(call())
            except BaseException as error:
                self.failures.append(error)
            finally:
                del call
                _inside.discard(self)
            self.ended.release()

    def run(self, call: Callable[[], Any]) -> Any:
        self.calls.put(call)
        self.ended.acquire()    # which a signal handler may raise from
        if self.failures:
            raise self.failures.pop()
        return self.results.pop()


_helpers: list[_Helper] = []    # at most one, which rests


def interruptible(call: Callable[[], T]) -> T:
    """Return the result of `call()`. Ctrl-C ends the wait, and the call goes on without it."""
    if threading.current_thread() is not threading.main_thread() or not callable(
            getsignal(SIGINT)):
        return to_the_end(call)
    try:
        helper = _helpers.pop()
    except IndexError:
        helper = _Helper()
    try:
        result = helper.run(call)
    except KeyboardInterrupt:
        helper.calls.put(None)      # it ends after this call
        raise
    except BaseException:
        _helpers[:] = [helper]
        raise
    _helpers[:] = [helper]
    return result


def to_the_end(call: Callable[[], T]) -> T:
    """Return what `call()` does, which the process waits for at its end."""
    token = object()
    _inside.add(token)
    try:
        return call()
    finally:
        _inside.discard(token)


def check_ending(name: str, place: Callable[[], str]) -> None:
    """Stop this thread if it is a daemon and the process ends; `place` is the line of the call."""
    if not _ending or threading.current_thread() is threading.main_thread():
        return
    thread = threading.current_thread()
    LOGGER.warning("%s: called in the daemon thread %r at %s while the process ends; the thread is "
                   "stopped there; end it before, and join it.", name, thread.name, place())
    _parked.add(thread.ident or 0)
    threading.Event().wait()


@atexit.register
def _end() -> None:
    """Wait until no other thread is in C++ or comes there."""
    _ending.append(True)
    for prepare in at_end:
        prepare()
    until = time.monotonic() + _SECONDS
    while _inside or (time.monotonic() < until and _may_be_inside()):
        time.sleep(0.005)


def _may_be_inside() -> bool:
    """Whether a daemon thread may be in C++: it is neither stopped nor in Python's library."""
    frames = sys._current_frames()
    for thread in threading.enumerate():
        frame = frames.get(thread.ident or 0)
        if (frame is None or not thread.daemon or thread.ident in _parked
                or thread.name.startswith("olympus-")):     # they are in `_inside`
            continue
        file = frame.f_code.co_filename
        if not file.startswith(_LIBRARY) or "site-packages" in file:
            return True
    return False


def _after_fork() -> None:
    """The child has no helper, and no other thread."""
    _helpers.clear()
    _inside.clear()


if hasattr(os, "register_at_fork"):     # not on Windows
    os.register_at_fork(after_in_child=_after_fork)
