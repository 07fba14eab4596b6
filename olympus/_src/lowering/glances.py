"""What a pass over the equations of a program looks at first: at kinds of operations, and bits.

`fences.py` has a step for each kind of operation, which takes a call or several. For most equations
a glance at the facts about their operands shows that the step would find nothing.
"""

from __future__ import annotations

from ..core.primitive import Primitive
from .made import (
    EXPONENTIAL, FIXED, MINUS, NARROWED, QUOTIENT, REPEATED, ROOT, SCALED, SHIFTED, SIGNED, SPREAD,
)

# What an elementwise operation without algebra may leave of its operands.
_LASTING = FIXED | NARROWED | SPREAD | SIGNED
# The glances at an equation: none; at its operands, of which few facts matter, or all; at one of
# floats, of which all do; at two; at those of quotients, broadcasts, extrema and
# negatives.
NONE, ANY, ONE, PAIR, QUOTIENTS, BROADCASTS, BOUNDS, NEGATIVES = range(8)
_GLANCES = {"": ANY, "broadcast": BROADCASTS, "choice": ANY, "extremum": BOUNDS, "move": ANY,
            "negation": NEGATIVES, "part": ANY, "quotient": QUOTIENTS}
# Operations on two operands: their result if one is a number, or a scalar; the number with which
# they are the other operand; what matters to them by itself; what does if both are among it.
_PAIRS: dict[str, tuple[int, float | None, int, int]] = {
    "comparison": (0, None, FIXED | SIGNED, 0),
    "difference": (SHIFTED, 0, FIXED, 0),
    "product": (SCALED, 1, FIXED, (
        EXPONENTIAL | REPEATED | SCALED | (EXPONENTIAL | SCALED) << MINUS)),
    "sum": (SHIFTED, 0, FIXED, SCALED)}
# The facts of a result of floats whose operand has no known facts.
ALONE = {"absolute": 0, "conversion": 0, "exponential": EXPONENTIAL, "logarithm": 0,
         "logistic": QUOTIENT,    # 1 / (1 + exp(-x))
         "root": ROOT, "sign": 0, "square": 0}


class Glances(dict[Primitive, tuple[int, int, float | None, int, int]]):
    """The glance at the equations of a primitive, and these facts of pairs."""

    def __missing__(self, prim: Primitive) -> tuple[int, int, float | None, int, int]:
        algebra = prim.algebra
        if algebra in _PAIRS:
            kind, neutral, alone, together = _PAIRS[algebra]
            found = PAIR, kind, neutral, alone, together
        elif algebra in ALONE:
            found = ONE, ALONE[algebra], None, 0, 0
        else:
            alone = _LASTING if prim.elementwise and not algebra else -1
            found = _GLANCES.get(algebra, NONE), 0, None, alone, 0
        self[prim] = found
        return found
