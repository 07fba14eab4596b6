"""Tests of functions of sparse arrays: names only."""

from ..._src.base.util import publish as _publish
from ..._src.sparse.testing import (
    MATMUL_TOL, BatchedDotGeneralProperties, SparseLayout, SparseTestCase, is_sparse,
    iter_bcsr_layouts, iter_sparse_layouts, iter_subsets, rand_bcoo, rand_bcsr, rand_default,
    rand_sparse,
)

__all__ = [
    "MATMUL_TOL", "BatchedDotGeneralProperties", "SparseLayout", "SparseTestCase", "is_sparse",
    "iter_bcsr_layouts", "iter_sparse_layouts", "iter_subsets", "rand_bcoo", "rand_bcsr",
    "rand_default", "rand_sparse",
]

_publish(__name__)
