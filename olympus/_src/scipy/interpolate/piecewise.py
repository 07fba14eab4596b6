"""Curves through points: piecewise polynomials whose pieces meet smoothly."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from ...base.source import api_boundary
from ...base.typing import Array, ArrayLike
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.linalg.solve import tridiagonal_solve
from ...numpy.arithmetic import absolute, floor_divide, remainder, sign
from ...numpy.conditions import clip
from ...numpy.creation import asarray, zeros_like
from ...numpy.indexing import take
from ...numpy.joining import concatenate, stack
from ...numpy.manipulation import moveaxis
from ...numpy.promote import inexact, promote_dtypes
from ...numpy.reductions import cumsum
from ...numpy.selection import where
from ...numpy.sorting import argsort, searchsorted
from ...numpy.statistics import diff
from ...types.shape import canonical_axis, definitely_equal, less
from ...types.tree_registry import register_pytree_node_class

Condition: TypeAlias = str | tuple[int, ArrayLike]     # of an end: a name, or (order, value)


@register_pytree_node_class
class PPoly:
    """A piecewise polynomial: on [x[i], x[i + 1]] it is sum of c[k, i] (t - x[i]) ** (K - 1 - k).

    A pytree: it passes through `jit` and `vmap`, and has derivatives with respect to all in it.

    Args:
      c: [K, m, ...], the coefficients, highest degree first.
      x: [m + 1], ascending.
      extrapolate: whether the outer pieces go on beyond the ends; else it is NaN there; "periodic":
        it repeats.
      axis: where the pieces' axis stands in the values that are given back.

    >>> import olympus.numpy as onp
    >>> from olympus.scipy.interpolate import PPoly
    >>> saw = PPoly(onp.array([[1., 1.], [0., 0.]]), onp.array([0., 1., 2.]))
    >>> print(saw(onp.array([0.5, 1.25])), saw.integrate(0., 2.))
    [0.5  0.25] 1.0
    """

    def __init__(self, c: ArrayLike, x: ArrayLike, extrapolate: bool | str | None = None,
                 axis: int = 0) -> None:
        c, x = inexact(asarray(c)), inexact(asarray(x))
        if c.ndim < 2 or x.ndim != 1 or not c.shape[0] or not definitely_equal(
                c.shape[1], x.shape[0] - 1):
            raise ValueError(f"PPoly: c {typeof(c)} and x {typeof(x)} given; [K, m, ...] and "
                             "[m + 1] are required.")
        if extrapolate not in (None, True, False, "periodic"):
            raise ValueError(f"PPoly: extrapolate {extrapolate!r} given; a bool, None or "
                             "'periodic' is required.")
        self.c, self.x = c, x
        self.extrapolate = True if extrapolate is None else extrapolate
        self.axis = canonical_axis(axis, c.ndim - 1)

    def tree_flatten(self) -> tuple[tuple, tuple]:
        """For pytrees: the arrays, and how they are read."""
        return (self.c, self.x), (self.extrapolate, self.axis)

    @classmethod
    def tree_unflatten(cls, aux: tuple, children: tuple) -> PPoly:
        """The curve of these arrays, of whatever type they are."""
        self = object.__new__(cls)
        self.c, self.x = children
        self.extrapolate, self.axis = aux
        return self

    def _with(self, c: ArrayLike) -> PPoly:
        return PPoly.tree_unflatten((self.extrapolate, self.axis), (c, self.x))

    @api_boundary
    def __call__(self, x: ArrayLike, nu: int = 0, extrapolate: bool | str | None = None) -> Array:
        """The values, or the nu-th derivative's, at places of any shape.

        Args:
          x: real places; nu: the order of the derivative, negative for an integral from the first
            end; extrapolate: other than the curve's.
        """
        if nu:
            return self.derivative(nu)(x, extrapolate=extrapolate)
        beyond = self.extrapolate if extrapolate is None else extrapolate
        knots, t = (asarray(v) for v in promote_dtypes("PPoly", self.x, x, inexact=True))
        return _polynomial_values(self.c, knots, t, beyond=beyond, axis=self.axis)

    @api_boundary
    def derivative(self, nu: int = 1) -> PPoly:
        """The nu-th derivative as a curve; for a negative nu the integral."""
        if nu < 0:
            return self.antiderivative(-nu)
        c = self.c
        for _ in range(nu):
            degree = np.arange(c.shape[0] - 1, 0, -1).reshape(-1, *[1] * (c.ndim - 1))
            c = c[:-1] * degree.astype(self.x.dtype) if len(c) > 1 else c * 0
        return self._with(c)

    @api_boundary
    def antiderivative(self, nu: int = 1) -> PPoly:
        """The nu-fold integral from x[0] as a curve, continuous where the pieces meet."""
        c = self.c
        h = diff(self.x).reshape(-1, *[1] * (c.ndim - 2))
        for _ in range(nu):
            degree = np.arange(c.shape[0], 0, -1).reshape(-1, *[1] * (c.ndim - 1))
            c = c / degree.astype(self.x.dtype)
            over = c[0]
            for part in c[1:]:
                over = over * h + part
            ends = cumsum(over * h, 0)
            start = concatenate([zeros_like(ends[:1]), ends[:-1]])
            c = concatenate([c, start[None]])
        return self._with(c)

    @api_boundary
    def integrate(self, a: ArrayLike, b: ArrayLike, extrapolate: bool | str | None = None) -> Array:
        """The integral from a to b."""
        whole = self.antiderivative()
        beyond = self.extrapolate if extrapolate is None else extrapolate
        if beyond != "periodic":
            return whole(b, extrapolate=beyond) - whole(a, extrapolate=beyond)
        length = self.x[-1] - self.x[0]

        def until(t: Array) -> Array:
            turns = floor_divide(t - self.x[0], length)
            return turns * whole(self.x[-1], extrapolate=True) + whole(
                t - turns * length, extrapolate=True)

        return until(asarray(b)) - until(asarray(a))


@fused(static=("beyond", "axis"))
def _polynomial_values(c: Array, knots: Array, t: Array, *, beyond: bool | str, axis: int) -> Array:
    """The values of a piecewise polynomial."""
    if beyond == "periodic":
        t = knots[0] + remainder(t - knots[0], knots[-1] - knots[0])
    i = clip(searchsorted(knots, t, side="right") - 1, 0, knots.shape[0] - 2)
    s = t - knots[i]
    s = s.reshape(*s.shape, *[1] * (c.ndim - 2))
    pieces = take(c, i, axis=1)
    out = pieces[0]
    for piece in pieces[1:]:
        out = out * s + piece
    if beyond is False or beyond == 0:
        inside = ((t >= knots[0]) & (t <= knots[-1])).reshape(s.shape)
        out = where(inside, out, np.nan)
    if not axis:
        return out
    return moveaxis(out, tuple(range(t.ndim)),
                    tuple(range(axis, axis + t.ndim)))


def _points(name: str, x: ArrayLike, y: ArrayLike, axis: int, least: int = 2
            ) -> tuple[Array, Array, int]:
    """The places, the values with their axis first, and that axis."""
    x, y = (asarray(v) for v in promote_dtypes(name, x, y, inexact=True))
    axis = canonical_axis(axis, y.ndim)
    if x.ndim != 1 or less(x.shape[0], least) or not definitely_equal(x.shape[0], y.shape[axis]):
        raise ValueError(f"{name}: x {typeof(x)} and y {typeof(y)} given; a vector of {least} "
                         f"places or more and as many values on axis {axis} of y are required.")
    return x, moveaxis(y, axis, 0), axis


def _column(x: Array, y: Array) -> Array:
    """A vector with the axes that `y` has behind its first."""
    return x.reshape(-1, *[1] * (y.ndim - 1))


class _Hermite(PPoly):
    """The piecewise cubic of given values and slopes at the places."""

    def __init__(self, x: Array, y: Array, slopes: Array, axis: int,
                 extrapolate: bool | str | None) -> None:
        super().__init__(_cubics(x, y, slopes), x, extrapolate, axis)


@fused
def _cubics(x: Array, y: Array, slopes: Array) -> Array:
    """The coefficients [4, n - 1, ...] of the cubics with these values and slopes."""
    h = _column(diff(x), y)
    rise = diff(y, axis=0) / h
    bend = (slopes[:-1] + slopes[1:] - 2 * rise) / h
    return stack([bend / h, (rise - slopes[:-1]) / h - bend, slopes[:-1], y[:-1]])


@register_pytree_node_class
class CubicSpline(_Hermite):
    """The piecewise cubic through points whose first and second derivatives are continuous.

    Args:
      x: [n], ascending, two or more; not checked.
      y: values, real or complex, n of them on `axis`.
      axis: of `y`.
      bc_type: what holds at the ends. "not-a-knot": the first two pieces are one cubic, and the
        last two; "natural": the second derivative is zero; "clamped": the first is; "periodic": the
        ends, which must be equal, meet smoothly; or a pair of (order, value) of the derivative at
        each end.
      extrapolate: as for `PPoly`; "periodic" for a periodic curve, else True, unless given.

    Source: de Boor, "A Practical Guide to Splines" (1978), chapter IV.

    >>> import olympus.numpy as onp
    >>> from olympus.scipy.interpolate import CubicSpline
    >>> x = onp.arange(5.)
    >>> curve = CubicSpline(x, x ** 3)
    >>> print(curve(1.5), curve(1.5, 1), curve.integrate(0., 4.))
    3.375 6.75 64.0
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, axis: int = 0,
                 bc_type: str | tuple[Condition, Condition] = "not-a-knot",
                 extrapolate: bool | str | None = None) -> None:
        x, y, axis = _points("CubicSpline", x, y, axis)
        periodic = isinstance(bc_type, str) and bc_type == "periodic"
        if extrapolate is None:
            extrapolate = "periodic" if periodic else True
        super().__init__(x, y, _spline_slopes(x, y, bc_type), axis, extrapolate)


def _spline_slopes(x: Array, y: Array, bc_type: str | tuple[Condition, Condition]) -> Array:
    """First derivatives at the places, from a system of three diagonals."""
    n = x.shape[0]
    h = _column(diff(x), y)
    rise = diff(y, axis=0) / h
    if isinstance(bc_type, str) and bc_type == "periodic":
        return _periodic_slopes(diff(x), rise)
    ends = [bc_type] * 2 if isinstance(bc_type, str) else list(bc_type)
    if len(ends) != 2:
        raise ValueError(f"CubicSpline: bc_type {bc_type!r} given; a name or a pair is required.")
    if definitely_equal(n, 2):      # a line, unless the ends say otherwise
        ends = [(1, rise[0]) if e == "not-a-knot" else e for e in ends]
    elif definitely_equal(n, 3) and ends == ["not-a-knot"] * 2:       # one parabola
        bend = (rise[1] - rise[0]) / (h[0] + h[1])
        return stack([rise[0] - bend * h[0], rise[0] + bend * h[0], rise[1] + bend * h[1]])
    d, w = diff(x), rise
    inner = 3 * (h[1:] * w[:-1] + h[:-1] * w[1:])
    one = asarray(1, x.dtype)
    first = _end(ends[0], d, h, w, 1)
    last = _end(ends[1], d[::-1], h[::-1], w[::-1], -1)
    middle = 2 * (d[:-1] + d[1:])
    diagonal = concatenate([first[0][None] * one, middle, last[0][None] * one])
    above = concatenate([first[1][None] * one, d[:-1], one[None] * 0])
    below = concatenate([one[None] * 0, d[1:], last[1][None] * one])
    rhs = concatenate([first[2][None], inner, last[2][None]])
    return _solved(below, diagonal, above, rhs)


def _end(condition: Condition, d: Array, h: Array, w: Array, way: int
         ) -> tuple[Array, Array, Array]:
    """The row of an end: coefficients of its slope and the next one's, and the right side.

    `way` is -1 at the last end, from which the intervals run backwards.
    """
    one = asarray(1, d.dtype)
    if condition == "not-a-knot":
        total = h[0] + h[1]
        return d[1], d[0] + d[1], ((h[0] + 2 * total) * h[1] * w[0] + h[0] ** 2 * w[1]) / total
    if isinstance(condition, str):
        orders = {"clamped": 1, "natural": 2}
        if condition not in orders:
            raise ValueError(f"CubicSpline: bc_type {condition!r} given; 'not-a-knot', 'natural', "
                             "'clamped', 'periodic' or (order, value) is required.")
        condition = (orders[condition], 0.0)
    order, value = condition
    value = asarray(value, w.dtype) + 0 * w[0]
    if order == 1:
        return one, 0 * one, value
    if order == 2:
        return 2 * one, one, 3 * w[0] - way * value * h[0] / 2
    raise ValueError(f"CubicSpline: the derivative of order {order!r} given at an end; 1 or 2 is "
                     "required.")


def _solved(below: Array, diagonal: Array, above: Array, rhs: Array) -> Array:
    flat = rhs.reshape(rhs.shape[0], -1)
    below, diagonal, above = (v.astype(flat.dtype) for v in (below, diagonal, above))
    return tridiagonal_solve(below, diagonal, above, flat).reshape(rhs.shape)


def _periodic_slopes(d: Array, rise: Array) -> Array:
    """A cyclic system as one of three diagonals and a rank of one (Sherman & Morrison, 1950)."""
    n = d.shape[0]
    before = concatenate([d[-1:], d[:-1]])
    h, h_before = _column(d, rise), _column(before, rise)
    rise_before = concatenate([rise[-1:], rise[:-1]])
    rhs = 3 * (h * rise_before + h_before * rise)
    if definitely_equal(n, 1):
        slopes = rise * 0
    elif definitely_equal(n, 2):        # both corners fall on the other diagonals
        slopes = stack([(2 * rhs[0] - rhs[1]) / (6 * h[0] + 6 * h[1]) * 2,
                        (2 * rhs[1] - rhs[0]) / (6 * h[0] + 6 * h[1]) * 2])
    else:
        middle = 2 * (d + before)
        corner = d[0]       # row 0, last column; the last row's first is before[-1]
        gamma = -middle[0]
        diagonal = middle.at[0].add(-gamma).at[-1].add(-corner * before[-1] / gamma)
        u = (0 * middle).at[0].set(gamma).at[-1].set(before[-1])
        u = _column(u, rise) + 0 * rhs
        y, z = (_solved(d, diagonal, before, v) for v in (rhs, u))
        part = corner / gamma
        slopes = y - z * ((y[0] + part * y[-1]) / (1 + z[0] + part * z[-1]))
    return concatenate([slopes, slopes[:1]])


@register_pytree_node_class
class PchipInterpolator(_Hermite):
    """The piecewise cubic through points that rises and falls where they do, and nowhere else.

    Slopes as of Fritsch & Butland, "A method for constructing local monotone piecewise cubic
    interpolants" (1984): its first derivative is continuous, its second need not be.

    Args:
      x: [n], ascending, two or more; y: values, n of them on `axis`; real.
      axis: of `y`; extrapolate: as for `PPoly`.

    >>> import olympus.numpy as onp
    >>> from olympus.scipy.interpolate import PchipInterpolator
    >>> step = PchipInterpolator(onp.arange(4.), onp.array([0., 0., 1., 1.]))
    >>> print(step(onp.array([0.5, 1.5, 2.5])))
    [0.  0.5 1. ]
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, axis: int = 0,
                 extrapolate: bool | None = None) -> None:
        x, y, axis = _points("PchipInterpolator", x, y, axis)
        super().__init__(x, y, _monotone_slopes(x, y), axis, extrapolate)


@fused
def _monotone_slopes(x: Array, y: Array) -> Array:
    h = _column(diff(x), y)
    rise = diff(y, axis=0) / h
    if definitely_equal(x.shape[0], 2):
        return concatenate([rise, rise])
    one, two = 2 * h[1:] + h[:-1], h[1:] + 2 * h[:-1]
    turns = rise[:-1] * rise[1:] <= 0
    safe = [where(turns, 1, r) for r in (rise[:-1], rise[1:])]
    inner = where(turns, 0, (one + two) / (one / safe[0] + two / safe[1]))
    first, last = _outer_slope(h, rise), _outer_slope(h[::-1], rise[::-1])
    return concatenate([first[None], inner, last[None]])


def _outer_slope(h: Array, rise: Array) -> Array:
    """The slope of a parabola through three points, unless it would turn (Moler, 2004)."""
    slope = ((2 * h[0] + h[1]) * rise[0] - h[0] * rise[1]) / (h[0] + h[1])
    steep = (sign(rise[0]) != sign(rise[1])) & (absolute(slope) > 3 * absolute(rise[0]))
    return where(sign(slope) != sign(rise[0]), 0, where(steep, 3 * rise[0], slope))


@register_pytree_node_class
class Akima1DInterpolator(_Hermite):
    """The piecewise cubic through points whose slopes are means of the neighbouring lines'.

    Akima, "A new method of interpolation and smooth curve fitting based on local procedures"
    (1970): an outlier bends only the pieces near it.

    Args:
      x: [n], ascending, two or more; y: values, n of them on `axis`; real.
      axis: of `y`.
      method: "akima", or "makima", which weighs flat stretches so that it overshoots less.
      extrapolate: as for `PPoly`; NaN beyond the ends unless given.

    >>> import olympus.numpy as onp
    >>> from olympus.scipy.interpolate import Akima1DInterpolator
    >>> print(Akima1DInterpolator(onp.arange(6.), onp.array([0., 0., 0., 1., 1., 1.]))(2.5))
    0.5
    """

    def __init__(self, x: ArrayLike, y: ArrayLike, axis: int = 0, *, method: str = "akima",
                 extrapolate: bool | None = None) -> None:
        if method not in ("akima", "makima"):
            raise ValueError(f"Akima1DInterpolator: method {method!r} given; 'akima' or 'makima' "
                             "is required.")
        x, y, axis = _points("Akima1DInterpolator", x, y, axis)
        super().__init__(x, y, _akima_slopes(x, y, modified=method == "makima"), axis,
                         False if extrapolate is None else extrapolate)


@fused(static=("modified",))
def _akima_slopes(x: Array, y: Array, *, modified: bool) -> Array:
    rise = diff(y, axis=0) / _column(diff(x), y)
    if definitely_equal(x.shape[0], 2):
        return concatenate([rise, rise])
    before = [2 * rise[0] - rise[1]]
    before.insert(0, 2 * before[0] - rise[0])
    after = [2 * rise[-1] - rise[-2]]
    after.append(2 * after[0] - rise[-1])
    m = concatenate([stack(before), rise, stack(after)])
    change = absolute(diff(m, axis=0))
    if modified:
        change = change + absolute(m[1:] + m[:-1]) / 2
    ahead, behind = change[2:], change[:-2]
    total = ahead + behind
    flat = total <= 1e-9 * total.max()
    safe = where(flat, 1, total)
    return where(flat, (m[1:-2] + m[2:-1]) / 2, (ahead * m[1:-2] + behind * m[2:-1]) / safe)


@api_boundary
def interp1d(x: ArrayLike, y: ArrayLike, kind: str = "linear", axis: int = -1, copy: bool = True,
             bounds_error: bool | None = None,
             fill_value: ArrayLike | tuple[ArrayLike, ArrayLike] | str = np.nan,
             assume_sorted: bool = False) -> Callable[[ArrayLike], Array]:
    """A function of one variable that interpolates given points.

    Args:
      x: [n]; y: values, n of them on `axis`.
      kind: "linear" or "slinear", "nearest" (half way, the lower), "nearest-up" (the upper),
        "previous" or "zero", "next", or "cubic", a `CubicSpline`.
      axis: of `y`; copy: for SciPy's signature.
      bounds_error: refused where true; a compiled function cannot raise.
      fill_value: beyond the ends, or a pair of values; "extrapolate": the outer pieces go on.
      assume_sorted: whether `x` is ascending; it is sorted otherwise.
    Returns: a function of places of any shape.

    >>> from olympus.scipy.interpolate import interp1d
    >>> print(interp1d(onp.array([0., 1., 3.]), onp.array([0., 2., 0.]))(onp.array([.5, 2., 4.])))
    [ 1.  1. nan]
    """
    if bounds_error:
        raise NotImplementedError("interp1d: bounds_error given; fill_value= is required: a "
                                  "compiled function cannot raise.")
    x, y, axis = _points("interp1d", x, y, axis, 1 if kind not in ("linear", "slinear", "cubic")
                         else 2)
    if not assume_sorted:
        order = argsort(x)
        x, y = x[order], y[order]
    if not isinstance(fill_value, str):
        beyond = fill_value if isinstance(fill_value, tuple) else (fill_value, fill_value)
    elif fill_value == "extrapolate":
        beyond = None
    else:
        raise ValueError(f"interp1d: fill_value {fill_value!r} given; numbers or 'extrapolate' are "
                         "required.")
    curve = _curve(kind, x, y)

    def interpolant(at: ArrayLike) -> Array:
        points = inexact(asarray(at))
        out = curve(points)
        if beyond is not None:
            low, high = beyond
            t = points.reshape(*points.shape, *[1] * (y.ndim - 1))
            out = where(t < x[0], low, where(t > x[-1], high, out))
        return moveaxis(out, tuple(range(points.ndim)),
                        tuple(range(axis, axis + points.ndim)))

    return interpolant


def _curve(kind: str, x: Array, y: Array) -> Callable[[Array], Array]:
    """The function of places, the axis of the points in front."""
    if kind in ("linear", "slinear"):
        return PPoly(stack([diff(y, axis=0) / _column(diff(x), y), y[:-1]]), x)
    if kind == "cubic":
        return CubicSpline(x, y)
    last = x.shape[0] - 1
    middles = (x[:-1] + x[1:]) / 2
    kinds = {
        "previous": (x, "right", -1), "zero": (x, "right", -1), "next": (x, "left", 0),
        "nearest": (middles, "left", 0), "nearest-up": (middles, "right", 0)}
    if not isinstance(kind, str) or kind not in kinds:
        raise ValueError(f"interp1d: kind {kind!r} given; 'linear', 'nearest', 'nearest-up', "
                         "'zero', 'slinear', 'cubic', 'previous' or 'next' is required.")
    knots, side, shift = kinds[kind]
    return lambda at: y[clip(searchsorted(knots, at, side=side) + shift, 0, last)]
