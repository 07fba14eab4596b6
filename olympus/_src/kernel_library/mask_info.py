"""The tables of a mask for a kernel of splash attention: blocks to visit, and partial blocks.

A mask is cut into blocks. A block is empty (0), partial (1) or full (2). A kernel runs through the
blocks in row-major order and skips empty ones, so each entry says which block comes next: of the
keys (`data_next`) and of the partial masks (`mask_next`), which are kept once each.

Method: the paper's splash (sparse flash) attention, as in JAX's module of the same name.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from ..base.typing import Array, PyTree
from ..base.util import memoize
from ..numpy.grids import arange
from ..numpy.manipulation import broadcast_to, swapaxes
from ..numpy.selection import where
from ..types.shape import floor_div
from .masks import BoolArray, Mask, MultiHeadMask, Rule

Ints = npt.NDArray[np.integer[Any]]


class MaskInfo(NamedTuple):
    """The tables of a mask that a kernel reads, for each head (or group of heads with one mask).

    Attributes:
      data_next: int[heads, q_blocks, kv_blocks], the block of keys (for the cotangents of keys: of
        queries) that is needed next.
      mask_next: the partial block that is needed next, in `partial_mask_blocks`.
      block_mask: 0 for an empty block, 1 for a partial one, 2 for a full one.
      partial_mask_blocks: bool[number, block_q, block_kv], each different partial block once.
      q_sequence: int32[queries], the place of each query, where a rule computes the mask.
      is_dynamic_mask: True if the mask was a traced array.

    >>> from olympus.experimental.pallas.ops.tpu.splash_attention import (
    ...     splash_attention_mask as masks, splash_attention_mask_info as info)
    >>> mask = masks.MultiHeadMask([masks.CausalMask((4, 4))])
    >>> print(info.process_mask(mask, (2, 2))[0].block_mask)
    [[[1 0]
      [2 1]]]
    """

    data_next: Any
    mask_next: Any
    block_mask: Any
    partial_mask_blocks: Any
    q_sequence: Any
    is_dynamic_mask: bool | None = None


def _smallest(x: PyTree, most: int) -> PyTree:
    """The smallest signed integers up to 32 bits that hold numbers up to `most`."""
    for dtype in (np.int8, np.int16):
        if most <= np.iinfo(dtype).max:
            return x.astype(dtype)
    return x.astype(np.int32)


class _Blocks(NamedTuple):
    """How many blocks, and how many of each shard."""

    heads: int
    rows: int
    columns: int
    shard_heads: int
    shard_rows: int


def _divided(sizes: dict[str, int], what: str, size: int) -> int:
    (name, by), = sizes.items()
    if by < 1 or size % by:
        raise ValueError(f"process_mask: {name}={by} should divide {what}={size}.")
    return floor_div(size, by)


def _blocks(mask: Mask | Array, block_shape: tuple[int, int], head_shards: int, q_seq_shards: int
            ) -> _Blocks:
    if len(mask.shape) != 3:
        raise ValueError(f"process_mask: Expected a 3-dim mask, instead got: {mask.shape}; "
                         "[heads, queries, keys] is required.")
    heads, queries, keys = mask.shape
    block_q, block_kv = block_shape
    rows = _divided({"q_block_size": block_q}, "q_seq_len", queries)
    columns = _divided({"kv_block_size": block_kv}, "kv_seq_len", keys)
    per_shard = _divided({"q_seq_shards": q_seq_shards}, "q_seq_len", queries)
    shard_rows = _divided({"q_block_size": block_q}, "q_seq_len_per_shard", per_shard)
    return _Blocks(heads, rows, columns,
                   _divided({"head_shards": head_shards}, "head_count", heads), shard_rows)


# Static masks ------------------------------------------------------------------------------------

def _classified(masks: list[Mask], blocks: _Blocks, block_shape: tuple[int, int]
                ) -> tuple[Ints, Ints, list[BoolArray]]:
    """(block_mask, number of the partial block) int[masks, rows, columns], the partial blocks."""
    kinds = np.zeros((len(masks), blocks.rows, blocks.columns), np.int32)
    numbers = np.zeros_like(kinds)
    numbers_of: dict[tuple[tuple[int, ...], bytes], int] = {}
    partial: list[BoolArray] = []
    high, wide = block_shape
    for at in np.ndindex(kinds.shape):
        m, row, column = at
        block = masks[m][row * high:(row + 1) * high, column * wide:(column + 1) * wide]
        if not block.any():
            continue
        kinds[at] = 2 if block.all() else 1
        if kinds[at] == 1:
            numbers[at] = numbers_of.setdefault((block.shape, block.tobytes()), len(partial))
            if numbers[at] == len(partial):
                partial.append(block)
    return kinds, numbers, partial


def _next(values: Ints, present: BoolArray) -> Ints:
    """For each place in row-major order the value at the next one that is present, cyclically."""
    there, = np.nonzero(present.ravel())
    if not len(there):
        return np.zeros(values.shape, np.int32)
    after = np.searchsorted(there, np.arange(values.size)) % len(there)
    return values.ravel()[there[after]].reshape(values.shape)


def _compact(kinds: Ints, parts: list[Ints], is_dkv: bool) -> list[Ints]:
    """The blocks that are not empty side by side: at the front of rows, or at the end of columns.

    kinds, parts: [heads, rows, columns], where all heads have one mask.
    """
    axis = 0 if is_dkv else 1
    full = kinds[0] != 0
    count = full.sum(axis)
    width = max(int(count.max(initial=0)), 1)       # a grid has at least one step
    order = np.argsort(~full, axis=axis, kind="stable")     # present entries first, in order
    place = np.arange(width)
    if is_dkv:
        taken = np.clip(place[:, None] - (width - count), 0, None)
        valid = place[:, None] >= width - count
    else:
        taken, valid = np.broadcast_to(place, (len(count), width)), place < count[:, None]
    index = np.take_along_axis(order, taken, axis)
    return [np.where(valid, np.take_along_axis(x, index[None], axis + 1), 0) for x in parts]


@memoize(maxsize=16)
def _process_mask(mask: MultiHeadMask, block_shape: tuple[int, int], is_dkv: bool, *,
                  downcast_smem_data: bool = True, head_shards: int = 1, q_seq_shards: int = 1,
                  shrink_grid: bool = True
                  ) -> tuple[MaskInfo, Rule | None]:
    """Return a kernel's tables of a mask, and the rule that computes the mask, or None.

    Args:
      mask: [heads, queries, keys].
      block_shape: (block_q, block_kv), which divide queries and keys.
      downcast_smem_data: whether indices have the smallest integer dtype that holds them.
      head_shards, q_seq_shards: over how many devices heads and queries are spread.
      shrink_grid: whether the grid is only as wide as the row with most blocks, if all heads have
        one mask.

    Returns:
      (MaskInfo, rule). With a rule the kernel reads no partial blocks, and `mask_next` is None.

    Raises:
      ValueError: sizes that do not divide.

    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> from olympus.experimental.pallas.ops.tpu.splash_attention import (
    ...     splash_attention_mask_info as mask_info)
    >>> mask = splash.MultiHeadMask([splash.CausalMask((8, 8))])
    >>> info, rule = mask_info.process_mask(mask, (4, 4))
    >>> print(info.block_mask)
    [[[1 0]
      [2 1]]]
    """
    blocks = _blocks(mask, block_shape, head_shards, q_seq_shards)
    masks = list(dict.fromkeys(mask.masks))
    of_head = np.array([masks.index(m) for m in mask.masks])
    by_shard = of_head.reshape(head_shards, blocks.shard_heads)
    if (by_shard == by_shard[:, :1]).all():
        of_head = by_shard[:, 0]        # one mask in each shard of heads, which all of them share
    heads = floor_div(len(of_head), head_shards)
    kinds, numbers, partial = _classified(masks, blocks, block_shape)
    kinds, numbers = kinds[of_head], numbers[of_head]

    columns = np.broadcast_to(
        (np.arange(blocks.rows) % blocks.shard_rows)[:, None] if is_dkv
        else np.arange(blocks.columns), kinds.shape)
    data_next, mask_next = np.zeros(kinds.shape, np.int32), np.zeros(kinds.shape, np.int32)
    back = (1, 2, 0) if is_dkv else (0, 1, 2)       # the order in which a kernel visits: keys first
    order = (2, 0, 1) if is_dkv else back
    for h in range(0, len(of_head), heads):
        for r in range(0, blocks.rows, blocks.shard_rows):
            part = np.s_[h:h + heads, r:r + blocks.shard_rows]
            kind = kinds[part].transpose(order)
            for out, values, present in ((data_next, columns, kind != 0),
                                         (mask_next, numbers, kind == 1)):
                out[part] = _next(values[part].transpose(order), present).transpose(back)

    parts: list[Ints] = [kinds, data_next, mask_next]
    if shrink_grid and len(masks) == 1:
        axis = 1 if is_dkv else 2
        shards = [_compact(kinds[:, r:r + blocks.shard_rows],
                           [x[:, r:r + blocks.shard_rows] for x in parts], is_dkv)
                  for r in range(0, blocks.rows, blocks.shard_rows)]
        width = max(shard[0].shape[axis] for shard in shards)
        parts = [np.concatenate([_widened(shard[i], axis, width, i != 0)
                                 for shard in shards], 1) for i in range(3)]
    if downcast_smem_data:
        parts = [_smallest(x, int(x.max(initial=0))) for x in parts]
    block_mask, data_next, mask_next = parts

    rule = getattr(masks[0], "mask_function", None) if len(masks) == 1 else None
    stack = np.stack(partial).astype(np.bool_) if partial and rule is None else None
    if stack is not None and is_dkv:
        stack = stack.swapaxes(-1, -2)
    info = MaskInfo(data_next, None if stack is None else mask_next, block_mask, stack,
                    None if rule is None else getattr(masks[0], "q_sequence", None))
    return info, rule


def _widened(x: Ints, axis: int, width: int, repeat_last: bool) -> Ints:
    """An array with entries behind along an axis: zeros, or the last one."""
    mode = "edge" if repeat_last else "constant"
    return np.pad(x, [(0, width - x.shape[axis] if a == axis else 0) for a in range(x.ndim)], mode)


# Masks that are known only while the kernel runs -------------------------------------------------

def _process_dynamic_mask(mask: Array, block_shape: tuple[int, int], is_dkv: bool, *,
                          downcast_smem_data: bool = True, head_shards: int = 1,
                          q_seq_shards: int = 1, shrink_grid: bool = True
                          ) -> tuple[MaskInfo, None]:
    """Return a kernel's tables of a mask that is an array, and None for its rule.

    All its blocks are kept, bool[heads, q_blocks, kv_blocks, block_q, block_kv]; empty ones are
    still skipped. The arguments are as for `process_mask`; the grid is never shrunk.

    Raises:
      ValueError: an array that is not bool[heads, queries, keys], sizes that do not divide.

    >>> import olympus.numpy as onp
    >>> from olympus.experimental.pallas.ops.tpu.splash_attention import (
    ...     splash_attention_mask_info as mask_info)
    >>> info, _ = mask_info.process_dynamic_mask(onp.tril(onp.ones((1, 8, 8), bool)), (4, 4))
    >>> print(info.block_mask)
    [[[1 0]
      [2 1]]]
    """
    if mask.dtype != np.bool_:
        raise ValueError(f"process_dynamic_mask: Expected a bool mask, instead got: {mask.dtype}; "
                         "compare it with 0.")
    blocks = _blocks(mask, block_shape, head_shards, q_seq_shards)
    high, wide = block_shape
    cut = swapaxes(mask.reshape(blocks.heads, blocks.rows, high, blocks.columns, wide), 2, 3)
    block_mask = where(cut.all((-1, -2)), 2, where(cut.any((-1, -2)), 1, 0)).astype(np.int32)

    rows = arange(blocks.rows, dtype=np.int32) % blocks.shard_rows
    columns = arange(blocks.columns, dtype=np.int32)
    heads = arange(blocks.heads, dtype=np.int32) % blocks.shard_heads
    number = ((heads[:, None, None] * blocks.shard_rows + rows[:, None]) * blocks.columns + columns)
    data = broadcast_to(rows[:, None] if is_dkv else columns, block_mask.shape)
    data_next = where(block_mask == 0, 0, data)
    mask_next = where(block_mask == 1, number, 0)
    if downcast_smem_data:
        block_mask = block_mask.astype(np.int8)
        data_next = _smallest(data_next, blocks.shard_rows if is_dkv else blocks.columns)
        mask_next = _smallest(mask_next, blocks.shard_heads * blocks.shard_rows * blocks.columns)
    if is_dkv:
        cut = swapaxes(cut, -1, -2)
    return MaskInfo(data_next, mask_next, block_mask, cut, None, True), None


process_mask = functools.partial(_process_mask, is_dkv=False)
process_mask_dkv = functools.partial(_process_mask, is_dkv=True)
process_dynamic_mask = functools.partial(_process_dynamic_mask, is_dkv=False)
process_dynamic_mask_dkv = functools.partial(_process_dynamic_mask, is_dkv=True)
