"""Calls of exported programs from others: the primitive that stands for one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from ..base import lib
from ..base.lib import mlir
from ..base.typing import Array, IrModule, IrType, IrValue, Params
from ..base.util import cut
from ..control.elements import map_mapped
from ..core import tags
from ..core.effects import Effect
from ..core.primitive import Axis, Builder, Primitive, Tangent
from ..core.tags import ShardingTypeError
from ..core.trace import typeof
from ..lax.sharding import reshard
from ..lowering.attributes import element_type, tensor_type
from ..lowering.linking import Linked, external, levels, link
from ..types import dtypes
from ..types.avals import ShapedArray, abstract_token, make_aval, physical_aval
from ..types.dim_equations import evaluated
from ..types.mesh import Mesh
from ..types.shape import SymbolicDim, definitely_equal
from ..types.sharding import NamedSharding, PartitionSpec, axes_of
from ..types.tree import argument_path
from ..types.tree_registry import PyTreeDef
from .module import ANY_PLATFORM, custom_calls, read_module

if TYPE_CHECKING:
    from .program import ExportedProgram

_OF_LAPACK = (b"lapack_", b"tridiagonal_solve_perturbed")
INT32 = dtypes.as_dtype("int32")


class CallExported(Primitive):
    """params: exported. Operands and results are flat."""

    multiple_results = True
    memory = staticmethod(tags.in_memory_inferred)
    transpose = None

    def inferred(self, avals: Sequence[ShapedArray], params: Params) -> list[ShapedArray]:
        exported = params["exported"]
        for have, want in zip(avals, exported.in_avals, strict=True):
            if have.sharded and have.sums != want.sums:
                raise ShardingTypeError(f"call_exported: {have} given; {want} is required; use "
                                        "olympus.reshard.")
        # The export says how operands and results are sharded, and which of them are unreduced.
        outs = super().inferred([_spread_as(a, PartitionSpec()) for a in avals], params)
        return [_as_exported(exported, *pair) for pair in zip(outs, exported.out_avals)]

    result_avals = inferred     # not memoised: the artifact would be kept alive

    def infer(self, *avals: ShapedArray, exported: ExportedProgram) -> list[ShapedArray]:
        for i, (want, have) in enumerate(zip(exported.in_avals, avals, strict=True)):
            _check_operand(exported.in_tree, i, want, have)
        values = exported._dimensions.check([getattr(a, "shape", ()) for a in avals])
        return [a.update(shape=tuple([evaluated(d, values) for d in a.shape]))
                if values and isinstance(a, ShapedArray) else a for a in exported.out_avals]

    def effects(self, avals: Sequence[ShapedArray], params: Params) -> frozenset[Effect]:
        exported = params["exported"]
        return frozenset((*exported.ordered_effects, *exported.unordered_effects))

    def jvp(self, primals: Sequence[Array], tangents: Sequence[Tangent], *,
            exported: ExportedProgram) -> NoReturn:
        # Without a derivative only: `call` is a function with custom_vjp, with a better message.
        raise TypeError(f"call_exported: {exported.fun_name} differentiated forwards; an artifact "
                        "holds its reverse derivatives only; use grad or vjp.")

    def vmap(self, axis: Axis, args: Sequence[Array], dims: Sequence[int | None], *,
             exported: ExportedProgram) -> tuple[Sequence[Array], Sequence[int | None]]:
        # Its types are fixed: one element after the other.
        outs = map_mapped(lambda *xs: self.bind(*xs, exported=exported), axis.size, args, dims)
        return outs, [0] * len(outs)

    def lower(self, b: Builder, *args: IrValue, exported: ExportedProgram) -> Sequence[IrValue]:
        module = b.module
        if any(name in exported.mlir_module_serialized for name in _OF_LAPACK):
            lib.lapack_names()      # jaxlib registers its kernels, which takes a while
        number = _platform(b.platform, exported)
        devices = len(module.places.devices) or 1
        if exported.nr_devices not in (1, devices):
            raise ValueError(
                f"Function {exported.fun_name} was exported for {exported.nr_devices} devices and "
                f"is called in a context with {devices} devices, which is not allowed; call it on "
                "arrays that are spread over as many devices.")
        linked = _linked(b, exported)
        _check_module(exported, linked)
        module.refined |= exported.uses_global_constants
        ins = [_sharded(b, *each) for each in zip(
            args, exported.in_avals, exported._in_named_shardings, strict=True)]
        ins = [ins[i] for i in exported.module_kept_var_idx]
        ordered = len(exported.ordered_effects)
        if ordered:
            ins = [b.take_token()] * ordered + ins
        if len(exported.platforms) > 1:
            index = make_aval((), INT32)
            ins.insert(0, b.constant(number, index))
        ins = [_cast_sizes(b, x, kind) for x, kind in zip(ins, linked.inputs, strict=True)]
        callee = {"callee": mlir.ir.FlatSymbolRefAttr.get(linked.symbol)}
        tokens, outs = cut(list(b.ops("func.call", ins, callee, linked.results).results), ordered)
        if ordered:
            b.join_tokens(tokens)
        outs = [_cast_sizes(b, x, b.type(a)) for x, a in zip(outs, b.avals_out, strict=True)]
        return [_sharded(b, *each) for each in zip(
            outs, b.avals_out, exported._out_named_shardings, strict=True)]


def _spread_as(aval: ShapedArray, spec: PartitionSpec) -> ShapedArray:
    """A type with this sharding along its axes, if it is over a mesh."""
    return aval.update(sharding=aval.sharding.update(spec=spec)) if aval.sharded else aval


def _as_exported(exported: ExportedProgram, out: ShapedArray, aval: ShapedArray) -> ShapedArray:
    """The type of a result: with the export's sharding, over axes of those names."""
    if not (out.sharded and aval.sharded):
        return out
    spec, mesh = aval.sharding.spec, out.sharding.mesh
    names = [n for e in spec for n in axes_of(e)] + [n for each in aval.sums for n in each]
    if not {*names} <= {*mesh.axis_names}:
        raise ShardingTypeError(
            f"results of {exported.fun_name} are cut along "
            f"{', '.join(map(repr, dict.fromkeys(names)))}; a mesh of such axes is required; "
            "move the arguments to it with olympus.device_put.")
    return _spread_as(out, spec)


def as_exported(x: Array, want: ShapedArray) -> Array:
    """An operand as the sum, taken or not, that an export was made for."""
    have = typeof(x)
    if not have.sharded or not have.explicit or have.sums == want.sums:
        return x
    return reshard(x, NamedSharding(have.sharding.mesh, want.sharding.spec))


def _check_operand(in_tree: PyTreeDef, i: int, want: ShapedArray, have: ShapedArray) -> None:
    """ValueError unless an operand has the type that the program was exported for."""
    if len(want.shape) != len(have.shape):
        raise ValueError(f"Rank mismatch for {argument_path(in_tree, i)}: expected {want.shape} "
                         f"and called with {have.shape}; pass an array of that rank.")
    if want.dtype != have.dtype:
        raise ValueError(f"Dtype mismatch for {argument_path(in_tree, i)}: expected {want.dtype} "
                         f"and called with {have.dtype}; convert it with astype.")
    for d, (n, m) in enumerate(zip(want.shape, have.shape, strict=True)):
        if not isinstance(n, SymbolicDim) and not definitely_equal(n, m):
            raise ValueError(
                f"Shape mismatch for {argument_path(in_tree, i)}.shape[{d}] (expected same "
                f"constant): expected {want.shape} and called with {have.shape}.")


def _platform(platform: str, exported: ExportedProgram) -> int:
    """The index of a platform among an export's."""
    name = external(platform)
    if name in exported.platforms:
        return exported.platforms.index(name)
    if ANY_PLATFORM in map(str, exported.disabled_safety_checks):
        return 0
    raise ValueError(
        f"Function '{exported.fun_name}' was exported for platforms '{exported.platforms}' but it "
        f"is used on '{(name,)}'; export it for that platform too, or with disabled_checks="
        "[DisabledSafetyCheck.platform()].")


def _linked(b: Builder, exported: ExportedProgram) -> Linked:
    """The exported program as a function of the module: inserted once, or once for these sizes."""
    module = b.module
    sizes = tuple([a.shape for a in b.avals_in]) if exported._dimensions.variables else ()
    key = id(exported), sizes
    imported = module.imported.get(key)
    if imported is None:
        taken = read_module(exported.mlir_module_serialized)
        deep = levels(taken)
        if len(exported.platforms) == 1:    # else it also has calls of other platforms
            _note_foreign(b, exported, taken)
        linked = link(module.module, module.symbols.new, taken,
                      f"call_exported_{exported.fun_name}")
        # Kept alive, so that no other export gets its id.
        imported = module.imported[key] = linked, exported, deep
    module.nest.reach(b.eqn, imported[2])
    return imported[0]


def _note_foreign(b: Builder, exported: ExportedProgram, module: IrModule) -> None:
    """Note the calls of foreign functions in a module, whose targets are to be registered here."""
    typed = b.attr("4 : i32")
    within = f"{exported.fun_name}, an export called at "
    for target, op in custom_calls(module):
        if "api_version" in op.attributes and op.attributes["api_version"] == typed:
            b.module.calls.note(target, lib.TYPED, (), (), (), b.source, within)


def _check_module(exported: ExportedProgram, linked: Linked) -> None:
    """ValueError unless the types of a module's function are those of its export."""
    tokens = [abstract_token] * len(exported.ordered_effects)
    taken = [*tokens, *(exported.in_avals[i] for i in exported.module_kept_var_idx)]
    if len(exported.platforms) > 1:
        taken.insert(0, make_aval((), INT32))
    for what, kinds, avals in (("takes", linked.inputs, taken),
                               ("gives", linked.results, [*tokens, *exported.out_avals])):
        if len(kinds) != len(avals) or not all(map(_may_be, kinds, avals)):
            raise ValueError(
                f"call_exported: {exported.fun_name} is malformed: its module {what} "
                f"{', '.join(map(str, kinds)) or 'nothing'}, and {', '.join(map(str, avals))} is "
                "required, as its types say; write the artifact anew.")


def _may_be(kind: IrType, aval: ShapedArray) -> bool:
    """Whether a value of an aval may be of an MLIR type, whose sizes may be open."""
    if aval is abstract_token:
        return kind == tensor_type(aval)
    aval = physical_aval(aval)
    wanted = element_type(aval.dtype)
    return (isinstance(kind, mlir.ir.RankedTensorType) and kind.element_type == wanted
            and kind.rank == aval.ndim
            and all(kind.is_dynamic_dim(i) or isinstance(n, SymbolicDim)
                    or definitely_equal(n, kind.get_dim_size(i))
                    for i, n in enumerate(aval.shape)))


def _cast_sizes(b: Builder, x: IrValue, kind: IrType) -> IrValue:
    """The value, converted to a type with more or fewer static sizes."""
    return x if x.type == kind else b.ops("stablehlo.convert", [x], None, [kind]).result


def _sharded(b: Builder, x: IrValue, aval: ShapedArray, sharding: NamedSharding | None) -> IrValue:
    """The value, sharded as the artifact says."""
    devices = b.module.places.devices
    if sharding is None or sharding.mesh.empty or len(devices) < 2:
        return x
    abstract = sharding.mesh
    if abstract.size != len(devices):
        return x    # of a mesh of one device: nothing is cut
    grid = np.empty(len(devices), object)
    grid[:] = devices
    mesh = Mesh(grid.reshape(abstract.axis_sizes), abstract.axis_names, abstract.axis_types)
    attributes = b.module.places.sharding_attrs(sharding.update(mesh=mesh), physical_aval(aval))
    if not attributes:
        return x
    return b.ops("sdy.sharding_constraint", [x], {"sharding": attributes["sdy.sharding"]},
                 [x.type]).result


call_exported_p = CallExported("call_exported")
