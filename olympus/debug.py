"""Looking into compiled programs while they run."""

from ._src.base.util import publish as _publish
from ._src.core.effects import DebugEffect, OrderedDebugEffect
from ._src.host.debug import callback, log, print
from ._src.host.debugger import breakpoint

__all__ = ["DebugEffect", "OrderedDebugEffect", "breakpoint", "callback", "log", "print"]

_publish(__name__)
