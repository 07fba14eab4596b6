"""Lowering of a whole program: an olympuspr to a StableHLO module, one function per program in it.

`ModuleContext` is what the functions of one module share: names, meshes and devices, callbacks.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from ..base import lib
from ..base.lib import mlir
from ..core.introspection import subolympusprs
from ..core.ir import ClosedOlympuspr, Olympuspr
from ..types.avals import ShapedArray, abstract_token, physical_aval
from ..types.mesh import Mesh, current_mesh
from ..types.sharding import NamedSharding, PartitionSpec, axes_of, of_mesh
from .attributes import attr, location, module_context, tensor_type
from .builder import Block, Builder, lower_equations

__all__ = ["Interface", "ModuleContext", "lower_program"]


class Interface(NamedTuple):
    """What is known of a lowered program besides its code."""

    name: str
    devices: tuple[Any, ...]            # that shardings in it name
    meshes: tuple[Mesh, ...]
    memories: tuple[str | None, ...]    # of results
    host_callbacks: tuple[lib.HostFunction, ...]
    all_reused: bool                    # whether each donated buffer is taken over by a result

    def place(self, placement: Any) -> Any:
        """Where the program runs, given where its arguments are."""
        devices, committed = placement.devices, placement.committed
        if not self.devices or (committed and devices == self.devices):
            return placement
        if committed and set(devices) != set(self.devices):
            raise ValueError(f"jit: an argument of {self.name} is committed to {devices}, and "
                             f"shardings in the program name {self.devices}; one set of devices is "
                             "required; move the argument with device_put.")
        return placement._replace(devices=self.devices, committed=True)


class ModuleContext:
    """What all functions of one module share."""

    __slots__ = ("platform", "module", "symbols", "functions", "host_callbacks", "name",
                 "written", "depth", "uses", "devices", "meshes", "chosen_outputs",
                 "host_calls", "memories", "result_memories", "all_reused", "given")

    def __init__(self, platform: str, name: str) -> None:
        self.platform, self.name = platform, name
        self.module: Any = None
        self.symbols: dict[str, int] = {"main": 0}
        self.functions: dict[Any, tuple[str, list[Any], ClosedOlympuspr]] = {}
        self.host_callbacks: list[lib.HostFunction] = []
        self.written = 0    # bytes of the constants in the module
        self.host_calls: list[Any] = []     # operations that one device must make
        self.memories: dict[Any, str] = {}      # values put into another memory than the devices'
        self.result_memories: dict[str, list[str | None]] = {"main": []}    # by function
        self.depth = 0      # how many calls lead to what is emitted now
        self.uses: dict[int, int] = {}      # calls by program, of those below `DEEPEST`
        self.devices: tuple[Any, ...] = ()      # those that shardings in the program name
        self.meshes: dict[Mesh, str] = {}       # and the meshes, with the names in the module
        self.given: list[Mesh] = []     # meshes of arguments and demanded results
        self.chosen_outputs: list[bool] = []    # whether XLA chooses the sharding
        self.all_reused = True      # whether each donated buffer is taken over by a result

    def called_once(self, pr: Olympuspr) -> bool:
        """Whether one equation calls the program, as far as the present function sees."""
        # Each program below is entered when it is first counted, so that the count is linear,
        # though paths through shared programs may be exponentially many.
        if id(pr) not in self.uses:
            pending = [pr]
            self.uses[id(pr)] = 1
            while pending:
                for sub in subolympusprs(pending.pop()):
                    self.uses[id(sub)] = self.uses.get(id(sub), 0) + 1
                    if self.uses[id(sub)] == 1:
                        pending.append(sub)
        return self.uses[id(pr)] == 1

    def use_devices(self, devices: tuple[Any, ...]) -> None:
        """Take note of the devices that a sharding names: all must name the same."""
        if self.devices and set(self.devices) != set(devices):
            raise ValueError(f"jit: shardings in {self.name} name the devices {self.devices} and "
                             f"{devices}; a program runs on one set of devices; use one mesh.")
        self.devices = self.devices or devices

    def sharding_attrs(self, sharding: NamedSharding | None, aval: Any) -> dict[str, Any]:
        """What Shardy is told of a value that is spread so; nothing where there is one device."""
        if sharding is None:
            return {}
        mesh: Any = sharding.mesh       # with devices: a program that runs is lowered
        # The devices first: a mesh's ids are places among them. Both are noted even where one
        # device leaves nothing to say, because the program's results are named by its meshes.
        self.use_devices(mesh.device_tuple)
        symbol = self._mesh_symbol(mesh)
        if mesh.size == 1:
            return {}
        ndim = physical_aval(aval).ndim
        entries = [*sharding.spec] + [None] * (ndim - len(sharding.spec))
        dims = ", ".join(map(_dimension, entries))
        return {"sdy.sharding": attr(f"#sdy.sharding<@{symbol}, [{dims}]>")}

    def sharding_of(self, aval: Any) -> NamedSharding | None:
        """How a value is spread over devices, if its type says it."""
        if not (isinstance(aval, ShapedArray) and aval.explicit):
            return None
        abstract = aval.sharding.mesh
        for mesh in (*self.given, *self.meshes, current_mesh()):
            if mesh is not None and mesh.shape_tuple == abstract.shape_tuple:
                return of_mesh(aval.sharding, mesh)
        raise ValueError(f"{self.name}: a value is of type {aval} over {abstract}, and nothing "
                         "names its devices; an argument on such a mesh is required, or that mesh "
                         "around (olympus.set_mesh).")

    def type_attrs(self, aval: Any) -> dict[str, Any]:
        """What Shardy is told of a value by its type."""
        return self.sharding_attrs(self.sharding_of(aval), aval)

    def _mesh_symbol(self, mesh: Mesh) -> str:
        """The name under which the module declares a mesh."""
        symbol = self.meshes.get(mesh)
        if symbol is None:
            axes = ", ".join(f"{_quoted(n)}={size}" for n, size in mesh.shape_tuple)
            ids = ("" if mesh.device_tuple == self.devices else
                   f", device_ids={[self.devices.index(d) for d in mesh.device_tuple]}")
            symbol = self.meshes[mesh] = self._declare("mesh", f"#sdy.mesh<[{axes}]{ids}>")
        return symbol

    def _declare(self, name: str, mesh: str) -> str:
        ir, symbol = mlir.ir, self.symbol(name)
        ir.Operation.create(
            "sdy.mesh", [], [], {"sym_name": ir.StringAttr.get(symbol), "mesh": attr(mesh)}, None,
            0, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(self.module.body))
        return symbol

    def finish(self) -> None:
        """Say what is known at the end only: how many devices there are, what calls the host."""
        for what, count in (("mhlo.num_partitions", len(self.devices) or 1),
                            ("mhlo.num_replicas", 1)):
            self.module.operation.attributes[what] = attr(f"{count} : i32")
        if self.host_calls and len(self.devices) > 1:
            one = self._declare("maximal_mesh", "#sdy.mesh<[], device_ids=[0]>")
            every = self._declare("every_device", f'#sdy.mesh<["all"={len(self.devices)}]>')
            for op in self.host_calls:
                values = ", ".join([f"<@{one}, []>"] * max(len(op.results), 1))
                op.attributes["sdy.sharding"] = attr(f"#sdy.sharding_per_value<[{values}]>")
                self._copy_to_every_device(op, every)

    def _copy_to_every_device(self, op: Any, mesh: str) -> None:
        """Else a result of the program may be whole on one device and undefined on the others."""
        ir = mlir.ir
        for x in op.results:
            if isinstance(x.type, ir.RankedTensorType):     # no token
                dims = ", ".join(["{}"] * x.type.rank)
                copied = ir.Operation.create(
                    "sdy.sharding_constraint", [x.type], [x],
                    {"sharding": attr(f"#sdy.sharding<@{mesh}, [{dims}]>")}, None, 0, op.location,
                    ir.InsertionPoint.after(op))
                x.replace_all_uses_except(copied.result, copied)

    @property
    def interface(self) -> Interface:
        """What is known of the program besides its code, once it is lowered."""
        return Interface(self.name, self.devices, tuple(self.meshes),
                         tuple(self.result_memories["main"]), tuple(self.host_callbacks),
                         self.all_reused)

    def symbol(self, name: str) -> str:
        """A function name that the module does not have yet: name, name_0, name_1 …"""
        name = name.replace("<", "_").replace(">", "_") or "fn"
        count = self.symbols.get(name)
        self.symbols[name] = 0 if count is None else count + 1
        return name if count is None else self.symbol(f"{name}_{count}")

    def function(self, closed: ClosedOlympuspr, name: str) -> tuple[str, list[Any]]:
        """The private function of a program, emitted once: its symbol and its result types."""
        key = (id(closed.olympuspr), tuple(map(id, closed.consts)))
        found = self.functions.get(key)
        if found is None:
            symbol = self.symbol(name)
            self.depth += 1
            emit_function(self, closed, symbol, "private", "")  # XLA adds its callers'
            self.depth -= 1
            # The program stays, so that no other one gets its id.
            found = symbol, [tensor_type(a) for a in closed.out_avals], closed
            self.functions[key] = found
        return found[:2]


def _quoted(name: Any) -> str:
    return json.dumps(str(name))


def _dimension(entry: Any) -> str:
    """The axes of the mesh that cut one axis of an array; "?" leaves it to XLA."""
    if entry is PartitionSpec.UNCONSTRAINED:
        return "{?}"
    return "{" + ", ".join(map(_quoted, axes_of(entry))) + "}"


def _storage(aval: Any) -> Any:
    """The aval of what stands for a value in arguments and results of a whole program."""
    return physical_aval(aval) if aval is abstract_token else aval


def emit_function(module: ModuleContext, closed: ClosedOlympuspr, symbol: str, visibility: str,
                  prefix: str) -> Any:
    """Emit a program as a function of the module and return the `func.func`.

    Tokens enter and leave a public function as arrays without elements.
    """
    ir, func = mlir.ir, mlir.func
    tokens = visibility == "public"
    ins = [tensor_type(_storage(a) if tokens else a) for a in closed.in_avals]
    outs = [tensor_type(_storage(a) if tokens else a) for a in closed.out_avals]
    loc = location(prefix, None)
    with loc:
        fn = func.FuncOp(symbol, ir.FunctionType.get(ins, outs),
                         ip=ir.InsertionPoint(module.module.body))
        fn.attributes["sym_visibility"] = ir.StringAttr.get(visibility)
        names = closed.olympuspr.debug_info.arg_names
        locs = [ir.Location.name(n, childLoc=loc) for n in names] if len(names) == len(ins) else \
            [loc] * len(ins)
        block = fn.add_entry_block(locs)
    b = Builder(module, Block(ir.InsertionPoint(block)), prefix, loc)
    args = list(block.arguments)
    if tokens:
        args = [b.op("stablehlo.create_token", [], None, a) if a is abstract_token else x
                for x, a in zip(args, closed.in_avals)]
    results = lower_equations(b, closed, args)
    if tokens:
        results = [b.full(_storage(a), False) if a is abstract_token else x
                   for x, a in zip(results, closed.out_avals)]
    module.result_memories[symbol] = [module.memories.get(x) for x in results]
    ir.Operation.create("func.return", [], results, None, None, 0, loc, b.block.ip)
    return fn


def lower_program(closed: ClosedOlympuspr, name: str, platform: str, *,
                  donated: Sequence[bool] = (), aliases: Sequence[int | None] = (),
                  result_paths: Sequence[str] = (), devices: tuple[Any, ...] = (),
                  shardings: Sequence[Any] = (), out_shardings: Sequence[Any] = (),
                  memories: Sequence[str | None] = ()) -> tuple[Any, ModuleContext]:
    """The verified StableHLO module of a program, with the module's context.

    Args:
      closed: the program; its inputs are main's arguments.
      name: what the user's function is called.
      platform: "cpu", "gpu" or "tpu".
      donated: per input, whether its buffer may be reused for any result.
      aliases: per input, the result that takes over its buffer, or None.
      result_paths: per output, where it is in the user's result ("result[0]['a']").
      devices: what the program runs on, if several devices.
      shardings, out_shardings: per input and output a NamedSharding, or None.
      memories: per input the kind of memory, None for the devices' own. A result takes over a
        buffer in its own kind of memory only.
    """
    ir = mlir.ir
    context = ModuleContext(platform, name)
    context.all_reused = not any(d and a is None for d, a in zip(donated, aliases))
    context.given = [s.mesh for s in (*shardings, *out_shardings) if s is not None]
    with module_context():
        context.module = module = ir.Module.create()
        module.operation.attributes["sym_name"] = ir.StringAttr.get(
            "jit_" + name.replace("<", "_").replace(">", "_"))
        context.devices = devices
        # First of all: in which memory results are, which the attributes below ask for, is known
        # once the equations are emitted. What depends on those attributes, too, `finish` does.
        main = emit_function(context, closed, "main", "public", f"jit({name})/")
        demanded = out_shardings or [None] * len(closed.out_avals)
        demanded = [s or context.sharding_of(a)
                    for s, a in zip(demanded, closed.out_avals, strict=True)]
        context.chosen_outputs = [s is None for s in demanded]
        arg_attrs = []
        for i in range(len(closed.in_avals)):
            attributes = {}
            given = memories[i] if memories else None
            alias = aliases[i] if aliases else None
            if alias is not None:
                if given == context.result_memories["main"][alias]:
                    attributes["tf.aliasing_output"] = attr(f"{alias} : i32")
                else:
                    context.all_reused = False
            elif donated and donated[i] and given is None:
                attributes["jax.buffer_donor"] = attr("true")
            if shardings:
                attributes |= context.sharding_attrs(shardings[i], closed.in_avals[i])
            arg_attrs.append(ir.DictAttr.get(attributes))
        main.arg_attrs = ir.ArrayAttr.get(arg_attrs)
        result_attrs = []
        for path, s, aval, kind in zip(list(result_paths) or [""] * len(closed.out_avals),
                                       demanded, closed.out_avals,
                                       context.result_memories["main"], strict=True):
            attributes = {}
            if kind is not None:
                attributes["mhlo.memory_kind"] = ir.StringAttr.get(kind)
            if path:
                attributes["olympus.result_info"] = ir.StringAttr.get(path)
            result_attrs.append(ir.DictAttr.get(attributes | context.sharding_attrs(s, aval)))
        main.result_attrs = ir.ArrayAttr.get(result_attrs)
        context.finish()
        module.operation.verify()
    return module, context
