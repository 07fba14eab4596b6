"""Attention with segments and a causal rule: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.gpu_attention import (
    BlockSizes, mha, mha_reference, segment_mask,
)
from ....._src.kernel_library.logits import DEFAULT_MASK_VALUE

__all__ = ["BlockSizes", "DEFAULT_MASK_VALUE", "mha", "mha_reference", "segment_mask"]

_publish(__name__)
