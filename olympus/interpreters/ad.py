"""Differentiation: forward mode's trace, and the marks that rules meet."""

from .._src.core.primitive import Linear as UndefinedPrimal
from .._src.core.primitive import Zero
from .._src.interpreters.jvp import JVPTrace, JVPTracer

__all__ = ["JVPTrace", "JVPTracer", "UndefinedPrimal", "Zero"]
