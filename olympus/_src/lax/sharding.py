"""Demands on where values are: `with_sharding_constraint`, memory spaces."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Sequence
from typing import Any, overload

from ..base import lib
from ..base.errors import ShardingTypeError
from ..base.typing import Array, ArrayLike, IrValue, MappedAxis, Params, PyTree, R, T, Value
from ..base.util import lazy_imports, quoted, wraps
from ..core import reuse, tags
from ..core.context import ThreadState, ctx
from ..core.ir import OlympusprEqn
from ..core.primitive import Axis, Builder, Cotangent, Linear, Primitive, linear_jvp
from ..core.staging import recorder
from ..core.trace import Tracer, typeof
from ..types.avals import Aval, ShapedArray, ShapeDtypeStruct
from ..types.layout import Format, Layout
from ..types.memory import Space
from ..types.mesh import (
    NO_MESH, AbstractMesh, AxisType, Mesh, current_mesh, get_abstract_mesh, use_abstract_mesh,
)
from ..types.sharding import (
    NamedSharding, PartitionSpec, Sharding, ShardingLike, axes_of, entry_of, over_mesh_around,
    sharding_in_types, space_of, without_mesh,
)
from ..types.tree import flatten_axes, tree_flatten, tree_leaves, tree_map
from .layout import lay_out

with lazy_imports(__name__):       # where there are users' types
    from . import parts as _lax_parts


class ShardingConstraint(Primitive):
    """params: sharding. Values stay; tangents and cotangents are spread alike."""

    algebra = "move"
    cells = staticmethod(reuse.same)
    makes_nan = False

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> ShapedArray:
        if type(params["sharding"]) is lib.SingleDeviceSharding:     # it is on no mesh then
            return avals[0].update(sharding=None)
        demanded = sharding_in_types(params["sharding"], avals[0].ndim)
        return avals[0] if demanded is None else avals[0].update(sharding=demanded)

    def infer(self, x: ShapedArray, *, sharding: object) -> ShapedArray:
        return x

    def lower(self, b: Builder, x: IrValue, *, sharding: Any) -> IrValue:
        if type(sharding) is lib.SingleDeviceSharding:
            b.module.places.use_devices((sharding._device,))
            return x
        if isinstance(sharding.mesh, AbstractMesh):
            sharding = sharding.update(mesh=b.module.places.mesh_of(sharding.mesh))
        attributes = b.module.places.sharding_attrs(sharding, b.avals_in[0])
        if not attributes:
            return x
        out = b.ops("sdy.sharding_constraint", [x], {"sharding": attributes["sdy.sharding"]},
                    [x.type]).result
        if PartitionSpec.UNCONSTRAINED not in sharding.spec and _divides(sharding, b.avals_in[0]):
            b.module.constrained[out] = sharding
        return out

    jvp = linear_jvp

    def transpose(self, ct: Array, x: Linear, *, sharding: ShardingLike) -> list[Cotangent]:
        if type(x) is not Linear:
            return [None]
        if type(sharding) is lib.SingleDeviceSharding and x.aval.explicit:
            sharding = x.aval.sharding      # back on the operand's mesh
        return [self.bind(ct, sharding=sharding)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             sharding: ShardingLike) -> tuple[Array, int | None]:
        (dim,) = dims
        assert dim is not None      # or there would be nothing to map
        if type(sharding) is not NamedSharding and axis.mesh_axis is not None:
            raise ValueError(
                f"vmap: spmd_axis_name={axis.mesh_axis!r} given. If you are using spmd_axis_name "
                "parameter of olympus.vmap, please make sure to run your jitted function inside "
                "the mesh context manager: a NamedSharding is required in its sharding "
                f"constraints; there is {sharding}.")
        if type(sharding) is NamedSharding:
            spec = [*sharding.spec] + [None] * (dim - len(sharding.spec))
            new = PartitionSpec.UNCONSTRAINED if axis.mesh_axis is None else axis.mesh_axis
            if set(axes_of(new)) & {name for entry in spec for name in axes_of(entry)}:
                raise ValueError(f"vmap: spmd_axis_name={new!r} given, and {sharding.spec} in a "
                                 "sharding constraint within; the axis cuts the mapped axis "
                                 "already; name other axes there.")
            spec.insert(dim, new)
            sharding = sharding.update(spec=sharding.spec.update(partitions=spec))
        return self.bind(*args, sharding=sharding), dim


def _divides(sharding: NamedSharding, aval: ShapedArray) -> bool:
    """Whether all devices hold parts of one size."""
    try:
        sharding.check_compatible_aval(aval.shape)
    except ValueError:
        return False
    return True


sharding_constraint_p = ShardingConstraint("sharding_constraint")


class PartsConstraint(ShardingConstraint):
    """params: sharding, of each part of a value of a user's type, or of a tangent of one."""

    lower: Any = None

    def inferred(self, avals: Sequence[Aval], params: Params) -> Aval:
        return avals[0]

    def impl(self, x: Value, *, sharding: ShardingLike) -> Value:
        parts = [constrain("with_sharding_constraint", part, sharding)
                 for part in _lax_parts.parts_of([x])]
        return _lax_parts.raised([typeof(x)], parts)[0]

    def in_parts(self, args: Sequence[Value], params: Params) -> Value:
        return self.impl(*args, **params)

    def vmap(self, axis: Axis, args: Sequence[Value], dims: Sequence[MappedAxis], *,
             sharding: ShardingLike) -> tuple[Value, MappedAxis]:
        return args[0], dims[0]     # where its type puts the mapped axis in each part is its affair


parts_constraint_p = PartsConstraint("parts_constraint")


class Deal(ShardingConstraint):
    """params: sharding, over the devices of the operand in another order.

    The result has its parts in the order of the operand's devices, which no mesh names: the
    caller of `bind` puts them together anew. So it is evaluated only, never recorded.
    """

    jvp: Any = None
    transpose: Any = None
    vmap: Any = None

    def lower(self, b: Builder, x: IrValue, *, sharding: object) -> IrValue:
        b.module.places.reordered = True
        return super().lower(b, x, sharding=sharding)


deal_p = Deal("deal")


class Reshard(Primitive):
    """params: sharding, over a mesh with devices or an abstract one. The type changes to it.

    The cotangent goes back to the operand's type.
    """

    algebra = "move"
    cells = staticmethod(reuse.same)
    makes_nan = False

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> ShapedArray:
        return avals[0].update(sharding=params["sharding"])

    def infer(self, x: ShapedArray, *, sharding: NamedSharding) -> ShapedArray:
        return x

    def lower(self, b: Builder, x: IrValue, *, sharding: NamedSharding) -> IrValue:
        if isinstance(sharding.mesh, Mesh):     # the type names it without its devices
            b.module.places.given.append(sharding.mesh)
        before, after = b.avals_in[0].sums[0], sharding.spec.unreduced
        if after - before and not (before and before <= after):
            # XLA may take an unannotated operand for unreduced, and unreduced along one axis for
            # another ends its process: the terms are summed first.
            whole = sharding.update(spec=sharding.spec.update(unreduced=frozenset()))
            x = b.spread(x, b.avals_out[0].update(sharding=whole))
        return x    # every result is cut as its type says

    jvp = linear_jvp

    def transpose(self, ct: Array, x: Linear, *, sharding: NamedSharding) -> list[Array | None]:
        back = x.aval.sharding.of_cotangent()
        if isinstance(sharding.mesh, Mesh) and back.mesh == sharding.mesh.abstract_mesh:
            back = back.update(mesh=sharding.mesh)
        return [self.bind(ct, sharding=back)]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             sharding: NamedSharding) -> tuple[Array, int | None]:
        (x,), (dim,) = args, dims
        assert dim is not None      # or there would be nothing to map
        spec = [*sharding.spec] + [None] * (dim - len(sharding.spec))
        own = typeof(x).sharding.spec[dim] if typeof(x).explicit else axis.mesh_axis
        spec.insert(dim, own)
        new = sharding.update(spec=sharding.spec.update(partitions=spec))
        return self.bind(x, sharding=new), dim

    def shown(self, eqn: OlympusprEqn) -> Params:
        return {}


reshard_p = Reshard("reshard")


class DevicePut(Primitive):
    """params: target, a `Space`. Values stay; the derivative moves back."""

    algebra = "move"
    spread = staticmethod(tags.same)
    cells = staticmethod(reuse.same)
    makes_nan = False

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> ShapedArray:
        return super().inferred(avals, params).update(memory_space=params["target"])

    def infer(self, x: ShapedArray, *, target: Space) -> ShapedArray:
        return x

    def lower(self, b: Builder, x: IrValue, *, target: Space) -> IrValue:
        return b.put_in_memory(x, target.value)

    jvp = linear_jvp

    def transpose(self, ct: Array, x: Linear, *, target: Space) -> list[Cotangent]:
        return [self.bind(ct, target=x.aval.memory_space) if type(x) is Linear else None]

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], **params: Hashable
             ) -> tuple[Array, int | None]:
        return self.bind(*args, **params), dims[0]


device_put_p = DevicePut("device_put")


def move(x: T, target: Space) -> T:
    """`x`, in the memory space `target`."""
    return x if typeof(x).memory_space is target else device_put_p.bind(x, target=target)


def with_sharding_constraint(x: T, shardings: PyTree) -> T:
    """Return `x` with a required sharding, where XLA would choose one.

    Args:
      x: a pytree of arrays.
      shardings: a `NamedSharding`, a `PartitionSpec` of axes of the mesh of the `with` block
        around, a single-device sharding, a `Format`, None for no demand, or a pytree of those that
        is a prefix
        of the structure of `x`. Entries `PartitionSpec.UNCONSTRAINED` leave an axis to XLA.
    Returns: A pytree like `x`.

    The program runs on the devices that its constraints name, arguments that are committed
    elsewhere are refused. Derivatives are sharded as the values are; under `vmap` the mapped axis
    is left to XLA, or sharded along `spmd_axis_name`. Over a mesh of explicit axes types have the
    sharding, and this asserts it (AssertionError; `reshard` changes it). TypeError for anything but
    a sharding, ValueError where an array's shape does not fit, or for a specification without a
    mesh.

    >>> import numpy as np, olympus
    >>> from olympus.sharding import Mesh, NamedSharding, PartitionSpec as P
    >>> sharding = NamedSharding(Mesh(np.array(olympus.devices()[:1]), "x"), P("x"))
    >>> olympus.lax.with_sharding_constraint(np.arange(4.0), sharding)
    Array([0., 1., 2., 3.], dtype=float32)
    """
    leaves, tree = tree_flatten(x)
    entries = flatten_axes("with_sharding_constraint shardings", tree, shardings)
    return tree.unflatten([_asserted(leaf, entry)
                           for leaf, entry in zip(leaves, entries, strict=True)])


def _asserted(x: Array, sharding: ShardingLike | Format) -> Array:
    """`x`, constrained; along a mesh of explicit axes, whose types say it, it must be so already.
    """
    what = "with_sharding_constraint"
    aval = None if sharding is None or isinstance(sharding, Format) else typeof(x)
    wanted: Any = sharding
    if isinstance(sharding, PartitionSpec) and not get_abstract_mesh().manual_axes:
        wanted = over_mesh_around(what, sharding)
    mesh = wanted.mesh if type(wanted) is NamedSharding else NO_MESH
    if mesh.auto_axes and set(mesh.explicit_axes) & _mesh_axes(wanted.spec):
        raise ValueError(f"{what}: {wanted} given; a specification of Auto axes is required: "
                         "along explicit ones the type says it; use olympus.reshard.")
    if not isinstance(aval, ShapedArray) or not aval.sharding.mesh.are_all_axes_explicit:
        if mesh.auto_axes and mesh.explicit_axes and isinstance(aval, ShapedArray) and (
                aval.explicit):
            return _cut_further(what, x, aval, wanted)
        return constrain(what, x, wanted, padded=True)
    if type(wanted) is lib.SingleDeviceSharding and aval.sharding.mesh.size == 1:
        return constrain(what, x, wanted)
    if aval.sharding != sharding_in_types(wanted, aval.ndim):
        raise AssertionError(f"{what}: {aval} and {wanted} given. `with_sharding_constraint` "
                             "acts as an assert when all axes of mesh are of type `Explicit`, "
                             "whose types say how a value is cut; use olympus.reshard to change "
                             "it.")
    return x


def _cut_further(what: str, x: Array, aval: ShapedArray, sharding: NamedSharding) -> Array:
    """`x`, which explicit axes cut as its type says, cut along Auto axes of the same mesh, too."""
    entries = [*sharding.spec] + [None] * (aval.ndim - len(sharding.spec))
    merged = [entry if entry is PartitionSpec.UNCONSTRAINED and own is None else
              entry_of([*axes_of(own), *axes_of(entry)])
              for own, entry in zip(aval.sharding.spec, entries, strict=True)]
    _check_shape(what, x, sharding, True)
    return sharding_constraint_p.bind(x, sharding=sharding.update(
        spec=sharding.spec.update(partitions=merged)))


def _mesh_axes(spec: PartitionSpec) -> set[str]:
    """The axes of a mesh that a specification names."""
    return {name for entry in spec for name in axes_of(entry)} | spec.unreduced | spec.reduced


def reshard(xs: T, out_shardings: PyTree) -> T:
    """Change the shardings of values along explicit axes of a mesh.

    Args:
      xs: a pytree of arrays.
      out_shardings: a `NamedSharding`, a `PartitionSpec` of axes of the ambient mesh
        (`olympus.set_mesh`, `use_abstract_mesh`), or a pytree of those that is a prefix of the
        structure of `xs`.
    Returns: A pytree like `xs`.

    Cotangents go back to where the values were. ValueError for a specification without a mesh, for
    one of axes that are not explicit, and where an array's shape does not fit.

    >>> from olympus.sharding import AxisType, NamedSharding, PartitionSpec as P
    >>> mesh = olympus.make_mesh((1,), ("x",), (AxisType.Explicit,))
    >>> y = olympus.reshard(olympus.numpy.ones((4, 2)), NamedSharding(mesh, P("x")))
    >>> print(olympus.typeof(y), olympus.typeof(y.T))
    float32[4@x,2] float32[2,4@x]
    """
    leaves, tree = tree_flatten(xs)
    entries = flatten_axes("reshard out_shardings", tree, out_shardings)
    return tree.unflatten([_resharded(x, s) for x, s in zip(leaves, entries, strict=True)])


def _resharded(x: Array, place: ShardingLike) -> Array:
    sharding, aval = place, typeof(x)
    if isinstance(place, PartitionSpec):
        sharding = over_mesh_around("reshard", place)
    if type(sharding) is not NamedSharding:
        raise TypeError(f"reshard: {place!r} of type {type(place).__name__} given; a NamedSharding "
                        "or a PartitionSpec is required.")
    other = _mesh_axes(sharding.spec) - set(sharding.mesh.explicit_axes)
    if other or PartitionSpec.UNCONSTRAINED in sharding.spec.partitions:
        raise ValueError(f"reshard: {sharding} given; a specification of explicit axes only is "
                         "required; use lax.with_sharding_constraint along others.")
    try:
        sharding.check_compatible_aval(aval.shape)
    except ValueError as error:
        raise ValueError(f"reshard: {error}") from None
    return x if aval.sharding == sharding_in_types(sharding, aval.ndim) else (
        reshard_p.bind(x, sharding=sharding))


def undecided(x: T) -> T:
    """`x` spread as XLA likes: an operand of what says itself where its result is."""
    mesh = typeof(x).sharding.mesh
    return _retyped(x, _left_to_xla(mesh)) if mesh.explicit_axes else x


def _left_to_xla(mesh: Any) -> AbstractMesh:
    return _with_types(mesh, mesh.explicit_axes, AxisType.Auto)


def settled(what: str, f: Callable[..., Array], out_sharding: Any, *operands: ArrayLike) -> Array:
    """`f(*operands)`, cut as demanded where types alone would leave it open.

    Operands that are cut are left to XLA within `f`: its operations are not asked.
    """
    if out_sharding is None:
        return f(*operands)
    for a in map(typeof, operands):
        if a.tagged and a.sharding.spec.unreduced:
            raise ShardingTypeError(f"{what}: operand {a} given, which is not added up yet along "
                                    f"{quoted(a.sharding.spec.unreduced)}; "
                                    "its value is required; use olympus.reshard first.")
    around = get_abstract_mesh()
    spec = out_sharding if isinstance(out_sharding, PartitionSpec) else (
        out_sharding.spec if type(out_sharding) is NamedSharding else PartitionSpec())
    if other := _mesh_axes(spec) & {*around.auto_axes, *around.manual_axes}:
        raise ValueError(f"{what}: PartitionSpec passed to {what} cannot contain axis names that "
                         f"are of type Auto or Manual: {spec} names "
                         f"{quoted(other)} of {around}; use "
                         "lax.with_sharding_constraint along those.")
    cut = [a.sharding.mesh for a in map(typeof, operands)
           if isinstance(a, ShapedArray) and a.explicit and any(a.sharding.spec)]
    if cut:
        mesh = _left_to_xla(cut[0])
        with use_abstract_mesh(mesh):
            out = f(*[_retyped(x, mesh) for x in operands])
    else:
        out = f(*operands)
    # The specification may name further, whole axes that a mapped result lacks.
    while len(spec) > typeof(out).ndim and spec[-1] is None:
        spec = spec.update(partitions=spec[:-1])
        out_sharding = spec if isinstance(out_sharding, PartitionSpec) else (
            out_sharding.update(spec=spec))
    return constrain(what, out, out_sharding)


def as_typed(x: T, aval: ShapedArray) -> T:
    """`x`, where a type says, and cut so: a cotangent as its value."""
    if not aval.tagged:
        return x
    if typeof(x).memory_space is not aval.memory_space:
        x = move(x, aval.memory_space)
    if not aval.explicit or typeof(x).sharding == aval.sharding:
        return x
    if not typeof(x).sharded and recorder(ctx.trace) is None and not aval.sums[0]:
        return x    # an array of no mesh: a type does not name the devices to put it on
    return reshard_p.bind(x, sharding=aval.sharding)


def _retyped(x: T, mesh: AbstractMesh) -> T:
    """`x` over a mesh of other axis types; cut as before along the axes that are explicit there."""
    aval = typeof(x)
    if not isinstance(aval, ShapedArray) or not aval.sharded or aval.sharding.mesh == mesh:
        return x
    spec = PartitionSpec(*[entry_of([n for n in axes_of(e) if n in mesh.explicit_axes])
                           for e in aval.sharding.spec])
    return reshard_p.bind(x, sharding=NamedSharding(mesh, spec))


def _with_types(mesh: AbstractMesh, axes: str | Sequence[str] | None, kind: AxisType
                ) -> AbstractMesh:
    names = mesh.axis_names if axes is None else (axes,) if isinstance(axes, str) else axes
    if manual := set(names) & set(mesh.manual_axes):
        raise NotImplementedError(f"{kind!r} axes: {quoted(manual)} of {mesh} given. "
                                  "Going from `Manual` AxisType to `Auto` or `Explicit` is not "
                                  "possible: within shard_map, name others of its axes.")
    return mesh.update_axis_types(dict.fromkeys(names, kind))


# Callables of any parameters: the sharding may be one more, which the call gives.
@overload
def auto_axes(f: Callable[..., R], /, *, axes: str | Sequence[str] | None = None,
              out_sharding: PyTree = None) -> Callable[..., R]: ...


@overload
def auto_axes(f: None = None, /, *, axes: str | Sequence[str] | None = None,
              out_sharding: PyTree = None) -> Callable[[Callable[..., R]], Callable[..., R]]: ...


def auto_axes(f: Callable[..., PyTree] | None = None, /, *,
              axes: str | Sequence[str] | None = None, out_sharding: PyTree = None
              ) -> Callable[..., PyTree]:
    """Let XLA decide shardings within `f`, as if axes of the ambient mesh were Auto.

    Args:
      f: a function of arrays; without it, a decorator is returned.
      axes: names of axes; all if None.
      out_sharding: where results are, as `reshard` takes it; if None, it is an argument of the
        function that is returned, by this name.
    Returns: A function with the same arguments, or a decorator.

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
    def run(*args: object, **kwargs: object) -> PyTree:
        where = kwargs.pop("out_sharding", None) if out_sharding is None else out_sharding
        if where is None:
            raise TypeError("auto_axes: out_sharding is None; a NamedSharding or a PartitionSpec "
                            "is required, where it is made or where it is called.")
        around = [s.mesh.abstract_mesh for s in tree_leaves(where) if type(s) is NamedSharding]
        mesh = around[0] if around else get_abstract_mesh()
        if mesh.empty:
            return f(*args, **kwargs)
        new = _with_types(mesh, axes, AxisType.Auto)
        if new == mesh:     # XLA decides already
            return f(*args, **kwargs)
        with use_abstract_mesh(new):
            out = f(*tree_map(lambda x: _retyped(x, new), args), **kwargs)
        return reshard(out, where)

    return run


@overload
def explicit_axes(f: Callable[..., R], /, *, axes: str | Sequence[str] | None = None,
                  in_sharding: PyTree = None) -> Callable[..., R]: ...


@overload
def explicit_axes(f: None = None, /, *, axes: str | Sequence[str] | None = None,
                  in_sharding: PyTree = None) -> Callable[[Callable[..., R]], Callable[..., R]]: ...


def explicit_axes(f: Callable[..., PyTree] | None = None, /, *,
                  axes: str | Sequence[str] | None = None, in_sharding: PyTree = None
                  ) -> Callable[..., PyTree]:
    """Make types say how values are cut within `f`, along Auto axes of the ambient mesh.

    Args:
      f: a function of arrays; without it, a decorator is returned.
      axes: names of axes; all if None.
      in_sharding: where the positional arguments are within, as `reshard` takes it; if None, it is
        an argument of the function that is returned, by this name.

    Returns:
      A function with the same arguments, whose results are spread as XLA decides; or a decorator.

    ValueError without an ambient mesh.

    >>> from olympus.sharding import PartitionSpec as P, explicit_axes
    >>> f = explicit_axes(lambda x: print(olympus.typeof(x)), in_sharding=P("x"))
    >>> with olympus.set_mesh(olympus.make_mesh((1,), ("x",))):
    ...     f(olympus.numpy.ones(4))
    float32[4@x]
    """
    if f is None:
        return functools.partial(explicit_axes, axes=axes, in_sharding=in_sharding)

    @wraps(f)
    def run(*args: object, **kwargs: object) -> PyTree:
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


def constrain(what: str, x: Any, sharding: ShardingLike, *, padded: bool = False) -> Any:
    """One array, spread as demanded; itself if `sharding` is None, or of an array of no mesh.

    `padded`: within programs XLA pads what Auto axes do not divide.
    """
    if isinstance(sharding, Format):
        x = constrain(what, x, sharding.sharding, padded=padded)
        return lay_out(what, x, sharding.layout) if isinstance(sharding.layout, Layout) else x
    if sharding is None or (type(sharding) is NamedSharding and sharding.mesh.empty):
        return x
    if typeof(x).is_high:
        if isinstance(sharding, PartitionSpec):
            sharding = over_mesh_around(what, sharding)
        return parts_constraint_p.bind(x, sharding=sharding)
    if get_abstract_mesh().manual_axes:
        sharding = _within_manual(what, sharding)
    elif isinstance(sharding, PartitionSpec):
        sharding = over_mesh_around(what, sharding)
    mesh = sharding.mesh if type(sharding) is NamedSharding else NO_MESH
    if not (mesh.explicit_axes or mesh.manual_axes or (     # traced: devices are known later
            mesh is not NO_MESH and isinstance(mesh, AbstractMesh)
            and ctx.trace is not ThreadState.trace)):
        sharding = resolve_sharding(what, _over_devices(what, x, sharding))
    if type(sharding) is lib.GSPMDSharding:
        raise TypeError(f"{what}: {sharding} given; a NamedSharding is required for what a program "
                        "computes: XLA's own notation names no mesh; use device_put outside.")
    mesh = sharding.mesh if type(sharding) is NamedSharding else NO_MESH
    _check_shape(what, x, sharding, padded)
    x = (reshard_p if mesh.explicit_axes else sharding_constraint_p).bind(x, sharding=sharding)
    if mesh is not NO_MESH and isinstance(mesh, AbstractMesh):
        return x
    return move(x, space_of(sharding))


def _over_devices(what: str, x: Any, sharding: ShardingLike) -> ShardingLike:
    """A sharding of a mesh without devices over the devices of an array's, unless one is around.
    """
    if not (type(sharding) is NamedSharding and isinstance(sharding.mesh, AbstractMesh)) or (
            current_mesh() is not None):
        return sharding
    if type(x) is not lib.ArrayImpl:
        raise ValueError(f"{what}: {x!r:.60} and {sharding} given, whose mesh names no devices, "
                         "which requires the input passed should be a `olympus.Array`; give a "
                         "sharding over a Mesh.")
    if type(x._sharding) is not NamedSharding:
        raise TypeError(f"{what}: {sharding} given, whose mesh names no devices, for an array of "
                        f"{x._sharding}. The sharding on the input must be a `NamedSharding`; give "
                        "a sharding over a Mesh.")
    if x._sharding.mesh.shape_tuple != sharding.mesh.shape_tuple:
        raise ValueError(f"{what}: Mesh shape of the input {x._sharding.mesh} does not match the "
                         f"mesh shape of the target sharding {sharding.mesh}; one mesh is "
                         "required; use device_put.")
    return sharding.update(mesh=x._sharding.mesh)


def _check_shape(what: str, x: ArrayLike, sharding: Any, padded: bool) -> None:
    """ValueError unless a sharding fits, or what does not fit is padded."""
    padded = padded and type(sharding) is NamedSharding and (
        ctx.trace is not ThreadState.trace and not sharding.mesh.explicit_axes)
    try:
        (sharding.check_rank if padded else sharding.check_compatible_aval)(typeof(x).shape)
    except ValueError as error:
        raise ValueError(f"One of {what} arguments is incompatible with its sharding annotation: "
                         f"{error}") from None


def _within_manual(what: str, wanted: object) -> NamedSharding:
    """A demand on a device's part, over the ambient mesh: along axes that are not manual."""
    mesh = get_abstract_mesh()
    spec = wanted.spec if type(wanted) is NamedSharding else wanted
    if not isinstance(spec, PartitionSpec) or (
            type(wanted) is NamedSharding and wanted.mesh.shape_tuple != mesh.shape_tuple):
        raise ValueError(f"{what}: {wanted} given within shard_map over {mesh}; a PartitionSpec of "
                         "that mesh is required.")
    if manual := _mesh_axes(spec) & set(mesh.manual_axes):
        raise ValueError(f"{what}: {spec} given, which contains a manual axes "
                         f"({quoted(manual)}) of mesh {mesh}; values are parts along "
                         "those already; name others, of those that shard_map leaves out of "
                         "axis_names.")
    return NamedSharding(mesh, spec)


def sharding_like(x: Any) -> Sharding | None:
    """The sharding of an array created like `x`: x's own sharding if `x` is committed."""
    if isinstance(x, Tracer):
        return x.aval.sharding if getattr(x.aval, "explicit", False) else None
    if type(x) is ShapeDtypeStruct:
        sharding, mesh = x.sharding, current_mesh()
        if type(sharding) is not NamedSharding or isinstance(sharding.mesh, Mesh) or (
                sharding.mesh.explicit_axes and ctx.trace is not ThreadState.trace):
            return sharding
        return None if mesh is None or mesh.abstract_mesh != sharding.mesh else (
            sharding.update(mesh=mesh))
    if type(x) is not lib.ArrayImpl or not x._committed or ctx.trace is not ThreadState.trace:
        return None
    kind = type(x._sharding)
    return x._sharding if kind is NamedSharding or kind is lib.SingleDeviceSharding else None


def resolve_sharding(what: str, sharding: ShardingLike) -> Sharding:
    """A sharding of devices: specifications belong to the ambient mesh."""
    if isinstance(sharding, PartitionSpec):
        mesh = current_mesh()
        if mesh is None:
            raise without_mesh(what, sharding)
        return NamedSharding(mesh, sharding)
    if type(sharding) is NamedSharding and isinstance(sharding.mesh, AbstractMesh):
        mesh = current_mesh()
        if mesh is None or mesh.abstract_mesh != sharding.mesh:
            raise ValueError(f"{what}: {sharding} given, whose mesh names no devices; a sharding "
                             "over a Mesh is required, or that mesh around (with mesh: …).")
        return sharding.update(mesh=mesh)
    if (type(sharding) is NamedSharding or type(sharding) is lib.SingleDeviceSharding
            or type(sharding) is lib.GSPMDSharding):
        return sharding
    raise TypeError(f"{what}: {sharding!r} of type {type(sharding).__name__} given;\n  a "
                    "NamedSharding, a PartitionSpec or a single-device sharding is required.")
