"""Why a jitted function is traced, and how often: `explain`, `cache_info`, `max_traces`.

A function's programs are kept by all that they depend on: the structure of the arguments, the types
of their leaves, the static arguments, and the options and named axes around. A call that differs
from all of them in one of these is traced anew; the most similar one tells which.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import CodeType
from typing import Any, NamedTuple
from weakref import WeakSet

from ..base import config, source
from ..base.errors import RetraceError, RetraceWarning
from ..base.logs import LOGGER
from ..base.util import unwrapped
from ..core.context import Context
from ..types.avals import Aval
from .program import Program
from .signature import Arguments, ProgramKey, Signature


class Difference(NamedTuple):
    """One thing in which a call differs from the most similar one that was traced.

    >>> import olympus
    >>> f = olympus.jit(lambda x: x * 2)
    >>> _ = f(1.0)
    >>> f.explain(1).differences[0].where
    'x'
    """

    where: str      # an argument, with the path below it
    now: str
    before: str
    remedy: str

    def __str__(self) -> str:
        return f"{self.where} is {self.now}, before {self.before}"


class Explanation(NamedTuple):
    """Whether a call finds a traced program, and if not, what to do about it: data and text.

    >>> import olympus
    >>> import olympus.numpy as onp
    >>> f = olympus.jit(lambda x: x * 2)
    >>> _ = f(onp.ones(3))
    >>> f.explain(onp.ones(3)).hit
    True
    >>> print(f.explain(onp.ones(4)))
    jit: <lambda> is traced anew.
      x is float32[4], before float32[3].
      Pad to a few sizes, or export once with a symbolic size (olympus.export.symbolic_shape).
    """

    function: str
    hit: bool
    differences: Sequence[Difference]
    #: how many other functions of the same code were traced before, and where that stands
    others: int = 0
    written_at: str = ""

    def __str__(self) -> str:
        if self.hit:
            return f"jit: {self.function} has a program for these arguments."
        if not self.differences:
            return f"jit: {self.function} is traced for the first time." + (
                f"\n  It is another function object than {self.others} before, though of the same "
                f"code, at {self.written_at}.\n  {_ONCE}." if self.others else "")
        remedies = dict.fromkeys(d.remedy for d in self.differences)
        return "\n  ".join([f"jit: {self.function} is traced anew.",
                            *[f"{d}." for d in self.differences], *remedies])


class CacheInfo(NamedTuple):
    """The counts of a jitted function: how often it was traced, and the programs kept.

    Attributes:
      traces: how often it was traced since it was made.
      programs: how many traced programs are kept.
      executables: how many are compiled, of those.
      nbytes: of their code and constants, about.

    >>> import olympus
    >>> f = olympus.jit(lambda x: x * 2)
    >>> _ = f(1.0), f(2.0), f(3)
    >>> f.cache_info()[:3]
    (2, 2, 2)
    """

    traces: int
    programs: int
    executables: int
    nbytes: int


# Differences -------------------------------------------------------------------------------------

def whole_keys(programs: Mapping[tuple, Program]) -> list[ProgramKey]:
    """The keys of traces."""
    # Under a transformation a program is found by a shorter key as well (`Signature.plain`), which
    # begins with the context. It says less, and counts no trace.
    return [key for key in list(programs) if type(key[0]) is not Context]


def differences(signature: Signature, programs: Sequence[ProgramKey], arguments: Arguments
                ) -> list[Difference]:
    """How a call differs from the most similar of the keys that there are programs for."""
    if not programs:
        return []
    near = max(programs, key=lambda key: _likeness(key, arguments.key))
    in_tree, avals, arity, static, context = near
    before = Arguments()    # the tree and names of the traced call
    before.in_tree, before.arity = in_tree, arity
    before.leaves = list(range(in_tree.num_leaves))
    before.statics = {where: None for where, _ in static if isinstance(where, int)}
    old = dict(zip(signature.leaf_names(before), avals, strict=True))
    new = dict(zip(signature.leaf_names(arguments), arguments.avals, strict=True))
    found = [Difference(name, _aval_text(new.get(name)), _aval_text(old.get(name)),
                        _remedy(new.get(name), old.get(name)))
             for name in dict.fromkeys([*new, *old]) if new.get(name) != old.get(name)]
    if not found and arguments.in_tree != in_tree:
        found.append(Difference(
            "the structure of the arguments", str(arguments.in_tree), str(in_tree),
            "Use one class of container, with equal static fields."))
    return found + _statics(signature, arguments, dict(static)) + _around(arguments.key[4], context)


def _likeness(key: ProgramKey, other: ProgramKey) -> float:
    """How much two keys have in common: the structure first, then types, then the rest."""
    same = sum(a == b for a, b in zip(key[1], other[1])) / max(len(key[1]), len(other[1]), 1)
    return 2 * (key[0] == other[0]) + same + (key[3] == other[3]) + (key[4] is other[4])


def _aval_text(aval: Aval | None) -> str:
    return "absent" if aval is None else aval.str_short(short_dtypes=False) + (
        " (of a Python number)" if getattr(aval, "weak_type", False) else "")


def _remedy(new: object, old: object) -> str:
    if new is None or old is None:
        return "Pass the same arguments, with the same keys, in each call."
    shapes: list[Any] = [getattr(x, "shape", None) for x in (new, old)]
    if None not in shapes and len(shapes[0]) != len(shapes[1]):
        return ("Pass arrays of one rank: x[None] adds an axis, and vmap(f) maps a function over "
                "one.")
    if shapes[0] != shapes[1]:
        return ("Pad to a few sizes, or export once with a symbolic size "
                "(olympus.export.symbolic_shape).")
    if getattr(new, "dtype", None) != getattr(old, "dtype", None):
        return "Convert to one dtype before the call: x.astype(dtype), or np.asarray(x, dtype)."
    if getattr(new, "weak_type", None) != getattr(old, "weak_type", None):
        return "Pass an array each time, or a Python number each time: onp.float32(1.0), or 1.0."
    return "Put the arrays on the same mesh and in the same memory before the call."


def _statics(signature: Signature, arguments: Arguments, before: dict[int | str, tuple]
             ) -> list[Difference]:
    now = dict(arguments.key[3])
    given = {**arguments.statics, **arguments.static_kwargs}
    return [Difference(
        f"the static argument {signature.argument_name(where)}",
        repr(given[where]) if where in now else "absent",
        repr(before[where][1]) if where in before else "absent",
        "Make a number that changes an argument that is not static: each static value has a "
        "program.") for where in dict.fromkeys([*now, *before])
        if now.get(where) != before.get(where)]


def _around(now: Context, before: Context) -> list[Difference]:
    """The options and named axes in which two contexts differ."""
    if now is before:
        return []
    names = config.in_trace_key
    # A context's entries behind the options have no names.
    pairs = [(names[i] if i < len(names) else "the mesh, scope or metadata around", new, old)
             for i, (new, old) in enumerate(zip(now.options, before.options, strict=True))
             if new != old]
    if now.axes != before.axes:
        pairs.append(("the named axes around", dict(now.axes), dict(before.axes)))
    return [Difference(name, str(new), str(old), "Set options once, before the first call.")
            for name, new, old in pairs]


# How often ---------------------------------------------------------------------------------------

def check_limit(max_traces: object, on_retrace: object) -> None:
    """ValueError for options of `jit` that make no sense."""
    if max_traces is not None and (isinstance(max_traces, bool) or not isinstance(max_traces, int)
                                   or max_traces < 1):
        raise ValueError(f"jit: max_traces={max_traces!r} given; a positive int, or None, is "
                         "required.")
    if on_retrace not in ("warn", "error") and not callable(on_retrace):
        raise ValueError(f"jit: on_retrace={on_retrace!r} given; 'warn', 'error' or a function of "
                         "the Explanation is required.")


_ONCE = "Make it and jit it once, outside of the loop or function around it"


def explain(signature: Signature, programs: Mapping[tuple, Program], arguments: Arguments,
            others: int = 0) -> Explanation:
    """Whether there is a program for the call, and else what differs.

    `others`: how many functions of the same code were traced.
    """
    hit = arguments.key in programs
    code = getattr(unwrapped(signature.fun), "__code__", None)
    reasons = () if hit else differences(signature, whole_keys(programs), arguments)
    if code is None or programs or not others:
        return Explanation(signature.name, hit, reasons)
    return Explanation(signature.name, hit, reasons, others, source.written_at(code))


def over_limit(why: Explanation, traces: int, limit: int, on_retrace: object) -> None:
    """Warn, raise or call back, as `jit(max_traces=…)` asks for a function traced too often."""
    if callable(on_retrace):
        on_retrace(why)
        return
    text = f"{why}\n  It is trace {traces} of {why.function}; max_traces={limit} given."
    if on_retrace == "error":
        raise RetraceError(text)
    source.warn(text, RetraceWarning)


def log_again(why: Explanation) -> None:
    """Log why a function is traced, if it, or another of its code, has been before."""
    LOGGER.warning("jit: %s is traced again at %s: %s", why.function,
                   source.summarize(source.user_frame()), "; ".join(map(str, why.differences)) or (
        f"it is another function than before, though of the same code, at {why.written_at}; "
        f"{_ONCE[0].lower()}{_ONCE[1:]}"))


_warned: WeakSet[CodeType] = WeakSet()        # of functions whose many traces were warned of


def warn_of_many(signature: Signature, code: CodeType, made: int, programs: Mapping[tuple, Program],
                 arguments: Arguments, many: int) -> None:
    """Say once for each place that functions are made anew, or that shapes never repeat.

    JAX does not: `olympus_compatible` writes it to the log, at the level INFO.
    """
    if code in _warned:
        return
    say = LOGGER.info if config.compatible.value else _warn
    where = f"jit: {signature.name}, written at {source.written_at(code)},"
    if made > many:
        _warned.add(code)
        say(f"{where} was made and traced {made} times.\n  Each function object is traced anew, "
            f"also one of the same code.\n  {_ONCE};\n  pass what changes as an argument.")
    elif (leaf := _never_the_same(whole_keys(programs), arguments, many)) is not None:
        _warned.add(code)
        say(f"{where} is traced for the {len(whole_keys(programs)) + 1}th shape of "
            f"{signature.leaf_names(arguments)[leaf]}, now {arguments.avals[leaf].str_short()}.\n"
            "  Each shape is a program of its own.\n  Pad to a few sizes, or export once with a "
            "symbolic size (olympus.export.symbolic_shape).")


def _warn(text: str) -> None:
    source.warn(text, RetraceWarning)


def _never_the_same(programs: Sequence[ProgramKey], arguments: Arguments, many: int) -> int | None:
    """The argument's leaf that had another shape in each of the programs, if there is one."""
    alike = [key[1] for key in programs if key[0] == arguments.in_tree]
    for i, aval in enumerate(arguments.avals):
        # The shapes are as many as the calls: no two had the same.
        seen = Counter(getattr(avals[i], "shape", None) for avals in [*alike, arguments.avals])
        if len(alike) >= many and len(seen) == len(alike) + 1 and getattr(aval, "shape", None):
            return i
    return None
