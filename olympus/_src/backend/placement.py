"""Where programs run: what their arguments say, else the default device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import lib
from ..types.avals import ShapeDtypeStruct
from ..types.sharding import NamedSharding, device_tuple
from . import devices
from .array import stored
from .compile import Placement

__all__ = ["memory_of", "placement_of", "sharding_of"]

ArrayImpl = lib.ArrayImpl


def sharding_of(x: Any) -> Any:
    """Where an argument must stay: its sharding, or None if it may go anywhere."""
    x = stored(x)
    if type(x) is ArrayImpl:
        return x._sharding if x._committed else None
    return x.sharding if type(x) is ShapeDtypeStruct else None


def memory_of(x: Any) -> str | None:
    """The kind of memory that an argument is in, None for its device's own."""
    x = stored(x)
    sharding = x.sharding if type(x) in (ArrayImpl, ShapeDtypeStruct) else None
    if sharding is None or sharding._memory_kind == sharding.default_memory_kind:
        return None
    return sharding._memory_kind


def placement_of(shardings: Sequence[Any], default: Any = None) -> Placement:
    """Where a program runs whose arguments must stay where these shardings say."""
    # Arguments that may go anywhere (None) have no say. Identity first: tuples of devices are long,
    # and mostly one object.
    found: tuple[Any, ...] = ()
    for s in shardings:
        if s is not None:
            where = (s._device,) if type(s) is lib.SingleDeviceSharding else device_tuple(s)
            if found and found is not where and set(found) != set(where):
                raise ValueError(
                    f"jit: arguments are committed to {_places(found)} and {_places(where)}; one "
                    "set of devices is required; move them with device_put.")
            found = found or where
    if not found:
        committed = default is not None
        return Placement((default if committed else devices.default_device(),), committed)
    meshes = tuple([s if type(s) is NamedSharding and s.mesh.device_tuple == found else None
                    for s in shardings])
    return Placement(found, True, meshes if any(meshes) else ())


def _places(where: tuple[Any, ...]) -> str:
    return str(where[0]) if len(where) == 1 else str(where)
