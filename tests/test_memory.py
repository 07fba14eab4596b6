"""Caches are bounded: a process that sees ever new shapes and ever new functions stays as it is.

Resident memory is read in a process of its own, before, half way and after; the figures are in the
failure's message and, with `-rP`, in the report.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
COUNT = 10_000
PROGRAM = """
import gc, json, os
import numpy as np
import olympus, olympus.numpy as onp

def megabytes():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

def shapes(start, stop):
    for n in range(start, stop):
        olympus.eval_shape(lambda x: onp.sin(x) * 2 + x.sum(),
                           olympus.ShapeDtypeStruct((n,), "float32"))

def lambdas(start, stop):
    for n in range(start, stop):
        olympus.jit(lambda x: onp.sin(x) * n).trace(1.0)

def calls(start, stop):
    for n in range(start, stop):
        olympus.jit(lambda x: onp.sin(x) * 2)(1.0)

run, count = {name}, {count}
run(1, 20)      # what is loaded and made once
sizes = [megabytes()]
for start in (20, 20 + count // 2):
    run(start, start + count // 2)
    sizes.append(megabytes())
print(json.dumps(sizes))
"""


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.parametrize(("name", "count", "whole", "second"), [
    ("shapes", COUNT, 20, 10),
    ("lambdas", COUNT, 10, 3),
    ("calls", 400, 20, 3),
])
def test_memory_does_not_grow(name, count, whole, second):
    code = PROGRAM.replace("{name}", name).replace("{count}", str(count))
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT,
                          env=os.environ, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    start, half, end = json.loads(done.stdout)
    figures = f"{count} {name}: {start:.1f} -> {half:.1f} -> {end:.1f} MB"
    print(figures)
    assert end - start < whole, figures
    assert end - half < second, figures
