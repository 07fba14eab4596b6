"""`jax.config`: the options of Olympus under the names that JAX has for them."""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable
from typing import Any

from ..base.config import config as _ours
from ..base.util import lazy_module
from . import spellings

app, flags = lazy_module("absl.app"), lazy_module("absl.flags")


def _respelling(method: Callable[..., Any]) -> Callable[..., Any]:
    """A method whose errors have JAX's names of options."""
    @functools.wraps(method)
    def respelt(self: Any, *args: object, **keywords: object) -> object:
        try:
            return method(self, *args, **keywords)
        except (AttributeError, TypeError, ValueError) as error:
            raise type(error)(spellings.theirs(str(error))) from None
    return respelt


class Configuration:
    """Reads and changes the options by JAX's names of them; ours are known, too."""

    __slots__ = ()

    @_respelling
    def update(self, name: str, val: object) -> None:
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

    @property
    def x64_enabled(self) -> bool:
        """Whether 64-bit types are on."""
        return self.read("jax_enable_x64")

    def config_with_absl(self) -> None:
        """Let absl's command line set the options, by `--jax_enable_x64` and the like."""
        for name, value in self.values.items():
            if name not in flags.FLAGS:
                define = flags.DEFINE_bool if isinstance(value, bool) else flags.DEFINE_string
                define(name, None, f"The option {name} of jax.config.")
        app.call_after_init(self.complete_absl_config)

    def complete_absl_config(self) -> None:
        """Set the options that absl's command line names."""
        for name, value in self.values.items():
            flag = flags.FLAGS[name].value if name in flags.FLAGS else None
            if flag is not None:
                number = isinstance(value, (int, float)) and isinstance(flag, str)
                self.update(name, type(value)(flag) if number else flag)

    def parse_flags_with_absl(self) -> None:
        """`config_with_absl`, for programs that do not run by `absl.app`."""
        self.config_with_absl()
        flags.FLAGS(sys.argv, known_only=True)
        self.complete_absl_config()

    @_respelling
    def __getattr__(self, name: str) -> Any:
        return getattr(_ours, spellings.ours(name))

    def __dir__(self) -> list[str]:
        return [*map(spellings.theirs, dir(_ours)), "values"]

    def __repr__(self) -> str:
        return spellings.theirs(repr(_ours))


config = Configuration()
