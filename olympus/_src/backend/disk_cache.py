"""Executables that outlive the process: a directory of entries, each in a file of its own.

    <name>-<key>-cache      an entry: magic, digest, milliseconds that it took, executable, packed
    .<key>.<writer>.new     an entry being written; renamed when it is whole
    .lock                   held by who writes or deletes
    jaxlib-<stat>           digest of jaxlib's libraries, by their paths, times and sizes

Readers take no lock: an entry is whole or is not there. Whatever goes wrong is a warning at most,
and the program is compiled.
"""

from __future__ import annotations

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
from collections.abc import Callable, Hashable, Iterator
from pathlib import Path
from typing import Any

from ...version import __version__
from ..base import config, lib, source
from ..base.logs import LOGGER
from ..base.util import module_name

try:
    import fcntl
except ImportError:     # Windows: a rename replaces what another process wrote meanwhile
    fcntl = None

__all__ = ["Directory", "current", "entry_name", "explain_host_calls", "load_or_compile",
           "reset_cache", "set_cache_dir", "stable_digest", "warn_or_raise"]

_MAGIC = b"olympus\x01"
_HEAD = struct.Struct("<8s32sI")
_SUFFIX = "-cache"
_LOCK_SECONDS = 10
_STALE_SECONDS = 600    # a file being written that is older has lost its writer
_told: set[Hashable] = set()        # faults that were warned of: one is said once
_verified: set[str] = set()     # keys compiled once under `compilation_cache_check_contents`
_METADATA = re.compile(r", metadata=\{[^}]*\}")
# Flags of XLA that say what it writes beside the program.
_IDLE_FLAGS = ("--xla_dump", "--xla_force_host_platform_device_count", "--xla_gpu_cuda_data_dir")


class Directory:
    """A directory of entries by key, bounded by the bytes that all of them take."""

    def __init__(self, path: str, most: int = -1) -> None:
        self.path, self.most = Path(path), most
        self._counted: int | None = None    # bytes of all entries, when they were last looked at
        self._written = 0       # bytes that this process wrote since then
        self._looked = 0.0      # when that was

    def get(self, key: str) -> tuple[bytes, float] | None:
        """What was put, and how many seconds making it took; None where nothing was.

        ValueError for an entry that is not as it was written; it is deleted.
        """
        path = self._entry(key)
        try:
            with path.open("rb") as file:
                # Whoever puts another directory in this one's place has no file of ours to put in.
                if not _is_ours(os.fstat(file.fileno())):
                    raise PermissionError(f"{path} belongs to another user")
                packed = file.read()
        except FileNotFoundError:
            return None
        try:
            magic, digest, took = _HEAD.unpack_from(packed)
            if magic != _MAGIC or digest != _digest(took, packed[_HEAD.size:]):
                raise ValueError("its checksum is wrong")
            data = zlib.decompress(packed[_HEAD.size:])
        except (struct.error, zlib.error, ValueError) as error:
            self.drop(key)
            raise ValueError(f"{path} is damaged ({error}); it is deleted") from None
        with contextlib.suppress(OSError):      # who may only read does not say that it was used
            os.utime(path)
        return data, took / 1000

    def put(self, key: str, data: bytes, seconds: float) -> tuple[int, str]:
        """Write an entry, unless it is there; return its bytes, and why it is not written."""
        packed, took = zlib.compress(data, 1), min(int(seconds * 1000), 2**32 - 1)
        entry = _HEAD.pack(_MAGIC, _digest(took, packed), took) + packed
        least = config.persistent_cache_min_entry_size_bytes.value
        if len(entry) < least:
            return len(entry), f"less than threshold ({least} bytes)"
        if self.most >= 0 and len(entry) > self.most:
            source.warn(f"Cache value for key {key!r} of size {len(entry)} bytes exceeds the "
                        f"maximum cache size of {self.most} bytes")
            return len(entry), f"more than the directory may hold ({self.most} bytes)"
        self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        with self._locked():
            path = self._entry(key)
            if not path.exists():
                self._make_room(len(entry))
                self._write(path, entry)
        return len(entry), ""

    def key(self, name: str, digest: str, client: Any, devices: tuple[Any, ...]) -> str:
        """The key of a program: its name and digest, and all else that its code depends on.

        That is jaxlib's libraries, devices, the CPU's features and the flags of XLA.
        """
        flags = [flag for flag in os.environ.get("XLA_FLAGS", "").split()
                 if not flag.startswith(_IDLE_FLAGS)]
        cpu = _cpu_features() if client.platform == "cpu" else ""
        environment = (
            __version__, lib.jaxlib_version, _libraries(str(self.path)), sys.platform,
            platform.machine(), cpu, client.platform, client.platform_version, sorted(flags),
            [(d.process_index, d.id, d.device_kind) for d in devices])
        return f"{entry_name(name)}-{stable_digest(digest, environment)}"

    def drop(self, key: str) -> None:
        """Delete an entry that is of no use."""
        with contextlib.suppress(OSError):
            self._entry(key).unlink()

    def note(self, name: str, make: Callable[[], str]) -> str:
        """A line of text by name: read, or made and written if the directory takes it."""
        path = self.path / name
        with contextlib.suppress(OSError, ValueError):
            text, _, digest = path.read_text("ascii").strip().partition(" ")
            if digest == stable_digest(text):
                return text
        text = make()
        with contextlib.suppress(OSError):
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._write(path, f"{text} {stable_digest(text)}".encode())
        return text

    def refusal(self) -> str:
        """Why entries that are read from here might be anybody's; empty if they are not."""
        if os.name != "posix":
            return ""
        with contextlib.suppress(OSError):      # there is none yet, or using it tells
            found, link = self.path.stat(), self.path.lstat()
            owner = next((s.st_uid for s in (found, link) if not _is_ours(s)), None)
            if owner is not None:
                return (f"belongs to the user with number {owner}; one that belongs to this "
                        f"process's user, {os.geteuid()}, or to root is required; name a directory "
                        "that does not exist yet, it is made")
            if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
                return (f"has the mode {stat.filemode(found.st_mode)}; one that only its owner can "
                        "write to is required; if nobody else wrote to it so far, "
                        f"`chmod go-w {self.path.resolve()}`, else name another directory")
        return ""

    def others(self, name: str) -> str:
        """What is known of a program that was not found, for whoever wants an explanation."""
        count = sum(1 for _ in self.path.glob(f"{name}-*{_SUFFIX}"))
        return (f"; {count} entries of that name are of other programs, types, compiler options, "
                "devices or builds" if count else "; there is no entry of that name")

    def _entry(self, key: str) -> Path:
        return self.path / (key + _SUFFIX)

    def _write(self, path: Path, data: bytes) -> None:
        """All of a file or nothing, whatever ends the process."""
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
    def _locked(self) -> Iterator[None]:
        """Alone among the processes that write here."""
        if fcntl is None:
            yield
            return
        deadline = time.monotonic() + _LOCK_SECONDS
        with open(self.path / ".lock", "ab") as file:
            while True:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    break
                except OSError as error:
                    if error.errno not in (errno.EAGAIN, errno.EACCES):
                        break       # a file system without locks: renames are enough to be correct
                    if time.monotonic() > deadline:
                        raise TimeoutError(f"{file.name} has been held for {_LOCK_SECONDS} s by "
                                           "another process") from None
                time.sleep(0.01)
            yield

    def _make_room(self, size: int) -> None:
        """Delete files whose writer is gone and, beyond the bound, the least recently used entries.

        Looking at every entry for each one written would cost the square of their number: it is
        done for the first, when a file may have lost its writer since, and when a sixteenth of the
        bound has been written; as much is freed beforehand.
        """
        self._written += size
        slack, now = self.most // 16, time.time()
        if (self._counted is not None and abs(now - self._looked) < _STALE_SECONDS and (
                self.most < 0 or (self._written <= slack
                                  and self._counted + self._written <= self.most))):
            return
        entries, total = [], 0
        with os.scandir(self.path) as files:
            for file in files:
                with contextlib.suppress(FileNotFoundError):
                    stat = file.stat()
                    if file.name.endswith(_SUFFIX):
                        entries.append((stat.st_mtime_ns, file.name, stat.st_size))
                        total += stat.st_size
                    elif file.name.endswith(".new") and now - stat.st_mtime > _STALE_SECONDS:
                        os.unlink(file.path)
        if 0 <= self.most < total + size:
            for _, name, bytes_ in sorted(entries):
                if total + size <= self.most - slack:
                    break
                with contextlib.suppress(FileNotFoundError):
                    (self.path / name).unlink()
                total -= bytes_
        self._counted, self._written, self._looked = total, size, now


def _is_ours(found: os.stat_result) -> bool:
    """Whether a file belongs to the user of this process, or to root, who is trusted."""
    return os.name != "posix" or found.st_uid in (os.geteuid(), 0)


def _digest(took: int, packed: bytes) -> bytes:
    return hashlib.blake2b(packed, digest_size=32, salt=took.to_bytes(4, "little")).digest()


def stable_digest(*parts: Any) -> str:
    """A digest of texts, bytes and numbers, the same in every process."""
    return hashlib.blake2b(repr(parts).encode(), digest_size=20).hexdigest()


def entry_name(name: str) -> str:
    """How the files of a function's programs begin: as its module is called."""
    return module_name(name)[:80]


@functools.cache
def _cpu_features() -> str:
    """What the compiler may have used of this CPU."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            name, _, words = line.partition(":")
            if name.strip() in ("flags", "Features"):
                return " ".join(sorted(words.split()))
    return platform.processor()


@functools.cache
def _libraries(directory: str) -> str:
    """A digest of jaxlib's libraries, which a release may have in several builds."""
    paths = lib.libraries()
    stats = [(str(p), p.stat().st_mtime_ns, p.stat().st_size) for p in paths]

    def read() -> str:
        total = hashlib.blake2b(digest_size=20)
        for path in paths:
            with open(path, "rb") as file:
                total.update(hashlib.file_digest(file, "blake2b").digest())
        return total.hexdigest()

    return Directory(directory).note(f"jaxlib-{stable_digest(stats)}", read)


def current() -> Directory | None:
    """The directory that the options name; None where the cache is off, or others can write there.
    """
    path = config.compilation_cache_dir.value
    most = config.compilation_cache_max_size.value
    if not path or not most or not config.enable_compilation_cache.value:
        return None
    directory = _directory(path, most)
    why = directory.refusal()
    if not why:
        return directory
    text = (f"compilation cache: the directory {path} {why}. Who can write there can run code in "
            "this process; it is not used.")
    if config.raise_persistent_cache_errors.value:
        raise PermissionError(text)
    if text not in _told:
        _told.add(text)
        source.warn(text)
    return None


@functools.lru_cache(8)
def _directory(path: str, most: int) -> Directory:
    return Directory(path, most)


def warn_or_raise(doing: str, name: str, error: Exception) -> None:
    """Say once for each kind of fault what could not be read or written; raise it if so set."""
    if config.raise_persistent_cache_errors.value:
        raise error
    # A damaged entry is one fault; a full disk is one for all programs.
    fault = (doing, type(error), getattr(error, "errno", None) or str(error))
    if fault not in _told:
        _told.add(fault)
        source.warn(f"Error {doing} persistent compilation cache entry for '{name}': "
                    f"{type(error).__name__}: {error}")


def load_or_compile(function: str, digest: str, client: Any, devices: tuple[Any, ...],
                    compile_now: Callable[[], Any]) -> tuple[Any, bytes | None]:
    """(the executable of a module, from the directory or compiled and written to it; the bytes
    that it was read from, or None).

    Args:
      function: the user's, by name.
      digest: of the module and the options that it is compiled with.
      compile_now: makes the executable.
    """
    directory = current()
    if directory is None:
        return compile_now(), None
    key, found, name = "", None, entry_name(function)
    try:
        key = directory.key(function, digest, client, devices)
        found = directory.get(key)
        if found is not None and not (
                config.compilation_cache_check_contents.value and key not in _verified):
            xla = lib.deserialize_executable(client, found[0], devices)
            LOGGER.log(_level(config.log_compiles), "Persistent compilation cache hit for '%s' "
                       "with key %r; it saved %.3f sec", name, key, found[1])
            return xla, found[0]
    except Exception as error:
        if found is not None:
            directory.drop(key)
            found = None
        warn_or_raise("reading", name, error)
    LOGGER.log(_level(config.explain_cache_misses),
               "PERSISTENT COMPILATION CACHE MISS for '%s' with key %r%s", name, key,
               directory.others(name) if config.explain_cache_misses.value else "")
    start = time.monotonic()
    xla = compile_now()
    took = time.monotonic() - start
    if key:
        try:
            _keep(directory, key, name, xla, took, found)
        except Exception as error:
            warn_or_raise("writing", name, error)
    return xla, None


def _keep(directory: Directory, key: str, name: str, xla: Any, took: float,
          found: tuple[bytes, float] | None) -> None:
    """Write what was compiled, if that is worth it; compare it with what is there."""
    level, least = _level(config.explain_cache_misses), (
        config.persistent_cache_min_compile_time_secs.value)
    _verified.add(key)
    if found is not None:
        loaded = lib.deserialize_executable(xla.client, found[0], xla.local_devices())
        if _instructions(loaded) != _instructions(xla):
            raise RuntimeError(f"entry {key} is of another program than the one that was compiled "
                               "now; delete the directory")
    elif took < least:
        LOGGER.log(level, "Not writing persistent cache entry for '%s' because it took < %.2f "
                   "seconds to compile (%.2fs)", name, least, took)
    else:
        size, why = directory.put(key, lib.serialize_executable(xla), took)
        if why:
            LOGGER.log(level, "Not writing persistent cache entry for '%s' with key %r since its "
                       "size (%d bytes) is %s", name, key, size, why)
        else:
            LOGGER.log(level, "Writing '%s' to persistent compilation cache with key %r (%d "
                       "bytes)", name, key, size)


def explain_host_calls(function: str) -> None:
    """Say of a program that calls Python that it is not written, if that is asked for."""
    if current() is not None:
        LOGGER.log(_level(config.explain_cache_misses), "Not writing persistent cache entry for "
                   "'%s' because it uses host callbacks (debug.print, for one), or is inspected "
                   "while it is compiled", entry_name(function))


def _instructions(xla: Any) -> list[str]:
    """The optimised instructions of an executable, without their sources."""
    text = lib.hlo_text(xla) or ""
    return [_METADATA.sub("", line) for line in text.splitlines() if " = " in line]


def _level(option: Any) -> int:
    return 30 if option.value else 10       # WARNING or DEBUG


# What users call ---------------------------------------------------------------------------------

def set_cache_dir(path: str | os.PathLike[str] | None) -> None:
    """Keep compiled programs in a directory, where later processes find them.

    Who can write to the directory can run code in every process that reads from it: it is made for
    its owner alone, and one that others can write to is not used, with a warning.

    Args:
      path: the directory, made when it is first written to; None turns the cache off.

    >>> import os
    >>> import olympus
    >>> from olympus.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.set_cache_dir(os.path.expanduser("~/.cache/olympus"))
    >>> os.path.basename(olympus.config.olympus_compilation_cache_dir)
    'olympus'
    >>> compilation_cache.set_cache_dir(None)
    """
    config.config.update("olympus_compilation_cache_dir", None if path is None else os.fspath(path))


def reset_cache() -> None:
    """Forget what this process knows of the directory: warnings given, entries that were verified.

    What is in the directory stays.

    >>> from olympus.experimental.compilation_cache import compilation_cache
    >>> compilation_cache.reset_cache()
    """
    _told.clear()
    _verified.clear()
    _directory.cache_clear()
    _libraries.cache_clear()
