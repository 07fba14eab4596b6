"""Whose code and values these are, the user's or a library's, and the contents of objects.

Keys of functions that hold in other processes, guards, and kept bodies ask the same questions.
Whose code is this? Does a function of Python or NumPy read more than its arguments? Is an object
made of its attributes alone?
"""

from __future__ import annotations

import functools
import os
import sys
import types
import typing
from collections import OrderedDict
from collections.abc import Mapping

import ml_dtypes
import numpy as np

from . import lib
from .util import Owned

# Modules of Python whose functions give equal results for equal arguments.
_PURE = frozenset((
    "__future__", "abc", "array", "bisect", "builtins", "cmath", "collections", "contextlib",
    "copy", "copyreg", "dataclasses", "decimal", "enum", "fractions", "functools", "heapq",
    "inspect", "itertools", "json", "keyword", "logging", "math", "numbers", "operator", "re",
    "reprlib", "statistics", "string", "struct", "textwrap", "types", "typing", "typing_extensions",
    "warnings", "zlib"))
_VERSIONED = frozenset(("olympus", "numpy", "ml_dtypes", "jaxlib"))
_DESCRIBED = _VERSIONED | _PURE
# Functions of these modules that read more than their arguments.
_IMPURE = frozenset((
    "builtins.open", "io.open", "builtins.input", "builtins.eval", "builtins.exec",
    "builtins.compile", "builtins.globals", "builtins.__import__", "builtins.breakpoint",
    "inspect.currentframe", "inspect.getfile", "inspect.getsource", "inspect.getsourcefile",
    "inspect.getsourcelines", "inspect.stack", "inspect.trace", "numpy.random"))
#: functions of NumPy and of ours that read files, or settings of the whole process
READERS = frozenset((
    "DataSource", "fromfile", "fromregex", "genfromtxt", "get_printoptions", "getbufsize",
    "geterr", "geterrcall", "load", "loadtxt", "memmap", "open_memmap", "read_array",
    "read_array_header_1_0", "read_array_header_2_0", "read_magic"))
CACHES = frozenset((Owned.NAME,))       # which grow while a function is used
_HOMES = tuple(os.path.dirname(os.path.abspath(file)) + os.sep for file in (
    str(sys.modules["olympus"].__file__), str(np.__file__), str(ml_dtypes.__file__),
    lib.libraries()[0], os.__file__))
USED = ("opt_einsum", "scipy")      # what Olympus calls itself, if it is there
SITE = os.sep + "site-packages" + os.sep
_BASES = (object, list, dict, OrderedDict, tuple, int, float, str, typing.Generic, typing.Protocol)


def home() -> str:
    """The folder of Olympus's own files."""
    return _HOMES[0]


def code_of_users(code: types.CodeType, names: Mapping[str, object]) -> bool:
    """Whether code is neither Olympus's, nor NumPy's, nor Python's; `names` are its globals."""
    return file_of_users(code.co_filename, names)


def file_of_users(file: str, names: Mapping[str, object]) -> bool:
    """Whether a file's code is neither Olympus's, nor NumPy's, nor Python's."""
    return _of_users(file, str(names.get("__name__", "")))


@functools.lru_cache(4096)
def _of_users(file: str, module: str) -> bool:
    if file.startswith("<frozen"):      # the import system
        return False
    if file.startswith("<"):    # made by `exec`, as methods of dataclasses and named tuples are
        return not (versioned(module) or module.startswith("namedtuple_"))
    if SITE in file and module.partition(".")[0] in USED:
        return False
    # The last home is Python's, where other packages are installed as well.
    return not file.startswith(_HOMES) or (SITE in file and not file.startswith(_HOMES[:-1]))


def versioned(module: object) -> bool:
    """Whether a version says all about a module: Olympus, NumPy, and pure ones of Python."""
    return isinstance(module, str) and module.partition(".")[0] in _DESCRIBED


@functools.lru_cache(4096)
def impure(path: str) -> bool:
    """Whether a function of a versioned module, `module.name`, reads more than its arguments."""
    package, _, rest = path.partition(".")
    return path in _IMPURE or path.startswith("numpy.random.") or (
        package in ("numpy", "olympus") and rest.rpartition(".")[2] in READERS)


def read_by_name(module: str) -> frozenset[str]:
    """The attributes of NumPy, or of Olympus, that read more than their arguments."""
    return READERS | {"random"} if module.partition(".")[0] == "numpy" else READERS


def state_of(x: object) -> tuple[dict[str, object], bool]:
    """The attributes of an object, and whether those are all that it holds."""
    state = {k: v for k, v in getattr(x, "__dict__", {}).items() if k not in CACHES}
    for cls in type(x).__mro__:
        if cls in _BASES:
            continue
        if any(isinstance(v, (types.WrapperDescriptorType, types.MethodDescriptorType))
               and v.__objclass__ is cls for v in vars(cls).values()):
            return state, False     # made by C, where anything may be
        state |= {name: getattr(x, name) for name in slots_of(cls) if hasattr(x, name)}
    return state, type(x) not in _BASES or type(x) is object


def slots_of(cls: type) -> list[str]:
    """The attributes that a class itself keeps in slots, as they are named on objects."""
    # `__slots__` may have been replaced since, or be a spent iterator.
    return [name for name, x in vars(cls).items() if isinstance(x, types.MemberDescriptorType)]
