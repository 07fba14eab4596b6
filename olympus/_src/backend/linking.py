"""Modules put together: one that was lowered elsewhere becomes functions of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..base.lib import mlir

__all__ = ["Linked", "external", "fresh_symbols", "internal", "link",
           "operations"]

_OF_PUBLIC = ("arg_attrs", "res_attrs")     # what is said of buffers holds for a whole program


class Linked(NamedTuple):
    """A module's main function in the module that it was taken into."""

    symbol: str
    inputs: Sequence[Any]
    results: Sequence[Any]


def internal(platform: str) -> str:
    """What lowering rules call a platform."""
    return "gpu" if platform == "cuda" else platform


def external(platform: str) -> str:
    """What users call a platform that lowering rules know."""
    return "cuda" if platform == "gpu" else platform


def operations(module: Any) -> Iterator[Any]:
    """Every operation of a module, in those that carry regions too."""
    pending = [module.operation]
    while pending:
        op = pending.pop()
        yield op
        for region in op.regions:
            for block in region.blocks:
                pending += [inner.operation for inner in block.operations]


def fresh_symbols() -> Callable[[str], str]:
    """A function that makes symbols of names, none of them twice: name, name_1, name_2 …"""
    taken: dict[str, int] = {}

    def symbol(wanted: str) -> str:
        count = taken[wanted] = taken.get(wanted, -1) + 1
        return symbol(f"{wanted}_{count}") if count else wanted

    return symbol


def link(target: Any, symbol: Callable[[str], str], source: Any, name: str) -> Linked:
    """Move the functions and meshes of a module into another.

    Args:
      target: the module that they go to.
      symbol: makes a symbol that `target` does not have of a name.
      source: the module, of the same MLIR context; nothing remains in it.
      name: for what is its main function.
    """
    ir = mlir.ir
    moved = list(source.body.operations)
    names = [ir.StringAttr(op.attributes["sym_name"]).value for op in moved]
    renamed = {old: symbol(name if old == "main" else old) for old in names}
    changed = [old for old, new in renamed.items() if old != new]
    # By way of names that nobody has: a new name may be what another was called.
    for steps in ([(old, f"{old}::") for old in changed],
                  [(f"{old}::", renamed[old]) for old in changed]):
        for step in steps:
            ir.SymbolTable.replace_all_symbol_uses(*step, source.operation)
    for op, old in zip(moved, names, strict=True):
        op.attributes["sym_name"] = ir.StringAttr.get(renamed[old])
        op.operation.detach_from_parent()
        target.body.append(op)
    main = moved[names.index("main")]
    main.attributes["sym_visibility"] = ir.StringAttr.get("private")
    for field in _OF_PUBLIC:
        if field in main.attributes:
            del main.attributes[field]
    return Linked(renamed["main"], main.type.inputs, main.type.results)
