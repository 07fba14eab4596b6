"""Looking into compiled programs while they run."""

from ._src.control.debug import callback, print

__all__ = ["callback", "print"]
