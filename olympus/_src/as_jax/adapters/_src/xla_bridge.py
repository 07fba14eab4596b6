"""`jax._src.xla_bridge`: Chex sets the number of CPU devices while no backend has started."""

from __future__ import annotations

from typing import Any

from ....devices.devices import _clients

__all__ = []
HOMES = ("olympus", "olympus.extend.backend")


def __getattr__(name: str) -> Any:
    if name == "_backends":
        return dict(_clients)
    raise AttributeError(name)
