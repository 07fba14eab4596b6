"""`python -m olympus.distributed launch`: the processes of a job on this host."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from typing import IO

_GRACE = 5.0       # seconds that the others have to tell why they fail, too


def _free_port() -> int:
    # It may be taken before process 0 listens there, which raises in `initialize`.
    with socket.create_server(("127.0.0.1", 0)) as s:
        return s.getsockname()[1]


def _environment(process: int, count: int, port: int, cpu_devices: int | None) -> dict[str, str]:
    # Unbuffered: a process that is killed would take with it the lines that it has not written yet.
    address = f"127.0.0.1:{port}"       # which no other host reaches
    environment = {**os.environ, "OLYMPUS_COORDINATOR_ADDRESS": address,
                   "OLYMPUS_COORDINATOR_BIND_ADDRESS": address, "OLYMPUS_NUM_PROCESSES": str(count),
                   "OLYMPUS_PROCESS_ID": str(process), "PYTHONUNBUFFERED": "1"}
    if cpu_devices is not None:
        environment["OLYMPUS_NUM_CPU_DEVICES"] = str(cpu_devices)
    return environment


def _copy_lines(process: int, stream: IO[str], lock: threading.Lock) -> None:
    with stream:
        for line in stream:
            with lock:      # so that lines of two processes do not mix
                sys.stdout.write(f"[{process}] {line}" + "\n" * (line[-1:] != "\n"))
                sys.stdout.flush()


def launch(arguments: Sequence[str], num_processes: int, cpu_devices: int | None = None) -> int:
    """Run a Python program in several processes of this host, and return their exit status.

    Args:
      arguments: what follows `python`: a script, or `-m` and a module, with its arguments. It calls
        `olympus.distributed.initialize()`, which finds the rest in the environment.
      num_processes: how many processes.
      cpu_devices: how many CPU devices each has.

    Returns:
      0 if all end well; else the status of the first that failed (128 + n, if signal n ended it).
      The others are ended then, after five seconds for their own messages. What they
      write is written here, each line after its process's number.
    """
    port, lock = _free_port(), threading.Lock()
    running = [subprocess.Popen(
        [sys.executable, *arguments], env=_environment(i, num_processes, port, cpu_devices),
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        errors="replace") for i in range(num_processes)]
    copiers = [threading.Thread(target=_copy_lines, args=(i, p.stdout, lock))
               for i, p in enumerate(running)]
    for copier in copiers:
        copier.start()
    try:
        status = _wait(running)
    except KeyboardInterrupt:
        for p in running:
            p.send_signal(signal.SIGINT)
        status = 128 + signal.SIGINT
    finally:
        end = time.monotonic() + _GRACE
        for p in running:
            try:
                p.wait(max(end - time.monotonic(), 0))
            except subprocess.TimeoutExpired:
                p.kill()        # SIGTERM is a notice of preemption to them
                p.wait()
        for copier in copiers:
            copier.join()
    return status


def _wait(running: Sequence[subprocess.Popen[str]]) -> int:
    """The first status that is not 0, as soon as there is one; 0 when all have ended."""
    while True:
        statuses = [p.poll() for p in running]
        failed = next((status for status in statuses if status), None)
        if failed is not None:
            return 128 - failed if failed < 0 else failed
        if None not in statuses:
            return 0
        time.sleep(0.02)
