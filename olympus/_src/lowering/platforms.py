"""Rules by platform. In a module for several, an equation may be lowered for each of them."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Any, NoReturn

from ..base.typing import IrValue
from ..base.util import lazy_module
from .context import ModuleContext

if TYPE_CHECKING:
    from .emitter import Block

_kernels: Any = lazy_module("olympus._src.lowering.kernels")    # for primitives that have any


class PlatformOpen(Exception):
    """A rule asks for the platform in a module of several: it is to be run for each of them."""


def rule_of(module: ModuleContext, prim: Any) -> Callable[..., Any]:
    """How equations of a primitive are lowered here."""
    if prim.platform_rules and module.platform is None:
        return _still_open
    # Rules that one lowering is given come before those that all have.
    found = module.rules.get(prim, prim.platform_rules.get(module.platform))
    if found is None and prim.kernels is not None and module.takes_kernels and (
            "lower" not in vars(prim)):     # somebody's rule in the place of ours
        return _kernels.with_kernels(prim)
    return found or prim.lower


def _still_open(*args: object, **params: Hashable) -> NoReturn:
    raise PlatformOpen


class Mark:
    """The end of a block and its knowledge, so that a rule's beginnings can be taken back."""

    __slots__ = ("block", "last", "counts")

    def __init__(self, block: Block) -> None:
        self.block, ops = block, block.ip.block.operations
        self.last = len(ops)
        assert block.sizes is not None
        tables: list[dict[Any, IrValue]] = [
            block.scalars, block.repeated, block.sizes.values, block.sizes.vectors]
        self.counts = [(table, len(table)) for table in tables]

    def restore(self) -> None:
        # The last first: an operation that is erased must have no readers left.
        for op in list(self.block.ip.block.operations)[self.last:][::-1]:
            op.operation.erase()
        # Otherwise these only grow, and dicts keep their order: new entries are last.
        for table, count in self.counts:
            for key in list(table)[count:]:
                del table[key]
