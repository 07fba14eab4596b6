"""`plan`: a program compiled for devices that need not be here, and its figures there."""

from __future__ import annotations

import contextlib
import difflib
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import NamedTuple

import numpy as np

from ..base import lib, source
from ..base.progress import step
from ..base.typing import Device, PyTree
from ..base.util import shortened
from ..core.ir import Olympuspr, OlympusprEqn
from ..devices.chips import CHIPS, Chip, Target, parse_target
from ..devices.topologies import TopologyDescription, target_devices
from ..interpreters.passes import arrays_only
from ..jit.arguments import check_callable
from ..jit.cost_table import NOTHING, Cost, Costs, Lines
from ..jit.jit import jit
from ..jit.stages import Compiled, CompilerOptions, Lowered, Wrapped
from ..lax.meshes import set_mesh
from ..types import dtypes
from ..types.avals import Aval, ShapeDtypeStruct
from ..types.mesh import Mesh
from ..types.shape import Shape, mod
from ..types.sharding import NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding, axes_of
from ..types.tree import tree_leaves, tree_map
from . import hlo
from .advice import advice, float64_line
from .result import (
    ArgumentMemory, Exchange, LineMemory, MemoryPlan, Plan, Plans, line_of, mesh_text,
)

MeshSizes = Mapping[str, int | None]
Progress = Callable[[str], contextlib.AbstractContextManager[None]]
_POINTS = 400       # the most points of memory over the program
_GROUPS = 64        # the most groups of exchanging devices that are examined
_ROWS = 40          # the most rows of arguments, lines and exchanges
_DTYPES = {"bf16": "bfloat16", "f16": "float16", "f32": "float32", "f64": "float64",
           "c64": "complex64", "c128": "complex128", "s8": "int8", "u8": "uint8", "s4": "int4",
           "f8e4m3fn": "float8_e4m3fn", "f8e5m2": "float8_e5m2", "s32": "int32"}
_ROOMY = "v5p"      # the chip with most memory, for programs that fit no other
# How often the bytes of an operand pass a link of a ring of n devices.
_SENT: dict[str, Callable[[int], float]] = {
    "all-reduce": lambda n: 2 * (n - 1) / n, "all-gather": lambda n: n - 1,
    "reduce-scatter": lambda n: (n - 1) / n, "all-to-all": lambda n: (n - 1) / n,
    "ragged-all-to-all": lambda n: (n - 1) / n}


def plan(fun: Callable[..., PyTree], /, *args: PyTree, target: str | TopologyDescription,
         mesh: MeshSizes | Sequence[str] | None = None, search: bool = False,
         compiler_options: CompilerOptions | None = None, progress: Progress | None = None,
         **kwargs: PyTree) -> Plan | Plans:
    """Compile a function for devices that need not be here, and report memory, work and time there.

    The compiler of the target must be installed: `pip install libtpu`, or `jax-cuda13-plugin` and
    `jax-cuda13-pjrt` of jaxlib's version; a device or driver need not be there. Nothing is run.

    Args:
      fun: a function, or the result of `jit` with its options, as donated arguments.
      *args, **kwargs: its arguments: arrays, or anything with a shape and a dtype. Their shardings
        may name axes only: `ShapeDtypeStruct(…, sharding=P("data", None))`; arguments without a
        sharding are replicated on each device.
      target: the devices: "v5e:2x2", "tpu:v6e:16x16", "h100:8", "h100:4x8" of four hosts; or a
        `TopologyDescription`.
      mesh: the sizes of its axes, {"data": 4, "model": 2}, None for one that is left to find; or
        the names. By default, the axes that the arguments name, and one of them has all devices.
      search: compile for all sizes of the axes, and rank them.
      compiler_options: XLA's flags by name.
      progress: a function from a step's name to a context in which the step runs; None prints on a
        terminal how long each step takes.
    Returns: A `Plan`; with `search=True` `Plans`. A program that needs too much memory has a
      plan, too: its `fits` is False, and its advice says what to do.

    ValueError for a target or mesh that is not possible, with those that are. RuntimeError where
    the compiler is not installed, with the line that installs it.

    >>> from olympus.experimental import topologies
    >>> x = olympus.ShapeDtypeStruct((64, 64), "float32")
    >>> plan = olympus.debug.plan(lambda x: x @ x, x, target=topologies.get_attached_topology())
    >>> plan.memory.arguments, plan.memory.results, plan.devices
    (16384, 16384, 1)
    """
    check_callable("plan", fun)
    where = _Devices.of(target)
    sizes = _named_sizes(mesh, (args, kwargs))
    quiet = not sys.stderr.isatty()
    run = _Run(fun, args, kwargs, where, compiler_options,
               progress or (lambda name: step(name, quiet)))
    if not search:
        return run.on(_sizes(sizes, where))
    if not sizes:
        raise ValueError("plan: search=True given, and no argument names an axis of a mesh; give "
                         'arguments a sharding as P("data"), or mesh=("data", …).')
    return _searched(run, _factored(sizes, len(where.devices)))


# Devices and meshes ------------------------------------------------------------------------------

class _Devices(NamedTuple):
    """The devices to compile for: their name, the target if it has one, the chip, the devices."""

    name: str
    target: Target | None
    chip: Chip | None
    devices: Sequence[Device]

    @classmethod
    def of(cls, target: str | TopologyDescription) -> _Devices:
        if isinstance(target, TopologyDescription):
            kind = target.devices[0].device_kind
            chip = next((c for c in CHIPS.values() if c.kind == kind), None)
            return cls(kind, None, chip, target.devices)
        if not isinstance(target, str):
            raise TypeError(f"plan: target={target!r:.60} of type {type(target).__name__} given; "
                            'the name of devices, as "v5e:2x2", or a TopologyDescription is '
                            "required.")
        parsed = parse_target(target)
        return cls(str(parsed), parsed, parsed.chip, target_devices(parsed))


def _named_sizes(mesh: MeshSizes | Sequence[str] | None, arguments: PyTree
                 ) -> dict[str, int | None]:
    """The axes of the mesh, each with its size, or None where the user gave none."""
    if not (mesh is None or isinstance(mesh, (str, Mapping, Sequence))):
        raise TypeError(f"plan: mesh={mesh!r:.60} of type {type(mesh).__name__} given; a dict from "
                        "names of axes to sizes, or a sequence of names, is required.")
    if mesh is not None:
        names = [mesh] if isinstance(mesh, str) else list(mesh)
        sizes = {n: mesh.get(n) if isinstance(mesh, Mapping) else None for n in names}
        for name, size in sizes.items():
            if not isinstance(name, str) or not (size is None or type(size) is int and size > 0):
                raise ValueError(f"plan: mesh={dict(sizes)} given; names of axes with positive "
                                 "ints, or None, are required.")
    else:
        sizes = {}
    used = dict.fromkeys(axis for leaf in tree_leaves(arguments) for entry in _spec(leaf)
                         for axis in axes_of(entry))
    missing = [axis for axis in used if axis not in sizes]
    if mesh is not None and missing:
        near = difflib.get_close_matches(missing[0], list(sizes), 1)
        raise ValueError(f"plan: the mesh {_partly(sizes)} given, and an argument is cut over "
                         f"{missing[0]!r}; name it in the mesh" + (
                             f", or write {near[0]!r}." if near else "."))
    return {**sizes, **dict.fromkeys(missing)}


def _partly(sizes: MeshSizes) -> str:
    """A mesh whose sizes are not all known, as text."""
    return ",".join(name if size is None else f"{name}={size}" for name, size in sizes.items())


def _spec(leaf: PyTree) -> PartitionSpec:
    """How an argument is cut, by names of axes."""
    sharding = getattr(leaf, "_sharding", None) if isinstance(leaf, ShapeDtypeStruct) else (
        getattr(leaf, "sharding", None))
    if isinstance(sharding, NamedSharding):
        return sharding.spec
    return sharding if isinstance(sharding, PartitionSpec) else PartitionSpec()


def _factored(sizes: MeshSizes, count: int) -> list[dict[str, int]]:
    """All meshes of a number of devices whose axes have the sizes that are given."""
    (name, size), *rest = sizes.items()
    if not rest:
        return [{name: count}] if size in (None, count) else []
    tries = [n for n in range(1, count + 1) if count % n == 0] if size is None else (
        [size] if count % size == 0 else [])
    return [{name: n, **more} for n in tries for more in _factored(dict(rest), count // n)]


def _sizes(sizes: MeshSizes, where: _Devices) -> dict[str, int]:
    """The one mesh that is meant; ValueError, with those that fit, for none or several."""
    if not sizes:
        return {}
    count = len(where.devices)
    fits = _factored(sizes, count)
    if len(fits) == 1:
        return fits[0]
    if fits:
        raise ValueError(
            f"plan: the mesh {_partly(sizes)} given for the {count} devices of {where.name}: "
            f"{len(fits)} fit: {_some(fits)}; give sizes, or search=True (--search), which tries "
            "them all.")
    asked = prod(n or 1 for n in sizes.values())
    raise ValueError(
        f"plan: the mesh {_partly(sizes)} of {asked} devices given, and {where.name} has "
        f"{count}; as many are required: {_some(_factored(dict.fromkeys(sizes), count))}.")


def _some(meshes: Sequence[Mapping[str, int]]) -> str:
    # Meshes whose sizes are alike come first.
    shown = sorted(meshes, key=lambda m: max(m.values()))[:4]
    return " | ".join(map(mesh_text, shown)) + (" | …" if len(meshes) > len(shown) else "")


# Compiling ---------------------------------------------------------------------------------------

class _Run(NamedTuple):
    """A function with its arguments and devices, to be compiled on meshes."""

    fun: Callable[..., PyTree]
    args: tuple[PyTree, ...]
    kwargs: Mapping[str, PyTree]
    where: _Devices
    options: CompilerOptions | None
    progress: Progress

    def on(self, sizes: Mapping[str, int], label: str = "") -> Plan:
        """The plan on a mesh; on one device if it has no axes."""
        devices = self.where.devices
        start = time.perf_counter()
        lowered = self.lowered(devices, sizes, label)
        try:
            with self.progress(f"compiling{label}"):
                compiled = lowered.compile(self.options)
        except lib.XlaRuntimeError as error:
            if "RESOURCE_EXHAUSTED" not in str(error):
                raise
            return self.too_large(lowered, sizes, str(error), start, label)
        seconds = time.perf_counter() - start
        return _report(self.where, sizes, lowered, compiled, seconds, [])

    def lowered(self, devices: Sequence[Device], sizes: Mapping[str, int], label: str) -> Lowered:
        if sizes:
            mesh = Mesh(np.array(devices, object).reshape(tuple(sizes.values())), tuple(sizes))
            around: contextlib.AbstractContextManager[object] = set_mesh(mesh)
        else:
            mesh, around = None, contextlib.nullcontext()

        def placed(x: PyTree) -> PyTree:
            like = ShapeDtypeStruct.like(x) if not isinstance(x, ShapeDtypeStruct) else x
            _check_divided(like, _spec(x), sizes)
            sharding = SingleDeviceSharding(devices[0]) if mesh is None else NamedSharding(
                mesh, _spec(x))
            return ShapeDtypeStruct(like.shape, like.dtype, sharding=sharding,
                                    weak_type=like.weak_type)

        fun = self.fun if isinstance(self.fun, Wrapped) else jit(self.fun)
        args, kwargs = tree_map(
            lambda x: placed(x) if hasattr(x, "shape") and hasattr(x, "dtype") else x,
            (self.args, dict(self.kwargs)))
        with around:
            with self.progress(f"tracing{label}"):
                traced = fun.trace(*args, **kwargs)
            with self.progress(f"lowering{label}"):
                return traced.lower()

    def too_large(self, lowered: Lowered, sizes: Mapping[str, int], error: str, start: float,
                  label: str) -> Plan:
        """The plan of a program that the compiler refuses, with the figures of a larger chip."""
        said = error.partition("RESOURCE_EXHAUSTED: ")[2].partition("); ")[0]
        notes = [f"the compiler says: {said or error}"]
        roomier = _roomier(self.where)
        if roomier is not None:
            larger = self._replace(where=roomier)
            try:
                again = larger.lowered(roomier.devices, sizes, label)
                with self.progress(f"compiling for {roomier.name}, to see what is large{label}"):
                    compiled = again.compile(self.options)
            except lib.XlaRuntimeError:
                pass
            else:
                notes.append(f"figures describe {roomier.name}, for which the program compiles.")
                return _report(self.where, sizes, again, compiled, time.perf_counter() - start,
                               notes)
        return _refused(self.where, sizes, lowered, time.perf_counter() - start, notes)


class _NotDivided(ValueError):
    """An axis of an argument that a mesh does not divide."""


def _check_divided(x: ShapeDtypeStruct, spec: PartitionSpec, sizes: Mapping[str, int]) -> None:
    for at, (size, entry) in enumerate(zip(x.shape, spec, strict=False)):
        parts = prod(sizes[axis] for axis in axes_of(entry)) if sizes else 1
        if mod(size, parts):
            named = ", ".join(axes_of(entry))
            raise _NotDivided(
                f"plan: an argument of shape {x.shape} is cut along axis {at} over {named}, of "
                f"{parts} devices on the mesh {mesh_text(sizes)}; {size} is not divisible by that; "
                "pad the array, or use another axis or mesh.")


def _roomier(where: _Devices) -> _Devices | None:
    """As many devices of the chip with most memory; None if they are that chip, or GPUs."""
    count, chip = len(where.devices), where.chip
    if where.target is None or chip is None or chip.platform != "tpu" or (
            chip.memory >= CHIPS[_ROOMY].memory) or count > 2 and count % 4:
        return None
    sizes = (1, 1, 1) if count == 1 else (2, 1, 1) if count == 2 else (2, 2, count // 4)
    with contextlib.suppress(ValueError):
        return _Devices.of(str(Target(_ROOMY, sizes)))
    return None


def _searched(run: _Run, meshes: Sequence[Mapping[str, int]]) -> Plans:
    if not meshes:
        raise ValueError(f"plan: search=True given, and no mesh of the given sizes has the "
                         f"{len(run.where.devices)} devices of {run.where.name}; leave sizes out.")
    plans, refused = [], {}
    for n, sizes in enumerate(meshes, 1):
        try:
            plans.append(run.on(sizes, f" {mesh_text(sizes)} ({n} of {len(meshes)})"))
        except _NotDivided as error:
            refused[mesh_text(sizes)] = shortened(str(error), 200)
        except Exception as error:      # an error of the function, which may depend on the sizes
            if len(meshes) == 1:
                raise
            text = " ".join(f"{type(error).__name__}: {error}".split())
            refused[mesh_text(sizes)] = shortened(text, 200)
    if not plans:
        raise ValueError("plan: search=True given, and no mesh is possible:\n" + "\n".join(
            f"  {mesh}: {why}" for mesh, why in refused.items()))
    return Plans(plans=tuple(sorted(plans, key=lambda p: (
        not p.fits, p.least_seconds, p.memory.total))), refused=refused)


# Reporting ---------------------------------------------------------------------------------------

def _report(where: _Devices, sizes: Mapping[str, int], lowered: Lowered, compiled: Compiled,
            seconds: float, notes: list[str]) -> Plan:
    program = arrays_only(lowered._program.closed)
    text = compiled.as_text() or ""
    read = hlo.read(text, dict(_lengths(program.olympuspr, set())))
    stats = compiled.memory_analysis()
    available = where.chip.memory if where.chip is not None else 0
    memory = MemoryPlan(available=available) if stats is None else MemoryPlan(
        arguments=stats.argument_size_in_bytes, donated=stats.alias_size_in_bytes,
        results=stats.output_size_in_bytes - stats.alias_size_in_bytes,
        temporaries=stats.temp_size_in_bytes, code=stats.generated_code_size_in_bytes,
        available=available)
    count = prod(sizes.values())
    flops: dict[str, float] = {}
    for dtype, n in read.products.items():
        name = _DTYPES.get(dtype, dtype)
        flops[name] = flops.get(name, 0.0) + n
    other = sum(c.flops + c.transcendentals for c in _OtherCosts(
        lowered._placement.platform).program(program.olympuspr).values()) / count
    exchanges, far = _exchanges(read.collectives, sizes, where)
    if read.unknown_loops:
        notes.append("loops of unknown length count once.")
    if far:
        notes.append("what goes between hosts is not in the time: the network's speed is not "
                     "known.")
    if len(where.devices) > count:
        notes.append(f"one of {len(where.devices)} devices is used: no argument is cut over a "
                     'mesh; give shardings, as P("data").')
    arguments, shardings, shapes = _arguments(lowered, compiled, read)
    lines = _lines(read.peak)
    tpu = where.chip is not None and where.chip.platform == "tpu"
    wide = float64_line(program.olympuspr, set()) if tpu else None
    return Plan(
        function=lowered._program.name, target=where.name,
        device=where.devices[0].device_kind, devices=count, given=len(where.devices),
        mesh=dict(sizes), memory=memory, flops=flops, other_flops=other, bytes=read.bytes,
        exchanges=exchanges, seconds=_seconds(where.chip, flops, read.bytes, exchanges),
        arguments=arguments[:_ROWS], lines=lines[:_ROWS], over_time=_thinned(read.over_time),
        advice=advice(memory, arguments, lines, shardings, shapes, _donatable(lowered, compiled),
                      "transpose(" in text, wide and _place(wide)),
        notes=notes, compile_seconds=seconds)


def _refused(where: _Devices, sizes: Mapping[str, int], lowered: Lowered, seconds: float,
             notes: list[str]) -> Plan:
    """The plan of a program that compiles for no chip: only the memory of its arguments."""
    chip = where.chip
    shapes = {name: aval.shape for name, aval in zip(
        lowered._program.arg_names, lowered._program.closed.in_avals, strict=True)}
    rows = sorted((ArgumentMemory(name=name, type=str(aval), spec="", bytes=size, data=size)
                   for name, aval, size in _shards(lowered)), key=lambda a: -a.bytes)
    needed = max(sum(a.bytes for a in rows), chip.memory + 1 if chip else 0)
    memory = MemoryPlan(arguments=sum(a.bytes for a in rows),
                        temporaries=needed - sum(a.bytes for a in rows),
                        available=chip.memory if chip else 0)
    notes.append("temporaries are more than is there; how much more is not known.")
    shardings = dict(zip(lowered._program.arg_names, lowered._placement.shardings or (),
                         strict=False))
    return Plan(function=lowered._program.name, target=where.name,
                device=where.devices[0].device_kind, devices=prod(sizes.values()),
                given=len(where.devices), mesh=dict(sizes), memory=memory, arguments=rows[:_ROWS],
                advice=advice(memory, rows, [], shardings, shapes, 0, False, None), notes=notes,
                compile_seconds=seconds)


class _OtherCosts(Costs):
    """The costs of all devices together, of all operations but products."""

    def _equation(self, eqn: OlympusprEqn) -> Lines:
        lines = super()._equation(eqn)
        if not eqn.primitive.per_device:
            return lines
        # The body is the program of one of these.
        sizes = eqn.params["mesh"].shape
        parts = prod(sizes[axis] for axis in eqn.params["newly_manual_axes"])
        return {line: cost.times(parts) for line, cost in lines.items()}

    def _operation(self, eqn: OlympusprEqn) -> Cost:
        return NOTHING if eqn.primitive.contracts else super()._operation(eqn)


def _place(at: source.Source) -> hlo.Place:
    location = source.location(at)
    return location.file, location.line, location.function


def _lengths(program: Olympuspr, seen: set[int]) -> Iterator[tuple[tuple[str, int], int]]:
    """The lengths of loops by their lines."""
    if id(program) in seen:
        return
    seen.add(id(program))
    for eqn in program.eqns:
        length = eqn.primitive.times(eqn.params) if eqn.primitive.repeats else None
        if length is not None and eqn.source is not None:
            yield _place(eqn.source)[:2], length
        for _, body, _ in eqn.primitive.applied(eqn.params, eqn.invars):
            yield from _lengths(body.olympuspr, seen)


def _exchanges(collectives: Sequence[hlo.Collective], sizes: Mapping[str, int], where: _Devices
               ) -> tuple[list[Exchange], bool]:
    """Collectives by kind and axes, those that send most first; whether some go between hosts."""
    rows: dict[tuple[str, str, str], list[tuple[int, float, str]]] = {}
    count = max(prod(sizes.values()), 1)
    shape = tuple(sizes.values()) or (1,)
    for c in collectives:
        group = max(c.groups, key=len, default=()) or tuple(range(count))
        crossed: dict[str, None] = {}
        for members in (c.groups or [group])[:_GROUPS]:
            at = np.unravel_index(np.array(members) % count, shape)
            crossed |= {name: None for name, coordinates in zip(sizes, at, strict=False)
                        if len({*coordinates.tolist()}) > 1}
        axes = ", ".join(name for name in sizes if name in crossed)
        link = _link(where, group)
        sent = c.data * _SENT.get(c.kind, lambda n: 1.0)(len(group))
        rows.setdefault((c.kind, axes or "no axis", link), []).append(
            (c.times, sent * c.times, line_of(c.place)))
    exchanges = [Exchange(kind=kind, axes=axes, link=link, count=sum(r[0] for r in parts),
                          bytes=sum(r[1] for r in parts), line=max(parts, key=lambda r: r[1])[2])
                 for (kind, axes, link), parts in rows.items()]
    exchanges.sort(key=lambda e: -e.bytes)
    return exchanges[:_ROWS], any(e.link == "network" for e in exchanges)


def _link(where: _Devices, group: Sequence[int]) -> str:
    """The link between the devices of a group."""
    if where.chip is None:
        return "memory"
    if where.chip.platform == "tpu":
        return "ICI"
    hosts = {where.devices[n].process_index for n in group if n < len(where.devices)}
    return "network" if len(hosts) > 1 else "PCIe" if where.chip.kind == "NVIDIA L4" else "NVLink"


def _seconds(chip: Chip | None, flops: Mapping[str, float], moved: float,
             exchanges: Sequence[Exchange]) -> dict[str, float]:
    if chip is None:
        return {}
    sent = sum(e.bytes for e in exchanges if e.link != "network")
    return {"compute": sum(n / chip.peak(dtype) for dtype, n in flops.items()),
            "memory": moved * chip.cores / chip.bandwidth,
            "links": sent * chip.cores / chip.link}


def _lines(held: Sequence[hlo.PeakMemory]) -> list[LineMemory]:
    """The memory held at the peak, by line, the most first."""
    rows: dict[hlo.Place | None, list[int]] = {}
    for part in held:
        rows.setdefault(part.place, []).append(part.bytes)
    return [LineMemory(line=line_of(place), bytes=sum(sizes), arrays=len(sizes),
                       text="" if place is None else shortened(source.line_text(*place[:2])))
            for place, sizes in sorted(rows.items(), key=lambda item: -sum(item[1]))]


def _arguments(lowered: Lowered, compiled: Compiled, read: hlo.Reading
               ) -> tuple[list[ArgumentMemory], dict[str, Sharding | None], dict[str, Shape]]:
    """Arguments, the largest first, with their shardings and shapes by name."""
    executable = compiled._executable
    shardings = dict(zip(lowered._program.arg_names, executable.in_shardings, strict=True))
    rows, shapes = [], {}
    for name, aval, data in _shards(lowered, shardings):
        spec = getattr(shardings[name], "spec", None)
        rows.append(ArgumentMemory(
            name=name, type=aval.str_short(short_dtypes=True),
            spec="" if spec is None else f"P({', '.join(map(repr, spec))})",
            bytes=read.arguments.get(name, data), data=data))
        shapes[name] = tuple(aval.shape)
    return sorted(rows, key=lambda a: -a.bytes), shardings, shapes


def _shards(lowered: Lowered, shardings: Mapping[str, Sharding | None] | None = None
            ) -> Iterator[tuple[str, Aval, int]]:
    """The name and type of each argument that is read, and the bytes of its numbers on a device."""
    program = lowered._program
    by_name = shardings or dict(zip(program.arg_names, lowered._placement.shardings or (),
                                    strict=False))
    for name, aval in zip(program.arg_names, program.closed.in_avals, strict=True):
        sharding = by_name.get(name)
        if sharding is None and shardings is not None:
            continue        # the program does not read it
        yield name, aval, _bytes(aval, sharding)


def _bytes(aval: Aval, sharding: Sharding | None) -> int:
    shape = aval.shape if sharding is None else sharding.shard_shape(tuple(aval.shape))
    bits = dtypes.itemsize_bits(aval.dtype) if isinstance(aval.dtype, np.dtype) else 64
    return -(-prod(shape) * bits // 8)


def _donatable(lowered: Lowered, compiled: Compiled) -> int:
    """Bytes of results on a device that undonated arguments of the same types have room for."""
    program, executable = lowered._program, compiled._executable
    outs: dict[tuple[object, object], list[int]] = {}
    for aval, sharding in zip(executable.out_avals, executable.out_shardings, strict=False):
        outs.setdefault((tuple(aval.shape), aval.dtype), []).append(_bytes(aval, sharding))
    total = 0
    for want in (True, False):      # donated arguments take theirs first
        for aval, donated in zip(program.closed.in_avals, program.donated, strict=True):
            left = outs.get((tuple(aval.shape), aval.dtype))
            if donated is want and left:
                size = left.pop()
                total += 0 if want else size
    return total


def _thinned(points: Sequence[tuple[int, hlo.Place | None]]) -> list[tuple[int, str]]:
    """Memory over the program, by the maximum of each of as many stretches as a picture shows."""
    width = -(-len(points) // _POINTS) or 1
    parts = [max(points[n:n + width], key=lambda p: p[0]) for n in range(0, len(points), width)]
    return [(size, line_of(place)) for size, place in parts]
