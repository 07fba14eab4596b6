"""How a user's branch or call that needs a traced value is written with arrays: for messages.

    math.sin(x)                 onp.sin(x)
    if x > 0 and y > 0: …       olympus.lax.cond(onp.logical_and(x > 0, y > 0), f, g, x)
    1 if 0 < x < 1 else 2       onp.where(onp.logical_and(0 < x, x < 1), 1, 2)
"""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from .source import Location

_LONGEST = 90       # characters of a rewritten line
_OPERATORS = {ast.And: "logical_and", ast.Or: "logical_or"}
_FUNCTIONS = {"max": "maximum", "min": "minimum", "any": "any", "all": "all", "sorted": "sort"}
# Functions of `math` with the same name in olympus.numpy, and functions with another.
_SAME = frozenset({
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "ceil", "copysign", "cos",
    "cosh", "degrees", "exp", "exp2", "expm1", "floor", "fmod", "hypot", "isclose", "isfinite",
    "isinf", "isnan", "ldexp", "log", "log10", "log1p", "log2", "pow", "radians", "sin", "sinh",
    "sqrt", "tan", "tanh", "trunc"})
_OTHER = {"fabs": "onp.abs", "gamma": "olympus.scipy.special.gamma",
          "lgamma": "olympus.scipy.special.gammaln", "erf": "olympus.scipy.special.erf",
          "erfc": "olympus.scipy.special.erfc"}


def instead_of_branching(where: Location) -> str:
    """The user's line rewritten so that Python asks for no truth value there; '' if unknown."""
    path = _path_to(where)
    return _instead(path) if path and isinstance(path[-1], ast.expr) else ""


def instead_of_math(where: Location) -> str:
    """The user's call of a function of Python's `math` as one of arrays; '' if it is no such."""
    path = _path_to(where)
    call = path[-1] if path else None
    if not isinstance(call, ast.Call):
        return ""
    name = ast.unparse(call.func).removeprefix("math.")
    instead = f"onp.{name}" if name in _SAME else _OTHER.get(name)
    arguments = ", ".join(map(ast.unparse, call.args))
    return _becomes(ast.unparse(call), f"{instead}({arguments})") if instead else ""


def _path_to(where: Location) -> list[ast.AST]:
    try:
        return list(_path(ast.parse("".join(linecache.getlines(where.file))), where))
    except (SyntaxError, ValueError, RecursionError, MemoryError):     # the file has changed, say
        return []


def _path(node: ast.AST, where: Location) -> Iterator[ast.AST]:
    """The nodes around the place, the outermost first."""
    child: Any      # nodes of some kinds have places
    for child in ast.iter_child_nodes(node):
        if hasattr(child, "lineno"):
            start = child.lineno, child.col_offset
            end = child.end_lineno, child.end_col_offset
            if start > (where.line, where.column) or end < (where.end_line, where.end_column):
                continue
            yield child
        yield from _path(child, where)


def _instead(path: list[ast.AST]) -> str:
    *around, test = path
    if isinstance(test, ast.IfExp):     # whose test is a mere name
        around, test = path, test.test
    while around and _is_logic(around[-1]):
        test = around.pop()
    outer = around[-1] if around else None
    assert isinstance(test, ast.expr)
    condition, text = ast.unparse(_on_arrays(test)), ast.unparse(test)
    if isinstance(outer, ast.If) and test is outer.test:
        return _becomes(f"if {text}:", f"y = olympus.lax.cond({condition}, f, g, x)",
                        f"where({condition}, a, b)")
    if isinstance(outer, ast.While) and test is outer.test:
        return _becomes(f"while {text}:", f"olympus.lax.while_loop(lambda x: {condition}, body, x)")
    if isinstance(outer, ast.Assert) and test is outer.test:
        return _becomes(f"assert {text}", f"olympus.check({condition}, message)")
    if isinstance(outer, ast.IfExp) and test is outer.test:
        values = f"{ast.unparse(outer.body)}, {ast.unparse(outer.orelse)}"
        return _becomes(ast.unparse(outer), f"onp.where({condition}, {values})")
    if isinstance(test, ast.Call):
        return _instead_of_calling(test)
    return _becomes(text, condition) if _is_logic(test) else ""


def _becomes(text: str, *instead: str) -> str:
    """The sentence, of one line or of one for each piece of code; nothing where one is too long."""
    if max(map(len, (text, *instead))) > _LONGEST:
        return ""
    line = f"`{text}` becomes {', or '.join(f'`{code}`' for code in instead)};"
    return line if len(line) <= _LONGEST else line.replace("becomes `", "becomes\n    `").replace(
        ", or `", ", or\n    `")


def _instead_of_calling(call: ast.Call) -> str:
    name = call.func.id if isinstance(call.func, ast.Name) else ""
    if name not in _FUNCTIONS or call.keywords or (name in ("max", "min")) != (len(call.args) == 2):
        return ""
    arguments = ", ".join(map(ast.unparse, call.args))
    return _becomes(ast.unparse(call), f"onp.{_FUNCTIONS[name]}({arguments})")


def _is_logic(node: ast.AST) -> bool:
    """Whether Python makes one truth value of others there."""
    return (isinstance(node, ast.BoolOp) or _is_not(node)
            or (isinstance(node, ast.Compare) and len(node.ops) > 1))


def _is_not(node: ast.AST) -> TypeGuard[ast.UnaryOp]:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _on_arrays(node: ast.expr) -> ast.expr:
    """The expression with functions of arrays in the place of `and`, `not`, `a < b < c`, `in`."""
    if isinstance(node, ast.BoolOp):
        name = _OPERATORS[type(node.op)]
        return functools.reduce(functools.partial(_call, name), map(_on_arrays, node.values))
    if _is_not(node):
        return _call("logical_not", _on_arrays(node.operand))
    if isinstance(node, ast.Compare) and len(node.ops) > 1:
        pairs = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
        return functools.reduce(functools.partial(_call, "logical_and"), [
            _on_arrays(ast.Compare(x, [op], [y])) for x, op, y in pairs])
    if isinstance(node, ast.Compare) and isinstance(node.ops[0], (ast.In, ast.NotIn)):
        test = _call("isin", node.left, _call("array", *node.comparators))
        return test if isinstance(node.ops[0], ast.In) else _call("logical_not", test)
    if isinstance(node, ast.Call) and ast.unparse(node.func) == "bool" and len(node.args) == 1:
        return _on_arrays(node.args[0])
    return node


def _call(name: str, *args: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(ast.Name("onp"), name), list(args), [])
