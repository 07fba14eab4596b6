"""Softmax along the last axis: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.norms import softmax

__all__ = ["softmax"]

_publish(__name__)
