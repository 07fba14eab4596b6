"""A fault at every operation in turn: the next call is right, and nothing is lost."""

import contextlib
import os
import shutil
import warnings
from pathlib import Path

import anomaly
import numpy as np
import pytest
from anomaly import FULL, GONE, INTERRUPTED, INTERRUPTED_AFTER, KILLED

import olympus
import olympus.numpy as onp
from olympus import export
from olympus._src.backend import disk_cache
from olympus._src.backend.compile import _executables
from olympus._src.base import config, lib
from olympus._src.command_line.main import main
from olympus._src.export import files
from olympus._src.transforms import persistent

X = np.arange(5, dtype=np.float32)


# The directory of compiled programs --------------------------------------------------------------

OLD, NEW = bytes(range(256)) * 20, b"new" * 5000


def names(folder):
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def age(folder):
    """What is being written was begun long ago, so that its writer is taken for dead."""
    for path in folder.glob(".*.new"):
        os.utime(path, (1, 1))


class Entries:
    """A directory with the entry `old`, made anew for each fault."""

    def __init__(self, folder, most=-1):
        self.folder, self.template = folder / "entries", folder / "template"
        disk_cache.Directory(self.template).put("old", OLD, 1.0)
        self.directory = disk_cache.Directory(self.folder, most)

    def prepare(self):
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
    put = entries.directory.put
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


def test_a_note_is_right_whatever_fails(tmp_path):
    entries = Entries(tmp_path)
    note = entries.directory.note
    for found in entries.sweep(lambda: note("libraries", lambda: "digest")):
        found.check()
        assert found.error is not None or found.result == "digest"
        # What was written is what was made, or it is made again.
        assert note("libraries", lambda: "other") in ("digest", "other")
        assert note("libraries", lambda: "third") in ("digest", "other")
        age(entries.folder)
        entries.directory.put("next", NEW, 1.0)
        assert not list(entries.folder.glob("*.new")), found


# Programs from disk ------------------------------------------------------------------------------

@pytest.fixture
def folder(tmp_path, clear_caches, monkeypatch):
    """A directory of compiled programs, in use."""
    # Jaxlib's digest takes a second the first time.
    monkeypatch.setattr(disk_cache, "_libraries", lambda directory: "jaxlib")
    # What stands in for files and for the compiler is no code of the program.
    users = persistent.code_of_users
    monkeypatch.setattr(persistent, "code_of_users", lambda code, names: (
        names["__name__"] not in ("anomaly", __name__) and users(code, names)))
    disk_cache._told.clear()
    with (config.compilation_cache_dir(str(tmp_path / "programs")),
          config.persistent_cache_min_compile_time_secs(0)):
        yield tmp_path / "programs"


SOURCES = {"compiled": lambda: olympus.jit(lambda x: onp.cumsum(x * 3 + 1)),
           "persistent": lambda: olympus.jit(lambda x: onp.cumsum(x * 3 + 1), persist=True)}


@pytest.mark.parametrize("written", [False, True], ids=["written", "read"])
@pytest.mark.parametrize("source", SOURCES)
def test_a_program_runs_whatever_the_disk_does(folder, monkeypatch, source, written):
    compiled, known, compile_ = [], {}, lib.compile

    def compile_once(client, module, devices, **kwargs):
        compiled.append(1)
        text = str(module)
        if text not in known:
            known[text] = compile_(client, module, devices, **kwargs)
        return known[text]

    monkeypatch.setattr(lib, "compile", compile_once)

    def run():
        """As another process would, which has no executables."""
        _executables.cache_clear()
        compiled.clear()
        disk_cache._told.clear()
        np.testing.assert_array_equal(SOURCES[source]()(X), np.cumsum(X * 3 + 1))
        return len(compiled)

    template = folder.with_name("template")
    folder.mkdir()
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
            run()
        return told

    for found in anomaly.sweep(lambda fault: anomaly.files(folder, fault), prepare, call):
        # A disk never fails a program; it is told of, once.
        if found.kind in (FULL, GONE):
            assert found.error is None, found
            assert len(found.result) <= 2, found
            assert all("persistent compilation cache" in str(w.message) for w in found.result)
        assert isinstance(found.error, type(found.kind.error()) | None), found
        assert set(names(folder)) >= set(before), found     # nothing that was there is lost
        assert run() <= 1, found
        assert run() == 0, found


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
    return {
        "onnx": (lambda: export.to_onnx(exported, out / "f.onnx"), ["f.onnx"]),
        "iree": (lambda: export.to_iree(exported, out / "f.vmfb", compiler=compiler), ["f.vmfb"]),
        "iree and parameters": (lambda: export.to_iree(
            exported, out / "f.vmfb", parameters=out / "f.safetensors", compiler=compiler),
            ["f.safetensors", "f.vmfb"]),
        "command line": (lambda: main(["export", f"{folder / 'program.py'}:double", "f32[3]", "-o",
                                       str(out / "f.olympus")]), ["f.olympus"])}


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
    with pytest.raises(FileNotFoundError, match=r"'.*absent/f'"):
        with files.replacing(tmp_path / "absent" / "f") as new:
            new.write_text("nowhere")


def test_a_compiler_that_fails_leaves_the_module_before(tmp_path, out):
    call, (name,) = exported_files(tmp_path)["iree"]
    (tmp_path / "iree-compile").write_text(COMPILER + "echo error: no >&2\nexit 1\n")
    (out / name).write_bytes(b"before")
    with pytest.raises(RuntimeError, match="refused main:\nerror: no"):
        call()
    assert (out / name).read_bytes() == b"before"
    assert names(out) == [name]
