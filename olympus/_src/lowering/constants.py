"""Results that XLA computes from constant operands, and constants that are hidden from it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from ..core.ir import Atom, Literal, OlympusprEqn, Var
from ..types.avals import make_aval
from .instead import PlusZeroAfter, beside_computed, has_nan_bits
from .known_numbers import Number, is_nan, rounded
from .made import (
    ALIKE, COMPUTED, FOLDED, MERGED, SPREAD, Made, is_one, is_term, is_zero, may_be_zero, value_of,
)
from .nan_constants import lower_as_nan, may_be_nan
from .notes import Notes


def is_known(notes: Notes, eqn: OlympusprEqn, p: Made, q: Made,
             operation: Callable[[complex, complex], Number]) -> bool:
    """Whether the result is a constant, or NaN because an operand is.

    A NaN is hidden from XLA, and so is a result that XLA may compute as NaN from constants.
    """
    x, y = value_of(p), value_of(q)
    nan = is_nan(x), is_nan(y)
    out = eqn.outvars[0]
    if x is not None and y is not None:
        number = operation(x, y)
        if number is None:
            notes.made[out] = COMPUTED
        else:
            notes.note_constant(eqn, rounded(number, out.aval.dtype))
    elif True not in nan:
        computed = p if p[0] & FOLDED else q
        if may_be_zero(computed) and p[0] & FOLDED != q[0] & FOLDED and not eqn.params and (
                has_nan_bits(out.aval) and may_be_nan(notes, eqn.invars[computed is not p])):
            notes.lower_as(eqn, beside_computed[eqn.primitive.algebra], *eqn.invars,
                           *(eqn.invars if computed is p else eqn.invars[::-1]))
        return False
    else:
        lower_as_nan(notes, eqn, eqn.invars[nan[0]])
    return True


def is_constant(notes: Notes, eqn: OlympusprEqn) -> bool:
    """Whether the result is known: NaN outside of the domain, or 0 of a linear function of 0."""
    prim, operands = eqn.primitive, eqn.invars
    if prim.domain is not None:
        number = value_of(notes.of(operands[0]))
        if number is not None and not isinstance(number, complex) and not (
                prim.domain[0] <= number <= prim.domain[1]):
            notes.note_constant(eqn, math.nan)
            return True
    elif (prim.additive or len(prim.linear) == len(operands) == 1) and (
            False not in [_is_plus_zero(notes.of(a)) for a in operands]):
        notes.note_constant(eqn, 0.0)
        return True
    return False


def _is_plus_zero(made: Made) -> bool:
    """Whether a value is the constant +0, in both parts."""
    return is_zero(made, 1) and not is_zero(made, -1)


def add_zero(notes: Notes, eqn: OlympusprEqn, bits: int, summed: Sequence[int] | None) -> None:
    """Make a sum of elements that XLA computes without adding up +0 in place of -0.

    `summed`: the first operand's summed axes if it is a sum of products.
    """
    prim, x, params = eqn.primitive, eqn.invars[0], eqn.params
    if not notes.inexact[eqn.outvars[0].aval] or summed is not None and not bits & SPREAD and (
            not notes.those(eqn.invars, ALIKE)):
        return
    sizes = params.get("window_dimensions")
    if sizes is None:
        axes = params.get("axes", summed)
        sizes = [x.aval.shape[i] for i in ([params["axis"]] if axes is None else axes)]
    if value_of(notes.of(x)) or _is_plus_zero(notes.of(x)) or all(map(is_one, sizes)):
        return
    if bits & (FOLDED | SPREAD):
        notes.lower_as(eqn, PlusZeroAfter(prim), *eqn.invars, params=params)
    else:   # XLA must sum negatives, not negate the sum
        if prim.adds_up and not bits & MERGED:
            notes.negatives.add(x)
        notes.fence(eqn, x)


def hide(notes: Notes, eqn: OlympusprEqn, *atoms: Atom) -> None:
    """Let an equation read constants from memory."""
    for atom in atoms:
        if atom in notes.closed_over:
            notes.constant_vars[atom] = None
            continue
        if atom.aval.tagged:
            notes.held.update([] if is_term(atom.aval) else [atom])
            continue
        # Hide the scalar of an array, so that its readers still include the broadcast.
        var: Any = Var(atom.aval)
        number: Any = value_of(notes.of(atom))
        notes.constant_vars[var] = Literal(number, make_aval((), atom.aval.dtype))
        entry = notes.entry(eqn)
        notes.fences[-1] = entry._replace(lowered=entry.lowered.replace(
            invars=[var if x is atom else x for x in entry.lowered.invars]))
