"""How values of a program were computed, as `fences.py` notes it: bits of a set, and a number."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

from ..base.typing import DimSize
from ..core.ir import Literal
from ..types import dtypes
from ..types.avals import Aval, ShapedArray, is_float0
from ..types.shape import SymbolicDim
from .known_numbers import Number

# How a value was computed, to the operation that reads it, as bits of a set:
CONSTANT = 1           # it is one,
FIXED = 2              # or one if arguments are
SPREAD = 4             # from repeated scalars alone, so that XLA repeats the result
REPEATED = 8           # other elements, several times
SCALED = 16            # the product or quotient of something and a constant
SHIFTED = 32           # the sum or difference of those
UNSIGNED = 64          # an integer that would not be negative if integers had no bounds
QUOTIENT = 128
POWER = 256
ROOT = 512             # the reciprocal of a square root
EXPONENTIAL = 1024
INVERTIBLE = 2048      # the exponential of an operand that an operation could be merged with
CLAMPED = 4096
NARROWED = 8192        # an integer of a conversion to fewer bits
FOLDED = 16384         # of constants alone, so that XLA may know its elements
NEGATED = 32768        # the negative of something
ALL = (CLAMPED | EXPONENTIAL | INVERTIBLE | NARROWED | POWER | QUOTIENT | ROOT | SCALED
        | SHIFTED | UNSIGNED)
# These kinds of the operand of a negation, which another one, a square or an absolute value undoes.
MINUS = 16
MERGED = ALL | ALL << MINUS
FENCED = MERGED & ~(NARROWED | NARROWED << MINUS)      # held in memory are integers narrowed
# Divisors that XLA moves into the dividend, or takes the reciprocal of.
DIVISORS = EXPONENTIAL | POWER | QUOTIENT | REPEATED | SPREAD | FIXED
# Kinds whose merging does harm to ordinary numbers.
HARMFUL = INVERTIBLE | POWER | QUOTIENT | ROOT
HARMFUL |= HARMFUL << MINUS
SIGNED = CLAMPED | UNSIGNED      # operations that read the sign of integers
ALIKE = FIXED | FOLDED | SPREAD           # what all operands have to be for the result to be it
# The facts that a product by a constant keeps, since constants may be merged to 1.
FACTORS = EXPONENTIAL | INVERTIBLE | POWER | QUOTIENT | REPEATED | ROOT | SCALED
FACTORS |= (FACTORS & ALL) << MINUS


# The set, and the number of the constant that it is about. A named tuple would double the time of
# the pass.
Made: TypeAlias = tuple[int, Number]
UNKNOWN: Made = 0, None
GIVEN: Made = FIXED, None         # an argument, the result of a call
CONSTANTS = CONSTANT | FIXED | FOLDED
KNOWN: Made = CONSTANTS, None
COPIES: Made = REPEATED | SPREAD, None
SPREADS: Made = SPREAD, None
SPREAD_CONSTANT = CONSTANTS | SPREAD
COMPUTED: Made = FIXED | FOLDED, None
DIVIDED: Made = QUOTIENT, None
NEGATIVE: Made = NEGATED, None
REAL = float, int


def negated(made: Made) -> Made:
    """How the negative of a value was computed."""
    bits, number = made
    if bits & MERGED:
        bits = bits & ~MERGED | (bits & ALL) << MINUS | bits >> MINUS & ALL
    return bits, None if number is None else -number


def value_of(made: Made) -> Number:
    """The number that an operand is, if it is known to be one."""
    return made[1] if made[0] & CONSTANT else None


def number_of(literal: Literal) -> Number:
    """The number of a literal, None for a symbolic size and a zero of float0."""
    value = literal.raw
    if type(value) in REAL:
        return value
    if isinstance(value, SymbolicDim) or is_float0(literal.aval):
        return None
    return complex(value) if dtypes.is_complex(literal.aval.dtype) else float(value)


def is_zero(made: Made, sign: int = 0) -> bool:
    """Whether a value is the constant 0, of this sign if one is given, which a complex 0 may have
    in one part alone.
    """
    number = value_of(made)
    if number != 0 or not sign:
        return number == 0
    if type(number) is complex and math.copysign(1, number.imag) == sign:
        return True
    return math.copysign(1, number.real) == sign


def may_be_zero(made: Made) -> bool:
    """Whether XLA may compute a value, which is not a constant itself, and find 0."""
    return made[0] & (CONSTANT | FOLDED) == FOLDED


def is_single(shape: Sequence[object]) -> bool:
    """Whether an array has one element: XLA moves constants of such further."""
    return not shape or shape.count(1) == len(shape)


def is_term(aval: Aval) -> bool:
    """Whether devices have yet to sum a value: a choice by its bits would be one after the sum."""
    return isinstance(aval, ShapedArray) and bool(aval.sums[0])


def is_one(size: DimSize) -> bool:
    return isinstance(size, int) and size == 1


def is_integer(aval: Aval) -> bool:
    return not is_float0(aval) and dtypes.is_integer(aval.dtype)
