"""Evaluate an olympuspr: bind each equation again, in the current trace."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .ir import ClosedOlympuspr, Literal, Olympuspr

__all__ = ["eval_closed", "eval_olympuspr"]


def eval_olympuspr(pr: Olympuspr, consts: Sequence[Any], *args: Any) -> list[Any]:
    """Run the program on values (or tracers) in the current trace.

    Args:
      pr: the open program.
      consts: one value for each of `pr.constvars`.
      *args: one value for each of `pr.invars`.

    Returns:
      The list of output values.
    """
    if len(args) != len(pr.invars):
        raise TypeError(f"eval_olympuspr: {len(args)} arguments given; the program takes "
                        f"{len(pr.invars)}; pass one value per input.")
    env: dict[Any, Any] = dict(zip(pr.constvars, consts))
    env.update(zip(pr.invars, args))
    for eqn in pr.eqns:
        ins = [a if type(a) is Literal else env[a] for a in eqn.invars]
        out = eqn.primitive.bind_eqn(ins, eqn.params)
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, out))
        else:
            env[eqn.outvars[0]] = out
    return [a if type(a) is Literal else env[a] for a in pr.outvars]


def eval_closed(closed: ClosedOlympuspr, *args: Any) -> list[Any]:
    """`eval_olympuspr` of a program that has its constants."""
    return eval_olympuspr(closed.olympuspr, closed.consts, *args)
