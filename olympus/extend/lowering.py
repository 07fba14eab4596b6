"""What lowering rules are given: names only. Importing this module loads MLIR."""

from .._src.backend.builder import Builder as LoweringRuleContext

__all__ = ["LoweringRuleContext"]
