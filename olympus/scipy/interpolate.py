"""Curves through points, as scipy.interpolate has them: pytrees with derivatives."""

from .._src.base.util import publish_bounded as _publish
from .._src.scipy.interpolate.grid import RegularGridInterpolator
from .._src.scipy.interpolate.piecewise import (
    Akima1DInterpolator, CubicSpline, PchipInterpolator, PPoly, interp1d,
)

__all__ = [
    "Akima1DInterpolator", "CubicSpline", "PPoly", "PchipInterpolator", "RegularGridInterpolator",
    "interp1d",
]

_publish(__name__)
