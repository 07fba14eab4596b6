"""Masks of splash attention: names only."""

from ......_src.base.util import publish as _publish
from ......_src.kernel_library.masks import (
    CausalMask, ChunkedCausalMask, FullMask, LocalMask, LogicalAnd, LogicalOr, Mask,
    MultiHeadMask, NumpyMask, make_causal_mask, make_chunk_attention_mask,
    make_local_attention_mask, make_random_mask,
)

__all__ = [
    "CausalMask", "ChunkedCausalMask", "FullMask", "LocalMask", "LogicalAnd", "LogicalOr",
    "Mask", "MultiHeadMask", "NumpyMask", "make_causal_mask", "make_chunk_attention_mask",
    "make_local_attention_mask", "make_random_mask",
]

_publish(__name__)
