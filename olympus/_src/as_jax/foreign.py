"""JAX's tables of classes that count as arrays, as libraries write to them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..core.trace import FOREIGN_AVALS, typeof


class Avals(dict[type, Callable[[Any], Any]]):
    """Class -> what gives the aval of its values; an entry lets operations take them."""

    def __setitem__(self, kind: type, aval_of: Callable[[Any], Any]) -> None:
        super().__setitem__(kind, aval_of)
        FOREIGN_AVALS[kind] = aval_of


def _numpy_aval(x: object) -> object:
    return typeof(np.asarray(x))


pytype_aval_mappings = Avals({np.ndarray: _numpy_aval})
