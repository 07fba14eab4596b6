"""Manual axes of a mesh, along which a program is one device's, and partitions for collectives.

A module numbers its devices (its partitions) in their given order; a mesh may have them in another
order. Collectives name partitions:

    mesh [[0 1]        along x: [[0 2] [1 3]]
          [2 3]]       along y: [[0 1] [2 3]]       of axes (x, y)
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from ..base.lib import mlir
from ..base.typing import AxisIndexGroups, IrAttribute
from ..types.mesh import AbstractMesh, Mesh


class ManualAxes(NamedTuple):
    """The axes of a mesh that are manual for the emitted operations, and the mesh's partitions."""

    mesh: Mesh | AbstractMesh       # an AbstractMesh in a program that is not compiled here
    names: tuple[Hashable, ...]     # in the order of the mesh
    partitions: np.ndarray          # in the shape of the mesh

    @property
    def all_manual(self) -> bool:
        """Whether all axes are manual, so that XLA partitions nothing."""
        return len(self.names) == len(self.mesh.axis_names)

    def groups(self, names: Sequence[object], groups: AxisIndexGroups) -> list[list[int]]:
        """The lists of partitions that communicate along the named axes, row-major over these.

        `groups`: lists of positions along the axes, in place of one list of all.
        """
        axes = [self.mesh.axis_names.index(name) for name in names]
        others = [i for i in range(self.partitions.ndim) if i not in axes]
        count = int(np.prod([self.mesh.axis_sizes[i] for i in axes]))
        rows = self.partitions.transpose(*others, *axes).reshape(-1, count).tolist()
        return rows if groups is None else [[row[i] for i in group]
                                            for row in rows for group in groups]

    def positions(self, name: object) -> np.ndarray:
        """Per partition, its position along an axis."""
        places = np.indices(self.partitions.shape, np.int32)[self.mesh.axis_names.index(name)]
        return places.reshape(-1)[np.argsort(self.partitions, None)]


def groups_attr(groups: Sequence[Sequence[int]]) -> IrAttribute:
    """Lists of partitions as an attribute; shorter ones are padded with -1."""
    table = np.full((len(groups), max(map(len, groups))), -1, np.int64)
    for row, group in zip(table, groups, strict=True):
        row[:len(group)] = group
    elements: Any = table
    return mlir.ir.DenseElementsAttr.get(elements)
