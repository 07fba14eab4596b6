"""Ahead of time: `Traced`, `Lowered` and `Compiled`, the stages that `jit` goes through by itself.

Each stage is made from the one before and shows what it holds. None can be pickled: `export` makes
programs for other processes.
"""

from __future__ import annotations

import dataclasses
from typing import Any, Protocol, runtime_checkable

import numpy as np

from ..backend.array import stored
from ..backend.compile import Executable, Placement, compile_module
from ..backend.devices import client
from ..backend.eager import argument_array, run_program, shard_fallback
from ..backend.module import lower_program
from ..base import errors, lib, source
from ..base.lib import mlir
from ..base.logs import timed
from ..core import reuse
from ..core.trace import Tracer, typeof
from ..types.avals import ShapeDtypeStruct
from ..types.layout import Format, Layout
from ..types.tree import explain_mismatch, tree_flatten, tree_map, tree_unflatten
from ..types.tree_registry import dispatch_registry

__all__ = ["ArgInfo", "Compiled", "CompilerOptions", "Lowered", "Stage", "Traced",
           "Wrapped"]

CompilerOptions = dict[str, str | bool | int | float]


@runtime_checkable
class Wrapped(Protocol):
    """What `jit` returns: a function that can also be traced and lowered without being called.

    >>> import olympus
    >>> isinstance(olympus.jit(lambda x: x), olympus.stages.Wrapped)
    True
    """

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compile if need be, and run."""
        raise NotImplementedError

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for these arguments (arrays, or anything with a shape and a dtype)."""
        raise NotImplementedError

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
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

    _aval: Any
    donated: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return self._aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self._aval.dtype

def _struct(aval: Any) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(aval.shape, aval.dtype, weak_type=aval.weak_type)

class Stage:
    """What all stages know: the trees and types of arguments and results."""

    __slots__ = ("_program",)

    def __init__(self, program: Any) -> None:
        self._program = program

    @property
    def in_tree(self) -> Any:
        """The tree of (positional arguments, keyword arguments)."""
        return self._program.in_tree

    @property
    def out_tree(self) -> Any:
        """The tree of the result."""
        return self._program.out_tree

    @property
    def in_avals(self) -> Any:
        """The avals of the arguments, in their tree."""
        return tree_unflatten(self.in_tree, self._program.closed.in_avals)

    @property
    def out_avals(self) -> Any:
        """The avals of the result, in its tree."""
        return tree_unflatten(self.out_tree, self._program.closed.out_avals)

    @property
    def args_info(self) -> Any:
        """An `ArgInfo` per argument, in their tree."""
        program = self._program
        return tree_unflatten(self.in_tree, list(map(ArgInfo, program.closed.in_avals,
                                                     program.donated)))

    @property
    def donate_argnums(self) -> tuple[int, ...]:
        """Flat positions of the donated arguments."""
        return tuple(i for i, d in enumerate(self._program.donated) if d)

    @property
    def out_info(self) -> Any:
        """A `ShapeDtypeStruct` per result, in its tree."""
        return tree_unflatten(self.out_tree, list(map(_struct, self._program.closed.out_avals)))

    def __reduce__(self) -> Any:
        raise TypeError(f"pickle: a {type(self).__name__} given; it lives in the process that made "
                        "it; use olympus.export to move programs between processes.")

class Traced(Stage):
    """A function traced for given types: the program, not lowered yet.

    >>> import olympus
    >>> olympus.jit(lambda x: x + 1).trace(1.0).olympuspr
    { lambda ; a:f32[]. let b:f32[] = add a 1.0:f32[] in (b,) }
    """

    __slots__ = ("fun_name", "_placement")

    def __init__(self, program: Any, name: str, placement: Placement) -> None:
        super().__init__(program)
        self.fun_name, self._placement = name, placement

    @property
    def olympuspr(self) -> Any:
        """The traced program."""
        return self._program.closed

    @property
    def effects(self) -> Any:
        """What the program does besides computing."""
        return self._program.closed.effects

    @property
    def loolympus(self) -> Traced:
        """The program in terms of array types only: itself, since there are no others."""
        return self

    def lower(self, *, lowering_platforms: tuple[str, ...] | None = None,
              _private_parameters: Any = None) -> Lowered:
        """Lower to StableHLO for one platform (the default backend's); the module is verified."""
        if self._program.tracers:
            raise errors.UnexpectedTracerError(
                f"lower: {self.fun_name} closes over values that are being traced; a program of "
                "its own is required; pass them as arguments.")
        if lowering_platforms is not None and len(lowering_platforms) != 1:
            raise ValueError(f"lower: platforms {lowering_platforms} given; one platform is "
                             "required; lower once for each.")
        placement = self._placement
        platform = lowering_platforms[0] if lowering_platforms else placement.platform
        program, kept = self._program.to_lower(platform, placement)
        with timed("lowering", self.fun_name):
            module, context = lower_program(**program)
        return Lowered(self._program, module, context, kept, placement)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compile and call."""
        return self.lower().compile()(*args, **kwargs)

class Lowered(Stage):
    """A traced function as a verified StableHLO module.

    >>> import olympus
    >>> lowered = olympus.jit(lambda x: x + 1).lower(1.0)
    >>> "stablehlo.add" in lowered.as_text()
    True
    """

    __slots__ = ("_module", "_context", "_kept", "_placement")

    def __init__(self, program: Any, module: Any, context: Any, kept: Any, placement: Placement
                 ) -> None:
        super().__init__(program)
        self._module, self._context, self._kept = module, context, kept
        self._placement = placement

    def as_text(self, dialect: str | None = None, *, debug_info: bool = False) -> str:
        """The module as text.

        Args:
          dialect: "stablehlo" (default) or "hlo".
          debug_info: whether to print source locations.
        """
        if dialect in (None, "stablehlo"):
            return self._module.operation.get_asm(enable_debug_info=debug_info)
        if dialect == "hlo":
            return mlir.hlo_module_text(self._module)
        raise _unknown_dialect("as_text", dialect)

    def compiler_ir(self, dialect: str | None = None) -> Any:
        """The module as the compiler's object: MLIR's for "stablehlo", XLA's for "hlo"."""
        if dialect in (None, "stablehlo"):
            return self._module
        if dialect == "hlo":
            return mlir.hlo_module(self._module)
        raise _unknown_dialect("compiler_ir", dialect)

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimates before optimisation, or None."""
        return lib.hlo_cost_analysis(client(self._placement.platform),
                                     mlir.hlo_module(self._module))

    def compile(self, compiler_options: CompilerOptions | None = None, *,
                device_assignment: Any = None) -> Compiled:
        """Compile for the device that the module was lowered for.

        Args:
          compiler_options: XLA flags by name; an unknown one raises ValueError.
          device_assignment: a sequence of as many devices, to compile for others.
        """
        placement = self._placement
        if device_assignment is not None:
            placement = placement._replace(devices=tuple(device_assignment))
        program = self._program
        options = {**(program.options or {}), **(compiler_options or {})}
        interface = self._context.interface
        loaded = compile_module(self._module, self._context, interface.place(placement).devices,
                                options)
        return Compiled(program, Executable(loaded, program.closed, self._kept, placement,
                                            interface))

def _unknown_dialect(what: str, dialect: Any) -> ValueError:
    return ValueError(f"{what}: dialect {dialect!r} given; 'stablehlo' or 'hlo' is required.")

class Compiled(Stage):
    """A compiled function of one signature: call it with arguments of exactly those types.

    >>> import olympus
    >>> compiled = olympus.jit(lambda x: x + 1).lower(1.0).compile()
    >>> print(compiled(2.0))
    3.0
    """

    __slots__ = ("_executable", "_cpp")

    def __init__(self, program: Any, executable: Executable) -> None:
        super().__init__(program)
        self._executable, self._cpp = executable, _cpp_call(program, executable)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program on the dynamic arguments (static ones are part of it)."""
        return self._cpp(*args, **kwargs)

    call = __call__

    def as_text(self) -> str | None:
        """The optimised program as text, or None where the backend does not keep it."""
        return lib.hlo_text(self._executable.xla)

    def cost_analysis(self) -> dict[str, float] | None:
        """XLA's estimates ('flops', 'bytes accessed', …), or None."""
        return lib.cost_analysis(self._executable.xla)

    def memory_analysis(self) -> Any:
        """Bytes that the program needs for arguments, results, temporaries and code, or None."""
        return lib.memory_stats(self._executable.xla)

    def runtime_executable(self) -> Any:
        """The runtime's own object."""
        return self._executable.xla

    @property
    def out_info(self) -> Any:
        """A `ShapeDtypeStruct` with the sharding per result, in its tree."""
        return tree_map(lambda info, sharding: info.update(sharding=sharding), super().out_info,
                        self.output_shardings)

    @property
    def input_shardings(self) -> Any:
        """The sharding of each argument, in their tree; None for what the program ignores."""
        return tree_unflatten(self.in_tree, self._executable.in_shardings)

    @property
    def output_shardings(self) -> Any:
        """The sharding of each result, in its tree."""
        return tree_unflatten(self.out_tree, self._executable.out_shardings)

    @property
    def input_formats(self) -> Any:
        """The `Format` of each argument, in their tree: layout and sharding.

        Both are None for what the program ignores; a key array's are those of its words.
        """
        executable = self._executable
        taken = iter(lib.layouts(executable.xla)[0])
        return tree_unflatten(self.in_tree, [Format() if s is None else _format(next(taken), s)
                                             for s in executable.in_shardings])

    @property
    def output_formats(self) -> Any:
        """The `Format` of each result, in its tree: layout and sharding."""
        executable = self._executable
        return tree_unflatten(self.out_tree, list(map(_format, lib.layouts(executable.xla)[1],
                                                      executable.out_shardings)))

def _format(layout: Any, sharding: Any) -> Format:
    return Format(Layout.from_pjrt_layout(layout), sharding)

def _cpp_call(program: Any, executable: Executable) -> Any:
    """The C++ callable of a compiled program: types that it met before need no Python of ours."""
    def run(*args: Any, **kwargs: Any) -> Any:
        return miss(*args, **kwargs)[0]     # under disable_jit: it is compiled already

    def miss(*args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        try:
            arrays = _checked_leaves(program, args, kwargs)
            flat = list(map(stored, arrays))
            used = reuse.applied(program.name, program.closed, arrays, False)
            result = tree_unflatten(program.out_tree, reuse.keep(used, run_program(
                executable, flat, program.name, program.closed)))
        except Exception as error:
            source.filter_traceback(error)
            raise
        return result, executable.fastpath(dispatch_registry.flatten(result)[1], flat), False

    return lib.pjit(program.name, run, miss, [], [], object(), dispatch_registry, shard_fallback)


def _checked_leaves(program: Any, args: tuple, kwargs: dict[str, Any]) -> list[Any]:
    """The flat arrays of a call; TypeError where structure or types are not the traced."""
    leaves, tree = tree_flatten((args, kwargs))
    if tree != program.in_tree:
        raise _structure_error(program, args, kwargs)
    for x in leaves:
        if isinstance(x, Tracer):
            raise TypeError(
                "Cannot apply OLYMPUS transformations to a function lowered and compiled for a "
                f"particular signature. Detected argument of Tracer type {type(x)}")
    arrays = list(map(argument_array, leaves))
    avals = list(map(typeof, arrays))
    expected = program.closed.in_avals
    if any(a is not b and not _compatible(a, b) for a, b in zip(avals, expected)):
        raise _type_error(program, avals)
    for name, x in zip(program.arg_names, arrays):
        if type(x) is lib.ArrayImpl and x.is_deleted():
            raise errors.DonatedArgumentError(
                f"Compiled: argument {name} of {program.name} is an array {x.aval} that "
                "has been deleted, by delete() or because it was donated, at "
                f"{source.summarize(source.user_frame())}; it may not be used again.")
    return arrays


def _structure_error(program: Any, args: tuple, kwargs: dict[str, Any]) -> TypeError:
    expected = tree_unflatten(program.in_tree, program.closed.in_avals)
    differences = explain_mismatch(expected, (args, kwargs))
    return TypeError("Function compiled with input pytree does not match the input pytree it "
                     "was called with: " + "; ".join(differences) + ". Call it with the "
                     "dynamic arguments that it was traced with, in the same structure.")


def _type_error(program: Any, avals: list[Any]) -> TypeError:
    lines = [f"Argument '{name}' compiled with {want} and called with {have}"
             for name, want, have in zip(program.arg_names, program.closed.in_avals, avals)
             if not _compatible(have, want)]
    return TypeError("Argument types differ from the types for which this computation was "
                     "compiled. The mismatches are:\n" + "\n".join(lines))


def _compatible(have: Any, want: Any) -> bool:
    """Whether an argument fits a compiled program: shape and dtype; weak types may differ."""
    return have.shape == want.shape and have.dtype == want.dtype

