"""Attention of one query in each row: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.decoding import (
    gqa, gqa_reference, mha_reference, mqa, mqa_reference,
)

__all__ = ["gqa", "gqa_reference", "mha_reference", "mqa", "mqa_reference"]

_publish(__name__)
