"""The cost of a program in a thread of XLA's and in its caller's: the limit of `brief.py`.

    PYTHONPATH=. [taskset -c 0] python tools/dispatch_table.py [--rounds 7] [--paces]

For programs of growing length, microseconds of CPU and wall time a call, in XLA's thread | in the
caller's: each call waited for; a chain of calls that nobody waits for; the same with as much work
in Python between two calls; each call waited for, beside a thread that sorts. Run it on one core
(taskset) and on free ones. `--paces` measures the table of elementwise operations instead:
nanoseconds an element, one line each, smallest first.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import lax
from olympus._src.core.primitive import Primitive
from olympus._src.runtime import brief

SIZE = 4096
STEPS = 1, 8, 32, 128, 512, 2048
ELEMENTS = 20_000
Run = Callable[[int], None]


@functools.partial(olympus.jit, static_argnums=1)
def program(x: Any, steps: int) -> Any:
    return lax.fori_loop(0, steps, lambda i, x: onp.tanh(x) * 1.01, x)


def made(steps: int, limit: float) -> Callable[[Any], Any]:
    """A compiled program of so many steps, which is brief by that limit or not."""
    before, brief.LIMIT = brief.LIMIT, limit
    try:
        olympus.clear_caches()
        compiled = program.lower(onp.ones(SIZE), steps).compile()
    finally:
        brief.LIMIT = before
    assert compiled._executable.loaded.brief == bool(limit)
    return compiled


def spent(runs: dict[bool, Run], count: int, rounds: int) -> str:
    """The medians of CPU and wall microseconds a call, by turns."""
    found: dict[bool, list[tuple[float, float]]] = {key: [] for key in runs}
    for _ in range(rounds):
        for key, run in runs.items():
            cpu, wall = time.process_time(), time.perf_counter()
            run(count)
            found[key].append((time.process_time() - cpu, time.perf_counter() - wall))
    texts = [" ".join(f"{statistics.median(column) / count * 1e6:8.1f}"
                      for column in zip(*rows, strict=True)) for rows in found.values()]
    return " | ".join(texts)


def idle(seconds: float) -> None:
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def waited(fun: Callable[[Any], Any]) -> Run:
    x = onp.ones(SIZE)

    def run(count: int) -> None:
        for _ in range(count):
            fun(x).block_until_ready()
    return run


def chained(fun: Callable[[Any], Any], seconds: float) -> Run:
    def run(count: int) -> None:
        x = onp.ones(SIZE)
        for _ in range(count):
            x = fun(x)
            idle(seconds)
        x.block_until_ready()
    return run


def dispatches(rounds: int) -> None:
    print("cpu wall | cpu wall: in XLA's thread | in the caller's")
    for steps in STEPS:
        programs = {key: made(steps, 1e30 if key else 0.0) for key in (False, True)}
        start = time.process_time()
        waited(programs[True])(10)
        seconds = (time.process_time() - start) / 10
        count = max(3, min(300, int(0.03 / seconds)))
        print(f"{seconds * 1e6:8.1f} us")
        print("    waited for      ", spent({k: waited(f) for k, f in programs.items()}, count,
                                            rounds))
        print("    a chain         ", spent({k: chained(f, 0.0) for k, f in programs.items()},
                                            count, rounds))
        print("    with Python     ", spent({k: chained(f, seconds) for k, f in programs.items()},
                                            count, rounds))
        stop, other = threading.Event(), np.random.default_rng(0).random(20_000)

        def sorts(stop: threading.Event = stop, other: Any = other) -> None:
            while not stop.is_set():
                np.sort(other)

        thread = threading.Thread(target=sorts)
        thread.start()
        print("    beside a thread ", spent({k: waited(f) for k, f in programs.items()}, count,
                                            rounds), flush=True)
        stop.set()
        thread.join()


def paces() -> None:
    rng, rows = np.random.default_rng(0), []
    given = {"floats": rng.random(ELEMENTS, np.float32) * 0.9 + 0.05,
             "integers": rng.integers(1, 9, ELEMENTS, np.int32)}
    for prim in sorted((p for p in Primitive.instances if p.elementwise), key=lambda p: p.name):
        for kind, x in given.items():
            args = [onp.asarray(x)] * (prim.arity or 0)
            try:
                fun = olympus.jit(prim.bind)
                olympus.block_until_ready(fun(*args))
            except (TypeError, NotImplementedError):    # of other dtypes, or with params
                continue
            start = time.process_time()
            for _ in range(20):
                olympus.block_until_ready(fun(*args))
            rows.append(((time.process_time() - start) / 20 / ELEMENTS * 1e9, prim.name, kind))
            break
    for row in sorted(rows):
        print("{:10.2f}  {} of {}".format(*row))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--paces", action="store_true")
    options = parser.parse_args()
    if options.paces:
        paces()
    else:
        dispatches(options.rounds)
