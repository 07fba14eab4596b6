"""Where programs run: on the devices of their arguments, else on the default device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeGuard

from ..base import lib
from ..base.typing import Device
from ..devices import devices
from ..devices.array import layout_of, stored
from ..types.avals import ShapeDtypeStruct
from ..types.mesh import AbstractMesh, Mesh, mesh_around, mesh_of
from ..types.sharding import NamedSharding, Sharding, demanded_memory, device_tuple
from .compile import Placement

ArrayImpl = lib.ArrayImpl


def sharding_of(x: object) -> Sharding | None:
    """Where an argument must stay: its sharding, or None if it may go anywhere."""
    if type(x) is not ArrayImpl:
        x = stored(x)
    if type(x) is ArrayImpl:
        return x._sharding if x._committed else None
    return x.sharding if type(x) is ShapeDtypeStruct else None


def is_abstract(sharding: object) -> TypeGuard[NamedSharding]:
    """Whether a sharding is over a mesh without devices."""
    return type(sharding) is NamedSharding and isinstance(sharding.mesh, AbstractMesh)


def memory_of(x: object) -> str | None:
    """The kind of memory that an argument is in, None for its device's own."""
    x = stored(x)
    return demanded_memory(x.sharding if type(x) is ArrayImpl else sharding_of(x))


def layouts_of(args: Sequence[object]) -> tuple[str | None, ...]:
    """How the arguments of a program lie in memory; empty where all lie by rows."""
    layouts = tuple(map(layout_of, args))
    return layouts if any(layouts) else ()


def placement_of(shardings: Sequence[Sharding | None], default: Device | None = None,
                 named: Callable[[int], str] | None = None, mesh: Mesh | None = None) -> Placement:
    """The placement of a program whose arguments must stay at these shardings.

    Shardings without devices are over `mesh`, or else over the ambient mesh. `named` gives an
    argument's name for messages.
    """
    mesh = mesh or mesh_around()
    # Arguments that may go anywhere (None) do not count. Identity is compared first: tuples of
    # devices are long, and mostly one object.
    committed: tuple[Device, ...] = ()
    for s in shardings:
        if s is not None and not is_abstract(s):
            where = (s._device,) if type(s) is lib.SingleDeviceSharding else device_tuple(s)
            # Their order may differ: the program runs in the first argument's.
            if committed and committed is not where and set(committed) != set(where):
                raise _apart(shardings, named, committed, where)
            committed = committed or where
    if not committed and default is not None:
        return Placement((default,), True)
    if mesh is not None:
        if committed and set(committed) != set(mesh.device_tuple):
            raise devices.incompatible(_first_at(shardings, committed, named), committed,
                                       f"the mesh around, {mesh},", mesh.device_tuple)
        committed = committed or mesh.device_tuple
    if not committed:
        abstract = tuple([s if is_abstract(s) else None for s in shardings])
        # Not committed: its results may go anywhere, too.
        return Placement((devices.default_device(),), False, abstract if any(abstract) else ())
    meshes = tuple([_moved_to_devices(s, committed, shardings) if type(s) is NamedSharding else None
                    for s in shardings])
    return Placement(committed, True, meshes if any(meshes) else (), mesh=mesh)


def _first_at(shardings: Sequence[Sharding | None], where: Sequence[Device],
              named: Callable[[int], str] | None) -> str:
    """The first argument that is on these devices, for messages."""
    i = next(i for i, s in enumerate(shardings) if s is not None and not is_abstract(s)
             and s.device_set == set(where))
    return f"argument {i} of the computation" if named is None else named(i)


def _apart(shardings: Sequence[Sharding | None], named: Callable[[int], str] | None,
           here: Sequence[Device], there: Sequence[Device]) -> ValueError:
    """The error for arguments on different devices."""
    return devices.incompatible(_first_at(shardings, here, named), here,
                                _first_at(shardings, there, named), there)


def _moved_to_devices(sharding: NamedSharding, where: tuple[Device, ...],
                      others: Sequence[Sharding | None]) -> NamedSharding | None:
    """A sharding over a mesh of these devices; None for one over other devices."""
    if not is_abstract(sharding):
        return sharding if device_tuple(sharding) == where else None
    abstract = sharding.mesh
    if abstract.size != len(where):
        raise ValueError(f"jit: AbstractMesh size: {abstract.size} does not match the device "
                         f"assignment size: {len(where)}: an argument of {sharding}, and others "
                         f"on {where if where[1:] else where[0]} given; one mesh is required.")
    # A user's mesh of this shape, if there is one: results are named by it.
    around = [s.mesh for s in others if type(s) is NamedSharding and not is_abstract(s)]
    mesh = next((m for m in around if m.shape_tuple == abstract.shape_tuple), None)
    return sharding.update(mesh=(mesh or mesh_of(abstract, where)).of_types(abstract.axis_types))
