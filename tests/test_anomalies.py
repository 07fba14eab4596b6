"""A fault at every operation in turn: the next call is right, and nothing is lost."""

import errno
import itertools
import os
import shutil
import warnings
from functools import partial
from pathlib import Path

import anomaly
import numpy as np
import pytest
from anomaly import FULL, GONE, INTERRUPTED, INTERRUPTED_AFTER, Kind

import olympus
import olympus.numpy as onp
from olympus import export, lax
from olympus._src.base import config, lib
from olympus._src.command_line.main import main
from olympus._src.core.staging import StagingTrace
from olympus._src.export import files
from olympus._src.host.callbacks import FlatCallback
from olympus._src.jit import persistent, stages
from olympus._src.lowering import builder, module
from olympus._src.runtime import compile, disk_cache
from olympus.errors import RetraceWarning
from olympus.experimental import io_callback
from olympus.experimental.array_serialization import pytree_serialization as serialization

X = np.arange(5, dtype=np.float32)


@pytest.fixture
def compiled(monkeypatch):
    """A list that gets an item for each program that is compiled; XLA does so once for equal ones.
    """
    found, known, compile_ = [], {}, lib.compile

    def compile_once(client, module, devices, **kwargs):
        found.append(1)
        hosts = kwargs["host_callbacks"]
        if hosts and hosts is not lib.IN_THIS_THREAD:   # they are told apart by their places only
            return compile_(client, module, devices, **kwargs)
        key = str(module), bool(hosts)
        if key not in known:
            known[key] = compile_(client, module, devices, **kwargs)
        return known[key]

    monkeypatch.setattr(lib, "compile", compile_once)
    return found


# The directory of compiled programs --------------------------------------------------------------

OLD, NEW = bytes(range(256)) * 20, b"new" * 5000


def names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def age(folder):
    """What is being written was begun long ago, so that its writer is taken for dead; nobody has
    looked for such files since.
    """
    for path in folder.glob(".*.new"):
        os.utime(path, (1, 1))
    (folder / ".lock").unlink(missing_ok=True)


class Entries:
    """A directory with the entry `old`, made anew for each fault."""

    def __init__(self, folder, most=-1):
        self.folder, self.template = folder / "entries", folder / "template"
        disk_cache.Directory(self.template).put("old", OLD, 1.0)
        self.most = most

    def prepare(self):
        self.directory = disk_cache.Directory(self.folder, self.most)   # as a new process has it
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.template, self.folder)
        left = self.folder / ".x-cache.1-2.new"
        left.write_bytes(b"half")
        age(self.folder)

    def sweep(self, call, kinds=anomaly.OF_FILES):
        yield from anomaly.sweep(lambda fault: anomaly.files(self.folder, fault), self.prepare,
                                 call, kinds)

    def content(self, key):
        found = self.directory.get(key)
        return found and found[0]


def test_an_entry_that_is_written_is_whole_or_not_there(tmp_path):
    entries, count = Entries(tmp_path), 0

    def put(key, *entry):
        entries.directory.put(key, *entry)

    for found in entries.sweep(lambda: put("new", NEW, 2.0)):
        found.check()
        assert entries.content("old") == OLD, found
        assert entries.content("new") in (None, NEW), found
        put("new", NEW, 2.0)
        assert entries.content("new") == NEW, found
        age(entries.folder)
        put("next", NEW, 2.0)
        assert names(entries.folder) == [".lock", "new-cache", "next-cache", "old-cache"], found
        count += 1
    assert count > 20


def test_making_room_deletes_no_more_than_is_needed(tmp_path):
    entries = Entries(tmp_path)
    size = (entries.template / "old-cache").stat().st_size
    small = Entries(tmp_path, size + 100)
    for found in small.sweep(lambda: small.directory.put("new", NEW, 2.0)):
        found.check()
        held = [key for key in ("old", "new") if small.content(key) is not None]
        assert len(held) < 2, found
        small.directory.put("new", NEW, 2.0)
        assert small.content("old") is None and small.content("new") == NEW, found


@pytest.mark.parametrize("damaged", [False, True])
def test_an_entry_is_read_whole_or_refused(tmp_path, damaged):
    entries = Entries(tmp_path)
    if damaged:
        (entries.template / "old-cache").write_bytes(b"damaged")
    def get():
        try:
            return entries.content("old")
        except ValueError:      # as documented, of what is damaged
            return None

    for found in entries.sweep(get):
        found.check()
        assert found.error is not None or found.result == (None if damaged else OLD), found
        get()
        assert entries.content("old") == (None if damaged else OLD), found


def test_the_digest_of_jaxlib_is_right_whatever_fails(tmp_path, monkeypatch):
    entries, library = Entries(tmp_path), tmp_path / "jaxlib.so"
    library.write_bytes(b"code")
    monkeypatch.setattr(lib, "libraries", lambda: [library])
    threads = disk_cache._Writer()
    monkeypatch.setattr(disk_cache, "_writer", threads)

    def digest():
        try:
            return disk_cache._libraries.__wrapped__(str(entries.folder))
        finally:
            threads.wait(60)

    right = digest()
    for found in entries.sweep(digest):
        found.check()
        assert found.error is not None or found.result == right
        # The entry on disk is the new digest, or the next process computes it again.
        assert digest() == digest() == right, found
        age(entries.folder)
        entries.directory.put("next", NEW, 1.0)
        assert not list(entries.folder.glob("*.new")), found


# Programs from disk ------------------------------------------------------------------------------

@pytest.fixture
def folder(tmp_path, clear_caches, monkeypatch):
    """A directory of compiled programs, in use."""
    (tmp_path / "programs").mkdir()
    library = tmp_path / "programs" / "jaxlib.so"       # the real one takes a second to read
    library.write_bytes(b"code")
    monkeypatch.setattr(lib, "libraries", lambda: [library])
    # What stands in for files and for the compiler is no code of the program.
    users = persistent.code_of_users
    monkeypatch.setattr(persistent, "code_of_users", lambda code, names: (
        names["__name__"] not in ("anomaly", __name__) and users(code, names)))
    with (config.compilation_cache_dir(str(tmp_path / "programs")),
          config.persistent_cache_min_compile_time_secs(0)):
        disk_cache.reset_cache()
        yield tmp_path / "programs"
        disk_cache.reset_cache()


SOURCES = {"compiled": lambda: olympus.jit(lambda x: onp.cumsum(x * 3 + 1)),
           "persistent": lambda: olympus.jit(lambda x: onp.cumsum(x * 3 + 1), persist=True)}


@pytest.mark.parametrize("written", [False, True], ids=["written", "read"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_program_runs_whatever_the_disk_does(folder, compiled, source, written):
    def run():
        """As another process would, which has no executables."""
        compile._executables.cache_clear()
        compiled.clear()
        disk_cache.reset_cache()
        try:
            np.testing.assert_array_equal(SOURCES[source]()(X), np.cumsum(X * 3 + 1))
        finally:
            disk_cache.flush()
        return len(compiled)

    template = folder.with_name("template")
    if written:
        assert run() == 1
    shutil.copytree(folder, template)
    before = names(template)

    def prepare():
        shutil.rmtree(folder)
        shutil.copytree(template, folder)

    def call():
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", RetraceWarning)     # `run` makes functions anew
            run()
        return told

    for found in anomaly.sweep(lambda fault: anomaly.files(folder, fault), prepare, call):
        # A disk never fails a program; it is told of, once.
        if found.kind in (FULL, GONE):
            assert found.error is None, found
            assert len(found.result) <= 2, found
            told = [str(w.message) for w in found.result]
            assert [text for text in told if "persistent compilation cache" not in text] == []
        assert isinstance(found.error, type(found.kind.error()) | None), found
        assert set(names(folder)) >= set(before), found     # nothing that was there is lost
        assert "-cache" not in names(folder), found         # every entry has a key
        assert run() <= 1, found
        assert run() == 0, found


@pytest.mark.parametrize("source", SOURCES)
def test_an_entry_that_cannot_be_read_now_stays(folder, monkeypatch, source):
    def run():
        compile._executables.cache_clear()
        np.testing.assert_array_equal(SOURCES[source]()(X), np.cumsum(X * 3 + 1))
        disk_cache.flush()

    def refuse(*args):
        raise OSError(errno.EMFILE, "Too many open files")

    run()
    before = names(folder)
    monkeypatch.setattr(disk_cache.Directory, "get", refuse)
    monkeypatch.setattr(disk_cache.Directory, "put", refuse)
    with pytest.warns(UserWarning, match="Too many open files"):
        run()
    assert names(folder) == before


# Exported files ----------------------------------------------------------------------------------

COMPILER = """#!/bin/sh
for last; do :; done
printf 'half of' > "$last"
printf ' a module' >> "$last"
"""


def exported_files(folder):
    """What writes an export to a file, each with the files that it writes."""
    compiler = folder / "iree-compile"
    compiler.write_text(COMPILER)
    compiler.chmod(0o700)
    weights = np.arange(100, dtype=np.float32)
    fun = olympus.jit(lambda x: x * weights)
    exported = export.export(fun)(weights)
    (folder / "program.py").write_text("def double(x):\n    return x * 2\n")
    out = folder / "out"

    def by_command():
        if main(["export", f"{folder / 'program.py'}:double", "f32[3]", "-o",
                 str(out / "f.olympus")]):
            raise OSError("the command says that it failed")

    return {
        "onnx": (lambda: export.to_onnx(exported, out / "f.onnx"), ["f.onnx"]),
        "iree": (lambda: export.to_iree(exported, out / "f.vmfb", compiler=compiler), ["f.vmfb"]),
        "iree and parameters": (lambda: export.to_iree(
            exported, out / "f.vmfb", parameters=out / "f.safetensors", compiler=compiler),
            ["f.safetensors", "f.vmfb"]),
        "command line": (by_command, ["f.olympus"])}


def files_are_whole(out, written, call, kinds):
    """A sweep: each file is the one before or the new one, and nothing else is left."""
    call()
    assert names(out) == sorted(written)
    whole = [(out / name).read_bytes() for name in written]

    def content():
        return [(out / name).read_bytes() for name in written]

    def prepare():
        for name in written:
            (out / name).write_bytes(b"before")
        (out / ".olympus-0.new").write_bytes(b"half")
        age(out)

    for found in anomaly.sweep(lambda fault: anomaly.files(out, fault), prepare, call, kinds):
        found.check()
        assert all(c in (b"before", w) for c, w in zip(content(), whole, strict=True)), found
        assert found.error is not None or content() == whole, found
        age(out)
        call()
        assert content() == whole, found
        assert names(out) == sorted(written), found


@pytest.fixture
def out(tmp_path):
    (tmp_path / "out").mkdir()
    return tmp_path / "out"


@pytest.mark.parametrize("case", ["onnx", "iree", "iree and parameters", "command line"])
def test_an_exported_file_is_the_new_one_or_the_one_before(tmp_path, out, case):
    if case == "onnx":
        pytest.importorskip("onnx")
    call, written = exported_files(tmp_path)[case]
    files_are_whole(out, written, call, [FULL])


def test_a_file_is_replaced_whole_or_not_at_all(out):
    def write():
        with files.replacing(out / "f") as new:
            new.write_bytes(NEW)

    files_are_whole(out, ["f"], write, anomaly.OF_FILES)


def test_a_file_that_is_replaced_is_the_one_that_was_named(tmp_path):
    file, link = tmp_path / "file", tmp_path / "link"
    file.write_text("before")
    file.chmod(0o640)
    link.symlink_to(file)
    with files.replacing(link) as new:
        new.write_text("after")
    assert link.is_symlink() and file.read_text() == "after"
    assert file.stat().st_mode & 0o777 == 0o640
    with files.replacing("/dev/null") as new:
        new.write_text("nowhere")
    assert not Path("/dev/null").is_file()
    with (pytest.raises(FileNotFoundError, match=r"'.*absent/f'"),
          files.replacing(tmp_path / "absent" / "f") as new):
        new.write_text("nowhere")


def test_a_compiler_that_fails_leaves_the_module_before(tmp_path, out):
    call, (name,) = exported_files(tmp_path)["iree"]
    (tmp_path / "iree-compile").write_text(COMPILER + "echo error: no >&2\nexit 1\n")
    (out / name).write_bytes(b"before")
    with pytest.raises(RuntimeError, match="refused main:\nerror: no"):
        call()
    assert (out / name).read_bytes() == b"before"
    assert names(out) == [name]


# Tracing, lowering, compiling, callbacks ---------------------------------------------------------

# Where a program is made and run: each call of these may fail.
STEPS = [(StagingTrace, "__init__"), (StagingTrace, "close"), (compile, "lower_program"),
         (stages, "lower_program"), (module, "emit_function"), (builder, "lower_equations"),
         (lib, "compile"), (lib, "fastpath"), (lib, "execute"), (lib, "execute_with_tokens"),
         (FlatCallback, "__call__")]


class Boom(Exception):
    """What a test raises."""


OF_STEPS = (Kind("error", lambda: Boom("boom")), Kind("memory", lambda: MemoryError("no memory")),
            INTERRUPTED, INTERRUPTED_AFTER)
NEVER = Kind("never", Boom)


def ruled(x):
    """A sine with a rule of its own."""
    f = olympus.custom_vjp(lambda x: onp.sin(x))
    f.defvjp(lambda x: (onp.sin(x), x), lambda x, ct: (onp.cos(x) * ct,))
    return f(x)


def on_a_mesh(x):
    spec = olympus.sharding.PartitionSpec("i")
    return olympus.shard_map(lambda x: x + lax.psum(x.sum(), "i"), in_specs=spec, out_specs=spec,
                             mesh=olympus.make_mesh((1,), ("i",)))(x)


def total(f):
    return lambda x: f(x).sum()


def double(x):
    return np.asarray(x) * 2


def told(x):
    olympus.debug.callback(double, x)
    return x * 3


def waited(f, x):
    y = f(x)
    olympus.effects_barrier()
    return y


sizes = itertools.count(100)
# Functions that are made anew, and what NumPy says of them.
MADE = {
    "jit": (lambda: olympus.jit(lambda x: onp.sin(x) * 3), np.sin(X) * 3),
    "grad of jit": (lambda: olympus.grad(total(olympus.jit(lambda x: onp.sin(x)))), np.cos(X)),
    "jit of vmap of grad": (lambda: olympus.jit(olympus.vmap(olympus.grad(
        lambda x: onp.sin(x)))), np.cos(X)),
    "vmap of jit": (lambda: olympus.vmap(olympus.jit(lambda x: onp.sin(x) * 3)), np.sin(X) * 3),
    "scan": (lambda: partial(lambda step, x: lax.scan(step, 0.0, x)[0],
                             lambda c, x: (c + x * 3, c)), X.sum() * 3),
    "cond": (lambda: olympus.jit(lambda x: lax.cond(x[0] > 0, lambda x: onp.sin(x),
                                                    lambda x: onp.cos(x), x)), np.cos(X)),
    "custom_vjp": (lambda: olympus.grad(olympus.jit(total(lambda x: ruled(x)))), np.cos(X)),
    "checkpoint": (lambda: olympus.grad(total(olympus.checkpoint(lambda x: onp.sin(x)))),
                   np.cos(X)),
    "shard_map": (lambda: olympus.jit(lambda x: on_a_mesh(x)), X + X.sum()),
    "pure_callback": (lambda: olympus.jit(lambda x: olympus.pure_callback(double, x, x)), X * 2),
    "io_callback": (lambda: olympus.jit(lambda x: io_callback(
        double, olympus.ShapeDtypeStruct(x.shape, x.dtype), x, ordered=True)), X * 2),
    "debug.callback": (lambda: partial(waited, olympus.jit(told)), X * 3),
    "callbacks in a loop": (lambda: olympus.jit(lambda x: lax.fori_loop(
        0, 3, lambda i, x: olympus.pure_callback(double, x, x), x)), X * 8),
    "grad of a loop": (lambda: olympus.grad(lambda x: lax.fori_loop(
        0, 3, lambda i, x: x * 3, x).sum()), X * 0 + 27),
    "vjp": (lambda: olympus.vjp(olympus.jit(lambda x: onp.sin(x)), onp.zeros(5))[1], (X,)),
    "jvp": (lambda: lambda x: olympus.jvp(olympus.jit(lambda x: onp.sin(x)), (x,), (x,))[1],
            np.cos(X) * X),
    "eager": (lambda: partial(lambda ones, x: np.asarray(lax.neg(ones))[:5] * x,
                              np.ones(next(sizes), np.float32)), -X),
    "persist": (lambda: olympus.jit(lambda x: onp.sin(x) * 3, persist=True), np.sin(X) * 3),
    "ahead of time": (lambda: partial(lambda f, x: f.lower(x).compile()(x),
                                      olympus.jit(lambda x: onp.sin(x) * 3)), np.sin(X) * 3),
    "export": (lambda: partial(lambda f, x: export.export(f)(x).call(x),
                               olympus.jit(lambda x: onp.sin(x) * 3)), np.sin(X) * 3),
}


@pytest.mark.parametrize("program", MADE)
def test_a_step_that_fails_leaves_the_next_call_right(program, compiled, tmp_path, request):
    if program == "persist":
        request.getfixturevalue("folder")
    make, expected = MADE[program]
    call = None

    def prepare():
        nonlocal call
        call = make()
        compile._executables.cache_clear()
        disk_cache.flush()
        for entry in tmp_path.glob("programs/*-cache"):
            entry.unlink()

    def steps():
        """How many there are in a call that is right."""
        disk_cache.flush()
        fault = anomaly.Fault(NEVER, 0)
        with anomaly.calls(STEPS, fault):
            np.testing.assert_allclose(call(X), expected, rtol=1e-5)
        return fault.count

    for _ in range(2):      # the first time library functions are compiled, too
        prepare()
        first, second, third = steps(), steps(), steps()
    before, count = anomaly.state(), 0
    for found in anomaly.sweep(lambda fault: anomaly.calls(STEPS, fault), prepare,
                               lambda: np.asarray(call(X)), OF_STEPS):
        assert isinstance(found.error, type(found.kind.error())), found     # nothing hides it
        assert anomaly.state() == before, found
        assert steps() <= first, found
        # The call that failed counts as one: a body that it staged is kept from the next.
        assert steps() <= second and steps() == third, found
        count += 1
    assert count == len(OF_STEPS) * first > 0


def test_what_is_donated_is_there_until_the_program_ran(compiled):
    f = x = None

    def prepare():
        nonlocal f, x
        f, x = olympus.jit(lambda x: onp.sin(x) * 3, donate_argnums=0), onp.array(X)
        compile._executables.cache_clear()

    for found in anomaly.sweep(lambda fault: anomaly.calls(STEPS, fault), prepare, lambda: f(x),
                               OF_STEPS):
        if not x.is_deleted():
            np.testing.assert_allclose(f(x), np.sin(X) * 3, rtol=1e-5)
        else:
            assert found.where.startswith(("execute", "fastpath")), found
        np.testing.assert_allclose(f(onp.array(X)), np.sin(X) * 3, rtol=1e-5)


# Checkpoints -------------------------------------------------------------------------------------

BEFORE = {"w": np.arange(6, dtype=np.float32), "b": None}
AFTER = {"w": np.arange(9, dtype=np.int32), "b": (np.ones(2, np.float32),)}
LATER = {"w": np.zeros(3, np.float32)}
HERE = olympus.sharding.SingleDeviceSharding(olympus.devices()[0])


def same(found, tree):
    return olympus.tree.structure(found) == olympus.tree.structure(tree) and all(
        x.dtype == y.dtype and np.array_equal(x, y) for x, y in zip(
            olympus.tree.leaves(found), olympus.tree.leaves(tree), strict=True))


class Checkpoint:
    """A checkpoint of BEFORE, or an empty place, made anew for each fault."""

    def __init__(self, folder, saved):
        pytest.importorskip("tensorstore")
        self.folder, self.template = folder / "place", folder / "template"
        self.template.mkdir()
        if saved:
            serialization.save(BEFORE, self.template / "run")

    def prepare(self):
        shutil.rmtree(self.folder, ignore_errors=True)
        shutil.copytree(self.template, self.folder)

    def sweep(self, call, kinds):
        return anomaly.sweep(lambda fault: anomaly.files(self.folder, fault), self.prepare, call,
                             kinds)

    def save(self, tree):
        serialization.save(tree, self.folder / "run")

    def load(self):
        try:
            return serialization.load(self.folder / "run", HERE)
        except FileNotFoundError:
            return "nothing"

    def files(self):
        return sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*"))


@pytest.mark.parametrize("kind", anomaly.OF_FILES, ids=lambda kind: kind.name)
@pytest.mark.parametrize("saved", [False, True], ids=["first", "second"])
def test_a_checkpoint_is_the_new_one_or_the_one_before(tmp_path, saved, kind):
    checkpoint = Checkpoint(tmp_path, saved)
    for found in checkpoint.sweep(lambda: checkpoint.save(AFTER), [kind]):
        found.check()
        tree = checkpoint.load()
        assert same(tree, AFTER) or found.error is not None and (
            same(tree, BEFORE) if saved else tree == "nothing"), found
        checkpoint.save(LATER)
        assert same(checkpoint.load(), LATER), found
        assert names(checkpoint.folder) == ["run"], found
        assert len(names(checkpoint.folder / "run" / "array_store")) == 1, found


def test_a_checkpoint_is_read_right_or_not_at_all(tmp_path):
    checkpoint = Checkpoint(tmp_path, True)
    checkpoint.prepare()
    before = checkpoint.files()
    for found in checkpoint.sweep(checkpoint.load, anomaly.OF_FILES):
        found.check()
        assert found.error is not None or same(found.result, BEFORE), found
        assert checkpoint.files() == before, found
        assert same(checkpoint.load(), BEFORE), found
