"""Lowering of equations: what lowering rules get as `b`, and the walk over a program.

`Builder` emits typed operations, attributes, constants, structured control flow and calls. Types,
attributes and locations are cached per process; operations are made with `ir.Operation.create`,
which costs a third of the generated wrappers.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import lib
from ..base.lib import mlir
from ..core.ir import ClosedOlympuspr, Literal
from ..core.staging import stage
from ..types import dtypes
from ..types.avals import ShapedArray, abstract_token, make_aval, physical_aval
from .array import stored
from .attributes import (
    attr,
    call_aliases,
    call_config,
    call_layouts,
    constant_attr,
    dot_numbers,
    element_type,
    i64s,
    location,
    tensor_type,
)

if TYPE_CHECKING:
    from .module import ModuleContext

BOOL = dtypes.as_dtype(bool)
DEEPEST = 64    # nested calls; at 190 the stack of the threads in which XLA converts them ends

__all__ = ["Builder", "lower_equations"]


def _as_list(x: Any) -> list[Any]:
    return list(x) if isinstance(x, (list, tuple)) else [x]


class Block:
    """Where operations are emitted, and what they have in common there.

    A region starts without: what is emitted in it ends with it.
    """

    __slots__ = ("ip", "scalars", "repeated", "token")

    def __init__(self, ip: Any) -> None:
        self.ip = ip
        self.scalars: dict[Any, Any] = {}   # constants of rank 0, by (type, repr, dtype)
        # Broadcasts of rank-0 values by (id, shape), with the value, whose id stays its own so.
        self.repeated: dict[Any, Any] = {}
        self.token: Any = None              # of the last ordered effect, if there was one


class Builder:
    """Emits the operations of one program, at the end of a block.

    `avals_in`, `avals_out`, `eqn` and `loc` are those of the equation being lowered; `prefix` is
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

    __slots__ = ("module", "block", "prefix", "loc", "avals_in", "avals_out", "eqn")

    def __init__(self, module: ModuleContext, block: Block, prefix: str, loc: Any) -> None:
        self.module, self.block, self.prefix, self.loc = module, block, prefix, loc
        self.avals_in: Sequence[Any] = ()
        self.avals_out: Sequence[Any] = ()
        self.eqn: Any = None

    def physical(self) -> Builder:
        """For the same equation, on the arrays that its keys are made of."""
        b = Builder(self.module, self.block, self.prefix, self.loc)
        b.avals_in = [physical_aval(a) for a in self.avals_in]
        b.avals_out = [physical_aval(a) for a in self.avals_out]
        b.eqn = self.eqn
        return b

    @property
    def platform(self) -> str:
        return self.module.platform

    # Types and attributes

    def type(self, aval: Any) -> Any:
        """The MLIR type of an aval."""
        return tensor_type(aval)

    attr = staticmethod(attr)
    i64s = staticmethod(i64s)
    element_type = staticmethod(element_type)

    # Operations

    def ops(self, name: str, operands: Sequence[Any], attributes: dict[str, Any] | None = None,
            types: Sequence[Any] | None = None, regions: int = 0) -> Any:
        """Emit an operation and return it; result types default to the equation's."""
        if types is None:
            types = [tensor_type(a) for a in self.avals_out]
        return mlir.ir.Operation.create(name, types, operands, attributes, None, regions, self.loc,
                                        self.block.ip)

    def op(self, name: str, operands: Sequence[Any], attributes: dict[str, Any] | None = None,
           aval: Any = None) -> Any:
        """Emit an operation of one result and return that; its aval defaults to the equation's."""
        kind = tensor_type(self.avals_out[0] if aval is None else aval)
        return mlir.ir.Operation.create(name, [kind], operands, attributes, None, 0, self.loc,
                                        self.block.ip).result

    def constant(self, value: Any, aval: ShapedArray) -> Any:
        """A dense constant of the aval's dtype."""
        array = np.asarray(value, BOOL if dtypes.is_float0(aval.dtype) else aval.dtype)
        self.module.written += array.nbytes
        attribute = constant_attr(array)
        return self.op("stablehlo.constant", [], {"value": attribute}, aval)

    def scalar(self, value: Any, dtype: np.dtype) -> Any:
        """A rank-0 constant, emitted once per block."""
        key = (type(value), repr(value), dtype)
        scalars = self.block.scalars
        if key not in scalars:
            scalars[key] = self.constant(value, make_aval((), dtype))
        return scalars[key]

    def full(self, aval: ShapedArray, value: Any) -> Any:
        """An array with every element equal to `value`."""
        aval = physical_aval(aval)
        scalar = self.scalar(value, aval.dtype)
        return scalar if not aval.shape else self.broadcast(scalar, aval, ())

    def broadcast(self, x: Any, aval: ShapedArray, dims: Sequence[int]) -> Any:
        """broadcast_in_dim to an aval; that of a scalar is emitted once per block."""
        if dims:
            return self.op("stablehlo.broadcast_in_dim", [x], {"broadcast_dimensions": i64s(dims)},
                           aval)
        key = id(x), aval.shape
        found = self.block.repeated.get(key)
        if found is None:
            out = self.op("stablehlo.broadcast_in_dim", [x], {"broadcast_dimensions": i64s(())},
                          aval)
            found = self.block.repeated[key] = out, x
        return found[0]

    def expand(self, xs: Sequence[Any]) -> list[Any]:
        """Operands of an elementwise equation at the result's shape (literals are rank 0)."""
        shape = self.avals_out[0].shape
        if not shape:
            return list(xs)
        found = list(xs)
        for i, a in enumerate(self.avals_in):
            if not a.shape:
                known = self.block.repeated.get((id(xs[i]), shape))
                found[i] = (known[0] if known is not None else
                            self.broadcast(xs[i], a.update(shape=shape), ()))
        return found

    def convert(self, x: Any, aval: ShapedArray) -> Any:
        """stablehlo.convert to an aval."""
        return self.op("stablehlo.convert", [x], None, aval)

    def compare(self, direction: str, x: Any, y: Any, kind: str, aval: ShapedArray) -> Any:
        """stablehlo.compare; `kind` is FLOAT, SIGNED, UNSIGNED or TOTALORDER, aval the result's."""
        return self.op("stablehlo.compare", [x, y], {
            "comparison_direction": attr(f"#stablehlo<comparison_direction {direction}>"),
            "compare_type": attr(f"#stablehlo<comparison_type {kind}>")}, aval)

    def dot_general(self, lhs: Any, rhs: Any, numbers: Any, attributes: dict[str, Any],
                    aval: ShapedArray) -> Any:
        """stablehlo.dot_general to an aval; `numbers` as lax writes them."""
        dims = dot_numbers(numbers)
        return self.op("stablehlo.dot_general", [lhs, rhs],
                       {"dot_dimension_numbers": dims, **attributes}, aval)

    # Regions

    def region(self, op: Any, index: int, types: Sequence[Any],
               body: Callable[..., Sequence[Any]]) -> None:
        """Fill a region of `op`: `body(*block arguments)` returns what it yields."""
        ir = mlir.ir
        block = op.regions[index].blocks.append(*types, arg_locs=[self.loc] * len(types))
        outer, self.block = self.block, Block(ir.InsertionPoint(block))
        try:
            outs = body(*block.arguments)
            ir.Operation.create("stablehlo.return", [], list(outs), None, None, 0, self.loc,
                                self.block.ip)
        finally:
            self.block = outer

    def reduce(self, combiner: str, x: Any, init: Any, axes: Sequence[int]) -> Any:
        """stablehlo.reduce of one operand by a binary operation, from the scalar `init`."""
        aval = make_aval((), self.avals_out[0].dtype)
        kind = tensor_type(aval)
        op = self.ops("stablehlo.reduce", [x, self.scalar(init, aval.dtype)],
                      {"dimensions": i64s(axes)}, regions=1)
        self.region(op, 0, [kind, kind], lambda p, q: [self.op(combiner, [p, q], None, aval)])
        return op.result

    @property
    def ordered(self) -> bool:
        """Whether the equation has effects that must keep their order."""
        return any(e.ordered for e in self.eqn.effects)

    def take_token(self) -> Any:
        """The token of the last ordered effect in this block, which is made if there is none."""
        token = self.block.token
        if token is None:
            kind = tensor_type(abstract_token)
            token = self.ops("stablehlo.create_token", [], None, [kind]).result
        return token

    def threaded(self, body: Callable[..., Sequence[Any]]) -> Callable[..., list[Any]]:
        """A region's body whose first argument and first result are the block's token."""
        def run(token: Any, *values: Any) -> list[Any]:
            self.block.token = token
            outs = body(*values)
            return [self.block.token, *outs]

        return run

    def while_loop(self, init: Sequence[Any], cond: Callable[..., Any],
                   body: Callable[..., Sequence[Any]]) -> list[Any]:
        """stablehlo.while: `cond(*values) -> i1`, `body(*values) -> values`.

        The token of ordered effects in the body is one value more, in front.
        """
        ordered = self.ordered
        if ordered:
            init, body = [self.take_token(), *init], self.threaded(body)
        types = [x.type for x in init]
        op = self.ops("stablehlo.while", init, types=types, regions=2)
        # `ordered` as a number: the token, if there is one, is not for `cond`.
        self.region(op, 0, types, lambda *xs: [cond(*xs[ordered:])])
        self.region(op, 1, types, body)
        return self._outputs(op, ordered)

    def case(self, index: Any, branches: Sequence[Callable[[], Sequence[Any]]],
             types: Sequence[Any]) -> list[Any]:
        """stablehlo.case on an i32 index: one function of no arguments per branch."""
        ordered = self.ordered
        if ordered:
            # Unlike a loop's, a branch takes no arguments: it reads the token from around it.
            token, types = self.take_token(), [tensor_type(abstract_token), *types]
            branches = [functools.partial(self.threaded(branch), token) for branch in branches]
        op = self.ops("stablehlo.case", [index], types=types, regions=len(branches))
        for i, branch in enumerate(branches):
            self.region(op, i, [], branch)
        return self._outputs(op, ordered)

    def _outputs(self, op: Any, ordered: bool) -> list[Any]:
        """The results of an operation, less the token, which becomes the block's."""
        outs = list(op.results)
        if ordered:
            self.block.token = outs.pop(0)
        return outs

    def counted_loop(self, length: int, init: Sequence[Any],
                     body: Callable[[Any, Sequence[Any]], Sequence[Any]],
                     unroll: int = 1) -> list[Any]:
        """Run `body(index, values)` for index 0 … length-1 (i32)."""
        i32 = dtypes.as_dtype("int32")
        index_aval, flag = make_aval((), i32), make_aval((), BOOL)
        if length <= max(unroll, 1):
            values: Sequence[Any] = init
            for i in range(length):
                values = body(self.scalar(i, i32), values)
            return list(values)
        whole = length - length % unroll

        def step(index: Any, *values: Any) -> list[Any]:
            for k in range(unroll):
                at = index if k == 0 else self.op("stablehlo.add", [index, self.scalar(k, i32)],
                                                  None, index_aval)
                values = tuple(body(at, values))
            return [self.op("stablehlo.add", [index, self.scalar(unroll, i32)], None, index_aval),
                    *values]

        out = self.while_loop(
            [self.constant(0, index_aval), *init],
            lambda index, *_: self.compare("LT", index, self.scalar(whole, i32), "SIGNED", flag),
            step)[1:]
        for i in range(whole, length):
            out = list(body(self.scalar(i, i32), out))
        return out

    def reverse_index(self, index: Any, length: int) -> Any:
        """length - 1 - index."""
        i32 = dtypes.as_dtype("int32")
        return self.op("stablehlo.subtract", [self.scalar(length - 1, i32), index], None,
                       make_aval((), i32))

    def slice_at(self, x: Any, index: Any) -> Any:
        """x[index] along axis 0."""
        ir = mlir.ir
        kind = ir.RankedTensorType(x.type)
        shape = kind.shape
        zero = self.scalar(0, dtypes.as_dtype("int32"))
        one = ir.RankedTensorType.get([1, *shape[1:]], kind.element_type)
        cut = ir.Operation.create(
            "stablehlo.dynamic_slice", [one], [x, index, *[zero] * (len(shape) - 1)],
            {"slice_sizes": i64s([1, *shape[1:]])}, None, 0, self.loc, self.block.ip).result
        flat = ir.RankedTensorType.get(shape[1:], kind.element_type)
        return ir.Operation.create("stablehlo.reshape", [flat], [cut], None, None, 0, self.loc,
                                   self.block.ip).result

    def update_at(self, x: Any, index: Any, value: Any) -> Any:
        """x with x[index] = value along axis 0."""
        ir = mlir.ir
        kind = ir.RankedTensorType(x.type)
        zero = self.scalar(0, dtypes.as_dtype("int32"))
        one = ir.RankedTensorType.get([1, *kind.shape[1:]], kind.element_type)
        row = ir.Operation.create("stablehlo.reshape", [one], [value], None, None, 0, self.loc,
                                  self.block.ip).result
        return ir.Operation.create(
            "stablehlo.dynamic_update_slice", [x.type],
            [x, row, index, *[zero] * (len(kind.shape) - 1)], None, None, 0, self.loc,
            self.block.ip).result

    def custom_call(self, target: str, operands: Sequence[Any], types: Sequence[Any],
                    attributes: dict[str, Any] | None = None, *,
                    config: dict[str, Any] | None = None,
                    layouts: tuple[Sequence[Sequence[int]], Sequence[Sequence[int]]] | None = None,
                    aliases: Sequence[int | None] | None = None, on_host: bool = False
                    ) -> list[Any]:
        """stablehlo.custom_call of an FFI target (api_version 4 unless given).

        Args:
          target: its registered name.
          operands, types: MLIR values, and the types of the results.
          attributes: further attributes of the operation.
          config: the parameters of the target: a character, a bool or an int each.
          layouts: of operands and of results, each one's axes from the innermost one.
          aliases: operand i is overwritten by result aliases[i], unless that is None.
          on_host: of many devices one makes the call, with the whole operands.
        """
        attributes = {"api_version": attr("4 : i32"), **(attributes or {}),
                      "call_target_name": mlir.ir.StringAttr.get(target)}
        if config is not None:
            attributes["backend_config"] = call_config(config)
        if layouts is not None:
            attributes["operand_layouts"], attributes["result_layouts"] = map(call_layouts, layouts)
        if aliases is not None:
            attributes["output_operand_aliases"] = call_aliases(aliases, len(types))
        op = self.ops("stablehlo.custom_call", operands, attributes, types)
        if on_host:
            self.module.host_calls.append(op)
        return list(op.results)

    def put_in_memory(self, x: Any, kind: str) -> Any:
        """`x` in a memory of the devices. Where results are, XLA for CPU asks the function only."""
        out = self.custom_call("annotate_device_placement", [x], [x.type], {
            "has_side_effect": attr("true"), "api_version": attr("1 : i32"),
            "mhlo.frontend_attributes": attr(f'{{_xla_buffer_placement = "{kind}"}}')})[0]
        self.module.memories[out] = kind
        return out

    # Programs

    def call(self, closed: ClosedOlympuspr, args: Sequence[Any], name: str) -> list[Any]:
        """Call a program as a private function of the module: one function per program.

        One with ordered effects is written out, so that they stay in one block; one that is nested
        deeper than XLA can follow, too, unless it has several callers.
        """
        if any(e.ordered for e in closed.effects) or (
                self.module.depth >= DEEPEST and self.module.called_once(closed.olympuspr)):
            return self.call_inline(closed, args)
        symbol, types = self.module.function(closed, name)
        op = self.ops("func.call", args, {"callee": mlir.ir.FlatSymbolRefAttr.get(symbol)}, types)
        for x, kind in zip(op.results, self.module.result_memories[symbol], strict=True):
            if kind is not None:
                self.module.memories[x] = kind
        return list(op.results)

    def spread(self, x: Any, aval: Any) -> Any:
        """A result, cut as its type says."""
        attributes = self.module.type_attrs(aval)
        if not attributes:
            return x
        return self.ops("sdy.sharding_constraint", [x], {"sharding": attributes["sdy.sharding"]},
                        [x.type]).result

    def composite(self, closed: ClosedOlympuspr, args: Sequence[Any], name: str, version: int,
                  attributes: dict[str, str]) -> list[Any]:
        """stablehlo.composite: a named operation that a program defines; attributes as text."""
        symbol, types = self.module.function(closed, name)
        given = {key: attr(text) for key, text in attributes.items()}
        op = self.ops("stablehlo.composite", args, {
            "name": mlir.ir.StringAttr.get(name), "version": attr(f"{version} : i32"),
            "decomposition": mlir.ir.FlatSymbolRefAttr.get(symbol),
            **({"composite_attributes": mlir.ir.DictAttr.get(given)} if given else {})}, types)
        return list(op.results)

    def call_inline(self, closed: ClosedOlympuspr, args: Sequence[Any]) -> list[Any]:
        """Emit a program's equations here, inside the scopes of the equation being lowered."""
        inner = Builder(self.module, self.block, self.prefix + self.eqn.ctx.path, self.loc)
        return lower_equations(inner, closed, args)

    def traced(self, fun: Callable[..., Any], xs: Sequence[Any], avals: Sequence[Any]
               ) -> list[Any]:
        """Emit `fun`, a function of lax operations, here on MLIR values of these avals."""
        return self.call_inline(stage(lambda *args: _as_list(fun(*args)), avals), xs)

    def inline(self, fun: Callable[..., Any], *xs: Any, **params: Any) -> Any:
        """The equation, by `fun(*xs, **params)`, a function of lax operations."""
        outs = self.traced(functools.partial(fun, **params), xs, self.avals_in)
        return outs if self.eqn.primitive.multiple_results else outs[0]


def lower_equations(b: Builder, closed: ClosedOlympuspr, args: Sequence[Any]) -> list[Any]:
    """Lower each equation of a program in turn; return the MLIR values of its outputs."""
    pr = closed.olympuspr
    env: dict[Any, Any] = dict(zip(pr.invars, args))
    for var, value in zip(pr.constvars, closed.consts):
        env[var] = emit_constant(b, value, var.aval)
    for eqn in pr.eqns:
        ins, avals = [], []
        for a in eqn.invars:
            avals.append(a.aval)
            ins.append(b.scalar(a.val, a.aval.dtype) if type(a) is Literal else env[a])
        b.avals_in = avals
        b.avals_out = [v.aval for v in eqn.outvars]
        b.eqn = eqn
        prim = eqn.primitive
        b.loc = location(f"{b.prefix}{eqn.ctx.path}{prim.name}", eqn.source)
        rule = prim.platform_rules.get(b.platform) if prim.platform_rules else None
        out = (rule or prim.lower)(b, *ins, **eqn.params)
        if b.avals_out and b.avals_out[0].tagged:
            out = ([b.spread(*pair) for pair in zip(out, b.avals_out, strict=True)]
                   if prim.multiple_results else b.spread(out, b.avals_out[0]))
        if prim.multiple_results:
            env.update(zip(eqn.outvars, out))
        else:
            env[eqn.outvars[0]] = out
    return [b.scalar(a.val, a.aval.dtype) if type(a) is Literal else env[a] for a in pr.outvars]


def host_value(value: Any, aval: Any) -> np.ndarray:
    """The elements that a device holds of a closed-over constant."""
    value = stored(value)
    array = lib.to_numpy(value) if isinstance(value, lib.ArrayImpl) else np.asarray(value)
    return array.astype(physical_aval(aval).dtype, copy=False)


def emit_constant(b: Builder, value: Any, aval: Any) -> Any:
    """The MLIR value of a closed-over array: a dense constant, or a broadcast scalar."""
    if aval is abstract_token:
        return b.op("stablehlo.create_token", [], None, aval)
    array, aval = host_value(value, aval), physical_aval(aval)
    if array.size > 1 and array.strides and not any(array.strides):
        return b.full(aval, array.flat[0])      # a broadcast scalar: do not write it out
    return b.constant(array, aval)
