"""Signals: convolutions, spectra and filters."""

from ..._src.base.util import publish as _publish
from ..._src.base.util import submodule as _submodule
from ..._src.scipy.signal.convolution import (
    convolve, convolve2d, correlate, correlate2d, correlation_lags, fftconvolve, oaconvolve
)
from ..._src.scipy.signal.spectral import (
    coherence, csd, detrend, istft, periodogram, spectrogram, stft, welch
)
from ..._src.scipy.signal.windows import get_window

__all__ = [
    "coherence", "convolve", "convolve2d", "correlate", "correlate2d", "correlation_lags", "csd",
    "detrend", "fftconvolve", "get_window", "istft", "oaconvolve", "periodogram", "spectrogram",
    "stft", "welch"
]

_publish(__name__)


def __getattr__(name: str) -> object:
    """A module of this package."""
    return _submodule(__name__, name)
