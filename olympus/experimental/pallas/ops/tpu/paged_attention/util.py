"""The reference of attention to keys in pages: names only."""

from ......_src.base.util import publish as _publish
from ......_src.kernel_library.decoding import grouped_query_attention_reference
from ......_src.kernel_library.logits import DEFAULT_MASK_VALUE as MASK_VALUE

__all__ = ["MASK_VALUE", "grouped_query_attention_reference"]

_publish(__name__)
