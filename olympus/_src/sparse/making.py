"""Makers of sparse arrays: empty, eye and random; and `todense` of any array."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DTypeLike
from ..mapping.vmap import vmap
from ..numpy.creation import zeros
from ..numpy.joining import stack
from ..numpy.selection import unravel_index
from ..random.continuous import uniform
from ..random.discrete import choice
from ..random.keys import split
from ..types import dtypes
from ..types.shape import canonical_shape, prod
from ..types.tree import tree_flatten
from ..types.tree_registry import PyTreeDef
from .bcoo import BCOO, empty_bcoo, eye_bcoo
from .bcsr import BCSR, empty_bcsr
from .defined import Defined
from .formats import WORDS, OLYMPUSSparse, as_int
from .matrices import COO, CSC, CSR, empty_matrix, eye_matrix

_FORMATS: dict[str, type[OLYMPUSSparse]] = {
    "bcoo": BCOO, "bcsr": BCSR, "coo": COO, "csr": CSR, "csc": CSC}


def _todense(*parts: Array, tree: PyTreeDef) -> Array:
    x = tree.unflatten(parts)
    return x.todense() if isinstance(x, OLYMPUSSparse) else x


todense_p = Defined("todense", _todense)


def todense(arr: OLYMPUSSparse | ArrayLike) -> Array:
    """The dense array of a sparse or dense one; under `sparsify` it tells where to make it dense.

    >>> M = sparse.BCOO.fromdense(onp.array([0., 1.]))
    >>> print(sparse.todense(M), sparse.sparsify(lambda M: onp.exp(sparse.todense(M)))(M))
    [0. 1.] [1.        2.7182817]
    """
    parts, tree = tree_flatten(arr)
    return todense_p.bind(*parts, tree=tree)


def _kind(what: str, name: str) -> type[OLYMPUSSparse]:
    if name not in _FORMATS:
        raise ValueError(f"{what}: sparse_format={name!r} not recognized; one of "
                         f"{', '.join(map(repr, _FORMATS))} is required.")
    return _FORMATS[name]


def empty(shape: Sequence[int], dtype: DTypeLike | None = None, index_dtype: DTypeLike = "int32",
          sparse_format: str = "bcoo", **kwds: int) -> OLYMPUSSparse:
    """A sparse array of zeros.

    Args:
      shape: its shape.
      dtype, index_dtype: of its elements (None: the default one) and its indices.
      sparse_format: "bcoo", "bcsr", "coo", "csr" or "csc".
      **kwds: of the first two: n_batch, n_dense, and nse, the room for elements.

    >>> from olympus.experimental import sparse
    >>> sparse.empty((3, 4))
    BCOO(float32[3, 4], nse=0)
    """
    kind = _kind("empty", sparse_format)
    if kind is BCOO:
        return empty_bcoo(shape, dtype, index_dtype, **kwds)
    if kind is BCSR:
        return empty_bcsr(shape, dtype, index_dtype, **kwds)
    return empty_matrix(kind, shape, dtype, index_dtype, **kwds)


def eye(N: int, M: int | None = None, k: int = 0, dtype: DTypeLike | None = None,
        index_dtype: DTypeLike = "int32", sparse_format: str = "bcoo", **kwds: int
        ) -> OLYMPUSSparse:
    """A sparse matrix with ones along a diagonal.

    Args:
      N, M: the numbers of rows and columns; None is as many.
      k: the diagonal: 0 the main one, above 0 one above it.
      dtype, index_dtype, sparse_format: see `empty`.
      **kwds: of "bcoo": n_batch and n_dense.

    >>> from olympus.experimental import sparse
    >>> print(sparse.eye(2, 3, k=1).todense())
    [[0. 1. 0.]
     [0. 0. 1.]]
    """
    kind = _kind("eye", sparse_format)
    rows, offset = as_int("eye: N", N), as_int("eye: k", k)
    columns = rows if M is None else as_int("eye: M", M)
    if kind is BCOO:
        return eye_bcoo(rows, columns, offset, dtype, index_dtype, **kwds)
    if kind is BCSR:
        return BCSR.from_bcoo(eye_bcoo(rows, columns, offset, dtype, index_dtype, **kwds))
    return eye_matrix(kind, rows, columns, offset, dtype, index_dtype, **kwds)


def random_bcoo(key: ArrayLike, shape: Sequence[int], *, dtype: DTypeLike = float,
                indices_dtype: DTypeLike | None = None, nse: float = 0.2, n_batch: int = 0,
                n_dense: int = 0, unique_indices: bool = True, sorted_indices: bool = False,
                generator: Callable[..., Array] = uniform, **kwds: object) -> BCOO:
    """A BCOO of random elements at random indices.

    Args:
      key: a random key.
      shape: of the array.
      dtype, indices_dtype: of its elements and its indices.
      nse: the number of stored elements of each batch; between 0 and 1, the part of all.
      n_batch, n_dense: the numbers of batch and dense axes.
      unique_indices: whether no index is drawn twice.
      sorted_indices: whether to sort them.
      generator: a function of a key, a shape and a dtype that draws the elements.
      **kwds: further arguments of it.

    >>> from olympus.experimental import sparse
    >>> sparse.random_bcoo(random.key(0), (4, 5), nse=0.25)
    BCOO(float32[4, 5], nse=5)
    """
    shape = canonical_shape(shape, "random_bcoo")
    n_sparse = len(shape) - n_batch - n_dense
    if min(n_batch, n_dense, n_sparse) < 0:
        raise ValueError(f"random_bcoo: Invalid n_batch={n_batch}, n_dense={n_dense} for "
                         f"shape={shape}.")
    batch, sizes = shape[:n_batch], shape[n_batch:n_batch + n_sparse]
    size = prod(sizes)
    if not 0 <= nse < max(size, 1) and nse != size:
        raise ValueError(f"random_bcoo: got nse={nse}, expected to be between 0 and {size}.")
    count = math.ceil(nse * size) if 0 < nse < 1 else as_int("random_bcoo: nse", nse)
    index_dtype = dtypes.as_dtype(indices_dtype or dtypes.canonicalize_dtype(int))
    if size > np.iinfo(index_dtype).max:
        raise ValueError(f"random_bcoo: indices_dtype={index_dtype} given; it does not have enough "
                         f"range to generate sparse indices of size {size}.")

    def indices(k: Array) -> Array:
        if not sizes:
            return zeros((count, 0), index_dtype)
        flat = choice(k, size, (count,), replace=not unique_indices).astype(index_dtype)
        return stack(unravel_index(flat, sizes), -1).astype(index_dtype)

    keys = split(key, prod(batch) + 1)
    data = generator(keys[0], shape=(*batch, count, *shape[n_batch + n_sparse:]), dtype=dtype,
                     **kwds)
    drawn = vmap(indices)(keys[1:]) if prod(batch) else zeros((0, count, n_sparse), index_dtype)
    mat = BCOO((data, drawn.reshape(*batch, count, n_sparse)), shape=shape,
               unique_indices=unique_indices)
    return mat.sort_indices() if sorted_indices else mat


complete_docstrings(globals(), WORDS, returns="a sparse or dense array.")
