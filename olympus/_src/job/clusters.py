"""Schedulers, and how to learn from them the number of processes, ours, and the coordinator.

Each class is one kind of environment; `detect` asks them in the order of `CLUSTERS`.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import re
import socket
import time
import urllib.error
import urllib.request
import zlib
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from ..base import source
from ..base.logs import LOGGER

_FIRST_PORT, _PORTS = 61440, 4096       # the upper end of the ports that no service registers


def _port_of(number: int) -> str:
    """A port that all processes of a job derive from its number, and other jobs rarely."""
    return str(_FIRST_PORT + number % _PORTS)


class Cluster:
    """An environment of processes. `opt_in` ones are asked only when they are named."""

    name: ClassVar[str]
    opt_in: ClassVar[bool] = False

    def present(self) -> bool:
        """Whether this process runs in it."""
        raise NotImplementedError

    def coordinator(self, timeout: int, port: str | None) -> str:
        """`host:port` of process 0, the same in all processes; a given `port` is taken."""
        raise NotImplementedError

    def count(self) -> int:
        """How many processes there are."""
        raise NotImplementedError

    def process(self) -> int:
        """Which of them this is."""
        raise NotImplementedError

    def local_process(self) -> int | None:
        """Which of those on this host this is, if each is to have the device of that number."""
        return None


class _Counted(Cluster):
    """One whose variables have the numbers: of the processes, of this one, and on its host."""

    variables: ClassVar[tuple[str, str, str]]

    def count(self) -> int:
        return int(os.environ[self.variables[0]])

    def process(self) -> int:
        return int(os.environ[self.variables[1]])

    def local_process(self) -> int | None:
        return int(os.environ[self.variables[2]])


class OpenMpi(_Counted):
    """Processes of Open MPI's `mpirun`."""

    name = "ompi"
    variables = ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
    _URI = "OMPI_MCA_orte_hnp_uri"      # 1531576320.0;tcp://10.96.0.1,10.148.0.1:34911

    def present(self) -> bool:
        return self._URI in os.environ

    def coordinator(self, timeout: int, port: str | None) -> str:
        uri = os.environ[self._URI]
        match = re.search(r"tcp://([^,:]+)|tcp6://\[([^,\]]+)", uri)
        job = re.match(r"\d+", uri)
        if match is None or job is None:
            raise RuntimeError(f"distributed.initialize: {self._URI}={uri!r} given; a job number "
                               "and an address, as in '4096.0;tcp://10.0.0.1:34911', are required; "
                               "pass coordinator_address.")
        # Open MPI's numbers of jobs are multiples of 4096.
        return f"{match[1] or match[2]}:{port or _port_of(int(job[0]) // 4096)}"


class Slurm(_Counted):
    """Processes of Slurm's `srun`."""

    name = "slurm"
    variables = ("SLURM_NTASKS", "SLURM_PROCID", "SLURM_LOCALID")

    def present(self) -> bool:
        # The nodes of the step that `srun` started: it may have fewer nodes than the job.
        return all(name in os.environ
                   for name in ("SLURM_JOB_ID", "SLURM_STEP_NODELIST", *self.variables))

    def coordinator(self, timeout: int, port: str | None) -> str:
        # The first of 'node001', 'node001,other2', 'node[001-015],other2' and 'node[001,007-9]'.
        nodes = os.environ["SLURM_STEP_NODELIST"]
        match = re.match(r"([^,\[]+)(?:\[([^,\-\]]+))?", nodes)
        if match is None:
            raise RuntimeError(f"distributed.initialize: SLURM_STEP_NODELIST={nodes!r} given; a "
                               "list of hosts is required; pass coordinator_address.")
        host = match[1] + (match[2] or "")
        return f"{host}:{port or _port_of(int(os.environ['SLURM_JOB_ID']))}"


class Mpi4py(Cluster):
    """Processes of any MPI, asked through the package mpi4py."""

    # The package may be installed where no job runs, so it is asked only by name.
    name, opt_in = "mpi4py", True

    def present(self) -> bool:
        return importlib.util.find_spec("mpi4py") is not None

    @property
    def _mpi(self) -> ModuleType:
        return importlib.import_module("mpi4py.MPI")     # which calls MPI_Init

    def coordinator(self, timeout: int, port: str | None) -> str:
        world = self._mpi.COMM_WORLD
        mine = None
        if world.Get_rank() == 0:
            host = socket.gethostname()
            # MPI knows no number of the job: two jobs that begin on one host need a port each.
            mine = f"{host}:{port or _port_of(zlib.crc32(host.encode()))}"
        return world.bcast(mine, root=0)

    def count(self) -> int:
        return int(self._mpi.COMM_WORLD.Get_size())

    def process(self) -> int:
        return int(self._mpi.COMM_WORLD.Get_rank())

    def local_process(self) -> int | None:
        mpi = self._mpi
        return int(mpi.COMM_WORLD.Split_type(mpi.COMM_TYPE_SHARED).Get_rank())


class _Tpu(Cluster):
    """Hosts of cloud TPUs: slices, each of so many hosts."""

    PORT = "8482"

    def coordinator(self, timeout: int, port: str | None) -> str:
        # Several slices are told who coordinates; of one it is the first host, which has process 0.
        host = (_tpu_setting("MEGASCALE_COORDINATOR_ADDRESS") or self._hosts()[0]).split(":")[0]
        _wait_for_name(host, timeout)
        return f"{host}:{port or self.PORT}"

    def count(self) -> int:
        return len(self._hosts()) * int(_tpu_setting("MEGASCALE_NUM_SLICES") or 1)

    def process(self) -> int:
        return (self._process_in_slice()
                + int(_tpu_setting("MEGASCALE_SLICE_ID") or 0) * len(self._hosts()))

    def _hosts(self) -> list[str]:
        raise NotImplementedError

    def _process_in_slice(self) -> int:
        raise NotImplementedError


class GkeTpu(_Tpu):
    """TPUs of Google's Kubernetes engine, which says all in the environment."""

    name = "gketpu"

    def _listed(self) -> str | None:
        return os.environ.get("TPU_PROCESS_ADDRESSES", os.environ.get("TPU_WORKER_HOSTNAMES"))

    def present(self) -> bool:
        return _has_tpu() and self._listed() is not None

    def _hosts(self) -> list[str]:
        return (self._listed() or "").split(",")

    def _process_in_slice(self) -> int:
        return int(os.environ["TPU_WORKER_ID"])


class GceTpu(_Tpu):
    """TPUs of Google's virtual machines, which ask a metadata server."""

    name = "gcetpu"

    def present(self) -> bool:
        # The server last: where there is none, it takes six tries to learn that.
        return (_has_tpu() and "TPU_SKIP_MDS_QUERY" not in os.environ
                and _google_metadata("agent-worker-number") is not None)

    def _hosts(self) -> list[str]:
        # Entries are a host each, or, of old, name:id:address.
        listed = _google_metadata("worker-network-endpoints") or ""
        return [entry.split(":")[-1] for entry in listed.split(",")]

    def _process_in_slice(self) -> int:
        return int(_google_metadata("agent-worker-number") or 0)


def _has_tpu() -> bool:
    """Whether libtpu is installed where there are TPUs (or OLYMPUS_FORCE_TPU_INIT says so)."""
    if "OLYMPUS_FORCE_TPU_INIT" in os.environ:
        return True
    if "TPU_LIBRARY_PATH" not in os.environ and importlib.util.find_spec("libtpu") is None:
        return False
    google = "0x1ae0"       # the number of the vendor on the PCI bus
    return any(path.read_text().strip() == google
               for path in Path("/sys/bus/pci/devices").glob("*/vendor"))


def _google_metadata(key: str) -> str | None:
    """The answer of the metadata server of a Google virtual machine; None if the key is unknown.
    """
    server = os.environ.get("GCE_METADATA_IP", "metadata.google.internal")
    request = urllib.request.Request(
        f"http://{server}/computeMetadata/v1/instance/attributes/{key}",
        headers={"Metadata-Flavor": "Google"})
    for attempt in range(6):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return answer.read().decode()
        except urllib.error.HTTPError as error:     # other codes are faults, and tried again
            if error.code == 404:
                return None
        except OSError as error:
            LOGGER.debug("metadata server %s, attempt %d: %s", server, attempt, error)
        time.sleep(0.5)
    return None


def _tpu_setting(name: str) -> str | None:
    """A setting of a job on TPUs: of the environment, else a line of the metadata."""
    value = os.environ.get(name)
    if value is not None or "TPU_SKIP_MDS_QUERY" in os.environ:
        return value
    for line in (_google_metadata("tpu-env") or "").splitlines():
        key, colon, text = line.partition(":")
        if colon and key.strip() == name:
            return text.strip().strip("'")
    return None


def _wait_for_name(host: str, timeout: int) -> None:
    """Wait until a host's name has an address, which it may get only when its pod runs."""
    end = time.monotonic() + timeout
    while True:
        try:
            socket.getaddrinfo(host, None)
        except OSError as error:
            if time.monotonic() > end:
                raise RuntimeError(
                    f"distributed.initialize: the coordinator {host!r} has no address ({error}) "
                    f"within {timeout} seconds; a host that runs is required; look whether process "
                    "0 was started, or pass coordinator_address.") from None
            time.sleep(0.5)
        else:
            return


class Kubernetes(Cluster):
    """Pods of an indexed Kubernetes job or job set, asked through the package kubernetes."""

    name = "k8s"
    PORT = "55527"
    _NAMESPACE = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")

    def present(self) -> bool:
        if "KUBERNETES_SERVICE_HOST" not in os.environ:
            return False
        if importlib.util.find_spec("kubernetes") is None:
            source.warn("distributed.initialize: this is a pod of Kubernetes, and the package "
                        "kubernetes, which asks about the job, is not installed; install it, or "
                        "pass coordinator_address, num_processes and process_id.", UserWarning)
            return False
        return True

    def _pod_and_job(self) -> tuple[Any, Any]:
        library: Any = importlib.import_module("kubernetes")
        library.config.load_incluster_config()
        namespace = self._NAMESPACE.read_text().strip()
        # By its address: a pod's hostname in an indexed job is not its name.
        address = socket.gethostbyname(os.environ["HOSTNAME"])
        try:
            pods = library.client.CoreV1Api().list_namespaced_pod(
                namespace=namespace, field_selector=f"status.podIP={address}").items
            if len(pods) != 1:
                raise RuntimeError(
                    f"distributed.initialize: Kubernetes has {len(pods)} pods at {address}; one is "
                    "required; pass coordinator_address, num_processes and process_id.")
            owners = [o for o in pods[0].metadata.owner_references or () if o.controller]
            if [o.kind for o in owners] != ["Job"]:
                raise RuntimeError(
                    f"distributed.initialize: the pod {pods[0].metadata.name} is of "
                    f"{[o.kind for o in owners]}; a Job or JobSet is required; pass "
                    "coordinator_address, num_processes and process_id.")
            return pods[0], library.client.BatchV1Api().read_namespaced_job(
                name=pods[0].metadata.labels["job-name"], namespace=namespace)
        except library.client.exceptions.ApiException as error:
            raise RuntimeError(
                f"distributed.initialize: Kubernetes answered {error.status} {error.reason}; "
                "leave to read pods and jobs is required (403: the pod's service account lacks "
                "it); give it, or pass coordinator_address, num_processes and process_id."
            ) from None

    def coordinator(self, timeout: int, port: str | None) -> str:
        pod, job = self._pod_and_job()
        subdomain = job.metadata.labels.get("jobset.sigs.k8s.io/jobset-name", pod.spec.subdomain)
        if subdomain is None:
            raise RuntimeError(
                f"distributed.initialize: the pods of the job {job.metadata.name} have no "
                "subdomain; a headless service, by which they find each other, is required; make "
                "one (clusterIP: None) and name it by `subdomain` in the pods' specification.")
        # What Kubernetes calls the pod with the index 0 in the service of these pods.
        host = f"{job.metadata.name}-0.{subdomain}"
        _wait_for_name(host, timeout)
        return f"{host}:{port or self.PORT}"

    def count(self) -> int:
        return int(self._pod_and_job()[1].spec.parallelism)

    def process(self) -> int:
        index = os.environ.get("JOB_COMPLETION_INDEX")
        if index is None:
            raise RuntimeError("distributed.initialize: the Kubernetes job gives its pods no index "
                               "(JOB_COMPLETION_INDEX); an indexed job is required; set its "
                               "completionMode to Indexed.")
        return int(index)


# In the order in which they are asked: `mpirun` may run within Slurm, and pods may have TPUs.
CLUSTERS: tuple[Cluster, ...] = (OpenMpi(), Slurm(), Mpi4py(), GkeTpu(), GceTpu(), Kubernetes())


def detect(method: str | None, coordinator: str | None, count: int | None, process: int | None,
           local_devices: Sequence[int] | None, timeout: int
           ) -> tuple[str | None, int | None, int | None, Sequence[int] | None]:
    """Fill in missing values from the environment that this process is found in, if any."""
    if method is None:
        cluster = next((c for c in CLUSTERS if not c.opt_in and c.present()), None)
    else:
        cluster = next((c for c in CLUSTERS if c.name == method), None)
        if cluster is None or not cluster.present():
            raise ValueError(
                f"distributed.initialize: cluster_detection_method {method!r} given; "
                + ("that environment is not here; leave it out" if cluster else "the name of one "
                   f"is required: {', '.join(c.name for c in CLUSTERS)}, or 'deactivate'")
                + ", or pass coordinator_address, num_processes and process_id.")
    if cluster is None:
        return coordinator, count, process, local_devices
    LOGGER.debug("distributed.initialize: in the environment %r", cluster.name)
    if coordinator is None:
        coordinator = cluster.coordinator(timeout, os.environ.get("OLYMPUS_COORDINATOR_PORT"))
    count = cluster.count() if count is None else count
    process = cluster.process() if process is None else process
    # Chips of TPUs are not given out by the numbers of processes.
    if local_devices is None and not _has_tpu():
        local = cluster.local_process()
        local_devices = None if local is None else [local]
    return coordinator, count, process, local_devices
