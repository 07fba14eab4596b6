"""Looking into compiled programs while they run."""

from ._src.control.debug import callback, log, print
from ._src.control.debugger import breakpoint

__all__ = ["breakpoint", "callback", "log", "print"]
