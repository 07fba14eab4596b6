"""Recursive filters: applied forwards, and there and back, with their responses in frequency."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ...base.docstrings import complete_docstrings, described_like
from ...base.typing import Array, ArrayLike, DType
from ...control_flow.scan import scan
from ...core.trace import typeof
from ...jit.fused import fused, unasked
from ...lax.conv import conv_general_dilated
from ...numpy import reductions
from ...numpy.creation import asarray, zeros
from ...numpy.elementary import exp
from ...numpy.joining import concatenate, stack
from ...numpy.manipulation import flip, moveaxis
from ...numpy.promote import array_args, broadcast_to, promote_dtypes, to_array
from ...types import dtypes
from ...types.shape import canonical_axis, less, prod, static_int
from ..linalg.arguments import count_of, number
from .design import chebyshev_sections, sinc_taps
from .spectral import extended
from .windows import weights

# Arguments ---------------------------------------------------------------------------------------

def _floats(name: str, *xs: object) -> list[Array]:
    """Arrays of one floating or complex dtype."""
    return [to_array(x) for x in promote_dtypes(name, *array_args(name, *xs), inexact=True)]


def _axis_size(x: Array, axis: int = -1) -> int:
    return static_int(typeof(x).shape[axis], "scipy.signal", "size")


def _coefficients(name: str, b: ArrayLike, a: ArrayLike) -> tuple[Array, Array]:
    """Two vectors of one dtype, divided by a[0] and filled up with zeros to one size."""
    b, a = [x if typeof(x).ndim else x[None] for x in _floats(name, b, a)]
    for x in (b, a):
        if typeof(x).ndim != 1 or _axis_size(x) == 0:
            raise ValueError(f"{name}: coefficients {typeof(x)} given; a vector with elements is "
                             "required.")
    size = max(_axis_size(b), _axis_size(a))
    filled = [concatenate([x, zeros((size - _axis_size(x),), x.dtype)]) / a[0] for x in (b, a)]
    return filled[0], filled[1]


def _sections(name: str, sos: ArrayLike, *xs: ArrayLike) -> list[Array]:
    """Second-order sections [k, 6], divided by their a0, and arrays of the same dtype."""
    sos, *rest = _floats(name, sos, *xs)
    if typeof(sos).ndim != 2 or _axis_size(sos) != 6 or _axis_size(sos, 0) == 0:
        raise ValueError(f"{name}: sos {typeof(sos)} given; sections [k, 6] of three coefficients "
                         "above and three below are required.")
    return [sos / sos[:, 3:4], *rest]


def _initial_memory(name: str, zi: list[Array], axis: int, shape: tuple[int, ...],
                    dtype: DType) -> Array:
    """The filter's initial memory, with the axis of time last: zeros, or `zi`."""
    if not zi:
        return zeros(shape, dtype)
    aval = typeof(zi[0])
    if aval.ndim == len(shape):
        moved = moveaxis(zi[0], axis, -1)
        if all(n in (1, m) for n, m in zip(typeof(moved).shape, shape)):
            return broadcast_to(moved, shape)
    wanted = list(shape[:-1])
    wanted.insert(axis, shape[-1])
    raise ValueError(f"{name}: zi {aval} given; the shape {tuple(wanted)}, or 1 in place of some "
                     "of its sizes, is required.")


# Forwards ----------------------------------------------------------------------------------------

def _recursive(b: Array, a: Array, x: Array, state: Array) -> tuple[Array, Array]:
    """The transposed direct form II along the last axis, from state[..., k - 1]."""
    def step(z: Array, x: Array) -> tuple[Array, Array]:
        y = b[0] * x + z[..., 0]
        moved = concatenate([z[..., 1:], zeros((*typeof(x).shape, 1), z.dtype)], -1)
        return moved + b[1:] * x[..., None] - a[1:] * y[..., None], y

    state, y = scan(step, state, moveaxis(x, -1, 0))
    return moveaxis(y, 0, -1), state


def _moving(b: Array, x: Array, state: Array) -> tuple[Array, Array]:
    """A filter without feedback: one convolution along the last axis."""
    shape, n, more = typeof(x).shape, _axis_size(x), _axis_size(b) - 1
    rows = x.reshape((prod(shape[:-1]), 1, n))
    out = conv_general_dilated(rows, flip(b)[None, None], (1,), [(more, more)])
    out = out.reshape((*shape[:-1], n + more))
    out = out.at[..., :more].add(state)
    return out[..., :n], out[..., n:]


@fused(static=("axis",))
def lfilter(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None
            ) -> Any:
    """A signal filtered by a rational transfer function.

    a[0] y[n] = Σ b[k] x[n - k] - Σ a[k] y[n - k] (k > 0), in the transposed direct form II
    (Oppenheim and Schafer, "Discrete-time signal processing", chapter 6), step by step; as one
    convolution if a has one element.

    Args: zi: the filter's state at the start, as x but with max(len(a), len(b)) - 1 elements along
        the axis, broadcast; zeros unless given.
    Returns: An array like x, or if `zi` is given (that, the filter's state at the end).

    Raises ValueError for coefficients that are no vectors.

    >>> print(olympus.scipy.signal.lfilter(1., onp.array([1., -0.5]), onp.array([1., 0., 0., 4.])))
    [1.    0.5   0.25  4.125]
    """
    feedback = typeof(to_array(array_args("lfilter", a)[0])).size > 1
    memory = () if zi is None else (zi,)
    b, a, x, *state = _floats("lfilter", b, a, x, *memory)
    b, a = _coefficients("lfilter", b, a)
    axis = canonical_axis(axis, typeof(x).ndim, "lfilter")
    x = moveaxis(x, axis, -1)
    shape = (*typeof(x).shape[:-1], _axis_size(b) - 1)
    start = _initial_memory("lfilter", state, axis, shape, x.dtype)
    y, end = _recursive(b, a, x, start) if feedback else _moving(b, x, start)
    y = moveaxis(y, -1, axis)
    return y if zi is None else (y, moveaxis(end, -1, axis))


@fused(static=("axis",))
def sosfilt(sos: ArrayLike, x: ArrayLike, axis: int = -1, zi: ArrayLike | None = None) -> Any:
    """A signal filtered by sections of second order, one after the other.

    Args: zi: the sections' states at the start: [k, …], as x but with 2 elements along its axis;
        zeros unless given.
    Returns: An array like x, or if `zi` is given (that, the sections' states at the end).

    Raises ValueError for other shapes.

    >>> sos = onp.array([[1., 0., 0., 1., -0.5, 0.]])
    >>> print(olympus.scipy.signal.sosfilt(sos, onp.array([1., 0., 0., 4.])))
    [1.    0.5   0.25  4.125]
    """
    memory = () if zi is None else (zi,)
    sos, x, *state = _sections("sosfilt", sos, x, *memory)
    axis = canonical_axis(axis, typeof(x).ndim, "sosfilt")
    x = moveaxis(x, axis, -1)
    shape = (_axis_size(sos, 0), *typeof(x).shape[:-1], 2)
    start = _initial_memory("sosfilt", state, axis + 1, shape, x.dtype)
    ends = []
    for section, z in zip(sos, start):
        x, end = _recursive(section[:3], section[3:], x, z)
        ends.append(end)
    y = moveaxis(x, -1, axis)
    return y if zi is None else (y, moveaxis(stack(ends), -1, axis + 1))


# At rest -----------------------------------------------------------------------------------------

def _steady_memory(b: Array, a: Array) -> Array:
    """The memory of a filter after a signal that has always been 1, from sums of its steps."""
    gains = b[1:] - a[1:] * b[0]
    first = reductions.sum(gains) / reductions.sum(a)
    before = reductions.cumsum(concatenate([zeros((1,), b.dtype), gains]))[:-1]
    return reductions.cumsum(a)[:-1] * first - before


@fused
def lfilter_zi(b: ArrayLike, a: ArrayLike) -> Array:
    """The state of a filter after a signal that has always been 1: a start without transients.

    Returns: A vector of max(len(a), len(b)) - 1 elements, for `lfilter`'s zi; infinite or NaN for a
      pole at 1.

    >>> print(olympus.scipy.signal.lfilter_zi(1., onp.array([1., -0.5])))
    [1.]
    """
    return _steady_memory(*_coefficients("lfilter_zi", b, a))


@fused
def sosfilt_zi(sos: ArrayLike) -> Array:
    """The state of sections after a signal that has always been 1: a start without transients.

    Returns: [k, 2], for `sosfilt`'s zi; infinite or NaN for a pole at 1.

    >>> print(olympus.scipy.signal.sosfilt_zi(onp.array([[1., 0., 0., 1., -0.5, 0.]])))
    [[1. 0.]]
    """
    (sos,) = _sections("sosfilt_zi", sos)
    out, level = [], asarray(1, sos.dtype)
    for section in sos:
        out.append(level * _steady_memory(section[:3], section[3:]))
        level = level * reductions.sum(section[:3]) / reductions.sum(section[3:])
    return stack(out)


# There and back ----------------------------------------------------------------------------------

def _edge(name: str, padtype: object, padlen: object, taps: int) -> int:
    """The number of samples by which the ends are continued."""
    if padtype not in ("odd", "even", "constant", None):
        raise ValueError(f"{name}: padtype {padtype!r} given; 'odd', 'even', 'constant' or None is "
                         "required.")
    if padtype is None:
        return 0
    return 3 * taps if padlen is None else static_int(padlen, name, "padlen")


def _there_and_back(name: str, x: Array, axis: int, padtype: str | None, edge: int,
                    run: Callable[[Array, Array], Array]) -> Array:
    """Filtered forwards and backwards by run(x, the level at which it has been at rest)."""
    n = typeof(x).shape[canonical_axis(axis, typeof(x).ndim, name)]
    if not less(edge, n) or edge < 0:
        raise ValueError(f"{name}: {n} samples given, and {edge} beyond each end; more samples "
                         "than those are required; give a smaller padlen.")
    x = extended(name, moveaxis(x, axis, -1), padtype, edge)
    for _ in range(2):
        x = flip(run(x, x[..., :1]), -1)
    return moveaxis(x[..., edge:edge + n], -1, axis)


@fused(static=("axis", "padtype", "padlen", "method", "irlen"))
def filtfilt(b: ArrayLike, a: ArrayLike, x: ArrayLike, axis: int = -1, padtype: str | None = "odd",
             padlen: int | None = None, method: str = "pad", irlen: int | None = None) -> Array:
    """A signal filtered forwards and backwards: twice the order, no delay of any frequency.

    Args:
      padtype: how the ends are continued: "odd", "even", "constant", or None, not at all.
      padlen: by how many samples, fewer than x has; 3 max(len(a), len(b)) unless given.
      method: "pad". (SciPy's "gust" is not there.)
      irlen: SciPy's for "gust", without effect.
    Returns: An array like x.

    Raises ValueError for too few samples and another padtype or method.

    >>> x = onp.array([0., 0., 0., 4., 0., 0., 0.])
    >>> print(olympus.scipy.signal.filtfilt(onp.array([0.5, 0.5]), 1., x))
    [0. 0. 1. 2. 1. 0. 0.]
    """
    if method != "pad":
        raise ValueError(f"filtfilt: method {method!r} given; 'pad' is required.")
    b, a, x = _floats("filtfilt", b, a, x)
    edge = _edge("filtfilt", padtype, padlen, max(typeof(b).size, typeof(a).size))
    rest = lfilter_zi(b, a)
    return _there_and_back("filtfilt", x, axis, padtype, edge, lambda x, level: lfilter(
        b, a, x, zi=rest * level)[0])


@described_like(filtfilt)
def sosfiltfilt(sos: ArrayLike, x: ArrayLike, axis: int = -1, padtype: str | None = "odd",
                padlen: int | None = None) -> Array:
    """A signal filtered by sections of second order forwards and backwards, without delay.

    Args: padlen: by how many samples, fewer than x has; 3 times the number of the filter's
        coefficients unless given, which depends on zeros in `sos`: give it under jit.

    Raises ValueError for too few samples and another padtype.

    >>> sos = onp.array([[0.5, 0.5, 0., 1., 0., 0.]])
    >>> print(olympus.scipy.signal.sosfiltfilt(sos, onp.array([0., 0., 0., 4., 0., 0., 0.])))
    [0. 0. 1. 2. 1. 0. 0.]
    """
    if padlen is None and padtype is not None:
        (checked,) = _sections("sosfiltfilt", sos)
        sections: Any = sos    # itself: a NumPy array has values under jit, too
        absent = [int((sections[:, k] == 0).sum()) for k in (2, 5)]
        padlen = 3 * (2 * _axis_size(checked, 0) + 1 - min(absent))
    return _sosfiltfilt(sos, x, axis=axis, padtype=padtype, padlen=padlen)


@fused(static=("axis", "padtype", "padlen"))
def _sosfiltfilt(sos: ArrayLike, x: ArrayLike, *, axis: int, padtype: str | None, padlen: object
                 ) -> Array:
    sos, x = _sections("sosfiltfilt", sos, x)
    edge = _edge("sosfiltfilt", padtype, padlen, 0)
    rest = sosfilt_zi(sos)
    rest = rest.reshape((_axis_size(sos, 0), *[1] * (typeof(x).ndim - 1), 2))
    return _there_and_back("sosfiltfilt", x, axis, padtype, edge, lambda x, level: sosfilt(
        sos, x, zi=rest * level)[0])


# Fewer samples -----------------------------------------------------------------------------------

@fused(static=("q", "n", "ftype", "axis", "zero_phase"))
def decimate(x: ArrayLike, q: int, n: int | None = None, ftype: str = "iir", axis: int = -1,
             zero_phase: bool = True) -> Array:
    """Every q-th sample of a signal, after a filter against aliasing.

    Args:
      q: one sample of so many is kept.
      n: the order of the filter; 8, or 20 q for "fir", unless given.
      ftype: "iir": Chebyshev's filter of the first kind with a ripple of 0.05 dB up to 0.8 of what
        can be represented; "fir": a sinc in a Hamming window.
      zero_phase: without delay: filtered forwards and backwards, or "fir" with its middle in place.
    Returns: An array like x, with ceil(samples / q) along the axis.

    Raises ValueError for another ftype, numbers that are not positive, and, for "iir" with
    `zero_phase`, no more samples than 3 (n + 1).

    >>> x = onp.sin(onp.arange(200.) / 20)
    >>> y = olympus.scipy.signal.decimate(x, 4)
    >>> print(y.shape, onp.allclose(y[10:-10], x[40:-40:4], atol=0.02))
    (50,) True
    """
    if ftype not in ("iir", "fir"):
        raise ValueError(f"decimate: ftype {ftype!r} given; 'iir' or 'fir' is required.")
    q = count_of("decimate", "q", q, 1, 10_000)
    order = (8 if ftype == "iir" else 20 * q) if n is None else count_of(
        "decimate", "n", n, 1, 1000 if ftype == "iir" else 2**31 - 1)
    (x,) = _floats("decimate", x)
    x = moveaxis(x, canonical_axis(axis, typeof(x).ndim, "decimate"), -1)
    real = dtypes.to_real_dtype(x.dtype)
    if ftype == "iir":
        sections = chebyshev_sections(order, 0.05, 0.8 / q).astype(real)
        y = (_sosfiltfilt(sections, x, axis=-1, padtype="odd", padlen=3 * (order + 1))
             if zero_phase else sosfilt(sections, x))
    else:
        window = weights("decimate", "hamming", order + 1, True)
        taps = sinc_taps(order + 1, (0, 1 / q), window).astype(real)
        delay = order // 2 if zero_phase else 0
        rest = zeros((*typeof(x).shape[:-1], delay), x.dtype)
        y = lfilter(taps, 1.0, concatenate([x, rest], -1))[..., delay:]
    return moveaxis(y[..., ::q], -1, axis)


# Responses ---------------------------------------------------------------------------------------

def _phases(name: str, worN: object, whole: bool, fs: ArrayLike, nyquist: bool, count: int
            ) -> tuple[Array, Array]:
    """(frequencies[m], exp(-i ω k)[m, count])."""
    fs = number(name, fs)
    real = dtypes.default_float()
    if worN is None or isinstance(worN, (int, np.integer)):
        size = 512 if worN is None else count_of(name, "worN", worN)
        omega = np.linspace(0, 2 * np.pi if whole else np.pi, size,
                            endpoint=nyquist and not whole)
        turns = np.exp(-1j * omega[:, None] * np.arange(count))
        turns = asarray(turns, dtypes.to_complex_dtype(real))
        return asarray(omega / (2 * np.pi), real) * fs, turns
    (points,) = _floats(name, worN)
    omega = 2 * np.pi * points.reshape((-1,)) / fs
    return points.reshape((-1,)), exp(-1j * omega[:, None] * np.arange(count, dtype=omega.dtype))


@fused
def _ratio(b: ArrayLike, a: ArrayLike, turns: Array) -> Array:
    b, a = _coefficients("freqz", b, a)
    return (turns @ b) / (turns @ a)


@unasked
def freqz(b: ArrayLike, a: ArrayLike = 1, worN: ArrayLike | None = 512, whole: bool = False,
          plot: Callable[[Array, Array], object] | None = None, fs: ArrayLike = 6.283185307179586,
          include_nyquist: bool = False) -> tuple[Array, Array]:
    """The response of a filter in frequency: Σ b[k] exp(-i ω k) / Σ a[k] exp(-i ω k).

    Args:
      b, a: the coefficients above and below, vectors.
      worN: so many frequencies from 0 on, evenly spaced; or an array of them, in units of `fs`.
      whole: up to fs, else to fs / 2.
      plot: a function that is called with the result.
      fs: samples per unit of time; 2π, so that frequencies are angles, unless given.
      include_nyquist: the last frequency is fs / 2 itself.
    Returns: (frequencies[m], responses[m], complex).

    Raises ValueError for coefficients that are no vectors.

    >>> w, h = olympus.scipy.signal.freqz(onp.array([0.5, 0.5]), worN=3, include_nyquist=True)
    >>> print(w.round(4), abs(h).round(4))
    [0.     1.5708 3.1416] [1.     0.7071 0.    ]
    """
    b, a = _floats("freqz", b, a)
    count = max(typeof(b).size, typeof(a).size)
    w, turns = _phases("freqz", worN, whole, fs, include_nyquist, count)
    h = _ratio(b, a, turns)
    if plot is not None:
        plot(w, h)
    return w, h


@fused
def _ratios(sos: ArrayLike, turns: Array) -> Array:
    (sos,) = _sections("sosfreqz", sos)
    return reductions.prod((turns @ sos[:, :3].T) / (turns @ sos[:, 3:].T), -1)


@unasked
def sosfreqz(sos: ArrayLike, worN: ArrayLike | None = 512, whole: bool = False,
             fs: ArrayLike = 6.283185307179586) -> tuple[Array, Array]:
    """The response in frequency of sections of second order, one after the other.

    Args: worN, whole, fs: as for `freqz`.
    Returns: (frequencies[m], responses[m], complex).

    Raises ValueError for another shape.

    >>> w, h = olympus.scipy.signal.sosfreqz(onp.array([[0.5, 0.5, 0., 1., 0., 0.]]), worN=2)
    >>> print(w.round(4), abs(h).round(4))
    [0.     1.5708] [1.     0.7071]
    """
    w, turns = _phases("sosfreqz", worN, whole, fs, False, 3)
    return w, _ratios(sos, turns)


complete_docstrings(globals(), {
    "x": "the signal; integers become floats.",
    "axis": "along which.",
    "b, a": "the coefficients above and below, vectors; a[0] is not 0.",
    "sos": "[k, 6]: b0, b1, b2, a0, a1, a2 of each section.",
})
