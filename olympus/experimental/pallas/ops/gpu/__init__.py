"""Kernels that were written for GPUs: names only."""

import typing as _typing

from ....._src.base.util import publish as _publish
from ....._src.base.util import submodules as _submodules

__all__: list[str] = []

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import (
        attention as attention, decode_attention as decode_attention, layer_norm as
        layer_norm, paged_attention as paged_attention, rms_norm as rms_norm,
        softmax as softmax,
    )
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
