"""Clustering. Its module is imported when it is first named."""

from ..._src.base.util import submodules as _submodules

__all__ = []

__getattr__, __dir__ = _submodules(__name__)
