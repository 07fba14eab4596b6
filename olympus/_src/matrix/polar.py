"""The polar decomposition, by Halley's iteration with dynamic weights."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.typing import Array, ArrayLike
from ..base.util import real_number
from ..control_flow.branches import cond
from ..control_flow.while_loop import while_loop
from ..core.trace import literal, typeof
from ..custom.jvp import custom_jvp
from ..custom.rules import zero_from_primal
from ..lax import arithmetic
from ..lax.arithmetic import div, mul, sub
from ..lax.bits import bitwise_and, bitwise_not
from ..lax.comparison import eq, ge, gt, le, lt, select
from ..lax.convert import convert_element_type
from ..lax.creation import broadcasted_iota, full, full_like
from ..lax.families import add
from ..lax.linalg.cholesky import cholesky
from ..lax.linalg.core import INT32, LAPACK, adjoint, eye, masked, matmul, real_dtype
from ..lax.linalg.eigh import eigh
from ..lax.linalg.qr import qr
from ..lax.linalg.solve import triangular_solve
from ..lax.linalg.spectra import as_dtype, pairs
from ..lax.reduce import reduce_max
from ..lax.shape import broadcast_in_dim, reduce_sum
from ..lax.slicing import concatenate, slice_in_dim
from ..lax.transcendental import cbrt, sqrt
from ..types import dtypes
from ..types.shape import definitely_equal, less, sequence, static_int

QR_FROM = 100.0     # the weight c above which a step by Cholesky would lose too many digits


def qdwh(x: ArrayLike, *, is_hermitian: bool = False, max_iterations: int | None = None,
         eps: float | None = None, dynamic_shape: tuple[ArrayLike, ArrayLike] | None = None
         ) -> tuple[Array, Array, Array, Array]:
    """Polar decomposition x = u h of a matrix that has no fewer rows than columns.

    QR-based, dynamically weighted Halley iteration: Nakatsukasa, Bai and Gygi, "Optimizing
    Halley's iteration for computing the matrix polar decomposition", 2010. Any matrix takes at
    most six steps in double precision.

    Args:
      x: float[m, n] or complex, m >= n; for batches, vmap.
      is_hermitian: whether x is Hermitian: u then is, too.
      max_iterations: when to stop at the latest; 10 unless given.
      eps: the precision wanted, relative; the dtype's unless given.
      dynamic_shape: (rows, columns), ints or integer arrays: only that corner of x counts, and
        beyond it the results are zero.
    Returns: (u[m, n] with orthonormal columns, h[n, n] Hermitian and positive semidefinite, the
      number of iterations, whether they converged). Where x holds a NaN all is NaN.

    The exact decomposition is differentiated, whatever the iteration; it is infinite or NaN where x
    has dependent columns.

    Raises TypeError for another rank or dtype, ValueError if m < n.

    >>> u, h, steps, converged = lax.linalg.qdwh(onp.array([[0., -2.], [1., 0.]]))
    >>> print(onp.round(onp.diagonal(h), 4), converged)
    [1. 2.] True
    """
    aval = typeof(x)
    if aval.ndim != 2 or aval.dtype not in LAPACK:
        raise TypeError(f"qdwh: operand {aval} given; a matrix of float32, float64, complex64 or "
                        "complex128 is required; use vmap for a batch.")
    m, n = aval.shape
    if less(m, n) or (is_hermitian and not definitely_equal(m, n)):
        wanted = "as many rows as" if is_hermitian else "at least as many rows as"
        raise ValueError(f"qdwh: operand {aval} given, is_hermitian={is_hermitian}; {wanted} "
                         "columns are required; decompose the conjugate transpose.")
    if max_iterations is None:
        max_iterations = 10
    if eps is None:
        eps = float(dtypes.finfo(aval.dtype).eps)
    beyond = full_like(x, 0, shape=(n, n))
    if dynamic_shape is not None:
        dynamic_shape = sequence(dynamic_shape, "qdwh", "dynamic_shape")
        if len(dynamic_shape) != 2:
            raise ValueError(f"qdwh: dynamic_shape {dynamic_shape} given; two sizes are required.")
        inside = [lt(broadcasted_iota(INT32, aval.shape, axis), convert_element_type(
            size, INT32)) for axis, size in enumerate(dynamic_shape)]
        x = masked(x, bitwise_and(*inside))
        outside = ge(broadcasted_iota(INT32, (n, n), 0),
                     convert_element_type(dynamic_shape[1], INT32))
        beyond = masked(eye(beyond), outside)
    tall = less(n, m) or dynamic_shape is not None
    steps = static_int(max_iterations, "qdwh", "max_iterations")
    return _polar(x, beyond, bool(is_hermitian), tall, steps, real_number(eps, "qdwh: eps"))


def _decomposed(x: Any, beyond: Array, is_hermitian: bool, tall: bool, max_iterations: int,
                eps: float) -> tuple[Array, Array, Array, Array]:
    """u, h, the number of steps, whether they converged; derivatives read `beyond` and `tall`."""
    u, count, converged = _iterated(x, is_hermitian, max_iterations, eps)
    h = matmul(adjoint(u), x)
    return u, mul(add(h, adjoint(h)), 0.5), count, converged


_polar = custom_jvp(_decomposed, nondiff_argnums=(2, 3, 4, 5))


@_polar.defjvp
def _polar_jvp(is_hermitian: bool, tall: bool, max_iterations: int, eps: float,
               primals: tuple[Array, Array], tangents: tuple[Array, Array]
               ) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """u̇ = uΩ + (1 - uuᴴ)ẋh⁻¹ with Ωh + hΩ = uᴴẋ - ẋᴴu, and ḣ = uᴴẋ - Ωh (Higham, "Functions of
    matrices", 2008, §8)."""
    (x, beyond), (t, _) = primals, tangents
    u, h, count, converged = _polar(x, beyond, is_hermitian, tall, max_iterations, eps)
    # Where x is cut off, h is singular: a one there divides the zeros of its tangent.
    v, w = eigh(add(h, beyond))
    image = matmul(adjoint(u), t)
    inner = matmul(adjoint(v), matmul(sub(image, adjoint(image)), v))
    turn = mul(inner, as_dtype(div(1.0, pairs(add, w)), inner))
    turn = matmul(v, matmul(turn, adjoint(v)))
    t_u = matmul(u, turn)
    if tall:
        outside = matmul(sub(t, matmul(u, image)), v)
        inverse = broadcast_in_dim(div(1.0, w), typeof(outside).shape, (1,))
        t_u = add(t_u, matmul(mul(outside, as_dtype(inverse, outside)), adjoint(v)))
    t_h = sub(image, matmul(turn, h))
    zeros = [zero_from_primal(value) for value in (count, converged)]
    return (u, h, count, converged), (t_u, t_h, *zeros)


def _norm(x: Array) -> Array:
    """Frobenius norm."""
    size = arithmetic.abs(x)
    return sqrt(reduce_sum(mul(size, size), (0, 1)))


def _iterated(x: Array, is_hermitian: bool, max_iterations: int, eps: float
              ) -> tuple[Array, Array, Array]:
    """The unitary factor, the number of steps, and whether they converged."""
    real = real_dtype(typeof(x).dtype)
    if typeof(x).size == 0:
        return x, full((), 0), full((), True)
    size = arithmetic.abs(x)
    # ‖x‖₂ <= sqrt(‖x‖₁ ‖x‖_∞): singular values of x/bound lie in [0, 1].
    bound = sqrt(mul(*[reduce_max(reduce_sum(size, (axis,)), (0,)) for axis in (0, 1)]))
    bound = select(eq(bound, 0.0), full_like(bound, 1), bound)
    start = div(x, broadcast_in_dim(as_dtype(bound, x), typeof(x).shape, ()))
    # The least singular value is taken to be eps: smaller ones count as zero.
    lowest = literal(eps, real)
    change_tolerance, bound_tolerance = (4.0 * eps) ** (1 / 3), 5.0 * eps

    def unfinished(state: Sequence[Array]) -> Array:
        _, count, converged, _ = state
        return bitwise_and(lt(count, max_iterations), bitwise_not(converged))

    def step(state: Sequence[Array]) -> tuple[Array, Array, Array, Array]:
        u, count, _, low = state
        new, low = _halley(u, low)
        if is_hermitian:
            new = mul(add(new, adjoint(new)), 0.5)
        still = le(_norm(sub(new, u)), mul(_norm(new), change_tolerance))
        tight = le(arithmetic.abs(sub(1.0, low)), bound_tolerance)
        return new, add(count, 1), bitwise_and(still, tight), low

    state = (start, 0, literal(False, dtypes.as_dtype(bool)), lowest)
    u, count, converged, _ = while_loop(unfinished, step, state)
    # One step of Newton and Schulz takes off the rounding errors of the last solve.
    gram = matmul(adjoint(u), u)
    return sub(mul(u, 1.5), mul(matmul(u, gram), 0.5)), count, converged


def _halley(x: Array, low: Array) -> tuple[Array, Array]:
    """x(a + b xᴴx)(1 + c xᴴx)⁻¹, with weights best for singular values in [low, 1].

    Returns it and the bound that its singular values have.
    """
    square = mul(low, low)
    d = cbrt(div(mul(4.0, div(sub(1.0, square), square)), square))
    root = sqrt(add(1.0, d))
    inner = div(mul(8.0, sub(2.0, square)), mul(square, root))
    a = add(root, mul(0.5, sqrt(add(sub(8.0, mul(4.0, d)), inner))))
    b = mul(0.25, arithmetic.square(sub(a, 1.0)))
    c = sub(add(a, b), 1.0)
    new = cond(gt(c, QR_FROM), _by_qr, _by_cholesky, x, a, b, c)
    low = div(mul(low, add(a, mul(b, square))), add(1.0, mul(c, square)))
    return new, arithmetic.min(low, full_like(low, 1))


def _weighed(x: Array, y: Array, weight: Array, other: Array) -> Array:
    """weight x + other y."""
    weight, other = (broadcast_in_dim(as_dtype(w, x), typeof(x).shape, ()) for w in (weight, other))
    return add(mul(weight, x), mul(other, y))


def _by_qr(x: Array, a: Array, b: Array, c: Array) -> Array:
    """The step by the QR factorisation of (sqrt(c) x, 1), which is stable."""
    m, n = typeof(x).shape
    root = sqrt(c)
    upper = mul(x, broadcast_in_dim(as_dtype(root, x), (m, n), ()))
    q, *_ = qr(concatenate([upper, eye(full_like(x, 0, shape=(n, n)))], 0), full_matrices=False)
    q1, q2 = slice_in_dim(q, 0, m), slice_in_dim(q, m, m + n)
    ratio = div(b, c)
    return _weighed(x, matmul(q1, adjoint(q2)), ratio, div(sub(a, ratio), root))


def _by_cholesky(x: Array, a: Array, b: Array, c: Array) -> Array:
    """The step by the Cholesky factorisation of 1 + c xᴴx, which is fast."""
    gram = matmul(adjoint(x), x)
    scaled = mul(gram, broadcast_in_dim(as_dtype(c, x), typeof(gram).shape, ()))
    factor = cholesky(add(scaled, eye(gram)), symmetrize_input=False)
    solved = triangular_solve(factor, x, lower=True, transpose_a=True, conjugate_a=True)
    solved = triangular_solve(factor, solved, lower=True)
    ratio = div(b, c)
    return _weighed(x, solved, ratio, sub(a, ratio))
