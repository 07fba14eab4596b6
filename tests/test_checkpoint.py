"""Pytrees of arrays on disk, on tensorstore. Several processes: tests/test_distributed.py."""

import asyncio
import json
import os
import random
import shutil
import subprocess
import sys
import threading
from collections import namedtuple
from pathlib import Path

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import export
from olympus._src.checkpoint import directory, manager, store, trees
from olympus.errors import OlympusRuntimeError
from olympus.experimental.array_serialization import (
    pytree_serialization as ps, pytree_serialization_utils as utils, serialization,
    tensorstore_impl,
)
from olympus.sharding import AxisType, NamedSharding, PartitionSpec, SingleDeviceSharding

pytest.importorskip("tensorstore")
HERE = SingleDeviceSharding(olympus.devices()[0])
Pair = export.register_namedtuple_serialization(
    namedtuple("Pair", "left right"), serialized_name="test_checkpoint.Pair")


def same(found, expected):
    expected = onp.asarray(expected)
    assert found.dtype == expected.dtype and found.shape == expected.shape
    assert np.asarray(found).tobytes() == np.asarray(expected).tobytes()


def test_what_is_saved_is_loaded(tmp_path):
    tree = {
        "dtypes": [onp.array([0, 1, 3]).astype(d) for d in (
            "bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64",
            "float8_e4m3fn", "int4")],
        "shapes": (onp.ones(()), onp.ones((0, 3)), np.arange(6.0).reshape(2, 3).T, None, []),
        "own": Pair(onp.arange(2), {"nan": onp.array([np.nan, -0.0])}),
    }
    ps.save(tree, tmp_path / "run")
    assert sorted(p.name for p in (tmp_path / "run").iterdir()) == ["array_store", "pytreedef.json"]
    found = ps.load(str(tmp_path / "run"), HERE)
    assert olympus.tree.structure(found) == olympus.tree.structure(tree)
    assert type(found["own"]) is Pair
    olympus.tree.map(same, found, tree)
    types = ps.load_pytreedef(tmp_path / "run")
    assert types["own"].left == olympus.ShapeDtypeStruct((2,), onp.int32)
    some = ps.load(tmp_path / "run", HERE, mask={"dtypes": False, "shapes": True, "own": Pair(
        True, False)})
    assert some["dtypes"] == [None] * 9 and some["own"].right == {"nan": None}
    same(some["own"].left, tree["own"].left)


def test_load_casts_to_the_dtype_asked_for(tmp_path):
    ps.save([onp.arange(3)], tmp_path / "run")
    struct = olympus.ShapeDtypeStruct((3,), onp.bfloat16, sharding=HERE)
    same(ps.load(tmp_path / "run", struct)[0], onp.arange(3, dtype=onp.bfloat16))
    wrong = olympus.ShapeDtypeStruct((4,), onp.int32, sharding=HERE)
    with pytest.raises(ValueError, match=r"int32\[4\]|shape=\(4,\).*given for an array of shape"):
        ps.load(tmp_path / "run", wrong)


def test_in_the_background(tmp_path):
    saved = ps.nonblocking_save({"a": onp.arange(3)}, tmp_path / "run")
    assert saved.pytree == {"a": olympus.ShapeDtypeStruct((3,), onp.int32)}
    assert saved.result() is None and saved.done() and "done=True" in repr(saved)
    loaded = ps.nonblocking_load(tmp_path / "run", HERE)
    assert loaded.pytree == saved.pytree
    same(loaded.result()["a"], onp.arange(3))

    async def within_a_loop():
        ps.save({"a": onp.ones(2)}, tmp_path / "run")
        return await ps.nonblocking_load(tmp_path / "run", HERE)

    same(asyncio.run(within_a_loop())["a"], onp.ones(2))


def test_specifications_of_the_user(tmp_path):
    tree = {"a": onp.zeros((4, 4)), "b": onp.ones(2)}
    spec = store.get_tensorstore_spec(tmp_path / "any" / "0", arr=tree["a"])["metadata"]
    spec["codecs"] = [{"name": "zstd", "configuration": {"level": 3}}]
    own = {"driver": "zarr3", "metadata": spec}
    ps.save(tree, tmp_path / "run", ts_specs={"a": own, "b": None})
    olympus.tree.map(same, ps.load(tmp_path / "run", HERE), tree)
    spec["chunk_grid"]["configuration"]["chunk_shape"] = [3, 4]
    with pytest.raises(ValueError, match="does not divide the local shape"):
        ps.save(tree, tmp_path / "run", ts_specs={"a": own, "b": None})
    olympus.tree.map(same, ps.load(tmp_path / "run", HERE), tree)
    del spec["data_type"]           # a KeyError before
    with pytest.raises(ValueError, match="without 'data_type'; given metadata replace all others"):
        ps.save(tree, tmp_path / "run", ts_specs={"a": own, "b": None})
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


@pytest.mark.parametrize(("kind", "match", "data"), [
    (ValueError, "a leaf 3 of type int given; For serialization, all leaves must be", {"a": 3}),
    (ValueError, "random.key_data of a key", [olympus.random.key(0)]),
    (TypeError, "only for dictionaries with string keys", {1: onp.ones(1)}),
])
def test_what_cannot_be_saved(tmp_path, kind, match, data):
    with pytest.raises(kind, match=match):
        ps.save(data, tmp_path / "run")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("dtype", ["float8_e4m3", "uint2", "uint4"])
def test_an_array_that_tensorstore_has_no_dtype_for_is_named(tmp_path, dtype):
    x = onp.ones(3, dtype)
    with pytest.raises(ValueError, match=rf"array \['w'\], {dtype}\[3\], given; Tensor"):
        ps.save({"w": x}, tmp_path / "run")
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match=rf"an array, {dtype}\[3\], given"):
        asyncio.run(tensorstore_impl.async_serialize(
            x, tensorstore_impl.get_tensorstore_spec(tmp_path / "x")))


def test_places(tmp_path):
    tree, run = [onp.arange(2)], tmp_path / "run"
    with pytest.raises(ValueError, match="a remote store cannot rename"):
        ps.save(tree, "gs://bucket/run")
    with pytest.raises(RuntimeError, match="Could not create destination directory"):
        ps.save(tree, tmp_path / "none" / "run")
    with pytest.raises(FileNotFoundError, match="the directory of a checkpoint is required"):
        ps.load(run, HERE)
    run.mkdir()     # an empty one is fine
    ps.save(tree, run, overwrite=False)
    with pytest.raises(ValueError, match="Files already exist at path"):
        ps.save(tree, run, overwrite=False)
    (run / "mine").touch()
    with pytest.raises(RuntimeError, match=r"not a previous checkpoint. Unrecognized paths: \['mi"):
        ps.save(tree, run)
    same(ps.load(run, HERE)[0], tree[0])
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    with pytest.raises(TypeError, match="sharding passed to deserialization should be specified"):
        ps.load(run, None)


def standing(folder):
    """Everything in a folder: kinds, contents, and where links lead."""
    return {str(p.relative_to(folder)): (
        p.lstat().st_mode, os.readlink(p) if p.is_symlink() else p.read_bytes() if p.is_file()
        else None) for p in folder.rglob("*")}


def put_file(run):
    run.write_text("mine")


def put_pipe(run):
    os.mkfifo(run)


def put_link(run):
    ps.save([onp.ones(3)], run.parent / "other")
    run.symlink_to("other")


def put_dangling_link(run):
    run.symlink_to("nothing")


def put_folder_of_arrays(run):
    (run / "array_store").mkdir(parents=True)
    (run / "array_store" / "mine").write_text("mine")


def put_tree_of_others(run):
    put_folder_of_arrays(run)
    (run / "pytreedef.json").write_text('{"mine": 1}')


def put_linked_tree(run):
    ps.save([onp.ones(3)], run)
    (run / "pytreedef.json").rename(run.parent / "tree")
    (run / "pytreedef.json").symlink_to("../tree")


def put_file_for_draft(run):
    (run.parent / ".run.saving").write_text("mine")


def put_checkpoint_for_draft(run):
    ps.save([onp.ones(3)], run.parent / ".run.saving")


@pytest.mark.parametrize("overwrite", [False, True])
@pytest.mark.parametrize(("put", "match"), [
    (put_file, "Refusing to work on a file"), (put_pipe, "Refusing to work on a named pipe"),
    (put_link, "Refusing to work on a symbolic link"),
    (put_dangling_link, "Refusing to work on a symbolic link"),
    (put_folder_of_arrays, "Files already exist|It has .*array_store.*, and no pytreedef.json"),
    (put_tree_of_others, "Files already exist|not a previous checkpoint"),
    (put_linked_tree, "Files already exist|not a previous checkpoint"),
    (put_file_for_draft, r"there stands what `save` did not put there: \['.run.saving'\]"),
    (put_checkpoint_for_draft, r"did not put there: \[.*'pytreedef.json'.*\]"),
])
def test_a_save_replaces_only_checkpoints(tmp_path, put, match, overwrite):
    put(tmp_path / "run")
    before = standing(tmp_path)
    with pytest.raises((RuntimeError, ValueError), match=match) as caught:
        ps.save([onp.arange(2)], tmp_path / "run", overwrite=overwrite)
    assert str(caught.value).startswith("save: ") and "choose another" in str(caught.value)
    assert standing(tmp_path) == before


def test_a_save_refuses_a_device():
    main, other = os.openpty()
    try:
        with pytest.raises(RuntimeError, match="Refusing to work on a device"):
            ps.save([onp.arange(2)], os.ttyname(other))
        assert os.isatty(other)
    finally:
        os.close(main)
        os.close(other)


def write_format_1(run, value):
    """A checkpoint of [value] as Olympus wrote it before it had checksums."""
    spec = {"driver": "zarr3", "kvstore": {
        "driver": "ocdbt", "base": {"driver": "file", "path": str(run / "array_store")},
        "path": "0"}, "metadata": {"shape": list(value.shape), "data_type": value.dtype.name}}
    store.tensorstore().open(spec, create=True).result().write(value).result()
    (run / "pytreedef.json").write_text(json.dumps({
        "__olympus_pytreedef_repr": {"list": ["leaf"]},
        "__olympus_leaf_ids": [{"dtype": value.dtype.name, "shape": list(value.shape)}]}, indent=1))


def test_checkpoints_of_format_1(tmp_path):
    run, value = tmp_path / "run", np.arange(60, dtype=np.int16).reshape(6, 10)
    write_format_1(run, value)
    same(ps.load(run, HERE)[0], value)
    text = (run / "pytreedef.json").read_text()
    for old, other, match in [
            ("int16", "int32", r"in the array \[0\], int32\[6, 10\]: what is stored is not what"),
            ("10", "11", r"in the array \[0\], int16\[6, 11\]: what is stored is not what"),
            ("int16", "int17", "not the structure of a pytree"),
            ('"shape"', '"shale"', "not the structure of a pytree"),
            ('"leaf"', '"loaf"', "not the structure of a pytree"), ("]", ")", "is not JSON"),
            ("__olympus_leaf", "__olympus_loaf", "another checksum")]:
        (run / "pytreedef.json").write_text(text.replace(old, other, 1))
        with pytest.raises(ValueError, match=f"^load: {run} given.*{match}"):
            ps.load(run, HERE)
    ps.save([value + 1], run)
    same(ps.load(run, HERE)[0], value + 1)
    assert len(list((run / "array_store").iterdir())) == 1


def test_a_later_format(tmp_path, monkeypatch):
    with monkeypatch.context() as m:
        m.setattr(directory, "_FORMAT", 3)
        ps.save([onp.ones(1)], tmp_path / "run")
    with pytest.raises(ValueError, match=f"^load: {tmp_path}/run given; it has format 3"):
        ps.load(tmp_path / "run", HERE)


def flipped(run, tree, count):
    """Load with one flipped bit, for `count` bits of each file; yields file and outcome."""
    chosen = random.Random(0)
    for file in sorted(p for p in run.rglob("*") if p.is_file()):
        whole = file.read_bytes()
        for bit in chosen.sample(range(8 * len(whole)), count):
            damaged = bytearray(whole)
            damaged[bit // 8] ^= 1 << bit % 8
            file.write_bytes(damaged)
            try:
                olympus.tree.map(same, ps.load(run, HERE), tree)
            except ValueError as error:
                assert str(error).startswith(f"load: {run} given; a checkpoint as it was written"
                                             " is required, and "), (file, bit)
                yield file.name, "refused"
            else:
                yield file.name, "right"
        file.write_bytes(whole)


def values(rng):
    return {"noise": rng.standard_normal(500), "same": [np.zeros((3, 40), np.float32), None],
            "small": np.arange(3)}


def test_a_flipped_bit_is_refused_or_harmless(tmp_path, rng):
    tree = values(rng)
    ps.save(tree, tmp_path / "run")
    found = set(flipped(tmp_path / "run", tree, 6))
    assert {("pytreedef.json", "refused"), ("manifest.ocdbt", "refused")} <= found


@pytest.mark.slow
def test_many_flipped_bits_are_refused_or_harmless(tmp_path, rng):
    tree = values(rng)
    ps.save(tree, tmp_path / "run")
    assert {how for _, how in flipped(tmp_path / "run", tree, 200)} == {"refused", "right"}


@pytest.mark.parametrize("name", ["manifest.ocdbt", "d"])
def test_files_that_are_missing_are_told(tmp_path, name):
    ps.save([onp.arange(300)], tmp_path / "run")
    found, = (tmp_path / "run" / "array_store").glob(f"*/{name}")
    found.rename(tmp_path / "away")
    with pytest.raises(ValueError, match="load: .* a part of it is missing; restore it"):
        ps.load(tmp_path / "run", HERE)


def test_a_save_whose_files_vanish_leaves_the_one_before(tmp_path, monkeypatch):
    ps.save([onp.arange(2)], tmp_path / "run")
    write = store.async_serialize

    async def write_and_lose(*args, **options):
        await write(*args, **options)
        for file in tmp_path.glob(".run.saving/*/array_store/*/d/*"):
            file.unlink()

    with monkeypatch.context() as m:
        m.setattr(store, "async_serialize", write_and_lose)
        with pytest.raises(OlympusRuntimeError, match="save: .*; the checkpoint before is whole"):
            ps.save([onp.arange(300.0)], tmp_path / "run")
    same(ps.load(tmp_path / "run", HERE)[0], onp.arange(2))
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_a_save_goes_on_after_one_that_was_killed(tmp_path):
    run, draft = tmp_path / "run", tmp_path / ".run.saving"
    ps.save([onp.arange(2)], run)
    (run / "array_store" / ("0" * 32)).mkdir()      # moved, and not yet in the file of the tree
    (draft / ("1" * 32) / "array_store").mkdir(parents=True)
    (draft / "lock").touch()
    (tmp_path / ".run.x.saving").mkdir()            # of a checkpoint `run.x`
    same(ps.load(run, HERE)[0], onp.arange(2))
    ps.save([onp.arange(3)], run)
    same(ps.load(run, HERE)[0], onp.arange(3))
    assert sorted(p.name for p in tmp_path.iterdir()) == [".run.x.saving", "run"]
    assert len(list((run / "array_store").iterdir())) == 1


@pytest.mark.slow
@pytest.mark.parametrize("first", [True, False])
def test_killed_at_any_operation(tmp_path, monkeypatch, first):
    """What is on disk before each operation of a save is copied, and read and saved to later."""
    place, copies = tmp_path / "place", []
    place.mkdir()
    if not first:
        ps.save([np.arange(2)], place / "run")
    copying = [False]

    def copied(operation):
        def call(*args, **options):
            if not copying[0]:
                copying[0] = True
                copies.append(shutil.copytree(place, tmp_path / f"copy{len(copies)}"))
                copying[0] = False
            return operation(*args, **options)
        return call

    with monkeypatch.context() as m:
        for name in ("mkdir", "open", "rename", "replace", "unlink", "rmdir", "fsync", "close"):
            m.setattr(os, name, copied(getattr(os, name)))
        ps.save([np.arange(3)], place / "run")
    steps = []
    for copy in copies:
        try:
            steps.append(len(ps.load(copy / "run", HERE)[0]))
        except FileNotFoundError:
            steps.append(0 if first and not (copy / "run").exists() else None)
        ps.save([np.arange(4)], copy / "run")
        same(ps.load(copy / "run", HERE)[0], np.arange(4))
        assert [p.name for p in copy.iterdir()] == ["run"]
        assert len(list((copy / "run" / "array_store").iterdir())) == 1
    assert steps == sorted(steps) and set(steps) == {0 if first else 2, 3}


HOLDER = """
import fcntl, sys
file = open(sys.argv[1], "r+")
fcntl.lockf(file, fcntl.LOCK_EX)
print("held", flush=True)
sys.stdin.read()
"""


def test_saves_to_one_name_wait_for_each_other(tmp_path, monkeypatch):
    draft = tmp_path / ".run.saving"
    (draft / ("1" * 32)).mkdir(parents=True)
    (draft / "lock").touch()
    waiting = threading.Event()
    monkeypatch.setattr(directory.LOGGER, "info", lambda *message: waiting.set())
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(draft / "lock")], text=True,
                          stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout.readline() == "held\n"
        saving = ps.nonblocking_save([onp.arange(3)], tmp_path / "run")
        assert waiting.wait(60) and not saving.done()
        assert (draft / ("1" * 32)).is_dir() and not (tmp_path / "run").exists()
        other.kill()
    saving.result()
    same(ps.load(tmp_path / "run", HERE)[0], onp.arange(3))
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_what_is_being_read_is_deleted_later(tmp_path):
    run = tmp_path / "run"
    ps.save([onp.arange(300)], run)
    version, = (run / "array_store").iterdir()
    with directory.reading(version):
        before = standing(version)
        ps.save([onp.arange(2)], run)
        assert standing(version) == before and len(list((run / "array_store").iterdir())) == 2
    ps.save([onp.arange(3)], run)
    assert not version.exists() and len(list((run / "array_store").iterdir())) == 1


def test_a_load_tries_again_when_the_checkpoint_is_replaced(tmp_path, monkeypatch):
    run, steps = tmp_path / "run", iter(range(1, 100))
    ps.save([onp.full(300, 0)], run)

    def replaced_before(times):
        def reading(arrays):
            if (step := next(steps)) <= times:
                ps.save([onp.full(300, step)], run)
            return directory.reading(arrays)
        return reading

    monkeypatch.setattr(trees, "reading", replaced_before(3))
    same(ps.load(run, HERE)[0], onp.full(300, 3))
    monkeypatch.setattr(trees, "reading", replaced_before(100))
    monkeypatch.setattr(trees, "_TRIES", 3)
    with pytest.raises(OlympusRuntimeError, match="load: .* other processes saved there 3 times"):
        ps.load(run, HERE)


def test_errors_wait_for_what_runs_beside_them():
    ended = []

    async def work(number):
        await asyncio.sleep(0)
        if number == 0:
            raise KeyError("first")
        await asyncio.sleep(0)
        ended.append(number)

    with pytest.raises(KeyError, match="first"):
        asyncio.run(store.gather(map(work, range(3))))
    assert ended == [1, 2]


def test_an_error_while_writing_leaves_the_one_before(tmp_path, monkeypatch):
    ps.save([onp.arange(2)], tmp_path / "run")

    async def fail(*args, **options):
        raise OSError("no space left")

    with monkeypatch.context() as m:
        m.setattr(store, "async_serialize", fail)
        with pytest.raises(OSError, match="no space left"):
            ps.save([onp.arange(3)], tmp_path / "run")
    same(ps.load(tmp_path / "run", HERE)[0], onp.arange(2))
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


WRITER = """
import sys, itertools
import numpy as np
from olympus.experimental.array_serialization import pytree_serialization as ps
for step in itertools.count():
    ps.save({k: np.full((300, 500), step, np.int32) for k in "abcd"}, sys.argv[1])
    print(step, flush=True)
"""


@pytest.mark.slow
def test_a_killed_process_leaves_a_whole_checkpoint(tmp_path):
    root, chosen = tmp_path / "run", random.Random(0)
    env = {**os.environ, "PYTHONPATH": str(Path(olympus.__file__).parent.parent)}
    for _ in range(5):
        writer = subprocess.Popen([sys.executable, "-c", WRITER, str(root)], env=env,
                                  stdout=subprocess.PIPE, text=True)
        steps = [int(writer.stdout.readline()) for _ in range(3)]
        for _ in range(chosen.randrange(1500)):     # so that it is ended at another place each time
            list(tmp_path.iterdir())
        writer.kill()
        steps += list(map(int, writer.communicate()[0].split()))
        found = {int(x[0, 0]) for x in ps.load(root, HERE).values()}
        assert len(found) == 1 and found <= {steps[-1], steps[-1] + 1}
        assert all((np.asarray(x) == x[0, 0]).all() for x in ps.load(root, HERE).values())


RACER = """
import itertools, os, sys
import numpy as np
import olympus
from olympus.experimental.array_serialization import pytree_serialization as ps
here = olympus.sharding.SingleDeviceSharding(olympus.devices()[0])
kind, path, number = sys.argv[1], sys.argv[2], int(sys.argv[3])
print("ready", flush=True)
sys.stdin.readline()
for step in range(1, 6):
    if kind == "save":
        ps.save({k: np.full((100, 200), 100 * number + step, np.int32) for k in "abc"}, path)
    found = {int(x) for v in ps.load(path, here).values() for x in np.unique(np.asarray(v))}
    assert len(found) == 1, found
"""


@pytest.mark.slow
@pytest.mark.parametrize("writers", [2, 4])
def test_processes_that_save_and_load_at_once(tmp_path, writers):
    """Names begin alike, or are patterns that match another; each save can be loaded at once."""
    env = {**os.environ, "PYTHONPATH": str(Path(olympus.__file__).parent.parent)}
    jobs = [("save", "model", i) for i in range(writers)]
    jobs += [("load", "model", 0)] * writers
    jobs += [("save", name, 10) for name in ("model.ema", "mode[l]")]
    for _, name, _ in jobs:
        ps.save({k: np.zeros((100, 200), np.int32) for k in "abc"}, tmp_path / name)
    running = [subprocess.Popen(
        [sys.executable, "-c", RACER, kind, str(tmp_path / name), str(number)], env=env, text=True,
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for kind, name, number in jobs]
    for process in running:
        assert process.stdout.readline() == "ready\n"
    for process in running:
        process.stdin.write("go\n")
        process.stdin.flush()
    told = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0] * len(jobs), told
    assert not any(told)
    for name in {name for _, name, _ in jobs}:      # readers may have kept versions until now
        ps.save([np.arange(1)], tmp_path / name)
        assert len(list((tmp_path / name / "array_store").iterdir())) == 1
    assert {p.name for p in tmp_path.iterdir()} == {name for _, name, _ in jobs}


CUT = """
import sys
import numpy as np
import olympus
from olympus.experimental.array_serialization import pytree_serialization as ps
from olympus.sharding import AxisType, NamedSharding, PartitionSpec as P, SingleDeviceSharding
mesh = olympus.make_mesh((4, 2), ("x", "y"), (AxisType.Auto,) * 2)
value = np.arange(64, dtype=np.float32).reshape(8, 8)
specs = [P("x", "y"), P(("y", "x")), P(None, "x"), P()]
tree = [olympus.device_put(value, NamedSharding(mesh, s)) for s in specs]
ps.save(tree, sys.argv[1])
for spec in specs:
    for x in ps.load(sys.argv[1], NamedSharding(mesh, spec)):
        assert x.sharding == NamedSharding(mesh, spec)
        assert all(np.array_equal(s.data, value[s.index]) for s in x.addressable_shards)
assert np.array_equal(ps.load(sys.argv[1], SingleDeviceSharding(olympus.devices()[3]))[0], value)
"""


@pytest.mark.slow
def test_resharding_on_eight_devices(tmp_path):
    env = {**os.environ, "PYTHONPATH": str(Path(olympus.__file__).parent.parent),
           "OLYMPUS_NUM_CPU_DEVICES": "8"}
    done = subprocess.run([sys.executable, "-c", CUT, str(tmp_path / "run")], env=env,
                          capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_manager(tmp_path):
    manager, committed = serialization.GlobalAsyncCheckpointManager(), []
    arrays = [onp.arange(6.0).reshape(2, 3), onp.array(True)]
    paths = [str(tmp_path / name) for name in "ab"]
    for x in (arrays, [arrays[0] + 1, arrays[1]]):      # the second waits for the first
        manager.serialize_with_paths(x, paths, on_commit_callback=lambda: committed.append(1))
        manager.wait_until_finished()
    assert committed == [1, 1]
    manager.check_for_errors()
    for found, expected in zip(manager.deserialize_with_paths([HERE] * 2, paths), x, strict=True):
        same(found, expected)
    cut, longer = [manager.deserialize_with_paths(
        [HERE], paths[:1], global_shapes=[shape], dtypes=[onp.float16])[0]
        for shape in ((2, 2), (2, 4))]
    whole = np.asarray(x[0], np.float16)
    same(cut, whole[:, :2])
    same(longer, np.pad(whole, ((0, 0), (0, 1))))


def test_the_manager_tells_errors_once(tmp_path):
    manager = serialization.GlobalAsyncCheckpointManager()

    def fail():
        raise KeyError("of the callback")

    manager.serialize_with_paths([onp.ones(1)], [str(tmp_path / "a")], on_commit_callback=fail)
    with pytest.raises(KeyError, match="of the callback"):
        manager.wait_until_finished()
    manager.wait_until_finished()


def test_specifications():
    spec = serialization.get_tensorstore_spec("/a/b/")
    assert spec == {"driver": "zarr", "kvstore": {"driver": "file", "path": "/a/b"}}
    get = tensorstore_impl.get_tensorstore_spec
    assert get("/a/b", process_idx=2)["kvstore"] == {
        "driver": "ocdbt", "base": {"driver": "file", "path": "/a/process_2"}, "path": "b"}
    assert get("gs://bucket/dir/x")["kvstore"] == {
        "driver": "ocdbt", "path": "x",
        "base": {"driver": "gcs", "bucket": "bucket", "path": "dir"}}
    assert get("s3://bucket/x", ocdbt=False)["kvstore"] == {
        "driver": "s3", "bucket": "bucket", "path": "x"}
    with pytest.raises(ValueError, match="Checkpoint path should be absolute"):
        get("a/b")
    with pytest.raises(ValueError, match="the bucket name, the directory name"):
        get("gs://bucket/x")
    with pytest.raises(ValueError, match="driver 'n5' and no metadata"):
        get("/a/b", arr=np.ones(2), driver="n5")
    good = get("/a/b", arr=np.ones((2, 3)))
    tensorstore_impl.verify_tensorstore_spec(good, np.ones((2, 3)), "/a", ocdbt=True)
    for match, args in [("Expected ocdbt driver", (spec, None, "/a", True)),
                        ("Array is required", (good, None, "/a", True)),
                        ("Provided dtype float64", (good, np.ones((2, 3), "f"), "/a", True)),
                        ("Provided shape", (good, np.ones((3, 2)), "/a", True)),
                        ("path /a given; /b is required", (good, np.ones((2, 3)), "/b", True))]:
        with pytest.raises(ValueError, match=match):
            tensorstore_impl.verify_tensorstore_spec(*args)
    assert serialization.is_remote_storage({"kvstore": {"base": {"driver": "s3"}}})
    assert not serialization.is_remote_storage("/a") and not serialization.is_remote_storage({})


@pytest.mark.parametrize("local", [(64, 3), (7, 11), (1,), (), (0, 5), (97, 2)])
def test_chunks_divide_what_a_device_has(local):
    chunk = store.chunk_shape(local, 4, 64)
    assert all(n % c == 0 for n, c in zip(local, chunk, strict=True))
    assert np.prod(chunk) * 4 <= 1.1 * 64


def test_bytes_read_at_once():
    held, most = [0], [0]

    async def read(limit, count):
        async with limit.holding(count):
            held[0] += count
            most[0] = max(most[0], held[0])
            await asyncio.sleep(0)
            held[0] -= count

    async def all_():
        limit = store.ByteLimiter(10)
        await asyncio.gather(*[read(limit, n) for n in (4, 4, 4, 30, 9, 1, 2)])

    asyncio.run(all_())
    assert most == [30] and held == [0]


def test_structures_of_pytrees():
    tree = olympus.tree.structure({"a": [1, (2, None)], "b": Pair(3, {})})
    assert utils.deserialize_pytreedef(utils.serialize_pytreedef(tree)) == tree


def test_without_tensorstore(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "tensorstore", None)
    for call in (lambda: ps.save([onp.ones(1)], tmp_path / "a"), lambda: ps.load(tmp_path, HERE),
                 lambda: serialization.GlobalAsyncCheckpointManager().serialize_with_paths(
                     [onp.ones(1)], [str(tmp_path / "b")])):
        with pytest.raises(ImportError, match=r'pip install "olympus\[checkpoint\]"'):
            call()


def test_a_mesh_of_one_device(tmp_path):
    mesh = olympus.make_mesh((1,), ("x",), (AxisType.Auto,))
    sharding = NamedSharding(mesh, PartitionSpec("x"))
    ps.save([olympus.device_put(np.arange(4), sharding)], tmp_path / "run")
    found, = ps.load(tmp_path / "run", sharding)
    assert found.sharding == sharding and trees.load_pytreedef(tmp_path / "run")[0].shape == (4,)


def test_a_reference_is_refused_with_what_to_pass(tmp_path):
    ref = olympus.new_ref(np.ones(3, np.float32))
    spec = store.get_tensorstore_spec(tmp_path / "x")
    for save in (lambda: trees.save({"w": [ref]}, tmp_path / "run"),
                 lambda: manager.run([store.async_serialize(ref, spec)])):
        with pytest.raises(TypeError, match=r"pass ref\[\.\.\.\], its content"):
            save()
    assert not list(tmp_path.iterdir())
