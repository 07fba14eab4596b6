"""Writing arrays while the program goes on: `serialization.GlobalAsyncCheckpointManager`."""

from __future__ import annotations

import abc
import asyncio
import functools
import itertools
import threading
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import numpy as np

from ..base import monitoring
from ..base.errors import OlympusRuntimeError
from ..base.logs import LOGGER
from ..base.typing import Array, DTypeLike, R, Shape
from ..devices.devices import process_count, process_index
from ..job.state import current
from . import store
from .store import Cut, Spec

get_tensorstore_spec = functools.partial(store.get_tensorstore_spec, ocdbt=False, driver="zarr")
_saves = itertools.count()      # equal in all processes, which save in the same order


class BarrierTimeoutError(Exception):
    """Some processes did not write their part of a checkpoint in time."""


def is_remote_storage(tspec: Spec | str) -> bool:
    """Whether a specification of TensorStore's, or a URL, names a store of gs:// or s3://.

    Args: tspec: a dict or a str.

    >>> is_remote_storage("gs://bucket/a"), is_remote_storage({"kvstore": {"driver": "file"}})
    (True, False)
    """
    if isinstance(tspec, str):
        return tspec.startswith(("gs://", "s3://"))
    inner = tspec.get("base", tspec.get("kvstore"))
    return is_remote_storage(inner) if inner is not None else tspec.get("driver") in ("gcs", "s3")


class GlobalAsyncCheckpointManagerBase(abc.ABC):
    """The interface of all managers of checkpoints.

    >>> issubclass(GlobalAsyncCheckpointManager, GlobalAsyncCheckpointManagerBase)
    True
    """

    @abc.abstractmethod
    def check_for_errors(self) -> None:
        """Raise what writing has raised so far; does not wait."""

    @abc.abstractmethod
    def wait_until_finished(self) -> None:
        """Wait until all is written, in all processes."""

    @abc.abstractmethod
    def serialize(self, arrays: Sequence[Array | np.ndarray], tensorstore_specs: Sequence[Spec], *,
                  on_commit_callback: Callable[[], None]) -> None:
        """Begin to write arrays."""

    @abc.abstractmethod
    def deserialize(self, shardings: Sequence[Cut], tensorstore_specs: Sequence[Spec],
                    global_shapes: Sequence[Shape | None] | None = None,
                    dtypes: Sequence[DTypeLike | None] | None = None) -> Sequence[Array]:
        """Read arrays."""


class AsyncManager:
    """Waits in a thread until the begun saves are written, in all processes.

    Args: timeout_secs: how many seconds processes wait for each other.

    >>> AsyncManager(timeout_secs=60).check_for_errors()        # nothing is written yet
    """

    def __init__(self, timeout_secs: int = 300) -> None:
        self._timeout_in_ms = timeout_secs * 1000
        self._thread: threading.Thread | None = None
        self._exception: Exception | None = None
        self._key: str | None = None
        if process_count() > 1 and current.client is None:
            raise ValueError("AsyncManager: there are several processes and no job; Please "
                             "initialize the distributed system via "
                             "`olympus.distributed.initialize()` at the start of your program.")

    def __del__(self) -> None:
        if self._thread is not None and self._thread.is_alive():
            LOGGER.warning("%s: deleted while it writes, so that errors are lost; call "
                           "wait_until_finished() before.", type(self).__name__)

    def _start(self, futures: Sequence[object], on_commit: Callable[[], None] | None) -> None:
        self._key = f"olympus/checkpoint/{next(_saves)}"
        self._thread = threading.Thread(target=self._finish, name="olympus-checkpoint",
                                        args=(futures, on_commit, self._key))
        self._thread.start()

    def _finish(self, futures: Sequence[Any], on_commit: Callable[[], None] | None, key: str
                ) -> None:
        start = time.monotonic()
        try:
            for future in futures:
                future.result()
            several = process_count() > 1
            if several:
                current.client.wait_at_barrier(key, self._timeout_in_ms)
            if process_index() == 0:
                if on_commit is not None:
                    on_commit()
                if several:
                    current.client.key_value_set(key, "written")
            monitoring.record_event_duration_secs(
                "/olympus/checkpoint/write/async/thread_duration_sec", time.monotonic() - start)
        except Exception as error:
            self._exception = error

    def check_for_errors(self) -> None:
        """Raise what writing has raised so far, once; does not wait."""
        error, self._exception = self._exception, None
        if isinstance(error, OlympusRuntimeError) and "Barrier timed out" in str(error):
            raise BarrierTimeoutError(
                f"checkpoint: some processes did not write their part in time ({error}); look at "
                "the logs of the processes named, or give the manager a longer timeout_secs.")
        if error is not None:
            raise error

    def wait_until_finished(self) -> None:
        """Wait until all is written, in all processes, and raise what that raised."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check_for_errors()
        if process_count() > 1 and self._key is not None:
            current.client.blocking_key_value_get(self._key, self._timeout_in_ms)


class GlobalAsyncCheckpointManager(AsyncManager, GlobalAsyncCheckpointManagerBase):
    """Writes arrays to TensorStore while the program goes on, and reads them.

    Args: timeout_secs: how many seconds processes wait for each other.

    ImportError without the package tensorstore (the extra `checkpoint`).

    >>> import tempfile, olympus, olympus.numpy as onp
    >>> from olympus.experimental.array_serialization import serialization
    >>> manager = serialization.GlobalAsyncCheckpointManager()
    >>> path = tempfile.mkdtemp() + "/x"
    >>> manager.serialize_with_paths([onp.arange(4)], [path])
    >>> manager.wait_until_finished()
    >>> where = olympus.sharding.SingleDeviceSharding(olympus.devices()[0])
    >>> manager.deserialize_with_paths([where], [path])
    [Array([0, 1, 2, 3], dtype=int32)]
    """

    def serialize(self, arrays: Sequence[Array | np.ndarray], tensorstore_specs: Sequence[Spec], *,
                  on_commit_callback: Callable[[], None] | None = None, transaction: object = None
                  ) -> None:
        """Begin to write arrays, once earlier saves are written.

        Args:
          arrays: they may be deleted or donated when this returns.
          tensorstore_specs: where to; one for each array.
          on_commit_callback: called in process 0 when all have written: to rename a directory, say.
          transaction: TensorStore's, if it is to be part of one.
        """
        self.wait_until_finished()
        futures: list[Any] = []
        run([store.async_serialize(x, spec, futures, transaction=transaction)
             for x, spec in zip(arrays, tensorstore_specs, strict=True)])
        self._start(futures, on_commit_callback)

    def serialize_with_paths(self, arrays: Sequence[Array | np.ndarray], paths: Sequence[str], *,
                             on_commit_callback: Callable[[], None] | None = None,
                             transaction: object = None) -> None:
        """`serialize` to directories, one for each array."""
        self.serialize(arrays, list(map(get_tensorstore_spec, paths)),
                       on_commit_callback=on_commit_callback, transaction=transaction)

    def deserialize(self, shardings: Sequence[Cut], tensorstore_specs: Sequence[Spec],
                    global_shapes: Sequence[Shape | None] | None = None,
                    dtypes: Sequence[DTypeLike | None] | None = None, concurrent_gb: int = 32
                    ) -> list[Array]:
        """Read arrays, when earlier saves are written.

        Args:
          shardings: the sharding of each array, which may differ from the one it was written with.
          tensorstore_specs: the specifications of the arrays.
          global_shapes, dtypes: new shapes and dtypes, one for each array; None keeps them.
          concurrent_gb: how many gigabytes are read at once.
        """
        self.wait_until_finished()
        none = [None] * len(tensorstore_specs)

        async def read() -> list[Array]:
            limit = store.ByteLimiter(concurrent_gb * 10**9)
            return await store.gather([
                store.async_deserialize(*each, byte_limiter=limit) for each in zip(
                    shardings, tensorstore_specs, global_shapes or none, dtypes or none,
                    strict=True)])

        return run([read()])[0]

    def deserialize_with_paths(self, shardings: Sequence[Cut], paths: Sequence[str],
                               global_shapes: Sequence[Shape | None] | None = None,
                               dtypes: Sequence[DTypeLike | None] | None = None,
                               concurrent_gb: int = 32) -> list[Array]:
        """`deserialize` from directories, one for each array."""
        return self.deserialize(shardings, list(map(get_tensorstore_spec, paths)), global_shapes,
                                dtypes, concurrent_gb)


def run(coroutines: Sequence[Awaitable[R]]) -> list[R]:
    """The results of coroutines, also while an event loop runs already, as in a notebook."""
    results: list[R] = []
    failures: list[BaseException] = []

    def work() -> None:
        try:
            results.extend(asyncio.run(store.gather(coroutines)))
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=work, name="olympus-checkpoint-io")
    thread.start()
    try:
        thread.join()
    except BaseException:       # an interrupt: a running write ends before its files are deleted
        thread.join()
        raise
    if failures:
        raise failures.pop()
    return results
