"""Convolutions and correlations over any number of axes, directly or by Fourier transforms."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ...base.docstrings import described_like
from ...base.typing import Array, ArrayLike
from ...core.trace import typeof
from ...jit.fused import fused
from ...lax.conv import conv_general_dilated
from ...lax.precision import PrecisionLike
from ...lax.shape import rev
from ...numpy.fft import fftn, ifftn, irfftn, rfftn
from ...numpy.padding import pad
from ...numpy.promote import array_args, inexact, promote_dtypes, to_array
from ...types import dtypes
from ...types.shape import canonical_axes, canonical_dim, floor_div, is_static, less
from ..fft import next_fast_len
from ..linalg.arguments import counted, options
from ..ndimage.interpolation import sizes_of

_MODES = ("full", "same", "valid")


# Arguments ---------------------------------------------------------------------------------------

def _two_signals(name: str, in1: ArrayLike, in2: ArrayLike) -> tuple[Array, Array]:
    """Two arrays of one dtype and rank, with elements."""
    x, y = [to_array(x) for x in promote_dtypes(name, *array_args(name, in1, in2))]
    if typeof(x).ndim != typeof(y).ndim:
        raise ValueError(f"{name}: {typeof(x)} and {typeof(y)} given; equal ranks are required.")
    if typeof(x).size == 0 or typeof(y).size == 0:
        raise ValueError(f"{name}: {typeof(x)} and {typeof(y)} given; arrays with elements are "
                         "required.")
    return x, y


def _mode(name: str, mode: str) -> None:
    if mode not in _MODES:
        raise ValueError(f"{name}: mode {mode!r} given; 'full', 'same' or 'valid' is required.")


def _swapped(name: str, n: Sequence[int], m: Sequence[int]) -> bool:
    """Whether, for "valid", the second array is the larger one in every axis."""
    pairs = list(zip(n, m, strict=True))
    if all(not less(a, b) for a, b in pairs):
        return False
    if all(not less(b, a) for a, b in pairs):
        return True
    raise ValueError(f"{name}: axes of {tuple(n)} and {tuple(m)} elements given with mode 'valid'; "
                     "one array as large as the other in every axis is required.")


def _flipped(y: Array) -> Array:
    """Reversed along all axes, and conjugated."""
    y = rev(y, tuple(range(typeof(y).ndim)))
    return y.conj() if typeof(y).dtype.kind == "c" else y


# Directly ----------------------------------------------------------------------------------------

def _slid(x: Array, y: Array, pads: Sequence[tuple[int, int]], precision: PrecisionLike) -> Array:
    """The sums of products of x, padded, with y reversed, at each place."""
    ndim = typeof(x).ndim
    window = rev(y, tuple(range(ndim)))
    out = conv_general_dilated(x[None, None], window[None, None], (1,) * ndim, list(pads),
                               precision=precision)
    return out[0, 0]


def _direct(x: Array, y: Array, mode: str, precision: PrecisionLike) -> Array:
    if typeof(x).ndim == 0:
        return x * y
    n, m = typeof(x).shape, typeof(y).shape
    if mode == "valid":
        if _swapped("convolve", n, m):
            x, y = y, x
        return _slid(x, y, [(0, 0)] * len(n), precision)
    pads = [(b - 1, b - 1) for b in m]
    if mode == "same":
        pads = [(b - 1 - floor_div(b - 1, 2), floor_div(b - 1, 2)) for b in m]
    return _slid(x, y, pads, precision)


def _cheaper_by_fft(x: Array, y: Array) -> bool:
    """Whether transforms take fewer multiplications; only inexact dtypes are transformed."""
    if typeof(x).dtype.kind not in "fc" or typeof(x).ndim == 0:
        return False
    n, m = typeof(x).shape, typeof(y).shape
    if not is_static((*n, *m)):     # transforms have sizes that are numbers
        return False
    full = math.prod(a + b - 1 for a, b in zip(n, m))
    # A direct product costs about a tenth of one step of a transform.
    return math.prod(m) * math.prod(n) > 60 * full * math.log2(full + 1)


def _convolved(name: str, x: Array, y: Array, mode: str, method: str, precision: PrecisionLike
               ) -> Array:
    _mode(name, mode)
    if method not in ("auto", "direct", "fft"):
        raise ValueError(f"{name}: method {method!r} given; 'auto', 'direct' or 'fft' is required.")
    if method == "fft" or (method == "auto" and _cheaper_by_fft(x, y)):
        out = _by_fft(name, inexact(x), inexact(y), mode, None)
        return out if typeof(x).dtype.kind in "fc" else out.round().astype(x.dtype)
    return _direct(x, y, mode, precision)


@fused(static=("mode", "method", "precision"))
def convolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto",
             precision: PrecisionLike = None) -> Array:
    """The convolution of two arrays: sums over i + j = k of in1[i] in2[j].

    Args:
      in1, in2: arrays of one rank, with elements; the dtype is the promoted one, and stays one of
        integers.
      mode: "full": all sums; "same": in1's shape, the middle of them; "valid": those in which one
        array lies wholly within the other.
      method: "direct", "fft", or "auto", the one that takes fewer multiplications.
      precision: of direct products, as in `lax.dot_general`.
    Returns: An array of their rank.

    Raises ValueError for ranks that differ, another mode or method, and for "valid" if neither
    array is the larger one in every axis.

    >>> print(olympus.scipy.signal.convolve(onp.array([1, 2, 3]), onp.array([0, 1, 10])))
    [ 0  1 12 23 30]
    """
    x, y = _two_signals("convolve", in1, in2)
    return _convolved("convolve", x, y, mode, method, precision)


@fused(static=("mode", "method", "precision"))
def correlate(in1: ArrayLike, in2: ArrayLike, mode: str = "full", method: str = "auto",
              precision: PrecisionLike = None) -> Array:
    """The cross-correlation of two arrays: sums over i of in1[i + k] conj(in2[i]).

    Args:
      in1, in2: arrays of one rank, with elements; the dtype is the promoted one.
      mode: "full", "same" (in1's shape) or "valid", as for `convolve`.
      method: "direct", "fft", or "auto", the one that takes fewer multiplications.
      precision: of direct products, as in `lax.dot_general`.
    Returns: An array of their rank; `correlation_lags` gives the k of a vector's elements.

    Raises ValueError as `convolve` does.

    >>> print(olympus.scipy.signal.correlate(onp.array([1, 2, 3]), onp.array([0, 1, 10])))
    [10 21 32  3  0]
    """
    x, y = _two_signals("correlate", in1, in2)
    return _convolved("correlate", x, _flipped(y), mode, method, precision)


def correlation_lags(in1_len: int, in2_len: int, mode: str = "full") -> Array:
    """The shift of each element of `correlate`'s result.

    Args:
      in1_len, in2_len: the sizes of the vectors.
      mode: "full", "same" or "valid".
    Returns: Integers, as many as the correlation has elements.

    Raises ValueError for another mode.

    >>> print(olympus.scipy.signal.correlation_lags(3, 2))
    [-1  0  1  2]
    """
    _mode("correlation_lags", mode)
    n, m = [canonical_dim(k, "correlation_lags: size") for k in (in1_len, in2_len)]
    lags = counted(n + m - 1) - (m - 1)
    if mode == "same":
        start = floor_div(m - 1, 2)
        lags = lags[start:start + n]
    elif mode == "valid":
        lags = counted(m - n + 1) + (n - m) if less(n, m) else counted(n - m + 1)
    return to_array(array_args("correlation_lags", lags)[0])


# By Fourier transforms ---------------------------------------------------------------------------

def _by_fft(name: str, x: Array, y: Array, mode: str, axes: object) -> Array:
    ndim = typeof(x).ndim
    if ndim == 0:
        return x * y
    axes = tuple(range(ndim)) if axes is None else canonical_axes(axes, ndim, name)
    n, m = sizes_of(name, x), sizes_of(name, y)
    if not all(i in axes or 1 in (n[i], m[i]) or n[i] == m[i] for i in range(ndim)):
        raise ValueError(f"{name}: {typeof(x)} and {typeof(y)} given, axes {axes}; equal sizes, or "
                         "1, are required of the other axes.")
    if mode == "valid" and _swapped(name, [n[i] for i in axes], [m[i] for i in axes]):
        x, y, n, m = y, x, m, n
    full = [n[i] + m[i] - 1 for i in axes]
    # An axis of one element needs no transform.
    axes_full = [(i, size) for i, size in zip(axes, full) if n[i] != 1 and m[i] != 1]
    axes = [i for i in axes if n[i] != 1 and m[i] != 1]
    if not axes:
        return x * y
    real = typeof(x).dtype.kind == "f"
    lengths = [next_fast_len(size, real) for _, size in axes_full]
    forward, back = (rfftn, irfftn) if real else (fftn, ifftn)
    out = back(forward(x, lengths, axes) * forward(y, lengths, axes), lengths, axes)
    window = [slice(None)] * ndim
    for i, size in axes_full:
        length = {"full": size, "same": n[i], "valid": n[i] - m[i] + 1}[mode]
        start = (size - length) // 2
        window[i] = slice(start, start + length)
    return out[tuple(window)].astype(dtypes.promote_many(
        tuple([(z.dtype, False) for z in (x, y)]))[0])


@fused(static=("mode", "axes"))
def fftconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full",
                axes: int | Sequence[int] | None = None) -> Array:
    """`convolve` by Fourier transforms, over some of the axes.

    Args:
      in1, in2: arrays of one rank, with elements; integers become floats.
      mode: "full", "same" (in1's shape) or "valid", as for `convolve`.
      axes: over which axes; all unless given. The others broadcast.
    Returns: An array of their rank, of a floating or complex dtype.

    Raises ValueError as `convolve` does.

    >>> print(olympus.scipy.signal.fftconvolve(onp.array([1., 2.]), onp.array([1., 3.])).round())
    [1. 5. 6.]
    """
    x, y = _two_signals("fftconvolve", in1, in2)
    _mode("fftconvolve", mode)
    return _by_fft("fftconvolve", inexact(x), inexact(y), mode, axes)


def oaconvolve(in1: ArrayLike, in2: ArrayLike, mode: str = "full",
               axes: int | Sequence[int] | None = None) -> Array:
    """`fftconvolve`, by SciPy's name for adding overlapping blocks; here the transforms are whole.

    Args:
      in1, in2: arrays of one rank, with elements; integers become floats.
      mode: "full", "same" (in1's shape) or "valid", as for `convolve`.
      axes: over which axes; all unless given.
    Returns: An array of their rank, of a floating or complex dtype.

    >>> print(olympus.scipy.signal.oaconvolve(onp.array([1., 2.]), onp.array([1., 3.])).round())
    [1. 5. 6.]
    """
    return fftconvolve(in1, in2, mode, axes)


# In the plane ------------------------------------------------------------------------------------

_EDGES = {"fill": "constant", "pad": "constant", "wrap": "wrap", "circular": "wrap",
          "symm": "symmetric", "symmetric": "symmetric"}


def _in_plane(name: str, in1: ArrayLike, in2: ArrayLike, mode: str, boundary: str, fillvalue: Any,
              precision: PrecisionLike, correlated: bool) -> Array:
    x, y = _two_signals(name, in1, in2)
    _mode(name, mode)
    if typeof(x).ndim != 2:
        raise ValueError(f"{name}: {typeof(x)} and {typeof(y)} given; matrices are required.")
    options(name, "boundary", boundary, _EDGES)
    m = typeof(y).shape
    if mode == "valid":
        return _direct(x, _flipped(y) if correlated else y, "valid", precision)
    kind = _EDGES[boundary]
    pads = [(b - 1, b - 1) for b in m]
    if mode == "same":
        # For an even size the middle is the later one for correlations.
        after = [floor_div(b if correlated else b - 1, 2) for b in m]
        pads = [(b - 1 - k, k) for b, k in zip(m, after, strict=True)]
    if kind != "constant" or type(fillvalue) is not int or fillvalue:
        more = {"constant_values": fillvalue} if kind == "constant" else {}
        x, pads = pad(x, pads, kind, **more), [(0, 0)] * 2
    # XLA:CPU convolves float64 in half the time where it makes the zeros.
    return _slid(x, _flipped(y) if correlated else y, pads, precision)


@fused(static=("mode", "boundary", "precision"))
def convolve2d(in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill",
               fillvalue: ArrayLike = 0, precision: PrecisionLike = None) -> Array:
    """The convolution of two matrices, with a choice of boundary for the first one.

    Args:
      in1, in2: matrices; the dtype is the promoted one, and stays one of integers.
      mode: "full", "same" (in1's shape) or "valid", as for `convolve`.
      boundary: in1 is continued by "fill" (`fillvalue`), "wrap" (periodically) or "symm" (mirrored,
        the last element twice).
      fillvalue: a scalar.
      precision: of products, as in `lax.dot_general`.
    Returns: A matrix.

    Raises ValueError for other ranks, modes and boundaries.

    >>> x = onp.array([[1, 2], [3, 4]])
    >>> print(olympus.scipy.signal.convolve2d(x, onp.array([[1, 1]]), "same", "wrap"))
    [[3 3]
     [7 7]]
    """
    return _in_plane("convolve2d", in1, in2, mode, boundary, fillvalue, precision, False)


@fused(static=("mode", "boundary", "precision"))
@described_like(convolve2d)
def correlate2d(in1: ArrayLike, in2: ArrayLike, mode: str = "full", boundary: str = "fill",
                fillvalue: ArrayLike = 0, precision: PrecisionLike = None) -> Array:
    """The cross-correlation of two matrices, with a choice of boundary for the first one.

    Args:
      in1, in2: matrices; the dtype is the promoted one.
      boundary: "fill", "wrap" or "symm", as for `convolve2d`.

    >>> x = onp.array([[1, 2], [3, 4]])
    >>> print(olympus.scipy.signal.correlate2d(x, onp.array([[1, 10]]), "valid"))
    [[21]
     [43]]
    """
    return _in_plane("correlate2d", in1, in2, mode, boundary, fillvalue, precision, True)
