"""Calls of foreign functions in compiled programs: missing targets, and handlers' refusals.

XLA's own messages name neither the call nor the user's line, nor the name of an attribute.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterator, Sequence

from ..base import errors, lib
from ..base.messages import with_where
from ..lowering.context import ForeignCall

_API = {lib.TYPED: "typed API (api_version=1, custom_call_api_version=4)",
        lib.UNTYPED: "earlier API (api_version=0, custom_call_api_version=1 to 3)"}
_MISSING = re.compile(r"No FFI handler registered for (\S+) on a platform (\w+)")
_SHARED = re.compile("ide-effect HLO (cannot have a replicated|must have) sharding")
# Diagnostics follow one another without anything between them.
_BAD_COUNT = re.compile(r"Wrong number of (arguments|results|attributes): expected (at least )?"
                        r"(\d+)(?: attributes)? but got (\d+)(?: with name\(s\): ([^\n]*))?")
_BAD_TYPE = re.compile(r"Wrong (scalar data |array data |attribute |buffer d)type: expected "
                       r"(PRED|[A-Z]+\d\w*?|array|dictionary|scalar|string) but got "
                       r"(PRED|[A-Z]+\d+(?:E\dM\d\w*?)?|array|dictionary|scalar|string)")
_BAD_RANK = re.compile(r"Wrong buffer rank: expected (\d+) but got (\d+)")
_BAD_NAME = re.compile(r"Attribute name mismatch: (\S+?) vs (\S+?)(?=Wrong|Attribute|\s|$)")
# XLA's names for the types of attributes and elements.
_DTYPES = {"PRED": "bool", **{f"{x}{n}": f"{y}{n}" for x, y in (("S", "int"), ("U", "uint"))
                              for n in (1, 2, 4, 8, 16, 32, 64)},
           "F16": "float16", "BF16": "bfloat16", "F32": "float32", "F64": "float64",
           "C64": "complex64", "C128": "complex128"}


class MissingTarget(ValueError):
    """A program calls a foreign function that this process has not registered."""


# A ValueError for users, a class of its own for caches: they keep an entry that lacks a target.
MissingTarget.__name__ = MissingTarget.__qualname__ = "ValueError"
MissingTarget.__module__ = "builtins"


def check_targets(calls: Sequence[ForeignCall], platform: str) -> None:
    """ValueError for a call whose target this process has not registered for the platform."""
    for call in calls:
        registered = lib.registered_calls(call.target)
        here = registered.get(platform, {})
        if call.version in here:
            continue
        if here:
            why = f"it is registered for the {_API[next(iter(here))]}, and called by the " \
                  f"{_API[call.version]}"
            remedy = "name the version that it was written for in both places"
        elif registered:
            why = f"it is registered for {', '.join(registered)} only"
            remedy = _register(call.target, platform)
        elif platform != "cpu" or lib.has_custom_call(call.target):
            continue        # XLA's own: XLA itself names a missing one
        else:
            why, remedy = "no such target is registered", _register(call.target, platform)
            if near := difflib.get_close_matches(call.target, lib.registered_names(), 1):
                why = f"{why}, but {near[0]!r} is"
        said = f"ffi_call: the target {call.target!r} called on {platform}; {why}; {remedy}."
        raise MissingTarget(with_where(said, f"at {call.where}") if call.where else said)


def _register(target: str, platform: str) -> str:
    return (f"call olympus.ffi.register_ffi_target({target!r}, olympus.ffi.pycapsule(library."
            f"function), platform={platform!r}) first")


def explained(error: Exception, calls: Sequence[ForeignCall]) -> Exception | None:
    """The explained error if XLA's message concerns foreign calls of a program, else None."""
    text = str(error)
    if missing := _MISSING.search(text):
        target, platform = missing[1], "cpu" if missing[2] == "Host" else missing[2]
        return MissingTarget(
            f"ffi_call: the program calls the foreign function {target!r}, which is not registered "
            f"on {platform}; whoever runs an exported or kept program needs its targets, too; "
            f"{_register(target, platform)}.")
    if _SHARED.search(text):
        return errors.OlympusRuntimeError(
            "ffi_call: a call with side effects in a program over several devices given; XLA "
            "compiles none whose device is open; make it within olympus.shard_map, where each "
            "device makes its own, or on arrays of one device.")
    said = [line for explain in (_counts, _bad_names, _bad_types,
                                 _ranks) for line in explain(text, calls)]
    if not said:
        return None
    return errors.OlympusRuntimeError("\n  ".join([
        "ffi_call: a handler does not take what it is given.", *said,
        *[f"`{c.target}` is called at {c.where}" for c in calls if c.where],
        *text.split("\n")]))


Explain = Callable[[str, Sequence[ForeignCall]], Iterator[str]]


def _counts(text: str, calls: Sequence[ForeignCall]) -> Iterator[str]:
    for kind, least, wanted, count, names in _BAD_COUNT.findall(text):
        what = "operands" if kind == "arguments" else kind
        who = [c for c in calls if len(getattr(c, what)) == int(count)]
        yield (f"{_who(who)}takes {least}{wanted} {what}; {count} given"
               f"{names and f' ({names})'}; pass {wanted}.")


def _bad_names(text: str, calls: Sequence[ForeignCall]) -> Iterator[str]:
    for wrong, wanted in _BAD_NAME.findall(text):
        who = [c for c in calls if wrong in dict(c.attributes)]
        yield f"{_who(who)}takes no attribute {wrong!r}, but one called {wanted!r}; rename it."


def _bad_types(text: str, calls: Sequence[ForeignCall]) -> Iterator[str]:
    for kind, wanted, got in _BAD_TYPE.findall(text):
        want, have = _DTYPES.get(wanted, wanted), _DTYPES.get(got, got)
        if kind == "buffer d":
            yield from _candidate_lines(
                [(c, f"{what} {i}, {aval},") for c, what, i, aval in _arrays(calls)
                 if aval.partition("[")[0] == have],
                f"{want} is required; convert an operand with astype, promise a result of it.")
        else:
            kinds = {"scalar data ": have, "array data ": f"array of {have}"}.get(kind)
            yield from _candidate_lines(
                [(c, f"attribute {name}, {value},") for c in calls for name, value in c.attributes
                 if (value == kinds if kinds else value.startswith(_STARTS[got]))],
                f"{_WANTED[kind].format(want)}.")


def _ranks(text: str, calls: Sequence[ForeignCall]) -> Iterator[str]:
    for wanted, got in _BAD_RANK.findall(text):
        yield from _candidate_lines(
            [(c, f"{what} {i}, {aval},") for c, what, i, aval in _arrays(calls)
             if _rank(aval) == int(got)], f"{wanted} axes are required; reshape it.")


def _arrays(calls: Sequence[ForeignCall]) -> Iterator[tuple[ForeignCall, str, int, str]]:
    """(call, "operand" or "result", its place, its type) of each operand and result."""
    for c in calls:
        for what, avals in (("operand", c.operands), ("result", c.results)):
            for i, aval in enumerate(avals):
                yield c, what, i, aval


def _candidate_lines(candidates: Sequence[tuple[ForeignCall, str]], remedy: str) -> Iterator[str]:
    """One line for the value given, or for the candidates that include it."""
    if not candidates:
        return
    what = " or ".join(dict.fromkeys([f"{said} of `{call.target}`" for call, said in candidates]))
    yield f"{what} given; {remedy}"


def _who(calls: Sequence[ForeignCall]) -> str:
    names = dict.fromkeys([f"`{c.target}`" for c in calls])
    return f"{' or '.join(names)} " if names else "it "


def _rank(aval: str) -> int:
    sizes = aval.partition("[")[2].partition("]")[0]
    return sizes.count(",") + bool(sizes)


# XLA's names for kinds of attributes, and how our text for such an attribute begins.
_STARTS = {"scalar": ("bool", "int", "uint", "float"), "string": ("str",), "array": ("array",),
           "dictionary": ("dict",)}
_WANTED = {"scalar data ": "{0} is required; pass numpy.{0}(…): a Python int is int64, a float "
                           "float64",
           "array data ": "an array of {0} is required; pass numpy.asarray(…, numpy.{0})",
           "attribute ": "a {0} is required"}
