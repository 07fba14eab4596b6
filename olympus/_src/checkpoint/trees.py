"""Pytrees of arrays on disk: `save` and `load`. directory.py has the layout of directories."""

from __future__ import annotations

import asyncio
import itertools
import os
import threading
import uuid
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from ..base import lib
from ..base.errors import OlympusRuntimeError
from ..base.typing import Array, DuckTypedArray, PyTree
from ..core.cells import is_ref
from ..devices.devices import process_count, process_index
from ..export.nodes import Unregistered, decode_tree, encode_tree
from ..job.state import current
from ..types import dtypes
from ..types.avals import ShapeDtypeStruct
from ..types.layout import Format
from ..types.tree import flatten_axes, tree_flatten, tree_flatten_with_path, tree_map
from ..types.tree_paths import keystr
from ..types.tree_registry import PyTreeDef
from . import store
from .directory import ARRAYS, TREE, Content, Damaged, Draft, decode, place, reading
from .manager import is_remote_storage, run
from .store import Spec

_TREE_KEY, _LEAVES_KEY = "__olympus_pytreedef_repr", "__olympus_leaf_ids"
_WAIT_SECONDS = 1800        # seconds that processes wait for each other while they write
_READ_BYTES = 10**10
_TRIES = 20                 # attempts to read files that other processes may replace meanwhile

_saving = threading.Lock()
_saves = itertools.count()  # equal in all processes, which save in the same order
_threads = ThreadPoolExecutor(8, "olympus-checkpoint")


class PyTreeFuture:
    """A save or a load that goes on; `pytree` has the types of its arrays.

    `result()` waits for it and returns its result, as `await` does; `done()` tells whether it has
    ended.
    """

    def __init__(self, future: Future[PyTree], pytree: PyTree) -> None:
        self._future, self.pytree = future, pytree
        self.done, self.result = future.done, future.result

    def __await__(self) -> Generator[object, None, PyTree]:
        return asyncio.wrap_future(self._future).__await__()

    def __repr__(self) -> str:
        return f"PyTreeFuture(done={self.done()}, pytree={self.pytree})"


# The written form of a tree ----------------------------------------------------------------------

def serialize_pytreedef(node: PyTreeDef) -> Content:
    """A structure of pytrees as what JSON can hold.

    Args: node: a PyTreeDef of lists, tuples, dictionaries with strings for keys, None, and classes
        given to `export.register_pytree_node_serialization`.
    Returns: A dict. ValueError or TypeError for other classes and keys.

    >>> serialize_pytreedef(olympus.tree.structure((1, None)))
    {'__olympus_pytreedef_repr': {'tuple': ['leaf', None]}, '__olympus_leaf_ids': [0]}
    """
    return {_TREE_KEY: encode_tree(node), _LEAVES_KEY: list(range(node.num_leaves))}


def deserialize_pytreedef(pytreedef_repr: Content) -> PyTreeDef:
    """The structure that `serialize_pytreedef` wrote.

    Args: pytreedef_repr: its earlier result.

    >>> from olympus.experimental.array_serialization import pytree_serialization_utils as utils
    >>> tree = olympus.tree.structure({"a": [1, None]})
    >>> utils.deserialize_pytreedef(utils.serialize_pytreedef(tree)) == tree
    True
    """
    return decode_tree(pytreedef_repr[_TREE_KEY], pytreedef_repr[_LEAVES_KEY])


def _is_array(x: object) -> bool:
    return isinstance(x, (lib.Array, np.ndarray)) and isinstance(x.dtype, np.dtype)


def _described(x: DuckTypedArray, spec: Spec) -> Content:
    return {"dtype": x.dtype.name, "shape": list(x.shape), "spec": spec}


def _read_leaf(entry: Content) -> ShapeDtypeStruct:
    return ShapeDtypeStruct(tuple(entry["shape"]), dtypes.as_dtype(entry["dtype"]))


def _local_path(operation: str, directory: str | os.PathLike[str]) -> Path:
    if is_remote_storage(os.fspath(directory)):
        raise ValueError(
            f"{operation}: {directory} given; a directory of a file system is required, since a "
            "remote store cannot rename one; write there with "
            "serialization.GlobalAsyncCheckpointManager.")
    return place(directory)


# The processes of a job --------------------------------------------------------------------------

class _Together:
    """One save in all processes. They exchange messages by the coordinator, not by devices, on
    which the main thread runs programs meanwhile."""

    def __init__(self, number: int) -> None:
        self.alone = process_count() == 1
        self._key = f"olympus/save/{number}"

    def agree(self, root: Path) -> tuple[str, str]:
        """The save's name and directory, as process 0 chose them."""
        if self.alone:
            return uuid.uuid4().hex, str(root)
        if process_index() == 0:
            current.client.key_value_set(self._key, f"{uuid.uuid4().hex} {root}")
        name, _, place = current.client.blocking_key_value_get(
            self._key, _WAIT_SECONDS * 1000).partition(" ")
        return name, place

    def step(self, name: str, work: Callable[[], None] | None) -> None:
        """Do this process's work, if any, and wait for the others; an error is raised in all."""
        if self.alone:
            if work is not None:
                work()
            return
        failure, errors = None, f"{self._key}/{name}/errors"
        try:
            if work is not None:
                work()
        except Exception as error:
            failure = error
            current.client.key_value_set(f"{errors}/{process_index()}", repr(error))
        current.client.wait_at_barrier(f"{self._key}/{name}", _WAIT_SECONDS * 1000)
        if failure is not None:
            try:
                raise failure
            finally:
                del failure     # else the frame and the error would form a cycle
        others = current.client.key_value_dir_get(errors)
        if others:
            listed = "; ".join(f"{current.members[int(key.rpartition('/')[2])]}: {text}"
                               for key, text in others)
            raise OlympusRuntimeError(f"save: it failed in {listed}; the checkpoint before is "
                                      "whole; mend that, and save again.")


# Saving and loading ------------------------------------------------------------------------------

def _specs(operation: str, tree: PyTreeDef, ts_specs: PyTree) -> list[Spec | None]:
    """One specification, or None, for each leaf."""
    if store.is_tensorstore_spec_leaf(ts_specs):
        return [ts_specs] * tree.num_leaves
    leaves, prefix = tree_flatten(ts_specs, store.is_tensorstore_spec_leaf)
    numbers = flatten_axes(f"{operation} ts_specs", tree, prefix.unflatten(range(len(leaves))))
    return [leaves[i] for i in numbers]


def _array_specs(arrays_path: Path, ids: Sequence[int], specs: Sequence[Spec | None],
                 arrays: Sequence[DuckTypedArray] | None, process: int | None) -> list[Spec]:
    all_specs = []
    for i, (number, by_user) in enumerate(zip(ids, specs, strict=True)):
        x = None if arrays is None else arrays[i]
        own = store.get_tensorstore_spec(arrays_path / str(number), process_idx=process, arr=x)
        merged = store.merge_nested_ts_specs(own, by_user)
        place = own["kvstore"]["base"]["path"]
        store.verify_tensorstore_spec(merged, x, place, True, x is not None)
        all_specs.append(merged)
    return all_specs


def _combine(arrays_path: Path) -> None:
    """Let the common store refer to the entries that each process wrote into its own store."""
    def kvstore(process: int | None) -> Spec:
        spec = store.get_tensorstore_spec(arrays_path / "any", process_idx=process)["kvstore"]
        del spec["path"]
        return spec

    run([store.combine_kvstores(kvstore(None), [kvstore(i) for i in range(process_count())])])


def save(data: PyTree, directory: str | os.PathLike[str], *, overwrite: bool = True,
         ts_specs: PyTree | None = None) -> None:
    """Write a pytree of arrays to a directory.

    The checkpoint that is there stays whole until the new one is, also if a process is killed
    meanwhile. Saves to one name take turns, also from different programs. With several processes,
    all call this for one shared place, and each writes shards that it has.

    Args:
      data: a pytree of arrays and None. With several processes, arrays that span them, or NumPy
        arrays, which process 0 writes. Its containers: see `serialize_pytreedef`.
      directory: whose parent must be there. A file, a device, a symbolic link, and a directory that
        is neither empty nor a checkpoint's are refused before anything is written. overwrite:
        whether a checkpoint may be there.
      ts_specs: a prefix of the structure of `data`: overrides in TensorStore's specifications of
        arrays; None is as it is. Codecs replace the checksum, unless they end
        with {"name": "crc32c"}.
    Returns: None, when all is on disk. TypeError for references, ValueError for other leaves and
      places, RuntimeError for a place without checkpoint, and in all processes if one fails.
      ImportError without the package tensorstore (the extra `checkpoint`).

    >>> import tempfile, olympus, olympus.numpy as onp
    >>> from olympus.experimental.array_serialization import pytree_serialization as ps
    >>> directory = tempfile.mkdtemp() + "/run"
    >>> ps.save({"w": onp.arange(4.0), "b": None}, directory)
    >>> ps.load(directory, olympus.sharding.SingleDeviceSharding(olympus.devices()[0]))
    {'b': None, 'w': Array([0., 1., 2., 3.], dtype=float32)}
    """
    _save(data, directory, overwrite, ts_specs, next(_saves))


def _save(data: PyTree, directory: str | os.PathLike[str], overwrite: bool, ts_specs: PyTree | None,
          number: int) -> None:
    paths, tree = tree_flatten_with_path(data)
    leaves = [x for _, x in paths]
    for path, x in paths:
        if is_ref(x):
            raise store.reference_given(f"save: {keystr(path)}:" if path else "save:", x)
    store.tensorstore()
    for path, x in paths:
        if _is_array(x):
            store.check_dtype(f"save: the array {keystr(path)}", x)
        else:
            raise ValueError(f"save: a leaf {x!r:.60} of type {type(x).__name__} given; For "
                             "serialization, all leaves must be either None or olympus.Array-like "
                             "objects; use np.asarray, or random.key_data of a key.")
    specs = _specs("save", tree, ts_specs)
    root, encoded = _local_path("save", directory), serialize_pytreedef(tree)
    with _saving:
        together = _Together(number)
        version, destination = together.agree(root)
        draft = Draft(root, version)
        first = process_index() == 0

        def prepare() -> None:
            if destination != str(root):
                raise ValueError(
                    f"save: {root} given in process {process_index()}, {destination} in process 0; "
                    "Saving to different locations on different hosts is not supported; give one "
                    "place, on a file system that all share.")
            if first:
                draft.enter(overwrite)

        def array_specs(process: int | None) -> list[Spec]:
            return _array_specs(draft.arrays, range(len(leaves)), specs, leaves, process)

        def write() -> None:
            context = store.new_context()
            run([store.async_serialize(x, spec, context=context) for x, spec in zip(
                leaves, array_specs(None if together.alone else process_index()), strict=True)])

        def finish() -> None:
            if leaves and not together.alone:
                _combine(draft.arrays)
            stored = _stored(root, draft.arrays, array_specs(None))
            draft.commit({**encoded, _LEAVES_KEY: list(map(_described, leaves, stored))})

        try:
            together.step("prepare", prepare)
            together.step("write", write)
            together.step("finish", finish if first else None)
        finally:
            draft.leave()


def _stored(root: Path, arrays: Path, specs: Sequence[Spec]) -> list[Spec]:
    """The stored metadata of each array; OlympusRuntimeError if a part of an array is missing."""
    if not specs:
        return []
    context = store.new_context()
    stored: list[Any]
    try:
        *stored, _ = run([*[store.stored_spec(spec, context) for spec in specs],
                          store.check_files(arrays, context)])
    except store.Unreadable as error:
        raise OlympusRuntimeError(
            f"save: {root} given; of the data written to {arrays}, {error.reason}: it was changed "
            "meanwhile; the checkpoint before is whole; let nothing else write there, and save "
            "again.") from error
    return stored


def _damaged(operation: str, root: Path, how: str) -> ValueError:
    return ValueError(f"{operation}: {root} given; a checkpoint as it was written is required, and "
                      f"{how}; restore it from a copy, or save it again.")


def _tree_text(operation: str, root: Path) -> bytes:
    if not (root / TREE).is_file():
        raise FileNotFoundError(f"{operation}: {root} given; the directory of a checkpoint is "
                                f"required, with a file {TREE}; look what `save` was given.")
    return (root / TREE).read_bytes()


def _read_tree(operation: str, root: Path, text: bytes
               ) -> tuple[Content, PyTreeDef, list[ShapeDtypeStruct]]:
    """The contents of the structure's file, the structure, and the types of the arrays."""
    try:
        content = decode(text)
    except Damaged as error:
        raise _damaged(operation, root, str(error)) from None
    except ValueError as error:
        raise ValueError(f"{operation}: {root} given; {error}.") from None
    try:
        leaves = list(map(_read_leaf, content[_LEAVES_KEY]))
        return content, decode_tree(content[_TREE_KEY], leaves), leaves
    except Unregistered:
        raise
    except Exception as error:
        if "version" in content:      # the checksum is right: an error of a user's class
            raise
        raise _damaged(operation, root, f"{TREE} is not the structure of a pytree") from error


def _read_arrays(root: Path, content: Content, tree: PyTreeDef, leaves: Sequence[ShapeDtypeStruct],
                 shardings: PyTree, mask: PyTree | None, ts_specs: PyTree | None) -> PyTree:
    """The pytree, of one version; Unreadable if that is damaged or another save has deleted it."""
    wanted = flatten_axes("load shardings", tree, shardings)
    if any(isinstance(s, Format) for s in wanted):
        raise NotImplementedError(
            "load: Deserialization with `Format` instead of `Sharding` is not currently supported; "
            "pass ShapeDtypeStruct(shape, dtype, sharding=format) instead.")
    chosen = flatten_axes("load mask", tree, True if mask is None else mask)
    ids = [i for i, keep in enumerate(chosen) if keep]
    arrays = root / ARRAYS / content.get("version", "")
    by_user = _specs("load", tree, ts_specs)
    stored = [{"dtype": x.dtype.name, "schema": {"domain": {"shape": list(x.shape)}},
               **written.get("spec", {})}
              for x, written in zip(leaves, content[_LEAVES_KEY], strict=True)]
    specs = _array_specs(
        arrays, ids, [store.merge_nested_ts_specs(stored[i], by_user[i]) for i in ids], None, None)

    async def read(i: int, spec: Spec, **shared: Any) -> Array:
        try:
            return await store.async_deserialize(wanted[i], spec, **shared)
        except store.Unreadable as error:
            path, leaf = tree_flatten_with_path(tree.unflatten(leaves))[0][i]
            name = f"the array {keystr(path)}, {leaf.dtype.name}{list(leaf.shape)}"
            raise store.Unreadable(name, f"in {name}: {error.reason}") from error.__cause__

    async def read_all() -> list[Array]:
        limit, context = store.ByteLimiter(_READ_BYTES), store.new_context()
        return await store.gather([read(i, spec, byte_limiter=limit, context=context)
                                   for i, spec in zip(ids, specs, strict=True)])

    values: list[Array | None] = [None] * len(leaves)
    if ids:
        try:
            with reading(arrays):
                found_values, = run([read_all()])
        except FileNotFoundError as error:
            raise store.Unreadable(arrays, "a part of it is missing") from error
        for i, x in zip(ids, found_values, strict=True):
            values[i] = x
    return tree.unflatten(values)


def load_pytreedef(directory: str | os.PathLike[str]) -> PyTree:
    """The structure of a checkpoint, with a `ShapeDtypeStruct` for each array.

    Args: directory: what `save` was given.
    Returns: A pytree. FileNotFoundError where there is no checkpoint, ValueError for a file of it
      that is not as it was written.

    >>> import tempfile, olympus, olympus.numpy as onp
    >>> from olympus.experimental.array_serialization import pytree_serialization as ps
    >>> directory = tempfile.mkdtemp() + "/run"
    >>> ps.save([onp.arange(3)], directory)
    >>> ps.load_pytreedef(directory)
    [ShapeDtypeStruct(shape=(3,), dtype=int32)]
    """
    operation = "load_pytreedef"
    root = _local_path(operation, directory)
    _, tree, leaves = _read_tree(operation, root, _tree_text(operation, root))
    return tree.unflatten(leaves)


def load(directory: str | os.PathLike[str], shardings: PyTree, *, mask: PyTree | None = None,
         ts_specs: PyTree | None = None) -> PyTree:
    """Read a pytree that `save` wrote, cut as it was or otherwise.

    Args:
      directory: what `save` was given.
      shardings: a prefix of the structure: how arrays are cut, each a sharding, or a
        `ShapeDtypeStruct` with a sharding or `Format`, to whose dtype it is cast. With several
        processes, each reads the shards of its own devices.
      mask: a prefix of the structure: False leaves arrays out, None is in their place.
      ts_specs: as for `save`.
    Returns: A pytree of arrays. FileNotFoundError where there is no checkpoint; ValueError for one
      that is not as it was written; TypeError for anything but a sharding. ImportError without the
      package tensorstore (the extra `checkpoint`).

    >>> import tempfile, olympus, olympus.numpy as onp
    >>> from olympus.experimental.array_serialization import pytree_serialization as ps
    >>> directory = tempfile.mkdtemp() + "/run"
    >>> where = olympus.sharding.SingleDeviceSharding(olympus.devices()[0])
    >>> ps.save({"a": onp.arange(3), "b": onp.ones(2)}, directory)
    >>> ps.load(directory, where, mask={"a": True, "b": False})
    {'a': Array([0, 1, 2], dtype=int32), 'b': None}
    """
    store.tensorstore()
    root = _local_path("load", directory)
    for _ in range(_TRIES):
        text = _tree_text("load", root)
        content, tree, leaves = _read_tree("load", root, text)
        try:
            return _read_arrays(root, content, tree, leaves, shardings, mask, ts_specs)
        except store.Unreadable as error:
            if _tree_text("load", root) == text:        # else another save has replaced it
                raise _damaged("load", root, error.reason) from error.__cause__
    raise OlympusRuntimeError(
        f"load: {root} given; other processes saved there {_TRIES} times while it was read, and "
        "deleted the data being read; load when they save less often, or let each save have a "
        "directory of its own.")


def nonblocking_save(data: PyTree, directory: str | os.PathLike[str], *, overwrite: bool = True,
                     ts_specs: PyTree | None = None) -> PyTreeFuture:
    """`save` while the program goes on; the arrays must not be donated or deleted meanwhile.

    Args: data, directory, overwrite, ts_specs: as for `save`.
    Returns: A future; `result()` waits, returns None and raises what `save` raises.

    >>> import tempfile, olympus, olympus.numpy as onp
    >>> from olympus.experimental.array_serialization import pytree_serialization as ps
    >>> directory = tempfile.mkdtemp() + "/run"
    >>> saving = ps.nonblocking_save([onp.arange(3)], directory)
    >>> saving.pytree
    [ShapeDtypeStruct(shape=(3,), dtype=int32)]
    >>> saving.result()
    """
    types = tree_map(lambda x: ShapeDtypeStruct(x.shape, x.dtype) if _is_array(x) else x, data)
    return PyTreeFuture(
        _threads.submit(_save, data, directory, overwrite, ts_specs, next(_saves)), types)


def nonblocking_load(directory: str | os.PathLike[str], shardings: PyTree, *,
                     mask: PyTree | None = None, ts_specs: PyTree | None = None) -> PyTreeFuture:
    """`load` while the program goes on.

    Args: directory, shardings, mask, ts_specs: as for `load`.
    Returns: A future; `result()` waits and returns what `load` does.

    >>> import tempfile, olympus, olympus.numpy as onp
    >>> from olympus.experimental.array_serialization import pytree_serialization as ps
    >>> directory = tempfile.mkdtemp() + "/run"
    >>> where = olympus.sharding.SingleDeviceSharding(olympus.devices()[0])
    >>> ps.save([onp.arange(3)], directory)
    >>> ps.nonblocking_load(directory, where).result()
    [Array([0, 1, 2], dtype=int32)]
    """
    types = load_pytreedef(directory)
    return PyTreeFuture(
        _threads.submit(load, directory, shardings, mask=mask, ts_specs=ts_specs), types)
