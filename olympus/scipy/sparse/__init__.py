"""Systems that are given as functions: `olympus.scipy.sparse.linalg`."""

from ..._src.base.util import submodules as _submodules

__all__ = []

__getattr__, __dir__ = _submodules(__name__)
