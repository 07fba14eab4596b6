"""Lowering of a whole program: an olympuspr to a StableHLO module, one function per program in it.

`Lowering` describes the program to lower; `lower_program` does it in steps.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, NamedTuple

from ..base import config
from ..base.collector import collector_paused
from ..base.lib import mlir
from ..base.typing import Device, IrAttribute, IrModule, IrOperation, IrValue
from ..base.util import cut, module_name
from ..core.ir import ClosedOlympuspr, with_types_of
from ..core.primitive import Primitive
from ..devices.devices import device_count
from ..types.avals import Aval, memory_kind
from ..types.dim_equations import Solution, solve
from ..types.mesh import AxisType, Mesh
from ..types.sharding import NamedSharding
from ..types.symbolic import symbols
from .attributes import attr, location, module_context
from .builder import Builder, emit_function
from .context import ModuleContext, emit_header, meshes_within
from .dimensions import PLATFORM_INDEX, emit_solution, unknown_variable
from .emitter import Block
from .holds import cut_sizes, naming_devices
from .uneven import uneven_sizes

# The function of an export that takes the values of dimensions, which main computes.
_WRAPPED = "_wrapped_olympus_export_main"
# Platforms where a result may take over the buffer of an argument.
_DONATING = frozenset(("cpu", "gpu", "rocm", "tpu", "neuron"))


class Lowering(NamedTuple):
    """A program to be lowered, and where it will run.

    Attributes:
      closed: the program; its inputs are main's arguments.
      name: the name of the user's function.
      platform: "cpu", "gpu" or "tpu".
      donated: per input, whether its buffer may be reused for a result that XLA chooses.
      aliases: per input, the result that takes over its buffer, or None.
      result_paths: per output, where it is in the user's result ("result[0]['a']").
      devices: the devices that run the program, if several.
      shardings, out_shardings: per input and output a NamedSharding, or None.
      memories: per input the kind of memory, None for the one that its type says. A result takes
        over a buffer in its own kind of memory only.
      out_memories: per output the required kind of memory, or None.
      layouts, out_layouts: per input and output XLA's notation of a layout, or None for row-major.
      mesh: the ambient mesh; operations without operands are placed on it.
      rules: lowering rules by primitive, in place of the primitives' own.
      arg_names: per input, its name in messages about wrong sizes; only with symbolic sizes.
      deviceless: axis types of meshes that may have no devices; all, if it is for a platform.
      platforms: several in place of one; the module's first argument is the number of the one that
      it runs on.
      ordered: in an export, the number of ordered effects; main's first arguments and results are a
        token for each.
      hold, kernels: the options of `jit`.
    """

    closed: ClosedOlympuspr
    name: str
    platform: str
    donated: Sequence[bool] = ()
    aliases: Sequence[int | None] = ()
    result_paths: Sequence[str] = ()
    devices: tuple[Device, ...] = ()
    shardings: Sequence[NamedSharding | None] = ()
    out_shardings: Sequence[NamedSharding | None] = ()
    memories: Sequence[str | None] = ()
    out_memories: Sequence[str | None] = ()
    layouts: Sequence[str | None] = ()
    out_layouts: Sequence[str | None] = ()
    mesh: Mesh | None = None
    rules: dict[Primitive, Callable[..., Any]] | None = None
    arg_names: Sequence[str] = ()
    deviceless: Collection[AxisType] = ()
    platforms: Sequence[str] = ()
    ordered: int | None = None
    hold: str = "off"
    kernels: str | None = None     # None: by the option


def _emit_main(module: ModuleContext, closed: ClosedOlympuspr, prefix: str,
               solution: Solution | None, ordered: int | None
               ) -> tuple[IrOperation, IrOperation | None, list[IrValue]]:
    """Emit main; return it, the function that it wraps or None, and the program's results.

    In an export, main wraps a program with symbolic dimensions, whose values it computes, or with
    tokens.
    """
    if ordered is None or (solution is None and not ordered):
        main, results = emit_function(module, closed, "main", "public", prefix, solution)
        return main, None, results
    ir, loc, name = mlir.ir, location(prefix, None), module.symbols.new(_WRAPPED)
    inner, results = emit_function(module, closed, name, "public", prefix, solution, ordered,
                                   wrapped=True)
    inner.attributes["sym_visibility"] = ir.StringAttr.get("private")
    kind, count = ir.TypeAttr(inner.attributes["function_type"]).value, len(module.dimension_names)
    # main takes the wrapped function's arguments without the dimensions, which it computes.
    first = int(PLATFORM_INDEX in module.dimension_names)     # the platform's number is an argument
    ins = [*kind.inputs[:first], *kind.inputs[count:]]
    main, block = emit_header("main", "public", ins, kind.results, [loc] * len(ins), loc,
                              ir.InsertionPoint(inner))
    b = Builder(module, Block(ir.InsertionPoint(block)), "", loc)
    index, tokens, args = cut(list(block.arguments), first, ordered)
    values = {} if solution is None else emit_solution(b, solution, args).values
    given = [*index, *[values[name] for name in module.dimension_names[first:]], *tokens, *args]
    callee = {"callee": ir.FlatSymbolRefAttr.get(name)}
    out = b.ops("func.call", given, callee, list(kind.results))
    ir.Operation.create("func.return", [], list(out.results), None, None, 0, loc, b.block.ip)
    return main, inner, results


def _solution(module: ModuleContext, closed: ClosedOlympuspr, arg_names: Sequence[str]
              ) -> Solution | None:
    """The dimension variables in terms of the arguments' sizes; None if all sizes are numbers."""
    if arg_names:
        solution = solve([getattr(a, "shape", ()) for a in closed.in_avals], arg_names.__getitem__)
        module.dimension_names += sorted(solution.variables)
        module.refined = True
        return solution
    strange = set().union(*[symbols(d) for a in closed.out_avals
                            for d in getattr(a, "shape", ()) if type(d) is not int])
    if strange:
        raise unknown_variable(min(strange), None)
    return None


def _check_donation(name: str, donated: Sequence[bool], platforms: Sequence[str]) -> None:
    if any(donated) and not {*platforms} <= _DONATING:
        raise NotImplementedError(
            f"lower: {name} donates arguments, and is lowered for {', '.join(platforms)}: In "
            "multi-platform lowering either all or no lowering platforms should support donation; "
            "leave donation out, or lower for each platform.")


def _result_attrs(context: ModuleContext,
                  results: Iterable[tuple[str, NamedSharding | None, Aval, str | None]]
                  ) -> list[IrAttribute]:
    """The attributes of each result (path, sharding, aval, layout)."""
    ir, dicts = mlir.ir, []
    for (path, sharding, aval, layout), kind in zip(results, context.result_memories, strict=True):
        attributes = {}
        if layout is not None:
            attributes["mhlo.layout_mode"] = ir.StringAttr.get(layout)
        if kind is not None:
            attributes["mhlo.memory_kind"] = ir.StringAttr.get(kind)
        if path:
            attributes["olympus.result_info"] = ir.StringAttr.get(path)
        dicts.append(ir.DictAttr.get(attributes | context.places.sharding_attrs(sharding, aval)))
    return dicts


def _decide_holds(context: ModuleContext, program: Lowering) -> None:
    """Decide whether values of a program may be held or fenced, given its shardings."""
    closed, hold, symbolic = program.closed, program.hold, bool(program.arg_names)
    several = bool(program.devices) or program.mesh is not None
    platforms = [*context.platforms] or [str(context.platform)]
    on_cpu = platforms == ["cpu"]
    context.fenced_from, context.fences_by_choice = closed, "cpu" not in platforms
    if on_cpu and not (several or symbolic or context.exported):
        context.alone = closed
    holds = context.holds
    holds.hold, context.kernels = hold, program.kernels or config.kernels.value
    # With one device, nothing that is compiled here is sharded.
    if not on_cpu or context.exported or device_count("cpu") > 1:
        holds.cut_sizes = functools.cache(functools.partial(
            cut_sizes, closed, [*zip(program.shardings, closed.in_avals),
                                *zip(program.out_shardings, closed.out_avals)]))
        holds.uneven_sizes = functools.cache(lambda: uneven_sizes(
            closed, holds.cut_sizes(), len(context.places.devices)))
    if hold == "off":
        holds.unheld = 'hold is "off"'
    elif not on_cpu:
        holds.unheld = f"values are held on cpu alone, and this is for {', '.join(platforms)}"
    elif symbolic:
        holds.unheld = "sizes are symbolic"
    elif context.exported and (several or context.places.given or naming_devices(closed)
                               or any(getattr(a, "explicit", False) for a in closed.in_avals)):
        holds.unheld = "it is exported over several devices"


def _context_of(program: Lowering) -> ModuleContext:
    """A module's context, with everything that is known before any part is emitted."""
    name, platforms = program.name, program.platforms
    context = ModuleContext(None if platforms else program.platform, name, program.rules)
    if platforms:
        _check_donation(name, program.donated, platforms)
        context.platforms, context.refined = platforms, True
        # The platform's number goes to every function, like the values of dimensions.
        context.dimension_names = [PLATFORM_INDEX]
    context.places.deviceless = program.deviceless
    context.places.within = functools.partial(meshes_within, program.closed)
    context.places.given = [
        s.mesh for s in (*program.shardings, *program.out_shardings) if s is not None]
    _decide_holds(context, program)
    return context


def _take_places(context: ModuleContext, program: Lowering) -> None:
    """Take note of devices, the ambient mesh, and the memories of results."""
    places = context.places
    places.devices = program.devices
    if program.mesh is not None:
        places.given.append(program.mesh)
        places.use_devices(program.mesh.device_tuple)
        places.declare_mesh(program.mesh)       # results are named by it
    avals = program.closed.out_avals
    context.result_memories = [given or memory_kind(a) for given, a in zip(
        program.out_memories or [None] * len(avals), avals, strict=True)]


def _demands(context: ModuleContext, program: Lowering, results: Sequence[IrValue]
             ) -> tuple[list[NamedSharding | None], list[str | None]]:
    """The demanded sharding and layout of each result, or None."""
    avals, none = program.closed.out_avals, [None] * len(results)
    # Shardy forgets a constraint over another mesh than the arguments' when it is a result's.
    demanded = [s or context.places.sharding_of(a) or context.constrained.get(x) for s, a, x in zip(
        program.out_shardings or none, avals, results, strict=True)]
    context.chosen_outputs = [s is None for s in demanded]
    context.out_shardings = [s or context.constrained.get(x) for s, x in zip(
        program.out_shardings or none, results, strict=True)]
    return demanded, [given or context.laid_out.get(x) for given, x in zip(
        program.out_layouts or none, results, strict=True)]


def _arg_attrs(context: ModuleContext, program: Lowering, demanded: Sequence[NamedSharding | None],
               laid_out: Sequence[str | None]) -> list[IrAttribute]:
    """The attributes of each argument; donated ones' follow the results' demands."""
    ir, dicts = mlir.ir, []
    memories, aliases, donated = program.memories, program.aliases, program.donated
    for i, aval in enumerate(program.closed.in_avals):
        attributes = {}
        named = memory_kind(aval)
        given = (memories[i] if memories else None) or named
        alias = aliases[i] if aliases else None
        layout = program.layouts[i] if program.layouts else None
        if named is not None:
            attributes["mhlo.memory_kind"] = ir.StringAttr.get(named)
        if layout is not None:
            attributes["mhlo.layout_mode"] = ir.StringAttr.get(layout)
        sharding = program.shardings[i] if program.shardings else None
        if program.deviceless:      # nothing is placed: only types say how arguments are cut
            sharding = sharding or context.places.sharding_of(aval)
        if alias is not None:
            if given == context.result_memories[alias]:
                context.donated.append(i)
                attributes |= context.places.alias_attrs(
                    (program.ordered or 0) + alias, (layout, laid_out[alias]),
                    (sharding, demanded[alias]), aval.ndim)
        elif donated and donated[i] and given is None:
            context.donated.append(i)
            attributes["jax.buffer_donor"] = attr("true")
        attributes |= context.places.sharding_attrs(sharding, aval)
        dicts.append(ir.DictAttr.get(attributes))
    return dicts


def lower_program(program: Lowering) -> tuple[IrModule, ModuleContext]:
    """The StableHLO module of a program, with the module's context."""
    context = _context_of(program)      # sizes have the type of the caller's integers
    # To look for cycles in the MLIR values of a large program is half of the time.
    with with_types_of(program.closed.olympuspr), collector_paused():
        return _module_of(program, context)


def _module_of(program: Lowering, context: ModuleContext) -> tuple[IrModule, ModuleContext]:
    ir, closed = mlir.ir, program.closed
    with module_context():
        context.symbols.module = module = ir.Module.create()
        module.operation.attributes["sym_name"] = ir.StringAttr.get(module_name(program.name))
        # Before any part is emitted: constraints in it name meshes that the module declares.
        _take_places(context, program)
        # `finish` does the part that depends on the attributes below, too.
        solution = _solution(context, closed, program.arg_names)
        main, inner, results = _emit_main(context, closed, f"jit({program.name})/", solution,
                                          program.ordered)
        # After it: a constraint on a value that is a result says where the result is.
        demanded, laid_out = _demands(context, program, results)
        of_tokens = [attr("{olympus.token = true}")] * (program.ordered or 0)
        of_dims = [attr(f'{{olympus.global_constant = "{n}"}}') for n in context.dimension_names]
        index, own = bool(program.platforms), of_tokens + _arg_attrs(
            context, program, demanded, laid_out)
        paths = program.result_paths or [""] * len(closed.out_avals)
        returned = ir.ArrayAttr.get([*of_tokens, *_result_attrs(
            context, zip(paths, demanded, closed.out_avals, laid_out, strict=True))])
        for fn, sizes in ((main, of_dims[:index]), (inner, of_dims)):
            if fn is not None:
                fn.attributes["arg_attrs"] = ir.ArrayAttr.get(sizes + own)
                fn.attributes["res_attrs"] = returned
        context.finish()
        # A tenth of lowering; XLA does it, too.
        if context.by_others is not None or config.enable_checks.value:
            module.operation.verify()
    return module, context


def lower_part(closed: ClosedOlympuspr, name: str, platform: str, mesh: Mesh,
               devices: tuple[Device, ...]) -> bytes:
    """The bytecode of the program of one device, along all axes of a mesh of these devices."""
    context = ModuleContext(platform, name)
    with module_context():
        context.symbols.module = mlir.ir.Module.create()
        context.places.devices = devices       # first: by them the partitions are numbered
        context.places.manual = context.places.manual_over(mesh, mesh.axis_names)
        emit_function(context, closed, "main", "public", f"{name}/")
        return mlir.bytecode(context.module)
