"""Attention of one query in each row: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.decoding import gqa_reference, mha_reference, mqa_reference

__all__ = ["gqa_reference", "mha_reference", "mqa_reference"]

_publish(__name__)
