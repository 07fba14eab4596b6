"""What outsiders extend: the interpreters that read the rules of primitives.

`olympus.interpreters.mlir` is imported by name: it loads MLIR.
"""

from . import ad, batching, partial_eval, pxla, xla

__all__ = ["ad", "batching", "partial_eval", "pxla", "xla"]
