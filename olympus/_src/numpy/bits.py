"""Booleans packed eight to a byte, and back."""

from __future__ import annotations

import numpy as np

from ..base.typing import Array, ArrayLike
from ..core.trace import typeof
from ..jit.fused import fused
from ..lax import shape as lax_shape, slicing
from ..lax.arithmetic import mul
from ..lax.bits import bitwise_and
from ..lax.comparison import ne
from ..lax.creation import full
from ..types import dtypes
from ..types.shape import canonical_axis, floor_div, less, maximum, static_int
from .manipulation import ravel
from .promote import array_args, as_bool, convert, to_array

_BYTE = np.dtype("uint8")


def _bytes_of(name: str, a: ArrayLike, axis: int | None, bitorder: str, kinds: str
              ) -> tuple[Array, int, np.ndarray]:
    """The array, the axis that is packed, and the value of each of eight bits there."""
    x = to_array(array_args(name, a)[0])
    if dtypes.scalar_kind(x.dtype) not in kinds or (kinds == "u" and x.dtype != _BYTE):
        wanted = "uint8 is" if kinds == "u" else "booleans or integers are"
        raise TypeError(f"{name}: {typeof(x)} given; {wanted} required; convert it with astype.")
    if bitorder not in ("big", "little"):
        raise ValueError(f"{name}: bitorder {bitorder!r} given; 'big' or 'little' is required.")
    if axis is None or not x.ndim:
        x, axis = ravel(x), 0 if axis is None else axis
    values = 2 ** np.arange(8, dtype=_BYTE)
    return x, canonical_axis(axis, x.ndim, name), values[::-1] if bitorder == "big" else values


@fused(static=("axis", "bitorder"))
def packbits(a: ArrayLike, axis: int | None = None, bitorder: str = "big") -> Array:
    """Eight elements as the bits of one byte: those that are not zero are set.

    Args:
      a: booleans or integers [..., n, ...].
      axis: the axis to pack; of the flattened array if None. Zeros fill the last byte.
      bitorder: whether the first element is the highest ("big") or the lowest bit ("little").
    Returns: uint8[..., ceil(n / 8), ...].

    Raises TypeError for other dtypes.

    >>> print(onp.packbits(onp.array([1, 0, 1, 0, 0, 0, 0, 1, 1])))
    [161 128]
    """
    x, axis, values = _bytes_of("packbits", a, axis, bitorder, "iub")
    n, shape = x.shape[axis], x.shape
    size = floor_div(n + 7, 8)
    bits = slicing.pad(convert(as_bool(x), _BYTE), full((), 0, _BYTE),
                       [(0, 8 * size - n if i == axis else 0, 0) for i in range(x.ndim)])
    bits = lax_shape.reshape(bits, (*shape[:axis], size, 8, *shape[axis + 1:]))
    values = lax_shape.broadcast_in_dim(values, bits.shape, (axis + 1,))
    return lax_shape.reduce_sum(mul(bits, values), (axis + 1,))


@fused(static=("axis", "count", "bitorder"))
def unpackbits(a: ArrayLike, axis: int | None = None, count: int | None = None,
               bitorder: str = "big") -> Array:
    """The bits of bytes as elements 0 and 1.

    Args:
      a: uint8[..., n, ...].
      axis: the axis to unpack; the flattened array if None.
      count: how many bits to keep, with zeros where there are fewer; negative: how many to drop at
        the end; all if None.
      bitorder: whether the first element is the highest ("big") or the lowest bit ("little").
    Returns: uint8[..., 8 n, ...], or [..., count, ...].

    Raises TypeError for other dtypes, ValueError for a count below -8 n.

    >>> print(onp.unpackbits(onp.array([161], "uint8"), count=4))
    [1 0 1 0]
    """
    x, axis, values = _bytes_of("unpackbits", a, axis, bitorder, "u")
    shape = x.shape
    wide = (*shape[:axis + 1], 8, *shape[axis + 1:])
    other_axes = tuple([i for i in range(x.ndim + 1) if i != axis + 1])
    bits = ne(bitwise_and(lax_shape.broadcast_in_dim(x, wide, other_axes),
                                lax_shape.broadcast_in_dim(values, wide, (axis + 1,))),
                 full(wide, 0, _BYTE))
    n = 8 * shape[axis]
    out = lax_shape.reshape(convert(bits, _BYTE), (*shape[:axis], n, *shape[axis + 1:]))
    if count is None:
        return out
    size = static_int(count, "unpackbits", "count")
    size = n + size if size < 0 else size
    if less(size, 0):
        raise ValueError(f"unpackbits: count {count} given for {n} bits; at least {-n} is "
                         "required.")
    out = slicing.pad(out, full((), 0, _BYTE), [(0, maximum(size - n, 0) if i == axis else 0, 0)
                                                for i in range(x.ndim)])
    return slicing.slice_in_dim(out, 0, size, axis=axis)
