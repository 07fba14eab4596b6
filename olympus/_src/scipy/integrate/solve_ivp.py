"""solve_ivp: an initial value problem between two times, with a solution at every time between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ...base.source import api_boundary
from ...base.typing import Array, ArrayLike
from ...base.util import real_number
from ...core.trace import Tracer, typeof
from ...custom.gradient import closure_convert
from ...custom.jvp import custom_jvp
from ...lax.shape import zeros_of
from ...loops.scan import scan
from ...loops.while_loop import while_loop
from ...numpy.conditions import clip
from ...numpy.creation import asarray, full, zeros
from ...numpy.joining import concatenate
from ...numpy.promote import inexact
from ...numpy.selection import where
from ...numpy.sorting import searchsorted
from ...transforms.autodiff import jvp
from ...transforms.jit import jit
from ...types import dtypes
from ...types.tree import tree_leaves
from .dormand_prince import Fun, interp_fit_dopri, is_going, runge_kutta_step, start, step
from .odeint import like, solved_at

__all__ = ["OdeResult", "OdeSolution", "solve_ivp"]

_MESSAGES = ("The solver successfully reached the end of the integration interval.",
             "The end was not reached: no step was short enough, or max_steps did not suffice.")
_SIZES = (128, 2048, 32768)     # of the steps kept, tried one after the other where none is given


class OdeSolution(NamedTuple):
    """A solution at every time: called with times, it gives the states, times last.

    `ts` [m + 1] are the ends of the steps, `quartics` [m, 5, n] the polynomials of the steps.

    >>> from olympus.scipy.integrate import solve_ivp
    >>> sol = solve_ivp(lambda t, y: 0 * y + 1, (0., 4.), [0.], dense_output=True).sol
    >>> print(sol([0.5, 3.0]))
    [[0.5 3. ]]
    """

    ts: Array
    quartics: Array

    def __call__(self, t: ArrayLike) -> Array:
        """States [n, *t.shape]; beyond the ends, the first or last polynomial goes on."""
        t = asarray(t)
        forward = where(self.ts[-1] < self.ts[0], -1, 1).astype(self.ts.dtype)
        last = self.quartics.shape[0] - 1
        # Of steps of no length, which fill up `ts`, none is chosen before the end.
        i = clip(searchsorted(self.ts * forward, t * forward, side="left") - 1, 0, last)
        length = self.ts[i + 1] - self.ts[i]
        s = (t - self.ts[i]) / where(length == 0, 1, length)
        s = s[..., None].astype(dtypes.to_real_dtype(self.quartics.dtype))
        quartic = self.quartics[i]
        found = quartic[..., 0, :]
        for k in range(1, 5):
            found = found * s + quartic[..., k, :]
        return asarray(found).transpose(t.ndim, *range(t.ndim))


class OdeResult(NamedTuple):
    """What `solve_ivp` found; the fields have SciPy's names."""

    t: Array
    y: Array
    sol: OdeSolution | None
    nfev: Any           # evaluations of `fun`
    status: Any         # 0: the end was reached; -1: it was not
    success: Any

    @property
    def message(self) -> str:
        """The status in words."""
        return _MESSAGES[-int(self.status)]


@api_boundary
def solve_ivp(fun: Callable[..., ArrayLike], t_span: Sequence[ArrayLike], y0: ArrayLike,
              method: str = "RK45", t_eval: ArrayLike | None = None, dense_output: bool = False,
              events: None = None, vectorized: bool = False, args: tuple | None = None, *,
              rtol: float = 1e-3, atol: float = 1e-6, max_step: float = np.inf,
              max_steps: int | None = None) -> OdeResult:
    """Solve dy/dt = fun(t, y, *args) from y(t_span[0]) = y0 to t_span[1].

    The method is the pair of Dormand and Prince, of orders 5 and 4, as SciPy's "RK45". Derivatives
    of all results, in both modes and any order, are with respect to `y0`, `t_span`, `args` and what
    `fun` closes over: with `t_eval` they solve differential equations of their own, as `odeint`
    does; else they are those of the steps that were taken, whose ends move with `t_span` alone.

    Args:
      fun: gives dy/dt, [n], of (t, y, *args); note that the time comes first.
      t_span: (first, last) time; the last may be the earlier.
      y0: [n], real or complex.
      method: "RK45" only; stiff problems need more than explicit methods.
      t_eval: times, in order, at which the state is asked for; None: at the ends of the steps.
      dense_output: whether to give the solution at every time, as `sol`.
      events, vectorized: for SciPy's signature; events are refused.
      args: further arguments of `fun`, pytrees of arrays.
      rtol, atol: the error of a step may be `atol + rtol * abs(y)`, in the mean of squares.
      max_step: the longest step.
      max_steps: the most steps. Under `jit` it must be given where steps are asked for, by
        `dense_output` or no `t_eval`: `t` has max_steps + 1 elements then, the last one repeated.

    Returns:
      OdeResult: t [m], y [n, m], sol, nfev, status (0 or -1) and success. Where the end was not
      reached, states beyond are NaN.

    >>> import olympus.numpy as onp
    >>> from olympus.scipy.integrate import solve_ivp
    >>> found = solve_ivp(lambda t, y: -0.5 * y, (0., 10.), [2.], dense_output=True, rtol=1e-6)
    >>> with onp.printoptions(precision=4):
    ...     print(found.success, found.sol(onp.array([1., 2.])))
    True [[1.2131 0.7358]]
    """
    for what, given, wanted in (("method", method, "RK45"), ("events", events, None)):
        if given != wanted:
            raise NotImplementedError(f"solve_ivp: {what} {given!r} given; {wanted!r} is required: "
                                      "no other is offered.")
    if len(t_span) != 2:
        raise ValueError(f"solve_ivp: t_span of {len(t_span)} times given; two are required.")
    tolerances = tuple(real_number(v, f"solve_ivp: {name}") for name, v in (
        ("rtol", rtol), ("atol", atol), ("max_step", max_step)))
    y0 = inexact(asarray(y0))
    if y0.ndim != 1:
        raise ValueError(f"solve_ivp: y0 {typeof(y0)} given; a vector is required.")
    span = asarray([asarray(t).astype(dtypes.to_real_dtype(y0.dtype)) for t in t_span])
    args = () if args is None else tuple(args)
    times = None if t_eval is None else asarray(t_eval).astype(span.dtype)
    if not dense_output and times is not None:
        limit = np.inf if max_steps is None else max_steps
        return _at_times(fun, tolerances, limit, y0, span, times, args)
    return _with_steps(fun, tolerances, max_steps, dense_output, y0, span, times, args)


def _with_steps(fun: Callable[..., Any], tolerances: tuple, max_steps: int | None, dense: bool,
                y0: Any, span: Any, times: Any, args: tuple) -> OdeResult:
    traced = any(isinstance(x, Tracer) for x in tree_leaves((y0, span, args)))
    if traced and max_steps is None:
        raise ValueError("solve_ivp: traced arguments and no max_steps given; the number of steps "
                         "is not known while tracing: max_steps= is required, or t_eval= without "
                         "dense_output.")
    for size in _SIZES if max_steps is None else (max_steps,):
        ts, ys, quartics, count, tried, done = _steps(fun, tolerances, size, y0, span, args)
        if traced or done or count < size:
            break
    status = where(done, 0, -1)
    if not traced and max_steps is None:        # as many steps as there were
        ts, ys, quartics = ts[:int(count) + 1], ys[:int(count) + 1], quartics[:int(count)]
    sol = OdeSolution(ts, quartics)
    y = ys.T
    if times is not None:
        first, last = where(ts[-1] < ts[0], ts[::-1], ts)[np.array([0, -1])]
        y = where((times >= first) & (times <= last), sol(times), np.nan)
        ts = times
    return OdeResult(ts, y, sol if dense else None, 6 * tried + 2, status, status == 0)


def _vector_field(fun: Callable[..., Any], y0: Any, t: Any, args: tuple) -> tuple[Fun, list]:
    """`fun` as odeint's functions take it, and what it closes over as further arguments."""
    def dynamics(y: Any, t: Any, *args: Any) -> Any:
        slope = asarray(fun(t, y, *args))
        if slope.shape != y.shape:
            raise TypeError(f"solve_ivp: fun returned {typeof(slope)}; the shape of the state, "
                            f"{y.shape}, is required.")
        return like(slope, y)

    return closure_convert(dynamics, y0, t, *args)


@partial(jit, static_argnums=(0, 1, 2))
def _at_times(fun: Callable[..., Any], tolerances: tuple, limit: float, y0: Any, span: Any,
              times: Any, args: tuple) -> OdeResult:
    field, consts = _vector_field(fun, y0, span[0], args)
    rtol, atol, hmax = tolerances
    ys = solved_at(field, (rtol, atol, limit, hmax), y0, concatenate([span[:1], times, span[1:]]),
                   (*args, *consts))
    status = where((ys[-1] == ys[-1]).all(), 0, -1)
    return OdeResult(times, ys[1:-1].T, None, None, status, status == 0)


@partial(jit, static_argnums=(0, 1, 2))
def _steps(fun: Callable[..., Any], tolerances: tuple, size: int, y0: Any, span: Any, args: tuple
           ) -> tuple:
    field, consts = _vector_field(fun, y0, span[0], args)
    return _walk(field, tolerances, size, y0, span, (*args, *consts))


@partial(custom_jvp, nondiff_argnums=(0, 1, 2))
def _walk(fun: Fun, tolerances: tuple, size: int, y0: Any, span: Any, args: tuple) -> tuple:
    """The ends [size + 1] of the accepted steps, the states there, the quartics, and counts."""
    rtol, atol, hmax = tolerances
    sign = where(span[1] < span[0], -1, 1).astype(span.dtype)
    last = span[1] * sign

    def slope(y: Any, s: Any) -> Any:
        return fun(y, s * sign, *args) * sign.astype(dtypes.to_real_dtype(y.dtype))

    def body(state: Any) -> Any:
        p, count, *kept = state
        # The last step ends at the end.
        p, accepted = step(slope, p._replace(dt=where(p.t + p.dt > last, last - p.t, p.dt)),
                           rtol, atol, hmax)
        p = p._replace(t=where(accepted & (last - p.t <= abs(last) * 1e-7), last, p.t))
        count = count + accepted
        at = where(accepted, count, size + 1)       # beyond the end: dropped
        ts, ys, quartics = kept
        return (p, count, ts.at[at].set(p.t), ys.at[at].set(p.y),
                quartics.at[at - 1].set(p.quartic))

    def going(state: Any) -> Any:
        return is_going(state[0], last, np.inf) & (state[1] < size)

    p = start(slope, y0, span[0] * sign, rtol, atol, hmax)
    p, count, ts, ys, quartics = while_loop(going, body, (
        p, asarray(0), full((size + 1,), p.t), full((size + 1, y0.size), y0),
        zeros((size, 5, y0.size), y0.dtype)))
    behind = np.arange(size + 1) > count
    ts = where(behind, p.t, ts) * sign
    ys = where(behind[:, None], p.y, ys)
    still = concatenate([zeros((4, y0.size), y0.dtype), p.y[None]])
    quartics = where(behind[1:, None, None], still, quartics)
    return ts, ys, quartics, count, p.steps, p.t >= last


@_walk.defjvp
def _walk_jvp(fun: Fun, tolerances: tuple, size: int, primals: Any, tangents: Any) -> Any:
    """Derivatives of the steps that were taken, whose ends divide the time between in fixed parts.
    """
    y0, span, args = primals
    ts, ys, quartics, *counts = _walk(fun, tolerances, size, *primals)
    parts = (ts - span[0]) / where(span[1] == span[0], 1, span[1] - span[0])

    def replay(y0: Any, span: Any, args: Any) -> Any:
        ts = span[0] + parts * (span[1] - span[0])

        def body(y: Any, times: Any) -> Any:
            t, after = times
            h = (after - t).astype(dtypes.to_real_dtype(y.dtype))
            y1, _, _, k = runge_kutta_step(lambda y, t: fun(y, t, *args), y, fun(y, t, *args), t, h)
            return y1, (y1, interp_fit_dopri(y, y1, k, h))

        _, (later, quartics) = scan(body, y0, (ts[:-1], ts[1:]))
        return ts, concatenate([y0[None], later]), quartics

    _, moved = jvp(replay, primals, tangents)
    return (ts, ys, quartics, *counts), (
        *moved, *(zeros_of(typeof(x).to_tangent_aval()) for x in counts))
