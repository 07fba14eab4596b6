"""Programs lowered by hand, and the places where they will run, as lowering needs them.

    olympuspr_subcomp           a program's operations, where a lowering rule is
    lower_olympuspr_to_fun      a function of the module
    lower_olympuspr_to_module   a module of its own
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from ..base.lib import PyTreeRegistry, mlir
from ..base.typing import Device, IrModule, IrOperation, IrValue
from ..core.effects import Effect
from ..core.ir import ClosedOlympuspr, Olympuspr
from ..core.primitive import Primitive
from ..interpreters.passes import arrays_only
from ..lowering.attributes import tensor_type
from ..lowering.builder import INT32, Builder
from ..lowering.context import ModuleContext
from ..lowering.module import Lowering, lower_program
from ..lowering.tokens import TokenSet
from ..types.avals import Aval, ShapedArray
from ..types.mesh import AbstractMesh, Mesh
from ..types.sharding import NamedSharding
from .registration import i64_attr, ir_constant
from .tables import convert_constvars_olympuspr

# The kinds of channels between programs, as StableHLO numbers them.
DEVICE_TO_DEVICE_TYPE, SEND_TO_HOST_TYPE, RECV_FROM_HOST_TYPE = 1, 2, 3

# Values of lowering rules, and sequences of them, as trees.
ir_tree_registry = PyTreeRegistry(enable_none=False, enable_tuple=True, enable_namedtuple=False,
                                  enable_list=True, enable_dict=False)


class ConstantHandler(Protocol):
    """What `register_constant_handler` takes: a function of a constant and its type.

    >>> def handler(value, aval):
    ...     return mlir.ir_constant(value.val)
    """

    def __call__(self, val: object, aval: Aval | None) -> IrValue:
        """The MLIR value of a constant."""
        ...


@dataclass(frozen=True)
class SPMDAxisContext:
    """A mesh over which XLA cuts a program, but for axes that the program cuts itself.

    Args:
      mesh: the mesh.
      manual_axes: the names of these axes.

    >>> mlir.SPMDAxisContext(olympus.make_mesh((1,), "x")).manual_axes
    frozenset()
    """

    mesh: Mesh
    manual_axes: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ShardingContext:
    """Devices over which XLA cuts a program as shardings say.

    Args:
      num_devices: how many.
      device_assignment: which; the first ones by default.
      abstract_mesh: the mesh that the program names.

    >>> mlir.ShardingContext(1).num_devices
    1
    """

    num_devices: int
    device_assignment: tuple[Device, ...] | None = None
    abstract_mesh: AbstractMesh | None = None

    def __post_init__(self) -> None:
        devices = self.device_assignment
        if devices is not None and len(devices) != self.num_devices:
            raise ValueError(f"ShardingContext: {len(devices)} devices given for num_devices="
                             f"{self.num_devices}; a tuple of that many is required.")


AxisContext: TypeAlias = SPMDAxisContext | ShardingContext


@dataclass(frozen=True)
class LoweringParameters:
    """How programs are lowered.

    Args:
      override_lowering_rules: pairs of a primitive and its rule, in place of its own.
      global_constant_computation, for_export, export_ignore_forward_compatibility,
        hoist_constants_as_args: accepted.

    >>> mlir.LoweringParameters().for_export
    False
    """

    override_lowering_rules: tuple[tuple[Primitive, Callable[..., object]], ...] | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


class ShapePolyLoweringState:
    """The dimension variables of a program, and whether it asks which platform it runs on.

    Args:
      dim_vars: the names of the variables.
      lowering_platforms: the platforms that it is lowered for.

    >>> state = mlir.ShapePolyLoweringState(("b",), ("cpu", "gpu"))
    >>> state.uses_dim_vars, state.has_platform_index_argument
    (True, True)
    """

    def __init__(self, dim_vars: tuple[str, ...], lowering_platforms: Sequence[str] | None
                 ) -> None:
        self.dim_vars, self.uses_dim_vars = tuple(dim_vars), bool(dim_vars)
        self.has_platform_index_argument = len(lowering_platforms or ()) > 1


class LoweringResult(NamedTuple):
    """A lowered program.

    Attributes:
      module: the MLIR module.
      keepalive: objects that have to live as long as the program.
      host_callbacks: functions of the host that it calls.
      shape_poly_state: its dimension variables.

    >>> mlir.LoweringResult("module", None, [], None).host_callbacks
    []
    """

    module: IrModule
    keepalive: object
    host_callbacks: list[object]
    shape_poly_state: ShapePolyLoweringState | None


def _builder(what: str, ctx: Builder | ModuleContext) -> Builder:
    """What the lowering rule is given that runs now."""
    builder = ctx if isinstance(ctx, Builder) else getattr(ctx, "by_others", None)
    if not isinstance(builder, Builder):
        raise TypeError(f"{what}: ctx of type {type(ctx).__name__} given; the ctx that a lowering "
                        "rule receives, or its module_context, is required.")
    return builder


def _refuse(what: str, options: dict[str, object]) -> None:
    for name, value in options.items():
        if value is not None and value is not False:
            raise NotImplementedError(f"{what}: {name} given; it is accepted only as its default, "
                                      "since functions of a module are lowered for their callers; "
                                      "lower_olympuspr_to_module takes it.")


def olympuspr_subcomp(ctx: Builder | ModuleContext, olympuspr: Olympuspr, name_stack: object,
                      tokens: TokenSet, consts_for_constvars: Sequence[IrValue], *args: IrValue,
                      dim_var_values: Sequence[IrValue], const_lowering: object,
                      outer_traceback: object) -> tuple[list[IrValue], TokenSet]:
    """Emit the operations of a program where a lowering rule is.

    Args:
      ctx: the rule's context, or its module_context.
      olympuspr: an open program.
      name_stack: accepted: operations are named within the equation that is lowered.
      tokens: `ctx.tokens_in`.
      consts_for_constvars: values of its constvars.
      *args: values of its inputs.
      dim_var_values, const_lowering, outer_traceback: accepted.
    Returns: The values of its outputs, and the tokens after its effects.

    >>> from olympus.extend.core import Primitive
    >>> program = olympus.make_olympuspr(lambda x: x * x + 1)(1.0).olympuspr
    >>> p = Primitive("written_out")
    >>> _ = p.def_abstract_eval(lambda x: x)
    >>> def rule(ctx, x):
    ...     return mlir.olympuspr_subcomp(
    ...         ctx.module_context, program, ctx.name_stack, ctx.tokens_in, (), x,
    ...         dim_var_values=ctx.dim_var_values, const_lowering=ctx.const_lowering,
    ...         outer_traceback=None)[0]
    >>> mlir.register_lowering(p, rule)
    >>> print(olympus.jit(p.bind)(3.0))
    10.0
    """
    b = _builder("olympuspr_subcomp", ctx)
    closed = arrays_only(ClosedOlympuspr(convert_constvars_olympuspr(olympuspr)))
    outs = b.call_inline(closed, [*consts_for_constvars, *args])
    return outs, TokenSet(dict.fromkeys(tokens.effects(), b.take_token()) if len(tokens) else None)


def lower_olympuspr_to_fun(
        ctx: Builder | ModuleContext, name: str, olympuspr: ClosedOlympuspr,
        effects: Sequence[Effect], *, num_const_args: int, main_function: bool = False,
        replicated_args: Sequence[bool] | None = None, in_avals: Sequence[Aval],
        out_avals: Sequence[Aval] | None = None, arg_shardings: Sequence[object] | None = None,
        result_shardings: Sequence[object] | None = None, use_sharding_annotations: bool = True,
        input_output_aliases: Sequence[int | None] | None = None,
        xla_donated_args: Sequence[bool] | None = None, arg_names: Sequence[str] | None = None,
        result_names: Sequence[str] | None = None,
        arg_memory_kinds: Sequence[str | None] | None = None,
        result_memory_kinds: Sequence[str | None] | None = None,
        arg_layouts: Sequence[object] | None = None, result_layouts: Sequence[object] | None = None,
        propagated_out_mem_kinds: Sequence[str | None] | None = None, detached: bool = False
        ) -> IrOperation:
    """The private function of the module that computes a program; one for equal programs.

    Args:
      ctx: a lowering rule's context, or its module_context.
      name: its name, if that is free.
      olympuspr: the program.
      effects: the ordered effects whose tokens it would take; there may be none.
      num_const_args, in_avals, out_avals, use_sharding_annotations, arg_names, result_names:
        accepted: the program says them.
      main_function, replicated_args, arg_shardings, result_shardings, input_output_aliases,
        xla_donated_args, arg_memory_kinds, result_memory_kinds, arg_layouts, result_layouts,
        propagated_out_mem_kinds, detached: refused, if given.

    >>> from olympus.extend.core import Primitive
    >>> program = olympus.make_olympuspr(lambda x: x * x)(1.0)
    >>> p, found = Primitive("as_function"), []
    >>> _ = p.def_abstract_eval(lambda x: x)
    >>> def rule(ctx, x):
    ...     fun = mlir.lower_olympuspr_to_fun(ctx.module_context, "square", program, [],
    ...                                       num_const_args=0, in_avals=program.in_avals)
    ...     found.append(mlir.ir.StringAttr(fun.attributes["sym_name"]).value)
    ...     return mlir.core_call_lowering(ctx, x, name="square", call_olympuspr=program)
    >>> mlir.register_lowering(p, rule)
    >>> print(olympus.jit(p.bind)(3.0), found)
    9.0 ['square']
    """
    _refuse("lower_olympuspr_to_fun", {
        "main_function": main_function, "replicated_args": replicated_args,
        "arg_shardings": arg_shardings, "result_shardings": result_shardings,
        "input_output_aliases": input_output_aliases, "xla_donated_args": xla_donated_args,
        "arg_memory_kinds": arg_memory_kinds, "result_memory_kinds": result_memory_kinds,
        "arg_layouts": arg_layouts, "result_layouts": result_layouts,
        "propagated_out_mem_kinds": propagated_out_mem_kinds, "detached": detached,
        "effects": [*effects] or None})
    b = _builder("lower_olympuspr_to_fun", ctx)
    symbol, _ = b.function(arrays_only(olympuspr), name)
    return next(op for op in b.module.module.body.operations
                if mlir.ir.StringAttr(op.attributes["sym_name"]).value == symbol)


def lower_olympuspr_to_module(
        module_name: str, olympuspr: ClosedOlympuspr, *, num_const_args: int,
        in_avals: Sequence[Aval], out_avals: Sequence[Aval] | None = None,
        ordered_effects: Sequence[Effect], platforms: Sequence[str], backend: object,
        axis_context: AxisContext, donated_args: Sequence[bool],
        replicated_args: Sequence[bool] | None = None,
        arg_shardings: Sequence[NamedSharding | None] | None = None,
        result_shardings: Sequence[NamedSharding | None] | None = None,
        in_layouts: Sequence[object] | None = None, out_layouts: Sequence[object] | None = None,
        arg_names: Sequence[str] | None = None, result_names: Sequence[str] | None = None,
        num_partitions: int = 1, all_default_mem_kind: bool = True,
        input_output_aliases: Sequence[int | None] | None = None,
        propagated_out_mem_kinds: Sequence[str | None] | None = None,
        lowering_parameters: LoweringParameters) -> LoweringResult:
    """A program as a module of its own, whose function `main` computes it.

    Args:
      module_name: its name.
      olympuspr: a closed program.
      num_const_args, in_avals, out_avals, backend, arg_names, num_partitions,
        all_default_mem_kind: accepted: the program says them.
      ordered_effects: accepted: ordered effects enter and leave as arrays without elements.
      platforms: the platforms to lower for, "cpu", "gpu" or "tpu"; with several, main's first
        argument is the number of the one that it runs on.
      axis_context: the devices that it is cut over, if there are several.
      donated_args: per input, whether its buffer may be reused.
      arg_shardings, result_shardings: per input and output a NamedSharding, or None.
      result_names: per output, where it is in the user's result.
      input_output_aliases: per input, the result that takes over its buffer, or None.
      replicated_args, in_layouts, out_layouts, propagated_out_mem_kinds: refused, if given.
      lowering_parameters: how it is lowered.

    >>> program = olympus.make_olympuspr(lambda x: x * x)(1.0)
    >>> found = mlir.lower_olympuspr_to_module(
    ...     "square", program, num_const_args=0, in_avals=program.in_avals, ordered_effects=[],
    ...     platforms=("cpu",), backend=None, axis_context=mlir.ShardingContext(1),
    ...     donated_args=[False], lowering_parameters=mlir.LoweringParameters())
    >>> "stablehlo.multiply" in mlir.module_to_string(found.module)
    True
    """
    _refuse("lower_olympuspr_to_module", {
        "replicated_args": replicated_args, "in_layouts": in_layouts, "out_layouts": out_layouts,
        "propagated_out_mem_kinds": propagated_out_mem_kinds})
    closed = arrays_only(olympuspr)
    mesh = getattr(axis_context, "mesh", None)
    several = () if len(platforms) < 2 else tuple(platforms)
    module, context = lower_program(Lowering(
        closed, module_name, platforms[0], donated=tuple(donated_args), platforms=several,
        aliases=tuple(input_output_aliases or ()), result_paths=tuple(result_names or ()),
        devices=(mesh.device_tuple if isinstance(mesh, Mesh) else
                 getattr(axis_context, "device_assignment", None) or ()),
        shardings=tuple(arg_shardings or ()), out_shardings=tuple(result_shardings or ()),
        mesh=mesh, rules=dict(lowering_parameters.override_lowering_rules or ()) or None))
    return LoweringResult(module, None, [*context.host_callbacks],
                          ShapePolyLoweringState((), platforms))


def shape_tensor(ctx: object, sizes: Sequence[int | IrValue]) -> IrValue:
    """An MLIR tensor of 32-bit integers, of sizes known and unknown.

    Args:
      ctx: accepted.
      sizes: ints, and MLIR values of integers without axes.

    >>> from olympus.extend.core import Primitive
    >>> p = Primitive("sizes")
    >>> _ = p.def_abstract_eval(lambda n: olympus.core.ShapedArray((2,), "int32"))
    >>> mlir.register_lowering(p, lambda ctx, n: [mlir.shape_tensor(ctx, [2, n])])
    >>> print(olympus.jit(p.bind)(3))
    [2 3]
    """
    create = mlir.ir.Operation.create
    kinds = [tensor_type(ShapedArray(shape, INT32)) for shape in ((), (1,), (len(sizes),))]
    if all(isinstance(n, int) for n in sizes):
        return ir_constant(np.asarray(sizes, np.int32))
    rows = []
    for n in sizes:
        if isinstance(n, int):
            rows.append(ir_constant(np.array([n], np.int32)))
            continue
        if n.type != kinds[0]:
            n = create("stablehlo.convert", [kinds[0]], [n]).result
        rows.append(create("stablehlo.reshape", [kinds[1]], [n]).result)
    return create("stablehlo.concatenate", [kinds[2]], rows, {"dimension": i64_attr(0)}).result
