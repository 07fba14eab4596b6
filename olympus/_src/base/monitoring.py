"""Events of this process, told to listeners: compilations, their durations, and users' own events.

Without listeners an event costs a look at an empty tuple.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeAlias

Listener: TypeAlias = Callable[..., object]
_lock = threading.Lock()


class Listeners:
    """Who is told of one kind of event, in the order of registration."""

    __slots__ = ("called", "kind")

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self.called: tuple[Listener, ...] = ()      # replaced, not changed: events come meanwhile

    def add(self, callback: Listener) -> None:
        """Tell `callback`, too."""
        if not callable(callback):
            raise TypeError(f"register_{self.kind}_listener: {callback!r:.60} of type "
                            f"{type(callback).__name__} given; a function is required.")
        with _lock:
            self.called = *self.called, callback

    def remove(self, callback: Listener) -> None:
        """Tell it no more, once for each time that it was added."""
        with _lock:
            left = list(self.called)
            if callback not in left:
                raise ValueError(f"unregister_{self.kind.removesuffix('_secs')}_listener: "
                                 f"{callback!r:.60} given, which does not listen; register it "
                                 "before.")
            left.remove(callback)
            self.called = tuple(left)


events, durations = Listeners("event"), Listeners("event_duration_secs")
time_spans, scalars = Listeners("event_time_span"), Listeners("scalar")


def record_event(event: str, **kwargs: str | int) -> None:
    """Tell the listeners that something happened.

    Args:
      event: its name, by custom a path: "/my_program/saved".
      kwargs: more about it.

    >>> monitoring.register_event_listener(print)
    >>> monitoring.record_event("/my_program/saved")
    /my_program/saved
    >>> monitoring.unregister_event_listener(print)
    """
    for listener in events.called:
        listener(event, **kwargs)


def record_event_duration_secs(event: str, duration: float, **kwargs: str | int) -> None:
    """Tell the listeners how long something took.

    Args:
      event: its name.
      duration: in seconds.
      kwargs: more about it.

    >>> monitoring.register_event_duration_secs_listener(print)
    >>> monitoring.record_event_duration_secs("/my_program/saving", 0.5)
    /my_program/saving 0.5
    >>> monitoring.unregister_event_duration_listener(print)
    """
    for listener in durations.called:
        listener(event, duration, **kwargs)


def record_event_time_span(event: str, start_time: float, end_time: float, **kwargs: str | int
                           ) -> None:
    """Tell the listeners when something began and ended.

    Args:
      event: its name.
      start_time, end_time: as `time.time()` gives them.
      kwargs: more about it.

    >>> monitoring.register_event_time_span_listener(print)
    >>> monitoring.record_event_time_span("/my_program/saving", 10.0, 10.5)
    /my_program/saving 10.0 10.5
    >>> monitoring.unregister_event_time_span_listener(print)
    """
    for listener in time_spans.called:
        listener(event, start_time, end_time, **kwargs)


def record_scalar(event: str, value: float, **kwargs: str | int) -> None:
    """Tell the listeners a number.

    Args:
      event: its name.
      value: the number.
      kwargs: more about it.

    >>> monitoring.register_scalar_listener(print)
    >>> monitoring.record_scalar("/my_program/loss", 0.25)
    /my_program/loss 0.25
    >>> monitoring.unregister_scalar_listener(print)
    """
    for listener in scalars.called:
        listener(event, value, **kwargs)


def register_event_listener(callback: Listener) -> None:
    """Let a function be told of `record_event`.

    Args: callback: called with the event and its keywords, in the thread where it happens; its
        exceptions come out there.

    >>> seen = []
    >>> monitoring.register_event_listener(lambda event, **more: seen.append(event))
    >>> monitoring.record_event("/my_program/saved")
    >>> seen
    ['/my_program/saved']
    >>> monitoring.clear_event_listeners()
    """
    events.add(callback)


def register_event_duration_secs_listener(callback: Listener) -> None:
    """Let a function be told of `record_event_duration_secs`.

    Args: callback: called with the event, the seconds and keywords.

    >>> seen = []
    >>> monitoring.register_event_duration_secs_listener(
    ...     lambda event, seconds, **more: seen.append((event, more["fun_name"])))
    >>> _ = olympus.jit(lambda x: x + 41).trace(1)
    >>> seen
    [('/olympus/core/compile/olympuspr_trace_duration', '<lambda>')]
    >>> monitoring.clear_event_listeners()
    """
    durations.add(callback)


def register_event_time_span_listener(callback: Listener) -> None:
    """Let a function be told of `record_event_time_span`.

    Args: callback: called with the event, its begin, its end and keywords.

    >>> monitoring.register_event_time_span_listener(
    ...     lambda event, start, end, **more: print(event, end - start))
    >>> monitoring.record_event_time_span("/my_program/saving", 10.0, 10.5)
    /my_program/saving 0.5
    >>> monitoring.clear_event_listeners()
    """
    time_spans.add(callback)


def register_scalar_listener(callback: Listener) -> None:
    """Let a function be told of `record_scalar`.

    Args: callback: called with the event, the number and keywords.

    >>> monitoring.register_scalar_listener(lambda event, value, **more: print(event, value))
    >>> monitoring.record_scalar("/my_program/loss", 0.25)
    /my_program/loss 0.25
    >>> monitoring.clear_event_listeners()
    """
    scalars.add(callback)


def unregister_event_listener(callback: Listener) -> None:
    """Tell a function no more of events; ValueError if it does not listen.

    Args: callback: what `register_event_listener` was given.

    >>> monitoring.register_event_listener(print)
    >>> monitoring.unregister_event_listener(print)
    """
    events.remove(callback)


def unregister_event_duration_listener(callback: Listener) -> None:
    """Tell a function no more of durations; ValueError if it does not listen.

    Args: callback: what `register_event_duration_secs_listener` was given.

    >>> monitoring.register_event_duration_secs_listener(print)
    >>> monitoring.unregister_event_duration_listener(print)
    """
    durations.remove(callback)


def unregister_event_time_span_listener(callback: Listener) -> None:
    """Tell a function no more of spans of time; ValueError if it does not listen.

    Args: callback: what `register_event_time_span_listener` was given.

    >>> monitoring.register_event_time_span_listener(print)
    >>> monitoring.unregister_event_time_span_listener(print)
    """
    time_spans.remove(callback)


def unregister_scalar_listener(callback: Listener) -> None:
    """Tell a function no more of numbers; ValueError if it does not listen.

    Args: callback: what `register_scalar_listener` was given.

    >>> monitoring.register_scalar_listener(print)
    >>> monitoring.unregister_scalar_listener(print)
    """
    scalars.remove(callback)


def clear_event_listeners() -> None:
    """Tell nobody any more, of events of all kinds.

    >>> monitoring.register_event_listener(print)
    >>> monitoring.clear_event_listeners()
    >>> monitoring.record_event("/my_program/saved")
    """
    for kind in (events, durations, time_spans, scalars):
        kind.called = ()

