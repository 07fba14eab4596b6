"""Arrays and pytrees of them on disk, on the package tensorstore (the extra `checkpoint`)."""

from ..._src.base.util import publish as _publish
from ..._src.base.util import submodules as _submodules

__all__ = []

_publish(__name__)
__getattr__, __dir__ = _submodules(__name__)
