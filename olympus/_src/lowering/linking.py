"""Linking: a module that was lowered elsewhere becomes functions of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from ..base.lib import mlir
from ..base.typing import IrModule, IrOperation, IrType

_OF_PUBLIC = ("arg_attrs", "res_attrs")     # facts about buffers, which hold for main only


class Linked(NamedTuple):
    """The main function of a linked module, in its new module."""

    symbol: str
    inputs: Sequence[IrType]
    results: Sequence[IrType]


def internal(platform: str) -> str:
    """The name of a platform in lowering rules."""
    return "gpu" if platform == "cuda" else platform


def external(platform: str) -> str:
    """The user's name for a platform of lowering rules."""
    return "cuda" if platform == "gpu" else platform


def operations(module: IrModule) -> Iterator[IrOperation]:
    """Every operation of a module, also inside of regions."""
    pending = [module.operation]
    while pending:
        op = pending.pop()
        yield op
        for region in op.regions:
            for block in region.blocks:
                pending += [inner.operation for inner in block.operations]


_NESTING = frozenset(("stablehlo.case", "stablehlo.if", "stablehlo.while"))
_ENDLESS = 1 << 20      # more levels than any module may have


def levels(module: IrModule) -> int:
    """The depth of nested loops, branches and calls in a module's main function."""
    functions = {_symbol_of(op): _levels_of(op.operation) for op in module.body.operations}
    # An explicit stack: an artifact may be nested deeper than Python recurses.
    depths: dict[str, int | None] = {}       # None: in progress
    pending = ["main"]
    while pending:
        name = pending[-1]
        own, calls = functions[name]
        if name not in depths:
            depths[name] = None
            pending += [f for f, _ in calls if f in functions and f not in depths]
            continue
        pending.pop()
        if depths[name] is None:     # a callee that is in progress, too, is recursive
            within = [_ENDLESS if (inner := depths[callee]) is None else around + inner
                      for callee, around in calls if callee in functions]
            depths[name] = max([own, *within])
    return depths["main"] or 0


def _levels_of(function: IrOperation) -> tuple[int, list[tuple[str, int]]]:
    """The depth of loops and branches in a function, and (callee, depth) of each call."""
    deepest, calls, pending = 0, [], [(function, 0)]
    while pending:
        op, depth = pending.pop()
        if op.name == "func.call":
            callee = mlir.ir.FlatSymbolRefAttr(op.attributes["callee"]).value
            calls.append((callee, depth + 1))
        depth += op.name in _NESTING
        deepest = max(deepest, depth)
        for region in op.regions:
            for block in region.blocks:
                pending += [(inner.operation, depth) for inner in block.operations]
    return deepest, calls


def _symbol_of(op: IrOperation) -> str:
    """The symbol of a function or mesh of a module."""
    name: str = mlir.ir.StringAttr(op.attributes["sym_name"]).value
    return name


def fresh_symbols() -> Callable[[str], str]:
    """A function from names to distinct symbols: name, name_1, name_2 …"""
    taken: dict[str, int] = {}

    def symbol(wanted: str) -> str:
        count = taken[wanted] = taken.get(wanted, -1) + 1
        return symbol(f"{wanted}_{count}") if count else wanted

    return symbol


def link(target: IrModule, symbol: Callable[[str], str], module: IrModule, name: str) -> Linked:
    """Move the functions and meshes of a module into another.

    Args:
      target: the module that they go to.
      symbol: name -> a symbol that `target` does not have.
      module: the module to move, of the same MLIR context; it is empty afterwards.
      name: the new name of its main function.
    """
    ir = mlir.ir
    moved = list(module.body.operations)    # a copy: operations leave the module one by one
    names = list(map(_symbol_of, moved))
    renamed = {old: symbol(name if old == "main" else old) for old in names}
    changed = [old for old, new in renamed.items() if old != new]
    # In two steps, through unused names: a new name may be another one's old name.
    for steps in ([(old, f"{old}::") for old in changed],
                  [(f"{old}::", renamed[old]) for old in changed]):
        for step in steps:
            ir.SymbolTable.replace_all_symbol_uses(*step, module.operation)
    for op, old in zip(moved, names, strict=True):
        op.attributes["sym_name"] = ir.StringAttr.get(renamed[old])
        op.operation.detach_from_parent()
        target.body.append(op)
    main: Any = moved[names.index("main")]
    main.attributes["sym_visibility"] = ir.StringAttr.get("private")
    for field in _OF_PUBLIC:
        if field in main.attributes:
            del main.attributes[field]
    return Linked(renamed["main"], main.type.inputs, main.type.results)
