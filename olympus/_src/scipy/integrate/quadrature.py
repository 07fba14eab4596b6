"""Integrals of samples and of functions: Simpson's rule, Gauss's, and adaptive Gauss–Kronrod."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from ...base.source import api_boundary
from ...base.typing import Array, ArrayLike, PyTree
from ...base.util import real_number
from ...control_flow.while_loop import while_loop
from ...core.trace import typeof
from ...custom.gradient import closure_convert
from ...jit.arguments import check_callable
from ...jit.fused import fused, unasked
from ...jit.jit import jit
from ...lax.barriers import stop_gradient
from ...mapping.vmap import vmap
from ...numpy.arithmetic import absolute, maximum
from ...numpy.creation import asarray, full, full_like, zeros
from ...numpy.joining import concatenate
from ...numpy.manipulation import broadcast_to, moveaxis
from ...numpy.promote import promote_dtypes
from ...numpy.reductions import argmax, cumsum
from ...numpy.selection import where
from ...numpy.statistics import diff
from ...types import dtypes
from ...types.shape import canonical_axis, definitely_equal, less, sequence, static_int
from ...types.tree import tree_map

# Piessens et al., "QUADPACK" (1983): the nodes above zero of Kronrod's rule of 21 points, the
# weights of Gauss's rule of 10 at every second of them, and of Kronrod's, the last at zero.
_NODES = np.array([
    0.9956571630258081, 0.9739065285171717, 0.9301574913557082, 0.8650633666889845,
    0.7808177265864169, 0.6794095682990244, 0.5627571346686047, 0.4333953941292472,
    0.2943928627014602, 0.14887433898163122])
_GAUSS = np.array([
    0.06667134430868814, 0.1494513491505806, 0.21908636251598204, 0.26926671930999635,
    0.29552422471475287])
_KRONROD = np.array([
    0.011694638867371874, 0.032558162307964725, 0.054755896574351995, 0.07503967481091996,
    0.0931254545836976, 0.10938715880229764, 0.12349197626206584, 0.13470921731147334,
    0.14277593857706009, 0.14773910490133849, 0.1494455540029169])


def _samples(name: str, y: ArrayLike, x: ArrayLike | None, dx: ArrayLike, axis: int
             ) -> tuple[Array, Array]:
    """The samples with their axis last, and the distances between them."""
    if x is None:
        y, dx = promote_dtypes(name, y, dx, inexact=True)
        y = moveaxis(asarray(y), axis, -1)
        return y, full_like(y[..., 1:], dx)
    y, x = (asarray(v) for v in promote_dtypes(name, y, x, inexact=True))
    axis = canonical_axis(axis, y.ndim)
    along = y.shape[axis]
    if x.ndim == 1:
        if not definitely_equal(x.shape[0], along):
            raise ValueError(f"{name}: x {typeof(x)} given for y {typeof(y)}; as many places as "
                             f"values on axis {axis}, {along}, are required.")
        h = diff(x)
    elif x.shape == y.shape:
        h = diff(moveaxis(x, axis, -1))
    else:
        raise ValueError(f"{name}: x {typeof(x)} given for y {typeof(y)}; a vector or an array of "
                         "the shape of y is required.")
    y = moveaxis(y, axis, -1)
    return y, broadcast_to(asarray(h), y[..., 1:].shape)


@api_boundary
@unasked
def simpson(y: ArrayLike, x: ArrayLike | None = None, *, dx: ArrayLike = 1.0, axis: int = -1
            ) -> Array:
    """The integral of samples by Simpson's rule: exact for cubics at equal distances.

    An even number of samples has an interval too many, which the parabola through the last three
    integrates (Cartwright, "Simpson's rule cumulative integration with MS Excel and irregularly
    spaced data", 2017), as SciPy's.

    Args:
      y: the samples, of any shape.
      x: where they are: [n] or the shape of `y`; None: at distances `dx`.
      dx: the distance.
      axis: of `y`, along which to integrate.
    Returns: the shape of `y` without that axis.

    >>> from olympus.scipy.integrate import simpson
    >>> print(simpson(onp.arange(5.) ** 3))
    64.0
    """
    return _simpson(*_samples("simpson", y, x, dx, axis))


@fused
def _simpson(y: Array, h: Array) -> Array:
    n = y.shape[-1]
    if less(n, 3):
        return (h * (y[..., :-1] + y[..., 1:]) / 2).sum(-1)
    pairs = (n - 1) // 2 * 2
    total = _parabolas(y[..., :pairs - 1:2], y[..., 1:pairs:2], y[..., 2:pairs + 1:2],
                       h[..., :pairs:2], h[..., 1:pairs:2]).sum(-1)
    left = n - 1 - pairs
    if definitely_equal(left, 0):
        return total
    a, b = h[..., -2], h[..., -1]
    last = ((2 * b * b + 3 * a * b) * _ratio(y[..., -1], 6 * (a + b))
            + (b * b + 3 * a * b) * _ratio(y[..., -2], 6 * a)
            - b ** 3 * _ratio(y[..., -3], 6 * a * (a + b)))
    return total + (last if definitely_equal(left, 1) else where(asarray(left) > 0, last, 0))


def _ratio(x: Array, y: Array) -> Array:
    """x / y, and 0 where y is: samples at one place count nothing."""
    return where(y == 0, 0, x / where(y == 0, 1, y))


def _parabolas(y0: PyTree, y1: Array, y2: Array, a: Array, b: Array) -> Array:
    """The integrals of the parabolas through three points at distances a and b."""
    h = a + b
    return h / 6 * (y0 * (2 - _ratio(b, a)) + y1 * h * _ratio(h, a * b) + y2 * (2 - _ratio(a, b)))


@api_boundary
@unasked
def cumulative_trapezoid(y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0,
                         axis: int = -1, initial: ArrayLike | None = None) -> Array:
    """The integral of samples up to each of them, by the trapezoidal rule.

    Args:
      y: the samples, of any shape.
      x: where they are: [n] or the shape of `y`; None: at distances `dx`.
      dx: the distance.
      axis: of `y`, along which to integrate.
      initial: what to put in front, so that there are as many as samples; SciPy takes only 0.
    Returns: the shape of `y`, with one less on that axis unless `initial` is given.

    >>> from olympus.scipy.integrate import cumulative_trapezoid
    >>> print(cumulative_trapezoid(onp.arange(4.), initial=0))
    [0.  0.5 2.  4.5]
    """
    y, h = _samples("cumulative_trapezoid", y, x, dx, axis)
    total = cumsum(h * (y[..., :-1] + y[..., 1:]) / 2, -1)
    if initial is not None:
        total = concatenate([full_like(y[..., :1], initial), total], -1)
    return moveaxis(total, -1, axis)


@api_boundary
def fixed_quad(func: Callable[..., ArrayLike], a: ArrayLike, b: ArrayLike,
               args: tuple[PyTree, ...] = (), n: int = 5) -> tuple[Array, None]:
    """The integral of a function from a to b by Gauss's rule of n points, exact to degree 2 n - 1.

    Args:
      func: `func(x, *args)` of a vector of places, which it keeps as its last axis.
      a, b: the ends, finite scalars.
      args: further arguments.
      n: the number of points, an int.
    Returns: (integral, None), as SciPy's.

    >>> from olympus.scipy.integrate import fixed_quad
    >>> print(f"{fixed_quad(lambda x: x ** 8, 0.0, 1.0)[0]:.6f}")
    0.111111
    """
    n = static_int(n, "fixed_quad", "n")
    if not 0 < n <= 10_000:
        raise ValueError(f"fixed_quad: n {n} given; between 1 and 10,000 nodes are required.")
    nodes, weights = np.polynomial.legendre.leggauss(n)
    a, b = promote_dtypes("fixed_quad", a, b, inexact=True)
    half = (asarray(b) - asarray(a)) / 2
    values = asarray(func(asarray(a) + half * (nodes.astype(half.dtype) + 1),
                          *sequence(args, "fixed_quad", "args")))
    return half * (values * weights.astype(dtypes.to_real_dtype(values.dtype))).sum(-1), None


@api_boundary
def quad(func: Callable[..., ArrayLike], a: ArrayLike, b: ArrayLike, args: tuple[PyTree, ...] = (),
         *, epsabs: float = 1.49e-8, epsrel: float = 1.49e-8, limit: int = 50
         ) -> tuple[Array, Array]:
    """The integral of a function of one variable, to a given error.

    Gauss–Kronrod rules of 10 and 21 points on intervals; the interval with the largest error is
    halved until the errors suffice (Piessens et al., "QUADPACK", 1983). Infinite ends are brought
    to finite ones by x = u / (1 - u²) or a ± u / (1 - u). Each integral under `vmap` has its own
    intervals. Both modes of derivatives work, with respect to `a`, `b`, `args` and the values that
    `func` closes over: the rule on the final intervals is differentiated.

    Args:
      func: `func(x, *args)` of a scalar, real or complex; it is mapped over the places.
      a, b: the ends, scalars; they may be infinite if they are concrete.
      args: pytrees of arrays.
      epsabs, epsrel: the error to reach, absolute or relative to the integral; the dtype's own
        limit, if that is more.
      limit: the most intervals.

    Returns:
      (integral, estimate of its error). NaN where `func` is infinite or NaN at a place looked at.

    >>> from olympus.scipy.integrate import quad
    >>> area, _ = quad(lambda x: onp.exp(-x * x), -onp.inf, onp.inf)
    >>> print(f"{area:.5f} {olympus.grad(lambda b: quad(onp.cos, 0., b)[0])(1.0):.5f}")
    1.77245 0.54030
    """
    low, high = (isinstance(v, (int, float, np.number)) and abs(v) == np.inf for v in (a, b))
    settings = (real_number(epsabs, "quad: epsabs"), real_number(epsrel, "quad: epsrel"))
    limit = static_int(limit, "quad", "limit")
    if limit < 1:
        raise ValueError(f"quad: limit {limit} given; one interval or more is required.")
    ends = (np.sign(a) if low else 0, np.sign(b) if high else 0)
    if low and high and ends[0] == ends[1]:
        raise ValueError(f"quad: from {a} to {b} given; an interval is required.")
    a, b = (asarray(v) for v in promote_dtypes(
        "quad", 0.0 if low else a, 0.0 if high else b, inexact=True))
    check_callable("quad", func)
    return _quad(func, settings, limit, ends, a, b, sequence(args, "quad", "args"))


Ends: TypeAlias = tuple[Any, Any]       # the sign of each limit that is infinite, else 0
Pair: TypeAlias = tuple[Array, Array]


def _line(ends: Ends, a: Array, b: Array) -> tuple[Callable[[Array], Pair], float, int]:
    """x and dx/du at u, where u begins, and the sign of the integral; u ends at 1."""
    low, high = ends
    if low and high:
        return lambda u: (u / (1 - u * u), (1 + u * u) / (1 - u * u) ** 2), -1.0, high
    if low or high:
        at, way, sign = (a, high, high) if high else (b, low, -low)
        return lambda u: (at + way * u / (1 - u), 1 / (1 - u) ** 2), 0.0, sign
    return lambda u: (a + (b - a) * u, b - a), 0.0, 1


def _rule(fun: Callable[..., Array], ends: Ends, a: Array, b: Array, args: Sequence[PyTree]
          ) -> Callable[[Array, Array], Pair]:
    """The integral between two u, and an estimate of its error."""
    place = _line(ends, a, b)[0]
    nodes = np.concatenate([_NODES, [0.0], -_NODES[::-1]]).astype(a.dtype)
    kronrod = np.concatenate([_KRONROD, _KRONROD[-2::-1]]).astype(a.dtype)
    gauss = np.zeros(21, a.dtype)
    gauss[1:10:2], gauss[11:20:2] = _GAUSS, _GAUSS[::-1]

    def rule(start: Array, end: Array) -> Pair:
        half = (end - start) / 2
        x, slope = place(start + half * (1 + nodes))
        values = vmap(lambda x: fun(x, *args))(x) * (slope * half)
        integral = (values * kronrod).sum()
        error = absolute((values * (kronrod - gauss)).sum())
        # QUADPACK: where the function is smooth the error is a power 3/2 of the difference.
        deviation = (absolute(values - integral / 2) * kronrod).sum()
        ratio = where(deviation > 0, 200 * error / where(deviation > 0, deviation, 1), 1)
        return integral, where(ratio < 1, deviation * ratio ** 1.5, error)
    return rule


@partial(jit, static_argnums=(0, 1, 2, 3))
def _quad(func: Callable[..., ArrayLike], settings: tuple[float, float], limit: int,
          ends: Ends, a: Array, b: Array, args: Sequence[PyTree]) -> Pair:
    _, begin, sign = _line(ends, a, b)
    dtype = a.dtype
    fun, consts = closure_convert(lambda x, *args: asarray(func(x, *args)), a, *args)
    operands = (a, b, (*args, *consts))
    rule = _rule(fun, ends, *tree_map(stop_gradient, operands))
    epsabs, epsrel = settings
    epsrel = max(epsrel, 50 * float(dtypes.finfo(dtype).eps))

    def going(state: PyTree) -> Array:
        values, errors, _, count = state
        return (errors.sum() > maximum(absolute(values.sum()) * epsrel, epsabs)) & (count < limit)

    def halve(state: PyTree) -> PyTree:
        values, errors, edges, count = state
        i = argmax(errors)
        start, end = edges[i]
        middle = (start + end) / 2
        at, parts = asarray([i, count]), asarray([[start, middle], [middle, end]])
        integrals, error = vmap(rule)(parts[:, 0], parts[:, 1])
        return (values.at[at].set(integrals), errors.at[at].set(error), edges.at[at].set(parts),
                count + 1)

    first, error = rule(asarray(begin, dtype), asarray(1, dtype))
    # Intervals that are not used have no length, and are where the function has a value.
    edges = full((limit, 2), 0.5, dtype).at[0].set(asarray([begin, 1], dtype))
    _, errors, edges, _ = while_loop(going, halve, (
        zeros(limit, first.dtype).at[0].set(first), zeros(limit, error.dtype).at[0].set(error),
        edges, asarray(1)))
    # The value is the rule on these intervals once more, which derivatives go through.
    parts, _ = vmap(_rule(fun, ends, *operands))(edges[:, 0], edges[:, 1])
    return sign * parts.sum(), errors.sum()
