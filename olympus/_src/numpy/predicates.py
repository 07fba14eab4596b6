"""Questions about arrays that are answered by booleans: closeness, equality, realness."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.docstrings import complete_docstrings, described_like
from ..base.spelling import array_method
from ..base.typing import Array, ArrayLike
from ..core.trace import literal
from ..jit.fused import fused, named
from ..lax import arithmetic
from ..lax.arithmetic import imag, mul, sub
from ..lax.bits import bitwise_and, bitwise_or
from ..lax.comparison import eq, le, ne
from ..lax.convert import convert_element_type
from ..lax.families import add
from ..lax.reduce import reduce_and
from ..types import dtypes
from ..types.shape import broadcast_shapes
from .creation import asarray
from .elementary import any_part, isfinite, isnan, scalar
from .promote import BOOL, array_args, broadcast_to, inexact, promote, refuse_option, to_array


@fused(static=("equal_nan",))
def isclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
            equal_nan: bool = False) -> Array:
    """Whether numbers agree within a tolerance: `|a - b| <= atol + rtol * |b|`, in which b counts
    as right.

    Args:
      rtol: the tolerance relative to `b`.
      atol: the absolute one, for what should be 0.
    Returns: bool of the broadcast shape; infinities are close to themselves only, unless the
      tolerance is infinite too. Keys are close if they are equal.

    >>> onp.isclose(onp.array([1., 2.]), onp.array([1.000001, 2.1]))
    Array([ True, False], dtype=bool)
    """
    a, b = promote("isclose", a, b)
    if dtypes.is_extended(a.dtype):
        return eq(a, b)
    if not dtypes.is_inexact(a.dtype):
        a, b = inexact(a), inexact(b)
    return _isclose(a, b, rtol, atol, equal_nan=bool(equal_nan))


@fused(static=("equal_nan",))
def _isclose(a: Array, b: Array, rtol: ArrayLike, atol: ArrayLike, *, equal_nan: bool) -> Array:
    shape = broadcast_shapes(a.shape, b.shape)
    a, b = broadcast_to(a, shape), broadcast_to(b, shape)
    size = arithmetic.abs(b)
    _, rtol, atol = promote("isclose", literal(0, size.dtype), rtol, atol)
    within = le(arithmetic.abs(sub(a, b)), add(mul(size, _like(rtol, size)),
                                               _like(atol, size)))
    close = bitwise_or(bitwise_and(isfinite(b), within), eq(a, b))
    if equal_nan:
        close = bitwise_or(close, bitwise_and(isnan(a), isnan(b)))
    return close


def _like(x: ArrayLike, like: Array) -> Array:
    return broadcast_to(convert_element_type(x, like.dtype), like.shape)


def _all(x: Array) -> Array:
    return reduce_and(x, tuple(range(x.ndim)))


@fused(static=("equal_nan",))
def allclose(a: ArrayLike, b: ArrayLike, rtol: ArrayLike = 1e-05, atol: ArrayLike = 1e-08,
             equal_nan: bool = False) -> Array:
    """Whether all elements are close, as `isclose` tells.

    Args: rtol, atol: the relative and the absolute tolerance.

    Returns:
      bool[], an array where NumPy has a Python bool, so that it can be traced; True of no elements.

    >>> onp.allclose(onp.array([1e10, 1e-9]), onp.array([1.000001e10, 1e-8]))
    Array(True, dtype=bool)
    """
    return _all(isclose(a, b, rtol, atol, equal_nan))


@fused(static=("equal_nan",))
def _equal(a: Array, b: Array, equal_nan: bool) -> Array:
    a, b = promote("array_equal", a, b)
    same = eq(a, b)
    if equal_nan:
        same = bitwise_or(same, bitwise_and(isnan(a), isnan(b)))
    return to_array(_all(broadcast_to(same, broadcast_shapes(a.shape, b.shape))))


@named
def array_equal(a1: ArrayLike, a2: ArrayLike, equal_nan: bool = False) -> Array:
    """Whether two arrays have the same shape and equal elements.

    Args: equal_nan: whether NaN equals NaN; a bool, known when tracing.
    Returns: bool[], False where the shapes differ; nothing broadcasts, unlike by `array_equiv`.

    >>> onp.array_equal(onp.arange(3), [0, 1, 2]), onp.array_equal(onp.zeros(2), 0.)
    (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    a, b = asarray(a1), asarray(a2)
    if a.shape != b.shape:
        return asarray(False)
    return _equal(a, b, equal_nan)


@named
def array_equiv(a1: ArrayLike, a2: ArrayLike) -> Array:
    """Whether two arrays have equal elements once they are broadcast.

    Returns: bool[], False where the shapes do not broadcast.

    >>> onp.array_equiv(onp.zeros((2, 2)), 0), onp.array_equiv(onp.zeros(2), onp.zeros(3))
    (Array(True, dtype=bool), Array(False, dtype=bool))
    """
    a, b = asarray(a1), asarray(a2)
    try:
        shape = broadcast_shapes(a.shape, b.shape)
    except ValueError:
        return asarray(False)
    return _equal(broadcast_to(a, shape), broadcast_to(b, shape), False)


def _is_signed_infinity(name: str, x: ArrayLike, value: float, out: None) -> Array:
    refuse_option(name, out=out)
    (x,) = array_args(name, x)
    if dtypes.is_complex(x.dtype):
        raise TypeError(f"{name}: an operand of dtype {x.dtype} given; real numbers are required.")
    return any_part(name, x, lambda x: eq(x, scalar(value, x)))


@fused(static=("out",))
def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether elements are plus infinity.

    Returns: bool of that shape.

    >>> onp.isposinf(onp.array([onp.inf, -onp.inf, 1.]))
    Array([ True, False, False], dtype=bool)
    """
    return _is_signed_infinity("isposinf", x, np.inf, out)


@fused(static=("out",))
def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Whether elements are minus infinity.

    Returns: bool of that shape.

    >>> onp.isneginf(onp.array([onp.inf, -onp.inf, 1.]))
    Array([False,  True, False], dtype=bool)
    """
    return _is_signed_infinity("isneginf", x, -np.inf, out)


@fused
def isreal(x: ArrayLike) -> Array:
    """Whether imaginary parts are 0.

    Args: x: array or number of any dtype and shape.
    Returns: bool of that shape; True of real dtypes. For the dtype itself see `isrealobj`.

    >>> onp.isreal(onp.array([1 + 0j, 1j]))
    Array([ True, False], dtype=bool)
    """
    (x,) = array_args("isreal", x)
    if not dtypes.is_complex(x.dtype):
        return to_array(broadcast_to(literal(True, BOOL), x.shape))
    return eq(imag(x), literal(0, dtypes.to_real_dtype(x.dtype)))


@fused
def iscomplex(x: ArrayLike) -> Array:
    """Whether imaginary parts are not 0.

    Args: x: array or number of any dtype and shape.
    Returns: bool of that shape; False of real dtypes. For the dtype itself see `iscomplexobj`.

    >>> onp.iscomplex(onp.array([1 + 0j, 1j]))
    Array([False,  True], dtype=bool)
    """
    (x,) = array_args("iscomplex", x)
    if not dtypes.is_complex(x.dtype):
        return to_array(broadcast_to(literal(False, BOOL), x.shape))
    return ne(imag(x), literal(0, dtypes.to_real_dtype(x.dtype)))


def iscomplexobj(x: object) -> bool:
    """Whether a dtype is complex, whatever the values.

    Args: x: an array, a traced one too, a number, a list, or a dtype itself.
    Returns: A Python bool, known when tracing.

    >>> onp.iscomplexobj(onp.array([1 + 0j])), onp.iscomplexobj([1., 2.])
    (True, False)
    """
    if isinstance(x, (type, np.dtype)):
        return dtypes.issubdtype(x, np.complexfloating)
    if (method := array_method(x)) is not None:
        x = method()
    aval = getattr(x, "aval", None)
    if aval is not None:
        return dtypes.is_complex(aval.dtype)
    value: Any = x
    return np.iscomplexobj(value)


@described_like(iscomplexobj)
def isrealobj(x: object) -> bool:
    """Whether a dtype is not complex, whatever the values.

    >>> onp.isrealobj(onp.array([1 + 0j])), onp.isrealobj("complex64")
    (False, True)
    """
    return not iscomplexobj(x)


def isscalar(element: object) -> bool:
    """Whether a value is one number rather than an array with axes.

    Args: element: any object.
    Returns: A Python bool: True of Python's and NumPy's numbers, of text and, unlike in NumPy, of
      arrays of rank 0, as what NumPy returns as a number is such an array here.

    >>> onp.isscalar(3.), onp.isscalar(onp.sum(onp.ones(2))), onp.isscalar([3.])
    (True, True, False)
    """
    if np.isscalar(element):
        return True
    is_any_array = isinstance(element, np.ndarray) or hasattr(element, "aval")
    return is_any_array and getattr(element, "ndim", None) == 0


complete_docstrings(globals(), {
    "a, b": "arrays or numbers that broadcast, of any dtype.",
    "equal_nan": "whether NaN is close to NaN; a bool, known when tracing.",
    "a1, a2": "arrays, numbers or nested lists.",
    "x": "array or number of any shape, of real dtypes; complex ones are a TypeError.",
})
