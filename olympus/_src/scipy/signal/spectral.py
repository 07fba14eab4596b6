"""Spectra of segments of a signal: short-time Fourier transforms and their averages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias

import numpy as np

from ...base import source
from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike, DTypeLike
from ...core.trace import typeof
from ...jit.fused import fused, unasked
from ...lax.slicing import pad
from ...numpy import reductions
from ...numpy.arithmetic import abs as absolute
from ...numpy.creation import asarray, ones_like, zeros
from ...numpy.fft import fft, fftfreq, ifft, irfft, rfft, rfftfreq
from ...numpy.joining import concatenate, stack
from ...numpy.linalg.systems import qr
from ...numpy.manipulation import broadcast_arrays, broadcast_to, flip, moveaxis
from ...numpy.promote import array_args, inexact, promote_dtypes, to_array
from ...numpy.selection import where
from ...numpy.statistics import mean, median
from ...types import dtypes
from ...types.shape import (
    canonical_axis, floor_div, is_static, less, maximum, mod, sequence, static_int,
)
from ..linalg.arguments import count_of, counted, number
from .windows import weights

Window: TypeAlias = str | tuple[Any, ...] | ArrayLike       # a name, with parameters, or weights
Detrend: TypeAlias = str | Callable[[Array], Array] | Literal[False] | None


# Trends ------------------------------------------------------------------------------------------

@fused(static=("axis", "type", "bp", "overwrite_data"))
def detrend(data: ArrayLike, axis: int = -1, type: str = "linear", bp: int | Sequence[int] = 0,
            overwrite_data: object = None) -> Array:
    """A signal minus the line, or the mean, that fits it best.

    Args:
      data: array; integers become floats.
      type: "linear", or "constant": the mean.
      bp: places between which lines are fitted each by itself.
      overwrite_data: SciPy's, without effect.
    Returns: An array like `data`.

    Raises ValueError for another type and for places beyond the signal.

    >>> print(abs(olympus.scipy.signal.detrend(onp.array([1., 2., 3.]))).round(3))
    [0. 0. 0.]
    """
    x = inexact(to_array(array_args("detrend", data)[0]))
    if type not in ("linear", "l", "constant", "c"):
        raise ValueError(f"detrend: type {type!r} given; 'linear' or 'constant' is required.")
    x = moveaxis(x, canonical_axis(axis, typeof(x).ndim, "detrend"), -1)
    if type in ("constant", "c"):
        return moveaxis(x - mean(x, -1, keepdims=True), -1, axis)
    n = typeof(x).shape[-1]
    points = (bp,) if isinstance(bp, (int, np.integer)) else sequence(bp, "detrend", "bp")
    breaks = sorted({0, *[static_int(i, "detrend", "bp") for i in points]})
    if less(n, breaks[-1]) or breaks[0] < 0:
        raise ValueError(f"detrend: bp {bp!r} given for {n} samples; places within the signal are "
                         "required.")
    parts = []
    for start, stop in zip(breaks, [*breaks[1:], n], strict=True):
        part = x[..., start:stop]
        basis = _lines(stop - start).astype(x.dtype)
        parts.append(part - (part @ basis) @ basis.T)
    return moveaxis(concatenate(parts, -1), -1, axis)


def _lines(n: Any) -> np.ndarray | Array:
    """[n, 2]: an orthonormal basis of the lines through n samples."""
    if is_static((n,)):
        t = np.arange(1, n + 1) / max(n, 1)
        return np.linalg.qr(np.stack([t, np.ones_like(t)], 1))[0]
    t = counted(n).astype(dtypes.default_float()) / n
    return qr(stack([t, ones_like(t)], 1))[0]


# Segments ----------------------------------------------------------------------------------------

_SHIFTS = 16    # from so many segments over each sample on, samples are gathered


class Segments:
    """How a signal is cut: window, sizes, and the treatment of each piece."""

    def __init__(self, name: str, window: Window, nperseg: Any, noverlap: object, nfft: object,
                 size: int) -> None:
        """`size` is the length of the signal."""
        self.name = name
        if nperseg is not None:
            nperseg = count_of(name, "nperseg", nperseg, 1)
        if isinstance(window, (str, tuple, int, float)):
            nperseg = 256 if nperseg is None else nperseg
            if less(size, nperseg):
                source.warn(f"{name}: nperseg {nperseg} given for {size} samples; {size} is used.")
                nperseg = size
            self.window: Any = weights(name, window, nperseg)
        else:
            self.window = to_array(array_args(name, window)[0])
            if typeof(self.window).ndim != 1:
                raise ValueError(f"{name}: window {typeof(self.window)} given; a name or a vector "
                                 "is required.")
            length = static_int(typeof(self.window).shape[0], name, "size")
            if less(size, length):
                raise ValueError(f"{name}: a window of {length} weights given for {size} samples; "
                                 "no more weights than samples are required.")
            if nperseg not in (None, length):
                raise ValueError(f"{name}: nperseg {nperseg} and a window of {length} weights "
                                 "given; equal sizes are required.")
            nperseg = length
        self.nperseg: int = nperseg
        self.nfft = nperseg if nfft is None else count_of(name, "nfft", nfft)
        if self.nfft < nperseg:
            raise ValueError(f"{name}: nfft {self.nfft} given for segments of {nperseg}; at least "
                             "that is required.")
        self.noverlap = nperseg // 2 if noverlap is None else static_int(
            noverlap, name, "noverlap")
        if self.noverlap >= nperseg:
            raise ValueError(f"{name}: noverlap {self.noverlap} given for segments of {nperseg}; a "
                             "smaller number is required.")
        self.step = nperseg - self.noverlap

    def weighed(self, dtype: DTypeLike) -> Array:
        """The window in the real dtype of `dtype`."""
        return asarray(self.window, dtypes.to_real_dtype(dtype))

    def cut(self, x: Array) -> Array:
        """x[..., n] -> [..., segments, nperseg]."""
        *others, size = typeof(x).shape
        starts, step = self.starts(size), self.step
        if not is_static((size, self.nperseg)) or less(_SHIFTS * step, self.nperseg):
            return x[..., starts[:, None] + np.arange(self.nperseg)]
        # Rows of `step` samples side by side, each a row further: no table of places is written.
        count, whole, rest = len(starts), *divmod(self.nperseg, step)
        short = (count + whole) * step - size
        x = concatenate([x, zeros((*others, short), x.dtype)], -1) if short > 0 else x
        rows = x[..., :(count + whole) * step].reshape(*others, count + whole, step)
        parts = [rows[..., k:k + count, :] for k in range(whole)]
        return concatenate([*parts, rows[..., whole:, :rest]], -1)

    def overlapped(self, pieces: Array) -> Array:
        """[..., segments, nperseg] -> [..., n], the transpose of `cut`: sums where they overlap."""
        *others, count, length = typeof(pieces).shape
        step, size = self.step, length + (count - 1) * self.step
        if not is_static((count, length)) or less(_SHIFTS * step, length):
            positions = counted(count)[:, None] * step + np.arange(length)
            return zeros((*others, size), pieces.dtype).at[..., positions].add(pieces)
        shifts = -(-length // step)
        none = [(0, 0, 0)] * len(others)
        pieces = pad(pieces, 0, [*none, (0, 0, 0), (0, shifts * step - length, 0)])
        rows = zeros((*others, count + shifts - 1, step), pieces.dtype)
        for k in range(shifts):
            rows = rows + pad(pieces[..., k * step:(k + 1) * step], 0, [
                *none, (k, shifts - 1 - k, 0), (0, 0, 0)])
        return rows.reshape(*others, -1)[..., :size]

    def starts(self, size: int) -> Any:
        """Where each segment of a signal begins."""
        return counted(floor_div(size - self.noverlap, self.step)) * self.step

    def transformed(self, x: Array, detrended: Callable[[Array], Array], onesided: bool) -> Array:
        """The spectra of a signal's segments: [..., segments, frequencies]."""
        pieces = detrended(self.cut(x)) * self.weighed(x.dtype)
        return (rfft if onesided else fft)(pieces, self.nfft)

    def times(self, size: int, fs: ArrayLike, boundary: bool) -> Array:
        """The middle of each segment."""
        middle = self.starts(size) + self.nperseg / 2 * (not boundary)
        return asarray(middle, dtypes.default_float()) / fs

    def frequencies(self, fs: ArrayLike, onesided: bool) -> Array:
        return (rfftfreq if onesided else fftfreq)(self.nfft, 1 / asarray(
            fs, dtypes.default_float()))


def _detrender(name: str, how: Detrend) -> Callable[[Array], Array]:
    if how is False or how is None:
        return lambda x: x
    if callable(how):
        return how
    if not isinstance(how, str):
        raise ValueError(f"{name}: detrend {how!r} given; 'constant', 'linear', a function or "
                         "False is required.")
    return lambda x: detrend(x, -1, how)


def _scale(name: str, scaling: str, window: Array, fs: Array) -> Array:
    """The factor of the squares of spectra."""
    if scaling not in ("density", "spectrum"):
        raise ValueError(f"{name}: scaling {scaling!r} given; 'density' or 'spectrum' is "
                         "required.")
    if scaling == "density":
        return 1 / (fs * reductions.sum(window * window))
    return 1 / reductions.sum(window) ** 2


def _signal(name: str, x: ArrayLike, axis: int) -> Array:
    """A floating signal with its axis last."""
    x = inexact(to_array(array_args(name, x)[0]))
    return moveaxis(x, canonical_axis(axis, typeof(x).ndim, name), -1)


def _onesided(name: str, wanted: bool, *xs: Array) -> bool:
    """Whether half of the spectrum tells all of it, and is wanted."""
    complex_signals = any(typeof(x).dtype.kind == "c" for x in xs)
    if wanted and complex_signals:
        source.warn(f"{name}: complex signals given with return_onesided; their spectra are not "
                    "symmetric, so they are returned whole.")
    return wanted and not complex_signals


# Transforms --------------------------------------------------------------------------------------

_CUT = ("window", "nperseg", "noverlap", "nfft", "scaling")     # static parameters of all
_SPECTRUM = (*_CUT, "detrend", "return_onesided", "axis")


def extended(name: str, x: Array, boundary: str | None, half: int) -> Array:
    """A signal continued beyond both ends by half a segment."""
    if boundary is None or half == 0:
        return x
    if boundary not in ("zeros", "even", "odd", "constant"):
        raise ValueError(f"{name}: boundary {boundary!r} given; 'zeros', 'even', 'odd', "
                         "'constant' or None is required.")
    n = typeof(x).shape[-1]
    if boundary in ("even", "odd") and not less(half, n):
        raise ValueError(f"{name}: boundary {boundary!r} given for {n} samples and {half} beyond "
                         "each end; more samples are required.")
    first, last = x[..., :1], x[..., -1:]
    if boundary in ("even", "odd"):
        left, right = flip(x[..., 1:half + 1], -1), flip(x[..., -half - 1:-1], -1)
        if boundary == "odd":
            left, right = 2 * first - left, 2 * last - right
    else:
        keep = 0 if boundary == "zeros" else 1
        left, right = [(keep * end).repeat(half, -1) for end in (first, last)]
    return concatenate([left, x, right], -1)


@fused(static=(*_SPECTRUM, "boundary", "padded"))
def stft(x: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = 256,
         noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = False,
         return_onesided: bool = True, boundary: str | None = "zeros", padded: bool = True,
         axis: int = -1, scaling: str = "spectrum") -> tuple[Array, Array, Array]:
    """The Fourier transforms of a signal's segments, which overlap.

    Args:
      return_onesided: of a real signal, no negative frequencies.
      boundary: how the signal is continued by half a segment: "zeros", "even", "odd", "constant"
        or None, not at all.
      padded: fill up with zeros to a whole number of segments.
      scaling: "spectrum", or "psd", whose squares are a density.
    Returns: (frequencies[k], times[m], transforms), complex: the axis of time is last, the axis
      of frequencies in the place of `axis`.

    Raises ValueError for sizes that do not fit and names that are unknown.

    >>> f, t, z = olympus.scipy.signal.stft(onp.ones(8), nperseg=4)
    >>> print(abs(z[0]).round(2))
    [0.75 1.   1.   1.   0.25]
    """
    if scaling not in ("spectrum", "psd"):
        raise ValueError(f"stft: scaling {scaling!r} given; 'spectrum' or 'psd' is required.")
    x = _signal("stft", x, axis)
    onesided = _onesided("stft", return_onesided, x)
    plan = Segments("stft", window, nperseg, noverlap, nfft, typeof(x).shape[-1])
    x = extended("stft", x, boundary, plan.nperseg // 2)
    if padded:
        more = mod(mod(plan.nperseg - typeof(x).shape[-1], plan.step), plan.nperseg)
        x = concatenate([x, zeros((*typeof(x).shape[:-1], more), x.dtype)], -1)
    out = plan.transformed(x, _detrender("stft", detrend), onesided)
    scale = _scale("stft", "density" if scaling == "psd" else scaling, plan.weighed(x.dtype),
                   asarray(number("stft", fs), dtypes.to_real_dtype(x.dtype)))
    out = out * scale ** 0.5
    axis = axis - 1 if axis < 0 else axis
    return (plan.frequencies(fs, onesided),
            plan.times(typeof(x).shape[-1], fs, boundary is not None),
            moveaxis(out, (-1, -2), (axis, -1)))


@fused(static=(*_SPECTRUM, "average"))
def csd(x: ArrayLike, y: ArrayLike | None, fs: ArrayLike = 1.0, window: Window = "hann",
        nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
        detrend: Detrend = "constant", return_onesided: bool = True, scaling: str = "density",
        axis: int = -1, average: str = "mean") -> tuple[Array, Array]:
    """The cross spectral density of two signals, by Welch's method of averaging over segments.

    Welch, "The use of the fast Fourier transform for the estimation of power spectra", 1967.

    Args:
      x, y: signals, of shapes that broadcast but for the axis; the shorter one is filled up with
        zeros; y None is x.
      return_onesided: for real signals, no negative frequencies: their power is added to the
        positive ones'.
      scaling: "density", or "spectrum".
      average: over segments: "mean", or "median", divided by its bias.
    Returns: (frequencies[k], densities, with the frequencies in the place of `axis`), conj(X) Y:
      complex, but real if y is None.

    Raises ValueError for sizes that do not fit and names that are unknown.

    >>> f, p = olympus.scipy.signal.csd(onp.array([1., -1.] * 4), None, nperseg=4)
    >>> print((3 * p).round())
    [0. 4. 8.]
    """
    out, plan, onesided = _products("csd", x, y, fs, window, nperseg, noverlap, nfft, detrend,
                                    return_onesided, scaling, axis)
    if average not in ("mean", "median"):
        raise ValueError(f"csd: average {average!r} given; 'mean' or 'median' is required.")
    if average == "mean":
        out = mean(out, -2)
    else:
        count = static_int(typeof(out).shape[-2], "csd", "size")
        odd = 2 * np.arange(1, (count - 1) // 2 + 1)
        bias = float(1 + (1 / (odd + 1) - 1 / odd).sum())
        out = (median(out.real, -2) + 1j * median(out.imag, -2) if typeof(out).dtype.kind == "c"
               else median(out, -2)) / bias
    return plan.frequencies(fs, onesided), moveaxis(out, -1, axis)


def _products(name: str, x: ArrayLike, y: ArrayLike | None, fs: ArrayLike, window: Window,
              nperseg: object, noverlap: object, nfft: object, detrend: Detrend,
              return_onesided: bool, scaling: str, axis: int) -> tuple[Array, Segments, bool]:
    """conj(X) Y of each segment, scaled: [..., segments, frequencies]."""
    x = _signal(name, x, axis)
    if y is None:
        signals = [x]
    else:
        signals = [to_array(z) for z in promote_dtypes(name, x, _signal(name, y, axis))]
        lengths = [typeof(z).shape[-1] for z in signals]
        most = maximum(*lengths)
        signals = [concatenate([z, zeros((*typeof(z).shape[:-1], most - n), z.dtype)], -1)
                   for z, n in zip(signals, lengths, strict=True)]
        signals = broadcast_arrays(*signals)
    onesided = _onesided(name, return_onesided, *signals)
    plan = Segments(name, window, nperseg, noverlap, nfft, typeof(signals[0]).shape[-1])
    spectra = [plan.transformed(z, _detrender(name, detrend), onesided) for z in signals]
    out = absolute(spectra[0]) ** 2 if y is None else spectra[0].conj() * spectra[1]
    real = dtypes.to_real_dtype(out.dtype)
    out = out * _scale(name, scaling, plan.weighed(real), asarray(number(name, fs), real))
    if onesided:
        # Power at a frequency that stands for its negative, too, counts twice.
        twice = np.full(plan.nfft // 2 + 1, 2.0)
        twice[0] = 1
        if plan.nfft % 2 == 0:
            twice[-1] = 1
        out = out * twice.astype(real)
    return out, plan, onesided


def welch(x: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, detrend: Detrend = "constant",
          return_onesided: bool = True, scaling: str = "density", axis: int = -1,
          average: str = "mean") -> tuple[Array, Array]:
    """The power spectral density of a signal, by Welch's method of averaging over segments.

    Args: fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling, axis, average: as
        of `csd`.
    Returns: (frequencies[k], densities, real, with the frequencies in the place of `axis`).

    >>> f, p = olympus.scipy.signal.welch(onp.array([1., -1.] * 4), nperseg=4)
    >>> print((3 * p).round())
    [0. 4. 8.]
    """
    return csd(x, None, fs, window, nperseg, noverlap, nfft, detrend, return_onesided, scaling,
               axis, average)


def periodogram(x: ArrayLike, fs: ArrayLike = 1.0, window: Window = "boxcar",
                nfft: int | None = None, detrend: Detrend = "constant",
                return_onesided: bool = True, scaling: str = "density", axis: int = -1
                ) -> tuple[Array, Array]:
    """The power spectral density of a signal as one segment.

    Args:
      fs, window, detrend, return_onesided, scaling, axis: as for `csd`.
      nfft: the size of the transform: longer, the signal is filled up with zeros; shorter, cut.
    Returns: (frequencies[k], densities, real, with the frequencies in the place of `axis`).

    >>> f, p = olympus.scipy.signal.periodogram(onp.array([1., -1., 1., -1.]))
    >>> print(p)
    [0. 0. 4.]
    """
    (x,) = array_args("periodogram", x)
    x = moveaxis(to_array(x), axis, -1)
    size = typeof(x).shape[-1]
    nfft = None if nfft is None else count_of("periodogram", "nfft", nfft, 1)
    if nfft is not None and less(nfft, size):
        x, size = x[..., :nfft], nfft
    frequencies, out = csd(x, None, fs, window, size if isinstance(window, (str, tuple)) else None,
                           0, nfft, detrend, return_onesided, scaling, -1)
    return frequencies, moveaxis(out, -1, axis)


@unasked
def coherence(x: ArrayLike, y: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann",
              nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
              detrend: Detrend = "constant", axis: int = -1) -> tuple[Array, Array]:
    """The coherence of two signals by frequency: |Pxy|² / (Pxx Pyy).

    Args:
      x, y: signals of equal sizes along the axis; integers become floats.
      fs, window, nperseg, noverlap, nfft, detrend, axis: as for `csd`.
    Returns: (frequencies[k], numbers from 0 to 1, with the frequencies in the place of `axis`).

    >>> x = onp.sin(onp.arange(32.))
    >>> f, c = olympus.scipy.signal.coherence(x, 2 * x, nperseg=8)
    >>> print(c.round(3))
    [1. 1. 1. 1. 1.]
    """
    rest = (fs, window, nperseg, noverlap, nfft, detrend, True, "density", axis)
    frequencies, own = csd(x, None, *rest)
    _, other = csd(y, None, *rest)
    _, common = csd(x, y, *rest)
    return frequencies, absolute(common) ** 2 / own / other


@fused(static=(*_SPECTRUM, "mode"))
def spectrogram(x: ArrayLike, fs: ArrayLike = 1.0, window: Window = ("tukey", 0.25),
                nperseg: int | None = None, noverlap: int | None = None, nfft: int | None = None,
                detrend: Detrend = "constant", return_onesided: bool = True,
                scaling: str = "density", axis: int = -1, mode: str = "psd"
                ) -> tuple[Array, Array, Array]:
    """The power spectral densities of a signal's segments, one by one.

    Args:
      fs, window, nperseg, nfft, detrend, return_onesided, scaling, axis: as for `csd`.
      noverlap: samples that neighbours share; an eighth of them unless given.
      mode: "psd". (SciPy's other modes are `stft` and its parts.)
    Returns: (frequencies[k], times[m], densities): the axis of time is last, the axis of
      frequencies in the place of `axis`.

    Raises ValueError for another mode.

    >>> f, t, p = olympus.scipy.signal.spectrogram(onp.ones(8), nperseg=4, noverlap=0)
    >>> print(p.shape, t)
    (3, 2) [2. 6.]
    """
    if mode != "psd":
        raise ValueError(f"spectrogram: mode {mode!r} given; 'psd' is required; use stft.")
    size = typeof(_signal("spectrogram", x, axis)).shape[-1]
    if noverlap is None:
        noverlap = Segments("spectrogram", window, nperseg, 0, None, size).nperseg // 8
    out, plan, onesided = _products("spectrogram", x, None, fs, window, nperseg, noverlap, nfft,
                                    detrend, return_onesided, scaling, axis)
    axis = axis - 1 if axis < 0 else axis
    return (plan.frequencies(fs, onesided), plan.times(size, fs, False),
            moveaxis(out, (-1, -2), (axis, -1)))


# Back --------------------------------------------------------------------------------------------

@fused(static=(*_CUT, "input_onesided", "boundary", "time_axis", "freq_axis"))
def istft(Zxx: ArrayLike, fs: ArrayLike = 1.0, window: Window = "hann", nperseg: int | None = None,
          noverlap: int | None = None, nfft: int | None = None, input_onesided: bool = True,
          boundary: bool = True, time_axis: int = -1, freq_axis: int = -2,
          scaling: str = "spectrum") -> tuple[Array, Array]:
    """The signal whose short-time Fourier transforms are nearest to the given ones.

    Griffin and Lim, "Signal estimation from modified short-time Fourier transform", 1984.

    Args:
      Zxx: what `stft` returned third.
      window, noverlap: as they were given to `stft`.
      nperseg: samples of a segment; by default it follows from the number of frequencies.
      nfft: the size of the transforms; nperseg, or one more for an odd nperseg, unless given.
      input_onesided: whether negative frequencies are left out.
      boundary: whether half a segment was added at each end.
      time_axis, freq_axis: the axes of times and frequencies.
      scaling: "spectrum" or "psd", as it was given to `stft`.
    Returns: (times[n], the signal, its axis in the place of what remains of those two: last).

    Raises ValueError for sizes that do not fit and axes that agree.

    >>> f, t, z = olympus.scipy.signal.stft(onp.arange(8.), nperseg=4)
    >>> print(olympus.scipy.signal.istft(z, nperseg=4)[1].round(2))
    [0. 1. 2. 3. 4. 5. 6. 7.]
    """
    (z,) = array_args("istft", Zxx)
    z = to_array(z)
    ndim = typeof(z).ndim
    if ndim < 2:
        raise ValueError(f"istft: {typeof(z)} given; at least two axes are required.")
    frequency, time = [canonical_axis(a, ndim, "istft") for a in (freq_axis, time_axis)]
    if frequency == time:
        raise ValueError(f"istft: axis {frequency} given for times and frequencies; two axes are "
                         "required.")
    if scaling not in ("spectrum", "psd"):
        raise ValueError(f"istft: scaling {scaling!r} given; 'spectrum' or 'psd' is required.")
    z = moveaxis(z, (frequency, time), (-1, -2))
    count = typeof(z).shape[-2]
    bins = typeof(z).shape[-1]
    default = 2 * (bins - 1) if input_onesided else bins
    fs = number("istft", fs)
    length = default if nperseg is None else count_of("istft", "nperseg", nperseg, 1)
    if nfft is None:
        nfft = length if input_onesided and length == default + 1 else default
    plan = Segments("istft", window, length, noverlap, nfft, max(length, 1))
    pieces = (irfft if input_onesided else ifft)(z, plan.nfft)[..., :length]
    window_ = plan.weighed(pieces.dtype)
    scale = (reductions.sum(window_) if scaling == "spectrum" else
             (asarray(fs, window_.dtype) * reductions.sum(window_ * window_)) ** 0.5)
    size = length + (count - 1) * plan.step
    x = plan.overlapped(pieces * window_ * scale)
    norm = plan.overlapped(broadcast_to(window_ * window_, (count, length)))
    if boundary:
        half = length // 2
        x, norm = x[..., half:size - half], norm[half:size - half]
    x = x / where(norm > 1e-10, norm, 1)
    times = asarray(counted(typeof(x).shape[-1]), dtypes.default_float()) / fs
    if ndim > 2 and time != ndim - 1:
        x = moveaxis(x, -1, time - (frequency < time))
    return times, x


complete_docstrings(globals(), {
    "x": "the signal; integers become floats.",
    "axis": "along which.",
    "fs": "samples per unit of time.",
    "window": "a name, as for `get_window`, or the weights themselves.",
    "nperseg": "samples of a segment; 256 unless given, or as many as `window` has weights.",
    "noverlap": "samples that neighbours share; half of them unless given.",
    "nfft": "the size of the transforms, filled up with zeros; nperseg unless given.",
    "detrend": 'what each segment is freed of: "constant", "linear", a function, or False.',
})
