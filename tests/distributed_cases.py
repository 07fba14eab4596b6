"""What tests/test_distributed.py runs in each process of a job: `distributed_cases.py CASE`."""

import os
import signal
import sys
import time
from pathlib import Path

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import distributed
from olympus.errors import OlympusRuntimeError
from olympus.experimental import multihost_utils as utils
from olympus.experimental.array_serialization import pytree_serialization as ps, serialization
from olympus.sharding import AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

P = PartitionSpec


def say(*words):
    # In one piece and on its own line, since gloo writes to the same pipe.
    sys.stdout.write("\n" + " ".join(map(str, words)) + "\n")
    sys.stdout.flush()


def everywhere(value, *spec):
    mesh = olympus.make_mesh((olympus.device_count(),), ("x",), (AxisType.Auto,))
    return olympus.make_array_from_callback(
        value.shape, NamedSharding(mesh, P(*spec)), lambda index: value[index])


def train():
    """Steps of gradient descent, data in parallel; the bits of what comes out."""
    rng = np.random.default_rng(0)
    x, y, w = (rng.normal(size=s).astype(np.float32) for s in ((16, 8), (16, 3), (8, 3)))
    x, y, w = everywhere(x, "x"), everywhere(y, "x"), everywhere(w)

    @olympus.jit
    def step(w, x, y):
        loss, g = olympus.value_and_grad(lambda w: onp.mean((onp.tanh(x @ w) - y) ** 2))(w)
        return w - 0.1 * g, loss

    for _ in range(3):
        w, loss = step(w, x, y)
    say("result", np.asarray(w).tobytes().hex(), float(loss).hex())


def kept(*directories):
    """A program of `jit(persist=True)`, with a directory per process."""
    olympus.config.update("olympus_compilation_cache_dir",
                          directories[olympus.process_index() % len(directories)])
    olympus.config.update("olympus_raise_persistent_cache_errors", False)   # one cannot be made
    olympus.config.update("olympus_persistent_cache_min_compile_time_secs", 60)
    olympus.config.update("olympus_log_compiles", True)
    value = np.arange(64, dtype=np.float32).reshape(16, 4)
    f = olympus.jit(lambda x: onp.tanh(x).sum() + (x @ x.T).sum(), persist=True)
    x = everywhere(value, "x")
    f(x)
    np.testing.assert_allclose(float(f(x)), np.tanh(value).sum() + (value @ value.T).sum(),
                               rtol=1e-5)
    say("kept is right")


def views():
    """Arrays of which this process has a part."""
    me, count = olympus.process_index(), olympus.process_count()
    assert distributed.is_initialized()
    assert count == 2 and olympus.device_count() == 2 and olympus.process_indices() == [0, 1]
    assert [d.process_index for d in olympus.devices()] == [0, 1]
    assert olympus.local_devices() == olympus.local_devices(process_index=me)
    value = np.arange(4, dtype=np.float32)
    x, r = everywhere(value, "x"), everywhere(value)
    assert not x.is_fully_addressable and not x.is_fully_replicated and r.is_fully_replicated
    assert repr(x) == str(x) == "Array(shape=(4,), dtype=float32)"
    assert repr(r) == repr(onp.asarray(value))
    part, = x.addressable_shards
    assert np.array_equal(part.data, value[2 * me:2 * me + 2]) and part.device.process_index == me
    assert [s.device.process_index for s in x.global_shards] == [0, 1]
    assert [s.data is None for s in x.global_shards] == [me == 1, me == 0]
    for read in (np.asarray, lambda x: x.tolist(), olympus.device_get):
        try:
            read(x)
        except RuntimeError as e:
            assert "spans non-addressable (non process local) devices" in " ".join(str(e).split())
            assert "process_allgather" in str(e)
        else:
            raise AssertionError("read")
    sharding = x.sharding
    for y, expected in [
            (x + 1, value + 1), (2 * x + onp.arange(4.0), 3 * value), (onp.sin(x) ** 2, None),
            (olympus.device_put(value, sharding), value),
            (olympus.make_array_from_process_local_data(sharding, value[2 * me:2 * me + 2]), value),
            (olympus.grad(lambda x: (x ** 2).sum())(x), 2 * value)]:
        assert y.sharding == sharding
        if expected is not None:
            assert np.array_equal(y.addressable_data(0), expected[2 * me:2 * me + 2])
    assert float(x.sum()) == 6 and bool(x[0] == 0)
    try:
        distributed.initialize()
    except RuntimeError as e:
        assert "should only be called once" in str(e)
    say("views are right")


def error(kind, match, call):
    try:
        call()
    except kind as e:
        assert match in " ".join(str(e).split()), str(e)
    else:
        raise AssertionError(f"no {kind.__name__}: {match}")


def check_callbacks(x, mesh):
    """A program's callbacks run on the devices of every process."""
    seen, me = [], olympus.process_index()

    def keep(x):
        seen.append(np.asarray(x).tolist())

    keeps = olympus.shard_map(lambda x: olympus.debug.callback(keep, x[0, 0]) or x,
                              mesh=mesh, in_specs=P("x"), out_specs=P("x"))
    for g, expected in (
            (keeps, [[0, 4], [8, 12]][me]),
            (lambda x: olympus.debug.callback(keep, x[:, 0].sum(), partitioned=True), [56, 56]),
            (lambda x: olympus.debug.callback(keep, x[0, 1]), [[1], []][me])):
        olympus.jit(g)(x)
        olympus.effects_barrier()
        assert sorted(seen) == expected, seen
        seen.clear()


def moves():
    """Arrays on other processes' devices, on some processes only, and in another order."""
    me, all_devices = olympus.process_index(), olympus.devices()
    mine = olympus.local_devices()
    value = np.arange(16, dtype=np.float32).reshape(8, 2)

    def on(devices, sizes, names, *spec):
        return NamedSharding(Mesh(np.array(devices).reshape(sizes), names), P(*spec))

    def is_right(x, sharding, value=value):
        assert x.sharding == sharding
        assert len(x.addressable_shards) == len(sharding.addressable_devices)
        for part in x.addressable_shards:
            assert np.array_equal(part.data, value[part.index]), part

    line, square = on(all_devices, (4,), "x", "x"), on(all_devices, (2, 2), ("x", "y"), "y")
    backwards = on(all_devices[::-1], (2, 2), ("x", "y"), "x", "y")
    x = olympus.device_put(value, line)
    for there in (backwards, square, on(all_devices[::-1], (4,), "x", "x"), x.sharding,
                  on(all_devices[::-1], (4,), "x")):
        is_right(olympus.device_put(x, there), there)
        is_right(olympus.device_put(value, there), there)   # copies here of what is cut elsewhere
        is_right(onp.copy(olympus.device_put(x, there)), there)
    # What the devices here have in all is the whole.
    crossed = on([all_devices[i] for i in (0, 2, 1, 3)], (2, 2), ("x", "y"), "x")
    assert np.array_equal(np.asarray(olympus.device_put(value, crossed)), value)

    # The first process's devices only: the other one calls, and has no part.
    first = olympus.local_devices(process_index=0)
    half = on(first, (2,), "x", "x")
    f = olympus.jit(lambda x: onp.sin(x).sum(0) + x)
    y = olympus.device_put(value, half)
    is_right(y, half)
    assert len(f(y).addressable_shards) == len((y + 1).addressable_shards) == 2 * (me == 0)
    keys = olympus.random.split(olympus.random.key(0), 2)
    made = olympus.make_array_from_callback((2,), half, lambda i: keys[i], dtype=keys.dtype)
    assert (made.dtype, len(made.addressable_shards)) == (keys.dtype, 2 * (me == 0))
    one = SingleDeviceSharding(all_devices[0])
    for given in (value, onp.asarray(value), 3):
        z = olympus.device_put(given, all_devices[0])
        is_right(z, one, np.asarray(given))
    assert y.sharding.mesh.local_devices == (first if me == 0 else [])

    lined = line.mesh
    check_callbacks(x, lined)

    # A mesh around is nothing to what processes exchange.
    with olympus.set_mesh(backwards.mesh):
        assert utils.process_allgather(np.ones((2, 2)), tiled=True).shape == (4, 2)
        assert utils.broadcast_one_to_all(me) == 0
    assert lined.local_mesh == Mesh(mine, ("x",)) and lined.is_multi_process
    error(ValueError, "are no block", lambda: Mesh(
        [all_devices[i] for i in (0, 2, 1, 3)], "x").local_mesh)
    local = olympus.device_put(value, NamedSharding(lined.local_mesh, P("x")))
    whole = utils.host_local_array_to_global_array(local, lined, P("x"))
    assert whole.shape == (16, 2) and [a.data.unsafe_buffer_pointer() for a in (
        local.addressable_shards)] == [a.data.unsafe_buffer_pointer() for a in (
            whole.addressable_shards)]
    tree = olympus.make_array_from_process_local_data(line, {"a": value, "b": (value,)})
    assert olympus.tree.map(lambda x: x.shape, tree) == {"a": (16, 2), "b": ((16, 2),)}

    error(AssertionError, "passed to device_put is not the same on each process",
          lambda: olympus.device_put(value + me, line))
    error(AssertionError, "is not the same", lambda: olympus.device_put(float(me), square))
    error(ValueError, "second argument must be a Device or a Sharding which represents addressable",
          lambda: olympus.device_put(olympus.device_put(value, mine[0]), line))
    error(ValueError, "should have the same set of devices",
          lambda: olympus.device_put(x, on(all_devices[:3], (3,), "x")))
    error(ValueError, "has Nones. This is not supported",
          lambda: olympus.make_array_from_process_local_data(line, value, (None, 2)))
    error(ValueError, "`None` is not a valid input to the pspecs argument",
          lambda: utils.host_local_array_to_global_array(value, lined, None))
    assert f"{x}" == str(x) == "Array(shape=(8, 2), dtype=float32)"
    say("moves are right")


def together():
    """What experimental.multihost_utils does, in two processes of two devices."""
    me = olympus.process_index()
    mine = {"a": np.arange(3, dtype=np.int8) + 10 * me, "b": 5.0 if me else -0.0, "c": me == 0,
            "d": np.array([np.nan, 1.0], olympus.numpy.bfloat16) + me, "e": onp.ones((0, 3)),
            "f": 1j * onp.arange(2.0) - me}
    every = [{**mine, "a": np.arange(3, dtype=np.int8) + 10 * i, "b": (-0.0, 5.0)[i], "c": i == 0,
              "d": np.array([np.nan, 1.0], olympus.numpy.bfloat16) + i,
              "f": 1j * onp.arange(2.0) - i} for i in range(2)]

    def same(found, expected):
        assert type(found) is np.ndarray and found.dtype == np.asarray(expected).dtype
        assert found.tobytes() == np.asarray(expected).tobytes(), (found, expected)

    for source in (0, 1):
        flag = None if source == 0 else me == source
        olympus.tree.map(same, utils.broadcast_one_to_all(mine, flag), every[source])
    error(ValueError, "in the processes [0, 1]", lambda: utils.broadcast_one_to_all(1, True))
    error(ValueError, "in the processes []", lambda: utils.broadcast_one_to_all(1, False))
    olympus.tree.map(same, utils.process_allgather(mine),
                     olympus.tree.map(lambda *xs: np.stack(xs), *every))
    olympus.tree.map(same, utils.process_allgather(mine, tiled=True), olympus.tree.map(
        lambda *xs: np.concatenate(np.atleast_1d(*xs)), *every))

    mesh = Mesh(np.array(olympus.devices()).reshape(2, 2), ("host", "device"))
    parts = [np.arange(8, dtype=np.float32).reshape(4, 2) + 100 * i for i in range(2)]
    whole = np.concatenate(parts)
    for spec in (P("host"), P("host", "device"), P(("host", "device"))):
        x = utils.host_local_array_to_global_array({"x": parts[me]}, mesh, spec)["x"]
        assert x.shape == (8, 2) and x.sharding == NamedSharding(mesh, spec)
        same(utils.process_allgather(x, tiled=True), whole)
        assert utils.host_local_array_to_global_array(x, mesh, spec) is x
        y = utils.global_array_to_host_local_array(x, mesh, spec)
        assert y.is_fully_addressable and y.sharding.mesh.shape == {"host": 1, "device": 2}
        assert y.sharding.spec == spec and np.array_equal(y, parts[me])
        assert utils.global_array_to_host_local_array(y, mesh, spec) is y
        z = utils.global_array_to_host_local_array([x], mesh, [P(None, "device")])[0]
        assert np.array_equal(z, whole)
    r = utils.host_local_array_to_global_array(parts[0], mesh, P())
    assert r.shape == (4, 2) and r.is_fully_replicated and np.array_equal(r, parts[0])
    error(ValueError, "only supports tiled=True", lambda: utils.process_allgather(x))
    for convert in (utils.host_local_array_to_global_array, utils.global_array_to_host_local_array):
        error(ValueError, "a PartitionSpec is required", lambda: convert([x], mesh, [None]))
    crossed = Mesh(mesh.devices[[0, 1], [0, 1]][:, None], ("a", "b"))
    z = olympus.make_array_from_callback((2,), NamedSharding(crossed, P("a")), lambda i: np.ones(1))
    assert utils.global_array_to_host_local_array(z, crossed, P("a")).shape == (1,)

    utils.sync_global_devices("a place")
    error(AssertionError, "name mismatch", lambda: utils.sync_global_devices(f"place {me}"))
    utils.assert_equal({"a": [np.array([np.nan, 0.0]), r]})
    error(AssertionError, f"steps. Expected: [array(0), array(1)]; got: {me}. The processes that "
          f"differ from process {me} are [{1 - me}].", lambda: utils.assert_equal(me, "steps"))
    assert utils.reached_preemption_sync_point(1) is False
    with utils.live_devices(olympus.devices()) as alive:
        assert alive == olympus.devices()
    error(ValueError, "No devices", lambda: utils.live_devices([]).__enter__())
    say("together is right")


def preempted():
    """A notice to one process is heard by all, which stop at one step."""
    me, last = olympus.process_index(), None
    for step in range(1000):
        utils.sync_global_devices("step")
        if step == 5 and me == 1:
            os.kill(os.getpid(), signal.SIGTERM)
        if utils.reached_preemption_sync_point(step):
            last = step
            break
    assert 5 <= last < 999
    utils.assert_equal(last)
    say("stopped together")


def survives():
    """With recoverability, the others see who was lost, and go on."""
    error_ = None
    try:
        with utils.live_devices(olympus.devices()) as alive:
            assert alive == olympus.devices()
            if olympus.process_index() == 1:
                os.kill(os.getpid(), signal.SIGKILL)
            time.sleep(1)
    except utils.ProcessFailureError as e:
        error_ = e
    assert {d.process_index for d in error_.failed_devices} == {1}
    with utils.live_devices(olympus.devices()) as alive:
        assert alive == olympus.local_devices()
        assert float(olympus.jit(onp.sum)(onp.arange(4.0))) == 6
    say("survived")
    sys.stdout.flush()
    os._exit(0)


def checkpoints(directory):
    """Each process writes its shards; they are read as other shards."""
    me, root = olympus.process_index(), Path(directory)
    mesh = Mesh(np.array(olympus.devices()).reshape(2, 2), ("host", "device"))
    value = np.arange(64, dtype=np.float32).reshape(8, 8)

    def over(*spec, value=value):
        return olympus.make_array_from_callback(
            value.shape, NamedSharding(mesh, P(*spec)), lambda index: value[index])

    tree = {"a": over("host", "device"), "b": [over(None, "host"), None], "c": over(),
            "d": np.arange(3, dtype=np.int8)}
    for _ in range(2):      # in the place of the one before
        ps.save(tree, root / "run")
    utils.sync_global_devices("saved")
    assert sorted(p.name for p in root.iterdir()) == ["run"]
    assert len(list((root / "run" / "array_store").glob(f"*/process_{me}"))) == 1
    for spec in (P("device"), P(("host", "device")), P(None, "host"), P()):
        found = ps.load(root / "run", {
            "a": NamedSharding(mesh, spec), "b": NamedSharding(mesh, P("host")),
            "c": SingleDeviceSharding(olympus.local_devices()[0]), "d": NamedSharding(mesh, P())})
        assert found["a"].sharding == NamedSharding(mesh, spec) and found["b"][1] is None
        for x in (found["a"], found["b"][0], found["c"]):
            assert all(np.array_equal(s.data, value[s.index]) for s in x.addressable_shards)
        assert np.array_equal(found["d"], [0, 1, 2])

    later = ps.nonblocking_save({"a": tree["a"] + 1}, root / "run")
    assert float(tree["a"].sum()) == value.sum()    # the devices are free meanwhile
    later.result()
    again = ps.load(root / "run", NamedSharding(mesh, P("host")))["a"]
    assert all(np.array_equal(s.data, value[s.index] + 1) for s in again.addressable_shards)

    error(ValueError, "to different locations", lambda: ps.save(tree, root / f"run{me}")
          ) if me else error(OlympusRuntimeError, "save: it failed in process 1", lambda: ps.save(
              tree, root / f"run{me}"))
    error(ValueError if me == 0 else OlympusRuntimeError, "Files already exist",
          lambda: ps.save(tree, root / "run", overwrite=False))
    error(ValueError, "Passing fully addressable arrays to a multiprocess",
          lambda: ps.save({"a": onp.ones(2)}, root / "run"))
    assert ps.load_pytreedef(root / "run")["a"].shape == (8, 8)     # still whole

    manager, committed = serialization.GlobalAsyncCheckpointManager(60), []
    paths = [str(root / name) for name in ("x", "y")]
    manager.serialize_with_paths([tree["a"], tree["c"]], paths,
                                 on_commit_callback=lambda: committed.append(me))
    manager.wait_until_finished()
    assert committed == [0] * (me == 0)
    sharding = NamedSharding(mesh, P(None, ("device", "host")))
    for x in manager.deserialize_with_paths([sharding] * 2, paths):
        assert x.sharding == sharding
        assert all(np.array_equal(s.data, value[s.index]) for s in x.addressable_shards)
    say("checkpoints are right")


def used():
    x = everywhere(np.arange(6, dtype=np.float32), "x")
    f = olympus.jit(onp.sum)
    assert float(f(x)) == 15
    return f, x


def killed():
    f, x = used()
    if olympus.process_index() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        f(x).block_until_ready()


def raises():
    f, x = used()
    if olympus.process_index() == 1:
        raise ValueError("of process 1")
    while True:
        f(x).block_until_ready()


def lost(how, victim):
    """Others catch the errors that they get, compute alone, and end well, after the heartbeats."""
    f, x = used()
    if olympus.process_index() == int(victim):
        if how == "silent":
            time.sleep(600)
        if how == "raises":
            raise ValueError("of the victim")
        os.kill(os.getpid(), signal.SIGKILL) if how == "killed" else sys.exit(0)
    for g in (f, f, olympus.jit(lambda x: onp.sum(x) + 1)):
        try:
            while True:
                g(x).block_until_ready()
        except OlympusRuntimeError as e:
            say("error:", e)
    assert float(olympus.jit(onp.sum)(onp.arange(4.0))) == 6
    if how == "killed":
        time.sleep(12)
    say("ended well")


def goes_on():
    """After one was lost, two that are left run a program on their devices, if they may."""
    f, x = used()
    if olympus.process_index() == 2:
        os.kill(os.getpid(), signal.SIGKILL)
    error(OlympusRuntimeError, "process 2", lambda: [f(x).block_until_ready() for _ in range(99)])
    left = NamedSharding(Mesh(olympus.devices()[:2], ("x",)), P("x"))
    y = olympus.make_array_from_callback((2,), left, lambda index: np.ones(1, np.float32))
    try:
        say("sum", float(f(y)))
    except OlympusRuntimeError as e:
        say("error:", e)


def first_run():
    """One ends before a program that the others come to for the first time."""
    _, x = used()
    if olympus.process_index() == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    try:
        olympus.jit(lambda x: onp.sum(x) + 1)(x)
    except OlympusRuntimeError as e:
        say("error:", e)


def leaves_first():
    """A process that has no more to do does not keep the others, nor does it end them."""
    used()
    if olympus.process_index() != 0:
        time.sleep(8)
        assert float(onp.sum(onp.arange(4.0))) == 6
    say("ended well")


def mismatched():
    f, x = used()
    olympus.config.update("olympus_program_agreement_timeout_seconds", 3)
    if olympus.process_index() == 1:
        f = olympus.jit(lambda x: onp.sum(x) + onp.max(x))
    while True:
        f(x).block_until_ready()


def other_program():
    _, x = used()
    olympus.jit(lambda x: x * (2 + olympus.process_index()))(x)


def sleeps():
    time.sleep(600)


if __name__ == "__main__":
    case, *options = sys.argv[1:]
    distributed.initialize(initialization_timeout=60, heartbeat_timeout_seconds=10)
    globals()[case](*options)
