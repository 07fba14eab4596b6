"""Products of the parts of sparse arrays: dot_general, its sampled and its sparse kind."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial

from ..base.typing import Array, DType
from ..base.util import lazy_module
from ..core.primitive import Axis, Tangent, Zero
from ..core.trace import typeof
from ..interpreters.batching import to_axis
from ..lax.contract import dot_general
from ..lax.shape import transpose
from ..mapping.vmap import vmap
from ..numpy.arithmetic import maximum
from ..numpy.creation import zeros
from ..numpy.joining import concatenate, stack
from ..numpy.manipulation import broadcast_to
from ..numpy.reductions import cumsum
from ..types import dtypes
from ..types.shape import prod
from ..types.symbolic import is_symbolic_dim
from .conversions import INT32, bcoo_extract_p, bcoo_sum_duplicates_p, broadcast_batch, inside, only
from .defined import Defined, add_at, batched, read
from .formats import Shape, SparseInfo, bcoo_properties, bcsr_properties, index_properties

Numbers = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]
BOOL = dtypes.as_dtype("bool")


def canonical_numbers(dimension_numbers: Sequence[Sequence[Sequence[int]]]) -> Numbers:
    """Dimension numbers of `dot_general` as tuples of ints."""
    try:
        (lc, rc), (lb, rb) = dimension_numbers
    except (TypeError, ValueError):
        raise TypeError(
            f"dot_general: dimension_numbers={dimension_numbers!r:.80} given; two pairs of axes, "
            "((lhs, rhs) to contract, (lhs, rhs) batch axes), are required.") from None
    axes = [tuple(int(d) for d in ((dims,) if isinstance(dims, int) else dims))
            for dims in (lc, rc, lb, rb)]
    return ((axes[0], axes[1]), (axes[2], axes[3]))


def product_shape(what: str, lhs: Shape, rhs: Shape, numbers: Numbers) -> Shape:
    """The shape of a product; TypeError or ValueError where the operands do not fit together."""
    (lc, rc), (lb, rb) = numbers
    for kind, ls, rs in (("contracting", lc, rc), ("batch", lb, rb)):
        if len(ls) != len(rs) or any(
                not (0 <= i < len(lhs) and 0 <= j < len(rhs)) for i, j in zip(ls, rs)):
            raise TypeError(f"{what}: {kind} axes {ls} and {rs} of shapes {lhs} and {rhs} given; "
                            "as many of each are required, that exist.")
        if any(lhs[i] != rhs[j] for i, j in zip(ls, rs)):
            raise TypeError(f"{what}: operands of shapes {lhs} and {rhs} given; {kind} axes {ls} "
                            f"and {rs} of equal sizes are required: dot_general requires {kind} "
                            "dimensions to have the same shape.")
    if len({*lc, *lb}) < len(lc) + len(lb) or len({*rc, *rb}) < len(rc) + len(rb):
        raise ValueError(f"{what}: axes {lc}, {lb} and {rc}, {rb} given; distinct ones are "
                         "required.")
    return (*[lhs[i] for i in lb], *[s for i, s in enumerate(lhs) if i not in (*lc, *lb)],
            *[s for i, s in enumerate(rhs) if i not in (*rc, *rb)])


def _others(n: int, *taken: Sequence[int]) -> list[int]:
    used = {i for dims in taken for i in dims}
    return [i for i in range(n) if i not in used]


# dot_general -------------------------------------------------------------------------------------

def row_places(shape: Shape, n_batch: int, indptr: Array, indices: Array) -> tuple[Array, Array]:
    """Rows and columns of the stored elements of one batch; the row of padding is the last + 1."""
    height, dtype = shape[n_batch], indices.dtype
    if is_symbolic_dim(height) or height > dtypes.iinfo(dtype).max:
        dtype = dtypes.result_type(dtype, INT32)
    if indptr.shape[0] == 1:
        return zeros(indices.shape, dtype), indices.astype(dtype)
    # A row's pointer counts one up where the row before ends.
    ends = add_at(indices.shape, indptr[1:, None], zeros(indptr[1:].shape, INT32) + 1)
    return cumsum(ends).astype(dtype), indices.astype(dtype)


def _element_product(data: Array, indices: Array | tuple[Array, ...], x: Array,
                     contract: tuple[list[int], list[int]], sizes: Sequence[int]) -> Array:
    """The product of one batch element.

    `indices`: [n, axes], or their columns; `contract`: sparse columns, and dense axes from 0, that
    the leading axes of `x` meet, in order; `sizes`: of all sparse axes.
    """
    sparse, dense = contract
    free = _others(len(sizes), sparse)
    if sparse:
        met = columns_of(indices, sparse)
        factor = read(x, met)
        # Padding may store infinities, and 0 times infinity is NaN.
        data = only(inside(met, [sizes[i] for i in sparse]), data)
    else:
        factor = broadcast_to(x, (data.shape[0], *x.shape))
    if data.ndim == 1:
        product = data.reshape(-1, *[1] * (factor.ndim - 1)) * factor
    else:
        product = dot_general(data, factor, (
            ([d + 1 for d in dense], list(range(1, 1 + len(dense)))), ([0], [0])))
    return add_at([sizes[i] for i in free], columns_of(indices, free), product)


def columns_of(indices: Array | tuple[Array, ...], which: Sequence[int]) -> Array:
    """Some columns of indices; neighbours as a slice."""
    if isinstance(indices, tuple):
        return stack([indices[i] for i in which] or indices[:1], -1)[:, :len(which)]
    if list(which) == list(range(indices.shape[-1])):
        return indices
    if which and list(which) == list(range(which[0], which[0] + len(which))):
        columns = indices[..., which[0]:which[0] + len(which)]
        # Changes no place, since negative indices stay negative. But XLA moves arithmetic out of
        # loops, with the slice: in conjugate gradients that saves a fifth of the time.
        return maximum(columns, columns.dtype.type(-1)) if columns.dtype.kind == "i" else columns
    return concatenate([indices[..., i:i + 1] for i in which] or [indices[..., :0]], -1)


def _bcoo_dot_general(data: Array, indices: Array, rhs: Array, *, dimension_numbers: Numbers,
                      preferred_element_type: DType | None, lhs_spinfo: SparseInfo) -> Array:
    n_batch, n_sparse, _, _ = bcoo_properties(data, indices, lhs_spinfo.shape)
    return _dot_general("bcoo_dot_general", data, (indices,), rhs, lhs_spinfo.shape, n_batch,
                        n_sparse, lambda i: i, dimension_numbers, preferred_element_type)


def _bcsr_dot_general(data: Array, indices: Array, indptr: Array, rhs: Array, *,
                      dimension_numbers: Numbers, preferred_element_type: DType | None,
                      lhs_spinfo: SparseInfo) -> Array:
    shape = lhs_spinfo.shape
    n_batch = bcsr_properties(data, indices, indptr, shape).n_batch
    return _dot_general("bcsr_dot_general", data, (indptr, indices), rhs, shape, n_batch, 2,
                        partial(row_places, shape, n_batch), dimension_numbers,
                        preferred_element_type)


def _dot_general(what: str, data: Array, parts: tuple[Array, ...], rhs: Array, shape: Shape,
                 n_batch: int, n_sparse: int, places_of: Callable[..., Array | tuple[Array, ...]],
                 dimension_numbers: Numbers, preferred_element_type: DType | None) -> Array:
    """The product; `places_of(*parts)` are the places of the elements of one batch."""
    (lc, rc), (lb, rb) = dimension_numbers
    product_shape(what, shape, rhs.shape, dimension_numbers)
    if any(d >= n_batch for d in lb):
        raise NotImplementedError(
            f"{what}: batch dimensions must be among the batch dimensions in the sparse "
            f"representation: batch axes {lb} of an array with {n_batch} batch axes given; give it "
            "more by update_layout.")
    dtype = preferred_element_type or dtypes.result_type(data.dtype, rhs.dtype)
    terms = INT32 if dtype == BOOL else dtype
    data, rhs = data.astype(terms), rhs.astype(terms)

    pairs = dict(zip((*lb, *lc), (*rb, *rc), strict=True))
    sparse = [d for d in lc if n_batch <= d < n_batch + n_sparse]
    dense = [d for d in lc if d >= n_batch + n_sparse]
    met = [pairs[d] for d in (*sparse, *dense)]
    mapped = [pairs[d] for d in range(n_batch) if d in pairs]
    x = transpose(rhs, (*mapped, *met, *_others(rhs.ndim, mapped, met)))
    contract = ([d - n_batch for d in sparse], [d - n_batch - n_sparse for d in dense])
    f: Callable[..., Array] = lambda r, d, *p: _element_product(
        d, places_of(*p), r, contract, shape[n_batch:n_batch + n_sparse])
    for axis in reversed(range(n_batch)):
        f = vmap(f, in_axes=(0 if axis in pairs else None, 0, *[0] * len(parts)),
                 axis_size=shape[axis])
    out = f(x, *[broadcast_batch(p, shape[:n_batch]) for p in (data, *parts)])
    summed = [d for d in lc if d < n_batch]
    out = out.sum(tuple(summed)) if summed else out
    left = _others(n_batch, summed)
    batch_axes = [left.index(d) for d in lb]
    out = transpose(out, (*batch_axes, *_others(out.ndim, batch_axes)))
    return out != 0 if dtype == BOOL else out.astype(dtype)


class DotGeneral(Defined):
    """The product of a sparse and a dense array, linear in `data` and in the dense array.

    So its derivatives are products, too; vmap over the dense array alone adds an axis to it.
    """

    kernels, kernels_from = lazy_module("olympus._src.sparse.kernels"), 1024

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[Array | list[Array], Tangent | list[Tangent]]:
        out = self.bind(*primals, **params)
        data, *indices, rhs = primals
        terms = [self.bind(x, *indices, y, **params)
                 for x, y in ((tangents[0], rhs), (data, tangents[-1]))
                 if type(x) is not Zero and type(y) is not Zero]
        tangent = typeof(out).to_tangent_aval()
        if not terms or tangent.dtype == dtypes.float0:
            return out, Zero(tangent)
        return out, terms[0] + terms[1] if terms[1:] else terms[0]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None],
             **params: Hashable) -> tuple[Array | list[Array], int | None | list[int | None]]:
        *parts, rhs = args
        if any(d is not None for d in dims[:-1]) or rhs is None:
            return super().vmap(axis, args, dims, **params)
        last = typeof(rhs).ndim - 1
        out = self.bind(*parts, to_axis(rhs, dims[-1], last, axis.size), **params)
        return out, typeof(out).ndim - 1


bcoo_dot_general_p = DotGeneral("bcoo_dot_general", _bcoo_dot_general)
bcsr_dot_general_p = DotGeneral("bcsr_dot_general", _bcsr_dot_general)


def bcsr_indices(indices: Array, indptr: Array, shape: Shape) -> Array:
    """The indices of a BCOO of the same elements, [*batch, nse, 2]."""
    n_batch = indices.ndim - 1

    def one(i: Array, p: Array) -> Array:
        return stack(row_places(shape, n_batch, p, i), -1)

    sizes = tuple(max(a, b) for a, b in zip(indices.shape[:n_batch], indptr.shape[:n_batch]))
    return batched(one, sizes)(indices, indptr)


# Products at given places ------------------------------------------------------------------------

def _sampled(A: Array, B: Array, indices: Array, *, dimension_numbers: Numbers
             ) -> Array:
    """The elements of a dense product at the indices of a BCOO; computes no others without batches.
    """
    (lc, rc), (lb, rb) = dimension_numbers
    shape = product_shape("bcoo_dot_general_sampled", A.shape, B.shape, dimension_numbers)
    n_batch, _, n_dense, _ = index_properties(indices, shape)
    if lb or n_batch or n_dense:
        product = dot_general(A, B, dimension_numbers, precision="highest")
        return bcoo_extract_p.bind(indices, product, assume_unique=True)
    left, right = _others(A.ndim, lc), _others(B.ndim, rc)
    rows = read(transpose(A, (*left, *lc)), indices[:, :len(left)])
    columns = read(transpose(B, (*right, *rc)), indices[:, len(left):])
    axes = list(range(1, 1 + len(lc)))
    return dot_general(rows, columns, ((axes, axes), ([0], [0])), precision="highest")


bcoo_dot_general_sampled_p = Defined("bcoo_dot_general_sampled", _sampled)


def _spdot_general(lhs_data: Array, lhs_indices: Array, rhs_data: Array, rhs_indices: Array, *,
                   lhs_spinfo: SparseInfo, rhs_spinfo: SparseInfo, dimension_numbers: Numbers,
                   preferred_element_type: DType | None) -> tuple[Array, Array]:
    """The stored elements of the product of two sparse arrays: all pairs that meet, summed."""
    (lc, rc), (lb, rb) = dimension_numbers
    ls, rs = lhs_spinfo.shape, rhs_spinfo.shape
    shape = product_shape("bcoo_dot_general", ls, rs, dimension_numbers)
    lhs, rhs = (bcoo_properties(lhs_data, lhs_indices, ls),
                bcoo_properties(rhs_data, rhs_indices, rs))
    if lhs.n_dense or rhs.n_dense:
        raise NotImplementedError("bcoo_spdot_general with dense dimensions; make them sparse, by "
                                  "update_layout(n_dense=0).")
    if any(d >= lhs.n_batch for d in lb) or any(d >= rhs.n_batch for d in rb):
        raise NotImplementedError("bcoo_spdot_general: batch_dims must correspond to batch "
                                  "dimensions of the sparse representation.")
    if any(d < lhs.n_batch for d in lc) or any(d < rhs.n_batch for d in rc):
        raise NotImplementedError("bcoo_spdot_general only supports contraction of sparse indices.")
    if rhs.n_batch > len(rb) and lhs.n_sparse > len(lc):
        raise ValueError("bcoo_spdot_general: cannot have unused batch dims on rhs with unused "
                         "sparse dims on lhs.")
    nse = ((lhs.nse if lhs.n_sparse > len(lc) else 1) * (rhs.nse if rhs.n_sparse > len(rc) else 1))
    n_batch = lhs.n_batch + rhs.n_batch - len(lb)
    size = prod(shape[n_batch:])
    if not is_symbolic_dim(nse) and not is_symbolic_dim(size):
        nse = min(nse, size)
    dtype = preferred_element_type or dtypes.result_type(lhs_data.dtype, rhs_data.dtype)

    def one(a: Array, i: Array, b: Array, j: Array) -> tuple[Array, Array]:
        met_l, met_r = [d - lhs.n_batch for d in lc], [d - rhs.n_batch for d in rc]
        meets = (columns_of(i, met_l)[:, None] == columns_of(j, met_r)[None]).all(-1)
        meets &= inside(i, ls[lhs.n_batch:])[:, None] & inside(j, rs[rhs.n_batch:])[None]
        data = only(meets, a.astype(dtype)[:, None] * b.astype(dtype)[None]).reshape(-1)
        kept_i = columns_of(i, _others(lhs.n_sparse, met_l))
        kept_j = columns_of(j, _others(rhs.n_sparse, met_r)).astype(i.dtype)
        pairs = meets.shape
        index = concatenate([broadcast_to(kept_i[:, None], (*pairs, kept_i.shape[-1])),
                             broadcast_to(kept_j[None], (*pairs, kept_j.shape[-1]))], -1)
        # Elements of 0 stay: which pairs meet has no derivative.
        return tuple(bcoo_sum_duplicates_p.bind(
            data, index.reshape(data.shape[0], index.shape[-1]),
            spinfo=SparseInfo(shape[n_batch:]), nse=nse))

    free_l, free_r = _others(lhs.n_batch, lb), _others(rhs.n_batch, rb)
    order_l, order_r = [*lb, *free_l], [*rb, *free_r]
    parts = [transpose(broadcast_batch(x, s[:n]), (*order, *range(n, x.ndim)))
             for x, s, n, order in ((lhs_data, ls, lhs.n_batch, order_l),
                                    (lhs_indices, ls, lhs.n_batch, order_l),
                                    (rhs_data, rs, rhs.n_batch, order_r),
                                    (rhs_indices, rs, rhs.n_batch, order_r))]
    f: Callable[..., tuple[Array, Array]] = one
    for _ in free_r:
        f = vmap(f, in_axes=(None, None, 0, 0))
    for _ in free_l:
        f = vmap(f, in_axes=(0, 0, None, None))
    for _ in lb:
        f = vmap(f)
    return f(*parts)


bcoo_spdot_general_p = Defined("bcoo_spdot_general", _spdot_general, multiple_results=True)
