"""Keys of functions that hold in other processes: digests of code and of all values it may read.

A function's key is a digest of its code and of all that can be reached from it: functions and
classes of the user by their own code, values by their content, Olympus, NumPy and pure modules of
Python by their versions. Line numbers and comments do not count. A value without such a digest is
refused by its name: a guess could run a program that differs from the source.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import functools
import hashlib
import importlib.util
import logging
import os
import re
import sys
import types
import typing
from collections import OrderedDict, defaultdict, namedtuple
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path, PurePath
from typing import Any

import numpy as np

from ...version import __version__
from ..base import config, lib
from ..base.code_reads import own_reads
from ..base.typing import Array
from ..base.users import (
    CACHES, USED, code_of_users, home, impure, read_by_name, state_of, versioned,
)
from ..base.util import Memo
from ..core.primitive import Primitive
from ..core.trace import FOREIGN_AVALS, REFERENCES, Tracer, typeof
from ..runtime.eager import PjitFunction
from ..types.dtypes import is_extended
from ..types.mesh import Mesh
from ..types.sharding import NamedSharding
from ..types.tree_registry import PyTreeDef, registered_functions

_NOTED_AS_THEY_ARE = (type(None), bool, int, str, bytes, type(...), type(NotImplemented))
_BUILTIN = (types.BuiltinFunctionType, types.WrapperDescriptorType, types.MethodDescriptorType,
            types.MethodWrapperType, types.ClassMethodDescriptorType, np.ufunc, type(np.sum))
_NO_CONTENT = frozenset((
    "__dict__", "__weakref__", "__doc__", "__module__", "__abc_impl", "_abc_impl",
    "__annotations__", "__orig_bases__", "__parameters__", "__firstlineno__",
    "__static_attributes__", "__annotate__", "__annotate_func__", "__annotations_cache__",
    "__type_params__"))


class UnstableError(TypeError):
    """A value that a persistent function reads has no digest that holds in other processes."""


@functools.cache
def software() -> str:
    """A digest of all that tracing runs besides the user's code: versions, and Olympus's files."""
    # Times and sizes, not contents: every process that looks for a program asks.
    root = Path(home())
    files = sorted((str(p.relative_to(root)), p.stat().st_size, p.stat().st_mtime_ns)
                   for p in root.rglob("*.py"))
    for package in USED:       # as they were installed
        found = importlib.util.find_spec(package)
        if found is not None and found.origin is not None:
            stat = os.stat(found.origin)
            files.append((found.origin, stat.st_size, stat.st_mtime_ns))
    text = repr((sys.version, sys.implementation.cache_tag, np.__version__,
                 getattr(sys.modules["ml_dtypes"], "__version__", None), lib.jaxlib_version,
                 __version__, files))
    return hashlib.blake2b(text.encode(), digest_size=20).hexdigest()


class StableKey:
    """A digest that grows by values.

    Attributes:
      codes: the user's code that was reached on the way.
      caches: the user's functions with a cache, whose entries may depend on earlier values.
    """

    def __init__(self) -> None:
        self.codes: set[types.CodeType] = set()
        self.caches: list[Any] = []
        self._bare: list[tuple[types.ModuleType, str]] = []     # NumPy and Olympus as values
        self._hash = hashlib.blake2b(digest_size=20)
        self._seen: dict[int, int] = {}
        self._alive: list[Any] = []     # objects in `_seen`, so that their ids stay theirs

    def hexdigest(self) -> str:
        """The digest of all that was added."""
        return self._hash.hexdigest()

    def check(self) -> None:
        """UnstableError if code may read, of a whole module, an attribute that reads files."""
        for module, where in self._bare:
            for code in self.codes:
                reads = own_reads(code)
                named = (reads.loose | reads.texts) & read_by_name(module.__name__)
                if named or reads.computed:
                    self._refuse(module, where, (
                        f": a whole module, and {code.co_qualname} reads "
                        f"{' and '.join(sorted(named)) or 'by ' + reads.computed} of something; "
                        f"name {module.__name__} where its attribute is read"))

    def note(self, *parts: object) -> None:
        """Add texts, bytes and numbers."""
        self._hash.update(repr(parts).encode())     # as a tuple, which separates the parts

    def add(self, x: Any, where: str) -> None:
        """Add a value that is read; UnstableError if it has no digest."""
        kind = type(x)
        if kind in _NOTED_AS_THEY_ARE:
            self.note(kind.__name__, x)
        elif kind is float or kind is complex:
            self.note(kind.__name__, x.real.hex(), x.imag.hex())    # exact, and -0.0 is not 0.0
        elif kind is tuple:     # equal constants may be one object or two
            self.note("tuple", len(x))
            for i, item in enumerate(x):
                self.add(item, f"{where}[{i}]")
        elif kind is frozenset:
            self._set(x, where)
        elif isinstance(x, types.ModuleType):
            self._module(x, where)
        elif id(x) in self._seen:
            self.note("seen", self._seen[id(x)])
        else:
            self._seen[id(x)] = len(self._seen)
            self._alive.append(x)
            self._object(x, where)

    def _object(self, x: object, where: str) -> None:
        """Add other than plain values, by kind."""
        if type(x) in (list, dict):
            return self._items(x, where)
        if type(x) is set:
            return self._set(x, where)
        for kinds, add in _ADDERS:
            if isinstance(x, kinds):
                return add(self, x, where)
        return self._instance(x, where)

    def _refuse(self, x: object, where: str, why: str = "") -> typing.NoReturn:
        raise UnstableError(
            f"jit persist=True: {where} is {x!r:.80} of type {type(x).__name__}"
            f"{why or ', which has no digest that holds in another process'}; functions, classes, "
            "arrays and values made of them are required; pass it as an argument, or leave out "
            "persist.")

    # Code

    def _function(self, f: types.FunctionType, where: str) -> None:
        names = f.__globals__
        cells = list(zip(f.__code__.co_freevars, f.__closure__ or ()))
        if code_of_users(f.__code__, names):
            self.note("function")
            self._code(f.__code__, names, f.__qualname__)
            for name, value in f.__dict__.items():
                if name not in CACHES:
                    self.note(name)
                    self.add(value, f"attribute {name} of {f.__qualname__}")
        else:
            module = names.get("__name__")
            self._check_pure(f, f"{f.__module__}.{f.__name__}", where)
            if not (versioned(module) or str(module).startswith("namedtuple_")):
                self._refuse(f, where, f" of the module {module}, which may do anything")
            # With the line: all lambdas of a module have one name. The version says the rest.
            self.note("function", module, f.__code__.co_qualname, f.__code__.co_firstlineno)
        for name, cell in cells:
            self.note(name)
            try:
                value = cell.cell_contents
            except ValueError:
                self.note("empty")
                continue
            self.add(value, f"{name}, which {f.__qualname__} closes over,")
        self.add(f.__defaults__, f"a default of {f.__qualname__}")
        self.add(f.__kwdefaults__, f"a default of {f.__qualname__}")

    def _code(self, code: types.CodeType, names: Mapping[str, object], where: str) -> None:
        """Add code of the user, and the names of its module that it reads."""
        self.codes.add(code)
        self.note("code", code.co_code, code.co_names, code.co_varnames, code.co_freevars,
                  code.co_cellvars, code.co_flags, code.co_argcount, code.co_posonlyargcount,
                  code.co_kwonlyargcount, code.co_exceptiontable, len(code.co_consts))
        for const in code.co_consts:
            if isinstance(const, types.CodeType):
                self._code(const, names, where)
            else:
                self.add(const, f"a constant of {where}")
        for path in _globals_read(code, where):
            self._global(path, names, where)

    def _global(self, path: tuple[str, ...], names: Mapping[str, object], where: str) -> None:
        """Add a name that code reads, followed through modules by the attributes it asks for."""
        name, *attributes = path
        value = names.get(name, vars(builtins).get(name, _Absent))
        self.note("global", path)
        for i, attribute in enumerate(attributes):
            if not isinstance(value, types.ModuleType):
                break
            if value.__name__.partition(".")[0] == "olympus":
                return self._attribute_of_olympus(value, attributes[i:], where)
            value = getattr(value, attribute, _Absent)
            name += f".{attribute}"
        if value is not _Absent:
            self.add(value, f"{name}, which {where} reads,")
        return None

    def _attribute_of_olympus(self, value: Any, attributes: list[str], where: str) -> None:
        """Digest an attribute of Olympus by the version, unless somebody replaced it."""
        # Modules that were not imported yet stay so: a program from the disk needs none.
        self._check_pure(value, ".".join([value.__name__, *attributes]), where)
        for attribute in attributes:
            value = vars(value).get(attribute) if isinstance(value, types.ModuleType) else None
        if isinstance(value, types.FunctionType) and code_of_users(value.__code__,
                                                                   value.__globals__):
            self.add(value, f"{'.'.join(attributes)}, which {where} reads,")

    def _module(self, module: types.ModuleType, where: str) -> None:
        name = module.__name__
        self._check_pure(module, name, where)
        if not versioned(name):
            self._refuse(module, where, ": a whole module, of which anything may be read; name "
                                        "what is read of it (module.attribute)")
        if name.partition(".")[0] in ("numpy", "olympus"):
            self._bare.append((module, where))
        self._of_process(name)
        self.note("module", name)

    def _of_process(self, module: object) -> None:
        """Add the settings of the process that change a module's results."""
        if module == "decimal":
            context = sys.modules["decimal"].getcontext()
            self.note(context.prec, context.rounding, context.Emin, context.Emax, context.capitals,
                      context.clamp, sorted(s.__name__ for s, on in context.traps.items() if on))

    def _check_pure(self, x: object, path: str, where: str) -> None:
        if impure(path):
            self._refuse(x, where, ", which reads more than its arguments")

    def _builtin(self, x: Callable[..., object], where: str) -> None:
        owner = getattr(x, "__objclass__", None)
        bound = getattr(x, "__self__", None)
        module = getattr(x, "__module__", None) or getattr(owner, "__module__", None)
        name = getattr(x, "__qualname__", None) or x.__name__
        if bound is not None and not isinstance(bound, types.ModuleType):
            self.note("bound", name)
            return self.add(bound, f"the object of {where}")
        if module is None and isinstance(x, np.ufunc):
            module = "numpy"
        if module is not None:
            module = module.lstrip("_")     # `_operator` is the half of `operator` that is in C
            self._check_pure(x, f"{module}.{name}", where)
        if not versioned(module):
            self._refuse(x, where, f" of the module {module}, which may do anything")
        self._of_process(module)
        return self.note("builtin", module, name)

    def _class(self, cls: type, where: str) -> None:
        module = cls.__module__
        if versioned(module) or module == "collections.abc":
            self._check_pure(cls, f"{module}.{cls.__qualname__}", where)
            self._of_process(module)
            return self.note("class", module, cls.__qualname__)
        # 1 << 9 is Py_TPFLAGS_HEAPTYPE. Made by C, of a module without a version; or Python's own.
        if not cls.__flags__ & 1 << 9 or module.partition(".")[0] in sys.stdlib_module_names:
            self._refuse(cls, where)
        self.note("class", cls.__qualname__, len(cls.__bases__))
        self.add(type(cls), f"the metaclass of {cls.__qualname__}")
        for base in cls.__bases__:
            self.add(base, f"a base of {cls.__qualname__}")
        self.add(registered_functions.get(cls), f"what flattens {cls.__qualname__}")
        self.add(FOREIGN_AVALS.get(cls), f"the type of a {cls.__qualname__}")
        for name, value in vars(cls).items():
            if name in _NO_CONTENT or name in CACHES:
                continue
            self.note(name)
            if isinstance(value, (types.MemberDescriptorType, types.GetSetDescriptorType)):
                continue
            self.add(value, f"{cls.__qualname__}.{name}")
        return None

    # Values

    def _instance(self, x: object, where: str) -> None:
        """An object of a class written in Python: its class and its attributes."""
        cls = type(x)
        if cls in REFERENCES:
            raise UnstableError(f"jit persist=True: {where} is a reference {typeof(x)}; arrays are "
                                "required; pass ref[...] and return the new content, or make the "
                                "reference inside.")
        state, has_state = state_of(x)
        if not has_state:
            self._refuse(x, where)
        self.note("instance")
        self.add(cls, f"the class of {where}")
        if isinstance(x, (list, tuple)):
            self.add([*x], f"the items of {where}")
        elif isinstance(x, dict):
            self._items(x, where)
        elif isinstance(x, str):
            self.note("".join(x))
        elif isinstance(x, int):
            self.note(int(x))
        elif isinstance(x, float):
            self.note(float(x).hex())
        for name, value in state.items():
            # Values that Olympus's objects keep, such as their hash, follow from the rest, and
            # may be there or not.
            if not (versioned(cls.__module__) and isinstance(
                    getattr(cls, name, None), functools.cached_property)):
                self.note(name)
                self.add(value, f"{where.removesuffix(',')}.{name}")

    def _items(self, x: Any, where: str) -> None:
        """A list or a dict, in order."""
        self.note(type(x).__name__, len(x))
        for i, item in enumerate(x.items() if isinstance(x, dict) else x):
            key = item[0] if isinstance(x, dict) else i
            self.add(item, f"{where.removesuffix(',')}[{key!r:.40}]")

    def _set(self, x: Collection[object], where: str) -> None:
        # Their order is another one in each process.
        digests = []
        for item in x:
            each = StableKey()
            each.add(item, f"an element of {where}")
            digests.append(each.hexdigest())
            self.codes |= each.codes
        self.note("set", sorted(digests))

    def _array(self, x: Array | np.ndarray | np.generic, where: str) -> None:
        if is_extended(x.dtype):
            return self._instance(x, where)
        if x.dtype.hasobject or (isinstance(x, np.ndarray) and type(x) is not np.ndarray):
            self._refuse(x, where)
        if isinstance(x, np.ndarray):
            self.note(x.strides, x.flags.writeable)
        elements = np.asarray(x)
        place = (x._committed, str(x.sharding), x.aval.weak_type) if isinstance(
            x, lib.ArrayImpl) else type(x).__name__
        self._dtype(elements.dtype, where)
        # By bytes: dtypes of ml_dtypes cannot be in a buffer.
        return self.note("array", elements.shape, place, hashlib.blake2b(
            np.ascontiguousarray(elements).reshape(-1).view(np.uint8).data).hexdigest())

    def _dtype(self, x: np.dtype, where: str) -> None:
        """A dtype, with its metadata and its fields'."""
        self.note("dtype", type(x).__name__, str(x), x.isalignedstruct)
        self.add(dict(x.metadata or {}), f"the metadata of {where}")
        if x.subdtype is not None:
            self._dtype(x.subdtype[0], where)
        for name, field in (x.fields or {}).items():
            self.note(name, field[1:])
            self._dtype(field[0], where)

    def _jitted(self, x: PjitFunction, where: str) -> None:
        info = x._jit_info
        self.note("jit", info.keep_unused, info.inline, str(info.device), info.name)
        self.add(info.flags, f"a compiler option of {where}")
        self.add(info.signature.key, f"an option of {where}")
        self.add(info.signature.fun, where)

    def _cached(self, x: Any, where: str) -> None:
        self.caches.append(x)
        self._parts(type(x), x.__wrapped__, where=where)

    def _tree(self, x: PyTreeDef, where: str) -> None:
        node = x.node_data()
        if node is None:
            return self.note("leaf", x.num_nodes)
        children = x.children()
        self.note("node", len(children))
        for part in (*node, *children):
            self.add(part, where)
        return None

    def _primitive(self, x: Primitive, where: str) -> None:
        if x.open or x.platform_rules or not type(x).__module__.startswith("olympus._src."):
            self._refuse(x, where, ": a primitive of one's own, whose rules may be anything")
        self.note("primitive", type(x).__qualname__, x.name)

    def _parts(self, *parts: object, where: str) -> None:
        for part in parts:
            self.add(part, where)


_Absent = object()
_Pair: Any = namedtuple("_Pair", "x y")


def _globals_read(code: types.CodeType, where: str) -> tuple[tuple[str, ...], ...]:
    """The names of the module that code reads, each with the attributes asked of it next."""
    reads = own_reads(code)
    for name in reads.sets:
        raise UnstableError(f"jit persist=True: {where} sets the global {name}; a function that "
                            "changes nothing is required; return the value.")
    for name, level in reads.imports:
        if level or not versioned(name):
            raise UnstableError(f"jit persist=True: {where} imports {'.' * level}{name} when it is "
                                "called; import it at the head of the module.")
    return reads.paths


def _by_text(kind: str) -> object:
    return lambda key, x, where: key.note(kind, type(x).__name__, str(x))


def _of(*names: str) -> object:
    """Adds an object by some of its attributes."""
    return lambda key, x, where: key._parts(type(x), *[getattr(x, n) for n in names], where=where)


def _refused(key: StableKey, x: object, where: str) -> None:
    key._refuse(x, where)


# By kind, the first that fits.
_ADDERS: tuple[tuple[Any, Any], ...] = (
    (types.FunctionType, StableKey._function),
    (lib.PjitFunction, StableKey._jitted),
    (Tracer, _refused),
    (np.dtype, StableKey._dtype),
    (enum.Enum, _of("name", "value")),
    (type, StableKey._class),
    ((np.ndarray, np.generic, lib.Array), StableKey._array),
    (Primitive, StableKey._primitive),
    (_BUILTIN, StableKey._builtin),
    (types.MethodType, _of("__func__", "__self__")),
    (functools.partial, _of("func", "args", "keywords", "__dict__")),
    (property, _of("fget", "fset", "fdel")),
    ((staticmethod, classmethod), _of("__func__")),
    (functools.cached_property, _of("func", "attrname")),
    (functools._lru_cache_wrapper, StableKey._cached),
    # As a decorator, such a context manager is made anew for each call.
    (contextlib._GeneratorContextManager, _of("func", "args", "kwds")),
    (slice, _of("start", "stop", "step")),
    (type(_Pair.x), lambda key, x, where: key.note("field", x.__reduce__()[1])),
    (range, _of("start", "stop", "step")),
    (re.Pattern, _of("pattern", "flags")),
    (Memo, lambda key, x, where: key.note("cache")),
    (defaultdict, lambda key, x, where: key._parts(x.default_factory, dict(x), where=where)),
    (OrderedDict, lambda key, x, where: key.add(list(x.items()), where)),
    (types.SimpleNamespace, lambda key, x, where: key.add(vars(x), where)),
    (types.MappingProxyType, lambda key, x, where: key.add(dict(x), where)),
    (lib.PyTreeDef, StableKey._tree),
    (lib.Device, lambda key, x, where: key.note("device", x.platform, x.process_index, x.id)),
    (NamedSharding, _of("_key")),
    (Mesh, _of("axis_names", "axis_sizes", "axis_types", "device_tuple")),
    (lib.Sharding, lambda key, x, where: key._parts(
        type(x), *sorted(x.device_set, key=lambda d: d.id), str(x), where=where)),
    (config.UserContext, _of("value")),
    (lib.Config, _of("name", "value")),
    ((PurePath, logging.Logger, typing.TypeVar, types.GenericAlias, types.UnionType,
      type(typing.Any)), _by_text("text")),
)


def options_of_now() -> Iterator[object]:
    """The values of all options that may change a trace."""
    # Options of caches say where programs are stored, and change no program.
    for name in dir(config.config):
        if name.startswith("olympus_") and "cache" not in name:
            yield config.config.read(name)
