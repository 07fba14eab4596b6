"""For libraries built on Olympus: primitives and interpreters of their own.

`olympus.extend.mlir` is imported by name: it loads MLIR. `random` is when it is first named.
"""

import typing as _typing

from .._src.base.util import submodules as _submodules
from . import core, linear_util

__all__ = ["core", "linear_util"]

if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import (
        backend as backend, lowering as lowering, mlir as mlir, random as random,
        sharding as sharding, source_info_util as source_info_util, state as state,
    )
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
