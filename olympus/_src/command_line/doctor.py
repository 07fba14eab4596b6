"""`python -m olympus.distributed doctor`: a process's view of its job, and its faults."""

from __future__ import annotations

import os
import platform
import socket
import sys

from ...version import __version__
from ..base import config, lib
from ..devices import devices
from ..job.clusters import CLUSTERS
from ..job.distributed import initialize
from ..job.rollcall import reachable
from ..job.state import current

_TELLING = ("OLYMPUS_", "SLURM_", "OMPI_", "TPU_", "MEGASCALE_", "KUBERNETES_SERVICE_HOST",
            "JOB_COMPLETION_INDEX", "CUDA_VISIBLE_DEVICES", "XLA_")


def _say(name: str, value: object) -> None:
    print(f"{name + ':':13}{value}", flush=True)


def doctor(address: str | None, count: int | None, process: int | None, timeout: int) -> int:
    """Print what this process sees, join its job, and look at the others.

    Args:
      address, count, process: as `initialize` takes them; None for the environment's values.
      timeout: how many seconds to wait for the others.
    Returns: The exit status: 0 if all is well.
    """
    _say("host", f"{socket.gethostname()}, pid {os.getpid()}, {platform.platform()}")
    _say("versions", f"olympus {__version__}, jaxlib {lib.jaxlib_version}, "
         f"python {sys.version.split()[0]}")
    for name in sorted(os.environ):
        if name.startswith(_TELLING) or "_proxy" in name.lower():
            _say("environment", f"{name}={os.environ[name]}")
    present = [c.name for c in CLUSTERS if not c.opt_in and c.present()]
    _say("cluster", present[0] if present else "none that is known")
    try:
        initialize(address, count, process, initialization_timeout=timeout)
    except (ValueError, TypeError, RuntimeError) as error:
        _say("joined", f"no: {error}")
        return 1
    _say("joined", f"as process {current.process_id} of {current.num_processes}, by "
         f"{current.coordinator_address}")
    unseen = 0
    for member in current.members:
        seen = reachable(member, current.coordinator_address)
        unseen += seen is False
        _say("member", f"{member}: "
             + {True: "reachable", False: "ended", None: "no answer (a firewall?)"}[seen])
    _say("collectives", config.cpu_collectives_implementation.value)
    _say("devices", f"{devices.local_device_count()} of {devices.device_count()} here: "
         f"{devices.local_devices()}")
    here = {d.process_index for d in devices.devices()}
    if len(here) != current.num_processes:
        _say("wrong", f"devices of {len(here)} processes, of {current.num_processes} that joined")
    return int(bool(unseen) or len(here) != current.num_processes)
