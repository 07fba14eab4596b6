"""Convolution: `conv_general_dilated` with all its rules.

Dimension numbers are specs: for each operand, (batch or out-feature axis, feature axis, spatial
axes...). Transposes are convolutions again, with strides and dilations exchanged; see Dumoulin and
Visin, "A guide to convolution arithmetic for deep learning" (2016).
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

from ..base.docstrings import described_like
from ..base.typing import Array, ArrayLike, DType, DTypeLike, IrValue, Params
from ..base.util import lazy_module
from ..core import tags
from ..core.facts import Shapes
from ..core.primitive import Axis, Builder, Linear, Primitive, not_linear
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import (
    canonical_axes, canonical_shape, definitely_equal, div, extent, floor_div, is_static,
    known_less, prod, sequence, static_int, strided_size,
)
from ..types.sharding import ShardingLike
from .arithmetic import mul
from .contract import unmixed
from .families import product_rule
from .precision import CanonicalPrecision, PrecisionLike, canonical_precision, precision_attributes
from .shape import align, cut, merge, move_axis, rev, transpose, zeros_of
from .sharding import as_typed, settled, undecided
from .slicing import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from .windows import canonical_pads, dilated, padtype_to_pads


def _group_by_group(b: Builder, lhs: IrValue, rhs: IrValue, groups: int, batches: int,
                    params: Params) -> IrValue:
    """A loop over as many groups as a symbolic size says; XLA takes their number only."""
    spec: ConvDimensionNumbers = params["dimension_numbers"]
    avals, out, count = b.avals_in, b.avals_out[0], groups * batches    # one of them is 1
    at = spec.lhs_spec[1] if definitely_equal(batches, 1) else spec.lhs_spec[0]

    def one(i: Array, lhs: Array, rhs: Array, filled: Array) -> Array:
        def part(x: Array, axis: int) -> Array:
            size = floor_div(typeof(x).shape[axis], count)
            return dynamic_slice_in_dim(x, mul(i, size), size, axis)

        group = conv_general_dilated_p.bind(part(lhs, at), part(rhs, spec.rhs_spec[0]),
                                            feature_group_count=1, batch_group_count=1, **params)
        axis = spec.out_spec[1]
        return dynamic_update_slice_in_dim(filled, group, mul(i, typeof(group).shape[axis]), axis)

    def step(i: IrValue, values: Sequence[IrValue]) -> list[IrValue]:
        return b.traced(one, [i, lhs, rhs, *values], [make_aval((), dtypes.as_dtype("int32")),
                                                      *avals, out])

    return b.counted_loop(count, [b.full(out, 0)], step)[0]


def features_last(ndim: int) -> ConvDimensionNumbers:
    """The dimension numbers that XLA:CPU has a fast convolution for."""
    image = (0, ndim - 1, *range(1, ndim - 1))
    return ConvDimensionNumbers(image, (ndim - 1, ndim - 2, *range(ndim - 2)), image)


def _permuted(lhs: Array, rhs: Array, *, dimension_numbers: ConvDimensionNumbers, **params: Hashable
              ) -> Array:
    """A convolution, by one of `features_last`."""
    ndim, (image, kernel, result) = len(dimension_numbers.lhs_spec), dimension_numbers
    out = conv_general_dilated_p.bind(
        transpose(lhs, (image[0], *image[2:], image[1])),
        transpose(rhs, (*kernel[2:], kernel[1], kernel[0])),
        dimension_numbers=features_last(ndim), **params)
    order = (result[0], *result[2:], result[1])
    return transpose(out, [order.index(i) for i in range(ndim)])


class ConvDimensionNumbers(NamedTuple):
    """The axes of a convolution's lhs, rhs and result, as (batch, feature, spatial...) indices.

    For rhs: (output feature, input feature, spatial...).

    >>> from olympus import lax
    >>> lax.conv_dimension_numbers((1, 3, 8, 8), (5, 3, 3, 3), ("NCHW", "OIHW", "NHWC")).out_spec
    (0, 3, 1, 2)
    """

    lhs_spec: tuple[int, ...]
    rhs_spec: tuple[int, ...]
    out_spec: tuple[int, ...]


ConvGeneralDilatedDimensionNumbers = tuple[str, str, str] | ConvDimensionNumbers | None
Pairs = tuple[tuple[int, int], ...]


def _out_size(size: int, window: int, stride: int, pads: tuple[int, int]) -> int:
    return strided_size(0, size + pads[0] + pads[1] - window + 1, stride)


class ConvGeneralDilated(Primitive):
    """A bilinear map of image (lhs) and kernel (rhs); XLA's convolution (no kernel flip)."""

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.convolution"), 256
    spread = staticmethod(tags.convolve)
    settled_by = "conv_general_dilated(…, out_sharding=…)"
    contracts = True

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        # All axes of the kernel but the output features are summed over.
        features = ins[1][params["dimension_numbers"].rhs_spec[0]]
        return 0.5 * prod(outs[0]) * prod(ins[1]) / max(features, 1)

    def remedy(self, avals: Sequence[ShapedArray], params: Params) -> str:
        if params["feature_group_count"] == 1:
            return ""
        return ("a convolution by groups runs one group after the other: where the window is "
                "small, add slices of the padded input, each times its weight")

    def infer(self, lhs: ShapedArray, rhs: ShapedArray, *, window_strides: tuple[int, ...],
              padding: Pairs, lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
              dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
              batch_group_count: int, precision: CanonicalPrecision,
              preferred_element_type: DType | None, out_sharding: ShardingLike) -> ShapedArray:
        spec = dimension_numbers
        if not lhs.ndim == rhs.ndim == len(spec.lhs_spec):
            raise ValueError(f"conv_general_dilated: lhs {lhs}, rhs {rhs} and dimension_numbers "
                             f"{spec} given; conv_general_dilated lhs and rhs must have the "
                             "same number of dimensions.")
        if dtypes.is_extended(lhs.dtype) or (
                preferred_element_type is None and lhs.dtype != rhs.dtype):
            raise TypeError(f"conv_general_dilated: lhs {lhs} and rhs {rhs} given; equal numeric "
                            "dtypes are required, or a preferred_element_type; convert one of "
                            "them.")
        n, c, *space = (lhs.shape[i] for i in spec.lhs_spec)
        o, i, *window = (rhs.shape[j] for j in spec.rhs_spec)
        groups, batches = feature_group_count, batch_group_count
        if known_less(groups, 1) or known_less(batches, 1) or not (
                definitely_equal(groups, 1) or definitely_equal(batches, 1)):
            raise ValueError(f"conv_general_dilated: feature_group_count {groups} and "
                             f"batch_group_count {batches} given; positive counts are required, "
                             "one of them 1.")
        if c != i * groups:
            raise ValueError(
                f"conv_general_dilated: lhs {lhs} has {c} features, rhs {rhs} takes {i} in "
                f"{groups} groups; lhs features must be {i} * {groups}; check dimension_numbers "
                f"{spec}.")
        if o % groups or o % batches or n % batches:
            raise ValueError(
                f"conv_general_dilated: {o} output features and batch {n} given with "
                f"feature_group_count {groups} and batch_group_count {batches}; the counts must "
                "divide the features, and the batch count the batch.")
        out = [_out_size(dilated(s, dl), dilated(w, dr), stride, pads)
               for s, w, stride, pads, dl, dr in zip(space, window, window_strides, padding,
                                                     lhs_dilation, rhs_dilation, strict=True)]
        sizes = dict(zip(spec.out_spec, (n // batches, o, *out), strict=True))
        dtype = lhs.dtype if preferred_element_type is None else preferred_element_type
        return make_aval(tuple(sizes[k] for k in range(lhs.ndim)), dtype,
                         lhs.weak_type and rhs.weak_type)

    def lower(self, b: Builder, lhs: IrValue, rhs: IrValue, *, window_strides: tuple[int, ...],
              padding: Pairs, lhs_dilation: tuple[int, ...], rhs_dilation: tuple[int, ...],
              dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
              batch_group_count: int, precision: CanonicalPrecision, **params: Hashable) -> IrValue:
        wanted = b.avals_out[0]
        if 0 in (*b.avals_in[0].shape, *b.avals_in[1].shape, *wanted.shape):
            return b.full(wanted, 0)
        options = {"window_strides": window_strides, "padding": padding, "precision": precision,
                   "lhs_dilation": lhs_dilation, "rhs_dilation": rhs_dilation,
                   "dimension_numbers": dimension_numbers, **params}
        if not is_static((feature_group_count, batch_group_count)):
            return _group_by_group(b, lhs, rhs, feature_group_count, batch_group_count, options)
        # XLA:CPU itself does it in a program's main function only; others, in the bodies of loops
        # as well, are ten to thirty times slower.
        b.module.convolutions += 1
        if b.module.outside_main and dimension_numbers != features_last(wanted.ndim):
            return b.inline(_permuted, lhs, rhs, feature_group_count=feature_group_count,
                            batch_group_count=batch_group_count, **options)
        lhs, rhs, made = unmixed(b, lhs, rhs)
        numbers = "x".join(f"[{', '.join(_letters(spec, names))}]" for spec, names in zip(
            dimension_numbers[:2], (("b", "f"), ("o", "i")), strict=True))
        numbers += f"->[{', '.join(_letters(dimension_numbers.out_spec, ('b', 'f')))}]"
        out = b.op("stablehlo.convolution", [lhs, rhs], {
            "dimension_numbers": b.attr(f"#stablehlo.conv<{numbers}>"),
            "window_strides": b.i64s(window_strides), "padding": b.pairs(padding),
            "lhs_dilation": b.i64s(lhs_dilation), "rhs_dilation": b.i64s(rhs_dilation),
            "feature_group_count": b.attr(f"{feature_group_count} : i64"),
            "batch_group_count": b.attr(f"{batch_group_count} : i64"),
            **precision_attributes(b, precision)}, made)
        return out if made is wanted else b.convert(out, wanted)

    jvp = product_rule

    def transpose(self, ct: Array, lhs: Array | Linear, rhs: Array | Linear, **params: Any
                  ) -> list[Array | None]:
        if type(lhs) is Linear and type(rhs) is Linear:
            raise not_linear("conv_general_dilated", "both operands")
        if params["preferred_element_type"] is not None:
            target = (lhs if type(lhs) is Linear else rhs).aval.dtype
            params = {**params, "preferred_element_type": target}
        if type(lhs) is Linear:
            return [_transpose_lhs(self, ct, lhs.aval, rhs, **params), None]
        spec = params["dimension_numbers"]
        if params["feature_group_count"] == params["batch_group_count"] == 1 and _is_whole(
                lhs, spec.lhs_spec[2:]) and _is_whole(ct, spec.out_spec[2:]):
            # Each device along the batch's axes has a term. For sharded spatial axes, and for
            # groups, XLA's partitioner gives wrong sums; types refuse those.
            ct, lhs = undecided(ct), undecided(lhs)
        return [None, as_typed(_transpose_rhs(self, ct, lhs, rhs.aval, **params),
                               rhs.aval.to_cotangent_aval())]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             dimension_numbers: ConvDimensionNumbers, feature_group_count: int,
             batch_group_count: int, **params: Hashable) -> tuple[ArrayLike, int]:
        (lhs, rhs), (dl, dr) = args, dims
        spec, groups, batches = dimension_numbers, feature_group_count, batch_group_count
        if definitely_equal(axis.size, 0):      # no element, whose sizes the other rules divide by
            avals = [typeof(x) if d is None else typeof(x).without_axis(d)
                     for x, d in zip(args, dims, strict=True)]
            out = self.result_avals(tuple(avals), {
                **params, "dimension_numbers": spec, "feature_group_count": groups,
                "batch_group_count": batches})
            return zeros_of(out.with_axis(0, 0, axis.mesh_axis)), 0
        if dr is None and batches == 1:
            lhs = _merge_axis(lhs, dl, spec.lhs_spec[0])
            out = self.bind(lhs, rhs, dimension_numbers=spec, feature_group_count=groups,
                            batch_group_count=1, **params)
            return _split_axis(out, spec.out_spec[0], axis.size), spec.out_spec[0]
        if dl is None and groups == 1 and batches == 1:
            rhs = _merge_axis(rhs, dr, spec.rhs_spec[0])
            out = self.bind(lhs, rhs, dimension_numbers=spec, feature_group_count=1,
                            batch_group_count=1, **params)
            return _split_axis(out, spec.out_spec[1], axis.size), spec.out_spec[1]
        # Both mapped (or groups in the way): the mapped axis becomes the outer group axis.
        (lhs, rhs), _ = align(axis, (lhs, rhs), (dl, dr), 0)
        rhs = _merge_axis(rhs, 0, spec.rhs_spec[0])
        if batches > 1:
            lhs = _merge_axis(lhs, 0, spec.lhs_spec[0])
            out = self.bind(lhs, rhs, dimension_numbers=spec, feature_group_count=1,
                            batch_group_count=batches * axis.size, **params)
        else:
            lhs = _merge_axis(lhs, 0, spec.lhs_spec[1])
            out = self.bind(lhs, rhs, dimension_numbers=spec, batch_group_count=1,
                            feature_group_count=groups * axis.size, **params)
        return _split_axis(out, spec.out_spec[1], axis.size), spec.out_spec[1]


def _is_whole(x: ArrayLike, axes: Sequence[int]) -> bool:
    """Whether no explicit axis of a mesh cuts these axes."""
    aval = typeof(x)
    return not (aval.tagged and any(aval.sharding.spec[i] is not None for i in axes))


def _letters(spec: Sequence[int], names: tuple[str, str]) -> list[str]:
    """The letters of axes, in axis order: `b`, `f`, or the number of the spatial axis."""
    roles = {spec[0]: names[0], spec[1]: names[1]}
    roles.update((axis, str(k)) for k, axis in enumerate(spec[2:]))
    return [roles[axis] for axis in range(len(spec))]


def _merge_axis(x: Array, src: int | None, into: int) -> Array:
    """Move axis `src` before axis `into` (of the array without it) and merge the two."""
    return merge(move_axis(x, src, into), into)


def _split_axis(x: Array, axis: int, outer: int) -> Array:
    """Split an axis into (outer, rest), in place."""
    return cut(x, axis, (outer, div(typeof(x).shape[axis], outer)))


def _transpose_lhs(prim: ConvGeneralDilated, ct: Array, lhs: ShapedArray, rhs: Any, *,
                   window_strides: tuple[int, ...], padding: Pairs, lhs_dilation: tuple[int, ...],
                   rhs_dilation: tuple[int, ...], dimension_numbers: ConvDimensionNumbers,
                   feature_group_count: int, batch_group_count: int, **params: Hashable) -> Array:
    """Cotangent of the image: convolve ct, dilated by the strides, with the flipped kernel."""
    spec, groups, batches = dimension_numbers, feature_group_count, batch_group_count
    kernel = typeof(rhs).shape
    out = typeof(ct).shape
    pads = []
    for k, (stride, pad, dl, dr) in enumerate(zip(window_strides, padding, lhs_dilation,
                                                  rhs_dilation, strict=True)):
        window = dilated(kernel[spec.rhs_spec[2 + k]], dr)
        grown = dilated(out[spec.out_spec[2 + k]], stride)
        low = window - pad[0] - 1
        pads.append((low, dilated(lhs.shape[spec.lhs_spec[2 + k]], dl) + window - 1 - grown - low))
    rhs = rev(rhs, spec.rhs_spec[2:])
    out_f, in_f = spec.rhs_spec[:2]
    rhs = _regroup(rhs, groups * batches, out_f, in_f)
    numbers = ConvDimensionNumbers(spec.out_spec, (in_f, out_f, *spec.rhs_spec[2:]), spec.lhs_spec)
    result = prim.bind(ct, rhs, window_strides=lhs_dilation, padding=tuple(pads),
                       lhs_dilation=window_strides, rhs_dilation=rhs_dilation,
                       dimension_numbers=numbers, feature_group_count=groups * batches,
                       batch_group_count=1, **params)
    return _regroup(result, batches, spec.lhs_spec[1], spec.lhs_spec[0])


def _regroup(x: Array, groups: int, src: int, dst: int) -> Array:
    """Move the outer `groups` of axis `src` to the outside of axis `dst`."""
    if groups == 1:
        return x
    return _merge_axis(_split_axis(x, src, groups), src, dst)


def _transpose_rhs(prim: ConvGeneralDilated, ct: Array, lhs: Array, rhs: ShapedArray, *,
                   window_strides: tuple[int, ...], padding: Pairs, lhs_dilation: tuple[int, ...],
                   rhs_dilation: tuple[int, ...], dimension_numbers: ConvDimensionNumbers,
                   feature_group_count: int, batch_group_count: int, **params: Hashable) -> Array:
    """Cotangent of the kernel: convolve the image with ct, batches and features exchanged."""
    spec, groups, batches = dimension_numbers, feature_group_count, batch_group_count
    image, out = typeof(lhs).shape, typeof(ct).shape
    pads = []
    for k, (stride, pad, dl, dr) in enumerate(zip(window_strides, padding, lhs_dilation,
                                                  rhs_dilation, strict=True)):
        window = dilated(rhs.shape[spec.rhs_spec[2 + k]], dr)
        grown = dilated(out[spec.out_spec[2 + k]], stride)
        size = dilated(image[spec.lhs_spec[2 + k]], dl)
        pads.append((pad[0], window - 1 + grown - size - pad[0]))
    lhs_spec = (spec.lhs_spec[1], spec.lhs_spec[0], *spec.lhs_spec[2:])
    ct_spec = (spec.out_spec[1], spec.out_spec[0], *spec.out_spec[2:])
    out_spec = (spec.rhs_spec[1], spec.rhs_spec[0], *spec.rhs_spec[2:])
    numbers = ConvDimensionNumbers(lhs_spec, ct_spec, out_spec)
    # Groups of features are groups of batches of the exchanged problem, and the reverse.
    return prim.bind(lhs, ct, window_strides=rhs_dilation, padding=tuple(pads),
                     lhs_dilation=lhs_dilation, rhs_dilation=window_strides,
                     dimension_numbers=numbers, feature_group_count=batches,
                     batch_group_count=groups, **params)


conv_general_dilated_p = ConvGeneralDilated("conv_general_dilated")


def conv_dimension_numbers(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                           dimension_numbers: ConvGeneralDilatedDimensionNumbers
                          ) -> ConvDimensionNumbers:
    """Convert any spelling of dimension numbers to `ConvDimensionNumbers`.

    None is ('NCHW', 'OIHW', 'NCHW') and its like; strings name axes by letters: N batch, C feature,
    O and I output and input features, any other letter a spatial axis.

    Args:
      lhs_shape, rhs_shape: shapes of image and kernel, of one rank.
      dimension_numbers: None, or a string or tuple of axes for each of lhs, rhs and result.
    Returns: `ConvDimensionNumbers`: per array its axes, batch and feature (kernel: out, in) first.

    >>> lax.conv_dimension_numbers((1, 8, 8, 3), (3, 3, 3, 5), ("NHWC", "HWIO", "NHWC")).lhs_spec
    (0, 3, 1, 2)
    """
    if isinstance(dimension_numbers, ConvDimensionNumbers):
        return dimension_numbers
    lhs_shape, rhs_shape = canonical_shape(lhs_shape, "conv"), canonical_shape(rhs_shape, "conv")
    rank = len(lhs_shape)
    if len(rhs_shape) != rank:
        raise TypeError(f"conv: lhs of rank {rank} and rhs of rank {len(rhs_shape)} given; equal "
                        "ranks are required.")
    if dimension_numbers is None:
        same = tuple(range(rank))
        return ConvDimensionNumbers(same, same, same)
    if not isinstance(dimension_numbers, (tuple, list)) or len(dimension_numbers) != 3:
        raise TypeError(f"conv: dimension_numbers {dimension_numbers!r} given; None, three strings "
                        "(lhs, rhs, out), or a ConvDimensionNumbers is required.")
    specs = []
    order = [c for c in dimension_numbers[1] if c not in "OI"]
    for spec, (first, second) in zip(dimension_numbers, ("NC", "OI", "NC"), strict=True):
        if not isinstance(spec, str):
            axes = canonical_axes(sequence(spec, "conv", "dimension_numbers"), rank, "conv")
            if len(axes) != rank:
                raise ValueError(f"conv: dimension_numbers {dimension_numbers!r} given for rank "
                                 f"{rank}; each of {rank} axes is required once.")
            specs.append(axes)
            continue
        spatial = [c for c in spec if c not in (first, second)]
        if (len(spec) != rank or len(set(spec)) != rank or sorted(spatial) != sorted(order)
                or first not in spec or second not in spec):
            raise ValueError(f"conv: dimension_numbers {dimension_numbers!r} given for rank "
                             f"{rank}; each string needs {first}, {second} and the same spatial "
                             "letters, once each.")
        specs.append((spec.index(first), spec.index(second), *map(spec.index, order)))
    return ConvDimensionNumbers(*specs)


def conv_general_dilated(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                         padding: str | Sequence[tuple[int, int]],
                         lhs_dilation: Sequence[int] | None = None,
                         rhs_dilation: Sequence[int] | None = None,
                         dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                         feature_group_count: int = 1, batch_group_count: int = 1,
                         precision: PrecisionLike = None,
                         preferred_element_type: DTypeLike | None = None,
                         out_sharding: ShardingLike = None) -> Array:
    """Convolution (in fact correlation: the kernel is not flipped) over n spatial axes.

    Args:
      lhs: image, rank n+2.
      rhs: kernel, rank n+2.
      window_strides: n strides.
      padding: 'SAME', 'SAME_LOWER', 'VALID' or n pairs (low, high); negative pads crop.
      lhs_dilation: spreads the image (transposed convolution).
      rhs_dilation: spreads the kernel (atrous convolution).
      dimension_numbers: which axis is which, see `conv_dimension_numbers`.
      feature_group_count, batch_group_count: independent groups of features or of batches.
      precision, preferred_element_type: see `dot_general`.
    Returns: An array of rank n+2 laid out as `dimension_numbers` say, of `preferred_element_type`
      or the operands' dtype. Linear in both operands.

    >>> image, kernel = onp.arange(5.).reshape(1, 1, 5), onp.array([[[1., 0., -1.]]])
    >>> print(lax.conv_general_dilated(image, kernel, (1,), [(1, 1)]))
    [[[-1. -2. -2. -2.  3.]]]
    """
    x, k = typeof(lhs), typeof(rhs)
    spec = conv_dimension_numbers(x.shape, k.shape, dimension_numbers)
    rank = x.ndim - 2
    if rank < 0:
        raise TypeError(f"conv_general_dilated: lhs {x} given; at least a batch and a feature axis "
                        "are required.")
    strides = _positive("window_strides", window_strides, rank)
    spread_lhs = _positive("lhs_dilation", lhs_dilation, rank)
    spread_rhs = _positive("rhs_dilation", rhs_dilation, rank)
    window = [k.shape[i] for i in spec.rhs_spec[2:]]
    if 0 in window:
        raise ValueError(f"conv_general_dilated: rhs {k} given; a kernel of at least one place is "
                         "required.")
    if preferred_element_type is not None:
        preferred_element_type = dtypes.requested_dtype("conv_general_dilated",
                                                        preferred_element_type)
        _check_preferred(preferred_element_type, x.dtype, k.dtype)
    if isinstance(padding, str):
        if any(d != 1 for d in spread_lhs) and padding.upper() != "VALID":
            raise ValueError(f"conv_general_dilated: padding {padding!r} with lhs_dilation "
                             f"{spread_lhs} given; explicit pairs are required with a dilated "
                             "lhs; use conv_transpose.")
        sizes = [x.shape[i] for i in spec.lhs_spec[2:]]
        padding = padtype_to_pads(sizes, [*map(dilated, window, spread_rhs)], strides, padding)
    groups, batches = [extent(n, "conv_general_dilated", "group count")
                       for n in (feature_group_count, batch_group_count)]
    convolved = functools.partial(
        conv_general_dilated_p.bind, window_strides=strides,
        padding=canonical_pads("conv_general_dilated", padding, window), lhs_dilation=spread_lhs,
        rhs_dilation=spread_rhs, dimension_numbers=spec, feature_group_count=groups,
        batch_group_count=batches, precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type, out_sharding=None)
    return settled("conv_general_dilated", convolved, out_sharding, lhs, rhs)


def _check_preferred(preferred: DTypeLike | None, *operands: DType) -> None:
    """Sums have the operands' kind and are no narrower; sums of integers may be floats."""
    to = dtypes.scalar_kind(preferred)
    for dtype in operands:
        kind = dtypes.scalar_kind(dtype)
        if to not in {"b": to, "i": "if", "u": "iuf"}.get(kind, kind):
            need = "one of the operands' kind, or a float for integers, is required"
        elif dtypes.itemsize_bits(preferred) < dtypes.itemsize_bits(dtype):
            need = "it must not be narrower than the original type"
        else:
            continue
        raise TypeError(f"conv_general_dilated: an operand of {dtype} and preferred_element_type "
                        f"{preferred} given; {need}; convert the result.")


def _positive(what: str, values: Sequence[int] | None, rank: int) -> tuple[int, ...]:
    """One positive int per spatial axis; None is all ones."""
    numbers = (1,) * rank if values is None else tuple([
        static_int(v, "conv_general_dilated", what)
        for v in sequence(values, "conv_general_dilated", what)])
    if len(numbers) != rank:
        raise ValueError(f"conv_general_dilated: {what} {numbers} given for {rank} spatial axes;"
                        "\n  one entry for each is required.")
    if any(v < 1 for v in numbers):
        raise ValueError(f"conv_general_dilated: {what} {numbers} given; positive entries are "
                         "required.")
    return numbers


def conv(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int], padding: str,
         precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None) -> Array:
    """Convolve images of n spatial axes in the order NCHW: `conv_general_dilated` without dilation.

    Args:
      lhs: image [batch, features, spatial...].
      rhs: kernel [features out, features in, spatial...]; it is not flipped.
      window_strides: n strides.
      padding: "SAME" or "VALID".
      precision, preferred_element_type: see `dot_general`.
    Returns: [batch, features out, spatial...].

    >>> lax.conv(onp.ones((1, 3, 8, 8)), onp.ones((5, 3, 3, 3)), (2, 2), "SAME").shape
    (1, 5, 4, 4)
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, precision=precision,
                                preferred_element_type=preferred_element_type)


@described_like(conv)
def conv_with_general_padding(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                              padding: str | Sequence[tuple[int, int]],
                              lhs_dilation: Sequence[int] | None,
                              rhs_dilation: Sequence[int] | None, precision: PrecisionLike = None,
                              preferred_element_type: DTypeLike | None = None) -> Array:
    """Convolve arrays in the order NCHW, with any padding and dilation.

    Args:
      window_strides: one stride per spatial axis.
      padding: a name, or pairs (low, high); see `conv_general_dilated`.
      lhs_dilation, rhs_dilation: spread the image or the kernel; None does not.

    >>> x, k = onp.ones((1, 1, 8)), onp.ones((1, 1, 3))
    >>> print(lax.conv_with_general_padding(x, k, (1,), [(0, 0)], None, (2,)))
    [[[3. 3. 3. 3.]]]
    """
    return conv_general_dilated(lhs, rhs, window_strides, padding, lhs_dilation, rhs_dilation,
                                precision=precision, preferred_element_type=preferred_element_type)
