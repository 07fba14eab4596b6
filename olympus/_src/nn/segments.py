"""Reductions of the rows of an array that carry the same number: one scatter each."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.docstrings import described_like
from ..base.typing import Array, ArrayLike
from ..jit.fused import fused
from ..lax.creation import iota
from ..lax.indexing import GatherScatterMode
from ..lax.reduce import highest, lowest
from ..lax.sharding import constrain
from ..numpy import reductions
from ..numpy.creation import full
from ..numpy.indexing import concrete, write
from ..numpy.promote import array_args
from ..types import dtypes
from ..types.shape import canonical_dim, floor_div
from ..types.sharding import ShardingLike

# The update, its identity for a dtype, and the reduction that combines buckets.
_JOINS = {"add": (lambda dtype: 0, reductions.sum), "multiply": (lambda dtype: 1, reductions.prod),
          "max": (lowest, reductions.max), "min": (highest, reductions.min)}


@fused(static=("op", "size", "bucket", "options"), inline=True)
def _reduced(data: Array, ids: Array, *, op: str, size: int, bucket: Any,
             options: tuple[bool, bool, GatherScatterMode]) -> Array:
    identity, join = _JOINS[op]
    is_sorted, unique, mode = options
    shape, index = (size, *data.shape[1:]), ids
    if bucket is not None:
        rows = ids.shape[0]
        shape = (floor_div(rows + bucket - 1, bucket), *shape)
        index = (floor_div(iota(dtypes.default_int(), rows), bucket), ids)
    out = write(op, full(shape, identity(data.dtype), data.dtype), index, data, mode=mode,
                indices_are_sorted=is_sorted, unique_indices=unique, wrap_negative_indices=False)
    return out if bucket is None else join(out, 0).astype(data.dtype)


def _segments(name: str, op: str, data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None,
              is_sorted: bool, unique: bool, bucket_size: object,
              mode: GatherScatterMode | str | None, out_sharding: ShardingLike) -> Array:
    """Checks and static sizes, then one program."""
    data, ids = array_args(name, data, segment_ids)
    if dtypes.scalar_kind(ids.dtype) not in "iu":
        raise TypeError(f"{name}: segment_ids {ids.aval} given; an integer dtype is required; "
                        "convert them with astype.")
    if dtypes.scalar_kind(data.dtype) == "b" and op in ("add", "multiply"):
        raise TypeError(f"{name}: data {data.aval} given; numbers are required; convert them with "
                        "astype.")
    wanted = (*ids.shape, *data.shape[1:])
    if len(data.shape) > len(wanted) or any(
            n not in (1, m) for n, m in zip(data.shape[::-1], wanted[::-1])):
        raise ValueError(f"{name}: data {data.aval} and segment_ids {ids.aval} given; data of "
                         f"shape {wanted} is required, a row for each number; reshape one of them.")
    if num_segments is None:
        known = concrete(name, ids, "segment_ids", "pass num_segments=...")
        num_segments = max(int(np.max(known, initial=-1)) + 1, 0)
    if bucket_size is not None:
        bucket_size = canonical_dim(bucket_size, f"{name}: bucket_size")
        if bucket_size == 0 or len(ids.shape) != 1:
            raise ValueError(f"{name}: bucket_size {bucket_size} and segment_ids {ids.aval} given; "
                             "a positive size, and numbers along one axis, are required.")
    out = _reduced(data, ids, op=op, size=canonical_dim(num_segments, f"{name}: num_segments"),
                   bucket=bucket_size,
                   options=(is_sorted, unique, GatherScatterMode.from_any(mode)))
    return constrain(name, out, out_sharding)


def segment_sum(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: GatherScatterMode | str | None = None,
                out_sharding: ShardingLike = None) -> Array:
    """Sums of the rows of an array that belong to the same segment.

    Args:
      data: numbers, shape (n, …).
      segment_ids: integers, shape (n,): the segment of each row, in any order.
      num_segments: the number of segments, static. None is the largest of `segment_ids` and one,
        which must be known then: not under jit.
      indices_are_sorted, unique_indices: promises about `segment_ids` that can make it faster.
      bucket_size: sum so many rows at a time, then the sums: more exact of many rows.
      mode: what becomes of rows whose segment is not one of 0 … num_segments-1: "drop" (None),
        or "clip": the nearest segment.
      out_sharding: how the result is cut over devices; see `lax.with_sharding_constraint`.

    Returns:
      An array of shape (num_segments, …) and the dtype of `data`; 0 for segments without rows.

    TypeError for `segment_ids` that are not integers, ValueError for shapes that do not fit.

    >>> print(ops.segment_sum(onp.array([1., 2., 4., 8.]), onp.array([0, 2, 0, 2])))
    [ 5.  0. 10.]
    """
    return _segments("segment_sum", "add", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, out_sharding)


@described_like(segment_sum)
def segment_prod(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                 indices_are_sorted: bool = False, unique_indices: bool = False,
                 bucket_size: int | None = None, mode: GatherScatterMode | str | None = None,
                 out_sharding: ShardingLike = None) -> Array:
    """Products of the rows of an array that belong to the same segment.

    Returns:
      An array of shape (num_segments, …) and the dtype of `data`; 1 for segments without rows.

    >>> print(ops.segment_prod(onp.array([1., 2., 4., 8.]), onp.array([0, 2, 0, 2])))
    [ 4.  1. 16.]
    """
    return _segments("segment_prod", "multiply", data, segment_ids, num_segments,
                     indices_are_sorted, unique_indices, bucket_size, mode, out_sharding)


@described_like(segment_sum)
def segment_max(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: GatherScatterMode | str | None = None,
                out_sharding: ShardingLike = None) -> Array:
    """The largest element, column by column, of the rows that belong to the same segment.

    Args: data: array, shape (n, …).
    Returns: An array of shape (num_segments, …) and the dtype of `data`; for segments without rows,
      -inf or the least value that the dtype has.

    >>> print(ops.segment_max(onp.array([1., 2., 4., 8.]), onp.array([0, 2, 0, 2])))
    [  4. -inf   8.]
    """
    return _segments("segment_max", "max", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, out_sharding)


@described_like(segment_max)
def segment_min(data: ArrayLike, segment_ids: ArrayLike, num_segments: int | None = None,
                indices_are_sorted: bool = False, unique_indices: bool = False,
                bucket_size: int | None = None, mode: GatherScatterMode | str | None = None,
                out_sharding: ShardingLike = None) -> Array:
    """The least element, column by column, of the rows that belong to the same segment.

    Returns: An array of shape (num_segments, …) and the dtype of `data`; for segments without rows,
      inf or the largest value that the dtype has.

    >>> print(ops.segment_min(onp.array([1., 2., 4., 8.]), onp.array([0, 2, 0, 2])))
    [ 1. inf  2.]
    """
    return _segments("segment_min", "min", data, segment_ids, num_segments, indices_are_sorted,
                     unique_indices, bucket_size, mode, out_sharding)
