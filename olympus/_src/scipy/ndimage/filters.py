"""Filters of images: weighted neighbourhoods, Gaussians and their derivatives, order statistics."""

from __future__ import annotations

import itertools
import operator
from collections.abc import Callable, Sequence
from functools import partial, reduce
from typing import Any, TypeAlias

import numpy as np

from ...base.config import enable_x64
from ...base.docstrings import complete_docstrings, described_like
from ...base.typing import Array, ArrayLike, DType
from ...base.util import real_number
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.conv import conv_general_dilated
from ...lax.shape import rev
from ...lax.slicing import slice_in_dim
from ...numpy.arithmetic import abs as absolute, maximum, minimum
from ...numpy.creation import asarray
from ...numpy.elementary import exp, rint, sqrt
from ...numpy.joining import stack
from ...numpy.manipulation import moveaxis
from ...numpy.padding import pad
from ...numpy.promote import array_args, convert, to_array
from ...numpy.selection import where
from ...numpy.sorting import sort
from ...types import dtypes
from ...types.shape import canonical_axes, canonical_axis, entries, static_int
from ..linalg.arguments import count_of
from .interpolation import floating, sizes_of

_EDGES = {"reflect": "symmetric", "grid-mirror": "symmetric", "constant": "constant",
          "grid-constant": "constant", "nearest": "edge", "mirror": "reflect", "wrap": "wrap",
          "grid-wrap": "wrap"}


# Weighted neighbourhoods -------------------------------------------------------------------------

Step: TypeAlias = Callable[[Array], Array]
_NEAR = 2.0**-44        # relative to a sum of integers, in float64


def _filtered(name: str, input: ArrayLike, steps: Sequence[Step]) -> Array:
    """An image after the steps, functions of floats, in its own dtype.

    Integers are SciPy's: each step computes in float64, and its result is cut off to the image's
    dtype, modulo its range.
    """
    x = to_array(array_args(name, input)[0])
    dtype = typeof(x).dtype
    if 0 in typeof(x).shape:    # there is nothing to extend
        return x
    if dtypes.is_inexact(dtype):
        return reduce(lambda x, step: step(x), steps, floating(x)).astype(dtype)
    with enable_x64(True):
        for step in steps:
            x = step(x.astype(np.float64))
            if dtypes.is_integer(dtype):
                near = rint(x)      # the weights' rounding errors take an integer below itself
                x = where(absolute(x - near) <= _NEAR * maximum(absolute(x), 1), near, x)
                x = x.astype(np.int64) if dtypes.itemsize_bits(dtype) < 64 else x
            x = x.astype(dtype)
    return x


Each: TypeAlias = Any     # one for each axis


def _per_axis(name: str, what: str, option: object, count: int) -> Each:
    """An argument that holds for all axes, or a list or tuple of one per axis."""
    each = list(option) if isinstance(option, (list, tuple)) else [option] * count
    if len(each) != count:
        raise ValueError(f"{name}: {what} {option!r} given; one, or one per axis, is required.")
    return each


def _extended(name: str, x: Array, widths: Sequence[tuple[int, int]], mode: object, cval: ArrayLike
              ) -> Array:
    """The image with what lies beyond its edges."""
    kinds = [_edge(name, edge) for edge in _per_axis(name, "mode", mode, len(widths))]
    for kind in dict.fromkeys(kinds):       # axes of one kind at once
        pairs = [pair if k == kind else (0, 0) for k, pair in zip(kinds, widths, strict=True)]
        x = pad(x, pairs, kind, **({"constant_values": cval} if kind == "constant" else {}))
    return x


def _edge(name: str, mode: object) -> str:
    """`numpy.pad`'s name for a mode of SciPy's."""
    if not isinstance(mode, str) or mode not in _EDGES:
        raise ValueError(f"{name}: mode {mode!r} given; one of {', '.join(map(repr, _EDGES))} is "
                         "required.")
    return _EDGES[mode]


def _reach(name: str, size: int, origin: int) -> tuple[int, int]:
    """How far a window of that size reaches to either side of its place."""
    before = size // 2 + static_int(origin, name, "origin")
    if size < 1 or not 0 <= before < size:
        raise ValueError(f"{name}: origin {origin} given for a window of {size}; a window with "
                         "elements that holds its own place is required.")
    return before, size - 1 - before


def _correlated(name: str, x: Array, window: Array, mode: object, cval: ArrayLike,
                origins: Sequence[int]) -> Array:
    """Sums over a window of x's rank, for real and complex numbers."""
    sizes = sizes_of(name, window)
    widths = [_reach(name, n, o) for n, o in zip(sizes, origins, strict=True)]
    x = _extended(name, x, widths, mode, cval)
    window = convert(window, x.dtype)
    return conv_general_dilated(x[None, None], window[None, None], (1,) * len(sizes),
                                [(0, 0)] * len(sizes))[0, 0]


def along(name: str, x: Array, weights: Array, axis: int, mode: object, cval: ArrayLike, origin: int
          ) -> Array:
    """Sums over a window along one axis."""
    _edge(name, mode)       # one for this axis, not a sequence
    moved = moveaxis(x, axis, -1)
    shape = typeof(moved).shape
    flat = moved.reshape((-1, shape[-1]))
    sizes = (1, sizes_of(name, weights)[0])
    out = _correlated(name, flat, weights.reshape(sizes), mode, cval, (0, origin))
    return moveaxis(out.reshape(shape), -1, axis)


def _one_axis(name: str, input: ArrayLike, weights: ArrayLike, axis: int, mode: str,
              cval: ArrayLike, origin: int, flipped: bool) -> Array:
    w = floating(asarray(weights))
    if typeof(w).ndim != 1:
        raise ValueError(f"{name}: weights {typeof(w)} given; a vector is required.")
    origin = static_int(origin, name, "origin")
    if flipped:     # the window's place is its mirror image's
        w, origin = rev(w, (0,)), -origin - (sizes_of(name, w)[0] + 1) % 2
    axis = canonical_axis(axis, typeof(array_args(name, input)[0]).ndim, name)
    return _filtered(name, input, [
        lambda x: along(name, x, convert(w, x.dtype), axis, mode, cval, origin)])


@fused(static=("axis", "mode", "origin"))
def correlate1d(input: ArrayLike, weights: ArrayLike, axis: int = -1, *, mode: str = "reflect",
                cval: ArrayLike = 0.0, origin: int = 0) -> Array:
    """The correlation with a vector of weights along one axis.

    Args:
      weights: [k]: weights[j] belongs to the pixel j - k//2 - origin places further.
      mode: how the image goes on beyond its edges: "reflect" (about the edge), "mirror" (about the
        last pixel), "nearest", "wrap", or "constant".
      cval: of "constant".
      origin: how far the window is moved to the left.

    Raises ValueError for another mode and a window that does not hold its place.

    >>> print(olympus.scipy.ndimage.correlate1d(onp.array([1., 2., 4.]), onp.array([1., 0., 1.])))
    [3. 5. 6.]
    """
    return _one_axis("correlate1d", input, weights, axis, mode, cval, origin, False)


@fused(static=("axis", "mode", "origin"))
def convolve1d(input: ArrayLike, weights: ArrayLike, axis: int = -1, *, mode: str = "reflect",
               cval: ArrayLike = 0.0, origin: int = 0) -> Array:
    """The convolution with a vector of weights along one axis.

    Args: weights: [k].

    >>> print(olympus.scipy.ndimage.convolve1d(onp.array([1., 2., 4.]), onp.array([1., 0., -1.])))
    [1. 3. 2.]
    """
    return _one_axis("convolve1d", input, weights, axis, mode, cval, origin, True)


def _origins(name: str, origin: int | Sequence[int], ndim: int) -> tuple[int, ...]:
    each = entries(origin)
    each = each * ndim if len(each) == 1 else each
    if len(each) != ndim:
        raise ValueError(f"{name}: {len(each)} origins given for {ndim} axes; one, or one per "
                         "axis, is required.")
    return tuple(each)


def _all_axes(name: str, input: ArrayLike, weights: ArrayLike, mode: object, cval: ArrayLike,
              origin: int | Sequence[int], flipped: bool) -> Array:
    image = typeof(array_args(name, input)[0])
    w = floating(asarray(weights))
    ndim = image.ndim
    if typeof(w).ndim != ndim:
        raise ValueError(f"{name}: {image} and weights {typeof(w)} given; equal ranks are "
                         "required.")
    origins = [static_int(o, name, "origin") for o in _origins(name, origin, ndim)]
    if flipped:
        w = rev(w, tuple(range(ndim)))
        origins = tuple(-o - (n + 1) % 2 for o, n in zip(origins, sizes_of(name, w)))
    return _filtered(name, input, [
        lambda x: _correlated(name, x, w, mode, cval, origins)])


@fused(static=("mode", "origin"))
def correlate(input: ArrayLike, weights: ArrayLike, *, mode: str = "reflect",
              cval: ArrayLike = 0.0, origin: int | tuple[int, ...] = 0) -> Array:
    """The correlation with an array of weights: weighted sums of neighbours.

    Args: origin: as for `correlate1d`, for all axes or of each.

    Raises ValueError for ranks that differ.

    >>> print(olympus.scipy.ndimage.correlate(onp.eye(3), onp.ones((1, 3))))
    [[2. 1. 0.]
     [1. 1. 1.]
     [0. 1. 2.]]
    """
    return _all_axes("correlate", input, weights, mode, cval, origin, False)


@fused(static=("mode", "origin"))
def convolve(input: ArrayLike, weights: ArrayLike, *, mode: str = "reflect", cval: ArrayLike = 0.0,
             origin: int | tuple[int, ...] = 0) -> Array:
    """The convolution with an array of weights.

    Args: mode, cval, origin: as for `correlate`.

    Raises ValueError for ranks that differ.

    >>> print(olympus.scipy.ndimage.convolve(onp.eye(3), onp.ones((1, 3))))
    [[2. 1. 0.]
     [1. 1. 1.]
     [0. 1. 2.]]
    """
    return _all_axes("convolve", input, weights, mode, cval, origin, True)


# Gaussians ---------------------------------------------------------------------------------------

def _radius(sigma: object, truncate: float) -> int:
    """How far a window reaches: `truncate` deviations."""
    far = [real_number(x, f"gaussian_filter: {what}")
           for what, x in (("truncate", truncate), ("sigma", sigma))]
    size = far[0] * far[1]
    if not -1 < size < 2**30:
        raise ValueError(f"gaussian_filter: sigma {sigma!r} and truncate {truncate!r} given; "
                         "finite numbers of at least 0 are required.")
    return int(size + 0.5)


def _bell(sigma: ArrayLike, order: int, radius: int, dtype: DType) -> Array:
    """The samples of a Gaussian, or of its derivative, in reverse, for a correlation."""
    at = np.arange(-radius, radius + 1).astype(dtype)
    sigma = asarray(sigma, dtype)
    weights = exp(-0.5 * (at / sigma) ** 2)
    weights = weights / weights.sum()
    # The derivative of a polynomial q times a Gaussian has the polynomial q' - q x / sigma².
    q: list[Any] = [asarray(1, dtype)]
    for _ in range(order):
        slope = [k * q[k] for k in range(1, len(q))] + [0, 0]
        lifted = [0, *[-c / sigma ** 2 for c in q]]
        q = [a + b for a, b in zip(slope, lifted)]
    factor = sum(c * at ** k for k, c in enumerate(q))
    return rev(weights * factor, (0,))


def gaussian_filter1d(input: ArrayLike, sigma: ArrayLike, axis: int = -1, order: int = 0, *,
                      mode: str = "reflect", cval: ArrayLike = 0.0, truncate: float = 4.0,
                      radius: int | None = None) -> Array:
    """Smooth an image by a Gaussian along one axis, or compute its smoothed derivative.

    Args:
      sigma: the standard deviation, in pixels; traced only if `radius` is given.
      order: of the derivative.
      radius: after how many pixels it is, instead.

    Raises ValueError for a negative order.

    >>> print(olympus.scipy.ndimage.gaussian_filter1d(onp.ones(3), 1.0).round(3))
    [1. 1. 1.]
    """
    return gaussian_filter(input, sigma, order, mode=mode, cval=cval, truncate=truncate,
                           radius=radius, axes=axis)


def gaussian_filter(input: ArrayLike, sigma: ArrayLike | Sequence[ArrayLike],
                    order: int | Sequence[int] = 0, *, mode: str | Sequence[str] = "reflect",
                    cval: ArrayLike = 0.0,
                    truncate: float = 4.0, radius: int | Sequence[int] | None = None,
                    axes: int | Sequence[int] | None = None) -> Array:
    """Smooth an image by a Gaussian, or compute a smoothed derivative.

    Args:
      sigma: the standard deviation, in pixels, of all axes or a sequence of one per axis; traced
        only if `radius` is given.
      order: of the derivative, of all axes or per axis.
      mode, cval: as for `correlate1d`; the mode of all axes or per axis.
      radius: after how many pixels it is, instead; of all axes or per axis.

    Raises ValueError for a negative order, and sequences of another length.

    >>> print(olympus.scipy.ndimage.gaussian_filter(onp.ones((2, 2)), 1.0).round(3))
    [[1. 1.]
     [1. 1.]]
    """
    (x,) = array_args("gaussian_filter", input)
    axes = canonical_axes(axes, typeof(x).ndim, "gaussian_filter")
    sigmas, orders, radii, modes = [
        _per_axis("gaussian_filter", what, option, len(axes)) for what, option in (
            ("sigma", sigma), ("order", order), ("radius", radius), ("mode", mode))]
    radii = [_radius(s, truncate) if r is None else count_of("gaussian_filter", "radius", r)
             for s, r in zip(sigmas, radii)]
    orders = [count_of("gaussian_filter", "order", k, most=1000) for k in orders]
    return _gaussian(x, tuple(sigmas), cval, orders=tuple(orders), radii=tuple(radii), axes=axes,
                     modes=tuple(modes))


@fused(static=("orders", "radii", "axes", "modes"))
def _gaussian(x: Array, sigmas: Sequence[ArrayLike], cval: ArrayLike, *, orders: tuple[int, ...],
              radii: tuple[int, ...], axes: tuple[int, ...], modes: tuple[str, ...]) -> Array:
    def smoothed(sigma: ArrayLike, order: int, radius: int, axis: int, mode: str, x: Array
                 ) -> Array:
        bell = _bell(sigma, order, radius, dtypes.to_real_dtype(x.dtype))
        return along("gaussian_filter", x, bell, axis, mode, cval, 0)

    return _filtered("gaussian_filter", x, [
        partial(smoothed, *each) for each in zip(sigmas, orders, radii, axes, modes)
        if each[1] or each[2]])


def gaussian_laplace(input: ArrayLike, sigma: ArrayLike | Sequence[ArrayLike], *,
                     mode: str | Sequence[str] = "reflect", cval: ArrayLike = 0.0) -> Array:
    """The sum of the second derivatives of an image smoothed by a Gaussian.

    Args: mode, cval: as for `gaussian_filter`; the mode of an axis applies, as in SciPy, to its
        derivative's whole term, so also beyond the other edges.

    >>> print(abs(olympus.scipy.ndimage.gaussian_laplace(onp.ones(3), 1.0)).round(2))
    [0. 0. 0.]
    """
    terms = _terms("gaussian_laplace", input, 2, mode)
    return reduce(operator.add, [gaussian_filter(input, sigma, order, mode=edge, cval=cval)
                                 for order, edge in terms])


@described_like(gaussian_laplace)
def gaussian_gradient_magnitude(input: ArrayLike, sigma: ArrayLike | Sequence[ArrayLike], *,
                                mode: str | Sequence[str] = "reflect", cval: ArrayLike = 0.0
                                ) -> Array:
    """The norm of the gradient of an image smoothed by a Gaussian.

    >>> print(olympus.scipy.ndimage.gaussian_gradient_magnitude(onp.ones(3), 1.0).round(3))
    [0. 0. 0.]
    """
    dtype = typeof(input).dtype
    real = dtypes.to_inexact_dtype(dtype)       # squares of integers would overflow
    terms = _terms("gaussian_gradient_magnitude", input, 1, mode)
    return sqrt(sum(gaussian_filter(input, sigma, order, mode=edge, cval=cval).astype(real) ** 2
                    for order, edge in terms)).astype(dtype)


def _terms(name: str, x: ArrayLike, order: int, mode: object) -> list[tuple[tuple[int, ...], Each]]:
    """For each axis: the order along it with 0 along the others, and its mode."""
    ndim = typeof(x).ndim
    if not ndim:
        raise ValueError(f"{name}: {typeof(x)} given; an image of at least one axis is required.")
    return [(tuple(order * (i == k) for i in range(ndim)), edge)
            for k, edge in enumerate(_per_axis(name, "mode", mode, ndim))]


# Fixed windows -----------------------------------------------------------------------------------

def _smoothed_difference(name: str, input: ArrayLike, across: Sequence[float], axis: object,
                         mode: object, cval: ArrayLike) -> Array:
    """A difference along an axis, smoothed along the others."""
    ndim = typeof(array_args(name, input)[0]).ndim
    place, modes = canonical_axis(axis, ndim, name), _per_axis(name, "mode", mode, ndim)

    def weighted(k: int, x: Array) -> Array:
        weights = np.array([-1, 0, 1] if k == place else across)
        return along(name, x, asarray(weights, dtypes.to_real_dtype(x.dtype)), k, modes[k], cval, 0)

    # The difference comes first: the values smoothed beyond the edges are `cval`, as in SciPy.
    return _filtered(name, input, [
        partial(weighted, k) for k in sorted(range(ndim), key=lambda k: k != place)])


@fused(static=("axis", "mode"))
def sobel(input: ArrayLike, axis: int = -1, *, mode: str | tuple[str, ...] = "reflect",
          cval: ArrayLike = 0.0) -> Array:
    """Sobel's filter: differences along one axis, smoothed by (1, 2, 1) along the others.

    Args: mode, cval: as for `gaussian_filter`.

    >>> print(olympus.scipy.ndimage.sobel(onp.array([1., 2., 4.])))
    [1. 3. 2.]
    """
    return _smoothed_difference("sobel", input, (1, 2, 1), axis, mode, cval)


@fused(static=("axis", "mode"))
def prewitt(input: ArrayLike, axis: int = -1, *, mode: str | tuple[str, ...] = "reflect",
            cval: ArrayLike = 0.0) -> Array:
    """Prewitt's filter: differences along one axis, smoothed by (1, 1, 1) along the others.

    Args: mode, cval: as for `gaussian_filter`.

    >>> print(olympus.scipy.ndimage.prewitt(onp.array([1., 2., 4.])))
    [1. 3. 2.]
    """
    return _smoothed_difference("prewitt", input, (1, 1, 1), axis, mode, cval)


@fused(static=("mode",))
def laplace(input: ArrayLike, *, mode: str | tuple[str, ...] = "reflect",
            cval: ArrayLike = 0.0) -> Array:
    """The sum of second differences along all axes.

    Args: mode, cval: as for `gaussian_filter`.

    >>> print(olympus.scipy.ndimage.laplace(onp.array([0., 1., 4., 9.])))
    [ 1.  2.  2. -5.]
    """
    image = typeof(array_args("laplace", input)[0])
    if not image.ndim:
        raise ValueError(f"laplace: {image} given; an image of at least one axis is required.")
    modes = _per_axis("laplace", "mode", mode, image.ndim)

    def curvature(x: Array) -> Array:
        weights = asarray(np.array([1, -2, 1]), dtypes.to_real_dtype(x.dtype))
        return reduce(operator.add, [along("laplace", x, weights, axis, edge, cval, 0)
                                     for axis, edge in enumerate(modes)])

    return _filtered("laplace", input, [curvature])


@fused(static=("size", "axis", "mode", "origin"))
def uniform_filter1d(input: ArrayLike, size: int, axis: int = -1, *, mode: str = "reflect",
                     cval: ArrayLike = 0.0, origin: int = 0) -> Array:
    """The mean over each pixel's neighbours along one axis.

    Args: size: how many pixels.

    >>> print(olympus.scipy.ndimage.uniform_filter1d(onp.array([1., 3., 5., 7.]), 2))
    [1. 2. 4. 6.]
    """
    return uniform_filter(input, size, mode=mode, cval=cval, origin=origin, axes=(axis,))


@fused(static=("size", "mode", "origin", "axes"))
def uniform_filter(input: ArrayLike, size: int | tuple[int, ...] = 3, *,
                   mode: str | tuple[str, ...] = "reflect", cval: ArrayLike = 0.0,
                   origin: int | tuple[int, ...] = 0, axes: tuple[int, ...] | None = None
                   ) -> Array:
    """The mean over each pixel's neighbours.

    Args:
      mode, cval: as for `gaussian_filter`.
      origin: as for `correlate`.

    >>> print(olympus.scipy.ndimage.uniform_filter(onp.ones((2, 2))).round(3))
    [[1. 1.]
     [1. 1.]]
    """
    image = typeof(array_args("uniform_filter", input)[0])
    axes = canonical_axes(axes, image.ndim, "uniform_filter")
    sizes, origins = [_origins("uniform_filter", image, len(axes)) for image in (size, origin)]
    modes = _per_axis("uniform_filter", "mode", mode, len(axes))
    whole = not dtypes.is_inexact(image.dtype)      # sums, which are exact, have exact quotients

    def mean(axis: int, n: int, place: int, edge: str, x: Array) -> Array:
        weights = np.full(n, 1.0 if whole else 1 / max(n, 1))
        out = along("uniform_filter", x, asarray(weights, dtypes.to_real_dtype(x.dtype)), axis,
                    edge, cval, place)
        return out / n if whole else out

    return _filtered("uniform_filter", input, [
        partial(mean, axis, count_of("uniform_filter", "size", n), place, edge)
        for axis, n, place, edge in zip(axes, sizes, origins, modes)])


# Order statistics --------------------------------------------------------------------------------

def _neighbourhood(name: str, input: ArrayLike, size: int | Sequence[int] | None, footprint: object
                   ) -> tuple[Array, np.ndarray]:
    """The image, and which of its neighbours count."""
    (x,) = array_args(name, input)
    x = to_array(x)
    if footprint is None:
        if size is None:
            raise ValueError(f"{name}: neither size nor footprint given; one of them is required.")
        sizes = [count_of(name, "size", n, most=2**15)
                 for n in _origins(name, size, typeof(x).ndim)]
        footprint = np.ones(sizes, bool)
    window = np.asarray(footprint, bool)
    if window.ndim != typeof(x).ndim or not window.any():
        raise ValueError(f"{name}: a footprint of shape {window.shape} given for {typeof(x)}; one "
                         "of its rank that is true somewhere is required.")
    return x, window


def _neighbours(name: str, x: Array, window: np.ndarray, mode: object, cval: ArrayLike
                ) -> list[Array]:
    """The image moved to every place of the window."""
    sizes = typeof(x).shape
    wide = _extended(name, x, [_reach(name, n, 0) for n in window.shape], mode, cval)
    offsets = [p for p in itertools.product(*map(range, window.shape)) if window[p]]
    return [wide[tuple(slice(i, i + n) for i, n in zip(place, sizes))] for place in offsets]


def _folded(name: str, op: Callable[[Array, Array], Array], input: ArrayLike,
            size: int | Sequence[int] | None, footprint: object, mode: str | tuple[str, ...],
            cval: ArrayLike) -> Array:
    x, window = _neighbourhood(name, input, size, footprint)
    if window.all():
        return _over_boxes(x, cval, name=name, op=op, sizes=window.shape, mode=mode)
    out, *rest = _neighbours(name, x, window, mode, cval)
    for y in rest:
        out = op(out, y)
    return out


@fused(static=("name", "op", "sizes", "mode"))
def _over_boxes(x: Array, cval: ArrayLike, *, name: str, op: Callable[[Array, Array], Array],
                sizes: tuple[int, ...], mode: str | tuple[str, ...]) -> Array:
    x = _extended(name, x, [_reach(name, n, 0) for n in sizes], mode, cval)
    for axis, n in enumerate(sizes):
        x = _over_windows(op, x, n, axis)
    return x


def _over_windows(op: Callable[[Array, Array], Array], x: Array, n: int, axis: int) -> Array:
    """An idempotent operation over n elements in a row: over the first and the last half of them.
    """
    if n == 1:
        return x
    half, count = (n + 1) // 2, typeof(x).shape[axis] - n + 1
    halves = _over_windows(op, x, half, axis)
    return op(*[slice_in_dim(halves, i, i + count, 1, axis) for i in (0, n - half)])


def maximum_filter(input: ArrayLike, size: int | tuple[int, ...] | None = None,
                   footprint: ArrayLike | None = None, *,
                   mode: str | tuple[str, ...] = "reflect", cval: ArrayLike = 0.0) -> Array:
    """The maximum over each pixel's neighbours.

    Args:
      footprint: a static array of the image's rank that is true where a neighbour counts, instead.
      mode, cval: as for `gaussian_filter`.

    Raises ValueError for neither a size nor a footprint.

    >>> print(olympus.scipy.ndimage.maximum_filter(onp.array([1, 5, 2, 0]), 3))
    [5 5 5 2]
    """
    return _folded("maximum_filter", maximum, input, size, footprint, mode, cval)


def minimum_filter(input: ArrayLike, size: int | tuple[int, ...] | None = None,
                   footprint: ArrayLike | None = None, *,
                   mode: str | tuple[str, ...] = "reflect", cval: ArrayLike = 0.0) -> Array:
    """The minimum over each pixel's neighbours.

    Raises ValueError for neither a size nor a footprint.

    >>> print(olympus.scipy.ndimage.minimum_filter(onp.array([1, 5, 2, 0]), 3))
    [1 1 0 0]
    """
    return _folded("minimum_filter", minimum, input, size, footprint, mode, cval)


def rank_filter(input: ArrayLike, rank: int, size: int | tuple[int, ...] | None = None,
                footprint: ArrayLike | None = None, *, mode: str = "reflect",
                cval: ArrayLike = 0.0) -> Array:
    """The element of a given rank among each pixel's neighbours.

    Args: rank: the place; negative from the largest on.

    Raises ValueError for a rank that no neighbour has.

    >>> print(olympus.scipy.ndimage.rank_filter(onp.array([1, 5, 2, 0]), 1, 3))
    [1 2 2 0]
    """
    x, window = _neighbourhood("rank_filter", input, size, footprint)
    parts = _neighbours("rank_filter", x, window, mode, cval)
    rank = static_int(rank, "rank_filter", "rank")
    if not -len(parts) <= rank < len(parts):
        raise ValueError(f"rank_filter: rank {rank} given for {len(parts)} neighbours; a place "
                         "among them is required.")
    return sort(stack(parts, 0), 0)[rank]


def median_filter(input: ArrayLike, size: int | tuple[int, ...] | None = None,
                  footprint: ArrayLike | None = None, *, mode: str = "reflect",
                  cval: ArrayLike = 0.0) -> Array:
    """The median of each pixel's neighbours; of an even number, the larger middle one.

    Raises ValueError for neither a size nor a footprint.

    >>> print(olympus.scipy.ndimage.median_filter(onp.array([1, 5, 2, 0]), 3))
    [1 2 2 0]
    """
    x, window = _neighbourhood("median_filter", input, size, footprint)
    parts = _neighbours("median_filter", x, window, mode, cval)
    return sort(stack(parts, 0), 0)[len(parts) // 2]


complete_docstrings(globals(), {
    "input": "an image of any rank.",
    "mode, cval, origin": "as for `correlate1d`.",
    "mode, cval": "as for `correlate1d`.",
    "axis": "along which.",
    "size, footprint, mode, cval": "as for `maximum_filter`.",
    "weights": "an array of the same rank.",
    "sigma": "the standard deviation, in pixels.",
    "truncate": "after how many standard deviations the Gaussian is cut off.",
    "axes": "along which; all unless given.",
    "size": "how many pixels along all axes, or along each.",
}, returns="An image of the same shape and dtype.")
