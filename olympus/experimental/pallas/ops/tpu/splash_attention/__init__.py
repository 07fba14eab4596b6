"""Attention with static masks, of which empty blocks are skipped: names only."""

import typing as _typing

from ......_src.base.util import publish as _publish
from ......_src.base.util import submodules as _submodules
from ......_src.kernel_library.logits import SegmentIds
from ......_src.kernel_library.masks import (
    CausalMask, FullMask, LocalMask, Mask, MultiHeadMask, NumpyMask, make_causal_mask,
    make_local_attention_mask, make_random_mask,
)
from ......_src.kernel_library.splash_attention import (
    BlockSizes, QKVLayout, SplashAttentionKernel, make_splash_mha, make_splash_mha_single_device,
    make_splash_mqa, make_splash_mqa_single_device,
)
from ......_src.kernel_library.splash_reference import (
    make_masked_mha_reference, make_masked_mqa_reference,
)

__all__ = [
    "BlockSizes", "CausalMask", "FullMask", "LocalMask", "Mask", "MultiHeadMask", "NumpyMask",
    "QKVLayout", "SegmentIds", "SplashAttentionKernel", "make_causal_mask",
    "make_local_attention_mask", "make_masked_mha_reference", "make_masked_mqa_reference",
    "make_random_mask", "make_splash_mha", "make_splash_mha_single_device", "make_splash_mqa",
    "make_splash_mqa_single_device",
]

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import (
        splash_attention_kernel as splash_attention_kernel, splash_attention_mask as
        splash_attention_mask, splash_attention_mask_info as splash_attention_mask_info,
    )
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
