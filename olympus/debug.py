"""Looking into compiled programs while they run."""

from ._src.base.util import publish as _publish
from ._src.core.effects import DebugEffect, OrderedDebugEffect
from ._src.debugging.bisect import Parting, Recording, Step, bisect, record
from ._src.debugging.find_nan import NanFound, find_nan
from ._src.debugging.precision import Amplification, Precision, precision
from ._src.debugging.slow_ops import SlowOp, SlowOps, slow_ops
from ._src.host.debug import callback, log, print
from ._src.host.debugger import breakpoint
from ._src.host.inspection import inspect_array_sharding
from ._src.host.pictures import visualize_array_sharding, visualize_sharding
from ._src.jit.drawing import Drawing, draw
from ._src.jit.holds import holds
from ._src.jit.kernels import kernels
from ._src.jit.memory import CacheMemory, FunctionMemory, MemoryReport
from ._src.planning.plan import plan
from ._src.planning.result import (
    ArgumentMemory,
    Exchange,
    LineMemory,
    MemoryPlan,
    Plan,
    Plans,
)

__all__ = ["Amplification", "ArgumentMemory", "CacheMemory", "DebugEffect", "Drawing", "Exchange",
           "FunctionMemory", "LineMemory", "MemoryPlan", "MemoryReport", "NanFound",
           "OrderedDebugEffect", "Parting", "Plan", "Plans", "Precision", "Recording", "SlowOp",
           "SlowOps", "Step", "bisect", "breakpoint", "callback", "draw", "find_nan", "holds",
           "inspect_array_sharding", "kernels", "log", "plan", "precision", "print", "record",
           "slow_ops", "visualize_array_sharding", "visualize_sharding"]

_publish(__name__)
