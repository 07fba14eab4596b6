"""Caches are bounded: a process that sees ever new shapes and ever new functions stays as it is.

Resident memory is read in a process of its own, before, half way and after; the figures are in the
failure's message and, with `-rP`, in the report.
"""

import gc
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.base.collector import collector_at_rest
from olympus._src.runtime import compile
from olympus.extend.core import Primitive
from olympus.interpreters import mlir

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


LIFETIMES = """
import ctypes, gc, json, os, weakref
import numpy as np
import olympus, olympus.numpy as onp
from olympus import lax

class Model:
    def __init__(self):
        self.w = 2.0
        self.step = olympus.jit(self.run)
    def run(self, x):
        return onp.sin(x) * self.w
    def host(self, x):
        return np.asarray(x)

class WithCallback(Model):
    def run(self, x):
        return olympus.pure_callback(self.host, olympus.ShapeDtypeStruct((), "float32"), x)

class WithRule(Model):
    def run(self, x):
        f = olympus.custom_vjp(lambda x: x * self.w)
        f.defvjp(lambda x: (x * self.w, None), lambda _, g: (g * self.w,))
        return f(x)

class WithForwardRule(Model):
    def run(self, x):
        f = olympus.custom_jvp(lambda x: x * self.w)
        f.defjvp(lambda p, t: (p[0] * self.w, t[0] * self.w))
        return f(x)

def arrays(i):
    c = onp.asarray(np.random.default_rng(i).random((250, 250), np.float32))
    olympus.jit(lambda x: x + c)(1.0)
    return c
def numbers(i):
    def f(x):
        return onp.sin(x) * (i + 0.5)
    olympus.jit(f)(1.0)
    return f
def methods(i):
    m = Model()
    m.step(1.0)
    return m
def callbacks(i):
    m = WithCallback()
    m.step(1.0)
    return m
def rules(i):
    m = WithRule()
    olympus.grad(m.step)(1.0)
    return m
def forward_rules(i):
    m = WithForwardRule()
    olympus.grad(m.step)(1.0)
    return m
def loops(i):
    m = Model()
    lax.while_loop(lambda c: c < 3.0, lambda c: (m, c + 1.0)[1], 0.0)
    lax.scan(lambda c, _: (m, (c * 2.0, None))[1], 1.0, None, length=3)
    return m
static = olympus.jit(lambda x, n: x * 1.5, static_argnums=1)
def statics(i):
    static(2.0, i)
    return Model()

def state():
    olympus.effects_barrier()
    gc.collect()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/statm") as file:
        size = int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20
    return size, len(olympus.devices()[0].client.live_executables())

kinds = (methods, rules, forward_rules, statics, loops, callbacks, numbers, arrays)
for run in kinds:
    run(10**6)
figures, count = {}, 1000
for run in kinds:
    olympus.clear_caches()
    start = state()
    left = [weakref.ref(run(i)) for i in range(count)]
    end = state()
    alive = sum(r() is not None for r in left)
    olympus.clear_caches()
    figures[run.__name__] = count, alive, start, end, state()
print(json.dumps(figures))
"""
KEPT, MEGABYTES = 128, 128      # executables that nobody has, and all that may stay


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="needs Linux's /proc")
@pytest.mark.slow
def test_what_dead_functions_made_is_gone():
    done = subprocess.run([sys.executable, "-c", LIFETIMES], capture_output=True, text=True,
                          cwd=ROOT, env=os.environ, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    for name, (count, alive, start, end, cleared) in json.loads(done.stdout).items():
        figures = (f"{count} {name}: {start[0]:.0f} -> {end[0]:.0f} -> {cleared[0]:.0f} MB, "
                   f"{start[1]} -> {end[1]} -> {cleared[1]} executables, {alive} objects alive")
        print(figures)
        assert alive == 0, figures
        assert end[1] <= start[1] + KEPT + 2, figures
        assert end[0] < start[0] + MEGABYTES, figures
        assert cleared[1] <= start[1], figures
        assert cleared[0] < start[0] + 16, figures


@pytest.fixture
def mappings(tmp_path, monkeypatch, clear_caches):
    """Sets the limit of memory mappings so that some more than now are a part of it."""
    if not compile._MAPPINGS.exists():
        pytest.skip("needs Linux's /proc")
    monkeypatch.setattr(compile, "_LOOK_EVERY", 1)
    monkeypatch.setattr(compile, "_MOST_MAPPINGS", tmp_path / "limit")
    gc.collect()        # programs of tests before, which the test could not drop a second time

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
    with pytest.raises(olympus.errors.OlympusRuntimeError,
                       match=r"compiling <lambda>.*vm\.max_map_count"):
        olympus.jit(lambda x: x + 3)(2.0)


def test_compiled_programs_have_a_bound_in_bytes(monkeypatch, clear_caches, caplog):
    monkeypatch.setattr(compile, "_LOOK_EVERY", 1)
    monkeypatch.setattr(compile, "_MOST_BYTES", 3 << 20)
    f = olympus.jit(lambda x: x * 2)
    for n in range(1, 40):
        assert f(np.ones(n)).sum() == 2 * n
        assert compile._executables.total_bytes() < 5 << 20
    assert "compiled programs took about" in caplog.text


@pytest.mark.parametrize("collecting", [True, False])
def test_the_collector_of_cycles_rests_while_olympus_is_imported_and_then_is_as_before(collecting):
    (gc.enable if collecting else gc.disable)()
    try:
        with pytest.raises(ImportError), collector_at_rest():
            assert not gc.isenabled()
            raise ImportError
        assert gc.isenabled() == collecting
    finally:
        gc.enable()


def test_the_collector_of_cycles_rests_while_a_program_is_lowered():
    noting, collecting = Primitive("noting"), []
    noting.def_abstract_eval(lambda x: x)
    mlir.register_lowering(noting, lambda ctx, x: collecting.append(gc.isenabled()) or [x])
    olympus.jit(noting.bind).lower(1.0)
    assert collecting == [False] and gc.isenabled()


@pytest.mark.parametrize("frozen", [False, True])
def test_what_is_made_while_the_collector_rests_is_not_gone_through_at_once(frozen):
    before = gc.get_freeze_count()
    (gc.freeze if frozen else gc.unfreeze)()
    try:
        with collector_at_rest():
            made = [[]]
        assert any(x is made for x in gc.get_objects(2)) != frozen
        assert bool(gc.get_freeze_count()) == frozen    # objects that the user froze stay frozen
    finally:
        (gc.freeze if before else gc.unfreeze)()


def test_the_memory_report_counts_what_a_function_holds():
    table = onp.ones((64, 64))

    @olympus.jit
    def known_to_the_report(x):
        return lax.scan(lambda c, _: (c @ table, None), x, None, length=2)[0]

    def rows():
        return [f for f in olympus.memory_report(most=10**6).functions
                if f.name.startswith("known_to_the_report")]

    assert not rows()
    known_to_the_report(onp.ones((64, 64)))
    known_to_the_report(onp.ones((2, 64)))
    row, = rows()
    assert f"{__file__[-15:]}:" in row.name
    assert (row.programs, row.executables) == (2, 2)
    assert row.code == known_to_the_report.cache_info().nbytes
    assert row.constants == 64 * 64 * 4     # one array, though both close over it
    known_to_the_report.clear_cache()
    assert not rows()


def test_the_memory_report_counts_arrays_and_caches():
    def held():
        return olympus.memory_report().arrays.get("cpu:0", (0, 0))

    gc.collect()
    before = held()
    kept = [onp.arange(1000.0) + i for i in range(3)]
    after = held()
    assert after[0] - before[0] >= 3
    assert after[1] - before[1] >= 3 * 4000
    del kept
    f = olympus.jit(lambda x: x + 1)
    f(1.0)
    report = olympus.memory_report(most=10**6)
    assert next(c for c in report.caches if c.name == "lowering.attributes._types").entries > 0
    assert report.mlir > 0 and report.executables > 0
    assert report.code >= max(f.code for f in report.functions)
    olympus.clear_caches()
    assert not olympus.memory_report().functions


def test_the_memory_report_is_bounded_and_sums_up_the_rest():
    for i in range(5):
        olympus.jit(lambda x, i=i: x + i)(1.0)
    kept = [olympus.jit(lambda x, i=i: x * i) for i in range(5)]
    for f in kept:
        f(1.0)
    short, whole = olympus.memory_report(most=2), olympus.memory_report(most=10**6)
    assert len(short.functions) == len(short.caches) == 3
    assert sum(f.code for f in short.functions) == sum(f.code for f in whole.functions)
    assert short.functions[2].name == f"… {len(whole.functions) - 2} others"
    text = str(short)
    assert all(len(line) <= 100 for line in text.splitlines())
    assert "jitted functions" in text and "MLIR: " in text
    with pytest.raises(ValueError, match="most=0 given"):
        olympus.memory_report(most=0)


@pytest.mark.parametrize("kind", [onp.asarray, np.asarray], ids=["Olympus", "NumPy"])
def test_an_executable_goes_with_the_array_that_it_has_a_copy_of(kind, clear_caches):
    """Regression: 48 MB stayed of ten functions over arrays of 4 MB, which were gone."""
    def sum_with(array):
        return float(olympus.jit(lambda x: (x + array).sum())(1.0))

    arrays = [np.random.default_rng(i).normal(size=300_000).astype("f4") for i in range(3)]
    sum_with(kind(arrays[0][:10]))
    gc.collect()
    before, kept = compile._executables.total_bytes(), kind(arrays[0])
    for array in arrays[1:]:
        sum_with(kind(array.copy()))
    gc.collect()
    assert compile._executables.total_bytes() == before
    sum_with(kept)
    found = set(compile._executables.by_digest)
    sum_with(kept)      # a function made anew over the same array
    assert kind is np.asarray or set(compile._executables.by_digest) == found != set()
    del kept
    gc.collect()
    assert kind is np.asarray or compile._executables.total_bytes() == before
