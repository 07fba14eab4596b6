"""Tables by which the pass of `fences.py` decides on most equations without a call.

The pass has a step, a method, for each kind of operation. For most equations a comparison of bits,
the facts about their operands, shows that the step would fence nothing, and what it would note.
"""

from __future__ import annotations

from typing import NamedTuple

from ..base.util import Memo
from ..core.facts import Facts
from ..core.primitive import Primitive
from .made import (
    EXPONENTIAL, FACTORS, FIXED, FOLDED, INVERTIBLE, MERGED, MINUS, NARROWED, NEGATED, POWER,
    QUOTIENT, REPEATED, ROOT, SCALED, SHIFTED, SIGNED, SPREAD,
)

_CONSTANTS = FIXED | FOLDED     # behind a fence a value is the latter alone
# The facts about operands that may also hold of the result of an elementwise operation.
_LASTING = FIXED | FOLDED | NARROWED | SPREAD | SIGNED
# The facts for which the step of an operation looks, if it looks at nothing else.
READ = {"clamp": SIGNED, "comparison": SIGNED, "exclusive_or": SIGNED, "extremum": SIGNED,
        "logarithm": INVERTIBLE | POWER | QUOTIENT | ROOT, "sign": SIGNED}
# The ways to glance at an equation: not at all; at any number of operands; at one float; at two
# operands; at the operands of quotients, broadcasts, extrema, negatives and powers; and at arrays
# whose elements are combined.
NONE, ANY, ONE, PAIR, QUOTIENTS, BROADCASTS, BOUNDS, NEGATIVES, POWERS, COMBINED = range(10)
_GLANCES = {"": ANY, "broadcast": BROADCASTS, "choice": ANY, "extremum": BOUNDS,
            "integer_power": POWERS, "move": ANY, "negation": NEGATIVES, "part": ANY,
            "quotient": QUOTIENTS}
# The facts about the result of an operation on one float about which nothing is known.
ALONE = {"absolute": 0, "exponential": EXPONENTIAL, "logarithm": 0,
         "logistic": QUOTIENT,    # 1 / (1 + exp(-x))
         "root": ROOT, "sign": 0, "square": 0}
_SCALED = SCALED | SCALED << MINUS


class Glance(NamedTuple):
    """How to glance at the equations of a primitive: `at` is the way. The result has the facts in
    `kind`; of two operands, if one is a number or a scalar. With the number `neutral` it is the
    other operand. The step is called if one operand has a fact in `alone`, both have one in
    `together`, or the operand beside a number has one in `beside`; this one's facts in `passed`
    hold of the result.
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
# Operations on one operand, with the facts for which their steps look; the result of a repeated
# element is repeated as well.
_READERS = {"exponential": MERGED, "logarithm": READ["logarithm"], "logistic": 0, "root": 0,
            "sign": READ["sign"]}


class _Glances(Memo):
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


GLANCES = _Glances(1024)
