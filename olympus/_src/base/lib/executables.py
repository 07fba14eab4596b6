"""Compiled programs: compile, run, analyse, store, and hand over to the C++ fast path of `jit`."""

from __future__ import annotations

import enum
import functools
import gc
import re
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeGuard

import numpy as np

from olympus._src.base.lib import waiting
from olympus._src.base.lib.loading import _jax, libraries, xla_client
from olympus._src.base.util import lazy_imports

if TYPE_CHECKING:
    from olympus._src.base.array_type import Array, Device

LoadedExecutable: Any = _jax.LoadedExecutable
_COMPILE_ONLY: Any = _jax.CompileOnlyPyClient
XlaRuntimeError: type[RuntimeError] = _jax.JaxRuntimeError

with lazy_imports(__name__):
    import difflib
    import mmap

    from olympus._src.base.lib import mlir as _mlir

# Patterns are compiled when they are first looked for: `import olympus` looks for none.
_WRONG_OPTION = r"No such compile option: '?([^'\s]*?)'?(?:\s|$)|While setting option ([^\s,]+),"

_LACKS_CODE = r"^(INTERNAL|NOT_FOUND): Function \S+ not found"
_FLAG = rb"\0(xla_[a-z0-9_]+)\0"
# Options that are no flags: of the build itself; jaxlib 0.11 has no efforts any more.
_OF_BUILD = tuple(name for name in (
    "exec_time_optimization_effort", "memory_fitting_effort", "optimization_level",
    "memory_fitting_level") if hasattr(_jax.ExecutableBuildOptions, name))

CompilerOptions = Mapping[str, str | bool | int | float | enum.Enum]


class CompilerOptionError(_jax.JaxRuntimeError, ValueError):
    """A compiler option of no known name, or with a value that it does not take."""


# XLA:CPU compiles a whole loop to one function, instead of one function for each operation, if a
# step touches at most this many bytes and needs no library; XLA's own limit is 1,024. Larger steps
# may be slower as one function, which has one thread (`tools/kernel_table.py`, cases `steps`).
SMALL_LOOP = 65536
_SMALL_LOOP_OPTION = b"xla_cpu_small_while_loop_byte_threshold"


@functools.cache
def _cpu_options(elemental: bool) -> bytes:
    """Options with that limit, unless XLA_FLAGS gives one, and the emitter of fused loops.

    Both are in a message of XLA's that has no name in Python, in fields 3, 3 of its messages: the
    limit in a map, 500, and `xla_cpu_use_fusion_emitters`, which jaxlib 0.12 ignores, in 376.
    """
    own = _jax.CompileOptions().SerializeAsString()
    added = b""
    if _SMALL_LOOP_OPTION not in own:
        entry = _field(1, _SMALL_LOOP_OPTION) + _field(2, str(SMALL_LOOP).encode())
        added += _field(500, entry)
    if elemental:
        added += _digits(376 << 3) + b"\0"
    # Messages behind each other are one, and so are the messages within them.
    return own + _field(3, _field(3, added)) if added else own


def _field(number: int, content: bytes) -> bytes:
    """A field of bytes in a message of protocol buffers."""
    return _digits(number << 3 | 2) + _digits(len(content)) + content


def _digits(n: int) -> bytes:
    """A number in two digits of protocol buffers."""
    return bytes([n & 127 | 128, n >> 7])


def _compile_options(
    devices: Sequence[Device | _Numbered], options: CompilerOptions | None, num_replicas: int = 1,
    elemental: bool = False,
) -> Any:
    """One program on each device: `num_replicas` copies of it, each cut into equal partitions."""
    num_partitions = len(devices) // num_replicas
    made = _jax.CompileOptions()
    if getattr(devices[0], "platform", "") == "cpu":
        made = made.ParseFromString(_cpu_options(elemental))
    build = made.executable_build_options
    made.num_replicas = build.num_replicas = num_replicas
    made.num_partitions = build.num_partitions = num_partitions
    ids = np.array([d.id for d in devices], np.int32).reshape(num_replicas, num_partitions)
    build.device_assignment = _jax.DeviceAssignment.create(ids)
    # libtpu splits 64-bit integers better behind its partitioner, also for one device.
    build.use_spmd_partitioning = num_partitions > 1 or getattr(
        devices[0], "platform", "") == "tpu"
    build.use_shardy_partitioner = num_partitions > 1
    flags = {name: value.value if isinstance(value, enum.Enum) else value
             for name, value in (options or {}).items()}
    for name, value in flags.items():
        if not isinstance(name, str) or not isinstance(value, (str, bool, int, float)):
            raise TypeError(
                f"compile: compiler option {name!r}: {value!r} given; a name and a string, bool, "
                "int or float are required."
            )
    for name in flags.keys() & set(_OF_BUILD):
        try:
            kind = type(getattr(build, name))
            setattr(build, name, kind(flags.pop(name)))
        except (TypeError, ValueError) as error:
            raise _option_error(name, options, str(error)) from None
    made.env_option_overrides = list(flags.items())
    return made


def get_compile_options(num_replicas: int, num_partitions: int, device_assignment: Any = None,
                        env_options_overrides: CompilerOptions | None = None,
                        fdo_profile: bytes | None = None, detailed_logging: bool = True,
                        backend: object = None) -> Any:
    """XLA's object of compiler options, for clients that are called by hand.

    Args:
      num_replicas, num_partitions: how many devices run copies, and parts, of the program.
      device_assignment: the devices, or their numbers; None is the first ones.
      env_options_overrides: XLA's flags, by name.
      fdo_profile: of a profile, for XLA to optimise by.
      detailed_logging, backend: accepted.

    >>> backend.get_compile_options(1, 2).num_partitions
    2
    """
    count = num_replicas * num_partitions
    ids = range(count) if device_assignment is None else np.ravel(device_assignment)
    if len(ids) != count:
        raise ValueError(f"get_compile_options: {len(ids)} devices given for {num_replicas} "
                         f"replicas of {num_partitions} partitions; {count} are required.")
    made = _compile_options([_Numbered(getattr(d, "id", d)) for d in ids], env_options_overrides,
                            num_replicas)
    if fdo_profile is not None:
        made.executable_build_options.fdo_profile = fdo_profile
    return made


class _Numbered(NamedTuple):
    """A device as far as compiler options know it."""

    id: Any


def _option_error(name: str, options: CompilerOptions | None, why: str) -> CompilerOptionError:
    """The error for a compiler option, with the names that are like it."""
    chosen = options or {}
    if "No such compile option" not in why:
        return CompilerOptionError(f"compile: got compiler option {name!r}: {chosen.get(name)!r}; "
                                   f"XLA says: {why}; give a value of the flag's type.")
    near = difflib.get_close_matches(name, [*_flags(), *_OF_BUILD], n=3, cutoff=0.6)
    advice = f"near names: {', '.join(near)}" if near else "remove it or correct its spelling"
    return CompilerOptionError(
        f"compile: got compiler option {name!r}; the names must be flags of this XLA (xla_…); "
        f"{advice}. (No such compile option: '{name}')"
    )


@functools.cache
def _flags() -> list[str]:
    """The names in jaxlib's library that may be flags: XLA has no list of them to ask for."""
    largest = max(libraries(), key=lambda path: path.stat().st_size)
    with open(largest, "rb") as file, mmap.mmap(
            file.fileno(), 0, access=mmap.ACCESS_READ) as text:
        return sorted({name.decode() for name in re.findall(_FLAG, text)})


def is_absent(device: Device) -> bool:
    """Whether a device is one of a topology: programs compile for it, and do not run."""
    return isinstance(device.client, _COMPILE_ONLY)


def compile(
    client: Any,
    module: Any,
    devices: Sequence[Device],
    *,
    options: CompilerOptions | None = None,
    host_callbacks: Sequence[Callable[..., object]] = (),
    num_replicas: int = 1,
    chosen_outputs: Sequence[bool] = (),
    in_this_thread: bool = False,
    elemental: bool = False,
) -> Any:
    """Compile an MLIR module for `devices` and load it.

    `module` is an `ir.Module` or MLIR bytecode. `options` are XLA flags by name; an unknown one
    raises ValueError. `host_callbacks` are the Python functions that the module's callback custom
    calls name by index. `chosen_outputs` marks the outputs whose sharding the partitioner chooses.
    `in_this_thread` is for modules whose compilation calls Python, which has state per thread.
    `elemental` chooses XLA:CPU's elemental emitter for fused loops.
    """
    made = _compile_options(devices, options, num_replicas, elemental)
    if len(devices) > 1:
        build = made.executable_build_options
        build.allow_spmd_sharding_propagation_to_output = list(chosen_outputs)
    device_list = _jax.DeviceList(tuple(devices))
    if host_callbacks and isinstance(module, bytes):
        module = _mlir.parse(module)  # C++ takes callbacks with a module only
    callbacks = {"host_callbacks": [
        _callable(client.make_python_callback_from_host_send_and_recv, c) for c in host_callbacks]
                 } if host_callbacks else {}
    try:
        run = _at_once if in_this_thread else _to_the_end
        if is_absent(devices[0]):
            # The devices are not on this machine: nothing is loaded, bytecode is refused, and
            # callbacks must be objects that the client made.
            callbacks = {name: own for name, calls in callbacks.items() if (
                own := [c for c in calls if not callable(c)])}
            module = _mlir.parse(module) if isinstance(module, bytes) else module
            return run(lambda: client.compile(module, device_list, made, **callbacks))
        return run(lambda: client.compile_and_load(module, device_list, made, **callbacks))
    except XlaRuntimeError as error:
        wrong = re.search(_WRONG_OPTION, str(error)) if options else None
        if wrong is None:
            raise
        raise _option_error(wrong[1] or wrong[2] or "", options, str(error)) from None


def _callable(make: Callable[..., object], call: Callable[..., object]) -> object:
    """A function of the host as programs of a client take it."""
    by = getattr(call, "transfers", None)
    if by is None:
        return call
    sent, received = [[xla_client.Shape.array_shape(*each) for each in arrays]
                      for arrays in (by.sent, by.received)]
    return make(
        call, sent, received, [*by.send_channels], [*by.receive_channels],
        _not_sent)


def _not_sent(call: object) -> bytes:
    raise NotImplementedError("a client in another process was given a function of this one to "
                              "call; one in this process is required.")


def _at_once(call: Callable[[], object]) -> object:
    return call()


def _to_the_end(call: Callable[[], object]) -> object:
    """Return what `call()` does; if Ctrl-C ends the wait for it, the process waits when it ends."""
    # XLA compiles in threads of its own, which a KeyboardInterrupt leaves alone: they would still
    # compile when the process destroys their objects, and end it by a signal. A Python thread is
    # not interrupted, and is waited for at exit.
    if threading.current_thread() is not threading.main_thread():
        return waiting.to_the_end(call)
    results: list[object] = []
    failures: list[BaseException] = []
    ended = threading.Lock()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:
            failures.append(error)
        finally:
            ended.release()

    ended.acquire()
    threading.Thread(target=run, name="olympus-compile").start()
    ended.acquire()  # not `join`, which takes an interrupt for the end of the thread (Python 3.11)
    if failures:
        raise failures.pop()
    return results[0]


def _never_called(*_: object) -> object:
    raise AssertionError("a host callback that no program names")


# The host callbacks of a program that calls none and is to run in the thread that calls it: XLA:CPU
# runs programs with host callbacks there, so that a callback may call others, and has no other
# option by program. Where operands are still computed, it hands them to its own threads as always.
IN_THIS_THREAD: Sequence[Callable[..., object]] = (_never_called,)


def execute(executable: Any, arrays: Sequence[Array], handlers: Sequence[object]) -> list[Array]:
    """Start `executable` on device arrays and return its outputs, whose values may come later."""
    return executable.execute_sharded(arrays).consume_with_handlers(handlers)


def execute_with_tokens(executable: Any, arrays: Sequence[Array], handlers: Sequence[object]
                        ) -> tuple[list[Array], Any]:
    """Like `execute`; also return a token whose `block_until_ready` waits for the side effects."""
    results = executable.execute_sharded(arrays, with_tokens=True)
    token = results.consume_token()
    return results.consume_with_handlers(handlers), token


class FastPath(NamedTuple):
    """The data with which C++'s `pjit` runs a program without Python; it reads fields by name."""

    xla_executable: Any
    out_pytree_def: Any
    in_shardings: Sequence[Any]  # one per kept argument
    out_shardings: Sequence[Any]
    out_avals: Sequence[Any]
    out_committed: Sequence[bool]
    kept_var_bitvec: Sequence[bool]  # one per flat argument
    in_device_local_layouts: Sequence[Any]  # one per kept argument
    const_args: Sequence[Any]


def fastpath(executable: object, out_tree: object, in_shardings: Sequence[object],
             out_shardings: Sequence[object], out_avals: Sequence[object],
             out_committed: Sequence[bool], used: Sequence[bool], copied: Sequence[bool],
             const_args: Sequence[object] = ()) -> FastPath:
    """Build the result of a cache miss of `pjit`.

    `used` marks the flat arguments that the program reads. Among those, `copied` marks NumPy arrays
    that C++ hands to `pjit`'s fallback: it places none itself that has a layout.
    """
    layouts = [True if c else None for c in copied]
    return FastPath(
        executable, out_tree, list(in_shardings), list(out_shardings), list(out_avals),
        list(out_committed), list(used), layouts, list(const_args),
    )


# C++'s `pjit` asks Python to trace a new signature while the error of a pytree nested too deep is
# still set. The next lookup of an attribute may drop it and say that there is no such attribute.
# Any C function that takes no arguments raises it, as the cause of a SystemError.
raise_error_of_pjit: Callable[[], object] = gc.isenabled


def is_error_of_pjit(error: BaseException) -> TypeGuard[SystemError]:
    """Whether `raise_error_of_pjit` raised it, or Python where it was not asked in time."""
    return type(error) is SystemError and isinstance(error.__cause__, RecursionError)


# The calls that C++ runs without Python, by (function, options): a new `jit(f)` finds them.
shared_signatures: Any = _jax.PjitFunctionCache(8192)


def forget_all_signatures() -> None:
    """Make every C++ `pjit` ask Python again, and those made of the same functions later."""
    _jax.PjitFunctionCache.clear_all()
    shared_signatures.clear()       # of functions, some of whose `pjit` may be gone


waiting.at_end.append(forget_all_signatures)


def forget_signatures(jitted: Any) -> None:
    """Make the C++ `pjit` that `jitted` weakly refers to ask Python again, once for each signature.

    For calls that raise: it would otherwise run nothing itself for a signature whose first one did.
    """
    pjit = jitted()
    if pjit is not None:
        pjit._clear_cache()


class MemoryStats(NamedTuple):
    """How much memory a compiled program needs, in bytes; 0 where the backend does not say."""

    generated_code_size_in_bytes: int
    argument_size_in_bytes: int
    output_size_in_bytes: int
    alias_size_in_bytes: int
    temp_size_in_bytes: int
    host_generated_code_size_in_bytes: int
    host_argument_size_in_bytes: int
    host_output_size_in_bytes: int
    host_alias_size_in_bytes: int
    host_temp_size_in_bytes: int
    peak_memory_in_bytes: int


def memory_stats(executable: Any) -> MemoryStats | None:
    """Return the memory a compiled program needs, or None where the backend cannot tell."""
    try:
        stats = executable.get_compiled_memory_stats()
    except (XlaRuntimeError, NotImplementedError):
        return None
    return MemoryStats(*(getattr(stats, field, 0) for field in MemoryStats._fields))


def cost_analysis(executable: Any) -> dict[str, float] | None:
    """Return XLA's estimates ('flops', 'bytes accessed', …), or None where the backend has none."""
    try:
        return dict(executable.cost_analysis())
    except (XlaRuntimeError, NotImplementedError):
        return None


def hlo_cost_analysis(client: object, hlo_module: object) -> dict[str, float] | None:
    """Return XLA's estimates for a program not compiled yet (see `mlir.hlo_module`), or None."""
    try:
        return dict(_jax.hlo_module_cost_analysis(client, hlo_module))
    except (XlaRuntimeError, NotImplementedError):
        return None


def hlo_text(executable: Any) -> str | None:
    """Return the optimised HLO of a compiled program, or None where it is not kept."""
    try:
        return "\n\n".join(module.to_string() for module in executable.hlo_modules())
    except (XlaRuntimeError, NotImplementedError):
        return None


def serialize_executable(executable: Any) -> bytes:
    """Return a compiled program as bytes, good for this jaxlib version and kind of machine only."""
    return executable.serialize()


def lacks_code(error: Exception) -> bool:
    """Whether a program failed since it was loaded from bytes that lack some of its code."""
    return re.search(_LACKS_CODE, str(error)) is not None


def deserialize_executable(client: Any, blob: bytes, devices: Sequence[Device], *,
                           host_callbacks: Sequence[Callable[..., object]] = ()) -> object:
    """Load what `serialize_executable` wrote, with fresh callbacks."""
    made = _compile_options(devices, None)
    device_list = _jax.DeviceList(tuple(devices))
    callbacks = list(host_callbacks)
    return client.deserialize_executable(blob, device_list, made, host_callbacks=callbacks)


def shardings(executable: Any) -> tuple[list[Any], list[Any]]:
    """Return the HloSharding of each parameter and of each output of a program of many devices."""
    protos = executable.get_parameter_shardings(), executable.get_output_shardings()
    # One that was loaded from disk and takes no parameters has None for their shardings.
    parameters, outputs = (
        [xla_client.HloSharding.from_proto(p) for p in ps or ()] for ps in protos)
    return parameters, outputs


def inspection_key(callback: Callable[[Any], None]) -> bytes:
    """Return how an "InspectSharding" custom call names `callback`, which takes an HloSharding.

    The callback must live until the program is compiled.
    """
    return _jax.encode_inspect_sharding_callback(callback)


def layouts(executable: Any) -> tuple[list[Any], list[Any]]:
    """Return the runtime's layout objects of a compiled program's parameters and of its outputs."""
    return executable.get_parameter_layouts(), executable.get_output_layouts()


def array_layout(array: Array) -> object:
    """The layout of an array, for `layout_fields`."""
    return array._pjrt_layout


def layout_order(array: Array) -> tuple[int, ...]:
    """The axes of an array from major to minor."""
    return tuple(array._pjrt_layout._xla_layout().minor_to_major())[::-1]


def layout_fields(layout: Any) -> tuple[tuple[int, ...], tuple[tuple[int, ...], ...], int]:
    """Return (axes from major to minor, tiles, bits of an element smaller than a byte or 0)."""
    xla_layout = layout._xla_layout()
    tiles = tuple(tuple(tile) for tile in xla_layout.tiling())
    return tuple(xla_layout.minor_to_major())[::-1], tiles, xla_layout.element_size_in_bits()
