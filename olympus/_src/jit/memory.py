"""`memory_report`: the memory of a process, by jitted function, by cache and by device."""

from __future__ import annotations

import functools
import gc
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple, TypeVar

from ..base import lib, source
from ..base.util import Memo, Owned, binary_size, known_caches, unwrapped
from ..devices.devices import client
from ..lowering.attributes import context_bytes
from ..runtime.compile import compiled_programs
from .jit import JitFunction

Row = TypeVar("Row", bound=tuple)       # of a table: a name, then numbers


class FunctionMemory(NamedTuple):
    """The memory of a jitted function: see `memory_report`.

    Attributes:
      name: the function, with the file and line of the user's that it is written at.
      programs: how many traced programs.
      executables: how many compiled ones, on all devices together.
      code: bytes of those, with their constants, about.
      constants: bytes of the arrays that the programs close over.

    >>> import olympus
    >>> f = olympus.jit(lambda x: x * 3)
    >>> _ = f(1.0)
    >>> row = next(row for row in olympus.memory_report(most=10**6).functions
    ...            if row.name.startswith("<lambda>"))
    >>> row.programs >= 1
    True
    """

    name: str
    programs: int
    executables: int
    code: int
    constants: int


class CacheMemory(NamedTuple):
    """The memory of a cache, or of all caches of a kind: see `memory_report`.

    Attributes:
      name: the module and the name there, or the object that keeps it.
      caches: the number of caches with that name.
      entries: the number of entries in all of them.
      nbytes: the bytes of tables, keys and arrays; other objects' contents are not counted.

    >>> import olympus
    >>> y = olympus.jit(olympus.numpy.sin)(1.0)     # which is traced, lowered and compiled
    >>> sum(row.entries for row in olympus.memory_report().caches) > 0
    True
    """

    name: str
    caches: int
    entries: int
    nbytes: int


class MemoryReport(NamedTuple):
    """The memory of a process, in bytes; it prints as a table.

    Attributes:
      functions: the jitted functions that hold most, largest first; the last row, named
        "… others", sums up the rest.
      executables: the number of compiled programs, single operations' included.
      code: of all of these.
      caches: as `functions`.
      arrays: for each device the number of arrays that are there, and their bytes.
      mlir: bytes that MLIR keeps until its context is renewed.
      kept: freed bytes that are kept for new arrays (glibc only).

    >>> import olympus
    >>> x = olympus.numpy.ones(1000)
    >>> count, size = olympus.memory_report().arrays["cpu:0"]
    >>> size >= 4000
    True
    """

    functions: Sequence[FunctionMemory]
    executables: int
    code: int
    caches: Sequence[CacheMemory]
    arrays: dict[str, tuple[int, int]]
    mlir: int
    kept: int

    def __str__(self) -> str:
        return "\n".join([
            f"compiled programs: {self.executables}, {binary_size(self.code)}",
            *_in_columns(("jitted functions", "programs", "executables", "code", "constants"),
                         [(f.name, f.programs, f.executables, binary_size(f.code),
                           binary_size(f.constants)) for f in self.functions]),
            *_in_columns(("caches", "number", "entries", "size"),
                         [(c.name, c.caches, c.entries,
                           binary_size(c.nbytes)) for c in self.caches]),
            *_in_columns(("arrays", "number", "size"),
                         [(name, n, binary_size(size)) for name, (n, size) in self.arrays.items()]),
            f"MLIR: {binary_size(self.mlir)}", f"kept for new arrays: {binary_size(self.kept)}"])


def memory_report(most: int = 20) -> MemoryReport:
    """The memory that Olympus holds in this process: programs by function, caches, arrays.

    Args:
      most: how many functions, and caches, are listed; the others are summed up in one row each.
    Returns: A `MemoryReport`: data, and a table when it is printed. `clear_caches` lets go of all
      but arrays, `f.clear_cache()` of a function's programs.

    >>> f = olympus.jit(lambda x: x @ x)
    >>> _ = f(olympus.numpy.ones((3, 3)))
    >>> report = olympus.memory_report()
    >>> report.executables > 0, report.code > 0
    (True, True)
    >>> print(report)  # doctest: +ELLIPSIS
    compiled programs: ...
    """
    if isinstance(most, bool) or not isinstance(most, int) or most < 1:
        raise ValueError(f"memory_report: most={most!r} given; a positive int is required.")
    loaded = compiled_programs()
    # No register of jitted functions and of caches on functions is kept: the collector knows them.
    objects = gc.get_objects()
    return MemoryReport(
        _longest(FunctionMemory, list(map(_of_function, _holding(objects))), most, 3),
        len(loaded), sum(x.bytes for x in loaded),
        _longest(CacheMemory, _of_caches(objects), most, 3), _of_arrays(), context_bytes(),
        lib.allocator.kept_memory())


def _holding(objects: Iterable[object]) -> list[JitFunction]:
    """The jitted functions that have programs; each set of programs once."""
    infos = [x for x in objects if type(x) is JitFunction and x.programs]
    return list({id(info.programs): info for info in infos}.values())


def _of_function(info: JitFunction) -> FunctionMemory:
    programs = set(info.programs.values())      # some are found by two keys
    # Counted by identity: equal programs share an executable, and programs share constants.
    compiled = {id(e.loaded): e.loaded for p in programs for e in list(p.executables.values())}
    arrays = {id(c): c for p in programs for c in p.closed.consts}
    code = getattr(unwrapped(info.signature.fun), "__code__", None)
    where = "" if code is None or source.is_internal(code.co_filename) else (
        f" at {source.written_at(code)}")
    return FunctionMemory(info.name + where, len(programs), len(compiled),
                          sum(x.bytes for x in compiled.values()), _nbytes(arrays.values()))


def _of_caches(objects: Iterable[object]) -> list[CacheMemory]:
    named = {id(value): f"{module.removeprefix('olympus._src.')}.{name}"
             for module, names in _own_modules() for name, value in names}
    for x in objects:
        if type(x) is Owned:
            named.update((id(memo), f"{key[0] if type(key) is tuple else key}, kept on functions")
                         for key, memo in x.memos.items())
    rows: dict[str, Counter[str]] = defaultdict(Counter)
    for cache in known_caches():
        items = _items(cache)
        if items is not None:
            rows[named.get(id(cache), "derived programs, kept on programs")].update(
                caches=1, entries=len(items), nbytes=sys.getsizeof(cache) + sum(
                    sys.getsizeof(key) + _nbytes([value]) for key, value in items))
    return [CacheMemory(name, **row) for name, row in rows.items()]


def _own_modules() -> list[tuple[str, list[tuple[str, object]]]]:
    # Copies: an import changes both dicts, also one in another thread.
    return [(name, list(vars(module).items())) for name, module in list(sys.modules.items())
            if name.startswith("olympus._src.") and module is not None]


def _items(cache: object) -> list[tuple[object, object]] | None:
    """The entries of a cache; None of one that only knows how to be cleared."""
    if isinstance(cache, Memo):
        return list(cache.items())
    if isinstance(cache, functools._lru_cache_wrapper):
        # Python does not tell its entries; the collector sees the dict that they are in.
        table = next((x for x in gc.get_referents(cache) if type(x) is dict), {})
        return list(table.items())
    return None


def _of_arrays() -> dict[str, tuple[int, int]]:
    by_device: dict[str, list[int]] = {}
    for x in client(None).live_arrays():
        if x.aval is None:      # XLA's own, which no program of ours has made
            continue
        size = 1        # of the part that each device has
        for n in x.sharding.shard_shape(x.shape):
            size *= n
        for device in x.sharding.addressable_devices:
            row = by_device.setdefault(f"{device.platform}:{device.id}", [0, 0])
            row[0], row[1] = row[0] + 1, row[1] + size * x.dtype.itemsize
    return {name: (n, size) for name, (n, size) in sorted(by_device.items())}


def _nbytes(values: Iterable[object]) -> int:
    # On a class, `nbytes` is a property and no number.
    return sum(getattr(x, "nbytes", 0) for x in values if not isinstance(x, type))


def _longest(kind: Callable[..., Row], rows: Sequence[Row], most: int, by: int) -> list[Row]:
    """The largest rows by a column, and the sum of the others."""
    rows = sorted(rows, key=lambda row: (-row[by], row[0]))
    if len(rows) <= most:
        return list(rows)
    rest = [sum(column) for column in list(zip(*rows[most:], strict=True))[1:]]
    return [*rows[:most], kind(f"… {len(rows) - most} others", *rest)]


def _in_columns(head: Sequence[str], rows: Sequence[Sequence[object]]) -> list[str]:
    """Lines of columns: names to the left, numbers to the right, at most 100 columns."""
    texts = [[f"  {str(row[0])[-48:]}", *map(str, row[1:])] for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *texts, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *[
        x.rjust(n) for x, n in zip(row[1:], widths[1:], strict=True)]])
            for row in [list(head), *texts]]
