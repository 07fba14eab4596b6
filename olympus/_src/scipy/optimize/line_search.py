"""A step along a direction that meets the strong Wolfe conditions."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ...base.typing import Array, ArrayLike
from ...control_flow.while_loop import while_loop
from ...numpy.arithmetic import absolute, maximum
from ...numpy.conditions import clip
from ...numpy.creation import asarray
from ...numpy.elementary import isfinite, sqrt
from ...numpy.selection import where
from ...types import dtypes


class Point(NamedTuple):
    """A point on the line: the step, the value, its derivative along the line, the gradient."""

    step: Array
    value: Array
    slope: Array
    grad: Array


class _Search(NamedTuple):
    low: Point          # the best point so far that descends enough
    high: Point         # the other end of the interval, if it is bracketed
    bracketed: Array
    trial: Array
    done: Array
    tried: Array


def line_search(along: Callable[[Array], Point], start: Point, first: Array, most: int,
                c1: float = 1e-4, c2: float = 0.9) -> tuple[Point, Array, Array]:
    """A step with f(a) <= f(0) + c1 a f'(0) and abs(f'(a)) <= c2 abs(f'(0)).

    Nocedal & Wright, "Numerical Optimization" (2006), algorithms 3.5 and 3.6, as one loop. Where
    the value cannot be told from the first by the precision of its dtype, the slope decides (the
    approximate conditions of Hager & Zhang, "A new conjugate gradient method with guaranteed
    descent and an efficient line search", 2005).

    Args:
      along: the point at a step.
      start: the point at step 0; its slope is negative.
      first: the step to try first.
      most: the most points to try.
    Returns: (point, whether it meets the conditions, number of points tried). The point is the
      start where none descended.
    """
    noise = 4 * float(dtypes.finfo(start.value.dtype).eps) * absolute(start.value)

    def body(s: _Search) -> _Search:
        p = along(s.trial)
        line = start.value + c1 * p.step * start.slope
        level = (p.value <= start.value + noise) & (p.slope <= (2 * c1 - 1) * start.slope)
        descends = ((p.value <= line) & (p.value < s.low.value)) | level
        done = descends & (absolute(p.slope) <= -c2 * start.slope)
        # Beyond the minimum: the interval ends at the old low end, which then is the new high.
        turns = descends & where(s.bracketed, p.slope * (s.high.step - p.step) >= 0, p.slope >= 0)
        high = pick(descends, pick(turns, s.low, s.high), p)
        low = pick(descends, p, s.low)
        bracketed = s.bracketed | ~descends | turns
        trial = where(bracketed, _between(low, high), 2 * p.step)
        # Nothing lies between neighbours.
        stuck = bracketed & ((trial == low.step) | (trial == high.step))
        return _Search(low, high, bracketed, trial, done | stuck, s.tried + 1)

    end = while_loop(lambda s: ~s.done & (s.tried < most), body, _Search(
        start, start, asarray(False), first, asarray(False), asarray(0)))
    met = (end.low.step > 0) & (absolute(end.low.slope) <= -c2 * start.slope)
    return end.low, met, end.tried


def pick(condition: ArrayLike, x: Point, y: Point) -> Point:
    """One of two points."""
    return Point(*[where(condition, a, b) for a, b in zip(x, y, strict=True)])


def _between(low: Point, high: Point) -> Array:
    """The minimum of the cubic through both ends, not near them; the middle if there is none."""
    width = high.step - low.step
    apart = where(width == 0, 1, width)
    bend = low.slope + high.slope - 3 * (high.value - low.value) / apart
    inner = bend * bend - low.slope * high.slope
    root = sqrt(maximum(inner, 0)) * where(width < 0, -1, 1)
    below = high.slope - low.slope + 2 * root
    at = 1 - (high.slope + root - bend) / where(below == 0, 1, below)
    good = isfinite(at) & (inner >= 0) & (below != 0)
    return low.step + width * clip(where(good, at, 0.5), 0.1, 0.9)
