"""Freed memory is kept for the next results, is given back when asked for, and is told."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from olympus._src.base import config, lib

ROOT = Path(__file__).parent.parent
pytestmark = pytest.mark.skipif(lib.allocator._libc() is None, reason="needs glibc")
PROGRAM = """
import json, resource
import olympus, olympus.numpy as onp

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

faults = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_minflt
step, x = olympus.jit(lambda x: 2 * x + 1), onp.ones(12_000_000)    # 48 MB
for _ in range(60):
    step(x).block_until_ready()
before = faults()
for _ in range(8):
    step(x).block_until_ready()
faulted = faults() - before
ys = [step(x) for _ in range(4)]
olympus.block_until_ready(ys)
del ys
held, told = resident(), olympus.memory_report().kept
olympus.clear_caches()
print(json.dumps([faulted, held, told, resident(), olympus.memory_report().kept]))
"""
PAGES = 48_000_000 // 4096


def run(**environ: str) -> list[int]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("MALLOC_")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], cwd=ROOT, capture_output=True, text=True,
                          env={**clean, "PYTHONPATH": str(ROOT), **environ}, check=True)
    return json.loads(done.stdout)


def test_results_are_made_in_memory_that_is_kept_until_it_is_cleared() -> None:
    faulted, held, told, left, told_then = run()
    assert faulted < 4 * PAGES      # of eight results
    assert told > 100 << 20
    assert held - left > 100 << 20
    assert told_then < 50 << 20


@pytest.mark.parametrize("environ", [{"MALLOC_ARENA_MAX": "4"}, {"OLYMPUS_CPU_KEEP_MEMORY": "0"}])
def test_where_the_user_says_how_to_allocate_that_holds(environ: dict[str, str]) -> None:
    faulted, *_ = run(**environ)
    assert faulted > 7 * PAGES


@pytest.mark.parametrize("environ", [
    {"MALLOC_TRIM_THRESHOLD_": "1000"}, {"GLIBC_TUNABLES": "glibc.malloc.check=0"}])
def test_an_environment_of_glibc_is_left_alone(environ: Any, monkeypatch: pytest.MonkeyPatch
                                               ) -> None:
    monkeypatch.setattr(lib.allocator, "_keeping", [])
    assert not lib.allocator.keep_memory(environ)


def test_little_memory_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lib.allocator, "_keeping", [])
    monkeypatch.setattr(lib.allocator, "_memory", lambda: 128 << 20)
    assert not lib.allocator.keep_memory({})


def test_a_container_bounds_what_may_lie_free(tmp_path: Path, monkeypatch: pytest.MonkeyPatch
                                              ) -> None:
    limit = tmp_path / "memory.max"
    monkeypatch.setattr(lib.allocator, "_LIMITS", (str(limit), str(tmp_path / "absent")))
    whole = lib.allocator._memory()
    for text, expected in ("max\n", whole), ("4096000\n", 4096000), (f"{whole * 9}\n", whole):
        limit.write_text(text)
        assert lib.allocator._memory() == expected


def test_the_option_is_true_by_default() -> None:
    assert config.cpu_keep_memory.default
