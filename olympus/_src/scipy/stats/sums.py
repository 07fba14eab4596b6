"""Sums over the integers of a distribution: probabilities and entropies without a formula.

Terms are added from where they are large to where they are negligible, so that a sum takes about
as many steps as the distribution is wide; a sum of more than 2**22 terms is NaN.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...autodiff.derivatives import jvp
from ...base.typing import Array, ArrayLike
from ...control_flow.while_loop import while_loop
from ...custom.jvp import custom_jvp
from ...custom.rules import SymbolicZero
from ...lax.barriers import stop_gradient
from ...numpy.conditions import where
from ...numpy.creation import ones_like
from ...numpy.manipulation import broadcast_arrays
from ...numpy.reductions import any as any_of
from ...types import dtypes

_LONGEST = 2**22       # terms of a sum, each waiting for its predecessor


def _sums(terms: Callable[..., tuple], count: int, step: Array, start: Array, low: Array,
          high: Array, params: Sequence[Array]) -> tuple:
    """The sums of `count` terms(k, *params); the first says when all the rest is negligible."""
    tiny = 1e-3 * float(dtypes.finfo(start.dtype).eps)

    def ended(k: Array) -> Array:       # steps of large floats, of infinity and of NaN lead nowhere
        return ~((k >= low) & (k <= high) & (k + step != k))

    def added(state: tuple) -> tuple:
        k, done, last, totals, count = state
        new = terms(where(done, start, k), *params)
        totals = tuple(where(done, t, t + n) for t, n in zip(totals, new, strict=True))
        # Terms that grow are on their way to the mode, however small they are.
        negligible = ~(new[0] > last) & ~(new[0] > tiny * totals[0])    # or NaN
        return k + step, done | negligible | ended(k + step), new[0], totals, count + 1

    zero = 0.0 * start
    first = (start, ended(start), zero, (zero,) * count, np.int32(0))
    _, done, _, totals, _ = while_loop(
        lambda state: any_of(~state[1]) & (state[4] < _LONGEST), added, first)
    return tuple(where(done, t, math.nan) for t in totals)


@partial(custom_jvp, nondiff_argnums=(0,))
def _series(term: Callable[..., Array], step: Array, start: Array, low: Array, high: Array,
            params: tuple) -> Array:
    return _sums(lambda k, *params: (term(k, *params),), 1, step, start, low, high, params)[0]


def _series_jvp(term: Any, primals: Any, tangents: Any) -> Any:
    step, start, low, high, params = primals
    moving = [i for i, t in enumerate(tangents[4]) if type(t) is not SymbolicZero]

    def slope(i: int, k: ArrayLike, params: tuple) -> Array:
        def of(p: ArrayLike) -> Array:
            return term(k, *params[:i], p, *params[i + 1:])

        return jvp(of, (params[i],), (ones_like(params[i]),))[1]

    def terms(k: ArrayLike, *params: ArrayLike) -> tuple:
        return (term(k, *params), *(slope(i, k, params) for i in moving))

    value, *slopes = _sums(terms, 1 + len(moving), step, start, low, high, params)
    return value, sum((s * tangents[4][i] for s, i in zip(slopes, moving, strict=True)),
                      0.0 * start)


_series.defjvp(_series_jvp, symbolic_zeros=True)


def series(term: Callable[..., Array], step: ArrayLike, start: ArrayLike, low: ArrayLike,
           high: ArrayLike, params: Sequence[Array]) -> Array:
    """The sum of term(k, *params) for k = start, start + step, … between low and high.

    Terms are positive, have one maximum, and are negligible once they have fallen below the last
    place of the sum. Differentiable in the parameters, forwards and backwards.
    """
    none = 0.0 * start
    step, start, low, high, *params = broadcast_arrays(step + none, start, low + none, high + none,
                                                       *params)
    step, start, low, high = map(stop_gradient, (step, start, low, high))
    return _series(term, step, start, low, high, tuple(params))
