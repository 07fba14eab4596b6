"""`olympus.scipy.sparse.linalg`: systems given as functions, solved by Krylov spaces.

The iterations are loops on one vector, into which pytrees are laid out; derivatives follow from the
equation (`custom_linear_solve`), not from the iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

import numpy as np

from ..arrays.flatten_util import ravel_pytree
from ..autodiff.derivatives import linear_transpose
from ..base.docstrings import complete_docstrings
from ..base.typing import Array, ArrayLike, PyTree
from ..base.util import name_of, real_number
from ..control_flow.while_loop import fori_loop, while_loop
from ..core.trace import Tracer, typeof
from ..custom.solves import custom_linear_solve
from ..lax.barriers import stop_gradient
from ..lax.contract import dot_general
from ..lax.linalg.solve import triangular_solve
from ..numpy.arithmetic import abs as absolute, maximum, minimum
from ..numpy.creation import zeros, zeros_like
from ..numpy.elementary import sqrt
from ..numpy.manipulation import astype
from ..numpy.promote import array_args, inexact, promote_dtypes, to_array
from ..numpy.selection import where
from ..types import dtypes
from ..types.shape import definitely_equal, static_int
from ..types.tree import tree_flatten, tree_map, tree_structure

Operator: TypeAlias = Callable[[Any], Any]      # of vectors, or of users' pytrees
# (product, inverse, b, x0, b - A x0, least residual, most steps) -> x, info
Solver: TypeAlias = Callable[
    [Operator, Operator, Array, Array, Array, Array, int], tuple[Array, Array]]
Limit = TypeVar("Limit", int, float)


# Parts of all three methods ----------------------------------------------------------------------

def _dot(x: Array, y: Array) -> Array:
    """The sum of conj(x) y."""
    x = x.conj() if typeof(x).dtype.kind == "c" else x
    return dot_general(x, y, (((0,), (0,)), ((), ())), "highest")


def _size2(x: Array) -> Array:
    """The squared norm, real."""
    return _dot(x, x).real


def _function(system: object) -> Operator | None:
    """An operator as a function, perhaps of the product by it with `@`; None for a matrix."""
    if callable(system) and not hasattr(system, "shape"):
        return system
    try:
        typeof(system)
    except TypeError:
        return getattr(system, "__matmul__", None)
    return None


def _operator(name: str, what: str, system: object, b: ArrayLike) -> Operator:
    """A matrix, or a function of a pytree like b, as a function of its vector."""
    vector, unravel = ravel_pytree(b)
    if (product := _function(system)) is not None:
        def call(x: Array) -> Array:
            out = product(unravel(x))
            if tree_structure(out) != tree_structure(b):
                raise ValueError(f"{name}: {what} {name_of(system)} returned "
                                 f"{tree_structure(out)}; the structure of b, "
                                 f"{tree_structure(b)}, is required.")
            return astype(ravel_pytree(out)[0], vector.dtype)
        return call
    if not hasattr(system, "shape"):
        raise TypeError(f"{name}: {what} of type {type(system).__name__} given; a linear operator "
                        "must be either a function or ndarray, or have a method __matmul__.")
    matrix = to_array(array_args(name, system)[0])
    shape = typeof(matrix).shape
    n = typeof(vector).shape[0]
    leaves = tree_flatten(b)[0]
    if len(leaves) != 1 or typeof(leaves[0]).ndim != 1 or len(shape) != 2 or not all(
            definitely_equal(size, n) for size in shape):
        raise ValueError(f"{name}: {what} {typeof(matrix)} and b of {n} numbers given; a linear "
                         "operator must be a square matrix of that size, and b a vector; for other "
                         "vectors pass a function.")
    matrix = astype(matrix, vector.dtype)
    return lambda x: dot_general(matrix, x, (((1,), (0,)), ((), ())), "highest")


def _inexact_vectors(name: str, A: object, b: PyTree, x0: PyTree | None) -> tuple[PyTree, PyTree]:
    """b and x0 as pytrees of floating dtypes, also where A is a matrix."""
    matrix = [A] if _function(A) is None else []

    def leaf(x: ArrayLike) -> Array:
        return inexact(to_array(promote_dtypes(name, *array_args(name, x, *matrix))[0]))

    b = tree_map(leaf, b)
    if x0 is None:
        # Made of the types alone: where b is a tangent, the start is no function of it.
        return b, tree_map(zeros_like, b)
    if tree_structure(x0) != tree_structure(b):
        raise ValueError(f"{name}: x0 and b must have matching tree structure: "
                         f"{tree_structure(x0)} and {tree_structure(b)} given.")

    def start(x: ArrayLike, like: Array) -> Array:
        x = to_array(array_args(name, x)[0])
        if typeof(x).shape != typeof(like).shape:
            raise ValueError(f"{name}: arrays in x0 and b must have matching shapes: {typeof(x)} "
                             f"and {typeof(like)} given.")
        return astype(x, like.dtype)

    return b, tree_map(start, x0, b)


def _limit(limit: object, name: str, what: str, kinds: str, static: Callable[..., Limit]
           ) -> Limit:
    """A number that says when to stop, also a traced one: the solution is no function of it."""
    if not isinstance(limit, Tracer):
        return static(limit, name, what)
    aval = typeof(limit)
    if aval.shape or dtypes.scalar_kind(aval.dtype) not in kinds:
        raise TypeError(f"{name}: {what} {aval} given; {'a number' if 'f' in kinds else 'an int'} "
                        "is required.")
    return stop_gradient(limit)


def _real_option(option: object, name: str, what: str) -> float:
    return real_number(option, f"{name}: {what}")


def _solved(name: str, iterate: Solver, A: object, b: PyTree, x0: PyTree | None, tol: float,
            atol: float, maxiter: object, M: object) -> tuple[PyTree, Array]:
    """Run `iterate(product, inverse, b, x0, b - A x0, least residual, maxiter)` as a differentiable
    solve."""
    zero = x0 is None       # then b is the first residual, without a product
    b, x0 = _inexact_vectors(name, A, b, x0)
    vector, unravel = ravel_pytree(b)
    start = stop_gradient(ravel_pytree(x0)[0])
    product = _operator(name, "A", A, b)
    inverse = (lambda x: x) if M is None else _operator(name, "M", M, b)
    limit = (10 * typeof(vector).shape[0] if maxiter is None else
             _limit(maxiter, name, "maxiter", "iu", static_int))
    tol, atol = [_limit(x, name, what, "iuf", _real_option)
                 for x, what in ((tol, "tol"), (atol, "atol"))]

    def solver(start: Array, zero: bool, inverse: Operator
               ) -> Callable[[Operator, Array], tuple[Array, Array]]:
        def solve(product: Operator, b: Array) -> tuple[Array, Array]:
            least = maximum(tol * sqrt(_size2(b)), atol)
            residual = b if zero else b - product(start)
            return iterate(product, inverse, b, start, residual, least, limit)
        return solve

    def transposed(x: Array) -> Array:
        return linear_transpose(inverse, vector)(x)[0]

    x, info = custom_linear_solve(product, vector, solver(start, zero, inverse), has_aux=True,
                                  transpose_solve=solver(start * 0, True, transposed))
    return unravel(x), info


def _info(residual: Array, least: ArrayLike, steps: Array) -> Array:
    """0 where the residual is small enough, else the number of steps; as SciPy reports."""
    return where(residual <= least, 0, maximum(steps, 1)).astype(np.int32)


# The solvers -------------------------------------------------------------------------------------

def cg(A: ArrayLike | Operator, b: PyTree, x0: PyTree | None = None, *, tol: float = 1e-5,
       atol: float = 0.0, maxiter: int | None = None, M: ArrayLike | Operator | None = None
       ) -> tuple[PyTree, Array]:
    """Solve A x = b for a Hermitian, positive definite A by conjugate gradients.

    Hestenes and Stiefel, "Methods of conjugate gradients for solving linear systems", 1952.
    Derivatives in either mode are the solution's, by b and by the values that A closes over.

    Args: M: a preconditioner: an approximation of A's inverse, Hermitian and positive definite, in
        either form of A.
    Returns: (x, info), x of b's structure; info is int32: 0 where the residual is that small, else
      the number of steps. (JAX's is None.)

    Raises ValueError for shapes and structures that do not fit.

    >>> a = onp.array([[4., 1.], [1., 3.]])
    >>> x, info = olympus.scipy.sparse.linalg.cg(a, onp.array([1., 2.]))
    >>> print(onp.round(x, 4), info)
    [0.0909 0.6364] 0
    """
    return _solved("cg", _conjugate_gradients, A, b, x0, tol, atol, maxiter, M)


def _conjugate_gradients(product: Operator, inverse: Operator, b: Array, x: Array, r: Array,
                         least: Array, limit: int) -> tuple[Array, Array]:
    def going(state: Sequence[Array]) -> Array:
        *_, size, k = state
        return (size > least ** 2) & (k < limit)

    def step(state: Sequence[Array]) -> tuple[Array, ...]:
        x, r, p, before, size, k = state
        z = inverse(r)
        weight = size if z is r else _dot(r, z).real
        # In front of the product: XLA would copy a direction that is replaced after it is read.
        p = z + astype(weight / before, p.dtype) * p
        image = product(p)
        along = astype(weight / _dot(p, image).real, p.dtype)
        x, r = x + along * p, r - along * image
        return x, r, p, weight, _size2(r), k + 1

    size = _size2(r)
    none = zeros_like(size) + np.inf    # the weight before the first
    x, *_, size, k = while_loop(going, step, (x, r, r, none, size, np.int32(0)))
    return x, _info(sqrt(size), least, k)


def bicgstab(A: ArrayLike | Operator, b: PyTree, x0: PyTree | None = None, *, tol: float = 1e-5,
             atol: float = 0.0, maxiter: int | None = None, M: ArrayLike | Operator | None = None
             ) -> tuple[PyTree, Array]:
    """Solve A x = b for any regular A by stabilised biconjugate gradients.

    Van der Vorst, "Bi-CGSTAB: a fast and smoothly converging variant of Bi-CG for the solution of
    nonsymmetric linear systems", 1992. Derivatives are the solution's.

    Returns: (x, info), x of b's structure; info is int32: 0 where the residual is that small, else
      the number of steps, also if the method has broken down. (JAX's is None.)

    Raises ValueError for shapes and structures that do not fit.

    >>> a = onp.array([[4., 1.], [0., 3.]])
    >>> x, info = olympus.scipy.sparse.linalg.bicgstab(a, onp.array([6., 6.]))
    >>> print(onp.round(x, 3), info)
    [1. 2.] 0
    """
    return _solved("bicgstab", _bicgstab, A, b, x0, tol, atol, maxiter, M)


def _bicgstab(product: Operator, inverse: Operator, b: Array, x: Array, first: Array, least: Array,
              limit: int) -> tuple[Array, Array]:
    one = _dot(first, first) * 0 + 1

    def going(state: PyTree) -> Array:
        *_, r, k, sound = state
        return (_size2(r) > least ** 2) & (k < limit) & sound

    def step(state: PyTree) -> PyTree:
        x, p, v, rho, alpha, omega, r, k, _ = state
        new = _dot(first, r)
        p = r + new / rho * alpha / omega * (p - omega * v)
        direction = inverse(p)
        v = product(direction)
        across = _dot(first, v)
        alpha = new / across
        s = r - alpha * v
        smoothed = inverse(s)
        t = product(smoothed)
        squares = _size2(t)
        done = squares == 0     # the first half of the step has hit the solution
        omega = where(done, 0, _dot(t, s) / astype(where(done, 1, squares), t.dtype))
        moved = x + alpha * direction + omega * smoothed
        sound = (new != 0) & (across != 0)
        x, r = where(sound, moved, x), where(sound, s - omega * t, r)
        return x, p, v, new, alpha, omega, r, k + 1, sound & (~done | (_size2(r) <= least ** 2))

    state = (x, first * 0, first * 0, one, one, one, first, np.int32(0), one.real == 1)
    x, *_, r, k, _ = while_loop(going, step, state)
    return x, _info(sqrt(_size2(r)), least, k)


def gmres(A: ArrayLike | Operator, b: PyTree, x0: PyTree | None = None, *, tol: float = 1e-5,
          atol: float = 0.0, restart: int = 20, maxiter: int | None = None,
          M: ArrayLike | Operator | None = None, solve_method: str = "batched"
          ) -> tuple[PyTree, Array]:
    """Solve A x = b for any regular A by least residuals over Krylov spaces.

    Saad and Schultz, "GMRES: a generalized minimal residual algorithm for solving nonsymmetric
    linear systems", 1986. Derivatives are the solution's.

    Args:
      tol, atol: it stops when the norm of the residual, with M applied to both sides, has fallen to
        max(tol ‖b‖, atol) / ‖b‖ times the norm of M b. They and maxiter may be traced.
      restart: the dimension of a Krylov space, at most; so many vectors are kept.
      maxiter: how many spaces are built, at most; ten times the number of unknowns unless given.
      solve_method: "batched" builds each space whole; "incremental" ends in the midst of one when
        the residual is small enough.
    Returns: (x, info), x of b's structure; info is int32: 0 where the residual is that small, else
      the number of spaces. (JAX's is None.)

    Raises ValueError for shapes and structures that do not fit and another solve_method.

    >>> a = onp.array([[4., 1.], [0., 3.]])
    >>> x, info = olympus.scipy.sparse.linalg.gmres(a, onp.array([6., 6.]))
    >>> print(onp.round(x, 3), info)
    [1. 2.] 0
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(f"gmres: solve_method {solve_method!r} given; 'batched' or 'incremental' "
                         "is required.")
    size = static_int(restart, "gmres", "restart")
    if size < 1:
        raise ValueError(f"gmres: restart {size} given; a positive int is required.")

    def iterate(product: Operator, inverse: Operator, b: Array, x: Array, r: Array, least: Array,
                limit: int) -> tuple[Array, Array]:
        return _gmres(product, inverse, b, x, r, least, limit,
                      min(size, static_int(typeof(b).shape[0], "gmres", "size")),
                      solve_method == "batched")

    return _solved("gmres", iterate, A, b, x0, tol, atol, maxiter, M)


def _gmres(product: Operator, inverse: Operator, b: Array, x: Array, r: Array, least: Array,
           limit: int, size: int, whole: bool) -> tuple[Array, Array]:
    norm = sqrt(_size2(b))
    least = sqrt(_size2(inverse(b))) * minimum(1, least / where(norm > 0, norm, 1))

    def inverted(r: Array) -> tuple[Array, Array]:
        r = inverse(r)
        return r, sqrt(_size2(r))

    def going(state: PyTree) -> Array:
        return (state[2] > least) & (state[3] < limit)

    def cycle(state: PyTree) -> PyTree:
        x, r, beta, k = state
        x = x + _correction(lambda v: inverse(product(v)), r, beta, least, size, whole)
        return x, *inverted(b - product(x)), k + 1

    x, _, beta, k = while_loop(going, cycle, (x, *inverted(r), np.int32(0)))
    return x, _info(beta, least, k)


def _correction(product: Operator, r: Array, beta: Array, least: Array, size: int, whole: bool
                ) -> Array:
    """The vector of the Krylov space of r, of at most `size` dimensions, with least residual.

    Arnoldi's vectors are rows of v. Their Hessenberg matrix is made triangular by Givens rotations
    as it grows: `upper` keeps its columns, `side` the rotated right side.
    """
    n = typeof(r).shape[0]
    real = dtypes.to_real_dtype(r.dtype)
    v = zeros((size + 1, n), r.dtype).at[0].set(r / astype(where(beta > 0, beta, 1), r.dtype))
    upper = zeros((size, size + 1), r.dtype)
    side = zeros((size + 1,), r.dtype).at[0].set(astype(beta, r.dtype))
    turns = zeros((size, 2), r.dtype)

    def rotated(column: Array, i: Array, turn: Array) -> Array:
        a, b = column[i], column[i + 1]
        cos, sin = turn[0], turn[1]
        column = column.at[i].set(cos.conj() * a + sin.conj() * b)
        return column.at[i + 1].set(cos * b - sin * a)

    def step(state: PyTree) -> PyTree:
        v, upper, side, turns, k = state
        w = product(v[k])
        length = sqrt(_size2(w))
        column = zeros((size + 1,), r.dtype)
        for _ in range(2):      # the second time orthogonality reaches the precision
            along = dot_general(v.conj(), w, (((1,), (0,)), ((), ())), "highest")
            w = w - dot_general(along, v, (((0,), (0,)), ((), ())), "highest")
            column = column + along
        rest = sqrt(_size2(w))
        new = rest > length * float(dtypes.finfo(real).eps)     # else the space is invariant
        v = v.at[k + 1].set(where(new, w / astype(where(new, rest, 1), r.dtype), 0))
        column = column.at[k + 1].set(astype(where(new, rest, 0), r.dtype))
        column = fori_loop(0, size, lambda i, c: where(i < k, rotated(c, i, turns[i]), c), column)
        a, b = column[k], column[k + 1]
        radius = sqrt(absolute(a) ** 2 + absolute(b) ** 2)
        some = radius > 0
        turn = where(some, column[np.arange(2) + k] / astype(where(some, radius, 1), r.dtype),
                     np.array([1, 0], r.dtype))
        return (v, upper.at[k].set(rotated(column, k, turn)), rotated(side, k, turn),
                turns.at[k].set(turn), k + 1)

    def going(state: PyTree) -> Array:
        *_, side, _, k = state
        return (k < size) & (whole | (absolute(side[k]) > least))

    v, upper, side, _, k = while_loop(going, step, (v, upper, side, turns, np.int32(0)))
    triangle = upper[:, :size].T
    ones = np.eye(size, dtype=bool)
    triangle = where(ones & (triangle == 0), 1, triangle)
    done = where(np.arange(size) < k, side[:size], 0)
    y = triangular_solve(triangle, done, left_side=True)
    y = where(where(ones, upper[:, :size], 0).sum(1) == 0, 0, y)
    return dot_general(y, v[:size], (((0,), (0,)), ((), ())), "highest")


complete_docstrings(globals(), {
    "A": "a matrix [n, n], a linear function of a pytree like b, or what has one as `__matmul__`.",
    "b": "the right side: a vector, or a pytree of arrays; integers become floats.",
    "x0": "where to start, of b's structure; zeros unless given.",
    "tol, atol":
        "it stops when the norm of the residual is not above max(tol ‖b‖, atol). They and\n"
        "maxiter may be traced.",
    "maxiter": "the largest number of steps; ten times the number of unknowns unless given.",
    "M": "a preconditioner: an approximation of A's inverse, in either form of A.",
})
