"""Models of ONNX: graphs of nodes and constants, which the package onnx then writes.

A graph is plain data until it is written, so that nodes that no result needs can be dropped first,
and large constants go from their arrays to a file without a copy.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, BinaryIO, NamedTuple, overload

import numpy as np

from ..base.typing import DimSize
from ..types.shape import definitely_equal
from .files import replacing

IR_VERSION, OPSET = 8, 18
# The numbers of element types (TensorProto.DataType), by MLIR's names.
DTYPES = {"f32": 1, "ui8": 2, "i8": 3, "ui16": 4, "i16": 5, "i32": 6, "i64": 7, "i1": 9, "f16": 10,
          "f64": 11, "ui32": 12, "ui64": 13, "bf16": 16}
# Protocol buffers have 2 GiB at most; of these, 128 MiB are left to nodes and to small constants.
INLINE_BYTES = 2**31 - 2**27
# For a constant that goes to the file beside; and its alignment there, so that systems can map it.
EXTERNAL_BYTES = 2**16


class Value(NamedTuple):
    """An input or output; dimensions that are no ints are named by their text, -1 is unknown."""

    name: str
    element: str
    shape: Sequence[DimSize | str]


class Node(NamedTuple):
    """An operation; attributes are ints, floats, text, sequences of ints, and graphs."""

    operation: str
    inputs: Sequence[str]
    outputs: Sequence[str]
    attributes: Mapping[str, object]

    def graphs(self) -> list[Graph]:
        return [value for value in self.attributes.values() if isinstance(value, Graph)]


class Graph:
    """Nodes and constants; names are unique in the model."""

    def __init__(self, outer: Graph | None = None) -> None:
        self.nodes: list[Node] = []
        self.constants: dict[str, np.ndarray] = {}
        self.inputs: list[Value] = []
        self.outputs: list[Value] = []
        self.count: list[int] = [0] if outer is None else outer.count
        self.constant_names: dict[Hashable, str] = {}    # by (shape, dtype, digest of the bits)

    def name(self) -> str:
        """A new name."""
        self.count[0] += 1
        return f"v{self.count[0]}"

    def constant(self, x: np.ndarray) -> str:
        """The name of a constant."""
        key = x.shape, x.dtype, hashlib.sha256(x.tobytes()).digest()
        name = self.constant_names.get(key)
        if name is None:
            name = self.constant_names[key] = self.name()
            self.constants[name] = x
        return name

    def ints(self, values: Sequence[int]) -> str:
        """The name of a vector of 64-bit integers: shapes, axes."""
        return self.constant(np.array(values, np.int64))

    @overload
    def add(self, operation: str, inputs: Sequence[str], **attributes: Any) -> str: ...

    @overload
    def add(self, operation: str, inputs: Sequence[str], outputs: int, **attributes: object
            ) -> str | list[str]: ...

    def add(self, operation: str, inputs: Sequence[str], outputs: int = 1, **attributes: object
            ) -> str | list[str]:
        """The name of the result of a node, or the names of its results."""
        names = [self.name() for _ in range(outputs)]
        self.nodes.append(Node(operation, inputs, names, attributes))
        return names[0] if outputs == 1 else names

    def prune(self) -> set[str]:
        """Drop nodes and constants that no output needs; return all names that are still read."""
        needed, nodes = {x.name for x in self.outputs}, []
        for node in reversed(self.nodes):
            if not needed.isdisjoint(node.outputs):
                nodes.append(node)
                needed.update(node.inputs, *(graph.prune() for graph in node.graphs()))
        self.nodes = nodes[::-1]
        self.constants = {name: x for name, x in self.constants.items() if name in needed}
        return needed

    def graphs(self) -> Iterator[Graph]:
        """This graph, and the subgraphs of its nodes."""
        yield self
        for node in self.nodes:
            for graph in node.graphs():
                yield from graph.graphs()


def write(graph: Graph, path: Path, name: str, version: str) -> None:
    """Write the model of a graph; large constants, if it has too many for one file, beside it."""
    onnx = _onnx()
    graph.prune()
    total = sum(x.nbytes for g in graph.graphs() for x in g.constants.values())
    if total <= INLINE_BYTES:
        data = _proto(onnx, graph, name, onnx.numpy_helper.from_array)
    else:
        beside = path.with_name(f"{path.name}.data")
        with replacing(beside) as new, new.open("wb") as file:
            data = _proto(onnx, graph, name,
                          lambda x, key: _external(onnx, x, key, file, beside.name))
    model = onnx.helper.make_model(
        data, ir_version=IR_VERSION, opset_imports=[onnx.helper.make_opsetid("", OPSET)],
        producer_name="olympus", producer_version=version)
    with replacing(path) as new:
        new.write_bytes(model.SerializeToString())


def _onnx() -> ModuleType:
    """The package onnx; ImportError names the extra if it is not installed."""
    try:
        return importlib.import_module("onnx")
    except ImportError:
        raise ImportError("to_onnx: the package onnx is not installed; it writes the model; "
                          "install it with: pip install 'olympus[onnx]'") from None


def _external(onnx: ModuleType, x: np.ndarray, name: str, file: BinaryIO, location: str) -> object:
    """A TensorProto whose data are in a file beside the model, unless they are few."""
    if x.nbytes < EXTERNAL_BYTES:
        return onnx.numpy_helper.from_array(x, name)
    offset = file.seek(-(-file.tell() // EXTERNAL_BYTES) * EXTERNAL_BYTES)
    x.tofile(file)
    tensor = onnx.TensorProto(
        name=name, dims=x.shape, data_type=onnx.helper.np_dtype_to_tensor_dtype(x.dtype),
        data_location=onnx.TensorProto.EXTERNAL)
    for key, value in (("location", location), ("offset", offset),
                       ("length", x.nbytes)):
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def _proto(onnx: ModuleType, graph: Graph, name: str, tensor: Callable[[np.ndarray, str], object]
           ) -> object:
    """The GraphProto of a graph; `tensor` makes its constants'."""
    def info(x: Value) -> object:
        sizes = [None if definitely_equal(n, -1) else n if isinstance(n, int) else str(n)
                 for n in x.shape]
        return onnx.helper.make_tensor_value_info(x.name, DTYPES[x.element], sizes)

    def attribute(value: object) -> object:
        return _proto(onnx, value, "body", tensor) if isinstance(value, Graph) else value

    nodes = [onnx.helper.make_node(
        node.operation, node.inputs, node.outputs, name=node.outputs[0],
        **{key: attribute(value) for key, value in node.attributes.items()})
        for node in graph.nodes]
    return onnx.helper.make_graph(
        nodes, name, list(map(info, graph.inputs)), list(map(info, graph.outputs)),
        [tensor(x, key) for key, x in graph.constants.items()])
