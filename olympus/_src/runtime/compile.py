"""Compile lowered modules, once for each distinct program, and run them."""

from __future__ import annotations

import gc
import itertools
import re
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, cast
from weakref import WeakValueDictionary, ref

from ..base import config, errors, lib, source, util
from ..base.lib import mlir
from ..base.lib.executables import CompilerOptions
from ..base.logs import LOGGER, timed
from ..base.typing import Array, Device, DType, IrModule, Modes, PyTree
from ..base.util import Memo, lazy_imports
from ..core.context import current_context
from ..core.effects import add_pending, wait_for_ordered
from ..core.identity import identity
from ..core.ir import ClosedOlympuspr
from ..core.staging import stage
from ..devices.array import (
    array_from_numpy, copied_by_us, layout_of, numpy_value, put_array, refuse_masked_arrays,
)
from ..devices.devices import check_process, rules_of
from ..interpreters.passes import arrays_only, stores_of, without_dead_code
from ..job.agreement import ModuleKey, check_same_program, spans_processes
from ..lowering.context import ForeignCall, Interface, ModuleContext, concrete
from ..lowering.module import Lowering, lower_program
from ..lowering.nest import LOADABLE
from ..lowering.spreading import named
from ..types.avals import Aval, ShapedArray, is_float0, make_aval, memory_kind, physical_aval
from ..types.layout import Layout, demanded_layout
from ..types.mesh import Mesh
from ..types.shape import is_static, prod
from ..types.sharding import (
    NamedSharding, PartitionSpec, Sharding, axes_of, demanded_memory, device_tuple, entry_of,
)
from ..types.tree_registry import PyTreeDef
from .nans import debugging

if TYPE_CHECKING:
    from .hosts import Watched

with lazy_imports(__name__):
    from ..core import check as _check  # under enable_checks
    from . import brief, disk_cache, dumps as _dumps, elements as _elements, foreign

Client = lib.Client
LoadedExecutable = lib.LoadedExecutable
_compilations = itertools.count(1)
_LOOK_EVERY = 128       # compilations; each takes some ten mappings
_MOST_BYTES = 2 << 30   # of all compiled programs
# Bytes of constants in an entry of the disk cache: with 100 MB, reading the entry takes longer than
# compiling, and 250 MB of memory more.
_MOST_CONSTANTS = 32 << 20
_MAPPINGS = Path("/proc/self/maps")
_MOST_MAPPINGS = Path("/proc/sys/vm/max_map_count")
# C++ has no program for a call, and gets: the result, the data for its own calls from then on, and
# whether to forget the call's signature.
Missed: TypeAlias = tuple[PyTree, lib.FastPath | None, bool]
_Part: TypeAlias = tuple[DType, tuple[int, ...]]    # of an array, on one device


class Loaded:
    """An executable of XLA, freed when no program and no table holds it."""

    __slots__ = ("xla", "key", "bytes", "constants", "sources", "code", "levels", "brief", "calls",
                 "__weakref__")
    # Measured memory: 64 bytes for each serialized byte that is no constant, and a least amount.
    PER_BYTE, AT_LEAST = 64, 128 << 10

    def __init__(self, xla: LoadedExecutable, key: ModuleKey | None, size: int, constants: int,
                 code: bytes | None = None, levels: int = 0, brief: bool = False,
                 calls: Sequence[lib.WeakCall] = ()) -> None:
        self.xla, self.key = xla, key
        self.calls = calls      # by which XLA calls functions of the host
        self.brief = brief      # whether the calling thread runs it
        self.levels = levels    # of loops, branches and calls
        #: The serialized form of an executable that was not compiled in this process.
        self.code = code
        self.constants = constants
        #: By id, the large constants that it has copies of, as weak references.
        self.sources: dict[int, ref[Any]] = {}
        self.bytes = self.AT_LEAST + constants + self.PER_BYTE * max(size - constants, 0)

    def serialized(self) -> bytes:
        """The executable as bytes, which another process can run."""
        # XLA keeps the object code of an executable that it compiled, not of one that it loaded:
        # serialized again, a loaded one could be loaded, but would fail when it runs.
        if self.levels > LOADABLE:
            raise ValueError(f"serialize: {_too_deep(self.levels)}; write equal levels as one loop "
                             "(lax.scan over their parameters), or export the function.")
        return self.code or lib.serialize_executable(self.xla)


def _too_deep(levels: int) -> str:
    return (f"{levels} loops, branches and calls within one another given; XLA reads the code of "
            f"at most {LOADABLE} again")


class Executables:
    """All executables by a digest of their module: equal programs are compiled once.

    Programs that have an identity are lowered once, too: it leads to the module's digest.
    Programs hold their executables. The table holds the executables used last, so that a function
    made anew in a loop finds its predecessor's; beyond a budget its references are weak. An
    executable has copies of its constants: when a large constant dies, the table releases it.
    """

    LARGE = 1 << 18     # bytes of a constant
    MOST, MOST_BYTES = 128, 64 << 20    # each takes ten memory mappings, a large one a hundred

    def __init__(self) -> None:
        self.by_digest: WeakValueDictionary[Hashable, Loaded] = WeakValueDictionary()
        self.recent: OrderedDict[Hashable, Loaded] = OrderedDict()
        self.programs: Memo = Memo(4096)
        self.bytes = 0      # of the recent ones
        self._lock = threading.RLock()      # reentrant: a constant may die while it is held
        util.known_cache(self)

    def find(self, program: Hashable) -> tuple[Loaded, Interface] | None:
        """The executable of an equal program, if there is one."""
        noted = self.programs.get(program)
        if noted is None:
            return None
        loaded = self.by_digest.get(noted[0])
        if loaded is None:
            return None
        self.use(loaded)
        return loaded, noted[1]

    def use(self, loaded: Loaded) -> None:
        """Put an executable in front of the recent ones, and let go of the last."""
        key = loaded.key
        with self._lock:
            self.by_digest[key] = loaded
            if self.recent.pop(key, None) is None:
                self.bytes += loaded.bytes
            self.recent[key] = loaded
            while len(self.recent) > self.MOST or (
                    self.bytes > self.MOST_BYTES and len(self.recent) > 1):
                self.bytes -= self.recent.popitem(last=False)[1].bytes

    def watch(self, loaded: Loaded, constants: Sequence[object]) -> None:
        """Release an executable when one of its large constants goes."""
        if loaded.constants <= self.LARGE:
            return
        held = ref(loaded)      # else the constants would keep it alive

        def gone(_: object) -> None:
            if (alive := held()) is not None:
                self.release(alive)

        for x in constants:
            if getattr(x, "nbytes", 0) > self.LARGE and id(x) not in loaded.sources:
                loaded.sources[id(x)] = ref(x, gone)

    def release(self, loaded: Loaded) -> None:
        """Drop the table's own reference to an executable; programs keep theirs."""
        with self._lock:
            if self.recent.pop(loaded.key, None) is not None:
                self.bytes -= loaded.bytes

    def total_bytes(self) -> int:
        """The bytes of all executables, including those that only programs hold."""
        return sum(loaded.bytes for loaded in list(self.by_digest.values()))

    def cache_clear(self) -> None:
        """Forget all executables; those that programs hold are not found again, either."""
        with self._lock:
            self.by_digest.clear()
            self.recent.clear()
            self.bytes = 0


_executables = Executables()


class Placement(NamedTuple):
    """Where a program runs, by the placement of its arguments."""

    devices: tuple[Device, ...]
    committed: bool
    # Per argument; empty if none is sharded over a mesh.
    shardings: tuple[NamedSharding | None, ...] = ()
    memories: tuple[str | None, ...] = ()       # per argument, if some may be donated
    mesh: Mesh | None = None        # the ambient mesh, on which values are made
    layouts: tuple[str | None, ...] = ()        # per argument; () if all are the default, by rows

    @property
    def platform(self) -> str:
        """The platform whose lowering rules apply."""
        return rules_of(self.devices[0])

    def over(self, devices: Sequence[Device]) -> Placement:
        """This placement on `devices`, for a program lowered for meshes without devices."""
        return self._replace(devices=tuple(devices), committed=True,
                             shardings=concrete(self.shardings, tuple(devices)))

    @property
    def several(self) -> tuple[Device, ...]:
        """The devices if they are several, else (): a program of one device fits any device."""
        return self.devices if len(self.devices) > 1 else ()


class Executable:
    """A compiled program of flat arguments.

    `kept` marks the inputs that the program reads; the others are not passed.
    """

    __slots__ = ("loaded", "xla", "name", "in_avals", "out_avals", "kept", "devices",
                 "in_shardings", "out_shardings", "committed", "demanded", "handlers", "layouts",
                 "physical_out", "hosts", "effects", "common", "interface", "untried",
                 "placement", "arg_names", "donated", "exclusive", "absent")

    def __init__(self, loaded: Loaded, closed: ClosedOlympuspr, kept: Sequence[bool],
                 placement: Placement, interface: Interface, arg_names: Sequence[str] = (),
                 specs: Sequence[PartitionSpec] = ()) -> None:
        self.loaded, self.name = loaded, interface.name
        self.effects = frozenset([e for e in closed.effects if e.compiled])
        _executables.watch(loaded, getattr(closed, "consts", ()))   # a loaded program has none
        self.interface, self.placement = interface, placement
        self.xla = xla = loaded.xla
        self.in_avals, self.out_avals, self.kept = closed.in_avals, closed.out_avals, list(kept)
        stored = list(map(physical_aval, self.out_avals))
        self.hosts = interface.host_callbacks       # XLA refers to them weakly
        #: Foreign calls that have not run: their handlers may refuse the program's operands.
        self.untried = interface.foreign
        where = interface.place(placement)
        self.devices, self.committed = where.devices, where.committed
        self.demanded = where.shardings
        if config.no_collectives.value and len(self.devices) > 1:
            _check_silent(self.name, xla)
        self.absent = lib.is_absent(self.devices[0])
        self.common = spans_processes(self.devices)     # not yet compared with the others
        taken = [i for i, k in enumerate(self.kept) if k]
        ins, self.out_shardings = _shardings(
            xla, self.devices, [self.demanded[i] if self.demanded else None for i in taken],
            [self.in_avals[i] for i in taken], stored, interface.meshes, interface.memories)
        self.out_shardings = [_as_typed(a, s, kind, interface.meshes) for a, s, kind in zip(
            self.out_avals, self.out_shardings, interface.memories, strict=True)]
        named = [s.update(spec=spec) if type(s) is NamedSharding else None
                 for s, spec in zip(self.out_shardings, specs)] or interface.out_shardings
        for i, s in enumerate(named):       # the user's spec for the same sharding
            if s is not None and s.is_equivalent_to(self.out_shardings[i], stored[i].ndim):
                self.out_shardings[i] = s
        # The types of result arrays: outside of a program they vary along no axis and have devices.
        self.physical_out = [a.update(vma=frozenset()).at(s)
                             for a, s in zip(stored, self.out_shardings, strict=True)]
        self.layouts: dict[int, str | None] = {}    # by argument; empty if all are by rows
        if any(placement.layouts):
            self.layouts = {i: demanded_layout(Layout.from_pjrt_layout(layout))
                            for i, layout in zip(taken, lib.layouts(xla)[0], strict=True)}
        # None for arguments that are not read.
        self.in_shardings: list[Sharding | None] = [None] * len(self.kept)
        for i, s in zip(taken, ins):
            self.in_shardings[i] = s
        self.handlers = [lib.result_handler(a, s, self.committed)
                         for a, s in zip(self.physical_out, self.out_shardings)]
        self.arg_names = [n for n, k in zip(arg_names, self.kept) if k]
        # A buffer passed twice, once donated, to a program of several devices ends the process.
        self.donated: Sequence[int] = ()
        self.exclusive: Sequence[int] = ()
        if interface.donated and len(self.devices) > 1:
            self.donated, self.exclusive = _exclusive(
                interface.donated, [_part_of_device(physical_aval(self.in_avals[i]), s)
                                    for i, s in zip(taken, ins, strict=True)],
                list(map(_part_of_device, stored, self.out_shardings)))

    def __call__(self, args: Sequence[Array]) -> list[Array]:
        """Start the program on all flat arguments (device arrays); return its result arrays."""
        check_process(self.name)
        if self.absent:
            raise RuntimeError(
                f"{self.name}: a call given; the program is compiled for {len(self.devices)} x "
                f"{self.devices[0].device_kind} of a topology; attached devices are required to "
                "run; lower it for those of olympus.devices().")
        if self.common:
            self.common = not check_same_program(self.name, self.loaded.key, self.devices)
        used = [self._placed(i, args[i], s) for i, s in enumerate(self.in_shardings)
                if s is not None]
        if self.layouts:
            used = [relaid(x, layout) for x, layout in zip(used, self.layouts.values(),
                                                           strict=True)]
        if self.exclusive and lib.may_share([used[i] for i in self.exclusive]):
            self._check_given_once(used, self.donated, self.exclusive)
        try:
            if self.effects or self.hosts or self.untried:
                ordered = any(e.ordered for e in self.effects)
                if ordered:     # programs may overlap on a device, ordered effects must not
                    wait_for_ordered()
                outs, token = lib.execute_with_tokens(self.xla, used, self.handlers)
                if self.effects:
                    add_pending(token, ordered)
                # A program is over when its results are there; to wait in another thread for one
                # that is over takes as long as the call.
                if self.hosts and not (outs and all(x.is_ready() for x in outs)):
                    lib.keep_while_running(token, self.hosts)
                if self.untried:    # a handler refuses at the first call, if at all
                    lib.wait_for([token])
                    self.untried = ()
                return outs
            return lib.execute(self.xla, used, self.handlers)
        except lib.XlaRuntimeError as error:
            if "onate" in str(error):
                self.check_given_once(used)
            raise user_error(error, self.name, self.untried) from None

    def check_given_once(self, used: Sequence[Array]) -> None:
        """RuntimeError if a donated argument, of those read, is given as another one, too."""
        self._check_given_once(used, self.interface.donated, range(len(used)))

    def _check_given_once(self, used: Sequence[Array], donated: Sequence[int],
                          exclusive: Sequence[int]) -> None:
        """RuntimeError for a donated argument whose memory another argument has too."""
        owners: dict[int, int] = {}
        for i in exclusive:
            for address in lib.addresses(used[i]):
                j = owners.setdefault(address, i)
                if j != i and (i in donated or j in donated):
                    same = "are the same array" if used[i] is used[j] else "share their memory"
                    raise RuntimeError(
                        f"jit: arguments {self.arg_names[j]} and {self.arg_names[i]} of "
                        f"{self.name} {same}, and donated: Attempt to use a buffer that was "
                        "previously donated in the same call, as in `f(donate(a), a)`, at "
                        f"{source.summarize(source.user_frame())}; donate neither, or copy one.")

    def _placed(self, i: int, x: Array, sharding: Sharding) -> Any:
        """Argument `i` where the program takes it; uncommitted ones may be elsewhere."""
        if len(self.devices) == 1:
            device, = self.devices
            if x._sharding.num_devices > 1:     # from several, where one was asked for
                return array_from_numpy(numpy_value(x), x.aval.weak_type, device)
            kind = sharding._memory_kind
            if x.device is device and (kind is None or x._sharding._memory_kind == kind):
                return x
            return lib.copy_to_device(x, device, kind=kind)
        if _fits(x, sharding):
            return x
        if x._committed and self.demanded and self.demanded[i] is not None:
            raise ValueError(
                f"{self.name}: Computation was compiled for input shardings that disagree with the "
                f"shardings of arguments passed to it. Here are the mismatches: argument {i}, "
                f"{x.aval}, is committed to {x.sharding}; the program takes it as {sharding}; move "
                "it with device_put.")
        return put_array(x, sharding)

    @property
    def watched(self) -> bool:
        """Whether Python wraps each run: C++ keeps neither tokens nor functions of the host."""
        return bool(self.effects or self.hosts)

    def fastpath(self, out_tree: PyTreeDef, args: Sequence[Array], given: Sequence[object],
                 watched: Watched | None = None) -> lib.FastPath | None:
        """The data with which C++ runs this program without us; None where Python is needed.

        Args:
          out_tree: the structure of the results.
          args: flat arguments of a call, as the program takes them.
          given: the arguments as the user passed them.
          watched: the caller of the C++ object, if Python wraps its calls.
        """
        # C++ would skip Python's work around the program: checks of NaN and of keys, and the
        # conversion of a stand-in on the device to float0.
        if debugging() or config.debug_key_reuse.value or any(map(is_float0, self.out_avals)):
            return None
        # Without results, only a token tells when a program has ended.
        if self.watched and (watched is None or not self.out_avals or any(
                h.transfers for h in self.hosts)):
            return None
        if any(layout_of(args[i]) != layout for i, layout in self.layouts.items()):
            return None
        # C++ would raise Gloo's errors without the explanation that Python adds.
        if self.placement.platform == "cpu" and spans_processes(self.devices) and (
                re.search(_COLLECTIVE, lib.hlo_text(self.xla) or "")):
            return None
        refuse_masked_arrays()
        copied = copied_by_us(given)
        if copied is None:
            return None
        ins = [s for s in self.in_shardings if s is not None]
        # For C++, `shard_fallback` moves uncommitted arrays to where the program takes them.
        if len(self.devices) > 1 and not all(
                _fits(x, s) or not x._committed
                for x, s in zip(args, self.in_shardings) if s is not None):
            return None
        if self.watched and watched is not None:
            watched.add(self.loaded.calls, self.hosts, self.effects)
        return lib.fastpath(self.xla, out_tree, ins, self.out_shardings, self.physical_out,
                            [self.committed] * len(self.out_avals), self.kept,
                            [c for c, kept in zip(copied, self.kept, strict=True) if kept])


def _part_of_device(aval: ShapedArray, sharding: Sharding) -> _Part:
    return aval.dtype, sharding.shard_shape(aval.shape)


def _exclusive(donated: Sequence[int], ins: Sequence[_Part], outs: Sequence[_Part]
               ) -> tuple[list[int], list[int]]:
    """The arguments whose buffers XLA reuses, and the arguments that may share such a buffer.

    `ins` and `outs`: dtypes and shapes on one device. XLA reuses a buffer for a result of its size.
    """
    sizes = {dtype.itemsize * prod(shape) for dtype, shape in outs}
    donated = [i for i in donated if ins[i][0].itemsize * prod(ins[i][1]) in sizes]
    counts, wanted = Counter(ins), {ins[i] for i in donated}
    return donated, [i for i, part in enumerate(ins) if part in wanted and counts[part] > 1]


def _shardings(xla: LoadedExecutable, devices: tuple[Device, ...],
               asked: Sequence[NamedSharding | None], ins: Sequence[Aval],
               outs: Sequence[ShapedArray], meshes: Sequence[Mesh], memories: Sequence[str | None]
               ) -> tuple[list[Sharding], list[Sharding]]:
    """Where a program takes the arguments that it reads and leaves its results."""
    if len(devices) == 1:
        # As on several devices, a result has the sharding of an argument of its rank.
        here = lib.single_device_sharding(devices[0])
        other = NamedSharding(meshes[0], PartitionSpec()) if meshes else here
        like = {physical_aval(a).ndim: s for s, a in zip(asked[::-1], ins[::-1], strict=True)
                if s is not None and demanded_memory(s) is None}
        chosen = [like.get(a.ndim, other) for a in outs]
        return [s or lib.single_device_sharding(devices[0], memory_kind(a))
                for s, a in zip(asked, ins)], [
            s if kind is None else s.with_memory_kind(kind) for s, kind in zip(chosen, memories)]
    parameters, results = lib.shardings(xla)
    # A result that XLA tiles like an argument has the argument's sharding.
    by_tiling: dict[Any, NamedSharding] = {}
    for s, t, a in zip(asked, parameters, ins):
        if s is not None and demanded_memory(s) is None and device_tuple(s) == devices:
            by_tiling.setdefault((physical_aval(a).ndim, t), s)
    return ([s or named(meshes, devices, t, physical_aval(a).ndim, memory_kind(a))
             for s, t, a in zip(asked, parameters, ins)],
            [named(meshes, devices, t, a.ndim, kind) if (a.ndim, t) not in by_tiling else
             by_tiling[a.ndim, t] if kind is None else by_tiling[a.ndim, t].with_memory_kind(kind)
             # For no results XLA has one sharding, of an empty tuple.
             for t, a, kind in zip(results[:len(outs)], outs, memories, strict=True)])


def _as_typed(aval: Aval, chosen: Sharding, kind: str | None, meshes: Sequence[Mesh]) -> Sharding:
    """A result's sharding: its type's, or XLA's choice with the explicit axes of its type."""
    if not (isinstance(aval, ShapedArray) and aval.sharded):
        return chosen
    abstract = aval.sharding.mesh
    if abstract.are_all_axes_explicit:      # the mesh that was compiled for
        mesh = next(m for m in meshes if m.shape_tuple == abstract.shape_tuple)
        return NamedSharding(mesh.of_types(abstract.axis_types), aval.sharding.spec,
                             memory_kind=kind)
    if type(chosen) is not NamedSharding or chosen.mesh.shape_tuple != abstract.shape_tuple:
        return chosen
    told = aval.sharding.spec
    entries = chosen.spec if not abstract.explicit_axes else [   # stored keys have an axis more
        _named_as_told(*pair, abstract.auto_axes) for pair in itertools.zip_longest(
            told, chosen.spec)]
    while len(entries) > len(chosen.spec) and entries[-1] is None:
        entries = entries[:-1]
    return chosen.update(mesh=chosen.mesh.of_types(abstract.axis_types), spec=PartitionSpec(
        *entries, unreduced=told.unreduced, reduced=told.reduced))


def _named_as_told(told: object, chosen: object, auto: Sequence[object]) -> object:
    """One axis' entry: explicit mesh axes of its type, and Auto axes of XLA's choice, which lacks
    axes of size 1.
    """
    names, at = [n for n in axes_of(chosen) if n in auto or n in axes_of(told)], 0
    for name in axes_of(told):
        if name not in names:
            names.insert(at, name)
        at = names.index(name) + 1
    return entry_of(names)


_COLLECTIVE = (r" (all-reduce|all-gather|all-to-all|reduce-scatter|collective-permute|"
               r"collective-broadcast|ragged-all-to-all)(-start)?\(")


def _check_silent(name: str, xla: LoadedExecutable) -> None:
    """ValueError if the devices of a compiled program communicate."""
    names = sorted({match[1] for match in re.finditer(_COLLECTIVE, lib.hlo_text(xla) or "")})
    if names:
        raise ValueError(f"{name}: the compiled program has {', '.join(names)}, and the option "
                         "olympus_no_collectives is set; a program without communication is "
                         "required; reshard its operands, or compile it outside.")


def _fits(x: Array, sharding: Sharding) -> bool:
    """Whether an array's parts are where a sharding wants them."""
    return x._sharding is sharding or x._sharding == sharding or (
        x._sharding.is_equivalent_to(sharding, x.aval.ndim))


def user_error(error: Exception, what: str, calls: Sequence[ForeignCall] = ()) -> BaseException:
    """The error to raise in its place: a callback's own error, or an explanation of lack of memory
    or of a failed foreign call.

    An explanation has the error's class: for calls that C++ runs alone it can raise no other.
    """
    raised = lib.raised_by_host(error)
    if raised is not error:
        return raised
    text = str(error)
    if calls or " FFI " in text or "ide-effect HLO" in text:
        said = foreign.explained(error, calls)
        if said is not None:
            return said
    if "RESOURCE_EXHAUSTED" in text or "Out of memory" in text:
        return errors.OlympusRuntimeError(
            f"{what}: not enough memory on the device ({text.splitlines()[0]}); smaller arrays or "
            "fewer live ones are required; delete arrays, use a smaller batch, or donate "
            "arguments.")
    return error


# Each is called before a compilation, with the client that compiles, and may raise.
before_compiling: list[Callable[[Client], None]] = []


def compile_module(module: IrModule, context: ModuleContext, devices: tuple[Device, ...],
                   options: CompilerOptions | None = None) -> Loaded:
    """The executable of a lowered module; equal modules with equal options compile once."""
    (device, *others), key, size, code = devices, None, 0, None
    _check_module(context, device)
    if context.refined:
        module = mlir.refine(module)
    digest, chosen = b"", ()
    calls = list(map(lib.WeakCall, context.host_callbacks))
    hosts: Sequence[Callable[..., object]] = calls
    # Hooks are known by their addresses, host callbacks by their places: two programs in one
    # process may be equal and call different functions.
    if not _is_inspected(context):
        digest, size = mlir.digest(module)
        chosen = tuple(context.chosen_outputs) if others else ()
    elemental, options = _elements.chosen(context, options)
    settings = _settings(options, **{"elemental": True} if elemental else {})
    if digest and not hosts:
        key = (digest, devices, settings, chosen)
        loaded = _executables.by_digest.get(key)
        if loaded is not None:
            _executables.use(loaded)
            return loaded
    is_brief = not hosts and context.alone is not None and brief.is_brief(context.alone)
    if is_brief:
        hosts = lib.IN_THIS_THREAD
    _look_for_room(context.name)
    if config.dump_ir_to.value:
        _dumps.dump("stablehlo", context.name, lambda: cast("str", module.operation.get_asm(
            enable_debug_info=config.include_debug_info_in_dumps.value)))
    owner: Client = device.client       # a user's plugin may call its devices as we call ours
    for watch in before_compiling:
        watch(owner)
    compile_now = lambda: _compile_now(module, context, devices, options, hosts, elemental)
    with timed(context.name, event="backend_compile"):
        on_disk = _kept_on_disk(device)
        unfit = on_disk and _unfit_for_disk(context)
        if not on_disk or unfit:
            xla = compile_now()
            if unfit:
                disk_cache.explain(context.name, unfit)
        else:
            if config.compilation_cache_include_metadata_in_key.value:
                digest, _ = mlir.digest(module, locations=True)
            stable = disk_cache.stable_digest(digest, settings, chosen)
            xla, code = disk_cache.load_or_compile(context.name, stable, owner, devices,
                                                   compile_now, hosts)
    if context.calls.failures:
        raise context.calls.failures.pop()
    if not others:      # no partitioner says it
        for _, callback, _ in context.calls.inspected:
            meshes = context.interface.meshes
            callback(NamedSharding(meshes[0], PartitionSpec()) if meshes else
                     lib.single_device_sharding(device))
    loaded = Loaded(xla, key, size, context.written, code, context.nest.deepest, is_brief,
                    calls)
    if key is not None:
        _executables.use(loaded)
    return loaded


def _compile_now(module: IrModule, context: ModuleContext, devices: tuple[Device, ...],
                 options: CompilerOptions | None, hosts: Sequence[Callable[..., object]],
                 elemental: bool) -> LoadedExecutable:
    owner: Client = devices[0].client   # a user's plugin may call its devices as we call ours
    try:
        with timed(context.name, log="XLA compilation"):
            return lib.compile(owner, module, devices,
                               options={**_of_process(), **_untuned(context, devices[0]),
                                        **(options or {})}, host_callbacks=hosts,
                               chosen_outputs=context.chosen_outputs,
                               in_this_thread=bool(context.calls.hooks), elemental=elemental)
    except lib.CompilerOptionError:
        raise
    except lib.XlaRuntimeError as error:
        if context.calls.failures:
            raise context.calls.failures.pop() from None
        raise user_error(error, f"compiling {context.name}",
                         tuple(context.calls.foreign.values())) from None


def _untuned(context: ModuleContext, device: Device) -> CompilerOptions:
    """For an absent GPU: XLA would name an algorithm that cuDNN refuses (jaxlib 0.11.2)."""
    tuned = context.convolutions and device.platform == "gpu" and lib.is_absent(device)
    return {"xla_gpu_autotune_level": 0} if tuned else {}


def _check_module(context: ModuleContext, device: Device) -> None:
    """ValueError for a module that cannot be compiled here."""
    check_process(f"compiling {context.name}")
    if context.dimension_names:
        raise ValueError(
            f"compile: {context.name} of symbolic sizes {context.dimension_names} given; XLA "
            "compiles for numbers; export it, and call the export at any size.")
    if context.calls.foreign:
        foreign.check_targets(tuple(context.calls.foreign.values()), rules_of(device))


def _is_inspected(context: ModuleContext) -> bool:
    """Whether compiling a module calls functions of this process."""
    return bool(context.calls.inspected or context.calls.hooks)


def _unfit_for_disk(context: ModuleContext) -> str:
    """The reason for which a module's executable is not kept on disk; "" if there is none."""
    if _is_inspected(context):
        return "it is inspected while it is compiled"
    if any(h.transfers for h in context.host_callbacks):
        return "it calls the host by transfers"
    if context.nest.deepest > LOADABLE:
        return _too_deep(context.nest.deepest)
    if context.written > _MOST_CONSTANTS:
        return (f"its constants have {context.written >> 20} MB, more than "
                f"{_MOST_CONSTANTS >> 20}; pass large arrays as arguments")
    return ""


def _kept_on_disk(device: Device) -> bool:
    """Whether executables for a device outlive the process: they are loaded on the device."""
    return bool(config.enable_compilation_cache.value and config.compilation_cache_dir.value
                ) and not lib.is_absent(device)


def adopt(name: str, load: Callable[[], LoadedExecutable], key: ModuleKey, size: int,
          code: bytes | None = None, brief: bool = False) -> Loaded:
    """An executable of `size` bytes that is loaded, not compiled, among those that are kept.

    `code` is the file's bytes, if it may be serialised again; `brief`, as when it was compiled.
    """
    check_process(f"loading {name}")
    _look_for_room(name)
    xla = load()
    loaded = Loaded(xla, key, 0, 0, code, brief=brief)
    loaded.bytes = size
    _executables.use(loaded)
    return loaded


def release(executable: Executable) -> None:
    """Let a compiled program go with the last program that has it."""
    _executables.release(executable.loaded)


def compiled_programs() -> list[Loaded]:
    """All executables of this process that somebody holds."""
    return list(_executables.by_digest.values())


def drop_programs() -> None:
    """Forget every traced and compiled program; they are made anew when next needed."""
    util.clear_all()
    lib.forget_all_signatures()


def _look_for_room(name: str) -> None:
    """Now and then: to count mappings the kernel writes out all of them."""
    if next(_compilations) % _LOOK_EVERY == 0:
        _make_room(name)


def _make_room(name: str) -> None:
    """Drop programs before they are too large, or as many memory mappings as Linux allows.

    Each compiled program takes about ten; XLA's compiler ends the process where it gets no more.
    """
    total = _executables.total_bytes()
    if total > _MOST_BYTES:
        drop_programs()
        LOGGER.warning("compile: compiled programs took about %d MB; they are dropped, and "
                       "compiled again when next needed.", total >> 20)
    try:
        most = int(_MOST_MAPPINGS.read_text())
        taken = _MAPPINGS.read_bytes().count(b"\n")
    except OSError:     # not Linux
        return
    if taken < 0.7 * most:
        return
    drop_programs()
    gc.collect()
    left = _MAPPINGS.read_bytes().count(b"\n")
    LOGGER.warning("compile: the process had %d of %d memory mappings; kept programs are "
                   "dropped, which left %d; they are compiled again when next needed. Raise "
                   "vm.max_map_count to keep more.", taken, most, left)
    if left > 0.9 * most:
        raise errors.OlympusRuntimeError(
            f"compiling {name}: RESOURCE_EXHAUSTED: the process has {left} of {most} memory "
            "mappings (vm.max_map_count); a tenth of them must be free; drop compiled functions "
            "that are not used any more, or raise the limit.")


def load_program(program: Lowering, placement: Placement,
                 options: CompilerOptions | None = None) -> tuple[Loaded, Interface]:
    """The executable of a program.

    One equal to another that was loaded is not lowered.
    """
    check_process(program.name)
    key = _program_key(program, placement, options)
    known = _executables.find(key)
    if known is not None:
        return known
    with timed(program.name, log="lowering", event="olympuspr_to_mlir_module"):
        module, context = lower_program(program)
    return _compiled(key, module, context, placement, options)


def load_lowered(program: Lowering | None, module: IrModule, context: ModuleContext,
                 placement: Placement, options: CompilerOptions | None) -> tuple[Loaded, Interface]:
    """The executable of a module that was lowered before; calls of `program` find it, too."""
    key = None if program is None else _program_key(program, placement, options)
    return _compiled(key, module, context, placement, options)


def _program_key(program: Lowering, placement: Placement, options: CompilerOptions | None
                 ) -> Hashable:
    """The key of a program: all of its fields but `result_paths`, which do not change its code."""
    code = identity(program.closed)
    if code is None:
        return None
    around = program._replace(closed=None, result_paths=())
    return (code, current_context(), placement.devices, _settings(options), *[
        tuple(x) if isinstance(x, list) else x for x in around])


def _compiled(key: Hashable, module: IrModule, context: ModuleContext, placement: Placement,
              options: CompilerOptions | None) -> tuple[Loaded, Interface]:
    interface = context.interface
    loaded = compile_module(module, context, interface.place(placement).devices, options)
    if key is not None and loaded.key is not None:
        _executables.programs[key] = loaded.key, interface
    return loaded, interface


def lowering_of(closed: ClosedOlympuspr, name: str, placement: Placement, platform: str = "", *,
                keep_unused: bool = True, donated: Sequence[bool] = (),
                arg_names: Sequence[str] = (), modes: Modes = (None, None),
                out_shardings: Sequence[NamedSharding | None] = (),
                out_memories: Sequence[str | None] = (), out_layouts: Sequence[str | None] = (),
                path_of: Callable[[int], str] = str) -> tuple[Lowering, tuple[bool, ...]]:
    """The `Lowering` of a traced program, and which of the program's inputs the module takes.

    The only road from programs to modules; arguments are a `Lowering`'s, one entry for each input.

    Args:
      platform: where it will run; "" is the platform of `placement`.
      keep_unused: whether the module takes inputs that the program does not read, too.
      modes: the modes of holds and of kernels; None goes by the option.
      path_of: an input's name in messages about wrong sizes.
    """
    program = arrays_only(closed)
    # The new content of a written reference takes over the buffer of the old content.
    stores = stores_of(closed)
    if stores:
        donated = [d or i in stores for i, d in enumerate(donated or [False] * len(closed.invars))]
    for aval, sharding in zip(program.in_avals, placement.shardings):
        if sharding is not None:        # a struct may have a sharding that no array has
            sharding.check_compatible_aval(aval.shape)
    symbolic = not all(is_static(getattr(a, "shape", ())) for a in program.in_avals)
    program, kept = without_dead_code(program, keep_unused)
    if config.enable_checks.value and program is not closed:
        _check.check_olympuspr(program.olympuspr)   # the passes' result
    pr = program.olympuspr
    info = pr.debug_info
    if arg_names:
        info = info._replace(arg_names=tuple(compress(arg_names, kept)))
        program = program.replace(olympuspr=pr.replace(debug_info=info))
    # While NaN are searched for, the program may run again and needs its arguments.
    donated, aliases = [d and not debugging() for d in compress(donated, kept)], []
    if any(donated):
        # On several devices, sizes of shards are compared if the shardings of results are known.
        open_ = bool(placement.several) and not all(out_shardings or [None])
        fixed = [stores.get(i) for i, k in enumerate(kept) if k]
        aliases, donated = _aliases(program, donated, open_, fixed)
    # The contents of references, which follow the user's results, keep their sharding and memory.
    count = len(program.outvars)
    if stores:
        where = {stores[i]: x for i, x in enumerate(placement.shardings) if i in stores}
        kinds = {stores[i]: x for i, x in enumerate(placement.memories) if i in stores}
        if where or out_shardings:
            out_shardings = [*out_shardings, *[where.get(i) for i in range(
                len(out_shardings), count)]]
        out_memories = [*out_memories, *[kinds.get(i) for i in range(len(out_memories), count)]]
        if out_layouts:
            out_layouts = [*out_layouts, *[None] * (count - len(out_layouts))]
    return Lowering(
        program, name, platform or placement.platform, donated, aliases, info.result_paths,
        devices=placement.several, mesh=placement.mesh,
        hold=modes[0] or config.hold.value, kernels=modes[1],
        shardings=[*compress(placement.shardings, kept)],
        memories=[*compress(placement.memories, kept)],
        layouts=[*compress(placement.layouts, kept)], out_shardings=out_shardings,
        out_memories=out_memories, out_layouts=out_layouts,
        arg_names=[path_of(i) for i, k in enumerate(kept) if k] if symbolic else ()), kept


def _aliases(program: ClosedOlympuspr, donated: Sequence[bool], open_: bool,
             fixed: Sequence[int | None]) -> tuple[list[int | None], list[bool]]:
    """(the result that takes over each donated input's buffer, or None; which stay donated).

    Unless `open_`, a warning names donated inputs that no result can use. `fixed`: the result of
    each input where it is known beforehand.
    """
    # First by type: such a result takes over the buffer; then by the number of elements, for which
    # XLA may still reuse it.
    free: dict[Any, deque[int]] = {}
    out_avals = program.out_avals
    for i, aval in enumerate(out_avals):
        if i not in fixed:
            free.setdefault((aval.shape, aval.dtype), deque()).append(i)
    aliases = [f if f is not None else
               free[kind].popleft() if d and free.get(kind := (a.shape, a.dtype)) else None
               for a, d, f in zip(program.in_avals, donated, fixed, strict=True)]
    sizes = Counter(out_avals[i].size for left in free.values() for i in left)
    usable, unused = [], []
    for aval, alias, d in zip(program.in_avals, aliases, donated, strict=True):
        usable.append(d and (open_ or alias is not None or sizes[aval.size] > 0))
        if usable[-1] and alias is None and not open_:
            sizes[aval.size] -= 1
        if d and not usable[-1]:
            unused.append(str(aval))
    if unused:
        source.warn(f"Some donated buffers were not usable: {', '.join(unused)}; no result is left "
                    "that has as many elements. They are not deleted; donate arguments that "
                    "results replace.")
    return aliases, usable


def compile_program(closed: ClosedOlympuspr, name: str, placement: Placement,
                    out_layouts: Sequence[str | None] = (),
                    specs: Sequence[PartitionSpec] = ()) -> Executable:
    """Compile a program whose inputs are all kept; `specs` name the shardings of its results."""
    program, kept = lowering_of(closed, name, placement, out_layouts=out_layouts)
    loaded, interface = load_program(program, placement)
    return Executable(loaded, arrays_only(closed), kept, placement, interface, specs=specs)


def relaid(x: Array, layout: str | None) -> Array:
    """An array that lies in memory as XLA's notation says, None for by rows; itself if it does."""
    layout_now = layout_of(x)
    if layout_now == layout:
        return x
    sharding = x._sharding
    if type(sharding) is not lib.SingleDeviceSharding:
        return lib.make_array(x.aval, sharding, [
            relaid(shard.data, layout) for shard in x.addressable_shards])
    executable = _copier(x.aval, sharding._device, layout_now, layout)
    return lib.rewrap(executable([x])[0], x.aval, sharding)


@util.memoize(256)
def _copier(aval: ShapedArray, device: Device, layout: str | None, wanted: str | None
            ) -> Executable:
    """The program that copies an array of one device into another layout."""
    program = stage(lambda x: [x], [make_aval(aval.shape, aval.dtype,
                                              memory_space=aval.memory_space)])
    return compile_program(program, "relaid", Placement((device,), True, layouts=(layout,)),
                           [wanted])


def _of_process() -> CompilerOptions:
    """The compiler options that hold for every program, beneath its own."""
    options: dict[str, Any] = {}
    if config.disable_most_optimizations.value:
        options |= {"xla_backend_optimization_level": 0, "xla_llvm_disable_expensive_passes": True}
    for name, option in (("optimization_level", config.optimization_level),
                         ("memory_fitting_level", config.memory_fitting_level)):
        if option.value != option.default:
            options[name] = config.CompilerEffortLevel[getattr(option.value, "name", option.value)]
    return options


def _settings(options: CompilerOptions | None, **more: bool) -> tuple[tuple[str, str], ...]:
    options = {**_of_process(), **(options or {}), **more}
    return tuple(sorted([(k, repr(v)) for k, v in options.items()], key=str))   # k may be no text
