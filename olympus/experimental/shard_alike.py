"""Values that are spread over devices in the same way: names only."""

from .._src.base.util import publish as _publish
from .._src.lax.shard_alike import shard_alike

__all__ = ["shard_alike"]

_publish(__name__)
