"""Systems that are given as functions: `olympus.scipy.sparse.linalg`."""

import typing as _typing

from ..._src.base.util import submodules as _submodules

__all__ = []

if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import linalg as linalg
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
