"""The mesh of a thread: `set_mesh`, `get_mesh`. Neither is for code that is traced."""

from __future__ import annotations

import numpy as np

from ..core.context import ThreadState, ctx
from ..types.mesh import Mesh, current_mesh, restore_mesh, swap_mesh


def _check_untraced(what: str, instead: str) -> None:
    if ctx.trace is not ThreadState.trace:
        raise ValueError(f"{what}: called while a function is traced; it can only be used outside "
                         f"of olympus.jit and other transformations; {instead}.")


def get_mesh() -> Mesh:
    """The current mesh, set by `set_mesh` or `with mesh:`; one without axes if there is none.

    ValueError where a function is traced: a program does not depend on devices.

    >>> with olympus.set_mesh(olympus.make_mesh((1,), ("x",))):
    ...     olympus.sharding.get_mesh().axis_names
    ('x',)
    """
    _check_untraced("get_mesh", "see sharding.get_abstract_mesh there")
    return current_mesh() or Mesh(np.empty((), object), ())


class set_mesh:
    """Make a mesh the current one of this thread: from now on, or in a `with` block.

    Args: mesh: a `Mesh`, or None for no mesh.

    Specifications without a mesh belong to the current one. Arrays that are made of nothing, or of
    operands that are on no mesh, are made on it: whole on each device along explicit axes, as XLA
    likes along others; their types say so. ValueError for anything but a mesh, and where a function
    is traced.

    >>> import olympus
    >>> from olympus.sharding import PartitionSpec as P
    >>> with olympus.set_mesh(olympus.make_mesh((1,), ("x",))) as mesh:
    ...     x = olympus.device_put(olympus.numpy.ones(2), P("x"))
    ...     y = olympus.numpy.zeros(3)
    >>> print(olympus.typeof(x), x.sharding.mesh == y.sharding.mesh == mesh)
    float32[2@x] True
    """

    __slots__ = ("_previous", "mesh", "prev_mesh")

    def __init__(self, mesh: Mesh | None) -> None:
        if mesh is not None and not isinstance(mesh, Mesh):
            raise ValueError(f"set_mesh: {mesh!r} of type {type(mesh).__name__} given; a Mesh or "
                             "None is required; see olympus.make_mesh.")
        _check_untraced("set_mesh", "see sharding.use_abstract_mesh there")
        self.mesh, self.prev_mesh = mesh, current_mesh()
        self._previous = swap_mesh(mesh, None if mesh is None else mesh.abstract_mesh)

    def __enter__(self) -> Mesh | None:
        return self.mesh

    def __exit__(self, *exc_info: object) -> None:
        restore_mesh(self._previous)
