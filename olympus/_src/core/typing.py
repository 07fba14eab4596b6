"""Types for the signatures of rules and passes: what they take of an equation, and what they give.

What stands behind these names costs its import, or is above: checkers alone look there, or nobody.
`Tangent` and its like are beside `Zero` and `Linear`, in `primitive`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ..base.lib.mlir import ir
    from ..types.avals import AbstractToken, ShapedArray

__all__ = ["Aval", "Builder", "IrAttribute", "IrBlock", "IrModule", "IrOperation", "IrType",
           "IrValue", "Params"]

Params: TypeAlias = dict[str, Any]      # of an equation, by name
Aval: TypeAlias = "ShapedArray | AbstractToken"
# Of lowering
Builder: TypeAlias = Any    # `lowering.builder.Builder`, which is above what calls it
IrValue: TypeAlias = "ir.Value"
IrType: TypeAlias = "ir.Type"
IrAttribute: TypeAlias = "ir.Attribute"
IrModule: TypeAlias = "ir.Module"
IrBlock: TypeAlias = "ir.Block"
IrOperation: TypeAlias = "ir.Operation | ir.OpView"
