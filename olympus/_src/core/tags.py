"""Tags of types, beyond shape and dtype, and the rules by which operations hand them on.

    sharding    the abstract mesh, and which of its explicit axes shard each axis of the array
    vma         the manual mesh axes along which the value varies
    memory      the memory space of the device

`infer` knows none of them. If operands have tags, `tagged` finds the results' tags. The rule
`spread(operands, outs, params)` of the operation's family gives the entries of each result; the
rules stand below. An operation without the rule takes unsharded operands. Operands that have axes
are in one memory, and so are the results. Scalars may be anywhere; results of scalars alone are in
the device's memory.

Operands vary along the same axes: a trace that records an operation casts the others (`pvary`). The
transpose of that cast sums the devices' cotangents of a value that is the same on all of them.
Results vary like the operands, unless the operation says otherwise (`varying(vma, params)`:
collectives). Literals have no cotangent, so their types vary as needed.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence, Set
from typing import Any, NamedTuple

from ..base.config import auto_pcast
from ..base.errors import ShardingTypeError, said
from ..base.typing import Array, ArrayLike, DimSize, Params
from ..base.util import quoted
from ..types.avals import Aval, ShapedArray
from ..types.dtypes import is_inexact
from ..types.memory import Space
from ..types.mesh import AbstractMesh, mesh_of_types
from ..types.shape import definitely_equal, less, mod, prod
from ..types.sharding import Entry, NamedSharding, PartitionSpec, axes_of, entry_of
from .facts import Facts
from .ir import Literal
from .trace import is_literal, typeof

Entries = tuple[Entry, ...]


class Operand(NamedTuple):
    """The sharding of an operand: per axis the mesh axes that shard it, as in a PartitionSpec."""

    shape: tuple[int, ...]
    entries: Entries
    mesh: AbstractMesh


class Sums(NamedTuple):
    """The mesh axes along which devices have terms of a sum, of the value and of its cotangent."""

    unreduced: frozenset[str]
    reduced: frozenset[str]


_NO_SUMS = Sums(frozenset(), frozenset())


class TagRules(Facts):
    """The rules by which results get tags."""

    settled_by = ""     # the argument that gives the result's sharding where types leave it open
    refuses = ""        # the shardings that operands must have, for errors: "…: "
    spread: Any = None      # (operands, outs, params) -> entries per result
    varying: Any = None     # (axes along which an operand varies, params) -> the results' axes
    memory: Any = None  # (operands, outs) -> the space of each result; None: the operands' space


def tagged(prim: TagRules, avals: Sequence[Aval], outs: Any, params: Params) -> Any:
    """The avals `outs` that `prim` infers, with the tags that its operands give them."""
    # Every inference comes here. Nearly all programs have no tags, and leave after this loop.
    for a in avals:
        if a.tagged:
            break
    else:
        if mesh_of_types.value is None:
            return outs
    if prim.spread is by_body:
        return outs
    inferred = list(outs) if prim.multiple_results else [outs]
    arrays = [a for a in avals if isinstance(a, ShapedArray)]
    mesh = _mesh(prim, arrays)
    shardings: Sequence[Any] = [None] * len(inferred)
    if mesh is not None:
        specs = (_result_entries(prim, mesh, avals, inferred, params) if mesh.explicit_axes else
                 [()] * len(inferred))     # XLA decides
        sums = _sums(prim, arrays, inferred, specs)
        shardings = [NamedSharding(mesh, PartitionSpec(*entries, **sums._asdict()))
                     for entries in specs]
    vma = arrays[0].vma if arrays else frozenset()      # `check_varying`: all have these
    if prim.varying is not None:
        vma = prim.varying(vma, params)
    spaces = (_spaces(prim, arrays, inferred) if prim.memory is None else
              prim.memory(arrays, inferred))
    results = [a.update(sharding=s, vma=vma, memory_space=m) if isinstance(a, ShapedArray)
               else a for a, s, m in zip(inferred, shardings, spaces, strict=True)]
    return results if prim.multiple_results else results[0]


def _spaces(prim: TagRules, arrays: Sequence[ShapedArray], outs: Sequence[Aval]) -> list[Space]:
    """The memory of the results: the one memory of the operands that have axes."""
    ranked = [a for a in arrays if a.shape]
    for a in ranked:
        if a.memory_space is not ranked[0].memory_space:
            raise ValueError(
                f"{prim.name}: memory_space of all inputs passed to `{prim.name}` must be the "
                f"same; operands with type: {ranked[0]} and with type: {a} given; move one with "
                "device_put and a memory.Space.")
    return [ranked[0].memory_space if ranked else Space.Device] * len(outs)


def in_memory_of_first(operands: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Space]:
    """Results are in the first operand's memory; the other operands may be anywhere."""
    return [operands[0].memory_space] * len(outs)


def in_memory_inferred(operands: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> list[Space]:
    """Each result is in the memory that `infer` gives; operands may be anywhere."""
    return [getattr(a, "memory_space", Space.Device) for a in outs]


class VaryingError(ValueError):
    """Operands vary along different axes; the recording trace casts them."""

    def __init__(self, prim: TagRules, avals: Sequence[Aval]) -> None:
        super().__init__(prim, avals)       # the text is made only if nobody casts them

    def __str__(self) -> str:
        prim, avals = self.args
        return (f"{prim.name}: operands {_types_text(avals)} given, which vary along different "
                "axes; cast them with lax.pcast(…, to='varying').")


def check_varying(prim: TagRules, avals: Sequence[Aval]) -> None:
    """VaryingError unless operands vary along the same axes.

    If one operand is reduced along an axis, each other must be reduced or vary along it; otherwise
    a device would have a full cotangent for one and a term of the sum for the other.
    """
    vma, reduced = None, frozenset()
    for a in avals:
        if type(a) is ShapedArray:
            if vma is None:
                vma = a.vma
            elif a.vma is not vma and a.vma != vma and prim.spread is not by_body:
                raise VaryingError(prim, avals)
            if a.sharded:
                reduced |= _reduced_axes([a])
    if reduced and prim.spread is not by_body and any(
            not reduced <= a.vma.union(*a.sums) for a in avals if type(a) is ShapedArray):
        raise VaryingError(prim, avals)


class ZeroNeededError(ShardingTypeError):
    """A scalar meets an unreduced operand. A literal zero may be typed unreduced, too: the
    recording trace tries that."""


class _IncompatibleError(ShardingTypeError):
    """Operands are sharded in different ways."""


class MeshMismatchError(ShardingTypeError, ValueError):
    """Operands are on several meshes."""


class NoRuleForSumsError(ShardingTypeError, NotImplementedError):
    """An operation that is not linear has an unreduced operand."""


def _reduced_axes(arrays: Sequence[ShapedArray]) -> frozenset[str]:
    """The manual axes along which an operand is reduced."""
    return frozenset().union(*[
        a.sums[1].intersection(a.sharding.mesh.manual_axes) for a in arrays if a.sharded])


_pvary: Any = None
_recast: Any = None


def install_casts(pvary: Any, recast: Callable[..., Array]) -> None:
    """Install the casts along mesh axes; called once, by `lax`.

    `pvary` casts a value that is the same on all devices to one that varies, and
    `recast(x, axes, start, end, mesh)` makes the other casts.
    """
    global _pvary, _recast
    _pvary, _recast = pvary, recast


def pvary(x: Any, vma: Set[Hashable]) -> Any:
    """`x` cast to vary along the axes `vma`, too; `x` itself if it is no array."""
    if not vma or not isinstance(aval := typeof(x), ShapedArray) or vma <= aval.vma:
        return x
    axes, (unreduced, reduced) = vma - aval.vma, aval.sums
    if axes & unreduced:
        raise ShardingTypeError(f"pvary: {aval} given, which is unreduced along "
                                f"{quoted(axes & unreduced)}; a value that does not wait to be "
                                "summed is required; use lax.psum first.")
    if axes & reduced:
        x = _recast(x, axes & reduced, "reduced", "varying", aval.sharding.mesh)
        axes -= reduced
    return _pvary.bind(x, axes=tuple(sorted(axes, key=str))) if axes else x


def vary_first(operands: Sequence[Any]) -> Sequence[Any]:
    """The operands of an operation that broadcasts them, cast to vary along the same axes before.

    So devices exchange the cotangents of small operands, not of the large ones that are made of
    them. Operands that are refused anyway stay.
    """
    arrays = [a for a in map(typeof, operands) if isinstance(a, ShapedArray)]
    vma = frozenset().union(*[a.vma for a in arrays])
    if not vma or not auto_pcast.value or any(vma & a.sums[0] for a in arrays):
        return operands
    return [x if is_literal(x) else pvary(x, vma) for x in operands]


def vary_alike(operands: Sequence[ArrayLike]) -> list[ArrayLike]:
    """The operands, cast in the current trace to vary along the same axes."""
    avals = list(map(typeof, operands))
    arrays = [isinstance(a, ShapedArray) for a in avals]
    operand_avals = [a for x, a, array in zip(operands, avals, arrays, strict=True)
                     if array and not is_literal(x)]
    vma = frozenset().union(*[a.vma for a in operand_avals])
    reduced = _reduced_axes(operand_avals) - vma
    cast_operands = [x if not array else
                     Literal(getattr(x, "raw", x), a.update(vma=vma)) if is_literal(x) else
                     pvary(x, vma)
                     for x, a, array in zip(operands, avals, arrays, strict=True)]
    terms = [a.sharding for a in operand_avals if a.sums[0]]
    if terms:       # a literal zero may be a term of any sum
        spec = PartitionSpec(unreduced=terms[0].spec.unreduced)
        cast_operands = [Literal(x.raw, x.aval.update(sharding=NamedSharding(terms[0].mesh, spec)))
                         if type(x) is Literal and not x.raw else x for x in cast_operands]
    if not reduced:
        return cast_operands
    mesh = next(a.sharding.mesh for a in operand_avals if reduced & a.sums[1])
    spec = PartitionSpec(reduced=reduced)
    return [x if not array else
            Literal(x.raw, x.aval.update(sharding=NamedSharding(mesh, spec)))
            if type(x) is Literal else
            _recast(x, reduced.difference(*a.sums), "invarying", "reduced", mesh)
            for x, a, array in zip(cast_operands, avals, arrays, strict=True)]


def _mesh(prim: TagRules, arrays: Sequence[ShapedArray]) -> AbstractMesh | None:
    """The mesh of the results: the operands', or the ambient mesh; None if XLA shards the operands
    over several meshes."""
    meshes: list[Any] = list(dict.fromkeys([a.sharding.mesh for a in arrays if a.sharded]))
    if len(meshes) > 1 and len({m.shape_tuple for m in meshes}) == 1:
        # The meshes differ in axis types alone. An unsharded array is unsharded on all of them: for
        # example zeros that a rule makes outside of `auto_axes`, for an operation inside.
        meshes = [m for m in meshes if not m.explicit_axes or any(
            a.sharding.mesh == m and any(a.sharding.spec) for a in arrays)] or meshes[:1]
    if len(meshes) > 1:
        if not any(m.explicit_axes for m in meshes):
            return None
        ambient = mesh_of_types.value
        raise MeshMismatchError(
            f"{prim.name}: operands {_types_text(arrays)} have the meshes "
            f"{', '.join(map(str, meshes))}; one mesh is required; move all operands to it with "
            f"olympus.device_put. For primitive {prim.name}, context mesh {ambient} should match "
            "the aval mesh.")
    ambient = mesh_of_types.value
    if meshes:
        if ambient is not None and ambient.size not in (0, meshes[0].size) and (
                meshes[0].explicit_axes):
            raise MeshMismatchError(
                f"For primitive {prim.name}, context mesh {ambient} should match the aval mesh "
                f"{meshes[0]} for shape {_types_text(arrays)}; operands on the mesh around are "
                "required; leave that mesh, or move them with olympus.device_put.")
        return meshes[0]
    # The ambient mesh decides where operands do not.
    return None if ambient is None or ambient.manual_axes or ambient.empty else ambient


def _result_entries(prim: TagRules, mesh: AbstractMesh, avals: Sequence[Any], outs: Sequence[Aval],
                    params: Params) -> list[Entries]:
    """The entries of each result; ShardingTypeError names the operation and its operands."""
    if not outs:
        return []
    if not any(a.sharded for a in avals):
        return [(None,) * a.ndim for a in outs]
    operands = [Operand(a.shape, a.sharding.spec.partitions if a.ndim else (), mesh)
                for a in avals]
    start = f"{prim.name}: operands {_types_text(avals)} given; {prim.refuses}"
    if prim.spread is None:
        if any(e is not None for x in operands for e in x.entries):
            raise ShardingTypeError(f"{start}the operation does not say how its result is spread; "
                                    "operands that are not cut are required; reshard them.")
        return [(None,) * a.ndim for a in outs]
    try:
        results = prim.spread(operands, outs, params)
        for a, entries in zip(outs, results, strict=True):
            _check_entries(prim.name, mesh, a.shape, entries)
    except ShardingTypeError as error:
        if type(error) is _IncompatibleError:
            start = start.replace(":", " got incompatible shardings for broadcasting:", 1)
        advice = f" Or say how the result is cut: {prim.settled_by}." if prim.settled_by else ""
        raise ShardingTypeError(f"{start}{said(error)}{advice}") from None
    return results


def _sums(prim: TagRules, arrays: Sequence[ShapedArray], outs: Sequence[Aval],
          results: Sequence[Entries]) -> Sums:
    """The axes along which results are unreduced, and along which they are reduced.

    Unreduced operands may be added, moved and scaled; other operations get a ShardingTypeError. If
    one operand is reduced along an axis, each other operand that has a cotangent must be reduced or
    sharded along it; otherwise devices would have full cotangents for one and terms for the other.
    """
    specs = [a.sharding.spec for a in arrays]
    if not any(s.unreduced or s.reduced for s in specs):
        return _NO_SUMS
    start = f"{prim.name}: operands {_types_text(arrays)} given; "
    reduced = frozenset().union(*[s.reduced for s in specs])
    unreduced = frozenset().union(*[s.unreduced for s in specs])
    unreduced_at = [i for i, s in enumerate(specs) if s.unreduced]
    for i in unreduced_at:
        dtype = arrays[i].dtype
        alike = [j for j, a in enumerate(arrays) if a.dtype == dtype]
        others = [j for j, a in enumerate(arrays) if j != i and a.ndim]
        if not (prim.additive and all(specs[j].unreduced == unreduced for j in alike)
                and (is_inexact(outs[0].dtype) or not is_inexact(dtype))
                or unreduced_at == [i] and i in prim.linear
                and (not prim.additive or len(arrays) == 1)
                and all(unreduced <= specs[j].reduced for j in others)):
            kind: Any = ZeroNeededError if prim.additive and any(
                not arrays[j].ndim and not arrays[j].sharded for j in alike) else ShardingTypeError
            why = "the operation needs its value, or all operands so"
            if prim.additive and len(alike) == 2:
                why = (f"lhs and rhs to `{prim.name}` must be unreduced along the same mesh axes"
                       if all(specs[j].unreduced for j in alike) else
                       "lhs is unreduced while rhs is not" if i == alike[0] else
                       "rhs is unreduced while lhs is not")
            if not (prim.additive or prim.linear):
                kind = NoRuleForSumsError
                why = f"an unreduced rule for {prim.name} is not implemented"
            manual = unreduced.intersection(arrays[i].sharding.mesh.manual_axes)
            raise kind(
                f"{start}operand {i} is unreduced along {quoted(unreduced)}, and {why}; use "
                f"{'lax.psum' if manual else 'olympus.reshard'} first.")
    for a, s in zip(arrays, specs, strict=True):
        names = frozenset(n for e in s for n in axes_of(e)) | s.reduced | s.unreduced
        if a.sharded and a.ndim and is_inexact(a.dtype) and not reduced <= names:
            raise ShardingTypeError(
                f"{start}one is reduced along {quoted(reduced)}, and {a} is not, nor is it cut "
                "along all of these; use olympus.reshard first.")
    sharded = frozenset(n for entries in results for e in entries for n in axes_of(e))
    return Sums(unreduced, reduced - sharded - unreduced)


def _types_text(avals: Sequence[Aval]) -> str:
    return ", ".join(map(str, avals))


def _check_entries(name: str, mesh: AbstractMesh, shape: tuple[int, ...], entries: Entries) -> None:
    """Check that each mesh axis is used once, and divides the array's axis that it shards."""
    names = [n for e in entries for n in axes_of(e)]
    twice = dict.fromkeys([n for n in names if names.count(n) > 1])
    if twice:
        raise ShardingTypeError(f"the {name} operation produces an illegally sharded result, cut "
                                f"along {', '.join(map(repr, twice))} twice; a mesh axis may cut "
                                "one axis of an array; reshard one.")
    sizes = mesh.shape
    for i, (n, e) in enumerate(zip(shape, entries, strict=True)):
        parts = prod([sizes[name] for name in axes_of(e)])
        if mod(n, parts):
            raise ShardingTypeError(f"axis {i} of the result has size {n}, which {parts} parts "
                                    f"(mesh axes {e!r}) must divide; reshard the operand.")


def merged(operands: Sequence[Operand]) -> Entries:
    """The common entries of arrays that are combined element by element."""
    out = []
    for i, column in enumerate(zip(*(x.entries for x in operands), strict=True)):
        axes = dict.fromkeys([e for e in column if e is not None])
        if len(axes) > 1:
            raise _IncompatibleError(f"axis {i} is cut along {' and along '.join(map(repr, axes))};"
                                     " operands must agree; reshard one.")
        out.append(next(iter(axes), None))
    return tuple(out)


def whole(x: Operand, axes: Sequence[int]) -> None:
    """Refuse an operand that is sharded along these axes."""
    for i in axes:
        if x.entries[i] is not None:
            raise ShardingTypeError(f"axis {i} is cut along {x.entries[i]!r}; the operation needs "
                                    "it whole; reshard the operand.")


# Rules: (operands, avals of results, params) -> entries per result -------------------------------

def elementwise(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
                ) -> list[Entries]:
    """The operands' common entries; operands of rank 0 have none."""
    arrays = [x for x in operands if x.shape]
    return [merged(arrays) if arrays else (None,) * a.ndim for a in outs]


def same(operands: Sequence[Operand], outs: Sequence[Aval], params: Params) -> list[Entries]:
    """Each result has the entries of its operand."""
    return [x.entries for x in operands]


def by_body(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
         ) -> list[Entries]:
    """The mark of operations whose body types the results: `tagged` does not call it."""
    raise AssertionError


def as_inferred(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
                ) -> list[Entries]:
    """The entries that a user's abstract evaluation gave; unsharded where it gave none."""
    return [a.sharding.spec.partitions if isinstance(a, ShapedArray) and a.sharded
            else (None,) * getattr(a, "ndim", 0) for a in outs]


def as_first(operands: Sequence[Operand], outs: Sequence[ShapedArray], params: Params
             ) -> list[Entries]:
    """The first operand's entries, though sizes may change: pad, slice, windows, splits."""
    return [operands[0].entries] * len(outs)


def leading(operands: Sequence[Operand], outs: Sequence[ShapedArray], params: Params
            ) -> list[Entries]:
    """Entries of leading axes; last axes come or go: bytes of an element, words of a key."""
    x = merged(operands)
    for a in outs:
        whole(operands[0], range(a.ndim, len(x)))
    return [(*x, *(None,) * a.ndim)[:a.ndim] for a in outs]


def broadcast(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
              ) -> list[Entries]:
    """New axes are unsharded."""
    entries: list[Entry] = [None] * outs[0].ndim
    for e, d in zip(operands[0].entries, params["broadcast_dimensions"], strict=True):
        entries[d] = e
    return [tuple(entries)]


def transpose(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
              ) -> list[Entries]:
    """Entries move with their axes."""
    return [tuple([operands[0].entries[i] for i in params["permutation"]])]


def without(entries: Entries, axes: Sequence[int]) -> Entries:
    """The entries of the other axes."""
    return tuple([e for i, e in enumerate(entries) if i not in axes])


def squeeze(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
            ) -> list[Entries]:
    """The entries of the axes that stay."""
    return [without(operands[0].entries, params["dimensions"])]


def reshape(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
            ) -> list[Entries]:
    """Groups of old and new axes with equal products share their mesh axes, slowest axis first."""
    x, shape = operands[0], outs[0].shape
    if not any(e is not None for e in x.entries):
        return [(None,) * len(shape)]
    if 0 in x.shape:
        raise ShardingTypeError("an empty array that is cut cannot be reshaped; reshard it.")
    # Both shapes are walked from the slowest axis on, axes of size 1 aside. A group ends where the
    # products agree, and its mesh axes are dealt to its new axes:
    #
    #     (6 | 4, 5)  ->  (2, 3 | 20)
    #
    # Inside a group sharded axes must come first: blocks of a later axis are not contiguous, and no
    # sharding of the result gives them (`open_end`: the group has an unsharded axis by now).
    old = [(n, e) for n, e in zip(x.shape, x.entries, strict=True)
           if not definitely_equal(n, 1)]
    new = [n for n in shape if not definitely_equal(n, 1)]
    entries: list[Entry] = []
    while new:
        n, e = old.pop(0)
        names, sizes, open_end = [*axes_of(e)], [new.pop(0)], e is None
        while not definitely_equal(n, prod(sizes)):
            if less(n, prod(sizes)):
                more, e = old.pop(0)
                if e is not None and open_end:
                    raise ShardingTypeError("an axis that is cut is merged with one before it that "
                                            "is not; reshard the operand.")
                n, open_end = n * more, open_end or e is None
                names += axes_of(e)
            else:
                sizes.append(new.pop(0))
        entries += _dealt(x.mesh, names, sizes)
    rest = iter(entries)
    return [tuple([None if definitely_equal(n, 1) else next(rest) for n in shape])]


def _dealt(mesh: AbstractMesh, names: Sequence[str], sizes: Sequence[DimSize]) -> list[Entry]:
    """Entries that give mesh axes to axes of these sizes, each filled before the next."""
    if len(sizes) == 1:
        return [entry_of(names)]
    out, names = [], list(names)
    for n in sizes:
        names_of_axis: list[Any] = []
        while names and n > 1:
            n, left = divmod(n, mesh.shape[names[0]])
            if left:
                raise ShardingTypeError(f"the mesh axis {names[0]!r} does not divide an axis that "
                                        "is split; reshard the operand.")
            names_of_axis.append(names.pop(0))
        out.append(entry_of(names_of_axis))
    return out


def concatenate(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
                ) -> list[Entries]:
    """The operands' common entries, along the joined axis, too."""
    return [merged(operands)]


def stack(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
          ) -> list[Entries]:
    """The new axis is unsharded."""
    entries = list(merged(operands))
    entries.insert(params["axis"], None)
    return [tuple(entries)]


def unstack(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
            ) -> list[Entries]:
    """The entries of the other axes; the axis that goes must be unsharded."""
    whole(operands[0], [params["axis"]])
    return [without(operands[0].entries, [params["axis"]])] * len(outs)


def reduce(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
           ) -> list[Entries]:
    """The entries of the axes that stay: devices combine their parts along a reduced axis."""
    axes = params["axes"] if "axes" in params else params["dimensions"]
    return [without(merged([x for x in operands if x.shape]), axes)] * len(outs)


def contract(operands: Sequence[Operand], outs: Sequence[ShapedArray], params: Params
             ) -> list[Entries]:
    """Entries of batch axes, then of both operands' free axes.

    Contracted axes may be sharded in one operand. They may be sharded in both, alike, along mesh
    axes for which `out_sharding` leaves the result unreduced.
    """
    (lhs, rhs), ((lc, rc), (lb, rb)) = operands, params["dimension_numbers"]
    try:
        batch = merged([Operand((), tuple([x.entries[i] for i in axes]), x.mesh)
                        for x, axes in ((lhs, lb), (rhs, rb))])
    except ShardingTypeError as error:
        raise ShardingTypeError("dot_general requires lhs batch dimensions and rhs batch "
                                "dimensions to have the consistent sharding: "
                                f"{said(error)}") from None
    unreduced = params["out_sharding"] or frozenset()
    for i, j in zip(lc, rc, strict=True):
        lhs_entry, rhs_entry = lhs.entries[i], rhs.entries[j]
        if lhs_entry is not None and rhs_entry is not None and not (
                lhs_entry == rhs_entry and unreduced.issuperset(axes_of(lhs_entry))):
            why = "Contracting dimensions are sharded" if lhs_entry == rhs_entry else (
                "dot_general requires contracting dimensions to have consistent sharding")
            raise ShardingTypeError(
                f"{why}: the contracted axes are cut along {lhs_entry!r} and {rhs_entry!r}, so "
                "that how the result is cut is open; reshard one.")
    return [(*batch, *without(lhs.entries, (*lc, *lb)), *without(rhs.entries, (*rc, *rb)))]


def gather(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
           ) -> list[Entries]:
    """Axes that are taken whole keep their entries; batches have the entries of either operand."""
    (x, indices), dims, sizes = operands, params["dimension_numbers"], params["slice_sizes"]
    whole(x, [i for i in dims.start_index_map if not definitely_equal(sizes[i], x.shape[i])])
    rest = iter(_index_entries(x, indices, dims.operand_batching_dims,
                               dims.start_indices_batching_dims))
    windows = iter(without(x.entries, (*dims.collapsed_slice_dims, *dims.operand_batching_dims)))
    return [tuple([next(windows) if i in dims.offset_dims else next(rest)
                   for i in range(outs[0].ndim)])]


def _index_entries(x: Operand, indices: Operand, batch: Sequence[int], places: Sequence[int]
                   ) -> list[Entry]:
    """Entries of the axes of indices but the last; only batches may be sharded."""
    whole(indices, [i for i in range(len(indices.shape)) if i not in places])
    entries = list(indices.entries[:-1])
    for i, place in zip(batch, places, strict=True):
        (entries[place],) = merged([Operand((), (e,), x.mesh)
                                    for e in (x.entries[i], entries[place])])
    return entries


def scatter(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
            ) -> list[Entries]:
    """The inverse of `gather`: the entries of the operand, or of updates that are whole windows."""
    (x, indices, updates), dims = operands, params["dimension_numbers"]
    batch = _index_entries(x, indices, dims.operand_batching_dims,
                           dims.scatter_indices_batching_dims)
    inserted = (*dims.inserted_window_dims, *dims.operand_batching_dims)
    window = [i for i in range(len(x.shape)) if i not in inserted]
    entries = list(x.entries)
    for i, d in zip(window, dims.update_window_dims, strict=True):
        if not definitely_equal(updates.shape[d], x.shape[i]):
            whole(x, [i])
            whole(updates, [d])
        (entries[i],) = merged([Operand((), (e,), x.mesh)
                                for e in (x.entries[i], updates.entries[d])])
    whole(x, dims.inserted_window_dims)
    others = [d for d in range(len(updates.shape)) if d not in dims.update_window_dims]
    for d, (k, e) in zip(others, enumerate(batch), strict=True):
        if k not in dims.scatter_indices_batching_dims:
            whole(updates, [d])
        else:
            i = dims.operand_batching_dims[dims.scatter_indices_batching_dims.index(k)]
            (entries[i],) = merged([Operand((), (c,), x.mesh) for c in (e, updates.entries[d])])
    return [tuple(entries)]


def update_slice(operands: Sequence[Operand], outs: Sequence[ShapedArray], params: Params
                 ) -> list[Entries]:
    """Axes that are updated in part are sharded alike in operand and update, if the operand is
    sharded (zeros are not); along other axes one of the two may be unsharded."""
    x, update = operands[:2]
    fits = [mine == its or mine is None or its is None and definitely_equal(n, m)
            for n, m, mine, its in zip(x.shape, update.shape, x.entries, update.entries,
                                       strict=True)]
    if not all(fits):
        raise ShardingTypeError(f"the operand is cut as {PartitionSpec(*x.entries)}, the update as "
                                f"{PartitionSpec(*update.entries)}; both must be cut alike; "
                                "reshard the update.")
    return [tuple([its if mine is None else mine
                   for mine, its in zip(x.entries, update.entries, strict=True)])]


def along(name: str) -> Callable[..., list[Entries]]:
    """The rule of operations that need the axis `params[name]` unsharded: sort, cumulative sums."""
    def rule(operands: Sequence[Operand], outs: Sequence[ShapedArray], params: Params
             ) -> list[Entries]:
        for x in operands:
            whole(x, [params[name]])
        return [merged(operands)] * len(outs)

    return rule


def matrix(operands: Sequence[Operand], outs: Sequence[Aval], ranks: Sequence[int]
           ) -> list[Entries]:
    """Leading axes are batches; the last `ranks[i]` axes of operand i must be unsharded."""
    batches = []
    for x, rank in zip(operands, ranks, strict=True):
        n = len(x.shape) - rank
        whole(x, range(n, len(x.shape)))
        batches.append(x._replace(entries=x.entries[:n]))
    batch = merged(batches)
    return [(*batch, *(None,) * (a.ndim - len(batch))) for a in outs]


def convolve(operands: Sequence[Operand], outs: Sequence[Aval], params: Params
             ) -> list[Entries]:
    """Images may be sharded along batch and space; kernels and features must not."""
    (x, kernel), dims = operands, params["dimension_numbers"]
    whole(kernel, range(len(kernel.shape)))
    whole(x, [dims.lhs_spec[1]])
    entries: list[Entry] = [None] * len(x.shape)
    for i, o in zip(dims.lhs_spec, dims.out_spec, strict=True):
        entries[o] = x.entries[i]
    return [tuple(entries)]
