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
from collections.abc import Callable, Iterable, Sequence, Set
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.typing import DimSize, Params
from ..core.ir import Atom, ClosedOlympuspr, Literal, OlympusprEqn, Var, derived
from ..core.primitive import Primitive
from ..types import dtypes
from ..types.avals import Aval, is_float0, make_aval
from .fence_plan import Fences, Plan
from .glances import ALONE, ANY, BROADCASTS, NEGATIVES, ONE, PAIR, QUOTIENTS, Glances
from .instead import GivenHidden, PlusZeroAfter, beside_computed, has_nan_bits, nan_p, plus_zero_p
from .known_numbers import (
    Inexact, Number, Reciprocals, converted, has_no_reciprocal, has_reciprocals, is_infinite,
    is_joint, is_nan, is_safe, ratio, repeated_number, rounded, size,
)
from .made import (
    ALIKE, ALL, CLAMPED, COMPUTED, CONSTANT, CONSTANTS, COPIES, DIVIDED, DIVISORS, EXPONENTIAL,
    FACTORS, FENCED, FIXED, FOLDED, GIVEN, INVERTIBLE, KNOWN, MERGED, MINUS, NARROWED, NEGATED,
    NEGATIVE, POWER, QUOTIENT, REAL, REPEATED, ROOT, SCALED, SHIFTED, SIGNED, SPREAD,
    SPREAD_CONSTANT, SPREADS, UNKNOWN, UNSIGNED, Made, is_single, is_term, is_zero, may_be_zero,
    negated, number_of, value_of,
)
from .within import Constant, results_of

if TYPE_CHECKING:
    from .context import ModuleContext

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
        self.made: dict[Atom, Made] = dict.fromkeys(pr.constvars, KNOWN)
        if nested:
            self.made.update(dict.fromkeys(pr.invars, GIVEN))
        self.constants = bool(self.made)    # whether arrays may be constants
        self.moved: dict[Atom, Atom] = {}   # values of `made` -> the values with the same elements
        self.fences: list[Fences] = []
        self.fenced: set[Atom] = set()
        self.hidden: set[Atom] = set()      # scalars, where they are repeated
        self.constant_vars: dict[Var, Literal | None] = {}
        self.inexact, self.reciprocals = Inexact(), Reciprocals()
        self.held: set[Var] = set()
        self.conversions: set[Atom] = set()     # to integers of fewer bits
        self.reads = 0
        self.makers: dict[Atom, OlympusprEqn] | None = None     # where they are asked for
        self.nan: dict[Atom, bool] = {}
        self.given = frozenset(pr.invars if nested else ())
        self.made.update((v, (CONSTANTS, repeated_number(self.closed_over[v])))
                         for v in pr.constvars if self.inexact[v.aval])

    def plan(self) -> Plan:     # noqa: C901, PLR0912 - hot: without calls for most equations
        made, get, steps, glances = self.made, self.made.get, _STEPS, Glances()
        inexact, others = self.inexact, self._glance
        for eqn in self.pr.eqns:
            # A glance decides on most equations, without calls; the steps are for the others.
            operands = eqn.invars
            glance, kind, neutral, alone, together = glances[prim := eqn.primitive]
            if glance == ANY:
                for x in operands:
                    if type(x) is Literal:
                        if x.val != x.val:
                            break
                    elif (p := get(x)) is not None and p[0] & alone:
                        break
                else:
                    if operands and type(operands[0]) is not Literal:
                        continue
            elif glance == PAIR:
                x, y = operands
                aval = x.aval
                if type(x) is Literal or type(y) is Literal:
                    number, other = (y, x) if type(y) is Literal else (x, y)
                    if type(c := number.val) in REAL and (     # type: ignore[union-attr]
                            c == c and c != neutral and (aval := other.aval).shape
                            and inexact[aval]):
                        bits, p = 0, get(other)
                        if p is None or not (bits := p[0]) & ~SPREAD:
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
                            if not (p or q or UNKNOWN)[0] & alone:
                                continue
                        elif not ((p[0] | q[0]) & alone or p[0] & together and q[0] & together):
                            if p[0] & q[0] & SPREAD:
                                made[eqn.outvars[0]] = SPREADS
                            continue
            elif glance == ONE:
                x = operands[0]
                if type(x) is not Literal and x not in made and inexact[x.aval]:
                    if kind:
                        made[eqn.outvars[0]] = kind, None
                    continue
            elif glance == BROADCASTS:
                x = operands[0]
                if type(x) is not Literal:
                    if x not in made:
                        made[eqn.outvars[0]] = COPIES
                        continue
                elif type(x.val) in REAL:
                    made[eqn.outvars[0]] = SPREAD_CONSTANT, x.val
                    continue
            elif glance and others(eqn, glance):
                continue
            steps[prim.algebra](self, eqn)
        return self._for_callers() if self.nested else Plan(
            self.fences, (), frozenset(self.held), self.constant_vars, 0, (), ())

    def _glance(self, eqn: OlympusprEqn, glance: int) -> bool:
        """Whether a glance at a quotient, an extremum or a negative was enough."""
        made, operands = self.made, eqn.invars
        x, y = operands[0], operands[-1]
        if glance == QUOTIENTS:
            aval = x.aval
            if type(y) is Literal:
                if type(number := y.val) in REAL and number and aval.shape and (
                        self.inexact[aval] and number == number != 1
                        and self.reciprocals[number, aval]):
                    bits, p = 0, made.get(x)
                    if p is None or not (bits := p[0]) & ~SPREAD:
                        made[eqn.outvars[0]] = SCALED | bits, 1 / number
                        return True
            elif self.inexact[aval] and (aval is y.aval or aval.shape and y in self.hidden) and (
                    type(x) is not Literal or x.val == x.val):
                p, q = made.get(x), made.get(y)
                if (q is None or not q[0] & DIVISORS) and (
                        p is None or not p[0] & (CONSTANT | QUOTIENT)):
                    made[eqn.outvars[0]] = DIVIDED
                    return True
        elif glance == NEGATIVES:
            if type(x) is not Literal and x not in made:
                made[eqn.outvars[0]] = NEGATIVE
                return True
        else:
            if type(x) is Literal:
                x, y = y, x
            if type(x) is not Literal and x not in made and x is not y:
                if type(y) is Literal:      # an infinite bound is none
                    return type(number := y.val) in REAL and number - number == 0
                return y not in made
        return False

    def _for_callers(self) -> Plan:
        """The plan of a function or body: whatever may read its results is unknown."""
        results = self.pr.outvars
        narrowed = self._those(results, NARROWED)
        if self.reads & _MASKED:    # the next iteration may read them
            self.held.update(narrowed)
        self._read(_RETURNED, *results)
        return Plan(self.fences, self._those(results, FENCED), frozenset(self.held),
                    self.constant_vars, self.reads, [value_of(self._of(v)) for v in results],
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
            self._note(eqn, UNSIGNED if x is y else 0)
            return
        p, q = self._of(x), self._of(y)
        if (p[0] | q[0]) & FOLDED and self._is_known(eqn, p, q, operator.mul):
            return
        if (p[0] & q[0]) >> MINUS:
            p, q = negated(p), negated(q)
        if p[0] & FIXED and not (p[0] & SCALED and q[0] & FIXED):
            x, y, p, q = y, x, q, p
        if q[0] & FIXED:
            if p[0] & SCALED and not is_safe(p[1], value_of(q), aval.dtype):
                self._fence(eqn, x)
                p = p[0] & ALIKE, None
            self._note_scaled(eqn, p, value_of(q))
            return
        bits: int = 0
        if p[0] & q[0] & SCALED:
            unknown = self.constants and (p[1] is None or q[1] is None)
            repeated = (p[0] | q[0]) & (REPEATED | SPREAD)    # XLA computes it once, as a scalar
            if unknown or repeated or is_single(x.aval.shape) or is_single(y.aval.shape):
                self._fence(eqn, x)     # (x * c) * (y * d): x * y may be infinite
        elif p[0] & SCALED and self._is_repeated(y, q, aval):
            self._fence(eqn, x)         # XLA multiplies the scalar with the constant
        elif q[0] & SCALED and self._is_repeated(x, p, aval):
            self._fence(eqn, y)
        if p[0] & q[0] & EXPONENTIAL:
            bits = EXPONENTIAL         # of the sum
            if aval.dtype.itemsize == 2:
                self._fence(eqn, x)     # a sum of 16 bits is no good exponent
        if x.aval.shape != y.aval.shape:
            bits |= SCALED             # a scalar may be computed from constants
        self._note(eqn, bits)

    def _quotient(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        out = eqn.outvars[0]
        aval = out.aval
        if not self.inexact[aval]:
            self._fence(eqn, *self._those((x, y), UNSIGNED))
            self._note(eqn)
            return
        p, number = self._of(x), None
        q = self._of(y)
        if (p[0] | q[0]) & FOLDED and self._is_known(eqn, p, q, ratio):
            return
        if type(y) is Literal:
            number = q[1]
            reciprocals = not has_no_reciprocal(y.val, aval.dtype)
            number = 1 / number if number else None
        else:
            reciprocals = y in self.closed_over and has_reciprocals(self.closed_over[y], aval)
        if reciprocals:
            if p[0] & SCALED and not is_safe(p[1], number, aval.dtype):
                self._fence(eqn, x)
                p = p[0] & ALIKE, None
            self._note_scaled(eqn, p, number)
            return
        if p[0] & QUOTIENT:
            self._fence(eqn, x)
            p = UNKNOWN
        if q[0] & DIVISORS:
            self._fence(eqn, y)
        elif y.aval.shape != aval.shape and y not in self.hidden and y not in self.fenced:
            self._entry(eqn).repeated.append(y)
            self.hidden.add(y)
        self.made[out] = (QUOTIENT | p[0] & MERGED, None) if q[0] & FIXED else DIVIDED

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
        if (p[0] | q[0]) & FOLDED and self._is_known(eqn, p, q, operator.add):
            return
        self._read(_ADDED if sign > 0 else _SUBTRACTED, x, y)
        if is_zero(q, 1) or sign > 0 and is_zero(p, 1):
            self._lower_as(eqn, plus_zero_p, x if is_zero(q, 1) else y)
            if bits := (p if is_zero(q, 1) else q)[0] & ALIKE:
                self.made[out] = bits, None
            return
        # What XLA computes of constants may be 0.
        self._fence(eqn, *[a for a, made in ((x, p), (y, q)) if (
            may_be_zero(made) and (a is y or sign > 0))])
        p, q = self._of(x), self._of(y)
        if q[1] is not None and sign < 0:
            q = q[0], -q[1]
        # XLA leaves c - (y + d) as it is.
        turned = p[0] & FIXED and not (p[0] & SHIFTED and q[0] & FIXED)
        if turned:
            x, y, p, q = y, x, q, p
        if q[0] & FIXED:
            if p[0] & SHIFTED and not (turned and sign < 0) and (
                    not is_joint(p[1], value_of(q), aval.dtype)):
                self._fence(eqn, x)
                p = p[0] & ALIKE, None
            self._note_shifted(eqn, p, value_of(q))
            return
        if sign > 0 and p[0] & q[0] & SCALED and (
                p[1] == q[1] or p[1] is None or q[1] is None):
            self._fence(eqn, x)     # x * c + y * c, c a power of 2
        self._note(eqn, SHIFTED if x.aval.shape != y.aval.shape else 0)

    def _square(self, eqn: OlympusprEqn) -> None:
        x, aval = eqn.invars[0], eqn.outvars[0].aval
        power = eqn.params.get("y", 2)
        inexact = self.inexact[aval]
        p = self._of(x)
        if power == 1:
            self._pass(eqn, p)
            return
        if inexact and p[0] & (SCALED | SCALED << MINUS) and (
                is_single(aval.shape) or p[1] is None or p[0] & (REPEATED | SPREAD)):
            self._fence(eqn, x)
        self._note(eqn, QUOTIENT if power < 0 else 0 if inexact or power % 2 else UNSIGNED)

    def _power(self, eqn: OlympusprEqn) -> None:
        self._fence(eqn, *self._those(eqn.invars, EXPONENTIAL))
        x, y = eqn.invars[0], eqn.invars[-1]
        p, q = self._of(x), self._of(y)
        base, number = value_of(p), value_of(q)
        if len(eqn.invars) == 2 and isinstance(base, REAL) and isinstance(number, REAL) and (
                -math.inf < base < 0 and number % 1 and not is_infinite(number)):
            self._note_constant(eqn, math.nan)
            return
        bits = POWER
        if x is not y and q[0] & FIXED:
            number = value_of(q)
            if number == 1 or number is None:
                bits |= p[0] & MERGED
            if number == -1 or number is None:
                bits |= QUOTIENT
            if number in (2, 3, None) and p[0] & (SCALED | SCALED << MINUS):
                self._fence(eqn, x)
        self._note(eqn, bits)

    def _absolute(self, eqn: OlympusprEqn) -> None:
        x, out = eqn.invars[0], eqn.outvars[0]
        if self.inexact[out.aval]:
            bits, number = self._of(x)
            if bits:        # the square has none
                bits = (bits | bits >> MINUS & ALL) & ~SHIFTED
                self.made[out] = bits, None if number is None else size(number)
            return
        self._fence(eqn, *self._those(eqn.invars, SIGNED))
        self._note(eqn, UNSIGNED)

    def _negation(self, eqn: OlympusprEqn) -> None:
        bits, number = negated(self._of(eqn.invars[0]))
        self.made[eqn.outvars[0]] = bits ^ NEGATED, number

    def _part(self, eqn: OlympusprEqn) -> None:
        """Parts of complex numbers and of their parts, the bits of a number: again the operand."""
        bits, _ = self._joined(eqn.invars)
        if bits:
            self.made[eqn.outvars[0]] = bits & ~CONSTANT, None

    def _comparison(self, eqn: OlympusprEqn) -> None:
        """Comparisons, remainders, shifts: they read the sign of integers.

        Held in memory are the difference of an integer and itself, `x > x`, and their xor: LLVM
        would know that it is 0, and take an angle or an integer quotient of it for undefined.
        """
        x, y = eqn.invars
        if x is y and eqn.primitive.op in ("GT", "LT"):
            self.held.add(eqn.outvars[0])
        if eqn.primitive.divides and self.inexact[eqn.outvars[0].aval]:
            dividend, divisor = value_of(self._of(x)), value_of(self._of(y))
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
        if self._is_nan(eqn):
            return
        self._other(eqn)
        out = eqn.outvars[0]
        bits, number = self.made.get(out, UNKNOWN)
        self.made[out] = bits | CLAMPED, number
        if self.inexact[eqn.outvars[0].aval]:
            self._bounded(eqn, x, (least, most))

    def _bounded(self, eqn: OlympusprEqn, x: Atom, bounds: Sequence[Atom]) -> None:
        """Pass on the facts about a number, if it may be the result for every number."""
        for bound in bounds:
            number = value_of(made := self._of(bound))
            if bound is not x and (
                    not made[0] & FIXED or number is not None and not np.isinf(number)):
                return
        p, out = self._of(x)[0], eqn.outvars[0]
        if p & MERGED:
            bits, _ = self.made.get(out, UNKNOWN)
            self.made[out] = bits | p & MERGED, None

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
        self.made[out] = bits | (SPREAD if bits & FOLDED else REPEATED | SPREAD), number
        self.moved[out] = self.moved.get(x, x)

    def _move(self, eqn: OlympusprEqn) -> None:
        x, out = eqn.invars[0], eqn.outvars[0]
        p = self._of(x)
        if p is not UNKNOWN:
            self.made[out], self.moved[out] = p, self.moved.get(x, x)

    def _choice(self, eqn: OlympusprEqn) -> None:
        which, *cases = eqn.invars
        out = eqn.outvars[0]
        if len({self.moved.get(x, x) for x in cases}) == 1:     # XLA drops such a choice
            self.made[out] = self._of(cases[0])
            return
        # LLVM computes functions of a choice of constants for each of them.
        nan = [a for a in cases if is_nan(value_of(self._of(a)))]
        if nan and False not in [self._of(a)[0] & FOLDED > 0 for a in cases] and (
                id(eqn) in self._before_functions):
            self._hide(eqn, *nan)
        bits, number = self._joined(cases)
        if not self._of(which)[0] & FIXED:
            bits = bits & ALIKE if out.aval.shape else bits & (FIXED | FOLDED)
        if bits:
            self.made[out] = bits, number

    @functools.cached_property
    def _before_functions(self) -> Set[int]:
        """The equations before the last elementwise one of many instructions, by identity."""
        eqns = self.pr.eqns
        last = max([i for i, eqn in enumerate(eqns)
                    if eqn.primitive.elementwise and eqn.primitive.pace >= 1], default=0)
        return {id(eqn) for eqn in eqns[:last]}

    def _other(self, eqn: OlympusprEqn) -> None:
        prim, operands = eqn.primitive, eqn.invars
        algebra = prim.algebra
        read = _READ.get(algebra, 0)
        if read:
            self._fence(eqn, *self._those(operands, read))
        if self._is_constant(eqn):
            return
        if prim.elementwise:
            if self._is_nan(eqn):
                return
        elif nan := [a for a in operands if is_nan(value_of(self._of(a)))]:
            self._hide(eqn, *nan)
        made = self._joined(operands)
        if Var not in map(type, operands):
            self.made.update(dict.fromkeys(eqn.outvars, COMPUTED))
        elif prim.elementwise:
            kind = ALONE.get(algebra, 0)
            if algebra == "exponential" and made[0] & MERGED:
                kind |= INVERTIBLE
            self._note(eqn, kind, made[0])
        elif made[0]:
            self._note_moved(eqn, made)

    def _is_constant(self, eqn: OlympusprEqn) -> bool:
        """Whether the result is known: NaN of a number beyond the domain, a linear function of 0.
        """
        prim, operands = eqn.primitive, eqn.invars
        if prim.domain is not None:
            number = value_of(self._of(operands[0]))
            if number is not None and not isinstance(number, complex) and not (
                    prim.domain[0] <= number <= prim.domain[1]):
                self._note_constant(eqn, math.nan)
                return True
        elif (prim.additive or len(prim.linear) == len(operands) == 1) and (
                False not in [is_zero(self._of(a), 1) for a in operands]):
            self._note_constant(eqn, 0.0)
            return True
        return False

    def _note_moved(self, eqn: OlympusprEqn, made: Made) -> None:
        """Pass on the facts about the operands of an operation on whole arrays.

        With axes of size 1, no padding, or every element read, its result is an operand. What it
        combines elements of is none, but a contraction over one element is a product.
        """
        prim, operands, (bits, number) = eqn.primitive, eqn.invars, made
        scaled = SCALED | SCALED << MINUS
        summed = prim.summed_axes(eqn.params)
        if bits & (FOLDED | NEGATED | SPREAD) and (summed is not None or prim.adds_up):
            self._add_zero(eqn, bits)
        if summed is not None:
            x, y = operands = operands[:2]
            if bits & scaled and self._of(x)[0] & self._of(y)[0] & scaled:
                self._fence(eqn, x)     # of vectors: the sum of the products
                bits, _ = self._joined(operands)
            if bits and all(_is_one(x.aval.shape[axis]) for axis in summed):
                self._fence(eqn, *self._those(operands, FENCED))
                self.made[eqn.outvars[0]] = SCALED | bits & NARROWED, None
            return
        if prim.contracts and [*map(_is_one, operands[1].aval.shape)].count(False) < 2:
            self._fence(eqn, *self._those(operands, FENCED))    # a convolution by one number
            self.made[eqn.outvars[0]] = SCALED | bits & NARROWED, None
            return
        if prim.multiplies:     # LLVM multiplies the factors of one kernel in another order
            self.held.update(self._those(operands, scaled))
        bits &= FIXED | FOLDED | MERGED | REPEATED | SPREAD
        if bits & MERGED and not prim.foreign and type(axes := eqn.params.get("axes")) is tuple:
            shape = operands[0].aval.shape
            if False in [     # names of axes of a mesh may be numbers
                    type(axis) is int and axis < len(shape) and _is_one(shape[axis])
                    for axis in axes]:
                bits, number = bits & ~MERGED, None
        if bits:
            self.made.update(dict.fromkeys(eqn.outvars, (bits, number)))

    def _add_zero(self, eqn: OlympusprEqn, bits: int) -> None:
        """Let a sum of elements, which XLA computes without adding up, be no -0."""
        prim, x, params = eqn.primitive, eqn.invars[0], eqn.params
        summed = prim.summed_axes(params)
        if not self.inexact[eqn.outvars[0].aval] or summed is not None and not bits & SPREAD and (
                not self._those(eqn.invars, ALIKE)):
            return
        sizes = params.get("window_dimensions")
        if sizes is None:
            axes = params.get("axes", summed)
            sizes = [x.aval.shape[i] for i in ([params["axis"]] if axes is None else axes)]
        if value_of(self._of(x)) or is_zero(self._of(x), 1) or all(map(_is_one, sizes)):
            return
        self._lower_as(eqn, PlusZeroAfter(prim), *eqn.invars, params=params)

    def _of(self, atom: Atom) -> Made:
        """How an operand was computed."""
        if type(atom) is Literal:
            return CONSTANTS, number_of(atom)
        return self.made.get(atom, UNKNOWN)

    def _pass(self, eqn: OlympusprEqn, made: Made) -> None:
        """Note that the result is an operand."""
        if made[0]:
            self.made[eqn.outvars[0]] = made

    def _note_constant(self, eqn: OlympusprEqn, number: Number) -> None:
        bits = self._joined(eqn.invars)[0] & ALIKE | CONSTANT | FIXED
        self.made.update(dict.fromkeys(eqn.outvars, (bits, number)))

    def _note(self, eqn: OlympusprEqn, kind: int = 0, bits: int | None = None) -> None:
        """Note how the result of an elementwise operation was computed, if that may matter; `bits`
        are those of its operands together.
        """
        out = eqn.outvars[0]
        if bits is None:
            bits, _ = self._joined(eqn.invars)
        # An integer passes through an operation with a constant: a sum with 0, a product with 1.
        known = bits & (ALIKE if out.aval.shape else FIXED | FOLDED) | kind
        if bits & (SIGNED | NARROWED) and not self.inexact[out.aval]:
            known |= bits & SIGNED
            if len([a for a in eqn.invars if not self._of(a)[0] & FIXED]) < 2:
                known |= bits & NARROWED
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
        known = self._joined(eqn.invars)[0] & ALIKE
        if bits & SCALED:
            number = None if made[1] is None or number is None else made[1] * number
        if number is None or size(number) == 1:
            known |= bits & MERGED
            number = None if bits & SHIFTED else number
        self.made[eqn.outvars[0]] = known | bits & FACTORS | SCALED, number

    def _note_shifted(self, eqn: OlympusprEqn, made: Made, number: Number) -> None:
        """Note a sum of a value and a constant; XLA may know its other constants."""
        if number == 0:
            self._pass(eqn, made)
            return
        bits = made[0]
        known = self._joined(eqn.invars)[0] & ALIKE
        if bits & SHIFTED:
            number = None if made[1] is None or number is None else made[1] + number
        if number is None:
            known |= bits & MERGED
        self.made[eqn.outvars[0]] = known | SHIFTED, number

    def _joined(self, atoms: Iterable[Atom]) -> Made:
        """The kinds of all operands, and those that all of them have; a number that all have."""
        every, some, of, get = ALIKE, 0, UNKNOWN, self.made.get
        for atom in atoms:
            if type(atom) is not Literal:
                made = get(atom, UNKNOWN)
                bits = made[0]
                every &= bits if atom.aval.shape else bits | SPREAD
                some |= bits
                if bits & MERGED:
                    of = made if of is UNKNOWN or of[1] == made[1] else GIVEN
        return some & ~(ALIKE | CONSTANT) | every, of[1]

    def _is_repeated(self, atom: Atom, made: Made, aval: Aval) -> bool:
        """Whether an operand is a scalar, or other elements repeated, at the result's shape."""
        return bool(made[0] & REPEATED) or atom.aval.shape != aval.shape

    def _those(self, atoms: Iterable[Atom], kinds: int) -> list[Atom]:
        """Those operands that operations of some kinds computed."""
        get = self.made.get
        return [a for a in atoms if type(a) is not Literal and get(a, UNKNOWN)[0] & kinds]

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
                if bits := self.made.pop(atom, UNKNOWN)[0] & (FOLDED | NARROWED):
                    self.made[atom] = bits, None

    # LLVM takes an exponential of a known NaN for undefined: it gives uninitialised memory.

    def _is_known(self, eqn: OlympusprEqn, p: Made, q: Made,
                  operation: Callable[[complex, complex], Number]) -> bool:
        """Whether the result is a constant, or NaN, as an operand is. NaN is hidden then, also if
        it may be what XLA computes of constants.
        """
        x, y = value_of(p), value_of(q)
        nan = is_nan(x), is_nan(y)
        out = eqn.outvars[0]
        if x is not None and y is not None:
            number = operation(x, y)
            if number is None:
                self.made[out] = COMPUTED
            else:
                self._note_constant(eqn, rounded(number, out.aval.dtype))
        elif True not in nan:
            computed = p if p[0] & FOLDED else q
            if may_be_zero(computed) and p[0] & FOLDED != q[0] & FOLDED and not eqn.params and (
                    has_nan_bits(out.aval) and self._may_be_nan(eqn.invars[computed is not p])):
                self._lower_as(eqn, beside_computed[eqn.primitive.algebra], *eqn.invars,
                               *(eqn.invars if computed is p else eqn.invars[::-1]))
            return False
        else:
            self._lower_as_nan(eqn, eqn.invars[nan[0]])
        return True

    def _is_nan(self, eqn: OlympusprEqn) -> bool:
        """Whether an operand of an operation that hands NaN on is NaN; it is hidden then."""
        prim, operands, aval = eqn.primitive, eqn.invars, eqn.outvars[0].aval
        if not (len(operands) > 1 and prim.hands_on_nan and self.inexact[aval]) or (
                True not in [is_nan(value_of(self._of(a))) for a in operands]):
            return False
        for x in operands:
            if x.aval.dtype == aval.dtype and x.aval.shape == aval.shape and (
                    value_of(self._of(x)) is None):
                self._lower_as_nan(eqn, x)
                return True
        return False

    def _lower_as_nan(self, eqn: OlympusprEqn, x: Atom) -> None:
        """Lower an equation as NaN whose bits are computed from an operand."""
        out = eqn.outvars[0]
        if has_nan_bits(out.aval):
            self._lower_as(eqn, nan_p, x)
        else:
            self.held.add(out)

    def _may_be_nan(self, root: Atom) -> bool:
        """Whether a value that XLA computes of constants may be NaN, as its operations tell."""
        pending = [root]
        if self.makers is None:
            self.makers = {v: eqn for eqn in self.pr.eqns for v in eqn.outvars}
        while pending:
            atom = pending.pop()
            found = self.nan.get(atom) if type(atom) is not Literal else is_nan(number_of(atom))
            if found is None:
                eqn = self.makers.get(atom)
                if not self.inexact[atom.aval]:
                    found = False
                elif eqn is None:
                    found = atom not in self.closed_over or bool(
                        np.isnan(np.asarray(self.closed_over[atom])).any())
                else:
                    found = eqn.primitive.makes_nan
                    pending += [] if found else eqn.invars
                self.nan[atom] = found
            if found:
                self.nan[root] = True
                return True
        return False

    def _call(self, eqn: OlympusprEqn) -> None:
        """Calls, and operations that are several: their operands and results may be anything.

        Held in memory are the constants that they are given and that the compiler may not see
        there: NaN, infinities, and 0 where it may be a term; and integers that were narrowed.
        """
        prim, operands, outs = eqn.primitive, eqn.invars, eqn.outvars
        if self._is_constant(eqn):
            return
        self._fence(eqn, *self._those(operands, FENCED))
        self.constants = True
        plans = [_plan(body, True) for body in prim.bodies(eqn.params)
                 if type(body) is ClosedOlympuspr]
        once = len(plans) == 1 == prim.times(eqn.params)
        reads = functools.reduce(operator.or_, [plan.reads for plan in plans], 0)
        self._read(reads & ~_RETURNED, *operands)
        constant = not [a for a in operands if not self._of(a)[0] & FOLDED]
        unchanged = [(a, self._of(a)) for a in prim.unchanged(eqn.params, operands)]
        given = [*[(a, self._of(a)) for a in prim.given(eqn.params, operands)], *unchanged]
        hidden = [a for a in operands if is_nan(value_of(self._of(a))) or (
            a in self.closed_over and self._may_be_nan(a))]
        hidden += [a for a, p in given if is_infinite(value_of(p))]
        computed = set()
        if True in [p[0] & FOLDED > 0 for _, p in given]:
            found, known = self._undefined(eqn, given), self.closed_over
            computed = {a for a in found if a not in known and value_of(self._of(a)) is None}
            hidden += [a for a in found if a not in computed]
        for sign, ways in (1, _ADDED), (-1, _SUBTRACTED):
            zeros = given if reads & (ways | _RETURNED if once else ways) else unchanged
            hidden += [a for a, p in zeros if is_zero(p, sign) and self.inexact[a.aval]]
        self._hide(eqn, *hidden)
        if computed:
            entry = self._entry(eqn)
            self.fences[-1] = entry._replace(lowered=entry.lowered.replace(primitive=GivenHidden(
                prim, frozenset([i for i, a in enumerate(operands) if a in computed]))))
        if reads & (_ADDED | _SUBTRACTED):
            self._fence(eqn, *[a for a, p in given if p[0] & FOLDED and value_of(p) is None
                               and self.inexact[a.aval]])
        narrowed = self._those(operands, NARROWED)
        integers = [v for v in outs if _is_integer(v.aval)]
        if narrowed and (integers or reads & _MASKED):
            self.held.update(narrowed)
        self.made.update(dict.fromkeys(outs, COMPUTED if constant else GIVEN))
        if True in [True in plan.narrowed for plan in plans]:
            self.made.update(dict.fromkeys(integers, (FIXED | NARROWED, None)))
        elif once:
            self.made.update((v, (CONSTANTS, number)) for v, number in zip(
                outs, plans[0].numbers, strict=False) if number is not None)

    def _undefined(self, eqn: OlympusprEqn, pairs: Iterable[tuple[Atom, Made]]) -> list[Atom]:
        """The constants of which a call may compute NaN or a term, and those that may be NaN."""
        given = {a: p for a, p in pairs if p[0] & FOLDED}
        its = {a: Constant(value_of(p), p[0] & CONSTANT > 0 and self._is_finite(a, p))
               for a, p in given.items()}
        if results_of(eqn, [its.get(a) for a in eqn.invars]) is None:
            return [a for a in given if self.inexact[a.aval] or _is_integer(a.aval)]
        return [a for a, p in given.items() if value_of(p) is None and self._may_be_nan(a)]

    def _is_finite(self, atom: Atom, made: Made) -> bool:
        """Whether each element of a constant is finite."""
        number = value_of(made)
        if not self.inexact[atom.aval]:
            return True
        if number is None and atom in self.closed_over:
            return bool(np.isfinite(np.asarray(self.closed_over[atom])).all())
        return number is not None and bool(np.isfinite(number))

    def _hide(self, eqn: OlympusprEqn, *atoms: Atom) -> None:
        """Let an equation read constants from memory."""
        for atom in atoms:
            if atom in self.closed_over:
                self.constant_vars[atom] = None
                continue
            if atom.aval.tagged:
                self.held.update([] if is_term(atom.aval) else [atom])
                continue
            # Of an array the scalar is hidden, so that repeating it remains a part of its readers.
            var: Any = Var(atom.aval)
            number: Any = value_of(self._of(atom))
            self.constant_vars[var] = Literal(number, make_aval((), atom.aval.dtype))
            entry = self._entry(eqn)
            self.fences[-1] = entry._replace(lowered=entry.lowered.replace(
                invars=[var if x is atom else x for x in entry.lowered.invars]))

    def _mask(self, eqn: OlympusprEqn) -> None:
        """`and`, `or`, and reductions by them: hold an integer of a narrowing conversion in memory,
        unless the operands are two such conversions.

        MLIR's folding of an array and such an integer (jaxlib 0.10.2) ends the process.
        """
        operands = eqn.invars       # of a reduction, not where it begins
        operands = operands if eqn.primitive.elementwise else operands[:len(eqn.outvars)]
        if dtypes.is_integer(operands[0].aval.dtype):
            self._read(_MASKED, *operands)
            narrowed = self._those(operands, NARROWED)
            if narrowed and Literal not in map(type, operands) and (
                    len(narrowed) == 1 or not self.conversions.issuperset(narrowed)):
                self.held.update(narrowed)
                self.made.update(dict.fromkeys(narrowed, UNKNOWN))
        self._other(eqn)

    def _conversion(self, eqn: OlympusprEqn) -> None:
        self._move(eqn)
        out, (bits, number) = eqn.outvars[0], self._of(eqn.invars[0])
        old, new = eqn.invars[0].aval.dtype, out.aval.dtype
        if bits & CONSTANT:
            number = converted(number, new)
            self.made[out] = bits if number is not None else bits & ~CONSTANT, number
        if dtypes.is_integer(old) and dtypes.is_integer(new) and (
                dtypes.itemsize_bits(new) < dtypes.itemsize_bits(old)):
            self.made[out] = self.made.get(out, UNKNOWN)[0] | NARROWED, number
            self.conversions.add(out)

    def _lower_as(self, eqn: OlympusprEqn, primitive: Primitive, *operands: Atom,
                  params: Params | None = None) -> None:
        """Lower another operation in the place of an equation."""
        if is_term(eqn.outvars[0].aval):
            return
        entry = self._entry(eqn)
        self.fences[-1] = entry._replace(lowered=eqn.replace(
            primitive=primitive, invars=[*operands], params=params or {}))


# What an operation reads of its operands, where that is only what computed them.
_READ = {"clamp": SIGNED, "comparison": SIGNED, "exclusive_or": SIGNED,
         "extremum": SIGNED, "logarithm": INVERTIBLE | POWER | QUOTIENT | ROOT,
         "sign": SIGNED}
_STEPS: dict[str, Callable[[_Pass, OlympusprEqn], None]] = {
    **dict.fromkeys(("", *_READ, *ALONE), _Pass._other),
    "absolute": _Pass._absolute, "broadcast": _Pass._broadcast, "called": _Pass._call,
    "choice": _Pass._choice, "clamp": _Pass._clamp, "comparison": _Pass._comparison,
    "conversion": _Pass._conversion,
    "difference": _Pass._difference, "exclusive_or": _Pass._exclusive_or,
    "extremum": _Pass._extremum, "integer_power": _Pass._square, "mask": _Pass._mask,
    "move": _Pass._move,
    "negation": _Pass._negation, "part": _Pass._part, "power": _Pass._power,
    "product": _Pass._product,
    "quotient": _Pass._quotient, "square": _Pass._square, "sum": _Pass._sum}


def _is_integer(aval: Aval) -> bool:
    return not is_float0(aval) and dtypes.is_integer(aval.dtype)


def _is_one(size: DimSize) -> bool:
    return isinstance(size, int) and size == 1
