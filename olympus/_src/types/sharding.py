"""Where the parts of an array are: specifications of its axes along a mesh, shardings.

    Mesh(devices, ("x", "y"))  +  PartitionSpec("x", None)  =  NamedSharding
                                                                  └─► an HloSharding, for XLA

The compiler distributes the work: a sharding of arguments, results or intermediate values
(`lax.with_sharding_constraint`) is a demand, and XLA chooses the rest.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Sequence, Set
from typing import Any, NoReturn, TypeAlias

from ..base import lib
from ..base.config import remove_size_one_mesh_axis_from_type
from ..base.lib import Sharding, SingleDeviceSharding
from ..base.typing import Device
from ..base.util import ByKey, lazy_imports, memoize, quoted
from .memory import Space
from .mesh import AbstractMesh, Mesh, current_mesh, get_abstract_mesh
from .shape import mod, prod

with lazy_imports(__name__):
    from . import pictures as _pictures


class _Unconstrained:
    """The entry of a specification for an axis that XLA may cut as it likes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "UNCONSTRAINED"

    def __reduce__(self) -> str:
        return "UNCONSTRAINED"


UNCONSTRAINED = _Unconstrained()


# The entry of one axis: None, a name, a tuple of names, the outermost first, or UNCONSTRAINED.
Entry: TypeAlias = Hashable


class PartitionSpec(ByKey):
    """A partition specification: the mesh axes along which each axis of an array is cut.

    Args:
      partitions: per axis of the array a mesh axis' name, a tuple of names (the first is the
        outermost), None for an axis that is not cut, or `PartitionSpec.UNCONSTRAINED`; axes left
        out at the end are not cut.
      unreduced: a set of names of mesh axes: devices along them hold terms of a sum that is still
        to be taken.
      reduced: a set of names of mesh axes along which devices hold copies, and cotangents are left
        unreduced.

    ValueError for an axis that is in two of them.

    >>> from olympus.sharding import PartitionSpec as P
    >>> P("x", None, ("y", "z")), P("x", unreduced={"y"})
    (P('x', None, ('y', 'z')), P('x', unreduced={'y'}))
    """

    __slots__ = ("partitions", "reduced", "unreduced")
    UNCONSTRAINED = UNCONSTRAINED

    partitions: tuple[Entry, ...]
    unreduced: frozenset[str]
    reduced: frozenset[str]

    def __init__(self, *partitions: Entry | list[str], unreduced: Set[str] = frozenset(),
                 reduced: Set[str] = frozenset()) -> None:
        for p in partitions:
            if isinstance(p, (tuple, list)) and any(
                    n is None or isinstance(n, (_Unconstrained, tuple, list)) for n in p):
                raise ValueError(f"PartitionSpec: the entry {p!r} given; a name, a tuple of names, "
                                 "None or UNCONSTRAINED is required; no tuple has another in it.")
        names = {n for p in partitions for n in axes_of(entry_of(p))}
        for what, names_of, others in (("unreduced", unreduced, {*names, *reduced}),
                                       ("reduced", reduced, names)):
            if not isinstance(names_of, (set, frozenset)):
                raise TypeError(f"PartitionSpec: {what}={names_of!r} given; a set of names of mesh "
                                "axes is required.")
            if None in names_of or others & names_of:
                raise ValueError(f"PartitionSpec: partitions {partitions}, unreduced "
                                 f"{{{quoted(unreduced)}}} and reduced {{{quoted(reduced)}}} "
                                 "given; each axis of the mesh may be in one of them.")
        put = object.__setattr__
        put(self, "partitions", tuple(map(entry_of, partitions)))
        put(self, "unreduced", frozenset(unreduced))
        put(self, "reduced", frozenset(reduced))

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"PartitionSpec: {name} set; it is immutable; use update().")

    def update(self, **changes: Any) -> PartitionSpec:
        """A copy with partitions (a sequence), unreduced or reduced changed."""
        fields = {"partitions": self.partitions, "unreduced": self.unreduced,
                  "reduced": self.reduced, **changes}
        return PartitionSpec(*fields.pop("partitions"), **fields)

    def of_cotangent(self) -> PartitionSpec:
        """The specification of a cotangent: unreduced and reduced change places."""
        if not (self.unreduced or self.reduced):
            return self
        return self.update(unreduced=self.reduced, reduced=self.unreduced)

    def count(self, value: object) -> int:
        """How many entries are `value`."""
        return self.partitions.count(entry_of(value))

    def index(self, value: object) -> int:
        """The first position of `value`; ValueError if there is none."""
        return self.partitions.index(entry_of(value))

    def __getitem__(self, i: Any) -> Any:
        return self.partitions[i]

    def __iter__(self) -> Iterator[Entry]:
        return iter(self.partitions)

    def __len__(self) -> int:
        return len(self.partitions)

    def __add__(self, other: PartitionSpec | tuple[Entry, ...]) -> PartitionSpec:
        if isinstance(other, PartitionSpec):
            return PartitionSpec(*self, *other, unreduced=self.unreduced | other.unreduced,
                                 reduced=self.reduced | other.reduced)
        self._check_plain(f"{self} + {other!r}")
        return self.update(partitions=(*self, *other))

    def __radd__(self, other: tuple[Entry, ...]) -> PartitionSpec:
        self._check_plain(f"{other!r} + {self}")
        return self.update(partitions=(*other, *self))

    def _check_plain(self, shown: str) -> None:
        if self.unreduced or self.reduced:
            raise TypeError(f"PartitionSpec: {shown} given; a PartitionSpec is required beside one "
                            "that has unreduced or reduced axes; use update(partitions=…).")

    def _key(self) -> tuple[Hashable, ...]:
        return self.partitions, self.unreduced, self.reduced

    def __reduce__(self) -> tuple[Callable[..., PartitionSpec], tuple[Entry, ...]]:
        make = functools.partial(PartitionSpec, unreduced=self.unreduced, reduced=self.reduced)
        return make, self.partitions

    def __repr__(self) -> str:
        if not (self.unreduced or self.reduced):
            return f"P{self.partitions}"
        fields = list(map(repr, self.partitions))
        fields += [f"{name}={{{quoted(names)}}}" for name, names in
                   (("unreduced", self.unreduced), ("reduced", self.reduced)) if names]
        return f"P({', '.join(fields)})"


def entry_of(p: object) -> Entry:
    """An entry in its one form: no name is None, one name is itself."""
    if isinstance(p, (tuple, list)):
        return tuple(p) if len(p) > 1 else p[0] if p else None
    return p


ShardingLike: TypeAlias = Sharding | PartitionSpec | None
DeviceLike: TypeAlias = Device | Sharding | None


def axes_of(entry: Any) -> tuple[str, ...]:
    """The mesh axes of an entry of a specification, the outermost first."""
    if entry is None or entry is UNCONSTRAINED:
        return ()
    return entry if isinstance(entry, tuple) else (entry,)


def named_axes(spec: PartitionSpec) -> frozenset[str]:
    """The axes of the mesh that a specification names."""
    return frozenset([name for entry in spec for name in axes_of(entry)])


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
        axes = [name for entry in spec for name in axes_of(entry)]
        sums = spec.unreduced | spec.reduced
        if not sums.isdisjoint(mesh.auto_axes):
            raise ValueError(f"NamedSharding: {spec} given for {mesh}; Auto axes cannot be "
                             "unreduced or reduced; name some of "
                             f"{(*mesh.explicit_axes, *mesh.manual_axes)}.")
        for name in (*axes, *sums):
            if name not in mesh.axis_names:
                raise ValueError(f"NamedSharding: {spec} names the axis {name!r}; the mesh has "
                                 f"{mesh.axis_names}; name one of those.")
            if axes.count(name) > 1:
                raise ValueError(f"NamedSharding: {spec} names the axis {name!r} twice; an axis of "
                                 "the mesh may cut one axis of the array.")
        if UNCONSTRAINED in spec and not mesh.auto_axes:
            raise ValueError(f"NamedSharding: {spec} cannot contain `P.UNCONSTRAINED` when no mesh "
                             f"axis_types are `Auto`: {mesh} given; XLA chooses along Auto axes "
                             "only; say None, or a name.")
        self.mesh, self.spec = mesh, spec
        self._key = _one_key(mesh, spec, _named_kind(mesh, memory_kind))
        self._hash = hash(self._key)
        self._tilings: dict[int, Any] = {}
        if isinstance(mesh, Mesh):      # else C++ knows nothing of it, and refuses it
            if mesh.empty:
                raise ValueError(f"NamedSharding: {mesh} given; a mesh with devices is required; "
                                 "make one with olympus.make_mesh.")
            check_memory_kind("NamedSharding", mesh.devices.flat[0], memory_kind)
            super().__init__(mesh.device_tuple, self._to_xla_hlo_sharding(len(spec)), memory_kind)

    def _to_xla_hlo_sharding(self, ndim: int) -> object:
        """XLA's form of the sharding for arrays of `ndim` axes."""
        known = self._tilings.get(ndim)
        if known is None:
            entries = [axes_of(p) for p in self.spec] + [()] * (ndim - len(self.spec))
            sizes = self.mesh.shape
            order = [name for entry in entries for name in entry]
            rest = [name for name in self.mesh.axis_names if name not in order]
            position = self.mesh.axis_names.index
            known = self._tilings[ndim] = lib.tiled_sharding(
                [prod([sizes[n] for n in entry]) for entry in entries],
                self.mesh.axis_sizes, [position(n) for n in (*order, *rest)])
        return known

    @property
    def replicated_axes(self) -> frozenset[str]:
        """The axes of the mesh along which devices hold copies."""
        used = {name for entry in self.spec for name in axes_of(entry)}
        return frozenset(self.mesh.axis_names) - used

    def check_compatible_aval(self, aval_shape: Sequence[int]) -> None:
        """ValueError if arrays of a shape cannot be cut so."""
        self.check_rank(aval_shape)
        # A spec may be shorter: it leaves the last axes whole.
        counts = [prod([self.mesh.shape[n] for n in axes_of(entry)]) for entry in self.spec]
        for i, (size, count) in enumerate(zip(aval_shape, counts, strict=False)):
            if mod(size, count):
                counts += [1] * (len(aval_shape) - len(counts))
                raise ValueError(f"Sharding {self} implies that array axis {i} is partitioned "
                                 f"{count} times, but the dimension size is {size} (full shape: "
                                 f"{tuple(aval_shape)}, per-dimension tiling factors: {counts} "
                                 "should evenly divide the shape); pad the array or use another "
                                 "axis.")

    def check_rank(self, aval_shape: Sequence[int]) -> None:
        """ValueError if the specification has more entries than a shape has axes."""
        if len(aval_shape) < len(self.spec):
            scalar = "" if aval_shape else " For scalars the PartitionSpec should be P()."
            raise ValueError(f"Sharding {self} is only valid for values of rank at least "
                             f"{len(self.spec)}, but was applied to a value of rank "
                             f"{len(aval_shape)}, of shape {tuple(aval_shape)}; shorten the "
                             f"PartitionSpec.{scalar}")

    def update(self, **changes: Any) -> NamedSharding:
        """A copy with mesh, spec or memory_kind changed."""
        fields = {"mesh": self.mesh, "spec": self.spec, "memory_kind": self._key[2], **changes}
        return NamedSharding(fields.pop("mesh"), fields.pop("spec"), **fields)

    def leading(self, ndim: int) -> NamedSharding:
        """The sharding of arrays that have the first `ndim` axes only."""
        return self.update(spec=self.spec.update(partitions=self.spec.partitions[:ndim]))

    def of_cotangent(self) -> NamedSharding:
        """The sharding of the cotangent of a value: unreduced and reduced change places."""
        spec = self.spec.of_cotangent()
        return self if spec is self.spec else self.update(spec=spec)

    def with_memory_kind(self, kind: str) -> NamedSharding:
        """The sharding in another memory of the devices."""
        return self.update(memory_kind=kind)

    def __eq__(self, other: object) -> bool:
        # Each call of a jitted function compares, and hashes, the sharding of each argument.
        return type(other) is NamedSharding and (
            self._key is other._key or self._key == other._key)

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[object, ...]:
        if isinstance(self.mesh, AbstractMesh):
            return functools.partial(NamedSharding, memory_kind=self._key[2]), (self.mesh,
                                                                                self.spec)
        raise TypeError(f"pickle: {self} given; it names devices of this process; pickle the "
                        "names and sizes of the mesh.")

    def __repr__(self) -> str:
        kind = "" if self.memory_kind is None else f", memory_kind={self.memory_kind}"
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec}{kind})"

    def _repr_html_(self) -> str | None:
        if isinstance(self.mesh, AbstractMesh) or unreduced(self):
            return None     # no device holds anything, or each terms of a sum
        cuts = [prod([self.mesh.shape[name] for name in axes_of(entry)]) for entry in self.spec]
        return _pictures.sharding_html(repr(self), tuple(cuts), self)


@memoize(4096)
def _one_key(*key: Hashable) -> tuple[Any, ...]:
    """One object for the equal ones: asking whether they are takes no look into them."""
    return key


def _named_kind(mesh: Mesh | AbstractMesh, kind: str | None) -> str | None:
    """A kind of memory by which shardings differ: the devices' default one is the same as none."""
    if kind is None or not isinstance(mesh, Mesh) or mesh.empty:
        return kind
    return None if kind == lib.default_memory_kind(mesh.devices.flat[0]) else kind


def demanded_memory(sharding: Sharding | None) -> str | None:
    """The kind of memory that a sharding names, None for the devices' own, or for no sharding."""
    if type(sharding) is NamedSharding:
        return sharding._key[2]
    if sharding is None or sharding._memory_kind == sharding.default_memory_kind:
        return None
    return sharding._memory_kind


def space_of(sharding: Sharding | None) -> Space:
    """The memory space, as types say it, of an array with a sharding."""
    return Space.Host if demanded_memory(sharding) == Space.Host.value else Space.Device


def sharding_in_types(sharding: object, ndim: int) -> NamedSharding | None:
    """The sharding as a type of `ndim` axes has it; None for a sharding without a mesh.

    The mesh is abstract, and its explicit axes only are named: a type never names a device, and
    types do not multiply with the ways in which XLA spreads arrays.
    """
    if type(sharding) is not NamedSharding or sharding.mesh.empty:
        return None
    if len(sharding.spec) > ndim:
        raise ValueError(f"ShapedArray: {sharding} given for {ndim} axes; at most {ndim} entries "
                         "are required; shorten the PartitionSpec.")
    return _in_types(sharding.mesh.abstract_mesh, sharding.spec, ndim,
                     remove_size_one_mesh_axis_from_type.value)


def over_mesh_around(what: str, spec: PartitionSpec) -> NamedSharding:
    """A specification of the ambient mesh, with its devices where they are known."""
    abstract, mesh = get_abstract_mesh(), current_mesh()
    if abstract.empty and mesh is not None:
        return NamedSharding(mesh, spec)
    if abstract.empty:
        raise without_mesh(what, spec)
    return NamedSharding(abstract if mesh is None or mesh.abstract_mesh != abstract else mesh,
                         spec)


class NoMeshError(RuntimeError, ValueError):
    """A specification is given, and no mesh is around."""


def without_mesh(what: str, spec: PartitionSpec) -> NoMeshError:
    """The error for a specification without an ambient mesh."""
    verb = what.partition(" ")[0]
    return NoMeshError(f"{what}: {spec} given without a mesh; {verb} requires a non-empty mesh in "
                       "context, or a NamedSharding. Please set a mesh via `olympus.set_mesh` if a "
                       f"PartitionSpec is passed to {verb}.")


def of_mesh(sharding: NamedSharding, mesh: Mesh | AbstractMesh) -> NamedSharding:
    """A sharding that a type says, over a mesh of devices; XLA decides where axes are Auto."""
    spec = sharding.spec
    if sharding.mesh.auto_axes:
        spec = spec.update(partitions=[UNCONSTRAINED if e is None else e for e in spec])
    return NamedSharding(mesh.of_types(sharding.mesh.axis_types), spec)


def told_axes(mesh: Mesh | AbstractMesh, larger: bool | None = None) -> tuple[str, ...]:
    """The axes of a mesh that types name: the explicit ones, or only those with several devices.

    `larger`: whether only those with several devices; None: as the option says.
    """
    if remove_size_one_mesh_axis_from_type.value if larger is None else larger:
        return tuple([n for n in mesh.explicit_axes if mesh.shape[n] > 1])
    return mesh.explicit_axes


@memoize()
def _in_types(mesh: AbstractMesh, spec: PartitionSpec, ndim: int, larger: bool) -> NamedSharding:
    explicit = told_axes(mesh, larger)
    summed = (*explicit, *mesh.manual_axes)
    entries = [entry_of([n for n in axes_of(e) if n in explicit]) for e in spec]
    return NamedSharding(mesh, PartitionSpec(
        *entries, *[None] * (ndim - len(entries)), unreduced=spec.unreduced.intersection(summed),
        reduced=spec.reduced.intersection(summed)))


def make_single_device_sharding(device: Device, *, memory_kind: str | None = None
                                ) -> SingleDeviceSharding:
    """The sharding of an array on one device.

    Args:
      device: the device.
      memory_kind: the kind of its memory; the default one if None.
    Returns: A `SingleDeviceSharding`, which `device_put` takes.

    >>> sharding = olympus.sharding.make_single_device_sharding(olympus.devices()[0])
    >>> olympus.device_put(1.0, sharding).sharding == sharding
    True
    """
    check_memory_kind("make_single_device_sharding", device, memory_kind)
    return lib.single_device_sharding(device, memory_kind)


def check_memory_kind(what: str, device: Device, kind: str | None) -> None:
    """ValueError for a kind of memory that the device has not."""
    if kind is not None:
        kinds = lib.memory_kinds(device)
        if kind not in kinds:
            raise ValueError(
                f"{what}: Could not find memory addressable by device {device.platform}: "
                f"memory_kind {kind!r} given; Device {device.platform} can address the following "
                f"memory kinds: {', '.join(kinds)}; name one of those.")


# Methods of every sharding, C++'s own classes included -----------------------------------------

def device_tuple(self: Sharding) -> tuple[Device, ...]:
    """The devices of a sharding, in the order of the parts."""
    if type(self) is not NamedSharding:
        return tuple(self._internal_device_list)
    if isinstance(self.mesh, AbstractMesh):
        raise ValueError(f"devices of {self} asked for, whose mesh names none: that is not "
                         "implemented for `olympus.sharding.AbstractMesh`; give a sharding over a "
                         "Mesh.")
    return self.mesh.device_tuple


@memoize(1024)
def _slices(sharding: Sharding, shape: tuple[int, ...]) -> dict[Device, tuple[slice, ...]]:
    _shard_shape(sharding, shape)       # or parts differ in size
    parts = lib.shard_slices(sharding, shape)
    counts = lib.tile_counts(sharding._to_xla_hlo_sharding(len(shape)), len(shape))
    return {d: tuple([s if n > 1 else slice(None) for s, n in zip(part, counts, strict=True)])
            for d, part in zip(device_tuple(sharding), parts, strict=True)}


@memoize(1024)
def replica_ids(sharding: Sharding, shape: tuple[int, ...]) -> dict[Device, int]:
    """How many devices before each device hold the same part of an array of a shape."""
    seen: Counter[Any] = Counter()
    ids = {}
    for device, index in _slices(sharding, shape).items():
        part = tuple([(s.start, s.stop) for s in index])
        ids[device] = seen[part]
        seen[part] += 1
    return ids


def _indices(self: Sharding, global_shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
    """The part of an array of a shape that each device holds; slice(None) of an axis not cut.

    ValueError for parts that would differ in size.
    """
    device_tuple(self)      # or there is none
    check_reduced("devices_indices_map", self)
    return _slices(self, tuple(global_shape))


def _own_indices(self: Sharding, global_shape: Sequence[int]) -> dict[Device, tuple[slice, ...]]:
    """The part of an array of a shape that each device of this process holds."""
    everywhere = _indices(self, global_shape)
    own = set(self._internal_device_list.addressable_device_list)
    return {d: index for d, index in everywhere.items() if d in own}


def unreduced(sharding: object) -> frozenset[str]:
    """The axes of a mesh along which devices hold terms of a sum."""
    return sharding.spec.unreduced if type(sharding) is NamedSharding else frozenset()


def check_reduced(what: str, sharding: object) -> None:
    """ValueError where devices hold terms of a sum, and the elements themselves are needed."""
    if axes := unreduced(sharding):
        raise ValueError(f"{what}: an array of {sharding} given, of which devices hold terms that "
                         f"are not added up yet along {quoted(axes)}; the elements "
                         "are required; put it elsewhere with olympus.reshard first.")


def _shard_shape(self: Sharding, global_shape: Sequence[int]) -> tuple[int, ...]:
    """The shape of one device's part of an array; ValueError if the sizes of parts differ."""
    shape = tuple(global_shape)
    if type(self) is NamedSharding:
        self.check_compatible_aval(shape)
    counts = lib.tile_counts(self._to_xla_hlo_sharding(len(shape)), len(shape))
    return tuple(-(-size // count) for size, count in zip(shape, counts, strict=True))


def _is_equivalent_to(self: Sharding, other: Sharding, ndim: int) -> bool:
    """Whether arrays of `ndim` axes have equal parts on equal devices under both."""
    if self is other:
        return True
    if device_tuple(self) != device_tuple(other) or self.memory_kind != other.memory_kind:
        return False
    if unreduced(self) != unreduced(other):
        return False
    return lib.same_tiles(self._to_xla_hlo_sharding(ndim), other._to_xla_hlo_sharding(ndim), ndim)


def _local(self: Sharding) -> set[Device]:
    return {d for d in device_tuple(self) if d.process_index == d.client.process_index()}


def _memory_kind(self: Sharding) -> str | None:
    if type(self) is NamedSharding and isinstance(self.mesh, AbstractMesh):
        return self._key[2]     # the default one is the devices'
    return self._memory_kind or _default_memory_kind(self)


def _num_devices(self: Sharding) -> int:
    return self.mesh.size if type(self) is NamedSharding else len(device_tuple(self))


def _default_memory_kind(self: Sharding) -> str:
    return lib.default_memory_kind(device_tuple(self)[0])


def _device_memory(self: SingleDeviceSharding) -> tuple[Device, str | None]:
    return self._device, self.memory_kind


def _install_properties() -> None:
    properties = {
        "device_set": lambda self: set(device_tuple(self)),
        "num_devices": _num_devices,
        "addressable_devices": _local,
        "has_addressable_devices": lambda self: bool(_local(self)),
        "is_fully_addressable": lambda self: len(_local(self)) == len(device_tuple(self)),
        "is_fully_replicated": lambda self: self._to_xla_hlo_sharding(0).is_replicated(),
        "memory_kind": _memory_kind, "default_memory_kind": _default_memory_kind,
    }
    methods = {"devices_indices_map": _indices, "addressable_devices_indices_map": _own_indices,
               "shard_shape": _shard_shape, "is_equivalent_to": _is_equivalent_to,
               "__copy__": lambda self: self, "__deepcopy__": lambda self, memo: self}
    SingleDeviceSharding.__eq__ = lambda self, other: self is other or (
        type(other) is SingleDeviceSharding and _device_memory(self) == _device_memory(other))
    SingleDeviceSharding.__hash__ = lambda self: hash(_device_memory(self))
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


_install_properties()
