"""Systems as the driver sees them: a label, a Python, and a process that answers."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from typing import Any

from . import ROOT
from .cases import FAMILIES, JIT, Case

# What compiled programs a system keeps on disk, by itself or by the user's wish, is left out.
COLD = {"OLYMPUS_ENABLE_COMPILATION_CACHE": "false", "JAX_ENABLE_COMPILATION_CACHE": "false"}
PLATFORM = {"JAX_PLATFORMS": "cpu", "OLYMPUS_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "2"}
POOLS = "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"


def warm(folder: str) -> dict[str, str]:
    """Variables by which both libraries keep every program that they compile."""
    return {"OLYMPUS_ENABLE_COMPILATION_CACHE": "true", "OLYMPUS_COMPILATION_CACHE_DIR": folder,
            "JAX_ENABLE_COMPILATION_CACHE": "true", "JAX_COMPILATION_CACHE_DIR": folder,
            "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
            "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1"}


class Process:
    """A worker. It starts with the first question; what goes wrong is an error in the answer."""

    def __init__(self, command: list[str], variables: dict[str, str], timeout: float) -> None:
        self.timeout, self.buffer = timeout, b""
        env = {k: v for k, v in os.environ.items()
               if not k.startswith(("JAX_", "OLYMPUS_", "PYTHON"))}
        self.process = subprocess.Popen(
            command, cwd=ROOT, env=env | PLATFORM | COLD | variables, bufsize=0,
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)

    def ask(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self.process.stdin
        try:
            self.process.stdin.write(json.dumps(request).encode() + b"\n")
        except BrokenPipeError:
            return {"error": "its process has ended"}
        return self.reply()

    def reply(self) -> dict[str, Any]:
        assert self.process.stdout
        end = time.monotonic() + self.timeout
        while b"\n" not in self.buffer:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.process.stdout], [], [], left)[0]:
                self.end()
                return {"skipped": f"given up after {self.timeout:.0f} s"}
            more = os.read(self.process.stdout.fileno(), 1 << 16)
            if not more:
                return {"error": f"its process ended with status {self.process.wait()}"}
            self.buffer += more
        line, _, self.buffer = self.buffer.partition(b"\n")
        return json.loads(line)

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def end(self, patience: float = 0.0) -> None:
        """Close its input; the process then writes its compiled programs to disk and ends."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        try:
            self.process.wait(patience)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process.stdout.close()


class Contestant:
    """A system with its interpreter; `folder` has another version of it than the clone's."""

    def __init__(self, label: str, library: str, python: str, *, folder: str = "",
                 threads: int = 0, budget: float = 0.02, timeout: float = 300.0) -> None:
        self.label, self.library, self.timeout = label, library, timeout
        self.command = [python, "-m", f"{__package__}.worker", library, folder, str(budget)]
        self.variables = dict.fromkeys(POOLS, str(threads)) if threads else {}
        self.process: Process | None = None
        self.folders: dict[str, tempfile.TemporaryDirectory[str]] = {}

    @property
    def family(self) -> str:
        return self.library if self.library in FAMILIES else JIT

    def plays(self, case: Case) -> bool:
        return self.family in case.setups

    def version(self) -> str:
        """The library's version; if it cannot be imported, "" ."""
        answer = self.lasting().ask({"version": True})
        return answer.get("version", "")

    def sample(self, case: Case) -> dict[str, Any]:
        request = {"group": case.group, "case": case.name, "fresh": case.fresh}
        if not case.fresh:
            return self.lasting().ask(request)
        if not case.warm:
            return self.once(request, {})
        filled = str(case) in self.folders
        if not filled:
            self.folders[str(case)] = tempfile.TemporaryDirectory(prefix="benchmarks-")
        variables = warm(self.folders[str(case)].name)
        if not filled:
            self.once(request, variables)
        return self.once(request, variables)

    def lasting(self) -> Process:
        if self.process is None or not self.process.alive:
            self.stop()
            self.process = Process(self.command, self.variables, self.timeout)
        return self.process

    def once(self, request: dict[str, Any], variables: dict[str, str]) -> dict[str, Any]:
        """An answer of a process of its own, which ends when its input does."""
        process = Process(self.command, self.variables | variables, self.timeout)
        answer = process.ask(request)
        process.end(patience=10.0)
        return answer

    def stop(self) -> None:
        """End the process; the next question starts another."""
        if self.process:
            self.process.end()
            self.process = None

    def close(self) -> None:
        self.stop()
        for folder in self.folders.values():
            folder.cleanup()
