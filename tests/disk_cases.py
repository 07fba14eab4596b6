"""What processes of tests/test_disk_cache.py do: `disk_cases.py CASE DIRECTORY`."""

import os
import sys
import threading
from pathlib import Path

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.base import lib
from olympus._src.runtime import disk_cache
from olympus.experimental.serialize_executable import deserialize_and_load, serialize
from olympus.sharding import Mesh, NamedSharding, PartitionSpec


def several_programs():
    """Eight programs, by whoever comes first; the answers are known."""
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    for i in range(8):
        found = olympus.jit(lambda x, i=i: onp.sum(x * 2 + i, axis=0))(x)
        np.testing.assert_array_equal(found, (x * 2 + i).sum(0))


def sharded():
    """A program for many devices, with the shardings of the process that compiled it."""
    mesh = Mesh(np.array(olympus.devices()), "x")
    x = olympus.device_put(np.arange(16, dtype=np.float32),
                           NamedSharding(mesh, PartitionSpec("x")))

    def f(x):
        total = onp.cumsum(x)
        return total, lax.with_sharding_constraint(x * 2, NamedSharding(mesh, PartitionSpec()))

    def results():
        olympus.clear_caches()
        return [[(np.asarray(y).tolist(), str(y.sharding), y.aval)
                 for y in olympus.jit(f, **options)(x)] for options in ({}, {"persist": True})]

    before, hits, load = results(), [], lib.deserialize_executable
    lib.deserialize_executable = lambda *args, **kwargs: hits.append(1) or load(*args, **kwargs)
    assert results() == before
    assert len(hits) == 2


def every_door():
    """One program by all ways that lead out of a process, and what earlier processes left there.

    The first process only compiles: the second one finds its executable, and makes the other forms
    of what it found.
    """
    left = Path(sys.argv[2] + ".doors")
    x = np.array([3, 1, 2, 5, 4], np.float32)

    def f(x):
        return onp.sort(x)[::-1] + onp.arange(5)

    def check(call):
        np.testing.assert_array_equal(call(x), [5, 5, 5, 5, 5])

    check(olympus.jit(f))
    if not left.exists():
        left.mkdir()
        (left / "export").write_bytes(olympus.export.export(olympus.jit(f))(x).serialize())
        return
    check(olympus.export.deserialize((left / "export").read_bytes()).call)
    check(olympus.jit(f, persist=True))
    compiled = left / "compiled"
    if compiled.exists():
        data = compiled.read_bytes(), *trees(f, x)
        check(deserialize_and_load(*data))
        check(deserialize_and_load(*serialize(deserialize_and_load(*data))))
    compiled.write_bytes(serialize(olympus.jit(f).lower(x).compile())[0])


def trees(f, *args):
    lowered = olympus.jit(f).lower(*args)
    return lowered.in_tree, lowered.out_tree


def write_for_ever():
    """Until somebody kills it."""
    directory, data = disk_cache.Directory(sys.argv[2], 1 << 20), bytes(range(256)) * 2000
    print("writing", flush=True)
    for i in range(10**9):
        directory.put(f"{i % 50}", data + str(i).encode(), 1.0)
        directory.drop(f"{(i + 25) % 50}")


MOST = 200_000


def fill():
    """Three times as much as the directory may have, by each of several processes."""
    directory = disk_cache.Directory(sys.argv[2], MOST)
    for i in range(150):
        directory.put(f"{os.getpid()}-{i}", os.urandom(4000), 1.0)


# The user's own directory: processes that compile, and their ends --------------------------------

def ends(n=2):
    """A process compiles a program, and ends."""
    x = np.arange(3, dtype=np.float32)
    np.testing.assert_array_equal(olympus.jit(lambda x: x * n)(x), x * n)
    print("right", flush=True)


def is_interrupted():
    ends()
    raise KeyboardInterrupt


def exits_at_once():
    ends()
    os._exit(3)


def a_thread_goes_on():
    """It compiles while Python waits for it."""
    def later():
        threading.main_thread().join()
        ends()

    threading.Thread(target=later).start()


def the_disk_hangs():
    """The thread writes until Python takes it away."""
    disk_cache._END_SECONDS = 0.1
    disk_cache.Directory.put = lambda *args: threading.Event().wait()
    ends()


def forks():
    """A child is forked while the thread has the lock; either goes on, and they share no lock."""
    directory = disk_cache.current()
    directory.make()
    held, go = threading.Event(), threading.Event()

    def hold():
        with directory._locked():
            held.set()
            go.wait()

    disk_cache._writer.add(directory, "", 1, hold)
    held.wait()
    child = os.fork()
    if child == 0:
        assert not disk_cache._locks
        ends()
        sys.exit()
    go.set()
    disk_cache._LOCK_SECONDS = 0
    olympus.jit(lambda x: x - 5)(2.0)
    disk_cache.flush()
    assert os.waitpid(child, 0)[1] == 0


if __name__ == "__main__":
    if sys.argv[2] != "users":
        olympus.config.update("olympus_compilation_cache_dir", sys.argv[2])
        olympus.config.update("olympus_persistent_cache_min_compile_time_secs", 0)
        olympus.config.update("olympus_raise_persistent_cache_errors", True)
    globals()[sys.argv[1]]()
