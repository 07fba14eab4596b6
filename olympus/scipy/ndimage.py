"""Images of any number of axes: values between pixels, and filters."""

from .._src.base.util import publish as _publish
from .._src.scipy.ndimage.interpolation import (
    affine_transform, map_coordinates, rotate, shift, spline_filter, spline_filter1d, zoom
)

__all__ = [
    "affine_transform", "map_coordinates", "rotate", "shift", "spline_filter", "spline_filter1d",
    "zoom"
]

_publish(__name__)
