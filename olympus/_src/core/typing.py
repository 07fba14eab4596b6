"""Types for the signatures of rules and passes: what they take of an equation, and what they give.

What stands behind these names is higher up, or costs its import: checkers alone look there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from ..base.typing import Array

if TYPE_CHECKING:
    from ..base.lib.mlir import ir
    from ..lowering import builder
    from ..types.avals import AbstractToken, ShapedArray
    from .primitive import Linear, Zero

__all__ = ["Aval", "Builder", "Cotangent", "IrAttribute", "IrBlock", "IrModule", "IrOperation",
           "IrType", "IrValue", "Params", "Tangent", "Transposed"]

Params: TypeAlias = dict[str, Any]      # of an equation, by name
Aval: TypeAlias = "ShapedArray | AbstractToken"
Tangent: TypeAlias = "Array | Zero"
Transposed: TypeAlias = "Array | Linear"        # an operand, as rules of transposition get it
Cotangent: TypeAlias = "Array | Zero | None"    # None: of an operand that is not linear
# Of lowering
Builder: TypeAlias = "builder.Builder"
IrValue: TypeAlias = "ir.Value"
IrType: TypeAlias = "ir.Type"
IrAttribute: TypeAlias = "ir.Attribute"
IrModule: TypeAlias = "ir.Module"
IrBlock: TypeAlias = "ir.Block"
IrOperation: TypeAlias = "ir.Operation | ir.OpView"
