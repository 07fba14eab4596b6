"""Faults at the k-th operation, for every k: what SQLite calls anomaly tests.

    for found in anomaly.sweep(lambda fault: anomaly.files(folder, fault), prepare, call):
        ...     # once for each kind of fault and each operation of `call`: what holds now?

`files` counts what Python does to the files of a folder, and `calls` the calls of functions.
"""

from __future__ import annotations

import builtins
import contextlib
import errno
import gc
import io
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import pytest

from olympus._src.base import config
from olympus._src.core.trace import TRACING, ctx
from olympus._src.custom import rules as custom_rules
from olympus._src.types.mesh import mesh_of_types


class Killed(BaseException):
    """The process ends here: whatever handlers do from now on to the files has no effect."""


class Kind(NamedTuple):
    """A kind of fault: what is raised, whether after the operation, and whether for ever."""

    name: str
    error: Callable[[], BaseException]
    after: bool = False
    stays: bool = False


FULL = Kind("full", lambda: OSError(errno.ENOSPC, "No space left on device"))
GONE = Kind("gone", lambda: OSError(errno.EIO, "Input/output error"), stays=True)
INTERRUPTED = Kind("interrupted", KeyboardInterrupt)
INTERRUPTED_AFTER = Kind("interrupted after", KeyboardInterrupt, after=True)
KILLED = Kind("killed", Killed, stays=True)
OF_FILES = (FULL, GONE, INTERRUPTED, INTERRUPTED_AFTER, KILLED)


class Fault:
    """Counts operations, in all threads; that of number `at` fails."""

    def __init__(self, kind: Kind, at: int) -> None:
        self.kind, self.at = kind, at
        self.count, self.where = 0, ""
        self.raised: list[BaseException] = []
        self._lock = threading.Lock()

    def fails(self, name: str) -> bool:
        """Count an operation; whether it fails."""
        with self._lock:
            self.count += 1
            if self.count == self.at:
                self.where = name
            return self.count == self.at or self.kind.stays and self.count > self.at

    def error(self) -> BaseException:
        error = self.kind.error()
        self.raised.append(error)
        return error

    def on(self, name: str, call: Callable[..., Any], counts: Callable[..., bool] | None = None
           ) -> Callable[..., Any]:
        """`call`, as an operation where `counts` says so of its arguments."""
        def counted(*args: Any, **kwargs: Any) -> Any:
            fails = (counts is None or counts(*args, **kwargs)) and self.fails(name)
            if fails and not self.kind.after:
                raise self.error()
            result = call(*args, **kwargs)
            if not fails:
                return result
            if hasattr(result, "close"):    # as the collector does, without its warning
                result.close()
            raise self.error()

        return counted


class _Writing(io.FileIO):
    """A file opened for writing; a write that fails has written half."""

    fault: Fault
    full = False

    def write(self, data: Any) -> int:
        dead = self.fault.kind.stays and self.fault.raised
        if self.full or dead:
            raise self.fault.error()
        if self.fault.fails("write") and not self.fault.kind.after:
            self.full = True    # the buffer above asks again for the rest
            return super().write(bytes(data)[:len(data) // 2])
        return super().write(data)


# What changes a folder, or looks into it; `open` is below.
_OPERATIONS = ("fsync", "link", "listdir", "mkdir", "open", "remove", "rename", "replace", "rmdir",
               "scandir", "symlink", "truncate", "unlink", "utime")


@contextlib.contextmanager
def files(folder: str | os.PathLike[str], fault: Fault) -> Iterator[None]:
    """Count what Python does to the files below a folder."""
    root, plain_open = os.path.realpath(folder), io.open

    def below(path: Any = ".", *args: Any, dir_fd: int | None = None, **kwargs: Any) -> bool:
        return isinstance(path, int) or dir_fd is not None or (
            os.path.realpath(os.fsdecode(path)).startswith(root))

    def opened(path: Any, mode: str = "r", buffering: int = -1, encoding: str | None = None,
               errors: str | None = None, newline: str | None = None, closefd: bool = True,
               opener: Any = None) -> Any:
        if isinstance(path, int) or not below(path) or set(mode) <= set("rbt"):
            found = plain_open if isinstance(path, int) else fault.on("open", plain_open, below)
            return found(path, mode, buffering, encoding, errors, newline, closefd, opener)
        raw = fault.on("create", _Writing)(path, mode.replace("b", "").replace("t", ""), closefd,
                                           opener)
        raw.fault = fault
        buffered = (io.BufferedRandom if "+" in mode else io.BufferedWriter)(raw)
        return buffered if "b" in mode else io.TextIOWrapper(buffered, encoding, errors, newline)

    with pytest.MonkeyPatch.context() as patch:
        for name in _OPERATIONS:
            patch.setattr(os, name, fault.on(name, getattr(os, name), below))
        patch.setattr(io, "open", opened)
        patch.setattr(builtins, "open", opened)
        yield


@contextlib.contextmanager
def calls(places: Sequence[tuple[Any, str]], fault: Fault) -> Iterator[None]:
    """Count the calls of functions, each given as what it is an attribute of, and its name."""
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in places:
            patch.setattr(owner, name, fault.on(name, getattr(owner, name)))
        yield


class Found(NamedTuple):
    """What a call did under a fault: it returned, or raised."""

    kind: Kind
    where: str
    result: Any
    error: BaseException | None

    def check(self, *documented: type[BaseException]) -> None:
        """It returned, or raised the fault itself, or what is documented, and nothing else."""
        faults = () if self.error is None else (type(self.kind.error()), *documented)
        assert self.error is None or isinstance(self.error, faults), self


def sweep(seam: Callable[[Fault], AbstractContextManager[Any]], prepare: Callable[[], Any],
          call: Callable[[], Any], kinds: Sequence[Kind] = OF_FILES) -> Iterator[Found]:
    """Of each kind of fault, at each operation of `call` in turn: what the call did.

    `prepare` runs before each. AssertionError where `call` has no operation.
    """
    for kind in kinds:
        for at in itertools.count(1):
            prepare()
            fault, result, error = Fault(kind, at), None, None
            with seam(fault):
                try:
                    result = call()
                except BaseException as raised:
                    if not fault.where:
                        raise
                    error = raised
            if not fault.where:
                assert at > 1, "the call does nothing that the seam counts"
                break
            yield Found(kind, f"{fault.where}, operation {at}", result, error)


def state() -> dict[str, Any]:
    """What a thread must find after a call as it was before."""
    return {"trace": ctx.trace, "axes": dict(ctx.axes), "depth": ctx.depth, "scope": ctx.scope,
            "tracing": TRACING.value, "collecting": gc.isenabled(),
            "rules": custom_rules._in_progress.frames, "mesh": mesh_of_types.value,
            **{name: option.value for name, option in config._options.items()}}
