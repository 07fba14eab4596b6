"""Interpreters that read the rules of primitives, for outsiders to extend.

`olympus.interpreters.mlir` is imported by name: it loads MLIR.
"""

from . import ad, batching, partial_eval, pxla, xla

__all__ = ["ad", "batching", "partial_eval", "pxla", "xla"]
