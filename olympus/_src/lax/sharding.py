"""Demands on where values are: `with_sharding_constraint`, memory spaces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from ..base import lib
from ..base.typing import PyTree, T
from ..base.util import wraps
from ..core import reuse, tags
from ..core.context import ThreadState, ctx
from ..core.primitive import Axis, Linear, Primitive
from ..core.trace import Tracer, typeof
from ..types.avals import ShapedArray
from ..types.memory import Space
from ..types.mesh import (
    AbstractMesh,
    AxisType,
    Mesh,
    current_mesh,
    get_abstract_mesh,
    use_abstract_mesh,
)
from ..types.sharding import NamedSharding, PartitionSpec, axes_of, entry_of, sharding_in_types
from ..types.tree import flatten_axes, tree_flatten, tree_leaves, tree_map

__all__ = ["as_typed", "auto_axes", "constrain", "device_put_p", "explicit_axes", "move",
           "reshard", "reshard_p", "resolve_sharding", "sharding_constraint_p", "sharding_like",
           "undecided", "with_sharding_constraint"]


class ShardingConstraint(Primitive):
    """params: sharding. Values stay; tangents and cotangents are spread alike."""

    cells = staticmethod(reuse.same)

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


class Reshard(Primitive):
    """params: sharding, over a mesh with devices or an abstract one. The type changes to it.

    The cotangent goes back to the operand's type.
    """

    cells = staticmethod(reuse.same)

    def inferred(self, avals: Sequence[Any], params: dict[str, Any]) -> Any:
        return avals[0].update(sharding=params["sharding"])

    def infer(self, x: Any, *, sharding: NamedSharding) -> Any:
        return x

    def lower(self, b: Any, x: Any, *, sharding: NamedSharding) -> Any:
        if isinstance(sharding.mesh, Mesh):     # the type names it without its devices
            b.module.given.append(sharding.mesh)
        return x    # every result is cut as its type says

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], *, sharding: NamedSharding
            ) -> Any:
        return self.bind(*primals, sharding=sharding), self.bind(*tangents, sharding=sharding)

    def transpose(self, ct: Any, x: Any, *, sharding: NamedSharding) -> list[Any]:
        back = x.aval.sharding
        if isinstance(sharding.mesh, Mesh) and back.mesh == sharding.mesh.abstract_mesh:
            back = back.update(mesh=sharding.mesh)
        return [self.bind(ct, sharding=back)]

    def vmap(self, axis: Axis, args: Sequence[Any], dims: Sequence[int | None], *,
             sharding: NamedSharding) -> Any:
        (x,), (dim,) = args, dims
        assert dim is not None      # or there would be nothing to map
        spec = [*sharding.spec] + [None] * (dim - len(sharding.spec))
        own = typeof(x).sharding.spec[dim] if typeof(x).explicit else axis.mesh_axis
        spec.insert(dim, own)
        return self.bind(x, sharding=sharding.update(spec=PartitionSpec(*spec))), dim

    def shown(self, eqn: Any) -> dict[str, Any]:
        return {}


reshard_p = Reshard("reshard")


class DevicePut(Primitive):
    """params: source, target, both `Space`. Values stay; the derivative moves back."""

    spread = staticmethod(tags.same)
    cells = staticmethod(reuse.same)

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

    Returns:
      A pytree like `x`.

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
    for entry in entries:
        if type(entry) is NamedSharding and set(entry.mesh.explicit_axes) & _axes(entry.spec):
            raise ValueError(f"with_sharding_constraint: {entry} given; a specification of Auto "
                             "axes is required: along explicit ones the type says it; use "
                             "olympus.reshard.")
    return tree.unflatten([constrain("with_sharding_constraint", leaf, entry)
                           for leaf, entry in zip(leaves, entries, strict=True)])


def _axes(spec: PartitionSpec) -> set[Any]:
    return {name for entry in spec for name in axes_of(entry)}


def reshard(xs: T, out_shardings: PyTree) -> T:
    """The same values, of types that are cut as demanded along explicit axes of a mesh.

    Args:
      xs: a pytree of arrays.
      out_shardings: a `NamedSharding`, a `PartitionSpec` of axes of the mesh around
        (`olympus.set_mesh`, `use_abstract_mesh`), or a pytree of those that is a prefix of the
        structure of `xs`.

    Returns:
      A pytree like `xs`.

    Cotangents go back to where the values were. ValueError for a specification without a mesh, for
    one of axes that are not explicit, and where an array's shape does not fit.

    >>> import olympus
    >>> from olympus.sharding import AxisType, NamedSharding, PartitionSpec as P
    >>> mesh = olympus.make_mesh((1,), ("x",), (AxisType.Explicit,))
    >>> y = olympus.reshard(olympus.numpy.ones((4, 2)), NamedSharding(mesh, P("x")))
    >>> print(olympus.typeof(y), olympus.typeof(y.T))
    float32[4@x,2] float32[2,4@x]
    """
    leaves, tree = tree_flatten(xs)
    entries = flatten_axes("reshard out_shardings", tree, out_shardings)
    return tree.unflatten([_resharded(x, s) for x, s in zip(leaves, entries, strict=True)])


def _resharded(x: Any, given: Any) -> Any:
    sharding, aval = given, typeof(x)
    if isinstance(given, PartitionSpec):
        abstract, mesh = get_abstract_mesh(), current_mesh()
        if abstract.empty:
            raise ValueError(f"reshard: {given} given without a mesh; a NamedSharding is required, "
                             "or a mesh around (olympus.set_mesh).")
        over = abstract if mesh is None or mesh.abstract_mesh != abstract else mesh
        sharding = NamedSharding(over, given)
    if type(sharding) is not NamedSharding:
        raise TypeError(f"reshard: {given!r} of type {type(given).__name__} given; a NamedSharding "
                        "or a PartitionSpec is required.")
    other = _axes(sharding.spec) - set(sharding.mesh.explicit_axes)
    if other or PartitionSpec.UNCONSTRAINED in sharding.spec.partitions:
        raise ValueError(f"reshard: {sharding} given; a specification of explicit axes only is "
                         "required; use lax.with_sharding_constraint along others.")
    try:
        sharding.check_compatible_aval(aval.shape)
    except ValueError as error:
        raise ValueError(f"reshard: {error}") from None
    return x if aval.sharding == sharding_in_types(sharding, aval.ndim) else (
        reshard_p.bind(x, sharding=sharding))


def undecided(x: Any) -> Any:
    """`x` spread as XLA likes: an operand of what says itself where its result is."""
    mesh = typeof(x).sharding.mesh
    return _retyped(x, _with_types(mesh, None, AxisType.Auto)) if mesh.explicit_axes else x


def as_typed(x: Any, aval: Any) -> Any:
    """`x`, cut as a type says: a cotangent as its value."""
    if not aval.tagged or not aval.explicit or typeof(x).sharding == aval.sharding:
        return x
    if not typeof(x).sharded and ctx.trace is ThreadState.trace:
        return x    # an array of no mesh: a type does not name the devices to put it on
    return reshard_p.bind(x, sharding=aval.sharding)


def _retyped(x: Any, mesh: AbstractMesh) -> Any:
    """`x` over a mesh of other axis types; cut as before along the axes that are explicit there."""
    aval = typeof(x)
    if not isinstance(aval, ShapedArray) or not aval.sharded or aval.sharding.mesh == mesh:
        return x
    spec = PartitionSpec(*[entry_of([n for n in axes_of(e) if n in mesh.explicit_axes])
                           for e in aval.sharding.spec])
    return reshard_p.bind(x, sharding=NamedSharding(mesh, spec))


def _with_types(mesh: AbstractMesh, axes: Any, kind: AxisType) -> AbstractMesh:
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else axes
    return mesh.update_axis_types(dict.fromkeys(names, kind))


def auto_axes(f: Callable[..., Any] | None = None, /, *,
              axes: str | Sequence[Any] | None = None, out_sharding: Any = None) -> Any:
    """`f`, within which XLA decides along axes of the mesh around, as if they were Auto.

    Args:
      f: a function of arrays; without it, a decorator is returned.
      axes: names of axes; all if None.
      out_sharding: where results are, as `reshard` takes it; if None, it is an argument of the
        function that is returned, by this name.

    Returns:
      A function with the same arguments, or a decorator.

    >>> import olympus
    >>> from olympus.sharding import AxisType, PartitionSpec as P, auto_axes
    >>> mesh = olympus.make_mesh((1,), ("x",), (AxisType.Explicit,))
    >>> with olympus.set_mesh(mesh):
    ...     x = olympus.device_put(olympus.numpy.ones((4, 4)), P(None, "x"))
    ...     print(olympus.typeof(auto_axes(lambda x: x @ x.T, out_sharding=P("x"))(x)))
    float32[4@x,4]
    """
    if f is None:
        return functools.partial(auto_axes, axes=axes, out_sharding=out_sharding)

    @wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        where = kwargs.pop("out_sharding", None) if out_sharding is None else out_sharding
        if where is None:
            raise TypeError("auto_axes: out_sharding is None; a NamedSharding or a PartitionSpec "
                            "is required, where it is made or where it is called.")
        around = [s.mesh.abstract_mesh for s in tree_leaves(where) if type(s) is NamedSharding]
        mesh = around[0] if around else get_abstract_mesh()
        if mesh.empty:
            return f(*args, **kwargs)
        new = _with_types(mesh, axes, AxisType.Auto)
        with use_abstract_mesh(new):
            out = f(*tree_map(lambda x: _retyped(x, new), args), **kwargs)
        return reshard(out, where)

    return run


def explicit_axes(f: Callable[..., Any] | None = None, /, *,
                  axes: str | Sequence[Any] | None = None, in_sharding: Any = None) -> Any:
    """`f`, within which types say how values are cut along axes that are Auto in the mesh around.

    Args:
      f: a function of arrays; without it, a decorator is returned.
      axes: names of axes; all if None.
      in_sharding: where the positional arguments are within, as `reshard` takes it; if None, it is
        an argument of the function that is returned, by this name.

    Returns:
      A function with the same arguments, whose results are spread as XLA decides; or a decorator.

    ValueError without a mesh around.

    >>> from olympus.sharding import PartitionSpec as P, explicit_axes
    >>> import olympus
    >>> f = explicit_axes(lambda x: print(olympus.typeof(x)), in_sharding=P("x"))
    >>> with olympus.set_mesh(olympus.make_mesh((1,), ("x",))):
    ...     f(olympus.numpy.ones(4))
    float32[4@x]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @wraps(f)
    def run(*args: Any, **kwargs: Any) -> Any:
        where = kwargs.pop("in_sharding", None) if in_sharding is None else in_sharding
        if where is None:
            raise TypeError("explicit_axes: in_sharding is None; a PartitionSpec or a NamedSharding"
                            " is required, where it is made or where it is called.")
        mesh = get_abstract_mesh()
        if mesh.empty:
            raise ValueError("explicit_axes: no mesh around; one is required; see "
                             "olympus.set_mesh.")
        with use_abstract_mesh(_with_types(mesh, axes, AxisType.Explicit)):
            out = f(*reshard(args, where), **kwargs)
        return tree_map(lambda x: _retyped(x, mesh), out)

    return run


def constrain(what: str, x: Any, sharding: Any) -> Any:
    """One array, spread as demanded; itself if `sharding` is None, or of an array of no mesh."""
    if sharding is None or (type(sharding) is NamedSharding and sharding.mesh.empty):
        return x
    if not (type(sharding) is NamedSharding and sharding.mesh.explicit_axes):
        sharding = resolve_sharding(what, sharding)
    try:
        sharding.check_compatible_aval(typeof(x).shape)
    except ValueError as error:
        raise ValueError(f"{what}: {error}") from None
    explicit = type(sharding) is NamedSharding and sharding.mesh.explicit_axes
    x = (reshard_p if explicit else sharding_constraint_p).bind(x, sharding=sharding)
    if explicit and isinstance(sharding.mesh, AbstractMesh):
        return x
    kind = sharding._memory_kind
    if kind is None or kind == sharding.default_memory_kind:
        return x
    return move(x, Space.Device, Space.of(kind))


def sharding_like(x: Any) -> Any:
    """Where what is made in the likeness of `x` belongs: with `x` if that is bound to devices."""
    if isinstance(x, Tracer):
        return x.aval.sharding if getattr(x.aval, "explicit", False) else None
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
