"""Whole programs on an accelerator, Olympus beside JAX, as the table of docs/accelerators.md.

    python tools/gpu_benchmark.py --jax PYTHON_WITH_JAX [--platform gpu] [--rounds N] [--small]

The libraries take turns, each round in a process of its own. Shown: the least seconds of wall time
to compile a program first and to run it once compiled, and their ratios. `--write` puts the table
into the page. Where the platform has no device, "not run" is printed and the page stays as it is.
`--small --platform cpu` tries the tool itself.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/accelerators.md"
HEAD = "| program | JAX compiles, s | Olympus / JAX | JAX runs, ms | Olympus / JAX |"


def programs(library: Any, n: int) -> dict[str, tuple[Callable[..., Any], tuple[Any, ...]]]:
    """Function and arguments by name; `n` is the size of most axes."""
    np, lax, nn = library.numpy, library.lax, library.nn
    rng = numpy.random.default_rng(0)

    def normal(*shape: int, dtype: str = "float32") -> Any:
        return np.asarray(rng.standard_normal(shape), dtype=dtype)

    def attention(q: Any, k: Any, v: Any) -> Any:
        return nn.dot_product_attention(q, k, v, is_causal=True)

    def layer(x: Any, w: Any) -> tuple[Any, None]:
        h = (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
        heads = [(h @ w[i]).reshape(*x.shape[:2], 8, -1) for i in range(3)]
        x = x + attention(*heads).reshape(x.shape) @ w[3]
        return x + nn.gelu(x @ w[4]) @ w[5], None

    def loss(ws: Any, x: Any) -> Any:
        return (lax.scan(layer, x, ws)[0] ** 2).mean()

    m, w = normal(n, n), normal(6, 6, n // 4, n // 4) * 0.05
    heads = [normal(4, n, 8, 64, dtype="bfloat16") for _ in range(3)]
    return {
        "matmul, float32": (lambda x: x @ x, (m,)),
        "matmul, bfloat16": (lambda x: x @ x, (m.astype("bfloat16"),)),
        "elementwise chain": (lambda x: np.tanh(np.sin(x) * 2 + np.exp(-x * x)), (m,)),
        "softmax": (nn.softmax, (m,)),
        "sum of rows": (lambda x: x.sum(1), (m,)),
        "sort": (lambda x: np.sort(x, axis=1), (m,)),
        "cumsum": (lambda x: np.cumsum(x, axis=1), (m,)),
        "gather": (lambda x, i: x[i], (m, np.asarray(rng.integers(0, n, n)))),
        "scatter-add": (lambda x, i: x.at[i].add(1), (m, np.asarray(rng.integers(0, n, n)))),
        "convolution": (lambda x, k: lax.conv(x, k, (1, 1), "SAME"),
                        (normal(8, 32, n // 8, n // 8), normal(32, 32, 3, 3))),
        "fft": (np.fft.fft, (m,)),
        "Cholesky": (lambda x: np.linalg.cholesky(x @ x.T + n * np.eye(n)), (m,)),
        "eigh": (np.linalg.eigh, (m[:n // 4, :n // 4] + m[:n // 4, :n // 4].T,)),
        "normal": (lambda: library.random.normal(library.random.key(0), (n, n)), ()),
        "attention, bfloat16": (attention, tuple(heads)),
        "gradient of a transformer": (library.grad(loss), (w, normal(4, n // 8, n // 4))),
        "scan of 1,000 steps": (lambda x: lax.scan(lambda c, _: (np.sin(c), None), x, None,
                                                   length=1000)[0], (m[0],)),
    }


def measure(library: Any, platform: str, n: int) -> Iterator[tuple[str, float, float]]:
    """Each program's name, and the seconds to compile and to run it."""
    with library.default_device(library.devices(platform)[0]):
        for name, (fun, args) in programs(library, n).items():
            start = time.perf_counter()
            call = library.jit(fun).lower(*args).compile()
            compiled = time.perf_counter() - start
            library.block_until_ready(call(*args))
            times = []
            for _ in range(10):
                start = time.perf_counter()
                library.block_until_ready(call(*args))
                times.append(time.perf_counter() - start)
            yield name, compiled, min(times)


def ask(python: str, library: str, options: argparse.Namespace) -> dict[str, tuple[float, float]]:
    """What a library measures in a process of its own."""
    env = {**os.environ, "PYTHONPATH": str(ROOT) if library == "olympus" else "",
           "XLA_PYTHON_CLIENT_PREALLOCATE": "false", "OLYMPUS_ENABLE_COMPILATION_CACHE": "false"}
    done = subprocess.run(
        [python, __file__, "--worker", library, "--platform", options.platform,
         *(["--small"] if options.small else [])],
        env=env, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{library}: {done.stderr[-2000:]}")
    return {name: (compiled, ran) for name, compiled, ran in map(
        json.loads, done.stdout.splitlines())}


def least(runs: list[dict[str, tuple[float, float]]]) -> dict[str, list[float]]:
    return {name: [min(run[name][i] for run in runs) for i in range(2)] for name in runs[0]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jax")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--platform", default="gpu")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--worker")
    options = parser.parse_args()
    if options.worker:
        library = importlib.import_module(options.worker)
        try:
            library.devices(options.platform)
        except RuntimeError:
            return
        for found in measure(library, options.platform, 128 if options.small else 4096):
            print(json.dumps(found), flush=True)
        return
    if not options.jax:
        parser.error("--jax: the Python that has JAX is required")
    ours = [ask(options.python, "olympus", options)]
    if ours == [{}]:
        print(f"not run: no {options.platform} here")
        return
    theirs = [ask(options.jax, "jax", options)]
    for _ in range(options.rounds - 1):
        theirs.append(ask(options.jax, "jax", options))
        ours.append(ask(options.python, "olympus", options))
    jax, olympus = least(theirs), least(ours)
    lines = [HEAD, "|-|-|-|-|-|"]
    for name, (compiled, ran) in jax.items():
        ratios = [f"{o / j:.2f}" for o, j in zip(olympus[name], (compiled, ran), strict=True)]
        lines.append(f"| {name} | {compiled:.3f} | {ratios[0]} | {ran * 1e3:.3f} | {ratios[1]} |")
    print("\n".join(lines))
    if options.write:
        text = PAGE.read_text(encoding="utf-8")
        before, rest = text.split("<!-- benchmark -->\n")[:2]
        PAGE.write_text(f"{before}<!-- benchmark -->\n" + "\n".join(lines)
                        + "\n" + rest[rest.index("<!-- end -->"):], encoding="utf-8")


if __name__ == "__main__":
    main()
