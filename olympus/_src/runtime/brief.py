"""Whether a program is so short that the calling thread had better run it itself.

XLA:CPU runs a program in a thread of its own, so that the caller can go on. To wake that thread
takes about 40 us of CPU time a call, and delays the result as long; a shorter program gains nothing
by it. XLA itself runs only programs of fewer than 1,000 floating-point operations in the caller's
thread, whatever else they do; here the time of a program is estimated from its equations.
`tools/dispatch_table.py` measured the limit and the pace of each operation.
"""

from __future__ import annotations

import math

from ..core.ir import ClosedOlympuspr, Olympuspr, OlympusprEqn, derived

# In nanoseconds. At 100 us a call whose result is waited for becomes a third faster. In a loop of
# calls without waiting, the gain equals the loss of running beside the caller on a free core.
LIMIT = 1e5
_EQUATION = 20.0    # the least time of an equation, so that few are visited before the limit
_STEP = 400.0       # what an equation adds to each step of a loop, as a kernel of its own


@derived
def is_brief(closed: ClosedOlympuspr) -> bool:
    """Whether a program of one CPU device is estimated to take less than `LIMIT`."""
    return nanoseconds(closed.olympuspr) <= LIMIT


def nanoseconds(pr: Olympuspr, limit: float | None = None) -> float:
    """About how long a program takes on one core; infinite if longer than `limit`, or unknown."""
    total, limit = 0.0, LIMIT if limit is None else limit
    for eqn in pr.eqns:
        total += _EQUATION + _equation(eqn, limit - total)
        if total > limit:
            return math.inf
    return total


def _equation(eqn: OlympusprEqn, limit: float) -> float:
    prim, params = eqn.primitive, eqn.params
    ran = prim.applied(params, eqn.invars)
    if not ran:
        return _operation(eqn)
    times = prim.times(params)
    if prim.endless or times is None:
        return math.inf
    step = 0.0
    if prim.repeats:
        times, step = max(times, 1), _STEP
    bodies = [nanoseconds(body.olympuspr, limit / times) + step * len(body.olympuspr.eqns)
              for _, body, _ in ran]
    return times * (max(bodies) if prim.branches else sum(bodies))


def _operation(eqn: OlympusprEqn) -> float:
    ins, outs = [[getattr(v.aval, "shape", ()) for v in vs] for vs in (eqn.invars, eqn.outvars)]
    return eqn.primitive.work(ins, outs, eqn.params)
