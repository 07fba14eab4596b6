"""scaled_dot: products of arrays of small floats with a scale per block along a contracted axis.

The format: "OCP Microscaling Formats (MX) Specification" (2023). No CPU has it: operands are
multiplied with their scales in bfloat16, where 8-bit floats and powers of two are exact.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.typing import Array, ArrayLike, DTypeLike
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import definitely_equal, floor_div, mod
from .arithmetic import mul
from .contract import DotDimensionNumbers, dot_general
from .convert import convert_element_type
from .shape import broadcast_in_dim, reshape

BFLOAT16 = dtypes.as_dtype("bfloat16")


def _default_numbers(lhs: ShapedArray, rhs: ShapedArray) -> DotDimensionNumbers:
    """Matrices, after leading batch axes."""
    if lhs.ndim < 2 or lhs.ndim != rhs.ndim:
        raise TypeError(f"scaled_dot: operands {lhs} and {rhs} given; equal ranks of at least 2 "
                        "are required unless dimension_numbers are given.")
    batch = tuple(range(lhs.ndim - 2))
    return ((lhs.ndim - 1,), (lhs.ndim - 2,)), (batch, batch)


def _times_scales(x: ArrayLike, scale: ArrayLike | None,
                  contracting: Sequence[int | None]) -> Array:
    """`x` times its scales, in bfloat16; None is 1."""
    aval = typeof(x)
    x = convert_element_type(x, BFLOAT16)
    if scale is None:
        return x
    scales = typeof(scale)
    fits = scales.ndim == aval.ndim and all(
        definitely_equal(n, m) or (d in contracting and m and definitely_equal(mod(n, m), 0))
        for d, (n, m) in enumerate(zip(aval.shape, scales.shape, strict=True)))
    if not fits or not dtypes.is_floating(scales.dtype):
        raise TypeError(f"scaled_dot: operand {aval}, scale {scales}, contracting axes "
                        f"{contracting} given; a floating scale of the operand's rank is required, "
                        "whose sizes are the operand's or, on contracting axes, divide them.")
    blocks = [k for n, m in zip(aval.shape, scales.shape, strict=True)
              for k in (m, floor_div(n, m) if m else 1)]
    pairs = broadcast_in_dim(convert_element_type(scale, BFLOAT16), blocks,
                             tuple(range(0, 2 * aval.ndim, 2)))
    return mul(x, reshape(pairs, aval.shape))


def scaled_dot(lhs: ArrayLike, rhs: ArrayLike, *, lhs_scale: ArrayLike | None = None,
               rhs_scale: ArrayLike | None = None,
               dimension_numbers: DotDimensionNumbers | None = None,
               preferred_element_type: DTypeLike | None = None) -> Array:
    """`dot_general` of operands that are scaled block by block.

    Args:
      lhs, rhs: arrays, usually of an 8-bit floating dtype.
      lhs_scale, rhs_scale: scales, usually float8_e8m0fnu: shaped like the operand but on
        contracting axes, where a divisor of its size is the number of blocks. None is 1.
      dimension_numbers: as for `dot_general`; None is products of matrices with leading batch axes.
      preferred_element_type: dtype of the result; None is bfloat16.
    Returns: An array shaped as for `dot_general`.

    Raises TypeError where shapes do not fit.

    >>> x, scale = onp.ones((2, 64)), onp.array([[1., 2.], [4., 4.]])
    >>> print(lax.scaled_dot(x, x.T, lhs_scale=scale, preferred_element_type="float32"))
    [[ 96.  96.]
     [256. 256.]]
    """
    if dimension_numbers is None:
        dimension_numbers = _default_numbers(typeof(lhs), typeof(rhs))
    try:
        (lc, rc), _ = dimension_numbers
    except (TypeError, ValueError):
        raise TypeError(f"scaled_dot: dimension_numbers {dimension_numbers!r} given; ((lhs "
                        "contracting, rhs contracting), (lhs batch, rhs batch)) is required."
                        ) from None
    preferred = BFLOAT16 if preferred_element_type is None else preferred_element_type
    return dot_general(_times_scales(lhs, lhs_scale, lc), _times_scales(rhs, rhs_scale, rc),
                       dimension_numbers,
                       preferred_element_type=preferred)
