"""Signals from signals: analytic signals, other rates, smoothed polynomials."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.typing import Array, ArrayLike
from ...base.util import real_number
from ...core.trace import typeof
from ...jit.fused import fused
from ...numpy.creation import asarray, zeros
from ...numpy.fft import fft, fftfreq, ifft
from ...numpy.joining import concatenate
from ...numpy.manipulation import moveaxis
from ...numpy.promote import array_args, inexact, to_array
from ...types import dtypes
from ...types.shape import canonical_axis, definitely_equal, less, static_int
from ..linalg.arguments import count_of, number
from ..ndimage.filters import convolve1d
from .windows import weights


def _signal(name: str, x: ArrayLike, axis: int) -> tuple[Array, int]:
    """A floating signal with its axis last, and its size along it."""
    x = inexact(to_array(array_args(name, x)[0]))
    x = moveaxis(x, canonical_axis(axis, typeof(x).ndim, name), -1)
    size = typeof(x).shape[-1]
    if definitely_equal(size, 0):
        raise ValueError(f"{name}: {typeof(x)} given; at least one sample is required.")
    return x, size


@fused(static=("N", "axis"))
def hilbert(x: ArrayLike, N: int | None = None, axis: int = -1) -> Array:
    """The analytic signal: x with its Hilbert transform as imaginary part.

    Its spectrum is twice x's for positive frequencies, and zero for negative ones (Marple,
    "Computing the discrete-time analytic signal via FFT", 1999).

    Args:
      x: a real signal; integers become floats.
      N: the size of the transform: x is filled up with zeros, or cut; x's own unless given.
      axis: along which.
    Returns: A complex array like x, of N elements along the axis.

    Raises ValueError for complex signals and sizes that are not positive.

    >>> x = onp.cos(onp.arange(8) * onp.pi / 4)
    >>> print(abs(olympus.scipy.signal.hilbert(x)).round(3))
    [1. 1. 1. 1. 1. 1. 1. 1.]
    """
    x, size = _signal("hilbert", x, axis)
    if typeof(x).dtype.kind == "c":
        raise ValueError(f"hilbert: {typeof(x)} given; a real signal is required.")
    n = count_of("hilbert", "N", size if N is None else N, 1)
    factors = np.zeros(n)
    factors[0] = 1
    factors[1:(n + 1) // 2] = 2
    if n % 2 == 0:
        factors[n // 2] = 1
    return moveaxis(ifft(fft(x, n) * factors.astype(x.dtype)), -1, axis)


def _weighed(spectrum: Array, window: Any, size: int) -> Array:
    """A spectrum times a window over its frequencies."""
    if window is None:
        return spectrum
    real = dtypes.to_real_dtype(spectrum.dtype)
    if callable(window):
        values = window(fftfreq(size, dtype=real))
    elif isinstance(window, (str, tuple, int, float)):
        values = np.fft.fftshift(weights("resample", window, size))
    else:
        values = number("resample", window)
    values = asarray(values, real)
    if typeof(values).shape != (size,):
        raise ValueError(f"resample: window {typeof(values)} given; a weight for each of {size} "
                         "frequencies is required.")
    return spectrum * values


def resample(x: ArrayLike, num: int, t: ArrayLike | None = None, axis: int = 0,
             window: Any = None, domain: str = "time") -> Any:
    """A periodic signal at another number of samples, by its Fourier series.

    Args:
      x: the signal; integers become floats.
      num: how many samples are wanted.
      t: the evenly spaced times of x's samples.
      axis: along which.
      window: the weights of the spectrum: a name as for `get_window`, an array with a weight for
        each frequency in the order of `fftfreq`, or a function of those frequencies.
      domain: "time", or "freq": x is the spectrum itself.
    Returns: An array like x with num samples along the axis, or if t is given (that, the new
      times[num]); complex if x is, or is a spectrum.

    Raises ValueError for another domain, a window of another size, and numbers not positive.

    >>> print(olympus.scipy.signal.resample(onp.array([1., 0., -1., 0.]), 8).round(3) + 0)
    [ 1.     0.707  0.    -0.707 -1.    -0.707  0.     0.707]
    """
    if domain not in ("time", "freq"):
        raise ValueError(f"resample: domain {domain!r} given; 'time' or 'freq' is required.")
    num = static_int(num, "resample", "num")
    if num < 1:
        raise ValueError(f"resample: num {num} given; a positive int is required.")
    x, size = _signal("resample", x, axis)
    size = static_int(size, "resample", "size")
    spectrum = _weighed(fft(x) if domain == "time" else x + 0j, window, size)
    out = _resampled(spectrum, size=size, num=num)
    if domain == "time" and typeof(x).dtype.kind != "c":
        out = out.real
    out = moveaxis(out, -1, axis)
    if t is None:
        return out
    times = inexact(to_array(array_args("resample", t)[0]))
    steps = np.arange(num) * (size / num)
    return out, times[0] + (times[1] - times[0]) * asarray(steps, times.dtype)


@fused(static=("size", "num"))
def _resampled(spectrum: Array, *, size: int, num: int) -> Array:
    """The series of fewer or more frequencies; the highest one of an even number is one of two."""
    both = min(size, num)
    positive, negative = (both + 1) // 2, (both - 1) // 2
    parts = [spectrum[..., :positive]]
    gap = num - positive - negative
    ends = spectrum[..., size - negative:]
    if both % 2 == 0:
        above, below = spectrum[..., both // 2:both // 2 + 1], spectrum[..., size - both // 2, None]
        if num < size:
            parts.append(above + below)
        elif num == size:
            parts.append(above)
        else:
            ends = concatenate([above / 2, ends], -1)
            parts.append(above / 2)
            gap -= 1
        gap -= 1
    parts += [zeros((*typeof(spectrum).shape[:-1], gap), spectrum.dtype), ends]
    return ifft(concatenate(parts, -1)) * (num / size)


# Polynomials -------------------------------------------------------------------------------------

def _fit(name: str, length: int, order: int, deriv: int, delta: float, times: Sequence[float]
         ) -> np.ndarray:
    """Weights [places, length] of samples in the derivative at each place of the best polynomial.

    Savitzky and Golay, "Smoothing and differentiation of data by simplified least squares
    procedures", 1964.
    """
    length, order, deriv = [static_int(k, name, what) for k, what in (
        (length, "window_length"), (order, "polyorder"), (deriv, "deriv"))]
    if not 0 <= order < length < 2**31 or deriv < 0:
        raise ValueError(f"{name}: window_length {length}, polyorder {order} and deriv {deriv} "
                         "given; 0 <= polyorder < window_length and deriv >= 0 are required.")
    out = np.zeros((len(times), length))
    if deriv <= order:
        for row, place in zip(out, times):
            # In units of half the window, so that powers do not spread over many magnitudes.
            t = (np.arange(length) - place) * 2 / length
            step = length / 2 * real_number(delta, f"{name}: delta")
            factor = math.factorial(deriv) / step ** deriv
            row[:] = np.linalg.pinv(t[:, None] ** np.arange(order + 1))[deriv] * factor
    return out


def savgol_coeffs(window_length: int, polyorder: int, deriv: int = 0, delta: float = 1.0,
                  pos: float | None = None, use: str = "conv") -> Array:
    """The weights of a filter that fits a polynomial to each window: Savitzky and Golay's.

    Args:
      window_length: samples of a window.
      polyorder: the polynomial's degree, less than window_length.
      deriv: which derivative is wanted; 0: the values.
      delta: the distance of samples.
      pos: the place in the window; its middle unless given.
      use: "conv": in the order for a convolution; "dot": for a product with the window.
    Returns: A vector of window_length elements of the default float.

    Raises ValueError for sizes that do not fit, a place beyond the window and another `use`.

    >>> print(35 * olympus.scipy.signal.savgol_coeffs(5, 2))
    [-3. 12. 17. 12. -3.]
    """
    if use not in ("conv", "dot"):
        raise ValueError(f"savgol_coeffs: use {use!r} given; 'conv' or 'dot' is required.")
    length = static_int(window_length, "savgol_coeffs", "window_length")
    place = (length - 1) / 2 if pos is None else real_number(pos, "savgol_coeffs: pos")
    if not 0 <= place < length:
        raise ValueError(f"savgol_coeffs: pos {place} given; a place in the window of {length} is "
                         "required.")
    (row,) = _fit("savgol_coeffs", length, polyorder, deriv, delta, [place])
    return asarray(row[::-1] if use == "conv" else row, dtypes.default_float())


@fused(static=("window_length", "polyorder", "deriv", "delta", "axis", "mode"))
def savgol_filter(x: ArrayLike, window_length: int, polyorder: int, deriv: int = 0,
                  delta: float = 1.0, axis: int = -1, mode: str = "interp", cval: ArrayLike = 0.0
                  ) -> Array:
    """A signal smoothed, or differentiated, by the polynomial that fits each window best.

    Args:
      x: a real signal; integers become floats.
      window_length, polyorder, deriv, delta: as for `savgol_coeffs`.
      axis: along which.
      mode: "interp": the ends come from the first and last window's polynomial; or how x is
        continued: "mirror", "nearest", "wrap", "constant".
      cval: what "constant" continues with.
    Returns: An array like x.

    Raises ValueError for sizes that do not fit and another mode.

    >>> x = onp.arange(6.) ** 2
    >>> slopes = olympus.scipy.signal.savgol_filter(x, 5, 2, deriv=1)
    >>> print(onp.allclose(slopes, 2 * onp.arange(6.), atol=1e-4))
    True
    """
    if mode not in ("interp", "mirror", "nearest", "wrap", "constant"):
        raise ValueError(f"savgol_filter: mode {mode!r} given; 'interp', 'mirror', 'nearest', "
                         "'wrap' or 'constant' is required.")
    x, size = _signal("savgol_filter", x, axis)
    length = static_int(window_length, "savgol_filter", "window_length")
    if mode == "interp" and less(size, length):
        raise ValueError(f"savgol_filter: window_length {length} given for {size} samples; no more "
                         "than those are required for mode 'interp'.")
    half = length // 2
    points = [(length - 1) / 2, *range(half), *range(length - half, length)]
    rows = _fit("savgol_filter", length, polyorder, deriv, delta, points).astype(
        dtypes.to_real_dtype(x.dtype))
    out = convolve1d(x, rows[0, ::-1], mode="constant" if mode == "interp" else mode, cval=cval)
    if mode == "interp" and half:
        out = out.at[..., :half].set(x[..., :length] @ rows[1:half + 1].T)
        out = out.at[..., size - half:].set(x[..., size - length:] @ rows[half + 1:].T)
    return moveaxis(out, -1, axis)
