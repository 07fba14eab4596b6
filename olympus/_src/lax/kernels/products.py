"""Products of many small matrices; XLA:CPU runs a loop or calls a library for each.

The product is a sum of outer products, which XLA makes one loop of vectors over all matrices.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence

from ...base.typing import Array, DType, IrValue
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import typeof
from ...types import dtypes
from ...types.shape import prod
from ..arithmetic import mul
from ..comparison import eq, select
from ..contract import dot_general_p, free_axes
from ..families import add
from ..shape import broadcast_in_dim, reshape, transpose, zeros_of
from ..slicing import slice_in_dim

Dims = tuple[int, ...]
DimensionNumbers = tuple[tuple[Dims, Dims], tuple[Dims, Dims]]
# Found with tools/kernel_table.py: XLA is as fast for larger matrices, and for few.
LARGEST, LEAST_BATCH, LEAST_ELEMENTS = 8, 64, 4096
MIDDLE, LEAST_OF_MIDDLE = 6, 1024       # matrices of up to 6 rows


def _sizes(shape: Sequence[int], axes: Dims) -> int:
    return prod([shape[i] for i in axes])


def _is_small(b: Builder, lhs: IrValue, rhs: IrValue, *, dimension_numbers: DimensionNumbers,
              preferred_element_type: DType | None, **params: Hashable) -> bool:
    (x, y), out = b.avals_in, b.avals_out[0]
    (lc, rc), (lb, rb) = dimension_numbers
    if not x.dtype == y.dtype == out.dtype or dtypes.itemsize_bits(out.dtype) < 32 or (
            dtypes.is_complex(out.dtype)):      # whose zeros have signs in either part
        return False
    batch, k = _sizes(x.shape, lb), _sizes(x.shape, lc)
    m, n = _sizes(x.shape, free_axes(x.ndim, lc, lb)), _sizes(y.shape, free_axes(y.ndim, rc, rb))
    size = max(m, k, n)
    least = LEAST_OF_MIDDLE if size <= MIDDLE else LEAST_ELEMENTS
    return batch >= LEAST_BATCH and out.size >= least and k > 1 and 2 < size <= LARGEST


def _small(b: Builder, lhs: IrValue, rhs: IrValue, *, dimension_numbers: DimensionNumbers,
           **params: Hashable) -> IrValue:
    # In memory: each element is read for every column or row, and would be computed as often.
    xs = [x if made_before(x) else b.hold(x, aval)
          for x, aval in zip((lhs, rhs), b.avals_in, strict=True)]
    fun = functools.partial(_outer_products, dimension_numbers=dimension_numbers)
    return b.by_rule(fun, xs, b.avals_in)[0]


def made_before(x: IrValue) -> bool:
    """Whether a value is an argument, of a function or a region: no operation computes it."""
    return not hasattr(x.owner, "operands")


def _outer_products(x: Array, y: Array, *, dimension_numbers: DimensionNumbers) -> Array:
    (lc, rc), (lb, rb) = dimension_numbers
    given, other = typeof(x).shape, typeof(y).shape
    rows, columns = free_axes(len(given), lc, lb), free_axes(len(other), rc, rb)
    batch, k = [_sizes(given, axes) for axes in (lb, lc)]
    m, n = _sizes(given, rows), _sizes(other, columns)
    x = reshape(transpose(x, (*lb, *rows, *lc)), (batch, m, k))
    y = reshape(transpose(y, (*rb, *rc, *columns)), (batch, k, n))
    terms = [mul(broadcast_in_dim(reshape(slice_in_dim(x, i, i + 1, 1, 2), (batch, m)),
                                  (batch, m, n), (0, 1)),
                 broadcast_in_dim(reshape(slice_in_dim(y, i, i + 1, 1, 1), (batch, n)),
                                  (batch, m, n), (0, 2))) for i in range(k)]
    found = functools.reduce(add, terms)
    zeros = zeros_of(typeof(found))
    found = select(eq(found, zeros), zeros, found)      # sums start from 0: none is -0.0
    return reshape(found, (*[given[i] for i in lb], *[given[i] for i in rows],
                           *[other[i] for i in columns]))


KERNELS = {dot_general_p: (
    Kernel("outer products", "XLA computes products of small matrices one by one", _is_small,
           _small, 30.6),)}
