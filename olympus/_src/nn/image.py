"""Images resampled, each axis by itself: see `resampling.py` for the weights."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.typing import Array, ArrayLike, Shape
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax.creation import iota
from ..lax.precision import Precision, PrecisionLike, canonical_precision
from ..numpy.creation import zeros
from ..numpy.einsum import einsum
from ..numpy.indexing import take
from ..numpy.manipulation import astype
from ..numpy.promote import array_args, inexact, to_array
from ..types import dtypes
from ..types.shape import (
    canonical_axes, canonical_shape, definitely_equal, is_static, prod, sequence,
)
from .resampling import resampled_p, weights_of


class ResizeMethod(enum.Enum):
    """How pixels between pixels are computed.

    NEAREST takes one pixel, LINEAR goes straight from one to the next, CUBIC is Keys' cubic
    convolution (1981), CUBIC_PYTORCH the same but, without antialias, with slope -3/4 and the edges
    repeated, LANCZOS3 and LANCZOS5 are sinc functions windowed at that radius, and AREA averages
    the pixels that an output pixel covers.

    >>> from olympus import image, numpy as onp
    >>> print(image.resize(onp.array([0., 4.]), (4,), image.ResizeMethod.LINEAR))
    [0. 1. 3. 4.]
    """

    NEAREST = 0
    LINEAR = 1
    LANCZOS3 = 2
    LANCZOS5 = 3
    CUBIC = 4
    CUBIC_PYTORCH = 5
    AREA = 6

    @staticmethod
    def from_string(s: str) -> ResizeMethod:
        """The method of that name: "nearest", "linear" ("bilinear", "trilinear", "triangle"),
        "cubic" ("bicubic", "tricubic"), "cubic-pytorch" ("bicubic-pytorch"), "lanczos3",
        "lanczos5" or "area"; ValueError for others.
        """
        return _resize_method("ResizeMethod.from_string", s)


_NAMES = {"linear": ("bilinear", "trilinear", "triangle"), "cubic": ("bicubic", "tricubic"),
          "cubic-pytorch": ("bicubic-pytorch",)}
_RESIZE_METHODS = {alias: m for m in ResizeMethod for name in [m.name.lower().replace("_", "-")]
                   for alias in (name, *_NAMES.get(name, ()))}


def _resize_method(name: str, method: Any) -> ResizeMethod:
    resize_method = method if isinstance(method, ResizeMethod) else (
        _RESIZE_METHODS.get(method) if isinstance(method, str) else None)
    if resize_method is None:
        raise ValueError(f"{name}: method {method!r} given; a ResizeMethod or one of "
                         f"{', '.join(map(repr, _RESIZE_METHODS))} is required.")
    return resize_method


@fused(static=("shape", "dims", "method", "antialias", "precision"))
def _resampled(image: ArrayLike, scale: Any, translation: Any, *, shape: Sequence[int],
               dims: tuple[int, ...], method: ResizeMethod, antialias: bool,
               precision: PrecisionLike) -> Array:
    """The product of an image with the weights of each axis of `dims`."""
    image = to_array(inexact(image))
    work = dtypes.wide_dtype(image.dtype)
    real = dtypes.to_real_dtype(work)
    if not dims:
        return image
    out = astype(image, work)
    if scale is None and is_static((*image.shape, *shape)) and not typeof(image).tagged:
        # The axis that shrinks most comes first.
        for d in sorted(dims, key=lambda d: shape[d] / image.shape[d]):
            out = resampled_p.bind(out, axis=d, size=image.shape[d], out_size=shape[d],
                                   method=method.name, antialias=antialias, adjoint=False,
                                   precision=canonical_precision(precision))
        return astype(out, image.dtype)
    labels, operands = list(range(image.ndim)), []
    for k, d in enumerate(dims):
        ratio, shift = ((shape[d] / image.shape[d], 0) if scale is None
                        else (astype(scale[k], real), astype(translation[k], real)))
        operands += [weights_of(image.shape[d], shape[d], ratio, shift, method.name, antialias,
                                real), [d, image.ndim + d]]
        labels[d] = image.ndim + d
    out = einsum(out, list(range(image.ndim)), *operands, labels, precision=precision)
    return astype(out, image.dtype)


def _target(name: str, image: ArrayLike, shape: Sequence[int]
            ) -> tuple[Array, tuple[int, ...]]:
    (image,) = array_args(name, image)
    shape = canonical_shape(shape, name)
    if len(shape) != len(image.shape):
        raise ValueError(f"{name}: image {image.aval} and shape {shape} given; as many dimensions "
                         "as the image has are required; keep the sizes of other axes.")
    return image, shape


def scale_and_translate(image: ArrayLike, shape: Shape, spatial_dims: Sequence[int],
                        scale: ArrayLike, translation: ArrayLike, method: str | ResizeMethod,
                        antialias: bool = True,
                        precision: PrecisionLike = Precision.HIGHEST) -> Array:
    """An image stretched and moved: the point y goes to scale * y + translation.

    Coordinates count pixel edges: the centre of the first pixel is 1/2.

    Args:
      image: array of any rank; integers become floats.
      shape: the result's, of the image's rank; other sizes than the image's only along
        `spatial_dims`.
      spatial_dims: the K axes that are resampled.
      scale, translation: shape (K,), along each of those axes; derivatives are taken in both.
      method: a `ResizeMethod` or its name; not "nearest".
      antialias: whether shrinking averages over all pixels that fall into one of the result.
      precision: of the products; see `lax.Precision`.
    Returns: An array of `shape`, 0 where it comes from outside of the image.

    ValueError for shapes, axes or methods that do not fit.

    >>> x = onp.array([1., 2., 3., 4.])
    >>> print(image.scale_and_translate(x, (4,), (0,), onp.array([1.]), onp.array([1.5]), "linear"))
    [0.  1.  1.5 2.5]
    """
    name = "scale_and_translate"
    image, shape = _target(name, image, shape)
    method, dims = _resize_method(name, method), canonical_axes(
        sequence(spatial_dims, name, "spatial_dims"), image.ndim, name)
    if method is ResizeMethod.NEAREST:
        raise ValueError(f"{name}: method 'nearest' given; a method with weights is required; use "
                         "'linear', or resize.")
    scale, translation = array_args(name, scale, translation)
    if scale.shape != (len(dims),) or translation.shape != (len(dims),):
        raise ValueError(f"{name}: spatial_dims {dims}, scale {scale.aval} and translation "
                         f"{translation.aval} given; a scale and a translation for each of those "
                         "axes are required.")
    changed = [d for d, (n, m) in enumerate(zip(image.shape, shape, strict=True))
               if d not in dims and not definitely_equal(n, m)]
    if changed:
        raise ValueError(f"{name}: image {image.aval}, shape {shape} and spatial_dims {dims} "
                         f"given; sizes of other axes must stay; add {changed} to spatial_dims.")
    return _resampled(image, scale, translation, shape=shape, dims=dims, method=method,
                      antialias=antialias, precision=precision)


def resize(image: ArrayLike, shape: Shape, method: str | ResizeMethod, antialias: bool = True,
           precision: PrecisionLike = Precision.HIGHEST) -> Array:
    """An image of another size; corners stay corners.

    Args:
      image: array of any rank; integers become floats unless the method is "nearest".
      shape: the result's; keep the sizes of axes of batches and channels.
      method: a `ResizeMethod` or its name: "nearest", "linear", "cubic", "cubic-pytorch",
        "lanczos3", "lanczos5" or "area".
      antialias: whether shrinking averages over all pixels that fall into one of the result.
      precision: of the products; see `lax.Precision`.
    Returns: An array of that shape.

    ValueError for another rank, an unknown method, and pixels made of none.

    >>> print(image.resize(onp.array([[0, 8], [4, 4]]), (1, 4), "linear"))
    [[2. 3. 5. 6.]]
    """
    image, shape = _target("resize", image, shape)
    method = _resize_method("resize", method)
    dims = tuple([d for d, (n, m) in enumerate(zip(image.shape, shape, strict=True))
                  if not definitely_equal(n, m)])
    if any(definitely_equal(image.shape[d], 0) for d in dims):
        raise ValueError(f"resize: image {image.aval} and shape {shape} given; an image with "
                         "pixels is required.")
    if prod(shape) == 0:
        return zeros(shape, image.dtype if method is ResizeMethod.NEAREST
                     else dtypes.to_inexact_dtype(image.dtype))
    if method is not ResizeMethod.NEAREST:
        return _resampled(image, None, None, shape=shape, dims=dims, method=method,
                          antialias=antialias, precision=precision)
    for d in dims:
        n, m = image.shape[d], shape[d]
        count = np.arange(m) if is_static((n, m)) else iota("int32", m)
        nearest = (2 * count + 1) * n // (2 * m)      # exact: no rounding of positions
        image = take(image, nearest.astype(np.int32), axis=d, mode="clip", indices_are_sorted=True)
    return to_array(image)
