"""Attention of [batch, length, heads, dim] with segments and a causal rule."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array
from ..jit.jit import jit
from ..nn.activations import softmax
from ..numpy.einsum import einsum
from ..numpy.selection import where
from .logits import SegmentIds, causal_rule, same_segment

_F32 = np.float32

def segment_mask(q_segment_ids: Array, kv_segment_ids: Array) -> Array:
    """Which queries and keys share a segment: bool[…, queries, keys] of integers [batch, length] or
    [length].

    Args:
      q_segment_ids, kv_segment_ids: integers, the segments of queries and of keys.

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
