"""What a type says besides shape and dtype: how an operation hands it on.

    sharding    over which abstract mesh it is spread, and which of its explicit axes cut each axis
    vma         along which manual axes of a mesh the value varies
    memory      in which space of its device it is

`infer` knows none of them. `tagged` finds those of results once operands have any, by the rule
`spread(operands, outs, params)` of the operation's family, which gives the entries of each result;
the rules stand below. An operation without one takes operands that are not cut. Results are in the
memory of the operands, unless the operation moves them (`memory(params)`).

Operands vary along the same axes: a trace that records an operation casts those that do not
(`pvary`), so that transposing the program adds up what devices contribute to a value that is the
same on all of them. Results vary as the operands, unless the operation says otherwise
(`varying(vma, params)`: collectives). Literals have no cotangent: their types vary as it is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..base.errors import ShardingTypeError
from ..types.avals import ShapedArray
from ..types.mesh import AbstractMesh
from ..types.shape import definitely_equal, less, mod, prod
from ..types.sharding import NamedSharding, PartitionSpec, axes_of, entry_of
from .ir import Literal
from .trace import is_literal, typeof

__all__ = ["Operand", "VaryingError", "along", "as_first", "body", "broadcast", "concatenate",
           "contract", "convolve", "elementwise", "gather", "install_pvary", "leading", "matrix",
           "pvary", "reduce", "reshape", "same", "scatter", "squeeze", "stack", "tagged",
           "transpose", "unstack", "update_slice", "vary_alike", "whole"]

Entries = tuple[Any, ...]


class Operand(NamedTuple):
    """How an operand is spread: per axis the mesh axes that cut it, as in a PartitionSpec."""

    shape: tuple[int, ...]
    entries: Entries
    mesh: AbstractMesh


def tagged(prim: Any, avals: Sequence[Any], outs: Any, params: dict[str, Any]) -> Any:
    """The avals `outs` that `prim` infers, with the tags that its operands give them."""
    # Every inference comes by here. Nearly all programs have no tags, and leave after this loop.
    for a in avals:
        if a.tagged:
            break
    else:
        return outs
    if prim.spread is body:
        return outs
    plain = list(outs) if prim.multiple_results else [outs]
    arrays = [a for a in avals if isinstance(a, ShapedArray)]
    mesh = _mesh(prim, arrays)
    shardings: Sequence[Any] = [None] * len(plain)
    if mesh is not None:
        found = (_spread(prim, mesh, avals, plain, params) if mesh.explicit_axes else
                 [()] * len(plain))     # XLA decides
        shardings = [NamedSharding(mesh, PartitionSpec(*entries)) for entries in found]
    vma = _varying(prim, arrays)
    if prim.varying is not None:
        vma = prim.varying(vma, params)
    spaces = {a.memory_space for a in arrays if a.shape} or {
        a.memory_space for a in arrays if a.tagged}     # constants are of rank 0, and anywhere
    space = prim.memory(params) if prim.memory is not None else (
        spaces.pop() if len(spaces) == 1 else None)
    results = [a.update(sharding=s, vma=vma, memory_space=space) if isinstance(a, ShapedArray)
               else a for a, s in zip(plain, shardings, strict=True)]
    return results if prim.multiple_results else results[0]


class VaryingError(ValueError):
    """Operands vary along different axes; whoever records an operation casts them."""


def _varying(prim: Any, arrays: Sequence[ShapedArray]) -> frozenset[Any]:
    """The axes along which all operands vary."""
    found = [a.vma for a in arrays]
    if any(vma != found[0] for vma in found):
        raise VaryingError(f"{prim.name}: operands {_listed(arrays)} given, which vary along "
                           "different axes; cast them with lax.pcast(…, to='varying').")
    return found[0] if found else frozenset()


_pvary: Any = None


def install_pvary(prim: Any) -> None:
    """Make `prim` the cast to a value that varies along more axes. Called once, by `lax`."""
    global _pvary
    _pvary = prim


def pvary(x: Any, vma: frozenset[Any]) -> Any:
    """`x`, if it is an array, as a value that varies along the axes `vma`, too."""
    if not vma or not isinstance(aval := typeof(x), ShapedArray) or vma <= aval.vma:
        return x
    return _pvary.bind(x, axes=tuple(sorted(vma - aval.vma, key=str)))


def vary_alike(operands: Sequence[Any]) -> list[Any]:
    """Operands that vary along the same axes, cast in the current trace where needed."""
    avals = list(map(typeof, operands))
    arrays = [isinstance(a, ShapedArray) for a in avals]
    vma = frozenset().union(*[a.vma for x, a, array in zip(operands, avals, arrays, strict=True)
                              if array and not is_literal(x)])
    return [x if not array else
            Literal(getattr(x, "val", x), a.update(vma=vma)) if is_literal(x) else pvary(x, vma)
            for x, a, array in zip(operands, avals, arrays, strict=True)]


def _mesh(prim: Any, arrays: Sequence[ShapedArray]) -> AbstractMesh | None:
    """The mesh of the results: none of operands that XLA spreads over several."""
    meshes: list[Any] = list(dict.fromkeys([a.sharding.mesh for a in arrays if a.sharded]))
    if len(meshes) > 1:
        if not any(m.explicit_axes for m in meshes):
            return None
        raise ShardingTypeError(f"{prim.name}: operands {_listed(arrays)} are of the meshes "
                                f"{', '.join(map(str, meshes))}; one mesh is required.")
    return meshes[0] if meshes else None


def _spread(prim: Any, mesh: AbstractMesh, avals: Sequence[Any], outs: Sequence[Any],
            params: dict[str, Any]) -> list[Entries]:
    """The entries of each result; ShardingTypeError names the operation and its operands."""
    if not outs:
        return []
    operands = [Operand(a.shape, a.sharding.spec.partitions if a.ndim else (), mesh)
                for a in avals]
    given = f"{prim.name}: operands {_listed(avals)} given; "
    if prim.spread is None:
        if any(e is not None for x in operands for e in x.entries):
            raise ShardingTypeError(f"{given}the operation does not say how its result is spread; "
                                    "operands that are not cut are required; reshard them.")
        return [(None,) * a.ndim for a in outs]
    try:
        found = prim.spread(operands, outs, params)
        for a, entries in zip(outs, found, strict=True):
            _check(mesh, a.shape, entries)
    except ShardingTypeError as error:
        raise ShardingTypeError(f"{given}{error}") from None
    return found


def _listed(avals: Sequence[Any]) -> str:
    return ", ".join(map(str, avals))


def _check(mesh: AbstractMesh, shape: tuple[int, ...], entries: Entries) -> None:
    """Whether an array can be cut so: each axis of the mesh is used once and divides its axis."""
    names = [n for e in entries for n in axes_of(e)]
    twice = {n for n in names if names.count(n) > 1}
    if twice:
        raise ShardingTypeError(f"the result would be cut along {', '.join(map(repr, twice))} "
                                "twice; a mesh axis may cut one axis of an array; reshard one.")
    sizes = mesh.shape
    for i, (n, e) in enumerate(zip(shape, entries, strict=True)):
        parts = prod([sizes[name] for name in axes_of(e)])
        if mod(n, parts):
            raise ShardingTypeError(f"axis {i} of the result has size {n}, which {parts} parts "
                                    f"(mesh axes {e!r}) must divide; reshard the operand.")


def merged(operands: Sequence[Operand]) -> Entries:
    """The entries of arrays of one rank that are combined element by element."""
    out = []
    for i, column in enumerate(zip(*(x.entries for x in operands), strict=True)):
        cut = {e for e in column if e is not None}
        if len(cut) > 1:
            raise ShardingTypeError(f"axis {i} is cut along {' and along '.join(map(repr, cut))}; "
                                    "operands must agree; reshard one.")
        out.append(cut.pop() if cut else None)
    return tuple(out)


def whole(x: Operand, axes: Sequence[int]) -> None:
    """Refuse an operand that is cut along these axes."""
    for i in axes:
        if x.entries[i] is not None:
            raise ShardingTypeError(f"axis {i} is cut along {x.entries[i]!r}; the operation needs "
                                    "it whole; reshard the operand.")


# Rules: (operands, avals of results, params) -> entries per result -------------------------------

def elementwise(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
                ) -> list[Entries]:
    """Operands of rank 0 are as the others need them."""
    arrays = [x for x in operands if x.shape]
    return [merged(arrays) if arrays else (None,) * a.ndim for a in outs]


def same(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
         ) -> list[Entries]:
    """One result for each operand."""
    return [x.entries for x in operands]


def body(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
         ) -> list[Entries]:
    """Results are as the body says; `tagged` does not ask."""
    raise AssertionError


def as_first(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
             ) -> list[Entries]:
    """Axes stay, though their sizes may change: pad, slice, windows, splits."""
    return [operands[0].entries] * len(outs)


def leading(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
            ) -> list[Entries]:
    """Axes come or go at the end, which is what an element is made of: bytes, words of keys."""
    x = merged(operands)
    for a in outs:
        whole(operands[0], range(a.ndim, len(x)))
    return [(*x, *(None,) * a.ndim)[:a.ndim] for a in outs]


def broadcast(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
              ) -> list[Entries]:
    """New axes are not cut."""
    entries: list[Any] = [None] * outs[0].ndim
    for e, d in zip(operands[0].entries, params["broadcast_dimensions"], strict=True):
        entries[d] = e
    return [tuple(entries)]


def transpose(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
              ) -> list[Entries]:
    """Entries move with their axes."""
    return [tuple([operands[0].entries[i] for i in params["permutation"]])]


def without(entries: Entries, axes: Sequence[int]) -> Entries:
    """The entries of the other axes."""
    return tuple([e for i, e in enumerate(entries) if i not in axes])


def squeeze(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
            ) -> list[Entries]:
    """Entries of the other axes."""
    return [without(operands[0].entries, params["dimensions"])]


def reshape(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
            ) -> list[Entries]:
    """Groups of axes with one product keep theirs: from the slowest axis on, as far as it goes."""
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
    # Inside a group the cut must come first: blocks of a later axis are not contiguous, and no axis
    # of the result is cut that way (`open_end`: an axis that is not cut has been passed).
    old = [(n, e) for n, e in zip(x.shape, x.entries, strict=True)
           if not definitely_equal(n, 1)]
    new = [n for n in shape if not definitely_equal(n, 1)]
    entries: list[Any] = []
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


def _dealt(mesh: AbstractMesh, names: list[Any], sizes: Sequence[int]) -> list[Any]:
    """Mesh axes dealt to axes of these sizes, each filled before the next."""
    if len(sizes) == 1:
        return [entry_of(names)]
    out, names = [], list(names)
    for n in sizes:
        mine: list[Any] = []
        while names and n > 1:
            n, left = divmod(n, mesh.shape[names[0]])
            if left:
                raise ShardingTypeError(f"the mesh axis {names[0]!r} does not divide an axis that "
                                        "is split; reshard the operand.")
            mine.append(names.pop(0))
        out.append(entry_of(mine))
    return out


def concatenate(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
                ) -> list[Entries]:
    """Operands must agree, also where they are joined."""
    return [merged(operands)]


def stack(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
          ) -> list[Entries]:
    """The new axis is not cut."""
    entries = list(merged(operands))
    entries.insert(params["axis"], None)
    return [tuple(entries)]


def unstack(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
            ) -> list[Entries]:
    """The axis that goes must be whole."""
    whole(operands[0], [params["axis"]])
    return [without(operands[0].entries, [params["axis"]])] * len(outs)


def reduce(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
           ) -> list[Entries]:
    """What is cut along a reduced axis is added up: the result has no trace of it."""
    axes = params["axes"] if "axes" in params else params["dimensions"]
    return [without(merged([x for x in operands if x.shape]), axes)] * len(outs)


def contract(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
             ) -> list[Entries]:
    """Batch axes, then the free axes of both. Contracted axes may be cut in one operand."""
    (lhs, rhs), ((lc, rc), (lb, rb)) = operands, params["dimension_numbers"]
    for i, j in zip(lc, rc, strict=True):
        if lhs.entries[i] is not None and rhs.entries[j] is not None:
            raise ShardingTypeError(
                f"the contracted axes are cut along {lhs.entries[i]!r} and {rhs.entries[j]!r}, so "
                "that how the result is spread is open; say it with out_sharding, or reshard one.")
    batch = merged([Operand((), tuple([x.entries[i] for i in axes]), x.mesh)
                    for x, axes in ((lhs, lb), (rhs, rb))])
    return [(*batch, *without(lhs.entries, (*lc, *lb)), *without(rhs.entries, (*rc, *rb)))]


def gather(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
           ) -> list[Entries]:
    """Axes that are taken whole keep their entries; batches are cut as in either operand."""
    (x, indices), dims, sizes = operands, params["dimension_numbers"], params["slice_sizes"]
    whole(x, [i for i in dims.start_index_map if not definitely_equal(sizes[i], x.shape[i])])
    rest = iter(_index_entries(x, indices, dims.operand_batching_dims,
                               dims.start_indices_batching_dims))
    windows = iter(without(x.entries, (*dims.collapsed_slice_dims, *dims.operand_batching_dims)))
    return [tuple([next(windows) if i in dims.offset_dims else next(rest)
                   for i in range(outs[0].ndim)])]


def _index_entries(x: Operand, indices: Operand, batch: Sequence[int], places: Sequence[int]
                   ) -> list[Any]:
    """Entries of the axes of indices but the last: batches only may be cut."""
    whole(indices, [i for i in range(len(indices.shape)) if i not in places])
    entries = list(indices.entries[:-1])
    for i, place in zip(batch, places, strict=True):
        (entries[place],) = merged([Operand((), (e,), x.mesh)
                                    for e in (x.entries[i], entries[place])])
    return entries


def scatter(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
            ) -> list[Entries]:
    """The inverse of `gather`: the result is spread as the operand, or as whole windows are."""
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


def update_slice(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
                 ) -> list[Entries]:
    """Operand and update are cut alike."""
    x, update = operands[:2]
    if x.entries != update.entries:
        raise ShardingTypeError(f"the operand is cut as {PartitionSpec(*x.entries)}, the update as "
                                f"{PartitionSpec(*update.entries)}; both must be cut alike; "
                                "reshard the update.")
    return [x.entries]


def along(name: str) -> Callable[..., list[Entries]]:
    """The rule of operations that need the axis `params[name]` whole: sort, cumulative sums."""
    def rule(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
             ) -> list[Entries]:
        for x in operands:
            whole(x, [params[name]])
        return [merged(operands)] * len(outs)

    return rule


def matrix(operands: Sequence[Operand], outs: Sequence[Any], ranks: Sequence[int]
           ) -> list[Entries]:
    """Leading axes are batches, the last ones (`ranks` per operand) must be whole."""
    batches = []
    for x, rank in zip(operands, ranks, strict=True):
        n = len(x.shape) - rank
        whole(x, range(n, len(x.shape)))
        batches.append(x._replace(entries=x.entries[:n]))
    batch = merged(batches)
    return [(*batch, *(None,) * (a.ndim - len(batch))) for a in outs]


def convolve(operands: Sequence[Operand], outs: Sequence[Any], params: dict[str, Any]
             ) -> list[Entries]:
    """Images may be cut along batch and space; kernels and features must be whole."""
    (x, kernel), dims = operands, params["dimension_numbers"]
    whole(kernel, range(len(kernel.shape)))
    whole(x, [dims.lhs_spec[1]])
    entries: list[Any] = [None] * len(x.shape)
    for i, o in zip(dims.lhs_spec, dims.out_spec, strict=True):
        entries[o] = x.entries[i]
    return [tuple(entries)]
