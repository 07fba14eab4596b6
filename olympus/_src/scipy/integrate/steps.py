"""Steps of a method that adapt to the error: where an integration is, and how it goes on.

A method has `order` (of its estimate of the error), `degree` (of its polynomials between the ends
of a step), `attempt`, which tries a step, and `redo`, the step that was taken as a function that
has derivatives.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np

from ...base.typing import Array, ArrayLike, DType
from ...numpy.arithmetic import minimum
from ...numpy.conditions import clip
from ...numpy.creation import asarray, ones, zeros_like
from ...numpy.joining import stack
from ...numpy.selection import where
from ...types import dtypes
from .dormand_prince import Fun, initial_step_size

HOPELESS = 3e4      # a ratio that makes steps as much smaller as one can, in float16, too


class Equation(NamedTuple):
    """dy/dt = fun(y, t), and the Jacobian matrix of `fun` for the methods that want it."""

    fun: Fun
    jacobian: Fun


class Progress(NamedTuple):
    """Where an integration is: the end of the last step that was accepted, and that step."""

    y: Array
    f: Array
    t: Array
    dt: Array           # length of the next step
    t_before: Array     # where the last step began
    polynomial: Array   # [degree + 1, n], through the last step: highest power first
    ratio: Array        # error of the last step over the allowed error
    steps: Array        # number of steps tried since the last output time
    evaluations: Array  # number of evaluations of the derivative since the beginning


class Attempt(NamedTuple):
    """The outcome of a step that is tried."""

    y: Array
    f: Array
    polynomial: Array
    ratio: Array        # its error over the allowed error
    dt: Array           # length of the step after it, or of the next try if it is refused
    evaluations: Array | int    # number of evaluations of the derivative


class Method(Protocol):
    """A method of one step."""

    @property
    def order(self) -> int: ...
    @property
    def degree(self) -> int: ...

    def attempt(self, eq: Equation, p: Progress, h: Array, rtol: float, atol: ArrayLike
                ) -> Attempt: ...

    def redo(self, fun: Fun, y: Array, t: Array, h: Array, polynomial: Array
             ) -> tuple[Array, Array]: ...


class Settings(NamedTuple):
    """The demands on a solution."""

    rtol: float
    atol: float | tuple[float, ...]     # one for all, or one for each element of the state
    hmax: float
    method: Method
    most_steps: float = np.inf          # between two times
    first: float | None = None          # step

    def allowed(self, dtype: DType) -> float | np.ndarray:
        """The absolute tolerance beside states of a dtype."""
        if isinstance(self.atol, tuple):
            return np.asarray(self.atol, dtypes.to_real_dtype(dtype))
        return self.atol

    def beside(self, n: int, more: int) -> Settings:
        """For a state of n elements and more beside it, which is no longer the one of `first`."""
        if not isinstance(self.atol, tuple):
            return self._replace(first=None)
        others = self.atol if more == n else (min(self.atol, default=0.0),) * more
        return self._replace(first=None, atol=self.atol + others)


def start(fun: Fun, y0: Array, t0: Array, settings: Settings) -> Progress:
    """Before the first step."""
    method, f0 = settings.method, fun(y0, t0)
    dt = asarray(settings.first) if settings.first else initial_step_size(
        fun, t0, y0, method.order, settings.rtol, settings.allowed(y0.dtype), f0)
    still = stack([zeros_like(y0)] * method.degree + [y0])
    return Progress(y0, f0, t0, minimum(dt, settings.hmax).astype(t0.dtype), t0, still,
                    ones((), dtypes.to_real_dtype(y0.dtype)), asarray(0),
                    asarray(1 if settings.first else 2))


def step(eq: Equation, p: Progress, settings: Settings) -> tuple[Progress, Array]:
    """Try a step: the state after it, and whether it was accepted."""
    h = p.dt.astype(dtypes.to_real_dtype(p.y.dtype))
    tried = settings.method.attempt(eq, p, h, settings.rtol, settings.allowed(p.y.dtype))
    accepted = tried.ratio <= 1
    counts = p.steps + 1, p.evaluations + tried.evaluations
    dt = clip(tried.dt, 0, settings.hmax)
    after = Progress(tried.y, tried.f, p.t + p.dt, dt, p.t, tried.polynomial, tried.ratio, *counts)
    before = p._replace(dt=dt, steps=counts[0], evaluations=counts[1])
    return Progress(*[where(accepted, a, b).astype(old.dtype)
                      for a, b, old in zip(after, before, p, strict=True)]), accepted


def finite(ratio: Array) -> Array:
    """Beyond the numbers, or where `fun` has no value: a smaller step may be within."""
    return where(ratio < HOPELESS, ratio, HOPELESS)


def is_going(p: Progress, until: ArrayLike, most_steps: float) -> Array:
    """Is a further step needed and possible? A step too small to move the time is not."""
    going = (p.t < until) & (p.t + p.dt > p.t)
    return going if most_steps == np.inf else going & (p.steps < most_steps)


def at_time(p: Progress, t: ArrayLike) -> Array:
    """The state at a time within the last step; NaN where the integration did not get there."""
    length = where(p.t > p.t_before, p.t - p.t_before, 1)
    s = ((t - p.t_before) / length).astype(dtypes.to_real_dtype(p.y.dtype))
    return where(t <= p.t, horner(p.polynomial, s), np.nan)


def horner(polynomial: Array, s: ArrayLike) -> Array:
    """The values [..., n] of polynomials [degree + 1, ..., n], highest power first."""
    value = polynomial[0]
    for coefficient in polynomial[1:]:
        value = value * s + coefficient
    return value
