"""`jit`: trace once per type, compile, and let C++ make the calls.

    C++ pjit object  ──hit──►  executable                      (no Python of ours)
         └──miss──►  JitFunction.miss ─► trace ─► lower ─► compile ─► run, hand C++ the fast path
         └──miss under another trace──►  JitFunction.miss ─► bind `call` with the traced program
"""

from __future__ import annotations

import enum
import functools
import inspect
import itertools
import sys
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import nullcontext
from types import CodeType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypedDict, TypeVar, Unpack, overload
from weakref import WeakKeyDictionary

from ..base import config, lib, source
from ..base.errors import IncompatibleDevicesError, said
from ..base.lib.executables import CompilerOptions
from ..base.logs import LOGGER
from ..base.typing import Array, ArrayLike, P, PyTree, R
from ..base.util import lazy_imports, unwrapped, wraps
from ..control.call import call_p
from ..core import reuse
from ..core.context import ThreadState, ctx
from ..core.evaluate import eval_closed
from ..core.ir import Literal
from ..core.staging import recorder
from ..core.trace import REFERENCES, Tracer, check_usable, valid_olympustype
from ..devices import devices
from ..devices.array import stored
from ..interpreters.passes import arrays_only
from ..lax.sharding import constrain
from ..runtime.compile import Missed, Placement
from ..runtime.eager import (
    PjitFunction, argument_array, check_deleted, deleted_error, placed, run_program, shard_fallback,
)
from ..runtime.nans import debugging
from ..runtime.placement import is_abstract, layouts_of, memory_of, placement_of, sharding_of
from ..types.avals import AbstractValue, ShapeDtypeStruct
from ..types.layout import demanded_layout
from ..types.mesh import current_mesh, mesh_around
from ..types.sharding import DeviceLike, Sharding, demanded_memory, make_single_device_sharding
from ..types.tree import UNSPECIFIED, tree_map, tree_unflatten
from ..types.tree_paths import flatten_error
from ..types.tree_registry import dispatch_registry
from .program import Program, anew, programs_of, shares_programs, trace_program
from .signature import WHOLE, Arguments, Item, Signature
from .stages import Lowered, Traced, may_share

if TYPE_CHECKING:
    from ..runtime.hosts import Watched
    from .recompiles import CacheInfo, Explanation

with lazy_imports(__name__):
    from ..interpreters import parts as _parts
    from ..runtime import failures as _failures, hosts as _hosts
    from . import (
        checked as _checked, guards as _guards, persistent as _persistent,
        recompiles as _recompiles,
    )

R_co = TypeVar("R_co", covariant=True)


class Inline(enum.Enum):
    """The time at which `jit` inlines a function into its caller's program: for `jit(inline=…)`.

    OLYMPUS_EARLY puts its equations there when it is traced, as True does. The others leave a call,
    as False does: XLA puts called functions into their callers, on CPU all of them.

    >>> import olympus
    >>> f = olympus.jit(lambda x: x + 1, inline=olympus.Inline.OLYMPUS_EARLY)
    >>> print(olympus.make_olympuspr(f)(1))
    { lambda ; a:i32[]. let b:i32[] = add a 1:i32[] in (b,) }
    """

    OLYMPUS_EARLY = enum.auto()
    OLYMPUS_LATE = enum.auto()
    XLA_EARLY = enum.auto()
    XLA_LATE = enum.auto()
    AUTO = enum.auto()


class Options(TypedDict, total=False):
    """The options of `jit`, for type checkers."""

    in_shardings: PyTree
    out_shardings: PyTree
    static_argnums: int | Sequence[int] | None
    static_argnames: str | Sequence[str] | None
    donate_argnums: int | Sequence[int] | None
    donate_argnames: str | Sequence[str] | None
    keep_unused: bool
    device: DeviceLike
    backend: str | None
    inline: bool | Inline
    compiler_options: CompilerOptions | None
    persist: bool
    hold: str | None
    kernels: str | None
    max_traces: int | None
    on_retrace: str | Callable[[Explanation], None]
    guards: str | None
    checks: Iterable[str]


class JitOptions(NamedTuple):
    """The options of a jitted function: the arguments of `jit` but `checks`, and two more."""

    in_shardings: PyTree = UNSPECIFIED
    out_shardings: PyTree = UNSPECIFIED
    static_argnums: int | Sequence[int] | None = None
    static_argnames: str | Sequence[str] | None = None
    donate_argnums: int | Sequence[int] | None = None
    donate_argnames: str | Sequence[str] | None = None
    keep_unused: bool = False
    device: DeviceLike = None
    backend: str | None = None
    inline: bool | Inline = False
    compiler_options: CompilerOptions | None = None
    persist: bool = False
    hold: str | None = None
    kernels: str | None = None
    max_traces: int | None = None
    on_retrace: str | Callable[[Explanation], None] = "warn"
    guards: str | None = None
    on_mesh: bool = False   # whether `with mesh:` says where it runs, and not set_mesh only
    notes: bool = True      # whether its failures may be noted, to be raised later

    def check(self) -> None:
        """An error for options that are wrong for every function."""
        device, flags = self.device, self.compiler_options
        if device is not None and not isinstance(device, lib.Device):
            raise TypeError(f"jit: device {device!r} given; a Device of olympus.devices(), or None,"
                            " is required.")
        if flags and not isinstance(flags, Mapping):
            raise TypeError(f"jit: compiler_options {flags!r} given; a dict from names "
                            "of XLA's flags is required.")
        for what, mode in (("hold", self.hold), ("kernels", self.kernels)):
            if mode not in (None, "auto", "off", "report"):
                raise ValueError(f"jit: {what}={mode!r} given; 'auto', 'off', 'report', or None "
                                 f"for what olympus_{what} says, is required.")
        if self.max_traces is not None or self.on_retrace != "warn":
            _recompiles.check_limit(self.max_traces, self.on_retrace)
        if self.guards is not None:
            _guards.check_mode(self.guards)
        if self.backend is None and device is None:
            return
        for what, sharding in (("in", self.in_shardings), ("out", self.out_shardings)):
            if sharding is not UNSPECIFIED and sharding is not None:
                raise ValueError(f"jit: {what}_shardings={sharding} given. If backend or device is "
                                 f"specified on jit, then {what}_shardings should not be "
                                 "specified.")
        if self.backend is not None and device is not None:
            raise ValueError(f"jit: device={device} and backend={self.backend!r} given; can't "
                             "specify both a device and a backend for jit; leave one out.")


class Jitted(Protocol[P, R_co]):
    """A jitted function, for type checkers."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    def trace(self, *args: P.args, **kwargs: P.kwargs) -> Traced: ...
    def lower(self, *args: P.args, **kwargs: P.kwargs) -> Lowered: ...
    def eval_shape(self, *args: P.args, **kwargs: P.kwargs) -> PyTree: ...
    def clear_cache(self) -> None: ...
    def explain(self, *args: P.args, **kwargs: P.kwargs) -> Explanation: ...
    def cache_info(self) -> CacheInfo: ...


@overload
def jit(fun: Callable[P, R], /, **options: Unpack[Options]) -> Jitted[P, R]: ...


@overload
def jit(**options: Unpack[Options]) -> Callable[[Callable[P, R]], Jitted[P, R]]: ...


def jit(fun: Any = UNSPECIFIED, /, *, in_shardings: PyTree = UNSPECIFIED,
        out_shardings: PyTree = UNSPECIFIED, static_argnums: int | Sequence[int] | None = None,
        static_argnames: str | Sequence[str] | None = None,
        donate_argnums: int | Sequence[int] | None = None,
        donate_argnames: str | Sequence[str] | None = None, keep_unused: bool = False,
        device: DeviceLike = None, backend: str | None = None, inline: bool | Inline = False,
        compiler_options: CompilerOptions | None = None, persist: bool = False,
        hold: str | None = None, kernels: str | None = None, max_traces: int | None = None,
        on_retrace: str | Callable[[Explanation], None] = "warn", guards: str | None = None,
        checks: Iterable[str] = ()) -> Callable[..., PyTree]:
    """Compile a function with XLA, once for each combination of argument types.

    Args:
      fun: a function of pytrees of arrays that returns one; it must not depend on anything else
        that changes. Without it, a decorator with these options is returned.
      in_shardings, out_shardings: the shardings of arguments and results, as
        `with_sharding_constraint` takes them: prefixes of the tuple of dynamic positional arguments
        and of the result. None, the default, leaves them to the arguments and to XLA. Uncommitted
        arguments are moved; committed ones must have the sharding already.
      static_argnums, static_argnames: arguments that are Python values of the program: hashable;
        one compilation for each value (1, 1.0 and True are three).
      donate_argnums, donate_argnames: arguments whose buffers the program may reuse; the call
        deletes the arrays whose buffers it did reuse, and no others.
      keep_unused: pass also arguments that the program does not read.
      device, backend: where to run; arguments are moved there. Within another program, all of that
        program runs there, so its arguments must be uncommitted or there.
      inline: put the equations into the caller's program instead of a call; a bool, or an
        `olympus.Inline`.
      compiler_options: XLA flags for this function.
      persist: keep programs in `olympus_compilation_cache_dir`, and find those of other processes
        there without tracing. The values that the function reads must have a digest: functions,
        classes, arrays and values made of them; anything else is a TypeError.
      hold: "auto" makes XLA on CPU compute values with many readers once; "report" logs these
        values, too; "off" leaves them to XLA; None does as `olympus_hold` says. The outermost
        function's counts.
      kernels: "auto" lowers what XLA does slowly on CPU by formulas of Olympus, "report" logs these
        operations, too; "off" leaves them to XLA; None does as `olympus_kernels` says. The
        outermost function's counts.
      max_traces: how often the function may be traced; None: any number of traces. on_retrace: what
      happens at further traces: "warn", "error" (a `RetraceError`), or a function that gets the
      `Explanation`: the differences and their remedies.
      guards: the action of a call if a global, a closure cell, a default, an attribute or a
        container that the function read during tracing has changed: "warn", "error" (a
        `StaleValueError`), "retrace", "off"; None does as `olympus_jit_guards` says.
      checks: the kinds of failures for which a call raises an error, with the operation, line,
        operands and iteration of the first one: names among "user" (`olympus.check`), "index",
        "nan" and "div". The error is one more result of the program: `lower` and `trace` show
        (error, result), and a call waits for it.
    Returns: A function with the methods `trace`, `lower`, `eval_shape`, `clear_cache`, `explain`
      (whether a call finds a program, and else why not) and `cache_info`.

    >>> @olympus.jit
    ... def f(x):
    ...     return onp.sin(x) * 2
    >>> f(0.)
    Array(0., dtype=float32, weak_type=True)
    """
    options = JitOptions(
        in_shardings, out_shardings, static_argnums, static_argnames, donate_argnums,
        donate_argnames, keep_unused, device, backend, inline, compiler_options, persist, hold,
        kernels, max_traces, on_retrace, guards)
    make = functools.partial(_make_checked, checks=checks) if checks else make_jit
    if fun is UNSPECIFIED:
        return source.api_boundary(lambda f: make(f, options))
    try:
        return make(fun, options)
    except Exception as error:
        source.filter_traceback(error)
        raise


def pjit(fun: Callable[P, R], in_shardings: PyTree = UNSPECIFIED,
         out_shardings: PyTree = UNSPECIFIED, static_argnums: int | Sequence[int] | None = None,
         static_argnames: str | Sequence[str] | None = None,
         donate_argnums: int | Sequence[int] | None = None,
         donate_argnames: str | Sequence[str] | None = None, keep_unused: bool = False,
         device: DeviceLike = None, backend: str | None = None, inline: bool | Inline = False,
         compiler_options: CompilerOptions | None = None) -> Jitted[P, R]:
    """`jit` on the mesh of `with mesh:`, for programs from before `set_mesh`; it is deprecated.

    Args:
      fun: a function of pytrees of arrays.
      in_shardings, out_shardings: as `jit` takes them, but that None is not cut, if a mesh is
        around.
      static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused, device,
        backend, inline, compiler_options: as `jit` takes them.
    Returns: What `jit` returns. Called in a `with mesh:` block, it runs on the devices of the mesh.

    >>> import warnings
    >>> from olympus.experimental.pjit import pjit
    >>> with warnings.catch_warnings(action="ignore"):
    ...     f = pjit(lambda x: x + 1)
    >>> f(1)
    Array(2, dtype=int32, weak_type=True)
    """
    source.warn("pjit: experimental.pjit.pjit has been deprecated; olympus.jit does the same under "
                "olympus.set_mesh; use these instead.", DeprecationWarning)
    ins, outs = [tree_map(lambda s: WHOLE if s is None else s, given, is_leaf=lambda s: s is None)
                 for given in (in_shardings, out_shardings)]
    return make_jit(fun, JitOptions(
        ins, outs, static_argnums, static_argnames, donate_argnums, donate_argnames, keep_unused,
        device, backend, inline, compiler_options, on_mesh=True))


def make_jit(fun: Callable, options: JitOptions, library: bool = False) -> PjitFunction:
    """`jit` of one function; `library` says that static arguments are Olympus's own."""
    if isinstance(fun, staticmethod):
        raise TypeError(f"jit: staticmethod arguments are not supported, got {fun!r}; put "
                        "staticmethod above jit.")
    if not callable(fun):
        raise TypeError(f"jit: Expected a callable value, got {fun!r};\n  write olympus.jit(f), or "
                        "olympus.jit(**options) as a decorator.")
    if inspect.isgeneratorfunction(fun):
        raise TypeError(f"jit: Expected a function, got a generator function: {fun!r}; return the "
                        "values that it yields.")
    info = JitFunction(fun, options, library)
    wrapped = lib.pjit(info.name, fun, info.miss, list(info.signature.static_argnums),
                       list(info.signature.static_argnames), info.options_key or object(),
                       dispatch_registry, shard_fallback,
                       None if info.options_key is None else lib.shared_signatures)
    wraps(fun, attributes=True)(wrapped)
    if isinstance(fun, functools.partial):
        wrapped.__name__ = info.name
    wrapped.__deepcopy__, wrapped.__reduce_ex__ = info.itself, info.reduced
    wrapped._jit_info = info
    info.compiled = weakref.ref(wrapped)    # its methods are not known to the garbage collector
    return wrapped


def _make_checked(fun: Callable, options: JitOptions, checks: Iterable[str]
                  ) -> Callable[..., PyTree]:
    """`jit` of one function, whose calls raise the errors that checks find."""
    kinds = _checked.kinds_of("jit", checks)
    compiled = _with_error(fun, options, kinds)
    donates = compiled._jit_info.signature.donates
    return _checked.raising(compiled, compiled if donates else _with_error(
        fun, options, kinds, quick=True), fun)


def _with_error(fun: Callable, options: JitOptions, kinds: frozenset[str],
                library: bool = False, quick: bool = False) -> PjitFunction:
    """`jit` of the function that returns (error, result)."""
    options = options._replace(notes=False)     # its failures are results
    if options.out_shardings is not UNSPECIFIED:    # the error is where XLA likes
        options = options._replace(out_shardings=(None, options.out_shardings))
    return make_jit(_checked.with_error(fun, kinds, quick), options, library)


_MANY = 10      # traces of one function, or functions of one code, that are no mistake
_made: WeakKeyDictionary[CodeType, int] = WeakKeyDictionary()   # functions traced, by their code


class JitFunction:
    """A function with its options and its programs; C++ calls `miss` when it has no executable."""

    # No base classes: C++ may call with an error set, and then Python finds only the attributes
    # written in the class of `self`.

    watched: Watched | None = None      # around calls of `guarded`, once a program calls the host

    def __init__(self, fun: Callable, options: JitOptions, library: bool = False) -> None:
        options.check()
        flags, inline, guards = options.compiler_options, options.inline, options.guards
        self.signature = Signature(
            fun, library, options.static_argnums, options.static_argnames, options.donate_argnums,
            options.donate_argnames, *[None if s is UNSPECIFIED else s for s in (
                options.in_shardings, options.out_shardings)])
        self.name, self.library, self.options = self.signature.name, library, options
        self.guards = "off" if library else guards      # None: as the option says at each call
        self.purity: Any = None     # a Guard, from the first call with guards on
        self.traces = 0
        early = inline is Inline.OLYMPUS_EARLY if isinstance(inline, Inline) else bool(inline)
        self.keep_unused, self.inline = bool(options.keep_unused), early
        self.modes = options.hold, options.kernels
        device = options.device if options.backend is None else (
            devices.client(options.backend).local_devices()[0])
        assert device is None or isinstance(device, lib.Device)     # by `options.check`
        self.device = device
        self.on_mesh = options.on_mesh
        self.flags = None if flags is None else dict(flags)
        key = (*self.signature.key, self.keep_unused, self.modes, self.on_mesh, guards,
               repr(sorted(flags.items())) if flags else None)
        # Kept with the function: `jit(f)` written in a loop finds them again.
        self.programs = programs_of(fun, key)
        self.options_key = None     # where nobody else may have the function with these options
        if not library and not options.persist and shares_programs(fun, key):
            self.options_key = key, self.device, self.inline
        self.persistent = _persistent.PersistentPrograms(
            self.signature, self.keep_unused, self.flags, self.modes) if options.persist else None
        # Whether it is a call of its program that other traces see.
        self.plain = not (inline or options.persist or self.flags or self.device is not None
                          or options.in_shardings is not UNSPECIFIED)
        self.direct = self.device is None   # whether C++ can make the calls, as far as is known
        self.guarded: Any = None    # C++'s object that is called where Python looks before
        self.compiled: Any = None   # a weak reference to C++'s object, which refers to this one
        # Jitted functions of (error, result), by the checks that are made, where they are noted.
        self.noted: dict[frozenset[str], PjitFunction] | None = {} if options.notes else None

    def itself(self, memo: object) -> object:
        """The jitted function itself: deep copies share it, as they share functions.
        """
        return self.compiled()

    def reduced(self, protocol: int) -> Any:
        """How it is pickled: by its name, as a function; else it is made anew of the function and
        the options, where the pickler writes functions (cloudpickle does, of `__main__` too).
        """
        made = self.compiled()
        home, name = getattr(made, "__module__", ""), getattr(made, "__qualname__", "")
        if home != "__main__" and getattr(sys.modules.get(home), name, None) is made:
            return name
        return make_jit, (self.signature.fun, self.options)

    # From arguments to a program

    def program(self, arguments: Arguments) -> Program:
        """The traced program of a call, from the cache or new."""
        program = self.programs.get(arguments.key)
        if program is not None:
            return program
        if not all(map(isinstance, arguments.avals, itertools.repeat(AbstractValue))):
            raise self._without_value(arguments)
        if config.no_tracing.value:
            raise RuntimeError(
                f"jit: re-tracing function {self.name} for types "
                f"[{', '.join(map(str, arguments.avals))}], but 'no_tracing' is set; call it with "
                "these types before.")
        if config.log_compiles.value:
            code = getattr(unwrapped(self.signature.fun), "__code__", None)
            LOGGER.warning("Compiling %s with global shapes and types [%s]%s.", self.name,
                           ", ".join(map(str, arguments.avals)),
                           f", written at {source.written_at(code)}" if code else "")
        if not self.library:
            self._note_trace(arguments)
        # A guard notes the captures that the trace reads, so no earlier trace may stand in for it.
        with anew() if self.purity else nullcontext():
            program = trace_program(
                self.signature, arguments, self.keep_unused, self.flags, self.modes)
        if self.purity:
            self.purity.note_captures()
        # A program that closes over values of an outer trace serves that trace alone.
        if not program.passing:
            self.programs[arguments.key] = program
        return program

    def _note_trace(self, arguments: Arguments) -> None:
        """Count the traces of this function, and say what `recompiles` has to say of many."""
        self.traces += 1
        if self.options.max_traces is not None and self.traces > self.options.max_traces:
            _recompiles.over_limit(_recompiles.explain(self.signature, self.programs, arguments),
                                   self.traces, self.options.max_traces, self.options.on_retrace)
        code = getattr(unwrapped(self.signature.fun), "__code__", None)
        if code is None or source.is_internal(code.co_filename):
            return
        made = _made.get(code, 0)
        if config.explain_cache_misses.value and (self.programs or made):
            _recompiles.log_again(
                _recompiles.explain(self.signature, self.programs, arguments, made))
        # By code: a function that a loop makes anew is another object with the same code.
        if self.traces == 1:
            _made[code] = made = made + 1
        if made > _MANY or len(self.programs) >= _MANY:
            _recompiles.warn_of_many(self.signature, code, made, self.programs, arguments, _MANY)

    def _placement(self, arguments: Arguments, leaves: Sequence[ArrayLike],
                   lead: Sequence[ArrayLike] = ()) -> Placement:
        """Where a call's program runs; `lead` are operands in front of the arguments."""
        where: list[Sharding | None] = list(map(sharding_of, leaves))
        if self.device is not None:
            if mesh_around() is not None:
                raise ValueError(f"jit: {self.name} is called under olympus.set_mesh. Mesh context "
                                 "manager should not be used with jit when backend or device is "
                                 "also specified as an argument to jit; leave one out.")
            where = [None] * len(leaves)    # `device=` moves arguments, committed ones too
        for i, wanted in enumerate(self.signature.input_shardings(arguments)):
            if wanted is None:
                continue
            self._check_memory(arguments, i, wanted)
            given = where[i]
            if given is not None and not is_abstract(given) and (
                    not given.is_equivalent_to(wanted, arguments.avals[i].ndim)):
                name = self.signature.leaf_names(arguments)[i]
                raise ValueError(
                    "Sharding passed to jit does not match the sharding on the respective arg: "
                    f"argument {name} of {self.name} is committed to {given}; in_shardings has "
                    f"{wanted} for arg shape {arguments.avals[i].str_short()}; move it with "
                    "device_put.")
            where[i] = wanted
        n = len(lead)
        where[:0] = map(sharding_of, lead)
        layouts = self._layouts(arguments, leaves)
        if n and (layouts or layouts_of(lead)):
            layouts = (*(layouts_of(lead) or (None,) * n), *(layouts or (None,) * len(leaves)))
        placement = placement_of(where, self.device, lambda i: self._argument(arguments, i - n),
                             current_mesh() if self.on_mesh else None)._replace(layouts=layouts)
        if not self.signature.donates and not any(a.mutable for a in arguments.avals) and not n:
            return placement
        return placement._replace(memories=tuple(map(memory_of, (*lead, *leaves))))

    def _check_memory(self, arguments: Arguments, i: int, wanted: Sharding) -> None:
        """ValueError for an array, committed or not, in another memory than `in_shardings` says."""
        leaf = arguments.leaves[i]
        have, kind = memory_of(leaf), demanded_memory(wanted)
        if have != kind and getattr(leaf, "sharding", None) is not None:
            raise ValueError(
                f"jit: Memory kinds passed to olympus.jit does not match memory kind on the "
                f"respective arg. Got jit memory kind: {wanted.memory_kind}, arg memory kind: "
                f"{have or wanted.default_memory_kind} for arg type: {arguments.avals[i]}; "
                f"argument {self.signature.leaf_names(arguments)[i]} of {self.name} must be "
                "there; move it with device_put.")

    def _argument(self, arguments: Arguments, i: int) -> str:
        """The words for leaf number `i` of the arguments."""
        if i < 0:
            return f"a reference that {self.name} closes over"
        name = self.signature.leaf_names(arguments)[i]
        return f"argument {name} of {self.name} with shape {arguments.avals[i].str_short()} and"

    def _layouts(self, arguments: Arguments, leaves: Sequence[Any]) -> tuple[str | None, ...]:
        """How a call's arguments lie in memory when its program takes them."""
        layouts = layouts_of(leaves)
        wanted = self.signature.input_layouts(arguments)
        if not any(wanted):
            return layouts
        taken = list(layouts or (None,) * len(leaves))
        for i, layout in enumerate(wanted):
            if layout is None:
                continue
            have, taken[i] = taken[i], demanded_layout(layout)
            if have != taken[i] and type(leaves[i]) is not ShapeDtypeStruct and (
                    sharding_of(leaves[i]) is not None):
                name = self.signature.leaf_names(arguments)[i]
                raise ValueError(
                    f"jit: Layout passed to jit does not match the layout on the respective arg: "
                    f"argument {name} of {self.name} is committed to {leaves[i].format}; "
                    f"in_shardings has {layout}; move it with device_put, or give a "
                    "ShapeDtypeStruct where the compiler is to choose.")
        return tuple(taken)

    # Calls

    def miss(self, *args: PyTree, **kwargs: PyTree) -> Missed:
        """Called by C++ with the user's arguments: (result, fast path or None, drop the entry)."""
        try:
            lib.raise_error_of_pjit()
            if ctx.trace is ThreadState.trace and config.notes_failures() and (
                    self.noted is not None):
                return self._noting(self.noted, args, kwargs), None, False
            if (self.guards or config.jit_guards.value) != "off" and self._look():
                self.guarded = self.guarded or self._guard()
            if self.guarded is None:
                return self._miss(args, kwargs)
            # With guards C++ calls Python each time, which looks first; its fast path belongs to a
            # second object behind the look.
            if self.signature.donates and may_share((args, kwargs)):
                return self._miss(args, kwargs)[0], None, False
            if self.watched is not None:
                return self.watched(self.guarded, args, kwargs), None, False
            return self.guarded(*args, **kwargs), None, False
        except BaseException as error:
            # C++ remembers signatures of calls that raised, and would not take its fast path.
            self._forget_signatures()
            source.filter_traceback(error)
            if lib.is_error_of_pjit(error):
                raise flatten_error(f"jit: {self.name}", (args, kwargs), error) from None
            raise

    def _look(self) -> bool:
        """Whether guards are on; then changes since the function was traced are reported."""
        mode = self.guards or config.jit_guards.value
        if mode == "off":
            return False
        if self.purity is None:
            self.purity = _guards.Guard(self.signature.fun, self.name)
            self.programs = programs_of(self.signature.fun, (), own=True)
        if self.purity.changed(mode):
            self.clear_cache()
        return True

    def _forget_signatures(self) -> None:
        lib.forget_signatures(self.compiled)
        if self.guarded is not None:
            lib.forget_signatures(weakref.ref(self.guarded))

    def _miss(self, args: tuple, kwargs: dict[str, PyTree], behind: bool = False) -> Missed:
        """What C++ gets of a call; `behind`: C++'s object is the one behind the look."""
        base = ctx.trace is ThreadState.trace
        under = self.plain and (not base or REFERENCES)
        key, operands = self.signature.plain(args, kwargs) if under else (None, args)
        if key is not None and (program := self.programs.get(key)) is not None:
            operands = (*program.lead, *operands)
            if not base:
                if len(program.refs) > 1:
                    program.check_aliases(operands)
                outs = call_p.bind(*operands, name=self.name, olympuspr=program.closed)
                return tree_unflatten(program.out_tree, outs), None, False
            if program.flat is not None:
                return program.on_contents(program.flat, operands), None, False
        return self._of_arguments(args, kwargs, key, base, behind)

    def _of_arguments(self, args: tuple, kwargs: dict[str, PyTree], key: tuple | None, base: bool,
                      behind: bool) -> Missed:
        """`_miss` of a call that its shorter key, if it has one, does not tell yet."""
        arguments = self.signature.arguments(args, kwargs)
        if self.library and Literal in map(type, arguments.leaves):
            return self._with_arrays(arguments), None, False
        if (not arguments.cacheable and self.direct and ctx.trace is ThreadState.trace
                and not ctx.axes):
            # C++ is called again with stand-ins that compare by bits, and drops this entry.
            told = self.signature.for_cpp(arguments, args, kwargs)
            if told is not None:
                return self._as_told(*told), None, True
        if (self.persistent is None or ctx.trace is not ThreadState.trace or ctx.axes
                or debugging() or config.debug_key_reuse.value
                or any(aval.is_high for aval in arguments.avals)):
            program = self.program(arguments)
        else:
            program = self.persistent.program(
                arguments, self._placement(arguments, arguments.leaves))
            if self.purity:
                self.purity.note_captures()
        if base and program.high and not program.passing and not program.refs:
            return self._on_parts(program, arguments), None, False
        if not base or program.passing or program.high:
            self._check_options()
            operands = (*program.lead, *arguments.leaves)
            if len(program.refs) > 1:
                program.check_aliases(operands)
            if self.inline:
                outs = eval_closed(program.closed, *operands)
            else:
                outs = call_p.bind(*operands, name=self.name, olympuspr=program.closed)
                if key is not None and not program.passing:
                    self.programs[key] = program
            if self.device is not None:     # the whole program runs there, then
                here = make_single_device_sharding(self.device)
                outs = [constrain("jit device", x, here) for x in outs]
            return tree_unflatten(program.out_tree, outs), None, False
        return self._at_once(program, arguments, key, args, kwargs, behind)

    def _at_once(self, program: Program, arguments: Arguments, key: tuple | None, args: tuple,
                 kwargs: dict[str, PyTree], behind: bool) -> Missed:
        """`_miss` of a program that is compiled and run now; `key` is the shorter one, if any."""
        if program.refs:
            if program.flat is None:
                program.flat = self._flat(program, arguments)
                if key is not None:
                    self.programs[key] = program
            return program.on_contents(
                program.flat, (*program.lead, *arguments.leaves)), None, False
        try:
            arrays = [argument_array(x) for x in arguments.leaves]
        except TypeError:
            raise self._without_value(arguments) from None
        if self.library:
            check_deleted(self.name, arrays)
        else:
            self._check_donated(program, arrays)
        placement = self._placement(arguments, arrays)
        try:
            executable = program.executable(placement)
        except IncompatibleDevicesError as error:
            raise self._explained(error, arguments, arrays) from None
        flat = [stored(x) for x in arrays]
        name = self.name if self.library else f"jit({self.name})"
        used = reuse.applied(name, program.closed, arrays, self.library)
        try:
            outs = reuse.with_cells(used, run_program(
                executable, flat, name, None if self.library else program.closed))
            if self.persistent is not None:
                self.persistent.check_run(program, outs)
        except lib.XlaRuntimeError as error:
            replaced = self.persistent is not None and self.persistent.replaced(
                arguments, program, error)
            if not replaced or any(x.is_deleted() for x in flat):
                raise
            return self._miss(args, kwargs, behind)
        result = tree_unflatten(program.out_tree, outs)
        for x, donated in zip(flat, program.donated):
            if donated and x.is_deleted():
                x.delete()      # C++ passes arrays that were deleted so on to us, who explain
        if not arguments.cacheable or self.device is not None or ctx.axes:
            return result, None, False
        out_tree = dispatch_registry.flatten(result)[1]
        # One object for all threads: `setdefault` is atomic.
        watched = vars(self).setdefault("watched", _hosts.Watched()) if executable.watched else None
        path = executable.fastpath(out_tree, flat, arguments.leaves, watched)
        self.direct = path is not None
        if path is not None and (executable.exclusive or executable.watched) and not behind:
            self.guarded = self.guarded or self._guard()
            path = None
        return result, path, False

    def _flat(self, program: Program, arguments: Arguments) -> PjitFunction:
        """The C++ object of a program with references, for contents in their place."""
        closed, lead = arrays_only(program.closed), len(program.lead)
        arguments = arguments.types()   # later calls have other references: none is kept alive

        def run(*args: Array) -> list[Array]:
            return miss(*args)[0]

        def miss(*args: Array) -> Missed:
            try:
                arrays = list(map(argument_array, args))
                self._check_donated(program, arrays)
                placement = self._placement(arguments, arrays[lead:], arrays[:lead])
                executable = program.executable(placement)
                flat = [stored(x) for x in arrays]
                used = reuse.applied(f"jit({self.name})", closed, arrays, self.library)
                outs = reuse.with_cells(
                    used, run_program(executable, flat, f"jit({self.name})", closed))
                for x, donated in zip(flat, program.donated):
                    if donated and x.is_deleted():
                        x.delete()
                path = None if self.device is not None or executable.exclusive else (
                    executable.fastpath(dispatch_registry.flatten(outs)[1], flat, args))
                return outs, path, False
            except BaseException:
                lib.forget_signatures(itself)
                raise

        made = lib.pjit(self.name, run, miss, [], [], object(), dispatch_registry, shard_fallback)
        itself = weakref.ref(made)
        return made
    def _check_options(self) -> None:
        """ValueError for options of the compiler where another program is recorded."""
        if self.flags and recorder(ctx.trace) is not None:
            raise ValueError(
                f"jit: compiler_options={self.flags} given to {self.name}, which is part of "
                "another program. `compiler_options` can only be passed to top-level "
                "`olympus.jit`; give them to the outermost.")

    def _on_parts(self, program: Program, arguments: Arguments) -> PyTree:
        """The call of a program that takes or returns values of users' types, on their parts."""
        flat, parts = program.on_parts(), _parts.parts_of(arguments.leaves)
        arrays = list(map(argument_array, parts))
        self._check_donated(flat, arrays)
        name = f"jit({self.name})"
        placement = placement_of(
            [None if self.device is not None else sharding_of(x) for x in arrays], self.device,
            lambda i: f"argument {flat.arg_names[i]} of {self.name} with shape "
            f"{flat.closed.in_avals[i].str_short()} and",
            current_mesh() if self.on_mesh else None)._replace(layouts=layouts_of(arrays))
        if any(flat.donated):
            placement = placement._replace(memories=tuple(map(memory_of, arrays)))
        outs = run_program(flat.executable(placement), list(map(stored, arrays)), name, flat.closed)
        for x, donated in zip(arrays, flat.donated, strict=True):
            if donated and type(x) is lib.ArrayImpl and x.is_deleted():
                x.delete()
        return tree_unflatten(program.out_tree, _parts.raised(program.closed.out_avals, outs))

    def _noting(self, made: dict[frozenset[str], PjitFunction], args: tuple,
                kwargs: dict[str, PyTree]) -> PyTree:
        """A call whose failure, if it is one, is noted."""
        kinds = _failures.noted_kinds()
        if kinds not in made:
            options = self.options._replace(persist=False)
            made[kinds] = _with_error(self.signature.fun, options, kinds, self.library)
        error, result = made[kinds](*args, **kwargs)
        _failures.note(*error.parts(), library=self.library)
        return result

    def _guard(self) -> PjitFunction:
        """The C++ object to call after a look at the arguments, or at the function's captures."""
        itself = weakref.ref(self)      # which C++'s object does not tell the collector of

        def miss(*args: PyTree, **kwargs: PyTree) -> Missed:
            info = itself()
            assert info is not None     # it makes the call
            return info._miss(args, kwargs, behind=True)

        return lib.pjit(self.name, self.signature.fun, miss, list(self.signature.static_argnums),
                        list(self.signature.static_argnames), object(), dispatch_registry,
                        shard_fallback)

    def _without_value(self, arguments: Arguments) -> TypeError:
        """The error for an argument with a type and no value, or with another library's type."""
        for x in arguments.leaves:
            if isinstance(x, Tracer):
                check_usable(x)     # a reference gave a value of a trace that waits
        i, x = next((i, x) for i, (x, aval) in enumerate(zip(arguments.leaves, arguments.avals))
                    if type(x) is ShapeDtypeStruct or not isinstance(aval, AbstractValue)
                    or not valid_olympustype(x))
        shape = f"of shape {x.aval.str_short()} " if type(x) is ShapeDtypeStruct else ""
        return TypeError(
            f"jit: Argument '{self.signature.leaf_names(arguments)[i]}' {shape}of type {type(x)} "
            "is not a valid Olympus type: it has no value; pass an array, or lower the function "
            "for it.")

    def _explained(self, error: Exception, arguments: Arguments, arrays: Sequence[Array]
                   ) -> Exception:
        """With the name of an argument that is on other devices than the program."""
        bound = [i for i, x in enumerate(arrays) if sharding_of(x) is not None]
        what = "explicit output sharding" if self.device is not None else (
            self._argument(arguments, bound[0]) if bound else "arguments")
        return IncompatibleDevicesError(said(error).replace(f"an argument of {self.name}", what))

    def _with_arrays(self, arguments: Arguments) -> PyTree:
        """The call of a library function with literals on the device, which C++ knows."""
        leaves = list(map(placed, arguments.leaves))
        dynamic, kwargs = tree_unflatten(arguments.in_tree, leaves)
        return self.compiled()(*arguments.merged(dynamic), **kwargs, **arguments.static_kwargs)

    def _as_told(self, args: list[PyTree], kwargs: dict[str, PyTree], items: list[Item]) -> PyTree:
        """The call with static tuples by which C++ will know it, and not by the user's.

        The entry of the user's goes when this has returned; until then it must not be found.
        """
        result = self.compiled()(*args, **kwargs)
        for item in items:
            item.asleep = False
        return result

    def _check_donated(self, program: Program, arrays: Sequence[Array]) -> None:
        for name, x in zip(program.arg_names, arrays):
            if type(x) is lib.ArrayImpl and x.is_deleted():
                raise deleted_error(f"jit: argument {name} of {self.name}", x.aval)

    # Stages

    def trace(self, *args: PyTree, **kwargs: PyTree) -> Traced:
        """Trace for these arguments (arrays, or anything with shape and dtype)."""
        self._look()
        arguments = self.signature.arguments(args, kwargs)
        program = self.program(arguments)
        lead = () if program.passing else program.lead
        return Traced(program, self.name, self._placement(arguments, arguments.leaves, lead))

    def lower(self, *args: PyTree, **kwargs: PyTree) -> Lowered:
        """`trace(…).lower()`."""
        return self.trace(*args, **kwargs).lower()

    def clear_cache(self) -> None:
        """Forget this function's programs; they are made anew when next called."""
        for program in list(self.programs.values()):
            program.release()
        self.programs.cache_clear()
        if self.purity:
            self.purity.captures.cache_clear()
        if self.persistent is not None:
            self.persistent.programs.cache_clear()
        self._forget_signatures()

    def explain(self, *args: PyTree, **kwargs: PyTree) -> Explanation:
        """Whether a call finds a traced program, and else what differs and what to do."""
        code = getattr(unwrapped(self.signature.fun), "__code__", None)
        return _recompiles.explain(self.signature, self.programs,
                                   self.signature.arguments(args, kwargs),
                                   _made.get(code, 0) if code is not None else 0)

    def cache_info(self) -> CacheInfo:
        """How often the function was traced, and the programs kept."""
        programs = set(self.programs.values())      # some have two keys, see `_miss`
        compiled = [e for p in programs for e in list(p.executables.values())]
        loaded = {id(e.loaded): e.loaded for e in compiled}     # equal programs share one
        return _recompiles.CacheInfo(self.traces, len(programs), len(compiled),
                                     sum(x.bytes for x in loaded.values()))

    def eval_shape(self, *args: PyTree, **kwargs: PyTree) -> PyTree:
        """The result's shapes and dtypes, without running anything."""
        self._look()
        program = self.program(self.signature.arguments(args, kwargs))
        return tree_unflatten(program.out_tree, program.out_structs)


def _method(name: str) -> Callable[..., PyTree]:
    """A jitted function's method. It is its class's, since `functools.wraps` copies a function's
    `__dict__` to another.
    """
    @wraps(getattr(JitFunction, name))
    def method(jitted: PjitFunction, *args: PyTree, **kwargs: PyTree) -> PyTree:
        try:
            return getattr(jitted._jit_info, name)(*args, **kwargs)
        except Exception as error:
            source.filter_traceback(error)
            raise

    return method


for _name in ("cache_info", "clear_cache", "eval_shape", "explain", "lower", "trace"):
    setattr(lib.PjitFunction, _name, _method(_name))
