"""Cells: references while their contents are known.

A reference is a cell: a place whose content is a value of the trace in which it was made. Only a
trace that records a program records operations on it. All other traces read and replace the content
at once (`at_hand`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NoReturn, TypeGuard

from ..base import errors, source
from ..base.source import Source
from ..base.typing import Array, Reference
from ..types.refs import RefAval, ref_aval
from .staging import StagingTrace, recorder
from .trace import REFERENCES, ThreadState, Trace, Tracer, ctx, typeof


class _Lock:
    """A reentrant lock with a time limit, so that no callback waits for it forever."""

    __slots__ = ("lock",)
    # Seconds. A thread that takes a content puts the new one there once its program has started.
    LONGEST = 60.0

    def __init__(self) -> None:
        self.lock = threading.RLock()

    def __enter__(self) -> None:
        if not self.lock.acquire(False) and not self.lock.acquire(timeout=self.LONGEST):
            raise RuntimeError("a reference is read or written by a callback of a program that "
                               "writes references and waits for the callback; pass the callback "
                               "the content, and return the new content.")

    def __exit__(self, *_: object) -> None:
        self.lock.release()


#: Held whenever a content is read or replaced, and from the time at which a program takes contents
#: to replace them in place until it has put the new ones there.
lock = _Lock()


class _RefMeta(type):
    """A traced reference is an instance of `Ref`, too."""

    def __instancecheck__(cls, x: object) -> bool:
        return type(x) is Ref or (isinstance(x, Tracer) and type(x.aval) is RefAval)


class Ref(metaclass=_RefMeta):
    """A mutable array: `ref[...]` reads it, `ref[...] = x` writes it. Made by `new_ref`.

    >>> import olympus
    >>> ref = olympus.new_ref(olympus.numpy.zeros(3))
    >>> ref[1] = 5.
    >>> ref
    Ref([0., 5., 0.], dtype=float32)
    """

    # _trace: the trace in which it was made; None: the base trace.
    # _lent: whether other code has the content's array: then no program may replace it in place.
    # _stands_for: the reference from outside whose content it has while a body runs.
    __slots__ = ("aval", "_value", "_trace", "_lent", "_line", "_ended", "_stands_for",
                 "__weakref__")
    __hash__ = object.__hash__

    aval: RefAval

    def __init__(self, value: Array, trace: Trace | None = None, line: Source | None = None,
                 stands_for: Reference | None = None) -> None:
        self.aval, self._stands_for = ref_aval(typeof(value)), stands_for
        self._value: Any = value
        self._trace, self._lent, self._line = trace, False, line
        self._ended: tuple[str, Source | None] | None = None    # by which call, and where

    def _content(self, kept: bool = True) -> Reference:
        """The content; `kept`: whether the caller may keep the array."""
        with self._held():
            self._lent |= kept
            return self._value

    def _put(self, value: Array, lent: bool = False) -> None:
        """Replace the content; `lent`: whether somebody else has the array, too."""
        with self._held():
            self._value, self._lent = value, lent

    def _taken(self) -> Reference:
        """The content for a program that replaces it in place: a copy if somebody else has it.

        The caller holds the lock until it has put the new content there.
        """
        with self._held():
            return self._value.copy() if self._lent else self._value

    def _held(self) -> _Lock:
        """The lock, under which nobody else reads or replaces the content; an error after the end.
        """
        if self._ended is not None:
            self._refuse()
        return lock

    def _end(self, how: str) -> None:
        """End the reference: later reads and writes raise."""
        self._ended, self._value = (how, source.user_frame()), None

    def _refuse(self) -> NoReturn:
        assert self._ended is not None
        raise after_end(self.aval, self._line, *self._ended)


REFERENCES.add(Ref)


def aliased(what: str, name: str, refs: Sequence[Reference], names: Sequence[str]) -> ValueError:
    """The error for a reference that is given twice; "" is the name of a closed-over one."""
    places: dict[int, list[str]] = {}
    for ref, where in zip(refs, names, strict=True):
        places.setdefault(identity_of(ref), []).append(where)
    ref, (a, b, *_) = next((ref, given_as) for ref in refs
                           if len(given_as := places[identity_of(ref)]) > 1)
    instead = ("pass it once: the result would depend on the order in which it is written under "
               "its two names")
    if not a or not b:
        return ValueError(
            f"{what}: when tracing {name} for {what}, a mutable array reference of type {ref.aval}"
            f"\n  was both closed over and passed as the argument {a or b};\n  {instead}.")
    return ValueError(
        f"{what}: only one reference to a mutable array may be passed as an argument to a function,"
        f"\n  but when tracing {name} for {what} the mutable array reference of type {ref.aval}\n"
        f"  appeared at both {a} and {b};\n  {instead}.")


def check_aliases(what: str, name: str, consts: Sequence[object], leaves: Sequence[object],
                  name_of_leaf: Callable[[int], str]) -> None:
    """ValueError if a leaf is the same reference as another leaf, or as a constant."""
    given_refs = [(i, x) for i, x in enumerate(leaves) if is_ref(x)]
    if not given_refs:
        return
    constants = [x for x in consts if is_ref(x)]
    refs = [*constants, *[x for _, x in given_refs]]
    if len({identity_of(x) for x in refs}) < len(refs):
        raise aliased(what, name, refs, [
            *[""] * len(constants), *[name_of_leaf(i) for i, _ in given_refs]])


def returned_reference(what: str, name: str, ref: Reference, path: str = "",
                       role: str = "function") -> ValueError:
    """The error for a reference among the results of a function that is traced for `what`."""
    line = ref._line if type(ref) is Ref else next((
        eqn.source for eqn in getattr(getattr(ref, "_trace", None), "eqns", ())
        if ref._bound in eqn.outvars), None)
    if line is not None:
        made = f"The returned mutable array was created on line {source.summarize(line)}"
    else:
        argument = getattr(ref, "_name", None)
        made = f"It was passed in as {f'the argument {argument}' if argument else 'an argument'}"
    where = f"\n  at output tree path result{path}" if path else ""
    return ValueError(
        f"{what}: {role} {name} traced for {what} returned a mutable array reference of type "
        f"{ref.aval}{where},\n  but mutable array references cannot be returned.\n  {made};\n"
        "  return its content, ref[...] or freeze(ref).")


def after_end(aval: object, made: Source | None, how: str, ended: Source | None) -> ValueError:
    """The error for an operation on an ended reference."""
    lines = [f"used at {source.summarize(source.user_frame())}",
             f"ended by {how} at {source.summarize(ended)}"]
    if made is not None:
        lines.append(f"made at {source.summarize(made)}")
    return ValueError("\n".join([
        f"{how}: the reference {aval} is used after its end;", *[f"  {x};" for x in lines],
        "  read it before, or make another one."]))


def identity_of(ref: Reference) -> int:
    """A number that is equal for two objects of one reference: its cell, or its variable."""
    return id(getattr(ref, "_bound", ref))


def is_ref(x: object) -> TypeGuard[Reference]:
    """Whether a value is a reference, traced or not."""
    return type(getattr(x, "aval", None)) is RefAval


def is_part(x: object) -> bool:
    """Whether a value is a part of a reference, `ref.at[index]`."""
    return hasattr(type(x), "check_whole")


def globals_with_references(fun: FunctionType) -> list[object]:
    """The references, lists, tuples and dicts among the globals that a function's code names."""
    references, codes = [], [fun.__code__]
    while codes:
        code = codes.pop()
        codes += [c for c in code.co_consts if isinstance(c, CodeType)]
        references += [x for name in code.co_names if type(x := fun.__globals__.get(name)) in (
            *REFERENCES, list, tuple, dict)]
    return references


def at_hand(ref: Reference) -> bool:
    """Whether no trace records between the current trace and the trace of the reference."""
    if type(ref) is not Ref:
        return False
    here, home = ctx.trace, ref._trace
    if home is None:
        return not here.recorded
    if not home.alive:
        raise errors.UnexpectedTracerError(
            f"leaked reference: {ref.aval} is used after its transformation ended;\n"
            f"  used at {source.summarize(source.user_frame())};\n"
            f"  made at {source.summarize(ref._line)};\n"
            "  a reference may not outlive the transformed function that made it; make it outside "
            "and pass it, or return ref[...].")
    # In the recording trace itself: at hand if a trace above made it, since a user's rule runs now.
    return recorder(here) is recorder(home) and (type(here) is not StagingTrace or home is not here)


def made_above(x: object) -> bool:
    """Whether `x` is a reference that a trace above the current one made."""
    return type(x) is Ref and x._trace is not None and x._trace is not ctx.trace and at_hand(x)


def check_value(name: str, ref: Ref, x: object,
                line: Callable[[], Source | None] = lambda: None) -> None:
    """ValueError if the value belongs to a trace above the trace of the reference.

    `line()` is the line of the write, if that is not the line that runs now.
    """
    if not isinstance(x, Tracer):
        return
    trace: Any = ref._trace
    while trace is not None:
        if trace is x._trace:
            return
        trace = trace.parent
    if hasattr(x._trace, "manual"):
        raise ValueError(
            f"{name}: a device's part given to the reference {ref.aval}, which was made outside of "
            "shard_map;\n  outside of jit a part is no value that another function could keep;\n"
            "  call the mapped function in olympus.jit, or pass the reference as an argument.")
    if x._trace is not ThreadState.trace:
        raise outer_reference(name, ref.aval, x._differentiated(), line())


def outer_reference(name: str, aval: object, differentiated: bool, line: Source | None = None
                    ) -> ValueError:
    """The error for a mapped or differentiated value written to a reference from outside."""
    kind, adjective, verb = (
        ("differentiated", "non-differentiated", "differentiated") if differentiated else
        ("vmapped", "unbatched", "vmapped"))
    a, more = ("a ", ", or take lax.stop_gradient of the value") if differentiated else ("", "")
    where = f"\n  at {source.summarize(line)}" if line is not None else ""
    return ValueError(
        f"{name}: performing a set/swap operation with {a}{kind} value\n  on {a or 'an '}"
        f"{adjective} array reference of type {aval}{where}.\n  Move the array reference to be an "
        f"argument of the {verb} function, or make it there{more}.")
