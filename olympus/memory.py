"""Memory spaces of devices: names only."""

from ._src.base.util import publish as _publish
from ._src.types.memory import Space

__all__ = ["Space"]

_publish(__name__)
