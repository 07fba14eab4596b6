"""Semaphores and copies of kernels, as a simulation of one core has them.

A semaphore is a reference to int32 counts. A copy is done where it starts; its semaphore counts the
bytes until somebody waits for them. Nothing else runs meanwhile, so no wait blocks: what would wait
for ever on a device fails in checked programs. Copies to other devices are in `remote.py`.
"""

from __future__ import annotations

import enum

from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, PyTree, Reference
from ..base.util import clipped
from ..jit.checked import check
from ..lax.creation import full
from ..numpy.creation import asarray
from ..numpy.reductions import all as all_of
from ..numpy.refs import addupdate, get, set
from ..types import dtypes
from ..types.avals import ShapedArray
from ..types.refs import RefAval
from ..types.shape import prod
from .blocks import blank
from .remote import deliver, number_of, place
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


def is_semaphore(x: PyTree) -> bool:
    """Whether a type of scratch is a semaphore's."""
    return isinstance(x, (SemaphoreRef, SemaphoreType))


def first_content(x: PyTree) -> Array:
    """The content of scratch before anything is written: 0 for semaphores."""
    aval = content_aval(x)
    return full(aval.shape, 0, INT32) if is_semaphore(x) else blank(aval.shape, aval.dtype)


def check_last_content(name: str, x: PyTree, content: Array) -> None:
    """In checked programs, fail unless the semaphores of this scratch are 0 at its end."""
    if is_semaphore(x):
        check(all_of(content == 0), f"{name}: semaphores end at {{count}}; 0 is required, since a "
              "device checks it: wait for each copy that starts, and for each signal",
              count=content, debug=True)


@api_boundary
def semaphore_read(sem_or_view: Reference) -> Array:
    """The count of a semaphore.

    Args: sem_or_view: a reference to a semaphore, or a part of one.
    Returns: An int32 scalar.

    >>> from olympus.experimental import pallas as pl
    >>> @pl.with_scoped(pl.ANY((), pl.semaphore))
    ... def twice(sem):
    ...     pl.semaphore_signal(sem, 2)
    ...     return pl.semaphore_read(sem)
    >>> print(twice())
    2
    """
    return get(sem_or_view)


@api_boundary
def semaphore_signal(sem_or_view: Reference, inc: ArrayLike = 1, *, device_id: PyTree = None,
                     device_id_type: DeviceIdType = DeviceIdType.MESH,
                     core_index: ArrayLike | None = None) -> None:
    """Increase the count of a semaphore.

    Args:
      sem_or_view: a reference to a semaphore, or a part of one.
      inc: by how much.
      device_id: the device whose semaphore is meant, inside of `shard_map`: an index for each axis
        of the mesh, or a dict of indices by name; None is this device.
      device_id_type: `LOGICAL` if device_id is one number, row-major in the mesh.
      core_index: another core; there is none.

    >>> from olympus.experimental import pallas as pl
    >>> @pl.with_scoped(pl.ANY((2,), pl.semaphore))
    ... def one(sems):
    ...     pl.semaphore_signal(sems.at[1])
    ...     return sems[...]
    >>> print(one())
    [0 1]
    """
    if core_index is not None:
        raise NotImplementedError(f"semaphore_signal: core_index {clipped(core_index)} given; "
                                  "kernels run on one core here; leave it out.")
    if device_id is None:
        addupdate(sem_or_view, ..., inc)
        return
    to = number_of("semaphore_signal", device_id, device_id_type is DeviceIdType.LOGICAL)
    part, ops = place(sem_or_view)
    deliver(to, [asarray(inc, INT32), *ops], lambda inc, *ops: addupdate(part(*ops), ..., inc))


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
    count = get(sem_or_view)
    check(all_of(count >= value), "semaphore_wait: a semaphore counts {count} where {value} are "
          "waited for; nothing else runs that signals, so a device would wait for ever: start the "
          "copy, or signal, before", count=count, value=value, debug=True)
    if decrement:
        addupdate(sem_or_view, ..., -value)     # pyright: ignore[reportOperatorIssue]


@api_boundary
def delay(nanos: ArrayLike) -> None:
    """Wait for some time; in interpret mode nothing waits.

    Args: nanos: nanoseconds.

    >>> from olympus.experimental import pallas as pl
    >>> pl.delay(100)
    """


class AsyncCopy:
    """A copy from one reference to another, to be started once and waited for once.

    to: the number of the device that has the destination; None is this one.
    """

    __slots__ = ("src", "dst", "sem", "send_sem", "to")

    def __init__(self, src: Reference, dst: Reference, sem: Reference, send_sem: Reference = None,
                 to: Array | None = None) -> None:
        self.src, self.dst, self.sem, self.send_sem, self.to = src, dst, sem, send_sem, to

    @property
    def _bytes(self) -> int:
        return prod(self.dst.shape) * max(dtypes.itemsize_bits(self.dst.dtype), 8) // 8

    @api_boundary
    def start(self, priority: int = 0) -> None:
        """Copy; the semaphore counts the bytes."""
        if self.to is None:
            set(self.dst, ..., get(self.src))
            for sem in (self.sem, self.send_sem):
                if sem is not None:
                    addupdate(sem, ..., self._bytes)
            return
        (dst, at), (sem, of) = place(self.dst), place(self.sem)

        def arrive(value: Array, *ops: Array) -> None:
            set(dst(*ops[:len(at)]), ..., value)
            addupdate(sem(*ops[len(at):]), ..., self._bytes)

        deliver(self.to, [get(self.src), *at, *of], arrive)
        if self.send_sem is not None:
            addupdate(self.send_sem, ..., self._bytes)

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


def _copy(name: str, src: Reference, dst: Reference, *rest: Reference) -> AsyncCopy:
    if src.shape != dst.shape or src.dtype != dst.dtype:
        raise ValueError(f"{name}: a source of shape {src.shape}, {src.dtype}, and a destination "
                         f"of shape {dst.shape}, {dst.dtype}, given; one shape and one dtype are "
                         "required; copy parts, ref.at[…].")
    return AsyncCopy(src, dst, *rest)


def _remote(name: str, src: Reference, dst: Reference, send_sem: Reference, recv_sem: Reference,
            device_id: PyTree, kind: DeviceIdType) -> AsyncCopy:
    to = number_of(name, device_id, kind is DeviceIdType.LOGICAL)
    return _copy(name, src, dst, recv_sem, send_sem, to)


@api_boundary
def make_async_copy(src_ref: Reference, dst_ref: Reference, sem: Reference) -> AsyncCopy:
    """A copy between references, not yet started.

    Args:
      src_ref, dst_ref: references, or parts, of one shape and dtype.
      sem: a reference to a semaphore of kind `DMA`.
    Returns: An `AsyncCopy`, with `start()` and `wait()`.

    >>> def kernel(x, o, sem):
    ...     copy = pltpu.make_async_copy(x.at[1:], o, sem)
    ...     copy.start()
    ...     copy.wait()
    >>> out = olympus.ShapeDtypeStruct((2,), onp.float32)
    >>> print(pl.pallas_call(kernel, out, scratch_shapes=[pltpu.SemaphoreType.DMA],
    ...                      interpret=True)(onp.arange(3.)))
    [1. 2.]
    """
    return _copy("make_async_copy", src_ref, dst_ref, sem)


@api_boundary
def make_async_remote_copy(src_ref: Reference, dst_ref: Reference, send_sem: Reference,
                           recv_sem: Reference, device_id: PyTree,
                           device_id_type: DeviceIdType = DeviceIdType.MESH) -> AsyncCopy:
    """A copy to a reference of another device, not yet started, inside of `shard_map`.

    All devices start it at the same place of the kernel, each to a device of its choice.

    Args:
      src_ref: the content to send, a reference or a part.
      dst_ref: where it arrives on the other device, with the same shape and dtype.
      send_sem: a semaphore of this device, which counts the bytes that it sent.
      recv_sem: a semaphore of the other device, which counts those that arrived there.
      device_id: the other device: an index for each axis of the mesh, or a dict of indices by name.
      device_id_type: `LOGICAL` if device_id is one number, row-major in the mesh.
    Returns: An `AsyncCopy`, with `start()`, `wait()`, `wait_send()` and `wait_recv()`.

    >>> def to_the_right(x, o, sent, received):
    ...     there = (lax.axis_index("x") + 1) % lax.axis_size("x")
    ...     pltpu.make_async_remote_copy(x, o, sent, received, device_id=(there,)).start()
    >>> out = olympus.ShapeDtypeStruct((2,), onp.float32)
    >>> run = pl.pallas_call(to_the_right, out, scratch_shapes=[pltpu.SemaphoreType.DMA] * 2,
    ...                      interpret=True)
    >>> P, mesh = olympus.sharding.PartitionSpec("x"), olympus.make_mesh((1,), ("x",))
    >>> print(olympus.shard_map(run, mesh=mesh, in_specs=P, out_specs=P)(onp.arange(2.)))
    [0. 1.]
    """
    return _remote("make_async_remote_copy", src_ref, dst_ref, send_sem, recv_sem, device_id,
                   device_id_type)


@api_boundary
def async_remote_copy(src_ref: Reference, dst_ref: Reference, send_sem: Reference,
                      recv_sem: Reference, device_id: PyTree,
                      device_id_type: DeviceIdType = DeviceIdType.MESH) -> AsyncCopy:
    """Start a copy to a reference of another device.

    Args: src_ref, dst_ref, send_sem, recv_sem, device_id, device_id_type: as for
        `make_async_remote_copy`.
    Returns: The copy, with `wait()`.

    >>> from olympus.experimental.pallas import tpu as pltpu
    >>> pltpu.async_remote_copy.__name__
    'async_remote_copy'
    """
    copy = _remote("async_remote_copy", src_ref, dst_ref, send_sem, recv_sem, device_id,
                   device_id_type)
    copy.start()
    return copy
