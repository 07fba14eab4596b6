"""Products of a sparse array and a dense one on one CPU, by one loop over the stored elements.

Each iteration adds the products of a few elements to their rows. XLA:CPU (0.10.2) makes
one function of the loop, since an iteration touches few bytes (`base/lib/executables.py`): 2 ns an
element, and no array of indices or products between. The order of the indices does not matter, and
XLA keeps every place that is read or written within its array.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

import numpy as np

from ..base.typing import Array, DType, IrValue
from ..control_flow.while_loop import while_loop
from ..core.kernels import Kernel
from ..core.primitive import Builder
from ..lax.convert import bitcast_convert_type, convert_element_type
from ..lax.shape import reshape, transpose
from ..lax.slicing import dynamic_slice, dynamic_update_slice, slice_in_dim
from ..numpy.creation import zeros
from ..numpy.selection import where
from ..types import dtypes
from ..types.shape import prod
from .formats import Shape, SparseInfo
from .products import Numbers, bcoo_dot_general_p, bcsr_dot_general_p, row_places

INT32, UINT32 = dtypes.as_dtype("int32"), dtypes.as_dtype("uint32")
_TERMS = ("int32", "int64", "float32", "float64", "complex64", "complex128")
_LEAST = 2048       # elements; for fewer, both forms take equally long
_RUNS = 3           # parts of the elements; their steps alternate, so no sum waits for the last
_BYTES = 8192       # of the rows that an iteration changes; with all it reads below XLA's limit


def _each(width: int, dtype: DType) -> int:
    """How many elements an iteration takes; 0 where a row is too long for one."""
    return min(_BYTES // (width * dtype.itemsize), 12)


def _suits(b: Builder, *parts: IrValue, dimension_numbers: Numbers,
           preferred_element_type: DType | None, lhs_spinfo: SparseInfo) -> bool:
    (lc, rc), (lb, _) = dimension_numbers
    data, indices, *pointers, rhs = b.avals_in
    shape, out = lhs_spinfo.shape, b.avals_out[0]
    rows = prod([size for d, size in enumerate(shape) if d not in lc])
    return (data.ndim == 1 and indices.ndim + len(pointers) == 2 and not lb
            and indices.shape[0] == data.size >= max(_LEAST, rows) and 0 < len(lc) < len(shape)
            and 0 not in (*shape, *out.shape) and max(*shape, data.size) < 2**31 - 1
            and data.dtype.name in _TERMS and rhs.dtype == data.dtype == out.dtype
            and _each(rhs.size // prod([rhs.shape[i] for i in rc]), data.dtype) > 0)


def _by_elements(b: Builder, *xs: IrValue, dimension_numbers: Numbers,
                 preferred_element_type: DType | None, lhs_spinfo: SparseInfo) -> IrValue:
    (contracted, _), shape = dimension_numbers, lhs_spinfo.shape

    def product(data: Array, *others: Array) -> list[Array]:
        *parts, rhs = others
        indices = row_places(shape, 0, parts[1], parts[0]) if len(parts) == 2 else parts
        out = _product(data, indices, rhs, shape, contracted)
        return [reshape(out, b.avals_out[0].shape)]

    return b.traced(product, xs, b.avals_in)[0]


def _product(data: Array, indices: Sequence[Array], rhs: Array, shape: Shape,
             contracted: tuple[Sequence[int], Sequence[int]]) -> Array:
    """The product [*free_axes, columns]; `indices`: [nse, axes], or one vector for each axis."""
    (nse,), (lc, rc) = data.shape, contracted
    free_axes = [d for d in range(len(shape)) if d not in lc]
    free = [d for d in range(rhs.ndim) if d not in rc]
    columns = prod([rhs.shape[d] for d in free])
    # XLA lets LLVM unroll the last axis alone: since its size is 1, the loop over the columns
    # remains one, of which LLVM makes vectors.
    row = (columns, 1)
    x = reshape(transpose(rhs, (*rc, *free)), (*[shape[d] for d in lc], *row))
    indices = [p if p.dtype.itemsize >= 4 else convert_element_type(p, INT32) for p in indices]
    each = _each(columns, data.dtype)
    runs = _RUNS if each >= _RUNS else 1
    block = each // runs        # neighbours that an iteration takes of each run
    length = nse // (runs * block) * block
    zero = UINT32.type(0)

    def block_of(k: Array | np.uint32, size: int) -> list[Array]:
        """The indices by column, and the values, of `size` elements from k on."""
        if len(indices) == 1:
            rows = dynamic_slice(indices[0], (k, zero), (size, len(shape)))
            columns = [rows[:, d] for d in range(len(shape))]
        else:
            columns = [dynamic_slice(p, (k,), (size,)) for p in indices]
        return [*map(_unsigned, columns), dynamic_slice(data, (k,), (size,))]

    def added(out: Array, *element: Array) -> Array:
        """`out` plus the product of one element, given as its index and value, [1] each."""
        *at, value = [reshape(x, ()) for x in element]
        inside = [at[d] < at[d].dtype.type(shape[d]) for d in (*lc, *free_axes[1:])]
        met, (first, *others) = [at[d] for d in lc], [at[d] for d in free_axes]
        first = where(reduce(and_, inside), first, np.iinfo(first.dtype).max)
        here, size = (first, *others, zero, zero), (*[1] * len(free_axes), *row)
        x_there = dynamic_slice(x, (*met, zero, zero), (*[1] * len(lc), *row))
        product = value * reshape(x_there, size)
        return dynamic_update_slice(out, dynamic_slice(out, here, size) + product, here)

    def step(state: tuple[Array, Array]) -> tuple[Array, Array]:
        k, out = state
        blocks = [block_of(k + UINT32.type(run * length), block) for run in range(runs)]
        for i in range(block):
            for parts in blocks:
                out = added(out, *[part[i:i + 1] for part in parts])
        return k + UINT32.type(block), out

    # Padding is added to one more row.
    out = zeros((shape[free_axes[0]] + 1, *[shape[d] for d in free_axes[1:]], *row), data.dtype)
    _, out = while_loop(lambda state: state[0] < UINT32.type(length), step, (zero, out))
    for k in range(runs * length, nse):
        out = added(out, *block_of(UINT32.type(k), 1))
    return slice_in_dim(out, 0, shape[free_axes[0]])


def _unsigned(index: Array) -> Array:
    """Indices without sign: a negative index becomes one that is too large."""
    return bitcast_convert_type(index, dtypes.as_dtype(f"uint{8 * index.dtype.itemsize}"))


_LOOP = Kernel("a loop over elements", "XLA writes indices and products to memory for its scatter",
               _suits, _by_elements)
KERNELS = {bcoo_dot_general_p: (_LOOP,), bcsr_dot_general_p: (_LOOP,)}
