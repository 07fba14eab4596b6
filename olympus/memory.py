"""Memory spaces of devices: names only."""

from ._src.base.util import publish
from ._src.types.memory import Space

__all__ = ["Space"]

publish(__name__)
