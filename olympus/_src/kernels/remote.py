"""Copies and signals from device to device, for kernels inside of `shard_map`.

All devices run one kernel, so each starts a copy at the same place of the kernel. There all of them
gather the values and the addressees; each device keeps the values for it, in the order of the
senders. So nothing is under way between two steps of a kernel, and a copy needs no other thread.

A copy in a branch that only some devices take would wait for the others without an end:
`check_branches` finds it in the kernel's program.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from operator import or_
from typing import Any

from ..base import source
from ..base.typing import Array, ArrayLike, PyTree, Reference
from ..base.util import clipped
from ..control.cond import cond_p
from ..control.while_primitive import while_p
from ..control_flow.while_loop import fori_loop
from ..core.context import DeviceAxis, ctx
from ..core.ir import Atom, ClosedOlympuspr, Literal
from ..core.trace import typeof
from ..lax.collectives.axes import axis_index, axis_index_p
from ..lax.collectives.moves import all_gather, all_gather_p
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

    Args:
      device_id: one number if `logical`; else an index for each axis of the mesh, as one int, a
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
    """Run `act(*values)` on the device `to`, for what each device sends."""
    axes = tuple(mesh_axes())

    def all_of(x: ArrayLike) -> Array:
        return all_gather(asarray(x), axes) if axes else asarray(x)[None]

    ids, rows, here = all_of(to), [all_of(x) for x in values], axis_index(axes)

    def one(sender: Array, _: None) -> None:
        when(ids[sender] == here)(lambda: act(*[row[sender] for row in rows]))

    fori_loop(0, ids.shape[0], one, None)


# Branches ----------------------------------------------------------------------------------------

def check_branches(closed: ClosedOlympuspr) -> None:
    """NotImplementedError for a copy in a branch that a device's own place decides."""
    if _communicates(closed):
        _walk(closed, [False] * len(closed.olympuspr.invars))


def _communicates(closed: ClosedOlympuspr) -> bool:
    return any(eqn.primitive is all_gather_p or any(
        _communicates(body) for _, body, _ in eqn.primitive.applied(eqn.params, eqn.invars))
        for eqn in closed.eqns)


def _walk(closed: ClosedOlympuspr, differs: Sequence[bool]) -> list[bool]:
    """Which results differ from device to device, by which inputs do."""
    own = {v for v, d in zip(closed.olympuspr.invars, differs, strict=True) if d}

    def has(atom: Atom) -> bool:
        return type(atom) is not Literal and atom in own

    for eqn in closed.eqns:
        prim, params, ins = eqn.primitive, eqn.params, list(map(has, eqn.invars))
        bodies = prim.applied(params, ins)
        if not bodies:
            if prim is axis_index_p or (any(ins) and prim is not all_gather_p):
                own.update(eqn.outvars)
            continue
        found = [_walk(body, its) for _, body, its in bodies]
        if prim.repeats:        # what an iteration makes of a carry decides the next one
            before, count = sum(map(len, prim.cut(params, ins)[:2])), len(prim.cut(params, ins)[2])
            while (carry := [*map(or_, ins[before:before + count], found[-1])]) != (
                    ins[before:before + count]):
                ins[before:before + count] = carry
                found = [_walk(body, its) for _, body, its in prim.applied(params, ins)]
        decides = prim is cond_p and ins[0] or prim is while_p and found[0][0]
        if decides and any(_communicates(body) for _, body, _ in bodies):
            raise NotImplementedError(
                f"pallas_call: {prim.name} at {source.summarize(eqn.source)} depends on "
                "the device, and a copy or signal to another device is inside; all devices must "
                "start it, or it would wait for the others without an end;\n  start it outside, "
                "to the device itself where nothing is to be sent.")
        outs = zip(*(found[1:] if prim is while_p else found), strict=True)
        own.update([v for v, told in zip(eqn.outvars, outs, strict=True) if decides or any(told)])
    return [has(v) for v in closed.olympuspr.outvars]
