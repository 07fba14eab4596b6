"""The olympuspr: a typed, first-order program in static single assignment form.

    Olympuspr(constvars, invars, eqns, outvars)      open: its constants are named, not given
    ClosedOlympuspr(olympuspr, consts)               with the constants' values

An equation binds a primitive to atoms (a `Var` or a `Literal`). Nothing here runs anything:
`staging` records programs, and `evaluate` interprets them.
"""

from __future__ import annotations

import contextlib
import functools
import struct
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from operator import attrgetter
from typing import Any, Concatenate, NamedTuple, cast, final

import numpy as np

from ..base import config, spelling
from ..base.source import Source
from ..base.typing import ArrayLike, ArrayToCheckers, P, Params, R, T
from ..base.util import ByKey, Memo, lazy_imports
from ..types.avals import ShapedArray
from ..types.dtypes import converted
from ..types.shape import SymbolicDim
from . import printing
from .context import ROOT, Scope, current_context
from .effects import Effect, InputEffect, input_effects

with lazy_imports(__name__):       # for values of users' types
    from ..types import refs as _refs

_DERIVED_LIMIT = 256
_primitive, _effects = attrgetter("primitive"), attrgetter("effects")
NO_EFFECTS: frozenset[Effect] = frozenset()


class Var:
    """A name bound once: by the program's inputs or by one equation.

    >>> import olympus
    >>> v = olympus.make_olympuspr(lambda x: x + 1)(2.0).invars[0]
    >>> isinstance(v, olympus.extend.core.Var), v.aval
    (True, ShapedArray(float32[], weak_type=True))
    """

    # Variables are compared by identity: passes have dicts with variables as keys. A program shares
    # variables and equations with the programs that passes make of it, so nobody changes one:
    # `replace` copies.
    __slots__ = ("aval", "__weakref__")
    dropped = False

    def __init__(self, aval: ShapedArray) -> None:
        self.aval: ShapedArray = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short()}"


class DropVar(Var):
    """An equation's output that nothing reads; printed as `_`.

    >>> import olympus
    >>> unread = olympus.core.DropVar(olympus.typeof(1.0))
    >>> isinstance(unread, olympus.extend.core.Var), unread.aval
    (True, ShapedArray(float32[], weak_type=True))
    """

    __slots__ = ()
    dropped = True


@final
class Literal(ArrayToCheckers):
    """A rank-0 constant written into the program.

    Equal when aval and bits are: 0.0 and -0.0 differ, NaN equals itself.

    >>> import olympus
    >>> two = olympus.make_olympuspr(lambda x: x * 2.0)(1.0).eqns[0].invars[1]
    >>> isinstance(two, olympus.extend.core.Literal), two.val
    (True, 2.0)
    """

    __slots__ = ("raw", "aval", "_key")

    # The number as it was given, Python's or NumPy's, perhaps of another dtype; or a symbolic
    # dimension.
    raw: Any

    def __init__(self, raw: ArrayLike | SymbolicDim, aval: ShapedArray) -> None:
        self.raw, self.aval = raw, aval
        self._key: tuple | None = None

    @property
    def key(self) -> tuple:
        """(aval, bits): hashable, and equal only for the same constant."""
        key = self._key
        if key is None:
            val = self.raw
            if type(val) is float:
                bits: Any = struct.pack("d", val)
            elif type(val) in (int, bool) or isinstance(val, SymbolicDim):
                bits = val
            else:
                bits = np.asarray(val).tobytes()
            key = self._key = (self.aval, type(val), bits)
        return key

    @property
    def shape(self) -> tuple[int, ...]:
        return self.aval.shape

    @property
    def dtype(self) -> np.dtype:
        return self.aval.dtype

    @property
    def ndim(self) -> int:
        return self.aval.ndim

    def value(self) -> np.ndarray:
        """The constant as a rank-0 array of its dtype."""
        return converted(np.asarray(self.raw), self.aval.dtype)

    @property
    def val(self) -> Any:
        """The constant for users: Python's number if weakly typed or a bool, NumPy's otherwise."""
        if isinstance(self.raw, SymbolicDim):
            return self.raw
        value = self.value()
        return value.item() if self.aval.weak_type or type(self.raw) is bool else value[()]

    def __eq__(self, other: object) -> bool:
        return type(other) is Literal and self.key == other.key

    def __hash__(self) -> int:
        return hash(self.key)

    def __repr__(self) -> str:
        return f"{self.raw}:{self.aval.str_short(short_dtypes=True)}"


Atom = Var | Literal


def read(atoms: Iterable[Atom], env: Mapping[Var, T]) -> list[T]:
    """The values of atoms: the variables' in `env`; a literal stands for itself."""
    # A loop: in Python 3.11 a comprehension is a second frame, and every pass is here for every
    # equation.
    results: list[Any] = []
    for atom in atoms:
        results.append(atom if type(atom) is Literal else env[atom])
    return results


def numbers(values: Iterable[object]) -> list[Any]:
    """Values for users' functions: literals become numbers."""
    return [x.val if type(x) is Literal else x for x in values]


def variables(atoms: Iterable[Atom]) -> list[Var]:
    """The atoms that are not literals."""
    return [atom for atom in atoms if type(atom) is not Literal]


class SourceInfo(NamedTuple):
    """Where an equation comes from: the user's line, and the named scopes around it.

    >>> import olympus
    >>> eqn, = olympus.make_olympuspr(olympus.named_scope("layer")(olympus.lax.sin))(1.0).eqns
    >>> print(eqn.source_info.name_stack)
    layer
    """

    traceback: Any
    name_stack: Any


class OlympusprEqn:
    """`outs = primitive[params] ins`, with effects, the user's line and the naming context.

    >>> import olympus
    >>> eqn, = olympus.make_olympuspr(olympus.lax.sin)(1.0).eqns
    >>> eqn.primitive, len(eqn.invars), eqn.effects == olympus.core.no_effects
    (sin, 1, True)
    """

    __slots__ = ("primitive", "invars", "outvars", "params", "effects", "source", "ctx")

    def __init__(self, primitive: Any, invars: Sequence[Atom], outvars: Sequence[Var],
                 params: Params, effects: frozenset[Effect] = NO_EFFECTS,
                 source: Source | None = None, ctx: Scope = ROOT) -> None:
        # Lists are not copied: callers do not change them afterwards.
        self.primitive = primitive
        self.invars = invars if type(invars) is list else list(invars)
        self.outvars = outvars if type(outvars) is list else list(outvars)
        named = spelling.named_params
        self.params = params if named is None else named(primitive, params)
        self.effects = effects
        self.source = source
        self.ctx = ctx

    @property
    def source_info(self) -> SourceInfo:
        return SourceInfo(self.source, self.ctx)

    def __getstate__(self) -> tuple[None, dict[str, object]]:
        # A pickled equation has no line, because a line refers to code of this process.
        fields = {name: getattr(self, name) for name in self.__slots__}
        return None, {**fields, "source": None}

    def replace(self, **changes: object) -> OlympusprEqn:
        """A copy with the named fields changed."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return OlympusprEqn(**{**fields, **changes})


class DebugInfo(NamedTuple):
    """The name of a program and the origins of its inputs and outputs.

    >>> import olympus
    >>> olympus.make_olympuspr(lambda x: x)(1.0).olympuspr.debug_info.arg_names
    ('x',)
    """

    traced_for: str         # the transformation
    func_src_info: str      # the function's name, perhaps followed by " at …"
    arg_names: tuple[str, ...] = ()
    result_paths: tuple[str, ...] = ()

    @property
    def func_name(self) -> str:
        """The function's name."""
        return self.func_src_info.partition(" at ")[0]


NO_DEBUG_INFO = DebugInfo("", "<unknown>")


class Olympuspr:
    """Inputs, equations, outputs. A `ClosedOlympuspr` has the values of the `constvars`.

    `cache` has the results of passes, which live no longer than the program: the last 256, keyed by
    the pass and its arguments (`derived`); all threads get one object. `height` bounds the number
    of nested programs, this one included.

    >>> import olympus
    >>> program = olympus.make_olympuspr(lambda x: olympus.lax.sin(x) + 1)(1.0).olympuspr
    >>> [str(eqn.primitive) for eqn in program.eqns]
    ['sin', 'add']
    """

    __slots__ = ("constvars", "invars", "eqns", "outvars", "effects", "debug_info", "height",
                 "cache", "_primitives", "__weakref__")

    def __init__(self, constvars: Sequence[Var], invars: Sequence[Var], outvars: Sequence[Atom],
                 eqns: Sequence[OlympusprEqn], effects: frozenset[Effect] = NO_EFFECTS,
                 debug_info: DebugInfo = NO_DEBUG_INFO, height: int = 1) -> None:
        self.constvars, self.invars, self.outvars = list(constvars), list(invars), list(outvars)
        self.eqns, self.effects, self.debug_info = list(eqns), effects, debug_info
        self.height = height
        self.cache = Memo(_DERIVED_LIMIT)
        self._primitives: frozenset[Any] | None = None

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.outvars]

    @property
    def is_high(self) -> bool:
        """Whether the program has values of users' types or users' operations (computed once)."""
        flag = self.cache.get("has high")
        if flag is None:
            flag = self.cache["has high"] = _has_high(self)
        return flag

    @property
    def has_64_bits(self) -> bool:
        """Whether a value in it has a 64-bit type, so that it was traced with x64 on; kept."""
        known = self.cache.get("has 64 bits")
        if known is None:
            known = self.cache["has 64 bits"] = _has_64_bits(self)
        return known

    @property
    def primitives(self) -> frozenset[Any]:
        """The primitives of all equations; passes leave early by them."""
        primitives = self._primitives
        if primitives is None:
            primitives = self._primitives = frozenset(map(_primitive, self.eqns))
        return primitives

    def replace(self, **changes: object) -> Olympuspr:
        """A copy with the named fields changed and an empty cache; effects follow from them."""
        names = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info", "height")
        fields = {**{name: getattr(self, name) for name in names}, **changes}
        # An InputEffect names an input by its position, which changes with the inputs.
        if "effects" not in changes and (self.effects or "eqns" in changes):
            fields["effects"] = effects_of_equations(
                [*fields["constvars"], *fields["invars"]], fields["eqns"])
        return Olympuspr(**fields)

    def __str__(self) -> str:
        return self.pretty_print()

    __repr__ = __str__

    def pretty_print(self, **options: bool) -> str:
        return printing.pretty_print(self, **options)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.pretty_print())


def _of_open(name: str, doc: str) -> Any:
    """A property of a closed program that reads the open program's attribute."""
    return property(attrgetter(f"olympuspr.{name}"), doc=doc)


class ClosedOlympuspr:
    """A program with the values of its constants.

    >>> import olympus
    >>> closed = olympus.make_olympuspr(lambda x: x + 1)(2.0)
    >>> isinstance(closed, olympus.extend.core.ClosedOlympuspr), closed.consts
    (True, [])
    """

    __slots__ = ("olympuspr", "consts", "__weakref__")

    def __init__(self, olympuspr: Olympuspr, consts: Sequence[ArrayLike] = ()) -> None:
        if len(consts) != len(olympuspr.constvars):
            raise ValueError(f"ClosedOlympuspr: {len(consts)} constants given; the program names "
                             f"{len(olympuspr.constvars)}; pass one value per constvar.")
        self.olympuspr, self.consts = olympuspr, list(consts)

    constvars: list[Var] = _of_open("constvars", "Names of the constants.")
    invars: list[Var] = _of_open("invars", "Names of the arguments.")
    outvars: list[Atom] = _of_open("outvars", "The results.")
    eqns: list[OlympusprEqn] = _of_open("eqns", "The equations.")
    effects: frozenset[Effect] = _of_open("effects", "The effects.")
    debug_info: DebugInfo = _of_open("debug_info", "The name of the program and of its inputs.")
    cache: Memo = _of_open("cache", "The results of passes.")

    @property
    def in_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.olympuspr.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        return [v.aval for v in self.olympuspr.outvars]

    @property
    def literals(self) -> list[ArrayLike]:
        return self.consts

    @property
    def is_high(self) -> bool:
        """Whether the program has values of users' types or users' operations."""
        return self.olympuspr.is_high

    @property
    def has_64_bits(self) -> bool:
        """Whether a value in it has a 64-bit type."""
        return self.olympuspr.has_64_bits

    def rearranged(self, inputs: Sequence[int] | None = None,
                   outputs: Sequence[int] | None = None) -> ClosedOlympuspr:
        """The program with chosen inputs and outputs: new input i is old input inputs[i]."""
        # The identical order gives the same object, with everything that was derived of it.
        pr = self.olympuspr
        picked = [tuple(range(len(variables)) if order is None else order)
                  for order, variables in ((inputs, pr.invars), (outputs, pr.outvars))]
        if picked == [tuple(range(len(pr.invars))), tuple(range(len(pr.outvars)))]:
            return self
        return _rearranged(self, *picked)

    def replace(self, *, olympuspr: Olympuspr | None = None,
                consts: Sequence[ArrayLike] | None = None) -> ClosedOlympuspr:
        """A copy with the named fields changed."""
        return ClosedOlympuspr(self.olympuspr if olympuspr is None else olympuspr,
                               self.consts if consts is None else consts)

    def __str__(self) -> str:
        return str(self.olympuspr)

    __repr__ = __str__

    def pretty_print(self, **options: bool) -> str:
        return self.olympuspr.pretty_print(**options)

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        printer.text(self.pretty_print())


def high_types(program: ClosedOlympuspr | Olympuspr) -> bool:
    """Whether a program takes or returns values of users' types, or takes references to them."""
    return any(_refs.inner(a).is_high for a in chain(program.in_avals, program.out_avals))


def _has_high(pr: Olympuspr) -> bool:
    if high_types(pr) or any(v.aval.is_high for v in pr.constvars):
        return True
    # The set of primitives first, which is small.
    candidates = [prim for prim in pr.primitives if prim.in_parts is not None or prim.programs]
    if not candidates:
        return False
    if any(prim.programs == () for prim in candidates):
        return True
    return any(body.is_high for eqn in pr.eqns if eqn.primitive in candidates
               for body in eqn.primitive.bodies(eqn.params) if type(body) is ClosedOlympuspr)


_OF_64_BITS = frozenset(map(np.dtype, ("float64", "int64", "uint64", "complex128")))
_UNCHANGED = contextlib.nullcontext()


def _has_64_bits(pr: Olympuspr) -> bool:
    avals: set[Any] = {v.aval for v in chain(pr.invars, pr.constvars)}
    avals.update([v.aval for eqn in pr.eqns for v in eqn.outvars])
    if not _OF_64_BITS.isdisjoint([getattr(aval, "dtype", None) for aval in avals]):
        return True
    carrying = [prim for prim in pr.primitives if prim.programs != ()]
    return bool(carrying) and any(body.has_64_bits for eqn in pr.eqns if eqn.primitive in carrying
                                  for body in eqn.primitive.bodies(eqn.params))


def with_types_of(pr: Olympuspr) -> contextlib.AbstractContextManager[None]:
    """A context in which rules keep the 64-bit types of a program's values.

    A function, or a part of it, may be traced with x64 on and lowered with x64 off.
    """
    if config.enable_x64.value or not pr.has_64_bits:
        return _UNCHANGED
    return config.enable_x64(True)


class SameObjects(ByKey):
    """Values as an argument of a `derived` function, equal if they are the same objects."""

    __slots__ = ("values",)

    def __init__(self, values: Sequence[ArrayLike]) -> None:
        self.values = values

    def _key(self) -> tuple[int, ...]:
        return tuple(map(id, self.values))


def derived(make: Callable[Concatenate[ClosedOlympuspr, P], R]
            ) -> Callable[Concatenate[ClosedOlympuspr, P], R]:
    """Decorator of a function of a program: the result is computed once and kept with the program.

    The result may depend on the program, on the Context, which is in every key because rules read
    it, and on the other arguments, which are hashable and given by position. Equal arguments give
    one object in all threads, so everything derived of that object is found again, down to the
    executables.
    """
    @functools.wraps(make)
    def found(closed: ClosedOlympuspr, *args: object) -> R:
        # Several closed programs may share the open program, whose cache this is: the key has the
        # ids of their constants, and the entry keeps the constants alive, so that ids stay unique.
        cache, key = closed.olympuspr.cache, (
            make, args, current_context(), *map(id, closed.consts))
        entry = cache.get(key)
        if entry is None:
            with with_types_of(closed.olympuspr):
                entry = cache.setdefault(key, (bare(closed, *args), closed.consts))
        return entry[0]

    bare = cast("Callable[..., R]", make)
    return cast("Callable[Concatenate[ClosedOlympuspr, P], R]", found)


@derived
def _rearranged(closed: ClosedOlympuspr, inputs: tuple[int, ...], outputs: tuple[int, ...]
                ) -> ClosedOlympuspr:
    pr = closed.olympuspr
    return closed.replace(olympuspr=pr.replace(
        invars=[pr.invars[i] for i in inputs], outvars=[pr.outvars[i] for i in outputs]))


def effects_of_equations(inputs: Sequence[Var], eqns: Sequence[OlympusprEqn]
                         ) -> frozenset[Effect]:
    """The effects of a program: the union over its equations.

    Effects on an input have its position among `inputs`; effects on intermediate values are none.
    """
    effects = frozenset().union(*filter(None, map(_effects, eqns)))
    # Usually no effect names an input, and the union is the answer.
    if not input_effects(effects):
        return effects
    place = {v: i for i, v in enumerate(inputs)}
    return frozenset([outer for eqn in eqns for e in eqn.effects
                      if (outer := _reindexed(e, lambda i, eqn=eqn: place.get(eqn.invars[i])))])


def effects_of_body(closed: ClosedOlympuspr, operands: Sequence[int] | None = None
                    ) -> frozenset[Effect]:
    """The effects of an equation that applies a program.

    Args:
      closed: the program.
      operands: for each of its inputs, the index of the operand; None: operand i is input i.
    """
    if not closed.effects:
        return closed.effects
    lead = len(closed.consts)   # constants are no operands
    return frozenset([outer for e in closed.effects if (outer := _reindexed(
        e, lambda i: None if i < lead else i - lead if operands is None else operands[i - lead]))])


def _reindexed(effect: Effect, where: Callable[[int], int | None]) -> Effect | None:
    """The effect on the operand or input at `where(index)`; None if `where` gives None."""
    if not isinstance(effect, InputEffect):
        return effect
    index = where(effect.index)
    return None if index is None else effect.at(index)
