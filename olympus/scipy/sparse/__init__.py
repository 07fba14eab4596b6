"""Systems that are given as functions: `olympus.scipy.sparse.linalg`."""

from ..._src.base.util import names_in as _names_in
from ..._src.base.util import submodule as _submodule

__all__ = []


def __getattr__(name: str) -> object:
    """A module of this package."""
    return _submodule(__name__, name)


def __dir__() -> list[str]:
    """Names for completion, modules that are not imported yet among them."""
    return _names_in(__name__)
