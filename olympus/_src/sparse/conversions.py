"""Between dense arrays and the parts of a BCOO: todense, fromdense, extract, sort, sum, transpose.

Functions here take the arrays `data` and `indices`; those of `bcoo.py` take sparse arrays.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..base.typing import Array, DType
from ..core.trace import typeof
from ..lax.creation import iota
from ..lax.shape import broadcast_in_dim
from ..lax.slicing import pad
from ..lax.sort import sort
from ..numpy.creation import asarray, full, zeros
from ..numpy.grids import arange
from ..numpy.indexing import nonzero
from ..numpy.joining import stack
from ..numpy.reductions import all as all_of, any as any_of, cumsum
from ..numpy.selection import where
from ..types import dtypes
from .defined import Defined, add_at, batched, read
from .formats import Shape, SparseInfo, bcoo_properties, check_counts, index_properties, largest

BOOL, INT32 = dtypes.as_dtype("bool"), dtypes.as_dtype("int32")


def inside(indices: Array, sizes: Sequence[int]) -> Array:
    """Whether each index, along the last axis, is in an array of these sizes; else it is padding.
    """
    limits = np.minimum(np.asarray(sizes, np.int64), np.iinfo(indices.dtype).max)
    limits = limits.reshape(*[1] * (indices.ndim - 1), -1)
    return all_of((indices >= 0) & (indices < asarray(limits.astype(indices.dtype))), -1)


def only(mask_of_rows: Array, x: Array) -> Array:
    """`x` where a mask of its leading axes is true, 0 elsewhere, in the dtype of `x`."""
    mask = mask_of_rows.reshape(*mask_of_rows.shape, *[1] * (x.ndim - mask_of_rows.ndim))
    return where(mask, x, zeros((), x.dtype))   # the number 0 would make bools integers


def for_columns(numbers: Sequence[int] | np.ndarray, dtype: DType, ndim: int = 2) -> Array:
    """A number for each column of indices with `ndim` axes, so that no rank is promoted."""
    return asarray(np.asarray(numbers).reshape(*[1] * (ndim - 1), -1).astype(dtype))


def padding(sizes: Sequence[int], dtype: DType, ndim: int = 2) -> Array:
    """The index that padding has: the sizes themselves."""
    return for_columns(np.asarray(sizes, np.int64).clip(max=np.iinfo(dtype).max), dtype, ndim)


def _todense(data: Array, indices: Array, *, spinfo: SparseInfo) -> Array:
    shape = spinfo.shape
    n_batch, n_sparse, _, _ = bcoo_properties(data, indices, shape)
    sizes = shape[n_batch:n_batch + n_sparse]
    return batched(lambda d, i: add_at(sizes, i, d), shape[:n_batch])(data, indices)


bcoo_todense_p = Defined("bcoo_todense", _todense)


def _fromdense(mat: Array, *, nse: int, n_batch: int, n_dense: int, index_dtype: DType
               ) -> tuple[Array, Array]:
    """The first `nse` elements that are not 0, in lexicographic order, and their indices."""
    check_counts(f"fromdense: {typeof(mat)} given", index_dtype,
                 mat.shape[n_batch:mat.ndim - n_dense])

    def one(m: Array) -> tuple[Array, Array]:
        n_sparse = m.ndim - n_dense
        stored = any_of(m != 0, tuple(range(n_sparse, m.ndim))) if n_dense else m != 0
        if not n_sparse:
            index = zeros((nse, 0), index_dtype)
            first = (arange(nse) < 1) & stored
            return only(first, read(m, index)), index
        columns = nonzero(stored, size=nse, fill_value=m.shape[:n_sparse])
        index = stack([p.astype(index_dtype) for p in columns], -1)
        return read(m, index).astype(m.dtype), index

    return batched(one, mat.shape[:n_batch])(mat)   # pyright: ignore[reportReturnType]


bcoo_fromdense_p = Defined("bcoo_fromdense", _fromdense, multiple_results=True)


def ordered(indices: Array) -> tuple[Array, Array]:
    """Rows of `indices`, [n, k], in lexicographic order, and the former position of each."""
    n, k = indices.shape
    if not k:
        return indices, iota(INT32, n)
    *columns, order = sort((*[indices[:, i] for i in range(k)], iota(INT32, n)), num_keys=k)
    return stack(columns, -1), order


def padding_last(indices: Array, sizes: Sequence[int]) -> tuple[Array, Array, Array]:
    """Rows of `indices`, [n, k], in lexicographic order; rows outside come last, as padding.

    Returns (rows, their former positions, whether each of `indices` is inside).
    """
    valid = inside(indices, sizes)
    return *ordered(where(valid[:, None], indices, padding(sizes, indices.dtype))), valid


def distinct(indices: Array, sizes: Sequence[int]) -> tuple[Array, Array, Array, Array]:
    """Rows of `indices`, [n, k], sorted, with padding last.

    Returns (sorted rows, their former positions, the number of each one's group of equal rows,
    whether it is the first of a group); padding is in no group.
    """
    n, k = indices.shape
    rows, order, valid = padding_last(indices, sizes)
    counted = valid[order]
    first = (iota(INT32, n) == 0) & counted
    if k:
        before = pad(rows, zeros((), rows.dtype), [(1, -1, 0), (0, 0, 0)])
        first |= any_of(rows != before, -1) & counted
    group = where(counted, cumsum(first.astype(INT32)) - 1, n)
    return rows, order, group, first


def _extract(indices: Array, arr: Array, *, assume_unique: bool) -> Array:
    """The elements of a dense array at the indices of a BCOO; 0 at all but the first of equals."""
    n_batch, n_sparse, _, _ = index_properties(indices, arr.shape)

    def one(i: Array, a: Array) -> Array:
        elements = read(a, i)
        if assume_unique:
            return elements
        _, order, _, first = distinct(i, a.shape[:n_sparse])
        is_first = zeros(i.shape[:1], bool).at[order].set(first)
        return only(is_first, elements)

    return batched(one, arr.shape[:n_batch])(indices, arr)


bcoo_extract_p = Defined("bcoo_extract", _extract)


def _sort_indices(data: Array, indices: Array, *, spinfo: SparseInfo) -> tuple[Array, Array]:
    """The stored elements in lexicographic order of their indices, padding last."""
    n_batch, n_sparse, _, _ = bcoo_properties(data, indices, spinfo.shape)
    sizes = spinfo.shape[n_batch:n_batch + n_sparse]
    batch = indices.shape[:n_batch]
    rows, order = batched(lambda i: padding_last(i, sizes)[:2], batch)(indices)
    return batched(lambda d, i: d[i], largest(batch, data.shape[:n_batch]))(data, order), rows


bcoo_sort_indices_p = Defined("bcoo_sort_indices", _sort_indices, multiple_results=True)


def _sum_duplicates(data: Array, indices: Array, *, spinfo: SparseInfo, nse: int
                    ) -> tuple[Array, Array]:
    """Elements of equal indices summed, in lexicographic order, padded or cut to `nse`."""
    shape = spinfo.shape
    n_batch, n_sparse, _, _ = bcoo_properties(data, indices, shape)
    sizes = shape[n_batch:n_batch + n_sparse]
    batch = indices.shape[:n_batch]

    def grouped(i: Array) -> tuple[Array, Array]:
        rows, order, group, first = distinct(i, sizes)
        at = where(first, group, nse)
        merged = full((nse, n_sparse), padding(sizes, i.dtype)).at[at].set(rows, mode="drop")
        return merged, zeros(group.shape, INT32).at[order].set(group)

    merged, group = batched(grouped, batch)(indices)
    summed = batched(lambda d, g: add_at((nse,), g[:, None], d),
                     largest(batch, data.shape[:n_batch]))(data, group)
    return summed, merged


bcoo_sum_duplicates_p = Defined("bcoo_sum_duplicates", _sum_duplicates, multiple_results=True)


def sparse_permutation(permutation: Sequence[int], n_batch: int, n_sparse: int, shape: Shape
                       ) -> tuple[list[int], list[int], list[int]]:
    """The parts of a permutation of axes: of batch, sparse and dense axes, each from 0."""
    permutation = [int(p) for p in permutation]
    if sorted(permutation) != list(range(len(shape))):
        raise TypeError(f"bcoo_transpose: permutation {tuple(permutation)} of an array of shape "
                        f"{shape} given; it isn't a permutation of operand dimensions; each of "
                        f"{tuple(range(len(shape)))} once is required.")
    batch, sparse = permutation[:n_batch], permutation[n_batch:n_batch + n_sparse]
    dense = permutation[n_batch + n_sparse:]
    for kind, part, least, others in (
            ("batch", batch, 0, "non-batch"), ("dense", dense, n_batch + n_sparse, "non-dense")):
        if sorted(part) != list(range(least, least + len(part))):
            raise NotImplementedError(
                f"bcoo_transpose: permutation {tuple(permutation)} of an array with {n_batch} "
                f"batch and {n_sparse} sparse axes given; it cannot permute {kind} axes with "
                f"{others} axes; make them sparse first, by update_layout(n_batch=0, n_dense=0).")
    return (batch, [p - n_batch for p in sparse], [p - n_batch - n_sparse for p in dense])


def _transpose(data: Array, indices: Array, *, permutation: tuple[int, ...], spinfo: SparseInfo
               ) -> tuple[Array, Array]:
    n_batch, n_sparse, _, _ = bcoo_properties(data, indices, spinfo.shape)
    batch, sparse, dense = sparse_permutation(permutation, n_batch, n_sparse, spinfo.shape)
    columns = (indices if sparse == list(range(n_sparse)) else
               stack([indices[..., i] for i in sparse], -1))
    return (data.transpose(*batch, n_batch, *[d + n_batch + 1 for d in dense]),
            columns.transpose(*batch, n_batch, n_batch + 1))


bcoo_transpose_p = Defined("bcoo_transpose", _transpose, multiple_results=True)


def broadcast_batch(part: Array, batch: Sequence[int]) -> Array:
    """A part of a sparse array with batch axes of these sizes."""
    shape = (*batch, *part.shape[len(batch):])
    return part if part.shape == shape else broadcast_in_dim(part, shape, range(part.ndim))
