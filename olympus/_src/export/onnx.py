"""Exports for ONNX: StableHLO as a graph of its operations, for inference engines.

`to_onnx` walks the module of an export; a method of `_Converter` stands for each operation of
StableHLO. Calls are written out. A broadcast stays small until an operation needs the whole array,
since ONNX's elementwise operations broadcast by themselves.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from ...version import __version__
from ..base.lib import mlir
from ..base.typing import IrBlock, IrOperation, IrValue
from ..lowering.attributes import module_context
from ..types.shape import definitely_equal, prod
from . import edges
from .edges import write_edges
from .exported import Exported
from .module import check_single, drop_assertions, drop_identities, read_module
from .onnx_elementwise import BINARY, FLOATS, UNARY, WIDER, Elementwise, Functions, refuse
from .onnx_model import DTYPES, Graph, Node, Value, write
from .operations import (
    NUMPY_OF, array_of, body_of, callee_of, combiner_of, element_of, int_of, ints_of, kind_of,
    name_of, orders_of, pairs_of, shape_of,
)

_REDUCTIONS = {"add": "ReduceSum", "maximum": "ReduceMax", "minimum": "ReduceMin",
               "multiply": "ReduceProd"}
_SCATTERS = {"add": "add", "multiply": "mul", "maximum": "max", "minimum": "min", "return": "none"}


def to_onnx(exported: Exported, path: str | Path) -> dict[str, str]:
    """Write an export as a model of ONNX (opset 18).

    Args:
      exported: an `Exported`; symbolic sizes become named dimensions.
      path: the file, as a rule `.onnx`.
    Returns: The model's inputs and outputs by name, with their types: `in0`, `in1` … by the numbers
      of flat arguments (those that the program ignores are left out), `out0`, `out1` ….

    Constants that are too large for one file, of 2 GiB, go to `PATH.data` beside it.

    NotImplementedError, with all their names, for operations without a counterpart: complex
    numbers, random bits, Fourier transforms, factorisations, custom calls; ImportError without the
    package onnx (the extra `onnx`). The numbers equal jit's, also at the edges of formats;
    docs/export.md has what ONNX Runtime computes otherwise still.

    >>> exported = export.export(olympus.jit(lambda x: onp.tanh(x) + 1))(onp.ones(3))
    >>> export.to_onnx(exported, "tanh.onnx")       # doctest: +SKIP
    {'in0': 'float32[3]', 'out0': 'float32[3]'}
    """
    check_single("to_onnx", exported.fun_name, exported)
    module = read_module(exported.mlir_module_serialized)
    drop_assertions(module)
    drop_identities(module)
    write_edges(module, edges.ONNX)
    functions: dict[str, Any] = {mlir.ir.StringAttr(op.attributes["sym_name"]).value: op
                 for op in module.body.operations if op.operation.name == "func.func"}
    graph = Graph()
    with module_context():
        missing = sorted(set(_missing(functions["main"], functions)))
        if missing:
            raise NotImplementedError(
                f"to_onnx: {exported.fun_name} has {', '.join(missing)}, which ONNX has no "
                "counterpart for here; compute that part otherwise.")
        converter = _Converter(graph, functions)
        types: dict[str, str] = {}
        block = functions["main"].entry_block
        for i, x in zip(exported.module_kept_var_idx, block.arguments, strict=True):
            aval, name = exported.in_avals[i], f"in{i}"
            graph.inputs.append(Value(name, element_of(x), aval.shape))
            converter.env[x], types[name] = name, str(aval)
        outs = converter.block(block)
        last = list(block.operations)[-1]
        for i, (name, x, aval) in enumerate(zip(outs, last.operands, exported.out_avals,
                                                strict=True)):
            # A node of its own: a result may be an argument, or two results the same value.
            graph.nodes.append(Node("Identity", [name], [f"out{i}"], {}))
            graph.outputs.append(Value(f"out{i}", element_of(x), aval.shape))
            types[f"out{i}"] = str(aval)
    write(graph, Path(path), exported.fun_name, __version__)
    return types


def _known_sizes(op: IrOperation, sizes: Sequence[int]) -> Sequence[int]:
    """The sizes, if they are known."""
    if -1 in sizes:
        raise refuse(op, "along an axis of unknown size")
    return sizes


def _factor(op: IrOperation) -> str:
    """The element type in which arrays are multiplied: the widest of operands and result."""
    kinds = map(element_of, (*op.results, *op.operands))
    widest = max(kinds, key=lambda kind: int(kind.lstrip("bfiu")))
    return "f32" if widest == "bf16" else WIDER.get(widest, widest)


def _element_count(sizes: Sequence[int]) -> int:
    return -1 if -1 in sizes else prod(sizes)


def _missing(fn: IrOperation, functions: Functions) -> list[str]:
    """The operations of a function, and of those that it calls, without a counterpart."""
    missing = [f"an argument of {kind}" for x in fn.regions[0].blocks[0].arguments
               if (kind := kind_of(x)) not in DTYPES]
    pending, seen = [fn], set()
    while pending:
        for op in pending.pop().regions[0].blocks[0].operations:
            nested = [op]
            while nested:
                inner = nested.pop()
                name = inner.operation.name
                short = name.partition(".")[2]
                if "callee" in inner.attributes or "decomposition" in inner.attributes:
                    callee = callee_of(inner)
                    if callee not in seen:
                        seen.add(callee)
                        pending.append(functions[callee])
                elif name == "stablehlo.custom_call":
                    missing.append(f"custom call {inner.attributes['call_target_name']}")
                elif short not in ("return", *UNARY, *BINARY) and not hasattr(
                        _Converter, f"do_{short}"):
                    missing.append(name)
                elif short in ("while", "case"):
                    nested += [o for r in inner.regions for b in r.blocks for o in b.operations]
                missing += [f"{name} of {kind}" for x in inner.results
                            if (kind := kind_of(x)) not in DTYPES]
    return missing


class _Converter(Elementwise):
    """The graph under construction: a method for each operation."""

    def block(self, block: IrBlock) -> list[str]:
        """Convert the operations of a block; the names of its results."""
        for op in block.operations:
            name = name_of(op)
            if name == "return":
                return [self.of(x) for x in op.operands]
            if name in ("call", "composite"):
                self.call(op)
                continue
            if name in UNARY:
                outs = self.add(UNARY[name], self.of(op.operands[0]))
            elif name in BINARY:
                outs = self.binary(op, name)
            else:
                outs = getattr(self, f"do_{name}")(op)
            if outs is None:
                continue
            for x, out in zip(op.results, [outs] if isinstance(outs, str) else outs, strict=True):
                self.env[x] = out
        raise AssertionError("a block without a terminator")

    def call(self, op: IrOperation) -> None:
        """Write a function out where it is called."""
        block = self.functions[callee_of(op)].regions[0].blocks[0]
        inner = _Converter(self.graph, self.functions, self)
        for x, operand in zip(block.arguments, op.operands, strict=True):
            inner.env[x] = self.of(operand)
        for x, name in zip(op.results, inner.block(block), strict=True):
            self.env[x] = name

    def subgraph(self, block: IrBlock) -> tuple[_Converter, list[str]]:
        """A region as a graph of its own, and the names of its results."""
        inner = _Converter(Graph(self.graph), self.functions, self)
        return inner, inner.block(block)

    # Constants and shapes

    def do_constant(self, op: IrOperation) -> str:
        elements: Any = mlir.ir.DenseElementsAttr(op.attributes["value"])
        out, = op.results
        element = element_of(out)
        if element == "bf16":
            return self.cast(self.graph.constant(array_of(op)), "bf16")
        if elements.is_splat and shape_of(out):
            value = np.asarray(elements.get_splat_value().value, NUMPY_OF[element])
            self.arrays[out] = value
            self.small[out] = self.graph.constant(value), self.shape_of(out)
            return None     # type: ignore[return-value]
        array = array_of(op)
        self.arrays[out] = array
        return self.graph.constant(array)

    def do_iota(self, op: IrOperation) -> None:
        out, = op.results
        shape, axis = shape_of(out), int_of(op, "iota_dimension")
        row = np.arange(shape[axis]).astype(NUMPY_OF[element_of(out)])
        row = row.reshape([shape[axis] if i == axis else 1 for i in range(len(shape))])
        name = self.graph.constant(row)
        self.small[out] = (self.cast(name, "bf16") if element_of(out) == "bf16" else name,
                           self.shape_of(out))

    def do_broadcast_in_dim(self, op: IrOperation) -> None:
        (x,), (out,) = op.operands, op.results
        dims, shape = ints_of(op, "broadcast_dimensions"), shape_of(out)
        inner = [1] * len(shape)
        for d, n in zip(dims, shape_of(x), strict=True):
            inner[d] = n
        name, scalar = self.near(x), self.arrays.get(x)
        if scalar is not None and scalar.size == 1:
            self.arrays[out] = scalar.reshape(())
        if dims and (len(dims) < len(shape)):
            name = self.reshape(self.of(x), inner)
        self.small[out] = name, self.shape_of(out)

    def size_of(self, x: IrValue, axis: int) -> str:
        """The name of a vector that has a size of a value."""
        known = shape_of(x)[axis]
        if known >= 0:
            return self.graph.ints([known])
        return self.add("Gather", self.add("Shape", self.of(x)), self.graph.ints([axis]))

    def do_get_dimension_size(self, op: IrOperation) -> str:
        size = self.size_of(op.operands[0], int_of(op, "dimension"))
        return self.cast(self.add("Squeeze", size), element_of(op.results[0]))

    def do_dynamic_broadcast_in_dim(self, op: IrOperation) -> None:
        (x, shape), (out,) = op.operands, op.results
        dims = ints_of(op, "broadcast_dimensions")
        new = [i for i in range(len(shape_of(out))) if i not in dims]
        name = self.of(x)
        if dims and new:
            name = self.add("Unsqueeze", name, self.graph.ints(new))
        self.small[out] = name, self.cast(self.of(shape), "i64")

    def do_dynamic_reshape(self, op: IrOperation) -> str:
        x, shape = op.operands
        return self.add("Reshape", self.of(x), self.cast(self.of(shape), "i64"), allowzero=1)

    def do_dynamic_iota(self, op: IrOperation) -> None:
        (shape,), (out,) = op.operands, op.results
        sizes, axis = self.cast(self.of(shape), "i64"), int_of(op, "iota_dimension")
        size = self.add("Squeeze", self.add("Gather", sizes, self.graph.ints([axis])))
        row = self.add("Range", self.graph.constant(np.array(0)), size,
                       self.graph.constant(np.array(1)))
        new = [i for i in range(len(shape_of(out))) if i != axis]
        row = self.add("Unsqueeze", row, self.graph.ints(new)) if new else row
        self.small[out] = self.cast(row, element_of(out)), sizes

    def do_real_dynamic_slice(self, op: IrOperation) -> str:
        x, *edges = op.operands
        starts, limits, strides = (self.cast(self.of(e), "i64") for e in edges)
        axes = self.graph.ints(range(len(shape_of(x))))
        return self.add("Slice", self.of(x), starts, limits, axes, strides)

    def do_reshape(self, op: IrOperation) -> str:
        return self.reshape(self.of(op.operands[0]), shape_of(op.results[0]))

    def do_transpose(self, op: IrOperation) -> str:
        return self.transpose(self.of(op.operands[0]), ints_of(op, "permutation"))

    def do_slice(self, op: IrOperation) -> str:
        return self.slice(self.of(op.operands[0]), ints_of(op, "start_indices"),
                          ints_of(op, "limit_indices"), ints_of(op, "strides"))

    def slice(self, name: str, starts: Sequence[int], limits: Sequence[int],
              strides: Sequence[int]) -> str:
        ints = self.graph.ints
        return self.add("Slice", name, ints(starts), ints(limits), ints(range(len(starts))),
                        ints(strides))

    def do_reverse(self, op: IrOperation) -> str:
        return self.flip(self.of(op.operands[0]), ints_of(op, "dimensions"))

    def flip(self, name: str, axes: Sequence[int]) -> str:
        if not axes:
            return name
        ints, count = self.graph.ints, len(axes)
        return self.add("Slice", name, ints([-1] * count), ints([-(2**62)] * count), ints(axes),
                        ints([-1] * count))

    def do_concatenate(self, op: IrOperation) -> str:
        return self.add("Concat", *map(self.of, op.operands), axis=int_of(op, "dimension"))

    def do_pad(self, op: IrOperation) -> str:
        x, value = op.operands
        low, high, inner = (ints_of(op, name) for name in (
            "edge_padding_low", "edge_padding_high", "interior_padding"))
        return self.pad(self.of(x), shape_of(x), self.of(value), low, high, inner)

    def pad(self, name: str, shape: Sequence[int], value: str, low: Sequence[int],
            high: Sequence[int], inner: Sequence[int]) -> str:
        """Padding at the ends and between elements, which is padding along an axis of its own."""
        shape = list(shape)
        for axis, n in enumerate(inner):
            if n:
                size = shape[axis]
                split = [*shape[:axis + 1], 1, *shape[axis + 1:]]
                ends = [0] * (axis + 1) + [n] + [0] * (len(shape) - axis - 1)
                name = self.add("Pad", self.reshape(name, split),
                                self.graph.ints([0] * len(split) + ends), value)
                shape[axis] = size * (n + 1)
                name = self.reshape(name, shape)
                limits = list(shape)
                limits[axis] = shape[axis] = max(size + (size - 1) * n, 0)
                name = self.slice(name, [0] * len(shape), limits, [1] * len(shape))
        if any(low) or any(high):
            name = self.add("Pad", name, self.graph.ints([*low, *high]), value)
        return name

    def do_dynamic_slice(self, op: IrOperation) -> str:
        x, *starts = op.operands
        sizes, shape = ints_of(op, "slice_sizes"), shape_of(x)
        _known_sizes(op, shape)
        begin = self.starts(starts, [n - s for n, s in zip(shape, sizes, strict=True)])
        end = self.add("Add", begin, self.graph.ints(sizes))
        return self.add("Slice", self.of(x), begin, end, self.graph.ints(range(len(sizes))))

    def starts(self, starts: Sequence[IrValue], most: Sequence[int]) -> str:
        """Scalar indices as a vector of 64-bit integers between 0 and `most`."""
        one = self.graph.ints([1])
        columns = [self.add("Reshape", self.cast(self.of(s), "i64"), one) for s in starts]
        whole = self.add("Concat", *columns, axis=0) if columns else self.graph.ints([])
        whole = self.add("Max", whole, self.graph.ints([0] * len(most)))
        return self.add("Min", whole, self.graph.ints(most))

    def do_dynamic_update_slice(self, op: IrOperation) -> str:
        x, update, *starts = op.operands
        sizes, shape = shape_of(update), shape_of(x)
        cut = [i for i, (n, m) in enumerate(zip(shape, sizes, strict=True))
               if not definitely_equal(n, m)
               or definitely_equal(n, -1) and self.arrays.get(starts[i]) != 0]
        if not cut:
            return self.of(update)
        if len(cut) == 1:       # the axis keeps its parts before and behind the window
            axis, = cut
            most = _known_sizes(op, [shape[axis]])[0] - _known_sizes(op, [sizes[axis]])[0]
            begin = self.starts([starts[axis]], [most])
            end = self.add("Add", begin, self.graph.ints([sizes[axis]]))
            ints, where = self.graph.ints, self.graph.ints([axis])
            return self.add("Concat", self.add("Slice", self.of(x), ints([0]), begin, where),
                            self.of(update),
                            self.add("Slice", self.of(x), end, ints([2**62]), where), axis=axis)
        # The places of the update's elements, all of them, for ScatterND.
        _known_sizes(op, sizes)
        begin = self.starts(starts, [n - s for n, s in zip(shape, sizes, strict=True)])
        grid = np.stack(np.meshgrid(*map(np.arange, sizes), indexing="ij"), -1).astype(np.int64)
        return self.add("ScatterND", self.of(x), self.add("Add", self.graph.constant(grid), begin),
                        self.of(update))

    # Reductions

    def do_reduce(self, op: IrOperation) -> list[str] | str:
        count = len(op.results)
        xs, inits = list(op.operands)[:count], list(op.operands)[count:]
        axes = ints_of(op, "dimensions")
        if count == 2 and len(axes) == 1:
            return self._arg_extreme(op, xs[0], axes[0])
        name = combiner_of(op)
        if count > 1 or name not in (*_REDUCTIONS, "and", "or"):
            raise refuse(op, "of several arrays, or with a function of its own")
        return self.reduced(op, name, xs[0], inits[0], axes)

    def reduced(self, op: IrOperation, name: str, x: IrValue, init: IrValue, axes: Sequence[int]
                ) -> str:
        if element_of(x) == "i1":     # as numbers: all is the least, any the greatest
            name = {"and": "minimum", "or": "maximum"}.get(name, name)
        elif name in ("and", "or"):
            raise refuse(op, f"of the bits of {element_of(x)}")
        operand, element = self.wide(x), element_of(x)
        if element not in FLOATS and name in ("add", "multiply"):
            out = self._whole(op, name, operand, element, shape_of(x), axes)
        else:
            out = self.add(_REDUCTIONS[name], operand, self.graph.ints(axes), keepdims=0,
                           noop_with_empty_axes=1)
        if element in FLOATS and name in ("maximum", "minimum"):
            out = self._or_nan(out, self._any_nan(x, axes), x)
        if not self._is_identity(init, name):
            out = self.add(BINARY[name], out, self.wide(init))
        return self.narrow(out, x)

    def _any_nan(self, x: IrValue, axes: Sequence[int]) -> str:
        """Whether there is NaN along axes: ONNX Runtime's extrema skip it."""
        return self.cast(self.add("ReduceMax", self._nans(x, "ui8"), self.graph.ints(axes),
                                  keepdims=0, noop_with_empty_axes=1), "i1")

    def _nans(self, x: IrValue, element: str) -> str:
        """1 where a value is NaN, else 0."""
        return self.cast(self.add("IsNaN", self.of(x)), element)

    def _or_nan(self, value: str, where: str, x: IrValue) -> str:
        return self.add("Where", where, self.scalar(np.nan, x), value)

    def _whole(self, op: IrOperation, name: str, value: str, element: str, shape: list[int],
               axes: Sequence[int]) -> str:
        """A sum or product of integers, which ONNX Runtime's own takes as doubles.

        A sum is a product with ones.
        """
        element = WIDER.get(element, element)
        for axis in sorted(axes, reverse=True):
            if name == "multiply":
                value = self._multiplied(value, axis, *_known_sizes(op, [shape[axis]]))
            else:
                last = len(shape) - 1
                value = self.transpose(value, [*(i for i in range(last + 1) if i != axis), axis])
                known = not definitely_equal(shape[axis], -1)
                length = self.graph.ints([shape[axis]]) if known else self.add(
                    "Gather", self.add("Shape", value), self.graph.ints([last]))
                value = self.add("MatMul", value,
                                 self.add("Expand", self.number(1, element), length))
            shape = [*shape[:axis], *shape[axis + 1:]]
        return value

    def _multiplied(self, factor: str, axis: int, count: int) -> str:
        """The product along an axis: its halves are multiplied until it has one element."""
        ints, where = self.graph.ints, self.graph.ints([axis])
        while count > 1:
            half = count // 2
            parts = [self.add("Slice", factor, ints([a]), ints([b]), where)
                     for a, b in ((0, half), (half, 2 * half), (2 * half, count)) if a < b]
            factor = self.add("Mul", *parts[:2])
            if count % 2:
                factor = self.add("Concat", factor, parts[2], axis=axis)
            count -= half
        if count:
            return self.add("Squeeze", factor, where)
        return self.add("ReduceProd", factor, where, keepdims=0)

    def _is_identity(self, init: IrValue, name: str) -> bool:
        value = self.arrays.get(init)
        if value is None:
            return False
        if value.dtype.kind == "b":
            return bool(value) == (name == "minimum")
        if name in ("add", "multiply"):
            return bool(value == (name == "multiply"))
        worst = (np.inf if value.dtype.kind == "f" else np.iinfo(value.dtype).max,
                 -np.inf if value.dtype.kind == "f" else np.iinfo(value.dtype).min)
        return bool(value == worst[name == "maximum"])

    def _arg_extreme(self, op: IrOperation, x: IrValue, axis: int) -> list[str]:
        order = orders_of(op)
        if order is None or element_of(op.operands[1])[0] not in "iu":
            raise refuse(op, "of two arrays with a function of its own")
        name = "ArgMax" if order == "GT" else "ArgMin"
        index = self.add(name, self.wide(x), axis=axis, keepdims=0)
        value = self.add("ReduceMax" if order == "GT" else "ReduceMin", self.wide(x),
                         self.graph.ints([axis]), keepdims=0)
        if element_of(x) in FLOATS:     # the first NaN, if there is one
            nan = self._any_nan(x, [axis])
            first = self.add("ArgMax", self._nans(x, "ui8"), axis=axis, keepdims=0)
            index = self.add("Where", nan, first, index)
            value = self._or_nan(value, nan, x)
        return [self.narrow(value, x), self.cast(index, element_of(op.results[1]))]

    def do_reduce_window(self, op: IrOperation) -> str:
        if len(op.results) != 1:
            raise refuse(op, "of several arrays")
        x, init = op.operands
        shape, name = shape_of(x), combiner_of(op)
        rank = len(shape)
        window = ints_of(op, "window_dimensions")
        strides = ints_of(op, "window_strides") or [1] * rank
        dilations = ints_of(op, "window_dilations") or [1] * rank
        pads = pairs_of(op, "padding", rank)
        if any(n != 1 for n in ints_of(op, "base_dilations")) or name not in ("add", "maximum",
                                                                            "minimum"):
            raise refuse(op, "of spread elements, or with a function of its own")
        axes = [i for i in range(rank) if window[i] != 1 or strides[i] != 1 or any(pads[i])]
        axes = axes or [rank - 1]
        axis, n = axes[0], window[axes[0]]
        if (name == "add" and len(axes) == 1 and strides[axis] == dilations[axis] == 1
                and self._is_identity(init, name)):
            if definitely_equal(n, shape[axis]) and pads[axis] in ((n - 1, 0), (0, n - 1)):
                reduced = self.add("CumSum", self.wide(x), self.graph.constant(np.array(axis)),
                                   reverse=int(pads[axis][1] > 0))
                return self.narrow(reduced, x)
        operand = self.of(x)
        whole = name != "add" and element_of(x) in (*WIDER, "i32")
        if whole:       # pooling has floats only, and float64 has these integers
            operand = self.cast(operand, "f64")
        elif element_of(x) not in ("f32", "f16", "f64"):
            raise refuse(op, f"of {element_of(x)}")
        # To the form of pooling: (others, 1, windowed).
        others = [i for i in range(rank) if i not in axes]
        order = others + axes
        sizes = [shape[i] for i in order]
        operand = self.transpose(operand, order)
        if len(others) != 2:
            count = _element_count([shape[i] for i in others])
            operand = self.reshape(operand, [count, 1, *(shape[i] for i in axes)])
        kernel = [window[i] for i in axes]
        options = {"kernel_shape": kernel, "strides": [strides[i] for i in axes],
                   "pads": [pads[i][0] for i in axes] + [pads[i][1] for i in axes]}
        if name == "add":
            if any(dilations[i] != 1 for i in axes):
                raise refuse(op, "of a sum with dilated windows")
            reduced = self.add("AveragePool", operand, count_include_pad=1, **options)
            reduced = self.add("Mul", reduced, self.scalar(float(np.prod(kernel)), x))
        else:
            options["dilations"] = [dilations[i] for i in axes]
            operand = operand if name == "maximum" else self.add("Neg", operand)
            reduced = self.add("MaxPool", operand, **options)
            if not whole:
                reduced = self._pooled(reduced, operand, element_of(x), options)
            reduced = reduced if name == "maximum" else self.add("Neg", reduced)
            reduced = self.cast(reduced, element_of(x)) if whole else reduced
        out = shape_of(op.results[0])
        if len(others) != 2:
            reduced = self.reshape(reduced, [*sizes[:len(others)], *(out[i] for i in axes)])
        reduced = self.transpose(reduced, [order.index(i) for i in range(rank)])
        if not self._is_identity(init, name):
            reduced = self.add(BINARY[name], reduced, self.of(init))
        return reduced

    def _pooled(self, pooled: str, value: str, element: str, options: Mapping[str, object]) -> str:
        """Maxima over windows where these have NaN, which ONNX Runtime skips, or nothing above
        -infinity, where it gives the least finite number.
        """
        least, nan = (self.number(x, element) for x in (-np.inf, np.nan))
        above = self.cast(self.add("Greater", value, least), element)
        rank = self.add("Where", self.add("IsNaN", value), self.number(2, element), above)
        rank = self.add("MaxPool", rank, **options)
        pooled = self.add("Where", self.add("Less", rank, self.number(1, element)), least, pooled)
        return self.add("Where", self.add("Equal", rank, self.number(2, element)), nan, pooled)

    # Products

    def do_dot_general(self, op: IrOperation) -> str:
        (x, y), (out,) = op.operands, op.results
        kind = _factor(op)
        numbers = mlir.hlo.DotDimensionNumbers(op.attributes["dot_dimension_numbers"])
        sides = []
        for value, contracting, batch, first in (
                (x, numbers.lhs_contracting_dimensions, numbers.lhs_batching_dimensions, True),
                (y, numbers.rhs_contracting_dimensions, numbers.rhs_batching_dimensions, False)):
            shape = shape_of(value)
            free = [i for i in range(len(shape)) if i not in (*contracting, *batch)]
            order = [*batch, *free, *contracting] if first else [*batch, *contracting, *free]
            sides.append((value, order, [shape[i] for i in batch], [shape[i] for i in free],
                          _element_count([shape[i] for i in contracting])))
        names = []
        for first, (value, order, batch, free, inner) in zip((True, False), sides, strict=True):
            size = _element_count(free)
            wanted = [*batch, *([size, inner] if first else [inner, size])]
            name = self.transpose(self.cast(self.of(value), kind, element_of(value)), order)
            names.append(name if [shape_of(value)[i] for i in order] == wanted
                         else self.reshape(name, wanted))
        product = self.add("MatMul", *names)
        batch, (left, right) = sides[0][2], (sides[0][3], sides[1][3])
        if len(left) != 1 or len(right) != 1:
            product = self.reshape(product, [*batch, *left, *right])
        return self.cast(product, element_of(out), kind)

    def do_convolution(self, op: IrOperation) -> str:
        (x, kernel), (out,) = op.operands, op.results
        kind = _factor(op)
        if element_of(out) == "i1":
            kind = "f32"        # a sum of products is not 0 where one is not
        elif kind not in ("f16", "f32", "f64"):
            raise refuse(op, f"of {element_of(out)}")
        n = mlir.hlo.ConvDimensionNumbers(op.attributes["dimension_numbers"])
        spatial = len(n.input_spatial_dimensions)
        strides = ints_of(op, "window_strides") or [1] * spatial
        pads = pairs_of(op, "padding", spatial)
        inner = [d - 1 for d in ints_of(op, "lhs_dilation")] or [0] * spatial
        if int_of(op, "batch_group_count") != 1:
            raise refuse(op, "with groups of the batch")
        order = [n.input_batch_dimension, n.input_feature_dimension, *n.input_spatial_dimensions]
        name = self.transpose(self.cast(self.of(x), kind, element_of(x)), order)
        shape = [shape_of(x)[i] for i in order]
        low, high = [a for a, _ in pads], [b for _, b in pads]
        if any(inner) or min([*low, *high], default=0) < 0:
            name = self.pad(name, shape, self.number(0, kind), [0, 0, *low], [0, 0, *high],
                            [0, 0, *inner])
            low, high = [0] * spatial, [0] * spatial
        weights = self.transpose(self.cast(self.of(kernel), kind, element_of(kernel)), [
            n.kernel_output_feature_dimension, n.kernel_input_feature_dimension,
            *n.kernel_spatial_dimensions])
        if "window_reversal" in op.attributes:
            flags = list(mlir.ir.DenseBoolArrayAttr(op.attributes["window_reversal"]))
            weights = self.flip(weights, [i + 2 for i, flag in enumerate(flags) if flag])
        if not spatial:         # ONNX has no product without contracted axes: add one of size 1
            name, weights = (self.add("Unsqueeze", v, self.graph.ints([2]))
                             for v in (name, weights))
            strides, low, high = [1], [0], [0]
        out_name = self.add("Conv", name, weights, strides=strides, pads=[*low, *high],
                            dilations=ints_of(op, "rhs_dilation") or [1] * max(spatial, 1),
                            group=int_of(op, "feature_group_count"))
        if not spatial:
            out_name = self.add("Squeeze", out_name, self.graph.ints([2]))
        order = [n.output_batch_dimension, n.output_feature_dimension, *n.output_spatial_dimensions]
        out_name = self.transpose(out_name, [order.index(i) for i in range(spatial + 2)])
        return self.cast(out_name, element_of(out), kind)

    # Indexing

    def _indices(self, x: IrValue, axis: int, batch: Sequence[int]) -> tuple[str, list[int]]:
        """Indices with their vectors last and batched axes first, and the other axes."""
        shape, name = shape_of(x), self.cast(self.of(x), "i64")
        if axis == len(shape):
            name, shape = self.reshape(name, [*shape, 1]), [*shape, 1]
        rest = [i for i in range(len(shape)) if i != axis and i not in batch]
        return self.transpose(name, [*batch, *rest, axis]), [shape[i] for i in rest]

    def do_gather(self, op: IrOperation) -> str:
        x, indices = op.operands
        n = mlir.hlo.GatherDimensionNumbers(op.attributes["dimension_numbers"])
        shape, sizes = shape_of(x), ints_of(op, "slice_sizes")
        batch, axes = list(n.operand_batching_dims), list(n.start_index_map)
        rest = [i for i in range(len(shape)) if i not in (*batch, *axes)]
        if [sizes[i] for i in (*rest, *axes)] != [*(shape[i] for i in rest), *[1] * len(axes)]:
            raise refuse(op, "of parts of axes")
        where, free = self._indices(indices, n.index_vector_dim,
                                    list(n.start_indices_batching_dims))
        extents = _known_sizes(op, [shape[i] for i in axes])
        most = self.graph.ints([n - 1 for n in extents])   # clamped
        where = self.add("Min", self.add("Max", where, self.graph.ints([0])), most)
        data = self.transpose(self.of(x), [*batch, *axes, *rest])
        gathered = self.graph.add("GatherND", [data, where], batch_dims=len(batch))
        out = shape_of(op.results[0])
        # Now (batch, free, rest); the result has rest, and indexed axes of size 1, at offset_dims.
        offset = list(n.offset_dims)
        collapsed = {*n.collapsed_slice_dims, *batch}
        window_axes = [i for i in range(len(shape)) if i not in collapsed]
        return self._placed(gathered, op, indices, n, offset, window_axes, rest, shape, free, out)

    def _placed(self, gathered: str, op: IrOperation, indices: IrValue, n: Any, offset: list[int],
                axes: list[int], rest: list[int], shape: list[int], free: list[int], out: list[int]
                ) -> str:
        """(batch, free, rest) as the result has it: its own order, with axes of size 1."""
        batched = list(n.start_indices_batching_dims)
        rank = len(shape_of(indices)) + (n.index_vector_dim == len(shape_of(indices)))
        others = [i for i in range(rank) if i != n.index_vector_dim]    # of the indices
        free_axes = [i for i in range(len(out)) if i not in offset]        # where these go
        place = dict(zip(others, free_axes, strict=True))
        made = [place[i] for i in batched] + [place[i] for i in others if i not in batched]
        made += [offset[axes.index(i)] for i in rest]
        order = sorted(range(len(made)), key=made.__getitem__)
        return self.reshape(self.transpose(gathered, order), out)

    def do_scatter(self, op: IrOperation) -> str:
        if len(op.results) != 1:
            raise refuse(op, "of several arrays")
        x, indices, updates = op.operands
        n = mlir.hlo.ScatterDimensionNumbers(op.attributes["scatter_dimension_numbers"])
        shape, name = shape_of(x), combiner_of(op)
        axes = list(n.scattered_dims_to_operand_dims)
        rest = [i for i in range(len(shape)) if i not in axes]
        window = [i for i in range(len(shape))
                  if i not in (*n.inserted_window_dims, *n.input_batching_dims)]
        taken = shape_of(updates)
        sizes = {i: taken[j] for i, j in zip(window, n.update_window_dims, strict=True)}
        if n.input_batching_dims or name not in _SCATTERS or any(
                sizes.get(i, 1) != (shape[i] if i in rest else 1) for i in range(len(shape))):
            raise refuse(op, "of parts of axes, batches, or with a function of its own")
        where, free = self._indices(indices, n.index_vector_dim, [])
        scatter_axes = [i for i in range(len(taken)) if i not in n.update_window_dims]
        order = scatter_axes + [n.update_window_dims[window.index(i)] for i in axes if i in window]
        order += [n.update_window_dims[window.index(i)] for i in rest]
        update = self.reshape(self.transpose(self.of(updates), order),
                              [*free, *(shape[i] for i in rest)])
        # Updates out of bounds are dropped: they go to one more row, which is cut off.
        ints, sizes_of = self.graph.ints, _known_sizes(op, [shape[i] for i in axes])
        legal = self.add("And", self.add("GreaterOrEqual", where, ints([0])),
                         self.add("Less", where, ints(sizes_of)))
        legal = self.cast(self.add("ReduceMin", self.cast(legal, "i32"), ints([-1]), keepdims=1),
                          "i1")
        where = self.add("Where", legal, where, ints([sizes_of[0]] + [0] * (len(axes) - 1)))
        data = self.transpose(self.of(x), axes + rest)
        data = self.add("Concat", data, self.add("Slice", data, ints([0]), ints([1]), ints([0])),
                        axis=0)
        # ONNX Runtime has no kernel that combines 16 bits.
        element = element_of(x)
        within = "f32" if element == "f16" and _SCATTERS[name] != "none" else element
        updated = self.cast(self.graph.add("ScatterND", [
            self.cast(data, within, element), where, self.cast(update, within, element)],
            reduction=_SCATTERS[name]), element, within)
        if name in ("maximum", "minimum") and element_of(x) in FLOATS:      # these skip NaN
            nans = [self.cast(self.add("IsNaN", y), "i32") for y in (data, update)]
            nan = self.graph.add("ScatterND", [nans[0], where, nans[1]], reduction="max")
            updated = self._or_nan(updated, self.cast(nan, "i1"), x)
        updated = self.add("Slice", updated, ints([0]), ints(sizes_of[:1]), ints([0]))
        return self.transpose(updated, [(axes + rest).index(i) for i in range(len(shape))])

    def do_sort(self, op: IrOperation) -> list[str]:
        keys, *others = op.operands
        order, axis = orders_of(op), int_of(op, "dimension")
        ties = any(next(iter(x.uses), None) for x in list(body_of(op).arguments)[2:])
        if order is None or ties or element_of(keys) in ("bf16", "ui64"):
            raise refuse(op, f"of {element_of(keys)}, or with a function of its own")
        size = self.size_of(keys, axis)
        values, where = self.graph.add("TopK", [self.wide(keys), size], 2, axis=axis,
                                       largest=int(order == "GT"), sorted=1)
        return [self.narrow(values, keys), *(
            self.add("GatherElements", self.of(x), where, axis=axis) for x in others)]

    # Control flow

    def do_case(self, op: IrOperation) -> list[str]:
        index = self.of(op.operands[0])
        return self._choice(op, index, 0, len(op.regions))

    def _choice(self, op: IrOperation, index: str, first: int, count: int) -> list[str]:
        """Branch `first` if the index is that, else one of those behind it."""
        graph, names = self.graph, []
        if first == count - 1:
            inner = _Converter(graph, self.functions, self)
            return inner.block(body_of(op, first))
        taken = graph.add("Equal", [index, graph.constant(np.array(first, np.int32))])
        then, outs = self.subgraph(body_of(op, first))
        then.finish(outs, op.results)
        other = _Converter(Graph(graph), self.functions, self)
        other.finish(other._choice(op, index, first + 1, count), op.results)
        names = graph.add("If", [taken], len(op.results), then_branch=then.graph,
                          else_branch=other.graph)
        return [names] if isinstance(names, str) else names

    def finish(self, outs: Sequence[str], like: Sequence[IrValue]) -> None:
        """Make these the outputs of a subgraph, by nodes of it."""
        for name, x in zip(outs, like, strict=True):
            made = self.graph.add("Identity", [name])
            self.graph.outputs.append(Value(made, element_of(x), shape_of(x)))

    def do_while(self, op: IrOperation) -> list[str]:
        graph, start = self.graph, list(map(self.of, op.operands))
        first = _Converter(graph, self.functions, self)
        for x, name in zip(body_of(op, 0).arguments, start, strict=True):
            first.env[x] = name
        begin, = first.block(body_of(op, 0))
        inner = _Converter(Graph(graph), self.functions, self)
        values = [inner.graph.name() for _ in start]
        inner.graph.inputs = [Value(graph.name(), "i64", ()), Value(graph.name(), "i1", ()),
                              *(Value(name, element_of(x), shape_of(x))
                                for name, x in zip(values, op.operands, strict=True))]
        for x, name in zip(body_of(op, 1).arguments, values, strict=True):
            inner.env[x] = name
        outs = inner.block(body_of(op, 1))
        again = _Converter(inner.graph, self.functions, inner)
        for x, name in zip(body_of(op, 0).arguments, outs, strict=True):
            again.env[x] = name
        going, = again.block(body_of(op, 0))
        made = inner.graph.add("Identity", [going])
        inner.graph.outputs.append(Value(made, "i1", ()))
        inner.finish(outs, op.results)
        names = graph.add("Loop", ["", begin, *start], len(start), body=inner.graph)
        return [names] if isinstance(names, str) else names
