"""Numbers as int8 with a scale for each row."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, DTypeLike
from ..numpy.elementary import rint
from ..types.dtypes import bfloat16

MAX_INT8 = 127.5        # the number that stands for a row's largest magnitude, rounded to even


class QuantizedTensor(NamedTuple):
    """int8 numbers and their scales: a number is weight scale / 127.5.

    Attributes:
      weight: int8[…, n].
      scales: float[…, 1], the largest magnitude of each row.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental.pallas.ops.tpu.paged_attention import quantization_utils
    >>> print(quantization_utils.quantize_to_int8(onp.array([[0., -1., 2.]])).scales)
    [[2.]]
    """

    weight: Array
    scales: Array


def to_int8(x: Array, h: Array) -> Array:
    """Numbers of magnitude at most h as int8.

    >>> from olympus.experimental.pallas.ops.tpu.paged_attention import quantization_utils
    >>> print(quantization_utils.to_int8(onp.array([0., -0.5]), onp.array(1.)))
    [  0 -64]
    """
    return rint(x * (MAX_INT8 / h)).astype(np.int8)


def from_int8(x: Array, h: Array, dtype: DTypeLike = bfloat16) -> Array:
    """The numbers that int8 with the scale h stand for.

    >>> from olympus.experimental.pallas.ops.tpu.paged_attention import quantization_utils
    >>> print(quantization_utils.from_int8(onp.array([51], onp.int8), 1.0, onp.float32))
    [0.4]
    """
    return x.astype(dtype) * h / MAX_INT8


def get_quantization_scales(x: Array) -> Array:
    """The largest magnitude of each row, [..., 1].

    >>> from olympus.experimental.pallas.ops.tpu.paged_attention import quantization_utils
    >>> print(quantization_utils.get_quantization_scales(onp.array([[1., -3.]])))
    [[3.]]
    """
    return abs(x).max(-1, keepdims=True)


def quantize_to_int8(x: Array) -> QuantizedTensor:
    """Numbers as int8, with a scale for each row.

    >>> from olympus.experimental.pallas.ops.tpu.paged_attention import quantization_utils
    >>> print(quantization_utils.quantize_to_int8(onp.array([[0., -1., 2.]])).weight)
    [[  0 -64 127]]
    """
    scales = get_quantization_scales(x)
    return QuantizedTensor(to_int8(x, scales), scales)


def unquantize_from_int8(x: QuantizedTensor, dtype: DTypeLike = bfloat16) -> Array:
    """The numbers that a `QuantizedTensor` stands for.

    >>> from olympus.experimental.pallas.ops.tpu.paged_attention import quantization_utils as q
    >>> print(q.unquantize_from_int8(q.quantize_to_int8(onp.array([[0., 2.]])), onp.float32))
    [[0.        1.9921569]]
    """
    return from_int8(x.weight, x.scales, dtype)


complete_docstrings(globals(), {
    "x": "numbers, int8 numbers, or a `QuantizedTensor`.",
    "h": "the scales, which broadcast to x.",
    "dtype": "the dtype of the result.",
}, returns="An array of the shape of x (scales: with rows of 1), or a `QuantizedTensor`.")
