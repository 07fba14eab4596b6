"""`olympus.numpy.fft`: Fourier transforms over any axes, with NumPy's sizes and norms.

Each is `lax.fft` after cutting or padding the axes to size; since that takes three axes at a time,
more of them are transformed in groups. Results are complex64 unless the input has 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from ..arrays.device import device_put
from ..base.docstrings import complete_docstrings, described_like
from ..base.typing import Array, ArrayLike, Axes, DimSize, DTypeLike
from ..core.ir import Literal
from ..core.trace import literal, typeof
from ..jit.fused import fused, named
from ..lax import shape as lax_shape
from ..lax.arithmetic import conj
from ..lax.barriers import optimization_barrier
from ..lax.comparison import select_n
from ..lax.convert import convert_element_type
from ..lax.creation import iota
from ..lax.fft import MAX_AXES, FftType, fft_p
from ..lax.slicing import pad, slice_in_dim
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import (
    canonical_axes, canonical_axis, canonical_dim, definitely_equal, entries, is_static, minimum,
    prod, static_int,
)
from ..types.sharding import DeviceLike
from . import manipulation
from .arithmetic import divide, multiply
from .creation import asarray
from .promote import array_args, refuse_option, to_array

Dims = tuple[int, ...]
_NORMS = ("backward", "ortho", "forward")


# The one path of all transforms ------------------------------------------------------------------

def _transform(name: str, kind: FftType, a: ArrayLike, s: Sequence[int] | None,
               axes: Sequence[int] | None, norm: str | None, out: None) -> Array:
    """Check the arguments of a transform over several axes and run it."""
    refuse_option(name, out=out)
    (x,) = array_args(name, a)
    aval = typeof(x)
    if kind == FftType.RFFT and dtypes.is_complex(aval.dtype):
        raise TypeError(f"{name}: {aval} given; real numbers are required; use the function "
                        "without r, or the real part.")
    if norm not in (None, *_NORMS):
        raise ValueError(f"{name}: norm {norm!r} given; one of {', '.join(map(repr, _NORMS))} or "
                         "None is required.")
    s, axes = _several(name, "s", s), _several(name, "axes", axes)
    axes = _transformed_axes(name, aval, s, axes)
    if not axes:
        return to_array(x) if kind == FftType.RFFT else convert_element_type(
            x, dtypes.to_complex_dtype(aval.dtype))
    sizes = _transformed_sizes(name, kind, aval, s, axes)
    return _run(x, kind=kind, sizes=sizes, axes=axes, norm=norm or "backward")


def _several(name: str, what: str, option: object) -> Dims | None:
    """Sizes or axes as a tuple, or None."""
    if option is None:
        return None
    numbers = entries(option)
    if len(numbers) == 1 and numbers[0] is option:
        raise TypeError(f"{name}: {what} {option!r} given; a sequence of ints is required.")
    return numbers


def _transformed_axes(name: str, aval: ShapedArray, s: Sequence[int] | None,
                      axes: Sequence[int] | None) -> Dims:
    """The transformed axes, not negative: the last ones if only sizes are given, else all."""
    if axes is None:
        count = aval.ndim if s is None else len(s)
        if s is not None and len(s) > aval.ndim:
            raise ValueError(f"{name}: {aval}, s {tuple(s)} given; at most one size per axis is "
                             "required.")
        return tuple(range(aval.ndim - count, aval.ndim))
    numbers = tuple([canonical_axis(axis, aval.ndim, name) for axis in axes])
    if len(set(numbers)) < len(numbers):
        raise ValueError(f"{name}: axes {tuple(axes)} given; different axes are required; "
                         "transform an axis again in a second call.")
    if s is not None and len(s) != len(numbers):
        raise ValueError(f"{name}: s {tuple(s)} and axes {tuple(axes)} given; one size per axis "
                         "is required.")
    return numbers


def _transformed_sizes(name: str, kind: FftType, aval: ShapedArray, s: Sequence[int] | None,
                       axes: Dims) -> Dims:
    """The size of each transformed axis, on the side that is not halved."""
    if s is None:
        sizes = [aval.shape[axis] for axis in axes]
        if kind == FftType.IRFFT:
            sizes[-1] = 2 * (sizes[-1] - 1)
    else:
        sizes = [static_int(n, name, "size") for n in s]
    if any(n < 1 for n in sizes):
        raise ValueError(f"{name}: {aval} and s {s} given, axes of {tuple(sizes)} elements; at "
                         "least one element each is required.")
    return tuple(sizes)


@fused(static=("kind", "sizes", "axes", "norm"))
def _run(x: Array, *, kind: FftType, sizes: Dims, axes: Dims, norm: str) -> Array:
    """The transform of checked arguments: cut or pad, transform in groups of axes, scale."""
    halved = kind == FftType.IRFFT
    for i, (axis, n) in enumerate(zip(axes, sizes)):
        x = _resized(x, axis, n // 2 + 1 if halved and i == len(axes) - 1 else n)
    dtype = typeof(x).dtype
    if kind == FftType.RFFT:
        x = convert_element_type(x, dtypes.to_real_dtype(dtypes.to_complex_dtype(dtype)))
    else:
        x = convert_element_type(x, dtypes.to_complex_dtype(dtype))
    for group_kind, start, stop in _groups(kind, len(axes)):
        x = _trailing(x, group_kind, sizes[start:stop], axes[start:stop])
    total, inverse = prod(sizes), kind in (FftType.IFFT, FftType.IRFFT)
    power = {"backward": 0.0, "ortho": 0.5, "forward": 1.0}[norm] * (1 if inverse else -1)
    return x * literal(total ** power, typeof(x).dtype) if power else x


def _groups(kind: FftType, count: int) -> list[tuple[FftType, int, int]]:
    """(transform, first, end): the last axes are halved together, before or after the others."""
    last = max(count - MAX_AXES, 0)
    plain = {FftType.RFFT: FftType.FFT, FftType.IRFFT: FftType.IFFT}.get(kind, kind)
    groups = [(kind, last, count)]
    groups += [(plain, max(end - MAX_AXES, 0), end) for end in range(last, 0, -MAX_AXES)]
    return groups[::-1] if kind == FftType.IRFFT else groups


def _resized(x: Array, axis: int, size: int) -> Array:
    """`x` cut to `size` elements along an axis, or filled up with zeros."""
    aval = typeof(x)
    have = aval.shape[axis]
    least = minimum(size, have)
    if not definitely_equal(least, have):
        x = slice_in_dim(x, 0, least, 1, axis)
    if definitely_equal(least, size):
        return x
    low_high = [(0, size - least if i == axis else 0, 0) for i in range(aval.ndim)]
    return pad(x, literal(0, aval.dtype), low_high)


def _trailing(x: Array, kind: FftType, sizes: Dims, axes: Dims) -> Array:
    """`lax.fft` over any axes: they are moved to the end, and back."""
    ndim = typeof(x).ndim
    order = (*[i for i in range(ndim) if i not in axes], *axes)
    still = order == tuple(range(ndim))
    out = fft_p.bind(x if still else lax_shape.transpose(x, order), fft_type=kind,
                     fft_lengths=sizes)
    return out if still else lax_shape.transpose(out, tuple(map(int, np.argsort(order))))


# One axis ----------------------------------------------------------------------------------------

def _transform_one_axis(name: str, kind: FftType, a: ArrayLike, n: int | None, axis: int,
                        norm: str | None, out: None) -> Array:
    if isinstance(axis, (list, tuple)):
        raise ValueError(f"{name}: axis {axis} given; one axis is required; use fftn, or "
                         "transform one axis after the other.")
    s = None if n is None else (n,)
    return _transform(name, kind, a, s, (axis,), norm, out)


def fft(a: ArrayLike, n: int | None = None, axis: int = -1,
        norm: str | None = None, out: None = None) -> Array:
    """The discrete Fourier transform along an axis: the sums of a[j] exp(-2πi jk/n) over j.

    Args: norm: where the factor 1/n is: "backward" (default) has it in the inverse, "forward" here,
        "ortho" has 1/sqrt(n) in both.
    Returns: The transform, complex64 or complex128, with n elements along the axis. 16-bit floats
      are computed in float32.

    Raises ValueError for no points.

    >>> onp.fft.fft(onp.array([1., 0., 0., 0.]))
    Array([1.+0.j, 1.+0.j, 1.+0.j, 1.+0.j], dtype=complex64)
    """
    return _transform_one_axis("fft", FftType.FFT, a, n, axis, norm, out)


def ifft(a: ArrayLike, n: int | None = None, axis: int = -1,
         norm: str | None = None, out: None = None) -> Array:
    """The inverse of `fft`: the sums of a[k] exp(2πi jk/n) over k, divided by n.

    Returns: complex64 or complex128, with n elements along the axis.

    Raises ValueError for no points.

    >>> print(onp.fft.ifft(onp.array([4., 0., 0., 0.])))
    [1.+0.j 1.+0.j 1.+0.j 1.+0.j]
    """
    return _transform_one_axis("ifft", FftType.IFFT, a, n, axis, norm, out)


def rfft(a: ArrayLike, n: int | None = None, axis: int = -1,
         norm: str | None = None, out: None = None) -> Array:
    """The first n//2 + 1 terms of the `fft` of real numbers; the others are their conjugates.

    Args: a: array of real numbers or booleans.
    Returns: complex64 or complex128, with n//2 + 1 elements along the axis.

    Raises TypeError for complex numbers, ValueError for no points.

    >>> print(onp.fft.rfft(onp.array([1., 2., 1., 2.])))
    [ 6.+0.j  0.+0.j -2.+0.j]
    """
    return _transform_one_axis("rfft", FftType.RFFT, a, n, axis, norm, out)


def irfft(a: ArrayLike, n: int | None = None, axis: int = -1,
          norm: str | None = None, out: None = None) -> Array:
    """The real series whose `rfft` is `a`.

    The imaginary parts of the first term, and of the last for an even n, have no effect.

    Args:
      a: array of any numeric or boolean dtype: m terms along the axis.
      n: the size of the result, 2*(m - 1) by default, which is even: give it for an odd one. The
        terms
        are cut, or filled up with zeros, to n//2 + 1.
    Returns: float32 or float64, with n elements along the axis.

    Raises ValueError for no points.

    >>> onp.fft.irfft(onp.fft.rfft(onp.array([1., 2., 3.])), 3)
    Array([1., 2., 3.], dtype=float32)
    """
    return _transform_one_axis("irfft", FftType.IRFFT, a, n, axis, norm, out)


def _swapped(norm: str | None) -> str | None:
    """The norm of the transform in the other direction."""
    if norm is not None and not isinstance(norm, str):
        return norm     # the transform refuses it
    return {"backward": "forward", None: "forward", "forward": "backward"}.get(norm, norm)


@named
@described_like(irfft)
def hfft(a: ArrayLike, n: int | None = None, axis: int = -1,
         norm: str | None = None, out: None = None) -> Array:
    """The real `fft` of a series with Hermitian symmetry, a[-j] = conj(a[j]); `a` is half of it.

    Args:
      a: array of any numeric or boolean dtype: m elements along the axis.
      n: the size of the result, 2*(m - 1) by default.

    >>> print(onp.fft.hfft(onp.array([1., 2., 3.])))
    [ 8. -2.  0. -2.]
    """
    (x,) = array_args("hfft", a)
    x = convert_element_type(x, dtypes.to_complex_dtype(typeof(x).dtype))
    return _transform_one_axis("hfft", FftType.IRFFT, conj(x), n, axis, _swapped(norm), out)


@described_like(rfft)
def ihfft(a: ArrayLike, n: int | None = None, axis: int = -1,
          norm: str | None = None, out: None = None) -> Array:
    """The inverse of `hfft`: half of a Hermitian series from its real spectrum.

    >>> onp.fft.ihfft(onp.array([8., -2., 0., -2.])).real
    Array([1., 2., 3.], dtype=float32)
    """
    return conj(_transform_one_axis("ihfft", FftType.RFFT, a, n, axis, _swapped(norm), out))


# Several axes ------------------------------------------------------------------------------------

@named
def fftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
         norm: str | None = None, out: None = None) -> Array:
    """The discrete Fourier transform over several axes, any number of them.

    Raises ValueError for axes named twice, other numbers of sizes and for no points.

    >>> print(onp.fft.fftn(onp.ones((2, 2))))
    [[4.+0.j 0.+0.j]
     [0.+0.j 0.+0.j]]
    """
    return _transform("fftn", FftType.FFT, a, s, axes, norm, out)


@named
def ifftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None, out: None = None) -> Array:
    """The inverse of `fftn`.

    Raises ValueError for axes named twice, other numbers of sizes and for no points.

    >>> print(onp.fft.ifftn(onp.array([[4., 0.], [0., 0.]])))
    [[1.+0.j 1.+0.j]
     [1.+0.j 1.+0.j]]
    """
    return _transform("ifftn", FftType.IFFT, a, s, axes, norm, out)


def rfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
          norm: str | None = None, out: None = None) -> Array:
    """The half of the `fftn` of real numbers that determines the rest.

    Args: a: array of real numbers or booleans.
    Returns: complex64 or complex128, with n//2 + 1 elements along the last of the axes.

    Raises TypeError for complex numbers; ValueError for axes named twice, other numbers of sizes
    and for
    no points.

    >>> print(onp.fft.rfftn(onp.eye(2, 4)))
    [[2.+0.j 1.-1.j 0.+0.j]
     [0.+0.j 1.+1.j 2.+0.j]]
    """
    return _transform("rfftn", FftType.RFFT, a, s, axes, norm, out)


@named
def irfftn(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] | None = None,
           norm: str | None = None, out: None = None) -> Array:
    """The real array whose `rfftn` is `a`.

    Args:
      a: array of any numeric or boolean dtype, halved along the last of the axes.
      s: the sizes of the result along the axes; the last is 2*(m - 1) for m terms by default.
    Returns: float32 or float64.

    Raises ValueError for axes named twice, other numbers of sizes and for no points.

    >>> print(onp.fft.irfftn(onp.array([[4., 0.], [0., 0.]])))
    [[1. 1.]
     [1. 1.]]
    """
    return _transform("irfftn", FftType.IRFFT, a, s, axes, norm, out)


def _two_axes(name: str, axes: object) -> Dims | None:
    axes = _several(name, "axes", axes)
    if axes is not None and len(axes) != 2:
        raise ValueError(f"{name}: axes {tuple(axes)} given; two axes are required; use fftn for "
                         "another number.")
    return axes


def fft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
         norm: str | None = None, out: None = None) -> Array:
    """The discrete Fourier transform over two axes, the last ones by default.

    Args: axes: two different axes.

    Raises ValueError for axes named twice, other numbers of sizes and for no points.

    >>> print(onp.fft.fft2(onp.ones((2, 2))))
    [[4.+0.j 0.+0.j]
     [0.+0.j 0.+0.j]]
    """
    return _transform("fft2", FftType.FFT, a, s, _two_axes("fft2", axes), norm, out)


@described_like(fft2)
def ifft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None, out: None = None) -> Array:
    """The inverse of `fft2`.

    >>> print(onp.fft.ifft2(onp.array([[4., 0.], [0., 0.]])))
    [[1.+0.j 1.+0.j]
     [1.+0.j 1.+0.j]]
    """
    return _transform("ifft2", FftType.IFFT, a, s, _two_axes("ifft2", axes), norm, out)


@described_like(rfftn)
def rfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
          norm: str | None = None, out: None = None) -> Array:
    """The half of the `fft2` of real numbers that determines the rest.

    Args: axes: two different axes.

    >>> print(onp.fft.rfft2(onp.eye(2, 4)))
    [[2.+0.j 1.-1.j 0.+0.j]
     [0.+0.j 1.+1.j 2.+0.j]]
    """
    return _transform("rfft2", FftType.RFFT, a, s, _two_axes("rfft2", axes), norm, out)


@described_like(irfftn)
def irfft2(a: ArrayLike, s: Sequence[int] | None = None, axes: Sequence[int] = (-2, -1),
           norm: str | None = None, out: None = None) -> Array:
    """The real array whose `rfft2` is `a`.

    Args: axes: two different axes.

    >>> print(onp.fft.irfft2(onp.array([[4., 0.], [0., 0.]])))
    [[1. 1.]
     [1. 1.]]
    """
    return _transform("irfft2", FftType.IRFFT, a, s, _two_axes("irfft2", axes), norm, out)


# Frequencies -------------------------------------------------------------------------------------

@named
def fftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None,
            device: DeviceLike = None) -> Array:
    """The frequencies of the terms of an `fft` of `n` points: 0, 1 …, then the negative ones.

    Args:
      n: number of points.
      d: the distance of two points, a scalar; may be traced.
      dtype: a floating or complex dtype for the result; float by default.
    Returns: A vector of n numbers, in cycles per unit of `d`.

    Raises TypeError for a complex `d` and for other dtypes.

    >>> onp.fft.fftfreq(4, 0.5)
    Array([ 0. ,  0.5, -1. , -0.5], dtype=float32)
    """
    n = canonical_dim(n, "fftfreq")
    index = iota(np.int32, n)
    half = (n + 1) // 2
    steps = select_n(index >= half, index, index - n)
    return _frequencies("fftfreq", steps, n, d, dtype, device)


@named
@described_like(fftfreq)
def rfftfreq(n: int, d: ArrayLike = 1.0, *, dtype: DTypeLike | None = None,
             device: DeviceLike = None) -> Array:
    """The frequencies of the terms of an `rfft` of `n` points, none of them negative.

    Returns: A vector of n//2 + 1 numbers, in cycles per unit of `d`.

    >>> onp.fft.rfftfreq(4, 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    n = canonical_dim(n, "rfftfreq")
    return _frequencies("rfftfreq", iota(np.int32, n // 2 + 1), n, d, dtype, device)


def _frequencies(name: str, steps: Array, n: int, d: ArrayLike, dtype: DTypeLike | None,
                 device: DeviceLike) -> Array:
    """steps / (n d)."""
    (d,) = array_args(name, d)
    if typeof(d).shape != ():
        raise ValueError(f"{name}: d is {typeof(d)}; a scalar is required.")
    if dtypes.is_complex(typeof(d).dtype):
        raise TypeError(f"{name}: d is {typeof(d)}; a real number is required, because it is a "
                        "distance.")
    if dtype is None:
        wanted = dtypes.default_float()
    else:
        wanted = dtypes.requested_dtype(name, dtype)
        if not dtypes.is_inexact(wanted):
            raise TypeError(f"{name}: dtype {dtypes.long_name(wanted)} given; a floating or "
                            "complex dtype is required, since frequencies are fractions.")
    steps = convert_element_type(steps, dtypes.default_float())
    # One division, by an unknown: XLA would multiply by a known number's rounded reciprocal.
    whole = n * float(d.raw) if type(d) is Literal and is_static((n,)) else multiply(d, n)
    whole = optimization_barrier(asarray(whole, dtypes.default_float()))
    out = convert_element_type(divide(steps, whole), wanted)
    return out if device is None else device_put(out, device)


def fftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move the zero frequency to the middle.

    Args:
      x: array in the order of `fft`.
      axes: an int, or several; all if None.
    Returns: An array of the shape and dtype of `x`.

    >>> onp.fft.fftshift(onp.arange(5))
    Array([3, 4, 0, 1, 2], dtype=int32)
    """
    return _rolled("fftshift", x, axes, lambda n: n // 2)


@described_like(fftshift)
def ifftshift(x: ArrayLike, axes: int | Sequence[int] | None = None) -> Array:
    """Move the zero frequency from the middle to the front: the inverse of `fftshift`.

    Args: x: array.

    >>> onp.fft.ifftshift(onp.array([3, 4, 0, 1, 2]))
    Array([0, 1, 2, 3, 4], dtype=int32)
    """
    return _rolled("ifftshift", x, axes, lambda n: -(n // 2))


def _rolled(name: str, x: ArrayLike, axes: Axes | None, shift: Callable[[DimSize], DimSize]
            ) -> Array:
    (a,) = array_args(name, x)
    aval = typeof(a)
    numbers = canonical_axes(axes, aval.ndim, name)
    return manipulation.roll(a, tuple([shift(aval.shape[i]) for i in numbers]), numbers)


complete_docstrings(globals(), {
    "a": "array of any numeric or boolean dtype.",
    "norm":
        'where the factor is: "backward" (default) has it in the inverse, "forward" in the other\n'
        'direction, "ortho" its root in both.',
    "axes": "different axes; by default the last `len(s)`, or all.",
    "n": "the number of points: the axis is cut, or filled up with zeros; its size by default.",
    "s":
        "the number of points along each axis, cut or filled up with zeros; their sizes "
        "by default.",
    "axis": "the axis.",
}, returns="complex64 or complex128.")
