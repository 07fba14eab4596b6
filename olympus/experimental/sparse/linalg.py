"""Linear systems and eigenvalues of sparse matrices: names only."""

from ..._src.base.util import publish_bounded as _publish
from ..._src.sparse.linalg import lobpcg_standard, spsolve, spsolve_p

__all__ = ["lobpcg_standard", "spsolve", "spsolve_p"]

_publish(__name__)
