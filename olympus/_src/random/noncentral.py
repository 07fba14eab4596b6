"""Samplers of noncentral chi-square and F numbers."""

# Annotations are for callers; `sampler.py` describes the arguments of a sampler's body.
# pyright: reportArgumentType=false

from __future__ import annotations

from ..base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from ..control_flow.while_loop import fori_loop
from ..core.trace import typeof
from ..custom.jvp import custom_jvp
from ..lax.barriers import stop_gradient
from ..lax.convert import convert_element_type
from ..lax.creation import full_like
from ..lax.transcendental import exp, sqrt
from ..numpy.conditions import where
from ..types import dtypes
from ..types.sharding import ShardingLike
from .arguments import F32, parameter
from .continuous import standard_normal, subkeys
from .gamma import gamma_of
from .poisson import poisson_of
from .sampler import sampler

_RECURRENCE_STEPS = 64


def _slope(x: Array, df: Array, nonc: Array) -> Array:
    """The derivative in nonc of the quantile at x: f(x; df+2, nonc) / f(x; df, nonc).

    By Bessel's functions it is x s(df/2 - 1), with s(v) = I[v+1](z) / (z I[v](z)), z² = x nonc, and
    s(v) = 1 / (2 (v+1) + z² s(v+1)). The recurrence starts at an order where Amos's bound (1974,
    Math. Comput. 28, 239) is close to s, and comes closer with each step.
    """
    square, v = x * nonc, 0.5 * df - 1.0
    high = v + float(_RECURRENCE_STEPS)
    root = sqrt((high + 1.5) * (high + 1.5) + square)

    def step(i: Array, s: Array) -> Array:
        order = high - convert_element_type(i, typeof(x).dtype)     # as in 1 / (2 order + …)
        return 1.0 / (2.0 * order + square * s)

    return x * fori_loop(0, _RECURRENCE_STEPS, step, 1.0 / (high + 0.5 + root))


@custom_jvp
def _sloped(x: Array, df: Array, nonc: Array) -> Array:
    """x, a function of nonc as a quantile is."""
    return x


_sloped.defjvps(lambda t, y, x, df, nonc: t, None,
                lambda t, y, x, df, nonc: t * _slope(x, df, nonc))


def _noncentral_of(key: Array, df: Array, nonc: Array, dtype: DType) -> Array:
    """With df > 1 the square of a shifted normal number plus a chi-square one of df - 1.

    Otherwise a chi-square number of df + 2 k with a Poisson number k of nonc / 2.
    """
    shape = typeof(df).shape
    normal_key, poisson_key, gamma_key = subkeys(key, 3)
    possible = (df > 0.0) & (nonc >= 0.0)
    fixed = stop_gradient(where(possible, nonc, 0.0))
    above, zero = df > 1.0, full_like(df, 0.0)
    shifted = standard_normal(normal_key, shape, dtype) + sqrt(fixed)
    half = convert_element_type(where(above, zero, fixed) * 0.5, F32)
    k = convert_element_type(poisson_of(poisson_key, half, dtypes.default_int()), dtype)
    a = where(above, (df - 1.0) * 0.5, df * 0.5 + k)
    a = where(possible, a, 1.0)
    chi = exp(gamma_of(gamma_key, a, log_space=True)) * 2.0
    x = chi + where(above, shifted * shifted, zero)
    return where(possible, _sloped(x, stop_gradient(df), nonc), full_like(x, float("nan")))


@sampler(wide=True)
def noncentral_chisquare(key: ArrayLike, df: ArrayLike, nonc: ArrayLike, shape: Shape | None = None,
                         dtype: DTypeLike | None = None, *, out_sharding: ShardingLike = None
                        ) -> Array:
    """Sums of squares of `df` normal numbers whose means have the sum of squares `nonc`.

    A square of a shifted normal number plus a chi-square number of df - 1; where df <= 1 a
    chi-square number of df + 2 k with a Poisson number k (Johnson, Kotz and Balakrishnan 1995,
    chapter 29).

    Args:
      df: degrees of freedom, > 0; an array that broadcasts to the shape.
      nonc: noncentrality, >= 0; an array that broadcasts to the shape. NaN is drawn for others.
    Returns: An array of that shape and dtype, of mean df + nonc. It is differentiable: in `nonc` as
      the quantile that it is, in `df` as the gamma number in it is.

    >>> x = random.noncentral_chisquare(random.key(0), 3.0, 2.0, (10000,))
    >>> print(x.mean().round())
    5.0
    """
    df, nonc = parameter(df, dtype, shape), parameter(nonc, dtype, shape)
    return _noncentral_of(key, df, nonc, dtype)


@sampler(wide=True)
def noncentral_f(key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, nonc: ArrayLike,
                 shape: Shape | None = None, dtype: DTypeLike | None = None, *,
                 out_sharding: ShardingLike = None) -> Array:
    """Noncentral F numbers: as `f`, with a noncentral chi-square number as numerator.

    Args:
      dfnum, dfden: degrees of freedom above and below, > 0; arrays that broadcast to the shape.
      nonc: noncentrality of the number above, >= 0; likewise. NaN is drawn for others.
    Returns: An array of that shape and dtype, differentiable in its parameters as
      `noncentral_chisquare` is.

    >>> x = random.noncentral_f(random.key(0), 3.0, 22.0, 3.0, (10000,))
    >>> print(x.mean().round(1))                    # 22 (3 + 3) / (3 (22 - 2))
    2.2
    """
    dfnum, dfden, nonc = (parameter(x, dtype, shape) for x in (dfnum, dfden, nonc))
    above_key, below_key = subkeys(key)
    half = dfden * 0.5
    below = exp(gamma_of(below_key, half, log_space=True)) / half
    return _noncentral_of(above_key, dfnum, nonc, dtype) / dfnum / below
