"""`jit`: trace once per type, compile, and let C++ make the calls.

    C++ pjit object  ──hit──►  executable                      (no Python of ours)
         └──miss──►  JitFunction.miss ─► trace ─► lower ─► compile ─► run, hand C++ the fast path
         └──miss under another trace──►  JitFunction.miss ─► bind `call` with the traced program
"""

from __future__ import annotations

import functools
import operator
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol, TypedDict, TypeVar, Unpack, overload

from ..backend import devices
from ..backend.array import stored
from ..backend.compile import Placement
from ..backend.eager import (
    argument_array,
    check_deleted,
    placed,
    run_program,
    shard_fallback,
)
from ..backend.placement import memory_of, placement_of, sharding_of
from ..base import config, errors, lib, source
from ..base.logs import LOGGER
from ..base.typing import P, PyTree, R
from ..base.util import wraps
from ..control.call import call_p
from ..core import reuse
from ..core.context import ThreadState, ctx
from ..core.evaluate import eval_closed
from ..core.ir import Literal
from ..types.sharding import DeviceLike
from ..types.tree import UNSPECIFIED, tree_unflatten
from ..types.tree_registry import dispatch_registry
from .program import Program, programs_of, trace_program
from .signature import Call, Signature
from .stages import Lowered, Traced

__all__ = ["JitFunction", "jit", "make_jit"]




R_co = TypeVar("R_co", covariant=True)


class Options(TypedDict, total=False):
    """The options of `jit`."""

    in_shardings: Any
    out_shardings: Any
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Sequence[str] | None
    keep_unused: bool
    device: Any
    backend: str | None
    inline: bool
    compiler_options: dict[str, Any] | None


class Jitted(Protocol[P, R_co]):
    """What type checkers know of a jitted function."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Traced: ...
    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered: ...
    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> Any: ...
    def clear_cache(self) -> None: ...


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[Options]) -> Jitted[P, R]: ...


@overload
def jit(**options: Unpack[Options]) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(fun: Any = UNSPECIFIED, /, *, in_shardings: PyTree = UNSPECIFIED,
        out_shardings: PyTree = UNSPECIFIED, static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Sequence[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Sequence[str] | None = None, keep_unused: bool = False,
        device: DeviceLike = None, backend: str | None = None, inline: bool = False,
        compiler_options: dict[str, Any] | None = None) -> Any:
    """Compile a function: traced and compiled by XLA once per type of its arguments.

    Args:
      fun: a function of pytrees of arrays that returns one; it must not depend on anything else
        that changes. Without it, a decorator with these options is returned.
      in_shardings, out_shardings: where arguments and results are, as `with_sharding_constraint`
        takes it: prefixes of the tuple of dynamic positional arguments and of the result. None and
        the default leave it to the arguments and to XLA. Uncommitted arguments are moved, others
        must be there.
      static_argnums, static_argnames: arguments that are Python values of the program: hashable;
        one compilation for each value (1, 1.0 and True are three).
      donate_argnums, donate_argnames: arguments whose buffers the program may reuse; the arrays are
        deleted by the call.
      keep_unused: pass arguments to the program that it does not read.
      device, backend: where to run, if the arguments do not say.
      inline: put the equations into the caller's program instead of a call.
      compiler_options: XLA flags for this function.

    Returns:
      A function with the methods `trace`, `lower` and `eval_shape`.

    >>> import olympus, olympus.numpy as onp
    >>> @olympus.jit
    ... def f(x):
    ...     return onp.sin(x) * 2
    >>> f(0.)
    Array(0., dtype=float32, weak_type=True)
    """
    options = {"static_argnums": static_argnums, "static_argnames": static_argnames,
               "donate_argnums": donate_argnums, "donate_argnames": donate_argnames,
               "keep_unused": keep_unused, "device": device, "backend": backend,
               "inline": inline, "compiler_options": compiler_options,
               "in_shardings": in_shardings, "out_shardings": out_shardings}
    if fun is UNSPECIFIED:
        return lambda f: make_jit(f, options)
    return make_jit(fun, options)


def make_jit(fun: Callable, options: dict[str, Any], library: bool = False) -> Any:
    """`jit` of one function; `library` says that static arguments are Olympus's own."""
    if not callable(fun):
        raise TypeError(f"jit: {fun!r} given; a callable is required; write olympus.jit(f), or "
                        "olympus.jit(**options) as a decorator.")
    info = JitFunction(fun, library, **options)
    wrapped = lib.pjit(info.name, fun, info.miss, list(info.signature.static_argnums),
                       list(info.signature.static_argnames), object(), dispatch_registry,
                       shard_fallback)
    wraps(fun, attributes=True)(wrapped)
    if isinstance(fun, functools.partial):
        wrapped.__name__ = info.name
    wrapped.__deepcopy__ = info.itself
    wrapped.trace, wrapped.lower = info.trace, info.lower
    wrapped.eval_shape, wrapped.clear_cache = info.eval_shape, info.clear_cache
    info.compiled = weakref.ref(wrapped)    # its methods are not known to the garbage collector
    return wrapped


class JitFunction:
    """A function with its options and its programs; C++ calls `miss` when it has no executable."""

    # No base classes: C++ may call with an error set, and then Python finds in the class of `self`
    # only what is written there.

    def __init__(self, fun: Callable, library: bool = False, *, static_argnums: Any = None,
                 static_argnames: Any = None, donate_argnums: Any = None,
                 donate_argnames: Any = None, keep_unused: bool = False, device: Any = None,
                 backend: str | None = None, inline: bool = False,
                 compiler_options: Any = None, in_shardings: Any = UNSPECIFIED,
                 out_shardings: Any = UNSPECIFIED) -> None:
        self.signature = Signature(
            fun, library, static_argnums, static_argnames, donate_argnums, donate_argnames,
            *[None if s is UNSPECIFIED else s for s in (in_shardings, out_shardings)])
        self.name, self.library = self.signature.name, library
        if device is not None and not isinstance(device, lib.Device):
            raise TypeError(f"jit: device {device!r} given; a Device of olympus.devices(), or None,"
                            " is required.")
        if compiler_options and not isinstance(compiler_options, Mapping):
            raise TypeError(f"jit: compiler_options {compiler_options!r} given; a dict from names "
                            "of XLA's flags is required.")
        self.keep_unused, self.inline = bool(keep_unused), bool(inline)
        self.device = device
        self.options = None if compiler_options is None else dict(compiler_options)
        if backend is not None:
            self.device = devices.client(backend).local_devices()[0]
        self.programs = programs_of(fun, (
            *self.signature.key, self.keep_unused,
            repr(sorted(compiler_options.items())) if compiler_options else None))
        self.compiled: Any = None   # a weak reference to C++'s object, which refers to this one

    def itself(self, memo: Any) -> Any:
        """The jitted function: a deep copy of what has one shares it, as that of a function."""
        return self.compiled()

    # From arguments to a program

    def program(self, call: Call) -> Program:
        """The traced program of a call, from the cache or new."""
        found = self.programs.get(call.key)
        if found is not None:
            return found
        if config.no_tracing.value:
            raise RuntimeError(
                f"jit: {self.name} is called with types [{', '.join(map(str, call.avals))}], for "
                "which it has not been traced, and the option olympus_no_tracing is set; call it "
                "with these types before.")
        if config.log_compiles.value:
            LOGGER.warning("Compiling %s with global shapes and types [%s].", self.name,
                           ", ".join(map(str, call.avals)))
        if config.explain_cache_misses.value and self.programs:
            LOGGER.warning("%s", self._why_again(call))
        program = trace_program(self.signature, call, self.keep_unused, self.options)
        if not program.tracers:
            self.programs[call.key] = program
        return program

    def _why_again(self, call: Call) -> str:
        """How the call differs from the most similar one that there is a program for."""
        near = max(self.programs, key=lambda key: sum(map(operator.eq, key, call.key)))
        in_tree, avals, _, static, context = near
        found, signature = [], self.signature
        if in_tree != call.in_tree:
            found.append(f"the arguments have the structure {call.in_tree}, before {in_tree}")
        else:
            names = signature.leaf_names(call)
            found += [f"{name} is {new!r}, before {old!r}" for name, new, old
                      in zip(names, call.avals, avals, strict=True) if new != old]
        if static != call.key[3]:
            values = {**{signature.argument_name(i): x for i, x in call.statics.items()},
                      **call.static_kwargs}
            found.append(f"the static arguments are {values}")
        if context is not call.key[4]:
            found.append("options or named axes differ")
        return (f"jit: {self.name} is traced again at {source.summarize(source.user_frame())}: "
                + "; ".join(found))

    def _placement(self, call: Call, leaves: Sequence[Any]) -> Placement:
        """Where a call's program runs."""
        where = list(map(sharding_of, leaves))
        for i, wanted in enumerate(self.signature.input_shardings(call)):
            if wanted is None:
                continue
            if where[i] is not None and not where[i].is_equivalent_to(wanted, call.avals[i].ndim):
                name = self.signature.leaf_names(call)[i]
                raise ValueError(
                    f"jit: argument {name} of {self.name} is committed to {where[i]}; "
                    f"in_shardings has {wanted}; move it with device_put.")
            where[i] = wanted
        found = placement_of(where, self.device)
        if not self.signature.donates:
            return found
        return found._replace(memories=tuple(map(memory_of, leaves)))

    # Calls

    def miss(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """Called by C++ with the user's arguments: (result, fast path or None, drop the entry)."""
        try:
            return self._miss(args, kwargs)
        except Exception as error:
            source.filter_traceback(error)
            if type(error) is SystemError and isinstance(error.__cause__, RecursionError):
                raise error.__cause__ from None     # C++'s, which calls us with it still set
            raise

    def _miss(self, args: tuple, kwargs: dict[str, Any]) -> tuple[Any, Any, bool]:
        call = self.signature.call(args, kwargs)
        if self.library and Literal in map(type, call.leaves):
            return self._with_arrays(call), None, False
        program = self.program(call)
        if ctx.trace is not ThreadState.trace or program.tracers:
            operands = (*program.tracers, *call.leaves)
            if self.inline:
                outs = eval_closed(program.closed, *operands)
            else:
                outs = call_p.bind(*operands, name=self.name, olympuspr=program.closed)
            return tree_unflatten(program.out_tree, outs), None, False
        arrays = [argument_array(x) for x in call.leaves]
        if self.library:
            check_deleted(self.name, arrays)
        else:
            self._check_donated(program, arrays)
        executable = program.executable(self._placement(call, arrays))
        flat = [stored(x) for x in arrays]
        name = self.name if self.library else f"jit({self.name})"
        used = reuse.applied(name, program.closed, arrays, self.library)
        outs = reuse.keep(used, run_program(executable, flat, name,
                                            None if self.library else program.closed))
        result = tree_unflatten(program.out_tree, outs)
        for x, donated in zip(arrays, program.donated):
            if donated:     # C++ passes arrays that were deleted so on to `miss`, which explains
                stored(x).delete()
        if not call.cacheable or not executable.all_reused or self.device is not None or ctx.axes:
            return result, None, False
        out_tree = dispatch_registry.flatten(result)[1]
        return result, executable.fastpath(out_tree, flat), False

    def _with_arrays(self, call: Call) -> Any:
        """The call of a library function with literals on the device, which C++ knows."""
        leaves = list(map(placed, call.leaves))
        dynamic, kwargs = tree_unflatten(call.in_tree, leaves)
        return self.compiled()(*call.merged(dynamic), **kwargs, **call.static_kwargs)

    def _check_donated(self, program: Program, arrays: Sequence[Any]) -> None:
        for name, x in zip(program.arg_names, arrays):
            if type(x) is lib.ArrayImpl and x.is_deleted():
                raise errors.DonatedArgumentError(
                    f"jit: argument {name} of {self.name} is an array {x.aval} that has been "
                    f"deleted, by delete() or because it was donated to an earlier call, at "
                    f"{source.summarize(source.user_frame())}; a donated argument may not be used "
                    "again; use the call's result, or do not donate it.")

    # Stages

    def trace(self, *args: Any, **kwargs: Any) -> Traced:
        """Trace for these arguments (arrays, or anything with shape and dtype)."""
        call = self.signature.call(args, kwargs)
        return Traced(self.program(call), self.name, self._placement(call, call.leaves))

    def lower(self, *args: Any, **kwargs: Any) -> Lowered:
        """`trace(…).lower()`."""
        return self.trace(*args, **kwargs).lower()

    def clear_cache(self) -> None:
        """Forget this function's programs; they are made anew when next called."""
        self.programs.cache_clear()
        compiled = self.compiled()
        if compiled is not None:
            compiled._clear_cache()

    def eval_shape(self, *args: Any, **kwargs: Any) -> Any:
        """The result's shapes and dtypes, without running anything."""
        return self.trace(*args, **kwargs).out_info
