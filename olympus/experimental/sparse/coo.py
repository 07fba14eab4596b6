"""COO and its operations: names only."""

from ..._src.base.util import publish as _publish
from ..._src.sparse.formats import COOInfo, Shape
from ..._src.sparse.matrices import (
    COO, coo_fromdense, coo_fromdense_p, coo_matmat, coo_matmat_p, coo_matvec, coo_matvec_p,
    coo_todense, coo_todense_p,
)

__all__ = [
    "COO", "COOInfo", "Shape", "coo_fromdense", "coo_fromdense_p", "coo_matmat", "coo_matmat_p",
    "coo_matvec", "coo_matvec_p", "coo_todense", "coo_todense_p",
]

_publish(__name__)
