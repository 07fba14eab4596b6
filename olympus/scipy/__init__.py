"""Functions of SciPy on arrays. Its modules are imported when they are first named."""

from .._src.base.util import submodules as _submodules

__all__ = []

__getattr__, __dir__ = _submodules(__name__)
