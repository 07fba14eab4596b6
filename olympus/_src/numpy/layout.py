"""Arrays as compiled libraries ask for them: finite, contiguous, of a memory order.

Programs see no memory order, and every array is contiguous with its last axis fastest; so these
convert, check, and say so.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DTypeLike
from ..core.trace import Tracer
from ..jit.fused import named
from ..types import dtypes
from ..types.shape import sequence
from ..types.sharding import DeviceLike
from .creation import asarray
from .manipulation import atleast_1d


@named
def asanyarray(a: object, dtype: DTypeLike | None = None, order: str | None = None, *,
               device: DeviceLike = None, copy: bool | None = None) -> Array:
    """`asarray`: arrays have no subclasses.

    Args: a, dtype, order, device, copy: as for `asarray`.

    >>> print(onp.asanyarray([1, 2]))
    [1 2]
    """
    return asarray(a, dtype, order, copy=copy, device=device)


@named
def ascontiguousarray(a: object, dtype: DTypeLike | None = None) -> Array:
    """`asarray` with at least one axis: every array is contiguous.

    >>> print(onp.ascontiguousarray(2.5))
    [2.5]
    """
    return atleast_1d(asarray(a, dtype))


@named
def asfortranarray(a: object, dtype: DTypeLike | None = None) -> Array:
    """`asarray` with at least one axis: the compiler chooses the memory order, not the program.

    >>> print(onp.asfortranarray([[1, 2]]))
    [[1 2]]
    """
    return atleast_1d(asarray(a, dtype))


@named
def isfortran(a: ArrayLike) -> bool:
    """Whether the first axis is the fastest in memory, and not the last: False.

    Args: a: an array.

    >>> onp.isfortran(onp.ones((2, 3)))
    False
    """
    asarray(a)
    return False


@named
def asarray_chkfinite(a: object, dtype: DTypeLike | None = None, order: str | None = None) -> Array:
    """`asarray` that refuses infinities and NaN.

    Args:
      a: data as for `asarray`; of traced data the values are not looked at.
      dtype, order: as for `asarray`.

    Raises ValueError for NaN and infinities.

    >>> print(onp.asarray_chkfinite([1., 2.]))
    [1. 2.]
    """
    x = asarray(a, dtype, order)
    if dtypes.is_inexact(x.dtype) and not isinstance(x, Tracer) and not np.isfinite(
            np.asarray(x)).all():
        raise ValueError(f"asarray_chkfinite: {x.aval} with a NaN or an infinity given; finite "
                         "numbers are required.")
    return x


_REQUIREMENTS = frozenset("""
    C C_CONTIGUOUS CONTIGUOUS A ALIGNED E ENSUREARRAY O OWNDATA
""".split())    # noqa: SIM905


@named
def require(a: object, dtype: DTypeLike | None = None,
            requirements: str | Sequence[str] | None = None) -> Array:
    """`asarray` with a check of requirements.

    Args: requirements: any of C_CONTIGUOUS, ALIGNED, OWNDATA and ENSUREARRAY, or their first
        letters, which all arrays fulfil; F_CONTIGUOUS and WRITEABLE, which none does, are refused.

    Raises ValueError for those and for other requirements.

    >>> print(onp.require([1, 2], requirements=["C", "A"]))
    [1 2]
    """
    names = [requirements] if isinstance(requirements, str) else sequence(
        () if requirements is None else requirements, "require", "requirements")
    for name in names:
        if str(name).upper() not in _REQUIREMENTS:
            raise ValueError(f"require: requirement {name!r} given; one of "
                             f"{', '.join(sorted(_REQUIREMENTS))} is required: arrays are "
                             "read-only, and programs see no memory order.")
    return asarray(a, dtype)


complete_docstrings(globals(), {
    "a": "data as for `asarray`.",
    "dtype": "of the result.",
}, returns="An array.")
