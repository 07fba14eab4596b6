"""Memory spaces of devices: names only."""

from ._src.types.memory import Space

__all__ = ["Space"]
