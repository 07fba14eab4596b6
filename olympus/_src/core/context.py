"""The context that a program depends on besides its arguments, and a thread's tracing state.

    Context     every option that changes a program's meaning, and the named axes: part of the key
                of each kept program
    DeviceAxis  the size of a named axis whose positions are devices
    MeshAxis    the size of a manual mesh axis that types track
    KnownAxis   the size of a kernel's axis, and the current index along it
    Scope       the `named_scope`s around an operation, relative to its program; programs do not
                depend on them, so one program serves calls in every scope
    ctx         the tracing state of the current thread
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
    """An entry of a scope that says where its operations run; names do not show it."""

    compute_type: str


class Metadata(NamedTuple):
    """An entry of a scope: attributes for XLA on its operations; None removes a key."""

    items: tuple[tuple[str, str | None], ...]


Name = str | tuple[str] | ComputeOn | Metadata


class Scope:
    """The named scopes around an equation, outermost first; equal ones are one object.

    A transformation is a 1-tuple of its name, and is printed around the next name:
    ("outer", ("vmap",), ("jvp",), "inner", "loop") is `outer/vmap(jvp(inner))/loop`.
    """

    __slots__ = ("names", "path", "inside", "compute_type", "metadata", "__weakref__")

    def __init__(self, names: tuple[Name, ...] = ()) -> None:
        self.names = names
        self.inside: dict[Name, Scope] = {}     # transformations only: few, and looked up often
        self.path = f"{self}/".lstrip("/")
        self.compute_type = next((n.compute_type for n in reversed(names)
                                  if type(n) is ComputeOn), None)
        metadata = [n.items for n in names if type(n) is Metadata]
        merged = dict(item for items in metadata for item in items)
        # None without any metadata; () means that all keys were removed.
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


# Weak: a scope lives as long as an equation, a thread or the enclosing scope refers to it.
_scopes: WeakValueDictionary[tuple[Name, ...], Scope] = WeakValueDictionary()
ROOT = Scope()


def _scope_of(*names: Name) -> Scope:
    return ROOT.extend(*names)


# The scope in which a program begins, if not ROOT: metadata for XLA does change programs.
outermost: Any = lib.Config("olympus_xla_metadata", None, include_in_jit_key=True,
                            include_in_trace_context=True)


class DeviceAxis(int):
    """The size of a named axis of a mesh; a plain int is the size of a vmap axis."""

    __slots__ = ()


class MeshAxis(DeviceAxis):
    """A device axis that types track: operands of one operation all vary along it, or none does."""

    __slots__ = ()


class KnownAxis(int):
    """The size of an axis along which a program runs for one index, which is a value."""

    index: Array

    @classmethod
    def at(cls, size: int, index: Array) -> KnownAxis:
        """The axis with its current index."""
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
    transposed: Any = None          # the equation that a backward pass transposes now

    def __reduce__(self) -> str:
        return "ctx"    # by name: pickles of functions contain the globals that they read


ctx = ThreadState()


def under(transformation: str, fun: Callable[..., R]) -> Callable[..., R]:
    """`fun`, with a transformation around the scopes of its operations."""
    def run(*args: Array) -> R:
        outer = ctx.scope
        ctx.scope = outer.extend((transformation,))
        try:
            return fun(*args)
        finally:
            ctx.scope = outer

    return run


class Context:
    """Options and named axes under which a program is traced: interned, so the object is the key.

    Everything outside the arguments that changes the meaning of a program is part of it: x64,
    promotion, precision, the default device, random generators, debugging, the mesh. Each is an
    option of `base.config` with `trace_key`, which is in the key of C++'s calls, too.
    """

    __slots__ = ("options", "axes", "__weakref__")

    def __init__(self, options: tuple[object, ...], axes: dict[Hashable, int]) -> None:
        self.options, self.axes = options, axes


# Weak, too: keys keep their context alive. A collected context was in no key, so a new object may
# take its place.
_contexts: WeakValueDictionary[tuple, Context] = WeakValueDictionary()
_lock = threading.Lock()


def current_context() -> Context:
    """The current context of this thread: a key that is hashed and compared by identity."""
    # Nearly always the last result. Axes are never changed in place, so one dict means one set of
    # axes.
    options, axes, context = trace_key(), ctx.axes, ctx.context
    if context is None or context.options != options or context.axes is not axes:
        key = (options, tuple([(name, type(size), size) for name, size in axes.items()]))
        with _lock:     # one object per setting, also if two threads ask at once
            context = _contexts.get(key)
            if context is None:
                context = _contexts[key] = Context(options, axes)
        ctx.context, ctx.axes = context, context.axes   # equal axes, compared by identity next time
    return context
