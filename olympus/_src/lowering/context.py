"""State shared by a module's functions: names, meshes, devices, callbacks, held values."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base import lib
from ..base.lib import mlir
from ..base.logs import LOGGER
from ..base.source import CALLERS, Source, summarize
from ..base.typing import (
    Array, Device, IrAttribute, IrBlock, IrModule, IrOperation, IrType, IrValue, R,
)
from ..base.util import lazy_imports
from ..core.identity import Firsts
from ..core.ir import ClosedOlympuspr, Olympuspr, OlympusprEqn, Var, variables
from ..core.primitive import Primitive, subolympusprs
from ..core.staging import stage
from ..devices.devices import incompatible
from ..types.avals import Aval, ShapedArray, physical_aval, scalar_aval
from ..types.mesh import AbstractMesh, AxisType, Mesh, current_mesh, mesh_of
from ..types.sharding import NamedSharding, PartitionSpec, Sharding, axes_of, of_mesh
from .attributes import attr, location, quoted_name
from .holds import Holds, naming_devices, read_apart
from .manual import ManualAxes
from .nest import LOADABLE, Nest
from .spreading import named

if TYPE_CHECKING:
    from ..core.kernels import Taken
    from .fence_plan import Fences
    from .hold_report import HoldReport
    from .kernel_report import KernelReport

with lazy_imports(__name__):       # reports are made when a user asks for them
    from . import hold_report as _reports, in_place as _in_place, kernel_report as _kernel_reports


class ForeignCall(NamedTuple):
    """A call of a foreign function in a module, for looking up its target and for error messages.

    Attributes:
      target: the name by which the function is registered.
      version: `lib.TYPED`, or `lib.UNTYPED` for XLA's earlier API.
      attributes: for each attribute its name, and its dtype or kind of value.
      operands, results: their types.
      where: the user's line; "" for a call outside of any program.
    """

    target: str
    version: int
    attributes: tuple[tuple[str, str], ...]
    operands: tuple[str, ...]
    results: tuple[str, ...]
    where: str


class Interface(NamedTuple):
    """The interface of a lowered program: everything but its code."""

    name: str
    devices: tuple[Any, ...]            # the devices of shardings in the program
    meshes: tuple[Mesh, ...]
    memories: tuple[str | None, ...]    # the results' kinds of memory
    host_callbacks: tuple[lib.HostFunction, ...]
    out_shardings: tuple[NamedSharding | None, ...] = ()    # required shardings of results
    donated: tuple[int, ...] = ()       # arguments whose buffers results may take over
    foreign: tuple[ForeignCall, ...] = ()       # their targets must be registered

    def over(self, devices: tuple[Device, ...]) -> Interface:
        """The interface with meshes of these devices, for a program lowered without devices."""
        return self._replace(meshes=tuple([mesh_of(m, devices) for m in self.meshes]),
                             out_shardings=concrete(self.out_shardings, devices))

    def place(self, placement: Any) -> Any:
        """The placement of the program, from the placement of its arguments."""
        devices, committed = placement.devices, placement.committed
        if not self.devices or (committed and devices == self.devices):
            return placement
        if committed and set(devices) != set(self.devices):
            raise incompatible(f"an argument of {self.name}", devices,
                               "sharding_constraint inside jit", self.devices)
        return placement._replace(devices=self.devices, committed=True)


def concrete(shardings: Sequence[NamedSharding | None], devices: tuple[Device, ...]
             ) -> tuple[NamedSharding | None, ...]:
    return tuple([s and s.update(mesh=mesh_of(s.mesh, devices)) for s in shardings])


class Calls:
    """The calls of a module to outside functions, except for `host_callbacks`."""

    __slots__ = ("host", "foreign", "inspected", "hooks", "failures")

    def __init__(self) -> None:
        self.host: list[Any] = []       # calls that one device makes
        self.foreign: dict[Hashable, ForeignCall] = {}      # distinct ones, in order
        # Functions that XLA's partitioner calls while it compiles, and their errors.
        self.inspected: list[tuple[Any, Callable[[Any], None], int]] = []
        self.hooks: list[Any] = []
        self.failures: list[BaseException] = []

    def note(self, target: str, version: int, attributes: tuple[tuple[str, str], ...],
             operands: Sequence[Aval], results: Sequence[Aval], source: Source | None,
             within: str = "") -> None:
        """Note a call of a foreign function; `within` names the export that makes it, or is ""."""
        key = target, attributes, (*operands,), (*results,), source
        if key not in self.foreign:
            where = "" if source in (None, CALLERS) else summarize(source)
            self.foreign[key] = ForeignCall(
                target, version, attributes, tuple(map(str, operands)), tuple(map(str, results)),
                f"{within}{where}")

    def hook(self, call: Callable[..., R]) -> Callable[..., R]:
        """A wrapper of `call` for XLA to call during compilation; it keeps `call`'s exception."""
        def called(*args: object) -> R:
            try:
                return call(*args)
            except BaseException as error:
                self.failures.append(error)
                raise

        self.hooks.append(called)
        return called


class Symbols:
    """The MLIR module, and the names of its functions and meshes."""

    __slots__ = ("module", "taken")

    def __init__(self) -> None:
        self.module: Any = None
        self.taken: dict[str, int] = {"main": 0}

    def new(self, name: str) -> str:
        """A new name in the module: name, name_0, name_1 …"""
        name = name.replace("<", "_").replace(">", "_") or "fn"
        count = self.taken.get(name)
        self.taken[name] = 0 if count is None else count + 1
        return name if count is None else self.new(f"{name}_{count}")


class Places:
    """The devices and meshes of a module, and the shardings of values over them."""

    __slots__ = ("name", "symbols", "devices", "reordered", "meshes", "given", "deviceless",
                 "parts", "manual", "within")

    def __init__(self, name: str, symbols: Symbols) -> None:
        self.name, self.symbols = name, symbols
        self.devices: tuple[Any, ...] = ()      # the devices of shardings in the program
        self.reordered = False      # whether shardings may have them in different orders
        self.meshes: dict[Any, str] = {}       # mesh -> its symbol in the module
        self.given: list[Any] = []     # meshes of arguments and of required result shardings
        #: The meshes of all equations of the program, also of those that are not lowered yet.
        self.within: Callable[[], Sequence[Mesh]] = tuple
        self.deviceless: Collection[AxisType] = ()      # `Lowering.deviceless`
        self.parts = 1      # the number of devices of a mesh without devices
        self.manual: ManualAxes | None = None   # the manual axes of the emitted code

    @property
    def apart(self) -> bool:
        """Whether the emitted operations are one device's, on its own parts."""
        return self.manual is not None and self.manual.all_manual

    @property
    def sharing(self) -> int:
        """How many devices may share the emitted values; 1 if each has its own."""
        return 1 if self.apart else len(self.devices) or self.parts

    @property
    def sharing_an_axis(self) -> int:
        """The least common multiple of the numbers of devices along the meshes' axes."""
        sizes = [n for mesh in (*self.given, *self.within(), *self.meshes) for n in mesh.axis_sizes]
        return self.sharing if self.apart or not sizes else math.lcm(*sizes)

    def use_devices(self, devices: tuple[Device, ...]) -> None:
        """Note the devices of a sharding; all shardings must have the same ones in one order."""
        if self.devices and self.devices != devices and not (
                self.reordered and set(self.devices) == set(devices)):
            raise incompatible(f"shardings in {self.name}", self.devices, "others", devices)
        self.devices = self.devices or devices

    def _use_mesh(self, mesh: Mesh | AbstractMesh) -> str:
        """Note a mesh, and its devices if it has any; return its symbol in the module."""
        if isinstance(mesh, Mesh):
            self.use_devices(mesh.device_tuple)
        else:
            self.parts = mesh.size
        return self.declare_mesh(mesh)

    def sharding_attrs(self, sharding: NamedSharding | None, aval: Aval) -> dict[str, IrAttribute]:
        """Shardy's attributes for a sharded value; none on one device."""
        if sharding is None:
            return {}
        mesh = self.mesh_of(sharding.mesh)
        # The devices first: a mesh's ids are indices into them. One device is noted, too, because
        # the program's results are named by its meshes.
        symbol = self._use_mesh(mesh)
        if mesh.size == 1:
            return {}
        manual = () if self.manual is None else self.manual.names
        cut = _shardy(symbol, mesh, sharding.spec, physical_aval(aval).ndim, manual=manual)
        return {"sdy.sharding": attr(f"#sdy.sharding{cut}")}

    def mesh_of(self, mesh: Mesh | AbstractMesh) -> Mesh | AbstractMesh:
        """A mesh with devices in place of an abstract one: an argument's, a type's, the ambient."""
        if isinstance(mesh, Mesh):
            return mesh
        within = () if self.manual is None else (self.manual.mesh,)
        candidates = [m for m in (*within, *self.given, *self.meshes, current_mesh())
                      if m is not None]
        for candidate in candidates:
            if candidate.shape_tuple == mesh.shape_tuple and (
                    isinstance(candidate, Mesh) or self._may_lack_devices(candidate)):
                return candidate
        for candidate in [*candidates, *self.within()]:     # one of other axes, for its devices
            if isinstance(candidate, Mesh) and candidate.size == mesh.size:
                return mesh_of(mesh, candidate.device_tuple)
        if self._may_lack_devices(mesh):
            return mesh
        raise ValueError(f"{self.name}: a part of the program is over {mesh}, and nothing names "
                         "its devices; an argument on such a mesh is required, or that mesh around "
                         "(olympus.set_mesh). Passing lowering_platforms to trace(…).lower is "
                         "required to lower it without.")

    def _may_lack_devices(self, mesh: AbstractMesh) -> bool:
        return bool(self.deviceless) and {*mesh.axis_types} <= {*self.deviceless, AxisType.Manual}

    def manual_over(self, mesh: Mesh | AbstractMesh, names: Sequence[object]) -> ManualAxes:
        """The manual axes after `names` of a mesh become manual."""
        if self.manual is not None:
            names = [*self.manual.names, *names]
        self._use_mesh(mesh)
        ids = np.arange(mesh.size)
        if isinstance(mesh, Mesh):
            place = {d: i for i, d in enumerate(self.devices)}
            ids = np.array([place[d] for d in mesh.device_tuple], np.int64)
        return ManualAxes(mesh, tuple([n for n in mesh.axis_names if n in names]),
                          ids.reshape(mesh.axis_sizes))

    def part_shardings(self, manual: ManualAxes, specs: Sequence[PartitionSpec],
                       types: Sequence[IrType]) -> IrAttribute:
        """The shardings of the operands or results of a manual computation.

        XLA may shard them further along axes that are not manual.
        """
        symbol = self.meshes[manual.mesh]
        cuts = ", ".join([
            _shardy(symbol, manual.mesh, spec,
                    kind.rank if isinstance(kind, mlir.ir.RankedTensorType) else 0,
                    open=not manual.all_manual)
            for spec, kind in zip(specs, types, strict=True)])
        return attr(f"#sdy.sharding_per_value<[{cuts}]>")

    def sharding_of(self, aval: Aval) -> NamedSharding | None:
        """The sharding of a value, if its type determines it."""
        if not (isinstance(aval, ShapedArray) and aval.explicit):
            return None
        return of_mesh(aval.sharding, self.mesh_of(aval.sharding.mesh))

    def alias_attrs(self, alias: int, laid_out: tuple[str | None, str | None],
                    shardings: tuple[NamedSharding | None, NamedSharding | None], ndim: int
                    ) -> dict[str, IrAttribute]:
        """XLA's attributes for an argument whose buffer the result `alias` may take over.

        `laid_out` and `shardings` are pairs for argument and result.
        """
        several = len(self.devices) > 1 or self.parts > 1
        if laid_out[0] != laid_out[1] or several and not _cut_alike(*shardings, ndim):
            # XLA decides whether the result's parts have the same size.
            return {"jax.buffer_donor": attr("true")}
        return {"tf.aliasing_output": attr(f"{alias} : i32")}

    def type_attrs(self, aval: Aval) -> dict[str, IrAttribute]:
        """Shardy's attributes for a value of this type."""
        return self.sharding_attrs(self.sharding_of(aval), aval)

    def is_unreduced(self, aval: Aval) -> bool:
        """Whether a value is an unreduced sum to Shardy."""
        sharding = self.sharding_of(aval)
        return sharding is not None and bool(sharding.spec.unreduced)

    def declare_mesh(self, mesh: Mesh | AbstractMesh) -> str:
        """Declare a mesh in the module, if it is new; return its symbol."""
        symbol = self.meshes.get(mesh) or next(     # axis types mean nothing to XLA
            (symbol for known, symbol in self.meshes.items()
             if known.shape_tuple == mesh.shape_tuple and _devices(known) == _devices(mesh)), None)
        if symbol is None:
            axes = ", ".join(f"{quoted_name(n)}={size}" for n, size in mesh.shape_tuple)
            devices = _devices(mesh)
            ids = ("" if devices in (None, self.devices) else
                   f", device_ids={[self.devices.index(d) for d in devices]}")
            symbol = self.meshes[mesh] = self.declare("mesh", f"#sdy.mesh<[{axes}]{ids}>")
        return symbol

    def declare(self, name: str, mesh: str) -> str:
        ir, symbol = mlir.ir, self.symbols.new(name)
        ir.Operation.create(
            "sdy.mesh", [], [], {"sym_name": ir.StringAttr.get(symbol), "mesh": attr(mesh)}, None,
            0, ir.Location.unknown(), ir.InsertionPoint.at_block_begin(self.symbols.module.body))
        return symbol

    def inspector(self, callback: Callable[[Sharding], None], ndim: int
                   ) -> Callable[[object], None]:
        return lambda tiling: callback(named(self.given + [*self.meshes], self.devices, tiling,
                                             ndim))


class ModuleContext:
    """The state that all functions of one module share: `ctx.module_context` of a lowering rule.

    >>> from olympus.extend.core import Primitive
    >>> from olympus.interpreters import mlir
    >>> p, found = Primitive("unchanged"), []
    >>> _ = p.def_abstract_eval(lambda x: x)
    >>> mlir.register_lowering(p, lambda ctx, x: found.append(ctx.module_context) or [x])
    >>> _ = olympus.jit(p.bind)(1.0)
    >>> type(found[0]) is mlir.ModuleContext, found[0].platform
    (True, 'cpu')
    """

    __slots__ = ("platform", "symbols", "places", "functions", "host_callbacks", "name", "written",
                 "depth", "nest", "uses", "chosen_outputs", "calls", "result_memories", "holds",
                 "rules", "imported", "refined", "constrained", "dimension_names",
                 "dimension_aval", "laid_out", "groups", "out_shardings", "platforms", "hints",
                 "donated", "alone", "outside_main", "convolutions", "combiners", "reductions",
                 "by_others", "distinct", "fenced_from", "fences_by_choice", "hidden", "combining",
                 "kernels", "taken", "_keeps")

    def __init__(self, platform: str | None, name: str,
                 rules: dict[Primitive, Callable[..., Any]] | None = None) -> None:
        # None with several platforms, except while an equation is lowered for one of them.
        self.platform, self.name = platform, name
        self.platforms: Sequence[str] = ()
        self.rules = rules or {}    # lowering rules in place of primitives' own
        self.by_others: Any = None  # the builder of the outsider's rule that runs, or ran last
        self.imported: dict[Any, Any] = {}      # other modules that were linked into this one
        self.refined = False    # whether shapes must be made static before compilation
        self.dimension_names: list[str] = []    # variables of symbolic dimensions
        # The type of their values in the whole module, even where a rule enables x64.
        self.dimension_aval = scalar_aval(int)
        self.symbols = Symbols()
        self.places = Places(name, self.symbols)
        self.functions: dict[Any, tuple[str, list[Any], ClosedOlympuspr, int]] = {}
        self.distinct = Firsts()    # the programs that have functions
        self.host_callbacks: list[lib.HostFunction] = []
        self.written = 0    # bytes of constants in the module
        self.calls, self.holds = Calls(), Holds()
        self.result_memories: list[str | None] = []     # None: the devices' own
        self.constrained: dict[Any, NamedSharding] = {}     # values with a required sharding
        self.laid_out: dict[Any, str] = {}      # values with a required layout
        self.out_shardings: Sequence[NamedSharding | None] = ()     # required ones of results
        self.groups: list[list[Any]] = []       # operations that require equal shardings
        self.hints: list[Any] = []      # operations that XLA accepts on one device only
        self.donated: list[int] = []    # arguments whose buffers results may take over
        self.alone: ClosedOlympuspr | None = None   # the program, if it is for one CPU only
        self.outside_main = False   # whether emitted operations stay out of XLA's main computation
        self.convolutions = 0   # the number of emitted ones, which depend on `outside_main`
        self.combiners: dict[Any, ClosedOlympuspr] = {}     # programs on two scalars of an aval
        self.reductions: dict[Any, Any] = {}    # operations that equal ones are cloned from
        self.fenced_from: ClosedOlympuspr | None = None     # the program, once it is known
        # Whether a fence selects a number or NaN: on accelerators a barrier would part kernels.
        self.fences_by_choice = False
        #: id -> scalar behind a fence, whose broadcasts must be behind one, too; kept alive here
        self.hidden: dict[int, IrValue] = {}
        #: whether emitted operations combine two elements: nothing is fenced or called there
        self.combining = False
        self.kernels = "off"    # the option `kernels`: whether kernels replace rules on one CPU
        self.taken: list[Taken] = []    # the kernels that replaced rules
        self._keeps: bool | None = None     # `keeps_calls`, once computed
        self.depth = 0      # the depth of calls around the emitted operations
        self.nest = Nest(name)
        self.uses: dict[int, int] = {}      # id of a program below `DEEPEST` -> number of its calls
        self.chosen_outputs: list[bool] = []    # whether XLA chooses the sharding

    @property
    def module(self) -> IrModule:
        """The MLIR module."""
        return self.symbols.module

    @property
    def exported(self) -> bool:
        """Whether the module is for a platform, not for devices, and may be for other engines."""
        return AxisType.Explicit in self.places.deviceless

    @property
    def keeps_calls(self) -> bool:
        """Whether calls can be kept apart from the program around them.

        Not on several devices: Shardy would not shard both sides of a kept call alike, and XLA
        would not combine its collectives with others.
        """
        keeps = self._keeps
        if keeps is None:
            keeps = self._keeps = self.alone is not None and not naming_devices(self.alone)
        return keeps

    @property
    def takes_kernels(self) -> bool:
        """Whether kernels may replace rules."""
        return self.kernels != "off" and self.for_one_cpu

    @property
    def takes_kernels_on_parts(self) -> bool:
        """Whether kernels may replace rules on the parts that explicit types give each CPU."""
        return (self.kernels != "off" and self.platform == "cpu" and not self.exported
                and not self.for_one_cpu and self.places.manual is None)

    @property
    def for_one_cpu(self) -> bool:
        """Whether emitted operations are one CPU's, also on its parts of arrays over several, in a
        program that is compiled here.
        """
        return self.keeps_calls or (self.places.apart and self.platform == "cpu"
                                    and not self.exported)

    @property
    def rules_of(self) -> str | None:
        """The platform, and whether kernels may replace its rules: part of the key of recipes."""
        return ("cpu, kernels" if self.takes_kernels else
                "cpu, kernels on parts" if self.takes_kernels_on_parts else self.platform)

    @property
    def calls_rules(self) -> bool:
        """Whether long programs of rules become functions: on one CPU, where XLA inlines calls
        first, but not deep in a nest, whose depth is bounded.
        """
        return self.keeps_calls and len(self.nest.eqns) < LOADABLE // 2

    def held(self, closed: ClosedOlympuspr, results: Sequence[int]) -> Set[Var]:
        """The values of a program that are held.

        `results`: the indices of outputs that a caller wants held.
        """
        read = {*variables(closed.olympuspr.outvars[i] for i in results)}
        apart = read_apart(closed)
        if apart and self.keeps_calls:
            read |= apart
        # In a manual computation each device has its own part.
        return self.holds.of(closed, read, self.places.apart)

    @property
    def fences(self) -> bool:
        """Whether operations emitted now may be fenced."""
        return self.fenced_from is not None and not self.combining

    def in_order(self, closed: ClosedOlympuspr, held: Set[Var], fences: Sequence[Fences]
                 ) -> tuple[Sequence[OlympusprEqn], Set[Var], Iterator[Fences]]:
        """The equations, held values and fences of a program; reads of parts of arrays come before
        the writes that replace them in place."""
        if self.holds.hold != "off" and not self.holds.unheld and self.keeps_calls and True in [
                prim.replaces or prim.programs != () for prim in closed.olympuspr.primitives]:
            order = _in_place.order_of(closed, frozenset([id(step.eqn) for step in fences]))
            if order is not None:
                return order.eqns, held | order.held, iter(order.steps(fences))
        return closed.eqns, held, iter(fences)

    def identity(self, kinds: tuple[IrType, ...]) -> str:
        """The symbol of a function that returns its arguments, of these MLIR types."""
        symbol = self.holds.identities.get(kinds)
        if symbol is None:
            ir, loc = mlir.ir, location("", None)
            symbol = self.holds.identities[kinds] = self.symbols.new("held")
            _, block = emit_header(symbol, "private", kinds, kinds, [loc] * len(kinds), loc,
                                   ir.InsertionPoint(self.module.body))
            ir.Operation.create("func.return", [], list(block.arguments), None, None, 0, loc,
                                ir.InsertionPoint(block))
        return symbol

    def combiner(self, combine: Callable[[Array, Array], Array], aval: ShapedArray
                 ) -> ClosedOlympuspr:
        """The program that combines two values of an aval, traced once for the module."""
        programs, key = self.combiners, (combine, aval)
        if key not in programs:
            programs[key] = stage(lambda p, q: [combine(p, q)], [aval, aval])
        return programs[key]

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

    def finish(self) -> None:
        """Add attributes that only the finished module knows: device count and host callbacks."""
        calls, places = self.calls, self.places
        for what, count in (("mhlo.num_partitions", len(places.devices) or places.parts),
                            ("mhlo.num_replicas", 1)):
            self.module.operation.attributes[what] = attr(f"{count} : i32")
        if calls.host and len(places.devices) > 1:
            one = places.declare("maximal_mesh", "#sdy.mesh<[], device_ids=[0]>")
            every = places.declare("every_device", f'#sdy.mesh<["all"={len(places.devices)}]>')
            for op in calls.host:
                values = ", ".join([f"<@{one}, []>"] * max(len(op.results), 1))
                op.attributes["sdy.sharding"] = attr(f"#sdy.sharding_per_value<[{values}]>")
                self._copy_to_every_device(op, every)
        if self.holds.hold == "report":
            LOGGER.warning("%s", self.hold_report)
        if self.kernels == "report":
            LOGGER.warning("%s", self.kernel_report)
        foreign = self.hints
        if len(places.devices) < 2:       # without Shardy, XLA does not know its operations
            foreign = [op for group in self.groups for op in group]
        for op in foreign:
            op.erase()
        for op, callback, ndim in calls.inspected:
            if len(places.devices) > 1:
                key = lib.inspection_key(calls.hook(places.inspector(callback, ndim)))
                op.attributes["backend_config"] = mlir.ir.StringAttr.get(key)
            else:
                op.erase()

    def _copy_to_every_device(self, op: IrOperation, mesh: str) -> None:
        """Otherwise a result may be whole on one device and undefined on the others."""
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
    def hold_report(self) -> HoldReport:
        """The report of held values, once the program is lowered."""
        holds = self.holds
        return _reports.hold_report(
            f"jit({self.name})", holds.values, holds.unheld, holds.cut_sizes())

    @property
    def kernel_report(self) -> KernelReport:
        """The report of operations by kernels, once the program is lowered."""
        reason = ("" if self.takes_kernels or self.taken else
                  'kernels is "off"' if self.kernels == "off" else
                  "the program is not for one CPU alone")
        return _kernel_reports.kernel_report(f"jit({self.name})", self.taken, reason)

    @property
    def interface(self) -> Interface:
        """The program's interface, once it is lowered."""
        return Interface(self.name, self.places.devices, tuple(self.places.meshes),
                         tuple(self.result_memories), tuple(self.host_callbacks),
                         tuple(self.out_shardings), tuple(self.donated),
                         tuple(self.calls.foreign.values()))

    @contextlib.contextmanager
    def aside(self) -> Iterator[None]:
        """Within the block, emit the body of a loop, of a branch, or of a call that stays.

        On one CPU: elsewhere nothing depends on it.
        """
        outer, self.outside_main = self.outside_main, self.alone is not None
        try:
            yield
        finally:
            self.outside_main = outer


def _cut_alike(a: NamedSharding | None, b: NamedSharding | None, ndim: int) -> bool:
    """Whether two shardings are known, and give devices equal parts."""
    if a is None or b is None or PartitionSpec.UNCONSTRAINED in (*a.spec, *b.spec):
        return False
    return a == b or (isinstance(a.mesh, Mesh) and isinstance(b.mesh, Mesh)
                      and a.is_equivalent_to(b, ndim))


def _devices(mesh: Mesh | AbstractMesh) -> tuple[Device, ...] | None:
    return mesh.device_tuple if isinstance(mesh, Mesh) else None


def _dimension(entry: object) -> str:
    """The axes of the mesh that cut one axis of an array; "?" leaves it to XLA."""
    if entry is PartitionSpec.UNCONSTRAINED:
        return "{?}"
    return "{" + ", ".join(map(quoted_name, axes_of(entry))) + "}"


def _shardy(symbol: str, mesh: Mesh | AbstractMesh, spec: PartitionSpec, ndim: int,
            open: bool = False, manual: Sequence[object] = ()) -> str:
    """How an array of `ndim` axes is cut along a mesh; `open`: XLA may cut it further.

    Where it may cut an axis as it likes, it is not along explicit axes. Nothing is said of those
    that are `manual`.
    """
    dims, more = [_dimension(e) for e in [*spec, *[None] * (ndim - len(spec))]], ""
    # Auto axes may cut further where explicit axes cut.
    if open or (PartitionSpec.UNCONSTRAINED in spec and mesh.explicit_axes):
        dims = [d if d == "{?}" else f"{d[:-1]}{', ' if len(d) > 2 else ''}?}}" for d in dims]
    named = {n for e in spec for n in axes_of(e)} | spec.unreduced | {*manual}
    closed = set(mesh.explicit_axes) - named if PartitionSpec.UNCONSTRAINED in spec else ()
    for what, axes in (("replicated", closed), ("unreduced", spec.unreduced)):
        listed = ", ".join([quoted_name(n) for n in mesh.axis_names if n in axes])
        more += f", {what}={{{listed}}}" if listed else ""
    return f"<@{symbol}, [{', '.join(dims)}]{more}>"


def meshes_within(closed: ClosedOlympuspr) -> Sequence[Mesh]:
    """The meshes with devices that equations of a program, or of one within, name."""
    named = [x.mesh if type(x) is NamedSharding else x for _, x in naming_devices(closed)]
    return [*dict.fromkeys([m for m in named if type(m) is Mesh])]


def emit_header(symbol: str, visibility: str, ins: Sequence[IrType], outs: Sequence[IrType],
                locs: Sequence[mlir.ir.Location], loc: mlir.ir.Location, ip: mlir.ir.InsertionPoint
                ) -> tuple[IrOperation, IrBlock]:
    """A `func.func` of these types, and its block; arguments are at `locs`."""
    ir = mlir.ir
    fn = ir.Operation.create("func.func", [], [], {
        "sym_name": ir.StringAttr.get(symbol), "sym_visibility": ir.StringAttr.get(visibility),
        "function_type": ir.TypeAttr.get(ir.FunctionType.get(ins, outs))}, None, 1, loc, ip)
    return fn, fn.regions[0].blocks.append(*ins, arg_locs=locs)
