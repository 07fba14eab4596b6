"""Convolutions in groups and of one feature, which XLA:CPU computes one product at a time.

Where each feature is its own group, a convolution is a sum of shifted products, which XLA
vectorises. Other groups are convolutions by themselves, for which XLA has a library.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Hashable, Sequence

from ...base.typing import Array, DType, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import ShapedArray
from ...types.shape import prod
from ..arithmetic import mul
from ..conv import ConvDimensionNumbers, conv_general_dilated_p
from ..convert import convert_element_type
from ..families import add
from ..shape import broadcast_in_dim, merge, reduce_sum, reshape, transpose
from ..slicing import concatenate, pad, slice, slice_in_dim
from ..windows import dilated
from .fourier import by_transforms, is_long
from .reductions import pieces, tree

Pairs = tuple[tuple[int, int], ...]
Sizes = tuple[int, ...]
# Found with tools/kernel_table.py. With fewer products XLA is as fast, or compiling costs more than
# it saves; beyond so many places of a kernel, or groups, XLA compiles the formula for long.
LEAST_PRODUCTS, PLACES, GROUPS = 65536, 64, 64
# In more groups than these, XLA is as fast for fewer features.
FEW_GROUPS, FEATURES = 4, 8
PARTS = 4       # of a sum, see `pieces`
# Of one feature: products, and numbers of a vector's kernel, of fewer or more than which XLA is as
# fast.
LEAST_SINGLE, SHORT, LONG = 4096, 2, 40
# Of three axes: float64 has fewer numbers in a vector, so XLA is as fast if not so many are added.
LEAST_DEEP, MOST_IMAGES, FEATURES_DOUBLE = 65536, 16, 24
FLOAT32, FLOAT64 = dtypes.as_dtype("float32"), dtypes.as_dtype("float64")


def _products(b: Builder, spec: ConvDimensionNumbers) -> int:
    """How many products the convolution has, of padding too."""
    lhs, rhs = b.avals_in
    if 0 in (lhs.size, rhs.size):
        return 0
    # Per element of the result, the places of the kernel and the features of a group.
    return b.avals_out[0].size * (rhs.size // rhs.shape[spec.rhs_spec[0]])


def _one_dtype(lhs: ShapedArray, rhs: ShapedArray, out: ShapedArray) -> bool:
    return lhs.dtype == rhs.dtype == out.dtype and dtypes.scalar_kind(out.dtype) in "fc" and (
        dtypes.itemsize_bits(out.dtype) >= 16)


def _padded(x: Array, *, axes: Sizes, padding: Pairs, lhs_dilation: Sizes, dtype: DType) -> Array:
    config = [(0, 0, 0)] * typeof(x).ndim
    for axis, (low, high), spread in zip(axes, padding, lhs_dilation, strict=True):
        config[axis] = low, high, spread - 1
    return pad(convert_element_type(x, dtype), literal(0, dtype), config)


def _held_padded(b: Builder, lhs: IrValue, spec: ConvDimensionNumbers, padding: Pairs,
                 lhs_dilation: Sizes) -> tuple[IrValue, ShapedArray]:
    """The image with zeros around and within it, in memory: each place of the kernel reads it."""
    aval, axes = b.avals_in[0], spec.lhs_spec[2:]
    wide, shape = dtypes.wide_dtype(aval.dtype), [*aval.shape]
    if wide == aval.dtype and not any(map(any, padding)) and {*lhs_dilation} <= {1}:
        return lhs, aval
    for axis, pads, spread in zip(axes, padding, lhs_dilation, strict=True):
        shape[axis] = dilated(shape[axis], spread) + sum(pads)
    image = aval.update(shape=tuple(shape), dtype=wide)
    fun = functools.partial(_padded, axes=axes, padding=padding, lhs_dilation=lhs_dilation,
                            dtype=wide)
    return b.hold(b.by_rule(fun, [lhs], [aval])[0], image), image


def _sizes(spec: Sequence[int], aval: ShapedArray) -> list[int]:
    return [aval.shape[i] for i in spec]


def _strided(x: Array, axes: Sizes, start: Sizes, count: Sizes, step: Sizes) -> Array:
    """`count` elements along each of these axes, from `start` on."""
    shape = typeof(x).shape
    starts, limits, strides = [0] * len(shape), [*shape], [1] * len(shape)
    for axis, at, n, by in zip(axes, start, count, step, strict=True):
        starts[axis], limits[axis], strides[axis] = at, at + (n - 1) * by + 1, by
    return slice(x, starts, limits, strides)


def _repeated(x: Array, axis: int, count: int) -> Array:
    """Each element along an axis as often, on an axis of its own behind it."""
    shape = typeof(x).shape
    return broadcast_in_dim(x, (*shape[:axis + 1], count, *shape[axis + 1:]),
                            [i + (i > axis) for i in range(len(shape))])


# One feature in a group

def _is_depthwise(b: Builder, *xs: IrValue,
                  dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
                  batch_group_count: int, **params: Hashable) -> bool:
    (lhs, rhs), out = b.avals_in, b.avals_out[0]
    spec, window = dimension_numbers, _sizes(dimension_numbers.rhs_spec[2:], rhs)
    return (feature_group_count > 1 and feature_group_count == lhs.shape[spec.lhs_spec[1]]
            and _one_dtype(lhs, rhs, out) and 1 < prod(window) <= PLACES
            and _products(b, spec) >= LEAST_PRODUCTS)


def _is_single(b: Builder, *xs: IrValue, dimension_numbers: ConvDimensionNumbers,
               feature_group_count: int, batch_group_count: int, **params: Hashable) -> bool:
    """Whether the image has one feature, and the result, too."""
    (lhs, rhs), out = b.avals_in, b.avals_out[0]
    spec, window = dimension_numbers, _sizes(dimension_numbers.rhs_spec[2:], rhs)
    return (batch_group_count == lhs.shape[spec.lhs_spec[1]] == rhs.shape[spec.rhs_spec[0]] == 1
            and _one_dtype(lhs, rhs, out) and _products(b, spec) >= LEAST_SINGLE
            # XLA makes vectors of convolutions of float64 along one axis.
            and (len(window) > 1 or out.dtype != FLOAT64)
            and SHORT < prod(window) <= (PLACES if len(window) > 1 else LONG))


def _depthwise(b: Builder, lhs: IrValue, rhs: IrValue, *, padding: Pairs, lhs_dilation: Sizes,
               dimension_numbers: ConvDimensionNumbers, **params: Hashable) -> IrValue:
    x, aval = _held_padded(b, lhs, dimension_numbers, padding, lhs_dilation)
    fun = functools.partial(_shifted_products, spec=dimension_numbers, out=b.avals_out[0], **params)
    return b.by_rule(fun, [x, rhs], [aval, b.avals_in[1]])[0]


def _shifted_products(x: Array, kernel: Array, *, spec: ConvDimensionNumbers, out: ShapedArray,
                      window_strides: Sizes, rhs_dilation: Sizes, **params: Hashable) -> Array:
    """The sum over the kernel's places of the image, shifted, times the numbers there."""
    feature, axes, dtype = spec.lhs_spec[1], spec.lhs_spec[2:], typeof(x).dtype
    # The kernel by place and output feature.
    kernel = convert_element_type(transpose(kernel, (*spec.rhs_spec[2:], *spec.rhs_spec[:2])),
                                  dtype)
    *window, features, _ = typeof(kernel).shape
    kernel = reshape(kernel, (prod(window), features))
    size = tuple(_sizes(spec.out_spec[2:], out))
    times = features // typeof(x).shape[feature]
    terms = []
    for k, place in enumerate(itertools.product(*map(range, window))):
        start = tuple([i * by for i, by in zip(place, rhs_dilation, strict=True)])
        term = _strided(x, axes, start, size, window_strides)
        numbers = reshape(slice_in_dim(kernel, k, k + 1), (features,))
        if times > 1:
            term = merge(_repeated(term, feature, times), feature)
        terms.append(mul(term, broadcast_in_dim(numbers, typeof(term).shape, (feature,))))
    return _laid_out(convert_element_type(tree(add, terms), out.dtype), spec)


def _laid_out(x: Array, spec: ConvDimensionNumbers) -> Array:
    """A result with the axes of the image, as required."""
    order = [0] * len(spec.out_spec)
    for ours, its in zip(spec.lhs_spec, spec.out_spec, strict=True):
        order[its] = ours
    return x if order == [*range(len(order))] else transpose(x, order)


# The gradient of its kernel: groups of batches

def _is_depthwise_kernel(b: Builder, *xs: IrValue,
                         dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
                         batch_group_count: int, **params: Hashable) -> bool:
    (lhs, rhs), out, spec = b.avals_in, b.avals_out[0], dimension_numbers
    places = _sizes(spec.out_spec[2:], out)
    return (batch_group_count > 1 and batch_group_count == lhs.shape[spec.lhs_spec[0]]
            and _one_dtype(lhs, rhs, out) and 0 < prod(places) <= PLACES
            and _products(b, spec) >= LEAST_PRODUCTS)


def _depthwise_kernel(b: Builder, lhs: IrValue, rhs: IrValue, *, padding: Pairs,
                      lhs_dilation: Sizes, dimension_numbers: ConvDimensionNumbers,
                      **params: Hashable) -> IrValue:
    """For each place of the result, the sum of the image, shifted, times the other operand."""
    spec, out = dimension_numbers, b.avals_out[0]
    x, aval = _held_padded(b, lhs, spec, padding, lhs_dilation)
    kernel = b.avals_in[1]
    size = [0] * kernel.ndim
    for its, ours in zip(spec.rhs_spec, spec.lhs_spec, strict=True):
        size[ours] = kernel.shape[its]
    ct = kernel.update(shape=tuple(size), dtype=aval.dtype)
    y = b.by_rule(functools.partial(_as_image, spec=spec, dtype=aval.dtype), [rhs], [kernel])[0]
    y = b.hold(y, ct)       # for a place, XLA would transpose it anew
    group, terms = spec.lhs_spec[0], list[IrValue]()
    # The first axis that is summed and long, in pieces, which XLA vectorises.
    summed = [i for i in range(ct.ndim) if i != group]
    axis = next((i for i in summed if size[i] >= PARTS), summed[0])
    part = -(-size[axis] // PARTS)
    size[axis] = part
    shape = _sizes(spec.out_spec[2:], out)
    for place in itertools.product(*map(range, shape)):
        fun = functools.partial(_shifted_product, place=place, spec=spec, axis=axis, part=part,
                                **params)
        (term,) = b.traced(fun, [x, y], [aval, ct])
        terms.append(b.hold(term, ct.update(shape=tuple(size))))
    fun = functools.partial(_sums, spec=spec, out=out)
    return b.traced(fun, terms, [ct.update(shape=tuple(size))] * len(terms))[0]


def _as_image(ct: Array, *, spec: ConvDimensionNumbers, dtype: DType) -> Array:
    """The operand in the place of the kernel, with the axes of the image."""
    order = [0] * len(spec.lhs_spec)
    for its, ours in zip(spec.rhs_spec, spec.lhs_spec, strict=True):
        order[ours] = its
    return convert_element_type(transpose(ct, order), dtype)


def _shifted_product(x: Array, ct: Array, *, place: Sizes, spec: ConvDimensionNumbers, axis: int,
                     part: int, window_strides: Sizes, rhs_dilation: Sizes, **params: Hashable
                     ) -> Array:
    group, axes = spec.lhs_spec[0], spec.lhs_spec[2:]
    start = tuple([i * by for i, by in zip(place, window_strides, strict=True)])
    window = tuple([typeof(ct).shape[i] for i in axes])
    term = _strided(x, axes, start, window, rhs_dilation)
    times = typeof(ct).shape[group] // typeof(x).shape[group]
    if times > 1:
        term = merge(_repeated(term, group, times), group)
    return pieces(add, part, axis, mul(term, ct))


def _sums(*terms: Array, spec: ConvDimensionNumbers, out: ShapedArray) -> Array:
    group, count = spec.lhs_spec[0], len(spec.out_spec)
    axes = tuple([i for i in range(count) if i != group])
    features = typeof(terms[0]).shape[group]
    sums = [reshape(reduce_sum(term, axes), (1, features)) for term in terms]
    shape = _sizes(spec.out_spec[2:], out)
    products = reshape(concatenate(sums, 0), (*shape, features, 1))
    order = [0] * count
    for i, axis in enumerate((*spec.out_spec[2:], spec.out_spec[1], spec.out_spec[0])):
        order[axis] = i
    return convert_element_type(transpose(products, order), out.dtype)


# Several features in a group

def _is_grouped(b: Builder, *xs: IrValue, dimension_numbers: ConvDimensionNumbers,
                feature_group_count: int, batch_group_count: int, **params: Hashable) -> bool:
    groups, spec = feature_group_count * batch_group_count, dimension_numbers
    features = b.avals_in[1].shape[spec.rhs_spec[1]]
    return 1 < groups <= GROUPS and (
        batch_group_count > 1 or groups <= FEW_GROUPS or features >= FEATURES) and (
        _products(b, spec) >= LEAST_PRODUCTS)


def _group_by_group(lhs: Array, rhs: Array, *, dimension_numbers: ConvDimensionNumbers,
                    feature_group_count: int, batch_group_count: int, **params: Hashable) -> Array:
    spec = dimension_numbers
    at = spec.lhs_spec[1] if batch_group_count == 1 else spec.lhs_spec[0]
    groups = feature_group_count * batch_group_count    # one of them is 1

    def part(x: Array, axis: int, k: int) -> Array:
        size = typeof(x).shape[axis] // groups
        return slice_in_dim(x, k * size, (k + 1) * size, 1, axis)

    return concatenate([conv_general_dilated_p.bind(
        part(lhs, at, k), part(rhs, spec.rhs_spec[0], k), dimension_numbers=spec,
        feature_group_count=1, batch_group_count=1, **params) for k in range(groups)],
        spec.out_spec[1])


def _grouped(b: Builder, lhs: IrValue, rhs: IrValue, **params: Hashable) -> IrValue:
    return b.inline(_group_by_group, lhs, rhs, **params)


# Three and more axes of space

def _is_deep(b: Builder, *xs: IrValue, dimension_numbers: ConvDimensionNumbers,
             feature_group_count: int, batch_group_count: int, lhs_dilation: Sizes,
             **params: Hashable) -> bool:
    spec, (lhs, rhs), out = dimension_numbers, b.avals_in, b.avals_out[0]
    if lhs.ndim < 5 or feature_group_count * batch_group_count > 1 or not (
            lhs.dtype == rhs.dtype == out.dtype in (FLOAT32, FLOAT64)):
        return False
    planes, depth = rhs.shape[spec.rhs_spec[2]], out.shape[spec.out_spec[2]]
    return (_products(b, spec) >= LEAST_DEEP and min(planes, depth) <= PLACES
            # The image that is made is no larger than so many of this one.
            and depth * planes <= MOST_IMAGES * lhs.shape[spec.lhs_spec[2]]
            and (lhs.dtype == FLOAT32 or {*lhs_dilation} == {1}
                 and planes * rhs.shape[spec.rhs_spec[1]] >= FEATURES_DOUBLE))


def _by_planes(b: Builder, lhs: IrValue, rhs: IrValue, **params: Hashable) -> IrValue:
    return b.inline(_plane_by_plane, lhs, rhs, **params)


def _plane_by_plane(lhs: Array, rhs: Array, *, dimension_numbers: ConvDimensionNumbers,
                    window_strides: Sizes, padding: Pairs, lhs_dilation: Sizes,
                    rhs_dilation: Sizes, **params: Hashable) -> Array:
    """A convolution over one axis less: the kernel's planes are features, the image's a batch."""
    (batch, channel, *space), spec = dimension_numbers.lhs_spec, dimension_numbers
    x = transpose(lhs, (batch, *space, channel))
    x = _padded(x, axes=(1,), padding=padding[:1], lhs_dilation=lhs_dilation[:1],
                dtype=typeof(x).dtype)
    to, of, *places = spec.rhs_spec
    kernel = transpose(rhs, (*places[1:], places[0], of, to))
    *window, planes, features, outputs = typeof(kernel).shape
    flat, images = _planes_as_features(x, planes, window_strides[0], rhs_dilation[0])
    last = len(space)
    order = (0, last, *range(1, last))
    result = conv_general_dilated_p.bind(
        flat, reshape(kernel, (*window, planes * features, outputs)),
        window_strides=window_strides[1:], padding=padding[1:], lhs_dilation=lhs_dilation[1:],
        rhs_dilation=rhs_dilation[1:], dimension_numbers=ConvDimensionNumbers(
            order, (last, last - 1, *range(last - 1)), order), **params)
    count, *sizes = typeof(result).shape
    result = reshape(result, (images, count // images, *sizes))
    back = [0] * len(spec.out_spec)
    for ours, its in enumerate((spec.out_spec[0], *spec.out_spec[2:], spec.out_spec[1])):
        back[its] = ours
    return transpose(result, back)


def _planes_as_features(x: Array, planes: int, step: int, spread: int) -> tuple[Array, int]:
    """[images * count, ..., planes * features] of [images, depth, ..., features], and `images`.

    `count` times, from `step` planes further on, so many planes are taken, `spread` apart.
    """
    images, depth, *between, features = typeof(x).shape
    count, last = (depth - (planes - 1) * spread - 1) // step + 1, len(between) + 1
    if planes <= count:
        parts = [_strided(x, (1,), (k * spread,), (count,), (step,)) for k in range(planes)]
        flat = concatenate(parts, last + 1)
    else:
        parts = [reshape(_strided(x, (1,), (k * step,), (planes,), (spread,)),
                         (images, 1, planes, *between, features)) for k in range(count)]
        flat = transpose(concatenate(parts, 1), (0, 1, *range(3, last + 2), 2, last + 2))
    return reshape(flat, (images * count, *between, planes * features)), images


KERNELS = {conv_general_dilated_p: (
    Kernel("convolution of one feature", "XLA computes it one product at a time", _is_single,
           _depthwise),
    Kernel("convolution by Fourier transforms", "XLA computes it one product at a time", is_long,
           by_transforms),
    Kernel("depthwise convolution", "XLA computes a convolution in groups one product at a time",
           _is_depthwise, _depthwise),
    Kernel("kernel of a depthwise convolution", "XLA computes a convolution in groups one product "
           "at a time", _is_depthwise_kernel, _depthwise_kernel),
    Kernel("convolution group by group", "XLA computes a convolution in groups one product at a "
           "time, but each group by a library", _is_grouped, _grouped),
    Kernel("convolution plane by plane", "XLA's convolution over three axes has no vectors of "
           "planes", _is_deep, _by_planes))}
