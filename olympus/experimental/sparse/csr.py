"""CSR, CSC and their operations: names only."""

from ..._src.base.util import publish as _publish
from ..._src.sparse.formats import Shape
from ..._src.sparse.matrices import (
    CSC, CSR, csr_fromdense, csr_fromdense_p, csr_matmat, csr_matmat_p, csr_matvec, csr_matvec_p,
    csr_todense, csr_todense_p,
)

__all__ = [
    "CSC", "CSR", "Shape", "csr_fromdense", "csr_fromdense_p", "csr_matmat", "csr_matmat_p",
    "csr_matvec", "csr_matvec_p", "csr_todense", "csr_todense_p",
]

_publish(__name__)
