"""Attention of one query in each row to keys in pages: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.decoding import paged_attention, paged_attention_reference
from ....._src.kernel_library.logits import DEFAULT_MASK_VALUE

__all__ = ["DEFAULT_MASK_VALUE", "paged_attention", "paged_attention_reference"]

_publish(__name__)
