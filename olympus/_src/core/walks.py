"""The walk from a function to the values that it reads besides its arguments.

It finds them by the names in the function's code, and in the code of the user's functions that it
calls: globals, closure cells, defaults, attributes, and items of lists, dicts, sets and NumPy
arrays. `captures.py` compares them later.
"""

from __future__ import annotations

import abc
import contextlib
import functools
import gc
import importlib.util
import operator
import re
import sys
import types
import typing
from collections import ChainMap, OrderedDict, UserDict, UserList, defaultdict, deque
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set as AbstractSet
from typing import Any, NamedTuple

import numpy as np

from ..base import lib
from ..base.code_reads import all_reads
from ..base.typing import PyTree
from ..base.users import SITE, code_of_users, file_of_users, impure, slots_of, state_of, versioned
from ..base.util import Memo, bit_key, clipped, has_content
from ..types.tree_registry import registered_functions
from .trace import Tracer

_ARRAY_BYTES = 1 << 14      # a larger NumPy array is not compared at each call
_CONTAINER_ITEMS = 256      # a longer container is not compared at each call
_BODY_VALUES = 4096         # a body that reads more is not kept
_HEAP_TYPE = 1 << 9         # the flag of types that a class statement made
_FIXED = (bool, int, float, complex, str, bytes, type(None), type(...), np.generic, range)
_FIXED_TYPES = frozenset((bool, int, float, complex, str, bytes, type(None), type(...),
                          type(NotImplemented), range))
_FUNCTION_ATTRIBUTES = frozenset((
    "__annotations__", "__doc__", "__module__", "__name__", "__qualname__"))
ABSENT: Any = type("Absent", (), {"__repr__": lambda self: "absent"})()
_END: Any = (object(),)     # separates the items of one container from the next one's
# Modules of Python whose results depend on settings of the process besides the arguments.
_READ_SETTINGS = frozenset(("decimal", "inspect", "logging"))
# Builtins that read names which the code does not spell.
_READ_ALL_NAMES = frozenset(("dir", "locals", "vars"))
#: module -> the attribute that its functions read of the classes given to them
_CLASS_ATTRIBUTES_READ = {"dataclasses": "__dataclass_fields__", "typing": "__annotations__"}


class _Unwatched(Exception):
    """A value that a body reads cannot be compared."""


def walk(fun: Callable[..., PyTree], whole: bool) -> Walk:
    """The walk from `fun`, repeated until no further names are found.

    `whole`: for a body, see `Walk`.
    """
    names, lacked = frozenset[str](), frozenset[str]()
    if isinstance(fun, types.FunctionType):
        reads = all_reads(fun.__code__)
        names, lacked = reads.names, reads.names if reads.catches else reads.texts
    while True:     # code that is reached through an attribute may read further attributes
        latest = Walk(names, lacked, whole)
        if whole and isinstance(fun, types.FunctionType):
            latest.function(fun, _SOMEWHERE if whole else _Place("the function", ""), own=True)
        else:
            latest.value(fun, _SOMEWHERE if whole else _Place("the function", ""))
        latest.bare()
        if latest.by_text:
            latest.names |= latest.texts
            latest.lacking |= latest.texts
        if (not latest.asked or latest.names <= names) and latest.lacking <= lacked:
            return latest
        names |= latest.names
        lacked |= latest.lacking


# Places and values -------------------------------------------------------------------------------

class _Place(NamedTuple):
    """The place of a value, for messages: head `the global cfg.lr`, tail ` of f`."""

    head: str
    tail: str

    def __str__(self) -> str:
        return self.head + self.tail

    def within(self, step: str) -> _Place:
        return self if self is _SOMEWHERE else _Place(self.head + step, self.tail)


_SOMEWHERE = _Place("a body", "")   # nobody reads the places of bodies, so they are not made


class _Leaf(NamedTuple):
    key: Any        # equal for equal values only
    value: Any      # for messages; a copy if it can change in place


class _ByValue:
    """The key of an object that is compared by value once another object has its place."""

    __slots__ = ("value",)
    __hash__ = object.__hash__

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ByValue) or type(self.value) is not type(other.value):
            return False
        x: Any = self.value
        y: Any = other.value
        if x is y or isinstance(x, Tracer):
            return x is y
        if isinstance(x, lib.ArrayImpl):
            return _same_array(x, y)
        with contextlib.suppress(Exception):    # `==` may be a user's
            return bool(x == y)
        return False


def _same_array(x: lib.ArrayImpl, y: lib.ArrayImpl) -> bool:
    if x.aval != y.aval or x.is_deleted() or y.is_deleted() or not (
            x.is_fully_addressable and y.is_fully_addressable):
        return False
    return lib.to_numpy(x).tobytes() == lib.to_numpy(y).tobytes()


class Walk:
    """One walk from a function to everything that it reads.

    Args:
      names: the attributes that count as read.
      lacked: attributes whose absence the code may handle (`getattr` with a default, `except`).
      whole: count all attributes of objects, and raise `_Unwatched` for an incomparable value.

    Attributes:
      leaves: values by place, to compare by value where an object was replaced.
      opaque: the reasons why values cannot be compared, by place.
      names, lacking: the names that the code met so far reads, and the names it may not find.
      by_text: whether code reads attributes by texts that it does not contain.
      texts: the identifiers among texts that it reads; each may be such a name.
      inherited: place of an attribute on an object -> its place on the class that defines it.
    """

    def __init__(self, names: AbstractSet[str], lacked: AbstractSet[str], whole: bool) -> None:
        self.attributes, self.lacked, self.whole = names, lacked, whole
        self.names: set[str] = set()
        self.lacking: set[str] = set()
        self.leaves: dict[str, _Leaf] = {}
        self.opaque: dict[str, str] = {}
        self.inherited: dict[str, str] = {}
        self.home: Any = None       # the module of the guarded function
        self.by_text = False
        self.texts: set[str] = set()
        self.asked = False          # whether `attributes` was used
        self._loose: set[str] = set()       # names that code may read of any object
        self._bare: list[types.ModuleType] = []     # library modules that are values
        self._seen: dict[int, Any] = {}
        self._looked: set[tuple[int, Any]] = set()
        # The parts of the watch:
        #: (object, attribute, value)
        self.expected: list[tuple[object, str, object]] = []
        #: (namespace, name, value)
        self.bound: list[tuple[dict[Any, Any], Hashable, object]] = []
        #: (function, code, defaults, keyword defaults)
        self.functions: list[tuple[types.FunctionType, object, object, object]] = []
        #: (object, class, `__dict__`)
        self.objects: list[tuple[object, object, object]] = []
        self.namespaces: list[Mapping[str, object]] = []    # `vars` of objects and classes
        self.containers: list[Iterable[object]] = []
        self.reads: list[Callable[[], object]] = []

    def shown(self, where: str) -> str:
        """The value at a place, for messages."""
        leaf = self.leaves.get(where)
        if leaf is None:
            above = self.inherited.get(where)
            return f"{self.shown(above)} (by its class)" if above in self.leaves else "absent"
        text = getattr(leaf.value, "__qualname__", None) if callable(leaf.value) else None
        return " ".join(text.split()) if text else " ".join(clipped(leaf.value).split())

    def expect(self, x: object, attribute: str) -> object:
        """The value of an attribute; the attribute must keep it."""
        value = getattr(x, attribute, ABSENT)
        self.expected.append((x, attribute, value))
        return value

    def expect_object(self, x: object) -> Any:
        """The `__dict__` of an object, or None; the object must keep that and its class."""
        own = getattr(x, "__dict__", None)
        if own is None:
            self.expect(x, "__class__")
        else:
            self.objects.append((x, x.__class__, own))
        return own

    def in_names(self, names: Mapping[str, object], key: str) -> object:
        """The value of a name in a namespace; the name must stay bound to it."""
        value = names.get(key, ABSENT)
        if type(names) is not dict:
            if self.whole:
                raise _Unwatched(f"{key} is bound in a {type(names).__name__}")
        elif (id(names), key) not in self._looked:
            self._looked.add((id(names), key))
            self.bound.append((names, key, value))
        return value

    def expect_items(self, *x: Iterable[object]) -> None:
        """Require that containers keep their items, in their order."""
        self.containers += *x, _END

    def expect_mapping(self, x: Mapping[Any, object]) -> None:
        """Require that a mapping keeps its keys and values, in their order."""
        self.expect_items(x, x.values())

    def expect_names(self, x: Mapping[str, object]) -> None:
        """Require that an object or a class keeps its attributes."""
        if all(type(name) is str for name in x):
            self.namespaces.append(x)
        else:
            self.expect_mapping(x)

    def at(self, head: str, tail: str = "") -> _Place:
        """A place, unless this is a walk for a body, whose places nobody reads."""
        return _SOMEWHERE if self.whole else _Place(head, tail)

    def leaf(self, place: _Place, key: object, value: object) -> None:
        if not self.whole:
            self.leaves[str(place)] = _Leaf(key, value)

    def hide(self, x: object, place: _Place, why: str) -> None:
        """Note a value that only its identity can be compared by, and why."""
        if self.whole:
            raise _Unwatched(f"{place}: {why}")
        self.opaque[str(place)] = why
        self.leaf(place, (id(x), type(x)), x)

    def value(self, x: Any, place: _Place) -> None:
        """Look at a value and its items."""
        if type(x) in _FIXED_TYPES or (isinstance(x, np.generic if self.whole else _FIXED)
                                       and not isinstance(x, np.void)
                                       and not (self.whole and self.class_of_user(type(x)))):
            if not self.whole:
                self.leaf(place, bit_key(x), x)
                self.name(x)
            return None
        if id(x) in self._seen:
            return None
        self._seen[id(x)] = x       # kept alive, so that no other object gets its id
        if self.whole and len(self._seen) > _BODY_VALUES:
            raise _Unwatched("too much is read")
        for kinds, look in _LOOKS:
            if isinstance(x, kinds):
                return look(self, x, place)
        return self.instance(x, place)

    def name(self, x: object) -> None:
        """Note a text that may name an attribute."""
        if type(x) is str and x.isidentifier():
            self.texts.add(x)

    # Functions

    def function(self, f: types.FunctionType, place: _Place, own: bool = False) -> None:
        """A function: the names that its code reads, if it is the user's, and its closure.

        `own`: somebody else compares the function's code and defaults.
        """
        users, name, module = self.of_user(f), f.__qualname__, f.__globals__.get("__name__")
        appended_to = all_reads(f.__code__).given if users else ()
        if _of_its_module(f):
            self.opened(f)
            return
        of_tuple = name.endswith(".__new__") and str(module).startswith("namedtuple_")
        # A function stays the same object when its code or defaults are replaced.
        if of_tuple or (users and not own):
            self.functions.append((f, f.__code__, f.__defaults__, f.__kwdefaults__))
        if of_tuple:
            self.value(f.__defaults__, place)
        elif users:
            self.of_users(f, place)
        elif self.whole and (impure(f"{module}.{f.__code__.co_name}") or not _library(module)):
            raise _Unwatched(f"{name} reads more than its arguments")
        for n, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
            if has_content(cell):
                x = self.expect(cell, "cell_contents")
                if n in appended_to and type(x) is list:      # the code only writes to it
                    continue
                if users or _may_change(x):
                    self.value(x, self.at(f"the closure cell {n}", f" of {name}"))
        if "__wrapped__" in f.__dict__:
            self.value(f.__dict__["__wrapped__"], place.within(".__wrapped__"))

    def opened(self, f: types.FunctionType) -> None:
        """Count the attribute that a library's function reads of any class given to it."""
        if self.whole and f.__module__ in _CLASS_ATTRIBUTES_READ:
            self.asked = True
            self.names.add(_CLASS_ATTRIBUTES_READ[f.__module__])

    def of_users(self, f: types.FunctionType, place: _Place) -> None:
        """A user's function apart from its closure: names, defaults and attributes."""
        self.leaf(place, f.__code__, f)
        self.home = self.home or f.__module__
        self.code(f)
        if f.__kwdefaults__ is not None:
            self.expect_mapping(f.__kwdefaults__)
        if f.__defaults__ or f.__kwdefaults__:
            parameters = f.__code__.co_varnames[:f.__code__.co_argcount]
            for n, x in [*zip(parameters[::-1], (f.__defaults__ or ())[::-1], strict=False),
                         *(f.__kwdefaults__ or {}).items()]:
                self.value(x, self.at(f"the default {n}", f" of {f.__qualname__}"))
        for n in _FUNCTION_ATTRIBUTES & self.attributes if self.whole else ():
            self.value(self.expect(f, n), place)
        self.set_on(f, place)

    def set_on(self, f: object, place: _Place) -> None:
        """The attributes that are set on a callable, and those that code may ask for in vain."""
        names: dict[str, object] | None = getattr(f, "__dict__", None)
        if names or (names is not None and self.lacked):
            self.asked = True
            for n in sorted((self.attributes & names.keys()) | self.lacked):
                item = self.in_names(names, n)
                if item is not ABSENT:
                    self.value(item, place.within(f".{n}"))

    def code(self, f: types.FunctionType) -> None:
        """The globals that the code of a user's function reads."""
        reads, names = all_reads(f.__code__), f.__globals__
        self.names |= reads.names
        self.lacking |= reads.names if reads.catches else reads.texts
        self._loose |= reads.loose | reads.texts
        if self.whole and reads.computed:
            raise _Unwatched(f"{f.__qualname__} reads by texts: {reads.computed}")
        tail = "" if f.__module__ == self.home else f" of {f.__module__}"
        for path in reads.paths:
            if path[0] in reads.given and type(names.get(path[0])) is list:
                self.in_names(names, path[0])       # a list that the code only writes to
            else:
                self.path(path, f, tail)
        if reads.computed:
            self.by_text = True
            for n in sorted(self.lacked):
                self.path((n,), f, tail)
        for n, level in reads.imports:
            self.imported(n, level, names, tail)

    def path(self, path: tuple[str, ...], f: types.FunctionType, tail: str) -> None:
        """A global, followed through modules by the attributes that the code asks for."""
        name, *attributes = path
        value = self.in_names(f.__globals__, name)
        if value is ABSENT:
            if self.whole:
                value = self.in_names(f.__builtins__, name)
                if name in _READ_ALL_NAMES or impure(f"builtins.{name}"):
                    raise _Unwatched(f"{name} reads more than its arguments")
                self.value(value, self.at(name, ""))
            return
        place = self.at(f"the global {name}", tail)
        for attribute in attributes:
            if not isinstance(value, types.ModuleType):
                break
            if self.of_library(value):
                value = self.of_module(value, attribute, place)
                if type(value) is types.FunctionType and _of_its_module(value):
                    self.opened(value)
                    return
            else:
                value = self.of_users_module(value, attribute, place)
            if value is ABSENT:
                return
            place = place.within(f".{attribute}")
        self.value(value, place)

    def of_module(self, module: types.ModuleType, name: str, place: _Place) -> object:
        """An attribute of an installed module: the module's version stands for its value."""
        if not self.whole:
            return vars(module).get(name, ABSENT)
        if not _library(module.__name__) or impure(f"{module.__name__}.{name}"):
            raise _Unwatched(f"{place}.{name} reads more than its arguments")
        value = getattr(module, name, ABSENT)      # this may import it
        if name in vars(module) or value is ABSENT:
            self.in_names(vars(module), name)
        return value

    def of_users_module(self, module: types.ModuleType, name: str, place: _Place) -> object:
        """An attribute of a user's module; if `__getattr__` computes it, what that reads."""
        value = self.in_names(vars(module), name)
        if self.whole:
            if type(module) is not types.ModuleType:
                self.value(type(module), place)
            if value is ABSENT and self.in_names(vars(module), "__getattr__") is not ABSENT:
                self.value(vars(module)["__getattr__"], place)
        return value

    def imported(self, name: str, level: int, names: Mapping[str, object], tail: str) -> None:
        """A module that is imported when the function is called."""
        if level:
            name = importlib.util.resolve_name("." * level + name, str(names.get("__package__")))
        parts = name.split(".")
        for i in range(1, len(parts) + 1):
            module = self.in_names(sys.modules, ".".join(parts[:i]))
            if module is not ABSENT:
                self.value(module, self.at(f"the module {'.'.join(parts[:i])}", tail))
            elif self.whole:
                raise _Unwatched(f"{name} is imported when it is read")

    def wrapper(self, f: Any, place: _Place) -> None:
        if _of_its_module(f):
            return
        wrapped = f.__wrapped__
        if isinstance(f, functools._lru_cache_wrapper) and self.whole and not (
                isinstance(wrapped, types.FunctionType) and not self.of_user(wrapped)):
            raise _Unwatched(f"{place} has a cache")
        self.value(wrapped, place)
        self.set_on(f, place)

    def partial(self, f: functools.partial, place: _Place) -> None:
        for part in ("func", "args", "keywords"):   # `__setstate__` can replace them
            self.expect(f, part)
        self.value(f.func, place)
        for i, x in enumerate(f.args):
            self.value(x, self.at(f"the partial's argument {i}", place.tail))
        self.expect_mapping(f.keywords)
        for name, x in f.keywords.items():
            self.value(x, self.at(f"the partial's argument {name}", place.tail))
        self.set_on(f, place)
        self.more(f, place, (functools.partial,))

    def method(self, f: types.MethodType, place: _Place) -> None:
        self.value(f.__func__, place)
        self.value(f.__self__, self.at("self", f" of {getattr(f.__func__, '__qualname__', '')}"))

    def descriptor(self, x: object, place: _Place) -> None:
        for part in ("__func__", "fget", "func"):
            if callable(getattr(x, part, None)):
                self.value(self.expect(x, part) if part == "func" else getattr(x, part), place)
        self.set_on(x, place)
        self.more(x, place, (staticmethod, classmethod, property, functools.cached_property))

    def holder(self, x: object, place: _Place) -> None:
        """The parts of an immutable object, which may be mutable or the user's."""
        if self.whole:
            for item in gc.get_referents(x):
                # The attributes of NumPy's functions are their names.
                if not isinstance(x, np.ufunc) or callable(item):
                    self.value(item, place)
        self.leaf(place, _ByValue(x) if type(x) is not slice else (slice, str(x)), x)

    def builtin(self, f: Any, place: _Place) -> None:
        """A function written in C: of a module that a version describes, or of an object."""
        owner = getattr(f, "__self__", None)
        if owner is not None and not isinstance(owner, (types.ModuleType, type)):
            self.value(owner, place)
        elif self.whole:
            module = getattr(f, "__module__", None) or getattr(
                getattr(f, "__objclass__", None), "__module__", None) or getattr(
                    owner, "__module__", None)
            module = module and module.lstrip("_")  # `_operator` is the C half of `operator`
            if module is not None and (not _library(module) or impure(f"{module}.{f.__name__}")):
                raise _Unwatched(f"{place} reads more than its arguments")
        self.leaf(place, _ByValue(f), f)

    # Values

    def items(self, x: Sequence[object], place: _Place) -> None:
        self.leaf(place.within(" (its type)"), type(x), type(x))
        if len(x) > _CONTAINER_ITEMS:
            return self.hide(x, place, f"it has {len(x):,} items, more than {_CONTAINER_ITEMS}")
        if not isinstance(x, tuple):
            self.expect_items(x)
        for i, item in enumerate(x):
            self.value(item, place if self.whole else place.within(f"[{i}]"))
        return self.more(x, place, (tuple, list, deque))

    def dict(self, x: Mapping[Hashable, object], place: _Place) -> None:
        if isinstance(x, Memo):     # a cache, which grows while a function is used
            return None
        if self.whole and type(x) is types.MappingProxyType:
            x, = gc.get_referents(x)    # the mapping behind it, which may compute its items
            if type(x) is not dict:
                return self.value(x, place)
        if len(x) > _CONTAINER_ITEMS:
            return self.hide(x, place, f"it has {len(x):,} items, more than {_CONTAINER_ITEMS}")
        self.expect_mapping(x)
        # Keys in their order, which a loop over the dict follows.
        if not self.whole:
            self.leaf(place.within(" (its keys)"), tuple(map(bit_key, x)), list(x))
        for key, item in tuple(x.items()):
            if self.whole:
                self.value(key, place)
            self.name(key)
            self.value(item, place if self.whole else place.within(f"[{clipped(key)}]"))
        if isinstance(x, defaultdict):
            self.value(x.default_factory, place)
        return self.more(x, place, (dict, defaultdict, OrderedDict, types.MappingProxyType))

    def set(self, x: AbstractSet[Hashable], place: _Place) -> None:
        if len(x) > _CONTAINER_ITEMS:
            return self.hide(x, place, f"it has {len(x):,} items, more than {_CONTAINER_ITEMS}")
        if not isinstance(x, frozenset):
            self.expect_items(x)
        if self.whole:
            for item in x:
                self.value(item, place)
        else:
            self.leaf(place, frozenset(map(bit_key, x)), set(x))
        return self.more(x, place, (set, frozenset))

    def more(self, x: object, place: _Place, kinds: tuple[type, ...]) -> None:
        """The attributes of a container whose class is derived from a built-in one."""
        if self.whole and type(x) not in kinds:
            self.instance(x, place)

    def array(self, x: np.ndarray, place: _Place) -> None:
        if x.dtype.hasobject or x.nbytes > _ARRAY_BYTES or (
                self.whole and type(x) not in (np.ndarray, np.memmap, np.recarray)):
            why = ("it has Python objects" if x.dtype.hasobject else f"it has {x.nbytes:,} bytes"
                   if x.nbytes > _ARRAY_BYTES else f"it is a {type(x).__name__}")
            return self.hide(x, place, f"{why}, and may change in place")
        self.value(self.expect(x, "dtype"), place.within(".dtype"))
        self.reads += functools.partial(getattr, x, "shape"), x.tobytes
        if self.whole:
            self.reads += [functools.partial(getattr, x, name) for name in
                           self.attributes & {"flags", "strides"}]
            if "base" in self.attributes:
                self.value(x.base, place)
        return self.leaf(place, (str(x.dtype), x.shape, x.tobytes()), x.copy())

    def structured(self, x: np.void, place: _Place) -> None:
        """A row of a structured array, which may share the array's memory."""
        self.reads.append(x.tobytes)
        return self.leaf(place, (str(x.dtype), x.tobytes()), x.copy())

    def dtype(self, x: np.dtype, place: _Place) -> None:
        if x.names:     # a program can set them
            self.reads.append(functools.partial(repr, x))
        self.leaf(place, _ByValue(x), x)

    def tracer(self, x: object, place: _Place) -> None:
        if self.whole:      # a tracer belongs to one call of one transformation
            raise _Unwatched(f"{place} is traced")
        self.leaf(place, _ByValue(x), x)

    def constant(self, x: object, place: _Place) -> None:
        self.leaf(place, _ByValue(x), x)

    # Objects with attributes

    def module(self, x: types.ModuleType, place: _Place) -> None:
        self.leaf(place, _ByValue(x), x)
        if not self.of_library(x):
            self.asked = True
            for key in sorted(k for k in self.attributes if self.whole or k in vars(x)):
                item = self.of_users_module(x, key, place)
                if item is not ABSENT:
                    self.value(item, place.within(f".{key}"))
        elif self.whole:
            if not _library(x.__name__) or impure(x.__name__):
                raise _Unwatched(f"{place} is a module, and any part of it may be read")
            self._bare.append(x)

    def bare(self) -> None:
        """The names that code may read of library modules which are passed around as values."""
        for module in self._bare:   # grows by the modules that are found in modules
            for name in sorted((self._loose & vars(module).keys()) | self.lacked):
                item = self.of_module(module, name, _SOMEWHERE)
                if item is not ABSENT:
                    self.value(item, _SOMEWHERE)

    def cls(self, x: type, place: _Place) -> None:
        if self.whole and isinstance(x, abc.ABCMeta):   # `register` changes `isinstance`
            self.reads.append(abc.get_cache_token)
        if not self.class_of_user(x):
            if self.whole and (not _library(x.__module__)
                               or impure(f"{x.__module__}.{x.__qualname__}")):
                raise _Unwatched(f"{place} is a class of {x.__module__}")
            return self.leaf(place, _ByValue(x), x)
        self.leaf(place, x.__qualname__, x)
        self.asked = True
        if self.whole:
            for name in ("__mro__", *(self.attributes & {"__name__", "__qualname__"})):
                self.expect(x, name)
            if type(x) is not type:
                self.value(type(x), place)
            for function in registered_functions.get(x) or ():
                if callable(function):
                    self.value(function, place)
        for base in x.__mro__:
            if not self.class_of_user(base):
                if self.whole and base is not x:
                    self.value(base, place)
                continue
            self.names_of_class(base, self.at(
                f"the class attribute {base.__qualname__}", place.tail))
        return None

    def names_of_class(self, base: type, here: _Place) -> None:
        """The attributes that a user's class defines itself (its bases have their own turn)."""
        self.expect_names(vars(base))
        if not self.whole:
            for name in sorted(self.attributes & vars(base).keys()):
                self.value(vars(base)[name], here.within(f".{name}"))
        for name, item in tuple(vars(base).items()):
            method = isinstance(item, _METHOD_TYPES)
            # Operators call methods that no code names.
            if (name[:2] == "__" and (callable(item) or hasattr(type(item), "__get__"))) or (
                    self.whole and (name in self.attributes if method else name[:1] != "_"
                                    or name in self.attributes)):
                self.value(item, here.within(f".{name}"))

    def instance(self, x: object, place: _Place) -> None:
        if self.whole:
            return self.whole_instance(x, place)
        state, readable = state_of(x)
        readable = readable or isinstance(x, types.SimpleNamespace)
        if not (self.class_of_user(type(x)) or type(x) in _SETTINGS_CLASSES
                or type(x).__module__ == "argparse"):
            for name, item in state.items():
                if callable(item):
                    self.value(item, place.within(f".{name}"))
            if readable or type(x).__hash__ not in (None, object.__hash__) or _of_library(x):
                return self.leaf(place, _ByValue(x), x)
        if not readable:
            return self.hide(x, place, f"what a {type(x).__name__} holds cannot be read")
        own = self.expect_object(x)
        self.leaf(place.within(" (its class)"), type(x), type(x))
        self.value(type(x), place)
        self.asked = True
        names = self.attributes & {*state, *[n for c in type(x).__mro__ for n in vars(c)]}
        if isinstance(x, _SETTINGS_CLASSES):   # their code is the standard library's
            names |= state.keys() & {"data", "maps"}
        if own is not None:
            for name in sorted(names | self.lacked):
                self.in_names(own, name)
        for name in names - state.keys():
            base = next(c for c in type(x).__mro__ if name in vars(c))
            self.inherited[str(place.within(f".{name}"))] = str(self.at(
                f"the class attribute {base.__qualname__}", place.tail).within(f".{name}"))
        for name in sorted(names & state.keys()):
            if own is None or name not in own:
                self.expect(x, name)
            self.value(state[name], place.within(f".{name}"))
        return None

    def whole_instance(self, x: object, place: _Place) -> None:
        """An object with all its attributes."""
        cls, module = type(x), type(x).__module__
        users, ours = self.class_of_user(cls), module.partition(".")[0] in ("olympus", "jaxlib")
        state, readable = state_of(x)
        if module == "olympus._src.base.config":    # some options are not part of the Context
            raise _Unwatched(f"{place} is an option")
        if not users and not readable and (ours or cls in _CONSTANT):
            return
        if not (readable or cls in (types.SimpleNamespace, np.vectorize)) or not (
                users or _library(module) or module == "argparse"):
            raise _Unwatched(f"{place} is a {cls.__name__}")
        own = self.expect_object(x)
        if users:
            self.value(cls, place)
        if own is not None:
            self.expect_names(own)
        for base in cls.__mro__ if readable and not ours else ():
            for name in slots_of(base):     # an empty slot may get a value
                self.expect(x, name)
        for item in state.values():
            # The plain attributes of Olympus's own objects stay as they are.
            if not ours or _may_change(item):
                self.value(item, place)

    # Code and classes are a user's or a library's. For bodies everything without a version is the
    # user's, also in site-packages.

    def of_user(self, f: types.FunctionType) -> bool:
        return code_of_users(f.__code__, f.__globals__) and (
            self.whole or SITE not in f.__code__.co_filename)

    def of_library(self, module: types.ModuleType) -> bool:
        """Whether a module is not a user's."""
        file = vars(module).get("__file__")     # without `__getattr__` of the module
        if file is None:    # built into Python, or made while the program runs
            return vars(module).get("__spec__") is not None
        return not file_of_users(file, vars(module)) or not (self.whole or SITE not in file)

    def class_of_user(self, cls: type) -> bool:
        module = sys.modules.get(cls.__module__)
        return bool(cls.__flags__ & _HEAP_TYPE) and (
            module is None or not self.of_library(module))


_METHOD_TYPES = (types.FunctionType, staticmethod, classmethod, property, functools.cached_property,
                 functools._lru_cache_wrapper, lib.PjitFunction)
# Objects made by C that never change.
_CONSTANT = frozenset((
    re.Pattern, re.Match, types.CodeType, object))

# Classes of the standard library whose objects hold what users put there.
_SETTINGS_CLASSES = (types.SimpleNamespace, ChainMap, UserDict, UserList)

# Types, with the method that looks at their values; the first that fits is taken.
_LOOKS: tuple[tuple[Any, Callable[[Walk, Any, _Place], None]], ...] = (
    (types.FunctionType, Walk.function),
    ((lib.PjitFunction, functools._lru_cache_wrapper), Walk.wrapper),
    (functools.partial, Walk.partial),
    (types.MethodType, Walk.method),
    ((staticmethod, classmethod, property, functools.cached_property), Walk.descriptor),
    (type, Walk.cls),
    (types.ModuleType, Walk.module),
    ((tuple, list, deque), Walk.items),
    ((dict, types.MappingProxyType), Walk.dict),
    ((set, frozenset), Walk.set),
    (np.ndarray, Walk.array),
    ((np.ufunc, slice, operator.itemgetter, types.GenericAlias, types.UnionType, typing.TypeVar),
     Walk.holder),
    (np.void, Walk.structured),
    (Tracer, Walk.tracer),
    ((types.BuiltinFunctionType, types.MethodWrapperType, type(np.sum)), Walk.builtin),
    (np.dtype, Walk.dtype),
    ((lib.Array, types.MemberDescriptorType, types.GetSetDescriptorType,
      types.WrapperDescriptorType, types.MethodDescriptorType,
      types.ClassMethodDescriptorType, type(_Place.head)), Walk.constant),
)


@functools.lru_cache(4096)
def _library(module: object) -> bool:
    """Whether a module's version determines what its functions do."""
    return versioned(module) and str(module).partition(".")[0] not in _READ_SETTINGS


def _of_its_module(f: Callable[..., object]) -> bool:
    """Whether a library's function is a global of its module, and therefore no closure."""
    module = f.__module__
    if not _library(module):
        return False
    path = f.__qualname__
    return vars(sys.modules.get(module, types)).get(path) is f and not impure(f"{module}.{path}")


def _may_change(x: object) -> bool:
    """Whether a value inside a library's object may be the user's and may change."""
    return callable(x) or isinstance(x, (Tracer, np.ndarray, list, tuple, dict, set))


def _of_library(x: object) -> bool:
    return type(x).__module__.partition(".")[0] in ("olympus", "numpy", "jaxlib", "ml_dtypes")
