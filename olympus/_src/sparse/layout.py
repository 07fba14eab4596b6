"""BCOO arrays cut, joined, reshaped, summed and multiplied element by element."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import TypeVar

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, DType
from ..core.trace import typeof
from ..jit.tracing import eval_shape
from ..lax.creation import iota
from ..lax.indexing import GatherDimensionNumbers, GatherScatterMode, gather
from ..lax.shape import broadcast_in_dim, expand_dims, rev, squeeze
from ..lax.slicing import concatenate as lax_concatenate, dynamic_slice
from ..mapping.vmap import vmap
from ..numpy.creation import asarray, ones_like, zeros
from ..numpy.grids import arange
from ..numpy.indexing import nonzero
from ..numpy.joining import concatenate, stack
from ..numpy.manipulation import broadcast_to
from ..numpy.selection import where
from ..types import dtypes
from ..types.shape import broadcast_shapes, canonical_axis, prod
from .bcoo import BCOO, bcoo_sum_duplicates, bcoo_transpose
from .conversions import BOOL, broadcast_batch, for_columns, inside, only, padding
from .defined import batched, read
from .formats import WORDS, Shape, SparseEfficiencyError, SparseEfficiencyWarning, as_int

T = TypeVar("T")        # the type of the entry for each axis


def _parts(mat: BCOO, sizes: Sequence[T]) -> tuple[list[T], list[T], list[T]]:
    """The entries for batch, sparse and dense axes of a sequence with one entry an axis."""
    b, s = mat.n_batch, mat.n_batch + mat.n_sparse
    return list(sizes[:b]), list(sizes[b:s]), list(sizes[s:])


def _inefficient(mat: BCOO, name: str, before: int, after: int, on_inefficient: str | None) -> None:
    text = (f"bcoo_update_layout: for an array of shape {mat.shape}, increasing {name} from "
            f"{before} to {after} results in inefficient storage: all zeros along the new axes are "
            "stored; give on_inefficient='warn' or None to do it all the same.")
    if on_inefficient == "error":
        raise SparseEfficiencyError(text)
    if on_inefficient == "warn":
        warnings.warn(text, SparseEfficiencyWarning, stacklevel=4)


def bcoo_update_layout(mat: BCOO, *, n_batch: int | None = None, n_dense: int | None = None,
                       on_inefficient: str | None = "error") -> BCOO:
    """The same array with other numbers of batch and dense axes.

    Args:
      n_batch, n_dense: the numbers; None keeps the array's own.
      on_inefficient: what to do where more axes become batch or dense ones, so that zeros are
        stored: "error" (SparseEfficiencyError), "warn", or None.

    >>> M = sparse.BCOO.fromdense(onp.eye(3), n_batch=1)
    >>> sparse.bcoo_update_layout(M, n_batch=0)
    BCOO(float32[3, 3], nse=3)
    """
    n_batch = mat.n_batch if n_batch is None else as_int("bcoo_update_layout", n_batch)
    n_dense = mat.n_dense if n_dense is None else as_int("bcoo_update_layout", n_dense)
    if on_inefficient not in ("error", "warn", None):
        raise ValueError(f"bcoo_update_layout: on_inefficient={on_inefficient!r} given; one of "
                         "'error', 'warn' and None is required.")
    if min(n_batch, n_dense) < 0 or n_batch + n_dense > mat.ndim:
        raise ValueError(f"bcoo_update_layout: n_batch={n_batch} and n_dense={n_dense} given; "
                         f"n_batch must be non-negative, so must n_dense, and their sum cannot be "
                         f"larger than mat.ndim={mat.ndim}.")
    if (n_batch, n_dense) == (mat.n_batch, mat.n_dense):
        return mat
    if any(d > 1 for d in mat.shape[mat.ndim - n_dense:mat.ndim - mat.n_dense]):
        _inefficient(mat, "n_dense", mat.n_dense, n_dense, on_inefficient)
    if any(d > 1 for d in mat.shape[mat.n_batch:n_batch]):
        _inefficient(mat, "n_batch", mat.n_batch, n_batch, on_inefficient)
    # Axes become sparse first, then batch or dense: the sparse ones are always in the middle.
    mat = _fewer_dense(mat, min(n_dense, mat.n_dense))
    mat = _fewer_batch(mat, min(n_batch, mat.n_batch))
    mat = _more_dense(mat, n_dense)
    return _more_batch(mat, n_batch)


def _fewer_dense(mat: BCOO, n_dense: int) -> BCOO:
    count = mat.n_dense - n_dense
    if not count:
        return mat
    b = mat.n_batch
    sizes = mat.data.shape[b + 1:b + 1 + count]
    batch, nse, total = mat.data.shape[:b], mat.nse, prod(sizes)
    data = mat.data.reshape(*batch, nse * total, *mat.data.shape[b + 1 + count:])
    own = np.indices(sizes).reshape(count, -1).T.astype(mat.indices.dtype)
    shape = (*mat.indices.shape[:-1], total)
    index = concatenate([
        broadcast_to(mat.indices[..., None, :], (*shape, mat.n_sparse)),
        broadcast_to(asarray(own), (*shape, count))], -1)
    index = index.reshape(*mat.indices.shape[:-2], nse * total, mat.n_sparse + count)
    return BCOO((data, index), shape=mat.shape)


def _fewer_batch(mat: BCOO, n_batch: int) -> BCOO:
    count = mat.n_batch - n_batch
    if not count:
        return mat
    sizes, nse = mat.shape[n_batch:mat.n_batch], mat.nse
    data = broadcast_batch(mat.data, (*mat.data.shape[:n_batch], *sizes))
    indices = broadcast_batch(mat.indices, (*mat.indices.shape[:n_batch], *sizes))
    own = np.indices((*sizes, nse))[:-1].transpose(*range(1, count + 2), 0)
    own = asarray(own.astype(mat.indices.dtype))
    indices = concatenate([broadcast_to(own, (*indices.shape[:-1], count)), indices], -1)
    total = prod(sizes) * nse
    return BCOO((data.reshape(*data.shape[:n_batch], total, *data.shape[mat.n_batch + 1:]),
                 indices.reshape(*indices.shape[:n_batch], total, mat.n_sparse + count)),
                shape=mat.shape)


def _more_dense(mat: BCOO, n_dense: int) -> BCOO:
    count = n_dense - mat.n_dense
    if not count:
        return mat
    left = mat.n_sparse - count
    sizes = mat.shape[mat.n_batch + left:mat.n_batch + mat.n_sparse]

    def one(d: Array, i: Array) -> Array:
        at = (arange(d.shape[0]), *[i[:, left + k] for k in range(count)])
        out = zeros((d.shape[0], *sizes, *d.shape[1:]), d.dtype)
        return out.at[at].set(only(inside(i[:, left:], sizes), d), mode="drop")

    batch = mat.shape[:mat.n_batch]
    return BCOO((batched(one, batch)(mat.data, mat.indices), mat.indices[..., :left]),
                shape=mat.shape)


def _more_batch(mat: BCOO, n_batch: int) -> BCOO:
    b, count = mat.n_batch, n_batch - mat.n_batch
    if not count:
        return mat
    sizes, nse = mat.shape[b:n_batch], mat.nse

    def one(d: Array, i: Array) -> tuple[Array, Array]:
        at = (*[i[:, k] for k in range(count)], arange(nse))
        out = zeros((*sizes, nse, *d.shape[1:]), d.dtype).at[at].set(d, mode="drop")
        return out, broadcast_to(i[:, count:], (*sizes, nse, i.shape[1] - count))

    data, indices = batched(one, mat.shape[:b])(mat.data, mat.indices)
    return BCOO((data, indices), shape=mat.shape)


def bcoo_broadcast_in_dim(mat: BCOO, *, shape: Shape, broadcast_dimensions: Sequence[int],
                          sharding: object = None) -> BCOO:
    """`lax.broadcast_in_dim` of a BCOO: new axes in front are batches.

    >>> v = sparse.BCOO.fromdense(onp.array([0., 5.]))
    >>> sparse.bcoo_broadcast_in_dim(v, shape=(3, 2), broadcast_dimensions=(1,))
    BCOO(float32[3, 2], nse=1, n_batch=1)
    """
    shape, dims = tuple(shape), [int(d) for d in broadcast_dimensions]
    if len(dims) != mat.ndim:
        raise ValueError(f"bcoo_broadcast_in_dim: spinfo.shape={mat.shape} and "
                         f"broadcast_dimensions={tuple(dims)} given; they must have the same "
                         "length.")
    if dims != sorted(set(dims)) or any(
            not 0 <= d < len(shape) or s not in (1, shape[d]) for d, s in zip(dims, mat.shape)):
        raise ValueError(f"bcoo_broadcast_in_dim: shape {mat.shape} along axes {tuple(dims)} of "
                         f"{shape} given; ascending axes of equal sizes, or of 1, are required.")
    batch, sparse, dense = _parts(mat, dims)
    n_batch = min([*sparse, *dense], default=len(shape))
    n_dense = len(shape) - min(dense) if dense else 0
    n_sparse = len(shape) - n_batch - n_dense
    if prod(mat.shape[mat.n_batch:mat.n_batch + mat.n_sparse]) != prod(
            shape[n_batch:n_batch + n_sparse]):
        raise NotImplementedError(
            f"bcoo_broadcast_in_dim: {mat} to {shape} given; adding sparse dimensions with lengths "
            "!= 1 is not possible; make the array's axes batches, by update_layout, or dense.")
    data = broadcast_in_dim(
        mat.data, (*shape[:n_batch], mat.nse, *shape[n_batch + n_sparse:]),
        (*batch, n_batch, *[d + 1 - n_sparse for d in dense]))
    indices = broadcast_in_dim(
        mat.indices, (*shape[:n_batch], mat.nse, mat.n_sparse),
        (*batch, n_batch, n_batch + 1))
    if n_sparse != mat.n_sparse:
        columns = {d - n_batch: indices[..., i] for i, d in enumerate(sparse)}
        zero = zeros(indices.shape[:-1], indices.dtype)
        indices = stack([columns.get(k, zero) for k in range(n_sparse)], -1)
    return BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices,
                indices_sorted=mat.indices_sorted)


def bcoo_concatenate(operands: Sequence[BCOO], *, dimension: int) -> BCOO:
    """`lax.concatenate` of BCOOs along a batch or sparse axis.

    >>> v = sparse.BCOO.fromdense(onp.array([0., 5.]))
    >>> print(sparse.bcoo_concatenate([v, v], dimension=0).todense())
    [0. 5. 0. 5.]
    """
    dimension, operands = as_int("bcoo_concatenate", dimension), list(operands)
    if not operands or not all(isinstance(x, BCOO) for x in operands):
        raise ValueError("bcoo_concatenate: expected operands to be a sequence of BCOO arrays; "
                         f"{[type(x).__name__ for x in operands]} given.")
    shapes = [x.shape for x in operands]
    if not all(len(s) == len(shapes[0]) and 0 <= dimension < len(s) and
               s[:dimension] + s[dimension + 1:] ==
               shapes[0][:dimension] + shapes[0][dimension + 1:] for s in shapes):
        raise TypeError(f"bcoo_concatenate: shapes {shapes} along axis {dimension} given; Cannot "
                        "concatenate arrays with shapes that differ in other axes.")
    if len({x.n_dense for x in operands}) > 1:
        raise ValueError("bcoo_concatenate requires inputs to have matching numbers of dense "
                         f"axes; {[x.n_dense for x in operands]} given; see update_layout.")
    # M[None] has one batch axis more than others may have.
    counts = {x.n_batch for x in operands}
    if len(counts) > 1 and max(counts) == 1:
        for n in (1, 0):
            if all(x.shape[0] == 1 for x in operands if x.n_batch != n):
                operands = [x.update_layout(n_batch=n) for x in operands]
                break
    if len({x.n_batch for x in operands}) > 1:
        raise ValueError("bcoo_concatenate requires inputs to have matching batch dimensions; "
                         f"{[x.n_batch for x in operands]} given; see update_layout.")
    n_batch, n_sparse = operands[0].n_batch, operands[0].n_sparse
    if dimension >= n_batch + n_sparse:
        raise NotImplementedError("bcoo_concatenate: Concatenation along dense dimensions; make "
                                  "them sparse, by update_layout(n_dense=0).")
    shape = list(shapes[0])
    shape[dimension] = sum(s[dimension] for s in shapes)
    kind = dtypes.result_type(*[x.indices.dtype for x in operands])
    operands = [BCOO((x.data, x.indices.astype(kind)), shape=x.shape) for x in operands]
    datas, index = [x.data for x in operands], [x.indices for x in operands]
    if dimension < n_batch:
        nse = max(x.nse for x in operands)
        operands = [_with_nse(x, nse) for x in operands]
        datas = [broadcast_batch(x.data, x.shape[:n_batch]) for x in operands]
        index = [broadcast_batch(x.indices, x.shape[:n_batch]) for x in operands]
        return BCOO((lax_concatenate(datas, dimension), lax_concatenate(index, dimension)),
                    shape=shape)
    datas = [broadcast_batch(x.data, x.shape[:n_batch]) for x in operands] if len(
        {d.shape[:n_batch] for d in datas}) > 1 else datas
    index = [broadcast_batch(x.indices, x.shape[:n_batch]) for x in operands] if len(
        {i.shape[:n_batch] for i in index}) > 1 else index
    start, moved = 0, []
    for i, x in zip(index, operands, strict=True):
        sizes = x.shape[n_batch:n_batch + n_sparse]
        step = np.zeros(n_sparse, int)
        step[dimension - n_batch] = start
        # Padding of one operand must not become an element of the next.
        fill = padding(shape[n_batch:n_batch + n_sparse], i.dtype, i.ndim)
        moved.append(where(inside(i, sizes)[..., None], i + for_columns(step, i.dtype, i.ndim),
                           fill))
        start += x.shape[dimension]
    return BCOO((lax_concatenate(datas, n_batch), lax_concatenate(moved, n_batch)), shape=shape)


def _with_nse(mat: BCOO, nse: int) -> BCOO:
    """The array with padding, up to `nse` stored elements."""
    more, b = nse - mat.nse, mat.n_batch
    if not more:
        return mat
    fill = padding(mat.shape[b:b + mat.n_sparse], mat.indices.dtype, b + 2)
    return BCOO((
        concatenate([mat.data, zeros((*mat.data.shape[:b], more, *mat.data.shape[b + 1:]),
                                     mat.dtype)], b),
        concatenate([mat.indices, broadcast_to(fill, (*mat.indices.shape[:b], more, fill.size))],
                    b)), shape=mat.shape, indices_sorted=mat.indices_sorted,
        unique_indices=mat.unique_indices)


def bcoo_reshape(mat: BCOO, *, new_sizes: Sequence[int], dimensions: Sequence[int] | None = None,
                 sharding: object = None) -> BCOO:
    """`lax.reshape` of a BCOO: batch, sparse and dense axes each among themselves.

    Args: new_sizes: the new shape.

    >>> v = sparse.BCOO.fromdense(onp.array([0., 5., 0., 7.]))
    >>> print(sparse.bcoo_reshape(v, new_sizes=(2, 2)).todense())
    [[0. 5.]
     [0. 7.]]
    """
    new = tuple(as_int("bcoo_reshape", s) for s in new_sizes)
    if prod(new) != mat.size:
        raise TypeError(f"bcoo_reshape: {mat} to {new} given; reshape total size must be "
                        f"unchanged, {mat.size}.")
    if dimensions is not None:
        mat = bcoo_transpose(mat, permutation=dimensions)
    ends = _ends_of_parts(mat, new)
    new_batch, new_sparse, new_dense = new[:ends[0]], new[ends[0]:ends[1]], new[ends[1]:]
    old = mat.shape[:mat.n_batch]
    data, indices = broadcast_batch(mat.data, old), broadcast_batch(mat.indices, old)
    data = data.reshape(*new_batch, mat.nse, *new_dense)
    indices = indices.reshape(*new_batch, mat.nse, mat.n_sparse)
    _, sparse_sizes, _ = _parts(mat, mat.shape)
    valid = inside(indices, sparse_sizes)
    columns = _columns_moved(indices, sparse_sizes, new_sparse)
    fill = padding(new_sparse, indices.dtype, indices.ndim)
    if new_sparse:
        indices = where(valid[..., None], columns, fill)
    else:
        data = only(valid, data)
        indices = columns
    return BCOO((data, indices), shape=new, indices_sorted=mat.indices_sorted,
                unique_indices=mat.unique_indices)


def _ends_of_parts(mat: BCOO, new: Shape) -> tuple[int, int]:
    """Where the batch axes of a reshaped array end, and its sparse axes.

    An axis of size 1 belongs to the part before it, if there is one.
    """
    batch, sparse, dense = (prod(x) for x in _parts(mat, mat.shape))
    behind = range(len(new), -1, -1) if mat.n_batch else [0]
    firsts = [i for i in behind if prod(new[:i]) == batch]
    for first in firsts:
        lasts = range(len(new), first - 1, -1) if mat.n_sparse or mat.n_dense else [first]
        for last in lasts:
            if prod(new[first:last]) == sparse and prod(new[last:]) == dense:
                return first, last
    kinds = "sparse and dense" if firsts else "batch and sparse"
    raise ValueError(f"bcoo_reshape: new shape cannot mix {kinds} dimensions; {mat} to {new} "
                     "given.")


def _columns_moved(indices: Array, old: Sequence[int], new: Sequence[int]) -> Array:
    """Indices into axes of sizes `old` as indices into axes of sizes `new`, of equal product.

    Leading sizes that are equal stay out of the arithmetic, so less can overflow.
    """
    same = 0
    while same < min(len(old), len(new)) and old[same] == new[same]:
        same += 1
    front, indices = indices[..., :same], indices[..., same:]
    old, new = old[same:], new[same:]
    if prod(old) > np.iinfo(indices.dtype).max:
        wide = dtypes.canonical_dtype("int64")
        if prod(old) > np.iinfo(wide).max:
            raise ValueError(f"bcoo_reshape: sparse axes of sizes {tuple(old)} to {tuple(new)} "
                             f"given, {prod(old)} places; {wide} counts to {np.iinfo(wide).max}; "
                             "enable 64-bit dtypes, by the option olympus_enable_x64, or keep the "
                             "leading axes as they are.")
        indices = indices.astype(wide)
    flat = zeros(indices.shape[:-1], indices.dtype)
    for k, size in enumerate(old):
        flat = flat * size + indices[..., k]
    columns = []
    for size in reversed(new):
        columns.append(flat % max(size, 1))
        flat = flat // max(size, 1)
    back = stack(columns[::-1], -1) if columns else indices[..., :0]
    return concatenate([front, back.astype(front.dtype)], -1)


def bcoo_rev(operand: BCOO, dimensions: Sequence[int]) -> BCOO:
    """`lax.rev` of a BCOO: elements in reverse order along some axes.

    >>> print(sparse.bcoo_rev(sparse.BCOO.fromdense(onp.array([0., 5., 7.])), [0]).todense())
    [7. 5. 0.]
    """
    dims = [as_int("bcoo_rev", d) for d in dimensions]
    if any(not 0 <= d < operand.ndim for d in dims) or len(set(dims)) < len(dims):
        raise ValueError(f"bcoo_rev: axes {tuple(dims)} of {operand} given; distinct ones in "
                         f"range({operand.ndim}) are required.")
    b, s = operand.n_batch, operand.n_sparse
    batch = [d for d in dims if d < b]
    data = rev(operand.data, [*batch, *[d + 1 - s for d in dims if d >= b + s]])
    indices = rev(operand.indices, batch)
    turned = np.array([d in dims for d in range(b, b + s)], bool)
    if turned.any():
        sizes = operand.shape[b:b + s]
        back = for_columns([n - 1 for n in sizes], indices.dtype, b + 2) - indices
        indices = where(inside(indices, sizes)[..., None],
                        where(for_columns(turned, BOOL, b + 2), back, indices),
                        padding(sizes, indices.dtype, b + 2))
    return BCOO((data, indices), shape=operand.shape, unique_indices=operand.unique_indices,
                indices_sorted=operand.indices_sorted and not turned.any())


def bcoo_squeeze(arr: BCOO, *, dimensions: Sequence[int]) -> BCOO:
    """`lax.squeeze` of a BCOO: the array without some axes of size 1.

    >>> sparse.bcoo_squeeze(sparse.BCOO.fromdense(onp.ones((1, 3))), dimensions=(0,))
    BCOO(float32[3], nse=3)
    """
    dims = [canonical_axis(as_int("bcoo_squeeze", d), arr.ndim) for d in dimensions]
    if any(arr.shape[d] != 1 for d in dims):
        raise ValueError("bcoo_squeeze: cannot select an axis to squeeze out which has size not "
                         f"equal to one: axes {tuple(dims)} of {arr} given.")
    b, s = arr.n_batch, arr.n_sparse
    batch = tuple(d for d in dims if d < b)
    left = [i for i in range(s) if i + b not in dims]
    data, indices = arr.data, arr.indices
    if len(left) < s:
        valid = inside(indices, arr.shape[b:b + s])
        fill = padding([arr.shape[b + i] for i in left], indices.dtype, b + 2)
        indices = stack([indices[..., i] for i in left], -1) if left else indices[..., :0]
        if left:
            indices = where(valid[..., None], indices, fill)
        else:
            data = only(valid, data)
    return BCOO((squeeze(data, (*batch, *[d - s + 1 for d in dims if d >= b + s])),
                 squeeze(indices, batch)),
                shape=[n for d, n in enumerate(arr.shape) if d not in dims],
                indices_sorted=arr.indices_sorted, unique_indices=arr.unique_indices)


def bcoo_slice(mat: BCOO, *, start_indices: Sequence[int], limit_indices: Sequence[int],
               strides: Sequence[int] | None = None) -> BCOO:
    """`lax.slice` of a BCOO. Stored elements outside of the slice become padding.

    Args:
      limit_indices: where it ends, along each axis.
      strides: the steps; None is 1.

    >>> v = sparse.BCOO.fromdense(onp.array([0., 5., 0., 7.]))
    >>> print(sparse.bcoo_slice(v, start_indices=[1], limit_indices=[4], strides=[2]).todense())
    [5. 7.]
    """
    if not isinstance(mat, BCOO):
        raise TypeError(f"bcoo_slice: {type(mat).__name__} given; input should be BCOO array.")
    starts, ends = [[as_int("bcoo_slice", i) for i in x] for x in (start_indices, limit_indices)]
    steps = [as_int("bcoo_slice", i) for i in strides] if strides is not None else [1] * mat.ndim
    if not len(starts) == len(ends) == len(steps) == mat.ndim:
        raise ValueError(f"bcoo_slice: indices must have size mat.ndim={mat.ndim}; {starts}, "
                         f"{ends} and strides {steps} given.")
    if any(s <= 0 for s in steps):
        raise ValueError(f"bcoo_slice: strides must be a sequence of positive integers; {steps} "
                         "given.")
    if not all(0 <= i <= j <= n for i, j, n in zip(starts, ends, mat.shape)):
        raise ValueError(f"bcoo_slice: invalid indices {starts} to {ends} given for shape "
                         f"{mat.shape}; 0 <= start <= limit <= size is required.")
    slices = [slice(*x) for x in zip(starts, ends, steps)]
    batch, sparse, dense = slices[:mat.n_batch], *_parts(mat, slices)[1:]
    data = mat.data[(*[slice(None) if n == 1 else x for n, x in zip(mat.data.shape, batch)],
                     slice(None), *dense)]
    indices = mat.indices[tuple(slice(None) if n == 1 else x
                                for n, x in zip(mat.indices.shape, batch))]
    shape = [-(-(j - i) // s) for i, j, s in zip(starts, ends, steps)]
    start, end, step = (for_columns([getattr(x, name) for x in sparse], indices.dtype,
                                    indices.ndim) for name in ("start", "stop", "step"))
    within = ((indices >= start) & (indices < end) & ((indices - start) % step == 0)).all(-1)
    return _part(mat, data, indices, within, (indices - start) // step, shape)


def _part(mat: BCOO, data: Array, indices: Array, within: Array, moved: Array, shape: Sequence[int]
          ) -> BCOO:
    """The elements flagged by `within`, at indices `moved`; no more than the array has places."""
    sizes = shape[mat.n_batch:mat.n_batch + mat.n_sparse]
    indices = where(within[..., None], moved, padding(sizes, indices.dtype, indices.ndim))
    if not mat.n_sparse:
        indices = moved
    data = only(within, data)
    # Dropped elements stand between the others, so only whole arrays stay in order.
    out = BCOO((data, indices), shape=shape, unique_indices=mat.unique_indices)
    return bcoo_sum_duplicates(out, prod(sizes)) if mat.n_sparse and mat.nse > prod(sizes) else out


def bcoo_dynamic_slice(mat: BCOO, start_indices: Sequence[ArrayLike], slice_sizes: Sequence[int]
                       ) -> BCOO:
    """`lax.dynamic_slice` of a BCOO: starts may be traced, and are moved to where the slice fits.

    >>> v = sparse.BCOO.fromdense(onp.array([0., 5., 0., 7.]))
    >>> print(sparse.bcoo_dynamic_slice(v, [onp.array(3)], [2]).todense())
    [0. 7.]
    """
    if not isinstance(mat, BCOO):
        raise TypeError(f"bcoo_dynamic_slice: {type(mat).__name__} given; input should be BCOO "
                        "array.")
    sizes = [as_int("bcoo_dynamic_slice", n) for n in slice_sizes]
    starts = [asarray(i) for i in start_indices]
    if not len(starts) == len(sizes) == mat.ndim:
        raise ValueError(f"bcoo_dynamic_slice: {len(starts)} starts and {len(sizes)} sizes given; "
                         f"indices must have size mat.ndim={mat.ndim}.")
    if not all(0 <= n <= m for n, m in zip(sizes, mat.shape)):
        raise TypeError(f"bcoo_dynamic_slice: slice_sizes {tuple(sizes)} given; slice_sizes must "
                        f"be less than or equal to operand shape, {mat.shape}.")
    for i in starts:
        if i.shape or i.dtype.kind not in "iu":
            raise TypeError(f"bcoo_dynamic_slice: start {typeof(i)} given; integer scalars are "
                            "required.")
    starts = [where(i < 0, i + m, i).clip(0, m - n) if i.dtype.kind == "i" else i.clip(0, m - n)
              for i, n, m in zip(starts, sizes, mat.shape)]
    batch, sparse, dense = starts[:mat.n_batch], *_parts(mat, starts)[1:]
    size_batch, size_sparse, size_dense = _parts(mat, sizes)

    def part(x: Array, tail: Sequence[ArrayLike], tail_sizes: Sequence[int]) -> Array:
        at, cut = [], []
        for n, m, i, size in zip(x.shape, mat.shape, batch, size_batch):
            served = n == 1 != m
            at.append(0 if served else i)
            cut.append(1 if served else size)
        return dynamic_slice(x, [*at, *tail], [*cut, *tail_sizes])

    data = part(mat.data, [0, *dense], [mat.nse, *size_dense])
    indices = part(mat.indices, [0, 0], mat.indices.shape[-2:])
    if not mat.n_sparse:
        return BCOO((data, indices), shape=sizes)
    start = stack(sparse).astype(indices.dtype).reshape(*[1] * (indices.ndim - 1), -1)
    end = start + for_columns(size_sparse, indices.dtype, indices.ndim)
    within = ((indices >= start) & (indices < end)).all(-1)
    return _part(mat, data, indices, within, indices - start, sizes)


def bcoo_reduce_sum(mat: BCOO, *, axes: Sequence[int]) -> BCOO:
    """The sums of a BCOO along some axes: a BCOO of the others.

    Args: axes: the axes that are summed.

    >>> M = sparse.BCOO.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.bcoo_reduce_sum(M, axes=(0,)).todense())
    [6. 5.]
    """
    axes = sorted({as_int("bcoo_reduce_sum", a) for a in axes})
    if any(not 0 <= a < mat.ndim for a in axes):
        raise ValueError(f"bcoo_reduce_sum: axes {tuple(axes)} of {mat} given; axes in "
                         f"range({mat.ndim}) are required.")
    b, s = mat.n_batch, mat.n_sparse
    data = mat.data.sum(tuple(a - s + 1 for a in axes if a >= b + s), dtype=mat.dtype)
    indices = mat.indices
    if any(b <= a < b + s for a in axes):
        # Padding along a summed axis must stay padding.
        valid = inside(indices, mat.shape[b:b + s])
        data = only(valid, data)
        rest = [i for i in range(s) if i + b not in axes]
        indices = stack([indices[..., i] for i in rest], -1) if rest else indices[..., :0]
    summed = [a for a in axes if a < b]
    if summed:
        whole = [n if i in summed else m for i, (n, m) in enumerate(zip(mat.shape, data.shape[:b]))]
        data = broadcast_batch(data, whole)
        whole = [n if i in summed else m
                 for i, (n, m) in enumerate(zip(mat.shape, indices.shape[:b]))]
        indices = broadcast_batch(indices, whole)
        left = [i for i in range(b) if i not in summed]
        nse = prod([mat.shape[i] for i in summed]) * mat.nse
        data = data.transpose(*left, *summed, *range(b, data.ndim)).reshape(
            *[data.shape[i] for i in left], nse, *data.shape[b + 1:])
        indices = indices.transpose(*left, *summed, b, b + 1).reshape(
            *[indices.shape[i] for i in left], nse, indices.shape[-1])
    return BCOO((data, indices), shape=[n for i, n in enumerate(mat.shape) if i not in axes])


def bcoo_multiply_dense(sp_mat: BCOO, v: ArrayLike) -> Array:
    """The stored elements of a BCOO, each times the element of a dense array at its index.

    Args:
      sp_mat: the array.
      v: broadcasts to its shape.

    >>> M = sparse.BCOO.fromdense(onp.array([[0., 5.], [6., 0.]]))
    >>> print(sparse.bcoo_multiply_dense(M, onp.array([10., 100.])))
    [500.  60.]
    """
    v = asarray(v)
    if not v.ndim:
        return sp_mat.data * v
    shape = sp_mat.shape
    if v.ndim > len(shape) or broadcast_shapes(v.shape, shape) != shape:
        raise NotImplementedError(
            "bcoo_multiply_dense: multiplication between sparse and dense is only implemented for "
            f"cases where the output shape matches the sparse matrix shape: shape {shape} and "
            f"v.shape {v.shape} given; broadcast the sparse array first, or use todense().")
    v = expand_dims(v, range(len(shape) - v.ndim))
    b, s = sp_mat.n_batch, sp_mat.n_sparse
    small = np.array([n == 1 for n in v.shape[b:b + s]], bool)

    def one(d: Array, i: Array, x: Array) -> Array:
        shared = for_columns(small, BOOL) & (i >= 0) & (i < padding(shape[b:b + s], i.dtype))
        at = where(shared, 0, i)
        return d * read(x, at)

    batch = tuple(max(sizes) if 0 not in sizes else 0 for sizes in zip(
        sp_mat.data.shape[:b], sp_mat.indices.shape[:b], v.shape[:b]))
    return batched(one, batch)(sp_mat.data, sp_mat.indices, v)


def bcoo_multiply_sparse(lhs: BCOO, rhs: BCOO) -> BCOO:
    """The products of elements of two BCOOs, which broadcast.

    >>> v, w = (sparse.BCOO.fromdense(onp.array(x)) for x in ([0., 5., 2.], [3., 4., 0.]))
    >>> print(sparse.bcoo_multiply_sparse(v, w).todense())
    [ 0. 20.  0.]
    """
    if lhs.ndim != rhs.ndim:
        raise TypeError("bcoo_multiply_sparse: arrays must have same number of dimensions; "
                        f"{lhs} and {rhs} given.")
    if lhs.n_dense != rhs.n_dense:
        raise NotImplementedError("bcoo_multiply_sparse: arrays with differing numbers of dense "
                                  f"dimensions: {lhs}, {rhs} given; see update_layout.")
    b = min(lhs.n_batch, rhs.n_batch)
    lhs, rhs = lhs.update_layout(n_batch=b), rhs.update_layout(n_batch=b)
    shape, s = broadcast_shapes(lhs.shape, rhs.shape), lhs.n_sparse
    ls, rs = lhs.shape[b:b + s], rhs.shape[b:b + s]
    both = [k for k in range(s) if ls[k] != 1 and rs[k] != 1]
    nse = lhs.nse * rhs.nse
    if lhs.unique_indices and rhs.unique_indices and ls == rs:
        nse = min(lhs.nse, rhs.nse)

    def one(x: Array, i: Array, y: Array, j: Array) -> tuple[Array, Array]:
        meets = inside(i, ls)[:, None] & inside(j, rs)[None]
        for k in both:
            meets &= i[:, None, k] == j[None, :, k]
        p, q = nonzero(meets, size=nse, fill_value=(lhs.nse, rhs.nse))
        out = read(x, p[:, None]) * read(y, q[:, None])
        index = (read(i, p[:, None]) * for_columns([n != 1 for n in ls], i.dtype) +
                 read(j, q[:, None]).astype(i.dtype) * for_columns([n == 1 for n in ls], i.dtype))
        return out, where((p < lhs.nse)[:, None], index, padding(shape[b:b + s], i.dtype))

    batch = tuple(0 if 0 in sizes else max(sizes) for sizes in zip(
        lhs.data.shape[:b], lhs.indices.shape[:b], rhs.data.shape[:b], rhs.indices.shape[:b]))
    data, indices = batched(one, batch)(*lhs._bufs, *rhs._bufs)
    return BCOO((data, indices), shape=shape)


def bcoo_gather(operand: BCOO, start_indices: ArrayLike,
                dimension_numbers: GatherDimensionNumbers, slice_sizes: Shape, *,
                unique_indices: bool = False, indices_are_sorted: bool = False,
                mode: str | GatherScatterMode | None = None,
                fill_value: ArrayLike | None = None) -> BCOO:
    """`lax.gather` from a BCOO; indices outside are moved to where the slice fits.

    Args:
      unique_indices: not used.
      indices_are_sorted: not used.
      mode: "promise_in_bounds" or "clip".
      fill_value: not used.

    >>> v = sparse.BCOO.fromdense(onp.array([0., 5., 7.]))
    >>> numbers = lax.GatherDimensionNumbers((), (0,), (0,))
    >>> print(sparse.bcoo_gather(v, onp.array([[2], [0]]), numbers, (1,)).todense())
    [7. 0.]
    """
    if GatherScatterMode.from_any(mode or "promise_in_bounds") not in (
            GatherScatterMode.PROMISE_IN_BOUNDS, GatherScatterMode.CLIP):
        raise NotImplementedError(f"bcoo_gather: mode={mode} not yet supported; "
                                  "'promise_in_bounds' or 'clip' is required.")
    start = asarray(start_indices)
    out = eval_shape(lambda x, i: gather(x, i, dimension_numbers, slice_sizes),
                     typeof(operand.data).update(shape=operand.shape), typeof(start))
    starts = start.reshape(-1, start.shape[-1])
    sizes = list(operand.shape)
    for j in dimension_numbers.start_index_map:
        sizes[j] = slice_sizes[j]

    def one(place: Array) -> BCOO:
        at: list[ArrayLike] = [0] * operand.ndim
        for i, j in enumerate(dimension_numbers.start_index_map):
            at[j] = place[i]
        cut = bcoo_dynamic_slice(operand, at, sizes)
        return bcoo_squeeze(cut, dimensions=dimension_numbers.collapsed_slice_dims)

    slices = vmap(one)(starts)
    slices = bcoo_reshape(slices, new_sizes=(*start.shape[:-1], *slices.shape[1:]))
    offset = dimension_numbers.offset_dims
    order = [*[d for d in range(len(out.shape)) if d not in offset], *offset]
    perm = np.argsort(order).tolist()
    if perm != list(range(slices.ndim)):
        slices = bcoo_transpose(bcoo_update_layout(slices, n_batch=0), permutation=perm)
    return slices


def bcoo_conv_general_dilated(
        lhs: BCOO | ArrayLike, rhs: BCOO | ArrayLike, *, window_strides: Sequence[int],
        padding: str | Sequence[tuple[int, int]], lhs_dilation: Sequence[int] | None = None,
        rhs_dilation: Sequence[int] | None = None, dimension_numbers: object = None,
        feature_group_count: int = 1, batch_group_count: int = 1, precision: object = None,
        preferred_element_type: DType | None = None, out_sharding: object = None) -> BCOO:
    """`lax.conv_general_dilated` along one axis, of operands [1, 1, n] one or both of which are
    sparse: the products of all pairs of stored elements.

    Args:
      window_strides: 1.
      padding: as in `lax`.
      lhs_dilation: 1.
      rhs_dilation: 1.
      feature_group_count: 1.
      batch_group_count: 1.

    >>> v = sparse.BCOO.fromdense(onp.array([[[0., 5., 7.]]]))
    >>> print(sparse.bcoo_conv_general_dilated(v, onp.array([[[1., 10.]]]), window_strides=(1,),
    ...                                        padding="VALID").todense())
    [[[50. 75.]]]
    """
    what = "bcoo_conv_general_dilated"
    operands = [x if isinstance(x, BCOO) else asarray(x) for x in (lhs, rhs)]
    n = len(operands[0].shape) - 2
    for name, factor in (("lhs_dilation", lhs_dilation), ("rhs_dilation", rhs_dilation),
                         ("window_strides", window_strides)):
        if tuple(factor or (1,) * n) != (1,) * n:
            raise NotImplementedError(f"{what}: bcoo convolution with {name}={factor}; 1 for each "
                                      "axis is required.")
    if (feature_group_count, batch_group_count) != (1, 1):
        raise NotImplementedError(f"{what}: bcoo convolution with non-unit group counts.")
    if n != 1 or any(x.shape[:2] != (1, 1) for x in operands):
        raise NotImplementedError(f"{what}: bcoo convolution with leading dimensions other than "
                                  f"(1, 1), or of more axes than one: shapes {operands[0].shape} "
                                  f"and {operands[1].shape} given.")
    if operands[0].dtype != operands[1].dtype:
        raise TypeError(f"{what}: dtypes {operands[0].dtype} and {operands[1].dtype} given; equal "
                        "ones are required.")
    sizes = [x.shape[2] for x in operands]
    if isinstance(padding, str):
        low, high = _same_or_valid(padding, sizes)
    else:
        (low, high), = padding
    (a, i), (b, j) = map(_as_vector, operands)
    data = (a[:, None] * b[None]).reshape(-1)
    index = (i[:, None] + (low - j.astype(i.dtype))[None]).reshape(-1)
    size = max(0, sizes[0] + low + high - sizes[1] + 1)
    index = where((index >= 0) & (index < size), index, size)
    return BCOO((data[None, None], index[None, None, :, None]), shape=(1, 1, size))


def _same_or_valid(padding: str, sizes: Sequence[int]) -> tuple[int, int]:
    if padding.upper() == "VALID":
        return 0, 0
    total = max(0, sizes[1] - 1)
    if padding.upper() == "SAME":
        return total // 2, total - total // 2
    if padding.upper() == "SAME_LOWER":
        return total - total // 2, total // 2
    raise ValueError(f"bcoo_conv_general_dilated: padding {padding!r} given; 'SAME', 'VALID', "
                     "'SAME_LOWER' or a pair of ints is required.")


def _as_vector(x: BCOO | Array) -> tuple[Array, Array]:
    """Elements and indices along the last axis of [1, 1, n]; padding has the element 0."""
    if not isinstance(x, BCOO):
        return x[0, 0], iota("int32", x.shape[2])
    x = x.update_layout(n_batch=2, n_dense=0, on_inefficient=None)
    index = x.indices[0, 0]
    return only(inside(index, x.shape[2:]), x.data[0, 0]), index[:, 0]


setattr(BCOO, "update_layout", bcoo_update_layout)   # noqa: B010 - what its stub describes


def in_place_ones(mat: BCOO) -> BCOO:
    """An array of ones at the indices of another one."""
    return BCOO((ones_like(mat.data), mat.indices), shape=mat.shape)


complete_docstrings(globals(), WORDS, returns="a BCOO.")
