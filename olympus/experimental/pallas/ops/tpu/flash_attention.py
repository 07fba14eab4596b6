"""Attention with a bias, segments and a causal rule: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.flash_attention import (
    BlockSizes, flash_attention, mha_reference, mha_reference_bwd, mha_reference_no_custom_vjp,
)
from ....._src.kernel_library.logits import DEFAULT_MASK_VALUE, SegmentIds

__all__ = [
    "BlockSizes", "DEFAULT_MASK_VALUE", "SegmentIds", "flash_attention", "mha_reference",
    "mha_reference_bwd", "mha_reference_no_custom_vjp",
]

_publish(__name__)
