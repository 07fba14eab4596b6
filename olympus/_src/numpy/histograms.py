"""How often values fall between edges: histograms of one, two and more variables."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.config import compatible
from ..base.typing import Array, ArrayLike, DType
from ..core.trace import Tracer, literal, typeof
from ..jit.fused import fused, named
from ..lax.arithmetic import div, mul, sub
from ..lax.barriers import optimization_barrier
from ..lax.comparison import eq
from ..lax.creation import full, iota
from ..lax.families import add
from ..types import dtypes
from ..types.shape import definitely_equal, prod, sequence, static_int
from . import reductions
from .arithmetic import divide
from .conditions import where
from .creation import asarray, data_arg, is_sequence
from .indexing import concrete, write
from .joining import stack
from .manipulation import ravel, reshape
from .promote import (
    array_args, broadcast_to, choose, convert, inexact_dtypes, promote_dtypes, to_array,
)
from .sorting import searchsorted
from .statistics import diff

Range = Sequence[ArrayLike] | None


# Edges -------------------------------------------------------------------------------------------

def _is_concrete(x: ArrayLike) -> bool:
    return not isinstance(x, Tracer)


def _bins(name: str, bins: ArrayLike) -> int | Array:
    """The number of bins as an int, or the edges as a vector; edges that descend are refused."""
    if isinstance(bins, (int, np.integer)) or not (
            bins.ndim if isinstance(bins, Tracer) else np.ndim(bins)):
        count = static_int(bins, name, "bins")
        if not 0 < count < 2**31:
            raise ValueError(f"{name}: bins {bins} given; a number in [1, 2**31) is required.")
        return count
    edges = data_arg(name, bins)
    if edges.ndim != 1 or not edges.shape[0]:
        raise ValueError(f"{name}: bins {edges.aval} given; an int or a vector of edges is "
                         "required.")
    if _is_concrete(edges):
        value = np.asarray(edges)
        if (value[:-1] > value[1:]).any():
            raise ValueError(f"{name}: bins that descend given; edges in ascending order are "
                             "required; sort them.")
    return edges


def _limits(name: str, limits: Any) -> tuple[Array, Array] | None:
    """The outer edges; None where the data give them."""
    if limits is None:
        return None
    bounds = tuple(array_args(name, *(limits if is_sequence(limits) else data_arg(name, limits))))
    if len(bounds) != 2 or any(x.shape for x in bounds):
        raise ValueError(f"{name}: range of {len(bounds)} entries given; two numbers are required.")
    if all(_is_concrete(x) for x in bounds):
        low, high = [np.asarray(getattr(x, "raw", x)) for x in bounds]
        if not (np.isfinite(low) and np.isfinite(high)):
            raise ValueError(f"{name}: range ({low}, {high}) given; finite numbers are required.")
        if low > high:
            raise ValueError(f"{name}: range ({low}, {high}) given; the first must not be above "
                             "the second.")
    return bounds


def _equal_bins(x: Array, limits: tuple[Array, Array] | None, count: int) -> Array:
    """count + 1 edges at equal distances between two limits, or the least and largest of `x`."""
    if limits is not None:
        low, high = limits
    elif prod(x.shape):
        low, high = reductions.min(x), reductions.max(x)
    else:
        low, high = literal(0, x.dtype), literal(1, x.dtype)
    low, high, _ = inexact_dtypes("histogram", low, high, full((), 0, x.dtype))
    dtype = typeof(low).dtype
    low, high = [broadcast_to(convert(v, dtype), ()) for v in (low, high)]
    half, same = literal(0.5, dtype), eq(low, high)
    low, high = choose(same, sub(low, half), low), choose(same, add(high, half), high)
    # A multiple of the step: integers at integer distances are met exactly. XLA would multiply by
    # the rounded reciprocal of a divisor that it knows.
    step = div(sub(high, low), optimization_barrier(full((), count, dtype)))
    numbers = convert(iota(dtypes.default_int(), count + 1), dtype)
    edges = add(mul(numbers, broadcast_to(step, numbers.shape)), broadcast_to(low, numbers.shape))
    last = eq(numbers, literal(count, dtype))
    return choose(last, broadcast_to(high, edges.shape), edges)


@fused(static=("count",))
def _edges(x: Array, limits: tuple[Array, Array] | None, *, count: int) -> Array:
    return _equal_bins(x, limits, count)


@named
def histogram_bin_edges(a: ArrayLike, bins: int | str | ArrayLike = 10, range: Range = None,
                        weights: ArrayLike | None = None) -> Array:
    """The edges of the bins that `histogram` counts in.

    Args:
      a: data of any shape.
      bins: how many bins of equal width; or their edges; or the name of a rule that finds a number
        ("auto", "fd", "doane", "scott", "stone", "rice", "sturges", "sqrt"), for data that is not
        traced.
      range: the outer edges, (low, high); the least and largest of the data unless given.
      weights: of the shape of `a`; they change nothing, and the rules refuse them.
    Returns: float[bins + 1], or the given edges.

    Raises ValueError for fewer than one bin, edges that descend, weights of another shape and a
    range that is not finite.
    Data that is not finite gives edges that are NaN (NumPy raises).

    >>> print(onp.histogram_bin_edges(onp.array([1, 2, 5]), bins=4))
    [1. 2. 3. 4. 5.]
    """
    name = "histogram_bin_edges"
    x = data_arg(name, a)
    if weights is not None:
        weights = _weight_vector(name, weights, x)
    return _bin_edges(name, x, bins, range, weights)


def _bin_edges(name: str, x: Array, bins: ArrayLike | str, limits: Any,
               weights: ArrayLike | None) -> Array:
    if isinstance(bins, str):
        value = concrete(name, x, "the data", "pass a number of bins")
        try:
            edges = np.histogram_bin_edges(value.ravel(), bins, limits, weights)
        except (TypeError, ValueError) as error:
            raise type(error)(f"{name}: bins {bins!r} and range {limits} given; {error}.") from None
        return asarray(edges)
    bins = _bins(name, bins)
    return _edges(x, _limits(name, limits), count=bins) if isinstance(bins, int) else bins


# Counts ------------------------------------------------------------------------------------------

def _bin_of(x: Array, edges: Array) -> Array:
    """The bin of each element, as many as there are bins for those in none; NaN is in none."""
    exact = not any(dtypes.is_inexact(v.dtype) for v in (x, edges))
    x, edges = [to_array(v) for v in (promote_dtypes if exact else inexact_dtypes)(
        "histogram", x, edges)]
    count = edges.shape[0] - 1
    last = broadcast_to(edges[-1], x.shape)
    place = searchsorted(edges, x, side="right") - 1
    place = where(eq(x, last), count - 1, place)     # the last edge belongs to the last bin
    return where(place < 0, count, place)


def _weighted_counts(bins: Array, weights: ArrayLike | None, count: int, dtype: DType) -> Array:
    values = literal(1, dtype) if weights is None else convert(weights, dtype)
    return write("add", full((count,), 0, dtype), bins, values, mode="drop")


def _weight_vector(name: str, weights: ArrayLike, x: Array) -> Array:
    """One weight per element, as a vector."""
    weights = data_arg(name, weights)
    if not definitely_equal(weights.shape, x.shape):
        raise ValueError(f"{name}: weights {weights.aval} given for data {x.aval}; equal shapes "
                         "are required.")
    return ravel(weights)


def _beside(x: Array, edges: Array) -> Array:
    """Integers at the dtype of edges that are not the user's, which strict promotion wants."""
    return x if dtypes.is_inexact(x.dtype) else convert(x, edges.dtype)


@fused(static=("density",))
def _histogram(x: Array, edges: Array, weights: Array | None, *, density: bool) -> Array:
    dtype = weights.dtype if weights is not None else (
        dtypes.to_inexact_dtype(x.dtype) if compatible.value else dtypes.default_int())
    counts = _weighted_counts(_bin_of(ravel(x), edges), weights, edges.shape[0] - 1, dtype)
    return divide(divide(counts, diff(edges)), reductions.sum(counts)) if density else counts


@fused(static=("count", "density"))
def _equal_histogram(x: Array, limits: tuple[Array, Array] | None, weights: Array | None, *,
                     count: int, density: bool) -> tuple[Array, Array]:
    edges = _equal_bins(x, limits, count)
    return _histogram(_beside(x, edges), edges, weights, density=density), edges


@named
def histogram(a: ArrayLike, bins: int | str | ArrayLike = 10, range: Range = None,
              weights: ArrayLike | None = None, density: bool | None = None
              ) -> tuple[Array, Array]:
    """The numbers of elements with edges[i] <= x < edges[i + 1], the last edge included.

    Args:
      a: data of any shape; NaN and numbers outside of all bins are not counted.
      bins: how many bins of equal width; or their edges; or the name of a rule, for data that is
        not traced: see `histogram_bin_edges`.
      range: the outer edges, (low, high); the least and largest of the data unless given.
      weights: of the shape of `a`: what each element counts.
      density: divide by the total and the widths, so that the integral over the bins is 1.
    Returns: (counts [bins] of the default integer dtype, or the weights', or floats if `density`;
      edges float[bins + 1], or those given).

    Raises ValueError for fewer than one bin, edges that descend, weights of another shape and a
    range that is not finite.

    >>> counts, edges = onp.histogram(onp.array([1., 2., 1., 4.]), bins=3)
    >>> print(counts, edges)
    [2 1 1] [1. 2. 3. 4.]
    """
    x = data_arg("histogram", a)
    if weights is not None:
        weights = _weight_vector("histogram", weights, x)
    if isinstance(bins, str):
        bins = _bin_edges("histogram", x, bins, range, weights)
    bins = _bins("histogram", bins)
    if isinstance(bins, int):
        return _equal_histogram(x, _limits("histogram", range), weights, count=bins,
                                density=bool(density))
    return _histogram(x, bins, weights, density=bool(density)), bins


@named
def histogramdd(sample: ArrayLike | Sequence[ArrayLike],
                bins: ArrayLike | Sequence[ArrayLike] = 10,
                range: Sequence[Range] | None = None, weights: ArrayLike | None = None,
                density: bool | None = None) -> tuple[Array, list[Array]]:
    """The numbers of points in the cells of a grid.

    Args:
      sample: [n, d], n points of d coordinates, or a sequence of d vectors [n].
      bins: how many bins of equal width there are along each axis; or a sequence with one number,
        or one vector of edges, for each.
      range: a sequence with the outer edges (low, high) of each axis, or None for those that the
        data give.
      weights: [n], what each point counts.
      density: divide by the total and the volumes, so that the integral over the grid is 1.
    Returns: (counts float[bins_1, ..., bins_d], list of the d vectors of edges).

    Raises ValueError as `histogram` does, and where `bins` or `range` has another length than d.

    >>> counts, _ = onp.histogramdd(onp.array([[0., 1.], [1., 1.], [0., 3.]]), bins=2)
    >>> print(counts)
    [[1. 1.]
     [1. 0.]]
    """
    return _histogramdd("histogramdd", sample, bins, range, weights, density)


def _histogramdd(name: str, sample: Any, bins: Any, limits: Any, weights: ArrayLike | None,
                 density: bool | None) -> tuple[Array, list[Array]]:
    x = (stack([data_arg(name, v) for v in sample], -1) if isinstance(sample, (list, tuple))
         else data_arg(name, sample))
    if x.ndim == 1:
        x = x[:, None]
    if x.ndim != 2:
        raise ValueError(f"{name}: sample {x.aval} given; points as rows [n, d] are required.")
    d = static_int(x.shape[1], name, "number of coordinates")
    if not (is_sequence(bins) or (hasattr(bins, "ndim") and bins.ndim)):
        bins = [bins] * d
    for what, option in (("bins", bins), ("range", limits)):
        if option is not None and len(sequence(option, name, what)) != d:
            raise ValueError(f"{name}: {what} of {len(option)} entries given for {d} coordinates; "
                             "one entry for each is required.")
    if weights is not None:
        weights = _weight_vector(name, weights, x[:, 0])
    bins = [_bins(name, b) for b in bins]
    pairs: list[tuple[Array, Array] | None] = [None] * d if limits is None else [
        _limits(name, pair) for pair in limits]
    edges = [None if isinstance(b, int) else b for b in bins]
    counts = tuple([b if isinstance(b, int) else 0 for b in bins])
    return _cells(x, edges, pairs, weights, counts=counts, density=bool(density))


@fused(static=("counts", "density"))
def _cells(x: Array, edges: list[Any], limits: list[tuple[Array, Array] | None],
           weights: Array | None, *, counts: tuple[int, ...], density: bool
           ) -> tuple[Array, list[Array]]:
    columns = [x[:, i] for i in range(len(counts))]
    for i, n in enumerate(counts):
        if edges[i] is None:
            edges[i] = _equal_bins(columns[i], limits[i], n)
            columns[i] = _beside(columns[i], edges[i])
    sizes = [e.shape[0] - 1 for e in edges]
    flat: Any = 0
    outside: Any = False
    for i, (e, n) in enumerate(zip(edges, sizes)):
        place = _bin_of(columns[i], e)
        flat, outside = flat * n + place, outside | (place == n)
    dtype = dtypes.to_inexact_dtype(weights.dtype) if weights is not None else (
        dtypes.default_int() if compatible.value and not density else dtypes.default_float())
    flat = where(outside, prod(sizes), flat)
    out = reshape(_weighted_counts(flat, weights, prod(sizes), dtype), tuple(sizes))
    if density:
        total = reductions.sum(out)
        for i, e in enumerate(edges):
            out = divide(out, reshape(diff(e), (*(1,) * i, sizes[i],
                                                *(1,) * (len(sizes) - i - 1))))
        out = divide(out, total)
    return out, edges


@named
def histogram2d(x: ArrayLike, y: ArrayLike, bins: Any = 10, range: Sequence[Range] | None = None,
                weights: ArrayLike | None = None, density: bool | None = None
                ) -> tuple[Array, Array, Array]:
    """The numbers of points of the plane in the cells of a grid.

    Args:
      x, y: [n], the coordinates.
      bins: how many bins of equal width there are along both axes, or the edges of both; or a pair
        with one of those for each.
      range: ((x_low, x_high), (y_low, y_high)); the least and largest of the data unless given.
      weights: [n], what each point counts.
      density: divide by the total and the areas, so that the integral over the grid is 1.
    Returns: (counts float[bins_x, bins_y], edges along x, edges along y).

    Raises ValueError as `histogram` does, and for vectors of several sizes.

    >>> counts, *_ = onp.histogram2d(onp.array([0., 1., 1.]), onp.array([0., 1., 1.]), bins=2)
    >>> print(counts)
    [[1. 0.]
     [0. 2.]]
    """
    x, y = data_arg("histogram2d", x), data_arg("histogram2d", y)
    if x.ndim != 1 or y.ndim != 1 or not definitely_equal(x.shape[0], y.shape[0]):
        raise ValueError(f"histogram2d: x {x.aval} and y {y.aval} given; vectors of one size are "
                         "required.")
    several = is_sequence(bins) or (hasattr(bins, "ndim") and bins.ndim)
    if several and len(bins) != 2:
        bins = [data_arg("histogram2d", bins)] * 2
    counts, edges = _histogramdd("histogram2d", [x, y], bins, range, weights, density)
    return counts, edges[0], edges[1]
