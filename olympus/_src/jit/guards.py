"""Purity guards: what a traced function read besides its arguments, and whether it has changed.

A program keeps the values that Python had while the function was traced. `Captures` finds them by
the names in the function's code, and in that of the user's functions that it calls: globals,
closure cells, defaults, attributes, and what is in lists, dicts, sets and NumPy arrays. A look at
each call compares objects by identity; only where one is another object, values are compared.

An attribute counts as read if any of the code that is reached reads one of its name.
"""

from __future__ import annotations

import contextlib
import dis
import functools
import operator
import sys
import types
from collections import deque
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, NamedTuple, TypeVar

import numpy as np

from ..base import lib, source
from ..base.errors import StaleValueError, StaleValueWarning
from ..base.typing import PyTree
from ..base.util import Memo, bit_key, clipped
from ..core.trace import Tracer
from .stable_key import SITE, code_of_users, file_of_users, state_of

__all__ = ["Guard", "check_mode"]

K = TypeVar("K")        # of attributes, cells or items: what a value is read by
_MOST_BYTES = 1 << 14       # of a NumPy array that is compared at each call
_MOST_ITEMS = 256           # of a container
_MADE_BY_CLASS = 1 << 9  # the flag of types that a class statement made
_SHOWN = 3                  # changes that a message names
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...), np.generic, range, slice)
_CELL = operator.attrgetter("cell_contents")
_IN_FUNCTION = ("__code__", "__defaults__", "__kwdefaults__")


def check_mode(guards: object) -> None:
    """ValueError for a value of `jit(guards=…)` that makes no sense."""
    if guards not in (None, "off", "warn", "error", "retrace"):
        raise ValueError(f"jit: guards={guards!r} given; 'off', 'warn', 'error', 'retrace', or None"
                         " for what olympus_jit_guards says, is required.")


class Change(NamedTuple):
    """A value that is another than when the function was traced."""

    where: str
    before: str
    now: str

    def __str__(self) -> str:
        return f"{self.where} was {self.before} and is now {self.now}"


class Captures:
    """The values that a function read besides its arguments, and how to look at them again."""

    def __init__(self, fun: Callable[..., PyTree]) -> None:
        self.fun = fun
        names: set[str] = set()
        while True:     # code that is reached by an attribute may read others
            self._found = _Walk(names)
            self._found.value(fun, _Place("the function", ""))
            if self._found.names == names:
                break
            names = self._found.names

    @property
    def opaque(self) -> dict[str, str]:
        """The places of values that cannot be compared, with the reason."""
        return self._found.opaque

    def same(self) -> bool:
        """Whether every place holds the object that it held: no values are compared."""
        # Identity, by `map`: a call of which nothing changed, nearly all of them, ends here.
        try:
            for get, keys, was in self._found.expected:
                if not all(map(operator.is_, map(get, keys), was)):
                    return False
            return all(read() == was for read, was in self._found.equal)
        except (ValueError, AttributeError, IndexError):    # the place itself is gone
            return False

    def changes(self) -> list[Change]:
        """The changes in value; if there are none, the new objects take the place of the old."""
        # By place and value: a list that was built anew with equal items is no change.
        new = Captures(self.fun)
        old, now = self._found.leaves, new._found.leaves
        found = [Change(where, _shown(old, where), _shown(now, where))
                 for where in dict.fromkeys([*old, *now])
                 if where not in old or where not in now or old[where].key != now[where].key]
        if not found:
            self._found = new._found
        return found


class Guard:
    """The captures of a jitted function, and the changes that were told."""

    def __init__(self, fun: Callable[..., PyTree], name: str) -> None:
        self.fun, self.name = fun, name
        self.captures: Memo = Memo(1)       # of the programs that there are
        self._told: set[Any] = set()        # changes and places

    def keep(self) -> None:
        """Note what has been read, when the first program has been traced."""
        if self.captures:
            return
        found = self.captures[None] = Captures(self.fun)
        for where, why in found.opaque.items():
            if where not in self._told:
                self._told.add(where)
                source.warn(
                    f"jit: the guards of {self.name} cannot compare {where}: {why}.\n  That another"
                    " object takes its place is seen, what happens within it is not.\n  Pass it as "
                    "an argument, or read a tuple of numbers in its place.", StaleValueWarning)

    def changed(self, mode: str) -> bool:
        """Whether to trace anew for what has changed; it is told, in other modes."""
        found = self.captures.get(None)
        if found is None or found.same():
            return False
        changes = found.changes()
        if mode == "error" and changes:
            raise StaleValueError(self._text(changes))
        if mode == "warn" and not self._told.issuperset(changes):
            self._told.update(changes)
            source.warn(self._text(changes), StaleValueWarning)
        return mode == "retrace" and bool(changes)

    def _text(self, changes: Sequence[Change]) -> str:
        more = f"\n  and {len(changes) - _SHOWN} more" if len(changes) > _SHOWN else ""
        return "".join([f"jit: {self.name} reads what has changed since it was traced.",
                        *[f"\n  {c}." for c in changes[:_SHOWN]], more,
                        "\n  Its program has the old value. Pass it as an argument; or let"
                        '\n  jit(guards="retrace") trace again for each change.'])


# Places and values -------------------------------------------------------------------------------

class _Place(NamedTuple):
    """Where a value is: `the global cfg` and `.lr`, and of which function, if that matters."""

    head: str
    tail: str

    def __str__(self) -> str:
        return self.head + self.tail

    def within(self, step: str) -> _Place:
        return _Place(self.head + step, self.tail)


class _Leaf(NamedTuple):
    key: Any        # equal for equal values only
    value: Any      # for messages; what can change is copied


class _ByValue:
    """A key of an object that is compared when another one takes its place."""

    __slots__ = ("value",)
    __hash__ = object.__hash__

    def __init__(self, value: object) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, _ByValue) or type(self.value) is not type(other.value):
            return False
        x, y = self.value, other.value
        if x is y or isinstance(x, Tracer):
            return x is y
        if isinstance(x, lib.ArrayImpl):
            return _same_array(x, y)
        with contextlib.suppress(Exception):    # of users' classes
            return bool(x == y)
        return False


def _same_array(x: Any, y: Any) -> bool:
    if x.aval != y.aval or x.is_deleted() or y.is_deleted() or not (
            x.is_fully_addressable and y.is_fully_addressable):
        return False
    return lib.to_numpy(x).tobytes() == lib.to_numpy(y).tobytes()


def _shown(leaves: dict[str, _Leaf], where: str) -> str:
    if where not in leaves:
        return "absent"
    value = leaves[where].value
    text = getattr(value, "__qualname__", None) if callable(value) else None
    return " ".join(text.split()) if text else " ".join(clipped(value).split())


class _Walk:
    """One walk from a function to all that it reads.

    Attributes:
      expected: (get, keys, values): each `get(key)` is to be the object that it was.
      equal: (read, value): what is read is to be equal.
      leaves: values by place, for a comparison where an object is another one.
      opaque: what cannot be compared, with the reason.
      names: the names of attributes that the code that was met reads.
    """

    def __init__(self, names: set[str]) -> None:
        self.attributes = names
        self.names: set[str] = set()
        self.expected: list[tuple[Callable[[Any], Any], Sequence[Any], tuple[Any, ...]]] = []
        self.equal: list[tuple[Callable[[], Any], Any]] = []
        self.leaves: dict[str, _Leaf] = {}
        self.opaque: dict[str, str] = {}
        self.home: Any = None       # the module of the function that is guarded
        self._seen: dict[int, Any] = {}

    def expect(self, get: Callable[[K], object], keys: Sequence[K]) -> tuple[object, ...]:
        """The values of keys; each is to stay the object that it is."""
        values = tuple(map(get, keys))
        if keys:
            self.expected.append((get, keys, values))
        return values

    def leaf(self, place: _Place, key: object, value: object) -> None:
        self.leaves[str(place)] = _Leaf(key, value)

    def value(self, x: object, place: _Place) -> None:
        """Look at a value, and at what is in it."""
        if isinstance(x, _PLAIN):
            return self.leaf(place, bit_key(x) if type(x) is not slice else (slice, str(x)), x)
        if id(x) in self._seen:
            return None
        self._seen[id(x)] = x       # kept, or its id could be another object's meanwhile
        for kinds, look in _LOOKS:
            if isinstance(x, kinds):
                return look(self, x, place)
        return self.instance(x, place)

    # Functions

    def function(self, f: types.FunctionType, place: _Place) -> None:
        """A function: what its code reads, if it is the user's, and what it closes over."""
        users, name = _of_user(f.__code__, f.__globals__), f.__qualname__
        # One whose code or defaults are exchanged stays the same object.
        self.expect(functools.partial(getattr, f), _IN_FUNCTION)
        if users:
            self.leaf(place, f.__code__, f)
            self.home = self.home or f.__module__
            globals_read, attributes = names_read(f.__code__)
            self.names |= attributes
            there = tuple(n for n in globals_read if n in f.__globals__)
            tail = "" if f.__module__ == self.home else f" of {f.__module__}"
            self.expect(f.__globals__.get, globals_read)
            for n in there:
                self.value(f.__globals__[n], _Place(f"the global {n}", tail))
            parameters = f.__code__.co_varnames[:f.__code__.co_argcount]
            for n, x in [*zip(parameters[::-1], (f.__defaults__ or ())[::-1]),
                         *(f.__kwdefaults__ or {}).items()]:
                self.value(x, _Place(f"the default {n}", f" of {name}"))
        cells = [(n, c) for n, c in zip(f.__code__.co_freevars, f.__closure__ or ()) if _filled(c)]
        values = self.expect(_CELL, tuple(c for _, c in cells))
        for (n, _), x in zip(cells, values, strict=True):
            if users or callable(x):
                self.value(x, _Place(f"the closure cell {n}", f" of {name}"))
        if "__wrapped__" in vars(f):
            self.value(vars(f)["__wrapped__"], place.within(".__wrapped__"))

    def wrapper(self, f: Any, place: _Place) -> None:
        self.value(f.__wrapped__, place)

    def partial(self, f: functools.partial, place: _Place) -> None:
        self.value(f.func, place)
        for i, x in enumerate(f.args):
            self.value(x, _Place(f"the partial's argument {i}", place.tail))
        for name, x in f.keywords.items():
            self.value(x, _Place(f"the partial's argument {name}", place.tail))

    def method(self, f: types.MethodType, place: _Place) -> None:
        self.value(f.__func__, place)
        self.value(f.__self__, _Place("self", f" of {f.__func__.__qualname__}"))

    def descriptor(self, x: object, place: _Place) -> None:
        for part in ("__func__", "fget", "func"):
            if isinstance(getattr(x, part, None), types.FunctionType):
                self.value(getattr(x, part), place)

    # Values

    def items(self, x: Sequence[object], place: _Place) -> None:
        self.leaf(place.within(" (its type)"), type(x), type(x))
        if len(x) > _MOST_ITEMS:
            return self.hide(x, place, f"it has {len(x):,} items, more than {_MOST_ITEMS}")
        if not isinstance(x, tuple):
            self.equal.append((functools.partial(len, x), len(x)))
        for i, item in enumerate(self.expect(x.__getitem__, range(len(x)))):
            self.value(item, place.within(f"[{i}]"))
        return None

    def dict(self, x: Mapping[Hashable, object], place: _Place) -> None:
        if len(x) > _MOST_ITEMS:
            return self.hide(x, place, f"it has {len(x):,} items, more than {_MOST_ITEMS}")
        self.equal.append((functools.partial(len, x), len(x)))
        # In their order, which a loop over it follows.
        self.leaf(place.within(" (its keys)"), tuple(map(bit_key, x)), list(x))
        keys = tuple(x)
        for key, item in zip(keys, self.expect(x.get, keys), strict=True):
            self.value(item, place.within(f"[{clipped(key)}]"))
        return None

    def set(self, x: AbstractSet[Hashable], place: _Place) -> None:
        if len(x) > _MOST_ITEMS:
            return self.hide(x, place, f"it has {len(x):,} items, more than {_MOST_ITEMS}")
        now = _bits_of_set(x)
        self.equal.append((functools.partial(_bits_of_set, x), now))
        return self.leaf(place, now, set(x))

    def array(self, x: np.ndarray, place: _Place) -> None:
        if x.dtype.hasobject or x.nbytes > _MOST_BYTES:
            why = "it has Python objects" if x.dtype.hasobject else f"it has {x.nbytes:,} bytes"
            return self.hide(x, place, f"{why}, and may change in place")
        self.equal.append((x.tobytes, x.tobytes()))
        return self.leaf(place, (str(x.dtype), x.shape, x.tobytes()), x.copy())

    def constant(self, x: object, place: _Place) -> None:
        self.leaf(place, _ByValue(x), x)

    def hide(self, x: object, place: _Place, why: str) -> None:
        """Note a value that is known by its identity only."""
        self.opaque[str(place)] = why
        self.leaf(place, (id(x), type(x)), x)

    # Objects with attributes

    def module(self, x: types.ModuleType, place: _Place) -> None:
        self.leaf(place, _ByValue(x), x)
        if _module_of_user(x):
            self.named(vars(x), place)

    def named(self, names: Mapping[str, object], place: _Place) -> None:
        """The attributes of these that code reads."""
        keys = tuple(sorted(k for k in self.attributes if k in names))
        for key, item in zip(keys, self.expect(names.get, keys), strict=True):
            self.value(item, place.within(f".{key}"))

    def cls(self, x: type, place: _Place) -> None:
        if not _class_of_user(x):
            return self.leaf(place, _ByValue(x), x)
        self.leaf(place, x.__qualname__, x)
        for base in x.__mro__:
            if _class_of_user(base):
                here = _Place(f"the class attribute {base.__qualname__}", place.tail)
                self.named(vars(base), here)
                for name, item in vars(base).items():   # operators call them without a name
                    if name[:2] == "__" and isinstance(item, types.FunctionType):
                        self.value(item, here.within(f".{name}"))
        return None

    def instance(self, x: object, place: _Place) -> None:
        state, readable = state_of(x)
        if not _class_of_user(type(x)):
            for name, item in state.items():
                if callable(item):
                    self.value(item, place.within(f".{name}"))
            if readable or type(x).__hash__ not in (None, object.__hash__) or _of_library(x):
                return self.leaf(place, _ByValue(x), x)
        if not readable:
            return self.hide(x, place, f"what a {type(x).__name__} holds cannot be read")
        self.value(type(x), place)
        names = self.attributes & {*state, *[n for c in type(x).__mro__ for n in vars(c)]}
        if hasattr(x, "__dict__"):
            self.expect(vars(x).get, tuple(sorted(names)))
        slots = tuple(sorted(names & state.keys() - getattr(x, "__dict__", {}).keys()))
        self.expect(functools.partial(getattr, x), slots)
        for name in sorted(names & state.keys()):
            self.value(state[name], place.within(f".{name}"))
        return None


# By kind, the first that fits.
_LOOKS: tuple[tuple[Any, Callable[[_Walk, Any, _Place], None]], ...] = (
    (types.FunctionType, _Walk.function),
    ((lib.PjitFunction, functools._lru_cache_wrapper), _Walk.wrapper),
    (functools.partial, _Walk.partial),
    (types.MethodType, _Walk.method),
    ((staticmethod, classmethod, property, functools.cached_property), _Walk.descriptor),
    (type, _Walk.cls),
    (types.ModuleType, _Walk.module),
    ((tuple, list, deque), _Walk.items),
    ((dict, types.MappingProxyType), _Walk.dict),
    ((set, frozenset), _Walk.set),
    (np.ndarray, _Walk.array),
    ((lib.Array, Tracer, np.ufunc, np.dtype, types.BuiltinFunctionType, types.MemberDescriptorType,
      types.GetSetDescriptorType, types.WrapperDescriptorType, types.MethodDescriptorType),
     _Walk.constant),
)


@functools.lru_cache(maxsize=4096)
def names_read(code: types.CodeType) -> tuple[tuple[str, ...], frozenset[str]]:
    """The globals, and the attributes of anything, that code and the functions in it read."""
    found: dict[str, None] = {}
    attributes: set[str] = set()
    for op in dis.get_instructions(code):
        if op.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found[op.argval] = None
        elif op.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            attributes.add(op.argval)
    for inner in _codes_in(code):
        names, more = names_read(inner)
        found |= dict.fromkeys(names)
        attributes |= more
    return tuple(found), frozenset(attributes)


def _codes_in(code: types.CodeType) -> Iterator[types.CodeType]:
    return (c for c in code.co_consts if isinstance(c, types.CodeType))


def _bits_of_set(x: AbstractSet[Hashable]) -> frozenset[tuple[type, Hashable]]:
    return frozenset(map(bit_key, x))


def _filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell       # True: to read an empty one raises
    except ValueError:
        return False


def _of_user(code: types.CodeType, names: Mapping[str, object]) -> bool:
    """Whether code is the user's own: no library's, as those do not change while they are used."""
    return code_of_users(code, names) and SITE not in code.co_filename


def _module_of_user(module: types.ModuleType) -> bool:
    file = getattr(module, "__file__", None)
    if file is None:    # of Python itself, or made while the program runs
        return getattr(module, "__spec__", None) is None
    return file_of_users(file, vars(module)) and SITE not in file


def _class_of_user(cls: type) -> bool:
    module = sys.modules.get(cls.__module__)
    return bool(cls.__flags__ & _MADE_BY_CLASS) and (module is None or _module_of_user(module))


def _of_library(x: object) -> bool:
    return type(x).__module__.partition(".")[0] in ("olympus", "numpy", "jaxlib", "ml_dtypes")
