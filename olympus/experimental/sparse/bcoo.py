"""BCOO and its operations: names only."""

import numpy as _np

from ..._src.base.util import publish as _publish
from ..._src.sparse.bcoo import (
    BCOO, bcoo_dot_general, bcoo_dot_general_sampled, bcoo_eliminate_zeros, bcoo_extract,
    bcoo_fromdense, bcoo_sort_indices, bcoo_sum_duplicates, bcoo_todense, bcoo_transpose,
)
from ..._src.sparse.conversions import (
    bcoo_extract_p, bcoo_fromdense_p, bcoo_sort_indices_p, bcoo_sum_duplicates_p, bcoo_todense_p,
    bcoo_transpose_p,
)
from ..._src.sparse.formats import BCOOProperties, Buffer, Shape
from ..._src.sparse.layout import (
    bcoo_broadcast_in_dim, bcoo_concatenate, bcoo_conv_general_dilated, bcoo_dynamic_slice,
    bcoo_gather, bcoo_multiply_dense, bcoo_multiply_sparse, bcoo_reduce_sum, bcoo_reshape, bcoo_rev,
    bcoo_slice, bcoo_squeeze, bcoo_update_layout,
)
from ..._src.sparse.products import (
    bcoo_dot_general_p, bcoo_dot_general_sampled_p, bcoo_spdot_general_p,
)

CUSPARSE_DATA_DTYPES = [_np.float32, _np.float64, _np.complex64, _np.complex128]
CUSPARSE_INDEX_DTYPES = [_np.int32]

__all__ = [
    "BCOO", "BCOOProperties", "Buffer", "CUSPARSE_DATA_DTYPES", "CUSPARSE_INDEX_DTYPES", "Shape",
    "bcoo_broadcast_in_dim", "bcoo_concatenate", "bcoo_conv_general_dilated", "bcoo_dot_general",
    "bcoo_dot_general_p", "bcoo_dot_general_sampled", "bcoo_dot_general_sampled_p",
    "bcoo_dynamic_slice", "bcoo_eliminate_zeros", "bcoo_extract", "bcoo_extract_p",
    "bcoo_fromdense", "bcoo_fromdense_p", "bcoo_gather", "bcoo_multiply_dense",
    "bcoo_multiply_sparse", "bcoo_reduce_sum", "bcoo_reshape", "bcoo_rev", "bcoo_slice",
    "bcoo_sort_indices", "bcoo_sort_indices_p", "bcoo_spdot_general_p", "bcoo_squeeze",
    "bcoo_sum_duplicates", "bcoo_sum_duplicates_p", "bcoo_todense", "bcoo_todense_p",
    "bcoo_transpose", "bcoo_transpose_p", "bcoo_update_layout",
]

_publish(__name__)
