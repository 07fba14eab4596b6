"""Meshes: devices, or only their number, arranged as an array whose axes have names.

    Mesh            devices; where arrays are
    AbstractMesh    sizes and names of axes; what types say, so that no type names a device
    the current one `with mesh:` or `set_mesh(mesh)`; the mesh of specifications that name none
    the ambient mesh `set_mesh` or `use_abstract_mesh`; operations without operands are placed on it
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import Any, NoReturn, Self, TypeAlias

import numpy as np

from ..base import lib
from ..base.config import disallow_mesh_context_manager
from ..base.typing import Device
from ..base.util import lazy_imports
from .shape import prod, sequence

with lazy_imports(__name__):
    from . import pictures as _pictures

_context: Any = lib.Config("olympus_mesh", None, include_in_jit_key=True,
                           include_in_trace_context=True)
# No function: every recorded equation reads `.value`.
mesh_of_types: Any = lib.Config("olympus_abstract_mesh", None, include_in_jit_key=True,
                                include_in_trace_context=True)


class AxisType(enum.Enum):
    """The way in which shardings along a mesh axis are decided.

    Auto: XLA does. Explicit: their types say it. Manual: the program is one device's.

    >>> import olympus
    >>> olympus.make_mesh((1,), ("x",), (olympus.sharding.AxisType.Explicit,)).axis_types
    (Explicit,)
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


AxisNames: TypeAlias = Sequence[Hashable] | str
AxisTypes: TypeAlias = Sequence[AxisType] | AxisType | None
Devices: TypeAlias = np.ndarray | Sequence[Any]     # nested ones


class UnreducedKind(enum.Enum):
    """The operation that combines the parts of an unreduced value.

    >>> from olympus.sharding import UnreducedKind
    >>> UnreducedKind.sum
    <UnreducedKind.sum: 1>
    """

    sum = enum.auto()
    max = enum.auto()
    min = enum.auto()


@dataclasses.dataclass(frozen=True)
class ManualAxisType:
    """The part of a type about the manual axes of a mesh.

    Args:
      varying: axes along which devices hold values of their own.
      unreduced: axes along which the devices' values are still to be added up.
      reduced: axes along which cotangents are left unreduced.

    ValueError for axes that vary and are unreduced or reduced, too.

    >>> from olympus.sharding import ManualAxisType
    >>> ManualAxisType(varying={"i"})
    ManualAxisType(varying=frozenset({'i'}), unreduced=frozenset(), reduced=frozenset())
    """

    varying: frozenset[str] = dataclasses.field(default=frozenset(), kw_only=True)
    unreduced: frozenset[str] = dataclasses.field(default=frozenset(), kw_only=True)
    reduced: frozenset[str] = dataclasses.field(default=frozenset(), kw_only=True)

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            object.__setattr__(self, field.name, frozenset(getattr(self, field.name)))
        for name in ("unreduced", "reduced"):
            if common := self.varying & getattr(self, name):
                raise ValueError(f"ManualAxisType: the axes {set(common)} are varying and {name}; "
                                 "one of both is required.")

    update = dataclasses.replace

    def to_ct_mat(self) -> ManualAxisType:
        """The same for a cotangent, in which unreduced and reduced change places."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    @property
    def vur(self) -> frozenset[str]:
        """All axes that are named."""
        return self.varying | self.unreduced | self.reduced

    @property
    def empty(self) -> bool:
        """Whether no axis is named."""
        return not self.vur

    def invarying(self, mesh: AbstractMesh) -> frozenset[str]:
        """The manual axes of a mesh along which all devices hold the same value."""
        return frozenset(mesh.manual_axes) - self.vur


@dataclasses.dataclass(frozen=True, slots=True)
class AbstractDevice:
    """The kind of the devices of an abstract mesh.

    >>> from olympus.sharding import AbstractDevice, AbstractMesh
    >>> cpu = AbstractDevice(device_kind="cpu", num_cores=None, platform="cpu")
    >>> AbstractMesh((2,), ("x",), abstract_device=cpu).abstract_device == cpu
    True
    """

    device_kind: str
    num_cores: int | None
    platform: str

    def __repr__(self) -> str:
        return f"AbstractDevice({self})"

    def __str__(self) -> str:
        return (f"device_kind={self.device_kind}, num_cores={self.num_cores}, "
                f"platform={self.platform}")


class _Axes:
    """The named axes that `Mesh` and `AbstractMesh` have; neither changes."""

    axis_sizes: Any
    axis_names: tuple[str, ...]
    axis_types: tuple[AxisType, ...]

    def _set_axes(self, ndim: int, axis_names: AxisNames, axis_types: AxisTypes) -> None:
        what = type(self).__name__
        names = (axis_names,) if isinstance(axis_names, str) else sequence(
            axis_names, what, "axis_names")
        if ndim != len(names):
            raise ValueError(f"{what}: {ndim} axes and axis_names {names} given; one name per axis "
                             "is required.")
        if (not all(isinstance(name, Hashable) for name in names)
                or len(set(names)) != len(names) or None in names):
            raise ValueError(f"{what}: axis_names {names} given; distinct names, none of them "
                             "None or unhashable, are required.")
        types = (AxisType.Auto,) * ndim if axis_types is None else (
            (axis_types,) * ndim if isinstance(axis_types, AxisType) else
            sequence(axis_types, what, "axis_types"))
        if not all(isinstance(t, AxisType) for t in types):
            raise TypeError(f"{what}: axis_types {axis_types} given; one AxisType for each of "
                            f"{ndim} axes is required; see sharding.AxisType.")
        if len(types) != ndim:
            raise ValueError(f"{what}: axis_types {axis_types} given; one AxisType for each of "
                             f"{ndim} axes is required.")
        self.axis_names, self.axis_types = names, types

    @property
    def shape(self) -> OrderedDict[Hashable, int]:
        """The number of devices along each axis, by name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[str, int], ...]:
        """(name, number of devices) of each axis."""
        return tuple(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """The number of devices."""
        return prod(self.axis_sizes) if self.axis_names else 0

    @property
    def empty(self) -> bool:
        """Whether the mesh has no axes."""
        return not self.axis_names

    def _axes_of_type(self, kind: AxisType) -> tuple[str, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @functools.cached_property
    def auto_axes(self) -> tuple[str, ...]:
        """The axes that are left to XLA."""
        return self._axes_of_type(AxisType.Auto)

    @functools.cached_property
    def explicit_axes(self) -> tuple[str, ...]:
        """The axes along which types say how values are spread."""
        return self._axes_of_type(AxisType.Explicit)

    @functools.cached_property
    def manual_axes(self) -> tuple[str, ...]:
        """The axes along which a program is one device's."""
        return self._axes_of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether XLA decides alone."""
        return self.auto_axes == self.axis_names

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether types say all; not of a mesh without axes."""
        return not self.empty and self.explicit_axes == self.axis_names

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether programs are one device's; not of a mesh without axes."""
        return not self.empty and self.manual_axes == self.axis_names

    _key: Any

    def __eq__(self, other: object) -> bool:
        return self is other or type(other) is type(self) and self._key == other._key

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __copy__(self) -> Self:
        return self     # it never changes

    def __deepcopy__(self, memo: object) -> Self:
        return self     # nor are devices to be copied

    @property
    def _listed(self) -> str:
        sizes = ", ".join([f"{axis!r}: {size}" for axis, size in self.shape_tuple])
        return f"{sizes}, axis_types={self.axis_types}"


class AbstractMesh(_Axes):
    """Sizes and names of the axes of a mesh, without devices.

    Args:
      axis_sizes: how many devices each axis has.
      axis_names: a name for each axis; one string for one axis.
      axis_types: an `AxisType` for each axis, or one for all; `Auto` unless given.
      abstract_device: the kind of the devices, an `AbstractDevice`; None for any.

    Meshes of equal axes are equal, unless both name their devices' kinds and these differ.

    >>> from olympus.sharding import AbstractMesh
    >>> print(AbstractMesh((4, 2), ("x", "y")))
    AbstractMesh('x': 4, 'y': 2, axis_types=(Auto, Auto))
    """

    def __init__(self, axis_sizes: Sequence[int], axis_names: AxisNames,
                 axis_types: AxisTypes = None, *,
                 abstract_device: AbstractDevice | None = None) -> None:
        self.axis_sizes = tuple(int(size) for size in axis_sizes)
        self._set_axes(len(self.axis_sizes), axis_names, axis_types)
        self.abstract_device = abstract_device
        self._key = self.axis_sizes, self.axis_names, self.axis_types

    def __eq__(self, other: object) -> bool:
        return self is other or (type(other) is AbstractMesh and self._key == other._key and (
            self.abstract_device == other.abstract_device or self.abstract_device is None
            or other.abstract_device is None))

    __hash__ = _Axes.__hash__

    def __repr__(self) -> str:
        if self.empty:
            return "AbstractMesh((), axis_types=())"
        kind = "" if self.abstract_device is None else f", {self.abstract_device}"
        return f"AbstractMesh({self._listed}{kind})"

    __str__ = __repr__

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def update(self, axis_sizes: Sequence[int] | None = None, axis_names: AxisNames | None = None,
               axis_types: AxisTypes = None, **kwargs: Any) -> AbstractMesh:
        """A copy with sizes, names, types or abstract_device changed."""
        return AbstractMesh(self.axis_sizes if axis_sizes is None else axis_sizes,
                            self.axis_names if axis_names is None else axis_names,
                            self.axis_types if axis_types is None else axis_types,
                            **{"abstract_device": self.abstract_device, **kwargs})

    def of_types(self, axis_types: tuple[AxisType, ...]) -> AbstractMesh:
        """A copy with axes of other types."""
        return self.update(axis_types=axis_types)

    def update_axis_types(self, name_to_type: dict[str, AxisType]) -> AbstractMesh:
        """A copy with the types of the named axes changed."""
        return self.update(axis_types=tuple(
            name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True)))


class Mesh(_Axes, contextlib.ContextDecorator):
    """Devices arranged as an array whose axes have names.

    Args:
      devices: an array, or nested sequences, of distinct devices.
      axis_names: a name for each axis of `devices`; one string for one axis.
      axis_types: `AxisType.Auto` (the default) or `AxisType.Explicit` for each axis, or for all.

    Used as a context manager it is the mesh of `PartitionSpec`s without one. ValueError for names
    that are too many, too few or repeated, and for a device that is there twice.

    >>> import numpy as np, olympus
    >>> from olympus.sharding import Mesh
    >>> Mesh(np.array(olympus.devices()[:1]), "x")
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Auto,))
    """

    def __init__(self, devices: Devices, axis_names: AxisNames, axis_types: AxisTypes = None
                 ) -> None:
        self.devices = np.array(devices, dtype=object)
        self.devices.flags.writeable = False
        self._set_axes(self.devices.ndim, axis_names, axis_types)
        self.device_tuple = tuple(self.devices.flat) if self.axis_names else ()
        for d in self.device_tuple:
            if not isinstance(d, lib.Device):
                raise TypeError(f"Mesh: devices has {d!r} of type {type(d).__name__}; devices are "
                                "required; see olympus.devices().")
        if self.axis_names and not self.device_tuple:
            raise ValueError(f"Mesh: devices of shape {self.devices.shape} given; at least one "
                             "device is required.")
        if len(set(self.device_tuple)) != len(self.device_tuple):
            raise ValueError(f"Mesh: devices {self.device_tuple} given; each device may be in a "
                             "mesh once.")
        if self.manual_axes:
            raise ValueError(f"Mesh: axis_types {self.axis_types} given, which contains manual "
                             "axes; Auto or Explicit is required for each of "
                             f"{len(self.axis_names)} axes; shard_map makes axes manual.")
        self._key = self.device_tuple, self.axis_sizes, self.axis_names, self.axis_types
        self._previous: list[Any] = []

    def __reduce__(self) -> NoReturn:
        raise TypeError(f"pickle: {self} given; it names devices of this process; pickle the names "
                        "and sizes of its axes.")

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The number of devices along each axis."""
        return self.devices.shape

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        kind = None
        if self.device_tuple:
            device = self.device_tuple[0]
            kind = AbstractDevice(device.device_kind, getattr(device, "num_cores", None),
                                  device.platform)
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types,
                            abstract_device=kind)

    def update(self, devices: Devices | None = None, axis_names: AxisNames | None = None,
               axis_types: AxisTypes = None) -> Mesh:
        """A copy with devices, names or types changed."""
        return Mesh(self.devices if devices is None else devices,
                    self.axis_names if axis_names is None else axis_names,
                    self.axis_types if axis_types is None else axis_types)

    def of_types(self, axis_types: tuple[AxisType, ...]) -> Mesh:
        """The same devices, with axes of other types; those that are manual keep theirs."""
        axis_types = tuple([own if t is AxisType.Manual else t
                            for own, t in zip(self.axis_types, axis_types, strict=True)])
        return self if axis_types == self.axis_types else (
            Mesh(self.devices, self.axis_names, axis_types))

    @property
    def device_ids(self) -> np.ndarray:
        """The ids of the devices, in the shape of the mesh."""
        ids = [d.id for d in self.device_tuple]
        return np.array(ids, int).reshape(self.axis_sizes)

    @property
    def local_devices(self) -> list[Device]:
        """The devices of the mesh that belong to this process."""
        return [d for d in self.device_tuple if d.process_index == d.client.process_index()]

    @property
    def local_mesh(self) -> Mesh:
        """The block of the mesh that belongs to this process."""
        mine = set(self.local_devices)
        coordinates = np.argwhere(np.vectorize(mine.__contains__, otypes=[bool])(self.devices))
        block = self.devices[tuple([slice(low, high + 1) for low, high in zip(
            coordinates.min(0, initial=self.size), coordinates.max(0, initial=-1), strict=True)])]
        if not mine or set(block.flat) != mine:
            raise ValueError(
                f"local_mesh: a mesh {self} given in which this process's devices, "
                f"{[d.id for d in self.local_devices]}, are no block; a contiguous mesh is "
                "required; read the parts that are here: x.addressable_shards.")
        return Mesh(block, self.axis_names, self.axis_types)

    @property
    def is_multi_process(self) -> bool:
        """Whether some devices belong to other processes."""
        return len(self.local_devices) != self.size

    def __str__(self) -> str:
        return "Mesh()" if self.empty else f"Mesh({self._listed})"

    def __repr__(self) -> str:
        return (f"Mesh(axis_sizes={self.axis_sizes}, axis_names={self.axis_names}, "
                f"axis_types={self.axis_types})")

    def _repr_html_(self) -> str:
        return _pictures.mesh_html(self)

    def __enter__(self) -> Mesh:
        if disallow_mesh_context_manager.value:
            raise RuntimeError("Mesh: given to a `with` block, and the option "
                               "olympus_disallow_mesh_context_manager is set; use "
                               "`with olympus.set_mesh(mesh):`.")
        self._previous.append(swap_mesh(self, None))
        return self

    def __exit__(self, *exc_info: object) -> None:
        restore_mesh(self._previous.pop())


def mesh_of(mesh: AbstractMesh | Mesh, devices: Sequence[object]) -> Mesh:
    """A mesh with the axes of another, of these devices."""
    grid = np.empty(len(devices), object)
    grid[:] = devices
    return Mesh(grid.reshape(mesh.axis_sizes), mesh.axis_names, mesh.axis_types)


def swap_mesh(mesh: Mesh | None, abstract: AbstractMesh | None) -> tuple[object, object]:
    """Make a mesh the one of specifications, and one that on which values are made."""
    return _context.swap_local(mesh), mesh_of_types.swap_local(abstract)


def restore_mesh(previous: tuple[object, object]) -> None:
    """Undo `swap_mesh`, which returned this."""
    _context.set_local(previous[0])
    mesh_of_types.set_local(previous[1])


NO_MESH = AbstractMesh((), ())


def current_mesh() -> Mesh | None:
    """The mesh of the `with` blocks around, in this thread."""
    return _context.value


class _Environment:
    """This thread's mesh, for programs from before `get_mesh`."""

    __slots__ = ()

    @property
    def physical_mesh(self) -> Mesh:
        """The mesh of `with mesh:` and of `set_mesh`; one without axes if there is none."""
        return current_mesh() or Mesh(np.empty((), object), ())


class _ThreadResources:
    """`env.physical_mesh` is the mesh of this thread: `sharding.get_mesh()` is its newer name."""

    __slots__ = ()
    env = _Environment()


thread_resources = _ThreadResources()


def mesh_around() -> Mesh | None:
    """The mesh on which values are made: `set_mesh`'s, not the one of `with mesh:`."""
    return _context.value if mesh_of_types.value is not None else None


def get_abstract_mesh() -> AbstractMesh:
    """The ambient mesh of `set_mesh` or `use_abstract_mesh`; a mesh without axes if there is none.

    >>> with olympus.set_mesh(olympus.make_mesh((1,), ("x",))):
    ...     print(olympus.sharding.get_abstract_mesh())
    AbstractMesh('x': 1, axis_types=(Explicit,), device_kind=cpu, num_cores=None, platform=cpu)
    """
    return mesh_of_types.value or NO_MESH


class use_abstract_mesh:
    """Context manager in which types and specifications refer to an abstract mesh.

    Args: mesh: an `AbstractMesh`. Within another mesh, of as many devices.

    >>> import olympus
    >>> from olympus.sharding import AbstractMesh, AxisType, PartitionSpec as P, use_abstract_mesh
    >>> a = olympus.ShapeDtypeStruct((8,), "float32")
    >>> with use_abstract_mesh(AbstractMesh((4,), "x", AxisType.Explicit)):
    ...     print(olympus.make_olympuspr(lambda a: olympus.reshard(a, P("x")))(a))
    { lambda ; a:f32[8]. let b:f32[8@x] = reshard a in (b,) }
    """

    __slots__ = ("_previous", "mesh")

    def __init__(self, mesh: AbstractMesh) -> None:
        if not isinstance(mesh, AbstractMesh):
            raise TypeError(f"use_abstract_mesh: {mesh!r} of type {type(mesh).__name__} given; an "
                            "AbstractMesh is required; see the abstract_mesh of a Mesh.")
        self.mesh = mesh

    def __enter__(self) -> AbstractMesh:
        around = get_abstract_mesh()
        if not around.empty and not self.mesh.empty and around.size != self.mesh.size:
            raise ValueError(f"use_abstract_mesh: {self.mesh} given within {around}; "
                             "use_abstract_mesh cannot change the size of the mesh; as many "
                             "devices are required.")
        self._previous = mesh_of_types.swap_local(self.mesh)
        return self.mesh

    def __exit__(self, *exc_info: object) -> None:
        mesh_of_types.set_local(self._previous)
