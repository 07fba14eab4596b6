"""Compiled programs on disk. Its module is imported when it is first named."""

from ..._src.base.util import submodules as _submodules

__all__: list[str] = []

__getattr__, __dir__ = _submodules(__name__)
