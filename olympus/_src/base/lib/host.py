"""Python functions that compiled programs call, and the exceptions that they raise.

XLA turns an exception into the text of its own error. The exception itself is kept here until that
error arrives in Python, in whatever thread and call.
"""

import collections
import threading
from collections.abc import Callable
from typing import Any

_failures: collections.deque[tuple[str, Exception]] = collections.deque(maxlen=64)
_lock = threading.Lock()


class HostFunction:
    """A function of NumPy arrays for a program to call; its exceptions are kept."""

    __slots__ = ("fun",)

    def __init__(self, fun: Callable[..., Any]) -> None:
        self.fun = fun

    def __call__(self, *arrays: Any) -> Any:
        try:
            return self.fun(*arrays)
        except Exception as error:
            with _lock:
                _failures.append((f"{type(error).__name__}: {error}", error))
            raise


def raised_by_host(error: Exception) -> Exception:
    """The exception of the Python function that made a program fail with `error`, or `error`."""
    text = str(error)
    with _lock:
        for entry in reversed(_failures):
            if entry[0] in text:
                _failures.remove(entry)
                return entry[1]
    return error
