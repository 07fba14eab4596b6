"""minimize: minima of functions of many variables, with derivatives of where they are.

Sources: Nocedal & Wright, "Numerical Optimization" (2006), for BFGS (algorithm 6.1), L-BFGS (7.4)
and Newton-CG (7.1); Bertsekas, "Projected Newton methods for optimization problems with simple
constraints" (1982), for bounds. Derivatives follow from the equation of a minimum, grad = 0, and do
not go through the iterations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from ...arrays.flatten_util import ravel_pytree
from ...autodiff.derivatives import grad, jvp, value_and_grad
from ...base.source import api_boundary
from ...base.typing import Array, ArrayLike, PyTree
from ...base.util import real_number
from ...control_flow.scan import scan
from ...control_flow.while_loop import while_loop
from ...core.trace import typeof
from ...custom.solves import custom_root
from ...jit.arguments import check_callable
from ...jit.jit import jit
from ...lax import arithmetic
from ...mapping.vmap import vmap
from ...numpy.arithmetic import absolute, conj, maximum, minimum
from ...numpy.conditions import clip
from ...numpy.creation import asarray, full, zeros
from ...numpy.diagonals import eye
from ...numpy.elementary import isfinite, sqrt
from ...numpy.joining import concatenate
from ...numpy.linalg.norms import norm
from ...numpy.linalg.systems import solve as linear_solve
from ...numpy.manipulation import roll
from ...numpy.products import dot, outer
from ...numpy.promote import inexact
from ...numpy.selection import where
from ...types import dtypes
from ...types.tree import tree_map
from ..krylov import cg
from .line_search import Point, line_search


class OptimizeResults(NamedTuple):
    """The result of `minimize`; its fields have SciPy's names.

    >>> from olympus.scipy.optimize import minimize
    >>> found = minimize(lambda x: (x - 3.) ** 2, 0., method="BFGS")
    >>> print(found.x, found.success, found.status)
    3.0 True 0
    """

    x: Array                # where the function is least
    success: Array | bool   # whether the conditions for a minimum are met
    status: Array | int     # 0: they are; 1: maxiter reached; 2: no step descends enough
    fun: Array              # the value
    jac: Array              # the gradient
    hess_inv: Array | None  # the approximate inverse of the Hessian, where the method has one
    nfev: Array | int       # evaluations of the function
    njev: Array | int       # evaluations of the gradient
    nit: Array | int        # iterations


Unravel: TypeAlias = Callable[[Array], PyTree]
Objective: TypeAlias = Callable[[Array], Array]
Linear: TypeAlias = Callable[[Array], Array]


class _Method(NamedTuple):
    """The memory that a method starts with, its direction, and its update after a step."""

    memory: Callable[[Array, int], PyTree]      # of x, and the most vectors that may be kept
    direction: Callable[..., Any]       # (memory, x, grad, free, hessian) -> direction
    learn: Callable[..., Any]           # (memory, step, change of the gradient) -> memory


_OPTIONS = {"maxiter": None, "gtol": 1e-5, "ftol": 0.0, "norm": np.inf, "maxcor": 10,
            "line_search_maxiter": 20}
_ALIASES = {"maxls": "line_search_maxiter", "xtol": "ftol"}


@api_boundary
def minimize(fun: Callable[..., ArrayLike], x0: PyTree, args: tuple[PyTree, ...] = (), *,
             method: str, tol: float | None = None, options: Mapping[str, Any] | None = None,
             bounds: tuple[ArrayLike, ArrayLike] | None = None) -> OptimizeResults:
    """Find a local minimum of a function from a first guess.

    Works under `jit` and `vmap`; derivatives of `x` and `fun`, in both modes, are with respect to
    `args`, `bounds` and what `fun` closes over, by the implicit function theorem. They have no
    meaning where `success` is false.

    Args:
      fun: `fun(x, *args)`, a real scalar.
      x0: a pytree of arrays, the first guess; complex numbers are two variables each. JAX and SciPy
        take a vector.
      args: pytrees of arrays.
      method: "BFGS", which keeps a matrix of n by n; "L-BFGS-B", which keeps a few vectors, and
        takes `bounds`; "Newton-CG", which multiplies by the Hessian; case does not matter. JAX's
        "l-bfgs-experimental-do-not-rely-on-this" is L-BFGS-B.
      tol: the norm of the gradient to reach, instead of the option `gtol`.
      options: `maxiter` (200 n, for L-BFGS-B 15000), `gtol` (1e-5) for the norm of the gradient
        whose order is `norm` (inf), `ftol` (0) for the relative change of the value, `maxcor` (10)
        vectors of L-BFGS-B, `line_search_maxiter` (20) or `maxls`.
      bounds: (least, greatest) values, scalars or pytrees like `x0`; infinite where there are none.
        SciPy takes pairs for each variable.
    Returns: OptimizeResults. `hess_inv` is n by n for BFGS (of the real parts, then the imaginary
      ones), None for the others; `jac` is the gradient as for `olympus.grad`.

    Raises ValueError for unknown methods and options, TypeError for a function that is no real
    scalar and for bounds of complex numbers.

    >>> from olympus.scipy.optimize import minimize
    >>> rosenbrock = lambda x, a: (a - x[0]) ** 2 + 100. * (x[1] - x[0] ** 2) ** 2
    >>> lowest = lambda a: minimize(rosenbrock, onp.zeros(2), (a,), method="BFGS").x
    >>> print(onp.round(lowest(1.), 3), onp.round(olympus.jacobian(lowest)(1.), 2))
    [1. 1.] [1. 2.]
    """
    name = {"l-bfgs-experimental-do-not-rely-on-this": "l-bfgs-b"}.get(
        str(method).lower(), str(method).lower())
    if name not in _MINIMIZERS:
        raise ValueError(f"minimize: method {method!r} given; 'BFGS', 'L-BFGS-B' or 'Newton-CG' is "
                         "required.")
    if bounds is not None and name != "l-bfgs-b":
        raise ValueError(f"minimize: bounds and method {method!r} given; 'L-BFGS-B' is the one "
                         "that takes bounds.")
    chosen = dict(_OPTIONS)
    if tol is not None:
        chosen["gtol"] = real_number(tol, "minimize: tol")
    if options is not None and not isinstance(options, Mapping):
        raise TypeError(f"minimize: options {options!r:.60} given; a dict is required.")
    for key, value in (options or {}).items():
        key = _ALIASES.get(key, key)
        if key not in chosen:
            raise ValueError(f"minimize: option {key!r} given; it takes {', '.join(_OPTIONS)}.")
        chosen[key] = value
    if not isinstance(args, tuple):
        raise TypeError(f"minimize: args of type {type(args).__name__} given; it must be a tuple.")
    check_callable("minimize", fun)
    return _minimize(fun, name, tuple(chosen.values()), x0, args, bounds)


@partial(jit, static_argnums=(0, 1, 2))
def _minimize(fun: Callable[..., ArrayLike], name: str, chosen: tuple, x0: PyTree, args: tuple,
              bounds: PyTree) -> OptimizeResults:
    options = dict(zip(_OPTIONS, chosen, strict=True))
    guess, unravel = ravel_pytree(tree_map(lambda x: inexact(asarray(x)), x0))
    given_complex = dtypes.is_complex(guess.dtype)
    if given_complex:
        if bounds is not None:
            raise TypeError(f"minimize: bounds and x0 of dtype {guess.dtype.name} given; real "
                            "numbers are required where there are bounds.")
        guess, unravel = _real_parts(guess, unravel)
    low, high = (None, None) if bounds is None else [bound_vector(b, x0, guess) for b in bounds]

    def objective(x: Array) -> Array:
        value = asarray(fun(unravel(x), *args))
        if value.shape or not dtypes.is_floating(value.dtype):
            raise TypeError(f"minimize: fun returned {typeof(value)}; a real scalar is required.")
        return value

    def equation(x: Array) -> Array:
        return stationarity(objective, x, low, high)

    minimum, rest = custom_root(
        equation, guess,
        lambda _, x: _descend(objective, _MINIMIZERS[name], options, x, low, high),
        tangent_solver(name == "bfgs" or low is not None), has_aux=True)
    status, memory, nfev, nit = rest
    value, slope = value_and_grad(objective)(minimum)
    slope = tree_map(conj, unravel(slope)) if given_complex else unravel(slope)
    return OptimizeResults(unravel(minimum), status == 0, status, value, slope,
                           memory if name == "bfgs" else None, nfev, nfev, nit)


def _real_parts(x: Array, unravel: Unravel) -> tuple[Array, Unravel]:
    """A vector as the real parts of its elements, then the imaginary ones; and what undoes it."""
    n = x.shape[0]
    return concatenate([x.real, x.imag]), lambda v: unravel(arithmetic.complex(v[:n], v[n:]))


def bound_vector(bound: PyTree, x0: PyTree, guess: Array) -> Array:
    if np.shape(bound) == ():
        return full(guess.shape, bound, guess.dtype)
    return ravel_pytree(tree_map(lambda x, b: asarray(b) + 0 * asarray(x), x0, bound))[0].astype(
        guess.dtype)


def stationarity(objective: Objective, x: Array, low: Array | None, high: Array | None
                 ) -> Array:
    """Zero at a minimum: the gradient, or how far its negative leads within the bounds."""
    slope = grad(objective)(x)
    return slope if low is None else x - clip(x - slope, low, high)


def tangent_solver(dense: bool) -> Callable[[Linear, Array], Array]:
    """Solves with the derivative of the equation: as a matrix, or by conjugate gradients."""
    def by_matrix(linear: Linear, rhs: Array) -> Array:
        columns = vmap(linear)(eye(rhs.size, dtype=rhs.dtype))
        return linear_solve(columns.T, rhs)

    def by_products(linear: Linear, rhs: Array) -> Array:
        return cg(linear, rhs, tol=1e-6)[0]

    return by_matrix if dense else by_products


def _truncated_newton(product: Linear, slope: Array, tol: ArrayLike, most: int) -> Array:
    """A direction: product(x) = -slope to a relative residual, by conjugate gradients.

    Ends where the product is not positive along a direction: with the last x, or at first with
    steepest descent (Nocedal & Wright, algorithm 7.1).
    """
    target = dot(slope, slope) * tol * tol

    def going(state: PyTree) -> Array:
        *_, size, count, stopped = state
        return (size > target) & (count < most) & ~stopped

    def body(state: PyTree) -> PyTree:
        x, residual, way, size, count, _ = state
        moved = product(way)
        bend = dot(way, moved)
        stopped = ~(bend > 0)
        length = size / where(stopped, 1, bend)
        x = where(stopped, where(count == 0, -slope, x), x + length * way)
        residual = residual - length * moved
        size, before = dot(residual, residual), size
        return x, residual, residual + size / before * way, size, count + 1, stopped

    x, *_ = while_loop(going, body, (
        slope * 0, -slope, -slope, dot(slope, slope), asarray(0), asarray(False)))
    return x


# Methods -----------------------------------------------------------------------------------------

def _bfgs_direction(inverse: Array, x: Array, slope: Array, free: Array, hessian: object) -> Array:
    return -inverse @ slope


def _bfgs_learn(inverse: Array, s: Array, y: Array, first: Array) -> Array:
    bend = dot(s, y)
    good = bend > 0
    rho = where(good, 1 / where(good, bend, 1), 0)
    # The first step tells the scale (Nocedal & Wright, 6.20).
    inverse = where(first & good, inverse * bend / maximum(dot(y, y), np.finfo(np.float32).tiny),
                    inverse)
    moved = inverse @ y
    return inverse + (rho * (1 + rho * dot(y, moved))) * outer(s, s) - rho * (
        outer(moved, s) + outer(s, moved))


class _Pairs(NamedTuple):
    """The last steps and changes of the gradient, newest last; zeros where there is none yet."""

    s: Array
    y: Array


def _lbfgs_direction(pairs: _Pairs, x: Array, slope: Array, free: Array, hessian: object) -> Array:
    s, y = pairs.s * free, pairs.y * free
    bend = (s * y).sum(1)
    good = bend > 0
    rho = where(good, 1 / where(good, bend, 1), 0)

    def back(q: Array, pair: tuple[Array, Array, Array]) -> tuple[Array, Array]:
        s, y, rho = pair
        alpha = rho * dot(s, q)
        return q - alpha * y, alpha

    def forth(r: Array, pair: tuple[Array, ...]) -> tuple[Array, None]:
        s, y, rho, alpha = pair
        return r + s * (alpha - rho * dot(y, r)), None

    q, alpha = scan(back, slope * free, (s, y, rho), reverse=True)
    last = dot(y[-1], y[-1])
    scale = where(good[-1] & (last > 0), bend[-1] / where(last > 0, last, 1), 1)
    r, _ = scan(forth, q * scale, (s, y, rho, alpha))
    return -r


def _lbfgs_learn(pairs: _Pairs, s: Array, y: Array, first: Array) -> _Pairs:
    good = dot(s, y) > 0
    return _Pairs(*[where(good, roll(old, -1, 0).at[-1].set(new), old)
                    for old, new in zip(pairs, (s, y), strict=True)])


def _newton_direction(memory: object, x: Array, slope: Array, free: Array,
                      hessian: Callable[[Array, Array], Array]) -> Array:
    size = sqrt(dot(slope, slope))
    return _truncated_newton(lambda v: hessian(x, v), slope, minimum(0.5, sqrt(size)),
                             20 * slope.size)


_MINIMIZERS = {
    "bfgs": _Method(lambda x, most: eye(x.size, dtype=x.dtype), _bfgs_direction, _bfgs_learn),
    "l-bfgs-b": _Method(lambda x, most: _Pairs(*[zeros((most, x.size), x.dtype)] * 2),
                        _lbfgs_direction, _lbfgs_learn),
    "newton-cg": _Method(lambda x, most: (), _newton_direction, lambda memory, *_: memory),
}


class _State(NamedTuple):
    x: Array
    point: Point        # value, slope along the last direction, gradient at x
    memory: PyTree
    status: Array       # -1 while going
    nfev: Array
    nit: Array


def _descend(objective: Objective, method: _Method, options: dict[str, Any], x: Array,
             low: Any, high: Any) -> tuple[Array, PyTree]:
    """From a guess down to where the gradient is small: x, (status, memory, nfev, nit)."""
    both = value_and_grad(objective)
    most = options["maxiter"]
    if most is None:
        most = 15000 if method is _MINIMIZERS["l-bfgs-b"] else 200 * max(x.size, 1)
    inside = (lambda x: x) if low is None else (lambda x: clip(x, low, high))

    def hessian(x: Array, v: Array) -> Array:
        return jvp(grad(objective), (x,), (v,))[1]

    def size(x: Array, slope: Array) -> Array:
        v = slope if low is None else x - inside(x - slope)
        return norm(v, options["norm"]) if v.size else slope.sum()

    def going(state: _State) -> Array:
        return (state.status < 0) & (state.nit < most)

    def body(state: _State) -> _State:
        x, slope = state.x, state.point.grad
        free = asarray(1, x.dtype) if low is None else (
            ~((x <= low) & (slope > 0)) & ~((x >= high) & (slope < 0))).astype(x.dtype)
        way = method.direction(state.memory, x, slope, free, hessian)
        # A direction that does not descend is useless: the gradient's is taken.
        descends = dot(way, slope * free) < 0
        way = where(descends, way, -slope * free)

        def along(step: Array) -> Point:
            at = x + step * way
            value, slope = both(inside(at))
            moving = way if low is None else where((at > low) & (at < high), way, 0)
            return Point(step, value, dot(slope, moving), slope)

        start = Point(asarray(0, x.dtype), state.point.value, dot(slope, way * free), slope)
        first = where((state.nit == 0) | ~descends,
                      minimum(1, 1 / maximum(absolute(slope).sum(), 1e-30)), 1).astype(x.dtype)
        point, met, tried = line_search(along, start, first, options["line_search_maxiter"])
        after = inside(x + point.step * way)
        memory = method.learn(state.memory, after - x, point.grad - slope, state.nit == 0)
        fall = (start.value - point.value) / maximum(
            maximum(absolute(start.value), absolute(point.value)), 1)
        left = size(after, point.grad)
        ends = (left <= options["gtol"]) | (
            (options["ftol"] > 0) & (point.step > 0) & (fall <= options["ftol"]))
        # By the precision of the dtype, neither the value nor the gradient falls any further.
        stuck = ~(point.value < start.value) & ~(left < size(x, slope))
        status = where(ends, 0, where(stuck, 2, -1))
        return _State(after, point, memory, status, state.nfev + tried, state.nit + 1)

    x = inside(x)
    value, slope = both(x)
    zero = asarray(0, x.dtype)
    start = _State(x, Point(zero, value, zero, slope), method.memory(x, options["maxcor"]),
                   where(size(x, slope) <= options["gtol"], 0, -1), asarray(1), asarray(0))
    end = while_loop(going, body, start)
    status = where(end.status < 0, 1, end.status)
    return end.x, (where(isfinite(end.point.value), status, 2), end.memory, end.nfev, end.nit)
