"""For libraries built on Olympus: primitives and interpreters of their own.

`olympus.extend.mlir` is imported by name: it loads MLIR. `random` is when it is first named.
"""

from .._src.base.util import submodules as _submodules
from . import core, linear_util

__all__ = ["core", "linear_util"]

__getattr__, __dir__ = _submodules(__name__)
