"""Window functions: weights that taper a finite signal towards both ends.

All are computed on the host in double precision and rounded once; sizes and shapes are static.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from ...base.docstrings import complete_docstrings
from ...base.typing import Array, F
from ...base.util import real_number
from ...numpy.creation import asarray
from ...types import dtypes


def _sampled(name: str, M: int, sym: bool, values: Callable[[np.ndarray, int], np.ndarray]) -> Any:
    """values(0 … m-1, m) of m = M points, or of M + 1 without the last."""
    try:
        size = operator.index(M)
    except TypeError:
        raise TypeError(f"{name}: M {M!r} given; an int is required.") from None
    if not 0 <= size < 2**31:
        raise ValueError(f"{name}: M {size} given; a number from 0 to 2**31 - 1 is required.")
    if size < 2:
        return np.ones(size)
    m = size + (not sym)
    return values(np.arange(m), m)[:size]


def _cosines(name: str, M: int, sym: bool, weights: Sequence[float]) -> Any:
    """Σ ± weights[k] cos(2πkj / (m-1)), the signs alternating."""
    def values(j: np.ndarray, m: int) -> np.ndarray:
        return sum(((-1) ** k * w * np.cos(2 * np.pi * k * j / (m - 1))
                    for k, w in enumerate(weights)), np.zeros(len(j)))

    return _sampled(name, M, sym, values)


def _window_array(values: np.ndarray) -> Array:
    return asarray(values, dtypes.default_float())


def _window(fun: F) -> F:
    """Decorator of a function that gives weights as NumPy's: as users call it, an array of them."""
    @functools.wraps(fun)
    def call(*args: float | Sequence[float], **options: object) -> Array:
        return _window_array(fun(*args, **options))

    return cast("F", call)


def _amplitudes(a: Sequence[float] | str, what: str) -> tuple[float, ...]:
    """A sequence of real numbers."""
    if not isinstance(a, (list, tuple, np.ndarray)) or not np.size(a):
        raise TypeError(f"{what} {a!r:.60} given; a sequence of real numbers is required.")
    return tuple(real_number(x, what) for x in a)


def _bell(name: str, M: int, p: float, sig: float, sym: bool) -> Any:
    if sig == 0:
        raise ValueError(f"{name}: a width of 0 given; another number is required.")
    return _sampled(name, M, sym, lambda j, m: np.exp(
        -0.5 * np.abs((j - (m - 1) / 2) / sig) ** (2 * p)))


@_window
def boxcar(M: int, sym: bool = True) -> Array:
    """The rectangular window: ones.

    >>> print(olympus.scipy.signal.windows.boxcar(3))
    [1. 1. 1.]
    """
    return _sampled("boxcar", M, sym, lambda j, m: np.ones(m))


@_window
def triang(M: int, sym: bool = True) -> Array:
    """The triangular window that does not touch zero.

    >>> print(olympus.scipy.signal.windows.triang(3))
    [0.5 1.  0.5]
    """
    return _sampled("triang", M, sym,
                    lambda j, m: 1 - np.abs(2 * j - m + 1) / (m + m % 2))


@_window
def bartlett(M: int, sym: bool = True) -> Array:
    """The triangular window that begins and ends with zero.

    >>> print(olympus.scipy.signal.windows.bartlett(3))
    [0. 1. 0.]
    """
    return _sampled("bartlett", M, sym, lambda j, m: 1 - np.abs(2 * j / (m - 1) - 1))


@_window
def parzen(M: int, sym: bool = True) -> Array:
    """Parzen's window, four boxcars convolved.

    >>> print(olympus.scipy.signal.windows.parzen(1))
    [1.]
    """
    def values(j: np.ndarray, m: int) -> np.ndarray:
        t = np.abs(2 * j - m + 1) / m
        return np.where(t <= 0.5 - 0.5 / m, 1 - 6 * t ** 2 * (1 - t), 2 * (1 - t) ** 3)

    return _sampled("parzen", M, sym, values)


@_window
def bohman(M: int, sym: bool = True) -> Array:
    """Bohman's window, two half periods of a cosine convolved.

    >>> print(olympus.scipy.signal.windows.bohman(3))
    [0. 1. 0.]
    """
    def values(j: np.ndarray, m: int) -> np.ndarray:
        t = np.abs(2 * j / (m - 1) - 1)
        w = (1 - t) * np.cos(np.pi * t) + np.sin(np.pi * t) / np.pi
        w[[0, -1]] = 0
        return w

    return _sampled("bohman", M, sym, values)


@_window
def cosine(M: int, sym: bool = True) -> Array:
    """Half a period of a sine.

    >>> print(olympus.scipy.signal.windows.cosine(3).round(2))
    [0.5 1.  0.5]
    """
    return _sampled("cosine", M, sym, lambda j, m: np.sin(np.pi * (j + 0.5) / m))


@_window
def hann(M: int, sym: bool = True) -> Array:
    """The window of von Hann, a raised cosine that ends at 0.

    >>> print(olympus.scipy.signal.windows.hann(3))
    [0. 1. 0.]
    """
    return _cosines("hann", M, sym, (0.5, 0.5))


@_window
def hamming(M: int, sym: bool = True) -> Array:
    """Hamming's window, a raised cosine that ends above 0.

    >>> print(olympus.scipy.signal.windows.hamming(3).round(2))
    [0.08 1.   0.08]
    """
    return _cosines("hamming", M, sym, (0.54, 0.46))


@_window
def blackman(M: int, sym: bool = True) -> Array:
    """Blackman's window of three cosines.

    >>> print(abs(olympus.scipy.signal.windows.blackman(3)).round(2))
    [0. 1. 0.]
    """
    return _cosines("blackman", M, sym, (0.42, 0.5, 0.08))


@_window
def nuttall(M: int, sym: bool = True) -> Array:
    """Nuttall's window of four cosines, of least side lobes with a continuous derivative.

    >>> print(olympus.scipy.signal.windows.nuttall(3).round(3))
    [0. 1. 0.]
    """
    return _cosines("nuttall", M, sym, (0.3635819, 0.4891775, 0.1365995, 0.0106411))


@_window
def blackmanharris(M: int, sym: bool = True) -> Array:
    """The window of Blackman and Harris, of four cosines.

    >>> print(olympus.scipy.signal.windows.blackmanharris(3).round(3))
    [0. 1. 0.]
    """
    return _cosines("blackmanharris", M, sym, (0.35875, 0.48829, 0.14128, 0.01168))


@_window
def flattop(M: int, sym: bool = True) -> Array:
    """The flat-topped window, which measures amplitudes.

    >>> print(abs(olympus.scipy.signal.windows.flattop(3)).round(2))
    [0. 1. 0.]
    """
    return _cosines("flattop", M, sym, (0.21557895, 0.41663158, 0.277263158, 0.083578947,
                                        0.006947368))


@_window
def general_cosine(M: int, a: Sequence[float], sym: bool = True) -> Array:
    """A sum of cosines, Σ (-1)ᵏ a[k] cos(2πkj / (M-1)).

    Args: a: the amplitudes.

    >>> print(olympus.scipy.signal.windows.general_cosine(3, [0.5, 0.5]))
    [0. 1. 0.]
    """
    return _cosines("general_cosine", M, sym, _amplitudes(a, "general_cosine: a"))


@_window
def general_hamming(M: int, alpha: float, sym: bool = True) -> Array:
    """A raised cosine, alpha - (1 - alpha) cos(2πj / (M-1)).

    Args: alpha: the mean.

    >>> print(olympus.scipy.signal.windows.general_hamming(3, 0.5))
    [0. 1. 0.]
    """
    alpha = real_number(alpha, "general_hamming: alpha")
    return _cosines("general_hamming", M, sym, (alpha, 1 - alpha))


@_window
def gaussian(M: int, std: float, sym: bool = True) -> Array:
    """The bell curve of a standard deviation of `std` samples.

    Args: std: the standard deviation.

    >>> print(olympus.scipy.signal.windows.gaussian(3, 1.0).round(2))
    [0.61 1.   0.61]
    """
    return _bell("gaussian", M, 1, real_number(std, "gaussian: std"), sym)


@_window
def general_gaussian(M: int, p: float, sig: float, sym: bool = True) -> Array:
    """exp(-|t / sig|^(2p) / 2): a bell curve for p = 1, the flatter the larger p is.

    Args:
      p: the form.
      sig: the width, in samples.

    >>> print(olympus.scipy.signal.windows.general_gaussian(3, 1.0, 1.0).round(2))
    [0.61 1.   0.61]
    """
    p, sig = (real_number(x, f"general_gaussian: {what}") for x, what in ((p, "p"), (sig, "sig")))
    return _bell("general_gaussian", M, p, sig, sym)


@_window
def exponential(M: int, center: float | None = None, tau: float = 1.0, sym: bool = True) -> Array:
    """exp(-|t - center| / tau).

    Args:
      center: where it is 1, unless symmetric: the middle unless given.
      tau: how slowly it decays, in samples.

    Raises ValueError for a center of a symmetric window.

    >>> print(olympus.scipy.signal.windows.exponential(3).round(2))
    [0.37 1.   0.37]
    """
    center = None if center is None else real_number(center, "exponential: center")
    tau = real_number(tau, "exponential: tau")
    if sym and center is not None:
        raise ValueError("exponential: center given of a symmetric window; its center is fixed; "
                         "pass sym=False.")
    if tau == 0:
        raise ValueError("exponential: tau 0 given; another number is required.")
    return _sampled("exponential", M, sym, lambda j, m: np.exp(
        -np.abs(j - ((m - 1) / 2 if center is None else center)) / tau))


@_window
def tukey(M: int, alpha: float = 0.5, sym: bool = True) -> Array:
    """Ones with ends that fall as half a raised cosine.

    Args: alpha: which part of it is tapered: 0 is a rectangle, 1 the window of von Hann.

    >>> print(olympus.scipy.signal.windows.tukey(5))
    [0. 1. 1. 1. 0.]
    """
    a = min(real_number(alpha, "tukey: alpha"), 1.0)
    if a <= 0:
        return _sampled("tukey", M, sym, lambda j, m: np.ones(m))

    def values(j: np.ndarray, m: int) -> np.ndarray:
        t = np.minimum(j, m - 1 - j) * 2 / (a * (m - 1))
        return np.where(t < 1, 0.5 * (1 + np.cos(np.pi * (t - 1))), 1.0)

    return _sampled("tukey", M, sym, values)


@_window
def kaiser(M: int, beta: float, sym: bool = True) -> Array:
    """Kaiser's window, I0(beta √(1 - t²)) / I0(beta), t in [-1, 1].

    Args:
      beta: how narrow it is; 0 is a rectangle. To differentiate in it use `olympus.numpy.kaiser`.

    >>> print(olympus.scipy.signal.windows.kaiser(3, 0.0))
    [1. 1. 1.]
    """
    beta = real_number(beta, "kaiser: beta")
    return _sampled("kaiser", M, sym, lambda j, m: np.kaiser(m, beta))


# Their weights as NumPy's, by name.
_WEIGHTS: dict[str, Callable[..., np.ndarray]] = {f.__name__: f.__wrapped__ for f in cast(Any, (
    bartlett, blackman, blackmanharris, bohman, boxcar, cosine, exponential, flattop,
    gaussian, general_cosine, general_gaussian, general_hamming, hamming, hann, kaiser,
    nuttall, parzen, triang, tukey))}
_ALIASES = {
    "hanning": "hann", "han": "hann", "hamm": "hamming", "ham": "hamming",
    "black": "blackman", "blk": "blackman", "nutt": "nuttall", "nut": "nuttall",
    "blackharr": "blackmanharris", "bkh": "blackmanharris", "flat": "flattop", "flt": "flattop",
    "bart": "bartlett", "brt": "bartlett", "bman": "bohman", "bmn": "bohman", "box": "boxcar",
    "ones": "boxcar", "rect": "boxcar", "rectangular": "boxcar", "halfcosine": "cosine",
    "parz": "parzen", "par": "parzen", "triangle": "triang", "tri": "triang",
    "gauss": "gaussian", "gss": "gaussian", "ksr": "kaiser", "tuk": "tukey", "poisson":
    "exponential", "general gaussian": "general_gaussian", "general_gauss": "general_gaussian",
    "ggs": "general_gaussian"}


def _parameter(what: str, key: str, i: int, x: Any) -> Any:
    """A window's parameter from a tuple: a number, amplitudes, or None for no center."""
    if key == "general_cosine":
        return _amplitudes(x, what)
    return None if x is None and (key, i) == ("exponential", 0) else real_number(x, what)


def weights(name: str, window: object, size: int, sym: bool = False) -> np.ndarray:
    """The weights that a name, a tuple (name, *parameters) or a number (kaiser's beta) stands for.
    """
    if isinstance(window, (int, float)) and not isinstance(window, bool):
        return _WEIGHTS["kaiser"](size, float(window), sym)
    call = (window,) if isinstance(window, str) else window
    if not isinstance(call, tuple) or not call or not isinstance(call[0], str):
        raise ValueError(f"{name}: window {window!r} given; a name, a tuple (name, *parameters) or "
                         "a number is required.")
    key = _ALIASES.get(call[0], call[0])
    fun = _WEIGHTS.get(key)
    if fun is not None:
        most, optional = fun.__code__.co_argcount - 2, len(fun.__defaults__ or ()) - 1
        if most - optional <= len(call) - 1 <= most:
            parameters = (_parameter(f"{name}: parameter {i} of window {key!r}:", key, i, x)
                          for i, x in enumerate(call[1:]))
            return fun(size, *parameters, sym=sym)
    known = sorted(_WEIGHTS)
    what = "unknown" if fun is None else "given with another number of parameters than it has"
    raise ValueError(f"{name}: window {window!r} is {what}; one of {', '.join(known)} is required.")


def get_window(window: str | tuple[Any, ...] | float, Nx: int, fftbins: bool = True) -> Array:
    """The window with a given name, for spectra or for filters.

    Args:
      window: a name of `olympus.scipy.signal.windows`; a tuple of it and its parameters, such as
        ("gaussian", 3.0); or a number, Kaiser's beta.
      Nx: the number of weights.
      fftbins: a periodic window, as spectra want it; else a symmetric one.
    Returns: float[Nx].

    Raises ValueError for an unknown name and missing parameters.

    >>> print(olympus.scipy.signal.get_window("hann", 4))
    [0.  0.5 1.  0.5]
    """
    return _window_array(weights("get_window", window, Nx, not fftbins))


complete_docstrings(globals(), {
    "M": "the number of weights.",
    "sym": "symmetric, else periodic.",
}, returns="float[M].")
