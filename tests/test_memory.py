"""Caches are bounded: a process that sees ever new shapes and ever new functions stays as it is.

Resident memory is read in a process of its own, before, half way and after; the figures are in the
failure's message and, with `-rP`, in the report.
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus._src.backend import compile
from olympus._src.base.errors import ResourceExhaustedError

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


@pytest.fixture
def mappings(tmp_path, monkeypatch, clear_caches):
    """Sets the limit of memory mappings so that some more than now are a part of it."""
    if not compile._MAPPINGS.exists():
        pytest.skip("needs Linux's /proc")
    monkeypatch.setattr(compile, "_LOOK_EVERY", 1)
    monkeypatch.setattr(compile, "_MOST_MAPPINGS", tmp_path / "limit")

    def limit(more, part):
        taken = compile._MAPPINGS.read_bytes().count(b"\n")
        (tmp_path / "limit").write_text(str(int((taken + more) / part)))

    return limit


def test_ever_new_programs_do_not_end_the_process_for_lack_of_mappings(mappings, caplog):
    kept = [olympus.jit(lambda x, n=n: onp.sin(x) * n) for n in range(60)]
    kept[0](2.0)        # threads and the runtime take theirs
    mappings(100, 0.7)
    taken = []
    for n, f in enumerate(kept):
        assert f(2.0) == np.sin(np.float32(2.0)) * n
        taken.append(compile._MAPPINGS.read_bytes().count(b"\n"))
    assert "kept programs are dropped" in caplog.text
    assert any(b < a - 20 for a, b in zip(taken, taken[1:])), taken     # they were really freed
    assert [float(f(0.0)) for f in kept] == [0.0] * 60


def test_without_free_mappings_an_error_says_so(mappings):
    mappings(0, 0.95)
    with pytest.raises(ResourceExhaustedError, match=r"compiling <lambda>.*vm\.max_map_count"):
        olympus.jit(lambda x: x + 3)(2.0)
