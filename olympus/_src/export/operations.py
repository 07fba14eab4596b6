"""Properties of StableHLO's operations: types and attributes as values of Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.lib import mlir
from ..base.typing import IrBlock, IrOperation, IrValue

# NumPy's names of element types; it has no bfloat16, whose values float32 holds.
NUMPY_OF = {"f32": "float32", "f64": "float64", "f16": "float16", "i32": "int32", "i64": "int64",
            "i8": "int8", "i16": "int16", "ui8": "uint8", "ui16": "uint16", "ui32": "uint32",
            "ui64": "uint64", "bf16": "float32", "i1": "bool"}


def element_of(x: IrValue) -> str:
    return str(mlir.ir.RankedTensorType(x.type).element_type)


def kind_of(x: IrValue) -> str:
    """The element type of a value; of tokens and others their own."""
    ir = mlir.ir
    return element_of(x) if isinstance(x.type, ir.RankedTensorType) else str(x.type)


def array_of(op: IrOperation) -> np.ndarray:
    """The elements of a constant; bfloat16's in float32."""
    elements: Any = mlir.ir.DenseElementsAttr(op.attributes["value"])
    if str(elements.type.element_type) != "bf16":
        return np.array(elements)
    # MLIR hands these over as text only: numbers, bits of one, or bits of all.
    shape = elements.type.shape
    text = str(elements).partition("<")[2].rpartition("> :")[0]
    if text.startswith('"'):
        bits = np.frombuffer(bytes.fromhex(text[3:-1]), np.uint16)
    else:
        words = text.replace("[", " ").replace("]", " ").replace(",", " ").split()
        bits = np.array([int(word, 16) if word.startswith("0x") else
                         np.float32(word).view(np.uint32) >> 16 for word in words], np.uint16)
    wide = (bits.astype(np.uint32) << 16).view(np.float32)
    return np.broadcast_to(wide.reshape(() if elements.is_splat else shape), shape)


def shape_of(x: IrValue) -> list[int]:
    """The sizes of a value; -1 for those that are not known, as `Reshape` has it."""
    kind = mlir.ir.RankedTensorType(x.type)
    return [-1 if kind.is_dynamic_dim(i) else kind.get_dim_size(i) for i in range(kind.rank)]


def name_of(op: IrOperation) -> str:
    return op.operation.name.partition(".")[2]


def int_of(op: IrOperation, name: str, default: int = 1) -> int:
    return mlir.ir.IntegerAttr(op.attributes[name]).value if name in op.attributes else default


def ints_of(op: IrOperation, name: str) -> list[int]:
    """An attribute that is an array of integers; empty where it is left out."""
    if name not in op.attributes:
        return []
    return [int(n) for n in np.array(mlir.ir.DenseI64ArrayAttr(op.attributes[name]))]


def pairs_of(op: IrOperation, name: str, count: int) -> list[tuple[int, int]]:
    """An attribute that is a matrix of two columns: padding; zeros where it is left out."""
    if name not in op.attributes:
        return [(0, 0)] * count
    pairs = np.array(mlir.ir.DenseElementsAttr(op.attributes[name])).reshape(count, 2)
    return [(int(a), int(b)) for a, b in pairs]


def body_of(op: IrOperation, index: int = 0) -> IrBlock:
    return op.regions[index].blocks[0]


def callee_of(op: IrOperation) -> str:
    field = "callee" if "callee" in op.attributes else "decomposition"
    return mlir.ir.FlatSymbolRefAttr(op.attributes[field]).value


def direction_of(op: IrOperation) -> str:
    """EQ, LT … of a comparison."""
    return str(op.attributes["comparison_direction"]).rpartition(" ")[2].rstrip(">")


def orders_of(op: IrOperation) -> str | None:
    """The comparison of a sort or an argmax: LT or GT; None if it has none."""
    body, is_sort = body_of(op), name_of(op) == "sort"
    # An argmax compares values, and places where those are equal.
    directions = [direction_of(inner) for inner in body.operations if name_of(inner) == "compare"
                  and (is_sort or inner.operands[0] != body.arguments[1])]
    for direction in reversed(directions) if is_sort else directions:
        if direction in ("LT", "GT", "LE", "GE"):
            return direction[0] + "T"
    return None


def combiner_of(op: IrOperation) -> str:
    """The only operation in a region, `return` where that returns an argument; else ''."""
    names = [name_of(inner) for inner in body_of(op).operations]
    return names[0] if len(names) == 2 or names == ["return"] else ""
