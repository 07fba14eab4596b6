"""Constants, and questions about dtypes and shapes that need no array operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.typing import ArrayLike, DTypeLike, DuckTypedArray, PyTree
from ..core.trace import typeof
from ..types import dtypes
from ..types.shape import canonical_axes, prod

__all__ = ["can_cast", "dtype", "e", "euler_gamma", "finfo", "iinfo", "inf", "isdtype",
           "issubdtype", "iterable", "nan", "ndim", "newaxis", "pi", "promote_types",
           "result_type", "shape", "size"]

pi: float = np.pi
e: float = np.e
euler_gamma: float = np.euler_gamma
inf: float = np.inf
nan: float = np.nan
newaxis: None = None
dtype = np.dtype
finfo = dtypes.finfo
iinfo = dtypes.iinfo
can_cast = dtypes.can_cast
isdtype = dtypes.isdtype


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Whether a dtype or abstract type is another or below it, bfloat16 and the like included."""
    return dtypes.issubdtype(arg1, arg2)


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The dtype that two dtypes promote to; `int`, `float` and `complex` count as weak.

    >>> import olympus.numpy as jnp
    >>> jnp.promote_types("int32", "float16")
    dtype('float16')
    """
    return dtypes.result_type(a, b)


def result_type(*args: ArrayLike | DTypeLike) -> np.dtype:
    """The dtype that arrays, scalars and dtypes promote to."""
    return dtypes.result_type(*args)


def _aval(a: Any) -> Any:
    if a is None:       # one object, to NumPy
        a = False
    return typeof(np.asarray(a)) if isinstance(a, (list, tuple)) else typeof(a)


def shape(a: ArrayLike | DuckTypedArray | Sequence[PyTree]) -> tuple[int, ...]:
    """The shape of an array or scalar."""
    return _aval(a).shape


def ndim(a: ArrayLike | DuckTypedArray | Sequence[PyTree]) -> int:
    """The number of axes of an array or scalar."""
    return _aval(a).ndim


def size(a: ArrayLike | DuckTypedArray | Sequence[PyTree], axis: int | Sequence[int] | None = None
        ) -> int:
    """The number of elements, along some axes if given."""
    aval = _aval(a)
    return prod([aval.shape[i] for i in canonical_axes(axis, aval.ndim, "size")])


def iterable(y: ArrayLike) -> bool:
    """Whether a value can be iterated over."""
    try:
        iter(y)
    except TypeError:
        return False
    return True
