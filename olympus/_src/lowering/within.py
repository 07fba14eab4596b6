"""The values that XLA may compute within a function or a body that is given constants.

`fences.py` plans each program by itself, but XLA also looks into calls: where the arguments are
constants, it computes the function's values when it compiles. LLVM's exponentials are undefined for
a NaN that arises so; an added 0 is dropped, and with it the sign of the other term.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Sequence
from typing import NamedTuple, TypeAlias

from ..core.ir import Atom, ClosedOlympuspr, Literal, OlympusprEqn, derived
from ..core.primitive import Primitive
from ..types import dtypes
from ..types.avals import is_float0
from .known_numbers import Number, is_infinite, is_nan, ratio, rounded
from .made import number_of


class Constant(NamedTuple):
    """A value that XLA knows. `number` is that of all elements, None if they differ or are not
    known here; `argument` and `ours` tell whether it is an argument, and computed from one.
    """

    number: Number
    finite: bool = True
    argument: bool = True
    ours: bool = True


Constants: TypeAlias = tuple[Constant | None, ...]
_CLOSED_OVER = Constant(None, argument=False, ours=False)
# Kinds of operations whose results may be infinite though their operands are finite.
_INFINITE = {"exponential", "logarithm", "power", "quotient", "root", "integer_power"}
_RESULTS: dict[str, Callable[[complex, complex], Number]] = {
    "difference": operator.sub, "product": operator.mul, "quotient": ratio, "sum": operator.add}


class Within(NamedTuple):
    """`harmful`: a NaN may arise from constants, or a value computed from them that may be 0 is
    added to another one. `results`: the constants that XLA finds for the results.
    """

    harmful: bool
    results: Constants


@derived
def within(closed: ClosedOlympuspr, given: Constants) -> Within:
    """What XLA may compute of a program's arguments; `given` has their constants."""
    pr = closed.olympuspr
    known: dict[Atom, Constant] = dict.fromkeys(pr.constvars, _CLOSED_OVER)
    known.update((v, c) for v, c in zip(pr.invars, given, strict=True) if c is not None)
    for eqn in pr.eqns:
        operands = [known.get(x) if type(x) is not Literal else x for x in eqn.invars]
        constants = [_of_literal(x) if type(x) is Literal else x for x in operands
                     ] if None not in operands else None
        if constants is None and True not in [type(x) is Constant and x.ours for x in operands]:
            continue
        if eqn.primitive.programs != ():
            results = results_of(eqn, operands)
        else:
            results = _computed(eqn, operands, constants)
        if results is None:
            return Within(True, (None,) * len(pr.outvars))
        known.update((v, c) for v, c in zip(eqn.outvars, results) if c is not None)
    return Within(False, tuple([
        _of_literal(x) if type(x) is Literal else known.get(x) for x in pr.outvars]))


def _of_literal(x: Literal) -> Constant:
    return Constant(number_of(x), argument=False, ours=False)


def results_of(eqn: OlympusprEqn, operands: Sequence[Constant | Literal | None]
               ) -> Constants | None:
    """The results of a call that XLA knows; None if there is harm."""
    prim = eqn.primitive
    given = [_of_literal(x) if type(x) is Literal else x for x in operands]
    found = []
    for _, body, its in prim.applied(eqn.params, given):
        if type(body) is ClosedOlympuspr:
            found.append(within(body, tuple(its)))
            if found[-1].harmful:
                return None
    if len(found) == 1 == prim.times(eqn.params):
        return found[0].results
    return (None if None in given else Constant(None, False, False),) * len(eqn.outvars)


def _computed(eqn: OlympusprEqn, operands: Sequence[Constant | Literal | None],
              constants: Sequence[Constant] | None
              ) -> Constants | None:
    """The results of an operation that XLA knows; None if there is harm."""
    prim, outs = eqn.primitive, eqn.outvars
    if not outs:
        return ()
    aval = outs[0].aval
    inexact = not is_float0(aval) and dtypes.is_inexact(aval.dtype)
    if constants is None:
        terms = operands if prim.algebra == "sum" else (
            operands[1:] if prim.algebra == "difference" else ())
        if inexact and True in [type(c) is Constant and not c.argument and not c.number
                                for c in terms]:
            return None
        return ()
    if True not in [c.ours for c in constants]:
        return (_CLOSED_OVER,) * len(outs)
    number = _number_of(eqn, [c.number for c in constants]) if inexact else None
    finite = False not in [c.finite for c in constants]
    if inexact and (is_nan(number) or number is None and _may_be_nan(prim, constants, finite)):
        return None
    finite = finite and prim.algebra not in _INFINITE and not is_infinite(number)
    return (Constant(number, finite, False),) * len(outs)


def _number_of(eqn: OlympusprEqn, numbers: Sequence[Number]) -> Number:
    operation = _RESULTS.get(eqn.primitive.algebra)
    if eqn.primitive.algebra in ("broadcast", "move"):
        return numbers[0]
    x, y = numbers if len(numbers) == 2 else (None, None)
    if operation is None or x is None or y is None:
        return None
    try:
        number = operation(x, y)
    except OverflowError:       # of complex numbers
        return None
    return None if number is None else rounded(number, eqn.outvars[0].aval.dtype)


def _may_be_nan(prim: Primitive, constants: Sequence[Constant], finite: bool) -> bool:
    """Whether the result of known operands may be NaN, though none of them is."""
    if not prim.makes_nan:
        return False
    number = constants[0].number
    if prim.domain is not None:
        return number is None or isinstance(number, complex) or not (
            prim.domain[0] <= number <= prim.domain[1])
    if prim.additive or prim.linear or prim.algebra in ("absolute", "exponential", "square"):
        return not finite
    if prim.divides:
        return not (finite and constants[1].number)
    if prim.algebra == "power" and len(constants) == 2:
        return isinstance(number, complex) or not (
            number is not None and number > 0 and math.isfinite(number) and finite)
    return True
