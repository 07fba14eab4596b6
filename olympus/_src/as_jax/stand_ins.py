"""What Olympus does not have yet, for libraries that name it at import: classes without instances.

A stand-in can be named, subclassed and asked `isinstance` of, which is False. Whoever calls it is
told what it would need. It goes when the thing itself comes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .finder import asker

__all__ = ["StandIn", "planned"]


class StandIn(type):
    """The class of stand-ins: calling one, or what it has, raises."""

    what: str   # what it needs

    def __call__(cls, *args: Any, **kwargs: object) -> Any:
        raise NotImplementedError(
            f"{cls.__module__}.{cls.__qualname__}: called, at {asker()}; it needs {cls.what}, "
            "planned but not there yet; see docs/coming_from_jax.md for what to do instead.")

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(f"{cls.__qualname__!r} has no attribute {name!r}")
        return _made(cls.__module__, f"{cls.__qualname__}.{name}", cls.what)


def _made(module: str, name: str, what: str) -> object:
    return StandIn(name.rpartition(".")[2], (), {
        "__module__": module, "__qualname__": name, "what": what,
        "__init_subclass__": classmethod(lambda cls, **_: None)})


def planned(adapter: str, what: str, names: str) -> Callable[[str], Any]:
    """The `__getattr__` of an adapter of which these names, at least, are stand-ins.

    Args:
      adapter: the adapter's own name.
      what: what is missing, as messages say it.
      names: the names, separated by spaces.
    """
    module = "jax" + adapter.partition(".adapters")[2]
    made = {name: _made(module, name, what) for name in names.split()}

    def find(name: str) -> object:
        if name not in made:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return made[name]
    return find
