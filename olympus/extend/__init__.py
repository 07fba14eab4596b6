"""For libraries built on Olympus: primitives and interpreters of their own.

`olympus.extend.mlir` is imported by name: it loads MLIR.
"""

from . import core, linear_util

__all__ = ["core", "linear_util"]
