"""The arrays in the user's expression, by the names that he has for them: for messages.

Names, fields and constant subscripts are looked up in his frame; nothing of his is called.
"""

from __future__ import annotations

import ast
import linecache
from collections.abc import Iterator
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .source import Location

_MOST_LINES = 12
_MISSING = object()


def named_operands(frame: FrameType, at: Location) -> str:
    """`x: float32[4,8], params['w']: float32[16,8]` of the expression that is there, or nothing."""
    try:
        tree = ast.parse(_expression_text(at).strip(), mode="eval").body
    except SyntaxError:     # no expression, or the file has changed
        return ""
    return ", ".join([f"{name}: {kind}" for name, kind in dict(_arrays(tree, frame)).items()])


def _expression_text(at: Location) -> str:
    if at.end_line - at.line >= _MOST_LINES:
        return ""
    lines = [linecache.getline(at.file, n).encode()      # columns count bytes
             for n in range(at.line, at.end_line + 1)]
    lines[-1] = lines[-1][:at.end_column]
    lines[0] = lines[0][at.column:]
    return f"({b''.join(lines).decode()})"      # lines of an expression need brackets


def _arrays(node: ast.AST, frame: FrameType) -> Iterator[tuple[str, str]]:
    """(name, type) of each array that the expression reads, as it is written."""
    if isinstance(node, (ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)):
        return
    value = _value_of(node, frame)
    if value is not _MISSING and (kind := _kind(value)):
        yield ast.unparse(node), kind
        return
    for child in ast.iter_child_nodes(node):
        yield from _arrays(child, frame)


def _kind(value: Any) -> str:
    """The type of an array as messages write it; nothing for another value."""
    if not (hasattr(type(value), "shape") and hasattr(type(value), "dtype")):
        return ""
    aval = getattr(value, "aval", None)
    if getattr(aval, "is_high", False) or getattr(aval, "mutable", False):
        return str(aval)        # of a user's type, or a reference
    return f"{value.dtype}[{','.join(map(str, value.shape))}]"


def _value_of(node: ast.AST, frame: FrameType) -> object:
    """The value of a name, a field or an item, if looking it up runs no code of the user's."""
    if isinstance(node, ast.Name):
        return frame.f_locals.get(node.id, frame.f_globals.get(node.id, _MISSING))
    if isinstance(node, ast.Attribute):
        return _field(_value_of(node.value, frame), node.attr)
    if isinstance(node, ast.Subscript) and isinstance(node.slice, (ast.Constant, ast.Name)):
        key = (node.slice.value if isinstance(node.slice, ast.Constant)
               else _value_of(node.slice, frame))
        return _item(_value_of(node.value, frame), key)
    return _MISSING


def _field(of: Any, name: str) -> object:
    if isinstance(of, tuple) and name in (fields := getattr(type(of), "_fields", ())):
        return of[fields.index(name)]
    return getattr(of, "__dict__", {}).get(name, _MISSING)


def _item(of: Any, key: object) -> object:
    if type(of) in (dict, list, tuple) and type(key) in (str, int):
        try:
            return of[key]
        except (LookupError, TypeError):
            return _MISSING
    return _MISSING
