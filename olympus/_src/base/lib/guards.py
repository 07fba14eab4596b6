"""Guards: what C++ does when arrays move between host and devices, or are garbage."""

from typing import Any

from olympus._src.base.lib.loading import _jax

_guards: Any = _jax.guard_lib


def guard(field: str, level: str | None, *, everywhere: bool) -> None:
    """Set the level of a guard for the process, or for this thread.

    `field` is a direction ("host_to_device" …), whose level is "allow", "log", "disallow",
    "log_explicit" or "disallow_explicit"; or "garbage_collect_array", with "allow", "log" or
    "fatal". None is no level: the process's, or "allow".
    """
    state = _guards.global_state() if everywhere else _guards.thread_local_state()
    levels = (_guards.GarbageCollectionGuardLevel if field == "garbage_collect_array" else
              _guards.TransferGuardLevel)
    setattr(state, field, None if level is None else getattr(levels, level.upper()))


def array_tracebacks(on: bool) -> None:
    """Set whether new arrays keep the stack of Python's frames."""
    if hasattr(_jax, "set_tracebacks_enabled"):
        _jax.set_tracebacks_enabled(on)


def thread_guard(on: bool) -> None:
    """Set whether only this thread may start programs of several processes."""
    _guards.update_thread_guard_global_state(on)


class explicit_transfers:
    """Context manager: transfers of this thread are those that the user asked for by name."""

    __slots__ = ("_previous", "_state")

    def __enter__(self) -> None:
        state = self._state = _guards.thread_local_state()
        self._previous = state.explicit_device_put, state.explicit_device_get
        state.explicit_device_put = state.explicit_device_get = True

    def __exit__(self, *exc_info: object) -> None:
        self._state.explicit_device_put, self._state.explicit_device_get = self._previous
