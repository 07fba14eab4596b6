"""Axis sizes that a slice or pad of a sharded axis leaves, and that devices cannot share equally.

XLA splits such a value where the original is split, and moves the ends of parts. A call, such as a
hold, needs equal parts: otherwise XLA gathers the value, which adds collectives.
"""

from __future__ import annotations

from ..core.ir import ClosedOlympuspr
from ..core.primitive import programs_within


def uneven_sizes(closed: ClosedOlympuspr, cut: frozenset[int], devices: int) -> frozenset[int]:
    """The axis sizes that operations of a program, and of programs in it, make from axes of the
    sizes `cut`, and that `devices` (0: unknown yet) do not divide.
    """
    # By size alone: an unsharded axis of such a size counts, too, so a value may not be held.
    sizes = {*cut}
    for pr in programs_within(closed.olympuspr) if cut else ():
        for eqn in pr.eqns:
            if eqn.primitive.resizes:
                for pair in {pair for x in eqn.invars for v in eqn.outvars
                             for pair in zip(x.aval.shape, v.aval.shape)}:
                    if not sizes.isdisjoint(pair):
                        sizes |= {*pair} - {1}      # which other axes have, too
    return frozenset(n for n in sizes - cut if not devices or n % devices)
