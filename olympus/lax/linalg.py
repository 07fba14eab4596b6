"""Matrix factorisations and solvers, one primitive each, batched over leading axes."""

from .._src.base.util import publish_bounded as _publish
from .._src.matrix.hessenberg import hessenberg, hessenberg_p, tridiagonal, tridiagonal_p
from .._src.matrix.polar import qdwh
from .._src.matrix.schur import schur, schur_p
from .._src.lax.linalg.cholesky import cholesky, cholesky_p, cholesky_update, cholesky_update_p
from .._src.lax.linalg.eig import EigImplementation, eig, eig_p
from .._src.lax.linalg.eigh import EighImplementation, eigh, eigh_p
from .._src.lax.linalg.lu import lu, lu_p, lu_pivots_to_permutation, lu_pivots_to_permutation_p
from .._src.lax.linalg.qr import (
    householder_product, householder_product_p, ormqr, ormqr_p, qr, qr_p
)
from .._src.lax.linalg.solve import (
    triangular_solve, triangular_solve_p, tridiagonal_solve, tridiagonal_solve_p
)
from .._src.lax.linalg.svd import SvdAlgorithm, svd, svd_p
from .._src.lax.linalg.symmetric_product import symmetric_product, symmetric_product_p

__all__ = [
    "EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p",
    "cholesky_update", "cholesky_update_p", "eig", "eig_p", "eigh", "eigh_p", "hessenberg",
    "hessenberg_p", "householder_product", "householder_product_p", "lu", "lu_p",
    "lu_pivots_to_permutation", "lu_pivots_to_permutation_p", "ormqr", "ormqr_p", "qdwh", "qr",
    "qr_p", "schur", "schur_p", "svd", "svd_p", "symmetric_product", "symmetric_product_p",
    "triangular_solve", "triangular_solve_p", "tridiagonal", "tridiagonal_p", "tridiagonal_solve",
    "tridiagonal_solve_p"
]

_publish(__name__)
