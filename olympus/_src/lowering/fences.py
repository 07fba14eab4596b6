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
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np

from ..base.typing import ArrayLike, DimSize, DType, IrValue
from ..core.ir import Atom, ClosedOlympuspr, Literal, OlympusprEqn, Var, derived
from ..core.primitive import Builder, Primitive
from ..types import dtypes
from ..types.avals import Aval, ShapedArray, is_float0
from ..types.shape import SymbolicDim
from .attributes import i64s

if TYPE_CHECKING:
    from .context import ModuleContext

_SEARCHED = 1 << 16     # elements of a closed-over array; a larger one may have any

Number: TypeAlias = float | complex | None      # of a constant; None: not known

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
_KINDS = (_CLAMPED | _EXPONENTIAL | _INVERTIBLE | _POWER | _QUOTIENT | _ROOT | _SCALED | _SHIFTED
          | _UNSIGNED)
# These kinds of the operand of a negation, which another one, a square or an absolute value undoes.
_MINUS = 16
_MERGED = _KINDS | _KINDS << _MINUS
# Divisors that XLA moves into the dividend, or takes the reciprocal of.
_DIVISORS = _EXPONENTIAL | _POWER | _QUOTIENT | _REPEATED | _SPREAD | _FIXED
_SIGNED = _CLAMPED | _UNSIGNED      # what reads the sign of integers
_ALIKE = _FIXED | _SPREAD           # what all operands have to be for the result to be it
# What is left of a product by a constant, as constants may be merged to 1.
_FACTORS = _EXPONENTIAL | _INVERTIBLE | _POWER | _QUOTIENT | _REPEATED | _ROOT | _SCALED
_FACTORS |= (_FACTORS & _KINDS) << _MINUS


# The set, and the number of the constant that it is about. A named tuple would double the time of
# the pass.
Made: TypeAlias = tuple[int, Number]
_UNKNOWN: Made = 0, None
_GIVEN: Made = _FIXED, None         # an argument, the result of a call
_KNOWN: Made = _CONSTANT | _FIXED, None
_COPIES: Made = _REPEATED | _SPREAD, None
_SPREADS: Made = _SPREAD, None
_SPREAD_CONSTANT = _CONSTANT | _FIXED | _SPREAD
_DIVIDED: Made = _QUOTIENT, None
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


class Fences(NamedTuple):
    """The operands that an equation and later ones read through a fence, the scalars whose
    repetitions alone are read so, the equation to lower in its place, and, if any, an operand of it
    with the values for which it waits (`in_place.py`).
    """

    eqn: OlympusprEqn
    whole: list[Var]
    repeated: list[Var]
    lowered: OlympusprEqn
    late: Sequence[Var] = ()


class Plan(NamedTuple):
    """The fences of a program, in the order of its equations, the results that a caller reads
    through a fence, the values that are held in memory besides, and the constants that are hidden
    in memory, with literals in whose place they are.
    """

    fences: Sequence[Fences]
    results: Sequence[Var]
    held: frozenset[Var]
    constants: Mapping[Var, Literal | None]


_NOTHING = Plan((), (), frozenset(), {})


def plan_of(closed: ClosedOlympuspr, module: ModuleContext) -> Plan:
    """The plan of a program in a module, kept with the program."""
    if not module.fences:
        return _NOTHING
    nested = closed is not module.fenced_from
    return _plan(closed, nested)


@derived
def _plan(closed: ClosedOlympuspr, nested: bool) -> Plan:
    return _Pass(closed, nested).plan()


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
        self.inexact, self.reciprocals = _Inexact(), _Reciprocals()
        self.held: set[Var] = set()
        self.made.update((v, (_CONSTANT | _FIXED, math.nan)) for v in pr.constvars
                         if self.inexact[v.aval] and _are_nan(self.closed_over[v]))

    def plan(self) -> Plan:     # noqa: C901, PLR0912 - hot: without calls for most equations
        made, get, pairs, steps = self.made, self.made.get, _PAIRS.get, _STEPS
        inexact, reciprocals = self.inexact, self.reciprocals
        for eqn in self.pr.eqns:
            # The hot path, without calls: a glance at how the operands of most equations were
            # computed tells what these make. The steps are for the others.
            prim, operands = eqn.primitive, eqn.invars
            algebra = prim.algebra
            if not algebra:
                for x in operands:
                    if type(x) is not Literal and (p := get(x)) is not None and (
                            not prim.elementwise or p[0] & _LASTING):
                        break
                else:
                    if operands and type(operands[0]) is not Literal:
                        continue
            elif (pair := pairs(algebra)) is not None:
                kind, neutral, alone, together = pair
                x, y = operands
                if (aval := x.aval) is y.aval:
                    if aval.shape and inexact[aval]:
                        p, q = get(x), get(y)
                        if p is None:
                            if q is None or not q[0] & alone:
                                continue
                        elif q is None:
                            if not p[0] & alone:
                                continue
                        elif not ((p[0] | q[0]) & alone or p[0] & together and q[0] & together):
                            if p[0] & q[0] & _SPREAD:
                                made[eqn.outvars[0]] = _SPREADS
                            continue
                else:
                    number, other = (y, x) if type(y) is Literal else (x, y)
                    if type(number) is Literal and type(c := number.val) in _REAL and (
                            c == c and c != neutral and (aval := other.aval).shape
                            and inexact[aval]):
                        bits, p = 0, get(other)
                        if p is None or not (bits := p[0]) & ~_SPREAD:
                            if kind:
                                made[eqn.outvars[0]] = bits | kind, (
                                    -c if number is y and algebra == "difference" else c)
                            continue
            elif algebra == "quotient":
                x, y = operands
                aval = x.aval
                if type(y) is Literal:
                    if type(number := y.val) in _REAL and number and aval.shape and (
                            inexact[aval] and number == number != 1 and reciprocals[number, aval]):
                        bits, p = 0, get(x)
                        if p is None or not (bits := p[0]) & ~_SPREAD:
                            made[eqn.outvars[0]] = _SCALED | bits, 1 / number
                            continue
                elif inexact[aval] and (aval is y.aval or aval.shape and y in self.hidden):
                    p, q = get(x), get(y)
                    if (q is None or not q[0] & _DIVISORS) and (
                            p is None or not p[0] & _QUOTIENT):
                        made[eqn.outvars[0]] = _DIVIDED
                        continue
            elif algebra == "broadcast":
                if type(x := operands[0]) is not Literal:
                    if x not in made:
                        made[eqn.outvars[0]] = _COPIES
                        continue
                elif type(number := x.val) in _REAL:
                    made[eqn.outvars[0]] = _SPREAD_CONSTANT, number
                    continue
            elif algebra == "choice":
                which, x, y = operands[0], operands[1], operands[-1]
                if type(which) is not Literal and which not in made and (
                        type(x) is not Literal and x not in made
                        or type(y) is not Literal and y not in made):
                    continue
            elif algebra in _MOVES and len(operands) == 1:
                x = operands[0]
                if type(x) is not Literal and x not in made:
                    continue
            steps[algebra](self, eqn)
        return Plan(self.fences, self._those(self.pr.outvars, _MERGED) if self.nested else (),
                    frozenset(self.held), self.constant_vars)

    # The steps, by algebra: what to fence of operands, and what to know of results.

    def _product(self, eqn: OlympusprEqn) -> None:
        x, y = eqn.invars
        out = eqn.outvars[0]
        aval = out.aval
        if not self.inexact[aval]:
            self._note(eqn, _UNSIGNED if x is y else 0)
            return
        p, q = self._of(x), self._of(y)
        if self._is_nan(eqn, p, q, operator.mul):
            return
        if (p[0] & q[0]) >> _MINUS:
            p, q = _negated(p), _negated(q)
        if p[0] & _FIXED and not (p[0] & _SCALED and q[0] & _FIXED):
            x, y, p, q = y, x, q, p
        if q[0] & _FIXED:
            if p[0] & _SCALED and not _is_safe(p[1], _value(q), aval.dtype):
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
        if self._is_nan(eqn, p, q, _ratio):
            return
        if type(y) is Literal:
            number = q[1]
            reciprocals = not has_no_reciprocal(y.val, aval.dtype)
            number = 1 / number if number else None
        else:
            reciprocals = y in self.closed_over and _has_reciprocals(self.closed_over[y], aval)
        if reciprocals:
            if p[0] & _SCALED and not _is_safe(p[1], number, aval.dtype):
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
        if self._is_nan(eqn, p, q, operator.add):
            return
        # XLA leaves c - (y + d) as it is.
        turned = p[0] & _FIXED and not (p[0] & _SHIFTED and q[0] & _FIXED)
        if turned:
            x, y, p, q = y, x, q, p
        if q[0] & _FIXED:
            if not (turned and sign < 0) and self._is_zero(y, q, sign):
                self._lower_as(eqn, _plus_zero_p, x)
                return
            if p[0] & _SHIFTED and not (turned and sign < 0) and (
                    not _is_joint(p[1], _value(q), aval.dtype)):
                self._fence(eqn, x)
                p = p[0] & _ALIKE, None
            self._note_shifted(eqn, p, _value(q))
            return
        if sign > 0 and p[0] & q[0] & _SCALED and (
                p[1] == q[1] or p[1] is None or q[1] is None):
            self._fence(eqn, x)     # x * c + y * c, c a power of 2
        self._note(eqn, _SHIFTED if x.aval.shape != y.aval.shape else 0)

    def _is_zero(self, atom: Atom, made: Made, sign: int) -> bool:
        """Whether a constant term is 0, not -0, in each element."""
        number, array = _value(made), self.closed_over.get(self.moved.get(atom, atom))
        if array is not None:
            return sign > 0 and np.size(array) <= _SEARCHED and not np.frombuffer(
                np.asarray(array).tobytes(), np.uint8).any()
        return number == 0 and math.copysign(1, number.real) > 0

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
                bits = (bits | bits >> _MINUS & _KINDS) & ~_SHIFTED
                self.made[out] = bits, None if number is None else _size(number)
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
        self.made[eqn.outvars[0]] = (
            bits | (_SPREAD if bits & _CONSTANT else _REPEATED | _SPREAD), number)

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
            bits = bits & _ALIKE if out.aval.shape else bits & _FIXED
        if bits:
            self.made[out] = bits, number

    def _other(self, eqn: OlympusprEqn) -> None:
        prim = eqn.primitive
        algebra, outs = prim.algebra, eqn.outvars
        read = _READ.get(algebra, 0)
        if read:
            self._fence(eqn, *self._those(eqn.invars, read))
        if algebra == "called":
            self._hold_given(eqn)
            self.constants = True
            self.made.update(dict.fromkeys(outs, _GIVEN))
        elif all(type(a) is Literal for a in eqn.invars):
            self.made.update(dict.fromkeys(outs, _KNOWN))
        elif prim.elementwise:
            kind = _MADE.get(algebra, 0)
            if algebra == "exponential" and self._joined(eqn.invars)[0] & _MERGED:
                kind |= _INVERTIBLE
            self._note(eqn, kind)
        else:
            self._note_moved(eqn)

    def _note_moved(self, eqn: OlympusprEqn) -> None:
        """Pass on the facts about the operands of an operation on whole arrays.

        With axes of size 1, no padding, or every element read, its result is an operand. What it
        combines elements of is none, but a contraction over one element is a product.
        """
        prim, operands, outs = eqn.primitive, eqn.invars, eqn.outvars
        axes = None if prim.foreign else eqn.params.get("axes")
        summed = prim.summed_axes(eqn.params)
        scaled = _SCALED | _SCALED << _MINUS
        if summed is not None:
            x, y = operands
            if self._of(x)[0] & self._of(y)[0] & scaled:    # of vectors: the sum of the products
                self._fence(eqn, x)
            if all(_is_one(x.aval.shape[axis]) for axis in summed) and self._joined(operands)[0]:
                self._fence(eqn, *self._those(operands, _MERGED))
                self.made[outs[0]] = _SCALED, None
            return
        if prim.multiplies:     # LLVM multiplies the factors of one kernel in another order
            self.held.update(self._those(operands, scaled))
        bits, number = self._joined(operands)
        bits &= _FIXED | _MERGED | _REPEATED | _SPREAD
        shape = operands[0].aval.shape if operands else ()
        if type(axes) is tuple and not all(     # names of axes of a mesh may be numbers
                type(axis) is int and axis < len(shape) and _is_one(shape[axis]) for axis in axes):
            bits, number = bits & ~_MERGED, None
        if bits:
            self.made.update(dict.fromkeys(outs, (bits, number)))

    # What they have in common

    def _of(self, atom: Atom) -> Made:
        """How an operand was computed."""
        if type(atom) is Literal:
            return _CONSTANT | _FIXED, _number(atom)
        return self.made.get(atom, _UNKNOWN)

    def _pass(self, eqn: OlympusprEqn, made: Made) -> None:
        """Note that the result is an operand."""
        if made[0]:
            self.made[eqn.outvars[0]] = made

    def _note(self, eqn: OlympusprEqn, kind: int = 0, number: Number = None) -> None:
        """Note how the result of an elementwise operation was computed, if that may matter."""
        out = eqn.outvars[0]
        bits, _ = self._joined(eqn.invars)
        # An integer passes through an operation with a constant: a sum with 0, a product with 1.
        known = bits & (_ALIKE if out.aval.shape else _FIXED) | kind
        if bits & _SIGNED and not self.inexact[out.aval]:
            known |= bits & _SIGNED
        if known:
            self.made[out] = known, number

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
        if number is None or _size(number) == 1:
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
        every, some, numbers = _ALIKE, 0, set[Number]()
        for atom in atoms:
            if type(atom) is not Literal:
                bits, number = self.made.get(atom, _UNKNOWN)
                every &= bits if atom.aval.shape else bits | _SPREAD
                some |= bits
                if bits & _MERGED:
                    numbers.add(number)
        return some & ~(_ALIKE | _CONSTANT) | every, numbers.pop() if len(numbers) == 1 else None

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
                self.made.pop(atom, None)

    # LLVM takes an exponential of a known NaN for undefined: it gives what was in memory.

    def _is_nan(self, eqn: OlympusprEqn, p: Made, q: Made,
                operation: Callable[[complex, complex], complex]) -> bool:
        """Whether the result is NaN, as an operand is, or as constants give it. It is hidden then.
        """
        x, y = _value(p), _value(q)
        nan = x is not None and x != x, y is not None and y != y
        out = eqn.outvars[0]
        if x is not None and y is not None and (z := operation(x, y)) != z:
            self.made[out] = _CONSTANT | _FIXED, math.nan
        elif True not in nan:
            return False
        elif dtypes.is_complex(out.aval.dtype) or out.aval.dtype.itemsize == 1:
            self.held.add(out)
        else:
            self._lower_as(eqn, _nan_p, eqn.invars[nan[0]])
        return True

    def _hold_given(self, eqn: OlympusprEqn) -> None:
        """Hold constants that are NaN, where a function or body is given them, in memory."""
        for atom in eqn.invars:
            number = _value(self._of(atom))
            if number is not None and number != number:
                if type(atom) is not Literal:
                    if atom in self.closed_over:
                        self.constant_vars[atom] = None
                    else:
                        self.held.add(atom)
                    continue
                var = Var(atom.aval)
                self.constant_vars[var] = atom
                entry = self._entry(eqn)
                self.fences[-1] = entry._replace(lowered=entry.lowered.replace(
                    invars=[var if x is atom else x for x in entry.lowered.invars]))

    def _mask(self, eqn: OlympusprEqn) -> None:
        """`and`, `or`: hold an integer of a narrowing conversion in memory, unless both are such.

        MLIR's folding of an array and such an integer (jaxlib 0.10.2) ends the process.
        """
        x, y = eqn.invars
        if dtypes.is_integer(x.aval.dtype):
            for number, mask in ((x, y), (y, x)):
                if type(number) is Var and type(mask) is not Literal and (
                        number in self._narrowed and mask not in self._narrowed):
                    self.held.add(number)
        self._other(eqn)

    @functools.cached_property
    def _narrowed(self) -> set[Atom]:
        """The results of conversions to narrower integers, also moved."""
        found: set[Atom] = set()
        for eqn in self.pr.eqns:
            algebra = eqn.primitive.algebra
            if algebra == "move" and eqn.invars[0] in found:
                found.add(eqn.outvars[0])
            elif algebra == "conversion":
                old, new = eqn.invars[0].aval.dtype, eqn.outvars[0].aval.dtype
                if dtypes.is_integer(old) and dtypes.is_integer(new) and (
                        new.itemsize <= old.itemsize):
                    found.add(eqn.outvars[0])
        return found

    def _lower_as(self, eqn: OlympusprEqn, primitive: Primitive, x: Atom) -> None:
        """Lower another operation, of one operand, in the place of an equation."""
        entry = self._entry(eqn)
        self.fences[-1] = entry._replace(lowered=eqn.replace(primitive=primitive, invars=[x]))


def hidden(b: Builder, constant: IrValue, aval: ShapedArray) -> IrValue:
    """A constant that is held in memory. XLA folds calls of scalars, but not of repeated ones."""
    if aval.shape:
        return b.hold(constant, aval)
    pair = b.hold(b.broadcast(constant, aval.update(shape=(2,)), ()), aval)
    one = b.op("stablehlo.slice", [pair], {
        "start_indices": i64s([0]), "limit_indices": i64s([1]), "strides": i64s([1])},
        aval.update(shape=(1,)))
    return b.op("stablehlo.reshape", [one], None, aval)


class _Instead(Primitive, abstract=True):
    """An operation that is lowered only, in the place of another one."""

    infer = jvp = transpose = vmap = None


class _PlusZero(_Instead):
    """x + 0, which is 0 where x is -0; XLA takes the sum for x."""

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        x, = b.expand([x])
        aval = b.avals_out[0]
        if not dtypes.is_complex(aval.dtype):
            return self.part(b, x, aval)
        part = aval.update(dtype=dtypes.to_real_dtype(aval.dtype))
        return b.op("stablehlo.complex", [
            self.part(b, b.op(f"stablehlo.{name}", [x], None, part), part)
            for name in ("real", "imag")])

    def part(self, b: Builder, x: IrValue, aval: ShapedArray) -> IrValue:
        zero = b.full(aval, 0.0)
        is_zero = b.compare("EQ", x, zero, "FLOAT", aval.update(dtype=dtypes.as_dtype(bool)))
        return b.op("stablehlo.select", [is_zero, zero, x], None, aval)


class _Nan(_Instead):
    """NaN, of the bits of an operand, so that LLVM does not know it."""

    def lower(self, b: Builder, x: IrValue) -> IrValue:
        x, = b.expand([x])
        aval = b.avals_out[0]
        of = dtypes.as_dtype(f"uint{aval.dtype.itemsize * 8}")
        bits = aval.update(dtype=of)
        nan = np.asarray(math.nan, aval.dtype).view(of)[()]
        found = b.op("stablehlo.or", [b.op("stablehlo.bitcast_convert", [x], None, bits),
                                      b.full(bits, int(nan))], None, bits)
        return b.op("stablehlo.bitcast_convert", [found], None, aval)


_plus_zero_p, _nan_p = _PlusZero("plus_zero"), _Nan("nan")


# What an elementwise operation without algebra may leave of its operands.
_LASTING = _FIXED | _SPREAD | _SIGNED
# Operations that give the elements of an operand, elsewhere, in another format, or negated.
_MOVES = frozenset(("conversion", "move", "negation", "part"))
# Operations on two operands: their result if one is a number; the number with which they are the
# other operand; what matters to them by itself; what does if both are among it.
_PAIRS = {"comparison": (0, None, _FIXED | _SIGNED, 0),
          "difference": (_SHIFTED, 0, _FIXED, 0),
          "product": (_SCALED, 1, _FIXED, (
              _EXPONENTIAL | _REPEATED | _SCALED | (_EXPONENTIAL | _SCALED) << _MINUS)),
          "sum": (_SHIFTED, 0, _FIXED, _SCALED)}
# What an operation reads of its operands, where that is only what computed them.
_READ = {"called": _MERGED, "clamp": _SIGNED, "comparison": _SIGNED, "exclusive_or": _SIGNED,
         "extremum": _SIGNED, "logarithm": _INVERTIBLE | _POWER | _QUOTIENT | _ROOT,
         "sign": _SIGNED}
_MADE = {"exponential": _EXPONENTIAL,
         "logistic": _QUOTIENT,     # 1 / (1 + exp(-x))
         "root": _ROOT}
_STEPS: dict[str, Callable[[_Pass, OlympusprEqn], None]] = {
    **dict.fromkeys(("", *_READ, *_MADE), _Pass._other),
    "absolute": _Pass._absolute, "broadcast": _Pass._broadcast, "choice": _Pass._choice,
    "clamp": _Pass._clamp, "comparison": _Pass._comparison, "conversion": _Pass._move,
    "difference": _Pass._difference, "exclusive_or": _Pass._exclusive_or,
    "extremum": _Pass._extremum, "integer_power": _Pass._square, "mask": _Pass._mask,
    "move": _Pass._move,
    "negation": _Pass._negation, "part": _Pass._part, "power": _Pass._power,
    "product": _Pass._product,
    "quotient": _Pass._quotient, "square": _Pass._square, "sum": _Pass._sum}


def _has_reciprocals(divisors: ArrayLike, aval: Aval) -> bool:
    """Whether XLA may multiply by the reciprocals of an array, as all are normal numbers."""
    return np.size(divisors) <= _SEARCHED and not has_no_reciprocal(divisors, aval.dtype)


def _negated(made: Made) -> Made:
    """How the negative of a value was computed."""
    bits, number = made
    if bits & _MERGED:
        bits = bits & ~_MERGED | (bits & _KINDS) << _MINUS | bits >> _MINUS & _KINDS
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


def _are_nan(array: ArrayLike) -> bool:
    """Whether all elements of an array are NaN."""
    x = np.asarray(array).reshape(-1)
    return x.size > 0 and x[0] != x[0] and bool((x != x).all())


def _ratio(x: complex, y: complex) -> complex:
    """x / y, also by zero: NaN where both are, else infinite."""
    return x / y if y else math.nan if x == 0 or x != x else math.inf


def _size(number: complex) -> float:
    """The absolute value; infinite where Python's `abs` of a complex number overflows."""
    return math.hypot(number.real, number.imag)


def _is_one(size: DimSize) -> bool:
    return isinstance(size, int) and size == 1


def _is_single(shape: Sequence[object]) -> bool:
    """Whether an array has one element: XLA moves constants of such further."""
    return not shape or shape.count(1) == len(shape)


def _is_safe(a: Number, b: Number, dtype: DType) -> bool:
    """Whether a product of constants is a normal number, or one of them is 0."""
    if a is None or b is None:
        return False
    if isinstance(a * b, complex) and (a * b).imag:     # the parts of a product cancel
        return False
    least, most = _limits(dtype)
    return least <= _size(a * b) <= most or a == 0 or b == 0


def _is_joint(a: Number, b: Number, dtype: DType) -> bool:
    """Whether terms of one sign have an exact sum: others may have been there to round."""
    if a is None or b is None or isinstance(a, complex) or isinstance(b, complex):
        return False
    # The rounding error of a sum, in float64: Knuth (1997), Seminumerical Algorithms, 4.2.2,
    # theorem B.
    x, y = float(dtype.type(a)), float(dtype.type(b))
    s = x + y
    rest = (x - (s - (s - x))) + (y - (s - x))
    return x * y >= 0 and rest == 0 and abs(s) <= _limits(dtype)[1] and float(dtype.type(s)) == s
