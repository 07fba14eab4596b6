"""Images of any number of axes: values between pixels, and filters."""

from .._src.base.util import publish_bounded as _publish
from .._src.scipy.ndimage.filters import (
    convolve, convolve1d, correlate, correlate1d, gaussian_filter, gaussian_filter1d,
    gaussian_gradient_magnitude, gaussian_laplace, laplace, maximum_filter, median_filter,
    minimum_filter, prewitt, rank_filter, sobel, uniform_filter, uniform_filter1d
)
from .._src.scipy.ndimage.interpolation import (
    affine_transform, map_coordinates, rotate, shift, spline_filter, spline_filter1d, zoom
)

__all__ = [
    "affine_transform", "convolve", "convolve1d", "correlate", "correlate1d", "gaussian_filter",
    "gaussian_filter1d", "gaussian_gradient_magnitude", "gaussian_laplace", "laplace",
    "map_coordinates", "maximum_filter", "median_filter", "minimum_filter", "prewitt",
    "rank_filter", "rotate", "shift", "sobel", "spline_filter", "spline_filter1d",
    "uniform_filter", "uniform_filter1d", "zoom"
]

_publish(__name__)
