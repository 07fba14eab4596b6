"""Operations that XLA merges with the ones before them, and the fences that keep them apart.

A step for each kind of operation (`Primitive.algebra`) fences the operands with which XLA would
merge it, if that could change a finite number or an integer, and notes of the result how it was
computed.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence

import numpy as np

from ..core.ir import Atom, Literal, OlympusprEqn, Var
from ..types import dtypes
from ..types.avals import Aval
from .constants import add_zero, hide, is_constant, is_known
from .glances import ALONE, READ
from .instead import plus_zero
from .known_numbers import (
    Number, converted, has_no_reciprocal, has_reciprocals, is_infinite, is_joint, is_moderate,
    is_nan, is_safe, ratio, size,
)
from .made import (
    ALIKE, ALL, CLAMPED, COMPUTED, CONSTANT, DIVIDED, DIVISORS, EXPONENTIAL, FENCED, FIXED, FOLDED,
    HARMFUL, INVERTIBLE, MERGED, MINUS, NARROWED, NEGATED, POWER, QUOTIENT, REAL, REPEATED, SCALED,
    SHIFTED, SIGNED, SPREAD, UNKNOWN, UNSIGNED, Made, is_one, is_single, is_zero, may_be_zero,
    negated, value_of,
)
from .nan_constants import is_made_nan
from .notes import ADDED, MASKED, SUBTRACTED, Notes


def product(notes: Notes, eqn: OlympusprEqn) -> None:
    x, y = eqn.invars
    out = eqn.outvars[0]
    aval = out.aval
    if not notes.inexact[aval]:
        notes.note(eqn, UNSIGNED if x is y and dtypes.iinfo(aval.dtype).min else 0)
        return
    p, q = notes.of(x), notes.of(y)
    if (p[0] | q[0]) & FOLDED and is_known(notes, eqn, p, q, operator.mul):
        return
    if (p[0] & q[0]) >> MINUS:
        p, q = negated(p), negated(q)
    if p[0] & FIXED and not (p[0] & SCALED and q[0] & FIXED):
        x, y, p, q = y, x, q, p
    if q[0] & FIXED and q[0] & SCALED and not q[0] & FOLDED and _is_repeated(x, p, aval):
        _fence_scaled(notes, eqn, y, q[1])      # it need not be a constant
        q = notes.of(y)
    if q[0] & FIXED:
        if p[0] & SCALED and not is_safe(p[1], value_of(q), aval.dtype):
            _fence_scaled(notes, eqn, x, p[1], value_of(q))
            p = p[0] & ALIKE, None
        notes.note_scaled(eqn, p, value_of(q))
        return
    bits: int = 0
    if p[0] & q[0] & SCALED:
        unknown = notes.constants and (p[1] is None or q[1] is None)
        repeated = (p[0] | q[0]) & (REPEATED | SPREAD)    # XLA computes it once, as a scalar
        if unknown or repeated or is_single(x.aval.shape) or is_single(y.aval.shape):
            # (x * c) * (y * d): x * y may be infinite
            _fence_scaled(notes, eqn, x, p[1], q[1])
    elif p[0] & SCALED and _is_repeated(y, q, aval):
        _fence_scaled(notes, eqn, x, p[1])      # XLA multiplies the scalar with the constant
    elif q[0] & SCALED and _is_repeated(x, p, aval):
        _fence_scaled(notes, eqn, y, q[1])
    if p[0] & q[0] & EXPONENTIAL:
        bits = EXPONENTIAL         # of the sum
        if aval.dtype.itemsize == 2:
            notes.fence(eqn, x)     # a sum of 16 bits is no good exponent
    if x.aval.shape != y.aval.shape:
        bits |= SCALED             # a scalar may be computed from constants
    notes.note(eqn, bits)


def _fence_scaled(notes: Notes, eqn: OlympusprEqn, x: Atom, *numbers: Number) -> None:
    """Fence a product with a number, before one with another, or with unknown numbers; on
    accelerators only if a number is known to be a large part of the format's range, or 0.
    """
    known = [n for n in numbers if n is not None]
    large = len(known) == len(numbers) and not all(is_moderate(n, x.aval.dtype) for n in known)
    if large:
        notes.fence(eqn, x)
    else:
        notes.fence_on_cpus(eqn, x, harmful=0)


def quotient(notes: Notes, eqn: OlympusprEqn) -> None:
    x, y = eqn.invars
    out = eqn.outvars[0]
    aval = out.aval
    if not notes.inexact[aval]:
        notes.fence(eqn, *notes.those((x, y), UNSIGNED))
        notes.note(eqn)
        return
    p, q = notes.of(x), notes.of(y)
    if (p[0] | q[0]) & FOLDED and is_known(notes, eqn, p, q, ratio):
        return
    number = value_of(q)
    if number is not None:
        reciprocals = not has_no_reciprocal(number, aval.dtype)
        number = 1 / number if number else None
    else:
        reciprocals = y in notes.closed_over and has_reciprocals(notes.closed_over[y], aval)
    if reciprocals:
        divides = type(y) is not Literal    # XLA:CPU leaves divisions by a repeated number
        if p[0] & SCALED and not is_safe(p[1], number, aval.dtype) or divides and p[0] & QUOTIENT:
            notes.fence(eqn, x)
            p = p[0] & ALIKE, None
        notes.note_scaled(eqn, p, number)
        if divides:
            bits, number = notes.of(out)
            notes.made[out] = bits | QUOTIENT, number
        return
    # XLA takes the reciprocal of a number that it may know, but on CPUs.
    if p[0] & QUOTIENT:
        notes.fence(eqn, x)
        p = UNKNOWN
    elif p[0] & SCALED and q[0] & FIXED:
        _fence_scaled(notes, eqn, x, p[1])
        p = UNKNOWN
    if q[0] & DIVISORS:
        notes.fence_on_cpus(eqn, y, harmful=EXPONENTIAL | HARMFUL)
    elif y.aval.shape != aval.shape and y not in notes.hidden and y not in notes.fenced:
        notes.entry(eqn).repeated.append(y)
        notes.hidden.add(y)
    notes.made[out] = (QUOTIENT | SCALED | p[0] & MERGED, None) if q[0] & FIXED else DIVIDED


def addition(notes: Notes, eqn: OlympusprEqn) -> None:
    _term(notes, eqn, 1)


def difference(notes: Notes, eqn: OlympusprEqn) -> None:
    x, y = eqn.invars
    if x is y and not notes.inexact[eqn.outvars[0].aval]:
        notes.held.add(eqn.outvars[0])       # see `comparison`
    _term(notes, eqn, -1)


def _term(notes: Notes, eqn: OlympusprEqn, sign: int) -> None:
    """The sum of x and y, or of x and -y."""
    x, y = eqn.invars
    out = eqn.outvars[0]
    aval = out.aval
    if not notes.inexact[aval]:
        notes.note(eqn)     # integers wrap: operations that merge give the same ones
        return
    p, q = notes.of(x), notes.of(y)
    if q[1] is not None and sign < 0:
        q = q[0], -q[1]
    folded = (p[0] | q[0]) & FOLDED
    if folded and is_known(notes, eqn, p, q, operator.add):
        return
    notes.read(ADDED if sign > 0 else SUBTRACTED, x, y)
    if folded:
        if is_zero(q, 1) or sign > 0 and is_zero(p, 1):
            notes.lower_as(eqn, plus_zero(value_of(q if is_zero(q, 1) else p)),
                           x if is_zero(q, 1) else y)
            if bits := (p if is_zero(q, 1) else q)[0] & ALIKE:
                notes.made[out] = bits, None
            return
        # What XLA computes of constants may be 0. It drops complex ones behind fences, too.
        computed = [a for a, made in ((x, p), (y, q)) if may_be_zero(made) and (
            a is y or sign > 0)]
        if dtypes.is_complex(aval.dtype):
            notes.held.update(computed)
        notes.fence_on_cpus(eqn, *computed)
        p, q = notes.of(x), notes.of(y)
        if q[1] is not None and sign < 0:
            q = q[0], -q[1]
    # XLA leaves c - (y + d) as it is.
    turned = p[0] & FIXED and not (p[0] & SHIFTED and q[0] & FIXED)
    if turned:
        x, y, p, q = y, x, q, p
    if q[0] & FIXED:
        if p[0] & SHIFTED and not (turned and sign < 0) and (
                not is_joint(p[1], value_of(q), aval.dtype)):
            known = p[1] is not None and value_of(q) is not None
            (notes.fence if known else notes.fence_on_cpus)(eqn, x)
            p = p[0] & ALIKE, None
        notes.note_shifted(eqn, p, value_of(q))
        return
    if sign > 0 and p[0] & q[0] & SCALED and (
            p[1] == q[1] or p[1] is None or q[1] is None):
        # x * c + y * c, c a power of 2
        (notes.fence_on_cpus if None in (p[1], q[1]) else notes.fence)(eqn, x)
    notes.note(eqn, SHIFTED if x.aval.shape != y.aval.shape else 0)


def square(notes: Notes, eqn: OlympusprEqn) -> None:
    x, aval = eqn.invars[0], eqn.outvars[0].aval
    power = eqn.params.get("y", 2)
    inexact = notes.inexact[aval]
    p = notes.of(x)
    if power == 1:
        notes.note_same(eqn, p)
        return
    if inexact and p[0] & (SCALED | SCALED << MINUS) and (
            is_single(aval.shape) or p[1] is None or p[0] & (REPEATED | SPREAD)):
        _fence_scaled(notes, eqn, x, p[1])
    notes.note(eqn, QUOTIENT if power < 0 else 0 if inexact or power % 2 else UNSIGNED)


def power(notes: Notes, eqn: OlympusprEqn) -> None:
    notes.fence(eqn, *notes.those(eqn.invars, EXPONENTIAL))
    x, y = eqn.invars[0], eqn.invars[-1]
    p, q = notes.of(x), notes.of(y)
    base, number = value_of(p), value_of(q)
    if len(eqn.invars) == 2 and isinstance(base, REAL) and isinstance(number, REAL) and (
            -math.inf < base < 0 and number % 1 and not is_infinite(number)):
        notes.note_constant(eqn, math.nan)
        return
    bits = POWER
    if x is not y and q[0] & FIXED:
        number = value_of(q)
        if number == 1 or number is None:
            bits |= p[0] & MERGED
        if number == -1 or number is None:
            bits |= QUOTIENT
        if number in (2, 3, None) and p[0] & (SCALED | SCALED << MINUS):
            notes.fence(eqn, x)
    notes.note(eqn, bits)


def absolute(notes: Notes, eqn: OlympusprEqn) -> None:
    x, out = eqn.invars[0], eqn.outvars[0]
    if notes.inexact[out.aval]:
        bits, number = notes.of(x)
        if bits:        # the square has none
            bits = (bits | bits >> MINUS & ALL) & ~SHIFTED
            notes.made[out] = bits, None if number is None else size(number)
        return
    notes.fence(eqn, *notes.those(eqn.invars, SIGNED))
    notes.note(eqn, UNSIGNED)


def negation(notes: Notes, eqn: OlympusprEqn) -> None:
    bits, number = negated(notes.of(eqn.invars[0]))
    notes.made[eqn.outvars[0]] = bits ^ NEGATED, number


def part(notes: Notes, eqn: OlympusprEqn) -> None:
    """Parts of complex numbers and of their parts, the bits of a number: again the operand."""
    numbers = [value_of(notes.of(x)) for x in eqn.invars]
    if set(numbers) == {0} and eqn.primitive.name in ("conj", "complex"):
        zeros = [n for n in numbers if n is not None]
        notes.note_constant(eqn, zeros[0].conjugate() if type(zeros[0]) is complex
                            else complex(*zeros))
        return
    bits, _ = notes.joined(eqn.invars)
    if bits:
        notes.made[eqn.outvars[0]] = bits & ~CONSTANT, None


def comparison(notes: Notes, eqn: OlympusprEqn) -> None:
    """Comparisons, remainders, shifts: they read the sign of integers.

    Held in memory are the difference of an integer and itself, `x > x`, and their xor: LLVM
    would know that it is 0, and take an angle or an integer quotient of it for undefined.
    """
    x, y = eqn.invars
    if x is y and eqn.primitive.op in ("GT", "LT"):
        notes.held.add(eqn.outvars[0])
    if eqn.primitive.divides and notes.inexact[eqn.outvars[0].aval]:
        dividend, divisor = value_of(notes.of(x)), value_of(notes.of(y))
        if dividend is not None and (divisor == 0 or math.isinf(dividend.real)):
            notes.note_constant(eqn, math.nan)
            return
    other(notes, eqn)


def extremum(notes: Notes, eqn: OlympusprEqn) -> None:
    """With an infinity, or itself, it is the number."""
    x, y = eqn.invars
    other(notes, eqn)
    if notes.inexact[eqn.outvars[0].aval]:
        _bounded(notes, eqn, x, (y,))
        _bounded(notes, eqn, y, (x,))
    else:
        _apart(notes, eqn)


def _apart(notes: Notes, eqn: OlympusprEqn) -> None:
    """Fence integers that were negated or made positive: kernels of NVIDIA's GPUs (jaxlib 0.11.2)
    lose the sign in an extremum of them, also if elements are combined.
    """
    notes.fence(eqn, *[a for a in notes.those(eqn.invars, NEGATED | UNSIGNED)
                       if not notes.inexact[a.aval]])


def clamp(notes: Notes, eqn: OlympusprEqn) -> None:
    least, x, most = eqn.invars
    if is_made_nan(notes, eqn):
        return
    other(notes, eqn)
    out = eqn.outvars[0]
    bits, number = notes.made.get(out, UNKNOWN)
    notes.made[out] = bits | CLAMPED, number
    if notes.inexact[eqn.outvars[0].aval]:
        _bounded(notes, eqn, x, (least, most))


def _bounded(notes: Notes, eqn: OlympusprEqn, x: Atom, bounds: Sequence[Atom]) -> None:
    """Pass on the facts about a number, if it may be the result for every number."""
    for bound in bounds:
        number = value_of(made := notes.of(bound))
        if bound is not x and (
                not made[0] & FIXED or number is not None and not np.isinf(number)):
            return
    p, out = notes.of(x)[0], eqn.outvars[0]
    if p & MERGED:
        bits, _ = notes.made.get(out, UNKNOWN)
        notes.made[out] = bits | p & MERGED, None


def exclusive_or(notes: Notes, eqn: OlympusprEqn) -> None:
    x, y = (notes.orders.get(a) for a in eqn.invars)    # XLA computes equal operations once
    if x is not None and y is not None and x.primitive is y.primitive and (
            [*map(id, x.invars)] == [*map(id, y.invars)]):
        notes.held.add(eqn.outvars[0])
    other(notes, eqn)


def broadcast(notes: Notes, eqn: OlympusprEqn) -> None:
    bits, number = notes.of(eqn.invars[0])
    x, out = eqn.invars[0], eqn.outvars[0]
    notes.made[out] = bits | (SPREAD if bits & FOLDED else REPEATED | SPREAD), number
    notes.moved[out] = notes.moved.get(x, x)


def move(notes: Notes, eqn: OlympusprEqn) -> None:
    x, out = eqn.invars[0], eqn.outvars[0]
    p = notes.of(x)
    if p is not UNKNOWN:
        notes.made[out], notes.moved[out] = p, notes.moved.get(x, x)


def conversion(notes: Notes, eqn: OlympusprEqn) -> None:
    move(notes, eqn)
    out, (bits, number) = eqn.outvars[0], notes.of(eqn.invars[0])
    old, new = eqn.invars[0].aval.dtype, out.aval.dtype
    if bits & CONSTANT:
        number = converted(number, new)
        notes.made[out] = bits if number is not None else bits & ~CONSTANT, number
    if dtypes.is_integer(old) and dtypes.is_integer(new) and (
            dtypes.itemsize_bits(new) < dtypes.itemsize_bits(old)):
        notes.made[out] = notes.made.get(out, UNKNOWN)[0] | NARROWED, number
        notes.conversions.add(out)
    elif notes.inexact[out.aval] and dtypes.is_inexact(old):
        _rounding(notes, eqn)


def _rounding(notes: Notes, eqn: OlympusprEqn) -> None:
    """Keep what conversions of floats do to digits and range, which GPUs' compilers drop.

    XLA drops a conversion to fewer bits that is undone. LLVM takes an operation whose result is
    converted to float16 for one in float16 if the operands have no more digits: so have those of
    bfloat16, but a wider range.
    """
    x, out = eqn.invars[0], eqn.outvars[0]
    old, new = x.aval.dtype, out.aval.dtype
    more = dtypes.itemsize_bits(new) - dtypes.itemsize_bits(old)
    if more < 0:
        notes.rounded.add(out)
        maker = notes.maker(x) if notes.widened and new == np.float16 else None
        if maker is not None and not notes.widened.isdisjoint(
                [a for a in maker.invars if type(a) is not Literal]):
            notes.fence(eqn, x)
    elif more == 0 or x in notes.rounded:
        notes.fence(eqn, x)
    if old == dtypes.bfloat16:
        notes.widened.add(out)


def choice(notes: Notes, eqn: OlympusprEqn) -> None:
    which, *cases = eqn.invars
    out = eqn.outvars[0]
    if len({notes.moved.get(x, x) for x in cases}) == 1:     # XLA drops such a choice
        notes.made[out] = notes.of(cases[0])
        return
    bits, number = notes.joined(cases)
    # LLVM computes functions of a choice of constants for each of them.
    if bits & FOLDED and (nan := [a for a in cases if is_nan(value_of(notes.of(a)))]) and (
            id(eqn) in notes.before_functions):
        hide(notes, eqn, *nan)
    if not notes.of(which)[0] & FIXED:
        bits = bits & ALIKE if out.aval.shape else bits & (FIXED | FOLDED)
    if bits:
        notes.made[out] = bits, number


def mask(notes: Notes, eqn: OlympusprEqn) -> None:
    """`and`, `or`, and reductions by them: hold an integer of a narrowing conversion in memory,
    unless the operands are two such conversions.

    MLIR's folding of an array and such an integer (jaxlib 0.10.2) ends the process.
    """
    operands = eqn.invars       # of a reduction, not where it begins
    operands = operands if eqn.primitive.elementwise else operands[:len(eqn.outvars)]
    if dtypes.is_integer(operands[0].aval.dtype):
        notes.read(MASKED, *operands)
        narrowed = notes.those(operands, NARROWED)
        if narrowed and Literal not in map(type, operands) and (
                len(narrowed) == 1 or not notes.conversions.issuperset(narrowed)):
            notes.held.update(narrowed)
            notes.made.update(dict.fromkeys(narrowed, UNKNOWN))
    other(notes, eqn)


def other(notes: Notes, eqn: OlympusprEqn) -> None:
    prim, operands = eqn.primitive, eqn.invars
    algebra = prim.algebra
    read = READ.get(algebra, 0)
    if read:
        notes.fence(eqn, *notes.those(operands, read))
    if Literal in map(type, operands) or notes.those(operands, CONSTANT):
        if is_constant(notes, eqn) or prim.elementwise and is_made_nan(notes, eqn):
            return
        if not prim.elementwise:
            hide(notes, eqn, *[a for a in operands if is_nan(value_of(notes.of(a)))])
    made = notes.joined(operands)
    if Var not in map(type, operands):
        notes.made.update(dict.fromkeys(eqn.outvars, COMPUTED))
    elif prim.elementwise:
        kind = ALONE.get(algebra, 0)
        if algebra == "exponential" and made[0] & MERGED:
            kind |= INVERTIBLE
        notes.note(eqn, kind, made[0])
    elif made[0]:
        if made[0] & (NEGATED | UNSIGNED) and prim.fusion not in ("moves", "spreads"):
            _apart(notes, eqn)
        _note_moved(notes, eqn, made)


def _note_moved(notes: Notes, eqn: OlympusprEqn, made: Made) -> None:
    """Pass on the facts about the operands of an operation on whole arrays.

    With axes of size 1, no padding, or every element read, its result is an operand. What it
    combines elements of is none, but a contraction over one element is a product.
    """
    prim, operands, (bits, number) = eqn.primitive, eqn.invars, made
    scaled = SCALED | SCALED << MINUS
    summed = prim.summed_axes(eqn.params)
    if bits & (FOLDED | NEGATED | SPREAD) and (summed is not None or prim.adds_up):
        add_zero(notes, eqn, bits, summed)
    if summed is not None:
        x, y = operands = operands[:2]
        if bits & scaled and notes.of(x)[0] & notes.of(y)[0] & scaled:
            notes.fence(eqn, x)     # of vectors: the sum of the products
            bits, _ = notes.joined(operands)
        if bits and all(is_one(x.aval.shape[axis]) for axis in summed):
            notes.fence(eqn, *notes.those(operands, FENCED))
            notes.made[eqn.outvars[0]] = SCALED | bits & NARROWED, None
        return
    if prim.contracts and [*map(is_one, operands[1].aval.shape)].count(False) < 2:
        notes.fence(eqn, *notes.those(operands, FENCED))    # a convolution by one number
        notes.made[eqn.outvars[0]] = SCALED | bits & NARROWED, None
        return
    if prim.multiplies:     # LLVM multiplies the factors of one kernel in another order
        notes.held.update(notes.those(operands, scaled))
    bits &= FIXED | FOLDED | MERGED | REPEATED | SPREAD | (
        0 if notes.inexact[operands[0].aval] else NEGATED)
    if bits & MERGED and not prim.foreign and type(axes := eqn.params.get("axes")) is tuple:
        shape = operands[0].aval.shape
        if False in [     # names of axes of a mesh may be numbers
                type(axis) is int and axis < len(shape) and is_one(shape[axis])
                for axis in axes]:
            bits, number = bits & ~MERGED, None
    if bits:
        notes.made.update(dict.fromkeys(eqn.outvars, (bits, number)))


def _is_repeated(atom: Atom, made: Made, aval: Aval) -> bool:
    """Whether an operand is a scalar, or other elements repeated, at the result's shape."""
    return bool(made[0] & REPEATED) or atom.aval.shape != aval.shape
