"""Linear algebra on matrices and stacks of them."""


from .._src.numpy.linalg import (
    cross, diagonal, matmul, matrix_transpose, norm, outer, tensordot, trace, vecdot,
    vector_norm
)

__all__ = [
    "cross", "diagonal", "matmul", "matrix_transpose", "norm", "outer", "tensordot", "trace",
    "vecdot", "vector_norm"
]
