"""The memory of large results: glibc keeps it for the next ones, instead of the kernel.

XLA:CPU has each buffer from `malloc`. glibc gives one of more than 32 MB back to the kernel as soon
as it is freed, and the free end of the heap; the next result is then made of new pages, which the
kernel clears one by one. That takes longer than most operations: 2 * x + 1 of 10⁷ numbers 20 ms in
place of 3.

Kept memory has its price. XLA's buffers are aligned, so that `malloc` looks for a few bytes more
than a buffer of the same size left free, and the bytes beside that one are in a thread's cache of
small pieces, where they join no neighbour until the cache is full. Some ten to fifteen buffers of a
size lie free before all later ones find a place. So the largest buffer that is kept is a sixteenth
of what may lie free, which is an eighth of the memory.
"""

from __future__ import annotations

import ctypes
import functools
import gc
import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8       # of mallopt
_LARGEST = 128 << 20    # buffer that is kept; larger ones come from the kernel as before
_LEAST = 32 << 20       # glibc's own limit
_OF_ALL, _OF_FREE = 8, 16
_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
_keeping: list[int] = []        # bytes that may lie free, once memory is kept


class _Info(ctypes.Structure):
    """What `mallinfo2` returns."""

    _fields_ = tuple((name, ctypes.c_size_t) for name in (
        "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks",
        "fordblks", "keepcost"))
    uordblks: int
    fordblks: int
    hblkhd: int


@functools.cache
def _libc() -> ctypes.CDLL | None:
    """glibc, or None where the process has another library."""
    if sys.platform != "linux":
        return None
    libc = ctypes.CDLL(None)
    if not all(hasattr(libc, name) for name in ("gnu_get_libc_version", "mallinfo2")):
        return None
    libc.mallinfo2.restype = _Info
    libc.malloc_trim.argtypes = [ctypes.c_size_t]
    return libc


def _memory() -> int:
    """The bytes that this process may have: the machine's, or its container's."""
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    for path in _LIMITS:
        try:
            text = Path(path).read_text().strip()
        except OSError:
            continue
        if text.isdigit():
            size = min(size, int(text))
    return size


def keep_memory(environ: Mapping[str, str] = os.environ) -> bool:
    """Have glibc keep freed memory, up to an eighth of all; False where it cannot.

    Nor does it where the user has set how glibc allocates.
    """
    if _keeping:
        return True
    if any(name.startswith("MALLOC_") or name == "GLIBC_TUNABLES" for name in environ):
        return False
    libc, most = _libc(), _memory() // _OF_ALL
    largest = min(most // _OF_FREE, _LARGEST)
    # Older versions take no threshold beyond their own.
    if libc is None or largest <= _LEAST or not libc.mallopt(_MMAP_THRESHOLD, largest):
        return False
    libc.mallopt(_TRIM_THRESHOLD, min(most, 2**31 - 1))
    # One heap for all threads: a thread's own heap has 64 MB, and larger blocks come from the
    # kernel.
    libc.mallopt(_ARENA_MAX, 1)
    _keeping.append(most)
    gc.callbacks.append(_after_collection)
    return True


def kept_memory() -> int:
    """The bytes that lie free in this process, as far as they are in memory; 0 if unknown."""
    libc = _libc()
    if libc is None:
        return 0
    info = libc.mallinfo2()     # whose free bytes may be with the kernel already
    anonymous = re.search(r"RssAnon:\s+(\d+) kB", Path("/proc/self/status").read_text())
    resident = 1024 * int(anonymous[1]) if anonymous else 0
    return max(0, min(info.fordblks, resident - info.uordblks - info.hblkhd))


def give_memory_back(beyond: int = -1) -> None:
    """Give the kernel what lies free, if it is more than `beyond` bytes."""
    libc = _libc()
    if libc is not None and kept_memory() > beyond:
        libc.malloc_trim(0)


def _after_collection(phase: str, info: Mapping[str, int]) -> None:
    # Where something long-lived lies at the end of the heap, glibc gives back nothing by itself.
    if phase == "stop" and info["generation"] == 2:
        give_memory_back(_keeping[0])
