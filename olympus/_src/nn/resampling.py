"""One axis of an image resampled: sums of pixels with the weights of an output pixel.

Pixel i covers [i, i + 1), so its centre is i + 1/2. A weight is a kernel of the distance between
the place that an output pixel comes from and an input pixel; the weights of an output pixel add up
to 1. Positions are computed in float32 at least, whatever the image's dtype.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.typing import Array, ArrayLike, DType, IrValue, Params
from ..base.util import lazy_module, memoize
from ..core import tags
from ..core.facts import Shapes
from ..core.kernels import Kernel
from ..core.primitive import Axis, Builder, Linear, Primitive, linear_jvp
from ..core.trace import typeof
from ..jit.fused import unasked
from ..lax.creation import iota
from ..lax.precision import PrecisionLike
from ..lax.shape import reshape, transpose
from ..numpy import arithmetic as uf, reductions
from ..numpy.conditions import clip
from ..numpy.einsum import einsum
from ..numpy.indexing import take
from ..numpy.selection import where
from ..numpy.trigonometry import sinc
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.memory import Space
from ..types.shape import prod
from .segments import segment_sum

INT32 = dtypes.as_dtype("int32")


def _triangle(x: Array) -> Array:
    return uf.maximum(1 - x, 0)


def _cubic(slope: float) -> Callable[[Any], Any]:
    def kernel(x: Array) -> Array:
        near = ((slope + 2) * x - (slope + 3)) * x * x + 1
        far = slope * (((x - 5) * x + 8) * x - 4)
        return where(x < 1, near, where(x < 2, far, 0))
    return kernel


def _lanczos(radius: int) -> Callable[[Any], Any]:
    return lambda x: where(x < radius, sinc(x) * sinc(x / radius), 0)


# By the names of methods: functions of a distance x >= 0, and where they end.
_KERNELS: dict[str, tuple[Callable[[Any], Any], int]] = {
    "LINEAR": (_triangle, 1), "CUBIC": (_cubic(-0.5), 2), "CUBIC_PYTORCH": (_cubic(-0.75), 2),
    "LANCZOS3": (_lanczos(3), 3), "LANCZOS5": (_lanczos(5), 5)}


@unasked
def weights_of(size: int, out_size: Any, scale: ArrayLike, translation: Any, method: str,
               antialias: bool, dtype: DType) -> Array:
    """[size, out_size]: how much of each input pixel is in each output pixel."""
    if method == "CUBIC_PYTORCH" and antialias:
        method = "CUBIC"
    edges = 2 if method == "CUBIC_PYTORCH" else 0       # rows that stand for edge pixels
    place = iota("int32", size + 2 * edges)[:, None] - edges
    weights, middle = _weights_at(place, out_size, scale, translation, method, antialias, dtype)
    if edges:
        weights = segment_sum(weights, clip(place[:, 0], 0, size - 1), size,
                              indices_are_sorted=True)
    return _in_parts_of_1(weights, (middle >= 0) & (middle <= size))


def _weights_at(place: Array, out_size: Any, scale: ArrayLike, translation: Any, method: str,
                antialias: bool, dtype: DType) -> tuple[Array, Array]:
    """The kernel's values at places [n, 1] or [n, out_size], and the middles of output pixels."""
    step = 1 / scale
    middle = (iota(dtype, out_size) + 0.5 - translation) * step     # in pixels of the input
    if method == "AREA":
        half = abs(step) / 2
        weights = uf.minimum(middle + half, place + 1) - uf.maximum(middle - half, place)
        return uf.maximum(weights, 0), middle
    width = uf.maximum(abs(step), 1) if antialias else 1
    return _KERNELS[method][0](abs(middle - 0.5 - place) / width), middle


def _in_parts_of_1(weights: Array, inside: Array) -> Array:
    """Divided by their sums; 0 for pixels from outside of the image."""
    total = reductions.sum(weights, 0)
    covered = (abs(total) > 1000 * dtypes.finfo(weights.dtype).eps) & inside
    return where(covered, weights / where(covered, total, 1), 0)


class Resampled(Primitive):
    """An axis of `size` pixels as `out_size` ones, or the transpose of that map: `adjoint`."""

    kernels, kernels_from = lazy_module(__name__), 1024
    spread = staticmethod(tags.along("axis"))
    along = "axis"
    linear = (0,)

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        return 0.02 * prod(outs[0]) * ins[0][params["axis"]]

    def infer(self, x: ShapedArray, *, axis: int, size: int, out_size: int, method: str,
              antialias: bool, precision: PrecisionLike, adjoint: bool) -> ShapedArray:
        count = size if adjoint else out_size
        return make_aval((*x.shape[:axis], count, *x.shape[axis + 1:]), x.dtype, x.weak_type)

    def lower(self, b: Builder, x: IrValue, **params: Hashable) -> IrValue:
        return b.by_rule(functools.partial(_by_matrix, **params), [x], b.avals_in)[0]

    jvp = linear_jvp

    def transpose(self, ct: Array, x: Linear, *, adjoint: bool, **params: Hashable
                  ) -> list[Array | None]:
        return [self.bind(ct, adjoint=not adjoint, **params)]

    def vmap(self, axis_: Axis, args: Sequence[Array], dims: Sequence[int], *, axis: int,
             **params: Hashable) -> tuple[Array, int]:
        dim = dims[0]
        return self.bind(args[0], axis=axis + (axis >= dim), **params), dim


resampled_p = Resampled("resampled")


def _by_matrix(x: Array, *, axis: int, size: int, out_size: int, method: str, antialias: bool,
               precision: PrecisionLike, adjoint: bool) -> Array:
    """By the product with the weights of all pixels."""
    ndim, dtype = x.ndim, dtypes.to_real_dtype(x.dtype)
    weights = weights_of(size, out_size, out_size / size, 0, method, antialias, dtype)
    labels = list(range(ndim))
    labels[axis] = ndim
    return einsum(x, list(range(ndim)), weights, [ndim, axis] if adjoint else [axis, ndim], labels,
                  precision=precision)


# By the few weights that are not 0 ---------------------------------------------------------------

# Measured beside the product, which adds six numbers while this form adds one. An axis with fewer
# elements behind it is moved to the front, which takes as long as 100 numbers of the product.
PART, MOVES, MOST, LEAST_BEHIND, LEAST = 6, 100, 64, 16, 16384


class _Band(NamedTuple):
    """The places with weights that are not 0: `count` from `first[o]` on, for each output pixel;
    and by input pixel the output pixels `back_first[i]`, … that have it."""

    first: np.ndarray
    count: int
    back_first: np.ndarray
    back_count: int


@memoize(256)
def _band(size: int, out_size: int, method: str, antialias: bool) -> _Band | None:
    """None where edge pixels are repeated, or most weights are not 0."""
    if method == "CUBIC_PYTORCH" and not antialias:
        return None
    step = 1 / (out_size / size)
    radius = step / 2 + 0.5 if method == "AREA" else _KERNELS[method][1] * (
        max(step, 1) if antialias else 1)
    # Kernels are 0, and continuous, at their ends.
    count = min(math.ceil(2 * radius), size)
    first = np.floor((np.arange(out_size) + 0.5) * step - 0.5 - radius).astype(np.int64) + 1
    first = np.clip(first, 0, size - count)
    place = np.arange(size)
    back_first = np.searchsorted(first, place - count + 1, "left")
    back_count = int((np.searchsorted(first, place, "right") - back_first).max(initial=1))
    back_first = np.clip(back_first, 0, max(out_size - back_count, 0))
    return _Band(first.astype(np.int32), count, back_first.astype(np.int32), max(back_count, 1))


def _has_few_weights(b: Builder, x: IrValue, *, axis: int, size: int, out_size: int, method: str,
                     antialias: bool, adjoint: bool, **params: Hashable) -> bool:
    aval, out = b.avals_in[0], b.avals_out[0]
    if max(aval.size, out.size) < LEAST or not min(aval.size, out.size) or (
            aval.memory_space is not Space.Device):
        return False
    band = _band(size, out_size, method, antialias)
    count = 0 if band is None else band.back_count if adjoint else band.count
    n = (out_size if adjoint else size) - (MOVES if _moves(aval, axis) else 0)
    return 0 < count <= min(MOST, n // PART)


def _moves(aval: ShapedArray, axis: int) -> bool:
    """Whether the axis is moved to the front: vectors are along those behind, or else all others.
    """
    return prod(aval.shape[:axis]) > 1 and prod(aval.shape[axis + 1:]) < LEAST_BEHIND


def _by_band(b: Builder, x: IrValue, *, axis: int, size: int, out_size: int, method: str,
             antialias: bool, precision: PrecisionLike, adjoint: bool) -> IrValue:
    aval, out = b.avals_in[0], b.avals_out[0]
    band = _band(size, out_size, method, antialias)
    assert band is not None
    before, n, behind = prod(aval.shape[:axis]), aval.shape[axis], prod(aval.shape[axis + 1:])
    count, m = (band.back_count if adjoint else band.count), out.shape[axis]
    first = np.asarray(band.back_first if adjoint else band.first)
    weights, first_type = make_aval((count, m), dtypes.to_real_dtype(aval.dtype)), make_aval(
        (m,), INT32)
    starts = b.constant(band.first, make_aval((out_size,), INT32))
    (w,) = b.traced(functools.partial(_weights_of_band, band, size, method, antialias,
                                      weights.dtype), [starts], [make_aval((out_size,), INT32)])
    forward = make_aval((band.count, out_size), weights.dtype)
    w = b.hold(w, forward)
    if adjoint:
        w = _turned(b, w, forward, band, weights)
    moves = _moves(aval, axis)
    cube = make_aval((before, n, behind), aval.dtype)
    x = b.op("stablehlo.reshape", [x], None, cube)
    if moves:
        flat = make_aval((1, n, before * behind), aval.dtype)
        (x,) = b.traced(lambda x: reshape(transpose(x, (1, 0, 2)), flat.shape), [x], [cube])
        x, cube = b.hold(x, flat), flat
    (y,) = b.traced(functools.partial(_summed, count), [x, w, b.constant(first, first_type)], [
        cube, weights, first_type])
    bands = make_aval((cube.shape[0], m, cube.shape[2]), aval.dtype)
    # Otherwise XLA computes the sums again in each reader, in its order.
    y, turned = b.hold(y, bands), (m, before, behind)
    if moves:
        (y,) = b.traced(lambda y: transpose(reshape(y, turned), (1, 0, 2)), [y], [bands])
    return b.op("stablehlo.reshape", [y], None, out)


def _weights_of_band(band: _Band, size: int, method: str, antialias: bool, dtype: DType,
                     first: Array) -> Array:
    """[count, out_size]."""
    out_size = typeof(first).shape[0]
    place = first + iota("int32", band.count)[:, None]
    method = "CUBIC" if method == "CUBIC_PYTORCH" else method
    weights, middle = _weights_at(place, out_size, out_size / size, 0, method, antialias, dtype)
    return _in_parts_of_1(weights, (middle >= 0) & (middle <= size))


def _turned(b: Builder, w: IrValue, forward: ShapedArray, band: _Band, aval: ShapedArray
            ) -> IrValue:
    """The weights by input pixel: [back_count, size]."""
    place, out_size = np.arange(aval.shape[1]), len(band.first)
    outs = band.back_first + np.arange(band.back_count)[:, None]
    row = place - band.first[np.clip(outs, 0, out_size - 1)]
    there = (row >= 0) & (row < band.count) & (outs < out_size)
    at = np.where(there, row * out_size + outs, band.count * out_size).astype(np.int32)
    (turned,) = b.traced(lambda w, at: take(reshape(w, (forward.size,)), at, 0, mode="fill",
                                            fill_value=0), [
        w, b.constant(at, make_aval(at.shape, INT32))], [forward, make_aval(at.shape, INT32)])
    return b.hold(turned, aval)


def _summed(count: int, x: Array, w: Array, first: Array) -> Array:
    """The sum of slices of x[:, n, :] from `first` on, each with its weights."""
    total: Any = None
    for k in range(count):
        term = take(x, first + k, 1, mode="clip") * w[k][:, None]
        total = term if total is None else total + term
    return total


KERNELS = {resampled_p: (Kernel("sums of the pixels with weights", "most weights are 0",
                                _has_few_weights, _by_band),)}
