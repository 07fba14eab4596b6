"""Window functions, by name."""

from ..._src.base.util import publish_bounded as _publish
from ..._src.scipy.signal.windows import (
    bartlett, blackman, blackmanharris, bohman, boxcar, cosine, exponential, flattop, gaussian,
    general_cosine, general_gaussian, general_hamming, get_window, hamming, hann, kaiser, nuttall,
    parzen, triang, tukey
)

__all__ = [
    "bartlett", "blackman", "blackmanharris", "bohman", "boxcar", "cosine", "exponential",
    "flattop", "gaussian", "general_cosine", "general_gaussian", "general_hamming", "get_window",
    "hamming", "hann", "kaiser", "nuttall", "parzen", "triang", "tukey"
]

_publish(__name__)
