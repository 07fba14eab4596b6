"""Every option of Olympus in one typed table, and `config`, which reads and changes them by name.

Each option is one module-level object: `enable_x64.value` reads it (in C++), `enable_x64(True)` is
a context manager that changes it in this thread, `config.update("olympus_enable_x64", True)`
changes it for the process, and the environment variable OLYMPUS_ENABLE_X64 sets it at import.
Values live in C++ so that the call path of `jit` can key on them.
"""

import contextlib
import difflib
import functools
import itertools
import os
from collections.abc import Callable, Hashable
from typing import Any, TypeAlias

from olympus._src.base import lib
from olympus._src.base.typing import Device

_TRUE = ("1", "true", "yes", "on", "y", "t")
_FALSE = ("0", "false", "no", "off", "n", "f")
_MATMUL_PRECISIONS = (
    "default", "high", "highest", "bfloat16", "tensorfloat32", "float32",
    "ANY_F8_ANY_F8_F32", "ANY_F8_ANY_F8_F32_FAST_ACCUM", "ANY_F8_ANY_F8_ANY",
    "ANY_F8_ANY_F8_ANY_FAST_ACCUM", "F16_F16_F16", "F16_F16_F32", "BF16_BF16_BF16",
    "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "BF16_BF16_F32_X9",
    "TF32_TF32_F32", "TF32_TF32_F32_X3", "F32_F32_F32", "F64_F64_F64",
)  # fmt: skip


class _NoValue:
    """Says that no value was given; None is a value of some options."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "<no value>"


_no_value = _NoValue()
Value: TypeAlias = bool | int | str | Device | None


class Kind:
    """The legal values of an option: a test, a reader of environment text, words for messages."""

    __slots__ = ("accepts", "legal", "parse", "when_entered")

    def __init__(
        self,
        legal: str,
        accepts: Callable[[Any], bool],
        parse: Callable[[str], Any],
        when_entered: Any = _no_value,
    ) -> None:
        self.legal = legal
        self.accepts = accepts
        self.parse = parse
        self.when_entered = when_entered  # what `with option():` sets


def _parse_bool(text: str) -> bool | None:
    lowered = text.lower()
    return True if lowered in _TRUE else False if lowered in _FALSE else None


def _parse_int(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _choice(*values: str) -> Kind:
    legal = "one of " + ", ".join(repr(v) for v in values)
    return Kind(legal, lambda value: isinstance(value, str) and value in values, str)


def _optional(kind: Kind) -> Kind:
    def accepts(value: Any) -> bool:
        return value is None or kind.accepts(value)

    return Kind(f"None or {kind.legal}", accepts, kind.parse)


_BOOL = Kind("True or False", lambda value: isinstance(value, bool), _parse_bool, when_entered=True)
_INT = Kind("an int", _is_int, _parse_int)
_STRING = Kind("a string", lambda value: isinstance(value, str), str)
_ANY = Kind("anything", lambda _: True, str)
_DEVICE = Kind(
    "a Device or a platform name", lambda value: isinstance(value, (str, lib.Device)), str
)


class Override(contextlib.ContextDecorator):
    """An option's value for the length of a `with` block or a decorated call, in this thread."""

    __slots__ = ("_option", "_previous", "_value")

    def __init__(self, option: "Option", value: Any) -> None:
        self._option = option
        self._value = value
        # A stack, so that one object may be entered again inside itself.
        self._previous: list[Any] = []

    def __enter__(self) -> None:
        self._previous.append(self._option.swap_local(self._value))

    def __exit__(self, *exc_info: object) -> None:
        self._option.set_local(self._previous.pop())

    def _recreate_cm(self) -> "Override":
        return Override(self._option, self._value)


class Option(lib.Config):
    """One option. `.value` is what holds in this thread now; calling it gives a context manager."""

    __slots__ = ("default", "doc", "fixed", "kind", "name")

    def __init__(
        self, name: str, default: Any, kind: Kind, *, trace_key: bool, jit_key: bool, doc: str
    ) -> None:
        value = self._from_environment(name, default, kind)
        super().__init__(
            name, value, include_in_jit_key=jit_key, include_in_trace_context=trace_key
        )
        self.name = name
        self.default = default
        self.kind = kind
        self.doc = doc
        self.fixed = ""  # since when it may not change any more

    @staticmethod
    def _from_environment(name: str, default: Any, kind: Kind) -> Any:
        text = os.environ.get(name.upper(), "")
        if not text:
            return default
        value = kind.parse(text)
        if not kind.accepts(value):
            raise ValueError(f"{name.upper()}: got {text!r}; must be {kind.legal}.")
        return value

    def check(self, value: Any) -> Any:
        """Return `value` if it is legal here; else TypeError or ValueError says what is."""
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

    def __call__(self, new_val: Value | _NoValue = _no_value) -> Override:
        if new_val is _no_value:
            new_val = self.kind.when_entered
            if new_val is _no_value:
                raise TypeError(f"{self.name}: got no value; pass {self.kind.legal}.")
        return Override(self, self.check(new_val))

    def __repr__(self) -> str:
        return f"<option {self.name} = {self.value!r}>"


class TransferGuard(Option):
    """What is done with transfers in one direction: C++ looks it up in a state of its own."""

    __slots__ = ()

    @property
    def direction(self) -> str:
        return self.name.removeprefix("olympus_transfer_guard_")

    def swap_local(self, value: Any) -> Any:
        """Set the value of this thread; return what was set before."""
        previous = super().swap_local(value)
        self._tell(value, everywhere=False)
        return previous

    def set_local(self, value: Any) -> None:
        """Set the value of this thread."""
        super().set_local(value)
        self._tell(value, everywhere=False)

    def set_global(self, value: Any) -> None:
        """Set the value of the process."""
        super().set_global(value)
        self._tell(value, everywhere=True)

    def _tell(self, value: Any, *, everywhere: bool) -> None:
        level = value if isinstance(value, str) else None
        lib.guard_transfers(self.direction, level, everywhere=everywhere)


class TransferGuards(Option):
    """The guards of all directions at once."""

    __slots__ = ("guards",)
    guards: tuple[TransferGuard, ...]

    def __call__(self, new_val: Value | _NoValue) -> Override:
        return super().__call__(new_val)

    def swap_local(self, value: Any) -> Any:
        """Set all for this thread; return what was set before."""
        return super().swap_local(value), *[g.swap_local(value) for g in self.guards]

    def set_local(self, value: Any) -> None:
        """Set all for this thread to what `swap_local` returned."""
        mine, *others = value
        super().set_local(mine)
        for guard, previous in zip(self.guards, others, strict=True):
            guard.set_local(previous)

    def set_global(self, value: Any) -> None:
        """Set all for the process."""
        super().set_global(value)
        for guard in self.guards:
            guard.set_global(value)


_options: dict[str, Option] = {}


def _option(
    name: str, default: Any, kind: Kind, *, trace_key: bool = False, jit_key: bool = False,
    doc: str, option: type[Option] = Option,
) -> Any:  # fmt: skip
    """Add a row to the table.

    `trace_key`: traced programs depend on it. `jit_key`: compiled calls do, so that C++ looks them
    up by it.
    """
    made = _options[name] = option(
        name, default, kind, trace_key=trace_key, jit_key=jit_key, doc=doc
    )
    return made


enable_x64 = _option(
    "olympus_enable_x64", False, _BOOL, trace_key=True, jit_key=True,
    doc="Use 64-bit types where they are asked for or are NumPy's default; otherwise narrow them "
    "to 32 bits.",
)  # fmt: skip
jit_disabled = _option(
    "olympus_disable_jit", False, _BOOL, trace_key=True, jit_key=True,
    doc="Run jitted functions and control flow as plain Python, for debugging.",
)  # fmt: skip
debug_nans = _option(
    "olympus_debug_nans", False, _BOOL, trace_key=True, jit_key=True,
    doc="Raise FloatingPointError where an operation or a compiled call produces a NaN.",
)  # fmt: skip
debug_infs = _option(
    "olympus_debug_infs", False, _BOOL, trace_key=True, jit_key=True,
    doc="Raise FloatingPointError where an operation or a compiled call produces an infinity.",
)  # fmt: skip
debug_key_reuse = _option(
    "olympus_debug_key_reuse", False, _BOOL, trace_key=True, jit_key=True,
    doc="Raise KeyReuseError where a random key is used that something has used before.",
)  # fmt: skip
enable_custom_prng = _option(
    "olympus_enable_custom_prng", False, _BOOL, trace_key=True, jit_key=True,
    doc="Let `random.PRNGKey` make typed keys, as `random.key` does.",
)  # fmt: skip
legacy_prng_key = _option(
    "olympus_legacy_prng_key", "allow", _choice("allow", "warn", "error"),
    trace_key=True, jit_key=True,
    doc="What functions of keys do with raw ones: take them, warn where a program is made of one, "
    "or refuse.",
)  # fmt: skip
log_compiles = _option(
    "olympus_log_compiles", False, _BOOL,
    doc="Log, at level WARNING, each function that is traced, lowered or compiled, and how long "
    "it took.",
)  # fmt: skip
explain_cache_misses = _option(
    "olympus_explain_cache_misses", False, _BOOL,
    doc="Log, at level WARNING, why a jitted function had to be traced again.",
)  # fmt: skip
check_tracer_leaks = _option(
    "olympus_check_tracer_leaks", False, _BOOL, trace_key=True, jit_key=True,
    doc="Raise where a tracer is still referred to after its transformation has ended.",
)  # fmt: skip
enable_checks = _option(
    "olympus_enable_checks", False, _BOOL, trace_key=True, jit_key=True,
    doc="Type-check every program after it is made; slow, for developing Olympus.",
)  # fmt: skip
numpy_dtype_promotion = _option(
    "olympus_numpy_dtype_promotion", "standard", _choice("standard", "strict"),
    trace_key=True, jit_key=True,
    doc="'standard' promotes operands of different dtypes; 'strict' refuses them, weakly typed "
    "ones excepted.",
)  # fmt: skip
numpy_rank_promotion = _option(
    "olympus_numpy_rank_promotion", "allow", _choice("allow", "warn", "raise"),
    trace_key=True, jit_key=True,
    doc="What numpy functions do with operands of different ranks: broadcast, broadcast and warn, "
    "or refuse.",
)  # fmt: skip
default_matmul_precision = _option(
    "olympus_default_matmul_precision", None, _optional(_choice(*_MATMUL_PRECISIONS)),
    trace_key=True, jit_key=True,
    doc="Precision of matrix products and convolutions that do not say theirs; None is the "
    "platform's own.",
)  # fmt: skip
default_device = _option(
    "olympus_default_device", None, _optional(_DEVICE), trace_key=True, jit_key=True,
    doc="Where uncommitted values are put and computed: a Device, a platform name, or None for "
    "the first device.",
)  # fmt: skip
platforms = _option(
    "olympus_platforms", None, _optional(_STRING),
    doc="Platforms to start, separated by commas, the first being the default; None for what is "
    "found.",
)  # fmt: skip
traceback_filtering = _option(
    "olympus_traceback_filtering", "auto",
    _choice("auto", "off", "remove_frames", "tracebackhide", "quiet_remove_frames"),
    doc="How frames of Olympus itself are left out of the tracebacks that users see.",
)  # fmt: skip
default_prng_impl = _option(
    "olympus_default_prng_impl", "threefry2x32", _choice(
        "threefry2x32", "threefry4x32", "philox2x32", "philox4x32", "rbg", "unsafe_rbg"),
    trace_key=True, jit_key=True,
    doc="The random generator that `random.key` and `random.PRNGKey` use unless told.",
)  # fmt: skip
threefry_partitionable = _option(
    "olympus_threefry_partitionable", True, _BOOL, trace_key=True, jit_key=True,
    doc="Generate Threefry bits so that each element depends on its own index only, hence can be "
    "sharded.",
)  # fmt: skip
softmax_custom_jvp = _option(
    "olympus_softmax_custom_jvp", False, _BOOL, trace_key=True, jit_key=True,
    doc="Differentiate `nn.softmax` by its own rule, which saves memory.",
)  # fmt: skip
no_tracing = _option(
    "olympus_no_tracing", False, _BOOL,
    doc="Refuse to trace a jitted function, so that a call of a new type is an error.",
)  # fmt: skip
no_execution = _option(
    "olympus_no_execution", False, _BOOL, jit_key=True,
    doc="Refuse to run compiled programs: tracing, lowering and compiling are what is left.",
)  # fmt: skip
random_seed_offset = _option(
    "olympus_random_seed_offset", 0, _INT, trace_key=True, jit_key=True,
    doc="Added to every integer seed that makes a random key.",
)  # fmt: skip

num_cpu_devices = _option(
    "olympus_num_cpu_devices", -1,
    Kind("-1 or a positive int", lambda value: _is_int(value) and (value == -1 or value > 0),
         _parse_int),
    doc="How many devices the CPU backend has; -1 is as XLA_FLAGS says, or one. Set it before the "
    "backend starts.",
)  # fmt: skip
_LEVEL = _optional(_choice("allow", "log", "disallow", "log_explicit", "disallow_explicit"))
transfer_guard_host_to_device = _option(
    "olympus_transfer_guard_host_to_device", None, _LEVEL, option=TransferGuard,
    doc="What is done with transfers from host to device: 'log' and 'disallow' are for those that "
    "`device_put` does not ask for, 'log_explicit' and 'disallow_explicit' for all.",
)  # fmt: skip
transfer_guard_device_to_device = _option(
    "olympus_transfer_guard_device_to_device", None, _LEVEL, option=TransferGuard,
    doc="What is done with transfers between devices; levels as from host to device.",
)  # fmt: skip
transfer_guard_device_to_host = _option(
    "olympus_transfer_guard_device_to_host", None, _LEVEL, option=TransferGuard,
    doc="What is done with transfers to the host; `device_get` asks for them. On CPU, reading an "
    "array is no transfer.",
)  # fmt: skip
transfer_guard = _option(
    "olympus_transfer_guard", None, _LEVEL, option=TransferGuards,
    doc="What is done with transfers in every direction; levels as from host to device.",
)  # fmt: skip
transfer_guard.guards = (transfer_guard_host_to_device, transfer_guard_device_to_device,
                         transfer_guard_device_to_host)  # fmt: skip
for _guard in (transfer_guard, *transfer_guard.guards):
    if _guard.value is not None:  # from the environment
        _guard.set_global(_guard.value)

# Not an option of users: a function that C++ calls after each jitted call that needs no Python.
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

    def __init__(self, default_value: Any = None) -> None:
        name = f"olympus_user_context_{next(self._count)}"
        self._option = Option(name, _hashable(default_value), _ANY, trace_key=True, jit_key=True,
                              doc="")

    @property
    def value(self) -> Any:
        return self._option.value

    def __call__(self, new_value: Any) -> Override:
        return self._option(_hashable(new_value))


def _hashable(value: Any) -> Any:
    try:
        hash(value)
    except TypeError:
        raise TypeError(f"user context: {value!r} given; a hashable value is required; pass a "
                        "tuple, or another key of what you mean.") from None
    return value


def make_user_context(default_value: Hashable = None) -> UserContext:
    """A value of one's own that jitted functions depend on, as they do on the options.

    Args:
      default_value: hashable; what holds outside of every `with` block.

    Returns:
      A callable: `with context(value):` sets it in this thread, `context.value` reads it.

    >>> import olympus
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

    Args:
      disable: False turns jit on again within.

    Returns:
      A context manager, for this thread.

    >>> with disable_jit():
    ...     config.olympus_disable_jit
    True
    """
    return jit_disabled(disable)


checking_leaks: Callable[[], Override] = functools.partial(check_tracer_leaks, True)


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
        found = _options.get(name)
        if found is not None:
            return found
        near = difflib.get_close_matches(name, [*_options], n=3, cutoff=0.5)
        # A name without its prefix is the commonest slip.
        near = [f"olympus_{name}"] if f"olympus_{name}" in _options else near
        hint = f"nearest names: {', '.join(near)}" if near else "dir(config) lists the options"
        raise AttributeError(f"{operation}: got {name!r}; no option has this name; {hint}.")

    def update(self, name: str, val: Any) -> None:
        """Set option `name` for the process; a `with` block active in a thread still wins there."""
        option = self._find("config.update", name)
        option.set_global(option.check(val))

    def read(self, name: str) -> Any:
        """Return the value that option `name` has in this thread."""
        return self._find("config.read", name).value

    def __getattr__(self, name: str) -> Any:
        return self._find("config", name).value

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(
            f"config: got an assignment to {name!r}; use config.update({name!r}, {value!r})."
        )

    def __dir__(self) -> list[str]:
        return [*_options, "read", "update"]

    def __repr__(self) -> str:
        return "\n".join(f"{name} = {option.value!r}" for name, option in _options.items())


config = Configuration()
