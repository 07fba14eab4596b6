"""Arrays and pytrees of them on disk, on the package tensorstore (the extra `checkpoint`)."""

import typing as _typing

from ..._src.base.util import publish as _publish
from ..._src.base.util import submodules as _submodules

__all__ = []

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import (
        pytree_serialization as pytree_serialization,
        pytree_serialization_utils as pytree_serialization_utils, serialization as serialization,
        tensorstore_impl as tensorstore_impl,
    )
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
