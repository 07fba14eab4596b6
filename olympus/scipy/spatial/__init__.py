"""Geometry. Its module is imported when it is first named."""

import typing as _typing

from ..._src.base.util import submodules as _submodules

__all__ = []

if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import transform as transform
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
