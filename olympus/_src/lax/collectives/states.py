"""States of values along axes of a mesh, as types tell them.

    invarying   one value for all devices, and one cotangent
    varying     a value of its own for each device, and a cotangent
    unreduced   a term of a sum for each; the cotangent is reduced
    reduced     one value for all devices; each has a term of its cotangent, which is unreduced

So the gradient of a parameter that is reduced stays where it was computed, until it is summed or
scattered. Casts change nothing but the type; `mesh` is the one whose axes are manual.

    invarying ─► reduced            transposes to   psum: unreduced ─► invarying
    reduced   ─► varying                            varying ─► unreduced
    varying   ─► reduced: all_gather                psum_scatter: unreduced ─► varying
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

from ...types.avals import ShapedArray
from ...types.mesh import AbstractMesh
from ...types.sharding import NamedSharding

KINDS = ("varying", "unreduced", "reduced")


def state(aval: ShapedArray, axes: Iterable[Hashable], what: str) -> str:
    """The state of a type along these axes; ValueError unless it is the same for all of them."""
    sets = (aval.vma, *aval.sums)
    kinds = {next((kind for kind, names in zip(KINDS, sets, strict=True) if a in names),
                  "invarying") for a in axes}
    if len(kinds) > 1:
        raise ValueError(f"{what}: {aval} given, which along {sorted(map(str, axes))} is "
                         f"{' and '.join(sorted(kinds))}; olympus.lax.{what} can only accept "
                         "axis_name which corresponds to one state; name axes of several in calls "
                         "of their own.")
    return kinds.pop()


def unreduced(aval: ShapedArray, axes: Iterable[Hashable], what: str) -> bool:
    """Whether a value is unreduced along these axes; ValueError unless along all or none."""
    common = aval.sums[0].intersection(axes)
    return bool(common) and state(aval, axes, what) == "unreduced"


def changed(aval: ShapedArray, axes: Iterable[Hashable], start: str, end: str, mesh: AbstractMesh
            ) -> ShapedArray:
    """The type with axes moved from one state to another."""
    sets: dict[str, Any] = dict(zip(KINDS, (aval.vma, *aval.sums), strict=True))
    if start in sets:
        sets[start] = sets[start].difference(axes)
    if end in sets:
        sets[end] = sets[end].union(axes)
    vma = sets.pop("varying")
    spec = aval.sharding.spec.update(**sets)
    is_cut = mesh.explicit_axes or any(sets.values())
    return aval.update(vma=vma, sharding=NamedSharding(mesh, spec) if is_cut else None)
