#!/usr/bin/env python3
"""The memory that programs take while they run, by XLA's forms and by kernels, in Markdown.

    PYTHONPATH=. python tools/peak_memory.py [PATTERN ...]

Each program and mode runs in a process of its own: arguments are made and the program is compiled,
the peak of resident memory is reset (Linux), and the program runs twice. Shown is how far memory
rose, with the result.
"""

from __future__ import annotations

import argparse
import fnmatch
import pathlib
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import grad, lax

Program = tuple[Callable[..., Any], tuple[Any, ...]]
RNG = np.random.default_rng(0)


def uniform(*shape: int) -> Any:
    return onp.asarray(RNG.random(shape, np.float32))


def forces(x: Any) -> Any:
    away = x[:, None] - x
    return (away * (((away * away).sum(-1) + 1e-3) ** -1.5)[..., None]).sum(1)


def conv(groups: int = 1) -> Callable[..., Any]:
    return lambda x, w: lax.conv_general_dilated(x, w, (1,) * (x.ndim - 2), "SAME",
                                                 feature_group_count=groups)


def heat(u: Any) -> Any:
    around = u[2:, 1:-1] + u[:-2, 1:-1] + u[1:-1, 2:] + u[1:-1, :-2]
    return u.at[1:-1, 1:-1].add(0.1 * (around - 4 * u[1:-1, 1:-1]))


PROGRAMS: dict[str, Callable[[], Program]] = {
    "sort of 10⁶": lambda: (lax.sort, (uniform(10**6),)),
    "argsort of 10⁶": lambda: (onp.argsort, (uniform(10**6),)),
    "median of 10⁶": lambda: (onp.median, (uniform(10**6),)),
    "the 10⁴ largest of 10⁶": lambda: (lambda x: lax.top_k(x, 10**4), (uniform(10**6),)),
    "cumsum of 10⁶": lambda: (lax.cumsum, (uniform(10**6),)),
    "arctan2 of 10⁶": lambda: (onp.arctan2, (uniform(10**6), uniform(10**6))),
    "convolve 10⁵ by 1,000": lambda: (onp.convolve, (uniform(10**5), uniform(1000))),
    "convolution over three axes": lambda: (conv(), (uniform(2, 16, 32, 32, 32),
                                                     uniform(16, 16, 3, 3, 3))),
    "depthwise convolution, gradients": lambda: (
        grad(lambda x, w: (conv(64)(x, w) ** 2).sum(), (0, 1)),
        (uniform(8, 64, 32, 32), uniform(64, 1, 3, 3))),
    "forces between 1,000 bodies, gradient": lambda: (
        grad(lambda x: (forces(x) ** 2).sum()), (uniform(1000, 3),)),
    "inverses of 10⁵ 3 × 3 matrices": lambda: (
        onp.linalg.inv, (uniform(10**5, 3, 3) + 2 * onp.eye(3),)),
    "20 steps of the heat equation, 1,000 × 1,000": lambda: (
        lambda u: lax.fori_loop(0, 20, lambda _, u: heat(u), u), (uniform(1000, 1000),)),
}


def status(name: str) -> int:
    """A number of /proc/self/status, in bytes."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(name))


def risen(name: str, mode: str) -> int:
    """By how many bytes memory rises at most while the program runs."""
    olympus.config.update("olympus_enable_compilation_cache", False)
    fun, args = PROGRAMS[name]()
    run = olympus.jit(lambda *xs: fun(*xs), kernels=mode).lower(*args).compile()
    olympus.block_until_ready(args)
    pathlib.Path("/proc/self/clear_refs").write_text("5")
    before = status("VmRSS")
    for _ in range(2):
        olympus.block_until_ready(run(*args))
    return status("VmHWM") - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("patterns", nargs="*", default=["*"])
    parser.add_argument("--one", nargs=2, metavar=("PROGRAM", "MODE"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        print(risen(*given.one))
        return
    print("| MB while it runs | XLA's form | kernels |\n| - | - | - |")
    for name in PROGRAMS:
        if not any(fnmatch.fnmatch(name, p) for p in given.patterns):
            continue
        cells = []
        for mode in ("off", "auto"):
            done = subprocess.run([sys.executable, __file__, "--one", name, mode], check=True,
                                  capture_output=True, text=True)
            cells.append(f"{int(done.stdout) / 1e6:,.0f}")
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
