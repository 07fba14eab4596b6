"""Types for annotations: `ArrayLike` and `DTypeLike`."""

from ._src.base.util import publish as _publish
from ._src.base.typing import ArrayLike, DTypeLike

__all__ = ["ArrayLike", "DTypeLike"]

_publish(__name__)
