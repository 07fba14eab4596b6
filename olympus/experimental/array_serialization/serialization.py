"""Writing arrays while the program goes on."""

from ..._src.base.util import publish as _publish
from ..._src.checkpoint.manager import (
    AsyncManager, BarrierTimeoutError, GlobalAsyncCheckpointManager,
    GlobalAsyncCheckpointManagerBase, get_tensorstore_spec, is_remote_storage,
)
from ..._src.checkpoint.store import async_deserialize, async_serialize

__all__ = [
    "AsyncManager", "BarrierTimeoutError", "GlobalAsyncCheckpointManager",
    "GlobalAsyncCheckpointManagerBase", "async_deserialize", "async_serialize",
    "get_tensorstore_spec", "is_remote_storage",
]

_publish(__name__)
