"""BCOO: stored elements and the index of each, by batch; and its conversions and products.

`operators.py` installs the operators and methods that follow NumPy's rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, Self

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.errors import ConcretizationTypeError
from ..base.typing import Array, ArrayLike, DTypeLike
from ..core.trace import Tracer
from ..lax.contract import dot_general
from ..lax.shape import transpose
from ..numpy.arithmetic import not_equal
from ..numpy.creation import asarray, full, ones, zeros
from ..numpy.diagonals import eye
from ..numpy.grids import arange
from ..numpy.joining import stack
from ..numpy.reductions import all as all_of
from ..numpy.selection import where
from ..types import dtypes
from ..types.shape import canonical_shape
from ..types.tree_registry import register_pytree_node_class
from .checks import check_indices, checked, directions
from .conversions import (
    bcoo_extract_p, bcoo_fromdense_p, bcoo_sort_indices_p, bcoo_sum_duplicates_p, bcoo_todense_p,
    bcoo_transpose_p, distinct, padding, sparse_permutation,
)
from .defined import batched
from .formats import (
    WORDS, BCOOProperties, OLYMPUSSparse, Shape, SparseInfo, as_int, bcoo_properties, given_parts,
    healed_shape, tree_info,
)
from .products import (
    bcoo_dot_general_p, bcoo_dot_general_sampled_p, bcoo_spdot_general_p, canonical_numbers,
    product_shape,
)

DimensionNumbers = Sequence[Sequence[Sequence[int]]]


class ScipySparse(Protocol):
    """A sparse array or matrix of SciPy."""

    shape: Shape
    data: np.ndarray

    def tocoo(self) -> ScipySparse: ...

    def tocsr(self) -> ScipySparse: ...


def concrete_count(what: str, count: ArrayLike) -> int:
    """A number of stored elements as an int; ConcretizationTypeError for one that is traced."""
    if isinstance(count, Tracer):
        raise ConcretizationTypeError(
            f"{what}: nse, the number of stored elements, must be specified when using the "
            f"function within jit, vmap, and other transformations, where it is {count}; a "
            "concrete value is required; give nse=, an int.")
    nse = as_int(f"{what}: nse", count)
    if nse < 0:
        raise ValueError(f"{what}: nse={nse} given; 0 or more stored elements are required.")
    return nse


@register_pytree_node_class
class BCOO(OLYMPUSSparse):
    """A sparse array: elements `data` at `indices`; elements with equal indices are summed.

    A pytree of two arrays: it passes through `jit`, `vmap`, loops and derivatives. Leading axes may
    be batches, which all store equally many elements, and trailing axes may be dense. An index
    outside of the array is padding: its element belongs to no place of the array.

    Args:
      args: data [*batch, nse, *dense], and integers indices [*batch, nse, n_sparse]. A batch axis
        of one of them may have the size 1 for any size.
      shape: of the array: [*batch, *sparse, *dense].
      indices_sorted: a promise that indices ascend lexicographically, padding last.
      unique_indices: a promise that no index occurs twice.

    TypeError for indices of another dtype, ValueError for sizes that do not fit; under
    `olympus_enable_checks` also for known indices that are outside of the array and no
    padding, or break a promise.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental import sparse
    >>> M = sparse.BCOO((onp.array([1., 3.]), onp.array([[0, 2], [1, 0]])), shape=(2, 3))
    >>> M
    BCOO(float32[2, 3], nse=2)
    >>> print(M @ onp.array([1., 2., 4.]))
    [4. 3.]
    """

    indices: Array
    indices_sorted: bool
    unique_indices: bool

    def __init__(self, args: tuple[ArrayLike, ArrayLike], *, shape: Sequence[int],
                 indices_sorted: bool = False, unique_indices: bool = False) -> None:
        self.data, self.indices = given_parts("BCOO", args, "data, indices")
        self.shape = canonical_shape(shape, "BCOO")
        self.indices_sorted = bool(indices_sorted)
        # Without sparse axes all elements have one index.
        _, n_sparse, _, nse = bcoo_properties(self.data, self.indices, self.shape)
        self.unique_indices = bool(unique_indices) and (n_sparse > 0 or nse < 2)
        if checked(self.indices):
            check_indices("BCOO", np.asarray(self.indices), self._info)

    def tree_flatten(self) -> tuple[tuple[Array, Array], SparseInfo]:
        """For pytrees: the leaves data and indices, and the static fields."""
        return self._bufs, tree_info(self._info, self._bufs, 2)

    @classmethod
    def tree_unflatten(cls, aux_data: SparseInfo, children: Sequence[Array]) -> Self:
        """The sparse array with these leaves, whose batch axes lead its shape."""
        self = object.__new__(cls)
        self.data, self.indices = children
        if not isinstance(aux_data, SparseInfo):
            raise ValueError(f"BCOO.tree_unflatten: invalid aux_data={aux_data!r} given; what "
                             "tree_flatten returns is required.")
        self.shape, self.indices_sorted, self.unique_indices, _ = aux_data
        data, indices = (getattr(x, "shape", None) for x in children)
        if data is not None and indices is not None and len(indices) > 1:
            n, behind = len(indices) - 2, indices[-1] + max(len(data) - len(indices) + 1, 0)
            if (n or len(self.shape) != behind) and len(data) > n and behind <= len(self.shape):
                self.shape = healed_shape(aux_data, behind, data[:n], indices[:n])
        return self

    @property
    def _info(self) -> SparseInfo:
        return SparseInfo(self.shape, self.indices_sorted, self.unique_indices)

    @property
    def _bufs(self) -> tuple[Array, Array]:
        return self.data, self.indices

    @property
    def nse(self) -> int:
        """The number of stored elements in each batch, padding included."""
        return self.indices.shape[-2]

    @property
    def n_batch(self) -> int:
        """The number of batch axes, which lead."""
        return self.indices.ndim - 2

    @property
    def n_sparse(self) -> int:
        """The number of sparse axes."""
        return self.indices.shape[-1]

    @property
    def n_dense(self) -> int:
        """The number of dense axes, which trail."""
        return self.data.ndim - 1 - self.n_batch

    def _extra(self) -> str:
        return "".join(f", {name}={n}" for name, n in (
            ("n_batch", self.n_batch), ("n_dense", self.n_dense)) if n)

    @classmethod
    def fromdense(cls, mat: ArrayLike, *, nse: int | None = None,
                  index_dtype: DTypeLike = np.int32, n_dense: int = 0, n_batch: int = 0) -> BCOO:
        """`bcoo_fromdense`: the sparse array of the elements that are not 0."""
        return bcoo_fromdense(mat, nse=nse, n_batch=n_batch, n_dense=n_dense,
                              index_dtype=index_dtype)

    @classmethod
    def from_scipy_sparse(cls, mat: ScipySparse, *, index_dtype: DTypeLike | None = None,
                          n_dense: int = 0, n_batch: int = 0) -> Self:
        """The elements that a sparse array or matrix of SciPy stores, of any format.

        >>> import numpy as np, scipy.sparse
        >>> from olympus.experimental import sparse
        >>> sparse.BCOO.from_scipy_sparse(scipy.sparse.eye_array(3, dtype=np.float32))
        BCOO(float32[3, 3], nse=3)
        """
        if n_dense or n_batch:
            raise NotImplementedError(
                f"BCOO.from_scipy_sparse: n_dense={n_dense} and n_batch={n_batch} given; SciPy's "
                "arrays have sparse axes only; call update_layout on the result.")
        data, columns = scipy_parts(mat)
        indices = np.stack(columns, -1).astype(index_dtype or np.int32)
        order = np.all(directions(indices) > 0)
        return cls((data, indices), shape=mat.shape, indices_sorted=bool(order),
                   unique_indices=bool(order))

    def update_layout(self, *, n_batch: int | None = None, n_dense: int | None = None,
                      on_inefficient: str | None = "error") -> BCOO:
        """The same array with other numbers of batch and dense axes: `bcoo_update_layout`."""
        return self._lacks("update_layout")

    def sum_duplicates(self, nse: int | None = None, remove_zeros: bool = True) -> BCOO:
        """The array with elements of equal indices summed, and indices sorted.

        Args:
          nse: the number of stored elements of the result; room that is not needed is padding, and
            elements without room are dropped. It must be given where the array is traced.
          remove_zeros: whether elements equal to 0 are left out, and so have no derivative.

        >>> import olympus.numpy as onp
        >>> from olympus.experimental import sparse
        >>> v = sparse.BCOO((onp.array([1., 2., 3.]), onp.array([[4], [0], [4]])), shape=(5,))
        >>> print(v.sum_duplicates().data)
        [2. 4.]
        """
        return (bcoo_eliminate_zeros if remove_zeros else bcoo_sum_duplicates)(self, nse)

    def sort_indices(self) -> BCOO:
        """The array with its indices in lexicographic order."""
        return bcoo_sort_indices(self)

    def todense(self) -> Array:
        """The array, dense."""
        return bcoo_todense(self)

    def transpose(self, axes: Sequence[int] | None = None) -> BCOO:
        """The array with permuted axes: batch, sparse and dense ones each among themselves."""
        perm = tuple(range(self.ndim))[::-1] if axes is None else tuple(axes)
        return bcoo_transpose(self, permutation=perm)


def scipy_parts(mat: ScipySparse) -> tuple[np.ndarray, list[np.ndarray]]:
    """The elements of a sparse array of SciPy, and an array of indices for each axis."""
    if not hasattr(mat, "tocoo"):
        raise TypeError(f"from_scipy_sparse: {type(mat).__name__} given; a sparse array or matrix "
                        "of scipy.sparse is required; for a dense one call fromdense.")
    coo = mat.tocoo()
    columns = getattr(coo, "coords", None) or (coo.row, coo.col)    # pyright: ignore
    return coo.data, list(columns)


def in_place(mat: BCOO, data: Array) -> BCOO:
    """The array with other elements at the same indices."""
    return BCOO((data, mat.indices), shape=mat.shape, indices_sorted=mat.indices_sorted,
                unique_indices=mat.unique_indices)


# Conversions -------------------------------------------------------------------------------------

def bcoo_todense(mat: BCOO) -> Array:
    """The dense array that a BCOO stands for.

    >>> print(sparse.bcoo_todense(sparse.BCOO.fromdense(onp.array([0., 2.]))))
    [0. 2.]
    """
    return bcoo_todense_p.bind(*mat._bufs, spinfo=mat._info)


def stored_count(what: str, mat: Array, n_batch: int, n_dense: int) -> int:
    """How many elements of a batch are stored: those that are not 0, in the fullest batch."""
    # NumPy counts an array that is no tracer: while another function is traced, operations of ours
    # would be recorded and have no value. Values under derivatives are known, too.
    known = mat if isinstance(mat, Tracer) else np.asarray(mat)
    stored = np.not_equal(known, 0) if isinstance(known, np.ndarray) else not_equal(known, 0)
    stored = stored.any(tuple(range(mat.ndim - n_dense, mat.ndim))) if n_dense else stored
    return concrete_count(what, stored.sum(tuple(range(n_batch, stored.ndim))).max(initial=0))


def bcoo_fromdense(mat: ArrayLike, *, nse: int | None = None, n_batch: int = 0, n_dense: int = 0,
                   index_dtype: DTypeLike = np.int32) -> BCOO:
    """The sparse array of the elements of a dense one that are not 0.

    Args:
      nse: the number of elements to store in each batch; None counts them, which needs an array
        that is not traced. Room that is left is padded with 0; elements without room are dropped.
      n_batch, n_dense: how many leading axes are batches, and how many trailing ones are dense.

    >>> M = sparse.bcoo_fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(M.data, M.indices.tolist())
    [5. 6.] [[0, 1], [1, 0]]
    """
    mat = asarray(mat)
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"bcoo_fromdense: n_batch={n_batch} and n_dense={n_dense} given for "
                         f"{mat.dtype}{list(mat.shape)}; as many axes as it has are allowed.")
    count = (stored_count("bcoo_fromdense", mat, n_batch, n_dense) if nse is None
             else concrete_count("bcoo_fromdense", nse))
    parts = bcoo_fromdense_p.bind(mat, nse=count, n_batch=n_batch, n_dense=n_dense,
                                  index_dtype=dtypes.as_dtype(index_dtype))
    return BCOO(tuple(parts), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_extract(sparr: BCOO, arr: ArrayLike, *, assume_unique: bool | None = None) -> BCOO:
    """The elements of a dense array at the indices of a BCOO.

    Args:
      sparr: the array that has the indices.
      arr: a dense array of its shape.
      assume_unique: False reads equal indices once, at the first of them; None goes by the
        array's promise.

    >>> M = sparse.BCOO.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.bcoo_extract(M, onp.array([[1., 2.], [3., 4.]])).data)
    [2. 3.]
    """
    if not isinstance(sparr, BCOO):
        raise TypeError(f"bcoo_extract: First argument {type(sparr).__name__} given; a BCOO array "
                        "is required.")
    dense = asarray(arr)
    if dense.shape != sparr.shape:
        raise ValueError(f"bcoo_extract: shape mismatch: shapes {sparr.shape} and {dense.shape} "
                         "given; equal ones are required.")
    unique = sparr.unique_indices if assume_unique is None else bool(assume_unique)
    return in_place(sparr, bcoo_extract_p.bind(sparr.indices, dense, assume_unique=unique))


def bcoo_transpose(mat: BCOO, *, permutation: Sequence[int]) -> BCOO:
    """A BCOO with permuted axes: batch, sparse and dense ones each among themselves.

    Args: permutation: where each axis comes from.

    >>> M = sparse.BCOO.fromdense(onp.array([[0., 5., 0.]]))
    >>> sparse.bcoo_transpose(M, permutation=(1, 0)).shape
    (3, 1)
    """
    perm = tuple(int(p) for p in permutation)
    _, sparse, _ = sparse_permutation(perm, mat.n_batch, mat.n_sparse, mat.shape)
    if perm == tuple(range(mat.ndim)):
        return mat
    data, indices = bcoo_transpose_p.bind(*mat._bufs, permutation=perm, spinfo=mat._info)
    return BCOO((data, indices), shape=[mat.shape[p] for p in perm],
                indices_sorted=mat.indices_sorted and sparse == list(range(mat.n_sparse)),
                unique_indices=mat.unique_indices)


def bcoo_sort_indices(mat: BCOO) -> BCOO:
    """A BCOO with its indices in lexicographic order, padding last; equal ones stay as they are.

    >>> v = sparse.BCOO((onp.array([1., 2.]), onp.array([[3], [0]])), shape=(4,))
    >>> print(sparse.bcoo_sort_indices(v).data)
    [2. 1.]
    """
    data, indices = bcoo_sort_indices_p.bind(*mat._bufs, spinfo=mat._info)
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True,
                unique_indices=mat.unique_indices)


def bcoo_sum_duplicates(mat: BCOO, nse: int | None = None) -> BCOO:
    """A BCOO with elements of equal indices summed, and its indices sorted.

    Args: nse: the number of stored elements of the result; None counts them, which needs indices
        that are not traced. See `BCOO.sum_duplicates`.

    >>> v = sparse.BCOO((onp.array([1., 2., 0.]), onp.array([[3], [3], [0]])), shape=(4,))
    >>> print(sparse.bcoo_sum_duplicates(v).data)
    [0. 3.]
    """
    if nse is None:
        sizes = mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse]
        firsts = batched(lambda i: distinct(i, sizes)[3], mat.indices.shape[:-2])(mat.indices)
        nse = 1 if not mat.n_sparse else concrete_count(
            "bcoo_sum_duplicates", firsts.sum(-1).max(initial=0))
    data, indices = bcoo_sum_duplicates_p.bind(
        *mat._bufs, spinfo=mat._info, nse=concrete_count("bcoo_sum_duplicates", nse))
    return BCOO((data, indices), shape=mat.shape, indices_sorted=True, unique_indices=True)


def bcoo_eliminate_zeros(mat: BCOO, nse: int | None = None) -> BCOO:
    """`bcoo_sum_duplicates` without the elements that are 0.

    >>> v = sparse.BCOO((onp.array([1., 2., 0.]), onp.array([[3], [3], [0]])), shape=(4,))
    >>> print(sparse.bcoo.bcoo_eliminate_zeros(v).data)
    [3.]
    """
    n_batch, n_sparse, _, _ = props(mat)
    zero = all_of(mat.data == 0, tuple(range(n_batch + 1, mat.data.ndim)))
    # Indices shared along an axis are dropped where all of their elements are 0.
    shared = tuple(i for i, s in enumerate(mat.indices.shape[:n_batch]) if s == 1)
    zero = all_of(zero, shared, keepdims=True) if shared else zero
    fill = padding(mat.shape[n_batch:n_batch + n_sparse], mat.indices.dtype, mat.indices.ndim)
    indices = where(zero[..., None], fill, mat.indices)
    return bcoo_sum_duplicates(BCOO((mat.data, indices), shape=mat.shape), nse)


def props(mat: BCOO) -> BCOOProperties:
    """The numbers of axes of a BCOO, checked."""
    return bcoo_properties(mat.data, mat.indices, mat.shape)


# Products ----------------------------------------------------------------------------------------

def bcoo_dot_general(lhs: BCOO | ArrayLike, rhs: BCOO | ArrayLike, *,
                     dimension_numbers: DimensionNumbers, precision: object = None,
                     preferred_element_type: DTypeLike | None = None, out_sharding: object = None
                     ) -> BCOO | Array:
    """`lax.dot_general` of operands one or both of which are sparse.

    Args:
      lhs, rhs: arrays; batch axes of the product must be batch axes of a BCOO.
      dimension_numbers: ((contracted axes of both), (batch axes of both)).
      precision, out_sharding: not used.
    Returns: A BCOO if both are sparse, else a dense array.

    >>> M = sparse.BCOO.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.bcoo_dot_general(M, onp.ones(2), dimension_numbers=(((1,), (0,)), ((), ()))))
    [5. 6.]
    """
    numbers = canonical_numbers(dimension_numbers)
    dtype = None if preferred_element_type is None else dtypes.as_dtype(preferred_element_type)
    if isinstance(lhs, BCOO) and isinstance(rhs, BCOO):
        shape = product_shape("bcoo_dot_general", lhs.shape, rhs.shape, numbers)
        data, indices = bcoo_spdot_general_p.bind(
            *lhs._bufs, *rhs._bufs, lhs_spinfo=lhs._info, rhs_spinfo=rhs._info,
            dimension_numbers=numbers, preferred_element_type=dtype)
        return BCOO((data, indices), shape=shape)
    if isinstance(lhs, BCOO):
        return bcoo_dot_general_p.bind(
            *lhs._bufs, asarray(rhs), dimension_numbers=numbers, preferred_element_type=dtype,
            lhs_spinfo=lhs._info)
    if not isinstance(rhs, BCOO):
        return dot_general(lhs, rhs, numbers, preferred_element_type=dtype)
    (lc, rc), (lb, rb) = numbers
    product = bcoo_dot_general_p.bind(
        *rhs._bufs, asarray(lhs), dimension_numbers=((rc, lc), (rb, lb)),
        preferred_element_type=dtype, lhs_spinfo=rhs._info)
    n, left = len(lb), rhs.ndim - len(rc)
    return transpose(product, (*range(n), *range(left, product.ndim), *range(n, left)))


def bcoo_dot_general_sampled(A: ArrayLike, B: ArrayLike, indices: ArrayLike, *,
                             dimension_numbers: DimensionNumbers) -> Array:
    """The elements of a dense product at the indices of a BCOO of its shape.

    Args: A: a dense array.

    >>> A, B = onp.array([[1., 2.], [3., 4.]]), onp.eye(2)
    >>> print(sparse.bcoo_dot_general_sampled(A, B, onp.array([[1, 0]]),
    ...                                       dimension_numbers=(((1,), (0,)), ((), ()))))
    [3.]
    """
    return bcoo_dot_general_sampled_p.bind(
        asarray(A), asarray(B), asarray(indices),
        dimension_numbers=canonical_numbers(dimension_numbers))


# For `sparse.empty` and `sparse.eye` --------------------------------------------------------------

def empty_bcoo(shape: Sequence[int], dtype: DTypeLike | None = None,
               index_dtype: DTypeLike = "int32", n_dense: int = 0, n_batch: int = 0, nse: int = 0
               ) -> BCOO:
    """A BCOO of zeros, with room for `nse` elements."""
    shape = canonical_shape(shape, "empty")
    n_sparse = len(shape) - n_dense - n_batch
    if min(n_sparse, n_dense, n_batch, nse) < 0:
        raise ValueError(f"empty: Invalid inputs: shape {shape}, n_dense={n_dense}, "
                         f"n_batch={n_batch}, nse={nse} given; none may be negative, nor more axes "
                         "than the shape has.")
    data = zeros((*shape[:n_batch], nse, *shape[n_batch + n_sparse:]), dtype)
    fill = padding(shape[n_batch:n_batch + n_sparse], dtypes.as_dtype(index_dtype), n_batch + 2)
    indices = full((*shape[:n_batch], nse, n_sparse), fill)
    return BCOO((data, indices), shape=shape, indices_sorted=True, unique_indices=True)


def eye_bcoo(N: int, M: int, k: int, dtype: DTypeLike | None = None,
             index_dtype: DTypeLike = "int32", n_batch: int = 0, n_dense: int = 0) -> BCOO:
    """A BCOO with ones along its k-th diagonal."""
    if min(n_batch, n_dense, 2 - n_batch - n_dense) < 0:
        raise ValueError(f"eye: Invalid inputs: shape {(N, M)}, n_dense={n_dense}, "
                         f"n_batch={n_batch} given; two axes in all are required.")
    count = max(min(N, M - k) if k > 0 else min(N + k, M), 0)
    if not count:
        return empty_bcoo((N, M), dtype, index_dtype, n_dense, n_batch)
    if n_batch or n_dense:
        return bcoo_fromdense(eye(N, M, k, dtype=dtype), n_batch=n_batch, n_dense=n_dense,
                              index_dtype=index_dtype)
    along = arange(count, dtype=index_dtype)
    indices = stack([along + max(-k, 0), along + max(k, 0)], -1)
    return BCOO((ones(count, dtype), indices), shape=(N, M), indices_sorted=True,
                unique_indices=True)


complete_docstrings(globals(), WORDS, returns="a BCOO, or a dense array.")
