"""Meshes: devices, or only their number, arranged as an array whose axes have names.

    Mesh            devices; where arrays are
    AbstractMesh    sizes and names of axes; what types say, so that no type names a device
    the current one `with mesh:` or `set_mesh(mesh)`; what specifications without a mesh are of
"""

from __future__ import annotations

import contextlib
import enum
import functools
from collections import OrderedDict
from collections.abc import Hashable
from typing import Any

import numpy as np

from ..base import lib
from .shape import prod, sequence

__all__ = ["NO_MESH", "AbstractMesh", "AxisType", "Mesh", "current_mesh", "get_abstract_mesh",
           "get_mesh", "set_mesh", "use_abstract_mesh"]

_context: Any = lib.Config("olympus_mesh", None, include_in_jit_key=True,
                           include_in_trace_context=True)
_abstract: Any = lib.Config("olympus_abstract_mesh", None, include_in_jit_key=True,
                            include_in_trace_context=True)


class AxisType(enum.Enum):
    """Who decides how values are spread over an axis of a mesh.

    Auto: XLA does. Explicit: their types say it. Manual: the program is that of one device.

    >>> import olympus
    >>> olympus.make_mesh((1,), ("x",), (olympus.sharding.AxisType.Explicit,)).axis_types
    (Explicit,)
    """

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()

    def __repr__(self) -> str:
        return self.name


class _Axes:
    """The named axes that `Mesh` and `AbstractMesh` have; neither changes."""

    axis_sizes: Any
    axis_names: tuple[Any, ...]
    axis_types: tuple[AxisType, ...]

    def _set_axes(self, ndim: int, axis_names: Any, axis_types: Any) -> None:
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
        if len(types) != ndim or not all(isinstance(t, AxisType) for t in types):
            raise ValueError(f"{what}: axis_types {axis_types} given; one AxisType for each of "
                             f"{ndim} axes is required.")
        self.axis_names, self.axis_types = names, types

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """The number of devices along each axis, by name."""
        return OrderedDict(self.shape_tuple)

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
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

    def _axes_of_type(self, kind: AxisType) -> tuple[Any, ...]:
        return tuple(n for n, t in zip(self.axis_names, self.axis_types, strict=True) if t is kind)

    @functools.cached_property
    def auto_axes(self) -> tuple[Any, ...]:
        """The axes that are left to XLA."""
        return self._axes_of_type(AxisType.Auto)

    @functools.cached_property
    def explicit_axes(self) -> tuple[Any, ...]:
        """The axes along which types say how values are spread."""
        return self._axes_of_type(AxisType.Explicit)

    @functools.cached_property
    def manual_axes(self) -> tuple[Any, ...]:
        """The axes along which a program is that of one device."""
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
        """Whether programs are those of one device; not of a mesh without axes."""
        return not self.empty and self.manual_axes == self.axis_names

    _key: Any

    def __eq__(self, other: object) -> bool:
        return self is other or type(other) is type(self) and self._key == other._key

    @functools.cached_property
    def _hash(self) -> int:
        return hash(self._key)

    def __hash__(self) -> int:
        return self._hash

    def __deepcopy__(self, memo: Any) -> Any:
        return self     # it never changes, and devices are not to be copied

    def __str__(self) -> str:
        name = type(self).__name__
        sizes = ", ".join(f"{axis!r}: {size}" for axis, size in self.shape_tuple)
        return f"{name}({sizes}, axis_types={self.axis_types})" if sizes else f"{name}()"

    def __repr__(self) -> str:
        return (f"{type(self).__name__}(axis_sizes={self.axis_sizes}, "
                f"axis_names={self.axis_names}, axis_types={self.axis_types})")


class AbstractMesh(_Axes):
    """Sizes and names of the axes of a mesh, without devices.

    Args:
      axis_sizes: how many devices each axis has.
      axis_names: a name for each axis; one string for one axis.
      axis_types: an `AxisType` for each axis, or one for all; `Auto` unless given.

    >>> from olympus.sharding import AbstractMesh
    >>> print(AbstractMesh((4, 2), ("x", "y")))
    AbstractMesh('x': 4, 'y': 2, axis_types=(Auto, Auto))
    """

    def __init__(self, axis_sizes: tuple[int, ...], axis_names: Any, axis_types: Any = None
                 ) -> None:
        self.axis_sizes = tuple(int(size) for size in axis_sizes)
        self._set_axes(len(self.axis_sizes), axis_names, axis_types)
        self._key = self.axis_sizes, self.axis_names, self.axis_types

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh itself."""
        return self

    def update(self, axis_sizes: Any = None, axis_names: Any = None, axis_types: Any = None
               ) -> AbstractMesh:
        """A copy with sizes, names or types changed."""
        return AbstractMesh(self.axis_sizes if axis_sizes is None else axis_sizes,
                            self.axis_names if axis_names is None else axis_names,
                            self.axis_types if axis_types is None else axis_types)

    def update_axis_types(self, name_to_type: dict[Any, AxisType]) -> AbstractMesh:
        """A copy with the types of the named axes changed."""
        return self.update(axis_types=tuple(
            name_to_type.get(n, t) for n, t in zip(self.axis_names, self.axis_types, strict=True)))


class Mesh(_Axes, contextlib.ContextDecorator):
    """Devices arranged as an array whose axes have names.

    Args:
      devices: an array, or nested sequences, of distinct devices.
      axis_names: a name for each axis of `devices`; one string for one axis.
      axis_types: `AxisType.Auto` (the default) or `AxisType.Explicit` for each axis, or for all.

    As a context manager it is the mesh of `PartitionSpec`s that are given without one. ValueError
    for names that are too many, too few or repeated, and for a device that is there twice.

    >>> import numpy as np, olympus
    >>> from olympus.sharding import Mesh
    >>> Mesh(np.array(olympus.devices()[:1]), "x")
    Mesh(axis_sizes=(1,), axis_names=('x',), axis_types=(Auto,))
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None) -> None:
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
            raise ValueError(f"Mesh: axis_types {self.axis_types} given; Auto or Explicit is "
                             f"required for each of {len(self.axis_names)} axes.")
        self._key = self.device_tuple, self.axis_sizes, self.axis_names, self.axis_types
        self._previous: list[Any] = []

    @property
    def axis_sizes(self) -> tuple[int, ...]:
        """The number of devices along each axis."""
        return self.devices.shape

    @functools.cached_property
    def abstract_mesh(self) -> AbstractMesh:
        """The mesh without its devices."""
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    @property
    def device_ids(self) -> np.ndarray:
        """The ids of the devices, in the shape of the mesh."""
        ids = [d.id for d in self.device_tuple]
        return np.array(ids, int).reshape(self.axis_sizes)

    @property
    def local_devices(self) -> list[Any]:
        """The devices of the mesh that belong to this process."""
        return [d for d in self.device_tuple if d.process_index == d.client.process_index()]

    @property
    def is_multi_process(self) -> bool:
        """Whether some devices belong to other processes."""
        return len(self.local_devices) != self.size

    def __enter__(self) -> Mesh:
        self._previous.append(_swap(self))
        return self

    def __exit__(self, *exc_info: object) -> None:
        _restore(self._previous.pop())


def _swap(mesh: Mesh | None) -> tuple[Any, Any]:
    """Make a mesh the current one; it takes the place of an abstract one around."""
    return _context.swap_local(mesh), _abstract.swap_local(None)


def _restore(previous: tuple[Any, Any]) -> None:
    _context.set_local(previous[0])
    _abstract.set_local(previous[1])


NO_MESH = AbstractMesh((), ())


def current_mesh() -> Mesh | None:
    """The mesh of the `with` blocks around, in this thread."""
    return _context.value


def get_mesh() -> Mesh:
    """The current mesh, set by `set_mesh` or `with mesh:`; one without axes if there is none.

    Returns:
      A `Mesh`.

    >>> import olympus
    >>> with olympus.set_mesh(olympus.make_mesh((1,), ("x",))):
    ...     olympus.sharding.get_mesh().axis_names
    ('x',)
    """
    return current_mesh() or Mesh(np.empty((), object), ())


def get_abstract_mesh() -> AbstractMesh:
    """The current mesh without its devices; one without axes if there is none.

    Returns:
      An `AbstractMesh`.

    >>> import olympus
    >>> with olympus.set_mesh(olympus.make_mesh((1,), ("x",))):
    ...     print(olympus.sharding.get_abstract_mesh())
    AbstractMesh('x': 1, axis_types=(Auto,))
    """
    if _abstract.value is not None:
        return _abstract.value
    mesh = current_mesh()
    return NO_MESH if mesh is None else mesh.abstract_mesh


class use_abstract_mesh:
    """In a `with` block, make an abstract mesh the one that types and specifications are over.

    Args:
      mesh: an `AbstractMesh`. Within another mesh, of as many devices.

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
            raise ValueError(f"use_abstract_mesh: {self.mesh} given within {around}; as many "
                             "devices are required.")
        self._previous = _abstract.swap_local(self.mesh)
        return self.mesh

    def __exit__(self, *exc_info: object) -> None:
        _abstract.set_local(self._previous)


class set_mesh:
    """Make a mesh the current one of this thread: from now on, or in a `with` block.

    Args:
      mesh: a `Mesh`, or None for no mesh.

    Specifications without a mesh are of the current one. TypeError for what is no mesh.

    >>> import olympus
    >>> from olympus.sharding import PartitionSpec as P
    >>> with olympus.set_mesh(olympus.make_mesh((1,), ("x",))) as mesh:
    ...     x = olympus.device_put(olympus.numpy.ones(2), P("x"))
    >>> x.sharding.mesh == mesh
    True
    """

    __slots__ = ("_previous", "mesh", "prev_mesh")

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise TypeError(f"set_mesh: {mesh!r} of type {type(mesh).__name__} given; a Mesh or "
                            "None is required; see olympus.make_mesh.")
        self.mesh, self.prev_mesh = mesh, current_mesh()
        self._previous = _swap(mesh)

    def __enter__(self) -> Mesh | None:
        return self.mesh

    def __exit__(self, *exc_info: object) -> None:
        _restore(self._previous)
