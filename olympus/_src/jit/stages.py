"""Ahead of time: `Traced`, `Lowered` and `Compiled`, the stages that `jit` goes through by itself.

Each stage is made from the one before and shows its contents. None can be pickled: `export` makes
programs for other processes.
"""

from __future__ import annotations

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, cast, runtime_checkable

import numpy as np

from ..base import errors, lib, source
from ..base.lib import mlir
from ..base.logs import timed
from ..base.typing import Array, Device, IrModule, PyTree
from ..base.util import lazy_imports, short_number, shortened
from ..core import reuse
from ..core.effects import Effect
from ..core.ir import ClosedOlympuspr
from ..core.primitive import Primitive
from ..core.trace import REFERENCES, Tracer, typeof
from ..devices.array import layout_of, stored
from ..devices.devices import counting_client
from ..interpreters.passes import arrays_only
from ..lowering.context import ModuleContext
from ..lowering.linking import external, internal
from ..lowering.module import Lowering, lower_program
from ..runtime.compile import Executable, LoadedExecutable, Missed, Placement, load_lowered, relaid
from ..runtime.eager import argument_array, deleted_error, run_program, shard_fallback
from ..types.avals import Aval
from ..types.layout import Format, Layout
from ..types.mesh import AxisType
from ..types.tree import explain_mismatch, flatten_arguments, tree_leaves, tree_map, tree_unflatten
from ..types.tree_paths import flatten_error
from ..types.tree_registry import PyTreeDef, dispatch_registry
from .program import Program

if TYPE_CHECKING:
    from .cost_table import CostTable

with lazy_imports(__name__):
    from ..core import cells as _cells  # where there are references
    from ..interpreters import discharge as _discharge, parts as _parts
    from . import cost_table as _costs, drawing as _drawing

_SHOWN = 200    # equations that a notebook is shown of a stage
_ROOM = 40      # characters for the types of arguments, and of results
CompilerOptions = dict[str, str | bool | int | float]


@runtime_checkable      # by the methods: what C++ made is no instance of a class of ours
class Wrapped(Protocol):
    """The result of `jit`: a function that can also be traced and lowered without a call.

    >>> import olympus
    >>> isinstance(olympus.jit(lambda x: x), olympus.stages.Wrapped)
    True
    """

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Compile if need be, and run."""
        raise NotImplementedError

    def trace(self, *args: PyTree, **kwargs: PyTree) -> Traced:
        """Trace for these arguments (arrays, or anything with a shape and a dtype)."""
        raise NotImplementedError

    def lower(self, *args: PyTree, **kwargs: PyTree) -> Lowered:
        """`trace(…).lower()`."""
        raise NotImplementedError


@dataclasses.dataclass(frozen=True)
class ArgInfo:
    """Type of one argument, and whether it is donated.

    >>> import olympus
    >>> lowered = olympus.jit(lambda x: x + 1).lower(olympus.ShapeDtypeStruct((2,), "float32"))
    >>> (info,), keywords = lowered.args_info
    >>> info.shape, info.donated
    ((2,), False)
    """

    _aval: Aval
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self._aval.dtype

def _few_types_text(avals: Sequence[Aval]) -> str:
    """Types in a few words: as many as there is room for."""
    text = ""
    for n, aval in enumerate(avals):
        more = aval.str_short(short_dtypes=True)
        if n and len(text) + len(more) > _ROOM:     # the first one is shown, however long it is
            return f"{text}, …"
        text += f"{', ' if n else ''}{shortened(more, _ROOM)}"
    return text or "()"


class Stage:
    """The base of all stages, with the trees and types of arguments and results."""

    __slots__ = ("_program", "_placement")

    def __init__(self, program: Program, placement: Placement) -> None:
        self._program, self._placement = program, placement

    def __repr__(self) -> str:
        closed = self._program.closed
        name = shortened(self._program.name, 40)
        types = f"{_few_types_text(closed.in_avals)} -> {_few_types_text(closed.out_avals)}"
        return f"{type(self).__name__}({', '.join([f'{name}: {types}', *self._facts()])})"

    def _facts(self) -> list[str]:
        """The lines of the text besides the name and the types."""
        return []

    def _repr_html_(self) -> str:
        return _drawing.stage_drawing(self, _SHOWN)._repr_html_()

    @property
    def in_tree(self) -> PyTreeDef:
        """The tree of (positional arguments, keyword arguments)."""
        return self._program.in_tree

    @property
    def out_tree(self) -> PyTreeDef:
        """The tree of the result."""
        return self._program.out_tree

    @property
    def in_avals(self) -> PyTree:
        """The avals of the arguments, in their tree."""
        # On a mesh with explicit axes, an argument's type says how it is cut.
        return tree_unflatten(self.in_tree, self._program.in_avals(self._placement.shardings))

    @property
    def out_avals(self) -> PyTree:
        """The avals of the result, in its tree."""
        return tree_unflatten(self.out_tree, self._program.closed.out_avals)

    @property
    def args_info(self) -> PyTree:
        """An `ArgInfo` per argument, in their tree."""
        program = self._program
        return tree_unflatten(self.in_tree, list(map(ArgInfo, program.closed.in_avals,
                                                     program.donated))[len(program.lead):])

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Flat positions of the donated arguments."""
        return tuple(i for i, d in enumerate(self._program.donated) if d)

    @property
    def out_info(self) -> PyTree:
        """A `ShapeDtypeStruct` per result, in its tree."""
        return tree_unflatten(self.out_tree, self._program.out_structs)

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"pickle: a {type(self).__name__} given; it lives in the process that made "
                        "it; use olympus.export to move programs between processes.")

class Traced(Stage):
    """A function traced for given types: the program, not lowered yet.

    >>> import olympus
    >>> olympus.jit(lambda x: x + 1).trace(1.0).olympuspr
    { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    """

    __slots__ = ("fun_name",)

    def __init__(self, program: Program, name: str, placement: Placement) -> None:
        super().__init__(program, placement)
        self.fun_name = name

    def _facts(self) -> list[str]:
        count = len(self._program.closed.eqns)
        return [f"{count} equation{'' if count == 1 else 's'}"]

    @property
    def olympuspr(self) -> ClosedOlympuspr:
        """The traced program."""
        return self._program.closed

    @property
    def effects(self) -> frozenset[Effect]:
        """The effects of the program."""
        return self._program.closed.effects

    @property
    def loolympus(self) -> Traced:
        """The program in terms of array types only: of a value of a user's type its parts."""
        program, placement = self._program, self._placement
        if not program.high:
            lower = program.on_parts()
            return self if lower is program else Traced(lower, self.fun_name, placement)
        for x in program.lead:
            if typeof(x).mutable:
                raise NotImplementedError(
                    f"lower: {self.fun_name} closes over a reference {typeof(x)}, and has values "
                    "of users' types; a function of these is compiled ahead for references among "
                    "its arguments only; pass the reference, or call the jitted function.")
        ins = list(map(_discharge.inner, program.closed.in_avals)) if program.refs else (
            program.closed.in_avals)
        placement = placement._replace(**{field: tuple(_parts.repeated(given, ins))
                                          for field in ("shardings", "memories", "layouts")
                                          if (given := getattr(placement, field))})
        return Traced(program.on_parts(), self.fun_name, placement)

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None,
              _private_parameters: Mapping[Primitive, Callable] | None = None,
              _ordered_effects: int | None = None) -> Lowered:
        """Lower to StableHLO; the module is verified.

        Args:
          lowering_platforms: "cpu", "cuda", "rocm", "tpu"; left out, where the arguments are. With
            several platforms, the module's first argument is the number of the one that it runs on.
            _private_parameters: lowering rules by primitive, in place of its own.
          _ordered_effects: in an export, the number of tokens that main takes.
        """
        if self._program.passing:
            raise errors.UnexpectedTracerError(
                f"lower: {self.fun_name} closes over values that are being traced; a program of "
                "its own is required; pass them as arguments.")
        if self._program.high:
            return self.loolympus.lower(
                lowering_platforms=lowering_platforms, _private_parameters=_private_parameters,
                _ordered_effects=_ordered_effects)
        placement = self._placement
        platforms = lowering_platforms or (placement.platform,)
        # Programs that name no devices are compiled for those that `compile` is told.
        deviceless = AxisType if lowering_platforms is not None else (
            () if placement.committed or placement.shardings else (AxisType.Auto,))
        with timed(self.fun_name, log="lowering", event="olympuspr_to_mlir_module"):
            # Rules of lowering call users' cuda gpu.
            program, kept = self._program.to_lower(internal(platforms[0]), placement)
            several = tuple(map(internal, platforms)) if len(platforms) > 1 else ()
            module, context = lower_program(program._replace(
                rules=_private_parameters, deviceless=deviceless, platforms=several,
                ordered=_ordered_effects))
        # A call would not look for a module that was lowered in another way.
        return Lowered(self._program, module, context, kept, placement,
                       tuple(map(external, platforms)),
                       None if _private_parameters or _ordered_effects or context.places.parts > 1
                       else program)

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Compile and call."""
        return self.lower().compile()(*args, **kwargs)

class Lowered(Stage):
    """A traced function as a verified StableHLO module.

    >>> import olympus
    >>> lowered = olympus.jit(lambda x: x + 1).lower(1.0)
    >>> "stablehlo.add" in lowered.as_text()
    True
    """

    __slots__ = ("_module", "_context", "_kept", "_platforms", "_of")

    def __init__(self, program: Program, module: IrModule, context: ModuleContext,
                 kept: Sequence[bool], placement: Placement, platforms: tuple[str, ...],
                 of: Lowering | None) -> None:
        super().__init__(program, placement)
        self._of = of       # the lowered program, if it says all
        self._module, self._context, self._kept = module, context, kept
        self._platforms = platforms

    def _facts(self) -> list[str]:
        return list(self._platforms)

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text.

        Args:
          dialect: "stablehlo" (default) or "hlo".
          debug_info: whether to print names of operations and source locations.
        """
        if dialect in (None, "stablehlo"):
            return cast("str", self._module.operation.get_asm(enable_debug_info=debug_info))
        if dialect == "hlo":
            return mlir.hlo_module_text(self._module, debug_info)
        raise _unknown_dialect("as_text", dialect)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as the compiler's object: MLIR's for "stablehlo", XLA's for "hlo"."""
        if dialect in (None, "stablehlo"):
            return self._module
        if dialect == "hlo":
            return mlir.computation(self._module)
        raise _unknown_dialect("compiler_ir", dialect)

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimates before optimisation, or None."""
        return lib.hlo_cost_analysis(counting_client(internal(self._platforms[0])),
                                     mlir.hlo_module(self._module))

    def cost_table(self) -> CostTable:
        """The costs of the source's lines, the dearest first, by XLA's estimates."""
        return _costs.cost_table(arrays_only(self._program.closed), internal(self._platforms[0]))

    def compile(self, compiler_options: CompilerOptions | None = None, *,
                device_assignment: Sequence[Device] | None = None) -> Compiled:
        """Compile for the device that the module was lowered for.

        Args:
          compiler_options: XLA flags by name. ValueError, with the names that are near, for one
            that XLA does not know, and for a value that a flag does not take.
          device_assignment: a sequence of as many devices, to compile for others.
        """
        if len(self._platforms) > 1:
            raise NotImplementedError(
                f"compile: {self._context.name} is lowered for {', '.join(self._platforms)}; one "
                "platform is required; lower it for that one.")
        placement, parts = self._placement, self._context.places.parts
        if parts > 1:       # it was lowered for a mesh without devices
            placement = placement.over(self._devices_for(parts, device_assignment))
        elif device_assignment is not None:
            if len(placement.devices) > 1 and {*device_assignment} != {*placement.devices}:
                raise ValueError(f"compile: device_assignment passed to `.compile` must match the "
                                 "device_assignment calculated from array shardings and "
                                 f"out_shardings: {device_assignment} given, {placement.devices} "
                                 "required.")
            placement = placement._replace(devices=tuple(device_assignment))
        program = self._program
        # Options of `jit` hold where they are not given again.
        options = {**(program.options or {}), **(compiler_options or {})}
        # Calls of the function find it, if they would have lowered the same module.
        loaded, interface = load_lowered(self._of, self._module, self._context, placement, options)
        if parts > 1:
            interface = interface.over(placement.devices)
        return Compiled(program, Executable(loaded, arrays_only(program.closed), self._kept,
                                            placement, interface, program.arg_names))

    def _devices_for(self, count: int, device_assignment: Sequence[Device] | None
                     ) -> Sequence[Device]:
        """The devices of the mesh that the program was lowered for without."""
        if device_assignment is None:
            raise RuntimeError(
                f"compile: {self._context.name} is lowered for a mesh without devices; "
                "device_assignment cannot be `None` during compilation: pass one, or lower it for "
                "arguments on a mesh with devices, or under olympus.set_mesh.")
        if len(device_assignment) != count:
            raise ValueError(f"compile: The size of abstract mesh {count} must match the length of "
                             f"device assignment: {len(device_assignment)}.")
        return device_assignment

def _unknown_dialect(what: str, dialect: object) -> ValueError:
    return ValueError(f"{what}: dialect {dialect!r} given; 'stablehlo' or 'hlo' is required.")

class Compiled(Stage):
    """A compiled function of one signature: call it with arguments of exactly those types.

    >>> import olympus
    >>> compiled = olympus.jit(lambda x: x + 1).lower(1.0).compile()
    >>> print(compiled(2.0))
    3.0
    """

    __slots__ = ("_executable", "_cpp")

    def __init__(self, program: Program, executable: Executable) -> None:
        super().__init__(program, executable.placement)
        self._executable, self._cpp = executable, _cpp_call(program, executable)

    def __call__(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """Run the program on the dynamic arguments (static ones are part of it)."""
        try:
            if (whole := self._program.whole) is not None:
                return self._on_parts(whole, args, kwargs)
            return self._cpp(*args, **kwargs)
        except Exception as error:
            if type(error) is ValueError and "onate" in str(error):     # C++'s, without names
                self._check_alive(tree_leaves((args, kwargs)))
            source.filter_traceback(error)
            raise

    call = __call__

    def _check_alive(self, leaves: Sequence[PyTree]) -> None:
        """The error for an argument that is deleted, or donated and given twice."""
        program, executable = self._program, self._executable
        check_alive(program, leaves)
        executable.check_given_once([stored(argument_array(x)) for x, kept in zip(
            leaves, executable.kept) if kept])

    def _on_parts(self, whole: Program, args: tuple, kwargs: dict[str, PyTree]) -> PyTree:
        """The call of a program that takes or returns values of users' types."""
        leaves, tree = flatten_arguments("jit", (args, kwargs), whole.name)
        if tree != whole.in_tree:
            raise _structure_error(whole, args, kwargs)
        lead = len(whole.lead)
        names, avals = whole.arg_names[lead:], whole.closed.in_avals[lead:]
        for name, x, aval in zip(names, leaves, avals, strict=True):
            if (aval.is_high or aval.mutable) and typeof(x) != aval:
                raise TypeError(f"jit: argument {name} of {whole.name} is {typeof(x)}, and the "
                                f"program is compiled for {aval}; call the jitted function, which "
                                "compiles for other types.")
        if len(whole.refs) > 1:
            whole.check_aliases([*whole.lead, *leaves])
        with _cells.lock if whole.refs else contextlib.nullcontext():
            contents = [x._content() if aval.mutable else x
                      for x, aval in zip(leaves, avals, strict=True)]
            args, kwargs = tree_unflatten(tree, [
                tuple(_parts.parts_of([x])) if getattr(aval, "inner", aval).is_high else x
                for x, aval in zip(contents, avals, strict=True)])
            outs = _parts.raised(whole.new_avals, tree_leaves(self._cpp(*args, **kwargs)))
            for i, place in whole.stores.items():
                leaves[i - lead]._put(outs[place])
        return tree_unflatten(whole.out_tree, outs[:whole.out_tree.num_leaves])

    def _facts(self) -> list[str]:
        # Memory shared by a donated argument and the result in its place counts once.
        count, stats = len(self._executable.devices), self.memory_analysis()
        bytes_ = 0 if stats is None else (
            stats.argument_size_in_bytes + stats.output_size_in_bytes + stats.temp_size_in_bytes
            + stats.generated_code_size_in_bytes - stats.alias_size_in_bytes)
        where = self._placement.platform + (f" × {count}" if count > 1 else "")
        return [where, *([short_number(bytes_, "B")] if bytes_ else [])]

    def as_text(self) -> str | None:
        """The optimised program as text, or None where the backend does not keep it."""
        return lib.hlo_text(self._executable.xla)

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimates ('flops', 'bytes accessed', …), or None."""
        return lib.cost_analysis(self._executable.xla)

    def cost_table(self) -> CostTable:
        """The costs of the source's lines, the dearest first, by XLA's estimates.

        Operations are judged one by one, as they are before XLA fuses them.
        """
        return _costs.cost_table(arrays_only(self._program.closed),
                                 self._placement.platform)

    def memory_analysis(self) -> lib.MemoryStats | None:
        """Bytes that the program needs for arguments, results, temporaries and code, or None."""
        return lib.memory_stats(self._executable.xla)

    def runtime_executable(self) -> LoadedExecutable:
        """The runtime's own object."""
        return self._executable.xla

    @property
    def out_info(self) -> PyTree:
        """A `ShapeDtypeStruct` with the sharding per result, in its tree."""
        # A layout is said together with the sharding, in a Format.
        return tree_map(lambda info, sharding: info.update(
            sharding=sharding if info.layout is None else Format(info.layout, sharding)),
                        super().out_info, self.output_shardings)

    @property
    def input_shardings(self) -> PyTree:
        """The sharding of each argument, in their tree; None for arguments that are ignored."""
        lead = len(self._program.lead)
        return tree_unflatten(self.in_tree, self._executable.in_shardings[lead:])

    @property
    def output_shardings(self) -> PyTree:
        """The sharding of each result, in its tree."""
        count = self.out_tree.num_leaves
        return tree_unflatten(self.out_tree, self._executable.out_shardings[:count])

    @property
    def input_formats(self) -> PyTree:
        """The `Format` of each argument, in their tree: layout and sharding.

        Both are None for arguments that the program ignores; a key array's are its words'.
        """
        executable = self._executable
        taken = iter(lib.layouts(executable.xla)[0])    # of the arguments that the program reads
        return tree_unflatten(self.in_tree, [Format() if s is None else _format(next(taken), s)
                                             for s in executable.in_shardings][
                                                 len(self._program.lead):])

    @property
    def output_formats(self) -> PyTree:
        """The `Format` of each result, in its tree: layout and sharding."""
        executable = self._executable
        formats = list(map(_format, lib.layouts(executable.xla)[1], executable.out_shardings))
        return tree_unflatten(self.out_tree, formats[:self.out_tree.num_leaves])

def _format(layout: object, sharding: object) -> Format:
    return Format(Layout.from_pjrt_layout(layout), sharding)

def _cpp_call(program: Program, executable: Executable) -> Callable[..., PyTree]:
    """The C++ callable of a compiled program: types that it met before need no Python of ours."""
    def run(*args: PyTree, **kwargs: PyTree) -> PyTree:
        return miss(*args, **kwargs)[0]     # under disable_jit: it is compiled already

    def miss(*args: PyTree, **kwargs: PyTree) -> Missed:
        try:
            lib.raise_error_of_pjit()
            arrays = _checked_leaves(program, args, kwargs)
            # Nearly all arrays lie by rows, and nearly all programs take them so.
            if any(map(layout_of, arrays)) or executable.layouts:
                arrays = _laid_out(program, executable, arrays)
            flat = list(map(stored, arrays))
            used = reuse.applied(program.name, program.closed, arrays, False)
            result = tree_unflatten(program.out_tree, reuse.with_cells(used, run_program(
                executable, flat, program.name, program.closed)))
        except BaseException as error:
            # C++ would keep the signature, and take no fast path for it.
            lib.forget_signatures(itself)
            source.filter_traceback(error)
            if lib.is_error_of_pjit(error):
                raise flatten_error(f"jit: {program.name}", (args, kwargs), error) from None
            raise
        return result, executable.fastpath(dispatch_registry.flatten(result)[1], flat,
                                          tree_leaves((args, kwargs))), False

    def on_contents(*args: PyTree, **kwargs: PyTree) -> PyTree:
        lead = [x if typeof(x).mutable else argument_array(x) for x in program.lead]
        try:
            return program.on_contents(flat, [*lead, *_checked_leaves(program, args, kwargs)])
        except BaseException as error:
            source.filter_traceback(error)
            raise

    def flat(*arrays: Array) -> list[Array]:
        return run_program(executable, list(map(stored, arrays)), program.name,
                           arrays_only(program.closed))

    if program.refs:
        return on_contents

    # Several devices that get one buffer twice, once to give it up, end the process.
    def guarded(*args: PyTree, **kwargs: PyTree) -> PyTree:
        return (run if may_share((args, kwargs)) else made)(*args, **kwargs)

    made = lib.pjit(program.name, run, miss, [], [], object(), dispatch_registry, shard_fallback)
    itself = weakref.ref(made)      # the collector sees no cycle through C++'s object
    return guarded if executable.exclusive else made


def may_share(arguments: PyTree) -> bool:
    """Whether two arrays in a call's arguments may have memory in common."""
    return lib.may_share([x for x in dispatch_registry.flatten(arguments)[0]
                          if type(x) is lib.ArrayImpl])


def _checked_leaves(program: Program, args: tuple, kwargs: dict[str, PyTree]) -> list[Array]:
    """The flat arrays of a call; TypeError where structure or types are not the traced."""
    leaves, tree = flatten_arguments("jit", (args, kwargs), program.name)
    if tree != program.in_tree:
        raise _structure_error(program, args, kwargs)
    for x in leaves:
        if isinstance(x, Tracer):
            raise TypeError(
                "Cannot apply OLYMPUS transformations to a function lowered and compiled for a "
                f"particular signature. Detected argument of Tracer type {type(x)}")
    arrays = [x if type(x) in REFERENCES else argument_array(x) for x in leaves]
    avals, lead = list(map(typeof, arrays)), len(program.lead)
    expected = program.closed.in_avals[lead:]
    # Types are interned: as a rule they are the same objects.
    if any(a is not b and not _compatible(a, b) for a, b in zip(avals, expected)):
        raise _type_error(program, avals)
    check_alive(program, arrays)
    return arrays


def check_alive(program: Program, leaves: Sequence[PyTree]) -> None:
    """The error for an argument that is deleted: C++'s would not have its name."""
    for name, x in zip(program.arg_names[len(program.lead):], leaves):
        if type(x) is lib.ArrayImpl and x.is_deleted():
            raise deleted_error(f"Compiled: argument {name} of {program.name}", x.aval)


def _laid_out(program: Program, executable: Executable, arrays: list[Array]) -> list[Array]:
    """Arguments in the layouts that a program was compiled for."""
    # Arguments that are not committed may be laid out anew.
    wrong = [f"{name} has {layout_of(x)}, the program {executable.layouts.get(i)}"
             for i, (name, x) in enumerate(zip(program.arg_names, arrays, strict=True))
             if layout_of(x) != executable.layouts.get(i) and x.committed]
    if wrong:
        raise ValueError(f"Compiled: Computation was compiled for input layouts that disagree with "
                         f"the layouts of arguments passed to it: {'; '.join(wrong)} (axes from "
                         "the fastest on; None: by rows); move them with device_put to "
                         "input_formats.")
    return arrays if executable.layouts else [relaid(x, None) for x in arrays]


def _structure_error(program: Program, args: tuple, kwargs: dict[str, PyTree]) -> TypeError:
    expected = tree_unflatten(program.in_tree, program.closed.in_avals[len(program.lead):])
    differences = explain_mismatch(expected, (args, kwargs))
    return TypeError("Function compiled with input pytree does not match the input pytree it "
                     "was called with: " + "; ".join(differences) + ". Call it with the "
                     "dynamic arguments that it was traced with, in the same structure.")


def _type_error(program: Program, avals: Sequence[Aval]) -> TypeError:
    n = len(program.lead)
    lines = [f"Argument '{name}' compiled with {want} and called with {have}"
             for name, want, have in zip(program.arg_names[n:], program.closed.in_avals[n:], avals)
             if not _compatible(have, want)]
    return TypeError("Argument types differ from the types for which this computation was "
                     "compiled. The mismatches are:\n" + "\n".join(lines))


def _compatible(have: Aval, want: Aval) -> bool:
    """Whether an argument fits a compiled program: shape and dtype; weak types may differ."""
    return (have.shape == want.shape and have.dtype == want.dtype
            and have.mutable == want.mutable)

