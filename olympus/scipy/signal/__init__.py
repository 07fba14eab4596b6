"""Signals: convolutions, spectra and filters."""

import typing as _typing

from ..._src.base.util import publish_bounded as _publish
from ..._src.base.util import submodules as _submodules
from ..._src.scipy.signal.convolution import (
    convolve, convolve2d, correlate, correlate2d, correlation_lags, fftconvolve, oaconvolve
)
from ..._src.scipy.signal.design import (
    butter, cheby1, cheby2, firwin, iirnotch, iirpeak, kaiser_atten, kaiser_beta, kaiserord, sos2tf,
    tf2zpk, zpk2sos, zpk2tf
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
    "butter", "cheby1", "cheby2", "coherence", "convolve", "convolve2d", "correlate", "correlate2d",
    "correlation_lags", "csd", "decimate", "detrend", "fftconvolve", "filtfilt", "firwin", "freqz",
    "get_window", "hilbert", "iirnotch", "iirpeak", "istft", "kaiser_atten", "kaiser_beta",
    "kaiserord", "lfilter", "lfilter_zi", "oaconvolve", "periodogram", "resample", "savgol_coeffs",
    "savgol_filter", "sos2tf", "sosfilt", "sosfilt_zi", "sosfiltfilt", "sosfreqz", "spectrogram",
    "stft", "tf2zpk", "welch", "zpk2sos", "zpk2tf",
]

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import windows as windows
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
