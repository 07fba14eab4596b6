"""Events of solve_ivp: where functions of a solution change sign, and where it ends for that."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from ...base.typing import Array, ArrayLike, PyTree
from ...control.bodies import check_callable
from ...control_flow.while_loop import fori_loop
from ...core.trace import typeof
from ...custom.solves import custom_root
from ...mapping.vmap import vmap
from ...numpy.arithmetic import sign
from ...numpy.creation import asarray, full, ones_like, zeros_like
from ...numpy.joining import stack
from ...numpy.reductions import cumsum
from ...numpy.selection import where
from ...types import dtypes
from .dormand_prince import Fun
from .steps import horner

_OFTEN = np.iinfo(np.int32).max


class Event(NamedTuple):
    """A function of (t, y, *args) whose zeros are asked for."""

    fun: Callable[..., ArrayLike]
    most: int           # the zero of this number ends the solution
    direction: float    # of the change of sign: 1 upwards, -1 downwards, 0 both


class Signs(NamedTuple):
    """The directions and numbers of events that are asked for."""

    most: tuple[int, ...]
    directions: tuple[float, ...]


class Ends(NamedTuple):
    """Steps: their ends and polynomials, with the values of the events at the ends."""

    ts: Array           # [m + 1]
    polynomials: Array  # [m, degree + 1, n]
    values: Array       # [m + 1, k]
    count: Array        # of the steps that were taken


class Found(NamedTuple):
    """The zeros of each event in order, then NaN."""

    ts: list[Array]
    ys: list[Array]
    counts: list[Array]
    stops: Array        # whether an event ended the solution
    stop: Array         # when: inf where none did


def read_events(events: Callable[..., ArrayLike] | Iterable[Callable[..., ArrayLike]] | None
                ) -> tuple[Event, ...]:
    """The functions with their attributes `terminal` and `direction`, as SciPy has them."""
    if events is None:
        return ()
    read = []
    for event in (events,) if callable(events) else tuple(events):
        check_callable("solve_ivp", event=event)
        terminal = getattr(event, "terminal", None)
        most = _OFTEN if terminal is None or terminal is False else terminal
        if int(most) != most or most < 1:
            raise ValueError(f"solve_ivp: an event whose terminal is {terminal!r} given; a boolean "
                             "or a positive integer is required.")
        read.append(Event(event, int(most), float(getattr(event, "direction", 0))))
    return tuple(read)


def values_of(events: Sequence[Event], y: Array, t: Array, args: Sequence[PyTree]) -> Array:
    """The values [k] of the functions."""
    values = []
    for event in events:
        value = asarray(event.fun(t, y, *args))
        if value.size != 1 or dtypes.is_complex(value.dtype):
            raise TypeError(f"solve_ivp: an event returned {typeof(value)}; one real number is "
                            "required.")
        values.append(value.reshape(()).astype(dtypes.to_real_dtype(y.dtype)))
    return stack(values)


def crossed(signs: Signs, before: Array, after: Array) -> Array:
    """Which events have a zero between values [..., k]; as in SciPy, ends that are 0 count."""
    directions = np.asarray(signs.directions)
    up, down = (before <= 0) & (after >= 0), (before >= 0) & (after <= 0)
    return up & (directions >= 0) | down & (directions <= 0)


def located(fun: Fun, signs: Signs, ends: Ends, forward: Array) -> Found:
    """The zeros between the ends of steps; `fun(y, t)` gives the values [k] of all events."""
    taken = np.arange(len(ends.polynomials)) < ends.count
    length = ends.ts[1:] - ends.ts[:-1]

    def within(polynomial: Array, t: Array, h: Array, s: Array) -> Array:
        values = [fun(horner(polynomial, part), t + part * h)[i] for i, part in enumerate(s)]
        return stack(values)

    def at(s: Array) -> Array:
        return vmap(within)(ends.polynomials, ends.ts[:-1], length, s)

    mask = crossed(signs, ends.values[:-1], ends.values[1:]) & taken[:, None]
    s = custom_root(lambda s: where(mask, at(s), s), zeros_like(ends.values[1:]),
                    lambda _, s: _halved(at, ends.values[:-1], s),
                    lambda g, y: y / where(mask, g(ones_like(y)), 1))
    times = ends.ts[:-1, None] + s * length[:, None]
    states = vmap(lambda p, s: vmap(lambda s: horner(p, s))(s))(ends.polynomials, s)

    number = cumsum(mask, axis=0)
    ending = mask & (number == np.asarray(signs.most))
    stop = where(ending, times * forward, np.inf).min(initial=np.inf)
    # Events of the last step behind the end have not happened.
    mask = mask & (times * forward <= stop)
    number = cumsum(mask, axis=0)
    ts, ys = [], []
    for i in range(len(signs.most)):
        place = where(mask[:, i], number[:, i] - 1, len(mask))
        ts.append(full(len(mask), np.nan, times.dtype).at[place].set(times[:, i]))
        ys.append(full(states[:, i].shape, np.nan, states.dtype).at[place].set(states[:, i]))
    return Found(ts, ys, list(mask.sum(0)), ending.any(), stop * forward)


def _halved(at: Callable[[Array], Array], first: Array, s: Array) -> Array:
    """Zeros in [0, 1] of functions with the signs of `first` at 0, by halving the interval."""
    def body(_: object, bounds: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = bounds
        middle = (low + high) / 2
        before = sign(at(middle)) == sign(first)
        return where(before, middle, low), where(before, high, middle)

    steps = dtypes.finfo(s.dtype).nmant + 3
    _, high = fori_loop(0, steps, body, (s, s + 1))
    return where(first == 0, 0, high)
