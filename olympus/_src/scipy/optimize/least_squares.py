"""Roots of systems of equations and least squares, by the method of Levenberg and Marquardt.

Sources: Moré, "The Levenberg–Marquardt algorithm: implementation and theory" (1978), for scaling;
Nielsen, "Damping parameter in Marquardt's method" (1999), for damping; Kanzow, Yamashita &
Fukushima, "Levenberg–Marquardt methods with strong local convergence properties for solving
nonlinear equations with convex constraints" (2004), for bounds; Triggs et al., "Bundle adjustment:
a modern synthesis" (2000), for losses.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...arrays.flatten_util import ravel_pytree
from ...autodiff.derivatives import grad
from ...autodiff.jacobians import jacfwd
from ...base.source import api_boundary
from ...base.typing import Array, ArrayLike, PyTree
from ...base.util import pair, real_number
from ...control_flow.while_loop import while_loop
from ...core.trace import typeof
from ...custom.solves import custom_root
from ...jit.arguments import check_callable
from ...jit.jit import jit
from ...lax.linalg.solve import triangular_solve
from ...numpy.arithmetic import absolute, maximum
from ...numpy.conditions import clip
from ...numpy.creation import asarray, zeros
from ...numpy.diagonals import diag
from ...numpy.elementary import isfinite, log1p, sqrt
from ...numpy.joining import concatenate
from ...numpy.linalg.systems import qr
from ...numpy.products import dot
from ...numpy.promote import inexact
from ...numpy.selection import where
from ...numpy.trigonometry import arctan
from ...types import dtypes
from ...types.shape import sequence, static_int
from ...types.tree import tree_map, tree_structure
from .minimize import bound_vector, stationarity, tangent_solver


class LeastSquaresResult(NamedTuple):
    """The result of `least_squares`; the fields have SciPy's names."""

    x: Array            # the solution
    cost: Array         # half the sum of the losses
    fun: Array          # the residuals
    jac: Array          # their Jacobian, [m, n]
    grad: Array         # the gradient of the cost
    optimality: Array   # its largest element, of variables that may move
    nfev: Array         # evaluations of the residuals
    status: Array       # 1: gtol, 2: ftol, 3: xtol met; 0: max_nfev reached; -1: not finite
    success: Array      # status > 0


class RootResult(NamedTuple):
    """The result of `root`; the fields have SciPy's names."""

    x: Array            # where the function is zero
    success: Array      # whether it is, to the tolerance
    status: Array       # 1: it is; 0: not after all iterations; 4: no step brings it nearer
    fun: Array          # the function there
    nfev: Array         # evaluations


# A loss is a function of the squared residual, linear for small ones; and its derivative.
_LOSSES: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "linear": (lambda z: z, lambda z: z * 0 + 1),
    "soft_l1": (lambda z: 2 * (sqrt(1 + z) - 1), lambda z: 1 / sqrt(1 + z)),
    "huber": (lambda z: where(z <= 1, z, 2 * sqrt(maximum(z, 1)) - 1),
              lambda z: 1 / sqrt(maximum(z, 1))),
    "cauchy": (log1p, lambda z: 1 / (1 + z)),
    "arctan": (arctan, lambda z: 1 / (1 + z * z)),
}


class _State(NamedTuple):
    x: Any
    residuals: Any
    cost: Any
    scale: Any          # of the variables: the largest columns of the Jacobian so far
    damping: Any
    growth: Any         # of the damping, after a step that failed
    status: Any         # -2 while going
    nfev: Any


def _levenberg_marquardt(fun: Callable[[Array], Array], x: Array, loss: str, f_scale: float,
                         low: Array | None, high: Array | None, tolerances: Sequence[float],
                         most: int) -> tuple[Array, Array, Array]:
    """From a guess to a least sum of losses: x, status and number of evaluations."""
    ftol, xtol, gtol = tolerances
    eps = float(dtypes.finfo(x.dtype).eps)
    rho, slope_of = _LOSSES[loss]
    inside = (lambda x: x) if low is None else (lambda x: clip(x, low, high))

    def cost_of(f: Array) -> Array:
        return f_scale * f_scale / 2 * rho((f / f_scale) ** 2).sum()

    def body(s: _State) -> _State:
        jac = jacfwd(fun)(s.x)
        weight = slope_of((s.residuals / f_scale) ** 2)
        gradient = jac.T @ (weight * s.residuals)
        free = asarray(True) if low is None else (
            ~((s.x <= low) & (gradient > 0)) & ~((s.x >= high) & (gradient < 0)))
        root_weight = sqrt(weight)
        design = where(free, root_weight[:, None] * jac, 0)
        scale = maximum(s.scale, sqrt((design * design).sum(0)))
        scaled = where(scale > 0, scale, 1)
        # Least squares of the linear model and the damped step, by QR: no squared condition number.
        rows = concatenate([design, diag(sqrt(s.damping) * scaled)])
        q, r = qr(rows)
        rhs = concatenate([-root_weight * s.residuals, zeros(s.x.size, s.x.dtype)])
        way = triangular_solve(r, (q.T @ rhs)[:, None], left_side=True)[:, 0]
        after = inside(s.x + way)
        moved = after - s.x
        residuals = fun(after)
        cost = cost_of(residuals)
        expected = -dot(gradient, moved) - dot(design @ moved, design @ moved) / 2
        gain = (s.cost - cost) / where(expected > 0, expected, 1)
        better = (cost < s.cost) & (expected > 0)
        damping = where(better, s.damping * clip(1 - (2 * gain - 1) ** 3, 1 / 3, 2),
                        s.damping * s.growth)
        left = absolute(s.x - inside(s.x - gradient)).max()
        small = sqrt(dot(scaled * moved, scaled * moved)) <= (xtol + eps) * (
            xtol + sqrt(dot(scaled * s.x, scaled * s.x)))
        flat = better & (s.cost - cost <= ftol * s.cost) & (gain > 0.25) & (ftol > 0)
        status = where(left <= gtol, 1, where(small, 3, where(flat, 2, -2)))
        status = where(isfinite(s.cost), status, -1)
        return _State(where(better, after, s.x), where(better, residuals, s.residuals),
                      where(better, cost, s.cost), scale, damping,
                      where(better, 2, 2 * s.growth), status, s.nfev + 1)

    x = inside(x)
    f = fun(x)
    one = asarray(1, x.dtype)
    end = while_loop(lambda s: (s.status == -2) & (s.nfev < most), body, _State(
        x, f, cost_of(f), zeros(x.shape, x.dtype), one * 1e-3, one * 2, asarray(-2), asarray(1)))
    return end.x, where(end.status == -2, 0, end.status), end.nfev


@api_boundary
def least_squares(fun: Callable[..., ArrayLike], x0: ArrayLike, *,
                  bounds: tuple[ArrayLike, ArrayLike] = (-np.inf, np.inf), ftol: float = 1e-8,
                  xtol: float = 1e-8, gtol: float = 1e-8, loss: str = "linear",
                  f_scale: float = 1.0, max_nfev: int | None = None, args: tuple[PyTree, ...] = ()
                  ) -> LeastSquaresResult:
    """Minimise half the sum of squared residuals, or of a loss of them.

    The method is Levenberg's and Marquardt's, with the Jacobian by forward mode. Works under `jit`
    and `vmap`; derivatives of all results, in both modes, are with respect to `args`, `bounds` and
    what `fun` closes over, by the implicit function theorem.

    Args:
      fun: `fun(x, *args)` gives the residuals [m], real.
      x0: [n], the first guess.
      bounds: (least, greatest) values, scalars or [n].
      ftol, xtol, gtol: relative change of the cost, of `x`, and size of the gradient, to reach; one
        of them ends the search.
      loss: "linear", or one that counts outliers less: "soft_l1", "huber", "cauchy", "arctan".
      f_scale: the residual at which such a loss begins to differ.
      max_nfev: the most evaluations; 100 n unless given.
      args: pytrees of arrays.

    Raises ValueError for another loss, TypeError for residuals that are no real vector.

    >>> from olympus.scipy.optimize import least_squares
    >>> t = onp.linspace(0., 1., 5)
    >>> model = lambda x: x[0] * onp.exp(-x[1] * t)
    >>> target = model(onp.array([2., 3.]))
    >>> print(onp.round(least_squares(lambda x: model(x) - target, onp.ones(2)).x, 4))
    [2. 3.]
    """
    if not isinstance(loss, str) or loss not in _LOSSES:
        raise ValueError(f"least_squares: loss {loss!r} given; one of {', '.join(_LOSSES)} is "
                         "required.")
    numbers = tuple(real_number(v, f"least_squares: {name}") for name, v in (
        ("ftol", ftol), ("xtol", xtol), ("gtol", gtol), ("f_scale", f_scale)))
    unbounded = all(np.ndim(b) == 0 and isinstance(b, (int, float)) and abs(b) == np.inf
                    for b in pair(bounds, "least_squares: bounds"))
    if max_nfev is not None:
        max_nfev = static_int(max_nfev, "least_squares", "max_nfev")
    check_callable("least_squares", fun)
    return _least_squares(fun, loss, numbers, max_nfev, x0,
                          sequence(args, "least_squares", "args"), None if unbounded else bounds)


@partial(jit, static_argnums=(0, 1, 2, 3))
def _least_squares(fun: Callable[..., ArrayLike], loss: str, numbers: tuple[float, ...],
                   max_nfev: int | None, x0: PyTree, args: tuple,
                   bounds: tuple[PyTree, PyTree] | None) -> LeastSquaresResult:
    *tolerances, f_scale = numbers
    guess = inexact(asarray(x0))
    if guess.ndim != 1 or not dtypes.is_floating(guess.dtype):
        raise TypeError(f"least_squares: x0 {typeof(guess)} given; a real vector is required.")
    low, high = (None, None) if bounds is None else [bound_vector(b, x0, guess) for b in bounds]

    def residuals(x: Array) -> Array:
        f = asarray(fun(x, *args))
        if f.ndim != 1 or not dtypes.is_floating(f.dtype):
            raise TypeError(f"least_squares: fun returned {typeof(f)}; a real vector is required.")
        return f

    def cost(x: Array) -> Array:
        return f_scale * f_scale / 2 * _LOSSES[loss][0]((residuals(x) / f_scale) ** 2).sum()

    def solve(_: object, x: Array) -> tuple[Array, list[Array]]:
        x, *rest = _levenberg_marquardt(residuals, x, loss, f_scale, low, high, tolerances,
                                        100 * x.size if max_nfev is None else max_nfev)
        return x, rest

    x, (status, nfev) = custom_root(lambda x: stationarity(cost, x, low, high), guess, solve,
                                    tangent_solver(True), has_aux=True)
    slope = grad(cost)(x)
    left = stationarity(cost, x, low, high)
    return LeastSquaresResult(x, cost(x), residuals(x), jacfwd(residuals)(x), slope,
                              absolute(left).max(), nfev, status, status > 0)


@api_boundary
def root(fun: Callable[..., PyTree], x0: PyTree, args: tuple[PyTree, ...] = (), *,
         tol: float | None = None, maxiter: int | None = None) -> RootResult:
    """Find a zero of a function of many variables from a first guess.

    The method is Levenberg's and Marquardt's: Newton's, damped where that does not come nearer.
    Works under `jit` and `vmap`; derivatives of `x`, in both modes and any order, are with respect
    to `args` and what `fun` closes over, by the implicit function theorem.

    Args:
      fun: `fun(x, *args)` gives a pytree like `x`.
      x0: a pytree of real arrays, the first guess. SciPy takes a vector.
      args: pytrees of arrays.
      tol: how near to zero, relative to the function at `x0` and to 1, each element must come;
        unless given, the 3/4 power of the dtype's precision.
      maxiter: the most evaluations; 200 n unless given.

    >>> from olympus.scipy.optimize import root
    >>> point = lambda r: root(lambda x, r: onp.array([x[0] - x[1], x @ x - r * r]),
    ...                        onp.array([1., 2.]), (r,)).x
    >>> print(onp.round(point(2.), 4), onp.round(olympus.jacobian(point)(2.), 4))
    [1.4142 1.4142] [0.7071 0.7071]
    """
    check_callable("root", fun)
    tol = None if tol is None else real_number(tol, "root: tol")
    maxiter = None if maxiter is None else static_int(maxiter, "root", "maxiter")
    return _root(fun, tol, maxiter, x0, sequence(args, "root", "args"))


@partial(jit, static_argnums=(0, 1, 2))
def _root(fun: Callable[..., PyTree], tol: float | None, maxiter: int | None, x0: PyTree,
          args: tuple) -> RootResult:
    x0 = tree_map(lambda x: inexact(asarray(x)), x0)
    guess, unravel = ravel_pytree(x0)
    if not dtypes.is_floating(guess.dtype):
        raise TypeError(f"root: x0 of dtype {guess.dtype.name} given; real numbers are required.")

    def equation(x: Array) -> Array:
        value = fun(unravel(x), *args)
        flat = ravel_pytree(value)[0].astype(x.dtype)
        if tree_structure(value) != tree_structure(x0) or flat.size != x.size:
            raise TypeError(f"root: fun returned {tree_map(typeof, value)} for x "
                            f"{tree_map(typeof, x0)}; as many elements in the same structure are "
                            "required.")
        return flat

    def solve(_: object, x: Array) -> tuple[Array, tuple[Array, Array]]:
        most = 200 * max(x.size, 1) if maxiter is None else maxiter
        x, status, nfev = _levenberg_marquardt(equation, x, "linear", 1.0, None, None,
                                               (0.0, 0.0, 0.0), most)
        return x, (status, nfev)

    x, (status, nfev) = custom_root(equation, guess, solve, tangent_solver(True), has_aux=True)
    value = equation(x)
    near = float(dtypes.finfo(guess.dtype).eps) ** 0.75 if tol is None else tol
    success = (absolute(value) <= near * maximum(1, absolute(equation(guess)).max())).all()
    return RootResult(unravel(x), success, where(success, 1, where(status == 0, 0, 4)),
                      unravel(value), nfev)
