"""Sparse arrays: BCOO and BCSR, their operations, `sparsify`, derivatives, linear algebra."""

import typing as _typing

from ..._src.base.util import publish_bounded as _publish
from ..._src.base.util import submodules as _submodules
from ..._src.sparse.bcoo import (
    BCOO, bcoo_dot_general, bcoo_dot_general_sampled, bcoo_extract, bcoo_fromdense,
    bcoo_sort_indices, bcoo_sum_duplicates, bcoo_todense, bcoo_transpose,
)
from ..._src.sparse.bcsr import (
    BCSR, bcsr_broadcast_in_dim, bcsr_concatenate, bcsr_dot_general, bcsr_extract, bcsr_extract_p,
    bcsr_fromdense, bcsr_fromdense_p, bcsr_sum_duplicates, bcsr_todense, bcsr_todense_p,
)
from ..._src.sparse.conversions import (
    bcoo_extract_p, bcoo_fromdense_p, bcoo_sort_indices_p, bcoo_sum_duplicates_p, bcoo_todense_p,
    bcoo_transpose_p,
)
from ..._src.sparse.derivatives import grad, jacfwd, jacobian, jacrev, value_and_grad
from ..._src.sparse.formats import (
    CuSparseEfficiencyWarning, OLYMPUSSparse, SparseEfficiencyError, SparseEfficiencyWarning,
)
from ..._src.sparse.layout import (
    bcoo_broadcast_in_dim, bcoo_concatenate, bcoo_conv_general_dilated, bcoo_dynamic_slice,
    bcoo_gather, bcoo_multiply_dense, bcoo_multiply_sparse, bcoo_reduce_sum, bcoo_reshape, bcoo_rev,
    bcoo_slice, bcoo_squeeze, bcoo_update_layout,
)
from ..._src.sparse.making import empty, eye, random_bcoo, todense, todense_p
from ..._src.sparse.matrices import (
    COO, CSC, CSR, coo_fromdense, coo_fromdense_p, coo_matmat, coo_matmat_p, coo_matvec,
    coo_matvec_p, coo_todense, coo_todense_p, csr_fromdense, csr_fromdense_p, csr_matmat,
    csr_matmat_p, csr_matvec, csr_matvec_p, csr_todense, csr_todense_p,
)
from ..._src.sparse.products import (
    bcoo_dot_general_p, bcoo_dot_general_sampled_p, bcoo_spdot_general_p, bcsr_dot_general_p,
)
from ..._src.sparse.transform import SparseTracer, sparsify
from ..._src.sparse import operators as _operators

__all__ = [
    "BCOO", "BCSR", "COO", "CSC", "CSR", "CuSparseEfficiencyWarning", "OLYMPUSSparse",
    "SparseEfficiencyError", "SparseEfficiencyWarning", "SparseTracer", "bcoo_broadcast_in_dim",
    "bcoo_concatenate", "bcoo_conv_general_dilated", "bcoo_dot_general", "bcoo_dot_general_p",
    "bcoo_dot_general_sampled", "bcoo_dot_general_sampled_p", "bcoo_dynamic_slice", "bcoo_extract",
    "bcoo_extract_p", "bcoo_fromdense", "bcoo_fromdense_p", "bcoo_gather", "bcoo_multiply_dense",
    "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice",
    "bcoo_sort_indices", "bcoo_sort_indices_p", "bcoo_spdot_general_p", "bcoo_squeeze",
    "bcoo_sum_duplicates", "bcoo_sum_duplicates_p", "bcoo_todense", "bcoo_todense_p",
    "bcoo_transpose", "bcoo_transpose_p", "bcoo_update_layout", "bcsr_broadcast_in_dim",
    "bcsr_concatenate", "bcsr_dot_general", "bcsr_dot_general_p", "bcsr_extract", "bcsr_extract_p",
    "bcsr_fromdense", "bcsr_fromdense_p", "bcsr_sum_duplicates", "bcsr_todense", "bcsr_todense_p",
    "coo_fromdense", "coo_fromdense_p", "coo_matmat", "coo_matmat_p", "coo_matvec", "coo_matvec_p",
    "coo_todense", "coo_todense_p", "csr_fromdense", "csr_fromdense_p", "csr_matmat",
    "csr_matmat_p", "csr_matvec", "csr_matvec_p", "csr_todense", "csr_todense_p", "empty", "eye",
    "grad", "jacfwd", "jacobian", "jacrev", "random_bcoo", "sparsify", "todense", "todense_p",
    "value_and_grad",
]

_publish(__name__)
if _typing.TYPE_CHECKING:      # imported when they are first named
    from . import (
        ad as ad, api as api, bcoo as bcoo, bcsr as bcsr, coo as coo, csr as csr, linalg as linalg,
        random as random, test_util as test_util, transform as transform, util as util,
    )
else:       # a checker would take any name for an object
    __getattr__, __dir__ = _submodules(__name__)
