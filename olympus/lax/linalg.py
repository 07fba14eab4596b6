"""Matrix factorisations and solvers, one primitive each, batched over leading axes."""

from .._src.lax.linalg.cholesky import cholesky, cholesky_p
from .._src.lax.linalg.solve import triangular_solve, triangular_solve_p

__all__ = ["cholesky", "cholesky_p", "triangular_solve", "triangular_solve_p"]
