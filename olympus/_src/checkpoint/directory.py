"""The directory of a checkpoint, and how a save puts another version into it.

    run/pytreedef.json           the structure, the types of the arrays, and their version
    run/array_store/<version>/   the arrays, a store of TensorStore's
    .run.saving/lock             taken by the process that saves to `run`, and released when it ends
    .run.saving/<version>/       the version that it writes, laid out as `run` is

A save takes effect in one rename: of the whole version where there is no checkpoint, else of
`pytreedef.json`. So a reader finds the old version or the new one, also after a process was
killed; the files that it left are deleted by the next save to the same name.

Format 1, which had no checksums and kept the arrays in `array_store` itself, is read as well.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeAlias

from ..base.logs import LOGGER

try:
    import fcntl
except ImportError:     # Windows: one process at a time may save to a name
    fcntl = None

TREE, ARRAYS = "pytreedef.json", "array_store"
_LOCK = "lock"
_MANIFEST = "manifest.ocdbt"        # TensorStore's file in a version with arrays
_VERSION = re.compile("[0-9a-f]{32}")
_FORMAT = 2
Content: TypeAlias = dict[str, Any]     # the start of the structure's file, which is JSON
# Olympus's files have both: one damaged byte leaves one of them.
_MARKS = (b"__olympus_pytreedef_repr", b"__olympus_leaf_ids")
_FILE_TYPES = {stat.S_IFREG: "a file", stat.S_IFDIR: "a directory", stat.S_IFLNK: "a symbolic link",
               stat.S_IFIFO: "a named pipe", stat.S_IFSOCK: "a socket"}


class Damaged(ValueError):
    """A file of a checkpoint is not as it was written."""


def place(directory: str | os.PathLike[str]) -> Path:
    """The absolute path that the user gave; only its last part may be a symbolic link."""
    path = Path(directory).expanduser().absolute()
    return path.resolve() if path.name == ".." else path.parent.resolve() / path.name


def _standing(path: Path) -> str:
    """The kind of file at a path, in words; "" if none. Opens nothing: a pipe would block."""
    try:
        mode = path.lstat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        return ""
    return _FILE_TYPES.get(stat.S_IFMT(mode), "a device")


# The file of the structure -----------------------------------------------------------------------

def _digest(content: Content) -> str:
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()


def _encode(content: Content) -> bytes:
    content = {"format": _FORMAT, **content}
    return json.dumps({**content, "sha256": _digest(content)}).encode()


def decode(text: bytes) -> Content:
    """The content of `pytreedef.json`, with "version" but in format 1.

    Damaged if it is not as it was written, ValueError if it has a later format.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError):
        raise Damaged(f"{TREE} is not JSON") from None
    if not isinstance(content, dict):
        raise Damaged(f"{TREE} is not the structure of a pytree")
    if {mark.decode() for mark in _MARKS} == content.keys():
        return content
    if content.pop("sha256", None) != _digest(content):
        raise Damaged(f"{TREE} has another checksum than it was written with")
    if content.get("format") != _FORMAT:
        raise ValueError(f"it has format {content.get('format')}, and this Olympus reads up to "
                         f"{_FORMAT}; read it with the version that wrote it, or a later one")
    return content


# Reading -----------------------------------------------------------------------------------------

@contextlib.contextmanager
def reading(arrays: Path) -> Iterator[None]:
    """A block in which no save deletes a version; FileNotFoundError if one has.

    Changes nothing on disk, and makes no save wait: that leaves the version to a later one.
    """
    file = os.open(arrays / _MANIFEST, os.O_RDONLY)
    try:
        if fcntl is not None:
            # Without locks, or while the version is deleted, reading raises if files are gone.
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        yield
    finally:
        _release(file)


def _release(file: int) -> None:
    if fcntl is not None:       # unlocked, not just closed: a forked process may have the file open
        with contextlib.suppress(OSError):
            fcntl.flock(file, fcntl.LOCK_UN)
    os.close(file)


# Saving ------------------------------------------------------------------------------------------

def _check_destination(root: Path, overwrite: bool) -> None:
    kind = _standing(root)
    if not kind and not root.parent.is_dir():
        raise RuntimeError(f"save: {root} given; Could not create destination directory, as "
                           f"{root.parent} is none; make it first.")
    if kind not in ("", "a directory"):
        raise RuntimeError(
            f"save: {root} given; Refusing to work on {kind}, which stands there; an empty place "
            "or the directory of a checkpoint is required; choose another, or remove it.")
    present = sorted(os.listdir(root)) if kind else []
    if present and not overwrite:
        raise ValueError(f"save: overwrite={overwrite} given, and Files already exist at path: "
                         f"`{root}`; an empty place is required; choose another.")
    strange = sorted({*present} - {TREE, ARRAYS})
    if strange or present and not _is_checkpoint(root):
        listed = (f"Unrecognized paths: {strange}" if strange else
                  f"It has {present}, and no {TREE} that `save` wrote")
        raise RuntimeError(
            f"save: {root} given; Refusing to work on a directory that is not a previous "
            f"checkpoint. {listed}; choose another, or remove them.")


def _is_checkpoint(root: Path) -> bool:
    if _standing(root / TREE) != "a file" or _standing(root / ARRAYS) not in ("", "a directory"):
        return False
    text = (root / TREE).read_bytes()
    return any(mark in text for mark in _MARKS)


class Draft:
    """Where a version is written before it takes effect; one process at a time has it.

    Args:
      root: the directory of the checkpoint.
      version: a name that no other save has, of 32 hexadecimal digits.
    """

    def __init__(self, root: Path, version: str) -> None:
        self._root, self._version = root, version
        self._folder = root.with_name(f".{root.name}.saving")
        self._path = self._folder / version
        self._lock: int | None = None
        self.arrays = self._path / ARRAYS / version

    def enter(self, overwrite: bool) -> None:
        """Wait until no other process saves to this name, then make an empty place.

        ValueError or RuntimeError for a destination that is refused, before anything is written.
        """
        _check_destination(self._root, overwrite)
        while self._lock is None:
            self._take()
        _check_destination(self._root, overwrite)       # another process may have saved meanwhile
        for left in self._folder.iterdir():             # by a process that was killed
            if left.name != _LOCK:
                shutil.rmtree(left)
        self.arrays.mkdir(parents=True)

    def _take(self) -> None:
        """Take the lock, unless the folder is removed meanwhile by the process that had it."""
        with contextlib.suppress(FileExistsError):
            self._folder.mkdir()
        with contextlib.suppress(FileNotFoundError):
            self._check_folder()
            path = self._folder / _LOCK
            lock = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
            try:
                self._wait(lock)
                if os.path.samestat(os.fstat(lock), path.stat()):
                    self._lock = lock
            finally:
                if self._lock is None:
                    os.close(lock)

    def _check_folder(self) -> None:
        strange = [] if _standing(self._folder) == "a directory" else [self._folder.name]
        for path in () if strange else self._folder.iterdir():
            kind = "a file" if path.name == _LOCK else "a directory"
            if _standing(path) not in ("", kind) or not (
                    path.name == _LOCK or _VERSION.fullmatch(path.name)):
                strange.append(path.name)
        if strange:
            raise RuntimeError(
                f"save: {self._root} given; it is written to {self._folder} first, and there "
                f"stands what `save` did not put there: {strange}; choose another place, or remove "
                "that.")

    def _wait(self, lock: int) -> None:
        # A lock of the process, unlike flock's, is not kept by its forked children.
        if fcntl is None:
            return
        try:
            fcntl.lockf(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EAGAIN):
                LOGGER.info("save: another process saves to %s; waiting for it", self._root)
                fcntl.lockf(lock, fcntl.LOCK_EX)
            else:
                LOGGER.warning("save: the file system of %s has no locks (%s); let one process at "
                               "a time save to this name", self._root, error.strerror)

    def commit(self, content: Content) -> None:
        """Let the version take effect; `content` has the other entries of `pytreedef.json`."""
        with open(self._path / TREE, "wb") as file:
            file.write(_encode({"version": self._version, **content}))
            file.flush()
            os.fsync(file.fileno())
        if not (self._root / TREE).exists():
            os.rename(self._path, self._root)
            return
        arrays = self._root / ARRAYS
        arrays.mkdir(exist_ok=True)
        try:
            os.rename(self.arrays, arrays / self._version)
            os.replace(self._path / TREE, self._root / TREE)
        finally:
            self._delete_others()

    def _delete_others(self) -> None:
        """Delete all versions but `pytreedef.json`'s, which decides after an error, too."""
        with contextlib.suppress(ValueError, OSError):
            current = decode((self._root / TREE).read_bytes()).get("version")
            for path in (self._root / ARRAYS).iterdir():
                # Without a version, all other files are the store of format 1.
                if path.name != current and (current or _VERSION.fullmatch(path.name)):
                    _delete(path)

    def leave(self) -> None:
        """Delete written files that have not taken effect, and let other processes save."""
        if self._lock is None:
            return
        shutil.rmtree(self._path, ignore_errors=True)
        with contextlib.suppress(OSError):
            (self._folder / _LOCK).unlink()
            self._folder.rmdir()
        os.close(self._lock)
        self._lock = None


def _delete(path: Path) -> None:
    """Delete a version, or a part of one of format 1, unless it is being read."""
    if _standing(path) != "a directory":
        path.unlink()
        return
    try:
        file = os.open(path / _MANIFEST, os.O_RDWR)
    except FileNotFoundError:       # without arrays, or partly deleted
        shutil.rmtree(path, ignore_errors=True)
        return
    try:
        if fcntl is not None:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    except BlockingIOError:
        LOGGER.info("save: %s is being read; a later save deletes it", path)
    finally:
        _release(file)
