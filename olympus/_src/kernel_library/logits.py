"""Parts of attention's formula that its kernels and references share.

    weights = softmax(mask(cap(q k^T)))        out = weights v

Logits and weights are float32 whatever the operands are.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ..base.typing import Array
from ..lax.creation import broadcasted_iota
from ..numpy.trigonometry import tanh

DEFAULT_MASK_VALUE = -0.7 * float(np.finfo(np.float32).max)     # its double is still finite


class SegmentIds(NamedTuple):
    """The segment of each query and key: only those of one segment look at each other.

    Each query needs a key that it looks at; otherwise its softmax has no terms.

    Attributes:
      q: integers [queries] (in `flash_attention`: [batch, queries]).
      kv: integers [keys] (in `flash_attention`: [batch, keys]).

    >>> import olympus.numpy as onp
    >>> from olympus.experimental.pallas.ops.tpu import splash_attention as splash
    >>> print(splash.SegmentIds(q=onp.array([0, 1]), kv=onp.array([0, 1])).q)
    [0 1]
    """

    q: Any
    kv: Any


def same_segment(ids: SegmentIds) -> Array:
    return ids.q[..., :, None] == ids.kv[..., None, :]


def capped(logits: Array, cap: float | None) -> Array:
    """Logits between -cap and cap: cap tanh(logits / cap)."""
    return logits if cap is None else cap * tanh(logits / cap)


def causal_rule(queries: int, keys: int) -> Array:
    """bool[queries, keys]: query i looks at keys up to i."""
    shape = queries, keys
    return broadcasted_iota(np.int32, shape, 1) <= broadcasted_iota(np.int32, shape, 0)
