"""Kernels and references of splash attention: names only."""

from ......_src.base.util import publish as _publish
from ......_src.kernel_library.logits import DEFAULT_MASK_VALUE, SegmentIds
from ......_src.kernel_library.splash_attention import (
    BlockSizes, QKVLayout, SplashAttentionKernel, make_splash_mha, make_splash_mha_single_device,
    make_splash_mqa, make_splash_mqa_single_device,
)
from ......_src.kernel_library.splash_reference import (
    attention_reference, attention_reference_custom, make_attention_reference,
    make_masked_mha_reference, make_masked_mqa_reference,
)

__all__ = [
    "BlockSizes", "DEFAULT_MASK_VALUE", "QKVLayout", "SegmentIds", "SplashAttentionKernel",
    "attention_reference", "attention_reference_custom", "make_attention_reference",
    "make_masked_mha_reference", "make_masked_mqa_reference", "make_splash_mha",
    "make_splash_mha_single_device", "make_splash_mqa", "make_splash_mqa_single_device",
]

_publish(__name__)
