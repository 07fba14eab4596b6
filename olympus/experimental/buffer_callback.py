"""Python functions that work in a program's buffers: names only."""

from .._src.base.util import publish as _publish
from .._src.host.buffer_callback import (
    Buffer, ExecutionContext, ExecutionStage, buffer_callback,
)

__all__ = ["Buffer", "ExecutionContext", "ExecutionStage", "buffer_callback"]

_publish(__name__)
