"""The place in the grid that a kernel runs for.

While a kernel is staged, its indices are inputs of its program: `program_id` returns these tracers,
also in the bodies of loops and branches, which close over them.
"""

from __future__ import annotations

import threading
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..base.source import api_boundary
from ..base.typing import Array, PyTree, Reference
from ..control_flow.carried_refs import kernels
from ..core.context import KnownAxis, ctx
from ..types.shape import SymbolicDim, bound_or


class _GridAxis(int):
    """The key under which the context of a kernel's program has the size of an axis of its grid."""

    __slots__ = ()

    def __hash__(self) -> int:
        return hash((_GridAxis, int(self)))

    def __eq__(self, other: object) -> bool:
        return type(other) is _GridAxis and int(self) == int(other)


_ZERO = _GridAxis(-1)       # the key in the context of kernels whose memory begins as 0


@contextmanager
def interpreted(how: object) -> Iterator[None]:
    """Within, a kernel is staged as `interpret=how` asks: True, or an `InterpretParams`."""
    outer = ctx.axes
    if getattr(how, "uninitialized_memory", "nan") == "zero":
        ctx.axes = {**outer, _ZERO: 1}
    try:
        yield
    finally:
        ctx.axes = outer


def memory_is_zero() -> bool:
    """Whether memory that nothing was written to is 0."""
    return _ZERO in ctx.axes


class _Here(threading.local):
    """Indices and sizes of the grids of the kernels that this thread stages, the innermost last."""

    def __init__(self) -> None:
        self.grids: list[tuple[Sequence[Any], Sequence[Any]]] = []
        self.generators: list[Reference] = []       # a state for each kernel


_here = _Here()


@contextmanager
def around(ids: Sequence[Array], sizes: Sequence[int | Array | None],
           names: Sequence[Hashable] | None = None, generator: Reference = None
           ) -> Iterator[None]:
    """Within, a kernel is staged for the place `ids` of a grid of those `sizes`.

    Sizes are part of the context, since the programs that are kept for a function depend on them.
    Named axes of a grid are named axes of the program, with a known index. Without a `generator`,
    a reference to uint32[2], random numbers come from the surrounding grid's.
    """
    outer = ctx.axes
    known = [n if isinstance(n, (int, SymbolicDim)) else -1 for n in sizes]
    ctx.axes = {**outer, **{_GridAxis(i): n for i, n in enumerate(known)},
                **{name: KnownAxis.at(bound_or(n, -1), i)
                   for name, n, i in zip(names or (), known, ids)}}
    _here.grids.append((ids, sizes))
    kernels.staged += 1
    _here.generators += [] if generator is None else [generator]
    try:
        yield
    finally:
        kernels.staged -= 1
        _here.grids.pop()
        if generator is not None:
            _here.generators.pop()
        ctx.axes = outer


def generator_here(name: str) -> Reference:
    """The state of the random numbers of the kernel that is staged."""
    if not _here.generators:
        raise ValueError(f"{name}: called outside of a kernel; random numbers have a state only "
                         "while pallas_call or core_map runs a kernel; call it in the kernel, or "
                         "use olympus.random.")
    return _here.generators[-1]


def _entry(name: str, axis: int, part: int) -> PyTree:
    if not _here.grids:
        raise ValueError(f"{name}: called outside of a kernel; there is a grid only while "
                         "pallas_call runs a kernel; call it in the kernel.")
    axes = _here.grids[-1][part]
    if isinstance(axis, bool) or not hasattr(axis, "__index__"):
        raise ValueError(f"{name}: `axis` must be an int: {axis!r} given; name one axis of the "
                         "grid.")
    if not 0 <= axis < len(axes):
        raise ValueError(f"{name}: axis {axis} given. Axis {axis} is out of bounds for grid "
                         f"{tuple(_here.grids[-1][1])}; give an axis, counted from 0.")
    return axes[axis]


@api_boundary
def program_id(axis: int) -> Array:
    """The index of the kernel's step along an axis of the grid.

    Args: axis: an axis of the grid.
    Returns: An int32 scalar, from 0 to `num_programs(axis) - 1`.

    Raises ValueError outside of a kernel, and for an axis that the grid has not.

    >>> def kernel(o):
    ...     o[pl.program_id(0)] = pl.program_id(0) * 10
    >>> out = olympus.ShapeDtypeStruct((3,), onp.int32)
    >>> print(pl.pallas_call(kernel, out, grid=3, interpret=True)())
    [ 0 10 20]
    """
    return _entry("program_id", axis, 0)


@api_boundary
def num_programs(axis: int) -> int | Array:
    """The size of the grid along an axis.

    Args: axis: an axis of the grid.
    Returns: An int; an int32 scalar if the grid's size is an array.

    Raises ValueError outside of a kernel, and for an axis that the grid has not.

    >>> def kernel(o):
    ...     o[pl.program_id(0)] = pl.num_programs(0)
    >>> out = olympus.ShapeDtypeStruct((3,), onp.int32)
    >>> print(pl.pallas_call(kernel, out, grid=3, interpret=True)())
    [3 3 3]
    """
    return _entry("num_programs", axis, 1)
