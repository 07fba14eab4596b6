"""The explicit Runge–Kutta pair of orders 5 and 4 of Dormand and Prince, and sizes of steps.

Functions here take `fun(y, t) -> dy/dt` of a vector y. Sources: Dormand & Prince, "A family of
embedded Runge–Kutta formulae" (1980), for the pair; Shampine, "Some practical Runge–Kutta formulas"
(1986), for the middle of a step; Hairer, Nørsett & Wanner, "Solving Ordinary Differential Equations
I" (1993), II.4, for the choice of steps.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeAlias

import numpy as np

from ...base.typing import Array, ArrayLike
from ...numpy.arithmetic import absolute, imag, maximum, minimum, real
from ...numpy.conditions import clip
from ...numpy.creation import asarray
from ...numpy.elementary import sqrt
from ...numpy.joining import stack
from ...numpy.selection import where
from ...numpy.statistics import mean
from ...types import dtypes

Fun: TypeAlias = Callable[[Array, Any], Array]      # of a state and a time
Weights: TypeAlias = Sequence[float] | np.ndarray

# Rows of the tableau: the time of each stage, and its weights of the stages before.
NODES = np.array([1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1])
STAGES = [np.array(row) for row in (
    (1 / 5,),
    (3 / 40, 9 / 40),
    (44 / 45, -56 / 15, 32 / 9),
    (19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729),
    (9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656),
    (35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84),
)]
_FIFTH = np.array([*STAGES[-1], 0])
ERROR = _FIFTH - np.array([5179 / 57600, 0, 7571 / 16695, 393 / 640, -92097 / 339200, 187 / 2100,
                            1 / 40])
_MIDDLE = 0.5 * np.array([
    6025192743 / 30085553152, 0, 51252292925 / 65400821598, -2691868925 / 45128329728,
    187940372067 / 1594534317056, -1776094331 / 19743644256, 11237099 / 235043384])


def abs2(x: ArrayLike) -> ArrayLike:
    """The squared modulus of real or complex numbers, as real ones.

    Args: x: of any shape.
    Returns: reals of its shape.

    >>> from olympus.experimental.ode import abs2
    >>> print(abs2(3 + 4j))
    25.0
    """
    if not dtypes.is_complex(dtypes.result_type(x)):
        return x * x
    return real(x) ** 2 + imag(x) ** 2


def runge_kutta_step(func: Fun, y0: Array, f0: Array, t0: ArrayLike, dt: ArrayLike
                     ) -> tuple[Array, Array, Array, Array]:
    """One step of the pair from t0 to t0 + dt.

    Args:
      func: `func(y, t)`, the derivative.
      y0: [n], the state; f0: [n], `func(y0, t0)`.
      t0, dt: the time and the step.
    Returns: (y1, f1, error, stages): the state and its derivative after the step, of order 5; the
      difference from the solution of order 4; the derivatives [7, n] of all stages.

    >>> from olympus.experimental.ode import runge_kutta_step
    >>> y, *_ = runge_kutta_step(lambda y, t: -y, onp.ones(1), -onp.ones(1), 0.0, 0.1)
    >>> print(y, onp.exp(-0.1))
    [0.9048374] 0.9048374
    """
    points, stages = stages_of(NODES, STAGES, func, y0, f0, t0, dt)
    return points[-1], stages[-1], dt * combined(ERROR, stages), stack(stages)


def stages_of(nodes: Weights, rows: Sequence[Weights], func: Fun, y0: Array, f0: Array,
              t0: ArrayLike, dt: ArrayLike) -> tuple[list[Array], list[Array]]:
    """The states at the nodes, and the derivatives there behind the one at the beginning."""
    points: list[Array] = []
    slopes = [f0]
    for node, row in zip(nodes, rows, strict=True):
        points.append(y0 + dt * combined(row, slopes))
        slopes.append(func(points[-1], t0 + dt * node))
    return points, slopes


def combined(weights: Weights, stages: Iterable[Array]) -> Any:
    """The weighted sum of stages."""
    total = None
    for weight, stage in zip(map(float, weights), stages, strict=True):
        if weight:
            total = weight * stage if total is None else total + weight * stage
    return total


def fit_4th_order_polynomial(y0: Array, y1: Array, y_mid: Array, dy0: Array, dy1: Array,
                             dt: ArrayLike) -> tuple[Array, Array, Array, Array, Array]:
    """Coefficients, highest first, of the quartic in s = (t - t0) / dt through the given values.

    Args:
      y0, y1, y_mid: the values at s = 0, 1 and 1/2.
      dy0, dy1: the derivatives with respect to t at both ends.
      dt: the step.
    Returns: five arrays like `y0`.

    >>> from olympus.experimental.ode import fit_4th_order_polynomial
    >>> print(*fit_4th_order_polynomial(0.0, 1.0, 0.0625, 0.0, 4.0, 1.0))     # s ** 4
    1.0 0.0 0.0 0.0 0.0
    """
    rise, middle, slope0, slope1 = y1 - y0, y_mid - y0, dy0 * dt, dy1 * dt
    a = 2 * (slope1 - slope0) - 8 * rise + 16 * middle
    b = 5 * slope0 - 3 * slope1 + 14 * rise - 32 * middle
    c = slope1 - 4 * slope0 - 5 * rise + 16 * middle
    return a, b, c, slope0, y0


def interp_fit_dopri(y0: Array, y1: Array, k: Array | Sequence[Array], dt: ArrayLike) -> Array:
    """The quartic of a step, whose middle the stages give.

    Args: y0, y1: [n], the states at its ends; k: [7, n], the stages; dt: its length.
    Returns: coefficients [5, n], highest first, in the part of the step that has passed.

    >>> from olympus.experimental.ode import interp_fit_dopri, runge_kutta_step
    >>> y0, f0 = onp.ones(1), -onp.ones(1)
    >>> y1, _, _, k = runge_kutta_step(lambda y, t: -y, y0, f0, 0.0, 0.1)
    >>> middle = onp.polyval(interp_fit_dopri(y0, y1, k, 0.1), 0.5)
    >>> print(f"{middle[0]:.6f} {onp.exp(-0.05):.6f}")
    0.951229 0.951229
    """
    y_mid = y0 + dt * combined(_MIDDLE, k)
    return stack(fit_4th_order_polynomial(y0, y1, y_mid, k[0], k[-1], dt))


def mean_error_ratio(error_estimate: Array, rtol: ArrayLike, atol: ArrayLike, y0: Array, y1: Array
                     ) -> Array:
    """The error of a step in units of the tolerance, as a root mean square.

    Args:
      error_estimate: [n]; rtol, atol: the tolerances, relative and absolute.
      y0, y1: [n], the states at its ends.
    Returns: a scalar; 1 is just allowed.

    >>> from olympus.experimental.ode import mean_error_ratio
    >>> print(mean_error_ratio(onp.array([0.5]), 0.0, 0.25, onp.ones(1), onp.ones(1)))
    2.0
    """
    allowed = atol + rtol * maximum(absolute(y0), absolute(y1))
    return norm(error_estimate / allowed)


def norm(x: Array) -> Array:
    """The root mean square of a vector; 0 for an empty one."""
    return sqrt(mean(abs2(x))) if x.size else absolute(x).sum()


def initial_step_size(fun: Fun, t0: ArrayLike, y0: Array, order: ArrayLike, rtol: ArrayLike,
                      atol: ArrayLike, f0: Array) -> Array:
    """A first step for a method of this order (Hairer, Nørsett & Wanner, II.4).

    Args:
      fun: `fun(y, t)`, the derivative; t0, y0, f0: the time, the state [n] and its derivative.
      order: of the method; rtol, atol: the error that is allowed.
    Returns: a scalar.

    >>> from olympus.experimental.ode import initial_step_size
    >>> f = lambda y, t: -y
    >>> print(f"{initial_step_size(f, 0.0, onp.ones(1), 4, 1e-6, 1e-6, -onp.ones(1)):.4f}")
    0.0289
    """
    scale = atol + rtol * absolute(y0)
    size, slope = norm(y0 / scale), norm(f0 / scale)
    flat = (size < 1e-5) | (slope < 1e-5)
    h0 = where(flat, 1e-6, 0.01 * size / where(flat, 1, slope))
    f1 = fun(y0 + h0 * f0, t0 + h0)
    bend = maximum(slope, norm((f1 - f0) / scale) / h0)
    h1 = where(bend <= 1e-15, maximum(1e-6, h0 * 1e-3),
               (0.01 / where(bend <= 1e-15, 1, bend)) ** (1 / (order + 1)))
    return minimum(100 * h0, h1)


def optimal_step_size(last_step: ArrayLike, mean_error_ratio: ArrayLike, safety: float = 0.9,
                      ifactor: float = 10.0, dfactor: float = 0.2, order: float = 5.0) -> Array:
    """The step after one with this error ratio.

    Args:
      last_step: the step that was tried; mean_error_ratio: its error, in units of the tolerance.
      safety: by how much to be more careful than the theory asks.
      ifactor, dfactor: at most and at least so many times the last step; never less than it if
        it was accepted.
      order: of the method.
    Returns: a scalar.

    >>> from olympus.experimental.ode import optimal_step_size
    >>> print(f"{optimal_step_size(1.0, 0.0):.3f} {optimal_step_size(1.0, 32.0):.3f}")
    10.000 0.450
    """
    ratio = asarray(mean_error_ratio)
    none = ratio == 0
    factor = clip(safety / where(none, 1, ratio) ** (1 / order), where(ratio < 1, 1.0, dfactor),
                  ifactor)
    return where(none, ifactor, factor) * last_step
