"""For libraries built on Olympus: primitives and interpreters of their own.

`olympus.extend.mlir` is imported by name: it loads MLIR. `random` is when it is first named.
"""

from .._src.base.util import names_in as _names_in
from .._src.base.util import submodule as _submodule
from . import core, linear_util

__all__ = ["core", "linear_util"]


def __getattr__(name: str) -> object:
    """A module of this package."""
    return _submodule(__name__, name)


def __dir__() -> list[str]:
    """Names for completion, modules that are not imported yet among them."""
    return _names_in(__name__)
