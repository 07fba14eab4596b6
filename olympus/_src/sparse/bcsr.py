"""BCSR: stored elements by rows, with pointers to where each row starts, by batch."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DType, DTypeLike
from ..numpy.creation import asarray, zeros
from ..numpy.joining import concatenate
from ..numpy.reductions import cumsum
from ..types import dtypes
from ..types.shape import canonical_shape
from ..types.tree_registry import register_pytree_node_class
from .bcoo import (
    BCOO, ScipySparse, bcoo_eliminate_zeros, bcoo_sum_duplicates, concrete_count, stored_count,
)
from .checks import check_pointers, checked
from .conversions import bcoo_extract_p, bcoo_fromdense_p, bcoo_todense_p
from .defined import Defined, add_at, batched
from .formats import (
    WORDS, OLYMPUSSparse, Shape, SparseInfo, bcsr_properties, given_parts, healed_shape,
    pointer_properties, tree_info,
)
from .layout import bcoo_broadcast_in_dim, bcoo_concatenate
from .products import bcsr_dot_general_p, bcsr_indices, canonical_numbers

DimensionNumbers = Sequence[Sequence[Sequence[int]]]


@register_pytree_node_class
class BCSR(OLYMPUSSparse):
    """A sparse array by rows: row r has the elements from indptr[r] up to indptr[r + 1].

    A pytree of three arrays. Products are quicker than with a BCOO; transposes and slices need a
    BCOO (`to_bcoo`). Elements behind the last pointer or in columns that do not exist are padding.

    Args:
      args: data [*batch, nse, *dense], integers indices [*batch, nse] (the columns) and indptr
        [*batch, rows + 1], which ascends from 0.
      shape: of the array: [*batch, rows, columns, *dense].
      indices_sorted, unique_indices: promises, as for `BCOO`.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental import sparse
    >>> M = sparse.BCSR.fromdense(onp.array([[0., 5.], [6., 7.]]))
    >>> print(M.indptr, M.indices, M @ onp.array([1., 10.]))
    [0 1 3] [1 0 1] [50. 76.]
    """

    indices: Array
    indptr: Array
    indices_sorted: bool
    unique_indices: bool

    def __init__(self, args: tuple[ArrayLike, ArrayLike, ArrayLike], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False) -> None:
        self.data, self.indices, self.indptr = given_parts(
            "BCSR", args, "data, indices, indptr")
        self.shape = canonical_shape(shape, "BCSR")
        self.indices_sorted, self.unique_indices = bool(indices_sorted), bool(unique_indices)
        bcsr_properties(self.data, self.indices, self.indptr, self.shape)
        if checked(self.indices, self.indptr):
            check_pointers("BCSR", np.asarray(self.indices), np.asarray(self.indptr), self._info)

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], SparseInfo]:
        """For pytrees: the leaves data, indices and indptr, and the static fields."""
        return self._bufs, tree_info(self._info, self._bufs, 1)

    @classmethod
    def tree_unflatten(cls, aux_data: SparseInfo, children: Sequence[Array]) -> Self:
        """The sparse array with these leaves, whose batch axes lead its shape."""
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        if not isinstance(aux_data, SparseInfo):
            raise ValueError(f"BCSR.tree_unflatten: invalid aux_data={aux_data!r} given; what "
                             "tree_flatten returns is required.")
        self.shape, self.indices_sorted, self.unique_indices, _ = aux_data
        data, indices, indptr = (getattr(x, "shape", None) for x in children)
        if data and indices and indptr:
            n, behind = len(indices) - 1, 2 + max(len(data) - len(indices), 0)
            if (n or len(self.shape) != behind) and behind <= len(self.shape):
                self.shape = healed_shape(aux_data, behind, data[:n], indices[:n], indptr[:n])
        return self

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Array, Array, Array]:
        return self.data, self.indices, self.indptr

    @property
    def nse(self) -> int:
        """The number of stored elements in each batch, padding included."""
        return self.indices.shape[-1]

    @property
    def n_batch(self) -> int:
        """The number of batch axes, which lead."""
        return self.indices.ndim - 1

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes: rows and columns."""
        return 2

    @property
    def n_dense(self) -> int:
        """The number of dense axes, which trail."""
        return self.data.ndim - self.indices.ndim

    def _extra(self) -> str:
        return "".join(f", {name}={n}" for name, n in (
            ("n_batch", self.n_batch), ("n_dense", self.n_dense)) if n)

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None,
                  index_dtype: DTypeLike = np.int32, n_dense: int = 0, n_batch: int = 0) -> BCSR:
        """`bcsr_fromdense`: the sparse array of the elements that are not 0."""
        return bcsr_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
                              index_dtype=index_dtype)

    @classmethod
    def from_bcoo(cls, arr: BCOO) -> BCSR:
        """A BCOO of two sparse axes, stored by rows; indices not promised as sorted are sorted."""
        if arr.n_sparse != 2:
            raise NotImplementedError(f"BCSR.from_bcoo: {arr} of {arr.n_sparse} sparse axes given; "
                                      "n_sparse=2 is required; see update_layout.")
        if not arr.indices_sorted:
            arr = arr.sort_indices()
        columns, indptr = by_rows(arr.indices, arr.shape)
        return cls((arr.data, columns, indptr), shape=arr.shape, indices_sorted=True,
                   unique_indices=arr.unique_indices)

    def to_bcoo(self) -> BCOO:
        """The same array with an index for each element."""
        indices = bcsr_indices(self.indices, self.indptr, self.shape)
        return BCOO((self.data, indices), shape=self.shape, indices_sorted=self.indices_sorted,
                    unique_indices=self.unique_indices)

    @classmethod
    def from_scipy_sparse(cls, mat: ScipySparse, *, index_dtype: DTypeLike | None = None,
                          n_dense: int = 0, n_batch: int = 0) -> Self:
        """The elements that a sparse array or matrix of SciPy stores, of any format.

        >>> import numpy as np, scipy.sparse
        >>> from olympus.experimental import sparse
        >>> sparse.BCSR.from_scipy_sparse(scipy.sparse.eye_array(3, dtype=np.float32))
        BCSR(float32[3, 3], nse=3)
        """
        if n_dense or n_batch:
            raise NotImplementedError(
                f"BCSR.from_scipy_sparse: n_dense={n_dense} and n_batch={n_batch} given; SciPy's "
                "arrays have sparse axes only.")
        if len(mat.shape) != 2:
            raise ValueError(f"BCSR.from_scipy_sparse: shape {mat.shape} given; it requires 2D "
                             "array; use BCOO for other ranks.")
        csr = mat.tocsr()
        dtype = index_dtype or np.int32
        return cls((csr.data, csr.indices.astype(dtype, copy=False),    # pyright: ignore
                    csr.indptr.astype(dtype, copy=False)), shape=mat.shape)     # pyright: ignore

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCSR:
        """The array with elements of equal indices summed: see `BCOO.sum_duplicates`."""
        return (bcsr_eliminate_zeros if remove_zeros else bcsr_sum_duplicates)(self, nse)

    def todense(self) -> Array:
        """The array, dense."""
        return bcsr_todense(self)


def by_rows(indices: Array, shape: Shape) -> tuple[Array, Array]:
    """Columns and pointers of sorted indices [*batch, nse, 2]."""
    n_batch = indices.ndim - 2
    rows = shape[n_batch]

    def pointers(i: Array) -> Array:
        counts = add_at((rows,), i[:, :1], zeros(i.shape[:1], i.dtype) + 1)
        return concatenate([zeros((1,), i.dtype), cumsum(counts)]).astype(i.dtype)

    return indices[..., 1], batched(pointers, indices.shape[:n_batch])(indices)


def _fromdense(mat: Array, *, nse: int, n_batch: int, n_dense: int, index_dtype: DType
               ) -> tuple[Array, Array, Array]:
    if mat.ndim - n_batch - n_dense != 2:
        raise ValueError(f"bcsr_fromdense: {mat.dtype}{list(mat.shape)} with n_batch={n_batch} and "
                         f"n_dense={n_dense} given; must have 2 sparse dimensions.")
    data, indices = bcoo_fromdense_p.bind(mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
                                          index_dtype=index_dtype)
    return (data, *by_rows(indices, mat.shape))


bcsr_fromdense_p = Defined("bcsr_fromdense", _fromdense, multiple_results=True)


def _todense(data: Array, indices: Array, indptr: Array, *, spinfo: SparseInfo) -> Array:
    bcsr_properties(data, indices, indptr, spinfo.shape)
    return bcoo_todense_p.bind(data, bcsr_indices(indices, indptr, spinfo.shape), spinfo=spinfo)


bcsr_todense_p = Defined("bcsr_todense", _todense)


def _extract(indices: Array, indptr: Array, mat: Array) -> Array:
    pointer_properties(indices, indptr, mat.shape)
    return bcoo_extract_p.bind(bcsr_indices(indices, indptr, mat.shape), mat, assume_unique=True)


bcsr_extract_p = Defined("bcsr_extract", _extract)


def bcsr_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = np.int32) -> BCSR:
    """The sparse array by rows of the elements that are not 0; arguments as `bcoo_fromdense`.

    Args:
      n_batch: the number of batch axes.
      n_dense: the number of dense axes.

    >>> print(sparse.bcsr_fromdense(onp.array([[0., 5.], [6., 7.]])).indptr)
    [0 1 3]
    """
    mat = asarray(mat)
    count = (stored_count("bcsr_fromdense", mat, n_batch, n_dense) if nse is None
             else concrete_count("bcsr_fromdense", nse))
    parts = bcsr_fromdense_p.bind(mat, nse=count, n_batch=n_batch, n_dense=n_dense,
                                  index_dtype=dtypes.as_dtype(index_dtype))
    return BCSR(tuple(parts), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcsr_todense(mat: BCSR) -> Array:
    """The dense array that a BCSR stands for.

    >>> print(sparse.bcsr_todense(sparse.BCSR.fromdense(onp.eye(2))))
    [[1. 0.]
     [0. 1.]]
    """
    return bcsr_todense_p.bind(*mat._bufs, spinfo=mat._info)


def bcsr_extract(indices: ArrayLike, indptr: ArrayLike, mat: ArrayLike) -> Array:
    """The elements of a dense array at the indices of a BCSR.

    Args: indptr: where each row starts.

    >>> M = sparse.BCSR.fromdense(onp.eye(2))
    >>> print(sparse.bcsr_extract(M.indices, M.indptr, onp.array([[1., 2.], [3., 4.]])))
    [1. 4.]
    """
    return bcsr_extract_p.bind(asarray(indices), asarray(indptr), asarray(mat))


def bcsr_dot_general(lhs: BCSR | ArrayLike, rhs: ArrayLike, *, dimension_numbers: DimensionNumbers,
                     precision: object = None, preferred_element_type: DTypeLike | None = None,
                     out_sharding: object = None) -> Array:
    """`lax.dot_general` of a BCSR and a dense array; arguments as `bcoo_dot_general`.

    >>> M = sparse.BCSR.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.bcsr_dot_general(M, onp.ones(2), dimension_numbers=(((1,), (0,)), ((), ()))))
    [5. 6.]
    """
    if not isinstance(lhs, BCSR) or isinstance(rhs, OLYMPUSSparse):
        raise NotImplementedError(
            f"bcsr_dot_general: {type(lhs).__name__} and {type(rhs).__name__} given; currently "
            "implemented for BCSR lhs and ndarray rhs; use to_bcoo() and bcoo_dot_general.")
    dtype = None if preferred_element_type is None else dtypes.as_dtype(preferred_element_type)
    return bcsr_dot_general_p.bind(
        *lhs._bufs, asarray(rhs), dimension_numbers=canonical_numbers(dimension_numbers),
        preferred_element_type=dtype, lhs_spinfo=lhs._info)


def bcsr_sum_duplicates(mat: BCSR, nse: int | None = None) -> BCSR:
    """A BCSR with elements of equal indices summed, and its columns sorted.

    >>> M = sparse.BCSR((onp.array([1., 2.]), onp.array([1, 1]), onp.array([0, 2])), shape=(1, 2))
    >>> print(sparse.bcsr_sum_duplicates(M).data)
    [3.]
    """
    return BCSR.from_bcoo(bcoo_sum_duplicates(mat.to_bcoo(), nse))


def bcsr_eliminate_zeros(mat: BCSR, nse: int | None = None) -> BCSR:
    """`bcsr_sum_duplicates` without the elements that are 0.

    >>> M = sparse.BCSR((onp.array([1., 2.]), onp.array([1, 1]), onp.array([0, 2])), shape=(1, 2))
    >>> print(sparse.bcsr.bcsr_eliminate_zeros(M).data)
    [3.]
    """
    return BCSR.from_bcoo(bcoo_eliminate_zeros(mat.to_bcoo(), nse))


def bcsr_broadcast_in_dim(mat: BCSR, *, shape: Shape, broadcast_dimensions: Sequence[int],
                          sharding: object = None) -> BCSR:
    """`lax.broadcast_in_dim` of a BCSR: new axes are batches.

    >>> M = sparse.BCSR.fromdense(onp.eye(2))
    >>> sparse.bcsr_broadcast_in_dim(M, shape=(3, 2, 2), broadcast_dimensions=(1, 2))
    BCSR(float32[3, 2, 2], nse=2, n_batch=1)
    """
    return BCSR.from_bcoo(bcoo_broadcast_in_dim(
        mat.to_bcoo(), shape=shape, broadcast_dimensions=broadcast_dimensions))


def bcsr_concatenate(operands: Sequence[BCSR], *, dimension: int) -> BCSR:
    """`lax.concatenate` of BCSRs along a batch axis, rows or columns.

    >>> M = sparse.BCSR.fromdense(onp.eye(2))
    >>> print(sparse.bcsr_concatenate([M, M], dimension=0).indptr)
    [0 1 2 3 4]
    """
    return BCSR.from_bcoo(bcoo_concatenate([x.to_bcoo() for x in operands], dimension=dimension))


def empty_bcsr(shape: Sequence[int], dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0
               ) -> BCSR:
    """A BCSR of zeros, with room for `nse` elements."""
    shape = canonical_shape(shape, "empty")
    if len(shape) - n_dense - n_batch != 2 or min(n_dense, n_batch, nse) < 0:
        raise ValueError(f"empty: Invalid inputs: shape {shape}, n_dense={n_dense}, "
                         f"n_batch={n_batch}, nse={nse} given; BCSR must have 2 sparse dimensions.")
    batch = shape[:n_batch]
    return BCSR((zeros((*batch, nse, *shape[n_batch + 2:]), dtype),
                 zeros((*batch, nse), index_dtype) + shape[n_batch + 1],
                 zeros((*batch, shape[n_batch] + 1), index_dtype)), shape=shape,
                indices_sorted=True, unique_indices=True)


complete_docstrings(globals(), WORDS, returns="a BCSR, or a dense array.")
