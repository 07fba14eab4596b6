"""Ragged contractions in blocks of the places of one group.

XLA:CPU (0.10.2, 0.12.0.1) has no kernel for them: the plain form multiplies every place for every
group. The loop here multiplies a block of places for the group that they are of. The last block of
a group may reach beyond it; there, its results are left out.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence

from ...base.typing import Array, DType, IrValue, Params
from ...core.kernels import Kernel
from ...core.primitive import Builder
from ...core.trace import literal, typeof
from ...types import dtypes
from ...types.avals import make_aval
from ...types.shape import prod
from ..arithmetic import div, mul, sub
from ..bits import bitwise_and
from ..comparison import ge, lt, select
from ..contract import dot_general
from ..convert import convert_element_type
from ..creation import broadcasted_iota, full_like
from ..cumulative import cumsum
from ..families import add
from ..precision import CanonicalPrecision
from ..ragged import (
    INT32, RaggedDotDimensionNumbers, Roles, group_bounds, only, ragged_dot_p, roles_of,
)
from ..reduce import largest, smallest
from ..shape import broadcast_in_dim, move_axis, reduce_sum, reshape, transpose
from ..slicing import (
    dynamic_index_in_dim, dynamic_slice_in_dim, dynamic_update_slice_in_dim, index_in_dim,
)

# Found with tools/kernel_table.py: with fewer products the plain form is as fast, and blocks of 16
# to 128 places are.
BLOCK, LEAST_PRODUCTS = 32, 1 << 22


def _are_many(b: Builder, lhs: IrValue, rhs: IrValue, sizes: IrValue, *,
              ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, skipped: int,
              **params: Hashable) -> bool:
    x, y, counts = b.avals_in
    roles = roles_of(x.ndim, y.ndim, ragged_dot_dimension_numbers)
    own = roles.contracting[0] if roles.group is None else roles.free[0]
    groups = counts.shape[-1] - skipped
    if own[-1] != roles.ragged or (roles.group is None and len(own) > 1):
        return False    # the places of a group are not consecutive rows
    if x.dtype != y.dtype or x.dtype == bool or dtypes.itemsize_bits(x.dtype) < 8:
        return False
    places = prod([x.shape[i] for i in (*roles.outer, roles.ragged)])
    columns = prod([y.shape[i] for i in roles.free[1]])
    return places >= BLOCK and groups > 1 and groups * x.size * columns >= LEAST_PRODUCTS


def _by_blocks(b: Builder, lhs: IrValue, rhs: IrValue, sizes: IrValue, *,
               ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, skipped: int,
               precision: CanonicalPrecision, preferred_element_type: DType | None) -> IrValue:
    (x, y, counts), wanted = b.avals_in, b.avals_out[0]
    roles = roles_of(x.ndim, y.ndim, ragged_dot_dimension_numbers)
    groups, length = counts.shape[-1] - skipped, x.shape[roles.ragged]
    outer = tuple([x.shape[i] for i in roles.outer])
    rows = prod(outer) * length
    lists, number = make_aval((prod(outer) * groups,), INT32), make_aval((), INT32)
    work = b.traced(functools.partial(_work, outer, length, skipped), [sizes], [counts])
    work = [b.hold(v, lists) for v in work]
    (total,) = b.traced(lambda blocks: [index_in_dim(blocks, -1, 0, False)], [work[2]], [lists])
    per_row, in_product = [[v.shape[i] for i in axes]
                           for v, axes in zip((x, y), roles.free, strict=True)]
    if roles.group is None:
        flat, step, dtype = _rows, _sum, dtypes.wide_dtype(wanted.dtype)
        avals = [x.update(shape=(rows, *per_row)), y.update(shape=(rows, *in_product))]
        out = make_aval((lists.size, *per_row, *in_product), dtype)
    else:
        flat, step, dtype = _matrices, _multiply, wanted.dtype
        each = [y.shape[i] for i in range(y.ndim) if i not in (*roles.batch[1], roles.group)]
        avals = [x.update(shape=(rows, *[x.shape[i] for i in roles.contracting[0]])),
                 y.update(shape=(y.size // prod(each), *each))]
        out = make_aval((rows, *in_product), dtype)
    flattened = b.traced(functools.partial(flat, roles, rows), [lhs, rhs], [x, y])
    step = functools.partial(step, roles, (prod([x.shape[i] for i in roles.before]), groups), {
        "precision": precision, "preferred_element_type": dtype})
    consts, const_avals = [*flattened, *work, total], [*avals, *[lists] * 3, number]

    def body(t: IrValue, result: IrValue, *consts: IrValue) -> list[IrValue]:
        return b.traced(step, [t, result, *consts[:-1]], [number, out, *const_avals[:-1]])

    def more(t: IrValue, result: IrValue, *consts: IrValue) -> IrValue:
        return b.traced(lambda t, total: [lt(t, total)], [t, consts[-1]], [number] * 2)[0]

    result = b.while_loop([b.full(number, 0), b.full(out, 0)], more, body, consts, const_avals)[1]
    if roles.group is None:
        split = out.update(shape=(lists.size // groups, groups, *out.shape[1:]))
        result = b.op("stablehlo.reshape", [result], None, split)
        (result,) = b.traced(lambda v: [move_axis(v, 1, 0)], [result], [split])
    result = b.op("stablehlo.reshape", [result], None, wanted.update(dtype=dtype))
    return result if out.dtype == wanted.dtype else b.convert(result, wanted)


def _work(outer: Sequence[int], length: int, skipped: int, sizes: Array) -> list[Array]:
    """int32[places' groups]: first places, places behind, how many blocks there are up to each.

    Places are numbered over all outer axes.
    """
    aval = typeof(sizes)
    if aval.ndim == 1:
        sizes = broadcast_in_dim(sizes, (*outer, aval.shape[0]), (len(outer),))
    starts, ends = group_bounds(sizes, skipped)
    groups = typeof(starts).shape[-1]
    shape = (prod(outer), groups)
    first = mul(broadcasted_iota(INT32, shape, 0), full_like(reshape(starts, shape), length))
    starts, ends = [reshape(add(first, smallest(largest(
        reshape(v, shape), literal(0, INT32)), literal(length, INT32))), (prod(shape),))
        for v in (starts, ends)]
    size = largest(sub(ends, starts), literal(0, INT32))
    blocks = div(add(size, literal(BLOCK - 1, INT32)), literal(BLOCK, INT32))
    return [starts, ends, cumsum(blocks)]


def _matrices(roles: Roles, rows: int, x: Array, y: Array) -> list[Array]:
    """Rows of lhs, and the matrices of the groups one behind the other, as they lie."""
    (lc, _), (lb, rb), (lf, _) = roles[:3]
    assert roles.group is not None
    rest = [i for i in range(typeof(y).ndim) if i not in (*rb, roles.group)]
    x, y = transpose(x, (*lb, *lf, *lc)), transpose(y, (*rb, roles.group, *rest))
    a, c = typeof(x).shape, typeof(y).shape
    return [reshape(x, (rows, *a[len(lb) + len(lf):])),
            reshape(y, (prod(c[:len(rb) + 1]), *c[len(rb) + 1:]))]


def _rows(roles: Roles, rows: int, x: Array, y: Array) -> list[Array]:
    """Rows of both operands."""
    flattened = []
    for v, batch, contracting, free in zip((x, y), roles.batch, roles.contracting, roles.free,
                                           strict=True):
        v = transpose(v, (*batch, *contracting, *free))
        flattened.append(reshape(v, (rows, *typeof(v).shape[len(batch) + len(contracting):])))
    return flattened


_at = functools.partial(dynamic_index_in_dim, keepdims=False, allow_negative_indices=False)
_from = functools.partial(dynamic_slice_in_dim, slice_size=BLOCK, allow_negative_indices=False)
_put = functools.partial(dynamic_update_slice_in_dim, axis=0, allow_negative_indices=False)


def _block(each: tuple[int, int], t: Array, rows: int, starts: Array, ends: Array, blocks: Array
           ) -> tuple[Array, Array, Array]:
    """Block t: the number of its places' group, its first row, which of its rows are meant."""
    at = reduce_sum(convert_element_type(ge(broadcast_in_dim(t, typeof(blocks).shape, ()), blocks),
                                         INT32), (0,))
    start, end, upto = [_at(v, at) for v in (starts, ends, blocks)]
    # The group has as many blocks left as lie between t and the blocks up to the group's end.
    count = div(add(sub(end, start), literal(BLOCK - 1, INT32)), literal(BLOCK, INT32))
    row = add(start, mul(literal(BLOCK, INT32), sub(t, sub(upto, count))))
    first = smallest(row, literal(rows - BLOCK, INT32))
    places = add(broadcasted_iota(INT32, (BLOCK,), 0), broadcast_in_dim(first, (BLOCK,), ()))
    row, end = [broadcast_in_dim(v, (BLOCK,), ()) for v in (row, end)]
    return at, first, bitwise_and(ge(places, row), lt(places, end))


def _multiply(roles: Roles, each: tuple[int, int], options: Params, t: Array, out: Array, x: Array,
              y: Array, *work: Array) -> list[Array]:
    """Put the products of one block with the matrix of its group into `out`."""
    before, groups = (literal(n, INT32) for n in each)
    at, first, meant = _block(each, t, typeof(x).shape[0], *work)
    outer = div(at, groups)
    which = add(mul(div(outer, before), groups), sub(at, mul(outer, groups)))
    matrix = _at(y, which)
    block = _from(x, first)
    taken = sorted((*roles.contracting[1], *roles.free[1]))
    summed = tuple(range(1, typeof(block).ndim)), tuple([
        taken.index(i) for i in roles.contracting[1]])
    product = dot_general(block, matrix, (summed, ((), ())), **options)
    old = _from(out, first)
    product = select(broadcast_in_dim(meant, typeof(product).shape, (0,)), product, old)
    return [add(t, literal(1, INT32)), _put(out, product, first)]


def _sum(roles: Roles, each: tuple[int, int], options: Params, t: Array, out: Array, x: Array,
         y: Array, *work: Array) -> list[Array]:
    """Add the sum of the products of two blocks' rows to that of their group in `out`."""
    at, first, meant = _block(each, t, typeof(x).shape[0], *work)
    blocks = [_from(v, first) for v in (x, y)]
    blocks = [only(broadcast_in_dim(meant, typeof(v).shape, (0,)), v) for v in blocks]
    product = dot_general(*blocks, (((0,), (0,)), ((), ())), **options)
    old = _at(out, at)
    product = reshape(add(old, product), (1, *typeof(product).shape))
    return [add(t, literal(1, INT32)), _put(out, product, at)]


KERNELS = {ragged_dot_p: (
    Kernel("blocks of groups", "XLA multiplies each place for every group", _are_many,
           _by_blocks),)}
