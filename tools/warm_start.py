"""What the compilation cache spares: CPU seconds of whole processes without it, first and again.

    PYTHONPATH=. python tools/warm_start.py [--rounds 7] [NAME …]

Each round runs every program in three processes: with the cache off, in an empty folder, and in
the folder that the second process filled. Shown are medians of user and system time, start and
end of the process and the writing thread included, and medians of the rounds' ratios.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

import olympus
import olympus.numpy as onp
from olympus import nn

ROOT = Path(__file__).resolve().parent.parent


def calls() -> list[Any]:
    """Twenty calls as of NumPy, each an operation or several that run at once."""
    x = onp.linspace(0.0, 1.0, 12).reshape(3, 4)
    y = onp.arange(12.0).reshape(4, 3)
    square = x @ y + onp.eye(3) * 9
    return [
        onp.sort(y, axis=0), onp.cumsum(x), onp.median(x), onp.percentile(x, 30),
        onp.where(x > 0.5, x, 0), onp.concatenate([x, x + 1]), onp.argmax(y), onp.var(x, axis=1),
        onp.einsum("ij,jk->ik", x, y), onp.linalg.solve(square, x), onp.linalg.norm(x),
        onp.clip(x, 0.2, 0.8), onp.roll(x, 1), onp.unique(y), onp.interp(0.3, x[0], y[:, 0]),
        onp.histogram(x, bins=5), onp.linalg.eigh(square)]


def transformer() -> None:
    """The gradient of a transformer of 12 layers that are written out."""
    def layer(x: Any, w: Any) -> Any:
        h = nn.standardize(x)
        heads = [(h @ w[i]).reshape(*x.shape[:2], 4, -1) for i in range(3)]
        x = x + nn.dot_product_attention(*heads, is_causal=True).reshape(x.shape) @ w[3]
        return x + nn.gelu(nn.standardize(x) @ w[4]) @ w[5]

    def loss(ws: Any, x: Any) -> Any:
        for w in ws:
            x = layer(x, w)
        return (x ** 2).mean()

    rng = np.random.default_rng(0)
    ws = [rng.normal(size=(6, 64, 64)).astype(np.float32) * 0.05 for _ in range(12)]
    x = rng.normal(size=(2, 32, 64)).astype(np.float32)
    olympus.block_until_ready(olympus.jit(olympus.grad(loss))(ws, x))


PROGRAMS = {"twenty calls": calls, "a transformer's gradient": transformer}


def seconds(name: str, python: str, cache: str | None) -> float:
    """User and system time of a process that runs a program, given where Python keeps bytecode and
    Olympus programs.
    """
    env = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONPYCACHEPREFIX": python,
           "XDG_CACHE_HOME": cache or "", "OLYMPUS_ENABLE_COMPILATION_CACHE": str(bool(cache))}
    for variable in ("PYTHONDONTWRITEBYTECODE", "OLYMPUS_COMPILATION_CACHE_DIR"):
        env.pop(variable, None)
    process = subprocess.Popen([sys.executable, __file__, "--run", name], env=env)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        sys.exit(f"{name}: the process ended with status {status}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", default=list(PROGRAMS))
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--run", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.run:
        PROGRAMS[given.run]()
        return
    print("| program | off, s | first, s | again, s | first / off | again / first |")
    print("|---|---|---|---|---|---|")
    for name in given.names:
        times = []
        with tempfile.TemporaryDirectory() as python:
            seconds(name, python, python)
            for _ in range(given.rounds):
                with tempfile.TemporaryDirectory() as cache:
                    times.append([seconds(name, python, where) for where in (None, cache, cache)])
        figures = [(*spent, spent[1] / spent[0], spent[2] / spent[1]) for spent in times]
        shown = (f"{statistics.median(column):.2f}" for column in zip(*figures, strict=True))
        print(f"| {name} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    main()
