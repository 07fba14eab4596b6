"""Attention of [batch, length, heads, dim] with segments and a causal rule."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, PyTree
from ..jit.jit import jit
from ..nn.activations import softmax
from ..numpy.einsum import einsum
from ..numpy.selection import where
from ..types.shape import minimum
from .attention_kernel import Blocks, Inputs, Masks, Options, attention, causal_masks, check_heads
from .logits import SegmentIds, causal_rule, same_segment

_F32 = np.float32


@dataclasses.dataclass(frozen=True, slots=True)
class BlockSizes:
    """The sizes of the blocks of `mha`: of its kernel, and of those of its cotangents.

    >>> from olympus.experimental.pallas.ops.gpu import attention
    >>> attention.BlockSizes(block_q=64, block_k=64).has_backward_blocks
    False
    """

    block_q: int
    block_k: int
    block_q_dkv: int | None = None
    block_kv_dkv: int | None = None
    block_q_dq: int | None = None
    block_kv_dq: int | None = None

    @classmethod
    def get_default(cls) -> BlockSizes:
        """Blocks of 128, and of 32 for the cotangents."""
        return cls(128, 128, 32, 32, 32, 32)

    @property
    def has_backward_blocks(self) -> bool:
        """Whether the sizes of the kernels of cotangents are given."""
        return None not in (self.block_q_dkv, self.block_kv_dkv, self.block_q_dq, self.block_kv_dq)


_DEFAULT = BlockSizes.get_default()

@partial(jit, static_argnames=(
    "sm_scale", "causal", "block_sizes", "backward_pass_impl", "num_warps", "num_stages", "grid",
    "interpret", "debug", "return_residuals"))
def mha(q: Array, k: Array, v: Array, segment_ids: Array | None, sm_scale: float = 1.0,
        causal: bool = False, block_sizes: BlockSizes = _DEFAULT,
        backward_pass_impl: str = "triton", num_warps: int | None = None, num_stages: int = 2,
        grid: Sequence[int] | None = None, interpret: bool = False, debug: bool = False,
        return_residuals: bool = False) -> PyTree:
    """Attention of [batch, length, heads, dim] by kernels, which keep no weights.

    Args:
      segment_ids: integers [batch, length] of queries and keys alike, or None.
      sm_scale: the factor of the logits.
      causal: whether query i looks only at keys up to i.
      block_sizes: sizes of blocks, which divide the lengths or are larger.
      interpret: run the kernels as compiled loops; nothing else can be done with them here.
      return_residuals: return also the logarithm of the sum of exponentials, float32[batch, heads,
        queries]; then there is no derivative.
      backward_pass_impl, num_warps, num_stages, grid, debug: have no effect in interpret mode.
      q, k, v: queries, keys and values, [batch, length, heads, dim].
    Returns: An array like q; with residuals a list of two.

    Raises:
      ValueError: shapes that do not fit, blocks that do not divide.

    >>> from olympus.experimental.pallas.ops.gpu import attention
    >>> x = onp.ones((1, 64, 2, 8))
    >>> attention.mha(x, x, x, None, causal=True, interpret=True).shape
    (1, 64, 2, 8)
    """
    q, k, v = [x.swapaxes(1, 2) for x in (q, k, v)]
    check_heads("mha", q, k, v)
    queries, keys = q.shape[2], k.shape[2]

    def blocks(q_size: int | None, k_size: int | None) -> Blocks | None:
        if q_size is None or k_size is None:
            return None
        return Blocks(minimum(q_size, queries), minimum(k_size, keys))

    forward = blocks(block_sizes.block_q, block_sizes.block_k)
    assert forward is not None
    options = Options(forward, blocks(block_sizes.block_q_dq, block_sizes.block_kv_dq),
                      blocks(block_sizes.block_q_dkv, block_sizes.block_kv_dkv), sm_scale,
                      residuals=return_residuals, interpret=interpret)
    masks, options = causal_masks(queries, keys, options) if causal else (Masks(), options)
    out = attention(Inputs(q, k, v, None, segment_ids, segment_ids), masks, options)
    return [out[0].swapaxes(1, 2), out[1]] if return_residuals else out.swapaxes(1, 2)


def segment_mask(q_segment_ids: Array, kv_segment_ids: Array) -> Array:
    """Which queries and keys share a segment: bool[…, queries, keys] of integers [batch, length] or
    [length].

    Args: q_segment_ids, kv_segment_ids: integers, the segments of queries and of keys.

    >>> from olympus.experimental.pallas.ops.gpu import attention
    >>> print(attention.segment_mask(onp.array([0, 1]), onp.array([1, 1])))
    [[False False]
     [ True  True]]
    """
    return same_segment(SegmentIds(q_segment_ids, kv_segment_ids))


@partial(jit, static_argnames=("sm_scale", "causal"))
def mha_reference(q: Array, k: Array, v: Array, segment_ids: Array | None, sm_scale: float = 1.0,
                  causal: bool = False) -> Array:
    """Attention of [batch, length, heads, dim]; the result is float32.

    Args:
      segment_ids: integers [batch, length] of queries and keys alike, or None.
      sm_scale: the factor of the logits.
      causal: whether query i looks only at keys up to i.
      q, k, v: queries, keys and values, [batch, length, heads, dim].

    >>> from olympus.experimental.pallas.ops.gpu import attention
    >>> x = onp.ones((1, 4, 2, 8))
    >>> attention.mha_reference(x, x, x, None, causal=True).shape
    (1, 4, 2, 8)
    """
    logits = einsum("bqhc,bkhc->bhqk", q, k, preferred_element_type=_F32)
    if segment_ids is not None:
        logits = where(segment_mask(segment_ids, segment_ids)[:, None], logits, -math.inf)
    if causal:
        logits = where(causal_rule(q.shape[1], k.shape[1]), logits, -math.inf)
    return einsum("bhqk,bkhc->bqhc", softmax(logits * sm_scale), v, preferred_element_type=_F32)


complete_docstrings(globals(), {}, returns="float32[batch, length, heads, dim], or bools.")
