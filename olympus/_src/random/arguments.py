"""The arguments of samplers: dtypes, shapes, parameters that broadcast."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.config import compatible
from ..base.typing import Array, ArrayLike, DType, DTypeLike, Shape
from ..core.ir import Literal
from ..core.trace import typeof
from ..lax.reduce import reduce_or
from ..lax.shape import broadcast_in_dim
from ..numpy import promote
from ..types import dtypes
from ..types.shape import broadcast_shapes, canonical_shape

Dims = tuple[int, ...]
F32 = dtypes.as_dtype("float32")
_PYTHON_NUMBERS = frozenset((int, float))


def float_dtype(name: str, dtype: DTypeLike | None, kinds: str = "f") -> DType:
    """The canonical dtype of samples; None is the default float. ValueError for other kinds."""
    if dtype is None:
        return dtypes.default_float()
    wanted = dtypes.requested_dtype(name, dtype)
    if dtypes.scalar_kind(wanted) not in kinds:
        what = "float or complex" if "c" in kinds else "float"
        raise ValueError(f"{name}: dtype {dtypes.long_name(wanted)} given; the dtype argument to "
                         f"{name} must be a {what} dtype;\n  convert the result with astype.")
    return wanted


def integer_dtype(name: str, dtype: DTypeLike | None) -> DType:
    """The canonical dtype of counts; None is the default int. ValueError for other kinds."""
    wanted = dtypes.default_int() if dtype is None else dtypes.requested_dtype(name, dtype)
    if not dtypes.is_integer(wanted):
        raise ValueError(f"{name}: dtype {dtypes.long_name(wanted)} given; the dtype argument to "
                         f"{name} must be an integer dtype;\n  convert the result with astype.")
    return wanted


def shape_of(x: ArrayLike, name: str = "random") -> Dims:
    """The shape of an array, a number or a nested sequence of numbers."""
    if isinstance(x, int):      # of any size: bounds are limited later
        return ()
    return typeof(promote.plain(promote.operand(name, x))).shape


def draw_shape(name: str, shape: int | Shape | None, *params: ArrayLike) -> Dims:
    """The samples' shape, which parameters must broadcast to; without one, their broadcast shape.

    Raises ValueError where they do not, TypeError for complex ones. JAX gives one sample of shape
    () the shape of parameters of size 1, and so does `olympus_compatible`.
    """
    if shape is not None and _PYTHON_NUMBERS.issuperset(map(type, params)):
        return canonical_shape(shape, name)     # nothing to broadcast
    shapes = [shape_of(p, name) for p in params]
    for p in params:
        refuse_complex(name, p)
    if shape is None:
        return broadcast_shapes(*shapes)
    dims = canonical_shape(shape, name)
    try:
        together = broadcast_shapes(dims, *shapes)
        if dims == () and compatible.value and set(together) == {1}:
            return together
        fits = together == dims
    except ValueError:
        fits = False
    if not fits:
        raise ValueError(f"{name}: shape {dims} given with parameters of shapes "
                         f"{', '.join(map(str, shapes))};\n  parameters must broadcast to the "
                         "shape; pass a shape whose last axes are theirs.")
    return dims


def refuse_complex(name: str, x: ArrayLike) -> None:
    """TypeError for a complex parameter."""
    if isinstance(x, complex) or dtypes.is_complex(getattr(x, "dtype", np.dtype(bool))):
        raise TypeError(f"{name}: a complex parameter given; real numbers are required; take their "
                        "real part.")


def parameter(x: ArrayLike, dtype: DType, shape: Sequence[int]) -> Array:
    """A parameter as an array of the samples' dtype and shape."""
    if not dtypes.is_complex(dtype):
        refuse_complex("random", x)
    x = promote.convert(promote.plain(promote.operand("random", x)), dtype)
    own = typeof(x).shape
    if type(x) is not Literal and own == tuple(shape):
        return x
    return broadcast_in_dim(x, shape, range(len(shape) - len(own), len(shape)))


def any_of(x: ArrayLike) -> Array:
    """Whether a bool array has a true element."""
    return reduce_or(x, tuple(range(typeof(x).ndim)))
