"""Ahead of time: what `jit(f).trace(…)`, `.lower()` and `.compile()` return."""

from ._src.base.util import publish as _publish
from ._src.jit.recompiles import CacheInfo, Difference, Explanation
from ._src.jit.stages import ArgInfo, Compiled, CompilerOptions, Lowered, Traced, Wrapped

__all__ = ["ArgInfo", "CacheInfo", "Compiled", "CompilerOptions", "Difference", "Explanation",
           "Lowered", "Traced", "Wrapped"]

_publish(__name__)
