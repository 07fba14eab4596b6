"""`sparsify` and its rules: names only."""

from ..._src.base.util import publish as _publish
from ..._src.sparse.transform import (
    SparseTrace, SparseTracer, SparsifyEnv, SparsifyValue, arrays_to_spvalues, eval_sparse,
    sparse_rules_bcoo, sparse_rules_bcsr, sparsify, sparsify_fun, sparsify_raw,
    sparsify_subtrace, spvalues_to_arrays, spvalues_to_avals,
)

__all__ = [
    "SparseTrace", "SparseTracer", "SparsifyEnv", "SparsifyValue", "arrays_to_spvalues",
    "eval_sparse", "sparse_rules_bcoo", "sparse_rules_bcsr", "sparsify", "sparsify_raw",
    "spvalues_to_arrays", "spvalues_to_avals",
]

_publish(__name__)
