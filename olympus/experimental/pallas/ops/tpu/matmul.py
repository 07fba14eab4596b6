"""The product of two matrices: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.matmul import matmul

__all__ = ["matmul"]

_publish(__name__)
