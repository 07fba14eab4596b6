"""Choosing between arrays element by element: where, select, piecewise, clip, nan_to_num."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..base.typing import Array, ArrayLike
from ..core import tags
from ..jit.fused import fused, named
from ..jit.jit import jit
from ..lax import arithmetic
from ..lax.arithmetic import imag, real
from ..lax.comparison import eq
from ..types import dtypes
from ..types.shape import broadcast_shapes, sequence
from .arithmetic import maximum, minimum
from .elementary import isnan, scalar
from .promote import (
    array_args, as_bool, broadcast_to, choose, convert, promote, refuse_option, to_array,
)


@fused(inline=True)
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> Array:
    """`x` where the condition is not zero, `y` elsewhere.

    All three broadcast; the dtype is `x`'s and `y`'s promoted one.

    >>> import olympus.numpy as onp
    >>> x = onp.array([-1., 2.])
    >>> onp.where(x > 0, x, 0)
    Array([0., 2.], dtype=float32)
    """
    (condition,) = array_args("where", condition)
    x, y = promote("where", x, y)
    return choose_where(as_bool(condition), x, y)


@fused
def _broadcast_where(condition: Array, x: Array, y: Array) -> Array:
    shape = broadcast_shapes(condition.shape, x.shape, y.shape)
    condition, x, y = tags.vary_first((condition, x, y))
    if condition.ndim:
        condition = broadcast_to(condition, shape)
    return choose(condition, *[broadcast_to(z, shape) if z.shape else z for z in (x, y)])


def choose_where(condition: Array, x: Array, y: Array) -> Array:
    """`where` of operands that have one dtype already; the condition is bool."""
    if condition.shape == x.shape == y.shape:
        return choose(condition, x, y)
    return _broadcast_where(condition, x, y)


@fused
def select(condlist: Sequence[ArrayLike], choicelist: Sequence[ArrayLike], default: ArrayLike = 0
          ) -> Array:
    """Choose each element from the choice of the first condition that holds there.

    Args:
      condlist: arrays, true where not 0, that broadcast.
      choicelist: as many arrays, which broadcast with them.
      default: for the places where no condition holds.
    Returns: An array of the broadcast shape and of the dtype that choices and default promote to.
      All choices are computed; derivatives pass to the chosen ones alone. No conditions, or not as
      many as choices, are a ValueError.

    >>> x = onp.arange(5)
    >>> onp.select([x < 2, x > 3], [x, 10 * x], default=-1)
    Array([ 0,  1, -1, -1, 40], dtype=int32)
    """
    condlist = sequence(condlist, "select", "condlist")
    choicelist = sequence(choicelist, "select", "choicelist")
    if len(condlist) != len(choicelist):
        raise ValueError(f"select: {len(condlist)} conditions and {len(choicelist)} choices given; "
                         "as many of one as of the other are required.")
    if not len(condlist):
        raise ValueError("select: no conditions given; at least one is required.")
    *choices, out = promote("select", *choicelist, default)
    conditions = array_args("select", *condlist)
    for condition, choice in zip(reversed(conditions), reversed(choices)):
        out = choose_where(as_bool(condition), choice, out)
    return out


@named
def piecewise(x: ArrayLike, condlist: ArrayLike | Sequence[ArrayLike],
              funclist: Sequence[ArrayLike | Callable[..., ArrayLike]], *args: object, **kw: object
              ) -> Array:
    """Apply to each element the function of the last condition that holds there.

    Args:
      x: array, the functions' argument.
      condlist: arrays of booleans of the shape of `x`, or one of them.
      funclist: a function or constant per condition, and perhaps one for where none holds, else 0.
      *args, **kw: passed on to the functions.
    Returns: An array of the shape and dtype of `x`. Unlike in NumPy every function is called with
      all of `x`, since sizes must not depend on values, so they should not raise anywhere. Other
      numbers of functions are a ValueError.

    >>> x = onp.array([-2., 0., 3.])
    >>> onp.piecewise(x, [x < 0, x > 0], [lambda v: -v, lambda v: v ** 2, 7.])
    Array([2., 7., 9.], dtype=float32)
    """
    (x,) = array_args("piecewise", x)
    masks: Any = condlist
    if hasattr(masks, "ndim") and masks.ndim < 2 and masks.ndim == x.ndim:
        masks = [masks]
    elif isinstance(masks, (list, tuple)) and x.shape and masks and isinstance(
            masks[0], (bool, np.bool_)):
        masks = [np.asarray(masks)]
    conditions = [as_bool(c) for c in array_args(
        "piecewise", *sequence(masks, "piecewise", "condlist"))]
    functions = list(sequence(funclist, "piecewise", "funclist"))
    if len(functions) == len(conditions):
        functions.append(0)
    elif len(functions) != len(conditions) + 1:
        raise ValueError(f"piecewise: {len(conditions)} conditions and {len(functions)} functions "
                         "given; as many functions as conditions, or one more, are required.")

    def value(f: ArrayLike | Callable[..., ArrayLike]) -> Array:
        if callable(f):     # traced once, however often it is called
            f = f(to_array(x), *args, **kw) if args or kw else jit(f)(to_array(x))
        (out,) = array_args("piecewise", f)
        return broadcast_to(convert(out, x.dtype), x.shape)

    out = value(functions[-1])
    for condition, f in zip(conditions, functions):
        out = choose_where(condition, value(f), out)
    return to_array(out)


@fused(static=("out",))
def clip(arr: ArrayLike | None = None, /, min: ArrayLike | None = None,
         max: ArrayLike | None = None, *, a_min: ArrayLike | None = None,
         a_max: ArrayLike | None = None, out: None = None) -> Array:
    """Numbers limited to an interval: below `min` it is `min`, above `max` it is `max`.

    Args:
      arr: array or number; complex ones are a ValueError.
      min, max: the limits, which broadcast; None is no limit. Python ints that the dtype of `arr`
        does not hold limit nothing.
      a_min, a_max: NumPy's older names of `min` and `max`.
      out: None: arrays cannot be written to.
    Returns: An array of the broadcast shape and promoted dtype; NaN stays, `max` wins where it is
      below `min`. The derivative is 1 within, 0 outside, 1/2 at a limit.

    >>> onp.clip(onp.arange(4), 1, 2)
    Array([1, 1, 2, 2], dtype=int32)
    """
    refuse_option("clip", out=out)
    if (min is not None and a_min is not None) or (max is not None and a_max is not None):
        raise ValueError("clip: min and a_min, or max and a_max given; they mean the same; pass "
                         "one of them.")
    min, max = a_min if min is None else min, a_max if max is None else max
    if arr is not None:
        (arr,) = array_args("clip", arr)
        min, max = _saturated(min, arr), _saturated(max, arr)
    operands = array_args("clip", *[x for x in (arr, min, max)
                                    if x is not None and type(x) is not int])
    if any(dtypes.is_complex(x.dtype) for x in operands):
        raise ValueError("clip: a complex operand given; real numbers are required: complex "
                         "numbers have no order; clip real and imag.")
    return _clip(arr, min, max)


def _saturated(bound: Any, x: Array) -> ArrayLike | None:
    """A bound of weak integer type that integers `x` can have: 300 is 255 where they are uint8."""
    kind = type(bound)
    if not dtypes.is_integer(x.dtype) or not (kind is int or getattr(
            bound, "weak_type", False) and dtypes.is_integer(bound.dtype)):
        return bound
    limits = dtypes.iinfo(x.dtype)
    if kind is int:
        return max(int(limits.min), min(bound, int(limits.max)))
    own = dtypes.iinfo(bound.dtype)
    bound = maximum(bound, int(limits.min)) if limits.min > own.min else bound
    return minimum(bound, int(limits.max)) if limits.max < own.max else bound


@fused
def _clip(x: Any, low: ArrayLike | None, high: ArrayLike | None) -> Array:
    if low is not None:
        x = maximum(low, x)
    if high is not None:
        x = minimum(high, x)
    return to_array(array_args("clip", x)[0])


@fused(static=("copy",))
def nan_to_num(x: ArrayLike, copy: bool = True, nan: ArrayLike = 0.0,
               posinf: ArrayLike | None = None, neginf: ArrayLike | None = None) -> Array:
    """Replace NaN and infinities by numbers.

    Args:
      x: array or number of any dtype; of complex numbers both parts are replaced.
      copy: ignored: arrays are never changed in place.
      nan: for NaN.
      posinf, neginf: for infinities; the largest and the smallest number of the dtype unless given.
    Returns: An array of the same shape and dtype; no derivative passes through a replaced element.

    >>> onp.nan_to_num(onp.array([onp.nan, onp.inf, 1.]), posinf=9.)
    Array([0., 9., 1.], dtype=float32)
    """
    (x,) = array_args("nan_to_num", x)
    if not dtypes.is_inexact(x.dtype):
        return to_array(x)
    return _nan_to_num(convert(x, x.dtype), nan, posinf, neginf)


@fused
def _nan_to_num(x: Array, nan: ArrayLike, posinf: ArrayLike | None, neginf: ArrayLike | None
                ) -> Array:
    if dtypes.is_complex(x.dtype):
        return arithmetic.complex(_nan_to_num(real(x), nan, posinf, neginf),
                                  _nan_to_num(imag(x), nan, posinf, neginf))
    limits = dtypes.finfo(x.dtype)
    x = broadcast_to(x, x.shape)

    def replacement(value: ArrayLike | None, default: ArrayLike) -> Array:
        (value,) = array_args("nan_to_num", default if value is None else value)
        return broadcast_to(convert(value, x.dtype), x.shape)

    out = choose(isnan(x), replacement(nan, 0.0), x)
    out = choose(eq(x, scalar(np.inf, x)), replacement(posinf, float(limits.max)), out)
    return choose(eq(x, scalar(-np.inf, x)), replacement(neginf, float(limits.min)), out)
