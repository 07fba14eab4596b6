"""Kernels in place of rules: an equation on one CPU is lowered by a faster formula.

The formulas are in `lax/kernels/`. Types and params choose one, in programs for one CPU, in the
bodies of `shard_map`, and for the parts that explicit types give devices. Other programs over
several CPUs have the plain form, because XLA decides after lowering which axes it cuts; and so have
other platforms, symbolic sizes, and exports.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from itertools import compress
from typing import Any

from ..base.typing import IrValue, Params
from ..base.util import Memo
from ..core.ir import Literal
from ..core.kernels import Kernel, Taken
from ..core.primitive import Builder, Primitive
from ..types.avals import ShapedArray
from ..types.mesh import AbstractMesh, AxisType, use_abstract_mesh
from ..types.shape import floor_div, prod
from ..types.sharding import NamedSharding, PartitionSpec, axes_of

# The kernels that apply to the types and params of an equation.
_applying: Memo = Memo(4096)


def with_kernels(prim: Primitive) -> Callable[..., IrValue | Sequence[IrValue]]:
    """The rule of a primitive that takes a kernel where one applies."""
    plain, least = prim.lower, prim.kernels_from

    def lower(b: Builder, *xs: IrValue, **params: Hashable) -> IrValue | Sequence[IrValue]:
        avals = b.avals_in
        # First by size, so that small programs do not import the formulas.
        if b.block.sizes is None and max(avals[0].size, avals[-1].size) >= least:
            for kernel in _applying_to(prim, b, xs, params):
                if kernel.suits is None or kernel.suits(b, *xs, **params):
                    taken = b.module.taken
                    taken.append(Taken(kernel, b.eqn, avals, params, b.source))
                    count = len(taken)
                    result = kernel.emit(b, *xs, **params)
                    del taken[count:]       # kernels inside of the formula are not reported
                    return result
        return plain(b, *xs, **params)

    return lower


def _applying_to(prim: Primitive, b: Builder, xs: Sequence[IrValue], params: Params
                 ) -> list[Kernel]:
    """The kernels whose conditions on types and params hold."""
    key = (prim, *b.avals_in, *b.avals_out, *params, *params.values())
    applying = _applying.get(key)
    if applying is None:
        applying = _applying[key] = [
            k for k in prim.kernels.KERNELS[prim] if k.applies(b, *xs, **params)]
    return applying


# On the parts of explicit types

def with_kernels_on_parts(prim: Primitive) -> Callable[..., IrValue | Sequence[IrValue]]:
    """The rule of a primitive that each CPU computes on its parts, if types say which, and a kernel
    applies to them.
    """
    plain, least, on_one = prim.lower, prim.kernels_from, with_kernels(prim)

    def lower(b: Builder, *xs: IrValue, **params: Hashable) -> IrValue | Sequence[IrValue]:
        atoms, wholes, outs = b.eqn.invars, b.avals_in, b.avals_out
        cut = [i for i, atom in enumerate(atoms) if type(atom) is not Literal]
        sharding = None
        if b.block.sizes is None and max(wholes[0].size, wholes[-1].size) >= least:
            sharding = _cut_by_types([wholes[i] for i in cut], outs, params)
        if sharding is None:
            return plain(b, *xs, **params)
        mesh, spec = sharding
        manual = mesh.update_axis_types(dict.fromkeys(mesh.axis_names, AxisType.Manual))
        parts = [_part(a, mesh, spec) if i in cut else a for i, a in enumerate(wholes)]

        def on_part(*given: IrValue) -> list[IrValue]:
            rest = iter(given)      # literals are emitted where they are read
            out: Any = on_one(b, *[b.scalar(atom.raw, atom.aval.dtype) if type(atom) is Literal
                                   else next(rest) for atom in atoms], **params)
            return [*out] if prim.multiple_results else [out]

        b.avals_in, b.avals_out = parts, [_part(a, mesh, a.sharding.spec) for a in outs]
        try:
            if _applying_to(prim, b, xs, params):
                with use_abstract_mesh(manual):
                    results = b.manual_computation(
                        b.module.places.mesh_of(mesh), mesh.axis_names, [xs[i] for i in cut],
                        [spec] * len(cut), [a.sharding.spec for a in outs],
                        [b.type(parts[i]) for i in cut], [b.type(a) for a in outs], on_part)
                return results if prim.multiple_results else results[0]
        finally:
            b.avals_in, b.avals_out = wholes, outs
        return plain(b, *xs, **params)

    return lower


def _cut_by_types(avals: Sequence[ShapedArray], outs: Sequence[ShapedArray], params: Params
                  ) -> tuple[AbstractMesh, PartitionSpec] | None:
    """The mesh and the spec by which types cut all operands, if axes in `params` stay whole."""
    axes: Any = params.get("axes", ())
    mesh = next((a.sharding.mesh.abstract_mesh for a in avals if a.explicit), None)
    if mesh is None or not mesh.are_all_axes_explicit or any(
            isinstance(x, NamedSharding) for x in params.values()):
        return None
    # An operand may be cut less than the others.
    entries = [next((e for e in column if e is not None), None) for column in zip(
        *[a.sharding.spec for a in avals], strict=False)]
    known = all(a.sharding.mesh == mesh if a.explicit else not a.tagged for a in avals) and all(
        a.explicit and a.sharding.mesh == mesh for a in outs)
    alike = len({(a.ndim, *compress(a.shape, entries)) for a in avals}) == 1
    plain = not any(a.vma or any(a.sums) for a in (*avals, *outs))
    return (mesh, PartitionSpec(*entries)) if known and alike and plain and all(
        entries[i] is None for i in axes) else None


def _part(aval: ShapedArray, mesh: AbstractMesh, spec: PartitionSpec) -> ShapedArray:
    """The type of a device's part."""
    return aval.update(sharding=None, shape=tuple([
        floor_div(n, prod([mesh.shape[name] for name in axes_of(entry)]))
        for n, entry in zip(aval.shape, spec, strict=True)]))
