"""The arguments of lowering rules: names only. Importing this module loads MLIR."""

from .._src.lowering.builder import Builder as LoweringRuleContext
from .._src.base.lib.mlir import OlympusIrContext, upstream_dialects

__all__ = ["LoweringRuleContext", "OlympusIrContext", "upstream_dialects"]
