"""Sizes of axes that a slice, say, leaves of an axis that several devices share.

XLA divides such a value where the whole one is divided, and moves the ends of parts. A call, as a
hold is, must have equal parts: where there are none, the value is exchanged as a whole, which adds
collectives.
"""

from __future__ import annotations

from ..core.ir import ClosedOlympuspr
from ..core.primitive import subolympusprs


def uneven_sizes(closed: ClosedOlympuspr, cut: frozenset[int], devices: int) -> frozenset[int]:
    """The sizes of axes that a program, and those within it, cut out of axes of the sizes `cut`, or
    put together to such, and that so many devices (0: not known yet) cannot have in equal parts.
    """
    # By size alone: an axis of such a size that is not cut counts too, and less is held for it.
    sizes = {*cut}
    pending, seen = [closed.olympuspr], {closed.olympuspr}
    while pending and cut:
        pr = pending.pop()
        for eqn in pr.eqns:
            if eqn.primitive.resizes:
                for pair in {pair for x in eqn.invars for v in eqn.outvars
                             for pair in zip(x.aval.shape, v.aval.shape)}:
                    if not sizes.isdisjoint(pair):
                        sizes |= {*pair} - {1}      # which other axes have, too
        inner = {*subolympusprs(pr)} - seen
        pending += inner
        seen |= inner
    return frozenset(n for n in sizes - cut if not devices or n % devices)
