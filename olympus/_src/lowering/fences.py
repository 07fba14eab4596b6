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
another one. Primitives name their role in an algebra (`Primitive.algebra`). Functions and bodies of
loops become part of their callers, so an argument of a nested program may be any constant; its
results, and the operands of calls, are fenced as if the most harmful operation read them.

Left to XLA are rewritings that only keep finite what would overflow: `sqrt(x * x)` becomes
`abs(x)`, `log(exp(x))` becomes `x`.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..base.typing import DimSize
from ..core.ir import Atom, ClosedOlympuspr, Literal, Olympuspr, OlympusprEqn, Var, derived
from ..core.primitive import Primitive
from ..types import dtypes
from ..types.avals import Aval, is_float0, make_aval
from ..types.shape import SymbolicDim
from .instead import nan_p, plus_zero_p
from .known_numbers import (
    Inexact, Number, Reciprocals, converted, has_no_reciprocal, has_reciprocals, is_infinite,
    is_joint, is_nan, is_safe, ratio, repeated_number, rounded, size,
)

if TYPE_CHECKING:
    from .context import ModuleContext

# How a value was computed, to the operation that reads it, as bits of a set:
_CONSTANT = 1           # it is one,
_FIXED = 2              # or one if arguments are
_SPREAD = 4             # from repeated scalars alone, so that XLA repeats the result
_REPEATED = 8           # other elements, several times
_SCALED = 16            # the product or quotient of something and a constant
_SHIFTED = 32           # the sum or difference of those
_UNSIGNED = 64          # an integer that would not be negative if integers had no bounds
_QUOTIENT = 128
_POWER = 256
_ROOT = 512             # the reciprocal of a square root
_EXPONENTIAL = 1024
_INVERTIBLE = 2048      # the exponential of an operand that an operation could be merged with
_CLAMPED = 4096
_NARROWED = 8192        # an integer of a conversion to fewer bits
_FOLDED = 16384         # of constants alone, so that XLA may know its elements
_ALL = (_CLAMPED | _EXPONENTIAL | _INVERTIBLE | _NARROWED | _POWER | _QUOTIENT | _ROOT | _SCALED
        | _SHIFTED | _UNSIGNED)
# These kinds of the operand of a negation, which another one, a square or an absolute value undoes.
_MINUS = 16
_MERGED = _ALL | _ALL << _MINUS
_FENCED = _MERGED & ~(_NARROWED | _NARROWED << _MINUS)      # held in memory are integers narrowed
# Divisors that XLA moves into the dividend, or takes the reciprocal of.
_DIVISORS = _EXPONENTIAL | _POWER | _QUOTIENT | _REPEATED | _SPREAD | _FIXED
_SIGNED = _CLAMPED | _UNSIGNED      # what reads the sign of integers
_ALIKE = _FIXED | _FOLDED | _SPREAD           # what all operands have to be for the result to be it
# What is left of a product by a constant, as constants may be merged to 1.
_FACTORS = _EXPONENTIAL | _INVERTIBLE | _POWER | _QUOTIENT | _REPEATED | _ROOT | _SCALED
_FACTORS |= (_FACTORS & _ALL) << _MINUS


# The set, and the number of the constant that it is about. A named tuple would double the time of
# the pass.
Made: TypeAlias = tuple[int, Number]
_UNKNOWN: Made = 0, None
_GIVEN: Made = _FIXED, None         # an argument, the result of a call
_CONSTANTS = _CONSTANT | _FIXED | _FOLDED
_KNOWN: Made = _CONSTANTS, None
_COPIES: Made = _REPEATED | _SPREAD, None
_SPREADS: Made = _SPREAD, None
_SPREAD_CONSTANT = _CONSTANTS | _SPREAD
_COMPUTED: Made = _FIXED | _FOLDED, None
_DIVIDED: Made = _QUOTIENT, None
_REAL = float, int


class Fences(NamedTuple):
    """The operands that an equation and later ones read through a fence, the scalars whose
    repetitions alone are read so, the equation to lower in its place, an operand that waits, and
    for what (`in_place.py`)."""

    eqn: OlympusprEqn
    whole: list[Var]
    repeated: list[Var]
    lowered: OlympusprEqn
    late: Sequence[Var] = ()


class Plan(NamedTuple):
    """The fences of a program, in the order of its equations, the results that a caller reads
    through a fence, the values that are held in memory besides, and the constants that are hidden
    in memory, with literals in whose place they are. For callers: in which ways arguments are read;
    each result's number, if it is a constant, and whether it is a narrowed integer.
    """

    fences: Sequence[Fences]
    results: Sequence[Var]
    held: frozenset[Var]
    constants: Mapping[Var, Literal | None]
    reads: int
    numbers: Sequence[Number]
    narrowed: Sequence[bool]

    def held_of(self, pr: Olympuspr, results: Sequence[int]) -> Set[Atom]:
        """The values to hold, also for a caller that wants these results to be."""
        if True not in self.narrowed:
            return self.held
        return self.held | {pr.outvars[i] for i in results if self.narrowed[i]}


# The ways in which a program reads its arguments, as bits: as terms of sums, from which differences
# are taken, in `and` and `or`; or it returns them.
_ADDED, _SUBTRACTED, _MASKED, _RETURNED = 1, 2, 4, 8
_NOTHING = Plan((), (), frozenset(), {}, 0, (), ())


def plan_of(closed: ClosedOlympuspr, module: ModuleContext) -> Plan:
    """The plan of a program in a module, kept with the program."""
    if not module.fences:
        return _NOTHING
    nested = closed is not module.fenced_from
    return _plan(closed, nested)


@derived
def _plan(closed: ClosedOlympuspr, nested: bool) -> Plan:
    return _Pass(closed, nested).plan()


class _Pass:
    """The pass over a program. `made` has its variables with known facts."""

    def __init__(self, closed: ClosedOlympuspr, nested: bool) -> None:
        pr = closed.olympuspr
        self.pr, self.nested = pr, nested
        self.closed_over: dict[Atom, Any] = dict(zip(pr.constvars, closed.consts, strict=True))
        self.made: dict[Atom, Made] = dict.fromkeys(pr.constvars, _KNOWN)
        if nested:
            self.made.update(dict.fromkeys(pr.invars, _GIVEN))
        self.constants = bool(self.made)    # whether arrays may be constants
        self.moved: dict[Atom, Atom] = {}   # what of `made` has other's elements: whose
        self.fences: list[Fences] = []
        self.fenced: set[Atom] = set()
        self.hidden: set[Atom] = set()      # scalars, where they are repeated
        self.constant_vars: dict[Var, Literal | None] = {}
        self.inexact, self.reciprocals = Inexact(), Reciprocals()
        self.held: set[Var] = set()
        self.reads = 0
        self.given = frozenset(pr.invars if nested else ())
        self.made.update((v, (_CONSTANTS, repeated_number(self.closed_over[v])))
                         for v in pr.constvars if self.inexact[v.aval])

    def plan(self) -> Plan:     # noqa: C901, PLR0912 - hot: without calls for most equations
        made, get, steps, glances = self.made, self.made.get, _STEPS, _Glances()
        inexact, others = self.inexact, self._glance
        for eqn in self.pr.eqns:
            # A glance decides on most equations, without calls; the steps are for the others.
            operands = eqn.invars
            glance, kind, neutral, alone, together = glances[prim := eqn.primitive]
            if glance == _ANY:
                for x in operands:
                    if type(x) is not Literal and (p := get(x)) is not None and p[0] & alone:
                        break
                else:
                    if operands and type(operands[0]) is not Literal:
                        continue
            elif glance == _PAIR:
                x, y = operands
                aval = x.aval
                if type(x) is Literal or type(y) is Literal:
                    number, other = (y, x) if type(y) is Literal else (x, y)
                    if type(c := number.val) in _REAL and (     # type: ignore[union-attr]
                            c == c and c != neutral and (aval := other.aval).shape
                            and inexact[aval]):
                        bits, p = 0, get(other)
                        if p is None or not (bits := p[0]) & ~_SPREAD:
                            if kind:
                                made[eqn.outvars[0]] = bits | kind, (
                                    -c if number is y and prim.algebra == "difference" else c)
                            continue
                else:
                    p, q = get(x), get(y)
                    if p is None is q:
                        if x is not y or aval.shape and inexact[aval]:
                            if kind and aval is not y.aval and inexact[aval] and (
                                    aval.shape != y.aval.shape):
                                made[eqn.outvars[0]] = kind, None   # constants may be in a scalar
                            continue
                    elif aval is y.aval and aval.shape and inexact[aval]:
                        if p is None or q is None:
                            if not (p or q or _UNKNOWN)[0] & alone:
                                continue
                        elif not ((p[0] | q[0]) & alone or p[0] & together and q[0] & together):
                            if p[0] & q[0] & _SPREAD:
                                made[eqn.outvars[0]] = _SPREADS
                            continue
            elif glance == _ONE:
                x = operands[0]
                if type(x) is not Literal and x not in made and inexact[x.aval]:
                    if kind:
                        made[eqn.outvars[0]] = kind, None
                    continue
            elif glance == _BROADCASTS:
                x = operands[0]
                if type(x) is not Literal:
                    if x not in made:
                        made[eqn.outvars[0]] = _COPIES
                        continue
                elif type(x.val) in _REAL:
                    made[eqn.outvars[0]] = _SPREAD_CONSTANT, x.val
                    continue
            elif glance and others(eqn, glance):
                continue
            steps[prim.algebra](self, eqn)
        return self._for_callers() if self.nested else Plan(
            self.fences, (), frozenset(self.held), self.constant_vars, 0, (), ())

    def _glance(self, eqn: OlympusprEqn, glance: int) -> bool:
        """Whether a glance at a quotient or an extremum was enough."""
        made, operands = self.made, eqn.invars
        x, y = operands[0], operands[-1]
        if glance == _QUOTIENTS:
            aval = x.aval
            if type(y) is Literal:
                if type(number := y.val) in _REAL and number and aval.shape and (
                        self.inexact[aval] and number == number != 1
                        and self.reciprocals[number, aval]):
                    bits, p = 0, made.get(x)
                    if p is None or not (bits := p[0]) & ~_SPREAD:
                        made[eqn.outvars[0]] = _SCALED | bits, 1 / number
                        return True
            elif self.inexact[aval] and (aval is y.aval or aval.shape and y in self.hidden):
                p, q = made.get(x), made.get(y)
                if (q is None or not q[0] & _DIVISORS) and (p is None or not p[0] & _QUOTIENT):
                    made[eqn.outvars[0]] = _DIVIDED
                    return True
        else:
            if type(x) is Literal:
                x, y = y, x
            if type(x) is not Literal and x not in made and x is not y:
                if type(y) is Literal:      # an infinite bound is none
                    return type(number := y.val) in _REAL and number - number == 0
                return y not in made
        return False

    def _for_callers(self) -> Plan:
        """The plan of a function or body: whatever may read its results is unknown."""
        results = self.pr.outvars
        narrowed = self._those(results, _NARROWED)
        if self.reads & _MASKED:    # the next iteration may read them
            self.held.update(narrowed)
        self._read(_RETURNED, *results)
        return Plan(self.fences, self._those(results, _FENCED), frozenset(self.held),
                    self.constant_vars, self.reads, [_value(self._of(v)) for v in results],
                    [v in narrowed for v in results])

    def _read(self, way: int, *atoms: Atom) -> None:
        """Note that values are read in a way, if any is an argument, moved or repeated."""
        if self.given and way & ~self.reads and not self.given.isdisjoint(
                [self.moved.get(a, a) for a in atoms]):
            self.reads |= way

    # The steps, by algebra: what to fence of operands, and what to know of results.

    def _product(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        out = eqn.outvars[0]
        aval = out.aval
        if not self.inexact[aval]:
            self._note(eqn, _UNSIGNED if x is y else 0)
            return
        p, q = self._of(x), self._of(y)
        if (p[0] | q[0]) & _CONSTANT and self._is_known(eqn, p, q, operator.mul):
            return
        if (p[0] & q[0]) >> _MINUS:
            p, q = _negated(p), _negated(q)
        if p[0] & _FIXED and not (p[0] & _SCALED and q[0] & _FIXED):
            x, y, p, q = y, x, q, p
        if q[0] & _FIXED:
            if p[0] & _SCALED and not is_safe(p[1], _value(q), aval.dtype):
                self._fence(eqn, x)
                p = p[0] & _ALIKE, None
            self._note_scaled(eqn, p, _value(q))
            return
        bits: int = 0
        if p[0] & q[0] & _SCALED:
            unknown = self.constants and (p[1] is None or q[1] is None)
            repeated = (p[0] | q[0]) & (_REPEATED | _SPREAD)    # XLA computes it once, as a scalar
            if unknown or repeated or _is_single(x.aval.shape) or _is_single(y.aval.shape):
                self._fence(eqn, x)     # (x * c) * (y * d): x * y may be infinite
        elif p[0] & _SCALED and self._is_repeated(y, q, aval):
            self._fence(eqn, x)         # XLA multiplies the scalar with the constant
        elif q[0] & _SCALED and self._is_repeated(x, p, aval):
            self._fence(eqn, y)
        if p[0] & q[0] & _EXPONENTIAL:
            bits = _EXPONENTIAL         # of the sum
            if aval.dtype.itemsize == 2:
                self._fence(eqn, x)     # a sum of 16 bits is no good exponent
        if x.aval.shape != y.aval.shape:
            bits |= _SCALED             # a scalar may be computed from constants
        self._note(eqn, bits)

    def _quotient(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        out = eqn.outvars[0]
        aval = out.aval
        if not self.inexact[aval]:
            self._fence(eqn, *self._those((x, y), _UNSIGNED))
            self._note(eqn)
            return
        p, number = self._of(x), None
        q = self._of(y)
        if (p[0] | q[0]) & _CONSTANT and self._is_known(eqn, p, q, ratio):
            return
        if type(y) is Literal:
            number = q[1]
            reciprocals = not has_no_reciprocal(y.val, aval.dtype)
            number = 1 / number if number else None
        else:
            reciprocals = y in self.closed_over and has_reciprocals(self.closed_over[y], aval)
        if reciprocals:
            if p[0] & _SCALED and not is_safe(p[1], number, aval.dtype):
                self._fence(eqn, x)
                p = p[0] & _ALIKE, None
            self._note_scaled(eqn, p, number)
            return
        if p[0] & _QUOTIENT:
            self._fence(eqn, x)
            p = _UNKNOWN
        if q[0] & _DIVISORS:
            self._fence(eqn, y)
        elif y.aval.shape != aval.shape and y not in self.hidden and y not in self.fenced:
            self._entry(eqn).repeated.append(y)
            self.hidden.add(y)
        self.made[out] = (_QUOTIENT | p[0] & _MERGED, None) if q[0] & _FIXED else _DIVIDED

    def _sum(self, eqn: OlympusprEqn) -> None:
        self._term(eqn, 1)

    def _difference(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        if x is y and not self.inexact[eqn.outvars[0].aval]:
            self.held.add(eqn.outvars[0])       # see `_comparison`
        self._term(eqn, -1)

    def _term(self, eqn: OlympusprEqn, sign: int) -> None:
        """The sum of x and y, or of x and -y."""
        x, y = eqn.invars
        out = eqn.outvars[0]
        aval = out.aval
        if not self.inexact[aval]:
            self._note(eqn)     # integers wrap: operations that merge give the same ones
            return
        p, q = self._of(x), self._of(y)
        if q[1] is not None and sign < 0:
            q = q[0], -q[1]
        if (p[0] | q[0]) & _CONSTANT and self._is_known(eqn, p, q, operator.add):
            return
        self._read(_ADDED if sign > 0 else _SUBTRACTED, x, y)
        if _is_zero(q, 1) or sign > 0 and _is_zero(p, 1):
            self._lower_as(eqn, plus_zero_p, x if _is_zero(q, 1) else y)
            return
        # What XLA computes of constants may be 0.
        self._fence(eqn, *[a for a, made in ((x, p), (y, q)) if (
            _may_be_zero(made) and (a is y or sign > 0))])
        p, q = self._of(x), self._of(y)
        if q[1] is not None and sign < 0:
            q = q[0], -q[1]
        # XLA leaves c - (y + d) as it is.
        turned = p[0] & _FIXED and not (p[0] & _SHIFTED and q[0] & _FIXED)
        if turned:
            x, y, p, q = y, x, q, p
        if q[0] & _FIXED:
            if p[0] & _SHIFTED and not (turned and sign < 0) and (
                    not is_joint(p[1], _value(q), aval.dtype)):
                self._fence(eqn, x)
                p = p[0] & _ALIKE, None
            self._note_shifted(eqn, p, _value(q))
            return
        if sign > 0 and p[0] & q[0] & _SCALED and (
                p[1] == q[1] or p[1] is None or q[1] is None):
            self._fence(eqn, x)     # x * c + y * c, c a power of 2
        self._note(eqn, _SHIFTED if x.aval.shape != y.aval.shape else 0)

    def _square(self, eqn: OlympusprEqn) -> None:
        x, aval = eqn.invars[0], eqn.outvars[0].aval
        power = eqn.params.get("y", 2)
        inexact = self.inexact[aval]
        p = self._of(x)
        if power == 1:
            self._pass(eqn, p)
            return
        if inexact and p[0] & (_SCALED | _SCALED << _MINUS) and (
                _is_single(aval.shape) or p[1] is None or p[0] & (_REPEATED | _SPREAD)):
            self._fence(eqn, x)
        self._note(eqn, _QUOTIENT if power < 0 else 0 if inexact or power % 2 else _UNSIGNED)

    def _power(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn, *self._those(eqn.invars, _EXPONENTIAL))
        x, y = eqn.invars[0], eqn.invars[-1]
        p, q = self._of(x), self._of(y)
        base, number = _value(p), _value(q)
        if isinstance(base, _REAL) and isinstance(number, _REAL) and (
                base < 0 and number % 1):
            self._note_constant(eqn, math.nan)
            return
        bits = _POWER
        if x is not y and q[0] & _FIXED:
            number = _value(q)
            if number == 1 or number is None:
                bits |= p[0] & _MERGED
            if number == -1 or number is None:
                bits |= _QUOTIENT
            if number in (2, 3, None) and p[0] & (_SCALED | _SCALED << _MINUS):
                self._fence(eqn, x)
        self._note(eqn, bits)

    def _absolute(self, eqn: OlympusprEqn) -> None:
        x, out = eqn.invars[0], eqn.outvars[0]
        if self.inexact[out.aval]:
            bits, number = self._of(x)
            if bits:        # the square has none
                bits = (bits | bits >> _MINUS & _ALL) & ~_SHIFTED
                self.made[out] = bits, None if number is None else size(number)
            return
        self._fence(eqn, *self._those(eqn.invars, _SIGNED))
        self._note(eqn, 0 if self.inexact[out.aval] else _UNSIGNED)

    def _negation(self, eqn: OlympusprEqn) -> None:
        self._pass(eqn, _negated(self._of(eqn.invars[0])))

    def _part(self, eqn: OlympusprEqn) -> None:
        """Parts of complex numbers and of their parts, the bits of a number: again the operand."""
        bits, _ = self._joined(eqn.invars)
        if bits:
            self.made[eqn.outvars[0]] = bits & ~_CONSTANT, None

    def _comparison(self, eqn: OlympusprEqn) -> None:
        """Comparisons, remainders, shifts: they read the sign of integers.

        Held in memory are the difference of an integer and itself, `x > x`, and their xor: LLVM
        would know that it is 0, and take an angle or an integer quotient of it for undefined.
        """
        x, y = eqn.invars
        if x is y and eqn.primitive.op in ("GT", "LT"):
            self.held.add(eqn.outvars[0])
        if eqn.primitive.divides and self.inexact[eqn.outvars[0].aval]:
            dividend, divisor = _value(self._of(x)), _value(self._of(y))
            if dividend is not None and (divisor == 0 or math.isinf(dividend.real)):
                self._note_constant(eqn, math.nan)
                return
        self._other(eqn)

    def _extremum(self, eqn: OlympusprEqn) -> None:
        """With an infinity, or itself, it is the number."""
        x, y = eqn.invars
        self._other(eqn)
        if self.inexact[eqn.outvars[0].aval]:
            self._bounded(eqn, x, (y,))
            self._bounded(eqn, y, (x,))

    def _clamp(self, eqn: OlympusprEqn) -> None:
        least, x, most = eqn.invars
        self._other(eqn)
        out = eqn.outvars[0]
        bits, number = self.made.get(out, _UNKNOWN)
        self.made[out] = bits | _CLAMPED, number
        if self.inexact[eqn.outvars[0].aval]:
            self._bounded(eqn, x, (least, most))

    def _bounded(self, eqn: OlympusprEqn, x: Atom, bounds: Sequence[Atom]) -> None:
        """Pass on the facts about a number, if it may be the result for every number."""
        for bound in bounds:
            number = _value(made := self._of(bound))
            if bound is not x and (
                    not made[0] & _FIXED or number is not None and not np.isinf(number)):
                return
        p, out = self._of(x)[0], eqn.outvars[0]
        if p & _MERGED:
            bits, _ = self.made.get(out, _UNKNOWN)
            self.made[out] = bits | p & _MERGED, None

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
        bits, number = self._of(eqn.invars[0])
        x, out = eqn.invars[0], eqn.outvars[0]
        self.made[out] = bits | (_SPREAD if bits & _FOLDED else _REPEATED | _SPREAD), number
        self.moved[out] = self.moved.get(x, x)

    def _move(self, eqn: OlympusprEqn) -> None:
        x, out = eqn.invars[0], eqn.outvars[0]
        p = self._of(x)
        if p is not _UNKNOWN:
            self.made[out], self.moved[out] = p, self.moved.get(x, x)

    def _choice(self, eqn: OlympusprEqn) -> None:
        which, *cases = eqn.invars
        out = eqn.outvars[0]
        if len({self.moved.get(x, x) for x in cases}) == 1:     # XLA drops such a choice
            self.made[out] = self._of(cases[0])
            return
        bits, number = self._joined(cases)
        if not self._of(which)[0] & _FIXED:
            bits = bits & _ALIKE if out.aval.shape else bits & (_FIXED | _FOLDED)
        if bits:
            self.made[out] = bits, number

    def _other(self, eqn: OlympusprEqn) -> None:
        prim, operands = eqn.primitive, eqn.invars
        algebra = prim.algebra
        read = _READ.get(algebra, 0)
        if read:
            self._fence(eqn, *self._those(operands, read))
        if self._is_constant(eqn):
            return
        made = self._joined(operands)
        if Var not in map(type, operands):
            self.made.update(dict.fromkeys(eqn.outvars, _COMPUTED))
        elif prim.elementwise:
            kind = _ALONE.get(algebra, 0)
            if algebra == "exponential" and made[0] & _MERGED:
                kind |= _INVERTIBLE
            self._note(eqn, kind, made[0])
        elif made[0]:
            self._note_moved(eqn, made)

    def _is_constant(self, eqn: OlympusprEqn) -> bool:
        """Whether the result is known: NaN of a number beyond the domain, a linear function of 0.
        """
        prim, operands = eqn.primitive, eqn.invars
        if prim.domain is not None:
            number = _value(self._of(operands[0]))
            if number is not None and not isinstance(number, complex) and not (
                    prim.domain[0] <= number <= prim.domain[1]):
                self._note_constant(eqn, math.nan)
                return True
        elif (prim.additive or len(prim.linear) == len(operands) == 1) and (
                False not in [_is_zero(self._of(a), 1) for a in operands]):
            self._note_constant(eqn, 0.0)
            return True
        return False

    def _note_moved(self, eqn: OlympusprEqn, made: Made) -> None:
        """Pass on the facts about the operands of an operation on whole arrays.

        With axes of size 1, no padding, or every element read, its result is an operand. What it
        combines elements of is none, but a contraction over one element is a product.
        """
        prim, operands, (bits, number) = eqn.primitive, eqn.invars, made
        scaled = _SCALED | _SCALED << _MINUS
        summed = prim.summed_axes(eqn.params)
        if summed is not None:
            x, y = operands = operands[:2]
            if bits & scaled and self._of(x)[0] & self._of(y)[0] & scaled:
                self._fence(eqn, x)     # of vectors: the sum of the products
                bits, _ = self._joined(operands)
            if bits and all(_is_one(x.aval.shape[axis]) for axis in summed):
                self._fence(eqn, *self._those(operands, _FENCED))
                self.made[eqn.outvars[0]] = _SCALED | bits & _NARROWED, None
            return
        if prim.multiplies:     # LLVM multiplies the factors of one kernel in another order
            self.held.update(self._those(operands, scaled))
        bits &= _FIXED | _FOLDED | _MERGED | _REPEATED | _SPREAD
        if bits & _MERGED and not prim.foreign and type(axes := eqn.params.get("axes")) is tuple:
            shape = operands[0].aval.shape
            if False in [     # names of axes of a mesh may be numbers
                    type(axis) is int and axis < len(shape) and _is_one(shape[axis])
                    for axis in axes]:
                bits, number = bits & ~_MERGED, None
        if bits:
            self.made.update(dict.fromkeys(eqn.outvars, (bits, number)))

    def _of(self, atom: Atom) -> Made:
        """How an operand was computed."""
        if type(atom) is Literal:
            return _CONSTANTS, _number(atom)
        return self.made.get(atom, _UNKNOWN)

    def _pass(self, eqn: OlympusprEqn, made: Made) -> None:
        """Note that the result is an operand."""
        if made[0]:
            self.made[eqn.outvars[0]] = made

    def _note_constant(self, eqn: OlympusprEqn, number: Number) -> None:
        bits = self._joined(eqn.invars)[0] & _ALIKE | _CONSTANT | _FIXED
        self.made.update(dict.fromkeys(eqn.outvars, (bits, number)))

    def _note(self, eqn: OlympusprEqn, kind: int = 0, bits: int | None = None) -> None:
        """Note how the result of an elementwise operation was computed, if that may matter; `bits`
        are those of its operands together.
        """
        out = eqn.outvars[0]
        if bits is None:
            bits, _ = self._joined(eqn.invars)
        # An integer passes through an operation with a constant: a sum with 0, a product with 1.
        known = bits & (_ALIKE if out.aval.shape else _FIXED | _FOLDED) | kind
        if bits & (_SIGNED | _NARROWED) and not self.inexact[out.aval]:
            known |= bits & _SIGNED
            if len([a for a in eqn.invars if not self._of(a)[0] & _FIXED]) < 2:
                known |= bits & _NARROWED
        if known:
            self.made[out] = known, None

    def _note_scaled(self, eqn: OlympusprEqn, made: Made, number: Number) -> None:
        """Note a product or quotient of a value and a constant; XLA may know its other
        constants.
        """
        if number == 1:
            self._pass(eqn, made)
            return
        bits = made[0]
        known = self._joined(eqn.invars)[0] & _ALIKE
        if bits & _SCALED:
            number = None if made[1] is None or number is None else made[1] * number
        if number is None or size(number) == 1:
            known |= bits & _MERGED
            number = None if bits & _SHIFTED else number
        self.made[eqn.outvars[0]] = known | bits & _FACTORS | _SCALED, number

    def _note_shifted(self, eqn: OlympusprEqn, made: Made, number: Number) -> None:
        """Note a sum of a value and a constant; XLA may know its other constants."""
        if number == 0:
            self._pass(eqn, made)
            return
        bits = made[0]
        known = self._joined(eqn.invars)[0] & _ALIKE
        if bits & _SHIFTED:
            number = None if made[1] is None or number is None else made[1] + number
        if number is None:
            known |= bits & _MERGED
        self.made[eqn.outvars[0]] = known | _SHIFTED, number

    def _joined(self, atoms: Iterable[Atom]) -> Made:
        """The kinds of all operands, and those that all of them have; a number that all have."""
        every, some, of, get = _ALIKE, 0, _UNKNOWN, self.made.get
        for atom in atoms:
            if type(atom) is not Literal:
                made = get(atom, _UNKNOWN)
                bits = made[0]
                every &= bits if atom.aval.shape else bits | _SPREAD
                some |= bits
                if bits & _MERGED:
                    of = made if of is _UNKNOWN or of[1] == made[1] else _GIVEN
        return some & ~(_ALIKE | _CONSTANT) | every, of[1]

    def _is_repeated(self, atom: Atom, made: Made, aval: Aval) -> bool:
        """Whether an operand is a scalar, or other elements repeated, at the result's shape."""
        return bool(made[0] & _REPEATED) or atom.aval.shape != aval.shape

    def _those(self, atoms: Iterable[Atom], kinds: int) -> list[Atom]:
        """Those operands that operations of some kinds computed."""
        get = self.made.get
        return [a for a in atoms if type(a) is not Literal and get(a, _UNKNOWN)[0] & kinds]

    def _entry(self, eqn: OlympusprEqn) -> Fences:
        """The fences of an equation, the last ones of the plan."""
        if not self.fences or self.fences[-1].eqn is not eqn:
            self.fences.append(Fences(eqn, [], [], eqn))
        return self.fences[-1]

    def _fence(self, eqn: OlympusprEqn, *atoms: Atom) -> None:
        """Fence operands of an equation, so that nothing is known of them to it and later ones."""
        for atom in atoms:
            if type(atom) is not Literal and atom not in self.fenced:
                self._entry(eqn).whole.append(atom)
                self.fenced.add(atom)
                if bits := self.made.pop(atom, _UNKNOWN)[0] & _NARROWED:
                    self.made[atom] = bits, None

    # LLVM takes an exponential of a known NaN for undefined: it gives uninitialised memory.

    def _is_known(self, eqn: OlympusprEqn, p: Made, q: Made,
                  operation: Callable[[complex, complex], complex]) -> bool:
        """Whether the result is a constant, or NaN, as an operand is. NaN is hidden then."""
        x, y = _value(p), _value(q)
        nan = x is not None and x != x, y is not None and y != y
        out = eqn.outvars[0]
        if x is not None and y is not None:
            self._note_constant(eqn, rounded(operation(x, y), out.aval.dtype))
        elif True not in nan:
            return False
        elif dtypes.is_complex(out.aval.dtype) or out.aval.dtype.itemsize == 1:
            self.held.add(out)
        else:
            self._lower_as(eqn, nan_p, eqn.invars[nan[0]])
        return True

    def _call(self, eqn: OlympusprEqn) -> None:
        """Calls, and operations that are several: their operands and results may be anything.

        Held in memory are the constants that they are given and that the compiler may not see
        there: NaN, infinities, and 0 where it may be a term; and integers that were narrowed.
        """
        prim, operands, outs = eqn.primitive, eqn.invars, eqn.outvars
        if self._is_constant(eqn):
            return
        self._fence(eqn, *self._those(operands, _FENCED))
        self.constants = True
        plans = [_plan(body, True) for body in prim.bodies(eqn.params)
                 if type(body) is ClosedOlympuspr]
        once = len(plans) == 1 == prim.times(eqn.params)
        reads = functools.reduce(operator.or_, [plan.reads for plan in plans], 0)
        self._read(reads & ~_RETURNED, *operands)
        constant = not [a for a in operands if not self._of(a)[0] & _FOLDED]
        unchanged = [(a, self._of(a)) for a in prim.unchanged(eqn.params, operands)]
        given = [*[(a, self._of(a)) for a in prim.given(eqn.params, operands)], *unchanged]
        hidden = [a for a in operands if is_nan(_value(self._of(a)))]
        hidden += [a for a, p in given if is_infinite(_value(p))]
        for sign, ways in (1, _ADDED), (-1, _SUBTRACTED):
            zeros = given if reads & (ways | _RETURNED if once else ways) else unchanged
            hidden += [a for a, p in zeros if _is_zero(p, sign) and self.inexact[a.aval]]
        self._hide(eqn, *hidden)
        if reads & (_ADDED | _SUBTRACTED):
            self._fence(eqn, *[a for a, p in given if _may_be_zero(p) and self.inexact[a.aval]])
        narrowed = self._those(operands, _NARROWED)
        integers = [v for v in outs if not is_float0(v.aval) and dtypes.is_integer(v.aval.dtype)]
        if narrowed and (integers or reads & _MASKED):
            self.held.update(narrowed)
        self.made.update(dict.fromkeys(outs, _COMPUTED if constant else _GIVEN))
        if True in [True in plan.narrowed for plan in plans]:
            self.made.update(dict.fromkeys(integers, (_FIXED | _NARROWED, None)))
        elif once:
            self.made.update((v, (_CONSTANTS, number)) for v, number in zip(
                outs, plans[0].numbers, strict=False) if number is not None)

    def _hide(self, eqn: OlympusprEqn, *atoms: Atom) -> None:
        """Let an equation read constants from memory."""
        for atom in atoms:
            if atom in self.closed_over:
                self.constant_vars[atom] = None
                continue
            if atom.aval.tagged:
                self.held.add(atom)
                continue
            # Of an array the scalar is hidden, so that repeating it remains a part of its readers.
            var: Any = Var(atom.aval)
            number: Any = _value(self._of(atom))
            self.constant_vars[var] = Literal(number, make_aval((), atom.aval.dtype))
            entry = self._entry(eqn)
            self.fences[-1] = entry._replace(lowered=entry.lowered.replace(
                invars=[var if x is atom else x for x in entry.lowered.invars]))

    def _mask(self, eqn: OlympusprEqn) -> None:
        """`and`, `or`: hold an integer of a narrowing conversion in memory, unless both are such.

        MLIR's folding of an array and such an integer (jaxlib 0.10.2) ends the process.
        """
        x, y = eqn.invars
        if dtypes.is_integer(x.aval.dtype):
            self._read(_MASKED, x, y)
            narrowed = self._those((x, y), _NARROWED)
            if len(narrowed) == 1 and Literal not in (type(x), type(y)):
                self.held.update(narrowed)
                self.made.update(dict.fromkeys(narrowed, _UNKNOWN))
        self._other(eqn)

    def _conversion(self, eqn: OlympusprEqn) -> None:
        self._move(eqn)
        out, (bits, number) = eqn.outvars[0], self._of(eqn.invars[0])
        old, new = eqn.invars[0].aval.dtype, out.aval.dtype
        if bits & _CONSTANT:
            number = converted(number, new)
            self.made[out] = bits if number is not None else bits & ~_CONSTANT, number
        if dtypes.is_integer(old) and dtypes.is_integer(new) and (
                dtypes.itemsize_bits(new) < dtypes.itemsize_bits(old)):
            self.made[out] = self.made.get(out, _UNKNOWN)[0] | _NARROWED, number

    def _lower_as(self, eqn: OlympusprEqn, primitive: Primitive, x: Atom) -> None:
        """Lower another operation, of one operand, in the place of an equation."""
        entry = self._entry(eqn)
        self.fences[-1] = entry._replace(lowered=eqn.replace(primitive=primitive, invars=[x]))


# What an elementwise operation without algebra may leave of its operands.
_LASTING = _FIXED | _NARROWED | _SPREAD | _SIGNED
# The glances at an equation: none; at its operands, of which few facts matter, or all; at one of
# floats, of which all do; at two; at those of quotients, broadcasts, and extrema.
_NONE, _ANY, _ONE, _PAIR, _QUOTIENTS, _BROADCASTS, _BOUNDS = range(7)
_GLANCES = {"": _ANY, "broadcast": _BROADCASTS, "choice": _ANY, "extremum": _BOUNDS, "move": _ANY,
            "negation": _ANY, "part": _ANY, "quotient": _QUOTIENTS}
# Operations on two operands: their result if one is a number, or a scalar; the number with which
# they are the other operand; what matters to them by itself; what does if both are among it.
_PAIRS: dict[str, tuple[int, float | None, int, int]] = {
    "comparison": (0, None, _FIXED | _SIGNED, 0),
    "difference": (_SHIFTED, 0, _FIXED, 0),
    "product": (_SCALED, 1, _FIXED, (
        _EXPONENTIAL | _REPEATED | _SCALED | (_EXPONENTIAL | _SCALED) << _MINUS)),
    "sum": (_SHIFTED, 0, _FIXED, _SCALED)}
# What operations on floats make of an operand of which nothing is known.
_ALONE = {"absolute": 0, "conversion": 0, "exponential": _EXPONENTIAL, "logarithm": 0,
          "logistic": _QUOTIENT,    # 1 / (1 + exp(-x))
          "root": _ROOT, "sign": 0, "square": 0}


class _Glances(dict[Primitive, tuple[int, int, float | None, int, int]]):
    """The glance at the equations of a primitive, and these facts of pairs."""

    def __missing__(self, prim: Primitive) -> tuple[int, int, float | None, int, int]:
        algebra = prim.algebra
        if algebra in _PAIRS:
            kind, neutral, alone, together = _PAIRS[algebra]
            found = _PAIR, kind, neutral, alone, together
        elif algebra in _ALONE:
            found = _ONE, _ALONE[algebra], None, 0, 0
        else:
            alone = _LASTING if prim.elementwise and not algebra else -1
            found = _GLANCES.get(algebra, _NONE), 0, None, alone, 0
        self[prim] = found
        return found


# What an operation reads of its operands, where that is only what computed them.
_READ = {"clamp": _SIGNED, "comparison": _SIGNED, "exclusive_or": _SIGNED,
         "extremum": _SIGNED, "logarithm": _INVERTIBLE | _POWER | _QUOTIENT | _ROOT,
         "sign": _SIGNED}
_STEPS: dict[str, Callable[[_Pass, OlympusprEqn], None]] = {
    **dict.fromkeys(("", *_READ, *_ALONE), _Pass._other),
    "absolute": _Pass._absolute, "broadcast": _Pass._broadcast, "called": _Pass._call,
    "choice": _Pass._choice, "clamp": _Pass._clamp, "comparison": _Pass._comparison,
    "conversion": _Pass._conversion,
    "difference": _Pass._difference, "exclusive_or": _Pass._exclusive_or,
    "extremum": _Pass._extremum, "integer_power": _Pass._square, "mask": _Pass._mask,
    "move": _Pass._move,
    "negation": _Pass._negation, "part": _Pass._part, "power": _Pass._power,
    "product": _Pass._product,
    "quotient": _Pass._quotient, "square": _Pass._square, "sum": _Pass._sum}


def _negated(made: Made) -> Made:
    """How the negative of a value was computed."""
    bits, number = made
    if bits & _MERGED:
        bits = bits & ~_MERGED | (bits & _ALL) << _MINUS | bits >> _MINUS & _ALL
    return bits, None if number is None else -number


def _value(made: Made) -> Number:
    """The number that an operand is, if it is known to be one."""
    return made[1] if made[0] & _CONSTANT else None


def _number(literal: Literal) -> Number:
    """The number of a literal, None for a symbolic size and a zero of float0."""
    value = literal.val
    if type(value) in _REAL:
        return value
    if isinstance(value, SymbolicDim) or is_float0(literal.aval):
        return None
    return complex(value) if dtypes.is_complex(literal.aval.dtype) else float(value)


def _is_zero(made: Made, sign: int = 0) -> bool:
    """Whether a value is the constant 0, of this sign if one is given."""
    number = _value(made)
    return number == 0 and (not sign or math.copysign(1, number.real) == sign)


def _may_be_zero(made: Made) -> bool:
    """Whether XLA may compute a value, which is not a constant itself, and find 0."""
    return made[0] & (_CONSTANT | _FOLDED) == _FOLDED


def _is_one(size: DimSize) -> bool:
    return isinstance(size, int) and size == 1


def _is_single(shape: Sequence[object]) -> bool:
    """Whether an array has one element: XLA moves constants of such further."""
    return not shape or shape.count(1) == len(shape)
