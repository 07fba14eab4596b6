"""What may still change: names only."""

from .._src.base.util import publish as _publish
from .._src.host.callbacks import io_callback

__all__ = ["io_callback"]

_publish(__name__)
