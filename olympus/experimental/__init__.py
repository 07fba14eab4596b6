"""What may still change: names only. Its modules are imported when they are first named."""

from .._src.base.util import publish as _publish
from .._src.base.util import submodules as _submodules
from .._src.host.callbacks import io_callback

__all__ = ["io_callback"]

_publish(__name__)
__getattr__, __dir__ = _submodules(__name__)
