"""Small helpers without a subject of their own: names of callables, lazy modules, bit-exact keys,
bounded caches, list splitting.

Every cache of Olympus is bounded and known to `clear_all`, so that nothing a user made is kept
alive for long.
"""

import builtins
import contextlib
import enum
import functools
import importlib
import importlib.util
import inspect
import re
import struct
import sys
import threading
import types
import weakref
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ParamSpec, Protocol, TypeVar, cast

import numpy as np

from .docstrings import unfolded, with_imports

A = TypeVar("A")
E = TypeVar("E", bound=enum.Enum)
P = ParamSpec("P")
R = TypeVar("R")

_NOT_IN_NAMES = re.compile(r"[^\w.-]", re.ASCII)
_pack_float = struct.Struct("<d").pack
_pack_complex = struct.Struct("<dd").pack


def publish(facade: str) -> None:
    """Let the functions and classes that a public module names say that they are from there.

    Where several name one, the module nearest to the package's root holds: `help`, `repr` and
    pickles speak of `olympus.numpy.sum`, not of the file that defines it.
    """
    module = sys.modules[facade]
    names = vars(module)
    # A façade of assigned names alone, a distribution's, does not list them again.
    for name in names.setdefault("__all__", [name for name in names if name[0] != "_"]):
        if name in names:       # others are imported when they are first named
            _credit(facade, name, names[name])
    names.setdefault("__getattr__", functools.partial(_no_such_name, module))


def publish_bounded(facade: str) -> None:
    """`publish`, and errors leave the module's functions without our frames.

    It costs users a frame in each call (0.1 us) that the library does not pay, which calls the
    functions where they are defined.
    """
    publish(facade)
    module = sys.modules[facade]
    for name in module.__all__:
        setattr(module, name, _source.bounded(vars(module)[name]))


def _credit(facade: str, name: str, value: object) -> None:
    """Let a function or class that a façade names say that it is from there, examples import it."""
    if callable(value) and getattr(value, "__name__", None) == name and hasattr(value, "__dict__"):
        home = getattr(value, "__module__", "")
        if home.startswith("olympus._src.") or (
                home.startswith("olympus.") and home.count(".") > facade.count(".")):
            value.__module__ = facade
            if value.__doc__:
                value.__doc__ = with_imports(unfolded(value.__doc__), facade)


_importing = threading.RLock()      # held while `__import__` is another
_later: dict[str, dict[str, tuple[str, str]]] = {}      # façade -> name -> module, name there


class _Names:
    """Stands for a module in `from … import …`: `give(module, name)` is bound to a name."""

    def __init__(self, module: str, give: Callable[[str, str], object]) -> None:
        self._module = module
        self._give = give

    def __getattr__(self, name: str) -> object:
        return self._give(self._module, name)


@contextlib.contextmanager
def _imports(module: str, give: Callable[[str, str], object]) -> Iterator[None]:
    """Within it, import statements of a module import nothing, and bind what `give` returns.

    Imports of other modules, by other threads, go on.
    """
    namespace = vars(sys.modules[module])

    def import_(name: str, globals: Mapping[str, object] | None = None,
                locals: Mapping[str, object] | None = None, fromlist: Sequence[str] | None = (),
                level: int = 0) -> object:
        if globals is not namespace:
            return real(name, globals, locals, fromlist, level)
        path = importlib.util.resolve_name("." * level + name, namespace["__package__"])
        return _Names(path, give) if fromlist else give("", path)

    with _importing:
        real = builtins.__import__
        builtins.__import__ = import_
        try:
            yield
        finally:
            builtins.__import__ = real


@contextlib.contextmanager
def when_named(facade: str) -> Iterator[None]:
    """Within it, `from … import …` of a façade imports nothing until such a name is first used.

    For modules that the library itself does not need. The façade takes `__getattr__` of
    `submodules`.
    """
    namespace = vars(sys.modules[facade])
    before = set(namespace)
    with _imports(facade, lambda module, name: (module, name)):
        yield
    _later[facade] = {name: namespace.pop(name) for name in namespace.keys() - before}


def lazy_imports(module: str) -> contextlib.AbstractContextManager[None]:
    """Within it, `import x` and `from x import y` of a module bind modules that are loaded when one
    of their attributes is first read: for modules that few programs need, or that import this one.
    """
    return _imports(module, lambda package, name: _LazyModule(f"{package}.{name}".lstrip(".")))


class _LazyModule(types.ModuleType):
    """Stands for a module and imports it at the first attribute that is asked for."""

    def __getattr__(self, name: str) -> Any:
        # The import system probes dunders (__path__, __file__ …); those must not trigger the load.
        if name.startswith("__"):
            raise AttributeError(name)
        value = getattr(importlib.import_module(self.__name__), name)
        setattr(self, name, value)
        return value


_pkgutil: Any = _LazyModule("pkgutil")
_hints: Any = _LazyModule("olympus._src.base.hints")
_source: Any = _LazyModule("olympus._src.base.source")


def _no_such_name(module: types.ModuleType, name: str) -> object:
    """Raises, with a hint; the hints are imported for it."""
    try:
        return _hints.no_such_name(module, name)
    except AttributeError as error:
        _source.filter_traceback(error)
        raise


def submodules(package: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """The `__getattr__` and `__dir__` of a package whose public modules are imported when they are
    first named (PEP 562), as are names of `when_named`: unused modules cost its import nothing.
    """
    module = sys.modules[package]
    later = _later.get(package, {})

    def getattr_(name: str) -> object:
        if name in later:
            home, there = later[name]
            value = getattr(importlib.import_module(home), there)
            _credit(package, name, value)
            return vars(module).setdefault(name, value)
        path = f"{package}.{name}"
        if (name.isidentifier() and not name.startswith("_")
                and importlib.util.find_spec(path) is not None):
            return importlib.import_module(path)
        try:
            return _hints.no_such_name(module, name)
        except AttributeError as error:
            _source.filter_traceback(error)
            raise

    def dir_() -> list[str]:
        public = (m.name for m in _pkgutil.iter_modules(module.__path__) if m.name[0] != "_")
        return sorted({*vars(module), *later, *public})

    return getattr_, dir_


def merged(which: Iterable[bool | None], chosen: Iterable[A], others: Iterable[A]) -> list[A]:
    """Items in the order of flags: the next of `chosen` for a true flag, else of `others`."""
    yes, no = iter(chosen), iter(others)
    return [next(yes if flag else no) for flag in which]


def member(kind: type[E], value: object, what: str) -> E:
    """The member of an enumeration that has this value, or is it; ValueError for others."""
    try:
        return kind(value)
    except ValueError:
        names = ", ".join(str(x) for x in kind)
        raise ValueError(f"{what}: {value!r} is not a valid {kind.__name__}; one of {names} is "
                         "required.") from None


def has_content(cell: types.CellType) -> bool:
    """Whether a closure's cell has a value (before the assignment, or after `del`, it has none)."""
    try:
        return cell.cell_contents is not cell       # True: to read an empty one raises
    except ValueError:
        return False


def clipped(value: object, length: int = 60) -> str:
    """The `repr` of a value for a message, cut short."""
    text = repr(value)
    return text if len(text) <= length else text[:length] + "…"


def shortened(text: str, length: int = 60) -> str:
    """A text of at most `length` characters."""
    return text if len(text) <= length else text[:length - 1] + "…"


def short_number(x: float, unit: str = "") -> str:
    """A number in three digits, with the letter of its power of a thousand.

    >>> short_number(1024), short_number(1_200_000, "B")
    ('1.02k', '1.2 MB')
    """
    gap = " " if unit else ""
    for letter in ("", "k", "M", "G", "T"):
        if x < 999.5:
            return f"{x:.3g}{gap}{letter}{unit}"
        x /= 1000
    return f"{x:.3g}{gap}P{unit}"


def binary_size(n: float) -> str:
    """A number of bytes in the units of memories.

    >>> binary_size(1536), binary_size(100)
    ('1.5 KiB', '100 B')
    """
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= unit:
            return f"{n / unit:.1f} {name}"
    return f"{n:.0f} B"


def _own(error: Exception) -> bool:
    """Whether an error has a class of ours: for a traced value it says more than we could here."""
    return type(error).__module__.partition(".")[0] == __name__.partition(".")[0]


def real_number(value: Any, what: str) -> float:
    """A number as a Python float; TypeError for anything else, text included."""
    try:
        if not isinstance(value, (str, bytes, bytearray)):
            return float(value)
    except (TypeError, ValueError) as error:
        if _own(error):
            raise
    raise TypeError(f"{what} {value!r} of type {type(value).__name__} given; a real number is "
                    "required.")


def pair(value: object, what: str) -> tuple[Any, Any]:
    """The two entries of a tuple or list; TypeError for anything else, or with other items."""
    if isinstance(value, (tuple, list)) and len(value) == 2:
        return value[0], value[1]
    raise TypeError(f"{what} {value!r:.60} of type {type(value).__name__} given; a pair is "
                    "required.")


def by_numpy(name: str, fun: Callable[..., R], *args: object, **kwargs: object) -> R:
    """The result of one of NumPy's functions; its errors name our operation."""
    try:
        return fun(*args, **kwargs)
    except (TypeError, ValueError, OverflowError, AttributeError) as error:
        if _own(error):
            raise
        kind = TypeError if isinstance(error, (TypeError, AttributeError)) else ValueError
        arguments = [f"{a!r:.60}" for a in args] + [f"{k}={a!r:.60}" for k, a in kwargs.items()]
        raise kind(f"{name}: {', '.join(arguments)} given; {error}; see numpy.{name} for its "
                   "arguments.") from None


def quoted(names: Iterable[object]) -> str:
    """The names of a set for messages, in an order that is always the same.

    >>> quoted({"b", "a"})
    "'a', 'b'"
    """
    return ", ".join(sorted(map(repr, names)))


def name_of(fun: object) -> str:
    """The name of a function in messages and programs.

    >>> name_of(functools.partial(len)), name_of(functools.partial)
    ('len', 'partial')
    """
    name = getattr(fun, "__name__", None)
    if isinstance(name, str) and name:
        return name
    return name_of(fun.func) if isinstance(fun, functools.partial) else type(fun).__name__


def unwrapped(fun: Callable[..., object]) -> Callable[..., object]:
    """The function that partials and decorators were made of.

    >>> unwrapped(functools.partial(len)) is len
    True
    """
    while isinstance(fun, functools.partial):
        fun = fun.func
    return inspect.unwrap(fun)


def module_name(name: str) -> str:
    """The name of a function's module.

    >>> module_name("f"), module_name("<lambda>")
    ('jit_f', 'jit__lambda')
    """
    return _NOT_IN_NAMES.sub("_", f"jit({name})").rstrip("_")


def wraps(fun: Callable[P, object], attributes: bool = False
          ) -> Callable[[Any], Callable[P, Any]]:
    """`functools.wraps` for callables of any kind: they may have no name, or one that is no string.

    Without `attributes`, so that `grad(jit(f))` has no method `lower`.
    """
    assigned: Sequence[str] = functools.WRAPPER_ASSIGNMENTS
    if type(fun) is not types.FunctionType:
        assigned = [name for name in assigned if isinstance(getattr(fun, name, None), (str, dict))]
    return functools.wraps(fun, assigned, ("__dict__",) if attributes else ())


def also_named(**names: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Decorator: keywords that are other names of parameters, as NumPy's beside JAX's."""
    def decorate(fun: Callable[P, R]) -> Callable[P, R]:
        @functools.wraps(fun)
        def body(*args: P.args, **options: P.kwargs) -> R:
            for other in names.keys() & options.keys():
                if names[other] in options:
                    raise TypeError(f"{fun.__name__}: {names[other]} and {other} given; they mean "
                                    "the same; pass one of them.")
                options[names[other]] = options.pop(other)
            return fun(*args, **options)
        return body
    return decorate


def lazy_module(name: str) -> types.ModuleType:
    """Return a stand-in for module `name`, loaded when one of its attributes is first read."""
    return _LazyModule(name)


def bit_key(value: Any) -> tuple[type, Hashable]:
    """Return a key under which `value` equals only itself: its type and its bit pattern.

    For a tuple, its items' all together.

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
    if isinstance(value, tuple):
        kinds = tuple(map(type, value))
        if _EXACT.issuperset(kinds):    # the usual case, without a frame for each item
            return kind, (kinds, value)
        return kind, tuple(map(bit_key, value))
    return kind, value


_EXACT = frozenset((int, bool, str, bytes, type(None)))     # of each, equal values are the same


class _Clearable(Protocol):
    def cache_clear(self) -> None: ...


_caches: weakref.WeakSet[_Clearable] = weakref.WeakSet()


def known_cache(cache: _Clearable) -> None:
    """Let `clear_all` empty a cache too, as long as it lives."""
    _caches.add(cache)


def register_backend_cache(cache: _Clearable, for_what: str) -> None:
    """Let `clear_caches` empty a cache too, as long as it lives.

    Args:
      cache: has a method `cache_clear`.
      for_what: accepted, a name.

    >>> import functools
    >>> @functools.cache
    ... def plan(n):
    ...     return [n]
    >>> backend.register_backend_cache(plan, "plans")
    >>> first = plan(1)
    >>> olympus.clear_caches()
    >>> plan(1) is first
    False
    """
    if not callable(getattr(cache, "cache_clear", None)):
        raise TypeError(f"register_backend_cache: {cache!r:.60} of type {type(cache).__name__} "
                        "given; an object with a method cache_clear is required.")
    known_cache(cache)


class KnownTypes(set[type]):
    """Types with one known property: some for good, and at most `most` that were met.

    To look a type up takes as long as in a set. Where too many were met all of those are forgotten.

    >>> numbers = KnownTypes(int, float, most=1)
    >>> numbers.meet(bool), numbers.meet(complex), sorted(map(str, numbers))
    (None, None, ["<class 'complex'>", "<class 'float'>", "<class 'int'>"])
    """

    def __init__(self, *types: type, most: int = 1024) -> None:
        super().__init__(types)
        self._for_good, self._most = frozenset(types), most

    def meet(self, kind: type) -> None:
        """Add a type, such as a class of a user's, until too many were added."""
        if len(self) >= len(self._for_good) + self._most:
            self.intersection_update(self._for_good)
        self.add(kind)

    def keep(self, kind: type) -> None:
        """Add a type for good."""
        self._for_good |= {kind}
        self.add(kind)


class Memo(dict[Any, Any]):
    """A dict of at most `maxsize` entries that drops the oldest; it reads as fast as a dict."""

    __slots__ = ("__weakref__", "_lock", "maxsize")

    def __init__(self, maxsize: int) -> None:
        super().__init__()
        self.maxsize = maxsize
        self._lock = threading.Lock()

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __reduce__(self) -> tuple[type["Memo"], tuple[int]]:
        return Memo, (self.maxsize,)    # pickled, a cache is empty

    def __setitem__(self, key: Hashable, value: object) -> None:
        with self._lock:
            self._set(key, value)

    def setdefault(self, key: Hashable, default: R) -> R:
        """The value of the key: the given one, unless there is one already."""
        with self._lock:
            if key not in self:
                self._set(key, default)
            return self[key]

    def _set(self, key: Hashable, value: object) -> None:
        if not self:
            known_cache(self)   # once there is something to clear: most programs derive nothing
        elif len(self) >= self.maxsize and key not in self:
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
        known_cache(cached)
        return cast(Callable[P, R], cached)

    return decorate


class ByKey:
    """Equality and hash by the parts of an object, which its class lists in `_key()`."""

    __slots__ = ()
    _key: Callable[[], tuple[Any, ...]]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class Owned:
    """Caches of objects made from a function, kept on the function itself: they go when it goes.

    A table of weak keys would keep a function whose own programs lead back to it.
    """

    __slots__ = ("memos", "owner")
    NAME = "__olympus_caches__"

    def __init__(self, owner: Callable[..., object] | None = None) -> None:
        self.owner = owner and weakref.ref(owner)
        self.memos: dict[Hashable, Memo] = {}

    def __reduce__(self) -> tuple[type["Owned"], tuple[()]]:
        return Owned, ()    # pickled by value, a function has none

    @classmethod
    def memo(cls, fun: types.FunctionType, key: Hashable, maxsize: int) -> Memo:
        """The cache on `fun` that `key` names."""
        owned = fun.__dict__.get(cls.NAME)
        # `functools.wraps` copies the attributes of another function.
        if owned is None or owned.owner is None or owned.owner() is not fun:
            owned = fun.__dict__[cls.NAME] = cls(fun)
        known = owned.memos.get(key)
        return known if known is not None else owned.memos.setdefault(key, Memo(maxsize))


def living(members: weakref.WeakSet[A]) -> list[A]:
    """The members of a weak set, to which other threads may add some meanwhile."""
    while True:
        try:
            return list(members)
        except RuntimeError:    # one was added
            pass


def known_caches() -> list[_Clearable]:
    """The caches that `clear_all` empties."""
    return living(_caches)


def clear_all() -> None:
    """Empty every cache that is known."""
    for cache in known_caches():
        cache.cache_clear()


class WithAux:
    """A function of flat values that is to be traced; `aux` is what else its last call returned.

    Args: fun: returns a pair: a call's flat results, and anything.

    >>> halves = WithAux(lambda *xs: (xs[::2], len(xs)))
    >>> halves(1, 2, 3), halves.aux
    ((1, 3), 3)
    """

    __slots__ = ("aux", "fun")

    def __init__(self, fun: Callable[..., tuple[Any, Any]]) -> None:
        self.fun = fun
        self.aux: Any = None

    def __call__(self, *args: object) -> Any:
        outs, self.aux = self.fun(*args)
        return outs


def cut(xs: Sequence[A], *sizes: int) -> list[list[A]]:
    """Cut `xs` into consecutive lists of the given sizes; the last one holds the rest.

    >>> cut([1, 2, 3], 2, 0)
    [[1, 2], [], [3]]
    """
    out, start = [], 0
    for size in sizes:
        out.append(list(xs[start:start + size]))
        start += size
    return [*out, list(xs[start:])]
