"""Contractions with ragged groups: places along an axis of one operand belong to groups.

Group g has `group_sizes[g]` consecutive places along the ragged axis of lhs. TPUs have a kernel,
and `kernels/ragged.py` has one for CPUs; elsewhere every place is multiplied for every group. A
group's results depend on its own places alone: a NaN elsewhere does not reach them.
"""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from ..base.typing import Array, ArrayLike, DType, DTypeLike, IrValue, Params
from ..base.util import ByKey, lazy_module, memoize
from ..core import tags
from ..core.facts import Shapes
from ..core.primitive import (
    Axis, Builder, Cotangent, Linear, Primitive, Tangent, Transposed, Zero, not_linear,
)
from ..core.trace import literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray, make_aval
from ..types.shape import DimSize, definitely_equal, is_static, less, prod
from ..types.sharding import ShardingLike
from .arithmetic import mul, sub
from .bits import bitwise_and
from .comparison import gt, le, lt, select
from .contract import DotDimensionNumbers, dot_general, free_axes, sum_dtype, unmixed
from .convert import convert_element_type
from .creation import broadcasted_iota, full_like
from .cumulative import cumsum
from .families import add, to_front
from .precision import CanonicalPrecision, Precision, PrecisionLike, canonical_precision
from .reduce import reduce_or
from .shape import (
    broadcast_axis, broadcast_in_dim, move_axis, reduce_sum, reshape, shifted, transpose, zeros_of,
)
from .sharding import as_typed, settled, undecided
from .slicing import concatenate, dynamic_slice, pad, slice_in_dim

Dims = tuple[int, ...]
NAME = "ragged_dot_general"
INT32 = dtypes.as_dtype("int32")


class RaggedDotDimensionNumbers(ByKey):
    """The axes that a ragged contraction contracts, pairs up, and splits into groups.

    Attributes:
      dot_dimension_numbers: ((lhs contracting, rhs contracting), (lhs batch, rhs batch)) axes.
      lhs_ragged_dimensions: the one axis of lhs that groups split.
      rhs_group_dimensions: the axis of rhs with one entry per group, where the ragged axis is
        neither contracting nor batch; else none.

    >>> from olympus import lax
    >>> numbers = lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    >>> numbers.lhs_ragged_dimensions
    (0,)
    """

    __slots__ = ("dot_dimension_numbers", "lhs_ragged_dimensions", "rhs_group_dimensions")
    is_value = True     # see `core.identity`

    def __init__(self, dot_dimension_numbers: DotDimensionNumbers,
                 lhs_ragged_dimensions: Sequence[int], rhs_group_dimensions: Sequence[int]) -> None:
        contracting, batch = [tuple([tuple(map(int, axes)) for axes in pair])
                              for pair in dot_dimension_numbers]
        self.dot_dimension_numbers = contracting, batch
        self.lhs_ragged_dimensions: Dims = tuple(map(int, lhs_ragged_dimensions))
        self.rhs_group_dimensions: Dims = tuple(map(int, rhs_group_dimensions))

    def _key(self) -> tuple[object, ...]:
        return tuple([getattr(self, name) for name in self.__slots__])

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)}" for name in self.__slots__)
        return f"RaggedDotDimensionNumbers({fields})"


BASIC = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))


def _check_operands(lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray,
                    numbers: RaggedDotDimensionNumbers) -> None:
    if not isinstance(numbers, RaggedDotDimensionNumbers):
        raise TypeError(f"{NAME}: ragged_dot_dimension_numbers {numbers!r} given; "
                        "RaggedDotDimensionNumbers are required.")
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    head = f"{NAME}: lhs {lhs}, rhs {rhs}, group_sizes {sizes}, {numbers} given"
    ragged, group = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    if len(ragged) != 1 or not 0 <= ragged[0] < lhs.ndim:
        raise TypeError(f"{head}; exactly one ragged axis of lhs is required.")
    free = ragged[0] not in (*lc, *lb)
    if len(group) != free:
        raise TypeError(f"{head}; {'one group axis' if free else 'no group axis'} of rhs is "
                        f"required where the ragged axis is {'free' if free else 'not free'}.")
    if group and (group[0] in (*rc, *rb) or not 0 <= group[0] < rhs.ndim):
        raise TypeError(f"{head}; a group axis of rhs that is neither contracting nor batch is "
                        "required.")
    if dtypes.scalar_kind(sizes.dtype) not in "iu" or not sizes.ndim:
        raise TypeError(f"{head}; group_sizes of an integer dtype and rank at least 1 are "
                        "required.")


class Roles(NamedTuple):
    """The roles of the axes of a ragged contraction's operands."""

    contracting: tuple[Dims, Dims]
    batch: tuple[Dims, Dims]
    free: tuple[Dims, Dims]     # without the axis of groups
    ragged: int
    group: int | None           # of rhs; None: the ragged axis is contracted

    @property
    def before(self) -> Dims:
        """The axes of lhs of the ragged axis's kind that stand before it."""
        kind = (self.contracting if self.group is None else self.free)[0]
        return kind[:kind.index(self.ragged)]

    @property
    def outer(self) -> Dims:
        """The axes of lhs along which group sizes may differ, in the order of sizes' axes."""
        return (*self.batch[0], *self.before)

    @property
    def group_in_product(self) -> int:
        """Which axis of the dense product of lhs and rhs has the groups."""
        assert self.group is not None
        before = sum(axis < self.group for axis in self.free[1])
        return len(self.batch[0]) + len(self.free[0]) + before


@memoize(1024)
def roles_of(x_ndim: int, y_ndim: int, numbers: RaggedDotDimensionNumbers) -> Roles:
    """The roles of the axes of operands of these ranks."""
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    (ragged,), group = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    return Roles((lc, rc), (lb, rb), (free_axes(x_ndim, lc, lb), free_axes(y_ndim, rc, rb, group)),
                 ragged, group[0] if group else None)


def _ragged_numbers(contracting: tuple[Dims, Dims], batch: tuple[Dims, Dims], ragged: int,
                    group: int | None) -> RaggedDotDimensionNumbers:
    return RaggedDotDimensionNumbers((contracting, batch), (ragged,),
                                     () if group is None else (group,))


def _entries(operands: Sequence[tags.Operand], outs: Sequence[ShapedArray], params: Params
            ) -> list[tags.Entries]:
    """Batch axes, then the free ones; contracted axes and the axis of groups are whole."""
    x, y, sizes = operands
    roles = roles_of(len(x.shape), len(y.shape), params["ragged_dot_dimension_numbers"])
    tags.whole(x, roles.contracting[0])
    tags.whole(y, roles.contracting[1])
    tags.whole(sizes, range(len(sizes.shape)))
    batch = tags.merged([tags.Operand((), tuple([z.entries[i] for i in axes]), z.mesh)
                         for z, axes in zip((x, y), roles.batch, strict=True)])
    free = [z.entries[i] for z, axes in zip((x, y), roles.free, strict=True) for i in axes]
    if roles.group is None:
        return [(None, *batch, *free)]
    tags.whole(y, (roles.group,))
    return [(*batch, *free)]


class RaggedDot(Primitive):
    """Sums of products of lhs and rhs, per group of places along the ragged axis of lhs.

    Operands: lhs, rhs, group sizes. Where the ragged axis is free, rhs has a matrix for each group
    and the result's axes are batch axes, free axes of lhs, free axes of rhs; where it is
    contracted, the groups are the result's first axis. param `skipped`: how many of the first
    groups neither rhs nor the result has; their places give 0.
    """

    kernels, kernels_from = lazy_module("olympus._src.lax.kernels.ragged"), 1024
    spread = staticmethod(_entries)
    settled_by = "ragged_dot(…, out_sharding=…)"
    contracts = True

    def summed_axes(self, params: Params) -> Sequence[int]:
        numbers: RaggedDotDimensionNumbers = params["ragged_dot_dimension_numbers"]
        return numbers.dot_dimension_numbers[0][0]

    def work(self, ins: Shapes, outs: Shapes, params: Params) -> float:
        return 0.1 * prod(outs[0]) * prod([ins[0][i] for i in self.summed_axes(params)])

    def infer(self, lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray, *,
              ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, skipped: int,
              precision: CanonicalPrecision, preferred_element_type: DType | None) -> ShapedArray:
        roles = roles_of(lhs.ndim, rhs.ndim, ragged_dot_dimension_numbers)
        groups = (sizes.shape[-1] - skipped,) if roles.group is None else ()
        shape = (*groups, *[lhs.shape[i] for i in (*roles.batch[0], *roles.free[0])],
                 *[rhs.shape[i] for i in roles.free[1]])
        return make_aval(shape, sum_dtype(NAME, lhs, rhs, preferred_element_type),
                         lhs.weak_type and rhs.weak_type)

    def lower(self, b: Builder, lhs: IrValue, rhs: IrValue, sizes: IrValue, *,
              ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, skipped: int,
              precision: CanonicalPrecision, preferred_element_type: DType | None) -> IrValue:
        (x, y, counts), out = b.avals_in, b.avals_out[0]
        roles = roles_of(x.ndim, y.ndim, ragged_dot_dimension_numbers)
        rule = _product_of_all_groups
        if b.platform == "tpu" and counts.ndim == 1 and not roles.batch[0] and (
                precision is None or type(precision) is tuple) and all(
                dtypes.scalar_kind(a.dtype) in "fiu" and is_static(a.shape) and a.size
                for a in (x, y, counts, out)):
            if (x.ndim, y.ndim, roles.group, skipped) in ((2, 3, 0, 0), (2, 2, None, 0)):
                return _by_chlo(b, (lhs, rhs, sizes), roles, precision)
            rule = _of_matrices
        return b.inline(rule, lhs, rhs, sizes, skipped=skipped, precision=precision,
                        ragged_dot_dimension_numbers=ragged_dot_dimension_numbers,
                        preferred_element_type=preferred_element_type)

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], **params: Hashable
            ) -> tuple[Array, Tangent]:
        (x, y, sizes), (tx, ty, _) = primals, tangents
        out = self.bind(x, y, sizes, **params)
        terms = [self.bind(*pair, sizes, **params) for t, pair in ((tx, (tx, y)), (ty, (x, ty)))
                 if type(t) is not Zero]
        return out, functools.reduce(add, terms) if terms else Zero(
            typeof(out).to_tangent_aval())

    def transpose(self, ct: Array, lhs: Transposed, rhs: Transposed, sizes: Array, *,
                  ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
                  preferred_element_type: DType | None, **params: Hashable) -> list[Cotangent]:
        if type(lhs) is Linear and type(rhs) is Linear:
            raise not_linear(NAME, "both operands")
        x, y = [v.aval if type(v) is Linear else typeof(v) for v in (lhs, rhs)]
        roles = roles_of(x.ndim, y.ndim, ragged_dot_dimension_numbers)
        rule = _cotangent_of_rows if roles.group is None else _cotangent_of_places
        left = type(lhs) is Linear
        wanted = x if left else y
        if preferred_element_type is not None or {x.dtype, y.dtype} != {wanted.dtype}:
            preferred_element_type = wanted.dtype
        if wanted.tagged:   # where the cotangent is cut follows from the operand alone
            ct, sizes = undecided(ct), undecided(sizes)
            lhs, rhs = [v if type(v) is Linear else undecided(v) for v in (lhs, rhs)]
        out = rule(ct, lhs, rhs, sizes, roles, preferred_element_type=preferred_element_type,
                   **params)
        out = as_typed(out, wanted.to_cotangent_aval())
        return [out, None, None] if left else [None, out, None]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, **params: Hashable
             ) -> tuple[Array, int | None]:
        return _map_groups(axis, args, dims, ragged_dot_dimension_numbers, params)


ragged_dot_p = RaggedDot("ragged_dot_general")


def _cotangent_of_places(ct: Array, lhs: Transposed, rhs: Transposed, sizes: Array, roles: Roles,
                         **params: Hashable) -> Array:
    """The cotangent of lhs or rhs where the ragged axis is free."""
    (lc, rc), (lb, rb), (lf, rf) = roles[:3]
    batch, rows = tuple(range(len(lb))), tuple(range(len(lb), len(lb) + len(lf)))
    columns = tuple(range(len(lb) + len(lf), len(lb) + len(lf) + len(rf)))
    if type(lhs) is Linear:     # rows of the cotangent, each by the matrix of its group
        out = ragged_dot_p.bind(ct, rhs, sizes, ragged_dot_dimension_numbers=_ragged_numbers(
            (columns, rf), (batch, rb), rows[lf.index(roles.ragged)], roles.group), **params)
        axes = (*lb, *lf, *[c for _, c in sorted(zip(rc, lc, strict=True))])
    else:                       # a sum of products of rows for each group
        out = ragged_dot_p.bind(lhs, ct, sizes, ragged_dot_dimension_numbers=_ragged_numbers(
            (lf, rows), (lb, batch), roles.ragged, None), **params)
        assert roles.group is not None
        axes = (roles.group, *rb, *[c for _, c in sorted(zip(lc, rc, strict=True))], *rf)
    return _put_back(out, axes)


def _cotangent_of_rows(ct: Array, lhs: Transposed, rhs: Transposed, sizes: Array, roles: Roles,
                       **params: Hashable) -> Array:
    """The cotangent of lhs or rhs where the ragged axis is contracted."""
    wanted, other, known = (0, 1, rhs) if type(lhs) is Linear else (1, 0, lhs)
    assert type(known) is not Linear
    contracting, batch, free = [axes[other] for axes in roles[:3]]
    # Contracted axes as they are paired, so that group sizes find those before the ragged one.
    known = transpose(known, (*batch, *contracting, *free))
    first = len(batch)
    row_axes = tuple(range(first + len(contracting), typeof(known).ndim))
    paired = tuple(range(first))
    # The free axes of `given` in ct, behind the groups, the batch axes, and the free axes of lhs.
    behind = 1 + first + (len(roles.free[0]) if other else 0)
    summed = tuple(range(behind, behind + len(free)))
    ragged = first + roles.contracting[0].index(roles.ragged)
    out = ragged_dot_p.bind(known, ct, sizes, ragged_dot_dimension_numbers=_ragged_numbers(
        (row_axes, summed), (paired, tuple([1 + i for i in paired])), ragged, 0), **params)
    return _put_back(out, (*roles.batch[wanted], *roles.contracting[wanted], *roles.free[wanted]))


def _put_back(x: Array, axes: Dims) -> Array:
    """`x` transposed so that its axis i is axis `axes[i]`."""
    return transpose(x, tuple([axes.index(i) for i in range(len(axes))]))


def _map_groups(axis: Axis, args: Sequence[Array], dims: Sequence[int | None],
                numbers: RaggedDotDimensionNumbers, params: Params) -> tuple[Array, int]:
    """The rule of vmap: a batch axis of both operands, or a free axis of one."""
    (x, y, sizes), (dx, dy, ds) = args, dims
    a, c = typeof(x), typeof(y)
    roles = roles_of(a.ndim - (dx is not None), c.ndim - (dy is not None), numbers)
    batches, groups_first = len(roles.batch[0]), int(roles.group is None)
    if ds is not None:
        sizes, x, dx = move_axis(sizes, ds, 0), to_front(axis, x, dx), 0
        if dy is None and roles.group is None:
            y, dy = to_front(axis, y, dy), 0
    per_place = typeof(sizes).ndim > 1      # sizes have the axes `outer`, or get them
    if dx is not None and dy is not None:
        x, y, dx, dy = move_axis(x, dx, 0), move_axis(y, dy, 0), 0, 0
    elif dx is not None and per_place and ds is None:       # behind the ragged axis
        x, dx = move_axis(x, dx, a.ndim - 1), a.ndim - 1
    if per_place:
        shape = typeof(x).shape
        outer = [shape[i + (dx is not None and i >= dx)] for i in roles.outer]
        missing = len(outer) + 1 - (typeof(sizes).ndim - (ds is not None))
        if missing:
            last = typeof(sizes).ndim - 1
            batch_axes = (0,) if ds is not None else ()
            sizes = broadcast_in_dim(sizes, (*[axis.size for _ in batch_axes], *outer,
                                             typeof(sizes).shape[last]),
                                     (*batch_axes, len(batch_axes) + len(outer)))
        if ds is None and dx is not None and dy is not None:
            sizes = to_front(axis, sizes, None)
        elif ds is not None and dy is None:                 # a free axis, behind the batch axes
            sizes = move_axis(sizes, 0, batches)
    more = ((0,), (0,)) if dx is not None and dy is not None else ((), ())

    def put(axes: Dims, dim: int | None) -> Dims:
        return axes if dim is None else shifted(axes, dim)

    (lc, rc), (lb, rb) = roles.contracting, roles.batch
    group = put(() if roles.group is None else (roles.group,), dy)
    out = ragged_dot_p.bind(x, y, sizes, ragged_dot_dimension_numbers=_ragged_numbers(
        (put(lc, dx), put(rc, dy)), ((*more[0], *put(lb, dx)), (*more[1], *put(rb, dy))),
        put((roles.ragged,), dx)[0], group[0] if group else None), **params)
    if dx is not None and dy is not None:
        return out, groups_first
    if dx is not None:
        free = put(roles.free[0], dx)
        return out, groups_first + batches + sum(i < dx for i in free)
    assert dy is not None
    free = put(roles.free[1], dy)
    return out, groups_first + batches + len(roles.free[0]) + sum(i < dy for i in free)


# Lowering ----------------------------------------------------------------------------------------

def group_bounds(sizes: ArrayLike, skipped: int) -> tuple[Array, Array]:
    """The first place of each group, and the one behind its last."""
    last, sizes = typeof(sizes).ndim - 1, convert_element_type(sizes, INT32)
    ends = cumsum(sizes, last)
    first, behind = [slice_in_dim(v, skipped, None, 1, last) for v in (sub(ends, sizes), ends)]
    return first, behind


def _in_group(bounds: tuple[Array, Array], shape: Dims, ragged: int, outer: Dims, groups: int
              ) -> Array:
    """bool[shape]: whether the place along axis `ragged` is in the group of axis `groups`."""
    axes = (*outer, groups) if typeof(bounds[0]).ndim > 1 else (groups,)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    starts, ends = [broadcast_in_dim(transpose(v, order), shape, tuple(sorted(axes)))
                    for v in bounds]
    row = broadcasted_iota(typeof(starts).dtype, shape, ragged)
    return bitwise_and(le(starts, row), lt(row, ends))


def only(mask: Array, x: Array) -> Array:
    """`x` where the mask is true, else 0."""
    return select(mask, x, zeros_of(typeof(x)))


def _product_of_all_groups(lhs: Array, rhs: Array, sizes: Array, *,
                           ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, skipped: int,
                           precision: CanonicalPrecision,
                           preferred_element_type: DType | None) -> Array:
    """Every place multiplied for every group; the group's places are taken then."""
    shape, other = typeof(lhs).shape, typeof(rhs).shape
    roles = roles_of(len(shape), len(other), ragged_dot_dimension_numbers)
    bounds = group_bounds(sizes, skipped)
    (lc, rc), (lb, rb) = roles.contracting, roles.batch
    if roles.group is not None:
        out = dot_general(lhs, rhs, (roles.contracting, roles.batch), precision,
                          preferred_element_type)
        outer, at = tuple(range(len(roles.outer))), roles.group_in_product
        out = only(_in_group(bounds, typeof(out).shape, len(outer), outer, at), out)
        return (reduce_or if typeof(out).dtype == bool else reduce_sum)(out, (at,))
    # Both operands are masked, since 0 times NaN is NaN.
    count, i = typeof(bounds[0]).shape[-1], lc.index(roles.ragged)
    lhs, rhs = [only(_in_group(bounds, (count, *typeof(x).shape), axes[i] + 1,
                                shifted((*batch, *axes[:i])), 0),
                      broadcast_axis(x, count, 0))
                for x, axes, batch in ((lhs, lc, lb), (rhs, rc, rb))]
    batch = ((0, *shifted(lb)), (0, *shifted(rb)))
    return dot_general(lhs, rhs, ((shifted(lc), shifted(rc)), batch), precision,
                       preferred_element_type)


def _of_matrices(lhs: Array, rhs: Array, sizes: Array, *,
                 ragged_dot_dimension_numbers: RaggedDotDimensionNumbers, skipped: int,
                 **options: Hashable) -> Array:
    """The contraction of two matrices, or of a matrix and a stack; there are no batch axes.

    Places along the other axes of the ragged axis's kind are rows, too. Groups that are skipped
    have matrices of zeros.
    """
    x, y = typeof(lhs), typeof(rhs)
    roles = roles_of(x.ndim, y.ndim, ragged_dot_dimension_numbers)
    (lc, rc), (lf, rf), ragged = roles.contracting, roles.free, roles.ragged
    own, columns = (lc, lf) if roles.group is None else (lf, lc)
    rows = (ragged, *[i for i in own if i != ragged])
    each = prod([x.shape[i] for i in rows[1:]])
    lhs = reshape(transpose(lhs, (*rows, *columns)), (x.shape[ragged] * each,
                                                      prod([x.shape[i] for i in columns])))
    sizes = mul(sizes, full_like(sizes, each))
    n = prod([y.shape[i] for i in rf])
    if roles.group is None:
        paired = [rc[lc.index(i)] for i in rows]
        rhs = reshape(transpose(rhs, (*paired, *rf)), (typeof(lhs).shape[0], n))
        out = ragged_dot_p.bind(lhs, rhs, sizes, ragged_dot_dimension_numbers=_ragged_numbers(
            ((0,), (0,)), ((), ()), 0, None), skipped=0, **options)
        return reshape(slice_in_dim(out, skipped, None), (
            typeof(out).shape[0] - skipped, *[x.shape[i] for i in lf], *[y.shape[i] for i in rf]))
    count = y.shape[roles.group]
    rhs = reshape(transpose(rhs, (roles.group, *rc, *rf)), (count, typeof(lhs).shape[1], n))
    rhs = pad(rhs, literal(0, y.dtype), [(skipped, 0, 0), (0, 0, 0), (0, 0, 0)])
    out = ragged_dot_p.bind(lhs, rhs, sizes, ragged_dot_dimension_numbers=BASIC, skipped=0,
                            **options)
    out = reshape(out, (*[x.shape[i] for i in rows], *[y.shape[i] for i in rf]))
    return move_axis(out, 0, lf.index(ragged))


def _by_chlo(b: Builder, xs: Sequence[IrValue], roles: Roles,
             precision: tuple[Precision, Precision] | None) -> IrValue:
    """XLA's operation, for which libtpu has a kernel.

    What no group's places write, the kernel leaves as it was: zeros are put there.
    """
    counts, wanted = b.avals_in[2].update(dtype=INT32), b.avals_out[0]
    sizes = b.convert(xs[2], counts)
    lhs, rhs, out = unmixed(b, *xs[:2])
    names = ", ".join([f"#chlo<precision {p.name}>" for p in precision or (Precision.DEFAULT,) * 2])
    axes = {"lhs_contracting": roles.contracting[0], "rhs_contracting": roles.contracting[1],
            "lhs_ragged": (roles.ragged,), "rhs_group": () if roles.group is None else (0,)}
    numbers = ", ".join(f"{name}_dimensions = {[*dims]}" for name, dims in axes.items() if dims)
    product = b.op("chlo.ragged_dot", [lhs, rhs, sizes], {
        "ragged_dot_dimension_numbers": b.attr(f"#chlo.ragged_dot<{numbers}>"),
        "precision_config": b.attr(f"[{names}]")}, out)
    rule = _groups_with_places if roles.group is None else _places_of_groups
    (product,) = b.traced(rule, [product, sizes], [out, counts])
    return product if out.dtype == wanted.dtype else b.convert(product, wanted)


def _places_of_groups(out: Array, sizes: Array) -> list[Array]:
    shape = typeof(out).shape
    total = broadcast_in_dim(reduce_sum(sizes, (0,)), shape, ())
    return [only(lt(broadcasted_iota(INT32, shape, 0), total), out)]


def _groups_with_places(out: Array, sizes: Array) -> list[Array]:
    some = gt(sizes, full_like(sizes, 0))
    return [only(broadcast_in_dim(some, typeof(out).shape, (0,)), out)]


# For users ---------------------------------------------------------------------------------------

def ragged_dot_general(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike,
                       ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
                       precision: PrecisionLike = None,
                       preferred_element_type: DTypeLike | None = None,
                       group_offset: ArrayLike | None = None, out_sharding: ShardingLike = None
                      ) -> Array:
    """`dot_general` in groups: consecutive places of one axis of lhs belong together.

    By the role of the ragged axis:
      free: each row of lhs is multiplied with its group's entry of rhs; rows of no group give 0.
        [b..., m, k], [b..., g, k, n], [g] -> [b..., m, n]
      contracting: each group is summed on its own; the groups are the result's first axis.
        [b..., m, k], [b..., k, n], [g] -> [g, b..., m, n]
      batch: as `dot_general`; [b, m, k], [b, k, n], [g] -> [b, m, n]

    Args:
      lhs, rhs: arrays.
      group_sizes: integers, shape [g], or [axes of lhs before the ragged one..., g].
      ragged_dot_dimension_numbers: which axis is which.
      precision, preferred_element_type, out_sharding: as for `dot_general`.
      group_offset: integer, of shape () or (1,): rhs has only the groups from there on, as many
        as its group axis has entries; rows of other groups give 0. Only where the axis is free.
    Returns: An array of the shape above, of the operands' dtype or of `preferred_element_type`.

    Raises TypeError where axes, shapes or dtypes do not fit.

    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> rows, sizes = onp.ones((3, 2)), onp.array([2, 1])          # sums of products, per group
    >>> print(lax.ragged_dot_general(rows, onp.ones((3, 1)), sizes, numbers)[..., 0])
    [[2. 2.]
     [1. 1.]]
    """
    x, y, sizes = map(typeof, (lhs, rhs, group_sizes))
    numbers = ragged_dot_dimension_numbers
    _check_operands(x, y, sizes, numbers)
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    (ragged,), group = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    if group_offset is not None and not group:
        raise ValueError(f"{NAME}: group_offset given, ragged axis {ragged} of {x}, which is "
                         "contracting or batch; a free one is required; slice group_sizes.")
    if ragged in lb:
        return dot_general(lhs, rhs, ((lc, rc), (lb, rb)), precision, preferred_element_type,
                           out_sharding=out_sharding)
    wanted = tuple([x.shape[d] for d in roles_of(x.ndim, y.ndim, numbers).outer])
    if sizes.shape[:-1] not in ((), wanted):
        raise TypeError(f"{NAME}: group_sizes {sizes} given for lhs {x}; a shape of "
                        f"({sizes.shape[-1]},) or {(*wanted, sizes.shape[-1])} is required.")
    count = y.shape[group[0]] if group else sizes.shape[-1]
    if group and not definitely_equal(count, sizes.shape[-1]) and (
            group_offset is None or less(sizes.shape[-1], count)):
        raise TypeError(f"{NAME}: rhs {y} with {count} groups on axis {group[0]}, group_sizes "
                        f"{sizes} given; as many groups are required, or a group_offset.")
    if preferred_element_type is not None:
        preferred_element_type = dtypes.requested_dtype(NAME, preferred_element_type)
    if group_offset is not None:
        group_sizes = _from_offset(group_sizes, reshape(group_offset, ()), count)
    product = functools.partial(
        ragged_dot_p.bind, ragged_dot_dimension_numbers=numbers, skipped=int(
            group_offset is not None), precision=canonical_precision(precision),
        preferred_element_type=preferred_element_type)
    return settled(NAME, product, out_sharding, lhs, rhs, group_sizes)


def _from_offset(sizes: ArrayLike, offset: Array, count: DimSize) -> Array:
    """The total size of the groups before the offset, then the sizes of `count` groups."""
    aval = typeof(sizes)
    last = aval.ndim - 1
    starts, _ = group_bounds(sizes, 0)
    at = (*[literal(0, typeof(offset).dtype)] * last, offset)
    own, first = [dynamic_slice(v, at, (*aval.shape[:-1], n))
                  for v, n in ((sizes, count), (starts, 1))]
    return concatenate([first, own], last)


def ragged_dot(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike,
               precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
               group_offset: ArrayLike | None = None, out_sharding: ShardingLike = None) -> Array:
    """Rows of a matrix, each multiplied with the matrix of its group.

    Shapes: lhs [m, k], rhs [g, k, n], group_sizes [g] -> [m, n]: the first group_sizes[0] rows are
    multiplied with rhs[0], and so on; rows after the last group give 0. Options and errors as for
    `ragged_dot_general`.

    Args:
      lhs: [m, k] numbers, rows of one group next to each other.
      rhs: [g, k, n] numbers, a matrix per group.
      group_sizes: [g] integers, whose sum is at most m.
      precision, preferred_element_type, group_offset, out_sharding: as for `ragged_dot_general`.
    Returns: [m, n] of the operands' dtype, or of `preferred_element_type`.

    >>> matrices = onp.stack([onp.eye(2), 10 * onp.eye(2)])
    >>> print(lax.ragged_dot(onp.ones((3, 2)), matrices, onp.array([2, 1])))
    [[ 1.  1.]
     [ 1.  1.]
     [10. 10.]]
    """
    return ragged_dot_general(lhs, rhs, group_sizes, BASIC, precision, preferred_element_type,
                              group_offset, out_sharding)
