"""`olympus.scipy.fft`: cosine and sine transforms, each by one Fourier transform of a real series.

Inverses are transforms again: types 2 and 3 are each other's, 1 and 4 their own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike, DTypeLike
from ..core.trace import typeof
from ..jit.fused import fused
from ..numpy.fft import irfft, rfft
from ..numpy.joining import concatenate
from ..numpy.manipulation import flip, moveaxis
from ..numpy.promote import array_args, inexact, to_array
from ..types import dtypes
from ..types.shape import canonical_axes, sequence, static_int

_NORMS = ("backward", "ortho", "forward")


# Along the last axis, of real numbers, without a factor ------------------------------------------

def _phases(count: int, size: int, shift: float, dtype: DTypeLike) -> np.ndarray:
    """exp(-πi (k + shift) / size) for k < count, in the complex dtype of `dtype`."""
    values = np.exp(-1j * np.pi * (np.arange(count) + shift) / size)
    return values.astype(dtypes.to_complex_dtype(dtype))


def _cosine1(x: Array, n: int) -> Array:
    """The series continued evenly about its first and its last element."""
    return rfft(concatenate([x, flip(x[..., 1:-1], -1)], -1)).real


def _cosine2(x: Array, n: int) -> Array:
    """Makhoul, "A fast cosine transform in one and two dimensions", 1980: the even elements in
    order, then the odd ones in reverse, are transformed without being continued."""
    z = rfft(concatenate([x[..., ::2], flip(x[..., 1::2], -1)], -1))
    z = 2 * z * _phases(n // 2 + 1, 2 * n, 0, x.dtype)
    return concatenate([z.real, -flip(z.imag[..., 1:(n + 1) // 2], -1)], -1)


def _cosine3(x: Array, n: int) -> Array:
    """The steps of `_cosine2` backwards."""
    last = flip(x[..., n // 2 + n % 2:], -1)
    sines = concatenate([x[..., :1] * 0, last], -1)
    half = x[..., :n // 2 + 1]
    z = (half - 1j * sines) * _phases(n // 2 + 1, 2 * n, 0, x.dtype).conj()
    v = irfft(z, n, norm="forward")
    out = x * 0
    return out.at[..., ::2].set(v[..., :(n + 1) // 2]).at[..., 1::2].set(
        flip(v[..., (n + 1) // 2:], -1))


def _cosine4(x: Array, n: int) -> Array:
    """Type 4 by products of cosines: type 2 of a turned series gives sums of neighbours."""
    turned = x * _phases(n, 2 * n, 0, x.dtype)
    # Two real series of twice the length are one complex transform.
    parts = [rfft(part, 2 * n)[..., :n] for part in (turned.real, turned.imag)]
    return 2 * ((parts[0] + 1j * parts[1]) * _phases(n, 2 * n, 0.5, x.dtype)).real


_COSINES = {1: _cosine1, 2: _cosine2, 3: _cosine3, 4: _cosine4}


def _signs(n: int, dtype: DTypeLike) -> np.ndarray:
    return ((-1.0) ** np.arange(n)).astype(dtype)


def _sine(kind: int, x: Array, n: int) -> Array:
    """Sine transforms by cosine transforms of the reversed series, or with alternating signs."""
    if kind == 1:
        zero = x[..., :1] * 0
        odd = concatenate([zero, x, zero, -flip(x, -1)], -1)
        return -rfft(odd).imag[..., 1:n + 1]
    if kind == 2:
        return flip(_cosine2(x * _signs(n, x.dtype), n), -1)
    return _COSINES[kind](flip(x, -1), n) * _signs(n, x.dtype)


# The one path of all -----------------------------------------------------------------------------

def _transform(name: str, x: ArrayLike, kind: int, s: object, axes: object, norm: object,
               orthogonalize: object, cosine: bool, inverse: bool) -> Array:
    """Check the arguments, and transform along one axis after the other."""
    if kind not in (1, 2, 3, 4):
        raise ValueError(f"{name}: type {kind!r} given; 1, 2, 3 or 4 is required.")
    if norm not in (None, *_NORMS):
        raise ValueError(f"{name}: norm {norm!r} given; one of {', '.join(map(repr, _NORMS))} or "
                         "None is required.")
    x = inexact(to_array(array_args(name, x)[0]))
    ndim = typeof(x).ndim
    sizes = None if s is None else [static_int(n, name, "size") for n in sequence(s, name, "s")]
    if axes is None:
        axes = range(ndim) if sizes is None else range(ndim - len(sizes), ndim)
        if sizes is not None and len(sizes) > ndim:
            raise ValueError(f"{name}: {typeof(x)}, s {tuple(sizes)} given; at most one size per "
                             "axis is required.")
    axes = canonical_axes(sequence(axes, name, "axes"), ndim, name)
    if sizes is None:
        sizes = [static_int(typeof(x).shape[axis], name, "size") for axis in axes]
    if len(sizes) != len(axes):
        raise ValueError(f"{name}: s {tuple(sizes)} and axes {axes} given; as many sizes as axes "
                         "are required.")
    least = 2 if cosine and kind == 1 else 1
    if any(n < least for n in sizes):
        raise ValueError(f"{name}: {typeof(x)}, axes of {tuple(sizes)} elements given; at least "
                         f"{least} each are required of type {kind}.")
    norm = norm or "backward"
    ortho = norm == "ortho" if orthogonalize is None else bool(orthogonalize)
    return _run(x, kind=int(kind), sizes=tuple(sizes), axes=axes, norm=norm, ortho=ortho,
                cosine=cosine, inverse=inverse)


@fused(static=("kind", "sizes", "axes", "norm", "ortho", "cosine", "inverse"))
def _run(x: Array, *, kind: int, sizes: tuple[int, ...], axes: tuple[int, ...], norm: str,
         ortho: bool, cosine: bool, inverse: bool) -> Array:
    # Narrower dtypes than float32 are transformed in it, as by `olympus.numpy.fft`.
    wide = dtypes.to_complex_dtype(x.dtype)
    x = x.astype(wide if typeof(x).dtype.kind == "c" else dtypes.to_real_dtype(wide))
    applied = {2: 3, 3: 2}.get(kind, kind) if inverse else kind
    for n, axis in zip(sizes, axes):
        x = moveaxis(x, axis, -1)
        have = static_int(typeof(x).shape[-1], "dct", "size")
        if n <= have:
            x = x[..., :n]
        else:
            x = concatenate([x, (x[..., :1] * 0).repeat(n - have, -1)], -1)
        if typeof(x).dtype.kind == "c":
            x = (_along(x.real, applied, n, norm, ortho, cosine, inverse)
                 + 1j * _along(x.imag, applied, n, norm, ortho, cosine, inverse))
        else:
            x = _along(x, applied, n, norm, ortho, cosine, inverse)
        x = moveaxis(x, -1, axis)
    return x


def _along(x: Array, kind: int, n: int, norm: str, ortho: bool, cosine: bool, inverse: bool
           ) -> Array:
    """The scaled transform along the last axis."""
    ends = np.ones(n)
    if kind == 1 and cosine:
        ends[[0, -1]] = math.sqrt(2)
    elif kind in (2, 3):
        ends[0 if cosine else -1] = math.sqrt(2)
    period = 2 * (n + {True: -1, False: 1}[cosine] * (kind == 1))
    power = {"backward": 1.0 if inverse else 0.0, "ortho": 0.5,
             "forward": 0.0 if inverse else 1.0}[norm]
    if ortho and kind in (1, 3):
        x = x * ends.astype(x.dtype)
    x = _COSINES[kind](x, n) if cosine else _sine(kind, x, n)
    if ortho and kind in (1, 2):
        x = x / ends.astype(x.dtype)
    return x * period ** -power if power else x


# Public functions --------------------------------------------------------------------------------

def dct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
        *, orthogonalize: bool | None = None) -> Array:
    """The discrete cosine transform.

    Args:
      x: array; integers become floats, of complex numbers both parts are transformed.
      type: 1: x[0] + (-1)ᵏ x[n-1] + 2 Σ x[j] cos(π j k / (n-1)), of the j between; 2: 2 Σ x[j]
        cos(π k (2j+1) / 2n); 3: x[0] + 2 Σ x[j] cos(π (2k+1) j / 2n), j > 0; 4: 2 Σ x[j]
        cos(π (2k+1) (2j+1) / 4n).
      norm: "backward" (unless given): no factor; "forward": the inverse's factor, 1/2n (1/2(n-1)
        for type 1); "ortho": its square root.
      orthogonalize: weigh the first and last elements so that "ortho" makes an orthogonal matrix;
        that is what norm="ortho" does unless this is False.

    Raises ValueError for other types and norms, and for an axis without elements.

    >>> print(olympus.scipy.fft.dct(onp.ones(2)))
    [4. 0.]
    """
    return _transform("dct", x, type, None if n is None else (n,), _one_axis("dct", axis), norm,
                      orthogonalize, True, False)


def _one_axis(name: str, axis: int) -> tuple[int]:
    return (static_int(axis, name, "axis"),)


@described_like(dct)
def idct(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1,
         norm: str | None = None, *, orthogonalize: bool | None = None) -> Array:
    """The inverse of `dct` of the same arguments.

    >>> print(onp.round(olympus.scipy.fft.idct(olympus.scipy.fft.dct(onp.array([1., 2., 3.]))), 4))
    [1. 2. 3.]
    """
    return _transform("idct", x, type, None if n is None else (n,), _one_axis("idct", axis), norm,
                      orthogonalize, True, True)


def dctn(x: ArrayLike, type: int = 2, s: Sequence[int] | None = None,
         axes: Sequence[int] | None = None, norm: str | None = None, *,
         orthogonalize: bool | None = None) -> Array:
    """The discrete cosine transform along several axes.

    Args: type: 1, 2, 3 or 4, as for `dct`.
    Returns: An array like x, of those sizes.

    >>> print(olympus.scipy.fft.dctn(onp.ones((2, 2))))
    [[16.  0.]
     [ 0.  0.]]
    """
    return _transform("dctn", x, type, s, axes, norm, orthogonalize, True, False)


def idctn(x: ArrayLike, type: int = 2, s: Sequence[int] | None = None,
          axes: Sequence[int] | None = None, norm: str | None = None, *,
          orthogonalize: bool | None = None) -> Array:
    """The inverse of `dctn` of the same arguments.

    Returns: An array like x, of those sizes.

    >>> print(olympus.scipy.fft.idctn(onp.array([[16., 0.], [0., 0.]])))
    [[1. 1.]
     [1. 1.]]
    """
    return _transform("idctn", x, type, s, axes, norm, orthogonalize, True, True)


@described_like(dct)
def dst(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1, norm: str | None = None,
        *, orthogonalize: bool | None = None) -> Array:
    """The discrete sine transform.

    Args:
      type: 1: 2 Σ x[j] sin(π (j+1) (k+1) / (n+1)); 2: 2 Σ x[j] sin(π (k+1) (2j+1) / 2n); 3: (-1)ᵏ
        x[n-1] + 2 Σ x[j] sin(π (2k+1) (j+1) / 2n), j < n-1; 4: 2 Σ x[j] sin(π (2k+1) (2j+1) / 4n).
      norm: "backward" (unless given): no factor; "forward": the inverse's factor, 1/2n (1/2(n+1)
        for type 1); "ortho": its square root.

    Raises ValueError for other types and norms, and for an axis without elements.

    >>> print(onp.round(olympus.scipy.fft.dst(onp.array([1., 2., 3.])), 4))
    [ 8.     -3.4641  4.    ]
    """
    return _transform("dst", x, type, None if n is None else (n,), _one_axis("dst", axis), norm,
                      orthogonalize, False, False)


@described_like(dst)
def idst(x: ArrayLike, type: int = 2, n: int | None = None, axis: int = -1,
         norm: str | None = None, *, orthogonalize: bool | None = None) -> Array:
    """The inverse of `dst` of the same arguments.

    >>> print(onp.round(olympus.scipy.fft.idst(olympus.scipy.fft.dst(onp.array([1., 2., 3.]))), 4))
    [1. 2. 3.]
    """
    return _transform("idst", x, type, None if n is None else (n,), _one_axis("idst", axis), norm,
                      orthogonalize, False, True)


def dstn(x: ArrayLike, type: int = 2, s: Sequence[int] | None = None,
         axes: Sequence[int] | None = None, norm: str | None = None, *,
         orthogonalize: bool | None = None) -> Array:
    """The discrete sine transform along several axes.

    Args:
      type: 1, 2, 3 or 4, as for `dst`.
      norm, orthogonalize: as for `dst`, of each axis.
    Returns: An array like x, of those sizes.

    >>> print(onp.round(olympus.scipy.fft.dstn(onp.ones((2, 2))), 3))
    [[8. 0.]
     [0. 0.]]
    """
    return _transform("dstn", x, type, s, axes, norm, orthogonalize, False, False)


def idstn(x: ArrayLike, type: int = 2, s: Sequence[int] | None = None,
          axes: Sequence[int] | None = None, norm: str | None = None, *,
          orthogonalize: bool | None = None) -> Array:
    """The inverse of `dstn` of the same arguments.

    Args: norm, orthogonalize: as for `dst`, of each axis.
    Returns: An array like x, of those sizes.

    >>> print(onp.round(olympus.scipy.fft.idstn(onp.array([[8., 0.], [0., 0.]])), 3))
    [[1. 1.]
     [1. 1.]]
    """
    return _transform("idstn", x, type, s, axes, norm, orthogonalize, False, True)


# Sizes -------------------------------------------------------------------------------------------

def _smooth(n: int, primes: tuple[int, ...]) -> bool:
    for p in primes:
        while n % p == 0:
            n //= p
    return n == 1


def _nearest(name: str, target: int, real: bool, step: int) -> int:
    n = static_int(target, name, "target")
    if n < 1:
        raise ValueError(f"{name}: target {n} given; a positive int is required.")
    primes = (2, 3, 5) if real else (2, 3, 5, 7, 11)
    # Between a number and twice it there is always a power of 2.
    while not _smooth(n, primes):
        n += step
    return n


def next_fast_len(target: int, real: bool = False) -> int:
    """The least size >= `target` whose transform is fast: a product of small primes.

    Args:
      real: whether real series are transformed: factors 2, 3 and 5; of complex ones 7 and 11, too.

    Raises ValueError for a target below 1.

    >>> print(olympus.scipy.fft.next_fast_len(13), olympus.scipy.fft.next_fast_len(13, real=True))
    14 15
    """
    return _nearest("next_fast_len", target, real, 1)


@described_like(next_fast_len)
def prev_fast_len(target: int, real: bool = False) -> int:
    """The largest size <= `target` whose transform is fast.

    >>> print(olympus.scipy.fft.prev_fast_len(13), olympus.scipy.fft.prev_fast_len(13, real=True))
    12 12
    """
    return _nearest("prev_fast_len", target, real, -1)


complete_docstrings(globals(), {
    "x": "array; integers become floats.",
    "type": "of the transform that is inverted: 1, 2, 3 or 4.",
    "n": "the size of the axis, which is cut, or filled up with zeros; as it is unless given.",
    "axis": "along which.",
    "s": "the sizes of the axes, which are cut, or filled up with zeros.",
    "axes": "along which; all, or the last ones if only s is given.",
    "norm, orthogonalize": "as for `dct`, of each axis.",
    "target": "a size.",
}, returns="An array like x, with n elements along the axis.")
