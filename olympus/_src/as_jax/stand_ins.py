"""Classes without instances, for features that libraries name at import and Olympus lacks.

A stand-in can be named, subclassed and asked `isinstance` of, which is False. Its caller is told
its requirements. It goes when the thing itself comes.
"""

from __future__ import annotations

import importlib
import inspect
import os
from typing import Any

from ..base.source import short_path

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep


class StandIn(type):
    """The class of stand-ins: calling one, or an attribute of one, raises."""

    what: str   # its requirement

    def __call__(cls, *args: Any, **kwargs: object) -> Any:
        raise NotImplementedError(
            f"{cls.__module__}.{cls.__qualname__}: called, at {asker()}; it needs {cls.what}, "
            "planned but not there yet; see docs/coming_from_jax.md for what to do instead.")

    def __getitem__(cls, parameters: object) -> StandIn:
        """The class itself, where an annotation gives it parameters."""
        return cls

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{cls.__qualname__!r} has no attribute {name!r}")
        return stand_in(cls.__module__, f"{cls.__qualname__}.{name}", cls.what)


def stand_in(module: str, name: str, what: str) -> Any:
    """A class of that name in a module of JAX, which needs something that is missing."""
    return StandIn(name.rpartition(".")[2], (), {
        "__module__": module, "__qualname__": name, "what": what,
        "__init_subclass__": classmethod(lambda cls, **_: None)})


def asker() -> str:
    """The line, outside of this package and the import system, that asks for something."""
    frame = inspect.currentframe()
    while frame is not None and (frame.f_code.co_filename.startswith((_HERE, "<frozen importlib"))
                                 or frame.f_code.co_filename == importlib.__file__):
        frame = frame.f_back
    if frame is None:
        return "<unknown>"
    return f"{short_path(frame.f_code.co_filename)}:{frame.f_lineno}"
