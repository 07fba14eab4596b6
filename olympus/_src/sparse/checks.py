"""Checks that read indices and pointers: under `enable_checks`, of arrays that are not traced.
"""

from __future__ import annotations

import numpy as np

from ..base.config import enable_checks
from ..base.typing import Array
from ..core.trace import Tracer
from ..types.shape import prod
from .formats import SparseInfo


def checked(*parts: Array) -> bool:
    """Whether these parts of a sparse array are to be read and checked."""
    return enable_checks.value and not any(isinstance(x, Tracer) for x in parts)


def directions(rows: np.ndarray) -> np.ndarray:
    """For each row but the first: 1 if it is lexicographically after the row before, -1 if it is
    before that row, 0 if they are equal."""
    result = np.zeros(max(len(rows) - 1, 0), np.int8)
    for column in rows.T[::-1]:
        before, after = column[:-1], column[1:]
        result = np.where(before == after, result, np.where(before < after, 1, -1))
    return result


def check_indices(name: str, indices: np.ndarray, info: SparseInfo) -> None:
    """ValueError for indices [*batch, nse, n_sparse] that are outside of the array and no padding,
    or that break a promise of the array."""
    shape, is_sorted, unique, _ = info
    n_batch, n_sparse = indices.ndim - 2, indices.shape[-1]
    sizes = np.asarray(shape[n_batch:n_batch + n_sparse], np.int64)
    wrong = np.argwhere((indices < 0) | (indices > sizes))
    if len(wrong):
        place = tuple(map(int, wrong[0]))
        raise ValueError(f"{name}: index {indices[place]} at indices{list(place)} given; indices "
                         f"of 0 or more are required, and at most {sizes[place[-1]]} for axis "
                         f"{n_batch + place[-1]} of shape {shape}: padding has the size itself.")
    for rows in indices.reshape(prod(indices.shape[:-2]), *indices.shape[-2:]):
        outside = (rows >= sizes).any(-1)
        falls = directions(np.where(outside[:, None], sizes, rows)) < 0
        if is_sorted and falls.any():
            at = int(np.argmax(falls))
            raise ValueError(f"{name}: indices_sorted=True given, and index {rows[at + 1]} at "
                             f"{at + 1} after {rows[at]}; indices in lexicographic order are "
                             "required; call sort_indices() on the array without the promise.")
        inner = rows[~outside]
        order = np.lexsort([np.zeros(len(inner)), *inner.T[::-1]])
        if unique and (directions(inner[order]) == 0).any():
            raise ValueError(f"{name}: unique_indices=True given, and an index twice; call "
                             "sum_duplicates() on the array without the promise.")


def check_pointers(name: str, indices: np.ndarray, indptr: np.ndarray, info: SparseInfo) -> None:
    """ValueError unless pointers ascend from 0 to at most nse, and `check_indices` accepts the
    indices [*batch, nse] in front of the last pointer."""
    nse = indices.shape[-1]
    if indptr.size and ((indptr[..., 0] != 0).any() or (np.diff(indptr) < 0).any()
                        or (indptr > nse).any()):
        raise ValueError(f"{name}: indptr {indptr} given; pointers that ascend from 0 to at most "
                         f"nse={nse} are required.")
    batch = np.broadcast_shapes(indices.shape[:-1], indptr.shape[:-1])
    matrix = info._replace(shape=info.shape[len(batch):len(batch) + 2])
    each = [np.broadcast_to(x, (*batch, x.shape[-1])).reshape(prod(batch), x.shape[-1])
            for x in (indices, indptr)]
    for columns, ends in zip(*each, strict=True):
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        check_indices(name, np.stack([rows, columns[:ends[-1]]], -1), matrix)
