"""Jobs of several processes: how they are found, join, agree, compute, and what they say of each
other's failures. What runs in the processes is in distributed_cases.py."""

import http.server
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import types
from pathlib import Path

import distributed_cases
import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import distributed
from olympus._src.base import lib
from olympus._src.command_line.distributed import main
from olympus._src.job import clusters, distributed as joining, launch, rollcall
from olympus.errors import OlympusRuntimeError
from olympus.experimental import multihost_utils as utils

CASES = distributed_cases.__file__
KNOWN = ("OMPI_", "SLURM_", "TPU_", "MEGASCALE_", "KUBERNETES_", "OLYMPUS_", "GCE_", "JOB_")


@pytest.fixture
def environment(monkeypatch):
    """Sets exactly these variables of the ones that are looked for."""
    def set_(**variables):
        for name in list(os.environ):
            if name.startswith(KNOWN):
                monkeypatch.delenv(name)
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
    return set_


def found(method=None, **given):
    values = {"coordinator": None, "count": None, "process": None, "local_devices": None, **given}
    return clusters.detect(method, **values, timeout=1)


OMPI = {"OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911",
        "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_RANK": "3", "OMPI_COMM_WORLD_LOCAL_RANK": "1"}
SLURM = {"SLURM_JOB_ID": "4100", "SLURM_STEP_NODELIST": "node001", "SLURM_NTASKS": "8",
         "SLURM_PROCID": "5", "SLURM_LOCALID": "2"}


@pytest.mark.parametrize(("variables", "expected"), [
    ({}, (None, None, None, None)),
    (OMPI, (f"10.96.0.1:{61440 + 1531576320 // 4096 % 4096}", 4, 3, [1])),
    ({**OMPI, "OMPI_MCA_orte_hnp_uri": "4096.0;tcp6://[fe80::1,2620::2]:43370"},
     ("fe80::1:61441", 4, 3, [1])),
    (SLURM, ("node001:61444", 8, 5, [2])),
    ({**SLURM, "SLURM_STEP_NODELIST": "node001,host2"}, ("node001:61444", 8, 5, [2])),
    ({**SLURM, "SLURM_STEP_NODELIST": "node[001-015],host2"}, ("node001:61444", 8, 5, [2])),
    ({**SLURM, "SLURM_STEP_NODELIST": "n-[07,09-15]"}, ("n-07:61444", 8, 5, [2])),
    ({**SLURM, "OLYMPUS_COORDINATOR_PORT": "1234"}, ("node001:1234", 8, 5, [2])),
    ({**SLURM, **OMPI}, (f"10.96.0.1:{61440 + 1531576320 // 4096 % 4096}", 4, 3, [1])),
    ({k: v for k, v in SLURM.items() if k != "SLURM_LOCALID"}, (None, None, None, None)),
    ({"OLYMPUS_FORCE_TPU_INIT": "1", "TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_ID": "1",
      "TPU_WORKER_HOSTNAMES": "127.0.0.1,127.0.0.2"}, ("127.0.0.1:8482", 2, 1, None)),
    ({"OLYMPUS_FORCE_TPU_INIT": "1", "TPU_WORKER_ID": "1", "MEGASCALE_NUM_SLICES": "3",
      "MEGASCALE_SLICE_ID": "2", "MEGASCALE_COORDINATOR_ADDRESS": "127.0.0.9:5",
      "TPU_PROCESS_ADDRESSES": "127.0.0.1:1,127.0.0.2:1"}, ("127.0.0.9:8482", 6, 5, None)),
], ids=lambda v: "" if isinstance(v, tuple) else "+".join(sorted({k.split("_")[0] for k in v})))
def test_environments_of_clusters(environment, variables, expected):
    environment(**variables)
    assert found() == expected


def test_what_is_given_is_kept(environment):
    environment(**SLURM)
    assert found(coordinator="a:1", count=2, process=0, local_devices=[7]) == ("a:1", 2, 0, [7])
    assert found(count=99) == ("node001:61444", 99, 5, [2])


def test_open_mpi_without_an_address(environment):
    environment(**{**OMPI, "OMPI_MCA_orte_hnp_uri": "nothing"})
    with pytest.raises(RuntimeError, match="OMPI_MCA_orte_hnp_uri='nothing' given; a job number"):
        found()


def test_mpi4py_is_asked_when_named(environment, monkeypatch):
    environment(**SLURM)
    with pytest.raises(ValueError, match="'mpi4py' given; that environment is not here"):
        found("mpi4py")
    world = types.SimpleNamespace(
        Get_rank=lambda: 0, Get_size=lambda: 2, bcast=lambda value, root: value,
        Split_type=lambda kind: types.SimpleNamespace(Get_rank=lambda: kind))
    mpi = types.ModuleType("mpi4py.MPI")
    mpi.COMM_WORLD, mpi.COMM_TYPE_SHARED = world, 5
    package = types.ModuleType("mpi4py")
    package.__spec__ = types.SimpleNamespace(name="mpi4py")
    package.MPI = mpi
    monkeypatch.setitem(sys.modules, "mpi4py", package)
    monkeypatch.setitem(sys.modules, "mpi4py.MPI", mpi)
    address, *rest = found("mpi4py")
    host, port = address.split(":")
    assert host == socket.gethostname() and 61440 <= int(port) < 65536 and rest == [2, 0, [5]]
    assert found()[0] == "node001:61444"    # Slurm, since nobody named it


def test_unknown_method(environment):
    environment()
    with pytest.raises(ValueError, match="'pbs' given; the name of one is required: ompi, slurm"):
        found("pbs")


class Metadata(http.server.BaseHTTPRequestHandler):
    """The metadata server of a made-up virtual machine with TPUs."""

    values = {"agent-worker-number": "1", "worker-network-endpoints": "a:b:127.0.0.3,a:b:127.0.0.4",
              "tpu-env": "ZONE: 'z'\nMEGASCALE_NUM_SLICES: '2'\nMEGASCALE_SLICE_ID: '1'\n"}

    def do_GET(self):
        value = self.values.get(self.path.rsplit("/", 1)[1])
        known = value is not None and self.headers["Metadata-Flavor"] == "Google"
        self.send_response(200 if known else 404)
        self.end_headers()
        self.wfile.write((value or "").encode())

    def log_message(self, *words):
        pass


def test_tpus_of_virtual_machines(environment):
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Metadata) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,)).start()
        environment(OLYMPUS_FORCE_TPU_INIT="1", GCE_METADATA_IP=f"127.0.0.1:{server.server_port}")
        try:
            assert found() == ("127.0.0.3:8482", 4, 3, None)
        finally:
            server.shutdown()


def kubernetes(labels, subdomain="pods", owner="Job"):
    """The package kubernetes, with one pod of one job."""
    class ApiException(Exception):
        status, reason = 403, "Forbidden"

    space = types.SimpleNamespace
    pod = space(spec=space(subdomain=subdomain), metadata=space(
        name="train-1", labels={"job-name": "train"},
        owner_references=[space(controller=True, kind=owner)]))
    job = space(metadata=space(name="train", labels=labels), spec=space(parallelism=3))

    def pods(namespace, field_selector):
        if namespace == "forbidden":
            raise ApiException
        assert field_selector.startswith("status.podIP=127.")
        return space(items=[pod])

    module = types.ModuleType("kubernetes")
    module.__spec__ = space(name="kubernetes")
    module.config = space(load_incluster_config=lambda: None)
    module.client = space(
        exceptions=space(ApiException=ApiException),
        CoreV1Api=lambda: space(list_namespaced_pod=pods),
        BatchV1Api=lambda: space(read_namespaced_job=lambda name, namespace: job))
    return module


POD = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "HOSTNAME": "localhost", "JOB_COMPLETION_INDEX": "2"}


def test_kubernetes(environment, monkeypatch, tmp_path):
    environment(**POD)
    namespace = tmp_path / "namespace"
    namespace.write_text("mine\n")
    monkeypatch.setattr(clusters.Kubernetes, "_NAMESPACE", namespace)
    monkeypatch.setattr(clusters, "_wait_for_name", lambda host, timeout: None)

    def install(*how, **what):
        monkeypatch.setitem(sys.modules, "kubernetes", kubernetes(*how, **what))

    install({})
    assert found() == ("train-0.pods:55527", 3, 2, None)
    install({"jobset.sigs.k8s.io/jobset-name": "set"})
    assert found() == ("train-0.set:55527", 3, 2, None)
    install({}, subdomain=None)
    with pytest.raises(RuntimeError, match="have no subdomain; a headless service"):
        found()
    install({}, owner="ReplicaSet")
    with pytest.raises(RuntimeError, match=r"train-1 is of \['ReplicaSet'\]; a Job or JobSet"):
        found()
    install({})
    namespace.write_text("forbidden")
    with pytest.raises(RuntimeError, match="answered 403 Forbidden; leave to read pods"):
        found()
    monkeypatch.delenv("JOB_COMPLETION_INDEX")
    with pytest.raises(RuntimeError, match="an indexed job is required"):
        found(coordinator="a:1", count=1)


def test_kubernetes_without_its_package(environment):
    environment(**POD)
    with pytest.warns(UserWarning, match="the package kubernetes"):
        assert found() == (None, None, None, None)


# The roll call ----------------------------------------------------------------------------------

def free_port():
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def roll_call(members, timeout=5.0):
    """Each process's outcome: the hosts that it learns of, or its error."""
    address, outcomes = f"127.0.0.1:{free_port()}", {}

    def run(i, mine):
        try:
            if mine.process_id == 0:
                all_, connections = rollcall.gather(address, mine, timeout)
                rollcall.announce(all_, connections)
            else:
                all_ = rollcall.report(address, mine, timeout)
            outcomes[i] = [m.host for m in all_]
        except OlympusRuntimeError as error:
            outcomes[i] = str(error)

    threads = [threading.Thread(target=run, args=pair) for pair in enumerate(members)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    return [outcomes[i] for i in range(len(members))]


def member(i, count=3, versions="v", host="h"):
    return rollcall.Member(i, count, f"{host}{i}", 100 + i, 1, versions)


def test_all_come():
    assert roll_call([member(2), member(0), member(1)]) == [["h0", "h1", "h2"]] * 3


@pytest.mark.parametrize(("members", "match"), [
    ([member(0), member(1, 4)], r"process 1 \(h1, pid 101\) says num_processes=4, process 0 "
     r"\(h0, pid 100\) says 3; one number is required"),
    ([member(0), member(1, versions="w")], r"process 1 \(h1, pid 101\) runs w, .* runs v; one"),
    ([member(0), member(1, host="a"), member(1, host="b")],
     r"process 1 \([ab]1, pid 101\) and process 1 \([ab]1, pid 101\) have the same process_id"),
])
def test_one_that_does_not_fit_is_named_to_all(members, match):
    for outcome in roll_call(members):
        assert re.search(match, str(outcome)), outcome


def test_those_that_do_not_come_are_named():
    outcomes = roll_call([member(0, 4), member(2, 4)], timeout=0.3)
    for outcome in outcomes:
        assert "processes 1, 3 did not report to process 0 within 0 seconds; 2 of 4 are" in outcome


def test_the_coordinator_ends_without_stopping_its_service():
    """Stopping it was now and then a segmentation fault of the coordinator, in gRPC."""
    code = """
import io, sys
from olympus._src.base.lib import coordinator
class Service:
    def shutdown(self):
        print("stopped", flush=True)
    __del__ = shutdown
coordinator._start_service = lambda **asked: Service()
sys.stdin = io.StringIO('{"pulses": [], "heartbeat_timeout": 1}')
coordinator.main()
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True,
                           timeout=100)
    assert (ended.stdout, ended.stderr, ended.returncode) == ("null\n", "", 0)


def test_no_coordinator():
    outcome, = roll_call([member(2)], timeout=0.2)
    assert re.search(r"process 2 of 3 got no answer from the coordinator, process 0, at 127.0.0.1:"
                     r"\d+ within 0 seconds \(.*refused\); start process 0", outcome)


def test_no_time_to_wait():
    with pytest.raises(OlympusRuntimeError, match="no time was given"):
        rollcall.report("127.0.0.1:1", member(1), 0)


def test_strangers_at_the_port_do_not_matter():
    port, known = free_port(), []
    mine = member(0, 2)

    def gather():
        members, connections = rollcall.gather(f"[::]:{port}", mine, 5)
        rollcall.announce(members, connections)
        known.append(members)

    thread = threading.Thread(target=gather)
    thread.start()
    for said in (b"GET / HTTP/1.1\r\n\r\n", b"[1, 2]\n", b""):
        while True:
            try:
                with socket.create_connection(("127.0.0.1", port)) as s:
                    s.sendall(said)
            except ConnectionRefusedError:
                continue
            break
    with socket.create_connection(("127.0.0.1", port)) as s:
        rollcall._say(s, member(1, 2)[:-1])
        thread.join()
    assert [m.host for m in known[0]] == ["h0", "h1"] and known[0][1].address.endswith("127.0.0.1")


def test_a_port_in_use():
    with socket.create_server(("127.0.0.1", 0)) as s, pytest.raises(
            OlympusRuntimeError, match="process 0 cannot listen at .*Address already in use"):
        rollcall.gather(f"127.0.0.1:{s.getsockname()[1]}", member(0), 1)


def test_who_lives():
    with rollcall.open_pulse() as pulse:
        mine = rollcall.introduce(0, 1, pulse, "v")
        assert rollcall.reachable(mine, "127.0.0.1:1") is True
        watch = rollcall.Watch([mine], "127.0.0.1:1")
        assert watch.look(0) == [] and not watch.wait(0)
    assert rollcall.reachable(mine, "127.0.0.1:1") is False
    with watch:
        assert watch.wait(5) and watch.ended == [mine]


def test_a_service_without_its_port():
    # Some such services end their process, too, which is why they have one.
    with socket.create_server(("127.0.0.1", 0)) as s, lib.prepare_service() as service, (
            pytest.raises(OlympusRuntimeError, match=r"does not start at .* \(.*\); a free port")):
        lib.start_service(service, f"127.0.0.1:{s.getsockname()[1]}", 1, heartbeat_timeout=9,
                          shutdown_timeout=9, pulses=[])


@pytest.mark.parametrize("given", ["", "--xla_cpu_collective_timeout_seconds=7"])
def test_the_users_own_timeout_of_collectives_holds(monkeypatch, given):
    monkeypatch.setenv("XLA_FLAGS", given)
    lib.limit_collectives(5)
    assert os.environ["XLA_FLAGS"].split() == [
        "--xla_cpu_collective_timeout_seconds=5", *given.split()]


# Arguments --------------------------------------------------------------------------------------

@pytest.mark.parametrize(("kind", "match", "given"), [
    (ValueError, "no coordinator_address and no num_processes and no process_id given", {}),
    (ValueError, "no process_id given", {"coordinator_address": "a:1", "num_processes": 2}),
    (ValueError, "process_id 2 and num_processes 2 given; 0 <= process_id",
     {"coordinator_address": "a:1", "num_processes": 2, "process_id": 2}),
    (ValueError, "process_id -1 and num_processes 2", {"coordinator_address": "a:1",
                                                       "num_processes": 2, "process_id": -1}),
    (TypeError, "process_id '0' of type str given; a nonnegative int", {"process_id": "0"}),
    (TypeError, "num_processes 2.0 of type float", {"num_processes": 2.0}),
    (ValueError, "coordinator_address 'host' given; host:port is required",
     {"coordinator_address": "host", "num_processes": 1, "process_id": 0}),
])
def test_bad_arguments(environment, monkeypatch, kind, match, given):
    environment()
    monkeypatch.setattr(joining.current, "clients", {})
    with pytest.raises(kind, match=match):
        distributed.initialize(**given)


def test_bad_environment(environment, monkeypatch):
    environment(OLYMPUS_NUM_PROCESSES="two")
    monkeypatch.setattr(joining.current, "clients", {})
    with pytest.raises(ValueError, match="OLYMPUS_NUM_PROCESSES='two' given; a whole number"):
        distributed.initialize()


def test_too_late():
    olympus.devices()
    with pytest.raises(RuntimeError, match="called after a backend was started; it must be called"):
        distributed.initialize("localhost:1", 1, 0)
    assert not distributed.is_initialized()
    distributed.shutdown()


# Processes --------------------------------------------------------------------------------------

def run(capfd, case, count, *options, cpu_devices=1):
    """The exit status of a case and the lines of each process."""
    status = launch.launch([CASES, case, *options], count, cpu_devices)
    lines = capfd.readouterr().out.splitlines()
    return status, [[line[4:] for line in lines if line.startswith(f"[{i}] ")]
                    for i in range(count)]


@pytest.fixture(autouse=True)
def own_copy(monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(p for p in sys.path if p))


def test_launch_gives_each_process_its_place(capfd):
    program = ("import os; print(os.environ['OLYMPUS_PROCESS_ID'], os.environ["
               "'OLYMPUS_NUM_PROCESSES'], os.environ['OLYMPUS_NUM_CPU_DEVICES'])")
    assert launch.launch(["-c", program], 2, 3) == 0
    assert sorted(capfd.readouterr().out.splitlines()) == ["[0] 0 2 3", "[1] 1 2 3"]


@pytest.mark.parametrize(("ending", "status"), [
    ("sys.exit(3)", 3), ("os.kill(os.getpid(), 9)", 128 + signal.SIGKILL)])
def test_launch_ends_all_when_one_fails(capfd, monkeypatch, ending, status):
    monkeypatch.setattr(launch, "_GRACE", 0.0)
    program = (f"import os, sys, time\nif os.environ['OLYMPUS_PROCESS_ID'] == '1': {ending}\n"
               "time.sleep(600)")
    assert launch.launch(["-c", program], 2) == status


def test_launch_without_a_program(capsys):
    with pytest.raises(SystemExit):
        main(["launch", "-n", "2"])
    assert "no program given" in capsys.readouterr().err


def test_two_processes(capfd):
    status, lines = run(capfd, "views", 2)
    assert status == 0 and all("views are right" in ls for ls in lines), lines


@pytest.mark.slow
@pytest.mark.parametrize(("count", "devices"), [(2, 2), (4, 1), (2, 4)])
def test_a_training_step_has_the_bits_of_one_process(capfd, count, devices):
    status, (alone,) = run(capfd, "train", 1, cpu_devices=count * devices)
    assert status == 0
    expected = [line for line in alone if line.startswith("result")]
    status, lines = run(capfd, "train", count, cpu_devices=devices)
    assert status == 0, lines
    for ls in lines:
        assert [line for line in ls if line.startswith("result")] == expected


@pytest.mark.slow
def test_programs_on_disk_are_those_of_all_processes(capfd, tmp_path):
    # Both have none; both have it; one has it, and the other has no directory that it can make.
    here, nowhere = str(tmp_path / "programs"), os.path.join(os.devnull, "nowhere")
    for directories, traced in (((here,), [True, True]), ((here,), [False, False]),
                                ((here, nowhere), [False, True])):
        status, lines = run(capfd, "kept", 2, *directories)
        assert status == 0 and all("kept is right" in ls for ls in lines), lines
        assert [any("tracing of jit(<lambda>)" in line for line in ls) for ls in lines] == traced
    assert len(list((tmp_path / "programs").glob("jit*-cache"))) == 1


@pytest.mark.slow
@pytest.mark.parametrize(("variable", "kept"), [
    ("OLYMPUS_COMPILATION_CACHE_DIR", True), ("XDG_CACHE_HOME", False)])
def test_a_job_has_the_same_bits_where_processes_find_programs(capfd, tmp_path, monkeypatch,
                                                               variable, kept):
    for name in ("OLYMPUS_COMPILATION_CACHE_DIR", "OLYMPUS_RAISE_PERSISTENT_CACHE_ERRORS"):
        monkeypatch.delenv(name)
    monkeypatch.setenv(variable, str(tmp_path))
    results = []
    for _ in range(2):
        status, lines = run(capfd, "train", 2)
        assert status == 0, lines
        results += [[line for line in ls if line.startswith("result")] for ls in lines]
        entries = list(tmp_path.rglob("jit_*-cache"))
        assert bool(entries) is kept
        for entry in entries[::2]:      # the next run finds some
            entry.unlink()
    assert results[0]
    assert results == results[:1] * 4


@pytest.mark.slow
@pytest.mark.parametrize(("case", "status", "process", "match"), [
    ("killed", 137, 0, r"process 1 \(.*\) has ended; all processes are required"),
    ("raises", 1, 0, r"process 1 \(.*\) has ended; all processes are required"),
    ("mismatched", 1, 1, r"process 1 comes to it as program 2 on 2 devices, process 0 \(.*\) not "
     "within 3 seconds; all processes must run the same programs"),
    ("other_program", 1, 1, r"process 1 comes to it as program 2 on 2 devices, process 0 \(.*\) to "
     "<lambda>, too, but with other operations, shapes or constants"),
])
def test_failures_name_the_process(capfd, case, status, process, match):
    found, lines = run(capfd, case, 2)
    assert found == status, lines
    assert re.search(match, "\n".join(lines[process])), lines


def outcomes(case, count, *options, last=None):
    """Each process's exit status and output; `last` is ended when the others have."""
    port = free_port()
    running = [subprocess.Popen(
        [sys.executable, CASES, case, *options], env=launch._environment(i, count, port, 1),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for i in range(count)]
    written = {i: p.communicate(timeout=120)[0] for i, p in enumerate(running) if i != last}
    if last is not None:
        running[last].kill()
        written[last] = running[last].communicate()[0]
    return [(p.returncode, written[i]) for i, p in enumerate(running)]


@pytest.mark.parametrize(("how", "victim", "count", "status", "match"), [
    ("killed", 1, 3, -9, "has ended; all processes are required; look at the log there"),
    ("killed", 0, 3, -9, "has ended; all processes are required; look at the log there"),
    ("raises", 0, 2, 1, "has ended; all"),
    ("exits", 1, 2, 0, "has ended; all"),
    ("exits", 0, 2, 0, "has ended; all"),
    ("silent", 1, 3, -9, "has not ended, but not come to it within 4 seconds; all processes"),
    ("silent", 0, 2, -9, "has not ended, but not come to it within 4 seconds; all processes"),
])
def test_a_lost_process_is_named_and_the_others_end_well(
        monkeypatch, how, victim, count, status, match):
    monkeypatch.setenv("OLYMPUS_CPU_COLLECTIVES_TIMEOUT_SECONDS", "4" if how == "silent" else "90")
    found = outcomes("lost", count, how, str(victim), last=victim if how == "silent" else None)
    assert found[victim][0] == status, found
    for i in {*range(count)} - {victim}:
        written = found[i][1]
        assert found[i][0] == 0 and "ended well" in written, found
        assert not re.search(r"stack trace|terminate|Terminat|Traceback", written), written
        errors = re.findall("^error: (.*)$", written, re.MULTILINE)
        assert len(errors) == 3 and len({*errors}) == 1, written
        assert re.match(rf"a program on several processes failed: process {victim} "
                        rf"\(.*, pid \d+\) {match}", errors[0]), errors


@pytest.mark.parametrize(("may", "match"), [("0", "error: .* process 2 .* has ended"),
                                             ("1", "sum 2.0")])
def test_programs_on_what_is_left_need_recoverability(monkeypatch, may, match):
    monkeypatch.setenv("OLYMPUS_ENABLE_RECOVERABILITY", may)
    for status, written in outcomes("goes_on", 3)[:2]:
        assert status == 0 and re.search(f"^{match}", written, re.MULTILINE), written


def test_a_process_that_ends_before_a_first_run_is_named():
    (status, written), _ = outcomes("first_run", 2)
    assert status == 0 and re.search(
        r"error: <lambda>: process 0 comes to it as program 2 on 2 devices, but process 1 "
        r"\(.*\) has ended; all processes are required", written), written


def test_one_that_ends_first_keeps_no_other():
    for status, written in outcomes("leaves_first", 2):
        assert status == 0 and "ended well" in written, written


@pytest.mark.slow
def test_the_page_runs_in_two_terminals_and_in_one(capfd, tmp_path, monkeypatch):
    page = (Path(__file__).parent.parent / "docs" / "distributed.md").read_text(encoding="utf-8")
    program = re.search(r"^```py\n# train.py\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)[1]
    (tmp_path / "train.py").write_text(program)
    monkeypatch.chdir(tmp_path)
    console = re.compile(r"^```console\n\$ python (.*?)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
    sessions = console.findall(page)
    *terminals, (launched, shown) = sessions
    port = str(free_port())
    running = [subprocess.Popen(
        [sys.executable, *command.replace("8476", port).split()], stdout=subprocess.PIPE, text=True)
        for command, _ in terminals]
    for (_, expected), process in zip(terminals, running, strict=True):
        written, _ = process.communicate(timeout=120)
        assert process.returncode == 0
        assert [line for line in written.splitlines() if "Gloo" not in line] == (
            expected.splitlines())
    assert len(terminals) == 2

    module, name, *arguments = launched.split()
    assert (module, name) == ("-m", "olympus.distributed") and main(arguments) == 0
    lines = sorted(x for x in capfd.readouterr().out.splitlines() if re.match(r"\[\d\] [^[]", x))
    assert lines == sorted(shown.splitlines())


@pytest.mark.slow
def test_arrays_move_between_the_devices_of_processes(capfd):
    status, lines = run(capfd, "moves", 2, cpu_devices=2)
    assert status == 0 and all("moves are right" in ls for ls in lines), lines


@pytest.mark.slow
def test_what_processes_do_together(capfd):
    status, lines = run(capfd, "together", 2, cpu_devices=2)
    assert status == 0 and all("together is right" in ls for ls in lines), lines


@pytest.mark.slow
def test_each_process_saves_its_shards(capfd, tmp_path):
    pytest.importorskip("tensorstore")
    status, lines = run(capfd, "checkpoints", 2, str(tmp_path), cpu_devices=2)
    assert status == 0 and all("checkpoints are right" in ls for ls in lines), lines
    assert sorted(p.name for p in tmp_path.iterdir()) == ["run", "x", "y"]


@pytest.mark.slow
def test_a_notice_of_preemption_stops_all_at_one_step(capfd):
    status, lines = run(capfd, "preempted", 2)
    assert status == 0 and all("stopped together" in ls for ls in lines), lines


@pytest.mark.slow
def test_others_go_on_when_one_is_lost(capfd, monkeypatch):
    monkeypatch.setattr(launch, "_GRACE", 60.0)
    monkeypatch.setenv("OLYMPUS_ENABLE_RECOVERABILITY", "1")
    status, lines = run(capfd, "survives", 2)
    assert status == 137 and "survived" in lines[0], lines


def test_alone():
    tree = {"a": onp.arange(2), "b": 3}
    for name, found in (("broadcast", utils.broadcast_one_to_all(tree)),
                        ("tiled", utils.process_allgather(tree, tiled=True))):
        assert np.array_equal(found["a"], [0, 1]) and type(found["a"]) is np.ndarray, name
    stacked = utils.process_allgather(tree)
    assert stacked["a"].shape == (1, 2) and stacked["b"].shape == (1,)
    utils.sync_global_devices("here")
    utils.assert_equal(tree)
    assert utils.reached_preemption_sync_point(0) is False
    with pytest.raises(RuntimeError, match="has joined no job"):
        utils.live_devices(olympus.devices()).__enter__()
    with pytest.raises(TypeError, match="arrays and numbers are required"):
        utils.process_allgather([object()])


@pytest.mark.slow
def test_the_doctor(capfd):
    assert main(["launch", "-n", "2", "--cpu-devices", "2", "-m", "olympus.distributed",
                 "doctor"]) == 0
    lines = capfd.readouterr().out.splitlines()
    for i in range(2):
        mine = [line[4:] for line in lines if line.startswith(f"[{i}] ")]
        assert any(f"as process {i} of 2" in line for line in mine)
        assert sum(": reachable" in line for line in mine) == 2
        assert any("2 of 4 here" in line for line in mine)


def test_the_doctor_alone(capsys, environment, monkeypatch):
    environment()
    monkeypatch.setattr(joining.current, "clients", {})
    assert main(["doctor"]) == 1
    assert "joined:      no: distributed.initialize: no coordinator" in capsys.readouterr().out
