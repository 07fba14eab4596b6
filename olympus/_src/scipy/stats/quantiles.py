"""Numbers at which a monotone function takes a value: quantiles without a formula.

A bracket of floats is narrowed by Newton's steps and, where one leaves it or in every third step
after the first dozen, halved in the order of the floats themselves: by their bits as integers. So a
bracket of all floats needs as many halvings as a float has bits, wherever the answer is, and
nothing has to be known about the function.

Derivatives follow from the implicit function (Griewank & Walther, "Evaluating Derivatives", 2008,
ch. 15): of F(x, p) = q they are dx = (dq - dF/dp dp) / f with the density f.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

from ...autodiff.derivatives import jvp
from ...base.typing import Array, ArrayLike, DTypeLike
from ...control_flow.while_loop import while_loop
from ...custom.jvp import custom_jvp
from ...lax.barriers import stop_gradient
from ...lax.bits import shift_right_arithmetic
from ...lax.convert import bitcast_convert_type
from ...numpy.arithmetic import maximum, minimum
from ...numpy.conditions import where
from ...numpy.elementary import ceil, exp, floor, log
from ...numpy.reductions import any as any_of
from ...types import dtypes


def _integer(x: Array) -> Array:
    """A float's place among all floats, as an integer."""
    signed = dtypes.as_dtype(f"int{dtypes.itemsize_bits(x.dtype)}")
    bits = bitcast_convert_type(x, signed)
    return where(bits < 0, dtypes.iinfo(signed).min - bits, bits)


def _float(i: Array, dtype: DTypeLike) -> Array:
    return bitcast_convert_type(where(i < 0, dtypes.iinfo(i.dtype).min - i, i), dtype)


def _halfway(low: Array, high: Array) -> Array:
    """The float in the middle of those between two, nearer to the lower one."""
    a, b = _integer(low), _integer(high)
    both = a & b
    return _float(both + shift_right_arithmetic(a ^ b, 1), low.dtype)     # cannot overflow


def _bracket(low: ArrayLike, high: ArrayLike, *others: Array) -> list[Array]:
    """Finite bounds as arrays of the shape and dtype of all others, and those.

    The others keep their shapes: functions of numbers are computed once, and not for each element
    of a broadcast constant, where XLA's simplifier takes too many turns, and logs that.
    """
    info = dtypes.finfo(others[0].dtype)
    none = sum(0.0 * x for x in others)
    bounds = [minimum(maximum(x + none, float(info.min)), float(info.max)) for x in (low, high)]
    return [stop_gradient(x) for x in (*bounds, *others)]


def _search(above: Callable[..., tuple[Array, Array, Array]], low: Array, high: Array, start: Array,
            operands: Sequence[object]) -> Array:
    """The least float in (low, high] from which on `above` holds.

    `above(x, *given)` also gives where Newton's method would go on, or NaN, and whether that is the
    answer because the function is as near to its value as rounding allows.
    """
    eps = float(dtypes.finfo(low.dtype).eps)

    def narrowed(state: tuple) -> tuple:
        low, high, x, done, count = state
        holds, step, close = above(x, *operands)
        low, high = where(holds | done, low, x), where(holds & ~done, x, high)
        middle = _halfway(low, high)
        tight = middle <= low       # no float is between
        small = abs(step - x) <= 2.0 * eps * abs(x)
        settled = close | small
        inside = (step > low) & (step < high)
        # Where the function is flat, it may be close and the step, of its rounding alone, long.
        newton = inside & (small | (~close & ((count < 12) | (count % 3 != 2))))
        guess = where(tight, high, where(newton, step, where(settled, x, middle)))
        return low, high, where(done, x, guess), done | tight | settled, count + 1

    first = (low, high, start, ~(low < high), 0)     # NaN, and supports of one number, are done
    return while_loop(lambda state: any_of(~state[3]), narrowed, first)[2]


Distributed: TypeAlias = Callable[..., Array]       # of a number or a probability, and params
Inverted: TypeAlias = tuple[Array, Array, Array, Sequence[Array]]   # q, low, high, params


@partial(custom_jvp, nondiff_argnums=(0, 1, 2))
def _inverse(fun: Distributed, density: Distributed, rising: bool, q: Array, low: Array,
             high: Array, params: Sequence[Array]) -> Array:
    def above(x: Array, q: Array, *params: Array) -> tuple[Array, Array, Array]:
        y = fun(x, *params)
        close = abs(y - q) <= float(dtypes.finfo(q.dtype).eps) * q
        # Newton's method for log F(x) = log q: from a tail it comes in, where that for F goes out.
        change = y * log(q / y) / density(x, *params)
        change = change if rising else -change
        # On one side of 0 in log x, in which most tails are straight lines.
        step = where(one_sided & (x != 0), x * exp(change / where(x == 0, 1.0, x)), x + change)
        return (y >= q) if rising else (y <= q), step, close

    low, high, q, *params = _bracket(low, high, q, *params)
    one_sided = (low >= 0) | (high <= 0)
    unbounded = (abs(low) > 1e4) | (abs(high) > 1e4)
    start = where(unbounded, _halfway(low, high), 0.5 * (low + high))
    return _search(above, low, high, start, (q, *params))


@_inverse.defjvp
def _inverse_jvp(fun: Distributed, density: Distributed, rising: bool, primals: Inverted,
                 tangents: Inverted) -> tuple[Array, Array]:
    q, low, high, params = primals
    x = _inverse(fun, density, rising, q, low, high, params)
    t = tangents[0]
    if params:
        t = t - jvp(lambda *params: fun(x, *params), params, tangents[3])[1]
    return x, t / (density(x, *params) if rising else -density(x, *params))


def invert(fun: Distributed, density: Distributed, rising: bool, q: Array,
           bounds: tuple[ArrayLike, ArrayLike], params: Sequence[Array]) -> Array:
    """x with fun(x, *params) = q, to the last place where `fun` is; differentiable.

    Args:
      fun: a distribution function, or, not `rising`, one minus it.
      density: the derivative of the distribution function.
      q: probabilities between 0 and 1, which are neither.
      bounds: between which x is.
    """
    return _inverse(fun, density, rising, q, *bounds, tuple(params))


def least(holds: Callable[..., Array], q: Array, low: ArrayLike, high: ArrayLike,
          params: Sequence[Array]) -> Array:
    """The least integer k from `low` to `high` for which `holds(k, q, *params)`; no derivative."""
    low, high, q, *params = _bracket(low, high, q, *params)

    def above(x: Array, low: Array, q: Array, *params: Array) -> tuple[Array, Array, Array]:
        return holds(maximum(floor(x), low), q, *params), x * math.nan, x != x

    root = _search(above, low - 1.0, high, minimum(maximum(low, 1.0), high),
                   (low, q, *params))
    k = maximum(ceil(root), low)
    return where(k == 0.0, 0.0, k)          # of no sign


@partial(custom_jvp, nondiff_argnums=(0, 1, 2))
def _with_density(fun: Any, density: object, smooth: object, x: ArrayLike, params: tuple) -> Any:
    return fun(x, *params)


@_with_density.defjvp
def _with_density_jvp(fun: object, density: Any, smooth: Any,
                      primals: tuple[Array, Sequence[Array]],
                      tangents: tuple[Array, Sequence[Array]]) -> tuple[Array, Array]:
    (x, params), (t, t_params) = primals, tangents
    slope = jvp(lambda *params: smooth(x, *params), params, t_params)[1]
    return _with_density(fun, density, smooth, x, params), t * density(x, *params) + slope


def with_density(fun: Callable[..., Any], density: Callable[..., Any], smooth: Callable[..., Any],
                 x: ArrayLike, *params: Array) -> Array:
    """fun(x, *params) with the derivative `density` in x; those in the parameters are `smooth`'s.

    For a distribution function whose formula has no derivative somewhere.
    """
    return _with_density(fun, density, smooth, x, params)
