"""Errors, types and mapped functions of sparse arrays: names only."""

from ..._src.base.util import publish as _publish
from ..._src.sparse.defined import broadcasting_vmap, nfold_vmap
from ..._src.sparse.formats import (
    CuSparseEfficiencyWarning, Shape, SparseEfficiencyError, SparseEfficiencyWarning, SparseInfo,
)

__all__ = [
    "CuSparseEfficiencyWarning", "Shape", "SparseEfficiencyError", "SparseEfficiencyWarning",
    "SparseInfo", "broadcasting_vmap", "nfold_vmap",
]

_publish(__name__)
