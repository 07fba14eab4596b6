"""Values between samples, and angles without jumps: interp and unwrap."""

from __future__ import annotations

import numpy as np

from ..base.typing import Array, ArrayLike
from ..core.trace import Tracer, literal, typeof
from ..jit.fused import fused, named
from ..lax import arithmetic, slicing
from ..lax.arithmetic import div, imag, mul, neg, real, sub
from ..lax.bits import bitwise_and
from ..lax.comparison import eq, gt, lt
from ..lax.cumulative import cumsum
from ..lax.families import add
from ..lax.sort import sort as lax_sort
from ..types import dtypes
from ..types.shape import canonical_axis, definitely_equal
from .arithmetic import floor_divide, remainder
from .indexing import take
from .promote import (
    BOOL, array_args, broadcast_to, choose, convert, inexact, promote_dtypes, to_array,
)
from .reductions import is_nan
from .sorting import searchsorted
from .statistics import diff


@named
def interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | str | None = None,
           right: ArrayLike | str | None = None, period: ArrayLike | None = None) -> Array:
    """The values at `x` of the function that is linear between the points (xp, fp).

    Args:
      x: where to evaluate, of any shape.
      xp: [n], ascending; not checked.
      fp: [n], real or complex.
      left, right: the values before xp[0] and behind xp[-1]; fp[0] and fp[-1] unless given. The
        text "extrapolate" goes on with the first or last line, which NumPy has not got.
      period: of the function, not zero: `x` and `xp`, which need no order then, count modulo it,
        and `left` and `right` are not looked at.
    Returns: floats of the shape of `x`, or complex numbers if `fp` has such.

    Raises ValueError unless `xp` and `fp` are vectors of one size, not 0, TypeError for complex
    coordinates.

    >>> xp, fp = onp.array([1., 2., 3.]), onp.array([3., 2., 0.])
    >>> print(onp.interp(onp.array([0., 1.5, 2.5, 9.]), xp, fp, right=-1))
    [ 3.   2.5  1.  -1. ]
    """
    beyond = []
    for side, value in (("left", left), ("right", right)):
        if isinstance(value, str) and value != "extrapolate":
            raise ValueError(f"interp: {side} {value!r} given; a number, None or 'extrapolate' is "
                             "required.")
        beyond.append(isinstance(value, str) and period is None)
    if not isinstance(period, Tracer) and period is not None and not np.all(period):
        raise ValueError(f"interp: period {period!r} given; a number other than zero is required.")
    left, right = [None if period is not None or isinstance(value, str) else value
                   for value in (left, right)]
    return _interp(x, xp, fp, left, right, period, beyond=tuple(beyond))


@fused(static=("beyond",))
def _interp(x: ArrayLike, xp: ArrayLike, fp: ArrayLike, left: ArrayLike | None,
            right: ArrayLike | None, period: ArrayLike | None, *, beyond: tuple[bool, bool]
            ) -> Array:
    ends = [v for v in (left, right) if v is not None]
    operands = array_args("interp", x, xp, fp, *ends, *([] if period is None else [period]))
    for v in (*operands[:2], *operands[3 + len(ends):]):
        if dtypes.is_complex(v.dtype):
            raise TypeError(f"interp: coordinates {typeof(v)} given; real numbers are required.")
    x, xp, fp, *rest = [to_array(v) for v in promote_dtypes("interp", *operands, inexact=True)]
    if xp.ndim != 1 or fp.ndim != 1 or not definitely_equal(xp.shape[0], fp.shape[0]):
        raise ValueError(f"interp: xp {xp.aval} and fp {fp.aval} given; vectors of one size are "
                         "required.")
    if not xp.shape[0]:
        raise ValueError(f"interp: xp {xp.aval} given; at least one point is required.")
    if any(v.shape for v in rest):
        raise ValueError("interp: left, right or period given as an array with axes; scalars are "
                         "required.")
    period = rest[-1] if period is not None else None
    low, high = (rest[0] if left is not None else None,
                 rest[len(ends) - 1] if right is not None else None)
    if not dtypes.is_complex(x.dtype):
        return _interpolate(x, xp, fp, low, high, period, beyond)
    x, xp = real(x), real(xp)
    period = None if period is None else real(period)
    return arithmetic.complex(*[
        _interpolate(x, xp, part(fp), None if low is None else part(low),
                     None if high is None else part(high), period, beyond)
        for part in (real, imag)])


def _interpolate(x: Array, xp: Array, fp: Array, left: Array | None, right: Array | None,
                 period: ArrayLike | None, beyond: tuple[bool, bool]) -> Array:
    if period is not None:
        period = arithmetic.abs(period)
        x, xp = [remainder(v, broadcast_to(period, v.shape)) for v in (x, xp)]
        xp, fp = lax_sort((xp, fp), 0, is_stable=True, num_keys=1)
        xp = slicing.concatenate([sub(xp[-1:], period[None]), xp,
                                  add(xp[:1], period[None])], 0)
        fp = slicing.concatenate([fp[-1:], fp, fp[:1]], 0)
    n = xp.shape[0]
    if definitely_equal(n, 1):
        out = broadcast_to(fp[0], x.shape)
    else:
        upper = searchsorted(xp, x, "right").clip(1, n - 1)
        x0, x1, f0, f1 = [take(v, i, mode="clip") for v in (xp, fp) for i in (upper - 1, upper)]
        out = _line(x, x0, x1, f0, f1)
    ends = ((left, lt, 0), (right, gt, n - 1))
    for (value, outside, i), goes_on in zip(ends, beyond):
        if not goes_on:
            value = fp[i] if value is None else value
            out = choose(outside(x, broadcast_to(xp[i], x.shape)),
                         broadcast_to(value, x.shape), out)
    return out


def _line(x: Array, x0: Array, x1: Array, f0: Array, f1: Array) -> Array:
    """The line through two points: exact at both, and where an end is infinite as NumPy's."""
    gap = sub(x1, x0)
    zero = literal(0, x.dtype)
    gap = choose(eq(gap, broadcast_to(zero, x.shape)), literal(1, x.dtype), gap)
    slope = div(sub(f1, f0), gap)
    from_left = add(mul(slope, sub(x, x0)), f0)
    from_right = add(mul(slope, sub(x, x1)), f1)
    between = choose(eq(x, x1), from_right, from_left)
    other = choose(is_nan(from_right), choose(eq(f0, f1), f0, from_right), from_right)
    other = choose(eq(x, x0), f0, choose(eq(x, x1), f1, other))
    return choose(bitwise_and(is_nan(between), eq(x, x)), other, between)


@fused(static=("axis",))
def unwrap(p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1,
           period: ArrayLike = 2 * np.pi) -> Array:
    """Angles without jumps: periods are added so that neighbours differ by at most half of one.

    Args:
      p: real numbers [..., n, ...].
      discont: jumps below it stay; half a period unless given, which is also the least that counts.
      axis: the axis along which neighbours are compared.
      period: a scalar.
    Returns: An array of the shape of `p`, of floats unless `p` and `period` are integers.

    Raises TypeError for complex numbers.

    >>> print(onp.unwrap(onp.array([0, 1, 2, -1, 0]), period=4))
    [0 1 2 3 4]
    """
    angles, size = array_args("unwrap", p, period)
    wide, size = [to_array(v) for v in promote_dtypes("unwrap", angles, size)]
    if dtypes.is_complex(wide.dtype):
        raise TypeError(f"unwrap: {wide.aval} given; real numbers are required.")
    if size.shape:
        raise ValueError(f"unwrap: period {size.aval} given; a scalar is required.")
    axis = canonical_axis(axis, wide.ndim, "unwrap")
    if not wide.shape[axis]:
        return wide
    step = convert(diff(to_array(angles), axis=axis), wide.dtype)

    def spread(value: Array) -> Array:
        return broadcast_to(value, step.shape)

    if dtypes.is_integer(wide.dtype):
        high = floor_divide(size, 2)
        tie = eq(remainder(size, 2), literal(0, size.dtype))
    else:
        high, tie = div(size, literal(2, size.dtype)), literal(True, BOOL)
    low = spread(neg(high))
    least = add(remainder(sub(step, low), spread(size)), low)
    up = bitwise_and(eq(least, low), gt(step, spread(literal(0, step.dtype))))
    least = choose(bitwise_and(up, spread(tie)), spread(high), least)
    jump = arithmetic.abs(step)
    if discont is None:
        jump, half = inexact(jump), inexact(size)
        discont = div(half, literal(2, half.dtype))
    limit, jump = promote_dtypes("unwrap", discont, jump)
    stays = lt(jump, spread(limit))
    change = choose(stays, literal(0, step.dtype), sub(least, step))
    first = slicing.slice_in_dim(wide, 0, 1, axis=axis)
    rest = slicing.slice_in_dim(wide, 1, None, axis=axis)
    return slicing.concatenate([first, add(rest, cumsum(change, axis))], axis)
