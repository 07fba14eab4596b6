"""Minima and roots of functions, as scipy.optimize has them, with derivatives."""

from .._src.base.util import publish_bounded as _publish
from .._src.scipy.optimize.least_squares import least_squares, root
from .._src.scipy.optimize.minimize import OptimizeResults, minimize

__all__ = ["OptimizeResults", "least_squares", "minimize", "root"]

_publish(__name__)
