"""The discrete Fourier transform over up to three trailing axes.

    FFT    out[k] = Σ_n x[n] w^(kn), w = exp(-2πi/N)       complex -> complex
    IFFT   out[n] = 1/N Σ_k x[k] w^(-kn)                   complex -> complex
    RFFT   the first N//2 + 1 terms of FFT                 real -> complex
    IRFFT  the real series of N whose RFFT is x            complex -> real

Derivatives are exact, since all are linear: FFT and IFFT are their own transposes. RFFT keeps half
of a symmetric spectrum, so each transposes to the other with its interior halved or doubled.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Hashable, Sequence
from typing import cast

import numpy as np

from ..base import config
from ..base.typing import Array, ArrayLike, IrValue, Params
from ..core import tags
from ..core.facts import Shapes
from ..core.primitive import Axis, Builder, Linear, Primitive, linear_jvp
from ..core.trace import literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import canonical_shape, prod, static_int
from .arithmetic import conj, mul
from .convert import convert_element_type
from .shape import broadcast_in_dim, check_element, move_axis

Dims = tuple[int, ...]
MAX_AXES = 3


class FftType(enum.IntEnum):
    """The transform that `fft` computes.

    >>> from olympus import lax, numpy as onp
    >>> print(lax.fft(onp.ones(4), lax.FftType.RFFT, (4,)))
    [4.+0.j 0.+0.j 0.+0.j]
    """

    FFT = 0
    IFFT = 1
    RFFT = 2
    IRFFT = 3


# Whatever x64 says: kernels compute in float64, too.
_COMPLEX = {dtypes.as_dtype(f"float{n}"): dtypes.as_dtype(f"complex{2 * n}") for n in (32, 64)}
_REAL = {z: x for x, z in _COMPLEX.items()}


class Fft(Primitive):
    """params: fft_type, fft_lengths (one to three sizes of the real side's trailing axes)."""

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        size = max(prod(ins[0]), prod(outs[0]))
        return 2000.0 + size * (1.0 + math.log2(max(size, 1)))

    def flops(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        """5 log2 n for each number, half of it for real ones; XLA multiplies the axes' logarithms.
        """
        real = params["fft_type"] in (FftType.RFFT, FftType.IRFFT)
        size = max(prod(ins[0]), prod(outs[0]))
        return (2.5 if real else 5.0) * size * math.log2(max(prod(params["fft_lengths"]), 1))

    def remedy(self, avals: Sequence[ShapedArray], params: Params) -> str:
        return "sizes that are products of small primes are fast: pad to one"

    def spread(self, operands: Sequence[tags.Operand], outs: Sequence[ShapedArray], params: Params
               ) -> list[tags.Entries]:
        if all(a.shape == operands[0].shape for a in outs):     # which XLA may cut
            return tags.same(operands, outs, params)
        return tags.matrix(operands, outs, [len(params["fft_lengths"])])

    def infer(self, x: ShapedArray, *, fft_type: FftType, fft_lengths: Dims) -> ShapedArray:
        n = len(fft_lengths)
        if not 1 <= n <= MAX_AXES:
            raise ValueError(f"fft: fft_lengths {fft_lengths} given; one to {MAX_AXES} axes are "
                             "required; transform the others in a second call.")
        if x.ndim < n:
            raise ValueError(f"fft: operand {x}, fft_lengths {fft_lengths} given; as many axes as "
                             "lengths are required.")
        last = [static_int(size, "fft", "length") for size in fft_lengths][-1]
        half = last // 2 + 1
        needed = (*fft_lengths[:-1], half if fft_type == FftType.IRFFT else last)
        if x.shape[-n:] != needed:
            raise ValueError(f"fft: operand {x}, fft_lengths {fft_lengths} given; "
                             f"{fft_type.name} of these lengths requires trailing axes {needed}; "
                             "pad or slice the operand.")
        kind = dtypes.scalar_kind(x.dtype)
        if fft_type == FftType.RFFT:
            if kind != "f" or dtypes.itemsize_bits(x.dtype) < 32:
                raise TypeError(f"fft: operand {x} given; RFFT takes float32 and float64; convert "
                                "it with astype, or use FFT for complex numbers.")
            return make_aval((*x.shape[:-1], half), _COMPLEX[x.dtype])
        if kind != "c":
            raise TypeError(f"fft: operand {x} given; {fft_type.name} takes complex64 and "
                            "complex128; convert it with astype.")
        if fft_type == FftType.IRFFT:
            return make_aval((*x.shape[:-1], last), _REAL[x.dtype])
        return make_aval(x.shape, x.dtype)

    def lower(self, b: Builder, x: IrValue, *, fft_type: FftType, fft_lengths: Dims) -> IrValue:
        out = b.avals_out[0]
        if 0 in b.avals_in[0].shape or 0 in out.shape:
            return b.full(out, 0)       # sums of nothing
        return b.op("stablehlo.fft", [x], {
            "fft_type": b.attr(f"#stablehlo<fft_type {fft_type.name}>"),
            "fft_length": b.i64s(fft_lengths)})

    jvp = linear_jvp

    def transpose(self, ct: Array, x: Linear, *, fft_type: FftType, fft_lengths: Dims
                  ) -> list[Array | None]:
        if fft_type == FftType.RFFT:
            return [_rfft_transposed(ct, fft_lengths)]
        if fft_type == FftType.IRFFT:
            return [_irfft_transposed(ct, fft_lengths)]
        return [self.bind(ct, fft_type=fft_type, fft_lengths=fft_lengths)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Array, int | None]:
        check_element(self, axis, args, dims, params)
        return self.bind(move_axis(args[0], dims[0], 0), **params), 0


fft_p = Fft("fft")


def _weighted(x: Array, length: int, interior: float, scale: float) -> Array:
    """`x`, half a spectrum of `length`, times `scale`, its interior times `interior` besides.

    The interior are the terms that stand for two of the full spectrum: all but the first, and
    the last if the length is even.
    """
    aval = typeof(x)
    weights = np.full(aval.shape[-1], scale * interior)
    weights[0] = scale
    if length % 2 == 0:
        weights[-1] = scale
    with config.enable_x64(True):   # a cotangent of complex128 may come while it is off
        factors = broadcast_in_dim(weights.astype(aval.dtype), aval.shape, (aval.ndim - 1,))
    return mul(x, factors)


def _rfft_transposed(ct: Array, lengths: Dims) -> Array:
    """Re Σ_k ct[k] w^(kn) over the half spectrum: IRFFT counts the interior twice."""
    if 0 in lengths:
        return broadcast_in_dim(literal(0, dtypes.to_real_dtype(typeof(ct).dtype)),
                                (*typeof(ct).shape[:-1], lengths[-1]), ())
    half = _weighted(conj(ct), lengths[-1], 0.5, float(prod(lengths)))
    return fft_p.bind(half, fft_type=FftType.IRFFT, fft_lengths=lengths)


def _irfft_transposed(ct: Array, lengths: Dims) -> Array:
    """1/N Σ_n ct[n] w^(-kn), the interior doubled: each term is itself and its mirror image."""
    if 0 in lengths:
        aval = typeof(ct)
        shape = (*aval.shape[:-1], lengths[-1] // 2 + 1)
        return broadcast_in_dim(literal(0, dtypes.to_complex_dtype(aval.dtype)), shape, ())
    spectrum = fft_p.bind(ct, fft_type=FftType.RFFT, fft_lengths=lengths)
    return conj(_weighted(spectrum, lengths[-1], 2.0, 1.0 / prod(lengths)))


def _fft_type(value: FftType | str) -> FftType:
    """The member of `FftType` that a member or a name, in any case, stands for."""
    if isinstance(value, FftType):
        return value
    if isinstance(value, str) and value.upper() in FftType.__members__:
        return FftType[value.upper()]
    names = ", ".join(FftType.__members__)
    error = ValueError if isinstance(value, str) else TypeError
    raise error(f"fft: fft_type {value!r} given; a lax.FftType or one of the names {names} is "
                "required.")


def fft(x: ArrayLike, fft_type: FftType | str, fft_lengths: int | Sequence[int]) -> Array:
    """The discrete Fourier transform over trailing axes.

    Args:
      x: array of a complex dtype; real dtypes become complex, except for RFFT, which takes
        float32 and float64 only.
      fft_type: an `FftType` or its name.
      fft_lengths: an int or up to three, the sizes of the transformed axes on the side that is not
        halved: the axes of `x`, for IRFFT the result's. `()` returns `x`.
    Returns: An array of the shape of `x`; its last axis has n//2 + 1 terms for RFFT, n for IRFFT.

    ValueError for sizes that do not fit the lengths, TypeError for dtypes. IRFFT ignores the
    imaginary parts of terms that are real for real series.

    >>> x = olympus.numpy.array([1., 2., 0., 0.])
    >>> olympus.lax.fft(x, "rfft", 4)
    Array([ 3.+0.j,  1.-2.j, -1.+0.j], dtype=complex64)
    """
    kind = _fft_type(fft_type)
    if not isinstance(fft_lengths, (list, tuple)):
        fft_lengths = (fft_lengths,)    # type: ignore[assignment]
    lengths = canonical_shape(fft_lengths, "fft: fft_lengths")
    aval = typeof(x)
    if kind == FftType.RFFT:
        if dtypes.is_complex(aval.dtype):
            raise TypeError(f"fft: operand {aval} given; RFFT takes real numbers; use FFT, or the "
                            "real part.")
    elif not dtypes.is_complex(aval.dtype):
        x = convert_element_type(x, dtypes.to_complex_dtype(aval.dtype))
    return (fft_p.bind(x, fft_type=kind, fft_lengths=lengths) if lengths
            else cast("Array", x))
