"""Constants, and questions about dtypes and shapes that need no array operation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base.config import enable_x64
from ..base.typing import ArrayLike, DTypeLike, DuckTypedArray, PyTree
from ..core.trace import typeof
from ..types import dtypes
from ..types.avals import AbstractValue, ShapedArray
from ..types.dtypes import Limit
from ..types.shape import canonical_axes, prod

pi: float = np.pi
e: float = np.e
euler_gamma: float = np.euler_gamma
inf: float = np.inf
nan: float = np.nan
newaxis: None = None
dtype = np.dtype
iinfo = dtypes.iinfo
can_cast = dtypes.can_cast
isdtype = dtypes.isdtype


class finfo:
    """The limits of a floating-point dtype, of a complex dtype's parts, or of an array's dtype.

    `eps`, `epsneg`, `max`, `min`, `resolution`, `smallest_normal`, `smallest_subnormal` and `tiny`
    are Python's floats, so they are weakly typed as operands; they have NumPy's `dtype` and
    `astype`, too. `dtype` and the numbers of bits (`bits`, `iexp`, `machep`, `maxexp`, `minexp`,
    `negep`, `nexp`, `nmant`, `precision`) are NumPy's.

    >>> import olympus.numpy as onp
    >>> onp.finfo(onp.bfloat16).eps
    0.0078125
    """

    dtype: np.dtype

    def __init__(self, dtype: DTypeLike | ArrayLike) -> None:
        of_dtype = dtype if isinstance(dtype, (type, str)) else getattr(dtype, "dtype", dtype)
        self._numpy = dtypes.finfo(dtypes.as_dtype(of_dtype))
        self.dtype = np.dtype(self._numpy.dtype)

    def __getattr__(self, name: str) -> int | Limit:
        if name.startswith("_"):
            raise AttributeError(name)
        value = getattr(self._numpy, name)
        return value if isinstance(value, int) else dtypes.Limit(value, self.dtype)

    def __repr__(self) -> str:
        return (f"finfo(resolution={self.resolution:g}, min={self.min:g}, max={self.max:g}, "
                f"dtype={self.dtype})")

    def __str__(self) -> str:
        return str(self._numpy)


def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Whether a dtype or abstract type is another one or below it.

    Args: arg1, arg2: dtypes, their names, or abstract types such as `onp.floating`.
    Returns: A Python bool; unlike NumPy's it knows bfloat16, the 8-bit floats, int4 and the dtypes
      of keys.

    >>> onp.issubdtype("bfloat16", onp.floating), onp.issubdtype("int32", "int64")
    (True, False)
    """
    return dtypes.issubdtype(arg1, arg2)


def promote_types(a: DTypeLike, b: DTypeLike) -> np.dtype:
    """The dtype to which two dtypes promote.

    Args: a, b: dtypes or their names; Python's `int`, `float` and `complex` are weak, as their
        numbers are.
    Returns: A NumPy dtype, of 64 bits also where x64 is off. A float wins over any integer at its
      own width, where NumPy widens to hold the integers: int32 with float16 is float64 there. Where
      two dtypes have no common dtype, a `TypePromotionError`, which is a ValueError.

    >>> onp.promote_types("int32", "float16"), onp.promote_types("int8", int)
    (dtype('float16'), dtype('int8'))
    """
    # For types alone, whatever arrays may have: the dtypes of 64 bits are themselves without x64.
    with enable_x64(True):
        return dtypes.result_type(a, b)


def result_type(*args: ArrayLike | DTypeLike) -> np.dtype:
    """The dtype of an operation of all these operands, without computing it.

    Args: *args: arrays, numbers, dtypes or their names, at least one; Python's numbers are weak:
        they take the dtype of the arrays beside them, if it has their kind or a later one.
    Returns: A NumPy dtype, of 32 bits at most unless x64 is enabled.

    >>> onp.result_type(onp.ones(2, "float16"), 2, 3.), onp.result_type("int8", 1.)
    (dtype('float16'), dtype('float32'))
    """
    return dtypes.result_type(*args)


def _aval(what: str, a: Any) -> ShapedArray | np.ndarray:
    if isinstance(a, np.ndarray):       # of strings and dates, too
        return a
    if a is None:       # one object, to NumPy
        a = False
    try:
        aval = typeof(np.asarray(a)) if isinstance(a, (list, tuple)) else typeof(a)
        if isinstance(aval, AbstractValue):     # Quax's arrays have a method `aval`
            return aval
    except TypeError:
        pass
    try:
        array: Any = a      # of another library
        return ShapedArray(array.shape, array.dtype)
    except AttributeError:
        raise TypeError(f"{what}: {a!r} of type {type(a).__name__} given; an array, a number or a "
                        "nested list of those is required.") from None


def shape(a: ArrayLike | DuckTypedArray | Sequence[PyTree]) -> tuple[int, ...]:
    """The shape of an array or number.

    Args:
      a: an array, a traced one too, a number, a nested list, or anything with a shape and a dtype.
    Returns: A tuple of ints, known when tracing.

    >>> onp.shape([[1, 2, 3]]), onp.shape(0.5)
    ((1, 3), ())
    """
    return _aval("shape", a).shape


def ndim(a: ArrayLike | DuckTypedArray | Sequence[PyTree]) -> int:
    """The number of axes of an array or number.

    Args:
      a: an array, a traced one too, a number, a nested list, or anything with a shape and a dtype.
    Returns: A Python int, known when tracing; 0 of numbers.

    >>> onp.ndim(onp.ones((2, 3))), onp.ndim(0.5)
    (2, 0)
    """
    return _aval("ndim", a).ndim


def size(a: ArrayLike | DuckTypedArray | Sequence[PyTree], axis: int | Sequence[int] | None = None
        ) -> int:
    """The number of elements, or the size along axes.

    Args:
      a: an array, a traced one too, a number, a nested list, or anything with a shape and a dtype.
      axis: an int, or several; None is all axes.
    Returns: A Python int, known when tracing; 1 of numbers.

    >>> onp.size(onp.ones((2, 3))), onp.size(onp.ones((2, 3)), axis=1)
    (6, 3)
    """
    aval = _aval("size", a)
    return prod([aval.shape[i] for i in canonical_axes(axis, aval.ndim, "size")])


def iterable(y: object) -> bool:
    """Whether a value can be iterated over: an array with axes, a list, not a number.

    Args: y: any object.

    >>> onp.iterable(onp.arange(3)), onp.iterable(3)
    (True, False)
    """
    candidate: Any = y
    try:
        iter(candidate)
    except TypeError:
        return False
    return True
