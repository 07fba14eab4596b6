"""Attention to keys in pages: names only."""

import typing as _typing

from ......_src.base.util import publish as _publish
from ......_src.base.util import submodules as _submodules
from ......_src.kernel_library.pages import paged_attention

__all__ = ["paged_attention"]

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import quantization_utils as quantization_utils, util as util
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
