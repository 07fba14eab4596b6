"""Models of ONNX as bytes: the parts of its protocol buffers that exports need.

A message is its fields in wire format; the numbers of fields are those of onnx.proto.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["DTYPES", "Graph", "model", "value_info"]

IR_VERSION, OPSET = 8, 18
# The numbers of element types, by MLIR's names.
DTYPES = {"f32": 1, "ui8": 2, "i8": 3, "ui16": 4, "i16": 5, "i32": 6, "i64": 7, "i1": 9, "f16": 10,
          "f64": 11, "ui32": 12, "ui64": 13, "bf16": 16}
_NUMPY = {"float32": 1, "uint8": 2, "int8": 3, "uint16": 4, "int16": 5, "int32": 6, "int64": 7,
          "bool": 9, "float16": 10, "float64": 11, "uint32": 12, "uint64": 13, "bfloat16": 16}


def _varint(n: int) -> bytes:
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def _int(field: int, n: int) -> bytes:
    return _varint(field << 3) + _varint(n)


def _bytes(field: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _float(field: int, x: float) -> bytes:
    return _varint(field << 3 | 5) + np.float32(x).tobytes()


def tensor(name: str, x: np.ndarray) -> bytes:
    """A TensorProto."""
    dims = b"".join(_int(1, n) for n in x.shape)
    return dims + _int(2, _NUMPY[x.dtype.name]) + _bytes(8, name) + _bytes(
        9, np.ascontiguousarray(x).tobytes())


def value_info(name: str, element: str, shape: Sequence[Any]) -> bytes:
    """A ValueInfoProto; dimensions that are no ints are named by their text, -1 is unknown."""
    dims = b"".join(_bytes(1, _dimension(n)) for n in shape)
    kind = _bytes(1, _int(1, DTYPES[element]) + _bytes(2, dims))
    return _bytes(1, name) + _bytes(2, kind)


def _dimension(d: Any) -> bytes:
    if isinstance(d, int):
        return b"" if d == -1 else _int(1, d)
    return _bytes(2, str(d))


def _attribute(name: str, value: Any) -> bytes:
    """An AttributeProto: of an int, a float, text, ints or a graph."""
    head = _bytes(1, name)
    if isinstance(value, Graph):
        return head + _bytes(6, value.proto("body")) + _int(20, 5)
    if isinstance(value, str):
        return head + _bytes(4, value) + _int(20, 3)
    if isinstance(value, float):
        return head + _float(2, value) + _int(20, 1)
    if isinstance(value, int):
        return head + _int(3, value) + _int(20, 2)
    return head + b"".join(_int(8, n) for n in value) + _int(20, 7)


class Graph:
    """Nodes and constants; names are unique in the model."""

    def __init__(self, outer: Graph | None = None) -> None:
        self.nodes: list[bytes] = []
        self.constants: list[bytes] = []
        self.inputs: list[bytes] = []
        self.outputs: list[bytes] = []
        self.count: list[int] = [0] if outer is None else outer.count
        self.known: dict[Any, str] = {}     # constants by their bits

    def name(self) -> str:
        """A name that no value has."""
        self.count[0] += 1
        return f"v{self.count[0]}"

    def constant(self, x: np.ndarray) -> str:
        """The name of a constant."""
        key = x.shape, x.dtype, x.tobytes()
        found = self.known.get(key)
        if found is None:
            found = self.known[key] = self.name()
            self.constants.append(tensor(found, x))
        return found

    def ints(self, values: Sequence[int]) -> str:
        """The name of a vector of 64-bit integers: shapes, axes."""
        return self.constant(np.array(values, np.int64))

    def add(self, operation: str, inputs: Sequence[str], outputs: int = 1, **attributes: Any
            ) -> Any:
        """The name of the result of a node, or the names of its results."""
        names = [self.name() for _ in range(outputs)]
        self.node(operation, inputs, names, attributes)
        return names[0] if outputs == 1 else names

    def node(self, operation: str, inputs: Sequence[str], names: Sequence[str],
             attributes: Mapping[str, Any]) -> None:
        """Add a node whose results have these names."""
        self.nodes.append(
            b"".join(_bytes(1, n) for n in inputs) + b"".join(_bytes(2, n) for n in names)
            + _bytes(3, names[0]) + _bytes(4, operation)
            + b"".join(_bytes(5, _attribute(k, v)) for k, v in attributes.items()))

    def proto(self, name: str) -> bytes:
        """The GraphProto."""
        return b"".join([
            *(_bytes(1, n) for n in self.nodes), _bytes(2, name),
            *(_bytes(5, c) for c in self.constants), *(_bytes(11, i) for i in self.inputs),
            *(_bytes(12, o) for o in self.outputs)])


def model(graph: Graph, name: str, version: str, notes: Mapping[str, str]) -> bytes:
    """The ModelProto of a graph."""
    return b"".join([
        _int(1, IR_VERSION), _bytes(2, "olympus"), _bytes(3, version), _bytes(7, graph.proto(name)),
        _bytes(8, _bytes(1, "") + _int(2, OPSET)),
        *(_bytes(14, _bytes(1, k) + _bytes(2, v)) for k, v in notes.items())])
