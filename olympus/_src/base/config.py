"""Every option of Olympus in one typed table, and `config`, which reads and changes them by name.

Each option is one module-level object: `enable_x64.value` reads it (in C++), `enable_x64(True)` is
a context manager that changes it in this thread, `config.update("olympus_enable_x64", True)`
changes it for the process, and the environment variable OLYMPUS_ENABLE_X64 sets it at import.
Values live in C++ so that the call path of `jit` can key on them.
"""

import contextlib
import enum
import functools
import itertools
import os
import warnings
from collections import Counter
from collections.abc import Callable, Hashable, Iterable
from typing import Any, NoReturn, TypeAlias

from olympus._src.base import lib
from olympus._src.base.idle_options import IDLE
from olympus._src.base.typing import Device, T
from olympus._src.base.util import lazy_imports

with lazy_imports(__name__):
    import difflib

_TRUE = ("1", "true", "yes", "on", "y", "t")
_FALSE = ("0", "false", "no", "off", "n", "f")
_MATMUL_PRECISIONS = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
    "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64")


class _NoValue:
    """Says that no value was given; None is a value of some options."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<no value>"


_no_value = _NoValue()
Value: TypeAlias = bool | int | float | str | Device | None


class Kind:
    """The legal values of an option: a test, a reader of environment text, words for messages."""

    __slots__ = ("accepts", "legal", "parse", "when_entered")

    def __init__(self, legal: str, accepts: Callable[[Any], bool],
                 parse: Callable[[str], Value], when_entered: Value | _NoValue = _no_value
                 ) -> None:
        self.legal, self.accepts, self.parse = legal, accepts, parse
        self.when_entered = when_entered  # what `with option():` sets


def _parse_bool(text: str) -> bool | None:
    lowered = text.lower()
    return True if lowered in _TRUE else False if lowered in _FALSE else None


def _parse_int(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _parse_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _choice(*values: str) -> Kind:
    legal = "one of " + ", ".join(repr(v) for v in values)
    return Kind(legal, lambda value: isinstance(value, str) and value in values, str)


def _optional(kind: Kind) -> Kind:
    def accepts(value: object) -> bool:
        return value is None or kind.accepts(value)

    return Kind(f"None or {kind.legal}", accepts, kind.parse)


_BOOL = Kind("True or False", lambda value: isinstance(value, bool), _parse_bool, when_entered=True)
_INT = Kind("an int", _is_int, _parse_int)
# C++ takes timeouts as 32-bit ints, and ends the process where one does not fit.
_TIMEOUT = Kind("an int of 0 to 2147483647", lambda value: _is_int(value) and 0 <= value < 1 << 31,
                _parse_int)
_FLOAT = Kind(
    "a number", lambda value: _is_int(value) or isinstance(value, float), _parse_float
)
_STRING = Kind("a string", lambda value: isinstance(value, str), str)
_ANY = Kind("anything", lambda _: True, str)
_DEVICE = Kind(
    "a Device or a platform name", lambda value: isinstance(value, (str, lib.Device)), str
)


class Override(contextlib.ContextDecorator):
    """An option's value for the length of a `with` block or a decorated call, in this thread."""

    __slots__ = ("_option", "_previous", "_value")

    def __init__(self, option: "Option", value: object) -> None:
        self._option = option
        self._value = value
        # A stack, so that one object may be entered again inside itself.
        self._previous: list[object] = []

    def __enter__(self) -> None:
        self._previous.append(self._option.swap_local(self._value))

    def __exit__(self, *exc_info: object) -> None:
        self._option.set_local(self._previous.pop())

    def _recreate_cm(self) -> "Override":
        return Override(self._option, self._value)


class Option(lib.Config):
    """An option: `.value` is its current value in this thread; a call gives a context manager."""

    __slots__ = ("default", "doc", "fixed", "kind", "name")

    def __init__(self, name: str, default: object, kind: Kind, *, trace_key: bool = False,
                 jit_key: bool = False, doc: str) -> None:
        value = self._from_environment(name, default, kind)
        super().__init__(name, value, include_in_jit_key=jit_key or trace_key,
                         include_in_trace_context=trace_key)
        self.name = name
        self.default = default
        self.kind = kind
        self.doc = doc
        self.fixed = ""  # since when it may not change any more

    @staticmethod
    def _from_environment(name: str, default: T, kind: Kind) -> T | Value:
        text = os.environ.get(name.upper(), "")
        if not text:
            return default
        value = kind.parse(text)
        if not kind.accepts(value):
            raise ValueError(f"{name.upper()}: got {text!r}; must be {kind.legal}.")
        return value

    def check(self, value: T) -> T:
        """Return `value` if it is legal here; the TypeError or ValueError names the legal ones."""
        if self.kind.accepts(value):
            if self.fixed and value != self.value:
                raise RuntimeError(
                    f"{self.name}: got {value!r} when {self.fixed}; set it before, or by the "
                    f"environment variable {self.name.upper()}."
                )
            return value
        wrong_type = type(value) is not type(self.default) and self.default is not None
        error = TypeError if wrong_type else ValueError
        raise error(f"{self.name}: got {value!r}; must be {self.kind.legal}.")

    def __call__(self, new_val: object = _no_value) -> Override:
        if new_val is _no_value:
            new_val = self.kind.when_entered
            if new_val is _no_value:
                raise TypeError(f"{self.name}: got no value; pass {self.kind.legal}.")
        return Override(self, self.check(new_val))

    def __repr__(self) -> str:
        return f"<option {self.name} = {self.value!r}>"


class Guard(Option):
    """An option for transfers in one direction, or for garbage; C++ keeps its own copy of it."""

    __slots__ = ()

    @property
    def field(self) -> str:
        """The name of the guard in C++'s state."""
        if self.name == "olympus_array_garbage_collection_guard":
            return "garbage_collect_array"
        return self.name.removeprefix("olympus_transfer_guard_")

    def swap_local(self, value: object) -> object:
        """Set the value of this thread; return the earlier setting."""
        previous = super().swap_local(value)
        self._tell(value, everywhere=False)
        return previous

    def set_local(self, value: object) -> None:
        """Set the value of this thread."""
        super().set_local(value)
        self._tell(value, everywhere=False)

    def set_global(self, value: object) -> None:
        """Set the value of the process."""
        super().set_global(value)
        self._tell(value, everywhere=True)

    def _tell(self, value: object, *, everywhere: bool) -> None:
        level = value if isinstance(value, str) else None
        lib.guard(self.field, level, everywhere=everywhere)


class AnnouncedOption(Option):
    """An option of the process that another part is told of, when it is set and at the start."""

    __slots__ = ("_tell",)

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._tell: Callable[[Any], None] | None = None

    def tell(self, listener: Callable[[Any], None]) -> None:
        """Let `listener` know every value, this one too if it is not the default."""
        self._tell = listener
        if self.value != self.default:
            listener(self.value)

    def swap_local(self, value: object) -> object:
        """Set the value of this thread; return the earlier setting."""
        previous = super().swap_local(value)
        self._say()
        return previous

    def set_local(self, value: object) -> None:
        """Set the value of this thread."""
        super().set_local(value)
        self._say()

    def set_global(self, value: object) -> None:
        """Set the value of the process."""
        super().set_global(value)
        self._say()

    def _say(self) -> None:
        if self._tell is not None:
            self._tell(self.value)


class Idle(Option):
    """An option of JAX that changes nothing here; the first other value warns."""

    __slots__ = ("_silent", "_warned", "_why")

    def __init__(self, name: str, default: Value, done: tuple[Value, ...], why: str) -> None:
        self._silent, self._warned, self._why = (default, *done), False, why
        super().__init__(name, default, _kind_of(default),
                         doc=f"Changes nothing, as {why}.")
        self.check(self.value)      # from the environment

    @staticmethod
    def _from_environment(name: str, default: T, kind: Kind) -> T | Value:
        ours = name.startswith("olympus_")      # others may mean something else to somebody
        return Option._from_environment(name, default, kind) if ours else default

    def check(self, value: T) -> T:
        """Return `value` if it is legal; warn if it asks for an effect that it has not."""
        valid = super().check(value)
        if value not in self._silent and not self._warned:
            self._warned = True
            warnings.warn(f"{self.name}: {value!r} given, which changes nothing here: {self._why}; "
                          "leave the option as it is.", stacklevel=3)
        return valid


def _kind_of(default: Value) -> Kind:
    return {bool: _BOOL, int: _INT, float: _FLOAT, str: _STRING}.get(type(default), _ANY)


class TransferGuards(Option):
    """The guards of all directions at once."""

    __slots__ = ("guards",)
    guards: tuple[Guard, ...]

    def __call__(self, new_val: Value | _NoValue) -> Override:
        return super().__call__(new_val)

    def swap_local(self, value: object) -> object:
        """Set all for this thread; return the earlier setting."""
        return super().swap_local(value), *[g.swap_local(value) for g in self.guards]

    def set_local(self, value: tuple[object, ...]) -> None:
        """Set all for this thread to what `swap_local` returned."""
        mine, *others = value
        super().set_local(mine)
        for guard, previous in zip(self.guards, others, strict=True):
            guard.set_local(previous)

    def set_global(self, value: object) -> None:
        """Set all for the process."""
        super().set_global(value)
        for guard in self.guards:
            guard.set_global(value)


def _users_cache() -> str | None:
    """Where programs are kept unless the user says: in his cache folder, if he has a home."""
    home = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(home):     # as that standard says
        home = os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "olympus") if os.path.isabs(home) else None


class CompilerEffortLevel(enum.Enum):
    """How hard XLA tries: a value of `olympus_optimization_level`, `olympus_memory_fitting_level`
    and the compiler options of these names.

    >>> import olympus
    >>> f = olympus.jit(lambda x: x + 1,
    ...                 compiler_options={"optimization_level": olympus.CompilerEffortLevel.O1})
    >>> print(f(1))
    2
    """

    UNKNOWN = 0
    O0 = 9
    O1 = 19
    O2 = 29
    O3 = 39


_EFFORT = Kind("one of " + ", ".join(repr(level.name) for level in CompilerEffortLevel),
               lambda value: isinstance(value, CompilerEffortLevel) or (
                   isinstance(value, str) and value in CompilerEffortLevel.__members__), str)

_options: dict[str, Option] = {}


in_trace_key: list[str] = []    # names of options, in the order of what `trace_key` returns first


def _option(name: str, default: float | str | None, kind: Kind, *, trace_key: bool = False,
            jit_key: bool = False, doc: str, option: type[Option] = Option) -> Option:
    """Add a row to the table.

    `trace_key`: traced programs depend on it, and with them compiled calls; `jit_key`: only those
    do. C++ looks calls up by either.
    """
    made = _options[name] = option(name, default, kind, trace_key=trace_key, jit_key=jit_key,
                                   doc=doc)
    if trace_key:
        in_trace_key.append(name)
    return made


enable_x64 = _option(
    "olympus_enable_x64", False, _BOOL, trace_key=True,
    doc="Use 64-bit types where they are requested or NumPy's default; otherwise narrow them to "
    "32 bits.")
jit_disabled = _option(
    "olympus_disable_jit", False, _BOOL, trace_key=True,
    doc="Run jitted functions and control flow as plain Python, for debugging.")
debug_nans = _option(
    "olympus_debug_nans", False, _BOOL, trace_key=True,
    doc="Raise FloatingPointError where an operation or a compiled call produces a NaN.")
debug_infs = _option(
    "olympus_debug_infs", False, _BOOL, trace_key=True,
    doc="Raise FloatingPointError where an operation or a compiled call produces an infinity.")
debug_key_reuse = _option(
    "olympus_debug_key_reuse", False, _BOOL, trace_key=True,
    doc="Raise KeyReuseError where a random key is used a second time.")
error_checking_behavior_nan = _option(
    "olympus_error_checking_behavior_nan", "ignore", _choice("ignore", "raise"), trace_key=True,
    doc="'raise' notes operations that make a NaN, for `numpy.error.raise_if_error`.")
error_checking_behavior_divide = _option(
    "olympus_error_checking_behavior_divide", "ignore", _choice("ignore", "raise"), trace_key=True,
    doc="'raise' notes divisions by zero, for `numpy.error.raise_if_error`.")
error_checking_behavior_oob = _option(
    "olympus_error_checking_behavior_oob", "ignore", _choice("ignore", "raise"), trace_key=True,
    doc="'raise' notes indices outside of an array, for `numpy.error.raise_if_error`.")
enable_custom_prng = _option(
    "olympus_enable_custom_prng", False, _BOOL, trace_key=True,
    doc="Let `random.PRNGKey` make typed keys, as `random.key` does.")
legacy_prng_key = _option(
    "olympus_legacy_prng_key", "allow", _choice("allow", "warn", "error"), trace_key=True,
    doc="How functions treat raw keys: 'allow' takes them, 'warn' warns where a program is traced "
    "with one, 'error' refuses them.")
log_compiles = _option(
    "olympus_log_compiles", False, _BOOL,
    doc="Log, at level WARNING, each function that is traced, lowered or compiled, with the time.")
explain_cache_misses = _option(
    "olympus_explain_cache_misses", False, _BOOL,
    doc="Log, at level WARNING, why a jitted function had to be traced again.")
jit_guards = _option(
    "olympus_jit_guards", "off", _choice("off", "warn", "error", "retrace"), trace_key=True,
    doc="What a call does if a global, closure cell, default, attribute or container that the "
    "jitted function read during tracing has changed; `jit(guards=…)` sets it for one function.")
check_tracer_leaks = _option(
    "olympus_check_tracer_leaks", False, _BOOL, trace_key=True,
    doc="Raise where something still refers to a tracer after its transformation has ended.")
enable_checks = _option(
    "olympus_enable_checks", False, _BOOL, trace_key=True,
    doc="Type-check every program after it is made; this is slow, for developing Olympus.")
hold = _option(
    "olympus_hold", "auto", _choice("auto", "off", "report"), trace_key=True,
    doc="'auto' makes XLA on CPU compute values with many readers once, so that deep programs "
    "compile in linear time. 'report' also logs these values and what they save; 'off' leaves "
    "them to XLA.")
kernels = _option(
    "olympus_kernels", "auto", _choice("auto", "off", "report"), trace_key=True,
    doc="'auto' lowers operations that XLA does slowly on CPU, such as grouped convolutions, by "
    "faster formulas in programs for one CPU. 'report' also logs these operations; 'off' leaves "
    "them to XLA.")
numpy_dtype_promotion = _option(
    "olympus_numpy_dtype_promotion", "standard", _choice("standard", "strict"), trace_key=True,
    doc="'standard' promotes operands of different dtypes; 'strict' refuses them, except weakly "
    "typed ones.")
numpy_rank_promotion = _option(
    "olympus_numpy_rank_promotion", "allow", _choice("allow", "warn", "raise"), trace_key=True,
    doc="How numpy functions treat operands of different ranks: 'allow' broadcasts, 'warn' "
    "broadcasts and warns, 'raise' refuses.")
auto_pcast = _option(
    "olympus_auto_pcast", True, _BOOL, trace_key=True,
    doc="Cast operands that vary along fewer axes of a mesh than others (`lax.pcast`); otherwise "
    "refuse them.")
default_matmul_precision = _option(
    "olympus_default_matmul_precision", None, _optional(_choice(*_MATMUL_PRECISIONS)),
    trace_key=True,
    doc="Precision of matrix products and convolutions without a precision of their own; None is "
    "the platform's.")
default_device = _option(
    "olympus_default_device", None, _optional(_DEVICE), trace_key=True,
    doc="The device of uncommitted values: a Device, a platform name, or None for the first "
    "device.")
platforms = _option(
    "olympus_platforms", None, _optional(_STRING),
    doc="Platforms to start, separated by commas, the default one first; None starts all that are "
    "found.")
traceback_filtering = _option(
    "olympus_traceback_filtering", "auto",
    _choice("auto", "off", "remove_frames", "tracebackhide", "quiet_remove_frames"),
    doc="How tracebacks omit frames of Olympus itself; 'off' keeps them.")
default_prng_impl = _option(
    "olympus_default_prng_impl", "threefry2x32", _choice(
        "threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg"),
    trace_key=True,
    doc="The default random generator of `random.key` and `random.PRNGKey`.")
threefry_partitionable = _option(
    "olympus_threefry_partitionable", True, _BOOL, trace_key=True,
    doc="Generate Threefry bits so that each element depends only on its own index, which lets "
    "devices generate their own parts.")
softmax_custom_jvp = _option(
    "olympus_softmax_custom_jvp", False, _BOOL, trace_key=True,
    doc="Differentiate `nn.softmax` by its own rule, which saves memory.")
no_tracing = _option(
    "olympus_no_tracing", False, _BOOL,
    doc="Refuse to trace jitted functions, so that a call with new types is an error.")
no_execution = _option(
    "olympus_no_execution", False, _BOOL, jit_key=True,
    doc="Refuse to run compiled programs; tracing, lowering and compiling still work.")
remove_size_one_mesh_axis_from_type = _option(
    "olympus_remove_size_one_mesh_axis_from_type", False, _BOOL, trace_key=True,
    doc="Leave mesh axes of size 1 out of types, also out of the axes along which values in "
    "`shard_map` vary. An array keeps the type with which it was made.")
no_collectives = _option(
    "olympus_no_collectives", False, _BOOL, trace_key=True,
    doc="Refuse to compile programs whose devices would communicate.")
compatible = _option(
    "olympus_compatible", False, _BOOL, trace_key=True,
    doc="Behave as JAX where Olympus differs on purpose: indices known to be out of bounds (with a "
    "warning), dtypes of histograms' counts, quantiles beyond the data, structures in "
    "`tree_transpose`, bounds of one random number, the path of `einsum_path`, no `RetraceWarning` "
    "about many traces. `olympus.as_jax` sets it.")
random_seed_offset = _option(
    "olympus_random_seed_offset", 0, _INT, trace_key=True,
    doc="An integer to add to every seed of a random key.")

num_cpu_devices = _option(
    "olympus_num_cpu_devices", -1,
    Kind("-1 or a positive int of at most 65536",
         lambda value: _is_int(value) and (value == -1 or 0 < value <= 1 << 16), _parse_int),
    doc="The number of devices of the CPU backend; -1 takes it from XLA_FLAGS, else one. Set it "
    "before the backend starts.")
compilation_cache_dir = _option(
    "olympus_compilation_cache_dir", _users_cache(), _optional(_STRING),
    doc="Directory that keeps compiled programs for later processes; None keeps none.")
enable_compilation_cache = _option(
    "olympus_enable_compilation_cache", True, _BOOL,
    doc="Use the directory that keeps compiled programs.")
persistent_cache_min_compile_time_secs = _option(
    "olympus_persistent_cache_min_compile_time_secs", 0.01, _FLOAT,
    doc="The shortest compile time, in seconds, of a program that is kept on disk.")
persistent_cache_min_entry_size_bytes = _option(
    "olympus_persistent_cache_min_entry_size_bytes", 0, _INT,
    doc="The smallest entry that is written to disk; -1 and 0 are no limit.")
compilation_cache_max_size = _option(
    "olympus_compilation_cache_max_size", 1 << 30, _INT,
    doc="Bytes of all entries on disk together; beyond it the least recently used are deleted. -1 "
    "is no limit, 0 turns the cache off.")
compilation_cache_check_contents = _option(
    "olympus_compilation_cache_check_contents", False, _BOOL,
    doc="Also compile each program that is found on disk, once in a process, and compare.")
compilation_cache_include_metadata_in_key = _option(
    "olympus_compilation_cache_include_metadata_in_key", False, _BOOL,
    doc="Distinguish programs on disk by source lines and scopes, too, which profiles show.")
raise_persistent_cache_errors = _option(
    "olympus_raise_persistent_cache_errors", False, _BOOL,
    doc="Raise errors of reading and writing programs on disk; otherwise warn.")
export_calling_convention_version = _option(
    "olympus_export_calling_convention_version", 10, _INT,
    doc="The version of the calling convention of exported modules; `olympus.export` has the "
    "range of versions.")
cpu_collectives_implementation = _option(
    "olympus_cpu_collectives_implementation", "gloo", _optional(_choice("gloo", "mpi")),
    doc="The transport between CPU devices of several processes; None if they do not communicate. "
    "Set it before the backend starts.")
cpu_collectives_timeout_seconds = _option(
    "olympus_cpu_collectives_timeout_seconds", 300, _TIMEOUT,
    doc="How long a program on CPU devices of several processes waits for the others before it "
    "fails; for 'gloo' only. Set it before `distributed.initialize`.")
cpu_enable_async_dispatch = _option(
    "olympus_cpu_enable_async_dispatch", True, _BOOL,
    doc="Let the CPU backend return from a call before its program has ended, but for programs of "
    "less than about 100 microseconds. Set it before the backend starts.")
cpu_keep_memory = _option(
    "olympus_cpu_keep_memory", True, _BOOL,
    doc="Keep the memory of freed results for the next ones, up to an eighth of the machine's; "
    "with glibc only, and not where MALLOC_… or GLIBC_TUNABLES is set. Set it before the backend "
    "starts.")
cpu_get_local_topology_timeout_minutes = _option(
    "olympus_cpu_get_local_topology_timeout_minutes", 2, _TIMEOUT,
    doc="How long the processes of a job wait for the list of each one's CPU devices.")
cpu_get_global_topology_timeout_minutes = _option(
    "olympus_cpu_get_global_topology_timeout_minutes", 5, _TIMEOUT,
    doc="How long the processes of a job wait for the list of all CPU devices; longer than for "
    "each one's.")
cuda_visible_devices = _option(
    "olympus_cuda_visible_devices", "all", _STRING,
    doc="Numbers of the GPUs to use, separated by commas, or 'all'.")
pjrt_client_create_options = _option(
    "olympus_pjrt_client_create_options", None, _optional(_STRING),
    doc="Options of a plugin's backend, as 'name:value;name:value'.")
pjrt_plugins = _option(
    "olympus_pjrt_plugins", None, _optional(_STRING),
    doc="Libraries of PJRT plugins, as 'name:path,name:path'; `devices(name)` and "
    "`olympus_platforms` know the names then.")
enable_recoverability = _option(
    "olympus_enable_recoverability", False, _BOOL,
    doc="Let programs run on the devices of the remaining processes after one was lost.")
enable_preemption_service = _option(
    "olympus_enable_preemption_service", True, _BOOL,
    doc="Treat SIGTERM in a distributed job as notice of preemption; see "
    "`experimental.multihost_utils.reached_preemption_sync_point`.")
program_agreement_timeout_seconds = _option(
    "olympus_program_agreement_timeout_seconds", 300, _TIMEOUT,
    doc="How long the processes of a job wait for each other before a program's first run, to "
    "compare programs; 0 does not compare.")
check_proxy_envs = _option(
    "olympus_check_proxy_envs", True, _BOOL,
    doc="Warn in `distributed.initialize` of proxies in the environment, which may separate "
    "processes.")
_LEVEL = _optional(_choice("allow", "log", "disallow", "log_explicit", "disallow_explicit"))
transfer_guard_host_to_device = _option(
    "olympus_transfer_guard_host_to_device", None, _LEVEL, option=Guard,
    doc="Treatment of transfers from host to device: 'log' and 'disallow' apply to transfers "
    "without `device_put`, 'log_explicit' and 'disallow_explicit' to all.")
transfer_guard_device_to_device = _option(
    "olympus_transfer_guard_device_to_device", None, _LEVEL, option=Guard,
    doc="Treatment of transfers between devices; levels as from host to device.")
transfer_guard_device_to_host = _option(
    "olympus_transfer_guard_device_to_host", None, _LEVEL, option=Guard,
    doc="Treatment of transfers to the host; those by `device_get` are explicit. On CPU, reading "
    "an array is not a transfer.")
transfer_guard = _option(
    "olympus_transfer_guard", None, _LEVEL, option=TransferGuards,
    doc="Treatment of transfers in every direction; levels as from host to device.")
transfer_guard.guards = (transfer_guard_host_to_device, transfer_guard_device_to_device,
                         transfer_guard_device_to_host)
array_garbage_collection_guard = _option(
    "olympus_array_garbage_collection_guard", None, _optional(_choice("allow", "log", "fatal")),
    option=Guard,
    doc="What happens when the cyclic garbage collector frees an array, whose device memory was "
    "held longer than needed: 'log' writes an error, 'fatal' ends the process.")
array_tracebacks = _option(
    "olympus_array_tracebacks", False, _BOOL, option=AnnouncedOption,
    doc="Keep with each array the Python lines that made it, which "
    "`profiler.device_memory_profile` shows; an operation takes up to 1 us more.")
array_tracebacks.tell(lib.array_tracebacks)
thread_guard = _option(
    "olympus_thread_guard", False, _BOOL, option=AnnouncedOption,
    doc="In a job of several processes, let only the thread that set this option start programs: "
    "threads whose order differs between processes end the job.")
thread_guard.tell(lib.thread_guard)
logging_level = _option(
    "olympus_logging_level", "NOTSET",
    _choice("NOTSET", "DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"), option=AnnouncedOption,
    doc="The level of Python's logger 'olympus'.")
debug_log_modules = _option(
    "olympus_debug_log_modules", "", _STRING, option=AnnouncedOption,
    doc="Names of loggers, separated by commas, that write everything to stderr, for example "
    "'olympus'.")
platform_name = _option(
    "olympus_platform_name", "", _STRING,
    doc="The platform of the default device, one of those that `olympus_platforms` starts; '' is "
    "the first of these. Set it before anything is computed.")
optimization_level = _option(
    "olympus_optimization_level", "UNKNOWN", _EFFORT,
    doc="How much XLA optimises later compilations for speed, 'O0' to 'O3'; 'UNKNOWN' is XLA's "
    "default.")
memory_fitting_level = _option(
    "olympus_memory_fitting_level", "O2", _EFFORT,
    doc="How much XLA tries to save memory in later compilations where memory is short, 'O0' to "
    "'O3'.")
disable_most_optimizations = _option(
    "olympus_disable_most_optimizations", False, _BOOL,
    doc="Let XLA optimise later compilations little: they take less time, and programs are "
    "slower.")
high_dynamic_range_gumbel = _option(
    "olympus_high_dynamic_range_gumbel", False, _BOOL, trace_key=True,
    doc="Let `random.gumbel`, `categorical` and `choice` draw in mode 'high' by default.")
allow_f16_reductions = _option(
    "olympus_allow_f16_reductions", True, _BOOL,
    doc="Let `lax.reduce_sum` add float16 and bfloat16 numbers in their own precision; "
    "`numpy.sum` never does.")
explicit_x64_dtypes = _option(
    "olympus_explicit_x64_dtypes", "warn", _choice("warn", "error", "allow"),
    doc="What a request for a 64-bit dtype does while x64 is off: 'warn' narrows it with a "
    "warning, 'error' refuses it, 'allow' is 'warn'. `olympus_enable_x64` allows such dtypes.")
captured_constants_warn_bytes = _option(
    "olympus_captured_constants_warn_bytes", 2_000_000_000, _INT,
    doc="Warn where a jitted function closes over arrays with this many bytes, which become part "
    "of the compiled program; -1 never warns.")
log_checkpoint_residuals = _option(
    "olympus_log_checkpoint_residuals", False, _BOOL,
    doc="Log, at level WARNING instead of DEBUG, the residuals that each differentiated "
        "`checkpoint` keeps.")
disallow_mesh_context_manager = _option(
    "olympus_disallow_mesh_context_manager", False, _BOOL,
    doc="Refuse `with mesh:`, which `set_mesh` replaces.")
dump_ir_to = _option(
    "olympus_dump_ir_to", "", _STRING,
    doc="A folder to which compiled programs are written as text.")
dump_ir_modes = _option(
    "olympus_dump_ir_modes", "stablehlo", _STRING,
    doc="The forms of programs in `olympus_dump_ir_to`, separated by commas: 'stablehlo', "
    "'olympuspr'.")
include_debug_info_in_dumps = _option(
    "olympus_include_debug_info_in_dumps", True, _BOOL,
    doc="Write the source line of each operation into the modules of `olympus_dump_ir_to`.")
pallas_enable_debug_checks = _option(
    "olympus_pallas_enable_debug_checks", False, _BOOL, trace_key=True,
    doc="Let `pallas.debug_check` check its condition.")
pallas_interpret = _option(
    "olympus_pallas_interpret", False,
    Kind("True, False or an InterpretParams",
         lambda value: isinstance(value, bool) or hasattr(value, "uninitialized_memory"),
         _parse_bool, when_entered=True), trace_key=True,
    doc="Run all kernels in interpret mode, as if with `interpret=True`.")
pallas_poison_buffers = _option(
    "olympus_pallas_poison_buffers", False, _BOOL,
    doc="Fill new buffers of kernels with NaN; interpret mode does so by itself.")
for _row in IDLE:
    _options[_row[0]] = Idle(*_row)
olympus2tf_associative_scan_reductions = _options["olympus2tf_associative_scan_reductions"]
for _guard in (transfer_guard, *transfer_guard.guards, array_garbage_collection_guard):
    if _guard.value is not None:  # from the environment
        _guard.set_global(_guard.value)

# No option of users: C++ calls this function after each jitted call that needs no Python.
post_hook: Any = lib.Config("olympus_post_hook", None, include_in_jit_key=True)
lib.install_config_slots(enable_x64, jit_disabled, post_hook)

trace_key: Callable[[], tuple[Any, ...]] = lib.trace_context
"""Return the values, in this thread, of all options that traced programs depend on."""


class UserContext:
    """An option of a library's own: programs are traced and kept for each of its values.

    `.value` is what holds in this thread; calling it with a hashable value gives a context manager.
    """

    __slots__ = ("_option",)
    _count = itertools.count()

    def __init__(self, default_value: Hashable = None) -> None:
        name = f"olympus_user_context_{next(self._count)}"
        self._option = Option(name, _hashable(default_value), _ANY, trace_key=True, doc="")

    @property
    def value(self) -> Any:
        return self._option.value

    def __call__(self, new_value: Hashable) -> Override:
        return self._option(_hashable(new_value))


def _hashable(value: T) -> T:
    try:
        hash(value)
    except TypeError:
        raise TypeError(f"user context: {value!r} given; a hashable value is required; pass a "
                        "tuple, or another key of what you mean.") from None
    return value


def make_user_context(default_value: Hashable = None) -> UserContext:
    """Make a value of your own that jitted functions depend on, as they do on the options.

    Args: default_value: hashable; what holds outside of every `with` block.
    Returns: A callable: `with context(value):` sets it in this thread, `context.value` reads it.

    >>> scale = olympus.make_user_context(1)
    >>> f = olympus.jit(lambda x: x * scale.value)
    >>> with scale(3):
    ...     print(f(2))
    6
    >>> print(f(2))
    2
    """
    return UserContext(default_value)


def disable_jit(disable: bool = True) -> Override:
    """Context manager under which jitted functions and control flow run as plain Python.

    Args: disable: False turns jit on again within.
    Returns: A context manager, for this thread.

    >>> with disable_jit():
    ...     config.olympus_disable_jit
    True
    """
    return jit_disabled(disable)


checking_leaks: Callable[[], Override] = functools.partial(check_tracer_leaks, True)


def read_environment(variables: Iterable[str]) -> None:
    """Set the options of these variables of the environment, which were not there at import."""
    for name in variables:
        option = _options.get(name.lower())
        if option is not None:
            option.set_global(option.check(Option._from_environment(
                option.name, option.value, option.kind)))


def changed() -> dict[str, object]:
    """The options that are not as they are by default, with their values in this thread."""
    values = {name: option.value for name, option in _options.items()}
    return {name: v for name, v in values.items() if v != _options[name].default}


def notes_failures() -> bool:
    """Whether any failures of operations are noted."""
    return "raise" in (error_checking_behavior_nan.value, error_checking_behavior_divide.value,
                       error_checking_behavior_oob.value)


class Configuration:
    """Reads and changes the options by name; `dir` lists them.

    >>> config.update("olympus_numpy_rank_promotion", "raise")
    >>> config.olympus_numpy_rank_promotion
    'raise'
    >>> config.update("olympus_numpy_rank_promotion", "allow")
    """

    __slots__ = ()

    def _find(self, operation: str, name: str) -> Option:
        if not isinstance(name, str):
            raise TypeError(f"{operation}: got {name!r}; the name of an option is required.")
        option = _options.get(name)
        if option is not None:
            return option
        near = difflib.get_close_matches(name, [*_options], n=3, cutoff=0.5)
        # A name without its prefix is the commonest slip.
        near = [f"olympus_{name}"] if f"olympus_{name}" in _options else near
        hint = f"nearest names: {', '.join(near)}" if near else "dir(config) lists the options"
        raise AttributeError(f"{operation}: got {name!r}; no option has this name;\n  {hint}.")

    def update(self, name: str, val: object) -> None:
        """Set option `name` for the process; a `with` block active in a thread still wins there."""
        option = self._find("config.update", name)
        option.set_global(option.check(val))

    def read(self, name: str) -> Any:
        """Return the value that option `name` has in this thread."""
        return self._find("config.read", name).value

    def __getattr__(self, name: str) -> Any:
        return self._find("config", name).value

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(
            f"config: got an assignment to {name!r}; use config.update({name!r}, {value!r})."
        )

    def __dir__(self) -> list[str]:
        return [*_options, "read", "update"]

    def __repr__(self) -> str:
        return "\n".join(f"{name} = {option.value!r}" for name, option in _options.items())


config = Configuration()


def _warn_of_misspelt_variables() -> None:
    """Warn of variables of the environment that differ from an option's in a letter or two."""
    for variable in os.environ:
        if not variable.startswith("OLYMPUS_") or variable.lower() in _options:
            continue
        for near in [name for name in _options if abs(len(name) - len(variable)) <= 1]:
            given, known = Counter(variable.lower()), Counter(near)
            if (given - known).total() <= 1 and (known - given).total() <= 1:
                warnings.warn(f"{variable} is set, which no option reads; {near.upper()} is one.",
                              stacklevel=2)


_warn_of_misspelt_variables()
