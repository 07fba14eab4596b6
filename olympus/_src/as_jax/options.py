"""`jax.config`: the options of Olympus under the names that JAX has for them."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from ..base.config import config as _ours
from . import spellings

__all__ = ["config"]


def _respelling(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose errors have JAX's names of options."""
    @functools.wraps(method)
    def respelt(self: Any, *args: Any) -> Any:
        try:
            return method(self, *args)
        except (AttributeError, TypeError, ValueError) as error:
            raise type(error)(spellings.theirs(str(error))) from None
    return respelt


class Configuration:
    """Reads and changes the options by JAX's names of them; ours are known, too."""

    __slots__ = ()

    @_respelling
    def update(self, name: str, val: Any) -> None:
        """Set an option for the process; 1 and 0 are True and False."""
        spelt = spellings.ours(name)
        boolean = type(val) is int and isinstance(_ours.read(spelt), bool)
        _ours.update(spelt, bool(val) if boolean else val)

    @_respelling
    def read(self, name: str) -> Any:
        """The value that an option has in this thread."""
        return _ours.read(spellings.ours(name))

    @property
    def values(self) -> dict[str, Any]:
        """Every option with its value in this thread."""
        return {name: self.read(name) for name in dir(self) if name.startswith("jax_")}

    @_respelling
    def __getattr__(self, name: str) -> Any:
        return getattr(_ours, spellings.ours(name))

    def __dir__(self) -> list[str]:
        return [*map(spellings.theirs, dir(_ours)), "values"]

    def __repr__(self) -> str:
        return spellings.theirs(repr(_ours))


config = Configuration()
