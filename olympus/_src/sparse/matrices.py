"""COO, CSR and CSC: sparse matrices in SciPy's formats, with products and conversions only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DType, DTypeLike
from ..numpy.creation import asarray, zeros
from ..numpy.joining import stack
from ..types import dtypes
from ..types.shape import canonical_shape
from ..types.tree_registry import register_pytree_node_class
from .bcoo import ScipySparse, concrete_count, eye_bcoo, scipy_parts, stored_count
from .bcsr import bcsr_fromdense_p, by_rows
from .checks import check_indices, check_pointers, checked
from .conversions import bcoo_fromdense_p, bcoo_todense_p
from .defined import Defined
from .formats import WORDS, COOInfo, OLYMPUSSparse, Shape, SparseInfo, described, given_parts
from .products import bcoo_dot_general_p, bcsr_dot_general_p, bcsr_indices


class _Matrix(OLYMPUSSparse):
    """The base class of COO, CSR and CSC."""

    @property
    def nse(self) -> int:
        """The number of stored elements."""
        return self.data.shape[-1]

    def todense(self) -> Array:
        """The matrix, dense."""
        return self._times("todense", None)

    def _times(self, what: str, x: ArrayLike | None) -> Array:
        raise NotImplementedError(what)

    def _check(self, *parts: Array) -> None:
        name = type(self).__name__
        if len(self.shape) != 2 or self.data.ndim != 1 or any(p.ndim != 1 for p in parts):
            raise ValueError(f"{name}: {described(self.data)} and index arrays "
                             f"{[tuple(p.shape) for p in parts]} for shape {self.shape} given; "
                             "vectors and a shape of two sizes are required.")
        if parts[0].shape != self.data.shape:
            raise ValueError(f"{name}: {described(self.data)} and {parts[0].size} indices given; "
                             "one index for each stored element is required.")
        if not all(dtypes.is_integer(p.dtype) for p in parts):
            raise TypeError(f"{name}: index dtypes {[str(p.dtype) for p in parts]} given; integers "
                            "are required.")

    def __matmul__(self, other: ArrayLike) -> Array:
        if isinstance(other, OLYMPUSSparse):
            raise NotImplementedError(
                f"{type(self).__name__}: matmul between two sparse objects {self!r} and {other!r} "
                "given; use BCOO for both.")
        x = asarray(other)
        if x.ndim not in (1, 2):
            raise NotImplementedError(f"{type(self).__name__}: matmul with object of shape "
                                      f"{x.shape}; a vector or a matrix is required.")
        return self._times("matmul", x)


def _axes_checked(name: str, axes: Sequence[int] | None) -> None:
    if axes is not None and tuple(axes) != (1, 0):
        raise NotImplementedError(f"{name}.transpose: axes={tuple(axes)} given; (1, 0) is "
                                  "required.")


@register_pytree_node_class
class COO(_Matrix):
    """A sparse matrix of elements `data` at `row` and `col`; a pytree of three vectors.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental import sparse
    >>> M = sparse.COO.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(M.row, M.col, M @ onp.array([1., 10.]))
    [0 1] [1 0] [50.  6.]
    """

    row: Array
    col: Array

    def __init__(self, args: tuple[ArrayLike, ArrayLike, ArrayLike], *, shape: Sequence[int],
                 rows_sorted: bool = False, cols_sorted: bool = False) -> None:
        self.data, self.row, self.col = given_parts("COO", args, "data, row, col")
        self.shape = canonical_shape(shape, "COO")
        self._rows_sorted, self._cols_sorted = rows_sorted, cols_sorted
        self._check(self.row, self.col)
        if self.row.shape != self.col.shape:
            raise ValueError(f"COO: row of {self.row.size} and col of {self.col.size} indices "
                             "given; equal sizes are required.")
        if checked(self.row, self.col):
            indices = np.stack([np.asarray(x) for x in (self.row, self.col)], -1)
            check_indices("COO", indices, SparseInfo(self.shape))

    @property
    def _info(self) -> COOInfo:
        return COOInfo(self.shape, self._rows_sorted, self._cols_sorted)

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], COOInfo]:
        """For pytrees: the leaves data, row and col, and the static fields."""
        return (self.data, self.row, self.col), self._info

    @classmethod
    def tree_unflatten(cls, aux_data: COOInfo, children: Sequence[Array]) -> Self:
        """The matrix of these arrays."""
        self = object.__new__(cls)
        self.data, self.row, self.col = children
        if not isinstance(aux_data, COOInfo):
            raise ValueError(f"COO.tree_unflatten: invalid aux_data={aux_data!r} given.")
        self.shape, self._rows_sorted, self._cols_sorted = aux_data
        return self

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None,
                  index_dtype: DTypeLike = np.int32) -> COO:
        """The matrix of the elements that are not 0."""
        return coo_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(cls, mat: ScipySparse, *, index_dtype: DTypeLike = np.int32) -> Self:
        """The elements that a sparse matrix of SciPy stores."""
        data, (row, col) = scipy_parts(mat)
        return cls((data, row.astype(index_dtype, copy=False),
                    col.astype(index_dtype, copy=False)), shape=mat.shape)

    def transpose(self, axes: Sequence[int] | None = None) -> COO:
        """The transpose, of the same arrays."""
        _axes_checked("COO", axes)
        return COO((self.data, self.col, self.row), shape=self.shape[::-1],
                   rows_sorted=self._cols_sorted, cols_sorted=self._rows_sorted)

    def _times(self, what: str, x: ArrayLike | None) -> Array:
        return coo_todense(self) if x is None else _coo_product(self, asarray(x), False)


class _Compressed(_Matrix):
    """The base class of CSR and CSC."""

    indices: Array
    indptr: Array

    def __init__(self, args: tuple[ArrayLike, ArrayLike, ArrayLike], *, shape: Sequence[int]
                 ) -> None:
        self.data, self.indices, self.indptr = given_parts(
            type(self).__name__, args, "data, indices, indptr")
        self.shape = canonical_shape(shape, type(self).__name__)
        self._check(self.indices, self.indptr)
        rows = self._rows()[0]
        if self.indptr.shape[0] != rows + 1:
            raise ValueError(f"{type(self).__name__}: indptr of {self.indptr.shape[0]} pointers "
                             f"for shape {self.shape} given; {rows + 1} are required.")
        if checked(self.indices, self.indptr):
            check_pointers(type(self).__name__, np.asarray(self.indices), np.asarray(self.indptr),
                           SparseInfo(self._rows()))

    def tree_flatten(self) -> tuple[tuple[Array, Array, Array], SparseInfo]:
        """For pytrees: data, indices and indptr, and the shape."""
        return (self.data, self.indices, self.indptr), SparseInfo(self.shape)

    @classmethod
    def tree_unflatten(cls, aux_data: SparseInfo, children: Sequence[Array]) -> Self:
        """The matrix of these arrays."""
        self = object.__new__(cls)
        self.data, self.indices, self.indptr = children
        if not isinstance(aux_data, SparseInfo):
            raise ValueError(f"{cls.__name__}.tree_unflatten: invalid aux_data={aux_data!r} given.")
        self.shape = aux_data.shape
        return self

    def _rows(self) -> Shape:
        """The shape of the matrix whose rows `indptr` points to: for CSC the transpose."""
        return self.shape


@register_pytree_node_class
class CSR(_Compressed):
    """A sparse matrix by rows: those of row r are data[indptr[r]:indptr[r + 1]], in the columns
    `indices`; a pytree of three vectors.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental import sparse
    >>> M = sparse.CSR.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(M.indptr, M @ onp.array([1., 10.]))
    [0 1 2] [50.  6.]
    """

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None,
                  index_dtype: DTypeLike = np.int32) -> CSR:
        """The matrix of the elements that are not 0."""
        return csr_fromdense(mat, nse=nse, index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(cls, mat: ScipySparse, *, index_dtype: DTypeLike = np.int32) -> Self:
        """The elements that a sparse matrix of SciPy stores."""
        csr = mat.tocsr()
        return cls((csr.data, csr.indices.astype(index_dtype, copy=False),  # pyright: ignore
                    csr.indptr.astype(index_dtype, copy=False)), shape=mat.shape)  # pyright: ignore

    def transpose(self, axes: Sequence[int] | None = None) -> CSC:
        """The transpose, of the same arrays: a CSC."""
        _axes_checked("CSR", axes)
        return CSC((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    def _times(self, what: str, x: ArrayLike | None) -> Array:
        return csr_todense(self) if x is None else _csr_product(self, asarray(x), False)


@register_pytree_node_class
class CSC(_Compressed):
    """A sparse matrix by columns: those of column c are data[indptr[c]:indptr[c + 1]], in the rows
    `indices`; a pytree of three vectors.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental import sparse
    >>> M = sparse.CSC.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(M.data, M @ onp.array([1., 10.]))
    [6. 5.] [50.  6.]
    """

    def _rows(self) -> Shape:
        return self.shape[::-1]

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None,
                  index_dtype: DTypeLike = np.int32) -> CSC:
        """The matrix of the elements that are not 0."""
        return csr_fromdense(asarray(mat).T, nse=nse, index_dtype=index_dtype).transpose()

    @classmethod
    def from_scipy_sparse(cls, mat: ScipySparse, *, index_dtype: DTypeLike = np.int32) -> CSC:
        """The elements that a sparse matrix of SciPy stores."""
        return CSR.from_scipy_sparse(mat.T, index_dtype=index_dtype).transpose()  # pyright: ignore

    def transpose(self, axes: Sequence[int] | None = None) -> CSR:
        """The transpose, of the same arrays: a CSR."""
        _axes_checked("CSC", axes)
        return CSR((self.data, self.indices, self.indptr), shape=self.shape[::-1])

    def _times(self, what: str, x: ArrayLike | None) -> Array:
        rows = self.transpose()
        return csr_todense(rows).T if x is None else _csr_product(rows, asarray(x), True)


# Their operations --------------------------------------------------------------------------------

def _coo_fromdense(mat: Array, *, nse: int, index_dtype: DType) -> tuple[Array, Array, Array]:
    data, indices = bcoo_fromdense_p.bind(mat, nse=nse, n_batch=0, n_dense=0,
                                          index_dtype=index_dtype)
    return data, indices[:, 0], indices[:, 1]


def _coo_todense(data: Array, row: Array, col: Array, *, spinfo: COOInfo) -> Array:
    return bcoo_todense_p.bind(data, stack([row, col], -1), spinfo=SparseInfo(spinfo.shape))


def _numbers(transpose: bool) -> tuple[tuple[tuple[int], tuple[int]], tuple[tuple, tuple]]:
    return (((0 if transpose else 1,), (0,)), ((), ()))


def _coo_matmul(data: Array, row: Array, col: Array, x: Array, *, spinfo: COOInfo, transpose: bool
                ) -> Array:
    return bcoo_dot_general_p.bind(
        data, stack([row, col], -1), x, dimension_numbers=_numbers(transpose),
        preferred_element_type=None, lhs_spinfo=SparseInfo(spinfo.shape, spinfo.rows_sorted))


def _csr_fromdense(mat: Array, *, nse: int, index_dtype: DType) -> tuple[Array, Array, Array]:
    return tuple(bcsr_fromdense_p.bind(mat, nse=nse, n_batch=0, n_dense=0,
                                       index_dtype=index_dtype))


def _csr_todense(data: Array, indices: Array, indptr: Array, *, shape: Shape) -> Array:
    return bcoo_todense_p.bind(data, bcsr_indices(indices, indptr, shape),
                               spinfo=SparseInfo(shape))


def _csr_matmul(data: Array, indices: Array, indptr: Array, x: Array, *, shape: Shape,
                transpose: bool) -> Array:
    return bcsr_dot_general_p.bind(data, indices, indptr, x, dimension_numbers=_numbers(transpose),
                                   preferred_element_type=None, lhs_spinfo=SparseInfo(shape))


coo_fromdense_p = Defined("coo_fromdense", _coo_fromdense, multiple_results=True)
coo_todense_p = Defined("coo_todense", _coo_todense)
coo_matvec_p, coo_matmat_p = Defined("coo_matvec", _coo_matmul), Defined("coo_matmat", _coo_matmul)
csr_fromdense_p = Defined("csr_fromdense", _csr_fromdense, multiple_results=True)
csr_todense_p = Defined("csr_todense", _csr_todense)
csr_matvec_p, csr_matmat_p = Defined("csr_matvec", _csr_matmul), Defined("csr_matmat", _csr_matmul)


def _counted(what: str, mat: ArrayLike, nse: int | None) -> tuple[Array, int]:
    mat = asarray(mat)
    if mat.ndim != 2:
        raise ValueError(f"{what}: {mat.dtype}{list(mat.shape)} given; a matrix is required.")
    return mat, (stored_count(what, mat, 0, 0) if nse is None else concrete_count(what, nse))


def coo_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
                  ) -> COO:
    """The COO of the elements of a matrix that are not 0; `nse` of them, counted if None.

    >>> print(sparse.coo_fromdense(onp.array([[0., 5.], [6., 0.]])).data)
    [5. 6.]
    """
    mat, count = _counted("coo_fromdense", mat, nse)
    parts = coo_fromdense_p.bind(mat, nse=count, index_dtype=dtypes.as_dtype(index_dtype))
    return COO(tuple(parts), shape=mat.shape, rows_sorted=True)


def coo_todense(mat: COO) -> Array:
    """The dense matrix that a COO stands for.

    >>> M = sparse.COO.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.coo_todense(M).tolist())
    [[0.0, 5.0], [6.0, 0.0]]
    """
    return coo_todense_p.bind(mat.data, mat.row, mat.col, spinfo=mat._info)


def _coo_product(mat: COO, x: Array, transpose: bool) -> Array:
    p = coo_matvec_p if x.ndim == 1 else coo_matmat_p
    return p.bind(mat.data, mat.row, mat.col, x, spinfo=mat._info, transpose=transpose)


def coo_matvec(mat: COO, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a COO, or of its transpose, and a vector.

    >>> M = sparse.COO.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.coo_matvec(M, onp.array([1., 2.]), transpose=True))
    [12.  5.]
    """
    return _coo_product(mat, _of_rank("coo_matvec", v, 1), transpose)


def coo_matmat(mat: COO, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a COO, or of its transpose, and a dense matrix.

    >>> M = sparse.COO.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.coo_matmat(M, onp.eye(2)).tolist())
    [[0.0, 5.0], [6.0, 0.0]]
    """
    return _coo_product(mat, _of_rank("coo_matmat", B, 2), transpose)


def csr_fromdense(mat: ArrayLike, *, nse: int | None = None, index_dtype: DTypeLike = np.int32
                  ) -> CSR:
    """The CSR of the elements of a matrix that are not 0; `nse` of them, counted if None.

    >>> print(sparse.csr_fromdense(onp.array([[0., 5.], [6., 0.]])).data)
    [5. 6.]
    """
    mat, count = _counted("csr_fromdense", mat, nse)
    parts = csr_fromdense_p.bind(mat, nse=count, index_dtype=dtypes.as_dtype(index_dtype))
    return CSR(tuple(parts), shape=mat.shape)


def csr_todense(mat: CSR) -> Array:
    """The dense matrix that a CSR stands for.

    >>> M = sparse.CSR.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.csr_todense(M).tolist())
    [[0.0, 5.0], [6.0, 0.0]]
    """
    return csr_todense_p.bind(mat.data, mat.indices, mat.indptr, shape=mat.shape)


def _csr_product(mat: CSR, x: Array, transpose: bool) -> Array:
    p = csr_matvec_p if x.ndim == 1 else csr_matmat_p
    return p.bind(mat.data, mat.indices, mat.indptr, x, shape=mat.shape, transpose=transpose)


def csr_matvec(mat: CSR, v: ArrayLike, transpose: bool = False) -> Array:
    """The product of a CSR, or of its transpose, and a vector.

    >>> M = sparse.CSR.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.csr_matvec(M, onp.array([1., 2.]), transpose=True))
    [12.  5.]
    """
    return _csr_product(mat, _of_rank("csr_matvec", v, 1), transpose)


def csr_matmat(mat: CSR, B: ArrayLike, *, transpose: bool = False) -> Array:
    """The product of a CSR, or of its transpose, and a dense matrix.

    >>> M = sparse.CSR.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.csr_matmat(M, onp.eye(2)).tolist())
    [[0.0, 5.0], [6.0, 0.0]]
    """
    return _csr_product(mat, _of_rank("csr_matmat", B, 2), transpose)


def _of_rank(what: str, x: ArrayLike, ndim: int) -> Array:
    x = asarray(x)
    if x.ndim != ndim:
        raise ValueError(f"{what}: {x.dtype}{list(x.shape)} given; a "
                         f"{'vector' if ndim == 1 else 'matrix'} is required.")
    return x


def empty_matrix(kind: type[OLYMPUSSparse], shape: Sequence[int], dtype: DTypeLike | None = None,
                 index_dtype: DTypeLike = "int32") -> OLYMPUSSparse:
    """A COO, CSR or CSC without stored elements."""
    shape = canonical_shape(shape, "empty")
    if len(shape) != 2:
        raise ValueError(f"empty: {kind.__name__} must have ndim=2; shape {shape} given.")
    data, none = zeros((0,), dtype), zeros((0,), index_dtype)
    if kind is COO:
        return COO((data, none, none), shape=shape, rows_sorted=True, cols_sorted=True)
    rows = shape[0] if kind is CSR else shape[1]
    return kind((data, none, zeros((rows + 1,), index_dtype)), shape=shape)


def eye_matrix(kind: type[OLYMPUSSparse], N: int, M: int, k: int,
               dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32") -> OLYMPUSSparse:
    """A COO, CSR or CSC with ones along its k-th diagonal."""
    if kind is CSC:
        return eye_matrix(CSR, M, N, -k, dtype, index_dtype).T
    mat = eye_bcoo(N, M, k, dtype, index_dtype)
    if kind is COO:
        return COO((mat.data, mat.indices[:, 0], mat.indices[:, 1]), shape=mat.shape,
                   rows_sorted=True, cols_sorted=True)
    return CSR((mat.data, *by_rows(mat.indices, mat.shape)), shape=mat.shape)


complete_docstrings(globals(), WORDS, returns="a sparse or dense array.")
