"""Matrix factorisations and solvers, one primitive each, batched over leading axes."""

from .._src.lax.linalg.cholesky import cholesky, cholesky_p
from .._src.lax.linalg.eigh import EighImplementation, eigh, eigh_p
from .._src.lax.linalg.solve import triangular_solve, triangular_solve_p
from .._src.lax.linalg.svd import SvdAlgorithm, svd, svd_p
from .._src.lax.linalg.symmetric_product import symmetric_product, symmetric_product_p

__all__ = [
    "EighImplementation", "SvdAlgorithm", "cholesky", "cholesky_p", "eigh", "eigh_p", "svd",
    "svd_p", "symmetric_product", "symmetric_product_p", "triangular_solve", "triangular_solve_p"
]
