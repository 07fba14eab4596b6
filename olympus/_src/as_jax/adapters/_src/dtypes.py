"""`jax._src.dtypes`: Flax defines a dtype for scales of fp8; Equinox catches its error."""

from __future__ import annotations

from typing import Any

import numpy as np

from ....types import dtypes
from ....types.dtypes import ExtendedDType, extended

__all__ = ["DType", "ExtendedDType", "extended", "supports_inf"]
HOMES = ("olympus.dtypes",)

DType = np.dtype


def supports_inf(dtype: Any) -> bool:
    """Whether a floating dtype has an infinity."""
    return bool(np.isinf(np.asarray(np.inf, dtypes.as_dtype(dtype))))
