"""Products of groups of rows with a matrix each: names only."""

from ....._src.base.util import publish as _publish
from ....._src.kernel_library.matmul import gmm, tgmm

__all__ = ["gmm", "tgmm"]

_publish(__name__)
