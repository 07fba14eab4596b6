"""Factorisations, equations and functions of matrices, beyond `olympus.numpy.linalg`."""

from .._src.base.util import publish_bounded as _publish
from .._src.scipy.linalg.bands import (
    cho_solve_banded, cholesky_banded, solve_banded, solve_toeplitz, solveh_banded
)
from .._src.scipy.linalg.equations import (
    solve_continuous_lyapunov, solve_discrete_lyapunov, solve_lyapunov, solve_sylvester
)
from .._src.scipy.linalg.factors import (
    cho_factor, cholesky, hessenberg, lu, lu_factor, polar, qr, qr_multiply, rsf2csf, schur, svd
)
from .._src.scipy.linalg.matrix_functions import (
    coshm, cosm, expm, expm_frechet, fractional_matrix_power, funm, logm, signm, sinhm, sinm,
    sqrtm, tanhm, tanm
)
from .._src.scipy.linalg.special_matrices import (
    block_diag, circulant, companion, convolution_matrix, dft, fiedler, fiedler_companion,
    hadamard, hankel, helmert, hilbert, invhilbert, invpascal, leslie, pascal, toeplitz
)
from .._src.scipy.linalg.spectra import eigh, eigh_tridiagonal, eigvalsh, eigvalsh_tridiagonal
from .._src.scipy.linalg.subspaces import (
    bandwidth, khatri_rao, lstsq, null_space, orth, pinv, pinvh, subspace_angles
)
from .._src.scipy.linalg.systems import cho_solve, det, inv, lu_solve, solve, solve_triangular

__all__ = [
    "bandwidth", "block_diag", "cho_factor", "cho_solve", "cho_solve_banded", "cholesky",
    "cholesky_banded", "circulant", "companion", "convolution_matrix", "coshm", "cosm", "det",
    "dft", "eigh", "eigh_tridiagonal", "eigvalsh", "eigvalsh_tridiagonal", "expm", "expm_frechet",
    "fiedler", "fiedler_companion", "fractional_matrix_power", "funm", "hadamard", "hankel",
    "helmert", "hessenberg", "hilbert", "inv", "invhilbert", "invpascal", "khatri_rao", "leslie",
    "logm", "lstsq", "lu", "lu_factor", "lu_solve", "null_space", "orth", "pascal", "pinv", "pinvh",
    "polar", "qr", "qr_multiply", "rsf2csf", "schur", "signm", "sinhm", "sinm", "solve",
    "solve_banded", "solve_continuous_lyapunov", "solve_discrete_lyapunov", "solve_lyapunov",
    "solve_sylvester", "solve_toeplitz", "solve_triangular", "solveh_banded", "sqrtm",
    "subspace_angles", "svd", "tanhm", "tanm", "toeplitz"
]

_publish(__name__)
