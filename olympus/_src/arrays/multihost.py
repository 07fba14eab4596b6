"""Joint work of a job's processes: they exchange values, wait for each other, share arrays.

Values travel as bytes, all leaves of a tree at once, over a mesh of one device per process: so one
collective does, and no bit of any dtype changes.
"""

from __future__ import annotations

import contextlib
import hashlib
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from ..base import lib
from ..base.source import api_boundary
from ..base.typing import Array, ArrayLike, Device, PyTree
from ..base.util import memoize
from ..devices.array import WRAPPERS
from ..devices.devices import devices, process_count, process_index
from ..jit.jit import jit
from ..job.state import current
from ..types.mesh import AxisType, Mesh, restore_mesh, swap_mesh
from ..types.sharding import NamedSharding, PartitionSpec
from ..types.tree import flatten_axes, tree_flatten
from .assembly import make_array_from_process_local_data, make_array_from_single_device_arrays
from .device import device_put


@memoize(16)
def _gather(mesh: Mesh) -> Callable[[Array], object]:
    """The compiled program that gives every device of a mesh all of an array."""
    return jit(_same, out_shardings=NamedSharding(mesh, PartitionSpec()))


def _same(x: object) -> object:
    return x


def _one_device_each() -> Mesh:
    first: dict[int, Any] = {}
    for d in devices():
        first.setdefault(d.process_index, d)
    return Mesh([first[i] for i in sorted(first)], "process", AxisType.Auto)


def _bytes_of_all(mine: np.ndarray) -> np.ndarray:
    """uint8[processes, n]: the bytes that each process gives, equally many."""
    mesh, around = _one_device_each(), swap_mesh(None, None)
    try:
        rows = make_array_from_process_local_data(
            NamedSharding(mesh, PartitionSpec("process")), mine[None])
        return np.asarray(_gather(mesh)(rows))
    finally:
        restore_mesh(around)


def _host_values(name: str, leaves: Sequence[object]) -> list[np.ndarray]:
    values = []
    for x in leaves:
        value = np.asarray(x)
        if value.dtype.hasobject:
            raise TypeError(f"{name}: {x!r:.60} of type {type(x).__name__} given; arrays and "
                            "numbers are required; give the data of a key: random.key_data.")
        values.append(value)
    return values


def _all_values(values: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """Per value, each process's; shapes and dtypes must be the same in all."""
    if not values:
        return []
    joined = np.concatenate([np.frombuffer(v.tobytes(), np.uint8) for v in values])
    rows, by_process, start = _bytes_of_all(joined), [], 0
    for v in values:
        parts = [row[start:start + v.nbytes] for row in rows]
        by_process.append([np.frombuffer(p.tobytes(), v.dtype).reshape(v.shape) for p in parts])
        start += v.nbytes
    return by_process


@api_boundary
def broadcast_one_to_all(in_tree: PyTree, is_source: bool | None = None) -> PyTree:
    """The values of one process, in all.

    Args:
      in_tree: a pytree of arrays and numbers, of one structure and the same shapes and dtypes in
        all processes; every process must call this.
      is_source: whether this process is the one whose values are taken; one must be. None is
        process 0.
    Returns: A pytree of NumPy arrays.

    TypeError for leaves that are not arrays; ValueError where no process or several are the source.

    >>> multihost_utils.broadcast_one_to_all({"seed": 3})
    {'seed': array(3)}
    """
    leaves, tree = tree_flatten(in_tree)
    values = _host_values("broadcast_one_to_all", leaves)
    if process_count() == 1:
        return tree.unflatten(values)
    source = process_index() == 0 if is_source is None else bool(is_source)
    flags, *gathered = _all_values([np.asarray(source), *values])
    sources = [i for i, flag in enumerate(flags) if flag]
    if len(sources) != 1:
        raise ValueError(f"broadcast_one_to_all: is_source is True in the processes {sources}; one "
                         "process must be the source; give it in all processes or in none.")
    return tree.unflatten([each[sources[0]] for each in gathered])


@api_boundary
def process_allgather(in_tree: PyTree, tiled: bool = False) -> PyTree:
    """The values of all processes, in all.

    Args:
      in_tree: a pytree of arrays and numbers, of one structure and the same shapes and dtypes in
        all processes; every process must call this.
      tiled: whether values are joined along their first axis, rather than stacked along a new one;
        numbers are stacked.
    Returns: A pytree of NumPy arrays. For an array that spans processes, which needs `tiled`, it is
      the whole value.

    >>> multihost_utils.process_allgather({"loss": 3.0})
    {'loss': array([3.])}
    """
    leaves, tree = tree_flatten(in_tree)
    gathered: list[Any] = [None] * len(leaves)
    local = []
    for i, x in enumerate(leaves):
        if type(x) is lib.ArrayImpl and not x.is_fully_addressable:
            if not tiled:
                raise ValueError(f"process_allgather: an array {x.aval} that spans processes given "
                                 "and tiled=False; gathering global non-fully-addressable arrays "
                                 "only supports tiled=True.")
            gathered[i] = _gather_whole(x)
        else:
            local.append(i)
    values = _host_values("process_allgather", [leaves[i] for i in local])
    every = _all_values(values) if process_count() > 1 else [[v] for v in values]
    for i, parts in zip(local, every, strict=True):
        gathered[i] = np.concatenate(parts) if tiled and parts[0].ndim else np.stack(parts)
    return tree.unflatten(gathered)


def _gather_whole(x: Array) -> np.ndarray:
    """The value of an array that spans processes, in all that have a part of it."""
    if lib.is_readable(x):
        return np.asarray(x)
    sharding = x.sharding
    mesh: Any = sharding.mesh if type(sharding) is NamedSharding else Mesh(
        list(sharding._internal_device_list), "all", AxisType.Auto)
    return np.asarray(_gather(mesh)(x))


@api_boundary
def sync_global_devices(name: str) -> None:
    """Wait until all processes have come here, and all their devices.

    Args: name: of the place; AssertionError where processes wait at different ones.

    >>> multihost_utils.sync_global_devices("data is ready")
    """
    assert_equal(np.uint32(zlib.crc32(name.encode())),
                 f"sync_global_devices name mismatch ('{name}')")


@api_boundary
def assert_equal(in_tree: PyTree, fail_message: str = "") -> None:
    """AssertionError, which names the processes that differ, unless all have the same values.

    Args:
      in_tree: a pytree of arrays and numbers, of one structure and the same shapes and dtypes in
        all processes; every process must call this. Arrays that span processes are compared by
        parts: this process's with the others'. NaN equals NaN.
      fail_message: the beginning of the error.

    >>> multihost_utils.assert_equal({"step": 3}, "steps differ")
    """
    leaves = [x.addressable_data(0) if type(x) is lib.ArrayImpl and not x.is_fully_addressable
              else x for x in tree_flatten(in_tree)[0]]
    values = _host_values("assert_equal", leaves)
    if process_count() == 1:
        return
    for value, every in zip(values, _all_values(values), strict=True):
        others = [i for i, other in enumerate(every) if not _equal(value, other)]
        if others:
            raise AssertionError(f"{fail_message}. Expected: {every}; got: {value}. The processes "
                                 f"that differ from process {process_index()} are {others}.")


def check_same(what: str, value: np.ndarray) -> None:
    """AssertionError unless all processes come here with the same array."""
    digest = hashlib.blake2b(repr((value.dtype, value.shape)).encode() + value.tobytes())
    rows = _bytes_of_all(np.frombuffer(digest.digest(), np.uint8))
    if others := np.flatnonzero((rows != rows[process_index()]).any(1)).tolist():
        raise AssertionError(
            f"{what}: {type(value)} passed to {what} is not the same on each process: {value} in "
            f"process {process_index()}, another in {others}; give the same, or use "
            "make_array_from_process_local_data.")


def _equal(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(np.all((a == b) | ((a != a) & (b != b))))


def reached_preemption_sync_point(step_id: int) -> bool:
    """Whether this is the step after which all processes save, since one will be preempted.

    The notice is SIGTERM to any process. All then go on to the step after the last one that any of
    them has begun, and there this is True.

    Args: step_id: the number of the step, from the same one on in all processes, in each step.
    Returns: A bool; False where there is no job. RuntimeError if
      `olympus_enable_preemption_service` was off when the job was joined.

    >>> multihost_utils.reached_preemption_sync_point(0)
    False
    """
    if current.client is None:
        return False
    if current.preemption is None:
        raise RuntimeError(
            "reached_preemption_sync_point: the preemption sync manager has not been initialized; "
            "olympus_enable_preemption_service must be on when distributed.initialize is called.")
    return bool(current.preemption.reached_sync_point(step_id))


# Arrays of one process as parts of arrays of all -------------------------------------------------

def _with_specs(name: str, arrays: PyTree, mesh: Mesh, pspecs: PyTree,
                convert: Callable[[Array, NamedSharding], ArrayLike]) -> PyTree:
    leaves, tree = tree_flatten(arrays)
    specs = flatten_axes(f"{name} pspecs", tree, pspecs)
    if any(spec is None for spec in specs):
        raise ValueError(f"{name}: `None` is not a valid input to the pspecs argument; a "
                         "PartitionSpec is required for each array; PartitionSpec() stands for "
                         "copies.")
    return tree.unflatten([
        x._with(convert(x._base_array, NamedSharding(mesh, s))) if type(x) in WRAPPERS else
        convert(x, NamedSharding(mesh, s)) for x, s in zip(leaves, specs, strict=True)])


@api_boundary
def host_local_array_to_global_array(local_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
                                     ) -> PyTree:
    """Arrays over the devices of all processes, of the parts that each process gives.

    Args:
      local_inputs: a pytree of arrays: this process's parts, side by side as they are in the
        whole. Arrays that span processes stay as they are.
      global_mesh: a mesh in which the devices of each process are a block.
      pspecs: a pytree of `PartitionSpec`s, a prefix of the structure of `local_inputs`.
    Returns: A pytree of arrays. Axes that are cut over processes are as many times longer; of those
      that are not, all processes must give the same values.

    >>> import numpy as np, olympus
    >>> mesh = olympus.make_mesh((1,), ("x",))
    >>> multihost_utils.host_local_array_to_global_array(np.arange(3), mesh, olympus.P("x"))
    Array([0, 1, 2], dtype=int32)
    """
    def convert(x: ArrayLike, sharding: NamedSharding) -> ArrayLike:
        if type(x) is lib.ArrayImpl and not x.is_fully_addressable:
            return x
        if type(x) is lib.ArrayImpl and x.sharding == NamedSharding(
                global_mesh.local_mesh, sharding.spec):
            mesh, shape = global_mesh.local_mesh, x.shape       # cut as it will be: no copy
            whole = [size * count // own for size, count, own in zip(
                shape, *[lib.tile_counts(NamedSharding(m, sharding.spec)._to_xla_hlo_sharding(
                    x.ndim), x.ndim) for m in (global_mesh, mesh)], strict=True)]
            return make_array_from_single_device_arrays(
                whole, sharding, [s.data for s in x.addressable_shards])
        return make_array_from_process_local_data(sharding, x)

    return _with_specs("host_local_array_to_global_array", local_inputs, global_mesh, pspecs,
                       convert)


@api_boundary
def global_array_to_host_local_array(global_inputs: PyTree, global_mesh: Mesh, pspecs: PyTree
                                     ) -> PyTree:
    """The parts of arrays that are in this process, as arrays of its own devices.

    Args:
      global_inputs: a pytree of arrays. Those that are wholly here stay as they are.
      global_mesh: a mesh in which the devices of each process are a block.
      pspecs: a pytree of `PartitionSpec`s, a prefix of the structure of `global_inputs`: how they
        are cut; they are cut anew if they are not.
    Returns: A pytree of arrays over this process's part of the mesh.

    >>> import numpy as np, olympus
    >>> mesh = olympus.make_mesh((1,), ("x",))
    >>> x = olympus.device_put(np.arange(3), olympus.NamedSharding(mesh, olympus.P("x")))
    >>> multihost_utils.global_array_to_host_local_array(x, mesh, olympus.P("x"))
    Array([0, 1, 2], dtype=int32)
    """
    def convert(x: ArrayLike, sharding: NamedSharding) -> ArrayLike:
        if type(x) is not lib.ArrayImpl or x.is_fully_addressable:
            return x
        cut: Array = (x if x.sharding.is_equivalent_to(sharding, x.ndim) else
                      device_put(x, sharding))
        parts = cut.addressable_shards
        shape = []
        for i, size in enumerate(cut.shape):
            starts, stops, _ = zip(*[p.index[i].indices(size) for p in parts], strict=True)
            shape.append(max(stops) - min(starts))
        return make_array_from_single_device_arrays(
            shape, NamedSharding(global_mesh.local_mesh, sharding.spec), [p.data for p in parts])

    return _with_specs("global_array_to_host_local_array", global_inputs, global_mesh, pspecs,
                       convert)


# Processes that are lost -------------------------------------------------------------------------

class ProcessFailureError(Exception):
    """Processes were lost while `live_devices` was entered.

    Args: failed_devices: the set of their devices.
    """

    def __init__(self, failed_devices: set[Device]) -> None:
        self.failed_devices = failed_devices
        super().__init__(f"Devices failed: {failed_devices}")


_seen: dict[Device, int] = {}       # alive when it was last asked, with the process's incarnation


def _alive(among: Sequence[Device]) -> dict[Device, int]:
    processes = sorted({d.process_index for d in among})
    if process_index() not in processes:
        raise ValueError("live_devices: no devices of this process given; Provided devices do not "
                         "have any local devices; name one of olympus.local_devices().")
    live = current.client.get_live_nodes(processes)
    return {d: live[d.process_index] for d in among if d.process_index in live}


@contextlib.contextmanager
def live_devices(devices: Sequence[Device]) -> Iterator[list[Device]]:
    """A block that runs on the devices which are alive, in all processes that have one of them.

    The processes wait for each other where they enter and leave it, so that all agree which are
    alive. For a job whose others go on when one is lost: `olympus_enable_recoverability`.

    Args: devices: what to choose from, some of this process among them.

    Returns: A context manager, which gives the list of the processes that are alive.

    ProcessFailureError at the end of the block if some were lost in it. RuntimeError where there is
    no job, ValueError for no devices, or none of this process.

    >>> with multihost_utils.live_devices(olympus.devices()) as alive:  # doctest: +SKIP
    ...     mesh = olympus.sharding.Mesh(alive, "x")
    """
    if current.client is None:
        raise RuntimeError("live_devices: this process has joined no job; call "
                           "olympus.distributed.initialize() first.")
    if not devices:
        raise ValueError("live_devices: No devices provided; give olympus.devices(), say.")
    if not _seen:
        _seen.update(_alive(devices))
    before, cause = dict(_seen), None
    try:
        yield sorted(before, key=lambda d: d.id)
    except Exception as error:
        cause = error
    now = _alive(devices)
    _seen.clear()
    _seen.update(now)
    failed = {d for d, incarnation in before.items() if now.get(d) != incarnation}
    if failed:
        raise ProcessFailureError(failed) from cause
    if cause is not None:
        raise cause
