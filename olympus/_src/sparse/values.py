"""The values of `sparsify`: arrays, sparse or dense, by the places of their buffers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike
from ..core.trace import typeof
from ..numpy.creation import asarray
from .formats import WORDS


class Fill(NamedTuple):
    """The number at all places of an array that store no element."""

    number: np.ndarray      # of rank 0
    error: NotImplementedError | None = None    # of a rule that needs zeros there


class SparsifyValue(NamedTuple):
    """An array, sparse or dense, by the places of its buffers in an environment.

    >>> from olympus.experimental import sparse
    >>> env = sparse.transform.SparsifyEnv()
    >>> value = sparse.transform.arrays_to_spvalues(env, sparse.eye(2))
    >>> value.is_bcoo(), value.shape
    (True, (2, 2))
    """

    shape: tuple[int, ...]
    data_ref: int | None
    indices_ref: int | None = None
    indptr_ref: int | None = None
    indices_sorted: bool | None = False
    unique_indices: bool | None = False
    #: The shape before the array was broadcast along sparse axes. Products with sparse arrays take
    #: that form; any other operation would have to store each element once for each place.
    narrow: tuple[int, ...] | None = None
    #: For a sparse array whose other places are not 0, their number; for a dense array of one
    #: number, that number: its buffer is made where an operation needs it.
    fill: Fill | None = None

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    def is_sparse(self) -> bool:
        """Whether it has indices."""
        return self.indices_ref is not None

    def is_dense(self) -> bool:
        """Whether it has no indices."""
        return self.indices_ref is None

    def is_bcoo(self) -> bool:
        """Whether it is a BCOO."""
        return self.is_sparse() and self.indptr_ref is None

    def is_bcsr(self) -> bool:
        """Whether it is a BCSR."""
        return self.indptr_ref is not None


class SparsifyEnv:
    """The buffers of arrays; several arrays may share one.

    >>> from olympus.experimental import sparse
    >>> env = sparse.transform.SparsifyEnv()
    >>> value = sparse.transform.arrays_to_spvalues(env, sparse.eye(2))
    >>> print(env.data(value))
    [1. 1.]
    """

    def __init__(self, bufs: Sequence[Array] = ()) -> None:
        self._buffers = list(bufs)
        #: buffers of an array -> the array with each index stored once
        self._summed: dict[tuple[int | None, ...], SparsifyValue] = {}

    def _push(self, arr: ArrayLike) -> int:
        whole: Any = arr
        self._buffers.append(whole if hasattr(arr, "aval") else asarray(arr))
        return len(self._buffers) - 1

    def _get(self, what: str, ref: int | None) -> Array:
        if ref is None:
            raise RuntimeError(f"SparsifyEnv.{what}: a value without {what} given.")
        return self._buffers[ref]

    def data(self, spvalue: SparsifyValue) -> Array:
        """The stored elements of a value; for a dense array, all."""
        return self._get("data", spvalue.data_ref)

    def indices(self, spvalue: SparsifyValue) -> Array:
        """The indices of a sparse value."""
        return self._get("indices", spvalue.indices_ref)

    def indptr(self, spvalue: SparsifyValue) -> Array:
        """The pointers of a BCSR."""
        return self._get("indptr", spvalue.indptr_ref)

    def dense(self, data: ArrayLike) -> SparsifyValue:
        """A new value for a dense array, or for a reference to one."""
        place = self._push(data)
        return SparsifyValue(typeof(self._buffers[place]).shape, place)

    def sparse(self, shape: Sequence[int], data: ArrayLike | None = None,
               indices: ArrayLike | None = None, indptr: ArrayLike | None = None, *,
               data_ref: int | None = None, indices_ref: int | None = None,
               indptr_ref: int | None = None, indices_sorted: bool | None = False,
               unique_indices: bool | None = False) -> SparsifyValue:
        """A new value for a sparse array; each part is an array, or the place of a buffer."""
        return SparsifyValue(
            tuple(shape), data_ref if data is None else self._push(data),
            indices_ref if indices is None else self._push(indices),
            indptr_ref if indptr is None else self._push(indptr), indices_sorted, unique_indices)


complete_docstrings(globals(), WORDS)
