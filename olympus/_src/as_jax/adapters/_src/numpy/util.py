"""`jax._src.numpy.util`: s2fft promotes operands by it."""

from __future__ import annotations

from typing import Any

from .....base.typing import Array
from .....numpy import promote
from .....types import dtypes

__all__ = ["promote_dtypes", "promote_dtypes_complex", "promote_dtypes_inexact"]


def promote_dtypes(*args: object) -> list[Array]:
    """The operands at the dtype that they have together."""
    return [promote.to_array(x) for x in promote.promote_dtypes("promote_dtypes", *args)]


def promote_dtypes_inexact(*args: object) -> list[Array]:
    """The operands at a dtype of floats or complex numbers that they have together."""
    return [promote.to_array(x) for x in promote.inexact_dtypes("promote_dtypes_inexact", *args)]


def promote_dtypes_complex(*args: object) -> list[Any]:
    """The operands at a dtype of complex numbers that they have together."""
    return [promote.convert(x, dtypes.to_complex_dtype(x.dtype))
            for x in promote_dtypes_inexact(*args)]
