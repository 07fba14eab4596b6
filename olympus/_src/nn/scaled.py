"""Products of matrices in 8- and 4-bit floats, with a scale for each block of elements.

The formats follow "OCP Microscaling Formats (MX) Specification" (2023) and NVFP4. Blocks lie along
the contracted axis; `lax.scaled_dot` multiplies.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..base.typing import Array, ArrayLike, DTypeLike
from ..custom.vjp import custom_vjp
from ..lax.contract import DotDimensionNumbers, dot_general
from ..lax.scaled_dot import scaled_dot
from ..lax.shape import expand_dims, reshape, transpose
from ..lax.slicing import pad
from ..numpy import arithmetic as uf, elementary as el, reductions
from ..numpy.conditions import clip
from ..numpy.creation import ones
from ..numpy.manipulation import astype
from ..numpy.promote import array_args
from ..numpy.selection import where
from ..types import dtypes
from ..types.shape import definitely_equal, floor_div, mod, prod

_BATCHED = ((2,), (2,)), ((0,), (0,))


def scaled_matmul(lhs: ArrayLike, rhs: ArrayLike, lhs_scales: ArrayLike, rhs_scales: ArrayLike,
                  preferred_element_type: DTypeLike = np.float32) -> Array:
    """lhs rhsᵀ of matrices whose rows are scaled block by block.

    Args:
      lhs: [B, M, K], usually of an 8-bit or 4-bit floating dtype.
      rhs: [B, N, K].
      lhs_scales: [B, M, K / a]: each scales a neighbouring elements of a row.
      rhs_scales: [B, N, K / b].
      preferred_element_type: dtype of the result.
    Returns: An array [B, M, N]. Operands are scaled in bfloat16, where 8-bit floats times powers of
      two are exact, and products are added in float32.

    TypeError for shapes that do not fit.

    >>> x = onp.array([[[1., 2., 3., 4.]]])
    >>> scales = onp.array([[[1., 10.]]])
    >>> print(nn.scaled_matmul(x, x, scales, scales))
    [[[2505.]]]
    """
    lhs, rhs, lhs_scales, rhs_scales = array_args("scaled_matmul", lhs, rhs, lhs_scales, rhs_scales)
    if any(x.ndim != 3 for x in (lhs, rhs, lhs_scales, rhs_scales)):
        raise TypeError(f"scaled_matmul: lhs {lhs.aval}, rhs {rhs.aval} and scales "
                        f"{lhs_scales.aval}, {rhs_scales.aval} given; three axes of each are "
                        "required: batch, rows, contracted.")
    scales = [astype(s, "float32") if dtypes.scalar_kind(s.dtype) != "f" else s
              for s in (lhs_scales, rhs_scales)]
    out = scaled_dot(lhs, rhs, lhs_scale=scales[0], rhs_scale=scales[1],
                     dimension_numbers=_BATCHED, preferred_element_type="float32")
    return astype(out, preferred_element_type)


class BlockScaleConfig(NamedTuple):
    """How an operand is written in few bits: so many elements in a block, each a `data_type`, times
    a scale of `scale_type`, all times `global_scale`.
    """

    mode: str
    block_size: int
    data_type: Any
    scale_type: Any
    global_scale: Any


_FORMATS = {"mxfp8": (32, "float8_e4m3fn", "float8_e8m0fnu"),
            "nvfp4": (16, "float4_e2m1fn", "float8_e4m3fn")}


def get_scaled_dot_general_config(mode: str, global_scale: ArrayLike | None = None
                                  ) -> BlockScaleConfig:
    """The narrow number format in which `scaled_dot_general` writes an operand.

    Args:
      mode: "mxfp8": blocks of 32 float8_e4m3fn, scaled by powers of two; or "nvfp4": blocks of 16
        float4_e2m1fn, scaled by float8_e4m3fn.
      global_scale: of "nvfp4", float32[1] (None is 1): the operand is divided by it beforehand;
        the largest magnitude / (6 * 448) keeps all scales in range.
    Returns: A configuration. ValueError for another mode, and for a global_scale of "mxfp8".

    >>> config = nn.get_scaled_dot_general_config("mxfp8")
    >>> config.block_size, config.data_type
    (32, dtype(float8_e4m3fn))
    """
    if not isinstance(mode, str) or mode not in _FORMATS or (
            mode == "mxfp8" and global_scale is not None):
        raise ValueError(f"get_scaled_dot_general_config: mode {mode!r}, global_scale "
                         f"{global_scale!r} given; 'mxfp8' without a global_scale, or 'nvfp4', is "
                         "required.")
    size, data, scale = _FORMATS[mode]
    if mode == "nvfp4":
        global_scale = ones(1, "float32") if global_scale is None else global_scale
    return BlockScaleConfig(mode, size, dtypes.as_dtype(data), dtypes.as_dtype(scale), global_scale)


def _quantized(x: Array, config: BlockScaleConfig) -> tuple[Array, Array, Array | int]:
    """[B, M, K] as (elements, scales [B, M, blocks], a factor); K is filled up with zeros."""
    size = config.block_size
    short = mod(-x.shape[2], size)
    x = pad(astype(x, "float32"), 0.0, [(0, 0, 0), (0, 0, 0), (0, short, 0)])
    factor = 1 if config.global_scale is None else reshape(config.global_scale, ())
    shape = (*x.shape[:2], floor_div(x.shape[2], size), size)
    blocks = reshape(uf.divide(x, factor), shape)
    top = float(dtypes.finfo(config.data_type).max)
    wanted = uf.divide(reductions.max(uf.absolute(blocks), -1), top)
    if config.scale_type.name == "float8_e8m0fnu":
        fraction, exponent = el.frexp(wanted)       # the next power of two: nothing overflows
        exponent = where(fraction == 0.5, exponent - 1, exponent)
        scales = el.ldexp(1.0, clip(exponent, -126, 127))
    else:
        scales = clip(wanted, 0, float(dtypes.finfo(config.scale_type).max))
    scales = astype(scales, config.scale_type)
    divisor = astype(scales, "float32")
    divisor = expand_dims(where(divisor == 0, 1, divisor), (3,))
    elements = astype(clip(uf.divide(blocks, divisor), -top, top), config.data_type)
    return reshape(elements, x.shape), scales, factor


def _quantized_product(lhs: Array, rhs: Array, left: BlockScaleConfig,
                       right: BlockScaleConfig) -> Array:
    """float32[B, M, N] of [B, M, K] and [B, N, K], each written in few bits first."""
    x, x_scales, x_factor = _quantized(lhs, left)
    y, y_scales, y_factor = _quantized(rhs, right)
    return uf.multiply(scaled_matmul(x, y, x_scales, y_scales), uf.multiply(x_factor, y_factor))


@partial(custom_vjp, nondiff_argnums=(3,))
def _ruled(lhs: Array, rhs: Array, factors: Array, formats: object) -> Any:
    """The product; the global scales apart from the rest of the configurations, which is static."""
    left, right, _ = _formats_with_factors(formats, factors)
    return _quantized_product(lhs, rhs, left, right)


def _formats_with_factors(formats: Any, factors: Array) -> list[BlockScaleConfig]:
    return [c._replace(global_scale=f) for c, f in zip(formats, factors)]


def _forward(lhs: Array, rhs: Array, factors: Array, formats: object) -> Any:
    return _ruled(lhs, rhs, factors, formats), (lhs, rhs, factors)


def _backward(formats: Any, saved: Any, ct: Any) -> tuple[Array, Array, None]:
    lhs, rhs, factors = saved
    left, right, back = _formats_with_factors(formats, factors)
    turned = [transpose(x, (0, 2, 1)) for x in (ct, lhs, rhs)]
    return (astype(_quantized_product(ct, turned[2], back, right), lhs.dtype),
            astype(_quantized_product(turned[0], turned[1], back, left), rhs.dtype), None)


_ruled.defvjp(_forward, _backward)


def scaled_dot_general(lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: DotDimensionNumbers,
                       preferred_element_type: DTypeLike = np.float32,
                       configs: Sequence[BlockScaleConfig] | None = None,
                       implementation: str | None = None) -> Array:
    """`lax.dot_general` of operands that are first written in few bits, block by block.

    Args:
      lhs, rhs: floating arrays.
      dimension_numbers: as for `lax.dot_general`.
      preferred_element_type: dtype of the result.
      configs: of `get_scaled_dot_general_config`, three: for lhs, rhs and, in reverse mode,
        cotangents; None is `lax.dot_general` itself.
      implementation: ignored.
    Returns: An array shaped as for `lax.dot_general`. Derivatives, in reverse mode, are products of
      the same kind: the derivatives of the product without rounding, at rounded operands.

    >>> x = onp.linspace(-1., 1., 64).reshape(1, 64)
    >>> configs = [nn.get_scaled_dot_general_config("mxfp8")] * 3
    >>> out = nn.scaled_dot_general(x, x, (((1,), (1,)), ((), ())), configs=configs)
    >>> print(abs(out - x @ x.T).max() < 0.05 * 64 / 3)
    True
    """
    lhs, rhs = array_args("scaled_dot_general", lhs, rhs)
    if configs is None:
        return dot_general(lhs, rhs, dimension_numbers,
                           preferred_element_type=preferred_element_type)
    if not isinstance(configs, (list, tuple)) or len(configs) != 3:
        kind = ValueError if isinstance(configs, (list, tuple)) else TypeError
        raise kind(f"scaled_dot_general: configs {configs!r} given; three are required: of lhs, "
                   "rhs and cotangents.")
    (left, right), batch = dimension_numbers
    free = [[d for d in range(x.ndim) if d not in (*c, *b)]
            for x, c, b in zip((lhs, rhs), (left, right), batch)]
    sizes = [[tuple([x.shape[d] for d in axes]) for axes in (b, f, c)]
             for x, b, f, c in zip((lhs, rhs), batch, free, (left, right))]
    for x, y in ((sizes[0][0], sizes[1][0]), (sizes[0][2], sizes[1][2])):
        if len(x) != len(y) or not all(map(definitely_equal, x, y)):
            raise TypeError(f"scaled_dot_general: operands {lhs.aval} and {rhs.aval}, "
                            f"dimension_numbers {dimension_numbers} given; equal sizes of batch "
                            "and of contracted axes are required.")
    flat = [reshape(transpose(x, (*b, *f, *c)), tuple(map(prod, s)))
            for x, b, f, c, s in zip((lhs, rhs), batch, free, (left, right), sizes)]
    factors = tuple([c.global_scale for c in configs])
    formats = tuple([c._replace(global_scale=None) for c in configs])
    out = reshape(_ruled(*flat, factors, formats), (*sizes[0][0], *sizes[0][1], *sizes[1][1]))
    return astype(out, preferred_element_type)
