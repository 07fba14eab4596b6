"""`shard_map` with the parameters that it had before it was `olympus.shard_map`; names only."""

from .._src.base.util import publish as _publish
from .._src.mapping.shard_map_by_position import shard_map

__all__ = ["shard_map"]

_publish(__name__)
