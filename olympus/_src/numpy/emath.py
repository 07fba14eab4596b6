"""Functions whose result is complex only where it must be: emath's nine, and real_if_close.

NumPy looks at the values. So do these where they can; of traced ones the dtype must not depend on
them, and the result is complex.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike
from ..core.trace import Tracer
from ..jit.fused import unasked
from ..types import dtypes
from . import arithmetic, elementary, trigonometry
from .creation import data_arg
from .indexing import concrete
from .promote import convert


def _known_values(x: Array) -> np.ndarray | None:
    """The values, if they are known."""
    value = x._known_value() if isinstance(x, Tracer) else x
    return None if value is None else np.asarray(value)


def _complex_if(x: Array, leaves: Callable[[np.ndarray], np.ndarray]) -> Array:
    """The array as complex numbers if `leaves(values)` holds for one of them, or may hold."""
    if dtypes.is_complex(x.dtype):
        return x
    values = _known_values(x)
    if values is not None and not leaves(values).any():
        return x
    return convert(x, dtypes.to_complex_dtype(x.dtype))


def _negative(values: np.ndarray) -> np.ndarray:
    return values < 0


def _beyond_one(values: np.ndarray) -> np.ndarray:
    return np.abs(values) > 1


def sqrt(x: ArrayLike) -> Array:
    """The square root; of negative numbers the imaginary one.

    >>> print(onp.emath.sqrt(onp.array([4., 9.])), onp.emath.sqrt(-4.))
    [2. 3.] 2j
    """
    return elementary.sqrt(_complex_if(data_arg("sqrt", x), _negative))


def log(x: ArrayLike) -> Array:
    """The natural logarithm; of negative numbers the principal one.

    >>> print(onp.emath.log(-1.).imag == onp.pi)
    True
    """
    return elementary.log(_complex_if(data_arg("log", x), _negative))


def log10(x: ArrayLike) -> Array:
    """The logarithm to base 10; of negative numbers the principal one.

    >>> print(onp.emath.log10(-100.).dtype)
    complex64
    """
    return elementary.log10(_complex_if(data_arg("log10", x), _negative))


def log2(x: ArrayLike) -> Array:
    """The logarithm to base 2; of negative numbers the principal one.

    >>> print(onp.emath.log2(-8.).real)
    3.0
    """
    return elementary.log2(_complex_if(data_arg("log2", x), _negative))


def logn(n: ArrayLike, x: ArrayLike) -> Array:
    """The logarithm of `x` to base `n`: log(x) / log(n), each as `log` gives it.

    Args:
      n: the base.
      x: numbers that broadcast with it.
    Returns: Complex numbers where `log` of either gives them, else real ones.

    >>> print(onp.emath.logn(2., 8.))
    3.0
    """
    return arithmetic.divide(log(x), log(n))


@unasked
def power(x: ArrayLike, p: ArrayLike) -> Array:
    """`x` to the power `p`: of negative numbers the principal one, of negative ints a float.

    Args: p: exponents that broadcast with them.
    Returns: Complex numbers where an element of `x` is negative, or `x` is traced.

    >>> print(onp.emath.power(2, -1), onp.emath.power(-4., 0.5).imag)
    0.5 2.0
    """
    x, p = data_arg("power", x), data_arg("power", p)
    if dtypes.is_integer(p.dtype):
        values = _known_values(p)
        if values is None or (values < 0).any():
            p = convert(p, dtypes.to_inexact_dtype(p.dtype))
    return arithmetic.power(_complex_if(x, _negative), p)


def arccos(x: ArrayLike) -> Array:
    """The angle whose cosine is `x`, complex beyond [-1, 1].

    >>> print(onp.emath.arccos(onp.array([1., 2.])).dtype)
    complex64
    """
    return trigonometry.arccos(_complex_if(data_arg("arccos", x), _beyond_one))


def arcsin(x: ArrayLike) -> Array:
    """The angle whose sine is `x`, complex beyond [-1, 1].

    >>> print(onp.emath.arcsin(onp.array([0., 1.])).dtype)
    float32
    """
    return trigonometry.arcsin(_complex_if(data_arg("arcsin", x), _beyond_one))


def arctanh(x: ArrayLike) -> Array:
    """The inverse hyperbolic tangent of `x`, complex beyond [-1, 1].

    >>> print(onp.emath.arctanh(onp.array([0., 2.])).dtype)
    complex64
    """
    return trigonometry.arctanh(_complex_if(data_arg("arctanh", x), _beyond_one))


@api_boundary
def real_if_close(a: ArrayLike, tol: float = 100) -> Array:
    """The real parts, if all imaginary parts are close to zero; else the array itself.

    Args:
      a: numbers of any dtype. Complex ones must not be traced: their values decide the dtype.
      tol: how close: in units of the dtype's precision if above 1, else absolutely.
    Returns: An array of the shape of `a`, of its dtype or the real one.

    >>> print(onp.real_if_close(onp.array([1 + 0j, 2])))
    [1. 2.]
    """
    x = data_arg("real_if_close", a)
    if not dtypes.is_complex(x.dtype):
        return x
    value: Any = concrete("real_if_close", x, "the array", "use olympus.numpy.real")
    if tol > 1:
        tol = tol * float(dtypes.finfo(x.dtype).eps)
    return arithmetic.real(x) if (np.abs(value.imag) < tol).all() else x


complete_docstrings(globals(), {
    "x": "numbers of any dtype.",
}, returns="Complex numbers where an element is not in the domain of the function of `numpy`,\n"
           "or `x` is traced; else as that.")
