"""The context that a program depends on besides its arguments, and a thread's tracing state.

    Context     every option that changes a program's meaning, and the named axes: the key of
                whoever keeps programs
    DeviceAxis  the size of a named axis whose positions are devices
    MeshAxis    the size of a manual mesh axis that types know
    KnownAxis   the size of a kernel's axis, and the place along it that runs now
    Scope       the `named_scope`s around an operation, relative to the program that it is in; they
                change no program, so that programs serve every scope of their calls
    ctx         the trace of a thread now
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

from ..base import lib
from ..base.config import trace_key
from ..base.typing import Array, R


class ComputeOn(NamedTuple):
    """An entry of a scope that says where its operations run; no part of their names."""

    compute_type: str


class Metadata(NamedTuple):
    """Among the names of a scope: what XLA is told of its operations; None takes a key back."""

    items: tuple[tuple[str, str | None], ...]


Name = str | tuple[str] | ComputeOn | Metadata


class Scope:
    """The named scopes around an equation, outermost first; equal ones are one object.

    A transformation is a tuple of its name, and is shown around the name that follows:
    ("outer", ("vmap",), ("jvp",), "inner", "loop") is `outer/vmap(jvp(inner))/loop`.
    """

    __slots__ = ("names", "path", "inside", "compute_type", "metadata", "__weakref__")

    def __init__(self, names: tuple[Name, ...] = ()) -> None:
        self.names = names
        self.inside: dict[Name, Scope] = {}     # of transformations: they are few, and asked often
        self.path = f"{self}/".lstrip("/")
        self.compute_type = next((n.compute_type for n in reversed(names)
                                  if type(n) is ComputeOn), None)
        metadata = [n.items for n in names if type(n) is Metadata]
        merged = dict(item for items in metadata for item in items)
        # None where nothing was said: empty is more.
        self.metadata = tuple([item for item in sorted(merged.items()) if item[1] is not None]
                              ) if metadata else None

    def __reduce__(self) -> tuple[Callable[..., Scope], tuple[Name, ...]]:
        return _scope_of, self.names

    def __str__(self) -> str:
        shown: list[str] = []       # innermost first
        for name in reversed(self.names):
            if type(name) is tuple:
                shown[-1:] = [f"{name[0]}({shown[-1] if shown else ''})"]
            elif type(name) is str:
                shown.append(name)
        return "/".join(reversed(shown))

    def extend(self, *names: Name) -> Scope:
        """The scope of `named_scope`s and transformations inside this one."""
        scope = self
        for name in names:
            inner = scope.inside.get(name)
            if inner is None:
                path = (*scope.names, name)
                inner = _scopes.get(path)
                if inner is None:
                    inner = _scopes[path] = Scope(path)
                if type(name) is tuple:
                    scope.inside[name] = inner
            scope = inner
        return scope


# Weak: a scope lives as long as an equation, a thread or the scope around it has it.
_scopes: WeakValueDictionary[tuple[Name, ...], Scope] = WeakValueDictionary()
ROOT = Scope()


def _scope_of(*names: Name) -> Scope:
    return ROOT.extend(*names)


# The scope in which a program begins, if not ROOT: programs depend on what XLA is told of them.
outermost: Any = lib.Config("olympus_xla_metadata", None, include_in_jit_key=True,
                            include_in_trace_context=True)


class DeviceAxis(int):
    """The size of a named axis of a mesh, along which devices work; an int is an axis of vmap."""

    __slots__ = ()


class MeshAxis(DeviceAxis):
    """One along which types say whether a value varies; operations take operands that vary alike.
    """

    __slots__ = ()


class KnownAxis(int):
    """The size of an axis along which a program runs for one place, whose index is a value."""

    index: Array

    @classmethod
    def at(cls, size: int, index: Array) -> KnownAxis:
        """The axis, at a place."""
        axis = cls(size)
        axis.index = index
        return axis


class ThreadState(threading.local):
    """The tracing state of one thread. Class attributes are the defaults of a new thread."""

    trace: Any = None
    scope: Scope = ROOT
    axes: dict[Hashable, int] = {}  # named axes with their sizes; replaced, not changed in place
    depth: int = 0
    context: Context | None = None  # the last result of `current_context`
    transposed: Any = None          # the equation that a backward pass is at

    def __reduce__(self) -> str:
        return "ctx"    # by name: functions are pickled with the globals that they read


ctx = ThreadState()


def under(transformation: str, fun: Callable[..., R]) -> Callable[..., R]:
    """`fun`, whose operations are named after a transformed function."""
    def run(*args: Array) -> R:
        outer = ctx.scope
        ctx.scope = outer.extend((transformation,))
        try:
            return fun(*args)
        finally:
            ctx.scope = outer

    return run


class Context:
    """Options and named axes under which a program is traced: interned, so itself the key.

    Whatever changes the meaning of a program outside its arguments is part of it: x64, promotion,
    precision, the default device, random generators, debugging, the mesh. Each is an option of
    `base.config` with `trace_key`, which C++'s calls see too.
    """

    __slots__ = ("options", "axes", "__weakref__")

    def __init__(self, options: tuple[object, ...], axes: dict[Hashable, int]) -> None:
        self.options, self.axes = options, axes


# Weak, too: a key that has a context keeps it alive, so one that is gone is in no key, and the next
# of the same settings may be another object.
_contexts: WeakValueDictionary[tuple, Context] = WeakValueDictionary()
_lock = threading.Lock()


def current_context() -> Context:
    """The context of this thread now: a key that is hashed and compared by identity."""
    # Nearly always the last result. Axes are replaced and never changed in place, so the same dict
    # has the same axes.
    options, axes, found = trace_key(), ctx.axes, ctx.context
    if found is None or found.options != options or found.axes is not axes:
        key = (options, tuple([(name, type(size), size) for name, size in axes.items()]))
        with _lock:     # one object per setting, also if two threads ask at once
            found = _contexts.get(key)
            if found is None:
                found = _contexts[key] = Context(options, axes)
        ctx.context, ctx.axes = found, found.axes       # equal ones, found by identity next time
    return found
