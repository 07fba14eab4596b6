"""Fixpoints over loop carries, shared by scan and while.

A property of carry elements ("has a tangent", "is mapped", "is unknown") spreads through the body:
what goes out with it must come in with it. Flags only ever turn on, so at most as many rounds as
there are carries.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..core.ir import ClosedOlympuspr
from ..interpreters.partial_eval import Split, partial_eval_program

__all__ = ["carry_fixpoint", "split_body"]


def carry_fixpoint(start: tuple[bool, ...],
                   step: Callable[[tuple[bool, ...]], tuple[Any, tuple[bool, ...]]]
                   ) -> tuple[Any, tuple[bool, ...]]:
    """Iterate `step(flags in) -> (result, flags out)` until nothing is added.

    Returns the last result with the flags that hold for carries both going in and coming out.
    """
    # At the end what comes out is among what goes in, but may be less. A step that makes a body
    # therefore forces the flags it is given onto its outputs, so that the carry keeps its types.
    flags = start
    while True:
        result, out = step(flags)
        grown = tuple(a or b for a, b in zip(flags, out, strict=True))
        if grown == flags:
            return result, flags
        flags = grown


def split_body(body: ClosedOlympuspr, unknown_consts: Sequence[bool], start: tuple[bool, ...]
               ) -> tuple[Split, tuple[bool, ...]]:
    """A loop's body (consts, carry) -> carry cut in two, and which carries are unknown.

    One that any iteration makes unknown is unknown from the start, in all of them.
    """
    def step(unknown: tuple[bool, ...]) -> tuple[Split, tuple[bool, ...]]:
        split = partial_eval_program(body, (*unknown_consts, *unknown), unknown)
        return split, split.unknown_out

    return carry_fixpoint(start, step)
