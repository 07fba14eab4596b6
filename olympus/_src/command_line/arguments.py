"""The command line's arguments: functions by module and name, arrays by the text of types.

    argument   = [name "="] value
    value      = type | number | text in quotes | True | False | None
               | "(" value "," … ")" | "[" value "," … "]" | "{" key ":" value "," … "}"
    type       = ["~"] dtype "[" dimension "," … "]"        as programs and messages print types
    dimension  = size ["@" axis | "@(" axis "," … ")"]      cut along axes of a mesh

`~` marks a weak type. Sizes that are no numbers are `export.symbolic_shape`'s.
"""

from __future__ import annotations

import ast
import difflib
import functools
import importlib
import importlib.util
import inspect
import re
import sys
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from ..base.typing import DType, PyTree
from ..jit.jit import Jitted, jit
from ..jit.stages import Wrapped
from ..random.keys import GENERATORS, key_dtype
from ..types import dtypes
from ..types.avals import ShapeDtypeStruct
from ..types.scopes import SymbolicScope, symbolic_shape
from ..types.sharding import PartitionSpec

_TYPE = re.compile(r"(?P<weak>~?)(?P<dtype>[A-Za-z]\w*(?:<\w+>)?)\[")
_NAMED = re.compile(r"(?P<name>[A-Za-z_]\w*)=(?!=)")
_WORD = re.compile(r"[^\s,:\[\](){}'\"]+")
Arguments: TypeAlias = tuple[list[PyTree], dict[str, PyTree]]      # by position, by name
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class CommandError(ValueError):
    """A mistake in the command line, in words for the person who typed it."""


def _near(name: str, names: Sequence[str]) -> str:
    named = [n for n in names if not n.startswith("_")]
    near = [n for n in named if n.lower() == name.lower()] or difflib.get_close_matches(
        name, named, n=3, cutoff=0.5)
    return f"; near names: {', '.join(near)}" if near else ""


# Functions ---------------------------------------------------------------------------------------

def function(text: str, static: Sequence[str]) -> Wrapped | Jitted[..., object]:
    """The function `module:name` or `file.py:name`, jitted unless it is already."""
    chosen = named(text)
    if isinstance(chosen, Wrapped):
        if static:
            raise CommandError(f"--static given, and {text} is jitted already; give the names to "
                               "its jit, or name a function that is not jitted.")
        return chosen
    numbers = tuple(int(s) for s in static if s.lstrip("-").isdigit())
    names = tuple(s for s in static if not s.lstrip("-").isdigit())
    try:
        return jit(chosen, static_argnums=numbers or None, static_argnames=names or None)
    except ValueError as error:     # the function has no argument of this name
        raise CommandError(f"--static {' '.join(static)} given: {error}") from None


def named(text: str) -> Callable[..., PyTree]:
    """The function `module:name` or `file.py:name` as it is."""
    home, colon, path = text.rpartition(":")
    if not (colon and home and path):
        raise CommandError(f"{text!r} given; module:function, or file.py:function, is required.")
    value: Any = _module(home)
    for name in path.split("."):
        if not hasattr(value, name):
            raise CommandError(f"{home} has no {path!r}{_near(name, dir(value))}.")
        value = getattr(value, name)
    if not callable(value):
        raise CommandError(f"{text} is of type {type(value).__name__}; a function is required.")
    return value


def check_arguments(fun: Callable[..., object], name: str, args: Sequence[PyTree],
                    kwargs: Mapping[str, PyTree], static: Sequence[str] = ()) -> None:
    """CommandError if a function does not take so many arguments, or these names, or if a `static`
    one, a value of the program, is a type.
    """
    try:
        signature = inspect.signature(fun)
    except (TypeError, ValueError):     # of a function in C that has none
        return
    try:
        bound = signature.bind(*args, **kwargs).arguments
    except TypeError as error:
        count = len(args) + len(kwargs)
        takes = ", ".join(str(p.replace(annotation=p.empty)) for p in signature.parameters.values())
        raise CommandError(
            f"{name} takes ({takes}), and {count or 'no'} argument{'s' * (count != 1)} "
            f"{'is' if count == 1 else 'are'} given: {error}; give a type as f32[8,128], or a "
            "value, for each that has no default.") from None
    by_name = {**dict(enumerate(args)), **bound}
    for chosen in static:
        value = by_name.get(int(chosen) if chosen.isdigit() else chosen)
        if isinstance(value, ShapeDtypeStruct):
            raise CommandError(f"--static {chosen} given, and the type {value}; a static argument "
                               "is a value, as 3, True or 'text'.")


def _module(home: str) -> object:
    if not home.endswith(".py"):
        if "" not in sys.path:
            sys.path.insert(0, "")      # as `python -m` has it
        try:
            return importlib.import_module(home)
        except ModuleNotFoundError as error:
            if error.name is None or not f"{home}.".startswith(f"{error.name}."):
                raise       # of another module, which this one imports
            raise CommandError(f"no module {home!r} is found from here; a module that Python can "
                               "import, or a file with .py, is required.") from None
    path = Path(home)
    if not path.is_file():
        raise CommandError(f"no file {home!r} is found.")
    folder = str(path.parent.resolve())
    if folder not in sys.path:      # as `python file.py` has it
        sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(path.stem, module)
    spec.loader.exec_module(module)
    return module


# Types and values --------------------------------------------------------------------------------

@functools.cache
def _dtypes() -> Mapping[str, DType | dtypes.ExtendedDType]:
    """Every dtype by the names that it is printed by."""
    keys = [key_dtype(generator) for generator in GENERATORS.values()]
    return dtypes.printed_names() | {str(dtype): dtype for dtype in keys}


def specs(texts: Sequence[str], constraints: Sequence[str] = (), cut: bool = False) -> Arguments:
    """(positional arguments, arguments by name): types as ShapeDtypeStructs, numbers as they are.

    With `cut`, a dimension may name the axes of a mesh along which it is cut.
    """
    scope = SymbolicScope(constraints)
    return _arguments(texts, lambda text: _Reader(text, scope, cut).whole())


def values(texts: Sequence[str]) -> Arguments:
    """The arguments as arrays: read from the files that are named, and zeros for types."""
    def read(text: str) -> PyTree:
        file, _, member = text.partition(":")
        if file.endswith((".npy", ".npz")):
            return _from_file(file, member)
        parsed = _Reader(text, SymbolicScope()).whole()
        return _zeros(parsed, text)

    return _arguments(texts, read)


def _arguments(texts: Sequence[str], read: Callable[[str], PyTree]) -> Arguments:
    args, kwargs = [], {}
    for text in texts:
        named = _NAMED.match(text)
        if named is None:
            if kwargs:
                raise CommandError(f"{text!r} given behind arguments by name; arguments by "
                                   "position come first.")
            args.append(read(text))
        else:
            kwargs[named["name"]] = read(text[named.end():])
    return args, kwargs


def _from_file(file: str, member: str) -> object:
    try:
        loaded = np.load(file)
    except FileNotFoundError:
        raise CommandError(f"no file {file!r} is found.") from None
    except ValueError as error:
        raise CommandError(f"{file}: {error}") from None
    if isinstance(loaded, np.ndarray):
        return loaded
    if not member:
        return dict(loaded)
    if member not in loaded:
        raise CommandError(f"{file} has no array {member!r}; it has {', '.join(loaded)}.")
    return loaded[member]


def _zeros(spec: PyTree, text: str) -> PyTree:
    if isinstance(spec, (tuple, list)):
        return type(spec)(_zeros(x, text) for x in spec)
    if isinstance(spec, dict):
        return {k: _zeros(x, text) for k, x in spec.items()}
    if not isinstance(spec, ShapeDtypeStruct):
        return spec
    if not all(isinstance(d, int) for d in spec.shape) or dtypes.is_extended(spec.dtype):
        raise CommandError(f"{text!r} given; an array of zeros is made of a type of numbers whose "
                           "sizes are known; name a file instead.")
    return np.zeros(spec.shape, spec.dtype)


class _Reader:
    """Reads one argument from its text."""

    def __init__(self, text: str, scope: SymbolicScope, cut: bool = False) -> None:
        self.text, self.at, self.scope, self.cut = text, 0, scope, cut

    def whole(self) -> PyTree:
        parsed = self.value()
        self.skip()
        if self.at < len(self.text):
            raise self.wrong(f"{self.text[self.at:]!r} is left over")
        return parsed

    def wrong(self, what: str) -> CommandError:
        return CommandError(
            f"argument {self.text!r}: {what}; a type as f32[8,128], ~f32[] or key<fry>[], a "
            "number, text in quotes, or (…), […], {key: …} of those is required.")

    def skip(self) -> None:
        while self.at < len(self.text) and self.text[self.at].isspace():
            self.at += 1

    def value(self) -> PyTree:
        self.skip()
        if self.at >= len(self.text):
            raise self.wrong("it ends where a value is expected")
        opening = self.text[self.at]
        if opening in _CLOSING:
            self.at += 1
            return self.container(opening)
        match = _TYPE.match(self.text, self.at)
        return self.literal() if match is None else self.type(match)

    def container(self, opening: str) -> PyTree:
        items: list[PyTree] = []
        closing, comma = _CLOSING[opening], False
        while True:
            self.skip()
            if self.text[self.at:self.at + 1] == closing:
                self.at += 1
                if opening == "{":
                    return dict(items)
                # (x) is x, as in Python.
                return items[0] if (opening, len(items), comma) == ("(", 1, False) else (
                    tuple(items) if opening == "(" else items)
            if items and not comma:
                raise self.wrong(f"a comma or {closing!r} is missing at {self.text[self.at:]!r}")
            items.append((self.key(), self.value()) if opening == "{" else self.value())
            self.skip()
            comma = self.text[self.at:self.at + 1] == ","
            self.at += comma

    def key(self) -> Hashable:
        self.skip()
        parsed = self.literal(bare=True)
        self.skip()
        if self.text[self.at:self.at + 1] != ":":
            raise self.wrong(f"a colon is missing behind the key {parsed!r}")
        self.at += 1
        return parsed

    def literal(self, bare: bool = False) -> Hashable:
        quoted = re.compile(r"'[^']*'|\"[^\"]*\"").match(self.text, self.at)
        match = quoted or _WORD.match(self.text, self.at)
        if match is None:
            raise self.wrong(f"nothing that can be read at {self.text[self.at:]!r}")
        try:
            value = ast.literal_eval(match[0])
        except (ValueError, SyntaxError):
            if not bare:
                raise self.wrong(f"{match[0]!r} is no value") from None
            value = match[0]
        self.at = match.end()
        return value

    def type(self, match: re.Match[str]) -> ShapeDtypeStruct:
        name = match["dtype"]
        dtype = _dtypes().get(name)
        if dtype is None:
            raise self.wrong(f"{name!r} is no dtype{_near(name, list(_dtypes()))}")
        if not dtypes.is_extended(dtype) and dtypes.canonical_dtype(dtype) != dtype:
            raise CommandError(f"argument {self.text!r}: {name} given, and 64-bit types are off; "
                               "add --x64, or give a type of fewer bits.")
        end = self.text.find("]", match.end())
        if end < 0:
            raise self.wrong("']' is missing behind the sizes")
        sizes, spec = self.sizes(self.text[match.end():end].strip())
        try:
            shape = symbolic_shape(sizes, scope=self.scope) if sizes else ()
            made = ShapeDtypeStruct(shape, dtype, weak_type=bool(match["weak"]), sharding=spec)
        except ValueError as error:
            raise self.wrong(str(error)) from None
        self.at = end + 1
        return made

    def sizes(self, text: str) -> tuple[str, PartitionSpec | None]:
        """The dimensions without the axes that they are cut along, and those."""
        if "@" not in text:
            return text, None
        if not self.cut:
            raise self.wrong("axes of a mesh, behind @, are for compile --for TARGET")
        parts = re.findall(r"([^,@]+)(?:@(\w+|\([\w, ]+\)))?(?:,|$)", text)
        if ",".join(size + (f"@{axes}" if axes else "") for size, axes in parts) != text:
            raise self.wrong(f"{text!r} is no shape; a size with axes is written 8@data, or "
                             "8@(data,model)")
        entries = [tuple(re.findall(r"\w+", axes)) or None for _, axes in parts]
        return ",".join(size for size, _ in parts), PartitionSpec(*entries)
