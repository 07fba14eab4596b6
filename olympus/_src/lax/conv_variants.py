"""Convolutions made of `conv_general_dilated`: transposed, of patches, with a kernel per place; and
the shapes of results.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.docstrings import described_like
from ..base.typing import Array, ArrayLike, DType, DTypeLike
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import make_aval
from ..types.shape import canonical_shape, maximum, minimum, prod, static_int
from .comparison import eq
from .contract import dot_general
from .conv import (
    ConvDimensionNumbers, ConvGeneralDilatedDimensionNumbers, conv_dimension_numbers,
    conv_general_dilated, conv_general_dilated_p, features_last,
)
from .convert import convert_element_type
from .creation import broadcasted_iota
from .precision import PrecisionLike
from .shape import broadcast_in_dim, reshape, rev, transpose
from .windows import canonical_pads, dilated, padtype_to_pads

Dims = tuple[int, ...]


# Transposed -------------------------------------------------------------------------------------


def _transposed_pads(name: str, padding: Sequence[Sequence[int]] | str, sizes: Sequence[int],
                     window: Sequence[int], strides: Sequence[int], consistent: bool
                     ) -> Sequence[tuple[int, int]]:
    """Pads of the dilated image, from a spelling of the transposed convolution's."""
    if not isinstance(padding, str):
        pads = canonical_pads(name, padding, window)
        if consistent:
            pads = tuple([(k - 1 - low, k - 1 - high)
                          for (low, high), k in zip(pads, window, strict=True)])
        return pads
    kind = padding.upper()
    if kind == "SAME_LOWER" and all(s == 1 for s in strides):
        return padtype_to_pads(sizes, window, strides, kind)
    if kind not in ("SAME", "VALID"):
        raise ValueError(f"{name}: padding {padding!r}, strides {tuple(strides)} given; 'SAME', "
                         "'VALID' or pairs of ints are required ('SAME_LOWER' with strides 1).")
    strides = canonical_shape(strides, name)
    if len(strides) != len(window):
        raise ValueError(f"{name}: strides {strides} given for {len(window)} spatial axes; one for "
                         "each is required.")
    pads = []
    for k, s in zip(window, strides, strict=True):
        total = k + s - 2 + (maximum(k - s, 0) if kind == "VALID" else 0)
        low = k - 1 if kind == "VALID" else minimum(k - 1, -(-total // 2))
        pads.append((low, total - low))
    return tuple(pads)


def conv_transpose(lhs: ArrayLike, rhs: ArrayLike, strides: Sequence[int],
                   padding: str | Sequence[tuple[int, int]],
                   rhs_dilation: Sequence[int] | None = None,
                   dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                   transpose_kernel: bool = False, precision: PrecisionLike = None,
                   preferred_element_type: DTypeLike | None = None,
                   use_consistent_padding: bool = False) -> Array:
    """Transposed convolution ("deconvolution"): a convolution of the image spread by `strides`.

    Args:
      lhs: image, rank n+2.
      rhs: kernel, rank n+2.
      strides: n strides of the convolution that this is the transpose of.
      padding: 'SAME' (each axis becomes size * stride), 'VALID', or n pairs (low, high).
      rhs_dilation: spreads the kernel.
      dimension_numbers: see `conv_dimension_numbers`; None is channels last: ('NHWC', 'HWIO',
        'NHWC') and its like.
      transpose_kernel: reverse the kernel and exchange its feature axes, for the gradient of a
        convolution with the same kernel.
      precision, preferred_element_type: see `dot_general`.
      use_consistent_padding: whether pairs pad the transposed convolution and not the dilated
        image.
    Returns: An array of rank n+2, laid out as `dimension_numbers` say.

    >>> lax.conv_transpose(onp.ones((1, 4, 4, 3)), onp.ones((3, 3, 3, 5)), (2, 2), "SAME").shape
    (1, 8, 8, 5)
    """
    x, k = typeof(lhs), typeof(rhs)
    spec = features_last(x.ndim) if dimension_numbers is None and x.ndim == k.ndim else (
        conv_dimension_numbers(x.shape, k.shape, dimension_numbers))
    space = spec.rhs_spec[2:]
    dilation = (1,) * len(space) if rhs_dilation is None else canonical_shape(
        rhs_dilation, "conv_transpose")
    if len(dilation) != len(space):
        raise ValueError(f"conv_transpose: rhs_dilation {dilation} given for {len(space)} spatial "
                         "axes; one for each is required.")
    pads = _transposed_pads("conv_transpose", padding, [x.shape[d] for d in spec.lhs_spec[2:]],
                            [dilated(k.shape[d], s) for d, s in zip(space, dilation, strict=True)],
                            strides, use_consistent_padding)
    if transpose_kernel:
        rhs = rev(rhs, space)
        spec = spec._replace(rhs_spec=(spec.rhs_spec[1], spec.rhs_spec[0], *space))
    return conv_general_dilated(lhs, rhs, (1,) * len(space), pads, strides, dilation, spec,
                                precision=precision, preferred_element_type=preferred_element_type)


# Patches ----------------------------------------------------------------------------------------


def conv_general_dilated_patches(lhs: ArrayLike, filter_shape: Sequence[int],
                                 window_strides: Sequence[int],
                                 padding: str | Sequence[tuple[int, int]],
                                 lhs_dilation: Sequence[int] | None = None,
                                 rhs_dilation: Sequence[int] | None = None,
                                 dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                                 precision: PrecisionLike = None,
                                 preferred_element_type: DType | None = None) -> Array:
    """The patches of an image that a kernel covers, laid out along the feature axis.

    Args:
      lhs: image, rank n+2, with c features.
      filter_shape: the kernel's n spatial sizes.
      window_strides, padding, lhs_dilation, rhs_dilation, precision, preferred_element_type: as for
        `conv_general_dilated`.
      dimension_numbers: as for `conv_general_dilated`; the kernel's is not used.
    Returns: An image with c * prod(filter_shape) features: per feature the places of the kernel,
      the last spatial axis fastest.

    >>> x = onp.arange(4.).reshape(1, 1, 4)
    >>> print(lax.conv_general_dilated_patches(x, (2,), (1,), "VALID"))
    [[[0. 1. 2.]
      [1. 2. 3.]]]
    """
    x, window = typeof(lhs), canonical_shape(filter_shape, "conv_general_dilated_patches")
    if len(window) != x.ndim - 2:
        raise TypeError(f"conv_general_dilated_patches: lhs {x}, filter_shape {window} given; one "
                        "size per spatial axis is required.")
    spec = conv_dimension_numbers(x.shape, x.shape, dimension_numbers)
    features, window_size = x.shape[spec.lhs_spec[1]], prod(window)
    # One kernel per feature and place, which is 1 at that place.
    one = convert_element_type(eq(*[broadcasted_iota("int32", (window_size, window_size), d)
                                    for d in (0, 1)]), x.dtype)
    kernel = reshape(broadcast_in_dim(one, (features, window_size, window_size), (1, 2)),
                     (features * window_size, 1, *window))
    return conv_general_dilated(
        lhs, kernel, window_strides, padding, lhs_dilation, rhs_dilation,
        spec._replace(rhs_spec=tuple(range(x.ndim))), maximum(features, 1), precision=precision,
        preferred_element_type=preferred_element_type)


def conv_general_dilated_local(lhs: ArrayLike, rhs: ArrayLike, window_strides: Sequence[int],
                               padding: str | Sequence[tuple[int, int]],
                               filter_shape: Sequence[int],
                               lhs_dilation: Sequence[int] | None = None,
                               rhs_dilation: Sequence[int] | None = None,
                               dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
                               precision: PrecisionLike = None) -> Array:
    """A convolution with a separate kernel at each place of the result.

    Args:
      lhs: image, rank n+2, with c features.
      rhs: kernels, rank n+2: input axis of size c * prod(filter_shape), ordered as the features of
        `conv_general_dilated_patches`; spatial axes of the result's sizes.
      filter_shape: the kernels' n spatial sizes.
      window_strides, padding, lhs_dilation, rhs_dilation, dimension_numbers, precision: as for
        `conv_general_dilated`.
    Returns: An array of the shape that `conv_general_dilated` with kernels of `filter_shape` has.

    >>> image = onp.arange(4.).reshape(1, 1, 4)
    >>> kernels = onp.array([[[1., 1., 1.], [0., 1., 10.]]])      # two taps, one pair per place
    >>> print(lax.conv_general_dilated_local(image, kernels, (1,), "VALID", (2,)))
    [[[ 0.  3. 32.]]]
    """
    spec = conv_dimension_numbers(typeof(lhs).shape, typeof(rhs).shape, dimension_numbers)
    patches = conv_general_dilated_patches(lhs, filter_shape, window_strides, padding, lhs_dilation,
                                           rhs_dilation, spec, precision)
    x, k = typeof(patches), typeof(rhs)
    seen = tuple([x.shape[d] for d in spec.out_spec[1:]])
    if tuple([k.shape[d] for d in spec.rhs_spec[1:]]) != seen:
        raise TypeError(f"conv_general_dilated_local: rhs {k} given; its input axis must have size "
                        f"{seen[0]}, its spatial axes sizes {seen[1:]}, by {spec}.")
    out = dot_general(patches, rhs, (((spec.out_spec[1],), (spec.rhs_spec[1],)),
                                     (spec.out_spec[2:], spec.rhs_spec[2:])), precision)
    n = len(seen) - 1                   # spatial axes, then batch and feature
    order = {axis: k for k, axis in zip((n, n + 1, *range(n)), spec.out_spec, strict=True)}
    return transpose(out, tuple([order[d] for d in range(n + 2)]))


# Shapes -----------------------------------------------------------------------------------------


def conv_general_permutations(dimension_numbers: ConvGeneralDilatedDimensionNumbers
                             ) -> tuple[Dims, Dims, Dims]:
    """Three strings as the orders of axes (batch, feature, spatial) of lhs, rhs and result.

    Args: dimension_numbers: strings for lhs, rhs and result.
    Returns: Three tuples of axes.

    >>> lax.conv_general_permutations(("NHWC", "HWIO", "NHWC"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 3, 1, 2))
    """
    if not isinstance(dimension_numbers, (tuple, list)) or not all(
            isinstance(spec, (str, tuple, list)) for spec in dimension_numbers[:1]):
        raise TypeError(f"conv_general_permutations: dimension_numbers {dimension_numbers!r} given;"
                        " three strings (lhs, rhs, out) are required.")
    shape = (1,) * len(dimension_numbers[0]) if dimension_numbers else ()
    spec = conv_dimension_numbers(shape, shape, dimension_numbers)
    return spec.lhs_spec, spec.rhs_spec, spec.out_spec


def _convolved_shape(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int],
                     pads: Sequence[tuple[int, int]], lhs_dilation: Sequence[int],
                     spec: ConvDimensionNumbers, batches: int = 1) -> Dims:
    kind = dtypes.as_dtype("float32")
    batches = static_int(batches, "conv", "batch_group_count")
    groups, left = divmod(lhs_shape[spec.lhs_spec[1]], max(rhs_shape[spec.rhs_spec[1]], 1))
    return conv_general_dilated_p.infer(
        *[make_aval(shape, kind) for shape in map(tuple, (lhs_shape, rhs_shape))],
        window_strides=canonical_shape(strides, "conv"), padding=tuple(pads),
        lhs_dilation=canonical_shape(lhs_dilation, "conv"),
        rhs_dilation=(1,) * len(pads), dimension_numbers=spec,
        feature_group_count=groups if batches == 1 and groups and not left else 1,
        batch_group_count=batches, precision=None, preferred_element_type=None,
        out_sharding=None).shape


def _pads(padding: Sequence[Sequence[int]] | str, lhs_shape: Sequence[int],
          rhs_shape: Sequence[int], strides: Sequence[int], spec: ConvDimensionNumbers
          ) -> Sequence[tuple[int, int]]:
    window = [rhs_shape[d] for d in spec.rhs_spec[2:]]
    if isinstance(padding, str):
        return padtype_to_pads([lhs_shape[d] for d in spec.lhs_spec[2:]], window, strides, padding)
    return canonical_pads("conv", padding, window)


def conv_general_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                             window_strides: Sequence[int],
                             padding: str | Sequence[tuple[int, int]],
                             dimension_numbers: ConvGeneralDilatedDimensionNumbers) -> Dims:
    """The shape of `conv_general_dilated` without dilation, for the same arguments.

    Args:
      lhs_shape, rhs_shape: shapes of image and kernel.
      window_strides: one int per spatial axis.
      padding: a name, or pairs (low, high).
      dimension_numbers: see `conv_dimension_numbers`.
    Returns: A tuple of ints.

    >>> names = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_general_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (2, 2), "SAME", names)
    (2, 4, 4, 4)
    """
    spec = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    pads = _pads(padding, lhs_shape, rhs_shape, window_strides, spec)
    return _convolved_shape(lhs_shape, rhs_shape, window_strides, pads, (1,) * len(pads), spec)


def conv_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int], strides: Sequence[int],
                     pads: str | Sequence[tuple[int, int]], batch_group_count: int = 1) -> Dims:
    """The shape of a convolution of NCHW-like shapes.

    Args:
      lhs_shape, rhs_shape: (n, c, spatial...) and (o, i, spatial...).
      strides: one int per spatial axis.
      pads: a name or pairs, see `conv_general_dilated`.
      batch_group_count: independent groups of batches.
    Returns: A tuple of ints (n, o, spatial...).

    >>> lax.conv_shape_tuple((2, 3, 8, 8), (4, 3, 3, 3), (2, 2), "VALID")
    (2, 4, 3, 3)
    """
    spec = conv_dimension_numbers(lhs_shape, rhs_shape, None)
    pairs = _pads(pads, lhs_shape, rhs_shape, strides, spec)
    return _convolved_shape(lhs_shape, rhs_shape, strides, pairs, (1,) * len(pairs), spec,
                            batch_group_count)


@described_like(conv_general_shape_tuple)
def conv_transpose_shape_tuple(lhs_shape: Sequence[int], rhs_shape: Sequence[int],
                               window_strides: Sequence[int],
                               padding: str | Sequence[tuple[int, int]],
                               dimension_numbers: ConvGeneralDilatedDimensionNumbers) -> Dims:
    """The shape of `conv_transpose`; `padding` is a name, or pairs for the spread image.

    Args:
      window_strides: one int per spatial axis, by which the image is spread.
      padding: "SAME", "VALID" or pairs (low, high).

    >>> names = ("NHWC", "HWIO", "NHWC")
    >>> lax.conv_transpose_shape_tuple((2, 8, 8, 3), (3, 3, 3, 4), (2, 2), "VALID", names)
    (2, 17, 17, 4)
    """
    spec = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    pads = _transposed_pads(
        "conv_transpose_shape_tuple", padding, [lhs_shape[d] for d in spec.lhs_spec[2:]],
        [rhs_shape[d] for d in spec.rhs_spec[2:]], window_strides, False)
    return _convolved_shape(lhs_shape, rhs_shape, (1,) * len(pads), pads, window_strides, spec)
