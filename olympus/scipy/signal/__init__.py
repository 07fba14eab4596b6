"""Signals: convolutions, spectra and filters."""

from ..._src.base.util import publish as _publish
from ..._src.base.util import names_in as _names_in
from ..._src.base.util import submodule as _submodule
from ..._src.scipy.signal.convolution import (
    convolve, convolve2d, correlate, correlate2d, correlation_lags, fftconvolve, oaconvolve
)
from ..._src.scipy.signal.filters import (
    decimate, filtfilt, freqz, lfilter, lfilter_zi, sosfilt, sosfilt_zi, sosfiltfilt, sosfreqz
)
from ..._src.scipy.signal.resampling import hilbert, resample, savgol_coeffs, savgol_filter
from ..._src.scipy.signal.spectral import (
    coherence, csd, detrend, istft, periodogram, spectrogram, stft, welch
)
from ..._src.scipy.signal.windows import get_window

__all__ = [
    "coherence", "convolve", "convolve2d", "correlate", "correlate2d", "correlation_lags", "csd",
    "decimate", "detrend", "fftconvolve", "filtfilt", "freqz", "get_window", "hilbert", "istft",
    "lfilter", "lfilter_zi", "oaconvolve", "periodogram", "resample", "savgol_coeffs",
    "savgol_filter", "sosfilt", "sosfilt_zi", "sosfiltfilt", "sosfreqz", "spectrogram", "stft",
    "welch"
]

_publish(__name__)


def __getattr__(name: str) -> object:
    """A module of this package."""
    return _submodule(__name__, name)


def __dir__() -> list[str]:
    """Names for completion, modules that are not imported yet among them."""
    return _names_in(__name__)
