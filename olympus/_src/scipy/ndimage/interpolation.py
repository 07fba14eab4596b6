"""Images between their pixels: splines up to order 3, and transformations of coordinates."""

from __future__ import annotations

import functools
import itertools
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.docstrings import described_like
from ...base.typing import Array, ArrayLike, DType
from ...base.util import real_number
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.linalg.solve import tridiagonal_solve
from ...numpy.arithmetic import abs as absolute, maximum, minimum, mod, sign
from ...numpy.creation import asarray
from ...numpy.elementary import floor
from ...numpy.linalg.systems import inv
from ...numpy.manipulation import moveaxis
from ...numpy.padding import pad
from ...numpy.products import matmul
from ...numpy.promote import array_args, broadcast_to, inexact, to_array
from ...numpy.selection import where
from ...numpy.trigonometry import cos, sin
from ...types import dtypes
from ...types.shape import (
    canonical_axes, canonical_axis, canonical_shape, definitely_equal, is_static, less, sequence,
    static_int,
)
from ..linalg.arguments import count_of, counted

_MODES = ("constant", "nearest", "wrap", "mirror", "reflect", "grid-constant", "grid-wrap",
          "grid-mirror")
_MARGIN = 12    # pixels after which what lies beyond an edge has no influence on a spline


def _check_options(name: str, order: int, mode: str) -> int:
    order = static_int(order, name, "order")
    if not 0 <= order <= 3:
        raise ValueError(f"{name}: order {order} given; 0, 1, 2 or 3 is required.")
    if mode not in _MODES:
        raise ValueError(f"{name}: mode {mode!r} given; one of {', '.join(map(repr, _MODES))} is "
                         "required.")
    return order


def sizes_of(name: str, x: ArrayLike) -> tuple[int, ...]:
    """The shape as ints."""
    return tuple([static_int(n, name, "size") for n in typeof(x).shape])


def floating(x: Array) -> Array:
    """An image in a dtype to compute with."""
    x = inexact(x)
    wide = dtypes.to_complex_dtype(x.dtype)
    return x.astype(wide if typeof(x).dtype.kind == "c" else dtypes.to_real_dtype(wide))


def _as_given(out: Array, dtype: DType) -> Array:
    """Results in the image's dtype, rounded if that is one of integers."""
    if dtypes.is_integer(dtype):
        out = sign(out) * floor(absolute(out) + 0.5)
    return out.astype(dtype)


# Coefficients of splines -------------------------------------------------------------------------

def _coefficients(x: Array, order: int, axis: int, mode: str) -> Array:
    """The coefficients of the spline through the pixels along an axis, of order 2 or 3.

    They solve a system of three diagonals; the mode says what its first and last rows are, or that
    it is periodic.
    """
    n = typeof(x).shape[axis]
    if definitely_equal(n, 1):
        return x
    side, middle = (1 / 6, 4 / 6) if order == 3 else (1 / 8, 6 / 8)
    indices = counted(n)
    x = moveaxis(x, axis, 0)
    shape = typeof(x).shape
    flat = x.reshape((n, -1))
    if mode == "grid-wrap":
        away = abs(indices[:, None] - indices)
        matrix = middle * (away == 0) + side * (away == 1) + side * (away == n - 1)
        inverse = np.linalg.inv(matrix) if is_static((n,)) else inv(matrix)
        flat = matmul(inverse.astype(flat.dtype), flat)
    else:
        first, last = 1.0 * (indices == 0), 1.0 * (indices == n - 1)
        folded, doubled = (side, 0) if mode in ("reflect", "grid-mirror") else (0, side)
        below, above = side + doubled * last, side + doubled * first
        main = middle + folded * (first + last)
        below, main, above = (asarray(d, flat.dtype) for d in (below, main, above))
        flat = tridiagonal_solve(below, main, above, flat)
    return moveaxis(flat.reshape(shape), 0, axis)


@fused(static=("order", "axis", "mode"))
def spline_filter1d(input: ArrayLike, order: int = 3, axis: int = -1, *, mode: str = "mirror"
                    ) -> Array:
    """The coefficients of the spline through an image's pixels along one axis.

    Args:
      input: an image of any rank; integers become floats.
      order: 2 or 3; of 0 and 1 the pixels are the coefficients.
      axis: along which.
      mode: how the image goes on beyond its edges: "mirror", "reflect" or "grid-wrap"; others count
        as "mirror".
    Returns: An array like the image.

    Raises ValueError for other orders and modes.

    >>> print(olympus.scipy.ndimage.spline_filter1d(onp.array([1., 1., 1.])).round(3))
    [1. 1. 1.]
    """
    order = _check_options("spline_filter1d", order, mode)
    x = floating(to_array(array_args("spline_filter1d", input)[0]))
    axis = canonical_axis(axis, typeof(x).ndim, "spline_filter1d")
    return _coefficients(x, order, axis, mode) if order > 1 else x


@fused(static=("order", "mode"))
@described_like(spline_filter1d)
def spline_filter(input: ArrayLike, order: int = 3, *, mode: str = "mirror") -> Array:
    """The coefficients of the spline through an image's pixels, along all axes.

    >>> print(olympus.scipy.ndimage.spline_filter(onp.ones((2, 2))).round(3))
    [[1. 1.]
     [1. 1.]]
    """
    order = _check_options("spline_filter", order, mode)
    x = floating(to_array(array_args("spline_filter", input)[0]))
    return _filtered(x, order, mode)


def _filtered(x: Array, order: int, mode: str) -> Array:
    if order > 1:
        for axis in range(typeof(x).ndim):
            x = _coefficients(x, order, axis, mode)
    return x


# Values between ----------------------------------------------------------------------------------

def _taps(c: Array, order: int) -> tuple[Array, list[None]] | tuple[Array, list[Array]]:
    """The first of order + 1 neighbouring pixels, and the weight of each (B-splines)."""
    base = floor(c + 0.5) if order % 2 == 0 else floor(c)
    t = c - base
    if order == 0:
        return base, [None]
    if order == 1:
        return base, [1 - t, t]
    if order == 2:
        return base - 1, [0.5 * (0.5 - t) ** 2, 0.75 - t * t, 0.5 * (0.5 + t) ** 2]
    return base - 1, [(1 - t) ** 3 / 6, 2 / 3 - t * t * (1 - t / 2),
                      (1 + 3 * t + 3 * t * t - 3 * t ** 3) / 6, t ** 3 / 6]


def _folded(c: Array, n: int, mode: str) -> Array:
    """Coordinates brought into the image, as the mode continues it."""
    if mode == "nearest":
        return minimum(maximum(c, 0), n - 1)
    if mode == "grid-wrap":
        return mod(c, n)
    if mode in ("reflect", "grid-mirror"):
        t = mod(c + 0.5, 2 * n)
        return minimum(t, 2 * n - t) - 0.5
    if mode in ("mirror", "wrap"):
        if n == 1:
            return c * 0
        if mode == "mirror":
            t = mod(c, 2 * (n - 1))
            return minimum(t, 2 * (n - 1) - t)
        return where((c < 0) | (c > n - 1), mod(c, n - 1), c)
    return c


def _pixel(i: Array, n: int, mode: str) -> Array:
    """Which pixel stands for number i, which may lie beyond an edge."""
    if mode == "grid-wrap":
        return mod(i, n)
    if mode in ("reflect", "grid-mirror"):
        t = mod(i, 2 * n)
        return minimum(t, 2 * n - 1 - t)
    if n == 1:
        return i * 0
    t = mod(i, 2 * (n - 1))
    return minimum(t, 2 * (n - 1) - t)


def sampled(x: Array, coordinates: Sequence[Array], order: int, mode: str, cval: ArrayLike,
            prefilter: bool) -> Array:
    """The values of an image (in a floating dtype) at coordinates, one array per axis."""
    if order > 1 and prefilter:
        if mode in ("nearest", "grid-constant"):
            # Beyond the edges the spline continues an image that goes on for ever.
            margin: dict[str, Any] = (
                {"mode": "edge"} if mode == "nearest" else {"constant_values": cval})
            x = pad(x, _MARGIN, **margin)
            coordinates = [c + _MARGIN for c in coordinates]
        x = _filtered(x, order, mode)
    sizes = typeof(x).shape
    inside: Any = True
    taps = []
    for c, n in zip(coordinates, sizes, strict=True):
        if mode == "constant":
            inside = inside & (c >= 0) & (c <= n - 1)
        first, weights = _taps(_folded(c, n, mode), order)
        first = first.astype(np.int32)
        axis = []
        for k, weight in enumerate(weights):
            i = first + k
            known = (i >= 0) & less(i, n) if mode == "grid-constant" else True
            axis.append((_pixel(i, n, mode), weight, known))
        taps.append(axis)
    total: Any = 0
    for combination in itertools.product(*taps):
        indices, weights, known = zip(*combination)
        value = x[tuple(indices)]
        if mode == "grid-constant":
            value = where(functools.reduce(operator.and_, known), value, cval)
        for weight in weights:
            value = value if weight is None else value * weight.astype(
                dtypes.to_real_dtype(value.dtype))
        total = total + value
    return where(inside, total, cval) if mode == "constant" else total


@fused(static=("order", "mode", "prefilter"))
def map_coordinates(input: ArrayLike, coordinates: Sequence[ArrayLike] | ArrayLike, order: int,
                    mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True) -> Array:
    """The values of an image at any coordinates.

    Args:
      input: an image of any rank.
      coordinates: one array per axis of the image, of one shape, or that broadcast: in pixels.
      order: of the spline: 0 (the nearest pixel), 1 (linear), 2 or 3.
      mode: how the image goes on beyond its edges: "constant" (`cval`, towards which is
        interpolated; "grid-constant" is another name of it), "nearest" (the edge), "wrap"
        (periodically; "grid-wrap" is another name), "mirror" (about the last pixel), "reflect"
        (about its edge; "grid-mirror" is another name). SciPy's "constant" has `cval` at once
        beyond the last pixel, and its "wrap" a period of one pixel less.
      cval: of "constant".
      prefilter: whether the image is given, or the coefficients that `spline_filter` makes of it.
    Returns: An array of the coordinates' shape in the image's dtype; of integers rounded. The
      spline is differentiated, by the image and by the coordinates.

    Raises ValueError for other orders and modes, and another number of coordinates than of axes.

    >>> image = onp.arange(6.).reshape(2, 3)
    >>> at = onp.array([[0.5, 1.0], [1.0, 0.5]])
    >>> print(olympus.scipy.ndimage.map_coordinates(image, at, order=1))
    [2.5 3.5]
    """
    order = _check_options("map_coordinates", order, mode)
    x = to_array(array_args("map_coordinates", input)[0])
    points = [_real_coordinates(inexact(to_array(array_args("map_coordinates", c)[0])))
              for c in sequence(coordinates, "map_coordinates", "coordinates")]
    if len(points) != typeof(x).ndim:
        raise ValueError(f"map_coordinates: {typeof(x)} and {len(points)} arrays of coordinates "
                         f"given; a sequence of length {typeof(x).ndim}, one array per axis, is "
                         "required.")
    mode = {"constant": "grid-constant", "wrap": "grid-wrap"}.get(mode, mode)
    dtype = typeof(x).dtype
    x = floating(x)
    return _as_given(sampled(x, points, order, mode, _fill_value(cval, x), prefilter), dtype)


def _real_coordinates(c: Array) -> Array:
    if typeof(c).dtype.kind == "c":
        raise TypeError(f"map_coordinates: coordinates {typeof(c)} given; real numbers are "
                        "required.")
    return c.astype(dtypes.to_real_dtype(dtypes.to_complex_dtype(c.dtype)))


def _fill_value(cval: ArrayLike, x: Array) -> Array:
    return to_array(array_args("map_coordinates", cval)[0]).astype(x.dtype)


# Transformations ---------------------------------------------------------------------------------

_STATIC = ("order", "mode", "prefilter")


def _transformed(name: str, x: Array, matrix: Array, offset: Array, shape: tuple[int, ...],
                 order: int, mode: str, cval: ArrayLike, prefilter: bool) -> Array:
    """The image at matrix @ pixel + offset, for the pixels of a shape."""
    order = _check_options(name, order, mode)
    dtype = typeof(x).dtype
    if not typeof(x).ndim:
        raise ValueError(f"{name}: {typeof(x)} given; an image of at least one axis is required.")
    x = floating(x)
    real = dtypes.to_real_dtype(x.dtype)
    ndim = len(shape)
    grid = [counted(n).reshape([-1 if i == k else 1 for k in range(ndim)]).astype(real)
            for i, n in enumerate(shape)]
    at = []
    for i in range(ndim):
        if typeof(matrix).ndim == 1:
            c = matrix[i] * grid[i]
        else:
            c = sum(matrix[i, j] * grid[j] for j in range(ndim))
        at.append(c + offset[i])
    out = sampled(x, at, order, mode, _fill_value(cval, x), prefilter)
    return _as_given(broadcast_to(out, shape), dtype)


@fused(static=(*_STATIC, "output_shape"))
def affine_transform(input: ArrayLike, matrix: ArrayLike, offset: ArrayLike = 0.0,
                     output_shape: tuple[int, ...] | None = None, *, order: int = 3,
                     mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True
                     ) -> Array:
    """An affine transform: its pixel p is the image's value at matrix @ p + offset.

    Args:
      input: an image of n axes.
      matrix: [n, n]; [n], the diagonal of one; or [n, n + 1] or [n + 1, n + 1], with the offset as
        last column.
      offset: [n], or a number for all axes; not read where the matrix has it.
      output_shape: of the result; the image's unless given.
      order, cval, prefilter: as for `map_coordinates`.
      mode: as for `map_coordinates`, but "constant" and "wrap" are SciPy's.
    Returns: An image of the same dtype.

    Raises ValueError for a matrix of another shape.

    >>> x = onp.array([1., 2., 3.])
    >>> print(olympus.scipy.ndimage.affine_transform(x, onp.array([1.]), 1.0, order=1))
    [2. 3. 0.]
    """
    x = to_array(array_args("affine_transform", input)[0])
    ndim = typeof(x).ndim
    m = _real_coordinates(inexact(asarray(matrix)))
    shape = sizes_of("affine_transform", m)
    shift = _real_coordinates(inexact(asarray(offset)))
    shift = shift + np.zeros(ndim, shift.dtype)
    if shape in ((ndim, ndim + 1), (ndim + 1, ndim + 1)):
        shift, m = m[:ndim, ndim], m[:ndim, :ndim]
    elif shape not in ((ndim, ndim), (ndim,)):
        raise ValueError(f"affine_transform: {typeof(x)} and matrix {typeof(m)} given; a matrix "
                         f"[{ndim}, {ndim}], its diagonal, or a matrix with the offset as last "
                         "column is required.")
    out = typeof(x).shape if output_shape is None else canonical_shape(
        output_shape, "affine_transform: output_shape")
    if len(out) != ndim:
        raise ValueError(f"affine_transform: {typeof(x)} and output_shape {out} given; a size per "
                         "axis is required.")
    return _transformed("affine_transform", x, m, shift, out, order, mode, cval, prefilter)


@fused(static=_STATIC)
def shift(input: ArrayLike, shift: ArrayLike, *, order: int = 3, mode: str = "constant",
          cval: ArrayLike = 0.0, prefilter: bool = True) -> Array:
    """Shift an image by any number of pixels along each axis.

    Args:
      input: an image of n axes.
      shift: [n], or a number for all axes; may be traced.
      order, mode, cval, prefilter: as for `affine_transform`.
    Returns: An image of the same shape and dtype.

    >>> print(olympus.scipy.ndimage.shift(onp.array([1., 2., 3.]), 1.0, order=1))
    [0. 1. 2.]
    """
    x = to_array(array_args("shift", input)[0])
    by = _real_coordinates(inexact(asarray(shift)))
    ndim = typeof(x).ndim
    ones = np.ones(ndim, by.dtype)
    return _transformed("shift", x, asarray(ones), -by * ones, typeof(x).shape, order, mode,
                        cval, prefilter)


@fused(static=("zoom", *_STATIC, "grid_mode"))
def zoom(input: ArrayLike, zoom: float | tuple[float, ...], *, order: int = 3,
         mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True,
         grid_mode: bool = False) -> Array:
    """Enlarge or reduce an image.

    Args:
      input: an image of n axes.
      zoom: a factor per axis, or one for all; static.
      order, mode, cval, prefilter: as for `affine_transform`.
      grid_mode: whether pixels are areas, so that edges meet, or points, so that the middles of the
        first and last pixels do.
    Returns: An image of the same dtype, of the shape times the factors, rounded.

    >>> print(olympus.scipy.ndimage.zoom(onp.array([1., 4.]), 2, order=1).round())
    [1. 2. 3. 4.]
    """
    x = to_array(array_args("zoom", input)[0])
    sizes = sizes_of("zoom", x)
    factors = ((zoom,) * len(sizes) if isinstance(zoom, (int, float)) else
               sequence(zoom, "zoom", "zoom"))
    if len(factors) != len(sizes):
        raise ValueError(f"zoom: {typeof(x)} and factors {factors} given; one per axis is "
                         "required.")
    factors = tuple([real_number(f, "zoom: zoom") for f in factors])
    if not all(0 <= f < 2**31 for f in factors):
        raise ValueError(f"zoom: factors {factors} given; finite numbers of at least 0 are "
                         "required.")
    out = tuple([count_of("zoom", "size", round(n * f)) for n, f in zip(sizes, factors)])
    real = dtypes.to_real_dtype(floating(x).dtype)
    if grid_mode:
        steps = [n / m if m else 1.0 for n, m in zip(sizes, out)]
        offsets = [s / 2 - 0.5 for s in steps]
    else:
        steps = [(n - 1) / (m - 1) if m > 1 else 1.0 for n, m in zip(sizes, out)]
        offsets = [0.0] * len(sizes)
    return _transformed("zoom", x, asarray(np.array(steps), real), asarray(np.array(offsets), real),
                        out, order, mode, cval, prefilter)


@described_like(affine_transform)
def rotate(input: ArrayLike, angle: float, axes: tuple[int, int] = (1, 0), reshape: bool = True, *,
           order: int = 3, mode: str = "constant", cval: ArrayLike = 0.0, prefilter: bool = True
           ) -> Array:
    """Rotate an image in the plane of two axes.

    Args:
      input: an image of at least two axes.
      angle: in degrees; may be traced unless `reshape`.
      axes: the plane.
      reshape: whether the result is large enough for all of the turned image.

    Raises ValueError for other than two different axes.

    >>> print(olympus.scipy.ndimage.rotate(onp.array([[1., 2.], [3., 4.]]), 90, order=1).round(2))
    [[2. 4.]
     [1. 3.]]
    """
    x = to_array(array_args("rotate", input)[0])
    plane = sorted(canonical_axes(tuple(sequence(axes, "rotate", "axes")), typeof(x).ndim,
                                  "rotate"))
    if len(set(plane)) != 2:
        raise ValueError(f"rotate: axes {axes} given; two different axes are required.")
    out = list(typeof(x).shape)
    if reshape:
        before = np.array([sizes_of("rotate", x)[i] for i in plane], float)
        turn = np.deg2rad(real_number(angle, "rotate: angle"))
        c, s = np.cos(turn), np.sin(turn)
        # The corners of the image, turned, span the new one.
        corners = np.array([[c, s], [-s, c]]) @ np.array(
            [[0, 0, before[0], before[0]], [0, before[1], 0, before[1]]])
        after = (np.ptp(corners, axis=1) + 0.5).astype(int)
        out[plane[0]], out[plane[1]] = map(int, after)
    return _rotated(x, angle, plane=tuple(plane), out=tuple(out), order=order, mode=mode, cval=cval,
                    prefilter=prefilter)


@fused(static=("plane", "out", "order", "mode", "prefilter"))
def _rotated(x: Array, angle: object, *, plane: tuple[int, ...], out: tuple[int, ...],
             order: int, mode: str, cval: ArrayLike, prefilter: bool) -> Array:
    real = dtypes.to_real_dtype(floating(x).dtype)
    turn = to_array(array_args("rotate", angle)[0]).astype(real) * np.pi / 180
    # Quarter turns are exact.
    quarters = turn * (2 / np.pi)
    whole = floor(quarters + 0.5)
    rest = (quarters - whole) * (np.pi / 2)
    small = asarray([[cos(rest), sin(rest)], [-sin(rest), cos(rest)]])
    quarter = mod(whole, 4)
    cosine = where(quarter == 0, 1, where(quarter == 2, -1, 0)).astype(real)
    sine = where(quarter == 1, 1, where(quarter == 3, -1, 0)).astype(real)
    turned = matmul(asarray([[cosine, sine], [-sine, cosine]]), small)
    sizes = typeof(x).shape
    ndim = len(sizes)
    middle = asarray([(sizes[i] - 1) / 2 for i in plane], real)
    new = asarray([(out[i] - 1) / 2 for i in plane], real)
    offset = middle - matmul(turned, new)
    i, j = plane
    matrix = asarray(np.eye(ndim), real)
    matrix = matrix.at[i, i].set(turned[0, 0]).at[i, j].set(turned[0, 1])
    matrix = matrix.at[j, i].set(turned[1, 0]).at[j, j].set(turned[1, 1])
    offsets = asarray(np.zeros(ndim), real).at[np.array(plane)].set(offset)
    return _transformed("rotate", x, matrix, offsets, out, order, mode, cval, prefilter)
