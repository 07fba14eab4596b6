"""Python functions that compiled programs call, and the exceptions that they raise.

XLA turns an exception into the text of its own error. The exception itself is kept here until that
error arrives in Python, in whatever thread and call.
"""

import collections
import contextlib
import os
import queue
import threading
import weakref
from collections.abc import Callable, Sequence
from operator import attrgetter
from types import FunctionType
from typing import Any, NamedTuple

import numpy as np

from olympus._src.base.lib.executables import XlaRuntimeError
from olympus._src.base.lib.waiting import to_the_end

TextOfFailure = Callable[[type[Exception]], Callable[[Any], str]]
_failures: collections.deque[tuple[str, BaseException]] = collections.deque(maxlen=64)
_lock = threading.Lock()


class Transfers(NamedTuple):
    """How a program without calls of Python (of a TPU) reaches a function: by channels, one for
    each array that it sends and receives, whose dtypes and shapes are these."""

    sent: Sequence[tuple[np.dtype, tuple[int, ...]]]
    received: Sequence[tuple[np.dtype, tuple[int, ...]]]
    send_channels: Sequence[int]
    receive_channels: Sequence[int]


class HostFunction:
    """A function of NumPy arrays for a program to call; its exceptions are kept."""

    __slots__ = ("fun", "transfers", "__weakref__")

    def __init__(self, fun: Callable[..., object], transfers: Transfers | None = None) -> None:
        self.fun, self.transfers = fun, transfers

    def __call__(self, *arrays: object) -> object:
        try:
            return self.fun(*arrays)
        except BaseException as error:
            with _lock:
                _failures.append((f"{type(error).__name__}: {error}", error))
            raise


class WeakCall:
    """Calls a `HostFunction` as long as someone else has it.

    The garbage collector does not see an executable's references: with the function itself, one
    whose user reaches the executable again would never go.
    """

    __slots__ = ("ref", "transfers", "__weakref__")

    def __init__(self, function: HostFunction) -> None:
        self.ref, self.transfers = weakref.ref(function), function.transfers

    def __call__(self, *arrays: object) -> object:
        function = self.ref()
        if function is None:
            raise RuntimeError("a host function was called after the program that calls it ended")
        return function(*arrays)


_running: queue.Queue[tuple[Any, Any]] = queue.Queue()
_waiting: list[threading.Thread] = []


def keep_while_running(token: object, functions: object) -> None:
    """Keep the functions that a started program calls until it has ended."""
    with _lock:
        if not _waiting or not _waiting[0].is_alive():      # the first time, or after a fork
            _waiting[:] = [threading.Thread(target=_let_go, name="olympus-hosts", daemon=True)]
            _waiting[0].start()
    _running.put((token, functions))


def wait_for_hosts() -> None:
    """Wait until the programs that call the host have ended and nothing holds their functions."""
    _running.join()


def _let_go() -> None:
    while True:
        _wait_for_token(*_running.get())
        _running.task_done()


def _wait_for_token(token: Any, functions: object) -> None:
    with contextlib.suppress(Exception):    # a reader of the results gets the error
        to_the_end(token.block_until_ready)


def _begin_anew() -> None:
    """In a child process there is no thread that waits."""
    global _running
    _running = queue.Queue()
    _waiting.clear()


if hasattr(os, "register_at_fork"):     # not on Windows
    os.register_at_fork(after_in_child=_begin_anew)


def raised_by_host(error: Exception) -> BaseException:
    """The exception of the Python function that made a program fail with `error`, or `error`.

    It is a `runtime_error` of the function's own exception. What is no Exception (Ctrl-C,
    SystemExit) is raised as it is: `except Exception` must let it pass.
    """
    text = str(error)
    with _lock:
        for entry in reversed(_failures):
            if entry[0] in text:
                _failures.remove(entry)
                raised = entry[1]
                return runtime_error(raised) if isinstance(raised, Exception) else raised
    return _explain_collective(error) if "Gloo" in text else error


def set_explain_collective(explain: Callable[[Exception], Exception]) -> None:
    """Let `explain` choose the error raised where a collective of several processes failed."""
    global _explain_collective
    _explain_collective = explain


_explain_collective: Callable[[Exception], Exception] = lambda error: error


def set_text_of_failure(text: TextOfFailure) -> None:
    """Let `text(kind)` be the `str` of the error raised for an exception, of class `kind`, in a
    function of the host.
    """
    global _text_of_failure
    _text_of_failure = text


_text_of_failure: TextOfFailure = attrgetter("__str__")


def runtime_error(error: Exception) -> Exception:
    """The same exception; its class is also a class of errors at run time."""
    kind = type(error)
    if isinstance(error, XlaRuntimeError):
        return error
    bases = (XlaRuntimeError,) if issubclass(XlaRuntimeError, kind) else (kind, XlaRuntimeError)
    args = error.__reduce__()[1]
    try:
        both = type(kind.__name__, bases, {
            "__module__": kind.__module__, "__qualname__": kind.__qualname__,
            "__str__": _text_of_failure(kind), "__repr__": kind.__repr__,
            "__reduce__": lambda self: tuple(
                kind if part is type(self) else part for part in kind.__reduce__(self))})
        new = both.__new__(both, *args)
        new.args = error.args
        if not isinstance(kind.__init__, FunctionType):     # Python's own classes keep more in C
            kind.__init__(new, *args)
    except TypeError:       # a class that cannot be derived from, or whose objects have slots
        return error
    new.__dict__.update(error.__dict__)
    new.__cause__, new.__context__ = error.__cause__, error.__context__
    new.__suppress_context__ = error.__suppress_context__
    return new.with_traceback(error.__traceback__)
