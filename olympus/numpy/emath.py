"""Functions that are complex where real ones have no value: `emath.sqrt(-1.)` is 1j."""

from .._src.base.util import publish as _publish
from .._src.numpy.emath import arccos, arcsin, arctanh, log, log10, log2, logn, power, sqrt

__all__ = ["arccos", "arcsin", "arctanh", "log", "log10", "log2", "logn", "power", "sqrt"]

_publish(__name__)
