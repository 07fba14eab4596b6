"""Evaluate an olympuspr: bind each equation again, in the current trace."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from ..base.typing import Array, ArrayLike
from .context import ROOT, ctx
from .ir import ClosedOlympuspr, Olympuspr, OlympusprEqn, Var, numbers, read
from .staging import StagingTrace
from .trace import Trace


def eval_olympuspr(olympuspr: Olympuspr, consts: Sequence[ArrayLike], *args: ArrayLike,
                   propagate_source_info: bool = True) -> list[Array]:
    """Run the program on values (or tracers) in the current trace.

    Args:
      olympuspr: the open program.
      consts: one value for each of its constvars.
      *args: one value for each of its invars.
      propagate_source_info: whether equations that are recorded meanwhile name the lines of the
        program's equations, instead of the caller's.

    >>> closed = olympus.make_olympuspr(lambda x, y: x * y + 1)(1, 1)
    >>> [int(out) for out in olympus.core.eval_olympuspr(closed.olympuspr, closed.consts, 3, 4)]
    [13]
    """
    return numbers(_with_lines(olympuspr, consts, args) if propagate_source_info else
                   evaluate(olympuspr, consts, args, bind))


def eval_closed(closed: ClosedOlympuspr, *args: Any) -> list[Array]:
    """Run a closed program in the current trace; recorded equations get the program's lines."""
    return _with_lines(closed.olympuspr, closed.consts, args)


def evaluate(pr: Olympuspr, consts: Sequence[ArrayLike], args: Sequence[ArrayLike],
             step: Callable[[OlympusprEqn, list[Any]], Any]) -> list[Any]:
    """Run the program, each equation by `step(eqn, operands)`."""
    if len(args) != len(pr.invars):
        raise TypeError(f"eval_olympuspr: {len(args)} arguments given; the program takes "
                        f"{len(pr.invars)}; pass one value per input.")
    # Literals go to `step` unchanged: the current trace knows what to make of them.
    env: dict[Var, Any] = dict(zip(pr.constvars, consts, strict=True))
    env.update(zip(pr.invars, args, strict=True))
    for eqn in pr.eqns:
        out = step(eqn, read(eqn.invars, env))
        if eqn.primitive.multiple_results:
            env.update(zip(eqn.outvars, out, strict=True))
        else:
            env[eqn.outvars[0]] = out
    return read(pr.outvars, env)


def bind(eqn: OlympusprEqn, ins: Sequence[ArrayLike]) -> Any:
    """Bind an equation inside its named scopes, which are relative to its program."""
    if eqn.ctx is ROOT:
        return eqn.primitive.bind(*ins, **eqn.params)
    outer = ctx.scope
    ctx.scope = outer.extend(*eqn.ctx.names)
    try:
        return eqn.primitive.bind(*ins, **eqn.params)
    finally:
        ctx.scope = outer


def _with_lines(pr: Olympuspr, consts: Sequence[ArrayLike], args: Sequence[ArrayLike]
                ) -> list[Any]:
    """Run the program; equations that are recorded for one of its equations get that one's line."""
    recorders = [trace for trace in _enclosing(ctx.trace) if isinstance(trace, StagingTrace)]
    if not recorders:
        return evaluate(pr, consts, args, bind)
    outer_lines = [trace.source for trace in recorders]

    def step(eqn: OlympusprEqn, ins: list[ArrayLike]) -> Any:
        for trace, line in zip(recorders, outer_lines, strict=True):
            trace.source = eqn.source or line
        return bind(eqn, ins)

    try:
        return evaluate(pr, consts, args, step)
    finally:
        for trace, line in zip(recorders, outer_lines, strict=True):
            trace.source = line


def _enclosing(trace: Trace | None) -> Iterator[Trace]:
    """A trace, and all traces that it passes operations on to."""
    while trace is not None:
        yield trace
        trace = trace.parent
