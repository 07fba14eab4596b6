"""Threads and processes: what one does first, another must survive."""

import contextlib
import gc
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from weakref import WeakSet

import pytest

import olympus
from olympus._src.base import util

ROOT = Path(__file__).parent.parent
# Children of a process that has imported everything and started nothing: cold, and cheap.
COLD = """
import os, threading
import numpy as np
import olympus.numpy as onp
from olympus._src.base.lib import mlir
mlir.ir     # imported, without a context

def child():
    barrier, right = threading.Barrier(20), []
    def run(k):
        barrier.wait()
        right.append(np.asarray(onp.arange(4.0 + k))[-1] == 3.0 + k)    # one program
    threads = [threading.Thread(target=run, args=(k,)) for k in range(20)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    os._exit(0 if right == [True] * 20 else 1)

codes = []
for _ in range(50):
    pid = os.fork()
    if not pid:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        child()
    codes.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
print([c for c in codes if c])
"""


FORK = """
import os, warnings
import olympus.numpy as onp

def fork():
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        pid = os.fork()
        if not pid:
            os._exit(0)
        os.waitpid(pid, 0)
    return [(w.category.__name__, "fork" in str(w.message), os.path.basename(w.filename))
            for w in seen if w.category is not DeprecationWarning]     # Python's own, from 3.12 on

before = fork()
onp.ones(3)
print(before, fork(), fork())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_after_computing_warns_once_at_the_users_line():
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, cwd=ROOT,
                          timeout=120, check=False)
    assert done.stdout.strip() == "[] [('RuntimeWarning', True, '<string>')] []", done.stderr


CHILDREN = """
import os, warnings
import olympus, olympus.numpy as onp
from olympus._src.devices import devices

warnings.simplefilter("ignore")
f, x = olympus.jit(lambda x: onp.sin(x) * 2), onp.ones(3)
for _ in range(3):
    f(x)
    onp.sin(x)
compiled = f.lower(x).compile()
compiled(x)
if not (pid := os.fork()):
    print(devices._forked, x.tolist(), f.trace(x).olympuspr.eqns != [], flush=True)
    os._exit(0)
os.waitpid(pid, 0)
print(devices._forked, f(x).shape)
# As after a fork. XLA would wait for ever in a child; here a call that is let through computes.
devices._after_fork()
for run in (lambda: f(x), lambda: onp.sin(x), lambda: onp.cos(x), lambda: compiled(x),
            lambda: olympus.jit(onp.tan)(x), lambda: olympus.grad(lambda x: (x * x).sum())(x),
            lambda: f.lower(x).compile()):
    try:
        print("computed", run())
    except RuntimeError as error:
        print("forked from one" in str(error))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_process_is_told_that_it_cannot_compute():
    done = subprocess.run([sys.executable, "-c", CHILDREN], capture_output=True, text=True,
                          cwd=ROOT, timeout=600, check=False)
    assert done.stdout.splitlines() == [
        "[True] [1.0, 1.0, 1.0] True", "[] (3,)", *["True"] * 7], done.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_threads_that_compile_first_do_not_end_the_process():
    done = subprocess.run([sys.executable, "-c", COLD], capture_output=True, text=True, cwd=ROOT,
                          timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]", f"children ended with {done.stdout}"


@contextlib.contextmanager
def in_turns() -> Iterator[None]:
    """Threads switch as often as they can; the collector looks at new objects only."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
        sys.setswitchinterval(before)


def errors_of(runs: list[Callable[[], object]]) -> list[BaseException]:
    """What the functions raise that run at the same time."""
    errors, start = list[BaseException](), threading.Barrier(len(runs))

    def run(fun: Callable[[], object]) -> None:
        start.wait()
        try:
            fun()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=run, args=(fun,)) for fun in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return errors


def test_threads_that_look_for_leaks_do_not_find_what_another_is_looking_at():
    def traced(x: float) -> float:
        time.sleep(1e-3)        # others look meanwhile
        return x + 1

    def trace():
        with olympus.checking_leaks():
            for _ in range(6):
                olympus.make_olympuspr(lambda x: traced(x))(1.0)

    with in_turns():
        looked_through = [[] for _ in range(50_000)]
        assert errors_of([trace] * 6) == []
        del looked_through


def test_caches_are_cleared_while_a_thread_makes_some():
    class Cache:
        pass

    class Growing(WeakSet):
        """Another thread adds a member while it is first looked through."""

        grows = True

        def __iter__(self):
            for member in super().__iter__():
                yield member
                if self.grows:
                    self.grows = False
                    more.append(Cache())
                    self.add(more[-1])

    more = [Cache()]
    assert {*util.living(Growing(more))} >= {more[0]}
