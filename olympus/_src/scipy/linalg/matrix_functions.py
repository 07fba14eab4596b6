"""Functions of matrices: exponential, square root, logarithm, powers, and any by Schur's form."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ...autodiff.derivatives import jvp, linearize
from ...base.docstrings import complete_docstrings
from ...base.typing import Array, ArrayLike
from ...base.util import real_number
from ...control_flow.branches import cond, switch
from ...control_flow.scan import scan
from ...control_flow.while_loop import while_loop
from ...core.trace import typeof
from ...custom.jvp import custom_jvp
from ...custom.solves import custom_linear_solve
from ...custom.vmap import custom_vmap
from ...jit.fused import fused, named
from ...lax.barriers import stop_gradient
from ...lax.linalg.core import adjoint, eye, matmul, matrix_transpose, triu
from ...lax.linalg.lu import lu_solve
from ...lax.linalg.solve import triangular_solve
from ...matrix.schur import schur
from ...numpy import reductions
from ...numpy.arithmetic import abs as absolute, maximum, minimum
from ...numpy.elementary import ceil, exp2, expm1, isfinite, log, log2, sqrt
from ...numpy.joining import block
from ...numpy.linalg.systems import matrix_power
from ...numpy.manipulation import astype
from ...numpy.selection import where
from ...types import dtypes
from .arguments import count_of, options, places_of, size_of, square
from .equations import column_of, element_of, sylvester, triangular_columns
from .factors import rsf2csf

# The exponential ---------------------------------------------------------------------------------

# Per order of Padé approximants: the norm up to which their backward error is below half a unit in
# the last place (Higham, "The scaling and squaring method for the matrix exponential revisited",
# 2005; of order 13 in Al-Mohy and Higham, 2009).
_SINGLE = {3: 4.258730016922831e-1, 5: 1.880152677804762, 7: 3.925724783138660}
_DOUBLE = {3: 1.495585217958292e-2, 5: 2.539398330063230e-1, 7: 9.504178996162932e-1,
           9: 2.097847961257068, 13: 4.25}


@fused(static=("upper_triangular", "max_squarings"))
def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """The exponential of matrices, by scaling, a Padé approximant and squaring.

    The order of the approximant and the number of squarings follow from the norms of powers:
    Al-Mohy and Higham, "A new scaling and squaring algorithm for the matrix exponential", 2009. The
    algorithm itself is differentiated, in either mode.

    Args:
      upper_triangular: A is upper triangular: its other triangle is not read.
      max_squarings: a matrix that needs more has NaN for its exponential; SciPy has no such bound.

    Raises ValueError unless the matrices are square.

    >>> print(olympus.scipy.linalg.expm(onp.array([[0., 1.], [0., 0.]])))
    [[1. 1.]
     [0. 1.]]
    """
    (x,) = square("expm", A)
    limit = count_of("expm", "max_squarings", max_squarings, most=10_000)
    if typeof(x).size == 0:
        return x
    return exponential(triu(x) if upper_triangular else x, bool(upper_triangular), limit)


def exponential(x: Array, upper: bool = False, limit: int = 16) -> Array:
    """The exponential of x[..., n, n]; where mapped, the new axis is one of the batch."""
    @custom_vmap
    def call(x: Array) -> Array:
        return _exponential(x, upper, limit)

    @call.def_vmap
    def mapped(axis_size: int, in_batched: Sequence[bool], x: Array) -> tuple[Array, bool]:
        return call(x), True

    return call(x)


def _exponential(a: Array, upper: bool, limit: int) -> Array:
    orders = _DOUBLE if dtypes.finfo(a.dtype).bits == 64 else _SINGLE
    a2 = matmul(a, a)
    a4 = matmul(a2, a2)
    a6 = matmul(a4, a2)
    which, count = _order_and_squarings(stop_gradient(a), stop_gradient(a4), stop_gradient(a6),
                                        orders)
    scale = exp2(-minimum(count, limit))[..., None, None]
    odd, even = switch(reductions.max(which, initial=0), [_pade(m) for m in orders], scale, a, a2,
                       a4, a6)
    if upper:
        x = triangular_solve(even - odd, even + odd, left_side=True)
    else:
        x = lu_solve(even - odd, even + odd)
    most = reductions.max(count, initial=0)

    # A scan of as many steps as there may be, which reverse mode can follow; idle ones cost little.
    def step(x: Array, i: Array) -> tuple[Array, None]:
        squared = cond(i < most, lambda x: where((i < count)[..., None, None], matmul(x, x), x),
                       lambda x: x, x)
        return squared, None

    x, _ = scan(step, x, np.arange(limit, dtype=np.float32))
    return where((count <= limit)[..., None, None], x, np.nan)


def _norm(x: Array) -> Array:
    """The largest sum of absolute values of a column: [..., n, n] -> [...]."""
    return reductions.max(reductions.sum(absolute(x), -2), -1)


def _order_and_squarings(a: Array, a4: Array, a6: Array,
                         orders: dict[int, float]) -> tuple[Any, Array]:
    """Which of the orders suits each matrix, and how often the last must be squared then.

    An order m suits if its bound is not below the roots of the norms of a⁴ and a⁶, and if rounding
    errors do not show: those grow as ‖|a|^(2m+1)‖ does.
    """
    eta = maximum(_norm(a4) ** 0.25, _norm(a6) ** (1 / 6))
    size = _norm(a)
    needed, most = ([maximum(ceil(log2(x) - math.log2(bound)), 0) for bound in orders.values()]
                    for x in (eta, size))
    # Where the norm alone says no more than the roots do, rounding errors say nothing either.
    same = reductions.all(sum(most) == sum(needed))
    needed = cond(same, lambda needed, *_: needed, lambda needed, a, size: _against_rounding(
        needed, a, size, list(orders)), needed, a, size)
    which = sum(astype(~(s <= 0), np.int32) for s in needed[:-1])
    count = needed[-1]
    return which, where(isfinite(count), count, np.inf)


def _against_rounding(needed: list, a: Array, size: Array, orders: list[int]) -> list:
    """The squarings of each order, more where rounding errors would show."""
    positive = absolute(a) / where(size > 0, size, 1)[..., None, None]
    bits = 1 - math.log2(float(dtypes.finfo(a.dtype).eps))

    def step(row: Array, _: None) -> tuple[Array, Array]:
        row = matmul(row, positive)
        return row, reductions.max(row, (-2, -1))

    _, norms = scan(step, positive[..., :1, :] * 0 + 1, None, 2 * max(orders) + 1)
    more = []
    for m, squarings in zip(orders, needed, strict=True):
        first = 2 * math.lgamma(m + 1) - math.lgamma(2 * m + 1) - math.lgamma(2 * m + 2)
        errors = first / math.log(2) + bits + log2(norms[2 * m]) + 2 * m * log2(size)
        more.append(maximum(squarings, ceil(errors / (2 * m))))
    return more


def _pade(m: int) -> Callable[..., tuple[Array, Array]]:
    """The odd and the even part of the numerator of order m, from what scales a, and a, a², a⁴, a⁶.
    """
    b = [math.factorial(2 * m - k) / (math.factorial(m - k) * math.factorial(k))
         for k in range(m + 1)]

    def parts(scale: Array, *powers: Array) -> tuple[Array, Array]:
        a, a2, a4, a6 = (astype(x * scale ** k, x.dtype)
                         for k, x in zip((1, 2, 4, 6), powers, strict=True))
        one = eye(a)
        squares = [one, a2, a4, a6]
        if m == 9:
            squares.append(matmul(a6, a2))

        def half(first: int) -> Array:
            total = b[first] * one
            for k, power in enumerate(squares[1:min(len(squares), m // 2 + 1)], 1):
                total = total + b[2 * k + first] * power
            if m == 13:
                total = total + matmul(a6, sum(b[2 * (k + 3) + first] * squares[k]
                                               for k in (1, 2, 3)))
            return total

        return matmul(a, half(1)), half(0)

    return parts


@named
def expm_frechet(A: ArrayLike, E: ArrayLike, *, method: str | None = None,
                 compute_expm: bool = True) -> Any:
    """The exponential of A, and its Fréchet derivative in the direction E.

    It is `jvp` of `expm`: the derivative of scaling, Padé approximant and squaring, which SciPy
    calls "SPS".

    Args:
      A, E: [..., n, n], of one shape; integers become floats.
      method: None, "SPS", or "blockEnlarge": the upper right block of the exponential of
        ((A, E), (0, A)), at eight times the cost.
      compute_expm: return the exponential, too.
    Returns: (expm(A), the derivative), or the derivative; [..., n, n] each.

    Raises ValueError for different shapes and another method.

    >>> print(olympus.scipy.linalg.expm_frechet(onp.zeros((2, 2)), onp.eye(2))[1])
    [[1. 0.]
     [0. 1.]]
    """
    options("expm_frechet", "method", method, (None, "SPS", "blockEnlarge"))
    a, e = square("expm_frechet", A, E)
    if typeof(a).shape != typeof(e).shape:
        raise ValueError(f"expm_frechet: {typeof(a)} and {typeof(e)} given; equal shapes are "
                         "required.")
    if method == "blockEnlarge":
        n = size_of(a)
        whole = expm(_enlarged(a, e))
        value, moved = whole[..., :n, :n], whole[..., :n, n:]
    else:
        value, moved = jvp(expm, (a,), (e,))
    return (value, moved) if compute_expm else moved


def _enlarged(a: Array, e: Array) -> Array:
    """((a, e), (0, a)): a function of it has the function of a, and its derivative along e,
    above.
    """
    return block([[a, e], [a * 0, a]])


# By exponentials ---------------------------------------------------------------------------------

@fused
def cosm(A: ArrayLike) -> Array:
    """The cosine of matrices, from exponentials of iA.

    >>> print(olympus.scipy.linalg.cosm(onp.zeros((2, 2))))
    [[1. 0.]
     [0. 1.]]
    """
    (x,) = square("cosm", A)
    if typeof(x).dtype.kind != "c":
        return exponential(x * 1j).real
    return (exponential(x * 1j) + exponential(x * -1j)) / 2


@fused
def sinm(A: ArrayLike) -> Array:
    """The sine of matrices, from exponentials of iA.

    >>> print(olympus.scipy.linalg.sinm(onp.zeros((2, 2))))
    [[0. 0.]
     [0. 0.]]
    """
    (x,) = square("sinm", A)
    if typeof(x).dtype.kind != "c":
        return exponential(x * 1j).imag
    return (exponential(x * 1j) - exponential(x * -1j)) / 2j


@fused
def tanm(A: ArrayLike) -> Array:
    """The tangent of matrices: cosm(A)⁻¹ sinm(A).

    >>> print(olympus.scipy.linalg.tanm(onp.zeros((2, 2))))
    [[0. 0.]
     [0. 0.]]
    """
    return lu_solve(cosm(A), sinm(A))


@fused
def coshm(A: ArrayLike) -> Array:
    """The hyperbolic cosine of matrices: (expm(A) + expm(-A)) / 2.

    >>> print(olympus.scipy.linalg.coshm(onp.zeros((2, 2))))
    [[1. 0.]
     [0. 1.]]
    """
    (x,) = square("coshm", A)
    return (exponential(x) + exponential(-x)) / 2


@fused
def sinhm(A: ArrayLike) -> Array:
    """The hyperbolic sine of matrices: (expm(A) - expm(-A)) / 2.

    >>> print(olympus.scipy.linalg.sinhm(onp.zeros((2, 2))))
    [[0. 0.]
     [0. 0.]]
    """
    (x,) = square("sinhm", A)
    return (exponential(x) - exponential(-x)) / 2


@fused
def tanhm(A: ArrayLike) -> Array:
    """The hyperbolic tangent of matrices: coshm(A)⁻¹ sinhm(A).

    >>> print(olympus.scipy.linalg.tanhm(onp.zeros((2, 2))))
    [[0. 0.]
     [0. 0.]]
    """
    return lu_solve(coshm(A), sinhm(A))


# By Schur's form ---------------------------------------------------------------------------------

def _complex_schur(x: Array) -> tuple[Array, Array]:
    """The complex Schur form; real eigenvalues of a real matrix are on no side of a branch cut."""
    t, z = schur(x)
    if typeof(x).dtype.kind == "c":
        return t, z
    t, z = rsf2csf(t, z)
    return where(t.imag == 0, astype(t.real, t.dtype), t), z


def _above(x: Array, j: Array) -> Array | np.ndarray:
    """bool[n, 1]: the rows before j."""
    return places_of(x)[:, None] < j


def _framed(matrix: Array, j: Array) -> Array:
    """`matrix` in the first j rows, the identity's below."""
    return where(_above(matrix, j), matrix, eye(matrix))


def _triangular_sqrt(t: Array) -> Array:
    """The upper triangular square root, by columns: Björck and Hammarling, 1983."""
    roots = sqrt(t.diagonal(axis1=-2, axis2=-1))[..., None, :] * eye(t)

    def column(j: Array, root_so_far: Array) -> tuple[Array, Array]:
        root = element_of(roots, j)
        right = where(_above(t, j), column_of(t, j), column_of(roots, j))
        return _framed(root_so_far + root * eye(t), j), right

    return triangular_columns(column, t)


@custom_jvp
def _sqrt(a: Array) -> Array:
    t, z = _complex_schur(a)
    return matmul(z, matmul(_triangular_sqrt(t), adjoint(z)))


@_sqrt.defjvp
def _sqrt_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
    """S Ṡ + Ṡ S = ȧ."""
    s = _sqrt(*primals)
    return s, sylvester(s, s, astype(tangents[0], s.dtype))


@fused(static=("blocksize",))
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """The principal square root of matrices, by their complex Schur form.

    Björck and Hammarling, "A Schur method for the square root of a matrix", 1983. The derivative
    follows from the equation S S = A.

    Args: blocksize: of other implementations; without effect.
    Returns: [..., n, n], complex whatever the dtype of A: take the real part where it is known to
      be real. SciPy returns that where it finds the imaginary one zero.

    Raises ValueError unless the matrices are square.

    >>> print(olympus.scipy.linalg.sqrtm(onp.array([[4., 0.], [0., 9.]])).real)
    [[2. 0.]
     [0. 3.]]
    """
    (x,) = square("sqrtm", A)
    return _sqrt(x)


def funm(A: ArrayLike, func: Callable[[Array], Array], disp: bool = True) -> Any:
    """A function of a matrix, given as a function of its eigenvalues.

    By Parlett's recurrence on the complex Schur form; it divides by differences of eigenvalues.

    Args: func: an analytic function that takes an array of complex numbers, elementwise.
    Returns: complex[..., n, n]; unless `disp` a pair of it and of the relative error's estimate,
      [...], which is large where eigenvalues almost agree.

    Raises ValueError unless the matrices are square, TypeError for a `func` that is no function.

    >>> a = onp.array([[1., 3.], [1., 4.]])
    >>> print(onp.allclose(olympus.scipy.linalg.funm(a, lambda x: x * x), a @ a, atol=1e-4))
    True
    """
    (x,) = square("funm", A)
    if not callable(func):
        raise TypeError(f"funm: func {func!r} given; a function is required.")
    t, z = _complex_schur(x)
    return _by_columns(t, z, func(t.diagonal(axis1=-2, axis2=-1)), disp)


@named
def _by_columns(t: Array, z: Array, values: Array, disp: bool) -> Any:
    """`funm`, given its values on the diagonal of the Schur form."""
    values = values[..., None, :] * eye(t)

    def column(j: Array, solved: Array) -> tuple[Array, Array]:
        right = where(_above(t, j), -matmul(solved, column_of(t, j)), column_of(values, j))
        return _framed(element_of(t, j) * eye(t) - t, j), right

    f = triangular_columns(column, t)
    out = matmul(z, matmul(f, adjoint(z)))
    if disp:
        return out
    w = t.diagonal(axis1=-2, axis2=-1)
    gaps = absolute(w[..., :, None] - w[..., None, :])
    gap = reductions.min(where(eye(t) == 1, 1, gaps), (-2, -1), initial=1.0)
    eps = float(dtypes.finfo(t.dtype).eps)
    above = reductions.max(reductions.sum(absolute(triu(f, 1)), -2), -1)
    error = minimum(1.0, maximum(eps, eps / where(gap > 0, gap, eps) * above))
    return out, where(isfinite(above), error, np.inf)


# The logarithm -----------------------------------------------------------------------------------

_NODES = np.polynomial.legendre.leggauss(8)     # as many as make the Padé approximant exact enough


def _log(a: Array) -> Array:
    """The principal logarithm: roots until the matrix is near 1, where it is a sum of fractions."""
    t, z = _complex_schur(a)
    logs = log(t.diagonal(axis1=-2, axis2=-1))[..., None, :] * eye(t)

    def near(root: Array, k: Array) -> Array:
        """The root less 1, its diagonal without cancellation."""
        return triu(root, 1) + expm1(logs * exp2(-k)) * eye(root)

    def far(state: tuple[Array, Array]) -> Array:
        size = reductions.max(_norm(near(*state)), initial=0.0)
        return (size > 0.25) & (state[1] < 60)

    root, k = while_loop(far, lambda state: (_triangular_sqrt(state[0]), state[1] + 1),
                         (t, np.float32(0)))
    x, total = near(root, k), 0
    for node, weight in zip(*_NODES):
        total = total + weight / 2 * triangular_solve(eye(x) + (node + 1) / 2 * x, x,
                                                      left_side=True)
    total = triu(total * exp2(k), 1) + logs
    return matmul(z, matmul(total, adjoint(z)))


def _log_along(a: Array, e: Array) -> Array:
    n = size_of(a)
    return _log(_enlarged(a, e))[..., :n, n:]


_principal_log = custom_jvp(_log)


@_principal_log.defjvp
def _log_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
    """ẋ in the derivative of exp at x along ẋ = ȧ."""
    (a,), (e,) = primals, tangents
    x = _principal_log(a)
    return x, custom_linear_solve(
        linearize(exponential, x)[1], astype(e, x.dtype), lambda _, e: _log_along(a, e),
        lambda _, e: _log_along(matrix_transpose(a), e))


@fused(static=("disp",))
def logm(A: ArrayLike, disp: bool = True) -> Any:
    """The principal logarithm of matrices, by inverse scaling and squaring.

    Al-Mohy and Higham, "Improved inverse scaling and squaring algorithms for the matrix logarithm",
    2012, with a fixed order of the approximant. The derivative follows from the equation expm(X) =
    A.

    Args: A: [..., n, n], not singular; integers become floats.

    Returns:
      [..., n, n], complex whatever the dtype of A: take the real part where it is known to be real;
      unless `disp` a pair of it and of ‖expm(X) - A‖ / ‖A‖ in the norm of column sums, [...].

    Raises ValueError unless the matrices are square.

    >>> a = olympus.scipy.linalg.expm(onp.array([[0., 1.], [0., 0.]]))
    >>> print(onp.round(olympus.scipy.linalg.logm(a).real, 4))
    [[0. 1.]
     [0. 0.]]
    """
    (a,) = square("logm", A)
    x = _principal_log(a)
    return x if disp else (x, _norm(exponential(x) - a) / _norm(a))


@fused(static=("t",))
def fractional_matrix_power(A: ArrayLike, t: float) -> Array:
    """The power of matrices with any real exponent: expm(t logm(A)).

    Args:
      A: [..., n, n], not singular unless t is a whole number; integers become floats.
      t: the exponent, a number.
    Returns: [..., n, n], complex whatever the dtype of A unless t is a whole number, when it is
      `olympus.numpy.linalg.matrix_power`.

    Raises ValueError unless the matrices are square.

    >>> a = onp.array([[4., 0.], [0., 9.]])
    >>> print(onp.round(olympus.scipy.linalg.fractional_matrix_power(a, 0.5).real, 4))
    [[2. 0.]
     [0. 3.]]
    """
    (a,) = square("fractional_matrix_power", A)
    power = real_number(t, "fractional_matrix_power: t")
    if power.is_integer():
        return matrix_power(a, int(power))
    return exponential(power * _principal_log(a))


@fused(static=("disp",))
def signm(A: ArrayLike, disp: bool = True) -> Any:
    """The sign of matrices: A (A²)^(-1/2).

    Args: A: [..., n, n] without eigenvalues on the imaginary axis; integers become floats.
    Returns: [..., n, n], real if A is; unless `disp` a pair of it and of ‖S S - 1‖ in the norm of
      column sums, [...].

    Raises ValueError unless the matrices are square.

    >>> print(onp.round(olympus.scipy.linalg.signm(onp.array([[4., 1.], [0., -9.]])), 4))
    [[ 1.      0.1538]
     [ 0.     -1.    ]]
    """
    (a,) = square("signm", A)
    s = lu_solve(_sqrt(matmul(a, a)), astype(a, dtypes.to_complex_dtype(a.dtype)))
    s = s if typeof(a).dtype.kind == "c" else s.real
    return s if disp else (s, _norm(matmul(s, s) - eye(s)))


complete_docstrings(globals(), {
    "A": "[..., n, n]; integers become floats.",
    "disp": "return the result alone, not an estimate of its error too. Nothing is printed.",
}, returns="[..., n, n].")
