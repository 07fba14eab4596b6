"""What a pass over the equations of a program looks at first: at kinds of operations, and bits.

`fences.py` has a step for each kind of operation, which takes a call or several. For most equations
a glance at the facts about their operands is enough to note the same.
"""

from __future__ import annotations

from typing import NamedTuple

from ..core.facts import Facts
from ..core.primitive import Primitive
from .made import (
    EXPONENTIAL, FACTORS, FIXED, FOLDED, INVERTIBLE, MERGED, MINUS, NARROWED, NEGATED, POWER,
    QUOTIENT, REPEATED, ROOT, SCALED, SHIFTED, SIGNED, SPREAD,
)

_CONSTANTS = FIXED | FOLDED     # behind a fence a value is the latter alone
# What an elementwise operation without algebra may leave of its operands.
_LASTING = FIXED | FOLDED | NARROWED | SPREAD | SIGNED
# The facts that an operation reads, where it asks only how its operands were computed.
READ = {"clamp": SIGNED, "comparison": SIGNED, "exclusive_or": SIGNED, "extremum": SIGNED,
        "logarithm": INVERTIBLE | POWER | QUOTIENT | ROOT, "sign": SIGNED}
# The glances at an equation: none; at its operands, of which few facts matter, or all; at one of
# floats; at two; at those of quotients, broadcasts, extrema, negatives and powers; at arrays whose
# elements it combines.
NONE, ANY, ONE, PAIR, QUOTIENTS, BROADCASTS, BOUNDS, NEGATIVES, POWERS, COMBINED = range(10)
_GLANCES = {"": ANY, "broadcast": BROADCASTS, "choice": ANY, "extremum": BOUNDS,
            "integer_power": POWERS, "move": ANY, "negation": NEGATIVES, "part": ANY,
            "quotient": QUOTIENTS}
# The facts of a result of floats whose operand has no known facts.
ALONE = {"absolute": 0, "exponential": EXPONENTIAL, "logarithm": 0,
         "logistic": QUOTIENT,    # 1 / (1 + exp(-x))
         "root": ROOT, "sign": 0, "square": 0}
_SCALED = SCALED | SCALED << MINUS


class Glance(NamedTuple):
    """A kind of glance; what is noted of the result: if one of two operands is a number, or a
    scalar; the number with which they are the other operand; what of one operand needs the step;
    what of both together does; what of the operand beside a number does, and what passes on of it.
    """

    at: int
    kind: int = 0
    neutral: float | None = None
    alone: int = -1
    together: int = 0
    beside: int = -1
    passed: int = 0


_PAIRS = {
    "comparison": Glance(PAIR, 0, None, _CONSTANTS | SIGNED, 0, ~SPREAD),
    "difference": Glance(PAIR, SHIFTED, 0, _CONSTANTS, 0, _CONSTANTS | SHIFTED, SPREAD),
    "product": Glance(
        PAIR, SCALED, 1, _CONSTANTS,
        EXPONENTIAL | REPEATED | SCALED | (EXPONENTIAL | SCALED) << MINUS,
        _CONSTANTS | SCALED, FACTORS | SPREAD),
    "sum": Glance(
        PAIR, SHIFTED, 0, _CONSTANTS, SCALED, _CONSTANTS | SHIFTED, SPREAD)}
QUOTIENT_BY = _PAIRS["product"]._replace(at=QUOTIENTS)     # the glance at one by a number
# Operations on one operand that hand on that it is repeated, and otherwise what they read of it.
_READERS = {"exponential": MERGED, "logarithm": READ["logarithm"], "logistic": 0, "root": 0,
            "sign": READ["sign"]}


class Glances(dict[Primitive, tuple[int, int, float | None, int, int, int, int]]):
    """The glance at the equations of a primitive, as a plain tuple, which is unpacked quicker."""

    def __missing__(self, prim: Primitive) -> tuple[int, int, float | None, int, int, int, int]:
        at, kind, neutral, alone, together, beside, passed = _glance(prim)
        glance = self[prim] = at, kind, neutral, alone, together, beside, passed
        return glance


def _glance(prim: Primitive) -> Glance:
    algebra = prim.algebra
    if algebra in _PAIRS:
        return _PAIRS[algebra]
    if algebra == "quotient":
        return QUOTIENT_BY
    if algebra in ALONE:
        reads = _READERS.get(algebra)
        return Glance(ONE, ALONE[algebra], alone=-1 if reads is None else _CONSTANTS | reads)
    if prim.fusion == "reduces" and not prim.multiplies and not prim.foreign:
        return Glance(COMBINED, alone=~MERGED)
    if not algebra and type(prim).summed_axes is not Facts.summed_axes:
        return Glance(COMBINED, alone=~(MERGED | NEGATED | REPEATED), together=_SCALED)
    alone = _LASTING if prim.elementwise and not algebra else -1
    return Glance(_GLANCES.get(algebra, NONE), alone=alone)
