"""Kernels of attention, normalisation and products, by device: names only."""

import typing as _typing

from ...._src.base.util import publish as _publish
from ...._src.base.util import submodules as _submodules

__all__: list[str] = []

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import gpu as gpu, tpu as tpu
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
