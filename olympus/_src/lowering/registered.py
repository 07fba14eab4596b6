"""Outsiders' lowering rules in the form of built-in ones; `extend/registration.py` registers them.

They use MLIR's Python bindings, so MLIR's insertion point and location are set while a rule runs.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import Any, cast

from ..base.typing import IrValue
from ..core.primitive import Primitive
from .attributes import tensor_type
from .builder import Builder


class Rule:
    """A registered rule in the form of a primitive's `lower`."""

    __slots__ = ("prim", "rule")

    def __init__(self, prim: Primitive, rule: Callable[..., object]) -> None:
        self.prim, self.rule = prim, rule

    def __call__(self, b: Builder, *xs: IrValue, **params: Hashable) -> IrValue | list[IrValue]:
        outer, b.module.by_others = b.module.by_others, b
        # MLIR's builders read both from a stack; `Builder` passes them explicitly.
        with b.block.ip, b.loc:
            outs = flatten_ir_values(self.rule(b, *xs, **params))
        b.module.by_others = outer or b
        wanted = [tensor_type(aval) for aval in b.avals_out]
        if [x.type for x in outs] != wanted:
            raise TypeError(f"{self.prim}: its lowering rule returned values of types "
                            f"{', '.join(str(x.type) for x in outs) or 'none'}; "
                            f"{', '.join(map(str, wanted))} is required, as abstract evaluation "
                            "says; correct one of the two rules.")
        return outs if self.prim.multiple_results else outs[0]


def flatten_ir_values(xs: object) -> list[Any]:
    """MLIR values as a flat list.

    Args:
      xs: a value, or a sequence of values and sequences.

    >>> mlir.flatten_ir_values(["x", ("y", "z")])       # any objects do
    ['x', 'y', 'z']
    """
    if isinstance(xs, (tuple, list)) or type(xs).__name__ == "OpResultList":
        return [v for x in cast("Iterable[object]", xs)
                for v in flatten_ir_values(x)]
    return [xs]
