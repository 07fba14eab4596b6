"""Single operations that lowering rules emit, with their types and attributes.

Types, attributes and locations are cached per process. `ir.Operation.create` makes operations at a
third of the cost of MLIR's generated wrappers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Self

import numpy as np

from ..base import lib
from ..base.lib import mlir
from ..base.source import Source
from ..base.typing import DType, IrAttribute, IrOperation, IrType, IrValue, Shape, StaticScalar
from ..base.util import lazy_imports
from ..core.ir import Var
from ..types import dtypes
from ..types.avals import Aval, ShapedArray, make_aval, physical_aval
from ..types.shape import SymbolicDim, definitely_equal
from . import dimensions
from .attributes import (
    Attributes, Body, DotNumbers, Number, attr, constant_attr, dot_numbers, element_type, i64s,
    known_type, number_attr, pairs, tensor_type, value_attr,
)
from .context import ModuleContext, emit_header
from .marks import FRONTEND, KEPT, ONE_KERNEL, dictionary
from .platforms import PlatformOpen

BOOL, _I32 = dtypes.as_dtype(bool), dtypes.as_dtype("int32")
OWN: Any = object()
Dims = tuple[int, ...]

with lazy_imports(__name__):       # for fences
    from . import known_numbers as _known_numbers


class Block:
    """An insertion point, and the state that its operations share.

    A region starts empty, and nothing emitted in it is visible outside. `sizes` has the values of
    symbolic dimensions; None if all sizes are numbers.
    """

    __slots__ = ("ip", "scalars", "repeated", "token", "sizes")

    def __init__(self, ip: mlir.ir.InsertionPoint, sizes: dimensions.Sizes | None = None) -> None:
        self.ip, self.sizes = ip, sizes
        self.scalars: dict[Any, Any] = {}   # constants of rank 0, by (type, number, dtype)
        # (id of a rank-0 value, shape) -> its broadcast, and the value, kept alive for its id.
        self.repeated: dict[Any, Any] = {}
        self.token: Any = None              # the token of the last ordered effect


class Mark:
    """The state of a block at one time, to take back the operations that a rule has begun with."""

    __slots__ = ("block", "last", "counts")

    def __init__(self, block: Block) -> None:
        self.block, ops = block, block.ip.block.operations
        self.last = len(ops)
        assert block.sizes is not None
        tables: list[dict[Any, IrValue]] = [
            block.scalars, block.repeated, block.sizes.values, block.sizes.vectors]
        self.counts = [(table, len(table)) for table in tables]

    def restore(self) -> None:
        # The last first: an erased operation must have no readers.
        for op in list(self.block.ip.block.operations)[self.last:][::-1]:
            op.operation.erase()
        # Dicts keep their order: new entries are last.
        for table, count in self.counts:
            for key in list(table)[count:]:
                del table[key]


class Emitter:
    """Emits operations at the end of a block.

    `avals_in`, `avals_out`, `eqn` and `loc` belong to the equation that is lowered now; `prefix` is
    the scope of the program.
    """

    __slots__ = ("module", "block", "prefix", "loc", "avals_in", "avals_out", "eqn",
                 "marks", "held", "line", "emitted")

    def __init__(self, module: ModuleContext, block: Block, prefix: str, loc: mlir.ir.Location,
                 line: Source | None = OWN) -> None:
        self.module, self.block, self.prefix, self.loc = module, block, prefix, loc
        self.line = line    # the source of all equations, or None; OWN: each equation has its own
        self.avals_in: Sequence[ShapedArray] = ()
        self.avals_out: Sequence[ShapedArray] = ()
        self.eqn: Any = None
        self.marks: Any = None      # frontend attributes of the operations, or None
        self.held: tuple[int, ...] = ()     # indices of the equation's results to hold
        self.emitted: Any = None    # the last `op`: result, name, operands, attributes, type

    @property
    def platform(self) -> str:
        """The platform to lower for; with several, `PlatformOpen` is raised."""
        platform = self.module.platform
        if platform is None:
            raise PlatformOpen
        return platform

    @property
    def source(self) -> Source | None:
        """The user's line of the equation."""
        return self.eqn.source if self.line is OWN else self.line

    def physical(self) -> Self:
        """An emitter for the same equation, with the physical avals of its keys."""
        # Scalars, broadcasts and the token are shared, with the block.
        b = type(self)(self.module, self.block, self.prefix, self.loc, self.line)
        b.avals_in = [physical_aval(a) for a in self.avals_in]
        b.avals_out = [physical_aval(a) for a in self.avals_out]
        b.eqn, b.marks = self.eqn, self.marks
        return b

    # For outsiders' rules, which pass it to `olympuspr_subcomp`.
    const_lowering: Mapping[object, IrValue] = MappingProxyType({})

    @property
    def module_context(self) -> ModuleContext:
        """The state that the functions of the module share."""
        return self.module

    @property
    def name_stack(self) -> str:
        """The scope of the equation."""
        return self.prefix + self.eqn.ctx.path

    @property
    def dimension_args(self) -> list[IrValue]:
        """The first arguments of private functions: the values of the dimension variables."""
        sizes = self.block.sizes
        return [] if sizes is None else [sizes.values[name] for name in self.module.dimension_names]

    dim_var_values = dimension_args

    # Types and attributes

    def type(self, aval: Aval) -> IrType:
        """The MLIR type of an aval."""
        return tensor_type(aval)

    attr = staticmethod(attr)
    i64s = staticmethod(i64s)
    pairs = staticmethod(pairs)
    element_type = staticmethod(element_type)

    # Operations

    def ops(self, name: str, operands: Sequence[IrValue], attributes: Attributes | None = None,
            types: Sequence[IrType] | None = None, regions: int = 0,
            avals: Sequence[ShapedArray] | None = None) -> IrOperation:
        """Emit an operation and return it; its results default to the equation's.

        They are MLIR types or avals; operations with a dynamic form need avals.
        """
        if types is None:
            avals = self.avals_out if avals is None else avals
            if self.block.sizes is not None and name in dimensions.DYNAMIC:
                dynamic = dimensions.DYNAMIC[name](self, operands, attributes, avals)
                if dynamic is not None:
                    return dynamic
            types = [tensor_type(a) for a in avals]
        return self.raw(name, operands, attributes, types, regions)

    def raw(self, name: str, operands: Sequence[IrValue], attributes: Attributes | None,
            types: Sequence[IrType], regions: int = 0) -> IrOperation:
        """Emit an operation with these operands, attributes and result types."""
        # An operation's own frontend attributes replace the marks.
        if self.marks is not None:
            attributes = {FRONTEND: self.marks, **(attributes or {})}
        return mlir.ir.Operation.create(name, types, operands, attributes, None, regions, self.loc,
                                        self.block.ip)

    def op(self, name: str, operands: Sequence[IrValue], attributes: Attributes | None = None,
           aval: ShapedArray | None = None) -> IrValue:
        """Emit an operation of one result and return that; its aval defaults to the equation's."""
        if self.block.sizes is not None and name in dimensions.DYNAMIC:
            return self.ops(name, operands, attributes,
                            avals=[self.avals_out[0] if aval is None else aval]).result
        if aval is None:
            aval = self.avals_out[0]
        kind = known_type(aval) or tensor_type(aval)
        if self.marks is not None:
            attributes = {FRONTEND: self.marks, **(attributes or {})}
        out = mlir.ir.Operation.create(name, [kind], operands, attributes, None, 0, self.loc,
                                       self.block.ip).result
        # For `recipes`, which keep operations with one result only.
        self.emitted = out, name, operands, attributes, kind
        return out

    def constant(self, value: np.ndarray | StaticScalar, aval: ShapedArray) -> IrValue:
        """A dense constant of the aval's dtype."""
        array = np.asarray(value, BOOL if dtypes.is_float0(aval.dtype) else aval.dtype)
        self.module.written += array.nbytes
        attribute = constant_attr(array)
        return self.op("stablehlo.constant", [], {"value": attribute}, aval)

    def scalar(self, value: Number, dtype: DType) -> IrValue:
        """A rank-0 constant, or the value of a dimension, emitted once per block."""
        # `==` is enough for floats other than zeros and NaN, and costs less than `repr`.
        kind, scalars = type(value), self.block.scalars
        exact = kind is int or kind is bool or kind is float and value == value != 0
        key = kind, (value if exact else value.tobytes() if isinstance(value, np.generic) else
                     repr(value)), dtype
        found = scalars.get(key)
        if found is None:
            found = scalars[key] = self._scalar(key, value, make_aval((), dtype))
        return found

    def _scalar(self, key: tuple[type, object, DType], value: Number, aval: ShapedArray) -> IrValue:
        """`scalar`, emitted."""
        if isinstance(value, SymbolicDim):
            # A dimension's value has one dtype in the whole module: convert it.
            size = dimensions.size(self, value)
            return size if size.type == tensor_type(aval) else self.convert(size, aval)
        self.module.written += aval.dtype.itemsize
        out = self.op("stablehlo.constant", [], {"value": number_attr(key, value)}, aval)
        if not self.module.fences or not _known_numbers.has_no_reciprocal(value, aval.dtype):
            return out
        return self.fence(out)

    def fence(self, x: IrValue) -> IrValue:
        """A scalar constant, hidden from XLA's algebraic simplifier."""
        out = self._barrier(x)
        # XLA looks through the broadcasts of a scalar, so they get fences, too.
        self.module.hidden[id(out)] = out
        return out

    def _barrier(self, x: IrValue) -> IrValue:
        return mlir.ir.Operation.create(
            "stablehlo.optimization_barrier", [x.type], [x],
            self.marks and {FRONTEND: self.marks}, None, 0, self.loc, self.block.ip).result

    def _behind_fence(self, x: IrValue, aval: ShapedArray) -> IrValue:
        """A value, its computation hidden from XLA's algebraic simplifier.

        GPUs fuse nothing across a barrier, and TPUs not all. `x == x ? x : NaN` is another number
        to the simplifier, and is fused; so is a bfloat16 that is rounded once more. Integers are
        behind a fence so seldom that a barrier does.
        """
        if not self.module.fences_by_choice:
            return self.chosen(x, aval) if lib.LATE_BARRIERS else self._barrier(x)
        if not dtypes.is_inexact(aval.dtype):
            return self._barrier(x)
        if dtypes.is_complex(aval.dtype):
            part = aval.update(dtype=dtypes.to_real_dtype(aval.dtype))
            return self.op("stablehlo.complex", [
                self._behind_fence(self.op(f"stablehlo.{name}", [x], None, part), part)
                for name in ("real", "imag")], None, aval)
        if aval.dtype == dtypes.bfloat16:   # XLA drops pairs of conversions, not the rounding
            wide = aval.update(dtype=dtypes.as_dtype("float32"))
            x = self.op("stablehlo.convert", [x], None, wide)
            x = self.op("stablehlo.reduce_precision", [x], {
                "exponent_bits": attr("8 : i32"), "mantissa_bits": attr("7 : i32")}, wide)
            return self.op("stablehlo.convert", [x], None, aval)
        nan = np.asarray(math.nan).astype(aval.dtype)
        if nan == nan:      # a type without NaN
            return self._barrier(x)
        is_number = self.compare("EQ", x, x, "FLOAT", aval.update(dtype=BOOL))
        return self.op("stablehlo.select", [is_number, x, self.full(aval, math.nan)], None, aval)

    def chosen(self, x: IrValue, aval: ShapedArray) -> IrValue:
        """A value behind a choice that XLA does not know to be always the same.

        Where barriers stay until XLA:CPU has fused operations (jaxlib 0.12.0.1), a kernel may read
        a barrier's result and its operand as two arrays, which are one memory: it would write in
        place of the first and read elements of the second that it has overwritten.
        """
        axes = [d for d, n in enumerate(aval.shape) if not definitely_equal(n, 1)]
        if not axes:
            return self._barrier(x)
        scalars, key = self.block.scalars, (bool, "behind a barrier", BOOL)
        if key not in scalars:
            scalars[key] = self._barrier(self.scalar(True, BOOL))
        # A choice of broadcasts would become the broadcast of a choice, which is a scalar to XLA.
        other = self.convert(self.op("stablehlo.iota", [], {
            "iota_dimension": attr(f"{axes[0]} : i64")}, aval.update(dtype=_I32)), aval)
        return self.op("stablehlo.select", [scalars[key], x, other], None, aval)

    def barriers(self, xs: Sequence[IrValue], avals: Sequence[ShapedArray]) -> list[IrValue]:
        """The values behind one barrier, or each behind a choice where barriers are late."""
        if lib.LATE_BARRIERS and self.module.platform == "cpu":
            unreduced = self.module.places.is_unreduced     # which Shardy would sum here
            return [self._barrier(x) if a.tagged and unreduced(a) else self.chosen(x, a)
                    for x, a in zip(xs, map(physical_aval, avals), strict=True)]
        return list(self.ops("stablehlo.optimization_barrier", xs, None,
                             [x.type for x in xs]).results)

    def put_behind_fences(self, env: dict[Var, IrValue], variables: Sequence[Var],
                          repeated: Sequence[Var] = (), late: Sequence[Var] = ()) -> None:
        """Fence the values of `variables` for all later readers.

        repeated: scalars of which only broadcasts are fenced.
        late: the first one waits for the others.
        """
        hidden = self.module.hidden
        for v in variables:
            # Not unreduced values: Shardy would sum their terms before a fence.
            if not (v.aval.tagged and self.module.places.is_unreduced(v.aval)):
                env[v] = out = self._behind_fence(env[v], v.aval)
                if not v.aval.shape:
                    hidden[id(out)] = out
        for v in repeated:
            if not (v.aval.tagged and self.module.places.is_unreduced(v.aval)):
                # A new Python object for the value, because its earlier broadcasts have no fence.
                env[v] = out = mlir.ir.Value(env[v])
                hidden[id(out)] = out
        if late:    # in memory of their own: other equations may read the value before the wait
            env.update(zip(late, self.kept(self.apart(
                [env[v] for v in late], [v.aval for v in late]))))

    def kept(self, xs: Sequence[IrValue]) -> Sequence[IrValue]:
        """The values, each computed once by XLA:CPU, and all of them before any is used; elsewhere
        behind barriers.

        A result is a second name of its operand's memory: a kernel that read both could overwrite
        elements of one before it reads them of the other.
        """
        if self.module.fences_by_choice:
            return [*map(self._barrier, xs)]
        types = [x.type for x in xs]
        return mlir.ir.Operation.create(
            "func.call", types, xs, {
                "callee": mlir.ir.FlatSymbolRefAttr.get(self.module.identity(tuple(types))),
                FRONTEND: dictionary(KEPT)}, None, 0, self.loc, self.block.ip).results

    def apart(self, xs: Sequence[IrValue], avals: Sequence[Aval]) -> list[IrValue]:
        """The values, in memory of their own: `x == n ? n : x` is always `x`, but not to XLA.

        Unreduced sums stay: to compare one, devices would have to add it up.
        """
        found = list(xs)
        for i, aval in enumerate(map(physical_aval, avals)):
            if aval.is_array and True not in [definitely_equal(aval.size, n) for n in (0, 1)] and (
                    not self.module.places.is_unreduced(aval)):
                n, equal = self._compared(xs[i], aval, 1 + i % 200)
                found[i] = self.op("stablehlo.select", [equal, n, xs[i]], None, aval)
        return found

    def _compared(self, x: IrValue, aval: ShapedArray, number: int) -> tuple[IrValue, IrValue]:
        """A number of any dtype, not a zero, which has signs; where it is in an array."""
        kind = dtypes.scalar_kind(aval.dtype)
        number = number if aval.dtype.itemsize > 1 else 1
        n = self.full(aval, complex(number, 1) if kind == "c" else number)
        return n, self.compare("EQ", x, n, {"f": "FLOAT", "c": "FLOAT", "i": "SIGNED"}.get(
            kind, "UNSIGNED"), aval.update(dtype=BOOL))

    def awaited(self, xs: Sequence[IrValue], avals: Sequence[ShapedArray]) -> list[IrValue]:
        """The values, none of which XLA:CPU has before it has all.

        It runs kernels of one program at the same time, and a kernel waits for what it reads alone:
        a choice reads an element of each value. XLA does not know how it ends.
        """
        if not self.module.for_one_cpu or self.block.sizes is not None or len(xs) < 2:
            return self.barriers(xs, avals)
        avals = list(map(physical_aval, avals))
        some = [(x, a) for x, a in zip(xs, avals, strict=True) if a.is_array and a.size]
        counter, numbers = make_aval((), _I32), self.scalar(0, _I32)
        for x, a in some:
            one = a.update(shape=())
            if a.shape:
                x = self.op("stablehlo.slice", [x], {
                    "start_indices": i64s((0,) * a.ndim), "limit_indices": i64s((1,) * a.ndim),
                    "strides": i64s((1,) * a.ndim)}, a.update(shape=(1,) * a.ndim))
                x = self.op("stablehlo.reshape", [x], None, one)
            equal = self.convert(self._compared(x, one, 1)[1], counter)
            numbers = self.op("stablehlo.add", [numbers, equal], None, counter)
        always = self.compare("LE", numbers, self.scalar(len(some), _I32), "SIGNED",
                              counter.update(dtype=BOOL))
        return [self.op("stablehlo.select", [always, x, self.full(a, 1)], None, a)
                if a.is_array and a.size else x for x, a in zip(xs, avals, strict=True)]

    def one_kernel(self, xs: Sequence[IrValue], body: Body) -> list[IrValue]:
        """Emit `body(*xs)` as a function that XLA:CPU compiles as one kernel.

        Each kernel takes 10 to 15 ms to compile, however small it is. In the function, whatever
        XLA would share among threads must be in loops, and it may use none of XLA's libraries.
        """
        ir, module, types = mlir.ir, self.module, [x.type for x in xs]
        symbol = module.symbols.new(self.eqn.primitive.name)
        fn, block = emit_header(symbol, "private", types, [], [self.loc] * len(xs), self.loc,
                                ir.InsertionPoint(module.module.body))
        outer, self.block = self.block, Block(ir.InsertionPoint(block))
        try:
            with module.aside():
                outs = list(body(*block.arguments))
            ir.Operation.create("func.return", [], outs, None, None, 0, self.loc, self.block.ip)
        finally:
            self.block = outer
        results = [x.type for x in outs]
        fn.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(types, results))
        return list(ir.Operation.create("func.call", results, xs, {
            "callee": ir.FlatSymbolRefAttr.get(symbol), FRONTEND: dictionary(ONE_KERNEL)}, None, 0,
            self.loc, self.block.ip).results)

    def vector(self, values: Sequence[int], dtype: DType) -> IrValue:
        """A rank-1 array of ints and dimensions."""
        return dimensions.vector(self, values, dtype)

    def full(self, aval: ShapedArray, value: Number) -> IrValue:
        """An array whose elements are all `value`."""
        aval = physical_aval(aval)
        scalar = self.scalar(value, aval.dtype)
        return scalar if not aval.shape else self.broadcast(scalar, aval, ())

    def broadcast(self, x: IrValue, aval: ShapedArray, dims: Sequence[int]) -> IrValue:
        """broadcast_in_dim to an aval; a scalar's is emitted once per block."""
        if dims:
            return self.op("stablehlo.broadcast_in_dim", [x], {"broadcast_dimensions": i64s(dims)},
                           aval)
        key = id(x), aval.shape
        found = self.block.repeated.get(key)
        if found is None:
            out = self.op("stablehlo.broadcast_in_dim", [x], {"broadcast_dimensions": i64s(())},
                          aval)
            if id(x) in self.module.hidden:
                out = self._behind_fence(out, aval)
            found = self.block.repeated[key] = out, x
        return found[0]

    def expand(self, xs: Sequence[IrValue]) -> list[IrValue]:
        """The operands of an elementwise equation, broadcast to the result's shape."""
        shape, values = self.avals_out[0].shape, list(xs)
        if not shape:
            return values
        # The look-up of `broadcast` without its frame: a scalar is broadcast once per block.
        for i, a in enumerate(self.avals_in):
            if not a.shape:
                known = self.block.repeated.get((id(xs[i]), shape))
                values[i] = (known[0] if known is not None else
                             self.broadcast(xs[i], a.update(shape=shape), ()))
        return values

    def merged_axes(self, x: IrValue, dtype: DType, axes: Sequence[int]
                    ) -> tuple[IrValue, Dims, list[int]]:
        """The operand of a reduction with neighbouring axes merged, its shape, and the axes to
        reduce; a barrier keeps XLA from looking through the reshape.
        """
        sizes, merged, last = list[int](), list[int](), None
        for d, n in enumerate(mlir.ir.RankedTensorType(x.type).shape):
            if sizes and (merged or d not in axes) and definitely_equal(n, 1):
                continue
            if last is (last := d in axes):
                sizes[-1] *= n
            else:
                merged += [len(sizes)] * last
                sizes.append(n)
        flat = self.op("stablehlo.reshape", [x], None, make_aval(tuple(sizes), dtype))
        return self._barrier(flat), tuple(sizes), merged

    def batch_marks(self, operands: Sequence[Shape], results: Sequence[Shape], count: int
                    ) -> dict[str, IrAttribute]:
        """The attributes by which XLA may cut a custom call along its first `count` axes, which all
        operands and results have.
        """
        marks = {FRONTEND: value_attr({"num_batch_dims": str(count)})}
        if len(self.module.places.devices) < 2:
            return marks
        sdy, sizes = mlir.sdy_attributes, list(operands[0][:count])
        mappings = []
        for shape in (*operands, *results):     # Shardy's rule of equal axes
            own = range(len(sizes), len(sizes) + len(shape) - count)
            sizes += shape[count:]
            mappings.append(sdy.TensorMappingAttr.get(dim_mappings=[
                sdy.DimMappingAttr.get(factor_indices=[i]) for i in (*range(count), *own)]))
        marks["sdy.sharding_rule"] = sdy.OpShardingRuleAttr.get(
            factor_sizes=sizes, operand_mappings=mappings[:len(operands)],
            result_mappings=mappings[len(operands):], is_custom=True)
        return marks

    def convert(self, x: IrValue, aval: ShapedArray) -> IrValue:
        """stablehlo.convert to an aval."""
        return self.op("stablehlo.convert", [x], None, aval)

    def compare(self, direction: str, x: IrValue, y: IrValue, kind: str, aval: ShapedArray
                ) -> IrValue:
        """stablehlo.compare; `kind` is FLOAT, SIGNED, UNSIGNED or TOTALORDER, aval the result's."""
        return self.op("stablehlo.compare", [x, y], {
            "comparison_direction": attr(f"#stablehlo<comparison_direction {direction}>"),
            "compare_type": attr(f"#stablehlo<comparison_type {kind}>")}, aval)

    def dot_general(self, lhs: IrValue, rhs: IrValue, numbers: DotNumbers, attributes: Attributes,
                    aval: ShapedArray) -> IrValue:
        """stablehlo.dot_general to an aval; `numbers` as lax writes them."""
        dims = dot_numbers(numbers)
        return self.op("stablehlo.dot_general", [lhs, rhs],
                       {"dot_dimension_numbers": dims, **attributes}, aval)
