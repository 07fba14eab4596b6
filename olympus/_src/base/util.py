"""Small helpers without a subject of their own: lazy modules, bit-exact keys, bounded caches, list
splitting.

Every cache of Olympus is bounded and known to `clear_all`, so that nothing a user made is kept
alive for long.
"""

import functools
import importlib
import struct
import threading
import types
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import numpy as np

A = TypeVar("A")
B = TypeVar("B")
P = ParamSpec("P")
R = TypeVar("R")

_pack_float = struct.Struct("<d").pack
_pack_complex = struct.Struct("<dd").pack


class _LazyModule(types.ModuleType):
    """Stands for a module and imports it at the first attribute that is asked for."""

    def __getattr__(self, name: str) -> Any:
        # The import system probes dunders (__path__, __file__ …); those must not trigger the load.
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


def lazy_module(name: str) -> types.ModuleType:
    """Return a stand-in for module `name`, loaded when one of its attributes is first read."""
    return _LazyModule(name)


def bit_key(value: Any) -> tuple[type, Hashable]:
    """Return a key under which `value` equals only itself: its type and its bit pattern.

    Python's `==` calls 1, 1.0 and True equal, 0.0 and -0.0 too, and NaN unequal to itself; as
    constants of a program it is the other way round.

    >>> bit_key(1) == bit_key(1.0), bit_key(0.0) == bit_key(-0.0)
    (False, False)
    """
    kind = type(value)
    if kind is float:
        return kind, _pack_float(value)
    if kind is complex:
        return kind, _pack_complex(value.real, value.imag)
    if isinstance(value, np.generic):
        return kind, value.tobytes()
    return kind, value


class _Clearable(Protocol):
    def cache_clear(self) -> None: ...


_caches: weakref.WeakSet[_Clearable] = weakref.WeakSet()


class Memo(dict[Any, Any]):
    """A dict of at most `maxsize` entries that drops the oldest; it reads as fast as a dict."""

    __slots__ = ("__weakref__", "_lock", "maxsize")

    def __init__(self, maxsize: int) -> None:
        super().__init__()
        self.maxsize = maxsize
        self._lock = threading.Lock()
        _caches.add(self)

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __setitem__(self, key: Any, value: Any) -> None:
        with self._lock:
            if len(self) >= self.maxsize and key not in self:
                del self[next(iter(self))]
            super().__setitem__(key, value)

    def cache_clear(self) -> None:
        """Drop every entry."""
        with self._lock:
            self.clear()


def memoize(maxsize: int = 4096) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: keep the last `maxsize` results by (hashable) arguments and their types."""

    def decorate(fun: Callable[P, R]) -> Callable[P, R]:
        cached = functools.lru_cache(maxsize=maxsize, typed=True)(fun)
        _caches.add(cached)
        return cast(Callable[P, R], cached)

    return decorate


def clear_all() -> None:
    """Empty every cache made by `Memo` and `memoize`."""
    for cache in list(_caches):
        cache.cache_clear()


def partition(mask: Sequence[bool], xs: Sequence[A]) -> tuple[list[A], list[A]]:
    """Split `xs` into those where `mask` is false and those where it is true.

    >>> partition([True, False, True], "abc")
    (['b'], ['a', 'c'])
    """
    off: list[A] = []
    on: list[A] = []
    for flag, x in zip(mask, xs, strict=True):
        (on if flag else off).append(x)
    return off, on


def merge(mask: Sequence[bool], off: Iterable[A], on: Iterable[A]) -> list[A]:
    """Undo `partition`: take the next of `on` where `mask` is true, else the next of `off`.

    >>> merge([True, False, True], ["b"], ["a", "c"])
    ['a', 'b', 'c']
    """
    next_off, next_on = iter(off), iter(on)
    return [next(next_on) if flag else next(next_off) for flag in mask]


def unzip2(pairs: Iterable[tuple[A, B]]) -> tuple[list[A], list[B]]:
    """Turn pairs into two lists, also when there are none."""
    firsts: list[A] = []
    seconds: list[B] = []
    for first, second in pairs:
        firsts.append(first)
        seconds.append(second)
    return firsts, seconds


def split_at(xs: Sequence[A], sizes: Sequence[int]) -> list[list[A]]:
    """Cut `xs` into consecutive lists of the given sizes, which must add up to its length.

    >>> split_at([1, 2, 3], [2, 0, 1])
    [[1, 2], [], [3]]
    """
    if sum(sizes) != len(xs):
        raise ValueError(f"split_at: got {len(xs)} items, sizes {list(sizes)}; they must add up.")
    it = iter(xs)
    return [[next(it) for _ in range(size)] for size in sizes]
