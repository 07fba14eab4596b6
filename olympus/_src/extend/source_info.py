"""Where operations come from, for those who trace on behalf of others: lines and named scopes."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from typing import Any

from ..base import source
from ..core.context import ROOT, Scope, ctx
from ..core.ir import SourceInfo


@dataclasses.dataclass(frozen=True)
class NameStack:
    """The named scopes and transformations around an operation, outermost first.

    Args: stack: names of scopes; a transformation is a tuple of its name.

    >>> from olympus.extend import source_info_util
    >>> stack = source_info_util.new_name_stack("layer").transform("vmap").extend("product")
    >>> print(stack)
    layer/vmap(product)
    >>> len(stack), print(stack[1:])
    vmap(product)
    (3, None)
    """

    stack: tuple[Any, ...] = ()

    def extend(self, name: str) -> NameStack:
        """With a scope inside."""
        return NameStack((*self.stack, name))

    def transform(self, transform_name: str) -> NameStack:
        """With a transformation inside."""
        return NameStack((*self.stack, (transform_name,)))

    def __getitem__(self, index: slice) -> NameStack:
        return NameStack(self.stack[index])

    def __len__(self) -> int:
        return len(self.stack)

    def __add__(self, other: NameStack) -> NameStack:
        return NameStack(self.stack + other.stack)

    def __radd__(self, other: NameStack) -> NameStack:
        return NameStack(other.stack + self.stack)

    def __str__(self) -> str:
        return str(self._scope())

    def _scope(self) -> Scope:
        return ROOT.extend(*self.stack)


def new_name_stack(name: str = "") -> NameStack:
    """A stack of one scope, or of none.

    Args: name: the scope's.

    >>> print(source_info_util.new_name_stack("layer"))
    layer
    """
    return NameStack((name,) if name else ())


def current_name_stack() -> NameStack:
    """The scopes around, in this thread.

    >>> with olympus.named_scope("layer"):
    ...     print(source_info_util.current_name_stack())
    layer
    """
    return NameStack(ctx.scope.names)


def current() -> SourceInfo:
    """Where an operation would come from that was traced now: the user's line, the scopes.

    >>> source_info_util.current().name_stack.names
    ()
    """
    return SourceInfo(source.user_frame(), ctx.scope)


def new_source_info() -> SourceInfo:
    """The origin of an operation of unknown origin.

    Returns: A `SourceInfo` without a line, in no scope.

    >>> source_info_util.summarize(source_info_util.new_source_info())
    '<unknown>'
    """
    return SourceInfo(None, ROOT)


@contextlib.contextmanager
def _within(scope: Scope) -> Iterator[None]:
    outer, ctx.scope = ctx.scope, scope
    try:
        yield
    finally:
        ctx.scope = outer


@contextlib.contextmanager
def set_name_stack(name_stack: NameStack) -> Iterator[None]:
    """Context manager and decorator: operations within are in these scopes alone.

    Args: name_stack: what `current_name_stack` gave, for one.

    >>> with source_info_util.set_name_stack(source_info_util.new_name_stack("mine")):
    ...     print(source_info_util.current_name_stack())
    mine
    """
    if not isinstance(name_stack, NameStack):
        raise TypeError(f"set_name_stack: {name_stack!r:.60} of type {type(name_stack).__name__} "
                        "given; a NameStack is required.")
    with _within(name_stack._scope()):
        yield


@contextlib.contextmanager
def reset_name_stack() -> Iterator[None]:
    """Context manager: operations within are in no scope.

    >>> with olympus.named_scope("layer"), source_info_util.reset_name_stack():
    ...     len(source_info_util.current_name_stack())
    0
    """
    with _within(ROOT):
        yield


@contextlib.contextmanager
def extend_name_stack(name: str) -> Iterator[None]:
    """Context manager and decorator: operations within are in one scope more.

    Args: name: the scope's.

    >>> with source_info_util.extend_name_stack("layer"):
    ...     print(source_info_util.current_name_stack())
    layer
    """
    with _within(ctx.scope.extend(name)):
        yield


@contextlib.contextmanager
def transform_name_stack(name: str) -> Iterator[None]:
    """Context manager and decorator: operations within belong to a transformed function.

    Args: name: the transformation's: "vmap", for one.

    >>> with source_info_util.transform_name_stack("vmap"):
    ...     with source_info_util.extend_name_stack("layer"):
    ...         print(source_info_util.current_name_stack())
    vmap(layer)
    """
    with _within(ctx.scope.extend((name,))):
        yield


@contextlib.contextmanager
def user_context(traceback: source.Source | None, name_stack: NameStack | Scope | None = None
                 ) -> Iterator[None]:
    """Context manager: operations within come from the line of another one.

    Args:
      traceback: the line, as `eqn.source_info.traceback` has it; None is the user's own.
      name_stack: the scopes, as `eqn.source_info.name_stack` or a `NameStack` has them; None are
        those around.

    >>> known, = olympus.make_olympuspr(olympus.named_scope("layer")(lambda x: x + 1))(1.0).eqns
    >>> def doubled(x):
    ...     with source_info_util.user_context(*known.source_info):
    ...         return x * 2
    >>> eqn, = olympus.make_olympuspr(doubled)(1.0).eqns
    >>> eqn.source_info == known.source_info
    True
    """
    scope = name_stack._scope() if isinstance(name_stack, NameStack) else name_stack
    with _within(ctx.scope if scope is None else scope):
        trace = ctx.trace
        if traceback is None or not hasattr(trace, "source"):
            yield
            return
        outer, trace.source = trace.source, traceback
        try:
            yield
        finally:
            trace.source = outer


def summarize(source_info: SourceInfo, num_frames: int = 1) -> str:
    """The line for messages: file, line, column and function.

    Args:
      source_info: of an equation, for one.
      num_frames: accepted; only the user's line is known.

    >>> eqn, = olympus.make_olympuspr(lambda x: x + 1)(1.0).eqns
    >>> source_info_util.summarize(eqn.source_info).endswith(" (<lambda>)")
    True
    """
    return source.format_source(source_info.traceback)


def register_exclusion(path: str) -> None:
    """Leave frames of a file, or of all files in a folder, out of the tracebacks that users see.

    Args: path: the file, or the folder.

    >>> source_info_util.register_exclusion("/somewhere/library/module.py")
    """
    source.exclude(path)
