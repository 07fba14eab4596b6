"""Where the parts of an array are: specifications of its axes along a mesh, shardings.

    Mesh(devices, ("x", "y"))  +  PartitionSpec("x", None)  =  NamedSharding
                                                                  └─► an HloSharding, for XLA

The compiler distributes the work: a sharding of arguments, results or intermediate values
(`lax.with_sharding_constraint`) is a demand, and XLA chooses the rest.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from ..base import lib
from ..base.typing import Device
from ..base.util import memoize
from .mesh import AbstractMesh, Mesh
from .shape import prod

__all__ = ["UNCONSTRAINED", "DeviceLike", "NamedSharding", "PartitionSpec", "Sharding",
           "ShardingLike", "SingleDeviceSharding",
           "axes_of", "device_tuple", "entry_of", "make_single_device_sharding", "of_mesh",
           "sharding_in_types"]

Sharding = lib.Sharding
SingleDeviceSharding = lib.SingleDeviceSharding

class _Unconstrained:
    """The entry of a specification for an axis that XLA may cut as it likes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


class PartitionSpec:
    """Which axes of a mesh each axis of an array is cut along.

    Args:
      partitions: per axis of the array a mesh axis' name, a tuple of names (the first is the
        outermost), None for an axis that is not cut, or `PartitionSpec.UNCONSTRAINED`; axes left
        out at the end are not cut.
      unreduced, reduced: names of mesh axes over which partial sums are still to be added; for
        sharding in types, which `NamedSharding` refuses.

    >>> from olympus.sharding import PartitionSpec as P
    >>> P("x", None, ("y", "z"))
    P('x', None, ('y', 'z'))
    """

    __slots__ = ("partitions", "reduced", "unreduced")
    UNCONSTRAINED = UNCONSTRAINED

    partitions: tuple[Any, ...]
    unreduced: frozenset[Any]
    reduced: frozenset[Any]

    def __init__(self, *partitions: Any, unreduced: Any = frozenset(), reduced: Any = frozenset()
                 ) -> None:
        for p in partitions:
            names = p if isinstance(p, (tuple, list)) else (p,)
            if any(isinstance(n, (_Unconstrained, tuple, list)) for n in names) and (
                    isinstance(p, (tuple, list))):
                raise TypeError(f"PartitionSpec: the entry {p!r} given; a name, a tuple of names, "
                                "None or UNCONSTRAINED is required.")
        put = object.__setattr__
        put(self, "partitions", tuple(map(entry_of, partitions)))
        put(self, "unreduced", frozenset(unreduced))
        put(self, "reduced", frozenset(reduced))

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"PartitionSpec: {name} set; it is immutable; use update().")

    def update(self, **changes: Any) -> PartitionSpec:
        """A copy with partitions (a sequence), unreduced or reduced changed."""
        fields = {"partitions": self.partitions, "unreduced": self.unreduced,
                  "reduced": self.reduced, **changes}
        return PartitionSpec(*fields.pop("partitions"), **fields)

    def count(self, value: Any) -> int:
        """How many entries are `value`."""
        return self.partitions.count(entry_of(value))

    def index(self, value: Any) -> int:
        """The first position of `value`; ValueError if there is none."""
        return self.partitions.index(entry_of(value))

    def __getitem__(self, i: Any) -> Any:
        return self.partitions[i]

    def __iter__(self) -> Iterator[Any]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __add__(self, other: Any) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(*self, *other, unreduced=self.unreduced | other.unreduced,
                                 reduced=self.reduced | other.reduced)
        return self.update(partitions=(*self, *other))

    def __radd__(self, other: Any) -> PartitionSpec:
        return self.update(partitions=(*other, *self))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PartitionSpec) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> tuple[Any, ...]:
        return self.partitions, self.unreduced, self.reduced

    def __reduce__(self) -> Any:
        make = functools.partial(PartitionSpec, unreduced=self.unreduced, reduced=self.reduced)
        return make, self.partitions

    def __repr__(self) -> str:
        fields = list(map(repr, self.partitions))
        fields += [f"{name}={set(names)!r}" for name, names in
                   (("unreduced", self.unreduced), ("reduced", self.reduced)) if names]
        return f"P({', '.join(fields)})"


def entry_of(p: Any) -> Any:
    """An entry in its one form: no name is None, one name is itself."""
    if isinstance(p, (tuple, list)):
        return tuple(p) if len(p) > 1 else p[0] if p else None
    return p


ShardingLike: TypeAlias = Sharding | PartitionSpec | None
DeviceLike: TypeAlias = Device | Sharding | None


def axes_of(entry: Any) -> tuple[Any, ...]:
    """The mesh axes of an entry of a specification, the outermost first."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


class NamedSharding(lib.GSPMDSharding):
    """The sharding of an array whose axes are cut along axes of a mesh.

    Args:
      mesh: the devices, or an `AbstractMesh`, for the sharding that a type says.
      spec: a `PartitionSpec`; mesh axes that it does not name hold copies.
      memory_kind: the kind of the devices' memory; the default one if None.

    ValueError for axes that the mesh has not or that are named twice, and, where the sharding is
    used, for an array with fewer axes or with sizes that the devices do not divide.

    >>> import numpy as np, olympus
    >>> from olympus.sharding import Mesh, NamedSharding, PartitionSpec
    >>> mesh = Mesh(np.array(olympus.devices()[:1]), "x")
    >>> NamedSharding(mesh, PartitionSpec("x")).shard_shape((8, 2))
    (8, 2)
    """

    def __init__(self, mesh: Mesh | AbstractMesh, spec: PartitionSpec, *,
                 memory_kind: str | None = None) -> None:
        if not isinstance(mesh, (Mesh, AbstractMesh)) or not isinstance(spec, PartitionSpec):
            raise TypeError(f"NamedSharding: mesh {mesh!r} and spec {spec!r} given; a Mesh and a "
                            "PartitionSpec are required.")
        if (spec.unreduced or spec.reduced) and isinstance(mesh, Mesh):
            raise ValueError(f"NamedSharding: {spec} given; unreduced and reduced axes are for "
                             "meshes whose axes are in types; name axes of the array only.")
        axes = [name for entry in spec for name in axes_of(entry)]
        for name in axes:
            if name not in mesh.axis_names:
                raise ValueError(f"NamedSharding: {spec} names the axis {name!r}; the mesh has "
                                 f"{mesh.axis_names}; name one of those.")
            if axes.count(name) > 1:
                raise ValueError(f"NamedSharding: {spec} names the axis {name!r} twice; an axis of "
                                 "the mesh may cut one axis of the array.")
        self.mesh, self.spec = mesh, spec
        self._key = mesh, spec, memory_kind
        self._hash = hash(self._key)
        self._tilings: dict[int, Any] = {}
        if isinstance(mesh, Mesh):      # else C++ knows nothing of it, and refuses it
            if mesh.empty:
                raise ValueError(f"NamedSharding: {mesh} given; a mesh with devices is required; "
                                 "make one with olympus.make_mesh.")
            check_memory_kind("NamedSharding", mesh.devices.flat[0], memory_kind)
            super().__init__(mesh.device_tuple, self._to_xla_hlo_sharding(len(spec)), memory_kind)

    def _to_xla_hlo_sharding(self, ndim: int) -> Any:
        """XLA's form of the sharding for arrays of `ndim` axes."""
        found = self._tilings.get(ndim)
        if found is None:
            entries = [axes_of(p) for p in self.spec] + [()] * (ndim - len(self.spec))
            sizes = self.mesh.shape
            order = [name for entry in entries for name in entry]
            rest = [name for name in self.mesh.axis_names if name not in order]
            position = self.mesh.axis_names.index
            found = self._tilings[ndim] = lib.tiled_sharding(
                [prod([sizes[n] for n in entry]) for entry in entries],
                self.mesh.axis_sizes, [position(n) for n in (*order, *rest)])
        return found

    @property
    def replicated_axes(self) -> frozenset[Any]:
        """The axes of the mesh along which devices hold copies."""
        used = {name for entry in self.spec for name in axes_of(entry)}
        return frozenset(self.mesh.axis_names) - used

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError if arrays of a shape cannot be cut so."""
        if len(aval_shape) < len(self.spec):
            raise ValueError(f"{self} given for an array of shape {tuple(aval_shape)}; at least "
                             f"{len(self.spec)} axes are required; shorten the PartitionSpec.")
        # A spec may be shorter: it leaves the last axes whole.
        for i, (size, entry) in enumerate(zip(aval_shape, self.spec, strict=False)):
            count = prod([self.mesh.shape[n] for n in axes_of(entry)])
            if size % count:
                raise ValueError(f"{self} given for an array of shape {tuple(aval_shape)}; axis "
                                 f"{i} of size {size} is cut into {count} parts, which must "
                                 "divide it; pad the array or use another axis.")

    def update(self, **changes: Any) -> NamedSharding:
        """A copy with mesh, spec or memory_kind changed."""
        fields = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self._key[2], **changes}
        return NamedSharding(fields.pop("mesh"), fields.pop("spec"), **fields)

    def leading(self, ndim: int) -> NamedSharding:
        """The sharding of arrays that have the first `ndim` axes only."""
        return self.update(spec=self.spec.update(partitions=self.spec.partitions[:ndim]))

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The sharding in another memory of the devices."""
        return self.update(memory_kind=kind)

    def __eq__(self, other: object) -> bool:
        return self is other or isinstance(other, NamedSharding) and self._key == other._key

    def __hash__(self) -> int:
        return self._hash       # asked in each call of a jitted function

    def __reduce__(self) -> Any:
        if isinstance(self.mesh, AbstractMesh):
            return NamedSharding, (self.mesh, self.spec)
        raise TypeError(f"pickle: {self} given; it names devices of this process; pickle the "
                        "names and sizes of the mesh.")

    def __repr__(self) -> str:
        kind = f", memory_kind={self.memory_kind}" if isinstance(self.mesh, Mesh) else ""
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"


def sharding_in_types(sharding: Any, ndim: int) -> NamedSharding | None:
    """What a type of `ndim` axes says of a sharding: nothing (None) of one that has no mesh.

    The mesh is abstract, and its explicit axes only are named: a type never names a device, and
    types do not multiply with the ways in which XLA spreads arrays.
    """
    if type(sharding) is not NamedSharding or sharding.mesh.empty:
        return None
    if len(sharding.spec) > ndim:
        raise ValueError(f"ShapedArray: {sharding} given for {ndim} axes; at most {ndim} entries "
                         "are required; shorten the PartitionSpec.")
    return _in_types(sharding.mesh.abstract_mesh, sharding.spec, ndim)


def of_mesh(sharding: NamedSharding, mesh: Mesh) -> NamedSharding:
    """A sharding that a type says, over a mesh of devices; XLA decides where axes are Auto."""
    spec = sharding.spec
    if not sharding.mesh.are_all_axes_explicit:
        spec = PartitionSpec(*[UNCONSTRAINED if e is None else e for e in spec])
    return NamedSharding(mesh, spec)


@memoize()
def _in_types(mesh: AbstractMesh, spec: PartitionSpec, ndim: int) -> NamedSharding:
    explicit = mesh.explicit_axes
    entries = [entry_of([n for n in axes_of(e) if n in explicit]) for e in spec]
    return NamedSharding(mesh, PartitionSpec(*entries, *[None] * (ndim - len(entries))))


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> Any:
    """The sharding of an array on one device.

    Args:
      device: the device.
      memory_kind: the kind of its memory; the default one if None.

    Returns:
      A `SingleDeviceSharding`, which `device_put` takes.

    >>> import olympus
    >>> sharding = olympus.sharding.make_single_device_sharding(olympus.devices()[0])
    >>> olympus.device_put(1.0, sharding).sharding == sharding
    True
    """
    check_memory_kind("make_single_device_sharding", device, memory_kind)
    return lib.single_device_sharding(device, memory_kind)


def check_memory_kind(what: str, device: Any, kind: str | None) -> None:
    """ValueError for a kind of memory that the device has not."""
    if kind is not None:
        kinds = [m.kind for m in device.addressable_memories()]
        if kind not in kinds:
            raise ValueError(f"{what}: memory_kind {kind!r} given; {device.platform} devices have "
                             f"the memories {', '.join(kinds)}; name one of those.")


# What every sharding has, C++'s own classes included -------------------------------------------

def device_tuple(self: Any) -> tuple[Any, ...]:
    """The devices of a sharding, in the order of the parts."""
    return self.mesh.device_tuple if type(self) is NamedSharding else (
        tuple(self._internal_device_list))


def _indices(self: Any, global_shape: Sequence[int]) -> dict[Any, tuple[slice, ...]]:
    """The part of an array of a shape that each device holds."""
    return dict(zip(device_tuple(self), lib.shard_slices(self, tuple(global_shape)), strict=True))


def _shard_shape(self: Any, global_shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of one device's part of an array."""
    tiling = self._to_xla_hlo_sharding(len(global_shape))
    counts = lib.tile_counts(tiling, len(global_shape))
    return tuple(-(-size // count) for size, count in zip(global_shape, counts, strict=True))


def _is_equivalent_to(self: Any, other: Any, ndim: int) -> bool:
    """Whether arrays of `ndim` axes have equal parts on equal devices under both."""
    if self is other:
        return True
    if device_tuple(self) != device_tuple(other) or self.memory_kind != other.memory_kind:
        return False
    one, two = self._to_xla_hlo_sharding(ndim), other._to_xla_hlo_sharding(ndim)
    counts = lib.tile_counts(one, ndim)
    return counts == lib.tile_counts(two, ndim) and (
        lib.shard_slices(self, counts) == lib.shard_slices(other, counts))


def _local(self: Any) -> set[Any]:
    return {d for d in device_tuple(self) if d.process_index == d.client.process_index()}


def _memory_kind(self: Any) -> str:
    return self._memory_kind or _default_memory_kind(self)


def _default_memory_kind(self: Any) -> str:
    return device_tuple(self)[0].default_memory().kind


def _place(self: Any) -> tuple[Any, str]:
    return self._device, self.memory_kind


def _install() -> None:
    properties = {
        "device_set": lambda self: set(device_tuple(self)),
        "num_devices": lambda self: len(device_tuple(self)),
        "addressable_devices": _local,
        "has_addressable_devices": lambda self: bool(_local(self)),
        "is_fully_addressable": lambda self: len(_local(self)) == len(device_tuple(self)),
        "is_fully_replicated": lambda self: self._to_xla_hlo_sharding(0).is_replicated(),
        "memory_kind": _memory_kind, "default_memory_kind": _default_memory_kind,
    }
    methods = {"devices_indices_map": _indices, "addressable_devices_indices_map": _indices,
               "shard_shape": _shard_shape, "is_equivalent_to": _is_equivalent_to,
               "__deepcopy__": lambda self, memo: self}
    SingleDeviceSharding.__eq__ = lambda self, other: self is other or (
        type(other) is SingleDeviceSharding and _place(self) == _place(other))
    SingleDeviceSharding.__hash__ = lambda self: hash(_place(self))
    lib.GSPMDSharding.with_memory_kind = lambda self, kind: lib.GSPMDSharding(
        device_tuple(self), self._hlo_sharding, kind)
    lib.GSPMDSharding.__repr__ = lambda self: f"GSPMDSharding({self._hlo_sharding})"
    SingleDeviceSharding.__repr__ = lambda self: (
        f"SingleDeviceSharding(device={self._device!r}, memory_kind={self.memory_kind})")
    SingleDeviceSharding.with_memory_kind = lambda self, kind: make_single_device_sharding(
        self._device, memory_kind=kind)
    SingleDeviceSharding.check_compatible_aval = lambda self, aval_shape: None
    for name, getter in properties.items():
        setattr(Sharding, name, property(getter))
    for name, method in methods.items():
        setattr(Sharding, name, method)


_install()
