"""The values that XLA's algebraic simplifier may not look through, so that compiling keeps numbers.

XLA:CPU simplifies as if floats were real numbers and integers had no bounds
(`xla/hlo/transforms/simplifiers/algebraic_simplifier.cc`): it takes `(a / b) / c` for
`a / (b * c)`, `x * 1e20 * 1e20` for `x * inf`, a quotient by a repeated scalar for a product with
its reciprocal, and the square of an integer for a number that is not negative. Each rewriting needs
two operations that follow each other; an `optimization_barrier` between them, a *fence*, stops it.
XLA drops barriers before it fuses, so the kernels stay as they were.

One pass over a program, before it is lowered, notes of each value how it was computed, where that
matters to what may read it, and finds the equations that may be the second of such a pair. It
fences an operand if the pair could turn a finite number into 0, infinity or NaN, or an integer into
another one. Primitives say what they are to an algebra (`Primitive.algebra`). Functions and bodies
of loops become part of their callers, so an argument of a nested program may be any constant; its
results, and the operands of calls, are fenced as if the most harmful operation read them.

Left to XLA are rewritings that only keep finite what would overflow: `sqrt(x * x)` becomes
`abs(x)`, `log(exp(x))` becomes `x`.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..base.typing import ArrayLike, DType
from ..core.ir import Atom, ClosedOlympuspr, Literal, OlympusprEqn, Var
from ..types import dtypes
from ..types.avals import Aval, is_float0
from ..types.shape import SymbolicDim

if TYPE_CHECKING:
    from .context import ModuleContext

__all__ = ["Plan", "has_no_reciprocal", "plan_of"]

_SEARCHED = 1 << 16     # elements of a closed-over array; a larger one may have any

Number: TypeAlias = float | complex | None      # of a constant; None: not known

# How a value was computed, to the operation that reads it:
_CONSTANT = "constant"      # it is one
_SCALED = "scaled"          # the product or quotient of something and a constant
_SHIFTED = "shifted"        # the sum or difference of those
_REPEATED = "repeated"      # other elements, several times
_UNSIGNED = "unsigned"      # an integer that would not be negative if integers had no bounds
_QUOTIENT = "quotient"
_POWER = "power"
_ROOT = "root"              # the reciprocal of a square root
_EXPONENTIAL = "exponential"
_CLAMPED = "clamped"
# Operations that one in a called program, or in the caller, may be merged with.
_MERGED = frozenset((_CLAMPED, _EXPONENTIAL, _POWER, _QUOTIENT, _SCALED, _SHIFTED, _UNSIGNED))
# Divisors that XLA moves into the dividend, or takes the reciprocal of.
_DIVISORS = frozenset((_EXPONENTIAL, _POWER, _QUOTIENT, _REPEATED))
_SIGNED = frozenset((_CLAMPED, _UNSIGNED))      # what reads the sign of integers


# How a value was computed: the kind; the number of the constant that this is about; whether it is
# computed, element by element, from repeated scalars alone, so that XLA repeats the result; whether
# it is a constant, or one if arguments are. A named tuple would double the time of the pass.
Made: TypeAlias = tuple[str, Number, bool, bool]
_UNKNOWN: Made = "", None, False, False
_GIVEN: Made = "", None, False, True        # an argument, the result of a call
_FIXED: Made = _CONSTANT, None, False, True
_COPIES: Made = _REPEATED, None, True, False
_SPREAD: Made = "", None, True, False
_DIVIDED: Made = _QUOTIENT, None, False, False
_REAL = float, int


@functools.cache
def _limits(dtype: DType) -> tuple[float, float]:
    """The least normal and the greatest number of a dtype."""
    info = dtypes.finfo(dtype)
    return float(info.smallest_normal), float(info.max)


def has_no_reciprocal(numbers: ArrayLike | SymbolicDim, dtype: DType) -> bool:
    """Whether the reciprocal of a finite number, or one of an array, is no normal number."""
    if not dtypes.is_inexact(dtype) or isinstance(numbers, SymbolicDim):    # sizes have
        return False
    least, most = _limits(dtype)
    if type(numbers) is float or type(numbers) is int:
        size = abs(numbers)
        return 0 < size < math.inf and not 1 / most <= size <= 1 / least
    sizes = np.abs(np.asarray(numbers, np.complex128 if dtypes.is_complex(dtype) else np.float64))
    sizes = sizes[(sizes > 0) & np.isfinite(sizes)]
    return bool(((sizes > 1 / least) | (sizes < 1 / most)).any())


class Plan(NamedTuple):
    """The fences of a program, and what is held in memory besides.

    `fences` are equations, in order, with the operands that they and later ones read through a
    fence; `results` those that a caller does.
    """

    fences: Sequence[tuple[OlympusprEqn, Sequence[Var]]]
    results: Sequence[Var]
    held: frozenset[Var]


_NOTHING = Plan((), (), frozenset())


def plan_of(closed: ClosedOlympuspr, module: ModuleContext) -> Plan:
    """The plan of a program in a module, kept with the program."""
    if not module.fences:
        return _NOTHING
    nested = closed is not module.fenced_from
    return closed.derived(("fences", nested), lambda: _Pass(closed, nested).plan())


class _Inexact(dict[Aval, bool]):
    """Whether an aval's dtype is floating or complex, by aval, whose hash is quicker."""

    def __missing__(self, aval: Aval) -> bool:
        found = self[aval] = dtypes.is_inexact(aval.dtype)
        return found


class _Reciprocals(dict[tuple[float, Aval], bool]):
    """Whether XLA may multiply by the reciprocal of a number, by number and aval.

    A number without one is behind a fence already (`Emitter.scalar`).
    """

    def __missing__(self, key: tuple[float, Aval]) -> bool:
        found = self[key] = not has_no_reciprocal(key[0], key[1].dtype)
        return found


class _Pass:
    """The pass over a program. `made` has those of its variables of which something is to know."""

    def __init__(self, closed: ClosedOlympuspr, nested: bool) -> None:
        pr = closed.olympuspr
        self.pr, self.nested = pr, nested
        self.closed_over: dict[Atom, Any] = dict(zip(pr.constvars, closed.consts, strict=True))
        self.made: dict[Atom, Made] = dict.fromkeys(pr.constvars, _FIXED)
        if nested:
            self.made.update(dict.fromkeys(pr.invars, _GIVEN))
        self.constants = bool(self.made)    # whether arrays may be constants
        self.moved: dict[Atom, Atom] = {}   # what of `made` has other's elements: whose
        self.fences: list[tuple[OlympusprEqn, list[Var]]] = []
        self.fenced: set[Atom] = set()
        self.held: set[Var] = set()
        self.inexact, self.reciprocals = _Inexact(), _Reciprocals()

    def plan(self) -> Plan:
        made, get, inexact, reciprocals = self.made, self.made.get, self.inexact, self.reciprocals
        for eqn in self.pr.eqns:
            # The hot path, without calls: what most equations make can be told by a glance at how
            # their operands were computed. The steps are for the others.
            algebra, operands = eqn.primitive.algebra, eqn.invars
            if not algebra:
                if operands and type(x := operands[0]) is not Literal:
                    p = get(x)
                    if x.aval.shape if p is None else not (p[2] or p[3]):
                        continue
            elif algebra in _MOVES:
                x = operands[0]
                if type(x) is not Literal:
                    p = get(x)
                    if algebra == "broadcast":
                        if p is None or not p[3]:
                            made[eqn.outvars[0]] = _COPIES
                            continue
                    elif p is not None:
                        made[eqn.outvars[0]], self.moved[eqn.outvars[0]] = p, self.moved.get(x, x)
                        continue
                    elif x.aval.shape:
                        continue
            elif algebra in _PAIRS:
                x, y = operands
                kind, alone, together = _PAIRS[algebra]
                if (aval := x.aval) is y.aval:
                    p, q = get(x), get(y)
                    if not aval.shape:
                        pass
                    elif p is None or q is None or p is q is _GIVEN:
                        known = q if p is None else p
                        if known is None:
                            if x is not y or inexact[aval]:
                                continue
                        elif known is _GIVEN:
                            if kind and inexact[aval]:
                                made[eqn.outvars[0]] = kind, None, False, p is q
                                continue
                        elif known[0] not in alone and not known[3]:
                            continue
                    elif not (p[3] or q[3] or p[0] in alone or q[0] in alone
                              or p[0] in together and q[0] in together):
                        if p[2] and q[2]:
                            made[eqn.outvars[0]] = _SPREAD
                        continue
                elif type(y) is Literal and type(number := y.val) in _REAL and aval.shape:
                    p = get(x, _UNKNOWN)
                    if inexact[aval] and number == number and (
                            p[0] != kind and p[0] not in alone and not p[3]):
                        if kind:
                            made[eqn.outvars[0]] = (
                                kind, -number if algebra == "difference" else number, p[2], False)
                        continue
                elif type(x) is Literal and type(number := x.val) in _REAL and y.aval.shape:
                    q = get(y, _UNKNOWN)
                    if inexact[y.aval] and number == number and (
                            q[0] != kind and q[0] not in alone and not q[3]):
                        if kind:
                            made[eqn.outvars[0]] = kind, number, q[2], False
                        continue
            elif algebra == "quotient":
                x, y = operands
                if (aval := x.aval) is y.aval:
                    p = get(x)
                    if y not in made and inexact[aval] and aval.shape and (
                            p is None or p[0] != _QUOTIENT):
                        made[eqn.outvars[0]] = _DIVIDED
                        continue
                elif type(y) is Literal and type(number := y.val) in _REAL and aval.shape:
                    p = get(x, _UNKNOWN)
                    if number and inexact[aval] and number == number and (
                            p[0] != _SCALED) and reciprocals[number, aval]:
                        made[eqn.outvars[0]] = _SCALED, 1 / number, p[2], p[3]
                        continue
            _STEPS[algebra](self, eqn)
        results = self._those(self.pr.outvars, _MERGED) if self.nested else ()
        return Plan(self.fences, results, frozenset(self.held))

    # The steps, by algebra: what to fence of operands, and what to know of results.

    def _product(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        aval = eqn.outvars[0].aval
        if not self.inexact[aval]:
            self._note(eqn, _UNSIGNED if x is y else "")
            return
        p, q = self._of(x), self._of(y)
        self._hold_nan(eqn, p, q)
        if p[3] and p[0] != _SCALED:
            x, y, p, q = y, x, q, p
        if q[3]:
            if p[0] == _SCALED and not _is_safe(p[1], q[1], aval.dtype):
                self._fence(eqn, x)
        elif p[0] == q[0] == _SCALED:
            unknown = self.constants and (p[1] is None or q[1] is None)
            if (unknown or _is_single(x.aval.shape) or _is_single(y.aval.shape)) and (
                    not _is_safe(p[1], q[1], aval.dtype)):
                self._fence(eqn, x)     # (x * c) * (y * d)
        elif p[0] == _SCALED and self._is_repeated(y, q, aval):
            self._fence(eqn, x)         # XLA multiplies the scalar with the constant
        elif q[0] == _SCALED and self._is_repeated(x, p, aval):
            self._fence(eqn, y)
        elif p[0] == q[0] == _EXPONENTIAL and aval.dtype.itemsize == 2:
            self._fence(eqn, x)         # a sum of 16 bits is no good exponent
        self._note_pair(eqn, _SCALED)

    def _quotient(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        out = eqn.outvars[0]
        aval = out.aval
        if not self.inexact[aval]:
            self._fence(eqn, *self._those((x, y), (_UNSIGNED,)))
            self._note(eqn)
            return
        p, number = self._of(x), None
        q = self._of(y)
        if type(y) is Literal:
            self._hold_nan(eqn, q)
            number = q[1]
            reciprocals = not has_no_reciprocal(y.val, aval.dtype)
            number = 1 / number if number else None
        else:
            reciprocals = y in self.closed_over and _has_reciprocals(self.closed_over[y], aval)
        if reciprocals:
            if p[0] == _SCALED and not _is_safe(p[1], number, aval.dtype):
                self._fence(eqn, x)
            self._note(eqn, _SCALED, number)
            return
        if p[0] == _QUOTIENT:
            self._fence(eqn, x)
        if q[0] in _DIVISORS or q[2] or q[3] or y.aval.shape != aval.shape:
            self._fence(eqn, y)
        self.made[out] = _DIVIDED

    def _sum(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        aval = eqn.outvars[0].aval
        if self.inexact[aval]:
            p, q = self._of(x), self._of(y)
            self._hold_nan(eqn, p, q)
            if p[3] and p[0] != _SHIFTED:
                x, y, p, q = y, x, q, p
            if p[0] == q[0] == _SCALED:
                if p[1] == q[1] or p[1] is None or q[1] is None:
                    self._fence(eqn, x)     # x * c + y * c, c a power of 2
            elif q[3]:
                if p[0] == _SHIFTED and not _is_joint(p[1], q[1], aval.dtype):
                    self._fence(eqn, x)
        self._note_pair(eqn, _SHIFTED)

    def _difference(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        aval = eqn.outvars[0].aval
        if self.inexact[aval]:
            p, q = self._of(x), self._of(y)
            self._hold_nan(eqn, p, q)
            # XLA leaves c - (y + d) as it is.
            if q[3] and p[0] == _SHIFTED and not _is_joint(
                    p[1], None if q[1] is None else -q[1], aval.dtype):
                self._fence(eqn, x)
        elif x is y:
            self.held.add(eqn.outvars[0])       # see `_comparison`
        self._note_pair(eqn, _SHIFTED, -1)

    def _square(self, eqn: OlympusprEqn) -> None:
        x, aval = eqn.invars[0], eqn.outvars[0].aval
        power = eqn.params.get("y", 2)
        inexact = self.inexact[aval]
        if inexact:
            p = self._of(x)
            if p[0] == _SCALED and (_is_single(aval.shape) or p[1] is None):
                self._fence(eqn, x)
        self._note(eqn, _QUOTIENT if power < 0 else "" if inexact or power % 2 else _UNSIGNED)

    def _absolute(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn, *self._those(eqn.invars, _SIGNED))
        self._note(eqn, "" if self.inexact[eqn.outvars[0].aval] else _UNSIGNED)

    def _comparison(self, eqn: OlympusprEqn) -> None:
        """Comparisons, extrema, remainders, shifts: they read the sign of integers.

        Held in memory are the difference of an integer and itself, `x > x`, and their xor: LLVM
        would know that it is 0, and take an angle or an integer quotient of it for undefined.
        """
        x, y = eqn.invars
        if x is y and eqn.primitive.op in ("GT", "LT"):
            self.held.add(eqn.outvars[0])
        self._other(eqn)

    def _exclusive_or(self, eqn: OlympusprEqn) -> None:
        x, y = (self._orders.get(a) for a in eqn.invars)    # XLA computes equal operations once
        if x is not None and y is not None and x.primitive is y.primitive and (
                [*map(id, x.invars)] == [*map(id, y.invars)]):
            self.held.add(eqn.outvars[0])
        self._other(eqn)

    @functools.cached_property
    def _orders(self) -> dict[Atom, OlympusprEqn]:
        """The results of all `x > y` and `x < y`."""
        return {eqn.outvars[0]: eqn for eqn in self.pr.eqns
                if getattr(eqn.primitive, "op", "") in ("GT", "LT")}

    def _broadcast(self, eqn: OlympusprEqn) -> None:
        p = self._of(eqn.invars[0])
        kind = _CONSTANT if p[0] == _CONSTANT else _REPEATED
        self.made[eqn.outvars[0]] = kind, p[1], True, p[3]

    def _move(self, eqn: OlympusprEqn) -> None:
        x, out = eqn.invars[0], eqn.outvars[0]
        p = self._of(x)
        if p is not _UNKNOWN:
            self.made[out], self.moved[out] = p, self.moved.get(x, x)
        elif not x.aval.shape:
            self._note(eqn)

    def _choice(self, eqn: OlympusprEqn) -> None:
        cases, out = eqn.invars[1:], eqn.outvars[0]
        if len({self.moved.get(x, x) for x in cases}) == 1:     # XLA drops such a choice
            self.made[out] = self._of(cases[0])
        else:
            repeats, fixed = self._shared(cases)
            if repeats and out.aval.shape or fixed:
                self.made[out] = "", None, repeats, fixed

    def _other(self, eqn: OlympusprEqn) -> None:
        prim = eqn.primitive
        read = _READ.get(prim.algebra)
        if read is not None:
            self._fence(eqn, *self._those(eqn.invars, read))
        kind = _MADE.get(prim.algebra, "")
        if prim.algebra == "called":
            self.constants = True
            self.made.update(dict.fromkeys(eqn.outvars, _GIVEN))
        elif all(type(a) is Literal for a in eqn.invars):
            self.made.update(dict.fromkeys(eqn.outvars, _FIXED))
        elif prim.elementwise:
            self._note(eqn, kind)
        elif kind:
            self.made[eqn.outvars[0]] = kind, None, False, False

    # What they have in common

    def _of(self, atom: Atom) -> Made:
        """How an operand was computed."""
        if type(atom) is Literal:
            return _CONSTANT, _number(atom), False, True
        return self.made.get(atom, _UNKNOWN)

    def _note(self, eqn: OlympusprEqn, kind: str = "", number: Number = None) -> None:
        """Note how the result of an elementwise operation was computed, if that may matter."""
        out = eqn.outvars[0]
        repeats, fixed = self._shared(eqn.invars)
        if kind or repeats and out.aval.shape or fixed:
            self.made[out] = kind, number, repeats, fixed

    def _note_pair(self, eqn: OlympusprEqn, kind: str, sign: int = 1) -> None:
        """Note that of an operation of two operands, which is of a kind if one is a constant.

        `sign` is of the constant, if it is the second operand.
        """
        x, y = eqn.invars
        number = None
        if not self.inexact[eqn.outvars[0].aval]:
            kind = ""           # integers wrap: operations that merge give the same ones
        if type(x) is Literal:
            number = _number(x)
        elif type(y) is Literal:
            number = _number(y)
            if sign < 0 and number is not None:
                number = -number
        else:
            shape, p, q = eqn.outvars[0].aval.shape, self._of(x), self._of(y)
            if p[0] == q[0] == _CONSTANT:
                kind = _CONSTANT
            elif not (p[3] or q[3]) and x.aval.shape == shape == y.aval.shape:
                kind = ""       # a scalar may be computed from constants
        self._note(eqn, kind, number)

    def _shared(self, atoms: Iterable[Atom]) -> tuple[bool, bool]:
        """Whether all operands are repeated scalars, and whether all are fixed."""
        repeats = fixed = True
        for atom in atoms:
            if type(atom) is not Literal:
                made = self.made.get(atom, _UNKNOWN)
                repeats = repeats and (made[2] or not atom.aval.shape)
                fixed = fixed and made[3]
        return repeats, fixed

    def _is_repeated(self, atom: Atom, made: Made, aval: Aval) -> bool:
        """Whether an operand is a scalar, or other elements repeated, at the result's shape."""
        return made[0] == _REPEATED or atom.aval.shape != aval.shape

    def _those(self, atoms: Iterable[Atom], kinds: Collection[str]) -> list[Atom]:
        """Those operands that operations of some kinds computed."""
        get = self.made.get
        return [a for a in atoms if type(a) is not Literal and get(a, _UNKNOWN)[0] in kinds]

    def _fence(self, eqn: OlympusprEqn, *atoms: Atom) -> None:
        """Fence operands of an equation, so that nothing is known of them to it and later ones."""
        for atom in atoms:
            if type(atom) is not Literal and atom not in self.fenced:
                if not self.fences or self.fences[-1][0] is not eqn:
                    self.fences.append((eqn, []))
                self.fences[-1][1].append(atom)
                self.fenced.add(atom)
                self.made.pop(atom, None)

    def _hold_nan(self, eqn: OlympusprEqn, *operands: Made) -> None:
        """Hold the result of arithmetic with NaN in memory.

        LLVM takes an exponential of what it knows to be NaN for undefined.
        """
        for kind, number, _, _ in operands:
            if kind == _CONSTANT and number is not None and number != number:
                self.held.add(eqn.outvars[0])


# Operations that give the elements of their first operand, elsewhere or in another format.
_MOVES = frozenset(("broadcast", "conversion", "move"))
# Operations on two operands: what they make if one is a number; what matters to them by itself;
# what does if both are among it.
_NONE = frozenset[str]()
_PAIRS = {"comparison": ("", _SIGNED, _NONE),
          "difference": (_SHIFTED, _NONE, _NONE),
          "product": (_SCALED, _NONE, frozenset((_EXPONENTIAL, _REPEATED, _SCALED))),
          "sum": (_SHIFTED, _NONE, frozenset((_SCALED,)))}
# What an operation reads of its operands, where that is only what computed them.
_READ = {"called": _MERGED, "clamp": _SIGNED, "comparison": _SIGNED, "exclusive_or": _SIGNED,
         "logarithm": frozenset((_POWER, _QUOTIENT, _ROOT)), "power": frozenset((_EXPONENTIAL,)),
         "sign": _SIGNED}
_MADE = {"clamp": _CLAMPED, "exponential": _EXPONENTIAL, "power": _POWER,
         "logistic": _QUOTIENT,     # 1 / (1 + exp(-x))
         "root": _ROOT}
_STEPS: dict[str, Callable[[_Pass, OlympusprEqn], None]] = {
    **dict.fromkeys(("", *_READ, *_MADE), _Pass._other),
    "absolute": _Pass._absolute, "broadcast": _Pass._broadcast, "choice": _Pass._choice,
    "comparison": _Pass._comparison, "conversion": _Pass._move, "difference": _Pass._difference,
    "exclusive_or": _Pass._exclusive_or, "integer_power": _Pass._square, "move": _Pass._move,
    "product": _Pass._product, "quotient": _Pass._quotient, "square": _Pass._square,
    "sum": _Pass._sum}


def _has_reciprocals(divisors: ArrayLike, aval: Aval) -> bool:
    """Whether XLA may multiply by the reciprocals of an array, as all are normal numbers."""
    return np.size(divisors) <= _SEARCHED and not has_no_reciprocal(divisors, aval.dtype)


def _number(literal: Literal) -> Number:
    """The number of a literal, None for a symbolic size and a zero of float0."""
    value = literal.val
    if type(value) in _REAL:
        return value
    if isinstance(value, SymbolicDim) or is_float0(literal.aval):
        return None
    return complex(value) if dtypes.is_complex(literal.aval.dtype) else float(value)


def _is_single(shape: Sequence[object]) -> bool:
    """Whether an array has one element: XLA moves constants of such further."""
    return not shape or shape.count(1) == len(shape)


def _is_safe(a: Number, b: Number, dtype: DType) -> bool:
    """Whether a product of constants is a normal number, or one of them is 0."""
    if a is None or b is None:
        return False
    least, most = _limits(dtype)
    return least <= abs(a * b) <= most or a == 0 or b == 0


def _is_joint(a: Number, b: Number, dtype: DType) -> bool:
    """Whether terms of one sign have an exact sum: others may have been there to round."""
    if a is None or b is None or isinstance(a, complex) or isinstance(b, complex):
        return False
    # In float64, what a sum loses: Knuth (1997), Seminumerical Algorithms, 4.2.2, theorem B.
    x, y = float(dtype.type(a)), float(dtype.type(b))
    s = x + y
    rest = (x - (s - (s - x))) + (y - (s - x))
    return x * y >= 0 and rest == 0 and abs(s) <= _limits(dtype)[1] and float(dtype.type(s)) == s
