"""Which device holds what, as boxes: pictures of meshes and shardings for notebooks.

Meshes and shardings are looked at by attribute, since they show themselves through this module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base.markup import PAPER, boxes, escape
from ..base.typing import Device
from .mesh import Mesh
from .shape import Shape, prod
from .sharding import Sharding

_BOXES = 32      # boxes in a row or column


def device_grid(shape: Shape, sharding: Sharding) -> tuple[dict[tuple[int, int], str], int, int]:
    """The text of each box, by row and column, and the numbers of those.

    The last axis of the shape goes to the right, all before it down.
    """
    devices_at: dict[tuple[Any, int], list[Any]] = {}
    for device, index in sharding.devices_indices_map(shape).items():
        *row, column = (0, *[s.start or 0 for s in index])
        devices_at.setdefault((tuple(row), column), []).append(device)
    rows, columns = [{start: n for n, start in enumerate(sorted(set(starts)))}
                     for starts in zip(*devices_at, strict=True)]
    return ({(rows[i], columns[j]): _label(here) for (i, j), here in devices_at.items()},
            len(rows), len(columns))


def _label(devices: Sequence[Device]) -> str:
    return f"{devices[0].platform.upper()} {','.join(map(str, sorted(d.id for d in devices)))}"


def sharding_html(title: str, shape: Shape, sharding: Sharding) -> str:
    """The parts of an array of a shape, each with the devices that hold it."""
    down = f"axes 0 to {len(shape) - 2}" if len(shape) > 2 else "axis 0"
    note = "" if len(shape) < 2 else f"{down} ↓, axis {len(shape) - 1} →"
    return _titled(title, note, device_grid(shape, sharding)[0])


def mesh_html(mesh: Mesh) -> str:
    """The devices of a mesh: the last axis to the right, all before it down."""
    if mesh.empty:
        return _titled(str(mesh), "", {})
    *down, (right, width) = mesh.shape_tuple
    labels = {divmod(n, width): _label([device]) for n, device in enumerate(mesh.device_tuple)}
    rows = [f"{' × '.join(str(name) for name, _ in down)}: {prod([n for _, n in down])} ↓"]
    return _titled(str(mesh), ", ".join([*(rows if down else []), f"{right}: {width} →"]), labels)


def _titled(title: str, note: str, labels: dict[tuple[int, int], str]) -> str:
    shown = {where: text for where, text in labels.items() if max(where) < _BOXES}
    if len(shown) < len(labels):
        note += f"; {len(labels) - len(shown)} of {len(labels)} boxes are not drawn"
    picture = boxes(shown, 1, max(map(len, shown.values())) + 2) if shown else ""
    return (f'<div style="{PAPER};padding:4px;display:inline-block"><code>{escape(title)}</code>'
            f"<div>{escape(note)}</div>{picture}</div>")
