"""`jit(f, persist=True)`: programs on disk with all that a call needs, so that nothing is traced.

    call ─► StableKey of the function and of the arguments' types ─► entry ─► executable
                                  └── none ─► trace and compile, watched ─► write the entry

The key is computed without running the function. When the function does run, it is checked: all
user's code that is entered must be part of the key, and the key must be the same afterwards.
"""

from __future__ import annotations

import gc
import sys
import threading
import time
import types
from collections.abc import Callable, Sequence
from importlib import _bootstrap
from typing import Any

from ..base import config, lib, source
from ..base.lib.executables import CompilerOptions
from ..base.typing import Array, Modes, R
from ..base.users import code_of_users
from ..base.util import Memo
from ..core.context import current_context
from ..devices.array import stored
from ..runtime import compile, disk_cache
from ..runtime.compile import Placement
from .packed import pack, unpack
from .program import Program, anew, trace_program
from .signature import Arguments, Signature
from .stable_key import StableKey, UnstableError, options_of_now, software

# Frames below these belong to the import system, and to modules.
_IMPORTS = tuple(getattr(_bootstrap, name).__code__
                 for name in ("_find_and_load", "_find_spec"))


class PersistentPrograms:
    """The programs of one function that are found by other processes."""

    def __init__(self, signature: Signature, keep_unused: bool, options: CompilerOptions | None,
                 modes: Modes) -> None:
        self.signature, self.keep_unused, self.options = signature, keep_unused, options
        self.modes = modes
        self.programs = Memo(4096)      # of this process, by call and placement
        #: Programs from the disk that were not run yet, with their keys.
        self.untried: dict[Program, tuple[Placement, StableKey, disk_cache.Directory, str]] = {}

    def program(self, arguments: Arguments, placement: Placement) -> Program:
        """The program of a call, with its executable: from memory, from the disk, or made."""
        here = arguments.key, placement     # an entry is an executable, for its devices
        found = self.programs.get(here)
        if found is None:
            found = self.programs[here] = self._find(arguments, placement)
        return found

    def _find(self, arguments: Arguments, placement: Placement) -> Program:
        name = disk_cache.entry_name(self.signature.name)
        directory = disk_cache.current(asked=True)
        if directory is None:
            if not config.compilation_cache_dir.value:
                source.warn(f"jit persist=True: {self.signature.name} is compiled for this process "
                            "only: no directory is set; set olympus_compilation_cache_dir.")
            return self._trace(arguments)
        stable = self._key(arguments, placement)
        client, key, entry = placement.devices[0].client, "", None
        try:
            # All devices of the machine: the call's own are in the digest.
            key = directory.key(self.signature.name, stable.hexdigest(), client,
                                tuple(client.devices()))
            entry = directory.get(key)
            if entry is not None:
                program = self._loaded(entry[0], key, arguments, placement)
                self.untried[program] = placement, stable, directory, key
                return program
        except Exception as error:
            if isinstance(error, compile.foreign.MissingTarget):    # the entry is sound
                raise
            if entry is not None:       # an entry that cannot be read now may be sound
                directory.drop(key)
            disk_cache.warn_or_raise(directory, "reading", name, error)
        return self._made(arguments, placement, stable, directory, key)

    def check_run(self, program: Program, outs: Sequence[Array]) -> None:
        """Raise the errors of a program's first run from an entry at once, not later."""
        # XLA loads a program without its code, too, which then fails when it runs.
        if program in self.untried:
            lib.block_until_ready(list(map(stored, outs)))
            self.untried.pop(program, None)

    def replaced(self, arguments: Arguments, program: Program, error: Exception) -> bool:
        """Whether a program failed since its entry lacks code, and another one takes its place."""
        entry = self.untried.pop(program, None)
        if entry is None or not lib.lacks_code(error):
            return False
        placement, stable, directory, key = entry
        directory.drop(key)
        self.programs.pop((arguments.key, placement), None)
        disk_cache.warn_or_raise(directory, "running", disk_cache.entry_name(program.name), error)
        self.programs[arguments.key, placement] = self._made(
            arguments, placement, stable, directory, key)
        return True

    def _made(self, arguments: Arguments, placement: Placement, stable: StableKey,
              directory: disk_cache.Directory, key: str) -> Program:
        """The program of a call, traced, compiled and written, if the machine has given a key."""
        start = time.monotonic()        # before tracing, which an entry saves, too
        for cache in stable.caches:     # another process has no results of earlier calls
            cache.cache_clear()
        program, entered, outside = _watched(lambda: self._compiled(arguments, placement))
        self._check(arguments, placement, stable, entered, outside)
        try:
            data = self._packed(program, placement)
            if key:
                directory.put(key, data, time.monotonic() - start)
        except Exception as error:
            name = disk_cache.entry_name(program.name)
            disk_cache.warn_or_raise(directory, "writing", name, error)
        return program

    def _trace(self, arguments: Arguments) -> Program:
        program = trace_program(
            self.signature, arguments, self.keep_unused, self.options, self.modes)
        if program.refs:
            i = program.refs[0]
            raise UnstableError(
                f"jit persist=True: {self.signature.name} takes the reference "
                f"{program.closed.in_avals[i]} as {program.arg_names[i] or 'what it closes over'}; "
                "arrays are required; pass ref[...] and return the new content, or make the "
                "reference inside.")
        return program

    def _compiled(self, arguments: Arguments, placement: Placement) -> Program:
        program = self._trace(arguments)
        if program.passing:
            raise UnstableError(f"jit persist=True: {self.signature.name} closes over values that "
                                "are being traced; pass them as arguments.")
        program.executable(placement)
        return program

    def _key(self, arguments: Arguments, placement: Placement) -> StableKey:
        """All that the program of a call depends on, besides the machine."""
        try:
            return self._key_of(arguments, placement)
        except RecursionError:
            raise UnstableError(
                f"jit persist=True: {self.signature.name} reads values that are nested too deep, "
                "or a set that has itself in it; flatter ones are required; pass them as "
                "arguments.") from None

    def _key_of(self, arguments: Arguments, placement: Placement) -> StableKey:
        key, signature = StableKey(), self.signature
        key.note(software(), self.keep_unused, self.modes, arguments.arity)
        key.add(signature.fun, signature.name)
        key.add((signature.key, self.options), f"an option of {signature.name}")
        key.add(arguments.in_tree, "the structure of the arguments")
        for aval in arguments.avals:
            key.note(repr(aval), aval.weak_type, str(aval.memory_space), sorted(aval.vma))
            key.add(aval.sharding if aval.sharded else None, "the sharding of an argument")
        key.add((arguments.statics, arguments.static_kwargs), "the static arguments")
        key.add(tuple(placement), "the placement of the arguments")
        context = current_context()
        key.add((*context.options, *options_of_now(), context.axes), "an option")
        key.check()
        return key

    def _check(self, arguments: Arguments, placement: Placement, stable: StableKey,
               entered: set[types.CodeType], outside: Sequence[str]) -> None:
        """UnstableError where the function ran code that the key did not see."""
        name = self.signature.name
        for read in outside:
            raise UnstableError(
                f"jit persist=True: {read} while {name} was traced: files and clocks may be others "
                "in another process; read before, and pass what was read as an argument, or leave "
                "out persist.")
        for code in entered - stable.codes:
            raise UnstableError(
                f"jit persist=True: {code.co_qualname} ({code.co_filename}:{code.co_firstlineno}) "
                f"was entered while {name} was traced, and is not reached from it by names, "
                "attributes or closures; what another process would run is not known; call it by "
                "its name, or leave out persist.")
        if self._key(arguments, placement).hexdigest() != stable.hexdigest():
            raise UnstableError(
                f"jit persist=True: a value that {name} reads changed while it was traced; a "
                "function that changes nothing is required; return the value instead.")

    # Entries

    def _packed(self, program: Program, placement: Placement) -> bytes:
        executable = program.executables[placement]
        if executable.effects or executable.loaded.key is None:
            raise UnstableError(f"jit persist=True: {program.name} calls Python while it runs or is"
                                " compiled; it lives in its process; leave out persist.")
        return pack(program, executable)

    def _loaded(self, data: bytes, key: str, arguments: Arguments, placement: Placement) -> Program:
        program, executable = unpack(data, placement, key)
        if (tuple(program.closed.in_avals) != tuple(arguments.avals)
                or program.in_tree != arguments.in_tree):
            raise ValueError("the entry belongs to another call")
        # Fields that an entry leaves out, since its key has them.
        program.keep_unused, program.options = self.keep_unused, self.options
        program.executables[placement] = executable
        return program


# Modules in C whose functions read more than their arguments; and one of them that does not.
_OUTSIDE = frozenset(("_io", "_random", "io", "mmap", "nt", "posix", "time"))
_ARGUMENTS_ONLY = frozenset(("fspath",))
# Python's cache of files, which has the lines that a warning names.
_TELLING = frozenset(("linecache", "logging", "traceback", "warnings"))


def _watched(run: Callable[[], R]) -> tuple[R, set[types.CodeType], list[str]]:
    """The result of `run`, the user's code that it entered, and what that code read elsewhere.

    Nothing that was traced before is used again: it would not be entered.

    Imports are left out, and what Python calls when it collects garbage, wherever that happens:
    `gc.callbacks`, finalizers, generators that it closes.
    """
    codes: dict[types.CodeType, dict[str, object]] = {}
    outside: list[str] = []
    # A profile sees its own thread alone: garbage collections of other threads do not count.
    elsewhere, thread = 0, threading.get_ident()

    def begun(phase: str, _: object) -> None:
        nonlocal elsewhere
        elsewhere += phase == "start" and threading.get_ident() == thread

    def ended(phase: str, _: object) -> None:
        nonlocal elsewhere
        elsewhere -= phase == "stop" and threading.get_ident() == thread

    def profile(frame: types.FrameType, event: str, called: Any) -> None:
        nonlocal elsewhere
        code = frame.f_code
        if code in _IMPORTS:
            elsewhere += (event == "call") - (event == "return")
        elif event == "call" and not elsewhere:
            codes.setdefault(code, frame.f_globals)
        elif event == "c_call" and called.__module__ in _OUTSIDE and not elsewhere:
            if text := _read_by_user(frame, called):
                outside.append(text)

    outer = sys.getprofile()        # a profiler of the user's rests meanwhile
    # First and last, so that other callbacks are called between the two.
    gc.callbacks.insert(0, begun)
    gc.callbacks.append(ended)
    try:
        with anew():
            sys.setprofile(profile)
            result = run()
    finally:
        sys.setprofile(outer)
        gc.callbacks.remove(begun)
        gc.callbacks.remove(ended)
    return (result, {code for code, names in codes.items() if code_of_users(code, names)}, outside)


def _read_by_user(frame: types.FrameType, called: Any) -> str:
    """What the user's code reads by a function in C, through Python's and NumPy's; "" if others do.
    """
    if called.__name__ in _ARGUMENTS_ONLY:
        return ""
    through, here = called.__name__, frame
    while here is not None:
        module = str(here.f_globals.get("__name__")).partition(".")[0]
        if code_of_users(here.f_code, here.f_globals):
            return f"{here.f_code.co_qualname} called {through}"
        if module == "olympus" or module in _TELLING:
            return ""
        through, here = here.f_code.co_qualname, here.f_back
    return ""
