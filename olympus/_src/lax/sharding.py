"""Demands on where values are: `with_sharding_constraint`, memory spaces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..base import lib
from ..base.typing import PyTree, T
from ..core import tags
from ..core.context import ThreadState, ctx
from ..core.primitive import Axis, Linear, Primitive
from ..core.trace import typeof
from ..types.memory import Space
from ..types.mesh import AbstractMesh, current_mesh
from ..types.sharding import NamedSharding, PartitionSpec, axes_of, sharding_in_types
from ..types.tree import flatten_axes, tree_flatten

__all__ = ["constrain", "device_put_p", "move", "resolve_sharding", "sharding_constraint_p",
           "sharding_like", "with_sharding_constraint"]


class ShardingConstraint(Primitive):
    """params: sharding. Values stay; tangents and cotangents are spread alike."""

    def inferred(self, avals: Sequence[Any], params: dict[str, Any]) -> Any:
        demanded = sharding_in_types(params["sharding"], avals[0].ndim)
        return avals[0] if demanded is None else avals[0].update(sharding=demanded)

    def infer(self, x: Any, *, sharding: Any) -> Any:
        return x

    def lower(self, b: Any, x: Any, *, sharding: Any) -> Any:
        if type(sharding) is lib.SingleDeviceSharding:
            b.module.use_devices((sharding._device,))
            return x
        attributes = b.module.sharding_attrs(sharding, b.avals_in[0])
        if not attributes:
            return x
        return b.ops("sdy.sharding_constraint", [x], {"sharding": attributes["sdy.sharding"]},
                     [x.type]).result

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, sharding: Any) -> Any:
        return self.bind(*primals, sharding=sharding), self.bind(*tangents, sharding=sharding)

    def transpose(self, ct: Any, x: Any, *, sharding: Any) -> list[Any]:
        return [self.bind(ct, sharding=sharding) if type(x) is Linear else None]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *, sharding: Any
             ) -> Any:
        (dim,) = dims
        assert dim is not None      # or there would be nothing to map
        if type(sharding) is NamedSharding:
            spec = [*sharding.spec] + [None] * (dim - len(sharding.spec))
            new = PartitionSpec.UNCONSTRAINED if axis.mesh_axis is None else axis.mesh_axis
            if set(axes_of(new)) & {name for entry in spec for name in axes_of(entry)}:
                raise ValueError(f"vmap: spmd_axis_name={new!r} given, and {sharding.spec} in a "
                                 "sharding constraint within; the axis cuts the mapped axis "
                                 "already; name other axes there.")
            spec.insert(dim, new)
            sharding = sharding.update(spec=PartitionSpec(*spec))
        return self.bind(*args, sharding=sharding), dim


sharding_constraint_p = ShardingConstraint("sharding_constraint")


class DevicePut(Primitive):
    """params: source, target, both `Space`. Values stay; the derivative moves back."""

    spread = staticmethod(tags.same)

    def memory(self, params: dict[str, Any]) -> Space:
        return params["target"]

    def infer(self, x: Any, *, source: Space, target: Space) -> Any:
        return x

    def lower(self, b: Any, x: Any, *, source: Space, target: Space) -> Any:
        return b.put_in_memory(x, target.value)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> Any:
        return self.bind(*primals, **params), self.bind(*tangents, **params)

    def transpose(self, ct: Any, x: Any, *, source: Space, target: Space) -> list[Any]:
        if type(x) is not Linear:
            return [None]
        return [self.bind(ct, source=target, target=source)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], **params: Any
             ) -> Any:
        return self.bind(*args, **params), dims[0]


device_put_p = DevicePut("device_put")


def move(x: Any, source: Space, target: Space) -> Any:
    """`x`, in the memory space `target`."""
    return device_put_p.bind(x, source=source, target=target)


def with_sharding_constraint(x: T, shardings: PyTree) -> T:
    """`x`, spread over devices as demanded: what XLA may not choose for itself.

    Args:
      x: a pytree of arrays.
      shardings: a `NamedSharding`, a `PartitionSpec` of axes of the mesh of the `with` block
        around, a single-device sharding, None for no demand, or a pytree of those that is a prefix
        of the structure of `x`. Entries `PartitionSpec.UNCONSTRAINED` leave an axis to XLA.

    The program runs on the devices that its constraints name, arguments that are committed
    elsewhere are refused. Derivatives are spread as the values are; under `vmap` the mapped axis is
    left to XLA, or cut along `spmd_axis_name`. TypeError for what is no sharding, ValueError where
    an array's shape does not fit, or for a specification without a mesh.

    >>> import numpy as np, olympus
    >>> from olympus.sharding import Mesh, NamedSharding, PartitionSpec as P
    >>> sharding = NamedSharding(Mesh(np.array(olympus.devices()[:1]), "x"), P("x"))
    >>> olympus.lax.with_sharding_constraint(np.arange(4.0), sharding)
    Array([0., 1., 2., 3.], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    entries = flatten_axes("with_sharding_constraint shardings", tree, shardings)
    return tree.unflatten([constrain("with_sharding_constraint", leaf, entry)
                           for leaf, entry in zip(leaves, entries, strict=True)])


def constrain(what: str, x: Any, sharding: Any) -> Any:
    """One array, spread as demanded; itself if `sharding` is None."""
    if sharding is None:
        return x
    sharding = resolve_sharding(what, sharding)
    try:
        sharding.check_compatible_aval(typeof(x).shape)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    x = sharding_constraint_p.bind(x, sharding=sharding)
    kind = sharding._memory_kind
    if kind is None or kind == sharding.default_memory_kind:
        return x
    return move(x, Space.Device, Space.of(kind))


def sharding_like(x: Any) -> Any:
    """Where what is made in the likeness of `x` belongs: with `x` if that is bound to devices."""
    if type(x) is not lib.ArrayImpl or not x._committed or ctx.trace is not ThreadState.trace:
        return None
    kind = type(x._sharding)
    return x._sharding if kind is NamedSharding or kind is lib.SingleDeviceSharding else None


def resolve_sharding(what: str, sharding: Any) -> Any:
    """A sharding of devices: specifications are of the mesh around."""
    if isinstance(sharding, PartitionSpec):
        mesh = current_mesh()
        if mesh is None:
            raise ValueError(f"{what}: {sharding} given without a mesh; a NamedSharding is "
                             "required, or a mesh around (with mesh: …).")
        return NamedSharding(mesh, sharding)
    if type(sharding) is NamedSharding and isinstance(sharding.mesh, AbstractMesh):
        mesh = current_mesh()
        if mesh is None or mesh.abstract_mesh != sharding.mesh:
            raise ValueError(f"{what}: {sharding} given, whose mesh names no devices; a sharding "
                             "over a Mesh is required, or that mesh around (with mesh: …).")
        return sharding.update(mesh=mesh)
    if type(sharding) in (NamedSharding, lib.SingleDeviceSharding):
        return sharding
    raise TypeError(f"{what}: {sharding!r} of type {type(sharding).__name__} given; a "
                    "NamedSharding, a PartitionSpec or a single-device sharding is required.")
