"""Files that are whole or unchanged: an export is written beside its place."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

_STALE_SECONDS = 600    # the writer of an older unfinished file is dead


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Where to write a file that takes the place of `path` when the block ends without an error.

    What was there stays whole until then, whatever ends the process.
    """
    final = Path(os.path.realpath(path))    # a link stays: its target is written
    if final.exists() and not final.is_file():      # a pipe and a device have no content to keep
        yield final
        return
    new = final.with_name(f".olympus-{uuid.uuid4().hex}.new")
    try:
        for left in final.parent.glob(".olympus-*.new"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _STALE_SECONDS:
                    left.unlink()
        yield new
        if final.exists():
            shutil.copymode(final, new)
        with new.open("rb+") as file:
            os.fsync(file.fileno())
        new.replace(final)
    except BaseException as error:
        with contextlib.suppress(OSError):
            new.unlink()
        if isinstance(error, OSError) and error.filename == str(new):
            error.filename = os.fspath(path)    # the name that the user gave
        raise
