"""Arrays in TensorStore: where they are, how they are cut into chunks, writing and reading them.

A checkpoint is one store of keys (OCDBT), an array a key of it. With several processes, each writes
the shards that it has first into a store of its own; the common store then refers to these entries.
That store has checksums of its keys and nodes; the data's are a codec of each array.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import importlib
import math
import os
import re
from collections.abc import AsyncIterator, Awaitable, Iterable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, TypeAlias

import numpy as np

from ..arrays.assembly import make_array_from_single_device_arrays
from ..arrays.device import device_put
from ..base import lib
from ..base.typing import Array, DTypeLike, DuckTypedArray, R, Reference
from ..base.util import quoted
from ..core.cells import is_ref
from ..devices.devices import process_count, process_index
from ..types import dtypes
from ..types.avals import ShapeDtypeStruct
from ..types.layout import Format
from ..types.sharding import Sharding, make_single_device_sharding

_CHUNK_BYTES = 2 << 30      # the size of a file, about
_READ_BYTES = 10**10        # the size of caches
_CHUNK_ELEMENTS = 10**8     # the default size of a chunk
_REMOTE = {"gs": "gcs", "s3": "s3"}
_KEEP: Any = None           # the defaults of arguments for TensorStore's own objects

Spec: TypeAlias = dict[str, Any]    # TensorStore's, as JSON
Cut: TypeAlias = Sharding | Format | ShapeDtypeStruct   # the sharding of an array that is read

class Unreadable(ValueError):
    """The stored data of an array cannot be read, or has changed since: `reason` says how."""

    def __init__(self, where: object, reason: str) -> None:
        super().__init__(f"async_deserialize: {where} given; {reason}; look what was written "
                         "there, or restore it from a copy.")
        self.reason = reason


def tensorstore() -> ModuleType:
    """The module tensorstore; ImportError names the extra if it is not installed."""
    try:
        return importlib.import_module("tensorstore")
    except ImportError:
        raise ImportError(
            "array_serialization: the package tensorstore is not installed; it reads and writes "
            'the arrays; install it with: pip install "olympus[checkpoint]"') from None


def check_dtype(what: str, x: DuckTypedArray) -> None:
    """ValueError for dtypes that TensorStore lacks: float8_e4m3, uint2, uint4."""
    try:
        tensorstore().dtype(x.dtype.name)
    except ValueError:
        raise ValueError(
            f"{what}, {x.dtype.name}{list(x.shape)}, given; TensorStore has no arrays of "
            f"{x.dtype.name}; one of a dtype that it has is required; cast it to a wider one, as "
            "uint8 or float16.") from None


def reference_given(what: str, ref: Reference) -> TypeError:
    """The error for a reference in place of an array."""
    return TypeError(f"{what} a reference {ref.aval} given; an array is required;\n  pass "
                     "ref[...], its content, and write what is loaded with ref[...] = x.")


def new_context() -> object:
    """TensorStore's caches and limits for one save or load: a later one finds other files there."""
    pool = {"total_bytes_limit": _READ_BYTES}
    return tensorstore().Context({
        "file_io_concurrency": {"limit": 128}, "data_copy_concurrency": {"limit": 128},
        "cache_pool": pool, "cache_pool#remote": pool})


@functools.cache
def _chunk_layout() -> object:
    layout = tensorstore().ChunkLayout
    return layout(chunk=layout.Grid(elements=_CHUNK_ELEMENTS))


async def gather(awaitables: Iterable[Awaitable[R]]) -> list[R]:
    """All results, or the first error, once all have ended.

    `asyncio.gather` would leave the others running. A future of TensorStore's that ends when its
    event loop is closed prints a traceback from a thread of C++, and may end the process.
    """
    results: list[Any] = await asyncio.gather(*awaitables, return_exceptions=True)
    for result in results:
        if isinstance(result, BaseException):
            raise result
    return results


class ByteLimiter:
    """Admits reads up to a sum of bytes; a larger read runs alone."""

    def __init__(self, most: int) -> None:
        self._most, self._taken = most, 0
        self._freed = asyncio.Condition()

    @contextlib.asynccontextmanager
    async def holding(self, count: int) -> AsyncIterator[None]:
        """A block in which `count` bytes are taken."""
        async with self._freed:
            await self._freed.wait_for(lambda: not self._taken or self._taken + count <= self._most)
            self._taken += count
        try:
            yield
        finally:
            async with self._freed:
                self._taken -= count
                self._freed.notify_all()


# Specifications ----------------------------------------------------------------------------------

def is_tensorstore_spec_leaf(leaf: object) -> bool:
    """Whether a value is the specification of one array, or None, in a tree of those.

    Args: leaf: anything.

    >>> is_tensorstore_spec_leaf({"driver": "zarr3"}), is_tensorstore_spec_leaf({"a": None})
    (True, False)
    """
    return leaf is None or isinstance(leaf, dict) and ("driver" in leaf or "kvstore" in leaf)


def merge_nested_ts_specs(dict1: Spec, dict2: Spec | None) -> Spec:
    """A specification with the entries of another in place of its own; kvstore's entries singly.

    Args:
      dict1: the specification.
      dict2: what takes the place of its entries; None is nothing.
    Returns: A dict.

    >>> merge_nested_ts_specs({"driver": "n5", "kvstore": {"a": 1, "b": 2}}, {"kvstore": {"b": 3}})
    {'driver': 'n5', 'kvstore': {'a': 1, 'b': 3}}
    """
    if dict2 is None:
        return dict1
    kvstore = {**dict1.get("kvstore", {}), **dict2.get("kvstore", {})}
    return {**dict1, **dict2, "kvstore": kvstore}


def verify_tensorstore_spec(spec: Spec, arr: DuckTypedArray | None, path: str | os.PathLike[str],
                            ocdbt: bool, check_metadata: bool = True) -> None:
    """ValueError if a specification is not one of an array in the store of a checkpoint.

    Args:
      spec: the specification.
      arr: the array, whose dtype and shape it must have, and whose shards its chunks must divide.
      path: the directory of the store.
      ocdbt: whether it must be such a store.
      check_metadata: whether to look at `arr`.

    >>> spec = get_tensorstore_spec("/tmp/run/weights", arr=onp.ones(3))
    >>> verify_tensorstore_spec(spec, onp.ones(3), "/tmp/run", ocdbt=True)
    """
    what = "tensorstore spec"
    kvstore = spec.get("kvstore", {})
    if ocdbt and kvstore.get("driver") != "ocdbt":
        raise ValueError(f"{what}: {spec} given; Expected ocdbt driver; leave the driver of the "
                         "kvstore out.")
    if check_metadata:
        if arr is None:
            raise ValueError(f"{what}: None given; Array is required for metadata verification.")
        metadata, zarr3 = spec.get("metadata", {}), spec.get("driver") == "zarr3"
        missing = [key for key in ("data_type", "chunk_grid") if zarr3 and key not in metadata]
        if missing:
            raise ValueError(f"{what}: metadata {metadata} given, without {quoted(missing)}; "
                             "given metadata replace all others; change the metadata that "
                             "get_tensorstore_spec(arr=x) returns.")
        if zarr3 and metadata["data_type"] != arr.dtype.name:
            raise ValueError(f"{what}: Provided dtype {metadata['data_type']} doesn't match "
                             f"{arr.dtype.name}, the array's; cast the array.")
        if "shape" in metadata and tuple(metadata["shape"]) != tuple(arr.shape):
            raise ValueError(f"{what}: Provided shape {tuple(metadata['shape'])} doesn't match "
                             f"{tuple(arr.shape)}, the array's; leave it out.")
        if zarr3:
            chunk = list(metadata["chunk_grid"]["configuration"]["chunk_shape"])
            local = _local_shape(arr)
            if any(n % c for n, c in zip(local, chunk, strict=True)):
                raise ValueError(f"{what}: Provided chunk shape {chunk} does not divide the local "
                                 f"shape of the array {local}; processes would write one chunk.")
    stored = (kvstore["base"] if ocdbt else kvstore)["path"]
    if str(stored) != str(path):
        raise ValueError(f"{what}: path {stored} given; {path} is required, the store of the "
                         "checkpoint; leave it out.")


def _local_shape(arr: DuckTypedArray) -> tuple[int, ...]:
    """The shape of the part that one device writes."""
    return arr.sharding.shard_shape(arr.shape) if isinstance(arr, lib.Array) else tuple(arr.shape)


def chunk_shape(local: Sequence[int], itemsize: int, most: int = _CHUNK_BYTES) -> list[int]:
    """A shape that divides `local` into chunks of at most about `most` bytes, if that is possible.

    >>> chunk_shape((4096, 30), 4, 1 << 16), chunk_shape((), 4), chunk_shape((0, 7), 4)
    ([512, 30], [], [1, 7])
    """
    chunk = [max(size, 1) for size in local]
    while math.prod(chunk) * itemsize > 1.1 * most:
        axis = max(range(len(chunk)), key=chunk.__getitem__)
        size = chunk[axis]
        divisor = next((d for d in range(2, math.isqrt(size) + 1) if size % d == 0), size)
        chunk[axis] = size // divisor
    return chunk


def _array_metadata(arr: DuckTypedArray, driver: str, remote: bool) -> Spec:
    """The metadata with which a store keeps an array."""
    chunk = chunk_shape(_local_shape(arr), arr.dtype.itemsize)
    if driver == "zarr3":
        return {"shape": list(arr.shape), "data_type": arr.dtype.name,
                "codecs": [*[{"name": "zstd"}] * remote, {"name": "crc32c"}],
                "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}}}
    if driver == "zarr":
        return {"shape": list(arr.shape), "chunks": chunk, "compressor": {"id": "zstd"}}
    raise ValueError(f"tensorstore spec: driver {driver!r} and no metadata given; 'zarr3' and "
                     "'zarr' are known here; give the metadata.")


def get_tensorstore_spec(ckpt_path: str | os.PathLike[str], ocdbt: bool = True,
                         process_idx: int | None = None, arr: DuckTypedArray | None = None,
                         driver: str = "zarr3") -> Spec:
    """TensorStore's specification of one array of a checkpoint.

    Args:
      ckpt_path: absolute, or a URL of gs:// or s3://. With `ocdbt`, the directory is the store's
        and the last part a key of it; without, it is the directory of the array.
      ocdbt: whether arrays are keys of one store.
      process_idx: the process, if it writes a store of its own; None for the common one.
      arr: the array to be written, whose shape, dtype and shards the specification then says.
      driver: 'zarr3' or 'zarr', the format of arrays.
    Returns: A dict. ValueError for a path that is not absolute, or a URL without a bucket.

    >>> tensorstore_impl.get_tensorstore_spec("/tmp/run/weights")["kvstore"]["path"]
    'weights'
    """
    path = os.path.normpath(str(ckpt_path))
    scheme = re.match(r"(gs|s3):/+(.*)", path, re.DOTALL)
    if scheme is not None:
        path = scheme[2]
    parent, name = os.path.split(path)
    if process_idx is not None:
        parent = os.path.join(parent, f"process_{process_idx}")
        path = os.path.join(parent, name)
    place = parent if ocdbt else path
    if scheme is not None:
        bucket, slash, inside = place.partition("/")
        if not bucket or ocdbt and not slash:
            raise ValueError(
                f"get_tensorstore_spec: {ckpt_path} given; the bucket name, the directory name and "
                "the array name are required, as in gs://bucket/directory/array.")
        base = {"driver": _REMOTE[scheme[1]], "bucket": bucket, "path": inside}
    else:
        if ocdbt and not os.path.isabs(place):
            raise ValueError(f"get_tensorstore_spec: Checkpoint path should be absolute. Got "
                             f"{ckpt_path}; use os.path.abspath.")
        base = {"driver": "file", "path": place}
    kvstore = {"driver": "ocdbt", "base": base, "path": name} if ocdbt else base
    spec: Spec = {"driver": driver, "kvstore": kvstore}
    if arr is not None:
        spec["metadata"] = _array_metadata(arr, driver, scheme is not None)
    return spec


def _has_metadata(spec: object) -> bool:
    return isinstance(spec, dict) and ("metadata" in spec or any(map(_has_metadata, spec.values())))


# Writing -----------------------------------------------------------------------------------------

async def async_serialize(arr_inp: Array | np.ndarray, tensorstore_spec: Spec,
                          commit_future: list[Any] | None = None, context: object = _KEEP,
                          chunk_layout: object = _KEEP, primary_host: int | None = None,
                          replica_id: int = 0, transaction: object = None) -> list[None]:
    """Write the shards of an array that this process has, each once among all processes.

    Args:
      arr_inp: the array; of several processes, one that spans them, or a NumPy array that all
        have, which process 0 writes.
      tensorstore_spec: of the array; missing entries are added here.
      commit_future: a list to which the futures of unfinished writes are added; None waits for it.
      context, chunk_layout: TensorStore's; None for this module's.
      primary_host: the process that makes the array in the store; None is each of them.
      replica_id: which copy of each shard is written.
      transaction: TensorStore's, if it is part of one.

    Returns:
      A list of None, when the array may be changed. TypeError for a reference, ValueError for an
      array of this process alone in a job of several. ImportError without tensorstore.

    >>> import asyncio, tempfile, olympus, olympus.numpy as onp
    >>> spec = get_tensorstore_spec(tempfile.mkdtemp() + "/x")
    >>> asyncio.run(async_serialize(onp.arange(3), spec))
    [None]
    >>> where = olympus.sharding.SingleDeviceSharding(olympus.devices()[0])
    >>> asyncio.run(async_deserialize(where, spec))
    Array([0, 1, 2], dtype=int32)
    """
    ts = tensorstore()
    if is_ref(arr_inp):
        raise reference_given("async_serialize:", arr_inp)
    check_dtype("async_serialize: an array", arr_inp)
    if process_count() > 1 and isinstance(arr_inp, lib.Array) and arr_inp.is_fully_addressable:
        raise ValueError(
            "async_serialize: an array of the devices of one process given in a job of "
            f"{process_count()}; Passing fully addressable arrays to a multiprocess serialization "
            f"is not allowed, since all would write {tensorstore_spec['kvstore']}; spread it over "
            "all processes with multihost_utils.host_local_array_to_global_array.")
    if not _has_metadata(tensorstore_spec):
        tensorstore_spec["metadata"] = _array_metadata(arr_inp, tensorstore_spec["driver"], False)
    if tensorstore_spec["driver"] == "zarr" and "dtype" not in tensorstore_spec:
        tensorstore_spec["dtype"] = arr_inp.dtype.name      # the place in this format
    how = {"context": new_context() if context is None else context, "transaction": transaction,
           "chunk_layout": _chunk_layout() if chunk_layout is None else chunk_layout}
    if primary_host is None or process_index() == primary_host:
        made = ts.open(ts.Spec(tensorstore_spec), create=True, open=True, **how)
        if commit_future is None:
            await made
        else:
            commit_future.append(made)
    store = await ts.open(ts.Spec(tensorstore_spec), open=True, assume_metadata=True, **how)

    async def write(index: object, part: object) -> None:
        writing = store[index].write(
            np.asarray(part), can_reference_source_data_indefinitely=isinstance(part, lib.Array))
        if commit_future is None:
            await writing.commit
        else:
            commit_future.append(writing.commit)
            await writing.copy

    if isinstance(arr_inp, lib.Array):
        shards = [s for s in arr_inp.addressable_shards if s.replica_id == replica_id]
        for s in shards:
            s.data.copy_to_host_async()     # all copies run while the first is written
        parts = [(s.index, s.data) for s in shards]
    else:
        parts = [(..., arr_inp)] if process_index() == 0 else []
    return await gather([write(*part) for part in parts])


async def combine_kvstores(combined_kvstore: Spec, kvstores: Sequence[Spec],
                           context: object = _KEEP) -> None:
    """Let one store refer to the entries of others, without copies of the data.

    Args:
      combined_kvstore: the specification of the store, whose directory contains the others.
      kvstores: their specifications.
      context: TensorStore's; None for this module's.

    >>> import asyncio, tempfile, olympus.numpy as onp
    >>> path, stores = tempfile.mkdtemp() + "/x", []
    >>> for process in (0, None):
    ...     spec = get_tensorstore_spec(path, process_idx=process)
    ...     stores.append({**spec["kvstore"], "path": ""})
    >>> _ = asyncio.run(async_serialize(onp.arange(3), get_tensorstore_spec(path, process_idx=0)))
    >>> asyncio.run(combine_kvstores(stores[1], stores[:1]))
    """
    ts = tensorstore()
    context = new_context() if context is None else context
    combined, *parts = await gather([
        ts.KvStore.open(spec, context=context) for spec in (combined_kvstore, *kvstores)])
    transaction = ts.Transaction()
    await gather([part.experimental_copy_range_to(combined.with_transaction(transaction))
                  for part in parts])
    await transaction.commit_async()


# Reading -----------------------------------------------------------------------------------------

@contextlib.contextmanager
def _reading(where: object) -> Iterator[None]:
    """A block in which an exception means that the stored array cannot be read."""
    try:
        yield
    except Exception as error:
        if "NOT_FOUND" in str(error):
            reason = "a part of it is missing"
        elif isinstance(error, OSError) and error.strerror:
            reason = error.strerror
        else:
            reason = "what is stored is not what was written"
        raise Unreadable(where, reason) from error


async def stored_spec(tensorstore_spec: Spec, context: object) -> Spec:
    """The driver and all metadata of an array that was written; the stored array must agree."""
    with _reading(tensorstore_spec["kvstore"]):
        opened = await tensorstore().open(tensorstore_spec, open=True, context=context)
    spec = opened.spec().to_json()
    return {"driver": spec["driver"], "metadata": spec["metadata"]}


async def check_files(arrays: Path, context: object) -> None:
    """Unreadable unless every file that a store on disk refers to has all bytes referred to."""
    ts = tensorstore()
    base = await ts.KvStore.open({"driver": "file", "path": f"{arrays}/"})

    async def check(node: str) -> None:
        below = []
        for entry in (await ts.ocdbt.dump(base, node, context=context))["entries"]:
            reference = entry.get("location", entry.get("indirect_value"))
            if reference is None:       # the value is in the node
                continue
            _, folder, file, start, length = reference.split(":")
            if (arrays / folder / file).stat().st_size < int(start) + int(length):
                raise EOFError(file)
            if "location" in entry:
                below.append(check(reference))
        await gather(below)

    with _reading(arrays):
        manifest = await ts.ocdbt.dump(base, context=context)
        await check(manifest["versions"][-1]["root"]["location"])


def estimate_read_memory_footprint(t: Any, domain: Any) -> int:
    """The bytes of the chunks that have a part of a domain of an array of TensorStore's.

    Args:
      t: the array.
      domain: which part of it; None is all.

    >>> import tensorstore
    >>> estimate_read_memory_footprint(tensorstore.array([[1, 2, 3]], dtype="int32"), None)
    12
    """
    domain = t.domain if domain is None else domain
    count, template = t.dtype.numpy_dtype.itemsize, t.chunk_layout.read_chunk_template
    if not all(template[i].finite for i in range(t.rank)):      # no chunks: held as a whole
        return domain.size * count
    steps = template.shape
    starts = np.subtract(domain.origin, template.origin)
    first, last = starts // steps, -(-(starts + domain.shape) // steps)
    return count * math.prod(((last - first) * steps).tolist())


async def async_deserialize(in_type: Cut, tensorstore_spec: Spec,
                            global_shape: Sequence[int] | None = None,
                            dtype: DTypeLike | None = None,
                            byte_limiter: ByteLimiter | None = None, context: object = _KEEP,
                            chunk_layout: object = _KEEP, assume_metadata: bool = False) -> Array:
    """Read an array, each process the shards of its own devices.

    Args:
      in_type: a sharding, a `Format`, or a `ShapeDtypeStruct` that has one: how it is cut, which
        need not be how it was when it was written.
      tensorstore_spec: of the array.
      global_shape: another shape: axes are cut short, or go on with zeros.
      dtype: another dtype, to which elements are cast.
      byte_limiter: the limit of bytes that are read at once; None is no limit.
      context, chunk_layout: TensorStore's; None for this module's.
      assume_metadata: whether to take the metadata from the specification, not from the store.

    Returns:
      An array of that sharding. TypeError for `in_type` of another kind, ValueError for one of
      another shape, and where the stored data are missing or have another checksum than was
      written.

    >>> import asyncio, olympus
    >>> where = olympus.sharding.SingleDeviceSharding(olympus.devices()[0])
    >>> spec = {"driver": "array", "array": [1, 2], "dtype": "int32"}
    >>> asyncio.run(async_deserialize(where, spec, global_shape=(3,)))
    Array([1, 2, 0], dtype=int32)
    """
    ts = tensorstore()
    target, layout = in_type, None
    if isinstance(target, ShapeDtypeStruct):
        dtype = target.dtype if dtype is None else dtype
        target = target.sharding
    if isinstance(target, Format):
        target, layout = target.sharding, target.layout
    if not isinstance(target, Sharding):
        raise TypeError(
            f"async_deserialize: {in_type!r:.60} of type {type(in_type).__name__} given; sharding "
            "passed to deserialization should be specified, concrete and an instance of "
            "`olympus.sharding.Sharding`, or a ShapeDtypeStruct that has one.")
    sharding: Any = target
    spec, where = ts.Spec(tensorstore_spec), tensorstore_spec.get("kvstore", tensorstore_spec)
    with _reading(where):
        store = await ts.open(
            spec, open=True, assume_metadata=assume_metadata,
            context=new_context() if context is None else context,
            chunk_layout=_chunk_layout() if chunk_layout is None else chunk_layout)
    stored = store.dtype.numpy_dtype
    shape = tuple(store.shape if global_shape is None else global_shape)
    if isinstance(in_type, ShapeDtypeStruct) and in_type.shape != shape:
        raise ValueError(f"async_deserialize: {in_type} given for an array of shape {shape}; one "
                         "shape is required; give global_shape to cut it or fill it up.")
    wanted = dtypes.canonicalize_dtype(stored if dtype is None else dtypes.as_dtype(dtype))
    part_shape = sharding.shard_shape(shape)

    async def read(index: tuple[slice, ...]) -> np.ndarray:
        asked = ts.IndexTransform(input_shape=shape)[index].domain
        there = store.domain.intersect(asked)
        # Elements that the stored array lacks are zero.
        part = np.zeros(part_shape, stored)
        limit = (contextlib.nullcontext() if byte_limiter is None else
                 byte_limiter.holding(estimate_read_memory_footprint(store, there)))
        async with limit:
            with _reading(where):
                await ts.array(part)[ts.d[:].translate_to[asked.origin]][there].write(store[there])
            return part.astype(wanted, copy=False)

    copies: dict[Any, list[Any]] = {}       # of copies, the part is read once
    for device, index in sharding.addressable_devices_indices_map(shape).items():
        if device.process_index == device.client.process_index():
            key = tuple([s.indices(n)[:2] for s, n in zip(index, shape, strict=True)])
            copies.setdefault(key, [index]).append(device)
    parts = await gather([read(index) for index, *_ in copies.values()])
    arrays = []
    for part, (_, *devices) in zip(parts, copies.values(), strict=True):
        for device in devices:
            where: Any = make_single_device_sharding(device, memory_kind=sharding.memory_kind)
            arrays.append(device_put(part, where if layout is None else Format(layout, where)))
    return make_array_from_single_device_arrays(shape, sharding, arrays, dtype=wanted)
