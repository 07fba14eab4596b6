"""`jit`: trace once per type, compile, and let C++ make the calls.

    C++ pjit object  ──hit──►  executable                      (no Python of ours)
         └──miss──►  JitFunction.miss ─► trace ─► lower ─► compile ─► run, hand C++ the fast path
         └──miss under another trace──►  JitFunction.miss ─► bind `call` with the traced program
"""

from __future__ import annotations

import functools
import inspect
import operator
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any, Protocol, TypedDict, TypeVar, Unpack, overload

import numpy as np

from ..backend import devices
from ..backend.array import stored
from ..backend.compile import Executable, Placement, compile_module
from ..backend.eager import (
    argument_array,
    check_deleted,
    literal_array,
    run_program,
    shard_fallback,
)
from ..backend.lowering import lower_program
from ..backend.nans import debugging
from ..backend.placement import memory_of, placement_of, sharding_of
from ..base import config, errors, lib, source
from ..base.logs import LOGGER, timed
from ..base.typing import P, R
from ..base.util import Memo, Owned, bit_key, name_of, wraps
from ..control.call import call_p
from ..core.check import check_olympuspr
from ..core.context import ThreadState, ctx, current_context
from ..core.evaluate import eval_closed
from ..core.ir import ClosedOlympuspr, DebugInfo, Literal
from ..core.staging import closure_convert, stage
from ..core.trace import Tracer, typeof
from ..interpreters.dce import dce_closed
from ..lax.sharding import constrain, resolve_sharding
from ..types import dtypes
from ..types.avals import ShapedArray, ShapeDtypeStruct, make_aval
from ..types.sharding import NamedSharding
from ..types.tree import flatten_axes, keystr, tree_flatten, tree_flatten_with_path, tree_unflatten
from ..types.tree_registry import dispatch_registry
from .stages import Lowered, Traced

__all__ = ["JitFunction", "jit", "make_jit"]


class Unspecified:
    """The default of shardings: what the arguments say."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UnspecifiedValue"


UNSPECIFIED = Unspecified()
_MOST_PROGRAMS = 4096       # of one function; their code has a bound of its own


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


def jit(fun: Any = UNSPECIFIED, /, *, in_shardings: Any = UNSPECIFIED,
        out_shardings: Any = UNSPECIFIED, static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Sequence[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Sequence[str] | None = None, keep_unused: bool = False,
        device: Any = None, backend: str | None = None, inline: bool = False,
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
    wrapped = lib.pjit(info.name, fun, info.miss, list(info.static_argnums),
                       list(info.static_argnames), object(), dispatch_registry, shard_fallback)
    wraps(fun, attributes=True)(wrapped)
    if isinstance(fun, functools.partial):
        wrapped.__name__ = info.name
    wrapped.__deepcopy__ = info.itself
    wrapped.trace, wrapped.lower = info.trace, info.lower
    wrapped.eval_shape, wrapped.clear_cache = info.eval_shape, info.clear_cache
    info.compiled = weakref.ref(wrapped)    # its methods are not known to the garbage collector
    return wrapped


def _indices(value: Any, what: str) -> tuple[int, ...]:
    if value is None:
        return ()
    values = value if isinstance(value, (tuple, list)) else (value,)
    try:
        return tuple(i.__index__() for i in values)
    except AttributeError:
        raise TypeError(f"jit: {what}={value!r} given; an int or a sequence of ints is required; "
                        "name arguments with static_argnames instead.") from None


def _names(value: Any, what: str) -> tuple[str, ...]:
    if value is None:
        return ()
    values = (value,) if isinstance(value, str) or not isinstance(value, Iterable) else tuple(value)
    if not all(isinstance(v, str) for v in values):
        raise TypeError(f"jit: {what}={value!r} given; a string or strings are required.")
    return values


class Call:
    """One call's arguments, flattened: what tracing and the program's key are made of."""

    __slots__ = ("leaves", "avals", "in_tree", "statics", "static_kwargs", "arity", "key",
                 "cacheable")


class Program:
    """A traced function for one key, with what is made from it later."""

    __slots__ = ("closed", "tracers", "out_tree", "in_tree", "positions", "arg_names", "donated",
                 "name", "executables", "keep_unused", "options", "out_shardings")

    def __init__(self, closed: ClosedOlympuspr, tracers: list[Any], out_tree: Any, call: Call,
                 arg_names: tuple[str, ...], donated: tuple[bool, ...], name: str,
                 keep_unused: bool, options: dict[str, Any] | None,
                 out_shardings: Sequence[Any]) -> None:
        self.closed, self.tracers, self.out_tree = closed, tracers, out_tree
        self.out_shardings = out_shardings
        self.in_tree = call.in_tree
        self.positions = tuple(i for i in range(call.arity) if i not in call.statics)
        self.arg_names, self.donated, self.name = arg_names, donated, name
        self.keep_unused, self.options = keep_unused, options
        self.executables: dict[Any, Executable] = {}

    def lower(self, platform: str, placement: Placement | None = None
              ) -> tuple[Any, Any, tuple[bool, ...]]:
        """(verified module, its context, which inputs it takes)."""
        closed, used = dce_closed(self.closed, [True] * len(self.closed.out_avals))
        kept = tuple(self.keep_unused or u or d for u, d in zip(used, self.donated))
        pr = closed.olympuspr
        info = pr.debug_info
        names = tuple(n for n, k in zip(self.arg_names, kept) if k)
        pr = pr.replace(invars=[v for v, k in zip(pr.invars, kept) if k],
                        debug_info=DebugInfo(info.func_name, names, info.result_paths))
        # A program that may be run again, to find a NaN, keeps its arguments.
        donated = tuple(d and not debugging() for d, k in zip(self.donated, kept) if k)
        program = ClosedOlympuspr(pr, closed.consts)
        aliases = _aliases(program, donated) if any(donated) else ()
        given: tuple[Any, ...] = placement.shardings if placement else ()
        memories: tuple[Any, ...] = placement.memories if placement else ()
        with timed("lowering", self.name):
            module, context = lower_program(
                program, self.name, platform, donated=donated, aliases=aliases,
                result_paths=info.result_paths, devices=placement.several if placement else (),
                shardings=[s for s, k in zip(given, kept) if k], out_shardings=self.out_shardings,
                memories=[m for m, k in zip(memories, kept) if k])
            context.all_reused &= not any(d and a is None for d, a in zip(donated, aliases))
        return module, context, kept

    def executable(self, placement: Placement) -> Executable:
        """Compile for the devices where the arguments are; once."""
        found = self.executables.get(placement)
        if found is None:
            module, context, kept = self.lower(placement.platform, placement)
            loaded = compile_module(module, context, context.place(placement).devices, self.options)
            found = self.executables[placement] = Executable(loaded, self.name, self.closed, kept,
                                                             placement, context)
        return found


def _aliases(program: ClosedOlympuspr, donated: Sequence[bool]) -> list[int | None]:
    """For each donated input the first free result of the same type."""
    free = {}
    for i, aval in enumerate(program.out_avals):
        free.setdefault((aval.shape, aval.dtype), []).append(i)
    aliases: list[int | None] = []
    unused = []
    for aval, d in zip(program.in_avals, donated):
        found = free.get((aval.shape, aval.dtype)) if d else None
        aliases.append(found.pop(0) if found else None)
        if d and not found and aliases[-1] is None:
            unused.append(str(aval))
    if unused:
        source.warn(f"Some donated buffers were not usable: {', '.join(unused)}; no result has "
                    "their shape and dtype. They are deleted all the same.")
    return aliases


def _programs_of(fun: Callable, options: tuple) -> Memo:
    """Programs by function and options: `jit(f)` written twice traces f once.

    Functions are told apart by identity: other callables may be equal and differ.
    """
    try:
        hash(options)
    except TypeError:
        return Memo(_MOST_PROGRAMS)
    if type(fun) is not FunctionType:
        return Memo(_MOST_PROGRAMS)
    return Owned.memo(fun, ("jit", options), _MOST_PROGRAMS)


class JitFunction:
    """A function with its options and its programs; C++ calls `miss` when it has no executable."""

    def __init__(self, fun: Callable, library: bool = False, *, static_argnums: Any = None,
                 static_argnames: Any = None, donate_argnums: Any = None,
                 donate_argnames: Any = None, keep_unused: bool = False, device: Any = None,
                 backend: str | None = None, inline: bool = False,
                 compiler_options: Any = None, in_shardings: Any = UNSPECIFIED,
                 out_shardings: Any = UNSPECIFIED) -> None:
        self.fun = fun
        self.in_shardings = None if in_shardings is UNSPECIFIED else in_shardings
        self.out_shardings = None if out_shardings is UNSPECIFIED else out_shardings
        self.name = name_of(fun)
        if library:
            self.name = self.name.lstrip("_")   # what the user called
        self.static_argnums, self.static_argnames = self._resolve(
            static_argnums, static_argnames, "static")
        self.donate_argnums, self.donate_argnames = self._resolve(
            donate_argnums, donate_argnames, "donate")
        both = [*{*self.static_argnums} & {*self.donate_argnums},
                *{*self.static_argnames} & {*self.donate_argnames}]
        if both:
            raise ValueError(f"jit: argument {both[0]!r} of {self.name} is static and donated; one "
                             "of them is required: static arguments have no buffer.")
        self.keep_unused, self.inline, self.options = keep_unused, inline, compiler_options
        self.device = device
        if backend is not None:
            self.device = devices.client(backend).local_devices()[0]
        self.programs = _programs_of(fun, (
            self.static_argnums, self.static_argnames, self.donate_argnums, self.donate_argnames,
            keep_unused, repr(sorted((compiler_options or {}).items())),
            *map(_sharding_key, (self.in_shardings, self.out_shardings))))
        self.library = library
        self.compiled: Any = None   # a weak reference to C++'s object, which refers to this one

    @functools.cached_property
    def signature(self) -> inspect.Signature | None:
        """The function's parameters; None where Python cannot tell. Read by few calls of `jit`."""
        try:
            return inspect.signature(self.fun)
        except (ValueError, TypeError):
            return None

    def _resolve(self, argnums: Any, argnames: Any, what: str
                 ) -> tuple[tuple[int, ...], tuple[str, ...]]:
        """Argnums and argnames; one that is not given is read from the other by the signature."""
        nums, names = _indices(argnums, f"{what}_argnums"), _names(argnames, f"{what}_argnames")
        if not (nums or names) or self.signature is None:
            return nums, names
        parameters = list(self.signature.parameters.values())
        positional = [p.name for p in parameters
                      if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        variadic = any(p.kind is p.VAR_POSITIONAL for p in parameters)
        keywords = any(p.kind is p.VAR_KEYWORD for p in parameters)
        for i in nums:
            if not variadic and not -len(positional) <= i < len(positional):
                raise ValueError(f"jit: {what}_argnums has {i}; {self.name} has {len(positional)} "
                                 "positional arguments; give an index in that range.")
        nums = tuple(i + len(positional) if i < 0 else i for i in nums)
        known = {p.name for p in parameters}
        for name in names:
            if name not in known and not keywords:
                raise ValueError(f"jit: {what}_argnames has {name!r}; {self.name} has arguments "
                                 f"{', '.join(known)}; name one of them.")
        if argnums is None:
            nums = tuple(positional.index(n) for n in names if n in positional)
        elif argnames is None:
            names = tuple(positional[i] for i in nums if i < len(positional)
                          and parameters[i].kind is not inspect.Parameter.POSITIONAL_ONLY)
        return tuple(dict.fromkeys(nums)), tuple(dict.fromkeys(names))

    def itself(self, memo: Any) -> Any:
        """The jitted function: a deep copy of what has one shares it, as that of a function."""
        return self.compiled()

    # From arguments to a program

    def call(self, args: tuple, kwargs: dict[str, Any]) -> Call:
        """Flatten a call: dynamic leaves with their avals, static values, and the key."""
        call = Call()
        if self.static_argnums or self.static_argnames:
            dynamic = tuple([a for i, a in enumerate(args) if i not in self.static_argnums])
            call.statics = {i: args[i] for i in self.static_argnums if i < len(args)}
            call.static_kwargs = {k: kwargs[k] for k in self.static_argnames if k in kwargs}
            kwargs = {k: v for k, v in kwargs.items() if k not in call.static_kwargs}
        else:
            dynamic, call.statics, call.static_kwargs = args, {}, {}
        call.arity = len(args)
        call.leaves, call.in_tree = tree_flatten((dynamic, kwargs))
        try:
            call.avals = tuple([_abstract(x) for x in call.leaves])
        except TypeError:
            raise self._leaf_error(args, kwargs, dynamic) from None
        static_key, call.cacheable = (), True
        if call.statics or call.static_kwargs:
            static_key, call.cacheable = self._static_key(call)
        call.key = (call.in_tree, call.avals, call.arity, static_key,
                    current_context())
        return call

    def _static_key(self, call: Call) -> tuple[tuple, bool]:
        items = [*call.statics.items(), *sorted(call.static_kwargs.items())]
        for where, value in items:
            try:
                hash(value)
            except TypeError:
                name = self._argument_name(where) if isinstance(where, int) else where
                raise ValueError(
                    f"jit: static argument {name} of {self.name} is {value!r} of type "
                    f"{type(value).__name__}, which is not hashable; static arguments must be "
                    "hashable; pass a tuple or another hashable, or make it dynamic.") from None
        return (tuple((where, bit_key(value)) for where, value in items),
                all(_exact(value, self.library) for _, value in items))

    def _argument_name(self, position: int) -> str:
        if self.signature is not None:
            parameters = list(self.signature.parameters.values())
            for i, p in enumerate(parameters):
                if p.kind is p.VAR_POSITIONAL:
                    return f"{p.name}[{position - i}]"
                if i == position:
                    return p.name
        return f"args[{position}]"

    def leaf_names(self, call: Call) -> tuple[str, ...]:
        """A name for each dynamic leaf: the parameter and the path below it."""
        dynamic, kwargs = tree_unflatten(call.in_tree, call.leaves)
        positions = [i for i in range(call.arity) if i not in call.statics]
        names = []
        for position, arg in zip(positions, dynamic):
            base = self._argument_name(position)
            names += [base + keystr(path) for path, _ in tree_flatten_with_path(arg)[0]]
        for key in sorted(kwargs):
            names += [key + keystr(path) for path, _ in tree_flatten_with_path(kwargs[key])[0]]
        return tuple(names)

    def _leaf_error(self, args: tuple, kwargs: dict[str, Any], dynamic: tuple) -> TypeError:
        positions = [i for i in range(len(args)) if i not in self.static_argnums]
        trees = [(self._argument_name(i), a) for i, a in zip(positions, dynamic)]
        for name, arg in (*trees, *kwargs.items()):
            for path, leaf in tree_flatten_with_path(arg)[0]:
                try:
                    _abstract(leaf)
                except TypeError:
                    if self.library:
                        return TypeError(name)      # the function itself says what it takes
                    return TypeError(
                        f"jit: argument {name}{keystr(path)} of {self.name} is {leaf!r} of type "
                        f"{type(leaf).__name__}; arrays and Python numbers are required; mark it "
                        "static (static_argnums, static_argnames), or put it into the aux data of "
                        "a pytree node.")
        return TypeError(f"jit: an argument of {self.name} is not an array")

    def program(self, call: Call) -> Program:
        """The traced program of a call, from the cache or new."""
        found = self.programs.get(call.key)
        if found is not None:
            return found
        if config.log_compiles.value:
            LOGGER.warning("Compiling %s with global shapes and types [%s].", self.name,
                           ", ".join(map(str, call.avals)))
        if config.explain_cache_misses.value and self.programs:
            LOGGER.warning("%s", self._why_again(call))
        out_tree: Any = None
        paths: tuple[str, ...] = ()
        ins, out_shardings = self._input_shardings(call), []

        def flat(*leaves: Any) -> list[Any]:
            nonlocal out_tree, paths
            nonlocal out_shardings
            if ins:
                leaves = tuple(constrain("jit in_shardings", *pair) for pair in zip(leaves, ins))
            dynamic, kwargs = tree_unflatten(call.in_tree, leaves)
            out = self.fun(*_merge(dynamic, call), **kwargs, **call.static_kwargs)
            outs, out_tree = tree_flatten(out)
            self._check_outputs(out, outs)
            if self.out_shardings is not None:
                out_shardings = _resolve("out_shardings", out_tree, self.out_shardings)
                outs = [constrain("jit out_shardings", *pair) for pair in zip(outs, out_shardings)]
            paths = tuple(f"result{keystr(path)}" for path, _ in tree_flatten_with_path(out)[0])
            return outs

        names = self.leaf_names(call)
        with timed("tracing", self.name):
            closed = stage(flat, call.avals, DebugInfo(self.name, names))
        closed.olympuspr.debug_info = DebugInfo(self.name, names, paths)
        if config.enable_checks.value:
            check_olympuspr(closed.olympuspr)
        closed, tracers = closure_convert(closed)
        names = ("",) * len(tracers) + names
        program = Program(closed, tracers, out_tree, call, names,
                          (False,) * len(tracers) + self._donated(call), self.name,
                          self.keep_unused, self.options, [
                              s if type(s) is NamedSharding else None for s in out_shardings])
        if not tracers:
            self.programs[call.key] = program
        return program

    def _why_again(self, call: Call) -> str:
        """How the call differs from the most similar one that there is a program for."""
        near = max(self.programs, key=lambda key: sum(map(operator.eq, key, call.key)))
        in_tree, avals, _, static, context = near
        found = []
        if in_tree != call.in_tree:
            found.append(f"the arguments have the structure {call.in_tree}, before {in_tree}")
        else:
            found += [f"{name} is {new!r}, before {old!r}" for name, new, old
                      in zip(self.leaf_names(call), call.avals, avals, strict=True) if new != old]
        if static != call.key[3]:
            values = {**{self._argument_name(i): x for i, x in call.statics.items()},
                      **call.static_kwargs}
            found.append(f"the static arguments are {values}")
        if context is not call.key[4]:
            found.append("options or named axes differ")
        return (f"jit: {self.name} is traced again at {source.summarize(source.user_frame())}: "
                + "; ".join(found))

    def _input_shardings(self, call: Call) -> list[Any]:
        """The sharding that each leaf must have, or None; empty where nothing is demanded."""
        if self.in_shardings is None:
            return []
        positional, keywords = call.in_tree.children()
        if keywords.num_leaves:
            raise ValueError(f"jit: keyword arguments of {self.name} given; with in_shardings, "
                             "dynamic arguments must be positional.")
        return _resolve("in_shardings", positional, self.in_shardings)

    def _placement(self, call: Call, leaves: Sequence[Any]) -> Placement:
        """Where a call's program runs."""
        where = list(map(sharding_of, leaves))
        for i, wanted in enumerate(self._input_shardings(call)):
            if wanted is None:
                continue
            if where[i] is not None and not where[i].is_equivalent_to(wanted, call.avals[i].ndim):
                raise ValueError(
                    f"jit: argument {self.leaf_names(call)[i]} of {self.name} is committed to "
                    f"{where[i]}; in_shardings has {wanted}; move it with device_put.")
            where[i] = wanted
        found = placement_of(where, self.device)
        if not (self.donate_argnums or self.donate_argnames):
            return found
        return found._replace(memories=tuple(map(memory_of, leaves)))

    def _check_outputs(self, out: Any, outs: Sequence[Any]) -> None:
        for leaf in outs:
            if isinstance(leaf, (Tracer, lib.ArrayImpl, np.ndarray, float, int)):
                continue
            try:
                typeof(leaf)
            except TypeError:
                path = next(p for p, x in tree_flatten_with_path(out)[0] if x is leaf)
                raise TypeError(
                    f"jit: {self.name} returned {leaf!r} of type {type(leaf).__name__} at "
                    f"result{keystr(path)}; arrays and Python numbers are required; return only "
                    "those, or None.") from None

    def _donated(self, call: Call) -> tuple[bool, ...]:
        if not (self.donate_argnums or self.donate_argnames):
            return (False,) * len(call.leaves)
        dynamic, kwargs = tree_unflatten(call.in_tree, call.leaves)
        positions = [i for i in range(call.arity) if i not in call.statics]
        flags: list[bool] = []
        for position, arg in zip(positions, dynamic):
            flags += [position in self.donate_argnums] * len(tree_flatten(arg)[0])
        for key in sorted(kwargs):
            flags += [key in self.donate_argnames] * len(tree_flatten(kwargs[key])[0])
        return tuple(flags)

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
        call = self.call(args, kwargs)
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
        outs = (run_program(executable, flat, self.name) if self.library else
                run_program(executable, flat, f"jit({self.name})", program.closed))
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
        leaves = [literal_array(x) if type(x) is Literal else x for x in call.leaves]
        dynamic, kwargs = tree_unflatten(call.in_tree, leaves)
        return self.compiled()(*_merge(dynamic, call), **kwargs, **call.static_kwargs)

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
        call = self.call(args, kwargs)
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


def _resolve(what: str, tree: Any, shardings: Any) -> list[Any]:
    """The sharding of each leaf, or None."""
    return [None if s is None else resolve_sharding(f"jit {what}", s)
            for s in flatten_axes(f"jit {what}", tree, shardings)]


def _sharding_key(shardings: Any) -> Any:
    leaves, tree = tree_flatten(shardings)
    return tuple(leaves), tree


def _merge(dynamic: Sequence[Any], call: Call) -> list[Any]:
    """Positional arguments with the static ones back in their places."""
    if not call.statics:
        return list(dynamic)
    rest = iter(dynamic)
    return [call.statics[i] if i in call.statics else next(rest) for i in range(call.arity)]


def _abstract(x: Any) -> Any:
    """The aval of an argument: of a value, or of what only has a shape and a dtype."""
    try:
        return x.aval
    except AttributeError:
        pass
    if isinstance(x, (ShapedArray, ShapeDtypeStruct)):
        return x
    try:
        return typeof(x)
    except TypeError:
        if not hasattr(x, "shape") or not hasattr(x, "dtype"):
            raise
        return make_aval(tuple(x.shape), dtypes.canonical_dtype(x.dtype))


def _exact(value: Any, library: bool) -> bool:
    """Whether C++'s comparison (type and ==) tells such a value from every other.

    Users may pass (1,) and (True,), which it does not tell apart; our library passes only ints.
    """
    if isinstance(value, tuple):
        if library:
            return all(type(v) is not bool and _exact(v, library) for v in value)
        return all(not isinstance(v, (int, float, complex, tuple, np.generic)) for v in value)
    if isinstance(value, (float, complex)):
        return value == value and value != 0
    return not isinstance(value, np.generic)
