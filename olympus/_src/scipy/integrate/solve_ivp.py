"""solve_ivp: an initial value problem between two times, with a solution at every time between."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple
from warnings import warn

import numpy as np

from ...autodiff.derivatives import jvp
from ...autodiff.jacobians import jacfwd
from ...base.source import api_boundary
from ...base.typing import Array, ArrayLike, DTypeLike, PyTree
from ...base.util import real_number
from ...control_flow.scan import scan
from ...control_flow.while_loop import while_loop
from ...core.trace import Tracer, typeof
from ...custom.gradient import closure_convert
from ...custom.jvp import custom_jvp
from ...jit.jit import jit
from ...lax.shape import zeros_of
from ...numpy.conditions import clip
from ...numpy.creation import asarray, full, zeros, zeros_like
from ...numpy.joining import concatenate
from ...numpy.manipulation import moveaxis
from ...numpy.promote import inexact
from ...numpy.selection import where
from ...numpy.sorting import searchsorted
from ...types import dtypes
from ...types.tree import tree_leaves
from .events import Ends, Event, Signs, crossed, located, read_events, values_of
from .odeint import like, solved_at
from .radau import RADAU
from .runge_kutta import DOP853, RK23, RK45
from .steps import Equation, Method, Progress, Settings, horner, is_going, start, step

_MESSAGES = {
    0: "The solver successfully reached the end of the integration interval.",
    1: "A termination event occurred.",
    -1: "The end was not reached: no step was short enough, or max_steps did not suffice.",
}
_STEPPERS: dict[str, Method] = {"RK23": RK23, "RK45": RK45, "DOP853": DOP853, "Radau": RADAU}
_SIZES = (128, 2048, 32768)     # of the steps kept, tried one after the other where none is given


class OdeSolution(NamedTuple):
    """A solution at every time: a call with times gives the states, times on the last axis.

    `ts` [m + 1] are the ends of the steps, `polynomials` [m, degree + 1, n] the steps' own.

    >>> from olympus.scipy.integrate import solve_ivp
    >>> sol = solve_ivp(lambda t, y: 0 * y + 1, (0., 4.), [0.], dense_output=True).sol
    >>> print(sol([0.5, 3.0]))
    [[0.5 3. ]]
    """

    ts: Array
    polynomials: Array

    def __call__(self, t: ArrayLike) -> Array:
        """States [n, *t.shape]; beyond the ends, the first or last polynomial goes on."""
        t = asarray(t)
        forward = where(self.ts[-1] < self.ts[0], -1, 1).astype(self.ts.dtype)
        last = self.polynomials.shape[0] - 1
        # No step of length 0, which fill up `ts`, is chosen before the end.
        i = clip(searchsorted(self.ts * forward, t * forward, side="left") - 1, 0, last)
        length = self.ts[i + 1] - self.ts[i]
        s = (t - self.ts[i]) / where(length == 0, 1, length)
        s = s[..., None].astype(dtypes.to_real_dtype(self.polynomials.dtype))
        states = horner(moveaxis(self.polynomials[i], -2, 0), s)
        return asarray(states).transpose(t.ndim, *range(t.ndim))


class OdeResult(NamedTuple):
    """The result of `solve_ivp`; the fields have SciPy's names."""

    t: Array
    y: Array
    sol: OdeSolution | None
    t_events: list | None   # the times [m] of each event
    y_events: list | None   # the states [m, n] then
    nfev: Any           # evaluations of `fun`
    status: Any         # 0: the end was reached; 1: an event ended it; -1: it was not
    success: Any

    @property
    def message(self) -> str:
        """The status in words."""
        return _MESSAGES[int(self.status)]


class _Problem(NamedTuple):
    """The functions of (t, y, *args) that describe the problem."""

    fun: Callable[..., Any]
    jac: Callable[..., Any] | None
    events: tuple[Event, ...]


@api_boundary
def solve_ivp(fun: Callable[..., ArrayLike], t_span: Sequence[ArrayLike], y0: ArrayLike,
              method: str = "RK45", t_eval: ArrayLike | None = None, dense_output: bool = False,
              events: Callable | Sequence[Callable] | None = None, vectorized: bool = False,
              args: tuple | None = None, *, rtol: float = 1e-3,
              atol: float | Sequence[float] = 1e-6, first_step: float | None = None,
              max_step: float = np.inf, jac: Callable | ArrayLike | None = None,
              max_steps: int | None = None) -> OdeResult:
    """Solve dy/dt = fun(t, y, *args) from y(t_span[0]) = y0 to t_span[1].

    Derivatives of all results, in both modes and any order, are with respect to `y0`, `t_span`,
    `args` and what functions close over: with `t_eval`, an explicit method and no events they solve
    differential equations of their own, as `odeint` does; otherwise they are the ends of the steps
    taken, which move with `t_span` alone. Those of events follow from their equations.

    Args:
      fun: gives dy/dt, [n], of (t, y, *args); note that the time comes first.
      t_span: (first, last) time; the last may be the earlier.
      y0: [n], real or complex. Narrower ones than float32 are computed with in float32.
      method: explicit Runge–Kutta pairs, "RK23" (Bogacki and Shampine), "RK45" (Dormand and Prince)
        and "DOP853" (of order 8, for small tolerances), or for stiff problems "Radau" (Radau IIA of
        order 5, for real states).
      t_eval: times, in order, at which the state is asked for; None: at the ends of the steps.
      dense_output: whether to give the solution at every time, as `sol`.
      events: functions of (t, y, *args) whose changes of sign are found on the solution, at most
        one in a step. Attributes are SciPy's: where `terminal` is True the first one ends the
        solution, where it is n the nth; `direction` 1 asks for those upwards, -1 downwards.
      vectorized: for SciPy's signature, without effect.
      args: further arguments of the functions, pytrees of arrays.
      rtol, atol: the error of a step may be `atol + rtol * abs(y)`, in the mean of squares; `atol`
        may be a vector [n] of numbers that are not traced.
      first_step, max_step: the first step, None for one that the method chooses, and the longest.
      jac: for "Radau" the Jacobian matrix [n, n] of `fun`, or a function of (t, y, *args) that
        gives it; None: by `jacfwd`.
      max_steps: the most steps. Under `jit` it must be given where steps are asked for, by
        `dense_output`, events or no `t_eval`, and for "Radau": `t` has max_steps + 1 elements
        then, the last one repeated, and each of `t_events` max_steps, NaN behind the events found.

    Returns:
      OdeResult: t [m], y [n, m], sol, t_events and y_events (lists, one array for each event),
      nfev, status (0; 1 where an event ended it; -1) and success. Where the end was not reached,
      states beyond are NaN; `t_eval` is cut where an event ended it, unless max_steps is given.

    >>> from olympus.scipy.integrate import solve_ivp
    >>> found = solve_ivp(lambda t, y: -0.5 * y, (0., 10.), [2.], dense_output=True, rtol=1e-6)
    >>> with onp.printoptions(precision=4):
    ...     print(found.success, found.sol(onp.array([1., 2.])))
    True [[1.2131 0.7358]]
    """
    if method in ("BDF", "LSODA"):
        raise NotImplementedError(f"solve_ivp: method {method!r} given; it is not offered: for "
                                  "stiff problems method='Radau' is.")
    if method not in _STEPPERS:
        raise ValueError(f"solve_ivp: method {method!r} given; one of {', '.join(_STEPPERS)} is "
                         "required.")
    if len(t_span) != 2:
        raise ValueError(f"solve_ivp: t_span of {len(t_span)} times given; two are required.")
    y0 = inexact(asarray(y0))
    if y0.ndim != 1:
        raise ValueError(f"solve_ivp: y0 {typeof(y0)} given; a vector is required.")
    if method == "Radau" and dtypes.is_complex(y0.dtype):
        raise ValueError(f"solve_ivp: y0 {typeof(y0)} given; method 'Radau' takes real states: "
                         "give real and imaginary parts as two.")
    if jac is not None and method != "Radau":
        warn(f"solve_ivp: jac given; method {method!r} has no use for it: 'Radau' has.",
             stacklevel=3)
        jac = None
    # Sizes of steps, and squares of errors, do not fit in narrower dtypes.
    state = y0.astype(dtypes.result_type(y0.dtype, np.float32))
    span = asarray([asarray(t).astype(dtypes.to_real_dtype(state.dtype)) for t in t_span])
    args = () if args is None else tuple(args)
    times = None if t_eval is None else asarray(t_eval).astype(span.dtype)
    settings = _settings(method, rtol, atol, max_step, first_step, y0.size, span)
    problem = _Problem(fun, jac if callable(jac) else None, read_events(events))
    # A stiff equation cannot be solved backwards, as cotangents ask for: steps have derivatives.
    if not (dense_output or times is None or method == "Radau" or problem.events):
        limit = np.inf if max_steps is None else max_steps
        result = _at_times(problem, settings._replace(most_steps=limit), state, span, times, args)
    else:
        matrix = None if jac is None or callable(jac) else asarray(jac)
        result = _with_steps(problem, settings, max_steps, dense_output, state, span, times, args,
                             matrix)
    return result if state.dtype == y0.dtype else _narrow(result, y0.dtype)


def _settings(method: str, rtol: object, atol: Any, max_step: object, first_step: object, n: int,
              span: Any) -> Settings:
    """The settings, if they make sense."""
    if np.ndim(atol):
        values = np.asarray(atol, float)
        if values.shape != (n,):
            raise ValueError(f"solve_ivp: atol of shape {values.shape} given; a number, or one for "
                             f"each of the {n} elements of y0, is required.")
        least, atol = min(values.tolist(), default=0.0), tuple(values.tolist())
    else:
        least = atol = real_number(atol, "solve_ivp: atol")
    if least < 0:
        raise ValueError(f"solve_ivp: atol {least} given; numbers from 0 on are required.")
    longest = real_number(max_step, "solve_ivp: max_step")
    if not longest > 0:
        raise ValueError(f"solve_ivp: max_step {max_step} given; a positive number is required.")
    first = None if first_step is None else real_number(first_step, "solve_ivp: first_step")
    if first is not None and not (
            first > 0 and (isinstance(span, Tracer) or first <= abs(span[1] - span[0]))):
        raise ValueError(f"solve_ivp: first_step {first_step} given; a positive number, at most "
                         "the length of t_span, is required.")
    return Settings(real_number(rtol, "solve_ivp: rtol"), atol, longest, _STEPPERS[method],
                    first=first)


def _narrow(result: OdeResult, dtype: DTypeLike) -> OdeResult:
    """States in the dtype that the first one had; times keep the digits that steps need."""
    sol, states = result.sol, result.y_events
    return result._replace(
        y=result.y.astype(dtype),
        sol=sol and sol._replace(polynomials=sol.polynomials.astype(dtype)),
        y_events=states and [y.astype(dtype) for y in states])


def _with_steps(problem: _Problem, settings: Settings, max_steps: int | None, dense: bool,
                y0: Array, span: Array, times: Array | None, args: tuple, matrix: Array | None
                ) -> OdeResult:
    sizes = [*_SIZES] if max_steps is None else [max_steps]
    while True:
        size = sizes.pop(0)
        ts, ys, polynomials, count, nfev, status, events_of = _steps(
            problem, settings, size, y0, span, args, matrix)
        # Values that `fun` closes over may be traced, too.
        traced = any(isinstance(x, Tracer) for x in tree_leaves((y0, span, args, status)))
        if traced and max_steps is None:
            raise ValueError("solve_ivp: traced arguments and no max_steps given; the number of "
                             "steps is not known while tracing: max_steps= is required, or t_eval= "
                             "without dense_output and events and an explicit method.")
        if traced or status >= 0 or count < size or not sizes:
            break
    exact = not traced and max_steps is None        # as many as there were
    if exact:
        steps = max(int(count), 1)
        ts, ys, polynomials = ts[:steps + 1], ys[:steps + 1], polynomials[:steps]
    sol = OdeSolution(ts, polynomials)
    y = ys.T
    if times is not None:
        first, last = where(ts[-1] < ts[0], ts[::-1], ts)[np.array([0, -1])]
        reached = (times >= first) & (times <= last)
        y = where(reached, sol(times), np.nan)
        ts = times
        if exact and status == 1:
            ts, y = ts[np.asarray(reached)], y[:, np.asarray(reached)]
    t_events = y_events = None
    if events_of is not None:
        lengths = [int(n) if exact else size for n in events_of.counts]
        t_events = [t[:n] for t, n in zip(events_of.ts, lengths, strict=True)]
        y_events = [y[:n] for y, n in zip(events_of.ys, lengths, strict=True)]
    return OdeResult(ts, y, sol if dense else None, t_events, y_events, nfev, status, status >= 0)


def _with_closed_values(problem: _Problem, y0: PyTree, t: Array, args: tuple,
                        matrix: object) -> tuple:
    """The functions as ones of (y, t, operands), and operands: `args` and the values that they
    close over.
    """
    def dynamics(y: Array, t: Array, *args: object) -> Array:
        slope = asarray(problem.fun(t, y, *args))
        if slope.shape != y.shape:
            raise TypeError(f"solve_ivp: fun returned {typeof(slope)}; the shape of the state, "
                            f"{y.shape}, is required.")
        return like(slope, y)

    def jacobian(y: Array, t: Array, *args: object) -> Array:
        square = asarray(problem.jac(t, y, *args) if problem.jac else matrix)
        if square.shape != (y.size, y.size):
            raise ValueError(f"solve_ivp: jac is {typeof(square)}; a square matrix of "
                             f"{y.size} rows is required.")
        return like(square, y)

    wanted = (dynamics,
              jacobian if problem.jac or matrix is not None else None,
              (lambda y, t, *args: values_of(problem.events, y, t, args))
              if problem.events else None)
    made = []
    operands: list[Sequence[PyTree]] = [args]
    for i, function in enumerate(wanted):
        converted, consts = closure_convert(function, y0, t, *args) if function else (None, [])
        operands.append(consts)
        made.append(converted and partial(_apply_closed, converted, i + 1))
    return made, operands


def _apply_closed(converted: Callable[..., Array], i: int, y: Array, t: Array,
                  operands: list) -> Array:
    return converted(y, t, *operands[0], *operands[i])


@partial(jit, static_argnums=(0, 1))
def _at_times(problem: _Problem, settings: Settings, y0: Array, span: Array, times: Array,
              args: tuple) -> OdeResult:
    (field, *_), operands = _with_closed_values(problem, y0, span[0], args, None)
    ts = concatenate([span[:1], times, span[1:]])
    ys = solved_at(field, settings, y0, ts, (operands,))
    status = where((ys[-1] == ys[-1]).all(), 0, -1)
    return OdeResult(times, ys[1:-1].T, None, None, None, None, status, status == 0)


@partial(jit, static_argnums=(0, 1, 2))
def _steps(problem: _Problem, settings: Settings, size: int, y0: Array, span: Array, args: tuple,
           matrix: object) -> tuple:
    signs = Signs(tuple(e.most for e in problem.events), tuple(e.direction for e in problem.events))
    functions, operands = _with_closed_values(problem, y0, span[0], args, matrix)
    ts, ys, polynomials, values, count, nfev, done = _walk(
        (*functions, signs), settings, size, y0, span, operands)
    status = where(done, 0, -1)
    if not problem.events:
        return ts, ys, polynomials, count, nfev, status, None
    forward = where(span[1] < span[0], -1, 1).astype(ts.dtype)
    located_events = located(lambda y, t: functions[2](y, t, operands), signs,
                             Ends(ts, polynomials, values, count), forward)
    # The last step ends where an event ended it.
    y = OdeSolution(ts, polynomials)(where(located_events.stops, located_events.stop, ts[-1]))
    part = (located_events.stop - ts[count - 1]) / (ts[count] - ts[count - 1])
    shorter = polynomials[count - 1] * part.astype(ys.dtype) ** np.arange(
        polynomials.shape[1])[::-1, None].astype(ys.dtype)
    still = zeros_like(shorter).at[-1].set(y)
    behind = located_events.stops & (np.arange(size + 1) >= count)
    polynomials = where(located_events.stops & (np.arange(size) >= count)[:, None, None], still,
                        polynomials)
    last = where(located_events.stops, shorter, polynomials[count - 1])
    return (where(behind, located_events.stop, ts), where(behind[:, None], y, ys),
            polynomials.at[count - 1].set(last), count, nfev,
            where(located_events.stops, 1, status), located_events)


@partial(custom_jvp, nondiff_argnums=(0, 1, 2))
def _walk(functions: tuple, settings: Settings, size: int, y0: Array, span: Array, operands: PyTree
          ) -> tuple:
    """The ends [size + 1] of the accepted steps, the states there, the polynomials, the values of
    the events at the ends, and counts.
    """
    fun, jac, events, signs = functions
    sign = where(span[1] < span[0], -1, 1).astype(span.dtype)
    last = span[1] * sign

    def slope(y: Array, s: Array) -> Array:
        return fun(y, s * sign, operands) * sign.astype(dtypes.to_real_dtype(y.dtype))

    def jacobian(y: Array, s: Array) -> Array:
        return jac(y, s * sign, operands) * sign.astype(y.dtype)

    equation = Equation(slope, jacobian if jac else jacfwd(slope))

    def values(p: Progress) -> Array:
        return events(p.y, p.t * sign, operands) if events else zeros(0, p.t.dtype)

    def body(state: PyTree) -> PyTree:
        p, count, often, ts, ys, polynomials, all_signs = state
        # The last step ends at the end.
        p, accepted = step(equation, p._replace(dt=where(p.t + p.dt > last, last - p.t, p.dt)),
                           settings)
        p = p._replace(t=where(accepted & (last - p.t <= abs(last) * 1e-7), last, p.t))
        now = values(p)
        often = often + (accepted & crossed(signs, all_signs[count], now))
        count = count + accepted
        at = where(accepted, count, size + 1)       # beyond the end: dropped
        return (p, count, often, ts.at[at].set(p.t), ys.at[at].set(p.y),
                polynomials.at[at - 1].set(p.polynomial), all_signs.at[at].set(now))

    def going(state: PyTree) -> Array:
        p, count, often = state[:3]
        return (is_going(p, last, np.inf) & (count < size)
                & (often < np.asarray(signs.most, int)).all())

    p = start(slope, y0, span[0] * sign, settings)
    degree, before = settings.method.degree, values(p)
    p, count, _, ts, ys, polynomials, all_signs = while_loop(going, body, (
        p, asarray(0), zeros(len(signs.most), int), full((size + 1,), p.t),
        full((size + 1, y0.size), y0), zeros((size, degree + 1, y0.size), y0.dtype),
        full((size + 1, before.size), before)))
    behind = np.arange(size + 1) > count
    ts = where(behind, p.t, ts) * sign
    ys = where(behind[:, None], p.y, ys)
    still = concatenate([zeros((degree, y0.size), y0.dtype), p.y[None]])
    polynomials = where(behind[1:, None, None], still, polynomials)
    return ts, ys, polynomials, all_signs, count, p.evaluations, p.t >= last


@_walk.defjvp
def _walk_jvp(functions: tuple, settings: Settings, size: int, primals: Sequence[Array],
              tangents: Sequence[Array]) -> Any:
    """Derivatives of the steps that were taken, whose ends divide the time between in fixed parts.
    """
    span = primals[1]
    ts, ys, polynomials, *counts = _walk(functions, settings, size, *primals)
    parts = (ts - span[0]) / where(span[1] == span[0], 1, span[1] - span[0])

    def replay(y0: Array, span: Array, operands: PyTree) -> tuple[Array, Array, Array]:
        ts = span[0] + parts * (span[1] - span[0])

        def body(y: Array, step: tuple[Array, Array, Array]) -> tuple[Array, PyTree]:
            t, after, polynomial = step
            h = (after - t).astype(dtypes.to_real_dtype(y.dtype))
            y1, again = settings.method.redo(
                lambda y, t: functions[0](y, t, operands), y, t, h, polynomial)
            return y1, (y1, again)

        _, (later, moving) = scan(body, y0, (ts[:-1], ts[1:], polynomials))
        return ts, concatenate([y0[None], later]), moving

    _, moved = jvp(replay, primals, tangents)
    return (ts, ys, polynomials, *counts), (
        *moved, *(zeros_of(typeof(x).to_tangent_aval()) for x in counts))
