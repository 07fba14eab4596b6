"""`debug_nans` and `debug_infs`: which operation makes a NaN, and where the user wrote it.

A program whose results have one is run again, equation by equation, into calls, branches and loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import lib, source
from ..base.config import debug_infs, debug_nans
from ..core.evaluate import bind, evaluate
from ..core.ir import ClosedOlympuspr, OlympusprEqn
from ..core.primitive import Higher
from ..types import dtypes

__all__ = ["check_results", "debugging"]


def debugging() -> bool:
    """Whether results are looked at."""
    return debug_nans.value or debug_infs.value


def check_results(name: str, closed: ClosedOlympuspr | None, args: Sequence[Any],
                  outs: Sequence[Any]) -> None:
    """Raise FloatingPointError if a result has a NaN (or an infinity, if so configured).

    Args:
      name: what the user called.
      closed: the program that gave the results, if the user wrote it.
      args: its arguments.
      outs: its results.
    """
    kinds = [(test, what, f"{option.name.removeprefix('olympus_')} is on")
             for option, test, what in ((debug_nans, np.isnan, "nan"),
                                        (debug_infs, np.isinf, "inf")) if option.value]
    for test, what, why in kinds:
        wrong = [x for x in outs if _has(test, x)]
        if not wrong:
            continue
        if closed is not None:
            # Else the operations of the second run would be checked, and raise, themselves.
            with debug_nans(False), debug_infs(False):
                found = _culprit(test, closed, args)
            if found is not None:
                prim, aval, where = found
                raise FloatingPointError(
                    f"{name}: invalid value ({what}) encountered in {prim}: the result {aval} of "
                    f"{prim} at {source.summarize(where)}, and {why}; look at the operands there.")
        raise FloatingPointError(
            f"{name}: invalid value ({what}) encountered in {name}: the result {wrong[0].aval}, "
            f"and {why}; look at the operands at this line.")


def _has(test: Any, x: Any) -> bool:
    return (type(x) is lib.ArrayImpl and dtypes.is_inexact(x.dtype)
            and bool(test(lib.to_numpy(x)).any()))


class _Found(Exception):
    """Carries (primitive, aval of the result, source) out of the programs it was found in."""


def _culprit(test: Any, closed: ClosedOlympuspr, args: Sequence[Any]) -> tuple | None:
    """The first equation that makes what `test` finds of operands that have none."""
    def step(eqn: OlympusprEqn, ins: list[Any]) -> Any:
        out = bind(eqn, ins)
        outs = out if eqn.primitive.multiple_results else [out]
        wrong = [x for x in outs if _has(test, x)]
        if wrong and not any(_has(test, x) for x in ins):
            # The bodies first: what is found in one is raised there, nearer to the cause.
            if isinstance(eqn.primitive, Higher):
                eqn.primitive.step_through(run, *ins, **eqn.params)
            raise _Found(eqn.primitive, wrong[0].aval, eqn.source)
        return out

    def run(closed: ClosedOlympuspr, *xs: Any) -> list[Any]:
        return evaluate(closed.olympuspr, closed.consts, xs, step)

    try:
        run(closed, *args)
    except _Found as found:
        return found.args
    return None
