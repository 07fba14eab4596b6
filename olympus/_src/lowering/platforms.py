"""Rules by platform. In a module for several, an equation may be lowered for each of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..types import dtypes
from ..types.avals import make_aval
from . import dims

if TYPE_CHECKING:
    from .builder import Block, Builder
    from .module import ModuleContext

__all__ = ["Mark", "PlatformOpen", "per_platform", "rule_of"]

INT32 = dtypes.as_dtype("int32")


class PlatformOpen(Exception):
    """A rule asks for the platform in a module of several: it is to be run for each of them."""


def per_platform(b: Builder, ins: Sequence[Any]) -> Any:
    """The equation as a choice between what each platform has for it."""
    module, eqn, prim = b.module, b.eqn, b.eqn.primitive
    avals_in, avals_out = b.avals_in, b.avals_out

    def emit(platform: str) -> list[Any]:
        module.platform = platform
        b.eqn, b.avals_in, b.avals_out = eqn, avals_in, avals_out
        try:
            out = rule_of(module, prim)(b, *ins, **eqn.params)
        finally:
            module.platform = None
        return list(out) if prim.multiple_results else [out]

    assert b.block.sizes is not None    # the number of the platform is among them
    index = b.convert(b.block.sizes.values[dims.PLATFORM_INDEX], make_aval((), INT32))
    outs = b.case(index, [functools.partial(emit, p) for p in module.platforms],
                  [b.type(a) for a in avals_out])
    return outs if prim.multiple_results else outs[0]


def rule_of(module: ModuleContext, prim: Any) -> Callable[..., Any]:
    """How equations of a primitive are lowered here."""
    if prim.platform_rules and module.platform is None:
        return _still_open
    return module.rules.get(prim, prim.platform_rules.get(module.platform)) or prim.lower


def _still_open(*args: Any, **params: Any) -> Any:
    raise PlatformOpen


class Mark:
    """Where a block ends and what it knows, so that what a rule had begun can be taken back."""

    __slots__ = ("block", "last", "known")

    def __init__(self, block: Block) -> None:
        self.block, ops = block, block.ip.block.operations
        self.last = len(ops)
        assert block.sizes is not None
        tables = block.scalars, block.repeated, block.sizes.values, block.sizes.vectors
        self.known = [(table, len(table)) for table in tables]

    def restore(self) -> None:
        for op in list(self.block.ip.block.operations)[self.last:][::-1]:
            op.operation.erase()
        for table, count in self.known:
            for key in list(table)[count:]:
                del table[key]
