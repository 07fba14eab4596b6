"""Lowering of programs: the `Builder` `b` of lowering rules, and the walk over a program.

Beside single operations (`Emitter`), a `Builder` emits structured control flow, collectives and
calls. A called program is a function of the module, or written out.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import lib
from ..base.lib import mlir
from ..base.source import Source
from ..base.typing import (
    ArrayLike, AxisIndexGroups, DimSize, IrAttribute, IrOperation, IrType, IrValue,
)
from ..base.util import cut, lazy_imports
from ..core.ir import ClosedOlympuspr, Literal, Var
from ..devices.array import stored
from ..types import dtypes
from ..types.avals import Aval, ShapedArray, abstract_token, make_aval, physical_aval
from ..types.dim_equations import Solution
from ..types.mesh import AbstractMesh, Mesh
from ..types.shape import SymbolicDim, is_static, prod
from ..types.sharding import PartitionSpec, Sharding
from . import dimensions
from .attributes import (
    Attributes, Body, Number, attr, call_aliases, call_layouts, i64s, known_location, known_recipe,
    location, quoted_name, tensor_type, value_attr,
)
from .context import ModuleContext, emit_header
from .emitter import BOOL, OWN, Block, Emitter, Mark
from .manual import ManualAxes, groups_attr
from .marks import KEPT, dictionary, elsewhere, marks_of
from .platforms import PlatformOpen, rule_of
from .recipes import has_recipes, note_recipe
from .rule_programs import LONG, OfArrays, rule_program, staged
from .tokens import TokenSet

if TYPE_CHECKING:
    from .fence_plan import Plan

INT32 = dtypes.as_dtype("int32")
# The operations whose regions are programs on arrays; other regions combine or compare elements.
_CONTROL = frozenset(("sdy.manual_computation", "stablehlo.case", "stablehlo.while"))
_NONE: Any = None, (), (), None, ()     # no further `Fences`
# XLA:CPU (jaxlib 0.10.2) hands sums to a library that leaves its buffers for some arrays of more.
MOST_AXES = 6
DEEPEST = 64    # nested calls; at 190 the stacks of XLA's threads overflow

with lazy_imports(__name__):
    from . import fences as _fences, instead as _instead  # when the first program is lowered


class Builder(Emitter):
    """Emits the operations of one program, at the end of a block.

    `avals_in`, `avals_out`, `eqn` and `loc` belong to the equation that is lowered now; `prefix` is
    the scope of the program.

    >>> import olympus
    >>> from olympus.extend.core import Primitive
    >>> from olympus.interpreters import mlir
    >>> def lower(ctx, x):
    ...     print(isinstance(ctx, mlir.LoweringRuleContext), ctx.avals_in)
    ...     return [x]
    >>> p = Primitive("same")
    >>> _ = p.def_abstract_eval(lambda x: x)
    >>> mlir.register_lowering(p, lower)
    >>> print(olympus.jit(p.bind)(1.5))
    True [ShapedArray(float32[], weak_type=True)]
    1.5
    """

    __slots__ = ()

    # Regions

    def region(self, op: IrOperation, index: int, types: Sequence[IrType], body: Body,
               end: str = "stablehlo.return") -> None:
        """Fill a region of `op` by `body(*block arguments)`, whose results `end` returns."""
        ir = mlir.ir
        block = op.regions[index].blocks.append(*types, arg_locs=[self.loc] * len(types))
        outer = self.block
        module = self.module
        module.nest.enter(self.eqn)
        combining = module.combining
        module.combining = combining or op.operation.name not in _CONTROL
        # The region of a manual computation is isolated: it sees no value of the outer block.
        self.block = Block(ir.InsertionPoint(block), outer.sizes and (
            outer.sizes.alone() if end == "sdy.return" else outer.sizes.inner()))
        try:
            outs = body(*block.arguments)
            ir.Operation.create(end, [], list(outs), None, None, 0, self.loc, self.block.ip)
        finally:
            self.block, module.combining = outer, combining
            module.nest.leave()

    def symbolic_windows(self, xs: Sequence[IrValue], inits: Sequence[IrValue],
                         outs: Sequence[ShapedArray], combine: Body,
                         params: Sequence[Sequence[DimSize]],
                         padding: Sequence[tuple[DimSize, DimSize]]) -> list[IrValue]:
        """stablehlo.reduce_window whose params (window, strides, dilations) may be symbolic."""
        ir, module = mlir.ir, self.module
        types = [x.type for x in inits]
        # A custom call has no region: it names a function that combines elements.
        with self.loc:
            kind = ir.FunctionType.get(types * 2, types)
            fn = mlir.func.FuncOp(module.symbols.new("reducer"), kind,
                                  ip=ir.InsertionPoint(module.module.body))
            fn.attributes["sym_visibility"] = ir.StringAttr.get("private")
        self.region(fn, 0, types * 2, combine, "func.return")
        pads = dimensions.operand(self, tuple(padding))
        operands = [*xs, *inits, *[dimensions.sizes_of(self, p) for p in params], pads]
        return list(self.raw("stablehlo.custom_call", operands, {
            "call_target_name": ir.StringAttr.get("stablehlo.dynamic_reduce_window"),
            "api_version": attr("1 : i32"),
            "called_computations": ir.ArrayAttr.get([ir.FlatSymbolRefAttr.get(fn.name.value)]),
        }, [tensor_type(a) for a in outs]).results)

    def reduce(self, combiner: str, x: IrValue, init: Number, axes: Sequence[int],
               out: ShapedArray) -> IrValue:
        """stablehlo.reduce to the aval `out` by a binary operation, from the scalar `init`."""
        return self.reduce_by(combiner, x, init, axes, out, lambda p, q: [
            self.op(combiner, [p, q], None, make_aval((), out.dtype))])

    def reduce_by(self, combiner: Hashable, x: IrValue, init: Number, axes: Sequence[int],
                  out: ShapedArray, body: Body) -> IrValue:
        """stablehlo.reduce to the aval `out` by `body(p, q)` on scalars; `combiner` is its key.

        An equal reduction is cloned, at a third of the cost; so its region has no source line.
        """
        if out.ndim + len(axes) > MOST_AXES and self.block.sizes is None and (
                self.module.platform in (None, "cpu")):
            x, shape, axes = self.merged_axes(x, out.dtype, axes)
            while len(shape) > MOST_AXES:
                axis = axes.pop()
                shape = (*shape[:axis], *shape[axis + 1:])
                x = self.reduce_by(combiner, x, init, [axis], out.update(shape=shape), body)
            kept = tuple([n for d, n in enumerate(shape) if d not in axes])
            return self.op("stablehlo.reshape", [self.reduce_by(
                combiner, x, init, axes, out.update(shape=kept), body)], None, out)
        module, block, start = self.module, self.block, self.scalar(init, out.dtype)
        # With marks, which would be cloned, there is no key.
        plain = block.sizes is None and self.marks is None
        key = (combiner, x.type, out, tuple(axes)) if plain else None
        op = module.reductions.get(key)
        if op is not None:
            op = op.clone(block.ip)
            op.location, operands = self.loc, op.operands
            operands[0], operands[1] = x, start
            # The cloned region is a level of the nest, like one made by `region`.
            module.nest.reach(self.eqn, 0)
            return op.result
        op = self.ops("stablehlo.reduce", [x, start], {"dimensions": i64s(axes)}, regions=1,
                      avals=[out])
        outer = self.loc, self.line
        self.loc, self.line = location("", None), None
        self.region(op, 0, [start.type] * 2, body)
        self.loc, self.line = outer
        if plain:
            module.reductions[key] = op
        return op.result

    @property
    def ordered(self) -> bool:
        """Whether the equation has ordered effects."""
        return any(e.ordered for e in self.eqn.effects)

    @property
    def tokens_in(self) -> TokenSet:
        """For outsiders' rules: the token of each ordered effect of the equation."""
        effects = [e for e in self.eqn.effects if e.ordered]
        # One token: a block has one order of all ordered effects.
        return TokenSet(dict.fromkeys(effects, self.take_token()) if effects else None)

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        """For outsiders' rules: set the tokens that the next ordered effect waits for."""
        if len(tokens_out):
            self.join_tokens([token for _, token in tokens_out.items()])

    def take_token(self) -> IrValue:
        """The token of the last ordered effect in this block; a new one if there is none."""
        token = self.block.token
        return self.new_token() if token is None else token

    def new_token(self) -> IrValue:
        """A token that waits for no effect."""
        return self.ops("stablehlo.create_token", [], None, [tensor_type(abstract_token)]).result

    def join_tokens(self, tokens: Sequence[IrValue]) -> None:
        """Let the next ordered effect in this block come after the effects of all tokens."""
        self.block.token = tokens[0] if len(tokens) == 1 else self.ops(
            "stablehlo.after_all", tokens, None, [tensor_type(abstract_token)]).result

    def threaded(self, body: Body) -> Callable[..., list[IrValue]]:
        """A region's body whose first argument and first result are the block's token."""
        def run(token: IrValue, *values: IrValue) -> list[IrValue]:
            self.block.token = token
            outs = body(*values)
            return [self.block.token, *outs]

        return run

    def while_loop(self, init: Sequence[IrValue], cond: Callable[..., IrValue], body: Body,
                   consts: Sequence[IrValue] = (), const_avals: Sequence[Aval] = ()
                   ) -> list[IrValue]:
        """stablehlo.while: `cond(*values, *consts) -> i1`, `body(*values, *consts) -> values`.

        With ordered effects in the body, their token is the first value.
        """
        # Shardy sums an unreduced value before a loop that reads it from outside, and takes the sum
        # for terms inside. So unreduced consts become values of the loop. They are constrained in
        # each iteration; otherwise XLA would find that they never change, and read them from
        # outside again.
        terms = [i for i, a in enumerate(const_avals) if self.module.places.is_unreduced(a)]
        count = len(init)

        def read(held: Sequence[IrValue]) -> list[IrValue]:
            given = list(consts)
            for i, x in zip(terms, held, strict=True):
                given[i] = self.spread(x, const_avals[i])
            return given

        def test(*values: IrValue) -> IrValue:
            return cond(*values[:count], *read(values[count:]))

        def step(*values: IrValue) -> list[IrValue]:
            given = read(values[count:])
            return [*body(*values[:count], *given), *[given[i] for i in terms]]

        init = [*init, *[consts[i] for i in terms]]
        ordered = self.ordered
        if ordered:
            init, step = [self.take_token(), *init], self.threaded(step)
        types = [x.type for x in init]
        op = self.ops("stablehlo.while", init, types=types, regions=2)
        with self.module.aside():
            # `ordered` as a number: drop the token, if there is one.
            self.region(op, 0, types, lambda *xs: [test(*xs[ordered:])])
            self.region(op, 1, types, step)
        return self._outputs(op, ordered)[:count]

    def case(self, index: IrValue, branches: Sequence[Callable[[], Sequence[IrValue]]],
             types: Sequence[IrType]) -> Sequence[IrValue]:
        """stablehlo.case on an i32 index: one function of no arguments per branch."""
        ordered = self.ordered
        if ordered:
            # A branch takes no arguments: it reads the token of the outer block.
            token, types = self.take_token(), [tensor_type(abstract_token), *types]
            branches = [functools.partial(self.threaded(branch), token) for branch in branches]
        op = self.ops("stablehlo.case", [index], types=types, regions=len(branches))
        with self.module.aside():
            for i, branch in enumerate(branches):
                self.region(op, i, [], branch)
        return self._outputs(op, ordered)

    def _outputs(self, op: IrOperation, ordered: bool) -> list[IrValue]:
        """The results of an operation without the token, which becomes the block's."""
        outs: list[IrValue] = list(op.results)
        if ordered:
            self.block.token = outs.pop(0)
        return outs

    def per_platform(self, ins: Sequence[IrValue]) -> Sequence[IrValue] | IrValue:
        """The equation as a choice between the platforms' lowerings."""
        module, eqn, prim = self.module, self.eqn, self.eqn.primitive
        avals_in, avals_out = self.avals_in, self.avals_out

        def emit(platform: str) -> list[IrValue]:
            module.platform = platform
            self.eqn, self.avals_in, self.avals_out = eqn, avals_in, avals_out
            try:
                out = rule_of(module, prim)(self, *ins, **eqn.params)
            finally:
                module.platform = None
            return list(out) if prim.multiple_results else [out]

        assert self.block.sizes is not None    # they include the platform's number
        number = self.block.sizes.values[dimensions.PLATFORM_INDEX]
        index = self.convert(number, make_aval((), INT32))
        outs = self.case(index, [functools.partial(emit, p) for p in module.platforms],
                         [tensor_type(a) for a in avals_out])
        return outs if prim.multiple_results else outs[0]

    def counted_loop(self, length: DimSize, init: Sequence[IrValue], body: Body, unroll: int = 1,
                     consts: Sequence[IrValue] = (), const_avals: Sequence[Aval] = ()
                     ) -> list[IrValue]:
        """Run `body(index, values, *consts)` for index 0 … length-1 (i32)."""
        i32 = dtypes.as_dtype("int32")
        index_aval, flag = make_aval((), i32), make_aval((), BOOL)
        if isinstance(length, SymbolicDim):
            unroll = 1      # the number of remaining iterations is unknown
        elif length <= max(unroll, 1):
            values = init
            for i in range(length):
                values = body(self.scalar(i, i32), values, *consts)
            return list(values)
        whole = length if unroll == 1 else length - length % unroll

        def step(index: IrValue, *read: IrValue) -> list[IrValue]:
            values, given = cut(read, len(init))
            for k in range(unroll):
                at = index if k == 0 else self.op("stablehlo.add", [index, self.scalar(k, i32)],
                                                  None, index_aval)
                values = body(at, values, *given)
            return [self.op("stablehlo.add", [index, self.scalar(unroll, i32)], None, index_aval),
                    *values]

        out = self.while_loop(
            [self.constant(0, index_aval), *init],
            lambda index, *_: self.compare("LT", index, self.scalar(whole, i32), "SIGNED", flag),
            step, consts, const_avals)[1:]
        if unroll > 1:
            for i in range(whole, length):
                out = list(body(self.scalar(i, i32), out, *consts))
        return out

    def reverse_index(self, index: IrValue, length: DimSize) -> IrValue:
        """length - 1 - index."""
        i32 = dtypes.as_dtype("int32")
        return self.op("stablehlo.subtract", [self.scalar(length - 1, i32), index], None,
                       make_aval((), i32))

    def slice_at(self, x: IrValue, index: IrValue, aval: ShapedArray | None = None) -> IrValue:
        """x[index] along axis 0, constrained to the sharding of `aval`, if given."""
        ir = mlir.ir
        kind = ir.RankedTensorType(x.type)
        shape = kind.shape
        zero = self.scalar(0, dtypes.as_dtype("int32"))
        one = ir.RankedTensorType.get([1, *shape[1:]], kind.element_type)
        flat = ir.RankedTensorType.get(shape[1:], kind.element_type)
        if flat.has_static_shape:
            row = ir.Operation.create(
                "stablehlo.dynamic_slice", [one], [x, index, *[zero] * (len(shape) - 1)],
                {"slice_sizes": i64s([1, *shape[1:]])}, None, 0, self.loc, self.block.ip).result
            out = ir.Operation.create("stablehlo.reshape", [flat], [self.spread_row(row, aval)],
                                      None, None, 0, self.loc, self.block.ip).result
        else:
            out = dimensions.slice_at(self, x, index, one, flat, aval)
        return out if aval is None else self.spread(out, aval)

    def spread_row(self, x: IrValue, aval: ShapedArray | None, rows: DimSize = 1) -> IrValue:
        """An array of rows, each constrained to the sharding of `aval`, if given."""
        return x if aval is None or not aval.tagged else self.spread(x, aval.with_axis(0, rows))

    def update_at(self, x: IrValue, index: IrValue, value: IrValue, aval: ShapedArray | None = None
                  ) -> IrValue:
        """x with x[index] = value along axis 0, constrained to the sharding of `aval`, if given."""
        ir = mlir.ir
        kind = ir.RankedTensorType(x.type)
        zero = self.scalar(0, dtypes.as_dtype("int32"))
        one = ir.RankedTensorType.get([1, *kind.shape[1:]], kind.element_type)
        if one.has_static_shape:
            row = ir.Operation.create("stablehlo.reshape", [one], [value], None, None, 0, self.loc,
                                      self.block.ip).result
        else:
            row = dimensions.as_row(self, value, one)
        row = self.spread_row(row, aval)
        out = ir.Operation.create(
            "stablehlo.dynamic_update_slice", [x.type],
            [x, row, index, *[zero] * (len(kind.shape) - 1)], None, None, 0, self.loc,
            self.block.ip).result
        return self.spread_row(out, aval, kind.shape[0])

    def resized(self, x: IrValue, aval: ShapedArray, old: DimSize, new: DimSize) -> IrValue:
        """x with `new` rows in place of `old`: zeros are appended, or the last rows dropped."""
        aval = physical_aval(aval)
        aval, none = aval.update(shape=(new, *aval.shape[1:])), i64s([0] * aval.ndim)
        return self.op("stablehlo.pad", [x, self.scalar(0, aval.dtype)], {
            "edge_padding_low": none, "interior_padding": none,
            "edge_padding_high": i64s([new - old] + [0] * (aval.ndim - 1))}, aval)

    def custom_call(self, target: str, operands: Sequence[IrValue], types: Sequence[IrType],
                    attributes: Attributes | None = None, *,
                    config: Mapping[str, object] | None = None,
                    layouts: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]] | None = None,
                    aliases: Sequence[int | None] | None = None, on_host: bool = False,
                    shapes: Sequence[Sequence[DimSize]] = ()) -> list[IrValue]:
        """stablehlo.custom_call of an FFI target (api_version 4 unless given).

        Args:
          target: its registered name.
          operands, types: MLIR values, and the types of the results.
          attributes: further attributes of the operation.
          config: the attributes of the target, as values for `value_attr`.
          layouts: the layouts of operands, and of results: axes, the innermost first.
          aliases: result aliases[i] overwrites operand i, unless that is None.
          on_host: whether one of several devices makes the call, with unsharded operands; along
            manual axes each device makes a call.
          shapes: the results' shapes, if they may be symbolic.
        """
        attributes = {"api_version": attr("4 : i32"), **(attributes or {}),
                      "call_target_name": mlir.ir.StringAttr.get(target)}
        if config is not None:
            attributes["backend_config"] = value_attr(config)
        if self.block.sizes is not None and not all(map(is_static, shapes)):
            more, indices = dimensions.shape_operands(self, len(operands), shapes)
            operands, attributes = [*operands, *more], {**attributes, **indices}
            aliases = None      # refinement needs equal types at each step
            if layouts is not None:
                layouts = [*layouts[0], *[(0,)] * len(more)], layouts[1]
        if layouts is not None:
            attributes["operand_layouts"], attributes["result_layouts"] = map(call_layouts, layouts)
        if aliases is not None:
            attributes["output_operand_aliases"] = call_aliases(aliases, len(types))
        op = self.ops("stablehlo.custom_call", operands, attributes, types)
        if on_host and self.module.places.manual is None:
            self.module.calls.host.append(op)
        return list(op.results)

    def put_in_memory(self, x: IrValue, kind: str) -> IrValue:
        """`x` in a memory of the devices, by name. A CPU has one memory."""
        if self.module.platform == "cpu":
            return x
        return self.custom_call("annotate_device_placement", [x], [x.type], {
            "has_side_effect": attr("true"), "api_version": attr("1 : i32"),
            "mhlo.frontend_attributes": attr(f'{{_xla_buffer_placement = "{kind}"}}')},
            shapes=[self.eqn.outvars[0].aval.shape])[0]

    # Axes of a mesh

    def manual_axes(self, names: Sequence[Hashable]) -> ManualAxes:
        """The manual axes of these names; NameError unless each is manual here."""
        manual = self.module.places.manual
        if manual is None or not set(names) <= set(manual.names):
            bound = ", ".join(map(repr, manual.names)) if manual is not None else "none"
            raise NameError(f"{self.eqn.primitive.name}: axes {tuple(names)} given; the manual "
                            f"axes of a mesh here are: {bound}; bind them with "
                            "vmap(..., axis_name=...) or shard_map.")
        return manual

    def replica_groups(self, names: Sequence[Hashable], groups: AxisIndexGroups = None
                       ) -> list[list[int]]:
        """The lists of devices (partitions) that communicate along these mesh axes.

        Entry i of a list is position i along the axes (row-major if several). With `groups`, which
        are lists of positions, there is a list for each group.
        """
        return self.manual_axes(names).groups(names, groups)

    def channel(self) -> Attributes:
        """The attribute that makes a collective run over partitions."""
        return {"channel_handle": attr("#stablehlo.channel_handle<handle = 1, type = 1>")}

    def group_attributes(self, names: Sequence[Hashable], groups: AxisIndexGroups = None
                         ) -> Attributes:
        """`replica_groups` and `channel` as attributes of a collective."""
        return {"replica_groups": groups_attr(self.replica_groups(names, groups)),
                **self.channel()}

    def groups_config(self, names: Sequence[Hashable], groups: AxisIndexGroups) -> IrAttribute:
        """`group_attributes` for a collective that is a custom call."""
        return mlir.ir.DictAttr.get({
            "channel_id": attr("1 : i64"),
            "replica_groups": groups_attr(self.replica_groups(names, groups))})

    def permutation_attributes(self, names: Sequence[Hashable], perm: Sequence[tuple[int, int]]
                               ) -> Attributes:
        """The attributes of pairs (source, destination) of positions along these axes."""
        pairs = [(row[src], row[dst]) for row in self.replica_groups(names) for src, dst in perm]
        return {"source_target_pairs": groups_attr(pairs), **self.channel()}

    def all_reduce(self, combiner: str, x: IrValue, aval: ShapedArray, names: Sequence[Hashable],
                   groups: AxisIndexGroups = None) -> IrValue:
        """stablehlo.all_reduce of an array by a binary operation."""
        # The identity on one device: XLA:CPU cannot compile two of them with different ranks.
        if all(len(group) == 1 for group in self.replica_groups(names, groups)):
            return x
        wide = self.sum_aval(aval) if combiner == "stablehlo.add" else aval
        if wide is not aval:
            out = self.all_reduce(combiner, self.convert(x, wide), wide, names, groups)
            return self.convert(out, aval)
        scalar = make_aval((), aval.dtype)
        kind = tensor_type(scalar)
        op = self.ops("stablehlo.all_reduce", [x], {
            **self.group_attributes(names, groups),
            "use_global_device_ids": mlir.ir.UnitAttr.get()}, [x.type], regions=1)
        self.region(op, 0, [kind, kind], lambda p, q: [self.op(combiner, [p, q], None, scalar)])
        return op.result

    def sum_aval(self, aval: ShapedArray) -> ShapedArray:
        """The aval in which devices' parts are summed: CPUs and GPUs would round each partial sum.

        XLA:TPU chooses how it adds bfloat16, and sends 16 bits where sums are converted, too.
        """
        wide = dtypes.wide_dtype(aval.dtype) if self.module.fences else aval.dtype
        if wide == aval.dtype or (
                self.module.platform == "tpu" and aval.dtype.name == "bfloat16"):
            return aval
        return aval.update(dtype=wide)

    def position(self, name: Hashable) -> IrValue:
        """This device's position along an axis of a mesh, i32."""
        manual = self.manual_axes([name])
        if manual.all_manual:
            return self._position(manual, name)
        # `partition_id` has no meaning while XLA still partitions along other axes.
        rest = [n for n in manual.mesh.axis_names if n not in manual.names]
        kind = tensor_type(make_aval((), dtypes.as_dtype("int32")))
        return self.manual_computation(manual.mesh, rest, [], [], [PartitionSpec()], [], [kind],
                                       lambda: [self._position(manual, name)])[0]

    def _position(self, manual: ManualAxes, name: Hashable) -> IrValue:
        """`position` where all axes are manual."""
        table = manual.positions(name)
        number = self.op("stablehlo.partition_id", [], None,
                         make_aval((), dtypes.as_dtype("uint32")))
        return self.slice_at(self.constant(table, make_aval(table.shape, table.dtype)),
                             self.convert(number, make_aval((), table.dtype)))

    def manual_computation(self, mesh: Mesh | AbstractMesh, names: Sequence[Hashable],
                           args: Sequence[IrValue], in_specs: Sequence[PartitionSpec],
                           out_specs: Sequence[PartitionSpec], parts: Sequence[IrType],
                           types: Sequence[IrType], body: Body) -> list[IrValue]:
        """sdy.manual_computation: `body(*parts)` is one device's program along further axes.

        Args:
          mesh: a `Mesh`, or an `AbstractMesh` in a program that is not compiled here.
          names: the axes that become manual, in the order of the mesh.
          args: MLIR values, which `in_specs` shard along `names`.
          parts: the MLIR types of the parts, which the body takes.
          types: the MLIR types of the results, which `out_specs` assemble.
          body: returns the parts of the results. Its ordered effects are threaded.
        """
        places, ordered = self.module.places, self.ordered
        outer = places.manual
        places.manual = manual = places.manual_over(mesh, names)
        try:
            if prod([mesh.shape[name] for name in names]) == 1:
                return list(body(*args))    # with one device, parts are the whole arrays
            args, parts, in_specs, body = dimensions.into_region(
                self, args, parts, in_specs, PartitionSpec(), body)
            if ordered:
                token = self.take_token()
                args, body = [token, *args], self.threaded(body)
                parts, types = [token.type, *parts], [token.type, *types]
                in_specs, out_specs = [PartitionSpec(), *in_specs], [PartitionSpec(), *out_specs]
            quoted = ", ".join(map(quoted_name, names))
            op = self.ops("sdy.manual_computation", args, {
                "in_shardings": places.part_shardings(manual, in_specs, [x.type for x in args]),
                "out_shardings": places.part_shardings(manual, out_specs, types),
                "manual_axes": attr(f"#sdy<manual_axes{{{quoted}}}>")}, types, regions=1)
            self.region(op, 0, parts, body, "sdy.return")
            return self._outputs(op, ordered)
        finally:
            places.manual = outer

    # Programs

    def group(self, values: Sequence[IrValue]) -> None:
        """Let Shardy shard these values alike."""
        module = self.module
        number = attr(f"{len(module.groups)} : i64")
        module.groups.append([mlir.ir.Operation.create(
            "sdy.sharding_group", [], [x], {"group_id": number}, None, 0, self.loc, self.block.ip)
            for x in values])

    def inspect(self, x: IrValue, callback: Callable[[Sharding], None]) -> None:
        """Let `callback` get the sharding of a value when XLA has chosen it."""
        op = self.raw("stablehlo.custom_call", [x], {
            "call_target_name": mlir.ir.StringAttr.get("InspectSharding"),
            "has_side_effect": attr("true"), "api_version": attr("1 : i32")}, [x.type])
        self.module.calls.inspected.append((op, callback, x.type.rank))

    def call_elsewhere(self, closed: ClosedOlympuspr, args: Sequence[IrValue], compute_type: str,
                       options: str | None) -> list[IrValue]:
        """Call a program that runs in the place `compute_type`, with XLA's options as JSON."""
        return self.call_marked(closed, args, "compute_on", elsewhere(compute_type, options))

    def call_marked(self, closed: ClosedOlympuspr, args: Sequence[IrValue], name: str,
                    marks: dict[str, str]) -> list[IrValue]:
        """Call a program with frontend attributes for XLA."""
        self.marks = dictionary(marks)      # for this equation: the walk sets them for the next
        symbol, types = self.function(closed, name, apart="inlineable" in marks)
        return list(self.raw("func.call", [*self.dimension_args, *args],
                             {"callee": mlir.ir.FlatSymbolRefAttr.get(symbol)}, types).results)

    def hold(self, x: IrValue, aval: ShapedArray) -> IrValue:
        """A value that XLA:CPU computes once for all readers: through a call it may not inline."""
        out = self.kept([x])[0]
        return self.spread(out, aval) if aval.tagged else out

    def settled(self, outs: Sequence[IrValue], outvars: Sequence[Var]) -> Sequence[IrValue]:
        """An equation's results, constrained to their types' shardings, and held where planned."""
        if True in [v.aval.tagged for v in outvars]:
            outs = [self.spread(x, v.aval) for x, v in zip(outs, outvars, strict=True)]
        if self.held:   # a rule that calls a function may have held them there
            outs = [self.hold(x, v.aval) if i in self.held else x
                    for i, (x, v) in enumerate(zip(outs, outvars, strict=True))]
        return outs

    def function(self, closed: ClosedOlympuspr, name: str, held: Sequence[int] = (),
                 line: Source | None = OWN, apart: bool = False) -> tuple[str, list[IrType]]:
        """The private function of a program that the equation calls; equal programs share one.

        Results at `held` are held inside. `line` is a `Builder`'s. `apart`: XLA will not inline it.
        """
        module = self.module
        manual = module.places.manual and (module.places.manual.mesh, module.places.manual.names)
        key = id(closed.olympuspr), tuple(map(id, closed.consts)), manual, module.platform, (
            *held, apart)
        found = module.functions.get(key) or module.functions.get((key, module.outside_main))
        if found is None and (first := module.distinct.first(closed, name)) is not closed:
            return self.function(first, name, held, line, apart)
        if found is None:
            convolutions = module.convolutions
            symbol = module.symbols.new(name)
            module.depth += 1
            # The levels inside are kept with the function: each call adds them to its own.
            nest, outer = module.nest, module.nest.deepest
            nest.enter(self.eqn)
            nest.deepest = level = len(nest.eqns)
            # Without a prefix: XLA adds the callers'.
            emit_function(module, closed, symbol, "private", "", held=held, line=line,
                          apart=apart)
            levels = nest.deepest - level
            nest.leave()
            nest.deepest = max(outer, nest.deepest)
            module.depth -= 1
            # The entry keeps the program alive, so that its id stays unique.
            found = symbol, [tensor_type(a) for a in closed.out_avals], closed, levels
            # Convolutions are lowered differently in bodies of loops and branches.
            module.functions[key if convolutions == module.convolutions else (
                key, module.outside_main)] = found
        else:
            module.nest.reach(self.eqn, found[3])
        return found[:2]

    def call(self, closed: ClosedOlympuspr, args: Sequence[IrValue], name: str) -> list[IrValue]:
        """Call a program as a private function of the module: one function per program.

        A program with ordered effects is written out, so that they stay in one block. So is one
        that is nested deeper than XLA can follow, unless it has several callers.
        """
        if any(e.ordered for e in closed.effects) or (
                self.module.depth >= DEEPEST and self.module.called_once(closed.olympuspr)):
            return self.call_inline(closed, args, f"jit({name})")
        self.loc = location(f"{self.prefix}{self.eqn.ctx.extend(f'jit({name})')}", self.source)
        # Hold results inside of the function: after the call, its own readers would compute again.
        held, self.held = self.held, ()
        symbol, types = self.function(closed, name, held)
        return list(self.raw("func.call", [*self.dimension_args, *args],
                             {"callee": mlir.ir.FlatSymbolRefAttr.get(symbol)}, types).results)

    @property
    def stays(self) -> bool:
        """Whether `call_kept` lowers the equation's body."""
        module, eqn = self.module, self.eqn
        return module.keeps_calls and module.depth < DEEPEST and eqn.primitive.stays(eqn.params)

    def call_kept(self, closed: ClosedOlympuspr, args: Sequence[IrValue], part: str
                  ) -> list[IrValue]:
        """Call a program that XLA:CPU may not fuse with its surroundings."""
        around = self.marks
        marks = {} if around is None else {a.name: a.attr.value for a in around}
        self.loc = location(f"{self.prefix}{self.eqn.ctx.path}{part}", self.source)
        with self.module.aside():
            return self.call_marked(closed, args, "checkpoint", {**marks, **KEPT})

    def spread(self, x: IrValue, aval: Aval) -> IrValue:
        """A result, constrained to its type's sharding."""
        attributes = self.module.places.type_attrs(aval) if aval.tagged else {}
        if not attributes:
            return x
        out = self.ops("sdy.sharding_constraint", [x], {"sharding": attributes["sdy.sharding"]},
                       [x.type]).result
        # `module` looks up the layouts of main's results: the constraint is the result now.
        if x in self.module.laid_out:
            self.module.laid_out[out] = self.module.laid_out[x]
        return out

    def composite(self, closed: ClosedOlympuspr, args: Sequence[IrValue], name: str, version: int,
                  attributes: dict[str, str]) -> list[IrValue]:
        """stablehlo.composite: a named operation with a program; attributes as MLIR text."""
        symbol, types = self.function(closed, name)
        given = {key: attr(text) for key, text in attributes.items()}
        op = self.ops("stablehlo.composite", [*self.dimension_args, *args], {
            "name": mlir.ir.StringAttr.get(name), "version": attr(f"{version} : i32"),
            "decomposition": mlir.ir.FlatSymbolRefAttr.get(symbol),
            **({"composite_attributes": mlir.ir.DictAttr.get(given)} if given else {})}, types)
        return list(op.results)

    def call_inline(self, closed: ClosedOlympuspr, args: Sequence[IrValue], part: str = ""
                    ) -> list[IrValue]:
        """Emit a program's equations here, inside the scopes of the equation being lowered.

        `part` names the program among the equation's programs, in the scopes of its operations.
        """
        path = f"{self.eqn.ctx.path}{part}/" if part else self.eqn.ctx.path
        inner = Builder(self.module, self.block, self.prefix + path, self.loc, self.line)
        inner.marks = self.marks
        return lower_equations(inner, closed, args)

    def traced(self, fun: OfArrays, xs: Sequence[IrValue], avals: Sequence[ShapedArray]
               ) -> list[IrValue]:
        """Emit `fun`, a function of lax operations, here on MLIR values of these avals."""
        with self.module.holds.set("off"):
            return self._written_out(staged(fun, avals), xs)

    def by_rule(self, fun: OfArrays, xs: Sequence[IrValue], avals: Sequence[ShapedArray]
                ) -> list[IrValue]:
        """`traced`, if the primitive, the params and the operands' avals determine `fun`, but for
        the arguments of a partial.

        One program serves all such equations, and a long one becomes a function of the module.
        """
        module, eqn = self.module, self.eqn
        closed = rule_program(eqn, self.avals_in, module.platform, fun, avals)
        with module.holds.set("off"):
            # Operations in a function, which serves several calls, cannot have marks.
            if len(closed.eqns) <= LONG or self.marks is not None or not module.calls_rules:
                return self._written_out(closed, xs)
            symbol, types = self.function(closed, eqn.primitive.name, line=None)
            return list(self.raw("func.call", xs, {
                "callee": mlir.ir.FlatSymbolRefAttr.get(symbol)}, types).results)

    def _written_out(self, closed: ClosedOlympuspr, xs: Sequence[IrValue]) -> list[IrValue]:
        """Emit a rule's program here, at the line of the equation that is lowered."""
        outer, self.line = self.line, self.source
        try:
            return self.call_inline(closed, xs)
        finally:
            self.line = outer

    def inline(self, fun: OfArrays, *xs: IrValue, **params: Hashable) -> Any:
        """The equation, by `fun(*xs, **params)`, a function of lax operations, as `by_rule`."""
        outs = self.by_rule(functools.partial(fun, **params), xs, self.avals_in)
        return outs if self.eqn.primitive.multiple_results else outs[0]


def _storage(aval: Any) -> ShapedArray:
    """The aval that stands for a value in arguments and results of a whole program."""
    return physical_aval(aval) if aval is abstract_token else aval


def emit_function(module: ModuleContext, closed: ClosedOlympuspr, symbol: str, visibility: str,
                  prefix: str, solution: Solution | None = None, ordered: int = 0,
                  wrapped: bool = False, held: Sequence[int] = (), line: Source | None = OWN,
                  apart: bool = False) -> tuple[IrOperation, list[IrValue]]:
    """Emit a program as a function of the module; return the `func.func` and its results.

    Tokens enter and leave a public function as arrays without elements; tokens of `ordered` effects
    are its first arguments and results. A public function computes the values of dimension
    variables by the solution. Private functions, and `wrapped` public ones, have them as first
    arguments.
    """
    ir = mlir.ir
    # MLIR loads the classes of a whole dialect for the type of a token.
    threads = [tensor_type(abstract_token)] * ordered if ordered else []
    tokens = visibility == "public"
    ins = [tensor_type(_storage(a) if tokens else a) for a in closed.in_avals]
    outs = [tensor_type(_storage(a) if tokens else a) for a in closed.out_avals]
    # Main gets the platform's number only, and no dimension's value.
    sized = module.dimension_names
    if tokens and not wrapped:
        sized = [n for n in sized if n == dimensions.PLATFORM_INDEX]
    ins = [tensor_type(module.dimension_aval)] * len(sized) + threads + ins
    loc = location(prefix, None)
    names = (*sized, *closed.olympuspr.debug_info.arg_names)
    locs = [ir.Location.name(n) for n in names] if len(names) == len(ins) else [loc] * len(ins)
    fn, block = emit_header(symbol, visibility, ins, threads + outs, locs, loc,
                            ir.InsertionPoint(module.module.body))
    b = Builder(module, Block(ir.InsertionPoint(block)), prefix, loc, line)
    sizes, given_tokens, args = cut(list(block.arguments), len(sized), ordered)
    if module.dimension_names:
        given: dict[Hashable, IrValue] = dict(zip(sized, sizes, strict=True))
        b.block.sizes = (dimensions.Sizes(given) if solution is None or wrapped else
                         dimensions.emit_solution(b, solution, args))
        b.block.sizes.values.update(given)
    if tokens:
        args = [b.op("stablehlo.create_token", [], None, a) if a is abstract_token else x
                for x, a in zip(args, closed.in_avals)]
    if ordered:
        b.join_tokens(given_tokens)
    results = lower_equations(b, closed, args, held)
    if apart:
        results = b.apart(results, closed.out_avals)
    if tokens:
        results = [b.full(_storage(a), False) if a is abstract_token else x
                   for x, a in zip(results, closed.out_avals)]
    returned = [b.block.token] * ordered + results
    ir.Operation.create("func.return", [], returned, None, None, 0, loc, b.block.ip)
    return fn, results


def lower_equations(b: Builder, closed: ClosedOlympuspr, args: Sequence[IrValue],
                    results: Sequence[int] = ()) -> list[IrValue]:
    """Lower each equation of a program in turn; return the MLIR values of its outputs.

    `results`: the indices of the outputs that the caller wants held.
    """
    pr = closed.olympuspr
    around, open_platform, own = b.marks, b.module.platform is None, b.line is OWN
    plan: Plan = _fences.plan_of(closed, b.module)
    env: dict[Any, Any] = {**emit_constants(b, closed, plan), **dict(zip(pr.invars, args))}
    eqns, held, fences = b.module.in_order(
        closed, b.module.held(closed, results) | plan.held_of(pr, results), plan.fences)
    fenced, behind, repeated, instead, late = next(fences, _NONE)
    scope: Any = None                   # of the equation before
    marks = around                      # what XLA is told there
    by_primitive: dict[Any, Any] = {}   # its name there, its rule, whether there are recipes
    block, create, platform = b.block, mlir.ir.Operation.create, b.module.rules_of
    # Hot: without comprehensions, which are frames, and asking anew as little as may be.
    for eqn in eqns:
        if reads_fences := eqn is fenced:
            eqn = instead
        if eqn.ctx is not scope:
            scope = eqn.ctx
            marks = around if scope.compute_type is None and scope.metadata is None else (
                marks_of(scope, around))
            by_primitive = {}
        b.marks = marks
        prim, outvars, found = eqn.primitive, eqn.outvars, by_primitive.get(eqn.primitive)
        if found is None:
            found = by_primitive[prim] = (
                f"{b.prefix}{scope.path}{prim.name}", rule_of(b.module, prim),
                marks is None and block.sizes is None and has_recipes(b.module, prim))
        name, lower, single = found
        line = eqn.source if own else b.line
        at = None if line is None else known_location((name, id(line[0]), line[1]))
        b.loc = location(name, line) if at is None else at[0]
        if reads_fences:
            b.put_behind_fences(env, behind, repeated, late)
            fenced, behind, repeated, instead, late = next(fences, _NONE)
        ins, avals = [], []
        for a in eqn.invars:
            avals.append(a.aval)
            ins.append(b.scalar(a.raw, a.aval.dtype) if type(a) is Literal else env[a])
        several, params = prim.multiple_results, eqn.params
        key: Any = (prim, platform, outvars[0].aval, *avals, *params, *params.values()) if (
            single) else None
        # None: the first of its kind; False: its rule emitted something else than one operation.
        recipe: Any = known_recipe(key)
        if recipe:
            operation, types, attributes, wide, order = recipe
            for i, aval in wide:
                spread = block.repeated.get((id(ins[i]), aval.shape))
                ins[i] = b.broadcast(ins[i], aval, ()) if spread is None else spread[0]
            if order is not None:
                ins = [ins[i] for i in order]
            out: Any = ins[0] if operation is None else create(
                operation, types, ins, attributes, None, 0, b.loc, block.ip).result
            hold: Any = outvars[0] in held
        else:
            # For the rule: operations emitted by a recipe read none of these.
            b.eqn, b.avals_in, b.emitted = eqn, avals, None
            b.avals_out = [v.aval for v in outvars] if several else [outvars[0].aval]
            b.held = tuple([i for i, v in enumerate(outvars) if v in held]) if held else ()
            mark: Any = Mark(block) if open_platform else None
            try:
                out = lower(b, *ins, **params)
            except PlatformOpen:
                mark.restore()
                out = b.per_platform(ins)
            if single and recipe is None:    # its first one
                note_recipe(b, key, ins, out)
            hold = b.held
        if several:
            env.update(zip(outvars, b.settled(out, outvars)))
        else:
            var = outvars[0]
            if var.aval.tagged:
                out = b.spread(out, var.aval)
            env[var] = b.hold(out, var.aval) if hold else out
    b.marks = around
    b.put_behind_fences(env, plan.results)
    return [b.scalar(a.raw, a.aval.dtype) if type(a) is Literal else env[a] for a in pr.outvars]


def host_value(value: Any, aval: ShapedArray) -> np.ndarray:
    """The elements that a device holds of a closed-over constant."""
    value = stored(value)
    array = lib.to_numpy(value) if isinstance(value, lib.ArrayImpl) else np.asarray(value)
    return array.astype(physical_aval(aval).dtype, copy=False)


def emit_constants(b: Builder, closed: ClosedOlympuspr, plan: Plan) -> dict[Var, IrValue]:
    """The MLIR values of closed-over arrays, and of literals that a plan hides, by variable."""
    values = {var: emit_constant(b, value, var.aval)
              for var, value in zip(closed.olympuspr.constvars, closed.consts)}
    for var in plan.constants:
        literal, aval = plan.constants[var], var.aval
        values[var] = _instead.hidden(b, values[var], aval) if literal is None else b.broadcast(
            _instead.hidden(b, b.scalar(literal.raw, aval.dtype), literal.aval), aval, ())
    return values


def emit_constant(b: Builder, value: ArrayLike, aval: ShapedArray) -> IrValue:
    """The MLIR value of a closed-over array: a dense constant, or a broadcast scalar."""
    if aval is abstract_token:
        return b.op("stablehlo.create_token", [], None, aval)
    array, aval = host_value(value, aval), physical_aval(aval)
    if array.size > 1 and array.strides and not any(array.strides):
        return b.full(aval, array.flat[0])      # a broadcast scalar: do not write it out
    return b.constant(array, aval)
