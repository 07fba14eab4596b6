"""Samplers of distributions that are functions of gamma numbers, mostly of their logarithms.

Logarithms stay finite where gamma numbers of small parameters underflow.
"""

# Annotations are for callers; `sampler.py` describes the arguments of a sampler's body.
# pyright: reportArgumentType=false

from __future__ import annotations

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax import arithmetic, transcendental
from ..lax.reduce import reduce_max
from ..lax.shape import broadcast_in_dim
from ..lax.sharding import constrain
from ..lax.transcendental import exp, sqrt
from ..numpy import promote
from ..numpy.reductions import sum as total
from ..types.shape import canonical_shape, static_int
from ..types.sharding import ShardingLike
from .arguments import Dims, draw_shape, float_dtype, parameter, shape_of
from .continuous import exponential_of, rademacher_signs, standard_normal, subkeys
from .gamma import gamma_of, sizes
from .keys import typed
from .sampler import METHODS, at_least_32_bits, narrowed, one_of, sampler, typed_aval


@sampler(wide=True, methods=METHODS)
def beta(key: ArrayLike, a: ArrayLike, b: ArrayLike, shape: Shape | None = None,
         dtype: DTypeLike | None = None, *, method: str = "exact",
         out_sharding: ShardingLike = None) -> Array:
    """Beta numbers in [0, 1], density x ** (a-1) * (1-x) ** (b-1) up to a factor.

    Args: a, b: parameters > 0; arrays that broadcast to the shape.
    Returns: An array of that shape and dtype, differentiable in `a` and `b`; of mean a / (a + b).

    >>> x = random.beta(random.key(0), 2.0, 6.0, (10000,))
    >>> print(x.mean().round(2))
    0.25
    """
    # x / (x+y) of gamma numbers x and y, after division by the larger one.
    logs = [gamma_of(k, parameter(p, dtype, shape), log_space=True, method=method)
            for k, p in zip(subkeys(key), (a, b))]
    largest = arithmetic.max(*logs)
    x, y = (exp(v - largest) for v in logs)
    return x / (x + y)


@fused(static=("shape", "dtype", "method"))
def _dirichlet(key: ArrayLike, alpha: ArrayLike, *, shape: Dims, dtype: DType, method: str
               ) -> Array:
    """Gamma numbers over their sum."""
    logs = gamma_of(typed(key), parameter(alpha, dtype, shape), log_space=True, method=method)
    last = len(shape) - 1
    outer = tuple(range(last))
    largest = broadcast_in_dim(reduce_max(logs, (last,)), shape, outer)
    x = exp(logs - largest)
    return x * broadcast_in_dim(1 / total(x, last), shape, outer)   # which is 1 or more


def dirichlet(key: ArrayLike, alpha: ArrayLike, shape: Shape | None = None,
              dtype: DTypeLike | None = None, *, method: str = "exact",
              out_sharding: ShardingLike = None) -> Array:
    """Vectors of positive numbers of sum 1, density the product of x[i] ** (alpha[i]-1).

    Args:
      alpha: float[..., n], parameters > 0.
      shape: the result's shape without its last axis, n; None is alpha's.
    Returns: An array of shape (*shape, n), differentiable in `alpha`.

    >>> print(olympus.random.dirichlet(olympus.random.key(0), olympus.numpy.ones(3), (2,)).round(2))
    [[0.36 0.43 0.21]
     [0.49 0.33 0.18]]
    """
    typed_aval(key, "dirichlet")
    own = shape_of(alpha)
    if not own:
        raise ValueError(f"dirichlet: alpha {typeof(alpha)} given; an array with "
                         "an axis of parameters is required.")
    batch = own[:-1] if shape is None else canonical_shape(shape, "dirichlet")
    whole = draw_shape("dirichlet", (*batch, own[-1]), alpha)
    drawn = _dirichlet(key, alpha, shape=whole, dtype=float_dtype("dirichlet", dtype),
                       method=one_of("dirichlet", method, METHODS))
    return drawn if out_sharding is None else constrain("dirichlet", drawn, out_sharding)


def _chisquare_of(key: Array, df: ArrayLike, shape: Dims, dtype: DType, method: str) -> Array:
    half = 0.5 * parameter(df, dtype, shape)
    return exp(gamma_of(key, half, log_space=True, method=method)) * 2.0


@sampler(wide=True, methods=METHODS)
def chisquare(key: ArrayLike, df: ArrayLike, shape: Shape | None = None,
              dtype: DTypeLike | None = None, *, method: str = "exact",
              out_sharding: ShardingLike = None) -> Array:
    """Chi-square numbers: sums of the squares of `df` standard normal ones; `df` need not be whole.

    Returns: An array of that shape and dtype; of mean df and variance 2 df.

    >>> x = random.chisquare(random.key(0), 3.0, (10000,))
    >>> print(x.mean().round(1))
    3.0
    """
    return _chisquare_of(key, df, shape, dtype, method)


@sampler(wide=True, methods=METHODS)
def f(key: ArrayLike, dfnum: ArrayLike, dfden: ArrayLike, shape: Shape | None = None,
      dtype: DTypeLike | None = None, *, method: str = "exact", out_sharding: ShardingLike = None
      ) -> Array:
    """F numbers: the ratio of two chi-square numbers, each over its degrees of freedom.

    Args: dfnum, dfden: degrees of freedom above and below, > 0; arrays that broadcast to the shape.
    Returns: An array of that shape and dtype; of mean dfden / (dfden - 2) where dfden > 2.

    >>> x = random.f(random.key(0), 4.0, 22.0, (10000,))
    >>> print(x.mean().round(1))
    1.1
    """
    above, below = (_chisquare_of(k, df, shape, dtype, method) / parameter(df, dtype, shape)
                    for k, df in zip(subkeys(key)[::-1], (dfnum, dfden)))
    return above / below


@sampler(wide=True, methods=METHODS)
def t(key: ArrayLike, df: ArrayLike, shape: Shape | None = None, dtype: DTypeLike | None = None, *,
      method: str = "exact", out_sharding: ShardingLike = None) -> Array:
    """Student's t numbers: z / sqrt(c / df) of a normal number z and a chi-square number c.

    Returns: An array of that shape and dtype; of variance df / (df - 2) where df > 2.

    >>> x = random.t(random.key(0), 10.0, (10000,))
    >>> print(f"{x.var():.1f}")
    1.3
    """
    normal_key, gamma_key = subkeys(key)
    z = standard_normal(normal_key, shape, dtype)
    half = parameter(df, dtype, shape) / 2.0
    drawn, logs = sizes(gamma_key, half, method)
    return z * (sqrt(half / drawn) * exp(-0.5 * logs))


def _generalized_normal_of(key: Array, power: Array, shape: Dims, dtype: DType, method: str
                           ) -> Array:
    """`power` is 1 / p."""
    size_key, sign_key = subkeys(key)
    drawn, logs = sizes(size_key, power, method)
    size = transcendental.pow(drawn, power)
    return rademacher_signs(sign_key, shape, dtype) * (size * exp(logs * power))


def _reciprocal(p: ArrayLike) -> Array:
    """1 / p in the dtype of p, which JAX divides in, too."""
    return arithmetic.div(1.0, promote.inexact(p))


@sampler(wide=True, methods=METHODS)
def generalized_normal(key: ArrayLike, p: float, shape: Shape = (), dtype: DTypeLike | None = None,
                       *, method: str = "exact", out_sharding: ShardingLike = None) -> Array:
    """Numbers of density exp(-|x|ᵖ), up to a factor: Laplace's at p = 1, bell-shaped at 2.

    Args: p: > 0; it broadcasts to the shape.
    Returns: An array of that shape and dtype; at p = 2 of variance 1/2.

    >>> x = random.generalized_normal(random.key(0), 2.0, (10000,))
    >>> print(x.var().round(1))
    0.5
    """
    return _generalized_normal_of(key, parameter(_reciprocal(p), dtype, shape), shape, dtype,
                                  method)


@fused(static=("shape", "d", "dtype"))
def _ball(key: ArrayLike, p: ArrayLike, *, shape: Dims, d: int, dtype: DType) -> Array:
    """Barthe, Guédon, Mendelson and Naor (2005), Ann. Probab. 33(2), 480."""
    direction_key, size_key = subkeys(typed(key))
    whole = (*shape, d)
    inverse = parameter(_reciprocal(p), dtype, shape)
    inverses, powers = (broadcast_in_dim(x, whole, range(len(shape)))
                        for x in (inverse, parameter(p, dtype, shape)))
    g = _generalized_normal_of(direction_key, inverses, whole, dtype, "exact")
    e = exponential_of(size_key, shape, dtype)
    powered = total(transcendental.pow(arithmetic.abs(g), powers), len(shape))
    size = transcendental.pow(powered + e, inverse)
    return g / broadcast_in_dim(size, whole, range(len(shape)))


def ball(key: ArrayLike, d: int, p: float = 2, shape: Shape = (), dtype: DTypeLike | None = None, *,
         out_sharding: ShardingLike = None) -> Array:
    """Points uniform in the unit ball of the p-norm.

    Args:
      d: the number of dimensions, the result's last axis.
      p: > 0; an array that broadcasts to the shape.
      shape: the result's other axes.
    Returns: An array of shape (*shape, d).

    >>> print(olympus.random.ball(olympus.random.key(0), 2, shape=(3,)).round(2))
    [[ 0.92  0.39]
     [ 0.04 -0.91]
     [ 0.12 -0.02]]
    """
    typed_aval(key, "ball")
    d = static_int(d, "ball", "d")
    if d < 0:
        raise ValueError(f"ball: d {d!r} given; the number of dimensions, an int that is not "
                         "negative, is required.")
    shape, dtype = draw_shape("ball", shape, p), float_dtype("ball", dtype)
    drawn = _ball(key, p, shape=shape, d=d, dtype=at_least_32_bits(dtype))
    return constrain("ball", narrowed(drawn, dtype), out_sharding)


complete_docstrings(globals(), {
    "key": "a single key.",
    "dtype": "a float dtype; None is the default one.",
    "df": "degrees of freedom, > 0; an array that broadcasts to the shape.",
})
