"""Linear systems and eigenvalues of sparse matrices: `spsolve`, `lobpcg_standard`."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import numpy as np

from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike
from ..control_flow.while_loop import while_loop
from ..core.trace import typeof
from ..custom.solves import custom_linear_solve
from ..host.callbacks import pure_callback
from ..lax.linalg.eigh import eigh
from ..lax.linalg.qr import qr
from ..numpy.creation import asarray
from ..numpy.joining import concatenate
from ..numpy.linalg.norms import norm
from ..numpy.promote import promote_dtypes
from ..numpy.selection import where
from ..types import dtypes
from ..types.avals import make_aval
from .defined import Defined
from .formats import WORDS, SparseInfo
from .products import bcoo_dot_general_p, bcsr_indices


def _by_scipy(data: np.ndarray, indices: np.ndarray, indptr: np.ndarray, b: np.ndarray,
              transposed: bool) -> np.ndarray:
    """The solution of A x = b by SciPy's SuperLU, which does not check indices."""
    n = b.shape[0]
    # Whatever the indices are, these are valid pointers and columns of a matrix of n rows.
    indptr = np.maximum.accumulate(np.clip(np.asarray(indptr), 0, len(data)))
    indptr[0] = 0
    rows = np.repeat(np.arange(n), np.diff(indptr))
    columns, data = np.asarray(indices)[:len(rows)], np.asarray(data)[:len(rows)]
    valid = (columns >= 0) & (columns < n)
    scipy = importlib.import_module("scipy.sparse")
    matrix = scipy.coo_matrix((data[valid], (rows[valid], columns[valid])), shape=(n, n)).tocsc()
    factors = importlib.import_module("scipy.sparse.linalg").splu
    if not n:
        return np.asarray(b)
    try:
        return factors(matrix).solve(np.asarray(b), "T" if transposed else "N").astype(b.dtype)
    except RuntimeError:        # exactly singular: NaN, as from our kernels of LAPACK
        return np.full(b.shape, np.nan, b.dtype)


def _spsolve(data: Array, indices: Array, indptr: Array, b: Array, *, tol: float, reorder: int
             ) -> Array:
    n = b.shape[0]
    index = bcsr_indices(indices, indptr, (n, n))

    def product(x: Array) -> Array:
        return bcoo_dot_general_p.bind(
            data, index, x, dimension_numbers=(((1,), (0,)), ((), ())),
            preferred_element_type=None, lhs_spinfo=SparseInfo((n, n)))

    def solver(transposed: bool) -> Callable[..., Array]:
        def solve(_: object, right: Array) -> Array:
            return pure_callback(
                lambda d, i, p, x: _by_scipy(d, i, p, x, transposed),
                make_aval(right.shape, right.dtype), data, indices, indptr, right,
                vmap_method="sequential")
        return solve

    return custom_linear_solve(product, b, solver(False), solver(True))


spsolve_p = Defined("spsolve", _spsolve)


def spsolve(data: ArrayLike, indices: ArrayLike, indptr: ArrayLike, b: ArrayLike,
            tol: float = 1e-6, reorder: int = 1) -> Array:
    """The solution of A x = b for a square matrix A by rows, by SciPy on the host.

    Args:
      data, indices, indptr: the arrays of a BCSR or CSR.
      b: a vector.
      tol, reorder: not used on a CPU, where SciPy's SuperLU orders and pivots itself.
    Returns: A vector; NaN for a singular matrix. Derivatives with respect to `data` and `b` are
      those of the equation.

    >>> A = sparse.BCSR.fromdense(onp.array([[2., 0.], [1., 4.]]))
    >>> print(sparse.linalg.spsolve(A.data, A.indices, A.indptr, onp.array([2., 9.])))
    [1. 2.]
    """
    data, b = promote_dtypes("spsolve", data, b)
    indices, indptr = asarray(indices), asarray(indptr)
    if b.ndim != 1 or any(x.ndim != 1 for x in (data, indices, indptr)):
        raise ValueError(f"spsolve: data {typeof(data)}, indices {typeof(indices)}, indptr "
                         f"{typeof(indptr)} and b {typeof(b)} given; vectors are required.")
    if indptr.shape[0] != b.shape[0] + 1 or indices.shape != data.shape:
        raise ValueError(f"spsolve: data {typeof(data)}, indices {typeof(indices)}, indptr "
                         f"{typeof(indptr)} and b {typeof(b)} given; as many data as indices, and "
                         "one pointer more than b has elements, are required.")
    if data.dtype.kind not in "fc" or dtypes.itemsize_bits(data.dtype) < 32:
        raise ValueError(f"spsolve: dtype {data.dtype} given; float32, float64, complex64 or "
                         "complex128 is required.")
    return spsolve_p.bind(data, indices, indptr, b, tol=float(tol), reorder=int(reorder))


# Locally optimal block preconditioned conjugate gradients ----------------------------------------

def _orthonormal(blocks: Array, basis: Array) -> Array:
    """Orthonormal columns, orthogonal to the columns of `basis`, that with them span `blocks`, too.

    Twice is enough (Kahan and Parlett). Columns that vanish become 0.
    """
    for _ in range(2):
        blocks = blocks - basis @ (basis.conj().T @ blocks)
    q, r = qr(blocks, full_matrices=False)
    size = abs(r.diagonal())
    eps = dtypes.finfo(blocks.dtype).eps
    return where(size > 10 * eps * where(size.max() > 0, size.max(), 1), q, 0)


def lobpcg_standard(A: ArrayLike | Callable[[Array], Array], X: ArrayLike, m: int = 100,
                    tol: float | None = None) -> tuple[Array, Array, Array]:
    """The largest eigenvalues of a symmetric positive definite matrix, and their eigenvectors.

    Args:
      A: the matrix [n, n], dense or sparse, or a function from [n, k] to its product with A.
      X: [n, k]: where the search begins; k columns, with 5 k <= n.
      m: the largest number of iterations.
      tol: an eigenvector is found when |A u - t u| < 10 n (|A u| + t) tol; None is the dtype's eps.
    Returns: (the k largest eigenvalues in descending order, their eigenvectors [n, k], how many
      iterations it took).

    The method is Knyazev's LOBPCG without a preconditioner (SIAM J. Sci. Comput. 23, 2001): the
    next block is the best one in the span of the block, its residual and the last step.

    >>> A = onp.diag(onp.arange(1., 11.))
    >>> X = random.normal(random.key(0), (10, 2))
    >>> print(sparse.linalg.lobpcg_standard(A, X, m=40)[0].round(3))
    [10.  9.]
    """
    product = A if callable(A) else (lambda x: A @ x)
    X = asarray(X)
    if X.ndim != 2 or not 0 < 5 * X.shape[1] <= X.shape[0]:
        raise ValueError(f"lobpcg_standard: X {typeof(X)} given; expected search dim * 5 < matrix "
                         "dim: [n, k] with 0 < 5 k <= n is required; eigh of the dense matrix "
                         "finds more.")
    if X.dtype.kind != "f":
        raise ValueError(f"lobpcg_standard: X of dtype {X.dtype} given; a floating dtype is "
                         "required.")
    shown = typeof(product(X))
    if shown.shape != X.shape or shown.dtype != X.dtype:
        raise ValueError(f"lobpcg_standard: A X is {shown} for X {typeof(X)}; A has a type or "
                         "shape that does not match; the same type is required.")
    n, k = X.shape
    least = dtypes.finfo(X.dtype).eps if tol is None else tol

    def ritz(basis: Array) -> tuple[Array, Array]:
        """The best k values in the span of a basis, and their coordinates."""
        small = basis.T @ product(basis)
        vectors, values = eigh((small + small.T) / 2)
        return values[::-1][:k], vectors[:, ::-1][:, :k]

    def residual(values: Array, block: Array) -> tuple[Array, Array]:
        image = product(block)
        rest = image - values[None] * block
        bound = 10 * n * least * (norm(image, axis=0) + abs(values))
        return rest, (norm(rest, axis=0) < bound).sum()

    def unfinished(state: tuple[Array, ...]) -> Array:
        i, *_, converged = state
        return (i < m) & (converged < k)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        i, block, direction, rest, _, _ = state
        new = _orthonormal(rest, block)
        basis = concatenate([block, new], 1)
        last = _orthonormal(direction, basis)
        basis = concatenate([basis, last], 1)
        values, at = ritz(basis)
        direction = basis[:, k:] @ at[k:]
        block, _ = qr(basis @ at, full_matrices=False)
        rest, converged = residual(values, block)
        return i + 1, block, direction, rest, values, converged

    block, _ = qr(X, full_matrices=False)
    values, at = ritz(block)
    block = block @ at
    rest, converged = residual(values, block)
    state = (asarray(0), block, 0 * block, rest, values, converged)
    i, block, _, _, values, _ = while_loop(unfinished, step, state)
    return values, block, i


complete_docstrings(globals(), WORDS, returns="an array.")
