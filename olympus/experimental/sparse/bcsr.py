"""BCSR and its operations: names only."""

from ..._src.base.util import publish as _publish
from ..._src.sparse.bcsr import (
    BCSR, bcsr_broadcast_in_dim, bcsr_concatenate, bcsr_dot_general, bcsr_eliminate_zeros,
    bcsr_extract, bcsr_extract_p, bcsr_fromdense, bcsr_fromdense_p, bcsr_sum_duplicates,
    bcsr_todense, bcsr_todense_p,
)
from ..._src.sparse.formats import BCSRProperties, Shape
from ..._src.sparse.products import bcsr_dot_general_p

__all__ = [
    "BCSR", "BCSRProperties", "Shape", "bcsr_broadcast_in_dim", "bcsr_concatenate",
    "bcsr_dot_general", "bcsr_dot_general_p", "bcsr_eliminate_zeros", "bcsr_extract",
    "bcsr_extract_p", "bcsr_fromdense", "bcsr_fromdense_p", "bcsr_sum_duplicates", "bcsr_todense",
    "bcsr_todense_p",
]

_publish(__name__)
