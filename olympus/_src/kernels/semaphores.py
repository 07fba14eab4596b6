"""Semaphores and copies of kernels, as a simulation of one core has them.

A semaphore is a reference to int32 counts. A copy is done where it starts; its semaphore counts the
bytes until somebody waits for them. Nothing else runs meanwhile, so no wait blocks, and no race is
looked for.
"""

from __future__ import annotations

import enum

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree, Reference
from ..base.util import clipped
from ..lax.creation import full
from ..numpy.refs import addupdate, get, set
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.refs import RefAval
from ..types.shape import prod
from .blocks import blank
from .specs import INT32, SemaphoreRef, SemaphoreType, array_aval


class DeviceIdType(enum.Enum):
    """How a device is named: by its place in a mesh, or by one number.

    >>> from olympus.experimental import pallas as pl
    >>> pl.DeviceIdType.MESH.value
    'mesh'
    """

    MESH = "mesh"
    LOGICAL = "logical"


def content_aval(x: PyTree) -> ShapedArray:
    """The type of an output, or of the content of scratch."""
    if isinstance(x, RefAval):
        return x.inner
    if isinstance(x, ShapedArray):
        return x.strong()
    get_aval = getattr(x, "get_array_aval", None)
    if get_aval is not None:
        return get_aval()
    if not (hasattr(x, "shape") and hasattr(x, "dtype")):
        raise TypeError(f"pallas_call: {clipped(x)} of type {type(x).__name__} given for an output "
                        "or for scratch; a ShapeDtypeStruct or a MemoryRef is required.")
    return array_aval(x.shape, x.dtype)


def first_content(x: PyTree) -> Array:
    """The content of scratch before anything is written: 0 for semaphores."""
    aval = content_aval(x)
    if isinstance(x, (SemaphoreRef, SemaphoreType)):
        return full(aval.shape, 0, INT32)
    return blank(aval.shape, aval.dtype)


@api_boundary
def semaphore_read(sem_or_view: Reference) -> Array:
    """The count of a semaphore.

    Args:
      sem_or_view: a reference to a semaphore, or a part of one.

    Returns:
      An int32 scalar.

    >>> from olympus.experimental import pallas as pl
    >>> @pl.with_scoped(pl.ANY((), pl.semaphore))
    ... def twice(sem):
    ...     pl.semaphore_signal(sem, 2)
    ...     return pl.semaphore_read(sem)
    >>> print(twice())
    2
    """
    return get(sem_or_view)


def _here(name: str, device_id: PyTree, core_index: ArrayLike | None) -> None:
    if device_id is not None or core_index is not None:
        raise NotImplementedError(f"{name}: another device or core given ({device_id!r:.40}); "
                                  "kernels run on one core here; leave it out.")


@api_boundary
def semaphore_signal(sem_or_view: Reference, inc: ArrayLike = 1, *, device_id: PyTree = None,
                     device_id_type: DeviceIdType = DeviceIdType.MESH,
                     core_index: ArrayLike | None = None) -> None:
    """Increase the count of a semaphore.

    Args:
      sem_or_view: a reference to a semaphore, or a part of one.
      inc: by how much.
      device_id, device_id_type, core_index: another device or core; there is none.

    >>> from olympus.experimental import pallas as pl
    >>> @pl.with_scoped(pl.ANY((2,), pl.semaphore))
    ... def one(sems):
    ...     pl.semaphore_signal(sems.at[1])
    ...     return sems[...]
    >>> print(one())
    [0 1]
    """
    _here("semaphore_signal", device_id, core_index)
    addupdate(sem_or_view, ..., inc)


@api_boundary
def semaphore_wait(sem_or_view: Reference, value: ArrayLike = 1, *, decrement: bool = True
                   ) -> None:
    """Wait until a semaphore has a count, and take it away.

    Args:
      sem_or_view: a reference to a semaphore, or a part of one.
      value: the count.
      decrement: whether it is taken away.

    >>> from olympus.experimental import pallas as pl
    >>> @pl.with_scoped(pl.ANY((), pl.semaphore))
    ... def left(sem):
    ...     pl.semaphore_signal(sem, 3)
    ...     pl.semaphore_wait(sem, 2)
    ...     return pl.semaphore_read(sem)
    >>> print(left())
    1
    """
    if decrement:
        addupdate(sem_or_view, ..., -value)     # pyright: ignore[reportOperatorIssue]


@api_boundary
def delay(nanos: ArrayLike) -> None:
    """Wait for some time; in interpret mode nothing waits.

    Args:
      nanos: nanoseconds.

    >>> from olympus.experimental import pallas as pl
    >>> pl.delay(100)
    """


class AsyncCopy:
    """A copy from one reference to another that is started, and waited for, once each."""

    __slots__ = ("src", "dst", "sem", "send_sem")

    def __init__(self, src: Reference, dst: Reference, sem: Reference, send_sem: Reference = None
                 ) -> None:
        self.src, self.dst, self.sem, self.send_sem = src, dst, sem, send_sem

    @property
    def _bytes(self) -> int:
        return prod(self.dst.shape) * max(dtypes.itemsize_bits(self.dst.dtype), 8) // 8

    @api_boundary
    def start(self, priority: int = 0) -> None:
        """Copy; the semaphore counts the bytes."""
        set(self.dst, ..., get(self.src))
        for sem in (self.sem, self.send_sem):
            if sem is not None:
                addupdate(sem, ..., self._bytes)

    @api_boundary
    def wait(self) -> None:
        """Take the bytes from the semaphore, or both semaphores."""
        self.wait_recv()
        if self.send_sem is not None:
            self.wait_send()

    @api_boundary
    def wait_recv(self) -> None:
        """Take the bytes that arrived from the semaphore."""
        semaphore_wait(self.sem, self._bytes)

    @api_boundary
    def wait_send(self) -> None:
        """Take the bytes that were sent from their semaphore."""
        semaphore_wait(self.sem if self.send_sem is None else self.send_sem, self._bytes)


@api_boundary
def make_async_copy(src_ref: Reference, dst_ref: Reference, sem: Reference) -> AsyncCopy:
    """A copy between references that is yet to be started.

    Args:
      src_ref, dst_ref: references, or parts, of one shape and dtype.
      sem: a reference to a semaphore of kind `DMA`.

    Returns:
      An `AsyncCopy`, with `start()` and `wait()`.

    >>> from olympus.experimental import pallas as pl
    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> def kernel(x, o, sem):
    ...     copy = pltpu.make_async_copy(x.at[1:], o, sem)
    ...     copy.start()
    ...     copy.wait()
    >>> out = olympus.ShapeDtypeStruct((2,), onp.float32)
    >>> print(pl.pallas_call(kernel, out, scratch_shapes=[pltpu.SemaphoreType.DMA],
    ...                      interpret=True)(onp.arange(3.)))
    [1. 2.]
    """
    if src_ref.shape != dst_ref.shape or src_ref.dtype != dst_ref.dtype:
        raise ValueError(f"make_async_copy: a source of shape {src_ref.shape}, {src_ref.dtype}, "
                         f"and a destination of shape {dst_ref.shape}, {dst_ref.dtype}, given; one "
                         "shape and one dtype are required; copy parts, ref.at[…].")
    return AsyncCopy(src_ref, dst_ref, sem)
