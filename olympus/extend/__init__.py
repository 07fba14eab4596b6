"""For libraries built on Olympus: primitives and interpreters of their own.

`olympus.extend.mlir` is imported by name: it loads MLIR. `random` is when it is first named.
"""

from .._src.base.util import submodule as _submodule
from . import core, linear_util

__all__ = ["core", "linear_util"]


def __getattr__(name: str) -> object:
    """A module of this package."""
    return _submodule(__name__, name)
