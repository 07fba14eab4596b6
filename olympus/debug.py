"""Looking into compiled programs while they run."""

from ._src.base.util import publish as _publish
from ._src.core.effects import DebugEffect, OrderedDebugEffect
from ._src.host.debug import callback, log, print
from ._src.host.debugger import breakpoint
from ._src.host.inspection import inspect_array_sharding
from ._src.host.pictures import visualize_array_sharding, visualize_sharding
from ._src.transforms.holds import holds

__all__ = ["DebugEffect", "OrderedDebugEffect", "breakpoint", "callback",
           "holds", "inspect_array_sharding", "log", "print", "visualize_array_sharding",
           "visualize_sharding"]

_publish(__name__)
