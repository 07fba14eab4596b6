"""Contractions with ragged groups: rows of one operand belong to consecutive groups.

Group g has `group_sizes[g]` consecutive places along the ragged axis of lhs. Each mode is one dense
`dot_general` of lhs repeated per group, with zeros outside of the group: as XLA does itself where
it has no kernel for it. Derivatives and vmap follow from its parts.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..base.typing import Array, ArrayLike, DTypeLike
from ..base.util import ByKey
from ..core.trace import literal, typeof
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.shape import definitely_equal, less
from ..types.sharding import ShardingLike
from .arithmetic import sub
from .bits import bitwise_and
from .comparison import le, lt, select_n
from .contract import DotDimensionNumbers, dot_general
from .creation import broadcasted_iota
from .cumulative import cumsum
from .precision import PrecisionLike
from .shape import broadcast_in_dim, move_axis, reshape, shifted, transpose
from .sharding import constrain
from .slicing import dynamic_slice

Dims = tuple[int, ...]
NAME = "ragged_dot_general"


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


def _check(lhs: ShapedArray, rhs: ShapedArray, sizes: ShapedArray,
           numbers: RaggedDotDimensionNumbers) -> None:
    if not isinstance(numbers, RaggedDotDimensionNumbers):
        raise TypeError(f"{NAME}: ragged_dot_dimension_numbers {numbers!r} given; "
                        "RaggedDotDimensionNumbers are required.")
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    given = f"{NAME}: lhs {lhs}, rhs {rhs}, group_sizes {sizes}, {numbers} given"
    ragged, group = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    if len(ragged) != 1 or not 0 <= ragged[0] < lhs.ndim:
        raise TypeError(f"{given}; exactly one ragged axis of lhs is required.")
    free = ragged[0] not in (*lc, *lb)
    if len(group) != free:
        raise TypeError(f"{given}; {'one group axis' if free else 'no group axis'} of rhs is "
                        f"required where the ragged axis is {'free' if free else 'not free'}.")
    if group and (group[0] in (*rc, *rb) or not 0 <= group[0] < rhs.ndim):
        raise TypeError(f"{given}; a group axis of rhs that is neither contracting nor batch is "
                        "required.")
    if dtypes.scalar_kind(sizes.dtype) not in "iu" or not sizes.ndim:
        raise TypeError(f"{given}; group_sizes of an integer dtype and rank at least 1 are "
                        "required.")


def _outer_axes(ndim: int, ragged: int, contracting: Dims, batch: Dims) -> Dims:
    """The axes of lhs that group sizes may differ along: those that come before the ragged one."""
    free = tuple([d for d in range(ndim) if d not in (*contracting, *batch)])
    if ragged in batch:
        return batch[:batch.index(ragged)]
    if ragged in contracting:
        return (*batch, *contracting[:contracting.index(ragged)])
    return (*batch, *free[:free.index(ragged)])


def _group_mask(lhs: ShapedArray, sizes: ArrayLike, ragged: int, outer: Dims, offset: Array | None,
                count: int) -> Array:
    """bool[group, *lhs.shape]: whether a place along the ragged axis is in the group."""
    aval = typeof(sizes)
    total = aval.shape[-1]
    wanted = tuple([lhs.shape[d] for d in outer])
    if aval.shape[:-1] not in ((), wanted):
        raise TypeError(f"{NAME}: group_sizes {aval} given for lhs {lhs}; a shape of ({total},) or "
                        f"{(*wanted, total)} is required.")
    kept = outer if aval.ndim > 1 else ()
    ends = cumsum(sizes, aval.ndim - 1)
    starts = sub(ends, sizes)
    if offset is not None:
        zero = literal(0, typeof(offset).dtype)
        start, size = (*[zero] * len(kept), offset), (*aval.shape[:-1], count)
        starts, ends = dynamic_slice(starts, start, size), dynamic_slice(ends, start, size)
    shape = (count, *lhs.shape)
    order = sorted(range(len(kept)), key=kept.__getitem__)
    starts, ends = [broadcast_in_dim(transpose(v, (len(kept), *order)), shape,
                                     (0, *[kept[k] + 1 for k in order])) for v in (starts, ends)]
    places = broadcasted_iota(aval.dtype, shape, ragged + 1)
    return bitwise_and(le(starts, places), lt(places, ends))


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
      precision, preferred_element_type, out_sharding: as of `dot_general`.
      group_offset: integer, of shape () or (1,): rhs has only the groups from there on, as many
        as its group axis has entries; rows of other groups give 0. Only where the axis is free.

    Returns:
      An array of the shape above, of the operands' dtype or of `preferred_element_type`.

    Raises TypeError where axes, shapes or dtypes do not fit.

    >>> numbers = lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> rows, sizes = onp.ones((3, 2)), onp.array([2, 1])          # sums of products, per group
    >>> print(lax.ragged_dot_general(rows, onp.ones((3, 1)), sizes, numbers)[..., 0])
    [[2. 2.]
     [1. 1.]]
    """
    x, y, sizes = map(typeof, (lhs, rhs, group_sizes))
    numbers = ragged_dot_dimension_numbers
    _check(x, y, sizes, numbers)
    (lc, rc), (lb, rb) = numbers.dot_dimension_numbers
    (ragged,), group = numbers.lhs_ragged_dimensions, numbers.rhs_group_dimensions
    options = {"precision": precision, "preferred_element_type": preferred_element_type}
    if group_offset is not None and not group:
        raise ValueError(f"{NAME}: group_offset given, ragged axis {ragged} of {x}, which is "
                         "contracting or batch; a free one is required; slice group_sizes.")
    if ragged in lb:
        return dot_general(lhs, rhs, ((lc, rc), (lb, rb)), **options, out_sharding=out_sharding)
    count = y.shape[group[0]] if group else sizes.shape[-1]
    matched = definitely_equal(count, sizes.shape[-1])
    if group and not matched and (group_offset is None or less(sizes.shape[-1], count)):
        raise TypeError(f"{NAME}: rhs {y} with {count} groups on axis {group[0]}, group_sizes "
                        f"{sizes} given; as many groups are required, or a group_offset.")
    offset = None if group_offset is None else reshape(group_offset, ())
    mask = _group_mask(x, group_sizes, ragged, _outer_axes(x.ndim, ragged, lc, lb), offset, count)
    repeated = broadcast_in_dim(lhs, (count, *x.shape), tuple(range(1, x.ndim + 1)))
    zeros = broadcast_in_dim(literal(0, x.dtype), (count, *x.shape), ())
    masked = select_n(mask, zeros, repeated)
    lc, lb = shifted(lc), shifted(lb)
    if group:
        return dot_general(masked, rhs, (((0, *lc), (*group, *rc)), (lb, rb)), **options,
                           out_sharding=out_sharding)
    out = move_axis(dot_general(masked, rhs, ((lc, rc), (lb, rb)), **options), len(lb), 0)
    return constrain(NAME, out, out_sharding)


def ragged_dot(lhs: ArrayLike, rhs: ArrayLike, group_sizes: ArrayLike,
               precision: PrecisionLike = None, preferred_element_type: DTypeLike | None = None,
               group_offset: ArrayLike | None = None, out_sharding: ShardingLike = None) -> Array:
    """Rows of a matrix, each multiplied with the matrix of its group.

    Shapes: lhs [m, k], rhs [g, k, n], group_sizes [g] -> [m, n]: the first group_sizes[0] rows are
    multiplied with rhs[0], and so on; rows after the last group give 0. Options and errors as of
    `ragged_dot_general`.

    Args:
      lhs: [m, k] numbers, rows of one group next to each other.
      rhs: [g, k, n] numbers, a matrix per group.
      group_sizes: [g] integers, whose sum is at most m.
      precision, preferred_element_type, group_offset, out_sharding: as of `ragged_dot_general`.

    Returns:
      [m, n] of the operands' dtype, or of `preferred_element_type`.

    >>> matrices = onp.stack([onp.eye(2), 10 * onp.eye(2)])
    >>> print(lax.ragged_dot(onp.ones((3, 2)), matrices, onp.array([2, 1])))
    [[ 1.  1.]
     [ 1.  1.]
     [10. 10.]]
    """
    return ragged_dot_general(lhs, rhs, group_sizes, BASIC, precision, preferred_element_type,
                              group_offset, out_sharding)
