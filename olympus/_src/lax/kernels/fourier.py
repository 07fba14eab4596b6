"""Convolutions of one feature by long kernels, as products of Fourier transforms.

XLA:CPU (0.10.2, 0.12.0.1) computes them one product at a time, some 0.2 to 1 ns each. The
transforms of float32 are in float64, so that errors are below those of direct sums if they are
measured by the largest element of the result; by smaller elements they may be larger. What is
smaller than the error becomes 0, as it is where no products are added: so sums of numbers that are
not negative stay so. With infinities or NaN the direct sums run, which spread them less.
"""

from __future__ import annotations

import builtins
import functools
import itertools
from collections.abc import Sequence

import numpy as np

from ...base.typing import Array, DType, IrValue
from ...base.util import memoize
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.shape import prod
from ..arithmetic import is_finite, mul, neg
from ..bits import bitwise_and, bitwise_not, bitwise_or
from ..comparison import ge, le, select
from ..conv import ConvDimensionNumbers
from ..convert import in_dtype
from ..fft import FftType, fft_p
from ..reduce import reduce_and
from ..shape import broadcast_in_dim, reduce_sum, reshape, rev, transpose, zeros_of
from ..slicing import pad, slice
from ..transcendental import sqrt

Pairs = tuple[tuple[int, int], ...]
Sizes = tuple[int, ...]
FLOAT32, FLOAT64, INT32 = map(dtypes.as_dtype, ("float32", "float64", "int32"))
# Found with tools/kernel_table.py: a transformed element costs as much as so many products.
PRODUCTS, LEAST, AXES = 64, 32768, 3
EPS = float(np.finfo(np.float64).eps)


def is_long(b: Builder, *xs: IrValue, window_strides: Sizes, padding: Pairs, lhs_dilation: Sizes,
            rhs_dilation: Sizes, dimension_numbers: ConvDimensionNumbers,
            preferred_element_type: DType | None, **params: object) -> bool:
    """Whether transforms take less time than products."""
    (lhs, rhs), out, spec = b.avals_in, b.avals_out[0], dimension_numbers
    if not (lhs.dtype == rhs.dtype == out.dtype == FLOAT32 and 1 <= lhs.ndim - 2 <= AXES
            and {*window_strides, *lhs_dilation, *rhs_dilation} == {1}
            and lhs.shape[spec.lhs_spec[1]] == 1 == rhs.shape[spec.rhs_spec[0]] and out.size
            and rhs.size and lhs.size):
        return False
    sizes = _transformed(spec, padding, lhs.shape, rhs.shape, out.shape)
    batch = lhs.shape[spec.lhs_spec[0]]
    return sizes is not None and out.size * rhs.size >= builtins.max(
        LEAST, PRODUCTS * prod(sizes) * batch)


def _transformed(spec: ConvDimensionNumbers, padding: Pairs, lhs: Sizes, rhs: Sizes, out: Sizes
                 ) -> Sizes | None:
    """The sizes of transforms; None where the padding makes sums of no products."""
    sizes = []
    for i, j, k, (low, _) in zip(spec.lhs_spec[2:], spec.rhs_spec[2:], spec.out_spec[2:], padding,
                                 strict=True):
        n, w, count = lhs[i], rhs[j], out[k]
        # Among all n + w - 1 sums. Those before `start` may be added to those that wrap around.
        start = w - 1 - low
        if start < 0 or start + count > n + w - 1:
            return None
        sizes.append(_quick(builtins.max(n, w, n + w - 1 - start, start + count)))
    return tuple(sizes)


@memoize(1024)
def _quick(n: int) -> int:
    """The least even product of 2, 3 and 5 from n on."""
    most = n.bit_length() + 1
    odd = [3 ** i * 5 ** j for i, j in itertools.product(range(most), repeat=2)
           if 3 ** i * 5 ** j <= 2 * n]
    return builtins.min(k << builtins.max(1, (-(-n // k) - 1).bit_length()) for k in odd)


def by_transforms(b: Builder, lhs: IrValue, rhs: IrValue, *, padding: Pairs,
                  dimension_numbers: ConvDimensionNumbers, **params: object) -> IrValue:
    """The convolution; the direct one where an operand has an infinity or NaN."""
    (aval, kernel), out, spec = b.avals_in, b.avals_out[0], dimension_numbers
    sizes = _transformed(spec, padding, aval.shape, kernel.shape, out.shape) or ()
    starts = [kernel.shape[j] - 1 - low for j, (low, _) in zip(spec.rhs_spec[2:], padding,
                                                              strict=True)]
    count = tuple([out.shape[i] for i in spec.out_spec[2:]])
    fun = functools.partial(_product, spec, sizes, tuple(starts), count)
    (unfinished,) = b.traced(_has_others, [lhs, rhs], [aval, kernel])

    def direct() -> list[IrValue]:
        return [b.eqn.primitive.lower(b, lhs, rhs, padding=padding, dimension_numbers=spec,
                                      **params)]

    (found,) = b.case(unfinished, [lambda: b.traced(fun, [lhs, rhs], [aval, kernel]), direct],
                      [b.type(out)])
    return found


def _has_others(*xs: Array) -> Array:
    """1 if an element is infinite or NaN, else 0."""
    finite = [reduce_and(is_finite(x), tuple(range(typeof(x).ndim))) for x in xs]
    return in_dtype(bitwise_or(*map(bitwise_not, finite)), INT32)


def _product(spec: ConvDimensionNumbers, sizes: Sizes, starts: Sizes, count: Sizes, lhs: Array,
             rhs: Array) -> Array:
    axes = tuple(range(1, len(sizes) + 1))
    # [batch, *space] and [1, *space], the kernel backwards.
    x, y = _wide(lhs, spec.lhs_spec), rev(_wide(rhs, spec.rhs_spec), axes)
    norms = mul(_norm(x, axes), broadcast_in_dim(_norm(y, axes), (typeof(x).shape[0],), (0,)))
    spectra = [fft_p.bind(_extended(v, sizes), fft_type=FftType.RFFT, fft_lengths=sizes)
               for v in (x, y)]
    shape = typeof(spectra[0]).shape
    product = mul(spectra[0], broadcast_in_dim(spectra[1], shape, tuple(range(len(shape)))))
    found = fft_p.bind(product, fft_type=FftType.IRFFT, fft_lengths=sizes)
    batch = shape[0]
    found = slice(found, (0, *starts), (batch, *[s + c for s, c in zip(starts, count,
                                                                      strict=True)]))
    # The bound of errors that rounding each stage of the transforms gives.
    bound = mul(norms, EPS * prod(sizes).bit_length())
    bound = broadcast_in_dim(bound, typeof(found).shape, (0,))
    found = select(bitwise_and(le(found, bound), ge(found, neg(bound))),
                   zeros_of(typeof(found)), found)
    found = in_dtype(reshape(found, (batch, 1, *count)), FLOAT32)
    order = [0] * len(spec.out_spec)
    for ours, its in enumerate(spec.out_spec):
        order[its] = ours
    return transpose(found, tuple(order))


def _wide(x: Array, order: Sizes) -> Array:
    """[batch, *space] in float64, of an array with the axes `order` and a feature of 1."""
    x = transpose(x, order)
    shape = typeof(x).shape
    return in_dtype(reshape(x, (shape[0], *shape[2:])), FLOAT64)


def _norm(x: Array, axes: Sizes) -> Array:
    return sqrt(reduce_sum(mul(x, x), axes))


def _extended(x: Array, sizes: Sequence[int]) -> Array:
    """With zeros behind, up to these sizes."""
    more = [n - m for n, m in zip(sizes, typeof(x).shape[1:], strict=True)]
    return pad(x, literal(0, FLOAT64), [(0, 0, 0), *[(0, k, 0) for k in more]])
