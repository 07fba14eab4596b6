"""Copies and signals from device to device, for kernels inside of `shard_map`.

All devices run one kernel, so each starts a copy at the same place of the kernel. There all of them
gather the values and the addressees; each device keeps the values for it, in the order of the
senders. So nothing is under way between two steps of a kernel, and a copy needs no other thread.

A copy in a branch that only some devices take would wait for the others without an end: where the
kernel's program is lowered, `control.agreement` finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

from ..base.typing import Array, ArrayLike, PyTree, Reference
from ..base.util import clipped
from ..control_flow.while_loop import fori_loop
from ..core.context import DeviceAxis, ctx
from ..core.trace import typeof
from ..lax.collectives.axes import axis_index
from ..lax.collectives.moves import all_gather
from ..lax.refs import WHOLE
from ..numpy.creation import asarray
from ..numpy.refs import RefPart
from ..types import dtypes
from .control import when
from .specs import INT32


def mesh_axes() -> list[Hashable]:
    """The axes along which devices run the kernel that is staged, in the order of their mesh."""
    return [name for name, size in ctx.axes.items() if isinstance(size, DeviceAxis)]


def number_of(name: str, device_id: PyTree, logical: bool) -> Array:
    """The number of a device, row-major in the mesh.

    Args: device_id: one number if `logical`; else an index for each axis of the mesh, as one int, a
        row, or a dict from names to indices, where others are this device's own.
    """
    axes = mesh_axes()
    if not axes and not logical:
        raise ValueError(f"{name}: device_id {clipped(device_id)} given outside of a mesh; call "
                         "the kernel in shard_map, or give DeviceIdType.LOGICAL and the number 0.")
    if isinstance(device_id, Mapping):
        unknown = [a for a in device_id if a not in axes]
        if unknown or logical:
            raise ValueError(f"{name}: device_id {clipped(device_id)} given; names of the axes "
                             f"{tuple(axes)} of the mesh are required, and DeviceIdType.MESH.")
        ids = [device_id.get(a, None) for a in axes]
        ids = [axis_index(a) if i is None else i for i, a in zip(ids, axes, strict=True)]
    else:
        ids = [*device_id] if isinstance(device_id, (tuple, list)) else [device_id]
        wanted = 1 if logical else len(axes)
        if len(ids) != wanted:
            raise ValueError(
                f"{name}: device_id {clipped(device_id)} of {len(ids)} entries given; {wanted} "
                f"required: one number with DeviceIdType.LOGICAL, else one for each axis of the "
                f"mesh, {tuple(axes)}.")
    for i in ids:
        aval = typeof(i)
        if aval.shape or not dtypes.is_integer(aval.dtype):
            raise TypeError(f"{name}: `device_id`s must be an int32 value, but got {aval}; integer "
                            "scalars are required.")
    if logical:
        return asarray(ids[0], INT32)
    number: Any = 0
    for i, axis in zip(ids, axes, strict=True):
        number = number * int(ctx.axes[axis]) + i
    return asarray(number, INT32)


def place(ref: Reference) -> tuple[Callable[..., Reference], list[Array]]:
    """A part of a reference as a function of its computed places, and those."""
    if type(ref) is not RefPart:
        return lambda: RefPart(ref, WHOLE, ()), []
    return lambda *ops: RefPart(ref.ref, ref.view, ops), [asarray(x) for x in ref.ops]


def deliver(to: Array, values: Sequence[ArrayLike], act: Callable[..., None]) -> None:
    """Run `act(*values)` on the device `to`, once for each device that sends values to it."""
    axes = tuple(mesh_axes())

    def all_of(x: ArrayLike) -> Array:
        return all_gather(asarray(x), axes) if axes else asarray(x)[None]

    ids, rows, here = all_of(to), [all_of(x) for x in values], axis_index(axes)

    def one(sender: Array, _: None) -> None:
        when(ids[sender] == here)(lambda: act(*[row[sender] for row in rows]))

    fori_loop(0, ids.shape[0], one, None)
