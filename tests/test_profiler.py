"""Profiles: what is written is read again and says what ran; listeners are told of compiling."""

import gzip
import json
import socket
import threading
import urllib.request

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import monitoring, profiler
from olympus._src.base import config as table
from olympus._src.runtime import disk_cache, profiler as private

# Python 3.12 and later say so of a class of jaxlib's.
pytestmark = pytest.mark.filterwarnings("ignore:builtin type event_stats:DeprecationWarning")


def wire(data):
    """(number, value) of each field of a message of Google's wire format; bytes for what nests."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        else:
            size = {1: 8, 5: 4}.get(key & 7) or varint()
            yield key >> 3, data[at:at + size]
            at += size


def fields(message, number):
    """The values of one field, which may be there more than once."""
    return [value for n, value in wire(message) if n == number]


def names_in(space):
    """The names of the events of a profile: planes are field 1, their table of names is field 4."""
    tables = [entry for plane in fields(space, 1) for entry in fields(plane, 4)]
    return {fields(fields(entry, 2)[0], 2)[0].decode() for entry in tables
            if fields(fields(entry, 2)[0], 2)}


def work(x):
    with olympus.named_scope("products"):
        return onp.tanh(x @ x)


QUIET = profiler.ProfileOptions()
QUIET.python_tracer_level = 0       # otherwise all of pytest's calls are in the profile


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """What a profile of one step writes."""
    path = tmp_path_factory.mktemp("profile")
    with (table.enable_compilation_cache(False),
          profiler.trace(path, create_perfetto_trace=True, profiler_options=QUIET),
          profiler.StepTraceAnnotation("step of training", step_num=7)):
        olympus.jit(work)(onp.ones((30, 30))).block_until_ready()
    run, = (path / "plugins" / "profile").iterdir()
    return run


def test_the_profile_says_what_ran_under_which_name(folder):
    file, = folder.glob("*.xplane.pb")
    found = names_in(file.read_bytes())
    assert "step of training" in found
    assert any("tanh" in name for name in found), found
    assert b"products" in file.read_bytes(), "the scope of the operations"


def test_the_profile_is_read_by_its_own_class_too(folder):
    file, = folder.glob("*.xplane.pb")
    data = profiler.ProfileData.from_file(file)
    lines = [line for plane in data.planes for line in plane.lines]
    steps = [event for line in lines for event in line.events if event.name == "step of training"]
    assert [dict(step.stats)["step_num"] for step in steps] == [7]
    assert steps[0].duration_ns > 0
    again = profiler.ProfileData.from_serialized_xspace(file.read_bytes())
    assert {p.name for p in again.planes} == {p.name for p in data.planes}


@pytest.mark.parametrize("name", ["perfetto_trace.json.gz", "*.trace.json.gz"])
def test_perfetto_and_chrome_have_the_events(folder, name):
    file = min(folder.glob(name))
    events = json.loads(gzip.decompress(file.read_bytes()))["traceEvents"]
    assert "step of training" in {event.get("name") for event in events}


def test_one_profile_at_a_time(tmp_path):
    with profiler.trace(profiler_options=QUIET) as first:
        with pytest.raises(RuntimeError, match="while another one is under way"):
            profiler.start_trace(tmp_path)
        with pytest.raises(RuntimeError, match="one profile at a time"):
            profiler.export_profile_data(private.ProfileData(b""), tmp_path)
        assert first.is_running
    assert not first.is_running
    with pytest.raises(RuntimeError, match="no profile is under way"):
        profiler.stop_trace()
    assert not [*tmp_path.iterdir()]


def test_two_profiles_of_one_second_are_both_kept(tmp_path):
    for _ in range(2):
        with profiler.trace(tmp_path, profiler_options=QUIET):
            pass
    assert len([*(tmp_path / "plugins" / "profile").iterdir()]) == 2
    assert [p.name for p in tmp_path.iterdir()] == ["plugins"]


def test_a_profile_is_written_although_the_block_raises(tmp_path):
    with pytest.raises(KeyError), profiler.trace(tmp_path, profiler_options=QUIET):
        raise KeyError
    assert [*tmp_path.glob("plugins/profile/*/*.xplane.pb")]


def test_the_options_name_the_run(tmp_path):
    options = profiler.ProfileOptions()
    options.python_tracer_level, options.session_id = 0, "run 1"
    profiler.start_trace(tmp_path, profiler_options=options)
    profiler.stop_trace()
    assert [p.name for p in (tmp_path / "plugins" / "profile").iterdir()] == ["run 1"]


def test_the_link_gives_the_trace_to_perfetto_once(tmp_path, monkeypatch, capsys):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    monkeypatch.setattr(private, "_PERFETTO_PORT", port)
    profiler.start_trace(tmp_path, create_perfetto_link=True, profiler_options=QUIET)
    stopping = threading.Thread(target=profiler.stop_trace)
    stopping.start()
    for _ in range(10_000):     # until it listens
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/x") as answer:
                data, headers = answer.read(), answer.headers
            break
        except OSError:
            stopping.join(0.01)
    stopping.join()
    assert "traceEvents" in json.loads(gzip.decompress(data))
    assert headers["Access-Control-Allow-Origin"] == "https://ui.perfetto.dev"
    assert "https://ui.perfetto.dev/#!/?url=http://127.0.0.1" in capsys.readouterr().out


def test_one_server_at_a_time_and_no_taken_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(ValueError, match="at which another server is"):
            profiler.start_server(port)
    profiler.start_server(port)
    with pytest.raises(ValueError, match="while there is one"):
        profiler.start_server(port)
    profiler.stop_server()
    with pytest.raises(ValueError, match="no server of profiles"):
        profiler.stop_server()


def strings_of(profile):
    """The table of strings of a pprof file."""
    return [value.decode() for value in fields(gzip.decompress(profile), 6)]


def sizes_of(profile):
    """The values of the samples: how many, how many bytes."""
    samples = fields(gzip.decompress(profile), 2)
    return [[*varints(fields(sample, 2)[0])] for sample in samples]


def varints(packed):
    return [value for _, value in wire(b"".join(b"\0" + packed[a:b] for a, b in cuts(packed)))]


def cuts(packed):
    start = 0
    for at, byte in enumerate(packed):
        if byte < 128:
            yield start, at + 1
            start = at + 1


def test_the_memory_of_an_array_is_in_the_profile(tmp_path):
    before = sum(size for _, size in sizes_of(profiler.device_memory_profile()))
    x = onp.ones((1000, 250)) + 1
    x.block_until_ready()
    profiler.save_device_memory_profile(tmp_path / "memory", "cpu")
    after = sum(size for _, size in sizes_of((tmp_path / "memory").read_bytes()))
    assert after - before >= x.nbytes


def made_here():
    return onp.ones((3, 5)) + 1


def test_arrays_know_what_made_them_where_that_is_asked_for():
    kept = made_here()
    assert "made_here" not in strings_of(profiler.device_memory_profile())
    with table.array_tracebacks(True):
        kept = made_here()
        assert "made_here" in strings_of(profiler.device_memory_profile())
    kept = made_here()
    assert kept.shape == (3, 5)


def test_annotated_functions_keep_their_name_and_values():
    @profiler.annotate_function
    def load(n):
        """Words."""
        return n + 1

    assert (load(2), load.__name__, load.__doc__) == (3, "load", "Words.")
    with profiler.trace(profiler_options=QUIET) as session:
        profiler.annotate_function(lambda: None, name="mine", size=3)()
        load(1)
    events = [event for plane in session.profile_data.planes for line in plane.lines
              for event in line.events]
    assert {"mine", "load"} <= {event.name for event in events}
    assert [dict(e.stats)["size"] for e in events if e.name == "mine"] == [3]


@pytest.mark.parametrize("call, error, match", [
    (lambda: profiler.annotate_function(3), TypeError, "a function is required"),
    (lambda: profiler.trace(profiler_options={}).__enter__(), TypeError, "ProfileOptions"),
    (lambda: profiler.trace(create_perfetto_trace=True).__enter__(), ValueError, "no log_dir"),
    (lambda: profiler.export_profile_data(b"", "/tmp"), TypeError, "ProfileData is required"),
    (lambda: profiler.ProfileSession().stop(), RuntimeError, "not under way"),
    (lambda: profiler.ProfileSession().export_profile_data("/tmp"), RuntimeError, "nothing"),
    (lambda: profiler.start_trace(3), TypeError, "log_dir 3 of type int"),
    (lambda: profiler.start_trace("/proc/nowhere"), OSError, "/proc/nowhere"),
    (lambda: profiler.TraceAnnotation(3), TypeError, "TraceAnnotation: name 3"),
    (lambda: profiler.start_server(0), ValueError, "1 to 65535"),
    (lambda: profiler.start_server("a"), TypeError, "start_server"),
])
def test_what_is_refused(call, error, match):
    with pytest.raises(error, match=match):
        call()
    assert private._running is None


# Monitoring --------------------------------------------------------------------------------------

@pytest.fixture
def told():
    """What listeners of all kinds are told, in order."""
    seen = []
    monitoring.register_event_listener(lambda event, **more: seen.append((event, more)))
    monitoring.register_event_duration_secs_listener(
        lambda event, seconds, **more: seen.append((event, seconds, more)))
    monitoring.register_event_time_span_listener(
        lambda event, start, end, **more: seen.append((event, start, end, more)))
    monitoring.register_scalar_listener(
        lambda event, value, **more: seen.append((event, value, more)))
    yield seen
    monitoring.clear_event_listeners()


def test_compiling_is_told_with_the_functions_name(clear_caches, told):
    def cubed(x):
        return x * x * x

    olympus.jit(cubed)(np.float32(2))
    steps = [(len(row), row[0]) for row in told if row[-1].get("fun_name") == "cubed"]
    for step in ("olympuspr_trace", "olympuspr_to_mlir_module", "backend_compile"):
        event = f"/olympus/core/compile/{step}_duration"
        assert [n for n, name in steps if name == event] == [3, 3, 4], event  # number, time, span
    spans = [row for row in told if len(row) == 4]
    assert all(start <= end for _, start, end, _ in spans)
    told.clear()
    olympus.jit(cubed)(np.float32(3))
    assert not told, "nothing is compiled again"


def test_the_cache_on_disk_tells_hits_and_misses(told, tmp_path):
    def call():
        olympus.clear_caches()
        olympus.jit(lambda x: x * 7 + 5)(np.float32(2))

    path = "/olympus/compilation_cache/"
    with table.compilation_cache_dir(str(tmp_path)):
        call()
        disk_cache.flush()
        first = [row[0] for row in told if row[0].startswith(path)]
        told.clear()
        call()
    assert first == [path + "compile_requests_use_cache", path + "cache_misses"]
    assert [row[0] for row in told if row[0].startswith(path)] == [
        path + "compile_requests_use_cache", path + "cache_hits",
        path + "compile_time_saved_sec", path + "cache_retrieval_time_sec"]


def test_a_listener_that_raises_is_no_fault_of_the_cache(tmp_path):
    def refuse(event, **more):
        if event.endswith("cache_hits"):
            raise ZeroDivisionError

    def call():
        olympus.clear_caches()
        return olympus.jit(lambda x: x * 11 + 5)(np.float32(2))

    with table.compilation_cache_dir(str(tmp_path)):
        call()
        disk_cache.flush()
        monitoring.register_event_listener(refuse)
        try:
            with pytest.raises(ZeroDivisionError):
                call()
        finally:
            monitoring.clear_event_listeners()
        assert call() == 27


REGISTRATIONS = [
    (monitoring.register_event_listener, monitoring.unregister_event_listener,
     lambda: monitoring.record_event("/e", a=1), (("/e",), {"a": 1})),
    (monitoring.register_event_duration_secs_listener,
     monitoring.unregister_event_duration_listener,
     lambda: monitoring.record_event_duration_secs("/e", 0.5, a=1), (("/e", 0.5), {"a": 1})),
    (monitoring.register_event_time_span_listener,
     monitoring.unregister_event_time_span_listener,
     lambda: monitoring.record_event_time_span("/e", 1.0, 2.0), (("/e", 1.0, 2.0), {})),
    (monitoring.register_scalar_listener, monitoring.unregister_scalar_listener,
     lambda: monitoring.record_scalar("/e", 3), (("/e", 3), {})),
]


@pytest.mark.parametrize("register, unregister, record, expected", REGISTRATIONS,
                         ids=["event", "duration", "span", "scalar"])
def test_a_listener_is_told_until_it_is_unregistered(register, unregister, record, expected):
    seen = []

    def listen(*args, **more):
        seen.append((args, more))

    register(listen)
    record()
    unregister(listen)
    record()
    assert seen == [expected]
    with pytest.raises(ValueError, match=f"{unregister.__name__}: .*which does not listen"):
        unregister(listen)
    with pytest.raises(TypeError, match="a function is required"):
        register(3)


def test_a_listener_may_end_itself_while_it_is_told():
    seen = []

    def once(event, **more):
        monitoring.unregister_event_listener(once)
        seen.append(event)

    monitoring.register_event_listener(once)
    monitoring.register_event_listener(lambda event, **more: seen.append(event))
    try:
        monitoring.record_event("/e")
        monitoring.record_event("/e")
    finally:
        monitoring.clear_event_listeners()
    assert seen == ["/e"] * 3
