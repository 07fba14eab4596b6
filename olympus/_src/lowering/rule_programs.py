"""The programs of lowering rules: each is recorded once, and kept.

A rule may emit its equation by a function of other operations. To record that function costs more
than to emit its operations, so one program serves all equations of a primitive, params and types.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from types import CodeType
from typing import Any, TypeAlias

from ..base.typing import Array
from ..base.util import Memo
from ..core.context import current_context
from ..core.ir import ClosedOlympuspr, OlympusprEqn
from ..core.staging import stage
from ..types.avals import ShapedArray

OfArrays: TypeAlias = Callable[..., Any]    # a function of lax operations: an array, or a sequence
# A program of more equations is emitted as a function. A function costs as much as ten operations,
# and a call of it as much as one.
LONG = 12

_programs: Memo = Memo(512)


def staged(fun: OfArrays, avals: Sequence[ShapedArray]) -> ClosedOlympuspr:
    """The program of a function that returns one value or a sequence of them."""
    def flat(*args: Array) -> list[Array]:
        out = fun(*args)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    return stage(flat, avals)


def rule_program(eqn: OlympusprEqn, avals_in: Sequence[ShapedArray], platform: str | None,
                 fun: OfArrays, avals: Sequence[ShapedArray]) -> ClosedOlympuspr:
    """The program of `fun` on values of `avals`, which emits an equation on `avals_in`."""
    code, partial = _code(fun)
    # The code's id is the key, because hashing a code object hashes its constants; the entry keeps
    # the code alive.
    key = (eqn.primitive, *eqn.params.items(), *avals_in, None, *avals, platform, id(code),
           *partial, current_context())
    found = _programs.get(key)
    if found is None:
        found = _programs[key] = staged(fun, avals), code
    return found[0]


def _code(fun: Any) -> tuple[CodeType, list[tuple[type, Hashable]]]:
    """The code of a rule, since one rule may have several function objects, and the arguments that
    a partial gives it.
    """
    partial = list[tuple[type, Hashable]]()
    while isinstance(fun, functools.partial):
        partial += [(type(x), x) for x in (*fun.args, *fun.keywords, *fun.keywords.values())]
        fun = fun.func
    return fun.__code__, partial
