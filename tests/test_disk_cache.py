"""Compiled programs on disk: who finds them, and that no fault of a disk gives a wrong answer."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import disk_cases
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus._src.backend import disk_cache
from olympus._src.base import config, lib
from olympus.experimental.compilation_cache import compilation_cache
from olympus.experimental.serialize_executable import deserialize_and_load, serialize

X = np.arange(5, dtype=np.float32)
EXPECTED = np.cumsum(X * 3 + 1)


@pytest.fixture
def cache(tmp_path, clear_caches, monkeypatch):
    """A directory in use, and how often XLA compiles."""
    compiled, loaded = [], []

    def counted(count, fun):
        def call(*args, **kwargs):
            count.append(1)
            return fun(*args, **kwargs)
        return call

    monkeypatch.setattr(lib, "compile", counted(compiled, lib.compile))
    monkeypatch.setattr(lib, "deserialize_executable", counted(loaded, lib.deserialize_executable))
    # Jaxlib's digest takes a second the first time.
    monkeypatch.setattr(disk_cache, "_libraries", lambda directory: "jaxlib")

    class Cache:
        path = tmp_path / "programs"

        def entries(self):
            disk_cache.flush()
            return sorted(self.path.glob("*-cache")) if self.path.exists() else []

        def run(self, fun=lambda x: onp.cumsum(x * 3 + 1), expected=EXPECTED):
            """(times compiled, times loaded) of one call in a process that knows no program."""
            olympus.clear_caches()
            before = len(compiled), len(loaded)
            np.testing.assert_array_equal(olympus.jit(lambda x: fun(x))(X), expected)
            disk_cache.flush()
            return len(compiled) - before[0], len(loaded) - before[1]

    disk_cache._told.clear()
    disk_cache._verified.clear()
    found = Cache()
    with (config.compilation_cache_dir(str(found.path)),
          config.persistent_cache_min_compile_time_secs(0)):
        yield found


def test_a_program_is_found_again(cache):
    assert cache.run() == (1, 0)
    assert cache.run() == (0, 1)
    entry, = cache.entries()
    assert entry.name.startswith("jit__lambda-")
    assert stat.S_IMODE(cache.path.stat().st_mode) == 0o700     # who may write here, runs code


@pytest.mark.parametrize("option", [
    config.compilation_cache_dir(None), config.enable_compilation_cache(False),
    config.compilation_cache_max_size(0), config.persistent_cache_min_compile_time_secs(60),
    config.persistent_cache_min_entry_size_bytes(1 << 20)],
    ids=["directory", "enable", "max_size", "min_compile_time", "min_entry_size"])
def test_nothing_is_written_where_an_option_says_so(cache, option):
    with option:
        assert cache.run() == cache.run() == (1, 0)
    assert not cache.entries()


def test_the_cache_costs_nothing_while_it_is_off(cache, monkeypatch):
    monkeypatch.setattr(disk_cache, "load_or_compile", None)
    with config.compilation_cache_dir(None):
        assert cache.run() == (1, 0)


def damage(cut=None, flip=None):
    def change(data):
        data = bytearray(data)[:cut]
        if flip is not None:
            data[flip] ^= 16
        return bytes(data)
    return change


DAMAGES = {"empty": damage(cut=0), "no head": damage(cut=20), "half": damage(cut=1000),
           "last byte": damage(cut=-1), "magic": damage(flip=0), "digest": damage(flip=10),
           "time": damage(flip=41), "content": damage(flip=500), "longer": lambda data: data + b"x",
           "another file": lambda data: b"#!/bin/sh\n" * 100}


@pytest.mark.parametrize("change", DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_entry_is_told_of_and_made_anew(cache, change):
    cache.run()
    entry, = cache.entries()
    entry.write_bytes(change(entry.read_bytes()))
    with pytest.warns(UserWarning, match="Error reading persistent compilation cache entry for "
                                         "'jit__lambda': ValueError: .*damaged"):
        assert cache.run() == (1, 0)
    assert cache.run() == (0, 1)


@pytest.mark.parametrize("content", [b"", b"no executable" * 50])
def test_an_entry_that_is_no_executable_is_replaced(cache, content):
    cache.run()
    entry, = cache.entries()
    directory, key = disk_cache.current(), entry.name.removesuffix("-cache")
    directory.drop(key)
    directory.put(key, content, 1.0)
    with pytest.warns(UserWarning, match="Error reading persistent compilation cache entry"):
        assert cache.run() == (1, 1)
    assert cache.run() == (0, 1)


def test_a_full_disk_is_told_of_once(cache):
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (500, hard))
    try:
        with pytest.warns(UserWarning, match="Error writing persistent .*File too large") as told:
            assert cache.run() == (1, 0)
            assert cache.run(lambda x: x + 1, X + 1) == (1, 0)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert len(told) == 1
    assert [p.name for p in cache.path.iterdir()] == [".lock"]
    assert cache.run() == (1, 0)
    assert cache.run() == (0, 1)


@pytest.mark.parametrize("where", ["/proc/olympus", "/dev/null/programs"])
def test_a_directory_that_cannot_be_made_is_told_of(cache, where):
    with config.compilation_cache_dir(where):
        with pytest.warns(UserWarning, match="persistent compilation cache"):
            assert cache.run() == (1, 0)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert cache.run() == (1, 0)


def test_a_directory_that_became_read_only_is_read(cache, monkeypatch):
    cache.run()

    def refuse(*args, **kwargs):
        raise OSError(errno.EROFS, "Read-only file system")

    for module, name in ((os, "utime"), (Path, "write_bytes"), (Path, "unlink"), (Path, "mkdir")):
        monkeypatch.setattr(module, name, refuse)
    assert cache.run() == (0, 1)
    with pytest.warns(UserWarning, match="Error writing .*Read-only file system"):
        assert cache.run(lambda x: x + 1, X + 1) == (1, 0)


def test_errors_are_raised_if_wanted(cache):
    with (config.raise_persistent_cache_errors(True),
          config.compilation_cache_dir("/proc/olympus"), pytest.raises(OSError, match="olympus")):
        cache.run()


def test_an_executable_that_was_found_is_serialized_with_its_code(cache):
    def f(x):
        return onp.sort(x)[::-1]

    for _ in range(2):
        olympus.clear_caches()
        compiled = olympus.jit(f).lower(X).compile()
    data = serialize(compiled)
    for _ in range(2):      # what is loaded from bytes is serialised again, too
        again = deserialize_and_load(*data)
        np.testing.assert_array_equal(again(X), X[::-1])
        data = serialize(again)


def everybody_writes(path):
    path.mkdir()
    path.chmod(0o777)


def the_group_writes(path):
    path.mkdir()
    path.chmod(0o770)


def a_link(path):
    everybody_writes(path.with_name("elsewhere"))
    path.symlink_to(path.with_name("elsewhere"))


def nobody_owns_it(path):
    path.mkdir(mode=0o700)
    os.chown(path, 65534, -1)


def nobody_owns_the_link(path):
    path.with_name("elsewhere").mkdir(mode=0o700)
    path.symlink_to(path.with_name("elsewhere"))
    os.chown(path, 65534, -1, follow_symlinks=False)


AS_ROOT = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")


@pytest.mark.parametrize("make", [
    everybody_writes, the_group_writes, a_link, pytest.param(nobody_owns_it, marks=AS_ROOT),
    pytest.param(nobody_owns_the_link, marks=AS_ROOT)])
def test_a_directory_that_others_can_write_to_is_refused(cache, make):
    make(cache.path)
    with pytest.warns(UserWarning, match="is required; .*run code") as told:
        assert disk_cache.current() is disk_cache.current() is None
    assert [str(cache.path) in str(w.message) for w in told] == [True]
    with config.raise_persistent_cache_errors(True), pytest.raises(PermissionError, match="code"):
        disk_cache.current()


def test_programs_are_compiled_where_the_directory_is_refused(cache):
    everybody_writes(cache.path)
    with pytest.warns(UserWarning, match="run code") as told:
        assert cache.run() == cache.run() == (1, 0)
        olympus.jit(onp.sin, persist=True)(X)
    assert len(told) == 1
    assert not list(cache.path.iterdir())


@AS_ROOT
def test_an_entry_of_another_user_is_not_read(cache):
    cache.run()
    entry, = cache.entries()
    os.chown(entry, 65534, -1)
    with pytest.warns(UserWarning, match="PermissionError: .* belongs to another user"):
        assert cache.run() == (1, 0)


def test_a_lock_that_is_never_given_back_is_told_of(cache, monkeypatch):
    monkeypatch.setattr(disk_cache, "_LOCK_SECONDS", 0)
    cache.path.mkdir()
    with disk_cache.current()._locked(), pytest.warns(
            UserWarning, match=r"TimeoutError: .*\.lock has been held"):
        assert cache.run() == (1, 0)
    assert cache.run() == (1, 0)
    assert cache.run() == (0, 1)


def test_the_least_recently_used_entries_go(cache):
    programs = [(lambda x, i=i: x * i + 1, X * i + 1) for i in range(2, 6)]
    cache.run(*programs[0])
    size = cache.entries()[0].stat().st_size
    with config.compilation_cache_max_size(int(3.5 * size)):
        for program in programs[1:3]:
            cache.run(*program)
        for i, entry in enumerate(cache.entries()):
            os.utime(entry, (i, i))     # used long ago; the one that is read now is not
        assert cache.run(*programs[0]) == (0, 1)
        assert cache.run(*programs[3]) == (1, 0)
        assert cache.run(*programs[0]) == (0, 1)
        assert cache.run(*programs[3]) == (0, 1)
        assert len(cache.entries()) == 3
    with config.compilation_cache_max_size(10), pytest.warns(UserWarning, match="exceeds"):
        cache.run(lambda x: x - 1, X - 1)


def test_what_a_dead_writer_left_is_deleted(cache, monkeypatch):
    cache.path.mkdir()
    old, new = cache.path / ".k-cache.1-2.new", cache.path / ".l-cache.3-4.new"
    for file in (old, new):
        file.write_bytes(b"half")
    os.utime(old, (1, 1))
    cache.run()
    assert new.exists()
    assert not old.exists()
    # In the same process, too, once another file may have lost its writer.
    os.utime(new, (1, 1))
    monkeypatch.setattr(disk_cache, "_LOOK_SECONDS", 0)
    cache.run(lambda x: x * 5, X * 5)
    assert not new.exists()


def test_entries_of_another_machine_build_or_setting_are_not_taken(cache, monkeypatch):
    cache.run()
    for change in (lambda m: m.setattr(disk_cache, "_cpu_features", lambda: "sse2"),
                   lambda m: m.setattr(disk_cache, "_libraries", lambda directory: "other"),
                   lambda m: m.setattr(disk_cache, "__version__", "0"),
                   lambda m: m.setattr(lib, "jaxlib_version", "0.0.0"),
                   lambda m: m.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")):
        with monkeypatch.context() as m:
            change(m)
            assert cache.run() == (1, 0)
    with monkeypatch.context() as m:
        m.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/x --xla_force_host_platform_device_count=1")
        assert cache.run() == (0, 1)


def test_compiler_options_and_locations_are_part_of_the_key(cache):
    def run(**options):
        olympus.clear_caches()
        olympus.jit(lambda x: onp.sin(x), **options)(X)
        return len(cache.entries())

    assert run() == 1
    assert run(compiler_options={"xla_cpu_enable_fast_math": True}) == 2
    assert run(compiler_options={"xla_cpu_enable_fast_math": True}) == 2
    with config.compilation_cache_include_metadata_in_key(True):
        assert run() == 3


def test_jaxlib_is_read_once_for_a_directory(tmp_path, monkeypatch):
    library = tmp_path / "libjax.so"
    library.write_bytes(b"code")
    monkeypatch.setattr(lib, "libraries", lambda: [library])
    directory = str(tmp_path / "programs")
    first = disk_cache._libraries.__wrapped__(directory)
    disk_cache.flush()
    monkeypatch.setattr(disk_cache.hashlib, "file_digest", None)
    assert disk_cache._libraries.__wrapped__(directory) == first
    monkeypatch.undo()
    monkeypatch.setattr(lib, "libraries", lambda: [library])
    library.write_bytes(b"other code")
    assert disk_cache._libraries.__wrapped__(directory) != first


def test_contents_are_checked(cache):
    cache.run()
    entry, = cache.entries()
    with config.compilation_cache_check_contents(True):
        disk_cache._verified.clear()
        assert cache.run() == (1, 1)    # compiled, and loaded to be compared
        assert cache.run() == (0, 1)
        cache.run(lambda x: x * 7, X * 7)
        other = next(e for e in cache.entries() if e != entry)
        entry.write_bytes(other.read_bytes())
        disk_cache._verified.clear()
        with pytest.warns(UserWarning, match="RuntimeError: .*another program"):
            assert cache.run() == (1, 1)


def test_programs_that_call_python_are_not_kept(cache):
    def f(x):
        result = olympus.ShapeDtypeStruct((5,), "float32")
        return olympus.pure_callback(lambda x: np.asarray(x) * 2, result, x)

    for _ in range(2):
        assert cache.run(f, X * 2)[0] == 1
    assert not cache.entries()


def test_hits_and_misses_are_logged(cache, caplog):
    with config.explain_cache_misses(True), config.log_compiles(True):
        cache.run()
        cache.run()
        cache.run(lambda x: x - 2, X - 2)
        with config.persistent_cache_min_entry_size_bytes(1 << 20):
            cache.run(lambda x: x - 3, X - 3)
        with config.persistent_cache_min_compile_time_secs(1e5):
            cache.run(lambda x: x - 4, X - 4)
        cache.run(lambda x: olympus.pure_callback(np.cos, X, x), np.cos(X))
    assert "PERSISTENT COMPILATION CACHE MISS for 'jit__lambda'" in caplog.text
    assert "there is no entry of that name" in caplog.text
    assert "1 entries of that name are of other programs" in caplog.text
    assert "bytes) is less than threshold (1048576 bytes)" in caplog.text
    assert "Writing 'jit__lambda' to persistent compilation cache" in caplog.text
    assert "for 'jit__lambda' because it took < 100000.00 seconds to compile" in caplog.text
    assert "because it uses host callbacks" in caplog.text
    assert "Persistent compilation cache hit for 'jit__lambda'" in caplog.text


def test_set_cache_dir_takes_a_path_and_reset_forgets_what_was_told(tmp_path):
    compilation_cache.set_cache_dir(tmp_path)
    assert olympus.config.olympus_compilation_cache_dir == str(tmp_path)
    compilation_cache.set_cache_dir(None)
    assert disk_cache.current() is None
    disk_cache._told.add("fault")
    compilation_cache.reset_cache()
    assert not disk_cache._told


# Processes ---------------------------------------------------------------------------------------

def start(case, directory, **environment):
    root = Path(__file__).parent.parent
    return subprocess.Popen(
        [sys.executable, disk_cases.__file__, case, directory], text=True, cwd=root,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "OLYMPUS_ENABLE_COMPILATION_CACHE": "true", "PYTHONPATH": str(root),
             **environment})


@pytest.mark.slow
def test_eight_processes_at_once_agree(tmp_path):
    processes = [start("several_programs", tmp_path) for _ in range(8)]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    assert not list(tmp_path.glob(".*.new"))
    directory = disk_cache.Directory(tmp_path)
    assert all(directory.get(p.name.removesuffix("-cache")) for p in tmp_path.glob("*-cache"))


@pytest.mark.slow
def test_a_writer_may_be_killed_at_any_time(tmp_path):
    directory = disk_cache.Directory(tmp_path)
    for _ in range(3):
        process = start("write_for_ever", tmp_path)
        process.stdout.readline()
        while len(list(tmp_path.glob("*-cache"))) < 3:
            pass
        process.send_signal(signal.SIGKILL)
        process.communicate()
        entries = list(tmp_path.glob("*-cache"))
        assert entries
        for entry in entries:
            assert directory.get(entry.name.removesuffix("-cache")) is not None
        directory.put("after", b"x", 1.0)       # the dead hold no lock
        directory.drop("after")


@pytest.mark.slow
def test_what_was_found_in_the_cache_leaves_the_process_whole_by_every_door(tmp_path):
    for _ in range(3):
        process = start("every_door", tmp_path / "programs")
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors


@pytest.mark.slow
def test_a_program_of_several_devices_is_found_with_its_shardings(tmp_path):
    flags = os.environ.get("XLA_FLAGS", "") + " --xla_force_host_platform_device_count=8"
    process = start("sharded", tmp_path, XLA_FLAGS=flags)
    _, errors = process.communicate(timeout=300)
    assert process.returncode == 0, errors
