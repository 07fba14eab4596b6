"""Compile lowered modules, once for each distinct program, and run them."""

from __future__ import annotations

import gc
import itertools
import logging
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..base import config, errors, lib, util
from ..base.util import Memo
from ..core.effects import add_pending, wait_for_ordered
from ..core.ir import NO_EFFECTS, ClosedOlympuspr
from ..types import dtypes
from ..types.avals import AbstractToken, make_aval, physical_aval
from . import devices
from .lowering import lower_program

__all__ = ["Executable", "compile_module", "compile_program", "drop_programs", "user_error"]

logger = logging.getLogger("olympus")
_executables: Memo = Memo(4096)
_lock = threading.Lock()
_compilations = itertools.count(1)
_LOOK_EVERY = 128       # compilations; one takes some ten mappings
_MAPPINGS = Path("/proc/self/maps")
_MOST_MAPPINGS = Path("/proc/sys/vm/max_map_count")


class Executable:
    """A compiled program of flat arguments.

    `kept` marks the inputs that the program reads; the others are not passed.
    """

    __slots__ = ("xla", "name", "in_avals", "out_avals", "kept", "sharding", "device", "handlers",
                 "physical_out", "keepalive", "effects")

    def __init__(self, xla: Any, name: str, in_avals: Sequence[Any], out_avals: Sequence[Any],
                 kept: Sequence[bool], device: Any, committed: bool, keepalive: Any = None,
                 effects: frozenset[Any] = NO_EFFECTS) -> None:
        self.xla, self.name, self.device = xla, name, device
        self.in_avals, self.out_avals, self.kept = list(in_avals), list(out_avals), list(kept)
        self.sharding = lib.single_device_sharding(device)
        self.physical_out = [_storage(a) for a in out_avals]
        self.handlers = [lib.result_handler(a, self.sharding, committed) for a in self.physical_out]
        self.keepalive, self.effects = keepalive, effects

    def __call__(self, args: Sequence[Any]) -> list[Any]:
        """Start the program on all flat arguments (device arrays); return its result arrays."""
        kept = [a if a.device is self.device else lib.copy_to_device(a, self.device)
                for a, k in zip(args, self.kept) if k]      # uncommitted ones may be elsewhere
        try:
            if self.effects:
                ordered = any(e.ordered for e in self.effects)
                if ordered:     # programs may overlap on a device, ordered effects must not
                    wait_for_ordered()
                outs, token = lib.execute_with_tokens(self.xla, kept, self.handlers)
                add_pending(token, ordered)
                return outs
            return lib.execute(self.xla, kept, self.handlers)
        except lib.XlaRuntimeError as error:
            raise user_error(error, self.name) from None

    def fastpath(self, out_tree: Any, committed: bool) -> Any:
        """What C++ needs to run this program without us; None where Python is needed."""
        calls_host = any(type(x) is lib.HostFunction for x in self.keepalive or ())
        if self.effects or calls_host or any(a is not p and dtypes.is_float0(a.dtype)
                               for a, p in zip(self.out_avals, self.physical_out)):
            return None
        n_in, n_out = sum(self.kept), len(self.out_avals)
        return lib.fastpath(self.xla, out_tree, [self.sharding] * n_in, [self.sharding] * n_out,
                            self.physical_out, [committed] * n_out, self.kept)


def _storage(aval: Any) -> Any:
    """The aval of the array that holds a value on a device."""
    if isinstance(aval, AbstractToken):
        return make_aval((0,), dtypes.as_dtype(bool))
    if dtypes.is_float0(aval.dtype):
        return make_aval(aval.shape, dtypes.as_dtype(bool))
    return physical_aval(aval)


def user_error(error: Exception, what: str) -> Exception:
    """What to raise instead: a callback's own exception, or our class for lack of memory."""
    found = lib.raised_by_host(error)
    if found is not error:
        return found
    text = str(error)
    if "RESOURCE_EXHAUSTED" in text or "Out of memory" in text:
        return errors.ResourceExhaustedError(
            f"{what}: not enough memory on the device ({text.splitlines()[0]}); smaller arrays or "
            "fewer live ones are required; delete arrays, use a smaller batch, or donate "
            "arguments.")
    return error


def compile_module(module: Any, context: Any, device: Any,
                   options: dict[str, Any] | None = None) -> Any:
    """The XLA executable of a lowered module; equal modules with equal options compile once."""
    text = module.operation.get_asm(enable_debug_info=False)
    key = None
    if not context.host_callbacks:
        settings = tuple(sorted((k, repr(v)) for k, v in options.items())) if options else ()
        key = (text, device, settings)
        found = _executables.get(key)
        if found is not None:
            return found
    if next(_compilations) % _LOOK_EVERY == 0:
        _make_room(context.name)
    start = time.perf_counter()
    try:
        xla = lib.compile(devices.client(device.platform), module, [device], options=options,
                          host_callbacks=context.host_callbacks)
    except lib.XlaRuntimeError as error:
        raise user_error(error, f"compiling {context.name}") from None
    if config.log_compiles.value:
        logger.warning("Finished XLA compilation of jit(%s) in %.9f sec", context.name,
                       time.perf_counter() - start)
    if key is not None:
        _executables[key] = xla
    return xla


def drop_programs() -> None:
    """Forget every traced and compiled program; they are made anew when next needed."""
    util.clear_all()
    lib.PjitFunctionCache.clear_all()


def _make_room(name: str) -> None:
    """Drop programs before the process has as many memory mappings as Linux allows.

    Each compiled program takes about ten; XLA's compiler ends the process where it gets no more.
    """
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
    logger.warning("compile: the process had %d of %d memory mappings; kept programs are dropped, "
                   "which left %d; they are compiled again when next needed. Raise "
                   "vm.max_map_count to keep more.", taken, most, left)
    if left > 0.9 * most:
        raise errors.ResourceExhaustedError(
            f"compiling {name}: the process has {left} of {most} memory mappings "
            "(vm.max_map_count); a tenth of them must be free; drop compiled functions that are "
            "not used any more, or raise the limit.")


def compile_program(closed: ClosedOlympuspr, name: str, device: Any,
                    committed: bool = False) -> Executable:
    """Lower and compile a program whose inputs are all kept."""
    module, context = lower_program(closed, name, device.platform)
    xla = compile_module(module, context, device)
    n = len(closed.in_avals)
    return Executable(xla, name, closed.in_avals, closed.out_avals, [True] * n, device, committed,
                      context.keepalives, closed.effects)
