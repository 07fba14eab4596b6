"""Linear algebra on matrices and stacks of them."""

from .._src.base.util import publish_bounded as _publish
from .._src.numpy.linalg.decompositions import (
    cond, eig, eigh, eigvals, eigvalsh, lstsq, matrix_rank, pinv, svd, svdvals,
)
from .._src.numpy.linalg.norms import (
    cross, diagonal, matmul, matrix_norm, norm, outer, tensordot, trace, vecdot, vector_norm,
)
from .._src.numpy.linalg.systems import (
    cholesky, det, inv, matrix_power, multi_dot, qr, slogdet, solve, tensorinv, tensorsolve,
)
from .._src.numpy.manipulation import matrix_transpose

__all__ = [
    "cholesky", "cond", "cross", "det", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "inv",
    "lstsq", "matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose",
    "multi_dot", "norm", "outer", "pinv", "qr", "slogdet", "solve", "svd", "svdvals", "tensordot",
    "tensorinv", "tensorsolve", "trace", "vecdot", "vector_norm"
]

_publish(__name__)
