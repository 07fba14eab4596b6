"""Linear algebra on matrices and stacks of them."""

from .._src.numpy.decompositions import (
    cond, eig, eigh, eigvals, eigvalsh, lstsq, matrix_rank, pinv, svd, svdvals
)
from .._src.numpy.linalg import (
    cross, diagonal, matmul, matrix_transpose, norm, outer, tensordot, trace, vecdot, vector_norm
)

__all__ = [
    "cond", "cross", "diagonal", "eig", "eigh", "eigvals", "eigvalsh", "lstsq", "matmul",
    "matrix_rank", "matrix_transpose", "norm", "outer", "pinv", "svd", "svdvals", "tensordot",
    "trace", "vecdot", "vector_norm"
]
