"""Python's recursion limit grows with the nesting of programs: each level has frames of its own.

A limit is for recursion without end. Functions that are jitted inside one another, and loops inside
loops, nest on purpose, and every pass over a program of that depth takes some frames per level.
"""

from __future__ import annotations

import sys

FRAMES = 20         # a level of the deepest passes takes 13, with a custom rule in between more
GIVEN = 16          # so many levels fit into Python's own limit, next to the user's frames
MOST = 400          # deeper recursion has no end; C's stack has one
_limit = sys.getrecursionlimit()
_deepest = GIVEN


def make_room(levels: int) -> None:
    """See that so many nested levels fit in. The limit is never lowered: others may be deep, too.

    >>> make_room(17); sys.getrecursionlimit() >= 17 * FRAMES
    True
    """
    global _deepest
    if levels > _deepest and levels <= MOST:
        _deepest = min(2 * levels, MOST)
        sys.setrecursionlimit(max(sys.getrecursionlimit(), _limit + FRAMES * _deepest))
