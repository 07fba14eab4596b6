"""Kernels that were written for TPUs: names only."""

import typing as _typing

from ....._src.base.util import publish as _publish
from ....._src.base.util import submodules as _submodules

__all__: list[str] = []

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import (
        flash_attention as flash_attention, matmul as matmul, megablox as megablox,
        paged_attention as paged_attention, ragged_paged_attention as ragged_paged_attention,
        splash_attention as splash_attention,
    )
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
