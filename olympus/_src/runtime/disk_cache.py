"""Executables that outlive the process: a directory of entries, each in a file of its own.

    <name>-<key>-cache      an entry: magic, digest (of its key, too), milliseconds that it took,
                            executable, packed
    jaxlib-<stat>-cache     another: digest of jaxlib's libraries, by their paths, times and sizes
    .<key>.<writer>.new     an entry being written; renamed when it is whole
    .lock                   held while entries are written or deleted; has the sum of their bytes

Readers take no lock: an entry is whole or is not there. A thread writes new
programs. A fault is a warning at most, and silent if the user named no directory; the program is
then compiled.
"""

from __future__ import annotations

import atexit
import base64
import contextlib
import errno
import functools
import hashlib
import os
import platform
import re
import stat
import struct
import sys
import threading
import time
import zlib
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Sequence
from pathlib import Path
from typing import IO, NamedTuple

from ...version import __version__
from ..base import config, lib, monitoring, source
from ..base.config import Option
from ..base.logs import LOGGER
from ..base.typing import Device
from ..base.util import module_name

try:
    import fcntl
except ImportError:     # Windows
    fcntl = None

Client = lib.Client
LoadedExecutable = lib.LoadedExecutable
_MAGIC = b"olympus\x02"
_HEAD = struct.Struct("<8s32sI")
_SUFFIX = "-cache"
_LOCK_SECONDS = 10      # for which a process waits for another process's lock
_STALE_SECONDS = 600    # the writer of an older unfinished file is dead
_LOOK_SECONDS = 86400   # after which a process looks for such files
_MOST_WAITING = 64 << 20    # bytes to be written; beyond that, programs are left out
_END_SECONDS = 10       # for which a process waits for them at its end
_warned: set[Hashable] = set()        # faults with a warning: each warns once
_verified: set[str] = set()     # keys compiled once under `compilation_cache_check_contents`
_locks: set[IO[bytes]] = set()      # held by this process
_METADATA = re.compile(r", metadata=\{[^}]*\}")
# Flags that have XLA write files beside the program.
_DUMP = "--xla_dump"
_IDLE_FLAGS = (_DUMP, "--xla_force_host_platform_device_count", "--xla_gpu_cuda_data_dir")


class Entry(NamedTuple):
    """An entry in the list of a directory."""

    used: int       # when it was last read or written, in nanoseconds since 1970
    key: str
    bytes: int


class Directory:
    """A directory of entries by key.

    Args:
      path: where; it is made when it is first written to.
      most: the bytes that all entries may take; -1 is no limit.
      least: the bytes that an entry must take to be written.
      named: whether the user named it. Without a name, faults of the directory raise no warning.
    """

    def __init__(self, path: str, most: int = -1, least: int = 0, named: bool = True) -> None:
        self.path, self.most, self.least, self.named = Path(path), most, least, named

    def get(self, key: str) -> tuple[bytes, float] | None:
        """The stored bytes, and the seconds that compiling took; None if there is no entry.

        ValueError for an entry that is not as it was written; it is deleted.
        """
        path = self._entry(key)
        try:
            with open(path, "rb", opener=_no_waiting) as file:
                status = os.fstat(file.fileno())
                # Others may put a directory in this place, but cannot make files of our user.
                if not _is_ours(status):
                    raise PermissionError(f"{path} belongs to another user")
                regular = stat.S_ISREG(status.st_mode)
                packed = file.read() if regular else b""
        except FileNotFoundError:
            return None
        try:
            if not regular:
                raise ValueError("it is no regular file")
            magic, digest, took = _HEAD.unpack_from(packed)
            if magic != _MAGIC or digest != _digest(key, took, packed[_HEAD.size:]):
                raise ValueError("its checksum is wrong")
            data = zlib.decompress(packed[_HEAD.size:])
        except (struct.error, zlib.error, ValueError) as error:
            self.drop(key)
            raise ValueError(f"{path} is damaged ({error}); it is deleted") from None
        with contextlib.suppress(OSError):      # without permission to write, the time of use stays
            os.utime(path)
        return data, took / 1000

    def put(self, key: str, data: bytes, seconds: float) -> tuple[int, str]:
        """Write an entry, unless it is there; return its bytes, and why it is not written.

        ValueError for one that is larger than all entries may be.
        """
        # A sixth of the bytes; level 6 takes three times as long, for an eighth.
        packed, took = zlib.compress(data, 1), min(int(seconds * 1000), 2**32 - 1)
        entry = _HEAD.pack(_MAGIC, _digest(key, took, packed), took) + packed
        if len(entry) < self.least:
            return len(entry), f"less than threshold ({self.least} bytes)"
        if 0 <= self.most < len(entry):
            raise ValueError(f"Cache value for key {key!r} of size {len(entry)} bytes exceeds the "
                             f"maximum cache size of {self.most} bytes")
        self.make()
        with self._locked() as lock:
            path = self._entry(key)
            if not path.exists():       # another process may have compiled it meanwhile
                self._count(lock, len(entry))
                self._write(path, entry)
        return len(entry), ""

    def make(self) -> None:
        """Make the directory and its parent, private to the owner; a named one with all parents."""
        for path in (self.path.parent, self.path):
            path.mkdir(mode=0o700, parents=self.named, exist_ok=True)

    def entries(self) -> list[Entry]:
        """All entries, the one that was used longest ago first."""
        return sorted(Entry(status.st_mtime_ns, name.removesuffix(_SUFFIX), status.st_size)
                      for name, status in self._files() if name.endswith(_SUFFIX))

    def prune(self) -> None:
        """Delete remains of dead writers and, beyond the bound, the entries used longest ago."""
        with self._locked() as lock:
            _note(lock, self._make_room(0), int(time.time()))

    def key(self, name: str, digest: str, client: Client, devices: Sequence[Device]) -> str:
        """The key of a program: its name and digest, and all else that its code depends on.

        That is jaxlib's libraries, devices, the CPU's features and the flags of XLA.
        """
        flags = [flag for flag in _flags() if not flag.startswith(_IDLE_FLAGS)]
        # XLA:CPU compiles for this CPU, and machines of several kinds may share a directory.
        cpu = _cpu_features() if client.platform == "cpu" else ""
        environment = (
            _MAGIC, __version__, lib.jaxlib_version, _libraries(str(self.path)), sys.platform,
            platform.machine(), cpu, client.platform, client.platform_version, flags,
            [(d.process_index, d.id, d.device_kind) for d in devices])
        return f"{entry_name(name)}-{stable_digest(digest, environment)}"

    def drop(self, key: str) -> None:
        """Delete a useless entry."""
        with contextlib.suppress(OSError):
            self._entry(key).unlink()

    def refusal(self) -> str:
        """Why another user might have written the entries here; "" if none can have."""
        if os.name != "posix":
            return ""
        with contextlib.suppress(OSError):      # a use raises the error
            place = self._place()
            status, link = place.stat(), place.lstat()
            owner = next((s.st_uid for s in (status, link) if not _is_ours(s)), None)
            if owner is not None:
                return (f"belongs to the user with number {owner}; one that belongs to this "
                        f"process's user, {os.geteuid()}, or to root is required; name a directory "
                        "that does not exist yet, it is made")
            if place is self.path and status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return (f"has the mode {stat.filemode(status.st_mode)}; one that only its owner "
                        "can write to is required; if nobody else wrote to it so far, "
                        f"`chmod go-w {self.path.resolve()}`, else name another directory")
        return ""

    def _place(self) -> Path:
        """The directory; while it does not exist and nobody named it, the folder to make it in.

        Under `sudo`, root may have a user's home, and would make a directory that the user cannot
        change.
        """
        around = () if self.named else (self.path.parent, self.path.parent.parent)
        return next((path for path in (self.path, *around) if path.exists()), self.path)

    def others(self, name: str) -> str:
        """The explanation for a program that was not found."""
        count = sum(1 for _ in self.path.glob(f"{name}-*{_SUFFIX}"))
        return (f"; {count} entries of that name are of other programs, types, compiler options, "
                "devices or builds" if count else "; there is no entry of that name")

    def _entry(self, key: str) -> Path:
        return self.path / (key + _SUFFIX)

    def _write(self, path: Path, data: bytes) -> None:
        """Write a whole file or nothing, whatever ends the process."""
        writer = f"{os.getpid()}-{threading.get_ident()}"
        new = self.path / f".{path.name}.{writer}.new"
        try:
            new.write_bytes(data)
            new.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                new.unlink()
            raise

    @contextlib.contextmanager
    def _locked(self) -> Iterator[IO[bytes] | None]:
        """A block in which no other process writes here; gives the lock, None without locks."""
        with open(self.path / ".lock", "r+b", buffering=0, opener=_open_or_make) as lock:
            if not stat.S_ISREG(os.fstat(lock.fileno()).st_mode):
                raise OSError(errno.EINVAL, "it is no regular file", lock.name)
            _locks.add(lock)    # a forked child has it open, too, and must close it
            try:
                yield lock if _acquire(lock) else None
            finally:
                _locks.discard(lock)

    def _count(self, lock: IO[bytes] | None, size: int) -> None:
        """Before an entry of `size` bytes is written, make room and add them to the lock's sum.

        To look at all entries for each new one would cost the square of their number. So the lock
        has an upper bound of their bytes; entries are listed when it is too large, or old.
        """
        (total, looked), now = _noted(lock), int(time.time())
        if not 0 <= now - looked < _LOOK_SECONDS or 0 <= self.most < total + size:
            total, looked = self._make_room(size), now
        _note(lock, total + size, looked)

    def _make_room(self, size: int) -> int:
        """Delete files whose writer is gone and, if `size` bytes more are beyond the bound, the
        entries used longest ago; return the bytes of the entries that stay.

        A sixteenth of the bound is freed beforehand.
        """
        now, entries = time.time(), []
        for name, status in self._files():
            if name.endswith(_SUFFIX):
                entries.append((status.st_mtime_ns, name, status.st_size))
            elif name.endswith(".new") and now - status.st_mtime > _STALE_SECONDS:
                (self.path / name).unlink(missing_ok=True)
        total = sum(bytes_ for _, _, bytes_ in entries)
        if 0 <= self.most < total + size:
            for _, name, bytes_ in sorted(entries):
                if total + size <= self.most - self.most // 16:
                    break
                (self.path / name).unlink(missing_ok=True)
                total -= bytes_
        return total

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        with os.scandir(self.path) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    yield file.name, file.stat(follow_symlinks=False)


def _open_or_make(path: str, flags: int) -> int:
    return _no_waiting(path, flags | os.O_CREAT)


def _no_waiting(path: str, flags: int) -> int:
    """Open a file without waiting: a pipe in its place would open once another process writes."""
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0), 0o600)


def _acquire(lock: IO[bytes]) -> bool:
    """Take the lock, or return False on a system without locks: renames alone keep files whole."""
    if fcntl is None:
        return False
    deadline = time.monotonic() + _LOCK_SECONDS
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return True
        except OSError as error:
            if error.errno not in (errno.EAGAIN, errno.EACCES):     # a file system without locks
                return False
            if time.monotonic() > deadline:
                raise TimeoutError(f"{lock.name} has been held for {_LOCK_SECONDS} s by "
                                   "another process") from None
        time.sleep(0.01)


def _noted(lock: IO[bytes] | None) -> tuple[int, int]:
    """The lock's bound of the entries' bytes, and when all were last listed; (0, 0) if unknown."""
    if lock is not None:
        lock.seek(0)
        with contextlib.suppress(ValueError):
            total, looked = map(int, lock.read(41).split())
            return total, looked
    return 0, 0


def _note(lock: IO[bytes] | None, total: int, looked: int) -> None:
    if lock is not None:
        lock.seek(0)
        lock.write(b"%20d %20d" % (total, looked))      # over an older one; truncating is slow


def _is_ours(status: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process, or to root, who is trusted."""
    return os.name != "posix" or status.st_uid in (os.geteuid(), 0)


def _digest(key: str, took: int, packed: bytes) -> bytes:
    """The checksum of an entry and its key, so that no entry is taken for another."""
    digest = hashlib.blake2b(packed, digest_size=32, salt=took.to_bytes(4, "little"))
    digest.update(key.encode())
    return digest.digest()


def stable_digest(*parts: object) -> str:
    """A digest of texts, bytes and numbers, the same in every process."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=20).hexdigest()


def entry_name(name: str) -> str:
    """The prefix of the files of a function's programs: the name of its module."""
    return module_name(name)[:80]


def _flags() -> list[str]:
    """The flags of XLA from the environment, which may name a file of them."""
    text = os.environ.get("XLA_FLAGS", "").strip()
    # The file's contents count: its name stays when flags change.
    if text and not text.startswith("-"):
        with contextlib.suppress(OSError):
            text = Path(text).read_text()
    return f"{text} {os.environ.get('LIBTPU_INIT_ARGS', '')}".split()


@functools.cache
def _cpu_features() -> str:
    """The features of this CPU that the compiler may have used."""
    with contextlib.suppress(OSError), open("/proc/cpuinfo") as lines:
        for line in lines:
            name, _, words = line.partition(":")
            if name.strip() in ("flags", "Features"):
                return " ".join(sorted(words.split()))
    return platform.processor()


@functools.cache
def _libraries(path: str) -> str:
    """A digest of jaxlib's libraries, which a release may have in several builds."""
    paths = lib.libraries()
    stats = [(str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in paths]
    # The directory keeps the digest by times and sizes, so that later processes read no library.
    directory, key = Directory(path, named=False), f"jaxlib-{stable_digest(stats)}"
    with contextlib.suppress(OSError, ValueError):
        entry = directory.get(key)
        if entry is not None:
            return entry[0].decode("ascii")
    digest = stable_digest(_contents(paths))
    data = digest.encode()
    _write_in_thread(directory, key, len(data), lambda: directory.put(key, data, 0.0))
    return digest


def _contents(paths: Sequence[Path]) -> list[str]:
    """SHA-256 of files of a package, from its RECORD.

    Files newer than RECORD are read in its place; to read all of jaxlib takes 0.2 s.
    """
    noted, written = {}, -1
    record = paths[0].parent.parent / f"jaxlib-{lib.jaxlib_version}.dist-info" / "RECORD"
    with contextlib.suppress(OSError, ValueError):
        noted = {name: (digest, size) for name, digest, size in (
            line.rsplit(",", 2) for line in record.read_text().splitlines())}
        written = record.stat().st_mtime_ns
    digests = []
    for path in paths:
        status = path.stat()
        digest, size = noted.get(f"{path.parent.name}/{path.name}", ("", ""))
        if not digest.startswith("sha256=") or size != str(status.st_size) or (
                status.st_mtime_ns > written):
            with open(path, "rb") as file:
                whole = hashlib.file_digest(file, "sha256").digest()
            digest = "sha256=" + base64.urlsafe_b64encode(whole).decode().rstrip("=")
        digests.append(digest)
    return digests


def current(asked: bool = False) -> Directory | None:
    """The directory that the options name, the user's own if they name none; None where the cache
    is off, or other users can write there. Who named the directory, or asked for it, is warned.
    """
    path = config.compilation_cache_dir.value
    most = config.compilation_cache_max_size.value
    named = path != config.compilation_cache_dir.default
    if not path or not most or not config.enable_compilation_cache.value or (
            not named and any(flag.startswith(_DUMP) for flag in _flags())):
        return None     # users who let XLA dump its passes want it to compile
    directory = _directory(path, most, config.persistent_cache_min_entry_size_bytes.value, named)
    why = directory.refusal()
    if not why:
        return directory
    text = (f"compilation cache: the directory {path} {why}. Who can write there can run code in "
            "this process; it is not used.")
    if config.raise_persistent_cache_errors.value:
        raise PermissionError(text)
    if text not in _warned and (directory.named or asked):
        _warned.add(text)
        source.warn(text)
    return None


@functools.lru_cache(8)
def _directory(path: str, most: int, least: int, named: bool) -> Directory:
    return Directory(path, most, least, named)


# The thread that writes ---------------------------------------------------------------------------

class _Writer:
    """Entries to write, a thread that ends when all are written, and the faults that it met."""

    def __init__(self) -> None:
        self.faults: deque[tuple[Directory, str, BaseException]] = deque(maxlen=64)
        self._calls: deque[tuple[Directory, str, int, Callable[[], object]]] = deque()
        self._bytes = 0
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def add(self, directory: Directory, name: str, size: int, call: Callable[[], object]) -> None:
        """Queue a call that writes so many bytes, unless too many bytes wait."""
        with self._lock:
            # A first entry of any size is taken; others only while few bytes wait.
            if self._bytes and self._bytes + size > _MOST_WAITING:
                return
            self._calls.append((directory, name, size, call))
            self._bytes += size
            if self._thread is None:
                # A daemon thread: a process that ends waits for it only in `flush`, a bounded time.
                thread = threading.Thread(target=self._run, name="olympus-cache", daemon=True)
                try:
                    thread.start()
                except RuntimeError:        # the process has too many threads, or ends
                    self._drop()
                else:
                    self._thread = thread

    def _run(self) -> None:
        while True:
            # Under the lock, so that `add` either finds this thread running or starts another.
            with self._lock:
                if not self._calls:
                    self._thread = None
                    return
                directory, name, size, call = self._calls.popleft()
            try:
                call()
            except BaseException as error:      # the next entries are still written
                self.faults.append((directory, name, error))
            with self._lock:
                self._bytes -= size

    def _drop(self) -> None:
        self._bytes -= sum(size for _, _, size, _ in self._calls)
        self._calls.clear()

    def wait(self, seconds: float) -> None:
        """Wait until all is written; give up an entry that takes too long."""
        thread = self._thread
        if thread is not None:
            thread.join(seconds)
            with self._lock:
                self._drop()


_writer = _Writer()


def _write_in_thread(directory: Directory, name: str, size: int,
                     call: Callable[[], object]) -> None:
    """Write in the thread, or at once where the user wants faults as exceptions."""
    if config.raise_persistent_cache_errors.value:
        call()
    else:
        _writer.add(directory, name, size, call)


def _tell_faults() -> None:
    """Warn in the caller's thread of the faults that the writing thread met."""
    while _writer.faults:
        directory, name, error = _writer.faults.popleft()
        warn_or_raise(directory, "writing", name, error)


def flush() -> None:
    """Wait, for some seconds at most, until compiled programs are written; warn of faults."""
    _writer.wait(_END_SECONDS)
    _tell_faults()


@atexit.register
def _at_exit() -> None:
    with contextlib.suppress(KeyboardInterrupt):    # by an interrupt, entries are lost
        flush()


def _after_fork() -> None:
    """In a forked child: forget the thread and its locks, which only the parent has."""
    global _writer
    _writer = _Writer()
    while _locks:
        _locks.pop().close()


if hasattr(os, "register_at_fork"):     # not on Windows
    os.register_at_fork(after_in_child=_after_fork)


# Programs -----------------------------------------------------------------------------------------

def warn_or_raise(directory: Directory, doing: str, name: str, error: BaseException) -> None:
    """Warn once for each kind of fault in reading or writing; raise it if the option says so."""
    if config.raise_persistent_cache_errors.value:
        raise error
    if not directory.named:
        LOGGER.debug("compilation cache: %s %s: %r", doing, name, error)
        return
    # A damaged entry is a fault of its own; a full disk is one fault for all programs.
    fault = (doing, type(error), getattr(error, "errno", None) or str(error))
    if fault not in _warned:
        _warned.add(fault)
        source.warn(f"Error {doing} persistent compilation cache entry for '{name}': "
                    f"{type(error).__name__}: {error}")


def load_or_compile(function: str, digest: str, client: Client, devices: Sequence[Device],
                    compile_now: Callable[[], LoadedExecutable],
                    hosts: Sequence[Callable[..., object]] = ()
                    ) -> tuple[LoadedExecutable, bytes | None]:
    """(the executable of a module, from the directory or compiled and written to it; the bytes
    that it was read from, or None).

    Args:
      function: the user's, by name.
      digest: of the module and the options that it is compiled with.
      compile_now: makes the executable.
      hosts: the functions of this process that it is to call, in the order of their places.
    """
    directory = current()
    # Processes of a job may compile together: where nobody asks, all do.
    if directory is None or not directory.named and len({d.process_index for d in devices}) > 1:
        return compile_now(), None
    _tell_faults()
    key, stored, loaded, name, start = "", None, None, entry_name(function), time.monotonic()
    monitoring.record_event("/olympus/compilation_cache/compile_requests_use_cache")
    try:
        key = directory.key(function, digest, client, devices)
        stored = directory.get(key)
        if stored is not None and not (
                config.compilation_cache_check_contents.value and key not in _verified):
            loaded = lib.deserialize_executable(client, stored[0], devices, host_callbacks=hosts)
    except Exception as error:
        if stored is not None:       # it would fail in the next process, too
            directory.drop(key)
            stored = None
        warn_or_raise(directory, "reading", name, error)
    if stored is not None and loaded is not None:
        LOGGER.log(_level(config.log_compiles), "Persistent compilation cache hit for '%s' "
                   "with key %r; it saved %.3f sec", name, key, stored[1])
        _record_hit(stored[1], time.monotonic() - start)
        return loaded, stored[0]
    monitoring.record_event("/olympus/compilation_cache/cache_misses")
    LOGGER.log(_level(config.explain_cache_misses),
               "PERSISTENT COMPILATION CACHE MISS for '%s' with key %r%s", name, key,
               directory.others(name) if config.explain_cache_misses.value else "")
    start = time.monotonic()
    xla = compile_now()
    took = time.monotonic() - start
    if key:
        try:
            _keep(directory, key, name, xla, took, stored, hosts)
        except Exception as error:
            warn_or_raise(directory, "writing", name, error)
    return xla, None


def _record_hit(saved: float, took: float) -> None:
    """Tell listeners that a program was read, and how long compiling it had taken."""
    path = "/olympus/compilation_cache/"
    monitoring.record_event(path + "cache_hits")
    monitoring.record_event_duration_secs(path + "compile_time_saved_sec", saved - took)
    monitoring.record_event_duration_secs(path + "cache_retrieval_time_sec", took)


def _keep(directory: Directory, key: str, name: str, xla: LoadedExecutable, took: float,
          entry: tuple[bytes, float] | None, hosts: Sequence[Callable[..., object]]) -> None:
    """Write a compiled program, if that is worth it; compare it with the file."""
    level, least = _level(config.explain_cache_misses), (
        config.persistent_cache_min_compile_time_secs.value)
    _verified.add(key)
    if entry is not None:
        loaded = lib.deserialize_executable(xla.client, entry[0], xla.local_devices(),
                                            host_callbacks=hosts)
        if _instructions(loaded) != _instructions(xla):
            raise RuntimeError(f"entry {key} holds another program than the one compiled "
                               "now; delete the directory")
    elif took < least:
        LOGGER.log(level, "Not writing persistent cache entry for '%s' because it took < %.2f "
                   "seconds to compile (%.2fs)", name, least, took)
    else:
        # Not in the thread: it holds the GIL anyway, and XLA cannot serialize a sort that has run.
        data = lib.serialize_executable(xla)
        _write_in_thread(directory, name, len(data),
                         lambda: _put_and_log(directory, key, name, data, took, level))


def _put_and_log(directory: Directory, key: str, name: str, data: bytes, took: float,
                 level: int) -> None:
    size, why = directory.put(key, data, took)
    if why:
        LOGGER.log(level, "Not writing persistent cache entry for '%s' with key %r since its "
                   "size (%d bytes) is %s", name, key, size, why)
    else:
        LOGGER.log(level, "Writing '%s' to persistent compilation cache with key %r (%d bytes)",
                   name, key, size)


def explain(function: str, why: str) -> None:
    """Log why a program is not written, if the option asks for it."""
    if current() is not None:
        LOGGER.log(_level(config.explain_cache_misses), "Not writing persistent cache entry for "
                   "'%s' because %s", entry_name(function), why)


def _instructions(xla: LoadedExecutable) -> list[str]:
    """The optimised instructions of an executable, without their sources."""
    text = lib.hlo_text(xla) or ""
    return [_METADATA.sub("", line) for line in text.splitlines() if " = " in line]


def _level(option: Option) -> int:
    return 30 if option.value else 10       # WARNING or DEBUG


# Public functions --------------------------------------------------------------------------------

def set_cache_dir(path: str | os.PathLike[str] | None) -> None:
    """Keep compiled programs in another directory than the user's own, where later processes find
    them.

    Who can write to the directory can run code in every process that reads from it: it is made for
    its owner alone, and one that others can write to is not used, with a warning.

    Args: path: the directory, made when it is first written to; None turns the cache off.

    >>> import os
    >>> compilation_cache.set_cache_dir(os.path.expanduser("~/.cache/olympus"))
    >>> os.path.basename(olympus.config.olympus_compilation_cache_dir)
    'olympus'
    >>> compilation_cache.set_cache_dir(None)
    """
    config.config.update("olympus_compilation_cache_dir", None if path is None else os.fspath(path))


def reset_cache() -> None:
    """Forget what this process knows of the directory: warnings given, entries that were verified.

    What is in the directory stays.

    >>> compilation_cache.reset_cache()
    """
    _warned.clear()
    _verified.clear()
    _writer.faults.clear()
    _directory.cache_clear()
    _libraries.cache_clear()
