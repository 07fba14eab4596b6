"""Checks of indices and pointers, which read them: under `enable_checks`, of arrays that are there.
"""

from __future__ import annotations

import numpy as np

from ..base.config import enable_checks
from ..base.typing import Array
from ..core.trace import Tracer
from .formats import Shape, SparseInfo


def checked(*parts: Array) -> bool:
    """Whether these parts of a sparse array are to be read and checked."""
    return enable_checks.value and not any(isinstance(x, Tracer) for x in parts)


def flat_places(indices: np.ndarray, shape: Shape) -> np.ndarray:
    """Where each index is among all places in order, as one number; padding is last."""
    weights = np.cumprod([1, *[n + 1 for n in shape[:0:-1]]])[::-1]
    return (indices.astype(np.int64) * weights).sum(-1) if len(shape) else np.zeros(len(indices))


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
    for rows in indices.reshape(-1, *indices.shape[-2:]):
        outside = (rows >= sizes).any(-1)
        places = np.where(outside, np.iinfo(np.int64).max, flat_places(rows, tuple(sizes)))
        if is_sorted and (places[1:] < places[:-1]).any():
            at = int(np.argmax(places[1:] < places[:-1]))
            raise ValueError(f"{name}: indices_sorted=True given, and index {rows[at + 1]} at "
                             f"{at + 1} after {rows[at]}; indices in lexicographic order are "
                             "required; call sort_indices() on the array without the promise.")
        inner = places[~outside]
        if unique and len(np.unique(inner)) < len(inner):
            raise ValueError(f"{name}: unique_indices=True given, and an index twice; call "
                             "sum_duplicates() on the array without the promise.")


def check_pointers(name: str, indices: np.ndarray, indptr: np.ndarray, info: SparseInfo) -> None:
    """ValueError unless pointers ascend from 0 to at most nse, and the indices [*batch, nse] in
    front of the last one are what `check_indices` asks for."""
    nse = indices.shape[-1]
    if indptr.size and ((indptr[..., 0] != 0).any() or (np.diff(indptr) < 0).any()
                        or (indptr > nse).any()):
        raise ValueError(f"{name}: indptr {indptr} given; pointers that ascend from 0 to at most "
                         f"nse={nse} are required.")
    batch = np.broadcast_shapes(indices.shape[:-1], indptr.shape[:-1])
    matrix = info._replace(shape=info.shape[len(batch):len(batch) + 2])
    for columns, ends in zip(np.broadcast_to(indices, (*batch, nse)).reshape(-1, nse),
                             np.broadcast_to(indptr, (*batch, indptr.shape[-1])).reshape(
                                 -1, indptr.shape[-1]), strict=True):
        rows = np.repeat(np.arange(len(ends) - 1), np.diff(ends))
        check_indices(name, np.stack([rows, columns[:ends[-1]]], -1), matrix)
