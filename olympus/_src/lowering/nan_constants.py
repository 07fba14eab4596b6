"""Constants that are NaN, or from which NaN is computed.

LLVM takes an exponential of a known NaN for undefined: it gives uninitialised memory. So operations
are lowered as NaN whose bits it does not know, and constants are hidden.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from ..core.ir import Atom, Literal, OlympusprEqn
from .instead import has_nan_bits, nan_p
from .known_numbers import is_nan
from .made import CONSTANT, FOLDED, Made, is_integer, number_of, value_of
from .notes import Notes
from .within import Constant, results_of


def is_made_nan(notes: Notes, eqn: OlympusprEqn) -> bool:
    """Whether an operand of an operation that hands NaN on is NaN; it is hidden then."""
    prim, operands, aval = eqn.primitive, eqn.invars, eqn.outvars[0].aval
    if not (len(operands) > 1 and prim.hands_on_nan and notes.inexact[aval]) or (
            True not in [is_nan(value_of(notes.of(a))) for a in operands]):
        return False
    for x in operands:
        if x.aval.dtype == aval.dtype and x.aval.shape == aval.shape and (
                value_of(notes.of(x)) is None):
            lower_as_nan(notes, eqn, x)
            return True
    return False


def lower_as_nan(notes: Notes, eqn: OlympusprEqn, x: Atom) -> None:
    """Lower an equation as NaN whose bits are computed from an operand."""
    out = eqn.outvars[0]
    if has_nan_bits(out.aval):
        notes.lower_as(eqn, nan_p, x)
    else:
        notes.held.add(out)


def may_be_nan(notes: Notes, root: Atom) -> bool:
    """Whether a value that XLA computes of constants may be NaN, as its operations tell."""
    pending = [root]
    while pending:
        atom = pending.pop()
        found = notes.nan.get(atom) if type(atom) is not Literal else is_nan(number_of(atom))
        if found is None:
            eqn, number = notes.maker(atom), value_of(notes.of(atom))
            if number is not None or not notes.inexact[atom.aval]:
                found = is_nan(number)
            elif eqn is None:
                found = atom not in notes.closed_over or bool(
                    np.isnan(np.asarray(notes.closed_over[atom])).any())
            else:
                found = eqn.primitive.makes_nan
                pending += [] if found else eqn.invars
            notes.nan[atom] = found
        if found:
            notes.nan[root] = True
            return True
    return False


def undefined(notes: Notes, eqn: OlympusprEqn, pairs: Iterable[tuple[Atom, Made]]) -> list[Atom]:
    """The constants from which a call may compute NaN or a term, and those that may be NaN."""
    given = {a: p for a, p in pairs if p[0] & FOLDED}
    its = {a: Constant(value_of(p), p[0] & CONSTANT > 0 and is_finite(notes, a, p))
           for a, p in given.items()}
    if results_of(eqn, [its.get(a) for a in eqn.invars]) is None:
        return [a for a in given if notes.inexact[a.aval] or is_integer(a.aval)]
    return [a for a, p in given.items() if value_of(p) is None and may_be_nan(notes, a)]


def is_finite(notes: Notes, atom: Atom, made: Made) -> bool:
    """Whether each element of a constant is finite."""
    number = value_of(made)
    if not notes.inexact[atom.aval]:
        return True
    if number is None and atom in notes.closed_over:
        return bool(np.isfinite(np.asarray(notes.closed_over[atom])).all())
    return number is not None and bool(np.isfinite(number))
