"""Reductions over segments of an array."""

from ._src.base.util import publish_bounded as _publish
from ._src.nn.segments import segment_max, segment_min, segment_prod, segment_sum

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

_publish(__name__)
