"""`experimental.shard_map`: by position, as programs have it that are older than `shard_map`."""

from __future__ import annotations

from collections.abc import Callable

from ..base.typing import PyTree
from ..types.mesh import AbstractMesh, Mesh
from . import shard_map as current


def shard_map(f: Callable[..., PyTree], mesh: Mesh | AbstractMesh, in_specs: PyTree,
              out_specs: PyTree, check_rep: bool = True) -> Callable[..., PyTree]:
    """`olympus.shard_map` along all axes of a mesh, with other names of parameters.

    Args:
      f: a function of positional pytrees of arrays: the program of one device.
      mesh: the devices.
      in_specs, out_specs: as `olympus.shard_map` takes them.
      check_rep: its `check_vma`.
    Returns: A function of the same positional arguments.

    >>> from olympus.experimental.shard_map import shard_map
    >>> from olympus.sharding import PartitionSpec as P
    >>> mesh = olympus.make_mesh((1,), ("x",), (olympus.sharding.AxisType.Auto,))
    >>> print(shard_map(lambda x: x * 2, mesh, P("x"), P("x"))(onp.arange(3)))
    [0 2 4]
    """
    return current.shard_map(f, mesh=mesh, in_specs=in_specs, out_specs=out_specs,
                             check_vma=check_rep)
