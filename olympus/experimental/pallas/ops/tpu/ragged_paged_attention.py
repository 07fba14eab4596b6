"""Attention of sequences with any number of queries to keys in pages: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.ragged import (
    dynamic_validate_inputs, get_tuned_block_sizes, ragged_paged_attention,
    ref_ragged_paged_attention, static_validate_inputs,
)

__all__ = [
    "dynamic_validate_inputs", "get_tuned_block_sizes", "ragged_paged_attention",
    "ref_ragged_paged_attention", "static_validate_inputs",
]

_publish(__name__)
