"""Manual axes of a mesh, along which a program is one device's: the lowering of collectives.

A module numbers its devices (its partitions) as they were given to it; a mesh may have them in
another order. Collectives name partitions:

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
    """The axes of a mesh that are manual where operations are emitted, and its partitions."""

    mesh: Mesh | AbstractMesh       # the latter of a program that is not compiled here
    names: tuple[Hashable, ...]     # in the order of the mesh
    partitions: np.ndarray          # in the shape of the mesh

    @property
    def all_manual(self) -> bool:
        """Whether nothing is left to XLA."""
        return len(self.names) == len(self.mesh.axis_names)

    def groups(self, names: Sequence[object], groups: AxisIndexGroups) -> list[list[int]]:
        """The partitions that work together along the named axes, row-major over these.

        `groups`: positions along the axes of those that do, if not all of them.
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
    """Lists of partitions as an attribute; -1 fills up shorter ones."""
    table = np.full((len(groups), max(map(len, groups))), -1, np.int64)
    for row, group in zip(table, groups, strict=True):
        row[:len(group)] = group
    elements: Any = table
    return mlir.ir.DenseElementsAttr.get(elements)
