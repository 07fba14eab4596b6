"""Symbolic dimensions in lowering: their values, and operations of dynamic shape.

In a module with symbolic dimensions each function has the values of the variables: `main` computes
them from the sizes of its arguments, others get them as first arguments. A block computes from
these the values of dimensions (`size`) and the tensors of shapes (`sizes_of`), once each. If an
operation's result shape or an attribute is symbolic, `DYNAMIC` has the operation that takes it as
an operand. StableHLO's refinement turns all of it into constants when the arguments' sizes are
numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from ..base.lib import mlir
from ..base.typing import DimSize, DType, IrAttribute, IrOperation, IrType, IrValue, R
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.dim_equations import Solution
from ..types.shape import SymbolicDim, is_static
from ..types.sharding import PartitionSpec
from ..types.symbolic import Dimension, Factor, is_symbolic_dim
from .attributes import Attributes, Body, attr, constant_attr, tensor_type

if TYPE_CHECKING:
    from .builder import Builder
    from .emitter import Emitter

    # The dynamically shaped form of an operation; None if nothing in it is symbolic.
    Dynamic: TypeAlias = Callable[[Emitter, Sequence[IrValue], Any, Sequence[ShapedArray]],
                                  IrOperation | None]

PLATFORM_INDEX = "_platform_index"      # the key of the platform's number in `Sizes.values`
BOOL, I32 = dtypes.as_dtype("bool"), dtypes.as_dtype("int32")


class Sizes:
    """The values of variables (by name) and of dimensions in a block, and tensors of shapes."""

    __slots__ = ("values", "vectors")

    def __init__(self, values: dict[Hashable, IrValue],
                 vectors: dict[tuple[object, ...], IrValue] | None = None) -> None:
        self.values, self.vectors = values, {} if vectors is None else vectors

    def inner(self) -> Sizes:
        """The sizes for a region, which sees the outer block."""
        # Copies: values that are made in the region are not visible after it.
        return Sizes(self.values.copy(), dict(self.vectors))

    def alone(self) -> Sizes:
        """The sizes for a region that is isolated from the outer block."""
        return Sizes(_Unseen(self.values))


class _Unseen(dict[Hashable, IrValue]):
    """Values that exist outside a region, and cannot be used in it."""

    def __getitem__(self, name: Hashable) -> IrValue:
        if name == PLATFORM_INDEX:
            return super().__getitem__(name)
        raise NotImplementedError(
            f"shard_map: the size {name!r} is not known while the program is traced, and its body "
            "computes with it: StableHLO's refinement does not go into regions of manual axes; "
            "give this size as a number, or use lax.with_sharding_constraint.")

    def get(self, name: Hashable, default: R | None = None) -> R | None:
        return default      # dimensions are computed again from the variables

    def copy(self) -> _Unseen:
        return _Unseen(self)


def into_region(b: Emitter, args: Sequence[IrValue], types: Sequence[IrType],
                specs: Sequence[PartitionSpec], whole: PartitionSpec, body: Body
                ) -> tuple[Sequence[IrValue], Sequence[IrType], Sequence[PartitionSpec], Body]:
    """The operands, their types and specs, and the body of an isolated region, to which the
    platform's number is added if there are several platforms."""
    if b.block.sizes is None or PLATFORM_INDEX not in b.block.sizes.values:
        return args, types, specs, body
    number = b.block.sizes.values[PLATFORM_INDEX]

    def inner(own: IrValue, *xs: IrValue) -> Sequence[IrValue]:
        sizes = b.block.sizes
        assert sizes is not None
        sizes.values[PLATFORM_INDEX] = own
        return body(*xs)

    return [number, *args], [number.type, *types], [whole, *specs], inner


def is_dynamic(x: IrValue) -> bool:
    """Whether an MLIR value has a dynamic size."""
    kind = x.type
    return isinstance(kind, mlir.ir.RankedTensorType) and not kind.has_static_shape


def _dimension_op(b: Emitter, name: str, xs: Sequence[IrValue]) -> IrValue:
    return b.op(f"stablehlo.{name}", xs, None, b.module.dimension_aval)


def size(b: Emitter, d: DimSize | SymbolicDim) -> IrValue:
    """The value of a dimension, of the dtype of ints; computed once per block."""
    dtype = b.module.dimension_aval.dtype
    if not isinstance(d, SymbolicDim):
        return b.scalar(int(d), dtype)
    # By block: MLIR values are visible only in the block that makes them and inside of it.
    values = {} if b.block.sizes is None else b.block.sizes.values
    found = values.get(d)
    if found is None:
        assert isinstance(d, Dimension)
        found = values[d] = _dimension_sum(b, d)
    return found


def _dimension_sum(b: Emitter, d: Dimension) -> IrValue:
    dtype = b.module.dimension_aval.dtype
    total: Any = None
    for term, k in d.terms:
        factors = [_factor(b, f, d) for f, power in term.powers for _ in range(power)]
        if k != 1 or not factors:
            factors.append(b.scalar(k, dtype))
        product = factors[0]
        for factor in factors[1:]:
            product = _dimension_op(b, "multiply", [product, factor])
        total = product if total is None else _dimension_op(b, "add", [total, product])
    return total


def _factor(b: Emitter, factor: Factor, of: Dimension) -> IrValue:
    if not factor.operands:
        sizes = b.block.sizes
        if sizes is None or factor.name not in sizes.values:
            raise unknown_variable(factor.name, sizes)
        return sizes.values[factor.name]
    x, y = [size(b, operand) for operand in factor.operands]
    if factor.name in ("max", "min"):
        return _dimension_op(b, f"{factor.name}imum", [x, y])
    return _floor(b, factor, x, y, of)


def unknown_variable(name: str, sizes: Sizes | None) -> ValueError:
    """The error for a variable that no argument's size determines."""
    known = [] if sizes is None else [v for v in sizes.values if isinstance(v, str)]
    return ValueError(
        f"Encountered dimension variable '{name}' that is not appearing in the shapes of the "
        "function arguments. The following dimension variables are appearing in the shapes of the "
        f"function arguments: {known}; export or trace a function of an array of that size.")


def _floor(b: Emitter, factor: Factor, x: IrValue, y: IrValue, of: Dimension) -> IrValue:
    """Python's quotient or remainder, from StableHLO's, which round to zero."""
    kind = b.module.dimension_aval
    quotient, remainder = _dimension_op(b, "divide", [x, y]), _dimension_op(b, "remainder", [x, y])
    # For numbers that are never negative both agree.
    if all(d >= 0 if type(d) is int else of.scope.range(d)[0] >= 0 for d in factor.operands):
        return quotient if factor.name == "floordiv" else remainder
    flag, zero = make_aval((), BOOL), b.scalar(0, kind.dtype)
    uneven = b.compare("NE", remainder, zero, "SIGNED", flag)
    opposed = b.compare("NE", _dimension_op(b, "sign", [remainder]), _dimension_op(b, "sign", [y]),
                        "SIGNED",
                        flag)
    lower = b.op("stablehlo.and", [uneven, opposed], None, flag)
    if factor.name == "floordiv":
        fixed = _dimension_op(b, "subtract", [quotient, b.scalar(1, kind.dtype)])
        return b.op("stablehlo.select", [lower, fixed, quotient], None, kind)
    return b.op("stablehlo.select", [lower, _dimension_op(b, "add", [remainder, y]), remainder],
                None,
                kind)


def vector(b: Emitter, values: Sequence[DimSize], dtype: DType | None = None) -> IrValue:
    """A tensor of rank 1 of ints and dimensions."""
    dtype = b.module.dimension_aval.dtype if dtype is None else dtype
    if is_static(values):
        aval = make_aval((len(values),), dtype)
        return b.op("stablehlo.constant", [], {
            "value": constant_attr(np.array(values, dtype))}, aval)
    return _stacked(b, [b.scalar(d, dtype) for d in values], dtype)


def _stacked(b: Emitter, scalars: Sequence[IrValue], dtype: DType) -> IrValue:
    one = make_aval((1,), dtype)
    parts = [b.op("stablehlo.reshape", [x], None, one) for x in scalars]
    return b.op("stablehlo.concatenate", parts, {"dimension": attr("0 : i64")},
                make_aval((len(parts),), dtype))


def sizes_of(b: Emitter, shape: Sequence[DimSize]) -> IrValue:
    """The tensor of a shape, made once per block."""
    key = tuple(shape)
    assert b.block.sizes is not None
    vectors = b.block.sizes.vectors     # like `values`, visible in this block and inside of it
    if key not in vectors:
        vectors[key] = vector(b, key)
    return vectors[key]


def _own_sizes(b: Emitter, x: IrValue) -> list[IrValue]:
    """The sizes of an MLIR value as scalars of the dtype of ints."""
    kind = b.module.dimension_aval
    sizes = []
    for i, n in enumerate(x.type.shape):
        if not x.type.is_dynamic_dim(i):
            sizes.append(b.scalar(n, kind.dtype))
            continue
        # StableHLO gives int32, whatever the dtype of ints is.
        out = b.op("stablehlo.get_dimension_size", [x], {"dimension": attr(f"{i} : i64")},
                   make_aval((), I32))
        sizes.append(out if kind.dtype == I32 else b.convert(out, kind))
    return sizes


def emit_solution(b: Builder, solution: Solution, args: Sequence[IrValue]) -> Sizes:
    """The variables, from the sizes of arguments, with assertions of their constraints."""
    # Variables and conditions are expressions of the arguments' sizes, which are named like
    # "args[0].shape[1]": the only values in the block at first.
    measured = {name: _own_sizes(b, args[arg])[axis] for name, arg, axis in solution.sizes}
    b.block.sizes = Sizes({**measured})
    flag = make_aval((), BOOL)
    values: dict[Any, Any] = {name: size(b, d) for name, d in solution.variables.items()}
    for condition in solution.conditions:
        if not is_symbolic_dim(condition.left) and not is_symbolic_dim(condition.right):
            continue
        left, right = size(b, condition.left), size(b, condition.right)
        satisfied = b.compare("EQ" if condition.equal else "GE", left, right, "SIGNED", flag)
        text, inputs = condition.message()
        b.custom_call("shape_assertion", [satisfied, *[size(b, d) for d in inputs]], [], {
            "has_side_effect": attr("true"), "api_version": attr("1 : i32"),
            "error_message": mlir.ir.StringAttr.get(text)})
    return Sizes(values)


def shape_operands(b: Emitter, count: int, shapes: Sequence[Sequence[DimSize]]
                   ) -> tuple[list[IrValue], dict[str, IrAttribute]]:
    """Further operands and attributes of a custom call whose results have symbolic shapes."""
    if b.block.sizes is None or all(map(is_static, shapes)):
        return [], {}
    places = list(range(count, count + len(shapes)))
    return [sizes_of(b, shape) for shape in shapes], {
        "indices_of_shape_operands": attr(f"dense<{places}> : tensor<{len(places)}xi64>")}


# Operations by the names of their statically shaped forms: (builder, operands, attributes, avals)
# -> op


def _renamed(name: str) -> Dynamic:
    """An operation whose dynamic form takes the result's shape as its last operand."""
    def emit(b: Emitter, xs: Sequence[IrValue], attributes: Attributes | None,
             avals: Sequence[ShapedArray]) -> IrOperation | None:
        shape = avals[0].shape
        if is_static(shape) and not any(map(is_dynamic, xs)):
            return None
        return b.raw(f"stablehlo.{name}", [*xs, sizes_of(b, shape)], attributes,
                     [tensor_type(avals[0])])

    return emit


def _broadcast(b: Emitter, xs: Sequence[IrValue], attributes: Attributes | None,
               avals: Sequence[ShapedArray]) -> IrOperation | None:
    shape = avals[0].shape
    if is_static(shape):
        return None
    return b.raw("stablehlo.dynamic_broadcast_in_dim", [*xs, sizes_of(b, shape)], attributes,
                 [tensor_type(avals[0])])


def _by_operands(name: str, taken: Sequence[str]) -> Dynamic:
    """An operation whose dynamic form takes the attributes `taken` as its last operands."""
    def emit(b: Emitter, xs: Sequence[IrValue], attributes: Attributes,
             avals: Sequence[ShapedArray]) -> IrOperation | None:
        if not any(isinstance(attributes[key], tuple) for key in taken):
            return None
        values = [operand(b, attributes[key]) for key in taken]
        rest = {key: value for key, value in attributes.items() if key not in taken}
        # Static ones become operands, too: the dynamic operation takes all of them.
        return b.raw(f"stablehlo.{name}", [*xs, *values], rest, [tensor_type(avals[0])])

    return emit


def operand(b: Emitter, attribute: Any) -> IrValue:
    """The operand for an attribute: ints and dimensions, or pairs of them."""
    if not isinstance(attribute, tuple):
        if isinstance(attribute, mlir.ir.DenseI64ArrayAttr):
            return vector(b, list(attribute))
        return b.constant(np.array(attribute), make_aval(
            tuple(attribute.type.shape), b.module.dimension_aval.dtype))
    if not any(isinstance(entry, tuple) for entry in attribute):
        return vector(b, attribute)
    flat = vector(b, [d for pair in attribute for d in pair])
    return b.op("stablehlo.reshape", [flat], None,
                make_aval((len(attribute), 2), b.module.dimension_aval.dtype))


def _dynamic_slice(b: Emitter, xs: Sequence[IrValue], attributes: Attributes,
                   avals: Sequence[ShapedArray]) -> IrOperation | None:
    sizes = attributes["slice_sizes"]
    if not isinstance(sizes, tuple):
        return None
    x, *starts = xs
    kind = b.module.dimension_aval
    aval = make_aval((len(sizes),), kind.dtype)
    at = _stacked(b, [s if s.type == tensor_type(kind) else b.convert(s, kind) for s in starts],
                  kind.dtype)
    lengths = vector(b, sizes)
    last = b.op("stablehlo.subtract", [_stacked(b, _own_sizes(b, x), kind.dtype), lengths], None,
                aval)
    # The static operation clamps its starts; the dynamic one does not.
    at = b.op("stablehlo.clamp", [vector(b, [0] * len(sizes)), at, last], None, aval)
    return _sliced(b, x, at, lengths, avals)


def _sliced(b: Emitter, x: IrValue, at: IrValue, lengths: IrValue, avals: Sequence[ShapedArray]
            ) -> IrOperation:
    """`lengths` elements from `at`, in the form start + length, which refinement knows."""
    rank = len(x.type.shape)
    aval = make_aval((rank,), b.module.dimension_aval.dtype)
    end = b.op("stablehlo.add", [at, lengths], None, aval)
    return b.raw("stablehlo.real_dynamic_slice", [x, at, end, vector(b, [1] * rank)], {},
                 [tensor_type(avals[0])])


def slice_at(b: Builder, x: IrValue, index: IrValue, row: IrType, flat: IrType,
             aval: ShapedArray | None) -> IrValue:
    """x[index] along axis 0. row, flat: the types of the row with that axis and without it."""
    kind = b.module.dimension_aval
    # The index is not clamped, as `dynamic_slice` does: it is a loop's, and in range.
    lengths = [b.scalar(1, kind.dtype), *_own_sizes(b, x)[1:]]
    index = index if index.type == tensor_type(kind) else b.convert(index, kind)
    zero = b.scalar(0, kind.dtype)
    at = _stacked(b, [index, *[zero] * (len(lengths) - 1)], kind.dtype)
    end = b.op("stablehlo.add", [at, _stacked(b, lengths, kind.dtype)], None,
               make_aval((len(lengths),), kind.dtype))
    cut = b.raw("stablehlo.real_dynamic_slice",
                [x, at, end, vector(b, [1] * len(lengths))], {}, [row]).result
    return b.raw("stablehlo.dynamic_reshape",
                 [b.spread_row(cut, aval), _stacked(b, lengths[1:], kind.dtype)], {}, [flat]).result


def as_row(b: Emitter, x: IrValue, row: IrType) -> IrValue:
    """x with a leading axis of size 1, of type `row`."""
    kind = b.module.dimension_aval
    lengths = _stacked(b, [b.scalar(1, kind.dtype), *_own_sizes(b, x)], kind.dtype)
    return b.raw("stablehlo.dynamic_reshape", [x, lengths], {}, [row]).result


def _random_bits(b: Emitter, xs: Sequence[IrValue], attributes: Attributes,
                 avals: Sequence[ShapedArray]) -> IrOperation | None:
    if is_static(avals[1].shape):
        return None
    return _custom(b, "stablehlo.dynamic_rng_bit_generator", [*xs, sizes_of(b, avals[1].shape)],
                   attributes, avals)


def _top(b: Emitter, xs: Sequence[IrValue], attributes: Attributes, avals: Sequence[ShapedArray]
         ) -> IrOperation | None:
    if not isinstance(attributes["k"], SymbolicDim):
        return None
    return _custom(b, "stablehlo.dynamic_top_k", [*xs, size(b, attributes["k"])], {}, avals)


def _custom(b: Emitter, target: str, xs: Sequence[IrValue], attributes: Attributes,
            avals: Sequence[ShapedArray]) -> IrOperation:
    return b.raw("stablehlo.custom_call", xs, {
        **attributes, "call_target_name": mlir.ir.StringAttr.get(target),
        "api_version": attr("1 : i32")}, [tensor_type(a) for a in avals])


DYNAMIC: dict[str, Dynamic] = {
    "stablehlo.broadcast_in_dim": _broadcast,
    "stablehlo.reshape": _renamed("dynamic_reshape"),
    "stablehlo.iota": _renamed("dynamic_iota"),
    "stablehlo.slice": _by_operands(
        "real_dynamic_slice", ("start_indices", "limit_indices", "strides")),
    "stablehlo.pad": _by_operands(
        "dynamic_pad", ("edge_padding_low", "edge_padding_high", "interior_padding")),
    "stablehlo.gather": _by_operands("dynamic_gather", ("slice_sizes",)),
    "stablehlo.convolution": _by_operands("dynamic_conv", ("padding",)),
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.rng_bit_generator": _random_bits,
    "chlo.top_k": _top,
}
