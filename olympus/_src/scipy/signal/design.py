"""Coefficients of filters: recursive ones from analogue prototypes, and windowed sincs.

They are computed in float64 on the host, of numbers that are known while tracing. Sources: Parks
and Burrus, "Digital filter design", 1987, chapter 7; Oppenheim and Schafer, "Discrete-time signal
processing", 1999, chapter 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike, DTypeLike
from ...base.util import by_numpy, real_number
from ...jit.fused import unasked
from ...numpy.creation import asarray, ones_like
from ...numpy.joining import stack
from ...numpy.promote import array_args, inexact, promote_dtypes
from ...numpy.trigonometry import cos, tan
from ...types import dtypes
from ...types.shape import static_int
from ..linalg.arguments import count_of, options
from .windows import weights

Zpk = tuple[np.ndarray, np.ndarray, float]     # zeros, poles, gain

_BANDS = {alias: name for name, aliases in {
    "lowpass": "l lp low lowpass", "highpass": "h hp high highpass",
    "bandpass": "bp pass band bandpass", "bandstop": "bs stop bands bandstop"}.items()
    for alias in aliases.split()}


def _filter_array(x: ArrayLike) -> Array:
    real = dtypes.default_float()
    return asarray(x, dtypes.to_complex_dtype(real) if np.iscomplexobj(x) else real)


def _host_numbers(name: str, what: str, x: ArrayLike | Sequence[float],
                  dtype: DTypeLike | None = None) -> np.ndarray:
    """An array of numbers on the host; TypeError for anything else."""
    array = by_numpy(name, np.asarray, x)
    if array.dtype.kind not in ("biuf" if dtype else "biufc"):
        raise TypeError(f"{name}: {what} {x!r:.60} given; {'real ' if dtype else ''}numbers are "
                        "required.")
    return array.astype(dtype) if dtype else array


def _host_vector(name: str, what: str, x: ArrayLike | Sequence[float],
                 dtype: DTypeLike | None = None) -> np.ndarray:
    """A vector of numbers on the host."""
    vector = np.atleast_1d(_host_numbers(name, what, x, dtype))
    if vector.ndim != 1:
        raise ValueError(f"{name}: {what} of shape {vector.shape} given; a vector is required.")
    return vector


# Prototypes: analogue lowpass filters with the edge 1 ---------------------------------------------

def _angles(order: int) -> np.ndarray:
    return np.pi * np.arange(1 - order, order, 2) / (2 * order)


def _flat(order: int) -> Zpk:
    return np.zeros(0), -np.exp(1j * _angles(order)), 1.0


def _rippled(order: int, ripple: float) -> Zpk:
    size = math.sqrt(10 ** (ripple / 10) - 1)
    poles = -np.sinh(math.asinh(1 / size) / order + 1j * _angles(order))
    even = math.hypot(1, size) if order % 2 == 0 else 1.0
    return np.zeros(0), poles, np.prod(-poles).real / even


def _stopping(order: int, attenuation: float) -> Zpk:
    depth = math.asinh(math.sqrt(10 ** (attenuation / 10) - 1)) / order
    angles = _angles(order)
    zeros = 1j / np.sin(angles[angles != 0])
    on_circle: Any = np.exp(1j * angles)
    poles = -1 / (math.sinh(depth) * on_circle.real + 1j * math.cosh(depth) * on_circle.imag)
    return zeros, poles, (np.prod(-poles) / np.prod(-zeros)).real


# From the prototype to a filter -------------------------------------------------------------------

def _with_band(filter: Zpk, band: str, edges: np.ndarray) -> Zpk:
    """The prototype with its band between other edges."""
    zeros, poles, gain = filter
    less = len(poles) - len(zeros)      # zeros at infinity
    if band == "lowpass":
        return zeros * edges[0], poles * edges[0], gain * edges[0] ** less
    inverted = gain * (np.prod(-zeros) / np.prod(-poles)).real
    if band == "highpass":
        return np.append(edges[0] / zeros, np.zeros(less)), edges[0] / poles, inverted
    width, middle = edges[1] - edges[0], math.sqrt(edges[0] * edges[1])

    def split(x: np.ndarray) -> np.ndarray:
        root = np.sqrt(x.astype(complex) ** 2 - middle ** 2)
        return np.concatenate([x + root, x - root])

    if band == "bandpass":
        zeros, poles = (split(x * width / 2) for x in (zeros, poles))
        return np.append(zeros, np.zeros(less)), poles, gain * width ** less
    zeros, poles = (split(width / 2 / x) for x in (zeros, poles))
    zeros = np.concatenate([zeros, [1j * middle] * less, [-1j * middle] * less])
    return zeros, poles, inverted


def _digital(filter: Zpk) -> Zpk:
    """The digital filter by the bilinear transformation, at four times half the sampling rate."""
    zeros, poles, gain = filter
    factor = (np.prod(4 - zeros) / np.prod(4 - poles)).real
    return (np.append((4 + zeros) / (4 - zeros), -np.ones(len(poles) - len(zeros))),
            (4 + poles) / (4 - poles), gain * factor)


def _designed(name: str, prototype: Zpk, Wn: float | Sequence[float], btype: str, analog: bool,
              fs: float | None) -> Zpk:
    options(name, "btype", btype, _BANDS)
    band, edges = _BANDS[btype], _host_vector(name, "Wn", Wn, float)
    wanted = 2 if band.startswith("band") else 1
    if len(edges) != wanted:
        raise ValueError(f"{name}: Wn {edges.tolist()} given; of {band!r} {wanted} are required.")
    if analog and fs is not None:
        raise ValueError(f"{name}: analog=True and fs {fs!r} given; an analogue filter has no "
                         "samples: one of them is required.")
    if fs is not None:
        edges = 2 * edges / real_number(fs, f"{name}: fs")
    ends = [0, *edges] if analog else [0, *edges, 1]
    if not (np.diff(ends) > 0).all():
        limit = "" if analog else f" and below {'1' if fs is None else 'fs / 2'}"
        raise ValueError(f"{name}: Wn {np.asarray(Wn).tolist()} given; ascending numbers above 0"
                         f"{limit} are required.")
    if analog:
        return _with_band(prototype, band, edges)
    return _digital(_with_band(prototype, band, 4 * np.tan(np.pi * edges / 2)))


def _given_as(name: str, filter: Zpk, output: str) -> Any:
    if output == "zpk":
        return _filter_array(filter[0]), _filter_array(filter[1]), _filter_array(filter[2])
    if output == "ba":
        return tuple(map(_filter_array, _polynomials(*filter)))
    if output == "sos":
        return _filter_array(_paired(*filter))
    raise ValueError(f"{name}: output {output!r} given; 'ba', 'zpk' or 'sos' is required.")


def _filter_order(name: str, N: int) -> int:
    return count_of(name, "N", N, 1, 1000)


def _decibels(name: str, what: str, value: float) -> float:
    number = real_number(value, f"{name}: {what}")
    if not 0 < number < 3000:
        raise ValueError(f"{name}: {what} {value!r} given; a positive number of decibels below "
                         "3000 is required.")
    return number


def butter(N: int, Wn: float | Sequence[float], btype: str = "low", analog: bool = False,
           output: str = "ba", fs: float | None = None) -> Any:
    """Butterworth's filter, which is as flat as can be in its band.

    The numbers are computed on the host in float64. In float32, "sos" keeps more of them than "ba".

    Args:
      N: the order; filters of a band have twice as many poles.
      Wn: the edge, where the response is 1/√2, or the two of a band: in units of half the samples'
        frequency, or of `fs`; of an analogue filter, an angular frequency.
      btype: "lowpass", "highpass", "bandpass" or "bandstop", or SciPy's short names.
      analog: an analogue filter.
      output: "ba", coefficients above and below; "zpk", zeros, poles and gain; "sos", sections.
    Returns: (b[N + 1], a[N + 1]), (z, p, k) or sos[k, 6].

    Raises ValueError for edges that are not within (0, 1), or not ascending, and unknown names.

    >>> b, a = olympus.scipy.signal.butter(2, 0.5)
    >>> print(b.round(4), abs(a).round(4))
    [0.2929 0.5858 0.2929] [1.     0.     0.1716]
    """
    filter = _designed("butter", _flat(_filter_order("butter", N)), Wn, btype, analog, fs)
    return _given_as("butter", filter, output)


def cheby1(N: int, rp: float, Wn: float | Sequence[float], btype: str = "low",
           analog: bool = False, output: str = "ba", fs: float | None = None) -> Any:
    """Chebyshev's filter of the first kind: equal ripples in the band, and a steep edge.

    Args:
      N, Wn, btype, analog, output, fs: as for `butter`; at an edge the response is -rp decibels.
      rp: the ripple in decibels.
    Returns: As `butter`.

    Raises ValueError where `butter` does, and for a ripple that is not positive.

    >>> sos = olympus.scipy.signal.cheby1(4, 1.0, 0.2, output="sos")
    >>> print(sos.shape)
    (2, 6)
    """
    prototype = _rippled(_filter_order("cheby1", N), _decibels("cheby1", "rp", rp))
    return _given_as("cheby1", _designed("cheby1", prototype, Wn, btype, analog, fs), output)


def cheby2(N: int, rs: float, Wn: float | Sequence[float], btype: str = "low",
           analog: bool = False, output: str = "ba", fs: float | None = None) -> Any:
    """Chebyshev's filter of the second kind: flat in its band, equal ripples beyond.

    Args:
      N, Wn, btype, analog, output, fs: as for `butter`; an edge is where -rs decibels are reached.
      rs: how far down the ripples are, in decibels.
    Returns: As `butter`.

    Raises ValueError where `butter` does, and for an attenuation that is not positive.

    >>> z, p, k = olympus.scipy.signal.cheby2(3, 40.0, 0.2, output="zpk")
    >>> print(abs(z).round(4))
    [1. 1. 1.]
    """
    prototype = _stopping(_filter_order("cheby2", N), _decibels("cheby2", "rs", rs))
    return _given_as("cheby2", _designed("cheby2", prototype, Wn, btype, analog, fs), output)


def chebyshev_sections(order: int, ripple: float, edge: float) -> np.ndarray:
    """Sections [k, 6] of a lowpass filter of `cheby1`, on the host."""
    return _paired(*_designed("cheby1", _rippled(order, ripple), edge, "low", False, None))


@unasked
def iirnotch(w0: ArrayLike, Q: ArrayLike, fs: ArrayLike = 2.0) -> tuple[Array, Array]:
    """The filter of second order that removes one frequency.

    Differentiable in all parameters. Source: Orfanidis, "Introduction to signal processing", 1996.

    Args:
      w0: the frequency, in units of half the samples' frequency, or of `fs`.
      Q: w0 by the width of the notch, at 1/√2.
    Returns: (b[3], a[3]).

    >>> b, a = olympus.scipy.signal.iirnotch(0.5, 10.0)
    >>> w, h = olympus.scipy.signal.freqz(b, a, worN=2)
    >>> print(abs(h).round(4))
    [1. 0.]
    """
    return _resonance(w0, Q, fs, True)


@unasked
def iirpeak(w0: ArrayLike, Q: ArrayLike, fs: ArrayLike = 2.0) -> tuple[Array, Array]:
    """The filter of second order that keeps one frequency.

    Args: w0, Q, fs: as for `iirnotch`; the width is the passed band's.
    Returns: (b[3], a[3]).

    >>> b, a = olympus.scipy.signal.iirpeak(0.5, 10.0)
    >>> w, h = olympus.scipy.signal.freqz(b, a, worN=2)
    >>> print(abs(h).round(4))
    [0. 1.]
    """
    return _resonance(w0, Q, fs, False)


def _resonance(w0: ArrayLike, Q: ArrayLike, fs: ArrayLike, notch: bool) -> tuple[Array, Array]:
    name = "iirnotch" if notch else "iirpeak"
    w0, Q, fs = (inexact(asarray(x)) for x in promote_dtypes(
        name, *array_args(name, w0, Q, fs), inexact=True))
    angle = 2 * np.pi * w0 / fs
    gain = 1 / (1 + tan(angle / Q / 2))
    swing = -2 * cos(angle)
    one = ones_like(gain)
    b = gain * stack([one, swing, one]) if notch else (1 - gain) * stack([one, one * 0, -one])
    return b, stack([one, gain * swing, 2 * gain - 1])


# Forms of a filter --------------------------------------------------------------------------------

def _polynomials(zeros: np.ndarray, poles: np.ndarray, gain: float
                 ) -> tuple[np.ndarray, np.ndarray]:
    """Coefficients, real where roots come with their conjugates."""
    def multiplied(roots: np.ndarray) -> np.ndarray:
        coefficients = np.poly(roots) if len(roots) else np.ones(1)
        paired = np.allclose(np.sort_complex(roots), np.sort_complex(np.conj(roots)), 1e-10, 1e-10)
        return np.real(coefficients) if paired else coefficients

    return gain * multiplied(zeros), multiplied(poles)


def _the_only_number(array: np.ndarray, name: str, k: ArrayLike) -> np.ndarray:
    if array.size != 1:
        raise ValueError(f"{name}: k {k!r:.60} given; a number is required.")
    return array


def zpk2tf(z: ArrayLike, p: ArrayLike, k: ArrayLike) -> tuple[Array, Array]:
    """Convert a filter's zeros, poles and gain to its coefficients.

    Args: z, p: vectors, real or complex; k: a number. Values that are known while tracing.
    Returns: (b, a), highest power first; real where complex roots come with their conjugates.

    >>> print(*olympus.scipy.signal.zpk2tf([-1.0], [0.5, -0.5], 3.0))
    [3. 3.] [ 1.    0.   -0.25]
    """
    (gain,) = _the_only_number(_host_vector("zpk2tf", "k", k), "zpk2tf", k)
    b, a = _polynomials(_host_vector("zpk2tf", "z", z), _host_vector("zpk2tf", "p", p), gain)
    return _filter_array(b), _filter_array(a)


def tf2zpk(b: ArrayLike, a: ArrayLike) -> tuple[Array, Array, Array]:
    """Convert a filter's coefficients to its zeros, poles and gain.

    Args: b, a: vectors of coefficients, highest power first, known while tracing.
    Returns: (z, p, k).

    Raises ValueError for denominators that are 0.

    >>> z, p, k = olympus.scipy.signal.tf2zpk([3.0, 3.0], [1.0, 0.0, -0.25])
    >>> print(z, abs(p), k)
    [-1.] [0.5 0.5] 3.0
    """
    above, below = (np.trim_zeros(_host_vector("tf2zpk", what, x), "f")
                    for what, x in (("b", b), ("a", a)))
    if not len(below):
        raise ValueError("tf2zpk: a of zeros given; a coefficient that is not 0 is required.")
    gain = above[0] / below[0] if len(above) else 0.0
    return _filter_array(np.roots(above)), _filter_array(np.roots(below)), _filter_array(gain)


def sos2tf(sos: ArrayLike) -> tuple[Array, Array]:
    """Convert second-order sections, one after the other, to the coefficients of one filter.

    Args: sos: [k, 6]: b0, b1, b2, a0, a1, a2 of each section, known while tracing.
    Returns: (b[2 k + 1], a[2 k + 1]).

    >>> print(*olympus.scipy.signal.sos2tf([[1., 1., 0., 1., 0., 0.]]))
    [1. 1. 0.] [1. 0. 0.]
    """
    b = a = np.ones(1)
    sections = _host_numbers("sos2tf", "sos", sos)
    if sections.shape[1:] != (6,):
        raise ValueError(f"sos2tf: sos of shape {sections.shape} given; sections [k, 6] are "
                         "required.")
    for section in sections:
        b, a = np.convolve(b, section[:3]), np.convolve(a, section[3:])
    return _filter_array(b), _filter_array(a)


def zpk2sos(z: ArrayLike, p: ArrayLike, k: ArrayLike) -> Array:
    """Convert zeros, poles and a gain to second-order sections.

    Poles near the unit circle are last, each with the zeros next to it, and the gain is in the
    first section: SciPy's pairing "nearest".

    Args: z, p: vectors, complex ones with their conjugates; k: a number. Known while tracing.
    Returns: [k, 6]: b0, b1, b2, 1, a1, a2 of each section.

    Raises ValueError for complex roots without conjugates.

    >>> print(olympus.scipy.signal.zpk2sos([-1.0, -1.0], [0.5, -0.5], 2.0))
    [[ 2.    4.    2.    1.    0.   -0.25]]
    """
    return _filter_array(_paired(_host_vector("zpk2sos", "z", z), _host_vector("zpk2sos", "p", p),
                                 real_number(k, "zpk2sos: k")))


def _upper(roots: np.ndarray) -> list[complex]:
    """Real roots, and those above the axis, whose conjugates have to be there."""
    if not np.isfinite(roots).all():
        raise ValueError(f"zpk2sos: roots {roots!r:.60} given; finite ones are required.")
    eps = 100 * np.finfo(float).eps
    real = [complex(x.real) for x in roots if abs(x.imag) <= eps * abs(x)]
    above = [x for x in roots if x.imag > eps * abs(x)]
    below = [x for x in roots if x.imag < -eps * abs(x)]
    if len(above) != len(below) or not np.allclose(
            np.sort_complex(above), np.sort_complex(np.conj(below)), 1e-8, 1e-10):
        raise ValueError("zpk2sos: complex roots without their conjugates given; sections are real:"
                         " pairs are required.")
    return above + real


def _paired(zeros: np.ndarray, poles: np.ndarray, gain: float) -> np.ndarray:
    size = max(len(zeros), len(poles), 1)
    size += size % 2
    zs, ps = (_upper(np.append(x, np.zeros(size - len(x)))) for x in (zeros, poles))

    def take(roots: list[complex], near: ArrayLike, kind: bool | None = None) -> complex:
        """The root next to a place; of the real ones, of the complex ones, or of all."""
        among = [x for x in roots if kind is None or (x.imag == 0) == kind]
        table = min(among, key=lambda x: abs(x - near))
        roots.remove(table)
        return table

    def reals(roots: list[complex]) -> int:
        return sum(x.imag == 0 for x in roots)

    sections = []
    while ps:
        pole = min(ps, key=lambda x: abs(1 - abs(x)))
        ps.remove(pole)
        # The last real zero is for a pole that is real.
        alone = pole.imag != 0 and reals(zs) == 1
        zero = take(zs, pole, False if alone else None)
        if pole.imag:
            two = pole.conjugate()
            other = zero.conjugate() if zero.imag else take(zs, pole, True)
        elif zero.imag:
            two, other = take(ps, zero, True), zero.conjugate()
        else:
            two = min((x for x in ps if x.imag == 0), key=lambda x: abs(1 - abs(x)))
            ps.remove(two)
            other = take(zs, two, True)
        sections.append(np.real([*np.poly([zero, other]), *np.poly([pole, two])]))
    table = np.array(sections[::-1])
    table[0, :3] *= gain
    return table


# Windowed sincs -----------------------------------------------------------------------------------

def kaiser_beta(a: float) -> float:
    """The parameter of Kaiser's window for ripples of an attenuation.

    Args: a: the attenuation in decibels, a number.

    >>> print(round(olympus.scipy.signal.kaiser_beta(65.0), 4))
    6.2043
    """
    a = real_number(a, "kaiser_beta: a")
    if a > 50:
        return 0.1102 * (a - 8.7)
    return 0.5842 * (a - 21) ** 0.4 + 0.07886 * (a - 21) if a > 21 else 0.0


def kaiser_atten(numtaps: int, width: float) -> float:
    """The attenuation, in decibels, of a filter in Kaiser's window.

    Args: numtaps: the number of coefficients; width: of the edge, in half the samples' frequency.

    >>> print(round(olympus.scipy.signal.kaiser_atten(211, 0.0375), 2))
    64.48
    """
    width = real_number(width, "kaiser_atten: width")
    return 2.285 * (static_int(numtaps, "kaiser_atten", "numtaps") - 1) * math.pi * width + 7.95


def kaiserord(ripple: float, width: float) -> tuple[int, float]:
    """The size and the parameter of Kaiser's window for ripples and an edge.

    Args: ripple: the attenuation in decibels; width: of the edge, in half the samples' frequency.
    Returns: (number of coefficients, beta).

    Raises ValueError for ripples above -8 decibels, where the formulas do not hold.

    >>> taps, beta = olympus.scipy.signal.kaiserord(65.0, 0.05)
    >>> print(taps, round(beta, 4))
    160 6.2043
    """
    depth, width = (real_number(ripple, "kaiserord: ripple"),
                    real_number(width, "kaiserord: width"))
    depth = abs(depth)
    if not 8 <= depth < math.inf or not width > 0:
        raise ValueError(f"kaiserord: ripple {ripple!r} and width {width!r} given; at least 8 "
                         "decibels and a positive width are required.")
    return math.ceil((depth - 7.95) / 2.285 / (math.pi * width) + 1), kaiser_beta(depth)


def sinc_taps(size: int, edges: Sequence[float], window: np.ndarray, scale: bool = True
              ) -> np.ndarray:
    """A filter of the bands between pairs of edges in [0, 1], 1 in the middle of the first."""
    times = np.arange(size) - (size - 1) / 2
    taps = sum(high * np.sinc(high * times) - low * np.sinc(low * times)
               for low, high in zip(edges[::2], edges[1::2], strict=True)) * window
    if not scale:
        return taps
    low, high = edges[:2]
    middle = 0 if low == 0 else 1 if high == 1 else (low + high) / 2
    return taps / (taps * np.cos(np.pi * times * middle)).sum()


def firwin(numtaps: int, cutoff: float | Sequence[float], *, width: float | None = None,
           window: str | tuple[Any, ...] | float = "hamming", pass_zero: bool | str = True,
           scale: bool = True, fs: float | None = None) -> Array:
    """A symmetric filter of finite length: sincs of its bands in a window.

    Args:
      numtaps: the number of coefficients.
      cutoff: the edges, ascending, in units of half the samples' frequency, or of `fs`.
      width: of the edges: Kaiser's window that makes them so, in place of `window`.
      window: as for `get_window`.
      pass_zero: whether the frequency 0 is in a band; or "lowpass", "highpass", "bandpass",
        "bandstop".
      scale: the response is 1 in the middle of the first band, or at its end where it reaches 0 or
        half the samples' frequency.
    Returns: float[numtaps].

    Raises ValueError for edges that are not ascending within (0, 1), and for an even number of
    coefficients where half the samples' frequency shall pass.

    >>> print(olympus.scipy.signal.firwin(3, 0.5).round(4))
    [0.0462 0.9076 0.0462]
    """
    size = count_of("firwin", "numtaps", numtaps)
    half = 1.0 if fs is None else real_number(fs, "firwin: fs") / 2
    edges = _host_vector("firwin", "cutoff", cutoff, float) / half
    if size < 1 or not len(edges) or not (np.diff([0, *edges, 1]) > 0).all():
        raise ValueError(f"firwin: numtaps {size} and cutoff {np.asarray(cutoff).tolist()} given; "
                         "a positive int, and edges ascending between 0 and half the samples' "
                         "frequency, are required.")
    if isinstance(pass_zero, str):
        wanted = {"lowpass": (True, 1), "highpass": (False, 1), "bandstop": (True, 2),
                  "bandpass": (False, 2)}.get(pass_zero)
        if wanted is None or (len(edges) > 1) != (wanted[1] > 1):
            raise ValueError(f"firwin: pass_zero {pass_zero!r} and {len(edges)} edges given; True, "
                             "False, 'lowpass' or 'highpass' of one edge, 'bandpass' or 'bandstop' "
                             "of several are required.")
        pass_zero = wanted[0]
    bands = [*([0.0] if pass_zero else []), *edges.tolist()]
    bands += [1.0] if len(bands) % 2 else []
    if bands[-1] == 1 and size % 2 == 0:
        raise ValueError(f"firwin: numtaps {size} given; half the samples' frequency cannot pass "
                         "an even number of coefficients: an odd one is required.")
    if width is not None:
        window = ("kaiser", kaiser_beta(kaiser_atten(
            size, real_number(width, "firwin: width") / half)))
    return _filter_array(sinc_taps(size, bands, weights("firwin", window, size, True), scale))


complete_docstrings(globals(), {
    "fs": "samples per unit of time.",
})
