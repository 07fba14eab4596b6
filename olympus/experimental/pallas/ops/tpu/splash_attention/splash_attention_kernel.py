"""Kernels and references of splash attention: names only."""

from ......_src.base.util import publish as _publish
from ......_src.kernel_library.logits import DEFAULT_MASK_VALUE, SegmentIds
from ......_src.kernel_library.splash_reference import (
    attention_reference, attention_reference_custom, make_attention_reference,
    make_masked_mha_reference, make_masked_mqa_reference,
)

__all__ = [
    "DEFAULT_MASK_VALUE", "SegmentIds", "attention_reference", "attention_reference_custom",
    "make_attention_reference", "make_masked_mha_reference", "make_masked_mqa_reference",
]

_publish(__name__)
