"""Compiled programs on disk: who finds them, and that no fault of a disk gives a wrong answer."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
import types
import warnings
from pathlib import Path

import disk_cases
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.base import config, lib
from olympus._src.runtime import compile as compiling, disk_cache
from olympus.errors import RetraceWarning
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

    disk_cache.reset_cache()
    monkeypatch.setattr(lib, "compile", counted(compiled, lib.compile))
    monkeypatch.setattr(lib, "deserialize_executable", counted(loaded, lib.deserialize_executable))
    # Jaxlib's digest takes a second the first time.
    monkeypatch.setattr(disk_cache, "_libraries", lambda directory: "jaxlib")

    class Cache:
        path = tmp_path / "programs"

        def entries(self):
            disk_cache.flush()
            return sorted(self.path.glob("*-cache")) if self.path.exists() else []

        def counts(self):
            """(times compiled, times loaded) since the last call began."""
            return len(compiled) - self.before[0], len(loaded) - self.before[1]

        def run(self, fun=lambda x: onp.cumsum(x * 3 + 1), expected=EXPECTED):
            """(times compiled, times loaded) of one call in a process that knows no program."""
            olympus.clear_caches()
            self.before = len(compiled), len(loaded)
            np.testing.assert_array_equal(olympus.jit(lambda x: fun(x))(X), expected)
            disk_cache.flush()
            return self.counts()

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


def test_the_file_of_one_entry_is_not_taken_for_another(cache):
    cache.run()
    entry, = cache.entries()
    cache.run(lambda x: x * 7, X * 7)
    other = next(e for e in cache.entries() if e != entry)
    entry.write_bytes(other.read_bytes())
    with pytest.warns(UserWarning, match="ValueError: .*damaged .its checksum is wrong"):
        assert cache.run() == (1, 0)
    assert cache.run() == (0, 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_in_the_place_of_an_entry_is_not_waited_for(cache):
    cache.run()
    entry, = cache.entries()
    entry.unlink()
    os.mkfifo(entry)
    with pytest.warns(UserWarning, match="damaged .it is no regular file"):
        assert cache.run() == (1, 0)
    assert cache.run() == (0, 1)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_in_the_place_of_the_lock_is_not_waited_for(cache):
    cache.path.mkdir(0o700)
    os.mkfifo(cache.path / ".lock")
    with pytest.warns(UserWarning, match=r"Error writing .*it is no regular file"):
        cache.run()
        disk_cache.flush()
        olympus.jit(lambda x: x - 9)(X)
        disk_cache.flush()      # or the next test is told of the fault


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
    assert sum("persistent" in str(w.message) for w in told) == 1, [str(w.message) for w in told]
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
        # As if both programs had one key.
        directory, (key, from_key) = disk_cache.current(), [
            e.name.removesuffix("-cache") for e in (entry, other)]
        data, seconds = directory.get(from_key)
        directory.drop(key)
        directory.put(key, data, seconds)
        disk_cache._verified.clear()
        with pytest.warns(UserWarning, match="RuntimeError: .*another program"):
            assert cache.run() == (1, 1)


def test_a_program_that_is_found_calls_the_functions_of_its_own_process(cache):
    def calls(*functions):
        result = olympus.ShapeDtypeStruct((5,), "float32")
        return lambda x: sum(olympus.pure_callback(f, result, x) for f in functions)

    double, cosine = lambda x: np.asarray(x) * 2, lambda x: np.cos(x)
    assert cache.run(calls(double, cosine), X * 2 + np.cos(X)) == (1, 0)
    # To XLA this one is equal: it knows the functions by their places.
    assert cache.run(calls(cosine, np.negative), np.cos(X) - X) == (0, 1)
    with config.compilation_cache_check_contents(True):
        disk_cache._verified.clear()
        assert cache.run(calls(double, cosine), X * 2 + np.cos(X)) == (1, 1)


def test_a_program_that_is_found_raises_what_its_function_raises(cache):
    def raises(x):
        def fail(x):
            raise KeyError("boom")
        return olympus.pure_callback(fail, olympus.ShapeDtypeStruct((5,), "float32"), x)

    for times in ((1, 0), (0, 1)):
        with pytest.raises(KeyError, match="boom"):
            cache.run(raises, X)
        disk_cache.flush()      # the entry is written by another thread
        assert cache.counts() == times


def test_hits_and_misses_are_logged(cache, caplog):
    with config.explain_cache_misses(True), config.log_compiles(True):
        cache.run()
        cache.run()
        cache.run(lambda x: x - 2, X - 2)
        with config.persistent_cache_min_entry_size_bytes(1 << 20):
            cache.run(lambda x: x - 3, X - 3)
        with config.persistent_cache_min_compile_time_secs(1e5):
            cache.run(lambda x: x - 4, X - 4)
        olympus.jit(lambda x: olympus.debug.inspect_array_sharding(x, callback=str) or x)(X)
    assert "PERSISTENT COMPILATION CACHE MISS for 'jit__lambda'" in caplog.text
    assert "there is no entry of that name" in caplog.text
    assert "1 entries of that name are of other programs" in caplog.text
    assert "bytes) is less than threshold (1048576 bytes)" in caplog.text
    assert "Writing 'jit__lambda' to persistent compilation cache" in caplog.text
    assert "for 'jit__lambda' because it took < 100000.00 seconds to compile" in caplog.text
    assert "because it is inspected while it is compiled" in caplog.text
    assert "Persistent compilation cache hit for 'jit__lambda'" in caplog.text


def test_large_constants_are_not_written(cache, caplog, monkeypatch):
    """Regression: an entry of 100 MB of constants took longer to read than to compile."""
    monkeypatch.setattr(compiling, "_MOST_CONSTANTS", 1 << 20)
    large, small = (np.arange(n, dtype=np.float32) for n in (1 << 19, 1 << 17))
    with config.explain_cache_misses(True), caplog.at_level("WARNING", "olympus"):
        np.testing.assert_array_equal(olympus.jit(lambda x: x + large)(X[0]), X[0] + large)
    assert not cache.entries() and "its constants have 2 MB, more than 1" in caplog.text
    np.testing.assert_array_equal(olympus.jit(lambda x: x + small)(X[0]), X[0] + small)
    assert len(cache.entries()) == 1


def test_code_that_xla_could_not_read_again_is_not_written(cache, caplog):
    def nested(levels):
        def fun(x):
            return x + 2

        for _ in range(levels):
            fun = (lambda f: lambda x: lax.cond(x > 0, lambda y: f(y) * 0.5, lambda y: y, x))(fun)
        return olympus.jit(fun)

    def files():
        return [path for path in cache.entries() if "nested" in path.name or "lambda" in path.name]

    x = np.float32(1)
    assert nested(30)(x) == 3 / 2 ** 30 and len(files()) == 1
    with config.explain_cache_misses(True), caplog.at_level("WARNING", "olympus"):
        assert nested(31)(x) == 3 / 2 ** 31
    assert len(files()) == 1 and "31 loops, branches and calls" in caplog.text
    with pytest.raises(ValueError, match="at most 30 again"):
        serialize(nested(31).lower(x).compile())
    olympus.clear_caches()
    assert nested(30)(x) == 3 / 2 ** 30      # which can be read


def test_set_cache_dir_takes_a_path_and_reset_forgets_what_was_told(tmp_path):
    compilation_cache.set_cache_dir(tmp_path)
    assert olympus.config.olympus_compilation_cache_dir == str(tmp_path)
    compilation_cache.set_cache_dir(None)
    assert disk_cache.current() is None
    disk_cache._warned.add("fault")
    compilation_cache.reset_cache()
    assert not disk_cache._warned


# Where nobody named a directory ------------------------------------------------------------------

@pytest.mark.parametrize(("environment", "expected"), [
    ({"XDG_CACHE_HOME": "/cache", "HOME": "/home/me"}, "/cache/olympus"),
    ({"XDG_CACHE_HOME": "not/absolute", "HOME": "/home/me"}, "/home/me/.cache/olympus"),
    ({"HOME": "/home/me"}, "/home/me/.cache/olympus"),
    ({"HOME": "~"}, None)], ids=["cache home", "relative", "home", "no home"])
def test_the_users_own_directory_is_in_his_cache_folder(monkeypatch, environment, expected):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert config._users_cache() == expected


@pytest.fixture
def users(cache, monkeypatch):
    """The directory in use is one that nobody named; nothing that is wrong with it is told."""
    cache.path = cache.path / "cache" / "olympus"
    cache.path.parent.parent.mkdir()
    monkeypatch.setattr(config.compilation_cache_dir, "default", str(cache.path))
    with config.compilation_cache_dir(str(cache.path)), warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", RetraceWarning)     # `run` makes its function anew
        yield cache


def test_the_users_own_directory_is_made_for_him_alone(users):
    assert users.run() == (1, 0)
    assert users.run() == (0, 1)
    assert len(users.entries()) == 1
    for path in (users.path, users.path.parent):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700


def test_what_compiles_in_less_than_ten_milliseconds_is_not_kept(users, monkeypatch):
    now, takes, compile = [0.0], iter([0.009, 0.011]), lib.compile

    def timed(*args, **kwargs):
        now[0] += next(takes)
        return compile(*args, **kwargs)

    monkeypatch.setattr(lib, "compile", timed)
    clock = types.SimpleNamespace(monotonic=lambda: now[0], time=disk_cache.time.time)
    monkeypatch.setattr(disk_cache, "time", clock)
    option = config.persistent_cache_min_compile_time_secs
    with option(option.default):
        assert users.run() == users.run() == (1, 0)
        assert users.run() == (0, 1)


def no_home(path):
    path.parent.parent.rmdir()


def a_device_for_a_home(path):
    path.parent.parent.rmdir()
    path.parent.parent.symlink_to("/dev/null")


def a_file(path):
    path.parent.mkdir()
    path.write_bytes(b"")


def a_link_to_nothing(path):
    path.parent.mkdir()
    path.symlink_to(path.with_name("nothing"))


def nobodys_home(path):
    os.chown(path.parent.parent, 65534, -1)


def within(make):
    def made(path):
        path.parent.mkdir()
        make(path)
    return made


@pytest.mark.parametrize("make", [
    no_home, a_device_for_a_home, a_file, a_link_to_nothing, within(everybody_writes),
    within(a_link), pytest.param(within(nobody_owns_it), marks=AS_ROOT),
    pytest.param(nobodys_home, marks=AS_ROOT)],
    ids=["no home", "device", "file", "link to nothing", "everybody's", "link", "nobody's",
         "nobody's home"])
def test_the_users_own_directory_may_be_of_no_use(users, make):
    make(users.path)
    assert users.run() == users.run() == (1, 0)
    assert not users.path.is_dir() or not list(users.path.iterdir())


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EROFS, errno.EACCES, errno.EIO])
def test_the_users_own_directory_may_take_nothing(users, monkeypatch, number):
    users.run()

    def refuse(*args, **kwargs):
        raise OSError(number, os.strerror(number))

    with monkeypatch.context() as patch:
        for module, name in ((os, "utime"), (Path, "write_bytes")):
            patch.setattr(module, name, refuse)
        assert users.run() == (0, 1)
        assert users.run(lambda x: x + 1, X + 1) == (1, 0)
    assert sorted(p.name for p in users.path.iterdir()) == [".lock", users.entries()[0].name]


@pytest.mark.parametrize("change", [damage(cut=0), damage(flip=500)], ids=["empty", "content"])
def test_damage_of_the_users_own_directory_is_mended(users, change):
    users.run()
    entry, = users.entries()
    entry.write_bytes(change(entry.read_bytes()))
    assert users.run() == (1, 0)
    assert users.run() == (0, 1)


def test_who_asks_for_persist_is_told_why_the_users_own_directory_is_not_used(users):
    within(everybody_writes)(users.path)
    with pytest.warns(UserWarning, match="run code"):
        np.testing.assert_array_equal(olympus.jit(lambda x: x - 1, persist=True)(X), X - 1)


def test_programs_of_several_processes_are_kept_where_somebody_asks_only(users, monkeypatch):
    devices = tuple(types.SimpleNamespace(process_index=i, id=i, device_kind="cpu") for i in (0, 1))
    client = types.SimpleNamespace(platform="cpu", platform_version="")

    def load():
        made = disk_cache.load_or_compile("f", "digest", client, devices, lambda: "made")
        disk_cache.flush()
        return made

    monkeypatch.setattr(lib, "serialize_executable", str.encode)
    assert load() == ("made", None)
    assert not users.path.exists()
    monkeypatch.setattr(config.compilation_cache_dir, "default", None)
    assert load() == ("made", None)
    assert len(users.entries()) == 1


def test_what_xla_is_told_to_dump_is_compiled_unless_the_directory_is_named(users, monkeypatch):
    users.run()
    monkeypatch.setenv("XLA_FLAGS", "--xla_dump_to=/tmp/x")
    assert users.run() == users.run() == (1, 0)


def test_flags_of_a_file_are_part_of_the_key(cache, monkeypatch, tmp_path):
    cache.run()     # XLA reads its flags once
    flags = tmp_path / "flags"
    flags.write_text("--xla_cpu_enable_fast_math=true\n--xla_dump_to=/tmp/x")
    monkeypatch.setenv("XLA_FLAGS", f" {flags} ")
    assert cache.run() == (1, 0)
    assert cache.run() == (0, 1)
    flags.write_text("--xla_cpu_enable_fast_math=false")
    assert cache.run() == (1, 0)


def test_jaxlib_is_as_its_record_says_if_that_is_not_older(tmp_path):
    library = tmp_path / "jaxlib" / "a.so"
    info = tmp_path / f"jaxlib-{lib.jaxlib_version}.dist-info"
    for folder in (library.parent, info):
        folder.mkdir()
    library.write_bytes(b"code")
    right, = disk_cache._contents([library])
    record = info / "RECORD"
    for line, believed in (("jaxlib/a.so,sha256=x,4", True), ("jaxlib/a.so,sha256=x,5", False),
                           ("jaxlib/a.so,md5=x,4", False), ("jaxlib/a.so,,", False),
                           ("jaxlib/b.so,sha256=x,4", False), ("nonsense", False)):
        record.write_text(f"jaxlib/x.py,sha256=y,7\n{line}\n")
        os.utime(library, ns=(record.stat().st_mtime_ns,) * 2)
        assert disk_cache._contents([library]) == ["sha256=x" if believed else right]
    record.write_text("jaxlib/a.so,sha256=x,4")
    os.utime(library, ns=(record.stat().st_mtime_ns + 1,) * 2)
    assert disk_cache._contents([library]) == [right]


def test_the_record_of_jaxlib_has_the_digests_that_reading_gives(monkeypatch):
    small = [path for path in lib.libraries() if path.stat().st_size < 1 << 20]
    recorded = disk_cache._contents(small)
    monkeypatch.setattr(lib, "jaxlib_version", "none")
    assert disk_cache._contents(small) == recorded


# The thread --------------------------------------------------------------------------------------

@pytest.fixture
def slow(cache, monkeypatch):
    """A disk that writes when `go` is set."""
    go, put = threading.Event(), disk_cache.Directory.put

    def wait_and_put(*args):
        assert go.wait(60)
        return put(*args)

    monkeypatch.setattr(disk_cache.Directory, "put", wait_and_put)
    monkeypatch.setattr(disk_cache, "_writer", disk_cache._Writer())
    cache.go = go
    yield cache
    go.set()


def test_a_call_does_not_wait_for_the_disk(slow):
    for i in range(3):
        np.testing.assert_array_equal(olympus.jit(lambda x, i=i: x + i)(X), X + i)
    assert not slow.path.exists()
    slow.go.set()
    assert len(slow.entries()) == 3


def test_a_sort_is_kept_though_it_has_run_when_it_is_written(slow):
    olympus.jit(lambda x: x + 1)(X)     # which the disk is busy with
    found = olympus.jit(lambda x: onp.sort(-x))(X)
    np.testing.assert_array_equal(found, np.sort(-X))
    slow.go.set()
    assert len(slow.entries()) == 2


def test_a_disk_that_is_too_slow_is_spared(slow, monkeypatch):
    monkeypatch.setattr(disk_cache, "_MOST_WAITING", 1)
    for i in range(3):
        olympus.jit(lambda x, i=i: x + i)(X)
    slow.go.set()
    assert len(slow.entries()) == 1
    olympus.jit(lambda x: x - 1)(X)
    assert len(slow.entries()) == 2


def test_the_end_of_a_process_does_not_wait_for_ever(slow, monkeypatch):
    monkeypatch.setattr(disk_cache, "_END_SECONDS", 0.01)
    for i in range(3):
        olympus.jit(lambda x, i=i: x + i)(X)
    disk_cache.flush()
    slow.go.set()
    monkeypatch.setattr(disk_cache, "_END_SECONDS", 60)
    assert len(slow.entries()) == 1     # what was begun ends


def test_a_process_that_gets_no_thread_keeps_nothing(cache, monkeypatch):
    class NoThread(threading.Thread):
        def start(self):
            raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(disk_cache, "threading", types.SimpleNamespace(Thread=NoThread))
        assert cache.run() == cache.run() == (1, 0)
    assert cache.run() == (1, 0)
    assert cache.run() == (0, 1)


def test_what_the_thread_met_is_told_by_the_next_compilation(cache, monkeypatch):
    monkeypatch.setattr(disk_cache.Directory, "put", lambda *args: 1 / 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        olympus.jit(lambda x: x + 1)(X)
        disk_cache._writer.wait(60)
    with pytest.warns(UserWarning, match="Error writing .*ZeroDivisionError") as told:
        olympus.jit(lambda x: x + 2)(X)
    assert told[0].filename == __file__
    disk_cache._writer.wait(60)
    disk_cache._writer.faults.clear()       # of the second program: no other test is told


def test_a_file_system_without_locks_is_used(cache, monkeypatch):
    def refuse(*args):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(disk_cache.fcntl, "flock", refuse)
    assert cache.run() == (1, 0)
    assert cache.run() == (0, 1)
    directory = disk_cache.Directory(cache.path, 10_000)
    for i in range(20):
        directory.put(str(i), os.urandom(1000), 1.0)
    assert 0 < sum(entry.bytes for entry in directory.entries()) <= 10_000


def test_all_entries_are_looked_at_once_for_many_that_are_written(tmp_path, monkeypatch):
    looks, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: looks.append(path) or scandir(path))
    for i in range(10):     # as many processes would
        disk_cache.Directory(tmp_path, 1 << 20).put(str(i), os.urandom(1000), 1.0)
    assert looks == [tmp_path]


@pytest.mark.parametrize("note", [b"", b"nonsense", b"1", b"0 99999999999", b"0 0", b"\xff 1",
                                  b"1" * 99])
def test_the_lock_may_say_anything(tmp_path, note):
    directory = disk_cache.Directory(tmp_path, 5000)
    for i in range(4):
        directory.put(f"old{i}", os.urandom(1000), 1.0)
    (tmp_path / ".lock").write_bytes(note)
    for i in range(4):
        directory.put(f"new{i}", os.urandom(1000), 1.0)
    entries = directory.entries()
    assert sum(entry.bytes for entry in entries) <= 5000
    assert entries[-1].key == "new3"


# Processes ---------------------------------------------------------------------------------------

def start(case, directory, **environment):
    root = Path(__file__).parent.parent
    return subprocess.Popen(
        [sys.executable, disk_cases.__file__, case, directory], text=True, cwd=root,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        env={**os.environ, "OLYMPUS_ENABLE_COMPILATION_CACHE": "true", "PYTHONPATH": str(root),
             "TF_CPP_MIN_LOG_LEVEL": "2", **environment})


def run_eight(case, directory):
    processes = [start(case, directory) for _ in range(8)]
    for process in processes:
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors


@pytest.mark.slow
def test_eight_processes_at_once_agree(tmp_path):
    run_eight("several_programs", tmp_path)
    assert not list(tmp_path.glob(".*.new"))
    directory = disk_cache.Directory(tmp_path)
    assert all(directory.get(p.name.removesuffix("-cache")) for p in tmp_path.glob("*-cache"))


@pytest.mark.slow
def test_eight_processes_that_fill_a_directory_stay_within_its_bound(tmp_path):
    run_eight("fill", tmp_path)
    directory = disk_cache.Directory(tmp_path)
    total = sum(entry.bytes for entry in directory.entries())
    assert disk_cases.MOST * 3 // 4 < total <= disk_cases.MOST
    assert all(directory.get(entry.key) for entry in directory.entries())
    assert {p.name for p in tmp_path.iterdir() if not p.name.endswith("-cache")} == {".lock"}


@pytest.mark.slow
@pytest.mark.parametrize(("case", "status", "entries"), [
    ("ends", 0, 1), ("is_interrupted", -signal.SIGINT, 1), ("exits_at_once", 3, None),
    ("a_thread_goes_on", 0, 1), ("the_disk_hangs", 0, 0), ("forks", 0, 2)])
def test_a_process_may_end_in_any_way(tmp_path, case, status, entries):
    for _ in range(2):
        process = start(case, "users", XDG_CACHE_HOME=str(tmp_path),
                        OLYMPUS_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="0")
        printed, errors = process.communicate(timeout=120)
        assert process.returncode == status, errors
        assert printed == "right\n"
        assert status or not errors
        kept = list((tmp_path / "olympus").glob("jit_*-cache"))
        assert entries in (None, len(kept))
    assert not list(tmp_path.glob("olympus/.*.new"))


@pytest.mark.slow
@pytest.mark.parametrize("variable", [
    "OLYMPUS_ENABLE_COMPILATION_CACHE=false", "OLYMPUS_COMPILATION_CACHE_MAX_SIZE=0"])
def test_a_variable_turns_it_off(tmp_path, variable):
    name, value = variable.split("=")
    process = start("ends", "users", **{"XDG_CACHE_HOME": str(tmp_path), name: value})
    printed, errors = process.communicate(timeout=120)
    assert (printed, errors, process.returncode) == ("right\n", "", 0)
    assert not list(tmp_path.iterdir())


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
